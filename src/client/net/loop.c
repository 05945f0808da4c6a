/* SPDX-License-Identifier: Apache-2.0 */
/*
 * loop.c - see loop.h.
 *
 * Timers are a heap over (deadline, order of setting) with four children per node. It holds the
 * keys next to the pointers, and a separate table has each timer's position in the heap, so sifting
 * does not touch the timers' memory: with a thousand timers each of them is cold. A timer that its
 * callback sets again takes the place that it left at the top, so that the heap is sifted once.
 * Readiness is collected in batches of EVENTS_MAX. A batch can take a millisecond to process, so
 * due timers are also fired between its callbacks. After TURN_NS loop_poll returns, so that the
 * caller can check its deadlines and signals; the next round continues the batch and collects
 * nothing before its end, so that no descriptor is served twice before all others were.
 */
#include "client/net/loop.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

#define EVENTS_MAX 256
/* The part of an exact wait that is polled: the least, and the most where sleepers wake late. */
#define SPIN_NS_MIN 150000
#define SPIN_NS_MAX 1000000
#define SPIN_SHRINK 512    /* wakes in time after which a longer part has shrunk by two thirds */
#define SPIN_STEP_NS 20000 /* a longer step was interrupted: what it took of the CPU is unknown */
#define SOON_NS 10000000   /* timers this near are checked between callbacks */
#define TURN_NS 10000000   /* after this long the rest of a batch waits for the next round */
#define LOOK_NS 50000      /* timers due within this fire without a look at the descriptors */
#define LAST_NS 1000       /* before an exact deadline: only the clock is polled */

#define CHILDREN 4

struct timer_key {
	int64_t at_ns;
	uint64_t order;
	struct timer *timer;
	uint32_t slot;  /* the timer's index: place[slot] is where the key is */
};

struct loop {
	int epoll;
	int wake; /* eventfd; its event carries the loop's own address */
	int64_t now_ns;
	int64_t looked_ns; /* at the descriptors */
	int64_t spun_ns;
	int64_t spin_ns; /* SPIN_NS_MIN to SPIN_NS_MAX */
	struct timer_key *heap; /* heap[0] is the soonest */
	uint32_t *place;        /* of used slots, place in the heap; of free ones the next one */
	uint32_t free_slot;     /* 0: none */
	size_t count, cap;      /* slots are 1 to cap */
	bool is_hole;           /* heap[0] was taken out, its place is not filled yet */
	uint64_t order;         /* orders given out, the next one is order + 1 */
	bool is_polling;
	bool is_slack_set;
	bool is_without_pwait2; /* kernels before 5.11 */
	int event_at, event_count;
	struct epoll_event event[EVENTS_MAX];
};

struct loop *loop_new(struct err *e)
{
	struct loop *l = mem_alloc(sizeof(*l));
	struct epoll_event wake = { .events = EPOLLIN, .data.ptr = l };

	l->wake = -1;
	l->spin_ns = SPIN_NS_MIN;
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll >= 0)
		l->wake = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (l->wake < 0 || epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->wake, &wake) < 0) {
		err_set(e, ERR_NET, "cannot create an event loop: %s", strerrordesc_np(errno));
		loop_free(l);
		return NULL;
	}
	l->now_ns = clock_mono_ns();
	return l;
}

void loop_free(struct loop *l)
{
	if (!l)
		return;
	assert(!l->is_polling);
	if (l->wake >= 0)
		close(l->wake);
	if (l->epoll >= 0)
		close(l->epoll);
	free(l->heap);
	free(l->place);
	free(l);
}

/* ---- descriptors ---- */

int loop_watch(struct loop *l, struct watch *w, struct err *e)
{
	struct epoll_event ev = { .events = w->events, .data.ptr = w };

	assert(w->on_ready);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, w->fd, &ev) < 0)
		return err_set(e, ERR_NET, "cannot watch descriptor %d: %s", w->fd,
			       strerrordesc_np(errno));
	return 0;
}

void loop_rewatch(struct loop *l, struct watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.ptr = w };
	int rc;

	if (w->events == events && !(events & (EPOLLET | EPOLLONESHOT)))
		return;
	w->events = events;
	rc = epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &ev);
	assert(rc == 0);
	(void)rc;
}

/* Events already collected for w are dropped. */
static void forget(struct loop *l, const struct watch *w)
{
	for (int i = l->event_at; i < l->event_count; i++)
		if (l->event[i].data.ptr == w)
			l->event[i].data.ptr = NULL;
}

void loop_unwatch(struct loop *l, struct watch *w)
{
	int rc = epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);

	assert(rc == 0); /* unwatch comes before close */
	(void)rc;
	forget(l, w);
}

void loop_unwatch_foreign(struct loop *l, struct watch *w)
{
	int rc = epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);

	assert(rc == 0 || errno == EBADF || errno == ENOENT); /* a closed one leaves by itself */
	(void)rc;
	forget(l, w);
}

/* ---- timers ---- */

static bool key_is_before(const struct timer_key *a, const struct timer_key *b)
{
	return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

static void heap_put(struct loop *l, size_t i, struct timer_key key)
{
	l->heap[i] = key;
	l->place[key.slot] = (uint32_t)i;
}

/* The soonest of the children of i, or count when it has none. */
static size_t heap_child(const struct loop *l, size_t i)
{
	size_t best = i * CHILDREN + 1, end = best + CHILDREN;

	if (best >= l->count)
		return l->count;
	if (end > l->count)
		end = l->count;
	for (size_t k = best + 1; k < end; k++)
		if (key_is_before(&l->heap[k], &l->heap[best]))
			best = k;
	return best;
}

/* Puts key into the hole at i and moves it up or down to its place. */
static void heap_settle(struct loop *l, size_t i, struct timer_key key)
{
	while (i > 0 && key_is_before(&key, &l->heap[(i - 1) / CHILDREN])) {
		heap_put(l, i, l->heap[(i - 1) / CHILDREN]);
		i = (i - 1) / CHILDREN;
	}
	for (;;) {
		size_t child = heap_child(l, i);

		if (child == l->count || !key_is_before(&l->heap[child], &key))
			break;
		heap_put(l, i, l->heap[child]);
		i = child;
	}
	heap_put(l, i, key);
}

/* Takes out the key at i, whose slot is free afterwards. */
static void heap_remove(struct loop *l, size_t i)
{
	struct timer_key last = l->heap[--l->count];

	if (i < l->count)
		heap_settle(l, i, last);
}

/* Fills the place of the timer that fired, unless its callback has set a timer there. */
static void hole_fill(struct loop *l)
{
	if (!l->is_hole)
		return;
	l->is_hole = false;
	heap_remove(l, 0);
}

static void heap_grow(struct loop *l)
{
	size_t cap = l->cap ? l->cap * 2 : 64;

	assert(cap < UINT32_MAX);
	l->heap = mem_grow(l->heap, cap, sizeof(*l->heap));
	l->place = mem_grow(l->place, cap + 1, sizeof(*l->place));
	for (size_t slot = cap; slot > l->cap; slot--) {
		l->place[slot] = l->free_slot;
		l->free_slot = (uint32_t)slot;
	}
	l->cap = cap;
}

static uint32_t slot_take(struct loop *l)
{
	uint32_t slot;

	if (l->free_slot == 0)
		heap_grow(l);
	slot = l->free_slot;
	l->free_slot = l->place[slot];
	return slot;
}

static void slot_give(struct loop *l, struct timer *t)
{
	l->place[t->index] = l->free_slot;
	l->free_slot = t->index;
	t->index = 0;
}

void loop_timer_set(struct loop *l, struct timer *t, int64_t at_ns)
{
	struct timer_key key = { at_ns, ++l->order, t, t->index };
	size_t i;

	assert(t->on_time);
	/* A callback that sets a past deadline must not get ahead of those already due. */
	if (l->is_polling && at_ns < l->now_ns)
		key.at_ns = l->now_ns;
	t->at_ns = at_ns;
	t->order = key.order;
	if (t->index) {
		hole_fill(l);
		i = l->place[t->index];
	} else {
		key.slot = t->index = slot_take(l);
		i = l->is_hole ? 0 : l->count++;
		l->is_hole = false;
	}
	heap_settle(l, i, key);
}

void loop_timer_cancel(struct loop *l, struct timer *t)
{
	size_t i;

	if (t->index == 0)
		return;
	hole_fill(l);
	i = l->place[t->index];
	assert(i < l->count && l->heap[i].timer == t);
	slot_give(l, t);
	heap_remove(l, i);
}

/* Fires timers due at now whose order is at most order_last. */
static int timers_fire(struct loop *l, uint64_t order_last)
{
	int fired = 0;

	while (l->count && l->heap[0].at_ns <= l->now_ns && l->heap[0].order <= order_last) {
		struct timer *t = l->heap[0].timer;

		slot_give(l, t);
		l->is_hole = true;
		t->on_time(t);
		hole_fill(l);
		fired++;
	}
	return fired;
}

/*
 * Fires due timers, and those that come due meanwhile: with closely spaced timers, polling the
 * descriptors for each costs a tenth of their work. Timers set by a callback wait for the next
 * round.
 */
static int timers_fire_near(struct loop *l)
{
	uint64_t order_last = l->order;
	int64_t collected_ns = l->now_ns;
	int made = timers_fire(l, order_last), fired = made;

	while (fired && l->count && l->heap[0].at_ns - collected_ns < LOOK_NS) {
		l->now_ns = clock_mono_ns();
		if (l->now_ns - collected_ns >= LOOK_NS)
			break;
		fired = timers_fire(l, order_last);
		made += fired;
	}
	l->now_ns = collected_ns;
	return made;
}

/* ---- the round ---- */

/* epoll_wait with a timeout in nanoseconds; -1 waits for ever. Interrupted: 0. */
static int collect(struct loop *l, int64_t timeout_ns)
{
	struct timespec t = { timeout_ns / 1000000000, timeout_ns % 1000000000 };
	const struct timespec *timeout = timeout_ns < 0 ? NULL : &t;
	int n = -1;

	if (timeout_ns == 0) {
		n = epoll_wait(l->epoll, l->event, EVENTS_MAX, 0);
	} else if (!l->is_without_pwait2) {
		n = epoll_pwait2(l->epoll, l->event, EVENTS_MAX, timeout, NULL);
		l->is_without_pwait2 = n < 0 && (errno == ENOSYS || errno == EPERM);
	}
	if (n < 0 && l->is_without_pwait2 && timeout_ns != 0) {
		struct pollfd all = { .fd = l->epoll, .events = POLLIN };

		n = ppoll(&all, 1, timeout, NULL);
		if (n > 0)
			n = epoll_wait(l->epoll, l->event, EVENTS_MAX, 0);
	}
	assert(n >= 0 || errno == EINTR);
	l->now_ns = l->looked_ns = clock_mono_ns();
	return n < 0 ? 0 : n;
}

/*
 * After a sleep that should have ended spin_ns before the deadline: one that missed it doubles what
 * is polled, so that about one exact wait in SPIN_SHRINK misses its deadline, however late this
 * machine wakes sleepers, up to SPIN_NS_MAX.
 */
static void adapt_spin(struct loop *l, int64_t deadline_ns)
{
	if (l->now_ns <= deadline_ns)
		l->spin_ns -= (l->spin_ns - SPIN_NS_MIN) / SPIN_SHRINK;
	else if ((l->spin_ns *= 2) > SPIN_NS_MAX)
		l->spin_ns = SPIN_NS_MAX;
}

/* Waits until the deadline at most and stores ready descriptors in event[]. */
static int wait_ready(struct loop *l, int64_t deadline_ns, bool is_exact)
{
	int64_t sleep_ns;
	int n = 0;

	if (deadline_ns == INT64_MAX)
		return collect(l, -1);
	l->now_ns = clock_mono_ns();
	if (deadline_ns <= l->now_ns)
		return collect(l, 0);
	sleep_ns = deadline_ns - l->now_ns - (is_exact ? l->spin_ns : 0);
	if (sleep_ns > 0) {
		n = collect(l, sleep_ns);
		if (n > 0 || !is_exact)
			return n;
		/* Asleep but for a signal: its handler's flag is the caller's to look at. */
		if (l->now_ns < deadline_ns - l->spin_ns)
			return 0;
		adapt_spin(l, deadline_ns);
	}
	do {
		int64_t before = l->now_ns;

		if (deadline_ns - before < LAST_NS && before - l->looked_ns < LOOK_NS)
			l->now_ns = clock_mono_ns();
		else
			n = collect(l, 0);
		if (l->now_ns - before < SPIN_STEP_NS)
			l->spun_ns += l->now_ns - before;
	} while (n == 0 && l->now_ns < deadline_ns);
	return n;
}

static void wake_drain(struct loop *l)
{
	uint64_t count;
	ssize_t n = read(l->wake, &count, sizeof(count));

	assert(n == sizeof(count) || errno == EAGAIN);
	(void)n;
}

int loop_poll(struct loop *l, int64_t until_ns, bool is_exact)
{
	int64_t deadline_ns = until_ns;
	int64_t collected_ns, now_ns;
	int made = 0;

	assert(!l->is_polling);
	if (!l->is_slack_set) { /* here, because the slack belongs to the thread that waits */
		prctl(PR_SET_TIMERSLACK, 1ul, 0ul, 0ul, 0ul);
		l->is_slack_set = true;
	}
	if (l->count && l->heap[0].at_ns < deadline_ns)
		deadline_ns = l->heap[0].at_ns;
	if (l->event_at < l->event_count) {
		l->now_ns = clock_mono_ns();
	} else {
		l->event_at = l->event_count = 0;
		l->event_count = wait_ready(l, deadline_ns, is_exact);
	}
	collected_ns = now_ns = l->now_ns;
	l->is_polling = true;
	made += timers_fire_near(l);
	while (l->event_at < l->event_count && now_ns - collected_ns < TURN_NS) {
		struct epoll_event ev = l->event[l->event_at++];
		struct watch *w = ev.data.ptr;

		if (!w)
			continue;
		if (ev.data.ptr == l) {
			wake_drain(l);
			continue;
		}
		w->on_ready(w, ev.events);
		made++;
		now_ns = clock_mono_ns();
		if (l->count && l->heap[0].at_ns - collected_ns < SOON_NS) {
			l->now_ns = now_ns;
			made += timers_fire(l, l->order);
			l->now_ns = collected_ns;
		}
	}
	l->is_polling = false;
	return made;
}

void loop_wake(struct loop *l)
{
	uint64_t one = 1;
	int saved = errno;
	ssize_t n = write(l->wake, &one, sizeof(one));

	(void)n; /* a full counter is already a wake-up */
	errno = saved;
}

int64_t loop_now_ns(const struct loop *l)
{
	return l->now_ns;
}

int64_t loop_spun_ns(const struct loop *l)
{
	return l->spun_ns;
}
