/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_sentencepiece.c - arbitrary bytes as a sentencepiece .model file.
 *
 * A model loads or gives one sentence. One that loads encodes its own bytes, which
 * hold its pieces, and a text with blanks; what comes out decodes to valid UTF-8.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "check.h"
#include "core/base/str.h"
#include "input/token/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct tokenizer *t, struct str text)
{
	struct ids ids = { 0 };
	struct buf back = { 0 };

	/* A character map may make a text longer than is allowed. */
	if (tokenizer_encode(t, text, true, &ids) == 0)
		CHECK(tokenizer_count(t, text, true) == ids.count);
	for (size_t i = 0; i < ids.count; i++)
		CHECK(ids.id[i] < tokenizer_id_limit(t));
	CHECK(tokenizer_decode(t, ids.id, ids.count, true, &back) == 0);
	CHECK(back.len == 0 || utf8_is_valid(buf_str(&back)));
	ids_release(&ids);
	buf_release(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("x.model", 0);
	struct tokenizer *t;
	char path[64];
	struct err e = { 0 };

	CHECK(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	t = tokenizer_load(path, NULL, &e);
	close(fd);
	CHECK(t || (e.code != ERR_NONE && e.text[0]));
	if (t) {
		check_text(t, (struct str){ (const char *)data, size });
		check_text(t, STR(" the  tokens\t\xc2\xa0 a\xcc\x88 \xe2\x96\x81 <s> \xe6\x97\xa5 "));
	}
	tokenizer_free(t);
	return 0;
}
