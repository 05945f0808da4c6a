/* SPDX-License-Identifier: Apache-2.0 */
/*
 * progress.h - a run's progress on stderr: one line rewritten in place on a terminal, plain lines
 * every few seconds elsewhere.
 */
#pragma once
#include "bench/serve/point.h"

struct progress {
	bool is_bar, is_off;
	enum point_stage stage;
	bool is_drawn;            /* a bar is on the current line */
	int64_t began_ns, drawn_ns, sampled_ns;
	uint64_t sampled_tokens;
	double tokens_per_s;
};

void progress_init(struct progress *p, enum serve_progress how);
void progress_show(struct progress *p, enum point_stage stage, uint64_t done, uint64_t total,
		   const struct load_progress *load);
/* The same for what is counted in bytes, only on a terminal. */
void progress_bytes(struct progress *p, const char *what, uint64_t done, uint64_t total);
/* Clears the bar so that a line can be printed. */
void progress_clear(struct progress *p);
/* "Warm-up", "Benchmark", ... */
const char *progress_stage_name(enum point_stage stage);
/* "01:23", "1:02:03". */
void progress_add_clock(struct buf *out, double seconds);
