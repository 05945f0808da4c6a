/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - pictures in and out; datasets spec 4.4 and 4.5.
 *
 * A picture in memory is 8-bit RGB, rows from the top, no padding: as Pillow's convert("RGB"), with
 * transparency over white; 16-bit grey is cut off at 255, not scaled, as in Pillow. Animated files
 * give their first frame. All functions may run in many threads at once.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define IMAGE_PIXELS_MAX 178956970u /* above it Pillow speaks of a bomb and refuses as well */

struct image {
	uint32_t width, height; /* pixels */
	uint8_t *rgb;           /* width * height * 3; image_release frees it */
};

/*
 * JPEG (also CMYK), PNG (all depths), WebP, GIF by the first bytes. Turned upright
 * by its EXIF orientation when is_upright. ERR_PARSE: damaged or of another kind; ERR_LIMIT.
 */
int image_decode(struct str bytes, bool is_upright, struct image *out, struct err *e);
void image_release(struct image *m); /* accepts a zeroed one */

/* Appends a baseline JPEG: quality 75, 4:2:0, standard tables, JFIF 1.1. */
int image_jpeg(const struct image *m, struct buf *out, struct err *e);
/* Appends a PNG. */
int image_png(const struct image *m, struct buf *out, struct err *e);

/* ---- for the decoders, and private to media/ ---- */

/*
 * A decoder asks for memory with image_begin once it knows the size, fills RGBA, and ends with
 * image_over_white. On failure the caller releases.
 */

/*
 * Upper limit of pixels per byte of a file: deflate makes 1032 bytes of one, 8 pixels each. (A
 * lossless WebP can encode any number in almost nothing.)
 */
#define IMAGE_PIXELS_PER_BYTE_MAX 8256

/*
 * Zeroed memory for RGBA, 4 bytes a pixel, in m->rgb. bytes: size of the file, which limits its
 * pixels; 0: no limit. ERR_LIMIT; ERR_PARSE when empty or more than the bytes can hold.
 */
int image_begin(struct image *m, uint64_t width, uint64_t height, size_t bytes, struct err *e);
/* RGBA becomes RGB in place, over white with Pillow's rounding. */
void image_over_white(struct image *m);

int jpeg_decode(struct str bytes, struct image *out, struct err *e);
int png_decode(struct str bytes, struct image *out, struct err *e);
int webp_decode(struct str bytes, struct image *out, struct err *e);
int gif_decode(struct str bytes, struct image *out, struct err *e);
