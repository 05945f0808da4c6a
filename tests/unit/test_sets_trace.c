/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The dataset trace: which family a file is of, which rows are sent when, which tokens their
 * prompts share, and which rows are turns of one session; conversations spec 6 and its cases A1,
 * M1 to M5, N1 and Q1.
 *
 * threads: yes
 */
#include "data_rig.h"

#include <math.h>

#include "core/json/read.h"
#include "input/sets/datasets.h"
#include "input/trace/trace.h"

#define MOONCAKE(stamp, in, out, ids)                                                              \
	"{\"timestamp\": " stamp ", \"input_length\": " in ", \"output_length\": " out ", "           \
	"\"hash_ids\": [" ids "]}\n"
#define BAILIAN(id, parent, stamp, turn)                                                           \
	"{\"chat_id\": " id ", \"parent_chat_id\": " parent ", \"timestamp\": " stamp ", "            \
	"\"input_length\": 20, \"output_length\": 3, \"type\": \"text\", \"turn\": " turn ", "         \
	"\"hash_ids\": [1, 2]}\n"
#define AZURE_HEAD "TIMESTAMP,ContextTokens,GeneratedTokens\n"
#define BURST_HEAD "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"

#define IDS_MAX 8192

static void begin(struct fixture *f, const char *name, const char *content)
{
	fixture_init(f, name, content);
	f->env.num_prompts = 0;
}

static void make(struct fixture *f)
{
	f->e = (struct err){ 0 };
	if (build_again(f, "trace") < 0)
		fail_msg("%s", f->e.text);
}

/* The token ids of the i-th prompt. */
static size_t ids_of(const struct fixture *f, size_t i, int64_t out[IDS_MAX])
{
	struct json_scan scan = { f->w.v[i].prompt, 0 };
	struct json_slice list, v;
	struct json_iter it;
	struct str key;
	size_t n = 0;

	assert_int_equal(f->w.v[i].kind, PROMPT_JSON);
	assert_int_equal(json_next(&scan, &list, NULL), 0);
	it = json_iter(list);
	while (json_each(&it, &key, &v) == 1) {
		assert_true(n < IDS_MAX);
		assert_true(json_to_i64(v, &out[n++]));
	}
	assert_int_equal(n, f->w.v[i].prompt_len);
	return n;
}

static bool same(const int64_t *a, const int64_t *b, size_t n)
{
	return memcmp(a, b, n * sizeof(*a)) == 0;
}

static void assert_notes(const struct fixture *f, const char *want)
{
	if (!f->w.notes.n || !strstr(f->w.notes.p, want))
		fail_msg("notes: %.*s, not \"%s\"", (int)f->w.notes.n, f->w.notes.p, want);
}

static void assert_due(const struct fixture *f, size_t i, double want)
{
	assert_in_range(i, 0, f->w.n - 1);
	if (fabs(f->w.v[i].timestamp_s - want) > 1e-9)
		fail_msg("request %zu: due %.9f, not %.9f", i, f->w.v[i].timestamp_s, want);
}

/* ---- families ---- */

/* Case A1. */
static void azure_times_have_seven_digits(void **state)
{
	static const double due[] = { 0, 4.314579, 4.541877 };
	static const int64_t input[] = { 374, 396, 879 }, output[] = { 44, 109, 55 };
	struct fixture f;

	(void)state;
	begin(&f, "conv.csv", AZURE_HEAD "2023-11-16 18:15:46.6805900,374,44\n"
	      "2023-11-16 18:15:50.9951690,396,109\n2023-11-16 18:15:51.2224670,879,55\n");
	for (f.opts.speedup = 1; f.opts.speedup <= 10; f.opts.speedup += 9) {
		make(&f);
		assert_int_equal(f.w.n, 3);
		assert_true(f.w.is_self_timed);
		for (size_t i = 0; i < 3; i++) {
			assert_due(&f, i, due[i] / f.opts.speedup);
			assert_int_equal(f.w.v[i].prompt_len, input[i]);
			assert_int_equal(f.w.v[i].output_len, output[i]);
		}
	}
	assert_string_equal(f.w.trace->format, "azure");
	assert_true(f.w.trace->ideal_hit_rate == 0);
	fixture_release(&f);
}

static void clocks_are_read(void **state)
{
	static const struct { const char *second; double due; } row[] = {
		{ "2024-05-10 00:00:01.009930+00:00", 1.00993 }, /* as the file of 2024 has them */
		{ "2024-05-10T00:00:02", 2 }, { "2024-05-10 00:00:02.123456789Z", 2.123456789 },
		{ "2024-05-10 01:00:03+0100", 3 }, { "2024-05-09 22:00:04-02", 4 },
		{ "2024-05-11 00:00:00", 86400 }, { "2024-06-10 00:00:00", 31 * 86400.0 },
	};
	static const char *const bad[] = {
		"2024-05-10", "2024-02-30 00:00:00", "2024-05-10 24:00:00",
		"2024-05-10 00:00:00.1234567890", "2024-05-10 00:00:00+1", "x", "1700000000", "",
	};
	struct fixture f;
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		snprintf(text, sizeof(text), AZURE_HEAD "2024-05-10 00:00:00,1,1\n%s,1,1\n",
			 row[i].second);
		begin(&f, "a.csv", text);
		make(&f);
		assert_due(&f, 1, row[i].due);
		fixture_release(&f);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		snprintf(text, sizeof(text), AZURE_HEAD "2024-05-10 00:00:00,1,1\n%s,1,1\n", bad[i]);
		begin(&f, "a.csv", text);
		assert_refused(&f, "trace", "a.csv:3: \"TIMESTAMP\" must be a time such as");
		fixture_release(&f);
	}
}

/* Case N1. */
static void burstgpt_begins_where_it_begins(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "burst.csv", BURST_HEAD "5,ChatGPT,472,18,490,Conversation log\n"
	      "45,GPT-4,1087,230,1317,API log\n60,ChatGPT,417,0,417,Conversation log\n");
	make(&f);
	assert_int_equal(f.w.n, 2);
	assert_due(&f, 0, 0);
	assert_due(&f, 1, 40);
	assert_int_equal(f.w.v[1].prompt_len, 1087);
	assert_int_equal(f.w.trace->skipped, 1);
	assert_notes(&f, "1 row is not sent: no answer or no prompt tokens");
	f.opts.trace_origin = "file";
	make(&f);
	assert_due(&f, 0, 5);
	fixture_release(&f);
}

static void families_are_known_by_their_columns(void **state)
{
	static const struct { const char *name, *content, *want; } row[] = {
		{ "t", MOONCAKE("0", "9", "1", "1"), "mooncake" },
		{ "t.jsonl", BAILIAN("1", "-1", "0.5", "1"), "bailian" },
		{ "t", AZURE_HEAD "2024-05-10 00:00:00,1,1\n", "azure" },
		{ "t.csv", "TIMESTAMP,NumImages,ContextTokens,GeneratedTokens\n"
		  "2025-05-10 00:00:00,2,1,1\n", "azure" },
		{ "t.csv", BURST_HEAD "5,ChatGPT,472,18,490,API log\n", "burstgpt" },
		{ "t.jsonl", "{\"text_input\": \"a b\", \"timestamp\": 1}\n", "aiperf" },
		{ "t.jsonl", "{\"session_id\": \"x\", \"input_length\": 5, \"timestamp\": 1}\n",
		  "aiperf" },
		{ "t.jsonl", "{\"request_id\": 1, \"type\": \"a\", \"input_length\": 7, "
		  "\"hash_ids\": [1]}\n", "servegen" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		begin(&f, row[i].name, row[i].content);
		make(&f);
		assert_int_equal(f.w.n, 1);
		assert_string_equal(f.w.trace->format, row[i].want);
		assert_false(f.w.trace->is_format_given);
		fixture_release(&f);
	}
}

static void rows_without_a_time_go_by_the_rate(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "s.jsonl", "{\"request_id\": 1, \"type\": \"a\", \"input_length\": 20, "
	      "\"hash_ids\": [4, 5]}\n{\"request_id\": 2, \"type\": \"a\", \"input_length\": 16, "
	      "\"hash_ids\": [4]}\n");
	f.opts.trace_output_len = 33;
	make(&f);
	assert_false(f.w.is_self_timed);
	assert_true(isnan(f.w.v[0].timestamp_s));
	assert_int_equal(f.w.v[0].output_len, 33);
	assert_true(f.w.trace->ideal_hit_rate == 15.0 / 36); /* one token is always computed */
	fixture_release(&f);
}

static void answers_are_of_the_recorded_length(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "t.jsonl", MOONCAKE("0", "9", "7", "1"));
	f.env.backend = "openai";
	make(&f);
	assert_true(str_is(f.w.v[0].overrides, "{\"min_tokens\": 7}"));
	f.env.backend = "tgi"; /* which knows no such key */
	make(&f);
	assert_int_equal(f.w.v[0].overrides.n, 0);
	assert_true(dataset_find("trace")->ignores_eos);
	fixture_release(&f);
}

/* ---- blocks ---- */

/* Case M1. */
static void mooncake_shares_blocks_of_512(void **state)
{
	static int64_t a[IDS_MAX], b[IDS_MAX];
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl",
	      MOONCAKE("0", "6758", "500", "0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13")
	      MOONCAKE("0", "7322", "490",
		       "0, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27"));
	make(&f);
	assert_int_equal(ids_of(&f, 0, a), 6758);
	assert_int_equal(ids_of(&f, 1, b), 7322);
	assert_true(same(a, b, 512));
	assert_false(same(a + 512, b + 512, 8));
	/* 13 whole blocks and 102 tokens, 14 and 154. */
	assert_int_equal(6758 - 13 * 512, 102);
	assert_int_equal(7322 - 14 * 512, 154);
	assert_true(f.w.trace->ideal_hit_rate == 512.0 / 14080);
	assert_int_equal(f.w.trace->short_rows + f.w.trace->left_ids, 0);
	fixture_release(&f);
}

/* Case M2. */
static void equal_ids_are_equal_blocks(void **state)
{
	static const int64_t first[] = { 6497, 2550, 7419, 11824 };
	static int64_t a[IDS_MAX], b[IDS_MAX], c[IDS_MAX];
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "40", "7", "1, 2, 3") MOONCAKE("1", "32", "9", "1, 4")
	      MOONCAKE("2", "32", "9", "4, \"1\""));
	f.opts.trace_block_size = (struct opt_int){ true, 16 };
	make(&f);
	assert_int_equal(ids_of(&f, 0, a), 40);
	assert_int_equal(ids_of(&f, 1, b), 32);
	assert_int_equal(ids_of(&f, 2, c), 32);
	assert_true(same(a, first, 4)); /* in every version, on every machine */
	assert_true(same(a, b, 16));
	assert_false(same(a + 16, b + 16, 16));
	assert_true(same(b + 16, c, 16) && same(a, c + 16, 16)); /* at any place of a block */
	/* A block that follows others is not a beginning. */
	assert_true(f.w.trace->ideal_hit_rate == 16.0 / 104);
	fixture_release(&f);
}

/* Case M3. */
static void a_partial_block_is_the_head_of_the_whole(void **state)
{
	static int64_t a[IDS_MAX], b[IDS_MAX];
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "10", "7", "7") MOONCAKE("1", "32", "9", "7, 8"));
	f.opts.trace_block_size = (struct opt_int){ true, 16 };
	make(&f);
	assert_int_equal(ids_of(&f, 0, a), 10);
	assert_int_equal(ids_of(&f, 1, b), 32);
	assert_true(same(a, b, 10));
	assert_true(f.w.trace->ideal_hit_rate == 10.0 / 42);
	fixture_release(&f);
}

/* Case M4. */
static void too_few_ids_are_filled_up(void **state)
{
	static int64_t a[IDS_MAX], b[IDS_MAX];
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "100", "7", "1") MOONCAKE("1", "100", "9", "1")
	      MOONCAKE("2", "20", "9", "1, 2, 3, 4"));
	f.opts.trace_block_size = (struct opt_int){ true, 16 };
	make(&f);
	assert_int_equal(ids_of(&f, 0, a), 100);
	assert_int_equal(ids_of(&f, 1, b), 100);
	assert_true(same(a, b, 16));
	for (size_t at = 16; at + 16 <= 100; at += 16) /* nor do blocks of one row repeat */
		for (size_t k = 0; k + 16 <= 100; k += 16)
			assert_false(same(a + at, b + k, 16) ||
				     (k != at && same(a + at, a + k, 16)));
	assert_int_equal(f.w.trace->short_rows, 2);
	assert_int_equal(f.w.trace->own_tokens, 2 * 84);
	assert_int_equal(f.w.trace->left_ids, 2);
	assert_notes(&f, "2 rows have fewer ids than the length needs");
	assert_notes(&f, "2 block ids have more tokens than their rows");
	f.opts.is_trace_short = true;
	make(&f);
	assert_int_equal(ids_of(&f, 0, b), 16);
	assert_true(same(a, b, 16));
	assert_notes(&f, "their prompts are shorter (--compat timed-trace-short)");
	fixture_release(&f);
}

static void a_salt_makes_other_blocks(void **state)
{
	static int64_t a[IDS_MAX], b[IDS_MAX];
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "32", "7", "1"));
	f.opts.trace_block_size = (struct opt_int){ true, 16 };
	make(&f);
	ids_of(&f, 0, a);
	f.env.seed = 5; /* changes nothing by itself */
	make(&f);
	ids_of(&f, 0, b);
	assert_true(same(a, b, 32));
	f.opts.trace_salt = "seed";
	make(&f);
	ids_of(&f, 0, b);
	assert_false(same(a, b, 16) || same(a + 16, b + 16, 16));
	fixture_release(&f);
}

/* Words of the built-in tokenizer are their own tokens everywhere. */
static void text_keeps_the_shared_tokens(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "40", "7", "1, 2, 3") MOONCAKE("1", "32", "9", "1, 4"));
	f.opts.trace_block_size = (struct opt_int){ true, 16 };
	f.env.backend = "openai-chat";
	f.env.is_chat_backend = true;
	make(&f);
	assert_int_equal(f.w.v[0].kind, PROMPT_TEXT);
	assert_int_equal(f.w.v[0].prompt.n, 40 * 4); /* " abc" each */
	assert_int_equal(f.w.v[0].prompt_len, 40);
	assert_memory_equal(f.w.v[0].prompt.p, f.w.v[1].prompt.p, 16 * 4);
	assert_true(f.w.trace->prefix_exact == 1);
	fixture_release(&f);
}

/* ---- time ---- */

/* Case M5. */
static void time_does_not_run_backwards(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "1", "1", "1") MOONCAKE("5", "2", "1", "1")
	      MOONCAKE("3", "3", "1", "1"));
	f.opts.trace_time_unit = "s";
	assert_refused(&f, "trace", "m.jsonl:3: the time is 3.0 s, which is before that of an earlier "
		       "row, 5.0 s; --sort-trace puts the rows in the order of their times");
	f.opts.sort_trace = true;
	make(&f);
	assert_due(&f, 0, 0);
	assert_due(&f, 1, 3);
	assert_due(&f, 2, 5);
	assert_int_equal(f.w.v[1].prompt_len, 3);
	fixture_release(&f);
}

static void a_part_of_a_trace_begins_at_once(void **state)
{
	static const struct {
		double start, end;
		const char *origin;
		int64_t n;
		double due[4];
		size_t rows;
	} row[] = {
		{ -INFINITY, INFINITY, "first", 0, { 0, 1, 2, 3 }, 4 },
		{ 3, INFINITY, "first", 0, { 0, 1 }, 2 },      /* both ends belong to it */
		{ 2, 3, "first", 0, { 0, 1 }, 2 },
		{ 2, 3, "file", 0, { 2, 3 }, 2 },
		{ 2, INFINITY, "first", 1, { 0 }, 1 },
	};
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("1000", "1", "1", "1") MOONCAKE("2000", "2", "1", "1")
	      MOONCAKE("3000", "3", "1", "1") MOONCAKE("4000", "3", "1", "1"));
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		f.opts.trace_start = (struct opt_real){ !isinf(row[i].start), row[i].start };
		f.opts.trace_end = (struct opt_real){ !isinf(row[i].end), row[i].end };
		f.opts.trace_origin = row[i].origin;
		f.env.num_prompts = row[i].n;
		make(&f);
		assert_int_equal(f.w.n, row[i].rows);
		for (size_t k = 0; k < f.w.n; k++)
			assert_due(&f, k, row[i].due[k]);
	}
	f.opts.trace_start = (struct opt_real){ true, 9 };
	f.opts.trace_end = (struct opt_real){ 0 };
	assert_refused(&f, "trace", "none of its 4 rows lies between --trace-start and --trace-end");
	fixture_release(&f);
}

static void another_unit_is_noticed(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "1", "1", "1") MOONCAKE("300000", "2", "1", "1")
	      MOONCAKE("600000", "2", "1", "1"));
	make(&f);
	assert_notes(&f, "the times look like another unit: half of the gaps are 300 s or more");
	f.opts.trace_time_unit = "us";
	make(&f);
	assert_int_equal(f.w.notes.n, 0);
	assert_due(&f, 2, 0.6);
	fixture_release(&f);
}

/* ---- sessions ---- */

/* Case Q1. */
static void bailian_rows_find_their_sessions(void **state)
{
	/* In the order of the workload: row of the file, session, what it waits for. */
	static const struct { double due; uint32_t session, wait; uint16_t number; } want[] = {
		{ 0, 0, TURN_NONE, 0 }, { 1, 0, 0, 1 }, { 3, 0, 1, 2 }, { 2, 1, TURN_NONE, 0 },
		{ 4, 2, TURN_NONE, 0 },
	};
	struct fixture f;

	(void)state;
	begin(&f, "q.jsonl", BAILIAN("1", "-1", "0", "1") BAILIAN("2", "1", "1", "2")
	      BAILIAN("3", "-1", "2", "1") BAILIAN("4", "2", "3", "3") BAILIAN("5", "99", "4", "2"));
	make(&f);
	assert_null(f.w.sessions); /* as recorded: by the clock alone */
	f.opts.sessions = true;
	make(&f);
	assert_int_equal(f.w.n, 5);
	assert_int_equal(f.w.sessions->n_turns, 5);
	assert_int_equal(f.w.sessions->n_sessions, 3);
	for (size_t i = 0; i < 5; i++) {
		const struct turn *t = &f.w.sessions->turn[i];

		assert_due(&f, i, want[i].due);
		assert_int_equal(t->session, want[i].session);
		assert_int_equal(t->number, want[i].number);
		assert_int_equal(t->history, TURN_NONE); /* each row is the whole request */
		assert_int_equal(t->n_waits, want[i].wait != TURN_NONE);
		if (t->n_waits) {
			assert_int_equal(f.w.sessions->waits[t->wait], want[i].wait);
			assert_true(t->is_gap_from_arrival && t->gap_s == want[i].due);
		}
		assert_int_equal(f.w.v[i].prompt_len, 20);
	}
	assert_true(str_is(f.w.sessions->session[0].id, "1"));
	assert_int_equal(f.w.sessions->session[0].n, 3);
	assert_int_equal(f.w.sessions->session[1].first, 3);
	fixture_release(&f);
}

/* A circle of parents, and a child whose number is below its parent's, have an order still. */
static void broken_sessions_have_an_order(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "q.jsonl", BAILIAN("1", "2", "0", "1") BAILIAN("2", "1", "1", "1")
	      BAILIAN("3", "4", "2", "1") BAILIAN("4", "-1", "3", "2"));
	f.opts.sessions = true;
	make(&f);
	assert_int_equal(f.w.sessions->n_sessions, 2);
	for (size_t i = 0; i < f.w.n; i++) {
		const struct turn *t = &f.w.sessions->turn[i];

		assert_int_equal(t->n_waits, i == f.w.sessions->session[t->session].first ? 0 : 1);
		if (t->n_waits)
			assert_in_range(f.w.sessions->waits[t->wait],
					f.w.sessions->session[t->session].first, i - 1);
	}
	fixture_release(&f);
}

static void sessions_are_cut_whole(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "q.jsonl", BAILIAN("1", "-1", "0", "1") BAILIAN("2", "-1", "1", "1")
	      BAILIAN("3", "1", "2", "2") BAILIAN("4", "2", "3", "2"));
	f.opts.sessions = true;
	f.opts.trace_end = (struct opt_real){ true, 0.5 };
	make(&f);
	assert_int_equal(f.w.n, 2);
	assert_due(&f, 1, 2); /* the turn comes after the end, its session began before it */
	f.opts.trace_end = (struct opt_real){ 0 };
	f.opts.trace_start = (struct opt_real){ true, 1 };
	make(&f);
	assert_int_equal(f.w.n, 2);
	assert_due(&f, 0, 0);
	assert_due(&f, 1, 2);
	fixture_release(&f);
}

static void aiperf_rows_bring_texts_and_delays(void **state)
{
	static const char text[] =
		"{\"session_id\": \"s\", \"messages\": [{\"role\": \"user\", \"content\": \"abc\"}], "
		"\"tools\": [{\"type\": \"function\"}], \"output_length\": 4, \"timestamp\": 500}\n"
		"{\"session_id\": \"t\", \"text_input\": \"hello\", \"timestamp\": 1500, "
		"\"extra\": {\"top_k\": 3}}\n"
		"{\"session_id\": \"s\", \"payload\": {\"model\": \"m\", \"messages\": [{\"role\": "
		"\"user\", \"content\": \"d\"}], \"temperature\": 0.5}, \"delay\": 2000}\n";
	struct fixture f;

	(void)state;
	begin(&f, "a.jsonl", text);
	f.env.backend = "openai-chat";
	f.env.is_chat_backend = true;
	f.opts.trace_output_len = 9;
	assert_refused(&f, "trace", "a.jsonl:3: the row has a delay and no timestamp; with --sessions");
	f.opts.sessions = true;
	f.opts.speedup = 2;
	make(&f);
	assert_int_equal(f.w.n, 3);
	assert_due(&f, 0, 0);
	assert_due(&f, 2, 0.5);
	assert_true(str_is(f.w.v[0].messages, "[{\"role\": \"user\", \"content\": \"abc\"}]"));
	assert_true(str_is(f.w.v[0].overrides,
			   "{\"min_tokens\": 4, \"tools\": [{\"type\": \"function\"}]}"));
	assert_true(str_is(f.w.v[1].overrides, "{\"min_tokens\": 9, \"temperature\": 0.5}"));
	assert_true(str_is(f.w.v[2].overrides, "{\"min_tokens\": 9, \"top_k\": 3}"));
	assert_prompt(&f, 2, "hello");
	assert_int_equal(f.w.v[2].prompt_len, 5);
	assert_int_equal(f.w.sessions->turn[1].gap_kind, TURN_THINKS);
	assert_true(f.w.sessions->turn[1].gap_s == 2); /* arrivals alone are divided */
	assert_false(f.w.sessions->turn[1].is_gap_from_arrival);
	f.opts.speedup_gaps = true;
	f.opts.trace_message_mode = "delta";
	make(&f);
	assert_true(f.w.sessions->turn[1].gap_s == 1);
	assert_int_equal(f.w.sessions->turn[1].history, 0);
	f.env.backend = "openai";
	f.env.is_chat_backend = false;
	assert_refused(&f, "trace", "a.jsonl:1: the row has messages, which --backend openai does not "
		       "take; openai-chat does");
	fixture_release(&f);
}

/* ---- bad input ---- */

static void bad_traces_are_refused(void **state)
{
	static const struct { const char *name, *content, *want; } row[] = {
		{ "t.csv", "a,b\n1,2\n", "t.csv:2: no known trace has the columns a, b; there are mooncake" },
		{ "t.csv", "TIMESTAMP,b\n2024-05-10 00:00:00,2\n",
		  "t.csv:2: no \"ContextTokens\"; a row of an Azure trace has TIMESTAMP, ContextTokens, "
		  "GeneratedTokens, and this one has TIMESTAMP, b; choose another format with --trace-format" },
		{ "t.csv", AZURE_HEAD, "t.csv: the file has no rows" },
		{ "t.csv", AZURE_HEAD "2024-05-10 00:00:00,1\n", "t.csv: line 2: 2 cells" },
		{ "t.jsonl", "{\"turns\": []}\n", "t.jsonl:1: \"turns\" makes it a file of conversations" },
		{ "t.jsonl", MOONCAKE("0", "1", "1", "1") "{\"timestamp\": 1, \"input_length\": 2}\n",
		  "t.jsonl:2: no \"output_length\"" },
		{ "t.jsonl", MOONCAKE("\"x\"", "1", "1", "1"), "t.jsonl:1: \"timestamp\" must be a number, "
		  "got x" },
		{ "t.jsonl", MOONCAKE("1", "1.5", "1", "1"), "\"input_length\" must be a whole number of "
		  "tokens from 0 to" },
		{ "t.jsonl", MOONCAKE("1", "1", "-3", "1"), "\"output_length\" must be a whole number of "
		  "tokens from 0 to 67108864, got -3" },
		{ "t.jsonl", MOONCAKE("1", "1", "1", "[1]"), "t.jsonl:1: \"hash_ids\" must be a list of "
		  "numbers or texts" },
		{ "t.jsonl", MOONCAKE("1", "1", "0", "1"), "none of its 1 rows can be sent: 1 have no "
		  "answer" },
		{ "t.jsonl", "{\"messages\": [], \"text_input\": \"a\"}\n",
		  "a row must have exactly one of input_length, text_input, messages and payload, got 2" },
		{ "t.jsonl", "{\"text_input\": 5}\n", "\"text_input\" must be a text" },
		{ "t.jsonl", "{\"text_input\": \"a\", \"timestamp\": 1}\n{\"text_input\": \"a\"}\n",
		  "t.jsonl:2: the row has no time, but others have" },
	};
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		begin(&f, row[i].name, row[i].content);
		assert_refused(&f, "trace", row[i].want);
		fixture_release(&f);
	}
	begin(&f, "t.jsonl", MOONCAKE("1", "1", "1", "1"));
	f.opts.speedup_gaps = true;
	assert_refused(&f, "trace", "--speedup-gaps needs --sessions");
	f.opts.speedup_gaps = false;
	f.opts.trace_format = "azure";
	assert_refused(&f, "trace", "t.jsonl:1: no \"TIMESTAMP\"; a row of an Azure trace");
	fixture_release(&f);
}

static void long_rows_are_left_out(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f, "m.jsonl", MOONCAKE("0", "10", "5", "1") MOONCAKE("1000", "10", "6", "1"));
	f.opts.max_model_len = (struct opt_int){ true, 15 };
	make(&f);
	assert_int_equal(f.w.n, 1);
	assert_notes(&f, "1 request was skipped: prompt and answer together would have more than "
		     "--max-model-len 15 tokens");
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(azure_times_have_seven_digits),
		cmocka_unit_test(clocks_are_read),
		cmocka_unit_test(burstgpt_begins_where_it_begins),
		cmocka_unit_test(families_are_known_by_their_columns),
		cmocka_unit_test(rows_without_a_time_go_by_the_rate),
		cmocka_unit_test(answers_are_of_the_recorded_length),
		cmocka_unit_test(mooncake_shares_blocks_of_512),
		cmocka_unit_test(equal_ids_are_equal_blocks),
		cmocka_unit_test(a_partial_block_is_the_head_of_the_whole),
		cmocka_unit_test(too_few_ids_are_filled_up),
		cmocka_unit_test(a_salt_makes_other_blocks),
		cmocka_unit_test(text_keeps_the_shared_tokens),
		cmocka_unit_test(time_does_not_run_backwards),
		cmocka_unit_test(a_part_of_a_trace_begins_at_once),
		cmocka_unit_test(another_unit_is_noticed),
		cmocka_unit_test(bailian_rows_find_their_sessions),
		cmocka_unit_test(broken_sessions_have_an_order),
		cmocka_unit_test(sessions_are_cut_whole),
		cmocka_unit_test(aiperf_rows_bring_texts_and_delays),
		cmocka_unit_test(bad_traces_are_refused),
		cmocka_unit_test(long_rows_are_left_out),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
