/* SPDX-License-Identifier: Apache-2.0 */
/* db.c - code common to both databases. */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/opt/opt.h"
#include "results/store/store_internal.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* The text before the first colon, if it could be a URL's scheme. */
static struct str scheme_of(struct str url)
{
	const char *colon = url.n ? memchr(url.p, ':', url.n) : NULL;
	size_t n = colon ? (size_t)(colon - url.p) : 0;

	return (struct str){ url.p, n && !memchr(url.p, '/', n) ? n : 0 };
}

int store_check_url(const char *url, struct err *e)
{
	const char *place;

	return db_hooks_of(url, &place, e) ? 0 : -1;
}

/*
 * Whether a password has an unescaped @, / or ?: libpq would take what follows it for the host, the
 * port or options, and quote it in its error. url: what follows "//".
 */
static bool is_password_cut(struct str url)
{
	size_t n = 0, n_at = 0;
	struct str rest, port;

	while (n < url.n && !strchr("/?#", url.p[n]))
		n_at += url.p[n++] == '@';
	rest = (struct str){ url.p + n, url.n - n };
	port = (struct str){ url.p, n };
	while (port.n && memchr(port.p, ':', port.n))
		str_cut(&port, ':');
	for (n = 0; n < port.n && isdigit((unsigned char)port.p[n]);)
		n++;
	return n_at > 1 || (n_at == 0 && n < port.n && memchr(rest.p, '@', rest.n));
}

bool store_is_postgres(const char *url)
{
	const char *place;

	return db_hooks_of(url, &place, NULL) == &db_postgres;
}

const struct db_hooks *db_hooks_of(const char *url, const char **place, struct err *e)
{
	static const char *const known[] = { "sqlite", "postgresql", "postgres" };
	struct str scheme = scheme_of(str_of(url));
	const char *meant;

	*place = url;
	if (!scheme.n)
		return &db_sqlite;
	if (str_is(scheme, "postgresql") || str_is(scheme, "postgres")) {
		if (!is_password_cut(str_after(str_of(url), "//")))
			return &db_postgres;
		err_set(e, ERR_STORE_ADDRESS, "the password in the URL of the PostgreSQL store has a "
			"character that ends it: write %%40 for @, %%2F for /, %%3F for ? and %%23 for #");
		return NULL;
	}
	if (str_is(scheme, "sqlite")) {
		*place = url + strlen("sqlite:");
		return &db_sqlite;
	}
	meant = opt_nearest(scheme, known, sizeof(known) / sizeof(*known));
	err_set(e, ERR_STORE_ADDRESS, "%s: expected sqlite:PATH or postgresql://...", url);
	if (meant)
		err_add(e, "; did you mean %s:?", meant);
	return NULL;
}

int db_run(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
	   void *self, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].kind != DB_TEXT)
			continue;
		if (v[i].bytes.n && memchr(v[i].bytes.p, 0, v[i].bytes.n))
			return err_set(e, ERR_USAGE, "a text that holds U+0000 cannot be kept");
		if (!utf8_is_valid(v[i].bytes))
			return err_set(e, ERR_USAGE, "a text that is not valid UTF-8 cannot be kept");
	}
	return d->hooks->run(d, sql, v, n, row, self, e);
}

int db_do(struct db *d, const char *sql, const struct db_value *v, size_t n, struct err *e)
{
	return db_run(d, sql, v, n, NULL, NULL, e);
}

static int take_first(void *self, const struct db_got *got)
{
	if (got->n && got->v[0].kind != DB_NULL)
		*(int64_t *)self = db_as_int(got->v[0]);
	return 1;
}

int db_integer(struct db *d, const char *sql, const struct db_value *v, size_t n,
	       int64_t otherwise, int64_t *out, struct err *e)
{
	*out = otherwise;
	return db_run(d, sql, v, n, take_first, out, e);
}

struct buf db_words(const struct db_hooks *h, const char *sql)
{
	static const char *const name[] = { "{int}", "{real}", "{blob}", "{of_run}" };
	struct buf out = { 0 };

	while (*sql) {
		size_t i = 0;

		while (i < COUNT(name) && !str_starts(str_of(sql), str_of(name[i])))
			i++;
		if (i < COUNT(name)) {
			buf_add_text(&out, h->word[i]);
			sql += strlen(name[i]);
		} else {
			buf_add_char(&out, *sql++);
		}
	}
	return out;
}

int db_begin(struct db *d, enum db_begin how, struct err *e)
{
	assert(!d->is_inside);
	for (size_t i = 0; i < 3 && d->hooks->begin[how][i]; i++) {
		if (db_do(d, d->hooks->begin[how][i], NULL, 0, e) == 0) {
			d->is_inside = true;
			continue;
		}
		if (d->is_inside)
			db_end(d, -1, NULL);
		return -1;
	}
	return 0;
}

int db_end(struct db *d, int outcome, struct err *e)
{
	int rc = outcome;

	if (!outcome)
		rc = db_do(d, "COMMIT", NULL, 0, e);
	if (rc)
		db_do(d, "ROLLBACK", NULL, 0, NULL);
	d->is_inside = false;
	return rc;
}

int64_t db_as_int(struct db_value v)
{
	switch (v.kind) {
	case DB_BOOL:
	case DB_INT: return v.integer;
	case DB_REAL: return isfinite(v.real) && fabs(v.real) < 9e18 ? (int64_t)v.real : 0;
	default: return 0;
	}
}

double db_as_real(struct db_value v)
{
	if (v.kind == DB_REAL)
		return v.real;
	return v.kind == DB_INT || v.kind == DB_BOOL ? (double)v.integer : (double)NAN;
}

struct str db_as_bytes(struct db_value v)
{
	return v.kind == DB_TEXT || v.kind == DB_BLOB ? v.bytes : (struct str){ "", 0 };
}

struct str db_keep(struct arena *a, struct db_value v)
{
	return arena_str(a, db_as_bytes(v));
}

#define STATEMENTS_MAX 40

/*
 * numbers: the last number given out of each kind, so that none is used twice. "change" begins at a
 * random place: a snapshot of another store's index is then never taken for this one's.
 *
 * documents.cells, originals and arrays: store_internal.h. benchmark_runs gets its columns from
 * columns.c.
 */
static const char *const first[STATEMENTS_MAX] = {
	"CREATE TABLE numbers (name TEXT PRIMARY KEY, last {int} NOT NULL)",
	"CREATE TABLE columns (number {int} PRIMARY KEY, name TEXT NOT NULL UNIQUE, sql_name TEXT UNIQUE,"
	" kind TEXT)",
	"CREATE TABLE documents (id {int} PRIMARY KEY, run_id TEXT NOT NULL, hash TEXT NOT NULL UNIQUE,"
	" kind TEXT NOT NULL, who TEXT NOT NULL, received {real} NOT NULL, ran {real},"
	" flags {int} NOT NULL, changed {int} NOT NULL, checksum TEXT NOT NULL, cells {blob} NOT NULL)",
	"CREATE INDEX documents_run_id ON documents (run_id, id)",
	"CREATE INDEX documents_changed ON documents (changed)",
	"CREATE TABLE originals (id {int} PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,"
	" document {blob} NOT NULL)",
	"CREATE TABLE arrays (id {int} PRIMARY KEY REFERENCES documents (id) ON DELETE CASCADE,"
	" arrays {blob} NOT NULL)",
	"CREATE TABLE benchmark_runs (id {int} PRIMARY KEY REFERENCES documents (id)"
	" ON DELETE CASCADE, rest TEXT)",
	"CREATE TABLE removed (id {int} PRIMARY KEY, changed {int} NOT NULL)",
	"CREATE INDEX removed_changed ON removed (changed)",
	"CREATE TABLE jobs (id TEXT PRIMARY KEY, number {int} NOT NULL, kind TEXT NOT NULL,"
	" state TEXT NOT NULL, detail TEXT NOT NULL, created {real} NOT NULL, ended {real})",
	"CREATE INDEX jobs_number ON jobs (number)",
	"CREATE TABLE job_files (id {int} PRIMARY KEY, job TEXT NOT NULL REFERENCES jobs (id),"
	" name TEXT NOT NULL, bytes {blob}, outcome {int}, runs {int} NOT NULL, run {int} NOT NULL,"
	" reason TEXT NOT NULL)",
	"CREATE INDEX job_files_job ON job_files (job, id)",
	"CREATE INDEX job_files_waiting ON job_files (id) WHERE outcome IS NULL",
	"CREATE TABLE presets (id {int} PRIMARY KEY, name TEXT NOT NULL UNIQUE, body TEXT NOT NULL,"
	" at {real} NOT NULL)",
	"CREATE TABLE annotations (id {int} PRIMARY KEY, run {int} NOT NULL REFERENCES documents (id)"
	" ON DELETE CASCADE, text TEXT NOT NULL, who TEXT NOT NULL, at {real} NOT NULL)",
	"CREATE INDEX annotations_run ON annotations (run)",
	"CREATE TABLE exclusions (id {int} PRIMARY KEY, run {int} NOT NULL REFERENCES documents (id)"
	" ON DELETE CASCADE, reason TEXT NOT NULL, who TEXT NOT NULL, at {real} NOT NULL,"
	" ended {real})",
	"CREATE INDEX exclusions_run ON exclusions (run)",
	"CREATE TABLE marks (id {int} PRIMARY KEY, series TEXT NOT NULL, place TEXT NOT NULL,"
	" kind TEXT NOT NULL, text TEXT NOT NULL, who TEXT NOT NULL, at {real} NOT NULL)",
	"CREATE TABLE traces (id {int} PRIMARY KEY, run {int} NOT NULL, name TEXT NOT NULL,"
	" hash TEXT NOT NULL, model TEXT NOT NULL, engine_commit TEXT NOT NULL, bytes {int} NOT NULL,"
	" at {real} NOT NULL, is_expired {int} NOT NULL)",
	"CREATE INDEX traces_run ON traces (run)",
	"CREATE INDEX traces_hash ON traces (hash)",
	"INSERT INTO numbers (name, last) VALUES ('run', 0), ('job', 0), ('job_file', 0),"
	" ('change', 0), ('preset', 0), ('annotation', 0), ('exclusion', 0), ('mark', 0), ('trace', 0)",
};

/* '': of a mark of before, which stood for all metrics of its series. */
static const char *const marks_metric[STATEMENTS_MAX] = {
	"ALTER TABLE marks ADD COLUMN metric TEXT NOT NULL DEFAULT ''",
};

/*
 * A number without a name was dropped; kind 'rest': its values are in benchmark_runs.rest. numbers:
 * "columns" is their edition, "rewritten" the last change that rewrote cells of existing runs.
 * left_out: how many values of a run are only in its document, -1: not counted.
 */
static const char *const columns_come_back[STATEMENTS_MAX] = {
	"CREATE TABLE columns_again (number {int} PRIMARY KEY, name TEXT UNIQUE, sql_name TEXT UNIQUE,"
	" kind TEXT)",
	"INSERT INTO columns_again (number, name, sql_name, kind)"
	" SELECT number, name, sql_name, kind FROM columns",
	"DROP TABLE columns",
	"ALTER TABLE columns_again RENAME TO columns",
	"UPDATE columns SET kind = 'rest' WHERE sql_name IS NULL AND"
	" (SELECT count(*) FROM columns c WHERE c.sql_name IS NOT NULL) >= 1500",
	"ALTER TABLE documents ADD COLUMN left_out {int} NOT NULL DEFAULT -1",
	"ALTER TABLE jobs ADD COLUMN new_columns {int} NOT NULL DEFAULT 0",
	"INSERT INTO numbers (name, last) VALUES ('columns', 1), ('rewritten', 0)",
};

/* Presets of several kinds, such as boards; a name is unique among those of its kind. */
static const char *const presets_kind[STATEMENTS_MAX] = {
	"CREATE TABLE presets_again (id {int} PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL,"
	" body TEXT NOT NULL, at {real} NOT NULL, UNIQUE (kind, name))",
	"INSERT INTO presets_again (id, kind, name, body, at)"
	" SELECT id, 'preset', name, body, at FROM presets",
	"DROP TABLE presets",
	"ALTER TABLE presets_again RENAME TO presets",
};

/* Words that people put on runs to find them by. */
static const char *const tags[STATEMENTS_MAX] = {
	"CREATE TABLE tags (id {int} PRIMARY KEY, run {int} NOT NULL REFERENCES documents (id)"
	" ON DELETE CASCADE, tag TEXT NOT NULL, who TEXT NOT NULL, at {real} NOT NULL,"
	" UNIQUE (run, tag))",
	"CREATE INDEX tags_tag ON tags (tag)",
	"INSERT INTO numbers (name, last) VALUES ('tag', 0)",
};

/* On PostgreSQL partitions_begin; nothing on SQLite. */
static const char *const partitioned[STATEMENTS_MAX] = { NULL };

static const char *const *const steps[] = {
	first, marks_metric, columns_come_back, presets_kind, tags, partitioned,
};

const struct store_table store_table[] = {
	{ "columns", "number, name, sql_name, kind", "number" },
	{ "documents",
	  "id, run_id, hash, kind, who, received, ran, flags, changed, checksum, left_out, cells",
	  "id" },
	{ "originals", "id, document", "id" },
	{ "arrays", "id, arrays", "id" },
	{ "removed", "id, changed", "id" },
	{ "jobs", "id, number, kind, state, detail, created, ended, new_columns", "number" },
	{ "job_files", "id, job, name, bytes, outcome, runs, run, reason", "id" },
	{ "presets", "id, kind, name, body, at", "id" },
	{ "annotations", "id, run, text, who, at", "id" },
	{ "exclusions", "id, run, reason, who, at, ended", "id" },
	{ "marks", "id, series, metric, place, kind, text, who, at", "id" },
	{ "tags", "id, run, tag, who, at", "id" },
	{ "traces", "id, run, name, hash, model, engine_commit, bytes, at, is_expired", "id" },
};
const size_t store_tables = COUNT(store_table);

static int64_t newest(void)
{
	return (int64_t)COUNT(steps);
}

/* Stores begin their changes 2^32 apart, at one of 2^30 places. */
int migrate_new_changes(struct db *d, int64_t *base, struct err *e)
{
	uint32_t random = 0;
	struct db_value v;

	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint32_t)clock_real_ns();
	*base = (int64_t)(random >> 2 | 1u) << 32;
	v = db_int(*base);
	return db_do(d, "UPDATE numbers SET last = $1 WHERE name = 'change'", &v, 1, e);
}

static int take_step(struct db *d, int64_t number, struct err *e)
{
	int64_t base;
	struct db_value v[2] = { db_int(number), db_real((double)clock_real_ns() / 1e9) };

	for (size_t i = 0; i < STATEMENTS_MAX && steps[number - 1][i]; i++) {
		struct buf sql = db_words(d->hooks, steps[number - 1][i]);
		int rc = db_do(d, sql.data, NULL, 0, e);

		buf_release(&sql);
		if (rc < 0)
			return -1;
	}
	if (number == 1 && migrate_new_changes(d, &base, e) < 0)
		return -1;
	if (steps[number - 1] == partitioned && d->hooks->is_partitioned &&
	    partitions_begin(d, e) < 0)
		return -1;
	return db_do(d, "INSERT INTO migrations (number, at) VALUES ($1, $2)", v, 2, e);
}

static int number_of(struct db *d, int64_t *number, struct err *e)
{
	return db_integer(d, "SELECT max(number) FROM migrations", NULL, 0, 0, number, e);
}

bool migrate_is_older(struct db *d)
{
	int64_t number;

	return number_of(d, &number, NULL) == 0 && number > 0 && number < newest();
}

static int too_new(const char *where, int64_t number, struct err *e)
{
	return err_set(e, ERR_STORE_NEWER,
		       "%s was made by a newer profllm: its tables have version %lld, and this program "
		       "knows them up to version %lld", where, (long long)number, (long long)newest());
}

/* A database that answers and was never a store. A damaged file of SQLite may look like one. */
static bool is_empty(struct db *d)
{
	int64_t is_missing = 0;

	return d->hooks->is_partitioned &&
	       db_integer(d, "SELECT (to_regclass('migrations') IS NULL)::int", NULL, 0, 0, &is_missing,
			  NULL) == 0 && is_missing;
}

int migrate(struct db *d, const char *where, bool is_read_only, struct err *e)
{
	int64_t number = 0;
	struct buf sql;
	int rc;

	/* Usually all is done: no lock for that. */
	if (number_of(d, &number, is_read_only ? e : NULL) < 0 && is_read_only)
		return is_empty(d) ? err_set(e, ERR_USAGE, "%s has no tables of a store yet: "
					     "`profllm ingest FILE --store URL` or a dashboard makes "
					     "them", where) :
				     err_wrap(e, "%s%s", where, d->hooks->is_partitioned ? "" :
					      " has no tables of a store");
	if (number > newest())
		return too_new(where, number, e);
	if (number == newest())
		return 0;
	if (is_read_only)
		return err_set(e, ERR_USAGE, "%s has the tables of an older profllm: back it up with that "
			       "one, then any verb that writes, such as `profllm dashboard`, brings it up "
			       "to date", where);
	if (db_begin(d, DB_WRITE, e) < 0)
		return err_wrap(e, "%s", where);
	sql = db_words(d->hooks, "CREATE TABLE IF NOT EXISTS migrations (number {int} PRIMARY KEY,"
				 " at {real} NOT NULL)");
	rc = db_do(d, sql.data, NULL, 0, e);
	buf_release(&sql);
	if (!rc)
		rc = number_of(d, &number, e);
	if (!rc && number > newest())
		rc = too_new(where, number, e);
	while (!rc && number < newest())
		rc = take_step(d, ++number, e);
	rc = db_end(d, rc, e);
	return rc ? err_wrap(e, "%s", where) : 0;
}
