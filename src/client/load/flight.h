/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flight.h - one request in flight, and the worker it belongs to. Private
 * to load/.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>

#include "client/http/lines.h"
#include "client/http/sse.h"
#include "client/load/load.h"
#include "core/base/mem.h"

/* What follows a request that has ended (load/follow.h), due at due_mono_ns. */
struct pending {
	int64_t due_mono_ns;
	uint32_t order;    /* of two that are due together the one queued first */
	uint32_t entry;
	uint32_t client;   /* of a closed loop, or PLAN_NONE */
	uint32_t n_retries; /* attempts that failed before */
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
	int64_t read_user_ns;  /* user stamp of the read that brought the last token event ... */
	int64_t read_kernel_ns; /* ... and the kernel's of its segment, or of the read */
	struct buf kept;       /* head and tool calls of the answer, for prepared.ended alone */
	uint32_t kept_head;    /* bytes of the head in it */
	uint32_t entry;
	uint32_t client, n_retries; /* as struct pending has them */
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
	struct pending *pending; /* a heap: load/follow.h */
	size_t n_pending, pending_cap;
	uint32_t n_queued;       /* of all times: pending.order */
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
	struct transport_opts net; /* the options', with the tap */
	const struct plan *plan;
	const struct prepared *prepared;
	struct record *record;
	uint32_t first_row;
	const atomic_bool *cancel;
	bool is_followed;          /* requests may be followed by others: load/follow.h */
	uint32_t *first_edge, *edge; /* i's successors: edge[first_edge[i]..first_edge[i + 1]) */
	atomic_uint *n_waits;      /* per entry: ends that it waits for */
	atomic_uint *session_left; /* per session: entries not over; NULL without max_sessions */
	struct worker *worker;
	unsigned n_workers;
	int64_t start_mono_ns, start_real_ns;
	_Alignas(64) atomic_uint next;
	_Alignas(64) atomic_uint in_flight;
	atomic_uint n_sessions;  /* that have begun and are not over; with max_sessions only */
	atomic_bool stop;
	enum load_end end;       /* why; written by who set stop */
	_Alignas(64) atomic_uint n_failed; /* with a limit of failures only */
	atomic_uint refused_status, n_refused; /* of the first REFUSED_FIRST entries */
	atomic_uint live[ENDPOINTS_MAX];   /* per URL, with is_least_loaded only */
	pthread_mutex_t lock;    /* of what follows */
	pthread_cond_t changed;
	unsigned n_ready, n_running;
	bool is_started;
};

/*
 * Starts what is due and has a slot, steps requests at most; returns when to call
 * again (CLOCK_MONOTONIC, INT64_MAX). Between two reads one step is enough: more
 * would let a burst keep answers unread until their stamps run together.
 */
int64_t worker_admit(struct worker *w, int steps);
/* A request failed: is that one too many? */
void worker_failed(struct worker *w, const struct flight *f);
/* A request gave its slot under the cap back. */
void worker_free_slot(struct worker *w);
/* Nothing more is sent: the time for it is over, or the run is. */
bool worker_is_over(const struct driver *d);
/* Puts what was admitted on the wire. */
void flight_start(struct worker *w, struct pending p);
/* A flight that another program has started (watch.h); its row is admitted. */
struct flight *flight_watch(struct worker *w, struct request_row *row);
void flight_cancel_all(struct worker *w);
/* Cancels those whose time to be given up has come. */
void flight_give_up(struct worker *w, int64_t now_mono);
void flight_release(struct flight *f);
