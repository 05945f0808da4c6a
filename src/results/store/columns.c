/* SPDX-License-Identifier: Apache-2.0 */
/* columns.c - the columns of runs, packed; as store_internal.h has them. */
#include <math.h>
#include <stdlib.h>

#include "core/base/codec.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/table/codec.h"
#include "results/index/index.h"
#include "results/store/known.h"
#include "results/store/store_internal.h"

static const char *const kind_name[] = {
	[VALUE_BOOL] = "bool", [VALUE_NUMBER] = "number", [VALUE_TEXT] = "text",
};
#define IN_REST "rest" /* in place of a kind: values are members of benchmark_runs.rest */
static const char *const kind_type[] = {
	[VALUE_BOOL] = "BOOLEAN", [VALUE_NUMBER] = "{real}", [VALUE_TEXT] = "TEXT",
};
/* Usual filter columns of SQL queries. */
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

/* Names a new or dropped number. */
static void set_name(struct columns *c, size_t at, struct str name)
{
	c->at[at].name = arena_str(&c->texts, name);
	map_put(&c->numbers, c->at[at].name, at);
	c->n_own += !known_is_listed(name);
}

static size_t add(struct columns *c)
{
	make_room(c);
	c->at[c->n] = (struct column){ 0 };
	return c->n++;
}

/* SQL columns that wait for reuse do not count. */
static bool is_taken(struct columns *c, struct str sql)
{
	uint64_t is = 0;

	return map_get(&c->taken, lower(&c->texts, sql), &is) && is;
}

static bool is_spare(const struct column *c)
{
	return !c->name.n && c->sql.n;
}

static void set_sql(struct columns *c, size_t at, struct str sql, enum value_kind kind,
		    size_t place)
{
	c->at[at].place = place;
	c->at[at].sql = arena_str(&c->texts, sql);
	c->at[at].kind = kind;
	map_put(&c->taken, lower(&c->texts, sql), !is_spare(&c->at[at]));
}

/* number, name, sql_name, kind */
static int take_column(void *self, const struct db_got *got)
{
	struct columns *c = self;
	struct str kind = db_as_bytes(got->v[3]);
	size_t at;

	if (db_as_int(got->v[0]) != (int64_t)c->n)
		return err_set(got->e, ERR_PARSE, "the store's list of columns has no number %zu", c->n);
	at = add(c);
	if (got->v[1].kind == DB_NULL)
		c->n_free++;
	else
		set_name(c, at, db_as_bytes(got->v[1]));
	c->at[at].is_in_rest = str_is(kind, IN_REST);
	for (enum value_kind k = VALUE_BOOL; k <= VALUE_TEXT; k++)
		if (str_is(kind, kind_name[k]))
			set_sql(c, at, db_as_bytes(got->v[2]), k, c->n_wide++);
	return 0;
}

int columns_read(struct columns *c, struct db *d, struct err *e)
{
	int64_t edition;

	if (db_integer(d, "SELECT last FROM numbers WHERE name = 'columns'", NULL, 0, 0, &edition, e) < 0)
		return -1;
	if (c->n && c->edition == edition)
		return 0;
	columns_release(c);
	c->edition = edition;
	return db_run(d, "SELECT number, name, sql_name, kind FROM columns ORDER BY number", NULL, 0,
		      take_column, c, e);
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

/* Our own columns, and those that every table has in PostgreSQL. */
static bool is_reserved(struct str name)
{
	static const char *const word[] = { "id", "rest", "tableoid", "ctid", "xmin", "xmax", "cmin",
					    "cmax" };

	for (size_t i = 0; i < sizeof(word) / sizeof(*word); i++)
		if (str_eq_nocase(name, str_of(word[i])))
			return true;
	return false;
}

/* An unused name of at most COLUMN_SQL_BYTES_MAX bytes; empty: there is none. */
static struct str sql_name(struct columns *c, struct str name)
{
	char hash[DIGEST_HEX], *made;
	size_t keep = cut_at(name, COLUMN_SQL_BYTES_MAX);

	if (keep == name.n && !is_taken(c, name) && !is_reserved(name))
		return name;
	digest_hex(DIGEST_SHA256, name, hash);
	keep = cut_at(name, COLUMN_SQL_BYTES_MAX - 9);
	made = arena_printf(&c->texts, "%.*s~%.8s", (int)keep, name.p, hash);
	return is_taken(c, str_of(made)) ? (struct str){ "", 0 } : str_of(made);
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
	int rc = db_do(d, text->data, NULL, 0, e);

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

/* Indexes only cover runs that have a value, so missing values cost nothing. */
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
	struct buf text = db_words(d->hooks, "CREATE TABLE benchmark_runs (id {int} PRIMARY KEY{of_run},"
					     " rest TEXT");

	for (size_t i = 0; i < c->n; i++)
		if (c->at[i].sql.n) {
			buf_add_text(&text, ", ");
			add_definition(&text, d, c->at[i].sql, c->at[i].kind);
		}
	buf_add_text(&text, d->hooks->is_partitioned ? ") PARTITION BY RANGE (id)" : ")");
	if (db_do(d, "DROP TABLE benchmark_runs", NULL, 0, e) < 0) {
		buf_release(&text);
		return -1;
	}
	if (run_text(d, &text, e) < 0 ||
	    (d->hooks->is_partitioned && partitions_make(d, "benchmark_runs", e) < 0))
		return -1;
	return make_indexes(c, d, e);
}

/* ---- new ones ---- */

static int columns_edit(struct columns *c, struct db *d, struct err *e)
{
	if (c->is_edited)
		return 0;
	c->is_edited = true;
	c->edition++;
	return db_do(d, "UPDATE numbers SET last = last + 1 WHERE name = 'columns'", NULL, 0, e);
}

/* A dropped number, unless it has a waiting SQL column; else a new one. */
static int number_column(struct columns *c, struct db *d, struct str name, uint64_t *at,
			 struct err *e)
{
	struct db_value v[2] = { db_text(name) };
	size_t i = c->n_free ? 0 : c->n;
	bool is_new;

	while (i < c->n && (c->at[i].name.n || c->at[i].sql.n))
		i++;
	is_new = i == c->n;
	v[1] = db_int((int64_t)i);
	if (columns_edit(c, d, e) < 0 ||
	    db_do(d, is_new ? "INSERT INTO columns (name, number) VALUES ($1, $2)" :
			       "UPDATE columns SET name = $1 WHERE number = $2", v, 2, e) < 0)
		return -1;
	if (is_new)
		add(c);
	else
		c->n_free--;
	set_name(c, i, name);
	*at = i;
	return 0;
}

/* NULL for a name and a kind: none. */
static int update_sql(struct columns *c, struct db *d, size_t at, const struct str *name,
		      const char *kind, struct err *e)
{
	struct db_value v[3] = { { 0 }, { 0 }, db_int((int64_t)at) };

	if (name)
		v[0] = db_text(*name);
	if (kind)
		v[1] = db_text(str_of(kind));
	if (columns_edit(c, d, e) < 0)
		return -1;
	return db_do(d, "UPDATE columns SET sql_name = $1, kind = $2 WHERE number = $3", v, 3, e);
}

/*
 * A waiting SQL column: one of that name, or when the table is full any of that kind, because
 * users' views on a column follow it to its next name. c->n: there is none.
 */
static size_t spare_column(const struct columns *c, struct str name, enum value_kind kind)
{
	size_t found = c->n;

	for (size_t i = 0; c->n_free && i < c->n; i++) {
		if (!is_spare(&c->at[i]) || c->at[i].kind != kind)
			continue;
		if (str_eq(c->at[i].sql, name))
			return i;
		if (found == c->n && c->n_wide >= COLUMNS_WIDE_MAX)
			found = i;
	}
	return found;
}

/* is_made_later: columns_make is about to make the whole table. */
static int rename_column(struct columns *c, struct db *d, size_t at, struct str name,
			 bool is_made_later, struct err *e)
{
	struct str old = c->at[at].sql;
	struct buf text = { 0 };

	if (str_eq(old, name))
		return 0;
	buf_add_text(&text, "ALTER TABLE benchmark_runs RENAME COLUMN ");
	columns_quote(&text, old);
	buf_add_text(&text, " TO ");
	columns_quote(&text, name);
	if (is_made_later)
		buf_release(&text);
	else if (run_text(d, &text, e) < 0)
		return -1;
	map_put(&c->taken, lower(&c->texts, old), 0);
	set_sql(c, at, name, c->at[at].kind, c->at[at].place);
	buf_reset(&c->insert);
	return 0;
}

/* Frees a name held by an SQL column without values that cannot be reused as it is. */
static int free_name(struct columns *c, struct db *d, struct str name, enum value_kind kind,
		     bool is_made_later, struct err *e)
{
	for (size_t i = 0; c->n_free && i < c->n; i++) {
		struct str other;

		if (!is_spare(&c->at[i]) || !str_eq_nocase(c->at[i].sql, name) ||
		    (c->at[i].kind == kind && str_eq(c->at[i].sql, name)))
			continue;
		other = sql_name(c, str_of(arena_printf(&c->texts, "~%zu~%lld", i,
							(long long)c->edition)));
		if (rename_column(c, d, i, other, is_made_later, e) < 0)
			return -1;
		return update_sql(c, d, i, &other, kind_name[c->at[i].kind], e);
	}
	return 0;
}

static size_t wide_left(const struct columns *c)
{
	size_t left = COLUMNS_WIDE_MAX > c->n_wide ? COLUMNS_WIDE_MAX - c->n_wide : 0;

	for (size_t i = 0; c->n_free && i < c->n; i++)
		left += is_spare(&c->at[i]);
	return left;
}

/* Sets a column's SQL name and kind: reuses a waiting column, else adds a new one. */
static int widen(struct columns *c, struct db *d, size_t at, enum value_kind kind,
		 bool is_made_later, struct err *e)
{
	struct str name = sql_name(c, c->at[at].name);
	size_t from = spare_column(c, name, kind);

	if (!name.n || (from == c->n && c->n_wide >= COLUMNS_WIDE_MAX))
		return 0;
	if (free_name(c, d, name, kind, is_made_later, e) < 0)
		return -1;
	if (from < c->n) {
		if (rename_column(c, d, from, name, is_made_later, e) < 0 ||
		    update_sql(c, d, from, NULL, NULL, e) < 0)
			return -1;
		set_sql(c, at, name, kind, c->at[from].place);
		c->at[from].sql = (struct str){ "", 0 };
	} else {
		if (!is_made_later && add_column(d, name, kind, e) < 0)
			return -1;
		set_sql(c, at, name, kind, c->n_wide++);
	}
	return update_sql(c, d, at, &name, kind_name[kind], e);
}

/* Identifies the schemas' columns in the table of numbers: a digest of their names. */
static int64_t known_number(void)
{
	uint64_t h = 0xcbf29ce484222325;

	for (size_t i = 0; i < known_column_count; i++)
		for (size_t k = 0; k <= strlen(known_columns[i].name); k++)
			h = (h ^ (unsigned char)known_columns[i].name[k]) * 0x100000001b3;
	return (int64_t)(h >> 2);
}

static bool is_full(const struct columns *c)
{
	return c->n - c->n_free >= INDEX_COLUMNS_MAX;
}

static int add_known(struct columns *c, struct db *d, struct err *e)
{
	int64_t runs = 0;

	if (db_integer(d, "SELECT count(*) FROM (SELECT id FROM benchmark_runs LIMIT 1) AS one_run", NULL,
		       0, 0, &runs, e) < 0)
		return -1;
	for (size_t i = 0; i < known_column_count; i++) {
		uint64_t at;

		if (!map_get(&c->numbers, str_of(known_columns[i].name), &at)) {
			if (is_full(c))
				continue;
			if (number_column(c, d, str_of(known_columns[i].name), &at, e) < 0)
				return -1;
		}
		if (!c->at[at].sql.n && !c->at[at].is_in_rest &&
		    widen(c, d, (size_t)at, known_columns[i].type, runs == 0, e) < 0)
			return -1;
	}
	return runs ? make_indexes(c, d, e) : columns_make(c, d, e);
}

/* The number of the last change grows, so that other processes read the list again. */
static int know(struct columns *c, struct db *d, struct err *e)
{
	struct db_value v = db_int(known_number());

	if (db_do(d, "UPDATE numbers SET last = last + 1 WHERE name = 'change'", NULL, 0, e) < 0)
		return -1;
	if (db_do(d, "DELETE FROM numbers WHERE name = 'known_columns'", NULL, 0, e) < 0 ||
	    db_do(d, "INSERT INTO numbers (name, last) VALUES ('known_columns', $1)", &v, 1, e) < 0)
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

size_t columns_own_max(void)
{
	return INDEX_COLUMNS_MAX - known_listed_count();
}

/* One of `parts` parts, at least one while anything is left. */
static size_t share(size_t left, size_t parts, size_t most)
{
	size_t n = left / parts;

	if (!n && left)
		n = 1;
	return n < most ? n : most;
}

struct columns_room columns_room(const struct columns *c, size_t upload_names)
{
	size_t most = columns_own_max(), left = most > c->n_own ? most - c->n_own : 0;
	size_t upload = share(left + upload_names, COLUMNS_NEW_UPLOAD_SHARE,
			      COLUMNS_NEW_UPLOAD_MAX);
	size_t run = share(left, COLUMNS_NEW_RUN_SHARE, COLUMNS_NEW_RUN_MAX);

	upload = upload > upload_names ? upload - upload_names : 0;
	return (struct columns_room){
		.names = run < upload ? run : upload,
		.wide = share(wide_left(c), COLUMNS_WIDE_SHARE, COLUMNS_WIDE_MAX),
	};
}

static void leave_out(struct columns_left *left, struct str name)
{
	left->n++;
	if (left->n_names < COLUMNS_LEFT_SHOWN)
		left->name[left->n_names++] = name;
}

/* An SQL column for its values, of that kind; or none, as they are in `rest` from now on. */
static int place_values(struct columns *c, struct db *d, size_t at, enum value_kind kind,
			struct columns_room *room, struct err *e)
{
	bool is_listed = known_is_listed(c->at[at].name);

	if (is_listed ? wide_left(c) > COLUMNS_WIDE_KEPT : room->wide > 0) {
		room->wide -= !is_listed;
		if (widen(c, d, at, kind, false, e) < 0)
			return -1;
	}
	if (c->at[at].sql.n)
		return 0;
	c->at[at].is_in_rest = true;
	return update_sql(c, d, at, NULL, IN_REST, e);
}

int columns_number(struct columns *c, struct db *d, const struct row *r, struct columns_room *room,
		   int64_t *number, struct columns_left *left, struct err *e)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct cell *cell = &r->cell[i];
		uint64_t at;

		number[i] = -1;
		if (!map_get(&c->numbers, cell->column, &at)) {
			bool is_own = !known_is_listed(cell->column);

			if (!can_keep(cell->column)) {
				left->n_bad++;
				continue;
			}
			if (is_full(c) || (is_own && !room->names)) {
				leave_out(left, cell->column);
				continue;
			}
			room->names -= is_own;
			if (number_column(c, d, cell->column, &at, e) < 0)
				return -1;
		}
		number[i] = (int64_t)at;
		if (cell->value.kind > VALUE_NULL && !c->at[at].sql.n && !c->at[at].is_in_rest &&
		    place_values(c, d, (size_t)at, cell->value.kind, room, e) < 0)
			return -1;
	}
	return 0;
}

/* ---- given back ---- */

bool columns_can_go(const struct columns *c, size_t number)
{
	struct str name = c->at[number].name;
	const struct known_column *row = name.n ? known_column(name) : NULL;

	return name.n && !(row && str_is(name, row->name));
}

int columns_give_back(struct columns *c, struct db *d, const bool *is_used, size_t *n,
		      struct err *e)
{
	*n = 0;
	for (size_t i = 0; i < c->n; i++) {
		struct db_value v = db_int((int64_t)i);

		if (is_used[i] || !columns_can_go(c, i))
			continue;
		++*n;
		if (columns_edit(c, d, e) < 0 ||
		    db_do(d, "UPDATE columns SET name = NULL, kind = CASE WHEN sql_name IS NULL THEN NULL"
			      " ELSE kind END WHERE number = $1", &v, 1, e) < 0)
			return -1;
	}
	return *n ? columns_again(c, d, e) : 0;
}

bool columns_want_widening(const struct columns *c)
{
	bool has_spare = false, has_rest = false;

	for (size_t i = 0; i < c->n; i++) {
		has_spare |= is_spare(&c->at[i]);
		has_rest |= c->at[i].is_in_rest;
	}
	return has_spare || (has_rest && wide_left(c) > COLUMNS_WIDE_KEPT);
}

int columns_widen_anew(struct columns *c, struct db *d, struct columns_room *room, struct err *e)
{
	if (columns_edit(c, d, e) < 0 ||
	    db_do(d, "UPDATE columns SET sql_name = NULL, kind = NULL WHERE name IS NULL"
		      " OR kind = '" IN_REST "'", NULL, 0, e) < 0 ||
	    columns_again(c, d, e) < 0)
		return -1;
	*room = (struct columns_room){ .wide = wide_left(c) };
	room->wide -= room->wide < COLUMNS_WIDE_KEPT ? room->wide : COLUMNS_WIDE_KEPT;
	return columns_make(c, d, e);
}

struct str columns_name(const void *columns, uint64_t number)
{
	const struct columns *c = columns;

	return number < c->n ? c->at[number].name : (struct str){ "", 0 };
}

#define LEVEL 3
#define WHOLE_MAX 0x1p53

enum cell_kind { CELL_NULL, CELL_FALSE, CELL_TRUE, CELL_WHOLE, CELL_REAL, CELL_TEXT };

static void put_u64(struct buf *out, uint64_t v)
{
	char bytes[8];

	for (size_t i = 0; i < 8; i++)
		bytes[i] = (char)(v >> (8 * i));
	buf_add(out, bytes, 8);
}

static uint64_t take_u64(const char *p)
{
	uint64_t v = 0;

	for (size_t i = 0; i < 8; i++)
		v |= (uint64_t)(uint8_t)p[i] << (8 * i);
	return v;
}

void pack_text(struct str text, struct buf *out)
{
	put_u64(out, text.n);
	codec_pack(text, LEVEL, out);
}

int unpack_text(struct str packed, struct buf *out, struct err *e)
{
	struct buf text = { .limit = PACK_TEXT_BYTES_MAX };
	uint64_t size = packed.n < 8 ? UINT64_MAX : take_u64(packed.p);

	if (size > PACK_TEXT_BYTES_MAX)
		return err_set(e, ERR_PARSE, "what the store kept is cut off or damaged");
	if (codec_unpack(CODEC_ZSTD, (struct str){ packed.p + 8, packed.n - 8 }, (size_t)size,
			 &text, e) < 0) {
		buf_release(&text);
		return err_wrap(e, "what the store kept is damaged");
	}
	buf_add_str(out, buf_str(&text));
	buf_release(&text);
	return 0;
}

static void put_number(struct buf *out, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		buf_add_char(out, (char)(v | 0x80));
	buf_add_char(out, (char)v);
}

static bool take_number(struct str *rest, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; rest->n && shift < 64; shift += 7) {
		uint8_t byte = (uint8_t)*rest->p;

		rest->p++;
		rest->n--;
		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return true;
	}
	return false;
}

static void put_value(struct buf *out, struct value v)
{
	double x = v.number;
	uint64_t bits;

	switch (v.kind) {
	case VALUE_ABSENT:
	case VALUE_NULL: buf_add_char(out, CELL_NULL); break;
	case VALUE_BOOL: buf_add_char(out, v.is_true ? CELL_TRUE : CELL_FALSE); break;
	case VALUE_NUMBER:
		if (fabs(x) < WHOLE_MAX && floor(x) == x && !(x == 0 && signbit(x))) {
			int64_t whole = (int64_t)x;

			buf_add_char(out, CELL_WHOLE);
			put_number(out, (uint64_t)whole << 1 ^ (uint64_t)(whole >> 63));
		} else {
			buf_add_char(out, CELL_REAL);
			memcpy(&bits, &x, sizeof(bits));
			put_u64(out, bits);
		}
		break;
	case VALUE_TEXT:
		buf_add_char(out, CELL_TEXT);
		put_number(out, v.text.n);
		buf_add_str(out, v.text);
		break;
	}
}

void pack_row(const struct row *r, const int64_t *column, struct buf *out)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n; i++)
		n += column[i] >= 0;
	buf_add_char(out, PACK_VERSION);
	put_number(out, n);
	for (size_t i = 0; i < r->n; i++) {
		if (column[i] < 0)
			continue;
		put_number(out, (uint64_t)column[i]);
		put_value(out, r->cell[i].value);
	}
}

static bool take_value(struct str *rest, struct arena *a, struct value *out)
{
	uint64_t v;
	char kind;

	if (!rest->n)
		return false;
	kind = *rest->p++;
	rest->n--;
	*out = (struct value){ .kind = VALUE_NUMBER };
	switch (kind) {
	case CELL_NULL: out->kind = VALUE_NULL; return true;
	case CELL_FALSE:
	case CELL_TRUE:
		out->kind = VALUE_BOOL;
		out->is_true = kind == CELL_TRUE;
		return true;
	case CELL_WHOLE:
		if (!take_number(rest, &v))
			return false;
		out->number = (double)((int64_t)(v >> 1) ^ -(int64_t)(v & 1));
		return true;
	case CELL_REAL:
		if (rest->n < 8)
			return false;
		v = take_u64(rest->p);
		memcpy(&out->number, &v, sizeof(v));
		rest->p += 8;
		rest->n -= 8;
		return !isnan(out->number);
	case CELL_TEXT:
		if (!take_number(rest, &v) || v > rest->n)
			return false;
		out->kind = VALUE_TEXT;
		out->text = arena_str(a, (struct str){ rest->p, (size_t)v });
		rest->p += v;
		rest->n -= (size_t)v;
		return true;
	default: return false;
	}
}

int unpack_row(struct str packed, struct str (*name)(const void *self, uint64_t number),
	       const void *self, struct arena *a, struct row *out, struct err *e)
{
	struct str rest = packed;
	uint64_t n, number;

	if (!rest.n || *rest.p != PACK_VERSION)
		goto damaged;
	rest.p++;
	rest.n--;
	if (!take_number(&rest, &n) || n > rest.n / 2)
		goto damaged;
	out->cell = arena_alloc(a, (size_t)n * sizeof(*out->cell));
	out->n = (size_t)n;
	for (size_t i = 0; i < n; i++) {
		if (!take_number(&rest, &number))
			goto damaged;
		out->cell[i].column = name(self, number);
		if (!out->cell[i].column.n || !take_value(&rest, a, &out->cell[i].value))
			goto damaged;
	}
	if (rest.n == 0)
		return 0;
damaged:
	return err_set(e, ERR_PARSE, "the cells that the store kept of a run are damaged");
}
