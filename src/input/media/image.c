/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - see image.h; recognizing formats, transparency, rotation. */
#include "input/media/image.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"

/* ---- orientation: which way is up, of all EXIF data ---- */

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
struct image_pieces {
	bool is_big, is_length_first;
	size_t tail;    /* bytes after each: the checksum of PNG */
	unsigned align; /* the next begins at a multiple */
};

static struct str piece(struct str s, size_t at, const char *name, const struct image_pieces *p)
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
		if (marker == 0xe1 && n > 8 && memcmp(s.p + at + 4, "Exif\0\0", 6) == 0)
			return (struct str){ s.p + at + 10, n - 8 };
		at += 2 + n;
	}
	return (struct str){ 0 };
}

/* Orientation of a JPEG, PNG or WebP file as its EXIF data says, 1 to 8; 1 when it says none. */
static unsigned exif_orientation(struct str file)
{
	static const struct image_pieces png = { true, true, 4, 1 }, riff = { false, false, 0, 2 };
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

/* ---- pictures ---- */

static const struct {
	const char *mark;
	size_t at, n;
	int (*decode)(struct str bytes, struct image *out, struct err *e);
} kinds[] = {
	{ "\xff\xd8\xff", 0, 3, jpeg_decode },
	{ "\x89PNG\r\n\x1a\n", 0, 8, png_decode },
	{ "WEBP", 8, 4, webp_decode },
	{ "GIF87a", 0, 6, gif_decode },
	{ "GIF89a", 0, 6, gif_decode },
};

void image_release(struct image *m)
{
	free(m->rgb);
	*m = (struct image){ 0 };
}

int image_begin(struct image *m, uint64_t width, uint64_t height, size_t bytes, struct err *e)
{
	assert(!m->rgb);
	if (width == 0 || height == 0)
		return err_set(e, ERR_PARSE, "the picture has no pixels");
	if (width > IMAGE_PIXELS_MAX || height > IMAGE_PIXELS_MAX / width)
		return err_set(e, ERR_LIMIT, "the picture has %llu x %llu pixels, at most %u"
			" (IMAGE_PIXELS_MAX) are read", (unsigned long long)width,
			(unsigned long long)height, IMAGE_PIXELS_MAX);
	if (bytes && width * height / IMAGE_PIXELS_PER_BYTE_MAX > bytes)
		return err_set(e, ERR_PARSE, "%llu x %llu pixels cannot be in %zu bytes",
			       (unsigned long long)width, (unsigned long long)height, bytes);
	m->width = (uint32_t)width;
	m->height = (uint32_t)height;
	m->rgb = mem_array((size_t)width * (size_t)height, 4);
	return 0;
}

void image_over_white(struct image *m)
{
	size_t n = (size_t)m->width * m->height;
	const uint8_t *from = m->rgb;
	uint8_t *to = m->rgb;

	assert(m->rgb);
	for (size_t i = 0; i < n; i++, from += 4, to += 3) {
		unsigned alpha = from[3];

		for (unsigned k = 0; k < 3; k++) {
			/* x / 255 to the nearest, as Pillow divides. */
			unsigned sum = 255 * (255 - alpha) + from[k] * alpha + 128;

			to[k] = (uint8_t)((sum + (sum >> 8)) >> 8);
		}
	}
	m->rgb = mem_grow(m->rgb, n, 3);
}

/* The offset in m of the pixel of row y and column x of the upright picture. */
static size_t source(const struct image *m, unsigned orientation, size_t x, size_t y)
{
	size_t right = m->width - 1, bottom = m->height - 1;

	switch (orientation) {
	case 2: return y * m->width + (right - x);
	case 3: return (bottom - y) * m->width + (right - x);
	case 4: return (bottom - y) * m->width + x;
	case 5: return x * m->width + y;
	case 6: return (bottom - x) * m->width + y;
	case 7: return (bottom - x) * m->width + (right - y);
	case 8: return x * m->width + (right - y);
	default: return y * m->width + x;
	}
}

static void turn(struct image *m, unsigned orientation)
{
	bool is_lying = orientation >= 5;
	struct image up = { .width = is_lying ? m->height : m->width,
			    .height = is_lying ? m->width : m->height };
	uint8_t *to = up.rgb = mem_array((size_t)up.width * up.height, 3);

	for (size_t y = 0; y < up.height; y++) {
		for (size_t x = 0; x < up.width; x++, to += 3)
			memcpy(to, m->rgb + 3 * source(m, orientation, x, y), 3);
	}
	image_release(m);
	*m = up;
}

int image_decode(struct str bytes, bool is_upright, struct image *out, struct err *e)
{
	unsigned orientation;

	*out = (struct image){ 0 };
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
		if (bytes.n < kinds[i].at + kinds[i].n ||
		    memcmp(bytes.p + kinds[i].at, kinds[i].mark, kinds[i].n) != 0)
			continue;
		if (kinds[i].decode(bytes, out, e) < 0) {
			image_release(out);
			return -1;
		}
		orientation = is_upright ? exif_orientation(bytes) : 1;
		if (orientation != 1)
			turn(out, orientation);
		return 0;
	}
	return err_set(e, ERR_PARSE, "%zu bytes that are not a JPEG, PNG, WebP or GIF file",
		       bytes.n);
}
