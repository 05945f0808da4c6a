/* SPDX-License-Identifier: Apache-2.0 */
/* effect.c - see args.h: what a server's command line comes to. */
#include <ctype.h>

#include "core/base/redact.h"
#include "core/json/read.h"
#include "core/opt/opt.h"
#include "host/engine/args.h"

/* Where arguments begin, vLLM or not. */
static char *const *first_of(char *const *argv)
{
	char *const *at = engine_argv_begin(argv);

	if (at)
		return at;
	return *argv ? argv + 1 : argv;
}

/* ---- one value ---- */

/* What a command says of one argument; text NULL: nothing. */
struct said {
	const char *text;
	struct str name; /* of the token that said it, as it was typed */
};

static struct said flag_said(const struct engine_token *t)
{
	return (struct said){ t->is_off ? "false" : "true", t->name };
}

static const char *joined(const struct engine_token *t, struct arena *a)
{
	const char *text;

	if (!t->values || t->n < 3)
		return arena_text(a, t->value);
	text = t->values[0];
	for (size_t i = 1; i + 1 < t->n; i++)
		text = arena_printf(a, "%s %s", text, t->values[i]);
	return text;
}

/* The last token counts; keys of a JSON argument, given one by one, replace a whole one. */
static struct said said_of(char *const *argv, const struct engine_arg *arg, struct arena *a)
{
	struct json_value *keys = NULL;
	struct said last = { 0 };
	char *const *at = first_of(argv);
	bool is_model = strcmp(arg->name, "model") == 0;
	struct engine_token t;

	while (engine_argv_next(&at, &t)) {
		if (is_model && t.is_positional && !last.text)
			last = (struct said){ arena_text(a, t.value), STR("") };
		if (t.arg != arg)
			continue;
		if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
			last = flag_said(&t);
		else if (t.path.n && t.has_value &&
			 opt_dotted_put(&keys, arg->name, t.path, t.value, NULL, a, NULL) == 0)
			last = (struct said){ opt_dotted_text(keys, a), t.name };
		else if (t.has_value && !keys)
			last = (struct said){ joined(&t, a), t.name };
	}
	return last;
}

static const char *key_of(const char *json, struct str path, struct arena *a)
{
	struct json_value *v;

	if (!json || json_parse(a, str_of(json), &v, NULL) < 0)
		return NULL;
	while (v && path.n)
		v = json_get(v, arena_text(a, str_cut(&path, '.')));
	if (!v || v->kind == JSON_NULL)
		return NULL;
	return v->kind == JSON_STRING ? v->text.p : opt_dotted_text(v, a);
}

/* A choice as the server spells it. */
static const char *undashed(const char *text, struct arena *a)
{
	char *plain = arena_text(a, str_of(text));

	for (char *p = plain; *p; p++)
		*p = *p == '-' ? '_' : (char)tolower((unsigned char)*p);
	return plain;
}

/* The argument a dotted name begins with; *path: the rest. */
static const struct engine_arg *split(const char *name, struct str *path)
{
	*path = str_of(name);
	return engine_arg_find(str_cut(path, '.'));
}

const char *engine_argv_text(char *const *argv, const char *name, struct arena *a)
{
	struct str path;
	const struct engine_arg *arg = split(name, &path);
	struct said said;

	if (!arg)
		return NULL;
	said = said_of(argv, arg, a);
	if (!said.text)
		said.text = arg->initial;
	if (path.n)
		return key_of(said.text, path, a);
	if (said.text && arg->flags & ENGINE_NONE && strcmp(said.text, "None") == 0)
		return NULL;
	return arg->flags & ENGINE_DASHED && said.text ? undashed(said.text, a) : said.text;
}

const char *engine_argv_given(char *const *argv, const char *name, struct arena *a)
{
	const struct engine_arg *arg = engine_arg_find(str_of(name));

	return arg ? said_of(argv, arg, a).text : NULL;
}

int64_t engine_argv_int(char *const *argv, const char *name, int64_t otherwise)
{
	struct arena a = { 0 };
	const char *text = engine_argv_text(argv, name, &a);
	int64_t v;

	if (text && opt_human_int(str_of(text), &v))
		otherwise = v;
	arena_release(&a);
	return otherwise;
}

int64_t engine_argv_gpus(char *const *argv)
{
	static const char *const sizes[] = {
		"tensor-parallel-size", "pipeline-parallel-size", "prefill-context-parallel-size",
		"data-parallel-size",
	};
	int64_t n = 1;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int64_t v = engine_argv_int(argv, sizes[i], 1);

		if (v > 1 && __builtin_mul_overflow(n, v, &n))
			return INT64_MAX;
	}
	return n;
}

/* ---- optimisation ---- */

/* 0 to 3, as a number or by name; -1: neither. */
static int mode_of(const char *text)
{
	static const char *const names[] = {
		"NONE", "STOCK_TORCH_COMPILE", "DYNAMO_TRACE_ONCE", "VLLM_COMPILE",
	};

	for (int i = 0; text && i < 4; i++)
		if (str_eq_nocase(str_of(text), str_of(names[i])) ||
		    (text[0] == '0' + i && !text[1]))
			return i;
	return -1;
}

static int level_of(const char *text)
{
	return mode_of(text && *text == 'O' ? text + 1 : text);
}

/* Up to 0.11 the letter and --compilation-config were one argument. */
static void old_mode(char *const *argv, struct arena *a, struct engine_optimization *out)
{
	const char *level = said_of(argv, engine_arg_find(STR("optimization-level")), a).text;
	const char *config = said_of(argv, engine_arg_find(STR("compilation-config")), a).text;
	int by_letter = mode_of(level), by_config = mode_of(config);

	if (by_config < 0)
		by_config = mode_of(key_of(config, STR("level"), a));
	out->level = -1;
	if (by_config >= 0) {
		out->mode = by_config;
		out->mode_by = "--compilation-config";
	} else if (by_letter >= 0) {
		out->mode = by_letter;
		out->mode_by = "-O";
	}
}

void engine_argv_optimization(char *const *argv, unsigned version,
			      struct engine_optimization *out)
{
	const struct engine_arg *level = engine_arg_find(STR("optimization-level"));
	struct arena a = { 0 };
	struct said said;
	int v;

	*out = (struct engine_optimization){ 2, 3, "", "" };
	if (version && version < engine_version("0.12")) {
		old_mode(argv, &a, out);
	} else {
		said = said_of(argv, level, &a);
		v = level_of(said.text);
		if (v >= 0) {
			out->level = v;
			out->level_by = str_is(said.name, "-O") ? "-O" : "--optimization-level";
		}
		out->mode = out->level ? 3 : 0;
		v = mode_of(engine_argv_text(argv, "compilation-config.mode", &a));
		if (v >= 0) {
			out->mode = v;
			out->mode_by = "--compilation-config";
		}
	}
	said = said_of(argv, engine_arg_find(STR("enforce-eager")), &a);
	if (said.text && strcmp(said.text, "true") == 0) {
		out->mode = 0;
		out->mode_by = "--enforce-eager";
	}
	arena_release(&a);
}

/* ---- differences ---- */

static void add_side(const struct engine_arg *arg, struct str name, const char *text,
		     struct buf *out)
{
	if (text)
		buf_add_text(out, redact_is_secret(name) ? REDACTED : text);
	else if (arg && arg->initial)
		buf_printf(out, "(default %s)", arg->initial);
	else
		buf_add_text(out, "(not given)");
}

static bool is_same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Marks the arguments a command speaks of. */
static void mark(char *const *argv, bool *is_named)
{
	const struct engine_arg *model = engine_arg_find(STR("model"));
	char *const *at = first_of(argv);
	struct engine_token t;

	while (engine_argv_next(&at, &t))
		if (t.arg || t.is_positional)
			is_named[(t.arg ? t.arg : model) - engine_args] = true;
}

static size_t diff_known(char *const *a, char *const *b, struct arena *arena, struct buf *out)
{
	bool *is_named = arena_alloc(arena, engine_arg_count);
	size_t n = 0;

	mark(a, is_named);
	mark(b, is_named);
	for (size_t i = 0; i < engine_arg_count; i++) {
		const struct engine_arg *arg = &engine_args[i];
		const char *x, *y;

		if (!is_named[i])
			continue;
		x = said_of(a, arg, arena).text;
		y = said_of(b, arg, arena).text;
		/* Silence and the default, written out, are the same. */
		if (is_same(x ? x : arg->initial, y ? y : arg->initial))
			continue;
		buf_printf(out, "%s: ", arg->name);
		add_side(arg, str_of(arg->name), x, out);
		buf_add_text(out, " -> ");
		add_side(arg, str_of(arg->name), y, out);
		buf_add_char(out, '\n');
		n++;
	}
	return n;
}

/* The value a command gives an option the table does not know; NULL: it has none. */
static const char *unknown_text(char *const *argv, struct str name, struct arena *a)
{
	char *const *at = first_of(argv);
	const char *text = NULL;
	struct engine_token t;

	while (engine_argv_next(&at, &t))
		if (!t.arg && !t.is_positional && str_eq(t.name, name))
			text = t.has_value ? arena_text(a, t.value) : "true";
	return text;
}

/* Those of a; of b alone, when is_b. */
static size_t diff_unknown(char *const *a, char *const *b, bool is_b, struct arena *arena,
			   struct buf *out)
{
	char *const *at = first_of(is_b ? b : a);
	struct engine_token t;
	size_t n = 0;

	while (engine_argv_next(&at, &t)) {
		const char *x, *y;

		if (t.arg || t.is_positional)
			continue;
		x = unknown_text(a, t.name, arena);
		y = unknown_text(b, t.name, arena);
		if ((is_b && x) || is_same(x, y))
			continue;
		buf_printf(out, "%.*s: ", (int)t.name.n, t.name.p);
		add_side(NULL, t.name, x, out);
		buf_add_text(out, " -> ");
		add_side(NULL, t.name, y, out);
		buf_add_char(out, '\n');
		n++;
	}
	return n;
}

size_t engine_argv_diff(char *const *a, char *const *b, struct buf *out)
{
	struct arena arena = { 0 };
	size_t n = diff_known(a, b, &arena, out);

	n += diff_unknown(a, b, false, &arena, out);
	n += diff_unknown(a, b, true, &arena, out);
	arena_release(&arena);
	return n;
}
