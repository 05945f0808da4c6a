/* SPDX-License-Identifier: Apache-2.0 */
/*
 * load.h - the driver: walks a plan on its loops and appends to a record.
 *
 * Admission is strict FIFO over the roots of the plan, as vLLM's semaphore is:
 * an entry is taken when it is due and a slot under the cap is free. Two
 * atomics (next entry, in flight) are all that loops share; a loop that frees
 * a slot claims the next due entry itself. A successor runs on the loop on which the
 * last entry that it waits for has ended.
 *
 * Not here: what a body means (endpoint/), how bytes travel (transport.h), what
 * the numbers mean (metrics/).
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
	struct str *request;               /* one per plan entry: every byte of it */
	uint32_t n;
	/*
	 * Where the URL is chosen at admission: each request (also a built one) begins with
	 * head_room bytes, into whose end the head of that URL is copied. NULL and 0 otherwise.
	 */
	const struct str *head;
	size_t head_room;
	struct arena arena;
	/*
	 * Requests that are made when they become due, because they depend on answers: called for
	 * an entry whose prepared request is empty; fills the request, or fails the entry. What the
	 * entry waits for has ended. On any loop's thread; NULL when no entry needs it.
	 */
	int (*build)(void *self, uint32_t entry, struct buf *request, struct err *e);
	/*
	 * An entry's answer is here, before anything that follows it is built; NULL: not wanted.
	 * row is complete except for its state, and row->fail tells whether it failed. head: of
	 * the answer. calls: its tool calls as they came, a JSON list of deltas on each line;
	 * empty without any. -1: the request fails for that reason; 1: a call was malformed. On
	 * any loop's thread, once per attempt.
	 */
	int (*ended)(void *self, uint32_t entry, const struct request_row *row, struct str head,
		     struct str calls, struct err *e);
	void *build_self;
	void (*build_free)(void *self);    /* for who releases the requests; NULL: nothing to do */
};

/* Whether segments are stamped (net/tap.h): not, where it is allowed, or else nothing is sent. */
enum load_tap { LOAD_TAP_OFF, LOAD_TAP_ALLOWED, LOAD_TAP_NEEDED };

struct load_opts {
	const struct transport *transport;
	struct transport_opts net;
	const struct endpoint *endpoint;
	const struct workload *workload; /* what entries' samples index; may be NULL */
	struct str extra_body;      /* as requests were made with (endpoint/endpoint.h) */
	unsigned threads;
	const uint16_t *cpu;        /* loop i runs on processor cpu[i] alone; NULL: on any */
	uint32_t first_shard;       /* loops write shards from here: two runs can share a record */
	uint32_t max_concurrency;   /* requests in flight; 0: no cap */
	uint32_t max_sessions;      /* sessions from the first send to the last end; 0: no cap */
	bool is_chain_dropped;      /* what waits for a failed request is recorded as cancelled */
	bool is_session_spread;     /* with is_least_loaded: each turn chooses its URL */
	/*
	 * A failed request is sent again so many times, 1 s, 2 s, 4 s ... after its end, before it
	 * counts as failed; its row is of the last attempt.
	 */
	unsigned retries;
	/*
	 * A closed loop: each of n_clients (0: none) sends its next request when its last one has
	 * ended. pick says which: a plan entry, which is due gap_s (0..DUE_S_MAX) later, or
	 * PLAN_NONE when this client has finished. It is called for every client in order before
	 * the clock starts (ended PLAN_NONE, row NULL; due gap_s after the start), then once per
	 * request, on any loop's thread, when the row is complete except for its state: row->fail
	 * tells whether it failed, and as what. It may pick `ended` itself: the same request again,
	 * whose row begins anew and adds to its attempts. Any other entry is picked once at most.
	 * Successors of the plan are not started, and entries that nobody picks are recorded as
	 * cancelled or unsent.
	 */
	uint32_t n_clients;
	uint32_t (*pick)(void *self, uint32_t client, uint32_t ended,
			 const struct request_row *row, double *gap_s);
	void *pick_self;
	enum request_phase phase;
	enum load_tap tap;          /* of the native transport; ignored by the others */
	bool is_user_stamps;        /* --timestamps user: metrics see user-space stamps */
	bool is_role_chunk_skipped; /* --compat role-chunk */
	bool is_stream_error_ignored; /* --compat stream-error: errors and cuts of a stream */
	bool is_usage_with_choices; /* --fix usage: counts in events that also carry choices */
	int64_t deadline_ns;        /* stop admitting and cancel after this long; 0: none */
	/*
	 * Admit nothing after this long (0: no limit), or once *close is set (may be NULL). What is
	 * in flight goes on; what was not admitted becomes REQ_UNSENT.
	 */
	int64_t admission_ns;
	const atomic_bool *close;
	const atomic_bool *abandon; /* set: as cancel; may be NULL */
	uint32_t failures_max;      /* stop and cancel once so many failed; 0: no limit */
	bool is_failure_share_limited;
	double failure_share_max;   /* likewise, of at least FAILURE_SHARE_ENDED that ended */
	bool is_ended_by_refusals;  /* ended because the first REFUSED_FIRST got the same refusal */
	int64_t give_up_ns;         /* PLAN_GIVES_UP: cancelled so long after it was sent */
	bool is_least_loaded;       /* the URL with the fewest requests in flight, at admission */
	/*
	 * Per root: another process sends it, and the session that it begins; NULL: none. Its row
	 * becomes REQ_UNSENT.
	 */
	const bool *elsewhere;
	/*
	 * Called once, on the caller's thread, when everything is ready: the monotonic instant, a
	 * moment ahead, at which the clock is to start, or 0: nothing is sent. NULL: it starts now.
	 */
	int64_t (*start_at)(void *self);
	/* Called once, on the caller's thread, when the clock has started; NULL: not. */
	void (*started)(void *self);
	void *started_self;
	/* Called on the caller's thread about five times a second; NULL: not. */
	void (*tick)(void *self);
	void *tick_self;
};

/* Counters a progress bar may read at any time; one lane per loop, each with a single writer. */
struct load_lane {
	_Atomic uint64_t tokens;
	_Atomic uint32_t admitted, done, failed;
	char pad[108]; /* counters of two loops share no cache line, wherever the lanes lie */
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
#define FAILURE_SHARE_ENDED 20 /* fewer say nothing about a share */
/*
 * So many requests from the first one on, all answered with one and the same status 4xx, mean a
 * wrong key, path, model or parameter: the rest would also get it. The first of the plan and not
 * the first to end: a refusal comes back sooner than an answer.
 */
#define REFUSED_FIRST 10

/* What the driver saw of itself, over all loops. */
struct load_stats {
	enum load_end end;
	int64_t used_up_ns;         /* from the start to the last root's admission; 0: not all */
	struct transport_stats net;
	int64_t wall_ns, cpu_ns;    /* cpu: sum over loops, from the start of the clock */
	int64_t cpu_ns_max;         /* the busiest loop's, less what it spun before due times */
	int64_t wait_ns_max;        /* most that a loop waited for a processor (pressure.h) */
	int64_t throttled_ns;       /* for which a CPU quota had stopped the program */
	unsigned threads;
	uint64_t reads_shared;      /* events with the stamp of the one before in their stream */
	uint64_t events_by_segment; /* token events with the stamp of their own segment */
	struct tap_stats tap;
	bool is_tapped;             /* there was a tap */
	struct err no_tap;          /* why there was none, where one was wanted; else ERR_NONE */
	bool is_kernel_stamped;
};

/* Another driver of the same run: counts add up, and the worst of what they saw stays. */
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
