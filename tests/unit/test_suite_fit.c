/* SPDX-License-Identifier: Apache-2.0 */
/* What models need of a GPU's memory, against what their makers and vLLM's log say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "experiment/suite/check.h"

#define GIB 1073741824.0

#define LLAMA8 "{\"hidden_size\": 4096, \"intermediate_size\": 14336, \"num_hidden_layers\": 32," \
	"\"num_attention_heads\": 32, \"num_key_value_heads\": 8, \"vocab_size\": 128256," \
	"\"max_position_embeddings\": 131072, \"tie_word_embeddings\": false"
#define LLAMA70 "{\"hidden_size\": 8192, \"intermediate_size\": 28672, \"num_hidden_layers\": 80," \
	"\"num_attention_heads\": 64, \"num_key_value_heads\": 8, \"vocab_size\": 128256," \
	"\"max_position_embeddings\": 131072}"
#define QWEN_MOE "{\"hidden_size\": 2048, \"intermediate_size\": 6144, \"num_hidden_layers\": 48," \
	"\"num_attention_heads\": 32, \"num_key_value_heads\": 4, \"head_dim\": 128," \
	"\"num_experts\": 128, \"moe_intermediate_size\": 768, \"vocab_size\": 151936," \
	"\"max_position_embeddings\": 40960, \"tie_word_embeddings\": false}"
#define DEEPSEEK "{\"hidden_size\": 7168, \"intermediate_size\": 18432, " \
	"\"num_hidden_layers\": 61, \"num_attention_heads\": 128, \"num_key_value_heads\": 128," \
	"\"head_dim\": 128, \"n_routed_experts\": 256, \"n_shared_experts\": 1," \
	"\"moe_intermediate_size\": 2048, \"first_k_dense_replace\": 3, \"kv_lora_rank\": 512," \
	"\"qk_rope_head_dim\": 64, \"vocab_size\": 129280, \"max_position_embeddings\": 163840," \
	"\"quantization_config\": {\"quant_method\": \"fp8\"}}"

static void read_model(const char *text, struct fit_model *m)
{
	struct arena a = { 0 };
	struct json_value *v;
	struct err e = { 0 };

	assert_int_equal(json_parse(&a, str_of(text), &v, &e), 0);
	assert_int_equal(fit_model_read(v, m, &e), 0);
	arena_release(&a);
}

/* Parameters, and bytes of KV cache of one token in 16 bits, as published or as vLLM counts. */
static void sizes(void **state)
{
	static const struct { const char *config; double params, kv_token, tolerance; } row[] = {
		{ LLAMA8 "}", 8.03e9, 131072, 0.01 },
		{ LLAMA70, 70.55e9, 327680, 0.01 },
		{ QWEN_MOE, 30.53e9, 98304, 0.01 },
		{ DEEPSEEK, 671e9, 61 * 576 * 2, 0.03 },
		{ "{\"vocab_size\": 256, \"text_config\": " LLAMA8 "}}", 8.03e9, 131072, 0.01 },
		{ "{\"n_embd\": 768, \"n_layer\": 12, \"n_head\": 12, \"vocab_size\": 50257,"
		  "\"n_positions\": 1024, \"tie_word_embeddings\": true}", 152e6, 36864, 0.02 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct fit_model m;
		struct fit f;

		read_model(row[i].config, &m);
		fit_estimate(&m, &(struct fit_how){ .memory_bytes = 80 * GIB, .utilization = 0.9 },
			     &f);
		assert_true(f.params > row[i].params * (1 - row[i].tolerance));
		assert_true(f.params < row[i].params * (1 + row[i].tolerance));
		assert_true(f.kv_token_bytes == row[i].kv_token);
	}
}

static void estimate(const char *config, struct fit_how how, struct fit *f)
{
	struct fit_model m;

	read_model(config, &m);
	if (how.utilization <= 0)
		how.utilization = 0.9;
	if (how.memory_bytes <= 0)
		how.memory_bytes = 79.1 * GIB;
	fit_estimate(&m, &how, f);
}

static void what_fits(void **state)
{
	static const struct { const char *config; struct fit_how how; bool fits; } row[] = {
		{ LLAMA8 "}", { .max_len = 8192 }, true },
		{ LLAMA8 "}", { .memory_bytes = 22 * GIB, .max_len = 8192 }, true },
		{ LLAMA8 "}", { .memory_bytes = 22 * GIB }, false }, /* not its whole context */
		{ LLAMA8 "}", { .memory_bytes = 15 * GIB, .max_len = 1024 }, false },
		{ LLAMA8 "}", { .memory_bytes = 15 * GIB, .max_len = 1024, .weight_bits = 8 }, true },
		{ LLAMA8 ", \"quantization_config\": {\"quant_method\": \"awq\", \"bits\": 4}}",
		  { .memory_bytes = 10 * GIB, .max_len = 4096 }, true },
		{ LLAMA8 "}", { .memory_bytes = 16 * GIB, .max_len = 1024,
				.cpu_offload_bytes = 8 * GIB }, true },
		{ LLAMA70, { .max_len = 8192 }, false },
		{ LLAMA70, { .max_len = 8192, .tp = 2 }, true },
		{ LLAMA70, { .max_len = 32768, .tp = 2 }, false },
		{ LLAMA70, { .max_len = 8192, .tp = 4 }, true },
		{ LLAMA70, { .max_len = 8192, .tp = 2, .pp = 2 }, true },
		{ QWEN_MOE, { .max_len = 8192 }, true },
		{ DEEPSEEK, { .max_len = 8192, .tp = 8 }, false },
		{ DEEPSEEK, { .max_len = 8192, .tp = 8, .memory_bytes = 139.8 * GIB }, true },
	};
	struct fit f;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		estimate(row[i].config, row[i].how, &f);
		if (f.is_fitting != row[i].fits)
			fail_msg("row %zu: %g GiB of weights, %g tokens", i, f.weights_bytes / GIB,
				 f.kv_tokens);
	}
}

/* vLLM's log of this model on such a card: 14.99 GiB of weights, about 54 GiB of KV cache. */
static void published(void **state)
{
	struct fit f, fp8, tp2;

	(void)state;
	estimate(LLAMA8 "}", (struct fit_how){ .max_len = 8192 }, &f);
	assert_true(f.weights_bytes > 14.9 * GIB && f.weights_bytes < 15.1 * GIB);
	assert_true(f.kv_bytes > 53 * GIB && f.kv_bytes < 57 * GIB);
	estimate(LLAMA8 "}", (struct fit_how){ .max_len = 8192, .kv_bits = 8 }, &fp8);
	assert_true(fp8.kv_tokens == 2 * f.kv_tokens);
	estimate(LLAMA8 "}", (struct fit_how){ .max_len = 8192, .tp = 2 }, &tp2);
	assert_true(tp2.kv_token_bytes == f.kv_token_bytes / 2);
	assert_true(tp2.weights_bytes == f.weights_bytes / 2);
	/* Eight KV heads on sixteen GPUs: each keeps one. */
	estimate(LLAMA8 "}", (struct fit_how){ .max_len = 8192, .tp = 16 }, &tp2);
	assert_true(tp2.kv_token_bytes == f.kv_token_bytes / 8);
	/* The files' own size goes before what is counted. */
	estimate(LLAMA8 "}", (struct fit_how){ .weight_bytes = 5 * GIB }, &f);
	assert_true(f.weights_bytes == 5 * GIB);
}

static void no_models(void **state)
{
	static const char *const row[] = {
		"[]", "{}", "{\"hidden_size\": 8}", "{\"hidden_size\": -1, \"num_hidden_layers\": 1e300}",
		"{\"text_config\": 3, \"hidden_size\": \"big\"}",
	};
	struct fit_model m;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct arena a = { 0 };
		struct json_value *v;
		struct err e = { 0 };

		assert_int_equal(json_parse(&a, str_of(row[i]), &v, &e), 0);
		assert_int_equal(fit_model_read(v, &m, &e), -1);
		assert_int_equal(strncmp(e.text, "config.json", 11), 0);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(what_fits),
		cmocka_unit_test(published),
		cmocka_unit_test(no_models),
	};

	return cmocka_run_group_tests(test, NULL, NULL);
}
