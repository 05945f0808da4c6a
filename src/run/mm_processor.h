/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/mm_processor.h - `bench mm-processor`: how long the stages of multimodal preprocessing and
 * the encoder take within one batch of chats, and each request from its beginning to its end
 * (sweep spec 6).
 *
 * Requests come from run/offline_data.h, as throughput's with --backend vllm-chat do. Stages are
 * the engine's own (vllm, sim, any worker that tells them); where it has none, that is said.
 */
#pragma once
#include "run/offline.h"
#include "run/offline_data.h"
#include "run/offline_opts.h"

struct mm_processor_opts {
	struct offline_opts common;  /* first: offline_opts.h */
	struct offline_data data;    /* dataset, numbers, lengths */
	struct opt_int output_len;   /* of each answer; unset: the dataset's */
	const char *output_json;     /* NULL: no file */
	const char *metric_percentiles;
	bool disable_tqdm;
};
extern const struct opt_set mm_processor_opt_set;
extern const struct offline_verb mm_processor_verb;

/* What cannot be run. ERR_RUN with upstream's text where it has one; notes: lines of warnings. */
int mm_processor_check(struct mm_processor_opts *o, const struct offline_engine *engine,
		       struct buf *notes, struct err *e);
/* What would be run, lines for --dry-run. */
void mm_processor_plan(const struct mm_processor_opts *o, const struct offline_engine *engine,
		       struct buf *out);
/*
 * Runs it, says it through hooks->line, and writes --output-json. It is one call of the engine:
 * cancelled means that nothing was measured.
 */
int mm_processor_run(const struct mm_processor_opts *o, const struct offline_engine *engine,
		     const struct offline_hooks *hooks, struct err *e);
