/* SPDX-License-Identifier: Apache-2.0 */
/* config.c - see config.h: the sections of an experiment, and what follows from all of them. */
#include <ctype.h>
#include <math.h>

#include "base/codec.h"
#include "base/limits.h"
#include "experiment/config_parts.h"
#include "json/write.h"
#include "report/compare.h"
#include "run/serve_gate.h"

#define EXPERIMENT_GPUS_MAX 1024 /* of one experiment; as for server.gpus */

/* Keys of a suite are read by suite.h. */
static const char *const sections[] = {
	"name", "suite", "tags", "server", "servers", "benchmark", "profiling", "resources",
	"telemetry", "output", "provenance", "require", "include", "matrix",
	"matrix_exclude", "experiments", "import", "repeat", "shuffle", "restart", "jobs",
	"stop_on_error",
};
#define N_SECTIONS (sizeof(sections) / sizeof(*sections))

/* ---- the root ---- */

static bool is_section(struct str key)
{
	for (size_t i = 0; i < N_SECTIONS; i++)
		if (str_is(key, sections[i]))
			return true;
	return false;
}

static void check_root(struct config_reader *r, const struct json_value *tree)
{
	if (tree->count > EXPERIMENT_KEYS_MAX)
		config_complain(r->c, r->f, tree, "", "%zu keys, more than the %d of "
				"EXPERIMENT_KEYS_MAX", tree->count, EXPERIMENT_KEYS_MAX);
	for (size_t i = 0; i < tree->count && i < EXPERIMENT_KEYS_MAX; i++) {
		struct str key = tree->key[i];
		const char *near;

		if (is_section(key))
			continue;
		near = opt_nearest(key, sections, N_SECTIONS);
		if (!near && config_row(&serve_opt_set, key))
			config_complain_key(r->c, r->f, &tree->item[i], arena_text(r->a, key),
					    "unknown key; it belongs to benchmark");
		else
			config_complain_key(r->c, r->f, &tree->item[i], arena_text(r->a, key),
					    "unknown key%s%s%s", near ? "; did you mean " : "",
					    near ? near : "", near ? "?" : "");
	}
}

static const char *read_text(struct config_reader *r, const struct json_value *tree,
			     const char *key)
{
	const struct json_value *v = config_get(tree, key);
	const char *text = v ? config_scalar(v, r->a) : NULL;

	if (v && (!text || !*text))
		config_complain(r->c, r->f, v, key, "expected a text, got %s",
				text ? "an empty one" : config_got(v, r->a));
	return text && *text ? text : NULL;
}

static const struct json_value *read_texts(struct config_reader *r, const struct json_value *tree,
					   const char *key)
{
	const struct json_value *v = config_object(r, tree, key);
	struct json_value *out;

	if (!v)
		return NULL;
	out = arena_alloc(r->a, sizeof(*out));
	out->kind = JSON_OBJECT;
	for (size_t i = 0; i < v->count; i++) {
		const char *text = config_scalar(&v->item[i], r->a);

		if (!text)
			config_complain(r->c, r->f, &v->item[i], config_path(r, key, v->key[i]),
					"expected a text, got %s", config_got(&v->item[i], r->a));
		else
			config_member(out, v->key[i].p, (struct json_value){
				.kind = JSON_STRING, .text = str_of(text) }, r->a);
	}
	return out;
}

/* "a-b.yaml" of "dir/a-b.yaml": a name for what has none. */
static const char *name_of_file(const struct config_reader *r)
{
	const char *slash = strrchr(r->c->path, '/'), *name = slash ? slash + 1 : r->c->path;
	const char *dot = strrchr(name, '.');

	return dot && dot > name ?
		arena_text(r->a, (struct str){ name, (size_t)(dot - name) }) : name;
}

/* ---- resources ---- */

static void read_gpus(struct config_reader *r, const struct json_value *v)
{
	struct experiment_resources *out = &r->x->resources;
	const char *text = v ? config_scalar(v, r->a) : NULL;
	struct json_value *list;
	int64_t count;

	if (!v || (text && strcmp(text, "auto") == 0))
		return;
	if (text && strcmp(text, "none") == 0) {
		out->want = GPUS_NONE;
		return;
	}
	if (text && str_to_i64(str_of(text), &count)) {
		if (count < 0 || count > EXPERIMENT_GPUS_MAX)
			config_complain(r->c, r->f, v, "resources.gpus",
					"expected auto, none, a number of GPUs from 0 to %d or a "
					"list, got %s", EXPERIMENT_GPUS_MAX, config_got(v, r->a));
		out->want = count ? GPUS_COUNT : GPUS_NONE;
		out->count = (unsigned)count;
		return;
	}
	out->want = GPUS_LIST;
	if (v->kind == JSON_STRING && v->text.n) {
		struct str rest = v->text;

		/* "0,1", as CUDA_VISIBLE_DEVICES has it. */
		list = arena_alloc(r->a, sizeof(*list));
		list->kind = JSON_ARRAY;
		list->item = arena_alloc(r->a, (v->text.n + 1) * sizeof(*list->item));
		while (rest.n)
			list->item[list->count++] = (struct json_value){
				.kind = JSON_STRING,
				.text = arena_str(r->a, str_trim(str_cut(&rest, ','))) };
		json_marks_copy(r->c->marks, v, list);
		v = list;
	}
	if (v->kind != JSON_ARRAY || v->count == 0)
		config_complain(r->c, r->f, v, "resources.gpus", "expected auto, none, a number of "
				"GPUs or a list of indices or UUIDs, got %s", config_got(v, r->a));
	else if (v->count > EXPERIMENT_GPUS_MAX)
		config_complain(r->c, r->f, v, "resources.gpus", "a list of %zu GPUs, more than the "
				"%d that an experiment may have", v->count, EXPERIMENT_GPUS_MAX);
	else
		out->list = (const char *const *)config_list(r, v, "resources.gpus");
}

static void read_ports(struct config_reader *r, const struct json_value *object, const char *text)
{
	struct str last = str_of(text), first = str_cut(&last, '-');
	int64_t low, high;

	if (!last.n)
		last = first;
	if (str_to_i64(str_trim(first), &low) && str_to_i64(str_trim(last), &high) && low >= 1 &&
	    high <= 65535 && low <= high) {
		r->x->resources.port_first = (unsigned)low;
		r->x->resources.port_last = (unsigned)high;
		return;
	}
	config_complain(r->c, r->f, config_get(object, "ports"), "resources.ports",
			"expected FIRST-LAST within 1-65535, got '%.80s'", text);
}

static void read_resources(struct config_reader *r, const struct json_value *tree)
{
	static const char *const others[] = { "gpus", NULL };
	const struct json_value *object = config_object(r, tree, "resources");
	struct experiment_resources *out = &r->x->resources;
	struct config_resources own;

	config_section(r, object, "resources", &config_resources_set, &own, NULL, others);
	read_gpus(r, config_get(object, "gpus"));
	out->is_shared = own.shared;
	/* Who shares a GPU finds it used. */
	out->memory_free_min = own.shared && !config_get(object, "memory_free") ? 0 :
										    own.memory_free;
	out->wait_s = own.wait_s;
	read_ports(r, object, own.ports);
}

/* ---- profiling, telemetry, output ---- */

static void read_profiling(struct config_reader *r, const struct json_value *tree)
{
	struct config_profiling own;

	config_section(r, config_object(r, tree, "profiling"), "profiling", &config_profiling_set,
		       &own, NULL, NULL);
	r->x->profiling = (struct experiment_profiling){
		.is_enabled = own.enabled, .tool = own.tool, .dir = own.dir, .delay_s = own.delay_s,
		.duration_s = own.duration_s, .stop_timeout_s = own.stop_timeout_s,
	};
}

static void read_telemetry(struct config_reader *r, const struct json_value *tree)
{
	struct config_telemetry own;

	config_section(r, config_object(r, tree, "telemetry"), "telemetry", &config_telemetry_set,
		       &own, NULL, NULL);
	r->x->telemetry = (struct experiment_telemetry){
		.is_enabled = own.enabled, .interval_s = own.interval_s, .gpu = own.gpu,
		.host = own.host, .process = own.process, .server = own.server,
	};
}

static void check_upload(struct config_reader *r, const struct json_value *upload)
{
	static const char *const known[] = { "url", "token_file" };

	if (!upload)
		return;
	if (upload->kind != JSON_OBJECT || !config_get(upload, "url")) {
		config_complain(r->c, r->f, upload, "output.upload", "expected {url: URL, token_file: "
				"FILE}, got %s", config_got(upload, r->a));
		return;
	}
	for (size_t i = 0; i < upload->count; i++) {
		struct str key = upload->key[i];

		if (!str_is(key, known[0]) && !str_is(key, known[1]))
			config_unknown(r, &upload->item[i], key, "output.upload", known, 2);
		else if (upload->item[i].kind != JSON_STRING && upload->item[i].kind != JSON_NULL)
			config_complain(r->c, r->f, &upload->item[i],
					config_path(r, "output.upload", key),
					"expected a text, got %s",
					config_got(&upload->item[i], r->a));
	}
}

static void read_output(struct config_reader *r, const struct json_value *tree)
{
	static const char *const others[] = { "upload", NULL };
	const struct json_value *object = config_object(r, tree, "output");
	struct config_output own;

	config_section(r, object, "output", &config_output_set, &own, NULL, others);
	check_upload(r, config_get(object, "upload"));
	r->x->output = (struct experiment_output){
		.path = own.path, .folder = own.folder, .keeps_record = own.record,
		.is_detailed = own.detailed,
	};
}

/* ---- require ---- */

/* Conditions that must hold: what fails is the opposite. */
static int read_condition(const struct config_reader *r, struct str text, struct gate *out,
			  struct err *e)
{
	static const enum gate_op opposite[] = {
		[GATE_ABOVE] = GATE_AT_MOST, [GATE_AT_MOST] = GATE_ABOVE,
		[GATE_BELOW] = GATE_AT_LEAST, [GATE_AT_LEAST] = GATE_BELOW,
	};
	const char *mode = arena_printf(r->a, "mode %s", experiment_mode_name(r->x->mode));

	if (gate_parse(out, text, r->a, e) < 0)
		return -1;
	out->op = opposite[out->op];
	if (strstr(out->key, "ttft") &&
	    str_is(json_text(json_get(r->x->tags, "decode_only"), STR("")), "true"))
		return err_set(e, ERR_USAGE, "'%s': an experiment tagged decode_only has no times to "
			       "the first token; remove the condition or the tag", out->text);
	if (r->derived)
		return serve_gate_check(out, r->asked, r->derived, true, e);
	if (r->example)
		return gate_check_like(out, r->example, mode, e);
	if (!out->is_relative && !mode_is_served(r->x->mode) && compare_is_metric(out->key))
		return 0;
	return gate_check_alone(out, e);
}

static void read_require(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *v = config_get(tree, "require");
	struct gate *gate;

	if (v && (v->kind != JSON_ARRAY || v->count > GATE_CONDITIONS_MAX))
		config_complain(r->c, r->f, v, "require", "expected a list of at most %d conditions such "
				"as \"p99_ttft_ms<=200\", got %s", GATE_CONDITIONS_MAX,
				v->kind == JSON_ARRAY ? "a longer one" : config_got(v, r->a));
	if (!v || v->kind != JSON_ARRAY || v->count > GATE_CONDITIONS_MAX)
		return;
	gate = arena_alloc(r->a, (v->count + 1) * sizeof(*gate));
	for (size_t i = 0; i < v->count; i++) {
		const char *path = arena_printf(r->a, "require.%zu", i);
		const struct json_value *one = &v->item[i];
		struct err e = { 0 };

		if (one->kind != JSON_STRING)
			config_complain(r->c, r->f, one, path, "expected a condition such as "
					"\"p99_ttft_ms<=200\", got %s", config_got(one, r->a));
		else if (read_condition(r, one->text, &gate[i], &e) < 0)
			config_complain(r->c, r->f, one, path, "%s", e.text);
	}
	r->x->require = gate;
	r->x->n_require = v->count;
}

/* ---- what follows from all ---- */

/* A server that GPUs are counted out for gets them, whatever its sizes say. */
static void settle_gpus(struct config_reader *r, const struct json_value *tree)
{
	struct experiment *x = r->x;
	struct experiment_resources *res = &x->resources;
	size_t n_sim = 0, n_listed = 0;

	for (size_t i = 0; i < x->n_servers; i++)
		n_sim += config_is_sim(x->server[i].command);
	while (res->list && res->list[n_listed])
		n_listed++;
	/* The simulator needs none: it does without where there are none. */
	if (n_sim == x->n_servers && n_sim && r->know->is_gpus_known && r->know->n_gpus == 0) {
		if (res->want == GPUS_COUNT || res->want == GPUS_LIST)
			config_note(r->c, r->f, config_get(config_get(tree, "resources"), "gpus"),
				    "resources.gpus", "no GPU may be used here; the simulator runs "
				    "without, so nothing about GPUs is tested");
		res->want = GPUS_NONE;
		for (size_t i = 0; i < x->n_servers; i++)
			x->server[i].gpus = 0;
	}
	if (res->want == GPUS_NONE || x->n_servers != 1 || x->server[0].url)
		return;
	if (res->want == GPUS_COUNT && !x->server[0].gpus)
		x->server[0].gpus = res->count;
	else if (res->want == GPUS_LIST && !x->server[0].gpus)
		x->server[0].gpus = (unsigned)n_listed;
}

static void add_words(struct json_writer *w, const char *key, char *const *words)
{
	json_member_array(w, key);
	for (size_t i = 0; words && words[i]; i++)
		json_put_text(w, words[i]);
	json_end_array(w);
}

static void add_server(struct json_writer *w, const struct experiment_server *s)
{
	json_begin_object(w);
	add_words(w, "command", s->command);
	add_words(w, "env", s->env);
	add_words(w, "extra_args", s->extra_args);
	json_member_text(w, "url", s->url);
	json_member_text(w, "role", server_role_name(s->role));
	json_member_int(w, "gpus", s->gpus);
	json_member_value(w, "args", s->args);
	if (s->container)
		json_member_value(w, "container", s->container);
	json_end_object(w);
}

/*
 * Of what is to be measured: not of its name, its files, or how it is watched. Defaults do not
 * count: before the start nobody knows them.
 */
static uint64_t hash_of(const struct experiment *x)
{
	struct buf text = { 0 }, hidden = { 0 };
	struct json_writer w = json_writer(&text);
	uint8_t out[DIGEST_BYTES];
	uint64_t hash = 0;

	json_begin_object(&w);
	json_member_array(&w, "servers");
	for (size_t i = 0; i < x->n_servers; i++)
		add_server(&w, &x->server[i]);
	json_end_array(&w);
	json_member_value(&w, "benchmark", x->benchmark);
	json_member_array(&w, "profiling");
	json_put_bool(&w, x->profiling.is_enabled);
	json_put_text(&w, x->profiling.tool);
	json_put_f64(&w, x->profiling.delay_s);
	json_put_f64(&w, x->profiling.duration_s);
	json_end_array(&w);
	add_words(&w, "offline", x->offline_argv);
	opt_json_hidden(&serve_opt_set, &x->serve, &hidden);
	if (mode_is_served(x->mode) && hidden.len)
		json_member_str(&w, "hidden", buf_str(&hidden));
	buf_release(&hidden);
	json_end_object(&w);
	digest(DIGEST_SHA256, STR("profllm experiment"), buf_str(&text), out);
	buf_release(&text);
	for (int i = 0; i < 8; i++)
		hash = hash << 8 | out[i];
	return hash;
}

int config_experiment(const struct config *c, const struct json_value *tree,
		      const struct config_know *know, struct arena *a, struct experiment *out,
		      struct config_findings *f)
{
	static const struct config_know nothing;
	struct config_reader r = { .c = c, .know = know ? know : &nothing, .a = a, .f = f,
				   .x = out };
	size_t before = f->n_errors;
	const char *name;

	*out = (struct experiment){ .repeat = 1, .repeats = 1, .given = tree };
	check_root(&r, tree);
	name = read_text(&r, tree, "name");
	out->name = name ? name : name_of_file(&r);
	out->suite = read_text(&r, tree, "suite");
	out->tags = read_texts(&r, tree, "tags");
	out->provenance = config_object(&r, tree, "provenance");
	read_output(&r, tree);
	read_resources(&r, tree);
	read_profiling(&r, tree);
	read_telemetry(&r, tree);
	config_servers(&r, tree);
	config_bench(&r, tree);
	read_require(&r, tree);
	settle_gpus(&r, tree);
	if (f->n_errors == before)
		config_rules(&r, tree);
	if (f->n_errors == before)
		config_bounds_check(&r, tree);
	out->hash = hash_of(out);
	return f->n_errors == before ? 0 : -1;
}
