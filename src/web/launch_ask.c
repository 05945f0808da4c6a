/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/launch_ask.c - the routes below /api/launch: what a configuration may hold, what it would do,
 * and starting it.
 *
 * What `profllm run` knows is asked of it, as a program: --print-keys for the keys, --plan for what
 * a configuration would do. So this server and the command line never judge differently.
 */
#include "base/mem.h"
#include "base/zip.h"
#include "engine/args.h"
#include "web/launch_parts.h"
#include "web/static.h"

#define CONFIG_BYTES (1u << 20)
#define NAME_BYTES_MAX 200
#define FINDING "profllm run: "

/* ---- what there is to set ---- */

/* A cell of a Markdown table: code marks off, "\|" is a bar. */
static struct str next_cell(struct str *row, struct buf *out)
{
	buf_reset(out);
	while (row->n && row->p[0] != '|') {
		size_t step = row->n > 1 && row->p[0] == '\\' && row->p[1] == '|';

		if (row->p[step] != '`')
			buf_add_char(out, row->p[step]);
		row->p += step + 1;
		row->n -= step + 1;
	}
	if (row->n)
		*row = (struct str){ row->p + 1, row->n - 1 };
	return str_trim(buf_str(out));
}

static void put_key(struct json_writer *j, struct str row)
{
	static const char *const member[] = { "key", "value", "default", "help" };
	struct buf cell = { 0 };

	row = (struct str){ row.p + 1, row.n - 1 };
	json_begin_object(j);
	for (size_t i = 0; i < 4; i++) {
		struct str text = next_cell(&row, &cell);

		json_key(j, member[i]);
		if (text.n || i == 0)
			json_put_str(j, text);
		else
			json_put_null(j);
	}
	json_end_object(j);
	buf_release(&cell);
}

/* "## name", prose, a table whose first two rows are its head. */
static void put_sections(struct json_writer *j, struct str page)
{
	bool is_open = false;
	unsigned rows = 0;

	json_member_array(j, "sections");
	while (page.n) {
		struct str line = str_cut(&page, '\n');

		if (str_starts(line, STR("## "))) {
			if (is_open) {
				json_end_array(j);
				json_end_object(j);
			}
			is_open = true;
			rows = 0;
			json_begin_object(j);
			json_member_str(j, "name", (struct str){ line.p + 3, line.n - 3 });
			json_member_array(j, "keys");
		} else if (is_open && line.n && line.p[0] == '|' && ++rows > 2) {
			put_key(j, line);
		}
	}
	if (is_open) {
		json_end_array(j);
		json_end_object(j);
	}
	json_end_array(j);
}

static void put_arguments(struct json_writer *j)
{
	json_member_array(j, "arguments");
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		char name[128];
		size_t n = strlen(arg->name);

		if (arg->until || n >= sizeof(name))
			continue;
		for (size_t k = 0; k <= n; k++)
			name[k] = arg->name[k] == '-' ? '_' : arg->name[k];
		json_begin_object(j);
		json_member_text(j, "key", name);
		json_member_text(j, "value", arg->choices);
		json_member_text(j, "default", arg->initial);
		json_member_text(j, "help", arg->about);
		json_member_text(j, "group", arg->group);
		json_end_object(j);
	}
	json_end_array(j);
}

static int launch_schema(const struct web_request *r, struct web_answer *a, struct err *e)
{
	char *const words[] = { (char[]){ "--print-keys" }, NULL };
	struct buf page = { 0 };
	int rc = launch_ask(r, a, words, STR(""), &page, NULL, e);

	if (rc == 0) {
		put_sections(&a->json, buf_str(&page));
		put_arguments(&a->json);
	} else if (rc > 0) {
		rc = err_set(e, ERR_RUN, "profllm run --print-keys ended with %d", rc);
	}
	buf_release(&page);
	return rc;
}

/* The first line of its comment. */
static struct str title_of(struct str text)
{
	struct str line = str_cut(&text, '\n');

	while (line.n && (line.p[0] == '#' || line.p[0] == ' '))
		line.p++, line.n--;
	return line;
}

static int launch_examples(const struct web_request *r, struct web_answer *a, struct err *e)
{
	(void)e;
	json_key(&a->json, "items");
	json_begin_array(&a->json);
	for (const struct web_asset *x = web_examples; x->name; x++) {
		char *text = arena_alloc(r->arena, x->bytes + 1);
		size_t got = 0;

		if (zip_unpack((struct str){ x->packed, x->packed_bytes }, text, x->bytes, &got) !=
		    ZIP_DONE)
			continue;
		json_begin_object(&a->json);
		json_key(&a->json, "name");
		json_put_text(&a->json, x->name);
		json_key(&a->json, "title");
		json_put_str(&a->json, title_of((struct str){ text, got }));
		json_key(&a->json, "config");
		json_put_str(&a->json, (struct str){ text, got });
		json_end_object(&a->json);
	}
	json_end_array(&a->json);
	return 0;
}

/* ---- a configuration ---- */

struct judged {
	bool is_ok;
	struct buf plan, findings;   /* JSON; lines as `profllm run` prints them */
};

static int read_config(const struct web_request *r, struct str *config, struct err *e)
{
	const struct json_value *v = json_get(r->body, "config");

	*config = json_text(v, (struct str){ 0 });
	if (!config->p)
		return err_set(e, ERR_USAGE, "expected {\"config\": \"...\"}, YAML or JSON as a text");
	if (config->n > CONFIG_BYTES)
		return err_set(e, ERR_USAGE, "the configuration has %zu bytes; at most %u are taken",
			       config->n, CONFIG_BYTES);
	return 0;
}

/* Both start a process, and a check reads what the configuration names. */
static int may_launch(const struct web_request *r, struct web_answer *a, struct err *e)
{
	if (r->web->o.launches)
		return 0;
	a->status = 403;
	return err_set(e, ERR_USAGE, "this dashboard neither starts nor checks experiments "
		       "(--no-launch)");
}

static int judge(const struct web_request *r, struct web_answer *a, struct str config,
		 struct judged *out, struct err *e)
{
	char *const words[] = { (char[]){ "--config" }, (char[]){ "-" }, (char[]){ "--plan" },
				(char[]){ "-" }, NULL };
	int rc = launch_ask_once(r, a, words, config, &out->plan, &out->findings, e);

	if (rc < 0)
		return -1;
	out->is_ok = rc == 0;
	return 0;
}

static void judged_release(struct judged *j)
{
	buf_release(&j->plan);
	buf_release(&j->findings);
}

/* "stdin:LINE:COLUMN: text"; without a place line and column are null. */
static void put_finding(struct json_writer *j, struct str line, const char *level)
{
	struct str rest = line, file = str_cut(&rest, ':'), row = str_cut(&rest, ':');
	struct str column = str_cut(&rest, ':');
	int64_t at[2];
	bool has_place = str_is(file, "stdin") && str_to_i64(row, &at[0]) &&
			 str_to_i64(column, &at[1]);

	json_begin_object(j);
	json_member_text(j, "level", level);
	for (int i = 0; i < 2; i++) {
		json_key(j, i ? "column" : "line");
		if (has_place)
			json_put_int(j, at[i]);
		else
			json_put_null(j);
	}
	json_member_str(j, "text", has_place ? str_trim(rest) : line);
	json_end_object(j);
}

static void put_findings(struct json_writer *j, struct str text)
{
	struct str warning = STR("WARNING: "), error = STR(FINDING);

	json_member_array(j, "findings");
	while (text.n) {
		struct str line = str_cut(&text, '\n');

		if (str_starts(line, error))
			put_finding(j, (struct str){ line.p + error.n, line.n - error.n }, "error");
		else if (str_starts(line, warning))
			put_finding(j, (struct str){ line.p + warning.n, line.n - warning.n },
				    "warning");
		else if (line.n)
			put_finding(j, line, "error");
	}
	json_end_array(j);
}

static int launch_check(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct judged j = { 0 };
	struct str config;
	int rc = may_launch(r, a, e);

	if (rc == 0)
		rc = read_config(r, &config, e);
	if (rc == 0)
		rc = judge(r, a, config, &j, e);
	if (rc == 0) {
		json_key(&a->json, "ok");
		json_put_bool(&a->json, j.is_ok);
		put_findings(&a->json, buf_str(&j.findings));
		json_key(&a->json, "plan");
		if (j.is_ok)
			json_put_raw(&a->json, str_trim(buf_str(&j.plan)));
		else
			json_put_null(&a->json);
	}
	judged_release(&j);
	return rc;
}

/* What the plan calls it: the suite, else its only experiment. */
static struct str name_of(struct arena *a, struct str plan)
{
	struct json_value *v = NULL;
	const struct json_value *list;
	struct str name = { 0 };

	if (json_parse(a, plan, &v, NULL) == 0) {
		list = json_get(v, "experiments");
		name = json_text(json_get(v, "suite"), name);
		if (!name.n && list && list->kind == JSON_ARRAY && list->count)
			name = json_text(json_get(&list->item[0], "name"), name);
	}
	if (name.n > NAME_BYTES_MAX)
		name.n = NAME_BYTES_MAX;
	return name;
}

/* The first error's sentence. */
static struct str first_error(struct str findings)
{
	struct str error = STR(FINDING), line = { 0 };

	while (findings.n) {
		line = str_cut(&findings, '\n');
		if (str_starts(line, error))
			return (struct str){ line.p + error.n, line.n - error.n };
	}
	return line;
}

static int launch_begin(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct judged j = { 0 };
	struct started *s = NULL;
	struct str config, why;
	int rc = may_launch(r, a, e);

	if (rc == 0)
		rc = read_config(r, &config, e);
	if (rc == 0)
		rc = judge(r, a, config, &j, e);
	if (rc == 0 && !j.is_ok) {
		why = first_error(buf_str(&j.findings));
		a->status = 422;
		rc = err_set(e, ERR_USAGE, "%.*s", (int)why.n, why.n ? why.p : "");
	}
	if (rc == 0)
		rc = launch_make(r->web->launch, config, name_of(r->arena, buf_str(&j.plan)), &s,
				 e);
	judged_release(&j);
	if (rc < 0)
		return -1;
	a->status = 202;
	json_key(&a->json, "job_id");
	json_put_text(&a->json, s->id);
	launch_add(r->web->launch, s);
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/launch/schema", ROUTE_READS, launch_schema },
	{ "GET", "/api/launch/examples", ROUTE_READS, launch_examples },
	/* It starts a process, and a configuration may name files here: as launching itself. */
	{ "POST", "/api/launch/check", ROUTE_CHANGES | ROUTE_LAUNCHES, launch_check },
	{ "POST", "/api/launch", ROUTE_CHANGES | ROUTE_LAUNCHES, launch_begin },
};
const struct web_routes launch_routes = { routes, sizeof(routes) / sizeof(*routes) };
