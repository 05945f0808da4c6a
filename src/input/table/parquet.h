/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet.h - the content of a Parquet file's footer: the tree of the wanted columns, and where
 * each row group keeps their bytes.
 *
 * The schema becomes a tree of JSON's kinds: values, objects, lists. Lists in all their legal
 * spellings (three levels, the older two, a bare repeated field) are one node with one child, maps
 * one with two. Everything is checked: levels fit, offsets are within the file.
 */
#pragma once
#include <stdatomic.h>

#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/table/codec.h"
#include "input/table/table_internal.h"

/*
 * Thrift's compact protocol, read in place.
 *
 * A reader walks untrusted bytes. What does not follow the protocol, is of another type than
 * was asked for or passes the end sets is_bad, which stays: numbers are 0 from then on, lists
 * empty and structs at their end, so that callers look once, when they are through.
 *
 *	struct thrift_field f = { 0 };
 *
 *	while (thrift_next(t, &f))
 *		switch (f.id) {
 *		case 1: size = thrift_i32(t, &f); break;
 *		default: thrift_skip(t, &f);
 *		}
 */
struct thrift {
	const uint8_t *p, *end;
	unsigned depth; /* of what is being skipped */
	bool is_bad;
};

/* A field's number and type as the protocol counts them; zeroed before a struct's first. */
struct thrift_field {
	int id;
	unsigned type;
};

struct thrift thrift(struct str bytes);

/* The next field of the struct that is being read; false: at its end, or bad. */
bool thrift_next(struct thrift *t, struct thrift_field *f);

/* The value of the field that thrift_next just gave. */
bool thrift_bool(struct thrift *t, const struct thrift_field *f);
int32_t thrift_i32(struct thrift *t, const struct thrift_field *f); /* bytes and i16, too */
int64_t thrift_i64(struct thrift *t, const struct thrift_field *f);
struct str thrift_bytes(struct thrift *t, const struct thrift_field *f); /* borrowed */
/* Before the fields of a struct that is one are read with a thrift_field of their own. */
bool thrift_struct(struct thrift *t, const struct thrift_field *f);
/*
 * The number of a list's elements, which follow; each takes a byte at least, so there are never
 * more of them than bytes. *element is the argument of thrift_i32 and so on for each.
 */
size_t thrift_list(struct thrift *t, const struct thrift_field *f, struct thrift_field *element);
void thrift_skip(struct thrift *t, const struct thrift_field *f);

/* Numbers as Parquet gives them. */
enum parquet_type {
	PARQUET_BOOLEAN, PARQUET_INT32, PARQUET_INT64, PARQUET_INT96, PARQUET_FLOAT,
	PARQUET_DOUBLE, PARQUET_BYTES, PARQUET_FIXED, PARQUET_TYPES,
};

/* How a value is spelled. */
enum parquet_meaning {
	MEANS_TYPE, /* nothing more than its type: a number, a truth value, or data */
	MEANS_TEXT, MEANS_UNSIGNED, MEANS_DECIMAL, MEANS_DATE, MEANS_TIME, MEANS_TIMESTAMP,
	MEANS_UUID, MEANS_HALF,
};

/* A column that is stored. */
struct parquet_leaf {
	struct str path; /* "images.list.element.bytes", for errors */
	enum parquet_type type;
	enum parquet_meaning meaning;
	uint32_t width;  /* bytes of a value; 0: each has its own length, or is a bit */
	uint32_t scale;  /* decimals: digits after the point */
	uint32_t digits; /* times: of the fraction of a second, 3, 6 or 9 */
	bool is_utc;     /* timestamps: not of an unknown time zone */
	uint8_t max_def, max_rep;
	uint32_t stored; /* its place among all leaves */
};

enum parquet_shape { SHAPE_VALUE, SHAPE_OBJECT, SHAPE_LIST, SHAPE_MAP };

/*
 * A node and the definition levels of its first leaf: below present it is null; a list or
 * map below filled is empty, and its items after the first have the repetition level rep.
 */
struct parquet_node {
	enum parquet_shape shape;
	bool has_text_keys;  /* a map that is spelled as an object */
	struct str key;      /* "name": as JSON, with the colon; "" in lists */
	uint8_t present, filled, rep;
	uint32_t first_leaf, leaf_count; /* in parquet_file.leaf */
	struct parquet_node *child, *next; /* first child, next sibling */
};

/* The bytes of one leaf in one row group. */
struct parquet_chunk {
	uint64_t begin, end; /* in the file */
	uint64_t values;     /* with nulls and empty lists */
	enum codec codec;
};

struct parquet_group {
	uint64_t first_row, rows;
};

struct parquet_file {
	const char *name;
	struct str all;
	struct arena arena;       /* nodes and texts */
	struct parquet_node *top; /* the first wanted top-level column; NULL: none */
	struct parquet_leaf *leaf;
	struct parquet_group *group;
	struct parquet_chunk *chunk; /* leaf_count of each group, one group after the other */
	uint32_t leaf_count;  /* wanted ones */
	uint32_t stored_count; /* all */
	uint32_t group_count;
	uint64_t rows;
};

/* Zeroes f first; -1 with e set, nothing to release then. columns as in table_opts. */
int parquet_file_open(struct parquet_file *f, const struct table_bytes *bytes,
		      const char *const *columns, struct err *e);
void parquet_file_release(struct parquet_file *f);

static inline struct parquet_chunk *parquet_chunk_of(const struct parquet_file *f,
						     uint32_t group, uint32_t leaf)
{
	return &f->chunk[(size_t)group * f->leaf_count + leaf];
}

/*
 * Small numbers packed in bits.
 *
 * Two packings: runs (Parquet's "RLE/bit-packing hybrid", for levels, dictionary indices and
 * booleans) and deltas (DELTA_BINARY_PACKED, for integers and lengths). Both are read one number at
 * a time from untrusted bytes, without memory of their own: a run of 2^31 equal numbers in six
 * bytes costs nothing until all of them are read.
 */

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
/* The deprecated packing of levels: bytes holds only numbers. */
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
	bool is_first;           /* the next number is in the header */
};

/* False: a damaged header. */
bool deltas_begin(struct deltas *d, struct str bytes);
/* False: no more numbers, or damaged. */
bool deltas_next(struct deltas *d, int64_t *v);
/* The byte after all numbers of d, which must not have been read from; NULL: damaged. */
const uint8_t *deltas_end(struct deltas d);

/*
 * The values of one page, in order.
 *
 * Whatever their encoding, values come out as the bytes that PLAIN would have: little-endian
 * numbers of leaf->width bytes, a byte for a boolean, a text's bytes. Nulls are not included.
 */

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

/* Replaces d, freeing what it held. Errors do not name the place. */
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
 * Starts at the first value; v is zeroed or was used before. dictionary may be NULL where the
 * encoding needs none. bytes and dictionary are borrowed. Errors do not name the place.
 */
int parquet_values_begin(struct parquet_values *v, const struct parquet_leaf *leaf,
			 enum parquet_encoding encoding, struct str bytes,
			 const struct parquet_dictionary *dictionary, struct err *e);
/* *value is good until the next call. False: no more values, or damaged ones. */
bool parquet_values_next(struct parquet_values *v, struct str *value);
bool parquet_values_skip(struct parquet_values *v, uint64_t n);
void parquet_values_release(struct parquet_values *v);

/*
 * One leaf of a Parquet file, entry by entry.
 *
 * An entry is a repetition level, a definition level and, at the highest definition level, a value.
 * A column has a position in one row group; it keeps one unpacked page and the group's dictionary.
 * The beginnings of pages are remembered, so that going back or ahead to a known page unpacks only
 * that page. Damage is an error of the row that meets it; after an error column_lose makes the next
 * seek start again.
 */

/* The beginning of a page whose first entry begins a row. */
struct parquet_place {
	uint64_t at, row;
	uint64_t values_left; /* of the chunk, from this page on */
};

struct parquet_places {
	struct parquet_place *place;
	uint32_t count;
	size_t room;
	uint64_t dictionary_at; /* header of the chunk's dictionary; 0: none was met */
};

/* Kept from the unpacked page, to begin it again. */
struct parquet_page {
	uint64_t at, row;    /* of the header; rows begun before it */
	uint64_t entries;    /* left */
	uint64_t all_entries; /* 0: no page */
	uint64_t rows;       /* V2: as its header says */
	struct str reps, defs, data;
	enum parquet_encoding encoding;
	bool is_reps_msb, is_defs_msb;
	bool is_v2;          /* begins a row */
	bool begins_row;     /* known to */
};

struct parquet_column {
	const struct parquet_file *file;
	const struct parquet_leaf *leaf;
	const struct parquet_chunk *chunk;
	const atomic_bool *cancel;     /* may be NULL */
	struct parquet_places *places; /* one for each row group */
	size_t *places_left;           /* of all columns: how many more may be remembered */
	uint32_t index, group;
	bool is_placed;
	/* The current entry, after column_peek. */
	bool has_entry, is_end;
	uint8_t def, rep;

	uint64_t row;         /* rows whose first entry was taken */
	uint64_t next_page;   /* the header after the current page */
	uint64_t values_left; /* of the chunk, after the current page */
	uint64_t owed;        /* values that were passed over and not yet skipped */
	struct parquet_page page;
	struct runs reps, defs;
	struct parquet_values values;
	struct buf unpacked;
	uint64_t dictionary_at; /* header of the chunk's dictionary; 0: none was met */
	bool has_dictionary;    /* it is unpacked */
	struct parquet_dictionary dictionary;
	struct buf dictionary_bytes;
	size_t forgotten;       /* pages of the file before this were released */
};

void column_init(struct parquet_column *c, const struct parquet_file *f, uint32_t leaf,
		 const atomic_bool *cancel, size_t *places_left);
void column_release(struct parquet_column *c);
void column_lose(struct parquet_column *c);

/* To the first entry of a row of a group (counted from the group's first). */
int column_seek(struct parquet_column *c, uint32_t group, uint64_t row, struct err *e);
/* Fills rep and def; at the group's end is_end is set and both are 0. */
int column_peek(struct parquet_column *c, struct err *e);
/* Moves past the peeked entry; its value, if any, is skipped. */
void column_drop(struct parquet_column *c);
/* The value of the peeked entry, whose def is the highest; valid until the next call. */
int column_value(struct parquet_column *c, struct str *value, struct err *e);

/* Fills e with file, column, row group, page and what is wrong; returns -1. */
__attribute__((format(printf, 4, 5)))
int column_fail(const struct parquet_column *c, struct err *e, enum err_code code,
		const char *fmt, ...);

/*
 * One stored value as JSON.
 *
 * Integers are numbers, signed or not; floats and half floats the shortest decimal that reads back
 * as the same double (a float's value as a double, the way Python reads it). Text is text. Decimals
 * are texts with all digits of their scale ("12.50"). Dates, times and timestamps are ISO 8601 as
 * Python's isoformat() spells them: "2024-05-01", "13:45:00.250000", "2024-05-01T13:45:00+00:00"; a
 * fraction of zero is left out, any other has the 3, 6 or 9 digits of the column's unit; "+00:00"
 * is written for columns in UTC; years outside 0 to 9999 have a sign. INT96 is a timestamp of
 * nanoseconds. UUIDs are texts with hyphens. All other bytes are texts of the form
 * "data:;base64,...".
 */

/* Appends the value, as given by parquet_values_next. -1 with e set, without a place. */
int parquet_spell(const struct parquet_leaf *leaf, struct str value, struct buf *out,
		  struct err *e);
