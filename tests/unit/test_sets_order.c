/* SPDX-License-Identifier: Apache-2.0 */
/* test_sets_order.c - rows come in the order of the real library (order_golden.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "order_golden.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define NAMED(shard, row) ((shard) * 100000 + (row))

struct shards {
	const uint64_t *size;
	size_t asked;      /* number of calls */
	size_t failing;    /* this one cannot be read; SIZE_MAX: all can */
};

static int rows(void *self, size_t shard, uint64_t *n, struct err *e)
{
	struct shards *s = self;

	s->asked++;
	if (shard == s->failing)
		return err_set(e, ERR_IO, "shard %zu", shard);
	*n = s->size[shard];
	return 0;
}

static void test_golden(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(order_golden); i++) {
		const struct order_golden *g = &order_golden[i];
		struct shards s = { .size = g->size, .failing = SIZE_MAX };
		struct err e = { 0 };
		struct hf_order *o = order_open(g->kind, g->seed, g->shards, rows, &s, &e);
		uint64_t hash = 0xcbf29ce484222325u, total = 0, n = 0;
		struct order_row row;

		assert_non_null(o);
		for (size_t k = 0; k < g->shards; k++)
			total += g->size[k];
		for (; order_next(o, &row, &e) == 1; n++) {
			if (n < COUNT(g->first) && NAMED(row.shard, row.row) != g->first[n])
				fail_msg("row %zu: the %dth is %zu of %zu", i, (int)n, (size_t)row.row,
					row.shard);
			hash = (hash ^ NAMED(row.shard, row.row)) * 0x100000001b3u;
		}
		if (hash != g->hash || n != total)
			fail_msg("row %zu: order %d, seed %d: %zu rows with another hash", i, g->kind,
				(int)g->seed, (size_t)n);
		assert_int_equal(s.asked, g->shards);
		assert_int_equal(order_next(o, &row, &e), 0);
		order_close(o);
	}
}

static void test_natural(void **state)
{
	static const uint64_t size[] = { 0, 2, 0, 1, 0 };
	static const struct order_row want[] = { { 1, 0 }, { 1, 1 }, { 3, 0 } };
	struct shards s = { .size = size, .failing = SIZE_MAX };
	struct err e = { 0 };
	struct hf_order *o = order_open(ORDER_NATURAL, 7, 5, rows, &s, &e);
	struct order_row row;

	(void)state;
	for (size_t i = 0; i < COUNT(want); i++) {
		assert_int_equal(order_next(o, &row, &e), 1);
		assert_int_equal(row.shard, want[i].shard);
		assert_int_equal(row.row, want[i].row);
	}
	assert_int_equal(order_next(o, &row, &e), 0);
	order_close(o);
}

/* A shard that is not reached is not asked for. */
static void test_lazy(void **state)
{
	static const uint64_t size[] = { 5000, 5000, 5000 };
	struct shards s = { .size = size, .failing = SIZE_MAX };
	struct err e = { 0 };
	struct hf_order *o = order_open(ORDER_STREAM, 1, 3, rows, &s, &e);
	struct order_row row;

	(void)state;
	assert_int_equal(s.asked, 0);
	for (int i = 0; i < 100; i++)
		assert_int_equal(order_next(o, &row, &e), 1);
	assert_int_equal(s.asked, 1);
	order_close(o);
}

static void test_failing_and_empty(void **state)
{
	static const uint64_t size[] = { 3, 3, (uint64_t)1 << 40 };
	static const enum order_kind kind[] = { ORDER_NATURAL, ORDER_WHOLE, ORDER_STREAM,
		ORDER_STREAM_5, ORDER_STREAM_5_ROWS };

	(void)state;
	for (size_t i = 0; i < COUNT(kind); i++) {
		struct shards s = { .size = size, .failing = 1 };
		struct err e = { 0 };
		struct hf_order *o = order_open(kind[i], 3, 2, rows, &s, &e);
		struct order_row row;
		int rc = o ? 1 : -1;

		for (int n = 0; rc == 1; n++) {
			assert_true(n < 4);
			rc = order_next(o, &row, &e);
		}
		assert_int_equal(rc, -1);
		assert_string_equal(e.text, "shard 1");
		order_close(o);
		o = order_open(kind[i], 3, 0, rows, &s, &e);
		assert_int_equal(order_next(o, &row, &e), 0);
		order_close(o);
		s.failing = SIZE_MAX;
		e = (struct err){ 0 };
		o = order_open(kind[i], 3, 3, rows, &s, &e);
		assert_int_equal(e.code, kind[i] == ORDER_WHOLE ? ERR_LIMIT : ERR_NONE);
		order_close(o);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden),
		cmocka_unit_test(test_natural),
		cmocka_unit_test(test_lazy),
		cmocka_unit_test(test_failing_and_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
