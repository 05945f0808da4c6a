/* SPDX-License-Identifier: Apache-2.0 */
/*
 * charts.c - points for drawing: two measures against each other, the frontier of each group,
 * distributions, and parallel coordinates.
 *
 * Of more points than a page can draw every k-th is sent, by the order of runs, so that the same
 * request gives the same points; the totals say how many there are. A frontier is always complete.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/stats/curve.h"
#include "core/stats/stats.h"
#include "results/analyse/analyse_internal.h"

#define POINTS_SHOWN 5000
#define LINES_SHOWN 2000
#define BINS 24
#define AXIS_VALUES_MAX 50

/* The step between points that are sent. */
static size_t stride_of(size_t n, size_t most)
{
	assert(most > 0);
	return n > most ? (n + most - 1) / most : 1;
}

/* Columns in front, then x and y; rows that have both numbers and count for both. */
struct cloud {
	struct str *column;
	size_t n_front;
	struct str x, y;
	struct rows rows;
	bool *keep, *is_invalid; /* is_invalid: has both numbers, and one of them is INVALID */
	size_t n; /* of rows kept */
	struct counting axis[2];
	struct notes notes;
};

static int read_cloud(const struct analyse_request *r, const struct str *front, size_t n,
		      struct cloud *c, struct err *e)
{
	if (parts_metric(r, "x", &c->x, e) < 0 || parts_metric(r, "y", &c->y, e) < 0)
		return -1;
	c->n_front = n;
	c->column = arena_alloc(r->arena, (n + 2) * sizeof(*c->column));
	for (size_t i = 0; i < n; i++)
		c->column[i] = front[i];
	c->column[n] = c->x;
	c->column[n + 1] = c->y;
	if (parts_select(r, c->column, n + 2, &c->rows, e) < 0)
		return -1;
	c->keep = arena_alloc(r->arena, c->rows.n + 1);
	c->is_invalid = arena_alloc(r->arena, c->rows.n + 1);
	c->notes.arena = r->arena;
	for (size_t k = 0; k < 2; k++)
		c->axis[k] = counting_of(c->column[n + k]);
	for (size_t i = 0; i < c->rows.n; i++) {
		enum counts counts[2];

		for (size_t k = 0; k < 2; k++)
			counts[k] = counting_see(&c->axis[k], &c->rows.verdicts, i,
						 parts_number_at(&c->rows, n + k, i));
		c->keep[i] = counts[0] == COUNTS && counts[1] == COUNTS;
		c->is_invalid[i] = !c->keep[i] &&
				   (counts[0] == COUNTS || counts[0] == COUNTS_INVALID) &&
				   (counts[1] == COUNTS || counts[1] == COUNTS_INVALID);
		c->n += c->keep[i];
	}
	counting_notes(c->axis, 2, &c->notes);
	return 0;
}

static void put_totals(struct json_writer *w, const struct cloud *c, size_t shown)
{
	parts_put_axis(w, "x", c->x);
	parts_put_axis(w, "y", c->y);
	parts_put_count(w, "total", c->n);
	parts_put_count(w, "shown", shown);
	parts_put_count(w, "left_out", c->rows.n - c->n);
	counting_put(w, c->axis, 2);
	parts_put_notes(w, &c->notes);
}

static void put_xy(struct json_writer *w, const struct cloud *c, size_t row)
{
	json_member_int(w, "id", c->rows.id[row]);
	parts_put_number(w, "x", parts_number_at(&c->rows, c->n_front, row));
	parts_put_number(w, "y", parts_number_at(&c->rows, c->n_front + 1, row));
	json_member_bool(w, "is_degraded", counting_is_degraded(&c->axis[0], &c->rows.verdicts,
			 row) || counting_is_degraded(&c->axis[1], &c->rows.verdicts, row));
}

int analyse_resources(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct cloud c = { 0 };
	struct str *front;
	size_t n, shown = 0, seen = 0, stride;

	if (parts_columns(r, "color", &front, &n, e) < 0 || read_cloud(r, front, n, &c, e) < 0)
		return -1;
	stride = stride_of(c.n, POINTS_SHOWN);
	json_member_array(w, "points");
	for (size_t i = 0; i < c.rows.n; i++) {
		if (!c.keep[i] || seen++ % stride)
			continue;
		json_begin_object(w);
		put_xy(w, &c, i);
		json_member_object(w, "values");
		for (size_t k = 0; k < n; k++) {
			struct value v = c.rows.value[k * c.rows.n + i];

			if (v.kind == VALUE_ABSENT)
				continue;
			json_key_str(w, front[k]);
			value_put(w, v);
		}
		json_end_object(w);
		json_end_object(w);
		shown++;
	}
	json_end_array(w);
	put_totals(w, &c, shown);
	return 0;
}

/* ---- frontiers ---- */

/* Which way an axis is better: by the request, by the column's name, else more. */
static int read_better(const struct analyse_request *r, const char *axis, struct str column,
		       double *sign, struct err *e)
{
	const struct json_value *v = json_get(json_get(r->body, "better"), axis);

	*sign = column_better(column) < 0 ? -1 : 1;
	if (!v || v->kind == JSON_NULL)
		return 0;
	if (!str_is(json_text(v, STR("")), "higher") && !str_is(json_text(v, STR("")), "lower"))
		return err_set(e, ERR_USAGE, "/better/%s: expected higher or lower", axis);
	*sign = str_is(v->text, "lower") ? -1 : 1;
	return 0;
}

struct frontier { double sign_x, sign_y; size_t stride; };

static bool *frontier_of(const struct analyse_request *r, const struct cloud *c,
			 const struct series *s, struct frontier f)
{
	double *x = arena_alloc(r->arena, (s->n + 1) * sizeof(*x));
	double *y = arena_alloc(r->arena, (s->n + 1) * sizeof(*y));
	bool *is_frontier = arena_alloc(r->arena, s->n + 1);

	for (size_t i = 0; i < s->n; i++) {
		x[i] = f.sign_x * parts_number_at(&c->rows, c->n_front, s->member[i]);
		y[i] = f.sign_y * parts_number_at(&c->rows, c->n_front + 1, s->member[i]);
	}
	pareto_frontier(x, y, s->n, PARETO_STRICT, is_frontier);
	return is_frontier;
}

/* How many of the runs left out as INVALID would be on the frontier of their group. */
static size_t count_leading(const struct analyse_request *r, const struct cloud *c,
			    const struct str *group, size_t n, struct frontier f)
{
	bool *keep = arena_alloc(r->arena, c->rows.n + 1);
	struct series_list l;
	size_t leading = 0;

	if (!c->axis[0].invalid && !c->axis[1].invalid)
		return 0;
	for (size_t i = 0; i < c->rows.n; i++)
		keep[i] = c->keep[i] || c->is_invalid[i];
	parts_series(r->arena, &c->rows, group, n, keep, &l);
	for (size_t s = 0; s < l.n; s++) {
		const bool *is_frontier = frontier_of(r, c, &l.series[s], f);

		for (size_t i = 0; i < l.series[s].n; i++)
			leading += is_frontier[i] && c->is_invalid[l.series[s].member[i]];
	}
	return leading;
}

static size_t put_frontier(const struct analyse_request *r, struct json_writer *w,
			   const struct cloud *c, const struct series *s, struct frontier f)
{
	const bool *is_frontier = frontier_of(r, c, s, f);
	size_t shown = 0;

	json_member_array(w, "points");
	for (size_t i = 0; i < s->n; i++) {
		if (!is_frontier[i] && i % f.stride)
			continue;
		json_begin_object(w);
		put_xy(w, c, s->member[i]);
		json_member_bool(w, "is_frontier", is_frontier[i]);
		json_end_object(w);
		shown++;
	}
	json_end_array(w);
	return shown;
}

int analyse_pareto(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct cloud c = { 0 };
	struct frontier f;
	struct series_list l;
	struct str *group;
	size_t n, shown = 0, leading;

	if (parts_columns(r, "group", &group, &n, e) < 0 || read_cloud(r, group, n, &c, e) < 0 ||
	    read_better(r, "x", c.x, &f.sign_x, e) < 0 ||
	    read_better(r, "y", c.y, &f.sign_y, e) < 0)
		return -1;
	parts_series(r->arena, &c.rows, group, n, c.keep, &l);
	f.stride = stride_of(c.n, POINTS_SHOWN);
	leading = count_leading(r, &c, group, n, f);
	if (leading)
		parts_note(&c.notes, "%s of the runs left out would be on the frontier of %s group",
			   arena_count(r->arena, leading), leading == 1 ? "its" : "their");
	json_member_array(w, "groups");
	for (size_t i = 0; i < l.shown; i++) {
		json_begin_object(w);
		parts_put_series(w, &l, i);
		parts_put_count(w, "n", l.series[i].n);
		shown += put_frontier(r, w, &c, &l.series[i], f);
		json_end_object(w);
	}
	json_end_array(w);
	parts_put_count(w, "groups_left_out", l.n - l.shown);
	json_member_object(w, "better");
	json_member_text(w, "x", f.sign_x > 0 ? "higher" : "lower");
	json_member_text(w, "y", f.sign_y > 0 ? "higher" : "lower");
	json_end_object(w);
	put_totals(w, &c, shown);
	return 0;
}

/* ---- distributions ---- */

struct bins { double from, width; };

static void put_distribution(const struct analyse_request *r, struct json_writer *w,
			     const struct rows *rows, size_t column, const struct series *s,
			     struct bins b)
{
	static const double at[] = { 0, 5, 25, 50, 75, 95, 100 };
	double *x = arena_alloc(r->arena, (s->n + 1) * sizeof(*x));
	size_t count[BINS] = { 0 };

	for (size_t i = 0; i < s->n; i++) {
		double place;

		x[i] = parts_number_at(rows, column, s->member[i]);
		place = b.width > 0 ? floor(x[i] / b.width - b.from / b.width) : 0;
		count[(size_t)fmin(fmax(place, 0), BINS - 1)]++;
	}
	stats_sort(x, s->n);
	parts_put_count(w, "n", s->n);
	parts_put_number(w, "mean", stats_mean(x, s->n));
	json_member_array(w, "quantiles");
	for (size_t i = 0; i < sizeof(at) / sizeof(*at); i++)
		parts_put_double(w, stats_percentile(x, s->n, at[i]));
	json_end_array(w);
	json_member_object(w, "histogram");
	json_member_array(w, "edges");
	for (int i = 0; i <= BINS; i++)
		parts_put_double(w, b.from + b.width * i);
	json_end_array(w);
	json_member_array(w, "counts");
	for (int i = 0; i < BINS; i++)
		json_put_int(w, (int64_t)count[i]);
	json_end_array(w);
	json_end_object(w);
}

int analyse_distribution(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct str *group, *column, metric;
	struct series_list l;
	struct rows rows;
	struct bins b = { INFINITY, 0 };
	struct notes notes = { .arena = r->arena };
	struct counting counting;
	double most = -INFINITY;
	size_t n, kept = 0;
	bool *keep;

	if (parts_metric(r, "metric", &metric, e) < 0 ||
	    parts_columns(r, "group", &group, &n, e) < 0)
		return -1;
	column = arena_alloc(r->arena, (n + 1) * sizeof(*column));
	if (n)
		memcpy(column, group, n * sizeof(*column));
	column[n] = metric;
	if (parts_select(r, column, n + 1, &rows, e) < 0)
		return -1;
	counting = counting_of(metric);
	keep = arena_alloc(r->arena, rows.n + 1);
	for (size_t i = 0; i < rows.n; i++) {
		double v = parts_number_at(&rows, n, i);

		keep[i] = counting_see(&counting, &rows.verdicts, i, v) == COUNTS;
		if (!keep[i])
			continue;
		kept++;
		b.from = fmin(b.from, v);
		most = fmax(most, v);
	}
	b.width = most / BINS - b.from / BINS; /* no overflow, whatever the range */
	parts_series(r->arena, &rows, group, n, keep, &l);
	json_member_str(w, "metric", metric);
	parts_put_kind(w, metric);
	json_member_array(w, "groups");
	for (size_t i = 0; i < l.shown; i++) {
		json_begin_object(w);
		parts_put_series(w, &l, i);
		put_distribution(r, w, &rows, n, &l.series[i], b);
		json_end_object(w);
	}
	json_end_array(w);
	parts_put_count(w, "total", kept);
	parts_put_count(w, "left_out", rows.n - kept);
	parts_put_count(w, "groups_left_out", l.n - l.shown);
	counting_put(w, &counting, 1);
	counting_notes(&counting, 1, &notes);
	parts_put_notes(w, &notes);
	return 0;
}

/* ---- parallel coordinates ---- */

/* An axis with only finite numbers has a range, any other one a list of values. */
static void put_parallel_axis(const struct analyse_request *r, struct json_writer *w,
			      struct str name, const struct value *v, size_t n)
{
	struct value *sorted = arena_alloc(r->arena, (n + 1) * sizeof(*sorted));
	double low = INFINITY, high = -INFINITY, x;
	bool is_number = true;
	size_t count = 0, distinct = 0;

	for (size_t i = 0; i < n; i++) {
		if (value_is_missing(v[i]))
			continue;
		sorted[count++] = v[i];
		if (!parts_is_number(v[i], &x)) {
			is_number = false;
			continue;
		}
		low = fmin(low, x);
		high = fmax(high, x);
	}
	is_number &= count > 0;
	json_begin_object(w);
	json_member_str(w, "column", name);
	parts_put_kind(w, name);
	json_member_text(w, "kind", is_number ? "number" : "text");
	parts_put_number(w, "min", is_number ? low : NAN);
	parts_put_number(w, "max", is_number ? high : NAN);
	json_member_array(w, "values");
	if (!is_number && count)
		qsort(sorted, count, sizeof(*sorted), value_order);
	for (size_t i = 0; !is_number && i < count && distinct < AXIS_VALUES_MAX; i++)
		if (!i || !value_same(sorted[i - 1], sorted[i])) {
			value_put(w, sorted[i]);
			distinct++;
		}
	json_end_array(w);
	json_end_object(w);
}

/*
 * Takes out of rows what does not count: whole runs that failed, and values that are INVALID.
 * Returns how many runs that were.
 */
static size_t drop_uncounted(const struct analyse_request *r, struct rows *rows,
			     struct counting *axis, size_t n)
{
	bool *keep = arena_alloc(r->arena, rows->n + 1);
	size_t kept = 0, all = rows->n;

	for (size_t i = 0; i < all; i++) {
		keep[i] = true;
		for (size_t c = 0; c < n; c++) {
			enum counts counts = counting_see(&axis[c], &rows->verdicts, i,
							  parts_number_at(rows, c, i));

			keep[i] &= counts != COUNTS_FAILED;
			if (counts == COUNTS_INVALID)
				rows->value[c * all + i].kind = VALUE_NULL;
		}
		if (keep[i])
			rows->id[kept++] = rows->id[i];
	}
	for (size_t c = 0; c < n; c++)
		for (size_t i = 0, k = 0; i < all; i++)
			if (keep[i])
				rows->value[c * kept + k++] = rows->value[c * all + i];
	rows->n = kept;
	return all - kept;
}

int analyse_parallel(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct notes notes = { .arena = r->arena };
	struct counting axis[ANALYSE_COLUMNS_MAX];
	struct str *column;
	struct rows rows;
	size_t n, limit, stride, left_out, shown = 0;

	if (parts_columns(r, "columns", &column, &n, e) < 0 ||
	    parts_whole(r->body, "", "limit", LINES_SHOWN, 1, POINTS_SHOWN, &limit, e) < 0)
		return -1;
	if (!n)
		return parts_refuse(e, "/columns", "expected at least one column");
	if (parts_select(r, column, n, &rows, e) < 0)
		return -1;
	for (size_t c = 0; c < n; c++)
		axis[c] = counting_of(column[c]);
	left_out = drop_uncounted(r, &rows, axis, n);
	json_member_array(w, "axes");
	for (size_t c = 0; c < n; c++)
		put_parallel_axis(r, w, column[c], rows.value + c * rows.n, rows.n);
	json_end_array(w);
	stride = stride_of(rows.n, limit);
	json_member_array(w, "lines");
	for (size_t i = 0; i < rows.n; i += stride) {
		json_begin_object(w);
		json_member_int(w, "id", rows.id[i]);
		json_member_array(w, "values");
		for (size_t c = 0; c < n; c++)
			value_put(w, rows.value[c * rows.n + i]);
		json_end_array(w);
		json_end_object(w);
		shown++;
	}
	json_end_array(w);
	parts_put_count(w, "total", rows.n);
	parts_put_count(w, "shown", shown);
	parts_put_count(w, "left_out", left_out);
	counting_put(w, axis, n);
	counting_notes(axis, n, &notes);
	parts_put_notes(w, &notes);
	return 0;
}

/*
 * Scaling: for each series the median of a metric at each size, its ratio to that of the series'
 * smallest size, and that ratio divided by the ratio of sizes.
 *
 *   speedup = value / value at the smallest size (the inverse where lower is better)
 *   efficiency = speedup / (size / smallest size); of a metric per GPU or kW over GPUs speedup
 *
 * A series is defined by everything else that makes runs comparable, without the size's column. Of
 * several versions of the engine the newest with two sizes is used: sizes that differ in it are not
 * scaling.
 */

struct sized { double size, value; };

static int by_size(const void *x, const void *y)
{
	const struct sized *a = x, *b = y;
	int order = (a->size > b->size) - (a->size < b->size);

	return order ? order : (a->value > b->value) - (a->value < b->value);
}

static double speedup_of(double value, double first, int better)
{
	if (better < 0)
		return value > 0 && first > 0 ? first / value : NAN;
	return first > 0 && value >= 0 ? value / first : NAN;
}

/* Whether more GPUs do not change it at best: a quotient by them, their power or price. */
static bool is_constant_at_best(struct str metric, struct str by)
{
	static const char *const quotients[] = {
		"tokens_per_s_per_gpu", "total_tokens_per_s_per_gpu", "tokens_per_s_per_kw",
		"j_per_output_token", "usd_per_m_output",
	};

	for (size_t i = 0; i < sizeof(quotients) / sizeof(*quotients); i++)
		if (str_is(metric, quotients[i]))
			return column_role(by) == ROLE_PARALLEL;
	return false;
}

/* Values of one size are adjacent, in ascending order. */
static void put_points(struct json_writer *w, const struct sized *x, size_t n, int better,
		       bool is_constant)
{
	double first = NAN, smallest = NAN;

	json_member_array(w, "points");
	for (size_t i = 0, to; i < n; i = to) {
		double median, speedup;
		size_t count;

		for (to = i + 1; to < n && x[to].size <= x[i].size;)
			to++;
		count = to - i;
		median = (x[i + (count - 1) / 2].value + x[i + count / 2].value) / 2;
		if (isnan(smallest)) {
			smallest = x[i].size;
			first = median;
		}
		speedup = speedup_of(median, first, better);
		json_begin_object(w);
		parts_put_number(w, "x", x[i].size);
		parts_put_count(w, "n", count);
		parts_put_number(w, "median", median);
		parts_put_number(w, "low", x[i].value);
		parts_put_number(w, "high", x[to - 1].value);
		parts_put_number(w, "speedup", speedup);
		parts_put_number(w, "efficiency", is_constant ? speedup :
				 smallest > 0 ? speedup * smallest / x[i].size : NAN);
		json_end_object(w);
	}
	json_end_array(w);
}

static size_t count_sizes(const struct sized *x, size_t n)
{
	size_t sizes = n > 0;

	for (size_t i = 1; i < n; i++)
		sizes += x[i].size > x[i - 1].size;
	return sizes;
}

struct scaling {
	const struct analyse_request *r;
	struct str by, metric, *key;
	size_t n_keys, n_versions;
	struct rows rows;
	struct newest newest;
};

static bool put_series(struct scaling *s, struct json_writer *w, const struct series_list *l,
		       size_t i)
{
	const struct series *one = &l->series[i];
	struct sized *x = arena_alloc(s->r->arena, (one->n + 1) * sizeof(*x));

	for (size_t k = 0; k < one->n; k++) {
		x[k].size = s->rows.value[s->n_keys * s->rows.n + one->member[k]].number;
		x[k].value = s->rows.value[(s->n_keys + 1) * s->rows.n + one->member[k]].number;
	}
	qsort(x, one->n, sizeof(*x), by_size);
	if (count_sizes(x, one->n) < 2)
		return false;
	json_begin_object(w);
	parts_put_series(w, l, i);
	json_member_text(w, "version", newest_text(&s->newest, one->row));
	parts_put_count(w, "n", one->n);
	put_points(w, x, one->n, column_better(s->metric), is_constant_at_best(s->metric, s->by));
	json_end_object(w);
	return true;
}

static int read_request(struct scaling *s, struct err *e)
{
	const struct json_value *series = json_get(s->r->body, "series");
	struct str *given;
	size_t n;

	if (parts_metric(s->r, "metric", &s->metric, e) < 0 ||
	    parts_column(s->r, "by", &s->by, e) < 0 ||
	    parts_columns(s->r, "series", &given, &n, e) < 0)
		return -1;
	if (!series || series->kind == JSON_NULL)
		given = parts_present(s->r, parts_series_default, &n);
	s->key = arena_alloc(s->r->arena, (n + 2 + NEWEST_COLUMNS_MAX) * sizeof(*s->key));
	for (size_t i = 0; i < n; i++) {
		/* The number of GPUs follows from the sizes. */
		bool is_size = str_eq(given[i], s->by) ||
			       ((!series || series->kind == JSON_NULL) &&
				(str_is(given[i], "hardware.gpus") || str_is(given[i], "gpus")));

		if (!is_size)
			s->key[s->n_keys++] = given[i];
	}
	s->key[s->n_keys] = s->by;
	s->key[s->n_keys + 1] = s->metric;
	s->n_versions = newest_columns(s->r, s->key + s->n_keys + 2);
	if (parts_select(s->r, s->key, s->n_keys + 2 + s->n_versions, &s->rows, e) < 0)
		return -1;
	for (size_t i = 0; i < s->rows.n; i++) {
		struct value *size = &s->rows.value[s->n_keys * s->rows.n + i];

		if (size->kind == VALUE_TEXT && str_to_f64(size->text, &size->number))
			size->kind = VALUE_NUMBER; /* of metadata */
	}
	return 0;
}

static void keep_newest(struct scaling *s, struct series_list *l, struct notes *notes)
{
	const struct value *size = s->rows.value + s->n_keys * s->rows.n;
	uint32_t n_sizes;

	newest_read(s->r->arena, &s->rows, s->n_keys + 2, s->n_versions, &s->newest);
	s->newest.place = setups_codes(s->r->arena, size, s->rows.n, &n_sizes);
	newest_narrow(&s->newest, l, "series", "size", notes);
}

int analyse_scaling(const struct analyse_request *r, struct json_writer *w, struct err *e)
{
	struct scaling s = { .r = r };
	struct notes notes = { .arena = r->arena };
	struct counting counting;
	struct series_list l;
	struct str mixed;
	size_t shown = 0;
	bool *keep;

	if (read_request(&s, e) < 0)
		return -1;
	counting = counting_of(s.metric);
	keep = arena_alloc(r->arena, s.rows.n + 1);
	for (size_t i = 0; i < s.rows.n; i++)
		keep[i] = !isnan(parts_number_at(&s.rows, s.n_keys, i)) &&
			  counting_see(&counting, &s.rows.verdicts, i,
				       parts_number_at(&s.rows, s.n_keys + 1, i)) == COUNTS;
	parts_series(r->arena, &s.rows, s.key, s.n_keys, keep, &l);
	keep_newest(&s, &l, &notes);
	json_member_str(w, "metric", s.metric);
	parts_put_kind(w, s.metric);
	json_member_str(w, "by", s.by);
	json_member_text(w, "ideal", is_constant_at_best(s.metric, s.by) ? "constant" : "proportional");
	json_member_array(w, "series");
	for (size_t i = 0; i < l.shown; i++) {
		if (put_series(&s, w, &l, i))
			shown++;
		else
			l.series[i].n = 0; /* not shown: nothing of it is joined */
	}
	json_end_array(w);
	if (l.shown > shown)
		parts_note(&notes, "%zu series %s one size of %.*s only and %s left out", l.shown - shown,
			   l.shown - shown == 1 ? "has" : "have", (int)s.by.n, s.by.p,
			   l.shown - shown == 1 ? "is" : "are");
	if (l.n > l.shown)
		parts_note(&notes, "%zu series; only the %zu with the most runs were looked at", l.n,
			   l.shown);
	mixed = series_mixed(r, &l, s.newest.place);
	if (mixed.n)
		parts_note(&notes, "points are medians over runs that differ in %.*s: add it to the series, "
			   "or filter by one value", (int)mixed.n, mixed.p);
	counting_put(w, &counting, 1);
	counting_notes(&counting, 1, &notes);
	parts_put_notes(w, &notes);
	return 0;
}
