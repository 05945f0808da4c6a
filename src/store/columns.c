/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - see columns.h. */
#include "store/columns.h"

#include "base/digest.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "index/index.h"
#include "store/known.h"
#include "store/migrate.h"

static const char *const kind_name[] = {
	[VALUE_BOOL] = "bool", [VALUE_NUMBER] = "number", [VALUE_TEXT] = "text",
};
static const char *const kind_type[] = {
	[VALUE_BOOL] = "BOOLEAN", [VALUE_NUMBER] = "{real}", [VALUE_TEXT] = "TEXT",
};
/* What people ask a database for. */
static const char *const indexed[] = {
	"run_id", "timestamp", "suite", "name", "status", "verdict", "config_hash", "server.model",
	"server.tensor_parallel_size", "hardware.gpu", "benchmark.dataset_name",
	"benchmark.request_rate", "benchmark.max_concurrency", "environment.server.version",
	"provenance.engine_commit",
};

void columns_release(struct columns *c)
{
	free(c->at);
	map_release(&c->numbers);
	map_release(&c->taken);
	arena_release(&c->texts);
	buf_release(&c->insert);
	*c = (struct columns){ 0 };
}

static struct str lower(struct arena *a, struct str s)
{
	char *p = arena_text(a, s);

	for (size_t i = 0; i < s.n; i++)
		p[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 'a' - 'A') : p[i];
	return (struct str){ p, s.n };
}

static void make_room(struct columns *c)
{
	if (c->n < c->room)
		return;
	c->room = c->room ? 2 * c->room : 256;
	c->at = mem_grow(c->at, c->room, sizeof(*c->at));
}

static size_t add(struct columns *c, struct str name)
{
	make_room(c);
	c->at[c->n] = (struct column){ .name = arena_str(&c->texts, name) };
	map_put(&c->numbers, c->at[c->n].name, c->n);
	return c->n++;
}

static void set_sql(struct columns *c, size_t at, struct str sql, enum value_kind kind)
{
	if (!c->at[at].sql.n)
		c->at[at].place = c->n_wide++;
	c->at[at].sql = arena_str(&c->texts, sql);
	c->at[at].kind = kind;
	map_put(&c->taken, lower(&c->texts, sql), 1);
}

static int take_column(void *self, const struct db_value *v, size_t n, struct err *e)
{
	struct columns *c = self;
	size_t at = (size_t)db_as_int(v[0]);
	struct str kind = db_as_bytes(v[3]);

	(void)n;
	if (at > c->n)
		return err_set(e, ERR_PARSE, "the store's list of columns has no number %zu", c->n);
	if (at == c->n)
		add(c, db_as_bytes(v[1]));
	for (enum value_kind k = VALUE_BOOL; k <= VALUE_TEXT; k++)
		if (!c->at[at].sql.n && str_is(kind, kind_name[k]))
			set_sql(c, at, db_as_bytes(v[2]), k);
	return 0;
}

/* A column may be older than its SQL name; such ones are few, and looked at each time. */
int columns_read(struct columns *c, struct db *d, struct err *e)
{
	struct db_value from = db_int((int64_t)c->n);

	for (size_t i = 0; i < c->n; i++) {
		if (!c->at[i].sql.n && c->n_wide < COLUMNS_WIDE_MAX) {
			from = db_int((int64_t)i);
			break;
		}
	}
	return db_run(d, "SELECT number, name, sql_name, kind FROM columns WHERE number >= $1"
			 " ORDER BY number", &from, 1, take_column, c, e);
}

int columns_again(struct columns *c, struct db *d, struct err *e)
{
	columns_release(c);
	return columns_read(c, d, e);
}

static size_t cut_at(struct str name, size_t most)
{
	size_t n = 0, step;

	while (n < name.n && (utf8_next(name.p + n, &step), n + step <= most))
		n += step;
	return n;
}

/* A name that nothing else has, of at most COLUMN_SQL_BYTES_MAX bytes. */
static struct str sql_name(struct columns *c, struct str name)
{
	char hash[DIGEST_HEX], *made;
	size_t keep = cut_at(name, COLUMN_SQL_BYTES_MAX);

	if (keep == name.n && !map_get(&c->taken, lower(&c->texts, name), NULL) &&
	    !str_eq_nocase(name, STR("id")) && !str_eq_nocase(name, STR("rest")))
		return name;
	digest_hex(DIGEST_SHA256, name, hash);
	keep = cut_at(name, COLUMN_SQL_BYTES_MAX - 9);
	made = arena_printf(&c->texts, "%.*s~%.8s", (int)keep, name.p, hash);
	if (map_get(&c->taken, lower(&c->texts, str_of(made)), NULL))
		return (struct str){ "", 0 };
	return str_of(made);
}

/* ---- statements ---- */

void columns_quote(struct buf *text, struct str name)
{
	buf_add_char(text, '"');
	for (size_t i = 0; i < name.n; i++) {
		if (name.p[i] == '"')
			buf_add_char(text, '"');
		buf_add_char(text, name.p[i]);
	}
	buf_add_char(text, '"');
}

/* "name" TYPE: the type's words are of the dialect, the name's never are. */
static void add_definition(struct buf *text, struct db *d, struct str name, enum value_kind kind)
{
	struct buf type = db_words(d->hooks, kind_type[kind]);

	columns_quote(text, name);
	buf_add_char(text, ' ');
	buf_add_str(text, buf_str(&type));
	buf_release(&type);
}

static int run_text(struct db *d, struct buf *text, struct err *e)
{
	int rc = db_run(d, text->data, NULL, 0, NULL, NULL, e);

	buf_release(text);
	return rc;
}

static int add_column(struct db *d, struct str name, enum value_kind kind, struct err *e)
{
	struct buf text = { 0 };

	buf_add_text(&text, "ALTER TABLE benchmark_runs ADD COLUMN ");
	add_definition(&text, d, name, kind);
	return run_text(d, &text, e);
}

bool columns_is_indexed(struct str name)
{
	for (size_t i = 0; i < sizeof(indexed) / sizeof(*indexed); i++)
		if (str_is(name, indexed[i]))
			return true;
	return false;
}

/* Of the runs that have a value: what a run lacks costs it nothing. */
static int make_indexes(const struct columns *c, struct db *d, struct err *e)
{
	for (size_t i = 0; i < sizeof(indexed) / sizeof(*indexed); i++) {
		struct buf text = { 0 };
		uint64_t at;

		if (!map_get(&c->numbers, str_of(indexed[i]), &at) || !c->at[at].sql.n)
			continue;
		buf_add_text(&text, "CREATE INDEX IF NOT EXISTS benchmark_runs_");
		for (const char *p = indexed[i]; *p; p++)
			buf_add_char(&text, *p == '.' ? '_' : *p);
		buf_add_text(&text, " ON benchmark_runs (");
		columns_quote(&text, c->at[at].sql);
		buf_add_text(&text, ") WHERE ");
		columns_quote(&text, c->at[at].sql);
		buf_add_text(&text, " IS NOT NULL");
		if (run_text(d, &text, e) < 0)
			return -1;
	}
	return 0;
}

int columns_make(const struct columns *c, struct db *d, struct err *e)
{
	struct buf text = db_words(d->hooks, migrate_wide_table), more = { 0 };

	if (db_run(d, "DROP TABLE benchmark_runs", NULL, 0, NULL, NULL, e) < 0) {
		buf_release(&text);
		return -1;
	}
	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].sql.n) {
			buf_add_text(&more, ", ");
			add_definition(&more, d, c->at[i].sql, c->at[i].kind);
		}
	text.len--; /* the bracket that ends it */
	buf_add_str(&text, buf_str(&more));
	buf_add_char(&text, ')');
	buf_release(&more);
	return run_text(d, &text, e) < 0 ? -1 : make_indexes(c, d, e);
}

/* ---- new ones ---- */

static int number_column(struct columns *c, struct db *d, struct str name, uint64_t *at,
			 struct err *e)
{
	struct db_value v[2] = { db_int((int64_t)c->n), db_text(name) };

	if (db_run(d, "INSERT INTO columns (number, name) VALUES ($1, $2)", v, 2, NULL, NULL, e) < 0)
		return -1;
	*at = add(c, name);
	return 0;
}

/* Its name and kind in SQL; is_there: the table has it already, or gets it later. */
static int widen(struct columns *c, struct db *d, size_t at, enum value_kind kind, bool is_there,
		 struct err *e)
{
	struct str name = sql_name(c, c->at[at].name);
	struct db_value v[3] = { db_text(name), db_text(str_of(kind_name[kind])),
				 db_int((int64_t)at) };

	if (!name.n)
		return 0;
	if ((!is_there && add_column(d, name, kind, e) < 0) ||
	    db_run(d, "UPDATE columns SET sql_name = $1, kind = $2 WHERE number = $3", v, 3, NULL, NULL,
		   e) < 0)
		return -1;
	set_sql(c, at, name, kind);
	return 0;
}

/* What stands for the schemas' columns in the table of numbers: a digest of their names. */
static int64_t known_number(void)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < known_column_count; i++)
		for (size_t k = 0; k <= strlen(known_columns[i].name); k++)
			h = (h ^ (unsigned char)known_columns[i].name[k]) * 0x100000001b3;
	return (int64_t)(h >> 2);
}

static int add_known(struct columns *c, struct db *d, struct err *e)
{
	int64_t runs = 0;

	if (db_integer(d, "SELECT count(*) FROM (SELECT id FROM benchmark_runs LIMIT 1) AS one_run", NULL,
		       0, 0, &runs, e) < 0)
		return -1;
	for (size_t i = 0; i < known_column_count; i++) {
		uint64_t at;

		if (!map_get(&c->numbers, str_of(known_columns[i].name), &at) &&
		    (c->n >= INDEX_COLUMNS_MAX ||
		     number_column(c, d, str_of(known_columns[i].name), &at, e) < 0))
			return c->n >= INDEX_COLUMNS_MAX ? 0 : -1;
		if (!c->at[at].sql.n && c->n_wide < COLUMNS_WIDE_MAX &&
		    widen(c, d, (size_t)at, known_columns[i].type, runs == 0, e) < 0)
			return -1;
	}
	return runs ? make_indexes(c, d, e) : columns_make(c, d, e);
}

/* The number of the last change grows, so that other processes read the list again. */
static int know(struct columns *c, struct db *d, struct err *e)
{
	struct db_value v = db_int(known_number());

	if (db_run(d, "UPDATE numbers SET last = last + 1 WHERE name = 'change'", NULL, 0, NULL, NULL,
		   e) < 0)
		return -1;
	if (db_run(d, "DELETE FROM numbers WHERE name = 'known_columns'", NULL, 0, NULL, NULL, e) < 0 ||
	    db_run(d, "INSERT INTO numbers (name, last) VALUES ('known_columns', $1)", &v, 1, NULL,
		   NULL, e) < 0)
		return -1;
	return add_known(c, d, e);
}

int columns_know(struct columns *c, struct db *d, struct err *e)
{
	int64_t there = 0;
	int rc;

	if (d->is_inside)
		return know(c, d, e);
	if (db_integer(d, "SELECT last FROM numbers WHERE name = 'known_columns'", NULL, 0, 0, &there,
		       e) < 0)
		return -1;
	if (there == known_number())
		return 0;
	if (db_begin(d, DB_WRITE, e) < 0)
		return -1;
	rc = columns_again(c, d, e) < 0 ? -1 : know(c, d, e);
	rc = db_end(d, rc, e);
	if (rc)
		columns_release(c);
	return rc;
}

static bool can_keep(struct str name)
{
	return name.n && name.n <= COLUMN_NAME_BYTES_MAX && !memchr(name.p, 0, name.n) &&
	       utf8_is_valid(name);
}

int columns_number(struct columns *c, struct db *d, const struct row *r, int64_t *number,
		   size_t *n_left_out, struct err *e)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct cell *cell = &r->cell[i];
		uint64_t at;

		number[i] = -1;
		if (!map_get(&c->numbers, cell->column, &at)) {
			if (!can_keep(cell->column) || c->n >= INDEX_COLUMNS_MAX) {
				++*n_left_out;
				continue;
			}
			if (number_column(c, d, cell->column, &at, e) < 0)
				return -1;
		}
		number[i] = (int64_t)at;
		if (cell->value.kind > VALUE_NULL && !c->at[at].sql.n &&
		    c->n_wide < COLUMNS_WIDE_MAX &&
		    widen(c, d, (size_t)at, cell->value.kind, false, e) < 0)
			return -1;
	}
	return 0;
}

struct str columns_name(const void *columns, uint64_t number)
{
	const struct columns *c = columns;

	return number < c->n ? c->at[number].name : (struct str){ "", 0 };
}
