/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_gpus.c - what `profllm run` says beforehand of the GPUs and models that are there, and
 * of those that are not: two GPUs of 80 GiB, of which one is in use, and small folders of models.
 *
 * threads: yes
 */
#include "run_rig.h"
#include "fake_gpus.h"

#define PLAN (RUN_EXACT | RUN_NO_FILES | RUN_NO_DOCUMENT)
#define GPUS "PROFLLM_NVML=$NVML FAKE_NVML_STATE=$DIR/gpus"
#define SERVER(model) "server: {command: ./server, model: " model "}\n" \
	"benchmark: {tokenizer: sim, num_prompts: 2}\n"
#define LISTS SERVER("org/m") "experiments: [{name: a, resources: {gpus: [9]}}, {name: b, resources: " \
	"{gpus: none}}, {name: c, resources: {gpus: [0, 1]}}]\n"
#define PART SERVER("org/m") "experiments: [{name: a, resources: {gpus: 3}}, {name: b, resources: " \
	"{gpus: 1}}]\nrepeat: 2\n"

static void lists(void **state)
{
	static const struct run_case row[] = {
		{ "lists", LISTS, .words = "--dry-run", .status = 2, .how = PLAN, .env = GPUS },
		{ "lists", NULL, .words = "--dry-run --only b --only c", .how = PLAN, .env = GPUS },
		{ "many", SERVER("org/m") "resources: {gpus: 3}\n", .words = "--dry-run", .status = 2, .how = PLAN,
		  .env = GPUS },
		{ "lists", NULL, .words = "--dry-run --only c --set resources.shared=true", .how = PLAN, .env = GPUS },
		{ "twice", SERVER("org/m") "resources: {gpus: [1, 1]}\n", .words = "--dry-run", .status = 2,
		  .how = PLAN, .env = GPUS },
		{ "uuid", SERVER("org/m") "resources: {gpus: [GPU-nothing]}\n", .words = "--dry-run", .status = 2,
		  .how = PLAN, .env = GPUS },
		{ "visible", SERVER("org/m") "resources: {gpus: [1]}\n", .words = "--dry-run", .status = 2,
		  .how = PLAN, .env = GPUS " CUDA_VISIBLE_DEVICES=0" },
		/* What --only leaves out may ask for more GPUs than there are. */
		{ "part", PART, .words = "--dry-run --only b-r1", .how = PLAN, .env = GPUS },
		{ "part", NULL, .words = "--dry-run --only a-r2", .status = 2, .how = PLAN, .env = GPUS },
		{ "part", NULL, .words = "--dry-run --only c", .status = 2, .how = PLAN, .env = GPUS },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

static void tokenizers(void **state)
{
	static const struct run_case row[] = {
		{ "own", "server: {command: ./server, model: org/m, tokenizer: ./none}\n"
		  "resources: {gpus: none}\nbenchmark: {num_prompts: 2}\n", .words = "--dry-run", .status = 2,
		  .how = PLAN },
		{ "second", "servers: [{command: ./server, model: ./m, role: serve}, {command: "
		  "./server, model: ./m, role: decode, tokenizer: ./none}]\nresources: {gpus: none}\n"
		  "benchmark: {num_prompts: 2}\n", .words = "--dry-run", .how = PLAN },
		{ "bench", SERVER("org/m"), .words = "--dry-run --set benchmark.tokenizer=./none", .status = 2,
		  .how = PLAN },
		{ "model", SERVER("org/m"), .words = "--dry-run --set benchmark.tokenizer=null benchmark.model=./none",
		  .status = 2, .how = PLAN },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

static void models(void **state)
{
	static const struct run_case row[] = {
		{ "plain", SERVER("./plain"), .words = "--check", .status = 1 },
		{ "plain", NULL, .words = "--check ", .status = 1, .env = GPUS },
		{ "plain", NULL, .words = "--check --set server.gpu_memory_utilization=0.01", .status = 1,
		  .env = GPUS },
		{ "heavy", SERVER("./heavy"), .words = "--check", .status = 1, .env = GPUS },
		{ "heavy", NULL, .words = "--check --set server.tensor_parallel_size=2 server.max_model_len=4096",
		  .status = 1, .env = GPUS },
		/* Of what is said several times the last counts: the command, keys, extra_args. */
		{ "words", "server: {command: './vllm serve --max-model-len 1k', model: ./heavy}\n"
		  "benchmark: {tokenizer: sim, num_prompts: 2, random_input_len: 8, random_output_len: 8}\n",
		  .words = "--check", .status = 1, .env = GPUS },
		{ "last", "server: {command: './vllm serve', model: ./heavy, max_model_len: 4k, extra_args: "
		  "[--max-model-len, '2048']}\nbenchmark: {tokenizer: sim, num_prompts: 2, random_input_len: 8, "
		  "random_output_len: 8}\n", .words = "--check", .status = 1, .env = GPUS },
		{ "broken", SERVER("./broken"), .words = "--check", .status = 1, .env = GPUS },
		{ "empty", SERVER("./empty"), .words = "--check", .status = 1, .env = GPUS },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

/* Which engine served is part of the document, also of a server that did not start. */
static void kinds(void **state)
{
	static const struct { const char *server, *kind; } row[] = {
		{ "command: sim, model: m, fail_start: oom", "\"sim\"" }, { "command: ./server, model: m", "null" },
		{ "command: ./vllm serve, model: m", "\"vllm\"" },
	};
	struct buf config = { 0 }, text = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct arena a = { 0 };
		struct json_value *v, *kind;
		struct json_writer w;
		struct err e;

		buf_reset(&config);
		buf_printf(&config, "server: {%s}\nresources: {gpus: none}\nbenchmark: {tokenizer: sim, "
			   "num_prompts: 1}\n" RUN_QUIET, row[i].server);
		run_write("kind.yaml", config.data);
		assert_int_equal(verb_end(run_begin("run --config kind.yaml --output kind.json", NULL)), 1);
		buf_reset(&text);
		assert_int_equal(file_read("kind.json", SIZE_MAX, &text, &e), 0);
		assert_int_equal(json_parse(&a, buf_str(&text), &v, &e), 0);
		kind = json_get(json_get(json_get(v, "environment"), "server"), "kind");
		assert_non_null(kind);
		buf_reset(&config);
		w = json_writer(&config);
		json_put_value(&w, kind);
		buf_add_text(&config, "");
		assert_string_equal(config.data, row[i].kind);
		arena_release(&a);
	}
	buf_release(&config);
	buf_release(&text);
}

static int setup(void **state)
{
	static const char config[] =
		"{\"architectures\": [\"LlamaForCausalLM\"], \"model_type\": \"llama\", \"hidden_size\": 1024, "
		"\"intermediate_size\": 4096, \"num_hidden_layers\": 8, \"num_attention_heads\": 16, "
		"\"num_key_value_heads\": 4, \"vocab_size\": 32000, \"max_position_embeddings\": 8192, "
		"\"torch_dtype\": \"bfloat16\"}";

	if (run_setup(state) < 0)
		return -1;
	verb_let("NVML", fake_library("libfake-nvml.so"));
	fake_state("count 2\ngpu 0 used 1000000000\n");
	mkdir("plain", 0755);
	mkdir("heavy", 0755);
	mkdir("broken", 0755);
	mkdir("empty", 0755);
	run_write("plain/config.json", config);
	run_write("heavy/config.json", config);
	run_write("heavy/model.safetensors", "");
	run_write("broken/config.json", "{\"hidden_size\": ");
	run_write("server", "#!/bin/sh\nexit 3\n");
	chmod("server", 0755);
	run_write("vllm", "#!/bin/sh\nexit 3\n");
	chmod("vllm", 0755);
	return truncate("heavy/model.safetensors", 60ll << 30);
}

RUN_MAIN(setup, cmocka_unit_test(lists), cmocka_unit_test(tokenizers), cmocka_unit_test(models),
	 cmocka_unit_test(kinds))
