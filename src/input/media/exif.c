/* SPDX-License-Identifier: Apache-2.0 */
/* exif.c - the one thing of a picture's EXIF data that matters here: which way is up. */
#include "input/media/decode.h"

#define TAG_ORIENTATION 0x0112
#define TYPE_SHORT 3

static uint32_t number(struct str s, size_t at, unsigned n, bool is_big)
{
	uint32_t v = 0;

	for (unsigned i = 0; i < n; i++)
		v |= (uint32_t)(uint8_t)s.p[at + i] << 8 * (is_big ? n - 1 - i : i);
	return v;
}

/* TIFF: byte order, 42, place of the first directory; its entries have 12 bytes. */
static unsigned from_tiff(struct str s)
{
	size_t at, entries;
	bool is_big;

	if (s.n < 8 || (memcmp(s.p, "II*\0", 4) != 0 && memcmp(s.p, "MM\0*", 4) != 0))
		return 1;
	is_big = *s.p == 'M';
	at = number(s, 4, 4, is_big);
	if (at > s.n - 2)
		return 1;
	entries = number(s, at, 2, is_big);
	for (at += 2; entries-- && s.n - at >= 12; at += 12) {
		uint32_t way;

		if (number(s, at, 2, is_big) != TAG_ORIENTATION ||
		    number(s, at + 2, 2, is_big) != TYPE_SHORT)
			continue;
		way = number(s, at + 8, 2, is_big);
		return way >= 1 && way <= 8 ? way : 1;
	}
	return 1;
}

/* Pieces of s from `at` on: a name of 4 bytes and a length, in either order. */
struct pieces {
	bool is_big, is_length_first;
	size_t tail;    /* bytes behind each: the checksum of PNG */
	unsigned align; /* the next begins at a multiple */
};

static struct str piece(struct str s, size_t at, const char *name, const struct pieces *p)
{
	while (at <= s.n && s.n - at >= 8) {
		size_t n = number(s, at + (p->is_length_first ? 0 : 4), 4, p->is_big);
		const char *its = s.p + at + (p->is_length_first ? 4 : 0);

		at += 8;
		if (n > s.n - at)
			break;
		if (memcmp(its, name, 4) == 0)
			return (struct str){ s.p + at, n };
		at += n + p->tail + n % p->align;
	}
	return (struct str){ 0 };
}

/* Segments of a JPEG up to the first scan. */
static struct str from_jpeg(struct str s)
{
	for (size_t at = 2; s.n - at >= 4 && s.p[at] == '\xff';) {
		uint8_t marker = (uint8_t)s.p[at + 1];
		size_t n = number(s, at + 2, 2, true);

		if (marker == 0xff) { /* a filler */
			at++;
			continue;
		}
		if (marker == 0xda || n < 2 || n > s.n - at - 2)
			break;
		if (marker == 0xe1 && n >= 8 && memcmp(s.p + at + 4, "Exif\0\0", 6) == 0)
			return (struct str){ s.p + at + 10, n - 8 };
		at += 2 + n;
	}
	return (struct str){ 0 };
}

unsigned exif_orientation(struct str file)
{
	static const struct pieces png = { true, true, 4, 1 }, riff = { false, false, 0, 2 };
	struct str tiff;

	if (file.n < 12)
		return 1;
	if (*file.p == '\xff')
		tiff = from_jpeg(file);
	else if (*file.p == '\x89')
		tiff = piece(file, 8, "eXIf", &png);
	else if (*file.p == 'R')
		tiff = piece(file, 12, "EXIF", &riff);
	else
		return 1;
	/* Some writers of WebP repeat what precedes the data in a JPEG. */
	if (tiff.n >= 6 && memcmp(tiff.p, "Exif\0\0", 6) == 0)
		tiff = (struct str){ tiff.p + 6, tiff.n - 6 };
	return from_tiff(tiff);
}
