/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/parquet_values.h - the values of one page, one after the other. Private to table/.
 *
 * Whatever their encoding, values come out as the bytes that PLAIN would have: little-endian
 * numbers of leaf->width bytes, a byte for a truth value, a text's bytes. Nulls are not here.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"
#include "table/parquet_bits.h"
#include "table/parquet_file.h"

/* Numbers as Parquet gives them. */
enum parquet_encoding {
	ENCODING_PLAIN = 0, ENCODING_PLAIN_DICTIONARY = 2, ENCODING_RLE = 3,
	ENCODING_BIT_PACKED = 4, ENCODING_DELTA_BINARY = 5, ENCODING_DELTA_LENGTH = 6,
	ENCODING_DELTA_BYTES = 7, ENCODING_RLE_DICTIONARY = 8, ENCODING_SPLIT = 9,
};

/* A dictionary page, unpacked. */
struct parquet_dictionary {
	struct str bytes;  /* borrowed */
	uint32_t *at;      /* where each value of its own length begins; NULL: all have width */
	size_t count;
	uint32_t width;
};

/* Replaces d, freeing what it held. Errors have no place. */
int parquet_dictionary_read(struct parquet_dictionary *d, const struct parquet_leaf *leaf,
			    struct str bytes, uint64_t count, struct err *e);
void parquet_dictionary_release(struct parquet_dictionary *d);

struct parquet_values {
	const struct parquet_dictionary *dictionary;
	enum parquet_encoding encoding;
	bool is_bool;
	uint32_t width;
	const uint8_t *p, *end;
	uint64_t at, count;    /* SPLIT, truth values: the next one; all there are */
	struct runs runs;      /* indices, truth values */
	struct deltas numbers; /* numbers, or lengths; of what follows a common prefix */
	struct deltas prefixes;
	struct buf last;       /* DELTA_BYTES: the value before */
	uint8_t scratch[32];
};

/*
 * From the first value on; v is zeroed or was used before. dictionary may be NULL where the
 * encoding needs none. bytes and dictionary are borrowed. Errors have no place.
 */
int parquet_values_begin(struct parquet_values *v, const struct parquet_leaf *leaf,
			 enum parquet_encoding encoding, struct str bytes,
			 const struct parquet_dictionary *dictionary, struct err *e);
/* *value is good until the next call. False: no more values, or damaged ones. */
bool parquet_values_next(struct parquet_values *v, struct str *value);
bool parquet_values_skip(struct parquet_values *v, uint64_t n);
void parquet_values_release(struct parquet_values *v);
