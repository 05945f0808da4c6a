/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/sweep_search.h - experiments whose levels follow from what was measured before: `bench
 * sweep serve_workload` (sweep spec 7.5) and `bench sweep serve_sla` (7.6).
 *
 * Both vary one option of the benchmark, request_rate or max_concurrency, for every pair of
 * combinations; a level is a folder of runs as in run/sweep.h, so that whatever is there is
 * used again and a server is begun only when a run is lacking.
 *
 * serve_workload measures one request at a time and all at once, and levels evenly between what
 * these two could carry. serve_sla looks for the largest level that keeps the limits of each
 * object of --sla-params (run/search.h); beside upstream's files it writes
 *   capacity.json     one element per pair and object: the answer with its interval, what each
 *                     limit's key was there and at the first level that failed, levels and runs
 *   BENCH--NAME.png   latency over throughput, with script and table (run/gnuplot.h)
 *   hover.jsonl       with --hover: one line per window at the boundary, also on stdout
 */
#pragma once
#include "run/sla.h"
#include "run/sweep.h"

/* As sweep_serve: the exit status, or -1 with e. */
int sweep_workload(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);
int sweep_sla(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);

/* ---- shared by the two; not for others ---- */

/*
 * What runs (at least one) say the variable would have been by itself: the mean of their
 * throughput, or by Little's law of the load in flight. ERR_RUN when a record lacks the numbers.
 */
int sweep_estimate_mean(const char *variable, const struct sweep_records *runs, double *out,
			struct err *e);
/*
 * A server for the combination before the first of its levels, as upstream has it, if that
 * level's first run is not there yet.
 */
int sweep_begin_for(struct sweep *s, const struct json_value *serve, const char *folder,
		    struct err *e);
/*
 * Latency over throughput of every bench combination, with the limits that are on that latency;
 * what cannot be drawn is a warning.
 */
void sweep_chart(struct sweep *s, const struct slas *slas);
