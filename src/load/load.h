/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load/load.h - the driver: walks a plan on its loops and appends to a record.
 *
 * Admission is strict FIFO over the roots of the plan, as vLLM's semaphore is:
 * an entry is taken when it is due and a slot under the cap is free. Two
 * atomics (next entry, in flight) are all that loops share; a loop that frees
 * a slot claims the next due entry itself. Successors run on their parent's
 * loop.
 *
 * Not here: what a body means (endpoint/), how bytes travel (transport.h), what
 * the numbers mean (metrics/).
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/limits.h"
#include "data/workload.h"
#include "endpoint/endpoint.h"
#include "load/transport.h"
#include "plan/plan.h"
#include "record/record.h"

/* Requests, serialised before the clock starts. */
struct prepared {
	struct str *request;               /* one per plan entry: every byte of it */
	uint32_t n;
	struct arena arena;
	/*
	 * Requests that depend on an answer: called when entry (whose prepared request
	 * is empty) becomes due, with the row of its parent (NULL for roots) and the
	 * parent's answer text as the record keeps it; fills the request, or fails the
	 * entry. On the loop's thread; NULL when no entry needs it.
	 */
	int (*build)(void *self, uint32_t entry, const struct request_row *parent,
		     struct str answer, struct buf *request, struct err *e);
	void *build_self;
};

struct load_opts {
	const struct transport *transport;
	struct transport_opts net;
	const struct endpoint *endpoint;
	const struct workload *workload; /* what entries' samples index; may be NULL */
	unsigned threads;
	uint32_t first_shard;       /* loops write shards from here: two runs can share a record */
	uint32_t max_concurrency;   /* 0: no cap */
	enum request_phase phase;
	bool is_user_stamps;        /* --timestamps user: metrics see user-space stamps */
	bool is_role_chunk_skipped; /* --compat role-chunk */
	bool is_stream_error_ignored; /* --compat stream-error */
	bool is_usage_with_choices; /* --fix usage: counts in events that also carry choices */
	int64_t deadline_ns;        /* stop admitting and cancel after this long; 0: none */
	/* Called on the caller's thread about five times a second; NULL: not. */
	void (*tick)(void *self);
	void *tick_self;
};

/* Counters a progress bar may read at any time; one lane per loop, each with a single writer. */
struct load_lane {
	_Atomic uint64_t tokens;
	_Atomic uint32_t admitted, done, failed;
	char pad[44]; /* lanes of two loops lie a cache line apart */
};
struct load_progress { struct load_lane lane[THREADS_MAX]; };
struct load_totals { uint64_t tokens; uint32_t admitted, done, failed; };
struct load_totals load_progress_total(const struct load_progress *p);

/* What the driver saw of itself, over all loops. */
struct load_stats {
	struct transport_stats net;
	int64_t wall_ns, cpu_ns;    /* cpu: sum over loops, from the start of the clock */
	int64_t cpu_ns_max;         /* the busiest loop's */
	unsigned threads;
	uint64_t reads_shared;      /* reads that held more than one event of a stream */
	bool is_kernel_stamped;
};

/*
 * Runs the whole plan; returns when every request ended or cancel is set (then
 * requests in flight are cancelled and recorded). Row first_row + i is entry i.
 * record->start_ns/stop_ns are set when phase is PHASE_MAIN. -1 only when load
 * could not start (resolve, TLS set-up, descriptors); failures of requests are
 * facts in the record.
 */
int load_run(const struct load_opts *o, const struct plan *plan, const struct prepared *prepared,
	     struct record *record, uint32_t first_row, struct load_progress *progress,
	     struct load_stats *stats, const atomic_bool *cancel, struct err *e);
