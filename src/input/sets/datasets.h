/* SPDX-License-Identifier: Apache-2.0 */
/* datasets.h - all datasets by their names, and those for a single verb. */
#pragma once
#include "core/base/str.h"
#include "input/data/dataset.h"

const struct dataset *dataset_find(const char *name); /* "-" and "_" alike; NULL: unknown */
const struct dataset *const *dataset_all(size_t *n);

/* Whether --random-mm-bucket-config can be read at all: ERR_RUN. */
int dataset_check_buckets(const char *text, struct err *e);

/*
 * The prompts of vLLM's two scripts about prefix caching, as datasets that only their own verbs use
 * (offline/prefix_bench.h).
 *
 * dataset_documents: long documents that share nothing; text of o->document_head, the document's
 * number and the word "hi", o->document_length times. Nothing is drawn.
 *
 * dataset_length_range: prompts of o->range_min to o->range_max tokens. Without a path: one prefix
 * of o->range_prefix random ids followed by random ids for each prompt, from all ids in ascending
 * order without declared special ones. With one: first turns of ShareGPT conversations, shuffled,
 * whose length is in the range; special tokens that the tokenizer adds become text.
 *
 * Both seed Python's generator with env->seed and draw in the scripts' order (spec 5.2, 5.3). Each
 * sample asks for o->custom_output_len tokens.
 *
 * o->exact_tokens: documents are cut so that the engine counts o->document_length tokens, and
 * random prompts are token ids, whose number no tokenizer changes.
 */
extern const struct dataset dataset_documents, dataset_length_range;

/*
 * Prompts of a chosen length cut out of a long text; datasets spec 5.11.
 *
 * The text is encoded once without special tokens; each prompt is a run of its ids, continued at
 * the beginning when it reaches the end, decoded. Lengths are those of the random dataset of the
 * same seed; the beginnings of runs come from Python's generator of that seed.
 *
 * input: a file, or an http(s) URL. Lengths are random_input_len, random_output_len and their
 * ratios of o; num_prompts, seed, tokenizer, threads, progress and cancel those of env. Passes each
 * line of a custom dataset ({"prompt": ..., "output_tokens": n} and a line end) to put, in order;
 * put returns -1 (and fills e) to end. ERR_IO, ERR_NET; ERR_RUN: a text without tokens; ERR_LIMIT:
 * longer than TOKEN_TEXT_BYTES_MAX.
 */
int slices_make(const char *input, const struct dataset_opts *o, const struct dataset_env *env,
		int (*put)(void *self, struct str line, struct err *e), void *self,
		struct err *e);
