/* SPDX-License-Identifier: Apache-2.0 */
/* plots.h - --plot-timeline, --plot-dataset-stats, --plot-turns: of any verb with a report. */
#pragma once
#include <stdbool.h>

#include "out/report/report.h"

struct plots {
	bool is_timeline, is_dataset_stats, is_turns;
	double timeline_ms[2]; /* --timeline-itl-thresholds */
};

/* Before the run: whether this build can draw them, and their files can be written. */
int plots_check(const struct plots *p, const char *result_path, struct err *e);
/* After the report. What cannot be drawn is a warning and no error, as upstream has it. */
void plots_draw(const struct plots *p, const struct report *r, const char *result_path);
