/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tokenizer.c - arbitrary bytes as a tokenizer.json, and as text.
 *
 * The first byte chooses. 'F': the rest is a file; it loads or gives one
 * sentence, and what loads must encode and decode. Anything else: the whole
 * input is text for "sim" and for a small model with every merge path, whose
 * decoding must give the text back.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "mutate.h"
#include "core/base/str.h"
#include "input/token/tokenizer.h"

#define SMALL "tests/unit/token/small.json"
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The text comes back: itself from decode_bytes when exact, its lossy form from decode. */
static void check_text(const struct tokenizer *t, struct str text, bool is_exact)
{
	struct buf back = { 0 }, want = { 0 };
	struct ids ids = { 0 };

	CHECK(tokenizer_encode(t, text, false, &ids) == 0);
	CHECK(tokenizer_count(t, text, false) == ids.count);
	utf8_add_lossy(&want, text);
	CHECK(tokenizer_decode(t, ids.id, ids.count, false, &back) == 0);
	CHECK(str_eq(buf_str(&back), buf_str(&want)));
	if (is_exact) {
		buf_reset(&back);
		CHECK(tokenizer_decode_bytes(t, ids.id, ids.count, false, &back) == 0);
		CHECK(str_eq(buf_str(&back), text));
	}
	buf_release(&back);
	buf_release(&want);
	ids_release(&ids);
}

/*
 * Text with some added tokens does not come back: those with lstrip or rstrip
 * swallow blanks, and one whose content looks like byte spellings decodes as
 * bytes, as in the reference.
 */
static bool has_lossy_token(struct str text)
{
	static const char *const lossy[] = { "<l>", "<r>", "<both>", "\xc3\x85" "b" };

	for (size_t i = 0; i < sizeof lossy / sizeof *lossy; i++)
		if (memmem(text.p, text.n, lossy[i], strlen(lossy[i])))
			return true;
	return false;
}

static void check_file(struct str file)
{
	int fd = memfd_create("tokenizer", 0);
	struct ids ids = { 0 };
	struct buf text = { 0 };
	struct tokenizer *t;
	char path[64];
	struct err e = { 0 };

	CHECK(fd >= 0 && write(fd, file.p, file.n) == (ssize_t)file.n);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	t = tokenizer_load(path, NULL, &e);
	close(fd);
	CHECK(t || (e.code != ERR_NONE && e.text[0]));
	if (t) {
		/* A pattern may be one that the regex library gives up on. */
		tokenizer_encode(t, file, true, &ids);
		CHECK(tokenizer_decode(t, ids.id, ids.count, true, &text) == 0);
		CHECK(text.len == 0 || utf8_is_valid(buf_str(&text)));
	}
	tokenizer_free(t);
	ids_release(&ids);
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct tokenizer *sim, *small;
	struct str text = { (const char *)data, size };

	if (!sim) {
		sim = tokenizer_load(TOKENIZER_SIM, NULL, NULL);
		small = tokenizer_load(SMALL, NULL, NULL);
		CHECK(sim && small);
	}
	if (size > 0 && *data == 'F') {
		check_file((struct str){ text.p + 1, text.n - 1 });
		return 0;
	}
	check_text(sim, text, true);
	if (!has_lossy_token(text))
		check_text(small, text, false);
	return 0;
}

/* Values of the file; text is changed by the fuzzer. */
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max, unsigned seed)
{
	return size < 2 || *data != 'F' ? LLVMFuzzerMutate(data, size, max) :
					  1 + mutate_json(data + 1, size - 1, max - 1, seed);
}
