/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_find.c - the search for the largest load against simulators: which runs it makes, what
 * it takes of them, and how it ends. What the answer is of a machine's speed is not compared.
 *
 * threads: yes
 */
#include <math.h>

#include "bench/sweep/find.h"
#include "verb.h"

struct search {
	struct find f;
	struct find_hooks hooks;
	struct buf steps, warnings;
	atomic_bool cancel;
	unsigned cancel_at; /* the step that is interrupted, from 1; 0: none */
	unsigned n, levels;
	double most; /* the largest load that was tried */
	struct err e;
	int rc;
};

static void on_warn(void *self, const char *text)
{
	buf_printf(&((struct search *)self)->warnings, "%s\n", text);
}

static void on_begun(void *self, const struct find *f)
{
	static const char *const name[] = { "probe", "unloaded", "saturate", "level", "done" };
	struct search *s = self;

	buf_printf(&s->steps, "%s%s", s->n ? " " : "", name[f->step.ask]);
	if (++s->n == s->cancel_at)
		atomic_store(&s->cancel, true);
}

static void on_ended(void *self, const struct find *f)
{
	struct search *s = self;

	if (f->step.ask != CAPACITY_LEVEL)
		return;
	s->levels++;
	assert_true(f->level.load == f->step.load);
	assert_true(f->level.spent_s > 0 && f->level.requests > 0 &&
		    f->level.attempted <= f->level.requests);
	s->most = fmax(s->most, f->level.load);
}

#define TO \
	" --model sim --tokenizer sim --ready-check-timeout-sec 0 --random-input-len 4 --random-output-len 2" \
	" --request-id-prefix t- --metrics-interval 0.05 "

static void search(struct search *s, const struct find_opts *how, const char *words,
		   const char *slo)
{
	char *argv[VERB_WORDS_MAX + 1];
	struct find_opts *o = mem_alloc(sizeof(*o));
	static struct arena a;
	int n;

	n = verb_words(verb_filled(words), argv);
	*o = *how;
	o->argc = n - 1;
	o->argv = argv + 1;
	assert_int_equal(slo_parse("--slo", slo, &a, &o->slo, &s->e), 0);
	s->hooks = (struct find_hooks){ .self = s,
					.warn = on_warn,
					.begun = on_begun,
					.ended = on_ended,
					.cancel = &s->cancel };
	s->rc = find_run(o, &s->hooks, &s->f, &s->e);
	buf_add_char(&s->steps, '\0');
	buf_add_char(&s->warnings, '\0');
}

static void release(struct search *s)
{
	free((void *)(uintptr_t)s->f.opts);
	find_release(&s->f);
	buf_release(&s->steps);
	buf_release(&s->warnings);
}

/* The server has one request at a time, each for 20 ms. */
static void one_at_a_time(void **state)
{
	static const struct find_opts how = { .load = CAPACITY_CONCURRENCY,
					      .precision = 0.3,
					      .budget_s = 60,
					      .level_s = 0.2,
					      .load_max = 2 };
	struct search s = { .n = 0 };

	(void)state;
	search(&s, &how, "--base-url http://127.0.0.1:$Q" TO "--num-prompts 7", "p50_e2el_ms<1000");
	if (s.rc < 0)
		fail_msg("%s", s.e.text);
	assert_memory_equal(s.steps.data, "probe unloaded saturate level", 29);
	assert_int_equal(s.f.runs, 3 + s.levels);
	assert_true(s.most == 2 && capacity_answer(s.f.search).end == CAPACITY_ALL_PASS);
	assert_int_equal(s.f.saturation.requests, 200);
	assert_true(s.f.saturation.at_once == 1 && s.f.saturation.spent_s > 0);
	/* One at a time, each for at least 2.5 ms, or all of them at the end of a stall. */
	assert_true(s.f.saturation.per_s > 0 && s.f.saturation.per_s <= 400);
	assert_string_equal(s.f.model, "sim");
	assert_true(s.f.salt == SALT_RUN && *s.f.salt_key);
	assert_string_equal(s.warnings.data,
			    "--num-prompts has no effect in a search: each level has as many "
			    "prompts as its time needs\n");
	release(&s);
}

/* One request of each run fails: of few that is too much, however few are at once. */
static void refused(void **state)
{
	static const struct find_opts how = {
		.load = CAPACITY_CONCURRENCY, .precision = 0.3, .budget_s = 6, .level_s = 0.6
	};
	static const struct find_opts rate = {
		.load = CAPACITY_RATE, .precision = 0.3, .budget_s = 6, .level_s = 0.6
	};
	struct search s = { .n = 0 }, lower = { .cancel_at = 4 };

	(void)state;
	search(&s, &how, "--base-url http://127.0.0.1:$B" TO, "p50_e2el_ms<1000");
	assert_int_equal(s.rc, -1);
	assert_string_equal(s.e.text, "requests fail even one at a time: Service Unavailable");
	assert_string_equal(s.steps.data, "probe unloaded saturate");
	/* all at once, then 100, 50, 25, 12, 6, 3 and 1 at once, at least 50 of them */
	assert_int_equal(s.f.runs, 2 + 8);
	assert_int_equal(s.f.saturation.requests, 200 + 500 + 250 + 125 + 60 + 3 * 50);
	assert_true(s.f.saturation.at_once == 1);
	release(&s);
	/* Of a limit on the rate that says nothing: a lower rate may pass. */
	search(&lower, &rate, "--base-url http://127.0.0.1:$B" TO, "p50_e2el_ms<1000");
	assert_int_equal(lower.rc, 0);
	assert_string_equal(lower.steps.data, "probe unloaded saturate level");
	release(&lower);
}

/* The server ends while a level runs: that is no overload. */
static void dies(void **state)
{
	static const struct find_opts how = { .load = CAPACITY_CONCURRENCY,
					      .precision = 0.3,
					      .budget_s = 60,
					      .level_s = 0.2,
					      .load_min = 2 };
	struct search s = { .n = 0 };

	(void)state;
	search(&s, &how, "--base-url http://127.0.0.1:$D" TO, "p50_e2el_ms<1000");
	assert_int_equal(s.rc, -1);
	assert_memory_equal(
		s.e.text, "the server stopped answering at 2 requests at once: cannot connect to ",
		70);
	assert_string_equal(s.steps.data, "probe unloaded saturate level");
	assert_int_equal(s.f.runs, 5);
	assert_int_equal(s.levels, 0);
	release(&s);
}

static void interrupted(void **state)
{
	static const struct find_opts how = { .load = CAPACITY_RATE,
					      .precision = 0.3,
					      .budget_s = 60,
					      .level_s = 0.2,
					      .load_max = 90 };
	struct search s = { .cancel_at = 4 };

	(void)state;
	/* Ten prefixes unless given, more than the probe has prompts. */
	search(&s, &how, "--base-url http://127.0.0.1:$Q --prompt-salt run:abc --dataset-name "
	       "prefix_repetition --prefix-repetition-prefix-len 4 --prefix-repetition-suffix-len 2 "
	       "--prefix-repetition-output-len 2" TO, "p50_ttft_ms<1000");
	assert_int_equal(s.rc, 0);
	assert_true(s.f.is_interrupted && capacity_answer(s.f.search).end == CAPACITY_STOPPED);
	assert_string_equal(s.steps.data, "probe unloaded saturate level");
	assert_int_equal(s.levels, 0);
	assert_true(s.f.level.load == 1 && s.f.level.attempted == 10); /* of the unloaded ones */
	assert_string_equal(s.f.salt_key, "abc");
	release(&s);
}

#define ONE_AT_A_TIME \
	"--max-num-seqs 1 --prefill-base-us 0 --prefill-us-per-token 0 --decode-base-us 2500" \
	" --decode-us-per-seq 0"

static int setup(void **state)
{
	if (verb_setup(state) < 0)
		return -1;
	verb_sim("Q", ONE_AT_A_TIME);
	verb_sim("D", ONE_AT_A_TIME " --die-after 215req");
	verb_sim("B", "--ttft-ms 1 --itl-ms 0.1 --fault status=503:id=t-1?");
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(one_at_a_time),
					    cmocka_unit_test(refused), cmocka_unit_test(dies),
					    cmocka_unit_test(interrupted) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, setup, verb_teardown);
}
