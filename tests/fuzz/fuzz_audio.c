/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_audio.c - arbitrary bytes as sound; what is read goes out as WAV and comes back.
 *
 * libmpg123 tells stderr of every frame that is wrong. While it reads, stderr leads nowhere;
 * reports of the sanitizers go where it led before.
 */
#include <fcntl.h>
#include <sanitizer/common_interface_defs.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "core/base/str.h"
#include "input/media/audio.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size)
{
	struct str bytes = { (const char *)data, size };
	struct audio a, again;
	struct buf wav = { 0 };
	struct err e = { 0 };
	double seconds;

	if (audio_duration(bytes, &seconds, &e) == 0)
		CHECK(seconds >= 0);
	if (audio_decode(bytes, &a, &e) < 0) {
		CHECK(e.code == ERR_PARSE || e.code == ERR_LIMIT);
		CHECK(a.sample == NULL);
		return;
	}
	if (a.frames * a.channels < 1 << 20 && audio_wav(&a, &wav, &e) == 0) {
		CHECK(audio_decode(buf_str(&wav), &again, &e) == 0);
		CHECK(again.frames == a.frames && again.channels == a.channels &&
		      again.rate == a.rate);
		audio_release(&again);
	}
	buf_release(&wav);
	audio_release(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int real = -1, nowhere;

	if (real < 0) {
		real = dup(STDERR_FILENO);
		nowhere = open("/dev/null", O_WRONLY);
		CHECK(real >= 0 && nowhere >= 0);
		__sanitizer_set_report_fd((void *)(intptr_t)real);
	}
	dup2(nowhere, STDERR_FILENO);
	check(data, size);
	dup2(real, STDERR_FILENO);
	return 0;
}
