/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_image.c - arbitrary bytes as a picture.
 *
 * What is read goes out as JPEG and PNG; the PNG must come back as it was. Pictures of
 * no bytes but many pixels, which lossless WebP can say, are left out: they only take time.
 */
#include <stdlib.h>
#include <webp/decode.h>

#include "check.h"
#include "core/base/str.h"
#include "input/media/image.h"

#define PIXELS_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_and_read(const struct image *m)
{
	struct buf out = { 0 };
	struct image again;
	struct err e = { 0 };

	if (image_jpeg(m, &out, &e) == 0) {
		CHECK(image_decode(buf_str(&out), true, &again, &e) == 0);
		CHECK(again.width == m->width && again.height == m->height);
		image_release(&again);
	} else {
		CHECK(m->width > 65500 || m->height > 65500);
	}
	buf_reset(&out);
	CHECK(image_png(m, &out, &e) == 0);
	CHECK(image_decode(buf_str(&out), true, &again, &e) == 0);
	CHECK(again.width == m->width && again.height == m->height &&
	      memcmp(again.rgb, m->rgb, (size_t)3 * m->width * m->height) == 0);
	image_release(&again);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err e = { 0 };
	struct image m;
	int width, height;

	if (WebPGetInfo(data, size, &width, &height) && width > PIXELS_MAX / height)
		return 0;
	if (image_decode((struct str){ (const char *)data, size }, true, &m, &e) < 0) {
		CHECK(e.code == ERR_PARSE || e.code == ERR_LIMIT);
		CHECK(m.rgb == NULL);
		return 0;
	}
	if ((uint64_t)m.width * m.height <= PIXELS_MAX)
		write_and_read(&m);
	image_release(&m);
	return 0;
}
