/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report_internal.h - shared by the files of the report of `bench serve`: the lines of a terminal
 * report, its blocks, and parts of the result file. Private to report/.
 */
#pragma once
#include "core/json/write.h"
#include "out/report/report.h"

/* ---- lines: a label of 40 columns, a blank, a value of 10; longer ones overflow ---- */

void line_heading(struct buf *out, char fill, const char *text);
void line_text(struct buf *out, const char *label, const char *value);
void line_int(struct buf *out, const char *label, int64_t v);
void line_real(struct buf *out, const char *label, double v);
/* Nothing without values. */
void line_stats(struct buf *out, const char *label, const struct metrics_stats *s);
void line_spread(struct buf *out, const char *label, const struct metrics_spread *s);

/* ---- blocks of a report: each writes nothing if the run has no data for it ---- */

/* Upstream's name: "TTFT", "E2EL". */
const char *report_block_name(enum metric_block b);
/* How far the numbers of one run can be trusted; uncertainty.c. */
void report_bounds_rows(const struct metrics *m, struct buf *out);
void report_settled_rows(const struct metrics *m, struct buf *out);
void report_attempted_rows(const struct metrics *m, struct buf *out);
/* The error budget (metrics/budget.h) as a line, and its parts. */
void report_budget_rows(const struct report *r, struct buf *out);
void report_session_rows(const struct metrics *m, struct buf *out);

/* Why a steady-state window is doubtful; empty if it is not. */
void report_steady_warning(const struct metrics *m, struct buf *out);

/* Changes the report from byte `at` on: removes what release v0.11 did not print, and renames. */
void report_as_v011(struct buf *out, size_t at);

/* ---- parts of the result file ---- */

/* The members "percentiles", "settled" and "attempted" of "profllm". */
void report_bounds_json(const struct metrics *m, struct json_writer *w);
void report_settled_json(const struct metrics *m, struct json_writer *w);
void report_attempted_json(const struct metrics *m, struct json_writer *w);

/* The member "error_budget"; null without one. */
void report_put_budget(struct json_writer *w, const struct report *r);
/* n, mean, p50, p99, max; null without values. */
void report_put_spread(struct json_writer *w, const char *key, const struct metrics_spread *s);
