/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/startup.h - `bench startup`: how long an engine takes until it can be asked, with empty
 * compilation caches (cold) and with those of the start before (warm); sweep spec 5.
 *
 * Every iteration is a program of its own. Cold ones get a VLLM_CACHE_ROOT and inductor and Triton
 * caches that are new and removed afterwards, however the iteration ends. What is in
 * the kernel's page cache stays there, unless --drop-page-cache gives the model's files back.
 */
#pragma once
#include "report/gate.h"
#include "report/startup.h"
#include "run/offline.h"
#include "run/offline_opts.h"

struct startup_opts {
	struct offline_opts common;
	int64_t num_iters_cold, num_iters_warmup, num_iters_warm;
	const char *output_json;     /* NULL: none */
	bool drop_page_cache;
	struct gate_opts gate;
};
extern const struct opt_set startup_opt_set;
extern const struct offline_verb startup_verb;

/* Defaults of the release that --compat names, where the numbers were not given. */
void startup_defaults(struct startup_opts *o, const struct opt_result *given,
		      const struct offline_engine *engine);

/* Everything lives in the arena. */
struct startup_result {
	struct startup_runs runs;
	struct offline_about about;  /* of the first start; its texts are copies */
	bool is_started;             /* about is filled */
	struct arena arena;
};

/*
 * Runs all iterations. -1 with e; a failed start is "Subprocess failed: <why>", as upstream has
 * it. When it was cancelled, out has what was measured before (runs.is_interrupted).
 */
int startup_run(const struct startup_opts *o, const struct offline_engine *engine,
		const struct offline_hooks *hooks, struct startup_result *out, struct err *e);
void startup_result_release(struct startup_result *r);

/* A result as these options give it, of made-up values: which keys it has. */
void startup_example(const struct startup_opts *o, struct buf *out);
/* What --output-json holds. */
void startup_result_json(const struct startup_opts *o, const struct offline_engine *engine,
			 const struct startup_result *r, struct buf *out);
/* The files: --output-json and, where they are wanted, PyTorch's, one for each metric. */
int startup_save(const struct startup_opts *o, const struct offline_engine *engine,
		 const struct startup_result *r, struct err *e);
