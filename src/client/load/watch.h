/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch.h - flights of requests that another program sends: they are observed, not started.
 *
 * What is seen of a request and its answer is reported to the exchange's sink as a transport would
 * do it (transport.h), and becomes the same columns, gaps and marks: flight.c does not know the
 * difference. One watch per API; several may write to the one shard of a record, on one thread.
 */
#pragma once
#include "client/load/load.h"

struct watch;

/* Writes shard 0 of the record. NULL: out of memory (e). */
struct watch *watch_new(const struct endpoint *endpoint, struct record *record, struct err *e);
/* Accepts NULL; every exchange must have ended. */
void watch_free(struct watch *w);

/*
 * The flight of a request that was sent at sent_ns; row is a waiting row of the record, which must
 * not move until it has ended. *ended is set to NULL when the flight ends by itself (an answer that
 * exceeds a limit): nothing more may be reported then. NULL: OBSERVED_FLIGHTS_MAX is reached.
 */
struct exchange *watch_flight(struct watch *w, struct request_row *row, int64_t sent_ns,
			     struct exchange **ended);
/* Token events of all flights; each has the stamp of its own packet. */
uint64_t watch_events(const struct watch *w);
