/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.h - a step of a trend for people: where it lies, what else changed there, and the
 * command that decides it. Private to analyse/.
 */
#pragma once
#include "results/analyse/points.h"
#include "results/analyse/series.h"

#define STEP_POINTS 3 /* on each side of a step, in which a circumstance must be settled */

struct step {
	struct str metric;
	enum axis axis;
	const struct point *before, *after; /* the points next to it */
	double value[2];     /* levels */
	const struct series_change *also;   /* what changed there beside the commit */
	size_t n_also;
};

/* "commit c000008", "2026-01-09": a point as its axis calls it. */
const char *step_place(struct arena *a, enum axis axis, const struct point *p);
/* "also": [{"column", "before", "after"}] */
void step_put_also(struct json_writer *w, const struct series_change *also, size_t n);
/*
 * A sentence without a full stop: "output_throughput fell by 10 %, from 100 to 90 tokens/s, at
 * commit c000008; changed there: environment.driver 550 -> 560, commit c000007 -> c000008".
 */
const char *step_text(struct arena *a, const struct step *s);
/*
 * `profllm bench ab` with the load of a run and URL_OF_ places for two servers; NULL: the run was
 * no load of a server, or nothing tells the sides apart.
 */
const char *step_command(const struct analyse_request *r, const struct step *s, int64_t run);
