/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_sweep_search.c - upstream's searches for the largest load within limits, against recorded
 * traces of them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/sweep/search.h"
#include "search_golden.h"
#include "search_systems.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define INFINITE 65536

static const struct sla_limit limit = { "p99_ttft_ms", SLA_LE, 100, false };
static const struct sla one_limit = { &limit, 1 };

/* What a level of a system gives. */
static struct search_verdict measure(const struct system *s, int64_t level)
{
	double value = system_run(s, level, 0);
	struct search_verdict v = search_judge(&one_limit, &value, 1);

	v.estimate = system_estimate(s);
	return v;
}

static struct search_outcome search(const struct system *s, enum search_kind kind,
				    struct search *out)
{
	int64_t level, again;

	search_init(out, &(struct search_opts){ .kind = kind, .max = INFINITE });
	while (search_next(out, &level)) {
		struct search_verdict v = measure(s, level);

		assert_true(search_next(out, &again) && again == level);
		assert_true(level >= 1 && level <= INFINITE);
		search_tell(out, level, &v);
	}
	return search_outcome(out);
}

/* ---- upstream's recipes ---- */

static void compare_trace(size_t row, unsigned which)
{
	const struct search_golden *g = &search_golden[row];
	struct system s = { .how = g->how, .base = g->base, .scale = g->scale };
	struct search_opts o = { .kind = which ? SEARCH_INTERPOLATE : SEARCH_BISECT,
				 .max = which ? 8192 : INFINITE };
	struct search search;
	unsigned n = 0;
	int64_t level;

	search_init(&search, &o);
	for (; search_next(&search, &level); n++) {
		struct search_verdict v = measure(&s, level);

		if (n >= g->of[which].n || level != g->of[which].level[n])
			fail_msg("row %zu, recipe %u, level %u: %lld asked for", row, which, n,
				 (long long)level);
		search_tell(&search, level, &v);
	}
	assert_int_equal(n, g->of[which].n);
	assert_int_equal(search_outcome(&search).passing, g->of[which].answer);
	assert_int_equal(search_outcome(&search).end,
			 g->of[which].answer ? SEARCH_FOUND : SEARCH_NONE_PASSES);
}

static void test_recipes(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(search_golden); i++) {
		compare_trace(i, 0);
		compare_trace(i, 1);
	}
}

/* A level may be measured again: the later verdict counts, and it is one level still. */
static void test_told_again(void **state)
{
	static const struct search_verdict holds = { .passes = true, .runs = 2 };
	static const struct search_verdict fails = { .estimate = 20, .runs = 3 };
	static const int64_t levels[] = { 20, 40, 80, 100 };
	struct search s;
	int64_t level;

	(void)state;
	search_init(&s, &(struct search_opts){ .kind = SEARCH_BISECT, .max = 100 });
	search_tell(&s, 100, &fails);
	search_tell(&s, 40, &holds);
	search_tell(&s, 20, &holds);
	search_tell(&s, 80, &fails);
	search_tell(&s, 40, &fails);
	search_tell(&s, 20, &holds);
	assert_int_equal(s.n, COUNT(levels));
	for (size_t i = 0; i < COUNT(levels); i++) {
		assert_int_equal(s.point[i].level, levels[i]);
		assert_int_equal(s.point[i].v.passes, i == 0);
	}
	assert_true(search_next(&s, &level) && level == 30);
	assert_int_equal(search_outcome(&s).levels, 4);
	assert_int_equal(search_outcome(&s).runs, 15);
	assert_int_equal(search_outcome(&s).passing, 20);
	assert_int_equal(search_outcome(&s).failing, 40);
}

static void test_ends(void **state)
{
	struct system s = { .how = SYSTEM_LINE, .base = 120, .scale = 50 };
	enum search_kind kind;
	struct search found;

	(void)state;
	for (kind = SEARCH_BISECT; kind <= SEARCH_INTERPOLATE; kind++) {
		struct search_outcome o;

		s.base = 120; /* even alone a request takes too long */
		o = search(&s, kind, &found);
		assert_int_equal(o.end, SEARCH_NONE_PASSES);
		assert_int_equal(o.passing, 0);
		assert_int_equal(o.failing, 1);
		s.base = 20;
		s.scale = 1e9; /* nothing saturates it */
		o = search(&s, kind, &found);
		assert_int_equal(o.end, SEARCH_ALL_PASS);
		assert_int_equal(o.passing, INFINITE);
		assert_int_equal(o.levels, 1);
		s.scale = 50;
		o = search(&s, kind, &found);
		assert_int_equal(o.end, SEARCH_FOUND);
		assert_int_equal(o.passing, 40);
		assert_int_equal(o.failing, 41);
		assert_true(o.is_monotone);
	}
}

static void test_tolerance(void **state)
{
	struct system s = { .how = SYSTEM_LINE, .base = 20, .scale = 1000 };
	struct search exact, rough;
	struct search_outcome a = search(&s, SEARCH_BISECT, &exact), b;
	int64_t level;

	(void)state;
	search_init(&rough, &(struct search_opts){ .kind = SEARCH_BISECT, .max = INFINITE,
						    .tolerance = 0.05 });
	assert_int_equal(search_outcome(&rough).end, SEARCH_UNDECIDED);
	while (search_next(&rough, &level)) {
		struct search_verdict v = measure(&s, level);

		search_tell(&rough, level, &v);
	}
	b = search_outcome(&rough);
	assert_int_equal(a.passing, 800);
	assert_int_equal(b.end, SEARCH_FOUND);
	assert_true(b.levels < a.levels);
	assert_true(b.passing <= 800 && b.failing > 800);
	assert_true((double)(b.failing - b.passing) <= 0.05 * (double)b.failing);
}

/* A level that passes above one that fails is reported. */
static void test_not_monotone(void **state)
{
	static const struct { int64_t level; bool passes; } told[] = {
		{ 100, false }, { 10, false }, { 40, true }, { 41, false },
	};
	struct search search;
	struct search_outcome o;

	(void)state;
	search_init(&search, &(struct search_opts){ .kind = SEARCH_BISECT, .max = 100 });
	for (size_t i = 0; i < COUNT(told); i++)
		search_tell(&search, told[i].level, &(struct search_verdict){
			.passes = told[i].passes, .gap = told[i].passes ? -0.1 : 0.1,
			.margin = told[i].passes ? -1 : 1, .runs = 1 });
	o = search_outcome(&search);
	assert_int_equal(o.end, SEARCH_FOUND);
	assert_int_equal(o.passing, 40);
	assert_int_equal(o.failing, 41);
	assert_false(o.is_monotone);
}

/* ---- a level ---- */

static const struct sla_limit two[] = {
	{ "p99_ttft_ms", SLA_LE, 100, false }, { "request_throughput", SLA_GE, 10, false },
};
static const struct sla both = { two, 2 };

/* Verdicts come from the means over the runs. */
static void test_judge(void **state)
{
	static const double passes[] = { 95, 30, 104, 30, 99, 31 };
	static const double fails[] = { 95, 30, 110, 30, 99, 31 };
	struct search_verdict v = search_judge(&both, passes, 3);

	(void)state;
	assert_true(v.passes && v.runs == 3);
	assert_true(fabs(v.margin - (298.0 / 3 - 100)) < 1e-9);
	assert_true(v.gap < 0);
	v = search_judge(&both, fails, 3);
	assert_true(!v.passes && v.gap > 0 && !v.is_by_failures);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recipes),
		cmocka_unit_test(test_told_again),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_tolerance),
		cmocka_unit_test(test_not_monotone),
		cmocka_unit_test(test_judge),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
