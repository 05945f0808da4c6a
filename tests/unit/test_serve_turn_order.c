/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_turn_order.c - the order of a multi-turn benchmark's requests: acceptance cases S1 to
 * S7, S2o, S10 and S11 of the specification. `c:m` is the request of conversation c that carries m
 * messages. The expected orders come from an independent implementation on CPython and NumPy.
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

#include "bench/serve/turn_order.h"
#include "core/base/str.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CONVERSATIONS_MAX 8

/* One client. messages: of each conversation, 0 ends; fails: the request that ends with `how`. */
static const struct order_row {
	const char *name;
	struct turn_order_opts o;
	uint32_t messages[CONVERSATIONS_MAX];
	const char *want, *fails;
	enum turn_end how;
	const char *fates; /* a letter each: Queued, Skipped, Active, Finished, Dropped */
} rows[] = {
	{ "S1", { .active_max = 1 }, { 4, 4, 4, 4 },
	  "0:1 0:3 1:1 1:3 2:1 2:3 3:1 3:3", .fates = "FFFF" },
	{ "S2", { .active_max = 2, .abandons = true }, { 4, 4, 4, 4 },
	  "1:1 0:1 1:3 2:1 0:3 3:1 2:3", .fates = "FFFA" },
	{ "S2o", { .active_max = 2 }, { 4, 4, 4, 4 },
	  "1:1 0:1 1:3 2:1 0:3 3:1 2:3 3:3", .fates = "FFFF" },
	{ "S3", { .active_max = 3, .abandons = true }, { 6, 6, 6, 6 },
	  "2:1 1:1 0:1 2:3 1:3 0:3 2:5 3:1 1:5", .fates = "AFFA" },
	{ "S4", { .active_max = 2, .abandons = true, .sampling = TURN_RANDOM }, { 4, 4, 4, 4 },
	  "0:1 0:3 2:1 1:1 2:3 3:1 3:3", .fates = "FAFF" },
	{ "S5 max-turns 3", { .active_max = 1, .messages_max = 3 }, { 8, 8 },
	  "0:1 0:3 1:1 1:3", .fates = "FF" },
	{ "S5 max-turns 2", { .active_max = 1, .messages_max = 2 }, { 8, 8 }, "0:1 1:1",
	  .fates = "FF" },
	{ "S6", { .active_max = 1, .skips_first = true }, { 2, 4, 6 }, "1:3 2:3 2:5",
	  .fates = "SFF" },
	{ "S7", { .active_max = 2, .requests_max = 3 }, { 4, 4, 4, 4 }, "1:1 0:1 1:3",
	  .fates = "AFQQ" },
	{ "S10", { .active_max = 1 }, { 3 }, "0:1 0:3", .fates = "F" },
	{ "S11", { .active_max = 1 }, { 4, 4, 4, 4 }, "0:1 0:3 1:1 2:1 2:3 3:1 3:3", "1:1",
	  TURN_REFUSED, "FDFF" },
	{ "S11 in upstream's mode", { .active_max = 1, .abandons = true }, { 4, 4, 4, 4 },
	  "0:1 0:3 1:1 2:1 2:3 3:1 3:3", "1:1", TURN_REFUSED, "FDFF" },
	{ "a timeout in upstream's mode ends the client", { .active_max = 1, .abandons = true },
	  { 4, 4, 4, 4 }, "0:1 0:3 1:1", "1:1", TURN_RAISED, "FDQQ" },
	{ "a timeout in ours does not", { .active_max = 1 }, { 4, 4, 4, 4 },
	  "0:1 0:3 1:1 2:1 2:3 3:1 3:3", "1:1", TURN_RAISED, "FDFF" },
	{ "a wrong answer ends the client", { .active_max = 1 }, { 4, 4, 4, 4 }, "0:1 0:3 1:1",
	  "1:1", TURN_WRONG, "FDQQ" },
	{ "a retry", { .active_max = 1, .retries_max = 1 }, { 4, 4 }, "0:1 0:3 1:1 1:1 1:3", "1:1",
	  TURN_RAISED, "FF" },
};

static size_t count_turns(const uint32_t *messages, uint32_t *n_turns)
{
	size_t n = 0;

	for (; n < CONVERSATIONS_MAX && messages[n]; n++)
		n_turns[n] = (messages[n] + 1) / 2;
	return n;
}

static void test_orders(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct order_row *row = &rows[i];
		struct turn_order_opts o = row->o;
		uint32_t n_turns[CONVERSATIONS_MAX];
		size_t n = count_turns(row->messages, n_turns);
		struct turn_order *t;
		struct turn_next next;
		struct buf got = { 0 };
		char fates[CONVERSATIONS_MAX + 1] = "";

		o.clients = 1;
		o.stops_early = true;
		t = turn_order_new(&o, n_turns, n, NULL, 0);
		while (turn_order_next(t, 0, &next)) {
			char one[24];
			bool fails;

			snprintf(one, sizeof(one), "%u:%u", next.conversation, 2 * next.turn + 1);
			fails = row->fails && strcmp(one, row->fails) == 0 && next.attempt == 0;
			buf_printf(&got, "%s%s", got.len ? " " : "", one);
			turn_order_ended(t, 0, fails ? row->how : TURN_ANSWERED);
		}
		for (size_t k = 0; k < n; k++)
			fates[k] = "QSAFD"[turn_order_fate(t, (uint32_t)k)];
		if (strcmp(got.data, row->want) != 0 || strcmp(fates, row->fates) != 0)
			fail_msg("%s: %s %s, not %s %s", row->name, got.data, fates, row->want,
				 row->fates);
		turn_order_free(t);
		buf_release(&got);
	}
}

/* The warm-up's finished conversations are the main run's queue, in the order they finished. */
static void test_queue(void **state)
{
	static const uint32_t n_turns[] = { 2, 2, 2 }, queue[] = { 2, 0 };
	struct turn_order_opts o = { .clients = 1, .active_max = 1, .skips_first = true };
	struct turn_order *t = turn_order_new(&o, n_turns, 3, queue, 2);
	struct turn_next next;
	size_t n;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		assert_true(turn_order_next(t, 0, &next));
		assert_int_equal(next.conversation, queue[i]);
		assert_int_equal(next.turn, 1);
		turn_order_ended(t, 0, TURN_ANSWERED);
	}
	assert_false(turn_order_next(t, 0, &next));
	assert_memory_equal(turn_order_finished(t, &n), queue, sizeof(queue));
	assert_int_equal(n, 2);
	turn_order_free(t);
}

/* Plays all clients in turn, each request answered at once; how many each has sent. */
static void play(struct turn_order *t, uint32_t clients, uint32_t *sent)
{
	uint32_t busy = clients;

	memset(sent, 0, clients * sizeof(*sent));
	while (busy) {
		busy = 0;
		for (uint32_t i = 0; i < clients; i++) {
			struct turn_next next;

			if (!turn_order_next(t, i, &next))
				continue;
			turn_order_ended(t, i, TURN_ANSWERED);
			sent[i]++;
			busy++;
		}
	}
}

/* -n 10 of 3 clients: upstream's 3 each, ours 4 3 3. */
static void test_remainders(void **state)
{
	static const uint32_t n_turns[] = { 4, 4, 4, 4, 4, 4 };
	static const struct { bool abandons; uint32_t sent[3], total; } cases[] = {
		{ true, { 3, 3, 3 }, 9 }, { false, { 4, 3, 3 }, 10 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct turn_order_opts o = { .clients = 3, .active_max = 3, .requests_max = 10,
					     .abandons = cases[i].abandons };
		struct turn_order *t = turn_order_new(&o, n_turns, 6, NULL, 0);
		uint32_t sent[3];

		play(t, 3, sent);
		assert_memory_equal(sent, cases[i].sent, sizeof(sent));
		assert_int_equal(turn_order_sent(t), cases[i].total);
		turn_order_free(t);
	}
	assert_int_equal(turn_order_share(7, 3, 0, false), 3);
	assert_int_equal(turn_order_share(7, 3, 2, false), 2);
	assert_int_equal(turn_order_share(7, 3, 0, true), 2);
}

/* The first client that is done ends all; with --no-early-stop the others go on. */
static void test_early_stop(void **state)
{
	static const uint32_t n_turns[] = { 1, 5, 5 };

	(void)state;
	for (int stops = 0; stops < 2; stops++) {
		struct turn_order_opts o = { .clients = 2, .active_max = 2, .stops_early = stops };
		struct turn_order *t = turn_order_new(&o, n_turns, 2, NULL, 0);
		uint32_t sent[2];

		play(t, 2, sent);
		assert_int_equal(sent[0], 1);
		assert_int_equal(sent[1], stops ? 1 : 5);
		assert_int_equal(turn_order_fate(t, 1), stops ? TURN_ACTIVE : TURN_FINISHED);
		turn_order_free(t);
	}
}

/*
 * numpy.random.seed(1): uniform(-0.1, 0.1) twice, then exponential(0.5):
 * random_sample is 0.417022004702574, 0.7203244934421581, 0.00011437481734488664.
 */
static void test_pauses(void **state)
{
	static const uint32_t n_turns[] = { 1, 1 };
	struct turn_order_opts o = { .clients = 1, .active_max = 1, .retries_max = 2,
				     .request_rate = 2 };
	struct turn_order *t = turn_order_new(&o, n_turns, 2, NULL, 0);
	struct turn_next next;
	const double want[] = { 0, 1 * (0.9 + 0.2 * 0.417022004702574),
				2 * (0.9 + 0.2 * 0.7203244934421581) };

	(void)state;
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(turn_order_next(t, 0, &next));
		assert_int_equal(next.conversation, 0);
		assert_int_equal(next.attempt, i);
		assert_true(fabs(next.pause_s - want[i]) < 1e-12);
		turn_order_ended(t, 0, TURN_REFUSED);
	}
	assert_true(turn_order_next(t, 0, &next));
	assert_int_equal(next.conversation, 1);
	assert_true(fabs(next.pause_s - -0.5 * log(1 - 0.00011437481734488664)) < 1e-12);
	assert_int_equal(turn_order_fate(t, 0), TURN_DROPPED);
	turn_order_free(t);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_orders),
		cmocka_unit_test(test_queue),
		cmocka_unit_test(test_remainders),
		cmocka_unit_test(test_early_stop),
		cmocka_unit_test(test_pauses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
