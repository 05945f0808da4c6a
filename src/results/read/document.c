/* SPDX-License-Identifier: Apache-2.0 */
/* document.c - see document.h. */
#include "results/read/document.h"

#include <string.h>

#include "core/json/write.h"
#include "results/read/frame.h"
#include "results/read/kind.h"

/* Names that the document has and result files have otherwise. */
static const struct { const char *document, *result; } renamed[] = {
	{ "completed_requests", "completed" }, { "failed_requests", "failed" },
};
/* Modes whose whole result is in an object of their name. */
static const char *const mode[] = {
	"throughput", "latency", "startup", "prioritization", "prefix-caching", "long-document-qa",
};
/* Arguments for where a server listens, and others without effect on its speed. */
static const char *const aside[] = {
	"host", "port", "uds", "seed", "api_key", "served_model_name", "root_path", "ssl_keyfile",
	"ssl_certfile",
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static void put(struct json_value *object, struct str key, struct json_value v)
{
	object->key[object->count] = key;
	object->item[object->count++] = v;
}

static struct json_value object_of(size_t room, struct arena *a)
{
	struct json_value v = { .kind = JSON_OBJECT };

	v.key = arena_alloc(a, (room + 1) * sizeof(*v.key));
	v.item = arena_alloc(a, (room + 1) * sizeof(*v.item));
	return v;
}

static size_t size_of(const struct json_value *v)
{
	return v && v->kind == JSON_OBJECT ? v->count : 0;
}

bool document_is(const struct json_value *v)
{
	const struct json_value *config = json_get(v, "config"), *results = json_get(v, "results");

	return result_kind(v) == RESULT_DOCUMENT && config->kind == JSON_OBJECT &&
	       (!results || results->kind == JSON_OBJECT || results->kind == JSON_NULL);
}

static bool is_true(const struct json_value *v)
{
	return v && (v->kind == JSON_TRUE || (v->kind == JSON_STRING && str_is(v->text, "true")));
}

/* "offload-cold-max_num_seqs=4": the part before the first pair; empty if there is none. */
static struct str own_name(struct str name)
{
	const char *pair = name.n ? memchr(name.p, '=', name.n) : NULL;

	if (!pair)
		return name;
	while (pair > name.p && *pair != '-')
		pair--;
	return (struct str){ name.p, (size_t)(pair - name.p) };
}

static void put_results(struct json_value *row, const struct json_value *results,
			bool is_decode)
{
	for (size_t i = 0; i < results->count; i++) {
		struct str key = results->key[i];

		for (size_t k = 0; k < COUNT(renamed); k++)
			if (str_is(key, renamed[k].document))
				key = str_of(renamed[k].result);
		if (!str_is(key, "profllm") && !(is_decode && memmem(key.p, key.n, "ttft", 4)))
			put(row, key, results->item[i]);
	}
}

/* The given arguments; documents of other programs only have the server's parameters. */
static const struct json_value *arguments(const struct json_value *config)
{
	const struct json_value *list = json_get(config, "servers");

	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		if (is_true(json_get(&list->item[i], "is_serving")))
			return json_get(&list->item[i], "arguments");
	return list ? NULL : json_get(config, "server");
}

/*
 * What distinguishes servers without a log: the engine's commit and release, the address and the
 * arguments. Equal ones may still have been several servers, so sessions are never overcounted.
 */
static void put_identity(struct buf *out, const struct json_value *v, const struct json_value *args)
{
	const struct json_value *servers = json_get(json_get(v, "config"), "servers");
	const struct json_value *part[] = {
		json_get(json_get(v, "provenance"), "engine_commit"),
		json_get(json_get(json_get(v, "environment"), "server"), "version"), args,
	};
	struct json_writer w = json_writer(out);

	json_begin_array(&w);
	for (size_t i = 0; i < COUNT(part); i++)
		if (part[i])
			json_put_value(&w, part[i]);
	for (size_t i = 0; servers && servers->kind == JSON_ARRAY && i < servers->count; i++)
		json_put_str(&w, json_text(json_get(&servers->item[i], "url"), STR("")));
	json_end_array(&w);
}

/*
 * Equal in documents whose servers are the same: the runs that started them, in documents of
 * earlier releases their logs, else put_identity; empty: nothing is known of its server.
 */
static struct str server_of(const struct json_value *v, struct arena *a)
{
	const struct json_value *config = json_get(v, "config"), *args = arguments(config);
	const struct json_value *list = json_get(config, "servers");
	struct buf text = { 0 };

	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++) {
		struct str log = json_text(json_get(&list->item[i], "log"), STR(""));
		struct str by = json_text(json_get(&list->item[i], "started_by"), log);

		if (by.n)
			buf_printf(&text, "%.*s\n", (int)by.n, by.p);
	}
	if (!text.len && size_of(args))
		put_identity(&text, v, args);
	return arena_take(a, &text);
}

static struct json_value ours(const struct json_value *v, const struct json_value *results,
			      struct arena *a)
{
	const struct json_value *had = json_get(results, "profllm"), *config = json_get(v, "config");
	const struct json_value *verdict = json_get(json_get(v, "trust"), "verdict");
	const struct json_value *verdicts = json_get(json_get(v, "trust"), "verdicts");
	const struct json_value *reasons = json_get(json_get(v, "trust"), "reasons");
	const struct json_value *id = json_get(v, "run_id");
	const struct json_value *options = json_get(config, "benchmark");
	const struct json_value *system = json_get(v, "system");
	struct json_value out = object_of(size_of(had) + 8, a);
	struct str server = server_of(v, a);

	for (size_t i = 0; i < size_of(had); i++)
		put(&out, had->key[i], had->item[i]);
	if (verdict)
		put(&out, STR("verdict"), *verdict);
	if (size_of(verdicts) && !json_get(had, "verdicts"))
		put(&out, STR("verdicts"), *verdicts);
	if (id && id->kind == JSON_STRING)
		put(&out, STR("run_id"), *id);
	if (reasons)
		put(&out, STR("reasons"), *reasons);
	if (options && options->kind == JSON_OBJECT)
		put(&out, STR("options"), *options);
	if (json_bool(json_get(json_get(v, "profiling"), "enabled"), false))
		put(&out, STR("profiled"), (struct json_value){ .kind = JSON_TRUE });
	if (size_of(system) && !json_get(had, "system"))
		put(&out, STR("system"), *system);
	if (server.n)
		put(&out, STR("server_key"), (struct json_value){ .kind = JSON_STRING, .text = server });
	return out;
}

static void put_arguments(struct json_value *row, const struct json_value *args)
{
	for (size_t i = 0; i < size_of(args); i++) {
		bool is_aside = args->item[i].kind == JSON_NULL;

		for (size_t k = 0; k < COUNT(aside); k++)
			is_aside |= str_is(args->key[i], aside[k]);
		for (size_t k = 0; k < row->count; k++)
			is_aside |= str_eq(row->key[k], args->key[i]);
		if (!is_aside)
			put(row, args->key[i], args->item[i]);
	}
}

const struct json_value *document_row(const struct json_value *v, struct arena *a)
{
	const struct json_value *results = json_get(v, "results"), *config = json_get(v, "config");
	const struct json_value *args = arguments(config);
	struct str name = own_name(json_text(json_get(config, "name"), STR("")));
	struct json_value *row;

	for (size_t i = 0; i < COUNT(mode); i++)
		if (size_of(json_get(results, mode[i])))
			results = json_get(results, mode[i]);
	if (!size_of(results))
		return NULL;
	row = arena_alloc(a, sizeof(*row));
	*row = object_of(size_of(results) + size_of(args) + 2, a);
	put_results(row, results, is_true(json_get(json_get(config, "tags"), "decode_only")));
	put_arguments(row, args);
	if (name.n)
		put(row, STR("experiment"), (struct json_value){ .kind = JSON_STRING, .text = name });
	put(row, STR("profllm"), ours(v, results, a));
	return row;
}

const char *document_failure(const struct json_value *v, struct arena *a)
{
	const struct json_value *error = json_get(v, "error");
	struct str stage = json_text(json_get(error, "stage"), STR(""));
	struct str reason = json_text(json_get(error, "reason"), STR("no reason is recorded"));

	if (str_is(json_text(json_get(v, "status"), STR("")), "running"))
		return "it has not ended: it is still running, or it was interrupted and profllm run "
		       "with --resume runs it again";
	return arena_printf(a, "it failed%s%.*s: %.*s", stage.n ? " in the stage " : "", (int)stage.n,
			    stage.p, (int)reason.n, reason.p);
}
