/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/pass.h - the one pass over a file's bytes in which the places of its rows are found.
 * Private to table/.
 *
 * Afterwards rows are read in any order; table_touch keeps what that leaves in memory small.
 */
#pragma once
#include "table/format.h"

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
