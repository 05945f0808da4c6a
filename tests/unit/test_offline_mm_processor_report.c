/* SPDX-License-Identifier: Apache-2.0 */
/* What bench mm-processor shows and saves, against upstream's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/offline/mm_processor.h"
#include "mm_golden.h"

#define STARTING "Starting multimodal processor benchmark...\nProcessing "

static void is_what_upstream_shows_and_saves(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mm_golden) / sizeof(*mm_golden); i++) {
		const size_t all = mm_golden[i].completed + mm_golden[i].failed;
		double *e2el = malloc((mm_golden[i].n + 1) * sizeof(double));
		struct mm_run run = { .completed = mm_golden[i].completed, .e2el_s = e2el,
				      .failed = mm_golden[i].failed, .n = mm_golden[i].n,
				      .elapsed_s = mm_golden[i].elapsed_s };
		struct mm_config config = { .model = "a/model", .num_prompts = (int64_t)all,
					    .input_len = 1024, .output_len = 128,
					    .timestamp = "2026-01-02T03:04:05.000006",
					    .ours = STR("{\"x\": 1}") };
		struct str want = str_of(mm_golden[i].json);
		struct buf out = { 0 }, json = { 0 };
		struct mm_percentiles p;
		struct mm_facts f;
		struct arena a = { 0 };
		struct err e = { 0 };

		for (size_t k = 0; k < run.n; k++)
			e2el[k] = mm_golden[i].e2el_s[k];
		assert_int_equal(mm_percentiles(mm_golden[i].percentiles, &p, &a, &e), 0);
		assert_int_equal(mm_facts(&run, str_of(mm_golden[i].stages), &p, &f, &a, &e), 0);
		buf_printf(&out, STARTING "%zu requests...\n", all);
		if (!f.stages.n)
			buf_printf(&out, "%s\n", mm_no_stages);
		if (f.is_average)
			buf_printf(&out, "%s\n", mm_no_e2el);
		mm_terminal(&f, &p, &out);
		buf_add_text(&out, "\nResults saved to r.json\n");
		assert_string_equal(out.data, mm_golden[i].out);
		mm_json(&run, &f, &p, &config, &json);
		want.n -= 2; /* "\n}" */
		assert_true(str_starts(buf_str(&json), want));
		assert_string_equal(json.data + want.n, ",\n  \"profllm\": {\n    \"x\": 1\n  }\n}");
		buf_release(&out);
		buf_release(&json);
		arena_release(&a);
		free(e2el);
	}
}

static void percentiles_are_pythons_numbers(void **state)
{
	static const struct { const char *text, *error; } row[] = {
		{ "99", NULL }, { " 50,9_0 , 1e1", NULL }, { "0,100.0", NULL },
		{ "", "could not convert string to float: ''" },
		{ "99,", "could not convert string to float: ''" },
		{ "p99", "could not convert string to float: 'p99'" },
		{ "101", "--metric-percentiles: expected numbers from 0 to 100" },
		{ "-1", "--metric-percentiles: expected numbers from 0 to 100" },
		{ "nan", "--metric-percentiles: expected numbers from 0 to 100" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct mm_percentiles p;
		struct arena a = { 0 };
		struct err e = { 0 };
		int rc = mm_percentiles(row[i].text, &p, &a, &e);

		assert_int_equal(rc, row[i].error ? -1 : 0);
		if (row[i].error) {
			assert_int_equal(e.code, ERR_USAGE);
			assert_non_null(strstr(e.text, row[i].error));
		}
		arena_release(&a);
	}
}

static void what_is_not_told_is_missing(void **state)
{
	static const char told[] = "{\"a\": {\"x_secs\": null, \"y_secs\": 0.002}, \"b\": {}, "
				   "\"c\": {\"y_secs\": 0.004, \"num_encoder_calls\": 2}}";
	struct mm_percentiles p;
	struct mm_stages s;
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(mm_percentiles("50", &p, &a, &e), 0);
	assert_int_equal(mm_stages_read(str_of(told), &p, &s, &a, &e), 0);
	assert_int_equal(s.requests, 3);
	assert_int_equal(s.n, 2);
	assert_string_equal(s.v[0].name, "y_ms");
	assert_int_equal(s.v[0].n, 2);
	assert_true(s.v[0].spread.mean == 3 && s.v[0].sum == 6);
	assert_true(s.has_encoder && s.encoder_calls == 2 && s.encoder_requests == 1);
	assert_int_equal(mm_stages_read((struct str){ 0 }, &p, &s, &a, &e), 0);
	assert_int_equal(s.n, 0);
	arena_release(&a);
}

static void what_is_no_stages_is_refused(void **state)
{
	static const char *const row[] = {
		"[]", "{\"a\": 1}", "{\"a\": {}", "3", "{\"a\": {\"x\": \"1\"}}",
		"{\"a\": {\"x\": NaN}}", "{\"a\": {\"x\": Infinity}}", "{\"a\": {\"x\": -1}}",
		"{\"a\": {\"num_encoder_calls\": 1e300}}", "{\"a\": {\"x\": [1]}}",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct mm_percentiles p = { 0 };
		struct mm_stages s;
		struct arena a = { 0 };
		struct err e = { 0 };

		assert_int_equal(mm_stages_read(str_of(row[i]), &p, &s, &a, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
		arena_release(&a);
	}
}

static void stages_are_limited(void **state)
{
	(void)state;
	for (int n = 64; n <= 65; n++) {
		struct buf told = { 0 };
		struct mm_percentiles p = { 0 };
		struct mm_stages s;
		struct arena a = { 0 };
		struct err e = { 0 };

		buf_add_text(&told, "{\"a\": {\"k0_secs\": 1}, \"b\": {");
		for (int i = 0; i < n; i++)
			buf_printf(&told, "%s\"k%d_secs\": 1", i ? ", " : "", i);
		buf_add_text(&told, "}}");
		assert_int_equal(mm_stages_read(buf_str(&told), &p, &s, &a, &e), n > 64 ? -1 : 0);
		assert_int_equal(e.code, n > 64 ? ERR_LIMIT : ERR_NONE);
		buf_release(&told);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_what_upstream_shows_and_saves),
		cmocka_unit_test(percentiles_are_pythons_numbers),
		cmocka_unit_test(what_is_not_told_is_missing),
		cmocka_unit_test(what_is_no_stages_is_refused),
		cmocka_unit_test(stages_are_limited),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
