/* SPDX-License-Identifier: Apache-2.0 */
/* Large files in pieces: every text is cut into pieces of a few bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "results/read/pieces.h"

/* The pieces with '|' between; or the error in angle brackets. */
static void cut(const char *text, size_t bytes, struct buf *out)
{
	struct result_pieces p;
	struct buf piece = { 0 };
	struct err e = { 0 };
	int more = -1;

	buf_reset(out);
	if (result_pieces_begin(&p, str_of(text), bytes, &e) == 0)
		while ((more = result_pieces_next(&p, &piece, &e)) > 0) {
			assert_true(piece.len > 0 && p.first <= p.last);
			buf_printf(out, "%s%.*s", out->len ? "|" : "", (int)piece.len, piece.data);
		}
	if (more < 0)
		buf_printf(out, "<%.40s>", e.text);
	buf_add_char(out, 0);
	buf_release(&piece);
}

static void test_pieces(void **state)
{
	static const struct { const char *text; size_t bytes; const char *expected; } row[] = {
		{ "{\"a\":1}\n{\"a\":2}\n{\"a\":3}", 9, "{\"a\":1}\n{\"a\":2}\n|{\"a\":3}" },
		{ "{\"a\":1}\r\n\n{\"a\":2}\n", 1, "{\"a\":1}\r\n|\n|{\"a\":2}\n" },
		{ "\xef\xbb\xbf {\"a\":1}\n{}\n", 99, "{\"a\":1}\n{}\n" },
		{ " [{\"a\":[1,2]} , {\"b\":\"]},\\\"\"}, 3]\n", 1,
		  "[{\"a\":[1,2]}]|[{\"b\":\"]},\\\"\"}]|[3]" },
		{ "[{},{},{}]", 4, "[{},{}]|[{}]" },
		{ "[]", 1, "" },
		{ "[{},{}", 1, "[{}]|[{}]<the list of results ends within result 3>" },
		{ "[{}", 1, "[{}]<the list of results ends within result 2>" },
		{ "[{} {}]", 1, "[{}]<after result 1: expected ',' or ']'>" },
		{ "[{},]", 1, "[{}]<the list of results ends within result 2>" },
		{ "[{}] x", 9, "<after the list of 1 results something fo>" },
		{ "{\"a\":\n1}\n", 9, "<the file has 0 MiB and is not a list of >" },
		{ "{\"a\":1}", 9, "<the file has 0 MiB and is not a list of >" },
		{ "words\nof text\n", 9, "<the file has 0 MiB and is not a list of >" },
		{ "", 9, "<the file has 0 MiB and is not a list of >" },
		{ "\x1f\x8b\x08\x01\x01\x01", 9, "<a packed file may have at most 64 MiB, p>" },
	};
	struct buf got = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		cut(row[i].text, row[i].bytes, &got);
		assert_string_equal(got.data, row[i].expected);
	}
	buf_release(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_pieces) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
