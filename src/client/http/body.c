/* SPDX-License-Identifier: Apache-2.0 */
/*
 * body.c - see body.h.
 *
 * A line is only interpreted when it is complete, so that the outcome does not depend on how the
 * bytes were cut into reads.
 */
#include "client/http/body.h"

#include <assert.h>

#include "client/http/head.h"
#include "core/base/limits.h"

static void take(struct str *in, size_t n)
{
	in->p += n;
	in->n -= n;
}

static enum http_found broken(uint8_t *state)
{
	*state = HTTP_BODY_BROKEN;
	return HTTP_BAD;
}

/* Reads hexadecimal digits; returns how many. *value saturates past the limit. */
static size_t hex_read(struct str s, uint64_t *value)
{
	size_t n = 0;
	int digit;

	*value = 0;
	while (n < s.n && (digit = str_hex(s.p[n])) >= 0) {
		if (*value <= HTTP_CHUNK_BYTES_MAX)
			*value = *value << 4 | (unsigned)digit;
		n++;
	}
	return n;
}

/* A complete line without its end: 1 and consumed, 0 more bytes needed, -1 too long. */
static int line_take(struct str *in, struct str *line, struct err *e)
{
	size_t n = in->n < HTTP_HEAD_BYTES_MAX ? in->n : HTTP_HEAD_BYTES_MAX;
	const char *lf = n ? memchr(in->p, '\n', n) : NULL;

	if (!lf && n == HTTP_HEAD_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "a line of the chunked body is longer than %d bytes "
			       "(HTTP_HEAD_BYTES_MAX)", HTTP_HEAD_BYTES_MAX);
	if (!lf)
		return 0;
	*line = (struct str){ in->p, (size_t)(lf - in->p) };
	take(in, line->n + 1);
	if (line->n && line->p[line->n - 1] == '\r')
		line->n--;
	return 1;
}

/* The size line: hexadecimal digits, then blanks and a possible extension after ';'. */
static int size_read(struct str line, uint64_t *size, struct err *e)
{
	char text[HTTP_EXCERPT_BYTES];
	size_t n = hex_read(line, size);
	size_t after = n;

	while (after < line.n && (line.p[after] == ' ' || line.p[after] == '\t'))
		after++;
	if (n == 0 || (after < line.n && line.p[after] != ';') ||
	    memchr(line.p, '\r', line.n) || memchr(line.p, 0, line.n))
		return err_set(e, ERR_NET, "malformed chunk size '%s'", http_excerpt(text, line));
	if (*size > HTTP_CHUNK_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "chunk size '%s' is larger than %llu bytes "
			       "(HTTP_CHUNK_BYTES_MAX)", http_excerpt(text, line),
			       (unsigned long long)HTTP_CHUNK_BYTES_MAX);
	return 0;
}

static int size_take(uint64_t *size, struct str *in, struct err *e)
{
	size_t n = hex_read(*in, size);
	struct str line;
	int rc;

	if (n && n + 2 <= in->n && in->p[n] == '\r' && in->p[n + 1] == '\n' &&
	    *size <= HTTP_CHUNK_BYTES_MAX && n < 32) { /* the usual form */
		take(in, n + 2);
		return 1;
	}
	rc = line_take(in, &line, e);
	if (rc > 0 && size_read(line, size, e) < 0)
		return -1;
	return rc;
}

/* A piece of a body or chunk with *left bytes to go. */
static void piece_take(uint64_t *left, struct str *in, struct str *part)
{
	size_t n = in->n < *left ? in->n : (size_t)*left;

	*part = (struct str){ in->p, n };
	*left -= n;
	take(in, n);
}

/* The line end after a chunk: 1, 0 more bytes needed, -1 something else. */
static int chunk_end_take(struct str *in)
{
	if (in->n && in->p[0] == '\n') {
		take(in, 1);
		return 1;
	}
	if (in->n >= 2 && in->p[0] == '\r' && in->p[1] == '\n') {
		take(in, 2);
		return 1;
	}
	return in->n == 0 || (in->n == 1 && in->p[0] == '\r') ? 0 : -1;
}

static enum http_found chunked_next(uint64_t *left, uint8_t *state, struct str *in,
				    struct str *part, struct err *e)
{
	struct str line;
	int rc;

	for (;;) {
		switch (*state) {
		case HTTP_BODY_SIZE:
			rc = size_take(left, in, e);
			if (rc <= 0)
				return rc == 0 ? HTTP_NEED : broken(state);
			*state = *left ? HTTP_BODY_CHUNK : HTTP_BODY_TRAILER;
			break;
		case HTTP_BODY_CHUNK:
			if (in->n == 0)
				return HTTP_NEED;
			piece_take(left, in, part);
			if (*left == 0)
				*state = chunk_end_take(in) == 1 ? HTTP_BODY_SIZE :
					 HTTP_BODY_CHUNK_END;
			return HTTP_BODY;
		case HTTP_BODY_CHUNK_END:
			rc = chunk_end_take(in);
			if (rc == 0)
				return HTTP_NEED;
			if (rc < 0) {
				err_set(e, ERR_NET, "a chunk is longer than its size line says");
				return broken(state);
			}
			*state = HTTP_BODY_SIZE;
			break;
		case HTTP_BODY_TRAILER: /* trailers are read over */
			rc = line_take(in, &line, e);
			if (rc <= 0)
				return rc == 0 ? HTTP_NEED : broken(state);
			if (line.n)
				break;
			*state = HTTP_BODY_NONE;
			return HTTP_END;
		default:
			assert(false);
			return broken(state);
		}
	}
}

enum http_found http_body_next(uint64_t *left, uint8_t *state, struct str *in,
			       struct str *part, struct err *e)
{
	switch (*state) {
	case HTTP_BODY_LENGTH:
		if (*left == 0) {
			*state = HTTP_BODY_NONE;
			return HTTP_END;
		}
		if (in->n == 0)
			return HTTP_NEED;
		piece_take(left, in, part);
		return HTTP_BODY;
	case HTTP_BODY_CLOSE:
		if (in->n == 0)
			return HTTP_NEED;
		*part = *in;
		take(in, in->n);
		return HTTP_BODY;
	default:
		return chunked_next(left, state, in, part, e);
	}
}
