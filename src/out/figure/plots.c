/* SPDX-License-Identifier: Apache-2.0 */
/* plots.c - see plots.h: results as points and lines of a figure. */
#include "out/figure/plots.h"

#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "core/stats/stats.h"

/*
 * The different values of one or more variables, in order: numbers by size, then texts, then what
 * is null or missing.
 */
struct sweep_values {
	struct frame_keys keys;
	const struct json_value **record; /* one that has the value */
	struct str *text;                 /* NUL-terminated */
	size_t n;                         /* without variables: 1 */
};

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

/* Texts are "k=v" lines; plain ones the values alone. */
static struct sweep_values sweep_values(const struct frame *f, const struct frame_keys *keys,
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

static size_t sweep_values_find(const struct sweep_values *v, const struct json_value *record)
{
	size_t at = lower_bound(v, record);

	return at < v->n ? at : v->n - 1;
}

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

struct plot_point { double x, y; };

static int by_x(const void *a, const void *b)
{
	const struct plot_point *p = a, *q = b;

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
static size_t average(struct plot_point *p, size_t n, const struct arrays *out, struct arena *a)
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

	figure_axis_label(&text, variable);
	return arena_take(a, &text).p;
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

#define KEYS_MAX 3
#define SHOWN 600 /* bytes of a record in a message */

/* ---- numbers of a record ---- */

static const struct json_value *spelled(const struct json_value *record, const char *key, char from,
					char to)
{
	char other[256];
	size_t n = strlen(key);

	if (n >= sizeof(other))
		return NULL;
	for (size_t i = 0; i <= n; i++)
		other[i] = key[i] == from ? to : key[i];
	return frame_value(record, (struct str){ other, n });
}

static const struct json_value *first_present(const struct json_value *record,
					      const char *const *keys)
{
	for (; *keys; keys++) {
		const struct json_value *v = frame_value(record, str_of(*keys));

		v = v ? v : spelled(record, *keys, '_', '-');
		v = v ? v : spelled(record, *keys, '-', '_');
		if (v)
			return v;
	}
	return NULL;
}

static int not_numeric(const struct json_value *record, const char *const *keys,
		       const struct json_value *v, struct err *e)
{
	struct buf names = { 0 }, value = { 0 }, shown = { 0 };

	for (size_t i = 0; keys[i]; i++) {
		buf_add_text(&names, i ? ", " : "");
		json_repr_str(&names, str_of(keys[i]));
	}
	json_repr(&value, v);
	json_repr(&shown, record);
	err_set(e, ERR_RUN, "Expected numeric value for one of [%s], but found %.*s in run_data=%.*s",
		names.data, 100, value.data, SHOWN, shown.data);
	buf_release(&names);
	buf_release(&value);
	buf_release(&shown);
	return -1;
}

/* 1: *out is the value; 0: none of the keys is there, or null; -1: it is no number. */
static int numeric(const struct json_value *record, const char *const *keys, double *out,
		   struct err *e)
{
	const struct json_value *v = first_present(record, keys);

	if (!v || v->kind == JSON_NULL)
		return 0;
	if (frame_number(v, out) || (v->kind == JSON_STRING && frame_float(v->text, out)))
		return 1;
	return not_numeric(record, keys, v, e);
}

/* Likewise, 0 counting as none. */
static int count_of(const struct json_value *record, const char *const *keys, double *out,
		    struct err *e)
{
	int found = numeric(record, keys, out, e);

	return found > 0 && *out == 0 ? 0 : found;
}

static int users_of(const struct json_value *record, const struct sweep_pareto_opts *o, double *out,
		    enum sweep_users *kind, struct err *e)
{
	static const char *const peak[] = { "max_concurrent_requests", NULL };
	const char *asked[KEYS_MAX] = { "request_rate" };
	bool has_var = o->user_count_var && *o->user_count_var;
	int found;

	if (has_var) {
		asked[0] = o->user_count_var;
		asked[1] = "request_rate";
	}
	found = count_of(record, asked, out, e);
	*kind = has_var && first_present(record, (const char *[]){ asked[0], NULL }) ?
		SWEEP_USERS_ASKED : SWEEP_USERS_RATE;
	if (found == 0) {
		*kind = SWEEP_USERS_PEAK;
		found = count_of(record, peak, out, e);
	}
	return found;
}

static int gpus_of(const struct json_value *record, const struct sweep_pareto_opts *o, double *out,
		   struct err *e)
{
	static const char *const known[] = { "num_gpus", "gpu_count", NULL };
	static const char *const sizes[][KEYS_MAX] = {
		{ "tensor_parallel_size", "tp" }, { "pipeline_parallel_size", "pp" },
		{ "data_parallel_size", "dp" },
	};
	const char *asked[] = { o->gpu_count_var, NULL };
	bool has_var = o->gpu_count_var && *o->gpu_count_var;
	int found = has_var ? count_of(record, asked, out, e) : 0;
	double world = 1, size;

	if (found == 0)
		found = count_of(record, known, out, e);
	if (found)
		return found;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		found = count_of(record, sizes[i], &size, e);
		if (found < 0)
			return -1;
		world *= found ? size : 1;
	}
	*out = world;
	return 1;
}

static int by_name(const void *a, const void *b)
{
	const struct str *s = a, *t = b;
	size_t n = s->n < t->n ? s->n : t->n;
	int order = n ? memcmp(s->p, t->p, n) : 0;

	return order ? order : (s->n > t->n) - (s->n < t->n);
}

static int no_throughput(const struct json_value *record, struct err *e)
{
	struct str *key = mem_array(record->count, sizeof(*key));
	struct buf keys = { 0 };

	if (record->count) {
		memcpy(key, record->key, record->count * sizeof(*key));
		qsort(key, record->count, sizeof(*key), by_name);
	}
	for (size_t i = 0; i < record->count; i++) {
		buf_add_text(&keys, i ? ", " : "");
		json_repr_str(&keys, key[i]);
	}
	err_set(e, ERR_RUN, "Cannot find throughput metric 'output_throughput' in run data. Available "
		"keys: [%s]", keys.data ? keys.data : "");
	buf_release(&keys);
	free(key);
	return -1;
}

/* ---- records with what was found ---- */

struct added { const char *key; double value; };

static struct json_value *extended(const struct json_value *record, const struct added *add,
				   size_t n, struct arena *a)
{
	struct json_value *copy = arena_alloc(a, sizeof(*copy));

	*copy = (struct json_value){ .kind = JSON_OBJECT, .count = record->count };
	copy->item = arena_alloc(a, (record->count + n + 1) * sizeof(*copy->item));
	copy->key = arena_alloc(a, (record->count + n + 1) * sizeof(*copy->key));
	if (record->count) {
		memcpy(copy->item, record->item, record->count * sizeof(*copy->item));
		memcpy(copy->key, record->key, record->count * sizeof(*copy->key));
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = 0;

		while (at < copy->count && !str_is(copy->key[at], add[i].key))
			at++;
		copy->count += at == copy->count;
		copy->key[at] = str_of(add[i].key);
		copy->item[at] = (struct json_value){ .kind = JSON_REAL, .real = add[i].value };
	}
	return copy;
}

static int prepare_one(struct sweep_pareto *p, const struct json_value *record,
		       const struct sweep_pareto_opts *o, struct arena *a, struct err *e)
{
	static const char *const key[] = { "output_throughput", NULL };
	double throughput, users, gpus;
	enum sweep_users kind;
	int found = numeric(record, key, &throughput, e);

	if (found <= 0)
		return found < 0 ? -1 : no_throughput(record, e);
	found = users_of(record, o, &users, &kind, e);
	if (found == 0)
		p->n_skipped++;
	if (found <= 0)
		return found;
	if (gpus_of(record, o, &gpus, e) < 0)
		return -1;
	p->n_by[kind]++;
	return frame_add(&p->points, extended(record, (struct added[]){
		{ "tokens_per_user", throughput / users }, { "tokens_per_gpu", throughput / gpus },
		{ "user_count_estimate", users }, { "gpu_count", gpus } }, 4, a), "pareto", a, e);
}

/* ---- runs of one point ---- */

/*
 * What makes runs those of one point: the load, and the parameters, which a sweep writes behind
 * run_number. Without run_number a record is a point of its own.
 */
static void add_identity(const struct json_value *record, size_t number, struct buf *id)
{
	static const char *const load[] = { "request_rate", "max_concurrency", "num_prompts",
					    "burstiness", NULL };
	bool is_parameter = false;

	for (size_t i = 0; load[i]; i++) {
		const struct json_value *v = frame_value(record, str_of(load[i]));

		frame_text(id, v, FRAME_OBJECT);
		buf_add_char(id, '\n');
	}
	for (size_t i = 0; i < record->count; i++) {
		const struct json_value *v = &record->item[i];

		if (is_parameter && v->kind != JSON_OBJECT && v->kind != JSON_ARRAY) {
			if (str_is(record->key[i], "tokens_per_user"))
				break;
			json_repr_str(id, record->key[i]);
			frame_text(id, v, FRAME_OBJECT);
			buf_add_char(id, '\n');
		}
		is_parameter |= str_is(record->key[i], "run_number");
	}
	if (!is_parameter)
		buf_printf(id, "%zu", number);
}

static const struct json_value *mean_of(const struct frame *runs, struct arena *a)
{
	static const char *const keys[] = { "output_throughput", "tokens_per_user",
					    "tokens_per_gpu", "user_count_estimate" };
	struct added add[5] = { { 0 } };

	for (size_t k = 0; k < 4; k++) {
		double sum = 0, v = 0;

		for (size_t i = 0; i < runs->n; i++) {
			frame_number(frame_value(runs->row[i], str_of(keys[k])), &v);
			sum += v;
		}
		add[k] = (struct added){ keys[k], sum / (double)runs->n };
	}
	add[4] = (struct added){ "runs", (double)runs->n };
	return extended(runs->row[0], add, 5, a);
}

static int average_points(struct frame *points, struct arena *a, struct err *e)
{
	struct frame *runs = arena_alloc(a, (points->n + 1) * sizeof(*runs)), out = { 0 };
	struct map seen = { 0 };
	struct buf id = { 0 };
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < points->n; i++) {
		uint64_t at = n;

		buf_reset(&id);
		add_identity(points->row[i], i, &id);
		if (!map_get(&seen, buf_str(&id), &at)) {
			map_put(&seen, arena_str(a, buf_str(&id)), at);
			n++;
		}
		rc = frame_add(&runs[at], points->row[i], "pareto", a, e);
	}
	for (size_t i = 0; rc == 0 && i < n; i++)
		rc = frame_add(&out, mean_of(&runs[i], a), "pareto", a, e);
	map_release(&seen);
	buf_release(&id);
	*points = out;
	return rc;
}

int sweep_pareto(struct sweep_pareto *out, const struct frame *f,
		 const struct sweep_pareto_opts *o, struct arena *a, struct err *e)
{
	*out = (struct sweep_pareto){ 0 };
	for (size_t i = 0; i < f->n; i++)
		if (prepare_one(out, f->row[i], o, a, e) < 0)
			return -1;
	if (o->is_averaged && average_points(&out->points, a, e) < 0)
		return -1;
	out->per_user = arena_alloc(a, (out->points.n + 1) * sizeof(*out->per_user));
	out->per_gpu = arena_alloc(a, (out->points.n + 1) * sizeof(*out->per_gpu));
	out->is_frontier = arena_alloc(a, out->points.n + 1);
	for (size_t i = 0; i < out->points.n; i++) {
		const struct json_value *record = out->points.row[i];

		frame_number(frame_value(record, STR("tokens_per_user")), &out->per_user[i]);
		frame_number(frame_value(record, STR("tokens_per_gpu")), &out->per_gpu[i]);
	}
	out->n_frontier = pareto_frontier(out->per_user, out->per_gpu, out->points.n, o->rule,
					  out->is_frontier);
	return 0;
}

size_t sweep_pareto_usable(const struct sweep_pareto *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->points.n; i++)
		n += !isnan(p->per_user[i]) && !isnan(p->per_gpu[i]);
	return n;
}

/* ---- the figure ---- */

static const char *point_label(const struct json_value *record, const struct frame_keys *keys,
			    struct arena *a)
{
	struct buf text = { 0 };

	for (size_t k = 0; k < keys->n; k++) {
		const struct json_value *v = frame_value(record, keys->name[k]);
		double x;

		if (!v)
			continue;
		if (text.len)
			buf_add_char(&text, '\n');
		buf_add_str(&text, keys->name[k]);
		buf_add_char(&text, '=');
		if (v->kind == JSON_REAL && frame_number(v, &x))
			buf_printf(&text, "%.6g", x);
		else
			frame_text(&text, v, FRAME_OBJECT);
	}
	return text.len ? arena_take(a, &text).p : NULL;
}

struct spot { double x, y; size_t at; };

static int by_spot(const void *a, const void *b)
{
	const struct spot *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return p->y != q->y ? (p->y > q->y ? -1 : 1) : p->at < q->at ? -1 : 1;
}

void sweep_pareto_figure(const struct sweep_pareto *p, const struct sweep_pareto_opts *o,
			 struct figure *out, struct arena *a)
{
	struct spot *spot = arena_alloc(a, (p->n_frontier + 1) * sizeof(*spot));
	double *x = arena_alloc(a, (p->n_frontier + 1) * sizeof(*x));
	double *y = arena_alloc(a, (p->n_frontier + 1) * sizeof(*y));
	const char **label = arena_alloc(a, (p->n_frontier + 1) * sizeof(*label));
	struct figure_curve *curve = arena_alloc(a, 2 * sizeof(*curve));
	struct figure_panel *panel = arena_alloc(a, sizeof(*panel));
	size_t n = 0;

	for (size_t i = 0; i < p->points.n; i++)
		if (p->is_frontier[i])
			spot[n++] = (struct spot){ p->per_user[i], p->per_gpu[i], i };
	if (n)
		qsort(spot, n, sizeof(*spot), by_spot);
	for (size_t i = 0; i < n; i++) {
		x[i] = spot[i].x;
		y[i] = spot[i].y;
		label[i] = point_label(p->points.row[spot[i].at], &o->label_by, a);
	}
	curve[0] = (struct figure_curve){
		.title = o->is_averaged ? "All points" : "All runs", .style = FIGURE_POINTS,
		.look.is_muted = true, .n = p->points.n, .x = p->per_user, .y = p->per_gpu,
	};
	curve[1] = (struct figure_curve){
		.title = "Pareto frontier", .n = n, .x = x, .y = y, .label = label,
	};
	*panel = (struct figure_panel){ .curve = curve, .n_curves = 2 };
	*out = (struct figure){
		.x_label = "Tokens/s/user", .y_label = "Tokens/s/GPU", .panel = panel, .rows = 1,
		.cols = 1,
	};
}

void sweep_pareto_csv(const struct sweep_pareto *p, struct buf *out)
{
	struct frame all = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < p->points.n; i++) {
		struct json_value *record = extended(p->points.row[i], NULL, 0, &a);

		record->key[record->count] = STR("is_frontier");
		record->item[record->count++] = (struct json_value){
			.kind = p->is_frontier[i] ? JSON_TRUE : JSON_FALSE };
		frame_add(&all, record, "pareto", &a, &e);
	}
	frame_csv(&all, out);
	arena_release(&a);
}
