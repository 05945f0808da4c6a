/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_columns.c - the database as seen by a user's own SQL: every column that the schemas
 * know from the start, also in a store of an older program, and indexes. On both databases.
 *
 * threads: yes
 */
#define STORE_RIG "test_store_columns_c"
#include "store_rig.h"

#include "results/index/derive.h"
#include "results/store/known.h"
#include "results/store/store_internal.h"

static struct db *connect_to(const char *url)
{
	const char *place;
	struct err e = { 0 };
	const struct db_hooks *hooks = db_hooks_of(url, &place, &e);
	struct db *d = NULL;

	if (!hooks || hooks->open(place, false, &d, &e) < 0)
		fail_msg("%s: %s", url, e.text);
	return d;
}

static int64_t ask(struct db *d, const char *sql)
{
	int64_t n = -1;

	must(db_integer(d, sql, NULL, 0, -1, &n, e));
	return n;
}

static int take_text(void *self, const struct db_got *got)
{
	struct buf *out = self;

	for (size_t i = 0; i < got->n; i++)
		if (got->v[i].kind == DB_TEXT)
			buf_add_str(out, got->v[i].bytes);
	return 0;
}

static bool plan_names(struct db *d, const char *sql, const char *word)
{
	struct buf text = { 0 };
	bool is_there;

	must(db_run(d, sql, NULL, 0, take_text, &text, e));
	is_there = text.len && memmem(text.data, text.len, word, strlen(word));
	buf_release(&text);
	return is_there;
}

/* ---- in SQL ---- */

static void check_all_there(struct db *d)
{
	for (size_t i = 0; i < known_column_count; i++) {
		char sql[300];

		/* SQLite takes such a name for a text, but not after a table's. */
		snprintf(sql, sizeof(sql), "SELECT count(benchmark_runs.\"%s\") FROM benchmark_runs",
			 known_columns[i].name);
		ask(d, sql);
	}
}

static void columns_are_there_from_the_start(const char *url)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct read_run r = make_run(&a, "first", 3);
	struct put_result out;
	struct db *d = connect_to(url);

	check_all_there(d);
	assert_int_equal(ask(d, "SELECT count(*) FROM benchmark_runs WHERE"
				" benchmark_runs.\"server.quantization\" IS NOT NULL"), 0);
	must(store_put(s, &r, 1, STR("tester"), &a, &out, e));
	assert_int_equal(ask(d, "SELECT count(*) FROM benchmark_runs WHERE \"server.model\" = 'llama'"
				" AND \"benchmark.num_prompts\" = 3 AND rest IS NULL"), 1);
	if (d->hooks == &db_sqlite)
		assert_true(plan_names(d, "EXPLAIN QUERY PLAN SELECT id FROM benchmark_runs WHERE"
				       " \"server.model\" = 'llama'", "benchmark_runs_server_model"));
	else
		assert_int_equal(ask(d, "SELECT count(*) FROM pg_indexes WHERE indexname ="
					" 'benchmark_runs_server_model'"), 1);
	d->hooks->close(d);
	store_close(s);
	arena_release(&a);
}

/* A text that no index takes does not keep a run out. */
static void a_long_text_goes_beside(const char *url)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct read_run r = make_run(&a, "long", 1);
	struct put_result out;
	struct str *finding;
	size_t n;
	char *model = arena_alloc(&a, 4097);
	struct db *d = connect_to(url);

	for (size_t i = 0; i < 4096; i++)
		model[i] = (char)('a' + i * i * 7919 % 23);
	r.row.cell[2] = text_cell("server.model", model);
	must(store_put(s, &r, 1, STR("tester"), &a, &out, e));
	assert_int_equal(out.outcome, PUT_NEW);
	assert_int_equal(ask(d, "SELECT count(*) FROM benchmark_runs WHERE rest LIKE '%server.model%'"), 1);
	must(store_check(s, &a, &finding, &n, e));
	assert_int_equal(n, 0);
	d->hooks->close(d);
	store_close(s);
	arena_release(&a);
}

/* As a program that knew no schemas left it: columns as they came, and no indexes. */
static void make_older(const char *url, const struct read_run *runs, size_t n)
{
	struct store *s = open_store(url, false);
	struct arena a = { 0 };
	struct put_result out[8];
	struct columns columns = { 0 };
	struct db *d;

	must(store_put(s, runs, n, STR("tester"), &a, out, e));
	store_close(s);
	d = connect_to(url);
	must(db_begin(d, DB_WRITE, e));
	must(db_run(d, "DELETE FROM numbers WHERE name = 'known_columns'", NULL, 0, NULL, NULL, e));
	must(db_run(d, "DELETE FROM columns", NULL, 0, NULL, NULL, e));
	must(db_run(d, "DROP TABLE benchmark_runs", NULL, 0, NULL, NULL, e));
	must(db_run(d, d->hooks == &db_sqlite ? "CREATE TABLE benchmark_runs (id INTEGER PRIMARY KEY"
		    " REFERENCES documents (id) ON DELETE CASCADE, rest TEXT)" :
		    "CREATE TABLE benchmark_runs (id BIGINT PRIMARY KEY REFERENCES documents (id)"
		    " ON DELETE CASCADE, rest TEXT)", NULL, 0, NULL, NULL, e));
	for (size_t i = 0; i < n; i++) {
		int64_t number[16];
		struct columns_left left = { 0 };
		struct columns_room room = columns_room(&columns, 0);
		struct buf cells = { 0 };
		struct db_value v[2];

		must(columns_number(&columns, d, &runs[i].row, &room, number, &left, e));
		pack_row(&runs[i].row, number, &cells);
		v[0] = db_blob(buf_str(&cells));
		v[1] = db_int(out[i].id);
		must(db_run(d, "UPDATE documents SET cells = $1 WHERE id = $2", v, 2, NULL, NULL, e));
		must(store_wide_put(&columns, d, out[i].id, &runs[i].row, number, e));
		buf_release(&cells);
	}
	must(db_end(d, 0, e));
	columns_release(&columns);
	d->hooks->close(d);
	arena_release(&a);
}

static void an_older_store_gets_them(const char *url)
{
	struct arena a = { 0 };
	struct read_run *runs = make_runs(&a, "old", 0, 5);
	struct read_run more = make_run(&a, "new", 9);
	struct put_result out;
	struct store *s;
	struct str *finding;
	size_t n;
	int64_t columns;
	struct db *d;

	make_older(url, runs, 5);
	d = connect_to(url);
	assert_int_equal(ask(d, "SELECT count(*) FROM columns"), 6);
	d->hooks->close(d);
	s = open_store(url, false);
	d = connect_to(url);
	check_all_there(d);
	assert_int_equal(ask(d, "SELECT count(*) FROM benchmark_runs WHERE \"server.model\" = 'qwen'"), 3);
	columns = ask(d, "SELECT count(*) FROM columns");
	must(store_put(s, &more, 1, STR("tester"), &a, &out, e));
	must(store_check(s, &a, &finding, &n, e));
	if (n)
		fail_msg("%.*s", (int)finding[0].n, finding[0].p);
	assert_int_equal(shown(s, 0, false), 6);
	store_close(s);
	s = open_store(url, false);
	assert_int_equal(ask(d, "SELECT count(*) FROM columns"), columns);
	store_close(s);
	d->hooks->close(d);
	arena_release(&a);
}

/* Who has the store open while a newer program opens it goes on rightly. */
static void others_notice(const char *url)
{
	struct arena a = { 0 };
	struct read_run *runs = make_runs(&a, "old", 0, 2);
	struct read_run more = make_run(&a, "more", 7);
	struct put_result out;
	struct store *s, *other;
	struct str *finding;
	struct db *d;
	size_t n;

	make_older(url, runs, 2);
	d = connect_to(url);
	must(db_run(d, "INSERT INTO numbers (name, last) VALUES ('known_columns', 1)", NULL, 0, NULL, NULL,
		    e));
	other = open_store(url, true); /* reads the list as it is */
	s = open_store(url, false);    /* adds to it */
	more.row.cell[5] = number_cell("tags.unheard_of", 1);
	must(store_put(s, &more, 1, STR("tester"), &a, &out, e));
	must(store_refresh(other, e));
	assert_int_equal(shown(other, 0, false), 3);
	must(store_check(other, &a, &finding, &n, e));
	assert_int_equal(n, 0);
	store_close(s);
	store_close(other);
	d->hooks->close(d);
	arena_release(&a);
}

/* ---- questions ---- */

static const struct { const char *name; bool is_known; } names[] = {
	{ "run_id", true }, { "server.quantization", true }, { "server.max_num_seqs", true },
	{ "decode.max_num_seqs", true }, { "benchmark.request_rate", true },
	{ "p99_ttft_ms", true }, { "p12.5_itl_ms", true }, { "steady_state.p37_ttft_ms", true },
	{ "failures.timeout", true }, { "hardware.gpu", true }, { "provenance.engine_commit", true },
	{ "environment.server.version", true }, { "system.gpu.power_w.mean", true },
	{ "sessions.completed", true }, { "sessions.ttft_first_turn_ms.p99", true },
	{ "correctness.correct", true }, { "priority.0.completed", true },
	{ "priority.-12.e2el_ms.p99", true }, { "priority.1.ttft_cost", true },
	{ "prefix_cache.on.cached_share", true }, { "benchmark.num_clients", true },
	{ "priority.x.completed", false }, { "priority.1.complete", false }, { "priority.1", false },
	{ "server.modle", false }, { "decode.modle", false }, { "p99_", false }, { "p_ttft_ms", false },
	{ "tags.a", false }, { "", false }, { "server.", false }, { "ttft_ms", false },
};

static void names_are_known(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(names); i++)
		if ((known_column(str_of(names[i].name)) != NULL) != names[i].is_known)
			fail_msg("%s: %d", names[i].name, !names[i].is_known);
	for (size_t i = 1; i < known_column_count; i++)
		assert_true(strcmp(known_columns[i - 1].name, known_columns[i].name) < 0);
	/* They have to fit into a table together with unknown columns. */
	assert_true(known_column_count + 300 < COLUMNS_WIDE_MAX);
}

/* Each listed name once: the rows, ROLE.NAME of those of a server, computed columns. */
static void listed_names_are_counted(void **state)
{
	static const char *const roles[] = { "prefill.", "decode.", "cache.", "proxy." };
	size_t n = derived_column_count;

	(void)state;
	for (size_t i = 0; i < known_column_count; i++) {
		const char *name = known_columns[i].name, *rest = strchr(name, '.');
		char other[200];

		assert_true(known_is_listed(str_of(name)));
		n++;
		for (size_t k = 0; k < COUNT(roles) && strncmp(name, "server.", 7) == 0; k++) {
			snprintf(other, sizeof(other), "%s%s", roles[k], rest + 1);
			n += known_is_listed(str_of(other));
		}
	}
	assert_int_equal(known_listed_count(), n);
	assert_false(known_is_listed(STR("server.modle")) || known_is_listed(STR("decode.completed")) ||
		     known_is_listed(STR("p12.5_itl_ms")) || known_is_listed(STR("priority.7.completed")));
}

#define ON_BOTH(test) static void test##_everywhere(void **state) \
	{ \
		(void)state; \
		with_stores(test); \
	}
ON_BOTH(columns_are_there_from_the_start)
ON_BOTH(a_long_text_goes_beside)
ON_BOTH(an_older_store_gets_them)
ON_BOTH(others_notice)

/* ---- texts that are kept packed ---- */

static void damaged_texts(void **state)
{
	static const struct { const char *bytes; size_t n; const char *why; } rows[] = {
		{ "", 0, "what the store kept is cut off or damaged" },
		{ "\5\0\0\0\0\0\0", 7, "what the store kept is cut off or damaged" },
		{ "\5\0\0\0\0\0\0\1", 8, "what the store kept is cut off or damaged" },
		{ "\5\0\0\0\0\0\0\0", 8, "what the store kept is damaged: " },
		{ "\5\0\0\0\0\0\0\0hello", 13, "what the store kept is damaged: " },
	};
	struct buf packed = { 0 }, text = { 0 };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct str bytes = { rows[i].bytes, rows[i].n };

		assert_int_equal(unpack_text(bytes, &text, &e), -1);
		if (strncmp(e.text, rows[i].why, strlen(rows[i].why)) != 0)
			fail_msg("%zu bytes: %s", rows[i].n, e.text);
		assert_int_equal(text.len, 0);
	}
	pack_text(STR(""), &packed);
	assert_int_equal(unpack_text(buf_str(&packed), &text, &e), 0);
	assert_int_equal(text.len, 0);
	buf_release(&packed);
	pack_text(STR("hello"), &packed);
	assert_int_equal(unpack_text(buf_str(&packed), &text, &e), 0);
	assert_true(str_is(buf_str(&text), "hello"));
	/* Another length than it has. */
	packed.data[0] = 4;
	assert_int_equal(unpack_text(buf_str(&packed), &text, &e), -1);
	packed.data[0] = 5;
	assert_int_equal(unpack_text((struct str){ packed.data, packed.len - 1 }, &text, &e), -1);
	buf_release(&packed);
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_known),
		cmocka_unit_test(listed_names_are_counted), cmocka_unit_test(damaged_texts),
		cmocka_unit_test(columns_are_there_from_the_start_everywhere),
		cmocka_unit_test(a_long_text_goes_beside_everywhere),
		cmocka_unit_test(an_older_store_gets_them_everywhere),
		cmocka_unit_test(others_notice_everywhere),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("store_columns", tests, make_dir, remove_dir);
}
