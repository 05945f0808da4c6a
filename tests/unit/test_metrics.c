/* SPDX-License-Identifier: Apache-2.0 */
/* Scores against NumPy's bits, and every rule of the client's own numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>
#include <math.h>

#include "client/metrics/metrics.h"
#include "metrics_golden.h"
#include "record_sample.h"

#define ALL_BLOCKS ((1u << BLOCK_COUNT) - 1)
#define MS 1000000ll

static const double p99[] = { 99 };

static struct metrics_opts usual(void)
{
	return (struct metrics_opts){ .percentile = p99, .n_percentiles = 1, .selected = ALL_BLOCKS,
				      .has_tokenizer = true, .is_rate_finite = true };
}

static void test_golden(void **state)
{
	(void)state;
	for (uint32_t k = 0; k < sizeof(golden) / sizeof(*golden); k++) {
		struct metrics_opts o = { .percentile = golden_percentiles,
			.n_percentiles = GOLDEN_VALUES - 3, .selected = ALL_BLOCKS,
			.has_tokenizer = true, .is_rate_finite = true, .max_concurrency = 64,
			.goodput = { { BLOCK_TTFT, 45 }, { BLOCK_TPOT, 10.5 },
				     { BLOCK_E2EL, 400 } },
			.n_goodput = 3 };
		struct record r = { 0 };
		struct metrics m;

		assert_int_equal(sample_record(&r, golden[k].n, 1 + k % 3), 0);
		metrics_score(&m, &r, &o);
		assert_int_equal(m.n, golden[k].n);
		assert_int_equal(m.completed, golden[k].completed);
		assert_int_equal(m.failed, golden[k].failed);
		assert_int_equal(m.cancelled, 0);
		assert_true(m.total_input == golden[k].total_input);
		assert_true(m.total_output == golden[k].total_output);
		assert_true(m.duration_s == golden[k].duration);
		assert_true(m.request_throughput == golden[k].request_throughput);
		assert_true(m.request_goodput == golden[k].goodput);
		assert_true(m.output_throughput == golden[k].output_throughput);
		assert_true(m.total_token_throughput == golden[k].total_throughput);
		assert_true(m.max_output_tokens_per_s == golden[k].peak_tokens);
		assert_int_equal(m.max_concurrent_requests, golden[k].peak_concurrency);
		for (int b = 0; b < BLOCK_COUNT; b++) {
			assert_true(m.block[b].is_reported);
			assert_true(m.block[b].mean_ms == golden[k].block[b][0]);
			assert_true(m.block[b].median_ms == golden[k].block[b][1]);
			assert_true(m.block[b].std_ms == golden[k].block[b][2]);
			for (size_t i = 0; i < o.n_percentiles; i++)
				assert_true(m.block[b].percentile_ms[i] ==
					    golden[k].block[b][3 + i]);
		}
		metrics_release(&m);
		o.is_peak_exact = true;
		metrics_score(&m, &r, &o);
		assert_int_equal(m.max_concurrent_requests, golden[k].peak_exact);
		metrics_release(&m);
		record_release(&r);
	}
}

/* ---- small records by hand ---- */

#define T0 SAMPLE_START_NS

/* n finished requests due at T0 + 100 ms * i, sent 1 ms later, events at +10 ms and +20 ms. */
static void simple(struct record *r, uint32_t n)
{
	struct err e;

	assert_int_equal(record_init(r, n, 1, 0, true, true, &e), 0);
	record_add_rows(r, n);
	r->start_ns = T0;
	r->stop_ns = T0 + 2000 * MS;
	for (uint32_t i = 0; i < n; i++) {
		struct request_row *row = &r->row[i];

		row->due_s = 0.1 * i;
		row->due_ns = row->admitted_ns = T0 + 100 * MS * i;
		row->sent_ns = row->due_ns + MS;
		row->prompt_tokens = 100;
		row->output_tokens = 2;
		row->flags = ROW_HAS_USAGE;
		row->attempts = 1;
		row->status = 200;
		sample_event(r, row, 10 * MS, 1000);
		sample_event(r, row, 10 * MS, 3000);
		row->first_answer_ns = row->first_event_ns;
		row->end_ns = row->last_event_ns;
		row->state = REQ_DONE;
	}
}

static void test_arrays(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 4);
	r.row[1].state = REQ_FAILED; /* keeps TTFT and gaps, has no latency and no tokens */
	r.row[2].state = REQ_CANCELLED;
	r.row[3].phase = PHASE_WARMUP;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.n, 3);
	assert_int_equal(m.completed, 1);
	assert_int_equal(m.failed, 1);
	assert_int_equal(m.cancelled, 1);
	assert_true(m.ttft[1] == 0.01 && m.latency[1] == 0 && m.output_len[1] == 0);
	assert_true(m.input_len[1] == 100);
	assert_true(m.itl_at[2] - m.itl_at[1] == 1 && m.itl[m.itl_at[1]] == 0.01);
	assert_true(m.latency[0] == 0.02 && m.output_len[0] == 2);
	assert_true(m.start_time[0] == 1700000000.001);
	assert_true(m.queue_time[0] == 0.001);
	assert_int_equal(m.total_input, 100);
	assert_int_equal(m.block[BLOCK_ITL].n, 1);
	metrics_release(&m);
	record_release(&r);
}

static void test_output_lengths(void **state)
{
	static const struct { uint32_t tokens; unsigned flags; int64_t want; } cases[] = {
		{ 7, ROW_HAS_USAGE, 7 },
		{ 0, ROW_HAS_USAGE, 1 },          /* no count, neither reported nor made */
		{ 0, ROW_COUNT_UNKNOWN, 1 },
		{ 0, ROW_COUNTED, 0 },            /* counted: the text was empty */
		{ 5, ROW_COUNTED, 5 },
	};
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 5);
	for (int i = 0; i < 5; i++) {
		r.row[i].output_tokens = cases[i].tokens;
		r.row[i].flags = (uint16_t)cases[i].flags;
	}
	metrics_score(&m, &r, &o);
	for (int i = 0; i < 5; i++)
		assert_true(m.output_len[i] == cases[i].want);
	assert_int_equal(m.block[BLOCK_TPOT].n, 2);
	assert_int_equal(m.client.n_counted, 2);
	assert_int_equal(m.client.n_count_unknown, 2);
	metrics_release(&m);
	record_release(&r);
}

static void test_selection(void **state)
{
	static const struct {
		unsigned selected;
		bool is_pooling, has_tokenizer, is_rate_finite;
		int64_t cap;
		unsigned want;
	} cases[] = {
		{ ALL_BLOCKS, false, true, true, 8, ALL_BLOCKS },
		{ ALL_BLOCKS, false, true, false, 8, ALL_BLOCKS - 32 },
		{ ALL_BLOCKS, false, true, true, 0, 15 },
		{ ALL_BLOCKS, false, false, true, 8, 8 + 16 + 32 },
		{ ALL_BLOCKS, true, true, true, 0, 8 },
		{ 3, false, true, true, 8, 3 },
		{ 0, false, true, true, 8, 0 },
	};
	struct record r = { 0 };

	(void)state;
	simple(&r, 1);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct metrics_opts o = { .percentile = p99, .n_percentiles = 1,
			.selected = cases[i].selected, .is_pooling = cases[i].is_pooling,
			.has_tokenizer = cases[i].has_tokenizer,
			.is_rate_finite = cases[i].is_rate_finite,
			.max_concurrency = cases[i].cap };
		struct metrics m;
		unsigned got = 0;

		metrics_score(&m, &r, &o);
		for (int b = 0; b < BLOCK_COUNT; b++)
			got |= m.block[b].is_reported ? BLOCK_BIT(b) : 0;
		assert_int_equal(got, cases[i].want);
		metrics_release(&m);
	}
	record_release(&r);
}

static void test_pooling(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 3);
	o.is_pooling = true;
	for (int i = 0; i < 3; i++) {
		r.row[i].flags |= ROW_IS_POOLING;
		r.row[i].last_event_ns = r.row[i].sent_ns + 30 * MS;
		r.row[i].sequences = 4;
	}
	r.row[1].state = r.row[2].state = REQ_FAILED;
	r.row[2].last_event_ns = 0; /* no whole body came */
	metrics_score(&m, &r, &o);
	assert_true(m.latency[0] == 0.03 && m.latency[1] == 0.03 && m.latency[2] == 0);
	assert_true(m.input_len[1] == 0 && m.output_len[0] == 0);
	assert_int_equal(m.total_sequences, 4);
	assert_true(m.sequence_throughput == 2);
	assert_int_equal(m.max_concurrent_requests, 0);
	assert_int_equal(m.client.n_usage, 0);
	metrics_release(&m);
	record_release(&r);
}

static void test_nothing(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;
	struct err e;

	(void)state;
	assert_int_equal(record_init(&r, 0, 1, 0, false, false, &e), 0);
	metrics_score(&m, &r, &o);
	assert_true(m.request_throughput == 0 && m.block[BLOCK_ITL].percentile_ms[0] == 0);
	assert_int_equal(m.client.lag.n, 0);
	metrics_release(&m);
	record_release(&r);
	simple(&r, 2);
	r.row[0].state = r.row[1].state = REQ_FAILED;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.failed, 2);
	assert_true(m.max_output_tokens_per_s == 0);
	metrics_release(&m);
	metrics_release(NULL);
	record_release(&r);
}

static void test_audio_and_peaks(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 3);
	r.row[0].audio_s = 3;
	r.row[1].audio_s = 1;
	r.row[0].output_tokens = 20;
	metrics_score(&m, &r, &o);
	assert_true(m.rtfx == 2);
	assert_true(m.max_output_tokens_per_s == 6);
	assert_int_equal(m.max_concurrent_requests, 3);
	metrics_release(&m);
	o.is_peak_in_tokens = o.is_peak_exact = true;
	metrics_score(&m, &r, &o);
	assert_true(m.max_output_tokens_per_s == 24);
	assert_int_equal(m.max_concurrent_requests, 1);
	metrics_release(&m);
	/* A clock that ran away must not make us reserve a bucket for every second since. */
	r.row[2].sent_ns += 200ll * 86400 * 1000000000;
	r.row[2].last_event_ns = r.row[2].first_event_ns = r.row[2].sent_ns;
	metrics_score(&m, &r, &o);
	assert_true(m.max_output_tokens_per_s == 0);
	metrics_release(&m);
	record_release(&r);
}

/* ---- the client's own numbers ---- */

static void test_lag(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 4);
	r.row[3].connect_ns = r.row[3].sent_ns - 900000;
	r.row[3].connected_ns = r.row[3].sent_ns - 400000;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.lag.n, 4);
	assert_true(fabs(m.client.lag.p50_ms - 1) < 1e-9 && fabs(m.client.lag.max_ms - 1) < 1e-9);
	assert_true(fabs(m.client.send_lag.max_ms - 1) < 1e-9);
	/* Connecting is not our delay. */
	assert_true(fabs(m.client.send_lag.mean_ms - 0.875) < 1e-9);
	assert_int_equal(m.client.n_new_connections, 1);
	assert_true(fabs(m.client.connect.max_ms - 0.5) < 1e-9);
	assert_true(fabs(m.client.mean_interarrival_s - 0.1) < 1e-12);
	assert_true(fabs(m.client.from_due.max_ms - 21) < 1e-9);
	assert_true(fabs(m.client.ttft_answer.max_ms - 10) < 1e-9);
	assert_true(fabs(m.client.ttft_connect.max_ms - 10.9) < 1e-9);
	metrics_release(&m);
	record_release(&r);
}

/* A request that leaves before it is due is a mistake of ours; clocks may differ a little. */
static void test_sent_early(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 6);
	r.row[0].due_ns = r.row[0].sent_ns;
	r.row[1].due_ns = r.row[1].sent_ns + METRICS_EARLY_NS;
	r.row[2].due_ns = r.row[2].sent_ns + METRICS_EARLY_NS + 1;
	r.row[3].due_ns = INT64_MAX; /* a due time that overflowed */
	r.row[4].due_ns = r.row[4].sent_ns + 1000 * METRICS_EARLY_NS;
	r.row[4].sent_ns = 0; /* never sent */
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.n_sent_early, 2);
	metrics_release(&m);
	record_release(&r);
}

/* Two slots, four requests due at once: the later two wait for a slot, which is not lag. */
static void test_send_lag_under_cap(void **state)
{
	static const int64_t end_ms[] = { 50, 80, 110, 140 }, sent_us[] = { 10, 20, 50030, 80040 };
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 4);
	for (int i = 0; i < 4; i++) {
		r.row[i].due_ns = T0;
		r.row[i].admitted_ns = r.row[i].sent_ns = T0 + sent_us[i] * 1000;
		r.row[i].end_ns = r.row[i].last_event_ns = r.row[i].user_last_event_ns =
			T0 + end_ms[i] * MS;
	}
	o.max_concurrency = 2;
	metrics_score(&m, &r, &o);
	assert_true(fabs(m.client.send_lag.max_ms - 0.04) < 1e-9);
	assert_true(fabs(m.client.send_lag.mean_ms - 0.025) < 1e-9);
	assert_true(fabs(m.client.lag.max_ms - 80.04) < 1e-9);
	metrics_release(&m);
	/* The same of two places for conversations, whose later turns need none. */
	for (uint32_t i = 0; i < 4; i++)
		r.row[i].session = 1000 - i;
	o.max_concurrency = 0;
	o.max_sessions = 2;
	metrics_score(&m, &r, &o);
	assert_true(fabs(m.client.send_lag.max_ms - 0.04) < 1e-9);
	assert_int_equal(m.client.held.n, 4);
	assert_true(fabs(m.client.held.share - 0.5) < 1e-9);
	metrics_release(&m);
	r.row[2].session = r.row[0].session; /* a second turn, 50.03 ms late */
	metrics_score(&m, &r, &o);
	assert_true(fabs(m.client.send_lag.max_ms - 50.03) < 1e-9);
	metrics_release(&m);
	o.max_concurrency = 2;
	o.max_sessions = 0;
	/* The client read the first answer's last event 5 ms late: the slot was free that long. */
	r.row[0].last_event_ns = T0 + 45 * MS;
	r.row[0].user_last_event_ns = T0 + 50 * MS;
	metrics_score(&m, &r, &o);
	assert_true(fabs(m.client.send_lag.max_ms - 5.03) < 1e-9);
	metrics_release(&m);
	o.n_hosts = 2; /* slots of several hosts: counted from admission */
	metrics_score(&m, &r, &o);
	assert_true(m.client.send_lag.max_ms == 0);
	metrics_release(&m);
	record_release(&r);
}

static void test_skew(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 2);
	metrics_score(&m, &r, &o); /* from the lane of every event */
	assert_int_equal(m.client.skew.n, 4);
	assert_true(fabs(m.client.skew.max_ms - 0.003) < 1e-12);
	metrics_release(&m);
	r.row[0].skew_head = r.row[1].skew_head = 0; /* from first and last */
	r.row[1].user_last_event_ns = r.row[1].last_event_ns + 9000;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.skew.n, 4);
	assert_true(fabs(m.client.skew.max_ms - 0.009) < 1e-12);
	metrics_release(&m);
	r.row[1].flags |= ROW_USER_STAMPS; /* nothing to compare with */
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.skew.n, 2);
	assert_int_equal(m.client.n_user_stamped, 1);
	metrics_release(&m);
	o.is_user_stamps = true; /* the stamps are the user's: the lane alone could tell */
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.skew.n, 0);
	metrics_release(&m);
	record_release(&r);
}

/* kinds: a letter per event; T text, E empty, lower case: in one read with the one before. */
static void events(struct record *r, struct request_row *row, const char *kinds)
{
	row->n_events = 0;
	row->gap_head = row->gap_tail = row->skew_head = row->skew_tail = 0;
	row->mark_head = row->mark_tail = 0;
	for (; *kinds; kinds++) {
		if (*kinds == 't' || *kinds == 'e')
			record_mark(&r->shard[0], row, MARK_SHARED, 1);
		if (*kinds == 'E' || *kinds == 'e')
			record_mark(&r->shard[0], row, MARK_EMPTY, 1);
		if (*kinds == '3')
			record_mark(&r->shard[0], row, MARK_TOKENS, 3);
		record_event(&r->shard[0], row, MS, 0);
	}
}

static void test_events(void **state)
{
	static const struct {
		const char *kinds;
		uint32_t usage;
		uint64_t with_text, shared, not_one;
		uint32_t differs;
	} cases[] = {
		{ "TTTT", 4, 4, 0, 0, 0 },
		{ "ETTTE", 4, 3, 0, 2, 0 },    /* one of the empty ones was a token */
		{ "ETTTE", 6, 3, 0, 2, 1 },
		{ "TTTT", 3, 4, 0, 0, 1 },
		{ "TTTT", 8, 4, 0, 0, 1 },     /* several tokens to an event, unmarked */
		{ "T3T", 5, 3, 0, 1, 0 },
		{ "EtTTe", 3, 3, 0, 2, 0 },    /* sharing with an empty event distorts no gap */
		{ "TtTt", 4, 4, 2, 0, 0 },
		{ "TttT", 4, 4, 2, 0, 0 },
		{ "TeTT", 3, 3, 0, 1, 0 },
		{ "TetT", 3, 3, 1, 1, 0 },     /* the read began with text */
		{ "EttT", 4, 3, 1, 1, 0 },
		{ "", 1, 0, 0, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct metrics_opts o = usual();
		struct record r = { 0 };
		struct metrics m;

		simple(&r, 1);
		events(&r, &r.row[0], cases[i].kinds);
		r.row[0].output_tokens = cases[i].usage;
		metrics_score(&m, &r, &o);
		assert_true(m.client.n_events == strlen(cases[i].kinds));
		assert_true(m.client.n_events_with_text == cases[i].with_text);
		assert_true(m.client.n_shared == cases[i].shared);
		assert_true(m.client.n_not_one_token == cases[i].not_one);
		assert_int_equal(m.client.n_usage, 1);
		assert_int_equal(m.client.n_usage_differs, cases[i].differs);
		assert_true(m.client.n_tokens_with_usage == cases[i].usage);
		metrics_release(&m);
		record_release(&r);
	}
}

/* One request of 4 events 10 ms apart, 22 tokens asked, and what is known of its tokens. */
static void test_best_known(void **state)
{
	enum { U = ROW_HAS_USAGE, C = ROW_COUNTED, X = ROW_COUNT_UNKNOWN };
	static const struct {
		const char *kinds;
		uint32_t flags, output, ignored, all_text, asked;
		enum finish_reason finish;
		int64_t best;
		uint32_t usage, is_ignored, unlike, is_short, is_longer, is_shorter, is_good;
	} cases[] = {
		/* usage that counts, and longer or shorter answers by it */
		{ "TTTT", U, 4, 0, 0, 4, FINISH_LENGTH, 4, 1, 0, 0, 0, 0, 0, 1 },
		{ "TTTT", U, 4, 9, 0, 3, FINISH_LENGTH, 4, 1, 0, 0, 0, 1, 0, 1 },
		{ "TTTT", U, 4, 0, 0, 8, FINISH_STOP, 4, 1, 0, 0, 0, 0, 0, 1 },
		{ "TTTT", U, 4, 0, 0, 8, FINISH_LENGTH, 4, 1, 0, 0, 0, 0, 1, 1 },
		/* usage that is ignored: six counted, four stated; the headline is wrong */
		{ "TTTT", C, 6, 4, 6, 4, FINISH_STOP, 4, 1, 1, 1, 0, 0, 0, 1 },
		{ "TTTT", C, 4, 4, 4, 4, FINISH_STOP, 4, 1, 1, 0, 0, 0, 0, 1 },
		{ "TTTT", C, 0, 4, 5, 4, FINISH_STOP, 4, 1, 1, 1, 1, 0, 0, 0 },
		/* none at all: all text, or the events where they are more */
		{ "TTTT", C, 2, 0, 7, 4, FINISH_STOP, 7, 0, 0, 0, 1, 0, 0, 1 },
		{ "TTTT", C, 2, 0, 3, 3, FINISH_STOP, 4, 0, 0, 0, 1, 1, 0, 1 },
		{ "ETTE", C, 2, 0, 2, 8, FINISH_LENGTH, 2, 0, 0, 0, 0, 0, 0, 1 },
		{ "TTTT", C, 0, 0, 0, 8, FINISH_LENGTH, 4, 0, 0, 0, 1, 0, 0, 0 },
		{ "TTTT", X, 1, 0, 0, 8, FINISH_STOP, 4, 0, 0, 0, 0, 0, 0, 0 },
		{ "TEEE", X, 1, 0, 0, 0, FINISH_STOP, 1, 0, 0, 0, 0, 0, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct metrics_opts o = usual();
		struct record r = { 0 };
		const struct metrics_client *c;
		struct metrics m;

		simple(&r, 1);
		events(&r, &r.row[0], cases[i].kinds);
		for (const char *k = cases[i].kinds; *k; k++)
			r.row[0].n_answer += *k == 'T';
		r.row[0].first_event_ns = r.row[0].sent_ns + 10 * MS;
		r.row[0].last_event_ns = r.row[0].sent_ns + 40 * MS;
		r.row[0].flags = (uint16_t)cases[i].flags;
		r.row[0].output_tokens = cases[i].output;
		r.row[0].ignored_output_tokens = cases[i].ignored;
		r.row[0].ignored_prompt_tokens = cases[i].ignored ? 33 : 0;
		r.row[0].all_text_tokens = cases[i].all_text;
		r.row[0].asked_tokens = cases[i].asked;
		r.row[0].finish = (uint8_t)cases[i].finish;
		o.goodput[0] = (struct metrics_goodput){ BLOCK_TPOT, 1000 };
		o.n_goodput = 1;
		metrics_score(&m, &r, &o);
		c = &m.client;
		assert_int_equal(c->best_output, cases[i].best);
		assert_int_equal(c->best_input, cases[i].is_ignored ? 33 : 100);
		assert_int_equal(c->n_usage, cases[i].usage);
		assert_int_equal(c->n_usage_ignored, cases[i].is_ignored);
		assert_int_equal(c->n_count_unlike_usage, cases[i].unlike);
		assert_int_equal(c->n_count_short, cases[i].is_short);
		assert_int_equal(c->n_longer_than_asked, cases[i].is_longer);
		assert_int_equal(c->n_shorter_than_asked, cases[i].is_shorter);
		assert_int_equal(c->finishes[cases[i].finish], 1);
		assert_int_equal(m.request_goodput > 0, cases[i].is_good);
		assert_int_equal(c->best_tpot.n, cases[i].best > 1);
		if (cases[i].best > 1)
			assert_true(fabs(c->best_tpot.mean_ms -
					 30.0 / (double)(cases[i].best - 1)) < 1e-9);
		metrics_release(&m);
		record_release(&r);
	}
}

/* ignore_eos asked for every token: fewer are too few, whatever the server says of it. */
static void test_shorter_with_ignore_eos(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	simple(&r, 1);
	r.row[0].asked_tokens = 3;
	r.row[0].finish = FINISH_STOP;
	o.is_eos_ignored = true;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.client.n_shorter_than_asked, 1);
	metrics_release(&m);
	record_release(&r);
}

/* A role counts as first by being early: by more than 1 ms and 10 % of the time to the content. */
static void test_role_first(void **state)
{
	static const struct {
		unsigned flags;
		double event_ms, content_ms;
		uint32_t want, at_once;
	} cases[] = {
		{ ROW_ROLE_FIRST, 10, 100, 1, 0 },
		{ 0, 10, 100, 0, 0 },              /* it was no role */
		{ ROW_ROLE_FIRST, 95, 100, 0, 0 },
		{ ROW_ROLE_FIRST, 1, 1.9, 0, 0 },
		{ ROW_ROLE_FIRST, 10, 0, 0, 0 },   /* never any content */
		{ ROW_ROLE_FIRST, 10, 110, 1, 1 }, /* all at one instant, after a role */
		{ 0, 110, 110, 0, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct metrics_opts o = usual();
		struct record r = { 0 };
		struct request_row *row;
		struct metrics m;
		double first_ms;

		simple(&r, 1);
		row = &r.row[0];
		row->flags = (uint16_t)(ROW_HAS_USAGE | cases[i].flags);
		row->first_event_ns = row->sent_ns + (int64_t)(cases[i].event_ms * MS);
		row->first_answer_ns = 0;
		if (cases[i].content_ms > 0)
			row->first_content_ns = row->sent_ns + (int64_t)(cases[i].content_ms * MS);
		row->last_event_ns = row->sent_ns + 110 * MS;
		metrics_score(&m, &r, &o);
		assert_int_equal(m.client.n_role_first, cases[i].want);
		assert_int_equal(m.client.n_at_once, cases[i].at_once);
		assert_int_equal(m.client.ttft_content.n, cases[i].content_ms > 0);
		assert_true(fabs(m.client.ttft_content.mean_ms - cases[i].content_ms) < 1e-9);
		/* The best known TPOT begins with the content where the role does not count. */
		first_ms = cases[i].want ? cases[i].content_ms : cases[i].event_ms;
		assert_true(fabs(m.client.best_tpot.mean_ms - (110 - first_ms)) < 1e-9);
		metrics_release(&m);
		/* Files of earlier versions have the stamps of reasoning and answer alone. */
		row->first_reasoning_ns = row->first_content_ns;
		row->first_content_ns = 0;
		metrics_score(&m, &r, &o);
		assert_int_equal(m.client.n_role_first, cases[i].want);
		metrics_release(&m);
		record_release(&r);
	}
}

static void test_failures(void **state)
{
	struct metrics_opts o = usual();
	struct record r = { 0 };
	struct metrics m;
	char text[30];

	(void)state;
	simple(&r, 40);
	for (uint32_t i = 0; i < 30; i++) {
		r.row[i].state = REQ_FAILED;
		r.row[i].fail = i < 25 ? FAIL_STATUS : FAIL_RESET;
		r.row[i].attempts = 3;
		snprintf(text, sizeof(text), "text %u", i < 25 ? i % 12 : 0);
		record_error(&r.shard[0], &r.row[i], str_of(text));
	}
	r.shard[0].is_full = true;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.failures[FAIL_STATUS].count, 25);
	assert_int_equal(m.failures[FAIL_STATUS].n_examples, 10);
	assert_int_equal(m.failures[FAIL_STATUS].example[0].count, 3);
	assert_int_equal(m.failures[FAIL_STATUS].example[1].count, 2);
	assert_int_equal(m.failures[FAIL_STATUS].n_others, 4);
	assert_int_equal(m.failures[FAIL_RESET].n_examples, 1);
	assert_true(str_is(m.failures[FAIL_RESET].example[0].text, "text 0"));
	assert_true(m.client.retries == 60);
	assert_true(m.client.is_full);
	metrics_release(&m);
	record_release(&r);
}

static void test_names(void **state)
{
	static const struct { double p; const char *want; } cases[] = {
		{ 99, "99" }, { 99.9, "99.9" }, { 0, "0" }, { 100, "100" }, { 0.1, "0.1" }, { 50.0, "50" },
	};
	char out[FMT_F64_BYTES];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		assert_string_equal(metrics_percentile_name(out, cases[i].p), cases[i].want);
	assert_int_equal(metric_block_find(STR("ttft")), BLOCK_TTFT);
	assert_int_equal(metric_block_find(STR("e2el_including_client_queue")),
			 BLOCK_E2EL_WITH_QUEUE);
	assert_int_equal(metric_block_find(STR(" tpot")), BLOCK_COUNT);
	assert_string_equal(metric_block_key(BLOCK_QUEUE_TIME), "client_queue_time");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_golden), cmocka_unit_test(test_arrays),
		cmocka_unit_test(test_output_lengths), cmocka_unit_test(test_best_known),
		cmocka_unit_test(test_shorter_with_ignore_eos), cmocka_unit_test(test_role_first),
		cmocka_unit_test(test_selection),
		cmocka_unit_test(test_pooling), cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_audio_and_peaks), cmocka_unit_test(test_lag),
		cmocka_unit_test(test_sent_early),
		cmocka_unit_test(test_send_lag_under_cap), cmocka_unit_test(test_skew),
		cmocka_unit_test(test_events), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
