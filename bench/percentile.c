/* SPDX-License-Identifier: Apache-2.0 */
/*
 * percentile.c - how often the printed interval of p99 holds the true one.
 *
 * Requests whose scores are normal numbers with lag-1 correlation r (an autoregression of order
 * one), 1,500 trials a row; next to it the interval that takes requests for independent. Each row
 * is a share of seeded trials, so it is the same on every machine. Exits with 1 when a limit is
 * missed.
 */
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "core/stats/percentile.h"
#include "core/stats/stats.h"
#include "kit/kit.h"

#define TRIALS 1500
#define TRIALS_QUICK 100
#define P99_SCORE 2.3263478740408408 /* of a normal number */

struct scene {
	double r;
	size_t n;
	double covered;  /* in %, at least */
	double open;     /* without an upper end, at most; NAN: none */
};

/*
 * The study's figures for its own rule less 2.5 standard errors of a share of 1,500 trials. The
 * last two are known to be too narrow.
 */
static const struct scene scenes[] = {
	{ 0, 400, 95, 30 },     { 0, 1000, 96, 2 },     { 0, 10000, 96, 0 },
	{ 0.5, 400, 95, 60 },   { 0.5, 1000, 95, 11 },  { 0.5, 10000, 95, 0 },
	{ 0.9, 1000, 90, 90 },  { 0.9, 10000, 93.5, 1 },
	{ 0.98, 1000, 84, NAN }, { 0.98, 10000, 90, 45 },
};

static unsigned missed;

static double normal(struct pcg64 *rng)
{
	double u = 1 - pcg64_double(rng), v = pcg64_double(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static bool holds(double low, double high)
{
	return low <= P99_SCORE && P99_SCORE <= high;
}

static void measure(struct bench *b, const struct scene *s, unsigned trials)
{
	double *x = mem_array(s->n, sizeof(*x)), share = 100.0 / trials;
	unsigned covered = 0, plain = 0, open = 0, marked = 0;
	struct figure *f;
	struct pcg64 rng;

	pcg64_seed(&rng, 20263);
	for (unsigned t = 0; t < trials; t++) {
		double *sorted;
		struct percentile p;
		struct interval ranks;

		x[0] = normal(&rng);
		for (size_t i = 1; i < s->n; i++)
			x[i] = s->r * x[i - 1] + sqrt(1 - s->r * s->r) * normal(&rng);
		sorted = stats_sorted(x, s->n);
		p = percentile_bounds(x, sorted, s->n, 99, 0.95);
		ranks = percentile_ranks(sorted, s->n, 99, 1, 0.95);
		covered += holds(p.low, p.high);
		plain += holds(ranks.low, ranks.high);
		open += !!(p.marks & PERCENTILE_OPEN);
		marked += !!(p.marks & (PERCENTILE_CLUMPED | PERCENTILE_FEW));
		free(sorted);
	}
	f = bench_add(b, "%", share * covered, "r %.2f, n %zu: covered", s->r, s->n);
	figure_least(f, s->covered);
	missed += !b->is_quick && f->value[0] < s->covered;
	bench_add(b, "%", share * plain, "r %.2f, n %zu: covered by plain ranks", s->r, s->n);
	f = bench_add(b, "%", share * open, "r %.2f, n %zu: no upper end", s->r, s->n);
	if (!isnan(s->open)) {
		figure_most(f, s->open);
		missed += !b->is_quick && f->value[0] > s->open;
	}
	bench_add(b, "%", share * marked, "r %.2f, n %zu: marked", s->r, s->n);
	free(x);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	struct bench b;
	int status;

	if (bench_begin(&b, "percentile", argc, argv, &e) == 0)
		for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
			measure(&b, &scenes[i], b.is_quick ? TRIALS_QUICK : TRIALS);
	status = bench_end(&b, &e);
	return status ? status : missed > 0;
}
