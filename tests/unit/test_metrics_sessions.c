/* SPDX-License-Identifier: Apache-2.0 */
/* Conversations as a record has them: their outcomes, durations, turns and what was cached. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/metrics/metrics.h"

#define S 1000000000ll
#define NEAR(a, b) assert_true((a) - (b) < 1e-9 && (b) - (a) < 1e-9)

static struct record r;

static void begin(void)
{
	struct err e = { 0 };

	assert_int_equal(record_init(&r, 32, 1, 100, false, false, &e), 0);
	r.start_ns = 100 * S;
	r.stop_ns = 120 * S;
}

/* Turn of a session, sent and ended at seconds of the run; 0 0: never sent. */
static struct request_row *add(uint32_t session, uint16_t turn, uint32_t history, double from_s,
			       double to_s, enum request_state state)
{
	struct request_row *row = &r.row[record_add_rows(&r, 1)];

	row->session = session;
	row->turn = turn;
	row->parent = row->history = history;
	row->state = (uint8_t)state;
	if (to_s == 0)
		return row;
	row->due_ns = row->admitted_ns = row->sent_ns = r.start_ns + (int64_t)(from_s * S);
	row->end_ns = r.start_ns + (int64_t)(to_s * S);
	row->first_event_ns = row->sent_ns + S / 10;
	row->last_event_ns = row->end_ns;
	row->output_tokens = 10;
	row->flags = ROW_HAS_USAGE;
	return row;
}

static struct metrics_opts opts(void)
{
	static const double percentile[] = { 50 };

	return (struct metrics_opts){
		.percentile = percentile, .n_percentiles = 1, .has_tokenizer = true,
		.selected = BLOCK_BIT(BLOCK_TTFT) | BLOCK_BIT(BLOCK_E2EL),
	};
}

/* One of each: complete (with two turns at once), failed, cut off, never begun. */
static void fill(void)
{
	struct request_row *row;

	begin();
	row = add(0, 0, RECORD_NONE, 1, 2, REQ_DONE);
	row->prompt_tokens = 100;
	row->flags |= ROW_HAS_CACHED;
	row = add(0, 1, 0, 5, 7, REQ_DONE);
	row->prompt_tokens = 150;
	row->cached_tokens = 96;
	row->flags |= ROW_HAS_CACHED;
	row = add(0, 1, 0, 6, 8, REQ_DONE);
	row->prompt_tokens = 200;
	add(1, 0, RECORD_NONE, 2, 3, REQ_DONE)->prompt_tokens = 10;
	add(1, 1, 3, 4, 5, REQ_FAILED);
	add(1, 2, 4, 0, 0, REQ_CANCELLED)->flags = ROW_DROPPED;
	add(2, 0, RECORD_NONE, 3, 4, REQ_DONE)->prompt_tokens = 20;
	add(2, 1, 6, 0, 0, REQ_CANCELLED);
	add(3, 0, RECORD_NONE, 0, 0, REQ_CANCELLED);
}

/* Numbers of sessions that are far apart, as in a damaged file, take no more memory. */
static void numbers_may_be_far_apart(void **state)
{
	struct metrics_opts o = opts();
	struct metrics m;

	(void)state;
	begin();
	add(RECORD_NONE - 1, 0, RECORD_NONE, 1, 2, REQ_DONE);
	add(7, 0, RECORD_NONE, 1, 3, REQ_DONE);
	add(RECORD_NONE - 1, 1, 0, 3, 4, REQ_DONE);
	add(RECORD_NONE, 0, RECORD_NONE, 1, 2, REQ_DONE);
	metrics_score(&m, &r, &o);
	assert_int_equal(m.sessions.completed, 2);
	assert_int_equal(m.sessions.failed + m.sessions.unfinished, 0);
	NEAR(m.sessions.turns_per_session.mean, 1.5);
	metrics_release(&m);
	record_release(&r);
}

static void sessions_have_outcomes(void **state)
{
	struct metrics_opts o = opts();
	struct metrics m;
	const struct metrics_sessions *s = &m.sessions;

	(void)state;
	fill();
	metrics_score(&m, &r, &o);
	assert_int_equal(s->n, 3);
	assert_int_equal(s->completed, 1);
	assert_int_equal(s->failed, 1);
	assert_int_equal(s->unfinished, 1);
	assert_int_equal(s->turns, 8);
	assert_int_equal(s->turns_completed, 5);
	assert_int_equal(s->turns_failed, 1);
	assert_int_equal(s->turns_dropped, 1);
	assert_int_equal(s->turns_unsent, 1);
	NEAR(s->duration.mean, 7);
	NEAR(s->serving.mean, 4); /* 1..2 and 5..8: what overlaps counts once */
	NEAR(s->gap.mean, 3);
	NEAR(s->throughput, 1 / 20.0);
	assert_int_equal(s->later_ttft.n, 2); /* of successes, no first turns */
	NEAR(s->later_ttft.p50_ms, 100);
	metrics_release(&m);
	record_release(&r);
}

/* 20 ms and 3 ms more for each 1,000 tokens of a history; all of one length have no slope. */
static void ttft_grows_with_context(void **state)
{
	struct metrics_opts o = opts();
	struct metrics m;

	(void)state;
	for (int k = 0; k < 2; k++) {
		begin();
		for (uint16_t t = 0; t < 5; t++) {
			struct request_row *row = add(0, t, t ? t - 1u : RECORD_NONE, t + 1,
						      t + 1.5, REQ_DONE);

			row->prompt_tokens = k ? 100u : 100u + 2000u * t;
			row->first_event_ns = row->sent_ns + 20000000 + row->prompt_tokens * 3000ll;
			if (t == 0) /* nothing of it is cached */
				row->first_event_ns += 100000000;
		}
		add(0, 5, 4, 7, 8, REQ_FAILED)->prompt_tokens = 9;
		metrics_score(&m, &r, &o);
		if (k)
			assert_true(isnan(m.sessions.context_slope_ms));
		else
			NEAR(m.sessions.context_slope_ms, 3);
		if (!k)
			assert_true(m.sessions.context_slope_error_ms < 1e-3);
		metrics_release(&m);
		record_release(&r);
	}
}

/* Cached shares weigh tokens, and leave out turns of which the server says nothing. */
static void cached_tokens_are_weighted(void **state)
{
	struct metrics_opts o = opts();
	struct metrics m;
	const struct metrics_sessions *s = &m.sessions;

	(void)state;
	fill();
	metrics_score(&m, &r, &o);
	assert_true(s->is_cache_known);
	NEAR(s->cached_share, 96 / 250.0);
	assert_int_equal(s->cached_by_session.n, 1);
	/* 110 tokens before the second turn are six blocks of 16, of which all were cached. */
	NEAR(s->reuse_efficiency, 1);
	NEAR(s->reusable_share, (96 + 96) / (100.0 + 150 + 200 + 10 + 20));
	assert_int_equal(s->growth.n, 2);
	NEAR(s->growth.mean, 75);
	assert_int_equal(s->n_turns, 3);
	NEAR(s->by_turn[1].cached_share, 96 / 150.0);
	assert_false(s->by_turn[2].is_cache_known);
	metrics_release(&m);
	record_release(&r);
}

static void turns_are_summed_apart(void **state)
{
	struct metrics_opts o = opts();
	const struct metrics_turn *t;
	struct metrics m;

	(void)state;
	fill();
	metrics_score(&m, &r, &o);
	t = m.sessions.by_turn;
	assert_int_equal(t[0].n, 4); /* also the one of a session that never began */
	assert_int_equal(t[0].completed, 3);
	assert_int_equal(t[1].n, 4);
	assert_int_equal(t[1].completed, 2);
	assert_int_equal(t[1].failed, 1);
	assert_int_equal(t[2].completed, 0);
	assert_int_equal(t[0].total_input, 130);
	NEAR(t[0].duration_s, 3);
	NEAR(t[0].request_throughput, 1);
	NEAR(t[1].block[BLOCK_E2EL].mean_ms, 2000);
	NEAR(t[1].block[BLOCK_TTFT].percentile_ms[0], 100);
	NEAR(t[1].context.mean, 175);
	metrics_release(&m);
	record_release(&r);
}

/* First turns have no history, so they are apart from all others. */
static void first_turns_are_apart(void **state)
{
	struct metrics_opts o = opts();
	struct metrics m;

	(void)state;
	fill();
	r.row[1].first_event_ns = r.row[1].sent_ns + S / 5;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.sessions.first_ttft.n, 3);
	NEAR(m.sessions.first_ttft.mean_ms, 100);
	NEAR(m.sessions.first_ttft.max_ms, 100);
	assert_int_equal(m.sessions.later_ttft.n, 2);
	NEAR(m.sessions.later_ttft.mean_ms, 150);
	NEAR(m.sessions.later_ttft.max_ms, 200);
	metrics_release(&m);
	record_release(&r);
}

/* One conversation of 30 turns whose TTFT grows by 2 ms a turn, after a first one that is slow. */
static void many_turns_are_ranges(void **state)
{
	struct metrics_opts o = opts();
	const struct metrics_sessions *s;
	struct metrics m;

	(void)state;
	begin();
	for (uint16_t k = 0; k < 30; k++) {
		struct request_row *row = add(0, k, k ? k - 1u : RECORD_NONE, k, k + 0.9, REQ_DONE);

		row->first_event_ns = row->sent_ns + (k ? 100 + 2 * k : 800) * (S / 1000);
		row->prompt_tokens = 100u + 10u * k;
		row->cached_tokens = k ? row->prompt_tokens / 2 : 0;
		row->flags |= ROW_HAS_CACHED;
	}
	metrics_score(&m, &r, &o);
	s = &m.sessions;
	assert_int_equal(s->n_turns, 30);
	assert_int_equal(s->n_ranges, 11);
	assert_int_equal(s->by_range[0].last_turn, 0);
	assert_int_equal(s->by_range[1].turn, 1);
	assert_int_equal(s->by_range[1].last_turn, 3);
	assert_int_equal(s->by_range[1].completed, 3);
	NEAR(s->by_range[1].block[BLOCK_TTFT].median_ms, 104);
	NEAR(s->by_range[1].cached.mean, 60);
	assert_int_equal(s->by_range[10].turn, 28);
	assert_int_equal(s->by_range[10].last_turn, 29);
	assert_true(s->knows_growth);
	NEAR(s->ttft_growth_per_turn_ms, 2);
	assert_true(s->ttft_growth_error_ms < 1e-3);
	assert_true(s->is_later_cache_known);
	NEAR(s->later_cached_share, 0.5);
	metrics_release(&m);
	record_release(&r);
}

static double uniform(uint64_t *state)
{
	*state = *state * 6364136223846793005u + 1442695040888963407u;
	return ((double)(*state >> 11) + 0.5) / 9007199254740992.0;
}

/*
 * How many of 1,000 runs name a trend: conversations of three or four turns whose TTFT is
 * exponential, 100 ms on average and so much more for each turn.
 */
static int named_trends(uint16_t turns, uint32_t conversations, double growth)
{
	struct metrics_opts o = opts();
	uint64_t state = turns + conversations;
	struct metrics m;
	int named = 0;

	for (int trial = 0; trial < 1000; trial++) {
		begin();
		for (uint32_t k = 0; k < turns * conversations; k++) {
			uint16_t t = (uint16_t)(k % turns);
			struct request_row *row = add(k / turns, t, t ? k - 1 : RECORD_NONE, 1, 19,
						      REQ_DONE);

			row->first_event_ns = row->sent_ns +
				(int64_t)((growth * t - log(uniform(&state)) * 100) * S / 1000);
			row->prompt_tokens = 100u * t;
		}
		metrics_score(&m, &r, &o);
		assert_true(m.sessions.knows_growth);
		assert_int_equal(isnan(m.sessions.ttft_growth_error_ms), turns * conversations < 4);
		named += m.sessions.is_growth_clear;
		metrics_release(&m);
		record_release(&r);
	}
	return named;
}

/* Where there is no trend, one run in twenty may name one; a large one is found. */
static void trends_are_named_when_there_are_some(void **state)
{
	(void)state;
	assert_int_equal(named_trends(3, 1, 0), 0); /* two requests tell nothing */
	assert_in_range(named_trends(3, 8, 0), 0, 60);
	assert_in_range(named_trends(4, 6, 0), 0, 60);
	assert_in_range(named_trends(12, 2, 0), 0, 60);
	assert_in_range(named_trends(3, 10, 400), 900, 1000);
	assert_in_range(named_trends(12, 2, 100), 900, 1000);
}

/* A session is good when every turn is, and when it was short enough. */
static void goodput_is_of_whole_sessions(void **state)
{
	static const struct { double e2el_ms, session_ms, expected; } row[] = {
		{ 2500, 0, 0.05 }, { 1500, 0, 0 }, { 2500, 7500, 0.05 }, { 2500, 6500, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct metrics_opts o = opts();
		struct metrics m;

		fill();
		o.goodput[0] = (struct metrics_goodput){ BLOCK_E2EL, row[i].e2el_ms };
		o.n_goodput = 1;
		o.session_limit_ms = row[i].session_ms;
		metrics_score(&m, &r, &o);
		NEAR(m.sessions.goodput, row[i].expected);
		metrics_release(&m);
		record_release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sessions_have_outcomes),
		cmocka_unit_test(numbers_may_be_far_apart),
		cmocka_unit_test(ttft_grows_with_context),
		cmocka_unit_test(cached_tokens_are_weighted),
		cmocka_unit_test(turns_are_summed_apart),
		cmocka_unit_test(first_turns_are_apart),
		cmocka_unit_test(many_turns_are_ranges),
		cmocka_unit_test(trends_are_named_when_there_are_some),
		cmocka_unit_test(goodput_is_of_whole_sessions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
