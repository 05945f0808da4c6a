/* SPDX-License-Identifier: Apache-2.0 */
/*
 * video.h - MP4 files from frames; datasets spec 4.4.
 *
 * MPEG-4 Part 2 (tag mp4v), 30 frames a second, yuv420p, an intra frame every 12, like OpenCV's
 * VideoWriter. Odd sizes lose their last column or row.
 */
#pragma once
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define VIDEO_FRAMES_PER_SECOND 30
#define VIDEO_SIDE_MAX 8191 /* pixels: the format writes sides in 13 bits */

/*
 * Appends the whole file; the same frames give the same bytes. rgb: frames * height * width * 3
 * bytes, frame after frame. ERR_RUN: a side below 2 or too long, no frame; ERR_LIMIT.
 */
int video_mp4(const uint8_t *rgb, uint32_t width, uint32_t height, uint32_t frames,
	      struct buf *out, struct err *e);
