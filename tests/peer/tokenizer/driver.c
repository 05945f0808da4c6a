/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - our tokenizer behind a pipe, for compare.mjs.
 *
 *   driver TOKENIZER <requests >answers
 *   driver --time TOKENIZER FILE...    load time and encode/decode speed, as text
 *
 * All numbers are 32-bit little-endian. A request is kind, length, bytes: kind 0
 * is a text; its answer is the ids without and with special tokens, then both
 * decodings of the latter (special tokens kept, then skipped), each as length
 * and content. Kind 1 is ids; its answer is the two decodings.
 */
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "token/tokenizer.h"

#define REQUEST_BYTES_MAX (64u << 20)

static bool read_u32(uint32_t *out)
{
	return fread(out, sizeof *out, 1, stdin) == 1;
}

static void write_block(const void *p, size_t n, size_t count)
{
	uint32_t head = (uint32_t)count;

	fwrite(&head, sizeof head, 1, stdout);
	if (n > 0)
		fwrite(p, 1, n, stdout);
}

static void answer_decodings(const struct tokenizer *t, const struct ids *ids, struct buf *text)
{
	for (int skip = 0; skip < 2; skip++) {
		buf_reset(text);
		tokenizer_decode(t, ids->id, ids->count, skip, text);
		write_block(text->data, text->len, text->len);
	}
}

static void answer_text(const struct tokenizer *t, struct str text, struct ids *ids,
	struct buf *out)
{
	for (int special = 0; special < 2; special++) {
		ids_reset(ids);
		if (tokenizer_encode(t, text, special, ids))
			ids_push(ids, UINT32_MAX);
		write_block(ids->id, ids->count * sizeof *ids->id, ids->count);
	}
	answer_decodings(t, ids, out);
}

static int serve(const struct tokenizer *t)
{
	struct buf in = { 0 }, out = { 0 };
	struct ids ids = { 0 };
	uint32_t kind, n;

	while (read_u32(&kind) && read_u32(&n) && n <= REQUEST_BYTES_MAX) {
		buf_reset(&in);
		if (buf_reserve(&in, n + 1) || fread(in.data, 1, n, stdin) != n)
			return 1;
		if (kind == 0) {
			answer_text(t, (struct str){ in.data, n }, &ids, &out);
			continue;
		}
		ids_reset(&ids);
		ids_add(&ids, (const uint32_t *)(const void *)in.data, n / sizeof(uint32_t));
		answer_decodings(t, &ids, &out);
	}
	buf_release(&in);
	buf_release(&out);
	ids_release(&ids);
	return 0;
}

static void time_text(const struct tokenizer *t, const char *path)
{
	struct buf text = { 0 }, back = { 0 };
	struct ids ids = { 0 };
	struct err e;

	if (file_read(path, REQUEST_BYTES_MAX, &text, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return;
	}
	for (int pass = 0; pass < 4; pass++) {
		int64_t start = clock_mono_ns(), middle;

		ids_reset(&ids);
		/* Documents of about 4,000 bytes, cut at line ends. */
		for (size_t at = 0, end; at < text.len; at = end) {
			end = at + 4000 < text.len ? at + 4000 : text.len;
			while (end < text.len && text.data[end - 1] != '\n')
				end++;
			tokenizer_encode(t, (struct str){ text.data + at, end - at }, false, &ids);
		}
		middle = clock_mono_ns();
		buf_reset(&back);
		tokenizer_decode(t, ids.id, ids.count, false, &back);
		printf("%s: %zu bytes, %zu ids, encode %.1f MB/s, decode %.1f MB/s, %s\n", path,
			text.len, ids.count, (double)text.len * 1e3 / (double)(middle - start),
			(double)text.len * 1e3 / (double)(clock_mono_ns() - middle),
			str_eq(buf_str(&text), buf_str(&back)) ? "same text" : "text differs");
	}
	buf_release(&text);
	buf_release(&back);
	ids_release(&ids);
}

int main(int argc, char **argv)
{
	bool is_timing = argc > 2 && strcmp(argv[1], "--time") == 0;
	int64_t start = clock_mono_ns();
	struct tokenizer *t;
	struct err e;
	int rc = 0;

	if (argc < 2) {
		fprintf(stderr, "usage: driver [--time] TOKENIZER [FILE...]\n");
		return 2;
	}
	t = tokenizer_load(argv[is_timing ? 2 : 1], NULL, &e);
	if (!t) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	if (is_timing) {
		printf("load %.1f ms\n", (double)(clock_mono_ns() - start) / 1e6);
		for (int i = 3; i < argc; i++)
			time_text(t, argv[i]);
	} else {
		rc = serve(t);
	}
	tokenizer_free(t);
	return rc;
}
