/* SPDX-License-Identifier: Apache-2.0 */
/* store_write.c - a transaction, and what it tells the index. */
#include "core/base/mem.h"
#include "core/base/str.h"
#include "results/store/parts.h"

int store_write_begin(struct store *s, struct store_write *w, struct err *e)
{
	*w = (struct store_write){ .db = s->writer };
	if (s->is_read_only)
		return err_set(e, ERR_USAGE, "%s is open to be read only", s->shown);
	pthread_mutex_lock(&s->write_lock);
	if (store_may_ask(s, e) == 0 && db_begin(w->db, DB_WRITE, e) == 0) {
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
	size_t n = 0;
	int rc = 0;

	for (size_t i = 0; i < w->n; i++) {
		if (!w->list[i].row)
			continue;
		row[n] = *w->list[i].row;
		row[n++].id = w->list[i].id;
	}
	if (n)
		rc = index_add_all(s->index, row, n, NULL);
	if (!rc)
		tell_flags(s, w);
	free(row);
	return rc;
}

int store_write_end(struct store *s, struct store_write *w, int rc, struct err *e)
{
	struct db_value v = db_int(w->change);

	if (!rc && w->change != w->began)
		rc = db_run(w->db, "UPDATE numbers SET last = $1 WHERE name = 'change'", &v, 1, NULL,
			    NULL, e);
	rc = db_end(w->db, rc, e);
	if (rc && s->columns.edition != w->edition)
		columns_again(&s->columns, w->db, NULL);
	if (!rc && w->n && s->index && tell_index(s, w) < 0)
		rc = store_index_anew(s, e);
	else if (!rc)
		s->sequence = w->change;
	atomic_store(&s->n_own, s->columns.n_own);
	free(w->list);
	pthread_mutex_unlock(&s->write_lock);
	return rc;
}

int store_number(struct store_write *w, const char *kind, size_t n, int64_t *first, struct err *e)
{
	struct db_value v[2] = { db_int((int64_t)n), db_text(str_of(kind)) };
	int64_t last;

	if (db_integer(w->db, "UPDATE numbers SET last = last + $1 WHERE name = $2 RETURNING last", v,
		       2, 0, &last, e) < 0)
		return -1;
	*first = last - (int64_t)n + 1;
	return 0;
}

int store_fits(struct str text, size_t bytes_max, const char *what, struct err *e)
{
	if (text.n <= bytes_max)
		return 0;
	return err_set(e, ERR_USAGE, "%s has %zu bytes, at most %zu can be kept", what, text.n,
		       bytes_max);
}

int store_is_run(struct store_write *w, int64_t id, struct err *e)
{
	struct db_value v = db_int(id);
	int64_t found;

	if (db_integer(w->db, "SELECT id FROM documents WHERE id = $1", &v, 1, 0, &found, e) < 0)
		return -1;
	return found ? 0 : err_set(e, ERR_USAGE, "there is no run with the number %lld",
				   (long long)id);
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
