/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/parquet_column.h - one leaf of a Parquet file, entry by entry. Private to table/.
 *
 * An entry is a repetition level, a definition level and, at the highest definition level, a
 * value. A column stands before an entry of one row group; it keeps one unpacked page and the
 * group's dictionary. Where pages begin is remembered as they are passed, so that going back
 * or ahead to a known page unpacks that page alone. Damage is an error of the row that meets
 * it; after an error column_lose makes the next seek start anew.
 */
#pragma once
#include <stdatomic.h>

#include "table/parquet_values.h"

/* Where a page begins whose first entry begins a row. */
struct parquet_place {
	uint64_t at, row;
	uint64_t values_left; /* of the chunk, from this page on */
};

struct parquet_places {
	struct parquet_place *place;
	uint32_t count, room;
	uint64_t dictionary_at; /* header of the chunk's dictionary; 0: none was met */
};

/* What is kept of the page that is unpacked, to begin it again. */
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
	/* The entry before which it stands, once column_peek was there. */
	bool has_entry, is_end;
	uint8_t def, rep;

	uint64_t row;         /* rows whose first entry was taken */
	uint64_t next_page;   /* the header behind the current page */
	uint64_t values_left; /* of the chunk, behind the current page */
	uint64_t owed;        /* values that were passed over and not yet skipped */
	struct parquet_page page;
	struct runs reps, defs;
	struct parquet_values values;
	struct buf unpacked;
	uint64_t dictionary_at; /* header of the chunk's dictionary; 0: none was met */
	bool has_dictionary;    /* it is unpacked */
	struct parquet_dictionary dictionary;
	struct buf dictionary_bytes;
	size_t forgotten;       /* pages of the file before this were given back */
};

void column_init(struct parquet_column *c, const struct parquet_file *f, uint32_t leaf,
		 const atomic_bool *cancel, size_t *places_left);
void column_release(struct parquet_column *c);
void column_lose(struct parquet_column *c);

/* To the first entry of a row of a group (counted from the group's first). */
int column_seek(struct parquet_column *c, uint32_t group, uint64_t row, struct err *e);
/* Fills rep and def; at the group's end is_end is set and both are 0. */
int column_peek(struct parquet_column *c, struct err *e);
/* Past the entry that was peeked at; its value, if it has one, is passed over. */
void column_drop(struct parquet_column *c);
/* The value of the entry that was peeked at, whose def is the highest; good until the next call. */
int column_value(struct parquet_column *c, struct str *value, struct err *e);

/* Fills e with file, column, row group, page and what is wrong; returns -1. */
__attribute__((format(printf, 4, 5)))
int column_fail(const struct parquet_column *c, struct err *e, enum err_code code,
		const char *fmt, ...);
