/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_oom.c - the kernel's counter of a cgroup, in folders that look like both versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <signal.h>
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_counter),
		cmocka_unit_test(finds_none),
		cmocka_unit_test(why_it_was_killed),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
