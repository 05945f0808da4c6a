/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - how often `bench compare` is right on made-up pairs.
 *
 * Noise as in the study behind the verdicts: every run scatters by 2 % within its server
 * session, every session by 1.5 %; the server is restarted for each run, except in the last
 * rows, where one session holds all repeats of a side. Each row is a share of seeded trials, so
 * it is the same on every machine.
 */
#include <math.h>

#include "kit/kit.h"
#include "report/compare.h"
#include "rng/pcg64.h"

#define TRIALS 4000
#define TRIALS_QUICK 200
#define WITHIN 0.02
#define BETWEEN 0.015
#define RUNS_MAX 10

struct scene {
	size_t runs;
	double change;
	bool is_one_session;
	double most, least; /* target in per cent; NAN: none */
};

static const struct scene scenes[] = {
	{ 3, 0, false, NAN, NAN }, { 3, 0.05, false, NAN, NAN }, { 5, 0, false, 5, NAN },
	{ 5, 0.05, false, NAN, 70 }, { 10, 0, false, 5, NAN }, { 10, 0.05, false, NAN, 70 },
	{ 10, 0, true, NAN, NAN },
};

/* Box and Muller's normal number. */
static double normal(struct pcg64 *rng)
{
	double u = 1 - pcg64_double(rng), v = pcg64_double(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static void draw(struct pcg64 *rng, const struct scene *s, double base, double *out)
{
	double session = normal(rng);

	for (size_t i = 0; i < s->runs; i++) {
		if (i && !s->is_one_session)
			session = normal(rng);
		out[i] = base * exp(BETWEEN * session + WITHIN * normal(rng));
	}
}

static void measure(struct bench *b, const struct scene *s, unsigned trials)
{
	static const struct compare_opts opts = { .alpha = 0.05, .level = 0.95, .min_effect = -1 };
	static const struct compare_metric metric = { "output_throughput", "tokens/s",
						      SCHEMA_HIGHER, 0.03 };
	unsigned found = 0, not_enough = 0;
	struct figure *f;
	struct pcg64 rng;

	pcg64_seed(&rng, 20260);
	for (unsigned i = 0; i < trials; i++) {
		double x[RUNS_MAX], y[RUNS_MAX];
		struct compare_cell cell;

		draw(&rng, s, 1000, x);
		draw(&rng, s, 1000 * (1 + s->change), y);
		compare_values(&opts, &metric, x, s->runs, y, s->runs, &cell);
		found += cell.verdict == COMPARE_REGRESSION || cell.verdict == COMPARE_IMPROVEMENT;
		not_enough += cell.verdict == COMPARE_NOT_ENOUGH;
	}
	f = bench_add(b, "%", 100.0 * found / trials, "%zu repeats, %.0f %%%s: found (%u of %u)",
		      s->runs, s->change * 100, s->is_one_session ? ", one session" : "", found, trials);
	if (!isnan(s->most))
		figure_most(f, s->most);
	if (!isnan(s->least))
		figure_least(f, s->least);
	if (not_enough)
		bench_add(b, "%", 100.0 * not_enough / trials, "%zu repeats, %.0f %%: not enough data",
			  s->runs, s->change * 100);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	struct bench b;

	if (bench_begin(&b, "compare", argc, argv, &e) == 0)
		for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
			measure(&b, &scenes[i], b.is_quick ? TRIALS_QUICK : TRIALS);
	return bench_end(&b, &e);
}
