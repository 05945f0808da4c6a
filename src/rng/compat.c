/* SPDX-License-Identifier: Apache-2.0 */
/* compat.c - see compat.h. */
#include "rng/compat.h"

void compat_rng_seed(struct compat_rng *r, uint32_t seed)
{
	pyrandom_seed(&r->py, seed);
	legacy_seed(&r->np, seed);
}
