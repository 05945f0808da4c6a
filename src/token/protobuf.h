/* SPDX-License-Identifier: Apache-2.0 */
/*
 * token/protobuf.h - the fields of a protocol buffer message, one after the other.
 *
 * Nothing is copied and nothing nests: a message inside a message is a field of
 * kind PROTOBUF_BYTES and read with a reader of its own (protobuf_inner). Groups,
 * which no format in use here has, are stepped over.
 */
#pragma once
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

enum protobuf_kind {
	PROTOBUF_INT = 0,     /* all whole numbers, enums and booleans */
	PROTOBUF_FIXED64 = 1,
	PROTOBUF_BYTES = 2,   /* text, bytes, messages */
	PROTOBUF_FIXED32 = 5, /* float is one */
};

struct protobuf_field {
	uint32_t number;
	enum protobuf_kind kind;
	uint64_t value;   /* of the kinds that are numbers */
	struct str bytes; /* borrowed */
};

struct protobuf {
	struct str file; /* positions in errors count from its start */
	size_t at, end;
};

static inline struct protobuf protobuf(struct str file)
{
	return (struct protobuf){ file, 0, file.n };
}

/* The message in a field of kind PROTOBUF_BYTES that p gave. */
struct protobuf protobuf_inner(const struct protobuf *p, const struct protobuf_field *f);

/* The next field: 1, or 0 at the end, or -1 when the bytes are no message. */
int protobuf_next(struct protobuf *p, struct protobuf_field *f, struct err *e);

float protobuf_float(const struct protobuf_field *f);
