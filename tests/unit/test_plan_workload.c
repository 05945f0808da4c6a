/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_workload.c - texts of a workload that are in memory up to its limit, and in a file of
 * $TMPDIR from there on.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "client/plan/workload.h"
#include "core/base/mem.h"
#include "scratch.h"

#define TEXTS 300

/* The C library's pwrite, which a signal or a full disk may cut short. */
static enum { WHOLE, IN_PIECES, DISK_IS_FULL } writes;

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
	static unsigned calls;

	if (writes == DISK_IS_FULL && n < 10) {
		errno = ENOSPC;
		return -1;
	}
	if (writes != WHOLE && calls++ % 3 == 1) {
		errno = EINTR;
		return -1;
	}
	return syscall(SYS_pwrite64, fd, p, writes != WHOLE && n >= 10 ? n / 2 : n, at);
}

/* Text i: i bytes of one letter. */
static void make(char *room, size_t i)
{
	memset(room, 'a' + (int)(i % 26), i);
}

static void check_all(const struct str *kept)
{
	char want[TEXTS];

	for (size_t i = 0; i < TEXTS; i++) {
		make(want, i);
		assert_int_equal(kept[i].n, i);
		assert_memory_equal(kept[i].p, want, i);
	}
}

static void texts_are_kept(void **state)
{
	/*
	 * All in memory; from some text on in the file; all in the file but the empty one, written
	 * at once or in pieces.
	 */
	static const size_t most[] = { 0, 5000, 1, 1 };

	(void)state;
	setenv("TMPDIR", dir, 1);
	for (size_t k = 0; k < sizeof(most) / sizeof(*most); k++) {
		struct workload w = { .memory_max = most[k] };
		struct str kept[TEXTS];
		char room[TEXTS];
		struct err e = { 0 };

		writes = k == 3 ? IN_PIECES : WHOLE;
		for (size_t i = 0; i < TEXTS; i++) {
			make(room, i);
			kept[i] = (struct str){ room, i };
			assert_int_equal(workload_keep(&w, &kept[i], &e), 0);
			assert_ptr_not_equal(kept[i].p, room);
			memset(room, '?', sizeof(room));
		}
		assert_int_equal(w.spill != NULL, k > 0);
		/* What is in memory is within the limit, but for rounding. */
		if (k == 1)
			assert_true(w.arena.bytes > 2500 && w.arena.bytes <= 5000 + 16);
		if (k == 2)
			assert_true(w.arena.bytes <= 16);
		check_all(kept);
		workload_forget(&w);
		check_all(kept);
		workload_release(&w);
		assert_null(w.spill);
	}
}

static void full_disk(void **state)
{
	struct workload w = { .memory_max = 1 };
	struct str text = STR("some bytes that do not fit");
	struct err e = { 0 };

	(void)state;
	setenv("TMPDIR", dir, 1);
	writes = DISK_IS_FULL;
	assert_int_equal(workload_keep(&w, &text, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_non_null(strstr(e.text, "No space left"));
	assert_non_null(strstr(e.text, dir));
	writes = WHOLE;
	workload_release(&w);
}

static void no_folder(void **state)
{
	struct workload w = { .memory_max = 1 };
	struct str text = STR("text");
	struct err e = { 0 };

	(void)state;
	setenv("TMPDIR", "/nonexistent/folder", 1);
	assert_int_equal(workload_keep(&w, &text, &e), -1);
	assert_int_equal(e.code, ERR_IO);
	assert_string_equal(e.text, "the prompts need a file in /nonexistent/folder (TMPDIR), which cannot "
			    "be made: No such file or directory");
	workload_release(&w);
	workload_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_kept),
		cmocka_unit_test(full_disk),
		cmocka_unit_test(no_folder),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
