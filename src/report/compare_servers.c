/* SPDX-License-Identifier: Apache-2.0 */
/* compare_servers.c - see compare_note_server: two servers by the commands that started them. */
#include <string.h>

#include "engine/args.h"
#include "report/compare.h"

/* The command of a start as a list of words; NULL: it tells none. */
static char **words_of(struct comparison *c, const struct json_value *server)
{
	const struct json_value *command = json_get(server, "command");
	char **argv;

	if (!command || command->kind != JSON_ARRAY)
		return NULL;
	argv = arena_alloc(c->a, (command->count + 1) * sizeof(*argv));
	for (size_t i = 0; i < command->count; i++)
		argv[i] = arena_text(c->a, json_text(&command->item[i], STR("")));
	return argv;
}

static bool is_same_name(struct str a, struct str b)
{
	for (size_t i = 0; i < a.n && i < b.n; i++)
		if ((a.p[i] == '_' ? '-' : a.p[i]) != (b.p[i] == '_' ? '-' : b.p[i]))
			return false;
	return a.n == b.n;
}

static bool is_override(const struct json_value *server, struct str name)
{
	const struct json_value *keys = json_get(server, "serve_overrides");

	for (size_t i = 0; keys && keys->kind == JSON_OBJECT && i < keys->count; i++)
		if (is_same_name(keys->key[i], name))
			return true;
	return false;
}

static bool is_address(struct str name)
{
	return str_is(name, "port") || str_is(name, "host") || str_is(name, "uds");
}

void compare_note_server(struct comparison *c, const struct compare_side *side)
{
	const struct json_value *base = c->side[0].server;
	char **a, **b;
	struct buf lines = { 0 }, text = { 0 };
	struct str rest;

	if (side == c->side || !base || !side->server)
		return;
	a = words_of(c, base);
	b = words_of(c, side->server);
	if (a && b)
		engine_argv_diff(a, b, &lines);
	for (rest = buf_str(&lines); rest.n;) {
		struct str line = str_cut(&rest, '\n'), value = line, name = str_cut(&value, ':');

		if (!is_address(name) && !is_override(base, name) &&
		    !is_override(side->server, name))
			buf_printf(&text, "%s%.*s", text.len ? "; " : "", (int)line.n, line.p);
	}
	if (text.len)
		compare_note(c, "%s: its server was started otherwise than %s's: %s", side->name,
			     c->side[0].name, text.data);
	buf_release(&lines);
	buf_release(&text);
}
