/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_config_container.c - what docker is asked when a container begins and ends, and what is
 * said of its answers. docker is a script: files of its folder are its state, and it writes down
 * every call.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "experiment/config/container.h"
#include "host/proc/keeper.h"
#include "host/proc/roster.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof(*(a)))
#define ID_BYTES 16
#define PS "ps -aq --filter label=profllm.owner\n"
#define IMAGE "image inspect --format {{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}} img\n"
#define LOOK "inspect --format {{.Name}} {{index .Config.Labels \"profllm.owner\"}} "
#define HERE "ps -aq --filter name=^box$\n"

/* fail-WORD makes calls of WORD fail with its text; here: the container exists. */
static const char docker[] =
	"#!/bin/sh\n"
	"cd ${0%/*}; PATH=/usr/bin:/bin\n"
	"echo \"$*\" >>calls\n"
	"if [ -e fail-$1 ]; then cat fail-$1 >&2; exit 7; fi\n"
	"case $1:$4 in\n"
	"ps:name=*) [ ! -e here ] || echo 0f ;;\n"
	"ps:*) [ ! -e ids ] || cat ids ;;\n"
	"inspect:*) cat \"owner-$4\" ;;\n"
	"image:*) cat image ;;\n"
	"pull:*) echo Pulling; cp remote image ;;\n"
	"stop:*) [ -e deaf ] || rm here; [ ! -e fallen ] || mv fallen fail-ps ;;\n"
	"rm:*) [ -e stuck ] || rm -f here ;;\n"
	"esac\n";

struct file { const char *name, *text; };

/* ---- the rig ---- */

static void say(void *self, const char *text)
{
	buf_printf(self, "%s\n", text);
}

static void put(const char *name, const char *text)
{
	struct arena a = { 0 };

	scratch_put(&a, name, text);
	arena_release(&a);
}

static void begin(const struct file *files)
{
	char command[sizeof(dir) + 32];

	snprintf(command, sizeof(command), "rm -rf %s/bin", dir);
	assert_int_equal(system(command), 0);
	put("bin/docker", docker);
	snprintf(command, sizeof(command), "%s/bin/docker", dir);
	assert_int_equal(chmod(command, 0755), 0);
	for (; files && files->name; files++) {
		snprintf(command, sizeof(command), "bin/%s", files->name);
		put(command, files->text);
	}
}

static void check_calls(const char *want)
{
	char path[sizeof(dir) + 16];
	struct buf text = { 0 };
	struct err e;

	snprintf(path, sizeof(path), "%s/bin/calls", dir);
	assert_int_equal(file_read(path, 1 << 20, &text, &e), 0);
	buf_add_char(&text, '\0');
	assert_string_equal(text.data, want);
	buf_release(&text);
}

static int setup(void **state)
{
	char path[sizeof(dir) + 32];

	if (make_dir(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/bin:/usr/bin:/bin", dir);
	return setenv("PATH", path, 1);
}

/* ---- begin ---- */

static void test_begin(void **state)
{
	const struct {
		struct file files[4];
		const char *digest, *told, *error, *calls;
	} rows[] = {
		{ { { "image", "img@sha256:ab\n" } }, "img@sha256:ab", "", NULL, PS IMAGE },
		{ { { "remote", " sha256:cd\n" } }, "sha256:cd", "Pulling image img\n", NULL,
		  PS IMAGE "pull img\n" IMAGE },
		{ { { "image", "\n" } }, NULL, "", NULL, PS IMAGE },
		{ { { "fail-pull", "one\n\n the daemon says no \nSee 'docker pull --help'\n\n" } }, NULL,
		  "Pulling image img\n", "server.container.image img: docker pull: the daemon says no "
		  "(exit status 7)", PS IMAGE "pull img\n" },
		{ { { "fail-ps", "Is the daemon running?\n" } }, NULL, "",
		  "docker ps: Is the daemon running? (exit status 7)", PS },
		{ { { "fail-ps", "" } }, NULL, "", "docker ps:  (exit status 7)", PS },
		{ { { "ids", "gone\n\n" }, { "image", "i\n" } }, "i", "", NULL, PS LOOK "gone\n" IMAGE },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct container c = { .runtime = "docker", .image = "img", .name = "box" };
		struct buf told = { 0 };
		const struct experiment_hooks hooks = { .self = &told, .line = say, .warn = say };
		struct arena a = { 0 };
		struct err e = { 0 };
		int rc;

		begin(rows[i].files);
		buf_add_text(&told, "");
		rc = container_begin(&c, &a, &hooks, &e);
		assert_string_equal(e.text, rows[i].error ? rows[i].error : "");
		assert_int_equal(rc, rows[i].error ? -1 : 0);
		assert_string_equal(told.len ? told.data : "", rows[i].told);
		if (rows[i].digest)
			assert_string_equal(c.digest, rows[i].digest);
		else
			assert_null(c.digest);
		check_calls(rows[i].calls);
		buf_release(&told);
		arena_release(&a);
	}
}

/* What the runtime says is cut where a screen is full; nobody need listen; it must be there. */
static void test_refusals(void **state)
{
	struct container c = { .runtime = "docker", .image = "img", .name = "box" };
	char much[1000], *path;
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	memset(much, 'x', sizeof(much));
	much[sizeof(much) - 1] = '\0';
	begin((struct file[]){ { "fail-pull", much }, { 0 } });
	assert_int_equal(container_begin(&c, &a, NULL, &e), -1);
	assert_int_equal(strspn(strchr(e.text, 'x'), "x"), 600);
	c.runtime = "podman";
	path = strdup(getenv("PATH"));
	setenv("PATH", dir, 1);
	assert_int_equal(container_begin(&c, &a, NULL, &e), -1);
	setenv("PATH", path, 1);
	free(path);
	assert_string_equal(e.text, "server.container.runtime: podman is not in PATH");
	assert_int_equal(e.code, ERR_USAGE);
	arena_release(&a);
}

/* ---- containers of dead owners ---- */

/* A process that has ended. */
static pid_t ended_process(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

/* The dead one cannot be removed. */
static void check_busy(struct container *c, struct arena *a, const struct experiment_hooks *hooks,
		       struct buf *told)
{
	struct err e = { 0 };

	buf_reset(told);
	put("bin/ids", "dead\n");
	put("bin/fail-rm", "it is busy\n");
	assert_int_equal(container_begin(c, a, hooks, &e), 0);
	assert_string_equal(told->data, "container N1, which an earlier run left, cannot be ended: "
			    "docker rm: it is busy (exit status 7)\n");
}

static void test_owners(void **state)
{
	/* Those that are not named are this process's. */
	static const struct {
		const char *id, *host, *user, *pid, *start, *boot, *space;
		bool is_dead;
	} rows[] = {
		{ .id = "own" }, { .id = "dead", .pid = "ENDED", .is_dead = true },
		{ .id = "reused", .start = "1", .is_dead = true },
		{ .id = "reboot", .boot = "another", .is_dead = true },
		{ .id = "host", .host = "elsewhere", .start = "1" }, { .id = "user", .user = "54321", .start = "1" },
		{ .id = "nobody", .user = "x", .start = "1" }, { .id = "space", .space = "pid:[1]", .start = "1" },
		{ .id = "init", .pid = "1", .start = "1" }, { .id = "most", .pid = "4194304", .is_dead = true },
		{ .id = "more", .pid = "4194305" }, { .id = "word", .pid = "x", .start = "1" },
		{ .id = "never", .start = "x" },
	};
	struct buf ids = { 0 }, calls = { 0 }, told = { 0 }, want = { 0 };
	const struct experiment_hooks hooks = { .self = &told, .line = say, .warn = say };
	struct container c = { .runtime = "docker", .image = "img", .name = "box" };
	struct tree_process self = { 0 };
	struct arena a = { 0 };
	struct roster here;
	struct str space, boot;
	struct err e = { 0 };
	char user[16], pid[16], ended[16], start[32];

	(void)state;
	roster_init(&here);
	space = str_of(here.boot);
	boot = str_cut(&space, ' ');
	assert_true(tree_process_read(getpid(), &self));
	snprintf(user, sizeof(user), "%u", (unsigned)geteuid());
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	snprintf(ended, sizeof(ended), "%d", (int)ended_process());
	snprintf(start, sizeof(start), "%llu", (unsigned long long)self.start);
	begin((struct file[]){ { "image", "i" }, { 0 } });
	buf_add_text(&calls, PS);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const char *name = i % 2 ? "/" : "";
		char path[ID_BYTES + 16];
		struct buf owner = { 0 };

		buf_printf(&owner, "%sN%zu %s %s %s %s %s %s\n", name, i, rows[i].host ? rows[i].host : here.host,
			   rows[i].user ? rows[i].user : user, !rows[i].pid ? pid :
			   strcmp(rows[i].pid, "ENDED") == 0 ? ended : rows[i].pid,
			   rows[i].start ? rows[i].start : start,
			   rows[i].boot ? rows[i].boot : arena_text(&a, boot),
			   rows[i].space ? rows[i].space : arena_text(&a, space));
		snprintf(path, sizeof(path), "bin/owner-%s", rows[i].id);
		put(path, owner.data);
		buf_printf(&ids, "%s\n", rows[i].id);
		buf_printf(&calls, LOOK "%s\n", rows[i].id);
		if (rows[i].is_dead) {
			buf_printf(&calls, "rm -f %s\n", rows[i].id);
			buf_printf(&want, "ended container N%zu that an earlier run left when it was killed\n", i);
		}
		buf_release(&owner);
	}
	buf_add_text(&calls, IMAGE);
	put("bin/ids", ids.data);
	assert_int_equal(container_begin(&c, &a, &hooks, &e), 0);
	check_calls(calls.data);
	assert_string_equal(told.data, want.data);
	check_busy(&c, &a, &hooks, &told);
	buf_release(&ids);
	buf_release(&calls);
	buf_release(&told);
	buf_release(&want);
	roster_release(&here);
	arena_release(&a);
}

/* ---- end ---- */

static void test_end(void **state)
{
#define STOP "stop -t 3 box\n"
#define RM "rm -f box\n"
	const struct {
		struct file files[4];
		const char *error, *calls;
	} rows[] = {
		{ { { 0 } }, NULL, HERE },
		{ { { "here", "" } }, NULL, HERE STOP HERE },
		{ { { "here", "" }, { "deaf", "" } }, NULL, HERE STOP HERE RM HERE },
		{ { { "here", "" }, { "fail-stop", "no such signal\n" } }, NULL, HERE STOP HERE RM HERE },
		{ { { "here", "" }, { "fail-stop", "no such signal\n" }, { "fail-rm", "it is busy\n" } },
		  "container box cannot be ended: docker rm: it is busy (exit status 7)",
		  HERE STOP HERE RM HERE },
		{ { { "here", "" }, { "deaf", "" }, { "stuck", "" } },
		  "container box cannot be ended: "
		  "it is still there after docker rm -f", HERE STOP HERE RM HERE },
		{ { { "fail-ps", "no daemon" } }, "docker ps: no daemon (exit status 7)", HERE },
		{ { { "here", "" }, { "deaf", "" }, { "fallen", "gone\n" } },
		  "docker ps: gone (exit status 7)", HERE STOP HERE },
	};
	const struct container c = { .runtime = "docker", .image = "img", .name = "box" };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct err e = { 0 };
		int rc;

		begin(rows[i].files);
		rc = container_end(&c, 2.6, &e);
		assert_string_equal(e.text, rows[i].error ? rows[i].error : "");
		assert_int_equal(rc, rows[i].error ? -1 : 0);
		check_calls(rows[i].calls);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_begin),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_owners),
		cmocka_unit_test(test_end),
	};

	if (argc > 1 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	return cmocka_run_group_tests(tests, setup, remove_dir);
}
