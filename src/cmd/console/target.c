/* SPDX-License-Identifier: Apache-2.0 */
/* target.c - see target.h. */
#include "cmd/console/target.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/console/cli.h"
#include "core/base/file.h"
#include "core/base/mem.h"

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

int target_name(struct target *t, const struct report_facts *f, const char *dir,
		const char *filename, bool is_shared, struct err *e)
{
	char *usual;

	if (t->path)
		return 0;
	usual = report_path(f, dir, filename);
	t->is_claimed = !filename && !is_shared;
	t->path = t->is_claimed ? report_claim(f, dir, e) : mem_text(usual);
	if (t->path && strcmp(t->path, usual) != 0) {
		struct buf text = { 0 };

		buf_printf(&text, "%s is another run's; the result of this one is %s", usual,
			   t->path);
		cli_warn(text.data);
		buf_release(&text);
	}
	free(usual);
	return t->path ? 0 : -1;
}

void target_release(struct target *t)
{
	struct stat st;

	if (t->path && t->is_claimed && stat(t->path, &st) == 0 && st.st_size == 0)
		unlink(t->path);
	free(t->path);
	*t = (struct target){ 0 };
}
