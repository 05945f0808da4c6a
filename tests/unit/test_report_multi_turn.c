/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_report_multi_turn.c - tables and files of `bench multi-turn`: acceptance cases D1 and T1 of
 * the specification, and a spreadsheet that is read back.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/codec.h"
#include "out/report/multi_turn.h"
#include "answers.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const double no_warmup[] = { 0 };

static struct multi_turn_report report_of(struct turn_stats *v, size_t n)
{
	static const struct report_pair params[] = {
		{ "model", "a<b" }, { "num_clients", "1" }, { "seed", "0" },
	};

	return (struct multi_turn_report){
		.v = v, .n = n, .warmup = no_warmup, .n_warmup = 1, .warmup_runtime_s = NAN,
		.params = params, .n_params = COUNT(params),
	};
}

static struct turn_stats sample(double ttft_ms, double start_ms, const char *id)
{
	return (struct turn_stats){
		.ttft_ms = ttft_ms, .latency_ms = 100, .start_time_ms = start_ms,
		.input_num_turns = 1, .input_num_tokens = 10, .output_num_tokens = 2,
		.conversation_id = str_of(id), .server_prompt_tokens = TURN_UNKNOWN,
		.server_cached_tokens = TURN_UNKNOWN, .server_output_tokens = TURN_UNKNOWN,
	};
}

static void has(const char *text, const char *want)
{
	if (!strstr(text, want))
		fail_msg("no '%s' in\n%s", want, text);
}

/* T1: the first chunk has three tokens, and two of them take longer than it did. */
static void test_first_chunk(void **state)
{
	struct turn_stats s = { .latency_ms = 100, .output_num_tokens = 9,
				.output_num_first_chunk_tokens = 3 };

	(void)state;
	turn_stats_times(&s, 20);
	assert_true(fabs(s.tpot_ms - 80.0 / 6) < 1e-12);
	assert_true(s.ttft_ms == 0.1);
	s.output_num_first_chunk_tokens = 1;
	turn_stats_times(&s, 20);
	assert_true(s.ttft_ms == 20 && s.tpot_ms == 10);
	s.output_num_tokens = 1;
	turn_stats_times(&s, 20);
	assert_true(s.ttft_ms == 20 && s.tpot_ms == 0);
	s.input_num_tokens = 40;
	turn_stats_cached(&s, 10);
	assert_true(s.approx_cached_percent == 75);
	s.input_num_tokens = 48; /* the share is rounded before it becomes a percentage */
	turn_stats_cached(&s, 17);
	assert_true(s.approx_cached_percent == 100.0 * (31.0 / 48.0));
}

/* D1: 10 20 30 45; the columns of whole numbers lose their second zero. */
static void test_described(void **state)
{
	struct turn_stats v[] = { sample(45, 300, "a"), sample(10, 0, "a"), sample(20, 100, "b"),
				  sample(30, 200, "b") };
	struct multi_turn_report r = report_of(v, COUNT(v));
	struct buf out = { 0 };

	(void)state;
	multi_turn_terminal(&r, &out);
	has(out.data, "ttft_ms              4.0   26.25  14.93   10.0   17.5   25.0   33.75   40.5   45.0\n");
	has(out.data, "latency_ms           4.0  100.00   0.00  100.0  100.0  100.0  100.00  100.0  100.0\n");
	has(out.data, "Parameters:\nmodel=a<b\nnum_clients=1\nseed=0\n");
	has(out.data, "Statistics summary:\nruntime_sec = 0.400\nrequests_per_sec = 10.000\n");
	assert_null(strstr(out.data, "99%"));
	assert_null(strstr(out.data, "time_between"));
	answers_release(&out);
}

static void test_one_sample(void **state)
{
	struct turn_stats v[] = { sample(10, 0, "a") };
	struct multi_turn_report r = report_of(v, 1);
	struct buf out = { 0 };

	(void)state;
	multi_turn_terminal(&r, &out);
	has(out.data, "ttft_ms              1.0   10.0  NaN   10.0   10.0   10.0   10.0   10.0   10.0\n");
	answers_release(&out);
	r.n = 0;
	multi_turn_terminal(&r, &out);
	assert_int_equal(out.len, 0);
}

/* Upstream's tables: a column with a number below 0.01 or above a million has exponents. */
static void test_exponents(void **state)
{
	struct turn_stats v[] = { sample(0.004, 0, "a"), sample(10, 100, "b") };
	struct multi_turn_report r = report_of(v, COUNT(v));
	struct buf out = { 0 };

	(void)state;
	multi_turn_terminal(&r, &out);
	has(out.data, "ttft_ms              2.0    5.0  7.07  4.00e-03    2.5    5.0    7.5    9.0   10.0\n");
	has(out.data, "latency_ms           2.0  100.0  0.00  1.00e+02  100.0");
	v[1].ttft_ms = 2e6;
	buf_reset(&out);
	multi_turn_terminal(&r, &out);
	has(out.data, "1.00e+06");
	answers_release(&out);
}

/* Shares are cut from the start; percentiles are those of all samples. */
static void test_warmup(void **state)
{
	static const double shares[] = { 0, 0.25, 0.995 };
	struct turn_stats v[100];
	struct multi_turn_report r = report_of(v, COUNT(v));
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(v); i++)
		v[COUNT(v) - 1 - i] = sample((double)i, 10.0 * (double)i, i % 2 ? "a" : "b");
	r.warmup = shares;
	r.n_warmup = COUNT(shares);
	r.warmup_runtime_s = 2;
	r.is_verbose = true;
	multi_turn_terminal(&r, &out);
	has(out.data, "Statistics summary (assuming 0% warmup samples):\nruntime_sec = 1.090\n");
	has(out.data, "Statistics summary (assuming 25% warmup samples):\nruntime_sec = 0.840\n"
	    "requests_per_sec = 89.286\nwarmup_runtime_sec = 2.000\n"
	    "total_runtime_incl_warmup_sec = 2.840\n");
	has(out.data, "(assuming 100% warmup samples)"); /* 99.5, half to even; one sample is left */
	has(out.data, "  99%  ");
	has(out.data, "time_between_user_turns_sec   98.0    0.02");
	answers_release(&out);
}

static void test_json(void **state)
{
	struct turn_stats v[] = { sample(10.5, 0, "a\"b") };
	struct multi_turn_report r = report_of(v, 1);
	struct buf out = { 0 };

	(void)state;
	v[0].server_cached_tokens = 3;
	multi_turn_json(&r, &out);
	assert_string_equal(out.data,
		"[\n  {\n    \"ttft_ms\": 10.5,\n    \"tpot_ms\": 0.0,\n    \"latency_ms\": 100.0,\n"
		"    \"start_time_ms\": 0.0,\n    \"input_num_turns\": 1,\n"
		"    \"input_num_tokens\": 10,\n    \"output_num_tokens\": 2,\n"
		"    \"output_num_chunks\": 0,\n    \"output_num_first_chunk_tokens\": 0,\n"
		"    \"approx_cached_percent\": 0.0,\n    \"conversation_id\": \"a\\\"b\",\n"
		"    \"client_id\": 0,\n    \"server_cached_tokens\": 3\n  }\n]");
	answers_release(&out);
}

static uint32_t le(const char *p, int n)
{
	uint32_t v = 0;

	while (n--)
		v = v << 8 | (unsigned char)p[n];
	return v;
}

/* The text of a file in the archive, by its directory; for free(). */
static char *unpacked(struct str archive, const char *name)
{
	const char *at = archive.p + le(archive.p + archive.n - 6, 4);

	for (; le(at, 4) == 0x02014b50; at += 46 + le(at + 28, 2)) {
		const char *file = archive.p + le(at + 42, 4);
		size_t packed = le(at + 20, 4), size = le(at + 24, 4), got = 0;
		char *text, *zlib;

		if (le(at + 28, 2) != strlen(name) || memcmp(at + 46, name, strlen(name)) != 0)
			continue;
		assert_int_equal(le(file, 4), 0x04034b50);
		/* zip_unpack wants zlib's head and its checksum, which is not looked at here. */
		zlib = calloc(1, packed + 6);
		text = calloc(1, size + 1);
		memcpy(zlib, "\x78\x9c", 2);
		memcpy(zlib + 2, file + 30 + strlen(name), packed);
		zip_unpack((struct str){ zlib, packed + 2 }, text, size, &got);
		assert_int_equal(got, size);
		free(zlib);
		return text;
	}
	fail_msg("no %s in the archive", name);
	return NULL;
}

static void test_workbook(void **state)
{
	struct turn_stats v[] = { sample(20, 100, "b & c"), sample(10, 0, "a") };
	struct multi_turn_report r = report_of(v, COUNT(v));
	static const struct report_pair generated[] = { { "text_files", "x.txt" } };
	struct buf out = { 0 };
	struct err e = { 0 };
	char *summary, *raw, *book;

	(void)state;
	r.generated = generated;
	r.n_generated = 1;
	assert_int_equal(multi_turn_workbook(&r, &out, &e), 0);
	book = unpacked(buf_str(&out), "xl/workbook.xml");
	has(book, "<sheet name=\"Summary\" sheetId=\"1\"");
	has(book, "<sheet name=\"Raw data\" sheetId=\"2\"");
	summary = unpacked(buf_str(&out), "xl/worksheets/sheet1.xml");
	has(summary, "<c r=\"A2\" t=\"inlineStr\"><is><t xml:space=\"preserve\">a&lt;b</t></is></c>"
	    "<c r=\"B2\"><v>1.0</v></c>");
	has(summary, "<c r=\"A4\" t=\"inlineStr\"><is><t xml:space=\"preserve\">text_files<");
	has(summary, "<c r=\"A9\" t=\"inlineStr\"><is><t xml:space=\"preserve\">runtime_sec<");
	has(summary, "<c r=\"A10\"><v>0.2</v></c><c r=\"B10\"><v>10.0</v></c>");
	has(summary, "<c r=\"A13\" t=\"inlineStr\"><is><t xml:space=\"preserve\">ttft_ms</t></is></c>"
	    "<c r=\"B13\"><v>2.0</v></c><c r=\"C13\"><v>15.0</v></c>");
	raw = unpacked(buf_str(&out), "xl/worksheets/sheet2.xml");
	has(raw, "<c r=\"M1\" t=\"inlineStr\"><is><t xml:space=\"preserve\">end_time_ms<");
	has(raw, "<row r=\"2\"><c r=\"A2\"><v>10.0</v></c>");
	has(raw, "b &amp; c");
	has(raw, "<c r=\"M3\"><v>200.0</v></c></row></sheetData></worksheet>");
	free(book);
	free(summary);
	free(raw);
	answers_release(&out);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_chunk),
		cmocka_unit_test(test_described),
		cmocka_unit_test(test_one_sample),
		cmocka_unit_test(test_exponents),
		cmocka_unit_test(test_warmup),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_workbook),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
