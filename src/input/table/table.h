/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.h - the rows of one data file, in any supported format, each as a JSON object.
 *
 * A table knows how many rows it has and gives any of them by number, so that the caller decides
 * the order. Formats by the name's ending, then by the first bytes: .json (an array of objects, or
 * lines), .jsonl/.ndjson, .csv/.tsv (a head line; cells are texts, empty ones too), .txt ("text":
 * the line), .parquet; each but Parquet also compressed (.gz, .zst, ...) and inside .zip or .tar
 * (one data file in it).
 *
 * Rows are spelled as JSON in every format. Binary values (Parquet bytes without a text annotation)
 * are texts of the form "data:;base64,...". Text that is not UTF-8 is made valid, as json_unescape
 * does. Integers keep all digits; NaN and infinities are spelled as Python does; dates and times
 * are texts (ISO 8601), decimals, too. A Parquet map is an object when its keys are text, else a
 * list of {"key", "value"}.
 *
 * Memory is bounded for files of any size: a file is mapped and pages that were read are released
 * (TABLE_WINDOW_BYTES); per row 8 bytes are kept; a compressed file is first unpacked into an
 * unnamed file in $TMPDIR (default /tmp). Of Parquet one page per wanted column is unpacked at a
 * time; reading rows in ascending order unpacks each page once.
 *
 * One thread at a time per table. Errors: ERR_IO, ERR_PARSE (a damaged file), ERR_LIMIT,
 * ERR_CANCELLED; each names the file and the place in it (line, row or byte).
 */
#pragma once
#include <stdatomic.h>
#include <stddef.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"

struct table;

/* Zeroed: every column. */
struct table_opts {
	const char *const *columns; /* NULL-terminated: top-level members that are wanted (others
	                               may be there too); NULL: all */
	const char *ending;         /* of the format where name and bytes do not tell; NULL: none */
	const atomic_bool *cancel;  /* may be NULL */
	/* Progress while the file is opened: bytes read, and total; may be NULL. */
	void (*progress)(void *self, uint64_t done, uint64_t total);
	void *self;
};

/* NULL with e set. Costs one pass over the file; for Parquet only the footer. */
struct table *table_open(const char *path, const struct table_opts *o, struct err *e);
void table_close(struct table *t); /* accepts NULL */

size_t table_rows(const struct table *t);

/*
 * Row number `row` (from 0, below table_rows). row's text stays until the next call on t. An
 * element that is not an object is an error (ERR_PARSE).
 */
int table_row(struct table *t, size_t row, struct json_slice *out, struct err *e);

/* Whether the rows are the elements of one JSON array. */
bool table_is_array(const struct table *t);

/* Appends the place of a row, for errors: "train.jsonl:17", "x.parquet: row 17". */
void table_where(const struct table *t, size_t row, struct buf *out);

/* Whether a file's name ends like one of the formats above. */
bool table_is_name(const char *path);
