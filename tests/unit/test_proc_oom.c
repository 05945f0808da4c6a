/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_proc_oom.c - why a program ended: the kernel's counter of a cgroup, in folders that look
 * like both versions, its signal, a full disk.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/file.h"
#include "host/proc/exit_reason.h"
#include "scratch.h"

/* A file of the made-up mount. */
static void put(const char *folder, const char *name, const char *text)
{
	char *path = file_join(dir, folder), *file;

	assert_int_equal(file_mkdirs(path, NULL), 0);
	file = file_join(path, name);
	assert_int_equal(file_write_atomic(file, str_of(text), NULL), 0);
	free(file);
	free(path);
}

static void finds_the_counter(void **state)
{
	static const struct { const char *cgroups, *folder, *name; } row[] = {
		{ "0::/user.slice/run.scope\n", "user.slice/run.scope", "memory.events" },
		/* In a container without a namespace of its own the path is the host's. */
		{ "0::/not/here\n", ".", "memory.events" },
		{ "9:name=systemd:/\n5:cpu,memory:/a:b\n0::/\n", "memory/a:b", "memory.oom_control" },
		{ "4:memory:/not/here\n", "memory", "memory.oom_control" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct oom_counter c;

		put(row[i].folder, row[i].name, "low 3\noom 9\noom_kill 4\nunder_oom 0\n");
		oom_begin_at(&c, dir, str_of(row[i].cgroups));
		if (!c.path[0] || c.kills != 4)
			fail_msg("%s: '%s' %u", row[i].cgroups, c.path, (unsigned)c.kills);
		assert_false(oom_has_risen(&c));
		put(row[i].folder, row[i].name, "low 3\noom 9\noom_kill 5\nunder_oom 0\n");
		assert_true(oom_has_risen(&c));
		put(row[i].folder, row[i].name, "low 9\noom 99\noom_kill 4\nunder_oom 1\n");
		assert_false(oom_has_risen(&c));
		assert_int_equal(unlink(c.path), 0);
		assert_false(oom_has_risen(&c));
	}
}

static void finds_none(void **state)
{
	static const char *const row[] = {
		"", "0::/x\n", "4:memory:/x\n", "nonsense", "0::", "::::\n\n", "7:cpu:/\n",
	};
	struct oom_counter c;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		oom_begin_at(&c, dir, str_of(row[i]));
		assert_string_equal(c.path, "");
		assert_false(oom_has_risen(&c));
	}
	put(".", "memory.events", "oom_kill many\n");
	oom_begin_at(&c, dir, STR("0::/\n"));
	assert_string_equal(c.path, "");
	oom_begin(&c, getpid()); /* whatever this machine has */
	assert_false(oom_has_risen(&c));
}

/* Signal 9 is memory only when the log or the kernel says so. */
static void why_it_was_killed(void **state)
{
	static const char said[] = "INFO Application startup complete.\n";
	struct oom_counter c;
	struct str reason;

	(void)state;
	put(".", "memory.events", "oom_kill 0\n");
	oom_begin_at(&c, dir, STR("0::/\n"));
	assert_int_equal(exit_reason_sign(str_of(said), true, -SIGKILL, &c, &reason),
			 LAST_SIGN_KILLED);
	assert_non_null(memmem(reason.p, reason.n, "has not risen", 13));
	/* The cgroup of what a shell or a container runs may be another. */
	assert_int_equal(exit_reason_sign(str_of(said), true, 137, &c, &reason), LAST_SIGN_KILLED);
	assert_non_null(memmem(reason.p, reason.n, "would tell", 10));
	assert_int_equal(exit_reason_sign(STR("CUDA out of memory"), true, -SIGKILL, &c, &reason),
			 LAST_SIGN_MEMORY);
	put(".", "memory.events", "oom_kill 1\n");
	assert_int_equal(exit_reason_sign(str_of(said), true, -SIGKILL, &c, &reason),
			 LAST_SIGN_MEMORY);
	assert_true(str_is(reason, "the kernel's out-of-memory killer ended a process of its cgroup"));
	/* An engine's process was killed, and the server that waited for it gave up. */
	assert_int_equal(exit_reason_sign(str_of(said), true, 1, &c, &reason), LAST_SIGN_MEMORY);
	assert_int_equal(exit_reason_sign(STR("x\nGatedRepoError: no"), true, 1, &c, &reason),
			 LAST_SIGN_MODEL);
	assert_int_equal(exit_reason_sign(str_of(said), true, 0, &c, &reason), LAST_SIGN_NONE);
}

static struct statvfs disk; /* what any file is on */

int fstatvfs(int fd, struct statvfs *out)
{
	*out = disk;
	return fd < 0 ? -1 : 0;
}

/* Pseudo files such as those of /proc are on a file system without blocks. */
static void the_disk_is_full(void **state)
{
	static const struct { int fd; fsblkcnt_t blocks, free, available; bool want; } row[] = {
		{ 0, 100, 5, 0, true }, { 0, 100, 5, 1, false }, { 0, 0, 0, 0, false },
		{ -1, 100, 5, 0, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		disk = (struct statvfs){ .f_blocks = row[i].blocks, .f_bfree = row[i].free,
					 .f_bavail = row[i].available };
		assert_int_equal(exit_reason_is_disk_full(row[i].fd), row[i].want);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_counter),
		cmocka_unit_test(finds_none),
		cmocka_unit_test(why_it_was_killed),
		cmocka_unit_test(the_disk_is_full),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
