/* SPDX-License-Identifier: Apache-2.0 */
/* data_badges.c - see data_run.h: what is doubtful about a run. */
#include "web/data_put.h"
#include "web/data_run.h"

struct value run_cell(const struct row *r, const char *column)
{
	for (size_t i = 0; i < r->n; i++)
		if (str_is(r->cell[i].column, column))
			return r->cell[i].value;
	return (struct value){ .kind = VALUE_ABSENT };
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
	data_put_key_str(b->w, "level", str_of(level));
	data_put_key_str(b->w, "code", str_of(code));
	data_put_key_str(b->w, "text", str_of(text));
	json_end_object(b->w);
}

static bool is_text(struct value v, const char *text)
{
	return v.kind == VALUE_TEXT && str_is(v.text, text);
}

/* Where a document, or a result by itself, keeps the reasons of its verdict; NULL: nowhere. */
static const struct json_value *reasons_of(const struct json_value *document)
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

void run_put_reasons(struct json_writer *w, const struct json_value *document)
{
	const struct json_value *list = reasons_of(document);

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

/* Its reasons stand beside it (run_put_reasons); here only codes of which no sentence is kept. */
static void put_verdict(struct badges *b, const struct row *r, const struct json_value *document)
{
	struct value verdict = run_cell(r, "verdict"), why = run_cell(r, "trust.reasons");
	const struct json_value *list = reasons_of(document);
	struct str codes = why.kind == VALUE_TEXT ? why.text : STR("");

	if (list && list->count && json_get(&list->item[0], "text"))
		codes.n = 0;
	if (is_text(verdict, "DEGRADED") || is_text(verdict, "INVALID"))
		put(b, is_text(verdict, "INVALID") ? "bad" : "warn", "verdict",
		    "The run judged itself %.*s%s%.*s.", (int)verdict.text.n, verdict.text.p,
		    codes.n ? ": " : "", (int)(codes.n < 200 ? codes.n : 200), codes.p);
}

static void put_left_out(struct badges *b, const struct row *r)
{
	struct value which = run_cell(r, "left_out");

	if (which.kind == VALUE_TEXT && which.text.n)
		put(b, "bad", "left_out", "Values that cannot be are left out of the columns: %.*s.",
		    (int)which.text.n, which.text.p);
}

static void put_status(struct badges *b, const struct row *r)
{
	struct value status = run_cell(r, "status"), why = run_cell(r, "error_reason");
	struct str reason = why.kind == VALUE_TEXT ? why.text : STR("");

	if (is_text(status, "failed"))
		put(b, "bad", "status", "The run failed%s%.*s.", reason.n ? ": " : "",
		    (int)(reason.n < 300 ? reason.n : 300), reason.p);
}

static void put_requests(struct badges *b, const struct row *r)
{
	struct value completed = run_cell(r, "completed"), failed = run_cell(r, "failed");
	double all;

	if (failed.kind == VALUE_NUMBER && failed.number > 0) {
		all = failed.number + (completed.kind == VALUE_NUMBER ? completed.number : 0);
		put(b, failed.number / all > BADGE_FAILED_BAD ? "bad" : "warn", "failed",
		    "%.0f of %.0f requests failed (%.1f %%).", failed.number, all,
		    100 * failed.number / all);
	}
	if (completed.kind == VALUE_NUMBER && completed.number < BADGE_REQUESTS_MIN)
		put(b, "warn", "few_requests", "Only %.0f requests were completed: tail percentiles "
		    "rest on single ones.", completed.number);
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
		    "The document does not say which version of the schema it follows.");
	if (!has_group(r, "environment.") && !has_group(r, "hardware."))
		put(b, "warn", "no_environment",
		    "Nothing says on which machine and with which versions it ran.");
	if (run_cell(r, "server.model").kind == VALUE_ABSENT)
		put(b, "warn", "no_model", "Nothing says which model was served.");
}

static void put_flags(struct badges *b, const struct row *r, unsigned flags)
{
	struct value profiled = run_cell(r, "profiled");

	if (profiled.kind == VALUE_BOOL && profiled.is_true)
		put(b, "warn", "profiled", "A profiler was running, which costs speed.");
	if (flags & INDEX_EXCLUDED)
		put(b, "warn", "excluded", "Somebody has excluded this run.");
	if (flags & INDEX_SUPERSEDED)
		put(b, "warn", "superseded", "There is a newer version of this run.");
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
		put(&b, "good", "fine", "Nothing speaks against these numbers.");
	json_end_array(w);
}
