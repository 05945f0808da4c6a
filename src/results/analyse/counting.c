/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counting.c - which runs count for a metric: not failed ones, nor those in which it is INVALID;
 * and the notes on those that do not; see analyse_internal.h.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/schema/schema.h"
#include "results/analyse/analyse_internal.h"

#define NAMED_MAX 4 /* metrics in a note */

enum { STATUS, COMPLETED, VERDICT, INVALID, DEGRADED };

const struct str counted_columns[COUNTED_COLUMNS] = {
	[STATUS] = { "status", 6 }, [COMPLETED] = { "completed", 9 }, [VERDICT] = { "verdict", 7 },
	[INVALID] = { "trust.invalid", 13 }, [DEGRADED] = { "trust.degraded", 14 },
};

/* ---- which metric a column is of ---- */

/* Whether a list such as "ttft,itl" names the column's metric. */
static bool is_listed(struct value list, struct str column)
{
	struct str rest = list.kind == VALUE_TEXT ? list.text : (struct str){ 0 };

	while (rest.n) {
		struct str metric = str_cut(&rest, ',');

		if (metric.n && schema_is_of(column, metric))
			return true;
	}
	return false;
}

/* ---- one run ---- */

/* Which metric's verdict applies to a quotient of metrics. */
static const struct { struct str quotient, judged; } quotients[] = {
	{ { "tokens_per_s_per_gpu", 20 }, { "output_throughput", 17 } },
	{ { "total_tokens_per_s_per_gpu", 26 }, { "total_token_throughput", 22 } },
	{ { "tokens_per_s_per_user", 21 }, { "median_tpot_ms", 14 } },
	{ { "p99_tokens_per_s_per_user", 25 }, { "p99_tpot_ms", 11 } },
	{ { "request_tokens_per_s", 20 }, { "median_e2el_ms", 14 } },
	{ { "output_tokens_per_s_per_slot", 28 }, { "output_throughput", 17 } },
	{ { "tokens_per_s_per_kw", 19 }, { "output_throughput", 17 } },
	{ { "j_per_output_token", 18 }, { "output_throughput", 17 } },
	{ { "usd_per_m_output", 16 }, { "output_throughput", 17 } },
};

static struct str judged_of(struct str metric)
{
	for (size_t i = 0; i < sizeof(quotients) / sizeof(*quotients); i++)
		if (str_eq(metric, quotients[i].quotient))
			return quotients[i].judged;
	return metric;
}

static bool is_any_measured(struct str formula)
{
	struct formula f;
	bool out = false;

	if (formula_read(formula, &f, NULL) < 0)
		return false;
	for (size_t i = 0; i < f.n_columns; i++)
		out |= column_name(f.column[i]).is_metric;
	return out;
}

/* A formula is listed as soon as one of its columns is. */
static bool is_any_listed(struct value list, struct str formula)
{
	struct formula f;

	if (formula_read(formula, &f, NULL) < 0)
		return false;
	for (size_t i = 0; i < f.n_columns; i++)
		if (is_listed(list, judged_of(f.column[i])))
			return true;
	return false;
}

struct counting counting_of(struct str metric)
{
	struct column_name name = column_name(metric);

	return (struct counting){
		.metric = metric, .judged = judged_of(metric),
		.better = formula_is(metric) ? 0 : name.better,
		.is_measured = formula_is(metric) ? is_any_measured(metric) : name.is_metric,
		.is_of_failures = str_is(metric, "failed") || str_is(metric, "completed") ||
				  str_is(metric, "failed_share") || str_is(name.group, "failures"),
		.best = { NAN, NAN },
	};
}

static bool has_failed(const struct verdicts *j, size_t run)
{
	struct value completed = j->value[COMPLETED][run];

	return value_is_text(j->value[STATUS][run], "failed") ||
	       (completed.kind == VALUE_NUMBER && completed.number <= 0);
}

/* Without a list the verdict applies to every metric. */
static bool is_judged(const struct counting *c, const struct verdicts *j, size_t run, int list,
		      const char *verdict)
{
	if (j->value[list][run].kind == VALUE_TEXT)
		return formula_is(c->metric) ?
		       is_any_listed(j->value[list][run], c->metric) :
		       is_listed(j->value[list][run], c->judged);
	return !c->is_of_failures && value_is_text(j->value[VERDICT][run], verdict);
}

enum counts counts_for(const struct counting *c, const struct verdicts *j, size_t run, double v)
{
	bool is_doubted = c->is_measured && !j->is_everything;

	if (is_doubted && !c->is_of_failures && has_failed(j, run))
		return COUNTS_FAILED;
	if (isnan(v))
		return COUNTS_MISSING;
	return is_doubted && is_judged(c, j, run, INVALID, "INVALID") ? COUNTS_INVALID : COUNTS;
}

/* ---- many runs ---- */

static bool is_better(const struct counting *c, double a, double b)
{
	return c->better && (isnan(b) || (c->better > 0 ? a > b : a < b));
}

bool counting_is_degraded(const struct counting *c, const struct verdicts *j, size_t run)
{
	return c->is_measured && is_judged(c, j, run, DEGRADED, "DEGRADED");
}

enum counts counting_see(struct counting *c, const struct verdicts *j, size_t run, double v)
{
	enum counts counts = counts_for(c, j, run, v);
	bool is_invalid = counts == COUNTS_INVALID;

	assert(c->metric.n > 0);
	c->failed += counts == COUNTS_FAILED;
	c->invalid += is_invalid;
	c->degraded += counts == COUNTS && counting_is_degraded(c, j, run);
	if ((counts == COUNTS || is_invalid) && is_better(c, v, c->best[is_invalid]))
		c->best[is_invalid] = v;
	return counts;
}

void counting_narrow(struct counting *c, const struct verdicts *j, const struct series_list *l)
{
	c->degraded = 0;
	for (size_t i = 0; i < l->shown; i++)
		for (size_t k = 0; k < l->series[i].n; k++)
			c->degraded += counting_is_degraded(c, j, l->series[i].member[k]);
}

/* Whether one of the runs left out as INVALID is better than all that count. */
static bool would_lead(const struct counting *c)
{
	return c->invalid && is_better(c, c->best[1], c->best[0]);
}

/* ---- out ---- */

static const char *runs_text(struct arena *a, size_t n)
{
	return arena_printf(a, "%s run%s", arena_count(a, n), n == 1 ? "" : "s");
}

static size_t spoiled_runs(const struct counting *c, bool is_invalid)
{
	return is_invalid ? c->invalid : c->degraded;
}

/* Whether one sentence says it of both. */
static bool is_alike(const struct counting *a, const struct counting *b, bool is_invalid)
{
	return spoiled_runs(a, is_invalid) == spoiled_runs(b, is_invalid) &&
	       (!is_invalid || would_lead(a) == would_lead(b));
}

/* A note for each number of runs, with all metrics that are INVALID or DEGRADED in so many. */
static void note_spoiled(const struct counting *c, size_t n, bool is_invalid, struct notes *notes)
{
	for (size_t i = 0; i < n; i++) {
		struct buf names = { 0 };
		size_t alike = 0, named = 0, before = 0;

		for (size_t k = 0; k < i; k++)
			before += is_alike(&c[i], &c[k], is_invalid);
		if (!spoiled_runs(&c[i], is_invalid) || before)
			continue;
		for (size_t k = i; k < n; k++)
			alike += is_alike(&c[i], &c[k], is_invalid);
		for (size_t k = i; k < n && named < NAMED_MAX; k++)
			if (is_alike(&c[i], &c[k], is_invalid)) {
				buf_printf(&names, "%s%.*s", !named ? "" : named + 1 == alike ? " and " :
					   ", ", (int)c[k].metric.n, c[k].metric.p);
				named++;
			}
		if (alike > named)
			buf_printf(&names, " and %zu more", alike - named);
		if (is_invalid)
			parts_note(notes, "%s %s INVALID in %s, left out here%s", names.data,
				   alike == 1 ? "is" : "are", runs_text(notes->arena, c[i].invalid),
				   !would_lead(&c[i]) ? "" :
				   c[i].invalid == 1 ? "; that run would have led" :
						       "; one of them would have led");
		else
			parts_note(notes, "%s %s DEGRADED in %s of the runs shown", names.data,
				   alike == 1 ? "is" : "are", arena_count(notes->arena, c[i].degraded));
		buf_release(&names);
	}
}

void counting_note_failed(const struct verdicts *j, size_t n, const char *name, struct notes *notes)
{
	size_t failed = 0;

	for (size_t i = 0; i < n; i++)
		failed += has_failed(j, i);
	if (!n || failed < n)
		return;
	if (n > 1)
		parts_note(notes, "all %zu runs of %s failed and have no results", n, name);
	else
		parts_note(notes, "%s failed and has no results", name);
}

void counting_notes(const struct counting *c, size_t n, struct notes *notes)
{
	size_t failed = 0;

	for (size_t i = 0; i < n; i++)
		failed = c[i].failed > failed ? c[i].failed : failed;
	if (failed)
		parts_note(notes, "%s failed and %s left out", runs_text(notes->arena, failed),
			   failed == 1 ? "is" : "are");
	note_spoiled(c, n, true, notes);
	note_spoiled(c, n, false, notes);
}

void counting_put(struct json_writer *w, const struct counting *c, size_t n)
{
	json_member_array(w, "trust");
	for (size_t i = 0; i < n; i++) {
		if (!c[i].failed && !c[i].invalid && !c[i].degraded)
			continue;
		json_begin_object(w);
		json_member_str(w, "column", c[i].metric);
		parts_put_count(w, "failed", c[i].failed);
		parts_put_count(w, "invalid", c[i].invalid);
		json_member_bool(w, "would_lead", would_lead(&c[i]));
		parts_put_count(w, "degraded", c[i].degraded);
		json_end_object(w);
	}
	json_end_array(w);
}
