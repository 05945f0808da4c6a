/* SPDX-License-Identifier: Apache-2.0 */
/* webp.c - WebP by libwebp; of an animation the first frame on its canvas. */
#include <webp/decode.h>
#include <webp/demux.h>

#include "core/base/library.h"
#include "input/media/decode.h"

/* What is called of it: it is loaded when it is first needed. */
#define WEBP_CALLS(X) X(WebPDecodeRGBAInto) X(WebPDemuxInternal) X(WebPDemuxDelete) \
	X(WebPDemuxGetFrame) X(WebPDemuxGetI) X(WebPDemuxReleaseIterator)
LIBRARY(lib, WEBP_CALLS, "libwebpdemux.so.2", "libwebpdemux2");

static int draw(WebPDemuxer *file, struct image *m, struct err *e)
{
	bool has_alpha = (lib.WebPDemuxGetI(file, WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
	size_t n = (size_t)m->width * m->height;
	WebPIterator frame;
	uint8_t *to;
	bool ok;

	if (!lib.WebPDemuxGetFrame(file, 1, &frame))
		return err_set(e, ERR_PARSE, "damaged WebP file: it has no picture");
	/* The library keeps frames inside the canvas; held here as well, being a write. */
	ok = frame.x_offset >= 0 && frame.y_offset >= 0 && frame.width > 0 && frame.height > 0 &&
	     (uint64_t)frame.x_offset + (uint64_t)frame.width <= m->width &&
	     (uint64_t)frame.y_offset + (uint64_t)frame.height <= m->height;
	if (ok) {
		to = m->rgb + 4 * ((size_t)frame.y_offset * m->width + (size_t)frame.x_offset);
		ok = lib.WebPDecodeRGBAInto(frame.fragment.bytes, frame.fragment.size, to,
					4 * n - (size_t)(to - m->rgb), 4 * (int)m->width) != NULL;
	}
	lib.WebPDemuxReleaseIterator(&frame);
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

	if (library_open(&lib_library, e) < 0)
		return -1;
	file = lib.WebPDemuxInternal(&data, 0, NULL, WEBP_DEMUX_ABI_VERSION);
	if (!file)
		return err_set(e, ERR_PARSE, "damaged WebP file: %zu bytes do not follow the format",
			       bytes.n);
	result = image_begin(out, lib.WebPDemuxGetI(file, WEBP_FF_CANVAS_WIDTH),
			     lib.WebPDemuxGetI(file, WEBP_FF_CANVAS_HEIGHT), 0, e);
	if (result == 0)
		result = draw(file, out, e);
	lib.WebPDemuxDelete(file);
	if (result == 0)
		image_over_white(out);
	return result;
}
