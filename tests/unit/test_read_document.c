/* SPDX-License-Identifier: Apache-2.0 */
/* Experiments' documents as the records that results are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/file.h"
#include "core/json/write.h"
#include "results/read/document.h"
#include "results/read/frame.h"
#include "scratch.h"

#define HEAD "\"schema_version\": 1, \"status\": \"completed\""
#define SERVE(name, tags, profiled) "{" HEAD ", \"config\": {\"name\": \"" name "\", \"tags\": " tags \
	", \"benchmark\": {\"random_input_len\": 8}, \"servers\": [{\"is_serving\": false, " \
	"\"arguments\": {\"block_size\": 16}}, {\"is_serving\": true, \"arguments\": {\"port\": 9, " \
	"\"max_num_seqs\": 4, \"request_rate\": 7, \"quantization\": null}}]}, \"results\": " \
	"{\"request_rate\": \"inf\", \"completed_requests\": 3, \"failed_requests\": 1, " \
	"\"mean_ttft_ms\": 5, \"profllm\": {\"start_ns\": 1}}, \"trust\": {\"verdict\": \"VALID\"}, " \
	"\"profiling\": {\"enabled\": " profiled "}}"
#define LATENCY "{" HEAD ", \"config\": {\"name\": \"x\"}, \"results\": {\"completed_requests\": " \
	"null, \"latency\": {\"avg_latency\": 2.5}}}"
#define FAILED "{" HEAD ", \"config\": {\"name\": \"x\"}, \"results\": null}"

/* Without a log, what is known of a server identifies it. */
#define KEY "\"server_key\": \"[{\\\"port\\\": 9, \\\"max_num_seqs\\\": 4, \\\"request_rate\\\": 7, " \
	"\\\"quantization\\\": null}, \\\"\\\", \\\"\\\"]\""

static void rows(void **state)
{
	static const struct { const char *document, *row; } table[] = {
		{ SERVE("a", "null", "false"),
		  "{\"request_rate\": \"inf\", \"completed\": 3, \"failed\": 1, \"mean_ttft_ms\": 5, "
		  "\"max_num_seqs\": 4, \"experiment\": \"a\", \"profllm\": {\"start_ns\": 1, "
		  "\"verdict\": \"VALID\", \"options\": {\"random_input_len\": 8}, " KEY "}}" },
		{ SERVE("max_num_seqs=4-b=5", "{\"decode_only\": \"true\"}", "true"),
		  "{\"request_rate\": \"inf\", \"completed\": 3, \"failed\": 1, \"max_num_seqs\": 4, "
		  "\"profllm\": {\"start_ns\": 1, \"verdict\": \"VALID\", \"options\": "
		  "{\"random_input_len\": 8}, \"profiled\": true, " KEY "}}" },
		{ SERVE("cold-one-max_num_seqs=4", "{}", "false"),
		  "{\"request_rate\": \"inf\", \"completed\": 3, \"failed\": 1, \"mean_ttft_ms\": 5, "
		  "\"max_num_seqs\": 4, \"experiment\": \"cold-one\", \"profllm\": {\"start_ns\": 1, "
		  "\"verdict\": \"VALID\", \"options\": {\"random_input_len\": 8}, " KEY "}}" },
		{ LATENCY, "{\"avg_latency\": 2.5, \"experiment\": \"x\", \"profllm\": {}}" },
		{ FAILED, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct arena a = { 0 };
		struct json_value *v;
		struct err e = { 0 };
		struct buf text = { 0 };
		struct json_writer w = json_writer(&text);
		const struct json_value *row;

		assert_int_equal(json_parse(&a, str_of(table[i].document), &v, &e), 0);
		assert_true(document_is(v));
		row = document_row(v, &a);
		assert_int_equal(row == NULL, table[i].row == NULL);
		if (row) {
			json_put_value(&w, row);
			assert_string_equal(text.data, table[i].row);
		}
		buf_release(&text);
		arena_release(&a);
	}
}

/* What is read from a file: one document, a suite of which one failed, plain results as before. */
static void files(void **state)
{
	static const struct { const char *text; int rows; } table[] = {
		{ SERVE("a", "null", "false"), 1 },
		{ "{\"schema_version\": 1, \"suite\": \"s\", \"experiments\": [" LATENCY ", " FAILED ", "
		  SERVE("a", "null", "false") "]}", 2 },
		{ FAILED, 0 },
		{ "[{\"mean_ttft_ms\": 1}, {\"config\": {}, \"results\": 3}]", 2 },
		{ "{\"schema_version\": 1, \"config\": 7, \"results\": 3, \"status\": 1}", 1 },
	};
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/r.json", dir);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct arena a = { 0 };
		struct frame f = { 0 };
		struct err e = { 0 };

		assert_int_equal(file_write_atomic(path, str_of(table[i].text), &e), 0);
		assert_int_equal(frame_read_file(&f, path, &a, &e), table[i].rows);
		arena_release(&a);
	}
}

int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(files),
	};

	return cmocka_run_group_tests(test, make_dir, remove_dir);
}
