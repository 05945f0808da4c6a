/* SPDX-License-Identifier: Apache-2.0 */
/*
 * map.h - bytes to a 64-bit value, open addressing.
 *
 * A zeroed struct map is a valid empty one. Keys are borrowed: they must
 * outlive the map (put them in an arena). No removal.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"

struct map_slot {
	struct str key; /* key.p NULL: free */
	uint64_t value;
};
struct map {
	struct map_slot *slot;
	size_t cap, count;
};

uint64_t map_hash(struct str key);
void map_reserve(struct map *m, size_t count); /* so that many keys need no growing */
void map_put(struct map *m, struct str key, uint64_t value); /* replaces */
bool map_get(const struct map *m, struct str key, uint64_t *value); /* value may be NULL */
void map_release(struct map *m);
