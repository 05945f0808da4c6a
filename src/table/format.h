/* SPDX-License-Identifier: Apache-2.0 */
/* table/format.h - what each format of table provides. Private to table/. */
#pragma once
#include "table/table.h"

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
