/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - see wire.h. */
#include "sim/wire.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/limits.h"

/* All n bytes; the number that came before the stream's end, -1 with errno. */
static ssize_t read_all(int fd, void *to, size_t n)
{
	size_t got = 0;

	while (got < n) {
		ssize_t k = read(fd, (char *)to + got, n - got);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		got += (size_t)k;
	}
	return (ssize_t)got;
}

int wire_read(int fd, struct buf *body, struct err *e)
{
	uint8_t head[4];
	ssize_t got = read_all(fd, head, sizeof(head));
	size_t n;

	if (got == 0)
		return 0;
	if (got < 0)
		return err_set(e, ERR_IO, "reading the socket: %s", strerror(errno));
	if (got < (ssize_t)sizeof(head))
		return err_set(e, ERR_PARSE, "the socket ended inside a frame");
	n = (size_t)head[0] << 24 | (size_t)head[1] << 16 | (size_t)head[2] << 8 | head[3];
	if (n > WORKER_FRAME_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "a frame of %zu bytes; WORKER_FRAME_BYTES_MAX is %u", n,
			       WORKER_FRAME_BYTES_MAX);
	buf_reset(body);
	if (buf_reserve(body, n) < 0)
		return err_set(e, ERR_LIMIT, "a frame of %zu bytes is too long", n);
	got = read_all(fd, body->data, n);
	if (got < 0)
		return err_set(e, ERR_IO, "reading the socket: %s", strerror(errno));
	if ((size_t)got < n)
		return err_set(e, ERR_PARSE, "the socket ended inside a frame");
	body->len = n;
	body->data[n] = '\0';
	return 1;
}

static int send_all(int fd, struct str bytes)
{
	while (bytes.n) {
		ssize_t k = send(fd, bytes.p, bytes.n, MSG_NOSIGNAL);

		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		bytes = (struct str){ bytes.p + k, bytes.n - (size_t)k };
	}
	return 0;
}

void wire_noise(int fd, struct str bytes)
{
	send_all(fd, bytes);
}

int wire_write(int fd, struct str body, struct err *e)
{
	char head[4] = { (char)(body.n >> 24), (char)(body.n >> 16), (char)(body.n >> 8),
			 (char)body.n };

	if (body.n > WORKER_FRAME_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "an answer of %zu bytes; WORKER_FRAME_BYTES_MAX is %u",
			       body.n, WORKER_FRAME_BYTES_MAX);
	if (send_all(fd, (struct str){ head, sizeof(head) }) < 0 || send_all(fd, body) < 0)
		return err_set(e, ERR_IO, "writing to the socket: %s", strerror(errno));
	return 0;
}
