/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/data_ask.h - questions about runs, read out of a request. Private to web/.
 *
 * A question is a JSON object: the body of a POST, or made of the parameters of a GET, so that
 * there is one reader for both. Members it does not know are refused, and columns that neither a
 * run nor a schema has (store/known.h): a misspelt one would silently change the answer.
 *
 * Errors are ERR_USAGE with the place as a JSON pointer, in the sentence and in the answer; what
 * crosses a named limit is told as 422.
 */
#pragma once
#include "web/route.h"

#define ASK_LIMIT_DEFAULT 50
#define ASK_FACET_VALUES_DEFAULT 20
#define ASK_FACET_VALUES_MAX 1000
#define ASK_BINS_DEFAULT 24
#define ASK_BINS_MAX 1000
#define ASK_WHO_BYTES_MAX 200
/* Runs of a page times its columns, facets times their values and bins; exports have no pages. */
#define ASK_CELLS_MAX 500000

/* Which members a route knows. */
enum asked_member {
	ASK_FILTER = 1, ASK_SHOWN = 2, ASK_SORT = 4, ASK_LIMIT = 8, ASK_CURSOR = 16,
	ASK_COLUMNS = 32, ASK_FACETS = 64, ASK_FACET_VALUES = 128, ASK_BINS = 256,
	ASK_STATISTICS = 512, ASK_FORMAT = 1024,
};

struct ask {
	struct query query;      /* column, facet and statistic NULL where none were named */
	bool has_auto_facets;    /* "facets": "auto" */
	bool has_limit;
	struct str format;       /* empty: not told */
};

/* The body of a POST; of a GET its parameters, as the object that a POST would have sent. */
int asked_body(const struct web_request *r, struct web_answer *a, unsigned members,
	       struct arena *arena, const struct json_value **out, struct err *e);
/* What is read lies in arena or is borrowed from body; view: whose columns there are. */
int asked_read(const struct json_value *body, unsigned members, const struct index_view *view,
	       struct arena *arena, struct web_answer *a, struct ask *out, struct err *e);

/* -1 (422): n columns with so many values and bins each are more than ASK_CELLS_MAX. */
int asked_facet_cells(const struct query *q, size_t n, struct arena *arena, struct web_answer *a,
		      struct err *e);

/* ---- for all who read requests ---- */

/* -1 with "POINTER: expected ..." */
int asked_wrong(struct web_answer *a, struct err *e, struct arena *arena, const char *pointer,
		const char *expected);
/*
 * -1 with "/KEY: no such WHAT", what there is (known: words between commas or blanks; none when it
 * is empty) and what was probably meant.
 */
int asked_unknown(struct web_answer *a, struct err *e, struct arena *arena, const char *what,
		  struct str key, const char *known);
/* -1, told with this status; the sentence is the format's. */
__attribute__((format(printf, 4, 5)))
int asked_refuse(struct web_answer *a, unsigned status, struct err *e, const char *fmt, ...);
/* After a function that put a pointer in front of its sentence: tells the client that pointer. */
int asked_failed(struct web_answer *a, struct arena *arena, struct err *e);
/* Likewise after index_query, whose sentences begin with the member. */
int asked_page_failed(struct web_answer *a, struct arena *arena, struct err *e);
/* A member that must be a text of 1 to max bytes; when it may be missing, *out stays. */
int asked_text(const struct web_request *r, struct web_answer *a, const char *name, size_t max,
	       bool is_needed, struct str *out, struct err *e);
/* Member "who", where no token says whose request it is. */
int asked_who(const struct web_request *r, struct web_answer *a, struct str *out, struct err *e);
/* The number in the path; 404 when it is none. */
int asked_number(const struct web_request *r, struct web_answer *a, const char *what, int64_t *id,
		 struct err *e);
/* The run that {id} of the path means, by number or run_id; 404 when there is none. */
int asked_run(const struct web_request *r, struct web_answer *a, int64_t *id, struct err *e);
/* The body must be an object of no other members than these (blank-separated). */
int asked_object(const struct web_request *r, struct web_answer *a, const char *members,
		 struct err *e);
