/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/search.h - the largest load that keeps its limits, found by asking for one level after
 * another. Pure: it is told what a level gave and never runs anything.
 *
 * Levels are whole numbers from 1 to max; max stands for infinite load and is always asked first,
 * because its throughput says where to look. It is supposed that more load is worse: a level that
 * passes above one that fails is noticed (is_monotone) and otherwise believed.
 *
 *   bisect       upstream's first recipe: from the throughput at infinite load double until a
 *                level fails, then halve (sweep spec 7.6, v1)
 *   interpolate  upstream's second: the root of a monotone cubic through all margins (v2)
 *   fitted       ours: gaps (run/sla.h) over the logarithm of the level, smoothed to be monotone;
 *                the next level lies where the curve crosses 0, a step beyond it on the side where
 *                the bracket is wider. A bracket that does not halve in two levels is halved.
 *
 * All end when the bracket is one level wide, or no wider than tolerance times its upper end.
 *
 * struct settle decides how many runs one level needs: see there.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "run/sla.h"

enum search_kind { SEARCH_FITTED, SEARCH_BISECT, SEARCH_INTERPOLATE };
extern const char *const search_kinds[]; /* their names, NULL at the end */

struct search_opts {
	enum search_kind kind;
	int64_t max;      /* 2 and more */
	double tolerance; /* relative; 0: exact */
	double hint;      /* no more than this load fits, as far as is known; 0: nothing is known */
};

/* What a level gave, over its runs. */
struct search_verdict {
	bool passes;
	bool is_by_failures; /* nothing but the share of failed requests is beyond its limit */
	double margin;   /* the largest of its limits' (sla_margin of the means), of that share
			    only where it is broken: it has no unit in common with the others */
	double gap;      /* likewise (sla_gap) */
	double noise;    /* standard deviation of that gap's mean over runs; NAN: not known */
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
	double low, high;  /* where the limit is crossed, at the confidence asked for */
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
	double crossing;    /* fitted: what was thought before the last level; NAN: nothing */
	double width[3];    /* of the bracket now, one level and two levels ago */
};

void search_init(struct search *s, const struct search_opts *o);
/* The next level to measure; false: the search has ended. Asking twice gives the same level. */
bool search_next(const struct search *s, int64_t *level);
void search_tell(struct search *s, int64_t level, const struct search_verdict *v);
struct search_outcome search_outcome(const struct search *s, double confidence);

/* How far a level is from its limits: the fitted curve at it; NAN with fewer than two levels. */
double search_gap_at(const struct search *s, double level);

/*
 * When a level has been run often enough. A verdict is settled when every limit is (all hold) or
 * one that fails is:
 *   - by the level's own runs: Student's interval of their mean lies on one side of the limit;
 *   - far from it: the mean gap is larger than SETTLE_FAR times what the noise of all levels
 *     so far allows for, the quantile of t times their pooled standard deviation; while fewer
 *     than SETTLE_DF_MIN differences are known, larger than SETTLE_GAP.
 * Gaps are logarithms, so noise is taken as a share of the value.
 */
#define SETTLE_FAR 1.5
#define SETTLE_GAP 0.5
#define SETTLE_DF_MIN 2

struct settle {
	double confidence; /* 0.95 */
	struct { double squares; unsigned df; } pool[SLA_ALL_MAX]; /* per limit, of gaps */
};

/* value[run * sla->n + limit]; at least one run. Verdicts come from means, as upstream's. */
struct search_verdict settle_verdict(const struct settle *s, const struct sla *sla,
				     const double *value, unsigned runs);
bool settle_is_settled(const struct settle *s, const struct sla *sla, const double *value,
		       unsigned runs);
/* A level is done: its runs tell about the noise. */
void settle_learn(struct settle *s, const struct sla *sla, const double *value, unsigned runs);
