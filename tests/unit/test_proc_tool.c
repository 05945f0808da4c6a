/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_tool.c - another program run to its end. */
/* threads: yes */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "host/proc/tool.h"
#include "host/proc/tree.h"

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

/* The process whose number the file holds; 0: not yet. */
static pid_t number_in(const char *path)
{
	FILE *f = fopen(path, "r");
	int pid = 0;

	if (f && fscanf(f, "%d", &pid) != 1)
		pid = 0;
	if (f)
		fclose(f);
	return pid;
}

/* Another process ended it a moment ago: its parent may not have collected it yet. */
static bool is_gone(pid_t pid)
{
	for (int i = 0; i < 500; i++) {
		struct tree_process p;

		if (!tree_process_read(pid, &p) || p.is_zombie)
			return true;
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	}
	return false;
}

static void *set_soon(void *flag)
{
	nanosleep(&(struct timespec){ .tv_nsec = 300000000 }, NULL);
	atomic_store((atomic_bool *)flag, true);
	return NULL;
}

static void what_it_started_ends_too(void **state)
{
	char path[] = "/tmp/test-proc-tool-XXXXXX", script[160];
	const char *argv[] = { "sh", "-c", script, NULL };
	int fd = mkstemp(path);

	(void)state;
	assert_true(fd >= 0);
	close(fd);
	snprintf(script, sizeof(script), "sleep 60 & echo $! >%s; wait", path);
	for (int is_cancelled = 0; is_cancelled < 2; is_cancelled++) {
		atomic_bool cancel = false;
		struct tool_opts o = { .argv = argv, .timeout_s = is_cancelled ? 60 : 1,
				       .cancel = &cancel };
		struct buf out = { 0 };
		struct err e = { 0 };
		pthread_t thread;

		if (is_cancelled)
			assert_int_equal(pthread_create(&thread, NULL, set_soon, &cancel), 0);
		assert_int_equal(tool_run_within(&o, &out, NULL, &e), -1);
		assert_int_equal(e.code, is_cancelled ? ERR_CANCELLED : ERR_LIMIT);
		if (is_cancelled)
			pthread_join(thread, NULL);
		assert_true(number_in(path) > 0);
		assert_true(is_gone(number_in(path)));
		buf_release(&out);
	}
	unlink(path);
}

static void an_environment_and_limits_of_its_own(void **state)
{
	const char *argv[] = { "sh", "-c", "echo $OWN-$HOME; sleep 1; yes | head -c 2000000", NULL };
	char *envp[] = { (char[]){ "OWN=1" }, (char[]){ "PATH=/usr/bin:/bin" }, NULL };
	struct tool_opts o = { .argv = argv, .envp = envp, .timeout_s = 30 };
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(tool_run_within(&o, &out, NULL, &e), 0);
	assert_true(str_starts(buf_str(&out), STR("1-\n")));
	assert_true(out.len > 1999999);
	o.file_bytes_max = 100000;
	buf_reset(&out);
	tool_run_within(&o, &out, NULL, &e);
	assert_int_equal(out.len, 100000);
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
		cmocka_unit_test(what_it_started_ends_too),
		cmocka_unit_test(an_environment_and_limits_of_its_own),
		cmocka_unit_test(looked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
