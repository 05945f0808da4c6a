/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - see import.h: files, tests, and the members made from a test. */
#include "experiment/suite/import.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "bench/offline/latency.h"
#include "bench/offline/startup.h"
#include "bench/offline/throughput.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/opt/opt.h"
#include "experiment/suite/import_internal.h"
#include "results/decide/capacity.h"

void shell_words(struct buf *out, char *const *argv)
{
	struct arena arena = { 0 };
	char **shown = redact_words(argv, &arena);

	for (size_t i = 0; shown[i]; i++) {
		buf_add_text(out, i ? " " : "");
		words_quote(out, str_of(shown[i]));
	}
	arena_release(&arena);
}

void shell_env(struct buf *out, char *const *env)
{
	for (size_t i = 0; env && env[i]; i++) {
		struct buf room = { 0 };
		struct str value = redact_line(str_of(env[i]), &room), name = str_cut(&value, '=');

		buf_add_text(out, i ? " " : "");
		buf_add_str(out, name);
		buf_add_char(out, '=');
		words_quote(out, value);
		buf_release(&room);
	}
}

/* ---- benchmarks ---- */

static void add_value(struct buf *out, const struct json_value *v)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	w.is_raw_utf8 = w.is_python = true;
	if (v->kind == JSON_STRING)
		buf_add_str(&text, v->text);
	else
		json_put_value(&w, v);
	buf_add_char(out, ' ');
	words_quote(out, buf_str(&text));
	buf_release(&text);
}

static void add_option(struct buf *out, const struct opt *row, const struct json_value *v)
{
	bool is_off = v->kind == JSON_FALSE;

	if (v->kind == JSON_NULL || (is_off && row->kind != OPT_TRI))
		return;
	buf_printf(out, " --%s%s", is_off ? "no-" : "", row->name);
	if (v->kind == JSON_FALSE || v->kind == JSON_TRUE)
		return;
	if (row->flags & OPT_SECRET || redact_is_secret(str_of(row->name)))
		buf_add_text(out, " '" REDACTED "'");
	else if (v->kind == JSON_ARRAY)
		for (size_t i = 0; i < v->count; i++)
			add_value(out, &v->item[i]);
	else
		add_value(out, v);
}

static void add_given(struct buf *out, const struct opt_set *set, const struct opt_result *given,
		      const struct json_value *options)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *row = &set->row[i];
		bool is_own = set == &multi_turn_opt_set && strcmp(row->name, "request-rate") == 0;
		const struct json_value *v = import_get(options, is_own ? "client-request-rate" :
						      row->name);

		if (v && !row->alias_of && opt_given(set, given, row->name))
			add_option(out, row, v);
	}
}

static void add_find(struct buf *out, const struct experiment_search *s)
{
	buf_printf(out, " --find-max-%s --precision %g --level-seconds %g --budget %g --slo ", s->find,
		   s->precision, s->level_s,
		   s->budget_s.is_set ? s->budget_s.v : CAPACITY_BUDGET_S);
	words_quote(out, str_of(s->slo));
}

void shell_benchmark(struct buf *out, const struct experiment *x, const char *url)
{
	bool has_turns = x->mode == MODE_MULTI_TURN;

	buf_printf(out, "%s bench %s", x->mode >= MODE_PRIORITIZATION || x->search.find ? "profllm" :
		   "vllm",
		   x->mode == MODE_STRUCTURED ? experiment_mode_name(MODE_SERVE) :
		   experiment_mode_name(x->mode));
	if (!mode_is_served(x->mode)) {
		if (x->offline_argv && *x->offline_argv) {
			buf_add_char(out, ' ');
			shell_words(out, x->offline_argv);
		}
		return;
	}
	if (url) {
		buf_add_text(out, has_turns ? " --url " : " --base-url ");
		words_quote(out, str_of(url));
	}
	if (has_turns)
		add_given(out, &multi_turn_opt_set, &x->turns_given, x->benchmark);
	add_given(out, &serve_opt_set, &x->serve_given, x->benchmark);
	if (x->search.find)
		add_find(out, &x->search);
}

struct reader {
	struct import_maker m;
	const char *file;
	const struct import_opts *o;
	const struct json_value *defaults;
	struct import_list *out;
	bool has_select;
	regex_t select;
};

static const struct { const char *word; enum experiment_mode mode; } kinds[] = {
	{ "serving_", MODE_SERVE }, { "latency_", MODE_LATENCY },
	{ "throughput_", MODE_THROUGHPUT }, { "startup_", MODE_STARTUP },
};

static int complain(struct reader *r, const struct json_value *at, const char *path,
		    const char *text)
{
	return config_complain(r->m.c, r->m.f, at, path, "%s", text);
}

static int add(struct reader *r, const struct import_member *member)
{
	struct import_list *l = r->out;

	if (l->n == SUITE_MEMBERS_MAX)
		return config_complain(r->m.c, r->m.f, NULL, "import", "%s: more than %d experiments",
				       r->file, SUITE_MEMBERS_MAX);
	if (l->n == l->cap) {
		struct import_member *v;

		l->cap = l->cap ? l->cap * 2 : 16;
		v = arena_alloc(r->m.a, l->cap * sizeof(*v));
		if (l->n)
			memcpy(v, l->v, l->n * sizeof(*v));
		l->v = v;
	}
	l->v[l->n++] = *member;
	return 0;
}

/* ---- what a test says ---- */

/* The test's object merged over that of the file's defaults; never NULL. */
static const struct json_value *parameters(struct reader *r, const struct json_value *test,
					   const char *key)
{
	const struct json_value *from[] = { json_get(r->defaults, key), json_get(test, key) };
	struct json_value *out = import_object(&r->m);

	for (size_t i = 0; i < 2; i++) {
		if (from[i] && from[i]->kind != JSON_OBJECT && from[i]->kind != JSON_NULL)
			complain(r, from[i], key, "expected an object");
		for (size_t k = 0; from[i] && from[i]->kind == JSON_OBJECT && k < from[i]->count;
		     k++)
			import_put(&r->m, out, arena_text(r->m.a, from[i]->key[k]),
				   &from[i]->item[k]);
	}
	return out;
}

static int64_t whole_number(const struct json_value *v, int64_t otherwise)
{
	int64_t n;

	if (v && v->kind == JSON_STRING && str_to_i64(v->text, &n))
		return n;
	return v && v->kind == JSON_INT ? v->integer : otherwise;
}

static bool is_filtered(const struct json_value *given, const char *key, const char *want)
{
	return want && !str_is(json_text(import_get(given, key), STR("")), want);
}

/* Whether it is left out; with a note for tests that need too many devices. */
static bool is_left_out(struct reader *r, const char *name, const struct json_value *given)
{
	const struct import_opts *o = r->o;
	int64_t tp = whole_number(import_get(given, "tensor_parallel_size"), 1);
	int64_t pp = whole_number(import_get(given, "pipeline_parallel_size"), 1);
	/* Others are judged with the configuration. */
	bool is_sound = tp >= 1 && pp >= 1 && tp <= 1 << 20 && pp <= 1 << 20;
	int64_t need = is_sound ? tp * pp : 1;

	if (r->has_select && regexec(&r->select, name, 0, NULL, 0) != 0)
		return true;
	if (is_filtered(given, "model", o->model) || is_filtered(given, "dtype", o->dtype))
		return true;
	if (!o->devices || o->remote || need <= (int64_t)o->devices)
		return false;
	config_note(r->m.c, r->m.f, NULL, "import", "%s: %s is skipped: it needs %lld %s, but "
						    "there %s %u",
		    r->file, name, (long long)need, o->is_on_cpu ? "NUMA nodes" : "GPUs",
		    o->devices == 1 ? "is" : "are", o->devices);
	return true;
}

static void put_env(struct reader *r, const struct json_value *env, struct json_value *server)
{
	struct json_value *out = import_object(&r->m);

	for (size_t i = 0; i < env->count; i++) {
		const struct json_value *v = &env->item[i];
		char *key = arena_text(r->m.a, env->key[i]);

		if (v->kind == JSON_INT || v->kind == JSON_REAL)
			import_put_text(&r->m, out, key, arena_text(r->m.a, v->raw));
		else
			import_put(&r->m, out, key, v);
	}
	if (out->count)
		import_put(&r->m, server, "env", out);
}

/* ---- tests without a server ---- */

static int read_offline(struct reader *r, const struct json_value *test, const char *name,
			enum experiment_mode mode)
{
	const struct opt_set *set = mode == MODE_LATENCY ? &latency_opt_set
				    : mode == MODE_STARTUP ? &startup_opt_set
							   : &throughput_opt_set;
	const struct json_value *given = parameters(r, test, "parameters");
	struct json_value *over = import_object(&r->m), *server = import_object(&r->m);
	struct json_value *benchmark = import_object(&r->m);

	if (is_left_out(r, name, given))
		return 0;
	if (json_text(import_get(given, "model"), STR("")).n == 0)
		return complain(r, test, name, "its parameters name no model");
	import_put_text(&r->m, benchmark, "mode", experiment_mode_name(mode));
	import_benchmark(&r->m, set, given, benchmark, server);
	put_env(r, parameters(r, test, "environment_variables"), server);
	import_put(&r->m, over, "server", server);
	import_put(&r->m, over, "benchmark", benchmark);
	return add(r, &(struct import_member){
		.name = name, .over = over,
		.test = { .file = r->file, .test = name, .mode = mode, .o = r->o } });
}

/* ---- serving tests: one experiment for each rate and concurrency ---- */

struct serving {
	const struct json_value *test, *server_given, *client;
	const char *name;
	const struct json_value *server;  /* keys of a configuration */
};

static void put_metadata(struct reader *r, const struct serving *s, struct json_value *benchmark)
{
	static const char *const key[] = { "compilation_config.mode", "optimization_level" };
	struct json_value *list = import_list_value(&r->m);

	import_append_text(&r->m, list, arena_printf(r->m.a, "tensor_parallel_size=%lld",
		(long long)whole_number(import_get(s->server_given, "tensor_parallel_size"), 1)));
	for (size_t i = 0; i < sizeof(key) / sizeof(*key); i++) {
		const struct json_value *v = import_get(s->server_given, key[i]);
		struct str text = v && v->kind == JSON_STRING ? v->text : v ? v->raw : STR("");

		if (text.n)
			import_append_text(&r->m, list, arena_printf(r->m.a, "%s=%.*s", key[i],
								     (int)text.n, text.p));
	}
	import_put(&r->m, benchmark, "metadata", list);
}

int64_t import_prompts(const struct import_opts *o, int64_t concurrency)
{
	int64_t n = concurrency * o->prompts_per_concurrency;

	return n < o->min_num_prompts ? o->min_num_prompts
	       : n > o->max_num_prompts ? o->max_num_prompts : n;
}

static int add_point(struct reader *r, const struct serving *s, const char *qps,
		     const struct json_value *rate, int64_t concurrency)
{
	struct json_value *over = import_object(&r->m), *benchmark = import_object(&r->m);
	const char *name = arena_printf(r->m.a, "%s_qps_%s_concurrency_%lld", s->name, qps,
					(long long)concurrency);

	import_put_text(&r->m, benchmark, "mode", experiment_mode_name(MODE_SERVE));
	import_benchmark(&r->m, &serve_opt_set, s->client, benchmark, NULL);
	import_put(&r->m, benchmark, "request_rate", rate);
	import_put_int(&r->m, benchmark, "max_concurrency", concurrency);
	if (r->o->prompts_per_concurrency)
		import_put_int(&r->m, benchmark, "num_prompts", import_prompts(r->o, concurrency));
	put_metadata(r, s, benchmark);
	import_put(&r->m, over, "server", s->server);
	import_put(&r->m, over, "benchmark", benchmark);
	return add(r, &(struct import_member){
		.name = name, .over = over,
		.test = { .file = r->file, .test = s->name, .mode = MODE_SERVE, .qps = qps,
			  .concurrency = concurrency, .o = r->o } });
}

/* The test's list, else one element; NULL: a complaint was made. */
static const struct json_value *list_of(struct reader *r, const struct serving *s, const char *key,
					const struct json_value *otherwise)
{
	const struct json_value *list = json_get(s->test, key);
	struct json_value *one, *parsed;
	struct err e;

	if (!list || list->kind == JSON_NULL)
		list = json_get(r->defaults, key);
	if (list && list->kind == JSON_NULL)
		list = NULL;
	if (list && list->kind == JSON_STRING && /* "[1, 2]" */
	    json_parse(r->m.a, list->text, &parsed, &e) == 0)
		list = parsed;
	if (list && list->kind == JSON_ARRAY && list->count > 0 && list->count <= IMPORT_POINTS_MAX)
		return list;
	if (list || !otherwise) {
		config_complain(r->m.c, r->m.f, list ? list : s->test, s->name,
				"%s: expected a list of 1 to %d values", key, IMPORT_POINTS_MAX);
		return NULL;
	}
	one = import_list_value(&r->m);
	import_append(&r->m, one, otherwise);
	return one;
}

static int add_points(struct reader *r, const struct serving *s)
{
	const struct json_value *prompts = import_get(s->client, "num_prompts");
	struct json_value usual = { .kind = JSON_INT };
	const struct json_value *rates, *levels;

	usual.integer = whole_number(prompts, 1000);
	rates = list_of(r, s, "qps_list", NULL);
	levels = rates ? list_of(r, s, "max_concurrency_list", &usual) : NULL;
	for (size_t i = 0; levels && i < rates->count; i++) {
		const struct json_value *rate = &rates->item[i];
		const char *qps = arena_text(r->m.a, rate->kind == JSON_STRING ? rate->text
								       : rate->raw);
		double number;

		if (!*qps || !str_to_f64(str_of(qps), &number) || !(number > 0))
			return config_complain(r->m.c, r->m.f, rate, s->name, "qps_list: expected "
					       "numbers above 0 or \"inf\"");
		for (size_t k = 0; k < levels->count; k++) {
			int64_t n = whole_number(&levels->item[k], 0);

			if (n < 1 || n > INT32_MAX)
				return config_complain(r->m.c, r->m.f, &levels->item[k], s->name,
						       "max_concurrency_list: expected whole "
						       "numbers from 1");
			if (add_point(r, s, qps, rate, n) < 0)
				return -1;
		}
	}
	return levels ? 0 : -1;
}

static int read_serving(struct reader *r, const struct json_value *test, const char *name)
{
	struct serving s = {
		.test = test, .name = name, .server_given = parameters(r, test, "server_parameters"),
		.client = parameters(r, test, "client_parameters"),
	};
	struct str model = json_text(import_get(s.server_given, "model"), STR(""));
	struct str client = json_text(import_get(s.client, "model"), STR(""));
	struct json_value *server = import_object(&r->m);

	if (is_left_out(r, name, s.server_given))
		return 0;
	if (model.n == 0)
		return complain(r, test, name, "its server_parameters name no model");
	if (!str_eq(model, client)) {
		config_note(r->m.c, r->m.f, NULL, "import", "%s: %s is skipped: its client "
			    "requests %.*s, but the server has %.*s", r->file, name,
			    client.n ? (int)client.n : 10, client.n ? client.p : "no model at",
			    (int)model.n, model.p);
		return 0;
	}
	if (r->o->remote) {
		import_put_text(&r->m, server, "url", r->o->remote);
	} else {
		import_server(&r->m, s.server_given, server);
		put_env(r, parameters(r, test, "server_environment_variables"), server);
	}
	s.server = server;
	return add_points(r, &s);
}

/* ---- files ---- */

static int read_test(struct reader *r, const struct json_value *test)
{
	const struct json_value *name = json_get(test, "test_name");

	if (!name || name->kind != JSON_STRING)
		return complain(r, test, "test_name", "a test needs one, a text");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		const char *text = arena_text(r->m.a, name->text);

		if (!str_starts(name->text, str_of(kinds[i].word)))
			continue;
		if (kinds[i].mode == MODE_SERVE)
			return read_serving(r, test, text);
		return read_offline(r, test, text, kinds[i].mode);
	}
	return config_complain(r->m.c, r->m.f, name, "test_name", "expected a name that begins with "
			       "serving_, latency_, throughput_ or startup_, got '%.*s'",
			       (int)name->text.n, name->text.p);
}

static int read_tests(struct reader *r, const struct json_value *v)
{
	const struct json_value *tests = v->kind == JSON_OBJECT ? json_get(v, "tests") : v;
	int rc = 0;

	r->defaults = v->kind == JSON_OBJECT ? json_get(v, "defaults") : NULL;
	if (!tests || tests->kind != JSON_ARRAY)
		return complain(r, v, "import", "expected a list of tests, or an object with "
						"defaults and tests");
	for (size_t i = 0; i < tests->count; i++)
		if (tests->item[i].kind != JSON_OBJECT)
			rc = complain(r, &tests->item[i], "import", "a test is an object");
		else if (read_test(r, &tests->item[i]) < 0)
			rc = -1;
	return rc;
}

int import_parse(const struct config *c, struct str text, const char *file,
		 const struct import_opts *o, struct arena *a, struct import_list *out,
		 struct config_findings *f)
{
	struct reader r = { .m = { c, a, f, o->is_simulated }, .file = file, .o = o, .out = out };
	struct json_value *v;
	struct err e;
	int rc;

	if (json_parse_marked(a, text, file, c->marks, &v, &e) < 0)
		return config_complain(c, f, NULL, "import", "%s:%s", file,
				       config_bounds_fault(c, e.text));
	if (o->select && *o->select) {
		if (regcomp(&r.select, o->select, REG_EXTENDED | REG_NOSUB) != 0)
			return config_complain(c, f, NULL, "import.select", "'%s' is not a valid "
					       "regular expression", o->select);
		r.has_select = true;
	}
	rc = read_tests(&r, v);
	if (r.has_select)
		regfree(&r.select);
	return rc;
}
