/* SPDX-License-Identifier: Apache-2.0 */
/* chars.c - properties of characters, from small sorted tables. */
#include "input/encode/chars.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

/* Code points that are matched as another one. */
struct unicode_stand_in {
	uint32_t first, last, to;
};
#include "input/encode/unicode_tables.h"

bool chars_is_space(uint32_t cp)
{
	if (cp < 0x80)
		return cp == ' ' || (cp >= 9 && cp <= 13);
	return cp == 0x85 || cp == 0xa0 || cp == 0x1680 || (cp >= 0x2000 && cp <= 0x200a) ||
		cp == 0x2028 || cp == 0x2029 || cp == 0x202f || cp == 0x205f || cp == 0x3000;
}

static bool is_in(const struct unicode_range *range, size_t count, uint32_t cp)
{
	return bsearch(&cp, range, count, sizeof *range, unicode_by_range) != NULL;
}

bool chars_is_word(uint32_t cp)
{
	if (cp < 0x80)
		return (cp >= '0' && cp <= '9') || ((cp | 0x20) >= 'a' && (cp | 0x20) <= 'z') ||
			cp == '_';
	return is_in(unicode_word, unicode_word_count, cp);
}

bool chars_is_numeric(uint32_t cp)
{
	if ((cp >= 0x11de0 && cp <= 0x11de9) || (cp >= 0x16ff4 && cp <= 0x16ff6))
		return true; /* Unicode 17 added these */
	return CLASS_SET(CLASS_NUMBER) >> classes_of(classes_get(), cp) & 1;
}

bool chars_is_punctuation(uint32_t cp)
{
	return is_in(unicode_punctuation, unicode_punctuation_count, cp);
}

size_t chars_space_front(struct str s)
{
	size_t at = 0, n;

	while (at < s.n && chars_is_space(utf8_decode((struct str){ s.p + at, s.n - at }, &n)))
		at += n;
	return at;
}

static size_t last_start(struct str s)
{
	size_t at = s.n - 1;

	while (at > 0 && ((uint8_t)s.p[at] & 0xc0) == 0x80)
		at--;
	return at;
}

uint32_t chars_last(struct str s)
{
	size_t n, at = last_start(s);

	assert(s.n > 0);
	return utf8_decode((struct str){ s.p + at, s.n - at }, &n);
}

size_t chars_space_back(struct str s)
{
	size_t all = s.n;

	while (s.n > 0 && chars_is_space(chars_last(s)))
		s.n = last_start(s);
	return all - s.n;
}

static bool is_own_spelling(uint32_t byte)
{
	return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

uint32_t chars_of_byte(uint8_t byte)
{
	if (is_own_spelling(byte))
		return byte;
	if (byte <= 32)
		return 256u + byte;
	return byte == 173 ? 256 + 67 : 256u + 33 + (byte - 127u);
}

void chars_spell(struct str bytes, struct buf *out)
{
	char utf8[4];

	for (size_t i = 0; i < bytes.n; i++)
		buf_add(out, utf8, utf8_encode(chars_of_byte((uint8_t)bytes.p[i]), utf8));
}

/* The byte that is spelled as cp, or -1. */
static int byte_of(uint32_t cp)
{
	if (cp < 256)
		return is_own_spelling(cp) ? (int)cp : -1;
	if (cp <= 256 + 32)
		return (int)cp - 256;
	if (cp < 256 + 67)
		return (int)cp - 256 - 33 + 127;
	return cp == 256 + 67 ? 173 : -1;
}

bool chars_to_bytes(struct str spelled, struct buf *out)
{
	size_t n = 1;
	char *to;

	if (buf_reserve(out, spelled.n))
		return false;
	to = out->data + out->len;
	for (size_t at = 0; at < spelled.n; at += n) {
		struct str rest = { spelled.p + at, spelled.n - at };
		int byte = byte_of(utf8_decode(rest, &n));

		if (byte < 0) {
			out->data[out->len] = 0;
			return false;
		}
		*to++ = (char)byte;
	}
	*to = 0;
	out->len = (size_t)(to - out->data);
	return true;
}

static uint32_t stand_in(uint32_t cp)
{
	const struct unicode_stand_in *row = bsearch(&cp, unicode_stand_in,
		unicode_stand_in_count, sizeof *row, unicode_by_range);

	return row ? row->to : cp;
}

/* Where the next character of three or four bytes begins; s.n when there is none. */
static size_t next_long(struct str s, size_t at)
{
	while (at < s.n) {
		uint64_t word;

		if (s.n - at >= 8) {
			memcpy(&word, s.p + at, 8);
			if (!(word & 0x8080808080808080u)) {
				at += 8;
				continue;
			}
		}
		if ((uint8_t)s.p[at] >= 0xe0)
			return at;
		at++;
	}
	return s.n;
}

/*
 * All ideographs below U+A000 and all Hangul syllables have kept their class
 * since Unicode 14; their lead bytes E3 (in part), E4..E9 and EB..ED are the
 * bulk of East Asian text. No two-byte character has changed.
 */
static bool may_have_changed(uint8_t lead)
{
	return lead >= 0xf0 || lead <= 0xe3 || lead == 0xea;
}

struct str chars_stand_in(struct str text, struct buf *scratch)
{
	struct str out = text;
	size_t n;

	for (size_t at = next_long(text, 0); at < text.n; at = next_long(text, at + n)) {
		uint32_t cp, to;

		n = 3;
		if (!may_have_changed((uint8_t)text.p[at]))
			continue;
		cp = utf8_decode((struct str){ text.p + at, text.n - at }, &n);
		to = stand_in(cp);
		if (to == cp)
			continue;
		if (out.p == text.p) {
			buf_reset(scratch);
			buf_add_str(scratch, text);
			out = buf_str(scratch);
			assert(out.n == text.n);
		}
		n = utf8_encode(to, scratch->data + at);
	}
	return out;
}

/* ---- Classes ---- */

/*
 * The sorted list of class changes, laid out as pages of 256.
 *
 * A page inside one class is shared with every other such page of that class; there
 * are few of the others, so no page is looked for by content.
 */

static struct classes table;
static pthread_once_t once = PTHREAD_ONCE_INIT;

struct class_pages {
	size_t used, at; /* pages; entries of unicode_class_start */
	uint8_t uniform[32]; /* one more than the page that is all this class */
};

/* An entry is first << 5 | class, where the class changes. */
static uint32_t start_at(size_t i)
{
	return i < unicode_class_start_count ? unicode_class_start[i] >> 5 : 0x110000;
}

static unsigned class_at(size_t i)
{
	return unicode_class_start[i] & 31;
}

static size_t new_page(struct class_pages *p)
{
	assert(p->used < CLASS_PAGES_MAX);
	return p->used++;
}

/* The page of 256 code points from first on. p->at is the last change at or before first. */
static size_t make_page(struct class_pages *p, uint32_t first)
{
	uint32_t end = first + 256;
	size_t page;

	if (start_at(p->at + 1) >= end) {
		uint8_t *known = p->uniform + class_at(p->at);

		if (*known == 0) {
			page = new_page(p);
			memset(table.page[page], (int)class_at(p->at), 256);
			*known = (uint8_t)(page + 1);
		}
		page = *known - 1u;
	} else {
		page = new_page(p);
		for (uint32_t cp = first; cp < end; cp++) {
			if (start_at(p->at + 1) == cp)
				p->at++;
			table.page[page][cp & 0xff] = (uint8_t)class_at(p->at);
		}
	}
	if (start_at(p->at + 1) == end)
		p->at++;
	return page;
}

static void expand(void)
{
	struct class_pages p = { 0 };

	for (uint32_t first = 0; first < 0x110000; first += 256)
		table.page_of[first >> 8] = (uint8_t)make_page(&p, first);
	for (uint32_t byte = 0; byte < 256; byte++)
		table.byte[byte] = byte < 128 ? (uint8_t)classes_of(&table, byte) : CLASS_LEAD;
}

const struct classes *classes_get(void)
{
	pthread_once(&once, expand);
	return &table;
}
