/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.h - metrics that servers report while load runs.
 *
 * Reads /metrics of every server once before the load, every interval while it runs, and once
 * after, and makes series of the known metrics:
 *
 *   telemetry_begin   on the caller's thread: the reading before; then a thread
 *   telemetry_end     ends that thread; the reading after; moves all to the record
 *
 * The thread does not touch the record or the loops, so a record may be written or merged at any
 * time; the readings are in it from telemetry_end on (a record file gets series when it is closed).
 *
 * A point's time is the middle of its transfer, on the record's clock. A server that does not
 * answer before the load, or whose answer holds no known metric, is not read again: the record gets
 * a note of kind NOTE_SERVER_METRICS with the reason instead of series. Nothing here is ever an
 * error of the run.
 *
 * A series that reaches TELEMETRY_POINTS_MAX points loses every second one, and the interval
 * doubles, so that it covers the run however long that is.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/record/record.h"
#include "client/record/series.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "input/fetch/fetch.h"

#define TELEMETRY_TIMEOUT_MS 5000  /* of one reading */

/* One server; everything is borrowed until telemetry_end. */
struct telemetry_source {
	const char *url;
	const char *labels;        /* of its series, as Prometheus spells them: url="..." */
	struct fetch_opts opts;    /* header, TLS, socket; timeout and cancel are set here */
};

struct telemetry;

/* interval_ns 0: only before and after. Never NULL, and never fails. */
struct telemetry *telemetry_begin(const struct telemetry_source *source, size_t n,
				  int64_t interval_ns);
/* The latest values, over all servers; NAN: none. From any thread. */
struct telemetry_now { double running, waiting, kv_usage; };
void telemetry_now(const struct telemetry *t, struct telemetry_now *out);
/* Frees t; accepts NULL. */
void telemetry_end(struct telemetry *t, struct record *into);

/*
 * The metrics that are kept of a server's /metrics, and their names.
 *
 * Servers have different names for the same metrics; each metric has one short name here, and a
 * list of its names elsewhere (names.c). Samples of one metric that differ by label (several
 * engines, several models) become one value: their sum, or their mean where a sum means nothing
 * (the used share of a cache).
 */
struct telemetry_values {
	double value[SERIES_COUNT];
	bool is_reported[SERIES_COUNT];
	double position[SPEC_POSITIONS_MAX];
	bool is_position_told[SPEC_POSITIONS_MAX];
	size_t n_told; /* values and positions */
};

/* Parses the text of one /metrics. Malformed lines are skipped. */
void telemetry_read(struct str text, struct telemetry_values *out);

/*
 * A thread that calls a function at a fixed interval while load runs.
 *
 * Late beats are skipped and counted, never made up for. The thread has the normal scheduling class
 * whatever its parent has: monitoring must not have priority over what it monitors.
 */
struct ticker {
	int64_t interval_ns;      /* fn may change it */
	int64_t next_ns;          /* monotonic */
	int64_t not_before_ns;    /* fn may set it: earlier beats are skipped */
	uint64_t missed;          /* for fn, and for all once it is stopped */
	int64_t cpu_ns;           /* CPU time of the thread; once it is stopped */
	atomic_bool is_over;      /* set by ticker_stop: fn should return soon */
	double patience_s;        /* how long ticker_stop waits for fn; 0: for ever */
	void (*fn)(void *self);
	void *self;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

/*
 * Calls fn on the thread, first after one interval. If no thread can be made, it is never called.
 * patience_s may be set before.
 */
void ticker_start(struct ticker *b, int64_t interval_ns, void (*fn)(void *self), void *self);
/*
 * Waits until fn has returned; is_over is then false again. Accepts one that never started. false:
 * fn did not return (a driver that hangs). The thread then lives on, and b, self and what they
 * point at must never be freed.
 */
bool ticker_stop(struct ticker *b);
