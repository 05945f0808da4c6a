/* SPDX-License-Identifier: Apache-2.0 */
/* profiling.c - see profiling.h: what a server and the load are told. */
#include "experiment/profiling.h"

#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "engine/args.h"
#include "json/write.h"
#include "proc/tool.h"

#define VERSION_TIMEOUT_S 120 /* engines import much before they tell it */
#define LONG_RPC "VLLM_RPC_TIMEOUT"

/* ---- the engine's version ---- */

/* The last word that is a version, in what a program printed. */
static unsigned version_in(struct str text)
{
	unsigned found = 0, here;

	while (text.n) {
		struct str line = str_cut(&text, '\n');

		while (line.n) {
			struct str word = str_trim(str_cut(&line, ' '));
			char one[64];

			if (!word.n || word.n >= sizeof(one))
				continue;
			memcpy(one, word.p, word.n);
			one[word.n] = 0;
			here = engine_version(one);
			found = here ? here : found;
		}
	}
	return found;
}

unsigned profiling_version(char *const *command)
{
	static const char script[] = "import importlib.metadata as m; print(m.version('vllm'))";
	const char *argv[] = { NULL, NULL, NULL, NULL };
	struct server_address where;
	struct buf out = { 0 }, errors = { 0 };
	unsigned version = 0;

	if (!command || !command[0] || server_address(command, &where, NULL) < 0 ||
	    where.kind != SERVER_VLLM)
		return 0;
	argv[0] = command[0];
	if (command[1] && strcmp(command[1], "-m") == 0) {
		argv[1] = "-c";
		argv[2] = script;
	} else if (str_ends(str_of(command[0]), STR("vllm"))) {
		argv[1] = "--version";
	} else {
		return 0;
	}
	if (tool_run(argv, (struct str){ 0 }, VERSION_TIMEOUT_S, &out, &errors, NULL) == 0)
		version = version_in(buf_str(&out));
	buf_release(&out);
	buf_release(&errors);
	return version;
}

/* ---- the folder ---- */

static const char *env_value(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

/* "traces", as the process would resolve it now. */
static const char *absolute(const char *path, struct arena *a)
{
	char here[PATH_MAX];

	if (path[0] == '/' || !getcwd(here, sizeof(here)))
		return arena_printf(a, "%s", path);
	return arena_printf(a, "%s/%s", here, path);
}

const char *profiling_own_folder(const struct experiment *x, struct arena *a)
{
	return absolute(arena_printf(a, "%s/traces", x->output.folder ? x->output.folder : "."), a);
}

const char *profiling_folder(const struct experiment *x, struct arena *a)
{
	const struct experiment_server *s = x->n_servers ? &x->server[x->serving] : NULL;
	const char *by_env = s ? env_value(s->env, "VLLM_TORCH_PROFILER_DIR") : NULL;
	struct str said = { 0 };

	if (s && s->args)
		said = json_text(json_get(json_get(s->args, "profiler_config"),
					  "torch_profiler_dir"), said);
	if (said.n)
		return absolute(arena_text(a, said), a);
	if (by_env && *by_env)
		return absolute(by_env, a);
	if (x->profiling.dir && x->profiling.dir[0])
		return absolute(x->profiling.dir, a);
	return profiling_own_folder(x, a);
}

/* ---- words ---- */

/* A list in the making, with room for a few more than were given. */
struct list {
	char **word;
	size_t n;
	struct arena *arena;
};

#define LIST_MORE 12

static struct list list_of(char *const *given, struct arena *a)
{
	struct list l = { .n = words_count(given), .arena = a };

	l.word = arena_alloc(a, (l.n + LIST_MORE + 1) * sizeof(*l.word));
	if (l.n)
		memcpy(l.word, given, l.n * sizeof(*l.word));
	return l;
}

static void list_add(struct list *l, const char *text)
{
	l->word[l->n++] = arena_printf(l->arena, "%s", text);
	l->word[l->n] = NULL;
}

static void list_add_before(struct list *l, const char *const *words)
{
	size_t n = 0;

	while (words[n])
		n++;
	memmove(l->word + n, l->word, (l->n + 1) * sizeof(*l->word));
	for (size_t i = 0; i < n; i++)
		l->word[i] = arena_printf(l->arena, "%s", words[i]);
	l->n += n;
}

/* Unless the configuration has it. */
static void env_add(struct list *env, const char *name, const char *value)
{
	if (!env_value(env->word, name))
		env->word[env->n++] = arena_printf(env->arena, "%s=%s", name, value);
	env->word[env->n] = NULL;
}

static bool is_nsys(const struct experiment *x)
{
	return x->profiling.tool && strcmp(x->profiling.tool, "nsys") == 0;
}

static bool takes_config(unsigned version)
{
	return engine_arg_is_in(engine_arg_find(STR("profiler-config")), version);
}

static const char *config_text(const struct experiment *x, const char *dir, struct arena *a)
{
	struct buf out = { 0 };
	struct json_writer w = json_writer(&out);
	const char *text;

	json_begin_object(&w);
	json_member_text(&w, "profiler", is_nsys(x) ? "cuda" : "torch");
	if (!is_nsys(x))
		json_member_text(&w, "torch_profiler_dir", dir);
	json_end_object(&w);
	text = arena_text(a, buf_str(&out));
	buf_release(&out);
	return text;
}

static bool has_own_config(char *const *argv, char *const *env, struct arena *a)
{
	return engine_argv_text(argv, "profiler-config.profiler", a) ||
	       engine_argv_text(argv, "profiler-config", a) ||
	       env_value(env, "VLLM_TORCH_PROFILER_DIR") ||
	       env_value(env, "VLLM_TORCH_CUDA_PROFILE");
}

/* What vLLM, or who takes its words, is told. */
static void tell_vllm(const struct experiment *x, const char *dir, unsigned version,
		      struct list *argv, struct list *env)
{
	char ms[32];

	if (!has_own_config(argv->word, env->word, argv->arena)) {
		if (takes_config(version)) {
			list_add(argv, "--profiler-config");
			list_add(argv, config_text(x, dir, argv->arena));
		} else if (is_nsys(x)) {
			env_add(env, "VLLM_TORCH_CUDA_PROFILE", "1");
		} else {
			env_add(env, "VLLM_TORCH_PROFILER_DIR", dir);
		}
	}
	/* The front end gives up on the engine, which is busy writing, after ten seconds. */
	snprintf(ms, sizeof(ms), "%.0f", x->profiling.stop_timeout_s * 1e3);
	env_add(env, LONG_RPC, ms);
}

static int wrap_in_nsys(const struct experiment *x, const struct experiment_server *s,
			const char *dir, struct list *argv, struct list *env, struct err *e)
{
	const char *report = arena_printf(argv->arena, "%s/%s", dir, s->name);
	const char *const words[] = {
		"nsys", "profile", "--trace-fork-before-exec=true", "--cuda-graph-trace=node",
		"--capture-range=cudaProfilerApi", "--capture-range-end=repeat",
		"--force-overwrite=true", "-o", report, NULL,
	};

	(void)x;
	if (s->container)
		return err_set(e, ERR_USAGE, "profiling.tool: nsys cannot watch a server in a "
			       "container from outside; use torch, or nsys as its entrypoint");
	if (!tool_exists("nsys"))
		return err_set(e, ERR_USAGE, "profiling.tool: there is no nsys (Nsight Systems) in "
			       "PATH; expected it, or tool: torch");
	list_add_before(argv, words);
	env_add(env, "VLLM_WORKER_MULTIPROC_METHOD", "spawn");
	return 0;
}

int profiling_words(const struct experiment *x, const struct experiment_server *s,
		    const char *dir, unsigned version, char *const *argv, char *const *env,
		    struct arena *a, struct profiling_words *out, struct buf *notes,
		    struct err *e)
{
	struct list words = list_of(argv, a), lines = list_of(env, a);
	struct server_address where;

	*out = (struct profiling_words){ words.word, lines.word };
	if (!x->profiling.is_enabled || s->url || !role_has_engine(s->role))
		return 0;
	if (server_address(argv, &where, e) < 0 ||
	    file_mkdirs(dir, e) < 0)
		return err_wrap(e, "profiling");
	if (where.kind == SERVER_VLLM || where.kind == SERVER_SIM)
		tell_vllm(x, dir, version, &words, &lines);
	else if (where.kind == SERVER_SGLANG)
		env_add(&lines, "SGLANG_TORCH_PROFILER_DIR", dir);
	else
		buf_printf(notes, "profiling: how server %s is told where traces go is not known; its "
			   "own words must say %s\n", s->name, dir);
	if (is_nsys(x) && wrap_in_nsys(x, s, dir, &words, &lines, e) < 0)
		return -1;
	*out = (struct profiling_words){ words.word, lines.word };
	return 0;
}

int profiling_offline(const struct experiment *x, const char *dir, unsigned version,
		      char *const *argv, struct arena *a, char *const **out, struct buf *notes,
		      struct err *e)
{
	struct list words = list_of(argv, a);

	*out = words.word;
	if (!x->profiling.is_enabled)
		return 0;
	if (x->mode == MODE_STARTUP) {
		buf_add_text(notes, "profiling has no effect on benchmark.mode startup: nothing runs "
				    "that could be profiled\n");
		return 0;
	}
	if (file_mkdirs(dir, e) < 0)
		return err_wrap(e, "profiling");
	list_add(&words, "--profile");
	if (is_nsys(x)) {
		list_add(&words, "--nsight");
		list_add(&words, arena_printf(a, "%s/%s", dir, experiment_mode_name(x->mode)));
	}
	if (takes_config(version) && !has_own_config(words.word, NULL, a)) {
		list_add(&words, "--profiler-config");
		list_add(&words, config_text(x, dir, a));
	} else if (!takes_config(version)) {
		buf_printf(notes, "profiling: this engine's version reads VLLM_TORCH_PROFILER_DIR, which "
			   "must be in the environment: export it as %s\n", dir);
	}
	*out = words.word;
	return 0;
}

/* ---- load ---- */

void profiling_serve(const struct experiment *x, const struct role_at *at, struct serve_opts *o,
		     struct arena *a, struct buf *notes)
{
	const struct experiment_profiling *p = &x->profiling;
	size_t n = 0;

	if (!p->is_enabled)
		return;
	o->profile = true;
	o->profile_from_s = p->delay_s;
	o->profile_for_s = p->duration_s;
	o->profile_stop_timeout_s = p->stop_timeout_s;
	o->profile_urls = (struct opt_list){ 0 };
	if (x->server[x->serving].role == ROLE_PROXY) {
		const char **url = arena_alloc(a, (x->n_servers + 1) * sizeof(*url));

		for (size_t i = 0; i < x->n_servers; i++)
			if (role_has_engine(x->server[i].role))
				url[n++] = role_url(&at[i], a);
		o->profile_urls = (struct opt_list){ .v = url, .n = n, .is_set = n > 0 };
	}
	if (p->duration_s <= 0 && o->num_prompts > PROFILING_PROMPTS_MANY)
		buf_printf(notes, "profiling: %lld prompts make a trace that is hard to open; %d or fewer, "
			   "or profiling.duration_s, keep it small\n", (long long)o->num_prompts,
			   PROFILING_PROMPTS_MANY);
}
