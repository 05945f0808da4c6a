/* SPDX-License-Identifier: Apache-2.0 */
/* compare_say.c - a comparison in words and as JSON; see compare.h. */
#include <math.h>
#include <string.h>

#include "core/base/str.h"
#include "results/decide/compare.h"

#define NAMED_MAX 5          /* configurations named in a note */
#define DIGITS_MAX 10        /* above ten times as much, a change has no decimals */

static const struct { const char *key, *words; } verdicts[] = {
	[MATCHED_BETTER] = { "better", "better" },
	[MATCHED_WORSE] = { "worse", "worse" },
	[MATCHED_BETTER_SMALL] = { "better_small", "better, but by less than" },
	[MATCHED_WORSE_SMALL] = { "worse_small", "worse, but by less than" },
	[MATCHED_CHANGED] = { "changed", "changed" },
	[MATCHED_CHANGED_SMALL] = { "changed_small", "changed, but by less than" },
	[MATCHED_NO_CHANGE] = { "no_change", "no change above" },
	[MATCHED_MIXED] = { "mixed", "better for some configurations, worse for others" },
	[MATCHED_NOT_ENOUGH] = { "not_enough_data", "not enough data" },
	[MATCHED_NOT_COMPARABLE] = { "not_comparable", "not comparable" },
};

const char *matched_verdict_key(enum matched_verdict v)
{
	return verdicts[v].key;
}

const char *matched_verdict_words(const struct matched_row *row, struct arena *a)
{
	double d = row->metric->effect_min * 100;

	switch (row->verdict) {
	case MATCHED_BETTER:
	case MATCHED_WORSE:
	case MATCHED_CHANGED:
		return row->is_beyond_d ?
			arena_printf(a, "%s by at least %.3g %%", verdicts[row->verdict].words, d) :
			verdicts[row->verdict].words;
	case MATCHED_BETTER_SMALL:
	case MATCHED_WORSE_SMALL:
	case MATCHED_CHANGED_SMALL:
	case MATCHED_NO_CHANGE:
		return arena_printf(a, "%s %.3g %%", verdicts[row->verdict].words, d);
	case MATCHED_MIXED:
		return row->metric->better ? verdicts[MATCHED_MIXED].words :
			"larger for some configurations, smaller for others";
	default:
		return verdicts[row->verdict].words;
	}
}

/* ---- sentences ---- */

static void add_change(struct buf *out, double ratio)
{
	double change = (ratio - 1) * 100;

	buf_printf(out, fabs(change) < 100 * DIGITS_MAX ? "%+.1f %%" : "%+.4g %%", change);
}

static void add_interval(struct buf *out, const struct matched *m, const struct matched_row *row)
{
	if (!isfinite(row->is.interval.low) || !isfinite(row->is.interval.high))
		return;
	buf_printf(out, "%.3g %% interval ", (1 - m->spec->alpha) * 100);
	add_change(out, row->is.interval.low);
	buf_add_text(out, " to ");
	add_change(out, row->is.interval.high);
	buf_add_text(out, "; ");
}

static void add_counts(struct buf *out, const struct matched_row *row)
{
	size_t most = row->up >= row->down ? row->up : row->down;

	if (row->equal == row->is.configs)
		buf_printf(out, "equal in all of %zu configuration%s", row->is.configs,
			   row->is.configs == 1 ? "" : "s");
	else
		buf_printf(out, "%s in %zu of %zu configuration%s",
			   row->up >= row->down ? "higher" : "lower", most, row->is.configs,
			   row->is.configs == 1 ? "" : "s");
}

static void add_need(struct buf *out, const struct matched_row *row)
{
	const struct matched_need *n = &row->need;

	if (row->why != MATCHED_WHY_DESIGN && row->why != MATCHED_WHY_WIDE)
		return;
	if (!n->sessions && !n->clusters) {
		buf_add_text(out, "; no number of repeats up to 1,000 would do at this scatter");
		return;
	}
	buf_add_text(out, n->from == MATCHED_FROM_RUNS ? "; at least " : "; about ");
	if (n->clusters)
		buf_printf(out, "%zu configurations with servers of their own%s", n->clusters,
			   n->sessions ? ", or " : "");
	if (n->sessions)
		buf_printf(out, "%zu server sessions a side%s", n->sessions,
			   n->clusters ? " of each of these," : "");
	buf_add_text(out, " would do");
	if (n->from == MATCHED_SUPPOSED)
		buf_printf(out, " if sessions scatter by %.3g %%", MATCHED_SCATTER_USUAL * 100);
}

static void add_cautions(struct buf *out, const struct matched_row *row)
{
	double low = INFINITY, high = 0;

	if (row->do_ranks_disagree)
		buf_printf(out, "; the rank test does not agree (p = %.2g): look for outliers",
			   row->p_ranks);
	if (!row->do_effects_differ)
		return;
	for (size_t i = 0; i < row->n_configs; i++)
		if (!row->config[i].apart) {
			low = fmin(low, row->config[i].is.ratio);
			high = fmax(high, row->config[i].is.ratio);
		}
	buf_add_text(out, "; effects differ between configurations, from ");
	add_change(out, low);
	buf_add_text(out, " to ");
	add_change(out, high);
}

const char *matched_sentence(const struct matched *m, const struct matched_pair *pair,
			     const struct matched_row *row, struct arena *a)
{
	struct buf out = { 0 };
	const char *text;

	if (pair->refusal)
		return pair->reason;
	buf_printf(&out, "%s: %s", row->metric->name, matched_verdict_words(row, a));
	if (row->verdict != MATCHED_NOT_COMPARABLE && isfinite(row->is.ratio)) {
		buf_add_text(&out, ", ");
		add_change(&out, row->is.ratio);
		buf_add_text(&out, " (");
		add_interval(&out, m, row);
		add_counts(&out, row);
		buf_add_char(&out, ')');
	}
	if (row->reason)
		buf_printf(&out, ": %s", row->reason);
	add_need(&out, row);
	add_cautions(&out, row);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

/* ---- notes ---- */

static void note_alone(struct buf *out, const struct matched_pair *pair, unsigned k,
		       const char *const name[2])
{
	size_t n = pair->n_alone[k];

	if (!n)
		return;
	buf_printf(out, "%zu configuration%s of %s without a counterpart in %s: ", n,
		   n == 1 ? "" : "s", name[k], name[!k]);
	for (size_t i = 0; i < n && i < NAMED_MAX; i++)
		buf_printf(out, "%s%s", i ? "; " : "", pair->alone[k][i].config);
	buf_add_text(out, n > NAMED_MAX ? "; ...\n" : "\n");
}

static void note_apart(struct buf *out, const struct matched_pair *pair)
{
	size_t n = 0;

	for (size_t i = 0; i < pair->n_configs; i++)
		n += pair->guard[i] != NULL;
	if (!n)
		return;
	buf_printf(out, "%zu of %zu configurations not comparable: ", n, pair->n_configs);
	for (size_t i = 0, named = 0; i < pair->n_configs && named < NAMED_MAX; i++)
		if (pair->guard[i])
			buf_printf(out, "%s%s (%s)", named++ ? "; " : "", pair->config[i],
				   pair->guard[i]);
	buf_add_text(out, n > NAMED_MAX ? "; ...\n" : "\n");
}

/* One line for all metrics: "what: output_throughput 3 + 1, p99_ttft_ms 2 + 0". */
static void note_counts(struct buf *out, const struct matched *m, const struct matched_pair *pair,
			bool is_invalid)
{
	bool is_any = false;

	for (size_t i = 0; i < m->spec->n_metrics; i++) {
		const struct matched_row *row = &pair->row[i];
		const size_t *n = is_invalid ? row->invalid : row->degraded;

		if (!n[0] && !n[1])
			continue;
		if (!is_any)
			buf_printf(out, "runs %s (%s + %s): ", is_invalid ? "left out as INVALID" :
				   "that count although DEGRADED", m->spec->side[0],
				   m->spec->side[pair->side]);
		buf_printf(out, "%s%s %zu + %zu", is_any ? ", " : "", row->metric->name, n[0], n[1]);
		is_any = true;
	}
	if (is_any)
		buf_add_char(out, '\n');
}

/* Runs that share a session: the most repeats of any metric. */
static void note_sessions(struct buf *out, const struct matched *m,
			  const struct matched_pair *pair, unsigned k, const char *name)
{
	size_t runs = 0, sessions = 0;

	for (size_t i = 0; i < m->spec->n_metrics; i++)
		if (pair->row[i].runs[k] > runs) {
			runs = pair->row[i].runs[k];
			sessions = pair->row[i].sessions[k];
		}
	if (sessions && runs > sessions)
		buf_printf(out, "%s: repeats of a configuration within one server session count once "
			   "(%zu runs, %zu session%s)\n", name, runs, sessions, sessions == 1 ? "" : "s");
	if (pair->sessions_unknown[k])
		buf_printf(out, "%s: nothing tells which of %zu runs shared a server, so each "
			   "configuration counts as one session of its own; where several loads shared "
			   "one, the intervals are too narrow\n", name, pair->sessions_unknown[k]);
}

const char *matched_notes(const struct matched *m, const struct matched_pair *pair,
			  struct arena *a)
{
	const char *const name[2] = { m->spec->side[0], m->spec->side[pair->side] };
	struct buf out = { 0 };
	const char *text;

	if (pair->refusal)
		buf_printf(&out, "not compared: %s\n", pair->reason);
	if (pair->shared)
		buf_printf(&out, "%zu run%s on both sides left out\n", pair->shared,
			   pair->shared == 1 ? "" : "s");
	for (unsigned k = 0; k < 2; k++)
		note_alone(&out, pair, k, name);
	if (pair->guard)
		note_apart(&out, pair);
	for (unsigned k = 0; !pair->refusal && k < 2; k++)
		note_sessions(&out, m, pair, k, name[k]);
	if (pair->n_configs) {
		note_counts(&out, m, pair, true);
		note_counts(&out, m, pair, false);
	}
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

/* ---- JSON ---- */

static void put_count(struct json_writer *w, const char *key, size_t n)
{
	json_member_int(w, key, (int64_t)n);
}

/* null where there is none, or too few to count. */
static void put_need(struct json_writer *w, const char *key, size_t n)
{
	json_key(w, key);
	if (n)
		json_put_int(w, (int64_t)n);
	else
		json_put_null(w);
}

static void put_two(struct json_writer *w, const char *key, const size_t n[2])
{
	json_member_array(w, key);
	for (unsigned k = 0; k < 2; k++)
		json_put_int(w, (int64_t)n[k]);
	json_end_array(w);
}

/* As changes, [low, high]; null where there is none. */
static void put_interval(struct json_writer *w, const char *key, struct interval i)
{
	json_key(w, key);
	if (!isfinite(i.low) || !isfinite(i.high)) {
		json_put_null(w);
		return;
	}
	json_begin_array(w);
	json_put_f64(w, i.low - 1);
	json_put_f64(w, i.high - 1);
	json_end_array(w);
}

static void put_estimate(struct json_writer *w, const struct matched_estimate *is)
{
	static const char *const rule[] = { [MATCHED_BY_SESSIONS] = "sessions",
					    [MATCHED_BY_CLUSTERS] = "configurations",
					    [MATCHED_BY_NOTHING] = NULL };

	json_member_f64(w, "baseline", is->value[0]);
	json_member_f64(w, "value", is->value[1]);
	json_member_f64(w, "effect", is->ratio - 1);
	put_interval(w, "interval", is->interval);
	put_interval(w, "interval_narrow", is->narrow);
	json_member_f64(w, "p", is->p);
	json_member_f64(w, "df", is->df);
	json_member_text(w, "rule", rule[is->rule]);
	put_count(w, "n_configurations", is->configs);
	put_count(w, "n_clusters", is->clusters);
	json_member_f64(w, "scatter", is->scatter);
}

static void put_config(struct json_writer *w, const struct matched_config *c)
{
	json_begin_object(w);
	json_member_text(w, "configuration", c->name);
	put_estimate(w, &c->is);
	json_member_int(w, "evident", c->evident);
	json_member_text(w, "not_comparable", c->apart);
	put_two(w, "runs", c->runs);
	json_member_array(w, "sessions");
	for (unsigned k = 0; k < 2; k++) {
		json_begin_array(w);
		for (size_t i = 0; i < c->sessions[k]; i++)
			json_put_f64(w, c->session[k][i]);
		json_end_array(w);
	}
	json_end_array(w);
	json_end_object(w);
}

/* Of too many only the first and the last are listed: those that changed most. */
static bool is_listed(const struct matched *m, size_t i, size_t n)
{
	size_t most = m->spec->listed_max;

	return most < 2 || n <= most || i < most / 2 || i >= n - (most - most / 2);
}

static void put_lists(struct json_writer *w, const struct matched *m, const struct matched_row *row)
{
	json_member_array(w, "loads");
	for (size_t i = 0; i < row->n_loads; i++) {
		json_begin_object(w);
		json_member_text(w, "load", row->load[i].name);
		put_estimate(w, &row->load[i].is);
		json_member_int(w, "evident", row->load[i].evident);
		json_end_object(w);
	}
	json_end_array(w);
	json_member_array(w, "configurations");
	for (size_t i = 0; i < row->n_configs; i++)
		if (is_listed(m, i, row->n_configs))
			put_config(w, &row->config[i]);
	json_end_array(w);
}

static void put_row(struct json_writer *w, const struct matched *m,
		    const struct matched_pair *pair, const struct matched_row *row, struct arena *a)
{
	json_begin_object(w);
	json_member_text(w, "metric", row->metric->name);
	json_member_text(w, "unit", row->metric->unit);
	json_member_int(w, "better", row->metric->better);
	json_member_f64(w, "effect_min", row->metric->effect_min);
	json_member_bool(w, "is_primary", row->is_primary);
	json_member_text(w, "verdict", matched_verdict_key(row->verdict));
	json_member_text(w, "words", matched_verdict_words(row, a));
	json_member_text(w, "reason", row->reason);
	json_member_text(w, "sentence", matched_sentence(m, pair, row, a));
	put_estimate(w, &row->is);
	json_member_f64(w, "q", row->q);
	json_member_bool(w, "is_beyond_effect_min", row->is_beyond_d);
	put_count(w, "higher", row->up);
	put_count(w, "lower", row->down);
	put_count(w, "equal", row->equal);
	json_member_f64(w, "p_sign", row->p_sign);
	json_member_f64(w, "p_ranks", row->p_ranks);
	json_member_bool(w, "do_ranks_disagree", row->do_ranks_disagree);
	json_member_f64(w, "spread", row->spread);
	json_member_f64(w, "p_differ", row->p_differ);
	json_member_bool(w, "do_effects_differ", row->do_effects_differ);
	put_need(w, "sessions_needed", row->need.sessions);
	put_need(w, "configurations_needed", row->need.clusters);
	put_two(w, "runs", row->runs);
	put_two(w, "sessions", row->sessions);
	put_two(w, "invalid", row->invalid);
	put_two(w, "degraded", row->degraded);
	put_two(w, "missing", row->missing);
	put_count(w, "not_comparable", row->apart);
	put_count(w, "unpaired", row->unpaired);
	put_lists(w, m, row);
	json_end_object(w);
}

static void put_alone(struct json_writer *w, const struct matched *m, const char *key,
		      const struct matched_alone *alone, size_t n)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++) {
		if (!is_listed(m, i, n))
			continue;
		json_begin_object(w);
		json_member_text(w, "configuration", alone[i].config);
		put_count(w, "runs", alone[i].runs);
		json_end_object(w);
	}
	json_end_array(w);
}

void matched_put(struct json_writer *w, const struct matched *m, const struct matched_pair *pair,
		 struct arena *a)
{
	static const char *const refusal[] = {
		[MATCHED_ACCEPTED] = NULL, [MATCHED_REFUSED_EMPTY] = "empty",
		[MATCHED_REFUSED_SAME] = "same_runs", [MATCHED_REFUSED_UNMATCHED] = "unmatched",
		[MATCHED_REFUSED_INVALID] = "invalid",
	};
	struct str rest = str_of(matched_notes(m, pair, a));

	json_member_text(w, "baseline", m->spec->side[0]);
	json_member_text(w, "side", m->spec->side[pair->side]);
	json_member_f64(w, "level", 1 - m->spec->alpha);
	json_member_text(w, "refused", refusal[pair->refusal]);
	json_member_text(w, "reason", pair->reason);
	put_two(w, "runs", pair->runs);
	put_count(w, "runs_on_both_sides", pair->shared);
	put_two(w, "sessions_unknown", pair->sessions_unknown);
	put_count(w, "matched", pair->n_configs);
	put_two(w, "alone", pair->n_alone);
	put_alone(w, m, "only_baseline", pair->alone[0], pair->n_alone[0]);
	put_alone(w, m, "only_side", pair->alone[1], pair->n_alone[1]);
	json_member_array(w, "metrics");
	for (size_t i = 0; !pair->refusal && i < m->spec->n_metrics; i++)
		put_row(w, m, pair, &pair->row[i], a);
	json_end_array(w);
	json_member_array(w, "notes");
	while (rest.n)
		json_put_str(w, str_cut(&rest, '\n'));
	json_end_array(w);
}
