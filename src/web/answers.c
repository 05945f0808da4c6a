/* SPDX-License-Identifier: Apache-2.0 */
/*
 * answers.c - recent answers of analyses, so that the same question about the same data is not
 * computed again.
 *
 * The key of an answer is everything it depends on but the data version, as bytes: its route, the
 * request's body, prices and marks. Keys are compared in full, so no other answer can be mistaken
 * for it. Only answers about the newest data are kept; the least recently used one makes room. Any
 * thread may call; those that want the same answer at once wait for the first of them.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "web/api.h"
#include "web/web_internal.h"

void answers_begin(struct answers *s)
{
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->made, NULL);
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
	pthread_cond_destroy(&s->made);
}

static struct kept_answer *find(struct answers *s, struct str key)
{
	for (size_t i = 0; i < ANSWERS_KEPT_MAX; i++)
		if (s->kept[i].key.len && str_eq(buf_str(&s->kept[i].key), key))
			return &s->kept[i];
	return NULL;
}

static struct kept_answer *find_of(struct answers *s, uint64_t version, struct str key)
{
	return version == s->version ? find(s, key) : NULL;
}

static struct answer_maker *maker_of(struct answers *s, uint64_t version, struct str key)
{
	for (size_t i = 0; i < s->n_makers; i++)
		if (s->maker[i].version == version && str_eq(s->maker[i].key, key))
			return &s->maker[i];
	return NULL;
}

bool answers_get(struct answers *s, uint64_t version, struct str key, struct json_writer *w)
{
	struct kept_answer *k;

	assert(key.n > 0);
	pthread_mutex_lock(&s->lock);
	k = find_of(s, version, key);
	if (!k && maker_of(s, version, key)) {
		while (maker_of(s, version, key))
			pthread_cond_wait(&s->made, &s->lock);
		k = find_of(s, version, key); /* NULL: not kept, so everyone makes their own */
	} else if (!k && s->n_makers < ANSWER_MAKERS_MAX) {
		s->maker[s->n_makers++] = (struct answer_maker){ version, key };
	}
	if (k) {
		k->used = ++s->uses;
		json_put_members_raw(w, buf_str(&k->members));
	}
	pthread_mutex_unlock(&s->lock);
	return k;
}

/* The least recently used one; there is at least one. */
static struct kept_answer *oldest(struct answers *s)
{
	struct kept_answer *out = NULL;

	for (size_t i = 0; i < ANSWERS_KEPT_MAX; i++)
		if (s->kept[i].key.len && (!out || s->kept[i].used < out->used))
			out = &s->kept[i];
	assert(out);
	return out;
}

void answers_put(struct answers *s, uint64_t version, struct str key, struct str members)
{
	struct kept_answer *k;

	assert(key.n > 0 && members.n > 0);
	if (key.n > ANSWER_KEY_BYTES_MAX || members.n > ANSWER_KEPT_BYTES_MAX)
		return;
	pthread_mutex_lock(&s->lock);
	if (version > s->version) {
		for (size_t i = 0; i < ANSWERS_KEPT_MAX; i++)
			drop(s, &s->kept[i]);
		s->version = version;
	}
	if (version == s->version && !find(s, key)) {
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

void answers_end(struct answers *s, uint64_t version, struct str key)
{
	struct answer_maker *m;

	pthread_mutex_lock(&s->lock);
	m = maker_of(s, version, key);
	if (m) {
		*m = s->maker[--s->n_makers];
		pthread_cond_broadcast(&s->made);
	}
	pthread_mutex_unlock(&s->lock);
}

/* ---- before the first request ---- */

/*
 * Three looks of the store at what others have changed (upload.c): while runs come in, each look
 * finds some, and what is asked now is of use until the next one only.
 */
#define SETTLED_NS 3000000000

/* The result is in the kept answers, or in those that the index keeps. */
static void ask(struct web *w, const char *method, const char *path, const char *query)
{
	struct arena a = { 0 };
	struct json_value empty = { .kind = JSON_OBJECT };
	struct web_request r = { .web = w, .store = w->store, .arena = &a, .method = method,
				 .path = str_of(path), .query = str_of(query) };
	struct web_answer answer = { .fd = -1 };
	struct route_found found = { 0 };
	struct err e = { 0 };

	routes_find(r.path, method, &a, &found);
	assert(found.route && !(found.route->flags & ROUTE_CHANGES));
	r.route = found.route;
	r.body = strcmp(method, "POST") ? NULL : &empty;
	r.view = store_view(w->store);
	answer.json = json_writer(&answer.body);
	answer.json.is_compact = answer.json.is_raw_utf8 = true;
	json_begin_object(&answer.json);
	found.route->handle(&r, &answer, &e);
	index_view_release(r.view);
	buf_release(&answer.body);
	arena_release(&a);
}

void answers_prepare(struct web *w)
{
	struct prepared *p = &w->prepared;
	struct index_view *v = store_view(w->store);
	uint64_t version = index_view_version(v);
	int64_t now = clock_mono_ns();
	bool is_start = !p->seen_ns;

	index_view_release(v);
	if (version != p->seen || is_start) {
		p->seen = version;
		p->seen_ns = now;
	}
	if (!is_start && (version == p->version || now - p->seen_ns < SETTLED_NS))
		return;
	p->version = version;
	ask(w, "POST", "/api/analysis/overview", "");
	ask(w, "GET", "/api/filters/options", "facet_values=20");
}
