/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mem.h - memory: the heap, arenas that are freed at once, slabs that grow without moving, and maps
 * from bytes to numbers.
 *
 * Out of memory is not an error that a benchmark can report usefully half way, so these functions
 * end the program with one sentence instead of returning NULL; what must be undone then (a
 * terminal, a claimed name) is registered with at_quick_exit. Sizes taken from input must have been
 * checked against a limit (limits.h). The caller frees heap memory with free().
 */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "core/base/str.h"

/* ---- The heap ---- */

void *mem_alloc(size_t n);             /* zeroed; n = 0 gives a unique pointer */
void *mem_array(size_t count, size_t size); /* zeroed; stops on overflow */
void *mem_grow(void *p, size_t count, size_t size); /* realloc; the new part is not zeroed */
/* Room for one more in an array of n items with capacity *cap, which doubles when it is full. */
void *mem_room(void *items, size_t n, size_t *cap, size_t size);
char *mem_text(const char *text);      /* a copy; NULL gives NULL */
char *mem_copy(const char *p, size_t n); /* n bytes and a final NUL */
__attribute__((format(printf, 1, 0)))
char *mem_vprintf(const char *fmt, va_list ap);

/* ---- Arenas ---- */

/*
 * Prepare allocates, run does not: after arena_seal() any allocation is a bug
 * and aborts. A zeroed struct arena is a valid empty one. Not thread-safe.
 */

struct arena_chunk;
struct arena {
	struct arena_chunk *chunk;
	size_t used;
	size_t bytes; /* total handed out */
	bool is_sealed;
};

void *arena_alloc(struct arena *a, size_t n); /* zeroed, 16-byte aligned */
char *arena_text(struct arena *a, struct str s); /* a NUL-terminated copy */
struct str arena_str(struct arena *a, struct str s); /* a copy, as a slice */
struct str arena_take(struct arena *a, struct buf *b); /* a copy of b's text; b is released */
/* Room for element n: v itself while n < *cap, else a zero-filled copy of twice the capacity. */
void *arena_room(struct arena *a, void *v, size_t n, size_t *cap, size_t size);
__attribute__((format(printf, 2, 3)))
char *arena_printf(struct arena *a, const char *fmt, ...);
char *arena_count(struct arena *a, size_t n); /* for people: "1,234,567" */
void arena_seal(struct arena *a);
void arena_release(struct arena *a);

/* ---- Maps ---- */

/*
 * Bytes to a 64-bit value, open addressing.
 *
 * A zeroed struct map is a valid empty one. Keys are borrowed: they must
 * outlive the map (put them in an arena). No removal.
 */

struct map_slot {
	struct str key; /* key.p NULL: free */
	uint64_t value;
};
struct map {
	struct map_slot *slot;
	size_t cap, count;
};

uint64_t map_hash(struct str key);
void map_reserve(struct map *m, size_t count); /* room for that many keys */
void map_put(struct map *m, struct str key, uint64_t value); /* replaces */
bool map_get(const struct map *m, struct str key, uint64_t *value); /* value may be NULL */
void map_release(struct map *m);

/* ---- Slabs ---- */

/*
 * One long array that grows without moving and without malloc.
 *
 * Address space for the maximum is reserved at init (no memory yet); pages
 * appear when first touched, and slab_prefault() touches the expected share
 * before the clock starts. One writer; readers may look at items below
 * slab.count that were published to them. Indices are stable.
 */

struct slab {
	char *data;
	size_t item_bytes;
	size_t count;     /* items handed out; another thread may look at it */
	size_t count_max; /* another thread may raise it */
	size_t mapped_bytes;
};

int slab_init(struct slab *s, size_t item_bytes, size_t count_max, struct err *e);
void slab_prefault(struct slab *s, size_t count);
void slab_release(struct slab *s); /* accepts a zeroed slab */

/* The next n items, contiguous and zeroed; NULL when the maximum is reached. */
static inline void *slab_take(struct slab *s, size_t n)
{
	if (n > __atomic_load_n(&s->count_max, __ATOMIC_RELAXED) - s->count)
		return NULL;
	__atomic_store_n(&s->count, s->count + n, __ATOMIC_RELAXED);
	return s->data + (s->count - n) * s->item_bytes;
}

static inline void *slab_at(const struct slab *s, size_t i)
{
	return s->data + i * s->item_bytes;
}
