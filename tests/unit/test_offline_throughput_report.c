/* SPDX-License-Identifier: Apache-2.0 */
/* What bench throughput shows and saves, against upstream's own; what it doubts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/offline/throughput.h"
#include "core/json/read.h"
#include "answers.h"
#include "throughput_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static void is_what_upstream_shows_and_saves(void **state)
{
	const struct throughput_config config = { .model = "a/model", .ours = STR("{\"x\": 1}") };
	static const char ours[] = ",\n    \"profllm\": {\n        \"x\": 1,\n        \"n\": ";

	(void)state;
	for (size_t i = 0; i < COUNT(throughput_golden); i++) {
		const struct throughput_runs runs = {
			.elapsed_s = &throughput_golden[i].elapsed_s, .n_runs = 1,
			.n = throughput_golden[i].requests, .finished = SIZE_MAX,
			.sequences = throughput_golden[i].n,
			.has_counts = throughput_golden[i].is_counted,
			.prompt_tokens = throughput_golden[i].counted[0],
			.output_tokens = throughput_golden[i].counted[1],
			.requested_prompt_tokens = throughput_golden[i].asked[0],
			.requested_output_tokens = throughput_golden[i].asked[1],
			.is_multimodal = throughput_golden[i].has_media,
			.backend = throughput_golden[i].backend,
		};
		struct str want = str_of(throughput_golden[i].json);
		struct buf out = { 0 }, json = { 0 };
		struct throughput_facts f;
		struct json_value *tree;
		struct arena a = { 0 };
		struct err e = { 0 };

		throughput_facts(&runs, &f);
		throughput_terminal(&runs, &f, &out);
		assert_string_equal(out.data, throughput_golden[i].out);
		throughput_json(&runs, &f, &config, &json);
		want.n -= 2; /* "\n}" */
		assert_true(str_starts(buf_str(&json), want));
		assert_int_equal(strncmp(json.data + want.n, ours, strlen(ours)), 0);
		assert_int_equal(json_parse(&a, buf_str(&json), &tree, &e), 0);
		assert_int_equal(tree->count, 7);
		arena_release(&a);
		answers_release(&out);
		buf_release(&json);
	}
}

struct doubtful {
	const char *what;
	double elapsed_s[3];
	size_t n_runs, finished;
	bool as_requested, has_counts, is_profiled, has_media;
	const char *backend;
	uint64_t prompt, output;  /* of 100 and 50 that were asked for */
	double outside_s;
	unsigned doubts;
};

static const struct doubtful doubtful[] = {
	{ "nothing", { 10 }, 1, 4, false, true, false, false, "vllm", 100, 50, 0.4, 0 },
	{ "brief", { 0.9 }, 1, 4, false, true, false, false, "vllm", 100, 50, 0, THROUGHPUT_BRIEF },
	{ "answers that are missing", { 10 }, 1, 3, false, true, false, false, "vllm", 100, 50, 0,
	  THROUGHPUT_UNFINISHED },
	{ "shorter answers", { 10 }, 1, 4, false, true, false, false, "vllm", 100, 49, 0,
	  THROUGHPUT_FEWER },
	{ "asked for, and not told", { 10 }, 1, 4, true, false, false, false, "hf", 0, 0, 0, 0 },
	{ "asked for, and so counted", { 10 }, 1, 4, true, true, false, false, "vllm", 100, 50, 0, 0 },
	{ "asked for, and counted otherwise", { 10 }, 1, 4, true, true, false, false, "vllm", 104, 50, 0,
	  THROUGHPUT_REQUESTED },
	{ "a profiler", { 10 }, 1, 4, false, true, true, false, "vllm", 100, 50, 0,
	  THROUGHPUT_PROFILED },
	{ "media", { 10 }, 1, 4, false, true, false, true, "vllm", 300, 50, 0, THROUGHPUT_MEDIA },
	{ "media that are counted", { 10 }, 1, 4, false, true, false, true, "sim", 300, 50, 0, 0 },
	{ "media that are not", { 10 }, 1, 4, false, true, false, true, "sim", 100, 50, 0,
	  THROUGHPUT_MEDIA },
	{ "media of chats", { 10 }, 1, 4, false, true, false, true, "vllm-chat", 100, 50, 0, 0 },
	{ "an outside", { 10 }, 1, 4, false, true, false, false, "vllm", 100, 50, 0.6,
	  THROUGHPUT_OUTSIDE },
	{ "runs alike", { 10, 9.5, 9.4 }, 3, 4, false, true, false, false, "vllm", 100, 50, 0, 0 },
	{ "runs apart", { 10, 8, 8 }, 3, 4, false, true, false, false, "vllm", 100, 50, 0,
	  THROUGHPUT_APART },
};

static void doubts_are_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(doubtful); i++) {
		const struct doubtful *d = &doubtful[i];
		const struct throughput_runs runs = {
			.elapsed_s = d->elapsed_s, .n_runs = d->n_runs, .n = 4,
			.finished = d->finished, .sequences = 1,
			.is_as_requested = d->as_requested, .has_counts = d->has_counts,
			.prompt_tokens = d->prompt, .output_tokens = d->output,
			.requested_prompt_tokens = 100, .requested_output_tokens = 50,
			.is_multimodal = d->has_media, .is_profiled = d->is_profiled,
			.backend = d->backend, .outside_s = d->outside_s,
		};
		struct throughput_facts f;
		struct buf out = { 0 };
		unsigned lines = 0;

		throughput_facts(&runs, &f);
		if (f.doubts != d->doubts)
			fail_msg("%s: doubts %x, not %x", d->what, f.doubts, d->doubts);
		throughput_terminal_ours(&runs, &f, &out);
		assert_int_equal(strstr(out.data, "Verdict: VALID") != NULL, !d->doubts);
		for (const char *p = out.data; (p = strstr(p, "\n  ")); p++)
			lines++;
		/* And what to do. */
		assert_int_equal(lines, __builtin_popcount(d->doubts) + (d->doubts != 0));
		answers_release(&out);
	}
}

static double number(const struct json_value *v)
{
	assert_non_null(v);
	return v->kind == JSON_INT ? (double)v->integer : v->real;
}

/* Upstream's numbers are of the requested tokens; ours, in addition, of the counted ones. */
/* text NULL: any. */
static void assert_reason(const struct json_value *ours, size_t i, const char *code,
			  const char *text)
{
	const struct json_value *reasons = json_get(ours, "reasons");

	assert_true(i < reasons->count);
	assert_true(str_is(json_get(&reasons->item[i], "code")->text, code));
	if (text)
		assert_true(str_is(json_get(&reasons->item[i], "text")->text, text));
}

static void both_counts_are_saved(void **state)
{
	static const double elapsed[] = { 2, 4, 3 }, e2el[] = { 1, 2, 0.5, 1.5 };
	const struct throughput_runs runs = {
		.elapsed_s = elapsed, .n_runs = 3, .n = 4, .finished = 4, .sequences = 2,
		.is_as_requested = true, .has_counts = true, .wanted = 5,
		.prompt_tokens = 110, .output_tokens = 90,
		.requested_prompt_tokens = 100, .requested_output_tokens = 50, .backend = "vllm",
		.e2el_s = e2el, .n_e2el = 4,
	};
	const struct throughput_config config = { .model = "m", .ours = STR("{}") };
	struct throughput_facts f;
	struct buf json = { 0 };
	struct json_value *tree, *ours;
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	throughput_facts(&runs, &f);
	throughput_json(&runs, &f, &config, &json);
	assert_int_equal(json_parse(&a, buf_str(&json), &tree, &e), 0);
	ours = json_get(tree, "profllm");
	assert_true(number(json_get(tree, "elapsed_time")) == 2);
	assert_true(number(json_get(tree, "total_num_tokens")) == 150);
	assert_true(number(json_get(ours, "counted_tokens_per_second")) == 100);
	assert_true(number(json_get(ours, "output_tokens_per_second")) == 25);
	assert_true(number(json_get(ours, "counted_output_tokens_per_second")) == 45);
	assert_true(number(json_get(ours, "median_requests_per_second")) == 4.0 / 3);
	assert_true(number(json_get(json_get(ours, "request_time_percentiles"), "50")) == 1.25);
	assert_reason(ours, 0, "interrupted", "Stopped after 3 of 5 runs.");
	assert_reason(ours, 1, "short_answers", NULL);
	assert_reason(ours, 2, "requested_tokens", NULL);
	assert_reason(ours, 3, "runs_apart", NULL);
	assert_true(str_is(json_get(ours, "verdict")->text, "DEGRADED"));
	arena_release(&a);
	buf_release(&json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_what_upstream_shows_and_saves),
		cmocka_unit_test(doubts_are_told),
		cmocka_unit_test(both_counts_are_saved),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
