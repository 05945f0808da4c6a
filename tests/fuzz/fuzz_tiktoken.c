/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tiktoken.c - arbitrary bytes as a tiktoken file.
 *
 * With 'R' in front the rest follows the ranks of all single bytes, so that what it
 * adds is used; else the input is the whole file.
 */
#include "file_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool has_begun;
	struct str input = { (const char *)data, size };
	struct buf file = { 0 };

	if (!has_begun)
		rig_begin("{\"tokenizer_class\":\"TikTokenTokenizer\"}");
	has_begun = true;
	if (size > 0 && *data == 'R') {
		for (unsigned i = 0; i < 256; i++) {
			rig_base64(&file, i);
			buf_printf(&file, " %u\n", i);
		}
		input = (struct str){ input.p + 1, input.n - 1 };
	}
	buf_add_str(&file, input);
	rig_check("tiktoken.model", buf_str(&file), input);
	buf_release(&file);
	return 0;
}
