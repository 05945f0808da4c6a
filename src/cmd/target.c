/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - see target.h. */
#include "cmd/target.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"

int target_check(const char *what, const char *path, struct err *e)
{
	int fd = -1, rc;

	if (file_is_dir(path))
		return err_set(e, ERR_RUN, "%s: %s is a directory, not a file", what, path);
	if (file_exists(path)) {
		rc = access(path, W_OK);
	} else {
		fd = rc = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
		/* A link to a file that is still to come. */
		if (rc < 0 && errno == EEXIST)
			rc = 0;
	}
	if (rc < 0)
		return err_set(e, ERR_RUN, "%s: cannot write %s: %s", what, path, strerror(errno));
	if (fd >= 0) {
		close(fd);
		unlink(path);
	}
	return 0;
}
