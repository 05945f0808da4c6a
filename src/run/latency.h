/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/latency.h - `bench latency`: one batch again and again, and how long each time took (sweep
 * spec 4).
 *
 * Prompts are token ids drawn uniformly below 10,000, as upstream's are, by NumPy's generator; but
 * seeded with --seed, which is kept with the result, and below the engine's vocabulary where it
 * tells one that is smaller. The same prompts are used in every iteration, so prefix caching
 * is off unless it is asked for.
 */
#pragma once
#include "plan/workload.h"
#include "report/gate.h"
#include "run/offline.h"
#include "run/offline_opts.h"

struct latency_opts {
	struct offline_opts common;  /* first: offline_opts.h */
	int64_t input_len, output_len, batch_size; /* tokens, tokens, prompts */
	int64_t n;                   /* sequences for each prompt, or the beam's width */
	bool use_beam_search;
	int64_t num_iters_warmup, num_iters;
	bool profile;
	const char *output_json;     /* NULL: no file */
	bool disable_detokenize;
	struct gate_opts gate;
};
extern const struct opt_set latency_opt_set;
extern const struct offline_verb latency_verb;

/* What cannot be run. ERR_RUN with upstream's text where it has one; notes: lines of warnings. */
int latency_check(const struct latency_opts *o, const struct offline_engine *engine,
		  struct buf *notes, struct err *e);
/* The batch. vocabulary: tokens the model has; 0: not known. ERR_LIMIT, ERR_IO. */
int latency_prompts(const struct latency_opts *o, int64_t seed, int64_t vocabulary,
		    struct workload *w, struct err *e);
/* What would be run, lines for --dry-run. */
void latency_plan(const struct latency_opts *o, const struct offline_engine *engine,
		  struct buf *out);
/* A result as these options give it, of made-up values: which keys it has. */
void latency_example(const struct latency_opts *o, struct buf *out);
/*
 * Runs it, says it through hooks->line, and writes --output-json. When cancelled, what was
 * measured is reported before ERR_CANCELLED is returned.
 */
int latency_run(const struct latency_opts *o, const struct offline_engine *engine,
		const struct offline_hooks *hooks, struct err *e);
