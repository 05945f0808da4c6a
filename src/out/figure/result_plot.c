/* SPDX-License-Identifier: Apache-2.0 */
/* result_plot.c - see plots.h: results of any kind. */
#include "out/figure/plots.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/schema/schema.h"
#include "core/stats/curve.h"
#include "results/read/kind.h"

#define PARAMETERS_MAX 8   /* that make curves by themselves */
#define LABELS_MAX 60      /* points in a figure whose loads are written next to them */
#define NAMES_SHOWN 12     /* of metrics, in an error */

struct load_point {
	double x, y;              /* sums until they are divided */
	struct plot_load load;
	size_t n;
	const char *name;         /* of its curve */
	size_t curve;
};

struct load_points {
	struct load_point *v;
	size_t n, n_curves;
	struct arena *a;
};

/* ---- what makes curves ---- */

static bool is_scalar(const struct json_value *v)
{
	return v && v->kind != JSON_OBJECT && v->kind != JSON_ARRAY && v->kind != JSON_NULL;
}

/* Keys that say when or under which number a run was made, or how much load there was. */
static bool is_no_parameter(struct str key)
{
	static const char *const name[] = {
		"run_number", "request_rate", "max_concurrency", "num_prompts", "date", "tokenizer_id",
		"endpoint_type", "run_id", "timestamp", "name", "repeat", "seed", "_benchmark_name",
		"result_dir", "result_filename", "record", "output_json", "request_id_prefix",
		"prompt_salt", "metric_percentiles", "system_gpus", "system_pid", "host", "port",
		"base_url", "env", "servers",
	};

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (str_is(key, name[i]))
			return true;
	return false;
}

static bool differs(const struct frame *f, struct str key)
{
	struct buf first = { 0 }, other = { 0 };
	bool is_other = false;

	for (size_t i = 0; i < f->n && !is_other; i++) {
		struct buf *text = i ? &other : &first;

		buf_reset(text);
		frame_text(text, frame_value(f->row[i], key), FRAME_OBJECT);
		is_other = i && !str_eq(buf_str(&first), buf_str(&other));
	}
	buf_release(&first);
	buf_release(&other);
	return is_other;
}

/* "profllm.options.random_input_len": the last word. */
static struct str short_name(struct str key)
{
	for (size_t i = key.n; i > 0; i--)
		if (key.p[i - 1] == '.')
			return (struct str){ key.p + i, key.n - i };
	return key;
}

static bool is_wanted(const struct frame *f, struct str key)
{
	for (size_t i = 0; i < f->n; i++)
		if (is_scalar(frame_value(f->row[i], key)))
			return differs(f, key);
	return false;
}

static bool is_listed(const struct frame_keys *keys, struct str key)
{
	for (size_t i = 0; i < keys->n; i++)
		if (str_eq(keys->name[i], key))
			return true;
	return false;
}

/*
 * A parameter is what no result has by itself (of a sweep, a server's command line, --metadata), or
 * an option of the load.
 */
static struct frame_keys parameters(const struct frame *f, struct arena *a)
{
	static const char *const named[] = { "model_id", "backend", "label" };
	struct frame_columns all = frame_columns(f, a);
	struct frame_keys keys = { .name = arena_alloc(a, PARAMETERS_MAX * sizeof(*keys.name)) };
	bool is_store = frame_has_column(f, STR("benchmark.num_prompts"));

	for (size_t i = 0; i < all.n && keys.n < PARAMETERS_MAX; i++) {
		const char *name = arena_text(a, all.name[i]);
		bool is_result = schema_field_find(name) != NULL || str_is(all.name[i], "profllm");

		if (is_store) /* what was configured, of the many columns that a run has there */
			is_result = !str_starts(all.name[i], STR("benchmark.")) &&
				    !str_starts(all.name[i], STR("server."));
		for (size_t k = 0; k < sizeof(named) / sizeof(*named); k++)
			is_result &= strcmp(name, named[k]) != 0;
		if (!is_result && !is_no_parameter(short_name(all.name[i])) &&
		    is_wanted(f, all.name[i]))
			keys.name[keys.n++] = all.name[i];
	}
	for (size_t r = 0; r < f->n; r++) {
		const struct json_value *o = frame_value(f->row[r], STR("profllm.options"));

		for (size_t i = 0; o && o->kind == JSON_OBJECT && i < o->count &&
		     keys.n < PARAMETERS_MAX; i++) {
			struct str key = str_of(arena_printf(a, "profllm.options.%.*s",
							     (int)o->key[i].n, o->key[i].p));

			if (!is_no_parameter(o->key[i]) && !is_listed(&keys, o->key[i]) &&
			    !is_listed(&keys, key) && is_wanted(f, key))
				keys.name[keys.n++] = key;
		}
	}
	return keys;
}

/* "max_num_seqs=8, tp=2", or the value alone where one key makes all curves. */
static const char *curve_name(const struct json_value *record, const struct frame_keys *keys,
			      struct arena *a)
{
	struct buf text = { 0 };

	for (size_t k = 0; k < keys->n; k++) {
		const struct json_value *v = frame_value(record, keys->name[k]);

		if (k)
			buf_add_text(&text, ", ");
		if (keys->n > 1)
			buf_printf(&text, "%.*s=", (int)short_name(keys->name[k]).n,
				   short_name(keys->name[k]).p);
		if (is_scalar(v))
			frame_text(&text, v, FRAME_OBJECT);
		else
			buf_add_text(&text, "-");
	}
	return arena_take(a, &text).p;
}

/* ---- points ---- */

/* A metric by its key, also without what stands before it in a result. */
static const struct json_value *metric_value(const struct json_value *record, const char *name)
{
	static const char *const before[] = { "", "derived.", "profllm." };
	const struct json_value *v = NULL;
	char key[128];

	for (size_t i = 0; !v && i < sizeof(before) / sizeof(*before); i++) {
		snprintf(key, sizeof(key), "%s%s", before[i], name);
		v = frame_value(record, str_of(key));
	}
	return v;
}

static bool has_metric(const struct frame *f, const char *name)
{
	for (size_t i = 0; i < f->n; i++)
		if (metric_value(f->row[i], name))
			return true;
	return false;
}

static void add_point(struct load_points *p, struct map *places, struct map *curves,
		      const struct load_point *one)
{
	struct buf id = { 0 };
	uint64_t at = p->n, curve = p->n_curves;
	struct load_point *to;

	if (!map_get(curves, str_of(one->name), &curve)) {
		map_put(curves, str_of(one->name), curve);
		p->n_curves++;
	}
	buf_printf(&id, "%llu %.17g %.17g", (unsigned long long)curve, one->load.rate,
		   one->load.concurrency);
	if (!map_get(places, buf_str(&id), &at)) {
		map_put(places, arena_str(p->a, buf_str(&id)), at);
		p->v[p->n] = *one;
		p->v[p->n].x = p->v[p->n].y = 0;
		p->v[p->n++].curve = (size_t)curve;
	}
	to = &p->v[at];
	to->x += one->x;
	to->y += one->y;
	to->n++;
	buf_release(&id);
}

static int by_load(const void *a, const void *b)
{
	const struct load_point *p = a, *q = b;

	if (p->curve != q->curve)
		return p->curve < q->curve ? -1 : 1;
	return plot_load_compare(&p->load, &q->load);
}

static void collect(const struct frame *f, const struct result_plot *p,
		    const struct frame_keys *keys, struct load_points *out,
		    struct result_plot_told *told)
{
	struct map places = { 0 }, curves = { 0 };

	out->v = arena_alloc(out->a, (f->n + 1) * sizeof(*out->v));
	for (size_t i = 0; i < f->n; i++) {
		const struct json_value *r = f->row[i];
		struct load_point one = { .load = plot_load(r) };
		enum result_verdict x = result_verdict(r, str_of(p->var_x));
		enum result_verdict y = result_verdict(r, str_of(p->var_y));
		enum result_verdict worst = x > y ? x : y;

		told->n++;
		if (!frame_number(metric_value(r, p->var_x), &one.x) || !isfinite(one.x) ||
		    !frame_number(metric_value(r, p->var_y), &one.y) || !isfinite(one.y)) {
			told->n_incomplete++;
			continue;
		}
		told->n_invalid += worst == RESULT_INVALID;
		told->n_degraded += worst == RESULT_DEGRADED;
		if (worst == RESULT_INVALID && !p->has_invalid)
			continue;
		one.name = curve_name(r, keys, out->a);
		add_point(out, &places, &curves, &one);
	}
	for (size_t i = 0; i < out->n; i++) {
		out->v[i].x /= (double)out->v[i].n;
		out->v[i].y /= (double)out->v[i].n;
	}
	if (out->n)
		qsort(out->v, out->n, sizeof(*out->v), by_load);
	map_release(&places);
	map_release(&curves);
}

/* ---- the figure ---- */

static struct figure_curve *make_curves(const struct load_points *all, bool is_points,
					struct arena *a)
{
	struct figure_curve *curve = arena_alloc(a, (all->n_curves + 2) * sizeof(*curve));
	double *x = arena_alloc(a, (all->n + 1) * sizeof(*x));
	double *y = arena_alloc(a, (all->n + 1) * sizeof(*y));
	size_t *count = arena_alloc(a, (all->n + 1) * sizeof(*count));
	const char **label = arena_alloc(a, (all->n + 1) * sizeof(*label));

	for (size_t i = 0; i < all->n; i++) {
		struct figure_curve *c = &curve[all->v[i].curve];

		x[i] = all->v[i].x;
		y[i] = all->v[i].y;
		count[i] = all->v[i].n;
		label[i] = plot_load_text(&all->v[i].load, a);
		if (!c->n)
			*c = (struct figure_curve){
				.title = *all->v[i].name ? all->v[i].name : NULL,
				.style = is_points ? FIGURE_POINTS : FIGURE_LINE_POINTS,
				.look.color = (unsigned)all->v[i].curve, .x = &x[i], .y = &y[i],
				.count = &count[i],
				.label = !is_points && all->n <= LABELS_MAX ? &label[i] : NULL,
			};
		c->n++;
	}
	return curve;
}

static const struct schema_field *field_of(const char *key)
{
	static const char *const before[] = { "", "profllm.derived.", "profllm." };
	const struct schema_field *field = NULL;
	char path[128];

	for (size_t i = 0; !field && i < sizeof(before) / sizeof(*before); i++) {
		snprintf(path, sizeof(path), "%s%s", before[i], key);
		field = schema_field_find(path);
	}
	return field;
}

/* Less is better where the schema says so, more where it says nothing of a metric. */
static double sign_of(const char *key)
{
	const struct schema_field *field = field_of(key);

	return field && field->better == SCHEMA_LOWER ? -1 : 1;
}

static int by_x(const void *a, const void *b)
{
	const struct load_point *p = a, *q = b;

	return p->x != q->x ? (p->x > q->x) - (p->x < q->x) : (p->y > q->y) - (p->y < q->y);
}

static struct figure_curve frontier(const struct load_points *all, const struct result_plot *p,
				    size_t *n)
{
	struct arena *a = all->a;
	double *x = arena_alloc(a, (all->n + 1) * sizeof(*x));
	double *y = arena_alloc(a, (all->n + 1) * sizeof(*y));
	const char **label = arena_alloc(a, (all->n + 1) * sizeof(*label));
	struct load_point *best = arena_alloc(a, (all->n + 1) * sizeof(*best));
	bool *is_best = arena_alloc(a, all->n + 1);

	for (size_t i = 0; i < all->n; i++) {
		x[i] = sign_of(p->var_x) * all->v[i].x;
		y[i] = sign_of(p->var_y) * all->v[i].y;
	}
	pareto_frontier(x, y, all->n, PARETO_STRICT, is_best);
	*n = 0;
	for (size_t i = 0; i < all->n; i++)
		if (is_best[i])
			best[(*n)++] = all->v[i];
	if (*n)
		qsort(best, *n, sizeof(*best), by_x);
	for (size_t i = 0; i < *n; i++) {
		const char *load = plot_load_text(&best[i].load, a);

		x[i] = best[i].x;
		y[i] = best[i].y;
		label[i] = *best[i].name && all->n_curves > 1 ?
			arena_printf(a, "%s\n%s", best[i].name, load) : load;
	}
	return (struct figure_curve){
		.title = "Pareto frontier", .style = FIGURE_LINE, .look.is_ink = true, .n = *n,
		.x = x, .y = y, .label = label,
	};
}

static const char *axis_label(const char *key, struct arena *a)
{
	const struct schema_field *field = field_of(key);
	struct buf text = { 0 };

	if (str_starts(str_of(key), STR("cost_per_")))
		buf_printf(&text, "%s (currency of the prices)", key);
	else if (field && *field->unit)
		buf_printf(&text, "%s (%s)", key, field->unit);
	else
		buf_add_text(&text, key);
	return arena_take(a, &text).p;
}

/* No record has a metric: which there are. */
static int no_metric(const struct frame *f, const char *key, struct arena *a, struct err *e)
{
	struct frame_columns all = frame_columns(f, a);
	struct buf names = { 0 };
	size_t n = 0;

	for (size_t i = 0; i < all.n && n < NAMES_SHOWN; i++) {
		const struct schema_field *field = schema_field_find(arena_text(a, all.name[i]));

		if (field && field->better != SCHEMA_NONE && strstr(field->type, "list") == NULL)
			buf_printf(&names, "%s%.*s", n++ ? ", " : "", (int)all.name[i].n,
				   all.name[i].p);
	}
	if (strstr(key, "_per_gpu") || strstr(key, "cost_per_"))
		err_set(e, ERR_RUN, "no result has %s: how many GPUs served is not known%s; --gpus%s",
			key, *key == 'c' ? ", or what they cost" : "",
			*key == 'c' ? " and --gpu-price say it" : " says it");
	else
		err_set(e, ERR_RUN, "no result has the metric %s%s%s", key, n ? "; there are " : "",
			n ? names.data : "");
	buf_release(&names);
	return -1;
}

int result_plot_figure(const struct frame *f, const struct result_plot *p, struct figure *out,
		       struct result_plot_told *told, struct arena *a, struct err *e)
{
	struct frame_keys keys = p->is_chosen ? p->curve_by : parameters(f, a);
	struct load_points all = { .a = a };
	struct figure_panel *panel = arena_alloc(a, sizeof(*panel));
	struct figure_curve *curve;
	size_t n;

	*told = (struct result_plot_told){ 0 };
	if (!has_metric(f, p->var_x))
		return no_metric(f, p->var_x, a, e);
	if (!has_metric(f, p->var_y))
		return no_metric(f, p->var_y, a, e);
	collect(f, p, &keys, &all, told);
	told->n_points = all.n;
	if (!all.n)
		return 0;
	curve = make_curves(&all, p->has_frontier, a);
	n = all.n_curves;
	if (p->has_frontier)
		curve[n++] = frontier(&all, p, &told->n_frontier);
	*panel = (struct figure_panel){ .curve = curve, .n_curves = n };
	*out = (struct figure){
		.x_label = axis_label(p->var_x, a), .y_label = axis_label(p->var_y, a),
		.legend_title = keys.n == 1 ? arena_text(a, short_name(keys.name[0])) : NULL,
		.panel = panel, .rows = 1, .cols = 1,
	};
	return 1;
}
