/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.h - the search for the largest load within limits, as a state machine that is given
 * measurements and says what to measure next. It never runs anything and reads no clock.
 *
 *   probe       one request: does the server answer
 *   unloaded    CAPACITY_UNLOADED requests one at a time: a limit broken here is never met
 *   saturation  many prompts at once: where to look (left out with has_saturation = false, then
 *               levels double from 1 until one fails)
 *   bracketing  short levels that stop as soon as they surely pass or fail; they only say where
 *               to look and do not enter the answer
 *   measuring   long levels on both sides of the crossing, chosen by what is known so far; one
 *               curve per limit goes through all of them (struct fit), and the limit whose
 *               curve crosses first binds. Levels here stop early only when they clearly fail:
 *               one that is stopped because it clearly passes misses the busy spell that comes late
 *
 * until the 95 % interval is as narrow as requested, or the budget is spent. An answer exists at
 * any time. The cost is counted in requests and not in seconds: at a p99 limit, 1,000 requests have
 * ten slow ones, and these come in clumps. Capacity is that of the measured server session.
 *
 * Failed requests break every limit, and there is always a limit on them (failed_share of all
 * requests), with the index `limits`, after the caller's last one. An open loop whose rate is not
 * carried while no limit is broken (no limit on TTFT) is bound by saturation, with the next index.
 * The server must be idle when a level begins.
 *
 * Limits must get harder with the load. A limit on the throughput of the whole system gets easier:
 * is_decreasing reports that. One thread; deterministic; allocates only in capacity_new.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_CROSSINGS 801
#define FIT_LEVELS_MAX 1024
#define FIT_COARSE 51
#define FIT_SLOPES 48
#define FIT_WIDEN 1.2
#define FIT_SLOPE_COUNTS 8.0 /* median of the prior; ln slope has deviation FIT_SLOPE_SD */
#define FIT_SLOPE_MEANS 2.0
#define FIT_SLOPE_SD 1.2
#define FIT_SLOPE_MIN 0.5
#define FIT_SLOPE_MAX 100.0
#define FIT_SLOPE_MIN_MEANS 0.1
#define FIT_FAR 3.75      /* logits above the limit from which a level is just "far" */
#define FIT_FAR_MEANS 0.7 /* the same of a mean: twice its limit */

struct fit_level {
	double x;       /* ln load */
	double n, slow; /* counts; of a mean: unused */
	double phi;     /* its own dispersion, at least 1 */
	double y, se;   /* of a mean: ln(value / limit), above 0 when broken; its error */
};

struct fit_opts {
	bool is_mean;
	double share;     /* counts: slow requests allowed, 0 < share < 1 */
	double low, high; /* ln load: where the crossing is first searched, low < high */
};

struct fit {
	double at, low, high; /* ln load: posterior median, 95 % interval */
	double least;         /* lower end by a quantile: for a lopsided posterior */
	double slope;         /* posterior median */
	double phi;           /* dispersion that was used */
	size_t levels;
};

/*
 * The contribution of a level to the log likelihood where the curve's argument is t. A level far
 * above the limit only shows that the curve is at least that far above it there: by how much does
 * not say where it crosses.
 */
struct fit_term {
	bool is_mean;
	double y, weight;   /* means: 1 / se^2 */
	double n, slow;
	double top, at_top; /* argument beyond which nothing changes (INFINITY: none); term there */
};

/* Scratch memory of a fit: 400 KB, provided by the caller, contents irrelevant. */
struct fit_grid {
	double surface[FIT_SLOPES][FIT_CROSSINGS];
	double coarse[FIT_SLOPES][FIT_COARSE];
	double marginal[FIT_CROSSINGS];
	struct fit_term term[FIT_LEVELS_MAX];
};

/*
 * Fits n levels, at most FIT_LEVELS_MAX; with n = 0 there is no curve. The range is widened while
 * the posterior reaches its ends.
 */
struct fit fit_levels(const struct fit_level *level, size_t n, const struct fit_opts *o,
		      struct fit_grid *g);
/* The share of slow requests, or value / limit of a mean, that the fit expects at ln load x. */
double fit_at(const struct fit *f, const struct fit_opts *o, double x);

/*
 * The measurements at one level of load, and whether the server holds that load.
 *
 * A limit such as "p99 TTFT < 200 ms" says that at most 1 % of the requests may be slower, so a
 * level is judged by its count of slow requests: counts add up over levels, their variance is
 * known, and they exist for overloaded levels and unfinished requests. A failed request is slow for
 * every limit. Limits on means are judged by the means of batches.
 *
 * The tests of a level (carried, trend) are necessary and never sufficient: they reject levels, and
 * prove nothing about the others. Constants: simulation on 120 modelled engines.
 *
 * Pure: no clock, no I/O, no allocation.
 */

#define LEVEL_LIMITS_MAX 17 /* of a search, including the one on failed requests */
#define LEVEL_BATCHES 20
#define LEVEL_BLOCKS 10

/* One attempted request of a level. Times are seconds since the level began. */
struct level_request {
	double due_s;        /* planned arrival, not when the client managed to send it */
	double end_s;        /* INFINITY: unfinished */
	double ttft_s;       /* NAN: no first token (yet) */
	uint32_t slow;       /* bit j: breaks limit j */
	uint32_t open;       /* bit j: unfinished, and it is unknown whether it breaks limit j */
	bool is_failed;      /* an error or a timeout: breaks every limit */
	/* One per limit on a mean (NAN: no value); NULL: there is no such limit. */
	const double *value;
};

/* A twentieth of the requests in order of their due times. */
struct level_batch {
	uint32_t n[LEVEL_LIMITS_MAX];    /* requests for which the limit is decided */
	uint32_t slow[LEVEL_LIMITS_MAX];
	double mean[LEVEL_LIMITS_MAX];   /* limits on means: of finished requests; NAN: none */
};

/* The measurements of a level after its warm-up. A caller may fill it without level_take. */
struct level {
	double load;           /* requests/s or requests at once */
	double warmup_s;       /* left out at the beginning */
	double hold_s;         /* from the end of the warm-up until no more requests were sent */
	double spent_s;        /* whole duration of the level, with warm-up and draining */
	uint64_t requests;     /* sent, including the warm-up */
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
 * Makes a level from n requests in order of due_s, for `limits` limits, after requests have been
 * sent for sent_s; those due before warmup_s are left out and those due after sent_s ignored. The
 * outcome of requests may be known from later, after draining. Does not touch load, spent_s.
 */
void level_take(struct level *out, const struct level_request *r, size_t n, size_t limits,
		double warmup_s, double sent_s);
/* The warm-up to leave out: least_s or three end-to-end times if more, at most half of sent_s. */
double level_warmup_s(const struct level_request *r, size_t n, double least_s, double sent_s);

struct level_count { double n, slow; };
struct level_count level_count(const struct level *l, size_t limit);

/*
 * How many times larger the variance of the slow count is than that of independent requests, from
 * the batches: sum (k_b - p n_b)^2 / (B - 1) / (p (1 - p) n / B), at least 1; 1 without slow
 * requests. level_dispersion_joined adds LEVEL_DISPERSION_PRIOR with its weight.
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
 * False: the offered rate was not carried: in the second half, completions + 2.33 sqrt(arrivals) <
 * 0.95 of the arrivals. Detects nothing below 1.1 times saturation. Open loops only.
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
	double share, phi;   /* of slow requests; the dispersion used */
	double p_above;      /* chance of a count this large or larger at exactly the limit */
	double p_below;      /* chance of a count this small or smaller */
	double requests_more; /* open: about this many decide; INFINITY: exactly at the limit */
};

#define HOLDS_ALPHA 0.05
/*
 * Judges slow of n requests against "at most 1 - quantile of all requests", 0 < quantile < 1, with
 * dispersion phi >= 1: passes or fails when the binomial tail of n / phi requests is below
 * HOLDS_ALPHA. Open with n = 0.
 */
struct holds_answer holds_share(double n, double slow, double phi, double quantile);
/* The same for a mean against its limit by Student's t over the batches; phi is 1. */
struct holds_answer holds_mean(const struct level *l, size_t limit, double value,
			       bool is_at_least);

/* ---- the search ---- */

#define CAPACITY_LIMITS_MAX (LEVEL_LIMITS_MAX - 1)
#define CAPACITY_LEVELS_MAX FIT_LEVELS_MAX
#define CAPACITY_UNLOADED 10
#define CAPACITY_FAILED_SHARE 0.01
#define CAPACITY_PRECISION 0.03
#define CAPACITY_BUDGET_S 1200.0
#define CAPACITY_LOAD_MAX 1e7
#define CAPACITY_LEVEL_S 60.0

enum capacity_load { CAPACITY_RATE, CAPACITY_CONCURRENCY };

struct capacity_limit {
	bool is_mean;      /* else: quantile of the requests must be within the limit */
	double quantile;   /* 0.99 for p99; 0 < quantile < 1 */
	double value;      /* of a mean: the limit, above 0, in the unit of level_batch.mean */
	bool is_at_least;  /* of a mean: at least value, such as tokens/s of one user */
};

struct capacity_opts {
	enum capacity_load load;
	struct capacity_limit limit[CAPACITY_LIMITS_MAX];
	size_t limits;         /* at least one */
	double precision;      /* half width of the interval as a share of the load; 0 < p < 1 */
	double budget_s;       /* above 0; INFINITY: none */
	double load_min, load_max; /* the caller's; 0: the search finds its own */
	/*
	 * Shortest measuring level, 0: CAPACITY_LEVEL_S; a bracketing one is a sixth of that. Less
	 * is only right for servers whose busy spells are correspondingly shorter.
	 */
	double level_s;
	double failed_share;       /* allowed, below 1; 0: CAPACITY_FAILED_SHARE */
	bool has_saturation;
};

enum capacity_ask {
	CAPACITY_PROBE, CAPACITY_UNLOADED_REQUESTS, CAPACITY_SATURATE, CAPACITY_LEVEL,
	CAPACITY_DONE,
};

struct capacity_step {
	enum capacity_ask ask;
	double load;         /* level: requests/s, or whole requests at once */
	double hold_s;       /* level: at most this long, warm-up included */
	double warmup_s;     /* level: leave out at least this (level_take) */
	double look_s;       /* level: first capacity_look after this time; INFINITY: never */
	uint64_t requests;   /* unloaded: how many; saturation: at least this many */
	bool is_bracketing;
};

/* The result of a look at a running level. */
enum capacity_look {
	CAPACITY_GO_ON,
	CAPACITY_STOP_DRAIN,  /* send no more and wait for what is in flight */
	CAPACITY_STOP_CANCEL, /* send no more and cancel what is in flight */
};

struct capacity_saturation {
	double per_s;     /* finished requests/s over the middle half of completions */
	double at_once;   /* requests that ran at once, from the server or estimated */
	double spent_s;
	uint64_t requests;
};

enum capacity_end {
	CAPACITY_RUNNING,
	CAPACITY_UNREACHABLE,    /* the probe got no answer */
	CAPACITY_BROKEN_UNLOADED, /* limits (broken) cannot be met even without load */
	CAPACITY_PRECISE,        /* the interval is as narrow as requested */
	CAPACITY_BUDGET,         /* the budget was spent first */
	CAPACITY_NONE_PASSES,    /* not even the smallest allowed load */
	CAPACITY_NEVER_CARRIED,  /* not even that, because no rate was carried */
	CAPACITY_ALL_PASS,       /* even load_max, or the largest possible load */
	CAPACITY_STOPPED,        /* capacity_stop */
};

struct capacity_answer {
	enum capacity_end end;
	bool has_interval;        /* load, low, high, binding, slope, slow_factor are valid */
	double load, low, high;   /* where the limit is crossed in an endless run; 95 % interval */
	double half_width;        /* (high - low) / 2 as a share of load */
	double safe;              /* for configuration: low; NAN: no measured load held */
	bool is_precise;
	size_t binding;           /* limits: failed requests; limits + 1: saturation */
	double slope;             /* of ln(slow odds) over ln(load); of a mean: of ln(value) */
	double slow_factor;       /* 5 % more load multiplies slow requests (or the mean) by this */
	double passing, failing;  /* bracket of the short levels; 0, INFINITY: none */
	uint32_t broken;          /* bit j: limit j is broken without load */
	uint32_t is_decreasing;   /* bit j: limit j is easier with more load: no capacity */
	unsigned levels, levels_near; /* measuring ones; those close enough for the last fit */
	uint64_t requests;        /* spent in total */
	double spent_s;
	double requests_more, seconds_more; /* forecast to reach the precision; NAN: unknown */
};

/* A measured level, for drawing curves. */
struct capacity_point {
	double load, spent_s;
	bool is_bracketing, has_passed, is_cut;
	bool is_carried;               /* and TTFT did not grow while the level ran: */
	bool is_growing;               /* it did, though as many were answered as arrived */
	uint64_t attempted, failed;
	struct fit_level limit[LEVEL_LIMITS_MAX]; /* n 0 (of a mean: se 0): unknown */
};

struct capacity_search;
/* Options are asserted: see above. Never NULL. */
struct capacity_search *capacity_new(const struct capacity_opts *o);
void capacity_free(struct capacity_search *s); /* NULL is fine */

/* Number of limits for level_take: the caller's and the one on failed requests. */
size_t capacity_limits(const struct capacity_search *s);

/* The next step; repeated calls return the same. */
struct capacity_step capacity_next(const struct capacity_search *s);

/* Each reports the result of the step of its name, once. spent_s counts against the budget. */
void capacity_tell_probe(struct capacity_search *s, bool is_answered, double spent_s);
void capacity_tell_unloaded(struct capacity_search *s, const struct level *l);
void capacity_tell_saturation(struct capacity_search *s, const struct capacity_saturation *m);
/*
 * l: the running level, from level_take at at_s after its beginning; *next_s: when to look again.
 * The first decision is final: after a stop the level must be reported with capacity_tell_level.
 */
enum capacity_look capacity_look(struct capacity_search *s, const struct level *l, double at_s,
				 double *next_s);
/* Reports the ended level; l has all its measurements. */
void capacity_tell_level(struct capacity_search *s, const struct level *l);
/* Ends the search: interrupted, or the server died. The running level is discarded. */
void capacity_stop(struct capacity_search *s);

struct capacity_answer capacity_answer(const struct capacity_search *s);
/* The levels in the order they were reported; *n of them, borrowed until the next tell. */
const struct capacity_point *capacity_points(const struct capacity_search *s, size_t *n);
/*
 * The fitted curve of a limit at a load: share of slow requests, or value / limit of a mean. NAN
 * before there is one.
 */
double capacity_curve_at(const struct capacity_search *s, size_t limit, double load);
