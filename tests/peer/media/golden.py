# SPDX-License-Identifier: Apache-2.0
"""Writes tests/unit/media_golden.h to standard output: what Pillow makes of the same pixels and files."""
import base64, hashlib, io
import numpy as np
from PIL import Image, ImageOps


def made(height, width):
    state, out = 1, bytearray()
    for _ in range(3 * width * height):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append(state >> 56)
    return np.frombuffer(bytes(out), np.uint8).reshape(height, width, 3)


def file(im, kind, **options):
    b = io.BytesIO()
    im.save(b, kind, **options)
    return b.getvalue()


def on_white(im):
    if not im.has_transparency_data:
        return im.convert("RGB")
    im = im.convert("RGBA")
    white = Image.new("RGB", im.size, (255, 255, 255))
    white.paste(im, mask=im.split()[3])
    return white


def pictures():
    rgb = made(3, 4)
    rgba = np.dstack([rgb, np.array([[0, 1, 127, 128], [254, 255, 200, 3], [9, 99, 77, 13]], np.uint8)])
    wide = np.array([[0, 1, 255, 256], [65535, 40000, 254, 3], [7, 700, 77, 13]], np.uint16)
    opaque, few = Image.fromarray(rgb), Image.fromarray(rgb).quantize(4)
    exif = Image.Exif()
    yield "png rgb", file(opaque, "PNG"), False
    yield "png rgba", file(Image.fromarray(rgba), "PNG"), False
    yield "png grey", file(opaque.convert("L"), "PNG"), False
    yield "png grey alpha", file(Image.fromarray(rgba).convert("LA"), "PNG"), False
    yield "png bilevel", file(opaque.convert("1"), "PNG"), False
    yield "png 16 bit grey", file(Image.fromarray(wide), "PNG"), False
    yield "png palette", file(few, "PNG"), False
    yield "png palette alphas", file(few, "PNG", transparency=bytes([0, 100, 255, 7])), False
    yield "png clear colour", file(opaque, "PNG", transparency=tuple(map(int, rgb[1, 2]))), False
    yield "webp lossless", file(Image.fromarray(rgba), "WEBP", lossless=True, exact=True), False
    yield "webp lossy", file(opaque, "WEBP"), False
    yield "gif", file(few, "GIF"), False
    yield "gif clear", file(few, "GIF", transparency=1), False
    yield "jpeg", file(opaque, "JPEG"), False
    yield "jpeg progressive", file(opaque, "JPEG", progressive=True), False
    yield "jpeg grey", file(opaque.convert("L"), "JPEG"), False
    yield "jpeg cmyk", file(Image.frombytes("CMYK", (4, 3), rgba.tobytes()), "JPEG"), False
    for way in range(1, 9):
        exif[0x0112] = way
        yield f"png turned {way}", file(opaque, "PNG", exif=exif), True
    exif[0x0112] = 6
    yield "jpeg turned", file(opaque, "JPEG", exif=exif), True
    yield "jpeg not turned", file(opaque, "JPEG", exif=exif), False
    yield "webp turned", file(opaque, "WEBP", exif=exif, lossless=True), True


print("""/* SPDX-License-Identifier: Apache-2.0 */
/* media_golden.h - made with Pillow by tests/peer/media/golden.py. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* made() pixels as Pillow saves them. */
static const struct { uint32_t width, height; size_t bytes; const char *sha256; } jpegs[] = {""")
for height, width in [(1, 1), (8, 8), (17, 31), (64, 100), (256, 256), (360, 640)]:
    raw = file(Image.fromarray(made(height, width)), "JPEG")
    print(f'\t{{ {width}, {height}, {len(raw)}, "{hashlib.sha256(raw).hexdigest()}" }},')
print("""};

/* tail: bytes at the end that a decoder does not need. */
static const struct {
	const char *name;
	bool is_upright;
	uint32_t width, height;
	size_t tail;
	const char *base64, *rgb;
} pictures[] = {""")
for name, raw, is_upright in pictures():
    im = Image.open(io.BytesIO(raw))
    im = on_white(ImageOps.exif_transpose(im) if is_upright else im)
    tail = 16 if name.startswith("png") else 2 if name.startswith("gif") else 0
    print(f'\t{{ "{name}", {str(is_upright).lower()}, {im.size[0]}, {im.size[1]}, {tail},\n'
          f'\t  "{base64.b64encode(raw).decode()}",\n\t  "{im.tobytes().hex()}" }},')
print("};")
