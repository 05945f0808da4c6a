/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flatten.h - cells in the making: JSON values under dotted names, each name once. Private to
 * the reader (read.c, kinds*.c).
 *
 * The first value under a name stays; later ones are ignored, so whoever knows best comes first.
 * Names are shared by all runs of a file. What no cell can be is counted and said in a note:
 * names that are empty, longer than COLUMN_BYTES_MAX or hold control characters.
 */
#pragma once
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "results/index/row.h"

#define COLUMN_BYTES_MAX 128
#define FLATTEN_DEPTH_MAX 8      /* objects deeper than this become JSON texts */
#define FLATTEN_NAMES_MAX 50000  /* different columns of one file */

struct cells {
	struct arena *arena;      /* of names and texts */
	struct cell *cell;        /* of the run in the making */
	size_t n, cap;
	bool is_over;             /* more than INGEST_CELLS_MAX */
	size_t bad_names;         /* of the whole file */
	struct map names;         /* to an index in name */
	struct known_name { struct str text; size_t run; } *name;
	size_t n_names, cap_names;
	size_t run;               /* number of the run, from 1 */
	struct buf scratch;
};

void cells_init(struct cells *c, struct arena *a);
void cells_release(struct cells *c);
void cells_begin(struct cells *c); /* the next run: no cells */
/* The run's cells, copied into the arena. */
struct row cells_row(const struct cells *c);

/* A NaN stays until read.c has seen it: of a metric it is told, else it is null. */
void cells_put(struct cells *c, struct str name, struct value v);
void cells_put_text(struct cells *c, const char *name, struct str text);
void cells_put_number(struct cells *c, const char *name, double v); /* NaN: null */

/*
 * A value as it stands: null, booleans, numbers and texts are cells, "inf" and "-inf" infinite numbers.
 * A list of those, and an empty object, is its JSON as a text; objects are taken apart, a name
 * with a dot for each level; lists that hold objects or lists, or are long, are left out. prefix
 * NULL: none. v NULL: nothing.
 */
void cells_put_json(struct cells *c, const char *prefix, struct str key,
		    const struct json_value *v);
/* Every member of an object. */
void cells_put_members(struct cells *c, const char *prefix, const struct json_value *object);

/* What a text, number or word stands for; absent for lists and objects. Borrowed from v. */
struct value value_of(const struct json_value *v);
/* "8", "0.5", "True", "null" as what they mean: for values that a command line made texts. */
struct value value_of_word(struct str text);
