/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decode.h - what the decoders of pictures share. Private to media/.
 *
 * A decoder is one file over one library: it asks for memory with image_begin once it knows the
 * size, fills RGBA, and ends with image_over_white. On failure the caller releases.
 */
#pragma once
#include "input/media/image.h"

/*
 * No file says more pixels in a byte: deflate makes 1032 of one, 8 pixels each. (A lossless WebP
 * may say all in none.)
 */
#define IMAGE_PIXELS_PER_BYTE_MAX 8256

/*
 * Zeroed memory for RGBA, 4 bytes a pixel, in m->rgb. bytes: of the file, which bound its pixels;
 * 0: they do not. ERR_LIMIT; ERR_PARSE when empty or more than the bytes can say.
 */
int image_begin(struct image *m, uint64_t width, uint64_t height, size_t bytes, struct err *e);
/* RGBA becomes RGB in place, laid on white with Pillow's rounding. */
void image_over_white(struct image *m);

int jpeg_decode(struct str bytes, struct image *out, struct err *e);
int png_decode(struct str bytes, struct image *out, struct err *e);
int webp_decode(struct str bytes, struct image *out, struct err *e);
int gif_decode(struct str bytes, struct image *out, struct err *e);

/* Orientation of a JPEG, PNG or WebP file as its EXIF data says, 1 to 8; 1 when it says none. */
unsigned exif_orientation(struct str file);
