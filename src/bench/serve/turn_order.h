/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_order.h - which conversation continues next: the order of requests of vLLM's multi-turn
 * script, as a state machine without I/O.
 *
 * Clients share one queue of conversations. Each has some of them active, one request in flight,
 * and chooses after every answer which of its active conversations continues. With one client the
 * order is a function of the options; with several, which client takes which conversation depends
 * on how fast they are answered.
 *
 *   struct turn_next next;
 *
 *   while (turn_order_next(order, client, &next)) {
 *           ... next.pause_s later send turn next.turn of next.conversation ...
 *           turn_order_ended(order, client, TURN_ANSWERED);
 *   }
 *
 * Draws: client i has Python's and NumPy's generators, seeded with seed + i + 1. A random choice
 * takes from the first; pauses and the jitter of retries take from the second. All are upstream's,
 * draw for draw.
 *
 * Turns count user messages, from 0. Not thread-safe: callers in several loops need a lock.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum turn_sampling { TURN_ROUND_ROBIN, TURN_RANDOM };

struct turn_order_opts {
	uint32_t clients;           /* at least 1 */
	uint32_t active_max;        /* of all clients together; at least one each */
	uint32_t requests_max;      /* of all clients together; at least one each; 0: no limit */
	uint32_t messages_max;      /* of a conversation, --max-turns; 0: no limit */
	uint32_t retries_max;
	uint32_t seed;
	enum turn_sampling sampling;
	double request_rate;        /* of each client, per second; 0: no pauses */
	bool skips_first;           /* turn 0 has been answered before: the warm-up sent it */
	bool stops_early;           /* the first client that is done ends all */
	/*
	 * As upstream: active conversations are abandoned when the queue is empty, an attempt that
	 * raised ends its client, and remainders of active_max and requests_max are lost.
	 */
	bool abandons;
};

/*
 * How a request ended. Upstream's client survives a status, and does not survive the others; in
 * our mode only a wrong answer (--verify-output=stop) ends it.
 */
enum turn_end { TURN_ANSWERED, TURN_REFUSED, TURN_RAISED, TURN_WRONG };

struct turn_next {
	uint32_t conversation; /* an element of the queue */
	uint32_t turn;
	uint32_t attempt;      /* from 0 */
	double pause_s;        /* before it is sent */
};

/* What happened to the conversations. */
enum turn_fate {
	TURN_QUEUED,     /* no client took it */
	TURN_SKIPPED,    /* the warm-up sent all it has */
	TURN_ACTIVE,     /* begun, and left when its client was done */
	TURN_FINISHED,
	TURN_DROPPED,    /* one of its turns failed */
};

struct turn_order;

/*
 * n conversations; n_turns[i] user messages each. queue: the order in which they are taken, of
 * n_queue of them; NULL: all, in order.
 */
struct turn_order *turn_order_new(const struct turn_order_opts *o, const uint32_t *n_turns,
				  size_t n, const uint32_t *queue, size_t n_queue);
void turn_order_free(struct turn_order *t);

/* The client's next request; false: it is done. Not while its request is in flight. */
bool turn_order_next(struct turn_order *t, uint32_t client, struct turn_next *out);
/* The request that turn_order_next() returned has ended. */
void turn_order_ended(struct turn_order *t, uint32_t client, enum turn_end how);

enum turn_fate turn_order_fate(const struct turn_order *t, uint32_t conversation);
/* Conversations in the order in which they finished. */
const uint32_t *turn_order_finished(const struct turn_order *t, size_t *n);
uint32_t turn_order_sent(const struct turn_order *t); /* requests, retries left out */

/* A client's share of a number that is divided among all; upstream loses the remainder. */
uint32_t turn_order_share(uint32_t total, uint32_t clients, uint32_t client, bool loses_remainder);
