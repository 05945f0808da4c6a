/* SPDX-License-Identifier: Apache-2.0 */
/* The library without anything to start: what is refused, and a server that is not there. */
/* threads: yes */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/base/str.h"
#include "lib/profllm.h"
#include "scratch.h"

#define ATTACH "name: a\nserver: {url: 'http://127.0.0.1:1', ready_timeout_s: 1}\n" \
	"benchmark: {model: m, tokenizer: sim, num_prompts: 1, ready_check_timeout_sec: 1}\n"

static struct buf heard;

static void hear(void *self, const char *text)
{
	assert_ptr_equal(self, &heard);
	buf_printf(&heard, "%s\n", text);
}

static void refused(void **state)
{
	static const struct { const char *path, *text, *set, *error; } row[] = {
		{ NULL, NULL, NULL, "expected a config_path or a config_text, got neither" },
		{ "a", "name: b", NULL, "got both" },
		{ "/nonexistent.yaml", NULL, NULL, "/nonexistent.yaml" },
		{ NULL, "name: [", NULL, "configuration:2:1: " },
		{ NULL, "nam: x\n", NULL, "configuration:1:1: nam: unknown key" },
		{ NULL, "name: x\n", "word", "--set word: expected KEY=VALUE" },
		{ NULL, "name: x\n", "benchmark.num_prompts=x",
		  "--set benchmark.num_prompts=x: benchmark.num_prompts: expected" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const char *const set[] = { row[i].set, NULL };
		struct profllm_request r = PROFLLM_REQUEST_INIT;
		struct profllm_outcome o = PROFLLM_OUTCOME_INIT;

		r.config_path = row[i].path;
		r.config_text = row[i].text;
		r.set = set;
		assert_int_equal(profllm_run(&r, &o), PROFLLM_REFUSED);
		assert_int_equal(o.status, PROFLLM_REFUSED);
		assert_non_null(o.error);
		if (!strstr(o.error, row[i].error))
			fail_msg("row %zu: %s", i, o.error);
		profllm_release(&o);
		assert_null(o.error);
		profllm_release(&o);
	}
}

/* Structs of another size: hooks that an older program's request has not, and no size at all. */
static void sizes(void **state)
{
	struct profllm_request r = PROFLLM_REQUEST_INIT;
	struct profllm_outcome o = PROFLLM_OUTCOME_INIT;

	(void)state;
	r.config_text = "nam: x\n";
	r.size = offsetof(struct profllm_request, hooks);
	r.hooks.warn = (void (*)(void *, const char *))(uintptr_t)1;
	r.cancel = (const unsigned char *)(uintptr_t)1;
	assert_int_equal(profllm_run(&r, &o), PROFLLM_REFUSED);
	profllm_release(&o);
	r.size = 0;
	assert_int_equal(profllm_run(&r, &o), PROFLLM_REFUSED);
	assert_non_null(strstr(o.error, "the request has no size"));
	profllm_release(&o);
	o.size = 0;
	o.error = "as it was";
	assert_int_equal(profllm_run(&r, &o), PROFLLM_REFUSED);
	assert_string_equal(o.error, "as it was");
	assert_int_equal(profllm_api(), PROFLLM_API);
	assert_true(strlen(profllm_version()) > 0);
}

static void a_server_that_is_not_there(void **state)
{
	struct profllm_request r = PROFLLM_REQUEST_INIT;
	struct profllm_outcome o = PROFLLM_OUTCOME_INIT;
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "%s/failed.json", dir);
	r.config_text = ATTACH;
	r.output_path = path;
	r.hooks.self = &heard;
	r.hooks.line = r.hooks.warn = hear;
	assert_int_equal(profllm_run(&r, &o), PROFLLM_FAILED);
	assert_non_null(o.error);
	assert_non_null(o.document);
	assert_non_null(strstr(o.document, "\"status\": \"failed\""));
	profllm_release(&o);
}

int main(void)
{
	const struct CMUnitTest test[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(sizes),
		cmocka_unit_test(a_server_that_is_not_there),
	};
	int rc = cmocka_run_group_tests(test, make_dir, remove_dir);

	buf_release(&heard);
	return rc;
}
