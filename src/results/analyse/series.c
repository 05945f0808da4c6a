/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - see series.h. */
#include "results/analyse/series.h"

#include <math.h>

#include "core/base/codec.h"
#include "host/engine/args.h"

#define SCAN_COLUMNS 16 /* looked at together */
#define NAME_BYTES 96
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* ---- what a column is ---- */

/* Of any group: "mode", "hardware.gpu". */
static const char *const key_column[] = {
	"mode", "gpus", "gpu_type", "profiled", "hardware.gpu", "hardware.gpus", "hardware.device",
	"hardware.gpu.mig_profile", "hardware.cpu.model", "environment.driver",
	"environment.server.kind", "client.workload_hash", "tags.gpu", "tags.gpu_type",
	"tags.device", "tags.tp",
};

/* Settings of servers and of the load that say where, how it is called, and what is printed. */
static const char *const aside_setting[] = {
	"host", "port", "uds", "base_url", "base_urls", "metrics_url", "seed", "shuffle_seed", "name",
	"label", "served_model_name", "model_tag", "api_key", "metadata", "result_dir",
	"result_filename", "request_id_prefix", "save_result", "save_detailed", "append_result",
	"output_json", "record", "dump_workload", "disable_tqdm", "progress", "charts", "live",
	"load_pattern", "percentile_metrics", "metric_percentiles", "dry_run", "strict", "fix",
	"compat", "compare", "ready_check_timeout_sec", "system_pid", "system_gpus", "worker_log",
	"show_log", "verbose", "root_path", "download_dir", "cacert", "client_cert", "client_key",
	"ssl_certfile", "ssl_keyfile", "ssl_ca_certs", "port_file", "keep_alive_ms", "trace", "servers",
	"find_max_rate", "find_max_concurrency", "slo", "precision", "budget", "level_seconds",
	"fail_if", "junit", "summary", "allow_unjudged",
};
static const char *const aside_beginning[] = { "plot_", "timeline_", "sweep_", "steady_state_" };

/* Of the simulator: what its steps cost is the code that is tested. */
static const char *const code_setting[] = {
	"prefill_base_us", "prefill_us_per_token", "decode_base_us", "decode_us_per_seq", "ttft_ms",
	"itl_ms",
};

static bool is_in(struct str name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, list[i]))
			return true;
	return false;
}

static struct str after_group(struct str column, struct str group)
{
	size_t head = group.n + 1 < column.n ? group.n + 1 : column.n;

	return (struct str){ column.p + head, column.n - head };
}

static enum series_role role_of_setting(struct str name)
{
	if (is_in(name, aside_setting, COUNT(aside_setting)))
		return SERIES_ASIDE;
	for (size_t i = 0; i < COUNT(aside_beginning); i++)
		if (str_starts(name, str_of(aside_beginning[i])))
			return SERIES_ASIDE;
	if (str_starts(name, STR("container")) || is_in(name, code_setting, COUNT(code_setting)))
		return SERIES_CIRCUMSTANCE;
	return SERIES_KEY;
}

enum series_role series_role(struct str column)
{
	struct column_name c;

	if (is_in(column, key_column, COUNT(key_column)))
		return SERIES_KEY;
	c = column_name(column);
	if (c.is_outcome || str_is(c.group, "run") || str_is(c.group, "resources") ||
	    str_is(column, "benchmark.model") ||
	    str_is(column, "provenance.engine_commit") || str_is(column, "provenance.session"))
		return SERIES_ASIDE;
	if (str_is(c.group, "environment") || str_is(c.group, "hardware") ||
	    str_is(c.group, "provenance") || str_is(c.group, "tags"))
		return SERIES_CIRCUMSTANCE;
	return role_of_setting(after_group(column, c.group)); /* server, benchmark, or a role */
}

/* ---- values ---- */

/* What `bench serve` does without the option; tests/unit/test_console_series.c holds it to that. */
static const struct { const char *name, *value; } option_default[] = {
	{ "asr_max_audio_len_sec", "inf" }, { "asr_min_audio_len_sec", "0" },
	{ "backend", "openai" }, { "bad_tool_calls", "replace" }, { "balance", "round-robin" },
	{ "blazedit_max_distance", "1" }, { "blazedit_min_distance", "0" }, { "burstiness", "1" },
	{ "connect_timeout", "130" }, { "constraint_form", "auto" },
	{ "custom_output_len", "256" }, { "dataset_name", "random" },
	{ "endpoint", "/v1/completions" }, { "http_version", "1.1" },
	{ "lora_assignment", "random" }, { "metrics_interval", "1" },
	{ "multi_turn_delay_ms", "0" }, { "multi_turn_max_turns", "0" },
	{ "multi_turn_min_turns", "0" }, { "multi_turn_num_turns", "3" },
	{ "multi_turn_prefix_conversation_ratio", "0" },
	{ "multi_turn_prefix_global_ratio", "0" }, { "multi_turn_session_prefix_len", "0" },
	{ "multi_turn_system_len", "0" }, { "num_prompts", "1000" }, { "num_runs", "1" },
	{ "num_warmups", "0" }, { "on_turn_failure", "drop" }, { "per_turn_input_len", "0" },
	{ "prefix_repetition_num_prefixes", "10" }, { "prefix_repetition_output_len", "128" },
	{ "prefix_repetition_prefix_len", "256" }, { "prefix_repetition_suffix_len", "256" },
	{ "probe_request_rate", "0" }, { "profile_duration", "5" }, { "prompt_salt", "none" },
	{ "random_batch_size", "1" }, { "random_cache_hit_fraction", "0" },
	{ "random_cache_ratio", "0" }, { "random_input_len", "1024" },
	{ "random_mm_base_items_per_request", "1" },
	{ "random_mm_bucket_config", "{(256, 256, 1): 0.5, (720, 1280, 1): 0.5, (720, 1280, 16): 0.0}" },
	{ "random_mm_num_mm_items_range_ratio", "0" }, { "random_output_len", "128" },
	{ "random_prefix_len", "0" }, { "random_range_ratio", "0.0" }, { "repeat_count", "1" },
	{ "request_cancellation_delay", "0" }, { "request_cancellation_rate", "0" },
	{ "request_rate", "inf" }, { "request_timeout", "21600" }, { "session_affinity", "url" },
	{ "session_header", "X-Session-ID" }, { "sonnet_input_len", "550" },
	{ "sonnet_output_len", "150" }, { "sonnet_prefix_len", "200" },
	{ "spec_bench_output_len", "256" }, { "speed_bench_dataset_subset", "qualitative" },
	{ "speed_bench_output_len", "4096" }, { "speedup", "1" },
	{ "structured_dataset", "json" }, { "structured_output_len", "128" },
	{ "structured_output_ratio", "1" }, { "system_interval", "1" },
	{ "system_metrics", "off" }, { "threads", "1" }, { "timed_trace_chunk_hash_size", "16" },
	{ "timed_trace_label_hash_ids", "hash_ids" },
	{ "timed_trace_label_input_length", "input_length" },
	{ "timed_trace_label_output_length", "output_length" },
	{ "timed_trace_label_timestamp", "timestamp" }, { "timed_trace_sec_multiplier", "1" },
	{ "timestamps", "kernel" }, { "tokenizer_mode", "auto" }, { "tool_result_words", "32" },
	{ "trace_format", "auto" }, { "trace_message_mode", "history" },
	{ "trace_origin", "first" }, { "trace_output_len", "256" }, { "trace_salt", "fixed" },
	{ "trace_time_unit", "auto" }, { "transport", "auto" }, { "warm_connections", "auto" },
	{ "warmup_pass", "none" },
};

const char *series_option_default(struct str name)
{
	for (size_t i = 0; i < COUNT(option_default); i++)
		if (str_is(name, option_default[i].name))
			return option_default[i].value;
	return NULL;
}

static const char *engine_default(struct str name, struct value version)
{
	const struct engine_arg *arg = engine_arg_find(name);
	char text[NAME_BYTES];
	const char *why;

	if (!arg)
		return NULL;
	snprintf(text, sizeof(text), "%.*s", version.kind == VALUE_TEXT ? (int)version.text.n : 0,
		 version.kind == VALUE_TEXT ? version.text.p : "");
	return engine_arg_initial(arg, engine_version_release(text, &why));
}

/* Whether the text spells the value. */
static bool is_spelled(struct value v, const char *text)
{
	double number;

	if (!text)
		return false;
	if (v.kind == VALUE_NUMBER)
		return str_to_f64(str_of(text), &number) && !(number < v.number) &&
		       !(number > v.number);
	if (v.kind == VALUE_BOOL)
		return str_eq_nocase(str_of(text), v.is_true ? STR("true") : STR("false"));
	return v.kind == VALUE_TEXT && str_is(v.text, text);
}

static bool is_file(struct str name)
{
	return str_ends(name, STR("path")) || str_ends(name, STR("file")) ||
	       str_ends(name, STR("tokenizer")) || str_ends(name, STR("model"));
}

struct value series_value(struct str column, struct value v, struct value version)
{
	const struct value none = { .kind = VALUE_ABSENT };
	struct str group = column, name = column;
	const char *slash;

	if (parts_is_missing(v) || !memchr(column.p, '.', column.n))
		return v.kind == VALUE_BOOL && !v.is_true ? none : v;
	group = str_cut(&name, '.');
	if (v.kind == VALUE_TEXT && v.text.n && v.text.p[0] == '/' && is_file(name)) {
		slash = memrchr(v.text.p, '/', v.text.n);
		v.text = (struct str){ slash + 1, v.text.n - (size_t)(slash + 1 - v.text.p) };
	}
	if (str_is(group, "benchmark"))
		return (v.kind == VALUE_BOOL && !v.is_true) ||
		       is_spelled(v, series_option_default(name)) ? none : v;
	return is_spelled(v, engine_default(name, version)) ? none : v;
}

/* ---- the key of a request ---- */

/* Model, hardware and engine, then servers, then the load. */
static int rank_of(struct str column)
{
	static const char *const first[] = { "mode", "server.model", "hardware.", "gpu", "environment." };
	size_t i;

	for (i = 0; i < COUNT(first); i++)
		if (str_starts(column, str_of(first[i])))
			return (int)i;
	return (int)i + (str_starts(column, STR("benchmark.")) ? 1 : 0);
}

static int by_text(struct str a, struct str b)
{
	size_t n = a.n < b.n ? a.n : b.n;
	int order = n ? memcmp(a.p, b.p, n) : 0;

	return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int by_rank(const void *x, const void *y)
{
	const struct str *a = x, *b = y;
	int order = rank_of(*a) - rank_of(*b);

	return order ? order : by_text(*a, *b);
}

/* A series is called by these, also where all have the same. */
static bool is_told(struct str column)
{
	return str_is(column, "server.model") || str_is(column, "hardware.gpu");
}

/* Columns of the role or below it that can differ at all. */
static struct str *columns_of(const struct analyse_request *r, enum series_role most, size_t *n)
{
	size_t n_all, rows = 0;
	const struct column_info *all = index_columns(r->view, &n_all);
	struct str *out = arena_alloc(r->arena, (n_all + 1) * sizeof(*out));

	*n = 0;
	for (size_t i = 0; i < n_all; i++)
		rows = all[i].present > rows ? all[i].present : rows;
	for (size_t i = 0; i < n_all; i++)
		if ((all[i].distinct > 1 || all[i].present < rows || is_told(all[i].name)) &&
		    series_role(all[i].name) <= most)
			out[(*n)++] = all[i].name;
	if (*n)
		qsort(out, *n, sizeof(*out), by_rank);
	return out;
}

bool series_same_value(struct value a, struct value b)
{
	return parts_is_missing(a) ? parts_is_missing(b) : value_same(a, b);
}

static bool varies(struct str column, const struct value *v, const struct value *version, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!series_same_value(series_value(column, v[0], version[0]),
			      series_value(column, v[i], version[i])))
			return true;
	return false;
}

/* Those of some columns in which the filter's runs differ are added to the key. */
static int scan(const struct analyse_request *r, const struct filter *f, const struct str *column,
		size_t n, struct series_key *out, struct err *e)
{
	struct str looked_at[SCAN_COLUMNS + 1];
	struct arena arena = { 0 };
	struct value *value;
	int64_t *id;
	size_t rows;
	int rc;

	memcpy(looked_at, column, n * sizeof(*column));
	looked_at[n] = STR("environment.server.version");
	rc = index_select(r->view, f, 0, looked_at, n + 1, &arena, &id, &rows, &value, e);
	for (size_t c = 0; rc == 0 && c < n; c++)
		if (is_told(column[c]) ||
		    varies(column[c], value + c * rows, value + n * rows, rows))
			out->column[out->n++] = column[c];
	arena_release(&arena);
	return rc;
}

int series_key(const struct analyse_request *r, struct series_key *out, struct err *e)
{
	const struct json_value *series = json_get(r->body, "series");
	struct filter *f;
	struct str *column;
	size_t n;

	*out = (struct series_key){ .is_chosen = series && series->kind != JSON_NULL };
	if (out->is_chosen)
		return parts_columns(r, "series", &out->column, &out->n, e);
	if (filter_read(json_get(r->body, "filter"), "/filter", r->arena, &f, e) < 0)
		return -1;
	column = columns_of(r, SERIES_KEY, &n);
	out->column = arena_alloc(r->arena, (n + 1) * sizeof(*out->column));
	for (size_t i = 0; i < n; i += SCAN_COLUMNS)
		if (scan(r, f, column + i, n - i < SCAN_COLUMNS ? n - i : SCAN_COLUMNS, out, e) < 0)
			return -1;
	return 0;
}

/* ---- ids ---- */

static int by_column(const void *x, const void *y)
{
	const struct cell *a = x, *b = y;

	return by_text(a->column, b->column);
}

/* All of the key's values in the order of their names, as 16 digits. */
static char *id_of(const struct analyse_request *r, int64_t run)
{
	struct value version = { .kind = VALUE_ABSENT };
	struct buf text = { 0 };
	struct row row;
	unsigned flags;
	char name[DIGEST_HEX];

	if (!index_row(r->view, run, r->arena, &row, &flags))
		return arena_printf(r->arena, "run-%lld", (long long)run);
	for (size_t i = 0; i < row.n; i++)
		if (str_is(row.cell[i].column, "environment.server.version"))
			version = row.cell[i].value;
	qsort(row.cell, row.n, sizeof(*row.cell), by_column);
	for (size_t i = 0; i < row.n; i++) {
		const struct cell *c = &row.cell[i];
		struct value v = series_value(c->column, c->value, version);

		if (series_role(c->column) != SERIES_KEY || parts_is_missing(v))
			continue;
		buf_add_str(&text, c->column);
		buf_printf(&text, "=%s\n", parts_cell_text(r->arena, v));
	}
	digest_hex(DIGEST_SHA256, buf_str(&text), name);
	buf_release(&text);
	return arena_printf(r->arena, "series-%.16s", name);
}

/* ---- series ---- */

void series_make(const struct analyse_request *r, const struct series_key *key,
		 const struct rows *rows, size_t version, const bool *keep, struct keyed *out)
{
	size_t n = rows->n;

	out->rows = *rows;
	out->rows.value = arena_alloc(r->arena, (key->n * n + 1) * sizeof(*rows->value));
	for (size_t k = 0; k < key->n; k++)
		for (size_t i = 0; i < n; i++) {
			struct value v = rows->value[k * n + i];

			out->rows.value[k * n + i] = key->is_chosen ? v :
				series_value(key->column[k], v, rows->value[version * n + i]);
		}
	parts_series(r->arena, &out->rows, key->column, key->n, keep, &out->list);
	out->list.rows = rows;
	parts_name_series(r->arena, &out->list);
	for (size_t i = 0; i < out->list.shown && !key->is_chosen; i++)
		out->list.series[i].id = id_of(r, rows->id[out->list.series[i].row]);
}

bool series_is_same(const struct keyed *k, size_t row, size_t other)
{
	const struct rows *rows = &k->rows;

	for (size_t i = 0; i < k->list.n_keys; i++)
		if (!series_same_value(rows->value[i * rows->n + row],
				       rows->value[i * rows->n + other]))
			return false;
	return true;
}

/* ---- in words ---- */

const char *series_text(struct arena *a, struct str column, struct value v, struct value version)
{
	struct str name = column, group = str_cut(&name, '.');
	const char *usual;

	if (!parts_is_missing(v))
		return parts_cell_text(a, v);
	usual = str_is(group, "benchmark") ? series_option_default(name)
					   : engine_default(name, version);
	return usual ? arena_printf(a, "%s (default)", usual) : "none";
}

/* ---- what changed beside the metric ---- */

/* The one value of a column in all rows; false: there are several. */
static bool only_value(const struct page_row *row, size_t n, size_t column, struct value *out)
{
	*out = n ? row[0].value[column] : (struct value){ .kind = VALUE_ABSENT };
	for (size_t i = 1; i < n; i++)
		if (!series_same_value(row[i].value[column], *out))
			return false;
	return n > 0;
}

/* A column that only newer results have says nothing, but a variable that was set does. */
static bool may_be_missing(struct str column)
{
	return str_starts(column, STR("environment.variables.")) ||
	       str_starts(column, STR("tags."));
}

struct series_change *series_changes(const struct analyse_request *r, const int64_t *before,
				     size_t n_before, const int64_t *after, size_t n_after,
				     size_t *n)
{
	struct page_row *row[2];
	size_t n_columns, rows[2];
	struct str *column = columns_of(r, SERIES_CIRCUMSTANCE, &n_columns);
	struct series_change *out = arena_alloc(r->arena, (n_columns + 1) * sizeof(*out));

	row[0] = arena_alloc(r->arena, (n_before + 1) * sizeof(**row));
	row[1] = arena_alloc(r->arena, (n_after + 1) * sizeof(**row));
	rows[0] = index_rows(r->view, before, n_before, column, n_columns, r->arena, row[0]);
	rows[1] = index_rows(r->view, after, n_after, column, n_columns, r->arena, row[1]);
	*n = 0;
	for (size_t c = 0; c < n_columns; c++) {
		struct series_change *x = &out[*n];

		x->column = column[c];
		if (only_value(row[0], rows[0], c, &x->before) &&
		    only_value(row[1], rows[1], c, &x->after) &&
		    !series_same_value(x->before, x->after) &&
		    (may_be_missing(column[c]) ||
		     (!parts_is_missing(x->before) && !parts_is_missing(x->after))))
			(*n)++;
	}
	return out;
}
