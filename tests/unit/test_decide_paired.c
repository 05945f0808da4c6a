/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decide_paired.c - the anytime-valid interval by hand and by its e-value, blocks, and the
 * run of pairs: when it stops, why, and what it says. How often it is right: bench/ab.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "results/decide/paired.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void near(double got, double want, double within)
{
	if (!(fabs(got - want) <= within))
		fail_msg("%.12g, expected %.12g", got, want);
}

static void blocks(void **state)
{
	struct paired_block b = paired_block(0.3, 20);

	(void)state;
	near(b.length_s, 10, 0);
	near(b.warmup_s, 2, 0);
	b = paired_block(3, 20); /* ten requests long */
	near(b.length_s, 30, 1e-12);
	near(b.warmup_s, 4.5, 1e-12);
	b = paired_block(0.5, 2.5); /* time for 100 requests */
	near(b.length_s, 40, 1e-12);
	near(b.warmup_s, 4, 1e-12);
	b = paired_block(0, 0); /* nothing known yet */
	near(b.length_s, 10, 0);
}

static void half_by_hand(void **state)
{
	(void)state;
	assert_true(isinf(paired_half(1, 1, 0.05)));
	assert_true(isinf(paired_half(4, 1, 0.05)));
	/*
	 * n = 5: K = exp(0.4 (ln(6) / 2 + ln 20)) = 4.74288; (K - 1) / (1 - K / 6) = 17.8641;
	 * sqrt(4 * 17.8641) / sqrt 5 = 3.7804.
	 */
	near(paired_half(5, 1, 0.05), 3.7804, 1e-4);
	near(paired_half(5, 0.02, 0.05), 0.075608, 2e-6);
	assert_true(isinf(paired_half(5, 1, 0.025))); /* two metrics need a sixth pair */
	assert_true(isfinite(paired_half(6, 1, 0.025)));
}

/* The interval ends where the e-value is 1 / alpha. */
static void half_is_where_e_is(void **state)
{
	(void)state;
	for (size_t n = 5; n < 3000; n = n * 3 / 2 + 1)
		for (double alpha = 0.01; alpha < 0.06; alpha += 0.04) {
			double sd = 0.04, half = paired_half(n, sd, alpha), count = (double)n;
			double t2 = count * half * half / (sd * sd), nu = count - 1;

			if (isinf(half))
				continue;
			near(-0.5 * log(1 + count) + 0.5 * count *
			     (log1p(t2 / nu) - log1p(t2 / (nu * (1 + count)))), -log(alpha), 1e-7);
		}
}

static void interval_by_hand(void **state)
{
	static const double d[] = { 0.01, 0.03, 0.02, 0.05, 0.04 };
	struct paired_interval x;

	(void)state;
	paired_interval_init(&x);
	for (size_t i = 0; i < COUNT(d); i++)
		paired_interval_add(&x, d[i], 0.05);
	near(x.mean, 0.03, 1e-15);
	near(paired_interval_sd(&x), sqrt(0.001 / 4), 1e-15); /* squares 4 + 0 + 1 + 4 + 1, e-4 */
	near(x.low, 0.03 - 3.7804 * sqrt(0.00025), 2e-6);
	near(x.high, 0.03 + 3.7804 * sqrt(0.00025), 2e-6);
	/* A value far off widens this look's interval; what was known before stays known. */
	paired_interval_add(&x, 0.9, 0.05);
	near(x.low, 0.03 - 3.7804 * sqrt(0.00025), 2e-6);
	near(x.high, 0.03 + 3.7804 * sqrt(0.00025), 2e-6);
}

/* ---- runs ---- */

static struct paired_opts plain(void)
{
	return (struct paired_opts){
		.alpha = 0.05, .n_metrics = 1, .seconds_max = INFINITY, .pairs_max = 1000,
		.metric = { { -1, 0.03, true } }, .join = 1, .seed = 1,
	};
}

static struct paired_pair made(double d)
{
	struct paired_pair p = { .seconds = 20, .requests = { 100, 100 },
				 .output_tokens = { 6400, 6400 } };

	for (size_t i = 0; i < PAIRED_METRICS_MAX; i++) {
		p.value[PAIRED_A][i] = 0.05;
		p.value[PAIRED_B][i] = 0.05 * exp(d);
	}
	return p;
}

static enum paired_next add(struct paired *p, const struct paired_pair *pair)
{
	paired_toss(p);
	return paired_add(p, pair);
}

static void begin(struct paired *p, const struct paired_opts *o)
{
	struct paired_pair first = made(5); /* wild: it must leave no trace */

	paired_init(p, o);
	assert_int_equal(add(p, &first), PAIRED_GO_ON);
	assert_int_equal(p->pairs, 0);
}

/* Alternates about a mean, so mean and scatter are known at every even pair. */
static enum paired_next add_many(struct paired *p, size_t n, double mean, double sd)
{
	enum paired_next next = PAIRED_GO_ON;

	for (size_t i = 0; i < n && next == PAIRED_GO_ON; i++) {
		struct paired_pair pair = made(mean + (i % 2 ? sd : -sd));

		next = add(p, &pair);
	}
	return next;
}

static void finds_a_slower_server(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	begin(&p, &o);
	assert_int_equal(add_many(&p, 100, log(1.05), 0.01), PAIRED_STOP_SETTLED);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_WORSE); /* a latency: lower is better */
	assert_true(r.pairs >= 5 && r.pairs <= 8);
	assert_int_equal(r.pairs, p.pairs);
	near(r.change, 0.05, 0.01);
	assert_true(r.low > 0 && r.low < r.change && r.change < r.high);
	assert_false(r.is_below);
	near(r.level, 0.95, 1e-12);
	near(p.seconds, 20.0 * p.pairs, 1e-9);

	o.metric[0].better = 1;
	begin(&p, &o);
	add_many(&p, 100, log(1.05), 0.01);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_BETTER);

	o.metric[0].better = 0;
	begin(&p, &o);
	add_many(&p, 100, -log(1.05), 0.01);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_DIFFERENT);
	assert_true(r.high < 0);
}

static void finds_no_change(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	begin(&p, &o);
	assert_int_equal(add_many(&p, 100, 0, 0.01), PAIRED_STOP_SETTLED);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_NO_CHANGE);
	assert_true(r.is_below && r.low > -0.03 && r.high < 0.03);
	/* Equal values: no scatter at all. */
	begin(&p, &o);
	assert_int_equal(add_many(&p, 100, 0, 0), PAIRED_STOP_SETTLED);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_NO_CHANGE);
	assert_int_equal(r.pairs, 5);
	assert_true(r.high > 0 && r.high < 1e-4);
}

/* The interval is of all looks: after a wild pair the mean is outside it. */
static void change_is_in_its_interval(void **state)
{
	struct paired_opts o = plain();
	struct paired_result before, r;
	struct paired_pair wild = made(0.5);
	struct paired p;

	(void)state;
	o.metric[0].effect_min = 0.001;
	begin(&p, &o);
	assert_int_equal(add_many(&p, 10, 0, 0.004), PAIRED_GO_ON);
	paired_result(&p, 0, &before);
	assert_int_equal(add(&p, &wild), PAIRED_GO_ON);
	paired_result(&p, 0, &r);
	near(r.high, before.high, 1e-12);
	near(r.change, r.high, 1e-12);
}

/* 2 % and little scatter: both larger than 0 and below D. */
static void small_but_there(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	begin(&p, &o);
	add_many(&p, 100, log(1.01), 0.0005);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_WORSE);
	assert_true(r.is_below);
}

static void forecast(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;
	double half;

	(void)state;
	begin(&p, &o);
	add_many(&p, 10, 0.005, 0.04);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_UNDECIDED);
	/* The nearer end of what would settle it: ln 1.03 - 0.005 is wider than 0.005. */
	half = log(1.03) - 0.005;
	assert_true(paired_half(r.pairs_needed, r.sd, 0.05) < half);
	assert_true(paired_half(r.pairs_needed - 1, r.sd, 0.05) >= half);
	/* With the mean as it is (the pairs alternate) it comes true. */
	assert_int_equal(add_many(&p, 1000, 0.005, 0.04), PAIRED_STOP_SETTLED);
	assert_true(p.pairs <= r.pairs_needed + 4 && p.pairs + 10 >= r.pairs_needed);

	begin(&p, &o);
	add_many(&p, 1, 0, 0.04);
	paired_result(&p, 0, &r);
	assert_int_equal(r.pairs_needed, 0); /* one pair shows no scatter */
	assert_true(isinf(r.low) && isinf(r.high));
	assert_true(isnan(r.sd));
}

static void limits(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	o.pairs_max = 7;
	begin(&p, &o);
	assert_int_equal(add_many(&p, 100, 0.01, 0.2), PAIRED_STOP_PAIRS);
	assert_int_equal(p.pairs, 7);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_UNDECIDED);
	o.pairs_max = 1000;
	o.seconds_max = 130; /* six pairs with the first; a seventh would end at 140 s */
	begin(&p, &o);
	assert_int_equal(add_many(&p, 100, 0.01, 0.2), PAIRED_STOP_TIME);
	assert_int_equal(p.pairs, 5);
	/* The first pair alone may be too long. */
	o.seconds_max = 30;
	paired_init(&p, &o);
	assert_int_equal(add(&p, &(struct paired_pair){ .seconds = 20 }), PAIRED_STOP_TIME);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_UNDECIDED);
}

static void moves(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	o.metric[0].effect_min = 0.0001;
	o.metric[0].better = 0;
	begin(&p, &o);
	/* Settles at 5 %, so a second metric that is never settled has to keep the run going. */
	o.n_metrics = 2;
	o.metric[1] = (struct paired_metric){ 0, 0.0001, true };
	begin(&p, &o);
	for (size_t i = 0; i < 200; i++) {
		struct paired_pair pair = made((i < 20 ? 0.05 : -0.05) + (i % 2 ? 0.005 : -0.005));

		pair.value[PAIRED_B][1] = 0.05 * exp(i % 2 ? 0.5 : -0.5);
		if (add(&p, &pair) != PAIRED_GO_ON)
			break;
		paired_result(&p, 0, &r);
		if (i == 15)
			assert_int_equal(r.verdict, PAIRED_DIFFERENT);
	}
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_MOVED);
	assert_true(r.low > r.high);
}

static void several_metrics_share_alpha(void **state)
{
	struct paired_opts o = plain();
	struct paired_result one, two, beside;
	struct paired p;

	(void)state;
	o.pairs_max = 12;
	begin(&p, &o);
	add_many(&p, 12, 0.02, 0.1);
	paired_result(&p, 0, &one);
	o.n_metrics = 3;
	o.metric[1] = o.metric[2] = o.metric[0];
	o.metric[2].is_judged = false;
	begin(&p, &o);
	add_many(&p, 12, 0.02, 0.1);
	paired_result(&p, 0, &two);
	paired_result(&p, 2, &beside);
	near(two.level, 0.975, 1e-12);
	assert_true(two.low < one.low && two.high > one.high);
	near(log1p(two.high) - log1p(two.low), 2 * paired_half(12, two.sd, 0.025), 0.02);
	assert_true(beside.low == one.low && beside.high == one.high);
	/* A metric that is not judged neither holds a run up nor ends it. */
	o.pairs_max = 1000;
	o.n_metrics = 2;
	o.metric[1].is_judged = false;
	begin(&p, &o);
	for (size_t i = 0; i < 5; i++) {
		struct paired_pair pair = made(0.1 + (i % 2 ? 0.001 : -0.001));
		enum paired_next next;

		pair.value[PAIRED_B][1] = 0.05 * exp(i % 2 ? 0.5 : -0.5);
		next = add(&p, &pair);
		assert_int_equal(next, i < 4 ? PAIRED_GO_ON : PAIRED_STOP_SETTLED);
	}
}

static void joins(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	assert_int_equal(paired_join(15, 0.9), 1);
	assert_int_equal(paired_join(16, 0.05), 1);  /* 0.05 + 1.2 / 16 = 0.125 */
	assert_int_equal(paired_join(16, 0.10), 2);  /* 0.10 + 1.4 / 16 = 0.1875 */
	assert_int_equal(paired_join(16, 0.25), 4);  /* 0.25 + 2 / 16 = 0.375 */
	assert_int_equal(paired_join(1000, 0.2), 2);
	assert_int_equal(paired_join(1000, 0.35), 4);
	/* Joined by two, six pairs are three values: 0.02, 0.02, 0.02 whatever their halves are. */
	o.join = 2;
	o.pairs_max = 6;
	begin(&p, &o);
	add_many(&p, 6, 0.02, 0.01);
	near(p.track[0].joined[1].mean, 0.02, 1e-12);
	near(p.track[0].joined[1].squares, 0, 1e-18);
	assert_int_equal(p.track[0].joined[1].n, 3);
	paired_result(&p, 0, &r);
	assert_int_equal(r.joined, 2);
	/* Runs of four alike: found, joined by four, and said. */
	o = plain();
	o.join = 0;
	o.pairs_max = 60;
	begin(&p, &o);
	for (size_t i = 0; i < 60; i++) {
		struct paired_pair pair = made((i / 4 % 2 ? 0.04 : -0.04) +
					       (i % 2 ? 0.002 : -0.002));

		if (add(&p, &pair) != PAIRED_GO_ON)
			break;
	}
	paired_result(&p, 0, &r);
	assert_int_equal(r.pairs, 60);
	assert_int_equal(r.joined, 4);
	assert_true(r.correlation > 0.4);
	assert_int_equal(r.verdict, PAIRED_UNDECIDED);
}

static void correlation_by_hand(void **state)
{
	/* About a large mean: offs 1, 2, 3, -1, -5 (e-3); products 2 + 6 - 3 + 5, squares 40. */
	static const double off[] = { 1, 2, 3, -1, -5 };
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	o.pairs_max = COUNT(off);
	begin(&p, &o);
	for (size_t i = 0; i < COUNT(off); i++) {
		struct paired_pair pair = made(2 + off[i] * 1e-3);

		add(&p, &pair);
	}
	paired_result(&p, 0, &r);
	near(r.correlation, 0.25, 1e-9);
}

/* Early looks are stricter where neighbours are joined by their correlation. */
static void early_looks(void **state)
{
	struct paired_opts o = plain();
	struct paired_result by_rule, fixed;
	struct paired p;

	(void)state;
	o.pairs_max = 8;
	begin(&p, &o);
	add_many(&p, 8, 0.0, 0.1);
	paired_result(&p, 0, &fixed);
	o.join = 0;
	begin(&p, &o);
	add_many(&p, 8, 0.0, 0.1);
	paired_result(&p, 0, &by_rule);
	near(log1p(by_rule.high), paired_half(8, by_rule.sd, 0.05 / PAIRED_EARLY), 1e-12);
	near(log1p(fixed.high), paired_half(8, fixed.sd, 0.05), 1e-12);
}

static void coin_only_check(void **state)
{
	static const double d[] = { 0.03, 0.06 };
	struct paired_opts o = plain();
	double rho = 0.2 / (0.03 * 0.03), v = 0.0045, s = 0.09;
	struct paired_result r;
	struct paired p;

	(void)state;
	begin(&p, &o);
	for (size_t i = 0; i < COUNT(d); i++) {
		struct paired_pair pair = made(d[i]);

		add(&p, &pair);
	}
	paired_result(&p, 0, &r);
	/* rho V = 1, rho S^2 = 1.8: 2^-0.5 exp(1.8 / 4) = 1.1090. */
	near(rho * v, 1, 1e-12);
	near(rho * s * s, 1.8, 1e-12);
	near(r.check_e, 1.1090, 1e-4);
	assert_false(r.is_confirmed);
	/* A clear difference is confirmed, and the largest e-value is kept. */
	o.metric[0].effect_min = 0.001;
	o.n_metrics = 2;
	o.metric[1] = (struct paired_metric){ 0, 0.001, true };
	begin(&p, &o);
	for (size_t i = 0; i < 60; i++) {
		struct paired_pair pair = made((i < 30 ? 0.05 : -0.05) + (i % 2 ? 0.01 : -0.01));

		pair.value[PAIRED_B][1] = 0.05 * exp(i % 2 ? 0.5 : -0.5);
		add(&p, &pair);
	}
	paired_result(&p, 0, &r);
	assert_true(r.check_e > 1000 && r.is_confirmed);
	paired_result(&p, 1, &r);
	assert_false(r.is_confirmed);
}

static void failures(void **state)
{
	struct paired_opts o = plain();
	struct paired_pair pair;
	struct paired_result r;
	struct paired p;

	(void)state;
	/* Three of 500 on one side: a result, and it is void. */
	begin(&p, &o);
	for (size_t i = 0; i < 5; i++) {
		pair = made(0.05 + (i % 2 ? 0.001 : -0.001));
		pair.failed[PAIRED_B] = i < 3;
		add(&p, &pair);
	}
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_FAILED);
	/* Two are forgiven. */
	begin(&p, &o);
	for (size_t i = 0; i < 5; i++) {
		pair = made(0.05 + (i % 2 ? 0.001 : -0.001));
		pair.failed[PAIRED_A] = i < 2;
		add(&p, &pair);
	}
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_WORSE);
	/* A server that refuses half of everything ends the run at once. */
	begin(&p, &o);
	pair = made(0);
	pair.failed[PAIRED_A] = 50;
	assert_int_equal(add(&p, &pair), PAIRED_STOP_FAILING);
	/* Failures explain why a metric has no value. */
	begin(&p, &o);
	pair.value[PAIRED_A][0] = NAN;
	assert_int_equal(add(&p, &pair), PAIRED_STOP_FAILING);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_FAILED);
}

static void other_work(void **state)
{
	struct paired_opts o = plain();
	struct paired_result r;
	struct paired p;

	(void)state;
	begin(&p, &o);
	for (size_t i = 0; i < 5; i++) {
		struct paired_pair pair = made(0.05 + (i % 2 ? 0.001 : -0.001));

		pair.output_tokens[PAIRED_B] = 6000;
		add(&p, &pair);
	}
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_OTHER_WORK);
}

static void missing_values(void **state)
{
	struct paired_opts o = plain();
	struct paired_pair pair = made(0);
	struct paired_result r;
	struct paired p;

	(void)state;
	pair.value[PAIRED_B][0] = NAN;
	begin(&p, &o);
	assert_int_equal(add(&p, &pair), PAIRED_GO_ON);
	assert_int_equal(add(&p, &pair), PAIRED_GO_ON);
	assert_int_equal(add(&p, &pair), PAIRED_STOP_MISSING);
	paired_result(&p, 0, &r);
	assert_int_equal(r.verdict, PAIRED_NO_VALUES);
	assert_int_equal(r.missing, 3);
	/* Now and then one is missing: the others count. */
	begin(&p, &o);
	assert_int_equal(add_many(&p, 4, 0.05, 0.001), PAIRED_GO_ON);
	assert_int_equal(add(&p, &pair), PAIRED_GO_ON);
	assert_int_equal(add_many(&p, 1, 0.05, 0.001), PAIRED_STOP_SETTLED);
	paired_result(&p, 0, &r);
	assert_int_equal(r.pairs, 5);
	assert_int_equal(r.missing, 1);
	assert_int_equal(r.verdict, PAIRED_WORSE);
}

static void coin(void **state)
{
	struct paired_opts o = plain();
	struct paired p, same;
	size_t heads = 0, changes = 0;
	enum paired_side before = PAIRED_A;

	(void)state;
	o.metric[0].effect_min = 1e-9;
	o.pairs_max = 5000;
	paired_init(&p, &o);
	paired_init(&same, &o);
	for (size_t i = 0; i < 4000; i++) {
		struct paired_pair pair = made(i % 2 ? 0.01 : -0.01);
		enum paired_side side = paired_toss(&p);

		assert_int_equal(paired_toss(&same), side);
		heads += side == PAIRED_B;
		changes += side != before;
		before = side;
		assert_int_equal(paired_add(&p, &pair), PAIRED_GO_ON);
		paired_add(&same, &pair);
	}
	/* 2,000 +- 3.5 standard deviations of 31.6; the seed is fixed. */
	assert_in_range(heads, 1890, 2110);
	assert_in_range(changes, 1890, 2110);
	o.seed = 2;
	paired_init(&same, &o);
	paired_init(&p, &(struct paired_opts){ .alpha = 0.05, .n_metrics = 1, .seconds_max = 1,
					       .pairs_max = 1, .metric = { { 0, 1, true } } });
	heads = 0;
	for (size_t i = 0; i < 64; i++) {
		struct paired a = p, b = same;

		heads += paired_toss(&a) == paired_toss(&b);
		(void)pcg64_u64(&p.coin);
		(void)pcg64_u64(&same.coin);
	}
	assert_in_range(heads, 16, 48); /* another seed, other tosses */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks),
		cmocka_unit_test(half_by_hand),
		cmocka_unit_test(half_is_where_e_is),
		cmocka_unit_test(interval_by_hand),
		cmocka_unit_test(finds_a_slower_server),
		cmocka_unit_test(finds_no_change),
		cmocka_unit_test(change_is_in_its_interval),
		cmocka_unit_test(small_but_there),
		cmocka_unit_test(forecast),
		cmocka_unit_test(limits),
		cmocka_unit_test(moves),
		cmocka_unit_test(several_metrics_share_alpha),
		cmocka_unit_test(joins),
		cmocka_unit_test(correlation_by_hand),
		cmocka_unit_test(early_looks),
		cmocka_unit_test(coin_only_check),
		cmocka_unit_test(failures),
		cmocka_unit_test(other_work),
		cmocka_unit_test(missing_values),
		cmocka_unit_test(coin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
