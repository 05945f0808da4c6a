/* SPDX-License-Identifier: Apache-2.0 */
/* store/kinds.c - see kinds.h: cells, code common to the kinds, and the table of kinds. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "host/engine/args.h"
#include "results/index/names.h"
#include "results/store/kinds.h"
#include "results/store/read.h"

#define NAMES_USUAL 400       /* columns of a result */
#define LIST_ELEMENTS_MAX 256 /* of a list that becomes a text; a longer one counts as data */

void cells_init(struct cells *c, struct arena *a)
{
	*c = (struct cells){ .arena = a };
	map_reserve(&c->names, NAMES_USUAL);
}

void cells_release(struct cells *c)
{
	free(c->cell);
	free(c->name);
	map_release(&c->names);
	buf_release(&c->scratch);
	*c = (struct cells){ 0 };
}

void cells_begin(struct cells *c)
{
	c->n = 0;
	c->is_over = false;
	c->run++;
}

struct row cells_row(const struct cells *c)
{
	struct row row = { .n = c->n };

	row.cell = arena_alloc(c->arena, (c->n + 1) * sizeof(*row.cell));
	if (c->n)
		memcpy(row.cell, c->cell, c->n * sizeof(*row.cell));
	return row;
}

/* ---- names ---- */

static bool is_name(struct str name)
{
	if (name.n == 0 || name.n > COLUMN_BYTES_MAX)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if ((unsigned char)name.p[i] < ' ' || name.p[i] == 0x7f)
			return false;
	return true;
}

/* Adds a name to those of the file; NULL: invalid, or one too many. */
static struct known_name *know(struct cells *c, struct str name)
{
	uint64_t at;

	if (map_get(&c->names, name, &at))
		return &c->name[at];
	if (!is_name(name) || c->n_names == FLATTEN_NAMES_MAX) {
		c->bad_names++;
		return NULL;
	}
	if (c->n_names == c->cap_names) {
		c->cap_names = c->cap_names ? 2 * c->cap_names : 256;
		c->name = mem_grow(c->name, c->cap_names, sizeof(*c->name));
	}
	at = c->n_names++;
	c->name[at] = (struct known_name){ .text = arena_str(c->arena, name) };
	map_put(&c->names, c->name[at].text, at);
	return &c->name[at];
}

/* ---- values ---- */

static struct str cut_text(struct str s)
{
	size_t n = INGEST_TEXT_BYTES_MAX;

	if (s.n <= n)
		return s;
	while (n && ((unsigned char)s.p[n] & 0xc0) == 0x80)
		n--;
	return (struct str){ s.p, n };
}

/* A copy that every database takes: U+0000 becomes U+FFFD. */
static struct str keep_text(struct arena *a, struct str s)
{
	struct buf clean = { 0 };
	struct str kept;

	s = cut_text(s);
	if (!s.n || !memchr(s.p, 0, s.n))
		return arena_str(a, s);
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i])
			buf_add_char(&clean, s.p[i]);
		else
			buf_add_text(&clean, "\xef\xbf\xbd");
	kept = arena_str(a, cut_text(buf_str(&clean)));
	buf_release(&clean);
	return kept;
}

void cells_put(struct cells *c, struct str name, struct value v)
{
	struct known_name *known;

	if (v.kind == VALUE_ABSENT)
		return;
	known = know(c, name);
	if (!known || known->run == c->run)
		return;
	if (c->n == INGEST_CELLS_MAX) {
		c->is_over = true;
		return;
	}
	known->run = c->run;
	if (v.kind == VALUE_TEXT)
		v.text = keep_text(c->arena, v.text);
	else if (v.kind == VALUE_NUMBER && v.number == 0)
		v.number = 0; /* there is one zero */
	if (c->n == c->cap) {
		c->cap = c->cap ? 2 * c->cap : 512;
		c->cell = mem_grow(c->cell, c->cap, sizeof(*c->cell));
	}
	c->cell[c->n++] = (struct cell){ known->text, v };
}

void cells_put_text(struct cells *c, const char *name, struct str text)
{
	cells_put(c, str_of(name), (struct value){ .kind = VALUE_TEXT, .text = text });
}

void cells_put_number(struct cells *c, const char *name, double v)
{
	struct value x = { .kind = VALUE_NUMBER, .number = v };

	if (isnan(v))
		x = (struct value){ .kind = VALUE_NULL };
	cells_put(c, str_of(name), x);
}

static bool is_infinite(struct str s, double *out)
{
	bool is_minus = s.n && s.p[0] == '-';

	if (is_minus)
		s = (struct str){ s.p + 1, s.n - 1 };
	if (!str_is(s, "inf") && !str_is(s, "Infinity"))
		return false;
	*out = is_minus ? -INFINITY : INFINITY;
	return true;
}

struct value value_of(const struct json_value *v)
{
	struct value out = { .kind = VALUE_NUMBER };

	if (!v)
		return (struct value){ 0 };
	switch (v->kind) {
	case JSON_NULL:
		return (struct value){ .kind = VALUE_NULL };
	case JSON_FALSE:
	case JSON_TRUE:
		return (struct value){ .kind = VALUE_BOOL, .is_true = v->kind == JSON_TRUE };
	case JSON_INT:
	case JSON_REAL:
		out.number = json_real(v, 0);
		return out;
	case JSON_STRING:
		if (!is_infinite(v->text, &out.number))
			out = (struct value){ .kind = VALUE_TEXT, .text = v->text };
		return out;
	default:
		return (struct value){ 0 };
	}
}

struct value value_of_word(struct str text)
{
	struct value out = { .kind = VALUE_NUMBER };
	bool is_number = text.n && (text.p[0] == '-' || (text.p[0] >= '0' && text.p[0] <= '9'));

	if (is_infinite(text, &out.number) || (is_number && str_to_f64(text, &out.number)))
		return out;
	if (str_eq_nocase(text, STR("true")) || str_eq_nocase(text, STR("false")))
		return (struct value){ .kind = VALUE_BOOL, .is_true = text.n == 4 };
	if (str_is(text, "None") || str_is(text, "null"))
		return (struct value){ .kind = VALUE_NULL };
	return (struct value){ .kind = VALUE_TEXT, .text = text };
}

/* ---- trees ---- */

static bool is_flat(const struct json_value *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->item[i].kind == JSON_ARRAY || list->item[i].kind == JSON_OBJECT)
			return false;
	return list->count <= LIST_ELEMENTS_MAX;
}

static void put_spelled(struct cells *c, struct str name, const struct json_value *v)
{
	struct buf text = { .limit = INGEST_BYTES_MAX };
	struct json_writer w = json_writer(&text);

	w.is_raw_utf8 = true;
	json_put_value(&w, v);
	cells_put(c, name, (struct value){ .kind = VALUE_TEXT, .text = buf_str(&text) });
	buf_release(&text);
}

static void put_tree(struct cells *c, struct buf *name, struct str key, const struct json_value *v,
		     unsigned depth)
{
	size_t len = name->len;

	if (!key.n) {
		c->bad_names++;
		return;
	}
	if (len)
		buf_add_char(name, '.');
	buf_add(name, key.p, key.n > COLUMN_BYTES_MAX + 1 ? COLUMN_BYTES_MAX + 1 : key.n);
	if (v->kind == JSON_OBJECT && v->count && depth < FLATTEN_DEPTH_MAX) {
		for (size_t i = 0; i < v->count && !c->is_over; i++)
			put_tree(c, name, v->key[i], &v->item[i], depth + 1);
	} else if (v->kind == JSON_OBJECT || v->kind == JSON_ARRAY) {
		if (v->kind == JSON_OBJECT || is_flat(v))
			put_spelled(c, buf_str(name), v);
	} else {
		cells_put(c, buf_str(name), value_of(v));
	}
	name->len = len;
}

void cells_put_json(struct cells *c, const char *prefix, struct str key,
		    const struct json_value *v)
{
	if (!v)
		return;
	buf_reset(&c->scratch);
	if (prefix)
		buf_add_text(&c->scratch, prefix);
	put_tree(c, &c->scratch, key, v, 0);
}

void cells_put_members(struct cells *c, const char *prefix, const struct json_value *object)
{
	for (size_t i = 0; object && object->kind == JSON_OBJECT && i < object->count; i++)
		cells_put_json(c, prefix, object->key[i], &object->item[i]);
}

/* ---- what several kinds of files have in common ---- */

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NAME_BYTES 192
#define DATE_BYTES_SHOWN 40

/* Options of the load that sweeps and --metadata name; prefixes end with "_". */
static const char *const load_option[] = {
	"request_rate", "max_concurrency", "num_prompts", "burstiness", "backend", "endpoint",
	"dataset_name", "dataset_path", "input_len", "output_len", "num_warmups", "ignore_eos",
	"temperature", "top_p", "top_k", "min_p", "use_beam_search", "logprobs", "goodput",
	"percentile_metrics", "metric_percentiles", "num_iters", "num_iters_warmup", "batch_size",
	"n", "prefix_len", "async_engine", "prequeue_requests", "probe_request_rate", "num_runs",
	"duration", "lora_assignment", "extra_body", "no_stream", "warm_connections", "threads",
	"transport", "http_version", "qps", "base_url", "num_iters_cold", "num_iters_warm",
	"random_", "sonnet_", "sharegpt_", "hf_output", "hf_subset", "hf_split", "hf_name",
	"prefix_repetition_", "spec_bench_", "speed_bench_", "custom_", "ramp_up_", "blazedit_",
	"timed_trace_", "asr_", "trace_", "repeat_", "multi_turn_", "structured_", "conversations_",
	"multi_turn", "warmup_pass", "priority_classes", "max_sessions", "sessions", "think_time",
	"num_users", "user_centric_rate", "speedup", "per_turn_input_len", "num_clients",
	"max_active_conversations", "num_documents", "document_length",
};

/* ---- small things ---- */

void note(struct reading *r, const char *text)
{
	buf_add_text(r->notes, text);
	buf_add_char(r->notes, '\n');
}

static struct str name_of(char out[NAME_BYTES], const char *head, struct str body,
			  const char *tail)
{
	int n = snprintf(out, NAME_BYTES, "%s%.*s%s", head, (int)(body.n < 128 ? body.n : 128),
			 body.n ? body.p : "", tail);

	return (struct str){ out, n < NAME_BYTES ? (size_t)n : NAME_BYTES - 1 };
}

bool put_renamed(struct reading *r, const struct rename *table, size_t n, struct str key,
		 const struct json_value *v)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(table[i].key, key.p, key.n) == 0 && !table[i].key[key.n]) {
			if (*table[i].column)
				cells_put_json(r->cells, NULL, str_of(table[i].column), v);
			return true;
		}
	return false;
}

/* ---- time ---- */

static bool two_digits(const char *p, int most, int *out)
{
	if (p[0] < '0' || p[0] > '9' || p[1] < '0' || p[1] > '9')
		return false;
	*out = 10 * (p[0] - '0') + p[1] - '0';
	return *out <= most;
}

/*
 * Seconds of an offset: "+02:00", "+0200", "+02", "Z", "UTC" or nothing, with or without a blank
 * before it. NAN: another text, so that the time is unknown.
 */
static double offset_of(const char *p)
{
	int hours, minutes = 0, sign;

	p += *p == ' ';
	if (!*p || !strcmp(p, "Z") || !strcmp(p, "z") || !strcmp(p, "UTC") || !strcmp(p, "GMT"))
		return 0;
	sign = *p == '+' ? 1 : *p == '-' ? -1 : 0;
	if (!sign || !two_digits(p + 1, 23, &hours))
		return NAN;
	p += 3;
	if (*p) {
		p += *p == ':';
		if (!two_digits(p, 59, &minutes) || p[2])
			return NAN;
	}
	return sign * (hours * 3600.0 + minutes * 60.0);
}

/* Fraction of a second, after a dot or a comma. */
static double fraction_of(const char **p)
{
	double digits = 0, scale = 1;

	if ((**p != '.' && **p != ',') || (*p)[1] < '0' || (*p)[1] > '9')
		return 0;
	for (++*p; **p >= '0' && **p <= '9'; ++*p) {
		digits = 10 * digits + (**p - '0');
		scale *= 10;
	}
	return digits / scale;
}

double time_of(struct str text)
{
	static const char *const form[] = { "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y%m%d-%H%M%S" };
	char copy[64];

	if (text.n == 0 || text.n >= sizeof(copy))
		return NAN;
	memcpy(copy, text.p, text.n);
	copy[text.n] = 0;
	for (size_t i = 0; i < COUNT(form); i++) {
		struct tm tm = { 0 };
		const char *rest = strptime(copy, form[i], &tm);
		double fraction;

		if (!rest)
			continue;
		fraction = fraction_of(&rest);
		return (double)timegm(&tm) + fraction - offset_of(rest);
	}
	return NAN;
}

void put_date(struct reading *r, const struct json_value *date)
{
	struct str text = json_text(date, STR(""));

	if (!text.n || !isnan(r->timestamp_s))
		return;
	r->timestamp_s = time_of(text);
	if (!isnan(r->timestamp_s))
		return;
	buf_add_text(r->notes, "The run has no time, because its date is not understood: \"");
	for (size_t i = 0; i < text.n && i < DATE_BYTES_SHOWN; i++)
		buf_add_char(r->notes, text.p[i] >= ' ' && text.p[i] <= '~' ? text.p[i] : '?');
	buf_add_text(r->notes, "\"; expected one such as " TIME_EXAMPLE ".\n");
}

/* ---- metrics ---- */

bool is_metric_name(struct str name)
{
	struct column_name c = column_name(name);

	return c.is_metric && (*c.unit || c.better);
}

void put_metric_value(struct reading *r, struct str name, struct value v)
{
	char other[NAME_BYTES];
	struct str rest;

	cells_put(r->cells, name, v);
	if (str_starts(name, STR("median_"))) {
		rest = (struct str){ name.p + 7, name.n - 7 };
		cells_put(r->cells, name_of(other, "p50_", rest, ""), v);
	} else if (str_starts(name, STR("p50_"))) {
		rest = (struct str){ name.p + 4, name.n - 4 };
		cells_put(r->cells, name_of(other, "median_", rest, ""), v);
	}
}

void put_metric(struct reading *r, struct str name, const struct json_value *v)
{
	struct value one = value_of(v);

	if (one.kind == VALUE_ABSENT)
		cells_put_json(r->cells, NULL, name, v);
	else
		put_metric_value(r, name, one);
}

static void put_percentile(struct reading *r, const char *prefix, struct str p, const char *name,
			   struct value v)
{
	char column[NAME_BYTES], head[NAME_BYTES], tail[NAME_BYTES];

	if (str_ends(p, STR(".0")))
		p.n -= 2;
	snprintf(head, sizeof(head), "%sp", prefix);
	snprintf(tail, sizeof(tail), "_%s", name);
	put_metric_value(r, name_of(column, head, p, tail), v);
}

void put_percentiles(struct reading *r, const char *prefix, const char *name,
		     const struct json_value *v)
{
	double p;

	for (size_t i = 0; v && v->kind == JSON_OBJECT && i < v->count; i++)
		if (str_to_f64(v->key[i], &p))
			put_percentile(r, prefix, v->key[i], name, value_of(&v->item[i]));
	for (size_t i = 0; v && v->kind == JSON_ARRAY && i < v->count; i++) {
		const struct json_value *pair = &v->item[i];

		if (pair->kind == JSON_ARRAY && pair->count == 2 && pair->item[0].raw.n)
			put_percentile(r, prefix, pair->item[0].raw, name,
				       value_of(&pair->item[1]));
	}
}

/* ---- parameters ---- */

bool is_load_option(struct str key)
{
	for (size_t i = 0; i < COUNT(load_option); i++) {
		struct str known = str_of(load_option[i]);

		if (known.p[known.n - 1] == '_' ? str_starts(key, known) : str_eq(key, known))
			return true;
	}
	return false;
}

/* "compilation_config.mode": looks up the part before the dot; dashes count as "_". */
static bool is_engine_arg(struct str key)
{
	char name[NAME_BYTES];
	struct str first = str_cut(&key, '.');

	if (first.n >= sizeof(name))
		return false;
	for (size_t i = 0; i < first.n; i++)
		name[i] = first.p[i] == '_' ? '-' : first.p[i];
	return engine_arg_find((struct str){ name, first.n }) != NULL;
}

/* Whether the name of a sweep's combination in the path has the key on this side. */
static bool is_on_side(struct str file, const char *side, const char *until, struct str key)
{
	char pair[NAME_BYTES];
	const char *from, *to;
	struct str want = name_of(pair, "-", key, "=");

	from = file.n ? memmem(file.p, file.n, side, strlen(side)) : NULL;
	if (!from)
		return false;
	to = memmem(from, file.n - (size_t)(from - file.p), until, strlen(until));
	if (!to)
		to = file.p + file.n;
	return memmem(from, (size_t)(to - from), want.p, want.n) != NULL;
}

void put_parameter(struct reading *r, struct str key, const struct json_value *v)
{
	char column[NAME_BYTES], plain[NAME_BYTES];
	const char *prefix = "tags.";
	struct value value = value_of(v);
	struct str name = name_of(plain, "", key, "");

	for (size_t i = 0; i < name.n; i++)
		plain[i] = plain[i] == '-' ? '_' : plain[i];
	if (is_on_side(r->file, "SERVE-", "BENCH-", key))
		prefix = "server.";
	else if (is_on_side(r->file, "BENCH-", "/", key) || is_load_option(name))
		prefix = "benchmark.";
	else if (is_engine_arg(name))
		prefix = "server.";
	if (strcmp(prefix, "tags.") == 0)
		name = key;
	else if (value.kind == VALUE_TEXT)
		value = value_of_word(value.text);
	if (value.kind != VALUE_ABSENT)
		cells_put(r->cells, name_of(column, prefix, name, ""), value);
	else
		cells_put_json(r->cells, NULL, name_of(column, prefix, name, ""), v);
}

/* ---- trust ---- */

/* The names of the metrics that have this verdict, as one text. */
static void put_metrics_of(struct reading *r, const struct json_value *verdicts,
			   const char *verdict, const char *column)
{
	struct buf names = { 0 };

	for (size_t i = 0; i < verdicts->count; i++) {
		if (!str_is(json_text(&verdicts->item[i], STR("")), verdict))
			continue;
		if (names.len)
			buf_add_char(&names, ',');
		buf_add_str(&names, verdicts->key[i]);
	}
	cells_put_text(r->cells, column, buf_str(&names));
	buf_release(&names);
}

void put_trust(struct reading *r, const struct json_value *from)
{
	const struct json_value *verdict = json_get(from, "verdict");
	const struct json_value *verdicts = json_get(from, "verdicts");
	const struct json_value *reasons = json_get(from, "reasons");
	struct buf codes = { 0 };

	if (verdict)
		cells_put_json(r->cells, NULL, STR("verdict"), verdict);
	if (verdicts && verdicts->kind == JSON_OBJECT) {
		put_metrics_of(r, verdicts, "DEGRADED", "trust.degraded");
		put_metrics_of(r, verdicts, "INVALID", "trust.invalid");
	}
	if (!reasons || reasons->kind != JSON_ARRAY)
		return;
	for (size_t i = 0; i < reasons->count; i++) {
		struct str code = json_text(json_get(&reasons->item[i], "code"), STR(""));

		if (code.n && codes.len)
			buf_add_char(&codes, ',');
		buf_add_str(&codes, code);
	}
	cells_put_text(r->cells, "trust.reasons", buf_str(&codes));
	buf_release(&codes);
}

bool put_budget(struct reading *r, struct str key, const struct json_value *v)
{
	static const char *const budget[] = {
		"client_lag_ms", "send_lag_ms", "skew_ms", "connect_ms", "stamp_source",
		"requests_user_stamped", "shared_read_share", "late_shared_read_share",
		"not_one_token_share",
		"usage_differs_share",
	};

	for (size_t i = 0; i < COUNT(budget); i++)
		if (str_is(key, budget[i])) {
			cells_put_json(r->cells, "trust", key, v);
			return true;
		}
	return false;
}

/* ---- the table ---- */

static int (*const kinds[RESULT_KINDS])(struct reading *r, const struct json_value *v,
					struct err *e) = {
	[RESULT_DOCUMENT] = put_document, [RESULT_PYTORCH] = put_pytorch,
	[RESULT_AIPERF] = put_aiperf, [RESULT_GENAI_PERF] = put_genai_perf,
	[RESULT_GUIDELLM] = put_guidellm, [RESULT_MLPERF] = put_mlperf,
	[RESULT_ENDPOINTS] = put_endpoints, [RESULT_INFERENCEX] = put_inferencex,
	[RESULT_MM_PROCESSOR] = put_mm_processor, [RESULT_SERVE] = put_serve,
	[RESULT_THROUGHPUT] = put_throughput, [RESULT_LATENCY] = put_latency,
	[RESULT_STARTUP] = put_startup, [RESULT_NIGHTLY] = put_nightly,
};

int put_kind(struct reading *r, enum result_kind kind, const struct json_value *v, struct err *e)
{
	assert(kind > RESULT_NONE && kind < RESULT_KINDS);
	return kinds[kind](r, v, e);
}
