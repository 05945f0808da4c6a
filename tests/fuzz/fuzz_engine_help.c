/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help of a server: whatever it says, what is read of it can be stored in a file and read again
 * unchanged; also such a file with arbitrary content.
 */
#include "check.h"
#include "host/engine/extra.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_kept(const struct engine_extra *told, struct arena *a)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct engine_extra again;

	engine_extra_write(told, &w);
	CHECK(engine_extra_parse(buf_str(&text), a, &again, NULL) == 0);
	CHECK(again.n == told->n);
	for (size_t i = 0; i < again.n; i++) {
		CHECK(strcmp(again.arg[i].name, told->arg[i].name) == 0);
		CHECK(again.arg[i].kind < ENGINE_KINDS);
	}
	buf_release(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct str text = { (const char *)data, n };
	struct engine_changes changes;
	struct engine_extra told;
	struct arena a = { 0 };

	if (n > 16384)
		return 0;
	if (engine_help_read(text, &a, &told, NULL) == 0) {
		check_kept(&told, &a);
		engine_extra_compare(&told, &a, &changes);
		CHECK(changes.n_added + changes.n_changed <= told.n);
		CHECK(changes.n_gone <= engine_arg_count);
	}
	if (engine_extra_parse(text, &a, &told, NULL) == 0)
		for (size_t i = 0; i < told.n; i++)
			CHECK(engine_extra_find(&told, str_of(told.arg[i].name)));
	arena_release(&a);
	return 0;
}
