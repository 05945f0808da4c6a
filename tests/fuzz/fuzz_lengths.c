/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_lengths.c - laws of lengths as they are written, and files of histograms.
 *
 * The first byte says which: a law as on the command line, or the file. Either is refused in
 * one sentence, or what is drawn lies within the limits.
 */
#include "core/base/limits.h"
#include "core/rng/rng.h"
#include "file_rig.h"
#include "input/data/lengths.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char *law;
	char *text;
	struct lengths l;
	struct err e = { 0 };
	struct pcg64 rng = rng_fork(1, "fuzz");

	if (!law) {
		struct buf written = { 0 };

		rig_begin(NULL);
		buf_printf(&written, "histogram:%s/histogram", rig_dir);
		law = buf_take(&written);
	}
	if (size == 0)
		return 0;
	text = mem_copy((const char *)data + 1, size - 1);
	if (data[0] & 1)
		rig_write("histogram", (struct str){ text, size - 1 });
	/* A histogram of the fuzzer's choice could be any file of this machine. */
	if (!(data[0] & 1) && strncmp(text, "histogram", 9) == 0) {
		free(text);
		return 0;
	}
	if (lengths_parse("--random-input-len-dist", data[0] & 1 ? law : text, &l, &e) < 0) {
		CHECK(e.code != ERR_NONE && e.text[0]);
	} else {
		for (int i = 0; i < 20; i++) {
			int64_t v = lengths_draw(&l, &rng);

			CHECK(v >= 1 && v <= LENGTH_TOKENS_MAX);
			CHECK(l.kind == LENGTHS_HISTOGRAM || (v >= l.min && v <= l.max));
		}
		lengths_release(&l);
	}
	free(text);
	return 0;
}
