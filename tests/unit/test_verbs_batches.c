/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_batches.c - the other commands that measure an engine without a server: priorities,
 * repeated prompts, multimodal stages, hashes; and the bars that all of them draw.
 *
 * threads: yes
 */
#include "offline_rig.h"

static void batches(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench prioritization $W --scheduling-policy priority --input-len 4"
		  " --output-len 5"
		  " --num-prompts 6 --baseline --n 2 --disable-detokenize --output-json pr.json",
		  E, .files = "pr.json asked.pr", .env = "ASKED=asked.pr" },
		{ "bench prioritization $W --scheduling-policy priority --dataset talks.json"
		  " --num-prompts 100", E },
		{ "bench prioritization $W --num-prompts 2 --input-len 3 --output-len 2",
		  .status = 1,
		  .env = "LACKS=priority" },
		{ "bench prioritization $W --num-prompts 2 --input-len 3", .status = 2 },
		{ .line = "bench prioritization $W --scheduling-policy priority --dry-run"
		  " --num-prompts 5"
		  " --input-len 3 --output-len 2 --baseline" },
		{ "bench prioritization --base-url http://127.0.0.1:$S --model sim --tokenizer sim"
		  " --progress none --ready-check-timeout-sec 0 --input-len 4 --output-len 3"
		  " --num-prompts 4"
		  " --baseline", .mask = VERB_TIMES, .varies = verb_serve_varies },
		{ .line = "bench prefix-caching $W --num-prompts 3 --input-length-range 20:30"
		  " --prefix-len 8"
		  " --repeat-count 2 --output-json pc.json", E, .files = "pc.json asked.pc",
		  .env = "ASKED=asked.pc" },
		{ .line = "bench prefix-caching $W --num-prompts 3 --input-length-range 20:30"
		  " --sort --exact-tokens"
		  " --compare-caching --output-json pcc.json", E, .files = "pcc.json" },
		{ "bench prefix-caching $W --num-prompts 2 --input-length-range 4:20"
		  " --dataset-path talks.json",
		  E },
		{ "bench prefix-caching $W --num-prompts 2 --input-length-range 20", .status = 2 },
		{ "bench prefix-caching $W --input-length-range 20:30", .status = 2 },
		{ "bench prefix-caching $W --num-prompts 2 --input-length-range 20:30"
		  " --prefix-len 40",
		  .status = 2 },
		{ .line = "bench long-document-qa $W --document-length 30 --num-documents 3"
		  " --repeat-mode tile"
		  " --output-len 2 --output-json ld.json", E, .files = "ld.json" },
		{ .line = "bench long-document-qa $W --document-length 9 --num-documents 2"
		  " --repeat-mode interleave"
		  " --repeat-count 3 --exact-tokens --output-len 2", E, .files = "asked.ld",
		  .env = "ASKED=asked.ld" },
		{ "bench long-document-qa $W --document-length 9 --num-documents 2 --shuffle-seed 3"
		  " --repeat-count 3 --output-len 2 --compare-caching", E },
		{ .line = "bench long-document-qa $W --document-length 30 --dry-run" },
		{ "bench long-document-qa --base-url http://127.0.0.1:$S --model sim"
		  " --document-length 20"
		  " --num-documents 2 --output-len 2", H },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

#define MM "bench mm-processor $W --random-output-len 2 --random-input-len 5" \
	" --random-mm-bucket-config '{(16, 16, 1): 1.0}' "

static void stages(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = MM "--num-prompts 3 --num-warmups 1"
		  " --metric-percentiles 50,99.9 --output-json mm.json", E,
		  .files = "mm.json" },
		{ .line = MM "--num-prompts 2 --num-warmups 0"
		  " --output-json mn.json", E, .files = "mn.json",
		  .env = "NO_TIMES=1" },
		{ .line = MM "--num-prompts 2", E, .status = 0,
		  .env = "LACKS=mm_stats" },
		{ .line = MM "--num-prompts 2", .status = 1,
		  .env = "LACKS=chat" },
		{ "bench mm-processor $W --metric-percentiles 99,x", .status = 2 },
		{ "bench mm-processor $W --metric-percentiles 101", .status = 2 },
		{ "bench mm-processor $W --dataset-name hf", .status = 2 },
		{ .line = "bench mm-processor $W --dry-run --num-prompts 3" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void hashes(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench hash $H --output-json hash.json", .files = "hash.json asked.hash",
		  .env = "ASKED=asked.hash" },
		{ .line = "bench hash $H --seed 7 --iterations 5", .env = "SKIP=xxhash" },
		{ .line = "bench hash $H", .env = "SKIP=hash" },
		{ "bench hash $H --iterations 0", .status = 2 },
		{ .line = "bench prefix-block-hash $H --num-blocks 3 --block-size 4 --vocab-size"
		  " 10 --trials 2"
		  " --output-json blocks.json", .files = "blocks.json asked.blocks",
		  .env = "ASKED=asked.blocks" },
		{ .line = "bench prefix-block-hash $H --num-blocks 3 --algorithms sha256"
		  " xxhash", .env = "SKIP=xxhash" },
		{ .line = "bench prefix-block-hash $H --num-blocks 3 --algorithms sha256",
		  .status = 1,
		  .env = "SKIP=sha256" },
		{ "bench prefix-block-hash $H --algorithms md5", .status = 2 },
		{ "bench prefix-block-hash $H --num-blocks 60000000 --block-size 32", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* Drawn once at the beginning and once at the end. A bar is as long as its figures let it be. */
static void bars(void **state)
{
	static const char *const bar_varies[] = {
		": 100%|", "~of the time passed between", "~of the timed section passed",
		"outside the engine's clock: ", NULL,
	};
	static const struct verb_case cases[] = {
		{ "bench latency $W --batch-size 1 --num-iters 1 --num-iters-warmup 1 --progress bar",
		  .mask = VERB_ERR_TIMES, .varies = bar_varies, .env = "LC_ALL=C" },
		{ "bench latency $W --batch-size 1 --num-iters 1 --num-iters-warmup 0 --progress bar",
		  .mask = VERB_ERR_TIMES, .varies = bar_varies, .env = "LC_ALL=C.UTF-8" },
		{ MM "--num-prompts 1 --num-warmups 0 --progress bar", .mask = VERB_ERR_TIMES,
		  .varies = bar_varies, .env = "LC_ALL=C TELLS=chat" },
		{ MM "--num-prompts 1 --num-warmups 0 --disable-tqdm", .mask = VERB_ERR_TIMES,
		  .varies = bar_varies, .env = "TELLS=chat" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(batches), cmocka_unit_test(stages), cmocka_unit_test(hashes),
		cmocka_unit_test(bars),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, offline_setup, verb_teardown);
}
