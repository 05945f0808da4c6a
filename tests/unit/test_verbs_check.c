/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_check.c - `profllm run --check`: what would fail, row by row. */
/* threads: yes */
#include "run_rig.h"

#define CHECK "--check --set"

static void checks(void **state)
{
	static const struct run_case row[] = {
		{ "good", "name: good\nserver: {command: sim, model: meta-llama/Llama-3.1-8B-Instruct, "
		  "gpu: h100-80gb, max_model_len: 4096}\nbenchmark: {tokenizer: sim, num_prompts: 200, "
		  "random_input_len: 16, random_output_len: 4, request_rate: 2}\n", .words = "--check" },
		{ "good", NULL, .words = CHECK " server.model=meta-llama/Llama-3.1-70B-Instruct", .status = 1 },
		{ "good", NULL, .words = CHECK " 'server.command=vllm serve' server.gpu=null", .status = 1,
		  .env = "PATH=/usr/bin:/bin HF_HOME=$DIR/hub" },
		{ "good", NULL, .words = CHECK " benchmark.tokenizer=./nowhere", .status = 1 },
		{ "good", NULL, .words = CHECK " benchmark.dataset_name=sharegpt "
		  "benchmark.dataset_path=./nowhere.json", .status = 1 },
		{ "good", NULL, .words = CHECK " 'server={\"url\": \"http://127.0.0.1:1\"}'", .status = 1 },
		{ "good", NULL, .words = CHECK " server.die_after=1req", .status = 1 },
		{ "good", NULL, .words = CHECK " benchmark.num_promts=3", .status = 2 },
		{ "good", NULL, .words = "--check --upload http://127.0.0.1:1 --token-file none", .status = 1 },
		{ "quant", "name: quant\nserver: {command: sim, model: Qwen/Qwen3-30B-A3B, gpu: l4-24gb, "
		  "tensor_parallel_size: 2, quantization: awq, startup_scale: 0.001}\nbenchmark: "
		    "{tokenizer: sim, num_prompts: 2, random_input_len: 8, random_output_len: 2}\n",
		  .words = "--check" },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(checks))
