/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - what becomes of old runs: archived, removed, and traces that take too much room. */
#include <time.h>

#include "core/base/mem.h"
#include "results/store/parts.h"

#define DAY_S 86400.0
#define ANY_FLAGS (INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED)
#define RUNS_AT_ONCE 5000      /* in one transaction: a tenth of a second, in which others wait */
#define PAUSE_NS 10000000      /* between two: longer than a writer waits before it tries again */

struct one_run {
	int64_t id, flags;
	struct arena *a;
	struct str run_id;
};

/* id, flags, run_id */
static int take_one(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct one_run *o = self;

	(void)e;
	o->id = db_as_int(v[0]);
	o->flags = db_as_int(v[1]);
	if (n > 2)
		o->run_id = arena_str(o->a, db_as_bytes(v[2]));
	return 1;
}

static int set_flags(struct store_write *w, int64_t id, int64_t flags, struct err *e)
{
	struct db_value v[3] = { db_int(flags), db_int(store_changed(w, id, (unsigned)flags, NULL)),
				 db_int(id) };

	return db_run(w->db, "UPDATE documents SET flags = $1, changed = $2 WHERE id = $3", v, 3,
		      NULL, NULL, e);
}

static int archive(struct store_write *w, const int64_t *id, size_t n_ids, bool is_archived,
		   size_t *n, struct err *e)
{
	for (size_t i = 0; i < n_ids; i++) {
		struct db_value v = db_int(id[i]);
		struct one_run o = { 0 };
		int64_t flags;

		if (db_run(w->db, "SELECT id, flags FROM documents WHERE id = $1", &v, 1, take_one, &o,
			   e) < 0)
			return -1;
		flags = is_archived ? o.flags | INDEX_ARCHIVED : o.flags & ~(int64_t)INDEX_ARCHIVED;
		if (!o.id || flags == o.flags)
			continue;
		if (set_flags(w, o.id, flags, e) < 0)
			return -1;
		++*n;
	}
	return 0;
}

/* Of what is left of a run_id, the newest is the one that is shown. */
static int show_newest(struct store_write *w, struct str run_id, struct err *e)
{
	struct db_value v = db_text(run_id);
	struct one_run o = { 0 };

	if (db_run(w->db, "SELECT id, flags FROM documents WHERE run_id = $1 ORDER BY id DESC LIMIT 1",
		   &v, 1, take_one, &o, e) < 0)
		return -1;
	if (!o.id || !(o.flags & INDEX_SUPERSEDED))
		return 0;
	return set_flags(w, o.id, o.flags & ~(int64_t)INDEX_SUPERSEDED, e);
}

/* Documents, arrays, notes and exclusions go with the row that they refer to. */
static int remove_one(struct store *s, struct store_write *w, int64_t id, size_t *n, struct err *e)
{
	struct arena a = { 0 };
	struct one_run o = { .a = &a };
	struct db_value v[2] = { db_int(id) };
	int rc = db_run(w->db, "SELECT id, flags, run_id FROM documents WHERE id = $1", v, 1, take_one,
			&o, e);

	if (!rc && o.id) {
		++*n;
		rc = store_traces_forget(s, w, id, e);
		if (!rc)
			rc = db_run(w->db, "DELETE FROM documents WHERE id = $1", v, 1, NULL, NULL, e);
		v[1] = db_int(store_changed(w, id, INDEX_REMOVED, NULL));
		if (!rc)
			rc = db_run(w->db, "INSERT INTO removed (id, changed) VALUES ($1, $2)", v, 2,
				    NULL, NULL, e);
		if (!rc)
			rc = show_newest(w, o.run_id, e);
	}
	arena_release(&a);
	return rc;
}

enum change { ARCHIVE, UNARCHIVE, REMOVE };

/* Within a transaction; *n: how many were not like that before. */
static int change_all(struct store *s, struct store_write *w, enum change what, const int64_t *id,
		      size_t n_ids, size_t *n, struct err *e)
{
	if (what != REMOVE)
		return archive(w, id, n_ids, what == ARCHIVE, n, e);
	for (size_t i = 0; i < n_ids; i++)
		if (remove_one(s, w, id[i], n, e) < 0)
			return -1;
	return 0;
}

static void let_others_write(void)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };

	nanosleep(&pause, NULL);
}

/* A failure says how many runs were changed before it. */
static int with_count(int rc, size_t n, struct err *e)
{
	return rc && n ? err_wrap(e, "after %zu runs", n) : rc;
}

/* ---- by a filter ---- */

static int chosen(struct store *s, const struct filter *f, struct arena *a, int64_t **id, size_t *n,
		  struct err *e)
{
	struct index_view *v;
	struct value *none;
	int rc;

	if (!s->index)
		return err_set(e, ERR_USAGE, "%s was opened without its index, which finds the runs",
			       s->shown);
	if (store_refresh(s, e) < 0)
		return -1;
	v = store_view(s);
	rc = index_select(v, f, ANY_FLAGS, NULL, 0, a, id, n, &none, e);
	index_view_release(v);
	return rc;
}

static int change_chosen(struct store *s, const struct filter *f, enum change what, size_t *n,
			 struct err *e)
{
	struct arena a = { 0 };
	struct store_write w;
	int64_t *id;
	size_t n_ids;
	int rc = chosen(s, f, &a, &id, &n_ids, e);

	*n = 0;
	for (size_t at = 0; !rc && at < n_ids; at += RUNS_AT_ONCE) {
		size_t some = n_ids - at < RUNS_AT_ONCE ? n_ids - at : RUNS_AT_ONCE, changed = 0;

		if (at)
			let_others_write();
		rc = store_write_begin(s, &w, e);
		if (rc)
			break;
		rc = change_all(s, &w, what, id + at, some, &changed, e);
		rc = store_write_end(s, &w, rc, e);
		*n += rc ? 0 : changed;
	}
	arena_release(&a);
	return with_count(rc, *n, e);
}

int store_archive(struct store *s, const struct filter *f, bool is_archived, size_t *n,
		  struct err *e)
{
	return change_chosen(s, f, is_archived ? ARCHIVE : UNARCHIVE, n, e);
}

int store_remove(struct store *s, const struct filter *f, size_t *n, struct err *e)
{
	size_t n_columns;

	if (change_chosen(s, f, REMOVE, n, e) < 0)
		return -1;
	return *n ? store_columns_give_back(s, &n_columns, e) : 0;
}

/* ---- by age ---- */

struct ids {
	int64_t *id;
	size_t n, room;
};

static int take_id(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct ids *l = self;

	(void)n;
	(void)e;
	if (l->n == l->room) {
		l->room = l->room ? 2 * l->room : 64;
		l->id = mem_grow(l->id, l->room, sizeof(*l->id));
	}
	l->id[l->n++] = db_as_int(v[0]);
	return 0;
}

/* A run is as old as its document says, else as long as it has been here. */
static int older(struct store_write *w, double before_s, bool is_archived, struct ids *out,
		 struct err *e)
{
	struct db_value v[3] = { db_real(before_s), db_int(is_archived ? INDEX_ARCHIVED : 0),
				 db_int(RUNS_AT_ONCE) };

	out->n = 0;
	return db_run(w->db, "SELECT id FROM documents WHERE coalesce(ran, received) < $1"
			     " AND (flags & 2) = $2 ORDER BY id LIMIT $3", v, 3, take_id, out, e);
}

/* Those that are older, some at a time, until no run is found any more. */
static int change_older(struct store *s, enum change what, double days, size_t *n, struct err *e)
{
	double before_s = store_now_s() - days * DAY_S;
	struct ids old = { 0 };
	int rc;

	do {
		struct store_write w;
		size_t changed = 0;

		if (*n)
			let_others_write();
		rc = store_write_begin(s, &w, e);
		if (rc)
			break;
		rc = older(&w, before_s, what == REMOVE, &old, e);
		if (!rc)
			rc = change_all(s, &w, what, old.id, old.n, &changed, e);
		rc = store_write_end(s, &w, rc, e);
		*n += rc ? 0 : changed;
	} while (!rc && old.n == RUNS_AT_ONCE);
	free(old.id);
	return with_count(rc, *n, e);
}

static int expire_traces(struct store *s, const struct retention *r, size_t *n, struct err *e)
{
	double before_s = r->trace_days > 0 ? store_now_s() - r->trace_days * DAY_S : -1e300;
	struct store_write w;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	return store_write_end(s, &w,
			       store_traces_expire(s, &w, before_s, r->trace_bytes, n, e), e);
}

int store_retain(struct store *s, const struct retention *r, struct buf *told, struct err *e)
{
	size_t n_removed = 0, n_archived = 0, n_traces = 0, n_columns;
	int rc = 0;

	/* Only what was archived before goes, so that nothing that was in view is gone at once. */
	if (r->remove_days > 0)
		rc = change_older(s, REMOVE, r->remove_days, &n_removed, e);
	if (!rc && n_removed)
		rc = store_columns_give_back(s, &n_columns, e);
	if (!rc && r->archive_days > 0)
		rc = change_older(s, ARCHIVE, r->archive_days, &n_archived, e);
	if (!rc && (r->trace_days > 0 || r->trace_bytes > 0))
		rc = expire_traces(s, r, &n_traces, e);
	if (!rc)
		buf_printf(told, "%zu runs removed, %zu archived, %zu traces expired", n_removed,
			   n_archived, n_traces);
	return rc;
}
