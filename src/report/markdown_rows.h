/* SPDX-License-Identifier: Apache-2.0 */
/* report/markdown_rows.h - rows of the dashboard's tables. Private to report/markdown*.c. */
#pragma once
#include "report/markdown.h"
#include "results/frame.h"

enum markdown_kind {
	MARKDOWN_LATENCY, MARKDOWN_THROUGHPUT, MARKDOWN_SERVING, MARKDOWN_STARTUP, MARKDOWN_KINDS,
};

/* Objects with display names in one order; values as they were before sorting. */
struct markdown_tables { struct frame table[MARKDOWN_KINDS]; };

/*
 * Adds a record to the table of its kind. commands: the object of FILE.commands, or NULL.
 */
int markdown_add(struct markdown_tables *t, enum markdown_kind kind,
		 const struct json_value *record, const struct json_value *commands,
		 const char *name, struct arena *a, struct err *e);
/* What a record is; MARKDOWN_KINDS: no result. */
enum markdown_kind markdown_kind(const struct json_value *record);
/* The display names of a table in order; NULL after the last. */
const char *markdown_column(enum markdown_kind kind, size_t i);
/* Cores, memory, nodes and the processor's name of this machine as a Markdown table. */
void markdown_platform(struct buf *out, struct arena *a);
