/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - how often the comparison of matched configurations (decide/compare.h) is right on
 * simulated runs.
 *
 * The scenes are those of the study for its rules: configurations differ by a factor, a change by
 * its size and by a spread between configurations; a run scatters within its server session, a
 * session from one start of the server to the next. Each row is a share of seeded trials, so it is
 * the same on every machine. Exit status 1: a row is beyond its limit (not with --quick, whose
 * trials are too few).
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/rng/rng.h"
#include "kit/figures.h"
#include "results/decide/compare.h"

#define TRIALS 10000            /* where no change is made: these shares have the close limits */
#define TRIALS_OF_CHANGE 2000
#define TRIALS_QUICK 200
#define RUNS_MAX 1024
#define NAMES_MAX 512
#define METRICS_MAX 8

struct scene {
	const char *about;
	size_t servers;              /* configurations, or groups of them that share sessions */
	size_t loads;                /* configurations of each group */
	size_t sessions, runs;       /* of each group and side; of each session */
	double change, spread;       /* of the effect; standard deviation between configurations */
	double between, within;      /* standard deviations of a session, of a run */
	enum { USUAL, UNKNOWN, HEAVY, UNEQUAL, HOLES } kind;
	double flagged_most, flagged_least; /* limits in per cent; NAN: none */
};

#define SHARE NAN, NAN
#define FALSE_MOST 5.5
static const struct scene pairs[] = {
	{ "3 pairs", 3, 1, 1, 1, 0, 0, 0, 0.01, USUAL, FALSE_MOST, NAN },
	{ "3 pairs", 3, 1, 1, 1, 0.03, 0, 0, 0.01, USUAL, SHARE },
	{ "5 pairs", 5, 1, 1, 1, 0, 0, 0, 0.01, USUAL, FALSE_MOST, NAN },
	{ "5 pairs", 5, 1, 1, 1, 0.03, 0, 0, 0.01, USUAL, NAN, 90 },
	{ "5 pairs, spread", 5, 1, 1, 1, 0, 0.02, 0, 0.01, USUAL, FALSE_MOST, NAN },
	{ "5 pairs, spread", 5, 1, 1, 1, 0.03, 0.02, 0, 0.01, USUAL, SHARE },
	{ "8 pairs, spread", 8, 1, 1, 1, 0, 0.02, 0, 0.01, USUAL, FALSE_MOST, NAN },
	{ "8 pairs, spread", 8, 1, 1, 1, 0.03, 0.02, 0, 0.01, USUAL, NAN, 80 },
	{ "24 pairs, spread", 24, 1, 1, 1, 0, 0.02, 0, 0.01, USUAL, FALSE_MOST, NAN },
	{ "24 pairs, spread", 24, 1, 1, 1, 0.03, 0.02, 0, 0.01, USUAL, NAN, 99 },
	{ "96 pairs, spread", 96, 1, 1, 1, 0, 0.02, 0, 0.01, USUAL, FALSE_MOST, NAN },
	{ "96 pairs, spread", 96, 1, 1, 1, 0.03, 0.02, 0, 0.01, USUAL, NAN, 99 },
};

#define NOISE 0, 0.015, 0.02 /* no spread; sessions, runs */
static const struct scene repeats[] = {
	{ "1 pair, 1 x 5", 1, 1, 1, 5, 0, NOISE, USUAL, 0, NAN }, /* no interval: never */
	{ "1 pair, 1 x 5", 1, 1, 1, 5, 0.05, NOISE, USUAL, 0, NAN },
	{ "1 pair, 2 x 3", 1, 1, 2, 3, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "1 pair, 2 x 3", 1, 1, 2, 3, 0.05, NOISE, USUAL, SHARE },
	{ "1 pair, 3 x 1", 1, 1, 3, 1, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "1 pair, 3 x 1", 1, 1, 3, 1, 0.05, NOISE, USUAL, SHARE },
	{ "1 pair, 5 x 1", 1, 1, 5, 1, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "1 pair, 5 x 1", 1, 1, 5, 1, 0.03, NOISE, USUAL, SHARE },
	{ "1 pair, 5 x 1", 1, 1, 5, 1, 0.05, NOISE, USUAL, NAN, 75 },
	{ "1 pair, 5 x 5", 1, 1, 5, 5, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "1 pair, 5 x 5", 1, 1, 5, 5, 0.05, NOISE, USUAL, NAN, 95 },
	{ "2 pairs, 2 x 3", 2, 1, 2, 3, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "2 pairs, 2 x 3", 2, 1, 2, 3, 0.05, NOISE, USUAL, SHARE },
	{ "2 pairs, 5 x 1", 2, 1, 5, 1, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "2 pairs, 5 x 1", 2, 1, 5, 1, 0.05, NOISE, USUAL, NAN, 97 },
	{ "3 pairs, 1 x 5", 3, 1, 1, 5, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "3 pairs, 1 x 5", 3, 1, 1, 5, 0.05, NOISE, USUAL, SHARE },
	{ "3 pairs, 3 x 1", 3, 1, 3, 1, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "3 pairs, 3 x 1", 3, 1, 3, 1, 0.05, NOISE, USUAL, NAN, 95 },
	{ "5 pairs, 1 x 5", 5, 1, 1, 5, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "5 pairs, 1 x 5", 5, 1, 1, 5, 0.05, NOISE, USUAL, NAN, 88 },
	{ "5 pairs, 5 x 1", 5, 1, 5, 1, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "5 pairs, 5 x 1", 5, 1, 5, 1, 0.03, NOISE, USUAL, NAN, 97 },
	{ "96 pairs, 1 x 5", 96, 1, 1, 5, 0, NOISE, USUAL, FALSE_MOST, NAN },
	{ "96 pairs, 1 x 5", 96, 1, 1, 5, 0.03, NOISE, USUAL, NAN, 99 },
};

#define SHARED 0, 0.015, 0.01
static const struct scene shared[] = {
	{ "3 servers x 8 loads", 3, 8, 1, 1, 0, SHARED, USUAL, FALSE_MOST, NAN },
	{ "5 servers x 8 loads", 5, 8, 1, 1, 0, SHARED, USUAL, FALSE_MOST, NAN },
	{ "5 servers x 8 loads", 5, 8, 1, 1, 0.03, SHARED, USUAL, SHARE },
	{ "12 servers x 8 loads", 12, 8, 1, 1, 0, SHARED, USUAL, FALSE_MOST, NAN },
	{ "12 servers x 8 loads", 12, 8, 1, 1, 0.03, SHARED, USUAL, NAN, 98 },
	{ "12 servers x 8, sessions unknown", 12, 8, 1, 1, 0, SHARED, UNKNOWN, SHARE },
	{ "24 servers x 4 loads", 24, 4, 1, 1, 0, SHARED, USUAL, FALSE_MOST, NAN },
	{ "96 servers x 1 load", 96, 1, 1, 1, 0, SHARED, USUAL, FALSE_MOST, NAN },
	{ "96 servers x 1 load", 96, 1, 1, 1, 0.03, SHARED, USUAL, NAN, 99 },
	{ "12 servers of 1 to 8 loads", 12, 8, 1, 1, 0, SHARED, UNEQUAL, FALSE_MOST, NAN },
	{ "1 server x 8 loads, 3 restarts", 1, 8, 3, 1, 0, SHARED, USUAL, FALSE_MOST, NAN },
	{ "4 servers x 8 loads, 2 restarts", 4, 8, 2, 1, 0, SHARED, USUAL, FALSE_MOST, NAN },
	{ "4 servers x 8 loads, 2 restarts", 4, 8, 2, 1, 0.03, SHARED, USUAL, SHARE },
	{ "3 servers x 8, 4 restarts, a fifth lost", 3, 8, 4, 1, 0, SHARED, HOLES, FALSE_MOST, NAN },
	{ "8 pairs, 2 to 4 sessions a side", 8, 1, 4, 1, 0, SHARED, HOLES, FALSE_MOST, NAN },
};

static const struct scene heavy[] = {
	{ "3 pairs, 2 sessions, t3", 3, 1, 2, 5, 0, NOISE, HEAVY, FALSE_MOST, NAN },
	{ "5 pairs, 2 sessions, t3", 5, 1, 2, 5, 0, NOISE, HEAVY, FALSE_MOST, NAN },
	{ "24 pairs, 2 sessions, t3", 24, 1, 2, 5, 0, NOISE, HEAVY, FALSE_MOST, NAN },
	{ "96 pairs, 1 session, t3", 96, 1, 1, 5, 0, NOISE, HEAVY, FALSE_MOST, NAN },
};

/* ---- made-up runs ---- */

static char names[NAMES_MAX][8], config_names[NAMES_MAX][8];

struct maker {
	struct pcg64 rng;
	struct matched_run run[RUNS_MAX];
	double value[RUNS_MAX][METRICS_MAX];
	size_t n;
	double truth;                /* the mean of the effects made */
};

/* Box and Muller's normal number. */
static double normal(struct pcg64 *rng)
{
	double u = 1 - pcg64_double(rng), v = pcg64_double(rng);

	return sqrt(-2 * log(u)) * cos(2 * M_PI * v);
}

/* Of variance 1, by Student's t with 3 degrees of freedom. */
static double heavy_tailed(struct pcg64 *rng)
{
	double x = normal(rng), y = normal(rng), z = normal(rng);

	return normal(rng) / sqrt(x * x + y * y + z * z);
}

static struct matched_run *add(struct maker *m, size_t side, size_t config, const char *session)
{
	size_t i = m->n++;

	m->run[i] = (struct matched_run){ .side = side, .config = config_names[config],
					  .session = session, .value = m->value[i],
					  .work = { NAN, NAN, NAN, NAN, NAN, NAN } };
	return &m->run[i];
}

/* Whether a point of a session was lost; every configuration keeps two sessions on both sides. */
static bool is_hole(struct maker *m, const struct scene *s, size_t session)
{
	double chance = s->loads > 1 ? 0.4 : 0.5;

	return s->kind == HOLES && session >= 2 && pcg64_double(&m->rng) < chance;
}

static void make_session(struct maker *m, const struct scene *s, size_t first, size_t loads,
			 size_t side, size_t session, const double *level, const double *effect)
{
	double shift = s->between * normal(&m->rng);
	const char *name = names[(first * s->sessions + session) * 2 + side];
	size_t runs = s->kind == HEAVY ? 1 + (size_t)(pcg64_double(&m->rng) * 5) : s->runs;

	for (size_t l = 0; l < loads; l++) {
		if (is_hole(m, s, session))
			continue;
		for (size_t i = 0; i < runs; i++) {
			double noise = s->kind == HEAVY ? heavy_tailed(&m->rng) : normal(&m->rng);
			double e = shift + s->within * noise + (side ? effect[l] : 0);

			add(m, side, first * s->loads + l, s->kind == UNKNOWN ? NULL : name);
			m->value[m->n - 1][0] = level[l] * exp(e);
		}
	}
}

static void make(struct maker *m, const struct scene *s)
{
	double level[16], effect[16];
	size_t configs = 0;

	m->n = 0;
	m->truth = 0;
	for (size_t c = 0; c < s->servers; c++) {
		size_t loads = s->kind == UNEQUAL ? 1 + c % s->loads : s->loads;

		for (size_t l = 0; l < loads; l++) {
			level[l] = 1000 * exp(0.8 * normal(&m->rng));
			effect[l] = log1p(s->change) + s->spread * normal(&m->rng);
			m->truth += effect[l];
		}
		configs += loads;
		for (size_t side = 0; side < 2; side++)
			for (size_t k = 0; k < s->sessions; k++)
				make_session(m, s, c, loads, side, k, level, effect);
	}
	m->truth /= (double)configs;
}

/* ---- rows ---- */

struct context { struct bench *b; unsigned trials, missed; struct maker *m; };

static void set_trials(struct context *x, bool is_changed)
{
	x->trials = x->b->is_quick ? TRIALS_QUICK : is_changed ? TRIALS_OF_CHANGE : TRIALS;
}

static void limit(struct context *x, struct figure *f, double most, double least)
{
	if (x->b->is_quick)
		return;
	if (!isnan(most)) {
		figure_most(f, most);
		x->missed += f->value[0] > most;
	}
	if (!isnan(least)) {
		figure_least(f, least);
		x->missed += f->value[0] < least;
	}
}

static double share(unsigned n, const struct context *x)
{
	return 100.0 * n / x->trials;
}

static const char *const sides[] = { "A", "B" };

static struct matched_spec spec_of(const struct maker *m, const struct matched_metric *metric,
				   size_t n)
{
	return (struct matched_spec){ .run = m->run, .n_runs = m->n, .metric = metric,
				      .n_metrics = n, .side = sides, .n_sides = 2,
				      .alpha = 0.05 };
}

struct tally { unsigned flagged, covered, sign, ranks, below, small, differ; };

static void count(struct tally *t, const struct matched_row *row, const struct scene *s,
		  double truth)
{
	double is = row->is.rule == MATCHED_BY_SESSIONS ? truth : log1p(s->change);

	t->flagged += row->is.p <= 0.05;
	t->covered += log(row->is.interval.low) <= is && is <= log(row->is.interval.high);
	t->sign += row->p_sign <= 0.05;
	t->ranks += row->p_ranks <= 0.05;
	t->below += row->verdict == MATCHED_NO_CHANGE || row->verdict == MATCHED_BETTER_SMALL ||
		    row->verdict == MATCHED_WORSE_SMALL;
	t->small += row->verdict == MATCHED_BETTER_SMALL;
	t->differ += row->p_differ <= MATCHED_DIFFER_ALPHA;
}

static struct tally try(struct context *x, const struct scene *s)
{
	const struct matched_metric metric = matched_metric_of("output_throughput", "tokens/s", 1);
	struct tally t = { 0 };

	set_trials(x, s->change > 0 && isnan(s->flagged_most));
	pcg64_seed(&x->m->rng, 20260);
	for (unsigned i = 0; i < x->trials; i++) {
		struct arena a = { 0 };
		struct matched out;
		struct matched_spec spec;

		make(x->m, s);
		spec = spec_of(x->m, &metric, 1);
		matched_compare(&spec, &a, &out);
		count(&t, &out.pair[0].row[0], s, x->m->truth);
		arena_release(&a);
	}
	return t;
}

static void measure(struct context *x, const struct scene *s, bool is_all)
{
	struct tally t = try(x, s);
	const char *head = s->about;

	limit(x, bench_add(x->b, "%", share(t.flagged, x), "%s, %.0f %%: flagged", head,
			   s->change * 100), s->flagged_most, s->flagged_least);
	if (!is_all)
		return;
	limit(x, bench_add(x->b, "%", share(t.covered, x), "%s, %.0f %%: covered", head,
			   s->change * 100), NAN, s->change > 0 ? NAN : 94.5);
	bench_add(x->b, "%", share(t.sign, x), "%s, %.0f %%: sign test", head, s->change * 100);
	bench_add(x->b, "%", share(t.ranks, x), "%s, %.0f %%: Wilcoxon", head, s->change * 100);
}

/* Below 3 %, be it no change or a sure one, with effects that spread by 2 %. */
static void measure_below(struct context *x)
{
	static const struct { size_t pairs; double change, most, least; } rows[] = {
		{ 3, 0, SHARE }, { 5, 0, SHARE }, { 8, 0, NAN, 80 }, { 24, 0, NAN, 99 },
		{ 8, 0.03, FALSE_MOST, NAN }, { 24, 0.03, FALSE_MOST, NAN },
		{ 96, 0.03, FALSE_MOST, NAN }, { 96, 0.01, NAN, 99 },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct scene s = { .servers = rows[i].pairs, .loads = 1, .sessions = 1, .runs = 1,
				   .change = rows[i].change, .spread = 0.02, .within = 0.01,
				   .flagged_most = rows[i].most };
		struct tally t = try(x, &s);

		limit(x, bench_add(x->b, "%", share(t.below, x), "%zu pairs, %.0f %%: below 3 %%",
				   s.servers, s.change * 100), rows[i].most, rows[i].least);
		if (s.change > 0 && isnan(rows[i].most))
			bench_add(x->b, "%", share(t.small, x), "%zu pairs, %.0f %%: better, but below",
				  s.servers, s.change * 100);
	}
}

/* Eight metrics, correlated by 0.6; the first `changed` by 3 %. */
static void measure_metrics(struct context *x, size_t n_pairs, size_t changed)
{
	struct matched_metric metric[METRICS_MAX];
	unsigned any = 0, any_adjusted = 0, found = 0, found_adjusted = 0;

	for (size_t k = 0; k < METRICS_MAX; k++)
		metric[k] = matched_metric_of("output_throughput", "tokens/s", 1);
	set_trials(x, changed > 0);
	pcg64_seed(&x->m->rng, 20261);
	for (unsigned i = 0; i < x->trials; i++) {
		struct arena a = { 0 };
		struct matched out;
		struct matched_spec spec;
		unsigned raw = 0, kept = 0;

		x->m->n = 0;
		for (size_t c = 0; c < 2 * n_pairs; c++) {
			double common = normal(&x->m->rng);

			add(x->m, c % 2, c / 2, names[c]);
			for (size_t k = 0; k < METRICS_MAX; k++)
				x->m->value[c][k] = exp(0.01 * (sqrt(0.6) * common +
								sqrt(0.4) * normal(&x->m->rng)) +
							(c % 2 && k < changed ? log1p(0.03) : 0));
		}
		spec = spec_of(x->m, metric, METRICS_MAX);
		spec.primary = METRICS_MAX; /* none */
		matched_compare(&spec, &a, &out);
		for (size_t k = 0; k < METRICS_MAX; k++) {
			const struct matched_row *row = &out.pair[0].row[k];

			raw += row->is.p <= 0.05;
			kept += row->q <= 0.05;
			found += k < changed && row->is.p <= 0.05;
			found_adjusted += k < changed && row->q <= 0.05;
		}
		any += raw > 0;
		any_adjusted += kept > 0;
		arena_release(&a);
	}
	if (!changed) {
		bench_add(x->b, "%", share(any, x), "8 metrics, %zu pairs: any p <= 5 %%", n_pairs);
		limit(x, bench_add(x->b, "%", share(any_adjusted, x),
				   "8 metrics, %zu pairs: any q <= 5 %%", n_pairs), FALSE_MOST, NAN);
		return;
	}
	bench_add(x->b, "%", share(found, x) / (double)changed,
		  "%zu of 8 metrics by 3 %%, %zu pairs: p <= 5 %%", changed, n_pairs);
	limit(x, bench_add(x->b, "%", share(found_adjusted, x) / (double)changed,
			   "%zu of 8 metrics by 3 %%, %zu pairs: q <= 5 %%", changed, n_pairs), NAN,
	      n_pairs >= 24 ? 99 : 55);
}

/* Cochran's Q where effects are the same, and where they spread by 3 %. */
static void measure_differ(struct context *x)
{
	static const struct scene rows[] = {
		{ "same effects", 8, 1, 3, 1, 0.03, NOISE, USUAL, SHARE },
		{ "effects spread by 3 %", 8, 1, 3, 1, 0.03, 0.03, 0.015, 0.02, USUAL, SHARE },
	};

	for (size_t i = 0; i < 2; i++) {
		struct tally t = try(x, &rows[i]);

		limit(x, bench_add(x->b, "%", share(t.differ, x), "%s: Cochran's Q p <= 1 %%",
				   rows[i].about), i ? NAN : 1.5, NAN);
	}
}

/*
 * The number of sessions that is reported as sufficient with one run a side, with the scatter that
 * is assumed.
 */
static void measure_needed(struct context *x)
{
	struct scene s = { .about = "needed", .servers = 1, .loads = 1, .sessions = 1, .runs = 1,
			   .change = 0.03, .between = MATCHED_SCATTER_USUAL,
			   .flagged_most = NAN };
	const struct matched_metric metric = matched_metric_of("output_throughput", "tokens/s", 1);
	struct arena a = { 0 };
	struct matched_spec spec;
	struct matched out;
	struct tally t;

	pcg64_seed(&x->m->rng, 20262);
	make(x->m, &s);
	spec = spec_of(x->m, &metric, 1);
	matched_compare(&spec, &a, &out);
	s.sessions = out.pair[0].row[0].need.sessions;
	arena_release(&a);
	t = try(x, &s);
	limit(x, bench_add(x->b, "%", share(t.flagged, x), "3 %%, the %zu sessions that would do: found",
			   s.sessions), NAN, 79);
}

static void measure_all(struct context *x)
{
	static const struct { const struct scene *scene; size_t n; bool is_all; } tables[] = {
		{ pairs, sizeof(pairs) / sizeof(*pairs), true },
		{ repeats, sizeof(repeats) / sizeof(*repeats), false },
		{ shared, sizeof(shared) / sizeof(*shared), false },
		{ heavy, sizeof(heavy) / sizeof(*heavy), false },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		for (size_t k = 0; k < tables[i].n; k++)
			measure(x, &tables[i].scene[k], tables[i].is_all);
	measure_below(x);
	measure_metrics(x, 5, 0);
	measure_metrics(x, 5, 2);
	measure_metrics(x, 24, 2);
	measure_differ(x);
	measure_needed(x);
}

int main(int argc, char **argv)
{
	struct err e = { 0 };
	struct bench b;
	struct context x = { .b = &b, .m = calloc(1, sizeof(*x.m)) };
	int status;

	for (size_t i = 0; i < NAMES_MAX; i++) {
		snprintf(names[i], sizeof(names[i]), "s%zu", i);
		snprintf(config_names[i], sizeof(config_names[i]), "c%zu", i);
	}
	if (bench_begin(&b, "compare", argc, argv, &e) == 0) {
		/* Shares depend on no clock: other work goes first. */
		(void)bench_set_realtime(false);
		b.is_realtime = false;
		b.repeats = 1;
		measure_all(&x);
	}
	status = bench_end(&b, &e);
	if (x.missed)
		fprintf(stderr, "bench/compare: %u figures are beyond their limits\n", x.missed);
	free(x.m);
	return x.missed ? 1 : status;
}
