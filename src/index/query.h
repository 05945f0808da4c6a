/* SPDX-License-Identifier: Apache-2.0 */
/* index/query.h - the parts of an answer, each from rows that are chosen already. */
#pragma once
#include "index/select.h"

/* Rows of a column of more than 65,535 values that are still listed value by value. */
#define FACET_LISTED_ROWS_MAX 65536

/* The conditions of a filter that stand at its top; a filter that is no "and" is one itself. */
size_t filter_top(const struct filter *f, struct filter *const **part);
/* Whether f names this column and no other. */
bool filter_is_about(const struct filter *f, struct str column);

/* out->column is set by the caller. */
void facet_count(const struct index_view *v, const struct choice *c, const struct query *q,
		 struct str column, struct arena *a, struct facet *out);
void statistic_make(const struct index_view *v, const struct choice *c, struct str column,
		    struct arena *a, struct statistic *out);
/* -1: a cursor that is none. */
int page_make(const struct index_view *v, const struct choice *c, const struct query *q,
	      struct arena *a, struct answer *out, struct err *e);
