/* SPDX-License-Identifier: Apache-2.0 */
/* workbook.c - see workbook.h. */
#include "report/workbook.h"

#include <assert.h>
#include <math.h>

#include "base/codec.h"
#include "base/str.h"

#define XML_HEAD "<?xml version=\"1.0\" encoding=\"UTF-8\" standalone=\"yes\"?>\n"
#define MAIN_NS "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
#define DOCUMENT_NS "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
#define PACKAGE_NS "http://schemas.openxmlformats.org/package/2006/"
#define TYPE_OF "application/vnd.openxmlformats-officedocument.spreadsheetml."

/* Characters that XML 1.0 has no way to spell become blanks. */
static void add_escaped(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.n; i++) {
		unsigned char c = (unsigned char)text.p[i];

		if (c == '&')
			buf_add_text(out, "&amp;");
		else if (c == '<')
			buf_add_text(out, "&lt;");
		else if (c == '>')
			buf_add_text(out, "&gt;");
		else
			buf_add_char(out, c < 0x20 && c != '\t' && c != '\n' ? ' ' : (char)c);
	}
}

/* 0 is A, 26 is AA. */
static void add_place(struct buf *out, uint32_t row, uint32_t col)
{
	char letters[8];
	size_t at = sizeof(letters);

	letters[--at] = '\0';
	for (uint32_t n = col + 1; n; n = (n - 1) / 26)
		letters[--at] = (char)('A' + (n - 1) % 26);
	buf_printf(out, "%s%u", letters + at, row + 1);
}

/* Moves on to that cell and begins it, without its closing ">". */
static void begin_cell(struct sheet *s, uint32_t row, uint32_t col)
{
	assert(row < WORKBOOK_ROWS_MAX);
	assert(!s->has_row || row > s->row || (row == s->row && col >= s->col));
	if (!s->has_row || row > s->row)
		buf_printf(&s->xml, "%s<row r=\"%u\">", s->has_row ? "</row>" : "", row + 1);
	s->has_row = true;
	s->row = row;
	s->col = col + 1;
	buf_add_text(&s->xml, "<c r=\"");
	add_place(&s->xml, row, col);
	buf_add_char(&s->xml, '"');
}

void sheet_text(struct sheet *s, uint32_t row, uint32_t col, struct str text)
{
	begin_cell(s, row, col);
	buf_add_text(&s->xml, " t=\"inlineStr\"><is><t xml:space=\"preserve\">");
	add_escaped(&s->xml, text);
	buf_add_text(&s->xml, "</t></is></c>");
}

void sheet_number(struct sheet *s, uint32_t row, uint32_t col, double v)
{
	char text[FMT_F64_BYTES];

	if (!isfinite(v))
		return;
	begin_cell(s, row, col);
	buf_printf(&s->xml, "><v>%s</v></c>", fmt_f64(text, v));
}

void sheet_release(struct sheet *s)
{
	buf_release(&s->xml);
	*s = (struct sheet){ 0 };
}

static void add_types(struct zip_archive *a, size_t n)
{
	struct buf xml = { 0 };

	buf_add_text(&xml, XML_HEAD "<Types xmlns=\"" PACKAGE_NS "content-types\">"
		     "<Default Extension=\"rels\" ContentType=\"application/"
		     "vnd.openxmlformats-package.relationships+xml\"/>"
		     "<Override PartName=\"/xl/workbook.xml\" ContentType=\"" TYPE_OF
		     "sheet.main+xml\"/>");
	for (size_t i = 1; i <= n; i++)
		buf_printf(&xml, "<Override PartName=\"/xl/worksheets/sheet%zu.xml\" ContentType=\""
			   TYPE_OF "worksheet+xml\"/>", i);
	buf_add_text(&xml, "</Types>");
	zip_archive_add(a, "[Content_Types].xml", buf_str(&xml));
	buf_release(&xml);
}

static void add_relations(struct zip_archive *a, size_t n)
{
	struct buf xml = { 0 };

	zip_archive_add(a, "_rels/.rels", STR(
		XML_HEAD "<Relationships xmlns=\"" PACKAGE_NS "relationships\">"
		"<Relationship Id=\"rId1\" Type=\"" DOCUMENT_NS "/officeDocument\" "
		"Target=\"xl/workbook.xml\"/></Relationships>"));
	buf_add_text(&xml, XML_HEAD "<Relationships xmlns=\"" PACKAGE_NS "relationships\">");
	for (size_t i = 1; i <= n; i++)
		buf_printf(&xml, "<Relationship Id=\"rId%zu\" Type=\"" DOCUMENT_NS "/worksheet\" "
			   "Target=\"worksheets/sheet%zu.xml\"/>", i, i);
	buf_add_text(&xml, "</Relationships>");
	zip_archive_add(a, "xl/_rels/workbook.xml.rels", buf_str(&xml));
	buf_release(&xml);
}

static void add_book(struct zip_archive *a, const struct sheet *sheet, size_t n)
{
	struct buf xml = { 0 };

	buf_add_text(&xml, XML_HEAD "<workbook xmlns=\"" MAIN_NS "\" xmlns:r=\"" DOCUMENT_NS
		     "\"><sheets>");
	for (size_t i = 0; i < n; i++) {
		buf_add_text(&xml, "<sheet name=\"");
		add_escaped(&xml, str_of(sheet[i].name));
		buf_printf(&xml, "\" sheetId=\"%zu\" r:id=\"rId%zu\"/>", i + 1, i + 1);
	}
	buf_add_text(&xml, "</sheets></workbook>");
	zip_archive_add(a, "xl/workbook.xml", buf_str(&xml));
	buf_release(&xml);
}

int workbook_write(struct sheet *sheet, size_t n, struct buf *out, struct err *e)
{
	struct zip_archive a = { 0 };
	bool is_over = false;

	add_types(&a, n);
	add_relations(&a, n);
	add_book(&a, sheet, n);
	for (size_t i = 0; i < n; i++) {
		struct buf xml = { 0 };
		char name[48];

		buf_add_text(&xml, XML_HEAD "<worksheet xmlns=\"" MAIN_NS "\"><sheetData>");
		buf_add_str(&xml, buf_str(&sheet[i].xml));
		buf_printf(&xml, "%s</sheetData></worksheet>", sheet[i].has_row ? "</row>" : "");
		snprintf(name, sizeof(name), "xl/worksheets/sheet%zu.xml", i + 1);
		is_over |= xml.is_over || sheet[i].xml.is_over;
		if (!is_over)
			zip_archive_add(&a, name, buf_str(&xml));
		buf_release(&xml);
	}
	zip_archive_end(&a);
	is_over |= a.out.is_over;
	buf_release(out);
	*out = a.out;
	return is_over ? err_set(e, ERR_LIMIT, "a spreadsheet of more than 1 GiB cannot be written") : 0;
}
