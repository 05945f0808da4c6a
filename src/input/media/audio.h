/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audio.h - sound in and out; datasets spec 4.6.
 *
 * Samples are floats in [-1, 1], frame after frame, channels side by side. What is read:
 * WAV, FLAC, Ogg, MP3. What is written: WAV, PCM 16 bit, clipped. All functions may run in many
 * threads at once. Of a damaged MP3 the library beneath (libmpg123) writes notes to stderr; there
 * is no way to tell it not to.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define AUDIO_SAMPLES_MAX (1u << 28) /* 1 GiB: 90 minutes of 48 kHz mono */

struct audio {
	float *sample;     /* frames * channels; audio_release frees it */
	uint64_t frames;
	uint32_t channels;
	uint32_t rate;     /* frames a second */
};

/* ERR_PARSE: damaged or of another kind; ERR_LIMIT. */
int audio_decode(struct str bytes, struct audio *out, struct err *e);
void audio_release(struct audio *a); /* accepts a zeroed one */
/* Seconds, without decoding the samples: frames / rate, as the file's head counts them. */
int audio_duration(struct str bytes, double *seconds, struct err *e);
int audio_wav(const struct audio *a, struct buf *out, struct err *e);
