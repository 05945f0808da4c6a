/* SPDX-License-Identifier: Apache-2.0 */
/* compare_gate.c - conditions (report/gate.h) on a comparison, and on the runs of one operand. */
#include <math.h>
#include <string.h>

#include "report/compare.h"
#include "schema/schema.h"
#include "stats/significance.h"

#define SESSIONS_MIN 4 /* for a limit on a value */

/* "slow at max_concurrency=8"; "" where there is one further side and one configuration (NULL). */
static const char *where(const struct comparison *c, size_t side, const char *config,
			 struct arena *a)
{
	if (!config)
		return c->n_sides > 2 ? c->side[side].name : "";
	return arena_printf(a, "%s at %s", c->side[side].name, config);
}

/* Why no run of a side counts in a configuration (NULL: in any); NULL: one does. */
static const char *left_out(const struct comparison *c, size_t side, size_t metric,
			    const char *config, struct arena *a)
{
	bool is_invalid = false;

	for (size_t i = 0; i < c->spec.n_runs; i++) {
		const struct matched_run *run = &c->run[i];

		if (run->side != side || (config && strcmp(run->config, config) != 0) ||
		    isnan(run->value[metric]))
			continue;
		if (run->state[metric] != MATCHED_INVALID || c->o->is_invalid_counted)
			return NULL;
		is_invalid = true;
	}
	return arena_printf(a, is_invalid ? "it is INVALID in every run of %s that has it"
					  : "%s has no value of it", c->side[side].name);
}

/* ---- a change ---- */

static void add_change(const struct gate *g, const struct matched_estimate *is, const char *at,
		       enum gate_outcome outcome, struct gate_log *log)
{
	gate_log_add(log, g->text, at, outcome, "%s: %s, then %s",
		     gate_change(g, is->ratio - 1, log->a),
		     gate_value(g->key, is->value[0], NAN, log->a),
		     gate_value(g->key, is->value[1], NAN, log->a));
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

static void check_change(const struct comparison *c, const struct gate *g,
			 const struct matched_pair *pair, size_t metric, bool is_any,
			 struct gate_log *log)
{
	const struct matched_row *row = &pair->row[metric];
	const char *why = unjudged(pair, row, is_any), *at = where(c, pair->side, NULL, log->a);
	bool is_failed;

	if (why) {
		gate_log_add(log, g->text, at, GATE_UNJUDGED, "%s", why);
		return;
	}
	is_failed = gate_is_beyond(g, row->is.ratio - 1) && (is_any || row->q <= c->o->alpha);
	add_change(g, &row->is, at, is_failed ? GATE_FAILED : GATE_PASSED, log);
	/* What all of them hide: configurations with evidence of their own. */
	for (size_t i = 0; !is_failed && row->n_configs > 1 && i < row->n_configs; i++) {
		const struct matched_config *one = &row->config[i];

		if (!one->apart && (one->evident || is_any) && gate_is_beyond(g, one->is.ratio - 1))
			add_change(g, &one->is, where(c, pair->side, one->name, log->a),
				   GATE_FAILED, log);
	}
	/* What the estimate is without, a gate must not pass over. */
	for (size_t i = 0; i < pair->n_configs; i++) {
		const char *config = pair->config[i];

		why = left_out(c, 0, metric, config, log->a);
		why = why ? why : left_out(c, pair->side, metric, config, log->a);
		if (why)
			gate_log_add(log, g->text, where(c, pair->side, config, log->a),
				     GATE_UNJUDGED, "%s", why);
	}
	for (size_t i = 0; i < pair->n_alone[0]; i++)
		gate_log_add(log, g->text, where(c, pair->side, pair->alone[0][i].config, log->a),
			     GATE_UNJUDGED, "only the baseline has it");
}

/* ---- a value ---- */

static void check_value(const struct comparison *c, const struct gate *g,
			const struct compare_values *v, const char *at, bool is_any,
			struct gate_log *log)
{
	struct interval i = student_interval(v->value, v->n, 1 - c->o->alpha);
	bool is_failed = gate_is_beyond(g, v->median) &&
			 (is_any || (gate_is_beyond(g, i.low) && gate_is_beyond(g, i.high)));

	if (!is_any && v->n < SESSIONS_MIN)
		gate_log_add(log, g->text, at, GATE_UNJUDGED, "not enough data (%zu server session%s, "
			     "%d needed)", v->n, v->n == 1 ? "" : "s", SESSIONS_MIN);
	else
		gate_log_add(log, g->text, at, is_failed ? GATE_FAILED : GATE_PASSED,
			     "%s is %s (limit %s)", g->key,
			     gate_value(g->key, v->median, g->limit, log->a),
			     gate_value(g->key, g->limit, NAN, log->a));
}

static void check_values(const struct comparison *c, const struct gate *g,
			 const struct matched_pair *pair, size_t metric, bool is_any,
			 struct gate_log *log)
{
	const size_t side = pair->side, n_configs = pair->n_configs + pair->n_alone[1];
	struct compare_values *v;
	size_t n = compare_values(c, metric, side, log->a, &v);

	if (!n) {
		gate_log_add(log, g->text, where(c, side, NULL, log->a), GATE_UNJUDGED, "%s",
			     left_out(c, side, metric, NULL, log->a));
		return;
	}
	for (size_t i = 0; i < n; i++)
		check_value(c, g, &v[i], where(c, side, n > 1 || n_configs > 1 ? v[i].config : NULL,
					       log->a), is_any, log);
	for (size_t i = 0; i < n_configs; i++) {
		const char *config = i < pair->n_configs ? pair->config[i]
				     : pair->alone[1][i - pair->n_configs].config;
		const char *why = left_out(c, side, metric, config, log->a);

		if (why)
			gate_log_add(log, g->text, where(c, side, config, log->a), GATE_UNJUDGED,
				     "%s", why);
	}
}

void compare_gate_check(const struct comparison *c, const struct gate *g, bool is_any,
			struct gate_log *log)
{
	size_t metric = 0;

	while (strcmp(c->metric[metric].name, g->key) != 0)
		metric++;
	for (size_t i = 0; i < c->out.n_pairs; i++)
		if (g->is_relative)
			check_change(c, g, &c->out.pair[i], metric, is_any, log);
		else
			check_values(c, g, &c->out.pair[i], metric, is_any, log);
}

/* ---- failed requests ---- */

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

void compare_gate_failures(const struct comparison *c, struct gate_log *log)
{
	for (size_t i = 0; i < c->out.n_pairs; i++) {
		const struct matched_pair *pair = &c->out.pair[i];

		for (size_t k = 0; k < pair->n_configs; k++) {
			const char *config = pair->config[k];
			const char *shown = pair->n_configs > 1 ? config : NULL;
			double before = failed_share(c, 0, config);
			double now = failed_share(c, pair->side, config);

			if (now - before > MATCHED_FAILED_SHARE)
				gate_log_add(log, "failed requests",
					     where(c, pair->side, shown, log->a), GATE_FAILED,
					     "failed requests rose from %.1f %% to %.1f %%",
					     before * 100, now * 100);
		}
	}
}

/* ---- the runs of one operand ---- */

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

/* A mistyped key, which --allow-unjudged would let pass for ever. */
static int check_key(const struct gate *g, const struct compare_side *s, struct err *e)
{
	double v;

	if (schema_field_find(g->key))
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (compare_number(s->run[i].record, g->key, &v))
			return 0;
	return s->n ? gate_check_like(g, s->run[0].record, s->path, e) : 0;
}

int compare_gate_runs(const char *path, const struct gate *gate, size_t n, struct gate_log *log,
		      struct buf *notes, struct err *e)
{
	static const struct compare_opts none;
	struct comparison c = { .o = &none, .a = log->a };
	const struct compare_side *s;
	int rc = 0;

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
	for (size_t i = 0; i < n && rc == 0; i++)
		if ((rc = check_key(&gate[i], s, e)) < 0)
			err_wrap(e, "--fail-if");
	for (size_t i = 0; i < s->n && rc == 0; i++)
		gate_judge(gate, n, s->run[i].record, run_name(s, i, log->a), log);
	buf_add_str(notes, buf_str(&c.notes));
	compare_release(&c);
	return rc;
}
