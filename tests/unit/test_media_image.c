/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pictures: the bytes of a JPEG, kinds and depths, transparency, turning, damage, bombs. The
 * expected values were made with Pillow; tests/peer/media does it on many more.
 *
 * threads: yes
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "input/media/image.h"
#include "media_golden.h"

static struct image made(uint32_t width, uint32_t height)
{
	struct image m = { width, height, mem_array((size_t)width * height, 3) };
	uint64_t state = 1;

	for (size_t i = 0; i < (size_t)3 * width * height; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		m.rgb[i] = (uint8_t)(state >> 56);
	}
	return m;
}

static int from_base64(const char *text, bool is_upright, struct image *m, struct err *e)
{
	struct buf bytes = { 0 };
	int result;

	assert_true(base64_decode(str_of(text), &bytes));
	result = image_decode(buf_str(&bytes), is_upright, m, e);
	buf_release(&bytes);
	return result;
}

static void expect(size_t row)
{
	const char *rgb_hex = pictures[row].rgb;
	size_t n = (size_t)3 * pictures[row].width * pictures[row].height;
	struct err e = { 0 };
	struct image m;
	char hex[3];

	if (from_base64(pictures[row].base64, pictures[row].is_upright, &m, &e) < 0)
		fail_msg("%s: %s", pictures[row].name, e.text);
	assert_int_equal(m.width, pictures[row].width);
	assert_int_equal(m.height, pictures[row].height);
	for (size_t i = 0; i < n; i++) {
		snprintf(hex, sizeof hex, "%02x", m.rgb[i]);
		if (memcmp(hex, rgb_hex + 2 * i, 2) != 0)
			fail_msg("%s: value %zu is %s, not %.2s", pictures[row].name, i, hex,
				 rgb_hex + 2 * i);
	}
	image_release(&m);
}

static void test_jpeg_equals_pillow(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof jpegs / sizeof *jpegs; i++) {
		struct image m = made(jpegs[i].width, jpegs[i].height);
		struct buf out = { 0 };
		struct err e = { 0 };
		char hex[DIGEST_HEX];

		assert_int_equal(image_jpeg(&m, &out, &e), 0);
		assert_int_equal(out.len, jpegs[i].bytes);
		assert_string_equal(digest_hex(DIGEST_SHA256, buf_str(&out), hex), jpegs[i].sha256);
		buf_release(&out);
		image_release(&m);
	}
}

static void test_kinds(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
		expect(i);
}

/* An empty segment of EXIF data is as good as none: a later one counts, as with Pillow. */
static void test_exif_after_an_empty_one(void **state)
{
	static const char empty[] = "\xff\xe1\0\x08" "Exif\0\0";
	struct buf bytes = { 0 }, both = { 0 };
	struct err e = { 0 };
	struct image m;
	size_t row = 0;

	(void)state;
	while (strcmp(pictures[row].name, "jpeg turned") != 0)
		row++;
	assert_true(base64_decode(str_of(pictures[row].base64), &bytes));
	buf_add(&both, bytes.data, 2);
	buf_add(&both, empty, sizeof(empty) - 1);
	buf_add(&both, bytes.data + 2, bytes.len - 2);
	assert_int_equal(image_decode(buf_str(&both), true, &m, &e), 0);
	assert_int_equal(m.width, pictures[row].width);
	assert_int_equal(m.height, pictures[row].height);
	image_release(&m);
	buf_release(&bytes);
	buf_release(&both);
}

static void test_png_comes_back(void **state)
{
	static const uint32_t sizes[][2] = { { 1, 1 }, { 7, 300 }, { 640, 3 }, { 256, 256 } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct image m = made(sizes[i][0], sizes[i][1]), again;
		struct buf out = { 0 };
		struct err e = { 0 };

		buf_add_text(&out, "before");
		assert_int_equal(image_png(&m, &out, &e), 0);
		assert_memory_equal(out.data, "before\x89PNG", 10);
		assert_int_equal(image_decode((struct str){ out.data + 6, out.len - 6 }, true,
					      &again, &e), 0);
		assert_int_equal(again.width, m.width);
		assert_int_equal(again.height, m.height);
		assert_memory_equal(again.rgb, m.rgb, (size_t)3 * m.width * m.height);
		image_release(&again);
		image_release(&m);
		buf_release(&out);
	}
}

/* Every truncated file of every kind is refused, without leaks. */
static void test_cut_short(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
		struct buf bytes = { 0 };
		struct image m;

		assert_true(base64_decode(str_of(pictures[i].base64), &bytes));
		for (size_t n = 0; n < bytes.len - pictures[i].tail; n++) {
			char *copy = mem_copy(bytes.data, n);
			struct err e = { 0 };

			if (image_decode((struct str){ copy, n }, true, &m, &e) == 0)
				fail_msg("%s: %zu of %zu bytes are accepted", pictures[i].name, n,
					 bytes.len);
			assert_int_equal(e.code, ERR_PARSE);
			assert_null(m.rgb);
			free(copy);
		}
		buf_release(&bytes);
	}
}

static void test_bombs(void **state)
{
	static const char png[] =
		"\x89\x50\x4e\x47\x0d\x0a\x1a\x0a\x00\x00\x00\x0d\x49\x48\x44\x52\x00\x00\xff\xff"
		"\x00\x00\xff\xff\x01\x00\x00\x00\x00\x9e\x7e\xe4\xfd\x00\x00\x00\x0c\x49\x44\x41"
		"\x54\x78\x9c\x63\x60\x20\x15\x00\x00\x00\x32\x00\x01\x41\x3c\x9c\x16";
	static const char gif[] = "GIF89a\xff\x3f\xff\x1f\0\0\0,\0\0\0\0\1\0\1\0\0\x02\x02\x44\x01\0;";
	struct err e = { 0 };
	struct image m;

	(void)state;
	assert_int_equal(image_decode((struct str){ png, sizeof png - 1 }, true, &m, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.text, "IMAGE_PIXELS_MAX"));
	assert_int_equal(image_decode((struct str){ gif, sizeof gif - 1 }, true, &m, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	assert_non_null(strstr(e.text, "cannot be in"));
}

static void test_other_kinds(void **state)
{
	struct err e = { 0 };
	struct image m;

	(void)state;
	assert_int_equal(image_decode(STR("BM and more bytes"), true, &m, &e), -1);
	assert_non_null(strstr(e.text, "not a JPEG, PNG, WebP or GIF"));
	assert_int_equal(image_decode(STR(""), true, &m, &e), -1);
	assert_int_equal(e.code, ERR_PARSE);
	image_release(&m);
}

static void test_too_wide_for_jpeg(void **state)
{
	struct image m = made(70000, 1);
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(image_jpeg(&m, &out, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	assert_non_null(strstr(e.text, "70000 x 1"));
	image_release(&m);
	buf_release(&out);
}

/* Many threads at once: every one gets the same bytes, damage in one harms no other. */
static bool one(void *self, size_t item, unsigned worker)
{
	const struct image *m = self;
	struct buf jpeg = { 0 }, png = { 0 };
	struct image again = { 0 };
	struct err e = { 0 };
	bool ok;

	(void)worker;
	ok = image_jpeg(m, &jpeg, &e) == 0 && image_png(m, &png, &e) == 0;
	if (item % 3 == 0)
		png.len -= 50 + item;
	ok = ok && (image_decode(buf_str(&png), true, &again, &e) == 0) == (item % 3 != 0);
	ok = ok && (item % 3 == 0 ||
		    memcmp(again.rgb, m->rgb, (size_t)3 * m->width * m->height) == 0);
	image_release(&again);
	buf_release(&jpeg);
	buf_release(&png);
	return ok;
}

static void test_threads(void **state)
{
	struct image m = made(100, 80);

	(void)state;
	assert_int_equal(parallel_for(8, 100, one, &m), 100);
	image_release(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_jpeg_equals_pillow),
		cmocka_unit_test(test_kinds), cmocka_unit_test(test_exif_after_an_empty_one),
		cmocka_unit_test(test_png_comes_back),
		cmocka_unit_test(test_cut_short),
		cmocka_unit_test(test_bombs),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_too_wide_for_jpeg),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
