/* SPDX-License-Identifier: Apache-2.0 */
/*
 * out/report/sketch.h - condensed data of a run for drawing it without its record: the load, the
 * servers and the GPUs over time ("series"), and the distributions of latencies ("sketches"). At
 * most 110 kB: lists of numbers with few digits, without blanks. The condensing rules are in
 * core/stats/sketch.h.
 */
#pragma once
#include "out/report/report.h"

/* Members "series" and "sketches" of an open object; none for a run without requests. */
void report_sketch_members(const struct report *r, struct json_writer *w);
