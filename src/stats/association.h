/* SPDX-License-Identifier: Apache-2.0 */
/*
 * association.h - how much of what varies goes with a grouping, and whether two groupings go
 * together.
 *
 * A grouping is a code below `groups` for each value; groups may be empty. Nothing here says
 * that one thing makes another: in data nobody designed, whatever moves together looks alike.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#define ASSOCIATION_GROUPS_MAX 64

/*
 * One-way analysis of variance (Fisher). share is the part of the variance that the groups'
 * means explain, 1 - within / total as mean squares, so that chance alone gives 0 whatever the
 * number of groups (epsilon squared, Kelley 1935); not below 0. p is by F; NAN where nothing is
 * left to judge by (fewer than two groups with values, no group with two).
 */
struct oneway {
	size_t groups;  /* that have values */
	double f, df_between, df_within, p, share;
};
struct oneway oneway_test(const double *x, const uint8_t *code, size_t n, size_t groups);

/* The chance of an F this large or larger, f >= 0. */
double f_tail(double f, double df1, double df2);

/*
 * Cramer's V of two groupings, corrected for chance (Bergsma 2013): 0 independent, 1 each decides
 * the other. NAN when either has one group only.
 */
double cramers_v(const uint8_t *a, size_t groups_a, const uint8_t *b, size_t groups_b, size_t n);
