/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search_systems.h - systems whose latency at a load is a formula, for testing the searches.
 *
 * The formulas without noise are those of tests/peer/sweep/golden_search.py. With noise each run of
 * each level has a factor of its own, the same for every search.
 */
#pragma once
#include <math.h>
#include <stdint.h>

enum { SYSTEM_QUEUE, SYSTEM_LINE, SYSTEM_KNEE, SYSTEM_SQUARE, SYSTEM_STEP, SYSTEM_COUNT };

struct system {
	unsigned how;
	double base, scale;
	double noise;  /* standard deviation of the factor's logarithm */
	uint64_t seed;
};

static inline uint64_t system_mix(uint64_t x)
{
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
	x = (x ^ x >> 27) * 0x94d049bb133111ebu;
	return x ^ x >> 31;
}

static inline double system_uniform(uint64_t x)
{
	return ((double)(system_mix(x) >> 11) + 0.5) * 0x1p-53;
}

static inline double system_normal(uint64_t x)
{
	return sqrt(-2 * log(system_uniform(x))) * cos(2 * M_PI * system_uniform(x + 77));
}

static inline double system_latency(const struct system *s, double level)
{
	double share = fmin(level / s->scale, 0.95);

	switch (s->how) {
	case SYSTEM_QUEUE:
		return s->base / (1 - share) + fmax(0, 1 - s->scale / level) * 50 * s->base;
	case SYSTEM_LINE:
		return s->base + 100 * level / s->scale;
	case SYSTEM_KNEE:
		return s->base * fmax(1, level / s->scale);
	case SYSTEM_SQUARE:
		return s->base * (1 + level / s->scale * (level / s->scale));
	default: /* preemption sets in: a jump, then a slow rise */
		return s->base + (level > s->scale ? 200 + level / s->scale : 0);
	}
}

static inline double system_run(const struct system *s, int64_t level, unsigned run)
{
	uint64_t at = s->seed * 1000003u + (uint64_t)level * 9176u + run * 31u;

	return system_latency(s, (double)level) * exp(s->noise * system_normal(at));
}

/* Throughput, or load in flight, at infinite load. */
static inline double system_estimate(const struct system *s)
{
	return s->how == SYSTEM_QUEUE ? s->scale : s->scale * 2.5;
}
