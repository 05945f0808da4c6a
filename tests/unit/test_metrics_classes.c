/* SPDX-License-Identifier: Apache-2.0 */
/* Requests split by priority, and what priorities cost a class. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/metrics/metrics.h"
#include "record_sample.h"

static struct metrics_class_request one(int64_t priority, double ttft_s, double e2el_s)
{
	return (struct metrics_class_request){
		.priority = priority, .is_completed = true, .ttft_s = ttft_s, .e2el_s = e2el_s,
		.tpot_s = NAN, .queue_s = NAN,
	};
}

static void classes_are_split(void **state)
{
	struct metrics_class_request v[] = {
		one(1, 0.2, 1.0), one(-5, 0.1, 0.5), one(1, 0.4, 2.0), one(1, 0.6, 3.0),
		one(-5, NAN, 0.7), one(1, 9, 9), { .priority = 1, .ttft_s = 9 },
	};
	struct metrics_class c[METRICS_CLASSES_MAX];

	(void)state;
	v[5].is_completed = false;
	v[5].is_failed = true; /* counts, its times do not */
	v[0].queue_s = 0.05;
	assert_int_equal(metrics_class_split(v, 7, c), 2);
	assert_int_equal(c[0].priority, -5);
	assert_int_equal(c[0].requests, 2);
	assert_int_equal(c[0].ttft.n, 1);
	assert_int_equal(c[0].e2el.n, 2);
	assert_true(c[0].e2el.p50_ms == 600);
	assert_int_equal(c[1].priority, 1);
	assert_int_equal(c[1].requests, 5);
	assert_int_equal(c[1].completed, 3);
	assert_int_equal(c[1].failed, 1);
	assert_int_equal(c[1].ttft.n, 3);
	assert_true(c[1].ttft.p50_ms == 400);
	assert_true(c[1].e2el.max_ms == 3000);
	assert_int_equal(c[1].tpot.n, 0);
	assert_int_equal(c[1].queue.n, 1);
	assert_true(c[1].queue.p50_ms == 50);
}

static void many_are_no_classes(void **state)
{
	struct metrics_class_request v[METRICS_CLASSES_MAX + 1];
	struct metrics_class c[METRICS_CLASSES_MAX] = { 0 };

	(void)state;
	for (int i = 0; i <= METRICS_CLASSES_MAX; i++)
		v[i] = one(i, 1, 1);
	assert_int_equal(metrics_class_split(v, METRICS_CLASSES_MAX, c), METRICS_CLASSES_MAX);
	assert_int_equal(c[METRICS_CLASSES_MAX - 1].priority, METRICS_CLASSES_MAX - 1);
	c[0].requests = 77;
	assert_int_equal(metrics_class_split(v, METRICS_CLASSES_MAX + 1, c),
			 METRICS_CLASSES_MAX + 1);
	assert_int_equal(c[0].requests, 77); /* untouched */
	assert_int_equal(metrics_class_split(v, 0, c), 0);
}

/* Medians with priorities over medians without: 2 is twice as long. */
static void a_cost_is_a_ratio_of_medians(void **state)
{
	const struct metrics_class with = {
		.ttft = { .n = 3, .p50_ms = 50 }, .e2el = { .n = 3, .p50_ms = 10 },
	};
	const struct metrics_class without = {
		.ttft = { .n = 3, .p50_ms = 25 }, .tpot = { .n = 1, .p50_ms = 1 },
		.e2el = { .n = 3, .p50_ms = 20 },
	};
	struct metrics_class_cost cost = metrics_class_cost(&with, &without);

	(void)state;
	assert_true(cost.ttft == 2);
	assert_true(cost.e2el == 0.5);
	assert_true(isnan(cost.tpot));
	assert_true(isnan(cost.queue));
}

static void a_record_has_classes(void **state)
{
	static const double p99[] = { 99 };
	const struct metrics_opts o = {
		.percentile = p99, .n_percentiles = 1, .has_tokenizer = true,
	};
	struct record r = { 0 };
	struct metrics m;
	uint32_t completed = 0;

	(void)state;
	assert_int_equal(sample_record(&r, 30, 1), 0);
	metrics_score(&m, &r, &o);
	assert_null(m.class); /* one priority is no class */
	assert_int_equal(m.n_priorities, 1);
	metrics_release(&m);
	for (uint32_t i = 0; i < r.n_rows; i++)
		r.row[i].priority = i % 3 == 0 ? -1 : 2;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.n_priorities, 2);
	assert_int_equal(m.class[0].priority, -1);
	assert_int_equal(m.class[0].requests + m.class[1].requests, m.n);
	for (int i = 0; i < 2; i++)
		completed += m.class[i].completed;
	assert_int_equal(completed, m.completed);
	assert_int_equal(m.class[0].ttft.n, m.class[0].completed);
	assert_true(m.class[0].queue.n == 0);
	metrics_release(&m);
	record_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(classes_are_split),
		cmocka_unit_test(many_are_no_classes),
		cmocka_unit_test(a_cost_is_a_ratio_of_medians),
		cmocka_unit_test(a_record_has_classes),
	};

	return cmocka_run_group_tests_name("metrics_classes", tests, NULL, NULL);
}
