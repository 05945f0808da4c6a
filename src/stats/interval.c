/* SPDX-License-Identifier: Apache-2.0 */
/* interval.c - see interval.h. */
#include "stats/interval.h"

#include <assert.h>
#include <math.h>

double interval_z(double level)
{
	double low = 0, high = 40;

	assert(level > 0 && level < 1);
	/* erfc is exact enough and monotone; halving needs no starting guess. */
	for (int i = 0; i < 80; i++) {
		double mid = (low + high) / 2;

		if (erfc(mid * M_SQRT1_2) > 1 - level)
			low = mid;
		else
			high = mid;
	}
	return (low + high) / 2;
}
