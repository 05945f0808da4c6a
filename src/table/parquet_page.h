/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/parquet_page.h - the header in front of a page, and the page unpacked. Private to
 * table/.
 */
#pragma once
#include "table/parquet_column.h"

enum { PAGE_DATA, PAGE_INDEX, PAGE_DICTIONARY, PAGE_DATA_V2 };

struct page_head {
	int32_t type, encoding;
	int32_t def_encoding, rep_encoding;   /* V1 */
	uint32_t packed, unpacked;            /* bytes */
	uint64_t body;                        /* where it begins in the file */
	uint64_t values;                      /* entries, or values of a dictionary */
	uint64_t rows;                        /* V2 */
	uint32_t def_bytes, rep_bytes;        /* V2 */
	bool is_packed;                       /* V2: the values are; V1: true */
};

/* The header at a place of the column's chunk; its body lies in the chunk. */
int page_read_head(const struct parquet_column *c, uint64_t at, struct page_head *head,
		   struct err *e);
/* Unpacks a data page (and the dictionary, if it needs it) into c, before its first entry. */
int page_load(struct parquet_column *c, uint64_t at, const struct page_head *head,
	      struct err *e);
/* Begins c's page again at its first entry. */
int page_begin(struct parquet_column *c, struct err *e);
