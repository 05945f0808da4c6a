/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report/lines.h - the lines a terminal report is made of. Private to report/.
 *
 * A label of 40 columns, a blank, a value of 10; longer ones overflow.
 */
#pragma once
#include "report/report.h"

void line_heading(struct buf *out, char fill, const char *text);
void line_text(struct buf *out, const char *label, const char *value);
void line_int(struct buf *out, const char *label, int64_t v);
void line_real(struct buf *out, const char *label, double v);
/* Nothing when there was nothing to measure. */
void line_spread(struct buf *out, const char *label, const struct metrics_spread *s);
void line_share(struct buf *out, const char *label, uint64_t part, uint64_t whole);
void line_add_safe(struct buf *out, struct str text);

/* ---- blocks of a report: each writes nothing when the run has nothing of it ---- */

void report_probe_rows(const struct metrics *m, struct buf *out);
/* Upstream's block about the engine: diffusion, else speculative decoding. */
void report_engine_rows(const struct metrics *m, struct buf *out);
/* As upstream names it: "TTFT", "E2EL". */
const char *report_block_name(enum metric_block b);
/* Ours. */
void report_server_rows(const struct metrics *m, struct buf *out);
void report_bounds_rows(const struct metrics *m, struct buf *out);
void report_session_rows(const struct metrics *m, struct buf *out);
void report_steady_rows(const struct metrics *m, struct buf *out);

/* What speaks against a window; empty when nothing does. */
void report_steady_warning(const struct metrics *m, struct buf *out);
