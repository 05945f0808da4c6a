/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.c - answers to analyses that were asked lately, so that the same question about the same
 * data is not computed again.
 *
 * An answer belongs to everything it depends on: its route, the data version, the request's body,
 * prices and marks. These are its key, as bytes, and are compared whole: no other answer can be
 * mistaken for it. The one that was not asked for longest makes room. Any thread may call.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "web/api.h"
#include "web/web_internal.h"

void answers_begin(struct answers *s)
{
	pthread_mutex_init(&s->lock, NULL);
}

static void drop(struct answers *s, struct kept_answer *k)
{
	s->n -= k->key.len > 0;
	s->bytes -= k->key.len + k->members.len;
	buf_release(&k->key);
	buf_release(&k->members);
	*k = (struct kept_answer){ 0 };
}

void answers_release(struct answers *s)
{
	for (size_t i = 0; i < ANSWERS_KEPT_MAX; i++)
		drop(s, &s->kept[i]);
	pthread_mutex_destroy(&s->lock);
}

static struct kept_answer *find(struct answers *s, struct str key)
{
	for (size_t i = 0; i < ANSWERS_KEPT_MAX; i++)
		if (s->kept[i].key.len && str_eq(buf_str(&s->kept[i].key), key))
			return &s->kept[i];
	return NULL;
}

bool answers_get(struct answers *s, struct str key, struct json_writer *w)
{
	struct kept_answer *k;

	assert(key.n > 0);
	pthread_mutex_lock(&s->lock);
	k = find(s, key);
	if (k) {
		k->used = ++s->uses;
		json_put_members_raw(w, buf_str(&k->members));
	}
	pthread_mutex_unlock(&s->lock);
	return k;
}

/* The one that was asked for longest ago; there is one. */
static struct kept_answer *oldest(struct answers *s)
{
	struct kept_answer *out = NULL;

	for (size_t i = 0; i < ANSWERS_KEPT_MAX; i++)
		if (s->kept[i].key.len && (!out || s->kept[i].used < out->used))
			out = &s->kept[i];
	assert(out);
	return out;
}

void answers_put(struct answers *s, struct str key, struct str members)
{
	struct kept_answer *k;

	assert(key.n > 0 && members.n > 0);
	if (key.n > ANSWER_KEY_BYTES_MAX || members.n > ANSWER_KEPT_BYTES_MAX)
		return;
	pthread_mutex_lock(&s->lock);
	if (!find(s, key)) {
		while (s->n == ANSWERS_KEPT_MAX ||
		       s->bytes + key.n + members.n > ANSWERS_KEPT_BYTES_MAX)
			drop(s, oldest(s));
		for (k = s->kept; k->key.len; k++)
			assert(k + 1 < s->kept + ANSWERS_KEPT_MAX);
		s->n++;
		buf_add_str(&k->key, key);
		buf_add_str(&k->members, members);
		k->used = ++s->uses;
		s->bytes += k->key.len + k->members.len;
	}
	pthread_mutex_unlock(&s->lock);
}
