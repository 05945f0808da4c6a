/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image.h - pictures in and out; datasets spec 4.4 and 4.5.
 *
 * A picture in memory is 8-bit RGB, rows from the top, no padding: what Pillow's
 * convert("RGB") would give, with transparency laid on white; 16-bit grey is cut off at 255, not
 * scaled, as it is there. Animated files give their first frame. All functions may run in many
 * threads at once.
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
