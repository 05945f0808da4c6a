/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - `profllm export`: runs of a store as CSV or JSON lines.
 *
 * The bytes are those of the API's route of that name, asked without a server.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/export.h"
#include "core/base/file.h"
#include "web/route.h"

#define PIECE_BYTES 65536

struct export_opts {
	const char *store, *columns, *sort, *format, *output, *shown;
	struct opt_json filter;
	struct opt_int limit;
};

#define R(member, flag, ...) OPT(struct export_opts, member, flag, __VA_ARGS__)

static const char *const formats[] = { "csv", "jsonl", NULL };
static const char *const shown[] = { "usual", "excluded", "archived", "all", NULL };

static const struct opt rows[] = {
	R(store, "store", .arg = "URL",
	  .words = "db database",
	  .help = "sqlite:PATH or postgresql://...; default: sqlite, in the user's data folder"),
	R(filter, "filter", .arg = "JSON",
	  .words = "where",
	  .help = "only runs that it holds for: {\"column\": \"server.model\", \"in\": [\"m\"]}, and "
		  "{\"and\": [...]} of such"),
	R(shown, "shown", .choices = shown, .help = "runs that are not usually shown, too, or alone"),
	R(columns, "columns", .arg = "A,B",
	  .help = "which, in this order; default: all, what a run is and its main figures first"),
	R(sort, "sort", .arg = "A,-B", .help = "by these columns; - in front: largest first"),
	R(limit, "limit", .arg = "N", .min = 1, .max = 1e9, .help = "at most so many runs"),
	R(format, "format", .choices = formats,
	  .words = "json jsonl",
	  .help = "csv: texts that a spreadsheet would take for a formula get an apostrophe in front, "
		  "times are ISO 8601 and not seconds"),
	R(output, "output", .arg = "FILE", .words = "out -o",
	  .help = "where to; default: stdout"),
};
static const struct export_opts defaults = { .format = "csv", .shown = "usual" };

const struct opt_set cmd_export_set = {
	.command = "export",
	.summary = "Writes runs of the store as CSV or JSON lines.",
	.epilog = "Examples:\n"
		  "  profllm export --output runs.csv\n"
		  "  profllm export --store sqlite:runs.db --columns run_id,median_ttft_ms "
		  "--sort=-timestamp \\\n"
		  "      --filter '{\"column\": \"request_throughput\", \"range\": {\"min\": 10}}'",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
};

/* ---- the question, as the API has it ---- */

static void put_columns(struct json_writer *w, const char *list)
{
	struct str rest = str_of(list);

	json_member_array(w, "columns");
	while (rest.n)
		json_put_str(w, str_trim(str_cut(&rest, ',')));
	json_end_array(w);
}

static void put_sort(struct json_writer *w, const char *list)
{
	struct str rest = str_of(list);

	json_member_array(w, "sort");
	while (rest.n) {
		struct str name = str_trim(str_cut(&rest, ','));
		bool is_descending = str_starts(name, STR("-"));

		if (is_descending)
			name = (struct str){ name.p + 1, name.n - 1 };
		json_begin_object(w);
		json_member_str(w, "column", name);
		json_member_bool(w, "descending", is_descending);
		json_end_object(w);
	}
	json_end_array(w);
}

static struct json_value *question(const struct export_opts *o, struct arena *a, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *v = NULL;

	json_begin_object(&w);
	json_member_text(&w, "format", o->format);
	json_member_text(&w, "shown", o->shown);
	if (o->filter.text)
		json_member_foreign(&w, "filter", str_of(o->filter.text));
	if (o->columns)
		put_columns(&w, o->columns);
	if (o->sort)
		put_sort(&w, o->sort);
	if (o->limit.is_set)
		json_member_int(&w, "limit", o->limit.v);
	json_end_object(&w);
	if (json_parse(a, arena_str(a, buf_str(&text)), &v, e) < 0)
		v = NULL;
	buf_release(&text);
	return v;
}

/* ---- bytes ---- */

static int pull_all(struct web_answer *answer, int fd, struct err *e)
{
	char piece[PIECE_BYTES];
	long n;

	while ((n = answer->pull(answer->self, piece, sizeof(piece))) > 0) {
		if (*cli_is_interrupted())
			return err_set(e, ERR_CANCELLED, "interrupted");
		if (file_write_all(fd, (struct str){ piece, (size_t)n }) < 0)
			return err_set(e, ERR_IO, "the runs cannot be written: %s", strerror(errno));
	}
	return n == 0 ? 0 : err_set(e, ERR_RUN, "a page of runs does not fit into memory; expected "
				    "fewer --columns");
}

static int write_out(const struct export_opts *o, struct web_answer *answer, struct err *e)
{
	struct file_swap swap;
	int rc;

	if (!o->output)
		return pull_all(answer, STDOUT_FILENO, e);
	if (file_swap_begin(&swap, o->output) < 0)
		return err_set(e, ERR_IO, "--output: %s cannot be written: %s", o->output,
			       strerror(errno));
	rc = pull_all(answer, swap.fd, e);
	if (file_swap_end(&swap, rc == 0) < 0 && rc == 0)
		rc = err_set(e, ERR_IO, "--output: %s cannot be written: %s", o->output,
			     strerror(errno));
	return rc;
}

/* The API's pointer as what was typed: "/columns/1: ..." is about --columns. */
static void name_option(struct arena *a, struct err *e)
{
	static const char *const option[] = { "filter", "columns", "sort", "limit" };
	const char *text = arena_text(a, str_of(e->text));

	for (size_t i = 0; i < sizeof(option) / sizeof(*option); i++) {
		size_t n = strlen(option[i]);
		const char *rest = text + 1 + n;

		if (*text != '/' || strncmp(text + 1, option[i], n) != 0 || !strchr("/:", *rest))
			continue;
		if (i > 0 && *rest == '/') /* a list on the command line has no pointers in it */
			rest = strchr(rest, ':') ? strchr(rest, ':') : rest;
		err_set(e, e->code, "--%s%s%s", option[i], *rest == '/' ? ": " : "", rest);
		return;
	}
}

static int pull_text(struct web_answer *answer, struct buf *out, struct err *e)
{
	char piece[PIECE_BYTES];
	long n;

	while ((n = answer->pull(answer->self, piece, sizeof(piece))) > 0)
		buf_add(out, piece, (size_t)n);
	return n == 0 ? 0 : err_set(e, ERR_RUN, "a page of runs does not fit into memory");
}

/* To --output, or to text where that is given. */
static int export(const struct export_opts *o, struct buf *text, struct arena *a, struct err *e)
{
	struct store_opts how = { .url = o->store, .is_read_only = true };
	struct web_request request = { .arena = a, .method = "POST", .who = STR("export") };
	struct web_answer answer = { .fd = -1 };
	struct store *store;
	int rc = -1;

	if (o->columns && !*o->columns)
		return err_set(e, ERR_USAGE, "--columns: expected names of columns, got none");
	request.body = question(o, a, e);
	if (!request.body || store_open(&how, &store, e) < 0)
		return -1;
	request.store = store;
	request.view = index_view(store_index(store));
	if (export_routes.route->handle(&request, &answer, e) == 0) {
		rc = text ? pull_text(&answer, text, e) : write_out(o, &answer, e);
		answer.pull_end(answer.self);
	} else {
		name_option(a, e);
	}
	buf_release(&answer.body);
	index_view_release(request.view);
	store_close(store);
	return rc;
}

int export_jsonl(const char *store, const char *filter, struct buf *out, struct arena *a,
		 struct err *e)
{
	struct export_opts o = defaults;

	o.store = store;
	o.format = "jsonl";
	o.filter.text = filter;
	return export(&o, out, a, e);
}

int cmd_export(struct cli *cli, void *values)
{
	struct export_opts *o = values;

	cli_catch_signals();
	return export(o, NULL, &cli->arena, &cli->err);
}
