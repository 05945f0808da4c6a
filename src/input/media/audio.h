/* SPDX-License-Identifier: Apache-2.0 */
/*
 * audio.h - sound in and out; datasets spec 4.6.
 *
 * Samples are floats in [-1, 1], frame after frame, channels interleaved. Read formats: WAV, FLAC,
 * Ogg, MP3. Written: WAV, PCM 16 bit, clipped. All functions may run in many threads at once. For a
 * damaged MP3 the underlying library (libmpg123) writes notes to stderr, which cannot be turned
 * off.
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
/* Seconds, without decoding the samples: frames / rate, from the file's header. */
int audio_duration(struct str bytes, double *seconds, struct err *e);
int audio_wav(const struct audio *a, struct buf *out, struct err *e);
