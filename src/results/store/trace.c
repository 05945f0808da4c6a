/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.c - files of profilers, by their content.
 *
 * A file lies at FOLDER/ab/abcd...: its SHA-256. Rows of `traces` point at it; it goes with the
 * last one that needs it. Files appear before their row is committed and go within the
 * transaction that ends the last row, so a crash leaves at worst a file too many, or a trace
 * that is missing.
 */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "results/store/pack.h"
#include "results/store/parts.h"

#define COLUMNS "id, run, name, hash, model, engine_commit, bytes, at, is_expired"

/* Caller frees. */
static char *path_of(const struct store *s, struct str hash)
{
	struct buf path = { 0 };

	buf_printf(&path, "%s/%.2s/%.*s", s->traces, hash.p, (int)hash.n, hash.p);
	return buf_take(&path);
}

static int needs_folder(const struct store *s, struct err *e)
{
	if (s->traces)
		return 0;
	return err_set(e, ERR_USAGE, "traces need a folder of their own next to %s: --traces-dir names "
		       "it", s->shown);
}

/* Whoever may read the store may read its traces. */
static int copy_in(const struct store *s, const char *path, struct str bytes, struct err *e)
{
	char *folder = mem_text(path);
	int rc;

	*strrchr(folder, '/') = 0;
	rc = file_mkdirs_mode(folder, s->mode | 0700 | (s->mode & 0044) >> 2, e);
	if (!rc)
		rc = file_write_atomic_mode(path, bytes, s->mode, e);
	free(folder);
	return rc;
}

struct facts {
	struct store *s;
	struct arena *a;
	struct str model, commit;
};

static int take_facts(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct facts *f = self;
	struct row r = { 0 };

	(void)n;
	if (unpack_row(db_as_bytes(v[0]), columns_name, &f->s->columns, f->a, &r, e) < 0)
		return -1;
	for (size_t i = 0; i < r.n; i++) {
		if (r.cell[i].value.kind != VALUE_TEXT)
			continue;
		if (str_is(r.cell[i].column, "server.model") ||
		    (!f->model.n && str_is(r.cell[i].column, "benchmark.model")))
			f->model = r.cell[i].value.text;
		if (str_is(r.cell[i].column, "provenance.engine_commit"))
			f->commit = r.cell[i].value.text;
	}
	return 1;
}

/* A trace of that run and content, whose file was gone, is here again. */
static int find_same(struct store_write *w, int64_t run, struct str hash, int64_t *id,
		     struct err *e)
{
	struct db_value v[2] = { db_int(run), db_text(hash) };
	struct db_value again[2] = { db_real(store_now_s()) };
	int rc = db_integer(w->db, "SELECT id FROM traces WHERE run = $1 AND hash = $2"
				   " ORDER BY is_expired LIMIT 1", v, 2, 0, id, e);

	if (rc || !*id)
		return rc;
	again[1] = db_int(*id);
	return db_run(w->db, "UPDATE traces SET is_expired = 0, at = $1 WHERE id = $2"
			     " AND is_expired <> 0", again, 2, NULL, NULL, e);
}

static int insert(struct store *s, struct store_write *w, int64_t run, struct str name,
		  struct str hash, size_t bytes, int64_t *id, struct err *e)
{
	struct arena a = { 0 };
	struct facts facts = { .s = s, .a = &a };
	struct db_value v[1] = { db_int(run) };
	int rc = find_same(w, run, hash, id, e);

	if (rc || *id)
		return rc;
	if (run)
		rc = store_is_run(w, run, e);
	if (!rc && run)
		rc = db_run(w->db, "SELECT cells FROM documents WHERE id = $1", v, 1, take_facts, &facts,
			    e);
	if (!rc)
		rc = store_number(w, "trace", 1, id, e);
	if (!rc) {
		struct db_value all[] = { db_int(*id), db_int(run), db_text(name), db_text(hash),
					  db_text(facts.model), db_text(facts.commit),
					  db_int((int64_t)bytes), db_real(store_now_s()) };

		rc = db_run(w->db, "INSERT INTO traces (" COLUMNS ")"
				   " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0)", all, 8, NULL, NULL,
			    e);
	}
	arena_release(&a);
	return rc;
}

static struct str last_part(struct str name)
{
	for (size_t i = name.n; i > 0; i--)
		if (name.p[i - 1] == '/' || name.p[i - 1] == '\\')
			return (struct str){ name.p + i, name.n - i };
	return name;
}

static int put(struct store *s, int64_t run, struct str name, struct str bytes, struct str hash,
	       int64_t *id, struct err *e)
{
	char *target = path_of(s, hash);
	struct buf clean = { 0 };
	struct store_write w;
	int rc;

	/* The long part goes before the lock; whether it was for nothing is seen under it. */
	rc = s->is_read_only || file_exists(target) ? 0 : copy_in(s, target, bytes, e);
	if (!rc)
		rc = store_write_begin(s, &w, e);
	if (!rc) {
		if (!file_exists(target))
			rc = copy_in(s, target, bytes, e);
		if (!rc)
			rc = insert(s, &w, run, store_clean_name(&clean, last_part(name)), hash,
				    bytes.n, id, e);
		rc = store_write_end(s, &w, rc, e);
	}
	buf_release(&clean);
	free(target);
	return rc;
}

int store_trace_put(struct store *s, int64_t run, struct str name, const char *path, int64_t *id,
		    struct err *e)
{
	char hash[DIGEST_HEX];
	struct str bytes;
	int rc;

	if (needs_folder(s, e) < 0 || file_map(path, &bytes, e) < 0)
		return -1;
	rc = put(s, run, name, bytes, str_of(digest_hex(DIGEST_SHA256, bytes, hash)), id, e);
	file_unmap(bytes);
	return rc;
}

/* Whether the run has it, or had it until it expired. */
static int is_known(struct store *s, int64_t run, struct str hash, bool *out, struct err *e)
{
	struct arena a = { 0 };
	struct trace *t;
	size_t n;
	int rc = store_traces(s, run, &a, &t, &n, e);

	*out = false;
	for (size_t i = 0; rc == 0 && i < n; i++)
		*out |= str_eq(t[i].hash, hash) &&
			(str_is(t[i].state, "here") || str_is(t[i].state, "expired"));
	arena_release(&a);
	return rc;
}

int store_trace_take(struct store *s, int64_t run, struct str name, const char *path, bool *is_new,
		     struct err *e)
{
	char hash[DIGEST_HEX];
	struct str bytes;
	int64_t id;
	bool known;
	int rc;

	*is_new = false;
	if (needs_folder(s, e) < 0 || file_map(path, &bytes, e) < 0)
		return -1;
	digest_hex(DIGEST_SHA256, bytes, hash);
	rc = is_known(s, run, str_of(hash), &known, e);
	if (rc == 0 && !known) {
		rc = put(s, run, name, bytes, str_of(hash), &id, e);
		*is_new = rc == 0;
	}
	file_unmap(bytes);
	return rc;
}

struct traces {
	struct store *s;
	struct arena *a;
	struct trace *trace;
	size_t n, room;
};

static void add(struct traces *l, const struct trace *t)
{
	if (l->n == l->room) {
		struct trace *more;

		l->room = l->room ? 2 * l->room : 16;
		more = arena_alloc(l->a, l->room * sizeof(*more));
		if (l->n)
			memcpy(more, l->trace, l->n * sizeof(*more));
		l->trace = more;
	}
	l->trace[l->n++] = *t;
}

static int take_trace(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct traces *l = self;
	struct trace t = {
		.id = db_as_int(v[0]),
		.run = db_as_int(v[1]),
		.name = arena_str(l->a, db_as_bytes(v[2])),
		.hash = arena_str(l->a, db_as_bytes(v[3])),
		.model = arena_str(l->a, db_as_bytes(v[4])),
		.commit = arena_str(l->a, db_as_bytes(v[5])),
		.bytes = db_as_int(v[6]),
		.at_s = db_as_real(v[7]),
		.state = STR("missing"),
	};
	char *path = l->s->traces && t.hash.n > 2 ? path_of(l->s, t.hash) : NULL;

	(void)n;
	(void)e;
	if (db_as_int(v[8]) == TRACE_EXPIRED)
		t.state = STR("expired");
	else if (path && file_exists(path))
		t.state = STR("here");
	else if (db_as_int(v[8]) == TRACE_LEFT_OUT)
		t.state = STR("left_out");
	free(path);
	add(l, &t);
	return 0;
}

int store_traces(struct store *s, int64_t run, struct arena *a, struct trace **out, size_t *n,
		 struct err *e)
{
	struct traces l = { .s = s, .a = a };
	struct db_value v = db_int(run);
	int rc = run ? store_ask(s, "SELECT " COLUMNS " FROM traces WHERE run = $1 ORDER BY id DESC", &v,
				 1, take_trace, &l, e) :
		       store_ask(s, "SELECT " COLUMNS " FROM traces ORDER BY id DESC", NULL, 0,
				 take_trace, &l, e);

	*out = l.trace;
	*n = l.n;
	return rc;
}

int store_trace_open(struct store *s, int64_t id, struct arena *a, struct trace *out, struct err *e)
{
	struct traces l = { .s = s, .a = a };
	struct db_value v = db_int(id);
	char *path;
	int fd;

	if (store_ask(s, "SELECT " COLUMNS " FROM traces WHERE id = $1", &v, 1, take_trace, &l, e) < 0)
		return -1;
	if (!l.n)
		return err_set(e, ERR_USAGE, "there is no trace with the number %lld", (long long)id);
	*out = l.trace[0];
	if (!str_is(out->state, "here"))
		return err_set(e, ERR_USAGE, "the file of trace %lld is %s", (long long)id,
			       str_is(out->state, "left_out") ? "not in this store: backups leave "
			       "traces out" : str_is(out->state, "expired") ? "expired" : "missing");
	path = path_of(s, out->hash);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		err_set(e, ERR_IO, "%s: %s", path, strerror(errno));
	free(path);
	return fd;
}

/* The file goes when no row needs it any more. */
static int drop_file(struct store *s, struct store_write *w, struct str hash, struct err *e)
{
	struct db_value v = db_text(hash);
	int64_t others;
	char *path;

	if (!s->traces || hash.n < 3)
		return 0;
	if (db_integer(w->db, "SELECT count(*) FROM traces WHERE hash = $1 AND is_expired <> 1", &v, 1,
		       0, &others, e) < 0)
		return -1;
	if (others)
		return 0;
	path = path_of(s, hash);
	unlink(path);
	free(path);
	return 0;
}

static int drop_all(struct store *s, struct store_write *w, const struct traces *l, bool is_expiry,
		    struct err *e)
{
	for (size_t i = 0; i < l->n; i++) {
		struct db_value v = db_int(l->trace[i].id);

		if (db_run(w->db, is_expiry ? "UPDATE traces SET is_expired = 1 WHERE id = $1" :
					      "DELETE FROM traces WHERE id = $1", &v, 1, NULL, NULL,
			   e) < 0 || drop_file(s, w, l->trace[i].hash, e) < 0)
			return -1;
	}
	return 0;
}

int store_trace_drop(struct store *s, int64_t id, struct err *e)
{
	struct arena a = { 0 };
	struct traces l = { .s = s, .a = &a };
	struct db_value v = db_int(id);
	struct store_write w;
	int rc;

	if (store_write_begin(s, &w, e) < 0)
		return -1;
	rc = db_run(w.db, "SELECT " COLUMNS " FROM traces WHERE id = $1", &v, 1, take_trace, &l, e);
	if (!rc && !l.n)
		rc = err_set(e, ERR_USAGE, "there is no trace with the number %lld", (long long)id);
	if (!rc)
		rc = drop_all(s, &w, &l, false, e);
	arena_release(&a);
	return store_write_end(s, &w, rc, e);
}

int store_traces_forget(struct store *s, struct store_write *w, int64_t run, struct err *e)
{
	struct arena a = { 0 };
	struct traces l = { .s = s, .a = &a };
	struct db_value v = db_int(run);
	int rc = db_run(w->db, "SELECT " COLUMNS " FROM traces WHERE run = $1", &v, 1, take_trace, &l,
			e);

	if (!rc)
		rc = drop_all(s, w, &l, false, e);
	arena_release(&a);
	return rc;
}

int store_traces_expire(struct store *s, struct store_write *w, double before_s, int64_t bytes_max,
			size_t *n, struct err *e)
{
	struct arena a = { 0 };
	struct traces l = { .s = s, .a = &a }, old = { .s = s, .a = &a };
	int64_t bytes = 0;
	int rc = db_run(w->db, "SELECT " COLUMNS " FROM traces WHERE is_expired <> 1 ORDER BY id DESC",
			NULL, 0, take_trace, &l, e);

	for (size_t i = 0; i < l.n; i++) {
		bytes += l.trace[i].bytes;
		if (l.trace[i].at_s < before_s || (bytes_max && bytes > bytes_max))
			add(&old, &l.trace[i]);
	}
	*n = old.n;
	if (!rc)
		rc = drop_all(s, w, &old, true, e);
	arena_release(&a);
	return rc;
}
