/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/slices.h - prompts of a chosen length cut out of a long text; datasets spec 5.11.
 *
 * The text is encoded once without special tokens; each prompt is a run of its ids, which goes
 * on at the beginning when it reaches the end, decoded. Lengths are those of the random dataset
 * of the same seed; where runs begin comes from Python's generator of that seed.
 */
#pragma once
#include "base/buf.h"
#include "data/dataset.h"

/*
 * input: a file, or an http(s) URL. Lengths are random_input_len, random_output_len and their
 * ratios of o; num_prompts, seed, tokenizer, threads, progress and cancel those of env. Gives
 * each line of a custom dataset ({"prompt": ..., "output_tokens": n} and a line end) to put,
 * in order; put returns -1 (and fills e) to end. ERR_IO, ERR_NET; ERR_RUN: a text without
 * tokens; ERR_LIMIT: longer than TOKEN_TEXT_BYTES_MAX.
 */
int slices_make(const char *input, const struct dataset_opts *o, const struct dataset_env *env,
		int (*put)(void *self, struct str line, struct err *e), void *self,
		struct err *e);
