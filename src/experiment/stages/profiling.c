/* SPDX-License-Identifier: Apache-2.0 */
/* profiling.c - see run.h: the profiler's options for servers and for the load. */
#include "experiment/stages/run.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "experiment/stages/run_internal.h"
#include "host/engine/args.h"
#include "host/proc/tool.h"
#include "out/report/system.h"

#define VERSION_TIMEOUT_S 120 /* engines import much before they tell it */
#define LONG_RPC "VLLM_RPC_TIMEOUT"

/* ---- the engine's version ---- */

/* The last word of a program's output that is a version. */
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

/* "traces" as an absolute path, resolved in this process. */
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
	const char *by_env = s ? environment_variable(s->env, STR("VLLM_TORCH_PROFILER_DIR")) : NULL;
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

static struct word_list list_of(char *const *given, struct arena *a)
{
	struct word_list l = { .arena = a, .v = arena_alloc(a, sizeof(char *)) };

	for (; given && *given; given++)
		words_add(&l, *given);
	return l;
}

static void list_add(struct word_list *l, const char *text)
{
	words_add(l, arena_text(l->arena, str_of(text)));
}

/* Adds the variable unless the configuration has it. */
static void env_add(struct word_list *env, const char *name, const char *value)
{
	if (!environment_variable(env->v, str_of(name)))
		words_add(env, arena_printf(env->arena, "%s=%s", name, value));
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
	       environment_variable(env, STR("VLLM_TORCH_PROFILER_DIR")) ||
	       environment_variable(env, STR("VLLM_TORCH_CUDA_PROFILE"));
}

/* Adds the options for vLLM, or a server with the same ones. */
static void tell_vllm(const struct experiment *x, const char *dir, unsigned version,
		      struct word_list *argv, struct word_list *env)
{
	char ms[32];

	if (!has_own_config(argv->v, env->v, argv->arena)) {
		if (takes_config(version)) {
			list_add(argv, "--profiler-config");
			list_add(argv, config_text(x, dir, argv->arena));
		} else if (is_nsys(x)) {
			env_add(env, "VLLM_TORCH_CUDA_PROFILE", "1");
		} else {
			env_add(env, "VLLM_TORCH_PROFILER_DIR", dir);
		}
	}
	/* The front end otherwise gives up after ten seconds on an engine that is busy writing. */
	snprintf(ms, sizeof(ms), "%.0f", x->profiling.stop_timeout_s * 1e3);
	env_add(env, LONG_RPC, ms);
}

static int wrap_in_nsys(const struct experiment_server *s, const char *dir,
			struct word_list *argv, struct word_list *env, struct err *e)
{
	struct word_list wrapped = { .arena = argv->arena };
	const char *report = arena_printf(argv->arena, "%s/%s", dir, s->name);
	const char *const words[] = {
		"nsys", "profile", "--trace-fork-before-exec=true", "--cuda-graph-trace=node",
		"--capture-range=cudaProfilerApi", "--capture-range-end=repeat",
		"--force-overwrite=true", "-o", report, NULL,
	};

	if (s->container)
		return err_set(e, ERR_USAGE, "profiling.tool: nsys cannot watch a server in a "
			       "container from outside; use torch, or nsys as its entrypoint");
	if (!tool_exists("nsys"))
		return err_set(e, ERR_USAGE, "profiling.tool: there is no nsys (Nsight Systems) in "
			       "PATH; expected it, or tool: torch");
	for (size_t i = 0; words[i]; i++)
		list_add(&wrapped, words[i]);
	for (char **word = argv->v; *word; word++)
		words_add(&wrapped, *word);
	*argv = wrapped;
	env_add(env, "VLLM_WORKER_MULTIPROC_METHOD", "spawn");
	return 0;
}

int profiling_words(const struct experiment *x, const struct experiment_server *s,
		    const char *dir, unsigned version, char *const *argv, char *const *env,
		    struct arena *a, struct profiling_words *out, struct buf *notes,
		    struct err *e)
{
	struct word_list words = list_of(argv, a), lines = list_of(env, a);
	struct server_address where;

	*out = (struct profiling_words){ words.v, lines.v };
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
		buf_printf(notes, "profiling: it is not known how server %s takes the folder of traces; its "
			   "own arguments must name %s\n", s->name, dir);
	if (is_nsys(x) && wrap_in_nsys(s, dir, &words, &lines, e) < 0)
		return -1;
	*out = (struct profiling_words){ words.v, lines.v };
	return 0;
}

int profiling_offline(const struct experiment *x, const char *dir, unsigned version,
		      char *const *argv, struct arena *a, char *const **out, struct buf *notes,
		      struct err *e)
{
	struct word_list words = list_of(argv, a);

	*out = words.v;
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
	if (takes_config(version) && !has_own_config(words.v, NULL, a)) {
		list_add(&words, "--profiler-config");
		list_add(&words, config_text(x, dir, a));
	} else if (!takes_config(version)) {
		buf_printf(notes, "profiling: this engine's version reads VLLM_TORCH_PROFILER_DIR, which "
			   "must be in the environment: export it as %s\n", dir);
	}
	*out = words.v;
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

/* ---- the files that a profiler left ---- */

#define LOOK_NS 100000000
#define QUIET_NS 1000000000     /* a file unchanged for this long is complete */
#define NONE_WAIT_NS 10000000000 /* for the first byte of the first trace */
#define STATS_TIMEOUT_S 600

/* Traces are in the folder, or one below it. */
struct trace { char *path; uint64_t bytes; };
struct traces {
	struct trace *v;
	size_t n;
	uint64_t bytes;
};

static void traces_release(struct traces *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].path);
	free(t->v);
	*t = (struct traces){ 0 };
}

static int64_t changed_ns(const struct stat *st)
{
	return (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

static bool is_among(const char *path, char *const *list)
{
	for (; list && *list; list++)
		if (strcmp(path, *list) == 0)
			return true;
	return false;
}

static void traces_look(const char *dir, const struct trace_place *place, int depth,
			struct traces *out)
{
	struct dirent *entry;
	DIR *d = opendir(dir);

	while (d && out->n < TRACES_MAX && (entry = readdir(d))) {
		char *path;
		struct stat st;

		if (entry->d_name[0] == '.')
			continue;
		path = file_join(dir, entry->d_name);
		if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && depth > 0) {
			traces_look(path, place, depth - 1, out);
		} else if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
			   /* File times have the resolution of the clock tick. */
			   changed_ns(&st) >= place->since_real_ns - LOOK_NS &&
			   !is_among(path, place->earlier)) {
			out->v = mem_grow(out->v, out->n + 1, sizeof(*out->v));
			out->v[out->n++] = (struct trace){ path, (uint64_t)st.st_size };
			out->bytes += (uint64_t)st.st_size;
			continue;
		}
		free(path);
	}
	if (d)
		closedir(d);
}

static void traces_find(const struct trace_place *place, struct traces *out)
{
	traces_release(out);
	traces_look(place->dir, place, 1, out);
}

char *const *profiling_earlier(const char *dir, struct arena *a)
{
	const struct trace_place all = { .dir = dir };
	struct traces t = { 0 };
	char **list;

	traces_find(&all, &t);
	list = arena_alloc(a, (t.n + 1) * sizeof(*list));
	for (size_t i = 0; i < t.n; i++)
		list[i] = arena_text(a, str_of(t.v[i].path));
	traces_release(&t);
	return list;
}

bool profiling_settle(const struct experiment *x, const struct trace_place *place,
		      const atomic_bool *cancel, struct buf *notes)
{
	int64_t begin = clock_mono_ns(), changed = begin, now = begin;
	int64_t most = (int64_t)(x->profiling.stop_timeout_s * 1e9);
	struct traces t = { 0 };
	uint64_t bytes = 0;
	bool is_quiet = false;
	size_t n = 0;

	/* Our servers were given this folder: if it does not exist, nothing is being written. */
	if (!file_is_dir(place->dir))
		return false;
	while (!(cancel && atomic_load(cancel))) {
		traces_find(place, &t);
		now = clock_mono_ns();
		if (t.n != n || t.bytes != bytes)
			changed = now;
		n = t.n;
		bytes = t.bytes;
		is_quiet = bytes && now - changed >= QUIET_NS;
		if (is_quiet || now - begin > most || (!bytes && now - begin > NONE_WAIT_NS))
			break;
		nanosleep(&(struct timespec){ 0, LOOK_NS }, NULL);
	}
	if (bytes && !is_quiet)
		buf_printf(notes, "profiling: traces in %s still grew after %g s "
			   "(profiling.stop_timeout_s); they may be cut\n", place->dir,
			   x->profiling.stop_timeout_s);
	traces_release(&t);
	return is_quiet;
}

/* ---- after the servers ---- */

static void save_stats(const char *report, struct buf *notes)
{
	const char *const argv[] = { "nsys", "stats", "--format", "table", "--force-export=true",
				     report, NULL };
	struct buf table = { 0 }, errors = { 0 }, path = { 0 };
	struct err e = { 0 };
	int rc = tool_run(argv, (struct str){ 0 }, STATS_TIMEOUT_S, &table, &errors, &e);

	buf_printf(&path, "%s.stats.txt", report);
	if (rc > 0)
		err_set(&e, ERR_RUN, "exit status %d", rc);
	if (rc == 0)
		rc = file_write_atomic(path.data, buf_str(&table), &e);
	if (rc)
		buf_printf(notes, "profiling: no table of %s by nsys stats: %s\n", report, e.text);
	buf_release(&table);
	buf_release(&errors);
	buf_release(&path);
}

static int copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY | O_CLOEXEC), out = -1, rc = -1;
	struct stat st;

	if (in >= 0 && fstat(in, &st) == 0)
		out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (out >= 0) {
		off_t left = st.st_size;
		ssize_t n = 1;

		while (left > 0 && (n = sendfile(out, in, NULL, (size_t)left)) > 0)
			left -= n;
		rc = left == 0 && n >= 0 ? 0 : -1;
	}
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) < 0)
		rc = -1;
	return rc;
}

/* The name in the experiment's own folder, or path if it cannot be linked or copied there. */
static const char *bring(const char *path, const struct trace_place *place, const char *folder,
			 struct arena *a, struct buf *notes)
{
	size_t n = strlen(place->dir);
	char *flat = arena_printf(a, "%s", strncmp(path, place->dir, n) == 0 ? path + n + 1 : path);
	const char *to;

	for (char *c = flat; *c; c++)
		if (*c == '/')
			*c = '-';
	to = arena_printf(a, "%s/%s", folder, flat);
	if (place->is_others && rename(path, to) == 0)
		return to;
	unlink(to);
	if (link(path, to) == 0 || copy_file(path, to) == 0) {
		if (place->is_others)
			unlink(path);
		return to;
	}
	buf_printf(notes, "profiling: cannot copy %s to %s: %s\n", path, folder, strerror(errno));
	return path;
}

static int by_size(const void *a, const void *b)
{
	const struct outcome_trace *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	return strcmp(x->path, y->path);
}

/* Whether both are the same existing folder. */
static bool is_same_folder(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

void profiling_collect(const struct experiment *x, const struct trace_place *place,
		       struct outcome *out, struct buf *notes)
{
	struct arena *a = &out->arena;
	const char *folder = profiling_own_folder(x, a);
	struct traces t = { 0 };
	bool is_beside;

	traces_find(place, &t);
	for (size_t i = 0; i < t.n; i++)
		if (str_ends(str_of(t.v[i].path), STR(".nsys-rep")))
			save_stats(t.v[i].path, notes);
	traces_find(place, &t);
	if (t.n == 0)
		buf_printf(notes, "profiling: the profiler left no file in %s\n", place->dir);
	is_beside = is_same_folder(place->dir, folder) || t.n == 0 || file_mkdirs(folder, NULL) < 0;
	out->trace = arena_alloc(a, (t.n + 1) * sizeof(*out->trace));
	out->n_traces = t.n;
	for (size_t i = 0; i < t.n; i++) {
		const char *path = is_beside ? arena_printf(a, "%s", t.v[i].path) :
					       bring(t.v[i].path, place, folder, a, notes);

		out->trace[i] = (struct outcome_trace){ path, t.v[i].bytes };
	}
	if (t.n)
		qsort(out->trace, t.n, sizeof(*out->trace), by_size);
	traces_release(&t);
}

/*
 * Watches the machine for an engine without a server.
 *
 * The load is the time between the first and the last progress of the measured batch or iterations;
 * loading and warming up come before it. Of start-ups everything is measured. The engine's program
 * descends from this process, so the watched processes are this one and all below it.
 */

void watch_begin_offline(struct run *r, struct run_watch *w)
{
	const struct experiment_telemetry *t = &r->x->telemetry;
	const struct allocation *got = &r->held->allocation;
	const struct system_process self = { getpid(), "engine" };
	const char **gpu = arena_alloc(&r->held->arena, (got->n_gpus + 1) * sizeof(*gpu));
	struct system_opts o = {
		.gpu = t->gpu && got->n_gpus, .host = t->host, .process = t->process,
		.interval_ns = (int64_t)(t->interval_s * 1e9), .gpus = gpu,
		.processes = &self, .n_processes = 1,
	};

	*w = (struct run_watch){ 0 };
	if (!t->is_enabled || !(o.gpu || o.host || o.process))
		return;
	for (size_t i = 0; i < got->n_servers; i++)
		for (size_t k = 0; k < got->server[i].n_gpus && o.n_gpus < got->n_gpus; k++)
			gpu[o.n_gpus++] = got->server[i].gpu[k].uuid;
	w->began_ns = clock_real_ns();
	w->system = system_begin(&o);
}

void watch_progress(struct run_watch *w, const char *what)
{
	static const char *const measured[] = { "Processed prompts", "Bench iterations" };

	for (size_t i = 0; i < sizeof(measured) / sizeof(*measured); i++)
		if (strcmp(what, measured[i]) == 0) {
			w->to_ns = clock_real_ns();
			w->from_ns = w->from_ns ? w->from_ns : w->to_ns;
		}
}

static double number(struct json_slice object, const char *key)
{
	struct json_slice v;
	double n;

	return json_member(object, key, &v) && json_to_f64(v, &n) ? n : NAN;
}

/*
 * Tokens in this time at the rate of a set of requests; other modes have no such rate. The first
 * progress comes a little after the beginning, and there may have been several runs.
 */
static struct metrics_tokens tokens_of(struct str result, double seconds)
{
	struct json_scan scan = { .text = result };
	struct metrics_tokens tokens = { NAN, NAN };
	struct json_slice object, ours;
	double elapsed_s;

	if (!result.n || json_next(&scan, &object, NULL) < 0 ||
	    !json_member(object, "profllm", &ours))
		return tokens;
	elapsed_s = number(object, "elapsed_time");
	tokens.input = number(ours, "total_prompt_tokens") / elapsed_s * seconds;
	tokens.output = number(ours, "total_output_tokens") / elapsed_s * seconds;
	return tokens;
}

void watch_end_offline(struct run *r, struct run_watch *w)
{
	struct metrics_tokens tokens;
	struct buf json = { 0 };
	struct json_writer out = json_writer(&json);
	struct record record = { 0 };
	struct metrics_system m;
	struct arena arena = { 0 };

	if (!w->system)
		return;
	system_end(w->system, &record);
	record.start_ns = w->from_ns ? w->from_ns : w->began_ns;
	record.stop_ns = w->to_ns > record.start_ns ? w->to_ns : clock_real_ns();
	tokens = tokens_of(r->out->result, (double)(record.stop_ns - record.start_ns) / 1e9);
	metrics_system(&m, &record, &tokens, &arena);
	if (m.is_reported) {
		report_system_json(&m, &out);
		r->out->system = run_keep(r, &json);
	}
	buf_release(&json);
	record_release(&record);
	arena_release(&arena);
}
