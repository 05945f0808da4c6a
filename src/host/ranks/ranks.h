/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranks.h - the processes that mpirun started as one run: identity, clocks, and messages to rank 0.
 *
 * Open MPI is loaded when mpirun has started the process, and not needed to build. It is used at
 * the beginning and the end of a run; while load runs, each rank only sends rank 0 its counters a
 * few times a second. Waiting here sleeps between checks, so that a rank that has finished takes no
 * processor from one that still measures. All calls come from one thread; where it says "every
 * rank", each of them makes the call, in the same order.
 *
 * Clocks: rank 0 asks every other rank for its CLOCK_REALTIME several times. The offset is that of
 * the exchange with the shortest round trip; half of that trip bounds its error. Ranks of one
 * machine (the same boot id) whose offset is not larger than that have one clock, and the offset is
 * 0.
 *
 * A rank is lost when it has been silent for RANK_SILENT_NS while load runs; it is then ignored.
 * mpirun ends the other ranks in that case unless it was called with --enable-recovery.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/limits.h"

#define RANK_SILENT_NS 10000000000  /* without a report for this long it is lost */
#define RANK_OFFSET_NS 1000000      /* clocks that differ by more are reported */
#define RANK_PAUSE_NS 1000000000    /* a silence that long is reported */
#define RANK_FACTS_BYTES 4096
#define RANK_DELIVERY_NS 600000000000 /* time for counting tokens and sending the record */

/* Rank 0's view of another rank. */
struct rank_peer {
	char host[RANK_HOST_BYTES];
	int64_t offset_ns, error_ns;     /* its clock minus rank 0's, at the start */
	int64_t drift_ns;                /* how far the offset had moved at the end */
	int64_t heard_ns;                /* monotonic: its last report */
	int64_t silence_ns;              /* the longest time between two reports */
	uint64_t done, failed, tokens;   /* its counters, as last reported */
	void *facts;                     /* what ranks_ended sent; NULL: nothing yet */
	bool is_same_clock;              /* the same boot of the same machine */
	bool has_ended, is_lost;
};

struct ranks {
	int rank, n;
	unsigned local, n_local;         /* among those that mpirun started on this machine */
	struct rank_peer *peer;          /* n of them; used by rank 0 */
};

/* Whether mpirun started this process as one of several. */
bool ranks_are_started(void);
/* Every rank. -1: Open MPI is missing or refuses; more than RANKS_MAX. */
int ranks_join(struct ranks *r, struct err *e);
/* Every rank; a zeroed struct is fine. */
void ranks_leave(struct ranks *r);

/* Every rank: rank 0's bytes to all of them. */
int ranks_share(struct ranks *r, void *data, size_t bytes, struct err *e);
/*
 * Every rank, with the result of a step. 0 when all succeeded; otherwise -1 everywhere, and on rank
 * 0 e is the first failure, with the rank in front if it is another one's.
 */
int ranks_agree(struct ranks *r, int rc, struct err *e);

/*
 * Every rank, when it is ready: measures the clocks and gives each the same instant, a moment from
 * now, as its own monotonic time.
 */
int ranks_start(struct ranks *r, int64_t *start_mono_ns, struct err *e);
/* While load runs: counters to rank 0; on rank 0 takes those of the others. */
void ranks_tick(struct ranks *r, uint64_t done, uint64_t failed, uint64_t tokens);
/* Not rank 0: load has ended here, with these facts (RANK_FACTS_BYTES at most). */
void ranks_ended(struct ranks *r, const void *facts, size_t n);
/* Rank 0: waits until load has ended on every other rank, or the rank is lost. */
void ranks_wait(struct ranks *r, void (*tick)(void *self), void *self);
/* Every rank: how far clocks moved since ranks_start (peer.drift_ns on rank 0). */
void ranks_check_clocks(struct ranks *r);

/* Not rank 0: sends a file when rank 0 is ready for it. */
int ranks_deliver(struct ranks *r, const char *path, struct err *e);
/* Rank 0: writes the file that `from`, which is not lost, delivers. -1: there is none. */
int ranks_take(struct ranks *r, int from, const char *path, struct err *e);

/* This rank's part of a number that all ranks share; the first ranks have the larger parts. */
static inline uint32_t ranks_part(const struct ranks *r, uint32_t whole)
{
	return whole / (uint32_t)r->n + ((uint32_t)r->rank < whole % (uint32_t)r->n);
}
