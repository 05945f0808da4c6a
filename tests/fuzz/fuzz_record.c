/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a record file. The checksums are made right first, so that the
 * fuzzer gets past them; whatever loads is read through every accessor.
 */
#include <stdint.h>

#include "client/record/block.h"
#include "client/record/file.h"
#include "core/base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void mend_sums(char *p, size_t n)
{
	size_t at = RECORD_MAGIC_BYTES;

	while (n >= BLOCK_HEAD_BYTES && at <= n - BLOCK_HEAD_BYTES) {
		size_t bytes = peek_u32(p + at + 8, 0);
		uint32_t crc;

		if (bytes > n - at - BLOCK_HEAD_BYTES)
			break;
		crc = record_crc(record_crc(0, p + at, 12), p + at + BLOCK_HEAD_BYTES, bytes);
		memcpy(p + at + 12, &crc, sizeof(crc));
		at += BLOCK_HEAD_BYTES + bytes;
	}
}

static void read_row(const struct record *r, const struct request_row *row, struct buf *text)
{
	int64_t *v = mem_array(row->n_events, sizeof(*v));
	const struct record_mark *mark = NULL;

	record_gaps(r, row, v);
	record_skews(r, row, v);
	while ((mark = record_marks(r, row, mark)))
		continue;
	buf_reset(text);
	record_text_of(r, row, text);
	record_error_of(r, row, text);
	fail_name((enum fail_category)row->fail);
	free(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy = mem_copy((const char *)data, size);
	struct record_info info[2] = { 0 }, all = { 0 };
	struct record r[2] = { 0 }, into = { 0 };
	struct buf text = { 0 };
	struct err e;

	mend_sums(copy, size);
	if (record_file_parse(&r[0], &info[0], (struct str){ copy, size }, "fuzz", &e) == 0 &&
	    record_file_parse(&r[1], &info[1], (struct str){ copy, size }, "fuzz", &e) == 0) {
		for (uint32_t i = 0; i < r[0].n_rows; i++)
			read_row(&r[0], &r[0].row[i], &text);
		if (record_merge(&into, &all, r, info, 2, &text, &e) == 0)
			for (uint32_t i = 0; i < into.n_rows; i++)
				read_row(&into, &into.row[i], &text);
	}
	for (int k = 0; k < 2; k++) {
		record_release(&r[k]);
		record_info_release(&info[k]);
	}
	record_release(&into);
	record_info_release(&all);
	buf_release(&text);
	free(copy);
	return 0;
}
