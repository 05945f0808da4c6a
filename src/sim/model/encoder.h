/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.h - the cost of pictures, video and sound before and in the engine: the stages of vLLM's
 * multimodal preprocessing (sweep spec 6.3) and the encoder's forward pass.
 *
 *   hash            by the bytes of the file
 *   look-up         by the number of media
 *   HF processor    by pixels (resizing, normalising, cutting into patches), if not cached
 *   merge, updates  by tokens (a token is 28 x 28 pixels, as in Qwen2-VL)
 *   encoder         by tokens, if the engine has not encoded them before
 *
 * Both caches identify media by their bytes. Sound and video count by the size of their data,
 * ENCODER_BYTE_PIXELS pixels per byte. Pure arithmetic, apart from decoding pictures for their
 * size.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/mem.h"
#include "core/json/read.h"

struct media_item {
	uint64_t key;      /* of its bytes */
	size_t bytes;
	double pixels;
	uint32_t tokens;
};

/* One content part: image_url, video_url, input_audio, audio_url. False: it is text. */
bool media_read(struct json_slice part, struct media_item *out);

/* Seconds of one request. */
struct media_times {
	double hash, missing, processor, merge, updates, total, forward;
	uint32_t calls;    /* of the encoder */
	uint32_t known;    /* media found in the processor cache */
};

/* Zeroed: both caches are empty and enabled. */
struct encoder {
	struct { uint64_t *key; size_t n, cap; } processed, encoded; /* sorted by key */
	bool is_uncached;  /* --mm-processor-cache-gb 0 */
};
void encoder_release(struct encoder *c);

/* One request with these media; prompt: its tokens without theirs. Adds them to the caches. */
struct media_times encoder_run(struct encoder *c, const struct media_item *item, size_t n,
			       uint32_t prompt);
