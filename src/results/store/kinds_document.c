/* SPDX-License-Identifier: Apache-2.0 */
/* kinds_document.c - see kinds.h: what `profllm run` writes of one experiment. */
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
	"priority", "prefix_cache",
};

static const char *kind_name(const struct json_value *v)
{
	static const char *const name[] = {
		"null", "false", "true", "a number", "a number", "a text", "a list", "an object",
	};

	return name[v->kind];
}

/* NULL for null, too. -1: it is neither an object nor null. */
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

/* The server that answers the load: what it was given beside its arguments, and what it said. */
static void put_serving(struct reading *r, const struct json_value *server)
{
	const struct json_value *capacity = json_get(server, "capacity");

	cells_put_json(r->cells, NULL, STR("server_startup_s"), json_get(server, "startup_s"));
	cells_put_json(r->cells, NULL, STR("kv_cache_tokens"), json_get(capacity, "kv_tokens"));
	cells_put_json(r->cells, NULL, STR("kv_cache_concurrency"),
		       json_get(capacity, "max_concurrency"));
}

/*
 * Which runs shared the starts of their servers: whom these were started for. Unknown, unless that
 * is told of all of them.
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
