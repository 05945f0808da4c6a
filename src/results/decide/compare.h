/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - is side B better than side A, over the configurations that both have?
 *
 * Runs come as rows of numbers: the side, the key of the configuration (everything that was
 * configured and the workload's identity, without what defines the sides), the server session, the
 * run's id, a value per metric and the figures of its work. Side 0 is the baseline; every other
 * side is compared only with it. Files, stores and the words of tables are the caller's.
 *
 * For each metric (procedure and evidence: research page "How the four decisions are made", section
 * 2; in short, all on logarithms):
 *
 *   session     mean of ln(value) over a session's runs of a configuration; repeats weigh nothing
 *   config      a, b = mean over sessions; d = b - a
 *   cluster     configurations linked by sessions they share (loads of one server), on either
 *               side; its d is the mean of theirs, and it counts once
 *   estimate    exp(mean d of the clusters), a ratio of geometric means
 *   interval    (i) sessions: every configuration has two sessions on both sides. The pooled
 *               variance of a session's mean, each session with the weight it has in the estimate;
 *               one configuration per session makes this s^2 sum(1/nA + 1/nB) / n^2
 *               (ii) clusters: else, with three clusters or more, Student's t over their d
 *               (iii) none: else. The design chooses, before any value is seen
 *   verdict     see enum matched_verdict; one primary metric is judged by its p, all others by
 *               Benjamini and Hochberg's q; with several sides or comparisons the primary ones
 *               are adjusted among themselves
 *
 * An unknown session (NULL) is one session per configuration and side, not shared with any other
 * configuration: right for a restart at every point, too optimistic for loads of one server. The
 * number of such runs is returned, so that the caller can mention it.
 *
 * Left out, and counted: runs whose metric is INVALID, values that are missing (NAN or infinite),
 * and runs that are on both sides. A configuration whose values are all the same on both sides,
 * even 0 or below, has d = 0; any other value at or below 0 has no logarithm, and then the metric
 * is not comparable.
 *
 * Pure: no I/O; all results live in the caller's arena; given texts are borrowed and must live as
 * long.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "core/stats/stats.h"

#define MATCHED_ALPHA 0.05           /* the usual one */
#define MATCHED_EFFECT_MIN 0.03      /* D */
#define MATCHED_EFFECT_MIN_TAIL 0.05 /* D of percentiles from 99 on */
#define MATCHED_FAILED_SHARE 0.001   /* from here on a difference in failed requests is named */
#define MATCHED_FAILED_SHARE_MAX 0.01 /* from here on no metric can be compared */
#define MATCHED_FAILED_TAIL_SHARE 0.1 /* of the requests beyond a percentile */
#define MATCHED_WORK_CHANGE 0.05     /* the guards of tokens per request and of goodput */
#define MATCHED_CLUSTERS_MIN 3       /* for rule (ii) */
#define MATCHED_SESSIONS_MIN 2       /* of each configuration and side, for rule (i) */
#define MATCHED_SESSIONS_MAX 1000    /* a need for more is reported as none */
#define MATCHED_RANKS_MIN 8          /* clusters, for Wilcoxon's test as a check on outliers */
#define MATCHED_DIFFER_ALPHA 0.01    /* Cochran's Q: below it effects are said to differ */
#define MATCHED_APART_SHARE_MAX 0.1  /* of the configurations not comparable: no verdict above */
#define MATCHED_SCATTER_USUAL 0.025  /* of a session's mean, assumed if nothing is known */

/* ---- what is compared ---- */

/*
 * What may make two sides incomparable, in both directions; a metric selects those that concern it.
 * The first three are checked for each configuration: one that fails is set apart, and the metric
 * is not comparable if they fail on average or in more than a tenth of the configurations.
 */
enum matched_guard {
	MATCHED_GUARD_FAILED = 1,    /* shares of failed requests differ by more than failed_max */
	MATCHED_GUARD_OUTPUT = 2,    /* output tokens per request differ by more than 5 % */
	MATCHED_GUARD_INPUT = 4,     /* input tokens per request differ by more than 5 % */
	MATCHED_GUARD_GOOD = 8,      /* better, but by 5 % fewer requests within the goodput limits;
				      * worse, but by 5 % more */
	MATCHED_GUARD_ALL = 15,
};

struct matched_metric {
	const char *name, *unit;
	int better;                  /* +1 larger, -1 smaller, 0: neither */
	double effect_min;           /* D, the least change worth naming, as a share: 0.03 */
	unsigned guards;             /* enum matched_guard */
	double failed_max;           /* how far the shares of failed requests may be apart */
};
/*
 * A metric with D by its name (3 %; 5 % for percentiles from 99 on) and the guards it needs.
 *
 * failed_max bounds what failed requests can change in the metric to D: they are not among its
 * values, and they are often the slow ones. A share s of them changes a rate by s and the rank of a
 * percentile by s, which is much where few requests lie beyond it: MATCHED_FAILED_TAIL_SHARE of
 * those, so 0.1 percentage points for P99 and 0.5 for P95. A mean has no such bound: 0.1 points.
 * All others: 1 point, because requests that failed were no work for the server.
 */
struct matched_metric matched_metric_of(const char *name, const char *unit, int better);

enum matched_state { MATCHED_COUNTS, MATCHED_DEGRADED, MATCHED_INVALID };

/* Of one run; NAN: unknown. Rates in requests/s. */
struct matched_work { double failed, completed, input_tokens, output_tokens, goodput, throughput; };

struct matched_run {
	size_t side;
	const char *config;          /* the key of the configuration, which is also shown */
	const char *load;            /* varies within a server session, "rate=8"; NULL: nothing */
	const char *session;         /* the server's life, unique over all runs; NULL: unknown */
	const char *id;              /* run id or hash of the content; NULL: unknown */
	const double *value;         /* one per metric; NAN: missing */
	const unsigned char *state;  /* enum matched_state, one per metric; NULL: all count */
	struct matched_work work;
};

struct matched_spec {
	const struct matched_run *run;
	size_t n_runs;
	const struct matched_metric *metric;
	size_t n_metrics;
	const char *const *side;     /* their names; at least two */
	size_t n_sides;
	size_t primary;              /* the metric judged without adjustment; n_metrics: none */
	double alpha;                /* 0.05: intervals of 95 %, and of 90 % for "no change" */
	bool is_invalid_counted;     /* INVALID runs count like any other */
	bool is_comparable_only;     /* configurations that fail a guard never affect the rest */
	size_t listed_max;           /* configurations that matched_put lists of each metric and
				      * of one side alone, the extreme ones; below 2: all */
};

/* ---- what comes out ---- */

enum matched_rule { MATCHED_BY_SESSIONS, MATCHED_BY_CLUSTERS, MATCHED_BY_NOTHING };

/* Ratios are B's over A's; NAN: does not exist. */
struct matched_estimate {
	enum matched_rule rule;
	size_t configs, clusters;
	double value[2];             /* geometric means; ratio = value[1] / value[0] */
	double ratio;
	struct interval interval;    /* at 1 - alpha */
	struct interval narrow;      /* at 1 - 2 alpha, for "no change" */
	double p, df;                /* two-sided, of a ratio of 1 */
	double scatter;              /* deviation of a session's mean ln, of a cluster's d */
};

/* One configuration that has values on both sides. */
struct matched_config {
	size_t index;                /* in matched_pair.config */
	const char *name;
	size_t runs[2], sessions[2];
	double *session[2];          /* geometric mean of each session */
	struct matched_estimate is;  /* from its own sessions only */
	int evident;                 /* +1 larger, -1 smaller by `is`, after adjustment; else 0 */
	const char *apart;           /* why it is not comparable and not used; NULL: it is used */
};

/* The configurations of one load. */
struct matched_load {
	const char *name;
	struct matched_estimate is;
	int evident;
};

enum matched_verdict {
	MATCHED_BETTER, MATCHED_WORSE,
	MATCHED_BETTER_SMALL, MATCHED_WORSE_SMALL, /* but by less than D */
	MATCHED_CHANGED, MATCHED_CHANGED_SMALL,    /* a metric without a better direction */
	MATCHED_NO_CHANGE,           /* above D */
	MATCHED_MIXED,               /* surely larger in some, smaller in others, by D or more */
	MATCHED_NOT_ENOUGH,
	MATCHED_NOT_COMPARABLE,
};

enum matched_why {               /* why there is no answer */
	MATCHED_WHY_NONE,
	MATCHED_WHY_MISSING,         /* a side has no value */
	MATCHED_WHY_INVALID,         /* a side only has it in INVALID runs */
	MATCHED_WHY_UNMATCHED,       /* no configuration has it on both sides */
	MATCHED_WHY_DESIGN,          /* rule (iii): no interval */
	MATCHED_WHY_WIDE,            /* the interval is too wide to decide */
	MATCHED_WHY_CHANCE,          /* p <= alpha, but not after adjustment for many metrics */
	MATCHED_WHY_NOT_POSITIVE,    /* values at or below 0 */
	MATCHED_WHY_GUARD,           /* different work, or failures */
	MATCHED_WHY_POLICY,          /* set by the caller, whose policy requires more */
};

/* How much more data is needed to show D with a power of 0.8, or to settle the estimate. */
struct matched_need {
	size_t sessions;             /* per side of each configuration; 0: none up to 1,000 */
	size_t clusters;             /* or this many configurations with own sessions; 0: none */
	enum {                       /* source of the scatter it is based on */
		MATCHED_FROM_SESSIONS, MATCHED_FROM_CLUSTERS,
		MATCHED_FROM_RUNS,   /* within sessions: a lower bound */
		MATCHED_SUPPOSED,    /* MATCHED_SCATTER_USUAL */
	} from;
};

/* One metric. */
struct matched_row {
	const struct matched_metric *metric;
	enum matched_verdict verdict;
	enum matched_why why;
	const char *reason;          /* part of a sentence about why; NULL: MATCHED_WHY_NONE */
	struct matched_estimate is;  /* over comparable configurations, or over all if none are */
	double q;                    /* p after adjustment; the primary's is p if there is one */
	bool is_primary;
	bool is_beyond_d;            /* the whole interval: better or worse by at least D */
	size_t up, down, equal;      /* configurations by the sign of d */
	size_t clusters_up, clusters_down;
	double p_sign;               /* exact, over clusters */
	double p_ranks;              /* Wilcoxon's signed ranks over clusters; NAN below 8 */
	bool do_ranks_disagree;      /* p <= alpha, but not by ranks: look for outliers */
	double spread;               /* standard deviation of configurations' d, noise included */
	double p_differ;             /* Cochran's Q over clusters, as an F; only with rule (i) */
	bool do_effects_differ;      /* by p_differ, or evidence of both signs */
	size_t evident_up, evident_down; /* configurations */
	struct matched_need need;    /* if the verdict is "not enough" by design or width */
	size_t runs[2], sessions[2]; /* with values; used in the estimate */
	size_t invalid[2], missing[2], degraded[2]; /* runs of the matched configurations */
	size_t unpaired;             /* matched configurations without a value on one side */
	size_t apart;                /* not comparable */
	struct matched_config *config; /* the worst change first; those apart at the end */
	size_t n_configs;
	struct matched_load *load;   /* in order of first appearance; only if there are two */
	size_t n_loads;
};

struct matched_alone { const char *config; size_t runs; };

enum matched_refusal {
	MATCHED_ACCEPTED,
	MATCHED_REFUSED_EMPTY,       /* a side has no run */
	MATCHED_REFUSED_SAME,        /* the sides are the same runs, or one is part of the other */
	MATCHED_REFUSED_UNMATCHED,   /* no configuration in common */
	MATCHED_REFUSED_INVALID,     /* only INVALID values on a side */
};

/* One further side against the baseline. */
struct matched_pair {
	size_t side;
	enum matched_refusal refusal;
	const char *reason;          /* a sentence; NULL: accepted */
	size_t runs[2];              /* only on this side */
	size_t shared;               /* on both sides, left out */
	size_t sessions_unknown[2];  /* runs with an unknown session */
	const char **config;         /* matched, in order of first appearance */
	const char **guard;          /* of each, the objection to comparing it by any metric; NULL:
				      * none */
	double failed[2];            /* shares of failed requests; NAN: unknown */
	size_t failed_differs;       /* configurations whose shares differ enough to be named */
	const char *failed_worst;    /* where they differ most, in words; NULL: nowhere */
	size_t n_configs;
	int good;                    /* +1: 5 % more requests within goodput limits, -1: fewer */
	const char *good_text;       /* in words; NULL if good is 0 */
	struct matched_alone *alone[2]; /* configurations on only one side */
	size_t n_alone[2];
	struct matched_row *row;     /* spec->n_metrics; all zero unless accepted */
};

struct matched {
	const struct matched_spec *spec;
	struct matched_pair *pair;   /* n_sides - 1 */
	size_t n_pairs;
};

/*
 * Compares. spec and what it points to must live as long as out. Asserts that sides are below
 * n_sides, that there are values, that alpha is between 0 and 0.5 and each D above 0.
 */
void matched_compare(const struct matched_spec *spec, struct arena *a, struct matched *out);

/* Whether the side has runs, and every request of all of them failed. */
bool matched_has_no_success(const struct matched_spec *spec, size_t side);

/* n comparisons, out[i] of spec[i], whose metrics are adjusted together. */
void matched_compare_all(const struct matched_spec *spec, size_t n, struct arena *a,
			 struct matched *out);
/*
 * The objection, by the guards above, to calling b's m runs a gain of a metric over a's n; NULL:
 * none.
 */
const char *matched_guard_gain(const struct matched_metric *metric, const struct matched_work *a,
			       size_t n, const struct matched_work *b, size_t m,
			       struct arena *arena);

/* ---- words, the same for every output ---- */

const char *matched_verdict_key(enum matched_verdict v);  /* "no_change" */
/* "better, but by less than 3 %" */
const char *matched_verdict_words(const struct matched_row *row, struct arena *a);
/* One sentence without a full stop: change, interval, counts, verdict, data still needed. */
const char *matched_sentence(const struct matched *m, const struct matched_pair *pair,
			     const struct matched_row *row, struct arena *a);
/* What a reader must know of a pair: left out, unmatched, sessions unknown. One line each. */
const char *matched_notes(const struct matched *m, const struct matched_pair *pair,
			  struct arena *a);
/* An open object's members: refusal, metrics with their configurations, unmatched ones, notes. */
void matched_put(struct json_writer *w, const struct matched *m, const struct matched_pair *pair,
		 struct arena *a);
