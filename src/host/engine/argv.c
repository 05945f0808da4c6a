/* SPDX-License-Identifier: Apache-2.0 */
/*
 * argv.c - see args.h: reads a server's command line token by token, checks it, finds the values in
 * effect, and builds one from an object.
 */
#include <ctype.h>
#include <stdio.h>

#include "core/base/redact.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/opt/opt.h"
#include "host/engine/args.h"

char *const *engine_argv_begin(char *const *argv)
{
	const char *slash;

	for (char *const *at = argv; *at; at++) {
		/* The image's own entry point is `vllm serve`. */
		if (strstr(*at, "vllm/vllm-openai"))
			return at + 1;
		if (!at[1])
			break;
		slash = strrchr(*at, '/');
		if (strcmp(at[1], "serve") == 0 && (strcmp(slash ? slash + 1 : *at, "vllm") == 0 ||
						    strcmp(*at, "vllm.entrypoints.cli.main") == 0))
			return at + 2;
		if (strcmp(*at, "-m") == 0 &&
		    (strcmp(at[1], "vllm.entrypoints.openai.api_server") == 0 ||
		     strcmp(at[1], "vllm.entrypoints.api_server") == 0))
			return at + 2;
	}
	return NULL;
}

/* argparse's rule: begins with "-", is not a negative number and has no blank. */
static bool is_option(const char *text)
{
	bool has_digit = false;

	if (text[0] != '-' || !text[1] || strchr(text, ' '))
		return false;
	for (const char *p = text + 1; *p; p++) {
		if (!isdigit((unsigned char)*p) && *p != '.')
			return true;
		has_digit |= *p != '.';
	}
	return !has_digit;
}

/* ---- one token ---- */

static void take_next(char *const *at, struct engine_token *t)
{
	if (!at[1])
		return;
	t->value = str_of(at[1]);
	t->has_value = true;
	t->values = at + 1;
	t->n = 2;
}

void engine_argv_take(char *const *at, struct engine_token *t)
{
	if (t->arg && (t->arg->kind == ENGINE_FLAG || t->arg->kind == ENGINE_SWITCH))
		return;
	if (t->path.n) { /* the server takes whatever comes next */
		take_next(at, t);
		return;
	}
	if (!at[1] || is_option(at[1]))
		return;
	take_next(at, t);
	if (t->arg && t->arg->kind == ENGINE_LIST)
		while (at[t->n] && !is_option(at[t->n]))
			t->n++;
}

/* -O3, -O=3, -O 3, -O.mode=3, -O {"mode":3}: two arguments share the letter. */
static void read_o(char *const *at, struct engine_token *t)
{
	struct str rest = { (*at) + 2, strlen(*at) - 2 };
	bool is_level = at[1] && at[1][0] >= '0' && at[1][0] <= '3' && !at[1][1], is_json;

	t->name = STR("-O");
	t->arg = engine_arg_find(STR("optimization-level"));
	if (str_starts(rest, STR("."))) {
		t->path = str_cut(&rest, '=');
		t->has_value = rest.p > t->path.p + t->path.n;
		t->path.p++;
		t->path.n--;
	} else {
		t->has_value = rest.n > 0;
		if (str_starts(rest, STR("="))) {
			rest.p++;
			rest.n--;
		}
	}
	t->value = rest;
	if (!t->has_value && (t->path.n || is_level || (at[1] && at[1][0] == '{')))
		take_next(at, t);
	is_json = t->has_value && str_starts(t->value, STR("{"));
	if (t->path.n || is_json)
		t->arg = engine_arg_find(STR("compilation-config"));
}

static void find_arg(struct engine_token *t)
{
	struct str plain = t->name;

	t->arg = engine_arg_spelled(t->name);
	if (t->arg || !str_starts(t->name, STR("--")))
		return;
	plain.p += 2;
	plain.n -= 2;
	if (plain.n > 3 && memcmp(plain.p, "no", 2) == 0 && (plain.p[2] == '-' || plain.p[2] == '_')) {
		struct str positive = { plain.p + 3, plain.n - 3 };

		t->arg = engine_arg_find(positive);
		if (t->arg && t->arg->kind != ENGINE_SWITCH)
			t->arg = NULL;
		if (!t->arg) {
			t->arg = engine_arg_beginning(positive, true, &t->is_ambiguous);
			t->is_beginning = t->arg != NULL;
		}
		t->is_off = t->arg != NULL;
	}
	if (!t->arg && !t->is_ambiguous) {
		t->arg = engine_arg_beginning(plain, false, &t->is_ambiguous);
		t->is_beginning = t->arg != NULL;
	}
}

/* -qawq: the value of a one-letter option may follow at once. */
static void find_letter(const char *text, struct engine_token *t)
{
	struct str name = { text, 2 };

	if (text[1] == '-' || !text[1] || !text[2])
		return;
	t->arg = engine_arg_spelled(name);
	if (!t->arg)
		return;
	t->name = name;
	t->path = (struct str){ 0 };
	t->value = str_of(text + 2);
	t->has_value = true;
}

static void read_option(char *const *at, struct engine_token *t)
{
	struct str rest = str_of(*at), dots;
	const char *equals = strchr(*at, '=');

	t->name = str_cut(&rest, '=');
	if (equals) {
		t->value = rest;
		t->has_value = true;
	}
	dots = t->name;
	t->name = str_cut(&dots, '.');
	if (dots.p > t->name.p + t->name.n && dots.n)
		t->path = dots;
	find_arg(t);
	if (!t->arg && !t->is_ambiguous)
		find_letter(*at, t);
	if (!t->has_value)
		engine_argv_take(at, t);
}

bool engine_argv_next(char *const **at, struct engine_token *out)
{
	const char *text = **at;

	*out = (struct engine_token){ .n = 1 };
	if (!text)
		return false;
	if (!is_option(text)) {
		out->is_positional = true;
		out->has_value = true;
		out->value = str_of(text);
		out->values = *at;
	} else if (strncmp(text, "-O", 2) == 0) {
		read_o(*at, out);
	} else {
		read_option(*at, out);
	}
	*at += out->n;
	return true;
}

/* ---- judging ---- */

static int find_unknown(const struct engine_token *t, struct err *e)
{
	char oldest[16], newest[16];
	struct str plain = t->name;
	const char *near;

	while (plain.n && *plain.p == '-') {
		plain.p++;
		plain.n--;
	}
	if (t->is_ambiguous)
		return err_set(e, ERR_USAGE, "%.*s: the beginning of several arguments of vLLM's; "
			       "write it whole", (int)t->name.n, t->name.p);
	near = engine_arg_nearest(plain);
	engine_version_text(engine_version_oldest, oldest);
	engine_version_text(engine_version_newest, newest);
	return err_set(e, ERR_USAGE, "%.*s: no argument of vLLM %s to %s%s%s%s", (int)t->name.n,
		       t->name.p, oldest, newest, near ? "; did you mean --" : "", near ? near : "",
		       near ? "?" : "");
}

/* The letter meant another argument before there were optimisation levels. */
static bool is_spelled_in(const struct engine_token *t, unsigned version)
{
	unsigned levels = engine_version("0.12");

	if (!str_is(t->name, "-O") || !version)
		return engine_arg_is_in(t->arg, version);
	if (t->path.n)
		return version < engine_version("0.13");
	return strcmp(t->arg->name, "compilation-config") != 0 || version < levels;
}

static int find_version(const struct engine_token *t, unsigned version, struct err *e)
{
	bool is_gone = t->arg->until && version > t->arg->until;
	char has[16], asked[16];

	if (is_spelled_in(t, version))
		return 0;
	engine_version_text(version, asked);
	if (str_is(t->name, "-O"))
		return err_set(e, ERR_USAGE, "-O with keys of --compilation-config: not in vLLM %s; "
			       "write -cc", asked);
	engine_version_text(is_gone ? t->arg->until : t->arg->since, has);
	return err_set(e, ERR_USAGE, "--%s: not in vLLM %s; it is there %s %s", t->arg->name, asked,
		       is_gone ? "up to" : "from", has);
}

static int find_value(const struct engine_token *t, struct err *e)
{
	const struct engine_arg *arg = t->arg;

	if (t->path.n && arg->kind != ENGINE_JSON)
		return err_set(e, ERR_USAGE, "--%s: has no keys, got '.%.*s'", arg->name,
			       (int)t->path.n, t->path.p);
	if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
		return t->has_value ? engine_arg_check(arg, t->value, e) : 0;
	if (!t->has_value && !(arg->flags & ENGINE_OPTIONAL))
		return err_set(e, ERR_USAGE, "--%s: expected a value", arg->name);
	if (!t->has_value || t->path.n)
		return 0;
	if (!t->values)
		return engine_arg_check(arg, t->value, e);
	for (size_t i = 0; i + 1 < t->n; i++)
		if (engine_arg_check(arg, str_of(t->values[i]), e) < 0)
			return -1;
	return 0;
}

/* -1 with the fault of the token. */
static int find_fault(const struct engine_token *t, bool has_model, unsigned version,
		      struct err *e)
{
	if (t->is_positional && has_model)
		return err_set(e, ERR_USAGE, "'%.*s': not an option; only the model may be given without one",
			       (int)t->value.n, t->value.p);
	if (t->is_positional)
		return 0;
	if (!t->arg)
		return find_unknown(t, e);
	if (find_version(t, version, e) < 0)
		return -1;
	return find_value(t, e);
}

static int judge(char *const *at, const char *head, bool has_model, unsigned version,
		 bool is_strict, struct buf *notes, struct err *e)
{
	struct engine_token t;
	struct err fault;

	while (engine_argv_next(&at, &t)) {
		fault = (struct err){ 0 };
		if (find_fault(&t, has_model, version, &fault) < 0) {
			if (is_strict)
				return err_set(e, ERR_USAGE, "%s: %s", head, fault.text);
			buf_printf(notes, "%s: %s; passed on unchanged\n", head, fault.text);
		}
		has_model |= t.is_positional;
	}
	return 0;
}

int engine_argv_check(char *const *argv, unsigned version, bool is_strict, struct buf *notes,
		      struct err *e)
{
	char *const *at = engine_argv_begin(argv);

	return at ? judge(at, "server command", false, version, is_strict, notes, e) : 0;
}

int engine_args_check(char *const *args, const char *head, unsigned version, bool is_strict,
		      struct buf *notes, struct err *e)
{
	return judge(args, head, true, version, is_strict, notes, e);
}

void engine_args_check_version(char *const *args, const char *head, unsigned version,
			       struct buf *notes)
{
	struct engine_token t;

	while (version && engine_argv_next(&args, &t)) {
		struct err fault = { 0 };

		if (t.arg && find_version(&t, version, &fault) < 0)
			buf_printf(notes, "%s: %s\n", head, fault.text);
	}
}

void engine_argv_check_version(char *const *argv, unsigned version, struct buf *notes)
{
	char *const *at = engine_argv_begin(argv);

	if (at)
		engine_args_check_version(at, "server command", version, notes);
}

/* Where arguments begin, vLLM or not. */
static char *const *first_of(char *const *argv)
{
	char *const *at = engine_argv_begin(argv);

	if (at)
		return at;
	return *argv ? argv + 1 : argv;
}

/* ---- one value ---- */

/* The value of one argument in a command; text NULL: none. */
struct said_arg {
	const char *text;
	struct str name; /* the token's name as typed */
};

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
static struct said_arg said_of(char *const *argv, const struct engine_arg *arg, struct arena *a)
{
	struct json_value *keys = NULL;
	struct said_arg last = { 0 };
	char *const *at = first_of(argv);
	bool is_model = strcmp(arg->name, "model") == 0;
	struct engine_token t;

	while (engine_argv_next(&at, &t)) {
		if (is_model && t.is_positional && !last.text)
			last = (struct said_arg){ arena_text(a, t.value), STR("") };
		if (t.arg != arg)
			continue;
		if (arg->kind == ENGINE_FLAG || arg->kind == ENGINE_SWITCH)
			last = (struct said_arg){ t.is_off ? "false" : "true", t.name };
		else if (t.path.n && t.has_value &&
			 opt_dotted_put(&keys, arg->name, t.path, t.value, NULL, a, NULL) == 0)
			last = (struct said_arg){ opt_dotted_text(keys, a), t.name };
		else if (t.has_value && !keys)
			last = (struct said_arg){ joined(&t, a), t.name };
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
	struct said_arg said;
	char *plain;

	if (!arg)
		return NULL;
	said = said_of(argv, arg, a);
	if (!said.text)
		said.text = arg->initial;
	if (path.n)
		return key_of(said.text, path, a);
	if (said.text && arg->flags & ENGINE_NONE && strcmp(said.text, "None") == 0)
		return NULL;
	if (!(arg->flags & ENGINE_DASHED) || !said.text)
		return said.text;
	/* A choice as the server spells it. */
	plain = arena_text(a, str_of(said.text));
	for (char *p = plain; *p; p++)
		*p = *p == '-' ? '_' : (char)tolower((unsigned char)*p);
	return plain;
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
	struct said_arg said;
	int v;

	*out = (struct engine_optimization){ 2, 3, "", "" };
	if (version && version < engine_version("0.12")) {
		old_mode(argv, &a, out);
	} else {
		said = said_of(argv, level, &a);
		v = mode_of(said.text && *said.text == 'O' ? said.text + 1 : said.text);
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

/* Marks the arguments that a command names. */
static void mark(char *const *argv, bool *is_named)
{
	const struct engine_arg *model = engine_arg_find(STR("model"));
	char *const *at = first_of(argv);
	struct engine_token t;

	while (engine_argv_next(&at, &t))
		if (t.arg || t.is_positional)
			is_named[(t.arg ? t.arg : model) - engine_args] = true;
}

static void add_line(const struct engine_arg *arg, struct str name, const char *x, const char *y,
		     struct buf *out)
{
	buf_printf(out, "%.*s: ", (int)name.n, name.p);
	add_side(arg, name, x, out);
	buf_add_text(out, " -> ");
	add_side(arg, name, y, out);
	buf_add_char(out, '\n');
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
		add_line(arg, str_of(arg->name), x, y, out);
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

/* Unknown arguments that differ: those of a; with is_b, those only in b. */
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
		add_line(NULL, t.name, x, y, out);
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

/* "a_b.c_d" is "a-b.c_d": after the dot are keys of a JSON value. */
static char *flag_name(struct str name, const char *head, struct arena *a)
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

static char *word_of(const struct json_value *v, struct arena *a)
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

static void add_switch(struct word_list *w, const struct engine_arg *arg, struct str key,
		       bool is_on)
{
	bool is_dotted = memchr(key.p, '.', key.n) != NULL;

	if (is_dotted)
		words_add(w, arena_printf(w->arena, "%s=%s", flag_name(key, "--", w->arena), is_on ? "true" : "false"));
	else if (is_on)
		words_add(w, flag_name(key, "--", w->arena));
	else if (!arg || arg->kind != ENGINE_FLAG)
		words_add(w, flag_name(key, "--no-", w->arena));
}

static void add_one(struct word_list *w, const struct engine_arg *arg, struct str key,
		    const struct json_value *v)
{
	bool is_list = (!arg || arg->kind == ENGINE_LIST) && !memchr(key.p, '.', key.n);
	char *name = flag_name(key, "--", w->arena), *value;

	if (v->kind == JSON_NULL || (v->kind == JSON_ARRAY && is_list && v->count == 0))
		return;
	if (v->kind == JSON_TRUE || v->kind == JSON_FALSE) {
		add_switch(w, arg, key, v->kind == JSON_TRUE);
	} else if (v->kind == JSON_ARRAY && is_list) {
		words_add(w, name);
		for (size_t i = 0; i < v->count; i++)
			words_add(w, word_of(&v->item[i], w->arena));
	} else {
		/* A value that looks like an option follows "=", where it is not taken for one. */
		value = word_of(v, w->arena);
		words_add(w, value[0] == '-' ? arena_printf(w->arena, "%s=%s", name, value) : name);
		if (value[0] != '-')
			words_add(w, value);
	}
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
