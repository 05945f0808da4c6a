/* SPDX-License-Identifier: Apache-2.0 */
/* image.c - see image.h; kinds told apart, transparency, turning. */
#include "input/media/image.h"

#include <stdlib.h>

#include "core/base/mem.h"
#include "input/media/decode.h"

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

/* Where the pixel of row y and column x of the upright picture lies in m. */
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
	return err_set(e, ERR_PARSE, "%zu bytes that begin as no JPEG, PNG, WebP or GIF file does",
		       bytes.n);
}
