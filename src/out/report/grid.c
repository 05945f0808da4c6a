/* SPDX-License-Identifier: Apache-2.0 */
/* grid.c - see grid.h. */
#include "out/report/grid.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "results/read/frame.h"

const char *grid_tone_name(enum grid_tone tone)
{
	static const char *const name[] = { "", "good", "bad", "fair", "faint", "mark" };

	assert((size_t)tone < sizeof(name) / sizeof(*name));
	return name[tone];
}

void grid_begin(struct grid *g, struct arena *a)
{
	*g = (struct grid){ .a = a };
}

void grid_add_toned(struct grid *g, const char *text, enum grid_tone tone)
{
	size_t cap = g->cap;

	g->cell = arena_room(g->a, g->cell, g->n, &cap, sizeof(*g->cell));
	g->tone = arena_room(g->a, g->tone, g->n, &g->cap, sizeof(*g->tone));
	g->cell[g->n] = text;
	g->tone[g->n++] = (unsigned char)tone;
}

void grid_add(struct grid *g, const char *text)
{
	grid_add_toned(g, text, GRID_PLAIN);
}

void grid_add_all(struct grid *g, const char *text, ...)
{
	va_list ap;

	va_start(ap, text);
	for (; text; text = va_arg(ap, const char *))
		grid_add(g, text);
	va_end(ap);
}

void grid_end_heads(struct grid *g)
{
	assert(g->n > 0 && g->cols == 0);
	g->cols = g->n;
}

size_t grid_rows(const struct grid *g)
{
	assert(g->cols > 0 && g->n % g->cols == 0);
	return g->n / g->cols - 1;
}

void grid_turn(const struct grid *g, struct grid *out)
{
	size_t rows = grid_rows(g) + 1;

	grid_begin(out, g->a);
	for (size_t col = 0; col < g->cols; col++) {
		for (size_t row = 0; row < rows; row++) {
			size_t at = row * g->cols + col;

			grid_add_toned(out, g->cell[at], g->tone[at]);
		}
		if (col == 0)
			grid_end_heads(out);
	}
}

static const char *cell_at(const struct grid *g, size_t row, size_t col)
{
	return g->cell[row * g->cols + col];
}

size_t grid_width(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

/* A number that may carry a sign and a percent mark. */
static bool reads_as_number(const char *text)
{
	struct str s = str_of(text);
	double v;

	if (s.n && s.p[s.n - 1] == '%')
		s.n--;
	return str_to_f64(s, &v);
}

static bool is_numeric(const struct grid *g, size_t col)
{
	bool has_any = false;

	for (size_t row = 1; row <= grid_rows(g); row++) {
		const char *text = cell_at(g, row, col);

		if (*text && !reads_as_number(text))
			return false;
		has_any |= *text != '\0';
	}
	return has_any;
}

static void blanks(struct buf *out, size_t n)
{
	while (n--)
		buf_add_char(out, ' ');
}

static void aligned(struct buf *out, const char *text, size_t width, bool is_right)
{
	size_t n = grid_width(text), gap = n < width ? width - n : 0;

	if (is_right)
		blanks(out, gap);
	buf_add_text(out, text);
	if (!is_right)
		blanks(out, gap);
}

/* ---- for a terminal ---- */

static const char *colour(unsigned char tone)
{
	static const char *const code[] = { "", "\033[32m", "\033[31m", "\033[33m", "\033[2m", "" };

	return code[tone];
}

void grid_text(const struct grid *g, bool is_coloured, struct buf *out)
{
	size_t *width = mem_array(g->cols, sizeof(*width));
	bool *is_right = mem_array(g->cols, sizeof(*is_right));

	for (size_t col = 0; col < g->cols; col++) {
		is_right[col] = is_numeric(g, col);
		for (size_t row = 0; row <= grid_rows(g); row++) {
			size_t n = grid_width(cell_at(g, row, col));

			width[col] = n > width[col] ? n : width[col];
		}
	}
	for (size_t row = 0; row <= grid_rows(g); row++) {
		for (size_t col = 0; col < g->cols; col++) {
			const char *on = is_coloured ? colour(g->tone[row * g->cols + col]) : "";

			buf_add_text(out, col ? "  " : "");
			buf_add_text(out, on);
			aligned(out, cell_at(g, row, col), width[col], is_right[col]);
			buf_add_text(out, *on ? "\033[0m" : "");
		}
		while (out->len && out->data[out->len - 1] == ' ')
			out->data[--out->len] = '\0';
		buf_add_char(out, '\n');
	}
	free(width);
	free(is_right);
}

/* ---- Markdown ---- */

/* Number of characters from the decimal point on; tabulate aligns by them. */
static size_t fraction(const char *text)
{
	const char *point = strchr(text, '.');

	if (!point)
		point = strpbrk(text, "eE");
	return point && reads_as_number(text) ? strlen(point) : 0;
}

/* A cell escaped for a row: "|" would end it, a line end the row. */
static void markdown_cell(struct buf *out, const char *text)
{
	buf_reset(out);
	for (; *text; text++) {
		if (*text == '|')
			buf_add_char(out, '\\');
		buf_add_char(out, *text == '\n' ? ' ' : *text);
	}
	buf_add_text(out, "");
}

static void markdown_column(const struct grid *g, size_t col, struct buf *cell, bool is_right)
{
	size_t tail = 0;

	for (size_t row = 0; row <= grid_rows(g); row++) {
		markdown_cell(&cell[row], cell_at(g, row, col));
		if (row && is_right && fraction(cell[row].data ? cell[row].data : "") > tail)
			tail = fraction(cell[row].data);
	}
	for (size_t row = 1; row <= grid_rows(g) && is_right; row++)
		if (cell[row].len)
			blanks(&cell[row], tail - fraction(cell[row].data));
}

static const char *text_of(const struct buf *b)
{
	return b->data ? b->data : "";
}

void grid_markdown(const struct grid *g, struct buf *out)
{
	size_t rows = grid_rows(g) + 1, *width = mem_array(g->cols, sizeof(*width));
	bool *is_right = mem_array(g->cols, sizeof(*is_right));
	struct buf *cell = mem_array(g->cols * rows, sizeof(*cell));

	for (size_t col = 0; col < g->cols; col++) {
		is_right[col] = is_numeric(g, col);
		markdown_column(g, col, &cell[col * rows], is_right[col]);
		width[col] = grid_width(text_of(&cell[col * rows])) + 2;
		for (size_t row = 1; row < rows; row++) {
			size_t n = grid_width(text_of(&cell[col * rows + row]));

			width[col] = n > width[col] ? n : width[col];
		}
	}
	for (size_t row = 0; row < rows; row++) {
		for (size_t col = 0; col < g->cols; col++) {
			buf_add_text(out, "| ");
			aligned(out, text_of(&cell[col * rows + row]), width[col], is_right[col]);
			buf_add_char(out, ' ');
		}
		buf_add_text(out, "|\n");
		for (size_t col = 0; row == 0 && col < g->cols; col++) {
			buf_add_text(out, is_right[col] ? "|" : "|:");
			for (size_t i = 0; i < width[col] + 1; i++)
				buf_add_char(out, '-');
			buf_add_text(out, is_right[col] ? ":" : "");
		}
		buf_add_text(out, row == 0 ? "|\n" : "");
	}
	for (size_t i = 0; i < g->cols * rows; i++)
		buf_release(&cell[i]);
	free(cell);
	free(width);
	free(is_right);
}

/* ---- HTML and CSV ---- */

void html_escape(struct buf *out, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			buf_add_text(out, "&amp;");
			break;
		case '<':
			buf_add_text(out, "&lt;");
			break;
		case '>':
			buf_add_text(out, "&gt;");
			break;
		case '"':
			buf_add_text(out, "&quot;");
			break;
		default:
			buf_add_char(out, *text);
		}
	}
}

void grid_html(const struct grid *g, struct buf *out)
{
	buf_add_text(out, "<table>\n");
	for (size_t row = 0; row <= grid_rows(g); row++) {
		buf_add_text(out, "<tr>");
		for (size_t col = 0; col < g->cols; col++) {
			const char *class = grid_tone_name(g->tone[row * g->cols + col]);
			const char *tag = row ? "td" : "th";
			bool is_number = is_numeric(g, col);

			buf_printf(out, "<%s", tag);
			if (*class || is_number)
				buf_printf(out, " class=\"%s%s%s\"", class,
					   *class && is_number ? " " : "", is_number ? "n" : "");
			buf_add_char(out, '>');
			html_escape(out, cell_at(g, row, col));
			buf_printf(out, "</%s>", tag);
		}
		buf_add_text(out, "</tr>\n");
	}
	buf_add_text(out, "</table>\n");
}

void grid_csv(const struct grid *g, struct buf *out)
{
	for (size_t row = 0; row <= grid_rows(g); row++) {
		for (size_t col = 0; col < g->cols; col++) {
			buf_add_text(out, col ? "," : "");
			frame_csv_field(out, str_of(cell_at(g, row, col)));
		}
		buf_add_char(out, '\n');
	}
}
