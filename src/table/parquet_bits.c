/* SPDX-License-Identifier: Apache-2.0 */
/* parquet_bits.c - see parquet_bits.h. */
#include "table/parquet_bits.h"

#include <assert.h>

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

/* A packed run that the bytes cut short has what is left of it. */
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

/* Every turn takes a byte. */
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
	uint64_t left = d.left ? d.left - 1 : 0; /* the first one stands in the head */

	while (left) {
		if (!next_mini(&d))
			return NULL;
		left -= left < d.per_mini ? left : d.per_mini;
		d.left = left;
	}
	return d.p;
}
