/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doctor.c - `profllm doctor`: whether this machine, and the network to a server, are fit for
 * measuring.
 */
#include <errno.h>
#include <unistd.h>

#include "bench/options/serve_opts.h"
#include "client/http/url.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "host/doctor/doctor.h"

#define EXIT_STRICT 3
#define MEASURE_S 0.3
#define TITLE_COLUMNS 19
#define JSON_VERSION 1

struct doctor_opts {
	struct opt_list urls;
	bool json, strict, insecure;
	const char *cacert;
};

#define ROW(member, name, ...) OPT(struct doctor_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	ROW(urls, "URL", .flags = OPT_POSITIONAL,
	    .help = "base URLs of servers whose name, route, connection, TLS and answers are "
		    "checked, too; OPENAI_API_KEY is sent as with bench serve"),
	ROW(json, "json", .help = "print one JSON object instead of the table, with all details"),
	ROW(strict, "strict", .help = "exit with 3 when a row is a problem"),
	ROW(insecure, "insecure", .help = "do not verify the server's certificate"),
	ROW(cacert, "cacert", .arg = "FILE",
	    .help = "PEM file of the authorities to trust instead of the system's"),
};
static const struct doctor_opts defaults = { 0 };

const struct opt_set cmd_doctor_set = {
	.command = "doctor",
	.summary = "Checks this machine as a load generator, and the path to the servers: what limits a "
		   "measurement, why, and the command that fixes it. Changes nothing.",
	.usage = "[URL...] [options]",
	.epilog = "Examples:\n"
		  "  profllm doctor\n"
		  "  profllm doctor http://server:8000\n"
		  "  profllm doctor --strict --json >machine.json",
	OPT_SET_OF(rows, defaults),
};

/* ---- looking ---- */

/* Checks before anything is measured. */
static int check(const struct doctor_opts *o, struct err *e)
{
	for (size_t i = 0; i < o->urls.n; i++) {
		struct url url;

		if (url_parse(str_of(o->urls.v[i]), &url, e) < 0)
			return -1;
	}
	if (o->cacert && access(o->cacert, R_OK) < 0)
		return err_set(e, ERR_USAGE, "--cacert: cannot read %s: %s", o->cacert,
			       strerrordesc_np(errno));
	return 0;
}

static int look_at_servers(const struct doctor_opts *o, struct doctor_rows *out, struct err *e)
{
	struct point_env env;

	point_env_read(&env);
	for (size_t i = 0; i < o->urls.n; i++) {
		struct doctor_visit v = { .url = o->urls.v[i], .is_insecure = o->insecure,
					  .ca_file = o->cacert, .api_key = env.api_key };
		struct doctor_server server;
		struct url url;

		if (url_parse(str_of(v.url), &url, e) < 0)
			return -1;
		v.proxy = serve_env_proxy(&env, &url);
		if (doctor_visit(&v, &server, e) < 0)
			return -1;
		doctor_judge_server(v.url, &server, out);
	}
	return 0;
}

static void look_at_machine(struct doctor_rows *out)
{
	struct doctor_machine *m = mem_alloc(sizeof(*m));
	struct link links[DOCTOR_LINKS_MAX];
	size_t n;

	doctor_read("", m);
	doctor_measure("", MEASURE_S, m);
	doctor_judge_machine(m, out);
	n = doctor_links("", links);
	for (size_t i = 0; i < n; i++)
		doctor_judge_link(&links[i], out);
	free(m);
}

/* ---- saying ---- */

static void say_json(const struct doctor_rows *found, struct buf *out)
{
	struct json_writer w = json_writer(out);

	w.indent = 2;
	json_begin_object(&w);
	json_member_int(&w, "version", JSON_VERSION);
	json_member_int(&w, "problems", (int64_t)doctor_rows_count(found, DOCTOR_PROBLEM));
	json_member_int(&w, "notes", (int64_t)doctor_rows_count(found, DOCTOR_NOTE));
	json_member_array(&w, "rows");
	for (size_t i = 0; i < found->n; i++) {
		const struct doctor_row *r = &found->row[i];

		json_begin_object(&w);
		json_member_text(&w, "name", r->name);
		json_member_text(&w, "about", *r->about ? r->about : NULL);
		json_member_text(&w, "verdict", doctor_name(r->verdict));
		json_member_text(&w, "value", r->value);
		json_member_object(&w, "numbers");
		for (size_t k = 0; k < r->n_numbers; k++)
			json_member_f64(&w, r->number[k].name, r->number[k].value);
		json_end_object(&w);
		json_member_text(&w, "spoils", *r->spoils ? r->spoils : NULL);
		json_member_text(&w, "why", *r->why ? r->why : NULL);
		json_member_text(&w, "command", *r->command ? r->command : NULL);
		json_end_object(&w);
	}
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
}

/* Words of text, broken before columns, each line but the first after indent blanks. */
static void add_wrapped(struct buf *out, struct str text, unsigned indent, unsigned columns)
{
	size_t at = indent;

	buf_printf(out, "%*s", (int)indent, "");
	while (text.n) {
		struct str word = str_cut(&text, ' ');

		if (at > indent && at + 1 + word.n > columns) {
			buf_printf(out, "\n%*s", (int)indent, "");
			at = indent;
		} else if (at > indent) {
			buf_add_char(out, ' ');
			at++;
		}
		buf_add_str(out, word);
		at += word.n;
	}
	buf_add_char(out, '\n');
}

static void say_row(const struct doctor_row *r, unsigned columns, struct buf *out)
{
	struct buf why = { 0 };

	buf_printf(out, "  %-8s %-*s %s\n", doctor_name(r->verdict), TITLE_COLUMNS, r->title, r->value);
	if (!*r->why)
		return;
	buf_printf(&why, "%s%s%s%s", r->why, *r->spoils ? " This affects " : "", r->spoils,
		   *r->spoils ? "." : "");
	add_wrapped(out, buf_str(&why), 11, columns);
	if (*r->command)
		buf_printf(out, "           $ %s\n", r->command);
	buf_release(&why);
}

static void say_text(const struct doctor_rows *found, unsigned columns, struct buf *out)
{
	size_t problems = doctor_rows_count(found, DOCTOR_PROBLEM);
	size_t notes = doctor_rows_count(found, DOCTOR_NOTE);
	const char *about = NULL;

	for (size_t i = 0; i < found->n; i++) {
		const struct doctor_row *r = &found->row[i];

		if (!about || strcmp(about, r->about) != 0)
			buf_printf(out, "%s%s\n", about ? "\n" : "",
				   *r->about ? r->about : "This machine as a load generator");
		about = r->about;
		say_row(r, columns, out);
	}
	buf_printf(out, "\n%zu problem%s, %zu note%s\n", problems, problems == 1 ? "" : "s", notes,
		   notes == 1 ? "" : "s");
}

int cmd_doctor(struct cli *c, void *values)
{
	const struct doctor_opts *o = values;
	struct doctor_rows found = { 0 };
	struct buf text = { 0 };
	int rc = -1;

	if (check(o, &c->err) < 0)
		return -1;
	look_at_machine(&found);
	if (look_at_servers(o, &found, &c->err) < 0)
		goto done;
	if (o->json)
		say_json(&found, &text);
	else
		say_text(&found, cli_columns(60, 110, 100), &text);
	cli_out_buf(&text);
	rc = o->strict && doctor_rows_count(&found, DOCTOR_PROBLEM) ? EXIT_STRICT : 0;
done:
	doctor_rows_release(&found);
	return rc;
}
