/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted.h - which runs count for a metric: the one place that decides it. Private to
 * analyse/.
 *
 * A run that failed counts for no metric: its status is "failed", or none of its requests
 * completed. What it has under the name of a latency (vLLM writes 0) was never measured. Only the
 * counts of failures themselves are as true of it as of any other run.
 *
 * Any other run does not count for the metrics that are INVALID in it: those in trust.invalid, or
 * all of them where the verdict is INVALID and there is no such list. Parameters always count.
 *
 * "include_invalid": true in a request makes every run count for everything.
 */
#pragma once
#include "core/base/err.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "results/index/row.h"

struct notes; /* analyse/parts.h */

/* What a run says of itself, one column each: the values of counted_columns, one per run. */
#define COUNTED_COLUMNS 5
extern const struct str counted_columns[COUNTED_COLUMNS];
struct verdicts {
	const struct value *value[COUNTED_COLUMNS];
	bool is_everything;        /* include_invalid */
};
/* The request's "include_invalid"; anything but true, false and null is refused. */
int verdicts_read(const struct json_value *body, bool *is_everything, struct err *e);

enum counts {
	COUNTS,
	COUNTS_MISSING,            /* there is no number */
	COUNTS_FAILED, COUNTS_INVALID,
};

/* The runs of one metric: which count, and what those that do not would have shown. */
struct counting {
	struct str metric;
	int better;                /* which way: 1, -1, 0 neither */
	bool is_measured;          /* else it is a parameter, and every run counts */
	bool is_of_failures;       /* a failed run has it, too */
	size_t failed, invalid;    /* runs seen that do not count */
	size_t degraded;           /* runs seen that count, and in which it is DEGRADED */
	double best[2];            /* of those that count, of those that are INVALID; NAN: none */
};
struct counting counting_of(struct str metric); /* costs microseconds: once per metric */
/* v: the run's value, NAN without. Nothing is counted up. */
enum counts counts_for(const struct counting *c, const struct verdicts *j, size_t run, double v);
/* The same, counted up in c. */
enum counts counting_see(struct counting *c, const struct verdicts *j, size_t run, double v);
/* Whether the metric is DEGRADED in a run that counts. */
bool counting_is_degraded(const struct counting *c, const struct verdicts *j, size_t run);

/* A sentence for each thing that a reader must know. */
void counting_notes(const struct counting *c, size_t n, struct notes *notes);
/* "trust": a list with an object for each metric that anything was seen of. */
void counting_put(struct json_writer *w, const struct counting *c, size_t n);
