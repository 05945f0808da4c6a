/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trends.c - how often the change points of trends are right on made-up series.
 *
 * A series has 60 commits, each the mean of three runs; every run scatters by 2 % and every commit
 * by 1.5 %, in the last rows every run has both by itself, and of commits 2 % are outliers of
 * +20 %. A step, where there is one, lies so that some many commits come after it. A step is
 * found when a point lies within two commits of it; in a series without one every point is
 * false, and with one those beyond two commits. Each row is a share of seeded trials, so it is
 * the same on every machine.
 */
#include <math.h>
#include <stdlib.h>

#include "kit/kit.h"
#include "rng/pcg64.h"
#include "stats/edivisive.h"

#define TRIALS 1500
#define TRIALS_QUICK 100
#define COMMITS 60
#define RUNS 3
#define WITHIN 0.02
#define BETWEEN 0.015
#define OUTLIERS 0.02
#define OUTLIER 0.2
#define NEAR 2

struct scene {
	double step;
	size_t after;
	bool is_by_run;      /* every run has a session of its own */
	double most, least;  /* target; NAN: none */
};

static const struct scene scenes[] = {
	{ 0, 20, false, 0.3, NAN }, { 0.03, 20, false, NAN, NAN }, { 0.05, 3, false, NAN, NAN },
	{ 0.05, 20, false, NAN, 85 }, { -0.05, 20, false, NAN, 85 }, { 0.1, 3, false, NAN, NAN },
	{ 0, 20, true, 0.3, NAN }, { 0.05, 20, true, NAN, 85 },
};

static double normal(struct pcg64 *rng)
{
	double u = 1 - pcg64_double(rng), v = pcg64_double(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double commit(struct pcg64 *rng, const struct scene *s)
{
	double session = normal(rng), sum = 0;

	for (int i = 0; i < RUNS; i++) {
		if (i && s->is_by_run)
			session = normal(rng);
		sum += exp(BETWEEN * session + WITHIN * normal(rng));
	}
	return sum / RUNS * (pcg64_double(rng) < OUTLIERS ? 1 + OUTLIER : 1);
}

static void measure(struct bench *b, const struct scene *s, unsigned trials)
{
	static const struct edivisive_opts opts = { 0.001, 0.03, 3, 300 };
	struct change_point point[COMMITS];
	unsigned found = 0, others = 0;
	struct figure *f;
	struct pcg64 rng;

	pcg64_seed(&rng, 20261);
	for (unsigned i = 0; i < trials; i++) {
		double x[COMMITS];
		size_t n, at = COMMITS - s->after;
		bool is_found = false;

		for (size_t k = 0; k < COMMITS; k++)
			x[k] = 1000 * commit(&rng, s) * (k >= at ? 1 + s->step : 1);
		n = edivisive(x, COMMITS, &opts, point);
		for (size_t k = 0; k < n; k++) {
			bool is_near = fabs(s->step) > 0 && point[k].index + NEAR >= at &&
				       point[k].index <= at + NEAR;

			is_found |= is_near;
			others += !is_near;
		}
		found += is_found;
	}
	if (fabs(s->step) > 0) {
		f = bench_add(b, "%", 100.0 * found / trials, "%+.0f %%, %zu after%s: found",
			      100 * s->step, s->after, s->is_by_run ? ", by run" : "");
		if (!isnan(s->least))
			figure_least(f, s->least);
	}
	f = bench_add(b, "points", (double)others / trials, "%+.0f %%, %zu after%s: false, a series",
		      100 * s->step, s->after, s->is_by_run ? ", by run" : "");
	if (!isnan(s->most))
		figure_most(f, s->most);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	struct bench b;

	if (bench_begin(&b, "trends", argc, argv, &e) == 0)
		for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
			measure(&b, &scenes[i], b.is_quick ? TRIALS_QUICK : TRIALS);
	return bench_end(&b, &e);
}
