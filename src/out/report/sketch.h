/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out/report/sketch.h - what a result keeps of a run so that it can be drawn where its record is
 * not: the load, the servers and the GPUs over time ("series"), and the distributions of latencies
 * ("sketches"). At most 110 kB: lists of numbers of few digits, without blanks. The rules by
 * which much becomes little are those of core/stats/sketch.h.
 */
#pragma once
#include "out/report/report.h"

/* Members "series" and "sketches" of an open object; neither of a run without requests. */
void report_sketch_members(const struct report *r, struct json_writer *w);
