/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry/beat.h - a thread that does one thing again and again while load runs.
 *
 * Beats that come too late are left out and counted, never made up for. The thread has the usual
 * scheduling class whatever its parent has: who watches never stands above what is watched.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct beat {
	int64_t interval_ns;      /* fn may change it */
	int64_t next_ns;          /* monotonic */
	int64_t not_before_ns;    /* fn may set it: beats before it are left out */
	uint64_t missed;          /* for fn and, once it is stopped, for all */
	int64_t cpu_ns;           /* what the thread has taken; once it is stopped */
	atomic_bool is_over;      /* set by beat_stop: fn should come to its end */
	double patience_s;        /* how long beat_stop waits for that; 0: for ever */
	void (*fn)(void *self);
	void *self;
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
};

/*
 * fn is called on the thread, first after one interval. Without a thread nothing is called.
 * patience_s may be set before.
 */
void beat_start(struct beat *b, int64_t interval_ns, void (*fn)(void *self), void *self);
/*
 * Waits until fn has come back; is_over is false again then. Accepts one that never started.
 * false: fn did not come back (a driver that hangs). The thread then lives on and b, self and what
 * they point at are its own for good.
 */
bool beat_stop(struct beat *b);
