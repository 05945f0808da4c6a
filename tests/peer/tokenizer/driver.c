/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - a pipe interface to our tokenizer, for compare.mjs.
 *
 *   driver TOKENIZER <requests >answers
 *
 * All numbers are 32-bit little-endian. A request is kind, length, bytes: kind 0 is a text; its
 * answer is the ids without and with special tokens, then both decodings of the latter (special
 * tokens kept, then skipped), each as length and content. Kind 1 is ids; its answer is the two
 * decodings.
 */
#include <stdio.h>

#include "input/token/tokenizer.h"

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

int main(int argc, char **argv)
{
	struct tokenizer *t;
	struct err e;
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: driver TOKENIZER\n");
		return 2;
	}
	t = tokenizer_load(argv[1], NULL, &e);
	if (!t) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	rc = serve(t);
	tokenizer_free(t);
	return rc;
}
