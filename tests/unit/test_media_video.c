/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Videos: the boxes of the file, its frames and size; the same bytes from every thread. Decoders
 * of others judge the pictures in tests/peer/media.
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

#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "input/media/video.h"

#define SIDE_WIDTH 50
#define SIDE_HEIGHT 38
#define FRAMES 14

static uint8_t *frames_of(uint32_t width, uint32_t height, uint32_t frames)
{
	size_t n = (size_t)3 * width * height * frames;
	uint8_t *rgb = mem_alloc(n);
	uint64_t state = 7;

	for (size_t i = 0; i < n; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		rgb[i] = (uint8_t)(state >> 56);
	}
	return rgb;
}

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The content of the box of that name, after its size and name. */
static const uint8_t *box(const struct buf *file, const char *name)
{
	const uint8_t *p = memmem(file->data, file->len, name, 4);

	assert_non_null(p);
	return p + 4;
}

static void check(uint32_t width, uint32_t height, uint32_t frames)
{
	uint8_t *rgb = frames_of(width, height, frames);
	struct buf out = { 0 };
	struct err e = { 0 };
	const uint8_t *entry;

	if (video_mp4(rgb, width, height, frames, &out, &e) < 0)
		fail_msg("%s", e.text);
	assert_memory_equal(out.data + 4, "ftyp", 4);
	entry = box(&out, "mp4v");
	assert_int_equal(entry[24] << 8 | entry[25], width & ~1u);
	assert_int_equal(entry[26] << 8 | entry[27], height & ~1u);
	/* Sizes of samples: as many as frames. Times: one run of equal durations. */
	assert_int_equal(big_endian(box(&out, "stsz") + 8), frames);
	assert_int_equal(big_endian(box(&out, "stts") + 4), 1);
	assert_int_equal(big_endian(box(&out, "stts") + 8), frames);
	assert_int_equal(big_endian(box(&out, "mdhd") + 12) / big_endian(box(&out, "stts") + 12),
			 VIDEO_FRAMES_PER_SECOND);
	buf_release(&out);
	free(rgb);
}

static void test_boxes(void **state)
{
	(void)state;
	check(64, 48, 1);
	check(64, 48, 13);
	check(33, 47, 3);
	check(2, 2, 2);
	check(640, 360, 2);
}

static void test_appends(void **state)
{
	uint8_t *rgb = frames_of(16, 16, 2);
	struct buf alone = { 0 }, behind = { 0 };
	struct err e = { 0 };

	(void)state;
	buf_add_text(&behind, "before");
	assert_int_equal(video_mp4(rgb, 16, 16, 2, &alone, &e), 0);
	assert_int_equal(video_mp4(rgb, 16, 16, 2, &behind, &e), 0);
	assert_int_equal(behind.len, alone.len + 6);
	assert_memory_equal(behind.data, "before", 6);
	assert_memory_equal(behind.data + 6, alone.data, alone.len);
	buf_release(&alone);
	buf_release(&behind);
	free(rgb);
}

static void test_refused(void **state)
{
	static const uint32_t sizes[][3] = { { 1, 64, 1 }, { 64, 1, 1 }, { 64, 64, 0 },
					     { VIDEO_SIDE_MAX + 1, 64, 1 } };
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct err e = { 0 };

		assert_int_equal(video_mp4(NULL, sizes[i][0], sizes[i][1], sizes[i][2], &out, &e),
				 -1);
		assert_int_equal(e.code, ERR_RUN);
	}
	assert_int_equal(out.len, 0);
	buf_release(&out);
}

static void test_limit(void **state)
{
	uint8_t *rgb = frames_of(64, 64, 4);
	struct buf out = { .limit = 3000 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(video_mp4(rgb, 64, 64, 4, &out, &e), -1);
	assert_int_equal(e.code, ERR_LIMIT);
	buf_release(&out);
	free(rgb);
}

struct shared {
	const uint8_t *rgb;
	const struct buf *expected;
};

static bool one(void *self, size_t item, unsigned worker)
{
	const struct shared *s = self;
	struct buf out = { 0 };
	struct err e = { 0 };
	bool ok;

	(void)item;
	(void)worker;
	ok = video_mp4(s->rgb, SIDE_WIDTH, SIDE_HEIGHT, FRAMES, &out, &e) == 0 &&
	     str_eq(buf_str(&out), buf_str(s->expected));
	buf_release(&out);
	return ok;
}

static void test_threads(void **state)
{
	uint8_t *rgb = frames_of(SIDE_WIDTH, SIDE_HEIGHT, FRAMES);
	struct buf expected = { 0 };
	struct shared s = { rgb, &expected };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(video_mp4(rgb, SIDE_WIDTH, SIDE_HEIGHT, FRAMES, &expected, &e), 0);
	assert_int_equal(parallel_for(8, 60, one, &s), 60);
	buf_release(&expected);
	free(rgb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_boxes),
		cmocka_unit_test(test_appends),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
