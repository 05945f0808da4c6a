/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_proc_keeper.c - programs whose whole tree ends: asked to, with us, without a keeper.
 *
 * Every program is a shell that does what servers do at their worst. Whatever it starts carries a
 * variable in its environment by which the tests look for survivors, so no list is kept.
 *
 * threads: yes
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "host/proc/keeper.h"
#include "host/proc/roster.h"
#include "host/proc/tree.h"

static char folder[64], variable[64];

/* Processes that carry this run's variable, ourselves left out. */
static unsigned survivors(void)
{
	struct tree t = { 0 };
	unsigned n = 0;

	assert_int_equal(tree_read(&t), 0);
	for (size_t i = 0; i < t.n; i++)
		n += t.process[i].pid != getpid() && !t.process[i].is_zombie &&
		     tree_has_variable(t.process[i].pid, variable);
	tree_release(&t);
	return n;
}

static bool wait_for(bool (*is_so)(void *), void *of)
{
	int64_t until_ns = clock_mono_ns() + 20000000000;

	while (!is_so(of)) {
		if (clock_mono_ns() > until_ns)
			return false;
		usleep(5000);
	}
	return true;
}

static bool exists(void *path)
{
	return file_exists(path);
}

static bool nobody_left(void *of)
{
	(void)of;
	return survivors() == 0;
}

static size_t rosters(void)
{
	struct buf path = { 0 };
	struct dirent *entry;
	size_t n = 0;
	DIR *dir;

	roster_folder(&path);
	dir = opendir(path.data);
	while (dir && (entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	if (dir)
		closedir(dir);
	buf_release(&path);
	return n;
}

/* A shell with that script; $F in it is the folder of this run. */
static struct keeper *start(const char *script, double grace_s)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, mem_text(script), NULL };
	char *outside[] = { (char[]){ "sh" }, (char[]){ "-c" },
			    (char[]){ "touch $F/outside" }, NULL };
	const struct keeper_opts o = { .argv = argv, .out_fd = -1, .err_fd = -1, .follow_fd = -1,
				       .grace_s = grace_s, .when_orphaned = outside };
	struct keeper *k = NULL;
	struct err e = { 0 };

	if (keeper_start(&o, &k, NULL, &e) < 0)
		fail_msg("%s", e.text);
	free(argv[2]);
	return k;
}

/* Removes what an earlier case wrote, so that a file says that this one's program has begun. */
static char *file_of(const char *name)
{
	char *path = file_join(folder, name);

	unlink(path);
	return path;
}

/* A daemon: two forks and a session of its own between it and what started it. */
#define DAEMON "(setsid sh -c 'trap \"\" TERM; echo $$ >$F/daemon; while :; do sleep 1; done' &) ; "

static void a_tree_ends(void **state)
{
	static const struct { const char *script; double grace_s; } cases[] = {
		{ "echo $$ >$F/up; exec sleep 1000", 30 },
		{ "sleep 1000 & sleep 1000 & echo $$ >$F/up; wait", 30 },
		{ "trap '' TERM; echo $$ >$F/up; while :; do sleep 1; done", 0.2 },
		{ DAEMON "echo $$ >$F/up; sleep 1000", 0.2 },
		{ "setsid setsid sleep 1000 & echo $$ >$F/up; exit 7", 30 },
	};

	char *outside = file_of("outside");

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *up = file_of("up");
		struct keeper *k = start(cases[i].script, cases[i].grace_s);
		struct err e = { 0 };

		assert_true(wait_for(exists, up));
		assert_true(survivors() >= 1);
		assert_int_equal(keeper_stop(k, NULL, &e), 0);
		assert_int_equal(survivors(), 0);
		assert_int_equal(rosters(), 0);
		assert_false(file_exists(outside)); /* we are there to do that ourselves */
		free(up);
	}
	free(outside);
}

static void its_end_is_known(void **state)
{
	static const struct { const char *script; int code; } cases[] = {
		{ "exit 0", 0 }, { "exit 3", 3 }, { "kill -KILL $$", -9 }, { "kill -TERM $$", -15 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct keeper *k = start(cases[i].script, 1);
		struct keeper_end end = { 0 };

		assert_true(keeper_has_ended(k, 20000, &end));
		assert_true(end.is_known);
		assert_int_equal(end.code, cases[i].code);
		assert_int_equal(keeper_stop(k, NULL, NULL), 0);
	}
}

static void what_cannot_start(void **state)
{
	char *argv[] = { (char[]){ "no-such-server-anywhere" }, NULL };
	const struct keeper_opts o = { .argv = argv, .out_fd = -1, .err_fd = -1, .follow_fd = -1 };
	struct keeper *k = NULL;
	struct err e = { 0 };
	char *us = program_invocation_name;
	int error = 0;

	(void)state;
	assert_int_equal(keeper_start(&o, &k, &error, &e), -1);
	assert_int_equal(error, ENOENT);
	assert_string_equal(e.text, "cannot start no-such-server-anywhere: No such file or directory");
	argv[0] = folder;
	assert_int_equal(keeper_start(&o, &k, &error, &e), -1);
	assert_int_equal(error, EACCES);
	/* A program whose main() does not know the keeper's word starts itself only once. */
	program_invocation_name = (char[]){ "profllm-keeper" };
	argv[0] = (char[]){ "true" };
	assert_int_equal(keeper_start(&o, &k, &error, &e), -1);
	assert_string_equal(e.text, "cannot start true: this process is a keeper");
	program_invocation_name = us;
}

/* TERM would do, but the grace is long: hurry means KILL. */
static void hurry(void **state)
{
	char *up = file_of("up");
	struct keeper *k = start("trap '' TERM; echo $$ >$F/up; while :; do sleep 1; done", 3600);
	atomic_bool now = true;

	(void)state;
	assert_true(wait_for(exists, up));
	assert_int_equal(keeper_stop(k, &now, NULL), 0);
	assert_int_equal(survivors(), 0);
	free(up);
}

/* The program dies with its keeper; its daemon is found by what the keeper wrote down. */
static void a_killed_keeper(void **state)
{
	char *up = file_of("up"), *daemon = file_of("daemon");
	struct keeper *k = start(DAEMON "echo $$ >$F/up; sleep 1000", 1);
	struct keeper_end end = { .is_known = true };

	(void)state;
	assert_true(wait_for(exists, up) && wait_for(exists, daemon));
	kill(keeper_root(k), SIGKILL);
	assert_true(keeper_has_ended(k, 20000, &end));
	assert_false(end.is_known);
	assert_int_equal(keeper_stop(k, NULL, NULL), 0);
	assert_int_equal(survivors(), 0);
	assert_int_equal(rosters(), 0);
	free(up);
	free(daemon);
}

/* A process that keeps a program and is killed, after its keeper if that is asked for. */
static void owner_that_is_killed(const char *script, char *up, char *daemon, bool with_keeper)
{
	char *own = file_of("keeper"), *temp = file_of("keeper.new");
	struct buf text = { 0 };
	int64_t number = 0;
	pid_t owner = fork();

	if (owner == 0) {
		struct keeper *k = start(script, 0.2);

		buf_printf(&text, "%d", (int)keeper_root(k));
		if (file_write_atomic(temp, buf_str(&text), NULL) == 0 && rename(temp, own) == 0)
			pause();
		_exit(1);
	}
	assert_true(wait_for(exists, own) && wait_for(exists, up) && wait_for(exists, daemon));
	assert_int_equal(file_read(own, 100, &text, NULL), 0);
	assert_true(str_to_i64(buf_str(&text), &number));
	assert_true(number > 1);
	if (with_keeper)
		kill((pid_t)number, SIGKILL);
	kill(owner, SIGKILL);
	waitpid(owner, NULL, 0);
	buf_release(&text);
	free(own);
	free(temp);
}

/* What is outside of the tree is ended by a command, once the tree is gone. */
static void a_killed_owner(void **state)
{
	char *up = file_of("up"), *daemon = file_of("daemon"), *outside = file_of("outside");

	(void)state;
	owner_that_is_killed(DAEMON "echo $$ >$F/up; sleep 1000", up, daemon, false);
	assert_true(wait_for(exists, outside));
	assert_true(wait_for(nobody_left, NULL));
	free(outside);
	free(up);
	free(daemon);
}

static void remember(void *self, const char *text)
{
	buf_add_text(self, text);
	buf_add_char(self, '\n');
}

/* Both are gone: the next start ends the daemon and says so, once. */
static void a_killed_owner_and_keeper(void **state)
{
	char *up = file_of("up"), *daemon = file_of("daemon");
	struct buf said = { 0 };
	const struct roster_hooks hooks = { .self = &said, .warn = remember };

	(void)state;
	owner_that_is_killed(DAEMON "echo $$ >$F/up; sleep 1000", up, daemon, true);
	assert_true(survivors() >= 1);
	roster_clean(&hooks);
	assert_int_equal(survivors(), 0);
	assert_non_null(said.data);
	assert_non_null(strstr(said.data, "that an earlier run left when it was killed: sh -c"));
	assert_int_equal(rosters(), 0);
	buf_reset(&said);
	roster_clean(&hooks);
	assert_int_equal(said.len, 0);
	buf_release(&said);
	free(up);
	free(daemon);
}

/* Its user's alone, whatever the umask; what an earlier version wrote wider is narrowed. */
static void rosters_are_private(void **state)
{
	mode_t before = umask(0);
	char *up = file_of("up"), *path;
	struct keeper *k = start("echo $$ >$F/up; exec sleep 1000", 30);
	const struct roster_hooks hooks = { 0 };
	struct buf in = { 0 };
	struct dirent *entry;
	struct stat st;
	DIR *dir;

	(void)state;
	assert_true(wait_for(exists, up));
	roster_folder(&in);
	assert_int_equal(stat(in.data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	dir = opendir(in.data);
	assert_non_null(dir);
	while ((entry = readdir(dir)) && entry->d_name[0] == '.')
		;
	assert_non_null(entry);
	path = file_join(in.data, entry->d_name);
	closedir(dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(chmod(in.data, 0755), 0);
	roster_clean(&hooks);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(stat(in.data, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(keeper_stop(k, NULL, NULL), 0);
	umask(before);
	buf_release(&in);
	free(path);
	free(up);
}

/* Entries in use are not cleaned. */
static void living_ones_are_let_be(void **state)
{
	char *up = file_of("up");
	struct keeper *k = start("echo $$ >$F/up; exec sleep 1000", 30);
	struct buf said = { 0 };
	const struct roster_hooks hooks = { .self = &said, .warn = remember };

	(void)state;
	assert_true(wait_for(exists, up));
	roster_clean(&hooks);
	assert_int_equal(said.len, 0);
	assert_false(keeper_has_ended(k, 0, NULL));
	assert_int_equal(keeper_stop(k, NULL, NULL), 0);
	buf_release(&said);
	free(up);
}

static void commands_run(void **state)
{
	static const struct { const char *script; int rc; } cases[] = {
		{ "exit 0", 0 }, { "exit 5", 5 }, { "kill -INT $$", 130 }, { "kill -KILL $$", 137 },
	};
	char *path = file_of("out");
	struct buf text = { 0 };
	struct err e = { 0 };
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, mem_text(cases[i].script), NULL };
		const struct child_opts o = { .argv = argv, .out_fd = -1, .err_fd = -1 };

		assert_int_equal(child_run(&o, &e), cases[i].rc);
		free(argv[2]);
	}
	{
		char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
				 (char[]){ "echo out; echo \"$1\" >&2; cat" }, (char[]){ "x" },
				 (char[]){ "a b;c" }, NULL };
		const struct child_opts o = { .argv = argv, .out_fd = fd, .err_fd = fd };

		assert_int_equal(child_run(&o, &e), 0);
	}
	assert_int_equal(file_read(path, 1000, &text, NULL), 0);
	assert_string_equal(text.data, "out\na b;c\n");
	buf_release(&text);
	close(fd);
	free(path);
}

static void *set_when_up(void *cancel)
{
	char *up = file_join(folder, "up");

	wait_for(exists, up);
	atomic_store((atomic_bool *)cancel, true);
	free(up);
	return NULL;
}

static void a_cancelled_command(void **state)
{
	char *up = file_of("up");
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ DAEMON "echo $$ >$F/up; sleep 1000" }, NULL };
	atomic_bool cancel = false;
	const struct child_opts o = { .argv = argv, .out_fd = -1, .err_fd = -1, .grace_s = 0.2,
				      .cancel = &cancel };
	struct err e = { 0 };
	pthread_t thread;

	(void)state;
	assert_int_equal(pthread_create(&thread, NULL, set_when_up, &cancel), 0);
	assert_int_equal(child_run(&o, &e), -1);
	pthread_join(thread, NULL);
	assert_int_equal(e.code, ERR_CANCELLED);
	assert_int_equal(survivors(), 0);
	free(up);
}

/* What a command leaves running on purpose outlives it. */
static void what_a_command_started(void **state)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "sleep 1000 >/dev/null & echo $! >$F/pid" }, NULL };
	const struct child_opts o = { .argv = argv, .out_fd = -1, .err_fd = -1 };
	char *path = file_of("pid");
	struct buf text = { 0 };
	struct err e = { 0 };
	int64_t pid = 0;

	(void)state;
	assert_int_equal(child_run(&o, &e), 0);
	assert_int_equal(survivors(), 1);
	assert_int_equal(file_read(path, 100, &text, NULL), 0);
	assert_true(str_to_i64(str_trim(buf_str(&text)), &pid) && pid > 1);
	kill((pid_t)pid, SIGKILL);
	assert_true(wait_for(nobody_left, NULL));
	assert_int_equal(rosters(), 0);
	buf_release(&text);
	free(path);
}

/* The log is copied as it grows, from where it stood, and whole. */
static void a_followed_log(void **state)
{
	char *log = file_of("log"), *copy = file_of("copy");
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "i=0; while [ $i -lt 2000 ]; do i=$((i+1)); echo line $i; done; exec sleep 1000" },
			 NULL };
	struct keeper_opts o = { .argv = argv, .grace_s = 30 };
	struct buf first = { 0 }, second = { 0 };
	struct keeper *k;
	struct err e = { 0 };

	(void)state;
	assert_int_equal(file_write_atomic(log, STR("before\n"), &e), 0);
	o.out_fd = o.err_fd = open(log, O_RDWR | O_APPEND | O_CLOEXEC);
	o.follow_fd = open(copy, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_int_equal(keeper_start(&o, &k, NULL, &e), 0);
	for (int i = 0; i < 2000 && !(second.data && strstr(second.data, "line 2000\n")); i++) {
		buf_reset(&second);
		assert_int_equal(file_read(copy, 1 << 20, &second, NULL), 0);
		usleep(5000);
	}
	assert_int_equal(keeper_stop(k, NULL, &e), 0);
	assert_int_equal(file_read(log, 1 << 20, &first, NULL), 0);
	assert_true(str_is((struct str){ first.data + 7, first.len - 7 }, second.data));
	close(o.out_fd);
	close(o.follow_fd);
	buf_release(&first);
	buf_release(&second);
	free(log);
	free(copy);
}

/* It is descriptor 3 of the program, and closes with the program and not with its keeper. */
static void a_passed_descriptor(void **state)
{
	char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" },
			 (char[]){ "read line <&3; echo \"got $line\" >&3" }, NULL };
	struct keeper_opts o = { .argv = argv, .out_fd = -1, .err_fd = -1, .follow_fd = -1 };
	char text[32] = "";
	struct keeper *k;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	o.pass_fd = pair[1];
	assert_int_equal(keeper_start(&o, &k, NULL, NULL), 0);
	close(pair[1]);
	assert_int_equal(write(pair[0], "hello\n", 6), 6);
	assert_int_equal(recv(pair[0], text, 10, MSG_WAITALL), 10);
	assert_string_equal(text, "got hello\n");
	assert_int_equal(read(pair[0], text, 1), 0);
	assert_int_equal(keeper_stop(k, NULL, NULL), 0);
	close(pair[0]);
}

static size_t open_descriptors(void)
{
	struct dirent *entry;
	size_t n = 0;
	DIR *dir = opendir("/proc/self/fd");

	while ((entry = readdir(dir)))
		n++;
	closedir(dir);
	return n;
}

/* Several at once; no descriptor stays here and the program has none but three. */
static void nothing_leaks(void **state)
{
	char *path = file_of("fds");
	size_t before = open_descriptors();
	struct keeper *k[4];
	struct buf text = { 0 };

	(void)state;
	for (int i = 0; i < 4; i++)
		k[i] = start(i ? "exec sleep 1000" :
			     "ls /proc/self/fd >$F/fds.new; mv $F/fds.new $F/fds; exec sleep 1000", 30);
	assert_true(wait_for(exists, path));
	for (int i = 3; i >= 0; i--)
		assert_int_equal(keeper_stop(k[i], NULL, NULL), 0);
	assert_int_equal(open_descriptors(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(file_read(path, 1000, &text, NULL), 0);
	assert_string_equal(text.data, "0\n1\n2\n3\n"); /* 3: the folder that ls reads */
	buf_release(&text);
	free(path);
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/keeper-%d", (int)getpid());
	snprintf(variable, sizeof(variable), "KEEPER_TEST=%d", (int)getpid());
	setenv("F", folder, 1);
	setenv("XDG_RUNTIME_DIR", folder, 1);
	setenv("KEEPER_TEST", variable + 12, 1);
	return file_mkdirs(folder, NULL);
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tree_ends),
		cmocka_unit_test(its_end_is_known),
		cmocka_unit_test(what_cannot_start),
		cmocka_unit_test(hurry),
		cmocka_unit_test(a_killed_keeper),
		cmocka_unit_test(a_killed_owner),
		cmocka_unit_test(a_killed_owner_and_keeper),
		cmocka_unit_test(rosters_are_private),
		cmocka_unit_test(living_ones_are_let_be),
		cmocka_unit_test(commands_run),
		cmocka_unit_test(a_cancelled_command),
		cmocka_unit_test(what_a_command_started),
		cmocka_unit_test(a_passed_descriptor),
		cmocka_unit_test(a_followed_log),
		cmocka_unit_test(nothing_leaks),
	};

	if (argc > 1 && strcmp(argv[1], KEEPER_WORD) == 0)
		return keeper_main();
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
