/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory that is freed all at once.
 *
 * Prepare allocates, run does not: after arena_seal() any allocation is a bug
 * and aborts. A zeroed struct arena is a valid empty one. Not thread-safe.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/str.h"

struct arena_chunk;
struct arena {
	struct arena_chunk *chunk;
	size_t used;
	size_t bytes; /* handed out in all */
	bool is_sealed;
};

void *arena_alloc(struct arena *a, size_t n); /* zeroed, 16-byte aligned */
char *arena_text(struct arena *a, struct str s); /* a NUL-terminated copy */
struct str arena_str(struct arena *a, struct str s); /* likewise, as a slice */
__attribute__((format(printf, 2, 3)))
char *arena_printf(struct arena *a, const char *fmt, ...);
void arena_seal(struct arena *a);
void arena_release(struct arena *a);
