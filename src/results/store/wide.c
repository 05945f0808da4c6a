/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.c - a run's row of benchmark_runs, for whoever asks the database itself.
 *
 * The cells that the store keeps of a run are the truth; this row repeats them in SQL. A value
 * goes to its column when it is of the column's kind and the row has room (PostgreSQL's rows end
 * at 8 kB); else it is a member of the JSON object in `rest`. Null and absent are both NULL
 * here.
 */
#include <math.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "results/store/parts.h"

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
	rc = db_run(d, insert_of(c), p.value, p.n, NULL, NULL, e);
	end_plan(&p);
	return rc;
}

struct same {
	const struct plan *plan;
	bool is_same;
	size_t at; /* of the first that differs */
};

static bool same_value(struct db_value want, struct db_value got)
{
	if (want.kind == DB_NULL || got.kind == DB_NULL)
		return want.kind == got.kind;
	if (want.kind == DB_TEXT)
		return got.kind == DB_TEXT && str_eq(want.bytes, got.bytes);
	return db_as_real(want) == db_as_real(got);
}

static int compare(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct same *s = self;

	(void)e;
	for (s->at = 1; s->at < n; s->at++)
		if (!same_value(s->plan->value[s->at], v[s->at]))
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
	rc = db_run(d, sql.data, &v, 1, compare, &s, e);
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
