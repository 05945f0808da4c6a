/* SPDX-License-Identifier: Apache-2.0 */
/* pareto.c - see plots.h: tokens per user against tokens per GPU. */
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "out/figure/plots_internal.h"
#include "results/read/kind.h"

#define KEYS_MAX 3
#define COLOR_KEYS_MAX LOOKS
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

/* 1: *out is the value; 0: the record has none of the keys, or null; -1: not a number. */
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

/* The same; a value of 0 counts as missing. */
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
	if (result_verdict(record, str_of(*key)) == RESULT_INVALID) {
		p->n_invalid++;
		return 0;
	}
	found = users_of(record, o, &users, &kind, e);
	if (found == 0)
		p->n_skipped++;
	if (found <= 0)
		return found;
	if (gpus_of(record, o, &gpus, e) < 0)
		return -1;
	p->n_by[kind]++;
	p->n_degraded += result_verdict(record, str_of(*key)) == RESULT_DEGRADED;
	return frame_add(&p->points, extended(record, (struct added[]){
		{ "tokens_per_user", throughput / users }, { "tokens_per_gpu", throughput / gpus },
		{ "user_count_estimate", users }, { "gpu_count", gpus } }, 4, a), "pareto", a, e);
}

/* ---- the mean of the runs of one point ---- */

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
		buf_reset(&id);
		plots_add_identity(points->row[i], i, &id);
		rc = frame_add(&runs[plots_index_of(&seen, &n, &id, a)], points->row[i], "pareto", a, e);
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

struct pareto_spot { double x, y; size_t at; };

static int by_spot(const void *a, const void *b)
{
	const struct pareto_spot *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return p->y != q->y ? (p->y > q->y ? -1 : 1) : p->at < q->at ? -1 : 1;
}

/*
 * Parameters of the sweep that differ among the points, without the load and without those that are
 * determined by others, such as the number of GPUs by their kind.
 */
static struct frame_keys differing(const struct frame *points, struct arena *a)
{
	struct frame_keys keys = { .name = arena_alloc(a, COLOR_KEYS_MAX * sizeof(*keys.name)) };
	struct map seen = { 0 };
	size_t n = 1;

	for (size_t r = 0; r < points->n; r++)
		for (size_t i = 0; plots_next_parameter(points->row[r], &i);) {
			struct str key = points->row[r]->key[i];
			size_t with;

			if (plots_is_load_key(key) || map_get(&seen, key, NULL) ||
			    keys.n == COLOR_KEYS_MAX)
				continue;
			map_put(&seen, key, 1);
			keys.name[keys.n++] = key;
			with = sweep_values(points, &keys, true, a).n;
			if (with == n)
				keys.n--;
			n = with;
		}
	map_release(&seen);
	return keys;
}

/* "b200, 8" from the values of some keys, one per line in text. */
static const char *one_line(struct str text, struct arena *a)
{
	struct buf out = { 0 };

	while (text.n) {
		struct str value = str_cut(&text, '\n');

		if (str_ends(value, STR(".0")))
			value.n -= 2;
		buf_add_str(&out, value);
		buf_add_text(&out, text.n ? ", " : "");
	}
	return arena_take(a, &out).p;
}

/* The points of each configuration; without one that differs all of them, as context. */
static size_t point_curves(const struct sweep_pareto *p, const struct sweep_values *by,
			   bool is_averaged, struct figure_curve *out, struct arena *a)
{
	if (by->n < 2) {
		out[0] = (struct figure_curve){
			.title = is_averaged ? "All points" : "All runs", .style = FIGURE_POINTS,
			.look.is_muted = true, .n = p->points.n, .x = p->per_user, .y = p->per_gpu,
		};
		return 1;
	}
	for (size_t k = 0; k < by->n; k++) {
		double *x = arena_alloc(a, p->points.n * sizeof(*x));
		double *y = arena_alloc(a, p->points.n * sizeof(*y));

		out[k] = (struct figure_curve){
			.title = one_line(by->text[k], a), .style = FIGURE_POINTS,
			.look.color = (unsigned)k, .x = x, .y = y,
		};
		for (size_t i = 0; i < p->points.n; i++)
			if (sweep_values_find(by, p->points.row[i]) == k) {
				x[out[k].n] = p->per_user[i];
				y[out[k].n++] = p->per_gpu[i];
			}
	}
	return by->n;
}

static struct figure_curve frontier_curve(const struct sweep_pareto *p,
					  const struct sweep_pareto_opts *o, struct arena *a)
{
	struct pareto_spot *spot = arena_alloc(a, (p->n_frontier + 1) * sizeof(*spot));
	double *x = arena_alloc(a, (p->n_frontier + 1) * sizeof(*x));
	double *y = arena_alloc(a, (p->n_frontier + 1) * sizeof(*y));
	const char **label = arena_alloc(a, (p->n_frontier + 1) * sizeof(*label));
	size_t n = 0;

	for (size_t i = 0; i < p->points.n; i++)
		if (p->is_frontier[i])
			spot[n++] = (struct pareto_spot){ p->per_user[i], p->per_gpu[i], i };
	if (n)
		qsort(spot, n, sizeof(*spot), by_spot);
	for (size_t i = 0; i < n; i++) {
		const struct json_value *record = p->points.row[spot[i].at];
		struct plot_load load = plot_load(record);

		x[i] = spot[i].x;
		y[i] = spot[i].y;
		label[i] = o->label_by.n ? point_label(record, &o->label_by, a) :
			   plot_load_text(&load, a);
	}
	return (struct figure_curve){
		.title = "Pareto frontier", .n = n, .x = x, .y = y, .label = label,
	};
}

void sweep_pareto_figure(const struct sweep_pareto *p, const struct sweep_pareto_opts *o,
			 struct figure *out, struct arena *a)
{
	struct frame_keys keys = differing(&p->points, a);
	struct sweep_values by = sweep_values(&p->points, &keys, true, a);
	struct figure_curve *curve = arena_alloc(a, (by.n + 2) * sizeof(*curve));
	struct figure_panel *panel = arena_alloc(a, sizeof(*panel));
	size_t n = point_curves(p, &by, o->is_averaged, curve, a);

	curve[n] = frontier_curve(p, o, a);
	if (n > 1) { /* the points have their colors already */
		curve[n].style = FIGURE_LINE;
		curve[n].look.is_ink = true;
	}
	*panel = (struct figure_panel){ .curve = curve, .n_curves = n + 1 };
	*out = (struct figure){
		.x_label = "Tokens/s/user", .y_label = "Tokens/s/GPU", .panel = panel, .rows = 1,
		.cols = 1, .legend_title = n > 1 ? plots_legend_title(&keys, a) : NULL,
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
