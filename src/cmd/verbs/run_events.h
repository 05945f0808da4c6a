/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_events.h - `profllm run --events FILE`: what goes on, as lines of JSON for other
 * programs.
 *
 *   {"event": "progress", "at": S, "what": "Benchmark", "done": 12, "total": 100}
 *   {"event": "progress", "at": S, "line": "..."}                 what is said of a stage
 *   {"event": "progress", "at": S, "member": "...", "number": 2, "of": 5, "status": null}
 *   {"event": "telemetry", "at": S, "done": 12, ...}              once a second while load runs
 *
 * at: seconds since 1970. What nobody told is null. The file is added to and each line written
 * at once; a disk that is full ends the lines, not the run.
 */
#pragma once
#include "experiment/suite/suite.h"

struct run_events;

/*
 * hooks is changed: it tells both who it told before and the file. path NULL: *out is NULL and
 * nothing is changed. ERR_USAGE: the file cannot be written.
 */
int run_events_begin(const char *path, struct suite_hooks *hooks, struct run_events **out,
		     struct err *e);
void run_events_end(struct run_events *r); /* accepts NULL */
