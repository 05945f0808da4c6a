/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live.h - --live: a full screen on stderr during the main run.
 *
 * It uses the terminal's alternate screen from the first live_show() to live_leave(), so that the
 * previous content reappears, also when a signal ends the program. Text printed meanwhile is kept
 * by live_print() until then.
 *
 * Everything is done on the thread that waits for the loops, at most five times a second, from
 * published data: the loops do nothing for it.
 */
#pragma once
#include <stdbool.h>

#include "bench/serve/point.h"
#include "client/record/record.h"
#include "core/base/str.h"
#include "core/stats/stats.h"

struct live;

/* NULL when stderr is no terminal that could show it. head: the first line, borrowed. */
struct live *live_new(const char *head);
void live_set_head(struct live *l, const char *head); /* head is borrowed; l may be NULL */
void live_free(struct live *l); /* leaves the screen; accepts NULL */

void live_show(struct live *l, const struct run_sample *now);
bool live_is_on(const struct live *l); /* false for NULL */
/* Keeps a line for stdout, or a warning, until the screen is left. */
void live_print(struct live *l, bool is_warning, const char *text);
void live_leave(struct live *l); /* accepts NULL */

/*
 * Data of the live view: percentiles so far, the slowest requests, the last errors.
 *
 * Read from rows that have ended, so it follows the record and touches nothing the loops write to.
 * Percentiles come from histograms (struct hist); the report's come from the record and are exact.
 */

#define LIVE_SLOWEST 5
#define LIVE_ERRORS 4
#define LIVE_ERROR_BYTES 200

struct live_slow { uint32_t row; int64_t e2el_ns, ttft_ns; uint32_t events; };
struct live_error { uint32_t row; enum fail_category category; char text[LIVE_ERROR_BYTES]; };

struct live_data {
	struct hist ttft, itl, e2el;
	double ttft_sum_ms, itl_sum_ms; /* of as many as the histograms have */
	uint32_t fail[FAIL_COUNT];
	struct live_slow slow[LIVE_SLOWEST];    /* slowest first */
	unsigned n_slow;
	struct live_error error[LIVE_ERRORS];   /* newest first */
	unsigned n_errors;
	/* private */
	uint8_t *is_seen; /* one per row */
	uint32_t n_rows, low; /* all rows before low are seen */
	int64_t *gaps;
	size_t gaps_cap;
};

/* Starts a new main run of n_rows rows. */
void live_data_begin(struct live_data *d, uint32_t n_rows);
/*
 * Adds rows of the first n_begun that have ended since; about events_max token events per call, the
 * rest next time.
 */
void live_data_take(struct live_data *d, const struct record *r, uint32_t n_begun,
		    uint64_t events_max);
void live_data_release(struct live_data *d);

/* ---- What changes over a run, one value a second, as a sparkline each ---- */

#define LIVE_SECONDS 256 /* kept of each */

/* Zeroed: empty. */
struct live_ring {
	double v[LIVE_SECONDS];
	size_t n;                /* in all; the last LIVE_SECONDS are kept */
};

/* Adds a second's value; NAN: none was reported, drawn as a gap. */
void live_ring_add(struct live_ring *r, double v);
/*
 * One row of a chart with this many rows, row 0 at the top. If there are fewer values than room,
 * each is drawn wider so that they fill the row.
 */
void live_ring_chart(const struct live_ring *r, unsigned row, unsigned rows, size_t room,
		     double full, bool is_utf8, struct buf *out);
/* The largest kept value; 0: none. */
double live_ring_most(const struct live_ring *r);
/*
 * Draws the latest values, room at most; full: the value of the largest block, 0: the largest value
 * shown. Returns that value.
 */
double live_ring_draw(const struct live_ring *r, size_t room, double full, bool is_utf8,
		      struct buf *out);

/* Requests and KV cache of the server, GPUs, host and server processes: X(enum, name, unit). */
#define LIVE_SERIES(X)                                                                    \
	X(RUNNING, "running", "requests") X(WAITING, "waiting", "requests")                \
	X(KV, "KV cache", "%") X(GPU, "GPU use", "%")                                      \
	X(GPU_MEMORY, "GPU memory", "GB") X(GPU_POWER, "GPU power", "W")                   \
	X(HOST_CPU, "host CPUs", "busy") X(HOST_MEMORY, "host memory", "GB")               \
	X(SERVER_CPU, "server CPUs", "busy") X(SERVER_RSS, "server mem", "GB")
#define X(id, name, unit) LIVE_##id,
enum live_series_id { LIVE_SERIES(X) LIVE_SERIES_COUNT };
#undef X

/* Zeroed: empty. */
struct live_series {
	struct live_ring ring[LIVE_SERIES_COUNT];
	double now[LIVE_SERIES_COUNT], full[LIVE_SERIES_COUNT]; /* full 0: no bound is known */
};

void live_series_take(struct live_series *s, const struct run_sample *now);
/* A second is over. */
void live_series_second(struct live_series *s);
/* One line of a series that had any value; false: it never had one. */
bool live_series_line(const struct live_series *s, enum live_series_id id, unsigned columns,
		      bool is_utf8, struct buf *out);
