/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table/thrift.h - Thrift's compact protocol, read in place. Private to table/.
 *
 * A reader walks untrusted bytes. What does not follow the protocol, is of another type than
 * was asked for or passes the end sets is_bad, which stays: numbers are 0 from then on, lists
 * empty and structs at their end, so that callers look once, when they are through.
 *
 *	struct thrift_field f = { 0 };
 *
 *	while (thrift_next(t, &f))
 *		switch (f.id) {
 *		case 1: size = thrift_i32(t, &f); break;
 *		default: thrift_skip(t, &f);
 *		}
 */
#pragma once
#include "base/str.h"

struct thrift {
	const uint8_t *p, *end;
	unsigned depth; /* of what is being skipped */
	bool is_bad;
};

/* A field's number and type as the protocol counts them; zeroed before a struct's first. */
struct thrift_field {
	int id;
	unsigned type;
};

struct thrift thrift(struct str bytes);

/* The next field of the struct that is being read; false: at its end, or bad. */
bool thrift_next(struct thrift *t, struct thrift_field *f);

/* The value of the field that thrift_next just gave. */
bool thrift_bool(struct thrift *t, const struct thrift_field *f);
int32_t thrift_i32(struct thrift *t, const struct thrift_field *f); /* bytes and i16, too */
int64_t thrift_i64(struct thrift *t, const struct thrift_field *f);
struct str thrift_bytes(struct thrift *t, const struct thrift_field *f); /* borrowed */
/* Before the fields of a struct that is one are read with a thrift_field of their own. */
bool thrift_struct(struct thrift *t, const struct thrift_field *f);
/*
 * The number of a list's elements, which follow; each takes a byte at least, so there are
 * never more of them than bytes. *element is what thrift_i32 and so on want for each.
 */
size_t thrift_list(struct thrift *t, const struct thrift_field *f, struct thrift_field *element);
void thrift_skip(struct thrift *t, const struct thrift_field *f);
