/* SPDX-License-Identifier: Apache-2.0 */
/* flags.c - see flags.h. */
#include "host/engine/flags.h"

#include "core/base/str.h"
#include "core/json/write.h"
#include "host/engine/args.h"

/* "a_b.c_d" is "a-b.c_d": behind the dot are keys of a JSON value. */
static char *dashed(struct str name, const char *head, struct arena *a)
{
	char *text = arena_printf(a, "%s%.*s", head, (int)name.n, name.p);

	for (char *c = text; *c && *c != '.'; c++)
		if (*c == '_')
			*c = '-';
	return text;
}

static const struct engine_arg *known(struct str key)
{
	return engine_arg_find(str_cut(&key, '.'));
}

static char *text_of(const struct json_value *v, struct arena *a)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	char *text;

	if (v->kind == JSON_STRING)
		return arena_text(a, v->text);
	if (v->raw.n)
		return arena_text(a, v->raw);
	w.is_raw_utf8 = w.is_python = true; /* for its argument parser */
	json_put_value(&w, v);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

/* A value that looks like an option stands behind "=", where it cannot be taken for one. */
static void add_pair(struct word_list *w, char *name, char *value)
{
	if (value[0] == '-') {
		words_add(w, arena_printf(w->arena, "%s=%s", name, value));
	} else {
		words_add(w, name);
		words_add(w, value);
	}
}

static void add_list(struct word_list *w, char *name, const struct json_value *v)
{
	if (v->count == 0)
		return;
	words_add(w, name);
	for (size_t i = 0; i < v->count; i++)
		words_add(w, text_of(&v->item[i], w->arena));
}

static void add_switch(struct word_list *w, const struct engine_arg *arg, struct str key,
		       bool is_on)
{
	bool is_dotted = memchr(key.p, '.', key.n) != NULL;

	if (is_dotted)
		words_add(w, arena_printf(w->arena, "%s=%s", dashed(key, "--", w->arena), is_on ? "true" : "false"));
	else if (is_on)
		words_add(w, dashed(key, "--", w->arena));
	else if (!arg || arg->kind != ENGINE_FLAG)
		words_add(w, dashed(key, "--no-", w->arena));
}

static void add_one(struct word_list *w, const struct engine_arg *arg, struct str key,
		    const struct json_value *v)
{
	bool is_list = !arg || arg->kind == ENGINE_LIST;

	if (v->kind == JSON_NULL)
		return;
	if (v->kind == JSON_TRUE || v->kind == JSON_FALSE)
		add_switch(w, arg, key, v->kind == JSON_TRUE);
	else if (v->kind == JSON_ARRAY && is_list && !memchr(key.p, '.', key.n))
		add_list(w, dashed(key, "--", w->arena), v);
	else
		add_pair(w, dashed(key, "--", w->arena), text_of(v, w->arena));
}

static bool is_skipped(struct str key, const char *const *skip)
{
	for (; skip && *skip; skip++)
		if (str_is(key, *skip))
			return true;
	return false;
}

char **engine_flags(const struct json_value *args, const char *const *skip, struct arena *a)
{
	struct word_list w = { .arena = a };
	size_t n = args && args->kind == JSON_OBJECT ? args->count : 0;

	w.v = arena_alloc(a, sizeof(*w.v));
	for (size_t k = 0; n && k < engine_arg_count; k++)
		for (size_t i = 0; i < n; i++)
			if (known(args->key[i]) == &engine_args[k] &&
			    !is_skipped(args->key[i], skip))
				add_one(&w, &engine_args[k], args->key[i], &args->item[i]);
	for (size_t i = 0; i < n; i++)
		if (!known(args->key[i]) && !is_skipped(args->key[i], skip))
			add_one(&w, NULL, args->key[i], &args->item[i]);
	return w.v;
}
