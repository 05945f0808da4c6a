/* SPDX-License-Identifier: Apache-2.0 */
/* compare_gate.c - conditions that end a CI job: '--fail-if p99_ttft_ms>+5%'. */
#include <math.h>
#include <string.h>

#include "report/compare.h"

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

/* A change of a value that was 0 is no share of it. */
static double tested(const struct compare_gate *g, const struct compare_cell *base,
		     const struct compare_cell *cell)
{
	if (!g->is_relative)
		return cell->median;
	if (isnan(cell->delta) && base->n && cell->n)
		return cell->median > 0 ? INFINITY : cell->median < 0 ? -INFINITY : 0;
	return cell->delta;
}

static bool has_evidence(const struct comparison *c, const struct compare_gate *g,
			 const struct compare_cell *cell)
{
	struct interval i;

	if (g->is_relative)
		return cell->q <= c->o->alpha;
	i = student_interval(cell->value, cell->n, c->o->level);
	return is_beyond(g, i.low) && is_beyond(g, i.high);
}

static bool is_enough(const struct compare_gate *g, const struct compare_cell *base,
		      const struct compare_cell *cell)
{
	return cell->n >= COMPARE_REPEATS_MIN &&
	       (!g->is_relative || base->n >= COMPARE_REPEATS_MIN);
}

static void say(const struct comparison *c, const struct compare_gate *g, size_t point,
		size_t side, const char *what, struct buf *out)
{
	buf_printf(out, "--fail-if '%s' %s: %s%s%s\n", g->text, what, c->side[side].name,
		   *c->point[point].name ? " at " : "", c->point[point].name);
}

static enum compare_gate_outcome check_one(const struct comparison *c,
					   const struct compare_gate *g, size_t point,
					   size_t metric, size_t side, bool is_any, struct buf *out)
{
	const struct compare_cell *base = compare_cell(c, point, metric, 0);
	const struct compare_cell *cell = compare_cell(c, point, metric, side);
	double v = tested(g, base, cell);
	char what[512];

	if (!cell->n && base->n) {
		say(c, g, point, side, "cannot be judged, only the baseline has it", out);
		return GATE_UNKNOWN;
	}
	if (!cell->n || (g->is_relative && !base->n))
		return GATE_HOLDS_NOT;
	if (g->is_relative && c->side[side].is_baseline_again) {
		say(c, g, point, side, "cannot be judged, both sides are the same runs", out);
		return GATE_UNKNOWN;
	}
	if (!is_any && !is_enough(g, base, cell)) {
		snprintf(what, sizeof(what), "cannot be judged, not enough data (%zu against %zu values, "
			 "%d needed)", base->n, cell->n, COMPARE_REPEATS_MIN);
		say(c, g, point, side, what, out);
		return GATE_UNKNOWN;
	}
	if (!is_beyond(g, v) || (!is_any && !has_evidence(c, g, cell))) {
		if (!g->is_relative || !c->point[point].guard[side])
			return GATE_HOLDS_NOT;
		snprintf(what, sizeof(what), "cannot be judged, %s", c->point[point].guard[side]);
		say(c, g, point, side, what, out);
		return GATE_UNKNOWN;
	}
	if (g->is_relative)
		snprintf(what, sizeof(what), "holds (%+.1f%%: %.6g, then %.6g)", v * 100, base->median,
			 cell->median);
	else
		snprintf(what, sizeof(what), "holds (%.6g)", cell->median);
	say(c, g, point, side, what, out);
	return GATE_HOLDS;
}

bool compare_gate_failures(const struct comparison *c, struct buf *out)
{
	bool is_any = false;

	for (size_t p = 0; p < c->n_points; p++)
		for (size_t s = 1; s < c->n_sides; s++) {
			const struct compare_point *point = &c->point[p];

			if (!point->failures[s])
				continue;
			is_any = true;
			buf_printf(out, "%s: %s%s%s\n", point->failures[s], c->side[s].name,
				   *point->name ? " at " : "", point->name);
		}
	return is_any;
}

enum compare_gate_outcome compare_gate_check(const struct comparison *c,
					     const struct compare_gate *g, bool is_any,
					     struct buf *out)
{
	enum compare_gate_outcome worst = GATE_HOLDS_NOT;
	bool is_measured = false;
	size_t metric = 0;

	while (strcmp(c->metric[metric].key, g->key) != 0)
		metric++;
	for (size_t p = 0; p < c->n_points; p++)
		for (size_t s = 1; s < c->n_sides; s++) {
			enum compare_gate_outcome one = check_one(c, g, p, metric, s, is_any, out);
			const struct compare_cell *cell = compare_cell(c, p, metric, s);

			is_measured |= cell->n &&
				       (!g->is_relative || compare_cell(c, p, metric, 0)->n);
			if (one == GATE_HOLDS || (one == GATE_UNKNOWN && worst == GATE_HOLDS_NOT))
				worst = one;
		}
	if (is_measured)
		return worst;
	buf_printf(out, "--fail-if '%s' cannot be judged: no point has it on both sides\n", g->text);
	return GATE_UNKNOWN;
}
