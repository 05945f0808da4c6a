/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_values.c - see parquet_values.h. */
#include "table/parquet_values.h"

#include <assert.h>

#include "base/limits.h"
#include "base/mem.h"

static size_t left(const struct parquet_values *v)
{
	return (size_t)(v->end - v->p);
}

static uint32_t little_endian(const uint8_t *p)
{
	return (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

/* ---- dictionaries ---- */

void parquet_dictionary_release(struct parquet_dictionary *d)
{
	free(d->at);
	*d = (struct parquet_dictionary){ 0 };
}

int parquet_dictionary_read(struct parquet_dictionary *d, const struct parquet_leaf *leaf,
			    struct str bytes, uint64_t count, struct err *e)
{
	uint32_t width = leaf->width;
	size_t at = 0;

	parquet_dictionary_release(d);
	if (leaf->type == PARQUET_BOOLEAN)
		return err_set(e, ERR_PARSE, "a dictionary of truth values");
	if (count > bytes.n / (width ? width : 4))
		return err_set(e, ERR_PARSE, "a dictionary of %llu values in %zu bytes",
			       (unsigned long long)count, bytes.n);
	d->bytes = bytes;
	d->count = (size_t)count;
	d->width = width;
	if (width)
		return 0;
	d->at = mem_array(d->count, sizeof *d->at);
	for (size_t i = 0; i < d->count; i++) {
		const uint8_t *p = (const uint8_t *)bytes.p + at;

		if (bytes.n - at < 4 || little_endian(p) > bytes.n - at - 4)
			return err_set(e, ERR_PARSE, "value %zu of the dictionary passes its end",
				       i);
		d->at[i] = (uint32_t)at + 4;
		at += 4 + (size_t)little_endian(p);
	}
	return 0;
}

static struct str dictionary_value(const struct parquet_dictionary *d, size_t i)
{
	const char *p;

	if (d->width)
		return (struct str){ d->bytes.p + i * d->width, d->width };
	p = d->bytes.p + d->at[i];
	return (struct str){ p, little_endian((const uint8_t *)p - 4) };
}

/* ---- how each encoding begins ---- */

static int begin_indices(struct parquet_values *v, const struct parquet_dictionary *dictionary,
			 struct err *e)
{
	unsigned width = v->p < v->end ? *v->p : 0;

	if (!dictionary)
		return err_set(e, ERR_PARSE, "indices without a dictionary page");
	if (width > 32)
		return err_set(e, ERR_PARSE, "dictionary indices of %u bits", width);
	v->dictionary = dictionary;
	v->p += v->p < v->end;
	v->runs = runs((struct str){ (const char *)v->p, left(v) }, width);
	return 0;
}

/* Truth values in runs, behind the length of all. */
static int begin_runs(struct parquet_values *v, struct err *e)
{
	uint32_t n = left(v) < 4 ? 0 : little_endian(v->p);

	if (left(v) && (left(v) < 4 || n > left(v) - 4))
		return err_set(e, ERR_PARSE, "runs of truth values that pass the page's end");
	v->p += left(v) ? 4 : 0;
	v->runs = runs((struct str){ (const char *)v->p, n }, 1);
	return 0;
}

static struct str rest(const struct parquet_values *v)
{
	return (struct str){ (const char *)v->p, left(v) };
}

/* A page of nulls alone may have no bytes at all. */
static int begin_deltas(struct parquet_values *v, struct err *e)
{
	const uint8_t *end = v->p;

	v->numbers = v->prefixes = (struct deltas){ 0 };
	if (left(v) == 0)
		return 0;
	if (v->encoding == ENCODING_DELTA_BYTES) {
		if (deltas_begin(&v->prefixes, rest(v)))
			end = deltas_end(v->prefixes);
		else
			end = NULL;
		v->p = end ? end : v->p;
	}
	if (!end || !deltas_begin(&v->numbers, rest(v)))
		return err_set(e, ERR_PARSE, "the head of the delta-packed values is damaged");
	if (v->encoding == ENCODING_DELTA_BINARY)
		return 0;
	end = deltas_end(v->numbers);
	if (!end)
		return err_set(e, ERR_PARSE, "the delta-packed lengths are damaged");
	v->p = end;
	return 0;
}

static bool is_encoding_of(enum parquet_encoding encoding, enum parquet_type type)
{
	switch (encoding) {
	case ENCODING_PLAIN:
		return true;
	case ENCODING_PLAIN_DICTIONARY:
	case ENCODING_RLE_DICTIONARY:
		return type != PARQUET_BOOLEAN;
	case ENCODING_RLE:
		return type == PARQUET_BOOLEAN;
	case ENCODING_DELTA_BINARY:
		return type == PARQUET_INT32 || type == PARQUET_INT64;
	case ENCODING_DELTA_LENGTH:
		return type == PARQUET_BYTES;
	case ENCODING_DELTA_BYTES:
		return type == PARQUET_BYTES || type == PARQUET_FIXED;
	case ENCODING_SPLIT:
		return type == PARQUET_FLOAT || type == PARQUET_DOUBLE || type == PARQUET_INT32 ||
		       type == PARQUET_INT64 || type == PARQUET_FIXED;
	case ENCODING_BIT_PACKED:
		break;
	}
	return false;
}

int parquet_values_begin(struct parquet_values *v, const struct parquet_leaf *leaf,
			 enum parquet_encoding encoding, struct str bytes,
			 const struct parquet_dictionary *dictionary, struct err *e)
{
	v->encoding = encoding;
	v->is_bool = leaf->type == PARQUET_BOOLEAN;
	v->width = leaf->width;
	v->p = (const uint8_t *)bytes.p;
	v->end = v->p + bytes.n;
	v->at = 0;
	v->count = v->is_bool ? bytes.n * 8 : v->width ? bytes.n / v->width : 0;
	buf_reset(&v->last);
	if (!is_encoding_of(encoding, leaf->type))
		return err_set(e, ERR_PARSE, "encoding %d, which values of type %d do not have",
			       (int)encoding, (int)leaf->type);
	switch (encoding) {
	case ENCODING_PLAIN_DICTIONARY:
	case ENCODING_RLE_DICTIONARY:
		return begin_indices(v, dictionary, e);
	case ENCODING_RLE:
		return begin_runs(v, e);
	case ENCODING_DELTA_BINARY:
	case ENCODING_DELTA_LENGTH:
	case ENCODING_DELTA_BYTES:
		return begin_deltas(v, e);
	default:
		return 0;
	}
}

void parquet_values_release(struct parquet_values *v)
{
	buf_release(&v->last);
}

/* ---- the next value ---- */

static bool take_bytes(struct parquet_values *v, uint64_t n, struct str *value)
{
	if (n > left(v))
		return false;
	*value = (struct str){ (const char *)v->p, (size_t)n };
	v->p += n;
	return true;
}

static bool next_bool(struct parquet_values *v, struct str *value)
{
	if (v->encoding == ENCODING_RLE) {
		if (!v->runs.left && !runs_fill(&v->runs))
			return false;
		v->scratch[0] = (uint8_t)runs_take(&v->runs) & 1;
	} else {
		if (v->at == v->count)
			return false;
		v->scratch[0] = v->p[v->at >> 3] >> (v->at & 7) & 1;
		v->at++;
	}
	*value = (struct str){ (const char *)v->scratch, 1 };
	return true;
}

static bool next_plain(struct parquet_values *v, struct str *value)
{
	uint32_t n = v->width;

	if (v->is_bool)
		return next_bool(v, value);
	if (n == 0) {
		if (left(v) < 4)
			return false;
		n = little_endian(v->p);
		v->p += 4;
	}
	return take_bytes(v, n, value);
}

static bool next_index(struct parquet_values *v, struct str *value)
{
	uint32_t i;

	if (!v->runs.left && !runs_fill(&v->runs))
		return false;
	i = runs_take(&v->runs);
	if (i >= v->dictionary->count)
		return false;
	*value = dictionary_value(v->dictionary, i);
	return true;
}

/* The value before, cut to the common prefix, and what follows. */
static bool next_delta_bytes(struct parquet_values *v, struct str *value)
{
	int64_t prefix, n;

	if (!deltas_next(&v->prefixes, &prefix) || !deltas_next(&v->numbers, &n) || n < 0 ||
	    prefix < 0 || (uint64_t)prefix > v->last.len || !take_bytes(v, (uint64_t)n, value))
		return false;
	v->last.len = (size_t)prefix;
	buf_add_str(&v->last, *value);
	*value = buf_str(&v->last);
	return !v->last.is_over && (!v->width || v->width == value->n);
}

/* Byte k of value i is byte i of the k-th stream. A wide value is put together in `last`. */
static bool next_split(struct parquet_values *v, struct str *value)
{
	uint8_t *to = v->scratch;

	if (v->at == v->count)
		return false;
	if (v->width > sizeof v->scratch) {
		buf_reset(&v->last);
		if (buf_reserve(&v->last, v->width))
			return false;
		to = (uint8_t *)v->last.data;
	}
	for (uint32_t k = 0; k < v->width; k++)
		to[k] = v->p[k * v->count + v->at];
	v->at++;
	*value = (struct str){ (const char *)to, v->width };
	return true;
}

bool parquet_values_next(struct parquet_values *v, struct str *value)
{
	int64_t number;

	switch (v->encoding) {
	case ENCODING_PLAIN:
		return next_plain(v, value);
	case ENCODING_PLAIN_DICTIONARY:
	case ENCODING_RLE_DICTIONARY:
		return next_index(v, value);
	case ENCODING_RLE:
		return next_bool(v, value);
	case ENCODING_DELTA_BINARY:
		if (!deltas_next(&v->numbers, &number))
			return false;
		memcpy(v->scratch, &number, sizeof number); /* modulo 2^32 when they have 4 bytes */
		*value = (struct str){ (const char *)v->scratch, v->width };
		return true;
	case ENCODING_DELTA_LENGTH:
		return deltas_next(&v->numbers, &number) && number >= 0 &&
		       take_bytes(v, (uint64_t)number, value);
	case ENCODING_DELTA_BYTES:
		return next_delta_bytes(v, value);
	case ENCODING_SPLIT:
		return next_split(v, value);
	case ENCODING_BIT_PACKED:
		break;
	}
	return false;
}

static bool skip_runs(struct runs *r, uint64_t n)
{
	while (n) {
		uint64_t some;

		if (!r->left && !runs_fill(r))
			return false;
		some = r->left < n ? r->left : n;
		r->left -= some;
		r->bit += some * r->width;
		n -= some;
	}
	return true;
}

/* At once where values have places, else one by one. */
bool parquet_values_skip(struct parquet_values *v, uint64_t n)
{
	bool is_plain = v->encoding == ENCODING_PLAIN;
	struct str value;

	if (v->encoding == ENCODING_SPLIT || (is_plain && v->is_bool)) {
		if (n > v->count - v->at)
			return false;
		v->at += n;
		return true;
	}
	if (is_plain && v->width)
		return n <= left(v) / v->width && take_bytes(v, n * v->width, &value);
	if (v->encoding == ENCODING_PLAIN_DICTIONARY || v->encoding == ENCODING_RLE_DICTIONARY ||
	    v->encoding == ENCODING_RLE)
		return skip_runs(&v->runs, n);
	while (n && parquet_values_next(v, &value))
		n--;
	return n == 0;
}
