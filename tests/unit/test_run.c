/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_point from options to scores over the null transport: the order of the
 * lines a user sees, two points at once, dry runs, cancellation.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "run/dump.h"
#include "run/point.h"
#include "run/score.h"

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

static void a_cancelled_point_keeps_its_rows(void **state)
{
	struct scored scored;
	struct run r;
	pthread_t thread;

	(void)state;
	run_init(&r, COMMON "--num-prompts 1000 --request-rate 100 --burstiness inf");
	assert_int_equal(pthread_create(&thread, NULL, run_start, &r), 0);
	nanosleep(&(struct timespec){ 0, 300000000 }, NULL);
	atomic_store(&r.cancel, true);
	pthread_join(thread, NULL);
	assert_int_equal(r.rc, 0);
	assert_true(r.point.is_interrupted);
	score_point(&r.opts, &r.derived, &r.point, &scored);
	assert_true(scored.metrics.completed > 0 && scored.metrics.completed < 900);
	assert_int_equal(scored.metrics.completed + scored.metrics.cancelled, 1000);
	assert_int_not_equal(scored.trust.verdict, TRUST_VALID);
	scored_release(&scored);
	run_release(&r);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_point_is_measured_and_scored),
		cmocka_unit_test(two_points_run_at_once),
		cmocka_unit_test(a_dry_run_sends_nothing),
		cmocka_unit_test(a_cancelled_point_keeps_its_rows),
		cmocka_unit_test(what_cannot_be_measured_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
