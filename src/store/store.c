/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - opening, connections, transactions, and the index that follows them. */
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "store/migrate.h"
#include "store/pack.h"
#include "store/parts.h"

#define ROWS_AT_ONCE 4096
#define SAVE_CHANGES_MIN 10000         /* changes worth a new snapshot by themselves */
#define SAVE_WAIT_NS (300ll * 1000000000) /* any change is worth one after that */

double store_now_s(void)
{
	return (double)clock_real_ns() / 1e9;
}

/* ---- connections ---- */

struct db *store_reader(struct store *s, struct err *e)
{
	struct db *d = NULL;

	pthread_mutex_lock(&s->pool_lock);
	while (!s->n_idle && s->n_readers == STORE_READERS_MAX)
		pthread_cond_wait(&s->is_idle, &s->pool_lock);
	if (s->n_idle)
		d = s->idle[--s->n_idle];
	else
		s->n_readers++;
	pthread_mutex_unlock(&s->pool_lock);
	if (d || s->hooks->open(s->place, true, &d, e) == 0)
		return d;
	pthread_mutex_lock(&s->pool_lock);
	s->n_readers--;
	pthread_cond_signal(&s->is_idle);
	pthread_mutex_unlock(&s->pool_lock);
	return NULL;
}

void store_reader_back(struct store *s, struct db *d)
{
	pthread_mutex_lock(&s->pool_lock);
	s->idle[s->n_idle++] = d;
	pthread_cond_signal(&s->is_idle);
	pthread_mutex_unlock(&s->pool_lock);
}

int store_ask(struct store *s, const char *sql, const struct db_value *v, size_t n, db_row *row,
	      void *self, struct err *e)
{
	struct db *d = store_reader(s, e);
	int rc;

	if (!d)
		return -1;
	rc = db_run(d, sql, v, n, row, self, e);
	store_reader_back(s, d);
	return rc;
}

/* ---- what others have changed ---- */

struct follower {
	struct store *s;
	bool is_first; /* the index is empty yet */
	struct arena arena;
	struct row row[ROWS_AT_ONCE];
	unsigned flags[ROWS_AT_ONCE];
	size_t n;
};

static int flush(struct follower *f, struct err *e)
{
	int rc = f->n ? index_add_flagged(f->s->index, f->row, f->flags, f->n, e) : 0;

	f->n = 0;
	arena_release(&f->arena);
	return rc;
}

/* id, flags, cells */
static int follow_run(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct follower *f = self;
	unsigned flags = (unsigned)db_as_int(v[1]);
	struct row *r = &f->row[f->n];

	(void)n;
	if (!f->is_first && index_flag(f->s->index, db_as_int(v[0]), flags))
		return 0;
	*r = (struct row){ .id = db_as_int(v[0]) };
	if (unpack_row(db_as_bytes(v[2]), columns_name, &f->s->columns, &f->arena, r, e) < 0)
		return err_wrap(e, "run %lld", (long long)r->id);
	f->flags[f->n] = flags;
	return ++f->n < ROWS_AT_ONCE ? 0 : flush(f, e);
}

static int follow_removed(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct follower *f = self;

	(void)n;
	(void)e;
	index_flag(f->s->index, db_as_int(v[0]), INDEX_REMOVED);
	return 0;
}

/*
 * Within a transaction of d, which sees one moment. A removed number never comes back. Runs come in
 * the order of their numbers, whatever was said of them since: that is how the index finds them
 * fast. The plus keeps SQLite from walking all of the table for that.
 */
static int follow(struct store *s, struct db *d, int64_t until, struct err *e)
{
	static const char all[] = "SELECT id, flags, cells FROM documents ORDER BY id";
	static const char some[] = "SELECT id, flags, cells FROM documents WHERE changed > $1"
				   " ORDER BY +id";
	struct follower *f = mem_alloc(sizeof(*f));
	struct db_value from = db_int(s->sequence);
	int rc = columns_read(&s->columns, d, e);

	f->s = s;
	f->is_first = s->sequence < 0;
	if (!rc && s->index)
		rc = db_run(d, f->is_first ? all : some, &from, !f->is_first, follow_run, f, e);
	if (!rc && s->index)
		rc = flush(f, e);
	if (!rc && s->index)
		rc = db_run(d, "SELECT id, changed FROM removed WHERE changed > $1", &from, 1,
			    follow_removed, f, e);
	if (!rc)
		s->sequence = until;
	arena_release(&f->arena);
	free(f);
	return rc;
}

static int change_number(struct db *d, int64_t *out, struct err *e)
{
	return db_integer(d, "SELECT last FROM numbers WHERE name = 'change'", NULL, 0, 0, out, e);
}

int store_follow(struct store *s, struct db *d, int64_t *change, struct err *e)
{
	if (change_number(d, change, e) < 0)
		return -1;
	if (*change == s->sequence)
		return 0;
	if (s->sequence >= 0 && !MIGRATE_SAME_STORE(s->sequence, *change))
		return err_set(e, ERR_RUN, "%s was replaced by a restore; open it again", s->shown);
	return follow(s, d, *change, e);
}

static int refresh(struct store *s, struct err *e)
{
	int64_t change;
	int rc = change_number(s->writer, &change, e);

	if (rc || change == s->sequence)
		return rc;
	if (db_begin(s->writer, DB_READ, e) < 0)
		return -1;
	rc = store_follow(s, s->writer, &change, e);
	return db_end(s->writer, rc, e);
}

/* Whoever holds the lock is about to take the others' changes over. */
int store_refresh(struct store *s, struct err *e)
{
	int rc;

	if (pthread_mutex_trylock(&s->write_lock))
		return 0;
	rc = refresh(s, e);
	pthread_mutex_unlock(&s->write_lock);
	return rc;
}

/* ---- the snapshot ---- */

/* Under write_lock: what is saved is what `sequence` says. */
static int save(struct store *s, struct err *e)
{
	if (index_save(s->index, s->snapshot, s->sequence, e) < 0)
		return -1;
	s->saved = s->sequence;
	s->saved_ns = clock_mono_ns();
	return 0;
}

static bool has_snapshot(const struct store *s)
{
	return s->index && s->snapshot && !s->is_read_only;
}

int store_maintain(struct store *s, struct err *e)
{
	int rc;

	if (pthread_mutex_trylock(&s->write_lock))
		return 0;
	rc = refresh(s, e);
	if (!rc && has_snapshot(s) && s->sequence != s->saved &&
	    (s->sequence - s->saved >= SAVE_CHANGES_MIN ||
	     clock_mono_ns() - s->saved_ns >= SAVE_WAIT_NS))
		rc = save(s, e);
	pthread_mutex_unlock(&s->write_lock);
	return rc;
}

static int count_index(struct store *s, int64_t *out, struct err *e)
{
	struct index_view *v = index_view(s->index);
	struct query q = { .shown = INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED };
	struct answer answer = { 0 };
	struct arena a = { 0 };
	int rc = index_query(v, &q, &a, &answer, e);

	*out = (int64_t)answer.total;
	arena_release(&a);
	index_view_release(v);
	return rc;
}

/*
 * A snapshot is this store's when its number is among those the store gave out, and its runs are as
 * many.
 */
static int load(struct store *s, struct err *e)
{
	struct err why = { 0 };
	int64_t sequence = 0, change, there = 0, known = 0;

	if (change_number(s->writer, &change, e) < 0)
		return -1;
	if (s->snapshot && index_load(s->snapshot, &s->index, &sequence, &why) == 1) {
		if (MIGRATE_SAME_STORE(sequence, change) && sequence <= change) {
			s->sequence = s->saved = sequence;
			/* Also when nothing has changed since, which refresh() then finds. */
			if (columns_read(&s->columns, s->writer, &why) == 0 &&
			    refresh(s, &why) == 0 && count_index(s, &known, e) == 0 &&
			    db_integer(s->writer, "SELECT count(*) FROM documents", NULL, 0, 0, &there,
				       e) == 0 && there == known)
				return 0;
		}
		index_free(s->index);
		columns_release(&s->columns);
	}
	s->index = index_make();
	s->sequence = s->saved = -1;
	return refresh(s, e);
}

/* ---- open and close ---- */

static char *default_place(struct err *e)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	char *share, *folder, *path = NULL;

	if (data && *data)
		share = mem_text(data);
	else
		share = file_join(home && *home ? home : ".", ".local/share");
	folder = file_join(share, "profllm");
	if (file_mkdirs(folder, e) == 0)
		path = file_join(folder, "store.db");
	free(folder);
	free(share);
	return path;
}

static char *beside(const char *place, const char *ending)
{
	struct buf path = { 0 };

	buf_add_text(&path, place);
	buf_add_text(&path, ending);
	return buf_take(&path);
}

static int set_places(struct store *s, const struct store_opts *o, struct err *e)
{
	bool is_file;
	const char *place;

	if (o->url && *o->url) {
		s->hooks = db_hooks_of(o->url, &place, e);
		if (!s->hooks)
			return -1;
		s->place = mem_text(place);
	} else {
		s->hooks = &db_sqlite;
		s->place = default_place(e);
		if (!s->place)
			return -1;
	}
	is_file = s->hooks == &db_sqlite;
	if (is_file && !*s->place)
		return err_set(e, ERR_USAGE, "a store at sqlite: needs a path, such as sqlite:runs.db");
	s->shown = mem_text(is_file ? s->place : "the PostgreSQL store");
	if (o->snapshot)
		s->snapshot = *o->snapshot ? mem_text(o->snapshot) : NULL;
	else if (is_file)
		s->snapshot = beside(s->place, ".index");
	if (o->traces)
		s->traces = mem_text(o->traces);
	else if (is_file)
		s->traces = beside(s->place, ".traces");
	return 0;
}

int store_open(const struct store_opts *o, struct store **out, struct err *e)
{
	struct store *s = mem_alloc(sizeof(*s));
	int rc;

	s->is_read_only = o->is_read_only;
	pthread_mutex_init(&s->write_lock, NULL);
	pthread_mutex_init(&s->pool_lock, NULL);
	pthread_mutex_init(&s->step_lock, NULL);
	pthread_cond_init(&s->is_idle, NULL);
	s->sequence = s->saved = -1;
	s->saved_ns = clock_mono_ns();
	rc = set_places(s, o, e);
	if (!rc)
		rc = s->hooks->open(s->place, o->is_read_only, &s->writer, e);
	if (!rc)
		rc = migrate(s->writer, s->shown, o->is_read_only, e);
	if (!rc && !o->is_read_only)
		rc = columns_know(&s->columns, s->writer, e);
	if (!rc && !o->has_no_index)
		rc = load(s, e);
	if (rc) {
		index_free(s->index);
		s->index = NULL;
		store_close(s);
		return -1;
	}
	*out = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (has_snapshot(s) && s->sequence != s->saved)
		save(s, NULL);
	while (s->n_idle)
		s->hooks->close(s->idle[--s->n_idle]);
	if (s->writer)
		s->hooks->close(s->writer);
	index_free(s->index);
	columns_release(&s->columns);
	pthread_mutex_destroy(&s->write_lock);
	pthread_mutex_destroy(&s->pool_lock);
	pthread_mutex_destroy(&s->step_lock);
	pthread_cond_destroy(&s->is_idle);
	free(s->place);
	free(s->shown);
	free(s->snapshot);
	free(s->traces);
	free(s);
}

struct index *store_index(struct store *s)
{
	return s->index;
}

const char *store_kind(const struct store *s)
{
	return s->hooks->name;
}
