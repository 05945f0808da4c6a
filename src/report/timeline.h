/* SPDX-License-Identifier: Apache-2.0 */
/* report/timeline.h - the parts the timeline page is made from. Private to report/. */
#pragma once
#include <math.h>

#include "report/html.h"
#include "report/report.h"

#define TIMELINE_ERRORS_MAX 64     /* distinct texts; more become the last one */
#define TIMELINE_RUN_GAPS (1u << 20) /* gaps in one column: what the page reads at a time */

struct timeline {
	const struct report *r;
	int64_t from_ns, to_ns;    /* first request sent, last one ended */
	int64_t unit_ns;
	struct buf error[TIMELINE_ERRORS_MAX];
	unsigned n_errors;
};

static inline const struct request_row *timeline_row(const struct timeline *t, uint32_t i)
{
	return &t->r->record->row[t->r->metrics->row[i]];
}

static inline int64_t timeline_ns(double seconds)
{
	return llround(seconds * 1e9);
}

/* When request i begins on the page: sent; of a failure before that, what came first. 0: never. */
int64_t timeline_start_ns(const struct timeline *t, uint32_t i);
/* What it takes on the page, from there. */
int64_t timeline_whole_ns(const struct timeline *t, uint32_t i);

/* The JSON value "meta" (timeline.c says what is in it); t's errors must be complete. */
void timeline_meta(const struct timeline *t, const double limits_ms[2], struct html *h);
