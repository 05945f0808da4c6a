/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_sim.c - what the simulator makes of the arguments of an engine: the figures of the
 * hardware that it would be, and which arguments it names as without effect.
 */
#include "verb.h"

#define EXPLAIN "sim meta-llama/Llama-3.1-8B-Instruct --explain --gpu l4-24gb --max-model-len 8192 "

static void explained(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = EXPLAIN }, { .line = EXPLAIN "-O0" },
		{ .line = EXPLAIN "--enforce-eager" }, { .line = EXPLAIN "-O0 --no-enforce-eager" },
		{ .line = EXPLAIN "--num-gpu-blocks-override 77", .status = 1 },
		{ .line = EXPLAIN "--num-gpu-blocks-override 600" },
		{ .line = EXPLAIN "--num-gpu-blocks-override 1 --block-size 32", .status = 1 },
		{ .line = EXPLAIN "--kv-cache-memory-bytes 1000000000 --kv-cache-dtype fp8 --max-num-seqs 7" },
		{ .line = EXPLAIN "--dtype float16 --quantization awq -tp 2 -pp 2 -dp 2"
		  " --load-format dummy --swap-space 3" },
		{ .line = EXPLAIN "--no-async-scheduling --no-enable-chunked-prefill", .status = 1 },
		{ .line = EXPLAIN "--no-async-scheduling --no-enable-chunked-prefill --max-num-batched-tokens 8192" },
		{ .line = EXPLAIN "--gpu-memory-utilization 0.5", .status = 1 },
		{ .line = "sim --explain" }, { .line = "sim --explain --gpu l4-24gb", .status = 1 },

		{ .line = EXPLAIN "--no-such-argument", .status = 2 },
		{ .line = EXPLAIN "--tensor-paralel-size 2", .status = 2 },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(explained) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, verb_setup, verb_teardown);
}
