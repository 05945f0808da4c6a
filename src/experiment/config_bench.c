/* SPDX-License-Identifier: Apache-2.0 */
/* config_bench.c - see config_parts.h: the benchmark, by the rows of its mode's verb. */
#include <math.h>

#include "base/limits.h"
#include "base/str.h"
#include "engine/args.h"
#include "experiment/config_parts.h"
#include "experiment/document.h"
#include "run/latency.h"
#include "run/multi_turn.h"
#include "run/prefix_bench.h"
#include "run/prioritization.h"
#include "run/startup.h"
#include "run/throughput.h"

/* Options of the verbs that something else of an experiment says; where is what to write. */
static const struct { const char *name, *where; } elsewhere[] = {
	{ "base_url", "server.url attaches to a server" },
	{ "base_urls", "server.url attaches to a server" },
	{ "url", "server.url attaches to a server" },
	{ "host", "server.host says where it listens, server.url attaches to a running one" },
	{ "port", "server.port says where it listens, server.url attaches to a running one" },
	{ "api_key", "the environment variable OPENAI_API_KEY is the key" },
	{ "server_cmd", "server.command starts the server" },
	{ "dry_run", "profllm run has --dry-run" },
	{ "compare", "profllm bench compare compares documents" },
	{ "find_max_rate", "bench serve and bench sweep serve_sla search for the largest load" },
	{ "find_max_concurrency", "bench serve and bench sweep serve_sla search for the largest load" },
	{ "slo", "bench serve --slo says whether a load holds" },
	{ "precision", "bench serve and bench sweep serve_sla search for the largest load" },
	{ "budget", "bench serve and bench sweep serve_sla search for the largest load" },
	{ "level_seconds", "bench serve and bench sweep serve_sla search for the largest load" },
	{ "fail_if", "require, at the top of the file, is a list of such conditions" },
	{ "allow_unjudged", "profllm run has --allow-unjudged" },
	{ "junit", "profllm run has --junit" },
	{ "summary", "profllm run has --summary" },
	{ "sweep_max_concurrency", "matrix: {benchmark.max_concurrency: [...]} is a suite of them" },
	{ "sweep_request_rate", "matrix: {benchmark.request_rate: [...]} is a suite of them" },
	{ "sweep_num_prompts_factor", "it is for --sweep-max-concurrency; a list of experiments says "
	  "num_prompts for each" },
	{ "sweep_summary_percentiles", "a suite's members have percentiles of their own" },
	{ "num_runs", "repeat: N runs the experiment so often" },
	{ "system_metrics", "telemetry says what is watched" },
	{ "system_interval", "telemetry.interval_s says how often" },
	{ "system_gpus", "resources.gpus says which GPUs" },
	{ "system_pid", "the server's processes are known" },
};

/* Those that would write beside the document what is in it: without effect. */
static const char *const idle[] = {
	"save_result", "append_result", "result_dir", "result_filename", "output_json", "progress",
	"disable_tqdm", "live", "charts", "strict", "output_file", "stats_json_output",
	"excel_output", "print_content", NULL,
};

const struct opt_set *config_bench_set(enum experiment_mode mode)
{
	const struct opt_set *const sets[MODE_COUNT] = {
		&serve_opt_set, &throughput_opt_set, &latency_opt_set, &startup_opt_set,
		&prioritization_opt_set, prefix_caching_bench.set, long_document_bench.set,
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

bool config_is_elsewhere(enum experiment_mode mode, const char *name)
{
	const struct opt row = { .name = name };
	const struct opt_set one = { .row = &row, .n = 1 };

	for (size_t i = 0; i < sizeof(elsewhere) / sizeof(*elsewhere); i++)
		if (is_elsewhere(mode, i) && config_row(&one, str_of(elsewhere[i].name)))
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
					    "not said here; %s", elsewhere[i].where);
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

/* Who knows the model: the server that serves, or one behind it when that is a proxy. */
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

/* The model and its names are the server's, so that nobody has to say them twice. */
static void take_from_server(struct config_reader *r)
{
	struct serve_opts *o = &r->x->serve;
	const struct experiment_server *s = r->x->n_servers ? knows_model(r->x) : NULL;

	if (!s || r->x->server[r->x->serving].url)
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
	else if (config_is_sim(s->command))
		o->tokenizer = "sim";
}

/* The value of the option that a message names first; the whole benchmark when it names none. */
static const struct json_value *named(const struct json_value *bench, const char *text,
				      const char **key, struct arena *a)
{
	for (const char *at = strstr(text, "--"); at; at = strstr(at + 2, "--")) {
		struct str name = { at + 2, strspn(at + 2, "abcdefghijklmnopqrstuvwxyz0123456789-") };
		char *spelled = arena_text(a, name);
		const struct json_value *v;

		for (char *c = spelled; *c; c++)
			*c = *c == '-' ? '_' : *c;
		v = config_get(bench, spelled);
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

/* The options as they will be in force, but for the address: what a document has is added. */
static struct serve_opts *copy_serve(const struct config_reader *r)
{
	struct serve_opts *copy = arena_alloc(r->a, sizeof(*copy));

	*copy = r->x->serve;
	copy->metric_percentiles = arena_printf(r->a, "%s,%s", DOCUMENT_PERCENTILES,
						copy->metric_percentiles);
	return copy;
}

/* What upstream says only once the run has begun is said here, on a copy. */
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
			derived->metrics |= SERVE_TTFT | SERVE_TPOT | SERVE_ITL | SERVE_E2EL;
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

static void check_turns(struct config_reader *r, const struct json_value *bench)
{
	struct serve_opts *copy = copy_serve(r);
	struct opt_result given = r->x->serve_given;
	struct multi_turn m = { 0 };
	struct err e = { 0 };

	if (multi_turn_opts_check(&r->x->turns, r->a, &m, &e) == 0)
		multi_turn_over_serve(&m, copy, &given, r->a, &e);
	check_serve(r, bench, copy, &given, &e);
}

static void read_turns(struct config_reader *r, const struct json_value *bench,
		       const char *const *others)
{
	struct experiment *x = r->x;
	const struct json_value *serve = turn_keys(r, bench, false);
	size_t before = r->f->n_errors;

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
	if (r->f->n_errors == before)
		check_turns(r, bench);
}

/* ---- the other modes ---- */

static char *dashed(struct str key, struct arena *a)
{
	char *text = arena_text(a, key);

	for (char *c = text; *c && *c != '.'; c++)
		*c = *c == '_' ? '-' : *c;
	return text;
}

/* An option as it is typed. */
static void add_option(struct config_reader *r, struct word_list *w, const struct opt *row,
		       struct str key, const struct json_value *v)
{
	const char *name = dashed(key, r->a), *text = config_scalar(v, r->a);

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

/* Arguments of the HTTP server mean nothing to an engine without one. */
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
					    "it belongs to benchmark, not server");
		else
			config_member(args, arena_text(r->a, key), s->args->item[i], r->a);
	}
	engine.args = args;
	engine.command = (char *const[]){ NULL };
	words = config_server_words(&engine, r->a);
	for (size_t i = 0; words[i]; i++)
		words_add(w, words[i]);
}

/* What require is checked against. Modes without one have their metrics' names checked alone. */
static void keep_example(struct config_reader *r, const void *values)
{
	struct buf json = { 0 };

	if (r->x->mode == MODE_THROUGHPUT)
		throughput_example(values, &json);
	else if (r->x->mode == MODE_LATENCY)
		latency_example(values, &json);
	else if (r->x->mode == MODE_STARTUP)
		startup_example(values, &json);
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
