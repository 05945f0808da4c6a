/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocate.h - GPUs and ports for one experiment, held until it is over.
 *
 * A GPU or a port is ours while we hold the kernel's lock on its file (proc/lock.h): all
 * experiments on this machine, of any user, use the same files, and the locks of a killed process
 * are free at once. A port is bound once to prove that it is free, and then left to the server.
 *
 * Which GPUs: those allowed by our environment (CUDA_VISIBLE_DEVICES, ...), not locked, without
 * computing processes and with free memory; of these the ones with the best links to each other,
 * then the lowest indices. Whole GPUs; parts (MIG) when they are named or there is nothing else,
 * and then one per server, as CUDA requires. A shared allocation takes GPUs that others use too:
 * its locks only keep out experiments that want them alone.
 *
 * Waiting experiments get GPUs in the order in which they asked. One that waits for eight is not
 * overtaken by others that want one of the GPUs it waits for.
 *
 * Each server gets its share of the experiment's GPUs, in the order of the list; attached ones get
 * nothing. Without any GPU on this machine GPUS_AUTO gives none and is not a failure.
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

/* Why the allocation failed, for struct outcome's category. */
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
 * Takes everything or nothing; waits at most x->resources.wait_s for GPUs and for the ports that
 * servers name, without holding anything meanwhile. -1 with *fault (may be NULL) and e in one
 * sentence that names who holds them. hooks->line says who is waited for. gpus must live as long as
 * the allocation. run_id is written into the locks for others to read.
 */
int allocate(const struct experiment *x, const char *run_id, const struct gpu_set *gpus,
	     const struct experiment_hooks *hooks, struct allocation *out,
	     enum allocate_fault *fault, struct err *e);

/*
 * After a server has stopped: waits until the memory of the allocation's GPUs is back near its
 * former use, which drivers report late. false after the deadline, with a warning through hooks.
 */
bool allocate_settle(const struct allocation *a, const struct gpu_set *gpus,
		     const struct experiment_hooks *hooks);

/* Releases everything. A zeroed one is fine. */
void allocate_release(struct allocation *a);

/*
 * The order of the experiments on this machine that want GPUs.
 *
 * A ticket is a lock file (proc/lock.h) in the folder "queue" below that of the locks. Its name is
 * a number, one more than the highest there; its content, the GPUs that would do for its owner.
 * Later experiments leave those alone while the earlier one waits, so that one that wants many is
 * not overtaken by many that want one. The ticket of a dead owner is not locked and does not count.
 *
 * Only one process at a time examines and takes GPUs: between queue_enter and queue_leave.
 */
struct queue {
	char *folder;              /* of locks */
	char *tickets;             /* of tickets, below it */
	struct lock mutex, ticket;
	unsigned long long number; /* of the ticket */
};

/*
 * Which GPUs an experiment may have, and which of the free ones it takes. Nothing is locked here.
 */
/* GPUs that would do, by their index in gpu_list. */
struct candidates {
	size_t *place;
	size_t n;
	bool is_named;       /* all of them are wanted, in this order */
	bool are_parts;      /* MIG: one for a server */
};

/*
 * The GPUs that r allows. -1 with e (ERR_USAGE) when it names one that is missing, not allowed, or
 * split. Caller frees place.
 */
int choose_candidates(const struct experiment_resources *r, const struct gpu_set *gpus,
		      struct candidates *c, struct err *e);

/* How many GPUs the experiment asks for, or its servers take. */
unsigned choose_wanted(const struct experiment *x);
/* The name of its lock file. */
void choose_lock_name(const struct gpu *g, char out[128]);
/* The name for people: "GPU 3", "GPU 1:0 (MIG 1g.10gb)". */
void choose_call(const struct gpu *g, struct buf *out);

/*
 * Why the GPU at this place is not free for r, as the end of a sentence that begins with the name
 * from choose_call; false: it is free. *may_pass: the only reason is its utilization, which drivers
 * report late.
 */
bool choose_is_busy(const struct experiment_resources *r, const struct gpu_set *gpus, size_t place,
		    struct buf *why, bool *may_pass);

/*
 * Moves the `want` best of n free places to the beginning of place, in ascending order: those with
 * the best links to each other, then those whose removal leaves the others' links whole, then the
 * lowest.
 */
void choose_best(const struct gpu_set *gpus, size_t *place, size_t n, size_t want);

/*
 * A TCP port that no other run of ours will take.
 *
 * It is reserved by a lock file of its own (proc/lock.h), then proved free by listening on it on
 * every address for a moment, which detects programs that do not know our locks. Between the proof
 * and the server's own listening such a program could still take it; the default range is below the
 * ports that the kernel uses for outgoing connections, so that none of those does.
 */
/* The default range: below the kernel's ephemeral ports. */
void port_range(unsigned *first, unsigned *last);

/*
 * A port from first to last that is free and not reserved; first == last: exactly that one. 0 with
 * *port and *l, which holds it; -1 with e that says who has it, or how many are taken.
 */
int port_take(const char *folder, unsigned first, unsigned last, const struct lock_holder *me,
	      unsigned *port, struct lock *l, struct err *e);
