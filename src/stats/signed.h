/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signed.h - tests of paired differences by their signs and by the ranks of their sizes.
 *
 * Both are two-sided tests that differences lie about 0, and neither can reach 5 % with fewer than
 * six of them (2 / 2^n). NAN: no difference to judge by.
 */
#pragma once
#include <stddef.h>

/* Exact: `up` of up + down independent differences are above 0; equal ones are left out. */
double sign_test(size_t up, size_t down);

/*
 * Wilcoxon's signed-rank test (1945). Differences of 0 are left out, equal sizes share the mean of
 * their ranks. Exact up to SIGNED_EXACT_VALUES differences, each subset of the ranks counted;
 * beyond, by the normal distribution with corrections for equal sizes and for continuity.
 */
#define SIGNED_EXACT_VALUES 60
double signed_rank_test(const double *d, size_t n);
