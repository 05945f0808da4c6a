/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sound: the bytes of a WAV file as Python's soundfile writes them, reading back, damage.
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

#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "input/media/audio.h"

#define CORPUS "tests/fuzz/corpus/audio/"

/* Values at and beyond the edges: clipped, and rounded down, not to the nearest. */
static void test_wav(void **state)
{
	static const uint8_t expected[] =
		"RIFF\x34\0\0\0WAVEfmt \x10\0\0\0\1\0\2\0\x40\x1f\0\0\0\x7d\0\0\4\0\x10\0"
		"data\x10\0\0\0\xff\x7f\0\x80\xff\x7f\0\x80\0\0\xff\xff\0\x40\xff\xbf";
	float sample[] = { 1, -1, 7, -1.5f, 0.00003f, -0.00003f, 0.5f, -0.500015f };
	struct audio a = { sample, 4, 2, 8000 };
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	buf_add_text(&out, "before");
	assert_int_equal(audio_wav(&a, &out, &e), 0);
	assert_int_equal(out.len, 6 + sizeof expected - 1);
	assert_memory_equal(out.data + 6, expected, sizeof expected - 1);
	buf_release(&out);
}

static void test_wav_comes_back(void **state)
{
	float sample[2000];
	struct audio a = { sample, 500, 4, 44100 }, again;
	struct buf out = { 0 };
	struct err e = { 0 };
	double seconds;

	(void)state;
	for (int i = 0; i < 2000; i++)
		sample[i] = (float)(i * 37 % 65536 - 32768) / 32768;
	assert_int_equal(audio_wav(&a, &out, &e), 0);
	assert_int_equal(audio_decode(buf_str(&out), &again, &e), 0);
	assert_int_equal(again.frames, 500);
	assert_int_equal(again.channels, 4);
	assert_int_equal(again.rate, 44100);
	assert_memory_equal(again.sample, sample, sizeof sample);
	assert_int_equal(audio_duration(buf_str(&out), &seconds, &e), 0);
	assert_true(seconds == 500 / 44100.0); /* frames, however many channels */
	audio_release(&again);
	buf_release(&out);
}

static void test_kinds(void **state)
{
	static const char *const names[] = { "a.wav", "b.wav", "d.wav", "e.flac", "f.ogg", "g.mp3",
					     "h.opus" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char *path = file_join(CORPUS, names[i]);
		struct buf bytes = { 0 };
		struct err e = { 0 };
		struct audio a;
		double seconds;
		float peak = 0;

		assert_int_equal(file_read(path, 1 << 20, &bytes, &e), 0);
		if (audio_decode(buf_str(&bytes), &a, &e) < 0)
			fail_msg("%s: %s", names[i], e.text);
		assert_int_equal(audio_duration(buf_str(&bytes), &seconds, &e), 0);
		assert_true(seconds == (double)a.frames / a.rate);
		assert_true(a.channels == 1 && a.frames >= 200);
		for (uint64_t k = 0; k < a.frames; k++)
			peak = a.sample[k] > peak ? a.sample[k] : peak;
		assert_true(peak > 0.4f && peak < 0.7f);
		audio_release(&a);
		buf_release(&bytes);
		free(path);
	}
}

static void test_refused(void **state)
{
	static const char *const texts[] = { "", "RIFF", "RIFF....WAVEfmt ", "fLaC............",
					     "OggS............", "ID3.............",
					     "FORM....AIFFCOMM", "no sound at all" };
	struct err e;
	struct audio a;
	double seconds;

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		e = (struct err){ 0 };
		assert_int_equal(audio_decode(str_of(texts[i]), &a, &e), -1);
		assert_int_equal(e.code, ERR_PARSE);
		assert_null(a.sample);
		assert_int_equal(audio_duration(str_of(texts[i]), &seconds, &e), -1);
	}
}

/* A head that promises gigabytes costs what the file has. */
static void test_promises(void **state)
{
	uint8_t wav[] = "RIFF\xff\xff\xff\x7fWAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
			"data\xff\xff\xff\x7f\1\0\2\0";
	struct err e = { 0 };
	struct audio a;

	(void)state;
	assert_int_equal(audio_decode((struct str){ (char *)wav, sizeof wav - 1 }, &a, &e), 0);
	assert_int_equal(a.frames, 2);
	audio_release(&a);
}

static void test_not_a_wav(void **state)
{
	struct audio a = { .channels = 0, .rate = 16000 };
	struct buf out = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(audio_wav(&a, &out, &e), -1);
	assert_non_null(strstr(e.text, "0 channels"));
	buf_release(&out);
}

static bool one(void *self, size_t item, unsigned worker)
{
	const struct buf *wav = self;
	struct buf out = { 0 };
	struct err e = { 0 };
	struct audio a;
	bool ok;

	(void)item;
	(void)worker;
	ok = audio_decode(buf_str(wav), &a, &e) == 0 && audio_wav(&a, &out, &e) == 0 &&
	     str_eq(buf_str(&out), buf_str(wav));
	audio_release(&a);
	buf_release(&out);
	return ok;
}

static void test_threads(void **state)
{
	float sample[300] = { 0.25f, -0.5f };
	struct audio a = { sample, 300, 1, 16000 };
	struct buf wav = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(audio_wav(&a, &wav, &e), 0);
	assert_int_equal(parallel_for(8, 200, one, &wav), 200);
	buf_release(&wav);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wav),
		cmocka_unit_test(test_wav_comes_back),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_promises),
		cmocka_unit_test(test_not_a_wav),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
