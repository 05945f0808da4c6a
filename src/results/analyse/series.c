/* SPDX-License-Identifier: Apache-2.0 */
/* series.c - series of runs and their points; see analyse_internal.h. */
#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "core/base/codec.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/stats/edivisive.h"
#include "host/engine/args.h"
#include "results/analyse/analyse_internal.h"

#define SCAN_COLUMNS 16 /* read together */
#define NAME_BYTES 96
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* ---- what a column is ---- */

/* Of any group: "mode", "hardware.gpu". */
static const char *const key_column[] = {
	"mode", "gpus", "gpu_type", "profiled", "hardware.gpu", "hardware.gpus", "hardware.device",
	"hardware.gpu.mig_profile", "hardware.cpu.model", "environment.driver",
	"environment.server.kind", "client.workload_hash", "measured_lengths", "tags.gpu",
	"tags.gpu_model", "tags.gpu_type", "tags.device", "tags.num_gpus", "tags.gpu_count",
	"tags.tp", "tags.pp", "tags.dp", "tags.isl", "tags.osl",
};

/* Settings for locations, names and output of servers and of the load. */
static const char *const aside_setting[] = {
	"host", "port", "uds", "base_url", "base_urls", "metrics_url", "seed", "shuffle_seed", "name",
	"label", "served_model_name", "model_tag", "api_key", "metadata", "result_dir",
	"result_filename", "request_id_prefix", "save_result", "save_detailed", "append_result",
	"output_json", "report", "quiet", "record", "dump_workload", "disable_tqdm", "progress",
	"charts", "live",
	"dashboard", "load_pattern", "percentile_metrics", "metric_percentiles", "dry_run", "strict", "fix",
	"compat", "compare", "ready_check_timeout_sec", "system_pid", "system_gpus", "worker_log",
	"show_log", "verbose", "root_path", "download_dir", "cacert", "client_cert", "client_key",
	"ssl_certfile", "ssl_keyfile", "ssl_ca_certs", "port_file", "keep_alive_ms", "trace", "servers",
	"find_max_rate", "find_max_concurrency", "slo", "precision", "budget", "level_seconds",
	"fail_if", "junit", "summary", "allow_unjudged",
};
static const char *const aside_beginning[] = { "plot_", "timeline_", "sweep_", "steady_state_" };

/* Simulator settings: the costs of its steps represent the code under test. */
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
	    str_is(c.group, "failures") ||
	    str_is(column, "benchmark.model") ||
	    str_is(column, "provenance.engine_commit") || str_is(column, "provenance.session"))
		return SERIES_ASIDE;
	if (str_is(c.group, "environment") || str_is(c.group, "hardware") ||
	    str_is(c.group, "provenance") || str_is(c.group, "tags"))
		return SERIES_CIRCUMSTANCE;
	return role_of_setting(after_group(column, c.group)); /* server, benchmark, or a role */
}

/* ---- values ---- */

/* Defaults of `bench serve`; tests/unit/test_console_series.c checks them. */
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
	{ "timestamps", "auto" }, { "tokenizer_mode", "auto" }, { "tool_result_words", "32" },
	{ "trace_format", "auto" }, { "trace_message_mode", "history" },
	{ "trace_origin", "first" }, { "trace_output_len", "256" }, { "trace_salt", "fixed" },
	{ "trace_time_unit", "auto" }, { "transport", "auto" }, { "warm_connections", "auto" },
	{ "warmup_pass", "none" },
};

static const char *option_default_of(struct str name)
{
	for (size_t i = 0; i < COUNT(option_default); i++)
		if (str_is(name, option_default[i].name))
			return option_default[i].value;
	return NULL;
}

/*
 * The default of a server of that version. NULL: unknown, as for every option when no server has
 * reported its version.
 */
static const char *engine_default(struct str name, struct value version)
{
	const struct engine_arg *arg = engine_arg_find(name);
	char text[NAME_BYTES];
	const char *why;

	if (!arg || version.kind != VALUE_TEXT)
		return NULL;
	snprintf(text, sizeof(text), "%.*s", (int)version.text.n, version.text.p);
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

	if (value_is_missing(v) || !memchr(column.p, '.', column.n))
		return v.kind == VALUE_BOOL && !v.is_true ? none : v;
	group = str_cut(&name, '.');
	if (v.kind == VALUE_TEXT && v.text.n && v.text.p[0] == '/' && is_file(name)) {
		slash = memrchr(v.text.p, '/', v.text.n);
		v.text = (struct str){ slash + 1, v.text.n - (size_t)(slash + 1 - v.text.p) };
	}
	if (str_is(group, "benchmark"))
		return (v.kind == VALUE_BOOL && !v.is_true) ||
		       is_spelled(v, option_default_of(name)) ? none : v;
	return is_spelled(v, engine_default(name, version)) ? none : v;
}

bool analyse_is_default(struct str column, struct value v)
{
	const struct value none = { .kind = VALUE_ABSENT };

	assert(column.n);
	return value_is_missing(series_value(column, v, none));
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

static int by_rank(const void *x, const void *y)
{
	const struct str *a = x, *b = y;
	int order = rank_of(*a) - rank_of(*b);

	return order ? order : text_compare(*a, *b);
}

/* A series is called by these, also where all have the same. */
static bool is_reported(struct str column)
{
	return str_is(column, "server.model") || str_is(column, "hardware.gpu");
}

struct str *series_columns(const struct analyse_request *r, enum series_role most, size_t *n)
{
	size_t n_all, rows = 0;
	const struct column_info *all = index_columns(r->view, &n_all);
	struct str *out = arena_alloc(r->arena, (n_all + 1) * sizeof(*out));

	*n = 0;
	for (size_t i = 0; i < n_all; i++)
		rows = all[i].present > rows ? all[i].present : rows;
	for (size_t i = 0; i < n_all; i++)
		if ((all[i].distinct > 1 || all[i].present < rows || is_reported(all[i].name)) &&
		    series_role(all[i].name) <= most)
			out[(*n)++] = all[i].name;
	if (*n)
		qsort(out, *n, sizeof(*out), by_rank);
	return out;
}

bool series_same_value(struct value a, struct value b)
{
	return value_is_missing(a) ? value_is_missing(b) : value_same(a, b);
}

static bool varies(struct str column, const struct value *v, const struct value *version, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (!series_same_value(series_value(column, v[0], version[0]),
			      series_value(column, v[i], version[i])))
			return true;
	return false;
}

/* Adds those of some columns in which the filter's runs differ to the key. */
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
		if (is_reported(column[c]) ||
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
	column = series_columns(r, SERIES_KEY, &n);
	out->column = arena_alloc(r->arena, (n + 1) * sizeof(*out->column));
	for (size_t i = 0; i < n; i += SCAN_COLUMNS)
		if (scan(r, f, column + i, n - i < SCAN_COLUMNS ? n - i : SCAN_COLUMNS, out, e) < 0)
			return -1;
	return 0;
}

/* ---- ids ---- */

static int by_column(const void *x, const void *y)
{
	return text_compare(((const struct cell *)x)->column, ((const struct cell *)y)->column);
}

/* All of the key's values in the order of their names, as 16 digits. */
static char *id_of(const struct analyse_request *r, int64_t run)
{
	struct value version;
	struct buf text = { 0 };
	struct row row;
	unsigned flags;
	char name[DIGEST_HEX];

	if (!index_row(r->view, run, r->arena, &row, &flags))
		return arena_printf(r->arena, "run-%lld", (long long)run);
	version = row_value(&row, STR("environment.server.version"));
	qsort(row.cell, row.n, sizeof(*row.cell), by_column);
	for (size_t i = 0; i < row.n; i++) {
		const struct cell *c = &row.cell[i];
		struct value v = series_value(c->column, c->value, version);

		if (series_role(c->column) != SERIES_KEY || value_is_missing(v))
			continue;
		buf_add_str(&text, c->column);
		buf_printf(&text, "=%s\n", parts_cell_text(r->arena, v));
	}
	digest_hex(DIGEST_SHA256, buf_str(&text), name);
	buf_release(&text);
	return arena_printf(r->arena, "series-%.16s", name);
}

/* ---- series ---- */

/* Values of one column that were looked up: a lookup walks through all arguments of an engine. */
#define SEEN 16
struct seen { struct value v, version, key; bool is_used; };

static struct value seen_value(struct seen *seen, struct str column, struct value v,
			       struct value version)
{
	uint64_t bits = v.kind == VALUE_TEXT ? v.text.n : v.kind == VALUE_BOOL ? v.is_true : 0;
	struct seen *s;

	if (v.kind == VALUE_NUMBER)
		memcpy(&bits, &v.number, sizeof(bits));
	s = &seen[(bits ^ (uint64_t)v.kind) * 0x9e3779b97f4a7c15u >> 60];
	if (!s->is_used || !value_same(s->v, v) || !value_same(s->version, version))
		*s = (struct seen){ v, version, series_value(column, v, version), true };
	return s->key;
}

void series_make(const struct analyse_request *r, const struct series_key *key,
		 const struct rows *rows, size_t version, const bool *keep, struct keyed *out)
{
	size_t n = rows->n;

	out->rows = *rows;
	out->rows.value = arena_alloc(r->arena, (key->n * n + 1) * sizeof(*rows->value));
	for (size_t k = 0; k < key->n; k++) {
		struct seen seen[SEEN] = { 0 };

		for (size_t i = 0; i < n; i++) {
			struct value v = rows->value[k * n + i];

			out->rows.value[k * n + i] = key->is_chosen ? v :
				seen_value(seen, key->column[k], v, rows->value[version * n + i]);
		}
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

	if (!value_is_missing(v))
		return parts_cell_text(a, v);
	usual = str_is(group, "benchmark") ? option_default_of(name)
					   : engine_default(name, version);
	return usual ? arena_printf(a, "%s (default)", usual) : "not set";
}

struct value series_given(struct str column, struct value v, struct value version)
{
	struct str name = column, group = str_cut(&name, '.');
	const char *usual;
	double number;

	if (!value_is_missing(v) || str_is(group, "benchmark"))
		return v;
	usual = engine_default(name, version);
	if (!usual)
		return v;
	if (str_to_f64(str_of(usual), &number))
		return (struct value){ .kind = VALUE_NUMBER, .number = number };
	if (str_is(str_of(usual), "true") || str_is(str_of(usual), "false"))
		return (struct value){ .kind = VALUE_BOOL, .is_true = *usual == 't' };
	return (struct value){ .kind = VALUE_TEXT, .text = str_of(usual) };
}

/* ---- what changed in addition to the metric ---- */

/* The one value of a column in all rows; false: there are several. */
static bool only_value(const struct page_row *row, size_t n, size_t column, struct value *out)
{
	*out = n ? row[0].value[column] : (struct value){ .kind = VALUE_ABSENT };
	for (size_t i = 1; i < n; i++)
		if (!series_same_value(row[i].value[column], *out))
			return false;
	return n > 0;
}

/* A column may be missing in older results, but not a variable that was set. */
static bool may_be_missing(struct str column)
{
	return str_starts(column, STR("environment.variables.")) ||
	       str_starts(column, STR("tags."));
}

/* The values next to the step, if no row before it has a value of one after it. */
static bool is_apart(struct page_row *const row[2], const size_t n[2], size_t column,
		     struct series_change *x)
{
	for (size_t i = 0; i < n[0]; i++)
		for (size_t k = 0; k < n[1]; k++)
			if (series_same_value(row[0][i].value[column], row[1][k].value[column]))
				return false;
	if (!n[0] || !n[1])
		return false;
	x->before = row[0][0].value[column];
	x->after = row[1][0].value[column];
	return true;
}

/* A tag often names what is tested, such as a build, and is then another one at each point. */
static bool is_changed(struct page_row *const row[2], const size_t n[2], size_t column,
		       struct series_change *x)
{
	return is_apart(row, n, column, x) &&
	       (str_starts(x->column, STR("tags.")) ||
		(only_value(row[0], n[0], column, &x->before) &&
		 only_value(row[1], n[1], column, &x->after)));
}

struct series_change *series_changes(const struct analyse_request *r, const int64_t *before,
				     size_t n_before, const int64_t *after, size_t n_after,
				     size_t *n)
{
	struct page_row *row[2];
	size_t n_columns, rows[2];
	struct str *column = series_columns(r, SERIES_CIRCUMSTANCE, &n_columns);
	struct series_change *out = arena_alloc(r->arena, (n_columns + 1) * sizeof(*out));

	row[0] = arena_alloc(r->arena, (n_before + 1) * sizeof(**row));
	row[1] = arena_alloc(r->arena, (n_after + 1) * sizeof(**row));
	rows[0] = index_rows(r->view, before, n_before, column, n_columns, r->arena, row[0]);
	rows[1] = index_rows(r->view, after, n_after, column, n_columns, r->arena, row[1]);
	*n = 0;
	for (size_t c = 0; c < n_columns; c++) {
		struct series_change *x = &out[*n];

		x->column = column[c];
		if (is_changed(row, rows, c, x) &&
		    (may_be_missing(column[c]) ||
		     (!value_is_missing(x->before) && !value_is_missing(x->after))))
			(*n)++;
	}
	return out;
}

#define DAY_S 86400.0
#define ENOUGH (2 * EDIVISIVE_SEGMENT_MIN) /* points, for a change among them */

const struct str points_columns[POINT_COLUMNS] = {
	[POINT_TIME] = { "timestamp", 9 },
	[POINT_COMMIT] = { "provenance.engine_commit", 24 },
	[POINT_VERSION] = { "environment.server.version", 26 },
	[POINT_SESSION] = { "provenance.session", 18 },
};

static const struct { const char *name, *order; } axes[] = {
	[AXIS_COMMIT] = { "commit", "A point is a commit of the engine (provenance.engine_commit); "
			  "commits are in the order of their first runs." },
	[AXIS_VERSION] = { "version", "A point is a version of the engine "
			   "(environment.server.version), in the order of version numbers." },
	[AXIS_DAY] = { "day", "A point is a day (UTC), in the order of time." },
	[AXIS_TIME] = { "time", "A point is a run, in the order of time." },
};

const char *points_axis_name(enum axis axis)
{
	return axes[axis].name;
}

const char *points_order(enum axis axis)
{
	return axes[axis].order;
}

int points_axis(const struct analyse_request *r, enum axis *out, struct err *e)
{
	const struct json_value *v = json_get(r->body, "axis");

	*out = AXIS_AUTO;
	if (!v || v->kind == JSON_NULL)
		return 0;
	for (size_t i = 0; v->kind == JSON_STRING && i < AXIS_AUTO; i++)
		if (str_is(v->text, axes[i].name)) {
			*out = (enum axis)i;
			return 0;
		}
	return parts_refuse(e, "/axis", "expected commit, version, day or time");
}

static struct value value_at(const struct rows *rows, size_t column, size_t row)
{
	return rows->value[column * rows->n + row];
}

static struct str text_at(const struct rows *rows, const struct point_columns *c, size_t column,
			  size_t row)
{
	struct value v = value_at(rows, c->first + column, row);

	return v.kind == VALUE_TEXT ? v.text : (struct str){ 0 };
}

static double time_of(const struct rows *rows, const struct point_columns *c, size_t row)
{
	double t;

	return parts_is_number(value_at(rows, c->first + POINT_TIME, row), &t) ? t : NAN;
}

/* The name of a point on a named axis. */
static struct str name_of(const struct rows *rows, const struct point_columns *c, size_t row)
{
	return text_at(rows, c, c->axis == AXIS_COMMIT ? POINT_COMMIT : POINT_VERSION, row);
}

static bool is_named(enum axis axis)
{
	return axis == AXIS_COMMIT || axis == AXIS_VERSION;
}

bool points_has(const struct rows *rows, const struct point_columns *c, size_t row)
{
	double metric;

	return parts_is_number(value_at(rows, c->metric, row), &metric) &&
	       !isnan(time_of(rows, c, row)) && (!is_named(c->axis) || name_of(rows, c, row).n);
}

/* ---- the axis ---- */

struct axis_use points_on(const struct rows *rows, const bool *keep, struct arena *a,
			  struct point_columns c, enum axis axis)
{
	struct map seen = { 0 };
	struct axis_use out = { 0 };

	c.axis = axis;
	for (size_t i = 0; i < rows->n; i++) {
		struct str name;
		uint64_t at;

		if (!keep[i] || !points_has(rows, &c, i))
			continue;
		name = is_named(c.axis) ? name_of(rows, &c, i) :
		       str_of(arena_printf(a, "%.0f", floor(time_of(rows, &c, i) / DAY_S)));
		out.runs++;
		if (!map_get(&seen, name, &at))
			map_put(&seen, name, 0);
	}
	out.places = seen.count;
	map_release(&seen);
	return out;
}

void points_choose(const struct rows *rows, const bool *keep, struct arena *a,
		   struct point_columns *c)
{
	struct axis_use of[AXIS_TIME];

	if (c->axis != AXIS_AUTO)
		return;
	for (enum axis axis = AXIS_COMMIT; axis < AXIS_TIME; axis++)
		of[axis] = points_on(rows, keep, a, *c, axis);
	for (enum axis axis = AXIS_COMMIT; axis <= AXIS_VERSION; axis++) {
		bool is_rare = axis == AXIS_VERSION && of[axis].places * POINT_DAYS_A_VERSION <
						       of[AXIS_DAY].places;
		bool is_usual = of[axis].places > 1 && 2 * of[axis].runs > of[AXIS_DAY].runs;

		if (!is_rare && (is_usual || of[axis].places >= ENOUGH)) {
			c->axis = axis;
			return;
		}
	}
	c->axis = of[AXIS_DAY].places >= ENOUGH ? AXIS_DAY : AXIS_TIME;
}

/* ---- orders ---- */

/* The number that a begins with is taken off; -1: it begins with none. */
static double cut_number(struct str *a)
{
	double n = -1;

	for (; a->n && isdigit((unsigned char)*a->p); a->p++, a->n--)
		n = 10 * fmax(n, 0) + (*a->p - '0');
	return n;
}

/* Order of suffixes: "rc1", ".dev3" come before the release, "+cu129", ".post1" after it. */
static int place_of_rest(struct str rest)
{
	if (!rest.n)
		return 0;
	if (*rest.p == '.' && rest.n > 1 && isalpha((unsigned char)rest.p[1]))
		rest = (struct str){ rest.p + 1, rest.n - 1 };
	return isalpha((unsigned char)*rest.p) && !str_starts(rest, STR("post")) ? -1 : 1;
}

int versions_order(struct str a, struct str b)
{
	struct str whole[2] = { a, b };

	while (a.n && b.n) {
		double n = cut_number(&a), m = cut_number(&b);

		if (n >= 0 && m >= 0 && (n < m || n > m))
			return n < m ? -1 : 1;
		if (!a.n || !b.n || *a.p != *b.p || (n < 0) != (m < 0))
			break;
		a = (struct str){ a.p + 1, a.n - 1 };
		b = (struct str){ b.p + 1, b.n - 1 };
	}
	if (place_of_rest(a) != place_of_rest(b))
		return place_of_rest(a) - place_of_rest(b);
	return text_compare(whole[0], whole[1]);
}

/* A run on its way into a point. */
struct placed { struct str name, session; double at_s, bin; size_t row; };

static int by_bin(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;
	int order = (a->bin > b->bin) - (a->bin < b->bin);

	order = order ? order : text_compare(a->name, b->name);
	order = order ? order : (a->at_s > b->at_s) - (a->at_s < b->at_s);
	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static int by_session(const void *x, const void *y)
{
	const struct placed *a = x, *b = y;
	int order = text_compare(a->session, b->session);

	return order ? order : (a->row > b->row) - (a->row < b->row);
}

static int by_time(const void *x, const void *y)
{
	const struct point *a = x, *b = y;
	int order = (a->at_s > b->at_s) - (a->at_s < b->at_s);

	return order ? order : text_compare(a->commit, b->commit);
}

static int by_version(const void *x, const void *y)
{
	const struct point *a = x, *b = y;

	return versions_order(a->version, b->version);
}

/* ---- points ---- */

static bool is_same_point(const struct placed *a, const struct placed *b)
{
	return !(a->bin > b->bin) && !(a->bin < b->bin) && str_eq(a->name, b->name);
}

/* The mean of the sessions' means; run is sorted by session. */
static double value_of(const struct rows *rows, size_t metric, const struct placed *run,
		       struct point *p)
{
	bool is_log = p->low > 0;
	double sum = 0;

	for (size_t i = 0, to; i < p->n; i = to) {
		double of_session = 0;

		for (to = i; to < p->n && (to == i || (run[i].session.n &&
			     str_eq(run[i].session, run[to].session))); to++) {
			double x = value_at(rows, metric, run[to].row).number;

			of_session += is_log ? log(x) : x;
		}
		sum += of_session / (double)(to - i);
		p->sessions++;
	}
	sum /= (double)p->sessions;
	return is_log ? exp(sum) : sum;
}

static void fill_point(const struct rows *rows, const struct point_columns *c, struct placed *run,
		       struct point *p)
{
	p->at_s = run[0].at_s;
	p->low = INFINITY;
	p->high = -INFINITY;
	for (size_t i = 0; i < p->n; i++) {
		double x = value_at(rows, c->metric, run[i].row).number;

		p->member[i] = run[i].row;
		p->at_s = fmin(p->at_s, run[i].at_s);
		p->low = fmin(p->low, x);
		p->high = fmax(p->high, x);
		if (!p->commit.n)
			p->commit = text_at(rows, c, POINT_COMMIT, run[i].row);
		if (!p->version.n)
			p->version = text_at(rows, c, POINT_VERSION, run[i].row);
	}
	qsort(run, p->n, sizeof(*run), by_session);
	p->value = value_of(rows, c->metric, run, p);
}

struct point *points_of(struct arena *a, const struct rows *rows, const struct point_columns *c,
			const struct series *s, size_t *n)
{
	struct placed *run = arena_alloc(a, (s->n + 1) * sizeof(*run));
	struct point *out;

	assert(c->axis != AXIS_AUTO);
	for (size_t i = 0; i < s->n; i++) {
		size_t row = s->member[i];
		double t = time_of(rows, c, row);

		run[i] = (struct placed){ .at_s = t, .row = row,
					  .session = text_at(rows, c, POINT_SESSION, row) };
		if (is_named(c->axis))
			run[i].name = name_of(rows, c, row);
		else
			run[i].bin = c->axis == AXIS_DAY ? floor(t / DAY_S) : t;
	}
	if (s->n)
		qsort(run, s->n, sizeof(*run), by_bin);
	*n = 0;
	for (size_t i = 0; i < s->n; i++)
		*n += !i || !is_same_point(&run[i - 1], &run[i]);
	out = arena_alloc(a, (*n + 1) * sizeof(*out));
	*n = 0;
	for (size_t i = 0, to; i < s->n; i = to) {
		struct point *p = &out[(*n)++];

		for (to = i + 1; to < s->n && is_same_point(&run[i], &run[to]);)
			to++;
		p->n = to - i;
		p->member = arena_alloc(a, p->n * sizeof(*p->member));
		fill_point(rows, c, run + i, p);
	}
	if (*n)
		qsort(out, *n, sizeof(*out), c->axis == AXIS_VERSION ? by_version : by_time);
	return out;
}

size_t points_place(const struct rows *rows, const struct point_columns *c, size_t row,
		    const struct point *p, size_t n)
{
	double at_s = time_of(rows, c, row);
	size_t place = SIZE_MAX;

	for (size_t i = 0; i < n; i++) {
		struct str name = c->axis == AXIS_COMMIT ? p[i].commit : p[i].version;

		if (is_named(c->axis) && name.n && str_eq(name_of(rows, c, row), name))
			return i;
		if (p[i].at_s <= at_s && (place == SIZE_MAX || p[place].at_s <= p[i].at_s))
			place = i;
	}
	return place;
}

#define PLACE_BYTES_MAX 40

/* ---- places ---- */

static const char *time_text(struct arena *a, double at_s, const char *form)
{
	time_t t = (time_t)at_s;
	char text[64];
	struct tm tm;

	if (!(fabs(at_s) < 1e11) || !gmtime_r(&t, &tm) || !strftime(text, sizeof(text), form, &tm))
		return "an unknown time";
	return arena_text(a, str_of(text));
}

const char *step_place(struct arena *a, enum axis axis, const struct point *p)
{
	if (axis == AXIS_COMMIT)
		return arena_printf(a, "commit %.*s", (int)p->commit.n, p->commit.p);
	if (axis == AXIS_VERSION)
		return arena_printf(a, "version %.*s", (int)p->version.n, p->version.p);
	return time_text(a, p->at_s, axis == AXIS_DAY ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%SZ");
}

/* ---- what else ---- */

void step_put_also(struct json_writer *w, const struct series_change *also, size_t n)
{
	json_member_array(w, "also");
	for (size_t i = 0; i < n; i++) {
		json_begin_object(w);
		json_member_str(w, "column", also[i].column);
		parts_put_value(w, "before", also[i].before);
		parts_put_value(w, "after", also[i].after);
		json_end_object(w);
	}
	json_end_array(w);
}

static void add_pair(struct buf *b, struct str name, const char *before, const char *after)
{
	buf_printf(b, "%s%.*s %s -> %s", b->len ? ", " : "", (int)name.n, name.p, before, after);
}

const char *step_text(struct arena *a, const struct step *s)
{
	struct str before = s->before->commit, after = s->after->commit;
	double change = s->value[1] / s->value[0] - 1;
	const char *unit = column_unit(s->metric), *text;
	struct buf what = { 0 };

	assert(s->before && s->after);
	for (size_t i = 0; i < s->n_also; i++)
		add_pair(&what, s->also[i].column, parts_cell_text(a, s->also[i].before),
			 parts_cell_text(a, s->also[i].after));
	if (before.n && after.n && !str_eq(before, after))
		add_pair(&what, STR("commit"), arena_text(a, before), arena_text(a, after));
	text = arena_printf(a, "%.*s %s by %s, from %.4g to %.4g%s%s, at %s; changed there: %s",
			    (int)s->metric.n, s->metric.p,
			    s->value[1] > s->value[0] ? "rose" : "fell",
			    isfinite(change) ? arena_printf(a, "%.3g %%", 100 * fabs(change))
					     : arena_printf(a, "%.4g", fabs(s->value[1] - s->value[0])),
			    s->value[0], s->value[1], *unit ? " " : "", unit,
			    step_place(a, s->axis, s->after),
			    what.len ? arena_text(a, buf_str(&what)) : "nothing that results record");
	buf_release(&what);
	return text;
}

/* ---- the command ---- */

/* Whether `bench ab` can judge by it. */
static bool is_ab_metric(struct str metric)
{
	static const char *const time[] = { "ttft_ms", "tpot_ms", "itl_ms", "e2el_ms" };
	struct str rest = metric, word = str_cut(&rest, '_');

	if (str_is(metric, "output_throughput") || str_is(metric, "request_throughput"))
		return true;
	if (!str_is(word, "mean") && !str_is(word, "median") &&
	    !(word.n > 1 && word.p[0] == 'p' && isdigit((unsigned char)word.p[1])))
		return false;
	for (size_t i = 0; i < sizeof(time) / sizeof(*time); i++)
		if (str_is(rest, time[i]))
			return true;
	return false;
}

/* A place for the URL of a server: "URL_OF_c000007". */
static void add_side(struct buf *line, const char *place)
{
	char name[PLACE_BYTES_MAX + 1];
	const char *from = strchr(place, ' ');

	snprintf(name, sizeof(name), "%s", from ? from + 1 : place);
	for (char *p = name; *p; p++)
		*p = isalnum((unsigned char)*p) || strchr("._-", *p) ? *p : '_';
	buf_printf(line, " --base-url URL_OF_%s", name);
}

static void add_option(struct buf *line, struct arena *a, struct str name, struct value v)
{
	buf_add_text(line, " --");
	for (size_t i = 0; i < name.n; i++)
		buf_add_char(line, name.p[i] == '_' ? '-' : name.p[i]);
	if (v.kind == VALUE_BOOL)
		return;
	buf_add_char(line, ' ');
	words_quote(line, str_of(parts_cell_text(a, v)));
}

/* Options of the load that are not their defaults. */
static void add_load(struct buf *line, struct arena *a, const struct row *row)
{
	static const struct str head = { "benchmark.", 10 };
	const struct value none = { .kind = VALUE_ABSENT };

	for (size_t i = 0; i < row->n; i++) {
		const struct cell *c = &row->cell[i];
		struct str name = { c->column.p + head.n, c->column.n - head.n };

		if (str_is(c->column, "server.model"))
			add_option(line, a, STR("model"), c->value);
		if (!str_starts(c->column, head) || memchr(name.p, '.', name.n) ||
		    str_is(name, "mode") || str_is(name, "header") || series_role(c->column) != SERIES_KEY ||
		    value_is_missing(series_value(c->column, c->value, none)))
			continue;
		add_option(line, a, name, c->value);
	}
}

/* The mean lengths of a run that does not name its dataset and lengths, such as those of vLLM. */
static void add_measured_lengths(struct buf *line, const struct row *row)
{
	static const struct { const char *total, *option; } rows[] = {
		{ "total_input_tokens", "input" }, { "total_output_tokens", "output" },
	};
	struct value n = row_value(row, STR("completed"));

	if (row_value(row, STR("measured_lengths")).kind != VALUE_TEXT || n.kind != VALUE_NUMBER)
		return;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct value total = row_value(row, str_of(rows[i].total));

		if (total.kind == VALUE_NUMBER && total.number > 0)
			buf_printf(line, " --random-%s-len %.0f", rows[i].option,
				   fmax(1, round(total.number / n.number)));
	}
}

static bool is_serve(const struct row *row)
{
	return value_is_text(row_value(row, STR("mode")), "serve");
}

const char *step_command(const struct analyse_request *r, const struct step *s, int64_t run)
{
	struct buf line = { 0 };
	const char *text;
	struct row row;
	unsigned flags;

	if (!index_row(r->view, run, r->arena, &row, &flags) || !is_serve(&row))
		return NULL;
	buf_add_text(&line, "profllm bench ab");
	add_side(&line, step_place(r->arena, s->axis, s->before));
	add_side(&line, step_place(r->arena, s->axis, s->after));
	if (is_ab_metric(s->metric))
		buf_printf(&line, " --metric %.*s", (int)s->metric.n, s->metric.p);
	add_load(&line, r->arena, &row);
	add_measured_lengths(&line, &row);
	text = arena_text(r->arena, buf_str(&line));
	buf_release(&line);
	return text;
}
