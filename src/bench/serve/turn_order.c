/* SPDX-License-Identifier: Apache-2.0 */
/* turn_order.c - see turn_order.h. */
#include "bench/serve/turn_order.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/rng/rng.h"

#define RETRY_S 1.0       /* before the first retry; doubled before each further one */
#define RETRY_JITTER 0.1  /* of it, to either side */

struct turn_client {
	struct pyrandom py;
	struct legacy np;
	/*
	 * Active conversations that wait for their turn. Round robin takes from the right end and
	 * puts back at the left one; a random choice keeps their order.
	 */
	uint32_t *waiting;
	uint32_t n_waiting, active_max;
	uint32_t requests_max, sent; /* requests_max 0: no limit */
	uint32_t current, at;        /* the conversation in flight, and where it waits (random) */
	uint32_t attempt;
	double pause_s;
	bool is_busy, is_retrying, is_done;
};

struct turn_order {
	struct turn_order_opts o;
	const uint32_t *n_turns;
	uint32_t *queue;
	size_t n, n_queue, next; /* conversations; the queue's length; its head */
	uint32_t *done;          /* turns answered, for each conversation */
	uint8_t *fate;           /* enum turn_fate */
	uint32_t *finished;
	size_t n_finished;
	struct turn_client *client;
	bool is_stopped;
};

uint32_t turn_order_share(uint32_t total, uint32_t clients, uint32_t client, bool loses_remainder)
{
	assert(client < clients);
	return total / clients + (!loses_remainder && client < total % clients);
}

struct turn_order *turn_order_new(const struct turn_order_opts *o, const uint32_t *n_turns,
				  size_t n, const uint32_t *queue, size_t n_queue)
{
	struct turn_order *t = mem_alloc(sizeof(*t));

	assert(o->clients >= 1 && o->active_max >= o->clients);
	assert(!o->requests_max || o->requests_max >= o->clients);
	*t = (struct turn_order){ .o = *o, .n_turns = n_turns, .n = n,
				  .n_queue = queue ? n_queue : n };
	t->queue = mem_array(t->n_queue + 1, sizeof(*t->queue));
	for (size_t i = 0; i < t->n_queue; i++) {
		t->queue[i] = queue ? queue[i] : (uint32_t)i;
		assert(t->queue[i] < n);
	}
	t->done = mem_array(n + 1, sizeof(*t->done));
	t->fate = mem_array(n + 1, sizeof(*t->fate));
	t->finished = mem_array(n + 1, sizeof(*t->finished));
	t->client = mem_array(o->clients, sizeof(*t->client));
	for (uint32_t i = 0; i < o->clients; i++) {
		struct turn_client *c = &t->client[i];

		pyrandom_seed(&c->py, (int64_t)o->seed + i + 1);
		legacy_seed(&c->np, o->seed + i + 1);
		c->active_max = turn_order_share(o->active_max, o->clients, i, o->abandons);
		c->requests_max = turn_order_share(o->requests_max, o->clients, i, o->abandons);
		c->waiting = mem_array(c->active_max, sizeof(*c->waiting));
	}
	return t;
}

void turn_order_free(struct turn_order *t)
{
	if (!t)
		return;
	for (uint32_t i = 0; i < t->o.clients; i++)
		free(t->client[i].waiting);
	free(t->client);
	free(t->queue);
	free(t->done);
	free(t->fate);
	free(t->finished);
	free(t);
}

/* Takes from the queue until the client has its maximum of active ones; false: it is empty. */
static bool refill(struct turn_order *t, struct turn_client *c)
{
	while (c->n_waiting < c->active_max) {
		uint32_t taken;

		if (t->next == t->n_queue)
			return false;
		taken = t->queue[t->next++];
		assert(t->fate[taken] == TURN_QUEUED);
		t->done[taken] = t->o.skips_first;
		if (t->done[taken] >= t->n_turns[taken]) {
			t->fate[taken] = TURN_SKIPPED;
			continue;
		}
		t->fate[taken] = TURN_ACTIVE;
		c->waiting[c->n_waiting++] = taken;
	}
	return true;
}

static void remove_at(struct turn_client *c, uint32_t at)
{
	assert(at < c->n_waiting);
	c->n_waiting--;
	memmove(c->waiting + at, c->waiting + at + 1,
		(c->n_waiting - at) * sizeof(*c->waiting));
}

/* False: the client leaves. */
static bool choose(struct turn_order *t, struct turn_client *c)
{
	bool is_filled;

	if (t->is_stopped || (c->requests_max && c->sent == c->requests_max))
		return false;
	is_filled = refill(t, c);
	if (c->n_waiting == 0 || (!is_filled && t->o.abandons))
		return false;
	c->at = t->o.sampling == TURN_RANDOM
		? (uint32_t)pyrandom_choice(&c->py, c->n_waiting) : c->n_waiting - 1;
	c->current = c->waiting[c->at];
	c->attempt = 0;
	return true;
}

bool turn_order_next(struct turn_order *t, uint32_t client, struct turn_next *out)
{
	struct turn_client *c = &t->client[client];

	assert(client < t->o.clients && !c->is_busy);
	if (!c->is_done && !c->is_retrying)
		c->is_done = !choose(t, c);
	if (c->is_done) {
		t->is_stopped = t->is_stopped || t->o.stops_early;
		return false;
	}
	c->is_busy = true;
	c->is_retrying = false;
	*out = (struct turn_next){ .conversation = c->current, .turn = t->done[c->current],
				   .attempt = c->attempt, .pause_s = c->pause_s };
	c->pause_s = 0;
	return true;
}

/* 1 s, 2 s, 4 s, each a tenth more or less. */
static double retry_pause_s(struct turn_client *c)
{
	double jitter = -RETRY_JITTER + 2 * RETRY_JITTER * legacy_double(&c->np);

	return ldexp(RETRY_S, (int)c->attempt) * (1 + jitter);
}

static void answered(struct turn_order *t, struct turn_client *c)
{
	uint32_t done = ++t->done[c->current], messages_max = t->o.messages_max;

	remove_at(c, c->at);
	if (done >= t->n_turns[c->current] ||
	    (messages_max && 2 * (uint64_t)done >= messages_max)) {
		t->fate[c->current] = TURN_FINISHED;
		t->finished[t->n_finished++] = c->current;
		return;
	}
	/* A random choice keeps their order; round robin puts it at the left. */
	if (t->o.sampling == TURN_ROUND_ROBIN)
		c->at = 0;
	memmove(c->waiting + c->at + 1, c->waiting + c->at,
		(c->n_waiting - c->at) * sizeof(*c->waiting));
	c->waiting[c->at] = c->current;
	c->n_waiting++;
}

void turn_order_ended(struct turn_order *t, uint32_t client, enum turn_end how)
{
	struct turn_client *c = &t->client[client];

	assert(client < t->o.clients && c->is_busy);
	c->is_busy = false;
	if (how != TURN_ANSWERED && c->attempt < t->o.retries_max) {
		c->pause_s = retry_pause_s(c);
		c->attempt++;
		c->is_retrying = true;
		return;
	}
	c->sent++;
	if (how == TURN_ANSWERED) {
		answered(t, c);
	} else {
		remove_at(c, c->at);
		t->fate[c->current] = TURN_DROPPED;
		c->is_done = how == TURN_WRONG || (how == TURN_RAISED && t->o.abandons);
	}
	if (t->o.request_rate > 0 && !c->is_done)
		c->pause_s = 1 / t->o.request_rate * legacy_standard_exponential(&c->np);
}

enum turn_fate turn_order_fate(const struct turn_order *t, uint32_t conversation)
{
	assert(conversation < t->n);
	return (enum turn_fate)t->fate[conversation];
}

const uint32_t *turn_order_finished(const struct turn_order *t, size_t *n)
{
	*n = t->n_finished;
	return t->finished;
}

uint32_t turn_order_sent(const struct turn_order *t)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < t->o.clients; i++)
		n += t->client[i].sent;
	return n;
}
