/* SPDX-License-Identifier: Apache-2.0 */
/* multi_turn.c - see multi_turn.h; and sheets of numbers and texts as a spreadsheet file. */
#include "out/report/multi_turn.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/stats/stats.h"
#include "out/report/grid.h"

/* ---- a spreadsheet file (Office Open XML, .xlsx) ---- */

/*
 * No styles, no formulas. Cells are written from left to right, rows from top to bottom; rows and
 * columns count from 0. A number that is not finite is an empty cell.
 */
#define WORKBOOK_ROWS_MAX 1048576 /* of a sheet, by the format */

struct sheet {
	const char *name;    /* at most 31 characters; borrowed */
	struct buf xml;      /* private */
	uint32_t row, col;   /* private: first column still free in the row */
	bool has_row;
};

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

static void sheet_text(struct sheet *s, uint32_t row, uint32_t col, struct str text)
{
	begin_cell(s, row, col);
	buf_add_text(&s->xml, " t=\"inlineStr\"><is><t xml:space=\"preserve\">");
	add_escaped(&s->xml, text);
	buf_add_text(&s->xml, "</t></is></c>");
}

static void sheet_number(struct sheet *s, uint32_t row, uint32_t col, double v)
{
	char text[FMT_F64_BYTES];

	if (!isfinite(v))
		return;
	begin_cell(s, row, col);
	buf_printf(&s->xml, "><v>%s</v></c>", fmt_f64(text, v));
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

static int workbook_write(struct sheet *sheet, size_t n, struct buf *out, struct err *e)
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

#define TTFT_MS_MIN 0.1
#define SEPARATOR_WIDTH 100
#define DECIMALS 2
#define EXPONENTS (-1)            /* in place of a number of decimals */
#define SHOWN_MIN 0.01            /* what DECIMALS can show */
#define SHOWN_MAX 1e6

void turn_stats_times(struct turn_stats *s, double first_chunk_ms)
{
	uint32_t first = s->output_num_first_chunk_tokens;

	s->tpot_ms = 0;
	if (s->output_num_tokens > 1 && s->output_num_tokens > first)
		s->tpot_ms = (s->latency_ms - first_chunk_ms) /
			     (double)(s->output_num_tokens - first);
	s->ttft_ms = first_chunk_ms;
	if (first > 1)
		s->ttft_ms = fmax(TTFT_MS_MIN, first_chunk_ms - (first - 1) * s->tpot_ms);
}

void turn_stats_cached(struct turn_stats *s, uint32_t last_message_tokens)
{
	s->approx_cached_percent = 0;
	if (s->input_num_tokens)
		s->approx_cached_percent = 100.0 *
			((double)(s->input_num_tokens - last_message_tokens) /
			 (double)s->input_num_tokens);
}

/* ---- columns ---- */

/* A column of all tables; in the order of upstream's records. */
static const struct column {
	const char *name;
	size_t offset;      /* of a double, or of a count */
	bool is_count;      /* uint32_t, an integer in JSON */
	bool is_described;  /* included in the statistics */
} columns[] = {
	{ "ttft_ms", offsetof(struct turn_stats, ttft_ms), false, true },
	{ "tpot_ms", offsetof(struct turn_stats, tpot_ms), false, true },
	{ "latency_ms", offsetof(struct turn_stats, latency_ms), false, true },
	{ "start_time_ms", offsetof(struct turn_stats, start_time_ms), false, false },
	{ "input_num_turns", offsetof(struct turn_stats, input_num_turns), true, true },
	{ "input_num_tokens", offsetof(struct turn_stats, input_num_tokens), true, true },
	{ "output_num_tokens", offsetof(struct turn_stats, output_num_tokens), true, true },
	{ "output_num_chunks", offsetof(struct turn_stats, output_num_chunks), true, true },
	{ "output_num_first_chunk_tokens",
	  offsetof(struct turn_stats, output_num_first_chunk_tokens), true, false },
	{ "approx_cached_percent", offsetof(struct turn_stats, approx_cached_percent), false,
	  false },
};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

static double value_of(const struct column *c, const struct turn_stats *s)
{
	const char *at = (const char *)s + c->offset;

	return c->is_count ? (double)*(const uint32_t *)(const void *)at
			   : *(const double *)(const void *)at;
}

/* ---- statistics ---- */

/* Samples in order of their start, and what upstream derives from all of them. */
struct sorted {
	const struct turn_stats **v;
	double *between_s;   /* since the turn before of the conversation; NAN: it is the first */
	size_t n;
};

static int by_start(const void *a, const void *b)
{
	const struct turn_stats *x = *(const struct turn_stats *const *)a;
	const struct turn_stats *y = *(const struct turn_stats *const *)b;

	if (x->start_time_ms != y->start_time_ms)
		return x->start_time_ms < y->start_time_ms ? -1 : 1;
	return (x > y) - (x < y); /* stable */
}

struct sort_place { const struct turn_stats *stats; size_t at; };

static int by_conversation(const void *a, const void *b)
{
	const struct sort_place *x = a, *y = b;
	size_t n = x->stats->conversation_id.n < y->stats->conversation_id.n
		   ? x->stats->conversation_id.n : y->stats->conversation_id.n;
	int order = n ? memcmp(x->stats->conversation_id.p, y->stats->conversation_id.p, n) : 0;

	if (order == 0 && x->stats->conversation_id.n != y->stats->conversation_id.n)
		order = x->stats->conversation_id.n < y->stats->conversation_id.n ? -1 : 1;
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

static void fill_between(struct sorted *s)
{
	struct sort_place *place = mem_array(s->n + 1, sizeof(*place));

	for (size_t i = 0; i < s->n; i++)
		place[i] = (struct sort_place){ s->v[i], i };
	qsort(place, s->n, sizeof(*place), by_conversation);
	for (size_t i = 0; i < s->n; i++) {
		const struct turn_stats *now = place[i].stats;
		bool follows = i && str_eq(place[i - 1].stats->conversation_id,
					   now->conversation_id);

		s->between_s[place[i].at] = follows ? (now->start_time_ms -
						       place[i - 1].stats->start_time_ms) / 1000
						    : NAN;
	}
	free(place);
}

static struct sorted sort(const struct multi_turn_report *r)
{
	struct sorted s = { .v = mem_array(r->n + 1, sizeof(*s.v)),
			    .between_s = mem_array(r->n + 1, sizeof(*s.between_s)), .n = r->n };

	for (size_t i = 0; i < r->n; i++)
		s.v[i] = &r->v[i];
	qsort(s.v, s.n, sizeof(*s.v), by_start);
	fill_between(&s);
	return s;
}

static void release(struct sorted *s)
{
	free(s->v);
	free(s->between_s);
}

#define PERCENTILES_MAX 7
static const struct { double p; const char *label; size_t from; } percentiles[PERCENTILES_MAX] = {
	{ 25, "25%", 0 }, { 50, "50%", 0 }, { 75, "75%", 0 }, { 90, "90%", 0 },
	{ 99, "99%", 100 }, { 99.9, "99.9%", 1000 }, { 99.99, "99.99%", 10000 },
};

/* "count", "mean", "std", "min", percentiles, "max": as pandas describes a column. */
#define FIGURES_MAX (5 + PERCENTILES_MAX)
struct turn_figures { double v[FIGURES_MAX]; };

/* n: of all samples, before a share is left out. */
static size_t figure_labels(size_t n, const char *label[static FIGURES_MAX])
{
	size_t k = 0;

	label[k++] = "count";
	label[k++] = "mean";
	label[k++] = "std";
	label[k++] = "min";
	for (size_t i = 0; i < PERCENTILES_MAX; i++)
		if (n >= percentiles[i].from)
			label[k++] = percentiles[i].label;
	label[k++] = "max";
	return k;
}

/* v: finite values, sorted here. n_all: see figure_labels. */
static void describe(double *v, size_t n, size_t n_all, struct turn_figures *out)
{
	double mean = n ? stats_mean(v, n) : NAN;
	size_t k = 0;

	out->v[k++] = (double)n;
	out->v[k++] = mean;
	out->v[k++] = n > 1 ? stats_std_around(v, n, mean) *
			      sqrt((double)n / (double)(n - 1)) : NAN;
	stats_sort(v, n);
	out->v[k++] = n ? v[0] : NAN;
	for (size_t i = 0; i < PERCENTILES_MAX; i++)
		if (n_all >= percentiles[i].from)
			out->v[k++] = n ? stats_percentile(v, n, percentiles[i].p) : NAN;
	out->v[k++] = n ? v[n - 1] : NAN;
}

#define BETWEEN "time_between_user_turns_sec"
#define METRICS_MAX (COLUMNS + 1)

/* The statistics of the samples from `from` on. */
struct turn_table {
	const char *name[METRICS_MAX];
	struct turn_figures figures[METRICS_MAX];
	size_t n;
	const char *label[FIGURES_MAX];
	size_t n_labels;
};

static void add_metric(struct turn_table *t, const char *name, double *v, size_t n, size_t n_all)
{
	t->name[t->n] = name;
	describe(v, n, n_all, &t->figures[t->n++]);
}

static void make_table(const struct multi_turn_report *r, const struct sorted *s, size_t from,
		       struct turn_table *out)
{
	double *v = mem_array(s->n + 1, sizeof(*v));
	size_t n = 0;

	*out = (struct turn_table){ .n = 0 };
	out->n_labels = figure_labels(s->n, out->label);
	for (size_t c = 0; c < COLUMNS; c++) {
		if (!columns[c].is_described)
			continue;
		for (size_t i = from; i < s->n; i++)
			v[i - from] = value_of(&columns[c], s->v[i]);
		add_metric(out, columns[c].name, v, s->n - from, s->n);
	}
	for (size_t i = from; r->is_verbose && i < s->n; i++)
		if (!isnan(s->between_s[i]))
			v[n++] = s->between_s[i];
	if (r->is_verbose)
		add_metric(out, BETWEEN, v, n, s->n);
	free(v);
}

/* ---- key lines ---- */

#define LINES_MAX 4
struct key_line { const char *key; double v; };

/* Runtime ends with the request that started last, as upstream has it. */
static size_t key_lines(const struct multi_turn_report *r, const struct sorted *s, size_t from,
			struct key_line out[static LINES_MAX])
{
	const struct turn_stats *last = s->v[s->n - 1];
	double runtime_s = (last->start_time_ms + last->latency_ms - s->v[from]->start_time_ms) /
			   1000;
	size_t n = 0;

	out[n++] = (struct key_line){ "runtime_sec", runtime_s };
	out[n++] = (struct key_line){ "requests_per_sec", (double)(s->n - from) / runtime_s };
	if (!isnan(r->warmup_runtime_s)) {
		out[n++] = (struct key_line){ "warmup_runtime_sec", r->warmup_runtime_s };
		out[n++] = (struct key_line){ "total_runtime_incl_warmup_sec",
					      runtime_s + r->warmup_runtime_s };
	}
	return n;
}

/* Number of samples that a share leaves out; if that is all, this and later blocks are missing. */
static bool is_left_over(const struct multi_turn_report *r, size_t i, size_t *from)
{
	*from = (size_t)(r->warmup[i] * (double)r->n);
	return *from < r->n;
}

/* ---- terminal ---- */

static void separator(struct buf *out)
{
	for (int i = 0; i < SEPARATOR_WIDTH; i++)
		buf_add_char(out, '-');
	buf_add_char(out, '\n');
}

static void heading(const struct multi_turn_report *r, struct buf *out, const char *text,
		    const char *more)
{
	buf_printf(out, r->is_in_colour ? "\033[33m%s%s:\033[0m\n" : "%s%s:\n", text, more);
}

/*
 * As many as a column needs: zeros that end all of its numbers are left out, but for one. A column
 * with a number that so few decimals would hide, or a very large one, has exponents instead.
 */
static int decimals_of(const struct turn_table *t, size_t label, struct arena *a)
{
	int zeros = DECIMALS - 1;

	for (size_t m = 0; m < t->n; m++) {
		double v = t->figures[m].v[label];
		const char *text = arena_printf(a, "%.*f", DECIMALS, v);
		int found = 0;

		if ((v > 0 && v < SHOWN_MIN) || v > SHOWN_MAX)
			return EXPONENTS;
		while (found < zeros && text[strlen(text) - 1 - (size_t)found] == '0')
			found++;
		if (isfinite(v))
			zeros = found;
	}
	return DECIMALS - zeros;
}

static const char *figure_text(struct arena *a, double v, int decimals)
{
	if (!isfinite(v))
		return "NaN";
	return decimals == EXPONENTS ? arena_printf(a, "%.*e", DECIMALS, v)
				     : arena_printf(a, "%.*f", decimals, v);
}

static void show_table(const struct turn_table *t, struct buf *out)
{
	struct arena a = { 0 };
	struct grid g;
	int decimals[FIGURES_MAX];

	grid_begin(&g, &a);
	grid_add(&g, "");
	for (size_t k = 0; k < t->n_labels; k++) {
		decimals[k] = decimals_of(t, k, &a);
		grid_add(&g, t->label[k]);
	}
	grid_end_heads(&g);
	for (size_t m = 0; m < t->n; m++) {
		grid_add(&g, t->name[m]);
		for (size_t k = 0; k < t->n_labels; k++)
			grid_add(&g, figure_text(&a, t->figures[m].v[k], decimals[k]));
	}
	grid_text(&g, false, out);
	arena_release(&a);
}

void multi_turn_describe(const struct multi_turn_count *count, size_t n, size_t n_labelled,
			 struct buf *out)
{
	struct turn_table t = { .n = 0 };

	assert(n <= METRICS_MAX);
	t.n_labels = figure_labels(n_labelled, t.label);
	for (size_t i = 0; i < n; i++)
		add_metric(&t, count[i].name, count[i].v, count[i].n, n_labelled);
	show_table(&t, out);
}

static void show_share(const struct multi_turn_report *r, const struct sorted *s, size_t i,
		       size_t from, struct buf *out)
{
	struct key_line line[LINES_MAX];
	size_t n = key_lines(r, s, from, line);
	struct buf assumed = { 0 };
	struct turn_table table;

	if (r->warmup[i] > 0 || r->n_warmup > 1)
		buf_printf(&assumed, " (assuming %.0f%% warmup samples)", 100 * r->warmup[i]);
	heading(r, out, "Statistics summary", assumed.len ? assumed.data : "");
	buf_release(&assumed);
	for (size_t k = 0; k < n; k++)
		buf_printf(out, "%s = %.3f\n", line[k].key, line[k].v);
	separator(out);
	make_table(r, s, from, &table);
	show_table(&table, out);
	separator(out);
}

static void show_pairs(const struct multi_turn_report *r, const char *title,
		       const struct report_pair *pair, size_t n, struct buf *out)
{
	if (n == 0)
		return;
	heading(r, out, title, "");
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s=%s\n", pair[i].key, pair[i].value);
}

void multi_turn_terminal(const struct multi_turn_report *r, struct buf *out)
{
	struct sorted s;
	size_t from;

	if (r->n == 0)
		return;
	s = sort(r);
	separator(out);
	show_pairs(r, "Parameters", r->params, r->n_params, out);
	show_pairs(r, "Conversations Generation Parameters", r->generated, r->n_generated, out);
	separator(out);
	for (size_t i = 0; i < r->n_warmup && is_left_over(r, i, &from); i++)
		show_share(r, &s, i, from, out);
	release(&s);
}

/* ---- JSON ---- */

static void put_known(struct json_writer *w, const char *key, int64_t v)
{
	if (v == TURN_UNKNOWN)
		return;
	json_member_int(w, key, v);
}

void multi_turn_json(const struct multi_turn_report *r, struct buf *out)
{
	struct json_writer w = json_writer(out);

	w.indent = 2;
	json_begin_array(&w);
	for (size_t i = 0; i < r->n; i++) {
		const struct turn_stats *s = &r->v[i];

		json_begin_object(&w);
		for (size_t c = 0; c < COLUMNS; c++) {
			json_key(&w, columns[c].name);
			if (columns[c].is_count)
				json_put_int(&w, (int64_t)value_of(&columns[c], s));
			else
				json_put_f64(&w, value_of(&columns[c], s));
		}
		json_member_str(&w, "conversation_id", s->conversation_id);
		json_member_int(&w, "client_id", s->client_id);
		put_known(&w, "server_prompt_tokens", s->server_prompt_tokens);
		put_known(&w, "server_cached_tokens", s->server_cached_tokens);
		put_known(&w, "server_output_tokens", s->server_output_tokens);
		json_end_object(&w);
	}
	json_end_array(&w);
}

/* ---- spreadsheet ---- */

#define TABLE_GAP 3 /* rows between two tables */

/* A head and one row; a value that reads as a number is one. The row below it is returned. */
static uint32_t put_pairs(struct sheet *s, uint32_t row, const struct report_pair *pair, size_t n)
{
	for (uint32_t i = 0; i < n; i++)
		sheet_text(s, row, i, str_of(pair[i].key));
	for (uint32_t i = 0; i < n; i++) {
		double v;

		if (str_to_f64(str_of(pair[i].value), &v))
			sheet_number(s, row + 1, i, v);
		else
			sheet_text(s, row + 1, i, str_of(pair[i].value));
	}
	return row + 2;
}

static uint32_t put_share(struct sheet *s, uint32_t row, const struct multi_turn_report *r,
			  const struct sorted *sorted, size_t from)
{
	struct key_line line[LINES_MAX];
	size_t n = key_lines(r, sorted, from, line);
	struct turn_table t;

	for (uint32_t i = 0; i < n; i++)
		sheet_text(s, row, i, str_of(line[i].key));
	for (uint32_t i = 0; i < n; i++)
		sheet_number(s, row + 1, i, line[i].v);
	row += 3; /* one is free */
	make_table(r, sorted, from, &t);
	for (uint32_t k = 0; k < t.n_labels; k++)
		sheet_text(s, row, k + 1, str_of(t.label[k]));
	for (uint32_t m = 0; m < t.n; m++) {
		sheet_text(s, ++row, 0, str_of(t.name[m]));
		for (uint32_t k = 0; k < t.n_labels; k++)
			sheet_number(s, row, k + 1, t.figures[m].v[k]);
	}
	return row + TABLE_GAP;
}

static void put_summary(struct sheet *s, const struct multi_turn_report *r,
			const struct sorted *sorted)
{
	uint32_t row = put_pairs(s, 0, r->params, r->n_params) + TABLE_GAP - 1;
	size_t from;

	if (r->n_generated)
		row = put_pairs(s, row - 1, r->generated, r->n_generated) + TABLE_GAP;
	for (size_t i = 0; i < r->n_warmup && is_left_over(r, i, &from); i++)
		row = put_share(s, row, r, sorted, from);
}

static void put_raw(struct sheet *s, const struct multi_turn_report *r, const struct sorted *sorted)
{
	uint32_t col = 0;

	for (size_t c = 0; c < COLUMNS; c++)
		sheet_text(s, 0, col++, str_of(columns[c].name));
	sheet_text(s, 0, col++, STR("conversation_id"));
	sheet_text(s, 0, col++, STR("client_id"));
	if (r->is_verbose)
		sheet_text(s, 0, col++, STR(BETWEEN));
	sheet_text(s, 0, col, STR("end_time_ms"));
	for (size_t i = 0; i < sorted->n && i + 1 < WORKBOOK_ROWS_MAX; i++) {
		const struct turn_stats *t = sorted->v[i];
		uint32_t row = (uint32_t)i + 1;

		col = 0;
		for (size_t c = 0; c < COLUMNS; c++)
			sheet_number(s, row, col++, value_of(&columns[c], t));
		sheet_text(s, row, col++, t->conversation_id);
		sheet_number(s, row, col++, t->client_id);
		if (r->is_verbose)
			sheet_number(s, row, col++, sorted->between_s[i]);
		sheet_number(s, row, col, t->start_time_ms + t->latency_ms);
	}
}

int multi_turn_workbook(const struct multi_turn_report *r, struct buf *out, struct err *e)
{
	struct sheet sheet[] = { { .name = "Summary" }, { .name = "Raw data" } };
	struct sorted s = sort(r);
	int rc;

	if (r->n) {
		put_summary(&sheet[0], r, &s);
		put_raw(&sheet[1], r, &s);
	}
	rc = workbook_write(sheet, 2, out, e);
	for (size_t i = 0; i < 2; i++)
		buf_release(&sheet[i].xml);
	release(&s);
	return rc;
}
