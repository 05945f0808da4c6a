/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_offline_throughput.c -
 * the options of bench throughput: what is refused and in which order, what
 * has no effect, which lengths are in force; requests of tiny sets; which of them an engine gets.
 *
 * threads: yes
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "bench/offline/throughput.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define ARGS_MAX 14

struct rig {
	struct arena arena;
	struct throughput_opts o;
	struct opt_result result;
	struct offline_engine engine;
	struct buf notes;
	struct err e;
};

static int judge(struct rig *r, const char *const *arg)
{
	char **argv;
	int argc = 0;

	*r = (struct rig){ 0 };
	argv = arena_alloc(&r->arena, (ARGS_MAX + 1) * sizeof(*argv));
	for (; argc < ARGS_MAX && arg[argc]; argc++)
		argv[argc] = arena_text(&r->arena, str_of(arg[argc]));
	if (opt_parse(&throughput_opt_set, argc, argv, &r->o, &r->result, &r->arena, &r->e) < 0 ||
	    offline_opts_check(&throughput_opt_set, &r->result, &throughput_verb, &r->o.common,
			       &r->engine, &r->arena, &r->notes, &r->e) < 0)
		return -1;
	return throughput_verb.check(&(struct offline_job){
		.opts = &r->o.common, .given = &r->result, .engine = &r->engine, .notes = &r->notes,
	}, &r->e);
}

static void release(struct rig *r)
{
	opt_result_release(&r->result);
	buf_release(&r->notes);
	arena_release(&r->arena);
}

/* ---- what is refused; of several mistakes the one that upstream sees first ---- */

static const struct refused {
	const char *error;
	const char *arg[ARGS_MAX];
} refused[] = {
	{ "--prequeue-requests needs --backend vllm or vllm-chat",
	  { "--backend", "hf", "--prequeue-requests", "--async-engine", "--enable-lora" } },
	{ "--prequeue-requests is not supported with --async-engine",
	  { "--prequeue-requests", "--async-engine", "--enable-lora" } },
	{ "--prequeue-requests is not supported with --async-engine",
	  { "--prequeue-requests", "--backend", "vllm-async" } },
	{ "--enable-lora: only --backend vllm takes adapters",
	  { "--backend", "vllm-chat", "--enable-lora", "--hf-max-batch-size", "3" } },
	{ "--enable-lora needs --lora-path",
	  { "--enable-lora", "--hf-max-batch-size", "3" } },
	{ "--backend hf needs --hf-max-batch-size",
	  { "--backend", "hf", "--quantization", "fp8" } },
	{ "--hf-max-batch-size is for --backend hf only",
	  { "--hf-max-batch-size", "3", "--data-parallel-size", "2" } },
	{ "--quantization is for --backend vllm only, not hf",
	  { "--backend", "hf", "--hf-max-batch-size", "3", "--quantization", "fp8",
	    "--data-parallel-size", "2" } },
	{ "--data-parallel-size above 1 needs --distributed-executor-backend external_launcher and no "
	  "--async-engine; bench serve measures a server of several",
	  { "--data-parallel-size", "2", "--n", "0" } },
	{ "--data-parallel-size above 1 needs --distributed-executor-backend external_launcher and no "
	  "--async-engine; bench serve measures a server of several",
	  { "--data-parallel-size", "2", "--distributed-executor-backend", "external_launcher",
	    "--async-engine" } },
	{ "--profile: --backend hf has no profiler",
	  { "--backend", "hf", "--hf-max-batch-size", "3", "--profile" } },
	{ "--tensor-parallel-size: expected 1 with --backend hf, got 2",
	  { "--backend", "hf", "--hf-max-batch-size", "3", "-tp", "2" } },
	{ "--n: expected at least 1, got 0", { "--n", "0" } },
	{ "--output-len: expected at least 1, got 0", { "--output-len", "0" } },
	{ "--random-input-len: expected at most 67108864 tokens, got 67108865",
	  { "--random-input-len", "67108865" } },
};

static void mistakes_are_refused_in_order(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct rig r;

		assert_int_equal(judge(&r, refused[i].arg), -1);
		assert_string_equal(r.e.text, refused[i].error);
		assert_int_equal(r.e.code, ERR_USAGE);
		release(&r);
	}
}

/* ---- what is in force, and what is said of it ---- */

static const struct held {
	const char *arg[ARGS_MAX];
	const char *dataset;
	int64_t input, output, prefix;  /* of random sets */
	const char *note;               /* a part of the notes; NULL: there are none */
} held[] = {
	{ { NULL }, "random", 1024, 128, 0, NULL },
	{ { "--input-len", "32" }, "random", 32, 128, 0, NULL },
	{ { "--input-len", "32", "--output-len", "8", "--compat", "v0.11" }, "random", 32, 8, 0, NULL },
	{ { "--input-len", "32", "--compat", "lengths" }, "random", 1024, 128, 0,
	  "--input-len 32 has no effect, as in vLLM (--compat lengths): the default of "
	  "--random-input-len takes precedence, so prompts have 1024 tokens" },
	{ { "--input-len", "32", "--fix", "lengths" }, "random", 32, 128, 0,
	  "--fix lengths has no effect: it is the default; --compat lengths is the opposite" },
	{ { "--input-len", "1024", "--output-len", "128", "--compat", "lengths" }, "random", 1024, 128,
	  0, NULL },
	{ { "--output-len", "8", "--compat", "lengths" }, "random", 1024, 128, 0,
	  "answers have 128 tokens" },
	{ { "--output-len", "8", "--prefix-len", "5" }, "random", 1024, 8, 5, NULL },
	{ { "--prefix-len", "5", "--compat", "lengths,dataset-name" }, "random", 1024, 128, 0,
	  "all prompts share 0 tokens" },
	{ { "--input-len", "32", "--random-input-len", "9" }, "random", 9, 128, 0,
	  "Both --input-len and --random-input-len are specified. The random version "
	  "(--random-input-len) will be preferred in this run." },
	{ { "--random-input-len", "9", "--random-prefix-len", "4" }, "random", 9, 128, 4, NULL },
	{ { "--dataset-name", "random-mm" }, "random-mm", 1024, 128, 0, NULL },
	{ { "--dataset-name", "random-mm", "--input-len", "9" }, "random-mm", 9, 128, 0, NULL },
	{ { "--dataset-name", "random-mm", "--compat", "dataset-name" }, "random", 1024, 128, 0,
	  "--dataset-name random-mm without --dataset-path is random, as in vLLM (--compat "
	  "dataset-name)" },
	{ { "--dataset-name", "random-mm", "--fix", "dataset-name" }, "random-mm", 1024, 128, 0,
	  "--fix dataset-name has no effect" },
	{ { "--dataset-name", "random_mm", "--dataset-path", "x" }, "random-mm", 1024, 128, 0, NULL },
	{ { "--dataset-name", "hf" }, "hf", 1024, 128, 0, NULL },
	{ { "--dataset-name", "hf", "--compat", "dataset-name" }, "random", 1024, 128, 0,
	  "is random, as in vLLM" },
	{ { "--dataset-name", "random", "--compat", "dataset-name" }, "random", 1024, 128, 0, NULL },
	{ { "--dataset-name", "spec_bench" }, "spec_bench", 1024, 128, 0, NULL },
	{ { "--dataset-name", "prefix_repetition" }, "prefix_repetition", 1024, 128, 0, NULL },
	{ { "--dataset-path", "x" }, "sharegpt", 1024, 128, 0, NULL },
	{ { "--dataset", "x" }, "sharegpt", 1024, 128, 0, NULL },
	{ { "--dataset-path", "x", "--random-range-ratio", "0.1" }, "sharegpt", 1024, 128, 0,
	  "--random-range-ratio will be ignored since --dataset-name is not 'random'" },
	{ { "--dataset-path", "x", "--hf-split", "a" }, "sharegpt", 1024, 128, 0,
	  "--hf-subset and --hf-split will be ignored since --dataset-name is not 'hf'." },
	{ { "--dataset-path", "x", "--random-batch-size", "2", "--no-reranker" }, "sharegpt", 1024, 128,
	  0, "--random-batch-size will be ignored since --dataset-name is not 'random-rerank'.\n"
	  "--no-reranker will be ignored since --dataset-name is not 'random-rerank'.\n" },
	{ { "--dataset-path", "x", "--prefix-len", "2" }, "sharegpt", 1024, 128, 0,
	  "--prefix-len will be ignored" },
	{ { "--dataset-path", "x", "--input-len", "2" }, "sharegpt", 1024, 128, 0,
	  "--input-len has no effect: the dataset is sharegpt" },
	{ { "--prefix-repetition-num-prefixes", "2" }, "random", 1024, 128, 0,
	  "--prefix-repetition-num-prefixes has no effect: the dataset is random" },
	{ { "--lora-path", "x" }, "random", 1024, 128, 0,
	  "--lora-path has no effect on the engine without --enable-lora" },
	{ { "--lora-assignment", "random" }, "random", 1024, 128, 0,
	  "--lora-assignment has no effect without --lora-path" },
	{ { "--hf-enable-torch-compile" }, "random", 1024, 128, 0, "has no effect with --backend vllm" },
	{ { "--backend", "vllm-chat", "--async-engine" }, "random", 1024, 128, 0,
	  "--async-engine has no effect with --backend vllm-chat" },
	{ { "--backend", "sim", "--prequeue-requests" }, "random", 1024, 128, 0, NULL },
};

static void values_in_force_are_upstreams(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(held); i++) {
		const struct held *h = &held[i];
		struct rig r;
		const char *notes;

		if (judge(&r, h->arg) < 0)
			fail_msg("case %zu: %s", i, r.e.text);
		notes = r.notes.len ? r.notes.data : "";
		assert_string_equal(r.o.data.dataset_name, h->dataset);
		assert_int_equal(r.o.data.set.random_input_len, h->input);
		assert_int_equal(r.o.data.set.random_output_len, h->output);
		assert_int_equal(r.o.data.set.random_prefix_len, h->prefix);
		if (h->note ? !strstr(notes, h->note) : r.notes.len > 0)
			fail_msg("case %zu: notes are '%s'", i, notes);
		release(&r);
	}
}

static void an_old_name_of_the_path_is_noted(void **state)
{
	const char *const arg[] = { "--dataset", "a/file", NULL };
	struct rig r;

	(void)state;
	assert_int_equal(judge(&r, arg), 0);
	assert_string_equal(r.o.data.set.path, "a/file");
	assert_non_null(strstr(r.result.notes.data, "The '--dataset' argument will be deprecated"));
	assert_false(r.o.plan.is_random_by_default);
	release(&r);
}

/* ---- whose numbers of tokens are upstream's ---- */

static const struct counted {
	bool is_as_requested, is_async;
	const char *arg[ARGS_MAX];
} counted[] = {
	{ false, false, { NULL } },
	{ false, false, { "--backend", "vllm-chat", "--async-engine" } },
	{ true, true, { "--async-engine" } },
	{ true, true, { "--backend", "vllm-async" } },
	{ false, true, { "--backend", "vllm-async", "--fix", "token-counts" } },
	{ true, false, { "--backend", "hf", "--hf-max-batch-size", "2" } },
	{ true, false, { "--backend", "hf", "--hf-max-batch-size", "2", "--async-engine" } },
	{ false, false, { "--backend", "hf", "--hf-max-batch-size", "2", "--fix", "token-counts" } },
	{ false, false, { "--backend", "sim" } },
	{ false, false, { "--backend", "llama" } },
};

static void tokens_are_counted_as_upstream_does(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(counted); i++) {
		struct rig r;

		assert_int_equal(judge(&r, counted[i].arg), 0);
		assert_int_equal(r.o.plan.is_as_requested, counted[i].is_as_requested);
		assert_int_equal(r.o.plan.is_async, counted[i].is_async);
		release(&r);
	}
}

/* ---- lengths of other sets ---- */

static void output_len_is_each_sets_own(void **state)
{
	const char *const arg[] = { "--dataset-path", "x", "--output-len", "7", NULL };
	const char *const custom[] = { "--dataset-path", "x", "--dataset-name", "custom_audio",
				       "--output-len", "7", NULL };
	const char *const own[] = { "--dataset-path", "x", "--dataset-name", "custom_audio",
				    "--custom-output-len", "9", NULL };
	struct rig r;

	(void)state;
	assert_int_equal(judge(&r, arg), 0);
	assert_true(r.o.data.set.sharegpt_output_len.is_set && r.o.data.set.hf_output_len.is_set);
	assert_int_equal(r.o.data.set.sharegpt_output_len.v, 7);
	assert_int_equal(r.o.data.set.hf_output_len.v, 7);
	release(&r);
	assert_int_equal(judge(&r, custom), 0); /* upstream hands it --custom-output-len alone */
	assert_int_equal(r.o.data.set.custom_output_len, -1);
	assert_non_null(strstr(r.notes.data, "--output-len has no effect: the dataset is custom_audio"));
	release(&r);
	assert_int_equal(judge(&r, own), 0);
	assert_int_equal(r.o.data.set.custom_output_len, 9);
	assert_int_equal(r.notes.len, 0);
	release(&r);
}

/* ---- requests ---- */

static int sample(struct rig *r, struct offline_sampler *s, int64_t n, int64_t seed,
		  struct offline_requests *out)
{
	return offline_sample(s, &r->o.data, n, seed, out, &r->e);
}

static void adapters_and_shares_are_upstreams(void **state)
{
	/* random.seed(3); [random.randint(1, 4) for _ in range(9)] */
	static const int32_t lora[] = { 2, 2, 3, 4, 1, 1, 4, 3, 2 };
	const char *const arg[] = { "--backend", "sim", "--random-input-len", "4", "--seed", "3",
				    "--enable-lora", "--lora-path", "x", "--max-loras", "4", NULL };
	struct offline_requests warm, real;
	struct offline_sampler s;
	struct rig r;

	(void)state;
	assert_int_equal(judge(&r, arg), 0);
	s = (struct offline_sampler){ .backend = "sim", .engine = &r.engine, .lora_path = "x",
				      .is_lora_random = true };
	assert_int_equal(offline_sampler_init(&s, &r.e), 0);
	assert_int_equal(sample(&r, &s, 3, 4, &warm), 0);
	r.engine.data_parallel = 2;
	setenv("RANK", "3", 1);
	setenv("WORLD_SIZE", "4", 1);
	assert_int_equal(sample(&r, &s, 6, 3, &real), 0);
	assert_memory_equal(warm.lora, lora, 3 * sizeof(*lora));
	assert_int_equal(real.n, 3);
	for (size_t i = 0; i < real.n; i++) {
		assert_int_equal(real.index[i], 2 * i + 1);
		assert_int_equal(real.lora[i], lora[3 + 2 * i + 1]);
	}
	assert_int_equal(real.prompt_tokens, 12);
	assert_int_equal(real.output_tokens, 3 * 128);
	assert_int_equal(offline_requests_fit(&real, 132, &r.e), 0);
	assert_int_equal(offline_requests_fit(&real, 0, &r.e), 0);
	assert_int_equal(offline_requests_fit(&real, 131, &r.e), -1);
	assert_non_null(strstr(r.e.text, "Please ensure that max_model_len is greater than the sum"));
	offline_requests_release(&warm);
	offline_requests_release(&real);
	unsetenv("RANK");
	r.e = (struct err){ 0 };
	assert_int_equal(sample(&r, &s, 6, 3, &real), -1);
	assert_non_null(strstr(r.e.text, "needs RANK in the environment"));
	offline_sampler_release(&s);
	release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mistakes_are_refused_in_order),
		cmocka_unit_test(values_in_force_are_upstreams),
		cmocka_unit_test(an_old_name_of_the_path_is_noted),
		cmocka_unit_test(tokens_are_counted_as_upstream_does),
		cmocka_unit_test(output_len_is_each_sets_own),
		cmocka_unit_test(adapters_and_shares_are_upstreams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
