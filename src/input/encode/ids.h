/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ids.h - a growing array of token ids.
 *
 * A zeroed struct ids is a valid empty one. Growth never fails (base/mem.h);
 * what fills it is bounded by the text that was encoded.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"

struct ids {
	uint32_t *id;
	size_t count, cap;
};

/* Room for extra more ids; returns where the next one goes. */
static inline uint32_t *ids_reserve(struct ids *a, size_t extra)
{
	if (a->cap - a->count < extra) {
		size_t cap = a->cap ? a->cap * 2 : 64;

		if (cap - a->count < extra)
			cap = a->count + extra;
		a->id = mem_grow(a->id, cap, sizeof *a->id);
		a->cap = cap;
	}
	return a->id ? a->id + a->count : NULL; /* NULL: nothing asked for, nothing held */
}

static inline void ids_push(struct ids *a, uint32_t id)
{
	*ids_reserve(a, 1) = id;
	a->count++;
}

static inline void ids_add(struct ids *a, const uint32_t *id, size_t n)
{
	if (n == 0)
		return;
	memcpy(ids_reserve(a, n), id, n * sizeof *id);
	a->count += n;
}

/* Empty, memory kept. */
static inline void ids_reset(struct ids *a)
{
	a->count = 0;
}

static inline void ids_release(struct ids *a)
{
	free(a->id);
	*a = (struct ids){ 0 };
}
