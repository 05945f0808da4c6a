/* SPDX-License-Identifier: Apache-2.0 */
/* offline_find.c - see offline_find.h. */
#include "run/offline_find.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/words.h"
#include "engine/args.h"
#include "proc/program.h"
#include "proc/tool.h"
#include "run/offline_opts.h"

#define SCRIPT_BYTES 4096 /* enough for a first line */
#define PROGRAM_WORDS_MAX 16

static const struct known {
	const char *backend, *file;
	bool is_python;
} known[] = {
	{ "vllm", "vllm_worker.py", true },
	{ "vllm-chat", "vllm_worker.py", true },
	{ "hf", "hf_worker.py", true },
	{ "llama", "llama_worker", false },
	{ "hash", "hash_worker.py", true },
};

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value && value[0] ? value : NULL;
}

/* ---- files that come with us ---- */

static char *own_path(struct arena *a)
{
	struct buf path = { 0 };
	char *text;

	program_path(&path, NULL);
	text = arena_text(a, buf_str(&path));
	buf_release(&path);
	return text;
}

static char *find_file(const char *name, struct arena *a, struct err *e)
{
	char *own = own_path(a), *slash = strrchr(own, '/');
	const char *given = variable("PROFLLM_WORKERS");
	int folder = slash ? (int)(slash - own) : 0;
	char *place[] = {
		given ? arena_printf(a, "%s/%s", given, name) : NULL,
		arena_printf(a, "%.*s/workers/%s", folder, own, name),
		arena_printf(a, "%.*s/../libexec/profllm/workers/%s", folder, own, name),
	};

	for (int i = given ? 0 : 1; i < (given ? 1 : 3); i++)
		if (file_exists(place[i]))
			return place[i];
	if (given)
		err_set(e, ERR_USAGE, "PROFLLM_WORKERS names no folder with %s: %s", name, given);
	else
		err_set(e, ERR_USAGE, "the worker %s is neither %s nor %s; PROFLLM_WORKERS may name "
			"its folder, --worker-cmd another one", name, place[1], place[2]);
	return NULL;
}

/* ---- Python ---- */

struct str offline_interpreter(struct str script)
{
	struct str line = str_cut(&script, '\n'), word, path, rest;
	const char *base;

	if (!str_starts(line, STR("#!")))
		return (struct str){ 0 };
	line = str_trim((struct str){ line.p + 2, line.n - 2 });
	rest = line;
	path = str_cut(&rest, ' ');
	word = path;
	/* "#!/usr/bin/env python3": it is sought in PATH. */
	if (str_ends(path, STR("/env")))
		path = word = str_trim(rest);
	base = word.n ? memrchr(word.p, '/', word.n) : NULL;
	if (base)
		word = (struct str){ base + 1, (size_t)(word.p + word.n - base - 1) };
	return str_starts(word, STR("python")) ? path : (struct str){ 0 };
}

static const char *python_of_vllm(struct arena *a)
{
	char *path = tool_path("vllm"), text[SCRIPT_BYTES];
	const char *found = NULL;
	struct str script = { text, 0 };
	FILE *f = path ? fopen(path, "rbe") : NULL;

	if (f) {
		script.n = fread(text, 1, sizeof(text), f);
		fclose(f);
		script = offline_interpreter(script);
		if (script.n)
			found = arena_text(a, script);
	}
	free(path);
	return found;
}

static const char *find_python(const struct offline_opts *o, struct arena *a, struct err *e)
{
	const char *given = o->python ? o->python : variable("PROFLLM_PYTHON"), *found;
	const char *folder = variable("VIRTUAL_ENV");
	char *of_env;

	if (given)
		return given;
	of_env = folder ? arena_printf(a, "%s/bin/python3", folder) : NULL;
	if (of_env && access(of_env, X_OK) == 0)
		return of_env;
	found = python_of_vllm(a);
	if (found)
		return found;
	if (tool_exists("python3"))
		return "python3";
	err_set(e, ERR_USAGE, "backend %s needs Python, and there is no python3 in PATH; --python or "
		"PROFLLM_PYTHON may name one", o->backend);
	return NULL;
}

/* ---- the command ---- */

static void add_words(struct offline_program *p, size_t *n, struct arena *a, char *const *more)
{
	size_t count = 0, had = *n;
	char **all;

	while (more[count])
		count++;
	all = arena_alloc(a, (had + count + 1) * sizeof(*all));
	if (had)
		memcpy(all, p->argv, had * sizeof(*all));
	memcpy(all + had, more, count * sizeof(*all));
	p->argv = all;
	*n = had + count;
}

/*
 * With a profiler of CUDA the engine's own starts and stops say what is recorded, otherwise all
 * of it is. Workers are spawned, because what is forked is not followed well.
 */
static int wrap(const struct offline_start *how, struct arena *a, struct offline_program *p,
		size_t *n, struct err *e)
{
	static const char *const words[] = { "nsys", "profile", "--trace-fork-before-exec=true",
					     "--cuda-graph-trace=node" };
	const char *profiler = engine_argv_text(how->engine_argv, "profiler-config.profiler", a);
	char *argv[PROGRAM_WORDS_MAX];
	size_t k = 0;

	if (!tool_exists("nsys"))
		return err_set(e, ERR_USAGE, "--nsight: there is no nsys (Nsight Systems) in PATH");
	for (; k < sizeof(words) / sizeof(*words); k++)
		argv[k] = arena_text(a, str_of(words[k]));
	if (profiler && strcmp(profiler, "cuda") == 0) {
		argv[k++] = arena_text(a, STR("--capture-range=cudaProfilerApi"));
		argv[k++] = arena_text(a, STR("--capture-range-end=repeat"));
	}
	if (how->opts->nsight.n && how->opts->nsight.v[0][0]) {
		argv[k++] = arena_text(a, STR("-o"));
		argv[k++] = arena_text(a, str_of(how->opts->nsight.v[0]));
	}
	argv[k] = NULL;
	add_words(p, n, a, argv);
	p->is_wrapped = true;
	return 0;
}

static int find_known(const struct offline_start *how, struct arena *a, struct offline_program *p,
		      size_t *n, struct err *e)
{
	char *argv[3] = { NULL, NULL, NULL };
	size_t i = 0;

	while (i < sizeof(known) / sizeof(*known) && strcmp(known[i].backend, how->backend) != 0)
		i++;
	if (i == sizeof(known) / sizeof(*known))
		return err_set(e, ERR_USAGE, "--backend %s needs --worker-cmd, the program that drives "
			       "the engine", how->backend);
	if (known[i].is_python) {
		p->python = find_python(how->opts, a, e);
		if (!p->python)
			return -1;
		argv[0] = arena_text(a, str_of(p->python));
	}
	argv[known[i].is_python] = find_file(known[i].file, a, e);
	if (!argv[known[i].is_python])
		return -1;
	add_words(p, n, a, argv);
	return 0;
}

int offline_find(const struct offline_start *how, struct arena *a, struct offline_program *out,
		 struct err *e)
{
	const char *given = how->opts->worker_cmd;
	size_t n = 0, count = 0;
	char **words;

	*out = (struct offline_program){ 0 };
	if (how->opts->nsight.is_set && wrap(how, a, out, &n, e) < 0)
		return -1;
	if (given) {
		if (words_split(str_of(given), a, &words, &count, e) < 0)
			return err_wrap(e, "--worker-cmd");
		if (!count)
			return err_set(e, ERR_USAGE, "--worker-cmd is empty");
		add_words(out, &n, a, words);
		return 0;
	}
	if (strcmp(how->backend, "sim") == 0) {
		char *argv[] = { own_path(a), arena_text(a, STR("sim")),
				 arena_text(a, STR("--engine-worker")), NULL };

		add_words(out, &n, a, argv);
		return 0;
	}
	return find_known(how, a, out, &n, e);
}
