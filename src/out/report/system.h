/* SPDX-License-Identifier: Apache-2.0 */
/*
 * system.h - the machine during the load, for people and programs.
 *
 * The object is the value of "profllm.system" in a result file and the body of "system" in an
 * experiment's document; its keys are declared in schema/result.json.
 */
#pragma once
#include "client/metrics/metrics.h"
#include "core/base/str.h"
#include "core/json/write.h"

/* One object; null when nothing was monitored. */
void report_system_json(const struct metrics_system *s, struct json_writer *w);
/* Lines for the terminal; none when nothing was monitored. */
void report_system_rows(const struct metrics_system *s, struct buf *out);
