/* SPDX-License-Identifier: Apache-2.0 */
/* table_internal.h - what each format of table provides, and what they share. */
#pragma once
#include "input/table/table.h"

/* The bytes of a file: mapped, or unpacked into a nameless file and mapped. */
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
	/* 1-based line of a row, 0: rows are no lines. May be NULL. */
	size_t (*line)(const void *state, size_t row);
};

/* The name without an ending that says "compressed": what it is inside. */
struct str table_plain(const char *name);

extern const struct table_format table_json, table_csv, table_text, table_parquet;

/*
 * Gives the pages of a mapping that lie wholly before `to` back to the system, if at least
 * TABLE_WINDOW_BYTES have been read since *from; they come back when touched.
 */
void table_forget(struct str all, size_t *from, size_t to);

/*
 * Compressed files and archives, by way of a file without a name.
 */

/* Whether the ending or the first bytes say so. */
bool table_is_packed(const char *name, struct str head);

/*
 * Unpacks the file (packed: its bytes), or the one data file in the archive, into $TMPDIR (default
 * /tmp) and maps it: *all is to be given to file_unmap, nothing is left on the disk
 * then. "!member" is appended to name for a file in an archive. Errors: ERR_PARSE (damaged, several files), ERR_IO
 * (the disk is full), ERR_LIMIT (TABLE_UNPACKED_BYTES_MAX), ERR_CANCELLED.
 */
int table_unpack(const char *path, struct str packed, const struct table_opts *o, struct str *all,
	struct buf *name, struct err *e);

/*
 * The one pass over a file's bytes in which the places of its rows are found.
 *
 * Afterwards rows are read in any order; table_touch keeps what that leaves in memory small.
 */
struct table_pass {
	const struct table_bytes *bytes;
	const struct table_opts *o;
	uint64_t *place; /* where each row begins */
	size_t rows, cap;
	size_t kept;     /* pages before this are given back */
	size_t due;      /* where the next look around is due */
	size_t touched;  /* bytes that may have come in since pages were last given back */
	size_t last;     /* where the last row began */
};

void table_pass_begin(struct table_pass *p, const struct table_bytes *bytes,
	const struct table_opts *o);
void table_pass_release(struct table_pass *p);
/* Where the text begins: behind a byte order mark. -1: it is UTF-16. */
int table_text_at(const struct table_bytes *bytes, size_t *at, struct err *e);

/* Notes a row that begins at `at`. -1: TABLE_ROWS_MAX. */
int table_pass_row(struct table_pass *p, size_t at, struct err *e);
/* The bytes before `at` are done with: memory, progress, ERR_CANCELLED. */
int table_pass_look(struct table_pass *p, size_t at, struct err *e);
static inline int table_pass_on(struct table_pass *p, size_t at, struct err *e)
{
	return at < p->due ? 0 : table_pass_look(p, at, e);
}
/* The pass is over: the last progress; from now on rows are read in any order. */
int table_pass_end(struct table_pass *p, struct err *e);

/* A row of n bytes is about to be read; pages of earlier ones may go. */
void table_touch(struct table_pass *p, size_t at, size_t n);
/* 1-based line of a place; reads the file up to there. */
size_t table_line_at(const struct table_bytes *bytes, size_t at);
/* ERR_LIMIT for a row of more than TABLE_ROW_BYTES_MAX bytes. */
int table_check_size(const struct table_pass *p, size_t at, size_t n, struct err *e);
