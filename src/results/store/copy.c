/* SPDX-License-Identifier: Apache-2.0 */
/*
 * copy.c - backup and restore. A backup is always one SQLite file with our tables, whatever its
 * database, so that a store can move between the two.
 *
 * SQLite copies itself, page by page. PostgreSQL's tables are copied row by row as of one moment,
 * and benchmark_runs, which only repeats the documents' cells, is rebuilt.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/mem.h"
#include "results/store/store_internal.h"

struct copy {
	struct db *to;
	const char *insert;
	bool is_columns, is_documents;
	struct columns columns; /* as `to` has them */
	int64_t base;           /* first of the new numbers of changes */
};

static int put_wide(struct copy *c, int64_t id, struct str cells, struct err *e)
{
	struct arena a = { 0 };
	struct row r = { 0 };
	int64_t *number = NULL;
	int rc = unpack_row(cells, columns_name, &c->columns, &a, &r, e);

	if (!rc) {
		number = arena_alloc(&a, (r.n + 1) * sizeof(*number));
		for (size_t i = 0; i < r.n; i++) {
			uint64_t at = 0;

			map_get(&c->columns.numbers, r.cell[i].column, &at);
			number[i] = (int64_t)at;
		}
		rc = store_wide_put(&c->columns, c->to, id, &r, number, e);
	}
	arena_release(&a);
	return rc;
}

static int copy_row(void *self, const struct db_got *got)
{
	struct copy *c = self;

	if (db_do(c->to, c->insert, got->v, got->n, got->e) < 0)
		return -1;
	if (!c->is_documents)
		return 0;
	return put_wide(c, db_as_int(got->v[0]), db_as_bytes(got->v[got->n - 1]), got->e);
}

static int copy_table(struct copy *c, struct db *from, const struct store_table *t, struct err *e)
{
	struct buf select = { 0 }, insert = { 0 };
	size_t n = 1;
	int rc;

	for (const char *p = t->columns; *p; p++)
		n += *p == ',';
	buf_printf(&select, "SELECT %s FROM %s ORDER BY %s", t->columns, t->name, t->order);
	buf_printf(&insert, "INSERT INTO %s (%s) VALUES (", t->name, t->columns);
	for (size_t i = 1; i <= n; i++)
		buf_printf(&insert, "%s$%zu", i > 1 ? ", " : "", i);
	buf_add_char(&insert, ')');
	c->insert = insert.data;
	c->is_documents = !strcmp(t->name, "documents");
	rc = db_run(from, select.data, NULL, 0, copy_row, c, e);
	buf_release(&select);
	buf_release(&insert);
	return rc ? err_wrap(e, "table %s", t->name) : 0;
}

static int copy_number(void *self, const struct db_got *got)
{
	struct copy *c = self;
	struct db_value swapped[2] = { got->v[1], got->v[0] };

	return db_do(c->to, "UPDATE numbers SET last = $1 WHERE name = $2", swapped, 2, got->e);
}

/* Gives runs new numbers of change, so that programs that knew the store before reload it. */
static int renumber(struct copy *c, struct err *e)
{
	struct db_value v;
	int64_t last;

	if (migrate_new_changes(c->to, &c->base, e) < 0 ||
	    db_integer(c->to, "SELECT last FROM numbers WHERE name = 'run'", NULL, 0, 0, &last, e) < 0)
		return -1;
	v = db_int(c->base);
	if (db_do(c->to, "UPDATE documents SET changed = $1 + id", &v, 1, e) < 0 ||
	    db_do(c->to, "UPDATE removed SET changed = $1 + id", &v, 1, e) < 0)
		return -1;
	if (db_do(c->to, "UPDATE numbers SET last = 0 WHERE name = 'rewritten'", NULL, 0, e) < 0)
		return -1;
	v = db_int(c->base + last);
	return db_do(c->to, "UPDATE numbers SET last = $1 WHERE name = 'change'", &v, 1, e);
}

/* Rebuilds the table benchmark_runs, without SQL columns that are unused. */
static int copy_columns(struct copy *c, struct err *e)
{
	if (db_do(c->to, "UPDATE columns SET sql_name = NULL, kind = NULL WHERE name IS NULL",
		  NULL, 0, e) < 0 || columns_read(&c->columns, c->to, e) < 0)
		return -1;
	return columns_know(&c->columns, c->to, e);
}

/* Both within a transaction; `to` has our tables, empty. */
static int copy_tables(struct db *from, struct db *to, struct err *e)
{
	struct copy c = { .to = to };
	int rc = 0;

	for (size_t i = 0; i < store_tables && !rc; i++) {
		rc = copy_table(&c, from, &store_table[i], e);
		if (!rc && !strcmp(store_table[i].name, "columns"))
			rc = copy_columns(&c, e);
	}
	if (!rc)
		rc = db_run(from, "SELECT name, last FROM numbers WHERE name <> 'change'"
				  " AND name NOT IN ('known_columns', 'columns', 'rewritten')", NULL, 0,
			    copy_number, &c, e);
	if (!rc)
		rc = renumber(&c, e);
	columns_release(&c.columns);
	return rc;
}

/* Rows of traces come along, their files do not. */
static int leave_traces_out(struct db *d, struct err *e)
{
	struct db_value v[2] = { db_int(TRACE_LEFT_OUT), db_int(TRACE_KEPT) };

	return db_do(d, "UPDATE traces SET is_expired = $1 WHERE is_expired = $2", v, 2, e);
}

/* ---- backup ---- */

static int export(struct db *from, const char *path, struct err *e)
{
	struct db *to = NULL;
	int rc = db_sqlite.open(path, false, &to, e);

	if (!rc)
		rc = migrate(to, path, false, e);
	if (!rc && (rc = db_begin(from, DB_READ, e)) == 0) {
		rc = db_begin(to, DB_WRITE, e);
		if (!rc)
			rc = db_end(to, copy_tables(from, to, e), e);
		db_end(from, -1, NULL); /* nothing was written there */
	}
	if (to)
		db_sqlite.close(to);
	return rc;
}

/* For both kinds of copy: adds what it lacks, and makes it one file without a separate log. */
static int finish_copy(const char *path, struct err *e)
{
	struct db *d = NULL;
	int rc = db_sqlite.open(path, false, &d, e);

	if (!rc)
		rc = leave_traces_out(d, e);
	if (!rc)
		rc = db_do(d, "PRAGMA journal_mode = DELETE", NULL, 0, e);
	if (d)
		db_sqlite.close(d);
	return rc;
}

static bool is_same_file(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* A file of SQLite with its log; to NULL: removes them. -1 with errno. */
static int move_files(const char *path, const char *to)
{
	static const char *const ending[] = { "-journal", "-wal", "-shm", "" };
	int rc = 0;

	for (size_t i = 0; i < 4; i++) {
		struct buf name = { 0 }, other = { 0 };

		buf_printf(&name, "%s%s", path, ending[i]);
		buf_printf(&other, "%s%s", to ? to : "", ending[i]);
		rc = to ? rename(name.data, other.data) : unlink(name.data);
		buf_release(&name);
		buf_release(&other);
	}
	return rc; /* of the file itself */
}

static void drop_temporary(const char *path)
{
	move_files(path, NULL);
}

int store_backup(struct store *s, const char *path, struct err *e)
{
	struct buf temporary = { 0 };
	struct db *d;
	int rc, fd;

	if (s->hooks == &db_sqlite && is_same_file(path, s->place))
		return err_set(e, ERR_USAGE, "%s is the store itself; a backup needs another file", path);
	d = store_reader(s, e);
	if (!d)
		return -1;
	buf_printf(&temporary, "%s.%d.part", path, (int)getpid());
	drop_temporary(temporary.data);
	/* Private, and SQLite would only say that it cannot open it. */
	fd = open(temporary.data, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0 || close(fd) < 0)
		rc = err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	else
		rc = s->hooks->copy ? s->hooks->copy(d, temporary.data, e) :
				      export(d, temporary.data, e);
	store_reader_back(s, d);
	if (!rc)
		rc = finish_copy(temporary.data, e);
	if (!rc && rename(temporary.data, path) < 0)
		rc = err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	if (!rc)
		file_sync_folder_of(path);
	if (rc)
		drop_temporary(temporary.data);
	buf_release(&temporary);
	return rc;
}

/* ---- restore ---- */

static int is_empty(struct db *to, bool *out, struct err *e)
{
	int64_t n;
	int rc = db_integer(to, "SELECT (SELECT count(*) FROM documents) + (SELECT count(*) FROM jobs)"
				" + (SELECT count(*) FROM presets) + (SELECT count(*) FROM marks)",
			    NULL, 0, 0, &n, e);

	*out = n == 0;
	return rc;
}

static int clear(struct db *to, struct err *e)
{
	const struct columns none = { 0 };

	if ((to->hooks->is_partitioned && partitions_clear(to, e) < 0) ||
	    columns_make(&none, to, e) < 0)
		return -1;
	for (size_t i = store_tables; i > 0; i--) {
		struct buf sql = { 0 };
		int rc;

		buf_printf(&sql, "DELETE FROM %s", store_table[i - 1].name);
		rc = db_do(to, sql.data, NULL, 0, e);
		buf_release(&sql);
		if (rc < 0)
			return -1;
	}
	return 0;
}

static int restore(struct db *from, struct db *to, const char *where, bool is_forced, struct err *e)
{
	bool empty;

	if (is_empty(to, &empty, e) < 0)
		return -1;
	if (!empty && !is_forced)
		return err_set(e, ERR_USAGE, "%s is not empty; --force replaces what it holds", where);
	if (clear(to, e) < 0 ||
	    (to->hooks->is_partitioned && partitions_like(from, to, e) < 0) ||
	    copy_tables(from, to, e) < 0)
		return -1;
	return leave_traces_out(to, e); /* for a backup by an older program */
}

/*
 * Gives a backup from an earlier program today's tables first, in a copy: the file itself is
 * unchanged. folder: of that copy, for the caller to remove.
 */
static int open_backup(const char *path, struct buf *folder, struct db **out, struct err *e)
{
	const char *set = getenv("TMPDIR");
	struct db *old;
	char *copy;
	int rc;

	if (db_sqlite.open(path, true, out, e) < 0)
		return -1;
	if (!migrate_is_older(*out))
		return migrate(*out, path, true, e);
	old = *out;
	*out = NULL;
	buf_printf(folder, "%s/profllm-restore-XXXXXX", set && *set ? set : "/tmp");
	if (!mkdtemp(folder->data)) {
		rc = err_set(e, ERR_IO, "%s: %s (TMPDIR names the folder)", folder->data,
			     strerror(errno));
		buf_reset(folder);
		db_sqlite.close(old);
		return rc;
	}
	copy = file_join(folder->data, "backup.db");
	rc = db_sqlite.copy(old, copy, e);
	db_sqlite.close(old);
	if (!rc)
		rc = db_sqlite.open(copy, false, out, e);
	if (!rc)
		rc = migrate(*out, path, false, e);
	free(copy);
	return rc;
}

static void drop_copy(struct buf *folder)
{
	if (folder->len) {
		char *copy = file_join(folder->data, "backup.db");

		drop_temporary(copy);
		rmdir(folder->data);
		free(copy);
	}
	buf_release(folder);
}

static int fill(struct db *from, const struct db_hooks *hooks, const char *place, bool is_forced,
		struct err *e)
{
	const char *where = hooks == &db_sqlite ? place : "the PostgreSQL store";
	struct db *to = NULL;
	int rc = hooks->open(place, false, &to, e);

	if (!rc)
		rc = migrate(to, where, false, e);
	if (!rc && (rc = db_begin(from, DB_READ, e)) == 0) {
		rc = db_begin(to, DB_WRITE, e);
		if (!rc)
			rc = db_end(to, restore(from, to, where, is_forced, e), e);
		db_end(from, -1, NULL);
	}
	if (to)
		hooks->close(to);
	return rc;
}

/* A damaged file and a newer one cannot be written: a new file takes its place, and it is kept. */
static int replace_file(struct db *from, const char *place, struct buf *aside, struct err *e)
{
	struct buf new = { 0 }, old = { 0 };
	struct stat st;
	int rc;

	buf_printf(&new, "%s.%d.part", place, (int)getpid());
	buf_printf(&old, "%s.replaced-%d", place, (int)getpid());
	rc = fill(from, &db_sqlite, new.data, false, e);
	if (!rc && (stat(place, &st) < 0 || chmod(new.data, st.st_mode & 0777) < 0 ||
		    chown(new.data, st.st_uid, st.st_gid) < 0 || move_files(place, old.data) < 0 ||
		    rename(new.data, place) < 0))
		rc = err_set(e, ERR_IO, "%s cannot be replaced: %s", place, strerror(errno));
	if (rc)
		drop_temporary(new.data);
	else
		file_sync_folder_of(place);
	if (!rc && aside)
		buf_add_str(aside, buf_str(&old));
	buf_release(&new);
	buf_release(&old);
	return rc;
}

static bool is_about(const struct err *e, const char *place)
{
	size_t n = strlen(place);

	return strncmp(e->text, place, n) == 0 && e->text[n] == ':';
}

int store_restore(const char *url, const char *path, bool is_forced, struct buf *aside,
		  struct err *e)
{
	const char *place;
	const struct db_hooks *hooks = db_hooks_of(url, &place, e);
	struct db *from = NULL;
	struct buf folder = { 0 };
	struct err why = { 0 };
	bool is_backup; /* the error is about the backup */
	int rc;

	if (!hooks)
		return -1;
	if (hooks == &db_sqlite && is_same_file(path, place))
		return err_set(e, ERR_USAGE, "%s is the store itself; a restore needs a backup", path);
	rc = open_backup(path, &folder, &from, &why);
	is_backup = rc < 0;
	if (!rc) {
		rc = fill(from, hooks, place, is_forced, &why);
		if (rc && is_forced && hooks == &db_sqlite &&
		    (why.code == ERR_RUN || why.kind == ERR_STORE_NEWER))
			rc = replace_file(from, place, aside, &why);
		is_backup = !is_about(&why, place);
	}
	if (rc && is_backup && why.kind == ERR_STORE_DAMAGED)
		err_set(&why, ERR_STORE_DAMAGED, "%s: the backup is damaged; the store is as it was: use "
			"another backup. Without one, `sqlite3 %s .recover` saves what can still be read",
			path, path);
	if (rc && is_backup && why.kind == ERR_STORE_FOREIGN)
		err_set(&why, ERR_STORE_FOREIGN, "%s: the file is not an SQLite database, so it is not a "
			"backup", path);
	if (rc && e)
		*e = why;
	if (from)
		db_sqlite.close(from);
	drop_copy(&folder);
	return rc;
}
