/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trust.h - whether the numbers of a run can be trusted, metric by metric, and why not.
 *
 * Doubt belongs to a metric: late reads spoil ITL but not throughput. Each reason is one sentence
 * with its value and its limit, and lists the metrics it spoils; a metric's verdict is the worst
 * level among the reasons that spoil it, and the overall verdict is the worst of all. VALID: no
 * reason against the numbers. DEGRADED: read the reasons before quoting them. INVALID: do not quote
 * them. A reason of level VALID is a note: it explains, and spoils nothing.
 *
 * The limits below and the table in trust.c (which reason spoils what) are the whole policy;
 * docs/metrics.md explains each. bench/client_error checks it against the simulator's truth file,
 * and bench/fault spoils runs on purpose, each of which must be detected.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/metrics/metrics.h"
#include "core/schema/schema.h"

/* User-space stamps: p99 of what they add to a metric, as a share of the metric's median. */
#define TRUST_SKEW_SHARE 0.10
#define TRUST_SKEW_FLOOR_MS 0.1      /* below this a delay never counts */
#define TRUST_LAG_FLOOR_MS 1.0       /* send lag below this never counts */
#define TRUST_LAG_SHARE 0.10         /* of the mean time between arrivals (rate inf: of E2EL) */
#define TRUST_LAG_THROUGHPUT 0.05    /* of the duration (closed loop: of the slots' time), lost */
#define TRUST_STALL_SHARE 0.10       /* of the median TTFT: p99 of writing a small request */
/*
 * Share of events that share a read because the client was late. Each spoils the gap before it
 * and the one after it, so up to the first limit less than 1 % of the gaps are wrong.
 */
#define TRUST_SHARED_DEGRADED 0.004
#define TRUST_SHARED_INVALID 0.05
/* Of the median TTFT and TPOT: p99 of what late first reads add to TTFT and remove from TPOT. */
#define TRUST_FIRST_SHARE 0.10
#define TRUST_CPU_NOTE 0.80          /* CPU share of the busiest loop, without busy waiting */
#define TRUST_CPU_INVALID 0.95
#define TRUST_WAIT_NOTE 0.10         /* of the run that a ready loop waited for a CPU */
#define TRUST_THROTTLED_NOTE 0.01    /* of the run, stopped by a CPU quota */
#define TRUST_RESERVE_NOTE 0.80      /* of the local ports, or of the descriptors, in use */
#define TRUST_RESENT_SHARE 0.01      /* segments sent again per request */
#define TRUST_EARLY_SHARE 0.004      /* segments that came before an earlier one, per event */
#define TRUST_CAPTURE_LOST 0.01      /* requests of which a capture has only a part */
#define TRUST_CONNECT_SHARE 0.10     /* of the median TTFT: p99 of opening a connection; */
#define TRUST_CONNECT_REQUESTS 0.01  /* share of requests that opened one */
#define TRUST_RESOLVE_NOTE_MS 500.0  /* looking up a host's name */
#define TRUST_START_P 0.001          /* of the test whether the first requests are like the rest */
#define TRUST_START_RATIO 1.5        /* median TTFT of the first over that of the rest, and */
#define TRUST_START_MEAN 0.05        /* mean TTFT is this much longer because of them, or */
#define TRUST_START_SHARE 0.01       /* they are more than this share, so they determine p99 */
#define TRUST_USAGE_SHARE 0.01       /* requests whose token count differs from their events */
#define TRUST_FAILED_DEGRADED 0.01
#define TRUST_FAILED_INVALID 0.50
#define TRUST_GAPS_SHARE 0.10        /* of the tokens after the first: more, or fewer, gaps */
#define TRUST_CANCELLED_SHARE 0.05   /* requests that the end of the run cut off */
#define TRUST_UNSTAMPED_SHARE 0.01   /* reads without a kernel stamp */
#define TRUST_CACHED_SHARE 0.10      /* of the prompt tokens, cached without a reason in the run */
#define TRUST_CLOCK_STEP_NS 1000000  /* realtime against monotonic, from start to stop */
#define TRUST_STEP_SHARE 0.01        /* of the duration: above it, throughput is also wrong */
/* Mean requests in flight of a closed loop over --max-concurrency: DEGRADED below ... */
#define TRUST_SLOTS_DEGRADED 0.80    /* in a run of few requests for each slot, */
#define TRUST_SLOTS_DEGRADED_LONG 0.50 /* in one of at least ... */
#define TRUST_SLOTS_ROUNDS 3         /* requests for each slot; */
#define TRUST_SLOTS_NOTE 0.90        /* a note below this */
#define TRUST_SLOTS_ENOUGH 10        /* requests for each slot, recommended */
#define TRUST_HELD_SHARE 0.10        /* of mean TTFT, mean E2EL: the wait in the client */
#define TRUST_NOT_CARRIED 0.05       /* share of arrivals without an answer: the queue grows */
#define TRUST_END_NOTE 0.20          /* share of an open loop's duration after its last request */
#define TRUST_QUEUE_GROWTH 1.5       /* median TTFT of the last third over the first */
#define TRUST_QUEUE_P 0.001          /* of the test whether both thirds are alike */
#define TRUST_ANSWERS_SHARE 0.01     /* of the answers: role first, or not as long as asked for */
#define TRUST_COUNT_DEGRADED 0.01    /* difference of reported tokens and the best known count */
#define TRUST_COUNT_INVALID 0.10
#define TRUST_IGNORED_ANSWERS 5      /* least number of constrained answers; most that comply: */
#define TRUST_IGNORED_SHARE 0.2
#define TRUST_CUT_SHARE 0.1          /* of the constrained answers: cut off at their length */
#define TRUST_AT_ONCE_ANSWERS 5      /* least number in one piece, or all; and their share: */
#define TRUST_AT_ONCE_INVALID 0.10
#define TRUST_ROLE_INVALID 1.5       /* mean time to the first content over the mean TTFT */

enum trust_verdict { TRUST_VALID, TRUST_DEGRADED, TRUST_INVALID };

/* The metrics with a verdict of their own. */
#define X(name, key) TRUST_##name,
enum trust_metric { SCHEMA_JUDGED(X) TRUST_METRIC_COUNT };
#undef X
#define TRUST_BIT(metric) (1u << (metric))
#define TRUST_EVERYTHING (TRUST_BIT(TRUST_METRIC_COUNT) - 1)

/* The driver's own measurements; zeroed means no complaint. */
struct trust_facts {
	double cpu_share_max;        /* 0..1 of the busiest loop; 0: unknown */
	uint64_t reads, reads_without_stamp;
	int64_t clock_step_ns;       /* how far CLOCK_REALTIME moved against CLOCK_MONOTONIC */
	double wait_share_max;       /* 0..1 of the run that a loop waited for a processor */
	double throttled_share;      /* 0..1 of the run that a CPU quota stopped the program */
	uint64_t connections_most;   /* open at once */
	uint64_t ports, descriptors; /* how many there can be; 0: unknown */
	uint64_t no_ports, no_descriptors; /* connections refused because one was missing */
	uint64_t resent, out_of_order; /* segments: ours sent again, theirs before an earlier one */
	int64_t resolve_ns;          /* the longest look-up of a host's name */
	bool is_kernel_stamped;      /* one stamp was seen when the run began */
	bool is_interrupted;
	bool is_aborted;             /* a limit of failures was reached */
	bool is_broken_off;          /* the record file has no end */
	uint64_t lost;               /* requests of processes that were lost (host/ranks/ranks.h) */
	/*
	 * Of the prompt tokens, the share that a prefix cache that was empty at the program's start
	 * can have held: what prompts have in common with earlier ones of the same run, including
	 * ready check and warm-ups. Only valid if known.
	 */
	bool knows_explained;
	double cached_explained;
	int64_t answers;     /* that each request asks for; not above 1: one */
	const char *told_by; /* the member that gave the server the constraints; NULL: none */
	/* Why segments had no stamps of their own, and what helps; may be NULL. */
	const char *no_tap;
	bool is_capture;     /* of another client: options of bench serve are no help */
	/* Of captured traffic: packets lost, requests that are unknown because of it, and */
	uint64_t capture_dropped, capture_lost;
	/* those with events counted as output tokens, and with unknown prompt tokens. */
	uint64_t capture_counted, capture_prompts;
};

#define TRUST_REASONS_MAX 48
struct trust_reason {
	enum trust_verdict level;    /* what this reason alone would give; VALID: a note */
	unsigned spoils;             /* TRUST_BITs; 0 for a note */
	const char *code;            /* stable short name, for programs */
	char text[320];
};
struct trust {
	enum trust_verdict verdict;  /* the worst of all metrics */
	enum trust_verdict metric[TRUST_METRIC_COUNT];
	unsigned absent;             /* TRUST_BITs of metrics that such requests do not have */
	struct trust_reason reason[TRUST_REASONS_MAX]; /* the worst first, notes last */
	size_t n_reasons;
};

void trust_judge(struct trust *t, const struct metrics *m, const struct trust_facts *facts);
const char *trust_name(enum trust_verdict v); /* "VALID", ... */
const char *trust_metric_key(enum trust_metric metric); /* "ttft", ... */
/* "ITL, TPOT" for people, into out; "every metric" for all. Returns out. */
#define TRUST_SPOILS_BYTES 128
const char *trust_spoils_text(unsigned spoils, char out[TRUST_SPOILS_BYTES]);
