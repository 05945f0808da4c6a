/* SPDX-License-Identifier: Apache-2.0 */
/* decoders.c - pictures of each kind, by the library for it; see image.h. */
#include <assert.h>
#include <gif_lib.h>
#include <png.h>
#include <stdlib.h>
#include <turbojpeg.h>
#include <webp/decode.h>
#include <webp/demux.h>

#include "core/base/library.h"
#include "core/base/mem.h"
#include "input/media/image.h"

/* ---- JPEG ---- */

/*
 * JPEG by libjpeg-jpeg, with the settings that Pillow has by default: the
 * accurate integer transform, smooth chroma, standard Huffman tables.
 */

/* The functions in use: the library is loaded when first needed. */
#define JPEG_CALLS(X) X(tjCompress2) X(tjDecompress2) X(tjDecompressHeader3) X(tjDestroy) \
	X(tjFree) X(tjGetErrorCode) X(tjGetErrorStr2) X(tjInitCompress) X(tjInitDecompress)
LIBRARY(libjpeg, JPEG_CALLS, "libturbojpeg.so.0", "libturbojpeg0");

#define QUALITY 75

/* The library speaks of a file that ends too early and of anything else by one kind of warning. */
static bool is_cut_short(tjhandle tj)
{
	return strstr(libjpeg.tjGetErrorStr2(tj), "Premature end of JPEG file") != NULL;
}

static bool attempt(tjhandle tj, struct str s, int pixel, int flags, struct image *m)
{
	return libjpeg.tjDecompress2(tj, (const unsigned char *)s.p, (unsigned long)s.n, m->rgb,
			     (int)m->width, 0, (int)m->height, pixel,
			     flags | TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS) == 0;
}

/*
 * Like Pillow: damage inside is ignored, a file without its end mark is refused, at once and not
 * after filling a large picture with grey.
 */
static bool decode(tjhandle tj, struct str s, int pixel, struct image *m)
{
	if (attempt(tj, s, pixel, TJFLAG_STOPONWARNING, m))
		return true;
	if (libjpeg.tjGetErrorCode(tj) != TJERR_WARNING || is_cut_short(tj))
		return false;
	attempt(tj, s, pixel, 0, m);
	return libjpeg.tjGetErrorCode(tj) == TJERR_WARNING && !is_cut_short(tj);
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

	if (library_open(&libjpeg_library, e) < 0)
		return -1;
	tj = libjpeg.tjInitDecompress();
	if (!tj)
		return err_set(e, ERR_LIMIT, "no memory for reading a JPEG file");
	/* A sampling that has no name is an error of this call alone; the rest is known then. */
	libjpeg.tjDecompressHeader3(tj, (const unsigned char *)bytes.p, (unsigned long)bytes.n,
				    &width, &height, &sampling, &colours);
	is_inks = colours == TJCS_CMYK || colours == TJCS_YCCK;
	if (width <= 0 || height <= 0 || colours < 0) {
		err_set(e, ERR_PARSE, "damaged JPEG file: %s", libjpeg.tjGetErrorStr2(tj));
	} else if (image_begin(out, (uint64_t)width, (uint64_t)height, bytes.n, e) == 0) {
		result = decode(tj, bytes, is_inks ? TJPF_CMYK : TJPF_RGBA, out) ? 0 :
			 err_set(e, ERR_PARSE, "damaged JPEG file: %s", libjpeg.tjGetErrorStr2(tj));
	}
	libjpeg.tjDestroy(tj);
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

	assert(m->rgb && m->width > 0 && m->height > 0);
	if (library_open(&libjpeg_library, e) < 0)
		return -1;
	tj = libjpeg.tjInitCompress();
	if (!tj)
		return err_set(e, ERR_LIMIT, "no memory for writing a JPEG file");
	if (libjpeg.tjCompress2(tj, m->rgb, (int)m->width, 0, (int)m->height, TJPF_RGB, &jpeg, &n,
			TJSAMP_420, QUALITY, TJFLAG_ACCURATEDCT) < 0)
		result = err_set(e, ERR_LIMIT, "a picture of %u x %u pixels cannot be a JPEG file: %s",
				 m->width, m->height, libjpeg.tjGetErrorStr2(tj));
	else
		buf_add(out, jpeg, n);
	libjpeg.tjFree(jpeg);
	libjpeg.tjDestroy(tj);
	if (result == 0 && out->is_over)
		return err_set(e, ERR_LIMIT, "a JPEG file of %lu bytes is too long", n);
	return result;
}

/* ---- PNG ---- */

/* PNG by libpng. */

/* The functions in use: the library is loaded when first needed. */
#define PNG_CALLS(X) X(png_create_info_struct) X(png_create_read_struct) \
	X(png_create_write_struct) X(png_destroy_read_struct) X(png_destroy_write_struct) \
	X(png_error) X(png_get_error_ptr) X(png_get_io_ptr) X(png_get_rowbytes) \
	X(png_set_longjmp_fn) X(png_get_IHDR) X(png_set_IHDR) \
	X(png_longjmp) X(png_read_image) X(png_read_info) X(png_read_update_info) \
	X(png_set_add_alpha) X(png_set_expand) X(png_set_gray_to_rgb) \
	X(png_set_interlace_handling) X(png_set_read_fn) X(png_set_strip_16) \
	X(png_set_user_limits) X(png_set_write_fn) X(png_write_end) X(png_write_info) \
	X(png_write_row)
LIBRARY(libpng, PNG_CALLS, "libpng16.so.16", "libpng16-16");

/*
 * Everything that must survive the library's longjmp, so that no local variable has to: functions
 * that call setjmp only get a pointer to this.
 */
struct decoder_work {
	png_structp png;
	png_infop info;
	struct str rest;      /* reading: bytes after those taken */
	size_t bytes;         /* reading: of all */
	struct image *m;
	png_bytep *row;       /* reading: where each row goes */
	const struct image *from;
	struct buf *out;
	bool is_wide_grey;    /* reading: 16 bit grey and alpha in place of RGBA */
	struct err e;
	char text[128];       /* what the library said */
};

static void on_error(png_structp png, png_const_charp text)
{
	struct decoder_work *w = libpng.png_get_error_ptr(png);

	snprintf(w->text, sizeof w->text, "%s", text);
	libpng.png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void give_png(png_structp png, png_bytep to, size_t n)
{
	struct decoder_work *w = libpng.png_get_io_ptr(png);

	if (n > w->rest.n)
		libpng.png_error(png, "it ends too early");
	memcpy(to, w->rest.p, n);
	w->rest.p += n;
	w->rest.n -= n;
}

/* Asks for RGBA of 8 bits each, or for 16 bit grey and alpha: 4 bytes a pixel either way. */
static void choose_form(struct decoder_work *w, int depth, int colour)
{
	w->is_wide_grey = depth == 16 && colour == PNG_COLOR_TYPE_GRAY;
	libpng.png_set_expand(w->png);
	if (!w->is_wide_grey) {
		libpng.png_set_strip_16(w->png);
		libpng.png_set_gray_to_rgb(w->png);
	}
	libpng.png_set_add_alpha(w->png, 0xffff, PNG_FILLER_AFTER);
	libpng.png_set_interlace_handling(w->png);
	libpng.png_read_update_info(w->png, w->info);
}

/* False: the library jumped, or w->e says why. */
static bool read_png_rows(struct decoder_work *w)
{
	png_uint_32 width, height;
	int depth, colour;

	if (setjmp(*libpng.png_set_longjmp_fn(w->png, longjmp, sizeof(jmp_buf))))
		return false;
	libpng.png_set_read_fn(w->png, w, give_png);
	libpng.png_set_user_limits(w->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	libpng.png_read_info(w->png, w->info);
	libpng.png_get_IHDR(w->png, w->info, &width, &height, &depth, &colour, NULL, NULL, NULL);
	if (image_begin(w->m, width, height, w->bytes, &w->e) < 0)
		return false;
	choose_form(w, depth, colour);
	if (libpng.png_get_rowbytes(w->png, w->info) != 4 * (size_t)w->m->width)
		libpng.png_error(w->png, "a form that is not known");
	w->row = mem_array(w->m->height, sizeof *w->row);
	for (size_t y = 0; y < w->m->height; y++)
		w->row[y] = w->m->rgb + 4 * y * w->m->width;
	libpng.png_read_image(w->png, w->row);
	return true;
}

/* Pillow does not scale 16 bit grey, it cuts it off. */
static void narrow(struct image *m)
{
	uint8_t *p = m->rgb;

	for (size_t n = (size_t)m->width * m->height; n; n--, p += 4) {
		uint8_t grey = p[0] ? 255 : p[1], alpha = p[2];

		p[0] = p[1] = p[2] = grey;
		p[3] = alpha;
	}
}

int png_decode(struct str bytes, struct image *out, struct err *e)
{
	struct decoder_work w = { .rest = bytes, .bytes = bytes.n, .m = out };
	bool ok;

	if (library_open(&libpng_library, e) < 0)
		return -1;
	w.png = libpng.png_create_read_struct(PNG_LIBPNG_VER_STRING, &w, on_error, on_warning);
	w.info = w.png ? libpng.png_create_info_struct(w.png) : NULL;
	ok = w.info && read_png_rows(&w);
	libpng.png_destroy_read_struct(&w.png, &w.info, NULL);
	free(w.row);
	if (!ok && w.e.code)
		return err_set(e, w.e.code, "%s", w.e.text);
	if (!ok)
		return err_set(e, ERR_PARSE, "damaged PNG file: %s", w.text);
	if (w.is_wide_grey)
		narrow(out);
	image_over_white(out);
	return 0;
}

static void take(png_structp png, png_bytep from, size_t n)
{
	struct decoder_work *w = libpng.png_get_io_ptr(png);

	buf_add(w->out, from, n);
	if (w->out->is_over)
		libpng.png_error(png, "it is too long");
}

static void flush(png_structp png)
{
	(void)png;
}

static bool write_rows(struct decoder_work *w)
{
	if (setjmp(*libpng.png_set_longjmp_fn(w->png, longjmp, sizeof(jmp_buf))))
		return false;
	libpng.png_set_write_fn(w->png, w, take, flush);
	libpng.png_set_user_limits(w->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	libpng.png_set_IHDR(w->png, w->info, w->from->width, w->from->height, 8, PNG_COLOR_TYPE_RGB,
		     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	libpng.png_write_info(w->png, w->info);
	for (size_t y = 0; y < w->from->height; y++)
		libpng.png_write_row(w->png, w->from->rgb + 3 * y * w->from->width);
	libpng.png_write_end(w->png, NULL);
	return true;
}

int image_png(const struct image *m, struct buf *out, struct err *e)
{
	struct decoder_work w = { .from = m, .out = out };
	bool ok;

	assert(m->rgb && m->width > 0 && m->height > 0);
	if (library_open(&libpng_library, e) < 0)
		return -1;
	w.png = libpng.png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_error, on_warning);
	w.info = w.png ? libpng.png_create_info_struct(w.png) : NULL;
	ok = w.info && write_rows(&w);
	libpng.png_destroy_write_struct(&w.png, &w.info);
	return ok ? 0 : err_set(e, ERR_LIMIT, "a picture of %u x %u pixels cannot be a PNG file: %s",
				m->width, m->height, w.text);
}

/* ---- WebP ---- */

/* WebP by libwebp; of an animation the first frame on its canvas. */

/* The functions in use: the library is loaded when first needed. */
#define WEBP_CALLS(X) X(WebPDecodeRGBAInto) X(WebPDemuxInternal) X(WebPDemuxDelete) \
	X(WebPDemuxGetFrame) X(WebPDemuxGetI) X(WebPDemuxReleaseIterator)
LIBRARY(libwebp, WEBP_CALLS, "libwebpdemux.so.2", "libwebpdemux2");

static int draw_webp(WebPDemuxer *file, struct image *m, struct err *e)
{
	bool has_alpha = (libwebp.WebPDemuxGetI(file, WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
	size_t n = (size_t)m->width * m->height;
	WebPIterator frame;
	uint8_t *to;
	bool ok;

	if (!libwebp.WebPDemuxGetFrame(file, 1, &frame))
		return err_set(e, ERR_PARSE, "damaged WebP file: it has no picture");
	/* The library keeps frames inside the canvas; checked here as well, as this is a write. */
	ok = frame.x_offset >= 0 && frame.y_offset >= 0 && frame.width > 0 && frame.height > 0 &&
	     (uint64_t)frame.x_offset + (uint64_t)frame.width <= m->width &&
	     (uint64_t)frame.y_offset + (uint64_t)frame.height <= m->height;
	if (ok) {
		to = m->rgb + 4 * ((size_t)frame.y_offset * m->width + (size_t)frame.x_offset);
		ok = libwebp.WebPDecodeRGBAInto(frame.fragment.bytes, frame.fragment.size, to,
					4 * n - (size_t)(to - m->rgb), 4 * (int)m->width) != NULL;
	}
	libwebp.WebPDemuxReleaseIterator(&frame);
	if (!ok)
		return err_set(e, ERR_PARSE, "damaged WebP file: its first picture cannot be decoded");
	for (size_t i = 0; i < n && !has_alpha; i++)
		m->rgb[4 * i + 3] = 255;
	return 0;
}

int webp_decode(struct str bytes, struct image *out, struct err *e)
{
	WebPData data = { (const uint8_t *)bytes.p, bytes.n };
	WebPDemuxer *file;
	int result;

	if (library_open(&libwebp_library, e) < 0)
		return -1;
	file = libwebp.WebPDemuxInternal(&data, 0, NULL, WEBP_DEMUX_ABI_VERSION);
	if (!file)
		return err_set(e, ERR_PARSE, "damaged WebP file: %zu bytes do not follow the format",
			       bytes.n);
	result = image_begin(out, libwebp.WebPDemuxGetI(file, WEBP_FF_CANVAS_WIDTH),
			     libwebp.WebPDemuxGetI(file, WEBP_FF_CANVAS_HEIGHT), 0, e);
	if (result == 0)
		result = draw_webp(file, out, e);
	libwebp.WebPDemuxDelete(file);
	if (result == 0)
		image_over_white(out);
	return result;
}

/* ---- GIF ---- */

/* GIF by giflib; the first frame on the screen it is drawn on. */

/* The functions in use: the library is loaded when first needed. */
#define GIF_CALLS(X) X(DGifCloseFile) X(DGifGetExtension) X(DGifGetExtensionNext) \
	X(DGifGetImageDesc) X(DGifGetLine) X(DGifGetRecordType) X(DGifOpen)
LIBRARY(giflib, GIF_CALLS, "libgif.so.7", "libgif7");

#define NO_COLOUR (-1)

static int give_gif(GifFileType *gif, GifByteType *to, int n)
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
	while (giflib.DGifGetRecordType(gif, &type) == GIF_OK) {
		if (type == IMAGE_DESC_RECORD_TYPE)
			return giflib.DGifGetImageDesc(gif) == GIF_OK;
		if (type != EXTENSION_RECORD_TYPE ||
		    giflib.DGifGetExtension(gif, &code, &bytes) != GIF_OK)
			return false;
		if (code == GRAPHICS_EXT_FUNC_CODE && bytes && bytes[0] >= 4)
			*clear = bytes[1] & 1 ? bytes[4] : NO_COLOUR;
		while (bytes) {
			if (giflib.DGifGetExtensionNext(gif, &bytes) != GIF_OK)
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
static bool read_gif_rows(GifFileType *gif, struct image *m, int clear)
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

			ok = giflib.DGifGetLine(gif, line, (int)width) == GIF_OK;
			for (uint32_t x = 0; ok && x < width; x++)
				paint(to + 4 * x, map, line[x], clear);
		}
	}
	free(line);
	return ok;
}

/* Pixels outside the picture are transparent, or index 0. */
static int draw_gif(GifFileType *gif, int clear, size_t bytes, struct image *m, struct err *e)
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
	return read_gif_rows(gif, m, clear) ? 0 :
	       err_set(e, ERR_PARSE, "damaged GIF file: its first picture is incomplete");
}

int gif_decode(struct str bytes, struct image *out, struct err *e)
{
	struct str rest = bytes;
	int why = 0, clear, result;
	GifFileType *gif;

	if (library_open(&giflib_library, e) < 0)
		return -1;
	gif = giflib.DGifOpen(&rest, give_gif, &why);
	if (!gif)
		return err_set(e, ERR_PARSE, "damaged GIF file: its head is incomplete");
	result = find_picture(gif, &clear) ? draw_gif(gif, clear, bytes.n, out, e) :
		 err_set(e, ERR_PARSE, "damaged GIF file: it has no picture");
	giflib.DGifCloseFile(gif, &why);
	if (result == 0)
		image_over_white(out);
	return result;
}
