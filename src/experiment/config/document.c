/* SPDX-License-Identifier: Apache-2.0 */
/* document.c - see document.h: values as strict JSON, the parts, the whole. */
#include "experiment/config/document.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/base/redact.h"
#include "core/json/write.h"
#include "experiment/config/config.h"
#include "experiment/config/config_internal.h"
#include "experiment/config/experiment.h"
#include "host/engine/args.h"
#include "host/proc/tool.h"

/* ---- what things of an experiment are called, and giving an outcome back ---- */

const char *experiment_mode_name(enum experiment_mode mode)
{
	static const char *const name[] = {
		"serve", "throughput", "latency", "startup", "prioritization", "prefix-caching",
		"long-document-qa", "structured-output", "multi-turn",
	};

	assert(mode < MODE_COUNT);
	return name[mode];
}

const char *server_role_name(enum server_role role)
{
	static const char *const name[] = { "serve", "prefill", "decode", "proxy", "cache" };

	assert(role <= ROLE_CACHE);
	return name[role];
}

const char *outcome_status_name(enum outcome_status status)
{
	static const char *const name[] = { "completed", "partial", "failed", "running" };

	assert(status <= OUTCOME_RUNNING);
	return name[status];
}

const char *outcome_stage_name(enum outcome_stage stage)
{
	static const char *const name[] = { "config", "allocate", "start", "ready", "benchmark",
					    "collect" };

	assert(stage <= AT_COLLECT);
	return name[stage];
}

void outcome_release(struct outcome *o)
{
	arena_release(&o->arena);
}

/* ---- the document ---- */

struct document {
	struct json_writer *w;
	const struct experiment *x;
	const struct outcome *o;
	const struct json_value *result; /* of the mode; NULL: none, or unreadable */
	struct arena arena;
};

/* ---- values of a document as strict JSON ---- */

/* The length of the document's folder at the beginning of path; 0: path is not below it. */
static size_t folder_bytes(const struct document *d, const char *path)
{
	const char *own = d->x->output.path, *slash = own ? strrchr(own, '/') : NULL;
	size_t n = slash ? (size_t)(slash - own) + 1 : 0, m;
	char here[PATH_MAX];

	if (n && strncmp(path, own, n) == 0)
		return n;
	/* Folders of traces are absolute, as servers get them. */
	if (!own || own[0] == '/' || path[0] != '/' || !getcwd(here, sizeof(here)))
		return 0;
	m = strlen(here);
	m -= here[m - 1] == '/';
	if (strncmp(path, here, m) != 0 || path[m] != '/' || strncmp(path + m + 1, own, n) != 0)
		return 0;
	return m + 1 + n;
}

/* relative to the document */
static void put_path(struct document *d, const char *path)
{
	size_t n = path ? folder_bytes(d, path) : 0;

	json_put_text(d->w, path && path[n] ? path + n : path);
}

static void member_path(struct document *d, const char *key, const char *path)
{
	json_key(d->w, key);
	put_path(d, path);
}

static void put_env(struct document *d, char *const *lines)
{
	json_member_object(d->w, "env");
	for (; lines && *lines; lines++) {
		struct str value = str_of(*lines), name = str_cut(&value, '=');

		if (environment_variable(lines + 1, name)) /* the last one counts */
			continue;
		json_key_str(d->w, name);
		json_put_str(d->w, value);
	}
	json_end_object(d->w);
}

/* A value of a tree, NaN as null; NULL: nothing. */
static void put_value(struct document *d, const struct json_value *v)
{
	if (!v || (v->kind == JSON_REAL && !isfinite(v->real))) {
		json_put_null(d->w);
	} else if (v->kind == JSON_ARRAY) {
		json_begin_array(d->w);
		for (size_t i = 0; i < v->count; i++)
			put_value(d, &v->item[i]);
		json_end_array(d->w);
	} else if (v->kind == JSON_OBJECT) {
		json_begin_object(d->w);
		for (size_t i = 0; i < v->count; i++) {
			json_key_str(d->w, v->key[i]);
			put_value(d, &v->item[i]);
		}
		json_end_object(d->w);
	} else {
		json_put_value(d->w, v);
	}
}

static void member_value(struct document *d, const char *key, const struct json_value *v)
{
	json_key(d->w, key);
	put_value(d, v);
}

/* Writes the members of an object into the open one, except those named in but. */
static void put_members(struct document *d, const struct json_value *object, const char *const *but)
{
	for (size_t i = 0; object && object->kind == JSON_OBJECT && i < object->count; i++)
		if (!config_is_any(object->key[i], but, SIZE_MAX)) {
			json_key_str(d->w, object->key[i]);
			put_value(d, &object->item[i]);
		}
}

/* The object as written, an infinite number as "inf"; without an object: {}. */
static void member_settings(struct document *d, const char *key, const struct json_value *object)
{
	static const struct json_value none = { .kind = JSON_OBJECT };

	json_member_value(d->w, key, object && object->kind == JSON_OBJECT ? object : &none);
}

/* ---- the document's "config": what was asked, and of which servers ---- */

/* ---- the values that a server used ---- */

struct used {
	struct config_told told;
	const char *version, *unknown; /* of the defaults; why it is unknown */
	const struct json_value *values;
};

/* The values that an engine without a server reports, under the names of its arguments. */
static const struct json_value *reported_alone(struct document *d, const struct json_value *engine)
{
	static const struct { const char *theirs, *name; } renamed[] = {
		{ "has_prefix_caching", "enable_prefix_caching" }, { "is_eager", "enforce_eager" },
	};
	const struct json_value *said = json_get(engine, "told");
	struct json_value *out = arena_alloc(&d->arena, sizeof(*out));
	size_t n = said && said->kind == JSON_OBJECT ? said->count : 0;

	out->kind = JSON_OBJECT;
	out->key = arena_alloc(&d->arena, n * sizeof(*out->key));
	out->item = arena_alloc(&d->arena, n * sizeof(*out->item));
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
 * Hash of what was measured: the configuration, and the values that servers used. Not of versions:
 * two versions with the same arguments and defaults are comparable.
 */
static uint64_t used_hash(struct document *d)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	uint64_t hash;

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
	hash = config_digest("profllm values", buf_str(&text));
	buf_release(&text);
	return hash;
}

/* ---- servers ---- */

/* The outcome; o NULL: nothing was begun. */
static void put_outcome(struct document *d, const struct outcome_server *o)
{
	struct json_value *capacity = NULL;

	json_member_array(d->w, "gpus");
	for (size_t i = 0; o && i < o->n_gpus; i++) {
		json_begin_object(d->w);
		json_member_int(d->w, "index", o->gpu[i].index);
		json_member_text(d->w, "uuid", o->gpu[i].uuid);
		json_member_text(d->w, "name", o->gpu[i].name);
		json_end_object(d->w);
	}
	json_end_array(d->w);
	json_member_f64(d->w, "startup_s", o ? o->startup_s : NAN);
	json_member_bool(d->w, "reused", o && o->is_reused);
	json_member_text(d->w, "started_by", o ? o->started_by : NULL);
	if (o && o->capacity.n && json_parse(&d->arena, o->capacity, &capacity, NULL) < 0)
		capacity = NULL;
	member_value(d, "capacity", capacity);
	member_path(d, "log", o ? o->log : NULL);
	json_member_bool(d->w, "has_ended", o && o->is_ended);
}

/* The container as configured, and the image that was used. */
static void put_container(struct document *d, const struct json_value *container,
			  const char *digest)
{
	if (!container) {
		json_member_null(d->w, "container");
		return;
	}
	json_member_object(d->w, "container");
	for (size_t i = 0; container->kind == JSON_OBJECT && i < container->count; i++) {
		json_key_str(d->w, container->key[i]);
		json_put_value(d->w, &container->item[i]);
	}
	if (digest)
		json_member_text(d->w, "digest", digest);
	json_end_object(d->w);
}

static void put_server(struct document *d, size_t i)
{
	static const char *const ready[] = { "health", "port", "log", "started" };
	const struct experiment_server *s = &d->x->server[i];
	const struct outcome_server *o = d->o->server ? &d->o->server[i] : NULL;

	json_begin_object(d->w);
	json_member_text(d->w, "name", s->name ? s->name : "server");
	json_member_text(d->w, "role", server_role_name(s->role));
	json_member_bool(d->w, "is_serving", i == d->x->serving);
	if (s->url)
		json_member_null(d->w, "command");
	else
		json_member_texts(d->w, "command", o && o->argv ? o->argv :
						   (const char *const *)s->command);
	json_member_text(d->w, "url", o && o->url ? o->url : s->url);
	json_member_text(d->w, "version", o ? o->version : NULL);
	json_member_text(d->w, "host", s->host);
	json_key(d->w, "port");
	if (s->port)
		json_put_int(d->w, s->port);
	else
		json_put_null(d->w);
	member_settings(d, "arguments", s->args);
	json_member_texts(d->w, "extra_args", (const char *const *)s->extra_args);
	put_env(d, s->env);
	put_container(d, s->container, o ? o->image_digest : NULL);
	json_member_texts(d->w, "after", s->after);
	json_member_text(d->w, "ready", ready[s->ready]);
	json_member_f64(d->w, "ready_timeout_s", s->ready_timeout_s);
	json_member_f64(d->w, "grace_s", s->grace_s);
	put_outcome(d, o);
	json_end_object(d->w);
}

/* Names with underscores, in whatever form they were given. */
static void member_options(struct document *d, const char *key, const struct json_value *options)
{
	if (!options || options->kind != JSON_OBJECT) {
		json_member_null(d->w, key);
		return;
	}
	json_member_object(d->w, key);
	for (size_t i = 0; i < options->count; i++) {
		json_key(d->w, config_key(options->key[i], &d->arena));
		json_put_value(d->w, &options->item[i]);
	}
	json_end_object(d->w);
}

static void put_resources(struct document *d)
{
	const struct experiment_resources *r = &d->x->resources;

	json_member_object(d->w, "resources");
	if (r->want == GPUS_LIST)
		json_member_texts(d->w, "gpus", r->list);
	else if (r->want == GPUS_COUNT)
		json_member_int(d->w, "gpus", r->count);
	else
		json_member_text(d->w, "gpus", r->want == GPUS_NONE ? "none" : "auto");
	json_member_bool(d->w, "shared", r->is_shared);
	json_member_f64(d->w, "memory_free", r->memory_free_min);
	json_member_setting(d->w, "wait_s", r->wait_s);
	json_member_array(d->w, "ports");
	json_put_int(d->w, r->port_first);
	json_put_int(d->w, r->port_last);
	json_end_array(d->w);
	json_end_object(d->w);
}

static void put_telemetry(struct document *d)
{
	const struct experiment_telemetry *t = &d->x->telemetry;

	json_member_object(d->w, "telemetry");
	json_member_bool(d->w, "enabled", t->is_enabled);
	json_member_f64(d->w, "interval_s", t->interval_s);
	json_member_bool(d->w, "gpu", t->gpu);
	json_member_bool(d->w, "host", t->host);
	json_member_bool(d->w, "process", t->process);
	json_member_bool(d->w, "server", t->server);
	json_end_object(d->w);
}

static void put_hash(struct document *d, const char *key, uint64_t hash)
{
	char text[20];

	snprintf(text, sizeof(text), "%016" PRIx64, hash);
	json_member_text(d->w, key, text);
}

/* The server that the load goes to. */
static void put_serving(struct document *d)
{
	struct used used;

	if (d->x->serving >= d->x->n_servers) {
		json_member_null(d->w, "server");
		json_member_null(d->w, "server_defaults");
		return;
	}
	find_used(d, d->x->serving, &used);
	member_options(d, "server", used.values);
	json_member_object(d->w, "server_defaults");
	json_member_text(d->w, "version", used.unknown ? NULL : used.version);
	json_member_text(d->w, "reason", used.unknown);
	member_settings(d, "reported", used.told.reported);
	json_key(d->w, "not_reported");
	config_not_reported(used.values, &used.told, d->w);
	json_end_object(d->w);
}

static void put_config(struct document *d)
{
	const struct experiment *x = d->x;

	json_begin_object(d->w);
	json_member_text(d->w, "name", x->name ? x->name : "experiment");
	json_member_text(d->w, "mode", experiment_mode_name(x->mode));
	json_member_int(d->w, "repeat", x->repeat ? x->repeat : 1);
	json_member_int(d->w, "repeats", x->repeats ? x->repeats : 1);
	put_hash(d, "hash", used_hash(d));
	put_hash(d, "configured_hash", x->hash);
	put_serving(d);
	json_member_array(d->w, "servers");
	for (size_t i = 0; i < x->n_servers; i++)
		put_server(d, i);
	json_end_array(d->w);
	member_options(d, "benchmark", x->benchmark);
	put_resources(d);
	put_telemetry(d);
	member_settings(d, "tags", x->tags);
	if (x->given)
		json_member_value(d->w, "given", x->given);
	else
		json_member_null(d->w, "given");
	json_end_object(d->w);
}

/*
 * A mode's result file as the document's "results" and "trust".
 *
 * Serving: its keys are copied to "results" except for two names; statements about the client move
 * to "trust", about the system to "system". Other modes: the whole file, in an object of the mode's
 * name, and next to it the members shared with serving.
 */

/* Keys of a result's "profllm" that are elsewhere in the document. */
static const char *const elsewhere[] = {
	"verdict", "verdicts", "reasons", "notes", "options", "system", "provenance", "tags", "profiled",
	"client_lag_ms", "send_lag_ms", "skew_ms", "connect_ms", "stamp_source",
	"requests_user_stamped", "shared_read_share", "not_one_token_share",
	"usage_differs_share", "late_shared_read_share", "series", "sketches", NULL,
};
static const char *const budget[] = {
	"client_lag_ms", "send_lag_ms", "skew_ms", "connect_ms", "stamp_source",
	"requests_user_stamped", "shared_read_share", "not_one_token_share",
	"usage_differs_share", NULL,
};
/* Per request: only in detailed documents. */
static const char *const arrays[] = { "latencies", "queue_times", NULL };

/* Always there; in the other modes from this path of their result. */
static const struct common {
	const char *key, *renamed;       /* renamed: what a result of serving calls it */
	const char *throughput, *latency; /* "profllm.x": below that key */
} common[] = {
	{ "completed_requests", "completed", "profllm.finished_requests", NULL },
	{ "failed_requests", "failed", NULL, NULL },
	{ "request_throughput", NULL, "requests_per_second", NULL },
	{ "output_throughput", NULL, "profllm.output_tokens_per_second",
	  "profllm.output_throughput" },
	{ "total_token_throughput", NULL, "tokens_per_second",
	  "profllm.total_token_throughput" },
	{ "median_ttft_ms", NULL, NULL, NULL },
	{ "p95_ttft_ms", NULL, NULL, NULL },
	{ "median_tpot_ms", NULL, NULL, NULL },
	{ "p95_tpot_ms", NULL, NULL, NULL },
};
#define COUNT(table) (sizeof(table) / sizeof(*(table)))

static const struct json_value *at_path(const struct json_value *v, const char *path)
{
	struct str rest = str_of(path), head;

	if (!path)
		return NULL;
	head = str_cut(&rest, '.');
	return rest.n ? json_get(json_get(v, "profllm"), rest.p) : json_get(v, head.p);
}

/* ---- serving ---- */

/* Arrays of hundreds of numbers are on one line. */
static void put_drawn(struct document *d, const struct json_value *ours)
{
	static const char *const drawn[] = { "series", "sketches" };
	struct buf text = { 0 };

	for (size_t i = 0; i < COUNT(drawn); i++) {
		const struct json_value *v = json_get(ours, drawn[i]);
		struct json_writer line = json_writer(&text);

		if (!v)
			continue;
		line.is_compact = true;
		json_put_value(&line, v);
		json_member_raw(d->w, drawn[i], buf_str(&text));
		buf_reset(&text);
	}
	buf_release(&text);
}

static void put_serve(struct document *d)
{
	const struct json_value *r = d->result;

	for (size_t i = 0; i < r->count; i++) {
		struct str key = r->key[i];

		if (!d->x->output.is_detailed && config_is_any(key, arrays, SIZE_MAX))
			continue;
		for (size_t k = 0; k < COUNT(common); k++)
			if (common[k].renamed && str_is(key, common[k].renamed))
				key = str_of(common[k].key);
		json_key_str(d->w, key);
		if (str_is(key, "profllm")) {
			json_begin_object(d->w);
			put_members(d, &r->item[i], elsewhere);
			put_drawn(d, &r->item[i]);
			json_end_object(d->w);
		} else if (str_is(key, "request_rate")) {
			json_put_value(d->w, &r->item[i]); /* may be "inf" */
		} else {
			put_value(d, &r->item[i]);
		}
	}
	for (size_t i = 0; i < COUNT(common); i++)
		if (!json_get(r, common[i].renamed ? common[i].renamed : common[i].key))
			json_member_null(d->w, common[i].key);
}

/* ---- the others ---- */

static void put_offline(struct document *d)
{
	static const char *const moved[] = { "verdict", "reasons", "system", NULL };
	static const char *const but[] = { "profllm", NULL };
	const struct json_value *ours = json_get(d->result, "profllm");
	enum experiment_mode mode = d->x->mode;

	for (size_t i = 0; i < COUNT(common); i++) {
		const char *path = mode == MODE_LATENCY ? common[i].latency :
				   mode == MODE_STARTUP ? NULL : common[i].throughput;

		member_value(d, common[i].key, at_path(d->result, path));
	}
	json_member_object(d->w, experiment_mode_name(mode));
	put_members(d, d->result, but);
	if (ours) {
		json_member_object(d->w, "profllm");
		put_members(d, ours, moved);
		json_end_object(d->w);
	}
	json_end_object(d->w);
}

static void put_results(struct document *d)
{
	if (!d->result || d->result->kind != JSON_OBJECT) {
		json_put_null(d->w);
		return;
	}
	json_begin_object(d->w);
	if (mode_is_served(d->x->mode))
		put_serve(d);
	else
		put_offline(d);
	json_end_object(d->w);
}

/* ---- trust ---- */

static void put_reasons(struct document *d, const char *key, const struct json_value *list)
{
	json_member_array(d->w, key);
	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		put_value(d, &list->item[i]);
	json_end_array(d->w);
}

static void put_trust(struct document *d)
{
	const struct json_value *ours = json_get(d->result, "profllm");

	if (!ours) {
		json_put_null(d->w);
		return;
	}
	json_begin_object(d->w);
	member_value(d, "verdict", json_get(ours, "verdict"));
	member_value(d, "verdicts", json_get(ours, "verdicts"));
	put_reasons(d, "reasons", json_get(ours, "reasons"));
	put_reasons(d, "notes", json_get(ours, "notes"));
	if (mode_is_served(d->x->mode)) {
		json_member_object(d->w, "error_budget");
		for (const char *const *key = budget; *key; key++)
			member_value(d, *key, json_get(ours, *key));
		json_end_object(d->w);
	} else {
		json_member_null(d->w, "error_budget");
	}
	json_end_object(d->w);
}

#define DOCUMENT_INDENT 2

static const char schema_text[] =
#include "experiment/config/schema_text.h"
;

struct str document_schema(void)
{
	return (struct str){ schema_text, sizeof(schema_text) - 1 };
}

/* ---- the beginning ---- */

/* The start time in a given form; UTC. */
static void time_text(int64_t real_ns, const char *form, char *out, size_t n)
{
	time_t s = (time_t)(real_ns / 1000000000);
	struct tm tm;

	gmtime_r(&s, &tm);
	if (strftime(out, n, form, &tm) == 0)
		*out = 0;
}

static void put_head(struct document *d)
{
	char made[40], when[24], stamp[40];

	time_text(d->o->began_real_ns, "%Y%m%d_%H%M%S", when, sizeof(when));
	snprintf(made, sizeof(made), "exp_%s_%06x", when, (unsigned)(d->x->hash & 0xffffff));
	json_member_int(d->w, "schema_version", DOCUMENT_SCHEMA_VERSION);
	json_member_text(d->w, "run_id", *d->o->run_id ? d->o->run_id : made);
	json_member_text(d->w, "suite", d->x->suite);
	time_text(d->o->began_real_ns, "%Y-%m-%dT%H:%M:%S", when, sizeof(when));
	snprintf(stamp, sizeof(stamp), "%s.%03dZ", when,
		 (int)(d->o->began_real_ns / 1000000 % 1000));
	json_member_text(d->w, "timestamp", stamp);
	json_member_f64(d->w, "duration", d->o->duration_s > 0 ? d->o->duration_s : 0);
}

/* ---- parts that others wrote ---- */

/* NULL: empty, or not an object. */
static const struct json_value *object_of(struct document *d, struct str json)
{
	struct json_value *v;

	if (!json.n || json_parse(&d->arena, json, &v, NULL) < 0 || v->kind != JSON_OBJECT)
		return NULL;
	return v;
}

/* Writes members that are always there, null where the object has none, then its others. */
static void put_with_always(struct document *d, const char *const *always,
			    const struct json_value *object)
{
	for (; *always; always++)
		if (!json_get(object, *always))
			json_member_null(d->w, *always);
	put_members(d, object, NULL);
}

static void put_system(struct document *d)
{
	static const char *const always[] = {
		"peak_gpu_memory_gb", "avg_gpu_utilization", "energy_j", "j_per_token",
		"tokens_per_s_per_w", NULL,
	};

	json_begin_object(d->w);
	put_with_always(d, always, object_of(d, d->o->system));
	member_value(d, "hardware_info", object_of(d, d->o->hardware));
	json_end_object(d->w);
}

static void put_provenance(struct document *d)
{
	static const char *const always[] = {
		"engine_commit", "branch", "pr", "build", "trigger", NULL,
	};
	const struct json_value *known = object_of(d, d->o->provenance);

	json_begin_object(d->w);
	put_with_always(d, always, known ? known : d->x->provenance);
	json_end_object(d->w);
}

static void put_profiling(struct document *d)
{
	const struct outcome *o = d->o;
	const struct outcome_trace *largest = NULL;

	for (size_t i = 0; i < o->n_traces; i++)
		if (!largest || o->trace[i].bytes > largest->bytes)
			largest = &o->trace[i];
	json_begin_object(d->w);
	json_member_bool(d->w, "enabled", d->x->profiling.is_enabled);
	json_member_text(d->w, "tool", d->x->profiling.is_enabled ? d->x->profiling.tool : NULL);
	member_path(d, "trace_file_path", largest ? largest->path : NULL);
	json_member_f64(d->w, "trace_file_size_mb", largest ? (double)largest->bytes / 1e6 : NAN);
	json_member_array(d->w, "traces");
	for (size_t i = 0; i < o->n_traces; i++) {
		json_begin_object(d->w);
		member_path(d, "path", o->trace[i].path);
		json_member_int(d->w, "bytes", (int64_t)o->trace[i].bytes);
		json_end_object(d->w);
	}
	json_end_array(d->w);
	json_end_object(d->w);
}

/* ---- the end ---- */

static void put_error(struct document *d)
{
	const struct outcome *o = d->o;

	if (!o->reason && o->status != OUTCOME_FAILED) {
		json_member_null(d->w, "error");
		return;
	}
	json_member_object(d->w, "error");
	json_member_text(d->w, "stage", outcome_stage_name(o->stage));
	json_member_text(d->w, "category", o->category ? o->category : o->is_interrupted ?
			 "interrupted" : NULL);
	json_member_text(d->w, "reason", o->reason ? o->reason : "It failed.");
	json_key(d->w, "log_tail");
	if (o->log_tail.n)
		json_put_str(d->w, o->log_tail);
	else
		json_put_null(d->w);
	json_end_object(d->w);
}

/* As they were decided when the document was written. */
static void put_requirements(struct document *d)
{
	const struct experiment *x = d->x;
	struct gate_log log = { .a = &d->arena };

	if (d->result)
		gate_judge(x->require, x->n_require, d->result, "", &log);
	else
		gate_judge_none(x->require, x->n_require, d->o->reason ? d->o->reason : "it failed", "",
				&log);
	json_member_array(d->w, "requirements");
	for (size_t i = 0; i < log.n; i++) {
		json_begin_object(d->w);
		json_member_text(d->w, "condition", log.item[i].condition);
		json_member_text(d->w, "outcome", gate_outcome_name(log.item[i].outcome));
		json_member_text(d->w, "text", log.item[i].text);
		json_end_object(d->w);
	}
	json_end_array(d->w);
}

static void put_end(struct document *d)
{
	const struct outcome *o = d->o;

	json_member_text(d->w, "status", outcome_status_name(o->status));
	put_error(d);
	if (d->x->n_require)
		put_requirements(d);
	json_member_array(d->w, "warnings");
	for (size_t i = 0; i < o->n_warnings; i++)
		json_put_text(d->w, o->warning[i]);
	json_end_array(d->w);
	json_member_object(d->w, "files");
	member_path(d, "folder", d->x->output.folder);
	member_path(d, "record", o->record_path);
	json_member_array(d->w, "logs");
	for (size_t i = 0; o->server && i < d->x->n_servers; i++)
		if (o->server[i].log)
			put_path(d, o->server[i].log);
	json_end_array(d->w);
	json_end_object(d->w);
}

static void put_environment(struct document *d)
{
	put_value(d, object_of(d, d->o->environment));
}

/* Results hold texts from elsewhere, in which "token=x" need not be a setting. */
static const struct {
	const char *key;
	void (*put)(struct document *d);
	enum redact_kind kind;
} parts[] = {
	{ "config", put_config, REDACT_SETTINGS },
	{ "results", put_results, REDACT_DATA },
	{ "trust", put_trust, REDACT_SENTENCES },
	{ "system", put_system, REDACT_SENTENCES },
	{ "profiling", put_profiling, REDACT_SENTENCES },
	{ "environment", put_environment, REDACT_SETTINGS },
	{ "provenance", put_provenance, REDACT_SETTINGS },
};

/* Registers the secrets of x (redact_learn), so that later output does not contain them. */
static void document_learn(const struct experiment *x)
{
	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];

		redact_learn_lines(s->env);
		redact_learn_words(s->command);
		redact_learn_words(s->extra_args);
		config_learn(s->args);
		config_learn(s->container);
	}
	redact_learn_words(x->offline_argv);
	config_learn(x->given);
}

void document_write(const struct experiment *x, const struct outcome *o, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct document d = { .w = &w, .x = x, .o = o };
	size_t from;

	w.indent = DOCUMENT_INDENT;
	document_learn(x);
	d.result = object_of(&d, o->result);
	json_begin_object(&w);
	put_head(&d);
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		from = out->len;
		json_key(&w, parts[i].key);
		parts[i].put(&d);
		redact_tail(out, from, parts[i].kind);
	}
	from = out->len;
	put_end(&d);
	redact_tail(out, from, REDACT_SENTENCES);
	json_end_object(&w);
	buf_add_char(out, '\n');
	arena_release(&d.arena);
}
