/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - questions to the API's routes, asked without a server: `profllm export`, runs of a
 * store as CSV or JSON lines, and `profllm trends`, whether a metric changed, for cron and CI.
 *
 * A change is news on the run of `trends` that first sees it: with --last N, when it was not there
 * before the newest N points of its series. People's marks silence a change.
 */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "input/fetch/fetch.h"
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
	  .help = "only runs that match this filter: {\"column\": \"server.model\", \"in\": "
		  "[\"m\"]}, or {\"and\": [...]} of several"),
	R(shown, "shown", .choices = shown, .help = "include hidden runs, or export only those"),
	R(columns, "columns", .arg = "A,B",
	  .help = "columns to write, in this order; default: all, beginning with what identifies a "
	  "run and its main metrics"),
	R(sort, "sort", .arg = "A,-B", .help = "sort by these columns; a - in front means largest "
	"first"),
	R(limit, "limit", .arg = "N", .min = 1, .max = 1e9, .help = "write at most this many runs"),
	R(format, "format", .choices = formats,
	  .words = "json jsonl",
	  .help = "csv: texts that a spreadsheet would take for a formula get an apostrophe in front, "
		  "times are ISO 8601 and not seconds"),
	R(output, "output", .arg = "FILE", .words = "out -o",
	  .help = "file to write; default: stdout"),
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
	OPT_SET_OF(rows, defaults), .stray = "store",
};

/* ---- the question in the API's form ---- */

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
	return n == 0 ? 0 : err_set(e, ERR_RUN, "a page of runs does not fit into memory; choose "
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

/* Replaces the API's pointer by the option: "/columns/1: ..." is about --columns. */
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

/* Writes to --output, or to text if it is not NULL. */
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

/* ---- trends: an exit status, sentences, a POST to a webhook ---- */

#define EXIT_CHANGED 3
#define METRICS_MAX 16
#define WEBHOOK_TIMEOUT_MS 10000
#define WEBHOOK_BYTES_MAX 65536 /* of its answer */

struct trends_opts {
	const char *store, *axis, *series, *webhook;
	struct opt_json filter;
	struct opt_list metric;
	struct opt_real effect;
	int64_t last;
	bool is_worse_only, is_unjudged_allowed;
};

#define T(member, flag, ...) OPT(struct trends_opts, member, flag, __VA_ARGS__)

static const char *const axes[] = { "auto", "commit", "version", "day", "time", NULL };

static const struct opt trends_rows[] = {
	T(store, "store", .arg = "URL",
	  .words = "db database",
	  .help = "sqlite:PATH or postgresql://...; default: sqlite, in the user's data folder"),
	T(metric, "metric", .arg = "NAME", .flags = OPT_EACH,
	  .help = "a metric to look at, such as output_throughput or p99_ttft_ms; may be repeated"),
	T(filter, "filter", .arg = "JSON",
	  .words = "where",
	  .help = "only runs that match this filter: {\"column\": \"server.model\", \"in\": "
		  "[\"m\"]}, or {\"and\": [...]} of several"),
	T(axis, "axis", .choices = axes,
	  .help = "what one point is and how points are ordered; auto: chosen from the data"),
	T(series, "series", .arg = "A,B",
	  .help = "columns that separate runs into series; default: everything that was "
	  "configured"),
	T(last, "last", .arg = "N", .min = 1, .max = 1000,
	  .words = "nights news",
	  .help = "report a change only if it was detected within the newest N points (nights, "
		  "commits) of its series"),
	T(effect, "min-effect", .arg = "PERCENT", .min = 0, .max = 1000,
	  .help = "smallest change to report; default: 3, and 5 for percentiles from 99 on"),
	T(is_worse_only, "worse", .help = "report only changes for the worse"),
	T(is_unjudged_allowed, "allow-unjudged",
	  .help = "exit with 0 also when a metric has too few points to be judged"),
	T(webhook, "webhook", .arg = "URL",
	  .words = "alert notify slack post",
	  .help = "POST the changes to this URL as JSON, with a member text for people; nothing is "
		  "sent when nothing changed"),
};
static const struct trends_opts trends_defaults = { .axis = "auto", .last = 1 };

const struct opt_set cmd_trends_set = {
	.command = "trends",
	.summary = "Reports whether a metric in the store changed recently, and exits with 3 when "
		"it did.",
	.usage = "--metric NAME [options]",
	.epilog = "Examples:\n"
		  "  profllm trends --metric output_throughput --metric p99_ttft_ms\n"
		  "  profllm trends --store sqlite:runs.db --metric median_tpot_ms --worse --last 3 \\\n"
		  "      --webhook https://hooks.example.org/T123\n"
		  "Exit status: 0 nothing changed; 1 the store or the webhook failed; 2 wrong options;\n"
		  "3 something changed, or cannot be judged.",
	OPT_SET_OF(trends_rows, trends_defaults),
};

/* The findings of all metrics. */
struct found {
	const struct trends_opts *o;
	struct arena *a;
	struct buf text;           /* a line for each change */
	struct buf list;           /* of the webhook: the same as JSON */
	struct json_writer w;      /* of list */
	size_t changed, unjudged;
};

static struct json_value *trends_question(const struct trends_opts *o, const char *metric,
					  struct arena *a, struct err *e)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *v = NULL;
	struct str rest = str_of(o->series ? o->series : "");

	json_begin_object(&w);
	json_member_text(&w, "metric", metric);
	json_member_int(&w, "news", o->last);
	if (strcmp(o->axis, "auto") != 0)
		json_member_text(&w, "axis", o->axis);
	if (o->effect.is_set)
		json_member_f64(&w, "effect", o->effect.v / 100);
	if (o->filter.text)
		json_member_foreign(&w, "filter", str_of(o->filter.text));
	if (o->series) {
		json_member_array(&w, "series");
		while (rest.n)
			json_put_str(&w, str_trim(str_cut(&rest, ',')));
		json_end_array(&w);
	}
	json_end_object(&w);
	if (json_parse(a, arena_str(a, buf_str(&text)), &v, e) < 0)
		v = NULL;
	buf_release(&text);
	return v;
}

static const struct web_route *route(void)
{
	for (size_t i = 0; i < analysis_routes.n; i++)
		if (strcmp(analysis_routes.route[i].path, "/api/analysis/trends") == 0)
			return &analysis_routes.route[i];
	return NULL;
}

/* Replaces the API's pointer by the option: "/series/1: ..." is about --series. */
static void name_trends_option(struct arena *a, struct err *e)
{
	const char *text = arena_text(a, str_of(e->text)), *rest;
	size_t n = strcspn(*text == '/' ? text + 1 : text, "/:");

	if (*text != '/' || n == 0)
		return;
	rest = text + 1 + n;
	if (*rest == '/' && !str_starts(str_of(text), STR("/filter")) && strchr(rest, ':'))
		rest = strchr(rest, ':');
	err_set(e, e->code, "--%.*s%s%s", (int)n, text + 1, *rest == '/' ? ": " : "", rest);
}

/* The answer's JSON. */
static int ask(struct web_request *r, const struct trends_opts *o, const char *metric,
	       struct json_value **out, struct err *e)
{
	struct web_answer answer = { .fd = -1 };
	int rc = -1;

	r->body = trends_question(o, metric, r->arena, e);
	if (!r->body)
		return -1;
	answer.json = json_writer(&answer.body);
	json_begin_object(&answer.json);
	if (r->route->handle(r, &answer, e) == 0) {
		json_end_object(&answer.json);
		rc = json_parse(r->arena, arena_str(r->arena, buf_str(&answer.body)), out, e);
	} else {
		name_trends_option(r->arena, e);
	}
	buf_release(&answer.body);
	return rc;
}

/* ---- the answer ---- */

static struct str text_of(const struct json_value *v, const char *key)
{
	return json_text(json_get(v, key), STR(""));
}

static bool is_news(const struct trends_opts *o, const struct json_value *change)
{
	return json_bool(json_get(change, "is_new"), false) &&
	       !json_bool(json_get(change, "is_marked"), false) &&
	       (!o->is_worse_only || str_is(text_of(change, "verdict"), "worse"));
}

static void add_change(struct found *f, const struct json_value *series,
		       const struct json_value *change)
{
	static const char *const keys[] = {
		"text", "verdict", "guard", "effect", "p", "at", "commit", "commit_before", "version", "also",
		"command",
	};
	struct str name = text_of(series, "name"), text = text_of(change, "text");
	struct str command = text_of(change, "command"), guard = text_of(change, "guard");

	buf_printf(&f->text, "%.*s: %.*s\n", (int)name.n, name.p, (int)text.n, text.p);
	if (guard.n)
		buf_printf(&f->text, "  not better: %.*s\n", (int)guard.n, guard.p);
	if (command.n)
		buf_printf(&f->text, "  decide it: %.*s\n", (int)command.n, command.p);
	json_begin_object(&f->w);
	json_key(&f->w, "series");
	json_put_str(&f->w, name);
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (json_get(change, keys[i])) {
			json_key(&f->w, keys[i]);
			json_put_value(&f->w, json_get(change, keys[i]));
		}
	json_end_object(&f->w);
	f->changed++;
}

static void tell_begin(const struct json_value *series)
{
	struct str name = text_of(series, "name");
	struct str text = text_of(json_get(series, "begins"), "text");

	if (text.n)
		printf("note: %.*s: %.*s\n", (int)name.n, name.p, (int)text.n, text.p);
}

static void tell(struct found *f, const char *metric, const struct json_value *answer)
{
	const struct json_value *series = json_get(answer, "series");
	const struct json_value *notes = json_get(answer, "notes");
	bool is_judged = json_bool(json_get(answer, "is_judged"), false);
	struct str reason = text_of(answer, "reason");
	size_t before = f->changed;

	for (size_t i = 0; series && i < series->count; i++) {
		const struct json_value *changes = json_get(&series->item[i], "changes");

		tell_begin(&series->item[i]);
		for (size_t k = 0; changes && k < changes->count; k++)
			if (is_news(f->o, &changes->item[k]))
				add_change(f, &series->item[i], &changes->item[k]);
	}
	for (size_t i = 0; notes && i < notes->count; i++)
		printf("note: %.*s\n", (int)notes->item[i].text.n, notes->item[i].text.p);
	f->unjudged += !is_judged;
	if (!is_judged)
		printf("%s: not judged: %.*s\n", metric, (int)reason.n, reason.p);
	else if (f->changed == before)
		printf("%s: %s\n", metric, reason.n ? arena_text(f->a, reason) :
		       f->o->is_worse_only ?
		       "no recent change for the worse; the dashboard's page Trends shows all" :
		       "no recent change; the dashboard's page Trends shows older ones");
}

/* The path of a webhook is often its secret, and cron mails the output. */
static void hide_address(const struct found *f, struct err *e)
{
	const char *why = arena_text(f->a, str_of(e->text));
	size_t n = strlen(f->o->webhook);

	if (strncmp(why, f->o->webhook, n) == 0)
		why += n + strspn(why + n, ": ");
	err_set(e, e->code, "--webhook: %s; the changes above were not delivered",
		strstr(why, f->o->webhook) ? "no answer" : why);
}

static int post(const struct found *f, struct err *e)
{
	struct fetch_opts how = { .timeout_ms = WEBHOOK_TIMEOUT_MS,
				  .body_bytes_max = WEBHOOK_BYTES_MAX };
	struct fetch_reply reply = { 0 };
	struct buf body = { 0 };
	struct json_writer w = json_writer(&body);
	struct str bytes;
	int rc;

	json_begin_object(&w);
	json_member_str(&w, "text", buf_str(&f->text));
	json_member_foreign(&w, "changes", buf_str(&f->list));
	json_end_object(&w);
	bytes = buf_str(&body);
	rc = fetch(f->o->webhook, &bytes, &how, &reply, e);
	if (rc < 0)
		hide_address(f, e);
	else if (reply.status < 200 || reply.status > 299)
		rc = err_set(e, ERR_RUN, "--webhook: expected status 200 to 299, got %ld; the changes "
			     "above were not delivered", reply.status);
	fetch_reply_release(&reply);
	buf_release(&body);
	return rc;
}

/* ---- the verb ---- */

static int check(const struct trends_opts *o, struct err *e)
{
	if (!o->metric.n)
		return err_set(e, ERR_USAGE, "--metric is needed: the name of a metric, such as "
			       "output_throughput");
	if (o->metric.n > METRICS_MAX)
		return err_set(e, ERR_USAGE, "--metric: at most %d can be looked at, got %zu",
			       METRICS_MAX, o->metric.n);
	if (o->webhook && !fetch_is_url(o->webhook))
		return err_set(e, ERR_USAGE, "--webhook: expected an address that begins with http:// "
			       "or https://, got '%s'", o->webhook);
	return 0;
}

static int look(struct found *f, struct err *e)
{
	struct store_opts how = { .url = f->o->store, .is_read_only = true };
	struct web_request request = { .route = route(), .arena = f->a, .method = "POST",
				       .who = STR("trends") };
	struct store *store;
	int rc = 0;

	if (store_open(&how, &store, e) < 0)
		return -1;
	request.store = store;
	request.view = index_view(store_index(store));
	for (size_t i = 0; rc == 0 && i < f->o->metric.n; i++) {
		struct json_value *answer;

		rc = ask(&request, f->o, f->o->metric.v[i], &answer, e);
		if (rc == 0)
			tell(f, f->o->metric.v[i], answer);
	}
	index_view_release(request.view);
	store_close(store);
	return rc;
}

int cmd_trends(struct cli *cli, void *values)
{
	const struct trends_opts *o = values;
	struct found f = { .o = o, .a = &cli->arena };
	struct err *e = &cli->err;
	int rc;

	cli_catch_signals();
	if (check(o, e) < 0)
		return -1;
	f.w = json_writer(&f.list);
	json_begin_array(&f.w);
	rc = look(&f, e);
	json_end_array(&f.w);
	if (rc == 0) {
		cli_out(buf_str(&f.text));
		if (f.changed && o->webhook)
			rc = post(&f, e);
	}
	if (rc == 0 && (f.changed || (f.unjudged && !o->is_unjudged_allowed)))
		rc = EXIT_CHANGED;
	buf_release(&f.text);
	buf_release(&f.list);
	return rc;
}
