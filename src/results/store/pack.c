/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - see pack.h. */
#include <math.h>

#include "core/base/limits.h"
#include "input/table/codec.h"
#include "results/store/pack.h"

#define LEVEL 3
#define WHOLE_MAX 0x1p53

enum cell_kind { CELL_NULL, CELL_FALSE, CELL_TRUE, CELL_WHOLE, CELL_REAL, CELL_TEXT };

static void put_u64(struct buf *out, uint64_t v)
{
	char bytes[8];

	for (size_t i = 0; i < 8; i++)
		bytes[i] = (char)(v >> (8 * i));
	buf_add(out, bytes, 8);
}

static uint64_t take_u64(const char *p)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 8; i++)
		v |= (uint64_t)(uint8_t)p[i] << (8 * i);
	return v;
}

void pack_text(struct str text, struct buf *out)
{
	put_u64(out, text.n);
	codec_pack(text, LEVEL, out);
}

int unpack_text(struct str packed, struct buf *out, struct err *e)
{
	struct buf text = { .limit = PACK_TEXT_BYTES_MAX };
	uint64_t size = packed.n < 8 ? UINT64_MAX : take_u64(packed.p);

	if (size > PACK_TEXT_BYTES_MAX)
		return err_set(e, ERR_PARSE, "what the store kept is cut off or damaged");
	if (codec_unpack(CODEC_ZSTD, (struct str){ packed.p + 8, packed.n - 8 }, (size_t)size,
			 &text, e) < 0) {
		buf_release(&text);
		return err_wrap(e, "what the store kept is damaged");
	}
	buf_add_str(out, buf_str(&text));
	buf_release(&text);
	return 0;
}

static void put_number(struct buf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_add_char(out, (char)(v | 0x80));
	buf_add_char(out, (char)v);
}

static bool take_number(struct str *rest, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; rest->n && shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)*rest->p;

		rest->p++;
		rest->n--;
		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static void put_value(struct buf *out, struct value v)
{
	double x = v.number;
	uint64_t bits;

	switch (v.kind) {
	case VALUE_ABSENT:
	case VALUE_NULL: buf_add_char(out, CELL_NULL); break;
	case VALUE_BOOL: buf_add_char(out, v.is_true ? CELL_TRUE : CELL_FALSE); break;
	case VALUE_NUMBER:
		if (fabs(x) < WHOLE_MAX && floor(x) == x && !(x == 0 && signbit(x))) {
			int64_t whole = (int64_t)x;

			buf_add_char(out, CELL_WHOLE);
			put_number(out, (uint64_t)whole << 1 ^ (uint64_t)(whole >> 63));
		} else {
			buf_add_char(out, CELL_REAL);
			memcpy(&bits, &x, sizeof(bits));
			put_u64(out, bits);
		}
		break;
	case VALUE_TEXT:
		buf_add_char(out, CELL_TEXT);
		put_number(out, v.text.n);
		buf_add_str(out, v.text);
		break;
	}
}

void pack_row(const struct row *r, const int64_t *column, struct buf *out)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += column[i] >= 0;
	buf_add_char(out, PACK_VERSION);
	put_number(out, n);
	for (size_t i = 0; i < r->n; i++) {
		if (column[i] < 0)
			continue;
		put_number(out, (uint64_t)column[i]);
		put_value(out, r->cell[i].value);
	}
}

static bool take_value(struct str *rest, struct arena *a, struct value *out)
{
	uint64_t v;
	char kind;

	if (!rest->n)
		return false;
	kind = *rest->p++;
	rest->n--;
	*out = (struct value){ .kind = VALUE_NUMBER };
	switch (kind) {
	case CELL_NULL: out->kind = VALUE_NULL; return true;
	case CELL_FALSE:
	case CELL_TRUE:
		out->kind = VALUE_BOOL;
		out->is_true = kind == CELL_TRUE;
		return true;
	case CELL_WHOLE:
		if (!take_number(rest, &v))
			return false;
		out->number = (double)((int64_t)(v >> 1) ^ -(int64_t)(v & 1));
		return true;
	case CELL_REAL:
		if (rest->n < 8)
			return false;
		v = take_u64(rest->p);
		memcpy(&out->number, &v, sizeof(v));
		rest->p += 8;
		rest->n -= 8;
		return !isnan(out->number);
	case CELL_TEXT:
		if (!take_number(rest, &v) || v > rest->n)
			return false;
		out->kind = VALUE_TEXT;
		out->text = arena_str(a, (struct str){ rest->p, (size_t)v });
		rest->p += v;
		rest->n -= (size_t)v;
		return true;
	default: return false;
	}
}

int unpack_row(struct str packed, struct str (*name)(const void *self, uint64_t number),
	       const void *self, struct arena *a, struct row *out, struct err *e)
{
	struct str rest = packed;
	uint64_t n, number;

	if (!rest.n || *rest.p != PACK_VERSION)
		goto damaged;
	rest.p++;
	rest.n--;
	if (!take_number(&rest, &n) || n > rest.n / 2)
		goto damaged;
	out->cell = arena_alloc(a, (size_t)n * sizeof(*out->cell));
	out->n = (size_t)n;
	for (size_t i = 0; i < n; i++) {
		if (!take_number(&rest, &number))
			goto damaged;
		out->cell[i].column = name(self, number);
		if (!out->cell[i].column.n || !take_value(&rest, a, &out->cell[i].value))
			goto damaged;
	}
	if (rest.n == 0)
		return 0;
damaged:
	return err_set(e, ERR_PARSE, "the cells that the store kept of a run are damaged");
}
