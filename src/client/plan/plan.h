/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan.h - when each request is due, and what it waits for.
 *
 * A plan is built before the first byte is sent and never changed while load runs; the driver only
 * walks it. Roots have a due time from the start of the phase and are sorted by it. A successor is
 * due some time after the last of the entries that it waits for has ended (sessions, multi-turn,
 * closed loops per user), and runs on the loop on which that one ran. What an entry waits for and
 * whose history it continues are independent: a join waits for several entries and continues one,
 * and a client with several conversations waits for its last request and continues another
 * conversation. What needs a barrier (a batch, an iteration) is a run of its own; what is exempt
 * from the cap (probes) is a second run at the same time into the same record
 * (load_opts.first_shard). Where the order is only known while load runs, the driver asks for the
 * next entry (load_opts.pick), and the plan has no roots.
 *
 * Due times stay the recipe's doubles in seconds; nanoseconds appear at admission. Same seed and
 * options give the same bytes (serve spec 2.5).
 *
 * Invariants: roots come first, due_s never decreases among them, those of one session are
 * adjacent; what an entry waits for or continues has a lower index; a sample is a valid workload
 * index; due_s is within 0..DUE_S_MAX, so that it fits in nanoseconds.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "client/plan/workload.h"
#include "core/base/err.h"
#include "core/rng/rng.h"

#define PLAN_NONE UINT32_MAX
#define PLAN_NO_LORA UINT16_MAX

enum plan_flags {
	PLAN_GIVES_UP = 2,   /* the client hangs up some time after sending (load_opts) */
	PLAN_FROM_PHASE = 8, /* due_s counts from phase start; not due before its waits end */
	PLAN_FROM_START = 4, /* due_s counts from the sending of `after`; not before its waits
			      * end */
};

struct plan_entry {
	double due_s;      /* roots: from phase start; successors: after the end of the last wait */
	uint32_t sample;   /* index into the workload */
	uint32_t after;    /* the entry it waits for (plan.join has more), PLAN_NONE for a root */
	uint32_t history;  /* the entry whose history and answer it continues, or PLAN_NONE */
	uint32_t session;  /* or PLAN_NONE */
	uint16_t turn;
	uint16_t endpoint; /* index of the base URL */
	uint16_t lora;     /* index of the module, or PLAN_NO_LORA */
	uint16_t flags;    /* enum plan_flags */
};

/* Ramp-up log (serve spec 2.10): at the request whose rate first passes rps. */
struct plan_ramp { int64_t rps; uint32_t entry; };

/* The entry before it in its session: the one it continues, else waits for, or PLAN_NONE. */
static inline uint32_t plan_before(const struct plan_entry *entry)
{
	return entry->history != PLAN_NONE ? entry->history : entry->after;
}

/* What an entry waits for in addition to `after`. */
struct plan_join { uint32_t entry, waits_for; };

struct plan {
	struct plan_entry *entry;
	uint32_t n, n_roots;
	struct plan_join *join;
	size_t n_joins;
	struct plan_ramp *ramp; /* without the first event, which is the start itself */
	size_t n_ramp;
};

/* The root that an entry follows, directly or not; a root itself for a root. */
static inline uint32_t plan_root(const struct plan *p, uint32_t entry)
{
	while (entry >= p->n_roots)
		entry = p->entry[entry].after;
	return entry;
}

enum plan_ramp_up { RAMP_NONE, RAMP_LINEAR, RAMP_EXPONENTIAL };

struct plan_opts {
	double request_rate;   /* requests/s; INFINITY: all at once */
	double burstiness;     /* gamma shape; INFINITY: even spacing */
	enum plan_ramp_up ramp_up;
	double ramp_start_rps, ramp_end_rps;
	const double *timestamps_s; /* self-timed: one per sample; NULL otherwise */
};

/*
 * n roots, entry i = sample i, due by the arrival recipe; draws from rng->np.
 * ERR_RUN with upstream's texts for a rate or burstiness that is not positive; ERR_USAGE
 * for a request that would be due more than DUE_S_MAX after the start.
 */
int plan_arrivals(struct plan *p, uint32_t n, const struct plan_opts *opts,
		  struct compat_rng *rng, struct err *e);
/* A plan longer than its workload of n samples takes them again from the first. */
void plan_repeat(struct plan *p, uint32_t n);
/*
 * How many requests of the arrival recipe are due within some seconds: round(rate * seconds); with
 * a ramp, as many as make the ramp last that long. INFINITY where all are due at once.
 */
double plan_count(const struct plan_opts *opts, double seconds);
/* All n due at 0: ready check, warm-up. Every entry names the given sample. */
void plan_same(struct plan *p, uint32_t n, uint32_t sample);

/* One root at 0; each other entry is due gap_s (0..DUE_S_MAX) after the previous one's end. */
void plan_chain(struct plan *p, uint32_t n, double gap_s);

/*
 * Replaces n arrivals (roots and how they are sent) by the turns of n sessions: arrival i begins
 * session i of s, starting over where s has fewer, and all its turns have the arrival's URL and
 * LoRA module. A root's own gap is ignored. ERR_LIMIT: more turns than a record holds.
 */
int plan_sessions(struct plan *p, const struct sessions *s, struct err *e);

/*
 * n arrivals by the user-centric recipe: rate requests/s by all users together. User i begins at i
 * / rate; the user that replaces it begins turns * users / rate later, whether or not the first has
 * ended. plan_user_gaps, called after plan_sessions: a user's next request is due a fixed time
 * after the last one was sent, or at once when its answer came later.
 */
int plan_users(struct plan *p, const struct sessions *s, uint32_t n, uint32_t users, double rate,
	       struct err *e);
void plan_user_gaps(struct plan *p, uint32_t users, double rate);

enum plan_lora { LORA_RANDOM, LORA_ROUND_ROBIN };
/* Serve spec 2.6; draws from rng->py. */
void plan_assign_lora(struct plan *p, unsigned n_modules, enum plan_lora how,
		      struct compat_rng *rng);
void plan_release(struct plan *p);
