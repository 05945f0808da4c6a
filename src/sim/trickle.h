/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trickle.h - bytes that go out little by little: a slow response head, or a
 * slow body.
 *
 * The slow part is cut into TRICKLE_PIECES, the last of which goes out when its
 * time is over, together with all that follows. Then, or when trickle_finish is
 * called before, the owner is told once.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "net/loop.h"

#define TRICKLE_PIECES 16

struct conn;

/* A zeroed struct is an idle one. */
struct trickle {
	struct buf bytes;
	size_t sent, slow;      /* bytes out so far; bytes that are slow */
	int64_t from_ns, length_ns; /* monotonic; length 0: idle */
	uint32_t piece;
	struct timer timer;
};

/* The first piece goes out at once. slow: how many of the bytes are slow, at least 1. */
void trickle_start(struct conn *c, struct str bytes, size_t slow, int64_t length_ns);
/* Sends the rest now; no effect when idle. Tells nobody. */
void trickle_finish(struct conn *c);
void trickle_cancel(struct conn *c);
