/* SPDX-License-Identifier: Apache-2.0 */
/* compare_gate.c - conditions that end a CI job: '--fail-if p99_ttft_ms>+5%'. */
#include <math.h>
#include <string.h>

#include "report/compare.h"
#include "stats/compare.h"
#include "stats/judge.h"

int compare_gate_parse(struct compare_gate *g, const char *text, struct arena *a, struct err *e)
{
	size_t key_n = strcspn(text, "<>"), op_n;
	struct str key = str_trim((struct str){ text, key_n }), limit;
	bool is_above = text[key_n] == '>', has_equal;

	if (!text[key_n] || !key.n)
		return err_set(e, ERR_USAGE, "--fail-if: '%s' is not a metric, one of > < >= <= and a "
			       "number, such as 'p99_ttft_ms>+5%%'", text);
	has_equal = text[key_n + 1] == '=';
	op_n = has_equal ? 2 : 1;
	limit = str_trim(str_of(text + key_n + op_n));
	*g = (struct compare_gate){ .text = text, .key = arena_text(a, key) };
	g->op = is_above ? (has_equal ? GATE_AT_LEAST : GATE_ABOVE)
			 : (has_equal ? GATE_AT_MOST : GATE_BELOW);
	g->is_relative = limit.n && limit.p[limit.n - 1] == '%';
	limit.n -= g->is_relative;
	if (!str_to_f64(str_trim(limit), &g->limit) || !isfinite(g->limit))
		return err_set(e, ERR_USAGE, "--fail-if: '%s' ends with no number (5, +5%%)", text);
	if (g->is_relative)
		g->limit /= 100;
	return 0;
}

static bool is_beyond(const struct compare_gate *g, double v)
{
	switch (g->op) {
	case GATE_ABOVE:
		return v > g->limit;
	case GATE_BELOW:
		return v < g->limit;
	case GATE_AT_LEAST:
		return v >= g->limit;
	default:
		return v <= g->limit;
	}
}

static void say(const struct comparison *c, const struct compare_gate *g, size_t side,
		const char *config, const char *what, struct buf *out)
{
	buf_printf(out, "--fail-if '%s' %s: %s%s%s\n", g->text, what, c->side[side].name,
		   config ? " at " : "", config ? config : "");
}

static enum compare_gate_outcome worse(enum compare_gate_outcome x, enum compare_gate_outcome y)
{
	return x == GATE_HOLDS || y == GATE_HOLDS_NOT ? x : y;
}

/* ---- a change ---- */

static const char *change_text(const struct matched_estimate *is, struct arena *a)
{
	return arena_printf(a, "holds (%+.1f%%: %.6g, then %.6g)", (is->ratio - 1) * 100, is->value[0],
			    is->value[1]);
}

/* Why a change cannot be judged; NULL: it can. */
static const char *unjudged(const struct matched_pair *pair, const struct matched_row *row,
			    bool is_any)
{
	if (pair->refusal)
		return pair->reason;
	switch (row->why) {
	case MATCHED_WHY_NONE:
	case MATCHED_WHY_WIDE:
	case MATCHED_WHY_CHANCE:
		return NULL;
	case MATCHED_WHY_DESIGN:
		return is_any ? NULL : row->reason;
	default:
		return row->reason;
	}
}

/* Configurations that have evidence of their own. Whether it holds in one. */
static bool holds_somewhere(const struct comparison *c, const struct compare_gate *g,
			    const struct matched_pair *pair, const struct matched_row *row,
			    bool is_any, struct buf *out, struct arena *a)
{
	bool is_found = false;

	for (size_t i = 0; i < row->n_configs; i++) {
		const struct matched_config *one = &row->config[i];

		if (one->apart || (!one->evident && !is_any) || !is_beyond(g, one->is.ratio - 1))
			continue;
		say(c, g, pair->side, row->n_configs > 1 ? one->name : NULL,
		    change_text(&one->is, a), out);
		is_found = true;
	}
	return is_found;
}

static enum compare_gate_outcome check_change(const struct comparison *c,
					      const struct compare_gate *g,
					      const struct matched_pair *pair, size_t metric,
					      bool is_any, struct buf *out, struct arena *a)
{
	const struct matched_row *row = &pair->row[metric];
	const char *why = unjudged(pair, row, is_any);
	enum compare_gate_outcome outcome = GATE_HOLDS_NOT;

	if (why) {
		say(c, g, pair->side, NULL, arena_printf(a, "cannot be judged, %s", why), out);
		return GATE_UNKNOWN;
	}
	if (is_beyond(g, row->is.ratio - 1) && (is_any || row->q <= c->o->alpha)) {
		say(c, g, pair->side, NULL, change_text(&row->is, a), out);
		return GATE_HOLDS;
	}
	if (holds_somewhere(c, g, pair, row, is_any, out, a))
		return GATE_HOLDS;
	for (size_t i = 0; i < pair->n_alone[0]; i++) {
		say(c, g, pair->side, pair->alone[0][i].config,
		    "cannot be judged, only the baseline has it", out);
		outcome = GATE_UNKNOWN;
	}
	return outcome;
}

/* ---- a value ---- */

static enum compare_gate_outcome check_value(const struct comparison *c,
					     const struct compare_gate *g,
					     const struct compare_values *v, size_t side,
					     const char *config, bool is_any, struct buf *out,
					     struct arena *a)
{
	struct interval i = student_interval(v->value, v->n, 1 - c->o->alpha);

	if (!is_any && v->n < COMPARE_REPEATS_MIN) {
		say(c, g, side, config, arena_printf(a, "cannot be judged, not enough data (%zu server "
						     "sessions, %d needed)", v->n,
						     COMPARE_REPEATS_MIN), out);
		return GATE_UNKNOWN;
	}
	if (!is_beyond(g, v->median) || (!is_any && !(is_beyond(g, i.low) && is_beyond(g, i.high))))
		return GATE_HOLDS_NOT;
	say(c, g, side, config, arena_printf(a, "holds (%.6g)", v->median), out);
	return GATE_HOLDS;
}

static enum compare_gate_outcome check_values(const struct comparison *c,
					      const struct compare_gate *g, size_t metric,
					      size_t side, bool is_any, struct buf *out,
					      struct arena *a)
{
	enum compare_gate_outcome worst = GATE_HOLDS_NOT;
	struct compare_values *v;
	size_t n = compare_values(c, metric, side, a, &v);

	if (!n) {
		say(c, g, side, NULL, "cannot be judged, no run that counts has it", out);
		return GATE_UNKNOWN;
	}
	for (size_t i = 0; i < n; i++)
		worst = worse(worst, check_value(c, g, &v[i], side, n > 1 ? v[i].config : NULL,
						 is_any, out, a));
	return worst;
}

/* ---- all of it ---- */

enum compare_gate_outcome compare_gate_check(const struct comparison *c,
					     const struct compare_gate *g, bool is_any,
					     struct buf *out)
{
	enum compare_gate_outcome worst = GATE_HOLDS_NOT;
	struct arena a = { 0 };
	size_t metric = 0;

	while (strcmp(c->metric[metric].name, g->key) != 0)
		metric++;
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		worst = worse(worst, g->is_relative ?
			      check_change(c, g, pair, metric, is_any, out, &a) :
			      check_values(c, g, metric, pair->side, is_any, out, &a));
	}
	arena_release(&a);
	return worst;
}

/* The share of failed requests of a side in one configuration; NAN: not known. */
static double failed_share(const struct comparison *c, size_t side, const char *config)
{
	double failed = 0, all = 0;

	for (size_t i = 0; i < c->spec.n_runs; i++) {
		const struct matched_run *run = &c->run[i];

		if (run->side != side || strcmp(run->config, config) != 0 ||
		    isnan(run->work.failed) || isnan(run->work.completed))
			continue;
		failed += run->work.failed;
		all += run->work.failed + run->work.completed;
	}
	return all > 0 ? failed / all : NAN;
}

bool compare_gate_failures(const struct comparison *c, struct buf *out)
{
	bool is_any = false;

	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		for (size_t k = 0; k < pair->n_configs; k++) {
			double before = failed_share(c, 0, pair->config[k]);
			double now = failed_share(c, pair->side, pair->config[k]);

			if (!(now - before > JUDGE_FAILED_SHARE))
				continue;
			is_any = true;
			buf_printf(out, "failed requests rose from %.1f %% to %.1f %%: %s%s%s\n",
				   before * 100, now * 100, c->side[pair->side].name,
				   pair->n_configs > 1 ? " at " : "",
				   pair->n_configs > 1 ? pair->config[k] : "");
		}
	}
	return is_any;
}
