/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_profiling.c - `profllm run` with the engine's profiler: which traces there are, where
 * they lie, and what is said when there are none.
 *
 * threads: yes
 */
#include "run_rig.h"

static void traces(void **state)
{
	static const struct run_case row[] = {
		{ "whole", "server: {command: sim, model: sim, trace_ms: 50}\n" RUN_LOAD
		  "profiling: {enabled: true, dir: mine.traces}\n", .words = NULL },
		{ "latency", "server: {command: sim, model: sim, tokenizer: sim}\nbenchmark: {mode: latency, "
		  "input_len: 16, output_len: 4, num_iters: 2, num_iters_warmup: 1, batch_size: 2}\n" RUN_QUIET
		  "profiling: {enabled: true}\n", .words = NULL },
		{ "late", "server: {command: sim, model: sim}\n" RUN_LOAD
		  "profiling: {enabled: true, delay_s: 60}\n", .words = NULL },
		{ "none", "server: {command: sim, model: sim, profiler_config: {profiler: cuda}}\n" RUN_LOAD
		  "profiling: {enabled: true, stop_timeout_s: 0.2}\n", .words = NULL },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(traces))
