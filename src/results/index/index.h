/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - all runs in memory, one column per parameter and metric, for immediate answers.
 *
 * Columns are dictionary-coded; a condition gives a bit per row. Rows are appended; a row's flags
 * may change. One thread writes at a time (the index takes its own lock); any number read, each in
 * a view that does not change while it is held, without waiting for the writer. Values come back
 * exactly as they were put in; statistics are those of stats/stats.h over the exact values.
 *
 * A view is the rows of one data version. Versions grow with each change, and from one process to
 * the next. A view keeps the memory of its version: hold it while a question is answered, and not
 * during a wait.
 *
 * A removed row is in no answer. Its values stay in memory until index_without_removed has made
 * another index; they are never in a snapshot.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "results/index/filter.h"
#include "results/index/row.h"

#define INDEX_COLUMNS_MAX 8192
#define QUERY_SORTS_MAX 4
#define QUERY_FACETS_MAX 400
#define QUERY_STATISTICS_MAX 64
#define QUERY_LIMIT_MAX 10000 /* rows of a page, values of a facet, bins */
#define INDEX_CELLS_MAX (64u << 20) /* values of one index_select */

/* Why a row is hidden by default. */
enum index_flag { INDEX_EXCLUDED = 1, INDEX_ARCHIVED = 2, INDEX_SUPERSEDED = 4, INDEX_REMOVED = 8 };

struct index;
struct index_view;

struct index *index_make(void);
/* No further view may be taken; memory used by views that are still held is freed with the last. */
void index_free(struct index *x);
/*
 * Adds a row with its initial flags. -1: a limit, named. Rows may come in any order of their ids;
 * whether an id is new is not checked. -0 becomes 0, NaN null; of a duplicate column the first one
 * counts.
 */
int index_add(struct index *x, const struct row *r, unsigned flags, struct err *e);
/* Adds many as one new version. After an error the rows before the refused one are in. */
int index_add_all(struct index *x, const struct row *r, size_t n, struct err *e);
/* The same, each with its initial flags. */
int index_add_flagged(struct index *x, const struct row *r, const unsigned *flags, size_t n,
		      struct err *e);
bool index_flag(struct index *x, int64_t id, unsigned flags); /* false: no such row */
/* Sets the flags of many rows as one new version. Returns how many of them exist. */
size_t index_flag_all(struct index *x, const int64_t *id, const unsigned *flags, size_t n);
int64_t index_last_id(struct index *x); /* the largest one ever added; 0: none */
uint64_t index_version(const struct index *x);
int64_t index_bytes(const struct index *x);
/* Answers for the newest version are cached in this many bytes; 0: not at all. */
#define INDEX_CACHE_BYTES (64u << 20) /* initial value */
void index_set_cache(struct index *x, size_t bytes);

/* Rows of the view that were removed. */
size_t index_removed(const struct index_view *v);
/*
 * A new index of all other rows of the view. It takes seconds for many rows: between, which may be
 * NULL, is called repeatedly meanwhile.
 */
struct index *index_without_removed(const struct index_view *v, void (*between)(void *self),
				    void *self);
/* Further versions of x are above that number, because it replaces another index. */
void index_go_on_from(struct index *x, uint64_t version);

/*
 * A snapshot is a version in one checksummed file that is read at the next start, without removed
 * rows. sequence is the store's number of its last change. index_load: 1 loaded, 0 missing, damaged
 * or of another form (why, in e), so that it must be built from the store.
 */
int index_save(const struct index_view *v, const char *path, int64_t sequence, struct err *e);
int index_load(const char *path, struct index **out, int64_t *sequence, struct err *e);

struct index_view *index_view(struct index *x);
void index_view_release(struct index_view *v);
uint64_t index_view_version(const struct index_view *v);
const struct index *index_of(const struct index_view *v);

/* ---- columns ---- */

struct column_info {
	struct str name;
	bool has_bool, has_number, has_text, has_null;
	size_t distinct; /* values of all rows, including null; counted up to 65,536 */
	size_t present;  /* rows with a value, including null */
	double min, max; /* of the finite numbers; NAN if there are none */
};
/* In the order they were first seen; borrowed from the view. */
const struct column_info *index_columns(const struct index_view *v, size_t *n);
const struct column_info *index_column(const struct index_view *v, struct str name);

/* ---- a query ---- */

/* Missing values (absent or null) come last in both directions. */
struct query_sort { struct str column; bool is_descending; };

struct query {
	const struct filter *filter;
	unsigned shown;            /* rows with other flags are left out; 0: only rows without
				    * any; INDEX_REMOVED has no effect */
	bool only_flagged;         /* only rows with at least one of shown */
	struct query_sort sort[QUERY_SORTS_MAX]; /* ties: larger id first */
	size_t n_sorts;
	size_t limit;              /* rows of the page; 0: none */
	struct str cursor;         /* from the previous page, of any version, or empty */
	const struct str *column;  /* of the page's rows; NULL: only the id */
	size_t n_columns;
	const struct str *facet;   /* columns to count */
	size_t n_facets, facet_values_max, histogram_bins;
	const struct str *statistic;
	size_t n_statistics;
	bool only_ends;            /* statistics are only count, missing, min and max; else NAN */
	struct str fold;           /* combine rows with equal values in this column; empty: none */
};

/* One value and its rows. */
struct facet_value {
	struct value value;
	size_t count;
	bool is_selected; /* by a condition of the filter on this column */
};

/*
 * Rows by their value in a column, ignoring the column's own conditions: those parts of the
 * filter's top "and" (or the whole filter) that only name this column. A value is selected when one
 * of them has it in a list, outside of "not". Missing (absent or null) is not a value.
 *
 * A column with more than 65,535 values (column_info.distinct) is only listed while there are at
 * most 16,384 rows to count; else is_unlisted: distinct is 0, value holds only selected ones.
 */
struct facet {
	struct str column;
	size_t distinct, missing, others; /* others: rows of values that are not listed */
	struct facet_value *value; /* most rows first, ties by value; includes all selected ones */
	size_t n;
	bool is_unlisted;
	double min, max;           /* of the finite numbers of these rows; NAN: none */
	bool is_range;             /* only numbers, more than facet_values_max: also a histogram */
	size_t *bin;               /* of finite numbers, equal widths from min to max */
	size_t n_bins;
};

/* Whether all of these rows have the same value, or none has one. */
bool facet_is_constant(const struct facet *f);

/* Over the numbers in the order of their rows' ids, so that sums are reproducible. */
struct statistic {
	struct str column;
	size_t count, missing; /* numbers; rows without one, or with an infinite one */
	double min, max, mean, std, p50, p90, p95, p99; /* NAN when count is 0; stats/stats.h */
};

/*
 * A folded row is its newest run; its metrics are medians over all of its runs, its verdict is the
 * worst of theirs, its moments are the latest. Order and cursors use these values.
 */
#define FOLD_IDS_MAX 200 /* listed for one row; n says how many there are */
struct page_row {
	int64_t id;
	unsigned flags;
	struct value *value; /* n_columns of them */
	/* Only if the query folds: */
	struct value fold;   /* common value; absent: a single run */
	size_t n, n_ids;
	int64_t *ids;        /* newest first */
	double *spread;      /* half the range of each column; NAN: no metric, or n < 2 */
};

struct answer {
	size_t total;
	size_t folded;          /* rows after folding; 0 if the query does not fold */
	struct page_row *row;
	size_t n_rows;
	struct str next;        /* cursor of the next page; empty: this is the last */
	struct facet *facet;
	size_t n_facets;
	struct statistic *statistic;
	size_t n_statistics;
};

/*
 * Everything in the answer is in a, or borrowed from the view or (names of columns, selected values
 * that no row has) from the query. -1 (ERR_USAGE): an invalid cursor, or a limit exceeded.
 */
int index_query(const struct index_view *v, const struct query *q, struct arena *a,
		struct answer *out, struct err *e);

/*
 * For analysis: the ids of all rows that match, ascending, and columns of them. values[c * n + i]
 * is the value of row i in column c. -1: more than INDEX_CELLS_MAX.
 */
int index_select(const struct index_view *v, const struct filter *f, unsigned shown,
		 const struct str *column, size_t n_columns, struct arena *a, int64_t **id,
		 size_t *n, struct value **values, struct err *e);
/*
 * The ids of the first matching rows, at most `most`, in the query's order: only its filter, shown
 * and sort are used. They name the same rows in every later version, so that rows can be read in
 * pieces without holding a view in between.
 */
void index_order(const struct index_view *v, const struct query *q, size_t most, struct arena *a,
		 int64_t **id, size_t *n);
/* Columns of rows, in the order of id; rows that no longer exist are left out. */
size_t index_rows(const struct index_view *v, const int64_t *id, size_t n, const struct str *column,
		  size_t n_columns, struct arena *a, struct page_row *out);
/* A whole row; false: there is none, or it was removed. */
bool index_row(const struct index_view *v, int64_t id, struct arena *a, struct row *out,
	       unsigned *flags);
