/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ab.c - how often `bench ab` is right, on made-up pairs.
 *
 * First table: independent normal differences of standard deviation 4 %, D = 3 %, at most 200
 * pairs; the plain rule ("fixed", neighbours never joined) as the study has it, and the rule as it
 * is shipped, next to Student's t looked at after every pair and to a comparison of 40 fixed pairs.
 * Second table: no difference on average, each assumption broken in turn, 200 looks; a finding is
 * a false one. Each row is a share of seeded trials, so it is the same on every machine.
 *
 * Exits with 1 when a limit is missed.
 */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "decide/paired.h"
#include "kit/kit.h"
#include "stats/compare.h"
#include "stats/stats.h"

#define TRIALS 4000
#define TRIALS_QUICK 200
#define PAIRS 200
#define FIXED_PAIRS 40
#define LOOKS_FROM 5            /* pairs at which the ordinary t begins to look, as the rule does */
#define SD 0.04
#define EFFECT_MIN 0.03
#define NEVER 1e-6              /* an effect_min that nothing stays below */
#define FIRST_OF_PAIR 0.3       /* standard deviations by which the first of a pair is slower */

static unsigned missed;

/* A share with a limit: at most, or at least. */
static void most(struct bench *b, struct figure *f, double target)
{
	figure_most(f, target);
	missed += !b->is_quick && f->value[0] > target;
}

static void least(struct bench *b, struct figure *f, double target)
{
	figure_least(f, target);
	missed += !b->is_quick && f->value[0] < target;
}

/* ---- differences ---- */

enum law { NORMAL, T3, OUTLIERS, EXPONENTIAL, AR1, A_FIRST, BY_COIN, DRIFT };

struct scene {
	const char *name;
	enum law law;
	double r;           /* lag-1 correlation */
	double limit[4];    /* most false findings in %, by PLAIN to SHIPPED; NAN: none */
};

/* Box and Muller's normal number. */
static double normal(struct pcg64 *rng)
{
	double u = 1 - pcg64_double(rng), v = pcg64_double(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

static double t3(struct pcg64 *rng)
{
	double squares = 0;

	for (int i = 0; i < 3; i++) {
		double z = normal(rng);

		squares += z * z;
	}
	return normal(rng) / sqrt(squares / 3);
}

/*
 * One difference with mean 0 in standard deviations; last is the one before. The first of a pair
 * is slower by FIRST_OF_PAIR, in the drifting scene by up to ten times that, growing over the
 * run: with the coin that adds or subtracts by chance.
 */
static double draw(struct pcg64 *rng, const struct scene *s, size_t pair, enum paired_side first,
		   double last)
{
	double sign = first == PAIRED_A ? -1 : 1;

	switch (s->law) {
	case T3: return t3(rng);
	case OUTLIERS: return normal(rng) * (pcg64_double(rng) < 0.05 ? 8 : 1);
	case EXPONENTIAL: return -log(1 - pcg64_double(rng)) - 1;
	case AR1: return pair ? s->r * last + sqrt(1 - s->r * s->r) * normal(rng) : normal(rng);
	case A_FIRST: return normal(rng) - FIRST_OF_PAIR;
	case BY_COIN: return normal(rng) + sign * FIRST_OF_PAIR;
	case DRIFT: return normal(rng) + sign * FIRST_OF_PAIR * 10 * (double)pair / PAIRS;
	default: return normal(rng);
	}
}

/* PAIRS differences; the coin is the engine's own. */
static void draw_all(struct pcg64 *rng, const struct scene *s, struct paired coin, double mean,
		     double *d)
{
	double last = 0;

	for (size_t i = 0; i < PAIRS; i++) {
		coin.is_tossed = false;
		last = draw(rng, s, i, paired_toss(&coin), last);
		d[i] = mean + SD * last;
	}
}

/* ---- rules ---- */

enum rule { PLAIN, BY_TWO, BY_FOUR, SHIPPED, RULES };
static const char *const rule_names[] = { "fixed", "joined by 2", "joined by 4", "shipped" };
static const unsigned rule_join[] = { 1, 2, 4, 0 };

static void start(struct paired *p, enum rule rule, double effect_min, uint64_t seed)
{
	paired_init(p, &(struct paired_opts){
		.alpha = PAIRED_ALPHA, .n_metrics = 1, .metric = { { 1, effect_min, true } },
		.seconds_max = INFINITY, .pairs_max = PAIRS, .join = rule_join[rule],
		.seed = seed });
	(void)paired_toss(p);
	(void)paired_add(p, &(struct paired_pair){ .seconds = 20 });
}

static void run(struct paired *p, const double *d, struct paired_result *out)
{
	enum paired_next next = PAIRED_GO_ON;

	for (size_t i = 0; i < PAIRS && next == PAIRED_GO_ON; i++) {
		struct paired_pair pair = { .seconds = 20, .value = { { 1 }, { exp(d[i]) } } };

		(void)paired_toss(p);
		next = paired_add(p, &pair);
	}
	paired_result(p, 0, out);
}

static bool has_found(const struct paired_result *r)
{
	return r->verdict == PAIRED_BETTER || r->verdict == PAIRED_WORSE;
}

/* Whether the plain interval held the truth at each of all looks. */
static bool has_covered(const double *d, double truth)
{
	struct paired_interval x;

	paired_interval_init(&x);
	for (size_t i = 0; i < PAIRS; i++)
		paired_interval_add(&x, d[i], PAIRED_ALPHA);
	return x.low <= truth && truth <= x.high;
}

/* Student's t against 0 after every pair, or after the last one of n only. */
static bool t_finds(const double *d, const double *quantile, size_t from, size_t n)
{
	double mean = 0, squares = 0;

	for (size_t i = 0; i < n; i++) {
		double off = d[i] - mean, count = (double)(i + 1);

		mean += off / count;
		squares += off * (d[i] - mean);
		if (i + 1 >= from && fabs(mean) > quantile[i] * sqrt(squares / (count - 1) / count))
			return true;
	}
	return false;
}

/* ---- first table ---- */

struct tally { unsigned larger, smaller, none, moved; double *pairs; };

static void count(struct tally *t, unsigned trial, const struct paired *p)
{
	struct paired_result r;

	paired_result(p, 0, &r);
	t->larger += r.verdict == PAIRED_BETTER;
	t->smaller += r.verdict == PAIRED_WORSE;
	t->none += r.verdict == PAIRED_NO_CHANGE;
	t->moved += r.verdict == PAIRED_MOVED;
	t->pairs[trial] = p->pairs;
}

static void tell(struct bench *b, struct tally *t, unsigned trials, double effect, enum rule rule,
		 double median_most)
{
	const char *name = rule_names[rule];
	double share = 100.0 / trials, percent = 100 * effect;
	struct figure *f;

	f = bench_add(b, "%", share * t->larger, "%.0f %%, %s: larger", percent, name);
	if (effect >= EFFECT_MIN)
		least(b, f, 95);
	f = bench_add(b, "%", share * t->smaller, "%.0f %%, %s: smaller", percent, name);
	most(b, f, 2.5);
	f = bench_add(b, "%", share * t->none, "%.0f %%, %s: no change above 3 %%", percent, name);
	if (effect >= EFFECT_MIN)
		most(b, f, 5);
	else if (effect <= 0)
		least(b, f, 95);
	stats_sort(t->pairs, trials);
	f = bench_add(b, "pairs", stats_median(t->pairs, trials), "%.0f %%, %s: median", percent,
		      name);
	most(b, f, median_most);
	bench_add(b, "pairs", stats_percentile(t->pairs, trials, 90), "%.0f %%, %s: 90 %%", percent,
		  name);
	free(t->pairs);
}

static void effects(struct bench *b, unsigned trials, const double *quantile)
{
	static const struct { double effect, plain, shipped; } row[] = {
		{ 0, 28, 32 }, { 0.01, 34, 38 }, { 0.02, 33, 38 }, { 0.03, 20, 24 },
		{ 0.05, 11, 15 },
	};
	static const struct scene scene = { .law = NORMAL };

	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct tally tally[2] = { { .pairs = mem_array(trials, sizeof(double)) },
					  { .pairs = mem_array(trials, sizeof(double)) } };
		unsigned covered = 0, looked = 0, once = 0;
		double truth = log1p(row[i].effect), d[PAIRS];
		struct pcg64 rng;

		pcg64_seed(&rng, 20261);
		for (unsigned t = 0; t < trials; t++) {
			struct paired p;
			struct paired_result r;

			start(&p, PLAIN, EFFECT_MIN, t);
			draw_all(&rng, &scene, p, truth, d);
			run(&p, d, &r);
			count(&tally[0], t, &p);
			start(&p, SHIPPED, EFFECT_MIN, t);
			run(&p, d, &r);
			count(&tally[1], t, &p);
			covered += has_covered(d, truth);
			looked += t_finds(d, quantile, LOOKS_FROM, PAIRS);
			once += t_finds(d, quantile, FIXED_PAIRS, FIXED_PAIRS);
		}
		tell(b, &tally[0], trials, row[i].effect, PLAIN, row[i].plain);
		least(b, bench_add(b, "%", 100.0 * covered / trials, "%.0f %%, fixed: always covered",
				   100 * row[i].effect), 95);
		tell(b, &tally[1], trials, row[i].effect, SHIPPED, row[i].shipped);
		bench_add(b, "%", 100.0 * looked / trials, "%.0f %%, t at each look: found",
			  100 * row[i].effect);
		bench_add(b, "%", 100.0 * once / trials, "%.0f %%, t after 40 pairs: found",
			  100 * row[i].effect);
	}
}

/* ---- second table ---- */

static const struct scene scenes[] = {
	{ "normal", NORMAL, 0, { 5, 5, 5, 5 } },
	{ "t with 3 degrees", T3, 0, { 5, 5, 5, 5 } },
	{ "5 % outliers of 8 sd", OUTLIERS, 0, { 5, 5, 5, 5 } },
	{ "skewed (exponential)", EXPONENTIAL, 0, { NAN, 10, 6, 13 } },
	{ "correlated 0.2", AR1, 0.2, { NAN, 8, 5, 10 } },
	{ "correlated 0.4", AR1, 0.4, { NAN, NAN, 7.5, 15 } },
	{ "first slower, A first", A_FIRST, 0, { NAN, NAN, NAN, NAN } },
	{ "first slower, by coin", BY_COIN, 0, { 5, 5, 5, 5 } },
	{ "drift, by coin", DRIFT, 0, { 5, 5, 5, 5 } },
};

static void false_findings(struct bench *b, const struct scene *s, unsigned trials,
			   const double *quantile)
{
	unsigned found[RULES] = { 0 }, confirmed = 0, looked = 0;
	double d[PAIRS];
	struct pcg64 rng;

	pcg64_seed(&rng, 20262);
	for (unsigned t = 0; t < trials; t++) {
		struct paired p;

		start(&p, PLAIN, NEVER, t);
		draw_all(&rng, s, p, 0, d);
		for (unsigned rule = 0; rule < RULES; rule++) {
			struct paired_result r;

			start(&p, rule, NEVER, t);
			run(&p, d, &r);
			found[rule] += has_found(&r);
		}
		/* The check looks at all pairs, with the D of a usual run: kept from stopping. */
		start(&p, BY_FOUR, EFFECT_MIN, t);
		for (size_t i = 0; i < PAIRS; i++) {
			struct paired_pair pair = { .value = { { 1 }, { exp(d[i]) } } };

			(void)paired_toss(&p);
			(void)paired_add(&p, &pair);
		}
		confirmed += p.track[0].check_ln_e_max >= log(1 / PAIRED_ALPHA);
		looked += t_finds(d, quantile, LOOKS_FROM, PAIRS);
	}
	for (unsigned rule = 0; rule < RULES; rule++) {
		struct figure *f = bench_add(b, "%", 100.0 * found[rule] / trials, "%s: %s", s->name,
					     rule_names[rule]);

		if (!isnan(s->limit[rule]))
			most(b, f, s->limit[rule]);
	}
	bench_add(b, "%", 100.0 * confirmed / trials, "%s: coin-only check", s->name);
	bench_add(b, "%", 100.0 * looked / trials, "%s: t at each look", s->name);
}

int main(int argc, char **argv)
{
	double quantile[PAIRS] = { 0 };
	struct err e = { 0 };
	struct bench b;
	int status;

	if (bench_begin(&b, "ab", argc, argv, &e) == 0) {
		unsigned trials = b.is_quick ? TRIALS_QUICK : TRIALS;

		for (size_t n = 2; n <= PAIRS; n++)
			quantile[n - 1] = student_quantile(0.975, (double)(n - 1));
		effects(&b, trials, quantile);
		for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++)
			false_findings(&b, &scenes[i], trials, quantile);
	}
	status = bench_end(&b, &e);
	return status ? status : missed > 0;
}
