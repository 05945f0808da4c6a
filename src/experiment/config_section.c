/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_section.c - see config_parts.h: an object of a configuration by a set of rows.
 *
 * The rows are those of the command line, so ranges, choices and messages are one: a value of the
 * tree becomes the text opt_assign takes. Sections that no verb has get their rows here.
 */
#include <math.h>

#include "base/limits.h"
#include "engine/args.h"
#include "experiment/config_parts.h"
#include "experiment/config_sets.h"

#define SHOWN_MAX 80

/* ---- rows of our own sections ---- */

static const char *const tools[] = { "torch", "nsys", NULL };
static const char *const roles[] = { "serve", "prefill", "decode", "proxy", "cache", NULL };

#define R(member, name, ...) OPT(struct config_resources, member, name, __VA_ARGS__)
static const struct opt resources_rows[] = {
	R(gpus, "gpus", .arg = "auto|none|N|LIST",
	  .help = "GPUs of the experiment: as many as its servers take, none, so many, or those with "
		  "these indices or UUIDs"),
	R(wait_s, "wait_s", .arg = "SECONDS", .min = 0, .max = INFINITY,
	  .help = "how long to wait for busy GPUs and for a busy port that a server names; inf: "
		  "however long"),
	R(shared, "shared",
	  .help = "GPUs may be used by others too, as long as all of them say so"),
	R(memory_free, "memory_free", .arg = "SHARE", .min = 0, .max = 1,
	  .help = "share of a GPU's memory that must be free before it is taken; of a shared one 0"),
	R(ports, "ports", .arg = "FIRST-LAST", .help = "where free ports are looked for"),
};
static const struct config_resources resources_defaults = {
	.memory_free = 0.9, .ports = "20000-29999",
};

#define P(member, name, ...) OPT(struct config_profiling, member, name, __VA_ARGS__)
static const struct opt profiling_rows[] = {
	P(enabled, "enabled", .help = "profile the engine while load runs"),
	P(tool, "tool", .arg = "NAME", .choices = tools,
	  .help = "torch: the engine's own; nsys: Nsight Systems around the server"),
	P(dir, "dir", .arg = "DIR", .help = "where traces go, instead of beside the result"),
	P(delay_s, "delay_s", .arg = "SECONDS", .min = 0, .max = 1e6,
	  .help = "from the begin of load until the profiler is started"),
	P(duration_s, "duration_s", .arg = "SECONDS", .min = 0, .max = 1e6,
	  .help = "how long it runs; 0: to the end of load"),
	P(stop_timeout_s, "stop_timeout_s", .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE, .min = 0,
	  .max = 1e6, .help = "how long traces may take to be written"),
};
static const struct config_profiling profiling_defaults = {
	.tool = "torch", .stop_timeout_s = 600,
};

#define T(member, name, ...) OPT(struct config_telemetry, member, name, __VA_ARGS__)
static const struct opt telemetry_rows[] = {
	T(enabled, "enabled", .help = "watch the machine while load runs"),
	T(interval_s, "interval_s", .arg = "SECONDS", .min = 0.01,
	  .max = 3600, .help = "between two samples"),
	T(gpu, "gpu", .help = "memory, utilisation, clocks, power, temperature, energy of each GPU"),
	T(host, "host", .help = "CPU, memory and network of the machine"),
	T(process, "process", .help = "CPU and memory of the servers' processes"),
	T(server, "server", .help = "the servers' own /metrics"),
};
static const struct config_telemetry telemetry_defaults = {
	.enabled = true, .interval_s = 1, .gpu = true, .host = true, .process = true,
	.server = true,
};

#define O(member, name, ...) OPT(struct config_output, member, name, __VA_ARGS__)
static const struct opt output_rows[] = {
	O(path, "path", .arg = "FILE", .help = "the document, where --output does not say"),
	O(folder, "folder", .arg = "DIR",
	  .help = "logs, records and traces; otherwise beside the document"),
	O(record, "record", .help = "keep every measured fact; bench score reads it"),
	O(detailed, "detailed",
	  .help = "keep arrays with one element per request in the document"),
	O(upload, "upload", .arg = "{url, token_file}",
	  .help = "where the document is sent when it is whole"),
};

#define S(member, name, ...) OPT(struct config_server, member, name, __VA_ARGS__)
static const struct opt server_rows[] = {
	S(command, "command", .arg = "WORDS",
	  .help = "what starts the server, before its arguments, one text or a list; vllm serve "
		  "unless given; sim: the simulator"),
	S(url, "url", .arg = "URL", .help = "a server that runs already; it is not ended"),
	S(container, "container", .arg = "{image, ...}",
	  .help = "run it in a container: runtime, image, mounts, gpus, network, env, args"),
	S(name, "name", .arg = "NAME", .help = "what messages and files call it"),
	S(role, "role", .arg = "ROLE", .choices = roles,
	  .help = "what it is to the others; load goes to the proxy, else to the one that serves"),
	S(after, "after", .arg = "NAMES", .help = "servers that must be ready before it is started"),
	S(ready, "ready", .arg = "health|port|started|{log: TEXT}",
	  .help = "how it is known to be ready: /health, its port, its start, or a line with TEXT"),
	S(ready_timeout_s, "ready_timeout_s", .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE, .min = 0,
	  .max = 1e6, .help = "how long it may take until it is"),
	S(grace_s, "grace_s", .arg = "SECONDS", .min = 0, .max = 1e6,
	  .help = "how long it may take to end when asked, before it is killed"),
	S(host, "host", .arg = "ADDRESS", .help = "where it listens"),
	S(port, "port", .arg = "PORT", .min = 0, .max = 65535,
	  .help = "where it listens; 0: a free port is found and held"),
	S(gpus, "gpus", .arg = "N", .min = 0, .max = 1024,
	  .help = "how many GPUs it gets, instead of as many as its parallel sizes need"),
	S(env, "env", .arg = "{NAME: VALUE}", .help = "variables of its environment"),
	S(extra_args, "extra_args", .arg = "WORDS",
	  .help = "arguments as they are, behind all others: what the table does not know"),
};
static const struct config_server server_defaults = {
	.role = "serve", .ready_timeout_s = 1800, .grace_s = 30, .host = "127.0.0.1",
};

#define SET(what, type, text)                                                       \
	const struct opt_set config_##what##_set = {                                \
		.command = text, .row = what##_rows, .bytes = sizeof(type),         \
		.n = sizeof(what##_rows) / sizeof(*what##_rows),                    \
		.defaults = &what##_defaults,                                       \
	}
static const struct config_output output_defaults = { 0 };
SET(resources, struct config_resources, "resources");
SET(profiling, struct config_profiling, "profiling");
SET(telemetry, struct config_telemetry, "telemetry");
SET(output, struct config_output, "output");
SET(server, struct config_server, "server");

/* ---- names ---- */

const char *config_path(const struct config_reader *r, const char *section, struct str key)
{
	return arena_printf(r->a, "%s.%.*s", section, (int)(key.n < SHOWN_MAX ? key.n : SHOWN_MAX),
			    key.p);
}

/* As a key of a configuration: with "_". */
static bool is_key(struct str key, const char *name)
{
	size_t i = 0;

	while (i < key.n && name[i] && key.p[i] == (name[i] == '-' ? '_' : name[i]))
		i++;
	return i == key.n && !name[i];
}

const struct opt *config_row(const struct opt_set *set, struct str key)
{
	struct str head = str_cut(&key, '.');

	for (size_t i = 0; set && i < set->n; i++)
		if (is_key(head, set->row[i].name) &&
		    !(set->row[i].flags & (OPT_NO_CONFIG | OPT_POSITIONAL)))
			return &set->row[i];
	return NULL;
}

static bool is_engines(struct str key)
{
	const struct engine_arg *arg = engine_arg_find(str_cut(&key, '.'));

	return arg != NULL;
}

/* The section that has the key, other than this one; NULL: none. */
static const char *section_of(const struct config_reader *r, struct str key, const char *but)
{
	const struct { const char *name; const struct opt_set *set; } list[] = {
		{ "server", &config_server_set }, { "benchmark", config_bench_set(r->x->mode) },
		{ "resources", &config_resources_set }, { "profiling", &config_profiling_set },
		{ "telemetry", &config_telemetry_set }, { "output", &config_output_set },
	};

	for (size_t i = 0; i < sizeof(list) / sizeof(*list); i++) {
		bool is_this = strncmp(but, list[i].name, strlen(list[i].name)) == 0;
		bool has = config_row(list[i].set, key) || (i == 0 && is_engines(key)) ||
			   (i == 1 && str_is(key, "mode"));

		if (has && !is_this)
			return list[i].name;
	}
	return NULL;
}

void config_unknown(struct config_reader *r, const struct json_value *v, struct str key,
		    const char *section, const char *const *names, size_t n)
{
	const char *other = section_of(r, key, section), *path = config_path(r, section, key);
	const char *near = opt_nearest(key, names, n);
	char *spelled = near ? arena_text(r->a, str_of(near)) : NULL;

	for (char *c = spelled; c && *c; c++)
		*c = *c == '-' ? '_' : *c;
	if (other && (!near || !is_key(key, near)))
		config_complain_key(r->c, r->f, v, path, "unknown key; it belongs to %s, not %s",
				    other, section);
	else
		config_complain_key(r->c, r->f, v, path, "unknown key%s%s%s",
				    near ? "; did you mean " : "", near ? spelled : "",
				    near ? "?" : "");
}

/* ---- values ---- */

/* A message of opt/ without the name it begins with. */
static const char *without_name(const char *text, const struct opt *row)
{
	size_t dashes = strncmp(text, "--", 2) == 0 ? 2 : 0, n = strlen(row->name);

	if (strncmp(text + dashes, row->name, n) == 0 && strncmp(text + dashes + n, ": ", 2) == 0)
		return text + dashes + n + 2;
	return text;
}

static int refuse_kind(struct config_reader *r, const struct opt *row, const struct json_value *v,
		       const char *path)
{
	struct buf expected = { 0 };
	int rc;

	opt_expected(row, &expected);
	rc = config_complain(r->c, r->f, v, path, "expected %s, got %s", expected.data,
			     config_got(v, r->a));
	buf_release(&expected);
	return rc;
}

static bool has_choice(const struct opt *row, const char *word)
{
	for (size_t i = 0; row->choices && row->choices[i]; i++)
		if (strcmp(row->choices[i], word) == 0)
			return true;
	return false;
}

/* [50, 99] for a text that is a comma list; KEY=VALUE or NAME:MS for an object in a list. */
static const char *joined(struct config_reader *r, const struct json_value *v)
{
	struct buf out = { 0 };
	const char *text = NULL;
	bool is_plain = true;

	for (size_t i = 0; i < v->count; i++) {
		const char *one = config_scalar(&v->item[i], r->a);

		is_plain = is_plain && one;
		buf_printf(&out, "%s%s", i ? "," : "", one ? one : "");
	}
	if (is_plain)
		text = arena_text(r->a, buf_str(&out));
	buf_release(&out);
	return text;
}

static const char *as_list(struct config_reader *r, const struct opt *row,
			   const struct json_value *v)
{
	struct json_value list = { .kind = JSON_ARRAY };
	const char *arg = row->arg ? row->arg : "";
	const char *between = strchr(arg, '=') ? "=" : strchr(arg, ':') ? ":" : NULL;
	bool is_object = v->kind == JSON_OBJECT, is_one = v->kind < JSON_ARRAY;

	if (is_object && !between)
		return NULL;
	list.count = is_one ? 1 : v->count;
	list.item = arena_alloc(r->a, (list.count + 1) * sizeof(*list.item));
	for (size_t i = 0; i < list.count; i++) {
		const struct json_value *from = is_one ? v : &v->item[i];
		const char *text = config_scalar(from, r->a);

		if (!text)
			text = config_json(from, r->a);
		if (is_object)
			text = arena_printf(r->a, "%s%s%s", v->key[i].p, between, text);
		list.item[i] = (struct json_value){ .kind = JSON_STRING, .text = str_of(text) };
	}
	return config_json(&list, r->a);
}

/* What opt_assign is given; NULL: a value of another kind. */
static const char *as_text(struct config_reader *r, const struct opt *row,
			   const struct json_value *v)
{
	bool is_bool = v->kind == JSON_TRUE || v->kind == JSON_FALSE;
	const char *text = config_scalar(v, r->a);

	switch (row->kind) {
	case OPT_FLAG:
	case OPT_TRI:
		return is_bool ? v->kind == JSON_TRUE ? "true" : "false" :
			v->kind == JSON_STRING ? text : NULL;
	case OPT_LIST:
		return as_list(r, row, v);
	case OPT_JSON:
		return text && v->kind == JSON_STRING ? text : config_json(v, r->a);
	case OPT_TEXT:
		if (v->kind == JSON_ARRAY)
			return joined(r, v);
		/* "off" is a word where words are chosen among, whatever YAML takes it for. */
		return is_bool && !has_choice(row, text) && (!v->raw.n || strlen(text) > 3) ? NULL :
			text;
	case OPT_INT:
	case OPT_REAL:
	case OPT_MAYBE_INT:
	case OPT_MAYBE_REAL:
		return is_bool ? NULL : text;
	}
	return NULL;
}

int config_value(struct config_reader *r, const struct opt_set *set, const struct opt *row,
		 const struct json_value *v, struct str key, const char *path, void *values,
		 struct opt_result *given)
{
	const char *name = arena_text(r->a, key);
	bool is_dotted = memchr(key.p, '.', key.n) != NULL;
	struct opt_result unused = { 0 };
	struct err e = { 0 };
	const char *text;

	if (v->kind == JSON_NULL)
		return 0;
	if (row->kind == OPT_LIST && v->kind >= JSON_ARRAY && v->count > EXPERIMENT_KEYS_MAX)
		return config_complain(r->c, r->f, v, path, "%zu values, more than the %d of "
				       "EXPERIMENT_KEYS_MAX", v->count, EXPERIMENT_KEYS_MAX);
	text = is_dotted ? config_scalar(v, r->a) : as_text(r, row, v);
	if (is_dotted && !text)
		text = config_json(v, r->a);
	if (!text)
		return refuse_kind(r, row, v, path);
	if (opt_give(set, values, given ? given : &unused, name, str_of(text), r->a, &e) == 0)
		return 0;
	return config_complain(r->c, r->f, v, path, "%s", without_name(e.text, row));
}

void config_section(struct config_reader *r, const struct json_value *object,
		    const char *section, const struct opt_set *set, void *values,
		    struct opt_result *given, const char *const *others)
{
	const char *names[OPT_ROWS_MAX];
	size_t n = 0;

	memcpy(values, set->defaults, set->bytes);
	for (size_t i = 0; i < set->n; i++)
		if (!(set->row[i].flags & (OPT_HIDDEN | OPT_NO_CONFIG | OPT_POSITIONAL)))
			names[n++] = set->row[i].name;
	for (size_t i = 0; others && others[i]; i++)
		names[n++] = others[i];
	for (size_t i = 0; object && i < object->count; i++) {
		const struct opt *row = config_row(set, object->key[i]);
		bool is_others = false;

		for (size_t k = 0; others && others[k]; k++)
			is_others = is_others || str_is(object->key[i], others[k]);
		if (is_others)
			continue;
		if (!row)
			config_unknown(r, &object->item[i], object->key[i], section, names, n);
		else
			config_value(r, set, row, &object->item[i], object->key[i],
				     config_path(r, section, object->key[i]), values, given);
	}
}

bool config_is_object(struct config_reader *r, const struct json_value *v, const char *path)
{
	if (v->kind != JSON_OBJECT)
		config_complain(r->c, r->f, v, path, "expected an object, got %s",
				config_got(v, r->a));
	else if (v->count > EXPERIMENT_KEYS_MAX)
		config_complain(r->c, r->f, v, path, "%zu keys, more than the %d of "
				"EXPERIMENT_KEYS_MAX", v->count, EXPERIMENT_KEYS_MAX);
	else
		return true;
	return false;
}

const struct json_value *config_object(struct config_reader *r, const struct json_value *tree,
				       const char *key)
{
	const struct json_value *v = config_get(tree, key);

	return v && config_is_object(r, v, key) ? v : NULL;
}

char **config_list(struct config_reader *r, const struct json_value *v, const char *path)
{
	bool is_list = v && v->kind == JSON_ARRAY;
	size_t n = !v || v->kind == JSON_NULL ? 0 : is_list ? v->count : 1;
	char **out = arena_alloc(r->a, (n + 1) * sizeof(*out));
	size_t filled = 0;

	for (size_t i = 0; i < n; i++) {
		const struct json_value *one = is_list ? &v->item[i] : v;
		const char *text = config_scalar(one, r->a);

		if (!text)
			config_complain(r->c, r->f, one, path, "expected a list of texts, got %s%s",
					is_list ? "one with " : "", config_got(one, r->a));
		else
			out[filled++] = arena_text(r->a, str_of(text));
	}
	return out;
}
