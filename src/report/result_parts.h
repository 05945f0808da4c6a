/* SPDX-License-Identifier: Apache-2.0 */
/* report/result_parts.h - what writes parts of the result file. Private to report/. */
#pragma once
#include "json/write.h"
#include "metrics/metrics.h"

/* The values of the keys "sessions" and "per_turn_metrics". */
void report_sessions_json(struct json_writer *w, const struct metrics *m);
void report_turns_json(struct json_writer *w, const struct metrics *m);
/* Members such as "mean_ttft_ms"; none of a block that is not reported. */
void report_block_members(struct json_writer *w, const struct metrics_opts *o,
			  enum metric_block b, const struct metrics_summary *s);
