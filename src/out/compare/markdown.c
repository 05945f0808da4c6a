/* SPDX-License-Identifier: Apache-2.0 */
/* markdown.c - see markdown.h: selects files, makes table rows, the page and the records. */
#include "out/compare/markdown.h"

#include <assert.h>
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "core/json/write.h"
#include "out/report/grid.h"
#include "results/read/files.h"
#include "results/read/frame.h"
#include "results/read/kind.h"
#include "results/read/read.h"

enum markdown_kind {
	MARKDOWN_LATENCY, MARKDOWN_THROUGHPUT, MARKDOWN_SERVING, MARKDOWN_STARTUP, MARKDOWN_KINDS,
};

/* Objects with display names in one order; values as they were before sorting. */
struct markdown_tables { struct frame table[MARKDOWN_KINDS]; };

#define MARKDOWN_COLUMNS_MAX 32

struct markdown_col { const char *key, *name; };

static const struct markdown_col latency_columns[] = {
	{ "test_name", "Test name" }, { "gpu_type", "GPU" }, { "avg_latency", "Mean latency (ms)" },
	{ "percentiles.50", "Median latency (ms)" }, { "percentiles.99", "P99 latency (ms)" },
};
static const struct markdown_col throughput_columns[] = {
	{ "test_name", "Test name" }, { "gpu_type", "GPU" }, { "num_requests", "# of req." },
	{ "total_num_tokens", "Total # of tokens" }, { "elapsed_time", "Elapsed time (s)" },
	{ "requests_per_second", "Tput (req/s)" }, { "tokens_per_second", "Tput (tok/s)" },
};
static const struct markdown_col serving_columns[] = {
	{ "test_name", "Test name" }, { "model_id", "Model" }, { "dataset_name", "Dataset Name" },
	{ "input_len", "Input Len" }, { "output_len", "Output Len" }, { "tp_size", "TP Size" },
	{ "pp_size", "PP Size" }, { "dtype", "dtype" }, { "gpu_type", "GPU" },
	{ "completed", "# of req." }, { "qps", "qps" },
	{ "max_concurrency", "# of max concurrency." }, { "request_throughput", "Tput (req/s)" },
	{ "total_token_throughput", "Total Token Tput (tok/s)" },
	{ "output_throughput", "Output Tput (tok/s)" }, { "mean_ttft_ms", "Mean TTFT (ms)" },
	{ "median_ttft_ms", "Median TTFT (ms)" }, { "p99_ttft_ms", "P99 TTFT (ms)" },
	{ "std_ttft_ms", "STD TTFT (ms)" }, { "mean_tpot_ms", "Mean TPOT (ms)" },
	{ "median_tpot_ms", "Median" }, { "p99_tpot_ms", "P99" }, { "std_tpot_ms", "STD TPOT (ms)" },
	{ "mean_itl_ms", "Mean ITL (ms)" }, { "median_itl_ms", "Median ITL (ms)" },
	{ "p99_itl_ms", "P99 ITL (ms)" },
};
static const struct markdown_col startup_columns[] = {
	{ "test_name", "Test name" }, { "gpu_type", "GPU" },
	{ "avg_cold_startup_time", "Mean cold startup (s)" },
	{ "avg_cold_compilation_time", "Mean cold compilation (s)" },
	{ "avg_warm_startup_time", "Mean warm startup (s)" },
	{ "avg_warm_compilation_time", "Mean warm compilation (s)" },
};

#define COLUMNS(a) a, sizeof(a) / sizeof(*(a))
static const struct { const struct markdown_col *column; size_t n; } tables[MARKDOWN_KINDS] = {
	[MARKDOWN_LATENCY] = { COLUMNS(latency_columns) },
	[MARKDOWN_THROUGHPUT] = { COLUMNS(throughput_columns) },
	[MARKDOWN_SERVING] = { COLUMNS(serving_columns) },
	[MARKDOWN_STARTUP] = { COLUMNS(startup_columns) },
};

static enum markdown_kind kind_of(const struct json_value *record)
{
	switch (result_kind(record)) {
	case RESULT_LATENCY: return MARKDOWN_LATENCY;
	case RESULT_THROUGHPUT: return MARKDOWN_THROUGHPUT;
	case RESULT_SERVE: return MARKDOWN_SERVING;
	case RESULT_STARTUP: return MARKDOWN_STARTUP;
	default: return MARKDOWN_KINDS;
	}
}

/* ---- values ---- */

static const struct json_value *text_value(const char *text, struct arena *a)
{
	struct json_value *v = arena_alloc(a, sizeof(*v));

	v->kind = JSON_STRING;
	v->text = arena_str(a, str_of(text));
	return v;
}

static bool is_decimal(struct str s)
{
	size_t i = s.n && (s.p[0] == '+' || s.p[0] == '-'), digits = 0;

	while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9')
		i++;
	if (i == s.n || s.p[i++] != '.')
		return false;
	while (i < s.n && s.p[i] >= '0' && s.p[i] <= '9') {
		digits++;
		i++;
	}
	return digits && i == s.n;
}

/* A word of a command as a value: null, true, false, whole numbers, decimals; else text. */
static const struct json_value *word_value(const char *word, struct arena *a)
{
	struct json_value *v = arena_alloc(a, sizeof(*v));
	struct str s = str_of(word);

	if (str_eq_nocase(s, STR("null")))
		return v;
	v->kind = str_eq_nocase(s, STR("true")) ? JSON_TRUE : JSON_FALSE;
	if (v->kind == JSON_TRUE || str_eq_nocase(s, STR("false")))
		return v;
	v->kind = JSON_INT;
	if (str_to_i64(s, &v->integer))
		return v;
	v->kind = JSON_REAL;
	if (is_decimal(s) && str_to_f64(s, &v->real))
		return v;
	return text_value(word, a);
}

/*
 * The value of a flag in a command: "--flag value" or "--flag=value"; true for a bare flag. The
 * last one counts. NULL: absent, or the command is malformed.
 */
static const struct json_value *flag_of(const struct json_value *commands, const char *command,
					const char *flag, struct arena *a)
{
	struct str text = json_text(json_get(commands, command), STR(""));
	const struct json_value *found = NULL;
	size_t n = 0, flag_n = strlen(flag);
	struct err ignored;
	char **word;

	if (!text.n || words_split(text, a, &word, &n, &ignored) < 0)
		return NULL;
	for (size_t i = 2; i < n; i++) {
		if (strncmp(word[i], flag, flag_n) != 0)
			continue;
		if (word[i][flag_n] == '=')
			found = word_value(word[i] + flag_n + 1, a);
		else if (!word[i][flag_n])
			found = i + 1 < n && strncmp(word[i + 1], "--", 2) != 0 ?
					word_value(word[i + 1], a) : word_value("true", a);
	}
	return found;
}

static const struct json_value *first_of(const struct json_value *record,
					 const char *const *key)
{
	const struct json_value *v = NULL;

	for (; *key && !v; key++) {
		v = frame_value(record, str_of(*key));
		if (v && v->kind == JSON_NULL)
			v = NULL;
	}
	return v;
}

/* Values that the script takes from the commands, and our records' keys for them. */
static const struct json_value *from_commands(const struct json_value *record,
					      const struct json_value *commands, const char *key,
					      struct arena *a)
{
	static const struct {
		const char *key, *command, *flag, *ours[6];
	} known[] = {
		{ "tp_size", "server_command", "--tensor-parallel-size",
		  { "tensor_parallel_size", "tensor-parallel-size", "tp_size", "tp" } },
		{ "pp_size", "server_command", "--pipeline-parallel-size",
		  { "pipeline_parallel_size", "pipeline-parallel-size", "pp_size", "pp" } },
		{ "dtype", "server_command", "--dtype", { "dtype" } },
		{ "dataset_name", "client_command", "--dataset-name",
		  { "dataset_name", "dataset-name", "profllm.options.dataset_name" } },
		{ "input_len", "client_command", "--random-input-len",
		  { "random_input_len", "random-input-len", "input_len",
		    "profllm.options.random_input_len" } },
		{ "output_len", "client_command", "--random-output-len",
		  { "random_output_len", "random-output-len", "output_len",
		    "profllm.options.random_output_len" } },
		{ "qps", "client_command", "--request-rate", { "request_rate", "request-rate" } },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
		if (strcmp(known[i].key, key) == 0)
			return commands ? flag_of(commands, known[i].command, known[i].flag, a)
					: first_of(record, known[i].ours);
	return NULL;
}

/* Lengths are a random dataset's; the options of ours have them whatever the dataset. */
static bool has_lengths(const struct json_value *record)
{
	struct str name = json_text(frame_value(record, STR("profllm.options.dataset_name")),
				    STR("random"));

	return str_starts(name, STR("random"));
}

static const struct json_value *milliseconds(const struct json_value *v, struct arena *a)
{
	struct json_value *ms = arena_alloc(a, sizeof(*ms));

	ms->kind = JSON_REAL;
	ms->real = 1000 * json_real(v, NAN);
	return ms;
}

static const struct json_value *value_of(enum markdown_kind kind,
					 const struct json_value *record,
					 const struct json_value *commands, const char *name,
					 const char *key, struct arena *a)
{
	const struct json_value *v;

	if (strcmp(key, "test_name") == 0)
		return text_value(name, a);
	if (kind == MARKDOWN_SERVING && !commands && strstr(key, "put_len") && !has_lengths(record))
		return NULL;
	v = kind == MARKDOWN_SERVING ? from_commands(record, commands, key, a) : NULL;
	if (!v)
		v = json_get(commands, key);
	if (!v)
		v = frame_value(record, str_of(key));
	return v && kind == MARKDOWN_LATENCY && v->kind != JSON_STRING ? milliseconds(v, a) : v;
}

static const struct json_value *make_row(enum markdown_kind kind,
					 const struct json_value *record,
					 const struct json_value *commands, const char *name,
					 struct arena *a)
{
	struct json_value *row = arena_alloc(a, sizeof(*row));

	row->kind = JSON_OBJECT;
	row->item = arena_alloc(a, tables[kind].n * sizeof(*row->item));
	row->key = arena_alloc(a, tables[kind].n * sizeof(*row->key));
	for (size_t i = 0; i < tables[kind].n; i++) {
		const struct json_value *v = value_of(kind, record, commands, name,
						      tables[kind].column[i].key, a);

		if (!v)
			continue;
		row->key[row->count] = str_of(tables[kind].column[i].name);
		row->item[row->count++] = *v;
	}
	return row;
}

const struct json_value *markdown_serving_row(const struct json_value *record, const char *name,
					      struct arena *a)
{
	if (kind_of(record) != MARKDOWN_SERVING)
		return NULL;
	return make_row(MARKDOWN_SERVING, record, NULL, name, a);
}

/* ---- the machine that tables were made on, from /proc and /sys ---- */

static const char *cpu_brand(struct arena *a)
{
	struct buf text = { 0 };
	struct err ignored;
	struct str rest;
	const char *brand = "";

	if (file_read("/proc/cpuinfo", 1u << 22, &text, &ignored) < 0)
		return brand;
	rest = buf_str(&text);
	while (rest.n && !*brand) {
		struct str value = str_cut(&rest, '\n'), key = str_trim(str_cut(&value, ':'));

		if (str_is(key, "model name"))
			brand = arena_text(a, str_trim(value));
	}
	buf_release(&text);
	return brand;
}

/* Entries of a folder of /sys that are one word and a number: "node0". */
static int count_numbered(const char *dir, const char *word)
{
	struct dirent **entry;
	int n = scandir(dir, &entry, NULL, NULL), count = 0;
	size_t word_n = strlen(word);

	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;

		count += strncmp(name, word, word_n) == 0 && name[word_n] &&
			 strspn(name + word_n, "0123456789") == strlen(name + word_n);
		free(entry[i]);
	}
	if (n > 0)
		free(entry);
	return count;
}

/* Distinct pairs of package and core; the number of processors if there are none. */
static long physical_cores(long processors, struct arena *a)
{
	int64_t *seen = arena_alloc(a, ((size_t)processors + 1) * sizeof(*seen));
	long n = 0;

	for (long i = 0; i < processors; i++) {
		static const char *const part[] = { "physical_package_id", "core_id" };
		int64_t id = 0;
		long k = 0;

		for (int p = 0; p < 2; p++) {
			char *path = arena_printf(a, "/sys/devices/system/cpu/cpu%ld/topology/%s", i,
						  part[p]);
			struct buf text = { 0 };
			struct err ignored;
			int64_t v = i;

			if (file_read(path, 4096, &text, &ignored) == 0)
				str_to_i64(str_trim(buf_str(&text)), &v);
			id = id * 65536 + v;
			buf_release(&text);
		}
		while (k < n && seen[k] != id)
			k++;
		if (k == n)
			seen[n++] = id;
	}
	return n;
}

static const char *binary_size(double bytes, struct arena *a)
{
	static const char unit[][2] = { "", "K", "M", "G", "T", "P" };
	size_t i = 0;

	while (bytes >= 1024 && i + 1 < sizeof(unit) / sizeof(*unit)) {
		bytes /= 1024;
		i++;
	}
	return arena_printf(a, "%.2f%sB", bytes, unit[i]);
}

static void add_platform(struct buf *out, struct arena *a)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);
	double memory = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
	int nodes = count_numbered("/sys/devices/system/node", "node");
	const char *brand = cpu_brand(a);
	struct grid g;

	grid_begin(&g, a);
	grid_add(&g, "");
	grid_add(&g, "Platform Info");
	grid_end_heads(&g);
	grid_add_all(&g, "Physical cores", arena_printf(a, "%ld", physical_cores(processors, a)),
		     "Total cores", arena_printf(a, "%ld", processors), "Total Memory",
		     binary_size(memory, a), NULL);
	if (nodes) {
		grid_add(&g, "Total NUMA nodes");
		grid_add(&g, arena_printf(a, "%d", nodes));
	}
	if (*brand) {
		grid_add(&g, "CPU Brand");
		grid_add(&g, brand);
	}
	grid_markdown(&g, out);
}

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
								      kind_of(f->row[i]);
		const char *test = f->n > 1 ? arena_printf(a, "%s run %zu", name, i) : name;

		if (kind != MARKDOWN_KINDS &&
		    frame_add(&t->table[kind], make_row(kind, f->row[i], commands, test, a), test,
			      a, e) < 0)
			return -1;
	}
	return 0;
}

/* Our results include what upstream's need the commands for. */
static bool is_self_told(const struct frame *f)
{
	return f->n && (json_get(f->row[0], "profllm") ||
			kind_of(f->row[0]) == MARKDOWN_STARTUP);
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
		if (why.code == ERR_IO) /* a result of which nothing is known is not left out */
			return err_set(e, ERR_IO, "%s", why.text);
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
		rc = result_files_find(dir, RESULT_FILES_OWN_JSON, &own, NULL, NULL, e);
	for (size_t i = 0; rc == 0 && i < sweeps.n; i++)
		rc = add_summary(t, dir, sweeps.path[i], a, e);
	for (size_t i = 0; rc == 0 && i < own.n; i++) {
		const char *name = result_file_name(own.path[i]);

		if (!result_file_is(dir, name))
			buf_printf(lines, "Skipping %s\n", own.path[i]);
		else if (strcmp(name, RESULT_SUMMARY) != 0 && strcmp(name, MARKDOWN_RECORDS) != 0)
			rc = add_file(t, own.path[i], lines, a, e);
	}
	result_files_release(&sweeps);
	result_files_release(&own);
	return rc;
}

/* ---- columns ---- */

/* A column's type in pandas: whole numbers stay integers only if none is missing. */
struct shown_column { const char *name; bool is_float, has_any; };

/* Writes the columns that a record has to out. */
static size_t shown_columns(const struct frame *f, enum markdown_kind kind,
			    struct shown_column out[MARKDOWN_COLUMNS_MAX])
{
	size_t n = 0;

	assert(tables[kind].n <= MARKDOWN_COLUMNS_MAX);
	for (size_t c = 0; c < tables[kind].n; c++) {
		const char *name = tables[kind].column[c].name;
		bool is_there = false, is_real = false, has_any = false, is_gap = false;

		for (size_t i = 0; i < f->n; i++) {
			const struct json_value *v = frame_value(f->row[i], str_of(name));

			is_there |= v != NULL;
			is_gap |= !v || v->kind == JSON_NULL;
			has_any |= v && v->kind != JSON_NULL;
			is_real |= v && v->kind == JSON_REAL;
		}
		if (is_there)
			out[n++] = (struct shown_column){ name, is_real || is_gap, has_any };
	}
	return n;
}

static void put_cell(struct json_writer *w, const struct json_value *v,
		     const struct shown_column *c)
{
	if (v && v->kind == JSON_INT && c->is_float)
		json_put_f64(w, (double)v->integer);
	else
		json_put_value(w, v);
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
static const char *cell_text(const struct json_value *v, const struct shown_column *c,
			     struct arena *a)
{
	struct buf text = { 0 };

	if (!v || v->kind == JSON_NULL)
		return c->has_any ? "nan" : "";
	if (strcmp(c->name, "GPU") == 0 && v->kind == JSON_STRING)
		return gpu_text(v->text, a);
	if (v->kind == JSON_REAL || (v->kind == JSON_INT && c->is_float))
		return arena_printf(a, "%g", json_real(v, 0));
	json_python_str(&text, v);
	return arena_take(a, &text).p;
}

/* ---- writing ---- */

static void write_columns(struct json_writer *w, const struct frame *f, enum markdown_kind kind)
{
	struct shown_column column[MARKDOWN_COLUMNS_MAX];
	size_t n = shown_columns(f, kind, column);
	char row[24];

	json_begin_object(w);
	for (size_t c = 0; c < n; c++) {
		json_member_object(w, column[c].name);
		for (size_t i = 0; i < f->n; i++) {
			snprintf(row, sizeof(row), "%zu", i);
			json_key(w, row);
			put_cell(w, frame_value(f->row[i], str_of(column[c].name)), &column[c]);
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
	struct shown_column column[MARKDOWN_COLUMNS_MAX];
	size_t n = shown_columns(f, kind, column);

	for (size_t i = 0; i < f->n; i++) {
		json_begin_object(w);
		for (size_t c = 0; c < n; c++) {
			const struct json_value *v = frame_value(f->row[i], str_of(column[c].name));

			json_key(w, column[c].name);
			if (strcmp(column[c].name, "GPU") == 0 && v && v->kind == JSON_STRING)
				json_put_text(w, gpu_text(v->text, a));
			else
				put_cell(w, v, &column[c]);
		}
		json_end_object(w);
	}
}

static void write_table(const struct frame *f, enum markdown_kind kind, struct buf *out,
			struct arena *a)
{
	struct shown_column column[MARKDOWN_COLUMNS_MAX];
	size_t n = shown_columns(f, kind, column);
	struct grid g;

	if (!f->n)
		return;
	grid_begin(&g, a);
	for (size_t c = 0; c < n; c++)
		grid_add(&g, column[c].name);
	grid_end_heads(&g);
	for (size_t i = 0; i < f->n; i++)
		for (size_t c = 0; c < n; c++)
			grid_add(&g, cell_text(frame_value(f->row[i], str_of(column[c].name)),
					       &column[c], a));
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
	add_platform(out, a);
	buf_add_text(out, "\n## json version of the benchmarking tables\n\nColumns of the tables above, as "
			  "pandas.DataFrame.from_dict takes them; rows have numbers in the order of the "
			  "files.\n\n```json\n");
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
