/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_tool.c - another program run to its end. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <signal.h>
#include <cmocka.h>

#include "proc/tool.h"

static int sh(const char *script, const char *input, unsigned timeout_s, struct buf *out,
	      struct buf *errors, struct err *e)
{
	const char *argv[] = { "sh", "-c", script, NULL };

	return tool_run(argv, str_of(input), timeout_s, out, errors, e);
}

static void input_comes_back(void **state)
{
	struct buf out = { 0 }, errors = { 0 };
	struct err e = { 0 };

	(void)state;
	buf_add_text(&out, "before ");
	assert_int_equal(sh("cat; echo bad >&2; exit 3", "some text", 10, &out, &errors, &e), 3);
	assert_string_equal(out.data, "before some text");
	assert_string_equal(errors.data, "bad\n");
	buf_reset(&out);
	assert_int_equal(sh("echo one; echo two >&2", "", 10, &out, NULL, &e), 0);
	assert_string_equal(out.data, "one\ntwo\n");
	assert_int_equal(e.code, ERR_NONE);
	buf_release(&out);
	buf_release(&errors);
}

/* More than a pipe holds, both ways: neither side waits for the other. */
static void large_texts(void **state)
{
	struct buf in = { 0 }, out = { 0 };
	struct err e = { 0 };

	(void)state;
	for (int i = 0; i < 200000; i++)
		buf_printf(&in, "line %d\n", i);
	assert_int_equal(sh("cat", in.data, 20, &out, NULL, &e), 0);
	assert_int_equal(out.len, in.len);
	assert_memory_equal(out.data, in.data, in.len);
	buf_release(&in);
	buf_release(&out);
}

static void bad_ends(void **state)
{
	const char *missing[] = { "no-such-tool-anywhere", NULL };
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(sh("kill -TERM $$", "", 10, &out, NULL, &e), 128 + 15);
	assert_int_equal(e.code, ERR_NONE);
	assert_int_equal(sh("exec sleep 30", "", 1, &out, NULL, &e), -1);
	assert_string_equal(e.text, "sh did not end within 1 s");
	e = (struct err){ 0 };
	assert_int_equal(tool_run(missing, str_of(""), 1, &out, NULL, &e), -1);
	assert_non_null(strstr(e.text, "cannot start no-such-tool-anywhere: "));
	e = (struct err){ 0 };
	out.limit = 1000;
	assert_int_equal(sh("seq 100000", "", 10, &out, NULL, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	buf_release(&out);
}

/* Where the kernel collects children by itself no status is known, and none is made up. */
static void an_end_nobody_saw(void **state)
{
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	signal(SIGCHLD, SIG_IGN);
	assert_int_equal(sh("exit 3", "", 10, &out, NULL, &e), -1);
	signal(SIGCHLD, SIG_DFL);
	assert_string_equal(e.text, "sh: its exit status is lost: No child processes");
	buf_release(&out);
}

static void looked_for(void **state)
{
	(void)state;
	assert_true(tool_exists("sh"));
	assert_false(tool_exists("no-such-tool-anywhere"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_comes_back),
		cmocka_unit_test(large_texts),
		cmocka_unit_test(bad_ends),
		cmocka_unit_test(an_end_nobody_saw),
		cmocka_unit_test(looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
