/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index/index.h - all runs in memory, a column per parameter and metric, for answers at once.
 *
 * Columns are dictionary-coded; a condition gives a bit per row. Rows are appended; a row's flags may
 * change. One thread writes at a time (the index takes its own lock); any number read, each in a
 * view that does not change while it is held, without waiting for the writer. Values come back
 * exactly as they were put in, statistics are those of stats/stats.h over the exact values.
 *
 * A view is the rows of one data version. Versions grow with each change.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "index/filter.h"
#include "index/row.h"

#define INDEX_COLUMNS_MAX 8192
#define QUERY_SORTS_MAX 4
#define QUERY_FACETS_MAX 400
#define QUERY_STATISTICS_MAX 64
#define QUERY_LIMIT_MAX 10000

/* Why a row is not usually shown. */
enum index_flag { INDEX_EXCLUDED = 1, INDEX_ARCHIVED = 2, INDEX_SUPERSEDED = 4, INDEX_REMOVED = 8 };

struct index;
struct index_view;

struct index *index_make(void);
void index_free(struct index *x);
/* -1: a limit, named. flags are those it begins with. */
int index_add(struct index *x, const struct row *r, unsigned flags, struct err *e);
/* Many at once: one new version. */
int index_add_all(struct index *x, const struct row *r, size_t n, struct err *e);
bool index_flag(struct index *x, int64_t id, unsigned flags); /* false: there is no such row */
uint64_t index_version(const struct index *x);
int64_t index_bytes(const struct index *x);

/*
 * A snapshot is the whole index in one checksummed file that is mapped at the next start.
 * sequence is the store's number of the last change in it. index_load: 1 loaded, 0 there is none
 * or it is damaged or of another version (why, in e), so that it is built from the store.
 */
int index_save(struct index *x, const char *path, int64_t sequence, struct err *e);
int index_load(const char *path, struct index **out, int64_t *sequence, struct err *e);

struct index_view *index_view(struct index *x);
void index_view_release(struct index_view *v);
uint64_t index_view_version(const struct index_view *v);

/* ---- columns ---- */

struct column_info {
	struct str name;
	bool has_bool, has_number, has_text, has_null;
	size_t distinct; /* values, over all rows of the view; at most 65,536 are counted */
	size_t present;  /* rows with a value, null among them */
	double min, max; /* of the numbers; NAN without */
};
/* In the order they were first seen; borrowed from the view. */
const struct column_info *index_columns(const struct index_view *v, size_t *n);
const struct column_info *index_column(const struct index_view *v, struct str name);

/* ---- a query ---- */

struct query_sort { struct str column; bool is_descending; }; /* missing values come last in both */

struct query {
	const struct filter *filter;
	unsigned shown;            /* rows with other flags than these are left out; 0: usual ones */
	bool only_flagged;         /* and only rows with at least one of shown */
	struct query_sort sort[QUERY_SORTS_MAX]; /* ties: larger id first */
	size_t n_sorts;
	size_t limit;              /* rows of the page; 0: none */
	struct str cursor;         /* what the page before gave, or empty */
	const struct str *column;  /* of the page's rows; NULL: none but the id */
	size_t n_columns;
	const struct str *facet;   /* columns to count */
	size_t n_facets, facet_values_max, histogram_bins;
	const struct str *statistic;
	size_t n_statistics;
};

/* One value and its rows. */
struct facet_value {
	struct value value;
	size_t count;
	bool is_selected; /* by a condition of the filter on this very column */
};

/* Rows by their value in a column, the column's own conditions at the filter's top left out. */
struct facet {
	struct str column;
	size_t distinct, missing, others; /* others: rows of values beyond facet_values_max */
	struct facet_value *value;        /* most rows first, ties by value; selected ones always there */
	size_t n;
	bool is_range;                    /* numbers, too many for a list: a histogram too */
	double min, max;
	size_t *bin;                      /* equal widths from min to max */
	size_t n_bins;
};

struct statistic {
	struct str column;
	size_t count, missing; /* numbers, and rows without one; infinite ones are missing too */
	double min, max, mean, std, p50, p90, p95, p99; /* NAN when count is 0; stats/stats.h */
};

struct page_row {
	int64_t id;
	unsigned flags;
	struct value *value; /* n_columns of them */
};

struct answer {
	size_t total;
	struct page_row *row;
	size_t n_rows;
	struct str next;        /* cursor of the next page; empty: this is the last */
	struct facet *facet;
	size_t n_facets;
	struct statistic *statistic;
	size_t n_statistics;
};

/* Everything of the answer lies in a, or is borrowed from the view. -1: a cursor that is none. */
int index_query(const struct index_view *v, const struct query *q, struct arena *a,
		struct answer *out, struct err *e);

/*
 * For analysis: the ids of all rows that match, ascending, and columns of them. values[c * n + i]
 * is the value of row i in column c.
 */
int index_select(const struct index_view *v, const struct filter *f, unsigned shown,
		 const struct str *column, size_t n_columns, struct arena *a, int64_t **id, size_t *n,
		 struct value **values, struct err *e);
/* A whole row; false: there is none. */
bool index_row(const struct index_view *v, int64_t id, struct arena *a, struct row *out,
	       unsigned *flags);
