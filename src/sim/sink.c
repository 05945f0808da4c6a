/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - see sink.h. */
#include "sim/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int sink_open(struct sink *s, const char *option, const char *path, struct err *e)
{
	*s = (struct sink){ .path = path };
	s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd >= 0)
		return 0;
	s->path = NULL;
	return err_set(e, ERR_IO, "%s: cannot write %s: %s", option, path, strerrordesc_np(errno));
}

bool sink_flush(struct sink *s, size_t bytes_max)
{
	if (!s->path || s->failure.code) {
		buf_reset(&s->lines);
		s->written = 0;
		return false;
	}
	if (s->lines.is_over)
		err_set(&s->failure, ERR_LIMIT, "%s: more lines than fit into memory came at once",
			s->path);
	while (bytes_max && s->written < s->lines.len && !s->failure.code) {
		size_t left = s->lines.len - s->written;
		ssize_t n = write(s->fd, s->lines.data + s->written,
				  left < bytes_max ? left : bytes_max);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			err_set(&s->failure, ERR_IO, "cannot write %s: %s", s->path,
				strerrordesc_np(errno));
			break;
		}
		s->written += (size_t)n;
		bytes_max -= (size_t)n;
	}
	if (s->written < s->lines.len && !s->failure.code)
		return true;
	buf_reset(&s->lines);
	s->written = 0;
	return false;
}

int sink_close(struct sink *s, struct err *e)
{
	int rc = 0;

	if (!s->path)
		return 0;
	sink_flush(s, SIZE_MAX);
	if (close(s->fd) < 0 && !s->failure.code)
		err_set(&s->failure, ERR_IO, "cannot write %s: %s", s->path,
			strerrordesc_np(errno));
	if (s->failure.code)
		rc = err_set(e, s->failure.code, "%s", s->failure.text);
	buf_release(&s->lines);
	*s = (struct sink){ 0 };
	return rc;
}
