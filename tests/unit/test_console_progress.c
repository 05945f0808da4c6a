/* SPDX-License-Identifier: Apache-2.0 */
/* test_console_progress.c - what is said on stderr of how far a run is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cmd/console/progress.h"
#include "core/base/clock.h"
#include "on_stderr.h"

#define S INT64_C(1000000000)

static void clocks(void **state)
{
	static const struct { double s; const char *text; } cases[] = {
		{ 0, "00:00" }, { 59.9, "00:59" }, { 60, "01:00" }, { 3599, "59:59" }, { 3600,
		  "1:00:00" },
		{ 3661, "1:01:01" }, { 86399.5, "23:59:59" }, { 360000, "100:00:00" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct buf out = { 0 };

		progress_add_clock(&out, cases[i].s);
		assert_string_equal(out.data, cases[i].text);
		buf_release(&out);
	}
}

/* What progress_show writes of a stage that began so long ago. */
static char *shown(struct progress *p, int64_t ago_ns, uint64_t done, uint64_t total, bool is_bytes)
{
	begin_stderr();
	p->began_ns = p->drawn_ns = clock_mono_ns() - ago_ns;
	if (is_bytes)
		progress_bytes(p, "Model", done, total);
	else
		progress_show(p, STAGE_MAIN, done, total, NULL);
	return end_stderr();
}

/* Half a second more than is shown, so that the machine may be slow. */
static void stages(void **state)
{
	static const struct { bool is_bar, is_bytes; int64_t ago_ns; uint64_t done, total;
			      const char *text; } cases[] = {
		{ false, false, 100 * S + S / 2, 25, 100, "Benchmark: 25/100 [01:40<05:01,"
		  " 0.25/s]\n" },
		{ false, false, 100 * S + S / 2, 100, 100, "Benchmark: 100/100 [01:40, 1.00/s]\n" },
		{ false, false, 100 * S + S / 2, 0, 100, "Benchmark: 0/100 [01:40, 0.00/s]\n" },
		{ false, false, 0, 25, 100, "" },
		{ true, false, 100 * S + S / 2, 25, 100,
		  "\rBenchmark:  25%|######                  | 25/100 [01:40<05:01,"
		  " 0.25/s]\033[K" },
		{ true, false, 100 * S + S / 2, 100, 100,
		  "\rBenchmark: 100%|########################| 100/100 [01:40, 1.00/s]\033[K\n" },
		{ true, true, 10 * S + S / 2, 30000000, 60000000,
		  "\rModel:  50%|############            | 30.0/60.0 MB [00:10<00:10, 2.9"
		  " MB/s]\033[K" },
		{ false, true, 10 * S + S / 2, 30000000, 60000000, "" },
		{ true, true, 0, 30000000, 60000000, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct progress p = { .is_bar = cases[i].is_bar, .stage = STAGE_MAIN };

		assert_string_equal(shown(&p, cases[i].ago_ns, cases[i].done, cases[i].total,
					  cases[i].is_bytes), cases[i].text);
		assert_int_equal(p.is_drawn,
		*cases[i].text == '\r' && cases[i].done < cases[i].total);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(clocks), cmocka_unit_test(stages) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
