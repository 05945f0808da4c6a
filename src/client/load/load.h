/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - the driver: walks a plan on its loops and appends to a record.
 *
 * Admission is strict FIFO over the roots of the plan, like vLLM's semaphore: an entry is taken
 * when it is due and a slot under the cap is free. Loops share only two atomics (next entry, in
 * flight); a loop that frees a slot claims the next due entry itself. A successor runs on the loop
 * where the last entry that it waits for has ended.
 *
 * Not here: the content of a body (endpoint/), transport of bytes (transport.h), meaning of the
 * numbers (metrics/).
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/endpoint/endpoint.h"
#include "client/load/transport.h"
#include "client/net/tap.h"
#include "client/plan/plan.h"
#include "client/plan/workload.h"
#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/limits.h"

/* Requests, serialised before the clock starts. */
struct prepared {
	struct str *request;               /* one per plan entry: the complete bytes */
	uint32_t n;
	/*
	 * Where the URL is chosen at admission: every request, also one made by build, begins with
	 * head_room bytes, and the head of the chosen URL is copied to their end. Else NULL and 0.
	 */
	const struct str *head;
	size_t head_room;
	struct arena arena;
	/*
	 * Makes a request when it becomes due, because it depends on answers: called for an entry
	 * whose prepared request is empty; fills the request, or fails the entry. Everything the
	 * entry waits for has ended. Called on any loop's thread; NULL when no entry needs it.
	 */
	int (*build)(void *self, uint32_t entry, struct buf *request, struct err *e);
	/*
	 * Receives an entry's answer before anything that follows it is built; may be NULL. row is
	 * complete except for its state; row->fail says whether it failed. head: the answer's head.
	 * calls: its tool calls as received, a JSON list of deltas per line; may be empty. -1: the
	 * request fails for that reason; 1: a call was malformed. Called on any loop's thread, once
	 * per attempt.
	 */
	int (*ended)(void *self, uint32_t entry, const struct request_row *row, struct str head,
		     struct str calls, struct err *e);
	void *build_self;
	void (*build_free)(void *self);    /* called when the requests are released; may be NULL */
};

/* Segment stamps (net/tap.h): off, used if permitted, or required (else nothing is sent). */
enum load_tap { LOAD_TAP_OFF, LOAD_TAP_ALLOWED, LOAD_TAP_NEEDED };

struct load_opts {
	const struct transport *transport;
	struct transport_opts net;
	const struct endpoint *endpoint;
	const struct workload *workload; /* indexed by the entries' samples; may be NULL */
	struct str extra_body;      /* as used for making the requests (endpoint/endpoint.h) */
	unsigned threads;
	const uint16_t *cpu;        /* loop i runs only on processor cpu[i]; NULL: on any */
	uint32_t first_shard;       /* first shard to write: two runs can share a record */
	uint32_t max_concurrency;   /* requests in flight; 0: no cap */
	uint32_t max_sessions;      /* sessions from the first send to the last end; 0: no cap */
	bool is_chain_dropped;      /* successors of a failed request are recorded as cancelled */
	bool is_session_spread;     /* with is_least_loaded: each turn chooses its URL */
	/*
	 * Number of times a failed request is sent again, 1 s, 2 s, 4 s ... after its end, before
	 * it counts as failed; its row describes the last attempt.
	 */
	unsigned retries;
	/*
	 * A closed loop: each of n_clients (0: none) sends its next request when its last one has
	 * ended. pick returns a plan entry, due gap_s (0..DUE_S_MAX) later, or PLAN_NONE when this
	 * client has finished. It is called for every client in order before the clock starts
	 * (ended PLAN_NONE, row NULL; due gap_s after the start), then once per request, on any
	 * loop's thread, when the row is complete except for its state: row->fail says whether and
	 * why it failed. It may pick `ended` again: its row is emptied and counts one more attempt.
	 * Any other entry may be picked once. Successors of the plan are not started; entries that
	 * are never picked are recorded as cancelled or unsent.
	 */
	uint32_t n_clients;
	uint32_t (*pick)(void *self, uint32_t client, uint32_t ended,
			 const struct request_row *row, double *gap_s);
	void *pick_self;
	enum request_phase phase;
	enum load_tap tap;          /* native transport only */
	bool is_user_stamps;        /* --timestamps user: metrics use user-space stamps */
	bool is_role_chunk_skipped; /* --compat role-chunk */
	bool is_stream_error_ignored; /* --compat stream-error: errors and cuts of a stream */
	bool is_usage_with_choices; /* --fix usage: counts in events that also carry choices */
	int64_t deadline_ns;        /* stop admitting and cancel after this long; 0: none */
	/*
	 * Admit nothing after this long (0: no limit), or once *close is set (may be NULL).
	 * Requests in flight continue; those not admitted become REQ_UNSENT.
	 */
	int64_t admission_ns;
	const atomic_bool *close;
	const atomic_bool *abandon; /* when set, acts as cancel; may be NULL */
	uint32_t failures_max;      /* stop and cancel after this many failures; 0: no limit */
	bool is_failure_share_limited;
	double failure_share_max;   /* above this share of FAILURE_SHARE_ENDED or more ended ones */
	bool is_ended_by_refusals;  /* stop when the first REFUSED_FIRST get the same refusal */
	int64_t give_up_ns;         /* PLAN_GIVES_UP: cancelled this long after it was sent */
	bool is_least_loaded;       /* at admission, choose the URL with the fewest in flight */
	/*
	 * Per root: whether another process sends it and its session; NULL: none. Its row becomes
	 * REQ_UNSENT.
	 */
	const bool *elsewhere;
	/*
	 * Called once, on the caller's thread, when everything is ready: returns the monotonic
	 * instant, slightly in the future, at which the clock starts, or 0: send nothing. NULL:
	 * now.
	 */
	int64_t (*start_at)(void *self);
	/* Called once, on the caller's thread, when the clock has started; may be NULL. */
	void (*started)(void *self);
	void *started_self;
	/* Called on the caller's thread about five times a second; may be NULL. */
	void (*tick)(void *self);
	void *tick_self;
};

/* Counters a progress bar may read at any time; one lane per loop, each with a single writer. */
struct load_lane {
	_Atomic uint64_t tokens;
	_Atomic uint32_t admitted, done, failed;
	char pad[108]; /* keeps counters of two loops on separate cache lines at any alignment */
};
_Static_assert(sizeof(struct load_lane) - offsetof(struct load_lane, pad) >= 64,
	       "two lanes share a cache line");
struct load_progress { struct load_lane lane[THREADS_MAX]; };
struct load_totals { uint64_t tokens; uint32_t admitted, done, failed; };
struct load_totals load_progress_total(const struct load_progress *p);

/* Why a run ended before its plan did. */
enum load_end {
	LOAD_WHOLE, LOAD_CANCELLED, LOAD_DEADLINE, LOAD_FAILURES, LOAD_FAILURE_SHARE, LOAD_REFUSED,
};
#define FAILURE_SHARE_ENDED 20 /* smaller numbers are too few for a share */
/*
 * If this many requests from the first one on are all answered with the same 4xx status, the key,
 * path, model or a parameter is wrong and the rest would get it too. Counted over the first of the
 * plan, not the first to end: refusals return sooner than answers.
 */
#define REFUSED_FIRST 10

/* The driver's own measurements, over all loops. */
struct load_stats {
	enum load_end end;
	int64_t used_up_ns;         /* from the start to the last root's admission; 0: not all */
	struct transport_stats net;
	int64_t wall_ns, cpu_ns;    /* cpu: sum over loops, from the start of the clock */
	int64_t cpu_ns_max;         /* the busiest loop's, without the spinning before due times */
	int64_t wait_ns_max;        /* longest wait of a loop for a processor (pressure.h) */
	int64_t throttled_ns;       /* time for which a CPU quota had stopped the program */
	unsigned threads;
	uint64_t reads_shared;      /* events with the stamp of their predecessor in the stream */
	uint64_t events_by_segment; /* token events with the stamp of their own segment */
	struct tap_stats tap;
	bool is_tapped;             /* segments were stamped */
	struct err no_tap;          /* why they were not, although wanted; else ERR_NONE */
	bool is_kernel_stamped;
};

/* Adds another driver of the same run: counts are summed, worst values are kept. */
void load_stats_add(struct load_stats *sum, const struct load_stats *one);

/*
 * Runs the whole plan; returns when every request ended or cancel is set (then
 * requests in flight are cancelled and recorded). Row first_row + i is entry i.
 * record->start_ns/stop_ns are set when phase is PHASE_MAIN, is_interrupted when it was
 * cancelled or met a deadline without admission_ns. -1 only when load
 * could not start (resolve, TLS set-up, descriptors); failures of requests are
 * facts in the record.
 */
int load_run(const struct load_opts *o, const struct plan *plan, const struct prepared *prepared,
	     struct record *record, uint32_t first_row, struct load_progress *progress,
	     struct load_stats *stats, const atomic_bool *cancel, struct err *e);
