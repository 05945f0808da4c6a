/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize_chars.c - the steps that look at one character at a time.
 *
 * Characters that stay as they are are copied in spans; ASCII is passed over
 * eight bytes at a time.
 */
#include "token/normalize_step.h"

#include <assert.h>
#include <stdlib.h>

#include "base/str.h"
#include "token/chars.h"
#include "token/unicode16.h"
#include "token/unicode_norm.h"

#define ONES 0x0101010101010101u

/* The longest text that one character becomes: an ideograph between two spaces. */
#define CHANGED_MAX 6

static bool is_hidden(uint32_t cp)
{
	if (cp >= 0x2070 && cp < 0xe000)
		return false; /* most of Asia */
	return bsearch(&cp, unicode_hidden, unicode_hidden_count, sizeof *unicode_hidden,
		unicode_by_range) != NULL;
}

static bool is_han(uint32_t cp)
{
	return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf) ||
		(cp >= 0xf900 && cp <= 0xfaff) || (cp >= 0x20000 && cp <= 0x2a6df) ||
		(cp >= 0x2a700 && cp <= 0x2b81f) || (cp >= 0x2b920 && cp <= 0x2ceaf) ||
		(cp >= 0x2f800 && cp <= 0x2fa1f);
}

/* The lower case of one code point (not U+0130), which may be cp itself. */
static uint32_t lower(uint32_t cp)
{
	const struct unicode_lower *run;

	if ((cp >= 0x560 && cp < 0x10a0) || (cp >= 0x2d00 && cp < 0xa640) || cp >= 0x1e922)
		return cp;
	run = bsearch(&cp, unicode_lower, unicode_lower_count, sizeof *run, unicode_by_range);
	if (!run || (cp - run->first) % run->step)
		return cp;
	return (uint32_t)((int32_t)cp + run->distance);
}

/* What is dropped and what is a space for sentencepiece's "nmt" rules. */
static bool is_nmt_dropped(uint32_t cp)
{
	return (cp >= 0x01 && cp <= 0x08) || cp == 0x0b || (cp >= 0x0e && cp <= 0x1f) ||
		cp == 0x7f || cp == 0x8f || cp == 0x9f;
}

static bool is_nmt_space(uint32_t cp)
{
	return cp == 0x09 || cp == 0x0a || cp == 0x0c || cp == 0x0d || cp == 0x1680 ||
		(cp >= 0x200b && cp <= 0x200f) || cp == 0x2028 || cp == 0x2029 || cp == 0x2581 ||
		cp == 0xfeff || cp == 0xfffd;
}

/* Whether a step changes a character; if so, the *n bytes it becomes. */
static inline bool change(enum normalize_kind kind, uint32_t cp, char to[CHANGED_MAX], size_t *n)
{
	bool is_dropped = false, is_space = false;
	uint32_t small;

	*n = 0;
	switch (kind) {
	case NORMALIZE_LOWER_OTHERS:
		if (cp == 0x130) {
			*n = 3;
			memcpy(to, "i\xcc\x87", *n);
			return true;
		}
		small = lower(cp);
		if (small != cp)
			*n = utf8_encode(small, to);
		return small != cp;
	case NORMALIZE_SPACE_HAN:
		if (!is_han(cp))
			return false;
		to[0] = ' ';
		*n = 1 + utf8_encode(cp, to + 1);
		to[(*n)++] = ' ';
		return true;
	case NORMALIZE_STRIP_MARKS:
		return unicode_norm(cp) & UNICODE_MARK;
	case NORMALIZE_STRIP_NONSPACING:
		return unicode_norm(cp) & UNICODE_NONSPACING;
	case NORMALIZE_CLEAN:
		is_dropped = is_hidden(cp);
		is_space = chars_is_space(cp) && cp != ' ';
		break;
	case NORMALIZE_NMT:
		is_dropped = is_nmt_dropped(cp);
		is_space = is_nmt_space(cp);
		break;
	default:
		assert(!"a step of single characters");
	}
	if (is_space && !is_dropped)
		to[(*n)++] = ' ';
	return is_dropped || is_space;
}

/* Past ASCII that is no control character. */
static size_t skip_printed(struct str text, size_t at)
{
	uint64_t word;

	for (; text.n - at >= 8; at += 8) {
		memcpy(&word, text.p + at, 8);
		/* A byte is high, below 0x20 or, with one added, high. */
		if ((word | (word - 0x20 * ONES) | (word + ONES)) & NORMALIZE_HIGH_BITS)
			break;
	}
	while (at < text.n && (uint8_t)text.p[at] >= 0x20 && (uint8_t)text.p[at] < 0x7f)
		at++;
	return at;
}

static inline struct str each_char(enum normalize_kind kind, struct str text, struct buf *out)
{
	bool has_controls = kind == NORMALIZE_CLEAN || kind == NORMALIZE_NMT;
	size_t done = 0, at = 0, n, changed;
	char *end = NULL, to[CHANGED_MAX];

	for (;; at += n) {
		at = has_controls ? skip_printed(text, at) : normalize_skip_ascii(text, at);
		if (at >= text.n)
			break;
		if (!change(kind, normalize_char(text.p + at, &n), to, &changed))
			continue;
		if (!end) {
			buf_reset(out);
			if (buf_reserve(out, text.n * 2)) /* none becomes more than twice as long */
				return text;
			end = out->data;
		}
		memcpy(end, text.p + done, at - done);
		end += at - done;
		memcpy(end, to, changed);
		end += changed;
		done = at + n;
	}
	if (!end)
		return text;
	memcpy(end, text.p + done, text.n - done);
	end += text.n - done;
	*end = 0;
	out->len = (size_t)(end - out->data);
	return buf_str(out);
}

/* The bits 0x20 of the bytes that are A to Z. */
static uint64_t upper_bits(uint64_t word)
{
	uint64_t seven = word & ~NORMALIZE_HIGH_BITS;
	uint64_t from_a = seven + (0x80 - 'A') * ONES, after_z = seven + (0x7f - 'Z') * ONES;

	return (~word & NORMALIZE_HIGH_BITS & (from_a ^ after_z)) >> 2;
}

static struct str lower_ascii(struct str text, struct buf *out)
{
	uint64_t word;
	char *to;

	buf_reset(out);
	if (buf_reserve(out, text.n + 8))
		return text;
	to = out->data;
	for (size_t at = 0; at < text.n; at += 8) {
		size_t n = text.n - at < 8 ? text.n - at : 8;

		word = 0;
		memcpy(&word, text.p + at, n);
		word |= upper_bits(word);
		memcpy(to + at, &word, 8);
	}
	to[text.n] = 0;
	out->len = text.n;
	return buf_str(out);
}

static struct str spell_bytes(struct str text, struct buf *out)
{
	buf_reset(out);
	chars_spell(text, out);
	return buf_str(out);
}

struct str normalize_chars(enum normalize_kind kind, struct str text, struct buf *out)
{
	switch (kind) {
	case NORMALIZE_LOWER_ASCII:
		return lower_ascii(text, out);
	case NORMALIZE_SPELL_BYTES:
		return spell_bytes(text, out);
	case NORMALIZE_LOWER_OTHERS:
		return each_char(NORMALIZE_LOWER_OTHERS, text, out);
	case NORMALIZE_STRIP_MARKS:
		return each_char(NORMALIZE_STRIP_MARKS, text, out);
	case NORMALIZE_STRIP_NONSPACING:
		return each_char(NORMALIZE_STRIP_NONSPACING, text, out);
	case NORMALIZE_SPACE_HAN:
		return each_char(NORMALIZE_SPACE_HAN, text, out);
	default:
		return each_char(kind, text, out);
	}
}
