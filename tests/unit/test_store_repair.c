/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_repair.c - columns that are used up come back: what a run and an upload may add, what
 * is given back and to whom, and that no value of an old name is ever seen under a new one. On both
 * databases.
 *
 * threads: yes
 */
#define STORE_RIG "test_store_repair_c"
#include "store_rig.h"

#include "results/store/known.h"
#include "results/store/store_internal.h"

/*
 * A document with tags NAME-first, NAME-first+1 ..., whose values are content, content + 1 ...;
 * below 0: null, for which SQL needs no columns.
 */
static struct read_run tagged(struct arena *a, const char *run_id, const char *name, int first,
			      int n, int content)
{
	struct buf text = { 0 };
	struct read_file file;

	buf_printf(&text, "{\"schema_version\": 1, \"run_id\": \"%s\", \"config\": {\"name\": \"c\", "
		   "\"server\": {\"model\": \"m\"}, \"tags\": {", run_id);
	for (int i = 0; i < n; i++)
		buf_printf(&text, content < 0 ? "%s\"%s-%d\": null" : "%s\"%s-%d\": %d", i ? ", " : "",
			   name, first + i, content + i);
	buf_printf(&text, "}}, \"results\": {\"request_throughput\": %d}, \"environment\": {}, "
		   "\"status\": \"completed\"}", content);
	must(read_document(STR(""), arena_str(a, buf_str(&text)), a, &file, e));
	assert_int_equal(file.n, 1);
	buf_release(&text);
	return file.run[0];
}

static struct put_result put(struct store *s, struct arena *a, const struct read_run *run)
{
	struct put_result out;

	must(store_put(s, run, 1, STR("tester"), a, &out, e));
	return out;
}

static bool says(struct put_result r, const char *text)
{
	return r.reason.n && memmem(r.reason.p, r.reason.n, text, strlen(text));
}

static size_t used(struct store *s)
{
	struct store_columns c;

	store_columns(s, &c);
	return c.used;
}

static void is_clean(struct store *s)
{
	struct arena a = { 0 };
	struct str *finding;
	size_t n;

	must(store_check(s, &a, &finding, &n, e));
	if (n)
		fail_msg("%.*s", (int)finding[0].n, finding[0].p);
	arena_release(&a);
}

static size_t remove_run(struct store *s, const char *run_id)
{
	struct value id = { .kind = VALUE_TEXT, .text = str_of(run_id) };
	struct filter f = { .kind = FILTER_IN, .column = STR("run_id"), .value = &id, .n_values = 1 };
	size_t n;

	must(store_remove(s, &f, &n, e));
	return n;
}

/* The run's value as the index has it; -1: it has none. */
static double value_of(struct store *s, int64_t id, const char *column)
{
	struct index_view *v = store_view(s);
	struct arena a = { 0 };
	struct row row = { 0 };
	unsigned flags;
	double found = -1;

	assert_true(index_row(v, id, &a, &row, &flags));
	for (size_t i = 0; i < row.n; i++)
		if (str_is(row.cell[i].column, column))
			found = row.cell[i].value.number;
	arena_release(&a);
	index_view_release(v);
	return found;
}

static int64_t ask(const char *url, const char *sql)
{
	struct store_opts o = { .url = url, .is_read_only = true, .has_no_index = true };
	struct store *s;
	int64_t n = -1;

	must(store_open(&o, &s, e));
	must(db_integer(s->writer, sql, NULL, 0, -1, &n, e));
	store_close(s);
	return n;
}

static int64_t sql_columns(const char *url)
{
	return ask(url, str_starts(str_of(url), STR("sqlite")) ?
		   "SELECT count(*) FROM pragma_table_info('benchmark_runs')" :
		   "SELECT count(*) FROM pg_attribute WHERE attrelid = 'benchmark_runs'::regclass"
		   " AND attnum > 0");
}

/* ---- what a run and an upload may add ---- */

static void a_run_adds_some(const char *url)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct read_run junk = tagged(&a, "junk", "k", 0, 3000, 1), small;
	struct read_run many[5];
	struct put_result out[5], r = put(s, &a, &junk);

	assert_int_equal(r.outcome, PUT_NEW);
	assert_true(says(r, "2700 of its values are only in its document"));
	assert_true(says(r, "\"tags.k-300\", \"tags.k-301\", \"tags.k-302\" and 2697 more"));
	assert_int_equal(used(s), COLUMNS_NEW_RUN_MAX);
	assert_int_equal(value_of(s, r.id, "tags.k-299"), 300);
	assert_int_equal(value_of(s, r.id, "tags.k-300"), -1);
	small = tagged(&a, "small", "honest", 0, 1, 7);
	r = put(s, &a, &small);
	assert_int_equal(r.reason.n, 0);
	assert_int_equal(value_of(s, r.id, "tags.honest-0"), 7);
	for (int i = 0; i < 5; i++)
		many[i] = tagged(&a, arena_printf(&a, "many%d", i), "m", i * 200, 200, i);
	must(store_put(s, many, 5, STR("tester"), &a, out, e));
	assert_int_equal(used(s), COLUMNS_NEW_RUN_MAX + 1 + COLUMNS_NEW_UPLOAD_MAX);
	assert_int_equal(out[2].reason.n, 0);
	assert_true(says(out[3], "200 of its values"));
	is_clean(s);
	store_close(s);
	arena_release(&a);
}

/* Thirty uploads of junk, each by itself, leave room for another user's one name. */
static void junk_leaves_room(const char *url)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct value suite = { .kind = VALUE_TEXT, .text = STR("honest") };
	struct filter honest = { .kind = FILTER_IN, .column = STR("run_id"), .value = &suite,
				 .n_values = 1 }, *part = &honest;
	struct filter junk = { .kind = FILTER_NOT, .part = &part, .n_parts = 1 };
	struct read_run run;
	struct put_result r;
	struct store_columns c;
	size_t n;

	for (int i = 0; i < 30; i++) {
		struct arena scratch = { 0 };

		run = tagged(&scratch, arena_printf(&scratch, "junk%d", i), "k", i * 3000, 3000, i);
		r = put(s, &scratch, &run);
		assert_true(says(r, "only in its document"));
		arena_release(&scratch);
	}
	store_columns(s, &c);
	assert_true(c.used < c.max);
	run = tagged(&a, "honest", "parameter", 0, 1, 7);
	r = put(s, &a, &run);
	assert_int_equal(r.reason.n, 0);
	assert_int_equal(value_of(s, r.id, "tags.parameter-0"), 7);
	assert_int_equal(ask(url, "SELECT count(*) FROM benchmark_runs"
			     " WHERE benchmark_runs.\"tags.parameter-0\" = 7"), 1);
	/* All that the schemas list still fits in addition. */
	assert_true(c.max + known_listed_count() <= INDEX_COLUMNS_MAX);
	is_clean(s);
	/* And goes: the table of SQL is full then, so new names take over from old ones. */
	must(store_remove(s, &junk, &n, e));
	assert_int_equal(n, 30);
	assert_int_equal(used(s), 1);
	run = tagged(&a, "heir", "heir", 0, 40, 100);
	r = put(s, &a, &run);
	assert_int_equal(sql_columns(url), COLUMNS_WIDE_MAX + 2);
	assert_int_equal(ask(url, "SELECT count(*) FROM benchmark_runs"
			     " WHERE benchmark_runs.\"tags.heir-39\" = 139"), 1);
	assert_int_equal(value_of(s, r.id, "tags.heir-39"), 139);
	is_clean(s);
	store_close(s);
	arena_release(&a);
}

/* ---- given back ---- */

static void names_come_back(const char *url)
{
	struct store *s = open_store(url, false), *other = open_store(url, true);
	struct arena a = { 0 };
	struct read_run old = tagged(&a, "old", "a", 0, 40, 1000), kept = tagged(&a, "kept", "a", 0, 10, 50),
			next = tagged(&a, "next", "b", 0, 40, 7);
	struct put_result r[3] = { put(s, &a, &old), put(s, &a, &kept), { 0 } };
	const char *backup = in_dir(&a, "back.db"), *copy = arena_printf(&a, "sqlite:%s/copy.db", dir);
	int64_t wide = sql_columns(url);

	assert_int_equal(used(s), 40);
	assert_int_equal(remove_run(s, "old"), 1);
	assert_int_equal(used(s), 10);
	must(store_refresh(other, e));
	assert_int_equal(used(other), 10);
	r[2] = put(s, &a, &next);
	assert_int_equal(used(s), 50);
	must(store_refresh(other, e));
	/* The table is not full: nothing was renamed. */
	assert_int_equal(sql_columns(url), wide + 40);
	for (int i = 0; i < 40; i++) {
		char name[32];

		snprintf(name, sizeof(name), "tags.a-%d", i);
		assert_int_equal(value_of(other, r[1].id, name), i < 10 ? 50 + i : -1);
		assert_int_equal(value_of(other, r[2].id, name), -1);
		snprintf(name, sizeof(name), "tags.b-%d", i);
		assert_int_equal(value_of(other, r[2].id, name), 7 + i);
		assert_int_equal(value_of(other, r[1].id, name), -1);
	}
	assert_int_equal(ask(url, "SELECT count(*) FROM benchmark_runs"
			     " WHERE benchmark_runs.\"tags.b-39\" IS NOT NULL"), 1);
	is_clean(s);
	is_clean(other);
	store_close(other);
	store_close(s);
	/* From the snapshot, and by way of a backup. */
	s = open_store(url, false);
	assert_int_equal(value_of(s, r[2].id, "tags.b-39"), 46);
	assert_int_equal(value_of(s, r[1].id, "tags.b-39"), -1);
	must(store_backup(s, backup, e));
	store_close(s);
	must(store_restore(copy, backup, true, NULL, e));
	s = open_store(copy, false);
	assert_int_equal(value_of(s, r[2].id, "tags.b-0"), 7);
	assert_int_equal(value_of(s, r[1].id, "tags.a-9"), 59);
	assert_int_equal(used(s), 50);
	is_clean(s);
	store_close(s);
	arena_release(&a);
}

/* A name that comes back has its SQL name again, also when its values are of another kind. */
static void a_name_comes_again(const char *url)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct read_run run = make_run(&a, "first", 1);

	run.row.cell[5] = number_cell("tags.x", 3);
	put(s, &a, &run);
	assert_int_equal(remove_run(s, "first"), 1);
	assert_int_equal(used(s), 0);
	run = make_run(&a, "second", 2);
	run.row.cell[5] = text_cell("tags.x", "three");
	put(s, &a, &run);
	assert_int_equal(ask(url, "SELECT count(*) FROM benchmark_runs"
			     " WHERE benchmark_runs.\"tags.x\" = 'three'"), 1);
	run = make_run(&a, "third", 3);
	run.row.cell[5] = number_cell("TAGS.X", 3);
	put(s, &a, &run);
	is_clean(s);
	store_close(s);
	arena_release(&a);
}

/* More names come and go than an index holds, before it has been cleaned. */
static void an_index_makes_room(const char *url)
{
	struct store *s = open_store(url, false), *other = open_store(url, true);
	struct arena a = { 0 };
	struct filter all = { .kind = FILTER_AND };
	struct put_result r = { 0 };
	struct read_run run;
	size_t n;

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < 25; i++) {
			struct arena scratch = { 0 };

			run = tagged(&scratch, arena_printf(&scratch, "r%d-%d", round, i), "k",
				     (round * 25 + i) * 300, 300, -1);
			r = put(s, &scratch, &run);
			arena_release(&scratch);
		}
		assert_true(used(s) > INDEX_COLUMNS_MAX / 2);
		if (round == 1)
			break;
		must(store_remove(s, &all, &n, e));
		assert_int_equal(n, 25);
		assert_int_equal(used(s), 0);
	}
	must(store_refresh(other, e));
	assert_int_equal(shown(s, 0, false), 25);
	assert_int_equal(shown(other, 0, false), 25);
	assert_int_equal(value_of(other, r.id, "tags.k-14700"), 0);
	assert_int_equal(value_of(other, r.id, "tags.k-0"), -1);
	must(store_maintain(s, e));
	assert_int_equal(value_of(s, r.id, "tags.k-14700"), 0);
	is_clean(s);
	store_close(other);
	store_close(s);
	arena_release(&a);
}

/* ---- brought in later ---- */

static void left_values_come_in(const char *url)
{
	struct store *s = open_store(url, false), *other = open_store(url, true);
	struct arena a = { 0 };
	struct read_run run = tagged(&a, "long", "k", 0, 500, 1);
	struct put_result r = put(s, &a, &run);
	struct repaired done;

	assert_int_equal(value_of(s, r.id, "tags.k-400"), -1);
	assert_int_equal(ask(url, "SELECT left_out FROM documents"), 200);
	must(store_repair(s, &done, e));
	assert_int_equal(done.n_values, 200);
	assert_int_equal(done.n_left, 0);
	assert_int_equal(used(s), 500);
	assert_int_equal(value_of(s, r.id, "tags.k-400"), 401);
	must(store_refresh(other, e));
	assert_int_equal(value_of(other, r.id, "tags.k-400"), 401);
	assert_int_equal(value_of(other, r.id, "tags.k-0"), 1);
	assert_int_equal(shown(other, 0, false), 1);
	is_clean(s);
	/* Also the SQL column that a run alone does not get at once. */
	assert_int_equal(ask(url, "SELECT count(*) FROM benchmark_runs"
			     " WHERE benchmark_runs.\"tags.k-300\" = 301"), 1);
	must(store_repair(s, &done, e));
	assert_int_equal(done.n_columns + done.n_values + done.is_table_new, 0);
	store_close(other);
	store_close(s);
	s = open_store(url, false);
	assert_int_equal(value_of(s, r.id, "tags.k-400"), 401);
	store_close(s);
	arena_release(&a);
}

/* The table is made anew for values that are only in the rest, or to be rid of columns. */
static void a_table_is_made_anew(const char *url)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct read_run wide = tagged(&a, "wide", "k", 0, 250, 1), old = tagged(&a, "old", "j", 0, 20, 1);
	struct repaired done;
	int64_t columns;

	put(s, &a, &wide);
	columns = sql_columns(url);
	must(store_repair(s, &done, e));
	assert_true(done.is_table_new);
	assert_true(sql_columns(url) > columns);
	columns = sql_columns(url);
	must(store_repair(s, &done, e));
	assert_false(done.is_table_new);
	put(s, &a, &old);
	columns = sql_columns(url);
	assert_int_equal(remove_run(s, "old"), 1);
	assert_int_equal(sql_columns(url), columns);
	must(store_repair(s, &done, e));
	assert_true(done.is_table_new);
	assert_true(sql_columns(url) < columns);
	must(store_repair(s, &done, e));
	assert_false(done.is_table_new);
	is_clean(s);
	store_close(s);
	arena_release(&a);
}

/* As a program left it that gave nothing back and counted nothing. */
static void an_older_store_is_repaired(const char *url)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct read_run run = tagged(&a, "long", "k", 0, 400, 1), junk = tagged(&a, "junk", "j", 0, 300, 1);
	struct repaired done;

	put(s, &a, &run);
	put(s, &a, &junk);
	must(db_run(s->writer, "UPDATE documents SET left_out = -1", NULL, 0, NULL, NULL, e));
	must(db_run(s->writer, "DELETE FROM documents WHERE run_id = 'junk'", NULL, 0, NULL, NULL, e));
	must(db_run(s->writer, "DELETE FROM originals WHERE id NOT IN (SELECT id FROM documents)", NULL, 0,
		    NULL, NULL, e));
	must(db_run(s->writer, "DELETE FROM benchmark_runs WHERE id NOT IN (SELECT id FROM documents)", NULL,
		    0, NULL, NULL, e));
	must(db_run(s->writer, "UPDATE numbers SET last = last + 1 WHERE name = 'change'", NULL, 0, NULL,
		    NULL, e));
	store_close(s);
	s = open_store(url, false);
	assert_int_equal(used(s), 600);
	must(store_repair(s, &done, e));
	assert_int_equal(done.n_columns, 300);
	assert_int_equal(done.n_values, 100);
	assert_true(done.is_table_new);
	assert_int_equal(used(s), 400);
	is_clean(s);
	store_close(s);
	arena_release(&a);
}

/* ---- names that are hostile to SQL ---- */

static void hostile_names(const char *url)
{
	static const char *const names[] = {
		"x\"); DROP TABLE documents; --", "$1", "rowid", "\"\"", "ID", "id", "Id", "rest", "oid",
		"ctid", "xmin", "tableoid", "_rowid_", "tags.é", "tags.É", "tags.straße", "tags.STRASSE",
		"tags.İ", "tags.i", "~1~2", "a'b", "a;b", "\\", "%s%n", "select", "NULL", "?", ":a", "@a",
		"tags.\x1b[2J", "tags.\n", " ", ".", "e\xcc\x81", "\xe2\x80\xae" "abc",
	};
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	char *alike[2], *huge = arena_alloc(&a, 1001);
	struct put_result r;
	struct read_run run;
	size_t n = 0;

	for (size_t i = 0; i < 2; i++) {
		alike[i] = arena_printf(&a, "%063d-%zu", 7, i);
		memset(huge, 'h', 1000);
	}
	for (size_t round = 0; round < 2; round++) {
		run = make_run(&a, round ? "again" : "hostile", (int)round);
		run.row.cell = arena_alloc(&a, (COUNT(names) + 3) * sizeof(*run.row.cell));
		n = 0;
		for (size_t i = 0; i < COUNT(names); i++, n++)
			run.row.cell[n] = number_cell(names[i], 100.0 * (double)round + (double)i);
		for (size_t i = 0; i < 2; i++, n++)
			run.row.cell[n] = text_cell(alike[i], alike[i] + 60);
		run.row.cell[n++] = number_cell(huge, 1);
		run.row.n = n;
		r = put(s, &a, &run);
		assert_int_equal(r.outcome, PUT_NEW);
		assert_true(says(r, "1 of its values are only in its document, because their names are"));
		for (size_t i = 0; i < COUNT(names); i++)
			if (value_of(s, r.id, names[i]) != 100.0 * (double)round + (double)i)
				fail_msg("%s: %g", names[i], value_of(s, r.id, names[i]));
		is_clean(s);
		if (!round)
			assert_int_equal(remove_run(s, "x"), 0);
	}
	/* They go, and others take their SQL columns; then they come again. */
	{
		struct filter all = { .kind = FILTER_AND };
		struct read_run next = tagged(&a, "next", "k", 0, 60, 1);

		must(store_remove(s, &all, &n, e));
		assert_int_equal(used(s), 0);
		put(s, &a, &next);
		is_clean(s);
		run.hash = STR("0000");
		r = put(s, &a, &run);
		assert_int_equal(r.outcome, PUT_NEW);
		is_clean(s);
		assert_int_equal(value_of(s, r.id, "ctid"), 109);
	}
	store_close(s);
	arena_release(&a);
}

#define ON_BOTH(test) static void test##_everywhere(void **state) \
	{ \
		(void)state; \
		with_stores(test); \
	}
ON_BOTH(a_run_adds_some)
ON_BOTH(junk_leaves_room)
ON_BOTH(names_come_back)
ON_BOTH(a_name_comes_again)
ON_BOTH(an_index_makes_room)
ON_BOTH(left_values_come_in)
ON_BOTH(a_table_is_made_anew)
ON_BOTH(an_older_store_is_repaired)
ON_BOTH(hostile_names)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_run_adds_some_everywhere),
		cmocka_unit_test(junk_leaves_room_everywhere),
		cmocka_unit_test(names_come_back_everywhere),
		cmocka_unit_test(a_name_comes_again_everywhere),
		cmocka_unit_test(an_index_makes_room_everywhere),
		cmocka_unit_test(left_values_come_in_everywhere),
		cmocka_unit_test(a_table_is_made_anew_everywhere),
		cmocka_unit_test(an_older_store_is_repaired_everywhere),
		cmocka_unit_test(hostile_names_everywhere),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("store_repair", tests, make_dir, remove_dir);
}
