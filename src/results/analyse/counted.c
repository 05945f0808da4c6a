/* SPDX-License-Identifier: Apache-2.0 */
/* counted.c - see counted.h. */
#include "results/analyse/counted.h"

#include <math.h>

#include "core/schema/schema.h"
#include "results/analyse/parts.h"

#define NAMED_MAX 4 /* metrics that get a note each */

enum { STATUS, COMPLETED, VERDICT, INVALID, DEGRADED };

const struct str counted_columns[COUNTED_COLUMNS] = {
	[STATUS] = { "status", 6 }, [COMPLETED] = { "completed", 9 }, [VERDICT] = { "verdict", 7 },
	[INVALID] = { "trust.invalid", 13 }, [DEGRADED] = { "trust.degraded", 14 },
};

int verdicts_read(const struct json_value *body, bool *is_everything, struct err *e)
{
	const struct json_value *v = json_get(body, "include_invalid");

	*is_everything = json_bool(v, false);
	if (!v || v->kind == JSON_NULL || v->kind == JSON_TRUE || v->kind == JSON_FALSE)
		return 0;
	return err_set(e, ERR_USAGE, "/include_invalid: expected true or false");
}

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

struct counting counting_of(struct str metric)
{
	struct column_name name = column_name(metric);

	return (struct counting){
		.metric = metric, .better = name.better, .is_measured = name.is_metric,
		.is_of_failures = str_is(metric, "failed") || str_is(metric, "completed") ||
				  str_is(metric, "failed_share") || str_is(name.group, "failures"),
		.best = { NAN, NAN },
	};
}

static bool is_text(struct value v, const char *text)
{
	return v.kind == VALUE_TEXT && str_is(v.text, text);
}

static bool has_failed(const struct verdicts *j, size_t run)
{
	struct value completed = j->value[COMPLETED][run];

	return is_text(j->value[STATUS][run], "failed") ||
	       (completed.kind == VALUE_NUMBER && completed.number <= 0);
}

/* Without a list, what the verdict says holds for every metric. */
static bool is_judged(const struct counting *c, const struct verdicts *j, size_t run, int list,
		      const char *verdict)
{
	if (j->value[list][run].kind == VALUE_TEXT)
		return is_listed(j->value[list][run], c->metric);
	return is_text(j->value[VERDICT][run], verdict);
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

	c->failed += counts == COUNTS_FAILED;
	c->invalid += is_invalid;
	c->degraded += counts == COUNTS && counting_is_degraded(c, j, run);
	if ((counts == COUNTS || is_invalid) && is_better(c, v, c->best[is_invalid]))
		c->best[is_invalid] = v;
	return counts;
}

/* Whether one of the runs left out as INVALID has a better value than all that count. */
static bool would_lead(const struct counting *c)
{
	return c->invalid && is_better(c, c->best[1], c->best[0]);
}

/* ---- out ---- */

static const char *runs_text(struct arena *a, size_t n)
{
	return arena_printf(a, "%zu run%s", n, n == 1 ? "" : "s");
}

static void note_invalid(const struct counting *c, struct notes *notes)
{
	parts_note(notes, "%.*s is INVALID in %s and left out there%s", (int)c->metric.n,
		   c->metric.p, runs_text(notes->arena, c->invalid), !would_lead(c) ? "" :
		   c->invalid == 1 ? "; that run would have led" : "; one of them would have led");
}

static void note_degraded(const struct counting *c, struct notes *notes)
{
	parts_note(notes, "%.*s is DEGRADED in %s of those shown", (int)c->metric.n, c->metric.p,
		   runs_text(notes->arena, c->degraded));
}

void counting_notes(const struct counting *c, size_t n, struct notes *notes)
{
	size_t failed = 0, invalid = 0, degraded = 0;

	for (size_t i = 0; i < n; i++)
		failed = c[i].failed > failed ? c[i].failed : failed;
	if (failed)
		parts_note(notes, "%s failed and %s left out", runs_text(notes->arena, failed),
			   failed == 1 ? "is" : "are");
	for (size_t i = 0; i < n; i++)
		if (c[i].invalid && invalid++ < NAMED_MAX)
			note_invalid(&c[i], notes);
	for (size_t i = 0; i < n; i++)
		if (c[i].degraded && degraded++ < NAMED_MAX)
			note_degraded(&c[i], notes);
	if (invalid > NAMED_MAX || degraded > NAMED_MAX)
		parts_note(notes, "%zu metrics are INVALID and %zu DEGRADED in some of the runs",
			   invalid, degraded);
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
