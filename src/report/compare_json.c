/* SPDX-License-Identifier: Apache-2.0 */
/* compare_json.c - a comparison for programs. Numbers that do not exist are null. */
#include <math.h>

#include "report/compare.h"
#include "report/put.h"

static void put_maybe(struct json_writer *w, const char *key, double v)
{
	json_key(w, key);
	if (isfinite(v))
		json_put_f64(w, v);
	else
		json_put_null(w);
}

static void put_values(struct json_writer *w, const char *key, const double *v, size_t n)
{
	json_key(w, key);
	json_begin_array(w);
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, v[i]);
	json_end_array(w);
}

static void put_sides(struct json_writer *w, const struct comparison *c)
{
	json_key(w, "sides");
	json_begin_array(w);
	for (size_t s = 0; s < c->n_sides; s++) {
		const struct compare_side *side = &c->side[s];

		json_begin_object(w);
		put_text(w, "name", side->name);
		put_text(w, "path", side->path);
		put_int(w, "runs", (int64_t)side->n);
		json_key(w, "parameters");
		json_begin_object(w);
		for (size_t p = 0; p < c->n_params; p++)
			if (c->param[p].kind == COMPARE_BETWEEN)
				put_text(w, c->param[p].key, side->run[0].param[p]);
		json_end_object(w);
		json_end_object(w);
	}
	json_end_array(w);
}

static void put_cell(struct json_writer *w, const struct comparison *c, size_t point,
		     size_t metric, size_t side)
{
	const struct compare_cell *base = compare_cell(c, point, metric, 0);
	const struct compare_cell *cell = compare_cell(c, point, metric, side);
	struct shift shift =
		hodges_lehmann(base->value, base->n, cell->value, cell->n, c->o->level);

	json_begin_object(w);
	put_text(w, "metric", c->metric[metric].key);
	put_text(w, "unit", c->metric[metric].unit);
	put_text(w, "side", c->side[side].name);
	put_maybe(w, "baseline_median", base->median);
	put_maybe(w, "median", cell->median);
	put_maybe(w, "delta", cell->delta);
	put_maybe(w, "delta_low", cell->interval.low);
	put_maybe(w, "delta_high", cell->interval.high);
	put_maybe(w, "p_welch", cell->p);
	put_maybe(w, "p_mann_whitney", cell->p_ranks);
	put_maybe(w, "q", cell->q);
	put_maybe(w, "superiority", cell->superiority);
	put_maybe(w, "shift", shift.shift);
	put_maybe(w, "shift_low", shift.interval.low);
	put_maybe(w, "shift_high", shift.interval.high);
	put_maybe(w, "cv", cell->cv);
	put_real(w, "min_effect", c->metric[metric].min_effect);
	json_key(w, "repeats_needed");
	if (cell->repeats_needed)
		json_put_int(w, (int64_t)cell->repeats_needed);
	else
		json_put_null(w);
	put_values(w, "baseline_runs", base->run_value, base->n_runs);
	put_values(w, "runs", cell->run_value, cell->n_runs);
	put_int(w, "baseline_tested", (int64_t)base->n);
	put_int(w, "tested", (int64_t)cell->n);
	put_text(w, "verdict", compare_verdict_key(cell->verdict));
	json_end_object(w);
}

static void put_point(struct json_writer *w, const struct comparison *c, size_t point)
{
	const struct compare_point *at = &c->point[point];

	json_begin_object(w);
	json_key(w, "parameters");
	json_begin_object(w);
	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind == COMPARE_WITHIN)
			put_text(w, c->param[p].key, at->param[p]);
	json_end_object(w);
	json_key(w, "metrics");
	json_begin_array(w);
	for (size_t m = 0; m < c->n_metrics; m++)
		for (size_t s = 1; s < c->n_sides; s++)
			put_cell(w, c, point, m, s);
	json_end_array(w);
	json_end_object(w);
}

void compare_json(const struct comparison *c, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct str rest = buf_str(&c->notes);

	w.indent = 2;
	json_begin_object(&w);
	put_int(&w, "schema_version", 1);
	put_real(&w, "alpha", c->o->alpha);
	put_real(&w, "level", c->o->level);
	put_sides(&w, c);
	json_key(&w, "points");
	json_begin_array(&w);
	for (size_t p = 0; p < c->n_points; p++)
		put_point(&w, c, p);
	json_end_array(&w);
	json_key(&w, "notes");
	json_begin_array(&w);
	while (rest.n)
		json_put_str(&w, str_cut(&rest, '\n'));
	json_end_array(&w);
	json_end_object(&w);
	buf_add_char(out, '\n');
}
