/* SPDX-License-Identifier: Apache-2.0 */
/* put.c - runs in: duplicates by their content, conflicts by their name, all or none. */
#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "results/store/pack.h"
#include "results/store/parts.h"

const char *put_outcome_name(enum put_outcome o)
{
	static const char *const name[] = { "new", "duplicate", "conflict", "invalid" };

	return name[o];
}

/* The digest that `check` holds against what is kept: of the document, then the arrays. */
static char *checksum(struct str document, struct str arrays, char out[DIGEST_HEX])
{
	uint8_t bytes[DIGEST_BYTES];
	size_t n = digest(DIGEST_SHA256, document, arrays, bytes);

	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return out;
}

struct newest {
	int64_t id, flags;
};

/* What the store has of a run that comes: the same content, and the newest of the same name. */
struct known {
	int64_t same;
	struct newest newest;
};

/* id, flags, whether it is the same content */
static int take_known(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct known *o = self;

	(void)n;
	(void)e;
	if (db_as_int(v[2]))
		o->same = db_as_int(v[0]);
	else
		o->newest = (struct newest){ db_as_int(v[0]), db_as_int(v[1]) };
	return 0;
}

static int ask_known(struct store_write *w, const struct read_run *run, struct known *out,
		     struct err *e)
{
	struct db_value v[2] = { db_text(run->hash), db_text(run->run_id) };

	return db_run(w->db, "SELECT id, flags, 1 FROM documents WHERE hash = $1 UNION ALL"
			     " SELECT id, flags, 0 FROM documents WHERE id ="
			     " (SELECT max(id) FROM documents WHERE run_id = $2)",
		      v, 2, take_known, out, e);
}

static int supersede(struct store_write *w, struct newest old, struct err *e)
{
	int64_t flags = old.flags | INDEX_SUPERSEDED;
	struct db_value v[3] = { db_int(flags) };

	v[1] = db_int(store_changed(w, old.id, (unsigned)flags, NULL));
	v[2] = db_int(old.id);
	return db_run(w->db, "UPDATE documents SET flags = $1, changed = $2 WHERE id = $3", v, 3,
		      NULL, NULL, e);
}

static int insert_text(struct store_write *w, const char *sql, int64_t id, struct str text,
		       struct err *e)
{
	struct buf packed = { 0 };
	struct db_value v[2] = { db_int(id) };
	int rc;

	pack_text(text, &packed);
	v[1] = db_blob(buf_str(&packed));
	rc = db_run(w->db, sql, v, 2, NULL, NULL, e);
	buf_release(&packed);
	return rc;
}

/* Cells that cannot be kept are not shown either: the index has what the store has. */
static const struct row *kept_row(const struct row *r, const int64_t *number,
				  const struct columns_left *left, struct arena *a)
{
	struct row *kept = arena_alloc(a, sizeof(*kept));

	*kept = *r;
	if (!left->n && !left->n_bad)
		return kept;
	kept->cell = arena_alloc(a, r->n * sizeof(*kept->cell));
	kept->n = 0;
	for (size_t i = 0; i < r->n; i++)
		if (number[i] >= 0)
			kept->cell[kept->n++] = r->cell[i];
	return kept;
}

static int insert(struct store *s, struct store_write *w, const struct read_run *run, int64_t id,
		  struct str who, struct arena *a, struct columns_left *left, struct err *e)
{
	struct columns_room room = columns_room(&s->columns, w->new_columns);
	size_t n_own = s->columns.n_own;
	int64_t *number = mem_array(run->row.n + 1, sizeof(*number));
	struct buf cells = { 0 };
	char hex[DIGEST_HEX];
	int rc = columns_number(&s->columns, w->db, &run->row, &room, number, left, e);

	w->new_columns += s->columns.n_own - n_own;
	if (!rc) {
		struct db_value v[] = {
			db_int(id),
			db_text(run->run_id),
			db_text(run->hash),
			db_text(run->kind),
			db_text(who),
			db_real(store_now_s()),
			db_real(run->timestamp_s),
			db_int(store_changed(w, id, 0,
					     kept_row(&run->row, number, left, a))),
			db_text(str_of(checksum(run->document, run->arrays, hex))),
			db_int((int64_t)left->n),
			{ 0 },
		};

		pack_row(&run->row, number, &cells);
		v[10] = db_blob(buf_str(&cells));
		rc = db_run(w->db, "INSERT INTO documents (id, run_id, hash, kind, who, received, ran,"
				   " flags, changed, checksum, left_out, cells)"
				   " VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $10, $11)",
			    v, 11, NULL, NULL, e);
	}
	if (!rc)
		rc = insert_text(w, "INSERT INTO originals (id, document) VALUES ($1, $2)", id,
				 run->document, e);
	if (!rc && run->arrays.n)
		rc = insert_text(w, "INSERT INTO arrays (id, arrays) VALUES ($1, $2)", id, run->arrays,
				 e);
	if (!rc)
		rc = store_wide_put(&s->columns, w->db, id, &run->row, number, e);
	buf_release(&cells);
	free(number);
	return rc;
}

/* What became of values that have no column, and what to do; in a. */
static struct str left_text(const struct columns_left *left, struct arena *a)
{
	struct buf text = { 0 };
	struct str out;

	if (left->n_bad)
		buf_printf(&text, "%zu of its values are in its document alone, because their names are "
			   "empty, above %d bytes, or no text without U+0000", left->n_bad,
			   COLUMN_NAME_BYTES_MAX);
	if (left->n) {
		buf_printf(&text, "%s%zu of its values %s in its document alone, because a run adds at most "
			   "%d new columns, an upload %d, and both fewer as the store fills up: ",
			   text.len ? "; " : "", left->n, left->n == 1 ? "is" : "are",
			   COLUMNS_NEW_RUN_MAX, COLUMNS_NEW_UPLOAD_MAX);
		for (size_t i = 0; i < left->n_names; i++) {
			buf_add_text(&text, i ? ", " : "");
			json_quote(&text, left->name[i], true);
		}
		if (left->n > left->n_names)
			buf_printf(&text, " and %zu more", left->n - left->n_names);
		buf_add_text(&text, ". Keep values per request or per layer in a list, which makes no "
			     "columns; `profllm store check --repair` adds columns once there is room");
	}
	out = arena_str(a, buf_str(&text));
	buf_release(&text);
	return out;
}

static bool is_text(struct str s, size_t bytes_max)
{
	return s.n && s.n <= bytes_max && !memchr(s.p, 0, s.n);
}

static int put_one(struct store *s, struct store_write *w, const struct read_run *run,
		   struct str who, int64_t *next, struct arena *a, struct put_result *out,
		   struct err *e)
{
	struct known known = { 0 };
	struct newest old;
	struct columns_left left = { 0 };
	struct str note;

	*out = (struct put_result){ .outcome = PUT_NEW };
	if (!is_text(run->run_id, STORE_RUN_ID_BYTES_MAX)) {
		out->outcome = PUT_INVALID;
		out->reason = str_of(arena_printf(a, "its run_id must have 1 to %d bytes and no U+0000",
						  STORE_RUN_ID_BYTES_MAX));
		return 0;
	}
	if (ask_known(w, run, &known, e) < 0)
		return -1;
	if (known.same) {
		out->id = known.same;
		out->outcome = PUT_DUPLICATE;
		return 0;
	}
	old = known.newest;
	if (old.id && supersede(w, old, e) < 0)
		return -1;
	out->id = (*next)++;
	if (insert(s, w, run, out->id, who, a, &left, e) < 0)
		return -1;
	note = left_text(&left, a);
	out->reason = note;
	if (old.id) {
		out->outcome = PUT_CONFLICT;
		out->reason = str_of(arena_printf(a, "run %lld has the same run_id (%.*s) and other"
						     " content; this one is shown, that one is its"
						     " history%s%.*s", (long long)old.id,
						  (int)run->run_id.n, run->run_id.p,
						  note.n ? "; " : "", (int)note.n, note.p));
	}
	return 0;
}

int store_put_runs(struct store *s, struct store_write *w, const struct read_run *run, size_t n,
		   struct str who, struct arena *a, struct put_result *out, struct err *e)
{
	int64_t next;

	/* Numbers of runs that turn out to be known stay unused. */
	if (!n || store_number(w, "run", n, &next, e) < 0)
		return n ? -1 : 0;
	for (size_t i = 0; i < n; i++)
		if (put_one(s, w, &run[i], who, &next, a, &out[i], e) < 0)
			return -1;
	return 0;
}

int store_put(struct store *s, const struct read_run *run, size_t n, struct str who,
	      struct arena *a, struct put_result *out, struct err *e)
{
	struct store_write w;
	int rc;

	if (store_fits(who, STORE_NAME_BYTES_MAX, "the name of who hands it in", e) < 0 ||
	    store_write_begin(s, &w, e) < 0)
		return -1;
	rc = store_put_runs(s, &w, run, n, who, a, out, e);
	return store_write_end(s, &w, rc, e);
}
