/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halving.h - which of many candidates has the best value of a metric, for a part of the cost of
 * measuring all of them at full length: successive halving (Karnin, Koren and Somekh 2013; Jamieson
 * and Talwalkar 2016) that takes uncertainty into account.
 *
 *   round 0       all candidates, measured briefly
 *   later rounds  fewer, each measured about eta times as long, up to full length
 *   repeats       those that may still be the best, at least two, at full length again, on newly
 *                 started servers, because two starts of one server also differ
 *
 * The caller draws new requests for each round, the same ones for all candidates of it: short
 * rounds then add to what is known (values count by their length), and luck with one draw of
 * requests does not persist. At full length only full lengths count.
 *
 * The cut. Candidates are ordered by their value. The first ones, as many as the next round is for
 * (one in eta), stay; so does every one whose 95 % interval reaches the value of the last of these.
 * The budget limits both: those that reach the cut but exceed the budget are HALVING_FORCED, which
 * the caller reports. A short round may be wrong by more than its interval, because its load has
 * hardly begun when it ends; so HALVING_NEXT of the remaining budget is spent on each next round,
 * most of it where most candidates are. An interval is that of the run, combined with
 * HALVING_SCATTER for a restart of the server. A run too short for an interval is assumed to be off
 * by HALVING_UNKNOWN at most.
 *
 * The budget is a share of the time that load on all candidates at full length would take, and
 * seconds that include server starts. Both are estimated from the durations of rounds. With a
 * request rate, the load takes its pace plus a rest until the last answer that does not depend on
 * the length. Otherwise the time is proportional to the length, and estimates from short rounds are
 * corrected by comparing candidates that were also measured longer. Load on candidates that are out
 * counts. Starts do not count for the share: the first round needs one for each candidate in any
 * case.
 *
 * The caller measures and reports. Pure: no clock, no I/O, no allocation; the items are the
 * caller's. All values are above 0.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#define HALVING_ROUNDS_MAX 32
#define HALVING_LEAST 2        /* candidates in the last rounds */
#define HALVING_ETA 3.5
#define HALVING_SHARE 0.25
#define HALVING_REPEATS 4      /* of the last round */
#define HALVING_FIRST 12.0     /* full length divided by that of the first round, by default */
#define HALVING_NEXT 0.5       /* of the remaining budget, for the next round */
#define HALVING_MARGIN 0.85    /* planned part of the share: the total time is an estimate */
#define HALVING_MARGIN_KNOWN 0.95 /* once full lengths were measured, or if the load has a pace */
#define HALVING_UNKNOWN 0.4    /* half width of ln(value) for a run without an interval: 50 % */
#define HALVING_SCATTER 0.01   /* deviation of ln(value) between two starts of one server */

struct halving_opts {
	size_t n;              /* candidates, at least 1 */
	double eta;            /* above 1 */
	double full, first;    /* lengths in one unit, above 0; first at most full */
	unsigned repeats;      /* measurements at full length of the finalists, at least 1 */
	double pace_s;         /* seconds of load per unit of length; 0: the server's pace */
	double share;          /* of the load on all at full length; INFINITY: unlimited */
	double budget_s;       /* including starts; INFINITY: unlimited */
	bool is_highest;       /* the highest value is the best one */
};

enum halving_fate {
	HALVING_IN,            /* in the coming round, or in the last one */
	HALVING_BELOW,         /* its interval does not reach the cut */
	HALVING_FORCED,        /* may be better than the cut, but exceeds the budget */
	HALVING_OUT,           /* excluded by halving_out */
};

struct halving_item {
	enum halving_fate fate;
	unsigned round;        /* the last one that it was measured in */
	double value;          /* of that round; of several at full length the geometric mean */
	double half;           /* half width of the interval of ln value; INFINITY: unknown */
	double start_s, unit_s;/* latest measurement; unit_s: per unit of length */
	double rest_s;         /* of the load, beyond its pace */
	unsigned times;        /* at full length */
	double sum, weight;    /* of ln value by length: of all rounds, or only of full lengths */
	double squares;        /* of half widths at full length */
};

struct halving {
	struct halving_opts opts;
	struct halving_item *item;   /* opts.n */
	size_t *order;               /* opts.n: halving_order's */
	unsigned round, rounds;
	double length[HALVING_ROUNDS_MAX];
	size_t target[HALVING_ROUNDS_MAX]; /* planned number of candidates per round */
	double longer[HALVING_ROUNDS_MAX]; /* time per unit in a round, over that in the last */
	double spent_s, loaded_s;    /* loaded_s: without starts */
	double seen_s, expected_s;   /* of this round, per unit of length */
	bool is_over, is_cut_short;  /* cut short: by the budget, before the last round */
	/* Of the latest cut. */
	size_t kept, n_overlap, n_forced; /* n_overlap: of those kept, more than planned */
	double cut;                  /* value of the last planned candidate */
};

/* items, order: room for opts->n, filled here. */
void halving_begin(struct halving *h, const struct halving_opts *opts, struct halving_item *items,
		   size_t *order);

/* A measurement of a candidate that is HALVING_IN, at the round's length. */
struct halving_seen {
	double value;          /* above 0 */
	double half;           /* of the 95 % interval of ln value; INFINITY: unknown */
	double start_s, load_s;
};
void halving_tell(struct halving *h, size_t i, const struct halving_seen *seen);
/* Excludes a candidate that failed, broke a condition or is invalid; loaded_s: 0 without load. */
void halving_out(struct halving *h, size_t i, double start_s, double loaded_s);

/* Call when all that are in were reported: cuts and begins the next round. False: over. */
bool halving_next(struct halving *h);

/*
 * Fills order with the candidates from the best value down: first those of the last round, then of
 * earlier ones, without those that are out. Returns their number.
 */
size_t halving_order(const struct halving *h);
/* Estimated time of measuring all of them once at full length; NAN: unknown. */
double halving_full_s(const struct halving *h);
/* The load so far, as a share of the load on all of them once at full length. */
double halving_load_share(const struct halving *h);
