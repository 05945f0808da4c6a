/* SPDX-License-Identifier: Apache-2.0 */
/*
 * versions.c - the newest version of the engine against the one before it, for each suite that was
 * measured with both: the answer of compare.c for the two filters, in one line.
 *
 * If no suite has two versions, workloads are compared instead. The newest suites come first.
 * Comparing reads every configured column of both sides, so a suite with more runs than
 * VERSIONS_RUNS_MAX is listed without an answer: the comparison page gives it.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "results/analyse/analyse_internal.h"

#define VERSIONS_SHOWN 3
#define VERSIONS_RUNS_MAX 2000 /* for both versions of a suite */

enum { SUITE, WORKLOAD, VERSION, TIME, COLUMNS };

static const struct str columns[COLUMNS] = {
	[SUITE] = { "suite", 5 }, [WORKLOAD] = { "workload", 8 },
	[VERSION] = { "environment.server.version", 26 }, [TIME] = { "timestamp", 9 },
};
static const char *const primaries[] = {
	"output_throughput", "request_throughput", "median_ttft_ms", "median_e2el_ms", NULL,
};

struct succession {
	struct str name, newer, older; /* empty: none */
	size_t n_newer, n_older;       /* runs */
	double newest_s;
};

static int by_newest(const void *x, const void *y)
{
	const struct succession *a = x, *b = y;
	int order = (b->newest_s > a->newest_s) - (b->newest_s < a->newest_s);

	return order ? order : text_compare(a->name, b->name);
}

static void see(struct succession *s, struct str version, double at_s)
{
	int order = s->newer.n ? versions_order(version, s->newer) : 1;

	if (order > 0) {
		s->older = s->newer;
		s->n_older = s->n_newer;
		s->newer = version;
		s->n_newer = 0;
	} else if (order < 0) {
		order = s->older.n ? versions_order(version, s->older) : 1;
		if (order < 0)
			return;
		s->n_older = order ? 1 : s->n_older + 1;
		s->older = version;
		return;
	}
	s->n_newer++;
	s->newest_s = fmax(s->newest_s, at_s);
}

/* Values of a column that have runs of two versions, those with the newest run first. */
static struct succession *find(struct arena *a, const struct rows *rows, size_t column, size_t *n)
{
	const struct value *by = rows->value + column * rows->n;
	const struct value *version = rows->value + VERSION * rows->n;
	uint32_t n_codes;
	uint32_t *code = setups_codes(a, by, rows->n, &n_codes);
	struct succession *s = arena_alloc(a, ((size_t)n_codes + 1) * sizeof(*s));

	for (size_t i = 0; i < n_codes; i++)
		s[i] = (struct succession){ .newest_s = 0 };
	for (size_t i = 0; i < rows->n; i++) {
		double at_s = parts_number_at(rows, TIME, i);

		if (by[i].kind != VALUE_TEXT || version[i].kind != VALUE_TEXT || !version[i].text.n)
			continue;
		s[code[i]].name = by[i].text;
		see(&s[code[i]], version[i].text, isnan(at_s) ? 0 : at_s);
	}
	*n = 0;
	for (size_t i = 0; i < n_codes; i++)
		if (s[i].older.n)
			s[(*n)++] = s[i];
	if (*n)
		qsort(s, *n, sizeof(*s), by_newest);
	return s;
}

static void put_condition(struct json_writer *w, struct str column, struct str value)
{
	json_begin_object(w);
	json_member_str(w, "column", column);
	json_member_array(w, "in");
	json_put_str(w, value);
	json_end_array(w);
	json_end_object(w);
}

static void put_group(struct json_writer *w, size_t column, struct str name, struct str version)
{
	json_begin_object(w);
	json_member_str(w, "name", version);
	json_member_object(w, "filter");
	json_member_array(w, "and");
	put_condition(w, columns[column], name);
	put_condition(w, columns[VERSION], version);
	json_end_array(w);
	json_end_object(w);
	json_end_object(w);
}

/* The answer of compare.c; NULL: none, for the reason *why. */
static const struct json_value *ask(const struct analyse_request *given, size_t column,
				    const struct succession *s, const char *metric,
				    const char **why)
{
	struct analyse_request r = *given;
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct json_value *body = NULL, *out = NULL;
	struct err e = { 0 };
	int rc;

	json_begin_object(&w);
	json_member_array(&w, "groups");
	put_group(&w, column, s->name, s->older);
	put_group(&w, column, s->name, s->newer);
	json_end_array(&w);
	json_member_array(&w, "metrics");
	json_put_text(&w, metric);
	json_end_array(&w);
	json_member_text(&w, "primary", metric);
	json_end_object(&w);
	rc = json_parse(r.arena, arena_str(r.arena, buf_str(&text)), &body, &e);
	assert(rc == 0);
	r.body = body;
	buf_reset(&text);
	w = json_writer(&text);
	json_begin_object(&w);
	rc = analyse_compare(&r, &w, &e);
	if (rc == 0) {
		json_end_object(&w);
		rc = json_parse(r.arena, arena_str(r.arena, buf_str(&text)), &out, &e);
	}
	buf_release(&text);
	if (rc < 0) {
		struct str said = str_of(e.text);

		str_cut(&said, ' '); /* the pointer */
		*why = arena_text(r.arena, said);
		return NULL;
	}
	return out;
}

/* The one metric of the one comparison of an answer. */
static const struct json_value *metric_of(const struct json_value *answer)
{
	const struct json_value *all = json_get(answer, "comparisons");

	assert(all && all->count == 1);
	all = json_get(&all->item[0], "metrics");
	assert(all && all->count == 1);
	return &all->item[0];
}

/* "96 of 96 faster", "60 of 96 faster, 30 slower". */
static const char *counts_text(struct arena *a, const struct json_value *m, int better)
{
	static const char *const words[2][2] = { { "lower", "higher" }, { "slower", "faster" } };
	long long up = json_int(json_get(m, "higher"), 0), down = json_int(json_get(m, "lower"), 0);
	long long all = json_int(json_get(m, "n_configurations"), 0);
	long long good = better < 0 ? down : up, bad = better < 0 ? up : down;
	const char *const *word = words[better != 0];

	if (!all)
		return "no configuration has a valid result of both";
	if (!good && !bad)
		return arena_printf(a, "equal in %lld of %lld", all, all);
	if (!good || !bad)
		return arena_printf(a, "%lld of %lld %s", good + bad, all, word[good > 0]);
	return arena_printf(a, "%lld of %lld %s, %lld %s", good, all, word[1], bad, word[0]);
}

static void put_answer(const struct analyse_request *r, struct json_writer *w,
		       const struct json_value *answer, struct str metric, const char *why)
{
	const struct json_value *m = answer ? metric_of(answer) : NULL;
	struct buf label = { 0 };

	column_label(metric, &label);
	json_member_str(w, "metric", metric);
	json_member_str(w, "metric_name", buf_str(&label));
	buf_release(&label);
	parts_put_number(w, "effect", json_real(json_get(m, "effect"), NAN));
	json_member_value(w, "interval", json_get(m, "interval"));
	json_member_value(w, "verdict", json_get(m, "verdict"));
	json_member_text(w, "text", m ? counts_text(r->arena, m, column_better(metric)) : why);
	if (answer) {
		json_member_value(w, "notes", json_get(answer, "notes"));
	} else {
		json_member_array(w, "notes");
		json_end_array(w);
	}
}

static void put_succession(const struct analyse_request *r, struct json_writer *w, size_t column,
			   const struct succession *s, struct str metric)
{
	const char *why = arena_printf(r->arena, "%s runs: open the comparison to see the answer",
				       arena_count(r->arena, s->n_older + s->n_newer));
	const struct json_value *answer = NULL;

	if (s->n_older + s->n_newer <= VERSIONS_RUNS_MAX)
		answer = ask(r, column, s, arena_text(r->arena, metric), &why);
	json_begin_object(w);
	json_member_str(w, "by", columns[column]);
	json_member_str(w, "name", s->name);
	json_member_str(w, "older", s->older);
	json_member_str(w, "newer", s->newer);
	put_answer(r, w, answer, metric, why);
	json_end_object(w);
}

int versions_put(const struct analyse_request *r, const struct filter *f, struct json_writer *w,
		 struct err *e)
{
	struct succession *s = NULL;
	struct str *metric;
	struct rows rows;
	size_t n = 0, n_metrics, column = SUITE;

	metric = parts_present(r, primaries, &n_metrics);
	if (n_metrics && index_column(r->view, columns[VERSION])) {
		if (parts_select_by(r, f, columns, COLUMNS, &rows, e) < 0)
			return -1;
		s = find(r->arena, &rows, SUITE, &n);
		if (!n)
			s = find(r->arena, &rows, column = WORKLOAD, &n);
	}
	json_member_array(w, "versions");
	for (size_t i = 0; i < n && i < VERSIONS_SHOWN; i++)
		put_succession(r, w, column, &s[i], metric[0]);
	json_end_array(w);
	return 0;
}
