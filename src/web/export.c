/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export.c - runs as CSV or JSON lines, sent in pages.
 *
 * The runs and their order are chosen before the first byte; their cells, which never change, are
 * read page by page, and no view is held between two pages. So a file has one data version whatever
 * is uploaded meanwhile, without the runs that are removed while it is sent; a slow client costs
 * the memory of its runs' numbers and of one page.
 *
 * CSV as in RFC 4180: a line of names, lines end with CR LF, cells with a comma, a quote or a line
 * end are quoted. A text that a spreadsheet would take for a formula (it begins with = + - @, a tab
 * or CR) gets an apostrophe in front; numbers are unchanged, times are in ISO 8601. An absent cell
 * is empty, null is null, an infinite number inf. A JSON line is the run's number and its cells.
 * Without "columns" the usual ones come first, then all others.
 */
#include <stdlib.h>

#include "core/base/mem.h"
#include "results/index/row.h"
#include "web/api.h"

#define EXPORT_ROWS_MAX 2000000      /* of one file; a spreadsheet takes half of it */
/*
 * A page is in memory, and it is made by the threads that send for all clients. So it is small, in
 * cells read and in bytes written.
 */
#define EXPORT_PAGE_CELLS 16384
#define EXPORT_PAGE_ROWS_MIN 4
#define EXPORT_PAGE_BYTES (256 << 10) /* no further line after this many */

struct export {
	struct store *store;
	struct arena asked, page;    /* the question and its runs; what the last page took */
	struct query query;
	int64_t *id;
	size_t n, at;                /* runs, and those that were put */
	bool is_csv;
	struct buf text;
	size_t sent;                 /* of text */
};

static void end_export(void *self)
{
	struct export *x = self;

	arena_release(&x->asked);
	arena_release(&x->page);
	buf_release(&x->text);
	free(x);
}

/* ---- lines ---- */

static bool is_formula(struct str s)
{
	return s.n && strchr("=+-@\t\r", s.p[0]) && s.p[0];
}

static void put_cell_text(struct buf *out, struct str s)
{
	bool is_quoted = is_formula(s);

	for (size_t i = 0; i < s.n && !is_quoted; i++)
		is_quoted = s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r';
	if (is_quoted)
		buf_add_char(out, '"');
	if (is_formula(s))
		buf_add_char(out, '\'');
	for (size_t i = 0; i < s.n; i++) {
		if (s.p[i] == '"')
			buf_add_char(out, '"');
		buf_add_char(out, s.p[i]);
	}
	if (is_quoted)
		buf_add_char(out, '"');
}

static void put_head(struct export *x)
{
	for (size_t i = 0; i < x->query.n_columns; i++) {
		if (i)
			buf_add_char(&x->text, ',');
		put_cell_text(&x->text, x->query.column[i]);
	}
	buf_add_text(&x->text, "\r\n");
}

static void put_cell(struct buf *out, struct str column, struct value v)
{
	char moment[WHEN_BYTES];

	if (v.kind == VALUE_TEXT)
		put_cell_text(out, v.text);
	else if (v.kind == VALUE_NUMBER && when_is_column(column) && when_write(v.number, moment))
		buf_add_text(out, moment);
	else
		data_add_value(out, v);
}

static void put_csv(struct export *x, const struct page_row *row)
{
	for (size_t i = 0; i < x->query.n_columns; i++) {
		if (i)
			buf_add_char(&x->text, ',');
		put_cell(&x->text, x->query.column[i], row->value[i]);
	}
	buf_add_text(&x->text, "\r\n");
}

static void put_json_line(struct export *x, const struct page_row *row)
{
	struct json_writer w = json_writer(&x->text);

	w.is_compact = w.is_raw_utf8 = true;
	json_begin_object(&w);
	json_member_int(&w, "id", row->id);
	for (size_t i = 0; i < x->query.n_columns; i++) {
		if (row->value[i].kind == VALUE_ABSENT)
			continue;
		json_key_str(&w, x->query.column[i]);
		value_put(&w, row->value[i]);
	}
	json_end_object(&w);
	buf_add_char(&x->text, '\n');
}

/* ---- pages ---- */

static int next_page(struct export *x)
{
	size_t rows = EXPORT_PAGE_CELLS / (x->query.n_columns + 1), left = x->n - x->at, n, end;
	struct index_view *v;
	struct page_row *row;

	if (rows < EXPORT_PAGE_ROWS_MIN)
		rows = EXPORT_PAGE_ROWS_MIN;
	if (rows > QUERY_LIMIT_MAX)
		rows = QUERY_LIMIT_MAX;
	if (rows > left)
		rows = left;
	buf_reset(&x->text);
	x->sent = 0;
	if (!rows)
		return 0;
	end = x->at + rows;
	row = arena_alloc(&x->page, rows * sizeof(*row));
	v = store_view(x->store);
	n = index_rows(v, x->id + x->at, rows, x->query.column, x->query.n_columns, &x->page, row);
	/* A removed run has no row; ids that follow the last row come with the next page. */
	for (size_t i = 0; i < n; i++) {
		(x->is_csv ? put_csv : put_json_line)(x, &row[i]);
		while (x->id[x->at] != row[i].id)
			x->at++;
		x->at++;
		if (x->text.len >= EXPORT_PAGE_BYTES) {
			end = x->at;
			break;
		}
	}
	index_view_release(v);
	x->at = end;
	arena_release(&x->page);
	return x->text.is_over ? -1 : 0;
}

static long pull(void *self, char *out, size_t room)
{
	struct export *x = self;
	size_t n;

	/* A page of runs that were removed meanwhile is empty, but not the end. */
	do {
		if (x->sent == x->text.len && next_page(x) < 0)
			return -1;
	} while (!x->text.len && x->at < x->n);
	n = x->text.len - x->sent;
	if (n > room)
		n = room;
	if (n)
		memcpy(out, x->text.data + x->sent, n);
	x->sent += n;
	return (long)n;
}

/* ---- the route ---- */

/* The question outlives the request: copied into the export's arena. */
static int read_question(const struct web_request *r, struct web_answer *a, struct export *x,
			 struct err *e)
{
	const unsigned members = ASK_FILTER | ASK_SHOWN | ASK_SORT | ASK_COLUMNS | ASK_LIMIT |
		ASK_FORMAT;
	const struct json_value *body;
	struct json_value *own = NULL;
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct ask ask;
	int rc = 0;

	if (asked_body(r, a, members, &body, e) < 0)
		return -1;
	if (body) {
		json_put_value(&w, body);
		rc = json_parse(&x->asked, arena_str(&x->asked, buf_str(&text)), &own, e);
	}
	buf_release(&text);
	if (rc < 0 || asked_read(own, members, r->view, &x->asked, a, &ask, e) < 0)
		return -1;
	x->query = ask.query;
	x->is_csv = str_is(ask.format, "csv");
	x->n = ask.has_limit ? ask.query.limit : SIZE_MAX;
	return 0;
}

/* The main parameters and figures come first, then the rest in the order it was first seen. */
static void all_columns(struct export *x, const struct index_view *v)
{
	size_t n, there = 0;
	const struct column_info *info = index_columns(v, &n);
	struct str *name = arena_alloc(&x->asked, (n + 1) * sizeof(*name));
	struct map seen = { 0 };

	filters_main_columns(v, &x->asked, &x->query);
	for (; there < x->query.n_columns; there++) {
		name[there] = arena_str(&x->asked, x->query.column[there]);
		map_put(&seen, name[there], 1);
	}
	for (size_t i = 0; i < n; i++)
		if (!map_get(&seen, info[i].name, NULL))
			name[there++] = arena_str(&x->asked, info[i].name);
	map_release(&seen);
	x->query.column = name;
	x->query.n_columns = there;
}

/* Exceeded limits are refused before the first byte. */
static int choose_runs(struct export *x, const struct index_view *v, struct web_answer *a,
		       struct err *e)
{
	struct query count = { .filter = x->query.filter, .shown = x->query.shown,
			       .only_flagged = x->query.only_flagged };
	struct answer answer;

	if (index_query(v, &count, &x->asked, &answer, e) < 0)
		return -1;
	if (x->n > EXPORT_ROWS_MAX && answer.total > EXPORT_ROWS_MAX) {
		a->pointer = STR("/limit");
		return asked_refuse(a, 413, e, "%zu runs match, at most %d go into one file "
				    "(EXPORT_ROWS_MAX); expected a narrower filter or a limit",
				    answer.total, EXPORT_ROWS_MAX);
	}
	index_order(v, &x->query, x->n, &x->asked, &x->id, &x->n);
	return 0;
}

static int export(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct export *x = mem_alloc(sizeof(*x));

	x->store = r->store;
	if (read_question(r, a, x, e) < 0 || choose_runs(x, r->view, a, e) < 0) {
		if (a->pointer.p) /* it may be in memory that is released here */
			a->pointer = arena_str(r->arena, a->pointer);
		end_export(x);
		return -1;
	}
	if (!x->query.column)
		all_columns(x, r->view);
	if (x->is_csv)
		put_head(x);
	web_bytes(a, x->is_csv ? "text/csv; charset=utf-8; header=present" :
				 "application/jsonl; charset=utf-8");
	a->file_name = x->is_csv ? STR("runs.csv") : STR("runs.jsonl");
	a->pull = pull;
	a->pull_end = end_export;
	a->self = x;
	return 0;
}

static const struct web_route routes[] = {
	{ "GET", "/api/export/csv", 0, export },
	{ "POST", "/api/export/csv", ROUTE_FILTERS, export },
};
const struct web_routes export_routes = { routes, sizeof(routes) / sizeof(*routes) };
