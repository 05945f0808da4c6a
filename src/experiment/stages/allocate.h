/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocate.h - GPUs and ports for one experiment, held until it is over.
 *
 * A GPU or a port is ours while we hold the kernel's lock on its file (proc/lock.h): every
 * experiment on this machine, of any user, uses the same files, and what a process that
 * was killed has held is free at once. A port is bound once for proof and then left to the server.
 *
 * Which GPUs: those that our environment allows (CUDA_VISIBLE_DEVICES, ...), that nobody has
 * locked, on which nothing computes and whose memory is free; of these the ones that reach each
 * other best, then the lowest indices. Whole GPUs; parts (MIG) when they are named or there is
 * nothing else, and then one for a server, as CUDA has it. A shared allocation takes GPUs that
 * others use too: its locks keep out those only that want theirs alone.
 *
 * When they are busy, the first to ask gets them first (stages/allocate.h). An early one that
 * wants eight is not passed by others that want one of the GPUs it waits for.
 *
 * Each server gets its share of the experiment's GPUs, in the order of the list; attached ones get
 * nothing. Without any GPU on this machine GPUS_AUTO gives none and is no failure.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "experiment/config/experiment.h"
#include "host/gpu/gpu.h"
#include "host/proc/lock.h"

/* What one server gets. */
struct allocation_server {
	struct outcome_gpu *gpu;    /* texts in the allocation's arena */
	size_t *place;              /* of each in gpu_list */
	size_t n_gpus;
	unsigned port;              /* 0: attached */
	char *const *env;           /* "CUDA_VISIBLE_DEVICES=2,3", ...: after its own; ends NULL */
};

struct allocation {
	struct allocation_server *server; /* as many as the experiment has */
	size_t n_servers;
	size_t n_gpus;              /* over all */
	const char *note;           /* what the user should know ("no GPU here: ..."); or NULL */
	double *used_bytes;         /* of each GPU, when it was given: for allocate_settle */
	size_t *used_place;
	struct lock *lock;
	size_t n_locks;
	struct arena arena;
};

/* Why it was not to be had, for struct outcome's category. */
enum allocate_fault {
	ALLOCATE_FAULT_NONE,
	ALLOCATE_FAULT_GPUS_BUSY,   /* they are there, others use them */
	ALLOCATE_FAULT_NO_GPU,      /* fewer than wanted may be used here, or another one */
	ALLOCATE_FAULT_PORTS,       /* no port of the range is free, or the one that was given */
	ALLOCATE_FAULT_LOCKS,       /* the folder of locks cannot be used */
	ALLOCATE_FAULT_CANCELLED,
};
const char *allocate_fault_name(enum allocate_fault fault); /* "gpus busy", ... */

/*
 * Takes all of it or nothing; waits at most x->resources.wait_s for GPUs and for the ports that
 * servers name, without holding anything meanwhile. -1 with *fault (may be NULL) and e in one
 * sentence that names who holds them. hooks->line says who is waited for. gpus must live as long as
 * the allocation. run_id is in the locks for others to read.
 */
int allocate(const struct experiment *x, const char *run_id, const struct gpu_set *gpus,
	     const struct experiment_hooks *hooks, struct allocation *out,
	     enum allocate_fault *fault, struct err *e);

/*
 * After a server has stopped: waits until the memory of the allocation's GPUs is back near what it
 * was, which drivers do late. false after the deadline, with a warning through hooks.
 */
bool allocate_settle(const struct allocation *a, const struct gpu_set *gpus,
		     const struct experiment_hooks *hooks);

/* Gives everything back. A zeroed one is fine. */
void allocate_release(struct allocation *a);

/*
 * Who came first, among the experiments of this machine that want GPUs.
 *
 * A ticket is a lock file (proc/lock.h) in the folder "queue" below that of the locks, named by
 * a number that is one more than the highest there. It says which GPUs would do for its owner.
 * Whoever comes later leaves those alone while the earlier one waits, so that one that wants many
 * is not passed by many that want one. A dead owner's ticket is held by nobody and does not count.
 *
 * One at a time looks and takes: between queue_enter and queue_leave nobody else does.
 */
struct queue {
	char *folder;              /* of locks */
	char *tickets;             /* of tickets, below it */
	struct lock mutex, ticket;
	unsigned long long number; /* of the ticket */
};

/*
 * Which GPUs an experiment may have, and which of those that are free it
 * takes. Nothing is locked here (stages/allocate.h).
 */
/* GPUs that would do, by their places in gpu_list. */
struct candidates {
	size_t *place;
	size_t n;
	bool is_named;       /* all of them are wanted, in this order */
	bool are_parts;      /* MIG: one for a server */
};

/*
 * Those that r allows. -1 with e (ERR_USAGE) when it names one that is not there, is not allowed,
 * or is split. Caller frees place.
 */
int choose_candidates(const struct experiment_resources *r, const struct gpu_set *gpus,
		      struct candidates *c, struct err *e);

/* How many GPUs the experiment asks for, or its servers take. */
unsigned choose_wanted(const struct experiment *x);
/* The name of its lock file. */
void choose_lock_name(const struct gpu *g, char out[128]);
/* How people call it: "GPU 3", "GPU 1:0 (MIG 1g.10gb)". */
void choose_call(const struct gpu *g, struct buf *out);

/*
 * Why the GPU at this place is not free for r, as the end of a sentence that begins with what
 * choose_call gives; false: it is free. *may_pass: only its figure of use says so, which drivers
 * tell late.
 */
bool choose_is_busy(const struct experiment_resources *r, const struct gpu_set *gpus, size_t place,
		    struct buf *why, bool *may_pass);

/*
 * The want of n free places that reach each other best, those first that leave the others'
 * links whole, then the lowest; in ascending order at the beginning of place.
 */
void choose_best(const struct gpu_set *gpus, size_t *place, size_t n, size_t want);

/*
 * A TCP port that no other run of ours will take.
 *
 * Reserved by a lock file of its own (proc/lock.h), then proved free by listening on it on every
 * address for a moment: programs that do not know our locks are seen by that. Between the proof and
 * the server's own listening such a program could still come; the default range lies below
 * the ports that the kernel gives to outgoing connections, so that none of those does.
 */
/* The default range: below the kernel's ephemeral ports. */
void port_range(unsigned *first, unsigned *last);

/*
 * A port from first to last that is free and not reserved; first == last: that very one.
 * 0 with *port and *l, which holds it; -1 with e that says who has it, or how many are taken.
 */
int port_take(const char *folder, unsigned first, unsigned last, const struct lock_holder *me,
	      unsigned *port, struct lock *l, struct err *e);
