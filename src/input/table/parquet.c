/* SPDX-License-Identifier: Apache-2.0 */
/*
 * parquet.c - Parquet files as tables, and their values as JSON.
 *
 * A row is put together by one walk over the tree of wanted columns. Every node asks the levels of
 * its first leaf whether it is null, empty, or has another item; the other leaves below it must
 * agree, or the file is damaged. Each step takes an entry from every leaf concerned and writes
 * something, so that a row's size limit bounds the walk.
 */
#include "input/table/parquet.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"

#define DECIMAL_BYTES_MAX 32 /* Decimal256, the widest that writers know */
#define DAY_SECONDS 86400
#define EPOCH_JULIAN_DAY 2440588 /* 1970-01-01 */

/* ---- numbers ---- */

static uint64_t load(struct str value, size_t n)
{
	uint64_t v = 0;

	assert(value.n >= n && n <= sizeof v);
	memcpy(&v, value.p, n);
	return v;
}

static int64_t load_signed(const struct parquet_leaf *leaf, struct str value)
{
	return leaf->width == 4 ? (int32_t)load(value, 4) : (int64_t)load(value, 8);
}

static void put_unsigned(struct buf *out, uint64_t v, bool is_negative)
{
	char digits[21], *p = digits + sizeof digits;

	do
		*--p = (char)('0' + v % 10);
	while (v /= 10);
	if (is_negative)
		*--p = '-';
	buf_add(out, p, (size_t)(digits + sizeof digits - p));
}

static void put_signed(struct buf *out, int64_t v)
{
	put_unsigned(out, v < 0 ? 0 - (uint64_t)v : (uint64_t)v, v < 0);
}

static void put_real(struct buf *out, double v)
{
	struct json_writer w = json_writer(out);

	w.is_python = true; /* rows are read by this program */
	json_put_f64(&w, v);
}

static double half(uint32_t bits)
{
	int exponent = (int)(bits >> 10 & 31);
	double fraction = bits & 1023, v;

	if (exponent == 31)
		v = fraction != 0 ? (double)NAN : (double)INFINITY;
	else
		v = exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24);
	return bits >> 15 ? -v : v;
}

static double load_float(struct str value)
{
	uint32_t bits = (uint32_t)load(value, 4);
	float v;

	memcpy(&v, &bits, sizeof v);
	return (double)v;
}

static double load_double(struct str value)
{
	uint64_t bits = load(value, 8);
	double v;

	memcpy(&v, &bits, sizeof v);
	return v;
}

/* ---- decimals ---- */

/* The decimal digits of a magnitude, high byte first and destroyed, without leading zeros. */
static size_t digits_of(uint8_t *magnitude, size_t n, char out[80])
{
	char reversed[80];
	size_t count = 0;
	unsigned rest;
	bool is_zero;

	do {
		rest = 0;
		is_zero = true;
		for (size_t i = 0; i < n; i++) {
			rest = rest << 8 | magnitude[i];
			magnitude[i] = (uint8_t)(rest / 10);
			rest %= 10;
			is_zero &= magnitude[i] == 0;
		}
		reversed[count++] = (char)('0' + rest);
	} while (!is_zero && count < sizeof reversed);
	for (size_t i = 0; i < count; i++)
		out[i] = reversed[count - 1 - i];
	return count;
}

/* Two's complement, high byte first, of at most DECIMAL_BYTES_MAX bytes. */
static void put_decimal(struct buf *out, const uint8_t *bytes, size_t n, uint32_t scale)
{
	uint8_t magnitude[DECIMAL_BYTES_MAX];
	bool is_negative = n && bytes[0] >> 7;
	unsigned carry = is_negative;
	char digits[80];
	size_t count;

	for (size_t i = n; i-- > 0;) {
		unsigned b = is_negative ? (uint8_t)~bytes[i] + carry : bytes[i];

		magnitude[i] = (uint8_t)b;
		carry = is_negative ? b >> 8 : 0;
	}
	count = digits_of(magnitude, n, digits);
	buf_add_text(out, is_negative ? "\"-" : "\"");
	if (count > scale)
		buf_add(out, digits, count - scale);
	else
		buf_add_char(out, '0');
	if (scale) {
		buf_add_char(out, '.');
		for (size_t zeros = count; zeros < scale; zeros++)
			buf_add_char(out, '0');
		if (count > scale)
			buf_add(out, digits + count - scale, scale);
		else
			buf_add(out, digits, count);
	}
	buf_add_char(out, '"');
}

static int spell_decimal(const struct parquet_leaf *leaf, struct str value, struct buf *out,
			 struct err *e)
{
	uint8_t bytes[8];
	uint64_t v;

	if (leaf->type == PARQUET_BYTES || leaf->type == PARQUET_FIXED) {
		if (value.n > DECIMAL_BYTES_MAX)
			return err_set(e, ERR_PARSE, "a decimal of %zu bytes; the widest have %d",
				       value.n, DECIMAL_BYTES_MAX);
		put_decimal(out, (const uint8_t *)value.p, value.n, leaf->scale);
		return 0;
	}
	v = (uint64_t)load_signed(leaf, value);
	for (unsigned i = 0; i < 8; i++)
		bytes[i] = (uint8_t)(v >> (56 - 8 * i));
	put_decimal(out, bytes, 8, leaf->scale);
	return 0;
}

/* ---- dates and times ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
	return a / b - (a % b < 0);
}

static int64_t floor_rest(int64_t a, int64_t b)
{
	return a % b + (a % b < 0 ? b : 0);
}

/*
 * The proleptic Gregorian date of a day counted from 1970-01-01. Years begin in March, so that
 * the leap day is a year's last, and 400 of them have 146,097 days.
 */
static void put_date(struct buf *out, int64_t day)
{
	int64_t since = day + 719468; /* from 0000-03-01 */
	int64_t era = floor_div(since, 146097), of_era = since - era * 146097;
	int64_t of_year, month, year;

	year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	of_year = of_era - (365 * year + year / 4 - year / 100);
	month = (5 * of_year + 2) / 153; /* from March */
	year += era * 400 + (month >= 10);
	buf_printf(out, year < 0 || year > 9999 ? "%+05lld-%02d-%02d" : "%04lld-%02d-%02d",
		   (long long)year, (int)(month < 10 ? month + 3 : month - 9),
		   (int)(of_year - (153 * month + 2) / 5 + 1));
}

/* A time of the day in units of 10^-digits seconds. */
static void put_time(struct buf *out, int64_t v, uint32_t digits)
{
	int64_t unit = digits == 9 ? 1000000000 : digits == 6 ? 1000000 : 1000;
	int64_t seconds = v / unit;

	buf_printf(out, "%02d:%02d:%02d", (int)(seconds / 3600), (int)(seconds / 60 % 60),
		   (int)(seconds % 60));
	if (v % unit)
		buf_printf(out, ".%0*lld", (int)digits, (long long)(v % unit));
}

static void put_timestamp(struct buf *out, int64_t day, int64_t of_day, uint32_t digits,
			  bool is_utc)
{
	buf_add_char(out, '"');
	put_date(out, day);
	buf_add_char(out, 'T');
	put_time(out, of_day, digits);
	buf_add_text(out, is_utc ? "+00:00\"" : "\"");
}

static int64_t units_of_day(uint32_t digits)
{
	return digits == 9 ? DAY_SECONDS * 1000000000ll :
	       digits == 6 ? DAY_SECONDS * 1000000ll : DAY_SECONDS * 1000ll;
}

/* A time outside the day is written as a number. */
static void spell_time(const struct parquet_leaf *leaf, int64_t v, struct buf *out)
{
	int64_t units = units_of_day(leaf->digits);

	if (leaf->meaning == MEANS_TIMESTAMP) {
		put_timestamp(out, floor_div(v, units), floor_rest(v, units), leaf->digits,
			      leaf->is_utc);
	} else if (v < 0 || v >= units) {
		put_signed(out, v);
	} else {
		buf_add_char(out, '"');
		put_time(out, v, leaf->digits);
		buf_add_char(out, '"');
	}
}

/* Nanoseconds of the day, then the Julian day. */
static void spell_int96(struct str value, struct buf *out)
{
	int64_t nanos = (int64_t)load(value, 8), units = units_of_day(9);
	uint32_t day;

	memcpy(&day, value.p + 8, sizeof day);
	put_timestamp(out, (int64_t)(int32_t)day - EPOCH_JULIAN_DAY + floor_div(nanos, units),
		      floor_rest(nanos, units), 9, false);
}

/* ---- bytes ---- */

static void spell_uuid(struct str value, struct buf *out)
{
	const uint8_t *b = (const uint8_t *)value.p;

	buf_add_char(out, '"');
	for (unsigned i = 0; i < 16; i++)
		buf_printf(out, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", b[i]);
	buf_add_char(out, '"');
}

static void spell_data(struct str value, struct buf *out)
{
	buf_add_text(out, "\"data:;base64,");
	base64_encode(value, out);
	buf_add_char(out, '"');
}

static void spell_by_type(const struct parquet_leaf *leaf, struct str value, struct buf *out)
{
	switch (leaf->type) {
	case PARQUET_BOOLEAN:
		buf_add_text(out, value.p[0] ? "true" : "false");
		break;
	case PARQUET_INT32:
	case PARQUET_INT64:
		put_signed(out, load_signed(leaf, value));
		break;
	case PARQUET_INT96:
		spell_int96(value, out);
		break;
	case PARQUET_FLOAT:
		put_real(out, load_float(value));
		break;
	case PARQUET_DOUBLE:
		put_real(out, load_double(value));
		break;
	default:
		spell_data(value, out);
	}
}

int parquet_spell(const struct parquet_leaf *leaf, struct str value, struct buf *out,
		  struct err *e)
{
	switch (leaf->meaning) {
	case MEANS_TYPE:
		spell_by_type(leaf, value, out);
		break;
	case MEANS_TEXT:
		json_quote(out, value, true);
		break;
	case MEANS_UNSIGNED:
		put_unsigned(out, load(value, leaf->width), false);
		break;
	case MEANS_DECIMAL:
		return spell_decimal(leaf, value, out, e);
	case MEANS_DATE:
		buf_add_char(out, '"');
		put_date(out, load_signed(leaf, value));
		buf_add_char(out, '"');
		break;
	case MEANS_TIME:
	case MEANS_TIMESTAMP:
		spell_time(leaf, load_signed(leaf, value), out);
		break;
	case MEANS_UUID:
		spell_uuid(value, out);
		break;
	case MEANS_HALF:
		put_real(out, half((uint32_t)load(value, 2)));
		break;
	}
	return 0;
}

/* ---- rows ---- */

struct parquet {
	struct parquet_file file;
	struct parquet_column *column; /* one for each wanted leaf */
	struct buf text;               /* the current row */
	size_t places_left;
	uint32_t group;                /* of the row before */
};

static int put(struct parquet *q, const struct parquet_node *node, struct err *e);

static int damaged(const struct parquet_column *c, struct err *e)
{
	return column_fail(c, e, ERR_PARSE, "row %llu of the group: its levels contradict those of "
			   "a neighbouring column or the schema",
			   (unsigned long long)c->row);
}

/* Every leaf of a null or an empty list has one entry for it, below the level it needs. */
static int pass_absent(struct parquet *q, const struct parquet_node *node, unsigned def,
		       struct err *e)
{
	for (uint32_t i = 0; i < node->leaf_count; i++) {
		struct parquet_column *c = &q->column[node->first_leaf + i];

		if (column_peek(c, e) < 0)
			return -1;
		if (!c->has_entry || c->def >= def)
			return damaged(c, e);
		column_drop(c);
	}
	return 0;
}

static int put_value(struct parquet *q, struct parquet_column *c, struct err *e)
{
	struct str value;

	if (!c->has_entry || c->def != c->leaf->max_def)
		return damaged(c, e);
	if (column_value(c, &value, e) < 0)
		return -1;
	if (parquet_spell(c->leaf, value, &q->text, e) < 0)
		return column_fail(c, e, ERR_NONE, "row %llu of the group",
				   (unsigned long long)c->row - 1);
	return 0;
}

static int put_object(struct parquet *q, const struct parquet_node *first, struct err *e)
{
	buf_add_char(&q->text, '{');
	for (const struct parquet_node *n = first; n; n = n->next) {
		if (n != first)
			buf_add(&q->text, ", ", 2);
		buf_add_str(&q->text, n->key);
		if (put(q, n, e) < 0)
			return -1;
	}
	buf_add_char(&q->text, '}');
	return 0;
}

/* A map's key and value as a member; a null key, which is invalid, is "null". */
static int put_member(struct parquet *q, const struct parquet_node *map, struct err *e)
{
	size_t at = q->text.len;

	if (put(q, map->child, e) < 0)
		return -1;
	if (!q->text.is_over && q->text.data[at] != '"') {
		q->text.len = at;
		buf_add_text(&q->text, "\"null\"");
	}
	buf_add_text(&q->text, ": ");
	return put(q, map->child->next, e);
}

static int put_item(struct parquet *q, const struct parquet_node *list, struct err *e)
{
	if (list->shape == SHAPE_LIST)
		return put(q, list->child, e);
	return list->has_text_keys ? put_member(q, list, e) : put_object(q, list->child, e);
}

/* Whether the list has another item: 1, 0, or -1. All its leaves must agree. */
static int has_more(struct parquet *q, const struct parquet_node *list, struct err *e)
{
	const struct parquet_column *first = &q->column[list->first_leaf];

	for (uint32_t i = 0; i < list->leaf_count; i++) {
		struct parquet_column *c = &q->column[list->first_leaf + i];

		if (column_peek(c, e) < 0)
			return -1;
		if (c->rep > list->rep || (c->rep == list->rep) != (first->rep == list->rep))
			return damaged(c, e);
	}
	return first->rep == list->rep;
}

static int put_list(struct parquet *q, const struct parquet_node *list, struct err *e)
{
	const struct parquet_column *first = &q->column[list->first_leaf];
	const char *ends = list->has_text_keys ? "{}" : "[]";
	int more;

	buf_add_char(&q->text, ends[0]);
	if (first->def < list->filled) {
		if (pass_absent(q, list, list->filled, e) < 0)
			return -1;
	} else {
		do {
			if (put_item(q, list, e) < 0)
				return -1;
			more = has_more(q, list, e);
			if (more < 0)
				return -1;
			if (more)
				buf_add(&q->text, ", ", 2);
			if (q->text.is_over)
				return column_fail(first, e, ERR_LIMIT,
						   "row %llu of the group has more than %llu bytes",
						   (unsigned long long)first->row - 1,
						   TABLE_ROW_BYTES_MAX);
		} while (more);
	}
	buf_add_char(&q->text, ends[1]);
	return 0;
}

/* One value, object, list or null. Recursion ends: the tree is as deep as JSON may be. */
static int put(struct parquet *q, const struct parquet_node *node, struct err *e)
{
	struct parquet_column *first = &q->column[node->first_leaf];

	if (column_peek(first, e) < 0)
		return -1;
	if (first->def < node->present) {
		buf_add_text(&q->text, "null");
		return pass_absent(q, node, node->present, e);
	}
	if (node->shape == SHAPE_VALUE)
		return put_value(q, first, e);
	if (node->shape == SHAPE_OBJECT)
		return put_object(q, node->child, e);
	return put_list(q, node, e);
}

/* ---- the format ---- */

static void parquet_close(void *state)
{
	struct parquet *q = state;

	if (!q)
		return;
	for (uint32_t i = 0; i < q->file.leaf_count; i++)
		column_release(&q->column[i]);
	free(q->column);
	parquet_file_release(&q->file);
	buf_release(&q->text);
	free(q);
}

static void *parquet_open(const struct table_bytes *bytes, const struct table_opts *o,
			  struct err *e)
{
	struct parquet *q = mem_alloc(sizeof *q);

	if (parquet_file_open(&q->file, bytes, o ? o->columns : NULL, e) < 0) {
		free(q);
		return NULL;
	}
	q->text.limit = TABLE_ROW_BYTES_MAX;
	q->places_left = PARQUET_PLACES_MAX;
	q->column = mem_array(q->file.leaf_count, sizeof *q->column);
	for (uint32_t i = 0; i < q->file.leaf_count; i++)
		column_init(&q->column[i], &q->file, i, o ? o->cancel : NULL, &q->places_left);
	if (o && o->progress)
		o->progress(o->self, bytes->all.n, bytes->all.n);
	return q;
}

static size_t parquet_rows(const void *state)
{
	const struct parquet *q = state;

	return (size_t)q->file.rows;
}

/* The group that a row is in; mostly the one of the row before. */
static uint32_t group_of(const struct parquet *q, size_t row)
{
	const struct parquet_group *group = q->file.group, *last = &group[q->group];
	uint32_t low = 0, high = q->file.group_count;

	if (row >= last->first_row && row - last->first_row < last->rows)
		return q->group;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (group[middle].first_row <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static int parquet_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct parquet *q = state;
	uint64_t first;
	int rc = 0;

	assert(row < q->file.rows);
	q->group = group_of(q, row);
	first = q->file.group[q->group].first_row;
	for (uint32_t i = 0; i < q->file.leaf_count && rc == 0; i++)
		rc = column_seek(&q->column[i], q->group, row - first, e);
	buf_reset(&q->text);
	if (rc == 0)
		rc = put_object(q, q->file.top, e);
	if (rc == 0 && q->text.is_over)
		rc = err_set(e, ERR_LIMIT, "%s: row %zu has more than %llu bytes as JSON",
			     q->file.name, row, TABLE_ROW_BYTES_MAX);
	if (rc < 0) {
		for (uint32_t i = 0; i < q->file.leaf_count; i++)
			column_lose(&q->column[i]);
		return -1;
	}
	*out = (struct json_slice){ JSON_OBJECT, buf_str(&q->text) };
	return 0;
}

const struct table_format table_parquet = {
	.name = "parquet",
	.open = parquet_open,
	.close = parquet_close,
	.rows = parquet_rows,
	.row = parquet_row,
};
