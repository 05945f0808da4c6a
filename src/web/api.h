/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h - what the routes about runs share: reading questions from a request, writing values as
 * JSON, the columns shown first, and uploaded forms. Private to web/.
 *
 * A question is a JSON object: the body of a POST, or made of the parameters of a GET, so that
 * there is one reader for both. Unknown members are refused, as are columns that neither a run nor
 * a schema has (store/known.h): a misspelt one would silently change the answer.
 *
 * Errors are ERR_USAGE with the place as a JSON pointer, in the sentence and in the answer; a
 * question that exceeds a named limit gets status 422.
 *
 * Answers are strict JSON: an infinite number is "inf" or "-inf", NaN is null. Whole numbers are
 * written without a point.
 */
#pragma once
#include "client/http/form.h"
#include "core/base/err.h"
#include "results/index/names.h"
#include "web/route.h"

#define ASK_LIMIT_DEFAULT 50
#define ASK_FACET_VALUES_DEFAULT 20
#define ASK_FACET_VALUES_MAX 1000
#define ASK_BINS_DEFAULT 24
#define ASK_BINS_MAX 1000
#define ASK_WHO_BYTES_MAX 200
/*
 * Runs of a page times its columns, or facets times their values and bins; exports have no pages.
 */
#define ASK_CELLS_MAX 500000

/* Derived: equal for repeats. Its numbers mean nothing to people, so no list of columns has it. */
#define FOLD_COLUMN "configuration"

/* The members that a route accepts. */
enum asked_member {
	ASK_FILTER = 1, ASK_SHOWN = 2, ASK_SORT = 4, ASK_LIMIT = 8, ASK_CURSOR = 16,
	ASK_COLUMNS = 32, ASK_FACETS = 64, ASK_FACET_VALUES = 128, ASK_BINS = 256,
	ASK_STATISTICS = 512, ASK_FORMAT = 1024, ASK_GROUP = 2048,
};

struct ask {
	struct query query;      /* column, facet and statistic NULL where none were named */
	bool has_auto_facets;    /* "facets": "auto" */
	bool has_limit;
	struct str format;       /* empty: not given */
};

/* The body of a POST, or a GET's parameters as the object that a POST would have sent. */
int asked_body(const struct web_request *r, struct web_answer *a, unsigned members,
	       const struct json_value **out, struct err *e);
/*
 * The result lives in arena or is borrowed from body; view: the index whose columns are accepted.
 */
int asked_read(const struct json_value *body, unsigned members, const struct index_view *view,
	       struct arena *arena, struct web_answer *a, struct ask *out, struct err *e);

/* Both of these, for a question about the request's view, in its arena. */
int asked_query(const struct web_request *r, struct web_answer *a, unsigned members,
		struct ask *out, struct err *e);
/* -1 (422): n columns with that many values and bins are more than ASK_CELLS_MAX. */
int asked_facet_cells(const struct query *q, size_t n, struct arena *arena, struct web_answer *a,
		      struct err *e);

/* ---- for all routes that read requests ---- */

/* -1 with "POINTER: expected ..." */
int asked_wrong(struct web_answer *a, struct err *e, struct arena *arena, const char *pointer,
		const char *expected);
/*
 * -1 with "/KEY: no such WHAT", the known ones (words between commas or blanks; omitted if empty)
 * and the closest match.
 */
int asked_unknown(struct web_answer *a, struct err *e, struct arena *arena, const char *what,
		  struct str key, const char *known);
/* -1 with this status; the sentence is the format's. */
__attribute__((format(printf, 4, 5)))
int asked_refuse(struct web_answer *a, unsigned status, struct err *e, const char *fmt, ...);
/* -1; the answer gets this status if the error is the request's fault (ERR_USAGE). */
int asked_usage(struct web_answer *a, unsigned status, const struct err *e);
/* After a function whose sentence begins with a pointer: reports that pointer. */
int asked_failed(struct web_answer *a, struct arena *arena, struct err *e);
/* The same after index_query, whose sentences begin with the member. */
int asked_page_failed(struct web_answer *a, struct arena *arena, struct err *e);
/* A member that must be a text of 1 to max bytes; if it may be missing, *out is unchanged then. */
int asked_text(const struct web_request *r, struct web_answer *a, const char *name, size_t max,
	       bool is_needed, struct str *out, struct err *e);
/* Member "who", if no token identifies the user. */
int asked_who(const struct web_request *r, struct web_answer *a, struct str *out, struct err *e);
/* The number in the path; 404 when it is not a number. */
int asked_number(const struct web_request *r, struct web_answer *a, const char *what, int64_t *id,
		 struct err *e);
/* DELETE of the object of this kind whose number is in the path. */
int asked_drop(const struct web_request *r, struct web_answer *a, const char *what,
	       int (*drop)(struct store *s, int64_t id, struct err *e), struct err *e);
/* The run of {id} in the path, by number or run_id; 404 when there is none. */
int asked_run(const struct web_request *r, struct web_answer *a, int64_t *id, struct err *e);
/* Checks that the body is an object with only these members (blank-separated). */
int asked_object(const struct web_request *r, struct web_answer *a, const char *members,
		 struct err *e);

/* ---- prices.c ---- */

/*
 * Two objects by gpu_model: dollars per hour, as users entered them, and watts of a board, as users
 * or its vendor state them. Unknown values are in neither.
 */
int prices_put(const struct web_request *r, struct json_writer *usd, struct json_writer *watts,
	       struct err *e);

/* ---- cells, rows, facets and statistics as JSON ---- */

/* Appends the value as in a CSV file, unquoted; absent: nothing. */
void data_add_value(struct buf *out, struct value v);
void data_put_key_number(struct json_writer *w, const char *key, double v);
/* Empty: null. */
void data_put_key_or_null(struct json_writer *w, const char *key, struct str v);
/* 0: null. */
void data_put_key_id(struct json_writer *w, const char *key, int64_t id);
void data_put_flags(struct json_writer *w, unsigned flags);

/* Members "total", "items", "next" and "columns" of a page. */
void data_put_page(struct json_writer *w, const struct query *q, const struct answer *a);
void data_put_facet(struct json_writer *w, const struct facet *f);
/* Member "histogram", and the ends of its range as "min" and "max". */
void data_put_histogram(struct json_writer *w, const struct facet *f);
/* Member "statistics". */
void data_put_statistics(struct json_writer *w, const struct answer *a);

/* ---- data.c: how to repeat a run, and what is doubtful about it; pure ---- */

/* Below this, a p99 rests on less than one request. */
#define BADGE_REQUESTS_MIN 100
/* A run of which more failed is bad and not only doubtful; trust has the same limit. */
#define BADGE_FAILED_BAD 0.05

/*
 * Members "level", "code" and "text" of each badge, in an array. document may be NULL: then what
 * only it contains is not judged.
 */
void run_put_badges(struct json_writer *w, const struct row *r, unsigned flags,
		    const struct json_value *document);
/* The reasons of the verdict in a document or in a result by itself; NULL: none. */
const struct json_value *run_reasons(const struct json_value *document);
/*
 * Command lines for a shell, as an array of texts: the configuration as given when the document has
 * it; else a server and a load made of the run's parameters, without the engine's defaults. What
 * was hidden when the run was recorded is still "***".
 */
void run_put_reproduce(struct json_writer *w, const struct row *r,
		       const struct json_value *document, struct arena *a);
/*
 * filters.c: which columns are shown first.
 *
 * A column splits a set of runs well when its values are many and even: its score is the entropy of
 * their counts in bits. Measured numbers differ in nearly every run and would always score highest;
 * they count a hundredth, as do texts that are nearly all different (names, numbers of builds).
 * Where counting everything would take too long, parameters are judged by the newest runs.
 */

#define FILTERS_AUTO_FACETS 30
#define FILTERS_EXACT_CELLS_MAX 2000000 /* rows x columns that are counted to choose facets */
#define FILTERS_SAMPLE_ROWS 512         /* beyond that: this many of the newest rows */

/* Bits. */
double filters_entropy(const size_t *count, size_t n);
/*
 * Sets the facets of q: the parameters that split its runs most, never constant ones, then what was
 * measured.
 */
int filters_auto_facets(const struct index_view *v, struct query *q, struct arena *a,
			struct err *e);
/* Sets the columns of q: the main parameters and results, as far as there are such columns. */
void filters_main_columns(const struct index_view *v, struct arena *a, struct query *q);
/* Sets the usual statistics of q. */
void filters_usual_statistics(const struct index_view *v, struct arena *a, struct query *q);

/*
 * filters_split.c: in which columns the runs of a filter differ.
 *
 * A column differs when at least two runs, and 2 %, have another value than the most common one; a
 * missing value counts as a value. Columns that split the runs in the same way are merged into the
 * first of them by rank (names.h). Of many runs, evenly spaced ones of the newest are examined.
 */

#define CONSTANTS_MAX 6

struct column_split {
	struct str name;
	enum column_role role;
	size_t rank, distinct, present; /* a missing value is one of the distinct ones */
	double bits;                    /* entropy */
	uint64_t signature;             /* equal: the same runs have equal values */
	struct value common;            /* the most common value */
	struct str same_as;             /* empty: it is the first of those */
	bool differs, is_constant, has_text;
	uint32_t *number;               /* of each row's value; NULL: it does not differ */
};

/* By rank; without metrics and outcomes. */
struct columns_split {
	struct column_split *column;
	size_t n, rows;
	bool is_sample; /* not all rows were looked at */
};
/* Names are borrowed from the view. */
void columns_split_make(const struct index_view *v, const struct query *q, struct arena *a,
			struct columns_split *out);
/* NULL: there is no such column, or it is a metric or an outcome. */
const struct column_split *columns_split_find(const struct columns_split *s, struct str name);
/*
 * Sets the columns of q: differing ones (at most four, including the load, without those that
 * follow from earlier ones), the metrics that the runs have, verdict and time.
 */
int filters_usual_columns(const struct index_view *v, const struct columns_split *s,
			  struct arena *a, struct query *q, struct err *e);
/* Members "constants", the at most CONSTANTS_MAX most useful ones, and "constants_total". */
int filters_put_constants(struct json_writer *w, const struct index_view *v, const struct query *q,
			  const struct columns_split *s, struct arena *a, struct err *e);

/*
 * upload.c: stores a file of results; its outcomes are members "results" and "notes" of the answer.
 * *first: the store's number of the file's first run.
 */
int upload_put(const struct web_request *r, struct str name, struct str bytes,
	       struct web_answer *a, int64_t *first, struct err *e);
/* upload.c: a trace as JSON; run_id of its run is looked up in the request's view. */
void trace_put(const struct web_request *r, struct json_writer *w, const struct trace *t);

/*
 * The files of an uploaded form (multipart/form-data), for ROUTE_PARTS routes.
 *
 * A form is read once it is complete; it is in an unnamed file, so that its size costs no memory.
 * Names of files are only texts: never a path, made valid UTF-8, without control characters, and at
 * most PARTS_NAME_BYTES_MAX long.
 */

#define PARTS_NAME_BYTES_MAX 1000

struct upload_form {
	const struct web_request *request;
	struct form form;
	size_t n;
};

struct upload_part {
	struct str field;  /* "file", "trace" */
	struct str name;   /* of the file; "" when it has none; in the request's arena */
	struct str bytes;  /* borrowed from the body */
};

/* -1: the body is not a form. */
int parts_open(const struct web_request *r, struct upload_form *p, struct err *e);
/* 1, 0 at the end, -1: malformed, or more than WEB_PARTS_MAX. */
int parts_next(struct upload_form *p, struct upload_part *out, struct err *e);
