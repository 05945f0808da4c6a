/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - lines of a text file as {"text": line}; ends of lines are LF, CR LF and CR. */
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "json/write.h"
#include "table/pass.h"

struct text_table {
	struct table_pass pass;
	struct buf row;
};

/* Where the line at `at` ends; *lf is the first LF at or behind it, found once. */
static size_t line_end(struct str all, size_t at, size_t *lf)
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

static int read_lines(struct table_pass *p, struct err *e)
{
	struct str all = p->bytes->all;
	size_t at, end, lf = 0;

	if (table_text_at(p->bytes, &at, e) < 0)
		return -1;
	for (; at < all.n; at = behind_line(all, end)) {
		end = line_end(all, at, &lf);
		if (table_check_size(p, at, end - at, e) < 0 || table_pass_row(p, at, e) < 0 ||
		    table_pass_on(p, end, e) < 0)
			return -1;
	}
	return 0;
}

static void text_close(void *state)
{
	struct text_table *t = state;

	if (t) {
		table_pass_release(&t->pass);
		buf_release(&t->row);
	}
	free(t);
}

static void *text_open(const struct table_bytes *bytes, const struct table_opts *o, struct err *e)
{
	struct text_table *t = mem_alloc(sizeof(*t));

	table_pass_begin(&t->pass, bytes, o);
	if (read_lines(&t->pass, e) == 0 && table_pass_end(&t->pass, e) == 0)
		return t;
	text_close(t);
	return NULL;
}

static size_t text_rows(const void *state)
{
	return ((const struct text_table *)state)->pass.rows;
}

static int text_row(void *state, size_t row, struct json_slice *out, struct err *e)
{
	struct text_table *t = state;
	struct table_pass *p = &t->pass;
	struct str all = p->bytes->all;
	size_t at = p->place[row], next = row + 1 < p->rows ? p->place[row + 1] : all.n;

	table_touch(p, at, next - at);
	while (next > at && (all.p[next - 1] == '\n' || all.p[next - 1] == '\r'))
		next--;
	buf_reset(&t->row);
	buf_add_text(&t->row, "{\"text\": ");
	json_quote(&t->row, (struct str){ all.p + at, next - at }, true);
	buf_add_char(&t->row, '}');
	if (t->row.is_over)
		return err_set(e, ERR_LIMIT, "longer than %llu bytes as JSON (BUF_BYTES_MAX)",
			BUF_BYTES_MAX);
	*out = (struct json_slice){ JSON_OBJECT, buf_str(&t->row) };
	return 0;
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
