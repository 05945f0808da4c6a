/* SPDX-License-Identifier: Apache-2.0 */
/* values.c - see args.h: every argument with the value in effect, for files that list them. */
#include "host/engine/args.h"

#include "core/base/redact.h"
#include "core/json/write.h"
#include "core/opt/opt.h"

/* The last one given; values of a list stay words. */
static bool find_list(char *const *argv, const struct engine_arg *arg, struct engine_token *out)
{
	bool is_found = false;
	struct engine_token t;

	argv++;
	while (engine_argv_next(&argv, &t))
		if (t.arg == arg && t.has_value) {
			*out = t;
			is_found = true;
		}
	return is_found;
}

/* A level of optimization is a number as a default, and a text once it is given. */
static bool is_number_until_given(char *const *argv, const struct engine_arg *arg)
{
	struct engine_token t;

	return strcmp(arg->name, "optimization-level") == 0 && !find_list(argv, arg, &t);
}

static void put_word(struct json_writer *w, const struct engine_arg *arg, struct str word)
{
	json_put_str(w, redact_is_secret(str_of(arg->name)) ? STR(REDACTED) : word);
}

static void put_list(struct json_writer *w, char *const *argv, const struct engine_arg *arg,
		     const char *initial)
{
	struct engine_token t;

	if (find_list(argv, arg, &t)) {
		json_begin_array(w);
		if (t.values)
			for (size_t i = 0; i + 1 < t.n; i++)
				put_word(w, arg, str_of(t.values[i]));
		else
			put_word(w, arg, t.value);
		json_end_array(w);
	} else if (initial) {
		json_begin_array(w);
		json_put_text(w, initial);
		json_end_array(w);
	} else {
		json_put_null(w);
	}
}

static void put_value(struct json_writer *w, const struct engine_arg *arg, const char *text)
{
	struct str s = str_of(text);
	struct arena a = { 0 };
	struct json_value *json;
	double real;
	int64_t whole;

	if (!text)
		json_put_null(w);
	else if (redact_is_secret(str_of(arg->name)))
		json_put_text(w, REDACTED);
	else if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		json_put_bool(w, strcmp(text, "true") == 0);
	else if ((arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN) && opt_human_int(s, &whole))
		json_put_int(w, whole);
	else if (arg->kind == ENGINE_REAL && opt_python_float(s, &real))
		json_put_setting(w, real);
	else if (arg->kind == ENGINE_JSON && json_parse(&a, s, &json, NULL) == 0)
		json_put_value(w, json);
	else
		json_put_text(w, text);
	arena_release(&a);
}

/* What vLLM's command takes away again once they are parsed. */
static bool is_of_logging(const struct engine_arg *arg)
{
	return strcmp(arg->group, "LoggingConfig") == 0;
}

void engine_argv_values(char *const *argv, bool is_async, struct json_writer *w)
{
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		struct buf key = { 0 };
		struct arena a = { 0 };

		if (arg->until || is_of_logging(arg) || !engine_arg_is_engines(arg, is_async))
			continue;
		for (const char *p = arg->name; *p; p++)
			buf_add_char(&key, *p == '-' ? '_' : *p);
		json_key(w, key.data);
		if (arg->kind == ENGINE_LIST)
			put_list(w, argv, arg, arg->initial);
		else if (is_number_until_given(argv, arg))
			json_put_foreign(w, str_of(arg->initial));
		else
			put_value(w, arg, engine_argv_text(argv, arg->name, &a));
		arena_release(&a);
		buf_release(&key);
	}
}
