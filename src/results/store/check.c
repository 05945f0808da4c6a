/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check.c - whether a store is what it says: everything that is kept is read, as of one moment.
 */
#include <stdarg.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "results/store/pack.h"
#include "results/store/parts.h"

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

static int take_complaint(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct str text = db_as_bytes(v[0]);

	(void)n;
	(void)e;
	if (!str_is(text, "ok"))
		find(self, "the database: %.*s", (int)text.n, text.p);
	return 0;
}

/* Statements whose number must be 0. */
static int check_counts(struct check *c, struct err *e)
{
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
		  "runs are shown though there is a newer one of the same run_id" },
		{ "SELECT count(*) FROM documents d WHERE (d.flags & 4) <> 0 AND NOT EXISTS"
		  " (SELECT 1 FROM documents n WHERE n.run_id = d.run_id AND n.id > d.id)",
		  "runs are hidden as older though there is no newer one of the same run_id" },
		{ "SELECT count(*) FROM removed r WHERE EXISTS"
		  " (SELECT 1 FROM documents d WHERE d.id = r.id)", "removed runs are still there" },
		{ "SELECT count(*) FROM documents WHERE changed >"
		  " (SELECT last FROM numbers WHERE name = 'change')",
		  "runs have a number of change that was never given out" },
		{ "SELECT count(*) FROM documents WHERE id >"
		  " (SELECT last FROM numbers WHERE name = 'run')",
		  "runs have a number that was never given out" },
		{ "SELECT count(*) FROM documents d WHERE ((d.flags & 1) <> 0) <> EXISTS"
		  " (SELECT 1 FROM exclusions x WHERE x.run = d.id AND x.ended IS NULL)",
		  "runs are excluded without a reason, or have one without being excluded" },
	};

	for (size_t i = 0; i < sizeof(rule) / sizeof(rule[0]); i++) {
		int64_t n;

		if (db_integer(c->d, rule[i].sql, NULL, 0, 0, &n, e) < 0)
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
static int check_run(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct whole *w = self;
	struct buf document = { .limit = PACK_TEXT_BYTES_MAX },
		   arrays = { .limit = PACK_TEXT_BYTES_MAX };
	uint8_t bytes[DIGEST_BYTES];
	char hex[DIGEST_HEX];
	struct err why = { 0 };

	(void)n;
	(void)e;
	w->row = (struct row){ .id = w->id };
	w->is_readable = unpack_row(db_as_bytes(v[1]), columns_name, &w->c->columns, &w->a, &w->row,
				    &why) == 0;
	if (!w->is_readable)
		find(w->c, "run %lld: %s", (long long)w->id, why.text);
	if (unpack_text(db_as_bytes(v[2]), &document, &why) < 0 ||
	    (v[3].kind != DB_NULL && unpack_text(db_as_bytes(v[3]), &arrays, &why) < 0)) {
		find(w->c, "run %lld: %s", (long long)w->id, why.text);
	} else {
		digest(DIGEST_SHA256, buf_str(&document), buf_str(&arrays), bytes);
		for (size_t i = 0; i < DIGEST_BYTES; i++)
			snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
		if (!str_is(db_as_bytes(v[0]), hex))
			find(w->c, "run %lld: its document is not what came in", (long long)w->id);
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

struct ids {
	int64_t id[IDS_AT_ONCE];
	size_t n;
};

static int take_id(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct ids *l = self;

	(void)n;
	(void)e;
	l->id[l->n++] = db_as_int(v[0]);
	return l->n == IDS_AT_ONCE;
}

static int check_runs(struct check *c, struct err *e)
{
	struct ids *ids = mem_alloc(sizeof(*ids));
	int64_t last = 0;
	int rc = 0;

	do {
		struct db_value v[2] = { db_int(last), db_int(IDS_AT_ONCE) };

		ids->n = 0;
		rc = db_run(c->d, "SELECT id FROM documents WHERE id > $1 ORDER BY id LIMIT $2", v, 2,
			    take_id, ids, e);
		for (size_t i = 0; i < ids->n && !rc; i++)
			rc = check_one(c, last = ids->id[i], e);
	} while (!rc && ids->n);
	free(ids);
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
 * A trace whose file is gone is told by `traces`; only what people believe to be there is a
 * finding.
 */
static int check_traces(struct check *c, struct err *e)
{
	struct trace *trace;
	size_t n;

	if (store_traces(c->s, 0, c->a, &trace, &n, e) < 0)
		return -1;
	for (size_t i = 0; i < n; i++)
		if (str_is(trace[i].state, "missing"))
			find(c, "trace %lld (%.*s): its file is missing", (long long)trace[i].id,
			     (int)trace[i].name.n, trace[i].name.p);
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
