/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/data_put.h - cells, rows, facets and statistics as the JSON of answers. Private to web/.
 *
 * Answers are strict JSON: an infinite number is "inf" or "-inf", a number that is none is null.
 * Whole numbers are written without a point.
 */
#pragma once
#include "web/route.h"

void data_put_number(struct json_writer *w, double v);
/* Not for absent ones. */
void data_put_value(struct json_writer *w, struct value v);
/* As it would stand in a CSV file, unquoted; absent: nothing. */
void data_add_value(struct buf *out, struct value v);
void data_put_key_number(struct json_writer *w, const char *key, double v);
void data_put_key_str(struct json_writer *w, const char *key, struct str v);
/* Empty: null. */
void data_put_key_or_null(struct json_writer *w, const char *key, struct str v);
void data_put_flags(struct json_writer *w, unsigned flags);

/* Members "total", "items", "next" and "columns" of a page. */
void data_put_page(struct json_writer *w, const struct query *q, const struct answer *a);
void data_put_facet(struct json_writer *w, const struct facet *f);
/* Member "histogram", and the ends of its range as "min" and "max". */
void data_put_histogram(struct json_writer *w, const struct facet *f);
/* Member "statistics". */
void data_put_statistics(struct json_writer *w, const struct answer *a);
