/* SPDX-License-Identifier: Apache-2.0 */
/* test_proc_lock.c - locks that end with their process. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "scratch.h"

#include "core/base/file.h"
#include "host/proc/lock.h"

static const struct lock_holder me = { .run = "exp_1" };

static bool is_there(const char *name)
{
	char *path = file_join(dir, name);
	bool is = file_exists(path);

	free(path);
	return is;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
}

/* A process that takes the lock, says so and waits for its end. */
static pid_t other_with(const char *name, enum lock_kind kind)
{
	int ready[2];
	char byte;
	pid_t pid;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct lock_holder other = { .run = "exp_other", .wants = "gpu-a gpu-b " };
		struct lock l;

		if (lock_take(dir, name, kind, &other, &l, NULL, NULL) != 1 || write(ready[1], "1", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void one_at_a_time(void **state)
{
	struct lock_holder who;
	struct lock a = { 0 }, b = { 0 };
	struct err e;

	(void)state;
	assert_false(lock_is_held(dir, "gpu-1", NULL));
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &a, &who, &e), 1);
	/* Not even by ourselves: two threads are two. */
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &b, &who, &e), 0);
	assert_null(b.path);
	assert_int_equal(who.pid, getpid());
	assert_string_equal(who.run, "exp_1");
	assert_true(who.since_s > 1600000000);
	assert_true(lock_is_held(dir, "gpu-1", &who));
	/* A program, without its folder and arguments. */
	assert_string_equal(who.command, "proc_lock");
	assert_true(who.user[0]);
	assert_int_equal(lock_take(dir, "gpu-2", LOCK_ALONE, &me, &b, &who, &e), 1);
	lock_give(&b);
	lock_give(&a);
	assert_false(is_there("gpu-1"));
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &a, &who, &e), 1);
	lock_give(&a);
	lock_give(&a);
}

static void it_ends_with_its_process(void **state)
{
	pid_t other = other_with("gpu-1", LOCK_ALONE);
	struct lock_holder who;
	struct buf text = { 0 };
	struct lock a;
	char expected[64];
	struct err e;

	(void)state;
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &a, &who, &e), 0);
	assert_int_equal(who.pid, other);
	assert_string_equal(who.wants, "gpu-a gpu-b ");
	lock_describe(&who, &text);
	snprintf(expected, sizeof expected, "exp_other (process %d, since 20", (int)other);
	if (strncmp(text.data, expected, strlen(expected)) != 0)
		fail_msg("%s", text.data);
	buf_release(&text);
	assert_int_equal(lock_clean(dir), 0);
	end(other);
	/* The file is still there, but not locked. */
	assert_true(is_there("gpu-1"));
	assert_false(lock_is_held(dir, "gpu-1", &who));
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &a, &who, &e), 1);
	lock_give(&a);

	end(other_with("gpu-3", LOCK_ALONE));
	other = other_with("gpu-4", LOCK_ALONE);
	assert_int_equal(lock_clean(dir), 1);
	assert_false(is_there("gpu-3"));
	assert_true(is_there("gpu-4"));
	end(other);
	assert_int_equal(lock_clean(dir), 1);
}

/* PROFLLM_LOCKS may name a folder with unrelated files. */
static void others_files_stay(void **state)
{
	static const char *const texts[] = { "", "a thesis\n", "profllm lock 12\n" };

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char *path = file_join(dir, "thesis");
		struct err e;

		assert_int_equal(file_write_atomic(path, str_of(texts[i]), &e), 0);
		assert_int_equal(lock_clean(dir), 0);
		assert_true(is_there("thesis"));
		unlink(path);
		free(path);
	}
}

/* Programs that are started do not hold what we hold. */
static void not_inherited(void **state)
{
	struct lock a;
	pid_t pid;
	int status;

	(void)state;
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &a, NULL, NULL), 1);
	pid = fork();
	if (pid == 0) {
		execl("/bin/sleep", "sleep", "60", (char *)NULL);
		_exit(1);
	}
	lock_give(&a);
	for (int i = 0; i < 2000; i++) {
		int taken = lock_take(dir, "gpu-1", LOCK_ALONE, &me, &a, NULL, NULL);

		/* Between fork and exec it still has it. */
		if (taken == 1)
			break;
		assert_int_equal(taken, 0);
		nap();
	}
	assert_non_null(a.path);
	assert_int_equal(waitpid(pid, &status, WNOHANG), 0);
	end(pid);
	lock_give(&a);
}

static void shared(void **state)
{
	pid_t other = other_with("gpu-1", LOCK_SHARED);
	struct lock_holder who;
	struct lock a, b;
	struct err e;

	(void)state;
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_SHARED, &me, &a, NULL, &e), 1);
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &b, &who, &e), 0);
	assert_int_equal(who.pid, other);
	lock_give(&a);
	/* The other one still holds it, so the name stays. */
	assert_true(lock_is_held(dir, "gpu-1", NULL));
	end(other);
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_ALONE, &me, &b, NULL, &e), 1);
	assert_int_equal(lock_take(dir, "gpu-1", LOCK_SHARED, &me, &a, NULL, &e), 0);
	lock_give(&b);
	assert_false(is_there("gpu-1"));
}

/* Many that take and give the same name, which comes and goes: never two at once. */
static void no_two_at_once(void **state)
{
	enum { PROCESSES = 4, TURNS = 300 };
	char *inside = file_join(dir, "inside");
	pid_t pid[PROCESSES];
	int status;

	(void)state;
	for (int p = 0; p < PROCESSES; p++) {
		pid[p] = fork();
		if (pid[p])
			continue;
		for (int turn = 0; turn < TURNS;) {
			struct lock l;
			int fd, taken = lock_take(dir, "mutex", LOCK_ALONE, &me, &l, NULL, NULL);

			if (taken < 0)
				_exit(2);
			if (taken == 0)
				continue;
			/* Only a process with the exclusive lock can make this file. */
			fd = open(inside, O_CREAT | O_EXCL | O_WRONLY, 0600);
			if (fd < 0)
				_exit(3);
			close(fd);
			unlink(inside);
			lock_give(&l);
			turn++;
		}
		_exit(0);
	}
	for (int p = 0; p < PROCESSES; p++) {
		assert_int_equal(waitpid(pid[p], &status, 0), pid[p]);
		assert_int_equal(status, 0);
	}
	free(inside);
}

static void files_that_are_no_locks(void **state)
{
	char *link = file_join(dir, "gpu-link"), *folder = file_join(dir, "gpu-folder");
	char *target = file_join(dir, "target"), *odd = file_join(dir, "gpu-odd");
	struct lock_holder who = { .pid = 5 };
	struct lock a;
	struct err e;

	(void)state;
	/* A link is not followed, whatever it points to. */
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(lock_take(dir, "gpu-link", LOCK_ALONE, &me, &a, NULL, &e), -1);
	assert_non_null(strstr(e.text, "gpu-link cannot be used: "));
	assert_false(file_exists(target));
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(lock_take(dir, "gpu-folder", LOCK_ALONE, &me, &a, NULL, &e), -1);
	assert_int_equal(lock_take(folder, "none/gpu", LOCK_ALONE, &me, &a, NULL, &e), -1);
	/* Whether one is held does not depend on its content. */
	assert_int_equal(file_write_atomic(odd, STR("profllm lock 2\n\x1b[2J"), NULL), 0);
	assert_false(lock_is_held(dir, "gpu-odd", &who));
	assert_int_equal(who.pid, 0);
	assert_int_equal(lock_take(dir, "gpu-odd", LOCK_ALONE, &me, &a, NULL, &e), 1);
	assert_true(lock_is_held(dir, "gpu-odd", &who));
	assert_int_equal(who.pid, getpid());
	lock_give(&a);
	unlink(link);
	rmdir(folder);
	free(link);
	free(folder);
	free(target);
	free(odd);
}

static void what_a_file_says(void **state)
{
	static const struct { const char *text; bool is_good; } cases[] = {
		{ "profllm lock 1\nprocess 12 34\n", true },
		{ "profllm lock 1\nprocess 12 34\nsince 99\nhost h\nrun r\ncommand a b c\nwants x \n", true },
		{ "profllm lock 1\n", false },
		{ "profllm lock 2\nprocess 12 34\n", false },
		{ "profllm lock 1\nprocess 12\n", false },
		{ "profllm lock 1\nprocess -1 34\n", false },
		{ "profllm lock 1\nprocess 99999999999 34\n", false },
		{ "profllm lock 1\nprocess 12 34", false },
		{ "profllm lock 1\nprocess 12 34\nsince x\n", false },
		{ "profllm lock 1\nprocess 12 34\nother\n", false },
		{ "", false },
	};
	struct lock_holder h, again;
	struct buf text = { 0 }, twice = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if ((lock_parse(str_of(cases[i].text), &h) == 0) != cases[i].is_good)
			fail_msg("%s", cases[i].text);
	assert_int_equal(lock_parse(str_of(cases[1].text), &h), 0);
	lock_print(&h, &text);
	assert_int_equal(lock_parse(buf_str(&text), &again), 0);
	lock_print(&again, &twice);
	assert_string_equal(text.data, twice.data);
	assert_string_equal(text.data, "profllm lock 1\nhost h\nprocess 12 34\nsince 99\nrun r\n"
			    "command a b c\nwants x \n");
	/* Nothing in it reaches a terminal as more than text. */
	assert_int_equal(lock_parse(STR("profllm lock 1\nprocess 1 2\nrun a\x1b]0;b\x07\n"), &h), 0);
	assert_string_equal(h.run, "a?]0;b?");
	buf_reset(&text);
	lock_describe(&(struct lock_holder){ 0 }, &text);
	assert_string_equal(text.data, "an unknown process");
	buf_release(&text);
	buf_release(&twice);
}

static void the_folder(void **state)
{
	char *below = file_join(dir, "a/locks"), *file = file_join(dir, "file");
	struct buf out = { 0 };
	struct stat st;
	struct err e;

	(void)state;
	setenv("PROFLLM_LOCKS", below, 1);
	assert_int_equal(lock_folder(&out, &e), 0);
	assert_string_equal(out.data, below);
	assert_int_equal(stat(below, &st), 0);
	assert_int_equal(st.st_mode & 07777, 01777);
	assert_int_equal(file_write_atomic(file, STR("x"), NULL), 0);
	setenv("PROFLLM_LOCKS", file, 1);
	assert_int_equal(lock_folder(&out, &e), -1);
	assert_memory_equal(e.text, "the folder of locks: ", 21);
	unsetenv("PROFLLM_LOCKS");
	buf_release(&out);
	free(below);
	free(file);
}

/* Others may put a link where the folder of all users will be: its target is not changed. */
static void the_folder_is_no_link(void **state)
{
	char *target = file_join(dir, "target"), *link = file_join(dir, "link");
	char *dangling = file_join(dir, "dangling"), *none = file_join(dir, "none");
	struct buf out = { 0 };
	struct stat st;
	struct err e;

	(void)state;
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(symlink(none, dangling), 0);
	assert_int_equal(lock_make_folder(link, &e), -1);
	assert_non_null(strstr(e.text, "or a link"));
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	assert_int_equal(lock_make_folder(dangling, &e), -1);
	assert_false(file_exists(none));
	/* A folder that already exists is used as it is. */
	assert_int_equal(lock_make_folder(target, &e), 0);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	/* PROFLLM_LOCKS is the user's own word. */
	setenv("PROFLLM_LOCKS", link, 1);
	assert_int_equal(lock_folder(&out, &e), 0);
	unsetenv("PROFLLM_LOCKS");
	buf_release(&out);
	unlink(link);
	unlink(dangling);
	rmdir(target);
	free(target);
	free(link);
	free(dangling);
	free(none);
}

/* Run as `profllm VERB ... --set env.PASSWORD=...`: the verb, the user, and nothing else. */
static void arguments_are_not_told(void **state)
{
	char *program = file_join(dir, "profllm"), *self = realpath("/proc/self/exe", NULL);
	char *path = file_join(dir, "gpu-7");
	struct buf text = { 0 };
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(symlink(self, program), 0);
	pid = fork();
	if (pid == 0) {
		setenv("LOCK_IN", dir, 1);
		execl(program, program, "bench", "serve", "--header", "Cookie: SECRET", NULL);
		_exit(9);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(file_read(path, 4096, &text, NULL), 0);
	assert_null(strstr(text.data, "SECRET"));
	assert_null(strstr(text.data, "--header"));
	assert_non_null(strstr(text.data, "\ncommand profllm bench serve\n"));
	assert_non_null(strstr(text.data, "\nuser "));
	buf_release(&text);
	unlink(path);
	unlink(program);
	free(path);
	free(program);
	free(self);
}

/* The other side of arguments_are_not_told: takes a lock and leaves its file, as a kill -9 does. */
static int take_and_leave(const char *folder)
{
	struct lock l;

	return lock_take(folder, "gpu-7", LOCK_ALONE, &me, &l, NULL, NULL) == 1 ? 0 : 1;
}

int main(void)
{
	if (getenv("LOCK_IN"))
		_exit(take_and_leave(getenv("LOCK_IN")));

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_at_a_time),
		cmocka_unit_test(it_ends_with_its_process),
		cmocka_unit_test(others_files_stay),
		cmocka_unit_test(not_inherited),
		cmocka_unit_test(shared),
		cmocka_unit_test(no_two_at_once),
		cmocka_unit_test(files_that_are_no_locks),
		cmocka_unit_test(what_a_file_says),
		cmocka_unit_test(the_folder),
		cmocka_unit_test(the_folder_is_no_link),
		cmocka_unit_test(arguments_are_not_told),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
