/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - see command.h. */
#include "experiment/config/command.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/str.h"
#include "experiment/config/config.h"
#include "host/proc/tool.h"

bool role_has_engine(enum server_role role)
{
	return role != ROLE_PROXY && role != ROLE_CACHE;
}

/* ---- $(NAME.part) ---- */

const char *role_url(const struct role_at *at, struct arena *a)
{
	bool is_bare = strchr(at->host, ':') && at->host[0] != '[';

	if (at->url)
		return at->url;
	return arena_printf(a, "http://%s%s%s:%u", is_bare ? "[" : "", at->host, is_bare ? "]" : "",
			    at->port);
}

/*
 * The length of a reference at the beginning of text; 0: there is none; -1: to an unknown server.
 */
static ptrdiff_t reference(const struct experiment *x, const struct role_at *at, struct str text,
			   struct arena *a, struct buf *out, struct err *e)
{
	const char *end = memchr(text.p, ')', text.n), *dot;
	struct str name, part;

	if (!str_starts(text, STR("$(")) || !end)
		return 0;
	name = (struct str){ text.p + 2, (size_t)(end - text.p) - 2 };
	dot = name.n ? memrchr(name.p, '.', name.n) : NULL;
	if (!dot)
		return 0;
	part = (struct str){ dot + 1, (size_t)(end - dot) - 1 };
	name.n = (size_t)(dot - name.p);
	if (!str_is(part, "url") && !str_is(part, "host") && !str_is(part, "port"))
		return 0;
	for (size_t i = 0; i < x->n_servers; i++) {
		if (!str_is(name, x->server[i].name))
			continue;
		if (str_is(part, "port"))
			buf_printf(out, "%u", at[i].port);
		else
			buf_add_text(out, str_is(part, "url") ? role_url(&at[i], a) : at[i].host);
		return end + 1 - text.p;
	}
	return err_set(e, ERR_USAGE, "$(%.*s.%.*s): this experiment has no server %.*s",
		       (int)name.n, name.p, (int)part.n, part.p, (int)name.n, name.p);
}

int role_text(const struct experiment *x, const struct role_at *at, const char *text,
	      struct arena *a, char **out, struct err *e)
{
	struct str rest = str_of(text);
	struct buf b = { 0 };
	ptrdiff_t n = 0;

	while (rest.n) {
		n = *rest.p == '$' ? reference(x, at, rest, a, &b, e) : 0;
		if (n < 0)
			break;
		if (n == 0)
			buf_add_char(&b, *rest.p);
		n = n ? n : 1;
		rest = (struct str){ rest.p + n, rest.n - (size_t)n };
	}
	*out = arena_text(a, buf_str(&b));
	buf_release(&b);
	return n < 0 ? -1 : 0;
}

/* A list of such texts, ended by NULL; NULL: an empty one. */
static int role_list(const struct experiment *x, const struct role_at *at, char *const *list,
	      struct arena *a, char ***out, struct err *e)
{
	size_t n = words_count(list);

	*out = arena_alloc(a, (n + 1) * sizeof(**out));
	for (size_t i = 0; i < n; i++)
		if (role_text(x, at, list[i], a, &(*out)[i], e) < 0)
			return -1;
	return 0;
}

/* ---- the simulator's ---- */

struct sim_line {
	struct word_list words;
	char *const *given;
};

static bool is_given(const struct sim_line *w, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; w->given[i]; i++)
		if (strncmp(w->given[i], name, n) == 0 &&
		    (w->given[i][n] == 0 || w->given[i][n] == '='))
			return true;
	return false;
}

/* --NAME URL... for all servers of that role; whether there is one. */
static bool add_urls(struct sim_line *w, const struct experiment *x, const struct role_at *at,
		     enum server_role role, const char *name)
{
	bool is_there = false, is_wanted = !is_given(w, name);

	for (size_t i = 0; i < x->n_servers; i++) {
		if (x->server[i].role != role)
			continue;
		if (is_wanted && !is_there)
			words_add(&w->words, arena_text(w->words.arena, str_of(name)));
		if (is_wanted)
			words_add(&w->words, arena_printf(w->words.arena, "%s",
							  role_url(&at[i], w->words.arena)));
		is_there = true;
	}
	return is_there;
}

static void sim_words(struct sim_line *w, const struct experiment *x, size_t i,
		      const struct role_at *at)
{
	enum server_role role = x->server[i].role;
	bool is_split;

	if (role != ROLE_SERVE && !is_given(w, "--kv-transfer-config") && !is_given(w, "--role")) {
		words_add(&w->words, arena_text(w->words.arena, STR("--role")));
		words_add(&w->words, arena_text(w->words.arena, str_of(server_role_name(role))));
	}
	if (role == ROLE_PROXY) {
		is_split = add_urls(w, x, at, ROLE_PREFILL, "--prefill-url");
		if (!add_urls(w, x, at, ROLE_DECODE, "--decode-url") && !is_split)
			add_urls(w, x, at, ROLE_SERVE, "--backend-url");
	} else if (role == ROLE_SERVE) {
		add_urls(w, x, at, ROLE_CACHE, "--kv-cache-url");
	}
}

int role_words(const struct experiment *x, size_t i, const struct role_at *at, char *const *argv,
	       struct arena *a, char ***out, struct err *e)
{
	struct server_address where;
	struct sim_line w = { .words.arena = a };
	char **plain;

	assert(i < x->n_servers);
	if (role_list(x, at, argv, a, &plain, e) < 0 || server_address(plain, &where, e) < 0)
		return err_wrap(e, "server %s", x->server[i].name);
	w.given = plain;
	for (char **word = plain; *word; word++)
		words_add(&w.words, *word);
	if (where.kind == SERVER_SIM)
		sim_words(&w, x, i, at);
	*out = w.words.v ? w.words.v : plain;
	return 0;
}

/* The address to connect to: loopback for a server that listens on all addresses. */
static const char *host_to_ask(const char *host)
{
	if (!host || !*host || strcmp(host, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(host, "::") == 0 ? "::1" : host;
}

struct role_at command_at(const struct experiment_server *s, unsigned port, struct arena *a)
{
	struct role_at at = { .host = host_to_ask(s->host), .port = port };
	struct str url = str_of(s->url ? s->url : role_url(&at, a));

	while (url.n && url.p[url.n - 1] == '/')
		url.n--;
	at.url = arena_text(a, url);
	return at;
}

static bool says_where(const struct experiment_server *s, char *const *words)
{
	char own[2][300];

	snprintf(own[0], sizeof(own[0]), "$(%.200s.port)", s->name);
	snprintf(own[1], sizeof(own[1]), "$(%.200s.url)", s->name);
	for (size_t i = 0; words && words[i]; i++)
		if (strstr(words[i], own[0]) || strstr(words[i], own[1]))
			return true;
	return false;
}

int command_words(const struct experiment *x, size_t i, const struct role_at *at, struct arena *a,
		  char ***out, struct err *e)
{
	const struct experiment_server *s = &x->server[i];
	char *const *args = config_server_words(s, a);
	struct word_list words = { .arena = a };
	struct buf program = { 0 };

	assert(i < x->n_servers && !s->url);
	if (words_count(s->command) == 1 && strcmp(s->command[0], "sim") == 0) {
		if (program_path(&program, e) < 0)
			return -1;
		words_add(&words, arena_text(a, buf_str(&program)));
		buf_release(&program);
	}
	for (char *const *word = s->command; word && *word; word++)
		words_add(&words, *word);
	for (char *const *word = args; word && *word; word++)
		words_add(&words, *word);
	if (!says_where(s, s->command) && !says_where(s, args)) {
		words_add(&words, arena_text(a, STR("--host")));
		words_add(&words, arena_text(a, str_of(s->host ? s->host : "127.0.0.1")));
		words_add(&words, arena_text(a, STR("--port")));
		words_add(&words, arena_printf(a, "%u", at[i].port));
	}
	return role_words(x, i, at, words.v, a, out, e);
}

int command_env(const struct experiment *x, size_t i, const struct role_at *at, struct arena *a,
		char ***out, struct err *e)
{
	const struct experiment_server *s = &x->server[i];
	struct word_list lines = { .arena = a };

	for (char **own = config_server_secrets(s, a); *own; own++)
		words_add(&lines, *own);
	for (char *const *line = s->env; line && *line; line++)
		words_add(&lines, *line);
	return role_list(x, at, lines.v ? lines.v : s->env, a, out, e);
}

int command_find(const struct experiment_server *s, struct arena *a, const char **path,
		 struct err *e)
{
	const char *name = s->command && s->command[0] ? s->command[0] : "", *folders;
	char *found;

	*path = NULL;
	folders = s->container ? NULL : environment_variable(s->env, STR("PATH"));
	if (s->container)
		name = arena_text(a, json_text(json_get(s->container, "runtime"), STR("docker")));
	else if (config_is_sim(s->command) || strcmp(name, PROGRAM_WORD) == 0)
		return 0;
	if (strchr(name, '/')) {
		*path = name;
		if (access(name, X_OK) < 0)
			return err_set(e, ERR_USAGE, "%s: %s", name, strerror(errno));
		return file_is_dir(name) ? err_set(e, ERR_USAGE, "%s is a folder", name) : 0;
	}
	found = folders ? tool_path_in(folders, name) : tool_path(name);
	if (!found && s->container)
		return err_set(e, ERR_COMMAND_NOT_FOUND, "%s is not in PATH", name);
	if (!found)
		return err_set(e, ERR_COMMAND_NOT_FOUND, "%s is not in PATH; is the environment it is installed in "
			       "active?", name);
	*path = arena_text(a, str_of(found));
	free(found);
	return 0;
}

