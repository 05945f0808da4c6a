/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/parquet_file.h - what a Parquet file's footer says: the tree of the columns that are
 * wanted, and where each row group keeps their bytes. Private to table/.
 *
 * The schema becomes a tree of what JSON has: values, objects, lists. Lists in all their
 * legal spellings (three levels, the older two, a bare repeated field) are one node with one
 * child, maps one with two. Everything is checked: levels fit, places lie in the file.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "table/codec.h"
#include "table/format.h"

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
	uint32_t scale;  /* decimals: digits behind the point */
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
