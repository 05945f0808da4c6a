/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/work.c - the threads that ask the store and the index, and the one that looks at the clock.
 *
 * Questions go to WORKERS threads. Large bodies go to one thread of their own, so that taking them
 * apart costs the memory of one of them and keeps no question waiting. One more thread asks the
 * store for event streams.
 */
#include <stdatomic.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "web/state.h"

#define WORKERS 4
#define WAITING_MAX 512
#define TICK_NS 200000000

struct queue {
	pthread_cond_t more;
	struct exchange *first, *last;
	size_t n;
};

struct web_work {
	struct web *web;
	pthread_mutex_t lock;
	pthread_cond_t idle;          /* something has become done */
	struct queue usual, large;
	struct exchange *delayed;     /* answered, but not yet to be sent */
	pthread_t thread[WORKERS + 3];
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

static struct exchange *pop(struct queue *q)
{
	struct exchange *x = q->first;

	if (x) {
		q->first = x->next;
		if (!q->first)
			q->last = NULL;
		q->n--;
	}
	return x;
}

bool work_submit(struct web *w, struct exchange *x)
{
	struct web_work *work = w->work;
	struct queue *q = x->is_large ? &work->large : &work->usual;
	bool has_room;

	pthread_mutex_lock(&work->lock);
	has_room = !work->is_ending && q->n < WAITING_MAX;
	if (has_room) {
		push(q, x);
		pthread_cond_signal(&q->more);
	}
	pthread_mutex_unlock(&work->lock);
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

static void serve(struct web_work *work, struct queue *q)
{
	struct exchange *x;

	pthread_mutex_lock(&work->lock);
	for (;;) {
		x = pop(q);
		if (!x && work->is_ending)
			break;
		if (!x) {
			pthread_cond_wait(&q->more, &work->lock);
			continue;
		}
		work->busy++;
		pthread_mutex_unlock(&work->lock);
		exchange_work(x);
		exchange_finish(x);
		work_done(work->web, x);
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

/* Those whose time has come; all of them when work is ending. */
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

static void *streams_main(void *self)
{
	struct web_work *work = self;
	const struct timespec pause = { .tv_nsec = TICK_NS };

	pthread_mutex_lock(&work->lock);
	while (!work->is_ending) {
		work->busy++;
		pthread_mutex_unlock(&work->lock);
		carrier_look(work->web);
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
		rc = start(work, clock_main, e);
	return rc;
}

bool work_stop(struct web *w, int wait_ms)
{
	struct web_work *work = w->work;
	struct timespec until;
	bool is_over;

	clock_gettime(CLOCK_REALTIME, &until);
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
	free(work);
	w->work = NULL;
}
