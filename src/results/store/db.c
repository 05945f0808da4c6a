/* SPDX-License-Identifier: Apache-2.0 */
/* db.c - what is the same for both databases. */
#include <math.h>

#include "core/base/str.h"
#include "core/opt/opt.h"
#include "results/store/db.h"

/* What stands before the first colon, when it could be the name of a way to reach something. */
static struct str scheme_of(struct str url)
{
	const char *colon = url.n ? memchr(url.p, ':', url.n) : NULL;
	size_t n = colon ? (size_t)(colon - url.p) : 0;

	return (struct str){ url.p, n && !memchr(url.p, '/', n) ? n : 0 };
}

const struct db_hooks *db_hooks_of(const char *url, const char **place, struct err *e)
{
	static const char *const known[] = { "sqlite", "postgresql", "postgres" };
	struct str scheme = scheme_of(str_of(url));
	const char *meant;

	*place = url;
	if (!scheme.n)
		return &db_sqlite;
	if (str_is(scheme, "postgresql") || str_is(scheme, "postgres"))
		return &db_postgres;
	if (str_is(scheme, "sqlite")) {
		*place = url + strlen("sqlite:");
		return &db_sqlite;
	}
	meant = opt_nearest(scheme, known, sizeof(known) / sizeof(*known));
	err_set(e, ERR_USAGE, "%s: expected sqlite:PATH or postgresql://...", url);
	if (meant)
		err_add(e, "; did you mean %s:?", meant);
	return NULL;
}

int db_run(struct db *d, const char *sql, const struct db_value *v, size_t n, db_row *row,
	   void *self, struct err *e)
{
	for (size_t i = 0; i < n; i++) {
		if (v[i].kind != DB_TEXT)
			continue;
		if (v[i].bytes.n && memchr(v[i].bytes.p, 0, v[i].bytes.n))
			return err_set(e, ERR_USAGE, "a text that holds U+0000 cannot be kept");
		if (!utf8_is_valid(v[i].bytes))
			return err_set(e, ERR_USAGE, "a text that is not valid UTF-8 cannot be kept");
	}
	return d->hooks->run(d, sql, v, n, row, self, e);
}

struct first {
	int64_t value;
};

static int take_first(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct first *f = self;

	(void)e;
	if (n && v[0].kind != DB_NULL)
		f->value = db_as_int(v[0]);
	return 1;
}

int db_integer(struct db *d, const char *sql, const struct db_value *v, size_t n,
	       int64_t otherwise, int64_t *out, struct err *e)
{
	struct first f = { otherwise };

	if (db_run(d, sql, v, n, take_first, &f, e) < 0)
		return -1;
	*out = f.value;
	return 0;
}

struct buf db_words(const struct db_hooks *h, const char *sql)
{
	static const char *const name[] = { "{int}", "{real}", "{blob}" };
	struct buf out = { 0 };

	while (*sql) {
		size_t i = 0;

		while (i < 3 && !str_starts(str_of(sql), str_of(name[i])))
			i++;
		if (i < 3) {
			buf_add_text(&out, h->word[i]);
			sql += strlen(name[i]);
		} else {
			buf_add_char(&out, *sql++);
		}
	}
	return out;
}

int db_begin(struct db *d, enum db_begin how, struct err *e)
{
	for (size_t i = 0; i < 3 && d->hooks->begin[how][i]; i++) {
		if (db_run(d, d->hooks->begin[how][i], NULL, 0, NULL, NULL, e) == 0) {
			d->is_inside = true;
			continue;
		}
		if (d->is_inside)
			db_end(d, -1, NULL);
		return -1;
	}
	return 0;
}

int db_end(struct db *d, int outcome, struct err *e)
{
	int rc = outcome;

	if (!outcome)
		rc = db_run(d, "COMMIT", NULL, 0, NULL, NULL, e);
	if (rc)
		db_run(d, "ROLLBACK", NULL, 0, NULL, NULL, NULL);
	d->is_inside = false;
	return rc;
}

int64_t db_as_int(struct db_value v)
{
	switch (v.kind) {
	case DB_BOOL:
	case DB_INT: return v.integer;
	case DB_REAL: return isfinite(v.real) && fabs(v.real) < 9e18 ? (int64_t)v.real : 0;
	default: return 0;
	}
}

double db_as_real(struct db_value v)
{
	if (v.kind == DB_REAL)
		return v.real;
	return v.kind == DB_INT || v.kind == DB_BOOL ? (double)v.integer : (double)NAN;
}

struct str db_as_bytes(struct db_value v)
{
	return v.kind == DB_TEXT || v.kind == DB_BLOB ? v.bytes : (struct str){ "", 0 };
}
