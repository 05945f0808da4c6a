/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock.h - the two clocks and nothing else.
 *
 * Stamps in the record are CLOCK_REALTIME (what the kernel stamps packets
 * with); timers use CLOCK_MONOTONIC. Nanoseconds, int64_t, 0 means "never".
 */
#pragma once
#include <assert.h>
#include <stdint.h>
#include <time.h>

/* A clock that cannot be read (a sandbox may forbid it) ends the program with one sentence. */
_Noreturn void clock_failed(void);

static inline struct timespec clock_read(clockid_t id)
{
	struct timespec t;

	if (clock_gettime(id, &t) < 0)
		clock_failed();
	return t;
}

static inline int64_t clock_ns(clockid_t id)
{
	struct timespec t = clock_read(id);

	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline int64_t clock_real_ns(void) { return clock_ns(CLOCK_REALTIME); }
static inline int64_t clock_mono_ns(void) { return clock_ns(CLOCK_MONOTONIC); }

#define CLOCK_SPAN_S_MAX 1e9 /* 31 years: sums of a clock and two spans stay within int64_t */

/* A span of seconds that was checked where it came in (options, plan) as nanoseconds. */
static inline int64_t clock_span_ns(double s)
{
	assert(s >= 0 && s <= CLOCK_SPAN_S_MAX);
	return (int64_t)(s * 1e9);
}
