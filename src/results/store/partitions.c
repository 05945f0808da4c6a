/* SPDX-License-Identifier: Apache-2.0 */
/*
 * partitions.c - the large tables of a PostgreSQL store in parts; see store_internal.h.
 *
 * They are divided by number of run and not by a time, because every statement selects by number:
 * PostgreSQL then finds the one partition by itself, and the primary keys stay what they were. New
 * partitions are made as tables of their own and attached, which does not wait for readers;
 * dropping one does.
 */
#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "results/store/store_internal.h"

static const char *const table[] = { "originals", "arrays", "benchmark_runs" };
#define TABLES (sizeof(table) / sizeof(*table))
#define STATEMENT_BYTES_MAX 1024 /* of names, which have 63 bytes each at most */

__attribute__((format(printf, 3, 4)))
static int say(struct db *d, struct err *e, const char *fmt, ...)
{
	char sql[STATEMENT_BYTES_MAX];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = fmt_vtext(sql, sizeof(sql), fmt, ap);
	va_end(ap);
	assert(n > 0 && (size_t)n < sizeof(sql));
	return db_do(d, sql, NULL, 0, e);
}

/* ---- making them ---- */

static int make_one(struct db *d, const char *of, int64_t first, int64_t past, struct err *e)
{
	long long from = first, to = past;

	if (say(d, e, "CREATE TABLE %s_p%lld (LIKE %s INCLUDING INDEXES)", of, from, of) < 0)
		return -1;
	return say(d, e, "ALTER TABLE %s ATTACH PARTITION %s_p%lld FOR VALUES FROM (%lld) TO (%lld)", of,
		   of, from, from, to);
}

static int list(struct db *d, int64_t first, int64_t past, double began_s, struct err *e)
{
	struct db_value v[3] = { db_int(first), db_int(past), db_real(began_s) };

	return db_do(d, "INSERT INTO partitions (first, past, began, leaving) VALUES ($1, $2, $3, 0)", v,
		     3, e);
}

static int add(struct db *d, int64_t first, int64_t past, double began_s, struct err *e)
{
	for (size_t i = 0; i < TABLES; i++)
		if (make_one(d, table[i], first, past, e) < 0)
			return -1;
	return list(d, first, past, began_s, e);
}

/* The first number of a partition that begins above another number. */
static int64_t boundary(int64_t last)
{
	return (last / STORE_PARTITION_RUNS + 1) * STORE_PARTITION_RUNS;
}

/* Months since the year 0, UTC. */
static int64_t month_of(double at_s)
{
	time_t at = (time_t)at_s;
	struct tm t = { 0 };

	gmtime_r(&at, &t);
	return (int64_t)t.tm_year * 12 + t.tm_mon;
}

struct partition_list { struct partition *at; size_t n, room; };

/* first, past */
static int take_partition(void *self, const struct db_got *got)
{
	struct partition_list *l = self;

	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 16;
		l->at = mem_grow(l->at, l->room, sizeof(*l->at));
	}
	l->at[l->n++] = (struct partition){ db_as_int(got->v[0]), db_as_int(got->v[1]) };
	return 0;
}

static int read_list(struct db *d, struct partition_list *l, struct err *e)
{
	return db_run(d, "SELECT first, past FROM partitions ORDER BY first", NULL, 0, take_partition, l,
		      e);
}

int partitions_make(struct db *d, const char *of, struct err *e)
{
	struct partition_list l = { 0 };
	int rc = read_list(d, &l, e);

	for (size_t i = 0; i < l.n && !rc; i++)
		rc = make_one(d, of, l.at[i].first, l.at[i].past, e);
	free(l.at);
	return rc;
}

struct newest { int64_t last, first, past; double began_s; };

/* The last number of a run; first, past, began */
static int take_newest(void *self, const struct db_got *got)
{
	*(struct newest *)self = (struct newest){ db_as_int(got->v[0]), db_as_int(got->v[1]),
						  db_as_int(got->v[2]), db_as_real(got->v[3]) };
	return 1;
}

/* One without a run is this month's from now on; after any other one the next begins. */
static int turn_month(struct db *d, struct newest *newest, double now_s, struct err *e)
{
	struct db_value v[2] = { db_real(now_s), db_int(newest->first) };

	if (newest->last < newest->first || newest->last == 0)
		return db_do(d, "UPDATE partitions SET began = $1 WHERE first = $2", v, 2, e);
	newest->last = newest->past - 1;
	v[0] = db_int(newest->last);
	return db_do(d, "UPDATE numbers SET last = $1 WHERE name = 'run'", v, 1, e);
}

int partitions_room(struct db *d, size_t n, struct err *e)
{
	struct newest newest = { 0 };
	double now_s = store_now_s();

	if (db_run(d, "SELECT n.last, p.first, p.past, p.began FROM numbers n, partitions p WHERE n.name = 'run'"
		      " ORDER BY p.first DESC LIMIT 1", NULL, 0, take_newest, &newest, e) < 0)
		return -1;
	if (month_of(now_s) > month_of(newest.began_s) && turn_month(d, &newest, now_s, e) < 0)
		return -1;
	for (; newest.last + (int64_t)n >= newest.past; newest.past += STORE_PARTITION_RUNS)
		if (add(d, newest.past, newest.past + STORE_PARTITION_RUNS, now_s, e) < 0)
			return -1;
	return 0;
}

/* ---- the tables of before ---- */

/* A statement, into a list of texts. */
static int take_statement(void *self, const struct db_got *got)
{
	struct store_list *l = self;

	*(struct str *)store_list_add(l) = db_keep(l->a, got->v[0]);
	return 0;
}

/* Runs the statements that a query about a table ($1) returns. */
static int run_answer(struct db *d, const char *sql, const char *of, struct err *e)
{
	struct arena a = { 0 };
	struct store_list l = { .a = &a, .size = sizeof(struct str) };
	struct db_value v = db_text(str_of(of));
	int rc = db_run(d, sql, &v, 1, take_statement, &l, e);

	for (size_t i = 0; i < l.n && !rc; i++) {
		const struct str *one = (const struct str *)(void *)l.item + i;

		rc = say(d, e, "%.*s", (int)one->n, one->p);
	}
	arena_release(&a);
	return rc;
}

static int take_name(void *self, const struct db_got *got)
{
	buf_add_str(self, db_as_bytes(got->v[0]));
	return 1;
}

/* A view keeps to the table that it was made over, which becomes one partition of several. */
static int refuse_views(struct db *d, const char *of, struct err *e)
{
	struct db_value v = db_text(str_of(of));
	struct buf name = { 0 };
	int rc = db_run(d, "SELECT c.oid::regclass::text FROM pg_depend p JOIN pg_rewrite r ON r.oid = p.objid"
			   " JOIN pg_class c ON c.oid = r.ev_class"
			   " WHERE p.classid = 'pg_rewrite'::regclass AND p.refclassid = 'pg_class'::regclass"
			   " AND p.refobjid = $1::text::regclass LIMIT 1", &v, 1, take_name, &name, e);

	if (!rc && name.len)
		rc = err_set(e, ERR_USAGE, "the view %s reads the table %s, which this version divides into "
			     "partitions: drop the view, open the store for writing once (for example with "
			     "profllm store check --repair), and create the view again", name.data, of);
	buf_release(&name);
	return rc;
}

/* Its indexes and their names go to the partition; the new table has the same permissions. */
static int divide(struct db *d, const char *of, int64_t past, struct err *e)
{
	static const char rename[] =
		"SELECT format('ALTER INDEX %s RENAME TO %I', x.indexrelid::regclass, c.relname || '_p0')"
		" FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid"
		" WHERE x.indrelid = $1::text::regclass";
	static const char references[] =
		"SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname)"
		" FROM pg_constraint WHERE contype = 'f' AND conrelid = $1::text::regclass";
	static const char grants[] =
		"SELECT format('GRANT %s ON %s TO %s%s', g.privilege_type, $1::text,"
		" CASE WHEN g.grantee = 0 THEN 'PUBLIC' ELSE g.grantee::regrole::text END,"
		" CASE WHEN g.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END)"
		" FROM pg_class c, aclexplode(c.relacl) g"
		" WHERE c.oid = ($1::text || '_p0')::regclass AND g.grantee <> c.relowner";

	if (refuse_views(d, of, e) < 0 || run_answer(d, rename, of, e) < 0 ||
	    run_answer(d, references, of, e) < 0)
		return -1;
	if (say(d, e, "ALTER TABLE %s RENAME TO %s_p0", of, of) < 0 ||
	    say(d, e, "CREATE TABLE %s (LIKE %s_p0, PRIMARY KEY (id)) PARTITION BY RANGE (id)", of,
		of) < 0 ||
	    say(d, e, "ALTER TABLE %s ATTACH PARTITION %s_p0 FOR VALUES FROM (0) TO (%lld)", of, of,
		(long long)past) < 0)
		return -1;
	return run_answer(d, grants, of, e);
}

/* columns_know, called next, makes the indexes over all partitions of benchmark_runs. */
int partitions_begin(struct db *d, struct err *e)
{
	int64_t last, past;

	if (say(d, e, "CREATE TABLE partitions (first BIGINT PRIMARY KEY, past BIGINT NOT NULL,"
		      " began DOUBLE PRECISION NOT NULL, leaving BIGINT NOT NULL)") < 0 ||
	    db_integer(d, "SELECT last FROM numbers WHERE name = 'run'", NULL, 0, 0, &last, e) < 0)
		return -1;
	past = boundary(last);
	for (size_t i = 0; i < TABLES; i++)
		if (divide(d, table[i], past, e) < 0)
			return -1;
	if (list(d, 0, past, store_now_s(), e) < 0)
		return -1;
	return db_do(d, "DELETE FROM numbers WHERE name = 'known_columns'", NULL, 0, e);
}

/* ---- those of another store ---- */

int partitions_clear(struct db *d, struct err *e)
{
	struct partition_list l = { 0 };
	int rc = read_list(d, &l, e);

	for (size_t i = 0; i < l.n && !rc; i++)
		rc = partitions_drop(d, l.at[i].first, e);
	free(l.at);
	return rc;
}

struct month { int64_t first; double began_s; };
struct months { struct store_list l; int64_t month, last; };

/* id, received: in the order of numbers; time may go backwards if clocks did. */
static int take_received(void *self, const struct db_got *got)
{
	struct months *m = self;
	double at_s = db_as_real(got->v[1]);
	struct month month = { .began_s = at_s };

	m->last = db_as_int(got->v[0]);
	if (m->l.n && month_of(at_s) <= m->month)
		return 0;
	m->month = month_of(at_s);
	month.first = m->l.n ? m->last : 0;
	*(struct month *)store_list_add(&m->l) = month;
	return 0;
}

int partitions_like(struct db *from, struct db *to, struct err *e)
{
	struct arena a = { 0 };
	struct months m = { .l = { .a = &a, .size = sizeof(struct month) } };
	int64_t last = 0;
	int rc;

	rc = db_run(from, "SELECT id, received FROM documents ORDER BY id", NULL, 0, take_received, &m, e);
	if (!rc)
		rc = db_integer(from, "SELECT last FROM numbers WHERE name = 'run'", NULL, 0, 0, &last, e);
	for (size_t i = 0; i < m.l.n && !rc; i++) {
		const struct month *at = (const struct month *)(void *)m.l.item + i;

		rc = add(to, at->first, i + 1 < m.l.n ? at[1].first : boundary(last), at->began_s,
			 e);
	}
	if (!rc && !m.l.n)
		rc = add(to, 0, boundary(last), store_now_s(), e);
	arena_release(&a);
	return rc;
}

/* ---- and away ---- */

static int take_leaving(void *self, const struct db_got *got)
{
	struct partition *p = self;

	*p = (struct partition){ db_as_int(got->v[0]), db_as_int(got->v[1]) };
	return 1;
}

int partitions_leave(struct db *d, double before_s, struct partition *out, struct err *e)
{
	struct db_value v = db_real(before_s);

	*out = (struct partition){ -1, -1 };
	if (db_run(d, "SELECT p.first, p.past FROM partitions p"
		      " WHERE p.first < (SELECT max(first) FROM partitions) AND (p.leaving > 0 OR NOT EXISTS"
		      " (SELECT 1 FROM documents d WHERE d.id >= p.first AND d.id < p.past"
		      " AND d.received >= $1)) ORDER BY p.first LIMIT 1", &v, 1, take_leaving, out, e) < 0)
		return -1;
	if (out->first < 0)
		return 0;
	v = db_int(out->first);
	return db_do(d, "UPDATE partitions SET leaving = 1 WHERE first = $1", &v, 1, e);
}

int partitions_drop(struct db *d, int64_t first, struct err *e)
{
	struct db_value v = db_int(first);

	for (size_t i = 0; i < TABLES; i++)
		if (say(d, e, "DROP TABLE IF EXISTS %s_p%lld", table[i], (long long)first) < 0)
			return -1;
	return db_do(d, "DELETE FROM partitions WHERE first = $1", &v, 1, e);
}
