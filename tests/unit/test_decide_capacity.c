/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decide_capacity.c - levels and their tests, the curve through them, and the search on
 * made-up servers whose slow share is a known function of the load.
 *
 * That the search is right on modelled engines, whose requests come in clumps, is bench/capacity.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/rng/rng.h"
#include "results/decide/capacity.h"
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void near(const char *what, double got, double want, double off)
{
	if (!(fabs(got - want) <= off))
		fail_msg("%s: %.10g, expected %.10g", what, got, want);
}

/* ---- a level ---- */

static double choose(double n, double k)
{
	return exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1));
}

static void binomial(void **state)
{
	static const struct { double n, p; } row[] = { { 10, 0.3 }, { 200, 0.01 }, { 7, 0.9 } };

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		double sum = 0;

		for (double k = 0; k < row[i].n; k++) {
			sum += choose(row[i].n, k) * pow(row[i].p, k) *
			       pow(1 - row[i].p, row[i].n - k);
			near("cdf", holds_binomial_cdf(k, row[i].n, row[i].p), sum, 1e-12);
		}
		assert_true(holds_binomial_cdf(-0.5, row[i].n, row[i].p) == 0);
		assert_true(holds_binomial_cdf(row[i].n, row[i].n, row[i].p) == 1);
	}
}

/* The exact test's edges: 299 requests without a slow one are the first to pass a p99. */
static void fixed_rate(void **state)
{
	static const struct { double n, slow, phi, q; enum holds want; } row[] = {
		{ 0, 0, 1, 0.99, HOLDS_OPEN }, { 298, 0, 1, 0.99, HOLDS_OPEN },
		{ 299, 0, 1, 0.99, HOLDS_PASSES }, { 299, 0, 4, 0.99, HOLDS_OPEN },
		{ 1196, 0, 4, 0.99, HOLDS_PASSES }, { 10, 1, 1, 0.99, HOLDS_OPEN },
		{ 10, 2, 1, 0.99, HOLDS_FAILS }, { 10, 10, 1, 0.99, HOLDS_FAILS },
		{ 1000, 10, 1, 0.99, HOLDS_OPEN }, { 1000, 17, 1, 0.99, HOLDS_FAILS },
		{ 1000, 4, 1, 0.99, HOLDS_PASSES }, { 1000, 17, 5, 0.99, HOLDS_OPEN },
		{ 5, 0, 1, 0.5, HOLDS_PASSES }, { 4, 0, 1, 0.5, HOLDS_OPEN },
		{ 100, 60, 1, 0.5, HOLDS_FAILS },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct holds_answer a = holds_share(row[i].n, row[i].slow, row[i].phi, row[i].q);

		if (a.verdict != row[i].want)
			fail_msg("row %zu: verdict %d", i, (int)a.verdict);
		assert_true((a.requests_more > 0) == (a.verdict == HOLDS_OPEN));
	}
	near("no requests at all", holds_share(0, 0, 1, 0.99).requests_more, 299, 0);
	near("none slow yet", holds_share(100, 0, 1, 0.99).requests_more, 199, 0);
	/* phi z^2 (1 - q) q / (p - (1 - q))^2 = 2 * 1.645^2 * 0.0099 / 0.005^2 = 2143.2 */
	near("half as many again", holds_share(400, 6, 2, 0.99).requests_more, 1744, 0);
	assert_true(isinf(holds_share(1000, 10, 1, 0.99).requests_more));
}

/* With the forecast number of requests the question is decided in most cases. */
static void forecast_of_requests(void **state)
{
	unsigned decided = 0, wrong = 0;
	struct pcg64 g;

	(void)state;
	pcg64_seed(&g, 5);
	for (int i = 0; i < 400; i++) {
		double n = 2000, slow = 0, truth = i % 2 ? 0.006 : 0.016;
		struct holds_answer a;

		for (int round = 0; round < 2; round++) {
			for (; n > 0; n--)
				slow += pcg64_double(&g) < truth;
			a = holds_share(round ? a.requests_more + 2000 : 2000, slow, 1, 0.99);
			if (a.verdict != HOLDS_OPEN || isinf(a.requests_more))
				break;
			n = a.requests_more = fmin(a.requests_more, 20000);
		}
		decided += a.verdict != HOLDS_OPEN;
		wrong += a.verdict == (i % 2 ? HOLDS_FAILS : HOLDS_PASSES);
	}
	assert_true(decided > 300);
	assert_true(wrong < 8);
}

struct requests { struct level_request r[2000]; size_t n; };

/* n requests in n / 10 seconds, each done after 0.5 s with a TTFT of 0.1 s. */
static void requests_of(struct requests *q, size_t n)
{
	assert_true(n <= COUNT(q->r));
	q->n = n;
	for (size_t i = 0; i < n; i++)
		q->r[i] = (struct level_request){ .due_s = 0.1 * (double)i + 0.05,
						  .end_s = 0.1 * (double)i + 0.55, .ttft_s = 0.1 };
}

static void taking(void **state)
{
	struct requests *q = mem_alloc(sizeof(*q));
	struct level l = { .load = 7, .spent_s = 9 };

	(void)state;
	requests_of(q, 1000);
	for (size_t i = 0; i < 1000; i++) {
		q->r[i].slow = i >= 900 ? 1 : 0;            /* limit 0: the last hundred */
		q->r[i].open = i >= 990 ? 2 : 0;            /* limit 1: ten unknown */
		q->r[i].is_failed = i >= 500 && i < 510;    /* ten that break both */
	}
	near("warm-up", level_warmup_s(q->r, 1000, 1, 100), 1.5, 1e-9);
	near("warm-up of long answers", level_warmup_s(q->r, 1000, 80, 100), 50, 0);
	level_take(&l, q->r, 1000, 2, 20, 100);
	assert_int_equal(l.requests, 1000);
	assert_int_equal(l.attempted, 800);
	assert_int_equal(l.failed, 10);
	assert_int_equal(l.batches, LEVEL_BATCHES);
	near("load stays", l.load + l.spent_s, 16, 0);
	near("e2e", l.e2e_s, 0.5, 1e-9);
	near("n of 0", level_count(&l, 0).n, 800, 0);
	near("slow of 0", level_count(&l, 0).slow, 110, 0);
	near("n of 1", level_count(&l, 1).n, 790, 0);
	near("slow of 1", level_count(&l, 1).slow, 10, 0);
	assert_int_equal(l.due_late, 400);
	assert_true(holds_carried(&l) && !holds_ttft_grows(&l));
	/* 800 with 110 in two and a half of twenty batches of 40 */
	assert_true(level_dispersion(&l, 0) > 20);
	near("nothing slow", level_dispersion(&l, 2), 1, 0);
	near("prior alone", level_dispersion_joined(&l, 2), LEVEL_DISPERSION_PRIOR, 1e-12);

	/* A level of eight requests has eight batches and no trend. */
	level_take(&l, q->r, 8, 1, 0, 100);
	assert_int_equal(l.batches, 8);
	assert_int_equal(l.blocks, 0);
	level_take(&l, q->r, 0, 1, 0, 100);
	near("none", level_count(&l, 0).n, 0, 0);
	assert_true(isnan(l.e2e_s));
	free(q);
}

/* Requests that end ever later: 8 of 10 are carried, and TTFT grows. */
static void overload(void **state)
{
	struct requests *q = mem_alloc(sizeof(*q));
	struct level l = { 0 };

	(void)state;
	requests_of(q, 2000);
	for (size_t i = 0; i < 2000; i++) {
		q->r[i].ttft_s = 0.1 + 0.025 * (double)i;
		q->r[i].end_s = q->r[i].due_s + q->r[i].ttft_s;
	}
	level_take(&l, q->r, 2000, 1, 0, 200);
	assert_true(holds_ttft_grows(&l));
	assert_false(holds_carried(&l));
	free(q);
	/* Three that have not ended say nothing, fifty do. */
	assert_true(holds_carried(&(struct level){ .due_late = 3, .done_late = 0 }));
	assert_false(holds_carried(&(struct level){ .due_late = 50, .done_late = 0 }));
}

static void tau(void **state)
{
	static const double x[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 }, y[] = { 1, 3, 2, 4 };
	double back[10];

	(void)state;
	near("up", holds_tau(x, 10), 1, 0);
	for (int i = 0; i < 10; i++)
		back[i] = x[9 - i];
	near("down", holds_tau(back, 10), -1, 0);
	near("one exchange of six", holds_tau(y, 4), 4.0 / 6, 1e-12);
}

static void means(void **state)
{
	struct level l = { .batches = LEVEL_BATCHES, .attempted = 1000 };

	(void)state;
	for (size_t b = 0; b < LEVEL_BATCHES; b++)
		l.batch[b].mean[0] = b % 2 ? 11 : 9;
	near("mean", level_mean(&l, 0).mean, 10, 1e-12);
	near("error", level_mean(&l, 0).se, 1 / sqrt(19), 1e-12);
	assert_int_equal(holds_mean(&l, 0, 10.5, false).verdict, HOLDS_PASSES);
	assert_int_equal(holds_mean(&l, 0, 9.5, false).verdict, HOLDS_FAILS);
	assert_int_equal(holds_mean(&l, 0, 9.5, true).verdict, HOLDS_PASSES);
	assert_int_equal(holds_mean(&l, 0, 10.1, false).verdict, HOLDS_OPEN);
	assert_true(holds_mean(&l, 0, 10.1, false).requests_more > 10000);
}

/* ---- the curve ---- */

static double share_at(double load, double capacity, double slope, double share)
{
	double t = log(share / (1 - share)) + slope * log(load / capacity);

	return 1 / (1 + exp(-t));
}

/* Slow ones of n independent requests. */
static double draw(struct pcg64 *g, double n, double p)
{
	double slow = 0;

	for (double i = 0; i < n; i++)
		slow += pcg64_double(g) < p;
	return slow;
}

static void curve(void **state)
{
	static const struct { double slope, share; } row[] = {
		{ 1, 0.01 }, { 4, 0.01 }, { 20, 0.01 }, { 60, 0.01 }, { 8, 0.5 }, { 8, 0.001 },
	};
	struct fit_grid *g = mem_alloc(sizeof(*g));
	struct pcg64 rng;

	(void)state;
	pcg64_seed(&rng, 1);
	for (size_t i = 0; i < COUNT(row); i++) {
		struct fit_opts o = { .share = row[i].share, .low = log(80), .high = log(120) };
		unsigned covered = 0;

		for (int trial = 0; trial < 20; trial++) {
			struct fit_level l[12];
			struct fit f;

			for (size_t k = 0; k < COUNT(l); k++) {
				double off = (k % 2 ? 0.8 : -0.5) / row[i].slope, load;

				load = 100 * exp(fmax(-0.25, fmin(0.25, off)));
				l[k] = (struct fit_level){ .x = log(load), .n = 4000, .phi = 1 };
				l[k].slow = draw(&rng, 4000, share_at(load, 100, row[i].slope,
								      row[i].share));
			}
			f = fit_levels(l, COUNT(l), &o, g);
			covered += f.low <= log(100) && f.high >= log(100);
			assert_true(f.low < f.at && f.at < f.high && f.slope > 0 && f.phi >= 1);
			near("the limit at its crossing", fit_at(&f, &o, f.at), row[i].share, 1e-9);
		}
		assert_true(covered >= 18);
	}
	free(g);
}

static void curve_corners(void **state)
{
	struct fit_opts o = { .share = 0.01, .low = log(50), .high = log(200) };
	struct fit_level l[8];
	struct fit_grid *g = mem_alloc(sizeof(*g));
	struct fit f;

	(void)state;
	/* No slow request at all: capacity is above, and unbounded from above. */
	for (size_t k = 0; k < COUNT(l); k++)
		l[k] = (struct fit_level){ .x = log(90 + 5 * (double)k), .n = 20000, .phi = 1 };
	f = fit_levels(l, COUNT(l), &o, g);
	assert_true(f.least > log(110) && f.high > log(250));
	/* All slow: below. */
	for (size_t k = 0; k < COUNT(l); k++)
		l[k].slow = l[k].n;
	f = fit_levels(l, COUNT(l), &o, g);
	assert_true(f.at < log(60) && f.high < log(125));
	/* One level at exactly the limit: there, and not well known. */
	l[0] = (struct fit_level){ .x = log(100), .n = 10000, .slow = 100, .phi = 2 };
	f = fit_levels(l, 1, &o, g);
	near("one level", exp(f.at), 100, 5);
	assert_true(f.high - f.low > 0.05);
	near("no level", (double)fit_levels(l, 0, &o, g).levels, 0, 0);
	/* Far above the limit a level says only that: 40 or 90 % slow make no flat curve. */
	for (size_t k = 0; k < COUNT(l); k++) {
		l[k] = (struct fit_level){ .x = log(k % 2 ? 115 : 97), .n = 2000, .phi = 2 };
		l[k].slow = k % 2 ? 900 : 6;
	}
	l[7].x = log(180);
	l[7].slow = 1800;
	f = fit_levels(l, COUNT(l), &o, g);
	assert_true(f.low > log(92) && f.at < log(115) && f.slope > 8);
	free(g);
}

/* A mean that grows with the square of the load meets its limit at 40. */
static void curve_of_means(void **state)
{
	struct fit_opts o = { .is_mean = true, .low = log(20), .high = log(60) };
	struct fit_grid *g = mem_alloc(sizeof(*g));
	struct fit_level l[10];
	struct pcg64 rng;
	struct fit f;

	(void)state;
	pcg64_seed(&rng, 2);
	for (size_t k = 0; k < COUNT(l); k++) {
		double load = k % 2 ? 48 : 34;

		l[k] = (struct fit_level){ .x = log(load), .se = 0.02 };
		l[k].y = 2 * log(load / 40) + 0.06 * (pcg64_double(&rng) - 0.5);
	}
	f = fit_levels(l, COUNT(l), &o, g);
	near("crossing", exp(f.at), 40, 1);
	near("slope", f.slope, 2, 0.3);
	assert_true(f.low < log(40) && f.high > log(40) && f.high - f.low < 0.1);
	free(g);
}

/* ---- the search ---- */

/* A server whose requests are independent: slow with a chance that is a function of the load. */
struct server {
	enum capacity_load load;
	double capacity[2], slope[2]; /* of two p99 limits; 0: never slow */
	double fails_from;            /* requests beyond this load fail; 0: none */
	double carried;               /* requests/s at most; 0: any */
	double saturated;             /* requests/s that the saturation test measures; 0: 100 */
	double load_min;              /* of the search */
	bool is_unloaded_slow;
	struct pcg64 rng;
};

static double chance(const struct server *v, size_t j, double load)
{
	return v->capacity[j] > 0 ? share_at(load, v->capacity[j], v->slope[j], 0.01) : 0;
}

static struct level run_of(struct server *v, double load, double hold_s)
{
	double rate = v->load == CAPACITY_RATE ? load : 2 * load;
	struct level l = { .load = load, .warmup_s = 2, .hold_s = hold_s - 2, .e2e_s = 0.5,
			   .spent_s = hold_s + 0.5, .batches = LEVEL_BATCHES,
			   .blocks = LEVEL_BLOCKS };
	double n = rate * l.hold_s, carried = v->carried > 0 ? fmin(1, v->carried / rate) : 1;

	l.requests = (uint64_t)(rate * hold_s);
	l.due_late = (uint64_t)(n / 2);
	l.done_late = (uint64_t)(n / 2 * carried);
	for (size_t k = 0; k < LEVEL_BLOCKS; k++)
		l.ttft_s[k] = 0.1 + (carried < 1 ? (double)k : k % 2 ? 0.01 : 0);
	for (size_t b = 0; b < LEVEL_BATCHES; b++)
		for (double i = 0; i < floor(n / LEVEL_BATCHES); i++) {
			bool has_failed = v->fails_from > 0 && load > v->fails_from &&
					  pcg64_double(&v->rng) < 1 - v->fails_from / load;

			l.attempted++;
			l.failed += has_failed;
			for (size_t j = 0; j < 3; j++) {
				double p = j < 2 ? chance(v, j, load) : 0;

				l.batch[b].n[j]++;
				l.batch[b].slow[j] += has_failed || pcg64_double(&v->rng) < p;
			}
		}
	return l;
}

static void run_level(struct capacity_search *c, struct server *v, const struct capacity_step *s)
{
	double at = s->look_s, next;
	struct level l;

	while (at < s->hold_s) {
		l = run_of(v, s->load, at);
		if (capacity_look(c, &l, at, &next) != CAPACITY_GO_ON) {
			capacity_tell_level(c, &l);
			return;
		}
		at = next;
	}
	l = run_of(v, s->load, s->hold_s);
	capacity_tell_level(c, &l);
}

static void take_step(struct capacity_search *c, struct server *v, const struct capacity_step *s)
{
	struct capacity_saturation m = { v->saturated > 0 ? v->saturated : 100, 50, 10, 500 };
	struct level l = { .batches = 10, .e2e_s = 0.5, .spent_s = 5, .requests = 10 };

	for (size_t b = 0; b < 10; b++)
		for (size_t j = 0; j < 3; j++) {
			l.batch[b].n[j] = 1;
			l.batch[b].slow[j] = j == 1 && v->is_unloaded_slow;
		}
	if (s->ask == CAPACITY_PROBE)
		capacity_tell_probe(c, true, 0.1);
	else if (s->ask == CAPACITY_UNLOADED_REQUESTS)
		capacity_tell_unloaded(c, &l);
	else if (s->ask == CAPACITY_SATURATE)
		capacity_tell_saturation(c, &m);
	else
		run_level(c, v, s);
}

static struct capacity_search *search(struct server *v, const struct capacity_opts *o)
{
	struct capacity_search *c = capacity_new(o);
	struct capacity_step s;
	struct buf out = { 0 };

	v->load = o->load;
	pcg64_seed(&v->rng, 3);
	while ((s = capacity_next(c)).ask != CAPACITY_DONE) {
		buf_printf(&out, "%d: load %g, %g s, warm-up %g s, look %g s, %llu%s\n", (int)s.ask,
			   s.load, s.hold_s, s.warmup_s, s.look_s, (unsigned long long)s.requests,
			   s.is_bracketing ? ", bracketing" : "");
		take_step(c, v, &s);
	}
	answers_release(&out);
	return c;
}

static struct capacity_opts opts(void)
{
	return (struct capacity_opts){
		.limit = { { .quantile = 0.99 }, { .quantile = 0.99 } }, .limits = 2,
		.precision = 0.03, .budget_s = 3600, .has_saturation = true,
	};
}

#define EITHER SIZE_MAX

struct expected {
	const char *what;
	struct server server;
	enum capacity_end end;
	double capacity;    /* inside the interval; 0: there is none */
	size_t binding;
};

static void searches(void **state)
{
	static const struct expected row[] = {
		{ "steep", { .capacity = { 60, 90 }, .slope = { 20, 20 } }, CAPACITY_PRECISE, 60, 0 },
		{ "the other", { .capacity = { 90, 40 }, .slope = { 5, 10 } }, CAPACITY_PRECISE, 40, 1 },
		{ "flat", { .capacity = { 50, 0 }, .slope = { 1.5, 0 } }, CAPACITY_BUDGET, 50, 0 },
		{ "both", { .capacity = { 55, 55 }, .slope = { 12, 12 } }, CAPACITY_PRECISE, 55, EITHER },
		{ "near the top", { .capacity = { 105, 0 }, .slope = { 20, 0 } }, CAPACITY_PRECISE,
		  105, 0 },
		{ "above the top", { .capacity = { 170, 0 }, .slope = { 20, 0 } }, CAPACITY_PRECISE,
		  170, 0 },
		{ "failures", { .fails_from = 70 }, CAPACITY_PRECISE, 70, 2 },
		{ "saturation", { .carried = 80 }, CAPACITY_RUNNING, 80, 3 },
		{ "measured far too high", { .capacity = { 60, 0 }, .slope = { 20, 0 }, .saturated = 16000 },
		  CAPACITY_PRECISE, 60, 0 },
		{ "carried, measured far too high", { .carried = 80, .saturated = 16000 },
		  CAPACITY_RUNNING, 80, 3 },
		{ "far below saturation", { .capacity = { 1.5, 0 }, .slope = { 20, 0 } },
		  CAPACITY_BUDGET, 1.5, 0 },
		{ "hardly any load", { .capacity = { 0.05, 0 }, .slope = { 20, 0 } },
		  CAPACITY_BUDGET, 0.05, 0 },
		{ "nothing passes", { .capacity = { 1.5, 0 }, .slope = { 20, 0 }, .load_min = 2 },
		  CAPACITY_NONE_PASSES, 0, 0 },
		{ "never carried", { .carried = 0.3, .load_min = 2 }, CAPACITY_NEVER_CARRIED, 0, 0 },
		{ "all pass", { .capacity = { 1e9, 0 }, .slope = { 20, 0 } }, CAPACITY_ALL_PASS, 0, 0 },
		{ "broken", { .is_unloaded_slow = true }, CAPACITY_BROKEN_UNLOADED, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct capacity_opts o = opts();
		struct server v = row[i].server;
		struct capacity_search *c;
		struct capacity_answer a;

		o.load_min = v.load_min;
		c = search(&v, &o);
		a = capacity_answer(c);
		if (row[i].end != CAPACITY_RUNNING && a.end != row[i].end)
			fail_msg("%s: ended with %d", row[i].what, (int)a.end);
		if (a.has_interval != (row[i].capacity > 0))
			fail_msg("%s: interval %d", row[i].what, a.has_interval);
		if (a.has_interval && !(a.low <= 1.01 * row[i].capacity &&
					a.high >= 0.99 * row[i].capacity))
			fail_msg("%s: %.2f [%.2f, %.2f]", row[i].what, a.load, a.low, a.high);
		if (a.has_interval && row[i].binding != EITHER && a.binding != row[i].binding)
			fail_msg("%s: bound by %zu", row[i].what, a.binding);
		if (a.end == CAPACITY_PRECISE)
			assert_true(a.half_width <= 0.03 && a.levels_near >= 8 && a.is_precise);
		assert_true(a.requests > 0 && a.spent_s <= 3700);
		assert_true(a.broken == (row[i].server.is_unloaded_slow ? 2 : 0));
		capacity_free(c);
	}
}

/* What is said about the edge: 5 % more load multiplies slow requests by 1.05 ^ slope. */
static void words_of_an_answer(void **state)
{
	struct server v = { .capacity = { 60, 0 }, .slope = { 20, 0 } };
	struct capacity_opts o = opts();
	struct capacity_search *c = search(&v, &o);
	struct capacity_answer a = capacity_answer(c);
	const struct capacity_point *p;
	size_t n, short_ones = 0;

	(void)state;
	assert_true(a.slope > 10 && a.slope < 40);
	near("factor", a.slow_factor, pow(1.05, a.slope), 1e-9);
	near("safe", a.safe, a.low, 0);
	near("the limit is crossed at the answer", capacity_curve_at(c, 0, a.load), 0.01, 1e-6);
	assert_true(capacity_curve_at(c, 0, 1.1 * a.load) > 0.02);
	assert_true(isnan(capacity_curve_at(c, 1, a.load)));
	assert_true(a.passing < a.failing && a.failing <= 1.2 * a.passing);
	p = capacity_points(c, &n);
	for (size_t i = 0; i < n; i++) {
		assert_true(p[i].load > 0 && p[i].spent_s > 0);
		short_ones += p[i].is_bracketing;
	}
	assert_int_equal(n - short_ones, a.levels);
	assert_true(short_ones >= 3 && a.levels >= 8);
	capacity_free(c);
}

/* An answer at any time: a bracket, a forecast of the cost, then an interval that narrows. */
static void any_time(void **state)
{
	struct capacity_opts o = opts();
	double width = INFINITY;
	struct capacity_answer before = { 0 };

	(void)state;
	for (o.budget_s = 1; o.budget_s < 5000; o.budget_s *= 3) {
		struct server v = { .capacity = { 60, 0 }, .slope = { 8, 0 } };
		struct capacity_search *c = search(&v, &o);
		struct capacity_answer a = capacity_answer(c);

		assert_true(a.end == CAPACITY_BUDGET || a.end == CAPACITY_PRECISE);
		/* What was spent before the first level is not the search's to limit. */
		assert_true(a.spent_s <= fmax(o.budget_s, 16) + 2);
		if (a.has_interval) {
			assert_true(a.half_width < 1.2 * width);
			width = a.half_width;
		}
		if (a.has_interval && a.end == CAPACITY_BUDGET)
			assert_true(a.requests_more > 0 && a.seconds_more > 0);
		before = a;
		capacity_free(c);
	}
	assert_true(before.has_interval);
}

/* The cost forecast after bracketing is of the right size. */
static void forecast(void **state)
{
	struct server v = { .capacity = { 60, 0 }, .slope = { 8, 0 }, .load = CAPACITY_RATE };
	struct capacity_opts o = opts();
	struct capacity_search *c;
	struct capacity_answer a;

	(void)state;
	o.budget_s = INFINITY;
	o.has_saturation = false;
	pcg64_seed(&v.rng, 9);
	c = capacity_new(&o);
	capacity_tell_probe(c, true, 0.1);
	capacity_tell_unloaded(c, &(struct level){ .e2e_s = 0.5, .requests = 10, .spent_s = 5 });
	assert_true(isnan(capacity_answer(c).seconds_more));
	while (capacity_next(c).ask == CAPACITY_LEVEL && capacity_next(c).is_bracketing) {
		struct capacity_step s = capacity_next(c), again = capacity_next(c);

		assert_memory_equal(&s, &again, sizeof(s));
		run_level(c, &v, &s);
	}
	a = capacity_answer(c);
	assert_false(a.has_interval);
	/* phi 1 to 4: 1.2 * phi / (0.01 * (8 * 0.03 / 2.52)^2) = 13,000 to 53,000 */
	assert_true(a.requests_more > 10000 && a.requests_more < 60000);
	near("seconds", a.seconds_more, a.requests_more / sqrt(a.passing * a.failing), 1);
	capacity_stop(c);
	assert_int_equal(capacity_answer(c).end, CAPACITY_STOPPED);
	assert_int_equal(capacity_next(c).ask, CAPACITY_DONE);
	capacity_free(c);
}

/* What is forecast while measuring is of the size of what it then takes. */
static void forecast_while_measuring(void **state)
{
	static const double slope[] = { 3, 8, 30 };

	(void)state;
	for (size_t i = 0; i < COUNT(slope); i++) {
		struct server v = { .capacity = { 60, 0 }, .slope = { slope[i], 0 } };
		struct capacity_opts o = opts();
		struct capacity_search *c;
		struct capacity_answer a;
		struct capacity_step s;
		double all[8] = { 0 };

		o.budget_s = INFINITY;
		c = capacity_new(&o);
		pcg64_seed(&v.rng, 3);
		while ((s = capacity_next(c)).ask != CAPACITY_DONE) {
			a = capacity_answer(c);
			if (a.levels < COUNT(all))
				all[a.levels] = a.spent_s + a.seconds_more;
			take_step(c, &v, &s);
		}
		a = capacity_answer(c);
		assert_int_equal(a.end, CAPACITY_PRECISE);
		for (unsigned n = 2; n < COUNT(all); n++)
			if (!(all[n] > a.spent_s / 3 && all[n] < 3 * a.spent_s))
				fail_msg("slope %g: after %u levels %.0f s in all were forecast, it took %.0f",
					 slope[i], n, all[n], a.spent_s);
		capacity_free(c);
	}
}

static void whole_loads(void **state)
{
	static const double at[] = { 1.5, 2.5, 12.3, 40.5 };

	(void)state;
	for (size_t i = 0; i < COUNT(at); i++) {
		struct server v = { .capacity = { at[i], 0 }, .slope = { 6, 0 } };
		struct capacity_opts o = opts();
		struct capacity_search *c;
		struct capacity_answer a;
		const struct capacity_point *p;
		size_t n;

		o.load = CAPACITY_CONCURRENCY;
		c = search(&v, &o);
		a = capacity_answer(c);
		assert_true(a.has_interval);
		assert_true(a.low <= floor(at[i]) && a.high >= floor(at[i]));
		near("whole", a.safe, floor(a.safe), 0);
		p = capacity_points(c, &n);
		for (size_t k = 0; k < n; k++)
			near("whole", p[k].load, fmax(1, round(p[k].load)), 0);
		capacity_free(c);
	}
}

/* Levels of few requests at a server that answers so many at once and refuses the others. */
/* Short levels have shown where a cliff is: the long ones are measured there. */
static void cliff(void **state)
{
	struct server v = { .capacity = { 10.5, 0 }, .slope = { 100, 0 } };
	struct capacity_opts o = opts();
	struct capacity_search *c;
	struct capacity_answer a;

	(void)state;
	o.load = CAPACITY_CONCURRENCY;
	c = search(&v, &o);
	a = capacity_answer(c);
	assert_int_equal(a.end, CAPACITY_PRECISE);
	assert_true(a.load > 9.5 && a.load < 10.5 && a.high - a.low < 0.5);
	assert_true(a.levels <= 4);
	capacity_free(c);
}

static void slots(void **state)
{
	static const double slots[] = { 1, 2, 3, 4, 7, 12 };
	static const uint32_t requests[] = { 120, 200, 400, 2000 };

	(void)state;
	for (size_t i = 0; i < COUNT(slots) * COUNT(requests); i++) {
		struct capacity_opts o = opts();
		struct capacity_saturation m = { 100, slots[i / 4], 10, 5 };
		struct capacity_search *c;
		struct capacity_answer a;
		struct capacity_step s;

		o.load = CAPACITY_CONCURRENCY;
		o.limit[0].quantile = 0.9;
		o.limits = 1;
		o.precision = 0.2;
		o.budget_s = 60;
		o.level_s = 3;
		c = capacity_new(&o);
		capacity_tell_probe(c, true, 0.1);
		capacity_tell_unloaded(c, &(struct level){ .e2e_s = 0.02, .requests = 10 });
		capacity_tell_saturation(c, &m);
		while ((s = capacity_next(c)).ask == CAPACITY_LEVEL) {
			uint32_t n = requests[i % 4] / LEVEL_BATCHES;
			struct level l = { .attempted = n * LEVEL_BATCHES, .spent_s = 3,
					   .requests = n * LEVEL_BATCHES, .e2e_s = 0.02,
					   .batches = LEVEL_BATCHES };
			uint32_t failed = (uint32_t)ceil(n * fmax(0, 1 - slots[i / 4] / s.load));

			for (size_t b = 0; b < LEVEL_BATCHES; b++)
				for (size_t j = 0; j < 2; j++) {
					l.batch[b].n[j] = n;
					l.batch[b].slow[j] = failed;
				}
			capacity_tell_level(c, &l);
		}
		a = capacity_answer(c);
		assert_true(a.has_interval);
		near("slots", a.load, slots[i / 4], 0);
		near("low", a.low, slots[i / 4], 0);
		near("high", a.high, slots[i / 4], 0);
		capacity_free(c);
	}
}

/* The caller's range: passed by all, failed by all, and a capacity within. */
static void ranges(void **state)
{
	static const struct { double min, max; enum capacity_end end; } row[] = {
		{ 0, 40, CAPACITY_ALL_PASS }, { 80, 0, CAPACITY_NONE_PASSES },
		{ 20, 90, CAPACITY_PRECISE },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row) * 2; i++) {
		struct server v = { .capacity = { 60, 0 }, .slope = { 20, 0 } };
		struct capacity_opts o = opts();
		struct capacity_search *c;
		const struct capacity_point *p;
		size_t n;

		o.load_min = row[i / 2].min;
		o.load_max = row[i / 2].max;
		o.has_saturation = i % 2;
		c = search(&v, &o);
		assert_int_equal(capacity_answer(c).end, row[i / 2].end);
		p = capacity_points(c, &n);
		for (size_t k = 0; k < n; k++)
			assert_true(p[k].load >= o.load_min &&
				    (!(o.load_max > 0) || p[k].load <= o.load_max));
		capacity_free(c);
	}
}

static void unreachable(void **state)
{
	struct capacity_opts o = opts();
	struct capacity_search *c = capacity_new(&o);

	(void)state;
	assert_int_equal(capacity_next(c).ask, CAPACITY_PROBE);
	capacity_tell_probe(c, false, 2);
	assert_int_equal(capacity_next(c).ask, CAPACITY_DONE);
	assert_int_equal(capacity_answer(c).end, CAPACITY_UNREACHABLE);
	assert_false(capacity_answer(c).has_interval);
	capacity_free(c);
	capacity_free(NULL);
}

/* A limit that gets easier with the load, such as the throughput of the system, is noticed. */
static void decreasing(void **state)
{
	struct capacity_opts o = opts();
	struct capacity_search *c;
	struct capacity_step s;

	(void)state;
	o.limit[0] = (struct capacity_limit){ .is_mean = true, .value = 500, .is_at_least = true };
	o.has_saturation = false;
	c = capacity_new(&o);
	capacity_tell_probe(c, true, 0.1);
	capacity_tell_unloaded(c, &(struct level){ .e2e_s = 0.5, .requests = 10, .spent_s = 5 });
	while ((s = capacity_next(c)).ask == CAPACITY_LEVEL) {
		struct level l = { .attempted = 1000, .requests = 1000, .spent_s = 10, .e2e_s = 0.5,
				   .batches = LEVEL_BATCHES };

		for (size_t b = 0; b < LEVEL_BATCHES; b++) {
			l.batch[b].mean[0] = 10 * s.load * (b % 2 ? 1.01 : 0.99);
			l.batch[b].n[1] = l.batch[b].n[2] = 50;
		}
		capacity_tell_level(c, &l);
	}
	assert_true(capacity_answer(c).is_decreasing == 1);
	capacity_free(c);
}

/* A mean that is just at its limit is within it; one beside it is not, on the wrong side. */
static void at_the_limit(void **state)
{
	static const struct { bool is_at_least; double mean; bool passes; } row[] = {
		{ true, 500, true }, { true, 499.999, false }, { true, 501, true },
		{ false, 500, true }, { false, 499, true }, { false, 500.001, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(row); i++) {
		struct level l = { .attempted = 1000, .requests = 1000, .spent_s = 10, .e2e_s = 0.5,
				   .batches = LEVEL_BATCHES };
		struct capacity_opts o = opts();
		struct capacity_search *c;
		double before;

		o.limit[0] = (struct capacity_limit){ .is_mean = true, .value = 500,
						      .is_at_least = row[i].is_at_least };
		o.has_saturation = false;
		c = capacity_new(&o);
		capacity_tell_probe(c, true, 0.1);
		capacity_tell_unloaded(c, &(struct level){ .e2e_s = 0.5, .requests = 10,
							   .spent_s = 5 });
		before = capacity_next(c).load;
		for (size_t b = 0; b < LEVEL_BATCHES; b++) {
			l.batch[b].mean[0] = row[i].mean;
			l.batch[b].n[1] = l.batch[b].n[2] = 50;
		}
		capacity_tell_level(c, &l);
		assert_int_equal(capacity_next(c).ask, CAPACITY_LEVEL);
		if (row[i].passes != (capacity_next(c).load > before))
			fail_msg("row %zu: from %g to %g", i, before, capacity_next(c).load);
		capacity_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(binomial), cmocka_unit_test(fixed_rate),
		cmocka_unit_test(forecast_of_requests), cmocka_unit_test(taking),
		cmocka_unit_test(overload), cmocka_unit_test(tau), cmocka_unit_test(means),
		cmocka_unit_test(curve), cmocka_unit_test(curve_corners),
		cmocka_unit_test(curve_of_means), cmocka_unit_test(searches),
		cmocka_unit_test(words_of_an_answer), cmocka_unit_test(any_time),
		cmocka_unit_test(forecast), cmocka_unit_test(forecast_while_measuring),
		cmocka_unit_test(whole_loads), cmocka_unit_test(cliff), cmocka_unit_test(slots),
		cmocka_unit_test(ranges),
		cmocka_unit_test(unreachable), cmocka_unit_test(decreasing),
		cmocka_unit_test(at_the_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
