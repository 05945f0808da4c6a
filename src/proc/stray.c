/* SPDX-License-Identifier: Apache-2.0 */
/* stray.c - see stray.h. */
#include "proc/stray.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int stray_leave(unsigned seconds, struct err *e)
{
	pid_t child = fork();

	if (child < 0)
		return err_set(e, ERR_IO, "cannot start a process: %s", strerror(errno));
	if (child == 0) {
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		alarm(seconds);
		for (;;)
			pause();
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}
