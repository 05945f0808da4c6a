/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.h - one epoll loop: descriptors, timers, a wake-up, and a wait that is exact to a fraction
 * of a microsecond.
 *
 * Single thread: everything but loop_wake is called by the thread that runs the loop. Times are
 * CLOCK_MONOTONIC nanoseconds. The waiting is hybrid: sleep until 150 us before the deadline with 1
 * ns timer slack, then poll without sleeping. If this machine wakes sleepers later than that, the
 * polled part grows, up to 1 ms.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"

struct loop;

/* Embedded in its owner; on_ready may close and free the owner. */
struct watch {
	int fd;
	uint32_t events;                                   /* requested events: EPOLLIN... */
	void (*on_ready)(struct watch *w, uint32_t events);
};

/* Embedded; index is private. Equal deadlines fire in the order they were set. */
struct timer {
	int64_t at_ns;
	uint64_t order;
	uint32_t index; /* 0: not set */
	void (*on_time)(struct timer *t);
};

struct loop *loop_new(struct err *e);
void loop_free(struct loop *l);

int loop_watch(struct loop *l, struct watch *w, struct err *e); /* w->fd, events, on_ready set */
void loop_rewatch(struct loop *l, struct watch *w, uint32_t events);
/* Safe inside callbacks: events already collected for w in this round are dropped. */
void loop_unwatch(struct loop *l, struct watch *w);
/* The same for a descriptor owned by a library, which may have closed it already. */
void loop_unwatch_foreign(struct loop *l, struct watch *w);

void loop_timer_set(struct loop *l, struct timer *t, int64_t at_ns); /* also moves a set one */
void loop_timer_cancel(struct loop *l, struct timer *t);

/*
 * One round: waits for readiness, a timer, a wake-up, a signal or until_ns (until_ns <= now does
 * not wait; INT64_MAX: no deadline) and handles it: first timers that are due or come due within 50
 * us of the round's beginning, then ready descriptors, with timers that come due meanwhile fired
 * between them. A round ends after about 10 ms; the rest is kept for the next one, which does not
 * wait. A timer set in the past by a callback fires after those already due, in the next round at
 * the latest. is_exact: spend CPU polling for the last part before the deadline; without it the
 * wait may end up to ~60 us late. Returns the number of callbacks made.
 */
int loop_poll(struct loop *l, int64_t until_ns, bool is_exact);
void loop_wake(struct loop *l);  /* from any thread, and async-signal-safe */
int64_t loop_now_ns(const struct loop *l); /* when this round's readiness was collected */
/*
 * CPU time spent polling before exact deadlines, over the loop's life. It can be given up at any
 * time, so it says nothing about how busy the thread is.
 */
int64_t loop_spun_ns(const struct loop *l);
