/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows.c - the questions of runs.h put to a database of rows: one wide table, an index on every
 * column that a condition may name, the best plan that was found (matching rows into a temporary
 * table, then a grouping each). Facets have no own conditions left out, statistics no percentiles.
 */
#include <postgresql/libpq-fe.h>
#include <math.h>
#include <sqlite3.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "kit/runs.h"

struct rows {
	sqlite3 *lite;
	PGconn *pg;
	int64_t deadline_ns;
	struct runs *runs;
	struct err *err;
};

static int on_progress(void *self)
{
	return clock_mono_ns() > ((const struct rows *)self)->deadline_ns;
}

static int run_lite(struct rows *r, const char *sql)
{
	sqlite3_stmt *statement;

	while (*sql) {
		int rc = sqlite3_prepare_v2(r->lite, sql, -1, &statement, &sql);

		while (rc == SQLITE_OK && statement && (rc = sqlite3_step(statement)) == SQLITE_ROW)
			rc = SQLITE_OK;
		sqlite3_finalize(statement);
		if (rc == SQLITE_INTERRUPT)
			return 1;
		if (rc != SQLITE_OK && rc != SQLITE_DONE)
			return err_set(r->err, ERR_RUN, "SQLite: %s", sqlite3_errmsg(r->lite));
	}
	return 0;
}

static int run_pg(struct rows *r, const char *sql)
{
	PGresult *result = PQexec(r->pg, sql);
	ExecStatusType status = PQresultStatus(result);
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
	bool is_late = state && strcmp(state, "57014") == 0;
	int rc = is_late ? 1 : 0;

	if (!is_late && status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
		rc = err_set(r->err, ERR_RUN, "PostgreSQL: %s", PQerrorMessage(r->pg));
	PQclear(result);
	return rc;
}

/* 1: the time was over. */
static int run(struct rows *r, struct buf *sql)
{
	int rc = r->lite ? run_lite(r, sql->data) : run_pg(r, sql->data);

	buf_reset(sql);
	return rc;
}

/* ---- the table ---- */

static void add_name(struct buf *sql, struct str name)
{
	buf_printf(sql, "\"%.*s\"", (int)name.n, name.p);
}

static void add_value(struct buf *sql, struct value v)
{
	char text[FMT_F64_BYTES];

	switch (v.kind) {
	case VALUE_TEXT:
		buf_printf(sql, "'%.*s'", (int)v.text.n, v.text.p); /* none has a quote */
		break;
	case VALUE_NUMBER:
		buf_add_text(sql, fmt_f64(text, v.number));
		break;
	case VALUE_BOOL:
		buf_add_text(sql, v.is_true ? "1" : "0");
		break;
	case VALUE_ABSENT:
	case VALUE_NULL:
		buf_add_text(sql, "NULL");
		break;
	}
}

static void create(const struct rows *r, const struct row *sample, struct buf *sql)
{
	buf_add_text(sql, r->lite ? "CREATE TABLE runs (id INTEGER PRIMARY KEY" :
				    "CREATE TABLE runs (id bigint PRIMARY KEY");
	for (size_t i = 0; i < sample->n; i++) {
		bool is_text = sample->cell[i].value.kind == VALUE_TEXT;

		buf_add_text(sql, ", ");
		add_name(sql, sample->cell[i].column);
		buf_add_text(sql, is_text ? " text" : r->lite ? " REAL" : " double precision");
	}
	buf_add_text(sql, ")");
}

static int bind(sqlite3_stmt *statement, int at, struct value v)
{
	switch (v.kind) {
	case VALUE_TEXT:
		return sqlite3_bind_text(statement, at, v.text.p, (int)v.text.n, SQLITE_STATIC);
	case VALUE_NUMBER:
		return sqlite3_bind_double(statement, at, v.number);
	case VALUE_BOOL:
		return sqlite3_bind_int(statement, at, v.is_true);
	case VALUE_ABSENT:
	case VALUE_NULL:
		break;
	}
	return sqlite3_bind_null(statement, at);
}

static int insert_lite(struct rows *r, sqlite3_stmt *statement, const struct row *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		int rc = sqlite3_bind_int64(statement, 1, row[i].id);

		for (size_t k = 0; k < row[i].n && rc == SQLITE_OK; k++)
			rc = bind(statement, (int)k + 2, row[i].cell[k].value);
		if (rc != SQLITE_OK || sqlite3_step(statement) != SQLITE_DONE)
			return err_set(r->err, ERR_RUN, "SQLite: %s", sqlite3_errmsg(r->lite));
		sqlite3_reset(statement);
	}
	return 0;
}

/* Lines of COPY; no text has a tab or a backslash. */
static int insert_pg(struct rows *r, const struct row *row, size_t n, struct buf *lines)
{
	char text[FMT_F64_BYTES];
	int rc;

	for (size_t i = 0; i < n; i++) {
		buf_printf(lines, "%lld", (long long)row[i].id);
		for (size_t k = 0; k < row[i].n; k++) {
			struct value v = row[i].cell[k].value;

			buf_add_char(lines, '\t');
			if (v.kind == VALUE_TEXT)
				buf_add_str(lines, v.text);
			else if (v.kind == VALUE_NUMBER)
				buf_add_text(lines, fmt_f64(text, v.number));
			else
				buf_add_text(lines, v.kind == VALUE_NULL ? "\\N" :
						    v.is_true ? "1" : "0");
		}
		buf_add_char(lines, '\n');
	}
	rc = PQputCopyData(r->pg, lines->data, (int)lines->len);
	buf_reset(lines);
	return rc == 1 ? 0 : err_set(r->err, ERR_RUN, "PostgreSQL: %s", PQerrorMessage(r->pg));
}

static int begin_load(struct rows *r, sqlite3_stmt **statement)
{
	struct buf sql = { 0 };
	PGresult *result;
	int rc = 0;

	if (r->lite) {
		buf_add_text(&sql, "INSERT INTO runs VALUES (?");
		for (size_t i = 0; i < RUNS_COLUMNS; i++)
			buf_add_text(&sql, ", ?");
		buf_add_text(&sql, ")");
		rc = run_lite(r, "BEGIN");
		if (rc == 0 &&
		    sqlite3_prepare_v2(r->lite, sql.data, -1, statement, NULL) != SQLITE_OK)
			rc = err_set(r->err, ERR_RUN, "SQLite: %s", sqlite3_errmsg(r->lite));
	} else {
		result = PQexec(r->pg, "COPY runs FROM STDIN");
		if (PQresultStatus(result) != PGRES_COPY_IN)
			rc = err_set(r->err, ERR_RUN, "PostgreSQL: %s", PQerrorMessage(r->pg));
		PQclear(result);
	}
	buf_release(&sql);
	return rc;
}

static int end_load(struct rows *r, sqlite3_stmt *statement)
{
	PGresult *result;
	int rc = 0;

	if (r->lite) {
		sqlite3_finalize(statement);
		return run_lite(r, "COMMIT");
	}
	if (PQputCopyEnd(r->pg, NULL) != 1)
		return err_set(r->err, ERR_RUN, "PostgreSQL: %s", PQerrorMessage(r->pg));
	while ((result = PQgetResult(r->pg))) {
		if (PQresultStatus(result) != PGRES_COMMAND_OK)
			rc = err_set(r->err, ERR_RUN, "PostgreSQL: %s", PQerrorMessage(r->pg));
		PQclear(result);
	}
	return rc;
}

static int load(struct rows *r, size_t n_rows, struct rows_result *out)
{
	struct buf text = { 0 };
	sqlite3_stmt *statement = NULL;
	int64_t spent = 0;
	int rc = 0, ended;

	while (rc == 0 && r->runs->made < n_rows) {
		size_t left = n_rows - r->runs->made, n = left < RUNS_BATCH ? left : RUNS_BATCH;
		int64_t start;

		runs_more(r->runs, n);
		if (r->runs->made == n) {
			create(r, r->runs->row, &text);
			rc = run(r, &text);
			rc = rc ? rc : begin_load(r, &statement);
		}
		start = clock_mono_ns();
		if (rc == 0)
			rc = r->lite ? insert_lite(r, statement, r->runs->row, n) :
				       insert_pg(r, r->runs->row, n, &text);
		spent += clock_mono_ns() - start;
	}
	ended = end_load(r, statement);
	rc = rc ? rc : ended;
	out->load_s = (double)spent / 1e9;
	buf_release(&text);
	return rc;
}

/* What conditions name often; ten categories, time, a metric. */
static int add_indexes(struct rows *r, struct rows_result *out)
{
	struct buf sql = { 0 };
	int64_t start = clock_mono_ns();
	int rc = 0;

	for (size_t i = 0; i < 12 && rc == 0; i++) {
		size_t column = i < 10 ? RUNS_FIRST_CATEGORY + i * 4 : i == 10 ? RUNS_TIME :
									  RUNS_FIRST_METRIC;

		buf_printf(&sql, "CREATE INDEX runs_%zu ON runs (", i);
		add_name(&sql, r->runs->column[column]);
		buf_add_text(&sql, ")");
		rc = run(r, &sql);
	}
	buf_add_text(&sql, "ANALYZE runs");
	rc = rc ? rc : run(r, &sql);
	out->index_s = (double)(clock_mono_ns() - start) / 1e9;
	buf_release(&sql);
	return rc;
}

/* ---- questions ---- */

static void add_condition(struct buf *sql, const struct filter *f)
{
	char text[FMT_F64_BYTES];

	add_name(sql, f->column);
	if (f->kind == FILTER_RANGE) {
		buf_printf(sql, " >= %s AND ", fmt_f64(text, f->min));
		add_name(sql, f->column);
		buf_printf(sql, " <= %s", fmt_f64(text, f->max));
		return;
	}
	buf_add_text(sql, " IN (");
	for (size_t i = 0; i < f->n_values; i++) {
		buf_add_text(sql, i ? ", " : "");
		add_value(sql, f->value[i]);
	}
	buf_add_text(sql, ")");
}

static void add_where(struct buf *sql, const struct filter *f)
{
	if (!f)
		return;
	buf_add_text(sql, " WHERE ");
	if (f->kind != FILTER_AND) {
		add_condition(sql, f);
		return;
	}
	for (size_t i = 0; i < f->n_parts; i++) {
		buf_add_text(sql, i ? " AND " : "");
		add_condition(sql, f->part[i]);
	}
}

static void add_names(struct buf *sql, const struct str *name, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_add_text(sql, i ? ", " : "");
		add_name(sql, name[i]);
	}
}

static void add_hits(struct buf *sql, const struct question *q)
{
	buf_add_text(sql, "CREATE TEMP TABLE hit AS SELECT ");
	add_names(sql, q->facet, QUESTION_FACETS);
	buf_add_text(sql, ", ");
	add_names(sql, q->statistic, QUESTION_STATISTICS);
	buf_add_text(sql, " FROM runs");
	add_where(sql, q->query.filter);
}

static void add_page(struct buf *sql, const struct question *q)
{
	buf_add_text(sql, "SELECT ");
	add_names(sql, q->column, QUESTION_COLUMNS);
	buf_add_text(sql, " FROM runs");
	add_where(sql, q->query.filter);
	buf_add_text(sql, " ORDER BY \"timestamp\" DESC LIMIT 50");
}

static void add_statistics(struct buf *sql, const struct question *q)
{
	buf_add_text(sql, "SELECT count(*)");
	for (size_t i = 0; i < QUESTION_STATISTICS; i++) {
		static const char *const what[] = { "count", "min", "max", "avg" };

		for (size_t k = 0; k < 4; k++) {
			buf_printf(sql, ", %s(", what[k]);
			add_name(sql, q->statistic[i]);
			buf_add_text(sql, ")");
		}
	}
	buf_add_text(sql, " FROM hit");
}

/* One pass for all facets where there is such a thing. */
static int ask_facets(struct rows *r, const struct question *q, struct buf *sql)
{
	int rc = 0;

	if (r->pg) {
		buf_add_text(sql, "SELECT ");
		add_names(sql, q->facet, QUESTION_FACETS);
		buf_add_text(sql, ", count(*) FROM hit GROUP BY GROUPING SETS (");
		for (size_t i = 0; i < QUESTION_FACETS; i++) {
			buf_add_text(sql, i ? ", (" : "(");
			add_name(sql, q->facet[i]);
			buf_add_text(sql, ")");
		}
		buf_add_text(sql, ")");
		return run(r, sql);
	}
	for (size_t i = 0; i < QUESTION_FACETS && rc == 0; i++) {
		buf_add_text(sql, "SELECT ");
		add_name(sql, q->facet[i]);
		buf_add_text(sql, ", count(*) FROM hit GROUP BY 1");
		rc = run(r, sql);
	}
	return rc;
}

static int ask(struct rows *r, const struct question *q, double *ms)
{
	struct buf sql = { 0 };
	int64_t start = clock_mono_ns();
	int rc, dropped;

	add_hits(&sql, q);
	rc = run(r, &sql);
	add_page(&sql, q);
	rc = rc ? rc : run(r, &sql);
	buf_reset(&sql);
	rc = rc ? rc : ask_facets(r, q, &sql);
	add_statistics(&sql, q);
	rc = rc ? rc : run(r, &sql);
	*ms = (double)(clock_mono_ns() - start) / 1e6;
	buf_reset(&sql);
	if (r->lite)
		sqlite3_progress_handler(r->lite, 0, NULL, NULL);
	buf_add_text(&sql, "DROP TABLE IF EXISTS hit");
	dropped = run(r, &sql);
	buf_release(&sql);
	return rc ? rc : dropped;
}

/* Until the time is over. */
static void limit_time(struct rows *r)
{
	int64_t left_ms = (r->deadline_ns - clock_mono_ns()) / 1000000;
	struct buf sql = { 0 };

	if (r->lite) {
		sqlite3_progress_handler(r->lite, 10000, on_progress, r);
		return;
	}
	buf_printf(&sql, "SET statement_timeout = %lld", (long long)(left_ms > 1 ? left_ms : 1));
	run(r, &sql);
	buf_release(&sql);
}

static int ask_one(struct rows *r, enum question_kind kind, size_t nth, size_t n_rows,
		   double seconds, double *ms)
{
	struct question q;

	question_make(r->runs, kind, nth, n_rows, &q);
	r->deadline_ns = clock_mono_ns() + (int64_t)(seconds * 1e9);
	limit_time(r);
	return ask(r, &q, ms);
}

static int ask_all(struct rows *r, size_t n_rows, size_t questions, double seconds,
		   struct rows_result *out)
{
	int64_t end = clock_mono_ns() + (int64_t)(seconds * 1e9);
	double left = seconds;
	int rc = 0;

	out->ms = mem_array(questions, sizeof(*out->ms));
	out->asked = questions;
	for (size_t i = 0; i < questions && rc == 0 && left > 0; i++) {
		rc = ask_one(r, QUESTION_FIVE, i, n_rows, left, &out->ms[out->n]);
		out->n += rc == 0;
		left = (double)(end - clock_mono_ns()) / 1e9;
	}
	rc = rc < 0 ? rc : ask_one(r, QUESTION_TIME, 3, n_rows, seconds, &out->time_ms);
	if (rc == 1)
		out->time_ms = NAN;
	rc = rc < 0 ? rc : ask_one(r, QUESTION_ALL, 0, n_rows, seconds, &out->all_ms);
	if (rc == 1)
		out->all_ms = NAN;
	return rc < 0 ? rc : 0;
}

static int open_rows(struct rows *r, const char *url, const char *path)
{
	struct buf sql = { 0 };
	int rc;

	if (url) {
		r->pg = PQconnectdb(url);
		if (PQstatus(r->pg) != CONNECTION_OK)
			return err_set(r->err, ERR_RUN, "PostgreSQL: %s", PQerrorMessage(r->pg));
		buf_add_text(&sql, "SET client_min_messages = warning; "
			     "CREATE SCHEMA bench_filter; SET search_path = bench_filter");
	} else {
		if (sqlite3_open(path, &r->lite) != SQLITE_OK)
			return err_set(r->err, ERR_RUN, "SQLite: %s", sqlite3_errmsg(r->lite));
		buf_add_text(&sql, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; "
			     "PRAGMA cache_size = -1000000; PRAGMA temp_store = MEMORY");
	}
	rc = run(r, &sql);
	buf_release(&sql);
	return rc;
}

static void close_rows(struct rows *r, const char *path)
{
	char other[64];

	if (r->pg) {
		PQclear(PQexec(r->pg, "SET statement_timeout = 0; DROP SCHEMA bench_filter CASCADE"));
		PQfinish(r->pg);
		return;
	}
	sqlite3_close(r->lite);
	for (size_t i = 0; i < 3; i++) {
		static const char *const end[] = { "", "-wal", "-shm" };

		snprintf(other, sizeof(other), "%s%s", path, end[i]);
		unlink(other);
	}
}

int rows_measure(const char *url, size_t n_rows, size_t questions, double seconds,
		 struct rows_result *out, struct err *e)
{
	char path[] = "/tmp/profllm-rows-XXXXXX";
	struct rows r = { .runs = mem_alloc(sizeof(*r.runs)), .err = e };
	int fd = url ? -1 : mkstemp(path), rc;

	*out = (struct rows_result){ .all_ms = NAN, .time_ms = NAN };
	if (fd >= 0)
		close(fd);
	runs_begin(r.runs);
	rc = open_rows(&r, url, path);
	rc = rc ? rc : load(&r, n_rows, out);
	rc = rc ? rc : add_indexes(&r, out);
	rc = rc ? rc : ask_all(&r, n_rows, questions, seconds, out);
	close_rows(&r, path);
	runs_release(r.runs);
	free(r.runs);
	return rc;
}
