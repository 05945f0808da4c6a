/* SPDX-License-Identifier: Apache-2.0 */
/* startup_doubts.c - what speaks against the figures of `bench startup`; see startup.h. */
#include "report/startup.h"

#include <math.h>

#include "report/verdict.h"
#include "stats/stats.h"

static const enum startup_side measured[] = { STARTUP_COLD, STARTUP_WARM };

static double mean_from(const struct startup_runs *r, enum startup_side side, size_t from)
{
	double sum = 0;

	for (size_t i = from; i < r->side[side].n; i++)
		sum += r->side[side].v[i].startup_s;
	return sum / (double)(r->side[side].n - from);
}

static bool is_spread(const struct startup_runs *r, enum startup_side side)
{
	size_t n = r->side[side].n;
	struct arena a = { 0 };
	double *v = arena_alloc(&a, (n + 1) * sizeof(*v));
	bool is;

	for (size_t i = 0; i < n; i++)
		v[i] = r->side[side].v[i].startup_s;
	is = n >= STARTUP_JUDGE_MIN && stats_std(v, n) > STARTUP_SPREAD_SHARE * stats_mean(v, n);
	arena_release(&a);
	return is;
}

/* The first start of all read from a disk what the later ones found in memory. */
static bool is_first_slow(const struct startup_runs *r)
{
	const enum startup_side side = STARTUP_COLD;

	return r->side[side].n >= STARTUP_JUDGE_MIN && !r->is_page_cache_dropped &&
	       r->side[side].v[0].startup_s > STARTUP_FIRST_SHARE * mean_from(r, side, 1);
}

static bool is_coarse(const struct startup_runs *r)
{
	for (size_t s = 0; s < 2; s++)
		if (r->is_server && r->side[measured[s]].n &&
		    STARTUP_POLL_S > STARTUP_COARSE_SHARE * mean_from(r, measured[s], 0))
			return true;
	return false;
}

unsigned startup_doubts(const struct startup_runs *r)
{
	unsigned doubts = r->is_interrupted ? STARTUP_STOPPED : 0;

	for (size_t s = 0; s < 2; s++) {
		size_t n = r->side[measured[s]].n;

		if (n && n < STARTUP_JUDGE_MIN)
			doubts |= STARTUP_FEW;
		if (is_spread(r, measured[s]))
			doubts |= STARTUP_SPREADS;
	}
	if (r->side[STARTUP_WARM].n && !r->side[STARTUP_WARMUP].n)
		doubts |= STARTUP_NO_WARMUP;
	if (is_first_slow(r))
		doubts |= STARTUP_FIRST_SLOW;
	return is_coarse(r) ? doubts | STARTUP_COARSE : doubts;
}

static const struct { enum startup_doubt doubt; const char *code, *text; } rows[] = {
	{ STARTUP_STOPPED, "interrupted", "it was stopped before all starts were measured" },
	{ STARTUP_FEW, "few", "one or two starts of a kind tell nothing of their spread" },
	{ STARTUP_SPREADS, "spread", "starts of a kind differ: their standard deviation is above "
	  "10 % of the mean" },
	{ STARTUP_NO_WARMUP, "no_warmup", "nothing filled the caches before the first warm start" },
	{ STARTUP_FIRST_SLOW, "first_slow", "the first start took more than 20 % longer than the other "
	  "cold ones: it may have read the model from a disk, and they from memory" },
	{ STARTUP_COARSE, "coarse", "a server is asked ten times a second whether it is there, which is "
	  "more than 5 % of its start" },
};
#define ROWS (sizeof(rows) / sizeof(*rows))

struct trust startup_trust(const struct startup_runs *r)
{
	unsigned doubts = startup_doubts(r);
	struct trust t = { 0 };

	for (size_t i = 0; i < ROWS; i++)
		if (doubts & rows[i].doubt)
			verdict_doubt(&t, TRUST_DEGRADED, rows[i].code, str_of(rows[i].text));
	return t;
}
