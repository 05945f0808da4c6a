/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_internal.h - shared by the files of the comparison: the runs of a pair of sides, the
 * values of one metric, and the estimate over any subset of the configurations. Only for
 * decide/compare*.c.
 */
#pragma once
#include "core/base/mem.h"
#include "results/decide/compare.h"

#define PAIR_GUARDS 3 /* of enum matched_guard, those of a configuration */

/* A run of a matched configuration. */
struct entry { const struct matched_run *run; size_t config, session, order; unsigned side; };

/* How far apart the two sides of a configuration are in what a guard checks. */
struct doubt {
	double far;           /* in units of the least limit: above 1 it is named; NAN: unknown */
	const char *text;     /* NULL unless it is named */
};

/* A pair of sides before any metric is considered. */
struct pairing {
	const struct matched_spec *spec;
	struct arena *a;
	struct matched_pair *out;
	struct entry *entry;         /* by configuration, side, session, as given */
	size_t n;
	size_t sessions;             /* of both sides, numbered from 0 */
	struct doubt (*doubt)[PAIR_GUARDS]; /* of each configuration */
	double doubt_mean[PAIR_GUARDS]; /* average difference of all, signed */
	const char *doubt_worst[PAIR_GUARDS]; /* of each guard, the worst case in words */
};
/* Fills p->entry with the runs of both sides, and out with matched and unmatched configurations. */
void matched_gather(struct pairing *p);
/* Sets sessions and guards of what matched. */
void matched_prepare(struct pairing *p);
/* How far apart a guard lets the sides of a metric be, in units of struct doubt. */
double matched_guard_limit(const struct matched_metric *metric, unsigned guard);
/* The number of a key in a map, assigned by first appearance. */
size_t matched_place(struct map *m, const char *key, size_t *n);

/* One session of one configuration and side. */
struct mean {
	size_t node;          /* the session, numbered over both sides */
	size_t at;            /* the same within one estimate */
	size_t runs;
	double sum, ln;       /* of the values; ln: finally the mean of the logarithms */
	double squares;       /* of the logarithms, around their mean */
};

/* One configuration with values on both sides. */
struct used {
	size_t config;
	const char *load, *apart;
	struct mean *mean[2];
	size_t n[2], runs[2];
	double ln[2], d;
	double first;         /* of the values */
	bool is_flat;         /* all values of both sides are the first one */
	bool is_positive;     /* all values are above 0 */
};

/* The configurations with values of the metric on both sides. Others are counted in row. */
struct used *matched_collect(const struct pairing *p, size_t metric, struct matched_row *row,
			     size_t *n);

struct estimator {
	size_t nodes;         /* sessions of the pair */
	double alpha;
	double df, wide, narrow; /* the latest quantiles, for df */
	size_t *place;        /* of each node, 1 + its place in the present estimate; heap */
};
void matched_estimator_release(struct estimator *by);

/* Data of the clusters in an estimate, for a row. */
struct clusters {
	double *d;            /* heap */
	size_t n;
	double p_differ;      /* Cochran's Q; NAN without sessions to judge by */
};
void matched_clusters_release(struct clusters *c);

struct matched_estimate matched_no_estimate(void);
/* Over n configurations; clusters may be NULL. */
struct matched_estimate matched_estimate_of(struct estimator *by, struct used *const *u, size_t n,
					    struct clusters *clusters);
/* Data needed to show effect_min, or to settle the estimate if it is already that large. */
struct matched_need matched_need_of(const struct estimator *by, struct used *const *u, size_t n,
				    const struct matched_estimate *is, double effect_min);
