/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_chart.c - see sweep_search.h: latency over throughput, one figure for each combination of
 * the benchmark's, one curve for each of the server's, one point for each level.
 */
#include <math.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "report/figure.h"
#include "report/frame.h"
#include "run/gnuplot.h"
#include "run/sweep_parts.h"
#include "run/sweep_search.h"

#define X_KEY "request_throughput"
#define Y_KEY "p99_e2el_ms"
#define LIMIT_REACH 1.5 /* of the highest point: a limit up to there is shown */

struct point { double level, x, y; };

static bool has_all(const struct json_value *record, const struct json_value *comb)
{
	for (size_t i = 0; i < comb->count; i++) {
		const struct json_value *v = frame_value(record, comb->key[i]);

		if (!v || !params_equal(v, &comb->item[i]))
			return false;
	}
	return true;
}

static int by_level(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	return (p->level > q->level) - (p->level < q->level);
}

/* A point for each level, the mean of its runs, named by the level; in their order. */
static void curve_of(struct sweep *s, const struct json_value *serve,
		     const struct json_value *bench, struct figure_curve *out)
{
	struct point *p = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*p));
	double *x = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*x));
	double *y = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*y));
	const char **label = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*label));
	size_t *count = arena_alloc(&s->arena, (s->records.n + 1) * sizeof(*count)), n = 0;

	for (size_t i = 0; i < s->records.n; i++) {
		const struct json_value *r = s->records.v[i];

		n += has_all(r, bench) && has_all(r, serve) &&
		     frame_number(frame_value(r, str_of(s->o->sla_variable)), &p[n].level) &&
		     frame_number(frame_value(r, STR(X_KEY)), &p[n].x) &&
		     frame_number(frame_value(r, STR(Y_KEY)), &p[n].y);
	}
	qsort(p, n, sizeof(*p), by_level);
	for (size_t i = 0, next; i < n; i = next, out->n++) {
		for (next = i; next < n && p[next].level == p[i].level; next++) {
			x[out->n] += p[next].x;
			y[out->n] += p[next].y;
		}
		count[out->n] = next - i;
		x[out->n] /= (double)(next - i);
		y[out->n] /= (double)(next - i);
		label[out->n] = p[i].level == (double)s->o->sla_max ? "all at once" :
			arena_printf(&s->arena, "%.0f", p[i].level);
	}
	*out = (struct figure_curve){ .look = out->look, .n = out->n, .x = x, .y = y,
				      .count = count, .label = label };
}

static double highest(const struct figure_panel *panel)
{
	double y = 0;

	for (size_t i = 0; i < panel->n_curves; i++)
		for (size_t k = 0; k < panel->curve[i].n; k++)
			y = fmax(y, panel->curve[i].y[k]);
	return y;
}

/* The limits on what is drawn, as lines; one far above all points would only flatten them. */
static void add_limits(struct sweep *s, const struct slas *slas, struct figure_panel *panel)
{
	struct figure_limit *limit =
		arena_alloc(&s->arena, slas->n * SLA_LIMITS_MAX * sizeof(*limit));

	for (size_t i = 0; i < slas->n; i++)
		for (size_t k = 0; k < slas->item[i].n; k++) {
			const struct sla one = { &slas->item[i].limit[k], 1 };
			struct buf text = { 0 };

			if (strcmp(one.limit->key, Y_KEY) != 0 ||
			    one.limit->limit > LIMIT_REACH * highest(panel))
				continue;
			sla_text(&one, "", &text);
			limit[panel->n_limits++] = (struct figure_limit){
				.at = one.limit->limit,
				.title = arena_text(&s->arena, buf_str(&text)),
			};
			buf_release(&text);
		}
	panel->limit = limit;
}

static void chart(struct sweep *s, const struct json_value *bench, const struct slas *slas)
{
	struct figure_curve *curve = arena_alloc(&s->arena, s->serve.n * sizeof(*curve));
	struct figure_panel panel = { .curve = curve };
	struct buf title = { 0 }, x = { 0 }, y = { 0 };
	struct figure f = { .panel = &panel, .rows = 1, .cols = 1 };
	const struct json_value none = { .kind = JSON_OBJECT };
	const char *name = params_folder((struct params_side){ "SERVE-", &none },
					 (struct params_side){ "BENCH-", bench }, NULL, &s->arena);
	struct err e = { 0 };

	for (size_t i = 0; i < s->serve.n; i++) {
		struct figure_curve *c = &curve[panel.n_curves];

		*c = (struct figure_curve){ .look.color = (unsigned)i };
		curve_of(s, &s->serve.item[i], bench, c);
		if (s->serve.n > 1)
			c->title = sweep_name(s, &s->serve.item[i], "(None)");
		panel.n_curves += c->n > 0;
	}
	add_limits(s, slas, &panel);
	params_text(bench, ", ", &title);
	buf_printf(&title, "%sby %s", title.len ? ", " : "", s->o->sla_variable);
	figure_axis_label(&x, X_KEY);
	figure_axis_label(&y, Y_KEY);
	f.title = title.data;
	f.x_label = x.data;
	f.y_label = y.data;
	if (panel.n_curves && gnuplot_figure(&f, sweep_path(s, s->folder, *name ? name : "BENCH"),
					     GNUPLOT_PNG, 0, NULL, &e) < 0)
		sweep_warn(s, "%s", e.text);
	buf_release(&title);
	buf_release(&x);
	buf_release(&y);
}

void sweep_chart(struct sweep *s, const struct slas *slas)
{
	for (size_t i = 0; i < s->bench.n; i++)
		chart(s, &s->bench.item[i], slas);
}
