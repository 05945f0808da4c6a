/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - tables that are text: the pass over their bytes, lines, CSV and JSON. */
#include "input/table/table_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"

/* ---- the pass ---- */

/*
 * The one pass over a file's bytes, which finds the offsets of its rows.
 *
 * Afterwards rows are read in any order; touch limits the memory that this occupies.
 */
struct table_pass {
	const struct table_bytes *bytes;
	const struct table_opts *o;
	uint64_t *place; /* where each row begins */
	size_t rows, cap;
	size_t kept;     /* pages before this are released */
	size_t due;      /* where the next look around is due */
	size_t touched;  /* bytes that may have been read since the last release */
	size_t last;     /* where the last row began */
};

#define LOOK_BYTES (1u << 20) /* between two looks at memory, progress and the wish to stop */

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

void table_forget(struct str all, size_t *from, size_t to)
{
	size_t page = page_bytes(), end = to / page * page;

	assert(to <= all.n && *from % page == 0);
	if (end < *from || end - *from < TABLE_WINDOW_BYTES)
		return;
	/* A failure costs memory, not correctness. */
	(void)madvise((void *)(uintptr_t)(all.p + *from), end - *from, MADV_DONTNEED);
	*from = end;
}

/* The kernel reads far ahead of the pass, and a little around a row later. */
static void advise(const struct table_pass *p, int how)
{
	(void)madvise((void *)(uintptr_t)p->bytes->all.p, p->bytes->all.n, how);
}

static void pass_begin(struct table_pass *p, const struct table_bytes *bytes,
	const struct table_opts *o)
{
	*p = (struct table_pass){ .bytes = bytes, .o = o, .due = LOOK_BYTES };
	advise(p, MADV_SEQUENTIAL);
}

/* The offset of the text, after a byte order mark. -1: it is UTF-16. */
static int text_at(const struct table_bytes *bytes, size_t *at, struct err *e)
{
	struct str all = bytes->all;

	*at = str_starts(all, STR("\xef\xbb\xbf")) ? 3 : 0;
	if (str_starts(all, STR("\xff\xfe")) || str_starts(all, STR("\xfe\xff")))
		return err_set(e, ERR_PARSE, "%s: written in UTF-16; expected UTF-8", bytes->name);
	return 0;
}

/* Notes a row that begins at `at`. -1: TABLE_ROWS_MAX. */
static int pass_row(struct table_pass *p, size_t at, struct err *e)
{
	if (p->rows == p->cap && p->rows >= TABLE_ROWS_MAX)
		return err_set(e, ERR_LIMIT, "%s: more than %llu rows (TABLE_ROWS_MAX)", p->bytes->name,
			       TABLE_ROWS_MAX);
	p->place = mem_room(p->place, p->rows, &p->cap, sizeof(*p->place));
	p->place[p->rows++] = at;
	return 0;
}

/* The bytes before `at` are done: releases memory, reports progress, ERR_CANCELLED. */
static int pass_look(struct table_pass *p, size_t at, struct err *e)
{
	table_forget(p->bytes->all, &p->kept, at);
	p->due = at + LOOK_BYTES;
	if (p->o->progress)
		p->o->progress(p->o->self, at, p->bytes->all.n);
	if (p->o->cancel && atomic_load(p->o->cancel))
		return err_set(e, ERR_CANCELLED, "%s: stopped", p->bytes->name);
	return 0;
}

static int pass_on(struct table_pass *p, size_t at, struct err *e)
{
	return at < p->due ? 0 : pass_look(p, at, e);
}

/* The pass is over: reports the last progress; from now on rows are read in any order. */
static int pass_end(struct table_pass *p, struct err *e)
{
	int rc = pass_look(p, p->bytes->all.n, e);

	advise(p, MADV_NORMAL);
	p->touched = p->bytes->all.n - p->kept;
	if (p->rows && p->rows < p->cap)
		p->place = mem_grow(p->place, p->rows, sizeof(*p->place));
	p->cap = p->rows;
	return rc;
}

/* Touching a page maps its cached neighbors, too, up to a whole huge page at each end. */
#define AROUND_BYTES (2u << 20)

/* Called before a row of n bytes is read; pages of earlier rows may be released. */
static void touch(struct table_pass *p, size_t at, size_t n)
{
	bool is_near = at >= p->last && at - p->last < AROUND_BYTES;
	size_t from = 0;

	p->touched += is_near ? at - p->last + n : n + 2 * (size_t)AROUND_BYTES;
	p->last = at;
	if (p->touched < TABLE_WINDOW_BYTES)
		return;
	table_forget(p->bytes->all, &from, p->bytes->all.n);
	p->touched = 0;
	p->last = p->bytes->all.n; /* whatever comes is far from it */
}

/* 1-based line of a place; reads the file up to there. */
static size_t line_at(const struct table_bytes *bytes, size_t at)
{
	const char *p = bytes->all.p, *end = p + at;
	size_t line = 1, kept = 0;

	assert(at <= bytes->all.n);
	while (p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL) {
		line++;
		p++;
		table_forget(bytes->all, &kept, (size_t)(p - bytes->all.p));
	}
	return line;
}

/* ERR_LIMIT for a row of more than TABLE_ROW_BYTES_MAX bytes. */
static int check_size(const struct table_pass *p, size_t at, size_t n, struct err *e)
{
	if (n <= TABLE_ROW_BYTES_MAX)
		return 0;
	return err_set(e, ERR_LIMIT, "%s: the row at byte %zu is longer than %llu bytes "
		"(TABLE_ROW_BYTES_MAX)", p->bytes->name, at, TABLE_ROW_BYTES_MAX);
}

/* ---- what these tables share ---- */

struct text_table {
	struct table_pass pass;
	struct buf row, cell;
	/* CSV: */
	char separator;
	struct buf keys;      /* each as JSON with its colon */
	size_t *key_end;      /* where each ends in keys */
	size_t columns;
	bool is_array;        /* JSON: rows are elements, which have no lines */
};

static void text_close(void *state)
{
	struct text_table *t = state;

	if (t) {
		free(t->pass.place);
		buf_release(&t->keys);
		buf_release(&t->row);
		buf_release(&t->cell);
		free(t->key_end);
	}
	free(t);
}

static void *open_rows(const struct table_bytes *bytes, const struct table_opts *o,
		       int (*read)(struct text_table *t, struct err *e), struct err *e)
{
	struct text_table *t = mem_alloc(sizeof(*t));

	pass_begin(&t->pass, bytes, o);
	if (read(t, e) == 0 && pass_end(&t->pass, e) == 0)
		return t;
	text_close(t);
	return NULL;
}

static size_t text_rows(const void *state)
{
	return ((const struct text_table *)state)->pass.rows;
}

/* The offset of a row, and of the next one; the row is about to be read. */
static size_t row_at(struct table_pass *p, size_t row, size_t *next)
{
	*next = row + 1 < p->rows ? p->place[row + 1] : p->bytes->all.n;
	touch(p, p->place[row], *next - p->place[row]);
	return p->place[row];
}

/* The object in t->row. */
static int row_made(struct text_table *t, struct json_slice *out, struct err *e)
{
	buf_add_char(&t->row, '}');
	if (t->row.is_over)
		return err_set(e, ERR_LIMIT, "longer than %llu bytes as JSON (BUF_BYTES_MAX)",
			BUF_BYTES_MAX);
	*out = (struct json_slice){ JSON_OBJECT, buf_str(&t->row) };
	return 0;
}

/* ---- lines of text ---- */

/* The end of the line at `at`; *lf is the first LF at or after it, found once. */
static size_t text_line_end(struct str all, size_t at, size_t *lf)
{
	const char *p;

	if (*lf < at || (at == 0 && *lf == 0)) {
		p = memchr(all.p + at, '\n', all.n - at);
		*lf = p ? (size_t)(p - all.p) : all.n;
	}
	p = memchr(all.p + at, '\r', *lf - at);
	return p ? (size_t)(p - all.p) : *lf;
}

static size_t behind_line(struct str all, size_t end)
{
	bool is_crlf = end + 1 < all.n && all.p[end] == '\r' && all.p[end + 1] == '\n';

	return end + 1 + is_crlf;
}

static int read_lines(struct text_table *t, struct err *e)
{
	struct table_pass *p = &t->pass;
	struct str all = p->bytes->all;
	size_t at, end, lf = 0;

	if (text_at(p->bytes, &at, e) < 0)
		return -1;
	for (; at < all.n; at = behind_line(all, end)) {
		end = text_line_end(all, at, &lf);
		if (check_size(p, at, end - at, e) < 0 || pass_row(p, at, e) < 0 ||
		    pass_on(p, end, e) < 0)
			return -1;
	}
	return 0;
}

static void *text_open(const struct table_bytes *bytes, const struct table_opts *o, struct err *e)
{
	return open_rows(bytes, o, read_lines, e);
}

static int text_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct text_table *t = state;
	const char *all = t->pass.bytes->all.p;
	size_t next, at = row_at(&t->pass, row, &next);

	while (next > at && (all[next - 1] == '\n' || all[next - 1] == '\r'))
		next--;
	buf_reset(&t->row);
	buf_add_text(&t->row, "{\"text\": ");
	json_quote(&t->row, (struct str){ all + at, next - at }, true);
	return row_made(t, out, e);
}

static size_t text_line(const void *state, size_t row)
{
	(void)state;
	return row + 1;
}

const struct table_format table_text = {
	.name = "text", .open = text_open, .close = text_close, .rows = text_rows, .row = text_row,
	.line = text_line,
};

/* ---- comma- and tab-separated values ---- */

/*
 * Comma- and tab-separated values (RFC 4180) as objects of texts.
 *
 * The first line names the columns: a repeated name gets ".1", ".2"..., an empty one becomes
 * "Unnamed: 3" (from 0), as in pandas. Cells in double quotes may hold separators, line breaks and
 * quotes (doubled). Empty lines are skipped; a row with more or fewer cells than the head is an
 * error.
 */

enum cell_end { CELL_NEXT, CELL_LAST, CELL_BAD };

struct text_cell {
	struct str text;      /* without the outer quotes */
	bool has_quotes;      /* doubled ones inside */
	const char *why;      /* of CELL_BAD */
};

/* One of the two kinds of end; moves *p past it. CR, LF and CR LF end a line. */
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

static enum cell_end read_cell(char separator, const char **p, const char *end,
			       struct text_cell *out)
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
		out->why = "text after the closing quote of a cell";
		return CELL_BAD;
	}
	return finish(separator, p, end);
}

/* The text of a cell, quotes undoubled in t->cell where there are any. */
static struct str cell_text(struct text_table *t, const struct text_cell *cell)
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

static int csv_fail_at(const struct table_pass *p, const char *at, const char *why, struct err *e)
{
	return err_set(e, ERR_PARSE, "%s: line %zu: %s", p->bytes->name,
		line_at(p->bytes, (size_t)(at - p->bytes->all.p)), why);
}

/* A name for a column that no earlier column has. */
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

static void add_column(struct text_table *t, struct str name)
{
	buf_add_text(&t->keys, t->columns ? ", " : "");
	json_quote(&t->keys, name, true);
	buf_add_text(&t->keys, ": ");
	t->key_end = mem_grow(t->key_end, t->columns + 1, sizeof(*t->key_end));
	t->key_end[t->columns++] = t->keys.len;
}

static int read_head(struct text_table *t, const char **p, const char *end, struct err *e)
{
	struct table_pass *pass = &t->pass;
	struct arena names = { 0 };
	struct map seen = { 0 };
	enum cell_end kind = CELL_NEXT;
	const char *from = *p;
	struct text_cell cell;
	struct str name;
	int rc = 0;

	while (rc == 0 && kind == CELL_NEXT) {
		from = *p;
		kind = read_cell(t->separator, p, end, &cell);
		if (kind == CELL_BAD)
			rc = csv_fail_at(pass, from, cell.why, e);
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

/* Skips empty lines. */
static void skip_empty(const char **p, const char *end)
{
	while (*p < end && (**p == '\n' || **p == '\r'))
		++*p;
}

/* Moves past one row and counts its cells. */
static int skip_row(struct text_table *t, const char **p, const char *end, struct err *e)
{
	struct table_pass *pass = &t->pass;
	enum cell_end kind = CELL_NEXT;
	const char *row = *p;
	size_t at = (size_t)(row - pass->bytes->all.p), n;
	struct text_cell cell;

	for (n = 0; kind == CELL_NEXT; n++) {
		const char *from = *p;

		kind = read_cell(t->separator, p, end, &cell);
		if (kind == CELL_BAD)
			return csv_fail_at(pass, from, cell.why, e);
	}
	if (n != t->columns)
		return err_set(e, ERR_PARSE, "%s: line %zu: %zu cells, but the head names %zu columns",
			pass->bytes->name, line_at(pass->bytes, at), n, t->columns);
	return check_size(pass, at, (size_t)(*p - row), e);
}

static int csv_read_rows(struct text_table *t, struct err *e)
{
	struct table_pass *pass = &t->pass;
	struct str all = pass->bytes->all;
	const char *p, *end = all.p + all.n;
	size_t at;

	t->separator = str_ends(table_plain(pass->bytes->name), STR(".tsv")) ? '\t' : ',';
	t->keys.limit = TABLE_ROW_BYTES_MAX;
	if (text_at(pass->bytes, &at, e) < 0)
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
		if (skip_row(t, &p, end, e) < 0 || pass_row(pass, at, e) < 0 ||
		    pass_on(pass, (size_t)(p - all.p), e) < 0)
			return -1;
	}
	return 0;
}

static void *csv_open(const struct table_bytes *bytes, const struct table_opts *o, struct err *e)
{
	return open_rows(bytes, o, csv_read_rows, e);
}

static int csv_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct text_table *t = state;
	struct str all = t->pass.bytes->all;
	size_t next;
	const char *p = all.p + row_at(&t->pass, row, &next), *end = all.p + all.n;
	struct text_cell cell;

	buf_reset(&t->row);
	buf_add_char(&t->row, '{');
	for (size_t i = 0, key = 0; i < t->columns; key = t->key_end[i++]) {
		if (read_cell(t->separator, &p, end, &cell) == CELL_BAD)
			return err_set(e, ERR_PARSE, "%s", cell.why);
		buf_add(&t->row, t->keys.data + key, t->key_end[i] - key);
		json_quote(&t->row, cell_text(t, &cell), true);
	}
	return row_made(t, out, e);
}

static size_t csv_line(const void *state, size_t row)
{
	const struct text_table *t = state;

	return line_at(t->pass.bytes, t->pass.place[row]);
}

const struct table_format table_csv = {
	.name = "csv", .open = csv_open, .close = text_close, .rows = text_rows, .row = csv_row,
	.line = csv_line,
};

/* ---- rows that are JSON ---- */

/*
 * Rows that are JSON already: one array of objects, or one object after the other.
 *
 * The first character decides which. A file named .jsonl or .ndjson must have one object per line;
 * in .json, objects may also span lines. {"data": [...]} with nothing else in the file counts as
 * the list. Everything is validated once, at open; later reads stay inside the mapping even if the
 * file has changed.
 */

static bool is_line_name(const char *name)
{
	struct str s = table_plain(name);

	return str_ends(s, STR(".jsonl")) || str_ends(s, STR(".ndjson"));
}

/* Malformed at `at`, which is parsed once more for the message. */
static int json_fail_at(const struct table_pass *p, size_t at, struct err *e)
{
	struct json_scan scan = { p->bytes->all, at };
	struct json_slice value;

	if (json_next(&scan, &value, e) == 0)
		err_set(e, ERR_PARSE, "byte %zu: the file changed while it was read", at);
	return err_wrap(e, "%s", p->bytes->name);
}

/* Not what was expected at `at`. */
static int fail_found(const struct table_pass *p, size_t at, const char *what, struct err *e)
{
	struct str all = p->bytes->all;
	const char *line = at ? memrchr(all.p, '\n', at) : NULL;
	size_t column = at - (line ? (size_t)(line + 1 - all.p) : 0) + 1;

	return err_set(e, ERR_PARSE, "%s: line %zu, column %zu: %s", p->bytes->name,
		line_at(p->bytes, at), column, what);
}

static size_t at_of(const struct table_pass *p, const struct json_iter *it)
{
	return (size_t)(it->rest.p - p->bytes->all.p);
}

/*
 * The elements of a list, from after the opening bracket. 0: *end is after the closing one; -1.
 * json_step stops at malformed text between two elements without an error, which is detected here.
 */
static int take_list(struct table_pass *p, struct json_iter *it, size_t *end, struct err *e)
{
	struct json_slice value;
	size_t at = at_of(p, it);
	int rc;

	while ((rc = json_step(it, NULL)) == 1) {
		at = at_of(p, it);
		if (json_take(it, &value) < 0)
			return json_fail_at(p, at, e);
		if (check_size(p, at, value.raw.n, e) < 0 || pass_row(p, at, e) < 0 ||
		    pass_on(p, at_of(p, it), e) < 0)
			return -1;
	}
	at = at_of(p, it);
	if (rc < 0)
		return fail_found(p, at, at == p->bytes->all.n ? "the text ends inside the list" :
			"expected ',' or ']' after an element", e);
	*end = at + 1;
	return 0;
}

static struct json_iter iter_at(const struct table_pass *p, size_t at)
{
	struct str rest = { p->bytes->all.p + at, p->bytes->all.n - at };

	return (struct json_iter){ .rest = { rest.p + 1, rest.n - 1 },
		.is_object = *rest.p == '{' };
}

static bool is_end(const struct table_pass *p, size_t *at)
{
	struct json_scan scan = { p->bytes->all, *at };
	bool is = json_at_end(&scan);

	*at = scan.at;
	return is;
}

static int read_array(struct text_table *t, size_t at, struct err *e)
{
	struct table_pass *p = &t->pass;
	struct json_iter it = iter_at(p, at);
	size_t end;

	t->is_array = true;
	if (take_list(p, &it, &end, e) < 0)
		return -1;
	if (!is_end(p, &end))
		return fail_found(p, end, "more text after the list", e);
	return 0;
}

/* Whether the file is one object whose only member is a list of objects: 1, 0, -1 stopped. */
static int read_wrapped(struct text_table *t, size_t at, struct err *e)
{
	struct table_pass *p = &t->pass;
	struct json_iter it = iter_at(p, at), list, element;
	struct err why = { 0 };
	size_t end;
	bool is = false;

	if (json_step(&it, NULL) == 1 && json_open(&it, &list) && !list.is_object) {
		element = list;
		is = json_step(&element, NULL) == 0 || (element.rest.n && *element.rest.p == '{');
	}
	if (is && take_list(p, &list, &end, &why) < 0) {
		if (why.code == ERR_CANCELLED) {
			*e = why;
			return -1;
		}
		is = false;
	}
	if (is) {
		json_close(&it, &list);
		is = json_step(&it, NULL) == 0;
		end = at_of(p, &it) + 1;
	}
	t->is_array = is && is_end(p, &end);
	if (t->is_array)
		return 1;
	p->rows = p->kept = p->due = 0;
	return 0;
}

/* The first line break at or after `at`, or the end. */
static size_t json_line_end(const struct table_pass *p, size_t at)
{
	struct str all = p->bytes->all;
	const char *stop = at < all.n ? memchr(all.p + at, '\n', all.n - at) : NULL;

	return stop ? (size_t)(stop - all.p) : all.n;
}

/* Objects one after the other; with is_line each ends on its own line, alone. */
static int read_values(struct table_pass *p, size_t at, bool is_line, struct err *e)
{
	struct json_scan scan = { p->bytes->all, at };
	struct json_slice value;

	for (;;) {
		if (is_line)
			scan.text.n = json_line_end(p, scan.at);
		if (json_at_end(&scan)) {
			if (scan.text.n == p->bytes->all.n)
				return 0;
			scan.at = scan.text.n + 1;
			if (pass_on(p, scan.at, e) < 0)
				return -1;
			continue;
		}
		at = scan.at;
		if (json_next(&scan, &value, e) < 0)
			return err_wrap(e, "%s", p->bytes->name);
		if (is_line && !json_at_end(&scan))
			return fail_found(p, scan.at, "more text after the object; expected one on "
				"each line", e);
		if (check_size(p, at, value.raw.n, e) < 0 || pass_row(p, at, e) < 0 ||
		    pass_on(p, scan.at, e) < 0)
			return -1;
	}
}

static int json_read_rows(struct text_table *t, struct err *e)
{
	struct table_pass *p = &t->pass;
	struct str all = p->bytes->all;
	size_t at;
	int rc = 0;

	if (text_at(p->bytes, &at, e) < 0)
		return -1;
	if (is_end(p, &at))
		return 0;
	if (all.p[at] == '[')
		return read_array(t, at, e);
	if (all.p[at] == '{' && !is_line_name(p->bytes->name))
		rc = read_wrapped(t, at, e);
	return rc ? (rc < 0 ? -1 : 0) : read_values(p, at, is_line_name(p->bytes->name), e);
}

static void *json_table_open(const struct table_bytes *bytes, const struct table_opts *o,
			     struct err *e)
{
	return open_rows(bytes, o, json_read_rows, e);
}

static int json_table_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct text_table *t = state;
	size_t next;
	struct json_scan scan = { t->pass.bytes->all, row_at(&t->pass, row, &next) };

	if (json_next(&scan, out, e) < 0)
		return -1;
	if (out->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "expected an object, found %.*s",
			out->raw.n < 40 ? (int)out->raw.n : 40, out->raw.p);
	return 0;
}

static size_t json_table_line(const void *state, size_t row)
{
	const struct text_table *t = state;

	return t->is_array ? 0 : line_at(t->pass.bytes, t->pass.place[row]);
}

const struct table_format table_json = {
	.name = "json", .open = json_table_open, .close = text_close, .rows = text_rows,
	.row = json_table_row, .line = json_table_line,
};
