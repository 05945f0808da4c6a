/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/choose.h - which GPUs an experiment may have, and which of those that are free it
 * takes. Nothing is locked here (experiment/allocate.h).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "experiment/experiment.h"
#include "gpu/gpu.h"

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
