/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slab.h - one long array that grows without moving and without malloc.
 *
 * Address space for the maximum is reserved at init (no memory yet); pages
 * appear when first touched, and slab_prefault() touches the expected share
 * before the clock starts. One writer; readers may look at items below
 * slab.count that were published to them. Indices are stable.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct slab {
	char *data;
	size_t item_bytes;
	size_t count;     /* items handed out */
	size_t count_max;
};

int slab_init(struct slab *s, size_t item_bytes, size_t count_max, struct err *e);
void slab_prefault(struct slab *s, size_t count);
void slab_release(struct slab *s); /* accepts a zeroed slab */

/* The next n items, contiguous and zeroed; NULL when the maximum is reached. */
static inline void *slab_take(struct slab *s, size_t n)
{
	if (n > s->count_max - s->count)
		return NULL;
	s->count += n;
	return s->data + (s->count - n) * s->item_bytes;
}

static inline void *slab_at(const struct slab *s, size_t i)
{
	return s->data + i * s->item_bytes;
}
