/* SPDX-License-Identifier: Apache-2.0 */
/* markdown_rows.c - from a result and the commands it was made with to a row of the dashboard. */
#include "report/markdown_rows.h"
#include "results/kind.h"

#include <math.h>
#include <string.h>

#include "base/str.h"

struct column { const char *key, *name; };

static const struct column latency_columns[] = {
	{ "test_name", "Test name" }, { "gpu_type", "GPU" }, { "avg_latency", "Mean latency (ms)" },
	{ "percentiles.50", "Median latency (ms)" }, { "percentiles.99", "P99 latency (ms)" },
};
static const struct column throughput_columns[] = {
	{ "test_name", "Test name" }, { "gpu_type", "GPU" }, { "num_requests", "# of req." },
	{ "total_num_tokens", "Total # of tokens" }, { "elapsed_time", "Elapsed time (s)" },
	{ "requests_per_second", "Tput (req/s)" }, { "tokens_per_second", "Tput (tok/s)" },
};
static const struct column serving_columns[] = {
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
static const struct column startup_columns[] = {
	{ "test_name", "Test name" }, { "gpu_type", "GPU" },
	{ "avg_cold_startup_time", "Mean cold startup (s)" },
	{ "avg_cold_compilation_time", "Mean cold compilation (s)" },
	{ "avg_warm_startup_time", "Mean warm startup (s)" },
	{ "avg_warm_compilation_time", "Mean warm compilation (s)" },
};

#define COLUMNS(a) a, sizeof(a) / sizeof(*a)
static const struct { const struct column *column; size_t n; } tables[MARKDOWN_KINDS] = {
	[MARKDOWN_LATENCY] = { COLUMNS(latency_columns) },
	[MARKDOWN_THROUGHPUT] = { COLUMNS(throughput_columns) },
	[MARKDOWN_SERVING] = { COLUMNS(serving_columns) },
	[MARKDOWN_STARTUP] = { COLUMNS(startup_columns) },
};

const char *markdown_column(enum markdown_kind kind, size_t i)
{
	return i < tables[kind].n ? tables[kind].column[i].name : NULL;
}

enum markdown_kind markdown_kind(const struct json_value *record)
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
 * The value of a flag in a command: "--flag value" or "--flag=value"; true when it stands alone.
 * The last one counts. NULL: it is not there, or the command cannot be read.
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

/* What the script takes from the commands, and where a record of ours has it. */
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

int markdown_add(struct markdown_tables *t, enum markdown_kind kind,
		 const struct json_value *record, const struct json_value *commands,
		 const char *name, struct arena *a, struct err *e)
{
	return frame_add(&t->table[kind], make_row(kind, record, commands, name, a), name, a, e);
}

const struct json_value *markdown_serving_row(const struct json_value *record, const char *name,
					      struct arena *a)
{
	if (markdown_kind(record) != MARKDOWN_SERVING)
		return NULL;
	return make_row(MARKDOWN_SERVING, record, NULL, name, a);
}
