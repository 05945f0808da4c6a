/* SPDX-License-Identifier: Apache-2.0 */
/* fork.c - see fork.h. The entropy is the seed's two words and a 64-bit hash of the purpose. */
#include "rng/fork.h"

#include <assert.h>

struct pcg64 rng_fork(uint64_t seed, const char *purpose)
{
	uint64_t h = 0xcbf29ce484222325u; /* FNV-1a */
	struct pcg64 g;

	assert(purpose && *purpose);
	for (const char *p = purpose; *p; p++)
		h = (h ^ (unsigned char)*p) * 0x100000001b3u;
	const uint32_t words[4] = { (uint32_t)seed, (uint32_t)(seed >> 32),
				    (uint32_t)h, (uint32_t)(h >> 32) };
	pcg64_seed_words(&g, words, 4);
	return g;
}
