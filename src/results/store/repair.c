/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repair.c - columns that no run has any more are given back; values that were left out because
 * there was no room for their columns come in; benchmark_runs is made anew when that gives room.
 */
#include "core/base/mem.h"
#include "results/store/pack.h"
#include "results/store/parts.h"

#define RUNS_AT_ONCE 500 /* read again in one transaction, in which others wait */

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

/* cells. What is damaged may have had any column. */
static int take_cells(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct used *u = self;
	struct arena a = { 0 };
	struct row r = { 0 };

	(void)n;
	(void)e;
	if (unpack_row(db_as_bytes(v[0]), mark, u, &a, &r, NULL) < 0)
		memset(u->is, true, u->n);
	arena_release(&a);
	return 0;
}

/* Of the runs that came, or were changed, after that change; below 0: of all. */
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

/* What came since was not looked at; when numbers have changed hands, nothing of it holds. */
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

int store_columns_give_back(struct store *s, size_t *n, struct err *e)
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

/* ---- values that were left out ---- */

struct again {
	struct arena a;
	struct buf document;
	struct row row;         /* as it is kept */
	const struct columns *columns;
	bool is_bad;            /* check says what is wrong with it */
};

/* cells, document */
static int take_run(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct again *g = self;

	(void)n;
	(void)e;
	g->is_bad = unpack_row(db_as_bytes(v[0]), columns_name, g->columns, &g->a, &g->row,
			       NULL) < 0 ||
		    unpack_text(db_as_bytes(v[1]), &g->document, NULL) < 0;
	return 1;
}

/* Its cells, and then those that its document has besides. */
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

	if (db_run(w->db, "DELETE FROM benchmark_runs WHERE id = $1", &v, 1, NULL, NULL, e) < 0)
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
		rc = db_run(w->db, "UPDATE documents SET cells = $1, left_out = $2, changed = $3"
				   " WHERE id = $4", v, 4, NULL, NULL, e);
	}
	if (!rc && came)
		rc = put_row(s, w, id, &all, number, e);
	out->n_runs += came > 0;
	out->n_values += came;
	out->n_left += left.n;
	buf_release(&cells);
	return rc;
}

struct ids {
	int64_t id[RUNS_AT_ONCE];
	size_t n;
};

static int take_id(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct ids *l = self;

	(void)n;
	(void)e;
	l->id[l->n++] = db_as_int(v[0]);
	return l->n == RUNS_AT_ONCE;
}

static int put_some(struct store *s, struct store_write *w, struct ids *ids, int64_t after,
		    struct repaired *out, struct err *e)
{
	struct db_value v[2] = { db_int(after), db_int(RUNS_AT_ONCE) };
	size_t before = out->n_values;
	int rc;

	ids->n = 0;
	rc = db_run(w->db, "SELECT id FROM documents WHERE id > $1 AND left_out <> 0 ORDER BY id LIMIT $2",
		    v, 2, take_id, ids, e);
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
	return db_run(w->db, "UPDATE numbers SET last = $1 WHERE name = 'rewritten'", v, 1, NULL, NULL,
		      e);
}

/* Some runs at a time, so that others may write between. */
static int bring_in(struct store *s, struct repaired *out, struct err *e)
{
	struct ids *ids = mem_alloc(sizeof(*ids));
	int64_t after = 0;
	int rc;

	do {
		struct store_write w;

		rc = store_write_begin(s, &w, e);
		if (rc)
			break;
		rc = store_write_end(s, &w, put_some(s, &w, ids, after, out, e), e);
		if (ids->n)
			after = ids->id[ids->n - 1];
	} while (!rc && ids->n == RUNS_AT_ONCE);
	free(ids);
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

/* In one transaction: whoever asks in SQL sees all rows before it, and all after it. */
static int widen_all(struct store *s, struct store_write *w, struct err *e)
{
	struct ids *ids = mem_alloc(sizeof(*ids));
	struct columns_room room;
	int64_t last = 0;
	int rc = columns_widen_anew(&s->columns, w->db, &room, e);

	while (!rc) {
		struct db_value v[2] = { db_int(last), db_int(RUNS_AT_ONCE) };

		ids->n = 0;
		rc = db_run(w->db, "SELECT id FROM documents WHERE id > $1 ORDER BY id LIMIT $2", v, 2,
			    take_id, ids, e);
		if (!ids->n)
			break;
		for (size_t i = 0; i < ids->n && !rc; i++)
			rc = widen_one(s, w, last = ids->id[i], &room, e);
	}
	w->change++;
	free(ids);
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
