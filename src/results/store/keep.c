/* SPDX-License-Identifier: Apache-2.0 */
/* keep.c - maintenance: archives and removes old runs and traces, repairs and checks the store. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "results/store/store_internal.h"

#define DAY_S 86400.0
#define ANY_FLAGS (INDEX_EXCLUDED | INDEX_ARCHIVED | INDEX_SUPERSEDED)
#define RUNS_AT_ONCE 5000      /* in one transaction: 0.1 s, during which others wait */
#define PAUSE_NS 10000000      /* between two: longer than a writer waits before it tries again */

struct one_run {
	int64_t id, flags;
	struct arena *a;
	struct str run_id;
};

/* id, flags, run_id */
static int take_one(void *self, const struct db_got *got)
{
	struct one_run *o = self;

	o->id = db_as_int(got->v[0]);
	o->flags = db_as_int(got->v[1]);
	if (got->n > 2)
		o->run_id = db_keep(o->a, got->v[2]);
	return 1;
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
		if (store_set_flags(w, o.id, flags, e) < 0)
			return -1;
		++*n;
	}
	return 0;
}

/* Of the remaining runs with a run_id, shows the newest. */
static int show_newest(struct store_write *w, struct str run_id, struct err *e)
{
	struct db_value v = db_text(run_id);
	struct one_run o = { 0 };

	if (db_run(w->db, "SELECT id, flags FROM documents WHERE run_id = $1 ORDER BY id DESC LIMIT 1",
		   &v, 1, take_one, &o, e) < 0)
		return -1;
	if (!o.id || !(o.flags & INDEX_SUPERSEDED))
		return 0;
	return store_set_flags(w, o.id, o.flags & ~(int64_t)INDEX_SUPERSEDED, e);
}

/* Removes rows that no reference deletes along with the row of documents. */
static int remove_large(struct store_write *w, int64_t id, struct err *e)
{
	struct db_value v = db_int(id);

	if (!w->db->hooks->is_partitioned)
		return 0;
	return db_do(w->db, "DELETE FROM originals WHERE id = $1", &v, 1, e) < 0 ||
			db_do(w->db, "DELETE FROM arrays WHERE id = $1", &v, 1, e) < 0 ||
			db_do(w->db, "DELETE FROM benchmark_runs WHERE id = $1", &v, 1, e) < 0 ?
		       -1 : 0;
}

/*
 * Notes, tags and exclusions go with the row that they refer to; so do document, arrays and row of
 * benchmark_runs, unless they are in a partition, which is dropped as a whole.
 */
static int forget_one(struct store *s, struct store_write *w, int64_t id, size_t *n, struct err *e)
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
			rc = db_do(w->db, "DELETE FROM documents WHERE id = $1", v, 1, e);
		v[1] = db_int(store_changed(w, id, INDEX_REMOVED, NULL));
		if (!rc)
			rc = db_do(w->db, "INSERT INTO removed (id, changed) VALUES ($1, $2)", v, 2, e);
		if (!rc)
			rc = show_newest(w, o.run_id, e);
	}
	arena_release(&a);
	return rc;
}

static int remove_one(struct store *s, struct store_write *w, int64_t id, size_t *n, struct err *e)
{
	return remove_large(w, id, e) < 0 ? -1 : forget_one(s, w, id, n, e);
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

/* Adds to a failure how many runs were changed before it. */
static int with_count(int rc, size_t n, struct err *e)
{
	return rc && n ? err_wrap(e, "after %zu runs", n) : rc;
}

/* ---- columns that no run has ---- */

struct used {
	bool *is; /* by number */
	size_t n;
};

static struct str mark(const void *self, uint64_t number)
{
	const struct used *u = self;

	if (number < u->n)
		u->is[number] = true;
	return STR("a column");
}

/* cells. A damaged row may have had any column. */
static int take_cells(void *self, const struct db_got *got)
{
	struct used *u = self;
	struct arena a = { 0 };
	struct row r = { 0 };

	if (unpack_row(db_as_bytes(got->v[0]), mark, u, &a, &r, NULL) < 0)
		memset(u->is, true, u->n);
	arena_release(&a);
	return 0;
}

/* Of the runs added or changed after that change; below 0: of all. */
static int find_used(struct db *d, int64_t change, struct used *u, struct err *e)
{
	struct db_value v = db_int(change);

	if (change < 0)
		return db_run(d, "SELECT cells FROM documents", NULL, 0, take_cells, u, e);
	return db_run(d, "SELECT cells FROM documents WHERE changed > $1", &v, 1, take_cells, u, e);
}

static bool is_any_unused(const struct columns *c, const struct used *u)
{
	for (size_t i = 0; i < c->n && i < u->n; i++)
		if (!u->is[i] && columns_can_go(c, i))
			return true;
	return false;
}

/* Everything, as of one moment and without keeping writers waiting. 1: there is something to do. */
static int look(struct store *s, struct columns *c, struct used *u, int64_t *change, struct err *e)
{
	struct db *d = store_reader(s, e);
	int rc = d ? db_begin(d, DB_READ, e) : -1;

	if (!rc) {
		rc = columns_read(c, d, e);
		if (!rc)
			rc = db_integer(d, "SELECT last FROM numbers WHERE name = 'change'", NULL, 0, 0,
					change, e);
		u->n = c->n;
		u->is = mem_array(u->n + 1, sizeof(*u->is));
		if (!rc)
			rc = find_used(d, -1, u, e);
		rc = db_end(d, rc, e);
	}
	if (d)
		store_reader_back(s, d);
	return rc ? rc : is_any_unused(c, u);
}

/* Later changes were not examined; if numbers were reassigned, the result is void. */
static int give_back(struct store *s, struct store_write *w, struct used *u, int64_t change,
		     int64_t edition, size_t *n, struct err *e)
{
	if (edition != s->columns.edition) {
		u->n = s->columns.n;
		u->is = mem_grow(u->is, u->n + 1, sizeof(*u->is));
		memset(u->is, false, u->n);
		change = -1;
	}
	if (find_used(w->db, change, u, e) < 0 ||
	    columns_give_back(&s->columns, w->db, u->is, n, e) < 0)
		return -1;
	w->change += *n > 0; /* others read the list again */
	return 0;
}

static int store_columns_give_back(struct store *s, size_t *n, struct err *e)
{
	struct columns seen = { 0 };
	struct used u = { 0 };
	struct store_write w;
	int64_t change = 0;
	int rc = look(s, &seen, &u, &change, e);

	*n = 0;
	if (rc > 0) {
		rc = store_write_begin(s, &w, e);
		if (!rc) {
			rc = give_back(s, &w, &u, change, seen.edition, n, e);
			rc = store_write_end(s, &w, rc, e);
		}
	}
	columns_release(&seen);
	free(u.is);
	return rc;
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

/* ---- by number ---- */

static int change_one(struct store *s, struct store_write *w, enum bulk_action what, int64_t id,
		      struct str text, struct str who, struct bulk_result *out, struct err *e)
{
	struct db_value v = db_int(id);
	struct one_run o = { 0 };
	bool is_excluded;

	if (db_run(w->db, "SELECT id, flags FROM documents WHERE id = $1", &v, 1, take_one, &o, e) < 0)
		return -1;
	if (!o.id) {
		out->n_missing++;
		return 0;
	}
	if (what == BULK_DELETE)
		return remove_one(s, w, id, &out->n_changed, e);
	if (what == BULK_TAG || what == BULK_UNTAG) {
		bool is_same;

		if (store_tag_one(w, id, text, who, what == BULK_TAG, &is_same, e) < 0)
			return -1;
		*(is_same ? &out->n_same : &out->n_changed) += 1;
		/* unchanged, but counted as a change: cached answers are older */
		return is_same ? 0 : store_set_flags(w, id, o.flags, e);
	}
	is_excluded = o.flags & INDEX_EXCLUDED;
	if (is_excluded == (what == BULK_EXCLUDE)) {
		out->n_same++;
		return 0;
	}
	out->n_changed++;
	return store_exclude_one(w, id, text, who, e);
}

int store_bulk(struct store *s, enum bulk_action what, const int64_t *id, size_t n, struct str text,
	       struct str who, struct bulk_result *out, struct err *e)
{
	struct store_write w;
	size_t n_columns;
	int rc = 0;

	*out = (struct bulk_result){ 0 };
	if (n > STORE_BULK_MAX)
		return err_set(e, ERR_USAGE, "%zu runs are too many to change at once: at most %d "
			       "(STORE_BULK_MAX)", n, STORE_BULK_MAX);
	if (what == BULK_EXCLUDE && !text.n)
		return err_set(e, ERR_USAGE, "the reason is empty");
	if (((what == BULK_TAG || what == BULK_UNTAG) && store_tag_check(text, e) < 0) ||
	    store_fits(text, STORE_WORDS_BYTES_MAX, "the reason", e) < 0 ||
	    store_fits(who, STORE_NAME_BYTES_MAX, "the author's name", e) < 0 ||
	    store_write_begin(s, &w, e) < 0)
		return -1;
	if (what == BULK_INCLUDE)
		text.n = 0;
	for (size_t i = 0; !rc && i < n; i++)
		rc = change_one(s, &w, what, id[i], text, who, out, e);
	rc = store_write_end(s, &w, rc, e);
	if (!rc && what == BULK_DELETE && out->n_changed)
		rc = store_columns_give_back(s, &n_columns, e);
	return rc;
}

/* ---- by age ---- */

#define NEVER_RAN_BEFORE 946684800 /* 2000-01-01: earlier dates are of clocks that were not set */

/* Age by the run's document, else by when it was received. */
static int older(struct store_write *w, double before_s, bool is_archived, struct store_ids *out,
		 struct err *e)
{
	struct db_value v[4] = { db_real(NEVER_RAN_BEFORE), db_real(before_s),
				 db_int(is_archived ? INDEX_ARCHIVED : 0), db_int(RUNS_AT_ONCE) };

	out->n = 0;
	return db_run(w->db, "SELECT id FROM documents WHERE"
			     " CASE WHEN ran >= $1 THEN ran ELSE received END < $2"
			     " AND (flags & 2) = $3 ORDER BY id LIMIT $4", v, 4, store_take_id, out, e);
}

/* Changes older runs in batches, until none is left. */
static int change_older(struct store *s, enum change what, double days, size_t *n, struct err *e)
{
	double before_s = store_now_s() - days * DAY_S;
	struct store_ids old = { 0 };
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

/* ---- whole partitions ---- */

/* 1: there are more. */
static int forget_some(struct store *s, const struct partition *p, struct store_ids *ids, size_t *n,
		       struct err *e)
{
	struct db_value v[3] = { db_int(p->first), db_int(p->past), db_int(RUNS_AT_ONCE) };
	struct store_write w;
	size_t changed = 0;
	int rc;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	ids->n = 0;
	rc = db_run(w.db, "SELECT id FROM documents WHERE id >= $1 AND id < $2 ORDER BY id LIMIT $3", v, 3,
		    store_take_id, ids, e);
	for (size_t i = 0; i < ids->n && !rc; i++)
		rc = forget_one(s, &w, ids->id[i], &changed, e);
	rc = store_write_end(s, &w, rc, e);
	*n += rc ? 0 : changed;
	return rc ? -1 : ids->n == RUNS_AT_ONCE;
}

/* Does not wait long for readers, because all others would wait too. */
static int drop_partition(struct store *s, int64_t first, struct err *e)
{
	struct store_write w;
	struct buf limit = { 0 };
	int rc;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	buf_printf(&limit, "SET LOCAL lock_timeout = '%ds'", STORE_DROP_SECONDS);
	rc = db_do(w.db, limit.data, NULL, 0, e);
	buf_release(&limit);
	if (!rc)
		rc = partitions_drop(w.db, first, e);
	if (rc)
		err_wrap(e, "a partition whose runs are removed cannot be dropped while another session, "
			    "such as a backup, reads it; the same command drops it later");
	return store_write_end(s, &w, rc, e);
}

/* Their runs are removed some at a time, so that others may write between. */
static int drop_older(struct store *s, double days, size_t *n, size_t *n_partitions, struct err *e)
{
	double before_s = store_now_s() - days * DAY_S;
	struct store_ids ids = { 0 };
	int rc = 0;

	while (!rc) {
		struct partition p;
		struct store_write w;

		rc = store_write_begin(s, &w, e);
		if (rc)
			break;
		rc = store_write_end(s, &w, partitions_leave(w.db, before_s, &p, e), e);
		if (rc || p.first < 0)
			break;
		while ((rc = forget_some(s, &p, &ids, n, e)) > 0)
			let_others_write();
		if (!rc)
			rc = drop_partition(s, p.first, e);
		*n_partitions += !rc;
	}
	free(ids.id);
	return with_count(rc, *n, e);
}

int store_retain(struct store *s, const struct retention *r, struct buf *told, struct err *e)
{
	size_t n_removed = 0, n_archived = 0, n_traces = 0, n_partitions = 0, n_columns;
	int rc = 0;

	if (r->drop_days > 0 && !s->hooks->is_partitioned)
		return err_set(e, ERR_USAGE, "%s has no partitions to drop, because it is an SQLite file: use "
			       "--archive-days and --remove-days", s->shown);
	if (r->drop_days > 0)
		rc = drop_older(s, r->drop_days, &n_removed, &n_partitions, e);

	/* Only what was archived before goes, so that nothing that was in view is gone at once. */
	if (!rc && r->remove_days > 0)
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
	if (!rc && r->drop_days > 0)
		buf_printf(told, ", %zu partition%s dropped", n_partitions, n_partitions == 1 ? "" : "s");
	return rc;
}

/*
 * Drops columns that no run has any more, adds values that were left out because there was no room
 * for their columns, and rebuilds benchmark_runs if that frees columns.
 */

#define RUNS_READ_AT_ONCE 500 /* reread in one transaction, during which others wait */

/* ---- values that were left out ---- */

struct again {
	struct arena a;
	struct buf document;
	struct row row;         /* as stored */
	const struct columns *columns;
	bool is_bad;            /* `check` reports what is wrong with it */
};

/* cells, document */
static int take_run(void *self, const struct db_got *got)
{
	struct again *g = self;

	g->is_bad = unpack_row(db_as_bytes(got->v[0]), columns_name, g->columns, &g->a, &g->row,
			       NULL) < 0 ||
		    unpack_text(db_as_bytes(got->v[1]), &g->document, NULL) < 0;
	return 1;
}

/* Its cells, followed by those that only its document has. */
static struct row whole_row(struct again *g)
{
	struct row all = g->row;
	struct read_file file;
	struct map there = { 0 };

	if (g->is_bad || read_document(STR(""), buf_str(&g->document), &g->a, &file, NULL) < 0 ||
	    file.n != 1)
		return all;
	all.cell = arena_alloc(&g->a, (all.n + file.run->row.n + 1) * sizeof(*all.cell));
	for (size_t i = 0; i < all.n; i++) {
		all.cell[i] = g->row.cell[i];
		map_put(&there, all.cell[i].column, 1);
	}
	for (size_t i = 0; i < file.run->row.n; i++)
		if (!map_get(&there, file.run->row.cell[i].column, NULL))
			all.cell[all.n++] = file.run->row.cell[i];
	map_release(&there);
	return all;
}

/* benchmark_runs has no row of it, or gets another one. */
static int put_row(struct store *s, struct store_write *w, int64_t id, const struct row *r,
		   const int64_t *number, struct err *e)
{
	struct db_value v = db_int(id);

	if (db_do(w->db, "DELETE FROM benchmark_runs WHERE id = $1", &v, 1, e) < 0)
		return -1;
	return store_wide_put(&s->columns, w->db, id, r, number, e);
}

static int put_again(struct store *s, struct store_write *w, int64_t id, struct again *g,
		     struct repaired *out, struct err *e)
{
	struct row all = whole_row(g);
	int64_t *number = arena_alloc(&g->a, (all.n + 1) * sizeof(*number));
	struct columns_room room = columns_room(&s->columns, 0);
	struct columns_left left = { 0 };
	struct buf cells = { 0 };
	struct db_value v[4] = { { 0 }, { 0 }, db_int(w->change + 1), db_int(id) };
	size_t came;
	int rc = columns_number(&s->columns, w->db, &all, &room, number, &left, e);

	came = all.n - g->row.n - left.n - left.n_bad;
	if (!rc) {
		pack_row(&all, number, &cells);
		v[0] = db_blob(buf_str(&cells));
		v[1] = db_int((int64_t)left.n);
		w->change++;
		rc = db_do(w->db, "UPDATE documents SET cells = $1, left_out = $2, changed = $3"
				   " WHERE id = $4", v, 4, e);
	}
	if (!rc && came)
		rc = put_row(s, w, id, &all, number, e);
	out->n_runs += came > 0;
	out->n_values += came;
	out->n_left += left.n;
	buf_release(&cells);
	return rc;
}

static int put_some(struct store *s, struct store_write *w, struct store_ids *ids, int64_t after,
		    struct repaired *out, struct err *e)
{
	struct db_value v[2] = { db_int(after), db_int(RUNS_READ_AT_ONCE) };
	size_t before = out->n_values;
	int rc;

	ids->n = 0;
	rc = db_run(w->db, "SELECT id FROM documents WHERE id > $1 AND left_out <> 0 ORDER BY id LIMIT $2",
		    v, 2, store_take_id, ids, e);
	for (size_t i = 0; i < ids->n && !rc; i++) {
		struct again g = { .columns = &s->columns,
				   .document.limit = PACK_TEXT_BYTES_MAX };
		struct db_value id = db_int(ids->id[i]);

		rc = db_run(w->db, "SELECT d.cells, o.document FROM documents d JOIN originals o"
				   " ON o.id = d.id WHERE d.id = $1", &id, 1, take_run, &g, e);
		if (!rc && g.document.len && !g.is_bad)
			rc = put_again(s, w, ids->id[i], &g, out, e);
		buf_release(&g.document);
		arena_release(&g.a);
	}
	if (rc || out->n_values == before)
		return rc;
	s->is_index_bad = s->index != NULL;
	v[0] = db_int(w->change);
	return db_do(w->db, "UPDATE numbers SET last = $1 WHERE name = 'rewritten'", v, 1, e);
}

/* Some runs at a time, so that others may write between. */
static int bring_in(struct store *s, struct repaired *out, struct err *e)
{
	struct store_ids ids = { 0 };
	int64_t after = 0;
	int rc;

	do {
		struct store_write w;

		rc = store_write_begin(s, &w, e);
		if (rc)
			break;
		rc = store_write_end(s, &w, put_some(s, &w, &ids, after, out, e), e);
		if (ids.n)
			after = ids.id[ids.n - 1];
	} while (!rc && ids.n == RUNS_READ_AT_ONCE);
	free(ids.id);
	return rc;
}

/* ---- benchmark_runs ---- */

static int widen_one(struct store *s, struct store_write *w, int64_t id, struct columns_room *room,
		     struct err *e)
{
	struct again g = { .columns = &s->columns, .document.limit = PACK_TEXT_BYTES_MAX };
	struct columns_left left = { 0 };
	struct db_value v = db_int(id);
	int rc = db_run(w->db, "SELECT d.cells, o.document FROM documents d JOIN originals o ON o.id = d.id"
			       " WHERE d.id = $1", &v, 1, take_run, &g, e);

	if (!rc && !g.is_bad) {
		int64_t *number = arena_alloc(&g.a, (g.row.n + 1) * sizeof(*number));

		rc = columns_number(&s->columns, w->db, &g.row, room, number, &left, e);
		if (!rc)
			rc = store_wide_put(&s->columns, w->db, id, &g.row, number, e);
	}
	buf_release(&g.document);
	arena_release(&g.a);
	return rc;
}

/* In one transaction: SQL clients see all rows from before it, or all from after it. */
static int widen_all(struct store *s, struct store_write *w, struct err *e)
{
	struct store_ids ids = { 0 };
	struct columns_room room;
	int64_t last = 0;
	int rc = columns_widen_anew(&s->columns, w->db, &room, e);

	while (!rc) {
		struct db_value v[2] = { db_int(last), db_int(RUNS_READ_AT_ONCE) };

		ids.n = 0;
		rc = db_run(w->db, "SELECT id FROM documents WHERE id > $1 ORDER BY id LIMIT $2", v, 2,
			    store_take_id, &ids, e);
		if (!ids.n)
			break;
		for (size_t i = 0; i < ids.n && !rc; i++)
			rc = widen_one(s, w, last = ids.id[i], &room, e);
	}
	w->change++;
	free(ids.id);
	return rc;
}

static int widen(struct store *s, struct repaired *out, struct err *e)
{
	struct store_write w;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	out->is_table_new = columns_want_widening(&s->columns);
	return store_write_end(s, &w, out->is_table_new ? widen_all(s, &w, e) : 0, e);
}

int store_repair(struct store *s, struct repaired *out, struct err *e)
{
	int rc;

	*out = (struct repaired){ 0 };
	rc = store_columns_give_back(s, &out->n_columns, e);
	if (!rc)
		rc = bring_in(s, out, e);
	if (!rc)
		rc = widen(s, out, e);
	pthread_mutex_lock(&s->write_lock);
	if (!rc && s->is_index_bad)
		rc = store_index_anew(s, e);
	pthread_mutex_unlock(&s->write_lock);
	return rc;
}

/* ---- whether a store is what it says: everything that is kept is read, as of one moment ---- */

#define FINDINGS_MAX 1000
#define IDS_AT_ONCE 1024

struct check {
	struct store *s;
	struct db *d;
	struct arena *a;
	struct columns columns; /* as of that moment */
	struct str *finding;
	size_t n;
};

__attribute__((format(printf, 2, 3)))
static void find(struct check *c, const char *fmt, ...)
{
	struct buf text = { 0 };
	char line[1024];
	va_list ap;

	if (c->n == FINDINGS_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_add_text(&text, line);
	c->finding[c->n++] = arena_str(c->a, buf_str(&text));
	buf_release(&text);
}

static int take_complaint(void *self, const struct db_got *got)
{
	struct str text = db_as_bytes(got->v[0]);

	if (!str_is(text, "ok"))
		find(self, "the database: %.*s", (int)text.n, text.p);
	return 0;
}

/* Statements whose number must be 0. */
static int check_counts(struct check *c, struct err *e)
{
	/* The runs of a partition that is about to be dropped. */
	static const char leaving[] = " AND NOT EXISTS (SELECT 1 FROM partitions p WHERE p.leaving > 0"
				      " AND o.id >= p.first AND o.id < p.past)";
	static const struct { const char *sql, *what; } rule[] = {
		{ "SELECT count(*) FROM documents d WHERE NOT EXISTS"
		  " (SELECT 1 FROM originals o WHERE o.id = d.id)", "runs have no document" },
		{ "SELECT count(*) FROM originals o WHERE NOT EXISTS"
		  " (SELECT 1 FROM documents d WHERE d.id = o.id)", "documents belong to no run" },
		{ "SELECT count(*) FROM arrays o WHERE NOT EXISTS"
		  " (SELECT 1 FROM documents d WHERE d.id = o.id)", "arrays belong to no run" },
		{ "SELECT count(*) FROM benchmark_runs o WHERE NOT EXISTS"
		  " (SELECT 1 FROM documents d WHERE d.id = o.id)",
		  "rows of benchmark_runs belong to no run" },
		{ "SELECT count(*) FROM documents d WHERE (d.flags & 4) = 0 AND EXISTS"
		  " (SELECT 1 FROM documents n WHERE n.run_id = d.run_id AND n.id > d.id)",
		  "runs are shown although there is a newer one of the same run_id" },
		{ "SELECT count(*) FROM documents d WHERE (d.flags & 4) <> 0 AND NOT EXISTS"
		  " (SELECT 1 FROM documents n WHERE n.run_id = d.run_id AND n.id > d.id)",
		  "runs are hidden as older although there is no newer one of the same run_id" },
		{ "SELECT count(*) FROM removed r WHERE EXISTS"
		  " (SELECT 1 FROM documents d WHERE d.id = r.id)",
		  "removed runs are still present" },
		{ "SELECT count(*) FROM documents WHERE changed >"
		  " (SELECT last FROM numbers WHERE name = 'change')",
		  "runs have a change number that was never assigned" },
		{ "SELECT count(*) FROM documents WHERE id >"
		  " (SELECT last FROM numbers WHERE name = 'run')",
		  "runs have a number that was never assigned" },
		{ "SELECT count(*) FROM documents d WHERE ((d.flags & 1) <> 0) <> EXISTS"
		  " (SELECT 1 FROM exclusions x WHERE x.run = d.id AND x.ended IS NULL)",
		  "runs are excluded without a reason, or have one without being excluded" },
	};

	for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
		struct buf sql = { 0 };
		int64_t n;
		int rc;

		buf_add_text(&sql, rule[i].sql);
		if (c->d->hooks->is_partitioned && strstr(rule[i].sql, "d.id = o.id"))
			buf_add_text(&sql, leaving);
		rc = db_integer(c->d, sql.data, NULL, 0, 0, &n, e);
		buf_release(&sql);
		if (rc < 0)
			return -1;
		if (n)
			find(c, "%lld %s", (long long)n, rule[i].what);
	}
	return 0;
}

/* ---- each run ---- */

struct whole {
	struct check *c;
	struct arena a;
	struct row row;
	int64_t id;
	bool is_readable;
};

/* checksum, cells, document, arrays */
static int check_run(void *self, const struct db_got *got)
{
	struct whole *w = self;
	struct buf document = { .limit = PACK_TEXT_BYTES_MAX },
		   arrays = { .limit = PACK_TEXT_BYTES_MAX };
	char hex[DIGEST_HEX];
	struct err why = { 0 };

	w->row = (struct row){ .id = w->id };
	w->is_readable = unpack_row(db_as_bytes(got->v[1]), columns_name, &w->c->columns, &w->a,
				    &w->row, &why) == 0;
	if (!w->is_readable)
		find(w->c, "run %lld: %s", (long long)w->id, why.text);
	if (unpack_text(db_as_bytes(got->v[2]), &document, &why) < 0 ||
	    (got->v[3].kind != DB_NULL && unpack_text(db_as_bytes(got->v[3]), &arrays, &why) < 0)) {
		find(w->c, "run %lld: %s", (long long)w->id, why.text);
	} else {
		store_checksum(buf_str(&document), buf_str(&arrays), hex);
		if (!str_is(db_as_bytes(got->v[0]), hex))
			find(w->c, "run %lld: the stored document does not match what was "
				   "received", (long long)w->id);
	}
	buf_release(&document);
	buf_release(&arrays);
	return 1;
}

static int check_one(struct check *c, int64_t id, struct err *e)
{
	struct whole w = { .c = c, .id = id };
	struct db_value v = db_int(id);
	struct str what;
	int rc = db_run(c->d, "SELECT d.checksum, d.cells, o.document, a.arrays FROM documents d"
			      " JOIN originals o ON o.id = d.id LEFT JOIN arrays a ON a.id = d.id"
			      " WHERE d.id = $1", &v, 1, check_run, &w, e);

	if (!rc && w.is_readable) {
		rc = store_wide_same(&c->columns, c->d, id, &w.row, &w.a, &what, e);
		if (rc == 0)
			find(c, "%.*s", (int)what.n, what.p);
	}
	arena_release(&w.a);
	return rc < 0 ? -1 : 0;
}

static int check_runs(struct check *c, struct err *e)
{
	struct store_ids ids = { 0 };
	int64_t last = 0;
	int rc = 0;

	do {
		struct db_value v[2] = { db_int(last), db_int(IDS_AT_ONCE) };

		ids.n = 0;
		rc = db_run(c->d, "SELECT id FROM documents WHERE id > $1 ORDER BY id LIMIT $2", v, 2,
			    store_take_id, &ids, e);
		for (size_t i = 0; i < ids.n && !rc; i++)
			rc = check_one(c, last = ids.id[i], e);
	} while (!rc && ids.n);
	free(ids.id);
	return rc;
}

static int check_all(struct check *c, struct err *e)
{
	const char *integrity = c->s->hooks->integrity;

	if (integrity && db_run(c->d, integrity, NULL, 0, take_complaint, c, e) < 0)
		return -1;
	if (columns_read(&c->columns, c->d, e) < 0 || check_counts(c, e) < 0)
		return -1;
	return check_runs(c, e);
}

/*
 * A trace whose file is known to be gone is listed by `traces`; only unexpected losses are
 * findings. Without a folder no file is looked for.
 */
static int check_traces(struct check *c, struct err *e)
{
	struct trace *trace;
	size_t n;

	if (store_traces(c->s, 0, c->a, &trace, &n, e) < 0)
		return -1;
	for (size_t i = 0; c->s->traces && i < n; i++)
		if (str_is(trace[i].state, "missing"))
			find(c, "trace %lld (%.*s): its file is not in %s", (long long)trace[i].id,
			     (int)trace[i].name.n, trace[i].name.p, c->s->traces);
	return 0;
}

int store_check(struct store *s, struct arena *a, struct str **finding, size_t *n, struct err *e)
{
	struct check c = { .s = s, .a = a };
	int rc = -1;

	c.finding = arena_alloc(a, FINDINGS_MAX * sizeof(*c.finding));
	c.d = store_reader(s, e);
	if (c.d) {
		if (db_begin(c.d, DB_READ, e) == 0)
			rc = db_end(c.d, check_all(&c, e), e);
		store_reader_back(s, c.d);
	}
	if (!rc)
		rc = check_traces(&c, e);
	columns_release(&c.columns);
	*finding = c.finding;
	*n = c.n;
	return rc;
}
