/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_plot.c - see sweep_plot.h. */
#include "report/sweep_plot.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "json/python.h"
#include "report/sweep_values.h"
#include "stats/stats.h"

#define LOOKS 3 /* variables told apart by colour, dash and width; more become one */

int sweep_plot_grid(const struct frame *f, const struct sweep_plot *p, size_t *rows, size_t *cols,
		    struct arena *a, struct err *e)
{
	struct frame_groups by_row, by_col;

	*cols = 0;
	if (frame_group_by(f, &p->row_by, &by_row, a, e) < 0)
		return -1;
	for (size_t i = 0; i < by_row.n; i++) {
		if (frame_group_by(&by_row.item[i].frame, &p->col_by, &by_col, a, e) < 0)
			return -1;
		*cols = by_col.n > *cols ? by_col.n : *cols;
	}
	*rows = by_row.n;
	return 0;
}

/* ---- columns ---- */

static int check_column(const struct frame *f, const char *option, struct str name, struct err *e)
{
	struct buf shown = { 0 }, columns = { 0 };

	if (frame_has_column(f, name))
		return 0;
	json_repr_str(&shown, name);
	frame_columns_text(f, &columns);
	err_set(e, ERR_RUN, "Cannot find %s=%s in parameter sweep results. Available variables: %s",
		option, shown.data, columns.data);
	buf_release(&shown);
	buf_release(&columns);
	return -1;
}

static int check_columns(const struct frame *f, const struct sweep_plot *p, struct err *e)
{
	const struct { const char *option; const struct frame_keys *keys; } lists[] = {
		{ "row_by", &p->row_by }, { "col_by", &p->col_by }, { "curve_by", &p->curve_by },
	};

	if (check_column(f, "var_x", str_of(p->var_x), e) < 0 ||
	    check_column(f, "var_y", str_of(p->var_y), e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++)
		for (size_t k = 0; k < lists[i].keys->n; k++)
			if (check_column(f, lists[i].option, lists[i].keys->name[k], e) < 0)
				return -1;
	return 0;
}

/* Rows with both numbers. A null is left out; a text is a mistake in the choice of variable. */
static int keep_numbers(const struct frame *f, const struct sweep_plot *p, struct frame *out,
			struct arena *a, struct err *e)
{
	const char *const var[] = { p->var_x, p->var_y };

	for (size_t i = 0; i < f->n; i++) {
		bool is_kept = true;

		for (size_t k = 0; k < 2; k++) {
			const struct json_value *v = frame_value(f->row[i], str_of(var[k]));
			double x;

			if (v && v->kind != JSON_NULL && !frame_number(v, &x))
				return err_set(e, ERR_RUN, "--var-%c '%s': not all of its values are numbers",
					       k ? 'y' : 'x', var[k]);
			is_kept &= v && v->kind != JSON_NULL && frame_number(v, &x) && !isnan(x);
		}
		if (is_kept && frame_add(out, f->row[i], "plot", a, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- points ---- */

struct point { double x, y; };

static int by_x(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	return (p->x > q->x) - (p->x < q->x);
}

struct arrays { double *x, *y, *low, *high; size_t *count; };

static struct arrays new_arrays(size_t n, struct arena *a)
{
	return (struct arrays){
		arena_alloc(a, n * sizeof(double)), arena_alloc(a, n * sizeof(double)),
		arena_alloc(a, n * sizeof(double)), arena_alloc(a, n * sizeof(double)),
		arena_alloc(a, n * sizeof(size_t)),
	};
}

/* Mean of equal x, plus and minus the standard deviation of a sample. */
static size_t average(struct point *p, size_t n, const struct arrays *out, struct arena *a)
{
	double *y = arena_alloc(a, n * sizeof(*y));
	size_t made = 0;

	if (n)
		qsort(p, n, sizeof(*p), by_x);
	for (size_t i = 0, k; i < n; i = k, made++) {
		size_t same;
		double mean, spread;

		for (k = i; k < n && p[k].x == p[i].x; k++)
			y[k - i] = p[k].y;
		same = k - i;
		mean = stats_mean(y, same);
		spread = same < 2 ? NAN :
			 stats_std(y, same) * sqrt((double)same / (double)(same - 1));
		out->x[made] = p[i].x;
		out->y[made] = mean;
		out->low[made] = mean - spread;
		out->high[made] = mean + spread;
		out->count[made] = same;
	}
	return made;
}

static void fill_curve(const struct frame *rows, const struct sweep_plot *p,
		       struct figure_curve *c, struct arena *a)
{
	struct point *point = arena_alloc(a, rows->n * sizeof(*point));
	struct arrays made = new_arrays(rows->n, a);

	for (size_t i = 0; i < rows->n; i++) {
		frame_number(frame_value(rows->row[i], str_of(p->var_x)), &point[i].x);
		frame_number(frame_value(rows->row[i], str_of(p->var_y)), &point[i].y);
	}
	c->n = average(point, rows->n, &made, a);
	c->x = made.x;
	c->y = made.y;
	c->count = made.count;
	if (p->has_errors) {
		c->low = made.low;
		c->high = made.high;
	}
}

/* ---- curves and panels ---- */

static const char *curve_title(const struct sweep_values *v, const struct frame_keys *keys,
			       const struct json_value *record, struct arena *a)
{
	struct buf text = { 0 };
	char *kept;

	for (size_t k = 0; k < keys->n; k++) {
		if (k)
			buf_add_text(&text, ", ");
		if (keys->n > LOOKS) {
			buf_add_str(&text, keys->name[k]);
			buf_add_char(&text, '=');
		}
		buf_add_str(&text, v[k].text[sweep_values_find(&v[k], record)]);
	}
	kept = arena_text(a, buf_str(&text));
	buf_release(&text);
	return keys->n ? kept : NULL;
}

/* All rows with the same places among the values of some variables. */
struct sets { struct frame *item; size_t n; };

static int split(const struct frame *f, const struct sweep_values *by, struct sets *out,
		 struct arena *a, struct err *e)
{
	out->n = by->n;
	out->item = arena_alloc(a, (by->n + 1) * sizeof(*out->item));
	for (size_t i = 0; i < f->n; i++)
		if (frame_add(&out->item[sweep_values_find(by, f->row[i])], f->row[i], "plot", a, e) < 0)
			return -1;
	return 0;
}

struct figure_maker {
	const struct sweep_plot *plot;
	struct sweep_values rows, cols, curves; /* of all variables of an axis together */
	struct sweep_values *level;             /* of each curve variable alone */
	struct arena *arena;
};

static struct figure_look look_of(const struct figure_maker *m, size_t curve,
				  const struct json_value *record)
{
	size_t n = m->plot->curve_by.n;

	if (n == 0 || n > LOOKS)
		return (struct figure_look){ .color = (unsigned)curve };
	return (struct figure_look){
		.color = (unsigned)sweep_values_find(&m->level[0], record),
		.dash = n > 1 ? (unsigned)sweep_values_find(&m->level[1], record) : 0,
		.width = n > 2 ? (unsigned)sweep_values_find(&m->level[2], record) : 0,
	};
}

static int make_panel(const struct figure_maker *m, const struct frame *rows,
		      struct figure_panel *out, struct err *e)
{
	struct sets by_curve;
	struct figure_curve *curve;

	if (split(rows, &m->curves, &by_curve, m->arena, e) < 0)
		return -1;
	curve = arena_alloc(m->arena, (by_curve.n + 1) * sizeof(*curve));
	out->curve = curve;
	for (size_t i = 0; i < by_curve.n; i++) {
		const struct frame *points = &by_curve.item[i];
		struct figure_curve *c = &curve[out->n_curves];

		if (points->n == 0)
			continue;
		c->title = curve_title(m->level, &m->plot->curve_by, points->row[0], m->arena);
		c->look = look_of(m, i, points->row[0]);
		fill_curve(points, m->plot, c, m->arena);
		out->n_curves++;
	}
	return 0;
}

static const char *panel_title(const struct figure_maker *m, size_t row, size_t col)
{
	const char *top = m->plot->row_by.n ? m->rows.text[row].p : "";
	const char *below = m->plot->col_by.n ? m->cols.text[col].p : "";

	if (!*top && !*below)
		return NULL;
	return arena_printf(m->arena, "%s%s%s", top, *top && *below ? "\n" : "", below);
}

static int make_panels(const struct figure_maker *m, const struct frame *f, struct figure *out,
		       struct err *e)
{
	struct figure_panel *panel = arena_alloc(m->arena, m->rows.n * m->cols.n * sizeof(*panel));
	struct sets by_row, by_col;

	out->panel = panel;
	out->rows = m->rows.n;
	out->cols = m->cols.n;
	if (split(f, &m->rows, &by_row, m->arena, e) < 0)
		return -1;
	for (size_t r = 0; r < m->rows.n; r++) {
		if (split(&by_row.item[r], &m->cols, &by_col, m->arena, e) < 0)
			return -1;
		for (size_t c = 0; c < m->cols.n; c++) {
			struct figure_panel *p = &panel[r * m->cols.n + c];

			p->title = panel_title(m, r, c);
			if (make_panel(m, &by_col.item[c], p, e) < 0)
				return -1;
		}
	}
	return 0;
}

static const char *label_of(const char *variable, struct arena *a)
{
	struct buf text = { 0 };
	char *kept;

	figure_axis_label(&text, variable);
	kept = arena_text(a, buf_str(&text));
	buf_release(&text);
	return kept;
}

static const char *legend_title(const struct frame_keys *keys, struct arena *a)
{
	const char *text = "";

	if (keys->n == 0 || keys->n > LOOKS)
		return NULL;
	for (size_t k = 0; k < keys->n; k++)
		text = arena_printf(a, "%s%s%.*s", text, k ? ",\n" : "", (int)keys->name[k].n,
				    keys->name[k].p);
	return text;
}

int sweep_plot_figure(const struct frame *f, const struct sweep_plot *p, struct figure *out,
		      struct arena *a, struct err *e)
{
	struct figure_maker m = { .plot = p, .arena = a };
	struct frame kept, binned, rows = { 0 };

	if (check_columns(f, p, e) < 0 || frame_filter(f, &p->filter_by, &kept, a, e) < 0 ||
	    frame_bin(&kept, &p->bin_by, &binned, a, e) < 0 ||
	    keep_numbers(&binned, p, &rows, a, e) < 0)
		return -1;
	if (rows.n == 0)
		return 0;
	*out = (struct figure){
		.title = p->title,
		.x_label = label_of(p->var_x, a), .y_label = label_of(p->var_y, a),
		.legend_title = legend_title(&p->curve_by, a), .x_scale = p->scale_x,
		.y_scale = p->scale_y, .panel_height_in = p->height_in, .dpi = p->dpi,
	};
	m.rows = sweep_values(&rows, &p->row_by, a);
	m.cols = sweep_values(&rows, &p->col_by, a);
	m.curves = sweep_values(&rows, &p->curve_by, a);
	m.level = arena_alloc(a, (p->curve_by.n + 1) * sizeof(*m.level));
	for (size_t k = 0; k < p->curve_by.n; k++) {
		struct frame_keys one = { &p->curve_by.name[k], 1 };

		m.level[k] = sweep_values_plain(&rows, &one, a);
	}
	return make_panels(&m, &rows, out, e) < 0 ? -1 : 1;
}
