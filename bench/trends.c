/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trends.c - how often the change points of trends are right on generated series.
 *
 * A series has 60 commits, each the mean of three runs; every run scatters by 2 % and every commit
 * by 1.5 %, in the last rows every run has both by itself, and 2 % of the commits are outliers of
 * +20 %. A step, if any, is placed so that a given number of commits follow it. A step is found
 * when a point is within two commits of it; in a series without one every point is false, and with
 * one those beyond two commits. Each row is a share of seeded trials, so it is the same on every
 * machine.
 *
 * Then a look every night, with what the dashboard uses: the last NIGHTS_WINDOW nights since the
 * last alarm, p < 1e-5, at least 3 %. Of 50 noisy series of a year, where nothing changes, the
 * alarms are counted; of series that step by 5 % at night STEP_NIGHT, those that are found within
 * two weeks. A night is the mean of three runs of one session; 2 % of the nights are slower, by 15
 * % on average.
 */
#include <math.h>
#include <stdlib.h>

#include "core/rng/rng.h"
#include "core/stats/edivisive.h"
#include "kit/kit.h"

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

/* ---- a look every night ---- */

#define NIGHTS 365
#define NIGHTS_WINDOW 90
#define YEARS 200            /* series without a change; alarms are reported per 50 of them */
#define YEARS_QUICK 50
#define STEPS 400
#define STEPS_QUICK 100
#define STEP_NIGHT 60
#define STEP_SOON 14
#define SLOW 0.3             /* a slow night is slower by up to so much */
#define ALARMS_MOST 15
#define FOUND_LEAST 95

static const struct edivisive_opts nightly = { 1e-5, 0.03, 3, NIGHTS_WINDOW };

static double night(struct pcg64 *rng)
{
	double x = BETWEEN * normal(rng);

	for (int i = 0; i < RUNS; i++)
		x += WITHIN * normal(rng) / RUNS;
	return 1000 * exp(x) * (pcg64_double(rng) < OUTLIERS ? 1 - SLOW * pcg64_double(rng) : 1);
}

/* The first night from `from` on at which a look back to `base` finds a change; its place in at. */
static size_t first_alarm(const double *x, size_t n, size_t base, size_t from, size_t *at)
{
	struct change_point point[NIGHTS_WINDOW];

	for (size_t k = from; k < n; k++) {
		size_t since = k + 1 - base > NIGHTS_WINDOW ? k + 1 - NIGHTS_WINDOW : base;
		size_t found = edivisive(x + since, k + 1 - since, &nightly, point);

		if (found) {
			*at = since + point[found - 1].index;
			return k;
		}
	}
	return n;
}

static void measure_years(struct bench *b, unsigned years)
{
	struct pcg64 rng;
	unsigned alarms = 0;

	pcg64_seed(&rng, 20262);
	for (unsigned i = 0; i < years; i++) {
		double x[NIGHTS];
		size_t base = 0, k;

		for (k = 0; k < NIGHTS; k++)
			x[k] = night(&rng);
		for (k = 0; (k = first_alarm(x, NIGHTS, base, k, &base)) < NIGHTS; k++)
			alarms++;
	}
	figure_most(bench_add(b, "alarms/year", 50.0 * alarms / years,
			      "nightly: false, 50 noisy series"), ALARMS_MOST);
}

static void measure_steps(struct bench *b, double step, double least, unsigned trials)
{
	struct pcg64 rng;
	unsigned found = 0;
	struct figure *f;

	pcg64_seed(&rng, 20263);
	for (unsigned i = 0; i < trials; i++) {
		double x[STEP_NIGHT + STEP_SOON];
		size_t at;

		for (size_t k = 0; k < STEP_NIGHT + STEP_SOON; k++)
			x[k] = night(&rng) * (k >= STEP_NIGHT ? 1 - step : 1);
		found += first_alarm(x, STEP_NIGHT + STEP_SOON, 0, STEP_NIGHT, &at) <
			 STEP_NIGHT + STEP_SOON && at + NEAR >= STEP_NIGHT;
	}
	f = bench_add(b, "%", 100.0 * found / trials, "nightly: -%.0f %% found within two weeks",
		      100 * step);
	if (!isnan(least))
		figure_least(f, least);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	struct bench b;

	if (bench_begin(&b, "trends", argc, argv, &e) == 0) {
		for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
			measure(&b, &scenes[i], b.is_quick ? TRIALS_QUICK : TRIALS);
		measure_years(&b, b.is_quick ? YEARS_QUICK : YEARS);
		measure_steps(&b, 0.03, NAN, b.is_quick ? STEPS_QUICK : STEPS);
		measure_steps(&b, 0.05, FOUND_LEAST, b.is_quick ? STEPS_QUICK : STEPS);
		measure_steps(&b, 0.1, FOUND_LEAST, b.is_quick ? STEPS_QUICK : STEPS);
	}
	return bench_end(&b, &e);
}
