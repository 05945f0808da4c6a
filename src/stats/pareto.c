/* SPDX-License-Identifier: Apache-2.0 */
/* pareto.c - see pareto.h. */
#include "stats/pareto.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define EPSILON 1e-9 /* upstream's */

struct point { double x, y; size_t at; };

/* Greater x first, then greater y. */
static int from_the_right(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? 1 : -1;
	if (p->y != q->y)
		return p->y < q->y ? 1 : -1;
	return p->at < q->at ? -1 : 1;
}

size_t pareto_frontier(const double *x, const double *y, size_t n, enum pareto_rule rule,
		       bool *is_frontier)
{
	struct point *p = mem_array(n, sizeof(*p));
	size_t known = 0, count = 0, last = 0;
	double best = -INFINITY;

	for (size_t i = 0; i < n; i++) {
		is_frontier[i] = false;
		if (!isnan(x[i]) && !isnan(y[i]))
			p[known++] = (struct point){ x[i], y[i], i };
	}
	if (known)
		qsort(p, known, sizeof(*p), from_the_right);
	for (size_t i = 0; i < known; i++) {
		bool is_twin = count && p[i].x == p[last].x && p[i].y == p[last].y;

		if (rule == PARETO_WEAK ? !(p[i].y >= best - EPSILON) :
		    !is_twin && count && !(p[i].y > best))
			continue;
		is_frontier[p[i].at] = true;
		best = p[i].y > best ? p[i].y : best;
		last = i;
		count++;
	}
	free(p);
	return count;
}
