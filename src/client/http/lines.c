/* SPDX-License-Identifier: Apache-2.0 */
/* lines.c - see lines.h. */
#include "client/http/lines.h"

#include "core/base/limits.h"

static struct str whole(struct lines *l)
{
	l->is_lent = true;
	return str_trim(buf_str(&l->carry));
}

int lines_next(struct lines *l, struct str *in, struct str *line)
{
	if (l->is_lent)
		buf_reset(&l->carry);
	l->is_lent = false;
	while (in->n) {
		const char *end = memchr(in->p, '\n', in->n);
		struct str part = { in->p, end ? (size_t)(end - in->p) : in->n };

		if (part.n > SSE_EVENT_BYTES_MAX || l->carry.len > SSE_EVENT_BYTES_MAX - part.n)
			return -1;
		in->p += part.n + (end != NULL);
		in->n -= part.n + (end != NULL);
		if (!end || l->carry.len)
			buf_add_str(&l->carry, part);
		if (!end)
			return 0;
		*line = l->carry.len ? whole(l) : str_trim(part);
		if (line->n)
			return 1;
		buf_reset(&l->carry);
		l->is_lent = false;
	}
	return 0;
}

int lines_finish(struct lines *l, struct str *line)
{
	if (l->is_lent || l->carry.len == 0)
		return 0;
	*line = whole(l);
	return line->n > 0;
}

void lines_reset(struct lines *l)
{
	if (l->carry.cap > STREAM_KEPT_BYTES_MAX)
		buf_release(&l->carry);
	buf_reset(&l->carry);
	l->is_lent = false;
}

void lines_release(struct lines *l)
{
	if (!l)
		return;
	buf_release(&l->carry);
	*l = (struct lines){ 0 };
}
