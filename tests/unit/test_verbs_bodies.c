/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_bodies.c - what bench serve sends, word by word, and what it would send and when.
 *
 * threads: yes
 */
#include "serve_rig.h"

static void bodies(void **state)
{
	static const struct verb_case cases[] = {
		{ SERVE "--backend openai-chat --endpoint /v1/chat/completions --num-prompts 3"
		  " --random-input-len 4 --random-output-len 3 --max-concurrency 1 --temperature"
		  " 0.5 --top-k 3"
		  " --extra-body.min_tokens 2 --header X-A=1 --output-json c.json", SILENT,
		  .files = "c.json +5:asked" },
		{ SERVE "--backend openai-embeddings --endpoint /v1/embeddings --num-prompts 2"
		  " --random-input-len 4 --random-batch-size 2 --max-concurrency 1", M,
		  .files = "+2:asked" },
		{ SERVE "--backend vllm-rerank --endpoint /v1/rerank --dataset-name random-rerank"
		  " --num-prompts 2 --random-input-len 9 --random-batch-size 2 --max-concurrency"
		  " 1", M,
		  .files = "+2:asked" },
		{ SERVE "--backend openai-responses --num-prompts 2 --random-input-len 4"
		  " --random-output-len 3"
		  " --max-concurrency 1 --num-warmups 2", M, .files = "+6:asked" },
		{ SERVE "--backend anthropic --num-prompts 2 --random-input-len 4"
		  " --random-output-len 3 --max-concurrency 1", M },
		{ SERVE "--dataset-name sharegpt --dataset-path talks.json --num-prompts 5"
		  " --max-concurrency 1"
		  " --disable-shuffle --sharegpt-output-len 3", M, .files = "+7:asked" },
		{ SERVE "--dataset-name custom --dataset-path lines.jsonl --num-prompts 2"
		  " --max-concurrency 1"
		  " --custom-output-len 3 --skip-chat-template --logprobs 2 --top-p 0.9"
		  " --omit-body-keys stream_options", M,
		  .files = "+4:asked" },
		{ SERVE "--lora-modules a b --lora-assignment round-robin --num-prompts 3"
		  " --random-input-len 4 --random-output-len 2 --max-concurrency 1",
		  .status = 1, M },
		{ SERVE "--multi-turn --multi-turn-num-turns 2 --num-prompts 2 --random-input-len 4"
		  " --random-output-len 3 --max-concurrency 1 --backend openai-chat"
		  " --endpoint /v1/chat/completions --output-json t.json", SILENT,
		  .files = "t.json +5:asked" },
		{ "bench structured-output --base-url http://127.0.0.1:$S --model sim"
		  " --tokenizer sim " QUICK
		  " --dataset choice --num-prompts 3 --output-len 6 --max-concurrency 1"
		  " --structured-output-ratio 0.5", M, .files = "+5:asked" },
		{ "bench structured-output --base-url http://127.0.0.1:$S --model sim"
		  " --tokenizer sim " QUICK
		  " --dataset json --num-prompts 2 --output-len 40 --max-concurrency 1"
		  " --save-results"
		  " --result-filename so.json", SILENT, .files = "so.json" },
		{ "bench multi-turn -u http://127.0.0.1:$S -m sim --tokenizer sim -i"
		  " conversations.json"
		  " --max-active-conversations 1 --no-early-stop", M, .files = "+1:asked" },
		{ SERVE "--profile --reset-prefix-cache --num-prompts 1 --random-input-len 4"
		  " --random-output-len 2", M, .files = "+6:asked" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

#define DRY "bench serve --model sim --tokenizer sim --dry-run --dump-workload w.jsonl --seed 3" \
	" --request-id-prefix t- "

#define TIMED "--dataset-name trace --dataset-path trace.jsonl"

static void workloads(void **state)
{
	static const struct verb_case cases[] = {
		{ DRY SMALL " --request-rate 5 --burstiness 0.5", .files = "w.jsonl" },
		{ DRY SMALL " --ramp-up-strategy exponential --ramp-up-start-rps 5"
		  " --ramp-up-end-rps 50",
		  .files = "w.jsonl" },
		{ DRY "--dataset-name sharegpt --dataset-path talks.json --num-prompts 5",
		  .files = "w.jsonl" },
		{ DRY "--dataset-name sharegpt --dataset-path talks.json --num-prompts 5"
		  " --no-oversample"
		  " --repeat-count 2 --repeat-order tile", .files = "w.jsonl" },
		{ DRY "--dataset-name prefix_repetition --num-prompts 4"
		  " --prefix-repetition-prefix-len 5"
		  " --prefix-repetition-suffix-len 3 --prefix-repetition-num-prefixes 2"
		  " --prefix-repetition-output-len 4", .files = "w.jsonl" },
		{ DRY SMALL " --priority-classes 0:0.5,1:0.5 --lora-modules a b",
		  .files = "w.jsonl" },
		{ DRY "--multi-turn --multi-turn-num-turns 3 --num-prompts 2 --random-input-len 4"
		  " --random-output-len 3 --multi-turn-delay-ms 5 --backend openai-chat",
		  .files = "w.jsonl" },
		{ DRY SMALL " --prompt-salt fresh:abc --warmup-pass same", .files = "w.jsonl" },
		{ DRY SMALL " --duration 2 --request-rate 4", .files = "w.jsonl" },
		/* At times of their own, faster, or at those of the options. */
		{ DRY TIMED, .files = "w.jsonl" }, { DRY TIMED " --request-rate 9", .files = "w.jsonl" },
		{ DRY TIMED " --no-self-timed --request-rate 9 --burstiness 0.5", .files = "w.jsonl" },
		{ .line = DRY TIMED " --repeat-count 2", .status = 2 },
		{ .line = DRY SMALL " --self-timed", .status = 2 },
		{ .line = DRY SMALL " --plot-load-pattern --request-rate 9"
		  " --result-filename load.json" },
		{ DRY "--random-input-len-dist uniform:3,9 --random-output-len-dist uniform:2,4"
		  " --num-prompts 3",
		  .files = "w.jsonl" },
		{ .line = "bench serve --model sim --tokenizer sim --dry-run --num-prompts 2"
		  " --find-max-rate --slo p99_ttft_ms<9" },
		{ .line = "bench serve --load-pattern none --model sim", .status = 2 },
	};

	(void)state;
	spew("trace.jsonl", "{\"timestamp\": 500, \"input_length\": 6, \"output_length\": 3, \"hash_ids\": [1]}\n"
	     "{\"timestamp\": 750, \"input_length\": 8, \"output_length\": 2, \"hash_ids\": [1]}\n"
	     "{\"timestamp\": 2500, \"input_length\": 5, \"output_length\": 4, \"hash_ids\": [2]}\n");
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(bodies), cmocka_unit_test(workloads) };

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, serve_setup, verb_teardown);
}
