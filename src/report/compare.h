/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/compare.h - two or more sides compared: what differs, by how much, and whether that is
 * more than noise (research dashboard 7).
 *
 * A side is what one operand names: a result file, a folder of results, a folder of sweeps. The
 * first is the baseline. Its runs fall into points, one for each combination of the parameters
 * that vary within a side; runs of one point are repeats. Parameters that are the same on a side
 * but not on all sides are what is compared, and only shown.
 *
 * For every point, metric and further side: medians, the change from the baseline with an
 * interval (Welch on logarithms; on the values where one is not above 0), p by Welch and by Mann
 * and Whitney, and a verdict. A change is called one when Benjamini and Hochberg's q over
 * everything shown is at most alpha and the change is at least the metric's least one. Fewer
 * than COMPARE_REPEATS_MIN values on a side are not enough to say.
 *
 * Repeats inside one server session are not independent: where it is known which runs shared a
 * server, a session's mean is one value. A folder without servers.json counts every summary.json
 * of a sweep as one session; documents of profllm run tell it by the logs of their servers; of
 * other loose files nothing is known, and they count as independent.
 *
 * Everything lives in the caller's arena. Nothing here prints.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "json/read.h"
#include "report/gate.h"
#include "schema/schema.h"
#include "stats/compare.h"

struct compare_opts {
	double alpha;            /* of q: 0.05 */
	double level;            /* of intervals: 0.95 */
	double min_effect;       /* a share; below 0: 0.03, and 0.05 for a p99 and beyond */
	const char *metrics;     /* comma list in place of the usual ones; NULL: the usual ones */
	bool is_all;             /* every metric that has a better direction */
	const char *const *also; /* metrics to add in any case: those of gates */
	size_t n_also;
	const char *ignore;      /* comma list of parameters that do not make points; NULL: none */
	bool is_any_model;       /* sides may have different models */
	const char *by;          /* operands are split by the values of this parameter; NULL: not */
	bool is_each_run;        /* repeats of one session count as independent */
};

struct compare_run {
	const struct json_value *record;
	const char *path;        /* the file it was read from */
	unsigned session;        /* from 1; 0: not known */
	const char **param;      /* a text for each parameter; NULL: it has none */
	size_t point;
};

struct compare_side {
	const char *name;        /* what the operand was called, made unique */
	const char *path;
	struct compare_run *run; /* paired: by points, those of a point as they were read */
	size_t n, cap;
	size_t *first;           /* where each point's runs begin; one more at the end */
	unsigned sessions;
	const struct json_value *server; /* the element of servers.json of its first run, or NULL */
	bool is_baseline_again;  /* its runs are the baseline's */
};

enum compare_param_kind { COMPARE_SAME, COMPARE_BETWEEN, COMPARE_WITHIN };

struct compare_param { const char *key; enum compare_param_kind kind; };

struct compare_metric {
	const char *key, *unit;
	enum schema_better better;
	double min_effect;
};

enum compare_verdict {
	COMPARE_MISSING,         /* a side has no value */
	COMPARE_NOT_ENOUGH, COMPARE_NO_EVIDENCE, COMPARE_REGRESSION, COMPARE_IMPROVEMENT,
	COMPARE_CHANGED,         /* no direction of the metric is the better one */
	COMPARE_VOID,            /* better, but more requests failed or other work was done */
};

/* One metric at one point of one side; on side 0 only the first three mean anything. */
struct compare_cell {
	size_t n_runs;           /* runs that have the metric */
	size_t n;                /* values tested: runs, or sessions */
	double median;           /* over the runs; NAN: none */
	double *value;           /* n */
	double *run_value;       /* n_runs */
	double delta;            /* median / baseline's - 1; NAN when that is 0 */
	struct interval interval; /* of the relative change; NAN: none */
	double p, p_ranks, q;    /* Welch's, Mann and Whitney's, Welch's after adjustment */
	double superiority;
	double cv;               /* of the values of both sides, pooled */
	size_t repeats_needed;   /* for min_effect at a power of 0.8; 0: no number would do */
	enum compare_verdict verdict;
};

struct compare_point {
	const char *name;        /* "max_concurrency=8 request_rate=inf"; "" when there is one */
	const char **param;      /* texts of the COMPARE_WITHIN parameters, else NULL */
	struct compare_cell *cell; /* [metric * n_sides + side] */
	/* Per side, why an improvement does not count; NULL when it does. */
	const char **failures;   /* more requests failed than at the baseline */
	const char **guard;      /* other work was done, or goodput fell */
};

struct comparison {
	const struct compare_opts *o;
	struct arena *a;
	struct compare_side *side;
	size_t n_sides;
	struct compare_param *param;
	size_t n_params;
	struct compare_metric *metric;
	size_t n_metrics;
	struct compare_point *point;
	size_t n_points;
	struct buf notes;        /* what a reader must know, one line each; compare_release */
};

/*
 * Reads the operands and pairs, tests and judges. ERR_RUN names the operand that is not there,
 * holds no result, or has another model. o and the arena must live as long as c.
 */
int compare_build(struct comparison *c, const struct compare_opts *o, const char *const *path,
		  size_t n, struct arena *a, struct err *e);
void compare_release(struct comparison *c);
/*
 * Each side becomes as many as its runs have values of o->by (compare_split.c). ERR_RUN: no run has
 * it, or all have the same; ERR_LIMIT.
 */
int compare_split(struct comparison *c, struct err *e);

/* One test alone: q is p. a and b are borrowed by out, which is a further side's cell. */
void compare_values(const struct compare_opts *o, const struct compare_metric *metric, double *a,
		    size_t n, double *b, size_t m, struct compare_cell *out);

const struct compare_cell *compare_cell(const struct comparison *c, size_t point, size_t metric,
					size_t side);
const char *compare_verdict_name(enum compare_verdict v); /* "no evidence of change" */
const char *compare_verdict_key(enum compare_verdict v);  /* "no_evidence" */

/* ---- output ---- */

void compare_text(const struct comparison *c, bool is_coloured, struct buf *out);
void compare_markdown(const struct comparison *c, struct buf *out);
void compare_csv(const struct comparison *c, struct buf *out);
void compare_json(const struct comparison *c, struct buf *out);
/* One page that asks the network for nothing; the drawings are plain SVG. */
void compare_html(const struct comparison *c, struct buf *out);

/*
 * Speed-up and efficiency per GPU against the smallest size, over the runs of all sides: points
 * that differ in nothing but their number of GPUs. n_lines: how many sizes were compared.
 */
size_t compare_scaling(const struct comparison *c, const char *metric, bool is_markdown,
		       struct buf *out);

/* ---- gates ---- */

/*
 * One condition (report/gate.h) at every point of every further side, a case each. Unless is_any, a
 * condition fails only with evidence: for a change q <= alpha, for a value an interval of the mean
 * that lies beyond the limit. It cannot be judged without enough values, and a change neither
 * between the same runs nor where a guard speaks against the comparison.
 */
void compare_gate_check(const struct comparison *c, const struct gate *g, bool is_any,
			struct gate_log *log);
/* A case for each point and side at which more requests failed than at the baseline. */
void compare_gate_failures(const struct comparison *c, struct gate_log *log);
/*
 * One operand: every run in it is judged by itself (gate_judge). Notes on files that were left out
 * are lines. Errors as of compare_build; ERR_USAGE for a condition on a change.
 */
int compare_gate_runs(const char *path, const struct gate *gate, size_t n, struct gate_log *log,
		      struct buf *notes, struct err *e);

/*
 * The short table of two result files (`bench serve --compare A B`): every common metric, both
 * values and the change.
 */
int compare_two(const char *a, const char *b, struct buf *out, struct err *e);

/* ---- shared by the files of compare; not for others ---- */

/* Reads an operand into a new side. */
int compare_read(struct comparison *c, const char *path, struct err *e);
void compare_pair(struct comparison *c); /* parameters and points */
bool compare_is_metric(const char *key); /* a number about a run, not a parameter of it */
enum schema_better compare_better(const char *key);
bool compare_number(const struct json_value *record, const char *key, double *out);
/* Fills failures and guard of a point's side. */
void compare_guard(struct comparison *c, size_t point, size_t side);
void compare_notes(struct comparison *c); /* after all verdicts */
/*
 * How the command of a side's server differs from the baseline's, where both are known, in
 * arguments that are no parameters of the runs anyway and not its address.
 */
void compare_note_server(struct comparison *c, const struct compare_side *side);
__attribute__((format(printf, 2, 3)))
void compare_note(struct comparison *c, const char *fmt, ...);
/* "12.34", with as many digits as a table needs; "" for NAN. */
struct grid;
void compare_sides_grid(const struct comparison *c, struct grid *g, struct arena *a);
void compare_point_grid(const struct comparison *c, size_t point, struct grid *g,
			struct arena *a);
bool compare_is_paired(const struct comparison *c, size_t point);
const char *compare_value(double v, struct arena *a);
const char *compare_percent(double share, struct arena *a); /* "+5.1%" */
