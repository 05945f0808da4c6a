/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_decide_halving.c - rounds, cuts and budgets of a search for the best candidate, by hand. How
 * often it finds the best one: bench/halving.c.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "results/decide/halving.h"

#define N 27

struct search {
	struct halving h;
	struct halving_item item[N];
	size_t order[N];
	size_t measured[HALVING_ROUNDS_MAX];
};

/* 27 candidates, one in three stays, 1, 3, 9 and 27 long; a second for each unit of length. */
static struct halving_opts usual(void)
{
	return (struct halving_opts){ .n = N, .eta = 3, .full = 27, .first = 1, .repeats = 1,
				      .share = INFINITY, .budget_s = INFINITY, .is_highest = true };
}

static void begin(struct search *s, const struct halving_opts *o)
{
	*s = (struct search){ .measured = { 0 } };
	halving_begin(&s->h, o, s->item, s->order);
}

/* Candidate i has the value 100 + i. */
static void measure(struct search *s, double half, double start_s)
{
	for (size_t i = 0; i < s->h.opts.n; i++) {
		struct halving_seen seen = { .value = 100 + (double)i, .half = half,
					     .start_s = start_s,
					     .load_s = s->h.length[s->h.round] };

		if (s->item[i].fate != HALVING_IN)
			continue;
		halving_tell(&s->h, i, &seen);
		s->measured[s->h.round]++;
	}
}

static void run(struct search *s, const struct halving_opts *o, double half)
{
	begin(s, o);
	do {
		measure(s, half, 0);
	} while (halving_next(&s->h));
}

static void near(double got, double want)
{
	if (!(fabs(got - want) <= 1e-9 * fabs(want)))
		fail_msg("%.12g, expected %.12g", got, want);
}

/* The scatter of starts alone: 2 % on either side of values that are 1 % apart. */
static void rounds(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	run(&s, &o, 0);
	assert_int_equal(s.h.rounds, 4);
	near(s.h.length[0], 1);
	near(s.h.length[1], 3);
	near(s.h.length[3], 27);
	assert_int_equal(s.measured[0], 27);
	assert_int_equal(s.measured[1], 9 + 2); /* those whose interval reaches the ninth's value */
	assert_int_equal(halving_order(&s.h), N);
	assert_int_equal(s.order[0], N - 1);
	assert_true(s.h.is_over && !s.h.is_cut_short);
	assert_int_equal(s.item[0].fate, HALVING_BELOW);
	assert_int_equal(s.item[0].round, 0);
	assert_int_equal(s.item[N - 1].times, 1);
	near(halving_full_s(&s.h), N * 27);
	o.is_highest = false;
	run(&s, &o, 0);
	halving_order(&s.h);
	assert_int_equal(s.order[0], 0);
}

/*
 * While there is a budget, no candidate is dropped that may be better than the cut: all from 100 to
 * 126 are within the error of a run without an interval.
 */
static void respects_doubt(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	run(&s, &o, INFINITY);
	for (unsigned r = 0; r < s.h.rounds; r++)
		assert_int_equal(s.measured[r], N);
	near(s.h.loaded_s, N * (1 + 3 + 9 + 27));
	o.share = 0.25;
	run(&s, &o, INFINITY);
	assert_true(halving_load_share(&s.h) <= 0.25);
	assert_true(s.measured[1] > 9 && s.measured[1] < N); /* what is left is shared out */
	assert_int_equal(s.item[0].fate, HALVING_FORCED);
	halving_order(&s.h);
	assert_int_equal(s.order[0], N - 1);
}

static void budgets(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	o.budget_s = 27 + 3; /* no room for a third round of any */
	run(&s, &o, 0);
	assert_true(s.h.is_over && s.h.is_cut_short);
	assert_int_equal(s.h.round, 0);
	halving_order(&s.h);
	assert_int_equal(s.order[0], N - 1);
	/* Starts are no part of the share, and part of the budget. */
	o.budget_s = INFINITY;
	o.share = 0.25;
	begin(&s, &o);
	measure(&s, 0, 1000);
	assert_true(halving_next(&s.h));
	near(s.h.spent_s, 27 * 1001);
	near(s.h.loaded_s, 27);
	near(halving_full_s(&s.h), 27 * 1027);
}

/* The first round takes twice its share of the time: known as soon as others were longer. */
static void short_rounds_mislead(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	begin(&s, &o);
	for (size_t i = 0; i < N; i++)
		halving_tell(&s.h, i, &(struct halving_seen){ 100 + (double)i, 0, 0, 2 });
	near(halving_full_s(&s.h), N * 54);
	assert_true(halving_next(&s.h));
	measure(&s, 0, 0);
	assert_true(halving_next(&s.h));
	near(halving_full_s(&s.h), N * 27);
}

/* Requests that come at a rate: what a short round takes beyond that is no longer in a long one. */
static void a_pace(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	o.pace_s = 2;
	begin(&s, &o);
	for (size_t i = 0; i < N; i++)
		halving_tell(&s.h, i, &(struct halving_seen){ 100 + (double)i, 0, 5, 2 + 10 });
	near(halving_full_s(&s.h), N * (5 + 27 * 2 + 10));
	near(halving_load_share(&s.h), 12.0 / (27 * 2 + 10));
	/* One that never got load would not at full length either. */
	begin(&s, &o);
	for (size_t i = 0; i < N - 1; i++)
		halving_tell(&s.h, i, &(struct halving_seen){ 100 + (double)i, 0, 5, 2 });
	halving_out(&s.h, N - 1, 7, 0);
	near(halving_full_s(&s.h), (N - 1) * (5 + 27 * 2) + 7);
}

/* Load on those that are out is load too. */
static void out_after_load(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	begin(&s, &o);
	for (size_t i = 0; i < N; i++)
		halving_out(&s.h, i, 3, 2);
	near(s.h.loaded_s, N * 2);
	near(s.h.spent_s, N * 5);
	near(halving_load_share(&s.h), 1.0 / 27);
}

/* Short rounds count by their length; what was measured at full length goes by that alone. */
static void rounds_together(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	o.n = 2;
	begin(&s, &o);
	for (unsigned r = 0; r < 4; r++) {
		static const double value[] = { 800, 100, 100, 50 };

		assert_int_equal(s.h.round, r);
		halving_tell(&s.h, 0, &(struct halving_seen){ value[r], 0.01, 0, 1 });
		halving_tell(&s.h, 1, &(struct halving_seen){ 40, 0.01, 0, 1 });
		if (r == 1)
			near(s.item[0].value, 100 * pow(8, 0.25));
		if (r == 2)
			near(s.item[0].value, 100 * pow(8, 1.0 / 13));
		assert_int_equal(halving_next(&s.h), r < 3);
	}
	near(s.item[0].value, 50);
}

/* Measures with values that are the caller's; true: the search goes on. */
static bool told(struct search *s, double (*value)(size_t i, unsigned round))
{
	for (size_t i = 0; i < N; i++)
		if (s->item[i].fate == HALVING_IN) {
			struct halving_seen seen = { value(i, s->h.round), 0.01, 0,
						     s->h.length[s->h.round] };

			halving_tell(&s->h, i, &seen);
			s->measured[s->h.round]++;
		}
	return halving_next(&s->h);
}

static double alike(size_t i, unsigned round)
{
	(void)i;
	(void)round;
	return 100;
}

static double lying(size_t i, unsigned round)
{
	return i == 3 && round == 0 ? 118 : i == 3 ? 130 : 100 + (double)i;
}

/* What is alike is dropped for the budget only, and the caller can say so. */
static void ties(void **state)
{
	struct search s;
	struct halving_opts o = usual();
	size_t forced = 0;

	(void)state;
	o.share = 0.5;
	o.repeats = 3;
	begin(&s, &o);
	while (told(&s, alike))
		;
	for (size_t i = 0; i < N; i++) {
		assert_true(s.item[i].fate == HALVING_IN || s.item[i].fate == HALVING_FORCED);
		forced += s.item[i].fate == HALVING_FORCED;
	}
	assert_true(forced > 0 && N - forced >= HALVING_LEAST);
	assert_true(halving_load_share(&s.h) <= 0.5);
	halving_order(&s.h);
	assert_int_equal(s.item[s.order[0]].fate, HALVING_IN);
	assert_int_equal(s.item[s.order[0]].times, 3);
	near(s.item[s.order[0]].value, s.item[s.order[1]].value);
}

/* The best is the ninth in the first round. */
static void first_round_lies(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	o.share = 0.5;
	begin(&s, &o);
	while (told(&s, lying))
		;
	assert_true(s.measured[1] >= 9 && s.measured[3] < N);
	assert_true(halving_load_share(&s.h) <= 0.5);
	halving_order(&s.h);
	assert_int_equal(s.order[0], 3);
	near(s.item[3].value, 130);
}

/* A round takes a part of what is left, so every later one has at least two. */
static void leaves_something(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	o.share = 0.5;
	o.repeats = 2;
	begin(&s, &o);
	while (told(&s, alike)) {
		double left = o.share * HALVING_MARGIN * N * o.full - s.h.loaded_s;

		assert_true((double)s.h.kept * s.h.length[s.h.round] <= left * HALVING_NEXT ||
			    s.h.kept == HALVING_LEAST || s.h.round >= 3);
	}
	assert_true(!s.h.is_cut_short);
	assert_int_equal(s.h.round + 1, s.h.rounds);
	assert_true(s.measured[4] >= HALVING_LEAST);
}

static void those_out(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	begin(&s, &o);
	for (size_t i = 0; i < N; i++)
		halving_out(&s.h, i, 1, 0);
	assert_false(halving_next(&s.h));
	assert_int_equal(halving_order(&s.h), 0);
	begin(&s, &o);
	halving_out(&s.h, N - 1, 5, 0);
	measure(&s, 0, 0);
	assert_true(halving_next(&s.h));
	assert_int_equal(s.item[N - 1].fate, HALVING_OUT);
	halving_order(&s.h);
	assert_int_equal(s.order[0], N - 2);
	near(s.h.spent_s, 5 + 26);
}

/* Measured again at full length: the mean of all, and an interval that narrows. */
static void repeats(void **state)
{
	static const double value[] = { 100, 121, 110 };
	struct search s;
	struct halving_opts o = usual();
	double half = 0;

	(void)state;
	o.n = 2;
	o.first = 27;
	o.repeats = 3;
	begin(&s, &o);
	assert_int_equal(s.h.rounds, 3);
	for (size_t r = 0; r < 3; r++) {
		near(s.h.length[r], 27);
		halving_tell(&s.h, 0, &(struct halving_seen){ value[r], 0.03, 0, 1 });
		halving_tell(&s.h, 1, &(struct halving_seen){ 50, 0.03, 0, 1 });
		assert_true(r == 0 || s.item[0].half < half);
		half = s.item[0].half;
		assert_int_equal(halving_next(&s.h), r < 2);
	}
	assert_int_equal(s.item[0].times, 3);
	near(s.item[0].value, cbrt(100.0 * 121 * 110));
	assert_int_equal(s.item[1].fate, HALVING_IN); /* two stay, however clear it is */
}

static void one(void **state)
{
	struct search s;
	struct halving_opts o = usual();

	(void)state;
	o.n = 1;
	run(&s, &o, 0);
	assert_int_equal(s.h.rounds, 1);
	near(s.h.length[0], 27);
	assert_int_equal(halving_order(&s.h), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rounds), cmocka_unit_test(respects_doubt),
		cmocka_unit_test(budgets), cmocka_unit_test(short_rounds_mislead),
		cmocka_unit_test(a_pace), cmocka_unit_test(out_after_load),
		cmocka_unit_test(rounds_together), cmocka_unit_test(ties),
		cmocka_unit_test(first_round_lies), cmocka_unit_test(leaves_something),
		cmocka_unit_test(those_out), cmocka_unit_test(repeats), cmocka_unit_test(one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
