/* SPDX-License-Identifier: Apache-2.0 */
/* compare_scaling.c - what more GPUs bring; and the short table of two results. */
#include <math.h>
#include <string.h>

#include "report/compare.h"
#include "report/grid.h"
#include "stats/stats.h"

/* The spellings of one factor of the number of GPUs. */
static const char *const total[] = { "num_gpus", "gpu_count", NULL };
static const char *const tensor[] = { "tensor_parallel_size", "tp_size", "tp", NULL };
static const char *const pipeline[] = { "pipeline_parallel_size", "pp_size", "pp", NULL };
static const char *const data[] = { "data_parallel_size", "dp_size", "dp", NULL };

static bool is_one_of(const char *key, const char *const *names)
{
	while (*names && strcmp(key, *names) != 0)
		names++;
	return *names != NULL;
}

static bool is_size(const char *key)
{
	return is_one_of(key, total) || is_one_of(key, tensor) || is_one_of(key, pipeline) ||
	       is_one_of(key, data);
}

static double factor(const struct comparison *c, const struct compare_run *run,
		     const char *const *names, double otherwise)
{
	double v;

	for (size_t p = 0; p < c->n_params; p++)
		if (run->param[p] && is_one_of(c->param[p].key, names) &&
		    str_to_f64(str_of(run->param[p]), &v) && v >= 1)
			return v;
	return otherwise;
}

static double gpus_of(const struct comparison *c, const struct compare_run *run)
{
	double n = factor(c, run, total, 0);

	return n > 0 ? n : factor(c, run, tensor, 1) * factor(c, run, pipeline, 1) *
				   factor(c, run, data, 1);
}

static bool is_alike(const struct comparison *c, const struct compare_run *x,
		     const struct compare_run *y)
{
	for (size_t p = 0; p < c->n_params; p++) {
		const char *a = x->param[p], *b = y->param[p];

		if (!is_size(c->param[p].key) && a != b && (!a || !b || strcmp(a, b) != 0))
			return false;
	}
	return true;
}

static const char *rest_of(const struct comparison *c, const struct compare_run *run,
			   struct arena *a)
{
	const char *text = "";

	for (size_t p = 0; p < c->n_params; p++)
		if (c->param[p].kind != COMPARE_SAME && !is_size(c->param[p].key) && run->param[p])
			text = arena_printf(a, "%s%s%s=%s", text, *text ? " " : "", c->param[p].key,
					    run->param[p]);
	return text;
}

struct sized { const struct compare_run *run; double gpus, v; bool is_done; };

/* The median of the runs like this one with its number of GPUs. */
static double median_at(const struct comparison *c, struct sized *all, size_t n,
			const struct compare_run *like, double gpus, struct arena *a)
{
	double *v = arena_alloc(a, n * sizeof(*v));
	size_t count = 0;

	for (size_t i = 0; i < n; i++)
		if (fabs(all[i].gpus - gpus) < 0.5 && is_alike(c, all[i].run, like)) {
			v[count++] = all[i].v;
			all[i].is_done = true;
		}
	stats_sort(v, count);
	return stats_median(v, count);
}

/* The least number of GPUs above one among runs like this one; 0: none. */
static double next_size(const struct comparison *c, const struct sized *all, size_t n,
			const struct compare_run *like, double above)
{
	double least = 0;

	for (size_t i = 0; i < n; i++)
		if (all[i].gpus > above + 0.5 && (least <= 0 || all[i].gpus < least) &&
		    is_alike(c, all[i].run, like))
			least = all[i].gpus;
	return least;
}

static size_t add_family(const struct comparison *c, struct sized *all, size_t n,
			 const struct compare_run *like, struct grid *g, struct arena *a)
{
	double smallest = next_size(c, all, n, like, 0), first = 0;
	size_t lines = 0;

	for (double k = smallest; k > 0; k = next_size(c, all, n, like, k)) {
		double v = median_at(c, all, n, like, k, a), speedup;

		first = lines++ ? first : v;
		speedup = v / first;
		grid_add(g, rest_of(c, like, a));
		grid_add(g, arena_printf(a, "%.0f", k));
		grid_add(g, compare_value(v, a));
		grid_add(g, compare_value(v / k, a));
		grid_add(g, arena_printf(a, "%.3f", speedup));
		grid_add(g, arena_printf(a, "%.1f%%", 100 * speedup * smallest / k));
	}
	return lines > 1 ? lines : 0;
}

size_t compare_scaling(const struct comparison *c, const char *metric, bool is_markdown,
		       struct buf *out)
{
	struct arena a = { 0 };
	struct sized *all;
	struct grid g;
	size_t n = 0, lines = 0;

	for (size_t s = 0; s < c->n_sides; s++)
		n += c->side[s].n;
	all = arena_alloc(&a, n * sizeof(*all));
	n = 0;
	for (size_t s = 0; s < c->n_sides; s++)
		for (size_t i = 0; i < c->side[s].n; i++) {
			const struct compare_run *run = &c->side[s].run[i];

			if (compare_number(run->record, metric, &all[n].v)) {
				all[n].run = run;
				all[n++].gpus = gpus_of(c, run);
			}
		}
	grid_begin(&g, &a);
	grid_add(&g, "point");
	grid_add(&g, "GPUs");
	grid_add(&g, metric);
	grid_add(&g, "per GPU");
	grid_add(&g, "speed-up");
	grid_add(&g, "efficiency");
	grid_end_heads(&g);
	for (size_t i = 0; i < n; i++)
		if (!all[i].is_done)
			lines += add_family(c, all, n, all[i].run, &g, &a);
	if (is_markdown)
		grid_markdown(&g, out);
	else
		grid_text(&g, false, out);
	arena_release(&a);
	return lines;
}

int compare_two(const char *a, const char *b, struct buf *out, struct err *e)
{
	static const struct compare_opts opts = { .alpha = MATCHED_ALPHA, .min_effect = -1,
						  .is_all = true, .is_any_model = true };
	const char *const path[] = { a, b };
	struct arena arena = { 0 };
	struct comparison c;
	struct grid g;
	int rc = compare_load(&c, &opts, path, 2, &arena, e);

	grid_begin(&g, &arena);
	grid_add(&g, "metric");
	grid_add(&g, a);
	grid_add(&g, b);
	grid_add(&g, "change");
	grid_end_heads(&g);
	for (size_t m = 0; rc == 0 && m < c.n_metrics; m++) {
		double x, y;

		if (!compare_number(c.side[0].run[0].record, c.metric[m].name, &x) ||
		    !compare_number(c.side[1].run[0].record, c.metric[m].name, &y))
			continue;
		grid_add(&g, c.metric[m].name);
		grid_add(&g, compare_value(x, &arena));
		grid_add(&g, compare_value(y, &arena));
		grid_add(&g, fabs(x) > 0 ? compare_percent((y - x) / fabs(x), &arena) : "");
	}
	if (rc == 0)
		grid_text(&g, false, out);
	compare_release(&c);
	arena_release(&arena);
	return rc;
}
