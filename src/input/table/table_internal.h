/* SPDX-License-Identifier: Apache-2.0 */
/* table_internal.h - what each format of table provides, and what they share. */
#pragma once
#include "input/table/table.h"

/* The bytes of a file: mapped, or unpacked into an unnamed file and mapped. */
struct table_bytes {
	struct str all;
	const char *name; /* for errors: the path, with "!member" for one in an archive */
};

/* One format: the state is its own; table.c holds it and the bytes. */
struct table_format {
	const char *name; /* "jsonl" */
	/* NULL with e set; bytes outlive the state. */
	void *(*open)(const struct table_bytes *bytes, const struct table_opts *o, struct err *e);
	void (*close)(void *state); /* accepts NULL */
	size_t (*rows)(const void *state);
	int (*row)(void *state, size_t row, struct json_slice *out, struct err *e);
	/* 1-based line of a row, 0: rows are not lines. May be NULL. */
	size_t (*line)(const void *state, size_t row);
};

/* The name without an ending for compression: the name of the content. */
struct str table_plain(const char *name);

extern const struct table_format table_json, table_csv, table_text, table_parquet;

/*
 * Releases the pages of a mapping that are wholly before `to`, if at least TABLE_WINDOW_BYTES have
 * been read since *from; they come back when touched.
 */
void table_forget(struct str all, size_t *from, size_t to);

/* Compressed files and archives, unpacked into an unnamed file. */

/* Whether the ending or the first bytes say so. */
bool table_is_packed(const char *name, struct str head);

/*
 * Unpacks the file (packed: its bytes), or the one data file in the archive, into $TMPDIR (default
 * /tmp) and maps it: pass *all to file_unmap, after which nothing is left on disk. "!member" is
 * appended to name for a file in an archive. Errors: ERR_PARSE (damaged, several files), ERR_IO
 * (the disk is full), ERR_LIMIT (TABLE_UNPACKED_BYTES_MAX), ERR_CANCELLED.
 */
int table_unpack(const char *path, struct str packed, const struct table_opts *o, struct str *all,
	struct buf *name, struct err *e);
