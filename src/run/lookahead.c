/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lookahead.c - see lookahead.h. Slot i % LOOKAHEAD_SLOTS holds entry i from
 * when it is made until it is taken; the lock guards the slots' states only.
 */
#include "run/lookahead.h"

#include <pthread.h>

#include "base/mem.h"

enum slot_state { SLOT_FREE, SLOT_READY, SLOT_FAILED };

struct slot {
	enum slot_state state;
	uint32_t entry;
	struct buf request;
};

struct lookahead {
	struct prepare_opts opts;
	const struct str *head;
	const struct plan *plan;
	const struct workload *w;
	struct slot slot[LOOKAHEAD_SLOTS];
	struct err err;
	bool is_stopped;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
};

/* Waits until entry i's slot is free; false when there is nothing left to do. */
static bool wait_free(struct lookahead *l, struct slot *s)
{
	bool is_stopped;

	pthread_mutex_lock(&l->lock);
	while (s->state != SLOT_FREE && !l->is_stopped)
		pthread_cond_wait(&l->changed, &l->lock);
	is_stopped = l->is_stopped;
	pthread_mutex_unlock(&l->lock);
	return !is_stopped;
}

static void publish(struct lookahead *l, struct slot *s, uint32_t entry, enum slot_state state)
{
	pthread_mutex_lock(&l->lock);
	s->entry = entry;
	s->state = state;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

static void *make_all(void *self)
{
	struct lookahead *l = self;
	struct encoded scratch = { 0 };
	size_t read = 0; /* since texts were last forgotten */

	for (uint32_t i = 0; i < l->plan->n; i++) {
		struct slot *s = &l->slot[i % LOOKAHEAD_SLOTS];
		struct err e = { 0 };
		enum slot_state state = SLOT_READY;

		if (!wait_free(l, s))
			break;
		if (prepare_request(&l->opts, l->head, l->plan, i, l->w, &scratch, &s->request,
				    &e) < 0) {
			if (!l->err.code) /* said once: others may be reading it */
				l->err = e;
			state = SLOT_FAILED;
		}
		read += s->request.len;
		publish(l, s, i, state); /* from here on the slot is the taker's */
		if (read > WORKLOAD_FORGET_BYTES) {
			workload_forget(l->w);
			read = 0;
		}
	}
	buf_release(&scratch.body);
	return NULL;
}

struct lookahead *lookahead_new(const struct prepare_opts *o, const struct str *head,
				const struct plan *plan, const struct workload *w,
				struct err *e)
{
	struct lookahead *l = mem_alloc(sizeof(*l));

	l->opts = *o;
	l->head = head;
	l->plan = plan;
	l->w = w;
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->changed, NULL);
	if (pthread_create(&l->thread, NULL, make_all, l) == 0)
		return l;
	err_set(e, ERR_LIMIT, "cannot start the thread that prepares requests");
	free(l);
	return NULL;
}

void lookahead_free(void *look_ahead)
{
	struct lookahead *l = look_ahead;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	l->is_stopped = true;
	pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
	pthread_join(l->thread, NULL);
	for (size_t i = 0; i < LOOKAHEAD_SLOTS; i++)
		buf_release(&l->slot[i].request);
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->changed);
	free(l);
}

int lookahead_take(void *self, uint32_t entry, struct buf *request, struct err *e)
{
	struct lookahead *l = self;
	struct slot *s = &l->slot[entry % LOOKAHEAD_SLOTS];
	int rc = 0;

	pthread_mutex_lock(&l->lock);
	while (s->state == SLOT_FREE || s->entry != entry)
		pthread_cond_wait(&l->changed, &l->lock);
	if (s->state == SLOT_FAILED) {
		*e = l->err;
		rc = -1;
	}
	pthread_mutex_unlock(&l->lock);
	/* Ours until it is published as free: nobody else takes this entry. */
	buf_add_str(request, buf_str(&s->request));
	publish(l, s, entry, SLOT_FREE);
	return rc;
}
