/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c - see arena.h. */
#include "base/arena.h"

#include <assert.h>
#include <stdarg.h>

#include "base/mem.h"

#define CHUNK_BYTES 65536

struct arena_chunk {
	struct arena_chunk *next;
	size_t cap;
	_Alignas(16) char data[];
};

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_chunk *chunk = a->chunk;
	size_t need = (n + 15) & ~(size_t)15;
	void *p;

	assert(!a->is_sealed);
	assert(need >= n);
	if (!chunk || chunk->cap - a->used < need) {
		size_t cap = need > CHUNK_BYTES ? need : CHUNK_BYTES;

		chunk = mem_alloc(sizeof(*chunk) + cap);
		chunk->cap = cap;
		chunk->next = a->chunk;
		a->chunk = chunk;
		a->used = 0;
	}
	p = chunk->data + a->used;
	a->used += need;
	a->bytes += need;
	return p;
}

char *arena_text(struct arena *a, struct str s)
{
	char *copy = arena_alloc(a, s.n + 1);

	if (s.n)
		memcpy(copy, s.p, s.n);
	return copy;
}

struct str arena_str(struct arena *a, struct str s)
{
	return (struct str){ arena_text(a, s), s.n };
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list ap, again;
	char *text;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	assert(n >= 0);
	text = arena_alloc(a, (size_t)n + 1);
	vsnprintf(text, (size_t)n + 1, fmt, again);
	va_end(again);
	return text;
}

void arena_seal(struct arena *a)
{
	a->is_sealed = true;
}

void arena_release(struct arena *a)
{
	if (!a)
		return;
	for (struct arena_chunk *c = a->chunk, *next; c; c = next) {
		next = c->next;
		free(c);
	}
	*a = (struct arena){ 0 };
}
