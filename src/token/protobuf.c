/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf.c - the wire format: a tag (number and kind), then a value.
 */
#include "token/protobuf.h"

#include <string.h>

#define GROUP_BEGIN 3u
#define GROUP_END 4u
#define NUMBER_MAX ((1u << 29) - 1)

struct protobuf protobuf_inner(const struct protobuf *p, const struct protobuf_field *f)
{
	size_t at = (size_t)(f->bytes.p - p->file.p);

	return (struct protobuf){ p->file, at, at + f->bytes.n };
}

static int cut_off(size_t at, struct err *e)
{
	return err_set(e, ERR_PARSE, "is damaged: a field breaks off at byte %zu", at);
}

static int read_int(struct protobuf *p, uint64_t *out, struct err *e)
{
	size_t start = p->at;

	*out = 0;
	for (unsigned shift = 0; shift < 70; shift += 7) {
		uint8_t byte;

		if (p->at == p->end)
			return cut_off(start, e);
		byte = (uint8_t)p->file.p[p->at++];
		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return 0;
	}
	return err_set(e, ERR_PARSE, "is damaged: the number at byte %zu does not end", start);
}

static int read_fixed(struct protobuf *p, size_t n, uint64_t *out, struct err *e)
{
	if (p->end - p->at < n)
		return cut_off(p->at, e);
	*out = 0;
	for (size_t i = 0; i < n; i++)
		*out |= (uint64_t)(uint8_t)p->file.p[p->at++] << 8 * i;
	return 0;
}

static int read_bytes(struct protobuf *p, struct str *out, struct err *e)
{
	size_t start = p->at;
	uint64_t n;

	if (read_int(p, &n, e))
		return -1;
	if (n > p->end - p->at)
		return err_set(e, ERR_PARSE, "is damaged: %llu bytes should follow at byte %zu, "
			"but the message ends after %zu", (unsigned long long)n, start,
			p->end - p->at);
	*out = (struct str){ p->file.p + p->at, (size_t)n };
	p->at += (size_t)n;
	return 0;
}

static int read_value(struct protobuf *p, struct protobuf_field *f, struct err *e)
{
	switch (f->kind) {
	case PROTOBUF_INT:
		return read_int(p, &f->value, e);
	case PROTOBUF_FIXED64:
		return read_fixed(p, 8, &f->value, e);
	case PROTOBUF_BYTES:
		return read_bytes(p, &f->bytes, e);
	case PROTOBUF_FIXED32:
		return read_fixed(p, 4, &f->value, e);
	}
	return err_set(e, ERR_PARSE, "is damaged: a field of unknown kind %u before byte %zu",
		(unsigned)f->kind, p->at);
}

int protobuf_next(struct protobuf *p, struct protobuf_field *f, struct err *e)
{
	size_t groups = 0;

	while (p->at < p->end) {
		size_t start = p->at;
		uint64_t tag;

		if (read_int(p, &tag, e))
			return -1;
		if (tag >> 3 == 0 || tag >> 3 > NUMBER_MAX)
			return err_set(e, ERR_PARSE, "is damaged: no field begins at byte %zu",
				start);
		if ((tag & 7) == GROUP_BEGIN) {
			groups++;
			continue;
		}
		if ((tag & 7) == GROUP_END) {
			if (groups-- == 0)
				return err_set(e, ERR_PARSE, "is damaged: a group ends at byte %zu "
					"that did not begin", start);
			continue;
		}
		*f = (struct protobuf_field){ .number = (uint32_t)(tag >> 3),
			.kind = (enum protobuf_kind)(tag & 7) };
		if (read_value(p, f, e))
			return -1;
		if (groups == 0)
			return 1;
	}
	return groups ? cut_off(p->at, e) : 0;
}

float protobuf_float(const struct protobuf_field *f)
{
	uint32_t bits = (uint32_t)f->value;
	float v;

	memcpy(&v, &bits, sizeof v);
	return v;
}
