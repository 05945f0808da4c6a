/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_workload.c - arbitrary workload files.
 *
 * The first byte chooses. 'H': the rest is the content (one byte: how many requests it claims)
 * after a head whose lengths and hash fit it, so that records and texts are reached; 'S': the same
 * in the layout with sessions. Anything else: the rest is the file. It is read whole or refused
 * with one sentence.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "core/base/str.h"
#include "input/data/workload_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char path[] = "/tmp/profllm-fuzz-workload-XXXXXX";
static bool is_there;

static void remove_file(void)
{
	unlink(path);
}

static void write_file(struct str bytes)
{
	FILE *f = fopen(path, "w");

	CHECK(f && fwrite(bytes.p, 1, bytes.n, f) == bytes.n && fclose(f) == 0);
}

static void add_head(uint32_t layout, const uint8_t *data, size_t size, struct buf *out)
{
	struct workload_file_head h = { .layout = layout, .n = size ? data[0] : 0 };
	struct str content = { (const char *)data + (size > 0), size - (size > 0) };
	uint8_t block[DIGEST_BYTES];

	memcpy(h.magic, "PROFLLMW", sizeof h.magic);
	h.content_bytes = content.n;
	digest(DIGEST_SHA256, STR(""), content, block);
	digest(DIGEST_SHA256, STR(""), (struct str){ (char *)block, content.n ? sizeof block : 0 },
	       h.hash);
	buf_add(out, &h, sizeof h);
	buf_add_str(out, content);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct workload w = { 0 };
	char hash[DIGEST_HEX];
	struct buf file = { 0 };
	struct str description;
	struct err e = { 0 };

	if (!is_there) {
		CHECK(mkstemp(path) >= 0);
		atexit(remove_file);
		is_there = true;
	}
	if (size && (data[0] == 'H' || data[0] == 'S'))
		add_head(data[0] == 'H' ? 1 : 3, data + 1, size - 1, &file);
	else if (size)
		buf_add(&file, data + 1, size - 1);
	write_file((struct str){ file.data ? file.data : "", file.len });
	if (workload_file_read(path, SIZE_MAX, "", &w, &description, hash, &e) < 0)
		CHECK(e.text[0]);
	workload_release(&w);
	buf_release(&file);
	return 0;
}
