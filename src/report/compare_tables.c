/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare_tables.c - see compare_tables.h: rows of files on common keys, and what each group
 * of them says. The pages are compare_tables_page.c's.
 */
#include "report/compare_tables.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/python.h"
#include "json/write.h"
#include "report/compare.h"
#include "report/compare_tables_parts.h"
#include "report/markdown.h"

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
	const char *slash = strrchr(path, '/');

	if (row->kind == JSON_OBJECT && json_get(row, "request_throughput"))
		serving = markdown_serving_row(row, arena_printf(a, "serving %s",
								 slash ? slash + 1 : path), a);
	return frame_add(&f->rows, serving ? serving :
				   row->kind == JSON_OBJECT ? renamed(row, a) : row, path, a, e);
}

/* The list of a file that is a list, or an object with one under a known key. */
static const struct json_value *list_of(const struct json_value *v)
{
	static const char *const wrapper[] = { "results", "serving_results", "benchmarks", "data" };

	for (size_t i = 0; v->kind == JSON_OBJECT && i < sizeof(wrapper) / sizeof(*wrapper); i++) {
		const struct json_value *list = json_get(v, wrapper[i]);

		if (list && list->kind == JSON_ARRAY)
			return list;
	}
	return v;
}

static int read_file(struct tables_file *f, const char *path, struct arena *a, struct err *e)
{
	struct frame all = { 0 };

	if (frame_read_file(&all, path, a, e) < 0)
		return -1;
	if (all.n == 1) {
		const struct json_value *list = list_of(all.row[0]);

		for (size_t i = 0; list->kind == JSON_ARRAY && i < list->count; i++)
			if (add_row(f, &list->item[i], path, a, e) < 0)
				return -1;
		if (list->kind == JSON_ARRAY)
			return 0;
	}
	for (size_t i = 0; i < all.n; i++)
		if (add_row(f, all.row[i], path, a, e) < 0)
			return -1;
	return 0;
}

/* A folder's results and sweeps are what `bench compare` finds there. */
static int read_folder(struct tables_file *f, const char *path, struct arena *a, struct err *e)
{
	static const struct compare_opts opts = { 0 };
	struct comparison c = { .o = &opts, .a = a };
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
	const char *out;

	if (!v || v->kind == JSON_NULL)
		return "";
	if (v->kind == JSON_REAL && fabs(v->real) <= 1e15 && v->real == floor(v->real))
		buf_printf(&text, "%.0f", v->real);
	else
		json_python_str(&text, v);
	out = arena_text(t->a, buf_str(&text));
	buf_release(&text);
	return out;
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

/* Sums become means; levels of which nothing is known (rows of other kinds of tests) go. */
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

bool tables_passes(const struct tables *t, const struct tables_level *l, size_t metric, size_t file)
{
	const struct tables_opts *o = t->o;
	double v = l->value[metric][file];

	if (metric == TABLES_TTFT)
		return is_within(v, o->ttft_max_ms, o->ttft_slack_pct);
	return is_within(v, o->tpot_max_ms, o->tpot_slack_pct);
}

void tables_capacity(const struct tables *t, size_t from, size_t to, size_t file,
		     struct tables_capacity *c)
{
	*c = (struct tables_capacity){ NAN, NAN, NAN, NAN, NAN, NULL, NULL };
	for (size_t i = from; i < to; i++) {
		const struct tables_level *l = &t->level[i];
		double x = l->number[t->x];
		bool has_both = !isnan(l->value[TABLES_TTFT][file]) &&
				!isnan(l->value[TABLES_TPOT][file]);
		bool is_ttft = tables_passes(t, l, TABLES_TTFT, file);
		bool is_tpot = tables_passes(t, l, TABLES_TPOT, file);

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
		if (tables_passes(t, l, TABLES_TTFT, file) &&
		    tables_passes(t, l, TABLES_TPOT, file) && !(x >= c->first_failure) &&
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
	return tables_write(&t, e);
}
