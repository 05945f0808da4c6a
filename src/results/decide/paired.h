/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paired.h - is server B different from server A, decided while both are measured in turn.
 *
 * A pair is one block of load on A and one on B with the same prompts and the same arrival times; a
 * fair coin decides which comes first. The caller measures; this decides how long a block lasts,
 * which side begins, and after every pair whether to continue. The first pair warms the servers up
 * and is discarded.
 *
 * For each metric it computes d = ln(value of B's block) - ln(value of A's block). It may look
 * after every pair because its interval is anytime-valid: the mixture t-test with the right Haar
 * prior on the scale (Lai 1976; Rouder et al. 2009; Perez-Ortiz et al. 2024), g = 1. With mean m
 * and standard deviation s of n differences, nu = n - 1 and t2 = n (m - mu)^2 / s^2, the e-value
 * against a mean of mu is
 *
 *     ln e = -ln(1 + n g) / 2 + n / 2 (log1p(t2 / nu) - log1p(t2 / (nu (1 + n g))))
 *
 * and the interval has every mu whose e-value never reached 1 / alpha. It is infinite below five
 * pairs. "Larger" or "smaller" when it excludes 0, "no change above D" when it is within ln(1 + D)
 * of 0 on both sides.
 *
 * The test assumes independent normal differences. The coin makes them symmetric. Correlated
 * neighbours are detected and joined by 2 or 4 (paired_join); before there are enough pairs for
 * that, the interval is at alpha / PAIRED_EARLY. bench/ab.c shows what this costs and what it
 * protects from. When the interval of everything so far becomes empty, the difference moved during
 * the run and there is no verdict. A check that only assumes the coin is reported with the result
 * (Efron 1969; Howard et al. 2021): ln e = -ln(1 + rho V) / 2 + rho S^2 / (2 (1 + rho V)) with S
 * the sum and V the sum of squares of the d and rho = PAIRED_CHECK_RHO / D^2. It needs more pairs,
 * and stops nothing.
 *
 * If several metrics may stop the run, each gets alpha divided by their number, and the run
 * continues until all of them are settled. The others are reported with an interval at alpha.
 *
 * Everything is a plain value without memory of its own, a few kilobytes. No clock: the caller
 * reports the duration of a pair.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/rng/rng.h"

#define PAIRED_METRICS_MAX 16
#define PAIRED_PAIRS_MAX 100000   /* 12 days of pairs of 10 s */
#define PAIRED_ALPHA 0.05
#define PAIRED_EFFECT_MIN 0.03    /* D, as a share */
#define PAIRED_SD_MIN 1e-6        /* of d: smaller ones are replaced by it */
#define PAIRED_CHECK_RHO 0.2

enum paired_side { PAIRED_A, PAIRED_B };

/* ---- the blocks ---- */

struct paired_block {
	double length_s; /* of arrivals; then the side is drained */
	double warmup_s; /* requests that arrive in it are not counted */
};
/*
 * From the mean end-to-end time of a request and the request rate on one side (the slower one); 0
 * when unknown. Length: the longest of 10 s, 10 end-to-end times and the time for 100 requests;
 * warm-up: the longest of 2 s, a tenth of the block and 1.5 end-to-end times.
 */
struct paired_block paired_block(double e2el_mean_s, double requests_per_s);

/* ---- one anytime-valid interval ---- */

struct paired_interval {
	size_t n;
	double mean, squares;  /* of d, squares about the mean */
	double low, high;      /* intersection of the intervals after each d; low > high: empty */
};
void paired_interval_init(struct paired_interval *x);
void paired_interval_add(struct paired_interval *x, double d, double alpha);
double paired_interval_sd(const struct paired_interval *x); /* n - 1; at least PAIRED_SD_MIN */
/* Half the width after n differences of standard deviation sd; infinite if there is none. */
double paired_half(size_t n, double sd, double alpha);

/* ---- the run ---- */

struct paired_metric {
	int better;          /* +1: higher values are better, -1: lower ones, 0: neither */
	double effect_min;   /* D, as a share: 0.03 */
	bool is_judged;      /* the run continues until it is settled */
};

struct paired_opts {
	double alpha;            /* of all judged metrics together */
	struct paired_metric metric[PAIRED_METRICS_MAX];
	size_t n_metrics;        /* at least one of them is judged */
	double seconds_max;      /* INFINITY: no limit */
	uint32_t pairs_max;      /* measured ones; 1 to PAIRED_PAIRS_MAX */
	/*
	 * How many neighbours are joined: 1, 2 or 4 throughout, with alpha from the first pair on;
	 * 0: by their correlation, as described above.
	 */
	uint32_t join;
	uint64_t seed;           /* of the coin */
};

/* The measurements of a pair; [0] is A. */
struct paired_pair {
	double value[2][PAIRED_METRICS_MAX]; /* above 0; NAN: not available */
	double seconds;                      /* both blocks with their draining */
	uint64_t requests[2], failed[2];     /* counted requests */
	uint64_t output_tokens[2];           /* of those that succeeded */
};

enum paired_next {
	PAIRED_GO_ON,
	PAIRED_STOP_SETTLED,   /* every judged metric */
	PAIRED_STOP_FAILING,   /* more than PAIRED_FAILED_STOP of a side's requests failed */
	PAIRED_STOP_MISSING,   /* a judged metric had no value in PAIRED_MISSING_STOP pairs */
	PAIRED_STOP_TIME,      /* the next pair would end after seconds_max */
	PAIRED_STOP_PAIRS,
};

#define PAIRED_FAILED_STOP 0.1
#define PAIRED_MISSING_STOP 3
/*
 * With more failures than this on either side, or answers whose lengths differ by more than this,
 * the two sides did different work and are not comparable.
 */
#define PAIRED_FAILED_SHARE 0.001
#define PAIRED_FAILED_MIN 3           /* fewer failures are always tolerated */
#define PAIRED_TOKENS_CHANGE 0.05

#define PAIRED_JOINS 3                /* by 1, 2 and 4 */
struct paired_track {
	struct paired_interval joined[PAIRED_JOINS];
	double waiting[PAIRED_JOINS];     /* sum of differences not yet joined */
	double first, last;               /* d of the first and the last pair */
	double sum, products;             /* of d - first: sum, and of neighbours' products */
	double check_sum, check_squares, check_ln_e_max;
	size_t n, missing;
};

struct paired {
	struct paired_opts opts;
	struct pcg64 coin;
	bool is_tossed;
	uint32_t pairs;                   /* measured, without the first */
	bool is_warm;                     /* the first pair was discarded */
	double seconds, seconds_warm;     /* of the measured pairs; of the first */
	uint64_t requests[2], failed[2], output_tokens[2];
	struct paired_track track[PAIRED_METRICS_MAX];
};

void paired_init(struct paired *p, const struct paired_opts *opts);
/* Tosses the coin: which side begins the next pair. Call once before each paired_add. */
enum paired_side paired_toss(struct paired *p);
/* Only after PAIRED_GO_ON: a run that stopped is over. */
enum paired_next paired_add(struct paired *p, const struct paired_pair *pair);

/*
 * How many neighbours are joined when n differences have the lag-1 correlation r: 1 below
 * PAIRED_JOIN_FROM differences; then, by r + (1 + 4 r) / n, which corrects the bias of r in short
 * series (Marriott and Pope 1954), 2 above PAIRED_JOIN_2 and 4 above PAIRED_JOIN_4.
 */
#define PAIRED_JOIN_FROM 16
#define PAIRED_JOIN_2 0.15
#define PAIRED_JOIN_4 0.3
#define PAIRED_EARLY 4                /* alpha is divided by this below PAIRED_JOIN_FROM */
unsigned paired_join(size_t n, double r);

enum paired_verdict {
	PAIRED_UNDECIDED,
	PAIRED_BETTER, PAIRED_WORSE,
	PAIRED_DIFFERENT,      /* the metric has no better direction */
	PAIRED_NO_CHANGE,      /* above D */
	PAIRED_MOVED,          /* the difference changed during the run */
	PAIRED_FAILED,         /* not comparable: too many failures on a side */
	PAIRED_OTHER_WORK,     /* not comparable: the answers' lengths differ */
	PAIRED_NO_VALUES,
};

/* Shares: 0.03 is B 3 % larger than A. */
struct paired_result {
	enum paired_verdict verdict;
	bool is_below;             /* differs, but the whole interval is within D */
	double change, low, high;  /* geometric mean, but inside its interval; infinite: unknown */
	double level;              /* of the interval: 0.95 */
	double sd;                 /* of ln ratios of single pairs; NAN below two */
	size_t pairs, missing;     /* with and without a value */
	unsigned joined;           /* neighbours joined: 1, 2, 4 */
	double correlation;        /* lag-1, of d; NAN below three pairs */
	double check_e;            /* largest e-value of the coin-only check so far */
	bool is_confirmed;         /* that check alone also shows a difference */
	/*
	 * Total number of pairs that would settle it with the current mean and scatter; 0: more
	 * than PAIRED_PAIRS_MAX, or too early to say.
	 */
	size_t pairs_needed;
};
void paired_result(const struct paired *p, size_t metric, struct paired_result *out);
