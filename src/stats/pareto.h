/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pareto.h - which of many points are not beaten in both of two measures, more being better.
 *
 * Two rules. PARETO_WEAK is upstream's (sweep spec 7.9): points by x and then y descending, each
 * kept whose y is at least the best so far less 1e-9, so points that only equal a better one in
 * one measure stay. PARETO_STRICT drops those: a point stays when no other one is at least as
 * good in both and better in one. Equal points stay together under both.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum pareto_rule { PARETO_WEAK, PARETO_STRICT };

/* Sets is_frontier[i] and returns how many there are. Points that hold a NaN are never on it. */
size_t pareto_frontier(const double *x, const double *y, size_t n, enum pareto_rule rule,
		       bool *is_frontier);
