/* SPDX-License-Identifier: Apache-2.0 */
/* Every engine argument with the value in effect, as vLLM's own command would list them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "core/base/str.h"
#include "core/json/write.h"
#include "host/engine/args.h"

static void values(struct buf *out, char *const *argv, bool is_async)
{
	struct json_writer w = json_writer(out);

	out->len = 0;
	json_begin_object(&w);
	engine_argv_values(argv, is_async, &w);
	json_end_object(&w);
}

static void test_as_upstream_lists_them(void **state)
{
	static const struct {
		const char *argv[6];
		bool is_async;
		const char *has, *lacks;
	} row[] = {
		{ { "x" }, false, "\"optimization_level\": 2,", "enable_log_requests" },
		{ { "x" }, true, "\"enable_log_requests\": false", "log_level" },
		{ { "x", "--log-level", "DEBUG" }, false, "\"seed\":", "log_level" },
		{ { "x" }, false, "\"max_logprobs\": 20", "logging_config" },
		{ { "x", "-O3" }, false, "\"optimization_level\": \"3\"", "log_config_file" },
		{ { "x", "--optimization-level", "1" }, false, "\"optimization_level\": \"1\"", "\"3\"" },
		{ { "x", "-tp", "4" }, false, "\"tensor_parallel_size\": 4", "\"tensor_parallel_size\": 1" },
	};
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		values(&out, (char *const *)row[i].argv, row[i].is_async);
		if (!strstr(out.data, row[i].has) || strstr(out.data, row[i].lacks))
			fail_msg("%zu: %s, not %s: %s", i, row[i].has, row[i].lacks, out.data);
	}
	buf_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_upstream_lists_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
