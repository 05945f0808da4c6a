/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat.h - the two global generators of upstream's process, as one value.
 *
 * Upstream seeds Python's and NumPy's global generators from --seed and then
 * lets the dataset, the arrival process and the LoRA assignment draw from them
 * in that order. We make the same draws from one compat_rng that is created by
 * the run and handed to each stage in turn; whoever draws from it owes upstream
 * that exact sequence. What upstream does not have draws from rng/fork.h.
 */
#pragma once
#include <stdint.h>

#include "rng/legacy.h"
#include "rng/pyrandom.h"

struct compat_rng {
	struct pyrandom py; /* random.seed(seed) */
	struct legacy np;   /* numpy.random.seed(seed) */
};

/* Upstream allows 0 to 2^32 - 1, NumPy's range; options check it before. */
void compat_rng_seed(struct compat_rng *r, uint32_t seed);
