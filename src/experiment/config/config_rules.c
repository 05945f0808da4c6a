/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_rules.c - rules between values of one experiment.
 *
 * A rule is one small function that examines an experiment whose values are each valid and reports
 * what does not fit together, at the value that would most likely be changed. An error is what
 * cannot work; a combination that may be intended gets a note.
 */
#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/limits.h"
#include "experiment/config/command.h"
#include "experiment/config/config_internal.h"
#include "host/engine/args.h"

struct rules {
	struct config_reader *r;
	const struct json_value *tree;
};

typedef void rule(const struct rules *q);
/* Called for every server that we start, except simulators if the row says so. */
typedef void server_rule(const struct rules *q, size_t i);

#define TEXT_MAX 900

/* ---- values ---- */

#define BENCH SIZE_MAX /* instead of a server's place: the benchmark */

static const struct json_value *server_tree(const struct rules *q, size_t i)
{
	const struct json_value *list = config_get(q->tree, "servers");

	if (i == BENCH)
		return config_get(q->tree, "benchmark");
	if (!list)
		return config_get(q->tree, "server");
	assert(i < q->r->x->n_servers);
	return i < list->count ? &list->item[i] : NULL;
}

/* The value of a server's key where it was written; NULL: not given. */
static const struct json_value *rules_given(const struct rules *q, size_t i, const char *key)
{
	return config_get(server_tree(q, i), key);
}

/* "server.key", "servers.1.key" or "benchmark.key". */
static const char *rules_path(const struct rules *q, size_t i, const char *key)
{
	if (i != BENCH && config_get(q->tree, "servers"))
		return arena_printf(q->r->a, "servers.%zu.%s", i, key);
	return arena_printf(q->r->a, "%s.%s", i == BENCH ? "benchmark" : "server", key);
}

/* The value in effect, defaults included; NAN: none, or not a number. */
static double rules_number(const struct rules *q, size_t i, const char *key)
{
	return json_real(json_get(q->r->x->server[i].values, key), NAN);
}

static bool rules_is_on(const struct rules *q, size_t i, const char *key)
{
	return json_bool(json_get(q->r->x->server[i].values, key), false);
}

/* ---- findings ---- */

/* Reports at the value of a server's key, or of the benchmark's, or where it would be. */
__attribute__((format(printf, 4, 5)))
static void rules_refuse(const struct rules *q, size_t i, const char *key, const char *fmt, ...)
{
	const struct json_value *v = rules_given(q, i, key);
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	config_complain(q->r->c, q->r->f, v ? v : server_tree(q, i), rules_path(q, i, key), "%s", text);
}

__attribute__((format(printf, 4, 5)))
static void rules_note(const struct rules *q, size_t i, const char *key, const char *fmt, ...)
{
	const struct json_value *v = rules_given(q, i, key);
	char text[TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	config_note(q->r->c, q->r->f, v ? v : server_tree(q, i), rules_path(q, i, key), "%s", text);
}

/* ---- servers ---- */

/* Something must answer the load. */
static void needs_server(const struct rules *q)
{
	if (q->r->x->n_servers == 0 && mode_is_served(q->r->x->mode))
		config_complain(q->r->c, q->r->f, q->tree, "server", "missing; expected a server "
				"to start, or the server.url of a running one");
}

/* The other modes drive an engine themselves. */
static void needs_engine(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const char *mode = experiment_mode_name(x->mode);

	if (mode_is_served(x->mode) || x->n_servers == 0)
		return;
	if (x->n_servers > 1)
		rules_refuse(q, 1, "name", "mode %s has one engine and no additional "
					   "servers", mode);
	else if (x->server[0].url)
		rules_refuse(q, 0, "url", "mode %s drives an engine without a server; mode serve "
			     "measures one that runs", mode);
	else if (x->server[0].container)
		rules_refuse(q, 0, "container", "mode %s drives an engine without a server, which "
			     "is not possible in a container", mode);
}

static void needs_one_that_serves(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	size_t n_serve = 0, n_proxy = 0;

	for (size_t i = 0; i < x->n_servers; i++) {
		n_serve += x->server[i].role == ROLE_SERVE;
		n_proxy += x->server[i].role == ROLE_PROXY;
	}
	if (x->n_servers > 1 && !n_serve && !n_proxy)
		config_complain(q->r->c, q->r->f, config_get(q->tree, "servers"), "servers",
				"no server would get the load; give one of them the role proxy or "
				"serve");
	else if (n_proxy > 1)
		config_complain(q->r->c, q->r->f, config_get(q->tree, "servers"), "servers",
				"there are %zu proxies, but load goes to one of them "
				"only", n_proxy);
	else if (!n_proxy && n_serve > 1)
		config_note(q->r->c, q->r->f, config_get(q->tree, "servers"), "servers",
			    "load goes to %s only, the first of %zu servers with role serve; a "
			    "proxy would distribute it",
			    x->server[x->serving].name, n_serve);
}

static bool is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n < 64 && name[0] != '.' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

static void has_names_of_its_own(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	for (size_t i = 0; i < x->n_servers; i++) {
		if (!is_name(x->server[i].name))
			rules_refuse(q, i, "name", "expected up to 63 letters, digits and . _ -, got "
				     "'%.80s'", x->server[i].name);
		for (size_t k = 0; k < i; k++)
			if (strcmp(x->server[i].name, x->server[k].name) == 0)
				rules_refuse(q, i, "name", "two servers have the name %s",
					     x->server[i].name);
	}
}

static void has_ports_of_its_own(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	for (size_t i = 0; i < x->n_servers; i++)
		for (size_t k = 0; k < i && x->server[i].port && !x->server[i].url; k++)
			if (!x->server[k].url && x->server[k].port == x->server[i].port)
				rules_refuse(q, i, "port", "%u is %s's already", x->server[i].port,
					     x->server[k].name);
}

/* ---- the order of starting ---- */

static size_t server_called(const struct experiment *x, const char *name)
{
	size_t i = 0;

	while (i < x->n_servers && strcmp(x->server[i].name, name) != 0)
		i++;
	return i;
}

static bool has_unknown_names(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const char *names[EXPERIMENT_SERVERS_MAX];
	bool is_found = false;

	for (size_t i = 0; i < x->n_servers; i++)
		names[i] = x->server[i].name;
	for (size_t i = 0; i < x->n_servers; i++)
		for (const char *const *name = x->server[i].after; name && *name; name++) {
			const char *near = opt_nearest(str_of(*name), names, x->n_servers);

			if (server_called(x, *name) < x->n_servers)
				continue;
			rules_refuse(q, i, "after", "there is no server '%.80s'%s%s%s", *name,
				     near ? "; did you mean " : "", near ? near : "",
				     near ? "?" : "");
			is_found = true;
		}
	return is_found;
}

/* Follows `after` from i; true, with the way it went, if it returns to where it began. */
static bool goes_round(const struct experiment *x, size_t i, size_t begin, bool *seen,
		       struct buf *way)
{
	size_t before = way->len;

	seen[i] = true;
	for (const char *const *name = x->server[i].after; name && *name; name++) {
		size_t next = server_called(x, *name);

		buf_printf(way, " after %s", *name);
		if (next == begin || (!seen[next] && goes_round(x, next, begin, seen, way)))
			return true;
		way->len = before;
	}
	return false;
}

static void can_be_ordered(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	if (has_unknown_names(q))
		return;
	for (size_t i = 0; i < x->n_servers; i++) {
		bool seen[EXPERIMENT_SERVERS_MAX] = { false };
		struct buf way = { 0 };
		bool is_round = goes_round(x, i, i, seen, &way);

		if (is_round)
			rules_refuse(q, i, "after", "these servers wait for each other, so none "
						    "can start first: %s%s",
				     x->server[i].name, way.data);
		buf_release(&way);
		if (is_round)
			return;
	}
}

/* Refuses commands with an unknown server name or an invalid port. */
static void can_be_commanded(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	struct arena *a = q->r->a;
	struct role_at *at = arena_alloc(a, (x->n_servers + 1) * sizeof(*at));

	for (size_t i = 0; i < x->n_servers; i++)
		at[i] = command_at(&x->server[i], x->server[i].port ? x->server[i].port : 1, a);
	for (size_t i = 0; i < x->n_servers && mode_is_served(x->mode); i++) {
		struct err e = { 0 };
		char **words, **env;

		if (x->server[i].url || (command_words(x, i, at, a, &words, &e) == 0 &&
					 command_env(x, i, at, a, &env, &e) == 0) ||
		    e.code != ERR_USAGE)
			continue;
		config_complain(q->r->c, q->r->f, server_tree(q, i),
				config_get(q->tree, "servers") ?
					arena_printf(a, "servers.%zu", i) : "server", "%s", e.text);
	}
}

/* ---- GPUs ---- */

/*
 * A machine without GPUs and one whose driver is broken look alike. An experiment that asks for
 * several, or for some by a key, does not run on the CPU unless it says so.
 */
static void refuse_without_gpu(const struct rules *q)
{
	static const char *const keys[] = { "gpus", "tensor_parallel_size",
					    "pipeline_parallel_size", "data_parallel_size" };
	const struct experiment *x = q->r->x;

	if (x->resources.want != GPUS_AUTO || !q->r->know->is_gpus_known || q->r->know->n_gpus)
		return;
	for (size_t i = 0; i < x->n_servers; i++) {
		const struct experiment_server *s = &x->server[i];
		const size_t n = sizeof(keys) / sizeof(*keys);
		size_t k = 0;

		if (s->url || !s->gpus || (s->gpus == 1 && !rules_given(q, i, "gpus")))
			continue;
		while (k < n && !rules_given(q, i, keys[k]))
			k++;
		rules_refuse(q, i, keys[k < n ? k : 0], "%u GPU%s needed, but none is available "
			     "here (does nvidia-smi list any?); resources.gpus: none starts the "
			     "server without GPUs",
			     s->gpus, s->gpus == 1 ? " is" : "s are");
	}
}

/* Each of several servers takes a fixed share, so no GPU may be left over. */
static void shares_are_whole(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const struct experiment_resources *res = &x->resources;
	unsigned need = 0, given = res->count;
	size_t n_started = 0;

	for (size_t i = 0; i < x->n_servers; i++) {
		n_started += !x->server[i].url;
		need += x->server[i].url ? 0 : x->server[i].gpus;
	}
	if (res->want == GPUS_LIST)
		for (given = 0; res->list[given]; given++)
			;
	if ((res->want == GPUS_COUNT || res->want == GPUS_LIST) && n_started > 1 && need &&
	    given > need)
		config_complain(q->r->c, q->r->f,
				config_get(config_get(q->tree, "resources"), "gpus"),
				"resources.gpus", "%u given, but the %zu servers need %u together",
				given, n_started, need);
}

static void has_gpus(const struct rules *q)
{
	const struct experiment *x = q->r->x;
	const struct experiment_resources *res = &x->resources;
	const struct json_value *v = config_get(config_get(q->tree, "resources"), "gpus");
	const struct config_know *know = q->r->know;
	unsigned need = 0, asked = 0;

	for (size_t i = 0; i < x->n_servers; i++)
		need += x->server[i].gpus;
	while (res->want == GPUS_LIST && res->list && res->list[asked])
		asked++;
	asked = res->want == GPUS_COUNT ? res->count : asked;
	if (res->want != GPUS_AUTO && res->want != GPUS_NONE && need > asked)
		config_complain(q->r->c, q->r->f, v, "resources.gpus", "%u given, but the server%s "
				"need%s %u: tensor x pipeline x data parallel size, or gpus of a "
				"server",
				asked, x->n_servers > 1 ? "s" : "", x->n_servers > 1 ? "" : "s", need);
	refuse_without_gpu(q);
	need = need > asked ? need : asked;
	if (!know->is_gpus_known || res->want == GPUS_NONE || need <= know->n_gpus)
		return;
	if (know->n_gpus)
		config_complain(q->r->c, q->r->f, v, "resources.gpus", "%u GPUs are needed, but "
				"only %u may be used here", need, know->n_gpus);
	else if (res->want != GPUS_AUTO)
		config_complain(q->r->c, q->r->f, v, "resources.gpus", "%u requested, but no GPU "
				"may be used here", need);
}

static void names_gpus_once(const struct rules *q)
{
	const char *const *list = q->r->x->resources.list;
	const struct json_value *v = config_get(config_get(q->tree, "resources"), "gpus");

	for (size_t i = 0; list && list[i]; i++)
		for (size_t k = 0; k < i; k++)
			if (strcmp(list[i], list[k]) == 0)
				config_complain(q->r->c, q->r->f, v, "resources.gpus",
						"%s is named twice", list[i]);
}

static const struct experiment_server *serving(const struct rules *q)
{
	const struct experiment *x = q->r->x;

	return mode_is_served(x->mode) && x->n_servers ? &x->server[x->serving] : NULL;
}

/* ---- the benchmark against its server: names ---- */

static bool is_served(const struct json_value *names, struct str name)
{
	if (!names || names->kind == JSON_STRING)
		return names && str_eq(names->text, name);
	for (size_t i = 0; names->kind == JSON_ARRAY && i < names->count; i++) {
		struct str one = json_text(&names->item[i], json_text(json_get(&names->item[i],
							     "name"), STR("")));
		struct str rest = one;

		/* NAME=PATH of adapters. */
		if (str_eq(one, name) || str_eq(str_cut(&rest, '='), name))
			return true;
	}
	return false;
}

static void model_is_served(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const char *asked = q->r->x->serve.served_model_name;
	const char *key = asked && rules_given(q, BENCH, "served_model_name") ? "served_model_name" : "model";
	const struct json_value *names, *model;

	if (!s || s->url || s->role == ROLE_PROXY || !rules_given(q, BENCH, key))
		return;
	asked = asked ? asked : q->r->x->serve.model;
	model = json_get(s->args, "model");
	names = json_get(s->args, "served_model_name");
	if (!model || !asked || is_served(names ? names : model, str_of(asked)) ||
	    is_served(json_get(s->args, "lora_modules"), str_of(asked)))
		return;
	rules_refuse(q, BENCH, key, "'%.200s' is not a model name of the server, which serves: "
				    "%.300s", asked,
			   config_json(names ? names : model, q->r->a));
}

static void adapters_are_served(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const struct opt_list *asked = &q->r->x->serve.lora_modules;
	const struct json_value *served = s ? json_get(s->args, "lora_modules") : NULL;

	for (size_t i = 0; served && i < asked->n; i++)
		if (!is_served(served, str_of(asked->v[i])))
			rules_note(q, BENCH, "lora_modules", "'%.200s' is not one of "
							     "server.lora_modules",
					 asked->v[i]);
}

/* ---- lengths ---- */

/* The spread of random lengths upwards; NAN: written in another form. */
static double spread(const char *ratio)
{
	double r;

	return ratio && str_to_f64(str_of(ratio), &r) ? r : NAN;
}

static void requests_fit_the_model(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const struct serve_opts *o = &q->r->x->serve;
	int64_t in = o->input_len.is_set ? o->input_len.v : o->data.random_input_len;
	int64_t out = o->output_len.is_set ? o->output_len.v : o->data.random_output_len;
	double most = s ? rules_number(q, q->r->x->serving, "max_model_len") : NAN, ratio, need;
	const char *key = rules_given(q, BENCH, "random_input_len") ? "random_input_len" :
			  rules_given(q, BENCH, "input_len") ? "input_len" : "dataset_name";

	if (isnan(most) || most < 1 || strcmp(o->dataset_name, "random") != 0 ||
	    o->data.random_input_len_dist || o->data.random_output_len_dist ||
	    o->data.max_model_len.is_set)
		return;
	ratio = spread(o->data.random_range_ratio);
	ratio = isnan(ratio) ? 0 : ratio;
	need = (double)o->data.random_prefix_len + floor((double)in * (1 + ratio)) +
	       floor((double)out * (1 + ratio));
	if (need > most)
		rules_refuse(q, BENCH, key, "requests of up to %.0f tokens (prefix %lld, prompt %lld, "
				   "answer %lld, ratio %g), and %s is %.0f", need,
				   (long long)o->data.random_prefix_len, (long long)in,
				   (long long)out, ratio, rules_path(q, q->r->x->serving, "max_model_len"), most);
}

static void load_fits_the_batch(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	const struct opt_int *cap = &q->r->x->serve.max_concurrency;
	double seqs = s ? rules_number(q, q->r->x->serving, "max_num_seqs") : NAN;
	double copies = s ? rules_number(q, q->r->x->serving, "data_parallel_size") : NAN;

	seqs *= fmax(1, copies);
	if (s && rules_given(q, q->r->x->serving, "max_num_seqs") && cap->is_set &&
	    (double)cap->v > seqs)
		rules_note(q, BENCH, "max_concurrency", "%lld is more than the server runs at once "
				 "(max_num_seqs, %.0f in all): the others wait in the server",
				 (long long)cap->v, seqs);
}

/* ---- keys ---- */

static bool has_authorization(const struct opt_list *header)
{
	for (size_t i = 0; i < header->n; i++) {
		struct str rest = str_of(header->v[i]);

		if (str_eq_nocase(str_trim(str_cut(&rest, '=')), STR("authorization")))
			return true;
	}
	return false;
}

/* The API key of a server must also be sent by the benchmark. */
static void key_is_sent(const struct rules *q)
{
	const struct experiment_server *s = serving(q);
	struct opt_list *header = &q->r->x->serve.header;
	const struct json_value *key = s ? json_get(s->args, "api_key") : NULL;
	const char **v;

	if (key && key->kind == JSON_ARRAY && key->count)
		key = &key->item[0];
	if (!key || key->kind != JSON_STRING || has_authorization(header))
		return;
	v = arena_alloc(q->r->a, (header->n + 1) * sizeof(*v));
	for (size_t i = 0; i < header->n; i++)
		v[i] = header->v[i];
	v[header->n] = arena_printf(q->r->a, "Authorization=Bearer %s", key->text.p);
	*header = (struct opt_list){ v, header->n + 1, true };
}

static rule *const rules_of_benchmark[] = {
	model_is_served, adapters_are_served, requests_fit_the_model, load_fits_the_batch,
	key_is_sent, NULL,
};

/* ---- arguments of one server: the scheduler ---- */

static void batch_holds_a_prompt(const struct rules *q, size_t i)
{
	double tokens = rules_number(q, i, "max_num_batched_tokens");
	double length = rules_number(q, i, "max_model_len");
	const struct json_value *chunked = json_get(q->r->x->server[i].values,
						    "enable_chunked_prefill");

	/* If unset it is on, wherever the model allows it. */
	if (tokens < length && chunked && chunked->kind == JSON_FALSE)
		rules_refuse(q, i, rules_given(q, i, "max_num_batched_tokens") ?
			     "max_num_batched_tokens" : "max_model_len",
			     "max_num_batched_tokens (%.0f) must be at least max_model_len (%.0f) where "
			     "enable_chunked_prefill is false", tokens, length);
}

static void batch_holds_its_requests(const struct rules *q, size_t i)
{
	double tokens = rules_number(q, i, "max_num_batched_tokens");
	double seqs = rules_number(q, i, "max_num_seqs");

	if (seqs > tokens && rules_given(q, i, "max_num_seqs"))
		rules_refuse(q, i, "max_num_seqs", "%.0f is more than max_num_batched_tokens (%.0f): "
			     "each running request takes a token of every step", seqs, tokens);
}

/* ---- LoRA ---- */

static void loras_are_enabled(const struct rules *q, size_t i)
{
	static const char *const keys[] = {
		"max_loras", "max_lora_rank", "max_cpu_loras", "fully_sharded_loras", "lora_dtype",
		"lora_modules", "default_mm_loras", "lora_extra_vocab_size", "enable_lora_bias",
	};

	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		if (json_get(q->r->x->server[i].args, keys[k]) &&
		    !rules_is_on(q, i, "enable_lora"))
			rules_refuse(q, i, keys[k], "it needs enable_lora: true");
}

static void loras_fit(const struct rules *q, size_t i)
{
	double cpu = rules_number(q, i, "max_cpu_loras"), gpu = rules_number(q, i, "max_loras");

	if (cpu < gpu)
		rules_refuse(q, i, "max_cpu_loras", "%.0f is less than max_loras (%.0f)", cpu, gpu);
}

/* ---- speculative decoding ---- */

static void drafts_are_told(const struct rules *q, size_t i)
{
	const struct json_value *v = json_get(q->r->x->server[i].args, "speculative_config");
	const struct json_value *n;

	if (!v || v->kind != JSON_OBJECT)
		return;
	n = config_get(v, "num_speculative_tokens");
	if (n && (n->kind != JSON_INT || n->integer < 1))
		config_complain(q->r->c, q->r->f, rules_given(q, i, "speculative_config"),
				rules_path(q, i, "speculative_config.num_speculative_tokens"),
				"expected an integer of at least 1, got %s", config_got(n, q->r->a));
	if (!n && str_is(json_text(config_get(v, "method"), STR("")), "ngram"))
		rules_refuse(q, i, "speculative_config", "method ngram needs "
			     "num_speculative_tokens, because no draft model defines it");
	if (!config_get(v, "method") && !config_get(v, "model"))
		rules_note(q, i, "speculative_config", "method or model is missing: one of them "
			   "selects what drafts tokens");
}

/* ---- experts ---- */

/* Parts of names of models whose layers are experts; "A3B": active parameters. */
static bool looks_like_experts(const char *model)
{
	static const char *const parts[] = {
		"moe", "mixtral", "deepseek-v2", "deepseek-v3", "deepseek-r1", "deepseek-coder-v2",
		"dbrx", "gpt-oss", "grok", "jamba", "llama-4", "kimi-k2", "glm-4.5", "glm-4.6",
		"minimax", "arctic", "hunyuan-a", "ernie-4.5", "qwen3-next", "longcat", "step3",
	};
	size_t n = strlen(model);

	for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++)
		if (strcasestr(model, parts[k]))
			return true;
	for (size_t k = 0; k + 2 < n; k++) {
		size_t digits = strspn(model + k + 1, "0123456789.");

		if (strchr("-_", model[k ? k - 1 : 0]) && strchr("Aa", model[k]) && digits &&
		    strchr("Bb", model[k + 1 + digits]) && model[k + 1 + digits])
			return true;
	}
	return false;
}

static void experts_are_there(const struct rules *q, size_t i)
{
	const char *model = json_text(json_get(q->r->x->server[i].values, "model"),
				      (struct str){ 0 }).p;

	if (rules_is_on(q, i, "enable_expert_parallel") && model && !looks_like_experts(model))
		rules_note(q, i, "enable_expert_parallel", "%.200s does not look like a "
			   "mixture-of-experts model, and vLLM refuses this for other "
			   "models", model);
}

/* ---- the device ---- */

static void blocks_are_whole(const struct rules *q, size_t i)
{
	double block = rules_number(q, i, "block_size");

	if (rules_given(q, i, "block_size") && fmod(block, 8) != 0 && block != 1)
		rules_refuse(q, i, "block_size", "expected 1 or a multiple of 8, got %.0f", block);
}

static void cache_fits_device(const struct rules *q, size_t i)
{
	const struct config_know *know = q->r->know;
	struct str dtype = json_text(json_get(q->r->x->server[i].args, "kv_cache_dtype"), STR(""));
	double block = rules_number(q, i, "block_size");
	bool is_cuda = know->compute_capability != 0;

	if (str_starts(dtype, STR("fp8")) && is_cuda && know->compute_capability < 89)
		rules_note(q, i, "kv_cache_dtype", "%.*s on a GPU of compute capability %u.%u, "
			   "which does not support this type; 8.9 and later do", (int)dtype.n,
			   dtype.p, know->compute_capability / 10, know->compute_capability % 10);
	if (str_starts(dtype, STR("fp8")) && know->is_gpus_known && know->n_gpus == 0)
		rules_note(q, i, "kv_cache_dtype", "%.*s needs a GPU, and none may be used here",
			   (int)dtype.n, dtype.p);
	if (rules_given(q, i, "block_size") && is_cuda && block > 32)
		rules_note(q, i, "block_size", "few attention kernels take more than 32 on CUDA, got "
			   "%.0f", block);
}

static void memory_is_free(const struct rules *q, size_t i)
{
	const struct json_value *v = config_get(config_get(q->tree, "resources"), "memory_free");
	double want = rules_number(q, i, "gpu_memory_utilization");

	if (v && rules_given(q, i, "gpu_memory_utilization") && want > json_real(v, 1))
		rules_note(q, i, "gpu_memory_utilization", "%g of a GPU, but resources.memory_free "
			   "accepts one with only %g free", want, json_real(v, 1));
}

/* Compares a server's GPU count with its parallel sizes; several nodes share them differently. */
static void gpus_are_enough(const struct rules *q, size_t i)
{
	const struct experiment_server *s = &q->r->x->server[i];
	double need = fmax(1, rules_number(q, i, "tensor_parallel_size")) *
		      fmax(1, rules_number(q, i, "pipeline_parallel_size"));
	double copies = rules_number(q, i, "data_parallel_size_local");
	double nodes = rules_number(q, i, "nnodes");

	if (isnan(copies))
		copies = rules_number(q, i, "data_parallel_size");
	need *= fmax(1, copies);
	if (rules_given(q, i, "gpus") && s->gpus && need > s->gpus && !(nodes > 1))
		rules_refuse(q, i, "gpus", "%u, and tensor x pipeline x data parallel size is %.0f",
			     s->gpus, need);
}

/* CUDA_VISIBLE_DEVICES is set from the allocation. A container counts its own GPUs. */
static void gpus_are_allocated(const struct rules *q, size_t i)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	};
	const struct experiment_server *s = &q->r->x->server[i];
	const struct json_value *env = rules_given(q, i, "env"), *v;

	for (size_t k = 0; !s->url && !s->container && k < sizeof(names) / sizeof(*names); k++) {
		v = config_get(env, names[k]);
		if (v)
			config_complain(q->r->c, q->r->f, v,
					config_path(q->r, rules_path(q, i, "env"), str_of(names[k])),
					"profllm sets this variable to the GPUs that it allocates; use "
					"resources.gpus, a list such as [2, 3], to say which");
	}
}

/* ---- roles ---- */

static void knows_its_peer(const struct rules *q, size_t i)
{
	const struct experiment_server *s = &q->r->x->server[i];
	const struct json_value *kv = json_get(s->args, "kv_transfer_config");
	struct str role = json_text(json_get(kv, "kv_role"), STR(""));
	const char *wrong = s->role == ROLE_PREFILL ? "kv_consumer" : "kv_producer";

	if (s->role != ROLE_PREFILL && s->role != ROLE_DECODE)
		return;
	if (!kv)
		rules_note(q, i, "kv_transfer_config", "missing: a server with role %s cannot "
			   "transfer its cache without it", server_role_name(s->role));
	else if (str_is(role, wrong))
		rules_note(q, i, "kv_transfer_config", "kv_role is %s in a server with role "
						       "%s", wrong,
			   server_role_name(s->role));
}

static void is_started_by_us(const struct rules *q, size_t i)
{
	static const char *const keys[] = { "env", "extra_args", "gpus", "ready", "after", "port",
					    "host", "grace_s", "container" };

	if (!q->r->x->server[i].url)
		return;
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		if (rules_given(q, i, keys[k]))
			rules_note(q, i, keys[k], "no effect on a server that is already running");
}

static server_rule *const rules_of_servers[] = {
	batch_holds_a_prompt, batch_holds_its_requests, blocks_are_whole, drafts_are_told,
	gpus_are_allocated,
	is_started_by_us, NULL,
};
static server_rule *const rules_of_engines[] = {
	loras_are_enabled, loras_fit, experts_are_there, cache_fits_device, memory_is_free,
	gpus_are_enough, knows_its_peer, NULL,
};

/* ---- the walk ---- */

static rule *const rules_of_experiment[] = {
	needs_server, needs_engine, needs_one_that_serves, has_names_of_its_own,
	has_ports_of_its_own, can_be_ordered, can_be_commanded, has_gpus, shares_are_whole,
	names_gpus_once, NULL,
};

void config_rules(struct config_reader *r, const struct json_value *tree)
{
	const struct rules q = { r, tree };

	for (size_t i = 0; rules_of_experiment[i]; i++)
		rules_of_experiment[i](&q);
	for (size_t s = 0; s < r->x->n_servers; s++) {
		for (size_t i = 0; rules_of_servers[i]; i++)
			rules_of_servers[i](&q, s);
		for (size_t i = 0; rules_of_engines[i] && !config_is_sim(r->x->server[s].command) &&
		     !r->x->server[s].url; i++)
			rules_of_engines[i](&q, s);
	}
	for (size_t i = 0; rules_of_benchmark[i]; i++)
		rules_of_benchmark[i](&q);
}
