/* SPDX-License-Identifier: Apache-2.0 */
/* config_bench.c - see config_internal.h: the benchmark, read by the rows of its mode's verb. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "bench/offline/latency.h"
#include "bench/offline/prefix_bench.h"
#include "bench/offline/prioritization.h"
#include "bench/offline/startup.h"
#include "bench/offline/throughput.h"
#include "bench/serve/multi_turn.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "experiment/config/config_internal.h"
#include "experiment/config/document.h"
#include "host/engine/args.h"

/*
 * Reads an object of a configuration by a set of rows.
 *
 * The rows are those of the command line, so ranges, choices and messages are the same: a value of
 * the tree becomes the text that opt_assign takes. Sections without a verb have their rows here.
 */

#define SHOWN_MAX 80

/* ---- rows of our own sections ---- */

static const char *const tools[] = { "torch", "nsys", NULL };
static const char *const roles[] = { "serve", "prefill", "decode", "proxy", "cache", NULL };

#define R(member, name, ...) OPT(struct config_resources, member, name, __VA_ARGS__)
static const struct opt resources_rows[] = {
	R(gpus, "gpus", .arg = "auto|none|N|LIST",
	  .help = "GPUs of the experiment: auto (as many as its servers need), none, a number, or "
		  "a list of indices or UUIDs"),
	R(wait_s, "wait_s", .arg = "SECONDS", .min = 0, .max = INFINITY,
	  .help = "how long to wait for busy GPUs and for a busy port that a server names; inf: no "
		  "limit"),
	R(shared, "shared",
	  .help = "share the GPUs with other experiments that also have shared: true"),
	R(memory_free, "memory_free", .arg = "SHARE", .min = 0, .max = 1,
	  .help = "share of a GPU's memory that must be free before the GPU is used; shared: 0"),
	R(ports, "ports", .arg = "FIRST-LAST", .help = "range in which free ports are chosen"),
};
static const struct config_resources resources_defaults = {
	.memory_free = 0.9, .ports = "20000-29999",
};

#define P(member, name, ...) OPT(struct experiment_profiling, member, name, __VA_ARGS__)
static const struct opt profiling_rows[] = {
	P(is_enabled, "enabled", .help = "profile the engine while load runs"),
	P(tool, "tool", .arg = "NAME", .choices = tools,
	  .help = "torch: the engine's own; nsys: Nsight Systems around the server"),
	P(dir, "dir", .arg = "DIR", .help = "folder for traces; default: next to the result"),
	P(delay_s, "delay_s", .arg = "SECONDS", .min = 0, .max = 1e6,
	  .help = "time from the beginning of load until the profiler is started"),
	P(duration_s, "duration_s", .arg = "SECONDS", .min = 0, .max = 1e6,
	  .help = "how long the profiler runs; 0: to the end of load"),
	P(stop_timeout_s, "stop_timeout_s", .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE, .min = 0,
	  .max = 1e6, .help = "time limit for writing traces"),
};
static const struct experiment_profiling profiling_defaults = {
	.tool = "torch", .stop_timeout_s = 600,
};

#define T(member, name, ...) OPT(struct experiment_telemetry, member, name, __VA_ARGS__)
static const struct opt telemetry_rows[] = {
	T(is_enabled, "enabled", .help = "watch the machine while load runs"),
	T(interval_s, "interval_s", .arg = "SECONDS", .min = 0.01,
	  .max = 3600, .help = "time between two samples"),
	T(gpu, "gpu", .help = "memory, utilisation, clocks, power, temperature, energy of each GPU"),
	T(host, "host", .help = "CPU, memory and network of the machine"),
	T(process, "process", .help = "CPU and memory of the servers' processes"),
	T(server, "server", .help = "the servers' own /metrics"),
};
static const struct experiment_telemetry telemetry_defaults = {
	.is_enabled = true, .interval_s = 1, .gpu = true, .host = true, .process = true,
	.server = true,
};

#define O(member, name, ...) OPT(struct experiment_output, member, name, __VA_ARGS__)
static const struct opt output_rows[] = {
	O(path, "path", .arg = "FILE", .help = "the document, if --output is not given"),
	O(folder, "folder", .arg = "DIR",
	  .help = "folder for logs, records and traces; default: next to the document"),
	O(keeps_record, "record", .help = "keep a record of every measured event; bench score "
					  "reads it"),
	O(is_detailed, "detailed",
	  .help = "keep arrays with one element per request in the document"),
	O(upload, "upload", .arg = "{url, token_file}",
	  .help = "dashboard to which the finished document is sent"),
	O(dashboard, "dashboard", .arg = "URL", .flags = OPT_SECRET,
	  .help = "dashboard that gets live reports during the run and the document at its end; "
		  "see --dashboard"),
	O(compare_with, "compare_with", .arg = "WHERE",
	  .help = "add the change since the last run of the same configuration to the final table: "
		  "previous, or a store or dashboard; see --compare-with"),
};

#define S(member, name, ...) OPT(struct config_server, member, name, __VA_ARGS__)
static const struct opt server_rows[] = {
	S(command, "command", .arg = "WORDS",
	  .help = "command that starts the server, without its arguments, as text or a list; "
		  "default: vllm serve; sim: the simulator"),
	S(url, "url", .arg = "URL", .help = "URL of a running server, which is neither started nor "
					    "stopped"),
	S(container, "container", .arg = "{image, ...}",
	  .help = "run the server in a container: runtime, image, mounts, gpus, network, env, "
		  "args"),
	S(name, "name", .arg = "NAME", .help = "name of the server in messages and files"),
	S(role, "role", .arg = "ROLE", .choices = roles,
	  .help = "role of the server among several; load goes to the proxy, else to the server "
		  "with role serve"),
	S(after, "after", .arg = "NAMES", .help = "servers that must be ready before this one is "
						  "started"),
	S(ready, "ready", .arg = "health|port|started|{log: TEXT}",
	  .help = "sign that the server is ready: /health, its port, its start, or a log line with "
		  "TEXT"),
	S(ready_timeout_s, "ready_timeout_s", .arg = "SECONDS", .flags = OPT_MIN_EXCLUSIVE, .min = 0,
	  .max = 1e6, .help = "time limit for the server to become ready"),
	S(grace_s, "grace_s", .arg = "SECONDS", .min = 0, .max = 1e6,
	  .help = "time limit for the server to exit when asked to, before it is killed"),
	S(host, "host", .arg = "ADDRESS", .help = "address on which the server listens"),
	S(port, "port", .arg = "PORT", .min = 0, .max = 65535,
	  .help = "port on which the server listens; 0: a free port is chosen and reserved"),
	S(gpus, "gpus", .arg = "N", .min = 0, .max = 1024,
	  .help = "number of GPUs for this server; default: as many as its parallel sizes need"),
	S(env, "env", .arg = "{NAME: VALUE}", .help = "environment variables of the server"),
	S(extra_args, "extra_args", .arg = "WORDS",
	  .help = "arguments appended unchanged after all others, for those that profllm does not "
		  "know"),
};
static const struct config_server server_defaults = {
	.role = "serve", .ready_timeout_s = 1800, .grace_s = 30, .host = "127.0.0.1",
};

#define SET(what, type, text)                                                       \
	const struct opt_set config_##what##_set = {                                \
		.command = (text), .row = what##_rows, .bytes = sizeof(type),         \
		.n = sizeof(what##_rows) / sizeof(*what##_rows),                    \
		.defaults = &what##_defaults,                                       \
	}
static const struct experiment_output output_defaults = { 0 };
SET(resources, struct config_resources, "resources");
SET(profiling, struct experiment_profiling, "profiling");
SET(telemetry, struct experiment_telemetry, "telemetry");
SET(output, struct experiment_output, "output");
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

size_t config_sections_of(struct str key, enum experiment_mode mode, const struct opt_set *sim,
			  const char *out[static CONFIG_SECTIONS_MAX])
{
	const struct { const char *name; const struct opt_set *set; } list[CONFIG_SECTIONS_MAX] = {
		{ "server", &config_server_set }, { "benchmark", config_bench_set(mode) },
		{ "resources", &config_resources_set }, { "profiling", &config_profiling_set },
		{ "telemetry", &config_telemetry_set }, { "output", &config_output_set },
	};
	size_t n = 0;

	for (size_t i = 0; i < CONFIG_SECTIONS_MAX; i++)
		if (config_row(list[i].set, key) ||
		    (i == 0 && (config_arg_of(key) || config_row(sim, key))) ||
		    (i == 1 && str_is(key, "mode")))
			out[n++] = list[i].name;
	return n;
}

/* The section that has the key, other than this one; NULL: none. */
static const char *section_of(const struct config_reader *r, struct str key, const char *but)
{
	const char *name[CONFIG_SECTIONS_MAX];
	size_t n = config_sections_of(key, r->x->mode, NULL, name);

	for (size_t i = 0; i < n; i++)
		if (strncmp(but, name[i], strlen(name[i])) != 0)
			return name[i];
	return NULL;
}

void config_unknown(struct config_reader *r, const struct json_value *v, struct str key,
		    const char *section, const char *const *names, size_t n)
{
	const char *other = section_of(r, key, section), *path = config_path(r, section, key);
	const char *near = opt_nearest(key, names, n), *belongs = "";

	if (other && (!near || !is_key(key, near)))
		belongs = arena_printf(r->a, "; it belongs in %s, not in %s", other, section);
	config_complain_key(r->c, r->f, v, path, "unknown key%s%s%s%s", belongs,
			    near ? "; did you mean " : "",
			    near ? config_key(str_of(near), r->a) : "", near ? "?" : "");
}

/* ---- values ---- */

/* A message of opt/ without the option name at its beginning. */
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

/* The text for opt_assign; NULL: a value of another kind. */
static const char *as_text(struct config_reader *r, const struct opt *row,
			   const struct json_value *v)
{
	bool is_bool = v->kind == JSON_TRUE || v->kind == JSON_FALSE, is_choice = false;
	const char *text = config_scalar(v, r->a);

	for (size_t i = 0; is_bool && row->choices && row->choices[i]; i++)
		is_choice = is_choice || strcmp(row->choices[i], text) == 0;
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
		/*
		 * Where words are the choices, "off" is a word, although YAML reads it as a
		 * boolean.
		 */
		return is_bool && !is_choice && (!v->raw.n || strlen(text) > 3) ? NULL : text;
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
		struct str rest = object->key[i], head = str_cut(&rest, '.');
		bool is_others = false;

		for (size_t k = 0; others && others[k]; k++)
			is_others = is_others || str_is(object->key[i], others[k]) ||
				    (row && str_is(head, others[k]));
		if (is_others && rest.n) /* in an object that --set or a matrix gives */
			config_complain_key(r->c, r->f, &object->item[i],
					    config_path(r, section, object->key[i]),
					    "write %.*s: {%.*s: ...}", (int)head.n, head.p, (int)rest.n,
					    rest.p);
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

/* Options of the verbs that an experiment sets elsewhere; where: what to write instead. */
static const struct { const char *name, *where; } elsewhere[] = {
	{ "base_url", "server.url names a running server" },
	{ "base_urls", "server.url names a running server" },
	{ "url", "server.url names a running server" },
	{ "host", "server.host is the address on which the server listens; server.url names a running "
		  "server" },
	{ "port", "server.port is the port on which the server listens; server.url names a running "
		  "server" },
	{ "api_key", "set the environment variable OPENAI_API_KEY to the key" },
	{ "server_cmd", "server.command starts the server" },
	{ "dry_run", "use profllm run --dry-run" },
	{ "compare", "use profllm bench compare on the documents" },
	{ "find_max_rate", "use search, bench serve or bench sweep serve_sla to find the largest "
			   "load" },
	{ "find_max_concurrency", "use search, bench serve or bench sweep serve_sla to find the "
				  "largest load" },
	{ "slo", "use bench serve --slo to check whether a load keeps limits" },
	{ "precision", "use search, bench serve or bench sweep serve_sla to find the largest "
		       "load" },
	{ "budget", "use search, bench serve or bench sweep serve_sla to find the largest load" },
	{ "level_seconds", "use search, bench serve or bench sweep serve_sla to find the largest "
			   "load" },
	{ "fail_if", "use require at the top level of the file, a list of such conditions" },
	{ "allow_unjudged", "use profllm run --allow-unjudged" },
	{ "junit", "use profllm run --junit" },
	{ "summary", "use profllm run --summary" },
	{ "sweep_max_concurrency", "use matrix: {benchmark.max_concurrency: [...]}" },
	{ "sweep_request_rate", "use matrix: {benchmark.request_rate: [...]}" },
	{ "sweep_num_prompts_factor", "it is for --sweep-max-concurrency; give num_prompts in each "
	  "entry of experiments instead" },
	{ "sweep_summary_percentiles", "a suite's members have percentiles of their own" },
	{ "num_runs", "use repeat: N to run the experiment N times" },
	{ "system_metrics", "use telemetry to choose what is monitored" },
	{ "system_interval", "use telemetry.interval_s" },
	{ "system_gpus", "use resources.gpus to choose the GPUs" },
	{ "system_pid", "the processes of the server are found automatically" },
};

/* Options without effect: they would write the document's content into further files. */
static const char *const idle[] = {
	"save_result", "append_result", "result_dir", "result_filename", "output_json", "report", "quiet",
	"progress",
	"disable_tqdm", "live", "dashboard", "charts", "strict", "output_file", "stats_json_output",
	"excel_output", "print_content", NULL,
};

const struct opt_set *config_bench_set(enum experiment_mode mode)
{
	const struct opt_set *const sets[MODE_COUNT] = {
		&serve_opt_set, &throughput_opt_set, &latency_opt_set, &startup_opt_set,
		&prioritization_opt_set, prefix_caching_verb.set, long_document_verb.set,
		&serve_opt_set, &multi_turn_opt_set,
	};

	return sets[mode];
}

/* Multi-turn takes options of bench serve in addition to its own. */
static bool has_row(enum experiment_mode mode, const char *name)
{
	return config_row(config_bench_set(mode), str_of(name)) ||
	       (mode == MODE_MULTI_TURN && config_row(&serve_opt_set, str_of(name)));
}

/* The throughput's runs are timings of one engine. */
static bool is_elsewhere(enum experiment_mode mode, size_t i)
{
	return has_row(mode, elsewhere[i].name) &&
	       (mode_is_served(mode) || strcmp(elsewhere[i].name, "num_runs") != 0);
}

const char *config_elsewhere(enum experiment_mode mode, const char *name)
{
	const struct opt row = { .name = name };
	const struct opt_set one = { .row = &row, .n = 1 };

	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (is_elsewhere(mode, i) && config_row(&one, str_of(elsewhere[i].name)))
			return elsewhere[i].where;
	return NULL;
}

bool config_is_elsewhere(enum experiment_mode mode, const char *name)
{
	const struct opt row = { .name = name };
	const struct opt_set one = { .row = &row, .n = 1 };

	if (config_elsewhere(mode, name))
		return true;
	for (size_t i = 0; idle[i]; i++)
		if (config_row(&one, str_of(idle[i])))
			return true;
	return false;
}

const char *config_modes(struct arena *a)
{
	const char *all = "";

	for (unsigned i = 0; i < MODE_COUNT; i++)
		all = arena_printf(a, "%s%s%s", all, i ? ", " : "",
				   experiment_mode_name((enum experiment_mode)i));
	return all;
}

static void read_mode(struct config_reader *r, const struct json_value *bench)
{
	const struct json_value *v = config_get(bench, "mode");

	assert(r->x->mode == MODE_SERVE);
	for (unsigned i = 0; v && v->kind == JSON_STRING && i < MODE_COUNT; i++)
		if (str_is(v->text, experiment_mode_name((enum experiment_mode)i))) {
			r->x->mode = (enum experiment_mode)i;
			return;
		}
	if (v)
		config_complain(r->c, r->f, v, "benchmark.mode", "expected one of %s, got %s",
				config_modes(r->a), config_got(v, r->a));
}

/* ---- what belongs elsewhere ---- */

static void refuse_elsewhere(struct config_reader *r, const struct json_value *bench)
{
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++) {
		const struct json_value *v = config_get(bench, elsewhere[i].name);
		struct str key = str_of(elsewhere[i].name);

		if (v && is_elsewhere(r->x->mode, i))
			config_complain_key(r->c, r->f, v, config_path(r, "benchmark", key),
					    "cannot be set here; %s", elsewhere[i].where);
	}
}

static void note_idle(struct config_reader *r, const struct json_value *bench)
{
	for (size_t i = 0; idle[i]; i++) {
		const struct json_value *v = config_get(bench, idle[i]);
		const char *path = arena_printf(r->a, "benchmark.%s", idle[i]);

		if (!v || v->kind == JSON_FALSE || !has_row(r->x->mode, idle[i]))
			continue;
		config_note(r->c, r->f, v, path, "no effect; the result is in the document");
	}
}

/* ---- serve ---- */

static bool is_given(const struct config_reader *r, const char *name)
{
	return opt_given(&serve_opt_set, &r->x->serve_given, name);
}

/* The server that knows the model: the serving one, or one that it forwards to as a proxy. */
static const struct experiment_server *knows_model(const struct experiment *x)
{
	const struct experiment_server *s = &x->server[x->serving];

	for (size_t i = 0; i < x->n_servers && !json_get(s->args, "model"); i++)
		if (x->server[i].role == ROLE_PREFILL || x->server[i].role == ROLE_DECODE ||
		    x->server[i].role == ROLE_SERVE)
			s = &x->server[i];
	return json_get(s->args, "model") ? s : &x->server[x->serving];
}

static const char *text_arg(const struct experiment_server *s, const char *name)
{
	const struct json_value *v = json_get(s->args, name);

	if (v && v->kind == JSON_ARRAY && v->count)
		v = &v->item[0];
	return json_text(v, (struct str){ 0 }).p;
}

/*
 * The model and its names are taken from the server, so that users need not repeat them. A running
 * server that has another model then refuses the load: no result names a model that was not asked.
 */
static void take_from_server(struct config_reader *r)
{
	struct serve_opts *o = &r->x->serve;
	const struct experiment_server *s = r->x->n_servers ? knows_model(r->x) : NULL;

	if (!s)
		return;
	if (!is_given(r, "model") && text_arg(s, "model")) {
		o->model = text_arg(s, "model");
		if (!is_given(r, "served-model-name"))
			o->served_model_name = text_arg(s, "served_model_name");
	}
	if (is_given(r, "tokenizer") || is_given(r, "skip-tokenizer-init"))
		return;
	if (text_arg(s, "tokenizer"))
		o->tokenizer = text_arg(s, "tokenizer");
	else if (!r->x->server[r->x->serving].url && config_is_sim(s->command))
		o->tokenizer = "sim";
}

/* The value of the option that a message names first; the whole benchmark if it names none. */
static const struct json_value *named(const struct json_value *bench, const char *text,
				      const char **key, struct arena *a)
{
	for (const char *at = strstr(text, "--"); at; at = strstr(at + 2, "--")) {
		struct str name = { at + 2, strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-") };
		const char *spelled = config_key(name, a);
		const struct json_value *v = config_get(bench, spelled);

		if (v) {
			*key = arena_printf(a, "benchmark.%s", spelled);
			return v;
		}
	}
	*key = "benchmark";
	return bench;
}

struct config_place config_place_of(const struct json_value *bench, const char *text,
				    const char *otherwise, struct arena *a)
{
	struct config_place at = { .text = text };
	const char *behind = strstr(text, ": ");

	at.v = named(bench, text, &at.path, a);
	if (at.v != bench && behind && strncmp(text, "--", 2) == 0 &&
	    !memchr(text, ' ', (size_t)(behind - text)))
		at.text = behind + 2;
	if (at.v == bench && otherwise && config_get(bench, otherwise)) {
		at.v = config_get(bench, otherwise);
		at.path = arena_printf(a, "benchmark.%s", otherwise);
	}
	return at;
}

/* The options in force, except the address; with what a document always has. */
static struct serve_opts *copy_serve(const struct config_reader *r)
{
	struct serve_opts *copy = arena_alloc(r->a, sizeof(*copy));

	*copy = r->x->serve;
	copy->metric_percentiles = arena_printf(r->a, "%s,%s", DOCUMENT_PERCENTILES,
						copy->metric_percentiles);
	return copy;
}

/* Runs the checks that upstream makes only during a run, on a copy. */
static void check_serve(struct config_reader *r, const struct json_value *bench,
			struct serve_opts *copy, struct opt_result *given, struct err *e)
{
	struct serve_derived *derived = arena_alloc(r->a, sizeof(*derived));

	if (!e->code)
		serve_opts_fill(copy, r->a);
	if (e->code || serve_opts_check(copy, given, r->a, derived, e) < 0) {
		struct config_place at = config_place_of(bench, e->text, NULL, r->a);

		config_complain(r->c, r->f, at.v, at.path, "%s", at.text);
	} else {
		if (!derived->is_pooling)
			derived->metrics.selected |= BLOCK_BIT(BLOCK_TTFT) | BLOCK_BIT(BLOCK_TPOT) |
						     BLOCK_BIT(BLOCK_ITL) | BLOCK_BIT(BLOCK_E2EL);
		r->asked = copy;
		r->derived = derived;
	}
	buf_release(&given->notes);
}

static void take_serve_outputs(struct experiment *x)
{
	if (x->serve.save_detailed)
		x->output.is_detailed = true;
	if (x->serve.record_path)
		x->output.keeps_record = true;
	if (x->serve.profile)
		x->profiling.is_enabled = true;
}

static void read_serve(struct config_reader *r, const struct json_value *bench,
		       const char *const *others)
{
	struct experiment *x = r->x;
	size_t before = r->f->n_errors;
	struct opt_result given;
	struct err e = { 0 };

	config_section(r, bench, "benchmark", &serve_opt_set, &x->serve, &x->serve_given, others);
	take_from_server(r);
	take_serve_outputs(x);
	given = x->serve_given;
	if (r->f->n_errors == before)
		check_serve(r, bench, copy_serve(r), &given, &e);
}

/* ---- multi-turn ---- */

/* Keys of the verb itself, or (is_own false) all others, which are those of bench serve. */
static const struct json_value *turn_keys(struct config_reader *r, const struct json_value *bench,
					  bool is_own)
{
	const struct json_value *out = bench;

	for (size_t i = 0; i < bench->count; i++)
		if ((config_row(&multi_turn_opt_set, bench->key[i]) != NULL) != is_own)
			out = config_without(r->c, out, arena_text(r->a, bench->key[i]));
	return out;
}

static void refuse_unpassed(struct config_reader *r, const struct json_value *serve)
{
	for (size_t i = 0; i < serve->count; i++) {
		struct str key = serve->key[i], head = key;
		const struct opt *row = config_row(&serve_opt_set, str_cut(&head, '.'));

		if (row && !multi_turn_passes(str_of(row->name)) &&
		    !config_is_elsewhere(r->x->mode, row->name))
			config_complain_key(r->c, r->f, &serve->item[i],
					    config_path(r, "benchmark", key),
					    "not an option of mode multi-turn");
	}
}

static void read_turns(struct config_reader *r, const struct json_value *bench,
		       const char *const *others)
{
	struct experiment *x = r->x;
	const struct json_value *serve = turn_keys(r, bench, false);
	size_t before = r->f->n_errors;
	struct multi_turn m = { 0 };
	struct serve_opts *copy;
	struct opt_result given;
	struct err e = { 0 };

	config_section(r, turn_keys(r, bench, true), "benchmark", &multi_turn_opt_set, &x->turns,
		       &x->turns_given, NULL);
	config_section(r, serve, "benchmark", &serve_opt_set, &x->serve, &x->serve_given, others);
	refuse_unpassed(r, serve);
	take_from_server(r);
	if (!x->turns.model) {
		x->turns.model = x->serve.model;
		if (!x->turns.served_model_name)
			x->turns.served_model_name = x->serve.served_model_name;
	}
	x->serve.model = x->turns.model;
	x->serve.served_model_name = x->turns.served_model_name;
	take_serve_outputs(x);
	if (r->f->n_errors != before)
		return;
	copy = copy_serve(r);
	given = x->serve_given;
	if (multi_turn_opts_check(&x->turns, r->a, &m, &e) == 0)
		multi_turn_over_serve(&m, copy, &given, r->a, &e);
	check_serve(r, bench, copy, &given, &e);
}

/* ---- the other modes ---- */

/* Adds an option in its command line form. */
static void add_option(struct config_reader *r, struct word_list *w, const struct opt *row,
		       struct str key, const struct json_value *v)
{
	const char *text = config_scalar(v, r->a);
	char *name = arena_text(r->a, key);

	for (char *c = name; *c && *c != '.'; c++)
		*c = *c == '_' ? '-' : *c;
	if (row->kind == OPT_FLAG || row->kind == OPT_TRI) {
		bool is_on = v->kind == JSON_TRUE || (text && strcmp(text, "true") == 0);

		if (is_on)
			words_add(w, arena_printf(r->a, "--%s", name));
		else if (row->kind == OPT_TRI)
			words_add(w, arena_printf(r->a, "--no-%s", name));
	} else if (row->kind == OPT_LIST && v->kind == JSON_ARRAY) {
		words_add(w, arena_printf(r->a, "--%s", name));
		for (size_t i = 0; i < v->count; i++) {
			text = config_scalar(&v->item[i], r->a);
			words_add(w, arena_text(r->a, str_of(text ? text :
						       config_json(&v->item[i], r->a))));
		}
	} else {
		words_add(w, arena_printf(r->a, "--%s=%s", name, text ? text : config_json(v, r->a)));
	}
}

/* Arguments of the HTTP server have no meaning for an engine without one. */
static void add_engine(struct config_reader *r, struct word_list *w, const struct json_value *tree)
{
	struct experiment_server *s = r->x->server, engine = *s;
	struct json_value *args = arena_alloc(r->a, sizeof(*args));
	const struct opt_set *set = config_bench_set(r->x->mode);
	char *const *words;

	args->kind = JSON_OBJECT;
	for (size_t i = 0; i < s->args->count; i++) {
		struct str key = s->args->key[i], head = key;
		const struct engine_arg *arg = engine_arg_find(str_cut(&head, '.'));
		const struct json_value *from = json_get(json_get(tree, "server"), key.p);

		if (arg && !engine_arg_is_engines(arg, true))
			config_note(r->c, r->f, from, config_path(r, "server", key),
				    "no effect without a server");
		else if (!arg && config_row(set, key))
			config_complain_key(r->c, r->f, from, config_path(r, "server", key),
					    "it belongs in benchmark, not in server");
		else
			config_member(args, arena_text(r->a, key), s->args->item[i], r->a);
	}
	engine.args = args;
	engine.command = (char *const[]){ NULL };
	words = config_server_words(&engine, r->a);
	for (size_t i = 0; words[i]; i++)
		words_add(w, words[i]);
}

/* The result that `require` is checked against. Without one only names of metrics are checked. */
static void keep_example(struct config_reader *r, const void *values)
{
	const struct offline_verb *verb = r->x->mode == MODE_THROUGHPUT ? &throughput_verb :
					  r->x->mode == MODE_LATENCY ? &latency_verb :
					  r->x->mode == MODE_STARTUP ? &startup_verb : NULL;
	struct buf json = { 0 };

	if (verb)
		verb->example(values, &json);
	if (json.len)
		r->example = config_tree_of(buf_str(&json), r->a);
	buf_release(&json);
}

static void read_offline(struct config_reader *r, const struct json_value *tree,
			 const struct json_value *bench, const char *const *others)
{
	const struct opt_set *set = config_bench_set(r->x->mode);
	void *values = arena_alloc(r->a, set->bytes);
	struct opt_result given = { 0 };
	struct word_list w = { .arena = r->a };
	bool is_sim = r->x->n_servers && config_is_sim(r->x->server[0].command);
	struct buf json = { 0 };

	config_section(r, bench, "benchmark", set, values, &given, others);
	w.v = arena_alloc(r->a, sizeof(*w.v));
	if (is_sim)
		words_add(&w, arena_text(r->a, STR("--backend=sim")));
	for (size_t i = 0; bench && i < bench->count; i++) {
		const struct opt *row = config_row(set, bench->key[i]);

		if (!row || bench->item[i].kind == JSON_NULL ||
		    (is_sim && str_is(bench->key[i], "backend")))
			continue;
		add_option(r, &w, row, bench->key[i], &bench->item[i]);
	}
	if (r->x->n_servers)
		add_engine(r, &w, tree);
	r->x->offline_argv = w.v;
	if (is_sim)
		opt_give(set, values, &given, "backend", STR("sim"), r->a, &(struct err){ 0 });
	keep_example(r, values);
	opt_json(set, values, &json);
	r->x->benchmark = config_tree_of(buf_str(&json), r->a);
	buf_release(&json);
}

/* ---- both ---- */

/* JSON has no infinity: "inf", as the option is typed. */
static void record(struct config_reader *r)
{
	struct json_value *out = arena_alloc(r->a, sizeof(*out));
	const struct json_value *all;

	if (mode_is_served(r->x->mode))
		r->x->benchmark = config_tree_of(multi_turn_options(&r->x->serve,
						 r->x->mode == MODE_MULTI_TURN ? &r->x->turns :
						 NULL, r->a), r->a);
	all = r->x->benchmark;
	out->kind = JSON_OBJECT;
	out->key = arena_alloc(r->a, (all->count + 1) * sizeof(*out->key));
	out->item = arena_alloc(r->a, (all->count + 1) * sizeof(*out->item));
	out->key[0] = STR("mode");
	out->item[0] = (struct json_value){ .kind = JSON_STRING,
					    .text = str_of(experiment_mode_name(r->x->mode)) };
	out->count = 1;
	for (size_t i = 0; i < all->count; i++) {
		struct json_value v = all->item[i];

		if (v.kind == JSON_REAL && isinf(v.real))
			v = (struct json_value){ .kind = JSON_STRING,
						 .text = v.real < 0 ? STR("-inf") : STR("inf") };
		out->key[out->count] = all->key[i];
		out->item[out->count++] = v;
	}
	r->x->benchmark = out;
}

void config_bench(struct config_reader *r, const struct json_value *tree)
{
	const char *others[2 + sizeof(elsewhere) / sizeof(*elsewhere)] = { "mode" };
	const struct json_value *bench = config_object(r, tree, "benchmark");
	size_t n = 1;

	read_mode(r, bench);
	if (r->x->mode == MODE_STRUCTURED)
		bench = config_merge(r->c, config_tree_of(STR("{\"dataset_name\": \"structured\", "
							      "\"temperature\": 0}"), r->a), bench);
	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (is_elsewhere(r->x->mode, i))
			others[n++] = elsewhere[i].name;
	others[n] = NULL;
	refuse_elsewhere(r, bench);
	note_idle(r, bench);
	if (r->x->mode == MODE_MULTI_TURN)
		read_turns(r, bench, others);
	else if (mode_is_served(r->x->mode))
		read_serve(r, bench, others);
	else
		read_offline(r, tree, bench, others);
	record(r);
}
