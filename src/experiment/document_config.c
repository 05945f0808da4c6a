/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/document_config.c - the document's "config": what was asked, and of which servers. */
#include "experiment/document_parts.h"

#include <inttypes.h>
#include <math.h>

#include "base/codec.h"
#include "base/redact.h"
#include "engine/args.h"
#include "experiment/config.h"

/* ---- the values that a server used ---- */

struct used {
	struct config_told told;
	const char *version, *unknown; /* of the defaults; why there is none */
	const struct json_value *values;
};

/* What an engine without a server says, under the names of its arguments. */
static const struct json_value *reported_alone(struct document *d, const struct json_value *engine)
{
	static const struct { const char *theirs, *name; } renamed[] = {
		{ "has_prefix_caching", "enable_prefix_caching" }, { "is_eager", "enforce_eager" },
	};
	const struct json_value *said = json_get(engine, "told");
	struct json_value *out = arena_alloc(&d->arena, sizeof(*out));
	size_t n = said && said->kind == JSON_OBJECT ? said->count : 0;

	out->kind = JSON_OBJECT;
	out->key = arena_alloc(&d->arena, n * sizeof(*out->key) + 1);
	out->item = arena_alloc(&d->arena, n * sizeof(*out->item) + 1);
	for (size_t i = 0; i < n; i++) {
		struct str name = said->key[i];
		const struct engine_arg *arg;

		for (size_t k = 0; k < sizeof(renamed) / sizeof(*renamed); k++)
			if (str_is(name, renamed[k].theirs))
				name = str_of(renamed[k].name);
		arg = engine_arg_find(name);
		if (!arg || redact_is_secret(name) || said->item[i].kind == JSON_OBJECT)
			continue;
		out->key[out->count] = name;
		out->item[out->count++] = said->item[i];
	}
	return out;
}

static void find_used(struct document *d, size_t i, struct used *out)
{
	const struct experiment_server *s = &d->x->server[i];
	const struct outcome_server *o = d->o->server ? &d->o->server[i] : NULL;
	const struct json_value *engine = json_get(json_get(d->result, "profllm"), "engine");
	struct json_value *reported = NULL;
	const char *name = NULL;

	*out = (struct used){ .told.is_engine_alone = !mode_is_served(d->x->mode) };
	if (out->told.is_engine_alone) {
		name = json_text(json_get(engine, "name"), (struct str){ 0 }).p;
		out->version = json_text(json_get(engine, "version"), (struct str){ 0 }).p;
		out->told.reported = reported_alone(d, engine);
	} else if (o) {
		out->version = o->version;
		if (o->reported.n && json_parse(&d->arena, o->reported, &reported, NULL) == 0)
			out->told.reported = reported;
	}
	out->unknown = config_defaults_version(s, name, out->version, &out->told);
	out->values = config_server_values(s, &out->told, &d->arena);
}

/*
 * Of what was measured: what was configured, and the values that servers used. Not of a version:
 * two versions with the same arguments and defaults are comparable.
 */
static uint64_t used_hash(struct document *d)
{
	uint8_t out[DIGEST_BYTES];
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	uint64_t hash = 0;

	json_begin_array(&w);
	json_put_int(&w, (int64_t)d->x->hash);
	for (size_t i = 0; i < d->x->n_servers; i++) {
		struct used used;

		find_used(d, i, &used);
		json_put_value(&w, used.values);
		if (used.told.reported)
			json_put_value(&w, used.told.reported);
	}
	json_end_array(&w);
	digest(DIGEST_SHA256, STR("profllm values"), buf_str(&text), out);
	buf_release(&text);
	for (int i = 0; i < 8; i++)
		hash = hash << 8 | out[i];
	return hash;
}

/* ---- servers ---- */

static void put_gpus(struct document *d, const struct outcome_server *o)
{
	json_begin_array(&d->w);
	for (size_t i = 0; o && i < o->n_gpus; i++) {
		json_begin_object(&d->w);
		json_key(&d->w, "index");
		json_put_int(&d->w, o->gpu[i].index);
		json_key(&d->w, "uuid");
		document_put_text(d, o->gpu[i].uuid);
		json_key(&d->w, "name");
		document_put_text(d, o->gpu[i].name);
		json_end_object(&d->w);
	}
	json_end_array(&d->w);
}

static void put_ready(struct document *d, const struct experiment_server *s)
{
	static const char *const ready[] = { "health", "port", "log", "started" };

	json_key(&d->w, "after");
	document_put_words(d, s->after);
	json_key(&d->w, "ready");
	json_put_text(&d->w, ready[s->ready]);
	json_key(&d->w, "ready_timeout_s");
	document_put_number(d, s->ready_timeout_s);
	json_key(&d->w, "grace_s");
	document_put_number(d, s->grace_s);
}

/* What became of it; o NULL: nothing was begun. */
static void put_outcome(struct document *d, const struct outcome_server *o)
{
	struct json_value *capacity = NULL;

	json_key(&d->w, "gpus");
	put_gpus(d, o);
	json_key(&d->w, "startup_s");
	document_put_number(d, o ? o->startup_s : NAN);
	json_key(&d->w, "reused");
	json_put_bool(&d->w, o && o->is_reused);
	json_key(&d->w, "started_by");
	document_put_text(d, o ? o->started_by : NULL);
	json_key(&d->w, "capacity");
	if (o && o->capacity.n && json_parse(&d->arena, o->capacity, &capacity, NULL) < 0)
		capacity = NULL;
	document_put(d, capacity, DOCUMENT_NULLS);
	json_key(&d->w, "log");
	document_put_path(d, o ? o->log : NULL);
	json_key(&d->w, "has_ended");
	json_put_bool(&d->w, o && o->is_ended);
}

static void put_address(struct document *d, const struct experiment_server *s,
			const struct outcome_server *o)
{
	json_key(&d->w, "url");
	document_put_text(d, o && o->url ? o->url : s->url);
	json_key(&d->w, "version");
	document_put_text(d, o ? o->version : NULL);
	json_key(&d->w, "host");
	document_put_text(d, s->host);
	json_key(&d->w, "port");
	if (s->port)
		json_put_int(&d->w, s->port);
	else
		json_put_null(&d->w);
}

/* As it was asked for, and which image it was. */
static void put_container(struct document *d, const struct json_value *container,
			  const char *digest)
{
	if (!container) {
		json_put_null(&d->w);
		return;
	}
	json_begin_object(&d->w);
	document_put_members(d, container, NULL, DOCUMENT_INF);
	if (digest) {
		json_key(&d->w, "digest");
		json_put_text(&d->w, digest);
	}
	json_end_object(&d->w);
}

static void put_server(struct document *d, size_t i)
{
	const struct experiment_server *s = &d->x->server[i];
	const struct outcome_server *o = d->o->server ? &d->o->server[i] : NULL;

	json_begin_object(&d->w);
	json_key(&d->w, "name");
	document_put_text(d, s->name ? s->name : "server");
	json_key(&d->w, "role");
	json_put_text(&d->w, server_role_name(s->role));
	json_key(&d->w, "is_serving");
	json_put_bool(&d->w, i == d->x->serving);
	json_key(&d->w, "command");
	if (s->url)
		json_put_null(&d->w);
	else
		document_put_words(d, o && o->argv ? o->argv : (const char *const *)s->command);
	put_address(d, s, o);
	json_key(&d->w, "arguments");
	json_begin_object(&d->w);
	document_put_members(d, s->args, NULL, DOCUMENT_INF);
	json_end_object(&d->w);
	json_key(&d->w, "extra_args");
	document_put_words(d, (const char *const *)s->extra_args);
	json_key(&d->w, "env");
	document_put_env(d, s->env);
	json_key(&d->w, "container");
	put_container(d, s->container, o ? o->image_digest : NULL);
	put_ready(d, s);
	put_outcome(d, o);
	json_end_object(&d->w);
}

/* Names with underscores, however they came. */
static void put_options(struct document *d, const struct json_value *options)
{
	if (!options || options->kind != JSON_OBJECT) {
		json_put_null(&d->w);
		return;
	}
	json_begin_object(&d->w);
	for (size_t i = 0; i < options->count; i++) {
		char *name = arena_text(&d->arena, options->key[i]);

		for (char *p = name; *p; p++)
			*p = *p == '-' ? '_' : *p;
		json_key(&d->w, name);
		document_put(d, &options->item[i], DOCUMENT_INF);
	}
	json_end_object(&d->w);
}

static void put_wanted_gpus(struct document *d, const struct experiment_resources *r)
{
	if (r->want == GPUS_LIST)
		document_put_words(d, r->list);
	else if (r->want == GPUS_COUNT)
		json_put_int(&d->w, r->count);
	else
		json_put_text(&d->w, r->want == GPUS_NONE ? "none" : "auto");
}

static void put_resources(struct document *d)
{
	const struct experiment_resources *r = &d->x->resources;

	json_begin_object(&d->w);
	json_key(&d->w, "gpus");
	put_wanted_gpus(d, r);
	json_key(&d->w, "shared");
	json_put_bool(&d->w, r->is_shared);
	json_key(&d->w, "memory_free");
	document_put_number(d, r->memory_free_min);
	json_key(&d->w, "wait_s");
	if (isinf(r->wait_s))
		json_put_text(&d->w, "inf");
	else
		document_put_number(d, r->wait_s);
	json_key(&d->w, "ports");
	json_begin_array(&d->w);
	json_put_int(&d->w, r->port_first);
	json_put_int(&d->w, r->port_last);
	json_end_array(&d->w);
	json_end_object(&d->w);
}

static void put_telemetry(struct document *d)
{
	const struct experiment_telemetry *t = &d->x->telemetry;
	const struct { const char *key; bool is_on; } parts[] = {
		{ "gpu", t->gpu }, { "host", t->host }, { "process", t->process },
		{ "server", t->server },
	};

	json_begin_object(&d->w);
	json_key(&d->w, "enabled");
	json_put_bool(&d->w, t->is_enabled);
	json_key(&d->w, "interval_s");
	document_put_number(d, t->interval_s);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		json_key(&d->w, parts[i].key);
		json_put_bool(&d->w, parts[i].is_on);
	}
	json_end_object(&d->w);
}

static void put_hash(struct document *d, const char *key, uint64_t hash)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	json_key(&d->w, key);
	json_put_text(&d->w, text);
}

static void put_name(struct document *d)
{
	const struct experiment *x = d->x;

	json_key(&d->w, "name");
	document_put_text(d, x->name ? x->name : "experiment");
	json_key(&d->w, "mode");
	json_put_text(&d->w, experiment_mode_name(x->mode));
	json_key(&d->w, "repeat");
	json_put_int(&d->w, x->repeat ? x->repeat : 1);
	json_key(&d->w, "repeats");
	json_put_int(&d->w, x->repeats ? x->repeats : 1);
	put_hash(d, "hash", used_hash(d));
	put_hash(d, "configured_hash", x->hash);
}

/* The server that the load goes to. */
static void put_serving(struct document *d)
{
	struct used used;

	if (d->x->serving >= d->x->n_servers) {
		json_key(&d->w, "server");
		json_put_null(&d->w);
		json_key(&d->w, "server_defaults");
		json_put_null(&d->w);
		return;
	}
	find_used(d, d->x->serving, &used);
	json_key(&d->w, "server");
	put_options(d, used.values);
	json_key(&d->w, "server_defaults");
	json_begin_object(&d->w);
	json_key(&d->w, "version");
	document_put_text(d, used.unknown ? NULL : used.version);
	json_key(&d->w, "reason");
	document_put_text(d, used.unknown);
	json_key(&d->w, "reported");
	json_begin_object(&d->w);
	document_put_members(d, used.told.reported, NULL, DOCUMENT_INF);
	json_end_object(&d->w);
	json_key(&d->w, "not_reported");
	config_not_reported(used.values, &used.told, &d->w);
	json_end_object(&d->w);
}

void document_put_config(struct document *d)
{
	const struct experiment *x = d->x;

	json_begin_object(&d->w);
	put_name(d);
	put_serving(d);
	json_key(&d->w, "servers");
	json_begin_array(&d->w);
	for (size_t i = 0; i < x->n_servers; i++)
		put_server(d, i);
	json_end_array(&d->w);
	json_key(&d->w, "benchmark");
	put_options(d, x->benchmark);
	json_key(&d->w, "resources");
	put_resources(d);
	json_key(&d->w, "telemetry");
	put_telemetry(d);
	json_key(&d->w, "tags");
	json_begin_object(&d->w);
	document_put_members(d, x->tags, NULL, DOCUMENT_INF);
	json_end_object(&d->w);
	json_key(&d->w, "given");
	document_put(d, x->given, DOCUMENT_INF);
	json_end_object(&d->w);
}
