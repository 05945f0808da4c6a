/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - one run as it is kept. */
#include "core/base/mem.h"
#include "results/store/pack.h"
#include "results/store/parts.h"

struct wanted {
	struct arena *a;
	struct run_whole *out;
	bool is_there;
	size_t room;
};

static struct str keep(struct arena *a, struct db_value v)
{
	return arena_str(a, db_as_bytes(v));
}

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
static int take_run(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct wanted *w = self;
	struct run_whole *o = w->out;

	(void)n;
	w->is_there = true;
	o->id = db_as_int(v[0]);
	o->run_id = keep(w->a, v[1]);
	o->kind = keep(w->a, v[2]);
	o->hash = keep(w->a, v[3]);
	o->who = keep(w->a, v[4]);
	o->flags = (unsigned)db_as_int(v[5]);
	o->received_s = db_as_real(v[6]);
	o->has_arrays = db_as_int(v[8]) > 0;
	return unpack_into(w->a, v[7], &o->document, e) < 0 ? -1 : 1;
}

static int take_version(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct wanted *w = self;
	struct run_whole *o = w->out;

	(void)n;
	(void)e;
	if (o->n_versions == w->room) {
		int64_t *more;

		w->room = w->room ? 2 * w->room : 8;
		more = arena_alloc(w->a, w->room * sizeof(*more));
		if (o->n_versions)
			memcpy(more, o->version, o->n_versions * sizeof(*more));
		o->version = more;
	}
	o->version[o->n_versions++] = db_as_int(v[0]);
	return 0;
}

static int no_run(int64_t id, struct err *e)
{
	return err_set(e, ERR_USAGE, "there is no run with the number %lld", (long long)id);
}

int store_run(struct store *s, int64_t id, struct arena *a, struct run_whole *out, struct err *e)
{
	struct wanted w = { .a = a, .out = out };
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
		rc = no_run(id, e);
	if (!rc) {
		v = db_text(out->run_id);
		rc = db_run(d, "SELECT id FROM documents WHERE run_id = $1 ORDER BY id DESC", &v, 1,
			    take_version, &w, e);
	}
	store_reader_back(s, d);
	return rc;
}

struct arrays {
	struct buf *out;
	bool is_there;
};

static int take_arrays(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct arrays *w = self;

	(void)n;
	w->is_there = true;
	return unpack_text(db_as_bytes(v[0]), w->out, e) < 0 ? -1 : 1;
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

struct found {
	int64_t id;
};

static int take_id(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct found *f = self;

	(void)n;
	(void)e;
	f->id = db_as_int(v[0]);
	return 1;
}

int64_t store_find(struct store *s, struct str run_id)
{
	struct found f = { 0 };
	struct db_value v = db_text(run_id);

	store_ask(s, "SELECT id FROM documents WHERE run_id = $1 ORDER BY id DESC LIMIT 1", &v, 1,
		  take_id, &f, NULL);
	return f.id;
}
