/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.h - files of results as sides of a comparison: reads them, finds what differs between the
 * sides, and writes the answers of decide/compare.h as tables.
 *
 * A side is one operand: a result file, a folder of results, a folder of sweeps, a document of
 * `profllm run` or a suite's. The first is the baseline. Parameters that are the same within each
 * side but differ between sides define the sides. All others, and the workload's own (rate,
 * concurrency, lengths, dataset) whenever they differ, are the configuration by which runs are
 * matched.
 *
 * Sessions (the life of one server): in a folder without servers.json every summary.json of a sweep
 * counts as one; in documents of profllm run the logs of their servers identify it; in other files
 * it is unknown.
 *
 * Everything lives in the caller's arena. Nothing here prints.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/schema/schema.h"
#include "out/compare/gate.h"
#include "results/decide/compare.h"

struct compare_opts {
	double alpha;            /* of q and p: 0.05 */
	double min_effect;       /* a share above 0; below 0: 0.03, and 0.05 for a p99 and beyond */
	const char *metrics;     /* comma list that replaces the usual ones; NULL: the usual ones */
	const char *primary;     /* judged without adjustment; NULL: metrics' first, or none */
	bool is_all;             /* every metric with a better direction */
	const char *const *also; /* metrics to add in any case: those of gates */
	size_t n_also;
	const char *ignore;      /* comma list of names that are not parameters; NULL: none */
	bool is_any_model;       /* sides may have different models */
	const char *by;          /* split operands by the values of this parameter; NULL: do not */
	bool is_each_run;        /* every run is a session of its own */
	bool is_invalid_counted;
};

struct compare_run {
	const struct json_value *record;
	const char *path;        /* the file it was read from */
	unsigned session;        /* from 1; 0: unknown */
	const char **param;      /* a text for each parameter; NULL: it has none */
};

#define COMPARE_HEAD_CHARS_MAX 24 /* longer names would make tables wider than screens */

struct compare_side {
	const char *name;        /* the operand's name, made unique */
	const char *short_name;  /* of long names only what differs between them (compare_judge) */
	const char *path;
	struct compare_run *run;
	size_t n, cap;
	unsigned sessions;
	const struct json_value *server; /* element of servers.json for its first run, or NULL */
};

/* COMPARE_BETWEEN parameters define the sides, COMPARE_WITHIN ones the configuration. */
enum compare_param_kind { COMPARE_SAME, COMPARE_BETWEEN, COMPARE_WITHIN };

struct compare_param { const char *key; enum compare_param_kind kind; };

struct bench_comparison {
	const struct compare_opts *o;
	struct arena *a;
	struct compare_side *side;
	size_t n_sides;
	struct compare_param *param;
	size_t n_params;
	struct matched_metric *metric;
	size_t n_metrics;
	struct matched_run *run; /* of all sides, in their order */
	struct matched_spec spec;
	struct matched out;      /* compare_judge */
	struct buf notes;        /* things a reader must know, one per line; compare_release */
};

/*
 * Reads the operands and finds metrics and parameters. ERR_RUN names the operand that does not
 * exist, has no result, or has another model. o and the arena must live as long as c.
 */
int compare_load(struct bench_comparison *c, const struct compare_opts *o, const char *const *path,
		 size_t n, struct arena *a, struct err *e);
/* Compares what was loaded. ERR_USAGE: only one side. */
int compare_judge(struct bench_comparison *c, struct err *e);
/* Why no side could be compared with the baseline, a sentence; NULL: at least one could. */
const char *compare_refusal(const struct bench_comparison *c);
void compare_release(struct bench_comparison *c);
/*
 * Splits each side into one per value of o->by among its runs. ERR_RUN: no run has it, or all have
 * the same; ERR_LIMIT.
 */
int compare_split(struct bench_comparison *c, struct err *e);

/* ---- output ---- */

void compare_text(const struct bench_comparison *c, bool is_coloured, struct buf *out);
void compare_markdown(const struct bench_comparison *c, struct buf *out);
/* One row per metric over all configurations, and one for each configuration. */
void compare_csv(const struct bench_comparison *c, struct buf *out);
void compare_json(const struct bench_comparison *c, struct buf *out);
/* One page that makes no network requests; the drawings are plain SVG. */
void compare_html(const struct bench_comparison *c, struct buf *out);

/*
 * Speed-up and efficiency per GPU against the smallest size, over the runs of all loaded sides that
 * only differ in their number of GPUs. Returns how many sizes were compared.
 */
size_t compare_scaling(const struct bench_comparison *c, const char *metric, bool is_markdown,
		       struct buf *out);

/* ---- gates ---- */

/*
 * Checks one condition (compare/gate.h) for every side but the baseline, as one case: over all
 * configurations; one more for each configuration that fails by its own evidence, and one for each
 * that only the baseline has. Unless is_any, a condition only fails with evidence: for a change q
 * <= alpha, for a value an interval of the mean over sessions beyond the limit. It cannot be judged
 * without enough sessions, nor, for a change, if the comparison was refused or the sides are not
 * comparable.
 */
void compare_gate_check(const struct bench_comparison *c, const struct gate *g, bool is_any,
			struct gate_log *log);
/* A case for each configuration and side with more failed requests than the baseline. */
void compare_gate_failures(const struct bench_comparison *c, struct gate_log *log);
/*
 * For one operand: judges every run in it separately (gate_judge). notes gets a line for each file
 * left out. Errors as in compare_load; ERR_USAGE for a condition on a change.
 */
int compare_gate_runs(const char *path, const struct gate *gate, size_t n, struct gate_log *log,
		      struct buf *notes, struct err *e);

/* A metric's values on one side in one configuration: the mean of each session's runs. */
struct compare_values { const char *config; double *value; size_t n; double median; };
/*
 * The values of all configurations of a side, in order of first appearance, without runs in which
 * the metric is INVALID. Returns how many.
 */
size_t compare_values(const struct bench_comparison *c, size_t metric, size_t side, struct arena *a,
		      struct compare_values **out);

/*
 * The short table of two result files (`bench serve --compare A B`): every common metric, both
 * values and the change.
 */
int compare_two(const char *a, const char *b, struct buf *out, struct err *e);

/* ---- the tables of vLLM's dashboard script compare-json-results.py (sweep spec 8.5) ---- */

struct tables_opts {
	const char *xaxis;     /* a column; the load level in the summary */
	const char *latency;   /* contains "median": medians, else p99 */
	double ttft_max_ms, tpot_max_ms, ttft_slack_pct, tpot_slack_pct;
	bool is_debug, is_plotted;
	const char *csv_dir;   /* "": none */
	const char *html_dir;  /* "": the current folder */
};

/*
 * Values of several benchmark_results.json next to each other with ratios, and the highest
 * concurrency at which TTFT and TPOT stay within limits. After upstream's columns the summary has
 * ours: the first level that fails, and the highest level below it at which one row satisfies both
 * limits (defect ledger 13). Operands may also be results, folders of results and sweeps; their
 * rows are made as in compare/markdown.h.
 *
 * One file is split by TP and PP size below html_dir/splits/ and its parts are compared; several
 * are compared as given. Writes perf_comparison.html, one page per group and the CSV files; out
 * gets upstream's lines and the tables for a terminal.
 */
int tables_compare(const struct tables_opts *o, const char *const *path, size_t n,
		   struct arena *a, struct buf *out, struct err *e);

/* ---- shared by the files of compare; private ---- */

/* Reads an operand into a new side. */
int compare_read(struct bench_comparison *c, const char *path, struct err *e);
const char *compare_unit(const char *key); /* "ms"; "": none, or unknown */
bool compare_is_metric(const char *key);   /* a measurement of a run, not a parameter */
bool compare_number(const struct json_value *record, const char *key, double *out);
/*
 * Notes how the command of a side's server differs from the baseline's, if both are known: only in
 * arguments that are not parameters of the runs, and not in its address.
 */
void compare_note_server(struct bench_comparison *c, const struct compare_side *side);
/*
 * A warning if a side differs from the baseline in several parameters: its change is then not the
 * effect of a single one, or of the code. NULL: it does not.
 */
const char *compare_confounded(const struct bench_comparison *c, size_t side, struct arena *a);
__attribute__((format(printf, 2, 3)))
void compare_note(struct bench_comparison *c, const char *fmt, ...);

/* Sentences about a pair, one per line: remarks on its rows, then its notes. */
const char *compare_remarks(const struct bench_comparison *c, const struct matched_pair *pair,
			    struct arena *a);
