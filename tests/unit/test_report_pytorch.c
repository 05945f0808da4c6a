/* SPDX-License-Identifier: Apache-2.0 */
/* The PyTorch benchmark file: which records, what each repeats, when a run counts as compiled. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "out/report/pytorch.h"

#define BENCHMARK(args, mode, level, compiled)                                             \
	"{\"benchmark\": {\"name\": \"vLLM benchmark\", \"extra_info\": {\"args\": " args      \
	", \"compilation_config.mode\": " mode ", \"optimization_level\": " level              \
	", \"use_compile\": " compiled "}}, "
#define METRIC(model, name, value, extra)                                                  \
	"\"model\": {\"name\": " model "}, \"metric\": {\"name\": \"" name                      \
	"\", \"benchmark_values\": [" value "], \"extra_info\": " extra "}}"

static char *records(const struct pytorch_opts *o, const char *result)
{
	struct buf out = { 0 };
	struct err e = { 0 };

	assert_int_equal(pytorch_write(o, str_of(result), &out, &e), 0);
	return buf_take(&out);
}

static void one_record_per_metric(void **state)
{
	static const char result[] =
		"{\"date\": \"d\\u00e9\", \"tensor_parallel_size\": \"4\", \"burstiness\": Infinity, "
		"\"input_lens\": [1, 2], \"errors\": [\"\"], \"ttfts\": [1.0], \"itls\": [[]], "
		"\"generated_texts\": [], \"duration\": 1e-05, \"mean_ttft_ms\": 2.5, "
		"\"median_itl_ms\": 1.0, \"p99_ttft_ms\": 9.0, \"std_e2el_ms\": 3.0, "
		"\"profllm\": {\"a\": [1]}}";
#define ARGS "{\"seed\": 0, \"asr_max_audio_len_sec\": \"inf\", \"tensor_parallel_size\": \"4\"}"
#define EXTRA "{\"date\": \"d\\u00e9\", \"tensor_parallel_size\": \"4\", \"burstiness\": \"inf\", " \
	"\"input_lens\": [1, 2], \"duration\": 1e-05, \"std_e2el_ms\": 3.0}"
	static const char want[] =
		"[" BENCHMARK(ARGS, "\"\"", "\"\"", "true") METRIC("\"m\"", "mean_ttft_ms", "2.5", EXTRA)
		", " BENCHMARK(ARGS, "\"\"", "\"\"", "true") METRIC("\"m\"", "p99_ttft_ms", "9.0", EXTRA)
		", " BENCHMARK(ARGS, "\"\"", "\"\"", "true") METRIC("\"m\"", "median_itl_ms", "1.0", EXTRA)
		"]";
	const struct pytorch_opts o = {
		.args = STR("{\"seed\": 0, \"asr_max_audio_len_sec\": Infinity}"), .model = "m",
	};
	char *text = records(&o, result);

	(void)state;
	assert_string_equal(text, want);
	free(text);
}

static void metadata_tells_how_it_was_compiled(void **state)
{
	static const struct {
		const char *extra, *filename, *mode, *level, *compiled;
	} row[] = {
		{ "", NULL, "\"\"", "\"\"", "true" },
		{ "\"compilation_config.mode\": \"3\", \"optimization_level\": \"2\", ", NULL, "\"3\"",
		  "\"2\"", "true" },
		{ "\"compilation_config.mode\": \"0\", ", "r.json", "\"0\"", "\"\"", "false" },
		{ "", "my-eager-run.json", "\"\"", "\"\"", "false" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct pytorch_opts o = { .args = STR("{}"), .result_filename = row[i].filename };
		struct buf result = { 0 }, want = { 0 };
		char *text;

		buf_printf(&result, "{%s\"std_itl_ms\": 0.0}", row[i].extra);
		text = records(&o, result.data);
		buf_printf(&want, "\"args\": {}, \"compilation_config.mode\": %s, "
			   "\"optimization_level\": %s, \"use_compile\": %s}}, \"model\": {\"name\": "
			   "null}, ", row[i].mode, row[i].level, row[i].compiled);
		assert_non_null(strstr(text, want.data));
		free(text);
		buf_release(&result);
		buf_release(&want);
	}
}

/* Embeddings have none of these metrics. */
static void without_a_metric_there_is_nothing(void **state)
{
	const struct pytorch_opts o = { .args = STR("{}") };
	char *text = records(&o, "{\"duration\": 1.0, \"mean_e2el_ms\": 2.0}");
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_string_equal(text, "");
	free(text);
	assert_int_equal(pytorch_write(&o, STR("{\"a\": "), &out, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	buf_release(&out);
}

static void the_last_suffix_is_replaced(void **state)
{
	static const char *const row[][2] = {
		{ "r.json", "r.pytorch.json" }, { "d.x/r", "d.x/r.pytorch.json" },
		{ "d/run.v1", "d/run.pytorch.json" }, { "a/.r", "a/.r.pytorch.json" },
		{ "a/.r.json", "a/.r.pytorch.json" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		char *path = pytorch_path(row[i][0]);

		assert_string_equal(path, row[i][1]);
		free(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_record_per_metric),
		cmocka_unit_test(metadata_tells_how_it_was_compiled),
		cmocka_unit_test(without_a_metric_there_is_nothing),
		cmocka_unit_test(the_last_suffix_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
