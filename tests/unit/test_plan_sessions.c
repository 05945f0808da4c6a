/* SPDX-License-Identifier: Apache-2.0 */
/* From arrivals to the turns of conversations: order, waits, joins, users. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "client/plan/plan.h"
#include "core/base/limits.h"

/* A chain of two; a graph of two roots, a branch and a join of three that continues turn 3. */
static uint32_t waits[] = { 0, 2, 4, 2, 3, 4 };
static struct turn turn[] = {
	{ .session = 0, .history = TURN_NONE },
	{ .session = 0, .history = 0, .wait = 0, .n_waits = 1, .number = 1, .gap_s = 0.5 },
	{ .session = 1, .history = TURN_NONE }, { .session = 1, .history = TURN_NONE },
	{ .session = 1, .history = 2, .wait = 1, .n_waits = 1, .number = 1,
	  .is_gap_from_start = true },
	{ .session = 1, .history = 4, .wait = 3, .n_waits = 3, .number = 2, .gap_s = 2 },
};
static struct session session[] = { { { "a", 1 }, 0, 2 }, { { "b", 1 }, 2, 4 } };
static const struct sessions all = { turn, waits, session, 6, 6, 2 };

static void arrive(struct plan *p, uint32_t n, double rate)
{
	struct plan_opts o = { .request_rate = rate, .burstiness = INFINITY };
	struct compat_rng rng;
	struct err e = { 0 };

	compat_rng_seed(&rng, 0);
	assert_int_equal(plan_arrivals(p, n, &o, &rng, &e), 0);
}

/* A turn that a trace schedules counts from when its session arrives, not from its parent. */
static void scheduled_turns_have_times_of_their_own(void **state)
{
	static uint32_t wait[] = { 0 };
	static struct turn scheduled[] = {
		{ .session = 0, .history = TURN_NONE },
		{ .session = 0, .history = TURN_NONE, .n_waits = 1, .number = 1, .gap_s = 3,
		  .is_gap_from_arrival = true },
	};
	static struct session one[] = { { { "a", 1 }, 0, 2 } };
	const struct sessions s = { scheduled, wait, one, 2, 1, 1 };
	struct plan p;
	struct err e = { 0 };

	(void)state;
	arrive(&p, 2, 2); /* at 0.5 s and 1 s */
	assert_int_equal(plan_sessions(&p, &s, &e), 0);
	assert_int_equal(p.n, 4);
	for (size_t i = 0; i < 2; i++) {
		assert_true(p.entry[2 + i].due_s == p.entry[i].due_s + 3);
		assert_true(p.entry[2 + i].flags & PLAN_FROM_PHASE);
		assert_int_equal(p.entry[2 + i].after, i);
		assert_int_equal(p.entry[2 + i].history, PLAN_NONE);
	}
	plan_release(&p);
}

static void turns_follow_their_sessions(void **state)
{
	/* after, history, session, sample, turn */
	static const uint32_t expected[][5] = {
		{ PLAN_NONE, PLAN_NONE, 0, 0, 0 }, { PLAN_NONE, PLAN_NONE, 1, 2, 0 },
		{ PLAN_NONE, PLAN_NONE, 1, 3, 0 }, { PLAN_NONE, PLAN_NONE, 2, 0, 0 },
		{ 0, 0, 0, 1, 1 }, { 1, 1, 1, 4, 1 }, { 5, 5, 1, 5, 2 }, { 3, 3, 2, 1, 1 },
	};
	struct plan p;
	struct err e = { 0 };

	(void)state;
	arrive(&p, 3, 2);
	p.entry[1].lora = 7;
	p.entry[1].endpoint = 3;
	assert_int_equal(plan_sessions(&p, &all, &e), 0);
	assert_int_equal(p.n, 8);
	assert_int_equal(p.n_roots, 4);
	for (uint32_t i = 0; i < p.n; i++) {
		const struct plan_entry *it = &p.entry[i];

		assert_int_equal(it->after, expected[i][0]);
		assert_int_equal(it->history, expected[i][1]);
		assert_int_equal(it->session, expected[i][2]);
		assert_int_equal(it->sample, expected[i][3]);
		assert_int_equal(it->turn, expected[i][4]);
		assert_int_equal(it->lora, it->session == 1 ? 7 : PLAN_NO_LORA);
		assert_int_equal(it->endpoint, it->session == 1 ? 3 : 0);
		assert_true(i == 0 || i >= p.n_roots || it->due_s >= p.entry[i - 1].due_s);
	}
	assert_true(p.entry[1].due_s == p.entry[2].due_s && p.entry[4].due_s == 0.5);
	assert_true(p.entry[5].flags & PLAN_FROM_START && !(p.entry[6].flags & PLAN_FROM_START));
	/* The join waits for the one it continues first, and for the two others. */
	assert_int_equal(p.n_joins, 2);
	assert_int_equal(p.join[0].entry, 6);
	assert_int_equal(p.join[0].waits_for, 1);
	assert_int_equal(p.join[1].entry, 6);
	assert_int_equal(p.join[1].waits_for, 2);
	plan_release(&p);
}

/* U1: 2 requests/s by four users; a conversation takes as many gaps as it has turns. */
static void users_take_turns(void **state)
{
	static const double start[] = { 0, 0.5, 1, 1.5, 4 };
	struct plan p;
	struct err e = { 0 };

	(void)state;
	/* Slot 0 has the chain of two: free after 2 x 2 s. Slot 1 the graph of three: at 6.5 s. */
	assert_int_equal(plan_users(&p, &all, 6, 4, 2, &e), 0);
	for (uint32_t i = 0; i < 5; i++)
		assert_true(p.entry[i].due_s == start[i]);
	assert_true(p.entry[5].due_s == 5); /* slot 2, the chain: 1 + 4 */
	assert_int_equal(plan_sessions(&p, &all, &e), 0);
	plan_user_gaps(&p, 4, 2);
	for (uint32_t i = p.n_roots; i < p.n; i++)
		assert_true(p.entry[i].due_s == 2 && p.entry[i].flags & PLAN_FROM_START);
	plan_release(&p);
}

static void too_slow_users_are_refused(void **state)
{
	struct plan p;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(plan_users(&p, &all, 2, 1000, 1e-6, &e), -1);
	assert_int_equal(e.code, ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns_follow_their_sessions),
		cmocka_unit_test(scheduled_turns_have_times_of_their_own),
		cmocka_unit_test(users_take_turns),
		cmocka_unit_test(too_slow_users_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
