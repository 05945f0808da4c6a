/* SPDX-License-Identifier: Apache-2.0 */
/* kinds_ours.c - see kinds.h: what our verbs say of themselves, under "profllm" in a result. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "results/store/kinds.h"

#define COUNT(table) (sizeof(table) / sizeof(*(table)))
#define NAME_BYTES 192

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

/* What priorities cost each class: its medians over those of the same requests without any. */
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

/* ["--model", "demo", "--no-enable-prefix-caching"]: what the engine was told. */
static void put_engine_args(struct reading *r, const struct json_value *list)
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

/* Of the phases of a start, their means: client.cold.load weights. */
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

/* is_offline: options stand among the facts, because there is no list of them. */
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

/* But for those that name files or differ by nature, which tell runs apart that are alike. */
void put_options(struct reading *r, const struct json_value *options)
{
	static const char *const aside[] = {
		"request_id_prefix", "metadata", "result_filename", "result_dir", "output_json",
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
		{ "stop_ns", "" }, { "dataset", "benchmark.dataset_name" }, { "version", "environment.profllm" },
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

	if (!ours || ours->kind != JSON_OBJECT)
		return;
	if (isnan(r->timestamp_s) && json_get(ours, "start_ns"))
		r->timestamp_s = json_real(json_get(ours, "start_ns"), NAN) / 1e9;
	put_trust(r, ours);
	for (size_t i = 0; i < ours->count; i++) {
		struct str key = ours->key[i];
		const struct json_value *v = &ours->item[i];

		if (!put_renamed(r, plain, COUNT(plain), key, v) && !put_budget(r, key, v) &&
		    !put_spread(r, key, v) && !put_own_object(r, key, v) &&
		    !put_offline(r, key, v, json_get(ours, "options") == NULL))
			cells_put_json(r->cells, "client", key, v);
	}
}
