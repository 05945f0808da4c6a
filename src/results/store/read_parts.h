/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read_parts.h - a run's JSON taken apart: the document, per-request arrays, and the hash of
 * both. Private to the reader.
 *
 * The hash does not depend on the order of keys, on white space or on how a text is escaped: it is
 * the SHA-256 of the document with sorted keys and nothing between, followed by a line "name:
 * hash" for each array (its JSON without white space). Numbers count as they are spelled.
 */
#pragma once
#include "core/base/codec.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/json/read.h"

#define INGEST_MEMBERS_MAX 20000  /* keys of one run; the largest documents have 1,200 */
#define INGEST_VALUES_MAX 1000000 /* elements of its lists, arrays per request not counted */

struct parts {
	struct str document;      /* JSON, in the arena, or the slice itself when nothing was cut */
	struct str arrays;        /* {"ttfts":[...],...}; empty: none */
	struct json_value *tree;  /* of document */
	char hash[DIGEST_HEX];
};

/* One run. keep: texts that stay; scratch: the tree, gone when the caller likes. */
int parts_read(struct json_slice run, struct arena *keep, struct arena *scratch, struct parts *out,
	       struct err *e);
