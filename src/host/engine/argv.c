/* SPDX-License-Identifier: Apache-2.0 */
/* argv.c - see args.h: a server's command line, token by token, and what is wrong with it. */
#include <ctype.h>
#include <stdio.h>

#include "host/engine/names.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *const *engine_argv_begin(char *const *argv)
{
	for (char *const *at = argv; *at; at++) {
		/* The image's own entry point is `vllm serve`. */
		if (strstr(*at, "vllm/vllm-openai"))
			return at + 1;
		if (!at[1])
			break;
		if (strcmp(at[1], "serve") == 0 && (strcmp(base_name(*at), "vllm") == 0 ||
						    strcmp(*at, "vllm.entrypoints.cli.main") == 0))
			return at + 2;
		if (strcmp(*at, "-m") == 0 &&
		    (strcmp(at[1], "vllm.entrypoints.openai.api_server") == 0 ||
		     strcmp(at[1], "vllm.entrypoints.api_server") == 0))
			return at + 2;
	}
	return NULL;
}

/* argparse's rule: begins with "-", is no negative number and holds no blank. */
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

static bool is_level(const char *text)
{
	return text && text[0] >= '0' && text[0] <= '3' && !text[1];
}

/* -O3, -O=3, -O 3, -O.mode=3, -O {"mode":3}: two arguments share the letter. */
static void read_o(char *const *at, struct engine_token *t)
{
	struct str rest = { (*at) + 2, strlen(*at) - 2 };
	bool is_json;

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
	if (!t->has_value && (t->path.n || is_level(at[1]) || (at[1] && at[1][0] == '{')))
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

/* -1 with what is wrong with the token. */
static int find_fault(const struct engine_token *t, bool has_model, unsigned version,
		      struct err *e)
{
	if (t->is_positional && has_model)
		return err_set(e, ERR_USAGE, "'%.*s': stands alone, and only the model may",
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
