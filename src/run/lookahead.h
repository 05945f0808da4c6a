/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/lookahead.h - bodies of sets too large to hold twice: one thread
 * serialises them in plan order into a ring, a bounded number ahead; the loop
 * that admits an entry takes its bytes out.
 *
 * Entries are taken once each, nearly in order (several loops may overtake each
 * other by a few). A taker waits only when the thread has fallen behind, and its loop reads no
 * socket meanwhile: kernel stamps stay right, more events share a read, and the wait is
 * send lag of that request, which the verdict judges.
 */
#pragma once
#include "run/prepare.h"

#define LOOKAHEAD_SLOTS 1024

struct lookahead;
/* head: one per base URL, borrowed as plan and workload are. */
struct lookahead *lookahead_new(const struct prepare_opts *o, const struct str *head,
				const struct plan *plan, const struct workload *w,
				struct err *e);
void lookahead_free(void *look_ahead); /* NULL: nothing */
/* The build hook of struct prepared: self is the look-ahead. */
int lookahead_take(void *self, uint32_t entry, struct buf *request, struct err *e);
