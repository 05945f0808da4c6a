/* SPDX-License-Identifier: Apache-2.0 */
/* trickle.c - see trickle.h. */
#include "sim/trickle.h"

#include <assert.h>

#include "base/clock.h"
#include "sim/server.h"

static void on_time(struct timer *timer);

static void arm(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;

	loop_timer_set(c->sim->loop, &k->timer,
		       k->from_ns + k->length_ns * k->piece / TRICKLE_PIECES);
}

/* The bytes up to the end of the current piece. */
static void piece_send(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;
	size_t end = k->piece < TRICKLE_PIECES ? k->slow * (k->piece + 1) / (TRICKLE_PIECES + 1) :
		     k->bytes.len;

	if (end > k->sent)
		conn_write(c, (struct str){ k->bytes.data + k->sent, end - k->sent });
	k->sent = end;
}

void trickle_start(struct conn *c, struct str bytes, size_t slow, int64_t length_ns)
{
	struct trickle *k = &c->stream.trickle;

	assert(length_ns > 0 && slow >= 1 && slow <= bytes.n);
	buf_reset(&k->bytes);
	buf_add_str(&k->bytes, bytes);
	k->sent = 0;
	k->slow = slow;
	k->piece = 0;
	k->from_ns = clock_mono_ns();
	k->length_ns = length_ns;
	k->timer.on_time = on_time;
	piece_send(c);
	k->piece = 1;
	arm(c);
}

void trickle_cancel(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;

	loop_timer_cancel(c->sim->loop, &k->timer);
	k->length_ns = 0;
	buf_reset(&k->bytes);
}

void trickle_finish(struct conn *c)
{
	struct trickle *k = &c->stream.trickle;

	if (k->length_ns == 0)
		return;
	k->piece = TRICKLE_PIECES;
	piece_send(c);
	trickle_cancel(c);
}

static void on_time(struct timer *timer)
{
	struct conn *c = (struct conn *)((char *)timer -
					 offsetof(struct conn, stream.trickle.timer));
	struct trickle *k = &c->stream.trickle;

	if (k->piece < TRICKLE_PIECES) {
		piece_send(c);
		k->piece++;
		if (!c->is_broken)
			arm(c);
	} else {
		answer_trickled(c);
	}
	conn_settle(c);
}
