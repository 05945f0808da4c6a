/* SPDX-License-Identifier: Apache-2.0 */
/* gif.c - GIF by giflib; the first frame on the screen it is drawn on. */
#include <gif_lib.h>
#include <stdlib.h>

#include "core/base/library.h"
#include "core/base/mem.h"
#include "input/media/decode.h"

/* What is called of it: it is loaded when it is first needed. */
#define GIF_CALLS(X) X(DGifCloseFile) X(DGifGetExtension) X(DGifGetExtensionNext) \
	X(DGifGetImageDesc) X(DGifGetLine) X(DGifGetRecordType) X(DGifOpen)
LIBRARY(lib, GIF_CALLS, "libgif.so.7", "libgif7");

#define NO_COLOUR (-1)

static int give(GifFileType *gif, GifByteType *to, int n)
{
	struct str *rest = gif->UserData;
	size_t taken = (size_t)n < rest->n ? (size_t)n : rest->n;

	if (taken)
		memcpy(to, rest->p, taken);
	rest->p += taken;
	rest->n -= taken;
	return (int)taken;
}

/* Blocks before the first picture; *clear becomes the index that is transparent in it. */
static bool find_picture(GifFileType *gif, int *clear)
{
	GifRecordType type;
	GifByteType *bytes;
	int code;

	*clear = NO_COLOUR;
	while (lib.DGifGetRecordType(gif, &type) == GIF_OK) {
		if (type == IMAGE_DESC_RECORD_TYPE)
			return lib.DGifGetImageDesc(gif) == GIF_OK;
		if (type != EXTENSION_RECORD_TYPE ||
		    lib.DGifGetExtension(gif, &code, &bytes) != GIF_OK)
			return false;
		if (code == GRAPHICS_EXT_FUNC_CODE && bytes && bytes[0] >= 4)
			*clear = bytes[1] & 1 ? bytes[4] : NO_COLOUR;
		while (bytes) {
			if (lib.DGifGetExtensionNext(gif, &bytes) != GIF_OK)
				return false;
		}
	}
	return false;
}

/* Indices beyond the table are shades of grey, as they are in Pillow. */
static void paint(uint8_t *to, const ColorMapObject *map, unsigned index, int clear)
{
	to[0] = to[1] = to[2] = (uint8_t)index;
	if (map && index < (unsigned)map->ColorCount) {
		to[0] = map->Colors[index].Red;
		to[1] = map->Colors[index].Green;
		to[2] = map->Colors[index].Blue;
	}
	to[3] = (int)index == clear ? 0 : 255;
}

/* Rows of an interlaced picture come in four passes. */
static bool read_rows(GifFileType *gif, struct image *m, int clear)
{
	static const uint32_t first[] = { 0, 4, 2, 1 }, step[] = { 8, 8, 4, 2 };
	const GifImageDesc *d = &gif->Image;
	const ColorMapObject *map = d->ColorMap ? d->ColorMap : gif->SColorMap;
	uint32_t width = (uint32_t)d->Width, height = (uint32_t)d->Height;
	GifPixelType *line = mem_alloc(width);
	bool ok = true;

	for (unsigned pass = 0; pass < (d->Interlace ? 4 : 1); pass++) {
		uint32_t by = d->Interlace ? step[pass] : 1;

		for (uint32_t y = d->Interlace ? first[pass] : 0; ok && y < height; y += by) {
			uint8_t *to = m->rgb + 4 * (((size_t)d->Top + y) * m->width +
						    (size_t)d->Left);

			ok = lib.DGifGetLine(gif, line, (int)width) == GIF_OK;
			for (uint32_t x = 0; ok && x < width; x++)
				paint(to + 4 * x, map, line[x], clear);
		}
	}
	free(line);
	return ok;
}

/* What the picture leaves free is transparent, or index 0. */
static int draw(GifFileType *gif, int clear, size_t bytes, struct image *m, struct err *e)
{
	const GifImageDesc *d = &gif->Image;
	const ColorMapObject *map = d->ColorMap ? d->ColorMap : gif->SColorMap;
	int right = d->Left + d->Width, bottom = d->Top + d->Height;

	if (d->Width <= 0 || d->Height <= 0 || d->Left < 0 || d->Top < 0)
		return err_set(e, ERR_PARSE, "damaged GIF file: a picture of %d x %d pixels", d->Width,
			       d->Height);
	if (image_begin(m, (uint64_t)(right > gif->SWidth ? right : gif->SWidth),
			(uint64_t)(bottom > gif->SHeight ? bottom : gif->SHeight), bytes,
			e) < 0)
		return -1;
	for (size_t i = 0; i < (size_t)m->width * m->height; i++)
		paint(m->rgb + 4 * i, map, clear == NO_COLOUR ? 0 : (unsigned)clear, clear);
	return read_rows(gif, m, clear) ? 0 :
	       err_set(e, ERR_PARSE, "damaged GIF file: its first picture is not whole");
}

int gif_decode(struct str bytes, struct image *out, struct err *e)
{
	struct str rest = bytes;
	int why = 0, clear, result;
	GifFileType *gif;

	if (library_open(&lib_library, e) < 0)
		return -1;
	gif = lib.DGifOpen(&rest, give, &why);
	if (!gif)
		return err_set(e, ERR_PARSE, "damaged GIF file: its head is not whole");
	result = find_picture(gif, &clear) ? draw(gif, clear, bytes.n, out, e) :
		 err_set(e, ERR_PARSE, "damaged GIF file: it has no picture");
	lib.DGifCloseFile(gif, &why);
	if (result == 0)
		image_over_white(out);
	return result;
}
