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
#define LABELS_MAX 24      /* points in a figure whose loads are written next to them */
#define NAMES_SHOWN 12     /* of metrics, in an error */

struct load_point {
	double x, y;              /* sums until they are divided */
	struct plot_load load;
	size_t n;
	const char *name;         /* of its curve: every key, in full */
	const struct json_value *record; /* the first of them */
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

/* Keys for the time or number of a run, or for the amount of load. */
static bool is_no_parameter(struct str key)
{
	static const char *const name[] = {
		"run_number", "request_rate", "max_concurrency", "num_prompts", "date", "tokenizer_id",
		"endpoint_type", "run_id", "timestamp", "name", "repeat", "seed", "_benchmark_name",
		"result_dir", "result_filename", "record", "output_json", "report",
		"quiet", "request_id_prefix",
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

/* Whether the values of one key determine those of another, which then adds nothing to a name. */
static bool follows(const struct frame *f, struct str key, struct str from, struct arena *a)
{
	struct map seen = { 0 };
	bool is_told = true;

	for (size_t i = 0; i < f->n && is_told; i++) {
		struct buf of = { 0 }, value = { 0 };
		uint64_t known;

		frame_text(&of, frame_value(f->row[i], from), FRAME_OBJECT);
		frame_text(&value, frame_value(f->row[i], key), FRAME_OBJECT);
		if (map_get(&seen, buf_str(&of), &known)) {
			struct buf first = { 0 };

			frame_text(&first, frame_value(f->row[known], key), FRAME_OBJECT);
			is_told = str_eq(buf_str(&first), buf_str(&value));
			buf_release(&first);
		} else {
			map_put(&seen, arena_str(a, buf_str(&of)), i);
		}
		buf_release(&of);
		buf_release(&value);
	}
	map_release(&seen);
	return is_told;
}

static void add_parameter(const struct frame *f, struct frame_keys *keys, struct str key,
			  struct arena *a)
{
	if (keys->n == PARAMETERS_MAX || !is_wanted(f, key))
		return;
	for (size_t i = 0; i < keys->n; i++)
		if (follows(f, key, keys->name[i], a))
			return;
	keys->name[keys->n++] = key;
}

/*
 * A parameter is what no result has by itself (of a sweep, a server's command line, --metadata), or
 * an option of the load; not what follows from another one.
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

		if (is_store) /* of the many columns that a run has there, only configuration */
			is_result = !str_starts(all.name[i], STR("benchmark.")) &&
				    !str_starts(all.name[i], STR("server."));
		for (size_t k = 0; k < sizeof(named) / sizeof(*named); k++)
			is_result &= strcmp(name, named[k]) != 0;
		if (!is_result && !is_no_parameter(short_name(all.name[i])))
			add_parameter(f, &keys, all.name[i], a);
	}
	for (size_t r = 0; r < f->n; r++) {
		const struct json_value *o = frame_value(f->row[r], STR("profllm.options"));

		for (size_t i = 0; o && o->kind == JSON_OBJECT && i < o->count &&
		     keys.n < PARAMETERS_MAX; i++) {
			struct str key = str_of(arena_printf(a, "profllm.options.%.*s",
							     (int)o->key[i].n, o->key[i].p));

			if (!is_no_parameter(o->key[i]) && !is_listed(&keys, o->key[i]) &&
			    !is_listed(&keys, key))
				add_parameter(f, &keys, key, a);
		}
	}
	return keys;
}

/*
 * The key that a word of --by means: a column, an option of the load, or the one column that ends
 * in it (of several the one that distinguishes the others).
 */
static bool find_key(const struct frame *f, struct str word, struct str *out, struct arena *a)
{
	struct frame_columns all = frame_columns(f, a);
	struct str option = str_of(arena_printf(a, "profllm.options.%.*s", (int)word.n, word.p));
	bool is_found = frame_has_column(f, word);

	*out = is_found ? word : option;
	if (is_found || frame_has_column(f, option))
		return true;
	for (size_t i = 0; i < all.n; i++)
		if (str_eq(short_name(all.name[i]), word) &&
		    (!is_found || !follows(f, all.name[i], *out, a))) {
			*out = all.name[i];
			is_found = true;
		}
	return is_found;
}

static int find_keys(const struct frame *f, const struct frame_keys *given, struct frame_keys *out,
		     struct arena *a, struct err *e)
{
	*out = (struct frame_keys){ .name = arena_alloc(a, (given->n + 1) * sizeof(*out->name)) };
	for (size_t i = 0; i < given->n; i++) {
		struct frame_keys there = parameters(f, a);
		struct buf names = { 0 };

		if (find_key(f, given->name[i], &out->name[out->n], a)) {
			out->n++;
			continue;
		}
		for (size_t k = 0; k < there.n; k++)
			buf_printf(&names, "%s%.*s", k ? ", " : "", (int)there.name[k].n,
				   there.name[k].p);
		err_set(e, ERR_RUN, "--by: no result has the parameter %.*s%s%s", (int)given->name[i].n,
			given->name[i].p, there.n ? "; these differ: " : "", there.n ? names.data : "");
		buf_release(&names);
		return -1;
	}
	return 0;
}

/* The usual prefix of a number that replaces a parameter's name. */
static const char *letters_of(struct str key)
{
	static const char *const of[][2] = {
		{ "tensor_parallel_size", "TP" }, { "pipeline_parallel_size", "PP" },
		{ "data_parallel_size", "DP" }, { "tp", "TP" }, { "pp", "PP" }, { "dp", "DP" },
	};

	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++)
		if (str_is(key, of[i][0]))
			return of[i][1];
	return NULL;
}

/* "TP8", "max_num_seqs=64"; of texts only the part after the last slash. */
static void add_word(struct buf *out, struct str key, const struct json_value *v)
{
	struct str text = json_text(v, STR("")), name = short_name(key);
	const char *letters = letters_of(name);

	for (size_t i = text.n; i > 1; i--)
		if (text.p[i - 2] == '/') {
			text = (struct str){ text.p + i - 1, text.n - (i - 1) };
			break;
		}
	if (text.n && (text.p[0] < '0' || text.p[0] > '9')) {
		buf_add_str(out, text);
		return;
	}
	if (letters)
		buf_add_text(out, letters);
	else
		buf_printf(out, "%.*s=", (int)name.n, name.p);
	if (is_scalar(v))
		frame_text(out, v, FRAME_OBJECT);
	else
		buf_add_text(out, "-");
}

static const char *words_of(const struct json_value *record, const struct frame_keys *keys,
			    struct arena *a)
{
	struct buf text = { 0 };

	for (size_t k = 0; k < keys->n; k++) {
		buf_add_text(&text, k ? ", " : "");
		add_word(&text, keys->name[k], frame_value(record, keys->name[k]));
	}
	return arena_take(a, &text).p;
}

/* "max_num_seqs=8, tp=2", or only the value if one key makes all curves. */
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

/* A metric by its key, also without its prefix in a result. */
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
		one.record = r;
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

/* Titles of curves: short, unless two curves would then have the same one. */
static const char **titles_of(const struct load_points *all, const struct frame_keys *keys)
{
	const char **name = arena_alloc(all->a, (all->n_curves + 1) * sizeof(*name));
	const char **words = arena_alloc(all->a, (all->n_curves + 1) * sizeof(*words));
	struct map seen = { 0 };
	bool is_unique = keys->n > 1;

	for (size_t i = 0; i < all->n; i++)
		name[all->v[i].curve] = all->v[i].name;
	for (size_t i = 0; i < all->n && is_unique; i++) {
		uint64_t curve = all->v[i].curve;
		const char *text = words_of(all->v[i].record, keys, all->a);

		words[curve] = text;
		is_unique = !map_get(&seen, str_of(text), &curve) || curve == all->v[i].curve;
		map_put(&seen, str_of(text), all->v[i].curve);
	}
	map_release(&seen);
	return is_unique ? words : name;
}

static struct figure_curve *make_curves(const struct load_points *all, const char *const *title,
					bool is_points, struct arena *a)
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
				.title = *title[all->v[i].curve] ? title[all->v[i].curve] : NULL,
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

/* Less is better where the schema says so, else more. */
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

/* The keys in which these points differ. */
static struct frame_keys keys_between(const struct load_point *p, size_t n,
				      const struct frame_keys *keys, struct arena *a)
{
	struct frame_keys out = { .name = arena_alloc(a, (keys->n + 1) * sizeof(*out.name)) };
	const struct json_value **row = arena_alloc(a, (n + 1) * sizeof(*row));
	struct frame f = { .row = row, .n = n };

	for (size_t i = 0; i < n; i++)
		row[i] = p[i].record;
	for (size_t k = 0; k < keys->n; k++)
		if (differs(&f, keys->name[k]))
			out.name[out.n++] = keys->name[k];
	return out;
}

static struct figure_curve frontier(const struct load_points *all, const struct result_plot *p,
				    const struct frame_keys *keys, size_t *n)
{
	struct arena *a = all->a;
	double *x = arena_alloc(a, (all->n + 1) * sizeof(*x));
	double *y = arena_alloc(a, (all->n + 1) * sizeof(*y));
	const char **label = arena_alloc(a, (all->n + 1) * sizeof(*label));
	struct load_point *best = arena_alloc(a, (all->n + 1) * sizeof(*best));
	bool *is_best = arena_alloc(a, all->n + 1);
	struct frame_keys between;

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
	between = keys_between(best, *n, keys, a);
	for (size_t i = 0; i < *n; i++) {
		const char *load = plot_load_text(&best[i].load, a);

		x[i] = best[i].x;
		y[i] = best[i].y;
		label[i] = all->n_curves < 2 ? load :
			arena_printf(a, "%s\n%s", words_of(best[i].record, between.n ? &between : keys, a),
				     load);
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
	struct frame_keys keys;
	struct load_points all = { .a = a };
	struct figure_panel *panel = arena_alloc(a, sizeof(*panel));
	struct figure_curve *curve;
	size_t n;

	*told = (struct result_plot_told){ 0 };
	if (!has_metric(f, p->var_x))
		return no_metric(f, p->var_x, a, e);
	if (!has_metric(f, p->var_y))
		return no_metric(f, p->var_y, a, e);
	if (!p->is_chosen)
		keys = parameters(f, a);
	else if (find_keys(f, &p->curve_by, &keys, a, e) < 0)
		return -1;
	collect(f, p, &keys, &all, told);
	told->n_points = all.n;
	if (!all.n)
		return 0;
	curve = make_curves(&all, titles_of(&all, &keys), p->has_frontier, a);
	n = all.n_curves;
	if (p->has_frontier)
		curve[n++] = frontier(&all, p, &keys, &told->n_frontier);
	*panel = (struct figure_panel){ .curve = curve, .n_curves = n };
	*out = (struct figure){
		.x_label = axis_label(p->var_x, a), .y_label = axis_label(p->var_y, a),
		.legend_title = keys.n == 1 ? arena_text(a, short_name(keys.name[0])) : NULL,
		.panel = panel, .rows = 1, .cols = 1,
	};
	return 1;
}
