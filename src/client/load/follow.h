/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - what follows a request: its successors in the plan, the same request again, or the
 * entry that a closed loop picks. Private to load/.
 *
 * Entries that wait for their due time are in a heap per loop. A successor that waits for several
 * entries has a counter, which several loops may count down; the last one starts it and sees the
 * answers of the others (acquire and release).
 */
#pragma once
#include "client/load/flight.h"

/* Edges and counters of the plan, session slots, and the first picks of the clients. */
void follow_init(struct driver *d);
void follow_release(struct driver *d);

/*
 * Queues what follows a request that has ended; its row is complete except for its state. True: the
 * same request is sent again, its row was emptied and it has not ended yet.
 */
bool follow_ended(struct flight *f);

/* The earliest pending entry; NULL: none. */
const struct pending *follow_first(const struct worker *w);
struct pending follow_take(struct worker *w);
