/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_values.c - numbers packed in bits, and the values of a page; see parquet.h. */
#include "input/table/parquet.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"

/* ---- numbers packed in bits ---- */

static uint64_t load_64(const uint8_t *p, const uint8_t *end)
{
	uint64_t v = 0;

	if (end - p >= 8) {
		memcpy(&v, p, 8);
		return v;
	}
	for (unsigned i = 0; p + i < end; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

uint64_t bits_at(const uint8_t *p, const uint8_t *end, uint64_t at, unsigned width)
{
	unsigned shift = at & 7;
	uint64_t v;

	assert(width <= 64);
	if (width == 0 || at >> 3 >= (uint64_t)(end - p))
		return 0;
	p += at >> 3;
	v = load_64(p, end) >> shift;
	if (shift + width > 64 && end - p > 8)
		v |= (uint64_t)p[8] << (64 - shift);
	return width == 64 ? v : v & ((1ull << width) - 1);
}

struct runs runs(struct str bytes, unsigned width)
{
	const uint8_t *p = (const uint8_t *)bytes.p;

	assert(width <= 32);
	return (struct runs){ .p = p, .end = p + bytes.n, .width = (uint8_t)width,
			      .left = width ? 0 : UINT64_MAX };
}

struct runs runs_msb(struct str bytes, unsigned width)
{
	struct runs r = runs(bytes, width);

	if (width == 0)
		return r;
	r.is_msb = true;
	r.packed = r.p;
	r.left = (uint64_t)bytes.n * 8 / width;
	r.p = r.end;
	return r;
}

static bool varint(const uint8_t **p, const uint8_t *end, uint64_t *v)
{
	*v = 0;
	for (unsigned shift = 0; shift < 64 && *p < end; shift += 7) {
		uint8_t b = *(*p)++;

		*v |= (uint64_t)(b & 127) << shift;
		if (b < 128)
			return true;
	}
	return false;
}

/* A packed run that ends early has as many numbers as there are bytes for. */
static void packed_run(struct runs *r, uint64_t groups)
{
	uint64_t bytes = (uint64_t)(r->end - r->p);

	r->packed = r->p;
	r->bit = 0;
	if (groups <= bytes / r->width)
		bytes = groups * r->width;
	r->left = bytes * 8 / r->width;
	r->p += bytes;
}

/* Every iteration takes a byte. */
bool runs_fill(struct runs *r)
{
	unsigned bytes = (r->width + 7u) / 8;
	uint64_t head;

	while (r->left == 0) {
		if (r->is_msb || r->width == 0 || !varint(&r->p, r->end, &head))
			return false;
		if (head & 1) {
			packed_run(r, head >> 1);
			continue;
		}
		if ((size_t)(r->end - r->p) < bytes)
			return false;
		r->packed = NULL;
		r->value = (uint32_t)bits_at(r->p, r->end, 0, 8 * bytes);
		r->left = head >> 1;
		r->p += bytes;
	}
	return true;
}

uint32_t runs_packed(struct runs *r)
{
	uint32_t v = 0;

	assert(r->packed);
	if (!r->is_msb) {
		v = (uint32_t)bits_at(r->packed, r->end, r->bit, r->width);
		r->bit += r->width;
		return v;
	}
	for (unsigned i = 0; i < r->width; i++, r->bit++)
		v = v << 1 | ((uint32_t)r->packed[r->bit >> 3] >> (7 - (r->bit & 7)) & 1);
	return v;
}

static int64_t zigzag(uint64_t v)
{
	return (int64_t)(v >> 1 ^ (0 - (v & 1)));
}

bool deltas_begin(struct deltas *d, struct str bytes)
{
	uint64_t block, first;

	*d = (struct deltas){ .p = (const uint8_t *)bytes.p, .is_first = true };
	d->end = d->p + bytes.n;
	if (!varint(&d->p, d->end, &block) || !varint(&d->p, d->end, &d->minis) ||
	    !varint(&d->p, d->end, &d->left) || !varint(&d->p, d->end, &first))
		return false;
	d->last = zigzag(first);
	if (d->minis == 0 || block % d->minis || block > UINT32_MAX)
		return false;
	d->per_mini = block / d->minis;
	return d->per_mini > 0 && d->per_mini % 8 == 0;
}

static bool next_block(struct deltas *d)
{
	uint64_t min;

	if (!varint(&d->p, d->end, &min) || d->minis > (uint64_t)(d->end - d->p))
		return false;
	d->min = zigzag(min);
	d->widths = d->p;
	d->p += d->minis;
	d->minis_left = d->minis;
	return true;
}

/* The bits of the last miniblock may be cut short by the end. */
static bool next_mini(struct deltas *d)
{
	uint64_t bytes, most = (uint64_t)(d->end - d->p);

	if (d->minis_left == 0 && !next_block(d))
		return false;
	most = (uint64_t)(d->end - d->p);
	d->width = *d->widths++;
	d->minis_left--;
	d->mini_left = d->per_mini;
	d->mini = d->p;
	d->bit = 0;
	bytes = d->per_mini / 8 * d->width;
	if (d->width > 64 || (bytes > most && d->left > most * 8 / d->width))
		return false;
	d->p += bytes < most ? bytes : most;
	return true;
}

bool deltas_next(struct deltas *d, int64_t *v)
{
	if (d->left == 0)
		return false;
	if (d->is_first) {
		d->is_first = false;
	} else {
		if (d->mini_left == 0 && !next_mini(d))
			return false;
		d->mini_left--;
		d->last = (int64_t)((uint64_t)d->last + (uint64_t)d->min +
				    bits_at(d->mini, d->p, d->bit, d->width));
		d->bit += d->width;
	}
	d->left--;
	*v = d->last;
	return true;
}

/* Walks miniblocks, not numbers; each costs a byte at least. */
const uint8_t *deltas_end(struct deltas d)
{
	uint64_t left = d.left ? d.left - 1 : 0; /* the first one is in the header */

	while (left) {
		if (!next_mini(&d))
			return NULL;
		left -= left < d.per_mini ? left : d.per_mini;
		d.left = left;
	}
	return d.p;
}

/* ---- values ---- */

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

/* Booleans in runs, preceded by their total length. */
static int begin_runs(struct parquet_values *v, struct err *e)
{
	uint32_t n = left(v) < 4 ? 0 : little_endian(v->p);

	if (left(v) && (left(v) < 4 || n > left(v) - 4))
		return err_set(e, ERR_PARSE, "a run of booleans extends beyond the end of the "
					     "page");
	v->p += left(v) ? 4 : 0;
	v->runs = runs((struct str){ (const char *)v->p, n }, 1);
	return 0;
}

static struct str rest(const struct parquet_values *v)
{
	return (struct str){ (const char *)v->p, left(v) };
}

/* A page with only nulls may have no bytes at all. */
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

/* The previous value, cut to the common prefix, followed by the rest. */
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

/* Byte k of value i is byte i of the k-th stream. A wide value is assembled in `last`. */
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
		memcpy(v->scratch, &number, sizeof number); /* modulo 2^32 for numbers of 4 bytes */
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

/* At once for values of fixed width, else one by one. */
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
