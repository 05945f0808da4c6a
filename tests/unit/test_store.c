/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store.c - runs in and out, what people say of them, and the index over them; on both
 * databases.
 *
 * threads: yes
 */
#define STORE_RIG "test_store_c"
#include "results/index/derive.h"
#include "store_rig.h"

#include <sys/stat.h>
#include <unistd.h>

#include "results/store/trace_files.h"

static struct put_result put_one(struct store *s, const struct read_run *run)
{
	struct put_result out = { 0 };
	struct arena a = { 0 };

	must(store_put(s, run, 1, STR("tester"), &a, &out, e));
	arena_release(&a);
	return out;
}

static void check_clean(struct store *s)
{
	struct arena a = { 0 };
	struct str *finding;
	size_t n;

	must(store_check(s, &a, &finding, &n, e));
	if (n)
		fail_msg("%zu findings, the first: %.*s", n, (int)finding[0].n, finding[0].p);
	arena_release(&a);
}

static void runs_come_back(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct read_run r = make_run(&a, "first", 1);
	struct run_whole w;
	struct put_result got;
	struct buf arrays = { 0 };
	struct index_view *v;
	struct row row, whole;
	unsigned flags;

	r.arrays = STR("{\"ttfts\": [0.25, 0.5]}");
	got = put_one(s, &r);
	assert_int_equal(got.outcome, PUT_NEW);
	assert_true(got.id > 0);
	assert_int_equal(store_find(s, STR("first")), got.id);
	assert_int_equal(store_find(s, STR("second")), 0);
	must(store_run(s, got.id, &a, &w, e));
	assert_true(str_eq(w.document, r.document));
	assert_true(str_eq(w.run_id, r.run_id));
	assert_true(str_eq(w.hash, r.hash));
	assert_true(str_is(w.kind, "serve"));
	assert_true(str_is(w.who, "tester"));
	assert_int_equal(w.flags, 0);
	assert_true(w.received_s > 1.7e9);
	assert_int_equal(w.n_versions, 1);
	assert_true(w.has_arrays);
	must(store_run_arrays(s, got.id, &arrays, e));
	assert_true(str_eq(buf_str(&arrays), r.arrays));
	v = index_view(store_index(s));
	assert_true(index_row(v, got.id, &a, &row, &flags));
	whole = derive(&r.row, &a); /* the index holds what is computed, too */
	assert_int_equal(whole.n, r.row.n + 1);
	assert_int_equal(row.n, whole.n);
	for (size_t i = 0; i < whole.n; i++) {
		bool is_there = false;

		for (size_t k = 0; k < row.n; k++)
			is_there |= str_eq(row.cell[k].column, whole.cell[i].column) &&
				    value_same(row.cell[k].value, whole.cell[i].value);
		assert_true(is_there);
	}
	index_view_release(v);
	assert_int_equal(store_run(s, got.id + 1, &a, &w, NULL), -1);
	assert_int_equal(store_run_arrays(s, got.id + 1, &arrays, NULL), -1);
	check_clean(s);
	store_close(s);
	buf_release(&arrays);
	arena_release(&a);
}

static void test_runs_come_back(void **state)
{
	(void)state;
	with_stores(runs_come_back);
}

static void nothing_twice(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct read_run first = make_run(&a, "same", 1), second = make_run(&a, "same", 2);
	struct put_result one = put_one(s, &first), two, three;
	struct run_whole w;

	two = put_one(s, &first);
	assert_int_equal(two.outcome, PUT_DUPLICATE);
	assert_int_equal(two.id, one.id);
	assert_int_equal(shown(s, 0, false), 1);
	three = put_one(s, &second);
	assert_int_equal(three.outcome, PUT_CONFLICT);
	assert_true(three.reason.n > 0);
	assert_true(three.id > one.id);
	assert_int_equal(shown(s, 0, false), 1);
	assert_int_equal(shown(s, INDEX_SUPERSEDED, true), 1);
	assert_int_equal(store_find(s, STR("same")), three.id);
	must(store_run(s, three.id, &a, &w, e));
	assert_int_equal(w.n_versions, 2);
	assert_int_equal(w.version[0], three.id);
	assert_int_equal(w.version[1], one.id);
	must(store_run(s, one.id, &a, &w, e));
	assert_int_equal(w.flags, INDEX_SUPERSEDED);
	/* The older content again changes nothing. */
	two = put_one(s, &first);
	assert_int_equal(two.outcome, PUT_DUPLICATE);
	assert_int_equal(store_find(s, STR("same")), three.id);
	check_clean(s);
	store_close(s);
	arena_release(&a);
}

static void test_nothing_twice(void **state)
{
	(void)state;
	with_stores(nothing_twice);
}

/* Duplicates and conflicts within one call. */
static void one_batch(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct read_run run[] = { make_run(&a, "x", 1), make_run(&a, "y", 2), make_run(&a, "x", 1),
				  make_run(&a, "x", 3), make_run(&a, "", 4) };
	struct put_result out[COUNT(run)];

	must(store_put(s, run, COUNT(run), STR("tester"), &a, out, e));
	assert_int_equal(out[0].outcome, PUT_NEW);
	assert_int_equal(out[1].outcome, PUT_NEW);
	assert_int_equal(out[2].outcome, PUT_DUPLICATE);
	assert_int_equal(out[2].id, out[0].id);
	assert_int_equal(out[3].outcome, PUT_CONFLICT);
	assert_int_equal(out[4].outcome, PUT_INVALID);
	assert_true(out[4].reason.n > 0);
	assert_int_equal(shown(s, 0, false), 2);
	assert_int_equal(shown(s, INDEX_SUPERSEDED, false), 3);
	check_clean(s);
	store_close(s);
	arena_release(&a);
}

static void test_one_batch(void **state)
{
	(void)state;
	with_stores(one_batch);
}

/* What one run of many cannot be kept with takes the others with it. */
static void all_or_none(const char *url)
{
	struct arena a = { 0 };
	struct store *s = open_store(url, false);
	struct read_run run[] = { make_run(&a, "x", 1), make_run(&a, "y", 2) };
	struct put_result out[2];
	struct err why = { 0 };

	run[1].kind = (struct str){ "a\0b", 3 };
	assert_int_equal(store_put(s, run, 2, STR("tester"), &a, out, &why), -1);
	assert_int_equal(why.code, ERR_USAGE);
	assert_int_equal(shown(s, 0, false), 0);
	assert_int_equal(store_find(s, STR("x")), 0);
	run[1].kind = STR("serve");
	must(store_put(s, run, 2, STR("tester"), &a, out, e));
	assert_int_equal(shown(s, 0, false), 2);
	check_clean(s);
	store_close(s);
	arena_release(&a);
}

static void test_all_or_none(void **state)
{
	(void)state;
	with_stores(all_or_none);
}

/* ---- traces that a document names ---- */

static void put_trace(const char *name, const char *text)
{
	char path[160];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* The text with the scratch folder for each @. */
static const char *with_dir(struct arena *a, const char *text)
{
	struct str rest = str_of(text);
	struct buf out = { 0 };
	const char *kept;

	while (memchr(rest.p, '@', rest.n)) {
		buf_add_str(&out, str_cut(&rest, '@'));
		buf_add_text(&out, dir);
	}
	buf_add_str(&out, rest);
	kept = arena_text(a, buf_str(&out));
	buf_release(&out);
	return kept;
}

#define NAMED(path) "{\"profiling\": {\"traces\": [{\"path\": \"" path "\"}]}}"
#define SIZED(path, n) "{\"profiling\": {\"traces\": [{\"path\": \"" path "\", \"bytes\": " n "}]}}"

/* In paths @ stands for the scratch folder. The document is @/a/doc.json. */
static void test_traces_are_found(void **state)
{
	static const struct { const char *document, *folder, *found, *note; } rows[] = {
		{ NAMED("own"), NULL, "@/a/own", "" }, { SIZED("own", "5"), NULL, "@/a/own", "" },
		{ SIZED("own", "6"), NULL, NULL, "own does not have the size that the document says" },
		{ NAMED("member"), NULL, "@/a/doc.d/member", "" }, { NAMED("none"), NULL, NULL, "none is missing" },
		{ NAMED("there"), NULL, NULL, "there is missing" }, { NAMED("there"), "@/b", "@/b/there", "" },
		{ NAMED("there"), "@/b/", "@/b/there", "" }, { NAMED("@/b/there"), "@/b", "@/b/there", "" },
		{ NAMED("@/b/there"), "/", "@/b/there", "" }, { NAMED("@/b/there"), "@", "@/b/there", "" },
		{ NAMED("@/b/there"), NULL, NULL, "@/b/there is not below the document's folder" },
		{ NAMED("@/ab/near"), NULL, NULL, "@/ab/near is not below" },
		{ NAMED("../b/there"), NULL, NULL, "../b/there is not below" },
		{ NAMED("link"), NULL, NULL, "link is not below" }, { NAMED("link"), "@/b", "@/b/there", "" },
		{ NAMED("doc.d"), NULL, NULL, "doc.d is not a file" }, { NAMED(""), NULL, NULL, " is missing" },
		{ NAMED("own\\u0000x"), NULL, NULL, " is missing" },
		{ "{\"profiling\": {\"trace_file_path\": \"own\"}}", NULL, "@/a/own", "" },
		{ "{\"profiling\": {\"traces\": [7, {\"path\": 7}, {\"path\": \"own\"}, {\"path\": \"./own\"}]}}",
		  NULL, "@/a/own", "" },
		{ "{\"profiling\": {\"traces\": [{\"path\": \"x\"}, {\"path\": \"own\"}, {\"path\": \"y\"}]}}",
		  NULL, "@/a/own", "2 of its 3 traces were left out: x is missing" },
		{ "{\"profiling\": 7}", NULL, NULL, "" }, { "[", NULL, NULL, "" },
	};
	char place[160], from[160];

	(void)state;
	for (const char *const *p = (const char *const[]){ "a", "a/doc.d", "b", "ab", NULL }; *p; p++) {
		snprintf(place, sizeof(place), "%s/%s", dir, *p);
		assert_int_equal(mkdir(place, 0700), 0);
	}
	put_trace("a/own", "12345");
	put_trace("a/doc.d/member", "m");
	put_trace("b/there", "t");
	put_trace("ab/near", "n");
	snprintf(from, sizeof(from), "%s/a/link", dir);
	assert_int_equal(symlink("../b/there", from), 0);
	snprintf(place, sizeof(place), "%s/a/doc.json", dir);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct trace_files got;
		const char *folder = rows[i].folder ? with_dir(&a, rows[i].folder) : NULL;

		trace_files_find(str_of(with_dir(&a, rows[i].document)), place, folder, &a, &got);
		if (got.n != (rows[i].found != NULL) ||
		    (got.n && strcmp(got.file->path, with_dir(&a, rows[i].found)) != 0) ||
		    !strstr(arena_text(&a, got.note), with_dir(&a, rows[i].note)) ||
		    (!*rows[i].note && got.note.n))
			fail_msg("row %zu: %zu, %s, %s", i, got.n, got.n ? got.file->path : "",
				 arena_text(&a, got.note));
		arena_release(&a);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_come_back),
		cmocka_unit_test(test_nothing_twice),
		cmocka_unit_test(test_one_batch),
		cmocka_unit_test(test_all_or_none),
		cmocka_unit_test(test_traces_are_found),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
