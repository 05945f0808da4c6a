/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holds.h - what one level of load gave, and whether the server holds that load.
 *
 * A limit such as "p99 TTFT < 200 ms" says that at most 1 % of the requests may be slower, so a
 * level is judged by its count of slow requests: counts add up over levels, their variance is
 * known, and they exist for overloaded levels and unfinished requests. A failed request is slow
 * for every limit. Limits on means are judged by the means of batches.
 *
 * The tests of a level (carried, trend) are necessary and never sufficient: they refuse levels,
 * and prove nothing about the others. Constants: simulation on 120 modelled engines.
 *
 * Pure: no clock, no I/O, no allocation.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEVEL_LIMITS_MAX 17 /* of a search, with the one on failed requests */
#define LEVEL_BATCHES 20
#define LEVEL_BLOCKS 10

/* One attempted request of a level. Times are seconds since the level began. */
struct level_request {
	double due_s;        /* planned arrival, not when the client managed to send it */
	double end_s;        /* INFINITY: unfinished */
	double ttft_s;       /* NAN: no first token yet, or none ever */
	uint32_t slow;       /* bit j: breaks limit j */
	uint32_t open;       /* bit j: unfinished, and not known yet whether it breaks limit j */
	bool is_failed;      /* an error or a timeout: breaks every limit */
	/* One per limit, of those on means (NAN: it has none); NULL: there is no such limit. */
	const double *value;
};

/* A twentieth of the requests in order of their due times. */
struct level_batch {
	uint32_t n[LEVEL_LIMITS_MAX];    /* requests for which the limit is decided */
	uint32_t slow[LEVEL_LIMITS_MAX];
	double mean[LEVEL_LIMITS_MAX];   /* limits on means: of finished requests; NAN: none */
};

/* What a level gave after its warm-up. A caller may fill it without level_take. */
struct level {
	double load;           /* requests/s or requests at once */
	double warmup_s;       /* left out at the beginning */
	double hold_s;         /* from the end of the warm-up until no more requests were sent */
	double spent_s;        /* all time that the level took, with warm-up and draining */
	uint64_t requests;     /* sent, with those of the warm-up */
	uint64_t attempted, failed; /* after the warm-up */
	double e2e_s;          /* mean end-to-end time of finished requests; NAN: none */
	uint64_t due_late;     /* due in the second half of hold_s ... */
	uint64_t done_late;    /* ... and finished in it, whenever due; without failed ones */
	double ttft_s[LEVEL_BLOCKS]; /* mean TTFT of ten blocks of equal count */
	size_t blocks;         /* LEVEL_BLOCKS; 0: too few requests */
	size_t batches;        /* LEVEL_BATCHES; less with fewer requests */
	struct level_batch batch[LEVEL_BATCHES];
};

/*
 * Makes a level of n requests in order of due_s, for `limits` limits, when requests have been sent
 * for sent_s so far; those due before warmup_s are left out and those due after sent_s ignored.
 * What became of them may be known from later, after draining. Does not touch load, spent_s.
 */
void level_take(struct level *out, const struct level_request *r, size_t n, size_t limits,
		double warmup_s, double sent_s);
/* How much to leave out: least_s or three end-to-end times if more, at most half of sent_s. */
double level_warmup_s(const struct level_request *r, size_t n, double least_s, double sent_s);

struct level_count { double n, slow; };
struct level_count level_count(const struct level *l, size_t limit);

/*
 * How many times larger the variance of the slow count is than that of independent requests, by
 * the batches: sum (k_b - p n_b)^2 / (B - 1) / (p (1 - p) n / B), at least 1; 1 without slow
 * requests. LEVEL_DISPERSION_PRIOR joined in with its weight: level_dispersion_joined.
 */
#define LEVEL_DISPERSION_PRIOR 4.0
#define LEVEL_DISPERSION_WEIGHT 4.0
#define LEVEL_DISPERSION_COUNT_MAX 200.0 /* slow requests beyond these add no weight */
double level_dispersion(const struct level *l, size_t limit);
double level_dispersion_joined(const struct level *l, size_t limit);

/* Mean of the batch means and its standard error; NAN with fewer than two batches. */
struct level_mean { double mean, se; };
struct level_mean level_mean(const struct level *l, size_t limit);

/* ---- tests of a level ---- */

/*
 * False: the offered rate was not carried, completions + 2.33 sqrt(arrivals) < 0.95 of the
 * arrivals, of the second half. Sees nothing below 1.1 times saturation. Open loops only.
 */
bool holds_carried(const struct level *l);
/* Kendall's tau-a of n >= 2 values against their order; -1 to 1. */
double holds_tau(const double *x, size_t n);
/*
 * TTFT grows while the level runs: tau of the ten blocks above 0.6 and the mean of the last
 * three above 1.5 times that of the first three. False alarms below capacity: at most 2.3 %.
 */
bool holds_ttft_grows(const struct level *l);

/* ---- does it hold a fixed load? ---- */

enum holds { HOLDS_PASSES, HOLDS_FAILS, HOLDS_OPEN };

/*
 * P(K <= k) of a binomial distribution, also for counts that are not whole (the regularised
 * incomplete beta function in k and n). 0 < p < 1; k < 0 gives 0, k >= n gives 1.
 */
double holds_binomial_cdf(double k, double n, double p);

struct holds_answer {
	enum holds verdict;
	double share, phi;   /* of slow requests; the dispersion it was judged with */
	double p_above;      /* chance of a count this large or larger at exactly the limit */
	double p_below;      /* chance of a count this small or smaller */
	double requests_more; /* open: about so many decide; INFINITY: the share is the limit */
};

#define HOLDS_ALPHA 0.05
/*
 * slow of n requests against "at most 1 - quantile of all requests", 0 < quantile < 1, with
 * dispersion phi >= 1: passes or fails when the binomial tail of n / phi requests is below
 * HOLDS_ALPHA. Open with n = 0.
 */
struct holds_answer holds_share(double n, double slow, double phi, double quantile);
/* The same for a mean against its limit by Student's t over the batches; phi is 1. */
struct holds_answer holds_mean(const struct level *l, size_t limit, double value,
			       bool is_at_least);
