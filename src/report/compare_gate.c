/* SPDX-License-Identifier: Apache-2.0 */
/* compare_gate.c - conditions (report/gate.h) on a comparison, and on the runs of one operand. */
#include <math.h>
#include <string.h>

#include "report/compare.h"

/* A change of a value that was 0 is no share of it. */
static double tested(const struct gate *g, const struct compare_cell *base,
		     const struct compare_cell *cell)
{
	if (!g->is_relative)
		return cell->median;
	if (isnan(cell->delta) && base->n && cell->n)
		return cell->median > 0 ? INFINITY : cell->median < 0 ? -INFINITY : 0;
	return cell->delta;
}

static bool has_evidence(const struct comparison *c, const struct gate *g,
			 const struct compare_cell *cell)
{
	struct interval i;

	if (g->is_relative)
		return cell->q <= c->o->alpha;
	i = student_interval(cell->value, cell->n, c->o->level);
	return gate_is_beyond(g, i.low) && gate_is_beyond(g, i.high);
}

static bool is_enough(const struct gate *g, const struct compare_cell *base,
		      const struct compare_cell *cell)
{
	return cell->n >= COMPARE_REPEATS_MIN &&
	       (!g->is_relative || base->n >= COMPARE_REPEATS_MIN);
}

/* "slow at max_concurrency=8"; "" where there is only one side and one point. */
static const char *where(const struct comparison *c, size_t point, size_t side, struct arena *a)
{
	const char *at = c->point[point].name;

	if (!*at)
		return c->n_sides > 2 ? c->side[side].name : "";
	return arena_printf(a, "%s at %s", c->side[side].name, at);
}

/* Why a case cannot be judged, before its value is looked at; NULL: it can. */
static const char *unjudged(const struct comparison *c, const struct gate *g, size_t side,
			    const struct compare_cell *base, const struct compare_cell *cell,
			    bool is_any, struct arena *a)
{
	if (!cell->n && base->n)
		return "only the baseline has it";
	if (g->is_relative && c->side[side].is_baseline_again)
		return "both sides are the same runs";
	if (!is_any && !is_enough(g, base, cell))
		return arena_printf(a, "not enough data (%zu against %zu values, %d needed)", base->n,
				    cell->n, COMPARE_REPEATS_MIN);
	return NULL;
}

static void check_one(const struct comparison *c, const struct gate *g, size_t point,
		      size_t metric, size_t side, bool is_any, struct gate_log *log)
{
	const struct compare_cell *base = compare_cell(c, point, metric, 0);
	const struct compare_cell *cell = compare_cell(c, point, metric, side);
	const char *at = where(c, point, side, log->a), *guard = c->point[point].guard[side];
	const char *why = unjudged(c, g, side, base, cell, is_any, log->a);
	double v = tested(g, base, cell);
	bool is_failed = gate_is_beyond(g, v) && (is_any || has_evidence(c, g, cell));

	if (!why && g->is_relative && !is_failed)
		why = guard;
	if (why)
		gate_log_add(log, g->text, at, GATE_UNJUDGED, "%s", why);
	else if (!g->is_relative)
		gate_log_add(log, g->text, at, is_failed ? GATE_FAILED : GATE_PASSED,
			     "%s is %s (limit %s)", g->key, gate_value(g->key, v, g->limit, log->a),
			     gate_value(g->key, g->limit, NAN, log->a));
	else
		gate_log_add(log, g->text, at, is_failed ? GATE_FAILED : GATE_PASSED,
			     "%s: %s, then %s", gate_change(g, v, log->a),
			     gate_value(g->key, base->median, NAN, log->a),
			     gate_value(g->key, cell->median, NAN, log->a));
}

void compare_gate_failures(const struct comparison *c, struct gate_log *log)
{
	for (size_t p = 0; p < c->n_points; p++)
		for (size_t s = 1; s < c->n_sides; s++)
			if (c->point[p].failures[s])
				gate_log_add(log, "failed requests", where(c, p, s, log->a),
					     GATE_FAILED, "%s", c->point[p].failures[s]);
}

void compare_gate_check(const struct comparison *c, const struct gate *g, bool is_any,
			struct gate_log *log)
{
	size_t metric = 0, n = log->n;

	while (strcmp(c->metric[metric].key, g->key) != 0)
		metric++;
	for (size_t p = 0; p < c->n_points; p++)
		for (size_t s = 1; s < c->n_sides; s++) {
			bool is_here = compare_cell(c, p, metric, s)->n;
			bool is_there = compare_cell(c, p, metric, 0)->n;

			/* New points have nothing to be compared with. */
			if (g->is_relative ? is_there : is_here || is_there)
				check_one(c, g, p, metric, s, is_any, log);
		}
	if (log->n == n)
		gate_log_add(log, g->text, "", GATE_UNJUDGED, "no point has it on both sides");
}

/* "crowd (run 3 of results.json)"; a file's name where it holds one run; "" for the only run. */
static const char *run_name(const struct compare_side *s, size_t i, struct arena *a)
{
	const char *path = s->run[i].path;
	struct str name = json_text(json_get(s->run[i].record, "experiment"), STR(""));
	size_t first = i, end = i + 1;

	while (first && s->run[first - 1].path == path)
		first--;
	while (end < s->n && s->run[end].path == path)
		end++;
	if (s->n == 1)
		return "";
	if (end - first == 1)
		return path;
	path = arena_printf(a, "run %zu of %s", i - first + 1, path);
	return name.n ? arena_printf(a, "%.*s (%s)", (int)name.n, name.p, path) : path;
}

int compare_gate_runs(const char *path, const struct gate *gate, size_t n, struct gate_log *log,
		      struct buf *notes, struct err *e)
{
	static const struct compare_opts none;
	struct comparison c = { .o = &none, .a = log->a };
	const struct compare_side *s;

	for (size_t i = 0; i < n; i++)
		if (gate[i].is_relative)
			return err_set(e, ERR_USAGE, "--fail-if '%s': a change needs a baseline, which is "
				       "the first of at least two operands", gate[i].text);
	c.side = arena_alloc(c.a, sizeof(*c.side));
	if (compare_read(&c, path, e) < 0) {
		compare_release(&c);
		return -1;
	}
	s = &c.side[0];
	for (size_t i = 0; i < s->n; i++)
		gate_judge(gate, n, s->run[i].record, run_name(s, i, log->a), log);
	buf_add_str(notes, buf_str(&c.notes));
	compare_release(&c);
	return 0;
}
