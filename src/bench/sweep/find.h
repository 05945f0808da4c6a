/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find.h - the largest load that a running server carries within limits: decide/capacity.h over
 * the pipeline of `bench serve`.
 *
 * Each step is one run_point with the options of `bench serve`. A level has prompts and arrivals of
 * its own (the seed is --seed + its number, and the prompts begin with a salt of its own, so that
 * no prefix cache holds them), admission is closed after the level's time, and the next level
 * begins when every request has ended. While a level runs its requests are looked at, so that one
 * that clearly fails is stopped and what it has in flight is cancelled.
 *
 *   probe        one request; a server that is not there is refused within seconds
 *   saturation   many prompts at once. If the server refuses some of them, fewer and fewer at once
 *                in a closed loop, until it takes them all; one at a time may be too
 *                much for a server that limits the rate
 *   drain        a level that has not ended long after its time is over is cancelled, and what is
 *                unfinished counts as slow where a limit has passed
 *
 * A level whose own verdict says that the client or a cache has spoilt what a limit is on is
 * measured again; three in a row end the search with that reason. A DEGRADED one counts, and the
 * answer says how many of the levels that it rests on were. When requests of a level lost
 * their connection, the server is asked for one more answer, so that a dead server ends the search
 * and is not taken for an overloaded one.
 */
#pragma once
#include "bench/serve/point.h"
#include "bench/serve/score.h"
#include "bench/sweep/slo.h"
#include "client/metrics/trust.h"
#include "core/base/str.h"
#include "core/json/write.h"

struct find_opts {
	int argc;              /* options of bench serve */
	char **argv;
	/* Or the options themselves, and which of them were given; NULL: argv. */
	const struct serve_opts *serve;
	const struct opt_result *given;
	struct slo slo;
	enum capacity_load load;
	double precision;      /* as in capacity_opts */
	double budget_s, level_s, load_min, load_max, failed_share;
};

struct find;
struct find_hooks {
	void *self;
	void (*warn)(void *self, const char *text);
	/* A step begins, ended; find->step is that step. May be NULL. */
	void (*begun)(void *self, const struct find *find);
	void (*ended)(void *self, const struct find *find);
	void (*progress)(void *self, enum point_stage stage, uint64_t done, uint64_t total,
			 const struct load_progress *load); /* of a step; may be NULL */
	const atomic_bool *cancel;
};

/*
 * The largest load to try: the caller's limit, and the number of connections that may be open; 0:
 * no limit.
 */
double find_load_max(const struct find_opts *o);

/* Measuring levels whose verdict doubts what a limit is on, other than by the load itself. */
struct find_doubts {
	unsigned degraded;              /* used */
	unsigned invalid;               /* measured again */
	const char *code;               /* of the last one's worst reason; NULL: none */
	char why[320];
};

struct find {
	const struct find_opts *opts;
	struct capacity_search *search; /* never NULL after find_run */
	struct capacity_step step;
	struct capacity_saturation saturation; /* requests 0: not measured */
	struct level level;             /* of the last level, and of the one at a time */
	unsigned runs;                  /* run_points so far */
	unsigned spoilt;                /* levels in a row that were not counted */
	char why_spoilt[320];
	struct find_doubts doubts;
	int64_t seed;
	enum salt_kind salt;
	char salt_key[SALT_KEY_BYTES + 1]; /* without a run's number; empty: no salt */
	char *model;                    /* as the server or the options say; NULL: never known */
	bool is_interrupted;
};

/*
 * 0: the search ended by itself or was interrupted; -1: it could not continue, and e says why. What
 * was measured by then is in out->search in any case, and e.code is ERR_USAGE when nothing was sent
 * because the options are wrong. find_release always.
 */
int find_run(const struct find_opts *o, const struct find_hooks *hooks, struct find *out,
	     struct err *e);
void find_release(struct find *f);

/*
 * Whether a reason is caused by the load itself, which is what is being measured, so it is not a
 * doubt.
 */
bool find_is_by_load(const struct trust_reason *reason);

/* "requests/s", "requests at once". */
const char *find_unit(enum capacity_load load);

/*
 * Fills a level, except its load and spent_s, from a measured and scored run whose requests were
 * sent for sent_s (INFINITY: all of the plan); at least warmup_s is left out. is_closed: requests
 * are due when they were sent and not by the plan.
 */
void find_level_of(const struct slo *slo, const struct point *p, const struct metrics *m,
		   bool is_closed, double warmup_s, double sent_s, struct level *out);

/*
 * The same while the run goes on, at_s after its beginning: what is due by then, from the rows that
 * may be read already.
 */
void find_level_now(const struct slo *slo, const struct run_sample *now, bool is_closed,
		    double warmup_s, double sent_s, double at_s, struct level *out);

struct find_load { double rate; uint32_t cap; double prompts; }; /* rate INFINITY, cap 0: none */

/* Prompts for a level: what falls due in its time, and some more. */
double find_prompts(const struct find *f, const struct capacity_step *s);

/* What many prompts at once have shown. */
struct find_saturated {
	double per_s, running; /* running: the most that the server said; NAN: nothing */
	bool is_cut;           /* it took too long */
	bool is_refused;       /* too many of them failed */
};
/* The next load to try so that the server is saturated and refuses nothing; false: found. */
bool find_next_saturation(const struct find_saturated *r, double last_per_s, struct find_load *l);
/*
 * Its requests/s, by Little's law at most what fits the time of one request without load: a client
 * that was stalled reads many completions as one burst.
 */
double find_carried_per_s(const struct capacity_saturation *m, double e2e_s);

/* Output of a search for the largest load (sweep/find.h): lines, JSON, a figure. */

/* A sentence about the search, before the first step. */
void find_tell_begin(const struct find_opts *o, struct buf *out);
/* A sentence about the step that has just ended; empty: nothing to say. */
void find_tell_step(const struct find *f, struct buf *out);
/* The expected further cost of the precision; empty while that is unknown. */
void find_tell_cost(const struct find *f, struct buf *out);
/* The answer, some lines with a newline each, also of a search that was interrupted. */
void find_tell_answer(const struct find *f, struct buf *out);
/*
 * Whether there is a capacity: a load with an interval. Otherwise the answer says why there is
 * none.
 */
bool find_has_answer(const struct find *f);
/* Members of an object: the answer, its limits, points and curve. */
void find_put(const struct find *f, struct json_writer *w);
/*
 * STEM.png with its script and table: the share of slow requests (or value / limit of a mean) of
 * the limit that binds, over the load, with levels, curve, limit and capacity. -1: it cannot be
 * drawn, e says why.
 */
int find_draw(const struct find *f, const char *stem, struct err *e);

/*
 * Whether a server holds the load of one measured run within limits: compares the share of slow
 * requests with what each limit allows (decide/capacity.h). Yes, no, or how many more requests are
 * needed.
 */

/*
 * Appends lines with a newline each to out. Also HOLDS_OPEN when the run's own verdict is about a
 * metric with a limit, and when TTFT still grows although no limit is broken yet.
 */
enum holds hold_tell(const struct slo *slo, const struct serve_opts *o, const struct point *p,
		     const struct scored *scored, struct buf *out);
