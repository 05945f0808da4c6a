/* SPDX-License-Identifier: Apache-2.0 */
/* png.c - PNG by libpng. */
#include <png.h>
#include <stdlib.h>

#include "core/base/library.h"
#include "core/base/mem.h"
#include "input/media/decode.h"

/* What is called of it: it is loaded when it is first needed. */
#define PNG_CALLS(X) X(png_create_info_struct) X(png_create_read_struct) \
	X(png_create_write_struct) X(png_destroy_read_struct) X(png_destroy_write_struct) \
	X(png_error) X(png_get_error_ptr) X(png_get_io_ptr) X(png_get_rowbytes) \
	X(png_set_longjmp_fn) X(png_get_IHDR) X(png_set_IHDR) \
	X(png_longjmp) X(png_read_image) X(png_read_info) X(png_read_update_info) \
	X(png_set_add_alpha) X(png_set_expand) X(png_set_gray_to_rgb) \
	X(png_set_interlace_handling) X(png_set_read_fn) X(png_set_strip_16) \
	X(png_set_user_limits) X(png_set_write_fn) X(png_write_end) X(png_write_info) \
	X(png_write_row)
LIBRARY(lib, PNG_CALLS, "libpng16.so.16", "libpng16-16");

/*
 * Everything that lives across the library's jumps, so that no local variable does: functions
 * that call setjmp only get a pointer to this.
 */
struct work {
	png_structp png;
	png_infop info;
	struct str rest;      /* reading: bytes behind those taken */
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
	struct work *w = lib.png_get_error_ptr(png);

	snprintf(w->text, sizeof w->text, "%s", text);
	lib.png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text)
{
	(void)png;
	(void)text;
}

static void give(png_structp png, png_bytep to, size_t n)
{
	struct work *w = lib.png_get_io_ptr(png);

	if (n > w->rest.n)
		lib.png_error(png, "it ends too early");
	memcpy(to, w->rest.p, n);
	w->rest.p += n;
	w->rest.n -= n;
}

/* Asks for RGBA of 8 bits each, or for 16 bit grey and alpha: 4 bytes a pixel either way. */
static void choose_form(struct work *w, int depth, int colour)
{
	w->is_wide_grey = depth == 16 && colour == PNG_COLOR_TYPE_GRAY;
	lib.png_set_expand(w->png);
	if (!w->is_wide_grey) {
		lib.png_set_strip_16(w->png);
		lib.png_set_gray_to_rgb(w->png);
	}
	lib.png_set_add_alpha(w->png, 0xffff, PNG_FILLER_AFTER);
	lib.png_set_interlace_handling(w->png);
	lib.png_read_update_info(w->png, w->info);
}

/* False: the library jumped, or w->e says why. */
static bool read_rows(struct work *w)
{
	png_uint_32 width, height;
	int depth, colour;

	if (setjmp(*lib.png_set_longjmp_fn(w->png, longjmp, sizeof(jmp_buf))))
		return false;
	lib.png_set_read_fn(w->png, w, give);
	lib.png_set_user_limits(w->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	lib.png_read_info(w->png, w->info);
	lib.png_get_IHDR(w->png, w->info, &width, &height, &depth, &colour, NULL, NULL, NULL);
	if (image_begin(w->m, width, height, w->bytes, &w->e) < 0)
		return false;
	choose_form(w, depth, colour);
	if (lib.png_get_rowbytes(w->png, w->info) != 4 * (size_t)w->m->width)
		lib.png_error(w->png, "a form that is not known");
	w->row = mem_array(w->m->height, sizeof *w->row);
	for (size_t y = 0; y < w->m->height; y++)
		w->row[y] = w->m->rgb + 4 * y * w->m->width;
	lib.png_read_image(w->png, w->row);
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
	struct work w = { .rest = bytes, .bytes = bytes.n, .m = out };
	bool ok;

	if (library_open(&lib_library, e) < 0)
		return -1;
	w.png = lib.png_create_read_struct(PNG_LIBPNG_VER_STRING, &w, on_error, on_warning);
	w.info = w.png ? lib.png_create_info_struct(w.png) : NULL;
	ok = w.info && read_rows(&w);
	lib.png_destroy_read_struct(&w.png, &w.info, NULL);
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
	struct work *w = lib.png_get_io_ptr(png);

	buf_add(w->out, from, n);
	if (w->out->is_over)
		lib.png_error(png, "it is too long");
}

static void flush(png_structp png)
{
	(void)png;
}

static bool write_rows(struct work *w)
{
	if (setjmp(*lib.png_set_longjmp_fn(w->png, longjmp, sizeof(jmp_buf))))
		return false;
	lib.png_set_write_fn(w->png, w, take, flush);
	lib.png_set_user_limits(w->png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
	lib.png_set_IHDR(w->png, w->info, w->from->width, w->from->height, 8, PNG_COLOR_TYPE_RGB,
		     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	lib.png_write_info(w->png, w->info);
	for (size_t y = 0; y < w->from->height; y++)
		lib.png_write_row(w->png, w->from->rgb + 3 * y * w->from->width);
	lib.png_write_end(w->png, NULL);
	return true;
}

int image_png(const struct image *m, struct buf *out, struct err *e)
{
	struct work w = { .from = m, .out = out };
	bool ok;

	if (library_open(&lib_library, e) < 0)
		return -1;
	w.png = lib.png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_error, on_warning);
	w.info = w.png ? lib.png_create_info_struct(w.png) : NULL;
	ok = w.info && write_rows(&w);
	lib.png_destroy_write_struct(&w.png, &w.info);
	return ok ? 0 : err_set(e, ERR_LIMIT, "a picture of %u x %u pixels cannot be a PNG file: %s",
				m->width, m->height, w.text);
}
