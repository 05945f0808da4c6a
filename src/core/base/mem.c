/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - see mem.h. */
#include "core/base/mem.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/err.h"

#define ROOM_MIN 16 /* elements of a list that begins to grow */

static _Noreturn void out_of_memory(void)
{
	static const char text[] = "profllm: out of memory\n";

	(void)!write(2, text, sizeof(text) - 1);
	quick_exit(1);
}

void *mem_alloc(size_t n)
{
	return mem_array(n ? n : 1, 1);
}

void *mem_array(size_t count, size_t size)
{
	void *p = calloc(count ? count : 1, size);

	assert(size > 0);
	if (!p)
		out_of_memory();
	return p;
}

void *mem_grow(void *p, size_t count, size_t size)
{
	void *grown = reallocarray(p, count ? count : 1, size);

	assert(size > 0);
	if (!grown)
		out_of_memory();
	return grown;
}

void *mem_room(void *items, size_t n, size_t *cap, size_t size)
{
	assert(n <= *cap);
	if (n < *cap)
		return items;
	*cap = *cap ? *cap * 2 : ROOM_MIN;
	return mem_grow(items, *cap, size);
}

char *mem_text(const char *text)
{
	return text ? mem_copy(text, strlen(text)) : NULL;
}

char *mem_copy(const char *p, size_t n)
{
	char *copy = mem_alloc(n + 1);

	if (n)
		memcpy(copy, p, n);
	return copy;
}

char *mem_vprintf(const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		out_of_memory();
	return text;
}

/* ---- Arenas ---- */

#ifdef ARENA_EXACT
/* For tools/mutate.pl: AddressSanitizer notices access out of the bounds of an allocation. Slow. */
#define CHUNK_BYTES 0
#define ALIGN_BYTES 1
#else
#define CHUNK_BYTES 65536
#define ALIGN_BYTES 16
#endif

struct arena_chunk {
	struct arena_chunk *next;
	size_t cap;
	_Alignas(16) char data[];
};

void *arena_alloc(struct arena *a, size_t n)
{
	struct arena_chunk *chunk = a->chunk;
	size_t need = (n + ALIGN_BYTES - 1) & ~(size_t)(ALIGN_BYTES - 1);
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

struct str arena_take(struct arena *a, struct buf *b)
{
	struct str text = arena_str(a, buf_str(b));

	buf_release(b);
	return text;
}

void *arena_room(struct arena *a, void *v, size_t n, size_t *cap, size_t size)
{
	void *more;

	assert(n <= *cap);
	if (n < *cap)
		return v;
	*cap = *cap ? *cap * 2 : ROOM_MIN;
	more = arena_alloc(a, *cap * size);
	if (n)
		memcpy(more, v, n * size);
	return more;
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

char *arena_count(struct arena *a, size_t n)
{
	return n < 1000 ? arena_printf(a, "%zu", n) :
			  arena_printf(a, "%s,%03zu", arena_count(a, n / 1000), n % 1000);
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

/* ---- Maps ---- */

/* FNV-1a with a final mix; the table stays at most half full. */

uint64_t map_hash(struct str key)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < key.n; i++)
		h = (h ^ (unsigned char)key.p[i]) * 0x100000001b3u;
	h ^= h >> 32;
	return h * 0x9e3779b97f4a7c15u;
}

static struct map_slot *find(const struct map *m, struct str key)
{
	size_t i = map_hash(key) >> 32 & (m->cap - 1);

	while (m->slot[i].key.p && !str_eq(m->slot[i].key, key))
		i = (i + 1) & (m->cap - 1);
	return &m->slot[i];
}

static void grow(struct map *m, size_t cap)
{
	struct map old = *m;

	m->cap = cap;
	m->slot = mem_array(m->cap, sizeof(*m->slot));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slot[i].key.p)
			*find(m, old.slot[i].key) = old.slot[i];
	free(old.slot);
}

void map_reserve(struct map *m, size_t count)
{
	size_t cap = m->cap ? m->cap : 64;

	while (cap < count * 2 + 2)
		cap *= 2;
	if (cap > m->cap)
		grow(m, cap);
}

void map_put(struct map *m, struct str key, uint64_t value)
{
	struct map_slot *slot;

	if (!key.p)
		key.p = "";
	if (m->count * 2 >= m->cap)
		grow(m, m->cap ? m->cap * 2 : 64);
	slot = find(m, key);
	if (!slot->key.p)
		m->count++;
	*slot = (struct map_slot){ key, value };
}

bool map_get(const struct map *m, struct str key, uint64_t *value)
{
	const struct map_slot *slot;

	if (!m->cap)
		return false;
	slot = find(m, key);
	if (slot->key.p && value)
		*value = slot->value;
	return slot->key.p != NULL;
}

void map_release(struct map *m)
{
	if (!m)
		return;
	free(m->slot);
	*m = (struct map){ 0 };
}

/* ---- Slabs ---- */

int slab_init(struct slab *s, size_t item_bytes, size_t count_max, struct err *e)
{
	void *p = mmap(NULL, item_bytes * count_max, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert(item_bytes > 0 && count_max <= SIZE_MAX / item_bytes);
	if (p == MAP_FAILED)
		return err_set(e, ERR_LIMIT, "cannot reserve %zu bytes of address space: %s",
			       item_bytes * count_max, strerror(errno));
	*s = (struct slab){ .data = p, .item_bytes = item_bytes, .count_max = count_max,
			    .mapped_bytes = item_bytes * count_max };
	return 0;
}

void slab_prefault(struct slab *s, size_t count)
{
	size_t bytes = (count < s->count_max ? count : s->count_max) * s->item_bytes;

	assert(s->data || !count);
	for (size_t at = 0; at < bytes; at += 4096)
		((volatile char *)s->data)[at] = 0;
}

void slab_release(struct slab *s)
{
	if (s->data)
		munmap(s->data, s->mapped_bytes);
	*s = (struct slab){ 0 };
}
