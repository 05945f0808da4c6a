/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gate.h - conditions that fail a CI job, such as "p99_ttft_ms>200", and their results.
 *
 *   text ─► struct gate ─► gate_judge (a result) or compare_gate_check (a comparison)
 *                               └─► struct gate_log ─► lines, JUnit XML, Markdown
 *
 * A condition describes the failure: it fails when the value is beyond its limit. A condition on a
 * metric that the result does not have, or that is INVALID in it, cannot be judged. That also fails
 * the gate, unless the user allows it. More than GATE_FAILED_PERCENT_MAX failed requests fail a
 * result in any case, unless a condition is on `failed`: a failed request has no latency, so a
 * server that refuses requests would look fast.
 *
 * Texts live in the arena of the gates or of the log. Nothing here prints.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/opt/opt.h"

#define GATE_EXIT 3                  /* exit status of a gate that failed or could not be judged */
#define GATE_FAILED_PERCENT_MAX 1.0  /* the same as in a search (SLA_MAX_FAILED_PERCENT) */
#define GATE_CONDITIONS_MAX 256      /* of one command or experiment */

enum gate_op { GATE_ABOVE, GATE_BELOW, GATE_AT_LEAST, GATE_AT_MOST };

struct gate {
	const char *text, *key;      /* as written; a key of a result, dotted below objects */
	enum gate_op op;
	double limit;                /* in the metric's unit; a share when is_relative */
	bool is_relative;            /* a change against a baseline: "...<-5%" */
};

/*
 * A key, one of > < >= <=, a number, then "%" for a change or the metric's unit (ms, s for ms,
 * tok/s, req/s) or nothing. ERR_USAGE: a sentence that begins with the condition in quotes.
 */
int gate_parse(struct gate *g, struct str text, struct arena *a, struct err *e);
/* ERR_USAGE: no result has such a number; suggests the nearest name. */
int gate_check_key(const char *key, struct err *e);
/*
 * Checks a condition on one result, without a baseline. ERR_USAGE: it is on a change, or on a key
 * that is not a number there; the message begins with the condition in quotes.
 */
int gate_check_alone(const struct gate *g, struct err *e);
/* The same for results with the keys of this example. verb: "bench latency". */
int gate_check_like(const struct gate *g, const struct json_value *example, const char *verb,
		    struct err *e);
bool gate_is_beyond(const struct gate *g, double v);

/* ---- outcomes ---- */

enum gate_outcome { GATE_PASSED, GATE_FAILED, GATE_UNJUDGED };
const char *gate_outcome_name(enum gate_outcome outcome); /* "passed", "failed", "unjudged" */

struct gate_case {
	const char *condition;       /* as written, or "failed requests" */
	const char *where;           /* "run3.json at max_concurrency=8"; "": there is only one */
	const char *text;            /* "p99_ttft_ms is 312 ms (limit 200 ms)", or why not judged */
	enum gate_outcome outcome;
	const char *degraded;        /* why the value is DEGRADED; NULL: it is not */
};

struct gate_log {
	struct arena *a;
	struct gate_case *item;
	size_t n, cap;
	bool is_unjudged_allowed;
};

__attribute__((format(printf, 5, 6)))
void gate_log_add(struct gate_log *log, const char *condition, const char *where,
		  enum gate_outcome outcome, const char *fmt, ...);
/* "output_throughput fell by 72.4 % (limit 5 %)"; delta is a share. */
const char *gate_change(const struct gate *g, double delta, struct arena *a);

/*
 * Judges every condition on a result (its record as JSON, read/frame.h), one case each. Conditions
 * on a change cannot be judged here.
 */
void gate_judge(const struct gate *gate, size_t n, const struct json_value *record,
		const char *where, struct gate_log *log);
/* For a missing result: no condition can be judged. reason: a sentence. */
void gate_judge_none(const struct gate *gate, size_t n, const char *reason, const char *where,
		     struct gate_log *log);
bool gate_is_failed(const struct gate_log *log);

/* One line for each case that did not pass, and a summary line. */
void gate_lines(const struct gate_log *log, struct buf *out);
/* One test suite with a case for each; those not judged are errors, or skipped where allowed. */
void gate_junit(const struct gate_log *log, const char *title, struct buf *out);
/* A heading with the outcome, and a table. */
void gate_markdown(const struct gate_log *log, const char *title, struct buf *out);

/* ---- options of the verbs that have them ---- */

struct gate_opts {
	struct opt_list fail_if;
	bool allow_unjudged;
	const char *junit, *summary; /* FILE; NULL: none */
};

#define GATE_ROW_FAIL_IF(type, m, heading, example)                                             \
	OPT(type, m.fail_if, "fail-if", .group = (heading), .arg = "CONDITION",                \
	    .flags = OPT_OURS | OPT_MANY | OPT_EACH, .words = "threshold thresholds gate",      \
	    .help = "exit with 3 when the result meets this condition, such as '" example      \
		    "'; may be repeated")
#define GATE_ROWS(type, m, heading, f)                                                          \
	OPT(type, m.allow_unjudged, "allow-unjudged", .group = (heading), .flags = (f),         \
	    .help = "a condition that cannot be judged does not fail the gate"),               \
	OPT(type, m.junit, "junit", .group = (heading), .flags = (f), .arg = "FILE",            \
	    .words = "xml", .help = "write the conditions and their outcomes as JUnit XML"),    \
	OPT(type, m.summary, "summary", .group = (heading), .flags = (f), .arg = "FILE",        \
	    .words = "step-summary", .help = "write the conditions and their outcomes as "      \
					     "Markdown")
