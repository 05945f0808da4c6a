/* SPDX-License-Identifier: Apache-2.0 */
/* What bench latency shows and saves, against upstream's own; what it doubts. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/offline/latency.h"
#include "core/json/read.h"
#include "answers.h"
#include "latency_golden.h"

static struct latency_runs runs_of(const double *v, size_t n)
{
	return (struct latency_runs){
		.latency_s = v, .n = n, .wanted = n, .warmup_s = v, .n_warmup = 1, .batch_size = 2,
		.input_len = 4, .output_len = 2, .sequences = 1,
	};
}

static void is_what_upstream_shows_and_saves(void **state)
{
	const struct latency_config config = { .model = "a/model", .ours = STR("{\"x\": {\"y\": 1}}") };

	(void)state;
	for (size_t i = 0; i < sizeof(latency_golden) / sizeof(*latency_golden); i++) {
		struct latency_runs runs = runs_of(latency_golden[i].v, latency_golden[i].n);
		struct str want = str_of(latency_golden[i].json);
		struct latency_facts f;
		struct buf out = { 0 }, json = { 0 };
		struct json_value *tree;
		struct arena a = { 0 };
		struct err e = { 0 };

		latency_facts(&runs, &f);
		buf_add_text(&out, "Warming up...\n");
		latency_terminal(&f, &out);
		assert_string_equal(out.data, latency_golden[i].out);
		latency_json(&runs, &f, &config, &json);
		want.n -= 2; /* "\n}" */
		assert_true(str_starts(buf_str(&json), want));
		assert_int_equal(strncmp(json.data + want.n, ",\n    \"profllm\": {\n        \"x\": {\n", 34),
				 0);
		assert_int_equal(json_parse(&a, buf_str(&json), &tree, &e), 0);
		assert_int_equal(tree->count, 5);
		assert_int_equal(json_get(json_get(tree, "profllm"), "warmup_latencies")->count, 1);
		arena_release(&a);
		answers_release(&out);
		buf_release(&json);
	}
}

static void doubts_have_thresholds(void **state)
{
	static const double steady[] = { 1, 1.001, 0.999, 1, 1.001, 0.999, 1, 1.002, 1 };
	static const double drift[] = { 1, 1.01, 0.99, 1.05, 1.05, 1.05, 1.1, 1.11, 1.09 };
	static const double noise[] = { 1, 1.5, 0.7, 1.2, 0.6, 1.4, 1.5, 0.7, 1 };
	static const double first[] = { 3, 1, 1.001, 0.999, 1, 1.001, 0.999, 1, 1.002 };
	static const struct {
		const double *v;
		size_t n, wanted, warm;
		double outside_s;
		uint64_t tokens; /* 0: not reported */
		unsigned doubts;
	} row[] = {
		{ steady, 9, 9, 1, 0.1, 36, 0 },
		{ steady, 9, 9, 1, 0.5, 36, LATENCY_OUTSIDE },
		{ steady, 9, 30, 1, 0, 0, LATENCY_STOPPED },
		{ steady, 9, 9, 1, 0, 35, LATENCY_SHORT },
		{ drift, 9, 9, 1, 0, 0, LATENCY_DRIFTS },
		{ drift, 5, 5, 1, 0, 0, LATENCY_FEW },
		{ noise, 9, 9, 1, 0, 0, LATENCY_SPREADS },
		{ first, 9, 9, 0, 0, 0, LATENCY_SPREADS | LATENCY_FIRST_SLOW },
		{ first, 9, 9, 1, 0, 0, LATENCY_SPREADS },
		{ first, 0, 3, 0, 0, 0, LATENCY_STOPPED },
		{ steady, 6, 6, 1, 0, 23, LATENCY_SHORT },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct latency_runs runs = runs_of(row[i].v, row[i].n);
		struct latency_facts f;
		struct buf out = { 0 };

		runs.wanted = row[i].wanted;
		runs.n_warmup = row[i].warm;
		runs.outside_s = row[i].outside_s;
		runs.has_counts = row[i].tokens != 0;
		runs.output_tokens = row[i].tokens;
		latency_facts(&runs, &f);
		assert_int_equal(f.doubts, row[i].doubts);
		latency_terminal_ours(&runs, &f, &out);
		if (row[i].n)
			assert_true(!f.doubts == !!strstr(out.data, "Verdict: VALID"));
		answers_release(&out);
	}
}

static void tokens_are_counted_or_asked_for(void **state)
{
	static const double v[] = { 0.5, 0.5 };
	struct latency_runs runs = runs_of(v, 2);
	struct latency_facts f;

	(void)state;
	runs.sequences = 3;
	latency_facts(&runs, &f);
	assert_true(f.prompt_tokens == 8 && f.output_tokens == 12 && f.expected_tokens == 24);
	assert_true(f.output_tokens_per_s == 24 && f.total_tokens_per_s == 40);
	assert_true(f.s_per_token == 0.25);
	runs.has_counts = true;
	runs.prompt_tokens = 20;
	runs.output_tokens = 24;
	latency_facts(&runs, &f);
	assert_true(f.prompt_tokens == 10 && f.output_tokens == 12 && f.doubts == LATENCY_FEW);
}

static void outliers_are_far_from_the_median(void **state)
{
	static const double v[] = { 1, 1.01, 0.99, 1.02, 0.98, 1, 1.01, 0.99, 2, 0.1 };
	struct latency_runs runs = runs_of(v, 10);
	struct latency_facts f;

	(void)state;
	latency_facts(&runs, &f);
	assert_int_equal(f.outliers, 2);
	assert_true(f.mean_95.low < f.mean_s && f.mean_s < f.mean_95.high);
}

/* Of few values a normal variable's interval would promise too much: t is 12.71 for two. */
static void few_iterations_know_their_mean_badly(void **state)
{
	static const double v[] = { 1, 3 };
	struct latency_runs runs = runs_of(v, 2);
	struct latency_facts f;
	struct buf out = { 0 };

	(void)state;
	latency_facts(&runs, &f);
	assert_true(fabs(f.mean_95.high - (2 + 12.706205)) < 1e-5);
	assert_true(fabs(f.mean_95.low - (2 - 12.706205)) < 1e-5);
	latency_terminal_ours(&runs, &f, &out);
	assert_non_null(strstr(out.data, "Output (asked for, not counted): "));
	answers_release(&out);
	runs.output_len = INT64_MAX;
	runs.sequences = INT64_MAX;
	runs.has_counts = true;
	latency_facts(&runs, &f);
	assert_true(f.expected_tokens == UINT64_MAX && f.doubts & LATENCY_SHORT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_what_upstream_shows_and_saves),
		cmocka_unit_test(doubts_have_thresholds),
		cmocka_unit_test(tokens_are_counted_or_asked_for),
		cmocka_unit_test(outliers_are_far_from_the_median),
		cmocka_unit_test(few_iterations_know_their_mean_badly),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
