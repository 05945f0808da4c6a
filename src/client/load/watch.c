/* SPDX-License-Identifier: Apache-2.0 */
/* watch.c - see watch.h. A driver with one worker, no plan and no loop. */
#include "client/load/watch.h"

#include <assert.h>

#include "client/load/flight.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

struct watch {
	struct driver driver;
	struct worker worker;
	struct load_opts opts;
	struct prepared prepared;
	struct load_lane lane;
	struct transport transport;
	size_t flights_max;
};

/* An answer that passed a limit: its owner forgets it. */
static void cancel(void *self, struct exchange *x)
{
	struct exchange **owner = x->connection;

	(void)self;
	*owner = NULL;
	x->sink->on_end(x, FAIL_CANCELLED, "", ((struct flight *)x)->last_ns);
}

struct watch *watch_new(const struct endpoint *endpoint, struct record *record, struct err *e)
{
	struct watch *w = mem_alloc(sizeof(*w));

	assert(record->n_shards > 0);
	w->transport = (struct transport){ .name = "capture", .cancel = cancel };
	w->opts.transport = &w->transport;
	w->opts.endpoint = endpoint;
	w->opts.is_usage_with_choices = true;
	w->driver.opts = &w->opts;
	w->driver.prepared = &w->prepared;
	w->driver.record = record;
	w->driver.worker = &w->worker;
	w->driver.n_workers = 1;
	w->driver.stop = true; /* nothing is ever due */
	w->worker.driver = &w->driver;
	w->worker.shard = &record->shard[0];
	w->worker.lane = &w->lane;
	w->flights_max = record->rows_cap < OBSERVED_FLIGHTS_MAX ? record->rows_cap
								 : OBSERVED_FLIGHTS_MAX;
	if (slab_init(&w->worker.flights, sizeof(struct flight), w->flights_max, e) < 0) {
		free(w);
		return NULL;
	}
	return w;
}

void watch_free(struct watch *w)
{
	if (!w)
		return;
	assert(w->worker.n_live == 0);
	for (size_t i = 0; i < w->worker.flights.count; i++)
		flight_release(slab_at(&w->worker.flights, i));
	slab_release(&w->worker.flights);
	free(w);
}

struct exchange *watch_flight(struct watch *w, struct request_row *row, int64_t sent_ns,
			     struct exchange **ended)
{
	struct flight *f;

	if (w->worker.n_live == w->flights_max)
		return NULL;
	assert(row->state == REQ_WAITING);
	row->due_ns = row->admitted_ns = sent_ns;
	atomic_fetch_add(&w->driver.in_flight, 1);
	f = flight_watch(&w->worker, row);
	f->x.connection = ended;
	f->x.is_segment_stamp = true;
	f->x.attempts = 1;
	f->x.sink->on_send(&f->x, sent_ns);
	return &f->x;
}

uint64_t watch_events(const struct watch *w)
{
	return w->worker.stats.events_by_segment;
}
