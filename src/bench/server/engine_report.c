/* SPDX-License-Identifier: Apache-2.0 */
/* engine_report.c - see engine_report.h. */
#include "bench/server/engine_report.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

#include "client/http/prometheus.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/opt/opt.h"
#include "host/engine/args.h"

#define NAME_MAX_BYTES 64
#define VALUE_MAX_BYTES 256 /* of a text; longer ones are no names of types or methods */

/* ---- one value ---- */

static const struct engine_arg *arg_called(struct str name)
{
	static const struct { const char *here, *there; } renamed[] = {
		{ "max_seq_len", "max-model-len" }, { "cache_dtype", "kv-cache-dtype" },
		{ "chunked_prefill_enabled", "enable-chunked-prefill" },
	};
	/* The runner chooses these for each start. */
	static const char *const apart[] = { "host", "port", "uds", "root_path" };

	for (size_t i = 0; i < sizeof(apart) / sizeof(*apart); i++)
		if (str_is(name, apart[i]))
			return NULL;
	for (size_t i = 0; i < sizeof(renamed) / sizeof(*renamed); i++)
		if (str_is(name, renamed[i].here))
			return engine_arg_find(str_of(renamed[i].there));
	return name.n && name.n < NAME_MAX_BYTES ? engine_arg_find(name) : NULL;
}

/* 'a' and "a" as a. */
static struct str unquoted(struct str s)
{
	bool is_quoted = s.n > 1 && (*s.p == '\'' || *s.p == '"') && s.p[s.n - 1] == *s.p;

	return is_quoted ? (struct str){ s.p + 1, s.n - 2 } : s;
}

/* True for a single word: neither an object's description nor part of a sentence. */
static bool is_plain(struct str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (iscntrl((unsigned char)s.p[i]) || strchr("<>(){}[]'\"\\", s.p[i]))
			return false;
	return s.n > 0 && s.n <= VALUE_MAX_BYTES;
}

static bool is_of_kind(const struct engine_arg *arg, struct str s)
{
	int64_t integer;
	double real;

	switch (arg->kind) {
	case ENGINE_FLAG:
	case ENGINE_SWITCH:
		return str_is(s, "True") || str_is(s, "False");
	case ENGINE_INT:
	case ENGINE_HUMAN:
		return opt_human_int(s, &integer);
	case ENGINE_REAL:
		return opt_python_float(s, &real);
	case ENGINE_TEXT:
		return is_plain(s);
	case ENGINE_LIST:
	case ENGINE_JSON:
	case ENGINE_KINDS:
		break;
	}
	return false;
}

/* A value as Python prints it. */
static void keep(struct engine_report *r, struct str name, struct str value)
{
	const struct engine_arg *arg = arg_called(name);

	if (!arg || redact_is_secret(name) || r->text[arg - engine_args])
		return;
	value = unquoted(str_trim(value));
	if (str_starts(value, STR("torch.")))
		value = (struct str){ value.p + 6, value.n - 6 };
	if (str_is(value, "None") || is_of_kind(arg, value))
		r->text[arg - engine_args] = arena_text(r->a, value);
}

void engine_report_begin(struct engine_report *r, struct arena *a)
{
	r->text = arena_alloc(a, engine_arg_count * sizeof(*r->text));
	r->a = a;
}

/* ---- the log ---- */

/* Cuts up to the next comma that is not within brackets or quotes. */
static struct str next_item(struct str *rest)
{
	struct str item = *rest;
	char quote = 0;
	int depth = 0;
	size_t i = 0;

	for (; i < rest->n && (rest->p[i] != ',' || depth > 0 || quote); i++) {
		char c = rest->p[i];

		if (quote) {
			i += c == '\\';
			quote = c == quote ? 0 : quote;
		} else if (c == '\'' || c == '"') {
			quote = c;
		} else if (c && strchr("([{<", c)) {
			depth++;
		} else if (c && strchr(")]}>", c) && depth-- == 0) {
			break; /* the end of what holds the items */
		}
	}
	i = i < rest->n ? i : rest->n;
	item.n = i;
	if (i < rest->n && rest->p[i] != ',')
		i = rest->n;
	*rest = (struct str){ rest->p + i + (i < rest->n), rest->n - i - (i < rest->n) };
	return str_trim(item);
}

/* "a=1, b='x'", or with ':' "'a': 1, 'b': 'x'". */
static void keep_items(struct engine_report *r, struct str items, char between)
{
	while (items.n) {
		struct str value = next_item(&items), name = str_cut(&value, between);

		keep(r, unquoted(str_trim(name)), value);
	}
}

/* Reads the engine's final configuration; one line for each engine, the first counts. */
static void read_config(struct engine_report *r, struct str line)
{
	struct str rest = str_after(line, " LLM engine (v");

	if (rest.n)
		keep_items(r, str_after(rest, " with config: "), '=');
}

/* Looks for words with a value on either side. */
static void read_line(struct engine_report *r, struct str line)
{
	static const struct { const char *before, *behind, *name; } facts[] = {
		{ "Chunked prefill is enabled with max_num_batched_tokens=", ".",
		  "max_num_batched_tokens" },
		{ "Using max model len ", "", "max_model_len" },
		{ "] Using ", " attention backend out of potential backends", "attention_backend" },
	};
	struct str rest = str_after(line, "non-default args: {");

	keep_items(r, rest, ':');
	for (size_t i = 0; i < sizeof(facts) / sizeof(*facts); i++) {
		size_t n = strlen(facts[i].behind);
		const char *end;

		rest = str_after(line, facts[i].before);
		if (!rest.n)
			continue;
		end = n ? memmem(rest.p, rest.n, facts[i].behind, n) : rest.p + rest.n;
		if (!end)
			continue;
		rest.n = (size_t)(end - rest.p);
		keep(r, str_of(facts[i].name), rest);
	}
	if (str_after(line, "Chunked prefill is enabled with ").n)
		keep(r, STR("enable_chunked_prefill"), STR("True"));
	rest = str_after(line, "Asynchronous scheduling is ");
	if (rest.n)
		keep(r, STR("async_scheduling"), str_starts(rest, STR("enabled")) ? STR("True") :
		     STR("False"));
}

void engine_report_log(struct engine_report *r, struct str log)
{
	struct str again = log;

	/* Requested values come first in the log; the final ones count. */
	while (log.n)
		read_config(r, str_cut(&log, '\n'));
	while (again.n)
		read_line(r, str_cut(&again, '\n'));
}

/* ---- answers ---- */

void engine_report_metrics(struct engine_report *r, struct str metrics)
{
	struct prometheus_sample s;
	char name[NAME_MAX_BYTES];
	int rc;

	while ((rc = prometheus_next(&metrics, &s, NULL)) != 0) {
		if (rc < 0 || !str_is(s.name, "vllm:cache_config_info"))
			continue;
		for (size_t i = 0; i <= engine_arg_count; i++) {
			struct str value;
			size_t k = 0;

			/* One label has another name than its argument. */
			snprintf(name, sizeof(name), "%s",
				 i < engine_arg_count ? engine_args[i].name : "cache_dtype");
			for (; name[k]; k++)
				name[k] = name[k] == '-' ? '_' : name[k];
			if (prometheus_label(s.labels, name, &value))
				keep(r, str_of(name), value);
		}
		return;
	}
}

void engine_report_models(struct engine_report *r, struct str models)
{
	const struct json_value *list, *length;
	struct json_value *v = NULL;
	struct arena a = { 0 };

	if (json_parse(&a, models, &v, NULL) == 0) {
		list = json_get(v, "data");
		length = list && list->kind == JSON_ARRAY && list->count ?
			 json_get(&list->item[0], "max_model_len") : NULL;
		if (length && length->kind == JSON_INT)
			keep(r, STR("max_model_len"), length->raw);
	}
	arena_release(&a);
}

/* ---- all of it ---- */

static void put_one(struct json_writer *w, const struct engine_arg *arg, const char *text)
{
	int64_t integer;
	double real;

	if (strcmp(text, "None") == 0)
		json_put_null(w);
	else if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		json_put_bool(w, strcmp(text, "True") == 0);
	else if ((arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN) &&
		 opt_human_int(str_of(text), &integer))
		json_put_int(w, integer);
	else if (arg->kind == ENGINE_REAL && opt_python_float(str_of(text), &real))
		json_put_setting(w, real);
	else
		json_put_text(w, text);
}

void engine_report_write(const struct engine_report *r, struct json_writer *w)
{
	json_begin_object(w);
	for (size_t i = 0; i < engine_arg_count; i++) {
		char name[NAME_MAX_BYTES];

		if (!r->text[i])
			continue;
		snprintf(name, sizeof(name), "%s", engine_args[i].name);
		for (char *p = name; *p; p++)
			*p = *p == '-' ? '_' : *p;
		json_key(w, name);
		put_one(w, &engine_args[i], r->text[i]);
	}
	json_end_object(w);
}

/* ---- phases of a start ---- */

/* Words before and after a number of seconds in a line; what is between may differ. */
static const struct pattern {
	const char *name, *begin, *before, *unit; /* before: directly in front of the number */
} patterns[] = {
	{ "load weights", "Loading weights took", " ", " sec" },
	{ "load model", "Model loading took", " and ", " sec" },
	{ "trace the model", "Dynamo bytecode transform time:", " ", " s" },
	{ "compile", "torch.compile took", " ", " s in total" },
	{ "compile", "torch.compile takes", " ", " s in total" },
	{ "first run", "Initial profiling/warmup run took", " ", " s" },
	{ "capture graphs", " Graph capturing finished in", " ", " sec" },
	{ "profile, KV cache, warm-up", "init engine (", " took ", " s" },
};
#define PATTERNS (sizeof(patterns) / sizeof(*patterns))

/* The seconds that a line reports for a pattern; NAN: it is about something else. */
static double seconds_of(struct str line, const struct pattern *p)
{
	struct str rest = str_after(line, p->begin);
	double s;

	while ((rest = str_after(rest, p->before)).n) {
		size_t n = 0;

		while (n < rest.n && ((rest.p[n] >= '0' && rest.p[n] <= '9') || rest.p[n] == '.'))
			n++;
		if (n && str_to_f64((struct str){ rest.p, n }, &s) && isfinite(s) &&
		    str_starts((struct str){ rest.p + n, rest.n - n }, str_of(p->unit)))
			return s;
	}
	return NAN;
}

static double longest(struct str log, const char *name)
{
	double most = NAN;

	while (log.n) {
		struct str line = str_cut(&log, '\n');

		for (size_t i = 0; i < PATTERNS; i++) {
			double s = strcmp(patterns[i].name, name) == 0 ?
				   seconds_of(line, &patterns[i]) : NAN;

			if (!isnan(s) && (isnan(most) || s > most))
				most = s;
		}
	}
	return most;
}

size_t engine_log_phases(struct str log, struct engine_phase phase[ENGINE_LOG_PHASES])
{
	size_t n = 0;

	_Static_assert(PATTERNS <= ENGINE_LOG_PHASES, "one phase for each pattern at most");
	for (size_t i = 0; i < PATTERNS; i++) {
		double s;

		if (i && strcmp(patterns[i].name, patterns[i - 1].name) == 0)
			continue;
		s = longest(log, patterns[i].name);
		if (!isnan(s))
			phase[n++] = (struct engine_phase){ patterns[i].name, s };
	}
	return n;
}

double engine_log_compilation_s(struct str log)
{
	return longest(log, "compile");
}
