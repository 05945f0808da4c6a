/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serving_engine.c -
 * the modelled engine where requests differ: priorities, adapters, and turns of
 * conversations. All in virtual time, so nothing depends on the machine.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "sim/model/engine.h"
#include "sim/serving/batch.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define MS 1000000

/* ---- a few sequences, step by step ---- */

struct few {
	struct sim_engine g;
	struct engine_seq seq[6];
	int tokens[6], want[6];
	char order[16];
};

static void few_token(struct engine_seq *s, void *ctx)
{
	struct few *f = ctx;
	size_t i = (size_t)(s - f->seq);

	f->order[strlen(f->order)] = (char)('a' + i);
	if (++f->tokens[i] == f->want[i])
		engine_remove(&f->g, s);
}

static void few_add(struct few *f, size_t i, uint32_t prompt, int want, int64_t priority,
		    uint32_t lora)
{
	f->seq[i] = (struct engine_seq){ .prompt_left = prompt, .priority = priority,
					 .lora = lora };
	f->want[i] = want;
	engine_add(&f->g, &f->seq[i]);
}

/* Its length in microseconds; who got a token is in order. */
static int64_t few_step(struct few *f)
{
	int64_t ns = engine_step_begin(&f->g);

	memset(f->order, 0, sizeof(f->order));
	if (ns >= 0)
		engine_step_end(&f->g, few_token, f);
	return ns < 0 ? -1 : ns / 1000;
}

static const struct engine_cost plain = { .prefill_base_us = 1000, .prefill_us_per_token = 10,
					  .decode_base_us = 100000, .decode_us_per_seq = 1 };

/* One at a time: the order is that of priorities, then of arrival. */
static void test_order_of_priorities(void **state)
{
	static const int64_t priority[] = { 3, 0, -5, 0, 3, 7 };
	static const char *const order[] = { "c", "b", "d", "a", "e", "f" };
	struct few f = { 0 };
	(void)state;
	engine_init(&f.g, plain, 1, 100);
	f.g.is_by_priority = true;
	for (size_t i = 0; i < COUNT(priority); i++)
		few_add(&f, i, 4, 1, priority[i], 0);
	for (size_t i = 0; i < COUNT(order); i++) {
		assert_int_equal(few_step(&f), 1040);
		assert_string_equal(f.order, order[i]);
	}
	assert_int_equal(engine_step_begin(&f.g), -1);
	engine_release(&f.g);
}

/*
 * Room for 10 tokens. b is newer and more urgent: by priority a makes way, although it had its turn
 * in that step, whose work it gives back; by arrival b does.
 */
static void test_who_makes_way(void **state)
{
	(void)state;
	for (int is_by_priority = 0; is_by_priority < 2; is_by_priority++) {
		struct few f = { 0 };

		engine_init(&f.g, plain, 4, 100);
		f.g.kv_tokens = 10;
		f.g.is_by_priority = is_by_priority;
		few_add(&f, 0, 4, 9, 1, 0);
		assert_int_equal(few_step(&f), 1040);
		few_add(&f, 1, 4, 9, 0, 0);
		assert_int_equal(few_step(&f), 100000 + 1 + 1040);
		assert_string_equal(f.order, "ab");
		assert_int_equal(few_step(&f), 100000 + 1); /* the one that is left decodes */
		assert_string_equal(f.order, is_by_priority ? "b" : "a");
		assert_int_equal(f.g.preempted, 1);
		assert_int_equal(f.g.step_tokens, 1);
		assert_int_equal(f.g.held, is_by_priority ? 5 : 6);
		/* All that it had computed is to be computed again. */
		assert_int_equal(f.seq[is_by_priority ? 0 : 1].prompt_left, is_by_priority ? 5 : 4);
		while (few_step(&f) >= 0)
			continue;
		assert_int_equal(f.tokens[0], 9);
		assert_int_equal(f.tokens[1], 9);
		engine_release(&f.g);
	}
}

/* Room for the adapter of a and c: b, with another one, waits; d, with none, does not. */
static void test_adapters_in_a_batch(void **state)
{
	struct few f = { 0 };
	(void)state;
	engine_init(&f.g, plain, 8, 100);
	f.g.loras_max = 1;
	few_add(&f, 0, 4, 2, 0, 7);
	few_add(&f, 1, 4, 1, 0, 8);
	few_add(&f, 2, 4, 3, 0, 7);
	few_add(&f, 3, 4, 1, 0, 0);
	few_step(&f);
	assert_string_equal(f.order, "acd");
	few_step(&f);
	assert_string_equal(f.order, "ac");
	few_step(&f); /* a is gone, c still has the place */
	assert_string_equal(f.order, "c");
	few_step(&f);
	assert_string_equal(f.order, "b");
	assert_int_equal(engine_step_begin(&f.g), -1);
	engine_release(&f.g);
}

/* ---- a crowd ---- */

#define CROWD 600

struct classes {
	double ttft_s[2]; /* means */
	double e2el_s[2];
};

/* Every fifth request has priority 0, the others 1; they come twice as fast as they are served. */
static struct classes crowd(bool is_by_priority, size_t n)
{
	struct sim_opts opts = sim_defaults();
	struct batch_item *item = calloc(n, sizeof(*item));
	struct batch_how how = { .sequences = 1 };
	struct batch_sum sum = { 0 };
	struct classes c = { 0 };
	struct batch_engine b;
	double count[2] = { 0 };

	opts.max_num_seqs = 16;
	opts.is_by_priority = is_by_priority;
	batch_engine_init(&b, &opts);
	for (size_t i = 0; i < n; i++)
		item[i] = (struct batch_item){ .prompt = 100, .output = 50, .priority = i % 5 != 0,
					       .ready_ns = (int64_t)i * 25 * MS };
	batch_run(&b, item, n, &how, &sum);
	for (size_t i = 0; i < n; i++) {
		int k = (int)item[i].priority;

		c.ttft_s[k] += (double)(item[i].first_ns - item[i].ready_ns) * 1e-9;
		c.e2el_s[k] += (double)(item[i].last_ns - item[i].ready_ns) * 1e-9;
		count[k]++;
	}
	for (int k = 0; k < 2; k++) {
		c.ttft_s[k] /= count[k] ? count[k] : 1;
		c.e2el_s[k] /= count[k] ? count[k] : 1;
	}
	batch_engine_release(&b);
	free(item);
	return c;
}

/* What priorities are for: the urgent class hardly notices the load, the other one pays for it. */
static void test_classes_under_overload(void **state)
{
	double alone = crowd(true, 1).ttft_s[0];
	struct classes fcfs = crowd(false, CROWD), priority = crowd(true, CROWD);
	(void)state;
	assert_true(alone > 0 && alone < 0.02);
	/* Everybody waits alike. */
	assert_true(fcfs.ttft_s[0] > 2);
	assert_true(fabs(fcfs.ttft_s[0] / fcfs.ttft_s[1] - 1) < 0.02);
	/* No request is evicted from the batch, but places in it become free all the time. */
	assert_true(priority.ttft_s[0] < alone + 0.2);
	assert_true(priority.ttft_s[1] > fcfs.ttft_s[1] * 1.1);
	assert_true(priority.e2el_s[0] < fcfs.e2el_s[0] / 3);
	/* The work is the same. */
	assert_true(fabs(0.2 * priority.ttft_s[0] + 0.8 * priority.ttft_s[1] -
			 (0.2 * fcfs.ttft_s[0] + 0.8 * fcfs.ttft_s[1])) < 0.1 * fcfs.ttft_s[0]);
}

/* ---- turns of a conversation ---- */

#define TURNS 8
#define NEW_TOKENS 150 /* an answer and the next question */

/* TTFT of each turn of one conversation, in microseconds. */
static void turns_run(bool is_cached, uint32_t lora_of_turn[TURNS], double ttft_us[TURNS],
		      uint32_t known[TURNS])
{
	struct sim_opts opts = sim_defaults();
	struct batch_how how = { .sequences = 1 };
	uint32_t id[TURNS * NEW_TOKENS];
	struct batch_engine b;

	opts.is_prefix_cached = is_cached;
	batch_engine_init(&b, &opts);
	for (uint32_t i = 0; i < COUNT(id); i++)
		id[i] = i * 7 + 1;
	for (uint32_t k = 0; k < TURNS; k++) {
		struct batch_item item = { .id = id, .prompt = (k + 1) * NEW_TOKENS, .output = 20,
					   .lora = lora_of_turn ? lora_of_turn[k] : 0 };
		struct batch_sum sum = { 0 };

		batch_run(&b, &item, 1, &how, &sum);
		ttft_us[k] = (double)item.first_ns / 1000;
		known[k] = item.known;
	}
	batch_engine_release(&b);
}

/*
 * The cost of a step is linear here, so TTFT by turn is a straight line without the cache, and with
 * it that of the new tokens and of the block they begin in.
 */
static void test_ttft_by_turn(void **state)
{
	const struct engine_cost cost = sim_defaults().cost;
	double on[TURNS], off[TURNS];
	uint32_t known[TURNS], none[TURNS];
	(void)state;
	turns_run(true, NULL, on, known);
	turns_run(false, NULL, off, none);
	for (uint32_t k = 0; k < TURNS; k++) {
		uint32_t prompt = (k + 1) * NEW_TOKENS, before = k * NEW_TOKENS / 16 * 16;
		double whole = cost.prefill_base_us + prompt * cost.prefill_us_per_token;
		double rest = cost.prefill_base_us + (prompt - before) * cost.prefill_us_per_token;

		assert_int_equal(none[k], 0);
		assert_int_equal(known[k], before);
		assert_true(fabs(off[k] / whole - 1) < 0.05);
		assert_true(fabs(on[k] / rest - 1) < 0.05);
	}
	assert_true(off[TURNS - 1] > 5 * on[TURNS - 1]);
}

/* What one adapter computed is nothing to another one, nor to the model itself. */
static void test_adapters_share_no_prefix(void **state)
{
	uint32_t lora[TURNS] = { 0, 1, 2, 0, 1, 2, 2, 0 }, known[TURNS];
	static const uint32_t latest[TURNS] = { 0, 0, 0, 1, 2, 3, 6, 4 }; /* turns known before */
	double ttft[TURNS];
	(void)state;
	turns_run(true, lora, ttft, known);
	for (uint32_t k = 0; k < TURNS; k++)
		assert_int_equal(known[k], latest[k] * NEW_TOKENS / 16 * 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order_of_priorities),
		cmocka_unit_test(test_who_makes_way),
		cmocka_unit_test(test_adapters_in_a_batch),
		cmocka_unit_test(test_classes_under_overload),
		cmocka_unit_test(test_ttft_by_turn),
		cmocka_unit_test(test_adapters_share_no_prefix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
