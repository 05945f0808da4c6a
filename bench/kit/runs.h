/* SPDX-License-Identifier: Apache-2.0 */
/*
 * runs.h - generated runs of 200 columns and questions about them, the same at every start.
 *
 * 100 columns are constant, 20 almost (one run in a hundred differs), 44 have 2 to 300 texts with
 * Zipf's shares, "commit" has a new text every 100 runs, 33 are log-normal metrics that depend on
 * the model, run_id is another text in each run, and each run is half a minute later.
 */
#pragma once
#include "core/base/mem.h"
#include "results/index/index.h"

#define RUNS_CONSTANT 100
#define RUNS_ALMOST 20
#define RUNS_CATEGORY 44
#define RUNS_METRIC 33
#define RUNS_COLUMNS 200
#define RUNS_STEP_S 30.0
#define RUNS_BATCH 500

/* Where which kind of column begins; run_id, timestamp and commit are the last three. */
enum {
	RUNS_FIRST_ALMOST = RUNS_CONSTANT,
	RUNS_FIRST_CATEGORY = RUNS_FIRST_ALMOST + RUNS_ALMOST, /* the first one is the model */
	RUNS_FIRST_METRIC = RUNS_FIRST_CATEGORY + RUNS_CATEGORY,
	RUNS_ID = RUNS_FIRST_METRIC + RUNS_METRIC,
	RUNS_TIME,
	RUNS_COMMIT,
};

#define RUNS_QUANTILES 4096
struct runs_category {
	uint32_t n;
	struct str *text;
	uint16_t quantile[RUNS_QUANTILES]; /* texts by their share */
};

struct runs {
	struct arena arena;
	struct str column[RUNS_COLUMNS];
	struct value constant[RUNS_CONSTANT];
	struct runs_category category[RUNS_CATEGORY];
	uint64_t state;
	size_t made;                   /* rows so far */
	struct row row[RUNS_BATCH];    /* the latest batch; texts live in batch */
	struct arena batch;
};

void runs_begin(struct runs *r);
/* The next n (at most RUNS_BATCH) in r->row, ids from 1. */
void runs_more(struct runs *r, size_t n);
void runs_release(struct runs *r);

/* One question: a filter, a page of 25 columns by time, 30 facets, 6 statistics. */
#define QUESTION_FACETS 30
#define QUESTION_STATISTICS 6
#define QUESTION_COLUMNS 25
struct question {
	struct query query;
	struct str facet[QUESTION_FACETS], statistic[QUESTION_STATISTICS];
	struct str column[QUESTION_COLUMNS];
};

enum question_kind {
	QUESTION_FIVE, /* model, two other categories, time and a metric, all at once */
	QUESTION_TIME, /* four runs in ten by time */
	QUESTION_ALL,  /* no condition */
};
/* The nth question of a kind over n_rows runs; q must not move. */
void question_make(struct runs *r, enum question_kind kind, size_t nth, size_t n_rows,
		   struct question *q);

/* ---- the same in a database ---- */

struct rows_result {
	double load_s, index_s;
	double *ms; /* of each question that was finished, heap */
	size_t n, asked;
	double all_ms, time_ms; /* without a condition, by time alone; NAN: not finished */
};

/*
 * n_rows runs in a wide table of a database that is dropped afterwards, and the questions, until
 * the time is over. url: postgresql://..., or NULL for SQLite in a folder of its own.
 */
int rows_measure(const char *url, size_t n_rows, size_t questions, double seconds,
		 struct rows_result *out, struct err *e);
