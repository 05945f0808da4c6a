/* SPDX-License-Identifier: Apache-2.0 */
/*
 * select.h - rows as bits: what a filter chooses of a version, and walking over it.
 *
 * Row r is bit r % 64 of word r / 64; bits behind the last row are 0. Blocks begin at whole words.
 */
#pragma once
#include "results/index/part.h"

static inline size_t select_words(const struct index_view *v) { return (v->n_rows + 63) / 64; }

/* Zeroed bits for all rows. */
uint64_t *select_none(const struct index_view *v, struct arena *a);
void select_all(const struct index_view *v, uint64_t *out);
/* Rows whose flags are all in shown, and with is_only, at least one of them. */
void select_shown(const struct index_view *v, unsigned shown, bool is_only, uint64_t *out);
/* Rows that f holds for. */
void select_filter(const struct index_view *v, const struct filter *f, struct arena *a,
		   uint64_t *out);
void select_and(const struct index_view *v, const uint64_t *with, uint64_t *out);

/* Chosen rows, counted, and laid out by block. */
struct choice {
	const uint64_t *word;
	size_t total;
	uint32_t *count;  /* of each block */
	uint16_t **place; /* of each block, where its rows lie in it; NULL: all of them, or none */
};
void choice_make(const struct index_view *v, const uint64_t *word, struct arena *a,
		 struct choice *out);

/* Row number of the ith chosen one of a block, which begins at row `first`. */
static inline size_t choice_row(const struct choice *c, size_t block, size_t i, size_t first)
{
	return first + (c->place[block] ? c->place[block][i] : i);
}

/* Finite numbers of the chosen rows of a column, in the order of rows; room for choice->total. */
size_t choice_numbers(const struct index_view *v, const struct choice *c, const struct head *h,
		      struct arena *a, double *out);
