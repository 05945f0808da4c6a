/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sqlite.c - the store in one file, by SQLite.
 *
 * The journal is a write-ahead log that is synced at each commit: readers never wait for the
 * writer, and a commit that returned survives a loss of power.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/library.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "results/store/store.h"
#include "results/store/store_internal.h"

/* The functions used, loaded on first use. */
#define SQLITE_CALLS(X) X(sqlite3_backup_finish) X(sqlite3_backup_init) \
	X(sqlite3_backup_step) X(sqlite3_bind_blob64) X(sqlite3_bind_double) \
	X(sqlite3_bind_int64) X(sqlite3_bind_null) X(sqlite3_bind_parameter_count) \
	X(sqlite3_bind_parameter_name) X(sqlite3_bind_text64) X(sqlite3_busy_handler) \
	X(sqlite3_clear_bindings) X(sqlite3_close) X(sqlite3_column_blob) X(sqlite3_column_bytes) \
	X(sqlite3_column_count) X(sqlite3_column_double) X(sqlite3_column_int64) \
	X(sqlite3_column_text) X(sqlite3_column_type) X(sqlite3_errcode) X(sqlite3_errmsg) \
	X(sqlite3_exec) X(sqlite3_extended_result_codes) X(sqlite3_finalize) X(sqlite3_open_v2) \
	X(sqlite3_prepare_v3) X(sqlite3_reset) X(sqlite3_sql) X(sqlite3_step) \
	X(sqlite3_system_errno)
LIBRARY(lib, SQLITE_CALLS, "libsqlite3.so.0", "libsqlite3-0");

#define BUSY_MS (STORE_WRITER_SECONDS * 1000)
#define BUSY_SHORT 100 /* waits of half a millisecond, then of five */
#define ROW_VALUES_MAX 64
#define KEY_BYTES 512   /* of a statement's text, used as its key */

struct sqlite {
	struct db db;
	sqlite3 *handle;
	struct map statements; /* by key_of */
	sqlite3_stmt *statement[DB_STATEMENTS_MAX];
	struct arena texts;
	size_t n;
	char *path;
	dev_t device; /* of the file that was opened */
	ino_t inode;  /* 0: not a file with a name */
};

/* SQLite's own waits grow to 100 ms, during which others overtake repeatedly. */
static int wait_busy(void *self, int n)
{
	struct timespec nap = { 0, n < BUSY_SHORT ? 500000 : 5000000 };

	(void)self;
	if (n > BUSY_SHORT + BUSY_MS / 5)
		return 0;
	nanosleep(&nap, NULL);
	return 1;
}

/* A read-only file system, or a folder of another user: SQLite says that the file is not there. */
static bool lacks_log(const struct sqlite *s)
{
	return access(s->path, R_OK) == 0 && lib.sqlite3_system_errno(s->handle) != EACCES;
}

static int fail(struct sqlite *s, struct err *e)
{
	int code = lib.sqlite3_errcode(s->handle), why = lib.sqlite3_system_errno(s->handle);

	if (code == SQLITE_BUSY || code == SQLITE_LOCKED)
		return err_set(e, ERR_STORE_BUSY, "%s: another process has been writing for %d s", s->path,
			       STORE_WRITER_SECONDS);
	if (code == SQLITE_NOTADB)
		return err_set(e, ERR_STORE_FOREIGN, "%s: the file is not an SQLite database, so it is not "
			       "a %s", s->path, s->db.backup ? "backup" : "store");
	if (code == SQLITE_CORRUPT && s->db.backup)
		return err_set(e, ERR_STORE_DAMAGED, "%s: the backup is damaged: %s. Nothing was restored; use "
			       "another backup. Without one, `sqlite3 %s .recover` saves what can still be "
			       "read", s->db.backup, lib.sqlite3_errmsg(s->handle), s->db.backup);
	if (code == SQLITE_CORRUPT)
		return err_set(e, ERR_STORE_DAMAGED, "%s: the store is damaged: %s. " STORE_REMEDY, s->path,
			       lib.sqlite3_errmsg(s->handle));
	if (code == SQLITE_FULL || (code == SQLITE_IOERR && (why == ENOSPC || why == EDQUOT)))
		return err_set(e, ERR_DISK_FULL, "%s: its disk is full: make room there, then do this "
			       "again; what was stored before is safe", s->path);
	if ((code == SQLITE_CANTOPEN || code == SQLITE_IOERR) && file_is_dir(s->path))
		return err_set(e, ERR_USAGE, "%s is a folder; expected the file of a store, such as "
			       "%s/runs.db", s->path, s->path);
	if (code == SQLITE_READONLY || (code == SQLITE_CANTOPEN && lacks_log(s)))
		return err_set(e, ERR_USAGE, "%s cannot be opened by this user: SQLite writes %s-wal and "
			       "%s-shm next to it, even to read; have its owner give access to file and "
			       "folder, or copy the file to a folder that can be written", s->path,
			       s->path, s->path);
	if (code == SQLITE_CANTOPEN && why)
		return err_set(e, ERR_USAGE, "%s cannot be opened: %s", s->path, strerror(why));
	err_set(e, code == SQLITE_CANTOPEN ? ERR_USAGE : code == SQLITE_IOERR ? ERR_IO : ERR_RUN,
		"%s: %s", s->path, lib.sqlite3_errmsg(s->handle));
	if (e && code == SQLITE_IOERR && why)
		err_add(e, ": %s", strerror(why));
	return -1;
}

static void forget(struct sqlite *s)
{
	for (size_t i = 0; i < s->n; i++)
		lib.sqlite3_finalize(s->statement[i]);
	s->n = 0;
	map_release(&s->statements);
	arena_release(&s->texts);
}

static void remember_file(struct sqlite *s)
{
	struct stat st;

	if (stat(s->path, &st) < 0)
		return;
	s->device = st.st_dev;
	s->inode = st.st_ino;
}

/* What SQLite writes then goes into a file without a name, and its log would damage the new one. */
static bool is_elsewhere(const struct db *d)
{
	const struct sqlite *s = (const struct sqlite *)d;
	struct stat st;

	if (!s->inode)
		return false;
	if (stat(s->path, &st) < 0)
		return errno == ENOENT;
	return st.st_dev != s->device || st.st_ino != s->inode;
}

/* All of the log into the file that was opened: a new file at its place then gets no page of it. */
static void settle(struct db *d)
{
	lib.sqlite3_exec(((struct sqlite *)d)->handle, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL,
			 NULL);
}

static void close_(struct db *d)
{
	struct sqlite *s = (struct sqlite *)d;

	forget(s);
	if (is_elsewhere(d)) /* SQLite leaves the log there then */
		settle(d);
	lib.sqlite3_close(s->handle);
	free(s->path);
	free(s);
}

/* If several processes create the same store, SQLite refuses some of them without waiting. */
static int use_log(struct sqlite *s)
{
	int64_t until_ns = clock_mono_ns() + BUSY_MS * 1000000ll;
	int code;

	do {
		code = lib.sqlite3_exec(s->handle, "PRAGMA journal_mode = WAL", NULL, NULL, NULL);
	} while (code == SQLITE_BUSY && clock_mono_ns() < until_ns && wait_busy(NULL, 0));
	return code;
}

/*
 * A new store is private to its owner: documents name models, hosts and people. SQLite gives its
 * log and its shared memory the permissions of the store; an existing store's are kept. Only opens
 * a new file: closing an existing one would end SQLite's locks on it in this process.
 */
static void make_private(const char *path)
{
	int fd = *path && *path != ':' ?
			 open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

	if (fd >= 0)
		close(fd);
}

/* Its creation was interrupted, before it had a log: whatever opens it next has to undo that. */
static bool has_journal(const char *place)
{
	struct buf path = { 0 };
	bool has;

	buf_printf(&path, "%s-journal", place);
	has = access(path.data, F_OK) == 0;
	buf_release(&path);
	return has;
}

int sqlite_open_backup(const char *place, bool is_read_only, const char *backup, struct db **out,
		       struct err *e)
{
	/* KiB of pages, for each connection: a reader looks up few runs, a writer many places. */
	const char *const pragma[] = {
		"PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON", "PRAGMA temp_store = MEMORY",
		is_read_only ? "PRAGMA cache_size = -2048" : "PRAGMA cache_size = -16384",
	};
	struct sqlite *s;
	int flags = !is_read_only ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE :
		    has_journal(place) ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY;

	if (library_open(&lib_library, e) < 0)
		return -1;
	s = mem_alloc(sizeof(*s));
	s->db.hooks = &db_sqlite;
	s->db.backup = backup;
	s->path = mem_text(place);
	if (!is_read_only)
		make_private(place);
	if (lib.sqlite3_open_v2(place, &s->handle, flags | SQLITE_OPEN_NOMUTEX, NULL) != SQLITE_OK)
		goto bad;
	lib.sqlite3_busy_handler(s->handle, wait_busy, NULL);
	lib.sqlite3_extended_result_codes(s->handle, 0);
	if (!is_read_only && use_log(s) != SQLITE_OK)
		goto bad;
	for (size_t i = 0; i < sizeof(pragma) / sizeof(pragma[0]); i++)
		if (lib.sqlite3_exec(s->handle, pragma[i], NULL, NULL, NULL) != SQLITE_OK)
			goto bad;
	remember_file(s);
	*out = &s->db;
	return 0;
bad:
	fail(s, e);
	close_(&s->db);
	return -1;
}

static int open_(const char *place, bool is_read_only, struct db **out, struct err *e)
{
	return sqlite_open_backup(place, is_read_only, NULL, out, e);
}

/* The text; of a long one bytes from all over it, so that looking it up costs little. */
static struct str key_of(const char *sql, char key[static KEY_BYTES])
{
	size_t n = strlen(sql);

	if (n < KEY_BYTES)
		return (struct str){ sql, n };
	for (size_t i = 0; i < KEY_BYTES; i++)
		key[i] = sql[i * (n - 1) / (KEY_BYTES - 1)];
	return (struct str){ key, KEY_BYTES };
}

static sqlite3_stmt *prepare(struct sqlite *s, const char *sql, struct err *e)
{
	sqlite3_stmt *made = NULL;

	if (lib.sqlite3_prepare_v3(s->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, &made, NULL) !=
	    SQLITE_OK) {
		fail(s, e);
		return NULL;
	}
	for (int i = 1; i <= lib.sqlite3_bind_parameter_count(made); i++) {
		const char *name = lib.sqlite3_bind_parameter_name(made, i);
		int64_t number;

		assert(name && str_to_i64(str_of(name + 1), &number) && number == i);
	}
	return made;
}

static sqlite3_stmt *statement_of(struct sqlite *s, const char *sql, struct err *e)
{
	char buffer[KEY_BYTES];
	struct str key = key_of(sql, buffer);
	sqlite3_stmt *made;
	uint64_t at;
	bool is_there = map_get(&s->statements, key, &at);

	if (is_there && strcmp(lib.sqlite3_sql(s->statement[at]), sql) == 0)
		return s->statement[at];
	made = prepare(s, sql, e);
	if (!made)
		return NULL;
	if (is_there) {
		lib.sqlite3_finalize(s->statement[at]);
	} else {
		if (s->n == DB_STATEMENTS_MAX)
			forget(s);
		at = s->n++;
		map_put(&s->statements, arena_str(&s->texts, key), at);
	}
	s->statement[at] = made;
	return made;
}

static int bind_value(sqlite3_stmt *q, int at, struct db_value v)
{
	switch (v.kind) {
	case DB_NULL: return lib.sqlite3_bind_null(q, at);
	case DB_BOOL:
	case DB_INT: return lib.sqlite3_bind_int64(q, at, v.integer);
	case DB_REAL: return lib.sqlite3_bind_double(q, at, v.real);
	case DB_TEXT:
		return lib.sqlite3_bind_text64(q, at, v.bytes.n ? v.bytes.p : "", v.bytes.n,
					   SQLITE_STATIC, SQLITE_UTF8);
	case DB_BLOB:
		return lib.sqlite3_bind_blob64(q, at, v.bytes.n ? v.bytes.p : "", v.bytes.n,
					   SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

static struct db_value column_value(sqlite3_stmt *q, int at)
{
	struct db_value v = { .kind = DB_NULL };

	switch (lib.sqlite3_column_type(q, at)) {
	case SQLITE_INTEGER: return db_int(lib.sqlite3_column_int64(q, at));
	case SQLITE_FLOAT: return db_real(lib.sqlite3_column_double(q, at));
	case SQLITE_TEXT:
		v.kind = DB_TEXT;
		v.bytes.p = (const char *)lib.sqlite3_column_text(q, at);
		v.bytes.n = (size_t)lib.sqlite3_column_bytes(q, at);
		break;
	case SQLITE_BLOB:
		v.kind = DB_BLOB;
		v.bytes.p = lib.sqlite3_column_blob(q, at);
		v.bytes.n = (size_t)lib.sqlite3_column_bytes(q, at);
		break;
	default: break;
	}
	return v;
}

static int run(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
	       void *self, struct err *e)
{
	struct sqlite *s = (struct sqlite *)d;
	struct db_value small[ROW_VALUES_MAX], *value = small;
	sqlite3_stmt *q = statement_of(s, sql, e);
	int step = SQLITE_OK, rc = 0, width;

	if (!q)
		return -1;
	width = lib.sqlite3_column_count(q);
	if (width > ROW_VALUES_MAX)
		value = mem_array((size_t)width, sizeof(*value));
	for (size_t i = 0; i < n && step == SQLITE_OK; i++)
		step = bind_value(q, (int)i + 1, v[i]);
	while (step == SQLITE_OK || step == SQLITE_ROW) {
		step = lib.sqlite3_step(q);
		if (step != SQLITE_ROW || !row)
			continue;
		for (int i = 0; i < width; i++)
			value[i] = column_value(q, i);
		rc = row(self, &(struct db_got){ value, (size_t)width, e });
		if (rc)
			break;
	}
	if (rc >= 0)
		rc = step == SQLITE_DONE || step == SQLITE_ROW ? 0 : fail(s, e);
	lib.sqlite3_reset(q);
	lib.sqlite3_clear_bindings(q);
	if (value != small)
		free(value);
	return rc;
}

/* In one step: a reader's view of one moment, while others write on. */
static int copy(struct db *d, const char *path, struct err *e)
{
	struct sqlite *s = (struct sqlite *)d;
	sqlite3_backup *b = NULL;
	sqlite3 *to = NULL;
	int rc = -1, step = SQLITE_OK;

	make_private(path);
	if (lib.sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, NULL) !=
		    SQLITE_OK ||
	    lib.sqlite3_exec(to, "PRAGMA synchronous = FULL", NULL, NULL, NULL) != SQLITE_OK) {
		err_set(e, ERR_IO, "%s: %s", path, lib.sqlite3_errmsg(to));
		goto done;
	}
	b = lib.sqlite3_backup_init(to, "main", s->handle, "main");
	if (b)
		step = lib.sqlite3_backup_step(b, -1);
	if (!b || lib.sqlite3_backup_finish(b) != SQLITE_OK || step != SQLITE_DONE) {
		err_set(e, ERR_IO, "%s: the copy stopped: %s", path, lib.sqlite3_errmsg(to));
		goto done;
	}
	/* One file, without a separate log. */
	if (lib.sqlite3_exec(to, "PRAGMA journal_mode = DELETE", NULL, NULL, NULL) != SQLITE_OK) {
		err_set(e, ERR_IO, "%s: %s", path, lib.sqlite3_errmsg(to));
		goto done;
	}
	rc = 0;
done:
	lib.sqlite3_close(to);
	return rc;
}

const struct db_hooks db_sqlite = {
	.name = "sqlite",
	.begin = { [DB_WRITE] = { "BEGIN IMMEDIATE" }, [DB_READ] = { "BEGIN" } },
	.word = { "INTEGER", "DOUBLE PRECISION", "BLOB",
		  " REFERENCES documents (id) ON DELETE CASCADE" },
	.open = open_,
	.close = close_,
	.run = run,
	.copy = copy,
	.is_elsewhere = is_elsewhere,
	.settle = settle,
	.bytes = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size",
	.integrity = "PRAGMA integrity_check",
};
