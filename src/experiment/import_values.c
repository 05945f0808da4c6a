/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import_values.c - see import_parts.h: a test's parameters as keys of a configuration.
 *
 * A test file spells everything as a shell would type it: "" is a flag that is there, numbers may be
 * texts, names have dashes or underscores. A configuration wants the types that an argument has.
 */
#include <string.h>

#include "engine/args.h"
#include "experiment/import_parts.h"

/* ---- objects and lists that grow ---- */

static struct json_value *new_value(struct import_maker *m, enum json_kind kind)
{
	struct json_value *v = arena_alloc(m->a, sizeof(*v));

	v->kind = kind;
	return v;
}

struct json_value *import_object(struct import_maker *m)
{
	return new_value(m, JSON_OBJECT);
}

struct json_value *import_list_value(struct import_maker *m)
{
	return new_value(m, JSON_ARRAY);
}

/* A new place at the end; values that are there move, their marks with them. */
static struct json_value *grow(struct import_maker *m, struct json_value *v)
{
	size_t n = v->count;
	struct json_value *item = arena_alloc(m->a, (n + 1) * sizeof(*item));

	for (size_t i = 0; i < n; i++) {
		item[i] = v->item[i];
		json_marks_copy(m->c->marks, &v->item[i], &item[i]);
	}
	v->item = item;
	v->count = n + 1;
	return &item[n];
}

void import_put(struct import_maker *m, struct json_value *object, const char *key,
		const struct json_value *v)
{
	size_t i = 0;

	while (i < object->count && !str_is(object->key[i], key))
		i++;
	if (i == object->count) {
		struct str *names = arena_alloc(m->a, (i + 1) * sizeof(*names));

		if (i)
			memcpy(names, object->key, i * sizeof(*names));
		names[i] = arena_str(m->a, str_of(key));
		grow(m, object);
		object->key = names;
	}
	object->item[i] = *v;
	json_marks_copy(m->c->marks, v, &object->item[i]);
}

static struct json_value text_value(struct import_maker *m, const char *text)
{
	struct json_value v = { .kind = JSON_STRING };

	v.text = arena_str(m->a, str_of(text));
	return v;
}

void import_put_text(struct import_maker *m, struct json_value *object, const char *key,
		     const char *text)
{
	struct json_value v = text_value(m, text);

	import_put(m, object, key, &v);
}

void import_put_int(struct import_maker *m, struct json_value *object, const char *key, int64_t n)
{
	struct json_value v = { .kind = JSON_INT };

	v.integer = n;
	v.raw = str_of(arena_printf(m->a, "%lld", (long long)n));
	import_put(m, object, key, &v);
}

void import_append(struct import_maker *m, struct json_value *list, const struct json_value *v)
{
	struct json_value *to = grow(m, list);

	*to = *v;
	json_marks_copy(m->c->marks, v, to);
}

void import_append_text(struct import_maker *m, struct json_value *list, const char *text)
{
	struct json_value v = text_value(m, text);

	import_append(m, list, &v);
}

/* ---- values ---- */

/* A copy of v, with its mark, that may be changed. */
static struct json_value *copy(struct import_maker *m, const struct json_value *v)
{
	struct json_value *out = arena_alloc(m->a, sizeof(*out));

	*out = *v;
	json_marks_copy(m->c->marks, v, out);
	return out;
}

static const struct json_value *as_flag(struct import_maker *m, const struct json_value *v)
{
	struct json_value *out;

	if (v->kind != JSON_STRING || v->text.n)
		return v;
	out = copy(m, v);
	out->kind = JSON_TRUE;
	return out;
}

/* "4" as 4, '{"method": "ngram"}' as an object; what is no JSON stays a text. */
static const struct json_value *as_json(struct import_maker *m, const struct json_value *v)
{
	struct json_value *parsed, *out;
	struct err e;

	if (v->kind != JSON_STRING || !v->text.n || json_parse(m->a, v->text, &parsed, &e) < 0)
		return v;
	out = copy(m, v);
	*out = *parsed;
	return out;
}

static const struct json_value *as_text(struct import_maker *m, const struct json_value *v)
{
	struct json_value *out;

	if (v->kind != JSON_INT && v->kind != JSON_REAL)
		return v;
	out = copy(m, v);
	out->kind = JSON_STRING;
	out->text = arena_str(m->a, v->raw);
	return out;
}

static const struct json_value *as_engine(struct import_maker *m, const struct engine_arg *arg,
					  const struct json_value *v)
{
	switch (arg->kind) {
	case ENGINE_FLAG:
	case ENGINE_SWITCH: return as_flag(m, v);
	case ENGINE_INT:
	case ENGINE_HUMAN:
	case ENGINE_REAL:
	case ENGINE_JSON: return as_json(m, v);
	case ENGINE_TEXT: return as_text(m, v);
	case ENGINE_LIST:
	case ENGINE_KINDS: break;
	}
	return v;
}

static const struct json_value *as_option(struct import_maker *m, const struct opt *row,
					  const struct json_value *v)
{
	switch (row->kind) {
	case OPT_FLAG:
	case OPT_TRI: return as_flag(m, v);
	case OPT_TEXT: return as_text(m, v);
	case OPT_LIST: return v;
	default: return v->kind == JSON_STRING && str_is(v->text, "inf") ? v : as_json(m, v);
	}
}

/* ---- names ---- */

/* With underscores, behind a first dot as it is. */
static char *key_of(struct import_maker *m, struct str name)
{
	char *key = arena_text(m->a, name);

	for (char *p = key; *p && *p != '.'; p++)
		*p = *p == '-' ? '_' : *p;
	return key;
}

static bool is_same_name(const char *name, const char *key)
{
	for (; *name && *key; name++, key++)
		if (*name != *key && !(*name == '-' && *key == '_') &&
		    !(*name == '_' && *key == '-'))
			return false;
	return !*name && !*key;
}

/* An old spelling leads to the row it stands for. */
static const struct opt *find_row(const struct opt_set *set, const char *key)
{
	for (size_t i = 0; i < set->n; i++) {
		const struct opt *row = &set->row[i];

		if (is_same_name(row->name, key))
			return row->alias_of ? find_row(set, row->alias_of) : row;
	}
	return NULL;
}

/* What the runner says itself, and keys of a server that are no engine arguments. */
static bool is_runners(const char *key)
{
	static const char *const name[] = { "host", "port" };

	for (size_t i = 0; i < sizeof(name) / sizeof(*name); i++)
		if (strcmp(name[i], key) == 0)
			return true;
	return false;
}

static void add_extra_words(struct import_maker *m, struct json_value *server, const char *key,
			    const struct json_value *v)
{
	const struct json_value *old = json_get(server, "extra_args");
	struct json_value *list = old ? copy(m, old) : import_list_value(m);
	char *flag = arena_printf(m->a, "--%s", key);

	for (char *p = flag; *p; p++)
		*p = *p == '_' ? '-' : *p;
	import_append_text(m, list, flag);
	if (v->kind == JSON_STRING && v->text.n)
		import_append(m, list, v);
	else if (v->kind == JSON_INT || v->kind == JSON_REAL)
		import_append(m, list, as_text(m, v));
	import_put(m, server, "extra_args", list);
}

/* What the table does not know yet, an engine may; our simulator does not. */
static void add_extra(struct import_maker *m, struct json_value *server, const char *key,
		      const struct json_value *v)
{
	if (m->is_simulated)
		config_note(m->c, m->f, v, key, "the simulator has no such argument; left out");
	else
		add_extra_words(m, server, key, v);
}

static void put_argument(struct import_maker *m, struct json_value *server, char *key,
			 const struct json_value *v)
{
	struct str whole = str_of(key), name = str_cut(&whole, '.');
	const struct engine_arg *arg = engine_arg_find(name);
	const struct json_value *put;
	struct json_value *off;

	if (!arg && strncmp(key, "no_", 3) == 0 && engine_arg_find(str_of(key + 3))) {
		off = copy(m, v);
		off->kind = JSON_FALSE;
		import_put(m, server, key + 3, off);
	} else if (arg) {
		put = whole.n ? as_json(m, v) : as_engine(m, arg, v);
		import_put(m, server, key, put);
	} else if (is_runners(key)) {
		import_put(m, server, key, as_json(m, v));
	} else {
		add_extra(m, server, key, v);
	}
}

void import_server(struct import_maker *m, const struct json_value *given,
		   struct json_value *server)
{
	for (size_t i = 0; given && i < given->count; i++)
		put_argument(m, server, key_of(m, given->key[i]), &given->item[i]);
}

void import_benchmark(struct import_maker *m, const struct opt_set *set,
		      const struct json_value *given, struct json_value *benchmark,
		      struct json_value *server)
{
	for (size_t i = 0; given && i < given->count; i++) {
		char *key = key_of(m, given->key[i]);
		const struct opt *row = find_row(set, key);

		if (row)
			import_put(m, benchmark, key_of(m, str_of(row->name)),
				   as_option(m, row, &given->item[i]));
		else if (server && engine_arg_find(str_of(key)))
			put_argument(m, server, key, &given->item[i]);
		else
			import_put(m, benchmark, key, &given->item[i]);
	}
}
