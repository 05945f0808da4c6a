/* SPDX-License-Identifier: Apache-2.0 */
/*
 * halving.h - which of many candidates has the best value of a metric, for a part of what measuring
 * all of them at full length would cost: successive halving (Karnin, Koren and Somekh 2013;
 * Jamieson and Talwalkar 2016) that respects what is not sure yet.
 *
 *   round 0       all candidates, measured briefly
 *   later rounds  fewer, each measured about eta times as long, up to full length
 *   repeats       those that may still be the best, at least two, at full length again: on servers
 *                 of their own, so that a difference can be distinguished from that of two server
  * starts
 *
 * The caller draws new requests for each round, the same ones for all candidates of it: short
 * rounds then add to what is known (values count by their length), and what one draw of requests
 * favours the next one does not. At full length only full lengths count.
 *
 * The cut. Candidates are ordered by their value. The first ones, as many as the next round is for
 * (one in eta), stay; so does every one whose 95 % interval reaches the value of the last of these.
 * The budget limits both: those that it has no room for and that reach the cut are HALVING_FORCED,
 * which the caller says. A short round may be wrong by more than its interval, because its
 * load has hardly begun when it ends; so HALVING_NEXT of what is left of the budget is spent on
 * each next round, most of it where most candidates are. An interval is that of the run, joined
 * with HALVING_SCATTER for a server that would be started again. A run too short for an interval is
 * supposed to be off by HALVING_UNKNOWN at most.
 *
 * The budget is a share of the time that load on all candidates at full length would take, and
 * seconds with the starts of servers. Both are known by what the rounds took. Where requests come
 * at a rate, the load takes its pace, and a rest until the last answer that is as long after a
 * short load as after a long one. Else it takes so many seconds for each unit of length, and what
 * short rounds suggest is corrected by what the same ones took when measured longer. Load on
 * candidates that are out counts. Starts are no part of the share: the first round needs one for
 * each candidate, whatever follows.
 *
 * The caller measures, and tells. Pure: no clock, no I/O, no allocation; the items are the
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
#define HALVING_FIRST 12.0     /* full length over that of the first round, unless it is given */
#define HALVING_NEXT 0.5       /* of what is left of the budget, for the next round */
#define HALVING_MARGIN 0.85    /* of the share is planned with: what all would take is estimated */
#define HALVING_MARGIN_KNOWN 0.95 /* once full lengths were measured, or if the load has a pace */
#define HALVING_UNKNOWN 0.4    /* half width of ln(value) where a run gives no interval: 50 % */
#define HALVING_SCATTER 0.01   /* deviation of ln(value) between two starts of one server */

struct halving_opts {
	size_t n;              /* candidates, at least 1 */
	double eta;            /* above 1 */
	double full, first;    /* lengths in one unit, above 0; first at most full */
	unsigned repeats;      /* measurements at full length of those that stay, at least 1 */
	double pace_s;         /* of the load, for each unit of length, however fast the server is,
				* as at a request rate; 0: the server sets the pace */
	double share;          /* of the load on all at full length; INFINITY: any */
	double budget_s;       /* with starts; INFINITY: none */
	bool is_highest;       /* the highest value is the best one */
};

enum halving_fate {
	HALVING_IN,            /* in the round that comes, or in the last one */
	HALVING_BELOW,         /* its interval does not reach the cut */
	HALVING_FORCED,        /* it may be better than the cut; the budget has no room for it */
	HALVING_OUT,           /* it cannot be the answer: halving_out */
};

struct halving_item {
	enum halving_fate fate;
	unsigned round;        /* the last one that it was measured in */
	double value;          /* of that round; of several at full length their geometric mean */
	double half;           /* half width of the interval of ln value; INFINITY: unknown */
	double start_s, unit_s;/* as measured last; unit_s: per unit of length */
	double rest_s;         /* of the load, beyond its pace */
	unsigned times;        /* at full length */
	double sum, weight;    /* of ln value by length: of all rounds, or of full lengths alone */
	double squares;        /* of half widths at full length */
};

struct halving {
	struct halving_opts opts;
	struct halving_item *item;   /* opts.n */
	size_t *order;               /* opts.n: halving_order's */
	unsigned round, rounds;
	double length[HALVING_ROUNDS_MAX];
	size_t target[HALVING_ROUNDS_MAX]; /* how many a round is for */
	double longer[HALVING_ROUNDS_MAX]; /* time per unit in a round, over that in the last */
	double spent_s, loaded_s;    /* loaded_s: without starts */
	double seen_s, expected_s;   /* seen, expected: of this round, per unit of length */
	bool is_over, is_cut_short;  /* cut short: by the budget, before the last round */
	/* Of the latest cut. */
	size_t kept, n_overlap, n_forced; /* n_overlap: of those kept, beyond the plan */
	double cut;                  /* value of the last of those that a round is for */
};

/* items, order: room for opts->n of them, filled here. */
void halving_begin(struct halving *h, const struct halving_opts *opts, struct halving_item *items,
		   size_t *order);

/* A measurement of a candidate that is HALVING_IN, with the length of the round. */
struct halving_seen {
	double value;          /* above 0 */
	double half;           /* of the 95 % interval of ln value; INFINITY: unknown */
	double start_s, load_s;
};
void halving_tell(struct halving *h, size_t i, const struct halving_seen *seen);
/* It failed, broke a condition or is not valid, after so long; loaded_s: 0 if it never got load. */
void halving_out(struct halving *h, size_t i, double start_s, double loaded_s);

/* Once all that are in have been told: cuts and begins the next round. False: it is over. */
bool halving_next(struct halving *h);

/*
 * Fills order with the candidates from the best value down: first those of the last round, then of
 * earlier ones, without those that are out. How many these are.
 */
size_t halving_order(const struct halving *h);
/* What measuring all of them once at full length would take, by what is known now; NAN: nothing. */
double halving_full_s(const struct halving *h);
/* What part of the load on all of them once at full length there was. */
double halving_load_share(const struct halving *h);
