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
	uint32_t order;    /* of two that are due together, the lower one goes first */
	uint32_t entry;
	uint32_t client;   /* of a closed loop, or PLAN_NONE */
	uint32_t n_retries; /* attempts that failed before */
};

struct flight {
	struct exchange x; /* first member: the sink casts it back to the flight */
	struct worker *worker;
	struct request_row *row;
	struct flight *next_free;
	struct flight *give_up_prev, *give_up_next; /* the worker's list of requests to give up */
	int64_t give_up_mono_ns; /* 0: not on it */
	struct sse sse;
	struct lines lines;    /* for an API that sends lines instead of events */
	size_t text_seen;      /* bytes seen so far, for APIs that repeat the whole text */
	uint64_t text_bytes;   /* all text of the answer so far, escaped */
	uint64_t held_bytes;   /* memory of sse and lines included in the worker's sum */
	char *built;           /* a body built on demand; NULL otherwise */
	int64_t last_ns;       /* stamp of the last token event; sent_ns before the first */
	int64_t read_user_ns;  /* user stamp of the read that brought the last token event ... */
	int64_t read_kernel_ns; /* ... and the kernel's of its segment, or of the read */
	struct buf kept;       /* head and tool calls of the answer, for prepared.ended alone */
	uint32_t kept_head;    /* bytes of the head in it */
	uint32_t entry;
	uint32_t client, n_retries; /* as struct pending has them */
	uint32_t n_decoded;    /* events and lines of any content */
	uint32_t running_tokens; /* the last running count of tokens, from usage */
	uint32_t head_bytes;     /* for an answer gathered whole: size of its head, at the front */
	int64_t body_ns;         /* stamp of the last read of such an answer */
	bool is_live, is_event_stream, is_odd_type, is_failed, gives_up;
	bool is_cut;           /* failed by a limit: the rest of its answer is ignored */
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
	uint32_t n_queued;       /* queued so far, for pending.order */
	struct buf built;        /* buffer in which bodies are built before they are copied */
	uint64_t held_bytes;     /* sum over its flights */
	struct flight *give_up_first, *give_up_last; /* in order of time */
	int64_t next_due_real_ns; /* a read with a later stamp admits before it returns */
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
	atomic_uint *n_waits;      /* per entry: waits that have not ended yet */
	atomic_uint *session_left; /* per session: entries not over; NULL without max_sessions */
	struct worker *worker;
	unsigned n_workers;
	int64_t start_mono_ns, start_real_ns;
	_Alignas(64) atomic_uint next;
	_Alignas(64) atomic_uint in_flight;
	atomic_uint n_sessions;  /* begun but not over; only with max_sessions */
	atomic_bool stop;
	enum load_end end;       /* why; written by the worker that set stop */
	_Alignas(64) atomic_uint n_failed; /* only with a limit of failures */
	atomic_uint refused_status, n_refused; /* of the first REFUSED_FIRST entries */
	atomic_uint live[ENDPOINTS_MAX];   /* per URL; only with is_least_loaded */
	pthread_mutex_t lock;    /* guards the members below */
	pthread_cond_t changed;
	unsigned n_ready, n_running;
	bool is_started;
};

/*
 * Starts at most `steps` requests that are due and have a slot. Returns when to call again
 * (CLOCK_MONOTONIC, INT64_MAX: never). Between two reads one step is enough: more would let a burst
 * delay reading answers until their stamps coincide.
 */
int64_t worker_admit(struct worker *w, int steps);
/* Counts a failed request and ends the run when a limit of failures is reached. */
void worker_failed(struct worker *w, const struct flight *f);
/* Releases a request's slot under the cap. */
void worker_free_slot(struct worker *w);
/* True when nothing more is sent: the admission time or the run is over. */
bool worker_is_over(const struct driver *d);
/* Sends an admitted request. */
void flight_start(struct worker *w, struct pending p);
/* A flight for a request that another program has started (watch.h); its row is admitted. */
struct flight *flight_watch(struct worker *w, struct request_row *row);
void flight_cancel_all(struct worker *w);
/* Cancels flights whose give-up time has come. */
void flight_give_up(struct worker *w, int64_t now_mono);
void flight_release(struct flight *f);
