/* SPDX-License-Identifier: Apache-2.0 */
/* compare_tables.c - see compare.h: tables in the format of vLLM's dashboard script. */
#include "out/compare/compare.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "core/json/write.h"
#include "out/compare/markdown.h"
#include "out/report/grid.h"
#include "results/read/files.h"
#include "results/read/frame.h"

#define TABLES_KEYS_MAX 7 /* the six of upstream and another x axis */

enum { TABLES_TPUT, TABLES_TTFT, TABLES_TPOT, TABLES_METRICS };

struct tables_file { const char *label, *path; struct frame rows; };

/* One combination of the key columns, in any of the files. */
struct tables_level {
	const char *text[TABLES_KEYS_MAX];
	double number[TABLES_KEYS_MAX];         /* NAN: the text is no number */
	double *value[TABLES_METRICS];          /* per file; NAN: none */
	double *count[TABLES_METRICS];          /* number of rows in the value */
	const char **name;                      /* per file: the test's */
};

struct tables {
	const struct tables_opts *o;
	struct arena *a;
	struct buf *out;
	struct tables_file *file;
	size_t n;
	const char *metric[TABLES_METRICS];
	const char *key[TABLES_KEYS_MAX];
	size_t n_keys, n_groups, x;             /* the first n_groups make groups; x: the axis */
	struct tables_level *level;             /* sorted by group, then x */
	size_t n_levels;
};

/* Of one file in one group: upstream's three numbers, then ours. NAN: none. */
struct tables_capacity {
	double ttft, tpot, both;
	double first_failure;                   /* the least level at which a limit is passed */
	double same_row;                        /* the highest level below it that keeps both */
	const struct tables_level *at_both, *at_same_row; /* NULL: none */
};

static const char *const info[] = {
	"Model", "Dataset Name", "Input Len", "Output Len", "# of max concurrency.", "qps",
};
static const char *const concurrency[] = {
	"# of max concurrency.", "# of max concurrency", "Max Concurrency", "max_concurrency",
	"Concurrency",
};

/* ---- reading ---- */

/* A row under the spelling of the columns that everything else uses. */
static const struct json_value *renamed(const struct json_value *row, struct arena *a)
{
	static const struct { const char *from, *to; } alias[] = {
		{ "tp_size", "TP Size" }, { "tensor_parallel_size", "TP Size" },
		{ "pp_size", "PP Size" }, { "pipeline_parallel_size", "PP Size" },
	};
	struct json_value *out = arena_alloc(a, sizeof(*out));

	*out = *row;
	out->key = arena_alloc(a, (row->count + 1) * sizeof(*out->key));
	for (size_t i = 0; i < row->count; i++) {
		out->key[i] = row->key[i];
		for (size_t k = 0; k < sizeof(alias) / sizeof(*alias); k++)
			if (str_is(row->key[i], alias[k].from) && !json_get(row, alias[k].to))
				out->key[i] = str_of(alias[k].to);
		for (size_t k = 1; k < sizeof(concurrency) / sizeof(*concurrency); k++)
			if (str_is(row->key[i], concurrency[k]) && !json_get(row, concurrency[0]))
				out->key[i] = str_of(concurrency[0]);
	}
	return out;
}

static int add_row(struct tables_file *f, const struct json_value *row, const char *path,
		   struct arena *a, struct err *e)
{
	const struct json_value *serving = NULL;

	if (row->kind == JSON_OBJECT && json_get(row, "request_throughput"))
		serving = markdown_serving_row(row, arena_printf(a, "serving %s",
								 result_file_name(path)), a);
	return frame_add(&f->rows, serving ? serving :
				   row->kind == JSON_OBJECT ? renamed(row, a) : row, path, a, e);
}

static int read_file(struct tables_file *f, const char *path, struct arena *a, struct err *e)
{
	struct frame all = { 0 };

	if (frame_read_file(&all, path, a, e) < 0)
		return -1;
	for (size_t i = 0; i < all.n; i++)
		if (add_row(f, all.row[i], path, a, e) < 0)
			return -1;
	return 0;
}

/* A folder's results and sweeps are what `bench compare` finds there. */
static int read_folder(struct tables_file *f, const char *path, struct arena *a, struct err *e)
{
	static const struct compare_opts opts = { 0 };
	struct bench_comparison c = { .o = &opts, .a = a };
	struct compare_side side;
	int rc;

	c.side = &side;
	rc = compare_read(&c, path, e);
	for (size_t i = 0; rc == 0 && i < side.n; i++)
		rc = add_row(f, side.run[i].record, side.run[i].path, a, e);
	compare_release(&c);
	return rc;
}

/* The folder's part of a path, else the name: what upstream heads a column with. */
static const char *label_of(const char *path, struct arena *a)
{
	const char *slash = strrchr(path, '/');

	if (file_is_dir(path))
		return path;
	return slash && slash != path ?
		       arena_text(a, (struct str){ path, (size_t)(slash - path) }) : path;
}

static int read_any(struct tables_file *f, const char *path, struct arena *a, struct err *e)
{
	f->label = label_of(path, a);
	f->path = path;
	if (!file_exists(path))
		return err_set(e, ERR_RUN, "%s does not exist; a benchmark_results.json, a result or a "
			       "folder of results is expected", path);
	return file_is_dir(path) ? read_folder(f, path, a, e) : read_file(f, path, a, e);
}

/* ---- one file: a part for each TP and PP size ---- */

static int64_t size_of(const struct json_value *row, const char *key)
{
	double v;

	return frame_number(json_get(row, key), &v) && isfinite(v) ? (int64_t)v : 1;
}

/* By the test's name, if it has one. */
static bool is_serving(const struct json_value *row)
{
	static const char *const names[] = { "Test name", "test_name", "Test Name" };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		const struct json_value *v = json_get(row, names[i]);

		if (v && v->kind == JSON_STRING)
			return strcasestr(v->text.p, "serving") != NULL;
	}
	return true;
}

static int write_part(const struct tables *t, struct tables_file *part, int64_t tp, int64_t pp,
		      struct err *e)
{
	char *dir = arena_printf(t->a, "%s%ssplits/tp%lld_pp%lld", t->o->html_dir,
				 *t->o->html_dir ? "/" : "", (long long)tp, (long long)pp);
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	int rc;

	part->label = dir;
	part->path = arena_printf(t->a, "%s/benchmark_results.json", dir);
	w.indent = 2;
	json_begin_array(&w);
	for (size_t i = 0; i < part->rows.n; i++)
		json_put_value(&w, part->rows.row[i]);
	json_end_array(&w);
	rc = file_mkdirs(dir, e);
	if (rc == 0)
		rc = file_write_atomic(part->path, buf_str(&text), e);
	if (rc == 0)
		buf_printf(t->out, "Saved: %s\n", part->path);
	buf_release(&text);
	return rc;
}

/* The smallest pair of sizes beyond the last one; false: no more. */
static bool next_sizes(const struct frame *rows, int64_t *tp, int64_t *pp)
{
	bool has_any = false;
	int64_t t = 0, p = 0;

	for (size_t i = 0; i < rows->n; i++) {
		int64_t x = size_of(rows->row[i], "TP Size"), y = size_of(rows->row[i], "PP Size");

		if (x < *tp || (x == *tp && y <= *pp))
			continue;
		if (!has_any || x < t || (x == t && y < p)) {
			t = x;
			p = y;
		}
		has_any = true;
	}
	*tp = t;
	*pp = p;
	return has_any;
}

static int split(struct tables *t, const struct tables_file *whole, struct err *e)
{
	int64_t tp = INT64_MIN, pp = INT64_MIN;
	struct frame rows = { 0 };

	for (size_t i = 0; i < whole->rows.n; i++)
		if (is_serving(whole->rows.row[i]) &&
		    frame_add(&rows, whole->rows.row[i], whole->path, t->a, e) < 0)
			return -1;
	t->file = arena_alloc(t->a, COMPARE_SIDES_MAX * sizeof(*t->file));
	while (next_sizes(&rows, &tp, &pp)) {
		struct tables_file *part = &t->file[t->n];

		if (t->n++ == COMPARE_SIDES_MAX)
			return err_set(e, ERR_LIMIT, "%s has more than %d pairs of TP and PP sizes",
				       whole->path, COMPARE_SIDES_MAX);
		for (size_t i = 0; i < rows.n; i++)
			if (size_of(rows.row[i], "TP Size") == tp &&
			    size_of(rows.row[i], "PP Size") == pp &&
			    frame_add(&part->rows, rows.row[i], whole->path, t->a, e) < 0)
				return -1;
		if (write_part(t, part, tp, pp, e) < 0)
			return -1;
	}
	return t->n ? 0 : err_set(e, ERR_RUN, "%s has no serving tests", whole->path);
}

/* ---- keys ---- */

static bool is_everywhere(const struct tables *t, const char *column)
{
	for (size_t f = 0; f < t->n; f++)
		if (!frame_has_column(&t->file[f].rows, str_of(column)))
			return false;
	return true;
}

static int choose_keys(struct tables *t, struct err *e)
{
	const char *x = t->o->xaxis;

	for (size_t i = 1; i < sizeof(concurrency) / sizeof(*concurrency); i++)
		if (strcmp(x, concurrency[i]) == 0)
			x = concurrency[0];
	for (size_t i = 0; i < sizeof(info) / sizeof(*info); i++)
		if (is_everywhere(t, info[i])) {
			t->n_groups += i < 4;
			t->key[t->n_keys++] = info[i];
		}
	if (!t->n_keys)
		return err_set(e, ERR_RUN, "the files have none of the columns Model, Dataset Name, "
			       "Input Len, Output Len, # of max concurrency., qps in common");
	t->x = 0;
	while (t->x < t->n_keys && strcmp(t->key[t->x], x) != 0)
		t->x++;
	if (t->x == t->n_keys && !is_everywhere(t, x))
		return err_set(e, ERR_USAGE, "--xaxis: no column '%s' is in all files", x);
	if (t->x == t->n_keys)
		t->key[t->n_keys++] = arena_text(t->a, str_of(x));
	return 0;
}

static const char *key_text(const struct tables *t, const struct json_value *row, size_t k)
{
	const struct json_value *v = frame_value(row, str_of(t->key[k]));
	struct buf text = { 0 };

	if (!v || v->kind == JSON_NULL)
		return "";
	if (v->kind == JSON_REAL && fabs(v->real) <= 1e15 && v->real == floor(v->real))
		buf_printf(&text, "%.0f", v->real);
	else
		json_python_str(&text, v);
	return arena_take(t->a, &text).p;
}

static struct tables_level *level_of(struct tables *t, const struct json_value *row)
{
	struct tables_level *l;
	const char *text[TABLES_KEYS_MAX];

	for (size_t k = 0; k < t->n_keys; k++)
		text[k] = key_text(t, row, k);
	for (size_t i = 0; i < t->n_levels; i++) {
		size_t k = 0;

		while (k < t->n_keys && strcmp(t->level[i].text[k], text[k]) == 0)
			k++;
		if (k == t->n_keys)
			return &t->level[i];
	}
	l = &t->level[t->n_levels++];
	for (size_t k = 0; k < t->n_keys; k++) {
		l->text[k] = text[k];
		if (!str_to_f64(str_of(text[k]), &l->number[k]))
			l->number[k] = NAN;
	}
	for (size_t m = 0; m < TABLES_METRICS; m++) {
		l->value[m] = arena_alloc(t->a, t->n * sizeof(double));
		l->count[m] = arena_alloc(t->a, t->n * sizeof(double));
	}
	l->name = arena_alloc(t->a, t->n * sizeof(*l->name));
	return l;
}

/* Turns sums into means; removes levels without any value (rows of other kinds of tests). */
static void average(struct tables *t)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->n_levels; i++) {
		struct tables_level *l = &t->level[i];
		bool has_any = false;

		for (size_t m = 0; m < TABLES_METRICS; m++)
			for (size_t f = 0; f < t->n; f++) {
				double n = l->count[m][f];

				has_any |= n > 0;
				l->value[m][f] = n > 0 ? l->value[m][f] / n : NAN;
			}
		if (has_any)
			t->level[kept++] = *l;
	}
	t->n_levels = kept;
}

/* Rows without a P99 TPOT count for throughput only; rows of equal keys become their mean. */
static void collect(struct tables *t)
{
	size_t all = 0;

	for (size_t f = 0; f < t->n; f++)
		all += t->file[f].rows.n;
	t->level = arena_alloc(t->a, (all + 1) * sizeof(*t->level));
	for (size_t f = 0; f < t->n; f++)
		for (size_t i = 0; i < t->file[f].rows.n; i++) {
			const struct json_value *row = t->file[f].rows.row[i];
			struct tables_level *l = level_of(t, row);
			double v, p99;
			bool has_p99 = compare_number(row, "P99", &p99);

			if (!l->name[f])
				l->name[f] = arena_text(t->a, json_text(json_get(row, "Test name"),
									STR("")));
			for (size_t m = 0; m < TABLES_METRICS; m++)
				if ((m == TABLES_TPUT || has_p99) &&
				    compare_number(row, t->metric[m], &v)) {
					l->value[m][f] += v;
					l->count[m][f]++;
				}
		}
	average(t);
}

/* Numbers before texts, each in their order. */
static int compare_key(const struct tables_level *a, const struct tables_level *b, size_t k)
{
	double x = a->number[k], y = b->number[k];

	if (isnan(x) || isnan(y))
		return isnan(x) != isnan(y) ? (isnan(x) ? 1 : -1) : strcmp(a->text[k], b->text[k]);
	return (x > y) - (x < y);
}

static int by_group_then_x(const void *p, const void *q, void *arg)
{
	const struct tables_level *a = p, *b = q;
	const struct tables *sorting = arg;
	int order = 0;

	for (size_t k = 0; k < sorting->n_groups && !order; k++)
		order = compare_key(a, b, k);
	if (!order)
		order = compare_key(a, b, sorting->x);
	for (size_t k = sorting->n_groups; k < sorting->n_keys && !order; k++)
		order = compare_key(a, b, k);
	return order;
}

/* ---- valid max concurrency ---- */

/* Not for NAN. */
static bool is_within(double v, double limit, double slack_pct)
{
	return v <= limit * (1 + slack_pct / 100);
}

static bool passes(const struct tables *t, const struct tables_level *l, size_t metric, size_t file)
{
	const struct tables_opts *o = t->o;
	double v = l->value[metric][file];

	if (metric == TABLES_TTFT)
		return is_within(v, o->ttft_max_ms, o->ttft_slack_pct);
	return is_within(v, o->tpot_max_ms, o->tpot_slack_pct);
}

static void find_capacity(const struct tables *t, size_t from, size_t to, size_t file,
		     struct tables_capacity *c)
{
	*c = (struct tables_capacity){ NAN, NAN, NAN, NAN, NAN, NULL, NULL };
	for (size_t i = from; i < to; i++) {
		const struct tables_level *l = &t->level[i];
		double x = l->number[t->x];
		bool has_both = !isnan(l->value[TABLES_TTFT][file]) &&
				!isnan(l->value[TABLES_TPOT][file]);
		bool is_ttft = passes(t, l, TABLES_TTFT, file);
		bool is_tpot = passes(t, l, TABLES_TPOT, file);

		if (is_ttft)
			c->ttft = fmax(c->ttft, x);
		if (is_tpot)
			c->tpot = fmax(c->tpot, x);
		if (has_both && !(is_ttft && is_tpot))
			c->first_failure = fmin(c->first_failure, x);
	}
	c->both = isnan(c->ttft) || isnan(c->tpot) ? NAN : fmin(c->ttft, c->tpot);
	for (size_t i = from; i < to; i++) {
		const struct tables_level *l = &t->level[i];
		double x = l->number[t->x];

		if (!c->at_both && x >= c->both && x <= c->both) /* inf too */
			c->at_both = l;
		if (!isnan(x) && passes(t, l, TABLES_TTFT, file) &&
		    passes(t, l, TABLES_TPOT, file) && !(x >= c->first_failure) &&
		    !(x <= c->same_row)) {
			c->same_row = x;
			c->at_same_row = l;
		}
	}
}

/* ---- everything ---- */

static int read_all(struct tables *t, const char *const *path, size_t n, struct err *e)
{
	struct tables_file whole = { 0 };

	if (n > COMPARE_SIDES_MAX)
		return err_set(e, ERR_LIMIT, "%zu files are more than the limit of %d", n,
			       COMPARE_SIDES_MAX);
	if (n == 1)
		return read_any(&whole, path[0], t->a, e) < 0 ? -1 : split(t, &whole, e);
	t->file = arena_alloc(t->a, n * sizeof(*t->file));
	for (t->n = 0; t->n < n; t->n++)
		if (read_any(&t->file[t->n], path[t->n], t->a, e) < 0)
			return -1;
	return 0;
}

static void say_what(const struct tables *t)
{
	buf_add_text(t->out, "comparing : ");
	for (size_t f = 0; f < t->n; f++)
		buf_printf(t->out, "%s%s", f ? ", " : "", t->file[f].path);
	buf_add_char(t->out, '\n');
	for (size_t m = 0; m < TABLES_METRICS; m++) {
		buf_printf(t->out, "\ncompare_data_column: %s\n[", t->metric[m]);
		for (size_t f = 0; f < t->n; f++) {
			buf_add_text(t->out, f ? ", " : "");
			json_repr_str(t->out, str_of(t->file[f].label));
		}
		buf_add_text(t->out, "]\n");
	}
}

#define SHEET_CHARS_MAX 31
#define FILE_CHARS_MAX 180
#define CHART_W 640
#define CHART_H 300
#define CHART_LEFT 60
#define CHART_BOTTOM 40

static const char style[] =
	"<style>body{font:14px/1.4 system-ui,sans-serif;margin:1.5rem}"
	"table{border-collapse:collapse}th,td{border:1px solid #8886;padding:.2rem .5rem}"
	".n{text-align:right}.good{background:#e6ffe6;color:#000;font-weight:bold}"
	".fair{background:#ffe5cc;color:#000;font-weight:bold}.mark{background:#fff3b0;color:#000}"
	"h2{font-size:1.4em}h3{font-size:1.15em}svg text{font:11px system-ui,sans-serif}</style>\n";

/* A group's levels, its heading and what its files are called. */
struct table_group { size_t from, to; const char *title, *page, *sheet; };

/* ---- names ---- */

static const char *group_title(const struct tables *t, const struct tables_level *l)
{
	const char *text = "";

	for (size_t k = 0; k < t->n_groups; k++)
		text = arena_printf(t->a, "%s%s%s : [ %s ] ", text, k ? " , " : "", t->key[k],
				    l->text[k]);
	return text;
}

static const char *page_name(const struct tables *t, const struct tables_level *l)
{
	char *text = arena_printf(t->a, "perf_comparison");

	for (size_t k = 0; k < t->n_groups; k++)
		text = arena_printf(t->a, "%s_%s", text, l->text[k]);
	for (char *p = text; *p; p++)
		*p = *p == ',' ? '_' : *p == '/' ? '-' : *p;
	return arena_printf(t->a, "%s.html", text);
}

static const char *group_value(const struct tables *t, const struct tables_level *l,
			       const char *key)
{
	for (size_t k = 0; k < t->n_groups; k++)
		if (strcmp(t->key[k], key) == 0)
			return l->text[k];
	return NULL;
}

static char *sheet_name(const struct tables *t, const struct tables_level *l)
{
	const char *model = group_value(t, l, "Model"), *slash;
	const char *in = group_value(t, l, "Input Len"), *out = group_value(t, l, "Output Len");
	char *text;

	model = model ? model : "model";
	slash = strrchr(model, '/');
	text = in && out ? arena_printf(t->a, "%s_%sx%s", slash ? slash + 1 : model, in, out)
			 : arena_printf(t->a, "%s", slash ? slash + 1 : model);
	for (char *p = text; *p; p++)
		if (strchr(":\\/?*[]", *p))
			*p = '_';
	if (strlen(text) > SHEET_CHARS_MAX)
		text[SHEET_CHARS_MAX] = '\0';
	return *text ? text : arena_printf(t->a, "sheet");
}

static const char *unique_sheet(const struct tables *t, const struct table_group *before, size_t n,
				const struct tables_level *l)
{
	char *base = sheet_name(t, l), *name = base;
	size_t tries = 1;

	for (size_t i = 0; i < n; i++)
		if (strcmp(before[i].sheet, name) == 0) {
			name = arena_printf(t->a, "%.*s_%zu", SHEET_CHARS_MAX - 4, base, ++tries);
			i = (size_t)-1; /* the new name may be taken too */
		}
	return name;
}

/* Replaces other characters than letters, digits, "_", "." and "-" by "_". */
static const char *csv_name(const struct tables *t, const char *sheet, const char *table)
{
	char *text = arena_printf(t->a, "%s__%s", sheet, table), *to = text;

	for (const char *p = text; *p; p++) {
		bool is_kept = isalnum((unsigned char)*p) || strchr("._-", *p) || *p & 0x80;
		bool is_blank = *p == ' ' || *p == '/'; /* these become "_" each, before the others */

		if (is_kept)
			*to++ = *p;
		else if (is_blank || p == text || isalnum((unsigned char)p[-1]) ||
			 strchr("._- /", p[-1]))
			*to++ = '_';
	}
	*to = '\0';
	if (strlen(text) > FILE_CHARS_MAX)
		text[FILE_CHARS_MAX] = '\0';
	return arena_printf(t->a, "%s.csv", text);
}

/* ---- one metric's table ---- */

static const char *number_text(const struct tables *t, double v, bool is_exact)
{
	char text[FMT_F64_BYTES];

	if (isnan(v))
		return "";
	return is_exact ? arena_text(t->a, str_of(fmt_f64(text, v))) : arena_printf(t->a, "%.2f", v);
}

/* Above 1 means better than the first file. */
static double ratio_of(const struct tables_level *l, size_t metric, size_t file)
{
	double base = l->value[metric][0], v = l->value[metric][file];

	if (!(fabs(base) > 0))
		return NAN;
	return metric == TABLES_TPUT ? v / base : base / v;
}

static enum grid_tone value_tone(const struct tables *t, const struct tables_level *l,
				 size_t metric, size_t file)
{
	double v = l->value[metric][file];
	double limit = metric == TABLES_TTFT ? t->o->ttft_max_ms : t->o->tpot_max_ms;

	if (metric == TABLES_TPUT || isnan(v))
		return GRID_PLAIN;
	return v <= limit ? GRID_GOOD : passes(t, l, metric, file) ? GRID_FAIR : GRID_PLAIN;
}

/* first: the first key that is shown; pages leave out those of the group. */
static void metric_heads(const struct tables *t, size_t first, struct grid *g)
{
	for (size_t k = first; k < t->n_keys; k++)
		grid_add(g, t->key[k]);
	for (size_t f = 0; f < t->n; f++) {
		if (t->o->is_debug)
			grid_add(g, arena_printf(t->a, "%s_name", t->file[f].label));
		grid_add(g, t->file[f].label);
		if (f)
			grid_add_toned(g, arena_printf(t->a, "Ratio 1 vs %zu", f + 1), GRID_MARK);
	}
	grid_end_heads(g);
}

static void metric_grid(const struct tables *t, const struct table_group *group, size_t metric,
			bool is_exact, struct grid *g)
{
	size_t first = is_exact ? 0 : t->n_groups;

	grid_begin(g, t->a);
	metric_heads(t, first, g);
	for (size_t i = group->from; i < group->to; i++) {
		const struct tables_level *l = &t->level[i];
		bool has_any = false;

		for (size_t f = 0; f < t->n; f++)
			has_any |= !isnan(l->value[metric][f]);
		if (!has_any)
			continue;
		for (size_t k = first; k < t->n_keys; k++)
			grid_add(g, l->text[k]);
		for (size_t f = 0; f < t->n; f++) {
			if (t->o->is_debug)
				grid_add(g, l->name[f] ? l->name[f] : "");
			grid_add_toned(g, number_text(t, l->value[metric][f], is_exact),
				       value_tone(t, l, metric, f));
			if (f)
				grid_add_toned(g, number_text(t, ratio_of(l, metric, f), is_exact),
					       GRID_MARK);
		}
	}
}

/* ---- the summary ---- */

static const char *limit_text(const struct tables *t, const char *name, double limit, double slack)
{
	return arena_printf(t->a, "Max %s (%s ≤ %g–%g ms (+%g%%))", t->key[t->x], name, limit,
			    limit * (1 + slack / 100), slack);
}

static void summary_grid(const struct tables *t, const struct table_group *group, bool is_exact,
			 struct grid *g)
{
	const struct tables_opts *o = t->o;
	const char *x = t->key[t->x];

	grid_begin(g, t->a);
	grid_add_all(g, "Configuration", limit_text(t, "TTFT", o->ttft_max_ms, o->ttft_slack_pct),
		     limit_text(t, "TPOT", o->tpot_max_ms, o->tpot_slack_pct),
		     arena_printf(t->a, "Max %s (Both)", x), "Output Tput @ Both (tok/s)",
		     "TTFT @ Both (ms)", "TPOT @ Both (ms)",
		     arena_printf(t->a, "First failing %s", x),
		     arena_printf(t->a, "Max %s below it (Both in one row)", x),
		     "Output Tput there (tok/s)", NULL);
	grid_end_heads(g);
	for (size_t f = 0; f < t->n; f++) {
		struct tables_capacity c;
		double v[9];

		find_capacity(t, group->from, group->to, f, &c);
		v[0] = c.ttft;
		v[1] = c.tpot;
		v[2] = c.both;
		for (size_t m = 0; m < TABLES_METRICS; m++)
			v[3 + m] = c.at_both ? c.at_both->value[m][f] : NAN;
		v[6] = c.first_failure;
		v[7] = c.same_row;
		v[8] = c.at_same_row ? c.at_same_row->value[TABLES_TPUT][f] : NAN;
		grid_add(g, t->file[f].label);
		for (size_t i = 0; i < sizeof(v) / sizeof(*v); i++)
			grid_add_toned(g, number_text(t, v[i], is_exact),
				       i == 2 && !isnan(v[i]) ? GRID_GOOD : GRID_PLAIN);
	}
}

/* ---- charts ---- */

struct value_span { double low, high; };

static void widen(struct value_span *s, double v)
{
	if (!isnan(v)) {
		s->low = fmin(s->low, v);
		s->high = fmax(s->high, v);
	}
}

static double place_x(struct value_span s, double v)
{
	double whole = s.high > s.low ? s.high - s.low : 1;

	return CHART_LEFT + (v - s.low) / whole * (CHART_W - CHART_LEFT - 10);
}

static double place_y(struct value_span s, double v)
{
	double whole = s.high > s.low ? s.high - s.low : 1;

	return CHART_H - CHART_BOTTOM - (v - s.low) / whole * (CHART_H - CHART_BOTTOM - 20);
}

static void draw_file(const struct tables *t, const struct table_group *group, size_t metric,
		      size_t file, struct value_span x, struct value_span y, struct buf *out)
{
	static const char *const colour[] = { "#2563eb", "#c2410c", "#15803d", "#7c3aed", "#a16207",
					      "#0e7490" };
	const char *c = colour[file % (sizeof(colour) / sizeof(*colour))];

	buf_printf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"", c);
	for (size_t i = group->from; i < group->to; i++)
		if (!isnan(t->level[i].value[metric][file]) && !isnan(t->level[i].number[t->x]))
			buf_printf(out, "%.1f,%.1f ", place_x(x, t->level[i].number[t->x]),
				   place_y(y, t->level[i].value[metric][file]));
	buf_printf(out, "\"/><text fill=\"%s\" x=\"%d\" y=\"%zu\">", c, CHART_LEFT + 8,
		   16 + 14 * file);
	html_escape(out, t->file[file].label);
	buf_add_text(out, "</text>\n");
}

static void chart(const struct tables *t, const struct table_group *group, size_t metric,
		  struct buf *out)
{
	struct value_span x = { INFINITY, -INFINITY }, y = { 0, 0 };
	double limit = metric == TABLES_TTFT ? t->o->ttft_max_ms : t->o->tpot_max_ms;

	for (size_t i = group->from; i < group->to; i++) {
		widen(&x, t->level[i].number[t->x]);
		for (size_t f = 0; f < t->n; f++)
			widen(&y, t->level[i].value[metric][f]);
	}
	if (!isfinite(x.low))
		return;
	if (metric != TABLES_TPUT && limit <= 2 * y.high)
		widen(&y, limit);
	buf_printf(out, "<svg viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" role=\"img\">\n", CHART_W,
		   CHART_H, CHART_W, CHART_H);
	buf_printf(out, "<path fill=\"none\" stroke=\"#888\" d=\"M%d 10V%dH%d\"/>\n", CHART_LEFT,
		   CHART_H - CHART_BOTTOM, CHART_W - 10);
	for (int i = 0; i <= 4; i++) {
		double xv = x.low + (x.high - x.low) * i / 4, yv = y.high * i / 4;

		buf_printf(out, "<text fill=\"currentColor\" x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">"
			   "%.4g</text><text fill=\"currentColor\" x=\"%d\" y=\"%.1f\" "
			   "text-anchor=\"end\">%.4g</text>\n", place_x(x, xv),
			   CHART_H - CHART_BOTTOM + 16, xv, CHART_LEFT - 6, place_y(y, yv) + 4, yv);
	}
	buf_printf(out, "<text fill=\"currentColor\" x=\"%d\" y=\"%d\" text-anchor=\"middle\">",
		   CHART_W / 2, CHART_H - 6);
	html_escape(out, t->key[t->x]);
	buf_add_text(out, "</text>\n");
	for (size_t f = 0; f < t->n; f++)
		draw_file(t, group, metric, f, x, y, out);
	if (metric != TABLES_TPUT && limit <= y.high)
		buf_printf(out, "<line stroke=\"%s\" stroke-dasharray=\"6 4\" x1=\"%d\" x2=\"%d\" "
			   "y1=\"%.1f\" y2=\"%.1f\"/>\n", metric == TABLES_TTFT ? "red" : "blue",
			   CHART_LEFT, CHART_W - 10, place_y(y, limit), place_y(y, limit));
	buf_add_text(out, "</svg>\n");
}

/* ---- output ---- */

static void heading(struct buf *out, const char *tag, const char *text, const char *more)
{
	buf_printf(out, "<%s>", tag);
	html_escape(out, text);
	if (*more) {
		buf_add_text(out, " — ");
		html_escape(out, more);
	}
	buf_printf(out, "</%s>\n", tag);
}

static int write_csv(const struct tables *t, const struct table_group *group, const char *table,
		     const struct grid *g, struct err *e)
{
	struct buf text = { 0 };
	char *path;
	int rc;

	if (!*t->o->csv_dir)
		return 0;
	path = file_join(t->o->csv_dir, csv_name(t, group->sheet, table));
	grid_csv(g, &text);
	rc = file_write_atomic(path, buf_str(&text), e);
	free(path);
	buf_release(&text);
	return rc;
}

static int write_group(const struct tables *t, const struct table_group *group, struct buf *page,
		       struct err *e)
{
	struct grid g, turned;

	heading(page, "h2", group->title, "");
	buf_printf(t->out, "\n%s\n", group->title);
	for (size_t m = 0; m < TABLES_METRICS; m++) {
		metric_grid(t, group, m, false, &g);
		heading(page, "h3", t->metric[m], group->title);
		grid_html(&g, page);
		buf_printf(t->out, "\n%s\n", t->metric[m]);
		grid_text(&g, false, t->out);
		if (t->o->is_plotted)
			chart(t, group, m, page);
		metric_grid(t, group, m, true, &g);
		if (write_csv(t, group, t->metric[m], &g, e) < 0)
			return -1;
	}
	summary_grid(t, group, false, &g);
	heading(page, "h3", "Valid Max Concurrency Summary", "");
	grid_html(&g, page);
	buf_add_text(t->out, "\nValid Max Concurrency Summary\n");
	grid_turn(&g, &turned);
	grid_text(&turned, false, t->out);
	summary_grid(t, group, true, &g);
	return write_csv(t, group, "Valid_Max_Concurrency_Summary", &g, e);
}

static int write_page(const struct tables *t, const char *name, struct str body, struct err *e)
{
	struct buf text = { 0 };
	char *path = file_join(t->o->html_dir, name);
	int rc;

	buf_add_text(&text, "<meta charset=\"utf-8\">\n");
	buf_add_text(&text, style);
	buf_add_str(&text, body);
	rc = text.is_over ? err_set(e, ERR_LIMIT, "%s is larger than a buffer may be", path)
			  : file_write_atomic(path, buf_str(&text), e);
	free(path);
	buf_release(&text);
	return rc;
}

static bool is_same_group(const struct tables *t, size_t i, size_t k)
{
	for (size_t g = 0; g < t->n_groups; g++)
		if (strcmp(t->level[i].text[g], t->level[k].text[g]) != 0)
			return false;
	return true;
}

static int write_all(const struct tables *t, struct err *e)
{
	struct table_group *group = arena_alloc(t->a, (t->n_levels + 1) * sizeof(*group));
	struct buf whole = { 0 };
	size_t n = 0;
	int rc = 0;

	if ((*t->o->csv_dir && file_mkdirs(t->o->csv_dir, e) < 0) ||
	    (*t->o->html_dir && file_mkdirs(t->o->html_dir, e) < 0))
		return -1;
	for (size_t i = 0; rc == 0 && i < t->n_levels; i = group[n++].to) {
		struct buf page = { 0 };
		struct table_group *now = &group[n];

		now->from = i;
		now->to = i + 1;
		while (now->to < t->n_levels && is_same_group(t, i, now->to))
			now->to++;
		now->title = group_title(t, &t->level[i]);
		now->page = page_name(t, &t->level[i]);
		now->sheet = unique_sheet(t, group, n, &t->level[i]);
		rc = write_group(t, now, &page, e);
		if (rc == 0)
			rc = write_page(t, now->page, buf_str(&page), e);
		buf_add_str(&whole, buf_str(&page));
		buf_release(&page);
	}
	if (rc == 0)
		rc = write_page(t, "perf_comparison.html", buf_str(&whole), e);
	if (rc == 0 && *t->o->csv_dir)
		buf_printf(t->out, "Wrote CSVs under: %s\n", t->o->csv_dir);
	buf_release(&whole);
	return rc;
}

int tables_compare(const struct tables_opts *o, const char *const *path, size_t n,
		   struct arena *a, struct buf *out, struct err *e)
{
	struct tables t = { .o = o, .a = a, .out = out };
	bool is_median = strstr(o->latency, "median") || strstr(o->latency, "Median");

	t.metric[TABLES_TPUT] = "Output Tput (tok/s)";
	t.metric[TABLES_TTFT] = is_median ? "Median TTFT (ms)" : "P99 TTFT (ms)";
	t.metric[TABLES_TPOT] = is_median ? "Median" : "P99";
	if (read_all(&t, path, n, e) < 0 || choose_keys(&t, e) < 0)
		return -1;
	for (size_t m = 0; m < TABLES_METRICS; m++) {
		bool is_there = false;

		for (size_t f = 0; f < t.n; f++)
			is_there |= frame_has_column(&t.file[f].rows, str_of(t.metric[m]));
		if (!is_there)
			return err_set(e, ERR_RUN, "no file has the column '%s'", t.metric[m]);
	}
	collect(&t);
	qsort_r(t.level, t.n_levels, sizeof(*t.level), by_group_then_x, &t);
	say_what(&t);
	return write_all(&t, e);
}
