/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parts.h - what the analyses share: members of requests, matching runs as columns, runs
 * by series, and numbers on their way out. Private to analyse/.
 *
 * A wrong member is refused as ERR_USAGE with a sentence that begins with its JSON pointer and a
 * colon. Runs that are excluded, archived, superseded or removed never take part, unless their
 * numbers are named one by one.
 */
#pragma once
#include <stdint.h>

#include "results/analyse/analyse.h"
#include "results/analyse/counted.h"
#include "results/index/names.h"

#define ANALYSE_CELLS_MAX (12u << 20) /* matching runs times columns looked at: 300 MB */
#define ANALYSE_COLUMNS_MAX 32        /* in one list of a request */
#define ANALYSE_SERIES_MAX 100        /* shown; the largest ones */
#define ANALYSE_IDS_SHOWN_MAX 200     /* of runs behind one point or group */
#define ANALYSE_NOTES_MAX 40
#define ANALYSE_SLO_MAX 8             /* limits of a capacity; pages/capacity/slo.ts has it, too */
#define ANALYSE_NUMBER_MAX 1e100      /* larger ones measure nothing; their squares overflow */

/* ---- requests ---- */

__attribute__((format(printf, 3, 4)))
int parts_refuse(struct err *e, const char *pointer, const char *fmt, ...);
/* A column's name that must be there. */
int parts_column(const struct analyse_request *r, const char *key, struct str *out, struct err *e);
/* A list of columns, or one as a text; n is 0 when it is not there. */
int parts_columns(const struct analyse_request *r, const char *key, struct str **out, size_t *n,
		  struct err *e);
/* otherwise where it is not there. */
int parts_number(const struct json_value *object, const char *pointer, const char *key,
		 double otherwise, double min, double max, double *out, struct err *e);
/* Likewise a whole number. */
int parts_whole(const struct json_value *object, const char *pointer, const char *key,
		size_t otherwise, size_t min, size_t max, size_t *out, struct err *e);
/* Those of a list (ended by NULL) that any run of the view has. */
struct str *parts_present(const struct analyse_request *r, const char *const *list, size_t *n);
/* What makes runs comparable when the request does not say: model, hardware, workload, load. */
extern const char *const parts_series_default[];

/* ---- runs ---- */

struct rows {
	size_t n;
	int64_t *id;
	struct value *value; /* of row i in column c: [c * n + i] */
	struct verdicts verdicts; /* what decides for which metrics a row counts */
};

/* The runs of the body's "filter". */
int parts_select(const struct analyse_request *r, const struct str *column, size_t n_columns,
		 struct rows *out, struct err *e);
/* A finite one whose powers are finite too. */
bool parts_is_number(struct value v, double *out);
bool parts_is_missing(struct value v);             /* absent or null */
double parts_number_at(const struct rows *rows, size_t column, size_t row); /* NAN: it is none */
/* The same rows, as a filter of which a facet leaves no condition out, whatever its column. */
struct filter *parts_closed(struct arena *a, struct filter *f);

/* Rows whose first n_keys columns hold the same (absent and null are the same here). */
struct series {
	size_t row;      /* the first of them */
	size_t *member;  /* rows, ascending */
	size_t n;
	char *name;      /* what tells it from the others, for people */
	char *id;        /* every column and value: stays the same whatever else is shown */
};
struct series_list {
	struct series *series; /* most runs first */
	size_t n, shown;       /* only those shown, at most ANALYSE_SERIES_MAX, have names */
	const struct str *key;
	size_t n_keys;
	const struct rows *rows;
};
/* Rows for which keep[i] is false are left out; keep NULL: all are in. */
void parts_series(struct arena *a, const struct rows *rows, const struct str *key, size_t n_keys,
		  const bool *keep, struct series_list *out);
/* Names and ids anew, from l->rows. */
void parts_name_series(struct arena *a, struct series_list *l);
/* "key": {COL: cell}, "name": text */
void parts_put_series(struct json_writer *w, const struct series_list *l, size_t i);

/* ---- out ---- */

void parts_put_double(struct json_writer *w, double v); /* null for NAN; "inf" */
void parts_put_number(struct json_writer *w, const char *key, double v); /* null for NAN */
void parts_put_cell(struct json_writer *w, struct value v);
void parts_put_value(struct json_writer *w, const char *key, struct value v);
const char *parts_cell_text(struct arena *a, struct value v); /* for people; "none" */
void parts_put_text(struct json_writer *w, const char *key, const char *text);
void parts_put_count(struct json_writer *w, const char *key, size_t n);
void parts_put_interval(struct json_writer *w, const char *key, double low, double high);
/* "unit" and "better" of a column. */
void parts_put_kind(struct json_writer *w, struct str column);
void parts_put_ids(struct json_writer *w, const struct rows *rows, const size_t *member, size_t n);

/* What a reader must know, a sentence each. */
struct notes { const char *text[ANALYSE_NOTES_MAX]; size_t n; struct arena *arena; };
__attribute__((format(printf, 2, 3)))
void parts_note(struct notes *n, const char *fmt, ...);
void parts_put_notes(struct json_writer *w, const struct notes *n);

/* NAN of none; leaves x sorted. */
double parts_median(double *x, size_t n);
