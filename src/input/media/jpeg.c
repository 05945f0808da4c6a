/* SPDX-License-Identifier: Apache-2.0 */
/*
 * jpeg.c - JPEG by libjpeg-turbo, with the settings that Pillow has by default: the
 * accurate integer transform, smooth chroma, standard Huffman tables.
 */
#include <turbojpeg.h>

#include "core/base/library.h"
#include "core/base/mem.h"
#include "input/media/decode.h"

/* What is called of it: it is loaded when it is first needed. */
#define JPEG_CALLS(X) X(tjCompress2) X(tjDecompress2) X(tjDecompressHeader3) X(tjDestroy) \
	X(tjFree) X(tjGetErrorCode) X(tjGetErrorStr2) X(tjInitCompress) X(tjInitDecompress)
LIBRARY(lib, JPEG_CALLS, "libturbojpeg.so.0", "libturbojpeg0");

#define QUALITY 75

/* The library speaks of a file that ends too early and of anything else by one kind of warning. */
static bool is_cut_short(tjhandle tj)
{
	return strstr(lib.tjGetErrorStr2(tj), "Premature end of JPEG file") != NULL;
}

static bool attempt(tjhandle tj, struct str s, int pixel, int flags, struct image *m)
{
	return lib.tjDecompress2(tj, (const unsigned char *)s.p, (unsigned long)s.n, m->rgb,
			     (int)m->width, 0, (int)m->height, pixel,
			     flags | TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) == 0;
}

/*
 * Like Pillow: damage inside is let be, a file without its end mark is refused; that at once,
 * not after filling a large picture with grey.
 */
static bool decode(tjhandle tj, struct str s, int pixel, struct image *m)
{
	if (attempt(tj, s, pixel, TJFLAG_STOPONWARNING, m))
		return true;
	if (lib.tjGetErrorCode(tj) != TJERR_WARNING || is_cut_short(tj))
		return false;
	attempt(tj, s, pixel, 0, m);
	return lib.tjGetErrorCode(tj) == TJERR_WARNING && !is_cut_short(tj);
}

/* Inks as Adobe's programs store them, inverted; Pillow's rounding. Opaque. */
static void from_inks(struct image *m)
{
	uint8_t *p = m->rgb;

	for (size_t n = (size_t)m->width * m->height; n; n--, p += 4) {
		unsigned light = p[3];

		for (unsigned k = 0; k < 3; k++) {
			unsigned shade = (255u - p[k]) * light + 128;
			unsigned ink = (shade + (shade >> 8)) >> 8;

			p[k] = (uint8_t)(ink < light ? light - ink : 0);
		}
		p[3] = 255;
	}
}

int jpeg_decode(struct str bytes, struct image *out, struct err *e)
{
	int width = 0, height = 0, sampling = -1, colours = -1, result = -1;
	tjhandle tj;
	bool is_inks;

	if (library_open(&lib_library, e) < 0)
		return -1;
	tj = lib.tjInitDecompress();
	if (!tj)
		return err_set(e, ERR_LIMIT, "no memory for reading a JPEG file");
	/* A sampling that has no name is an error of this call alone; the rest is known then. */
	lib.tjDecompressHeader3(tj, (const unsigned char *)bytes.p, (unsigned long)bytes.n, &width,
			    &height, &sampling, &colours);
	is_inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
	if (width <= 0 || height <= 0 || colours < 0) {
		err_set(e, ERR_PARSE, "damaged JPEG file: %s", lib.tjGetErrorStr2(tj));
	} else if (image_begin(out, (uint64_t)width, (uint64_t)height, bytes.n, e) == 0) {
		result = decode(tj, bytes, is_inks ? TJPF_CMYK : TJPF_RGBA, out) ? 0 :
			 err_set(e, ERR_PARSE, "damaged JPEG file: %s", lib.tjGetErrorStr2(tj));
	}
	lib.tjDestroy(tj);
	if (result < 0)
		return -1;
	if (is_inks)
		from_inks(out);
	image_over_white(out);
	return 0;
}

int image_jpeg(const struct image *m, struct buf *out, struct err *e)
{
	tjhandle tj;
	unsigned char *jpeg = NULL;
	unsigned long n = 0;
	int result = 0;

	if (library_open(&lib_library, e) < 0)
		return -1;
	tj = lib.tjInitCompress();
	if (!tj)
		return err_set(e, ERR_LIMIT, "no memory for writing a JPEG file");
	if (lib.tjCompress2(tj, m->rgb, (int)m->width, 0, (int)m->height, TJPF_RGB, &jpeg, &n,
			TJSAMP_420, QUALITY, TJFLAG_ACCURATEDCT) < 0)
		result = err_set(e, ERR_LIMIT, "a picture of %u x %u pixels cannot be a JPEG file: %s",
				 m->width, m->height, lib.tjGetErrorStr2(tj));
	else
		buf_add(out, jpeg, n);
	lib.tjFree(jpeg);
	lib.tjDestroy(tj);
	if (result == 0 && out->is_over)
		return err_set(e, ERR_LIMIT, "a JPEG file of %lu bytes is too long", n);
	return result;
}
