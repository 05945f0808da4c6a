/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - stores and reads one run. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "results/store/store_internal.h"

struct wanted {
	struct arena *a;
	struct run_whole *out;
	bool is_there;
};

/* The document as text, in the arena. */
static int unpack_into(struct arena *a, struct db_value v, struct str *out, struct err *e)
{
	struct buf text = { .limit = PACK_TEXT_BYTES_MAX };
	int rc = unpack_text(db_as_bytes(v), &text, e);

	if (!rc)
		*out = arena_str(a, buf_str(&text));
	buf_release(&text);
	return rc;
}

/* id, run_id, kind, hash, who, flags, received, document, has arrays */
static int take_run(void *self, const struct db_got *got)
{
	struct wanted *w = self;
	struct run_whole *o = w->out;

	w->is_there = true;
	o->id = db_as_int(got->v[0]);
	o->run_id = db_keep(w->a, got->v[1]);
	o->kind = db_keep(w->a, got->v[2]);
	o->hash = db_keep(w->a, got->v[3]);
	o->who = db_keep(w->a, got->v[4]);
	o->flags = (unsigned)db_as_int(got->v[5]);
	o->received_s = db_as_real(got->v[6]);
	o->has_arrays = db_as_int(got->v[8]) > 0;
	return unpack_into(w->a, got->v[7], &o->document, got->e) < 0 ? -1 : 1;
}

int store_run(struct store *s, int64_t id, struct arena *a, struct run_whole *out, struct err *e)
{
	struct wanted w = { .a = a, .out = out };
	struct store_ids versions = { 0 };
	struct db *d = store_reader(s, e);
	struct db_value v = db_int(id);
	int rc;

	if (!d)
		return -1;
	*out = (struct run_whole){ 0 };
	rc = db_run(d, "SELECT d.id, d.run_id, d.kind, d.hash, d.who, d.flags, d.received, o.document,"
		       " (SELECT count(*) FROM arrays a WHERE a.id = d.id)"
		       " FROM documents d JOIN originals o ON o.id = d.id WHERE d.id = $1",
		    &v, 1, take_run, &w, e);
	if (!rc && !w.is_there)
		rc = store_has_none("run", id, e);
	if (!rc) {
		v = db_text(out->run_id);
		rc = db_run(d, "SELECT id FROM documents WHERE run_id = $1 ORDER BY id DESC", &v, 1,
			    store_take_id, &versions, e);
		out->version = arena_alloc(a, (versions.n + 1) * sizeof(*out->version));
		if (versions.n)
			memcpy(out->version, versions.id, versions.n * sizeof(*out->version));
		out->n_versions = versions.n;
		free(versions.id);
	}
	store_reader_back(s, d);
	return rc;
}

struct arrays {
	struct buf *out;
	bool is_there;
};

static int take_arrays(void *self, const struct db_got *got)
{
	struct arrays *w = self;

	w->is_there = true;
	return unpack_text(db_as_bytes(got->v[0]), w->out, got->e) < 0 ? -1 : 1;
}

int store_run_arrays(struct store *s, int64_t id, struct buf *out, struct err *e)
{
	struct arrays w = { .out = out };
	struct db_value v = db_int(id);

	if (store_ask(s, "SELECT arrays FROM arrays WHERE id = $1", &v, 1, take_arrays, &w, e) < 0)
		return -1;
	return w.is_there ? 0 : err_set(e, ERR_USAGE, "run %lld has no per-request arrays",
					(long long)id);
}

int64_t store_find(struct store *s, struct str run_id)
{
	struct db_value v = db_text(run_id);
	struct db *d = store_reader(s, NULL);
	int64_t id = 0;

	if (!d)
		return 0;
	db_integer(d, "SELECT id FROM documents WHERE run_id = $1 ORDER BY id DESC LIMIT 1", &v, 1, 0,
		   &id, NULL);
	store_reader_back(s, d);
	return id;
}

/* ---- runs in: duplicates by their content, conflicts by their name, all or none ---- */

const char *put_outcome_name(enum put_outcome o)
{
	static const char *const name[] = { "new", "duplicate", "conflict", "invalid" };

	return name[o];
}

char *store_checksum(struct str document, struct str arrays, char out[static DIGEST_HEX])
{
	uint8_t bytes[DIGEST_BYTES];
	size_t n = digest(DIGEST_SHA256, document, arrays, bytes);

	for (size_t i = 0; i < n; i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return out;
}

struct flagged {
	int64_t id, flags;
};

/* Existing runs for a new one: the same content, and the newest of the same name. */
struct known {
	struct flagged same, newest;
};

/* id, flags, whether it is the same content */
static int take_known(void *self, const struct db_got *got)
{
	struct known *o = self;

	*(db_as_int(got->v[2]) ? &o->same : &o->newest) =
		(struct flagged){ db_as_int(got->v[0]), db_as_int(got->v[1]) };
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

static int insert_text(struct store_write *w, const char *sql, int64_t id, struct str text,
		       struct err *e)
{
	struct buf packed = { 0 };
	struct db_value v[2] = { db_int(id) };
	int rc;

	pack_text(text, &packed);
	v[1] = db_blob(buf_str(&packed));
	rc = db_do(w->db, sql, v, 2, e);
	buf_release(&packed);
	return rc;
}

/* Cells that cannot be stored are not in the index either. */
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
			db_text(str_of(store_checksum(run->document, run->arrays, hex))),
			db_int((int64_t)left->n),
			{ 0 },
		};

		pack_row(&run->row, number, &cells);
		v[10] = db_blob(buf_str(&cells));
		rc = db_do(w->db, "INSERT INTO documents (id, run_id, hash, kind, who, received, ran,"
				   " flags, changed, checksum, left_out, cells)"
				   " VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8, $9, $10, $11)",
			    v, 11, e);
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

/* The note about values without a column, and what to do; in a. */
static struct str left_text(const struct columns_left *left, struct arena *a)
{
	struct buf text = { 0 };
	struct str out;

	if (left->n_bad)
		buf_printf(&text, "%zu of its values are only in its document, because their names "
			   "are empty, above %d bytes, or no text without U+0000", left->n_bad,
			   COLUMN_NAME_BYTES_MAX);
	if (left->n) {
		buf_printf(&text, "%s%zu of its values %s only in its document, because a run adds "
			   "at most %d new columns, an upload %d, and both fewer as the store "
			   "fills up: ",
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

/* Why a run that is there already is not on the pages; empty: it is. */
static struct str hidden_text(const struct known *known, struct str run_id, struct arena *a)
{
	int64_t flags = known->same.flags;
	const char *is = flags & INDEX_SUPERSEDED ? "an older version" :
			 flags & INDEX_ARCHIVED	  ? "archived" : "excluded";
	struct str out = STR("");

	if (flags & (INDEX_SUPERSEDED | INDEX_ARCHIVED | INDEX_EXCLUDED))
		out = str_of(arena_printf(a, "run %lld (%.*s) has this content and is not shown, because "
					  "it is %s", (long long)known->same.id, (int)run_id.n, run_id.p,
					  is));
	if (flags & INDEX_SUPERSEDED)
		out = str_of(arena_printf(a, "%s; run %lld is shown", out.p,
					  (long long)known->newest.id));
	return out;
}

static int put_one(struct store *s, struct store_write *w, const struct read_run *run,
		   struct str who, int64_t *next, struct arena *a, struct put_result *out,
		   struct err *e)
{
	struct known known = { 0 };
	struct flagged old;
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
	if (known.same.id) {
		out->id = known.same.id;
		out->outcome = PUT_DUPLICATE;
		out->reason = hidden_text(&known, run->run_id, a);
		return 0;
	}
	old = known.newest;
	if (old.id && store_set_flags(w, old.id, old.flags | INDEX_SUPERSEDED, e) < 0)
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

	/* Numbers assigned to duplicates stay unused. */
	if (!n)
		return 0;
	if ((s->hooks->is_partitioned && partitions_room(w->db, n, e) < 0) ||
	    store_number(w, "run", n, &next, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (put_one(s, w, &run[i], who, &next, a, &out[i], e) < 0)
			return -1;
		else
			w->put[out[i].outcome]++;
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

void store_put_counts(struct store *s, uint64_t n[static PUT_OUTCOMES])
{
	for (size_t i = 0; i < PUT_OUTCOMES; i++)
		n[i] = atomic_load(&s->put[i]);
}

/*
 * A run's row of benchmark_runs, for users who query the database directly.
 *
 * The authoritative data of a run are its stored cells; this row repeats them in SQL. A value goes
 * to its column if it is of the column's kind and the row has room (PostgreSQL's rows end at 8 kB);
 * else it is a member of the JSON object in `rest`. Null and absent are both NULL here.
 */

#define ROW_BYTES_MAX 7000
#define TEXT_SHARE_MAX 32 /* longer texts are moved out of the row by PostgreSQL */

/*
 * What becomes of each cell: a column, or rest. value[0] is the run's number, value[1] the rest,
 * and then one for each column of benchmark_runs, in the order of their places.
 */
struct plan {
	struct buf rest;
	struct json_writer json;
	struct db_value *value;
	size_t n, bytes, n_rest;
};

static size_t bytes_of(struct value v)
{
	size_t n = v.kind == VALUE_TEXT ? v.text.n + 8 : 8;

	return n < TEXT_SHARE_MAX ? n : TEXT_SHARE_MAX;
}

static bool has_place(const struct plan *p, const struct column *c, struct value v)
{
	if (!c->sql.n || c->kind != v.kind || p->bytes + bytes_of(v) > ROW_BYTES_MAX)
		return false;
	if (v.kind != VALUE_TEXT || !v.text.n)
		return true;
	return !memchr(v.text.p, 0, v.text.n) &&
	       (v.text.n <= COLUMN_INDEXED_BYTES_MAX || !columns_is_indexed(c->name));
}

static struct db_value as_db(struct value v)
{
	switch (v.kind) {
	case VALUE_BOOL: return (struct db_value){ .kind = DB_BOOL, .integer = v.is_true };
	case VALUE_NUMBER: return db_real(v.number);
	case VALUE_TEXT: return db_text(v.text);
	default: return (struct db_value){ .kind = DB_NULL };
	}
}

static void add_rest(struct plan *p, struct str name, struct value v)
{
	if (!p->n_rest++) {
		p->json = json_writer(&p->rest);
		json_begin_object(&p->json);
	}
	json_key_str(&p->json, name);
	if (v.kind == VALUE_BOOL)
		json_put_bool(&p->json, v.is_true);
	else if (v.kind == VALUE_TEXT)
		json_put_str(&p->json, v.text);
	else if (isinf(v.number))
		json_put_text(&p->json, v.number > 0 ? "inf" : "-inf");
	else
		json_put_f64(&p->json, v.number);
}

static void make_plan(struct plan *p, const struct columns *c, const struct row *r,
		      const int64_t *number)
{
	p->n = c->n_wide + 2;
	p->value = mem_array(p->n, sizeof(*p->value));
	for (size_t i = 0; i < r->n; i++) {
		struct value v = r->cell[i].value;
		const struct column *column;

		if (number[i] < 0 || v.kind <= VALUE_NULL)
			continue;
		column = &c->at[number[i]];
		if (!has_place(p, column, v)) {
			add_rest(p, column->name, v);
			continue;
		}
		p->bytes += bytes_of(v);
		p->value[column->place + 2] = as_db(v);
	}
	if (p->n_rest) {
		json_end_object(&p->json);
		p->value[1] = db_text(buf_str(&p->rest));
	}
}

static void end_plan(struct plan *p)
{
	buf_release(&p->rest);
	free(p->value);
}

/* ", \"a\", \"b\"": the columns in the order of their places. */
static void add_names(struct buf *out, const struct columns *c)
{
	const struct column **at = mem_array(c->n_wide + 1, sizeof(*at));

	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].sql.n)
			at[c->at[i].place] = &c->at[i];
	for (size_t i = 0; i < c->n_wide; i++) {
		buf_add_text(out, ", ");
		columns_quote(out, at[i]->sql);
	}
	free(at);
}

/* One statement for every run, whatever it has: a database then parses it once. */
static const char *insert_of(struct columns *c)
{
	struct buf *sql = &c->insert;

	if (sql->len && c->n_insert == c->n_wide)
		return sql->data;
	buf_reset(sql);
	buf_add_text(sql, "INSERT INTO benchmark_runs (id, rest");
	add_names(sql, c);
	buf_add_text(sql, ") VALUES ($1, $2");
	for (size_t i = 0; i < c->n_wide; i++)
		buf_printf(sql, ", $%zu", i + 3);
	buf_add_char(sql, ')');
	c->n_insert = c->n_wide;
	return sql->data;
}

int store_wide_put(struct columns *c, struct db *d, int64_t id, const struct row *r,
		   const int64_t *number, struct err *e)
{
	struct plan p = { 0 };
	int rc;

	make_plan(&p, c, r, number);
	p.value[0] = db_int(id);
	rc = db_do(d, insert_of(c), p.value, p.n, e);
	end_plan(&p);
	return rc;
}

struct same {
	const struct plan *plan;
	bool is_same;
	size_t at; /* of the first difference */
};

static bool same_value(struct db_value want, struct db_value got)
{
	if (want.kind == DB_NULL || got.kind == DB_NULL)
		return want.kind == got.kind;
	if (want.kind == DB_TEXT)
		return got.kind == DB_TEXT && str_eq(want.bytes, got.bytes);
	return db_as_real(want) == db_as_real(got);
}

static int compare_row(void *self, const struct db_got *got)
{
	struct same *s = self;

	for (s->at = 1; s->at < got->n; s->at++)
		if (!same_value(s->plan->value[s->at], got->v[s->at]))
			return 1;
	s->is_same = true;
	return 1;
}

int store_wide_same(const struct columns *c, struct db *d, int64_t id, const struct row *r,
		    struct arena *a, struct str *what, struct err *e)
{
	int64_t *number = mem_array(r->n + 1, sizeof(*number));
	struct plan p = { 0 };
	struct buf sql = { 0 };
	struct same s = { .plan = &p };
	struct db_value v = db_int(id);
	int rc;

	for (size_t i = 0; i < r->n; i++) {
		uint64_t at;

		number[i] = map_get(&c->numbers, r->cell[i].column, &at) ? (int64_t)at : -1;
	}
	make_plan(&p, c, r, number);
	buf_add_text(&sql, "SELECT id, rest");
	add_names(&sql, c);
	buf_add_text(&sql, " FROM benchmark_runs WHERE id = $1");
	rc = db_run(d, sql.data, &v, 1, compare_row, &s, e);
	if (!rc && !s.is_same)
		*what = str_of(arena_printf(a, s.at ? "run %lld: value %zu of its row in"
							" benchmark_runs differs from its document" :
						      "run %lld has no row in benchmark_runs",
					    (long long)id, s.at));
	buf_release(&sql);
	end_plan(&p);
	free(number);
	return rc ? rc : s.is_same;
}
