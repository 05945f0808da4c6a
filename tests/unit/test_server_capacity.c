/* SPDX-License-Identifier: Apache-2.0 */
/* The KV cache's size from logs of several versions and from metrics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "bench/server/capacity.h"

#define AT "INFO 03-04 10:00:00 "

static const struct row {
	const char *text;
	double tokens, concurrency, length; /* below 0: not said */
} logs[] = {
	{ "", -1, -1, -1 },
	{ "Starting to load model m...\nAvg prompt throughput: 5 tokens/s\n", -1, -1, -1 },
	/* blocks alone, of 16 */
	{ AT "llm_engine.py:72] # GPU blocks: 865, # CPU blocks: 327\n", 13840, -1, -1 },
	{ AT "executor_base.py:111] # cuda blocks: 1000, # CPU blocks: 2048\n", 16000, -1, -1 },
	{ AT "# Retrieval GPU blocks: 12\n", -1, -1, -1 },
	/* blocks and what fits: of 16, then of 32 */
	{ AT "kv_cache_utils.py:407] # GPU blocks: 33660\n"
	  AT "kv_cache_utils.py:410] Maximum concurrency for 4096 tokens per request: 131.48x\n",
	  538560, 131.48, 4096 },
	{ AT "# GPU blocks: 100\n" AT "Maximum concurrency for 800 tokens per request: 4.00x\n",
	  3200, 4, 800 },
	{ AT "# GPU blocks: 0, # CPU blocks: 0\n", 0, -1, -1 },
	/* tokens */
	{ AT "[kv_cache_utils.py:634] GPU KV cache size: 2,042,016 tokens\n"
	  AT "[kv_cache_utils.py:637] Maximum concurrency for 2,048 tokens per request: 997.08x\n",
	  2042016, 997.08, 2048 },
	{ AT "GPU KV cache size: 17,344 tokens", 17344, -1, -1 }, /* cut short */
	{ AT "GPU KV cache size: ", -1, -1, -1 },
	{ AT "GPU KV cache size: many tokens\n", -1, -1, -1 },
	/* once for each of two workers: the smaller counts */
	{ AT "GPU KV cache size: 5,000 tokens\n"
	  AT "Maximum concurrency for 100 tokens per request: 50.00x\n"
	  AT "GPU KV cache size: 4,800 tokens\n"
	  AT "Maximum concurrency for 100 tokens per request: 48.00x\n", 4800, 48, 100 },
	/* one line for both, one process; colours around its name */
	{ "(EngineCore pid=1400) INFO 11-21 22:26:35 [kv_cache_utils.py:2327] CPU KV cache size: 367,001 "
	  "tokens, Maximum concurrency for 448 tokens per request: 819.20x\n", 367001, 819.2, 448 },
	{ "\x1b[0;36m(EngineCore pid=7)\x1b[0;0m " AT "[kv_cache_utils.py:2465] CPU KV cache size: "
	  "37,376 tokens, Maximum concurrency for 2,048 tokens per request: 18.25x\n",
	  37376, 18.25, 2048 },
	/* two engines: they add up */
	{ "(EngineCore_DP0 pid=7) " AT "GPU KV cache size: 1,000 tokens\n"
	  "(EngineCore_DP1 pid=8) " AT "GPU KV cache size: 1,100 tokens\n"
	  "(EngineCore_DP0 pid=7) " AT "Maximum concurrency for 100 tokens per request: 10.00x\n"
	  "(EngineCore_DP1 pid=8) " AT "Maximum concurrency for 100 tokens per request: 11.00x\n",
	  2100, 21, 100 },
	/* the other server */
	{ "[2025-03-04 10:00:00 TP0] max_total_num_tokens=471258, chunked_prefill_size=8192, "
	  "max_prefill_tokens=16384, max_running_requests=2048, context_len=8192\n",
	  471258, 471258.0 / 8192, 8192 },
};

static const struct row metrics[] = {
	{ "", -1, -1, -1 },
	{ "vllm:num_requests_running{engine=\"0\"} 1\n", -1, -1, -1 },
	{ "# HELP x y\nvllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",engine=\"0\","
	  "num_gpu_blocks=\"127626\"} 1.0\n", 2042016, -1, -1 },
	{ "vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"None\"} 1.0\n", -1, -1, -1 },
	{ "vllm:cache_config_info{block_size=\"16\",kv_cache_max_concurrency=\"18.25\","
	  "kv_cache_size_tokens=\"37376\",num_gpu_blocks=\"292\"} 1.0\n", 37376, 18.25, 2048 },
	{ "vllm:cache_config_info{block_size=\"16\",kv_cache_max_concurrency=\"None\","
	  "kv_cache_size_tokens=\"None\",num_gpu_blocks=\"292\"} 1.0\n", 4672, -1, -1 },
	{ "vllm:cache_config_info{engine=\"0\",block_size=\"16\",num_gpu_blocks=\"100\"} 1.0\n"
	  "broken {\n"
	  "vllm:cache_config_info{engine=\"1\",block_size=\"16\",num_gpu_blocks=\"100\"} 1.0\n",
	  3200, -1, -1 },
	{ "sglang:max_total_num_tokens{model_name=\"m\"} 8192.0\nsglang:context_len 4096\n",
	  8192, 2, 4096 },
	{ "sglang:max_total_num_tokens NaN\n", -1, -1, -1 },
	{ "vllm:cache_config_info{block_size=\"1e300\",num_gpu_blocks=\"1e300\"} 1.0\n", -1, -1, -1 },
};

static void check_number(const char *text, const char *what, double got, double wanted)
{
	if (wanted < 0 ? !isnan(got) : !(fabs(got - wanted) < 1e-9))
		fail_msg("%s of '%s': %g, not %g", what, text, got, wanted);
}

static void check_rows(const struct row *row, size_t n, const char *source,
		       void (*read)(struct str, struct capacity *))
{
	for (size_t i = 0; i < n; i++) {
		struct capacity c;

		read(str_of(row[i].text), &c);
		check_number(row[i].text, "tokens", c.kv_tokens, row[i].tokens);
		check_number(row[i].text, "concurrency", c.max_concurrency, row[i].concurrency);
		check_number(row[i].text, "length", c.tokens_per_request, row[i].length);
		assert_int_equal(c.is_known, row[i].tokens >= 0);
		assert_string_equal(c.source, c.is_known ? source : "");
	}
}

static void test_log(void **state)
{
	(void)state;
	check_rows(logs, sizeof(logs) / sizeof(*logs), "log", capacity_of_log);
}

static void test_metrics(void **state)
{
	(void)state;
	check_rows(metrics, sizeof(metrics) / sizeof(*metrics), "metrics", capacity_of_metrics);
}

static void test_write(void **state)
{
	struct capacity c;
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);

	(void)state;
	capacity_of_log(str_of("GPU KV cache size: 1,000 tokens"), &c);
	capacity_write(&c, &w);
	assert_string_equal(out.data, "{\"kv_tokens\": 1000.0, \"max_concurrency\": null, "
			    "\"tokens_per_request\": null, \"source\": \"log\"}");
	capacity_of_log(STR(""), &c);
	buf_reset(&out);
	w = json_writer(&out);
	capacity_write(&c, &w);
	assert_string_equal(out.data, "{\"kv_tokens\": null, \"max_concurrency\": null, "
			    "\"tokens_per_request\": null, \"source\": null}");
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_log), cmocka_unit_test(test_metrics),
		cmocka_unit_test(test_write),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
