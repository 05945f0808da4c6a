/* SPDX-License-Identifier: Apache-2.0 */
/*
 * html.h - one self-contained HTML file from an embedded page and data. Private to out/.
 *
 * The front end (web/) is built into whole pages with one mark in each, HTML_MARK. A page is
 * written as the part before the mark, the data as <script> elements that no browser runs, and the
 * rest. Data are streamed to disk: a JSON value, or columns of whole numbers as packed bytes
 * (LEB128, zlib, base64), which use a fixed few hundred kilobytes of memory however long they are.
 *
 * The file is replaced as a whole at the end (base/file.h).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "core/base/codec.h"
#include "core/base/err.h"
#include "core/base/file.h"
#include "core/base/str.h"

#define HTML_MARK "<!--profllm:data-->"

/* The pages in the program (build/.../assets.S), gzip; a NULL name ends them. */
struct html_asset {
	const char *name;
	const char *packed;
	uint64_t packed_bytes, bytes;
};
extern const struct html_asset html_assets[];

struct html {
	const char *path; /* borrowed */
	struct file_swap swap;
	struct buf tail;  /* the part of the page after the data */
	struct buf out;   /* not yet written */
	struct buf raw;   /* not yet packed */
	struct zip *zip;
	int failed;       /* errno of the first write that failed */
};

/* name: "timeline.html". -1: this build has no pages, or the file cannot be created. */
int html_begin(struct html *h, const char *name, const char *path, struct err *e);
void html_json(struct html *h, const char *id, struct str json);

/* A column: begin, numbers, end. */
void html_column(struct html *h, const char *id);
void html_uint(struct html *h, uint64_t v);
/* 0, -1, 1, -2... as 0, 1, 2, 3... */
static inline void html_int(struct html *h, int64_t v)
{
	html_uint(h, (uint64_t)v << 1 ^ (uint64_t)(v >> 63));
}
void html_column_end(struct html *h);

/* Ends the file, or drops it when something failed; always releases. */
int html_end(struct html *h, struct err *e);
