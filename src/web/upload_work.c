/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/upload_work.c - the thread that works off the files of uploads, one at a time.
 *
 * It begins with what an earlier process left, and goes on when it is woken. When the store
 * refuses, it tries again later: what was acknowledged is taken in some time. Every other second it
 * lets the store look for what other processes have written.
 */
#include <errno.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "web/state.h"

#define LOOK_SECONDS 2

struct upload_worker {
	struct web *web;
	pthread_t thread;
	bool has_thread, is_over;
	pthread_mutex_t lock;
	pthread_cond_t more, over;
	bool is_woken, is_ending;
};

/* Until somebody wakes it, or for a while. */
static void rest(struct upload_worker *u)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LOOK_SECONDS;
	pthread_mutex_lock(&u->lock);
	while (!u->is_ending && !u->is_woken &&
	       pthread_cond_timedwait(&u->more, &u->lock, &until) != ETIMEDOUT)
		;
	u->is_woken = false;
	pthread_mutex_unlock(&u->lock);
}

static bool is_ending(struct upload_worker *u)
{
	bool is;

	pthread_mutex_lock(&u->lock);
	is = u->is_ending;
	pthread_mutex_unlock(&u->lock);
	return is;
}

static void *work_main(void *self)
{
	struct upload_worker *u = self;

	while (!is_ending(u)) {
		struct err e = { 0 };
		/* Whoever only reads leaves the jobs to whoever writes. */
		int rc = u->web->o.is_read_only ? 0 : store_job_step(u->web->store, &e);

		if (rc > 0)
			atomic_fetch_add(&u->web->job_changes, 1);
		if (rc == 0)
			rc = store_maintain(u->web->store, &e);
		if (rc < 0)
			log_say(u->web, NULL, "error", e.text);
		if (rc <= 0)
			rest(u);
	}
	pthread_mutex_lock(&u->lock);
	u->is_over = true;
	pthread_cond_broadcast(&u->over);
	pthread_mutex_unlock(&u->lock);
	return NULL;
}

int upload_open(struct web *w, struct err *e)
{
	struct upload_worker *u = mem_alloc(sizeof(*u));
	int rc;

	u->web = w;
	w->upload = u;
	pthread_mutex_init(&u->lock, NULL);
	pthread_cond_init(&u->more, NULL);
	pthread_cond_init(&u->over, NULL);
	if (!w->o.is_read_only && store_job_resume(w->store, e) < 0)
		return -1;
	rc = pthread_create(&u->thread, NULL, work_main, u);
	if (rc)
		return err_set(e, ERR_RUN, "cannot start a thread: %s", strerror(rc));
	u->has_thread = true;
	return 0;
}

void upload_wake(struct web *w)
{
	struct upload_worker *u = w->upload;

	pthread_mutex_lock(&u->lock);
	u->is_woken = true;
	pthread_cond_signal(&u->more);
	pthread_mutex_unlock(&u->lock);
}

bool upload_stop(struct web *w, int wait_ms)
{
	struct upload_worker *u = w->upload;
	struct timespec until;
	bool is_over;

	if (!u->has_thread)
		return true;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += wait_ms / 1000;
	pthread_mutex_lock(&u->lock);
	u->is_ending = true;
	pthread_cond_signal(&u->more);
	while (!u->is_over && pthread_cond_timedwait(&u->over, &u->lock, &until) == 0)
		;
	is_over = u->is_over;
	pthread_mutex_unlock(&u->lock);
	if (is_over)
		pthread_join(u->thread, NULL);
	u->has_thread = !is_over;
	return is_over;
}

void upload_close(struct web *w)
{
	struct upload_worker *u = w->upload;

	if (!u)
		return;
	pthread_mutex_destroy(&u->lock);
	pthread_cond_destroy(&u->more);
	pthread_cond_destroy(&u->over);
	free(u);
	w->upload = NULL;
}
