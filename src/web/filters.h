/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/filters.h - which columns people are shown first. Private to web/.
 *
 * A column splits a set of runs well when its values are many and even: its score is the entropy of
 * their counts in bits. Measured numbers are different in nearly every run and would always win;
 * they count a hundredth, and so do texts that are nearly all different (names, numbers of builds).
 * Where counting everything would take too long, parameters are judged by the newest runs.
 */
#pragma once
#include "web/route.h"

#define FILTERS_AUTO_FACETS 30
#define FILTERS_EXACT_CELLS_MAX 2000000 /* rows x columns that are counted to choose facets */
#define FILTERS_SAMPLE_ROWS 512         /* beyond that: so many of the newest rows */

struct filters_item {
	const struct column_info *column;
	const struct facet *facet;
	double score;
};

struct filters_split {
	struct filters_item *item;  /* best first, ties in the order columns were first seen */
	size_t n;
	size_t total;               /* rows that match */
};

/* Bits. */
double filters_entropy(const size_t *count, size_t n);
/* Counts every column for the filter of q. */
int filters_split(const struct index_view *v, const struct query *q, struct arena *a,
		  struct filters_split *out, struct err *e);
/*
 * Names the facets of q: the parameters that split its runs most, never constant ones, then what
 * was measured.
 */
int filters_auto_facets(const struct index_view *v, struct query *q, struct arena *a,
			struct err *e);
/* Names the columns of q: what a run was and how it went, as far as there are such columns. */
void filters_usual_columns(const struct index_view *v, struct arena *a, struct query *q);
/* Likewise its statistics. */
void filters_usual_statistics(const struct index_view *v, struct arena *a, struct query *q);
