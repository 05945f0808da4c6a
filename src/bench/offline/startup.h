/* SPDX-License-Identifier: Apache-2.0 */
/*
 * startup.h - `bench startup`: how long an engine takes until it accepts requests, with empty
 * compilation caches (cold) and with those of the start before (warm); sweep spec 5.
 *
 * Every iteration is a program of its own. Cold ones get a new VLLM_CACHE_ROOT and new inductor and
 * Triton caches, which are removed afterwards, however the iteration ends. The kernel's page cache
 * is unchanged, unless --drop-page-cache drops the model's files from it.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/offline/offline.h"
#include "client/metrics/trust.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "out/compare/gate.h"

/*
 * Starts of an engine, cold and warm: numbers, terminal and JSON of
 * `bench startup` (sweep spec 5).
 *
 * Pure. Times are seconds. Means and percentiles are NumPy's (stats/stats.h). A side without
 * iterations has no metrics: its keys are left out, where upstream crashes.
 */

/* One start of the engine. NAN: not reported. */
struct startup_iteration {
	double startup_s;              /* upstream's clock: building the engine */
	double compilation_s, encoder_compilation_s;
	double spawn_s;                /* from the program's start to its first word */
	double ready_s;                /* from the program's start until it could be asked */
	const struct engine_phase *phase;
	size_t n_phases;
	/* Bytes of the model's files in the page cache; -1: not asked for. */
	int64_t dropped_bytes, left_bytes;
};

enum startup_side { STARTUP_COLD, STARTUP_WARMUP, STARTUP_WARM, STARTUP_SIDES };

struct startup_runs {
	struct { struct startup_iteration *v; size_t n, wanted; } side[STARTUP_SIDES];
	bool is_server;      /* startup_s is from the start of a server to its first good answer */
	bool is_interrupted;
	bool is_page_cache_dropped;
};

/* One metric of a side, as upstream names it. */
struct startup_metric {
	char key[64];                /* "cold_encoder_compilation" */
	const char *name;            /* "Encoder compilation time" */
	enum startup_side side;
	const double *value;
	size_t n;
	double mean, percentile[OFFLINE_PERCENTILES];
};
#define STARTUP_METRICS_MAX 6
/* The metrics of the measured sides, in upstream's order; values live in the arena. */
size_t startup_metrics(const struct startup_runs *runs, struct startup_metric *out,
		       struct arena *a);

/* ---- doubts and all their thresholds ---- */

/* With fewer starts of a kind their spread is not judged. */
#define STARTUP_JUDGE_MIN 3
/* Standard deviation over mean. */
#define STARTUP_SPREAD_SHARE 0.10
/* The first cold start over the mean of the others. */
#define STARTUP_FIRST_SHARE 1.20
/*
 * Interval at which a starting server is asked, and the largest share of its start that it may be.
 */
#define STARTUP_POLL_S 0.1
#define STARTUP_COARSE_SHARE 0.05

enum startup_doubt {
	STARTUP_STOPPED = 1, STARTUP_FEW = 2, STARTUP_SPREADS = 4, STARTUP_NO_WARMUP = 8,
	STARTUP_FIRST_SLOW = 16, STARTUP_COARSE = 32,
};
/* Bits of enum startup_doubt. */
unsigned startup_doubts(const struct startup_runs *runs);

/* ---- what is shown and kept ---- */

/* Appends upstream's lines. */
void startup_terminal(const struct startup_runs *runs, struct buf *out);
/* Appends our lines, which follow upstream's. */
void startup_terminal_ours(const struct startup_runs *runs, struct buf *out);
/*
 * The result file (indent 4, no line end, as upstream): upstream's keys, then "profllm": the
 * members of ours (a JSON object), then what belongs to starts.
 */
void startup_json(const struct startup_runs *runs, struct str ours, struct buf *out);

struct startup_opts {
	struct offline_opts common;
	int64_t num_iters_cold, num_iters_warmup, num_iters_warm;
	bool drop_page_cache;
};
extern const struct opt_set startup_opt_set;
extern const struct offline_verb startup_verb;
