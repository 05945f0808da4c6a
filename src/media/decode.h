/* SPDX-License-Identifier: Apache-2.0 */
/*
 * media/decode.h - what the decoders of pictures share. Private to media/.
 *
 * A decoder is one file over one library: it asks for memory with image_begin once it knows the
 * size, fills RGBA, and ends with image_over_white. On failure the caller releases.
 */
#pragma once
#include "media/image.h"

/* Zeroed memory for RGBA, 4 bytes a pixel, in m->rgb. ERR_LIMIT, ERR_PARSE when empty. */
int image_begin(struct image *m, uint64_t width, uint64_t height, struct err *e);
/* RGBA becomes RGB in place, laid on white with Pillow's rounding. */
void image_over_white(struct image *m);

int jpeg_decode(struct str bytes, struct image *out, struct err *e);
int png_decode(struct str bytes, struct image *out, struct err *e);
int webp_decode(struct str bytes, struct image *out, struct err *e);
int gif_decode(struct str bytes, struct image *out, struct err *e);

/* Orientation of a JPEG, PNG or WebP file as its EXIF data says, 1 to 8; 1 when it says none. */
unsigned exif_orientation(struct str file);
