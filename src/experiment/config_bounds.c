/* SPDX-License-Identifier: Apache-2.0 */
/* config_bounds.c - see config_bounds.h. */
#include "experiment/config_bounds.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "engine/args.h"
#include "experiment/config_parts.h"

#define OPTION "dashboard --launch-command"

static bool is_listed(const char *const *list, size_t n, struct str text)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(text, list[i]))
			return true;
	return false;
}

const char *config_bounds_variable(const struct config_bounds *b, const char *name)
{
	return !b || is_listed(b->variables, b->n_variables, str_of(name)) ? getenv(name) : NULL;
}

/* ---- files ---- */

static bool is_below(const char *path, const char *folder)
{
	size_t n = strlen(folder);

	while (n && folder[n - 1] == '/')
		n--;
	return strncmp(path, folder, n) == 0 && path[n] == '/';
}

/*
 * The file, when it lies below the folder. Looked at again once it is open: links may have been
 * changed in between.
 */
static int open_below(const char *path, const char *folder, char **real)
{
	char *root = realpath(folder, NULL), *found = realpath(path, NULL), link[48];
	char now[PATH_MAX];
	struct stat st;
	ssize_t n = 0;
	int fd = -1;

	if (root && found && is_below(found, root))
		fd = open(found, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, now, sizeof(now) - 1);
		now[n > 0 ? n : 0] = 0;
		if (!is_below(now, root) || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
			close(fd);
			fd = -1;
		}
	}
	free(root);
	if (fd < 0)
		free(found);
	else
		*real = found;
	return fd;
}

int config_bounds_read(const struct config_bounds *b, const char *name, const char *folder,
		       size_t limit, struct buf *out, char **real, struct err *e)
{
	char link[48];
	int fd = -1, rc;

	for (size_t i = 0; i < b->n_folders && fd < 0; i++) {
		char *path = file_join(folder ? folder : b->folders[i], name);

		fd = open_below(path, b->folders[i], real);
		free(path);
	}
	if (fd < 0 && !b->n_folders)
		return err_set(e, ERR_USAGE, "a configuration that is sent to a dashboard reads no other "
			       "files, unless the dashboard was started with --include-dir DIR");
	if (fd < 0)
		return err_set(e, ERR_USAGE, "no such file below the folders that the dashboard opens "
			       "(--include-dir)");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	rc = file_read(link, limit, out, e);
	close(fd);
	if (rc < 0) {
		free(*real);
		*real = NULL;
	}
	return rc;
}

const char *config_bounds_fault(const struct config *c, const char *text)
{
	size_t place = strspn(text, "0123456789:");

	if (!c->bounds)
		return text;
	return arena_printf(c->arena, "%.*s%sa mistake, which is not shown here because it is in "
			    "another file", (int)place, text, place ? " " : "");
}

/* ---- programs ---- */

static const char *all_commands(struct config_reader *r)
{
	const struct config_bounds *b = r->c->bounds;
	struct buf text = { 0 };
	const char *out;

	for (size_t i = 0; i < b->n_commands; i++)
		buf_printf(&text, "%s%s", i ? ", " : "", b->commands[i]);
	out = arena_text(r->a, buf_str(&text));
	buf_release(&text);
	return out;
}

/* Word for word: what follows a command could be anything to it. */
static bool may_start(struct config_reader *r, char *const *words)
{
	const struct config_bounds *b = r->c->bounds;

	for (size_t i = 0; i < b->n_commands; i++) {
		char **allowed;
		size_t n, k = 0;

		if (words_split(str_of(b->commands[i]), r->a, &allowed, &n, NULL) < 0)
			continue;
		while (k < n && words[k] && strcmp(allowed[k], words[k]) == 0)
			k++;
		if (k == n && !words[k])
			return true;
	}
	return false;
}

static void need_command(struct config_reader *r, char *const *words,
			 const struct json_value *v, const char *path)
{
	struct buf text = { 0 };

	if (may_start(r, words))
		return;
	for (size_t i = 0; words[i]; i++)
		buf_printf(&text, "%s%s", i ? " " : "", words[i]);
	config_complain(r->c, r->f, v, path, "this dashboard does not start '%.200s', only: %s ("
			OPTION ")", text.len ? text.data : "", all_commands(r));
	buf_release(&text);
}

static void need_word(struct config_reader *r, const char *word, const struct json_value *v,
		      const char *path)
{
	char *words[] = { arena_text(r->a, str_of(word)), NULL };

	need_command(r, words, v, path);
}

static void refuse(struct config_reader *r, const struct json_value *v, const char *path)
{
	config_complain(r->c, r->f, v, path, "refused, because it could start a program or write a "
			"file and this dashboard starts only: %s (" OPTION ")", all_commands(r));
}

/* ---- servers ---- */

static void check_env(struct config_reader *r, const struct json_value *env, const char *path)
{
	const struct config_bounds *b = r->c->bounds;

	for (size_t i = 0; env && env->kind == JSON_OBJECT && i < env->count; i++)
		if (!is_listed(b->variables, b->n_variables, env->key[i]))
			config_complain_key(r->c, r->f, &env->item[i],
					    config_path(r, path, env->key[i]), "refused, because a "
					    "variable could make a program start another one; those "
					    "of dashboard --launch-env may be set");
}

/* Numbers and true or false, alone or in lists and objects, name neither programs nor files. */
static bool is_plain(const struct json_value *v)
{
	if (v->kind == JSON_STRING)
		return false;
	if (v->kind == JSON_ARRAY || v->kind == JSON_OBJECT)
		for (size_t i = 0; i < v->count; i++)
			if (!is_plain(&v->item[i]))
				return false;
	return true;
}

/* A text, or a list of them, that no program takes for an option of its own. */
static bool is_value(const struct json_value *v)
{
	if (v->kind == JSON_ARRAY) {
		for (size_t i = 0; i < v->count; i++)
			if (v->item[i].kind == JSON_ARRAY || !is_value(&v->item[i]))
				return false;
		return true;
	}
	if (v->kind == JSON_STRING)
		return !v->text.n || *v->text.p != '-';
	return v->kind != JSON_OBJECT;
}

static bool is_word_of(struct str rest, const struct json_value *v)
{
	while (v->kind == JSON_STRING && rest.n)
		if (str_eq(str_cut(&rest, ' '), v->text))
			return true;
	return false;
}

/* An argument of a server, whose value may be a text. */
static bool is_harmless(const struct config_reader *r, const struct experiment_server *s,
			struct str key, const struct json_value *v)
{
	static const char *const names[] = {
		"model", "tokenizer", "served_model_name", "revision", "tokenizer_revision",
	};
	const struct engine_arg *arg = engine_arg_find(key);
	const struct opt *row = s->is_sim ? config_row(r->know->sim, key) : NULL;

	if (!is_value(v))
		return false;
	if (row && row->kind != OPT_JSON && !(row->kind == OPT_TEXT && row->arg &&
					      (strcmp(row->arg, "FILE") == 0 ||
					       strcmp(row->arg, "PATH") == 0 ||
					       strcmp(row->arg, "JSON") == 0)))
		return true;
	if (arg && s->is_vllm && (arg->kind == ENGINE_INT || arg->kind == ENGINE_HUMAN ||
				  arg->kind == ENGINE_REAL || *arg->choices ||
				  is_word_of(str_of(arg->known ? arg->known : ""), v)))
		return true;
	return is_listed(names, sizeof(names) / sizeof(*names), key);
}

/* trust_remote_code, trust-remote-code: a model's own program would be run. */
static bool is_trusting(struct str key)
{
	return key.n >= 5 && strncasecmp(key.p, "trust", 5) == 0;
}

static void check_server(struct config_reader *r, const struct json_value *tree,
			 const char *section, const struct experiment_server *s)
{
	const struct json_value *container = config_get(tree, "container");
	const struct json_value *extra = config_get(tree, "extra_args"), *v;

	if (!s->url && mode_is_served(r->x->mode)) {
		v = config_get(tree, "command");
		need_command(r, s->command, v ? v : tree, config_path(r, section, STR("command")));
	}
	if (container) {
		need_word(r, arena_text(r->a, json_text(json_get(container, "runtime"),
							STR("docker"))),
			  container, config_path(r, section, STR("container")));
		check_env(r, config_get(container, "env"),
			  config_path(r, section, STR("container.env")));
	}
	check_env(r, config_get(tree, "env"), config_path(r, section, STR("env")));
	if (extra && !is_plain(extra))
		refuse(r, extra, config_path(r, section, STR("extra_args")));
	v = config_get(tree, "host");
	if (v && !is_value(v))
		refuse(r, v, config_path(r, section, STR("host")));
	for (size_t i = 0; i < s->args->count; i++) {
		struct str key = s->args->key[i];

		v = &s->args->item[i];
		if (is_trusting(key) ? v->kind != JSON_FALSE :
		    !is_plain(v) && !is_harmless(r, s, key, v))
			refuse(r, v, config_path(r, section, key));
	}
}

/* ---- the rest ---- */

/* Keys of a benchmark by which something is started or written. */
static void check_bench(struct config_reader *r, const struct json_value *bench)
{
	static const char *const refused[] = { "record", "dump_workload", "worker_log", "nsight" };
	const struct json_value *python = config_get(bench, "python");
	const struct json_value *worker = config_get(bench, "worker_cmd");
	bool is_sim = r->x->n_servers && config_is_sim(r->x->server[0].command);
	char **words;

	for (size_t i = 0; i < sizeof(refused) / sizeof(*refused); i++)
		if (config_get(bench, refused[i]))
			refuse(r, config_get(bench, refused[i]),
			       config_path(r, "benchmark", str_of(refused[i])));
	if (json_bool(config_get(bench, "trust_remote_code"), false) && !mode_is_served(r->x->mode))
		refuse(r, config_get(bench, "trust_remote_code"), "benchmark.trust_remote_code");
	if (python && python->kind == JSON_STRING)
		need_word(r, python->text.p, python, "benchmark.python");
	if (worker && worker->kind == JSON_STRING &&
	    words_split(worker->text, r->a, &words, NULL, NULL) == 0)
		need_command(r, words, worker, "benchmark.worker_cmd");
	if (!mode_is_served(r->x->mode))
		need_word(r, is_sim ? "sim" : "worker", config_get(bench, "mode"), "benchmark.mode");
}

static void check_outputs(struct config_reader *r, const struct json_value *tree)
{
	static const char *const keys[] = { "path", "folder", "upload" };
	const struct json_value *output = config_get(tree, "output");
	const struct json_value *profiling = config_get(tree, "profiling");

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (config_get(output, keys[i]))
			refuse(r, config_get(output, keys[i]),
			       config_path(r, "output", str_of(keys[i])));
	if (config_get(profiling, "dir"))
		refuse(r, config_get(profiling, "dir"), "profiling.dir");
	if (r->x->profiling.is_enabled && strcmp(r->x->profiling.tool, "nsys") == 0)
		need_word(r, "nsys", config_get(profiling, "tool"), "profiling.tool");
}

void config_bounds_check(struct config_reader *r, const struct json_value *tree)
{
	const struct json_value *one = config_get(tree, "server");
	const struct json_value *list = config_get(tree, "servers");

	if (!r->c->bounds || !r->c->bounds->n_commands)
		return;
	for (size_t i = 0; i < r->x->n_servers; i++)
		check_server(r, one ? one : &list->item[i],
			     one ? "server" : arena_printf(r->a, "servers.%zu", i),
			     &r->x->server[i]);
	check_bench(r, config_get(tree, "benchmark"));
	check_outputs(r, tree);
}
