/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - routes that read runs: lists, one whole run, its bytes, and a summary of many.
 */
#include <math.h>
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "host/engine/args.h"
#include "results/analyse/analyse.h"
#include "web/api.h"
#include "web/web_internal.h"

#define DATA_VERSIONS_MAX 20 /* of one run_id, in an answer; the newest */
#define DATA_EXCLUSIONS_MAX 1000 /* in an answer; the newest */

/* ---- what is doubtful about a run ---- */

static struct value cell_of(const struct row *r, const char *column)
{
	return row_value(r, str_of(column));
}

struct badges {
	struct json_writer *w;
	size_t n;
};

__attribute__((format(printf, 4, 5)))
static void put(struct badges *b, const char *level, const char *code, const char *fmt, ...)
{
	char text[INGEST_TEXT_BYTES_MAX + 100];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	b->n++;
	json_begin_object(b->w);
	json_member_str(b->w, "level", str_of(level));
	json_member_str(b->w, "code", str_of(code));
	json_member_str(b->w, "text", str_of(text));
	json_end_object(b->w);
}

const struct json_value *run_reasons(const struct json_value *document)
{
	static const char *const mode[] = {
		"throughput", "latency", "startup", "prioritization", "prefix-caching",
		"long-document-qa",
	};
	const struct json_value *results = json_get(document, "results");
	const struct json_value *list = json_get(json_get(document, "trust"), "reasons");

	if (!list)
		list = json_get(json_get(document, "profllm"), "reasons");
	for (size_t i = 0; !list && i < sizeof(mode) / sizeof(*mode); i++)
		list = json_get(json_get(json_get(results, mode[i]), "profllm"), "reasons");
	return list && list->kind == JSON_ARRAY ? list : NULL;
}

static void put_reasons(struct json_writer *w, const struct json_value *document)
{
	const struct json_value *list = run_reasons(document);

	json_begin_array(w);
	for (size_t i = 0; list && i < list->count; i++) {
		const struct json_value *one = &list->item[i], *spoils = json_get(one, "spoils");

		json_begin_object(w);
		data_put_key_or_null(w, "level", json_text(json_get(one, "level"), STR("")));
		data_put_key_or_null(w, "code", json_text(json_get(one, "code"), STR("")));
		data_put_key_or_null(w, "text", json_text(json_get(one, "text"), STR("")));
		json_member_array(w, "spoils");
		for (size_t k = 0; spoils && spoils->kind == JSON_ARRAY && k < spoils->count; k++)
			json_put_str(w, json_text(&spoils->item[k], STR("")));
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
}

/* Full reasons are in put_reasons; this shows the codes for which no sentence is stored. */
static void put_verdict(struct badges *b, const struct row *r, const struct json_value *document)
{
	struct value verdict = cell_of(r, "verdict"), why = cell_of(r, "trust.reasons");
	const struct json_value *list = run_reasons(document);
	struct str codes = why.kind == VALUE_TEXT ? why.text : STR("");

	if (list && list->count && json_get(&list->item[0], "text"))
		codes.n = 0;
	if (value_is_text(verdict, "DEGRADED") || value_is_text(verdict, "INVALID"))
		put(b, value_is_text(verdict, "INVALID") ? "bad" : "warn", "verdict",
		    "%.*s%s%.*s.", (int)verdict.text.n, verdict.text.p,
		    codes.n ? ": " : "", (int)(codes.n < 200 ? codes.n : 200), codes.p);
}

static void put_left_out(struct badges *b, const struct row *r)
{
	struct value which = cell_of(r, "left_out");

	if (which.kind == VALUE_TEXT && which.text.n)
		put(b, "bad", "left_out", "Impossible values are not in the columns: %.*s.",
		    (int)which.text.n, which.text.p);
}

static void put_status(struct badges *b, const struct row *r)
{
	struct value status = cell_of(r, "status"), why = cell_of(r, "error_reason");
	struct str reason = why.kind == VALUE_TEXT ? why.text : STR("");

	if (value_is_text(status, "failed"))
		put(b, "bad", "status", "The run failed%s%.*s.", reason.n ? ": " : "",
		    (int)(reason.n < 300 ? reason.n : 300), reason.p);
}

static void put_requests(struct badges *b, const struct row *r)
{
	struct value completed = cell_of(r, "completed"), failed = cell_of(r, "failed");
	struct value prompts = cell_of(r, "benchmark.num_prompts"), mode = cell_of(r, "mode");
	double all;

	if (failed.kind == VALUE_NUMBER && failed.number > 0) {
		all = failed.number + (completed.kind == VALUE_NUMBER ? completed.number : 0);
		put(b, failed.number / all > BADGE_FAILED_BAD ? "bad" : "warn", "failed",
		    "%.0f of %.0f requests failed (%.1f %%).", failed.number, all,
		    100 * failed.number / all);
	} else if (failed.kind == VALUE_ABSENT && completed.kind == VALUE_NUMBER &&
		   prompts.kind == VALUE_NUMBER && completed.number < prompts.number) {
		put(b, "warn", "uncounted", "%.0f requests completed, and num_prompts is %.0f: the others "
		    "failed, or the dataset has fewer. The result does not count failed requests.",
		    completed.number, prompts.number);
	}
	if (completed.kind == VALUE_NUMBER && completed.number > 0 &&
	    completed.number < BADGE_REQUESTS_MIN && !value_is_text(mode, "throughput"))
		put(b, "warn", "few_requests", "Only %.0f request%s completed: tail percentiles depend on "
		    "single requests.", completed.number, completed.number > 1 ? "s" : "");
}

static bool has_group(const struct row *r, const char *prefix)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_starts(r->cell[i].column, str_of(prefix)))
			return true;
	return false;
}

static void put_missing(struct badges *b, const struct row *r, const struct json_value *document)
{
	if (json_get(document, "config") && !json_get(document, "schema_version"))
		put(b, "warn", "no_schema_version",
		    "The document names no schema version.");
	if (!has_group(r, "environment.") && !has_group(r, "hardware."))
		put(b, "warn", "no_environment",
		    "Machine and versions are not recorded.");
	if (cell_of(r, "timestamp").kind == VALUE_NUMBER &&
	    cell_of(r, "timestamp").number > (double)clock_real_ns() / 1e9 + READ_FUTURE_S)
		put(b, "warn", "future", "Its time is in the future, so it counts as the newest run until "
		    "then: the clock of the machine that measured it may be wrong.");
	if (cell_of(r, "server.model").kind == VALUE_ABSENT)
		put(b, "warn", "no_model", "Model not recorded.");
}

static void put_flags(struct badges *b, const struct row *r, unsigned flags)
{
	struct value profiled = cell_of(r, "profiled");

	if (profiled.kind == VALUE_BOOL && profiled.is_true)
		put(b, "warn", "profiled", "A profiler was running: the run is slower than without it.");
	if (flags & INDEX_EXCLUDED)
		put(b, "warn", "excluded", "Excluded from analysis.");
	if (flags & INDEX_SUPERSEDED)
		put(b, "warn", "superseded", "A newer version of this run exists.");
	if (flags & INDEX_ARCHIVED)
		put(b, "warn", "archived", "This run is archived.");
}

void run_put_badges(struct json_writer *w, const struct row *r, unsigned flags,
		    const struct json_value *document)
{
	struct badges b = { .w = w };

	json_begin_array(w);
	put_verdict(&b, r, document);
	put_left_out(&b, r);
	put_status(&b, r);
	put_requests(&b, r);
	put_missing(&b, r, document);
	put_flags(&b, r, flags);
	if (!b.n)
		put(&b, "good", "fine", "Valid: no problems found.");
	json_end_array(w);
}

/* ---- a run's parameters as command lines ---- */

#define OPTION_BYTES_MAX 128
#define EPHEMERAL_PORT_MIN 32768 /* ip_local_port_range of Linux: no server stays there */

/* ---- a shell's words ---- */

static void add_word(struct buf *line, struct str word)
{
	if (line->len)
		buf_add_char(line, ' ');
	words_quote(line, word);
}

static void add_words(struct buf *line, const char *words)
{
	struct str rest = str_of(words);

	while (rest.n)
		add_word(line, str_cut(&rest, ' '));
}

/* ---- options ---- */

/* "tensor_parallel_size" as "--tensor-parallel-size"; after a dot the key is unchanged. */
static void add_option(struct buf *line, const char *dashes, struct str name)
{
	char option[OPTION_BYTES_MAX + 8];
	bool is_key = false;
	size_t n = (size_t)snprintf(option, sizeof(option), "%s", dashes);

	for (size_t i = 0; i < name.n && i < OPTION_BYTES_MAX; i++) {
		is_key |= name.p[i] == '.';
		option[n++] = name.p[i] == '_' && !is_key ? '-' : name.p[i];
	}
	add_word(line, (struct str){ option, n });
}

/* A text as it is, a list as a word for each element, anything else as its JSON. */
static void add_json(struct buf *line, const struct json_value *v)
{
	struct buf word = { 0 };
	struct json_writer w = json_writer(&word);

	if (v->kind == JSON_ARRAY) {
		for (size_t i = 0; i < v->count; i++)
			add_json(line, &v->item[i]);
		return;
	}
	w.is_raw_utf8 = true;
	if (v->kind == JSON_STRING)
		buf_add_str(&word, v->text);
	else
		json_put_value(&w, v);
	add_word(line, buf_str(&word));
	buf_release(&word);
}

/* Appends the words of a list stored as JSON; false: it is not a list. */
static bool add_list(struct buf *line, struct str text, struct arena *a)
{
	struct json_value *v;

	if (!str_starts(text, STR("[")) || json_parse(a, text, &v, NULL) < 0)
		return false;
	add_json(line, v);
	return true;
}

static void add_value(struct buf *line, struct value v, struct arena *a)
{
	struct buf text = { 0 };

	if (v.kind == VALUE_TEXT && add_list(line, v.text, a))
		return;
	data_add_value(&text, v);
	add_word(line, buf_str(&text));
	buf_release(&text);
}

/* ---- an engine's arguments ---- */

static const struct engine_arg *engine_arg_of(struct str name)
{
	char plain[OPTION_BYTES_MAX];
	struct str first = str_cut(&name, '.');

	if (!first.n || first.n >= sizeof(plain))
		return NULL;
	for (size_t i = 0; i < first.n; i++)
		plain[i] = first.p[i] == '_' ? '-' : first.p[i];
	return engine_arg_find((struct str){ plain, first.n });
}

static bool is_initial(const struct engine_arg *arg, struct value v)
{
	struct buf text = { 0 };
	bool is_same;

	data_add_value(&text, v);
	is_same = arg->initial && (str_is(buf_str(&text), arg->initial) ||
				   str_eq_nocase(buf_str(&text), str_of(arg->initial)));
	buf_release(&text);
	return is_same;
}

static void add_engine_args(struct buf *line, const struct row *r, struct arena *a)
{
	struct str prefix = STR("server.");

	for (size_t i = 0; i < r->n; i++) {
		struct str name = r->cell[i].column;
		struct value v = r->cell[i].value;
		const struct engine_arg *arg;

		if (!str_starts(name, prefix))
			continue;
		name = (struct str){ name.p + prefix.n, name.n - prefix.n };
		arg = engine_arg_of(name);
		if (!arg || str_is(name, "model") || v.kind == VALUE_NULL)
			continue;
		if (!memchr(name.p, '.', name.n) && is_initial(arg, v))
			continue;
		if (v.kind != VALUE_BOOL) {
			add_option(line, "--", name);
			add_value(line, v, a);
		} else if (v.is_true || arg->kind == ENGINE_SWITCH) {
			add_option(line, v.is_true ? "--" : "--no-", name);
		}
	}
}

/* ---- a benchmark's options ---- */

/* Options of one dataset, which others leave at their defaults; longer beginnings first. */
static const struct { const char *start, *dataset; } families[] = {
	{ "random_mm_", "random-mm" }, { "random_batch_", "random-rerank" },
	{ "random_", "random" }, { "sonnet_", "sonnet" }, { "spec_bench_", "spec_bench" },
	{ "speed_bench_", "speed_bench" }, { "timed_trace_", "timed_trace" }, { "trace_", "trace" },
	{ "prefix_repetition_", "prefix_repetition" }, { "blazedit_", "hf" }, { "asr_", "hf" },
	{ "hf_", "hf" }, { "custom_", "custom" }, { "sharegpt_", "sharegpt" },
};

static bool is_of_other_dataset(struct str name, struct str dataset)
{
	for (size_t i = 0; dataset.n && i < sizeof(families) / sizeof(*families); i++)
		if (str_starts(name, str_of(families[i].start)))
			return !str_starts(dataset, str_of(families[i].dataset));
	return false;
}

/*
 * Options of `bench` that are on by default: false is --no-NAME. For all others false is the
 * default. tests/cli/api-reproduce.t compares this with --help=json.
 */
static bool has_no_form(struct str name)
{
	return str_is(name, "self_timed");
}

static void add_switch(struct buf *line, struct str name, bool is_on)
{
	if (is_on || has_no_form(name))
		add_option(line, is_on ? "--" : "--no-", name);
}

/*
 * True for where the run's own server listened and its result was written; another run has other
 * places.
 */
static bool is_place(struct str name, double port)
{
	static const char *const output[] = { "output_json", "result_dir", "result_filename" };

	for (size_t i = 0; i < sizeof(output) / sizeof(*output); i++)
		if (str_is(name, output[i]))
			return true;
	return port >= EPHEMERAL_PORT_MIN && (str_is(name, "port") || str_is(name, "host"));
}

/*
 * True if the option differs from the default of `bench serve`. Switches that are on are always
 * worth showing.
 */
static bool is_worth_saying(struct str name, struct value v)
{
	struct buf column = { 0 };
	bool is_default;

	if (v.kind == VALUE_BOOL)
		return true;
	buf_printf(&column, "benchmark.%.*s", (int)name.n, name.p);
	is_default = analyse_is_default(buf_str(&column), v);
	buf_release(&column);
	return !is_default;
}

static struct value scalar_of(const struct json_value *v)
{
	if (v->kind == JSON_STRING)
		return (struct value){ .kind = VALUE_TEXT, .text = v->text };
	return (struct value){ .kind = VALUE_NUMBER, .number = json_real(v, NAN) };
}

/* The options in our own results, without defaults. */
static void add_given_options(struct buf *line, const struct json_value *options)
{
	struct str dataset = json_text(json_get(options, "dataset_name"), STR(""));
	double port = json_real(json_get(options, "port"), 0);

	for (size_t i = 0; i < options->count; i++) {
		const struct json_value *v = &options->item[i];
		struct str name = options->key[i];

		if (v->kind == JSON_NULL || str_is(name, "model") ||
		    is_of_other_dataset(name, dataset) || is_place(name, port))
			continue;
		if (v->kind == JSON_TRUE || v->kind == JSON_FALSE) {
			add_switch(line, name, v->kind == JSON_TRUE);
			continue;
		}
		if (v->kind != JSON_ARRAY && v->kind != JSON_OBJECT &&
		    !is_worth_saying(name, scalar_of(v)))
			continue;
		add_option(line, "--", name);
		add_json(line, v);
	}
}

static void add_load_options(struct buf *line, const struct row *r, struct arena *a)
{
	struct value dataset = cell_of(r, "benchmark.dataset_name");
	struct value port = cell_of(r, "benchmark.port");
	double number = port.kind == VALUE_NUMBER ? port.number : 0;
	bool is_trace = dataset.kind == VALUE_TEXT && str_is(dataset.text, "timed_trace");
	struct str prefix = STR("benchmark.");

	for (size_t i = 0; i < r->n; i++) {
		struct str name = r->cell[i].column;
		struct value v = r->cell[i].value;

		if (!str_starts(name, prefix) || v.kind == VALUE_NULL)
			continue;
		name = (struct str){ name.p + prefix.n, name.n - prefix.n };
		/*
		 * vLLM's records have self_timed for every dataset, but it has a meaning for only
		 * one.
		 */
		if (str_is(name, "model") || (str_is(name, "self_timed") && !is_trace) ||
		    is_place(name, number) || !is_worth_saying(name, v))
			continue;
		if (v.kind == VALUE_BOOL) {
			add_switch(line, name, v.is_true);
			continue;
		}
		add_option(line, "--", name);
		add_value(line, v, a);
	}
}

/* Whether the result describes its server beyond the model. */
static bool is_server_known(const struct row *r)
{
	return cell_of(r, "environment.server.version").kind == VALUE_TEXT ||
	       cell_of(r, "server.version").kind == VALUE_TEXT;
}

static void put_line(struct json_writer *w, struct buf *line)
{
	json_put_str(w, buf_str(line));
	buf_reset(line);
}

static void put_from_cells(struct json_writer *w, const struct row *r,
			   const struct json_value *document, struct arena *a)
{
	const struct json_value *options = json_get(json_get(document, "profllm"), "options");
	struct value model = cell_of(r, "server.model"), mode = cell_of(r, "mode");
	struct value lengths = cell_of(r, "measured_lengths");
	bool is_serve = mode.kind != VALUE_TEXT || str_is(mode.text, "serve"), is_bare;
	struct buf line = { 0 };
	size_t without_args;

	if (is_serve && model.kind == VALUE_TEXT) {
		add_words(&line, "vllm serve");
		add_word(&line, model.text);
		without_args = line.len;
		add_engine_args(&line, r, a);
		if (line.len > without_args || is_server_known(r))
			put_line(w, &line);
		buf_reset(&line);
	}
	add_words(&line, "profllm bench");
	add_word(&line, is_serve ? STR("serve") : mode.text);
	if (model.kind == VALUE_TEXT) {
		add_words(&line, "--model");
		add_word(&line, model.text);
	}
	without_args = line.len;
	if (!is_serve)
		add_engine_args(&line, r, a);
	if (options && options->kind == JSON_OBJECT)
		add_given_options(&line, options);
	else
		add_load_options(&line, r, a);
	is_bare = !is_serve && line.len == without_args;
	put_line(w, &line);
	if (is_bare) {
		buf_printf(&line, "# Add %sthe lengths and the engine's arguments, which the result does not name",
			   model.kind == VALUE_TEXT ? "" : "the model, ");
		put_line(w, &line);
	}
	if (lengths.kind == VALUE_TEXT) {
		buf_printf(&line, "# Add the dataset and its lengths, which the result does not name: %.*s",
			   (int)lengths.text.n, lengths.text.p);
		put_line(w, &line);
	}
	buf_release(&line);
}

/* ---- a configuration ---- */

static void put_given(struct json_writer *w, const struct json_value *given)
{
	struct buf line = { 0 };
	struct json_writer config = json_writer(&line);

	buf_add_text(&line, "profllm run --config - --output results.json <<'EOF'\n");
	config.indent = 2;
	config.is_raw_utf8 = true;
	json_put_value(&config, given);
	buf_add_text(&line, "\nEOF");
	put_line(w, &line);
	buf_release(&line);
}

void run_put_reproduce(struct json_writer *w, const struct row *r,
		       const struct json_value *document, struct arena *a)
{
	const struct json_value *given = json_get(json_get(document, "config"), "given");

	json_begin_array(w);
	if (given && given->kind == JSON_OBJECT && given->count)
		put_given(w, given);
	else
		put_from_cells(w, r, document, a);
	json_end_array(w);
}

/* ---- many ---- */

static int list(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_SORT | ASK_LIMIT | ASK_CURSOR |
		ASK_COLUMNS;
	struct answer answer;
	struct ask ask;

	if (asked_query(r, a, members, &ask, e) < 0)
		return -1;
	if (!ask.query.column)
		filters_main_columns(r->view, r->arena, &ask.query);
	if (index_query(r->view, &ask.query, r->arena, &answer, e) < 0)
		return asked_page_failed(a, r->arena, e);
	data_put_page(&a->json, &ask.query, &answer);
	return 0;
}

static void put_counts(struct json_writer *w, const char *key, const struct facet *f)
{
	struct buf name = { 0 };

	json_member_object(w, key);
	for (size_t i = 0; i < f->n; i++) {
		buf_reset(&name);
		data_add_value(&name, f->value[i].value);
		json_key_str(w, buf_str(&name));
		json_put_int(w, (int64_t)f->value[i].count);
	}
	json_end_object(w);
	buf_release(&name);
}

/* How full the store is. */
static void put_columns(struct json_writer *w, struct store *s)
{
	struct store_columns c;

	store_columns(s, &c);
	json_member_object(w, "columns");
	json_member_int(w, "used", (int64_t)c.used);
	json_member_int(w, "limit", (int64_t)c.max);
	json_end_object(w);
}

static int summary(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_STATISTICS;
	static const struct str counted[] = { { "status", 6 }, { "verdict", 7 } };
	struct answer answer;
	struct ask ask;

	if (asked_query(r, a, members, &ask, e) < 0)
		return -1;
	if (!ask.query.statistic)
		filters_usual_statistics(r->view, r->arena, &ask.query);
	ask.query.limit = 0;
	ask.query.filter = filter_closed(ask.query.filter, r->arena);
	ask.query.facet = counted;
	ask.query.n_facets = 2;
	if (index_query(r->view, &ask.query, r->arena, &answer, e) < 0)
		return -1;
	json_member_int(&a->json, "total", (int64_t)answer.total);
	data_put_statistics(&a->json, &answer);
	put_counts(&a->json, "status", &answer.facet[0]);
	put_counts(&a->json, "verdicts", &answer.facet[1]);
	put_columns(&a->json, r->store);
	return 0;
}

/* ---- one ---- */

static int find(const struct web_request *r, struct web_answer *a, struct run_whole *out,
		struct err *e)
{
	int64_t id;

	if (asked_run(r, a, &id, e) < 0)
		return -1;
	if (store_run(r->store, id, r->arena, out, e) < 0)
		return asked_usage(a, 404, e);
	return 0;
}

static void put_values(struct json_writer *w, const struct row *row)
{
	json_member_object(w, "values");
	for (size_t i = 0; i < row->n; i++) {
		json_key_str(w, row->cell[i].column);
		value_put(w, row->cell[i].value);
	}
	json_end_object(w);
}

static int put_versions(const struct web_request *r, struct json_writer *w,
			const struct run_whole *run, struct err *e)
{
	json_member_array(w, "versions");
	for (size_t i = 0; i < run->n_versions && i < DATA_VERSIONS_MAX; i++) {
		struct run_whole other = *run;

		if (run->version[i] != run->id &&
		    store_run(r->store, run->version[i], r->arena, &other, e) < 0)
			return -1;
		json_begin_object(w);
		json_member_int(w, "id", run->version[i]);
		data_put_key_number(w, "received", other.received_s);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

static int put_people(const struct web_request *r, struct json_writer *w, int64_t id, struct err *e)
{
	struct annotation *said;
	struct exclusion *out;
	size_t n, n_out;

	if (store_annotations(r->store, id, r->arena, &said, &n, e) < 0 ||
	    store_exclusions(r->store, id, r->arena, &out, &n_out, e) < 0 ||
	    tags_put(r, w, id, e) < 0)
		return -1;
	json_member_array(w, "annotations");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		json_member_int(w, "id", said[i].id);
		json_member_str(w, "text", said[i].text);
		json_member_str(w, "who", said[i].who);
		data_put_key_number(w, "at", said[i].at_s);
		json_end_object(w);
	}
	json_end_array(w);
	json_member_array(w, "exclusions");
	for (size_t i = n_out; i > 0 && n_out - i < DATA_EXCLUSIONS_MAX;) { /* newest first */
		i--;
		json_begin_object(w);
		json_member_str(w, "reason", out[i].reason);
		json_member_str(w, "who", out[i].who);
		data_put_key_number(w, "at", out[i].at_s);
		json_member_bool(w, "is_over", out[i].is_over);
		json_end_object(w);
	}
	json_end_array(w);
	return 0;
}

static int put_traces(const struct web_request *r, struct json_writer *w, int64_t id, struct err *e)
{
	struct trace *t;
	size_t n;

	if (store_traces(r->store, id, r->arena, &t, &n, e) < 0)
		return -1;
	json_member_array(w, "traces");
	for (size_t i = 0; i < n; i++)
		trace_put(r, w, &t[i]);
	json_end_array(w);
	return 0;
}

static void put_head(struct json_writer *w, const struct run_whole *run, unsigned flags)
{
	json_member_int(w, "id", run->id);
	json_member_str(w, "run_id", run->run_id);
	json_member_str(w, "kind", run->kind);
	json_member_str(w, "hash", run->hash);
	json_member_str(w, "who", run->who);
	data_put_key_number(w, "received", run->received_s);
	data_put_flags(w, flags);
}

static int one(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct json_writer *w = &a->json;
	struct json_value *document = NULL;
	struct run_whole run;
	struct row row = { 0 };
	unsigned flags;

	if (find(r, a, &run, e) < 0)
		return -1;
	flags = run.flags;
	index_row(r->view, run.id, r->arena, &row, &flags);
	if (json_parse(r->arena, run.document, &document, e) < 0)
		return err_wrap(e, "run %lld", (long long)run.id);
	put_head(w, &run, flags);
	put_values(w, &row);
	json_member_foreign(w, "document", run.document);
	json_member_bool(w, "has_arrays", run.has_arrays);
	if (put_versions(r, w, &run, e) < 0 || put_people(r, w, run.id, e) < 0 ||
	    put_traces(r, w, run.id, e) < 0)
		return -1;
	json_key(w, "reproduce");
	run_put_reproduce(w, &row, document, r->arena);
	json_key(w, "badges");
	run_put_badges(w, &row, flags, document);
	json_key(w, "reasons");
	put_reasons(w, document);
	return 0;
}

static int document_bytes(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct run_whole run;

	if (find(r, a, &run, e) < 0)
		return -1;
	web_bytes(a, "application/json");
	buf_add_str(&a->body, run.document);
	a->file_name = str_of(arena_printf(r->arena, "%.*s.json", (int)run.run_id.n, run.run_id.p));
	return 0;
}

static int arrays(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct json_writer w;
	struct buf text = { 0 };
	struct run_whole run;
	int rc = 0;

	if (find(r, a, &run, e) < 0)
		return -1;
	if (!run.has_arrays)
		return asked_refuse(a, 404, e, "run %lld has no per-request arrays", (long long)run.id);
	rc = store_run_arrays(r->store, run.id, &text, e);
	if (rc == 0) {
		web_bytes(a, "application/json");
		w = json_writer(&a->body);
		json_put_foreign(&w, buf_str(&text));
	}
	buf_release(&text);
	return rc;
}

/* ---- routes for users' notes on runs: remarks, and exclusions with a reason ---- */

#define REMARK_BYTES_MAX 16384
#define REMARKS_MAX 1000 /* of one run */

static int check_room(const struct web_request *r, struct web_answer *a, int64_t run, struct err *e)
{
	struct annotation *said;
	size_t n;

	if (store_annotations(r->store, run, r->arena, &said, &n, e) < 0)
		return -1;
	if (n < REMARKS_MAX)
		return 0;
	return asked_refuse(a, 422, e, "the run has %zu remarks, and at most %d can be kept "
			    "(REMARKS_MAX); delete some of them", n, REMARKS_MAX);
}

static int annotation_add(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str text, who;
	int64_t run, id;

	if (asked_run(r, a, &run, e) < 0 || asked_object(r, a, "text who", e) < 0 ||
	    asked_text(r, a, "text", REMARK_BYTES_MAX, true, &text, e) < 0 ||
	    asked_who(r, a, &who, e) < 0 || check_room(r, a, run, e) < 0 ||
	    store_annotate(r->store, run, text, who, &id, e) < 0)
		return -1;
	a->status = 201;
	json_member_int(&a->json, "id", id);
	return 0;
}

static int annotation_drop(const struct web_request *r, struct web_answer *a, struct err *e)
{
	return asked_drop(r, a, "annotation", store_annotation_drop, e);
}

static int exclude(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct str reason, who;
	int64_t run;

	if (asked_run(r, a, &run, e) < 0 || asked_object(r, a, "reason who", e) < 0 ||
	    asked_text(r, a, "reason", REMARK_BYTES_MAX, true, &reason, e) < 0 ||
	    asked_who(r, a, &who, e) < 0)
		return -1;
	return store_exclude(r->store, run, reason, who, e);
}

static int exclude_no_more(const struct web_request *r, struct web_answer *a, struct err *e)
{
	int64_t run;

	if (asked_run(r, a, &run, e) < 0)
		return -1;
	return store_exclude(r->store, run, STR(""), r->who, e);
}

/* ---- the same change to many runs ---- */

static int bulk_action(const struct web_request *r, struct web_answer *a, enum bulk_action *out,
		       struct err *e)
{
	static const char *const name[] = { "exclude", "include", "delete", "tag", "untag" };
	struct str given = json_text(json_get(r->body, "action"), STR(""));

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (str_is(given, name[i])) {
			*out = (enum bulk_action)i;
			return 0;
		}
	return asked_wrong(a, e, r->arena, "/action", "exclude, include, delete, tag or untag");
}

static int bulk_ids(const struct web_request *r, struct web_answer *a,
		    const struct json_value *list, int64_t **id, size_t *n, struct err *e)
{
	if (list->kind != JSON_ARRAY)
		return asked_wrong(a, e, r->arena, "/ids", "a list of numbers of runs");
	*n = list->count;
	*id = arena_alloc(r->arena, (*n + 1) * sizeof(**id));
	for (size_t i = 0; i < *n; i++) {
		double v = json_real(&list->item[i], NAN);

		if (!(v >= 1) || v > 9007199254740991.0 || trunc(v) != v)
			return asked_wrong(a, e, r->arena,
					   arena_printf(r->arena, "/ids/%zu", i),
					   "the number of a run");
		(*id)[i] = (int64_t)v;
	}
	return 0;
}

/* The runs of a filter, read as in all other questions: an unknown column is refused. */
static int bulk_filter(const struct web_request *r, struct web_answer *a, int64_t **id, size_t *n,
		       struct err *e)
{
	struct str key[2] = { STR("filter"), STR("shown") };
	struct json_value item[2] = { { .kind = JSON_NULL }, { .kind = JSON_NULL } };
	struct json_value body = { .kind = JSON_OBJECT, .key = key, .item = item, .count = 2 };
	struct index_view *v = store_view(r->store);
	struct value *none;
	struct ask ask;
	int rc = -1;

	for (size_t i = 0; i < 2; i++)
		if (json_get(r->body, key[i].p))
			item[i] = *json_get(r->body, key[i].p);
	if (asked_read(&body, ASK_FILTER | ASK_SHOWN, v, r->arena, a, &ask, e) == 0)
		rc = index_select(v, ask.query.filter, ask.query.shown, NULL, 0, r->arena, id, n,
				  &none, e);
	index_view_release(v);
	return rc;
}

static int bulk(const struct web_request *r, struct web_answer *a, struct err *e)
{
	const struct json_value *ids = json_get(r->body, "ids");
	const struct json_value *filter = json_get(r->body, "filter");
	bool has_ids = ids && ids->kind != JSON_NULL;
	bool has_filter = filter && filter->kind != JSON_NULL;
	enum bulk_action what = BULK_EXCLUDE;
	struct str text = STR(""), who;
	static const char *const same[] = {
		[BULK_EXCLUDE] = "were excluded already", [BULK_INCLUDE] = "were included already",
		[BULK_DELETE] = "were deleted already", [BULK_TAG] = "had the tag already",
		[BULK_UNTAG] = "did not have the tag",
	};
	struct bulk_result done;
	int64_t *id;
	size_t n;

	if (asked_object(r, a, "ids filter shown action text who", e) < 0 ||
	    bulk_action(r, a, &what, e) < 0 || asked_who(r, a, &who, e) < 0 ||
	    asked_text(r, a, "text", REMARK_BYTES_MAX, what != BULK_INCLUDE && what != BULK_DELETE,
		       &text, e) < 0)
		return -1;
	if (what == BULK_DELETE && r->role < AUTH_LAUNCH)
		return asked_refuse(a, 403, e, "deleting runs needs a token of role %s; that of %.*s has role "
				    "%s; exclude the runs instead", auth_role_name(AUTH_LAUNCH),
				    (int)r->who.n, r->who.p, auth_role_name(r->role));
	if (has_ids == has_filter)
		return asked_wrong(a, e, r->arena, "/ids", "either ids or a filter, the other one null");
	if ((has_ids ? bulk_ids(r, a, ids, &id, &n, e) : bulk_filter(r, a, &id, &n, e)) < 0)
		return -1;
	if (n > STORE_BULK_MAX)
		return asked_refuse(a, 422, e, "%zu runs are too many to change at once: at most %d "
				    "(STORE_BULK_MAX); narrow the filter", n, STORE_BULK_MAX);
	if (store_bulk(r->store, what, id, n, text, who, &done, e) < 0)
		return -1;
	if (what == BULK_DELETE)
		log_say(r->web, NULL, "notice", arena_printf(r->arena, "%.*s deleted %zu run%s",
			(int)r->who.n, r->who.p, done.n_changed, done.n_changed == 1 ? "" : "s"));
	json_member_int(&a->json, "changed", (int64_t)done.n_changed);
	json_member_int(&a->json, "skipped", (int64_t)(done.n_same + done.n_missing));
	json_member_array(&a->json, "notes");
	if (done.n_same)
		json_put_text(&a->json, arena_printf(r->arena, "%zu %s.", done.n_same, same[what]));
	if (done.n_missing)
		json_put_text(&a->json, arena_printf(r->arena, "%zu %s not exist any more.",
						     done.n_missing, done.n_missing == 1 ? "does" : "do"));
	json_end_array(&a->json);
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/data/experiments", ROUTE_READS, list },
	{ "GET", "/api/data/experiments/{id}", 0, one },
	{ "GET", "/api/data/experiments/{id}/document", 0, document_bytes },
	{ "GET", "/api/data/experiments/{id}/arrays", 0, arrays },
	{ "GET", "/api/data/summary", ROUTE_READS, summary },
	{ "POST", "/api/data/summary", ROUTE_READS, summary },
	{ "GET", "/api/openapi.json", ROUTE_OPEN | ROUTE_QUICK, data_api },
	{ "POST", "/api/data/experiments/{id}/annotations", ROUTE_CHANGES, annotation_add },
	{ "DELETE", "/api/annotations/{id}", ROUTE_CHANGES, annotation_drop },
	{ "POST", "/api/data/bulk", ROUTE_CHANGES | ROUTE_FILTERS, bulk },
	{ "PUT", "/api/data/experiments/{id}/exclusion", ROUTE_CHANGES, exclude },
	{ "DELETE", "/api/data/experiments/{id}/exclusion", ROUTE_CHANGES, exclude_no_more },
};
const struct web_routes data_routes = { routes, sizeof(routes) / sizeof(*routes) };
