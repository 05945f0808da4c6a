/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_read_frame.c - records filtered, binned, grouped and written as CSV.
 *
 * sweep_plot_golden.h (written by tests/peer/sweep/golden_plot.py) holds what upstream's own
 * functions and pandas make of the same records; the other rows were checked manually.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/stats/curve.h"
#include "results/read/frame.h"
#include "sweep_plot_golden.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct arena arena;
static struct frame golden;

static struct frame frame_of(const char *text)
{
	struct json_value *v;
	struct frame f = { 0 };
	struct err e = { 0 };

	if (json_parse(&arena, str_of(text), &v, &e) < 0)
		fail_msg("%s", e.text);
	for (size_t i = 0; i < v->count; i++)
		assert_int_equal(frame_add(&f, &v->item[i], "test", &arena, &e), 0);
	return f;
}

static int begin(void **state)
{
	(void)state;
	golden = frame_of(records_golden);
	return 0;
}

static int end(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

/* "1,4": the ids of the records that are left. */
static const char *ids_of(const struct frame *f)
{
	const char *text = "";

	for (size_t i = 0; i < f->n; i++)
		text = arena_printf(&arena, "%s%s%lld", text, i ? "," : "",
				    (long long)json_int(json_get(f->row[i], "id"), -1));
	return text;
}

static void filters(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(filter_golden); i++) {
		struct frame_filters by;
		struct frame kept;
		struct err e = { 0 };
		struct buf text = { 0 };

		if (frame_parse_filters(&by, filter_golden[i].text, &arena, &e) < 0 ||
		    frame_filter(&golden, &by, &kept, &arena, &e) < 0)
			fail_msg("%s: %s", filter_golden[i].text, e.text);
		frame_filters_text(&by, &text);
		assert_string_equal(text.data, filter_golden[i].repr);
		if (strcmp(ids_of(&kept), filter_golden[i].ids) != 0)
			fail_msg("%s leaves %s, upstream %s", filter_golden[i].text, ids_of(&kept),
				 filter_golden[i].ids);
		buf_release(&text);
	}
}

static void bins(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(bin_golden); i++) {
		struct frame_bins by;
		struct frame binned;
		struct err e = { 0 };

		if (frame_parse_bins(&by, bin_golden[i].text, &arena, &e) < 0 ||
		    frame_bin(&golden, &by, &binned, &arena, &e) < 0)
			fail_msg("%s: %s", bin_golden[i].text, e.text);
		assert_int_equal(binned.n, golden.n);
		for (size_t k = 0; k < binned.n; k++) {
			double want = bin_golden[i].low[k], got;

			assert_true(frame_number(frame_value(binned.row[k], by.item[0].var), &got));
			if (isnan(want) ? !isnan(got) : got != want)
				fail_msg("%s of record %zu: %.17g, upstream %.17g", bin_golden[i].text, k, got,
					 want);
		}
		/* The records that were read are as they were. */
		assert_int_equal(json_int(json_get(golden.row[0], "i"), 0), 16);
	}
}

/* Upstream's sentence is in ours. */
static void bad_texts(void **state)
{
	struct frame_filters filter;
	struct frame_bins bin;

	(void)state;
	for (size_t i = 0; i < COUNT(bad_filter_golden); i++) {
		const char *text = bad_filter_golden[i].text;
		struct err e = { 0 };

		assert_int_equal(frame_parse_filters(&filter, text, &arena, &e), -1);
		assert_int_equal(e.code, ERR_RUN);
		if (!strstr(e.text, bad_filter_golden[i].error))
			fail_msg("%s: '%s', upstream '%s'", bad_filter_golden[i].text, e.text,
				 bad_filter_golden[i].error);
	}
	for (size_t i = 0; i < COUNT(bad_bin_golden); i++) {
		struct err e = { 0 };

		assert_int_equal(frame_parse_bins(&bin, bad_bin_golden[i].text, &arena, &e), -1);
		if (!strstr(e.text, bad_bin_golden[i].error))
			fail_msg("%s: '%s', upstream '%s'", bad_bin_golden[i].text, e.text,
				 bad_bin_golden[i].error);
	}
}

static void wrong_values(void **state)
{
	static const struct { const char *filter, *bin, *error; } rows[] = {
		{ "s<3", NULL, "'<' not supported between instances of 'str' and 'float'" },
		{ "d>=3", NULL, "'>=' not supported between instances of 'dict' and 'float'" },
		{ "none==1", NULL, "Cannot find filter_by='none' in parameter sweep results. Available "
				   "variables: ['i', 'f', 'b', 's', 'n', 'inf', 'id', 'd', 'late']" },
		{ NULL, "s%2", "unsupported operand type(s) for //: 'str' and 'float'" },
		{ NULL, "none%2", "Cannot find bin_by='none'" },
		{ NULL, "i%0", "--bin-by: 'i%0': the size of a bin is a number other than 0" },
		{ NULL, "i%inf", "a number other than 0" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct frame_filters filter;
		struct frame_bins bin;
		struct frame out;
		struct err e = { 0 };

		if (rows[i].filter && frame_parse_filters(&filter, rows[i].filter, &arena, &e) == 0)
			frame_filter(&golden, &filter, &out, &arena, &e);
		if (rows[i].bin && frame_parse_bins(&bin, rows[i].bin, &arena, &e) == 0)
			frame_bin(&golden, &bin, &out, &arena, &e);
		if (!strstr(e.text, rows[i].error))
			fail_msg("row %zu: '%s'", i, e.text);
	}
}

static void groups(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(group_golden); i++) {
		struct frame_keys keys = frame_keys(group_golden[i].keys, &arena);
		struct frame_groups by;
		const char *text = "";
		struct err e = { 0 };

		assert_int_equal(frame_group_by(&golden, &keys, &by, &arena, &e), 0);
		for (size_t g = 0; g < by.n; g++) {
			for (size_t k = 0; k < keys.n; k++)
				text = arena_printf(&arena, "%s%s%s", text, k ? "|" : "",
						    by.item[g].text[k].p);
			text = arena_printf(&arena, "%s:%s;", text, ids_of(&by.item[g].frame));
		}
		assert_string_equal(text, group_golden[i].groups);
	}
}

static void groups_at_the_edge(void **state)
{
	struct frame f = frame_of("[{\"a\": \"x\", \"b\": \"yz\"}, {\"a\": \"xy\", \"b\": \"z\"}, "
				  "{\"a\": 1}]");
	struct frame_keys none = frame_keys("", &arena), both = frame_keys("a,b", &arena);
	struct frame_groups by;
	struct err e = { 0 };
	struct frame empty = { 0 };

	(void)state;
	assert_int_equal(none.n, 0);
	assert_int_equal(frame_keys("a,", &arena).n, 2);
	assert_int_equal(frame_group_by(&f, &none, &by, &arena, &e), 0);
	assert_int_equal(by.n, 1);
	assert_int_equal(by.item[0].frame.n, 3);
	assert_int_equal(frame_group_by(&empty, &both, &by, &arena, &e), 0);
	assert_int_equal(by.n, 0);
	assert_int_equal(frame_group_by(&f, &both, &by, &arena, &e), -1);
	assert_string_equal(e.text, "Cannot find metric 'b' in run_data={'a': 1}");
	f.n = 2; /* texts that only join to the same one are two groups */
	assert_int_equal(frame_group_by(&f, &both, &by, &arena, &e), 0);
	assert_int_equal(by.n, 2);
}

static void csv(void **state)
{
	/* Kinds of columns as pandas infers them, by its answers. */
	struct frame f = frame_of("[{\"i\": 1, \"f\": 1.5, \"b\": true, \"m\": 1, \"big\": "
				  "1180591620717411303424, \"e\": \"\"}, {\"i\": 2, \"f\": 2, \"b\": false, "
				  "\"m\": \"z\", \"n\": 3, \"big\": 1}, {\"i\": null, \"x,\": NaN}]");
	struct buf text = { 0 };

	(void)state;
	frame_csv(&golden, &text);
	assert_string_equal(text.data, csv_golden);
	buf_reset(&text);
	f.n = 2;
	frame_csv(&f, &text);
	assert_string_equal(text.data, ",i,f,b,m,big,e,n\n"
			    "0,1,1.5,True,1,1180591620717411303424,,\n1,2,2.0,False,z,1,,3.0\n");
	buf_reset(&text);
	f.n = 3;
	f.row[1] = f.row[2];
	f.n = 2;
	frame_csv(&f, &text);
	assert_string_equal(text.data, ",i,f,b,m,big,e,\"x,\"\n"
			    "0,1.0,1.5,True,1.0,1180591620717411303424,,\n1,,,,,,,\n");
	buf_release(&text);
}

static void values(void **state)
{
	struct frame f = frame_of("[{\"a.b\": 1, \"a\": {\"b\": 2, \"c\": {\"p99.9\": 3}}, \"s\": \"inf\", "
				  "\"l\": [{\"p99.9\": 4}, 5], \"k[0]\": 6}]");
	static const struct { const char *key; double value; } rows[] = {
		{ "a.b", 1 }, { "a.c.p99.9", 3 }, { "s", INFINITY }, { "l[0].p99.9", 4 },
		{ "l[1]", 5 }, { "k[0]", 6 },
	};
	static const char *const absent[] = { "l[2]", "l[-1]", "l[]", "l[x]", "l[0", "l[0]x", "[0]",
					      "s[0]", "a[0]", "l[99999999999999999999]" };
	double x;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		assert_true(frame_number(frame_value(f.row[0], str_of(rows[i].key)), &x));
		assert_true(x == rows[i].value);
	}
	for (size_t i = 0; i < COUNT(absent); i++)
		assert_null(frame_value(f.row[0], str_of(absent[i])));
	assert_null(frame_value(f.row[0], STR("a.c.p99")));
	assert_null(frame_value(f.row[0], STR("a.b.c")));
	assert_null(frame_value(f.row[0], STR("l[2].x")));
	assert_null(frame_value(f.row[0], STR("l[-1].x")));
	assert_null(frame_value(f.row[0], STR("l[0.5].x")));
	assert_null(frame_value(f.row[0], STR("l[].x")));
	assert_null(frame_value(f.row[0], STR("s[0]")));
	assert_null(frame_value(f.row[0], STR("")));
	assert_true(frame_float(STR(" 1_000.5 "), &x) && x == 1000.5);
	assert_false(frame_float(STR("1__0"), &x));
	assert_false(frame_float(STR("_1"), &x));
	assert_false(frame_float((struct str){ "1_2", 2 }, &x)); /* what follows is no part of it */
	assert_false(frame_float(STR("1_.5"), &x));
	assert_false(frame_float(STR("1._5"), &x));
	assert_true(frame_float(STR("1_2"), &x) && x == 12);
	assert_false(frame_float(STR(""), &x));
}

/* Folders in folders, lists and single records, in the order of the paths; other files are left. */
static void folders(void **state)
{
	static const struct { const char *path, *text; } files[] = {
		{ "b/SERVE--x-BENCH--y/summary.json", "[{\"id\": 3}, {\"id\": 4}]" },
		{ "b/SERVE-x-BENCH-y/summary.json", "[{\"id\": 5}]" },
		{ "a/summary.json", "[{\"id\": 1}]" }, { "a/b/c/summary.json", "{\"id\": 0}" },
		{ "a/z/summary.json", "[]" }, { "a/run=0.json", "{\"id\": 99}" },
	};
	char dir[] = "/tmp/frame-XXXXXX";
	struct frame f = { 0 }, empty = { 0 };
	struct err e = { 0 };
	char *path;

	(void)state;
	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < COUNT(files); i++) {
		char *slash;

		path = file_join(dir, files[i].path);
		slash = strrchr(path, '/');
		*slash = 0;
		assert_int_equal(file_mkdirs(path, &e), 0);
		*slash = '/';
		assert_int_equal(file_write_atomic(path, str_of(files[i].text), &e), 0);
		free(path);
	}
	if (frame_read_sweep(&f, dir, &arena, &e) < 0)
		fail_msg("%s", e.text);
	assert_string_equal(ids_of(&f), "0,1,3,4,5");
	path = file_join(dir, "a/z");
	assert_int_equal(frame_read_sweep(&empty, path, &arena, &e), -1);
	assert_string_equal(e.text, arena_printf(&arena, "Did not find any parameter sweep results under "
						 "%s", path));
	free(path);
	path = file_join(dir, "lines.json");
	file_write_atomic(path, STR("{\"id\": 7}\n\n{\"id\": 8}\n"), &e);
	f.n = 0;
	assert_int_equal(frame_read_file(&f, path, &arena, &e), 2);
	assert_string_equal(ids_of(&f), "7,8");
	file_write_atomic(path, STR("[1]"), &e);
	assert_int_equal(frame_read_file(&f, path, &arena, &e), -1);
	assert_non_null(strstr(e.text, "a record is not a JSON object"));
	file_write_atomic(path, STR("{\"id\": "), &e);
	assert_int_equal(frame_read_file(&f, path, &arena, &e), -1);
	assert_non_null(strstr(e.text, "lines.json: line 1"));
	free(path);
	assert_int_equal(system(arena_printf(&arena, "rm -r %s", dir)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filters), cmocka_unit_test(bins), cmocka_unit_test(bad_texts),
		cmocka_unit_test(wrong_values), cmocka_unit_test(groups),
		cmocka_unit_test(groups_at_the_edge), cmocka_unit_test(csv),
		cmocka_unit_test(values), cmocka_unit_test(folders),
	};

	return cmocka_run_group_tests(tests, begin, end);
}
