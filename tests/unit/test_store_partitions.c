/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_partitions.c - a PostgreSQL store over months: its partitions, those of a store that
 * an earlier program made, and how they are dropped; changes of a transaction that stays open; a
 * database that takes no writes. Without PostgreSQL, what SQLite says of partitions.
 *
 * threads: yes
 */
#include <postgresql/libpq-fe.h>
#include <pthread.h>
#include <stdatomic.h>

#include "core/base/limits.h"
#define STORE_RIG "test_store_partitions_c"
#include "store_rig.h"

static void say(const char *url, const char *sql)
{
	PGconn *c = PQconnectdb(url);
	PGresult *r = PQexec(c, sql);

	if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(c));
	PQclear(r);
	PQfinish(c);
}

static long ask(const char *url, const char *sql)
{
	PGconn *c = PQconnectdb(url);
	PGresult *r = PQexec(c, sql);
	long n;

	if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1)
		fail_msg("%s: %s", sql, PQerrorMessage(c));
	n = strtol(PQgetvalue(r, 0, 0), NULL, 10);
	PQclear(r);
	PQfinish(c);
	return n;
}

static const char partitions_of_originals[] =
	"SELECT count(*) FROM pg_inherits WHERE inhparent = 'originals'::regclass";

/* The number of the first one. */
static int64_t put_some(struct store *s, const char *prefix, int first, size_t n)
{
	struct arena a = { 0 };
	struct put_result *out = arena_alloc(&a, n * sizeof(*out));
	int64_t id;

	must(store_put(s, make_runs(&a, prefix, first, n), n, STR("tester"), &a, out, e));
	for (size_t i = 0; i < n; i++)
		assert_int_equal(out[i].outcome, PUT_NEW);
	id = out[0].id;
	arena_release(&a);
	return id;
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

static bool is_there(struct store *s, int64_t id)
{
	struct arena a = { 0 };
	struct run_whole whole;
	bool is = store_run(s, id, &a, &whole, NULL) == 0;

	arena_release(&a);
	return is;
}

/* The newest partition, and its runs, are of so many days ago from now on. */
static void make_older(const char *url, int days)
{
	char sql[512];

	snprintf(sql, sizeof(sql), "UPDATE documents SET received = received - %d * 86400.0 WHERE id >="
		 " (SELECT max(first) FROM partitions); UPDATE partitions SET began = began - %d * 86400.0"
		 " WHERE first = (SELECT max(first) FROM partitions)", days, days);
	say(url, sql);
}

/* Each month has a partition; those whose runs all came long ago are dropped as a whole. */
static void months(const char *url)
{
	struct retention r = { .drop_days = 100 };
	struct store *s, *t;
	struct buf told = { 0 };
	struct err why = { 0 };
	int64_t old, middle, now;

	s = open_store(url, false);
	if (!str_starts(str_of(url), STR("postgres"))) {
		assert_int_equal(store_retain(s, &r, &told, &why), -1);
		assert_int_equal(why.code, ERR_USAGE);
		assert_non_null(strstr(why.text, "has no partitions to drop"));
		store_close(s);
		return;
	}
	t = open_store(url, false);
	old = put_some(s, "old", 0, 5);
	make_older(url, 200);
	middle = put_some(s, "middle", 10, 5);
	assert_int_equal(middle, STORE_PARTITION_RUNS);
	make_older(url, 50);
	now = put_some(t, "now", 20, 5);
	assert_int_equal(now, 2 * STORE_PARTITION_RUNS);
	assert_int_equal(ask(url, partitions_of_originals), 3);
	must(store_refresh(s, e));
	assert_int_equal(shown(s, 0, false), 15);
	assert_true(is_there(t, old) && is_there(t, middle) && is_there(t, now));
	check_clean(s);

	must(store_retain(s, &r, &told, e));
	assert_non_null(strstr(told.data, "5 runs removed, 0 archived, 0 traces expired, 1 partition dropped"));
	assert_int_equal(ask(url, partitions_of_originals), 2);
	assert_int_equal(ask(url, "SELECT count(*) FROM benchmark_runs"), 10);
	assert_int_equal(shown(s, 0, false), 10);
	must(store_refresh(t, e));
	assert_int_equal(shown(t, 0, false), 10);
	assert_true(!is_there(t, old) && is_there(t, middle));
	check_clean(t);
	/* The newest one stays, however old it is. */
	make_older(url, 300);
	r.drop_days = 1;
	buf_reset(&told);
	must(store_retain(t, &r, &told, e));
	assert_int_equal(ask(url, partitions_of_originals), 1);
	assert_int_equal(shown(t, 0, false), 5);
	assert_int_equal(put_some(t, "next", 30, 1), 3 * STORE_PARTITION_RUNS);
	store_close(s);
	store_close(t);
	buf_release(&told);
}

static void test_months(void **state)
{
	(void)state;
	with_stores(months);
}

/* A month with more runs than a partition takes. */
static void full(const char *url)
{
	struct store *s;
	int64_t id;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	s = open_store(url, false);
	say(url, "UPDATE numbers SET last = 1048570 WHERE name = 'run'");
	id = put_some(s, "edge", 0, 10);
	assert_int_equal(ask(url, partitions_of_originals), 2);
	for (int i = 0; i < 10; i++)
		assert_true(is_there(s, id + i));
	assert_int_equal(shown(s, 0, false), 10);
	check_clean(s);
	store_close(s);
}

static void test_full(void **state)
{
	(void)state;
	with_stores(full);
}

/* Months come back with a restore, by when their runs came. */
static void restored(const char *url)
{
	struct arena a = { 0 };
	const char *backup;
	struct store *s;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	backup = in_dir(&a, "months.backup");
	s = open_store(url, false);
	put_some(s, "old", 0, 5);
	make_older(url, 200);
	put_some(s, "now", 20, 5);
	must(store_backup(s, backup, e));
	store_close(s);
	must(store_restore(url, backup, true, NULL, e));
	s = open_store(url, false);
	assert_int_equal(ask(url, partitions_of_originals), 2);
	assert_int_equal(shown(s, 0, false), 10);
	check_clean(s);
	assert_int_equal(put_some(s, "more", 40, 1), STORE_PARTITION_RUNS + 5);
	store_close(s);
	arena_release(&a);
}

static void test_restored(void **state)
{
	(void)state;
	with_stores(restored);
}

/* ---- tables of an earlier program ---- */

/* One table, as it was before it was divided. */
#define UNDIVIDED(name) \
	"CREATE TABLE " name "_whole (LIKE " name " INCLUDING INDEXES);" \
	"INSERT INTO " name "_whole SELECT * FROM " name "; DROP TABLE " name ";" \
	"ALTER TABLE " name "_whole RENAME TO " name ";" \
	"ALTER TABLE " name " ADD FOREIGN KEY (id) REFERENCES documents (id) ON DELETE CASCADE;"

static void divided_later(const char *url)
{
	struct store_opts o = { .url = url, .snapshot = "" };
	struct store *s;
	struct err why = { 0 };
	int64_t id;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	s = open_store(url, false);
	id = put_some(s, "before", 0, 20);
	store_close(s);
	say(url, UNDIVIDED("originals") UNDIVIDED("arrays") UNDIVIDED("benchmark_runs")
	    "DROP TABLE partitions; DELETE FROM migrations WHERE number = 6;"
	    "GRANT SELECT ON benchmark_runs TO pg_monitor;"
	    "CREATE VIEW mine AS SELECT id FROM benchmark_runs");
	assert_int_equal(store_open(&o, &s, &why), -1);
	assert_int_equal(why.code, ERR_USAGE);
	assert_non_null(strstr(why.text, "the view mine reads the table benchmark_runs"));
	say(url, "DROP VIEW mine");
	s = open_store(url, false);
	assert_int_equal(ask(url, partitions_of_originals), 1);
	assert_int_equal(shown(s, 0, false), 20);
	assert_true(is_there(s, id));
	assert_int_equal(ask(url, "SELECT has_table_privilege('pg_monitor', 'benchmark_runs', 'SELECT')::int"),
			 1);
	/* Every index is one over all partitions, and there is none twice. */
	assert_int_equal(ask(url, "SELECT count(*) FROM pg_index WHERE indrelid = 'benchmark_runs'::regclass"),
			 16);
	assert_int_equal(ask(url, "SELECT count(*) FROM pg_index"
				  " WHERE indrelid = 'benchmark_runs_p0'::regclass"), 16);
	make_older(url, 100);
	assert_int_equal(put_some(s, "after", 20, 5), STORE_PARTITION_RUNS);
	assert_int_equal(shown(s, 0, false), 25);
	check_clean(s);
	store_close(s);
}

static void test_divided_later(void **state)
{
	(void)state;
	with_stores(divided_later);
}

/* ---- a transaction that stays open ---- */

struct late {
	struct store *store;
	atomic_bool is_done;
	int rc;
};

static void *put_late(void *self)
{
	struct late *w = self;
	struct arena a = { 0 };
	struct put_result out[3];

	w->rc = store_put(w->store, make_runs(&a, "late", 100, 3), 3, STR(""), &a, out, NULL);
	atomic_store(&w->is_done, true);
	arena_release(&a);
	return NULL;
}

static void open_one(PGconn *c, const char *sql)
{
	PGresult *r = PQexec(c, sql);

	if (PQresultStatus(r) != PGRES_COMMAND_OK && PQresultStatus(r) != PGRES_TUPLES_OK)
		fail_msg("%s: %s", sql, PQerrorMessage(c));
	PQclear(r);
}

/*
 * A writer takes a number of change and commits late. No one gets a higher number meanwhile, so a
 * dashboard that follows the numbers misses nothing.
 */
static void held_open(const char *url)
{
	struct store *reader;
	struct late w = { 0 };
	pthread_t thread;
	PGconn *c;
	int64_t id;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	w.store = open_store(url, false);
	reader = open_store(url, false);
	id = put_some(w.store, "early", 0, 5);
	must(store_refresh(reader, e));
	c = PQconnectdb(url);
	open_one(c, "BEGIN; SELECT pg_advisory_xact_lock(7306089135123461);"
		    " UPDATE numbers SET last = last + 1 WHERE name = 'change';"
		    " UPDATE documents SET flags = 2, changed ="
		    " (SELECT last FROM numbers WHERE name = 'change')"
		    " WHERE id = (SELECT min(id) FROM documents)");
	assert_int_equal(pthread_create(&thread, NULL, put_late, &w), 0);
	while (!ask(url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
			 " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"))
		nanosleep(&(struct timespec){ 0, 2000000 }, NULL);
	must(store_refresh(reader, e));
	assert_int_equal(shown(reader, 0, false), 5); /* as before both */
	assert_false(atomic_load(&w.is_done));
	open_one(c, "COMMIT");
	pthread_join(thread, NULL);
	assert_int_equal(w.rc, 0);
	must(store_refresh(reader, e));
	assert_int_equal(shown(reader, 0, false), 7); /* one archived, three more */
	assert_int_equal(shown(w.store, 0, false), 7);
	assert_true(is_there(reader, id));
	PQfinish(c);
	store_close(reader);
	store_close(w.store);
}

static void test_held_open(void **state)
{
	(void)state;
	with_stores(held_open);
}

/* ---- a database that takes no writes ---- */

static void no_writes(const char *url)
{
	struct store_opts o = { .url = url, .snapshot = "" };
	struct arena a = { 0 };
	struct store *s;
	struct err why = { 0 };
	int64_t id;

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	s = open_store(url, false);
	put_some(s, "a", 0, 5);
	store_close(s);
	say(url, "ALTER DATABASE \"" STORE_RIG "\" SET default_transaction_read_only = on");
	assert_int_equal(store_open(&o, &s, &why), -1);
	assert_int_equal(why.code, ERR_USAGE);
	assert_non_null(strstr(why.text, "takes no writes"));
	o.takes_replica = true;
	must(store_open(&o, &s, e));
	assert_true(store_is_read_only(s));
	assert_int_equal(shown(s, 0, false), 5);
	assert_int_equal(store_annotate(s, 1, STR("text"), STR("me"), &id, &why), -1);
	assert_int_equal(why.code, ERR_USAGE);
	must(store_maintain(s, e));
	store_close(s);
	say(arena_printf(&a, "%s&options=-cdefault_transaction_read_only%%3Doff", url),
	    "ALTER DATABASE \"" STORE_RIG "\" RESET default_transaction_read_only");
	s = open_store(url, false);
	assert_false(store_is_read_only(s));
	store_close(s);
	arena_release(&a);
}

static void test_no_writes(void **state)
{
	(void)state;
	with_stores(no_writes);
}

/* ---- a database whose disk is full, as it says ---- */

static void disk_full(const char *url)
{
	struct put_result out[2];
	struct arena a = { 0 };
	struct store *s;
	struct err why = { 0 };

	if (!str_starts(str_of(url), STR("postgres")))
		return;
	s = open_store(url, false);
	say(url, "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION"
		 " 'could not extend file: No space left' USING ERRCODE = '53100'; END $$;"
		 " CREATE TRIGGER full_disk BEFORE INSERT ON documents EXECUTE FUNCTION full_disk()");
	assert_int_equal(store_put(s, make_runs(&a, "a", 0, 2), 2, STR("tester"), &a, out, &why), -1);
	assert_int_equal(why.kind, ERR_DISK_FULL);
	assert_true(str_starts(str_of(why.text), STR("PostgreSQL: its disk is full: make room there, then "
		"do this again; what was stored before is safe (ERROR: could not extend file: No space left")));
	say(url, "DROP FUNCTION full_disk CASCADE");
	put_some(s, "a", 0, 2);
	check_clean(s);
	store_close(s);
	arena_release(&a);
}

static void test_disk_full(void **state)
{
	(void)state;
	with_stores(disk_full);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_months),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_restored),
		cmocka_unit_test(test_divided_later),
		cmocka_unit_test(test_held_open),
		cmocka_unit_test(test_no_writes),
		cmocka_unit_test(test_disk_full),
	};

	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
