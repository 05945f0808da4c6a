/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_tekken.c - arbitrary bytes as a tekken.json.
 *
 * If the input begins with 'R', the first line of the rest is the pattern, the second the number of
 * special tokens and what follows, and the last more entries after those of all single bytes; else
 * the input is the whole file.
 */
#include "file_rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void add_file(struct buf *file, struct str input)
{
	struct str pattern = str_cut(&input, '\n'), specials = str_cut(&input, '\n');

	buf_printf(file, "{\"config\":{\"pattern\":\"%.*s\",\"version\":\"v3\","
		"\"default_vocab_size\":300,\"default_num_special_tokens\":%.*s},\"vocab\":[",
		(int)pattern.n, pattern.p ? pattern.p : "", (int)specials.n,
		specials.p ? specials.p : "");
	for (unsigned i = 0; i < 256; i++) {
		buf_printf(file, "%s{\"rank\":%u,\"token_bytes\":\"", i ? "," : "", i);
		rig_base64(file, i);
		buf_add_text(file, "\"}");
	}
	buf_add_str(file, input);
	buf_add_text(file, "]}");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static bool has_begun;
	struct str input = { (const char *)data, size };
	struct buf file = { 0 };

	if (!has_begun)
		rig_begin(NULL);
	has_begun = true;
	if (size > 0 && *data == 'R')
		add_file(&file, (struct str){ input.p + 1, input.n - 1 });
	else
		buf_add_str(&file, input);
	rig_check("tekken.json", buf_str(&file), input);
	buf_release(&file);
	return 0;
}
