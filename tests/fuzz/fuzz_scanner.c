/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_scanner.c - arbitrary bytes, made valid UTF-8, through every scanner.
 *
 * The words must be those of the regex library, however many are asked for at a time.
 */
#include <stdlib.h>

#include "check.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/encode/pretok.h"

#define SCANNERS_MAX 16
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct words {
	struct str *word;
	size_t count;
};

static void take(void *ctx, const struct str *word, size_t count)
{
	struct words *w = ctx;

	memcpy(w->word + w->count, word, count * sizeof *word);
	w->count += count;
}

static void make_stages(const struct scanner *s, struct pretok *p)
{
	for (size_t i = 0; i < SCAN_PATTERNS_MAX && s->pattern[i]; i++) {
		p->stage[i].kind = PRETOK_REGEX;
		p->stage[i].behavior = PRETOK_ISOLATED;
		p->stage[i].regex = regex_new(str_of(s->pattern[i]), NULL);
		CHECK(p->stage[i].regex);
		p->count++;
	}
}

static void check(const struct scanner *s, struct str text, const struct words *want, size_t room)
{
	struct scan scan = scan_begin(s, text);
	struct str *got = mem_array(room, sizeof *got);
	size_t n, at = 0;

	while ((n = scan_next(&scan, got, room)) > 0)
		for (size_t i = 0; i < n; i++, at++)
			CHECK(at < want->count && got[i].p == want->word[at].p &&
				got[i].n == want->word[at].n);
	CHECK(at == want->count);
	free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct pretok by_library[SCANNERS_MAX];
	static struct pretok_work work;
	struct buf valid = { 0 };
	struct str text;
	char *copy;

	CHECK(scan_count <= SCANNERS_MAX);
	for (size_t i = 0; i < scan_count && by_library[i].count == 0; i++)
		make_stages(scan_scanners + i, by_library + i);
	utf8_add_lossy(&valid, (struct str){ (const char *)data, size });
	copy = mem_array(valid.len, 1); /* of its very size, so that a byte read too far is seen */
	if (valid.len > 0)
		memcpy(copy, valid.data, valid.len);
	text = (struct str){ copy, valid.len };
	for (size_t i = 0; i < scan_count; i++) {
		struct words want = { mem_array(text.n + 1, sizeof *want.word), 0 };

		CHECK(pretok_run(by_library + i, &work, text, true, take, &want) == 0);
		check(scan_scanners + i, text, &want, 1 + size % 7);
		check(scan_scanners + i, text, &want, 256);
		free(want.word);
	}
	free(copy);
	buf_release(&valid);
	return 0;
}
