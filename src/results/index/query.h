/* SPDX-License-Identifier: Apache-2.0 */
/* query.h - the parts of an answer, each from rows that are chosen already. */
#pragma once
#include "results/index/select.h"

/* The conditions of a filter that stand at its top; a filter that is no "and" is one itself. */
size_t filter_top(const struct filter *f, struct filter *const **part);
/* Whether f names this column and no other. */
bool filter_is_about(const struct filter *f, struct str column);

/* Memory of one thread for one part of an answer after the other. */
struct scratch {
	struct arena arena;
	double *number; /* as many as rows are chosen at most; made when one is wanted */
	size_t n_numbers;
};
double *scratch_numbers(struct scratch *s, size_t n);

/* Values that conditions of a facet's own list. */
struct wanted { struct value *value; size_t n; };

/* Everything of the facet that outlives counting. */
void facet_begin(const struct query *q, struct str column, struct arena *a, struct facet *out,
		 struct wanted *wanted);
void facet_count(const struct index_view *v, const struct choice *c, const struct query *q,
		 const struct wanted *wanted, struct scratch *s, struct facet *out);
void statistic_make(const struct index_view *v, const struct choice *c, struct str column,
		    struct scratch *s, struct statistic *out);
/* The ids of the first chosen rows, at most `most`, into id, in the query's order; how many. */
size_t page_order(const struct index_view *v, const struct choice *c, const struct query *q,
		  size_t most, struct arena *a, int64_t *id);
/* -1: a cursor that is none. */
int page_make(const struct index_view *v, const struct choice *c, const struct query *q,
	      struct arena *a, struct answer *out, struct err *e);
