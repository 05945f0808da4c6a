/* SPDX-License-Identifier: Apache-2.0 */
/* thrift.c - see thrift.h. */
#include "input/table/parquet.h"

enum { /* wire types */
	STOP, TRUE, FALSE, BYTE, I16, I32, I64, DOUBLE, BINARY, LIST, SET, MAP, STRUCT, UUID,
};

#define DEPTH_MAX 32 /* structs and lists in each other; Parquet's own stay below 8 */

struct thrift thrift(struct str bytes)
{
	const uint8_t *p = (const uint8_t *)bytes.p;

	return (struct thrift){ .p = p, .end = p + bytes.n };
}

static size_t left(const struct thrift *t)
{
	return (size_t)(t->end - t->p);
}

static unsigned byte(struct thrift *t)
{
	if (t->is_bad || t->p == t->end) {
		t->is_bad = true;
		return 0;
	}
	return *t->p++;
}

static uint64_t varint(struct thrift *t)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		unsigned b = byte(t);

		v |= (uint64_t)(b & 127) << shift;
		if (b < 128)
			return t->is_bad ? 0 : v;
	}
	t->is_bad = true;
	return 0;
}

static int64_t zigzag(struct thrift *t)
{
	uint64_t v = varint(t);

	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

bool thrift_next(struct thrift *t, struct thrift_field *f)
{
	unsigned head = byte(t);

	f->type = head & 15;
	if (t->is_bad || f->type == STOP)
		return false;
	if (head >> 4) {
		f->id += (int)(head >> 4);
	} else {
		int64_t id = zigzag(t);

		t->is_bad |= id < INT16_MIN || id > INT16_MAX;
		f->id = t->is_bad ? 0 : (int)id;
	}
	/* Steps forward could exceed any number of ids. */
	t->is_bad |= f->id > INT16_MAX;
	return !t->is_bad;
}

bool thrift_bool(struct thrift *t, const struct thrift_field *f)
{
	t->is_bad |= f->type != TRUE && f->type != FALSE;
	return f->type == TRUE;
}

int64_t thrift_i64(struct thrift *t, const struct thrift_field *f)
{
	if (f->type == BYTE)
		return (int8_t)byte(t);
	t->is_bad |= f->type != I16 && f->type != I32 && f->type != I64;
	return zigzag(t);
}

int32_t thrift_i32(struct thrift *t, const struct thrift_field *f)
{
	int64_t v = thrift_i64(t, f);

	t->is_bad |= v < INT32_MIN || v > INT32_MAX;
	return t->is_bad ? 0 : (int32_t)v;
}

struct str thrift_bytes(struct thrift *t, const struct thrift_field *f)
{
	uint64_t n = varint(t);
	struct str s = { (const char *)t->p, (size_t)n };

	t->is_bad |= f->type != BINARY || n > left(t);
	if (t->is_bad)
		return STR("");
	t->p += n;
	return s;
}

bool thrift_struct(struct thrift *t, const struct thrift_field *f)
{
	t->is_bad |= f->type != STRUCT;
	return !t->is_bad;
}

static size_t list_head(struct thrift *t, struct thrift_field *element)
{
	unsigned head = byte(t);
	uint64_t n = head >> 4 == 15 ? varint(t) : head >> 4;

	*element = (struct thrift_field){ .type = head & 15 };
	t->is_bad |= n > left(t);
	return t->is_bad ? 0 : (size_t)n;
}

size_t thrift_list(struct thrift *t, const struct thrift_field *f, struct thrift_field *element)
{
	*element = (struct thrift_field){ 0 };
	t->is_bad |= f->type != LIST && f->type != SET;
	return t->is_bad ? 0 : list_head(t, element);
}

static void jump(struct thrift *t, uint64_t n)
{
	t->is_bad |= n > left(t);
	if (!t->is_bad)
		t->p += n;
}

/* A boolean is in its field's type, but a byte of its own in a list. */
static void skip_items(struct thrift *t, size_t n, const struct thrift_field *item)
{
	for (size_t i = 0; i < n && !t->is_bad; i++)
		if (item->type == TRUE || item->type == FALSE)
			byte(t);
		else
			thrift_skip(t, item);
}

static void skip_map(struct thrift *t)
{
	uint64_t n = varint(t);
	unsigned types = n ? byte(t) : 0;
	struct thrift_field key = { .type = types >> 4 }, value = { .type = types & 15 };

	t->is_bad |= n > left(t);
	for (uint64_t i = 0; i < n && !t->is_bad; i++) {
		skip_items(t, 1, &key);
		skip_items(t, 1, &value);
	}
}

/* Recursion ends at DEPTH_MAX. */
void thrift_skip(struct thrift *t, const struct thrift_field *f)
{
	struct thrift_field inner = { 0 };

	if (++t->depth > DEPTH_MAX)
		t->is_bad = true;
	switch (t->is_bad ? (unsigned)STOP : f->type) {
	case TRUE:
	case FALSE:
		break;
	case BYTE:
		byte(t);
		break;
	case I16:
	case I32:
	case I64:
		varint(t);
		break;
	case DOUBLE:
		jump(t, 8);
		break;
	case UUID:
		jump(t, 16);
		break;
	case BINARY:
		jump(t, varint(t));
		break;
	case LIST:
	case SET: {
		size_t n = list_head(t, &inner);

		skip_items(t, n, &inner);
		break;
	}
	case MAP:
		skip_map(t);
		break;
	case STRUCT:
		while (thrift_next(t, &inner))
			thrift_skip(t, &inner);
		break;
	default:
		t->is_bad = true;
	}
	t->depth--;
}
