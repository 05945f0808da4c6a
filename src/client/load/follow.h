/* SPDX-License-Identifier: Apache-2.0 */
/*
 * follow.h - what follows a request: its successors in the plan, the same request
 * again, or what a closed loop picks. Private to load/.
 *
 * What waits for its time is in a heap of each loop. A successor that waits for several entries
 * has a counter, which may be counted down by several loops; the last one starts it, and the
 * answers of the others are visible to it (acquire and release).
 */
#pragma once
#include "client/load/flight.h"

/* Edges and counters of the plan, session slots, and the first picks of the clients. */
void follow_init(struct driver *d);
void follow_release(struct driver *d);

/*
 * A request has ended; its row is complete except for its state. Queues what follows. True: it
 * is the same request again, whose row was emptied: it has not ended yet.
 */
bool follow_ended(struct flight *f);

/* The earliest that waits: NULL when none does. */
const struct pending *follow_first(const struct worker *w);
struct pending follow_take(struct worker *w);
