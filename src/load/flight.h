/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load/flight.h - one request in flight, and the worker it belongs to. Private
 * to load/.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "base/slab.h"
#include "http/lines.h"
#include "http/sse.h"
#include "load/load.h"

/* A successor whose parent has ended; due at due_mono_ns. */
struct pending {
	int64_t due_mono_ns;
	uint32_t entry;
	struct str answer; /* heap; the parent's raw answer text */
	bool has_slot;     /* the parent's, held through the think time */
};

struct flight {
	struct exchange x; /* first: the sink gets back to us from it */
	struct worker *worker;
	struct request_row *row;
	struct flight *next_free;
	struct flight *give_up_prev, *give_up_next; /* the worker's list of those to give up */
	int64_t give_up_mono_ns; /* 0: not on it */
	struct sse sse;
	struct lines lines;    /* of an API that sends lines instead of events */
	size_t text_seen;      /* bytes of an answer whose events have the whole of it */
	uint64_t text_bytes;   /* of all text of the answer so far, escaped */
	uint64_t held_bytes;   /* memory of sse and lines, as the worker counts it */
	char *built;           /* a body built on demand; NULL otherwise */
	int64_t last_ns;       /* stamp of the last token event; sent_ns before the first */
	int64_t read_user_ns;  /* user stamp of the read that brought the last token event */
	uint32_t entry;
	uint32_t n_decoded;    /* events and lines, whatever they carry */
	uint32_t running_tokens; /* the last running count of tokens, from usage */
	uint32_t head_bytes;     /* of an answer that is gathered whole: its head comes first */
	int64_t body_ns;         /* stamp of the last read of such an answer */
	bool is_live, is_event_stream, is_odd_type, is_failed, gives_up;
	bool is_cut;           /* it failed by a limit: nothing more of its answer is read */
};

struct worker {
	struct driver *driver;
	void *transport;
	struct record_shard *shard;
	struct load_lane *lane;
	struct slab flights;
	struct flight *free_flights;
	struct pending *pending; /* sorted by due time */
	size_t n_pending, pending_cap;
	struct buf built;        /* bodies built on demand are copied from here */
	uint64_t held_bytes;     /* of all its flights */
	struct flight *give_up_first, *give_up_last; /* in order of time */
	int64_t next_due_real_ns; /* a read stamped later than this admits before it returns */
	uint32_t n_live;
	uint16_t shard_index;
	bool is_cancelled;
	atomic_bool is_waiting;  /* successors wait here, perhaps for a slot */
	struct load_stats stats;
	pthread_t thread;
};

struct driver {
	const struct load_opts *opts;
	const struct plan *plan;
	const struct prepared *prepared;
	struct record *record;
	uint32_t first_row;
	const atomic_bool *cancel;
	uint32_t *child, *sibling; /* successors; NULL when the plan has none */
	struct worker *worker;
	unsigned n_workers;
	int64_t start_mono_ns, start_real_ns;
	_Alignas(64) atomic_uint next;
	_Alignas(64) atomic_uint in_flight;
	atomic_bool stop;
	enum load_end end;       /* why; written by who set stop */
	_Alignas(64) atomic_uint n_failed; /* with a limit of failures only */
	atomic_uint refused_status, n_refused; /* of the first REFUSED_FIRST entries */
	atomic_uint live[ENDPOINTS_MAX];   /* per URL, with is_least_loaded only */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	unsigned n_ready, n_running;
	bool is_started;
};

/*
 * Starts what is due and has a slot, steps requests at most; returns when to call
 * again (CLOCK_MONOTONIC, INT64_MAX). Between two reads one step is enough: more
 * would let a herd keep answers unread until their stamps run together.
 */
int64_t worker_admit(struct worker *w, int steps);
/* A request failed: is that one too many? */
void worker_failed(struct worker *w, const struct flight *f);
/* A request gave its slot under the cap back. */
void worker_free_slot(struct worker *w);
/* Puts an admitted entry on the wire. answer: the parent's, for bodies built on demand. */
void flight_start(struct worker *w, uint32_t entry, int64_t due_mono_ns, struct str answer);
void flight_cancel_all(struct worker *w);
/* Cancels those whose time to be given up has come. */
void flight_give_up(struct worker *w, int64_t now_mono);
void flight_release(struct flight *f);
