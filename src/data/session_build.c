/* SPDX-License-Identifier: Apache-2.0 */
/* session_build.c - see session_build.h. */
#include "data/session_build.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

static void *grow(void *items, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return items;
	*cap = *cap ? *cap * 2 : 256;
	return mem_grow(items, *cap, size);
}

void session_begin(struct session_build *b, struct str id)
{
	b->session = grow(b->session, b->n_sessions, &b->cap_sessions, sizeof(*b->session));
	b->session[b->n_sessions++] = (struct session){ .id = id, .first = (uint32_t)b->n_turns };
}

struct turn *session_add_turn(struct session_build *b, uint32_t history)
{
	struct turn *t;

	assert(b->n_sessions && (history == TURN_NONE || history < b->n_turns));
	assert(history == TURN_NONE || b->turn[history].number < UINT16_MAX);
	b->turn = grow(b->turn, b->n_turns, &b->cap_turns, sizeof(*b->turn));
	t = &b->turn[b->n_turns++];
	*t = (struct turn){
		.session = (uint32_t)(b->n_sessions - 1), .history = history,
		.wait = (uint32_t)b->n_waits,
	};
	if (history != TURN_NONE)
		t->number = b->turn[history].number + 1;
	b->session[b->n_sessions - 1].n++;
	return t;
}

void session_wait_for(struct session_build *b, uint32_t turn)
{
	struct turn *t = &b->turn[b->n_turns - 1];

	assert(turn < b->n_turns - 1 && b->turn[turn].session == t->session);
	for (uint32_t k = 0; k < t->n_waits; k++)
		if (b->waits[t->wait + k] == turn)
			return;
	b->waits = grow(b->waits, b->n_waits, &b->cap_waits, sizeof(*b->waits));
	b->waits[b->n_waits++] = turn;
	t->n_waits++;
}

static void *keep(struct workload *w, const void *items, size_t n, size_t size)
{
	void *kept = arena_alloc(&w->arena, n * size + 1);

	if (n)
		memcpy(kept, items, n * size);
	return kept;
}

void session_finish(struct session_build *b, struct workload *w)
{
	struct sessions *s = arena_alloc(&w->arena, sizeof(*s));

	assert(b->n_turns == w->n && !w->sessions);
	*s = (struct sessions){
		.turn = keep(w, b->turn, b->n_turns, sizeof(*b->turn)),
		.waits = keep(w, b->waits, b->n_waits, sizeof(*b->waits)),
		.session = keep(w, b->session, b->n_sessions, sizeof(*b->session)),
		.n_turns = b->n_turns, .n_waits = b->n_waits, .n_sessions = b->n_sessions,
	};
	w->sessions = s;
	session_build_release(b);
}

void session_build_release(struct session_build *b)
{
	free(b->turn);
	free(b->waits);
	free(b->session);
	*b = (struct session_build){ 0 };
}
