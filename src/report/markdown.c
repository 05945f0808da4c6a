/* SPDX-License-Identifier: Apache-2.0 */
/* markdown.c - see markdown.h: which files count, the page, the list of records. */
#include "report/markdown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "json/python.h"
#include "json/write.h"
#include "report/grid.h"
#include "report/markdown_rows.h"
#include "results/files.h"
#include "results/read.h"

#define MARKDOWN_RECORDS "benchmark_results.json"

/* ---- reading ---- */

static const struct { enum markdown_kind kind; const char *word, *title, *about; } sections[] = {
	{ MARKDOWN_LATENCY, "latency", "Latency tests",
	  "One batch after the other; times from handing a batch in until its last token." },
	{ MARKDOWN_THROUGHPUT, "throughput", "Throughput tests",
	  "All requests at once, without a server; rates over the whole run." },
	{ MARKDOWN_SERVING, "serving", "Serving tests",
	  "Requests against a server. The columns Median and P99 without a name are of TPOT (ms)." },
	{ MARKDOWN_STARTUP, "startup", "Startup tests",
	  "Seconds until an engine is ready; cold is without compiled graphs in a cache." },
};

static enum markdown_kind kind_of_name(const char *name)
{
	static const enum markdown_kind order[] = { MARKDOWN_SERVING, MARKDOWN_LATENCY,
						    MARKDOWN_THROUGHPUT };

	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		for (size_t k = 0; k < sizeof(sections) / sizeof(*sections); k++)
			if (sections[k].kind == order[i] && strstr(name, sections[k].word))
				return order[i];
	return MARKDOWN_KINDS;
}

static const struct json_value *read_commands(const char *dir, const char *stem, struct arena *a,
					      struct err *e)
{
	char *path = file_join(dir, arena_printf(a, "%s.commands", stem));
	const struct json_value *v = result_json(path, FRAME_FILE_BYTES_MAX, a, e);

	free(path);
	return v;
}

static int add_records(struct markdown_tables *t, const struct frame *f, enum markdown_kind named,
		       const struct json_value *commands, const char *name, struct arena *a,
		       struct err *e)
{
	for (size_t i = 0; i < f->n; i++) {
		enum markdown_kind kind = commands && named != MARKDOWN_KINDS ? named :
								      markdown_kind(f->row[i]);
		const char *test = f->n > 1 ? arena_printf(a, "%s run %zu", name, i) : name;

		if (kind != MARKDOWN_KINDS &&
		    markdown_add(t, kind, f->row[i], commands, test, a, e) < 0)
			return -1;
	}
	return 0;
}

/* A result of ours says by itself what upstream's needs the commands for. */
static bool is_self_told(const struct frame *f)
{
	return f->n && (json_get(f->row[0], "profllm") ||
			markdown_kind(f->row[0]) == MARKDOWN_STARTUP);
}

static int add_file(struct markdown_tables *t, const char *path, struct buf *lines,
		    struct arena *a, struct err *e)
{
	const char *name = result_file_name(path), *stem = arena_text(a, result_file_stem(name));
	const char *dir = arena_text(a, (struct str){ path, (size_t)(name - path) });
	enum markdown_kind named = kind_of_name(name);
	const struct json_value *commands;
	struct frame f = { 0 };
	struct err why = { 0 };

	if (frame_read_file(&f, path, a, &why) < 0) {
		buf_printf(lines, "%s\n", why.text);
		return 0;
	}
	commands = read_commands(dir, stem, a, &why);
	if (!commands && is_self_told(&f))
		return add_records(t, &f, MARKDOWN_KINDS, NULL, stem, a, e);
	if (named != MARKDOWN_KINDS && commands)
		return add_records(t, &f, named, commands, stem, a, e);
	if (named == MARKDOWN_KINDS)
		buf_printf(lines, "Skipping %s\n", path);
	else
		buf_printf(lines, "%s\n", why.text);
	return 0;
}

/* The runs of a sweep's combination, under the name of its folder; "" for dir itself. */
static int add_summary(struct markdown_tables *t, const char *dir, const char *path,
		       struct arena *a, struct err *e)
{
	const char *end = result_file_name(path) - 1, *name = end;
	struct frame f = { 0 };

	while (name > path && name[-1] != '/')
		name--;
	if ((size_t)(end - path) <= strlen(dir))
		name = end;
	return frame_read_file(&f, path, a, e) < 0 ? -1 :
	       add_records(t, &f, MARKDOWN_KINDS, NULL,
			   arena_text(a, (struct str){ name, (size_t)(end - name) }), a, e);
}

static int read_folder(struct markdown_tables *t, const char *dir, struct buf *lines,
		       struct arena *a, struct err *e)
{
	struct result_files sweeps = { 0 }, own = { 0 };
	int rc = result_files_find(dir, RESULT_FILES_SUMMARIES, &sweeps, NULL, NULL, e);

	if (rc == 0)
		rc = result_files_find(dir, RESULT_FILES_OWN, &own, NULL, NULL, e);
	for (size_t i = 0; rc == 0 && i < sweeps.n; i++)
		rc = add_summary(t, dir, sweeps.path[i], a, e);
	for (size_t i = 0; rc == 0 && i < own.n; i++) {
		const char *name = result_file_name(own.path[i]);

		if (strcmp(name, RESULT_SUMMARY) != 0 && strcmp(name, MARKDOWN_RECORDS) != 0)
			rc = add_file(t, own.path[i], lines, a, e);
	}
	result_files_release(&sweeps);
	result_files_release(&own);
	return rc;
}

/* ---- columns ---- */

/* What pandas makes of a column: whole numbers stay so only when none is missing. */
struct shape { bool is_there, is_real, has_any, is_gap; };

static struct shape shape_of(const struct frame *f, struct str name)
{
	struct shape s = { 0 };

	for (size_t i = 0; i < f->n; i++) {
		const struct json_value *v = frame_value(f->row[i], name);

		s.is_there |= v != NULL;
		s.is_gap |= !v || v->kind == JSON_NULL;
		s.has_any |= v && v->kind != JSON_NULL;
		s.is_real |= v && v->kind == JSON_REAL;
	}
	return s;
}

static void put_cell(struct json_writer *w, const struct json_value *v, struct shape s)
{
	bool is_int = v && v->kind == JSON_INT;

	if (!v || v->kind == JSON_NULL) {
		if (s.has_any)
			json_put_f64(w, NAN);
		else
			json_put_null(w);
	} else if (is_int && (s.is_real || s.is_gap)) {
		json_put_f64(w, (double)v->integer);
	} else {
		json_put_value(w, v);
	}
}

/* "A\nA" as nvidia-smi lists them becomes "2xA". */
static const char *gpu_text(struct str gpu, struct arena *a)
{
	struct str rest = gpu, first = str_cut(&rest, '\n');
	size_t n = 1;

	for (size_t i = 0; i < gpu.n; i++)
		n += gpu.p[i] == '\n';
	return arena_printf(a, "%zux%.*s", n, (int)first.n, first.p);
}

/* As tabulate writes it: %g in a column of floats. */
static const char *cell_text(const struct json_value *v, struct shape s, struct arena *a)
{
	struct buf text = { 0 };
	const char *out;

	if (!v || v->kind == JSON_NULL)
		return s.has_any ? "nan" : "";
	if (v->kind == JSON_REAL || (v->kind == JSON_INT && (s.is_real || s.is_gap)))
		return arena_printf(a, "%g", json_real(v, 0));
	json_python_str(&text, v);
	out = arena_text(a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* ---- writing ---- */

static void write_columns(struct json_writer *w, const struct frame *f, enum markdown_kind kind)
{
	const char *name;

	json_begin_object(w);
	for (size_t c = 0; (name = markdown_column(kind, c)); c++) {
		struct shape s = shape_of(f, str_of(name));

		if (!s.is_there)
			continue;
		json_member_object(w, name);
		for (size_t i = 0; i < f->n; i++) {
			char row[24];

			snprintf(row, sizeof(row), "%zu", i);
			json_key(w, row);
			put_cell(w, frame_value(f->row[i], str_of(name)), s);
		}
		json_end_object(w);
	}
	json_end_object(w);
}

static int by_test_name(const void *x, const void *y)
{
	const struct json_value *a = *(const struct json_value *const *)x;
	const struct json_value *b = *(const struct json_value *const *)y;
	struct str s = json_text(json_get(a, "Test name"), STR(""));
	struct str t = json_text(json_get(b, "Test name"), STR(""));
	size_t n = s.n < t.n ? s.n : t.n;
	int order = n ? memcmp(s.p, t.p, n) : 0;

	return order ? order : (s.n > t.n) - (s.n < t.n);
}

static void write_records(struct json_writer *w, const struct frame *f, enum markdown_kind kind,
			  struct arena *a)
{
	for (size_t i = 0; i < f->n; i++) {
		const char *name;

		json_begin_object(w);
		for (size_t c = 0; (name = markdown_column(kind, c)); c++) {
			struct shape s = shape_of(f, str_of(name));
			const struct json_value *v = frame_value(f->row[i], str_of(name));

			if (!s.is_there)
				continue;
			json_key(w, name);
			if (strcmp(name, "GPU") == 0 && v && v->kind == JSON_STRING)
				json_put_text(w, gpu_text(v->text, a));
			else
				put_cell(w, v, s);
		}
		json_end_object(w);
	}
}

static void write_table(const struct frame *f, enum markdown_kind kind, struct buf *out,
			struct arena *a)
{
	const char *name;
	struct grid g;

	if (!f->n)
		return;
	grid_begin(&g, a);
	for (size_t c = 0; (name = markdown_column(kind, c)); c++)
		if (shape_of(f, str_of(name)).is_there)
			grid_add(&g, name);
	grid_end_heads(&g);
	for (size_t i = 0; i < f->n; i++)
		for (size_t c = 0; (name = markdown_column(kind, c)); c++) {
			struct shape s = shape_of(f, str_of(name));
			const struct json_value *v = frame_value(f->row[i], str_of(name));

			if (!s.is_there)
				continue;
			if (strcmp(name, "GPU") == 0 && v && v->kind == JSON_STRING)
				grid_add(&g, gpu_text(v->text, a));
			else
				grid_add(&g, cell_text(v, s, a));
		}
	grid_markdown(&g, out);
}

/* ---- the two files ---- */

static void write_page(const struct markdown_tables *t, struct str json, struct buf *out,
		       struct arena *a)
{
	buf_add_text(out, "# Benchmark results\n");
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		const struct frame *f = &t->table[sections[i].kind];

		if (sections[i].kind == MARKDOWN_STARTUP && !f->n)
			continue;
		buf_printf(out, "\n## %s\n\n%s\n\n", sections[i].title, sections[i].about);
		write_table(f, sections[i].kind, out, a);
	}
	buf_add_text(out, "\n## Platform Information\n\n");
	markdown_platform(out, a);
	buf_add_text(out, "\n## json version of the benchmarking tables\n\nColumns of the tables above by "
			  "row number, as pandas.DataFrame.from_dict takes them.\n\n```json\n");
	buf_add_str(out, json);
	buf_add_text(out, "\n```\n");
}

static int write_file(const char *dir, const char *name, struct buf *text, struct err *e)
{
	char *path = file_join(dir, name);
	int rc = text->is_over ? err_set(e, ERR_LIMIT, "%s is larger than a buffer may be", path)
			       : file_write_atomic(path, buf_str(text), e);

	free(path);
	return rc;
}

static int write_both(const char *dir, struct markdown_tables *t, struct arena *a, struct err *e)
{
	struct buf columns = { 0 }, records = { 0 }, page = { 0 };
	struct json_writer w = json_writer(&columns);
	int rc;

	json_begin_object(&w);
	for (enum markdown_kind k = MARKDOWN_LATENCY; k <= MARKDOWN_SERVING; k++) {
		json_key(&w, sections[k].word);
		write_columns(&w, &t->table[k], k);
	}
	json_end_object(&w);
	w = json_writer(&records);
	json_begin_array(&w);
	for (enum markdown_kind k = 0; k < MARKDOWN_KINDS; k++) {
		struct frame *f = &t->table[k];

		if (f->n)
			qsort(f->row, f->n, sizeof(*f->row), by_test_name);
		if (k != MARKDOWN_STARTUP)
			write_records(&w, f, k, a);
	}
	json_end_array(&w);
	write_page(t, buf_str(&columns), &page, a);
	rc = write_file(dir, "benchmark_results.md", &page, e);
	if (rc == 0)
		rc = write_file(dir, MARKDOWN_RECORDS, &records, e);
	buf_release(&columns);
	buf_release(&records);
	buf_release(&page);
	return rc;
}

int markdown_report(const char *dir, struct buf *lines, struct err *e)
{
	struct markdown_tables t = { 0 };
	struct arena a = { 0 };
	int rc;

	if (!file_is_dir(dir))
		return err_set(e, ERR_RUN, "results folder does not exist: %s", dir);
	rc = read_folder(&t, dir, lines, &a, e);
	if (rc == 0)
		rc = write_both(dir, &t, &a, e);
	arena_release(&a);
	return rc;
}
