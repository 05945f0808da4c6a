/* SPDX-License-Identifier: Apache-2.0 */
/* The tables and the script of --plot-load-pattern. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "out/page/plot.h"
#include "answers.h"

#define SPANS 60

/* The numbers of a table's rows, up to its end; returns the text after it. */
static const char *read_rows(const char *text, double *x, unsigned *n, unsigned *sum, int columns)
{
	for (int i = 0; i < SPANS; i++) {
		int got = columns == 3 ? sscanf(text, "%lf %u %u", &x[i], &n[i], &sum[i])
				       : sscanf(text, "%lf %u", &x[i], &n[i]);

		assert_int_equal(got, columns);
		text = strchr(text, '\n') + 1;
	}
	return text;
}

static void arrivals_and_intervals_are_counted(void **state)
{
	/* 61 requests, one a second, then one after an interval of 6 s. */
	double due[62], x[SPANS];
	unsigned n[SPANS], sum[SPANS];
	const struct load_plot p = { due, 62, "t", "d", "p.png" };
	struct buf out = { 0 };
	const char *text;

	(void)state;
	for (int i = 0; i < 61; i++)
		due[i] = i;
	due[61] = 66;
	load_plot_data(&p, &out);
	text = out.data;
	assert_true(str_starts(str_of(text), STR("# time_s due due_so_far; 62 requests, spans of 1.1 s\n")));
	text = read_rows(strchr(text, '\n') + 1, x, n, sum, 3);
	assert_true(x[0] > 0.549 && x[0] < 0.551 && x[59] > 65.44 && x[59] < 65.46);
	assert_int_equal(n[0], 2); /* 0 and 1 */
	assert_int_equal(n[1], 1);
	assert_int_equal(n[58], 0);
	assert_int_equal(n[59], 1);
	assert_int_equal(sum[0], 2);
	assert_int_equal(sum[59], 62);
	assert_true(str_starts(str_of(text), STR("\n\n# interval_s intervals; spans of 0.1 s\n")));
	text = read_rows(strchr(text + 2, '\n') + 1, x, n, sum, 2);
	assert_int_equal(n[10], 60);
	assert_int_equal(n[59], 1);
	assert_string_equal(text, "");
	answers_release(&out);
}

static void everything_at_once_is_one_bar(void **state)
{
	const double due[3] = { 0 };
	const struct load_plot p = { due, 3, "t", "d", "p.png" }, one = { due, 1, "t", "d", "p.png" };
	double x[SPANS];
	unsigned n[SPANS], sum[SPANS];
	struct buf out = { 0 };

	(void)state;
	load_plot_data(&p, &out);
	read_rows(strchr(out.data, '\n') + 1, x, n, sum, 3);
	assert_int_equal(n[0], 3);
	assert_int_equal(sum[59], 3);
	buf_reset(&out);
	load_plot_data(&one, &out); /* has no interval at all */
	assert_non_null(strstr(out.data, "# interval_s"));
	answers_release(&out);
}

static void scripts_name_their_files(void **state)
{
	const double due[1] = { 0 };
	const struct load_plot p = { due, 1, "it's $x", "a'b.dat", "a'b.png" };
	const struct load_plot svg = { due, 1, "t", "d", "p.svg" };
	struct buf out = { 0 };

	(void)state;
	load_plot_script(&p, &out);
	assert_non_null(strstr(out.data, "set terminal pngcairo"));
	assert_non_null(strstr(out.data, "set output 'a''b.png'\n"));
	assert_non_null(strstr(out.data, "data = 'a''b.dat'\n"));
	assert_non_null(strstr(out.data, "title 'it''s $x' noenhanced\n"));
	buf_reset(&out);
	load_plot_script(&svg, &out);
	assert_non_null(strstr(out.data, "set terminal svg"));
	answers_release(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrivals_and_intervals_are_counted),
		cmocka_unit_test(everything_at_once_is_one_bar),
		cmocka_unit_test(scripts_name_their_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
