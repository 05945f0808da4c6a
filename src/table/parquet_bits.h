/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/parquet_bits.h - small numbers packed in bits. Private to table/.
 *
 * Two packings: runs (Parquet's "RLE/bit-packing hybrid", for levels, dictionary indices and
 * truth values) and deltas (DELTA_BINARY_PACKED, for integers and lengths). Both are read one
 * number at a time from untrusted bytes, without memory of their own: a run of 2^31 equal
 * numbers in six bytes costs nothing until somebody wants all of them.
 */
#pragma once
#include "base/str.h"

/* `width` bits (at most 64) from bit `at` on, low bits first; bits past the end are 0. */
uint64_t bits_at(const uint8_t *p, const uint8_t *end, uint64_t at, unsigned width);

struct runs {
	const uint8_t *p, *end; /* of what follows the current run */
	uint64_t left;          /* numbers left in the current run */
	uint64_t bit;           /* packed: place of the next number, from packed on */
	const uint8_t *packed;  /* NULL: value is the number */
	uint32_t value;
	uint8_t width;          /* bits of a number, at most 32 */
	bool is_msb;            /* packed with high bits first, without runs (BIT_PACKED) */
};

/* Runs of numbers of a width; of width 0 there is one endless run of zeros. */
struct runs runs(struct str bytes, unsigned width);
/* The deprecated packing of levels: all of bytes are numbers. */
struct runs runs_msb(struct str bytes, unsigned width);
/* Makes left > 0; false: no more numbers. */
bool runs_fill(struct runs *r);
uint32_t runs_packed(struct runs *r); /* the next one of a packed run */

/* left must be above 0. */
static inline uint32_t runs_take(struct runs *r)
{
	r->left--;
	return r->packed ? runs_packed(r) : r->value;
}

/* How many of the next numbers are equal for sure: a whole run, or 1 of a packed one. */
static inline uint64_t runs_equal(const struct runs *r)
{
	return r->packed ? 1 : r->left;
}

struct deltas {
	const uint8_t *p, *end;  /* of what follows the current block's head */
	const uint8_t *widths;   /* of the miniblocks that are left in the block */
	const uint8_t *mini;     /* the current miniblock's bits */
	uint64_t per_mini;       /* numbers in a miniblock */
	uint64_t minis, minis_left; /* miniblocks in a block; left in the current one */
	uint64_t left;           /* numbers to come, of all */
	uint64_t mini_left, bit; /* numbers left in the miniblock; place of the next */
	int64_t min, last;
	uint8_t width;
	bool is_first;           /* the next number stands in the head */
};

/* False: a damaged head. */
bool deltas_begin(struct deltas *d, struct str bytes);
/* False: no more numbers, or damaged. */
bool deltas_next(struct deltas *d, int64_t *v);
/* The byte behind all numbers of d, which must be fresh; NULL: damaged. */
const uint8_t *deltas_end(struct deltas d);
