/* SPDX-License-Identifier: Apache-2.0 */
/* base64.c - see base64.h. */
#include "base/base64.h"

/* The six bits of a character; 64 and above when it is none. */
static uint32_t six_bits(char c)
{
	if (c >= 'A' && c <= 'Z')
		return (uint32_t)(c - 'A');
	if (c >= 'a' && c <= 'z')
		return (uint32_t)(c - 'a') + 26;
	if (c >= '0' && c <= '9')
		return (uint32_t)(c - '0') + 52;
	return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool base64_decode(struct str text, struct buf *out)
{
	size_t before = out->len, pad = 0;
	uint32_t bits = 0;

	if (text.n % 4 || buf_reserve(out, text.n / 4 * 3))
		return false;
	while (pad < 2 && pad < text.n && text.p[text.n - 1 - pad] == '=')
		pad++;
	for (size_t i = 0; i < text.n && bits <= 0xffffff; i++) {
		uint32_t six = i < text.n - pad ? six_bits(text.p[i]) : 0;

		bits = six > 63 ? UINT32_MAX : (i % 4 ? bits << 6 : 0) | six;
		if (i % 4 == 3) {
			char three[3] = { (char)(bits >> 16), (char)(bits >> 8), (char)bits };

			buf_add(out, three, i + 1 < text.n ? 3 : 3 - pad);
		}
	}
	if (bits <= 0xffffff && !(bits & ((1u << 8 * pad) - 1)))
		return true;
	out->len = before;
	out->data[before] = 0;
	return false;
}

void base64_encode(struct str bytes, struct buf *out)
{
	static const char digit[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const uint8_t *p = (const uint8_t *)bytes.p;
	char *to;

	if (buf_reserve(out, (bytes.n + 2) / 3 * 4))
		return;
	to = out->data + out->len;
	for (size_t i = 0; i < bytes.n; i += 3) {
		size_t left = bytes.n - i;
		uint32_t bits = (uint32_t)p[i] << 16 | (left > 1 ? (uint32_t)p[i + 1] << 8 : 0) |
				(left > 2 ? p[i + 2] : 0);

		*to++ = digit[bits >> 18];
		*to++ = digit[bits >> 12 & 63];
		*to++ = left > 1 ? digit[bits >> 6 & 63] : '=';
		*to++ = left > 2 ? digit[bits & 63] : '=';
	}
	*to = 0;
	out->len += (bytes.n + 2) / 3 * 4;
}
