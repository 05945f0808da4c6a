/* SPDX-License-Identifier: Apache-2.0 */
/* settled.c - see settled.h. */
#include "core/stats/settled.h"

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"

/* ---- the variance of a mean ---- */

/*
 * The squares of the first cosine transforms of values less their mean. The cosines are a turning
 * pointer, because n calls for each wave would take longer than everything else.
 */
static void squared_waves(const double *x, size_t n, double mean, double out[SETTLED_WAVES])
{
	for (int j = 0; j < SETTLED_WAVES; j++) {
		double step = M_PI * (j + 1) / (double)n, sum = 0;
		double re = cos(step / 2), im = sin(step / 2), c = cos(step), s = sin(step);

		for (size_t i = 0; i < n; i++) {
			double turned = re * c - im * s;

			sum += (x[i] - mean) * re;
			im = im * c + re * s;
			re = turned;
		}
		out[j] = 2 * sum * sum / (double)n;
	}
}

/* n times the variance of a mean of n values. */
static double long_run_variance(const double *x, size_t n, double mean)
{
	double wave[SETTLED_WAVES];

	squared_waves(x, n, mean, wave);
	return stats_sum(wave, SETTLED_WAVES) / SETTLED_WAVES;
}

static double variance(const double *x, size_t n, double mean)
{
	double squares = 0;

	for (size_t i = 0; i < n; i++)
		squares += (x[i] - mean) * (x[i] - mean);
	return squares / (double)(n - 1);
}

/* ---- warm-up ---- */

static size_t count_below(const double *sorted, size_t n, double v, bool or_equal)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sorted[middle] < v || (or_equal && sorted[middle] == v))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* From 0 to 1; equal values share the middle of their ranks. For free(). */
static double *ranks_of(const double *x, size_t n)
{
	double *sorted = stats_sorted(x, n), *out = mem_array(n, sizeof(*out));

	for (size_t i = 0; i < n; i++)
		out[i] = 0.5 * (double)(count_below(sorted, n, x[i], false) +
					count_below(sorted, n, x[i], true)) / (double)n;
	free(sorted);
	return out;
}

/* The start that MSER-5 proposes: walks back from the end, so that each rest is one more batch. */
static size_t mser(const double *x, size_t n)
{
	size_t batches = n / SETTLED_STEP, best = 0;
	double least = INFINITY, sum = 0, squares = 0;

	for (size_t k = batches; k-- > 0;) {
		double y = stats_mean(x + k * SETTLED_STEP, SETTLED_STEP);
		double m = (double)(batches - k), error;

		sum += y;
		squares += y * y;
		error = (squares - sum * sum / m) / (m * m);
		if (k <= batches / 2 && error <= least) {
			least = error;
			best = k;
		}
	}
	return best * SETTLED_STEP;
}

size_t settled_warm_up(const double *in_time, size_t n)
{
	double *rank, before, after, spread, alone, error;
	size_t cut;

	if (n < SETTLED_NEEDED)
		return 0;
	rank = ranks_of(in_time, n);
	cut = mser(rank, n);
	if (cut && cut < n / SETTLED_STEP / 2 * SETTLED_STEP) {
		before = stats_mean(rank, cut);
		after = stats_mean(rank + cut, n - cut);
		alone = variance(rank + cut, n - cut, after);
		/* The variance of alternating values is at least that of independent ones here. */
		spread = fmax(long_run_variance(rank + cut, n - cut, after), alone);
		error = sqrt(spread * (1 / (double)cut + 1 / (double)(n - cut)));
		if (fabs(before - after) <= SETTLED_SIGMAS * error ||
		    (double)(n - cut) * alone < SETTLED_NEEDED * spread)
			cut = 0;
	} else {
		cut = 0;
	}
	free(rank);
	return cut;
}

/* ---- the mean ---- */

static double skewness_of_batches(const double *x, size_t n)
{
	double y[SETTLED_WAVES], mean, squares = 0, cubes = 0, k = SETTLED_WAVES;

	for (size_t b = 0; b < SETTLED_WAVES; b++) {
		size_t from = b * n / SETTLED_WAVES, to = (b + 1) * n / SETTLED_WAVES;

		y[b] = stats_mean(x + from, to - from);
	}
	mean = stats_mean(y, SETTLED_WAVES);
	for (size_t b = 0; b < SETTLED_WAVES; b++) {
		double off = y[b] - mean;

		squares += off * off;
		cubes += off * off * off;
	}
	squares /= k - 1;
	return squares > 0 ? cubes * k / ((k - 1) * (k - 2)) / pow(squares, 1.5) : 0;
}

/* Willink's form (2005) of the transformation; bend is skewness / (6 sqrt(batches)). */
static double bent(double t, double bend)
{
	return fabs(bend) < 0.001 ? t : (cbrt(1 + 6 * bend * (t - bend)) - 1) / (2 * bend);
}

/* The slowest wave is larger than the others allow, and larger than what counts as a change. */
static bool is_drifting(const double wave[SETTLED_WAVES], double all, size_t n, double mean)
{
	double swing = 2 * sqrt(2 * wave[0] / (double)n);

	return swing > SETTLED_DRIFT_SHARE * fabs(mean) &&
	       f_tail(wave[0] * (SETTLED_WAVES - 1) / (all - wave[0]), 1, SETTLED_WAVES - 1) <
		       SETTLED_DRIFT_P;
}

/* Fills all but the mean; x are values less their mean. */
static void judge(struct settled_mean *out, const double *x, size_t n, double mean, double level)
{
	double wave[SETTLED_WAVES], all, spread, phi, needed, error, t, bend;

	squared_waves(x, n, 0, wave);
	all = stats_sum(wave, SETTLED_WAVES);
	spread = variance(x, n, 0);
	if (!(spread > 0) || !(all > 0)) {
		out->state = n < SETTLED_NEEDED ? SETTLED_SHORT : SETTLED_KNOWN;
		out->needed = SETTLED_NEEDED;
		return;
	}
	phi = fmax(1, all / SETTLED_WAVES / spread);
	needed = SETTLED_NEEDED * (1 + SETTLED_NEEDED_LOG * log(phi));
	out->effective = (double)n / phi;
	out->needed = (size_t)ceil(needed * phi);
	if (is_drifting(wave, all, n, mean)) {
		out->state = SETTLED_DRIFTING;
		return;
	}
	if (out->effective < needed) {
		out->state = SETTLED_SHORT;
		return;
	}
	out->state = SETTLED_KNOWN;
	error = all / SETTLED_WAVES *
		(1 + SETTLED_WIDER * (needed - SETTLED_NEEDED) / out->effective);
	error = sqrt(error / (double)n);
	t = student_quantile(0.5 + level / 2, SETTLED_WAVES);
	bend = skewness_of_batches(x, n) / (6 * sqrt(SETTLED_WAVES));
	out->low = -bent(t, bend) * error;
	out->high = -bent(-t, bend) * error;
}

struct settled_mean settled_mean(const double *in_time, const double *weight, size_t n,
				 double level)
{
	double total = weight ? stats_sum(weight, n) : (double)n, each = total / (double)n;
	struct settled_mean out = { .n = n, .effective = (double)n };
	double *rest;

	assert(level > 0 && level < 1);
	if (!(total > 0))
		return out;
	out.mean = stats_sum(in_time, n) / total;
	if (n < 2 * SETTLED_WAVES) {
		out.state = SETTLED_SHORT;
		out.needed = SETTLED_NEEDED;
	} else {
		/* A ratio's error is that of what each value has more than its weight gives. */
		rest = mem_array(n, sizeof(*rest));
		for (size_t i = 0; i < n; i++)
			rest[i] = in_time[i] - out.mean * (weight ? weight[i] : 1);
		judge(&out, rest, n, out.mean * each, level);
		free(rest);
	}
	out.low = out.state == SETTLED_KNOWN ? out.mean + out.low / each : NAN;
	out.high = out.state == SETTLED_KNOWN ? out.mean + out.high / each : NAN;
	return out;
}
