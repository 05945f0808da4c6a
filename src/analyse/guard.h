/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analyse/guard.h - why a gain may be none: more requests failed, other work was done, fewer
 * requests kept the goodput limits. The limits are those of `bench compare` (stats/judge.h).
 * Private to analyse/.
 */
#pragma once
#include "analyse/parts.h"

/* Sums over the runs of one side; NAN: not known. */
struct work {
	double failed_share;                /* failed / (failed + completed) */
	double output_tokens, input_tokens; /* per completed request */
	double good_share;                  /* goodput / throughput */
};

extern const struct str guard_columns[]; /* what a side's work is made of */
#define GUARD_COLUMNS 6

/* value[c] is of guard_columns[c], of n runs each; member chooses among them (NULL: all). */
struct work work_of(const struct value *const value[GUARD_COLUMNS], const size_t *member,
		    size_t n);
/* NULL: nothing speaks against a gain of b over a. */
const char *guard_against(struct arena *arena, const struct work *a, const struct work *b);
