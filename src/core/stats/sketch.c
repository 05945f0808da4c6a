/* SPDX-License-Identifier: Apache-2.0 */
/* sketch.c - see sketch.h. */
#include "core/stats/sketch.h"

#include <assert.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

#define SHORT_BINS 60 /* runs of fewer seconds have at least this many bins */

/* ---- quantiles and samples ---- */

double sketch_p(size_t i)
{
	assert(i < SKETCH_QUANTILES);
	if (i == 1)
		return 0.001;
	if (i == SKETCH_QUANTILES - 2)
		return 0.999;
	if (i == SKETCH_QUANTILES - 1)
		return 1;
	return i ? (double)(i - 1) / 200 : 0;
}

void sketch_quantiles(const double *sorted, size_t n, double out[static SKETCH_QUANTILES])
{
	for (size_t i = 0; n && i < SKETCH_QUANTILES; i++)
		out[i] = stats_percentile(sorted, n, 100 * sketch_p(i));
}

size_t sketch_sample_size(size_t n)
{
	return n < SKETCH_PAIRS_MAX ? n : SKETCH_PAIRS_MAX;
}

/* Steele, Lea and Flood's mixing of a counter (2014). */
static uint64_t mixed(uint64_t v)
{
	v += 0x9e3779b97f4a7c15u;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

size_t sketch_sample(size_t n, size_t i)
{
	size_t parts = sketch_sample_size(n), from, to;

	assert(i < parts);
	from = i * n / parts;
	to = (i + 1) * n / parts;
	return from + (size_t)(mixed(i) % (to - from));
}

/* ---- the grid ---- */

struct sketch_grid sketch_grid(double duration_s)
{
	static const double below[] = { 0.5, 0.2, 0.1, 0.05, 0.02, 0.01 }, lead[] = { 1, 2, 5 };
	const size_t n_below = sizeof(below) / sizeof(*below);
	struct sketch_grid g = { .duration_s = duration_s, .step_s = 1 };
	double decade = 1;

	if (!(duration_s > 0) || !isfinite(duration_s))
		return (struct sketch_grid){ .step_s = 1 };
	for (size_t i = 0; i < n_below && duration_s < SHORT_BINS * g.step_s; i++)
		g.step_s = below[i];
	for (size_t i = 1; duration_s > SKETCH_POINTS_MAX * g.step_s; i++) {
		decade = i % 3 == 0 ? 10 * decade : decade;
		g.step_s = lead[i % 3] * decade;
	}
	g.n = (size_t)(duration_s / g.step_s + 0.5);
	g.n = g.n < 1 ? 1 : g.n > SKETCH_POINTS_MAX ? SKETCH_POINTS_MAX : g.n;
	return g;
}

/* The last bin takes the remainder, half a step more or less: a very short one would mislead. */
static double end_of(const struct sketch_grid *g, size_t i)
{
	return i + 1 == g->n ? g->duration_s : (double)(i + 1) * g->step_s;
}

static double width_of(const struct sketch_grid *g, size_t i)
{
	return end_of(g, i) - (double)i * g->step_s;
}

double sketch_grid_at(const struct sketch_grid *g, size_t i)
{
	assert(i < g->n);
	return ((double)i * g->step_s + end_of(g, i)) / 2;
}

/* Times before and after the grid count in its first and its last bin. */
static size_t bin_of(const struct sketch_grid *g, double t_s)
{
	double i = floor(t_s / g->step_s);

	return !(i > 0) ? 0 : i >= (double)g->n ? g->n - 1 : (size_t)i;
}

/* ---- tracks ---- */

static void track_init(struct sketch_track *t, size_t n)
{
	assert(n <= SKETCH_POINTS_MAX);
	*t = (struct sketch_track){
		.n = n, .y = mem_array(n, sizeof(double)), .low = mem_array(n, sizeof(double)),
		.high = mem_array(n, sizeof(double)),
	};
}

void sketch_track_release(struct sketch_track *t)
{
	free(t->t_s);
	free(t->y);
	free(t->low);
	free(t->high);
	*t = (struct sketch_track){ 0 };
}

bool sketch_track_has_range(const struct sketch_track *t)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->low[i] < t->y[i] || t->high[i] > t->y[i])
			return true;
	return false;
}

/* ---- tokens ---- */

void sketch_tokens_init(struct sketch_tokens *k, const struct sketch_grid *g)
{
	double part_s = g->step_s / 10 > 1 ? g->step_s / 10 : 1;

	*k = (struct sketch_tokens){ .grid = *g };
	k->parts = g->step_s > 1 ? (size_t)(g->step_s / part_s) : 1;
	k->count = mem_array(g->n * k->parts, sizeof(*k->count));
}

static void count(struct sketch_tokens *k, double t_s, double tokens)
{
	double i = floor(t_s / k->grid.step_s * (double)k->parts);
	size_t n = k->grid.n * k->parts;

	k->count[!(i > 0) ? 0 : i >= (double)n ? n - 1 : (size_t)i] += tokens;
}

void sketch_tokens_add(struct sketch_tokens *k, double first_s, const double *gap_s, size_t n_gaps,
		       double tokens)
{
	double each = tokens > 0 ? tokens / (double)(n_gaps + 1) : 1, t_s = first_s;

	if (!k->grid.n || !isfinite(first_s))
		return;
	count(k, t_s, each);
	for (size_t i = 0; i < n_gaps; i++) {
		t_s += gap_s[i];
		count(k, t_s, each);
	}
}

void sketch_tokens_end(struct sketch_tokens *k, struct sketch_track *out)
{
	const double part_s = k->grid.step_s / (double)k->parts;

	track_init(out, k->grid.n);
	for (size_t i = 0; i < out->n; i++) {
		double begin_s = (double)i * k->grid.step_s, sum = 0;

		out->low[i] = INFINITY;
		out->high[i] = -INFINITY;
		for (size_t part = 0; part < k->parts; part++) {
			double at_s = begin_s + (double)part * part_s;
			double tokens = k->count[i * k->parts + part];
			bool is_last = i + 1 == out->n && part + 1 == k->parts;

			sum += tokens;
			/* The last part also includes later tokens. */
			if (k->parts == 1 || is_last || at_s + part_s > k->grid.duration_s)
				continue;
			out->low[i] = fmin(out->low[i], tokens / part_s);
			out->high[i] = fmax(out->high[i], tokens / part_s);
		}
		out->y[i] = sum / width_of(&k->grid, i);
		out->low[i] = fmin(out->low[i], out->y[i]);
		out->high[i] = fmax(out->high[i], out->y[i]);
	}
	free(k->count);
	*k = (struct sketch_tokens){ 0 };
}

/* ---- intervals ---- */

struct level { const struct sketch_grid *grid; struct sketch_track *out; double at_s, now; };

/* Nothing changes until to_s. */
static void go_to(struct level *l, double to_s)
{
	const struct sketch_grid *g = l->grid;

	to_s = fmin(fmax(to_s, 0), g->duration_s);
	for (size_t i = bin_of(g, l->at_s); l->at_s < to_s && i < g->n; i++) {
		double end_s = fmin(end_of(g, i), to_s);

		if (end_s <= l->at_s)
			continue;
		l->out->y[i] += (end_s - l->at_s) * l->now;
		l->out->low[i] = fmin(l->out->low[i], l->now);
		l->out->high[i] = fmax(l->out->high[i], l->now);
		l->at_s = end_s;
	}
}

void sketch_running(const struct sketch_grid *g, double *begin_s, double *end_s, size_t n,
		    struct sketch_track *out)
{
	struct level l = { .grid = g, .out = out };
	size_t ended = 0;

	track_init(out, g->n);
	for (size_t i = 0; i < g->n; i++) {
		out->low[i] = INFINITY;
		out->high[i] = -INFINITY;
	}
	stats_sort(begin_s, n);
	stats_sort(end_s, n);
	for (size_t i = 0; g->n && i < n;) {
		/* An end precedes a beginning at the same instant. */
		if (ended < n && end_s[ended] <= begin_s[i] && ended < i) {
			go_to(&l, end_s[ended++]);
			l.now--;
		} else {
			go_to(&l, begin_s[i++]);
			l.now++;
		}
	}
	for (; g->n && ended < n; ended++) {
		go_to(&l, end_s[ended]);
		l.now--;
	}
	if (g->n)
		go_to(&l, g->duration_s);
	for (size_t i = 0; i < g->n; i++) {
		bool is_seen = out->low[i] <= out->high[i];

		out->y[i] = is_seen ? out->y[i] / width_of(g, i) : 0;
		out->low[i] = is_seen ? fmin(out->low[i], out->y[i]) : 0;
		out->high[i] = is_seen ? fmax(out->high[i], out->y[i]) : 0;
	}
}

/* ---- readings ---- */

/* The readings of one series in one bin, and its last value before. */
struct bin { size_t n; double sum, low, high; };

/* Where bin i ends: between two readings of the series with most of them, or by the grid. */
static double bin_end(const struct sketch_grid *g, const struct sketch_series *most, size_t i)
{
	if (most->n > SKETCH_POINTS_MAX)
		return i + 1 == g->n ? INFINITY : end_of(g, i);
	return i + 1 >= most->n ? INFINITY : (most->t_s[i] + most->t_s[i + 1]) / 2;
}

static struct bin read_bin(const struct sketch_series *s, size_t *at, double end_s)
{
	struct bin b = { .low = INFINITY, .high = -INFINITY };

	for (; *at < s->n && s->t_s[*at] < end_s; ++*at) {
		double v = s->value[*at];

		if (!isfinite(v))
			continue;
		b.n++;
		b.sum += v;
		b.low = fmin(b.low, v);
		b.high = fmax(b.high, v);
	}
	return b;
}

struct folded { bool is_sum; size_t n; double sum, low, high; };

static void fold(struct folded *all, const struct bin *b)
{
	if (!b->n)
		return;
	all->sum += b->sum / (double)b->n;
	if (all->is_sum || !all->n) {
		all->low += b->low;
		all->high += b->high;
	} else {
		all->low = fmin(all->low, b->low);
		all->high = fmax(all->high, b->high);
	}
	all->n++;
}

void sketch_combine(const struct sketch_grid *g, const struct sketch_series *s, size_t n_series,
		    bool is_sum, struct sketch_track *out)
{
	size_t *at = mem_array(n_series, sizeof(*at)), most = 0, n_bins;
	struct bin *last = mem_array(n_series, sizeof(*last));

	for (size_t k = 1; k < n_series; k++)
		most = s[k].n > s[most].n ? k : most;
	n_bins = !n_series ? 0 : s[most].n > SKETCH_POINTS_MAX ? g->n : s[most].n;
	track_init(out, n_bins);
	out->t_s = mem_array(n_bins, sizeof(*out->t_s));
	out->n = 0;
	for (size_t i = 0; i < n_bins; i++) {
		struct folded all = { .is_sum = is_sum };
		double end_s = bin_end(g, &s[most], i);
		bool is_read = false;

		for (size_t k = 0; k < n_series; k++) {
			struct bin b = read_bin(&s[k], &at[k], end_s);

			is_read |= b.n > 0;
			last[k] = b.n ? b : last[k]; /* without a reading in the bin: the last
						      * one */
			fold(&all, &last[k]);
		}
		if (!is_read)
			continue;
		out->t_s[out->n] = s[most].n > SKETCH_POINTS_MAX ? sketch_grid_at(g, i)
			: s[most].t_s[i];
		out->y[out->n] = is_sum ? all.sum : all.sum / (double)all.n;
		out->low[out->n] = fmin(all.low, out->y[out->n]);
		out->high[out->n] = fmax(all.high, out->y[out->n]);
		out->n++;
	}
	if (out->n == g->n && s[most].n > SKETCH_POINTS_MAX) {
		free(out->t_s);
		out->t_s = NULL;
	}
	free(at);
	free(last);
}
