/* SPDX-License-Identifier: Apache-2.0 */
/* test_metrics_gaps.c - who made a slow gap, from what a record can tell; the three ITLs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "client/metrics/metrics.h"
#include "record_sample.h"

#define T0 SAMPLE_START_NS
#define MS SAMPLE_MS
#define PROMPT_MS 0.02
#define STREAMS_MAX 3

static int64_t ns(double ms)
{
	return llround(ms * MS);
}

/*
 * Events of an answer whose first one comes 10 ms after sent: items with blanks between, each
 * GAP[xN | yN | sN][~SKEW][*TIMES] in ms; x: N events in one read, s: in one segment, y: N with
 * stamps 0.02 ms apart. SKEW: how late they are read.
 */
static void stream(struct record *r, uint32_t i, const char *text)
{
	struct request_row *row = &r->row[i];
	struct record_shard *s = &r->shard[row->shard];

	row->phase = PHASE_MAIN;
	row->attempts = 1;
	row->due_ns = row->admitted_ns = row->sent_ns = T0;
	sample_event(r, row, 10 * MS, ns(PROMPT_MS));
	while (*text) {
		char *end, kind = 0;
		double gap = strtod(text, &end), skew = PROMPT_MS;
		long n = 1, times = 1;

		if (*end == 'x' || *end == 'y' || *end == 's') {
			kind = *end;
			n = strtol(end + 1, &end, 10);
		}
		if (*end == '~')
			skew = strtod(end + 1, &end);
		if (*end == '*')
			times = strtol(end + 1, &end, 10);
		assert_true(*end == ' ' || *end == '\0');
		for (text = end; *text == ' ';)
			text++;
		for (; times > 0; times--)
			for (long k = 0; k < n; k++) {
				if (k && kind != 'y')
					record_mark(s, row, MARK_SHARED,
						    kind == 's' ? SHARED_SEGMENT : SHARED_READ);
				sample_event(r, row, k == 0 ? ns(gap) : kind == 'y' ? ns(0.02) : 0,
					     ns(skew));
			}
	}
	row->first_answer_ns = row->first_content_ns = row->first_event_ns;
	row->output_tokens = row->n_events;
	row->flags = ROW_HAS_USAGE;
	row->end_ns = row->last_event_ns;
	row->state = REQ_DONE;
}

static void score(struct metrics *m, struct record *r, const char *const *text, bool is_user)
{
	struct metrics_opts o = { .has_tokenizer = true, .is_user_stamps = is_user };
	struct err e;
	uint32_t n = 0;

	while (n < STREAMS_MAX && text[n])
		n++;
	assert_int_equal(record_init(r, n, 1, 0, true, true, &e), 0);
	record_add_rows(r, n);
	r->start_ns = T0;
	for (uint32_t i = 0; i < n; i++) {
		stream(r, i, text[i]);
		if (r->row[i].end_ns > r->stop_ns)
			r->stop_ns = r->row[i].end_ns;
	}
	metrics_score(m, r, &o);
}

/* ---- causes ---- */

static const struct {
	const char *what;
	const char *text[STREAMS_MAX];
	bool is_user;
	uint64_t n[GAP_CAUSES];
	double typical_ms;
} cases[] = {
	{ "a steady stream", { "10*30" }, false, { 0 }, 10 },
	{ "jitter below the limit", { "10*20 19.9 10*20 20" }, false, { 0 }, 10 },
	{ "a stall", { "10*30 50 10*30" }, false, { 1 }, 10 },
	{ "just above the limit", { "10*30 20.1 10*30" }, false, { 1 }, 10 },
	{ "a fast stream: 1 ms more is needed", { "0.4*30 1.3 0.4*20 1.5 0.4*9" }, false, { 1 }, 0.4 },
	{ "a stall that was read late", { "10*30 50~30 10*30" }, false, { 1 }, 10 },
	{ "a stall, then two events at once", { "10*30 200x2 10*30" }, false, { 1 }, 10 },
	{ "every write has four events", { "40x4*10" }, false, { 0, 10 }, 10 },
	{ "one write had five", { "10*30 50x5 10*30" }, false, { 0, 1 }, 10 },
	{ "writes of four, and the answer ends in the last", { "40x4*10 40" }, false, { 0, 11 }, 10 },
	{ "writes of four, read late", { "40x4*5 40x4~8 40x4*5" }, false, { 0, 11 }, 10 },
	{ "writes of four, and a stall", { "40x4*5 300x4 40x4*5" }, false, { 1, 10 }, 10 },
	{ "bursts of segments with stamps of their own", { "50y5*10" }, false, { 0, 10 }, 10.016 },
	{ "one segment had five, and was read late", { "10*30 50s5~30 10*30" }, false, { 0, 1 }, 10 },
	{ "the client was away", { "10*30 50x5~6 10*30" }, false, { 0, 0, 1 }, 10 },
	{ "the client was away, writes of two", { "20x2*20 60x6~6 20x2*20" }, false, { 0, 0, 1 }, 10 },
	{ "bytes that waited for a lost segment: the loop read others meanwhile",
	  { "10*30 50x5~30 10*30", "10*60" }, false, { 0, 1 }, 10 },
	{ "the client was away: the other stream was late, too",
	  { "10*30 50x5~6 10*30", "10*30 50x5~6 10*30" }, false, { 0, 0, 2 }, 10 },
	{ "one stream's last bytes came just before the client went on, the others' did not",
	  { "10*30 55x5 10*30", "10*30 50x5~5 10*30", "10*30 51x5~4 10*30" }, false, { 0, 0, 3 }, 10 },
	{ "user stamps: late reading is in the gap", { "10*30 50~40 0.5~1 10*30" }, true, { 0, 0, 1 },
	  10 },
	{ "user stamps: a stall", { "10*30 50 10*30" }, true, { 1 }, 10 },
};

static void test_causes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct record r = { 0 };
		struct metrics m;
		uint64_t slow = 0;

		score(&m, &r, cases[i].text, cases[i].is_user);
		for (enum gap_cause c = 0; c < GAP_CAUSES; c++) {
			if (m.gaps.cause[c].n != cases[i].n[c])
				fail_msg("%s: %llu of %s, not %llu", cases[i].what,
					 (unsigned long long)m.gaps.cause[c].n, gap_cause_name(c),
					 (unsigned long long)cases[i].n[c]);
			slow += m.gaps.cause[c].n;
		}
		if (fabs(m.gaps.typical_ms - cases[i].typical_ms) > 1e-9)
			fail_msg("%s: typical %.6f", cases[i].what, m.gaps.typical_ms);
		assert_int_equal(m.gaps.n_slow, slow);
		assert_true(m.gaps.limit_ms == fmax(2 * m.gaps.typical_ms, m.gaps.typical_ms + 1));
		metrics_release(&m);
		record_release(&r);
	}
}

/* Without kernel stamps, or without the lag of reads, no cause is named. */
static void test_unknown(void **state)
{
	static const char *const text[STREAMS_MAX] = { "10*30 50x5 10*30" };
	struct metrics_opts o = { .has_tokenizer = true };
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	score(&m, &r, text, false);
	metrics_release(&m);
	r.row[0].flags |= ROW_USER_STAMPS;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.gaps.cause[GAP_UNKNOWN].n, 1);
	metrics_release(&m);
	r.row[0].flags &= (uint16_t)~ROW_USER_STAMPS;
	r.row[0].skew_head = 0;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.gaps.cause[GAP_UNKNOWN].n, 1);
	metrics_release(&m);
	/* Failed requests have no gaps in the report; an answer of one event has none either. */
	r.row[0].state = REQ_FAILED;
	metrics_score(&m, &r, &o);
	assert_int_equal(m.gaps.n, 0);
	assert_int_equal(m.gaps.event.n, 0);
	metrics_release(&m);
	record_release(&r);
}

/* ---- what each cause does to ITL ---- */

static void test_without(void **state)
{
	/* 100 gaps of 10 ms, two stalls of 90 ms, two late reads of ten events in 100 ms. */
	static const char *const text[STREAMS_MAX] = {
		"10*50 90 10*25 100x10~7 90 10*25 100x10~7",
	};
	static const char *const batched[STREAMS_MAX] = { "40x4*100" };
	struct record r = { 0 };
	struct metrics m;

	(void)state;
	score(&m, &r, text, false);
	assert_int_equal(m.gaps.n, 104);
	assert_int_equal(m.gaps.cause[GAP_SERVER].n, 2);
	assert_int_equal(m.gaps.cause[GAP_CLIENT].n, 2);
	assert_true(fabs(m.gaps.event.p99_ms - 97.9) < 1e-9); /* of 122: rank 119.79 */
	assert_true(fabs(m.gaps.cause[GAP_CLIENT].p99_without_ms - 73.2) < 1e-9);
	assert_true(fabs(m.gaps.cause[GAP_SERVER].p99_without_ms - 82.9) < 1e-9);
	assert_true(m.gaps.cause[GAP_DELIVERY].p99_without_ms == m.gaps.event.p99_ms);
	metrics_release(&m);
	record_release(&r);
	/* What the server did, had its events not been held: 10 ms each. */
	score(&m, &r, batched, false);
	assert_true(m.gaps.event.p50_ms == 0 && fabs(m.gaps.event.p99_ms - 40) < 1e-9);
	assert_true(fabs(m.gaps.cause[GAP_DELIVERY].p99_without_ms - 10) < 1e-9);
	assert_int_equal(m.gaps.segment.n, 100);
	assert_true(fabs(m.gaps.segment.p50_ms - 40) < 1e-9);
	metrics_release(&m);
	record_release(&r);
}

/* ---- tokens ---- */

static void token_events(struct metrics *m, struct record *r, const char *kinds, uint32_t usage)
{
	struct metrics_opts o = { .has_tokenizer = true };
	struct request_row *row;
	struct err e;

	assert_int_equal(record_init(r, 1, 1, 0, true, true, &e), 0);
	record_add_rows(r, 1);
	row = &r->row[0];
	row->sent_ns = row->due_ns = r->start_ns = T0;
	for (; *kinds; kinds++) { /* a digit: so many tokens; E: none */
		if (*kinds == 'E')
			record_mark(&r->shard[0], row, MARK_EMPTY, 1);
		else if (*kinds > '1')
			record_mark(&r->shard[0], row, MARK_TOKENS, (uint32_t)(*kinds - '0'));
		sample_event(r, row, 12 * MS, 0);
	}
	row->end_ns = r->stop_ns = row->last_event_ns;
	row->output_tokens = usage;
	row->flags = usage ? ROW_HAS_USAGE : 0;
	row->state = REQ_DONE;
	metrics_score(m, r, &o);
}

static const struct {
	const char *kinds;
	uint32_t usage;
	size_t n;
	double mean_ms, p50_ms, p99_ms;
} tokens[] = {
	{ "11111", 5, 4, 12, 12, 12 },
	{ "E11111", 5, 4, 12, 12, 12 },       /* the first token's gap is TTFT */
	{ "11111E", 5, 4, 12, 12, 12 },       /* the finish chunk has none */
	{ "11E111", 5, 4, 15, 12, 23.64 },     /* what comes before a token is its gap */
	{ "13333", 13, 12, 4, 4, 4 },         /* three tokens of an event: a third each */
	{ "1311", 6, 5, 36.0 / 5, 4, 12 },    /* of five tokens three have 4 ms */
	{ "11111", 15, 12, 4, 4, 4 },         /* usage alone knows of three an event */
	{ "11111E", 6, 4, 12, 12, 12 },       /* the event without text may have had one */
	{ "11111", 0, 4, 12, 12, 12 },
};

static void test_tokens(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(tokens) / sizeof(*tokens); i++) {
		const struct metrics_spread *t;
		struct record r = { 0 };
		struct metrics m;

		token_events(&m, &r, tokens[i].kinds, tokens[i].usage);
		t = &m.gaps.token;
		if (t->n != tokens[i].n || fabs(t->mean_ms - tokens[i].mean_ms) > 1e-9 ||
		    fabs(t->p50_ms - tokens[i].p50_ms) > 1e-9 ||
		    fabs(t->p99_ms - tokens[i].p99_ms) > 1e-9)
			fail_msg("%s, usage %u: n %zu mean %.6f p50 %.6f p99 %.6f", tokens[i].kinds,
				 tokens[i].usage, t->n, t->mean_ms, t->p50_ms, t->p99_ms);
		assert_int_equal(m.gaps.event.n, strlen(tokens[i].kinds) - 1);
		metrics_release(&m);
		record_release(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_causes),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_without),
		cmocka_unit_test(test_tokens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
