/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies of lines: whole, cut anywhere, without a last end, and too long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "client/http/lines.h"
#include "core/base/limits.h"

static void lines_are_the_same_however_cut(void **state)
{
	static const struct { const char *bytes, *want; } row[] = {
		{ "", "" }, { "\n\r\n \n", "" }, { "a\nbc\n", "[a][bc]" }, { "a\r\n\r\n b \n", "[a][b]" },
		{ "a\nlast", "[a][last]" }, { "a\n  ", "[a]" }, { "\xc3\xa9\n", "[\xc3\xa9]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		for (size_t step = 1; step < 20; step++) {
			struct str rest = str_of(row[i].bytes), line;
			struct lines l = { 0 };
			struct buf got = { 0 };

			buf_add_text(&got, "");
			while (rest.n) {
				struct str piece = { rest.p, step < rest.n ? step : rest.n };
				int rc;

				rest.p += piece.n;
				rest.n -= piece.n;
				while ((rc = lines_next(&l, &piece, &line)) == 1)
					buf_printf(&got, "[%.*s]", (int)line.n, line.p);
				assert_int_equal(rc, 0);
				assert_int_equal(piece.n, 0);
			}
			if (lines_finish(&l, &line))
				buf_printf(&got, "[%.*s]", (int)line.n, line.p);
			assert_true(str_is(buf_str(&got), row[i].want));
			/* The next response begins with nothing of this one. */
			lines_reset(&l);
			assert_int_equal(lines_finish(&l, &line), 0);
			buf_release(&got);
			lines_release(&l);
		}
	}
}

static void whole_lines_are_not_copied(void **state)
{
	struct str in = str_of("{\"a\":1}\n"), line;
	const char *from = in.p;
	struct lines l = { 0 };

	(void)state;
	assert_int_equal(lines_next(&l, &in, &line), 1);
	assert_ptr_equal(line.p, from);
	assert_null(l.carry.data);
	lines_release(&l);
}

static void a_line_has_a_limit(void **state)
{
	const size_t half = SSE_EVENT_BYTES_MAX / 2;
	char *text = malloc(half + 1);
	struct lines l = { 0 };
	struct str in, line;

	(void)state;
	assert_non_null(text);
	memset(text, 'x', half + 1);
	in = (struct str){ text, half };
	assert_int_equal(lines_next(&l, &in, &line), 0);
	in = (struct str){ text, half };
	assert_int_equal(lines_next(&l, &in, &line), 0);
	in = (struct str){ text, 1 };
	assert_int_equal(lines_next(&l, &in, &line), -1);
	lines_release(&l);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_are_the_same_however_cut),
		cmocka_unit_test(whole_lines_are_not_copied),
		cmocka_unit_test(a_line_has_a_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
