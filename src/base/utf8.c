/* SPDX-License-Identifier: Apache-2.0 */
/* utf8.c - see utf8.h; ranges from the Unicode standard, table 3-7. */
#include "base/utf8.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Length of the sequence a lead byte begins, and the range of its second byte. */
static size_t lead_length(unsigned char c, unsigned char *lo, unsigned char *hi)
{
	*lo = 0x80;
	*hi = 0xbf;
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		return 2;
	if (c >= 0xe0 && c <= 0xef) {
		if (c == 0xe0)
			*lo = 0xa0;
		if (c == 0xed)
			*hi = 0x9f;
		return 3;
	}
	if (c >= 0xf0 && c <= 0xf4) {
		if (c == 0xf0)
			*lo = 0x90;
		if (c == 0xf4)
			*hi = 0x8f;
		return 4;
	}
	return 0;
}

uint32_t utf8_decode(struct str s, size_t *n)
{
	const unsigned char *p = (const unsigned char *)s.p;
	unsigned char lo, hi;
	size_t want = lead_length(p[0], &lo, &hi), i;
	uint32_t cp;

	*n = 1;
	if (want == 0)
		return UTF8_BAD;
	if (want == 1)
		return p[0];
	cp = p[0] & (0x7fu >> want);
	for (i = 1; i < want; i++) {
		if (i >= s.n || p[i] < lo || p[i] > hi) {
			*n = i;
			return UTF8_BAD;
		}
		cp = cp << 6 | (p[i] & 0x3fu);
		lo = 0x80;
		hi = 0xbf;
	}
	*n = want;
	return cp;
}

size_t utf8_encode(uint32_t cp, char out[4])
{
	if (cp < 0x80) {
		out[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		out[0] = (char)(0xc0 | cp >> 6);
		out[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		out[0] = (char)(0xe0 | cp >> 12);
		out[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		out[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | cp >> 18);
	out[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	out[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	out[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/* Past ASCII, a word at a time, to the first other byte or a rest shorter than a word. */
static const char *skip_ascii(const char *p, const char *end)
{
	uint64_t word[2];

	while (end - p >= 16) {
		memcpy(word, p, 16);
		if ((word[0] | word[1]) & 0x8080808080808080u)
			break;
		p += 16;
	}
	while (p < end && (unsigned char)*p < 0x80)
		p++;
	return p;
}

/* Past letters of three bytes, five at a time; E0 and ED are left to the decoder. */
static const char *skip_threes(const char *p, const char *end)
{
#ifdef __SSE2__
	const __m128i mask = _mm_set_epi32(0x00c0c0f0, (int)0xc0c0f0c0, (int)0xc0f0c0c0,
		(int)0xf0c0c0f0);
	const __m128i want = _mm_set_epi32(0x008080e0, (int)0x8080e080, (int)0x80e08080,
		(int)0xe08080e0);

	for (; end - p >= 16; p += 15) {
		__m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
		__m128i is_fit = _mm_cmpeq_epi8(_mm_and_si128(x, mask), want);
		__m128i is_odd = _mm_or_si128(_mm_cmpeq_epi8(x, _mm_set1_epi8((char)0xe0)),
			_mm_cmpeq_epi8(x, _mm_set1_epi8((char)0xed)));

		if (_mm_movemask_epi8(is_fit) != 0xffff || (_mm_movemask_epi8(is_odd) & 0x7fff))
			break;
	}
#endif
	while (end - p >= 3 && (p[0] & 0xf0) == 0xe0 && (unsigned char)p[0] != 0xe0 &&
		(unsigned char)p[0] != 0xed && (p[1] & 0xc0) == 0x80 && (p[2] & 0xc0) == 0x80)
		p += 3;
	return p;
}

/*
 * Most of the world's text is ASCII and letters of three bytes; these are skipped in runs. All
 * else is decoded, and so are E0 and ED, whose second byte has a narrower range.
 */
bool utf8_is_valid(struct str s)
{
	const char *p = s.p, *end = s.p + s.n;

	while (p < end) {
		size_t n;

		p = skip_threes(skip_ascii(p, end), end);
		if (p == end)
			break;
		if ((unsigned char)*p < 0x80)
			continue;
		if (utf8_decode((struct str){ p, (size_t)(end - p) }, &n) == UTF8_BAD)
			return false;
		p += n;
	}
	return true;
}

bool utf8_is_one(struct str s)
{
	size_t n;

	return s.n > 0 && utf8_decode(s, &n) != UTF8_BAD && n == s.n;
}

void utf8_add_lossy(struct buf *out, struct str s)
{
	const char *good = s.p;
	size_t n;

	while (s.n) {
		bool is_bad = utf8_decode(s, &n) == UTF8_BAD;

		if (is_bad) {
			buf_add(out, good, (size_t)(s.p - good));
			buf_add(out, "\xef\xbf\xbd", 3);
			good = s.p + n;
		}
		s.p += n;
		s.n -= n;
	}
	buf_add(out, good, (size_t)(s.p - good));
}
