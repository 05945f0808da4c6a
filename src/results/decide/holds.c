/* SPDX-License-Identifier: Apache-2.0 */
/* holds.c - see holds.h. */
#include "results/decide/holds.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "core/stats/significance.h"
#include "core/stats/stats.h"

#define WARMUP_E2E 3.0         /* end-to-end times left out */
#define CARRIED_SHARE 0.95
#define CARRIED_Z 2.33
#define TREND_TAU 0.6
#define TREND_GROWTH 1.5
#define TREND_ENDS 3
#define DECIDE_Z 1.645         /* one-sided 95 % */

/* ---- a level from its requests ---- */

/* Mean end-to-end time of what has finished; NAN: nothing has. */
static double mean_e2e(const struct level_request *r, size_t n)
{
	double sum = 0;
	size_t finished = 0;

	for (size_t i = 0; i < n; i++)
		if (!r[i].is_failed && isfinite(r[i].end_s)) {
			sum += r[i].end_s - r[i].due_s;
			finished++;
		}
	return finished ? sum / (double)finished : NAN;
}

static void take_batch(struct level_batch *b, const struct level_request *r, size_t n,
		       size_t limits)
{
	double sum[LEVEL_LIMITS_MAX] = { 0 };
	size_t values[LEVEL_LIMITS_MAX] = { 0 };

	for (size_t i = 0; i < n; i++) {
		bool has_value = r[i].value && !r[i].is_failed && isfinite(r[i].end_s);

		for (size_t j = 0; j < limits; j++) {
			bool is_slow = r[i].is_failed || (r[i].slow >> j & 1);

			b->n[j] += is_slow || !(r[i].open >> j & 1);
			b->slow[j] += is_slow;
			if (has_value && !isnan(r[i].value[j])) {
				sum[j] += r[i].value[j];
				values[j]++;
			}
		}
	}
	for (size_t j = 0; j < limits; j++)
		b->mean[j] = values[j] ? sum[j] / (double)values[j] : NAN;
}

/* Mean TTFT of blocks of equal count; a block without any gives none at all. */
static void take_blocks(struct level *out, const struct level_request *r, size_t n)
{
	for (size_t k = 0; k < LEVEL_BLOCKS; k++) {
		double sum = 0;
		size_t count = 0;

		for (size_t i = n * k / LEVEL_BLOCKS; i < n * (k + 1) / LEVEL_BLOCKS; i++)
			if (!isnan(r[i].ttft_s)) {
				sum += r[i].ttft_s;
				count++;
			}
		if (!count)
			return;
		out->ttft_s[k] = sum / (double)count;
	}
	out->blocks = LEVEL_BLOCKS;
}

double level_warmup_s(const struct level_request *r, size_t n, double least_s, double sent_s)
{
	double e2e_s = mean_e2e(r, n);

	assert(least_s >= 0 && sent_s >= 0);
	return fmin(fmax(least_s, isnan(e2e_s) ? 0 : WARMUP_E2E * e2e_s), sent_s / 2);
}

void level_take(struct level *out, const struct level_request *r, size_t n, size_t limits,
		double warmup_s, double sent_s)
{
	double load = out->load, spent_s = out->spent_s, middle;
	size_t first = 0;

	assert(limits <= LEVEL_LIMITS_MAX && warmup_s >= 0 && warmup_s <= sent_s);
	memset(out, 0, sizeof(*out));
	out->load = load;
	out->spent_s = spent_s;
	while (n && r[n - 1].due_s > sent_s)
		n--;
	out->requests = n;
	out->e2e_s = mean_e2e(r, n);
	out->warmup_s = warmup_s;
	out->hold_s = sent_s - out->warmup_s;
	middle = out->warmup_s + out->hold_s / 2;
	while (first < n && r[first].due_s < out->warmup_s)
		first++;
	for (size_t i = 0; i < n; i++) {
		assert(!i || r[i].due_s >= r[i - 1].due_s);
		out->due_late += r[i].due_s >= middle;
		out->done_late += !r[i].is_failed && r[i].end_s >= middle && r[i].end_s <= sent_s;
		out->failed += i >= first && r[i].is_failed;
	}
	r += first;
	n -= first;
	out->attempted = n;
	out->batches = n < LEVEL_BATCHES ? n : LEVEL_BATCHES;
	for (size_t b = 0; b < out->batches; b++) {
		size_t from = n * b / out->batches, to = n * (b + 1) / out->batches;

		take_batch(&out->batch[b], r + from, to - from, limits);
	}
	if (n >= LEVEL_BLOCKS)
		take_blocks(out, r, n);
}

struct level_count level_count(const struct level *l, size_t limit)
{
	struct level_count c = { 0, 0 };

	assert(limit < LEVEL_LIMITS_MAX && l->batches <= LEVEL_BATCHES);
	for (size_t b = 0; b < l->batches; b++) {
		assert(l->batch[b].slow[limit] <= l->batch[b].n[limit]);
		c.n += l->batch[b].n[limit];
		c.slow += l->batch[b].slow[limit];
	}
	return c;
}

double level_dispersion(const struct level *l, size_t limit)
{
	struct level_count c = level_count(l, limit);
	double p = c.n > 0 ? c.slow / c.n : 0, squares = 0, batches = (double)l->batches;

	if (!(p > 0 && p < 1) || l->batches < 2)
		return 1;
	for (size_t b = 0; b < l->batches; b++) {
		double off = l->batch[b].slow[limit] - p * l->batch[b].n[limit];

		squares += off * off;
	}
	return fmax(1, squares / (batches - 1) / (p * (1 - p) * c.n / batches));
}

double level_dispersion_joined(const struct level *l, size_t limit)
{
	double weight = fmin(level_count(l, limit).slow, LEVEL_DISPERSION_COUNT_MAX);

	return (LEVEL_DISPERSION_PRIOR * LEVEL_DISPERSION_WEIGHT +
		weight * level_dispersion(l, limit)) / (LEVEL_DISPERSION_WEIGHT + weight);
}

struct level_mean level_mean(const struct level *l, size_t limit)
{
	double mean[LEVEL_BATCHES];
	size_t n = 0;

	assert(limit < LEVEL_LIMITS_MAX && l->batches <= LEVEL_BATCHES);
	for (size_t b = 0; b < l->batches; b++)
		if (!isnan(l->batch[b].mean[limit]))
			mean[n++] = l->batch[b].mean[limit];
	if (n < 2)
		return (struct level_mean){ NAN, NAN };
	return (struct level_mean){ stats_mean(mean, n),
				    stats_std(mean, n) / sqrt((double)(n - 1)) };
}

/* ---- tests of a level ---- */

bool holds_carried(const struct level *l)
{
	double done = (double)l->done_late, due = (double)l->due_late;

	return done + CARRIED_Z * sqrt(due) >= CARRIED_SHARE * due;
}

double holds_tau(const double *x, size_t n)
{
	double sum = 0;

	assert(n >= 2);
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n; k++)
			sum += (x[k] > x[i]) - (x[k] < x[i]);
	return sum / ((double)n * (double)(n - 1) / 2);
}

bool holds_ttft_grows(const struct level *l)
{
	const double *x = l->ttft_s;

	if (l->blocks != LEVEL_BLOCKS)
		return false;
	return holds_tau(x, LEVEL_BLOCKS) > TREND_TAU &&
	       stats_mean(x + LEVEL_BLOCKS - TREND_ENDS, TREND_ENDS) >
		       TREND_GROWTH * stats_mean(x, TREND_ENDS);
}

/* ---- a fixed load ---- */

double holds_binomial_cdf(double k, double n, double p)
{
	assert(n > 0 && p > 0 && p < 1);
	if (k < 0)
		return 0;
	return k >= n ? 1 : beta_regularised(1 - p, n - k, k + 1);
}

/*
 * How many requests decide a share that is as far from the limit as this one; with no slow ones,
 * as many as the binomial test asks for.
 */
static double requests_needed(double share, double phi, double quantile)
{
	double off = share - (1 - quantile);
	double n = phi * DECIDE_Z * DECIDE_Z * (1 - quantile) * quantile / (off * off);

	if (fabs(off) < 1e-9)
		return INFINITY;
	return share > 0 ? n : fmax(n, phi * log(HOLDS_ALPHA) / log(quantile));
}

struct holds_answer holds_share(double n, double slow, double phi, double quantile)
{
	struct holds_answer a = { .verdict = HOLDS_OPEN, .share = NAN, .phi = phi,
				  .p_above = 1, .p_below = 1 };

	assert(quantile > 0 && quantile < 1 && phi >= 1 && slow >= 0 && slow <= n);
	a.requests_more = ceil(requests_needed(0, phi, quantile));
	if (!(n > 0))
		return a;
	a.share = slow / n;
	a.p_below = holds_binomial_cdf(slow / phi, n / phi, 1 - quantile);
	a.p_above = 1 - holds_binomial_cdf(slow / phi - 1, n / phi, 1 - quantile);
	if (a.p_below < HOLDS_ALPHA)
		a.verdict = HOLDS_PASSES;
	else if (a.p_above < HOLDS_ALPHA)
		a.verdict = HOLDS_FAILS;
	a.requests_more = 0;
	if (a.verdict == HOLDS_OPEN) /* the tail is discrete: never less than a quarter again */
		a.requests_more = ceil(fmax(requests_needed(a.share, phi, quantile) - n, n / 4));
	return a;
}

struct holds_answer holds_mean(const struct level *l, size_t limit, double value,
			       bool is_at_least)
{
	struct holds_answer a = { .verdict = HOLDS_OPEN, .share = NAN, .phi = 1, .p_above = 1,
				  .p_below = 1, .requests_more = INFINITY };
	struct level_mean m = level_mean(l, limit);
	double off = is_at_least ? value - m.mean : m.mean - value, z, df;

	assert(value > 0);
	if (isnan(m.mean))
		return a;
	df = fmax(1, (double)l->batches - 1);
	z = m.se > 0 ? off / m.se : copysign(INFINITY, off);
	a.p_below = student_cdf(z, df);
	a.p_above = student_cdf(-z, df);
	if (a.p_below < HOLDS_ALPHA)
		a.verdict = HOLDS_PASSES;
	else if (a.p_above < HOLDS_ALPHA)
		a.verdict = HOLDS_FAILS;
	else
		a.requests_more = ceil((double)l->attempted *
				       fmax(0.25, DECIDE_Z * DECIDE_Z / (z * z) - 1));
	if (a.verdict != HOLDS_OPEN)
		a.requests_more = 0;
	return a;
}
