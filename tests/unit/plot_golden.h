/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plot_golden.h - histograms of NumPy 2.3.5: numpy.histogram(v, bins=30), the bins that are
 * not empty and two of the edges.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

static const struct {
	size_t n;
	int64_t v[5];
	struct { int bin; uint32_t count; } want[5];
	double edge_1, edge_13;
} plot_golden[] = {
	{ 5, { 0, 7, 7, 5, 100 }, { { 0, 1 }, { 1, 1 }, { 2, 2 }, { 29, 1 } }, 3.3333333333333335, 43.333333333333336 },
	{ 3, { 42, 42, 42 }, { { 15, 3 } }, 41.53333333333333, 41.93333333333333 },
	{ 5, { 1, 1000000007, 3, 17, 999999999 }, { { 0, 3 }, { 29, 2 } }, 33333334.533333335, 433333336.93333334 },
	{ 5, { 0, 1, 2, 29, 30 }, { { 0, 1 }, { 1, 1 }, { 2, 1 }, { 29, 2 } }, 1.0, 13.0 },
	{ 5, { 10, 13, 16, 19, 23 }, { { 0, 1 }, { 6, 1 }, { 13, 1 }, { 20, 1 }, { 29, 1 } }, 10.433333333333334, 15.633333333333333 },
};
