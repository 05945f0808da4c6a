/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/scripted.h - the prompts of vLLM's two scripts about prefix caching, as datasets that only
 * their own verbs name (run/prefix_bench.h).
 *
 * dataset_documents: long documents that share nothing; text of o->document_head, the document's
 * number and the word "hi", o->document_length times. Nothing is drawn.
 *
 * dataset_length_range: prompts of o->range_min to o->range_max tokens. Without a path: one
 * prefix of o->range_prefix random ids and random ids of each prompt's own, of all ids in
 * ascending order but those that the tokenizer declares special. With one: first turns of ShareGPT
 * conversations, shuffled, whose length is in the range; special tokens that the tokenizer adds
 * become text.
 *
 * Both seed Python's generator with env->seed and draw in the scripts' order (spec 5.2, 5.3).
 * Each sample asks for o->custom_output_len tokens.
 *
 * o->exact_tokens: documents are cut so that the engine counts o->document_length tokens, and
 * random prompts are token ids, which no tokenizer makes longer or shorter.
 */
#pragma once
#include "data/dataset.h"

extern const struct dataset dataset_documents, dataset_length_range;
