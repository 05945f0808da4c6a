/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ab.c - how often `bench ab` is right, on generated pairs and on modelled engines.
 *
 * First table: independent normal differences of standard deviation 4 %, D = 3 %, at most 200
 * pairs; the plain rule ("fixed", neighbors never joined) as in the study, and the rule as it is
 * shipped, compared with Student's t evaluated after every pair and with a comparison of 40 fixed
 * pairs. Second table: no difference on average, each assumption violated in turn, 200 evaluations;
 * a finding is a false one. Third table: 400 drawn engines (kit/batcher.h) at 0.7 of their
 * saturation, blocks and warm-up as in `bench ab`, the machine's speed varying by 1 % per block. B
 * is the same, or 3 % slower in every step; the machine is steady, or its speed resembles the block
 * before, or it drifts. Compared with Student's t after a fixed number of the same pairs, and with
 * the rule on pairs whose sides have different arrivals. Each row is a share of seeded trials, so
 * it is the same on every machine.
 *
 * Exits with 1 when a limit is missed.
 */
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"
#include "kit/batcher.h"
#include "kit/kit.h"
#include "results/decide/paired.h"

#define TRIALS 4000
#define TRIALS_QUICK 200
#define PAIRS 200
#define FIXED_PAIRS 40
#define LOOKS_FROM 5            /* pairs at which the ordinary t begins to look, as the rule does */
#define SD 0.04
#define EFFECT_MIN 0.03
#define NEVER 1e-6              /* an effect_min that nothing stays below */
#define ENGINES 400
#define ENGINES_QUICK 10
#define ENGINE_PAIRS 60         /* 20 minutes of blocks of 10 s */
#define ENGINE_LOAD 0.7         /* of saturation */
#define MACHINE_SD 0.01         /* of its speed, per block */
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

static double t3(struct pcg64 *rng)
{
	double squares = 0;

	for (int i = 0; i < 3; i++) {
		double z = batcher_normal(rng);

		squares += z * z;
	}
	return batcher_normal(rng) / sqrt(squares / 3);
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
	case OUTLIERS: return batcher_normal(rng) * (pcg64_double(rng) < 0.05 ? 8 : 1);
	case EXPONENTIAL: return -log(1 - pcg64_double(rng)) - 1;
	case AR1: return (pair ? s->r * last : 0) +
			 (pair ? sqrt(1 - s->r * s->r) : 1) * batcher_normal(rng);
	case A_FIRST: return batcher_normal(rng) - FIRST_OF_PAIR;
	case BY_COIN: return batcher_normal(rng) + sign * FIRST_OF_PAIR;
	case DRIFT: return batcher_normal(rng) + sign * FIRST_OF_PAIR * 10 * (double)pair / PAIRS;
	default: return batcher_normal(rng);
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

/* ---- third table ---- */

enum seen { TPOT, TTFT, E2EL, P99_TTFT, SEEN };
static const char *const seen_names[] = { "mean TPOT", "mean TTFT", "mean E2EL", "p99 TTFT" };

struct machine {
	const char *name;
	double slower;      /* of B's steps */
	double r, drift;    /* of its speed: lag-1 correlation of blocks; share over all pairs */
	bool is_other;      /* arrivals and prompts of the two sides */
	double wrong[SEEN]; /* most in %: a difference where there is none, or its opposite; NAN */
	double right[SEEN]; /* least in %; NAN: no limit */
};

static const struct machine machines[] = {
	{ "no change", 0, 0, 0, false, { 5, 5, 5, 5 }, { 95, NAN, 95, NAN } },
	{ "3 % slower steps", 0.03, 0, 0, false, { 5, 5, 5, 5 }, { 95, 95, 95, NAN } },
	{ "no change, blocks correlated 0.7", 0, 0.7, 0, false, { 5, 5, 5, 5 },
	  { NAN, NAN, NAN, NAN } },
	{ "no change, drift of 20 %", 0, 0, 0.2, false, { 5, 5, 5, 5 }, { NAN, NAN, NAN, NAN } },
	{ "no change, other arrivals", 0, 0, 0, true, { 5, 5, 5, 5 }, { NAN, NAN, NAN, NAN } },
	{ "3 % slower steps, other arrivals", 0.03, 0, 0, true, { 5, 5, 5, 5 },
	  { NAN, NAN, NAN, NAN } },
};

/* What a metric's own engine saw of an A/B, and what fixed numbers of its pairs would say. */
struct sequence { struct paired p; double d[ENGINE_PAIRS]; bool is_over; };

struct rig {
	struct batcher sim;
	struct engine e;
	double rate, speed, e2el;   /* speed: of the machine, in standard deviations */
	uint32_t requests;
	struct paired_block block;
};

/* One block with its draining; how long it took. */
static double live_block(struct rig *g, double slow, uint64_t load_seed, double value[SEEN])
{
	struct batcher *s = &g->sim;
	struct engine e = g->e;
	struct pcg64 load;
	double *ttft, n = 0;
	size_t first;

	e.t0 *= slow;
	e.a *= slow;
	e.b *= slow;
	e.c *= slow;
	pcg64_seed(&load, load_seed);
	s->load = &load;
	batcher_begin(s, &e, g->rate, 0);
	while (s->n < g->requests)
		batcher_live(s, s->next_due);
	s->is_closed = true;
	batcher_live(s, INFINITY);
	s->load = NULL;
	first = (size_t)((double)s->n * g->block.warmup_s / g->block.length_s);
	ttft = mem_array(s->n, sizeof(*ttft));
	value[TPOT] = value[TTFT] = value[E2EL] = 0;
	for (size_t i = first; i < s->n; i++) {
		const struct job *j = &s->job[i];

		ttft[i - first] = j->first - j->due;
		value[TPOT] += batcher_tpot(j);
		value[TTFT] += j->first - j->due;
		value[E2EL] += j->end - j->due;
		n++;
	}
	for (enum seen m = 0; m < P99_TTFT; m++)
		value[m] /= n;
	stats_sort(ttft, s->n - first);
	value[P99_TTFT] = stats_percentile(ttft, s->n - first, 99);
	free(ttft);
	return s->now;
}

/* As sweep/ab.c does, of what the first pair showed. */
static void plan(struct rig *g, double e2el_s)
{
	g->block = paired_block(e2el_s, g->rate);
	g->requests = (uint32_t)ceil(g->rate * g->block.length_s);
}

static void live_pair(struct rig *g, const struct machine *m, uint64_t seed, size_t pair,
		      enum paired_side first, struct sequence *q)
{
	double value[2][SEEN], seconds = 0;

	for (unsigned turn = 0; turn < 2; turn++) {
		unsigned side = turn ? 1 - first : first;
		double at = ((double)pair + turn / 2.0) / ENGINE_PAIRS, slow;

		g->speed = m->r * g->speed + sqrt(1 - m->r * m->r) * batcher_normal(&g->sim.rng);
		slow = exp(MACHINE_SD * g->speed + m->drift * at) * (side ? 1 + m->slower : 1);
		seconds += live_block(g, slow, seed * 1000 + 2 * pair + (m->is_other ? side : 0),
				      value[side]);
	}
	if (!pair)
		plan(g, fmax(value[0][E2EL], value[1][E2EL]));
	for (enum seen i = 0; i < SEEN; i++) {
		struct paired_pair one = { .value = { { value[0][i] }, { value[1][i] } },
					   .seconds = seconds };

		if (pair)
			q[i].d[pair - 1] = log(value[1][i]) - log(value[0][i]);
		if (q[i].is_over)
			continue;
		if (pair)
			(void)paired_toss(&q[i].p);
		q[i].is_over = paired_add(&q[i].p, &one) != PAIRED_GO_ON;
	}
}

/* One A/B on an engine of its own; q gets what each metric would have said. */
static void live_ab(struct rig *g, const struct machine *m, uint64_t seed, struct sequence *q)
{
	struct paired coin;
	struct pcg64 rng;

	pcg64_seed(&rng, 20264 + seed);
	pcg64_seed(&g->sim.rng, ~(20264 + seed));
	batcher_draw(&rng, &g->e);
	g->rate = ENGINE_LOAD * batcher_saturation(&g->sim, &g->e, 5 * g->e.max_seqs);
	g->speed = batcher_normal(&g->sim.rng);
	plan(g, 0);
	for (enum seen i = 0; i < SEEN; i++) {
		paired_init(&q[i].p, &(struct paired_opts){
			.alpha = PAIRED_ALPHA, .n_metrics = 1,
			.metric = { { -1, EFFECT_MIN, true } },
			.seconds_max = INFINITY, .pairs_max = ENGINE_PAIRS - 1, .seed = seed });
		q[i].is_over = false;
	}
	coin = q[0].p;
	for (size_t pair = 0; pair < ENGINE_PAIRS; pair++) {
		enum paired_side first;

		coin.is_tossed = false;
		first = paired_toss(&coin);
		if (!pair)
			for (enum seen i = 0; i < SEEN; i++)
				(void)paired_toss(&q[i].p);
		live_pair(g, m, seed, pair, first, q);
	}
}

struct engine_tally {
	unsigned right, wrong, moved, fixed[ENGINE_PAIRS];
	double *seconds;
	double pair_s;      /* sum of the mean of each A/B */
};

static void add_sequence(struct engine_tally *t, const struct machine *m, unsigned trial,
			 const struct sequence *q, const double *quantile)
{
	struct paired_result r;
	bool has_change = m->slower > 0;

	paired_result(&q->p, 0, &r);
	t->right += r.verdict == (has_change ? PAIRED_WORSE : PAIRED_NO_CHANGE);
	t->wrong += r.verdict == PAIRED_BETTER ||
		    r.verdict == (has_change ? PAIRED_NO_CHANGE : PAIRED_WORSE);
	t->moved += r.verdict == PAIRED_MOVED;
	t->seconds[trial] = q->p.seconds_warm + q->p.seconds;
	t->pair_s += q->p.seconds / q->p.pairs;
	for (size_t n = 2; n < ENGINE_PAIRS; n++)
		t->fixed[n] += t_finds(q->d, quantile, n, n);
}

static void tell_engines(struct bench *b, const struct machine *m, enum seen i,
			 struct engine_tally *t, unsigned engines)
{
	const char *name = seen_names[i];
	double share = 100.0 / engines;
	struct figure *f;
	size_t n = 2;

	f = bench_add(b, "%", share * t->right, "%s, %s: right", m->name, name);
	if (!isnan(m->right[i]))
		least(b, f, m->right[i]);
	f = bench_add(b, "%", share * t->wrong, "%s, %s: wrong", m->name, name);
	if (!isnan(m->wrong[i]))
		most(b, f, m->wrong[i]);
	if (t->moved)
		bench_add(b, "%", share * t->moved, "%s, %s: difference changed", m->name, name);
	stats_sort(t->seconds, engines);
	bench_add(b, "s", stats_median(t->seconds, engines), "%s, %s: median", m->name, name);
	free(t->seconds);
	if (m->slower <= 0)
		return;
	while (n < ENGINE_PAIRS - 1 && share * t->fixed[n] < 95)
		n++;
	bench_add(b, "s", (double)(n + 1) * t->pair_s / engines,
		  share * t->fixed[n] < 95 ? "%s, %s: %zu fixed pairs, not 95 %% found"
					   : "%s, %s: %zu fixed pairs, 95 %% found", m->name, name, n);
	bench_add(b, "%", share * t->fixed[FIXED_PAIRS], "%s, %s: t after 40 pairs: found", m->name,
		  name);
}

static void on_engines(struct bench *b, const struct machine *m, unsigned engines,
		       const double *quantile)
{
	struct engine_tally tally[SEEN] = { 0 };
	struct sequence q[SEEN];
	struct rig g = { 0 };

	for (enum seen i = 0; i < SEEN; i++)
		tally[i].seconds = mem_array(engines, sizeof(double));
	for (unsigned trial = 0; trial < engines; trial++) {
		live_ab(&g, m, trial, q);
		for (enum seen i = 0; i < SEEN; i++)
			add_sequence(&tally[i], m, trial, &q[i], quantile);
	}
	for (enum seen i = 0; i < SEEN; i++)
		tell_engines(b, m, i, &tally[i], engines);
	batcher_release(&g.sim);
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
		for (size_t i = 0; i < sizeof(machines) / sizeof(*machines); i++)
			on_engines(&b, &machines[i], b.is_quick ? ENGINES_QUICK : ENGINES,
				   quantile);
	}
	status = bench_end(&b, &e);
	return status ? status : missed > 0;
}
