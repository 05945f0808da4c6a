/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - opening, connections, transactions, and the index that follows them. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "results/index/derive.h"
#include "results/store/store_internal.h"

#define ROWS_AT_ONCE 4096
#define ROWS_BYTES (4u << 20) /* or rows of this size; the allocator keeps it */
#define SAVE_CHANGES_MIN 10000         /* changes that justify a new snapshot, or this */
#define SAVE_SHARE 64                  /* part of all changes: this bounds the cost per run */
#define SAVE_WAIT_NS (300ll * 1000000000) /* any change justifies one after that */
#define SAVE_RETRY_NS (60ll * 1000000000) /* after a snapshot that could not be written */
#define LOOK_AGAIN_NS 500000000        /* at what others have changed, during a long task */
#define CLEAN_WAIT_NS (30ll * 1000000000) /* between two indexes without removed runs */

double store_now_s(void)
{
	return (double)clock_real_ns() / 1e9;
}

/* ---- connections ---- */

/* False while a server that hung is not tried; under pool_lock. */
static int may_ask(struct store *s, struct err *e)
{
	if (clock_mono_ns() >= s->rest_until_ns)
		return 0;
	return err_set(e, ERR_DATABASE_UNREACHABLE, "the store's server did not answer; the next "
		       "attempt is made in a few seconds");
}

static int store_may_ask(struct store *s, struct err *e)
{
	int rc;

	pthread_mutex_lock(&s->pool_lock);
	if (s->writer->rest_until_ns > s->rest_until_ns)
		s->rest_until_ns = s->writer->rest_until_ns;
	rc = may_ask(s, e);
	pthread_mutex_unlock(&s->pool_lock);
	return rc;
}

/* 0: the file that was opened is still the one at the store's place. */
static int check_file(struct store *s, struct err *e)
{
	if (!s->hooks->is_elsewhere || !s->hooks->is_elsewhere(s->writer))
		return 0;
	return err_set(e, ERR_RUN, "%s was removed, or another file put in its place, while this "
		       "program ran: put the right file there and restart it", s->shown);
}

struct db *store_reader(struct store *s, struct err *e)
{
	struct db *d = NULL;

	pthread_mutex_lock(&s->pool_lock);
	if (may_ask(s, e) < 0) {
		pthread_mutex_unlock(&s->pool_lock);
		return NULL;
	}
	while (!s->n_idle && s->n_readers == STORE_READERS_MAX)
		pthread_cond_wait(&s->is_idle, &s->pool_lock);
	if (s->n_idle)
		d = s->idle[--s->n_idle];
	else
		s->n_readers++;
	pthread_mutex_unlock(&s->pool_lock);
	if (d || (check_file(s, e) == 0 && s->hooks->open(s->place, true, &d, e) == 0))
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
	assert(d != s->writer && s->n_idle < STORE_READERS_MAX);
	if (d->rest_until_ns > s->rest_until_ns)
		s->rest_until_ns = d->rest_until_ns;
	s->idle[s->n_idle++] = d;
	pthread_cond_signal(&s->is_idle);
	pthread_mutex_unlock(&s->pool_lock);
}

void *store_list_add(struct store_list *l)
{
	if (l->n == l->room) {
		char *more;

		l->room = l->room ? 2 * l->room : 16;
		more = arena_alloc(l->a, l->room * l->size);
		if (l->n)
			memcpy(more, l->item, l->n * l->size);
		l->item = more;
	}
	return l->item + l->size * l->n++;
}

int store_take_id(void *self, const struct db_got *got)
{
	struct store_ids *l = self;

	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->id = mem_grow(l->id, l->room, sizeof(*l->id));
	}
	l->id[l->n++] = db_as_int(got->v[0]);
	return 0;
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

/* New runs go into the index some at a time, new flags of known ones all at once, at the end. */
struct follower {
	struct store *s;
	struct index *index;
	struct arena arena;
	struct row row[ROWS_AT_ONCE];
	unsigned flags[ROWS_AT_ONCE];
	size_t n;
	int64_t *changed;
	unsigned *changed_flags;
	size_t n_changed, room;
};

static int flush(struct follower *f, struct err *e)
{
	int rc = f->n ? index_add_flagged(f->index, f->row, f->flags, f->n, e) : 0;

	f->n = 0;
	arena_release(&f->arena);
	return rc;
}

static void change_later(struct follower *f, int64_t id, unsigned flags)
{
	if (f->n_changed == f->room) {
		f->room = f->room ? 2 * f->room : 256;
		f->changed = mem_grow(f->changed, f->room, sizeof(*f->changed));
		f->changed_flags = mem_grow(f->changed_flags, f->room, sizeof(*f->changed_flags));
	}
	f->changed[f->n_changed] = id;
	f->changed_flags[f->n_changed++] = flags;
}

/* id, flags, cells; without cells: a run that the index has */
static int follow_run(void *self, const struct db_got *got)
{
	struct follower *f = self;
	unsigned flags = (unsigned)db_as_int(got->v[1]);
	struct row *r = &f->row[f->n];

	if (got->v[2].kind == DB_NULL) {
		change_later(f, db_as_int(got->v[0]), flags);
		return 0;
	}
	*r = (struct row){ .id = db_as_int(got->v[0]) };
	if (unpack_row(db_as_bytes(got->v[2]), columns_name, &f->s->columns, &f->arena, r, got->e) <
	    0)
		return err_wrap(got->e, "run %lld", (long long)r->id);
	*r = derive(r, &f->arena);
	f->flags[f->n] = flags;
	f->n++;
	return f->n < ROWS_AT_ONCE && f->arena.bytes < ROWS_BYTES ? 0 : flush(f, got->e);
}

static int follow_removed(void *self, const struct db_got *got)
{
	change_later(self, db_as_int(got->v[0]), INDEX_REMOVED);
	return 0;
}

/*
 * Brings x from change `from` (below 0: it is empty) up to date, within a transaction of d, which
 * sees one moment. Numbers of runs grow and are never reused, so runs up to the index's last one
 * are known to it, and only their flags are read. Runs come in the order of their numbers, whatever
 * changed since: the index finds them fast that way. The plus keeps SQLite from walking the whole
 * table for that.
 */
static int follow(struct store *s, struct index *x, int64_t from, struct db *d, struct err *e)
{
	static const char all[] = "SELECT id, flags, cells FROM documents ORDER BY id";
	static const char some[] = "SELECT id, flags, CASE WHEN id > $1 THEN cells END FROM documents"
				   " WHERE changed > $2 ORDER BY +id";
	struct follower *f = mem_alloc(sizeof(*f));
	struct db_value v[2] = { db_int(x ? index_last_id(x) : 0), db_int(from) };
	int rc = columns_read(&s->columns, d, e);

	f->s = s;
	f->index = x;
	if (!rc && x)
		rc = db_run(d, from < 0 ? all : some, v, from < 0 ? 0 : 2, follow_run, f, e);
	if (!rc && x)
		rc = flush(f, e);
	if (!rc && x && from >= 0)
		rc = db_run(d, "SELECT id, changed FROM removed WHERE changed > $1", &v[1], 1,
			    follow_removed, f, e);
	if (!rc && f->n_changed)
		index_flag_all(x, f->changed, f->changed_flags, f->n_changed);
	arena_release(&f->arena);
	free(f->changed);
	free(f->changed_flags);
	free(f);
	return rc;
}

static int change_number(struct db *d, int64_t *out, struct err *e)
{
	return db_integer(d, "SELECT last FROM numbers WHERE name = 'change'", NULL, 0, 0, out, e);
}

/*
 * Brings x from the change `from` to *change, the last one. 1: impossible, because cells that it
 * has were rewritten, or dropped columns leave it no room.
 */
static int follow_to_end(struct store *s, struct index *x, int64_t from, struct db *d,
			 int64_t *change, struct err *e)
{
	struct err why = { 0 };
	int64_t rewritten = 0;

	if (change_number(d, change, e) < 0)
		return -1;
	if (*change == from)
		return 0;
	if (from >= 0 && !MIGRATE_SAME_STORE(from, *change)) {
		atomic_store(&s->is_replaced, true);
		return err_set(e, ERR_RUN, "%s was replaced by `profllm restore` while this "
			       "program ran: restart it", s->shown);
	}
	if (from >= 0 && db_integer(d, "SELECT last FROM numbers WHERE name = 'rewritten'", NULL, 0, 0,
				    &rewritten, e) < 0)
		return -1;
	if (x && from >= 0 && rewritten > from)
		return 1;
	if (follow(s, x, from, d, &why) == 0)
		return 0;
	if (x && from >= 0 && why.code == ERR_LIMIT)
		return 1;
	if (e)
		*e = why;
	return -1;
}

static void set_index(struct store *s, struct index *x)
{
	struct index *old = s->index;

	index_go_on_from(x, index_version(old));
	pthread_mutex_lock(&s->index_lock);
	s->index = x;
	pthread_mutex_unlock(&s->index_lock);
	index_free(old);
}

/* Within a transaction of d. */
static int make_index_anew(struct store *s, struct db *d, int64_t *change, struct err *e)
{
	struct index *x = index_make();

	s->is_index_bad = true;
	if (follow_to_end(s, x, -1, d, change, e) < 0) {
		index_free(x);
		return -1;
	}
	set_index(s, x);
	s->is_index_bad = false;
	return 0;
}

static int store_follow(struct store *s, struct db *d, int64_t *change, struct err *e)
{
	int rc = s->is_index_bad ? 1 : follow_to_end(s, s->index, s->sequence, d, change, e);

	if (rc > 0)
		rc = make_index_anew(s, d, change, e);
	if (rc < 0)
		return -1;
	s->sequence = *change;
	atomic_store(&s->n_own, s->columns.n_own);
	return 0;
}

int store_index_anew(struct store *s, struct err *e)
{
	int64_t change;

	s->is_index_bad = true;
	if (db_begin(s->writer, DB_READ, e) < 0)
		return -1;
	return db_end(s->writer, store_follow(s, s->writer, &change, e), e);
}

bool store_is_replaced(const struct store *s)
{
	return atomic_load(&s->is_replaced);
}

/* The same, under write_lock; otherwise nothing more is asked of this store. */
static int check_place(struct store *s, struct err *e)
{
	if (check_file(s, e) == 0)
		return 0;
	atomic_store(&s->is_replaced, true);
	s->hooks->settle(s->writer);
	return -1;
}

static int refresh(struct store *s, struct err *e)
{
	int64_t change = 0;
	int rc;

	if (store_is_replaced(s)) /* the refresh that found it has said so */
		return 0;
	rc = store_may_ask(s, e);
	if (!rc)
		rc = check_place(s, e);
	if (!rc)
		rc = change_number(s->writer, &change, e);
	if (rc || (change == s->sequence && !s->is_index_bad))
		return rc;
	if (db_begin(s->writer, DB_READ, e) < 0)
		return -1;
	rc = store_follow(s, s->writer, &change, e);
	return db_end(s->writer, rc, e);
}

/* If another thread holds the lock, it takes over the changes itself. */
int store_refresh(struct store *s, struct err *e)
{
	int rc;

	if (pthread_mutex_trylock(&s->write_lock))
		return 0;
	rc = refresh(s, e);
	pthread_mutex_unlock(&s->write_lock);
	return rc;
}

/* ---- keeping the index; all under keep_lock, most of it without write_lock ---- */

struct index_view *store_view(struct store *s)
{
	struct index_view *v;

	pthread_mutex_lock(&s->index_lock);
	v = index_view(s->index);
	pthread_mutex_unlock(&s->index_lock);
	return v;
}

/* A view of the index as of the change *sequence. */
static struct index_view *view_at(struct store *s, int64_t *sequence)
{
	struct index_view *v;

	pthread_mutex_lock(&s->write_lock);
	v = index_view(s->index);
	*sequence = s->sequence;
	pthread_mutex_unlock(&s->write_lock);
	return v;
}

static bool has_snapshot(const struct store *s)
{
	return s->index && s->snapshot && !s->is_read_only;
}

static int save(struct store *s, struct err *e)
{
	int64_t sequence;
	struct index_view *v = view_at(s, &sequence);
	int rc = index_save(v, s->snapshot, sequence, e);

	index_view_release(v);
	if (rc < 0) {
		s->save_not_before_ns = clock_mono_ns() + SAVE_RETRY_NS;
		return -1;
	}
	s->saved = sequence;
	s->saved_ns = clock_mono_ns();
	return 0;
}

/*
 * Under write_lock: replaces the index by x, whose last change is `from`. 1: it cannot be brought
 * up to date.
 */
static int replace_index(struct store *s, struct index *x, int64_t from, struct err *e)
{
	int64_t change = 0;
	int rc = s->is_index_bad ? 1 : db_begin(s->writer, DB_READ, e);

	if (!rc)
		rc = db_end(s->writer, follow_to_end(s, x, from, s->writer, &change, e), e);
	if (rc)
		return rc;
	set_index(s, x);
	s->sequence = change;
	return 0;
}

/* What others change meanwhile is followed as at any other time. */
struct look { struct store *s; int64_t at_ns; };

static void look_again(void *self)
{
	struct look *l = self;
	int64_t now = clock_mono_ns();

	if (now - l->at_ns < LOOK_AGAIN_NS)
		return;
	l->at_ns = now;
	store_refresh(l->s, NULL); /* if it fails, the next one says so */
}

/* Nothing of a removed run stays in memory, nor, as the next snapshot follows at once, on disk. */
static int forget_removed(struct store *s, struct err *e)
{
	int64_t sequence;
	struct index_view *v = view_at(s, &sequence);
	struct look look = { s, clock_mono_ns() };
	struct index *x = NULL;
	int rc = 0;

	if ((!s->cleaned_ns || clock_mono_ns() - s->cleaned_ns >= CLEAN_WAIT_NS) &&
	    index_removed(v))
		x = index_without_removed(v, look_again, &look);
	index_view_release(v);
	if (!x)
		return 0;
	s->cleaned_ns = clock_mono_ns();
	pthread_mutex_lock(&s->write_lock);
	rc = replace_index(s, x, sequence, e);
	pthread_mutex_unlock(&s->write_lock);
	if (rc)
		index_free(x);
	else
		s->saved = -1;
	return rc < 0 ? -1 : 0; /* else the next caller notices, and rebuilds it */
}

static bool is_save_due(struct store *s, int64_t sequence)
{
	int64_t now = clock_mono_ns(), new = sequence - s->saved;

	return has_snapshot(s) && new && now >= s->save_not_before_ns &&
	       (s->saved < 0 || now - s->saved_ns >= SAVE_WAIT_NS ||
		(new >= SAVE_CHANGES_MIN && new >= sequence / SAVE_SHARE));
}

int store_maintain(struct store *s, struct err *e)
{
	int64_t sequence;
	int rc;

	if (pthread_mutex_trylock(&s->keep_lock))
		return 0;
	rc = store_refresh(s, e);
	if (!rc && s->index)
		rc = forget_removed(s, e);
	pthread_mutex_lock(&s->write_lock);
	sequence = s->sequence;
	pthread_mutex_unlock(&s->write_lock);
	if (!rc && is_save_due(s, sequence))
		rc = save(s, e);
	pthread_mutex_unlock(&s->keep_lock);
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
 * Within a transaction of d, so that runs which others add meanwhile are in neither count: whether
 * the index, as loaded from a snapshot, has all runs once it is brought up to date. A snapshot is
 * this store's when its number is among those that the store gave out, and its runs are as many.
 */
static bool is_completed(struct store *s, struct db *d, struct err *why)
{
	int64_t change = 0, there = 0, known = 0;

	if (change_number(d, &change, why) < 0 || !MIGRATE_SAME_STORE(s->sequence, change) ||
	    s->sequence > change)
		return false;
	/* Also when nothing has changed since: then store_follow() does not read them. */
	return columns_read(&s->columns, d, why) == 0 && store_follow(s, d, &change, why) == 0 &&
	       count_index(s, &known, why) == 0 &&
	       db_integer(d, "SELECT count(*) FROM documents", NULL, 0, 0, &there, why) == 0 &&
	       there == known;
}

static int load(struct store *s, struct err *e)
{
	struct err why = { 0 };
	int64_t sequence = 0;
	bool is_whole;

	if (s->snapshot && index_load(s->snapshot, &s->index, &sequence, &why) == 1) {
		s->sequence = s->saved = sequence;
		if (db_begin(s->writer, DB_READ, e) < 0)
			return -1;
		is_whole = is_completed(s, s->writer, &why);
		if (db_end(s->writer, is_whole ? 0 : -1, &why) == 0)
			return 0;
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
	if (file_mkdirs_mode(folder, 0700, e) == 0)
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
	struct stat st;
	int rc;

	s->is_read_only = o->is_read_only;
	pthread_mutex_init(&s->write_lock, NULL);
	pthread_mutex_init(&s->pool_lock, NULL);
	pthread_mutex_init(&s->step_lock, NULL);
	pthread_mutex_init(&s->index_lock, NULL);
	pthread_mutex_init(&s->keep_lock, NULL);
	pthread_cond_init(&s->is_idle, NULL);
	s->sequence = s->saved = -1;
	s->saved_ns = clock_mono_ns();
	rc = set_places(s, o, e);
	if (!rc && o->must_exist && s->hooks == &db_sqlite && access(s->place, F_OK) < 0)
		rc = err_set(e, ERR_USAGE, "%s cannot be opened: %s", s->shown, strerror(errno));
	if (!rc)
		rc = s->hooks->open(s->place, o->is_read_only, &s->writer, e);
	if (!rc && s->writer->is_replica && !o->takes_replica)
		rc = err_set(e, ERR_STORE_READ_ONLY, "%s takes no writes, because its server is a "
			     "read replica or is set to be read only: name the primary server", s->shown);
	s->is_read_only |= !rc && s->writer->is_replica;
	s->mode = s->hooks == &db_sqlite && stat(s->place, &st) == 0 ? st.st_mode & 0666 : 0600;
	assert(!o->takes_older || (o->is_read_only && o->has_no_index));
	/* A copy of the file does not depend on its tables. */
	if (!rc && !(o->takes_older && s->hooks->copy && migrate_is_older(s->writer)))
		rc = migrate(s->writer, s->shown, s->is_read_only, e);
	if (!rc && !s->is_read_only)
		rc = columns_know(&s->columns, s->writer, e);
	if (!rc && !o->has_no_index)
		rc = load(s, e);
	if (rc) {
		index_free(s->index);
		s->index = NULL;
		store_close(s);
		return -1;
	}
	atomic_store(&s->n_own, s->columns.n_own);
	*out = s;
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	if (has_snapshot(s) && s->sequence != s->saved && !s->is_index_bad)
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
	pthread_mutex_destroy(&s->index_lock);
	pthread_mutex_destroy(&s->keep_lock);
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

void store_columns(struct store *s, struct store_columns *out)
{
	*out = (struct store_columns){ atomic_load(&s->n_own), columns_own_max() };
}

int store_bytes(struct store *s, int64_t *bytes, struct err *e)
{
	struct db *d = store_reader(s, e);
	int rc;

	if (!d)
		return -1;
	rc = db_integer(d, s->hooks->bytes, NULL, 0, 0, bytes, e);
	store_reader_back(s, d);
	return rc;
}

const char *store_file(const struct store *s)
{
	return s->hooks == &db_sqlite ? s->place : NULL;
}

size_t store_runs(struct store *s)
{
	struct query q = { .shown = INDEX_EXCLUDED | INDEX_ARCHIVED };
	struct index_view *v = store_view(s);
	struct answer answer = { 0 };
	struct arena a = { 0 };

	if (index_query(v, &q, &a, &answer, NULL) < 0)
		answer.total = 0;
	arena_release(&a);
	index_view_release(v);
	return answer.total;
}

const char *store_kind(const struct store *s)
{
	return s->hooks->name;
}

bool store_is_read_only(const struct store *s)
{
	return s->is_read_only;
}

/* ---- a transaction, and what it tells the index ---- */

int store_write_begin(struct store *s, struct store_write *w, struct err *e)
{
	*w = (struct store_write){ .db = s->writer };
	if (s->is_read_only)
		return err_set(e, ERR_USAGE, "%s is open for reading only", s->shown);
	pthread_mutex_lock(&s->write_lock);
	if (store_may_ask(s, e) == 0 && check_place(s, e) == 0 &&
	    db_begin(w->db, DB_WRITE, e) == 0) {
		if (store_follow(s, w->db, &w->change, e) == 0 &&
		    (s->columns.n || columns_read(&s->columns, w->db, e) == 0)) {
			w->began = w->change;
			w->edition = s->columns.edition;
			s->columns.is_edited = false;
			return 0;
		}
		db_end(w->db, -1, NULL);
	}
	pthread_mutex_unlock(&s->write_lock);
	return -1;
}

int64_t store_changed(struct store_write *w, int64_t id, unsigned flags, const struct row *row)
{
	assert(w->db && id > 0);
	if (w->n == w->room) {
		w->room = w->room ? 2 * w->room : 16;
		w->list = mem_grow(w->list, w->room, sizeof(*w->list));
	}
	w->list[w->n++] = (struct store_change){ id, flags, row };
	return ++w->change;
}

/* One new version for all of them. */
static void tell_flags(struct store *s, const struct store_write *w)
{
	int64_t *id = mem_array(w->n, sizeof(*id));
	unsigned *flags = mem_array(w->n, sizeof(*flags));
	size_t n = 0;

	for (size_t i = 0; i < w->n; i++) {
		const struct store_change *c = &w->list[i];

		if (c->row && !c->flags)
			continue;
		id[n] = c->id;
		flags[n++] = c->flags;
	}
	if (n)
		index_flag_all(s->index, id, flags, n);
	free(id);
	free(flags);
}

/*
 * And one for the runs that come. -1: they do not fit in, as the index still has columns of runs
 * that were removed.
 */
static int tell_index(struct store *s, const struct store_write *w)
{
	struct row *row = mem_array(w->n, sizeof(*row));
	struct arena a = { 0 };
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (!w->list[i].row)
			continue;
		row[n] = derive(w->list[i].row, &a);
		row[n++].id = w->list[i].id;
	}
	if (n)
		rc = index_add_all(s->index, row, n, NULL);
	if (!rc)
		tell_flags(s, w);
	free(row);
	arena_release(&a);
	return rc;
}

int store_write_end(struct store *s, struct store_write *w, int rc, struct err *e)
{
	struct db_value v = db_int(w->change);

	if (!rc && w->change != w->began)
		rc = db_do(w->db, "UPDATE numbers SET last = $1 WHERE name = 'change'", &v, 1, e);
	rc = db_end(w->db, rc, e);
	if (rc && s->columns.edition != w->edition)
		columns_again(&s->columns, w->db, NULL);
	if (!rc && w->n && s->index && tell_index(s, w) < 0)
		rc = store_index_anew(s, e);
	else if (!rc)
		s->sequence = w->change;
	for (size_t i = 0; !rc && i < PUT_OUTCOMES; i++)
		atomic_fetch_add(&s->put[i], w->put[i]);
	atomic_store(&s->n_own, s->columns.n_own);
	free(w->list);
	pthread_mutex_unlock(&s->write_lock);
	return rc;
}

int store_number(struct store_write *w, const char *kind, size_t n, int64_t *first, struct err *e)
{
	struct db_value v[2] = { db_int((int64_t)n), db_text(str_of(kind)) };
	int64_t last;

	assert(n > 0);
	if (db_integer(w->db, "UPDATE numbers SET last = last + $1 WHERE name = $2 RETURNING last", v,
		       2, 0, &last, e) < 0)
		return -1;
	*first = last - (int64_t)n + 1;
	return 0;
}

int store_set_flags(struct store_write *w, int64_t id, int64_t flags, struct err *e)
{
	struct db_value v[3] = { db_int(flags), db_int(store_changed(w, id, (unsigned)flags, NULL)),
				 db_int(id) };

	return db_do(w->db, "UPDATE documents SET flags = $1, changed = $2 WHERE id = $3", v, 3, e);
}

int store_fits(struct str text, size_t bytes_max, const char *what, struct err *e)
{
	if (text.n <= bytes_max)
		return 0;
	return err_set(e, ERR_USAGE, "%s has %zu bytes, at most %zu can be kept", what, text.n,
		       bytes_max);
}

int store_has_none(const char *what, int64_t id, struct err *e)
{
	return err_set(e, ERR_USAGE, "there is no %s with the number %lld", what, (long long)id);
}

int store_is_run(struct store_write *w, int64_t id, struct err *e)
{
	struct db_value v = db_int(id);
	int64_t found;

	if (db_integer(w->db, "SELECT id FROM documents WHERE id = $1", &v, 1, 0, &found, e) < 0)
		return -1;
	return found ? 0 : store_has_none("run", id, e);
}

struct str store_clean_name(struct buf *out, struct str name)
{
	buf_reset(out);
	for (size_t i = 0; i < name.n && out->len < STORE_NAME_BYTES_MAX - 4;) {
		struct str rest = { name.p + i, name.n - i };
		size_t step;

		if (utf8_decode(rest, &step) == UTF8_BAD)
			buf_add_text(out, "\xef\xbf\xbd");
		else if (*rest.p)
			buf_add(out, rest.p, step);
		i += step;
	}
	return buf_str(out);
}
