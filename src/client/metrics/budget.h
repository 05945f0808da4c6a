/* SPDX-License-Identifier: Apache-2.0 */
/*
 * budget.h - the error budget: how far the numbers of a run can be wrong because of the client.
 *
 * A calibration (bench/serve/calibrate.h) drives the simulator on this machine as the run drove its
 * server: as many streams, as many events a second, the same kind of stamps, threads and TLS. It
 * consists of short rounds, each a small run of its own. What a round got wrong is known from the
 * simulator's truth file (oracle.h). How the rounds differ among themselves says how far the error
 * of one more run can be from theirs: the interval is Student's prediction interval for one more
 * value, taken of the logarithms, because errors are above zero and what disturbs a machine
 * multiplies them. It is computed for BUDGET_COMPUTED of all runs so that BUDGET_LEVEL of them are
 * covered although the errors follow no exact law; bench/budget counts how many are.
 *
 * A longer run is like several rounds in a row: its mean, and about its p99, lie between those of
 * the rounds. A run shorter than a round is not covered, and a budget does not fit it.
 *
 * Rare disturbances (another program takes the processor for 10 ms) are seldom in a few seconds of
 * calibration, but they leave signs in the record of the run that they hit: late reads with several
 * events, requests whose writing took long. What such signs can be worth is subtracted from the
 * rounds, so that the interval is that of an undisturbed client, and added to its upper ends for
 * the run that is reported.
 *
 * Pure functions; times in milliseconds, unless the name says otherwise. Not here: whether the
 * numbers may be quoted (trust.h), which needs no calibration.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/metrics/oracle.h"
#include "client/record/record.h"
#include "core/base/err.h"
#include "core/base/str.h"

#define BUDGET_LEVEL 0.95           /* share of runs whose error is within the interval */
#define BUDGET_COMPUTED 0.99        /* see above */
#define BUDGET_ROUNDS 10            /* that count; one more comes before them and does not */
#define BUDGET_BEYOND 3             /* times the worst round: the bound of any interval */
/*
 * Rounds share a simulator, its place in memory and on the processors; the next run has another
 * server. So the logarithms differ by at least this (standard deviation).
 */
#define BUDGET_SD_LEAST 0.15
#define BUDGET_FLOOR_MS 0.0005      /* smaller errors count as this much: no stamp is better */
#define BUDGET_BAND 1.5             /* allowed ratio of streams and of event rate to the budget's */
#define BUDGET_AGE_MAX_S 86400      /* a stored budget is used for a day */
#define BUDGET_ROUND_S 0.4          /* length of a round's answers */
#define BUDGET_ROUND_REQUESTS 8     /* at least, if the run has as many */
#define BUDGET_ROUND_EVENTS 60000   /* at most, over all streams */
#define BUDGET_TTFT_MS 20           /* of the simulator, while it calibrates */

/* The stamps that a run's numbers are made of. */
#define BUDGET_STAMPS(X) X(KERNEL, "kernel") X(USER, "user") X(TAP, "tap")
#define X(name, text) BUDGET_##name,
enum budget_stamps { BUDGET_STAMPS(X) BUDGET_STAMPS_COUNT };
#undef X
const char *budget_stamps_name(uint32_t stamps); /* NULL: no such number */

/* What determines the client's error. */
struct budget_level {
	uint32_t streams;       /* most requests in flight at once */
	double events_per_s;    /* of one stream, during its answer */
	uint32_t requests;      /* that succeeded */
	uint32_t events;        /* of an answer, on average */
	uint32_t threads;
	uint32_t stamps;        /* enum budget_stamps */
	bool is_burst;          /* all requests are due at once; a cap may hold them back */
	bool is_tls;
};

/* Largest effect that the disturbances visible in a record can have had. */
struct budget_signs { double ttft, e2el, itl; }; /* to the means, and to the p99 of ITL */

struct budget_error {
	double mean, p99;       /* of one round, their median over the rounds */
	double low, high;       /* of the mean (ITL: of the p99) of one more run */
};
struct budget {
	struct budget_level level;        /* requests and events: of a round */
	uint32_t rounds;                  /* 0: no budget */
	struct budget_error ttft, itl, e2el;
	double send, kernel, late;        /* parts of ttft.mean, which is their sum */
	struct budget_signs signs;        /* of the reported run; in the upper ends */
	int64_t at_ns;                    /* CLOCK_REALTIME of the calibration */
	bool is_kept;                     /* measured by an earlier run */
};

/*
 * The level of a run, from the successes of its main phase; what the record does not contain
 * (threads, stamps, is_burst, is_tls) is left unchanged. ERR_RUN: nothing can be calibrated, such
 * as answers of one event.
 */
int budget_level_of(const struct record *r, struct budget_level *out, struct err *e);

/* The shape of a calibration round for a run of that level. */
struct budget_shape {
	uint32_t requests, events;
	uint32_t cap;           /* most in flight; 0: no cap */
	double rate;            /* requests/s, Poisson; INFINITY: all at once */
	double itl_ms;
	double seconds;         /* approximate, of all rounds */
};
struct budget_shape budget_shape(const struct budget_level *level);

/*
 * Of the successes among n rows from `first` on:
 *   ttft  mean over them of how much longer writing the request took than usual (the median), and
 *         of the mean gap for each event that came in the first event's late read
 *   e2el  the first of the two
 *   itl   p99 over all gaps of | gap - median gap | where the gap is before or within a late read
 *         with several events, 0 elsewhere
 * Late is what the verdict calls late: METRICS_LATE_SHARE of the median gap.
 */
struct budget_signs budget_signs(const struct record *r, uint32_t first, uint32_t n);

/*
 * The errors of one round. A closed loop begins with as many requests at once as its cap allows,
 * and each later one begins when another has ended: means are kept for the first ones and the later
 * ones separately, because longer runs have more of the second kind.
 */
struct budget_part { double mean, sign; }; /* mean NAN: there were none */
struct budget_round {
	struct budget_part ttft_first, ttft_later, e2el_first, e2el_later, itl; /* itl: its p99 */
	double ttft_p99, e2el_p99, itl_mean;
	double send, kernel;    /* means of TTFT's parts; the rest is late */
};
/*
 * errors: of that round alone, in the order of its rows, at least one request and one gap; itl and
 * stamp are sorted here. The first n_first requests came at once (0: all are of one kind). Its rows
 * begin at first_row.
 */
struct budget_round budget_round(struct oracle_errors *errors, const struct record *r,
				 uint32_t first_row, uint32_t n_first);
/*
 * Fills all but level, at_ns, signs and is_kept, from at least two rounds. first_share: of the
 * run's requests, those that came first; 1 where all are of one kind.
 */
void budget_of_rounds(struct budget *b, const struct budget_round *v, size_t n,
		      double first_share);
/* Adds the run's own signs to the upper ends; call once. */
void budget_add_signs(struct budget *b, const struct budget_signs *s);

/*
 * Student's prediction interval for one more value, given n >= 2 values: low to high with
 * probability `level`; see above. Values below `floor` count as floor, and a standard deviation of
 * the logarithms below sd_least as sd_least.
 */
void budget_predict(const double *v, size_t n, double level, double floor, double sd_least,
		    double *low, double *high);

/* Whether the budget applies to a run of that level. */
bool budget_fits(const struct budget *b, const struct budget_level *run);

/* ---- kept ones ---- */

/* One JSON object; machine and build identify what was measured. */
void budget_write(const struct budget *b, const char *machine, const char *build, struct buf *out);
enum budget_kept { BUDGET_USABLE, BUDGET_OLD, BUDGET_FOREIGN, BUDGET_DAMAGED };
/* Sets is_kept. OLD: above BUDGET_AGE_MAX_S or in the future. FOREIGN: other machine or build. */
enum budget_kept budget_read(struct budget *b, struct str text, const char *machine,
			     const char *build, int64_t now_ns);
