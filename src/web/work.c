/* SPDX-License-Identifier: Apache-2.0 */
/*
 * work.c - the threads that ask the store and the index, and the one that watches the clock.
 *
 * Questions go to WORKERS threads. Large bodies go to one thread of their own, so that parsing them
 * uses the memory of one at a time and delays no question. One more thread asks the store for event
 * streams, and one whether it answers at all.
 *
 * Users take turns: the next question is the oldest among those of users with the fewest busy
 * workers, and no user can occupy all of them. A user is a token's name; without a token an address
 * (of IPv6 a /64). Each may have a limited number of questions waiting; further ones are answered
 * with 503 or 429.
 */
#include <assert.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "web/web_internal.h"

#define WORKERS 4
#define WAITING_MAX 512
#define USER_WORKERS_MAX (WORKERS - 1)
#define ABANDONED_NS 500000000 /* questions that waited this long are only asked if the client is
			        * still there */
#define TICK_NS 200000000

struct queue {
	pthread_cond_t more;
	struct exchange *first, *last;
	size_t n;
};

/* A user with requests in progress. */
struct user { uint64_t id; unsigned busy, waiting, streams; };

struct web_work {
	struct web *web;
	struct user *user;
	size_t n_users, users_room;
	pthread_mutex_t lock;
	pthread_cond_t idle;          /* something has become done */
	struct queue usual, large;
	struct exchange *delayed;     /* answered, but not yet to be sent */
	pthread_t thread[WORKERS + 5];
	size_t n_threads;
	size_t busy;
	bool is_ending;
};

static void push(struct queue *q, struct exchange *x)
{
	x->next = NULL;
	if (q->last)
		q->last->next = x;
	else
		q->first = x;
	q->last = x;
	q->n++;
}

/* ---- users; all under lock ---- */

static uint64_t user_id(const struct exchange *x)
{
	struct str who = x->request.who;

	return who.n && !str_is(who, "local") ? map_hash(who) : x->user;
}

static struct user *user_of(struct web_work *work, const struct exchange *x)
{
	uint64_t id = user_id(x);
	size_t i = 0;

	while (i < work->n_users && work->user[i].id != id)
		i++;
	if (i == work->users_room) {
		work->users_room = work->users_room ? 2 * work->users_room : 16;
		work->user = mem_grow(work->user, work->users_room, sizeof(*work->user));
	}
	if (i == work->n_users)
		work->user[work->n_users++] = (struct user){ .id = id };
	return &work->user[i];
}

static void user_leave(struct web_work *work, struct user *u)
{
	if (!u->busy && !u->waiting && !u->streams)
		*u = work->user[--work->n_users];
}

unsigned work_count_stream(struct web *w, const struct exchange *x, int change)
{
	struct web_work *work = w->work;
	struct user *u;
	unsigned n;

	pthread_mutex_lock(&work->lock);
	u = user_of(work, x);
	n = u->streams += (unsigned)change;
	user_leave(work, u);
	pthread_mutex_unlock(&work->lock);
	return n;
}

struct work_figures work_figures(struct web *w)
{
	struct web_work *work = w->work;
	struct work_figures out;

	pthread_mutex_lock(&work->lock);
	out = (struct work_figures){ work->usual.n + work->large.n, work->busy };
	pthread_mutex_unlock(&work->lock);
	return out;
}

/* ---- queues ---- */

/*
 * The oldest question of a user with the fewest busy workers; NULL: none, or only of users at their
 * limit.
 */
static struct exchange **find_next(struct web_work *work, struct queue *q)
{
	struct exchange **best = NULL;
	unsigned least = work->is_ending || q == &work->large ? UINT_MAX : USER_WORKERS_MAX;

	for (struct exchange **at = &q->first; *at && least; at = &(*at)->next) {
		unsigned busy = user_of(work, *at)->busy;

		if (busy < least) {
			best = at;
			least = busy;
		}
	}
	return best;
}

static struct exchange *pop(struct web_work *work, struct queue *q)
{
	struct exchange **at = find_next(work, q), *x = at ? *at : NULL;
	struct user *u;

	if (!x)
		return NULL;
	*at = x->next;
	if (q->last == x) {
		q->last = q->first;
		while (q->last && q->last->next)
			q->last = q->last->next;
	}
	q->n--;
	u = user_of(work, x);
	assert(u->waiting > 0);
	u->waiting--;
	u->busy++;
	return x;
}

static void refuse(struct exchange *x, enum refused why)
{
	if (why == REFUSED_USER)
		exchange_refuse(x, 429, "you already have %d requests waiting "
				"(WEB_USER_WAITING_MAX); send more when some are "
				"answered", WEB_USER_WAITING_MAX);
	else
		exchange_refuse(x, 503, "too many requests wait already");
	exchange_add_header(x, "Retry-After", "1");
	exchange_finish(x);
	atomic_fetch_add(&x->web->refused[why], 1);
}

bool work_submit(struct web *w, struct exchange *x)
{
	struct web_work *work = w->work;
	struct queue *q = x->is_large ? &work->large : &work->usual;
	struct user *u;
	bool has_room, is_user_full;

	assert(x->route && !x->is_answered);
	pthread_mutex_lock(&work->lock);
	u = user_of(work, x);
	is_user_full = u->waiting >= WEB_USER_WAITING_MAX;
	has_room = !work->is_ending && q->n < WAITING_MAX && !is_user_full;
	if (has_room) {
		u->waiting++;
		push(q, x);
		pthread_cond_signal(&q->more);
	}
	user_leave(work, u);
	pthread_mutex_unlock(&work->lock);
	if (!has_room)
		refuse(x, is_user_full ? REFUSED_USER : REFUSED_QUEUE);
	return has_room;
}

void work_done(struct web *w, struct exchange *x)
{
	struct web_work *work = w->work;
	bool waits;

	pthread_mutex_lock(&work->lock);
	waits = x->not_before_ns > clock_mono_ns() && !work->is_ending;
	if (waits) {
		x->next = work->delayed;
		work->delayed = x;
	}
	pthread_mutex_unlock(&work->lock);
	if (!waits)
		carrier_resume(w, x);
}

/* The client no longer waits for the answer, and nothing is to be changed. */
static bool is_abandoned(const struct exchange *x)
{
	return clock_mono_ns() - x->ready_ns > ABANDONED_NS && x->route &&
	       !(x->route->flags & ROUTE_CHANGES) && atomic_load(&x->is_gone);
}

static void answer(struct exchange *x)
{
	if (is_abandoned(x))
		exchange_refuse(x, 503, "the connection was closed before it was this request's turn");
	else
		exchange_work(x);
	exchange_finish(x);
}

static void serve(struct web_work *work, struct queue *q)
{
	struct exchange *x;
	struct user *u;

	pthread_mutex_lock(&work->lock);
	for (;;) {
		x = pop(work, q);
		if (!x && work->is_ending)
			break;
		if (!x) {
			pthread_cond_wait(&q->more, &work->lock);
			continue;
		}
		work->busy++;
		pthread_mutex_unlock(&work->lock);
		answer(x);
		pthread_mutex_lock(&work->lock);
		u = user_of(work, x);
		assert(u->busy > 0);
		u->busy--;
		user_leave(work, u);
		pthread_mutex_unlock(&work->lock);
		work_done(work->web, x); /* then x is another thread's */
		pthread_mutex_lock(&work->lock);
		work->busy--;
		pthread_cond_broadcast(&work->idle);
	}
	pthread_mutex_unlock(&work->lock);
}

static void *usual_main(void *self)
{
	struct web_work *work = self;

	serve(work, &work->usual);
	return NULL;
}

static void *large_main(void *self)
{
	struct web_work *work = self;

	serve(work, &work->large);
	return NULL;
}

/* Takes those whose time has come; all of them when work is ending. */
static struct exchange *take_delayed(struct web_work *work, int64_t now_ns)
{
	struct exchange **at = &work->delayed, *due = NULL, *x;

	while (*at) {
		x = *at;
		if (x->not_before_ns > now_ns && !work->is_ending) {
			at = &x->next;
			continue;
		}
		*at = x->next;
		x->next = due;
		due = x;
	}
	return due;
}

static void *clock_main(void *self)
{
	struct web_work *work = self;
	bool is_ending = false;

	while (!is_ending) {
		struct timespec pause = { .tv_nsec = TICK_NS };
		int64_t now = clock_mono_ns();
		struct exchange *x;

		pthread_mutex_lock(&work->lock);
		is_ending = work->is_ending;
		x = take_delayed(work, now);
		pthread_mutex_unlock(&work->lock);
		while (x) {
			struct exchange *next = x->next;

			carrier_resume(work->web, x);
			x = next;
		}
		carrier_tick(work->web, now);
		if (!is_ending)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

/* Calls look repeatedly, which may take long. */
static void *repeat(struct web_work *work, void (*look)(struct web *w))
{
	const struct timespec pause = { .tv_nsec = TICK_NS };

	pthread_mutex_lock(&work->lock);
	while (!work->is_ending) {
		work->busy++;
		pthread_mutex_unlock(&work->lock);
		look(work->web);
		pthread_mutex_lock(&work->lock);
		work->busy--;
		pthread_cond_broadcast(&work->idle);
		pthread_mutex_unlock(&work->lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&work->lock);
	}
	pthread_mutex_unlock(&work->lock);
	return NULL;
}

static void *streams_main(void *self)
{
	return repeat(self, carrier_look);
}

static void *pulse_main(void *self)
{
	return repeat(self, pulse_look);
}

static void *prepare_main(void *self)
{
	return repeat(self, answers_prepare);
}

static int start(struct web_work *work, void *(*run)(void *), struct err *e)
{
	int rc = pthread_create(&work->thread[work->n_threads], NULL, run, work);

	if (rc)
		return err_set(e, ERR_RUN, "cannot start a thread: %s", strerror(rc));
	work->n_threads++;
	return 0;
}

int work_open(struct web *w, struct err *e)
{
	struct web_work *work = mem_alloc(sizeof(*work));
	int rc = 0;

	work->web = w;
	w->work = work;
	pthread_mutex_init(&work->lock, NULL);
	pthread_cond_init(&work->idle, NULL);
	pthread_cond_init(&work->usual.more, NULL);
	pthread_cond_init(&work->large.more, NULL);
	for (int i = 0; i < WORKERS && rc == 0; i++)
		rc = start(work, usual_main, e);
	if (rc == 0)
		rc = start(work, large_main, e);
	if (rc == 0)
		rc = start(work, streams_main, e);
	if (rc == 0)
		rc = start(work, pulse_main, e);
	if (rc == 0)
		rc = start(work, prepare_main, e);
	if (rc == 0)
		rc = start(work, clock_main, e);
	return rc;
}

bool work_stop(struct web *w, int wait_ms)
{
	struct web_work *work = w->work;
	struct timespec until;
	bool is_over;

	until = clock_read(CLOCK_REALTIME);
	until.tv_sec += wait_ms / 1000;
	pthread_mutex_lock(&work->lock);
	work->is_ending = true;
	pthread_cond_broadcast(&work->usual.more);
	pthread_cond_broadcast(&work->large.more);
	while ((work->busy || work->usual.n || work->large.n) &&
	       pthread_cond_timedwait(&work->idle, &work->lock, &until) == 0)
		;
	is_over = !work->busy && !work->usual.n && !work->large.n;
	pthread_mutex_unlock(&work->lock);
	for (size_t i = 0; is_over && i < work->n_threads; i++)
		pthread_join(work->thread[i], NULL);
	if (is_over)
		work->n_threads = 0;
	return is_over;
}

void work_close(struct web *w)
{
	struct web_work *work = w->work;

	if (!work)
		return;
	pthread_mutex_destroy(&work->lock);
	pthread_cond_destroy(&work->idle);
	pthread_cond_destroy(&work->usual.more);
	pthread_cond_destroy(&work->large.more);
	free(work->user);
	free(work);
	w->work = NULL;
}
