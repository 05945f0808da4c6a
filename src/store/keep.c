/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - what becomes of old runs: archived, removed, and traces that take too much room. */
#include "base/mem.h"
#include "store/parts.h"

#define DAY_S 86400.0
#define ANY_FLAGS (INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED)

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

static int remove_all(struct store *s, struct store_write *w, const int64_t *id, size_t n_ids,
		      size_t *n, struct err *e)
{
	for (size_t i = 0; i < n_ids; i++)
		if (remove_one(s, w, id[i], n, e) < 0)
			return -1;
	return 0;
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
	v = index_view(s->index);
	rc = index_select(v, f, ANY_FLAGS, NULL, 0, a, id, n, &none, e);
	index_view_release(v);
	return rc;
}

int store_archive(struct store *s, const struct filter *f, bool is_archived, size_t *n,
		  struct err *e)
{
	struct arena a = { 0 };
	struct store_write w;
	int64_t *id;
	size_t n_ids;
	int rc = chosen(s, f, &a, &id, &n_ids, e);

	*n = 0;
	if (!rc)
		rc = store_write_begin(s, &w, e);
	if (!rc)
		rc = store_write_end(s, &w, archive(&w, id, n_ids, is_archived, n, e), e);
	arena_release(&a);
	return rc;
}

int store_remove(struct store *s, const struct filter *f, size_t *n, struct err *e)
{
	struct arena a = { 0 };
	struct store_write w;
	int64_t *id;
	size_t n_ids;
	int rc = chosen(s, f, &a, &id, &n_ids, e);

	*n = 0;
	if (!rc)
		rc = store_write_begin(s, &w, e);
	if (!rc)
		rc = store_write_end(s, &w, remove_all(s, &w, id, n_ids, n, e), e);
	arena_release(&a);
	return rc;
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
static int older(struct store_write *w, double days, bool is_archived, struct ids *out,
		 struct err *e)
{
	struct db_value v[2] = { db_real(store_now_s() - days * DAY_S),
				 db_int(is_archived ? INDEX_ARCHIVED : 0) };

	out->n = 0;
	return db_run(w->db, "SELECT id FROM documents WHERE coalesce(ran, received) < $1"
			     " AND (flags & 2) = $2 ORDER BY id", v, 2, take_id, out, e);
}

static int retain(struct store *s, struct store_write *w, const struct retention *r,
		  struct buf *told, struct err *e)
{
	struct ids old = { 0 };
	double traces_before_s = r->trace_days > 0 ? store_now_s() - r->trace_days * DAY_S : -1e300;
	size_t n_removed = 0, n_archived = 0, n_traces = 0;
	int rc = 0;

	/* Only what was archived before goes, so that nothing that was in view is gone at once. */
	if (r->remove_days > 0)
		rc = older(w, r->remove_days, true, &old, e);
	if (!rc)
		rc = remove_all(s, w, old.id, old.n, &n_removed, e);
	old.n = 0;
	if (!rc && r->archive_days > 0)
		rc = older(w, r->archive_days, false, &old, e);
	if (!rc)
		rc = archive(w, old.id, old.n, true, &n_archived, e);
	if (!rc && (r->trace_days > 0 || r->trace_bytes > 0))
		rc = store_traces_expire(s, w, traces_before_s, r->trace_bytes, &n_traces, e);
	free(old.id);
	if (!rc)
		buf_printf(told, "%zu runs removed, %zu archived, %zu traces expired", n_removed,
			   n_archived, n_traces);
	return rc;
}

int store_retain(struct store *s, const struct retention *r, struct buf *told, struct err *e)
{
	struct store_write w;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	return store_write_end(s, &w, retain(s, &w, r, told, e), e);
}
