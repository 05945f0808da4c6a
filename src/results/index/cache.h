/* SPDX-License-Identifier: Apache-2.0 */
/* cache.h - answers of the newest version, to be given again. Any thread. */
#pragma once
#include "results/index/index.h"

#define CACHE_ANSWERS_MAX 256
#define CACHE_ROWS_MAX 1000 /* pages above that are not kept */

struct cache;
struct cache *cache_new(size_t bytes_max);
void cache_free(struct cache *c);
void cache_limit(struct cache *c, size_t bytes_max);

/* A question as bytes: equal ones have equal answers in one version. */
struct str cache_key(const struct query *q, struct arena *a);
bool cache_get(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       struct arena *a, struct answer *out);
void cache_put(struct cache *c, uint64_t version, struct str key, const struct query *q,
	       const struct answer *answer);
