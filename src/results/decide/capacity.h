/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.h - the largest load within limits, as a state machine that is told what was
 * measured and says what to measure next. It never runs anything and reads no clock.
 *
 *   probe       one request: is anybody there
 *   unloaded    CAPACITY_UNLOADED requests one at a time: a limit broken here is never met
 *   saturation  many prompts at once: where to look (left out with has_saturation = false, then
 *               levels double from 1 until one fails)
 *   bracketing  short levels that stop as soon as they surely pass or fail; they only say where
 *               to look and do not enter the answer
 *   measuring   long levels on both sides of the crossing, chosen by what is known so far; one
 *               curve per limit goes through all of them (capacity_fit.h), and the limit whose
 *               curve crosses first binds. Levels here stop early only when they clearly fail:
 *               one that is stopped because it clearly passes misses the busy spell that comes late
 *
 * until the 95 % interval is as narrow as asked, or the budget is spent. An answer exists at any
 * time. The cost is counted in requests and not in seconds: at a p99 limit, 1,000 requests hold
 * ten slow ones, and these come in clumps. Capacity is of the server session that was measured.
 *
 * Failed requests break every limit, and there is always a limit on them (limits:
 * failed_share of all requests), whose index is that after the caller's last one. An
 * open loop whose rate is not carried while no limit is broken (no limit on TTFT) is bound by
 * saturation: index after that. The server has to be idle when a level begins.
 *
 * Limits must get harder with the load. One on the throughput of the whole system gets easier:
 * is_decreasing tells when that is seen. One thread; deterministic; allocates only in capacity_new.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "results/decide/capacity_fit.h"
#include "results/decide/holds.h"

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
	 * is right only for servers whose busy spells are as much shorter.
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
	double hold_s;       /* level: at most so long, from its beginning with the warm-up */
	double warmup_s;     /* level: left out at the least (level_take) */
	double look_s;       /* level: call capacity_look first after so long; INFINITY: never */
	uint64_t requests;   /* unloaded: how many; saturation: at least so many */
	bool is_bracketing;
};

/* What a look at a running level says. */
enum capacity_look {
	CAPACITY_GO_ON,
	CAPACITY_STOP_DRAIN,  /* send no more and wait for what is in flight */
	CAPACITY_STOP_CANCEL, /* send no more and cancel what is in flight */
};

struct capacity_saturation {
	double per_s;     /* finished requests/s over the middle half of completions */
	double at_once;   /* requests that ran at once, by the server or by what is known */
	double spent_s;
	uint64_t requests;
};

enum capacity_end {
	CAPACITY_RUNNING,
	CAPACITY_UNREACHABLE,    /* the probe got no answer */
	CAPACITY_BROKEN_UNLOADED, /* limits (broken) cannot be met even without load */
	CAPACITY_PRECISE,        /* the interval is as narrow as asked */
	CAPACITY_BUDGET,         /* the budget was spent first */
	CAPACITY_NONE_PASSES,    /* not even the smallest load that was asked */
	CAPACITY_NEVER_CARRIED,  /* likewise, because no rate was carried */
	CAPACITY_ALL_PASS,       /* even load_max, or all that could be asked */
	CAPACITY_STOPPED,        /* capacity_stop */
};

struct capacity_answer {
	enum capacity_end end;
	bool has_interval;        /* load, low, high, binding, slope, slow_factor are numbers */
	double load, low, high;   /* where the limit is crossed in an endless run; 95 % interval */
	double half_width;        /* (high - low) / 2 as a share of load */
	double safe;              /* to configure: low; whole at concurrency */
	bool is_precise;
	size_t binding;           /* limits: failed requests; limits + 1: saturation */
	double slope;             /* of ln(slow odds) over ln(load); of a mean: of ln(value) */
	double slow_factor;       /* 5 % more load multiplies slow requests (or the mean) by this */
	double passing, failing;  /* bracket of the short levels; 0, INFINITY: none */
	uint32_t broken;          /* bit j: limit j is broken without load */
	uint32_t is_decreasing;   /* bit j: limit j is easier with more load: no capacity */
	unsigned levels, levels_near; /* measuring ones; those close enough to enter the last fit */
	uint64_t requests;        /* spent, with everything */
	double spent_s;
	double requests_more, seconds_more; /* forecast to the precision asked for; NAN: unknown */
};

/* A level as it was told, for curves. */
struct capacity_point {
	double load, spent_s;
	bool is_bracketing, has_passed, is_carried, is_cut;
	uint64_t attempted, failed;
	struct fit_level limit[LEVEL_LIMITS_MAX]; /* n 0 (of a mean: se 0): nothing is known */
};

struct capacity_search;
/* Options are asserted: see above. Never NULL. */
struct capacity_search *capacity_new(const struct capacity_opts *o);
void capacity_free(struct capacity_search *s); /* NULL is fine */

/* How many limits level_take has to be given: the caller's and that on failed requests. */
size_t capacity_limits(const struct capacity_search *s);

/* What to do next; asking twice gives the same. */
struct capacity_step capacity_next(const struct capacity_search *s);

/* Each answers the step of its name, once. spent_s counts against the budget. */
void capacity_tell_probe(struct capacity_search *s, bool is_answered, double spent_s);
void capacity_tell_unloaded(struct capacity_search *s, const struct level *l);
void capacity_tell_saturation(struct capacity_search *s, const struct capacity_saturation *m);
/*
 * The state of the running level, level_take at at_s after its beginning; *next_s is when to look
 * again. What is said first stands: after a stop the level has to be told.
 */
enum capacity_look capacity_look(struct capacity_search *s, const struct level *l, double at_s,
				 double *next_s);
/* The level has ended; l holds all that is known of it. */
void capacity_tell_level(struct capacity_search *s, const struct level *l);
/* Ends the search: interrupted, or the server died. The level that runs is forgotten. */
void capacity_stop(struct capacity_search *s);

struct capacity_answer capacity_answer(const struct capacity_search *s);
/* Levels in the order they were told; *n of them, borrowed until the next tell. */
const struct capacity_point *capacity_points(const struct capacity_search *s, size_t *n);
/*
 * The fitted curve of a limit at a load: share of slow requests, of a mean value / limit. NAN
 * before there is one.
 */
double capacity_curve_at(const struct capacity_search *s, size_t limit, double load);
