/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - see buf.h. */
#include "base/buf.h"

#include <assert.h>
#include <stdarg.h>

#include "base/fmt.h"
#include "base/limits.h"
#include "base/mem.h"

/* What a capacity counts for. */
static int64_t metered(size_t cap)
{
	return cap > METER_FREE_BYTES ? (int64_t)cap : 0;
}

/* From the capacity there is to another one; false: the budget does not suffice. */
static bool count(struct buf *b, size_t cap)
{
	int64_t more = b->meter ? metered(cap) - metered(b->cap) : 0;

	if (!more || atomic_fetch_add(&b->meter->used, more) + more <= b->meter->max || more < 0)
		return true;
	atomic_fetch_sub(&b->meter->used, more);
	return false;
}

void buf_release(struct buf *b)
{
	if (!b)
		return;
	count(b, 0);
	free(b->data);
	*b = (struct buf){ .limit = b->limit, .meter = b->meter };
}

void buf_fit(struct buf *b)
{
	if (!b->data || b->cap == b->len + 1)
		return;
	count(b, b->len + 1);
	b->cap = b->len + 1;
	b->data = mem_grow(b->data, b->cap, 1);
}

void buf_reset(struct buf *b)
{
	b->len = 0;
	b->is_over = b->is_short = false;
	if (b->data)
		b->data[0] = 0;
}

char *buf_take(struct buf *b)
{
	char *data = b->data ? b->data : mem_copy("", 0);

	count(b, 0);
	*b = (struct buf){ .limit = b->limit, .meter = b->meter };
	return data;
}

int buf_reserve(struct buf *b, size_t extra)
{
	size_t limit = b->limit ? b->limit : BUF_BYTES_MAX;
	size_t cap;

	assert(b->len <= limit);
	if (extra > limit - b->len) {
		b->is_over = true;
		return -1;
	}
	if (b->cap > extra && b->len < b->cap - extra)
		return 0;
	cap = b->cap ? b->cap * 2 : 64;
	if (cap > limit + 1)
		cap = limit + 1;
	if (cap < b->len + extra + 1)
		cap = b->len + extra + 1;
	if (!count(b, cap)) {
		b->is_over = b->is_short = true;
		return -1;
	}
	b->data = mem_grow(b->data, cap, 1);
	b->cap = cap;
	return 0;
}

void buf_add(struct buf *b, const void *src, size_t n)
{
	if (buf_reserve(b, n) < 0)
		return;
	if (n)
		memcpy(b->data + b->len, src, n);
	b->len += n;
	b->data[b->len] = 0;
}

void buf_add_char(struct buf *b, char c)
{
	buf_add(b, &c, 1);
}

void buf_cut(struct buf *b, size_t n)
{
	assert(n <= b->len);
	if (n == 0)
		return;
	memmove(b->data, b->data + n, b->len - n);
	b->len -= n;
	b->data[b->len] = 0;
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = fmt_vtext(NULL, 0, fmt, ap);
	va_end(ap);
	assert(n >= 0);
	if (buf_reserve(b, (size_t)n) == 0) {
		(void)fmt_vtext(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}
