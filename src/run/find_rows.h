/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/find_rows.h - the rows of `bench serve` and `bench sweep serve_sla` for a search for the
 * largest load (run/find.h).
 */
#pragma once
#include "decide/capacity.h"

#define FIND_PRECISION_PERCENT (100 * CAPACITY_PRECISION)

#define FIND_ROWS(type, group_)                                                             \
	OPT(type, precision, "precision", .group = group_, .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, \
	    .arg = "PERCENT", .max = 99,                                                        \
	    .help = "half width of the 95 % interval at which a search for the largest load ends"), \
	OPT(type, budget, "budget", .group = group_, .flags = OPT_OURS | OPT_MIN_EXCLUSIVE,    \
	    .arg = "SECONDS", .max = 1e7,                                                       \
	    .help = "longest time of a search for the largest load; the interval is wider when it " \
		    "ends first"),                                                              \
	OPT(type, level_seconds, "level-seconds", .group = group_,                             \
	    .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, .arg = "SECONDS", .max = 86400,              \
	    .help = "shortest measuring level of a search for the largest load; less makes the " \
		    "interval too narrow unless answers take well under a second")

#define SERVE_ROWS_FIND(group_)                                                             \
	OPT(struct serve_opts, find_max_rate, "find-max-rate", .group = group_,                \
	    .flags = OPT_OURS, .help = "find the largest request rate that keeps the limits of " \
				       "--slo"),                                                \
	OPT(struct serve_opts, find_max_concurrency, "find-max-concurrency", .group = group_,  \
	    .flags = OPT_OURS, .help = "find the largest number of requests at once that keeps " \
				       "the limits of --slo"),                                  \
	OPT(struct serve_opts, slo, "slo", .group = group_, .flags = OPT_OURS, .arg = "LIMITS", \
	    .help = "limits on latency in ms, such as p99_ttft_ms<200,p99_tpot_ms<30; without a " \
		    "search: say whether this load holds them (exit 3 unless it does)"),        \
	FIND_ROWS(struct serve_opts, group_)
