/* SPDX-License-Identifier: Apache-2.0 */
/*
 * foreign.c - see args.h: the engine's arguments beside the options of another command.
 *
 * What `vllm bench throughput` and its like take is what the engine takes; arguments of the HTTP
 * server, which those commands do not start, are refused by name.
 */
#include <string.h>

#include "host/engine/names.h"

bool engine_arg_is_engines(const struct engine_arg *arg, bool is_async)
{
	static const char *const servers[] = { "headless", "api-server-count", "grpc", "config" };
	static const char *const asyncs[] = { "enable-log-requests", "disable-log-requests" };

	for (size_t i = 0; i < sizeof(servers) / sizeof(*servers); i++)
		if (strcmp(arg->name, servers[i]) == 0)
			return false;
	for (size_t i = 0; i < sizeof(asyncs) / sizeof(*asyncs); i++)
		if (strcmp(arg->name, asyncs[i]) == 0)
			return is_async;
	return strcmp(arg->group, "Frontend") != 0;
}

/* ---- beginnings ---- */

struct found {
	const struct engine_arg *arg;
	bool is_off;
	size_t n;
};

static bool starts(const char *name, struct str typed)
{
	for (size_t i = 0; i < typed.n; i++)
		if (name[i] != (typed.p[i] == '_' ? '-' : typed.p[i]))
			return false;
	return true;
}

static void look(const struct engine_arg *arg, struct str plain, struct found *out)
{
	struct str positive = { plain.p + 3, plain.n - 3 };
	bool is_off = arg->kind == ENGINE_SWITCH && plain.n > 3 &&
		starts("no-", (struct str){ plain.p, 3 }) && starts(arg->name, positive);

	if (!is_off && !starts(arg->name, plain))
		return;
	out->arg = arg;
	out->is_off = is_off;
	out->n++;
}

/* name: with dashes. What is gone counts only when nothing else begins so. */
static struct found beginning(const void *self, struct str name)
{
	struct str plain = { name.p + 2, name.n - 2 };
	struct found out = { 0 };

	for (int is_gone = 0; is_gone < 2 && out.n == 0; is_gone++)
		for (size_t i = 0; i < engine_arg_count; i++)
			if (engine_arg_is_engines(&engine_args[i], self != NULL) &&
			    (engine_args[i].until != 0) == is_gone)
				look(&engine_args[i], plain, &out);
	return out;
}

/* Up to the first "." or "=". */
static struct str name_of(const char *word)
{
	return (struct str){ word, strcspn(word, ".=") };
}

static int beginning_words(const void *self, char *const *argv, struct err *e)
{
	struct str name = name_of(*argv);
	struct engine_token t = { .name = name, .n = 1 };
	struct found found;

	if (name.n < 3 || !str_starts(name, STR("--")))
		return 0;
	found = beginning(self, name);
	if (found.n > 1)
		return err_set(e, ERR_USAGE, "%.*s: the beginning of several arguments of vLLM's; "
			       "write it whole", (int)name.n, name.p);
	if (found.n == 0)
		return 0;
	t.arg = found.arg;
	t.path = str_of(name.p + name.n);
	if (!strchr(*argv, '='))
		engine_argv_take(argv, &t);
	return (int)t.n;
}

const char *engine_foreign_whole(const void *self, const char *word, struct arena *a)
{
	struct str name = name_of(word);
	struct found found;

	if (name.n < 3 || !str_starts(name, STR("--")) || engine_arg_spelled(name))
		return word;
	found = beginning(self, name);
	if (found.n != 1)
		return word;
	return arena_printf(a, "--%s%s%s", found.is_off ? "no-" : "", found.arg->name,
			    name.p + name.n);
}

int engine_foreign_words(const void *self, char *const *argv, bool is_whole, struct err *e)
{
	char *const *at = argv;
	struct engine_token t;

	if (!is_whole)
		return beginning_words(self, argv, e);
	if (!engine_argv_next(&at, &t) || !t.arg || t.is_beginning)
		return 0;
	if (!engine_arg_is_engines(t.arg, self != NULL))
		return err_set(e, ERR_USAGE, "--%s: an argument of vLLM's HTTP server, which this "
			       "command does not start", t.arg->name);
	return (int)t.n;
}

const char *engine_foreign_nearest(const void *self, struct str name)
{
	const char *near = engine_arg_nearest(name);
	const struct engine_arg *arg = near ? engine_arg_find(str_of(near)) : NULL;

	return arg && engine_arg_is_engines(arg, self != NULL) ? near : NULL;
}

static const char *kind_name(const struct engine_arg *arg)
{
	static const char *const names[ENGINE_KINDS] = {
		[ENGINE_FLAG] = "flag", [ENGINE_SWITCH] = "tri", [ENGINE_INT] = "int",
		[ENGINE_HUMAN] = "int", [ENGINE_REAL] = "real", [ENGINE_TEXT] = "text",
		[ENGINE_LIST] = "list", [ENGINE_JSON] = "json",
	};
	return names[arg->kind];
}

/* What is gone from the newest version passes, and is not shown. */
bool engine_foreign_row(const void *self, size_t i, struct opt_foreign_row *out)
{
	const struct engine_arg *arg = engine_args;
	size_t seen = 0;

	for (;; arg++) {
		if (arg == engine_args + engine_arg_count)
			return false;
		if (engine_arg_is_engines(arg, self != NULL) && !arg->until && seen++ == i)
			break;
	}
	*out = (struct opt_foreign_row){
		.name = arg->name, .also = arg->also, .help = arg->about,
		/* What stands in no group of vLLM's help. */
		.group = strcmp(arg->group, "Server") == 0 ? "Engine" : arg->group,
		.initial = arg->initial ? arg->initial : "", .choices = arg->choices,
		.kind = kind_name(arg), .is_switch = arg->kind == ENGINE_SWITCH,
		.has_value = arg->kind != ENGINE_SWITCH && arg->kind != ENGINE_FLAG,
	};
	return true;
}
