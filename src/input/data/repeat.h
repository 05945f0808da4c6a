/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeat.h - the same prompts again: --repeat-count and --repeat-order, for every dataset.
 *
 * Whole copies of the samples a dataset has drawn are put in one of four orders, which decide
 * what a prefix cache of limited size can find again. Copies are sent unchanged; only
 * their request ids differ, because ids in flight must be unique.
 */
#pragma once
#include <stddef.h>

#include "client/plan/workload.h"
#include "core/base/str.h"
#include "input/data/dataset.h"

/*
 * --repeat-order: "random": list x count, shuffled; "tile": list x count, the largest distance
 * between two copies of a sample; "interleave": each sample count times in a row, the smallest
 * distance; "sorted": list x count, stably sorted by prompt tokens. NULL-terminated.
 */
extern const char *const repeat_orders[];

/* The repetition; in the workload's arena. */
struct repeats {
	uint32_t count;      /* copies of each sample */
	const char *order;   /* of repeat_orders */
	uint32_t *first;     /* per sample, in the dataset's order: its first copy here */
	size_t n;            /* samples before they were repeated */
};

/*
 * Repeats the samples of a workload that is built. Draws once, from rng's Python generator, for
 * "random" alone: upstream's shuffle of the whole list. Nothing happens with a count of 1
 * and no order. ERR_USAGE: a workload of conversations; ERR_LIMIT: too many requests.
 */
int dataset_repeat(struct workload *w, const struct dataset_opts *o, struct compat_rng *rng,
		   struct err *e);

/*
 * The share of all prompt tokens that earlier requests had at the beginning of theirs: what a
 * prefix cache would save that never evicts, is empty at the start and has blocks of one token.
 * Common bytes are converted to tokens by their share of the prompt (data/prefix.h). is_warm: every
 * prompt was sent before the first request. NAN: not known, because prompts have media, or their
 * tokens were not counted.
 */
double dataset_ideal_reuse(const struct workload *w, bool is_warm);

/*
 * What the prompts of a run have in common with earlier ones, which an initially empty prefix cache
 * can hold for them.
 */

/* The part of a sample that the server sees first: its messages, or its prompt. */
struct str prefix_text(const struct sample *s);

/*
 * share[i]: the longest prefix that text i has in common with a text before it, in bytes
 * of its own (0: nothing, 1: all of it). In n log n comparisons.
 */
void prefix_shared(const struct str *text, size_t n, double *share);

/* Tokens that prompts may share beyond that. */
#define PREFIX_TEMPLATE_TOKENS 96 /* of chat: the longest known head of a template has 70 */
#define PREFIX_BLOCK_TOKENS 16
