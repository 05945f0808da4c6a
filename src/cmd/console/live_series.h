/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_series.h - what changes over a run, one value a second, as a sparkline each.
 */
#pragma once
#include <stdbool.h>

#include "bench/serve/point.h"
#include "core/base/str.h"

#define LIVE_SECONDS 256 /* kept of each */

/* Zeroed: empty. */
struct live_ring {
	double v[LIVE_SECONDS];
	size_t n;                /* in all; the last LIVE_SECONDS are kept */
};

/* NAN: not told in that second, drawn as a gap. */
void live_ring_add(struct live_ring *r, double v);
/* The last ones, room at most; full is the largest block, 0: the largest value. Returns that. */
double live_ring_draw(const struct live_ring *r, size_t room, double full, bool is_utf8,
		      struct buf *out);

/* Queue, KV cache, GPUs, host and server processes: X(enum, name, unit). */
#define LIVE_SERIES(X)                                                                    \
	X(WAITING, "waiting", "requests") X(KV, "KV cache", "%") X(GPU, "GPU use", "%")    \
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
/* One line of a series that was ever told; false: never. */
bool live_series_line(const struct live_series *s, enum live_series_id id, unsigned columns,
		      bool is_utf8, struct buf *out);
