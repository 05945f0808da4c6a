/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_talk.h - what `profllm run` shows while it runs: lines of stages and reports on stdout,
 * warnings and one bar on stderr, the members of a suite as they begin and end.
 */
#pragma once
#include "experiment/suite/suite.h"

struct run_talk {
	bool is_bar, is_off;      /* progress as a bar; no progress at all */
	bool is_drawn;            /* a bar stands on the current line */
	char what[48];            /* what is under way */
	int64_t began_ns, drawn_ns;
	bool is_single;           /* not a suite: members are not named */
};

/* progress: "auto", "bar", "lines", "none". */
void run_talk_init(struct run_talk *t, const char *progress);
/* t stays where it is. log_fd: experiment_hooks. */
struct suite_hooks run_talk_hooks(struct run_talk *t, int log_fd);
void run_talk_clear(struct run_talk *t);
