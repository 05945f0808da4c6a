/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plan/plan.h - when each request is due, and what it waits for.
 *
 * A plan is built before the first byte is sent and never changed while load
 * runs; the driver only walks it. Roots have a due time from the start of the
 * phase and are sorted by it. A successor is due think_s after its parent
 * ended (sessions, multi-turn, closed loops per user); it names the parent
 * entry, and runs on the loop that ran the parent. A whole conversation can hold
 * its slot under the cap from its first turn to its last (PLAN_HOLDS_SLOT), so
 * that the cap counts users. What needs a barrier (a batch, an iteration) is a
 * run of its own; what goes on beside the cap (probes) is a second run at the
 * same time into the same record (load_opts.first_shard).
 *
 * Due times stay the recipe's doubles in seconds; nanoseconds appear at
 * admission. Same seed and options give the same bytes (serve spec 2.5).
 *
 * Invariants: roots come first, due_s never decreases among them; a parent's
 * index is below its successors'; a sample is a valid workload index; due_s is within
 * 0..DUE_S_MAX, so that nanoseconds hold it.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "rng/compat.h"

#define PLAN_NONE UINT32_MAX
#define PLAN_NO_LORA UINT16_MAX

enum plan_flags {
	PLAN_HOLDS_SLOT = 1, /* the slot passes to the successor, think time included */
	PLAN_GIVES_UP = 2,   /* the client hangs up some time after sending (load_opts) */
};

struct plan_entry {
	double due_s;      /* roots: from phase start; successors: think time after the parent */
	uint32_t sample;   /* index into the workload */
	uint32_t after;    /* parent entry, or PLAN_NONE for a root */
	uint32_t session;  /* or PLAN_NONE */
	uint16_t turn;
	uint16_t endpoint; /* index of the base URL */
	uint16_t lora;     /* index of the module, or PLAN_NO_LORA */
	uint16_t flags;    /* enum plan_flags */
};

/* Ramp-up log (serve spec 2.10): at the request whose rate first passes rps. */
struct plan_ramp { int64_t rps; uint32_t entry; };

struct plan {
	struct plan_entry *entry;
	uint32_t n, n_roots;
	struct plan_ramp *ramp; /* without the first event, which is the start itself */
	size_t n_ramp;
};

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
 * How many requests by the arrival recipe fall due within some seconds: round(rate * seconds);
 * with a ramp, so many that the ramp takes as long. INFINITY where all are due at once.
 */
double plan_count(const struct plan_opts *opts, double seconds);
/* All n due at 0: ready check, warm-up. Every entry names the given sample. */
void plan_same(struct plan *p, uint32_t n, uint32_t sample);

/* One root at 0; each of the others is due gap_s (0..DUE_S_MAX) after the end of the one before. */
void plan_chain(struct plan *p, uint32_t n, double gap_s);

enum plan_lora { LORA_RANDOM, LORA_ROUND_ROBIN };
/* Serve spec 2.6; draws from rng->py. */
void plan_assign_lora(struct plan *p, unsigned n_modules, enum plan_lora how,
		      struct compat_rng *rng);
void plan_release(struct plan *p);
