/* SPDX-License-Identifier: Apache-2.0 */
/*
 * metrics/trust.h - whether the numbers of a run can be believed, and why not.
 *
 * A verdict with its reasons, each one sentence with the value and the limit.
 * VALID: nothing to say against the numbers. DEGRADED: they are probably right
 * but read the reasons. INVALID: do not quote them. The limits below are the
 * whole policy; docs/metrics.md says why each stands where it does.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "metrics/metrics.h"

#define TRUST_SKEW_SHARE 0.10        /* of the median ITL (else E2EL), p99 skew: degraded */
#define TRUST_SKEW_FLOOR_MS 0.1      /* skew below this never counts */
#define TRUST_LAG_FLOOR_MS 1.0       /* send lag below this never counts */
#define TRUST_LAG_SHARE 0.10         /* of the mean time between arrivals (rate inf: of E2EL) */
#define TRUST_SHARED_DEGRADED 0.001  /* share of events that share a read */
#define TRUST_SHARED_INVALID 0.05
#define TRUST_CPU_DEGRADED 0.80      /* CPU share of the busiest loop */
#define TRUST_CPU_INVALID 0.95
#define TRUST_USAGE_SHARE 0.01       /* requests whose tokens are not their events' */
#define TRUST_FAILED_DEGRADED 0.01
#define TRUST_FAILED_INVALID 0.50
#define TRUST_UNSTAMPED_SHARE 0.01   /* reads without a kernel stamp */
#define TRUST_CACHED_SHARE 0.10      /* of the prompt tokens, cached without a reason in the run */
#define TRUST_CLOCK_STEP_NS 1000000  /* realtime against monotonic, from start to stop */

enum trust_verdict { TRUST_VALID, TRUST_DEGRADED, TRUST_INVALID };

/* What the driver saw of itself; zeroed means nothing to complain about. */
struct trust_facts {
	double cpu_share_max;        /* 0..1 of the busiest loop; 0: unknown */
	uint64_t reads, reads_without_stamp;
	int64_t clock_step_ns;       /* how far CLOCK_REALTIME moved against CLOCK_MONOTONIC */
	bool is_kernel_stamped;      /* one stamp was seen when the run began */
	bool is_interrupted;
	bool is_aborted;             /* a limit of failures was reached */
	bool is_broken_off;          /* the record file has no end */
	/*
	 * Of the prompt tokens, the share that a prefix cache can have held that was empty when
	 * the program began: what prompts have in common with earlier ones of the same run,
	 * ready check and warm-ups among them. Meaningless unless known.
	 */
	bool knows_explained;
	double cached_explained;
};

#define TRUST_REASONS_MAX 16
struct trust_reason {
	enum trust_verdict level;    /* what this reason alone would give */
	const char *code;            /* stable short name, for programs */
	char text[240];
};
struct trust {
	enum trust_verdict verdict;
	struct trust_reason reason[TRUST_REASONS_MAX];
	size_t n_reasons;
};

void trust_judge(struct trust *t, const struct metrics *m, const struct trust_facts *facts);
const char *trust_name(enum trust_verdict v); /* "VALID", ... */
