/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/random_cache.h - --random-cache-hit-fraction and --random-cache-ratio: of the prompts of
 * random, that share begins with ids all of them have, over that part of its whole length; the
 * others have nothing in common. Lengths stay what they were. Datasets spec 11; private to data/.
 */
#pragma once
#include "data/random_gen.h"

struct random_cache {
	bool *is_hit;      /* per request; NULL: nothing is shared */
	double ratio;
	struct buf ids;    /* the shared ids, as a JSON list is spelled inside */
	size_t *end;       /* of the first k + 1 of them, in ids */
};

/* Only whole prompts of ids can be shared exactly. ERR_RUN. */
int random_cache_check(const struct dataset_opts *o, struct err *e);
/* round(fraction * n) of the n requests are hits, drawn by a generator of their own. */
void random_cache_init(struct random_cache *c, const struct random_gen *g,
		       const struct dataset_opts *o, const struct random_lengths *l);
/* The prompt, its beginning shared where it is a hit; scratch holds such a one. */
struct str random_cache_apply(const struct random_cache *c, const struct random_prompt *p,
			      struct buf *scratch);
void random_cache_release(struct random_cache *c);
