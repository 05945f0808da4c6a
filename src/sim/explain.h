/* SPDX-License-Identifier: Apache-2.0 */
/*
 * explain.h - what the engine model of some hardware amounts to, as lines of
 * text (`profllm sim --explain`), and how the modelled engine does under a load,
 * in virtual time: thousands of requests in a fraction of a second.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "sim/engine.h"
#include "sim/hardware.h"

/* The same request, many times: so many at once until all are done. */
struct virtual_load {
	uint32_t prompt, output;  /* tokens of each */
	size_t requests;
	size_t concurrency;       /* 0: all of them at once */
	uint32_t yield;           /* tokens of a decoding step; 0: 1 */
};

struct virtual_result {
	double seconds;
	double output_tps;        /* output tokens a second over all of it */
	double ttft_mean_s, ttft_p99_s;
	double tpot_mean_s;       /* (end - first token) / (tokens - 1), mean over requests */
	double itl_p99_s;         /* of all gaps between two tokens of a request */
	uint64_t preempted;
};

/* g is fresh and set up; it is idle again afterwards. */
struct virtual_result virtual_run(struct engine *g, const struct virtual_load *l);
/* An engine as hw describes it; to be released with engine_release. */
void engine_of_hardware(struct engine *g, const struct hardware *hw);

void hardware_explain(const struct hardware *hw, struct buf *out);
