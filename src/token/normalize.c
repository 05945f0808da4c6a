/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize.c - NFC; the one file that includes utf8proc.
 *
 * Nearly all text is in NFC already and made of characters that never combine
 * with what stands before them. Those are copied; only a run of other
 * characters, with the one character before it, goes through the library. Marks
 * younger than the reference's tables (token/unicode16.h) never reach it.
 */
#include "token/normalize.h"

#include <assert.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "base/mem.h"
#include "base/utf8.h"
#include "token/chars.h"

/* Blocks whose characters are in NFC, have class 0 and do not combine with one before them. */
static bool is_plain(uint32_t cp)
{
	static const struct {
		uint32_t first, last;
	} plain[] = {
		{ 0, 0x2ff }, { 0x3a3, 0x482 }, { 0x48a, 0x558 }, { 0x2002, 0x206f },
		{ 0x2190, 0x2328 }, { 0x232b, 0x2adb }, { 0x2b00, 0x2bff }, { 0x3000, 0x3029 },
		{ 0x3030, 0x3098 }, { 0x309b, 0x3fff }, { 0x4000, 0xa66e }, { 0xac00, 0xd7a3 },
		{ 0xe000, 0xf8ff }, { 0xfe30, 0x100ff }, { 0x1f000, 0x1fbff }, { 0x20000, 0x2f7ff },
	};

	if (cp <= 0x2ff)
		return true;
	for (size_t i = 1; i < sizeof plain / sizeof *plain; i++)
		if (cp <= plain[i].last)
			return cp >= plain[i].first;
	return false;
}

/* Appends the normal form of one stretch. */
static void add_nfc(struct buf *out, struct str s)
{
	const utf8proc_option_t options = UTF8PROC_STABLE | UTF8PROC_COMPOSE;
	const uint8_t *bytes = (const uint8_t *)s.p;
	utf8proc_ssize_t count = (utf8proc_ssize_t)s.n;
	utf8proc_ssize_t n = utf8proc_decompose(bytes, count, NULL, 0, options);
	int32_t *cps;

	assert(n >= 0); /* the text is valid UTF-8 */
	cps = mem_array((size_t)n, sizeof *cps);
	n = utf8proc_decompose(bytes, count, cps, n, options);
	n = utf8proc_normalize_utf32(cps, n, options);
	assert(n >= 0);
	for (utf8proc_ssize_t i = 0; i < n; i++) {
		char text[4];

		buf_add(out, text, utf8_encode((uint32_t)cps[i], text));
	}
	free(cps);
}

/* Past any bytes of ASCII at at, eight at a time, while at least one more follows. */
static size_t skip_ascii(struct str text, size_t at)
{
	uint64_t word;

	while (text.n - at > 8) {
		memcpy(&word, text.p + at, 8);
		if (word & 0x8080808080808080u)
			break;
		at += 8;
	}
	return at;
}

/* Where the next stretch to normalize begins and ends; false when there is none. */
static bool next_stretch(struct str text, size_t from, size_t *start, size_t *end)
{
	size_t at = from, last = from, n;
	uint32_t cp;

	for (; at < text.n; at += n) {
		size_t skipped = skip_ascii(text, at);

		if (skipped > at)
			last = skipped - 1;
		at = skipped;
		cp = utf8_decode((struct str){ text.p + at, text.n - at }, &n);
		if (is_plain(cp))
			last = at;
		else if (chars_is_new_mark(cp))
			last = at + n; /* nothing behind it combines with it */
		else
			break;
	}
	if (at >= text.n)
		return false;
	*start = last;
	for (; at < text.n; at += n) {
		cp = utf8_decode((struct str){ text.p + at, text.n - at }, &n);
		if (is_plain(cp) || chars_is_new_mark(cp))
			break;
	}
	*end = at;
	return true;
}

void normalizer_release(struct normalizer *n)
{
	*n = (struct normalizer){ 0 };
}

void normalize_work_release(struct normalize_work *w)
{
	for (size_t i = 0; i < 2; i++)
		buf_release(&w->text[i]);
}

struct str normalize(const struct normalizer *n, struct normalize_work *w, struct str text)
{
	struct buf *scratch = &w->text[0];
	size_t done = 0, start, end;

	if (!n->is_nfc || !next_stretch(text, 0, &start, &end))
		return text;
	buf_reset(scratch);
	do {
		buf_add(scratch, text.p + done, start - done);
		add_nfc(scratch, (struct str){ text.p + start, end - start });
		done = end;
	} while (next_stretch(text, done, &start, &end));
	buf_add(scratch, text.p + done, text.n - done);
	return buf_str(scratch);
}
