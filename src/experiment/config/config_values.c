/* SPDX-License-Identifier: Apache-2.0 */
/* config_values.c - see config.h: a server's arguments as values and as words. */
#include <string.h>

#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/opt/opt.h"
#include "experiment/config/config.h"
#include "experiment/config/config_internal.h"
#include "host/engine/args.h"

/* ---- what a server's arguments are, and where that is known from ---- */

/* A number in full: "4k" is 4000. False: not a number, or need not be one. */
static bool as_number(const struct engine_arg *arg, struct str text, struct json_value *out)
{
	bool is_whole = arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN;

	*out = (struct json_value){ .kind = is_whole ? JSON_INT : JSON_REAL };
	if (is_whole)
		return opt_human_int(text, &out->integer);
	return arg->kind == ENGINE_REAL && opt_python_float(text, &out->real);
}

/* The value as typed, or with the type of the table; NULL: null. */
static struct json_value typed_value(const struct engine_arg *arg, const char *text,
				     struct arena *a)
{
	struct json_value v = { .kind = JSON_STRING, .text = str_of(text) }, *json, number;

	if (!text)
		return (struct json_value){ 0 };
	if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		return (struct json_value){ .kind = str_is(v.text, "true") ? JSON_TRUE : JSON_FALSE };
	if (as_number(arg, v.text, &number))
		return number;
	if (arg->kind == ENGINE_JSON && json_parse(a, v.text, &json, NULL) == 0)
		return *json;
	return v;
}

static struct json_value hidden(void)
{
	return (struct json_value){ .kind = JSON_STRING, .text = STR(REDACTED) };
}

/* True for the address, which the runner sets for each server. */
static bool is_runners(const char *name)
{
	return strcmp(name, "host") == 0 || strcmp(name, "port") == 0;
}

const struct json_value *config_sim_values(struct config_reader *r, const struct json_value *args,
					   const void *sim)
{
	struct json_value *out = arena_alloc(r->a, sizeof(*out));
	const struct opt_set *set = r->know->sim;
	const struct json_value *all;
	struct buf json = { 0 };

	out->kind = JSON_OBJECT;
	opt_json(set, sim, &json);
	all = config_tree_of(buf_str(&json), r->a);
	buf_release(&json);
	for (size_t i = 0; i < all->count; i++) {
		const struct opt *row = config_row(set, all->key[i]);
		bool is_null = all->item[i].kind == JSON_NULL;
		bool is_vllms = engine_arg_find(all->key[i]) && !is_runners(all->key[i].p);

		if (row && !is_null && (is_vllms || json_get(args, all->key[i].p)))
			config_member(out, all->key[i].p, all->item[i], r->a);
	}
	return out;
}

/* Where a user may give arguments as words, each after a program's name. */
struct givers {
	char **command, **extra; /* the server's command, as far as it is vLLM's; extra_args */
};

static char **words_of(char *const *args, struct arena *a)
{
	static char program[] = "vllm";
	struct word_list w = { .arena = a };

	words_add(&w, program);
	for (; args && *args; args++)
		words_add(&w, *args);
	return w.v;
}

static struct givers givers_of(const struct experiment_server *s, struct arena *a)
{
	return (struct givers){
		words_of(s->command ? engine_argv_begin(s->command) : NULL, a),
		words_of(s->extra_args, a),
	};
}

/* The last one on the command line counts: the order is command, key, extra_args. */
static bool is_given(const struct experiment_server *s, const struct engine_arg *arg,
		     const char *name, const struct givers *by, struct arena *a,
		     struct json_value *out)
{
	const struct json_value *v = json_get(s->args, name);
	const char *text = s->is_vllm ? engine_argv_given(by->extra, arg->name, a) : NULL;

	if (!text && !v && s->is_vllm)
		text = engine_argv_given(by->command, arg->name, a);
	if (text)
		*out = redact_is_secret(str_of(arg->name)) ? hidden() : typed_value(arg, text, a);
	else if (v && redact_is_secret(str_of(arg->name)))
		*out = hidden();
	else if (v && !(v->kind == JSON_STRING && as_number(arg, v->text, out)))
		*out = *v;
	else if (v)
		return true; /* a number that was written as a text */
	else if (s->port && strcmp(name, "port") == 0)
		*out = (struct json_value){ .kind = JSON_INT, .integer = s->port };
	else
		return false;
	return true;
}

static bool has_arg(const struct experiment_server *s, const struct engine_arg *arg,
		    const struct config_told *told)
{
	if (!s->is_vllm && !s->is_sim)
		return false;
	if (told->is_engine_alone && !engine_arg_is_engines(arg, false))
		return false;
	return told->version ? engine_arg_is_in(arg, told->version) : !arg->until;
}

const struct json_value *config_server_values(const struct experiment_server *s,
					      const struct config_told *told, struct arena *a)
{
	struct json_value *out = arena_alloc(a, sizeof(*out)), given;
	const struct givers by = givers_of(s, a);

	out->kind = JSON_OBJECT;
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		const char *name = config_key(str_of(arg->name), a), *initial = NULL;
		const struct json_value *own = json_get(s->own, name);
		const struct json_value *reported = json_get(told->reported, name);

		if (told->version && !is_runners(name))
			initial = engine_arg_initial(arg, told->version);
		if (is_given(s, arg, name, &by, a, &given))
			config_member(out, name, given, a);
		else if (reported || own)
			config_member(out, name, reported ? *reported : *own, a);
		else if (has_arg(s, arg, told))
			config_member(out, name, typed_value(arg, initial, a), a);
	}
	for (size_t i = 0; s->args && i < s->args->count; i++)
		if (!engine_arg_find(s->args->key[i]))
			config_member(out, s->args->key[i].p, s->args->item[i], a);
	for (size_t i = 0; s->own && i < s->own->count; i++)
		if (!engine_arg_find(s->own->key[i]))
			config_member(out, s->own->key[i].p, s->own->item[i], a);
	return out;
}

/* True if the server reads arguments from a file, which are not known here. */
static bool has_file(const struct experiment_server *s)
{
	struct arena a = { 0 };
	const struct givers by = givers_of(s, &a);
	bool is_there = json_get(s->args, "config") ||
			engine_argv_given(by.extra, "config", &a) ||
			engine_argv_given(by.command, "config", &a);

	arena_release(&a);
	return is_there;
}

const char *config_defaults_version(const struct experiment_server *s, const char *engine,
				    const char *version, struct config_told *told)
{
	const char *why;

	if (s->url)
		why = "started by others";
	else if (!s->is_vllm || (engine && strcmp(engine, "vllm") != 0))
		why = "another engine";
	else if (has_file(s))
		why = "arguments in a file";
	else
		told->version = engine_version_release(version, &why);
	return why;
}

void config_not_reported(const struct json_value *values, const struct config_told *told,
			 struct json_writer *w)
{
	struct arena a = { 0 };

	json_begin_array(w);
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		const char *name = config_key(str_of(arg->name), &a);
		const struct json_value *v = json_get(values, name);

		if (arg->flags & ENGINE_DECIDED && engine_arg_is_in(arg, told->version) &&
		    !(told->is_engine_alone && !engine_arg_is_engines(arg, false)) &&
		    !json_get(told->reported, name) &&
		    (!v || v->kind == JSON_NULL || str_is(json_text(v, STR("")), "auto")))
			json_put_text(w, name);
	}
	json_end_array(w);
	arena_release(&a);
}

/* ---- the arguments of a server as the words of a command line ---- */

bool config_is_sim(char *const *command)
{
	if (!command || !command[0])
		return false;
	if (!command[1])
		return strcmp(command[0], "sim") == 0;
	for (size_t i = 0; command[i + 1]; i++)
		if ((strcmp(command[i], "profllm") == 0 ||
		     str_ends(str_of(command[i]), STR("/profllm"))) &&
		    strcmp(command[i + 1], "sim") == 0)
			return true;
	return false;
}

/* After `vllm serve` and `profllm sim` the model has no option name. */
static bool is_model_bare(char *const *command)
{
	const char *last = "";

	for (size_t i = 0; command && command[i]; i++)
		last = command[i];
	return config_is_sim(command) || strcmp(last, "serve") == 0;
}

/* vLLM reads one of several keys from its environment. */
static const struct { const char *key, *variable; bool is_sims; } secrets[] = {
	{ "api_key", "VLLM_API_KEY", true }, { "hf_token", "HF_TOKEN", false },
};
#define N_SECRETS (sizeof(secrets) / sizeof(*secrets))

/* The value that is passed in the environment; empty: it is not. */
static struct str secret_of(const struct experiment_server *s, size_t i)
{
	if (!s->is_vllm && !(s->is_sim && secrets[i].is_sims))
		return STR("");
	return json_text(json_get(s->args, secrets[i].key), STR(""));
}

char **config_server_secrets(const struct experiment_server *s, struct arena *a)
{
	char **out = arena_alloc(a, (N_SECRETS + 1) * sizeof(*out));
	size_t n = 0;

	for (size_t i = 0; i < N_SECRETS; i++) {
		struct str value = secret_of(s, i);

		if (value.n)
			out[n++] = arena_printf(a, "%s=%.*s", secrets[i].variable, (int)value.n,
						value.p);
	}
	return out;
}

char *const *config_server_words(const struct experiment_server *s, struct arena *a)
{
	const char *apart[4 + N_SECRETS] = { "model", "host", "port" };
	struct str model = json_text(json_get(s->args, "model"), (struct str){ 0 });
	struct word_list words = { .arena = a, .v = arena_alloc(a, sizeof(char *)) };
	size_t n_apart = 3;

	for (size_t i = 0; i < N_SECRETS; i++)
		if (secret_of(s, i).n)
			apart[n_apart++] = secrets[i].key;
	if (model.n && !is_model_bare(s->command))
		words_add(&words, arena_text(a, STR("--model")));
	if (model.n)
		words_add(&words, arena_text(a, model));
	for (char **flag = engine_flags(s->args, apart, a); *flag; flag++)
		words_add(&words, *flag);
	for (char *const *word = s->extra_args; word && *word; word++)
		words_add(&words, *word);
	return words.v;
}
