/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry.h - what servers say of themselves while load runs.
 *
 * Reads /metrics of every server once before the load, every interval while it
 * runs, and once after, and makes series of what telemetry.h knows:
 *
 *   telemetry_begin   on the caller's thread: the reading before; then a thread
 *   telemetry_end     ends that thread; the reading after; moves all to the record
 *
 * The thread touches nothing of the record and nothing of the loops, so a record
 * may be written or merged at any time; what was read is in it from
 * telemetry_end on (a record file gets series when it is closed).
 *
 * A point's time is the middle of its transfer, on the record's clock. A server
 * that does not answer before the load, or whose answer holds nothing that is
 * known, is not asked again: the record gets a note of kind NOTE_SERVER_METRICS with
 * the reason instead of series. Nothing here is ever an error of the run.
 *
 * A series that reaches TELEMETRY_POINTS_MAX points loses every second one, and the
 * interval doubles, so that it covers the run however long that is.
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
/* What the servers said last, over all of them; NAN: nothing. From any thread. */
struct telemetry_now { double running, waiting, kv_usage; };
void telemetry_now(const struct telemetry *t, struct telemetry_now *out);
/* Frees t; accepts NULL. */
void telemetry_end(struct telemetry *t, struct record *into);

/*
 * What is kept of a server's /metrics, and under which name.
 *
 * Servers call the same things by different names; each thing has one short name
 * here, and a list of the names it goes by elsewhere (names.c). Samples of one thing
 * that differ by label (several engines, several models) become one value: their
 * sum, or their mean where a sum means nothing (the used share of a cache).
 */
struct telemetry_values {
	double value[SERIES_COUNT];
	bool is_reported[SERIES_COUNT];
	double position[SPEC_POSITIONS_MAX];
	bool is_position_told[SPEC_POSITIONS_MAX];
	size_t n_told; /* values and positions */
};

/* What the text of one /metrics says. Lines that are malformed are read over. */
void telemetry_read(struct str text, struct telemetry_values *out);

/*
 * A thread that does one thing again and again while load runs.
 *
 * Beats that come too late are left out and counted, never made up for. The thread has the usual
 * scheduling class whatever its parent has: who watches never stands above what is watched.
 */
struct ticker {
	int64_t interval_ns;      /* fn may change it */
	int64_t next_ns;          /* monotonic */
	int64_t not_before_ns;    /* fn may set it: beats before it are left out */
	uint64_t missed;          /* for fn and, once it is stopped, for all */
	int64_t cpu_ns;           /* what the thread has taken; once it is stopped */
	atomic_bool is_over;      /* set by ticker_stop: fn should come to its end */
	double patience_s;        /* how long ticker_stop waits for that; 0: for ever */
	void (*fn)(void *self);
	void *self;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

/*
 * Fn is called on the thread, first after one interval. Without a thread nothing is called.
 * patience_s may be set before.
 */
void ticker_start(struct ticker *b, int64_t interval_ns, void (*fn)(void *self), void *self);
/*
 * Waits until fn has come back; is_over is false again then. Accepts one that never started.
 * false: fn did not come back (a driver that hangs). The thread then lives on and b, self and what
 * they point at are its own for good.
 */
bool ticker_stop(struct ticker *b);
