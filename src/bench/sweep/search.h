/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.h - upstream's two searches for the largest load within its limits, by asking for one
 * level after another. Pure: it gets the results of levels and never runs anything.
 *
 * Levels are whole numbers from 1 to max; max means infinite load and is always measured first,
 * because its throughput says where to look. More load is assumed to be worse: a level that passes
 * above one that fails is noted (is_monotone) and otherwise accepted.
 *
 *   bisect       upstream's first recipe: from the throughput at infinite load double until a
 *                level fails, then halve (sweep spec 7.6, v1)
 *   interpolate  upstream's second: the root of a monotone cubic through all margins (v2)
 *
 * Both end when the bracket is one level wide, or no wider than tolerance times its upper end.
 *
 * Our own search is decide/capacity.h, which sweep/find.h applies to servers.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/sweep/sla.h"
#include "core/base/limits.h"

enum search_kind { SEARCH_BISECT, SEARCH_INTERPOLATE };
extern const char *const search_kinds[]; /* their names, NULL at the end */

struct search_opts {
	enum search_kind kind;
	int64_t max;      /* 2 and more */
	double tolerance; /* relative; 0: exact */
};

/* A level's result, over its runs. */
struct search_verdict {
	bool passes;
	bool is_by_failures; /* nothing but the share of failed requests is beyond its limit */
	double margin;   /* the largest of its limits' (sla_margin of the means), of that share
			    only where it is broken: it has no unit in common with the others */
	double gap;      /* the same of sla_gap */
	double estimate; /* of the level that saturates: its throughput, or load in flight */
	unsigned runs;
};

enum search_end {
	SEARCH_FOUND,       /* passing and failing are neighbours, or near enough */
	SEARCH_NONE_PASSES, /* not even 1 */
	SEARCH_ALL_PASS,    /* even max */
	SEARCH_UNDECIDED,   /* ended before: levels ran out, or search_next was not asked on */
};
extern const char *const search_ends[]; /* "found", "none_passes", "all_pass", "undecided" */

struct search_outcome {
	enum search_end end;
	int64_t passing;   /* the largest that passed; 0: none */
	int64_t failing;   /* the smallest above it that failed; 0: none */
	unsigned levels, runs;
	bool is_monotone;
};

struct search_point {
	int64_t level;
	struct search_verdict v;
};

struct search {
	struct search_opts o;
	struct search_point point[SEARCH_LEVELS_MAX]; /* ascending */
	size_t n;
	unsigned levels, runs;
};

void search_init(struct search *s, const struct search_opts *o);
/* The next level to measure; false: the search has ended. Asking twice gives the same level. */
bool search_next(const struct search *s, int64_t *level);
void search_tell(struct search *s, int64_t level, const struct search_verdict *v);
struct search_outcome search_outcome(const struct search *s);

/*
 * The verdict of a level: compares its limits with the means over its runs, as upstream does.
 * value[run * sla->n + limit]; at least one run.
 */
struct search_verdict search_judge(const struct sla *sla, const double *value, unsigned runs);

/*
 * Following the boundary: which level comes next when the limits are checked in short windows, and
 * what the capacity seems to be meanwhile. Pure.
 *
 * Stochastic approximation (Robbins and Monro 1951) with a constant step, so that it follows a
 * capacity that drifts: after each window the estimate moves by a share (HOVER_STEP) of its gap
 * (sweep/sla.h), as if gaps grew in proportion to the load, never by more than HOVER_MOVE_MAX. It
 * always moves up after a window that passed and down after one that failed.
 */

#define HOVER_STEP 0.4
#define HOVER_MOVE_MAX 0.2   /* of a window, as a logarithm: 22 % */
#define HOVER_MOVE_MIN 0.002

struct hover {
	double capacity; /* the estimate, a level */
	int64_t max;
};

void hover_init(struct hover *h, double capacity, int64_t max);
/* The level of the next window. */
int64_t hover_level(const struct hover *h);
void hover_tell(struct hover *h, double gap, bool passes);
