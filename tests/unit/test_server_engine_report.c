/* SPDX-License-Identifier: Apache-2.0 */
/* What vLLM servers report of their own arguments: logs of several versions, metrics, models. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/server/engine_report.h"

#define CORE "(EngineCore_DP0 pid=71) INFO 10-03 12:00:01 [core.py:77] "
#define API "(APIServer pid=17) INFO 10-03 12:00:00 "

/* The line of the engine's configuration, cut down to one of each kind of value. */
#define CONFIG                                                                                  \
	CORE "Initializing a V1 LLM engine (v0.11.0) with config: model='org/m', "              \
	"speculative_config=None, tokenizer='org/m', skip_tokenizer_init=False, "               \
	"tokenizer_mode=auto, revision=None, dtype=torch.bfloat16, max_seq_len=40960, "         \
	"tensor_parallel_size=2, quantization=None, enforce_eager=False, kv_cache_dtype=auto, " \
	"device_config=cuda, structured_outputs_config=StructuredOutputsConfig(backend='auto', "\
	"seed=7), seed=0, served_model_name=m, enable_prefix_caching=True, "                    \
	"chunked_prefill_enabled=True, pooler_config=None, "                                    \
	"compilation_config={\"level\":3,\"mode\":[\"a, enforce_eager=True\"]}\n"

static const struct row {
	const char *log, *metrics, *models, *report;
} rows[] = {
	{ "", "", "", "{}" },
	{ CONFIG, "", "",
	  "{\"kv_cache_dtype\": \"auto\", \"enable_prefix_caching\": true, \"model\": \"org/m\", "
	  "\"tokenizer\": \"org/m\", \"tokenizer_mode\": \"auto\", \"dtype\": \"bfloat16\", "
	  "\"seed\": 0, \"revision\": null, \"max_model_len\": 40960, \"quantization\": null, "
	  "\"enforce_eager\": false, \"skip_tokenizer_init\": false, \"pooler_config\": null, "
	  "\"tensor_parallel_size\": 2, \"enable_chunked_prefill\": true, \"speculative_config\": null}" },
	/* What it has come to counts, not what was asked before. */
	{ API "[utils.py:233] non-default args: {'model_tag': 'm', 'port': 8123, 'api_key': ['k'], "
	  "'max_model_len': 8192, 'seed': 5, 'enable_lora': True, 'max_num_seqs': 64}\n" CONFIG, "", "",
	  "{\"kv_cache_dtype\": \"auto\", \"enable_prefix_caching\": true, \"enable_lora\": true, "
	  "\"model\": \"org/m\", \"tokenizer\": \"org/m\", \"tokenizer_mode\": \"auto\", "
	  "\"dtype\": \"bfloat16\", \"seed\": 0, \"revision\": null, \"max_model_len\": 40960, "
	  "\"quantization\": null, \"enforce_eager\": false, \"skip_tokenizer_init\": false, "
	  "\"pooler_config\": null, \"tensor_parallel_size\": 2, \"max_num_seqs\": 64, "
	  "\"enable_chunked_prefill\": true, "
	  "\"speculative_config\": null}" },
	{ API "[model.py:1510] Using max model len 4096\n"
	  API "[scheduler.py:205] Chunked prefill is enabled with max_num_batched_tokens=2048.\n"
	  API "[vllm.py:600] Asynchronous scheduling is disabled.\n"
	  CORE "[cuda.py:400] Using FLASH_ATTN attention backend out of potential backends: "
	  "['FLASH_ATTN', 'FLASHINFER'].\n", "", "",
	  "{\"attention_backend\": \"FLASH_ATTN\", \"max_model_len\": 4096, "
	  "\"max_num_batched_tokens\": 2048, \"enable_chunked_prefill\": true, "
	  "\"async_scheduling\": false}" },
	/* Engines are equal: the first one counts. */
	{ CORE "Initializing a V1 LLM engine (v1) with config: max_seq_len=5\n"
	  CORE "Initializing a V1 LLM engine (v1) with config: max_seq_len=6\n", "", "",
	  "{\"max_model_len\": 5}" },
	/* Answers add what the log lacks. */
	{ CORE "Initializing a V1 LLM engine (v1) with config: max_seq_len=5\n",
	  "vllm:num_requests_running{engine=\"0\"} 0\n"
	  "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"fp8\",cpu_offload_gb=\"0.0\","
	  "enable_prefix_caching=\"False\",gpu_memory_utilization=\"0.9\",num_gpu_blocks=\"99\","
	  "num_gpu_blocks_override=\"None\",prefix_caching_hash_algo=\"sha256\",swap_space=\"4\"} 1\n",
	  "{\"data\": [{\"id\": \"m\", \"max_model_len\": 9, \"owned_by\": \"vllm\"}]}",
	  "{\"block_size\": 16, \"gpu_memory_utilization\": 0.9, \"kv_cache_dtype\": \"fp8\", "
	  "\"num_gpu_blocks_override\": null, \"enable_prefix_caching\": false, "
	  "\"prefix_caching_hash_algo\": \"sha256\", \"swap_space\": 4.0, \"max_model_len\": 5, "
	  "\"cpu_offload_gb\": 0.0}" },
	{ "", "", "{\"data\": [{\"id\": \"m\", \"max_model_len\": 9}]}", "{\"max_model_len\": 9}" },
	/* Nothing is taken for what it is not. */
	{ "Initializing a V1 LLM engine (v1)\nUsing max model len \nUsing max model len many\n"
	  "Chunked prefill is enabled\nwith config: max_seq_len=7\n"
	  "Initializing a V1 LLM engine (v1) with config: max_seq_len=1e3x, dtype=<class 'x'>, "
	  "enforce_eager=Maybe, seed=\n", "broken {\nvllm:cache_config_info{} 1\n", "[1, {", "{}" },
	{ "Initializing a V1 LLM engine (v1) with config: model='a, max_seq_len=7\n"
	  "non-default args: {'a': {'b': 'c", "vllm:cache_config_info{block_size=\"many\"} 1\n",
	  "{\"data\": []}", "{}" },
	{ "Initializing a V1 LLM engine (v1) with config: ))), max_seq_len=7, ([{<\n", "",
	  "{\"data\": [{\"max_model_len\": \"long\"}]}", "{}" },
};

static void test_report(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct buf out = { 0 };
		struct json_writer w = json_writer(&out);
		struct engine_report r;
		struct arena a = { 0 };

		engine_report_begin(&r, &a);
		engine_report_log(&r, str_of(rows[i].log));
		engine_report_metrics(&r, str_of(rows[i].metrics));
		engine_report_models(&r, str_of(rows[i].models));
		engine_report_write(&r, &w);
		if (strcmp(out.data, rows[i].report) != 0)
			fail_msg("row %zu:\n%s\nnot\n%s", i, out.data, rows[i].report);
		buf_release(&out);
		arena_release(&a);
	}
}

/* Every beginning of a log is a log. */
static void test_cut(void **state)
{
	static const char log[] = CONFIG;

	(void)state;
	for (size_t n = 0; n < sizeof(log); n++) {
		struct engine_report r;
		struct arena a = { 0 };
		char *exact = arena_alloc(&a, n + 1);

		memcpy(exact, log, n);
		engine_report_begin(&r, &a);
		engine_report_log(&r, (struct str){ exact, n });
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_report), cmocka_unit_test(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
