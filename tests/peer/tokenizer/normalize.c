/* SPDX-License-Identifier: Apache-2.0 */
/*
 * normalize.c - a pipe interface to one normalizer, for normalize.mjs.
 *
 *   normalize [--time] FILE     FILE holds the normalizer's JSON
 *
 * Texts come in and results go out as a 32-bit little-endian length and bytes. With --time: all of
 * standard input is one text, and the output is its speed by our CPU time.
 */
#include <stdio.h>
#include <time.h>

#include "core/base/file.h"
#include "input/encode/model.h"
#include "input/token/reader.h"

static void serve(const struct normalizer *n, struct normalize_work *w)
{
	struct buf in = { 0 };
	uint32_t length;

	while (fread(&length, sizeof length, 1, stdin) == 1) {
		struct str out;

		buf_reset(&in);
		if (buf_reserve(&in, length) || fread(in.data, 1, length, stdin) != length)
			break;
		out = normalize(n, w, (struct str){ in.data, length });
		length = w->failure ? UINT32_MAX : (uint32_t)out.n;
		fwrite(&length, sizeof length, 1, stdout);
		if (out.n > 0)
			fwrite(out.p, 1, out.n, stdout);
	}
	buf_release(&in);
}

static void time_text(const struct normalizer *n, struct normalize_work *w)
{
	struct buf text = { 0 };
	char block[65536];
	size_t got;

	while ((got = fread(block, 1, sizeof block, stdin)) > 0)
		buf_add(&text, block, got);
	for (int pass = 0; pass < 5; pass++) {
		clock_t start = clock();
		size_t out = 0;

		for (size_t at = 0, end; at < text.len; at = end) {
			end = at + 4000 < text.len ? at + 4000 : text.len;
			while (end < text.len && ((uint8_t)text.data[end] & 0xc0) == 0x80)
				end++;
			out += normalize(n, w, (struct str){ text.data + at, end - at }).n;
		}
		printf("%zu -> %zu bytes, %.0f MB/s\n", text.len, out,
			(double)text.len / (double)(clock() - start));
	}
	buf_release(&text);
}

int main(int argc, char **argv)
{
	bool is_timing = argc == 3 && strcmp(argv[1], "--time") == 0;
	struct normalize_work w = { 0 };
	struct model m = { 0 };
	struct buf json = { 0 };
	struct err e = { 0 };

	if (argc != 2 + is_timing) {
		fprintf(stderr, "usage: normalize [--time] FILE\n");
		return 2;
	}
	if (file_read(argv[1 + is_timing], 1u << 26, &json, &e) ||
		stages_load(&m, &(struct stage_texts){ .normalizer = buf_str(&json) }, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	if (is_timing)
		time_text(&m.normalizer, &w);
	else
		serve(&m.normalizer, &w);
	normalize_work_release(&w);
	buf_release(&json);
	model_release(&m);
	return 0;
}
