/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_read_commands.c - the commands that vLLM's performance suite leaves next to a result become
 * members of it, if both are objects.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "results/read/read.h"
#include "scratch.h"

static char path[160], side[160];

static void put(const char *to, const char *text)
{
	struct err e = { 0 };

	if (file_write_atomic(to, str_of(text), &e) < 0)
		fail_msg("%s", e.text);
}

/* What is wanted has no white space. */
static const struct { const char *name, *result, *commands, *want; } added[] = {
	{ "serving_a.json", " {\"completed\": 1}\n", "{\"server_command\": \"vllm\", \"n\": 3, "
	  "\"gpu_type\": \"H100\"}", "{\"completed\":1,\"test_name\":\"serving_a\","
	  "\"server_command\":\"vllm\",\"gpu_type\":\"H100\"}" },
	{ "a.json", "{\"a\": 1}", NULL, "{\"a\":1}" },
	{ "a.json", "{\"a\": 1}", "[1]", "{\"a\":1}" },
	{ "a.json", "{\"a\": 1}", "{\"b\": ", "{\"a\":1}" },
	{ "a.json", "{}", "{\"b\": \"c\"}", "{}" }, { "a.json", "[1]", "{\"b\": \"c\"}", "[1]" },
	{ "a.json", "", "{\"b\": \"c\"}", "" },
	{ "a.json", "{\"a\": 1", "{\"b\": \"c\"}", "{\"a\":1" },
	{ "a.txt", "{\"a\": 1}", "{\"b\": \"c\"}", "{\"a\":1}" },
	{ "a.json", "{\n\"a\": 1}", "{}", "{\"a\":1,\"test_name\":\"a\"}" },
};

static void commands(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(added) / sizeof(*added); i++) {
		struct buf bytes = { 0 }, plain = { 0 }; /* without white space */
		const char *dot = strrchr(added[i].name, '.');

		snprintf(path, sizeof(path), "%s/%s", dir, added[i].name);
		snprintf(side, sizeof(side), "%s/%.*s.commands", dir, (int)(dot - added[i].name),
			 added[i].name);
		remove(side);
		if (added[i].commands)
			put(side, added[i].commands);
		buf_add_text(&bytes, added[i].result);
		result_add_commands(path, &bytes);
		print_message("# %s: %s\n", added[i].name, bytes.data ? bytes.data : "");
		for (size_t at = 0, n = bytes.len; at < n; at++)
			if (bytes.data[at] != ' ' && bytes.data[at] != '\n')
				buf_add_char(&plain, bytes.data[at]);
		assert_string_equal(plain.data ? plain.data : "", added[i].want);
		buf_release(&plain);
		buf_release(&bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(commands) };

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
