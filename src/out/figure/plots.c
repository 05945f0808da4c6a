/* SPDX-License-Identifier: Apache-2.0 */
/* plots.c - see plots.h: results as points and lines of a figure. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "core/schema/schema.h"
#include "core/stats/stats.h"
#include "out/figure/plots_internal.h"

/* 0 a number, 1 a text or a container, 2 nothing. */
static int rank(const struct json_value *v, double *number)
{
	if (!v || v->kind == JSON_NULL)
		return 2;
	return !frame_number(v, number);
}

static int compare_one(const struct json_value *a, const struct json_value *b)
{
	double x = 0, y = 0;
	int i = rank(a, &x), j = rank(b, &y), order = i - j;
	struct buf s = { 0 }, t = { 0 };

	if (order || i == 2)
		return order;
	if (i == 0 && x == x && y == y)
		return (x > y) - (x < y);
	frame_text(&s, a, FRAME_OBJECT);
	frame_text(&t, b, FRAME_OBJECT);
	order = strcmp(s.data ? s.data : "", t.data ? t.data : "");
	buf_release(&s);
	buf_release(&t);
	return order;
}

static int compare(const struct frame_keys *keys, const struct json_value *a,
		   const struct json_value *b)
{
	int order = 0;

	for (size_t k = 0; order == 0 && k < keys->n; k++)
		order = compare_one(frame_value(a, keys->name[k]), frame_value(b, keys->name[k]));
	return order;
}

/* The first place whose record is not below; keys compare by the variables of the set. */
static size_t lower_bound(const struct sweep_values *v, const struct json_value *record)
{
	size_t low = 0, high = v->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (compare(&v->keys, v->record[middle], record) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct str text_of(const struct json_value *record, const struct frame_keys *keys,
			  bool is_plain, struct arena *a)
{
	struct buf text = { 0 };

	for (size_t k = 0; k < keys->n; k++) {
		const struct json_value *v = frame_value(record, keys->name[k]);

		if (k)
			buf_add_char(&text, '\n');
		if (!is_plain) {
			buf_add_str(&text, keys->name[k]);
			buf_add_char(&text, '=');
		}
		if (v)
			frame_text(&text, v, FRAME_OBJECT);
		else
			buf_add_text(&text, "None");
	}
	return arena_take(a, &text);
}

struct sweep_values sweep_values(const struct frame *f, const struct frame_keys *keys,
				bool is_plain, struct arena *a)
{
	struct sweep_values v = { .keys = *keys };

	v.record = arena_alloc(a, (f->n + 1) * sizeof(*v.record));
	for (size_t i = 0; i < f->n; i++) {
		size_t at = lower_bound(&v, f->row[i]);

		if (at < v.n && compare(keys, v.record[at], f->row[i]) == 0)
			continue;
		memmove(&v.record[at + 1], &v.record[at], (v.n - at) * sizeof(*v.record));
		v.record[at] = f->row[i];
		v.n++;
	}
	v.text = arena_alloc(a, (v.n + 1) * sizeof(*v.text));
	for (size_t i = 0; i < v.n; i++)
		v.text[i] = text_of(v.record[i], keys, is_plain, a);
	return v;
}

size_t sweep_values_find(const struct sweep_values *v, const struct json_value *record)
{
	size_t at = lower_bound(v, record);

	assert(v->n > 0);
	return at < v->n ? at : v->n - 1;
}

/* ---- loads, configurations, runs of one point ---- */

/* name: of the load, which a store calls "benchmark.NAME". */
static double load_of(const struct json_value *record, const char *name)
{
	char key[64];
	double v;

	if (frame_number(frame_value(record, str_of(name)), &v))
		return isnan(v) ? INFINITY : v;
	snprintf(key, sizeof(key), "benchmark.%s", name);
	return frame_number(frame_value(record, str_of(key)), &v) && !isnan(v) ? v : INFINITY;
}

struct plot_load plot_load(const struct json_value *record)
{
	return (struct plot_load){ load_of(record, "request_rate"),
				   load_of(record, "max_concurrency") };
}

int plot_load_compare(const struct plot_load *a, const struct plot_load *b)
{
	int order = (a->rate > b->rate) - (a->rate < b->rate);

	return order ? order
		     : (a->concurrency > b->concurrency) - (a->concurrency < b->concurrency);
}

const char *plot_load_text(const struct plot_load *load, struct arena *a)
{
	if (isinf(load->rate) && isinf(load->concurrency))
		return "all at once";
	if (isinf(load->rate))
		return arena_printf(a, "c=%.6g", load->concurrency);
	if (isinf(load->concurrency))
		return arena_printf(a, "%.6g/s", load->rate);
	return arena_printf(a, "%.6g/s, c=%.6g", load->rate, load->concurrency);
}

static const char *const load_keys[] = { "request_rate", "max_concurrency", "num_prompts",
					 "burstiness", NULL };

bool plots_is_load_key(struct str key)
{
	for (size_t i = 0; load_keys[i]; i++)
		if (str_is(key, load_keys[i]))
			return true;
	return false;
}

bool plots_next_parameter(const struct json_value *record, size_t *i)
{
	size_t k = *i;

	while (k < record->count && *i == 0 && !str_is(record->key[k], "run_number"))
		k++;
	for (k++; k < record->count; k++) {
		const struct json_value *v = &record->item[k];

		if (str_is(record->key[k], "tokens_per_user"))
			return false; /* sweep_pareto() has added what follows */
		if (v->kind != JSON_OBJECT && v->kind != JSON_ARRAY) {
			*i = k;
			return true;
		}
	}
	return false;
}

static void add_parameters(const struct json_value *record, bool has_load, struct buf *id)
{
	for (size_t i = 0; plots_next_parameter(record, &i);)
		if (has_load || !plots_is_load_key(record->key[i])) {
			json_repr_str(id, record->key[i]);
			frame_text(id, &record->item[i], FRAME_OBJECT);
			buf_add_char(id, '\n');
		}
}

void plots_add_identity(const struct json_value *record, size_t number, struct buf *id)
{
	for (size_t i = 0; load_keys[i]; i++) {
		frame_text(id, frame_value(record, str_of(load_keys[i])), FRAME_OBJECT);
		buf_add_char(id, '\n');
	}
	add_parameters(record, true, id);
	if (!frame_value(record, STR("run_number")))
		buf_printf(id, "%zu", number);
}

size_t plots_index_of(struct map *seen, size_t *n, const struct buf *text, struct arena *a)
{
	uint64_t at = *n;

	if (!map_get(seen, buf_str(text), &at))
		map_put(seen, arena_str(a, buf_str(text)), (*n)++);
	return (size_t)at;
}


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

struct plot_point { double x, y; };

static int by_x(const void *a, const void *b)
{
	const struct plot_point *p = a, *q = b;

	return (p->x > q->x) - (p->x < q->x);
}

struct plot_arrays { double *x, *y, *low, *high; size_t *count; };

static struct plot_arrays new_arrays(size_t n, struct arena *a)
{
	return (struct plot_arrays){
		arena_alloc(a, n * sizeof(double)), arena_alloc(a, n * sizeof(double)),
		arena_alloc(a, n * sizeof(double)), arena_alloc(a, n * sizeof(double)),
		arena_alloc(a, n * sizeof(size_t)),
	};
}

/* Mean of equal x, plus and minus the standard deviation of a sample. */
static size_t average(struct plot_point *p, size_t n, const struct plot_arrays *out,
		      struct arena *a)
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
	struct plot_point *point = arena_alloc(a, rows->n * sizeof(*point));
	struct plot_arrays made = new_arrays(rows->n, a);

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

/* ---- points of a measured x ---- */

struct measured_load {
	double x, y, squares;     /* sums, then means; of the differences from the mean of y */
	struct plot_load load;
	size_t n, configuration;
};

static bool is_measured(const char *variable)
{
	const struct schema_field *field = schema_field_find(variable);

	return field && field->better != SCHEMA_NONE;
}

static int by_configuration(const void *a, const void *b)
{
	const struct measured_load *p = a, *q = b;
	int order = (p->configuration > q->configuration) - (p->configuration < q->configuration);

	order = order ? order : plot_load_compare(&p->load, &q->load);
	return order ? order : (p->x > q->x) - (p->x < q->x);
}

/* The runs as points in the order of connection; returns their number. */
static size_t measure(const struct frame *rows, const struct sweep_plot *p,
		      struct measured_load *out, struct arena *a)
{
	struct map points = { 0 }, configurations = { 0 };
	struct buf id = { 0 };
	size_t *at = arena_alloc(a, rows->n * sizeof(*at)), n = 0, n_configurations = 0;
	double x, y;

	for (size_t i = 0; i < rows->n; i++) {
		struct measured_load *m;

		buf_reset(&id);
		plots_add_identity(rows->row[i], i, &id);
		at[i] = plots_index_of(&points, &n, &id, a);
		m = &out[at[i]];
		buf_reset(&id);
		add_parameters(rows->row[i], false, &id);
		m->configuration = plots_index_of(&configurations, &n_configurations, &id, a);
		m->load = plot_load(rows->row[i]);
		frame_number(frame_value(rows->row[i], str_of(p->var_x)), &x);
		frame_number(frame_value(rows->row[i], str_of(p->var_y)), &y);
		m->x += x;
		m->y += y;
		m->n++;
	}
	for (size_t i = 0; i < n; i++) {
		out[i].x /= (double)out[i].n;
		out[i].y /= (double)out[i].n;
		if (n_configurations == n) { /* at one load each: they are connected by x */
			out[i].configuration = 0;
			out[i].load = (struct plot_load){ 0 };
		}
	}
	for (size_t i = 0; i < rows->n; i++) {
		frame_number(frame_value(rows->row[i], str_of(p->var_y)), &y);
		out[at[i]].squares += (y - out[at[i]].y) * (y - out[at[i]].y);
	}
	if (n)
		qsort(out, n, sizeof(*out), by_configuration);
	map_release(&points);
	map_release(&configurations);
	buf_release(&id);
	return n;
}

/* A curve for each configuration, all with the title and look of *like; gives their number. */
static size_t measured_curves(const struct frame *rows, const struct sweep_plot *p,
			      const struct figure_curve *like, struct figure_curve *out,
			      struct arena *a)
{
	struct measured_load *m = arena_alloc(a, rows->n * sizeof(*m));
	struct plot_arrays made = new_arrays(rows->n, a);
	size_t n = measure(rows, p, m, a), curves = 0;

	for (size_t i = 0; i < n; i++) {
		double spread = m[i].n < 2 ? NAN : sqrt(m[i].squares / (double)(m[i].n - 1));

		made.x[i] = m[i].x;
		made.y[i] = m[i].y;
		made.low[i] = m[i].y - spread;
		made.high[i] = m[i].y + spread;
		made.count[i] = m[i].n;
		if (i == 0 || m[i].configuration != m[i - 1].configuration) {
			out[curves] = *like;
			out[curves].x = &made.x[i];
			out[curves].y = &made.y[i];
			out[curves].count = &made.count[i];
			out[curves].low = p->has_errors ? &made.low[i] : NULL;
			out[curves++].high = p->has_errors ? &made.high[i] : NULL;
		}
		out[curves - 1].n++;
	}
	return curves;
}

/* ---- curves and panels ---- */

static const char *curve_title(const struct sweep_values *v, const struct frame_keys *keys,
			       const struct json_value *record, struct arena *a)
{
	struct buf text = { 0 };
	const char *kept;

	for (size_t k = 0; k < keys->n; k++) {
		if (k)
			buf_add_text(&text, ", ");
		if (keys->n > LOOKS) {
			buf_add_str(&text, keys->name[k]);
			buf_add_char(&text, '=');
		}
		buf_add_str(&text, v[k].text[sweep_values_find(&v[k], record)]);
	}
	kept = arena_take(a, &text).p;
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
	curve = arena_alloc(m->arena, (rows->n + 1) * sizeof(*curve));
	out->curve = curve;
	for (size_t i = 0; i < by_curve.n; i++) {
		const struct frame *points = &by_curve.item[i];
		struct figure_curve c = { 0 };

		if (points->n == 0)
			continue;
		c.title = curve_title(m->level, &m->plot->curve_by, points->row[0], m->arena);
		c.look = look_of(m, i, points->row[0]);
		if (is_measured(m->plot->var_x)) {
			out->n_curves += measured_curves(points, m->plot, &c, &curve[out->n_curves],
							 m->arena);
		} else {
			fill_curve(points, m->plot, &c, m->arena);
			curve[out->n_curves++] = c;
		}
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

	figure_axis_label(&text, variable);
	return arena_take(a, &text).p;
}

const char *plots_legend_title(const struct frame_keys *keys, struct arena *a)
{
	const char *text = "";

	if (keys->n == 0 || keys->n > LOOKS)
		return NULL;
	for (size_t k = 0; k < keys->n; k++)
		text = arena_printf(a, "%s%s%.*s", text, k ? ", " : "", (int)keys->name[k].n,
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
		.legend_title = plots_legend_title(&p->curve_by, a), .x_scale = p->scale_x,
		.y_scale = p->scale_y, .panel_height_in = p->height_in, .dpi = p->dpi,
	};
	m.rows = sweep_values(&rows, &p->row_by, false, a);
	m.cols = sweep_values(&rows, &p->col_by, false, a);
	m.curves = sweep_values(&rows, &p->curve_by, false, a);
	m.level = arena_alloc(a, (p->curve_by.n + 1) * sizeof(*m.level));
	for (size_t k = 0; k < p->curve_by.n; k++) {
		struct frame_keys one = { &p->curve_by.name[k], 1 };

		m.level[k] = sweep_values(&rows, &one, true, a);
	}
	return make_panels(&m, &rows, out, e) < 0 ? -1 : 1;
}
