/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_offline.c - bench latency, throughput and startup: everything that they print and
 * write, with an engine's program whose times are known.
 *
 * threads: yes
 */
#include "offline_rig.h"

static void latency(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench latency $W --batch-size 2 --input-len 3 --output-len 4"
		  " --num-iters-warmup 1"
		  " --num-iters 6 --output-json r.json", E, .files = "r.json" },
		{ .line = "bench latency $W --batch-size 3 --input-len 2 --output-len 3"
		  " --num-iters-warmup 0 --seed 9"
		  " --num-iters 2 --n 2 --use-beam-search --disable-detokenize --fail-if"
		  " 'avg_latency>0.0001' --junit j.xml --summary s.md", .status = 3, E,
		  .files = "asked.beam j.xml s.md", .env = "ASKED=asked.beam" },
		{ .line = "bench latency $W --batch-size 2 --num-iters 1 --num-iters-warmup 1"
		  " --profile"
		  " --output-json p.json --profiler-config.profiler torch"
		  " --profiler-config.torch_profiler_dir traces", E, .files = "p.json" },
		{ "bench latency $W --batch-size 2 --num-iters 1 --num-iters-warmup 1 --profile"
		  " --output-json p.json --profiler-config.profiler cuda", E,
		  .env = "PROFILER=cuda" },
		{ "bench latency $W --num-iters 1 --num-iters-warmup 0 --profile"
		  " --profiler-config.profiler other", E, .env = "PROFILER=proton" },
		{ "bench latency $W --num-iters 1 --profile", .status = 1, .env = "LACKS=profile" },
		{ "bench latency --backend sim --model sim --tokenizer sim --num-iters 1 --num-iters-warmup 0"
		  " --profile", .status = 1 },
		{ .line = "bench latency $W --num-iters 1 --use-beam-search", .status = 1,
		  .env = "LACKS=beam" },
		{ "bench latency $W --num-iters 1 --input-len 4000 --output-len 96 --batch-size 1"
		  " --num-iters-warmup 0 --progress none", E },
		{ "bench latency $W --num-iters 1 --input-len 4000 --output-len 97 --batch-size"
		  " 1", .status = 1 },
		{ .line = "bench latency $W --num-iters 3 --dry-run --output-json no.json",
		  .files = "no.json" },
		{ .line = "bench latency --backend sim --model sim --dry-run --n 2"
		  " --use-beam-search --max-model-len 99" },
		{ .line = "bench latency $W --batch-size 1 --input-len 2 --output-len 2"
		  " --num-iters-warmup 0"
		  " --num-iters 8 --output-json t.json", E, .files = "t.pytorch.json",
		  .env = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1" },
		{ "bench latency $W --output-len 0", .status = 2 },
		{ "bench latency $W --num-iters 1 --output-json .", .status = 1 },
		{ .line = "bench latency --backend http --base-url http://127.0.0.1:$S --model"
		  " sim --batch-size 2"
		  " --input-len 4 --output-len 3 --num-iters-warmup 1 --num-iters 2"
		  " --output-json h.json",
		  H, .files = "h.json" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

/* A batch is one request with a list of prompts; a server that takes none gets them one by one. */
static void one_list(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench latency --backend http --base-url http://127.0.0.1:$S --model sim --batch-size 3"
		  " --input-len 2 --output-len 1 --num-iters-warmup 0 --num-iters 1 --output-json l.json",
		  .mask = VERB_NO_OUT | VERB_NO_ERR },
	};
	struct buf text = { 0 };

	(void)state;
	verb_check_all(cases, COUNT(cases));
	verb_new_lines("asked.http", 0, 4, &text);
	assert_non_null(strstr(text.data, "\\\"prompt\\\": [["));
	assert_non_null(strstr(text.data, "], ["));
	assert_non_null(strstr(text.data, "]], \\\"max_tokens\\\": 1"));
	buf_release(&text);
}

/* A GPU is as fast as its description says, unless it is said how fast. */
static void hardware(void **state)
{
#define GPU "bench latency --backend sim --gpu l4-24gb --model meta-llama/Llama-3.1-8B-Instruct" \
	" --max-model-len 64 --batch-size 1 --input-len 4 --output-len 4 --num-iters 1" \
	" --num-iters-warmup 0 --fail-if avg_latency<0.15 "
	static const struct verb_case cases[] = {
		{ .line = GPU, .mask = VERB_NO_OUT | VERB_NO_ERR },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

static void throughput(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench throughput $W --num-prompts 3 --random-input-len 6"
		  " --random-output-len 4"
		  " --num-warmups 2 --output-json r.json", E, .files = "r.json" },
		{ .line = "bench throughput $W --num-prompts 2 --random-input-len 6"
		  " --random-output-len 4 --num-runs 3"
		  " --n 2 --output-json r3.json --fail-if 'requests_per_second<1e9'",
		  .status = 3, E,
		  .files = "r3.json" },
		{ .line = "bench throughput $W --num-prompts 2 --random-input-len 3"
		  " --random-output-len 2"
		  " --output-json t.json", E, .files = "t.pytorch.json",
		  .env = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1" },
		{ .line = "bench throughput $W --num-prompts 2 --random-input-len 3"
		  " --random-output-len 2 --enable-lora"
		  " --lora-path x --max-loras 3 --lora-assignment round-robin", E,
		  .files = "asked.lora",
		  .env = "ASKED=asked.lora" },
		{ "bench throughput $W --num-prompts 2 --random-input-len 3 --random-output-len 2"
		  " --lora-path x", E },
		{ .line = "bench throughput $W --num-prompts 5 --random-input-len 3"
		  " --random-output-len 2"
		  " --data-parallel-size 2 --distributed-executor-backend external_launcher", E,
		  .env = "RANK=1 WORLD_SIZE=2" },
		{ .line = "bench throughput $W --num-prompts 5 --random-input-len 3"
		  " --random-output-len 2"
		  " --data-parallel-size 2 --distributed-executor-backend external_launcher",
		  .status = 1,
		  .env = "RANK=3 WORLD_SIZE=2" },
		{ "bench throughput $W --num-prompts 2 --runner pooling --random-input-len 3", E },
		{ .line = "bench throughput $W --num-prompts 2 --dry-run --num-runs 2"
		  " --num-warmups 1" },
		{ "bench throughput $W --num-prompts 2 --random-input-len 4000"
		  " --random-output-len 200",
		  .status = 1 },
		{ "bench throughput $W --num-prompts 2 --async-engine --random-input-len 3"
		  " --random-output-len 2 --n 2", E },
		{ .line = "bench throughput --backend http --base-url http://127.0.0.1:$S"
		  " --model sim --tokenizer sim"
		  " --num-prompts 3 --random-input-len 4 --random-output-len 3 --output-json"
		  " h.json",
		  H, .files = "h.json" },
		{ "bench throughput $W --num-prompts 0", .status = 2 },
		{ "bench throughput $W --num-prompts 2 --dataset-name random-rerank", .status = 1 },
		{ "bench throughput $W --num-prompts 2 --dataset-name sharegpt --dataset-path talks.json"
		  " --enable-multimodal-chat", .status = 1 },
		{ .line = "bench throughput $W --dataset-name sonnet --dataset-path lines.txt --input-len 150"
		  " --prefix-len 80 --output-len 3 --num-prompts 2 --chat-prefix u --chat-suffix a --dry-run"
		  " --dump-workload dump.jsonl",
		  .files = "dump.jsonl" },
		{ "bench throughput --backend worker $H --model odd --dataset-name sonnet --dataset-path lines.txt"
		  " --num-prompts 2 --dry-run", .status = 1 },
		{ .line = "bench throughput $W --dataset-name sharegpt --dataset-path talks.json"
		  " --num-prompts 2",
		  E, .files = "asked.talks", .env = "ASKED=asked.talks" },
		{ "bench throughput $W --dataset-name random-mm --num-prompts 1"
		  " --random-input-len 4"
		  " --random-output-len 2 --random-mm-bucket-config '{(32, 32, 1): 1.0}'", E },
	};
	char small[480];

	(void)state;
	/* Of a template that is not known only an engine can say what it makes. */
	mkdir("odd", 0755);
	snprintf(small, sizeof(small), "%.400s/tests/unit/token/small.json", verb_root);
	assert_int_equal(symlink(small, "odd/tokenizer.json"), 0);
	assert_int_equal(file_write_atomic("odd/tokenizer_config.json", STR("{\"chat_template\": \"{{ x }}\"}"),
					   NULL), 0);
	verb_check_all(cases, COUNT(cases));
}

static void startup(void **state)
{
	static const struct verb_case cases[] = {
		{ .line = "bench startup $W --num-iters-cold 2 --num-iters-warmup 1"
		  " --num-iters-warm 2"
		  " --output-json r.json", .mask = VERB_ERR_TIMES | VERB_FLAT,
		  .varies = clock_varies,
		  .files = "r.json" },
		{ .line = "bench startup $W --num-iters-cold 1 --num-iters-warmup 0"
		  " --num-iters-warm 1"
		  " --output-json t.json", E, .files = "t.cold_startup.pytorch.json"
		  " t.warm_compilation.pytorch.json", .env = "SAVE_TO_PYTORCH_BENCHMARK_FORMAT=1" },
		{ "bench startup $W --num-iters-cold 0 --num-iters-warmup 0 --num-iters-warm 1"
		  " --fail-if 'avg_warm_startup_time>0.0001'", .status = 3, E },
		{ "bench startup $W --num-iters-cold 0 --num-iters-warmup 0 --num-iters-warm 0",
		  .status = 2 },
		{ .line = "bench startup $W --dry-run" },
		{ .line = "bench startup $W --dry-run --compat v0.11 --num_iters_warm 2" },
		{ "bench startup --backend http --base-url http://127.0.0.1:1 --model m",
		  .status = 2 },
		{ "bench startup $W --num-iters-cold -1", .status = 2 },
		{ "bench startup --backend worker --worker-cmd false --model m --num-iters-cold 1"
		  " --num-iters-warmup 0 --num-iters-warm 0", .status = 1 },
		{ .line = "bench startup --backend http --server-cmd '$PROFLLM sim --port $P'"
		  " --model sim"
		  " --num-iters-cold 1 --num-iters-warmup 0 --num-iters-warm 1 --output-json"
		  " h.json",
		  H, .files = "h.json" },
	};

	(void)state;
	verb_check_all(cases, COUNT(cases));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(latency), cmocka_unit_test(one_list), cmocka_unit_test(hardware),
		cmocka_unit_test(throughput), cmocka_unit_test(startup),
	};

	if (argc > 1)
		return profllm_main(argc, argv);
	return cmocka_run_group_tests(tests, offline_setup, verb_teardown);
}
