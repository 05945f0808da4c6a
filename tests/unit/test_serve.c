/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_point from options to scores over the null transport: the order of the
 * lines a user sees, two points at once, dry runs, cancellation; what is
 * known before there is a server.
 *
 * threads: yes
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/serve/build_workload.h"
#include "bench/serve/point.h"
#include "bench/serve/point_internal.h"
#include "bench/serve/score.h"

struct run {
	struct serve_opts opts;
	struct serve_derived derived;
	struct opt_result result;
	struct arena arena;
	struct run_hooks hooks;
	struct point point;
	struct buf lines;
	uint64_t progress;
	atomic_bool cancel;
	struct err e;
	int rc;
};

static void on_line(void *self, const char *text)
{
	struct run *r = self;

	buf_printf(&r->lines, "%s\n", text);
}

static void on_progress(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			const struct load_progress *load)
{
	struct run *r = self;

	(void)total;
	if (stage == STAGE_MAIN && load)
		r->progress = done;
}

static void run_init(struct run *r, const char *arguments)
{
	char *argv[64], *word, *rest;
	int argc = 0;

	memset(r, 0, sizeof(*r));
	rest = arena_text(&r->arena, str_of(arguments));
	while ((word = strsep(&rest, " ")))
		argv[argc++] = word;
	assert_int_equal(opt_parse(&serve_opt_set, argc, argv, &r->opts, &r->result, &r->arena,
				   &r->e), 0);
	serve_opts_fill(&r->opts, &r->arena);
	r->rc = serve_opts_check(&r->opts, &r->result, &r->arena, &r->derived, &r->e);
	r->hooks = (struct run_hooks){ .self = r, .line = on_line, .progress = on_progress,
				       .cancel = &r->cancel, .transport = &transport_null };
}

static void *run_start(void *arg)
{
	struct run *r = arg;

	if (r->rc == 0)
		r->rc = run_point(&r->opts, &r->derived, &r->hooks, &r->point, &r->e);
	return NULL;
}

static void run_release(struct run *r)
{
	point_release(&r->point);
	opt_result_release(&r->result);
	buf_release(&r->lines);
	arena_release(&r->arena);
}

#define COMMON "--model sim --tokenizer sim --temperature 0 --random-input-len 32 " \
	       "--random-output-len 4 "

static void a_point_is_measured_and_scored(void **state)
{
	struct scored scored;
	struct run r;

	(void)state;
	run_init(&r, COMMON "--num-prompts 200 --max-concurrency 8 --num-warmups 2 "
		 "--ready-check-timeout-sec 5");
	run_start(&r);
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.lines.data,
		"Starting initial single prompt test run...\n"
		"Waiting for endpoint to become up in 5 seconds\n"
		"Initial test run completed.\n"
		"Warming up with 2 requests...\n"
		"Warmup run completed.\n"
		"Starting main benchmark run...\n"
		"Traffic request rate: inf\n"
		"Burstiness factor: 1.0 (Poisson process)\n"
		"Maximum request concurrency: 8\n");
	assert_int_equal(r.progress, 200);
	score_point(&r.opts, &r.derived, &r.point, &scored);
	assert_int_equal(scored.metrics.completed, 200);
	assert_int_equal(scored.metrics.total_output, 800);
	assert_int_equal(scored.metrics.total_input, 1600); /* the null server's usage says 8 */
	scored_release(&scored);
	run_release(&r);
}

/* Nothing is global: two points in one process do not see each other. */
static void two_points_run_at_once(void **state)
{
	struct run r[2];
	pthread_t thread[2];

	(void)state;
	run_init(&r[0], COMMON "--num-prompts 300 --seed 1");
	run_init(&r[1], COMMON "--num-prompts 500 --seed 2 --max-concurrency 4");
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&thread[i], NULL, run_start, &r[i]), 0);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	for (int i = 0; i < 2; i++) {
		struct scored scored;

		assert_int_equal(r[i].rc, 0);
		score_point(&r[i].opts, &r[i].derived, &r[i].point, &scored);
		assert_int_equal(scored.metrics.completed, i ? 500 : 300);
		scored_release(&scored);
		run_release(&r[i]);
	}
}

static void a_dry_run_sends_nothing(void **state)
{
	struct buf text = { 0 };
	struct run r;

	(void)state;
	run_init(&r, COMMON "--num-prompts 10 --dry-run --request-rate 5");
	run_start(&r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.point.record.n_rows, 0);
	assert_int_equal(r.point.plan.n, 10);
	assert_true(r.point.plan.entry[9].due_s == 2.0); /* rescaled to N / rate */
	dump_summary(&r.point.workload, &r.point.plan, &text);
	assert_non_null(strstr(text.data, "10 requests from dataset random; 320 prompt tokens, "
					  "40 output tokens"));
	buf_reset(&text);
	dump_workload(&r.point.workload, &r.point.plan, "r", &text);
	assert_int_equal(strncmp(text.data, "{\"index\": 0, \"request_id\": \"bench-", 34), 0);
	buf_release(&text);
	run_release(&r);
}

/* False: it was cancelled before a request had ended, as on a busy machine. */
static bool is_cancelled_within(int64_t ns)
{
	struct timespec nap = { ns / 1000000000, ns % 1000000000 };
	struct scored scored;
	struct run r;
	pthread_t thread;
	bool has_some;

	run_init(&r, COMMON "--num-prompts 1000 --request-rate 100 --burstiness inf");
	assert_int_equal(pthread_create(&thread, NULL, run_start, &r), 0);
	nanosleep(&nap, NULL);
	atomic_store(&r.cancel, true);
	pthread_join(thread, NULL);
	has_some = r.rc == 0;
	if (has_some) {
		assert_true(r.point.is_interrupted);
		score_point(&r.opts, &r.derived, &r.point, &scored);
		has_some = scored.metrics.completed > 0;
		assert_true(scored.metrics.completed < 900);
		assert_int_equal(scored.metrics.completed + scored.metrics.cancelled, 1000);
		assert_int_not_equal(scored.trust.verdict, TRUST_VALID);
		scored_release(&scored);
	}
	run_release(&r);
	return has_some;
}

static void a_cancelled_point_keeps_its_rows(void **state)
{
	int64_t ns = 300000000;

	(void)state;
	while (!is_cancelled_within(ns)) {
		assert_true(ns < 5000000000);
		ns *= 3;
	}
}

static void what_cannot_be_measured_says_why(void **state)
{
	static const struct { const char *arguments; const char *want; } row[] = {
		{ "--model no/such --num-prompts 1", "no tokenizer for model no/such" },
		{ "--model m --tokenizer sim --dataset-name custom", "needs --dataset-path" },
		{ "--model m --tokenizer sim --backend openai-chat --endpoint /v1/completions",
		  "needs a URL that ends with chat/completions" },
		{ "--model m --skip-tokenizer-init", "needs a tokenizer" },
		{ COMMON "--header Content-Length=1", "set by profllm itself" },
		{ COMMON "--num-prompts 0", "--num-prompts: expected at least 1, got 0" },
		{ COMMON "--num-prompts 10 --max-concurrency 100000000 --num-prompts 30000000 "
		  "--dry-run --random-input-len 0", "too small" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct run r;

		run_init(&r, row[i].arguments);
		run_start(&r);
		assert_int_equal(r.rc, -1);
		if (!strstr(r.e.text, row[i].want))
			fail_msg("row %zu: %s", i, r.e.text);
		run_release(&r);
	}
}

/* ---- before there is a server ---- */

static void on_warn(void *self, const char *text)
{
	on_line(self, text);
}

static void dump(const struct run *r, struct buf *out)
{
	assert_int_equal(r->rc, 0);
	dump_workload(&r->point.workload, &r->point.plan, "p-", out);
	buf_add_str(out, buf_str(&r->lines));
}

/* The same bytes at the same times, and the same is said. */
static void early_requests_are_the_runs_own(void **state)
{
	static const char *const row[] = {
		COMMON "--num-prompts 40 --tokenizer-mode slow ",
		COMMON "--num-prompts 40 --random-range-ratio 0.5 --lora-modules a b --seed 9 ",
		"--model sim --tokenizer sim --temperature 0 --dataset-name prefix_repetition "
		"--prefix-repetition-prefix-len 20 --prefix-repetition-suffix-len 10 --num-prompts 40 ",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct buf text = { 0 }, plain = { 0 }, taken = { 0 };
		struct point_early early = { 0 };
		struct run r[2];

		buf_printf(&text, "%s--request-rate 7 --request-id-prefix p- --dry-run", row[i]);
		for (int k = 0; k < 2; k++) {
			run_init(&r[k], text.data);
			r[k].hooks.warn = on_warn;
		}
		assert_int_equal(run_point_early(&r[1].opts, &r[1].derived, &r[1].hooks, &early,
						 &r[1].e), 0);
		assert_true(early.is_whole && early.has_tokenizer);
		assert_int_equal(early.n_requests, 40);
		assert_int_equal(r[1].lines.len, 0);
		r[1].hooks.early = &early;
		for (int k = 0; k < 2; k++)
			run_start(&r[k]);
		assert_false(early.is_whole);
		assert_int_equal(early.point.workload.n, 0);
		dump(&r[0], &plain);
		dump(&r[1], &taken);
		assert_string_equal(taken.data, plain.data);
		for (int k = 0; k < 2; k++)
			run_release(&r[k]);
		point_early_release(&early);
		buf_release(&text);
		buf_release(&plain);
		buf_release(&taken);
	}
}

/* Salts are no part of what a server is asked about lengths: such requests are made again. */
static void salted_requests_are_made_again(void **state)
{
	struct point_early early = { 0 };
	struct run r;

	(void)state;
	run_init(&r, COMMON "--num-prompts 4 --prompt-salt run:k");
	assert_int_equal(run_point_early(&r.opts, &r.derived, &r.hooks, &early, &r.e), 0);
	assert_false(early.is_whole);
	point_early_release(&early);
	run_release(&r);
}

static void what_the_server_gives_is_waited_for(void **state)
{
	static const char *const row[] = {
		"--model no/such --num-prompts 5", "--num-prompts 5",
		"--model no/such --num-prompts 20 --dataset-name prefix_repetition",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct point_early early = { 0 };
		struct run r;

		run_init(&r, row[i]);
		assert_int_equal(run_point_early(&r.opts, &r.derived, &r.hooks, &early, &r.e), 0);
		assert_int_not_equal(early.waits.code, ERR_NONE);
		assert_false(early.is_whole || early.has_tokenizer);
		point_early_release(&early);
		run_release(&r);
	}
}

static void mistakes_are_found_without_a_server(void **state)
{
	static const struct {
		const char *arguments;
		enum point_part part;
		const char *want;
	} row[] = {
		{ "--model m --tokenizer /no/such", PART_TOKENIZER, "no tokenizer \"/no/such\"" },
		{ COMMON "--dataset-name custom", PART_DATASET, "needs --dataset-path" },
		{ COMMON "--dataset-name mix", PART_DATASET, "needs --mix" },
		{ COMMON "--dataset-name sharegpt --dataset-path /no/such.json", PART_DATASET,
		  "/no/such.json" },
		{ "--model no/such --dataset-name sharegpt --dataset-path /no/such.json",
		  PART_DATASET, "/no/such.json" },
		{ COMMON "--random-input-len 0", PART_DATASET, "--random-input-len 0 is too small" },
		{ "--model no/such --random-input-len 0", PART_DATASET,
		  "--random-input-len 0 is too small" },
		{ COMMON "--random-input-len-dist foo", PART_DATASET, "--random-input-len-dist" },
		{ COMMON "--dataset-name random-mm", PART_DATASET, "on backend 'openai'" },
		{ COMMON "--backend openai-chat --endpoint /v1/completions", PART_OPTIONS,
		  "ends with" },
		{ COMMON "--record /no/such", PART_RECORD, "--record: cannot write /no/such" },
		{ COMMON "--record /", PART_RECORD, "--record: / is a folder" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct point_early early = { 0 };
		struct run r;

		run_init(&r, row[i].arguments);
		assert_int_equal(r.rc, 0);
		r.rc = run_point_early(&r.opts, &r.derived, &r.hooks, &early, &r.e);
		if (r.rc == 0 || early.part != row[i].part || !strstr(r.e.text, row[i].want))
			fail_msg("row %zu: %d, part %d: %s", i, r.rc, (int)early.part, r.e.text);
		assert_false(early.is_whole);
		point_early_release(&early);
		run_release(&r);
	}
}

static int by_engine(void *self, struct str messages, struct str tools, struct buf *text,
		     struct err *e)
{
	(void)e;
	buf_printf(text, "engine %.*s %.*s", (int)messages.n, messages.p, (int)tools.n, tools.p);
	return *(const int *)self;
}

/* Messages that a known template only surrounds need nothing else; others are asked for. */
static void messages_become_text(void **state)
{
#define USER "[{\"role\": \"user\", \"content\": \"hi\"}]"
#define BOTH "[{\"role\": \"system\", \"content\": \"be\"}, {\"role\": \"user\", \"content\": \"hi\"}]"
	static const char *const others[] = {
		"[{\"role\": \"assistant\", \"content\": \"hi\"}]", "[{\"role\": \"user\", \"content\": [1]}]",
		"[{\"role\": \"user\"}]", "[" USER "]", "{}", "[", "[]",
		"[{\"role\": \"user\", \"content\": \"hi\"}, {\"role\": \"user\", \"content\": \"hi\"}]",
	};
	struct tokenizer_load_opts opts = { 0 };
	struct err e = { 0 };
	struct tokenizer *t = tokenizer_load("sim", &opts, &e);
	struct chat_wrap wrap = { .source = CHAT_FLAGS, .prefix = STR("<"), .suffix = STR(">"),
				  .system_prefix = STR("("), .system_middle = STR("|") };
	int rc = 0;
	struct run_renderer r = { .wrap = &wrap, .tokenizer = t, .by = by_engine, .by_self = &rc };
	struct buf text = { 0 };

	(void)state;
	assert_int_equal(run_render(&r, STR(USER), STR(""), &text, &e), 0);
	assert_string_equal(text.data, "<hi>");
	buf_reset(&text);
	assert_int_equal(run_render(&r, STR(BOTH), STR(""), &text, &e), 0);
	assert_string_equal(text.data, "engine " BOTH " ");
	wrap.has_system = true;
	buf_reset(&text);
	assert_int_equal(run_render(&r, STR(BOTH), STR(""), &text, &e), 0);
	assert_string_equal(text.data, "(be|hi>");
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		buf_reset(&text);
		assert_int_equal(run_render(&r, str_of(others[i]), STR(""), &text, &e), 0);
		assert_memory_equal(text.data, "engine ", 7);
	}
	buf_reset(&text);
	assert_int_equal(run_render(&r, STR(USER), STR("[tools]"), &text, &e), 0);
	assert_string_equal(text.data, "engine " USER " [tools]");
	buf_reset(&text);
	r.kwargs = STR("{\"a\": 1}");
	rc = -1;
	assert_int_equal(run_render(&r, STR(USER), STR(""), &text, &e), -1);
	assert_string_equal(text.data, "engine " USER " ");
	r = (struct run_renderer){ .wrap = &wrap, .tokenizer = t };
	assert_int_equal(run_render(&r, STR("[]"), STR(""), &text, &e), -1);
	assert_int_equal(e.code, ERR_RUN);
	assert_string_equal(e.text, "the chat template of sim is unknown for such messages, and a dry run does "
			    "not ask the server");
	wrap.source = CHAT_NONE;
	assert_int_equal(run_render(&r, STR(USER), STR(""), &text, &e), -1);
	buf_release(&text);
	tokenizer_free(t);
}

/* Prompt tokens of a turn after another answer than planned; neither usage nor a tokenizer. */
static void missing_counts_are_estimated(void **state)
{
	static const struct {
		uint32_t history, sample, before, want;
		uint8_t state;
		uint16_t flags;
	} of[] = {
		{ RECORD_NONE, 10, 10, 10, REQ_DONE, 0 },
		{ 0, 30, 0, 10 + 20 + 5 - 8, REQ_DONE, 0 },
		{ 1, 70, 0, 27 + 40 + 5 - 8, REQ_DONE, 0 },
		{ 0, 30, 50, 50, REQ_DONE, ROW_HAS_USAGE },
		{ 0, 2, 0, 0, REQ_DONE, 0 },
		{ 0, 30, 9, 9, REQ_FAILED, 0 },
	};
	struct request_row row[sizeof(of) / sizeof(*of)] = { 0 };
	struct record r = { .row = row, .n_rows = sizeof(of) / sizeof(*of) };

	(void)state;
	for (uint32_t i = 0; i < r.n_rows; i++) {
		row[i].history = of[i].history;
		row[i].sample_prompt_tokens = of[i].sample;
		row[i].prompt_tokens = of[i].before;
		row[i].state = of[i].state;
		row[i].flags = of[i].flags;
		row[i].output_tokens = i == 3 ? 0 : 5;
		row[i].asked_tokens = 8;
	}
	count_missing(&r, NULL, false);
	for (uint32_t i = 0; i < r.n_rows; i++) {
		assert_int_equal(row[i].prompt_tokens, of[i].want);
		assert_int_equal(row[i].output_tokens, i == 3 ? 1 : 5);
		assert_int_equal(row[i].flags, of[i].flags | (i == 3 ? ROW_COUNT_UNKNOWN : 0));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_is_measured_and_scored),
		cmocka_unit_test(two_points_run_at_once),
		cmocka_unit_test(a_dry_run_sends_nothing),
		cmocka_unit_test(a_cancelled_point_keeps_its_rows),
		cmocka_unit_test(what_cannot_be_measured_says_why),
		cmocka_unit_test(early_requests_are_the_runs_own),
		cmocka_unit_test(salted_requests_are_made_again),
		cmocka_unit_test(what_the_server_gives_is_waited_for),
		cmocka_unit_test(mistakes_are_found_without_a_server),
		cmocka_unit_test(messages_become_text),
		cmocka_unit_test(missing_counts_are_estimated),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
