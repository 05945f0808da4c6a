/* SPDX-License-Identifier: Apache-2.0 */
/* command.c - see command.h. */
#include "experiment/command.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "experiment/config.h"
#include "proc/program.h"
#include "proc/tool.h"

/* Every address of the machine is asked at its own. */
static const char *host_to_ask(const char *host)
{
	if (!host || !*host || strcmp(host, "0.0.0.0") == 0)
		return "127.0.0.1";
	return strcmp(host, "::") == 0 ? "::1" : host;
}

static struct str without_slash(struct str url)
{
	while (url.n && url.p[url.n - 1] == '/')
		url.n--;
	return url;
}

struct role_at command_at(const struct experiment_server *s, unsigned port, struct arena *a)
{
	struct role_at at = { .host = host_to_ask(s->host), .port = port, .url = s->url };

	if (at.url)
		at.url = arena_text(a, without_slash(str_of(at.url)));
	else
		at.url = command_url(&at, a);
	return at;
}

const char *command_url(const struct role_at *at, struct arena *a)
{
	bool is_bare = strchr(at->host, ':') && at->host[0] != '[';

	if (at->url)
		return at->url;
	return arena_printf(a, "http://%s%s%s:%u", is_bare ? "[" : "", at->host, is_bare ? "]" : "",
			    at->port);
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
	size_t n_command = words_count(s->command), n_args = words_count(args), n = 0;
	char **words = arena_alloc(a, (n_command + n_args + 6) * sizeof(*words));
	struct buf program = { 0 };

	if (n_command == 1 && strcmp(s->command[0], "sim") == 0) {
		if (program_path(&program, e) < 0)
			return -1;
		words[n++] = arena_text(a, buf_str(&program));
		buf_release(&program);
	}
	memcpy(words + n, s->command, n_command * sizeof(*words));
	n += n_command;
	memcpy(words + n, args, n_args * sizeof(*words));
	n += n_args;
	if (!says_where(s, s->command) && !says_where(s, args)) {
		words[n++] = arena_text(a, STR("--host"));
		words[n++] = arena_text(a, str_of(s->host ? s->host : "127.0.0.1"));
		words[n++] = arena_text(a, STR("--port"));
		words[n++] = arena_printf(a, "%u", at[i].port);
	}
	return role_words(x, i, at, words, a, out, e);
}

int command_env(const struct experiment *x, size_t i, const struct role_at *at, struct arena *a,
		char ***out, struct err *e)
{
	const struct experiment_server *s = &x->server[i];
	char **own = config_server_secrets(s, a);
	struct word_list lines = { .arena = a };

	for (; *own; own++)
		words_add(&lines, *own);
	for (char *const *line = s->env; line && *line; line++)
		words_add(&lines, *line);
	return role_list(x, at, lines.v ? lines.v : s->env, a, out, e);
}

/* The value of a variable of its own environment; NULL: as here. */
static const char *own_variable(const struct experiment_server *s, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; s->env && s->env[i]; i++)
		if (strncmp(s->env[i], name, n) == 0 && s->env[i][n] == '=')
			return s->env[i] + n + 1;
	return NULL;
}

int command_find(const struct experiment_server *s, struct arena *a, const char **path,
		 struct err *e)
{
	const char *name = s->command && s->command[0] ? s->command[0] : "", *folders;
	char *found;

	*path = NULL;
	folders = s->container ? NULL : own_variable(s, "PATH");
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
		return err_set(e, ERR_USAGE, "there is no %s in PATH", name);
	if (!found)
		return err_set(e, ERR_USAGE, "%s is not in PATH; is the environment it is installed in "
			       "active?", name);
	*path = arena_text(a, str_of(found));
	free(found);
	return 0;
}
