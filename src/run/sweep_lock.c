/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_lock.c - one sweep at a time in an experiment's folder. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "run/sweep_parts.h"

int sweep_enter(struct sweep *s, struct err *e)
{
	int fd;

	if (s->lock)
		return 0;
	if (file_mkdirs(s->folder, e) < 0)
		return -1;
	fd = open(s->folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set(e, ERR_IO, "cannot open %s: %s", s->folder, strerror(errno));
	/* A file system without locks is no reason not to measure. */
	if (flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK) {
		close(fd);
		return err_set(e, ERR_RUN, "another sweep is at work in %s; wait for its end or give "
			       "another --experiment-name", s->folder);
	}
	s->lock = fd + 1;
	return 0;
}

void sweep_leave(struct sweep *s)
{
	if (s->lock)
		close(s->lock - 1);
	s->lock = 0;
}
