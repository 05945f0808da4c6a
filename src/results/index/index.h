/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index.h - all runs in memory, a column per parameter and metric, for answers at once.
 *
 * Columns are dictionary-coded; a condition gives a bit per row. Rows are appended; a row's flags
 * may change. One thread writes at a time (the index takes its own lock); any number read, each
 * in a view that does not change while it is held, without waiting for the writer. Values come
 * back exactly as they were put in, statistics are those of stats/stats.h over the exact values.
 *
 * A view is the rows of one data version. Versions grow with each change, and from one process to
 * the next. A view keeps what its version looks at in memory: hold it while a question is answered,
 * and not during a wait.
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

/* Why a row is not usually shown. */
enum index_flag { INDEX_EXCLUDED = 1, INDEX_ARCHIVED = 2, INDEX_SUPERSEDED = 4, INDEX_REMOVED = 8 };

struct index;
struct index_view;

struct index *index_make(void);
/* No view is taken any more; what views that are still held look at goes with the last of them. */
void index_free(struct index *x);
/*
 * -1: a limit, named. flags are those it begins with. Rows may come in any order of their ids; that
 * an id is new is not checked. -0 becomes 0, NaN null, and of a column that a row has twice the
 * first one counts.
 */
int index_add(struct index *x, const struct row *r, unsigned flags, struct err *e);
/* Many at once: one new version. After an error those before the refused one are in. */
int index_add_all(struct index *x, const struct row *r, size_t n, struct err *e);
/* Likewise, each with the flags that it begins with. */
int index_add_flagged(struct index *x, const struct row *r, const unsigned *flags, size_t n,
		      struct err *e);
bool index_flag(struct index *x, int64_t id, unsigned flags); /* false: there is no such row */
/* Many at once, each with flags of its own: one new version. Returns how many of them there are. */
size_t index_flag_all(struct index *x, const int64_t *id, const unsigned *flags, size_t n);
int64_t index_last_id(struct index *x); /* the largest one that was ever added; 0: none */
uint64_t index_version(const struct index *x);
int64_t index_bytes(const struct index *x);
/* Answers of the newest version are kept in so many bytes, to be given again; 0: none are. */
#define INDEX_CACHE_BYTES (64u << 20) /* as it begins */
void index_set_cache(struct index *x, size_t bytes);

/* Rows of the view that were removed. */
size_t index_removed(const struct index_view *v);
/*
 * A new index of all other rows of the view. That takes seconds where there are many: between, which
 * may be NULL, is called again and again meanwhile.
 */
struct index *index_without_removed(const struct index_view *v, void (*between)(void *self),
				    void *self);
/* Further versions of x are above that number: it takes the place of another index. */
void index_go_on_from(struct index *x, uint64_t version);

/*
 * A snapshot is a version in one checksummed file that is read at the next start, without rows
 * that were removed. sequence is the store's number of the last change in it. index_load: 1 loaded,
 * 0 there is none or it is damaged or of another version (why, in e), so that it is built from the
 * store.
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
	size_t distinct; /* values, null among them, of all rows; at most 65,536 are counted */
	size_t present;  /* rows with a value, null among them */
	double min, max; /* of the finite numbers; NAN without */
};
/* In the order they were first seen; borrowed from the view. */
const struct column_info *index_columns(const struct index_view *v, size_t *n);
const struct column_info *index_column(const struct index_view *v, struct str name);

/* ---- a query ---- */

/* Missing values (absent and null alike) come last in both directions. */
struct query_sort { struct str column; bool is_descending; };

struct query {
	const struct filter *filter;
	unsigned shown;            /* rows with other flags are left out; 0: those without any;
				      INDEX_REMOVED has no effect */
	bool only_flagged;         /* and only rows with at least one of shown */
	struct query_sort sort[QUERY_SORTS_MAX]; /* ties: larger id first */
	size_t n_sorts;
	size_t limit;              /* rows of the page; 0: none */
	struct str cursor;         /* what the page before gave, of whatever version, or empty */
	const struct str *column;  /* of the page's rows; NULL: none but the id */
	size_t n_columns;
	const struct str *facet;   /* columns to count */
	size_t n_facets, facet_values_max, histogram_bins;
	const struct str *statistic;
	size_t n_statistics;
	bool only_ends;            /* statistics are count, missing, min and max; the rest is NAN */
	struct str fold;           /* rows with equal values in it are one; empty: none are */
};

/* One value and its rows. */
struct facet_value {
	struct value value;
	size_t count;
	bool is_selected; /* by a condition of the filter on this very column */
};

/*
 * Rows by their value in a column, the column's own conditions left out: those parts of the
 * filter's top "and" (or the whole filter) that name this column and no other. A value is selected
 * when one of them has it in a list, outside of "not". Missing (absent or null) is no value.
 *
 * A column of more than 65,535 values (column_info.distinct) is listed only while there are at most
 * 16,384 rows to count; else is_unlisted: distinct is 0, value holds selected ones alone.
 */
struct facet {
	struct str column;
	size_t distinct, missing, others; /* others: rows of values that are not listed */
	struct facet_value *value; /* most rows first, ties by value; selected ones always there */
	size_t n;
	bool is_unlisted;
	double min, max;           /* of the finite numbers of these rows; NAN: there are none */
	bool is_range;             /* only numbers, more than facet_values_max: a histogram too */
	size_t *bin;               /* of finite numbers, equal widths from min to max */
	size_t n_bins;
};

/* Over the numbers in the order of their rows' ids, so that sums are the same to the last bit. */
struct statistic {
	struct str column;
	size_t count, missing; /* numbers, and rows without one; infinite ones are missing too */
	double min, max, mean, std, p50, p90, p95, p99; /* NAN when count is 0; stats/stats.h */
};

/*
 * A folded row is its newest run; its metrics are medians over all of its runs, its verdict is the
 * worst of theirs, its moments are the latest. Order and cursors are those of these values.
 */
#define FOLD_IDS_MAX 200 /* of one row that are listed; n says how many there are */
struct page_row {
	int64_t id;
	unsigned flags;
	struct value *value; /* n_columns of them */
	/* Only where the query folds: */
	struct value fold;   /* of its runs; absent: it is a run of its own */
	size_t n, n_ids;
	int64_t *ids;        /* newest first */
	double *spread;      /* half the range of each column; NAN: no metric, or fewer than two */
};

struct answer {
	size_t total;
	size_t folded;          /* rows that folding leaves; 0 where the query does not fold */
	struct page_row *row;
	size_t n_rows;
	struct str next;        /* cursor of the next page; empty: this is the last */
	struct facet *facet;
	size_t n_facets;
	struct statistic *statistic;
	size_t n_statistics;
};

/*
 * Everything of the answer lies in a, or is borrowed from the view or, like names of columns and
 * selected values that no row has, from the query. -1 (ERR_USAGE): a cursor that is none, or a
 * limit above.
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
 * The ids of the first rows that match, at most `most`, in the query's order: its filter, shown and
 * sort count. They name the same rows in every later version, so that rows can be read in pieces
 * without holding a view in between.
 */
void index_order(const struct index_view *v, const struct query *q, size_t most, struct arena *a,
		 int64_t **id, size_t *n);
/* Columns of rows, in the order of id; those that are not there any more are left out. */
size_t index_rows(const struct index_view *v, const int64_t *id, size_t n, const struct str *column,
		  size_t n_columns, struct arena *a, struct page_row *out);
/* A whole row; false: there is none, or it was removed. */
bool index_row(const struct index_view *v, int64_t id, struct arena *a, struct row *out,
	       unsigned *flags);
