/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - comma- and tab-separated values (RFC 4180) as objects of texts.
 *
 * The first line names the columns: a name that was there before gets ".1", ".2"..., one that
 * is empty becomes "Unnamed: 3" (from 0), as pandas calls them. Cells in double quotes may hold
 * separators, line breaks and quotes (doubled). Empty lines are skipped; a row with more
 * or fewer cells than the head is an error.
 */
#include <stdlib.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "json/write.h"
#include "table/pass.h"

struct csv_table {
	struct table_pass pass;
	char separator;
	struct buf keys;      /* each as JSON with its colon */
	size_t *key_end;      /* where each ends in keys */
	size_t columns;
	struct buf row, cell;
};

enum cell_end { CELL_NEXT, CELL_LAST, CELL_BAD };

struct cell {
	struct str text;      /* without the outer quotes */
	bool has_quotes;      /* doubled ones inside */
	const char *why;      /* of CELL_BAD */
};

/* One of the two kinds of end; *p moves behind it. CR, LF and CR LF end a line. */
static enum cell_end finish(char separator, const char **p, const char *end)
{
	const char *at = *p;

	if (at < end && *at == separator) {
		*p = at + 1;
		return CELL_NEXT;
	}
	if (at < end)
		*p = at + (end - at >= 2 && at[0] == '\r' && at[1] == '\n' ? 2 : 1);
	return CELL_LAST;
}

static bool is_stop(char c, char separator)
{
	return c == separator || c == '\n' || c == '\r';
}

static enum cell_end read_cell(char separator, const char **p, const char *end, struct cell *out)
{
	const char *from = *p, *at = from;

	out->has_quotes = false;
	if (at == end || *at != '"') {
		while (at < end && !is_stop(*at, separator))
			at++;
		out->text = (struct str){ from, (size_t)(at - from) };
		*p = at;
		return finish(separator, p, end);
	}
	for (from = ++at;; at += 2) {
		at = at < end ? memchr(at, '"', (size_t)(end - at)) : NULL;
		if (!at) {
			out->why = "a cell in quotes begins here and does not end";
			return CELL_BAD;
		}
		if (end - at < 2 || at[1] != '"')
			break;
		out->has_quotes = true;
	}
	out->text = (struct str){ from, (size_t)(at - from) };
	*p = at + 1;
	if (*p < end && !is_stop(**p, separator)) {
		out->why = "text behind the closing quote of a cell";
		return CELL_BAD;
	}
	return finish(separator, p, end);
}

/* The text of a cell, quotes undoubled in t->cell where there are any. */
static struct str cell_text(struct csv_table *t, const struct cell *cell)
{
	struct str rest = cell->text;

	if (!cell->has_quotes)
		return rest;
	buf_reset(&t->cell);
	while (rest.n) {
		const char *quote = memchr(rest.p, '"', rest.n);
		size_t n = quote ? (size_t)(quote - rest.p) + 1 : rest.n;

		buf_add(&t->cell, rest.p, n);
		n += quote ? 1 : 0;
		rest = (struct str){ rest.p + n, rest.n - n };
	}
	return buf_str(&t->cell);
}

static int fail_at(const struct table_pass *p, const char *at, const char *why, struct err *e)
{
	return err_set(e, ERR_PARSE, "%s: line %zu: %s", p->bytes->name,
		table_line_at(p->bytes, (size_t)(at - p->bytes->all.p)), why);
}

/* A name for a column that no column before it has. */
static struct str name_column(struct arena *a, struct map *seen, struct str text, size_t i)
{
	struct str name = text.n ? arena_str(a, text) : str_of(arena_printf(a, "Unnamed: %zu", i));
	struct str first = name;
	struct buf next = { 0 };
	uint64_t k = 0; /* the last number that was given to this name */

	map_get(seen, first, &k);
	while (map_get(seen, name, NULL)) {
		buf_reset(&next);
		buf_add_str(&next, first);
		buf_printf(&next, ".%zu", (size_t)++k);
		name = arena_str(a, buf_str(&next));
		map_put(seen, first, k);
	}
	buf_release(&next);
	map_put(seen, name, 0);
	return name;
}

static void add_column(struct csv_table *t, struct str name)
{
	buf_add_text(&t->keys, t->columns ? ", " : "");
	json_quote(&t->keys, name, true);
	buf_add_text(&t->keys, ": ");
	t->key_end = mem_grow(t->key_end, t->columns + 1, sizeof(*t->key_end));
	t->key_end[t->columns++] = t->keys.len;
}

static int read_head(struct csv_table *t, const char **p, const char *end, struct err *e)
{
	struct table_pass *pass = &t->pass;
	struct arena names = { 0 };
	struct map seen = { 0 };
	enum cell_end kind = CELL_NEXT;
	const char *from = *p;
	struct cell cell;
	struct str name;
	int rc = 0;

	while (rc == 0 && kind == CELL_NEXT) {
		from = *p;
		kind = read_cell(t->separator, p, end, &cell);
		if (kind == CELL_BAD)
			rc = fail_at(pass, from, cell.why, e);
		else if (t->columns == TABLE_COLUMNS_MAX)
			rc = err_set(e, ERR_LIMIT, "%s: more than %d columns (TABLE_COLUMNS_MAX)",
				pass->bytes->name, TABLE_COLUMNS_MAX);
		if (rc == 0) {
			name = name_column(&names, &seen, cell_text(t, &cell), t->columns);
			add_column(t, name);
		}
	}
	map_release(&seen);
	arena_release(&names);
	if (rc == 0 && t->keys.is_over)
		rc = err_set(e, ERR_LIMIT, "%s: the head is longer than %llu bytes",
			pass->bytes->name, TABLE_ROW_BYTES_MAX);
	return rc;
}

/* Past empty lines. */
static void skip_empty(const char **p, const char *end)
{
	while (*p < end && (**p == '\n' || **p == '\r'))
		++*p;
}

/* Moves past one row and counts its cells. */
static int skip_row(struct csv_table *t, const char **p, const char *end, struct err *e)
{
	struct table_pass *pass = &t->pass;
	enum cell_end kind = CELL_NEXT;
	const char *row = *p;
	size_t at = (size_t)(row - pass->bytes->all.p), n;
	struct cell cell;

	for (n = 0; kind == CELL_NEXT; n++) {
		const char *from = *p;

		kind = read_cell(t->separator, p, end, &cell);
		if (kind == CELL_BAD)
			return fail_at(pass, from, cell.why, e);
	}
	if (n != t->columns)
		return err_set(e, ERR_PARSE, "%s: line %zu: %zu cells, but the head names %zu columns",
			pass->bytes->name, table_line_at(pass->bytes, at), n, t->columns);
	return table_check_size(pass, at, (size_t)(*p - row), e);
}

static int read_rows(struct csv_table *t, struct err *e)
{
	struct table_pass *pass = &t->pass;
	struct str all = pass->bytes->all;
	const char *p, *end = all.p + all.n;
	size_t at;

	if (table_text_at(pass->bytes, &at, e) < 0)
		return -1;
	p = all.p + at;
	skip_empty(&p, end);
	if (p == end)
		return err_set(e, ERR_PARSE, "%s: empty; expected a line with the names of columns",
			pass->bytes->name);
	if (read_head(t, &p, end, e) < 0)
		return -1;
	for (skip_empty(&p, end); p < end; skip_empty(&p, end)) {
		at = (size_t)(p - all.p);
		if (skip_row(t, &p, end, e) < 0 || table_pass_row(pass, at, e) < 0 ||
		    table_pass_on(pass, (size_t)(p - all.p), e) < 0)
			return -1;
	}
	return 0;
}

static void csv_close(void *state)
{
	struct csv_table *t = state;

	if (t) {
		table_pass_release(&t->pass);
		buf_release(&t->keys);
		buf_release(&t->row);
		buf_release(&t->cell);
		free(t->key_end);
	}
	free(t);
}

static void *csv_open(const struct table_bytes *bytes, const struct table_opts *o, struct err *e)
{
	struct csv_table *t = mem_alloc(sizeof(*t));

	table_pass_begin(&t->pass, bytes, o);
	t->separator = str_ends(table_plain(bytes->name), STR(".tsv")) ? '\t' : ',';
	t->keys.limit = TABLE_ROW_BYTES_MAX;
	if (read_rows(t, e) == 0 && table_pass_end(&t->pass, e) == 0)
		return t;
	csv_close(t);
	return NULL;
}

static size_t csv_rows(const void *state)
{
	return ((const struct csv_table *)state)->pass.rows;
}

static int csv_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct csv_table *t = state;
	struct table_pass *pass = &t->pass;
	struct str all = pass->bytes->all;
	size_t at = pass->place[row], next = row + 1 < pass->rows ? pass->place[row + 1] : all.n;
	const char *p = all.p + at, *end = all.p + all.n;
	struct cell cell;

	table_touch(pass, at, next - at);
	buf_reset(&t->row);
	buf_add_char(&t->row, '{');
	for (size_t i = 0, key = 0; i < t->columns; key = t->key_end[i++]) {
		if (read_cell(t->separator, &p, end, &cell) == CELL_BAD)
			return err_set(e, ERR_PARSE, "%s", cell.why);
		buf_add(&t->row, t->keys.data + key, t->key_end[i] - key);
		json_quote(&t->row, cell_text(t, &cell), true);
	}
	buf_add_char(&t->row, '}');
	if (t->row.is_over)
		return err_set(e, ERR_LIMIT, "longer than %llu bytes as JSON (BUF_BYTES_MAX)",
			BUF_BYTES_MAX);
	*out = (struct json_slice){ JSON_OBJECT, buf_str(&t->row) };
	return 0;
}

static size_t csv_line(const void *state, size_t row)
{
	const struct csv_table *t = state;

	return table_line_at(t->pass.bytes, t->pass.place[row]);
}

const struct table_format table_csv = {
	.name = "csv", .open = csv_open, .close = csv_close, .rows = csv_rows, .row = csv_row,
	.line = csv_line,
};
