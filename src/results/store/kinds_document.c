/* SPDX-License-Identifier: Apache-2.0 */
/* kinds_document.c - see kinds.h: documents of one experiment, from `profllm run`. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/store/kinds.h"
#include "results/store/read.h"

#define NAME_BYTES 192
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

/* First parts of columns that no role may take for its own. */
static const char *const group[] = {
	"server", "benchmark", "system", "hardware", "environment", "provenance", "tags", "resources",
	"trust", "client", "steady_state", "failures", "run", "metric", "sessions", "correctness",
	"priority", "prefix_cache", "settled", "attempted", "error_budget",
};

static const char *kind_name(const struct json_value *v)
{
	static const char *const name[] = {
		"null", "false", "true", "a number", "a number", "a text", "a list", "an object",
	};

	return name[v->kind];
}

/* NULL also for null. -1: neither an object nor null. */
static int object_at(const struct json_value *v, const char *key, const struct json_value **out,
		     struct err *e)
{
	const struct json_value *m = json_get(v, key);

	*out = m && m->kind == JSON_OBJECT ? m : NULL;
	if (!m || *out || m->kind == JSON_NULL)
		return 0;
	return err_set(e, ERR_PARSE, "%s: expected an object or null, got %s", key, kind_name(m));
}

static int text_at(const struct json_value *v, const char *key, struct str *out, struct err *e)
{
	const struct json_value *m = json_get(v, key);

	*out = json_text(m, (struct str){ 0 });
	if (!m || m->kind == JSON_STRING || m->kind == JSON_NULL)
		return 0;
	return err_set(e, ERR_PARSE, "%s: expected a text, got %s", key, kind_name(m));
}

/* ---- the machine, and what it did while load ran ---- */


/* How the values of several GPUs or processes become one. */
enum join { JOIN_MEAN, JOIN_SUM, JOIN_MIN, JOIN_MAX };

struct total { double value; size_t n; };

static void add(struct total *t, enum join how, double v)
{
	if (isnan(v))
		return;
	if (t->n == 0)
		t->value = v;
	else if (how == JOIN_MIN)
		t->value = fmin(t->value, v);
	else if (how == JOIN_MAX)
		t->value = fmax(t->value, v);
	else
		t->value += v;
	t->n++;
}

/* figure.span of each element of the list as one cell. */
static void join(struct reading *r, const char *prefix, const struct json_value *list,
		 struct str figure, struct str span, enum join how)
{
	struct total t = { 0 };
	char name[NAME_BYTES];

	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *v = NULL, *element = &list->item[i];

		for (size_t k = 0; element->kind == JSON_OBJECT && k < element->count; k++)
			if (str_eq(element->key[k], figure))
				v = &element->item[k];
		for (size_t k = 0; span.n && v && v->kind == JSON_OBJECT && k < v->count; k++)
			if (str_eq(v->key[k], span)) {
				v = &v->item[k];
				break;
			}
		add(&t, how, json_real(v, NAN));
	}
	if (!t.n)
		return;
	snprintf(name, sizeof(name), "%s.%.*s%s%.*s", prefix, (int)(figure.n < 100 ? figure.n : 100),
		 figure.p, span.n ? "." : "", (int)span.n, span.n ? span.p : "");
	cells_put_number(r->cells, name, how == JOIN_MEAN ? t.value / (double)t.n : t.value);
}

/* Every figure that has a least, mean and largest value; how the means are put together. */
static void join_spans(struct reading *r, const char *prefix, const struct json_value *list,
		       enum join means)
{
	const struct json_value *first = list->count ? &list->item[0] : NULL;

	for (size_t i = 0; first && first->kind == JSON_OBJECT && i < first->count; i++) {
		if (first->item[i].kind != JSON_OBJECT)
			continue;
		join(r, prefix, list, first->key[i], STR("min"), means == JOIN_SUM ? means : JOIN_MIN);
		join(r, prefix, list, first->key[i], STR("mean"), means);
		join(r, prefix, list, first->key[i], STR("max"), means == JOIN_SUM ? means : JOIN_MAX);
	}
}

static bool is_list(const struct json_value *v)
{
	return v && v->kind == JSON_ARRAY;
}

/* The first GPU represents all: a machine with different ones has "hardware.gpus_differ". */
static void put_gpus(struct reading *r, const struct json_value *gpus)
{
	static const char *const aside[] = { "index", "uuid", "pci", "links", "name", "numa" };
	const struct json_value *first = gpus->count ? &gpus->item[0] : NULL;
	struct str name = json_text(json_get(first, "name"), STR(""));
	size_t whole = 0;
	bool do_differ = false;

	for (size_t i = 0; i < gpus->count; i++) {
		const struct json_value *part = json_get(&gpus->item[i], "mig_profile");

		whole += !part || part->kind == JSON_NULL;
		do_differ |= !str_eq(json_text(json_get(&gpus->item[i], "name"), STR("")), name);
	}
	if (name.n)
		cells_put_text(r->cells, "hardware.gpu", name);
	cells_put_number(r->cells, "hardware.gpus", (double)whole);
	if (do_differ)
		cells_put(r->cells, STR("hardware.gpus_differ"),
			  (struct value){ .kind = VALUE_BOOL, .is_true = true });
	for (size_t i = 0; first && first->kind == JSON_OBJECT && i < first->count; i++) {
		bool is_aside = false;

		for (size_t k = 0; k < sizeof(aside) / sizeof(*aside); k++)
			is_aside |= str_is(first->key[i], aside[k]);
		if (!is_aside)
			cells_put_json(r->cells, "hardware.gpu", first->key[i], &first->item[i]);
	}
}

static void put_hardware(struct reading *r, const struct json_value *info)
{
	for (size_t i = 0; info && info->kind == JSON_OBJECT && i < info->count; i++) {
		struct str key = info->key[i];
		const struct json_value *v = &info->item[i];

		if (str_is(key, "gpus") && v->kind == JSON_ARRAY)
			put_gpus(r, v);
		else
			cells_put_json(r->cells, "hardware", key, v);
	}
}

static void put_system(struct reading *r, const struct json_value *system)
{
	const struct json_value *gpus = json_get(system, "gpus");
	const struct json_value *processes = json_get(system, "processes");

	for (size_t i = 0; system && system->kind == JSON_OBJECT && i < system->count; i++) {
		struct str key = system->key[i];

		if (!str_is(key, "gpus") && !str_is(key, "processes") && !str_is(key, "hardware_info"))
			cells_put_json(r->cells, "system", key, &system->item[i]);
	}
	if (is_list(gpus)) {
		join_spans(r, "system.gpu", gpus, JOIN_MEAN);
		join(r, "system.gpu", gpus, STR("energy_j"), STR(""), JOIN_SUM);
	}
	if (is_list(processes)) {
		join_spans(r, "system.processes", processes, JOIN_SUM);
		join(r, "system.processes", processes, STR("cpu_s"), STR(""), JOIN_SUM);
	}
	put_hardware(r, json_get(system, "hardware_info"));
}

/* ---- what our verbs say of themselves, under "profllm" in a result ---- */


static struct str name_of(char out[NAME_BYTES], const char *head, struct str body,
			  const char *tail)
{
	snprintf(out, NAME_BYTES, "%s%.*s%s", head, (int)(body.n < 128 ? body.n : 128),
		 body.n ? body.p : "", tail);
	return str_of(out);
}

/* Measured by the client but no part of upstream's results: p99_e2el_from_due_ms and so on. */
static bool put_spread(struct reading *r, struct str key, const struct json_value *v)
{
	static const char *const spread[] = {
		"e2el_from_due_ms", "ttft_answer_ms", "ttft_with_connect_ms",
	};
	char column[NAME_BYTES], tail[NAME_BYTES];

	for (size_t i = 0; i < COUNT(spread); i++) {
		if (!str_is(key, spread[i]))
			continue;
		snprintf(tail, sizeof(tail), "_%s", spread[i]);
		for (size_t k = 0; v->kind == JSON_OBJECT && k < v->count; k++)
			if (!str_is(v->key[k], "n"))
				put_metric(r, name_of(column, "", v->key[k], tail), &v->item[k]);
		return true;
	}
	return false;
}

static void put_failures(struct reading *r, const struct json_value *list)
{
	for (size_t i = 0; list->kind == JSON_ARRAY && i < list->count; i++) {
		struct str category = json_text(json_get(&list->item[i], "category"), STR(""));

		if (category.n)
			cells_put_json(r->cells, "failures", category, json_get(&list->item[i], "count"));
	}
}

static void put_steady(struct reading *r, const struct json_value *steady)
{
	cells_put_members(r->cells, "steady_state", steady);
	put_percentiles(r, "steady_state.", "ttft_ms", json_get(steady, "percentiles_ttft_ms"));
}

/* ---- of many figures those that runs are compared by ---- */

/* Other members stay in the document: a column for a single page is not worth its place. */
static const struct kept {
	const char *key, *object, *member; /* object NULL: the member is the key's own */
	const char *column;                /* prefix of the member's column */
} kept[] = {
	{ "settled", "ttft_ms", "mean", "settled.ttft_ms" },
	{ "settled", "ttft_ms", "low", "settled.ttft_ms" },
	{ "settled", "ttft_ms", "high", "settled.ttft_ms" },
	{ "attempted", NULL, "good_share", "attempted" },
	{ "error_budget", NULL, "source", "error_budget" },
	{ "error_budget", NULL, "age_s", "error_budget" },
	{ "error_budget", NULL, "streams", "error_budget" },
	{ "error_budget", NULL, "events_per_s", "error_budget" },
	{ "error_budget", "ttft", "mean_ms", "error_budget.ttft" },
	{ "error_budget", "ttft", "low_ms", "error_budget.ttft" },
	{ "error_budget", "ttft", "high_ms", "error_budget.ttft" },
	{ "error_budget", "itl", "high_ms", "error_budget.itl" },
	{ "slow_gaps", "server", "share", "client.slow_gaps.server" },
	{ "slow_gaps", "client", "share", "client.slow_gaps.client" },
	{ "segment_stamps", NULL, NULL, NULL }, { "itl_token_ms", NULL, NULL, NULL },
	{ "round_trip_ms", NULL, NULL, NULL }, { "capture", NULL, NULL, NULL },
};

/* false: the key has no row there. */
static bool put_kept(struct reading *r, struct str key, const struct json_value *v)
{
	bool is_there = false;

	for (size_t i = 0; i < COUNT(kept); i++) {
		const struct kept *one = &kept[i];
		const struct json_value *in = one->object ? json_get(v, one->object) : v;

		if (!str_is(key, one->key))
			continue;
		is_there = true;
		if (one->member)
			cells_put_json(r->cells, one->column, str_of(one->member),
				       json_get(in, one->member));
	}
	return is_there;
}

/* ---- priorities ---- */

/* "priority.-1", "priority.3": the column group of a class. false: it has no number. */
static bool class_of(const struct json_value *class, char out[NAME_BYTES])
{
	const struct json_value *v = json_get(class, "priority");

	if (!v || v->kind != JSON_INT)
		return false;
	snprintf(out, NAME_BYTES, "priority.%lld", (long long)json_int(v, 0));
	return true;
}

static void put_classes(struct reading *r, const struct json_value *list)
{
	char prefix[NAME_BYTES];

	if (list->kind != JSON_ARRAY)
		return;
	cells_put_number(r->cells, "priorities", (double)list->count);
	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *class = &list->item[i];

		for (size_t k = 0; class_of(class, prefix) && k < class->count; k++)
			if (!str_is(class->key[k], "priority"))
				cells_put_json(r->cells, prefix, class->key[k], &class->item[k]);
	}
}

/* The cost of priorities for each class: its medians divided by those without priorities. */
static void put_costs(struct reading *r, const struct json_value *list)
{
	char prefix[NAME_BYTES], name[NAME_BYTES];

	for (size_t i = 0; list->kind == JSON_ARRAY && i < list->count; i++) {
		const struct json_value *class = &list->item[i];

		for (size_t k = 0; class_of(class, prefix) && k < class->count; k++)
			if (!str_is(class->key[k], "priority"))
				cells_put_json(r->cells, prefix, name_of(name, "", class->key[k], "_cost"),
					       &class->item[k]);
	}
}

/* ---- what the offline verbs add ---- */

static void put_cached_share(struct reading *r, const char *prefix, const struct json_value *run)
{
	double prompt = json_real(json_get(run, "prompt_tokens"), 0);
	double cached = json_real(json_get(run, "cached_tokens"), NAN);
	char name[NAME_BYTES];

	if (prompt > 0 && isfinite(cached))
		cells_put(r->cells, name_of(name, prefix, STR("cached_share"), ""),
			  (struct value){ .kind = VALUE_NUMBER, .number = cached / prompt });
}

/* Prompts that share prefixes, on an engine with a cache, and perhaps on one without. */
static void put_cache_runs(struct reading *r, const struct json_value *list)
{
	char name[NAME_BYTES];

	if (list->count)
		put_cached_share(r, "", &list->item[0]);
	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *run = &list->item[i];
		const struct json_value *is_on = json_get(run, "prefix_caching");
		const char *prefix = json_bool(is_on, false) ? "prefix_cache.on" : "prefix_cache.off";

		if (!is_on || is_on->kind == JSON_NULL)
			continue;
		cells_put_json(r->cells, prefix, STR("duration"), json_get(run, "elapsed_time"));
		cells_put_json(r->cells, prefix, STR("warmup_duration"),
			       json_get(run, "warmup_time"));
		put_cached_share(r, name_of(name, prefix, STR("."), "").p, run);
	}
}

/* Arguments given to the engine: ["--model", "demo", "--no-enable-prefix-caching"]. */
void put_engine_args(struct reading *r, const struct json_value *list)
{
	char column[NAME_BYTES];

	for (size_t i = 0; list->kind == JSON_ARRAY && i < list->count; i++) {
		struct str word = json_text(&list->item[i], STR("")), value = { 0 }, name;
		struct value v = { .kind = VALUE_BOOL, .is_true = true };
		bool is_off;

		if (!str_starts(word, STR("--")))
			continue;
		value = (struct str){ word.p + 2, word.n - 2 };
		name = str_cut(&value, '=');
		is_off = str_starts(name, STR("no-"));
		if (!value.n && i + 1 < list->count)
			value = json_text(&list->item[i + 1], STR("--"));
		if (value.n && !str_starts(value, STR("--")))
			v = value_of_word(value);
		else if (is_off)
			v.is_true = false;
		if (is_off && v.kind == VALUE_BOOL)
			name = (struct str){ name.p + 3, name.n - 3 };
		snprintf(column, sizeof(column), "server.%.*s", (int)(name.n < 128 ? name.n : 128),
			 name.p);
		for (char *p = column; *p; p++)
			*p = *p == '-' ? '_' : *p;
		cells_put(r->cells, str_of(column), v);
	}
}

static void put_engine(struct reading *r, const struct json_value *engine)
{
	static const struct rename member[] = {
		{ "name", "environment.server.kind" }, { "version", "environment.server.version" },
		{ "device", "hardware.device" }, { "max_model_len", "server.max_model_len" },
	};

	for (size_t i = 0; engine->kind == JSON_OBJECT && i < engine->count; i++)
		put_renamed(r, member, COUNT(member), engine->key[i], &engine->item[i]);
	cells_put_json(r->cells, NULL, STR("kv_cache_tokens"),
		       json_get(json_get(engine, "told"), "kv_cache_tokens"));
}

static void put_host(struct reading *r, const struct json_value *host)
{
	static const struct rename member[] = {
		{ "cpu", "hardware.cpu.model" }, { "cpus", "hardware.cpu.threads" },
		{ "memory_bytes", "hardware.memory.total_bytes" }, { "kernel", "hardware.os.kernel" },
		{ "machine", "hardware.cpu.architecture" },
	};

	for (size_t i = 0; host->kind == JSON_OBJECT && i < host->count; i++)
		put_renamed(r, member, COUNT(member), host->key[i], &host->item[i]);
}

/* Means of the phases of a start: client.cold.load weights. */
static void put_start(struct reading *r, struct str key, const struct json_value *start)
{
	const struct json_value *phases = json_get(start, "phases");
	char prefix[NAME_BYTES];

	snprintf(prefix, sizeof(prefix), "client.%.*s", (int)key.n, key.p);
	cells_put_json(r->cells, prefix, STR("ready_s"),
		       json_get(json_get(start, "ready_s"), "mean"));
	for (size_t i = 0; phases && phases->kind == JSON_OBJECT && i < phases->count; i++)
		cells_put_json(r->cells, prefix, phases->key[i], json_get(&phases->item[i], "mean"));
}

/* Seconds from the start of all requests to the end of each: what serving calls e2el. */
static void put_request_times(struct reading *r, const struct json_value *percentiles)
{
	for (size_t i = 0; percentiles->kind == JSON_OBJECT && i < percentiles->count; i++) {
		struct value v = value_of(&percentiles->item[i]);
		struct str p = percentiles->key[i];
		char column[NAME_BYTES];

		if (v.kind != VALUE_NUMBER)
			continue;
		v.number *= 1000;
		snprintf(column, sizeof(column), "p%.*s_e2el_ms", (int)(p.n < 16 ? p.n : 16), p.p);
		put_metric_value(r, str_of(column), v);
	}
}

/* is_offline: options are among the facts, because there is no separate list. */
static bool put_offline(struct reading *r, struct str key, const struct json_value *v,
			bool is_offline)
{
	static const char *const metric[] = {
		"std_latency", "median_latency", "min_latency", "max_latency", "output_throughput",
		"total_token_throughput", "latency_per_output_token", "first_third_latency",
		"last_third_latency", "drift_share",
	};
	static const char *const aside[] = { "warmup", "elapsed_times", "model_id", "told", "baseline" };

	for (size_t i = 0; i < COUNT(metric); i++)
		if (str_is(key, metric[i])) {
			put_metric(r, key, v);
			return true;
		}
	for (size_t i = 0; i < COUNT(aside); i++)
		if (str_is(key, aside[i]))
			return true;
	if (str_is(key, "engine_args"))
		put_engine_args(r, v);
	else if (str_is(key, "engine"))
		put_engine(r, v);
	else if (str_is(key, "host"))
		put_host(r, v);
	else if (str_is(key, "load"))
		cells_put_json(r->cells, NULL, STR("server_startup_s"), json_get(v, "ready_s"));
	else if (str_is(key, "cold") || str_is(key, "warm"))
		put_start(r, key, v);
	else if (str_is(key, "request_time_percentiles"))
		put_request_times(r, v);
	else if (str_is(key, "seed") || (is_offline && is_load_option(key)))
		cells_put_json(r->cells, "benchmark", key, v);
	else
		return false;
	return true;
}

/* ---- everything ---- */

static void put_list_tags(struct reading *r, const struct json_value *list)
{
	struct json_value yes = { .kind = JSON_TRUE };

	for (size_t i = 0; list->kind == JSON_ARRAY && i < list->count; i++)
		if (list->item[i].kind == JSON_STRING)
			cells_put_json(r->cells, "tags", list->item[i].text, &yes);
}

static void put_roles(struct reading *r, const struct json_value *list)
{
	for (size_t i = 0; list->kind == JSON_ARRAY && i < list->count; i++) {
		struct str role = json_text(json_get(&list->item[i], "role"), STR(""));
		char prefix[NAME_BYTES];

		name_of(prefix, "", role, "");
		if (!role.n || str_is(role, "serve"))
			continue;
		cells_put_json(r->cells, prefix, STR("host"), json_get(&list->item[i], "host"));
		cells_put_json(r->cells, prefix, STR("gpus"), json_get(&list->item[i], "gpus"));
	}
}

/* Except options that name files or always differ, which would distinguish equal runs. */
static void put_options(struct reading *r, const struct json_value *options)
{
	static const char *const aside[] = {
		"request_id_prefix", "metadata", "result_filename", "result_dir", "output_json",
		"report", "quiet",
		"fail_if", "allow_unjudged", "junit", "summary",
	};

	for (size_t i = 0; options && options->kind == JSON_OBJECT && i < options->count; i++) {
		bool is_aside = false;

		for (size_t k = 0; k < COUNT(aside); k++)
			is_aside |= str_is(options->key[i], aside[k]);
		if (!is_aside)
			cells_put_json(r->cells, "benchmark", options->key[i], &options->item[i]);
	}
}

static bool put_own_object(struct reading *r, struct str key, const struct json_value *v)
{
	if (str_is(key, "options"))
		put_options(r, v);
	else if (str_is(key, "provenance"))
		cells_put_members(r->cells, "provenance", v);
	else if (str_is(key, "system"))
		put_system(r, v);
	else if (str_is(key, "server"))
		cells_put_members(r->cells, "system.server", v);
	else if (str_is(key, "steady_state"))
		put_steady(r, v);
	else if (str_is(key, "derived"))
		cells_put_members(r->cells, "derived", v);
	else if (str_is(key, "failures"))
		put_failures(r, v);
	else if (str_is(key, "tags"))
		put_list_tags(r, v);
	else if (str_is(key, "roles"))
		put_roles(r, v);
	else if (str_is(key, "correctness"))
		cells_put_members(r->cells, "correctness", v);
	else if (str_is(key, "priorities"))
		put_classes(r, v);
	else if (str_is(key, "priority_cost"))
		put_costs(r, v);
	else if (str_is(key, "runs") && v->kind == JSON_ARRAY)
		put_cache_runs(r, v);
	else if (str_is(key, "runs"))
		cells_put_json(r->cells, NULL, STR("client.runs"), json_get(v, "count"));
	else
		return false;
	return true;
}

void put_ours(struct reading *r, const struct json_value *ours)
{
	static const struct rename plain[] = {
		{ "verdict", "" }, { "verdicts", "" }, { "reasons", "" }, { "notes", "" },
		{ "schema_version", "" }, { "start_ns", "" },
		{ "stop_ns", "" }, { "series", "" }, { "sketches", "" },
		{ "dataset", "benchmark.dataset_name" }, { "version", "environment.profllm" },
		{ "build", "environment.build" }, { "profiled", "profiled" },
		{ "interrupted", "interrupted" }, { "cached_share", "cached_share" },
		{ "cached_tokens", "total_cached_tokens" }, { "endpoints", "" },
		{ "input_throughput", "input_throughput" }, { "failed", "failed" },
		{ "prompt_salt_key", "" }, { "caching_speedup", "caching_speedup" },
		{ "repeat_count", "benchmark.repeat_count" },
		{ "repeat_order", "benchmark.repeat_order" },
		{ "warmup_pass", "benchmark.warmup_pass" },
		{ "prompt_tokens", "total_input_tokens" },
		{ "output_tokens", "total_output_tokens" },
		{ "prompt_tokens_per_second", "input_throughput" },
		{ "output_tokens_per_second", "output_throughput" },
		{ "total_prompt_tokens", "total_input_tokens" },
		{ "total_output_tokens", "total_output_tokens" },
		{ "counted_tokens_per_second", "counted_token_throughput" },
		{ "counted_output_tokens_per_second", "counted_output_throughput" },
	};

	/* An engine's results have the time of their report alone. */
	static const char *const clock[] = { "start_ns", "stop_ns" };

	if (!ours || ours->kind != JSON_OBJECT)
		return;
	for (size_t i = 0; i < COUNT(clock) && isnan(r->timestamp_s); i++)
		r->timestamp_s = json_real(json_get(ours, clock[i]), NAN) / 1e9;
	put_trust(r, ours);
	for (size_t i = 0; i < ours->count; i++) {
		struct str key = ours->key[i];
		const struct json_value *v = &ours->item[i];

		if (!put_renamed(r, plain, COUNT(plain), key, v) && !put_budget(r, key, v) &&
		    !put_kept(r, key, v) && !put_spread(r, key, v) &&
		    !put_own_object(r, key, v) &&
		    !put_offline(r, key, v, json_get(ours, "options") == NULL))
			cells_put_json(r->cells, "client", key, v);
	}
}

/* ---- servers ---- */

static size_t size_of(const struct json_value *v)
{
	return v && v->kind == JSON_ARRAY ? v->count : 0;
}

static bool is_true(const struct json_value *v)
{
	return v && v->kind == JSON_TRUE;
}

static void role_prefix(struct str role, char out[NAME_BYTES])
{
	bool is_taken = false;

	if (!role.n || str_is(role, "serve")) {
		snprintf(out, NAME_BYTES, "server");
		return;
	}
	for (size_t i = 0; i < COUNT(group); i++)
		is_taken |= str_is(role, group[i]);
	snprintf(out, NAME_BYTES, "%s%.*s", is_taken ? "role_" : "",
		 (int)(role.n < 64 ? role.n : 64), role.p);
	for (char *p = out; *p; p++)
		*p = *p == '.' ? '_' : *p;
}

/* The server that answers the load: its settings other than arguments, and what it reported. */
static void put_serving(struct reading *r, const struct json_value *server)
{
	const struct json_value *capacity = json_get(server, "capacity");

	cells_put_json(r->cells, NULL, STR("server_startup_s"), json_get(server, "startup_s"));
	cells_put_json(r->cells, NULL, STR("kv_cache_tokens"), json_get(capacity, "kv_tokens"));
	cells_put_json(r->cells, NULL, STR("kv_cache_concurrency"),
		       json_get(capacity, "max_concurrency"));
}

/*
 * Which runs shared the starts of their servers: the runs that these were started for. Unknown,
 * unless all of them name one.
 */
static void put_session(struct reading *r, const struct json_value *list)
{
	struct buf text = { 0 };
	struct str last = { 0 };
	bool is_known = size_of(list) > 0;

	for (size_t i = 0; i < size_of(list); i++) {
		struct str by = json_text(json_get(&list->item[i], "started_by"), STR(""));

		is_known &= by.n > 0;
		if (str_eq(by, last))
			continue;
		buf_add_text(&text, text.len ? "," : "");
		buf_add_str(&text, by);
		last = by;
	}
	if (is_known)
		cells_put_text(r->cells, "provenance.session", buf_str(&text));
	buf_release(&text);
}

static struct str servers_column(const char *prefix, char out[NAME_BYTES])
{
	snprintf(out, NAME_BYTES, "%.100s.servers", prefix);
	return str_of(out);
}

static void put_servers(struct reading *r, const struct json_value *list)
{
	size_t gpus = 0;
	char prefix[NAME_BYTES], name[NAME_BYTES];

	for (size_t i = 0; i < size_of(list); i++) {
		const struct json_value *s = &list->item[i], *same;
		struct str role = json_text(json_get(s, "role"), STR("serve"));
		double servers = 0;

		gpus += size_of(json_get(s, "gpus"));
		if (is_true(json_get(s, "is_serving")))
			put_serving(r, s);
		role_prefix(role, prefix);
		for (size_t k = 0; k < list->count; k++) {
			same = json_get(&list->item[k], "role");
			servers += str_eq(json_text(same, STR("serve")), role);
		}
		cells_put_members(r->cells, prefix, json_get(s, "arguments"));
		cells_put_json(r->cells, prefix, STR("env"), json_get(s, "env"));
		cells_put_json(r->cells, prefix, STR("container"), json_get(s, "container"));
		cells_put(r->cells, servers_column(prefix, name),
			  (struct value){ .kind = VALUE_NUMBER, .number = servers });
	}
	if (list && list->kind == JSON_ARRAY)
		cells_put_number(r->cells, "gpus", (double)gpus);
}

/* ---- the parts ---- */

static void put_config(struct reading *r, const struct json_value *config)
{
	static const struct rename top[] = {
		{ "name", "name" }, { "mode", "mode" }, { "repeat", "repeat" },
		{ "repeats", "repeats" }, { "hash", "config_hash" },
	};

	for (size_t i = 0; config && i < config->count; i++)
		put_renamed(r, top, COUNT(top), config->key[i], &config->item[i]);
	cells_put_members(r->cells, "server", json_get(config, "server"));
	put_servers(r, json_get(config, "servers"));
	put_session(r, json_get(config, "servers"));
	put_options(r, json_get(config, "benchmark"));
	cells_put_members(r->cells, "resources", json_get(config, "resources"));
	cells_put_members(r->cells, "tags", json_get(config, "tags"));
}

static void put_results(struct reading *r, const struct json_value *results)
{
	static const struct {
		const char *mode;
		int (*put)(struct reading *r, const struct json_value *v, struct err *e);
	} offline[] = {
		{ "throughput", put_throughput }, { "prioritization", put_throughput },
		{ "prefix-caching", put_throughput }, { "long-document-qa", put_throughput },
		{ "latency", put_latency }, { "startup", put_startup },
	};
	struct json_value rest = { .kind = JSON_OBJECT };

	if (!results)
		return;
	rest.key = arena_alloc(r->scratch, (results->count + 1) * sizeof(*rest.key));
	rest.item = arena_alloc(r->scratch, (results->count + 1) * sizeof(*rest.item));
	for (size_t i = 0; i < results->count; i++) {
		bool is_offline = false;

		for (size_t k = 0; k < COUNT(offline); k++)
			if (str_is(results->key[i], offline[k].mode) &&
			    results->item[i].kind == JSON_OBJECT) {
				offline[k].put(r, &results->item[i], NULL);
				is_offline = true;
			}
		if (is_offline)
			continue;
		rest.key[rest.count] = results->key[i];
		rest.item[rest.count++] = results->item[i];
	}
	put_serve(r, &rest, NULL);
}

static void put_error(struct reading *r, const struct json_value *error)
{
	static const struct rename member[] = {
		{ "stage", "error_stage" }, { "category", "error_category" },
		{ "reason", "error_reason" },
	};

	for (size_t i = 0; error && i < error->count; i++)
		put_renamed(r, member, COUNT(member), error->key[i], &error->item[i]);
}

static void put_rest(struct reading *r, const struct json_value *v)
{
	const struct json_value *trust = json_get(v, "trust");
	const struct json_value *budget = json_get(trust, "error_budget");
	const struct json_value *profiled = json_get(json_get(v, "profiling"), "enabled");

	put_trust(r, trust);
	for (size_t i = 0; budget && budget->kind == JSON_OBJECT && i < budget->count; i++)
		put_budget(r, budget->key[i], &budget->item[i]);
	if (profiled)
		cells_put_json(r->cells, NULL, STR("profiled"), profiled);
	put_system(r, json_get(v, "system"));
	cells_put_members(r->cells, "environment", json_get(v, "environment"));
	cells_put_members(r->cells, "provenance", json_get(v, "provenance"));
	if (json_get(v, "warnings"))
		cells_put_number(r->cells, "warnings", (double)size_of(json_get(v, "warnings")));
}

static int put_time(struct reading *r, const struct json_value *at, struct err *e)
{
	if (!at || at->kind == JSON_NULL)
		return 0;
	r->timestamp_s = at->kind == JSON_STRING ? time_of(at->text) : json_real(at, NAN);
	if (isfinite(r->timestamp_s))
		return 0;
	if (at->kind != JSON_STRING)
		return err_set(e, ERR_PARSE, "timestamp: expected a time such as " TIME_EXAMPLE
			       ", got %s", kind_name(at));
	return err_set(e, ERR_PARSE, "timestamp: expected a time such as " TIME_EXAMPLE ", got '%.*s'",
		       (int)(at->text.n < 64 ? at->text.n : 64), at->text.p);
}

int put_document(struct reading *r, const struct json_value *v, struct err *e)
{
	static const struct rename top[] = {
		{ "suite", "suite" }, { "status", "status" }, { "duration", "experiment_duration_s" },
	};
	const struct json_value *config, *results, *error, *trust, *system;
	struct str status;

	if (text_at(v, "run_id", &r->run_id, e) < 0 || text_at(v, "status", &status, e) < 0 ||
	    object_at(v, "config", &config, e) < 0 || object_at(v, "results", &results, e) < 0 ||
	    object_at(v, "error", &error, e) < 0 || object_at(v, "trust", &trust, e) < 0 ||
	    object_at(v, "system", &system, e) < 0 || put_time(r, json_get(v, "timestamp"), e) < 0)
		return -1;
	if (str_is(status, "running"))
		return err_set(e, ERR_RUN, READ_NOT_ENDED ": it is still running, or it was interrupted "
			       "and has no result; profllm run with --resume runs it again");
	if (r->run_id.n > RUN_ID_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "run_id: expected at most %d bytes, got %zu",
			       RUN_ID_BYTES_MAX, r->run_id.n);
	if (!json_get(v, "schema_version"))
		note(r, "The document has no schema_version.");
	if (!json_get(v, "environment"))
		note(r, "The document has no environment: versions are not known.");
	for (size_t i = 0; i < v->count; i++)
		put_renamed(r, top, COUNT(top), v->key[i], &v->item[i]);
	put_config(r, config);
	put_rest(r, v);
	put_results(r, results);
	put_error(r, error);
	return 0;
}
