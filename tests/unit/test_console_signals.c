/* SPDX-License-Identifier: Apache-2.0 */
/* One wish to stop may arrive as two signals; a second wish ends the program at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "core/base/clock.h"

#define LATER_US 120000
#define AT_ONCE_NS 25000000
#define WAS_HELD_UP 9 /* exit status: the machine made "at once" too long */

/* How a process ends that gets two signals, pause_us apart. */
static int end_of(int first, int second, useconds_t pause_us)
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		int64_t from_ns = clock_mono_ns();

		signal(SIGHUP, SIG_DFL); /* not as nohup leaves it */
		cli_catch_signals();
		raise(first);
		usleep(pause_us);
		if (!pause_us && clock_mono_ns() - from_ns > AT_ONCE_NS)
			_exit(WAS_HELD_UP);
		raise(second);
		_exit(*cli_is_interrupted() ? 7 : 1);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == WAS_HELD_UP)
		return end_of(first, second, pause_us);
	return status;
}

static void two_at_once_are_one(void **state)
{
	static const int pair[][2] = {
		{ SIGINT, SIGINT }, { SIGTERM, SIGTERM }, { SIGHUP, SIGTERM },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(pair) / sizeof(*pair); i++) {
		int status = end_of(pair[i][0], pair[i][1], 0);

		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 7);
		status = end_of(pair[i][0], pair[i][1], LATER_US);
		assert_true(WIFSIGNALED(status));
		assert_int_equal(WTERMSIG(status), pair[i][1]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_at_once_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
