/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pretok.c - a pipe interface to one pre-tokenizer, for pretok.mjs.
 *
 *   pretok FILE        FILE holds the pre-tokenizer's JSON
 *   pretok --classes   a byte for each code point: its class (encode/chars.h)
 *
 * Texts come in as a 32-bit little-endian length and bytes; the output is the number of words, then
 * each as length and bytes.
 */
#include <stdio.h>

#include "core/base/file.h"
#include "input/encode/chars.h"
#include "input/encode/model.h"
#include "input/token/reader.h"

static void put_number(struct buf *out, size_t n)
{
	uint32_t number = (uint32_t)n;

	buf_add(out, &number, sizeof number);
}

struct answer {
	struct buf words;
	size_t count;
};

static void take(void *ctx, const struct str *word, size_t count)
{
	struct answer *a = ctx;

	for (size_t i = 0; i < count; i++) {
		put_number(&a->words, word[i].n);
		buf_add_str(&a->words, word[i]);
	}
	a->count += count;
}

static int serve(const struct pretok *p, struct pretok_work *w)
{
	struct buf in = { 0 }, out = { 0 };
	struct answer a = { 0 };
	uint32_t length;
	int rc = 0;

	while (rc == 0 && fread(&length, sizeof length, 1, stdin) == 1) {
		buf_reset(&in);
		buf_reset(&out);
		buf_reset(&a.words);
		a.count = 0;
		if (buf_reserve(&in, length + 1u) || fread(in.data, 1, length, stdin) != length ||
			pretok_run(p, w, (struct str){ in.data, length }, true, take, &a))
			rc = 1;
		put_number(&out, a.count);
		buf_add_str(&out, buf_str(&a.words));
		fwrite(out.data, 1, out.len, stdout);
	}
	buf_release(&in);
	buf_release(&out);
	buf_release(&a.words);
	return rc;
}

int main(int argc, char **argv)
{
	struct pretok_work w = { 0 };
	struct model m = { 0 };
	struct buf json = { 0 };
	struct err e = { 0 };
	int rc;

	if (argc != 2) {
		fprintf(stderr, "usage: pretok FILE|--classes\n");
		return 2;
	}
	if (strcmp(argv[1], "--classes") == 0) {
		for (uint32_t cp = 0; cp < 0x110000; cp++)
			putchar((int)classes_of(classes_get(), cp));
		return 0;
	}
	if (file_read(argv[1], 1u << 26, &json, &e) ||
		stages_load(&m, &(struct stage_texts){ .pre_tokenizer = buf_str(&json) }, &e)) {
		fprintf(stderr, "%s\n", e.text);
		return 1;
	}
	rc = serve(&m.pretok, &w);
	pretok_work_release(&w);
	buf_release(&json);
	model_release(&m);
	return rc;
}
