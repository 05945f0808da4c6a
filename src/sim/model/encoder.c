/* SPDX-License-Identifier: Apache-2.0 */
/* encoder.c - see encoder.h. */
#include "sim/model/encoder.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "input/media/image.h"

/* Seconds; approximate times of a server's CPU core and a large GPU. */
#define HASH_BYTE_S 1.2e-9
#define HASH_ITEM_S 15e-6
#define LOOKUP_ITEM_S 8e-6
#define PROCESSOR_PIXEL_S 12e-9
#define PROCESSOR_ITEM_S 1.5e-3
#define MERGE_ITEM_S 20e-6
#define MERGE_TOKEN_S 30e-9
#define UPDATE_TOKEN_S 60e-9
#define UPDATE_ITEM_S 25e-6
#define FORWARD_S 2e-3
#define FORWARD_TOKEN_S 8e-6
#define PATCH_PIXELS (28.0 * 28.0)
#define TOKENS_MIN 4
#define TOKENS_MAX 16384
/* Pixels assumed per byte of media that cannot be measured as a picture. */
#define ENCODER_BYTE_PIXELS 8.0

static double pixels_of(struct str bytes)
{
	struct image image = { 0 };
	double pixels = ENCODER_BYTE_PIXELS * (double)bytes.n;

	if (image_decode(bytes, false, &image, NULL) == 0)
		pixels = (double)image.width * image.height;
	image_release(&image);
	return pixels;
}

/* The text of a URL, or the data of input_audio. */
static bool reference_of(struct json_slice part, struct json_slice *out)
{
	static const char *const names[][2] = {
		{ "image_url", "url" }, { "video_url", "url" }, { "audio_url", "url" },
		{ "input_audio", "data" }, { "image", NULL }, { "video", NULL }, { "audio", NULL },
	};
	struct json_slice v;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (json_member(part, names[i][0], &v)) {
			if (v.kind == JSON_OBJECT && names[i][1] &&
			    !json_member(v, names[i][1], &v))
				return false;
			*out = v;
			return v.kind == JSON_STRING;
		}
	return false;
}

bool media_read(struct json_slice part, struct media_item *out)
{
	struct buf text = { 0 }, bytes = { 0 };
	struct json_slice v;
	struct str url;
	const char *data;

	if (part.kind != JSON_OBJECT || !reference_of(part, &v))
		return false;
	json_unescape(&text, v.raw);
	url = buf_str(&text);
	data = str_find(url, STR(";base64,"));
	if (str_starts(url, STR("data:")) && data)
		url = (struct str){ data + 8, url.n - (size_t)(data + 8 - url.p) };
	if (!base64_decode(url, &bytes))
		buf_add_str(&bytes, url); /* a file's name, or several pictures: taken as it is */
	*out = (struct media_item){ .key = map_hash(buf_str(&bytes)), .bytes = bytes.len };
	out->pixels = pixels_of(buf_str(&bytes));
	out->tokens = (uint32_t)fmin(TOKENS_MAX, fmax(TOKENS_MIN,
						      ceil(out->pixels / PATCH_PIXELS)));
	buf_release(&text);
	buf_release(&bytes);
	return true;
}

void encoder_release(struct encoder *c)
{
	free(c->processed.key);
	free(c->encoded.key);
	*c = (struct encoder){ 0 };
}

/* Whether key is among n sorted ones; *at: its position, or where to insert it. */
static bool find(const uint64_t *sorted, size_t n, uint64_t key, size_t *at)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sorted[mid] < key)
			low = mid + 1;
		else
			high = mid;
	}
	*at = low;
	return low < n && sorted[low] == key;
}

/* True when it was known; it is from now on. */
static bool learn(uint64_t **sorted, size_t *n, size_t *cap, uint64_t key)
{
	size_t at;

	if (find(*sorted, *n, key, &at))
		return true;
	if (*n == *cap) {
		*cap = *cap ? *cap * 2 : 64;
		*sorted = mem_grow(*sorted, *cap, sizeof(**sorted));
	}
	memmove(*sorted + at + 1, *sorted + at, (*n - at) * sizeof(**sorted));
	(*sorted)[at] = key;
	(*n)++;
	return false;
}

struct media_times encoder_run(struct encoder *c, const struct media_item *item, size_t n,
			       uint32_t prompt)
{
	struct media_times t = { 0 };
	double tokens = 0;

	for (size_t i = 0; i < n; i++) {
		bool is_known = false, is_encoded = learn(&c->encoded.key, &c->encoded.n,
							  &c->encoded.cap, item[i].key);

		if (!c->is_uncached)
			is_known = learn(&c->processed.key, &c->processed.n, &c->processed.cap,
					 item[i].key);
		t.hash += HASH_ITEM_S + HASH_BYTE_S * (double)item[i].bytes;
		t.missing += LOOKUP_ITEM_S;
		if (!is_known)
			t.processor += PROCESSOR_ITEM_S + PROCESSOR_PIXEL_S * item[i].pixels;
		t.known += is_known;
		t.merge += MERGE_ITEM_S + MERGE_TOKEN_S * item[i].tokens;
		t.updates += UPDATE_ITEM_S;
		tokens += item[i].tokens;
		if (is_encoded)
			continue;
		t.forward += FORWARD_S + FORWARD_TOKEN_S * item[i].tokens;
		t.calls++;
	}
	if (n == 0)
		return t;
	t.updates += UPDATE_TOKEN_S * (prompt + tokens);
	t.total = t.hash + t.missing + t.processor + t.merge + t.updates;
	return t;
}
