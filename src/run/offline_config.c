/* SPDX-License-Identifier: Apache-2.0 */
/* offline_config.c - see offline_config.h. */
#include "run/offline_config.h"

#include <string.h>

#include "base/file.h"
#include "base/fmt.h"
#include "base/limits.h"
#include "base/redact.h"
#include "engine/args.h"
#include "json/write.h"
#include "json/yaml.h"

struct config {
	const struct opt_set *set;
	struct arena *a;
	char *const *typed;  /* the command line, ended by NULL */
	char **v;
	size_t n, room;
};

static void add(struct config *c, const char *word)
{
	if (c->n + 1 >= c->room) {
		size_t room = c->room * 2 + 64;
		char **v = arena_alloc(c->a, room * sizeof(*v));

		if (c->n)
			memcpy(v, c->v, c->n * sizeof(*v));
		c->v = v;
		c->room = room;
	}
	c->v[c->n++] = (char *)word;
	c->v[c->n] = NULL;
}

static bool is_same(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n && a.n == b.n; i++)
		if ((a.p[i] == '_' ? '-' : a.p[i]) != (b.p[i] == '_' ? '-' : b.p[i]))
			return false;
	return a.n == b.n;
}

/* Whether --no-name is an option, of the verb's or of the engine's. */
static bool has_negative(const struct opt_set *set, struct str name)
{
	const struct engine_arg *arg = engine_arg_find(name);

	for (size_t i = 0; i < set->n; i++) {
		const struct opt *o = &set->row[i];
		if (is_same(name, str_of(o->name)))
			return o->kind == OPT_TRI;
	}
	return arg && arg->kind == ENGINE_SWITCH;
}

/* As Python's str() has it; objects and lists in lists as JSON. */
static const char *text_of(const struct json_value *v, struct arena *a)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	char number[FMT_F64_BYTES];
	const char *text;

	switch (v->kind) {
	case JSON_NULL:
		return "None";
	case JSON_TRUE:
		return "True";
	case JSON_FALSE:
		return "False";
	case JSON_REAL:
		return arena_printf(a, "%s", fmt_f64(number, v->real));
	case JSON_STRING:
		return arena_text(a, v->text);
	case JSON_INT:
	case JSON_ARRAY:
	case JSON_OBJECT:
		break;
	}
	w.is_python = true;
	json_put_value(&w, v);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

/* Whether the option is on the command line, too, by its whole name. */
static bool is_typed(const struct config *c, struct str key)
{
	for (char *const *at = c->typed; *at; at++) {
		struct str rest = str_of(*at), name = str_cut(&rest, '=');

		if (!str_starts(name, STR("--")))
			continue;
		name = (struct str){ name.p + 2, name.n - 2 };
		if (is_same(name, key) ||
		    (str_starts(name, STR("no-")) &&
		     is_same((struct str){ name.p + 3, name.n - 3 }, key)))
			return true;
	}
	return false;
}

static void add_option(struct config *c, struct str key, const struct json_value *v)
{
	const char *name = arena_printf(c->a, "--%.*s", (int)key.n, key.p);
	const char *text;

	if (is_typed(c, key))
		return;
	if (v->kind == JSON_FALSE) {
		if (has_negative(c->set, key))
			add(c, arena_printf(c->a, "--no-%.*s", (int)key.n, key.p));
		return;
	}
	if (v->kind == JSON_ARRAY && v->count == 0)
		return;
	if (v->kind == JSON_TRUE || v->kind == JSON_ARRAY) {
		add(c, name);
		for (size_t i = 0; v->kind == JSON_ARRAY && i < v->count; i++)
			add(c, text_of(&v->item[i], c->a));
		return;
	}
	text = text_of(v, c->a);
	/* With "=" a value may begin with a dash. */
	if (text[0] == '-') {
		add(c, arena_printf(c->a, "%s=%s", name, text));
		return;
	}
	add(c, name);
	add(c, text);
}

static void learn(const struct json_value *root)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);

	json_put_value(&w, root);
	redact_learn_text(buf_str(&text));
	buf_release(&text);
}

static int read_file(struct config *c, const char *path, struct err *e)
{
	const char *dot = strrchr(path, '.');
	struct buf text = { 0 };
	struct json_value *root;
	int rc;

	if (!dot || (strcmp(dot, ".yaml") != 0 && strcmp(dot, ".yml") != 0))
		return err_set(e, ERR_USAGE, "--config: expected a .yaml or .yml file, got '%.200s'",
			       path);
	rc = file_read(path, CONFIG_BYTES_MAX, &text, e);
	if (rc == 0)
		rc = yaml_parse(c->a, buf_str(&text), &root, e);
	buf_release(&text);
	if (rc == 0 && root->kind != JSON_OBJECT)
		rc = err_set(e, ERR_PARSE, "%.200s: expected names of options with their values", path);
	if (rc < 0)
		return err_wrap(e, "--config %.200s", path);
	learn(root);
	for (size_t i = 0; i < root->count; i++)
		add_option(c, root->key[i], &root->item[i]);
	return 0;
}

static bool has_row(const struct opt_set *set, const char *name)
{
	for (size_t i = 0; i < set->n; i++)
		if (strcmp(set->row[i].name, name) == 0)
			return true;
	return false;
}

int offline_config(const struct opt_set *set, int *argc, char ***argv, struct arena *a,
		   struct err *e)
{
	struct config c = { .set = set, .a = a, .typed = *argv };
	const char *path = NULL;
	int at = -1, words = 0, n = 0;

	if (has_row(set, "config"))
		return 0;
	for (int i = 0; i < *argc && strcmp((*argv)[i], "--") != 0; i++) {
		bool is_whole = strcmp((*argv)[i], "--config") == 0;

		if (!is_whole && strncmp((*argv)[i], "--config=", 9) != 0)
			continue;
		if (path)
			return err_set(e, ERR_USAGE, "--config: one file at most");
		if (is_whole && i + 1 == *argc)
			return err_set(e, ERR_USAGE, "--config: expected the name of a YAML file");
		at = i;
		words = 1 + is_whole;
		path = is_whole ? (*argv)[++i] : (*argv)[i] + 9;
	}
	if (!path)
		return 0;
	if (read_file(&c, path, e) < 0)
		return -1;
	for (int i = 0; i < *argc; i++)
		if (i < at || i >= at + words)
			add(&c, (*argv)[i]);
	if (!c.v)
		add(&c, NULL);
	for (n = 0; c.v[n];)
		n++;
	*argc = n;
	*argv = c.v;
	return 0;
}
