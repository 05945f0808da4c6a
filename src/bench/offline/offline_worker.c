/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_worker.c - see offline.h: the driver for engines in a worker program. Its protocol is
 * docs/guide/adapters.md; answers are checked here, and an invalid one ends the connection.
 */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/offline/offline.h"
#include "bench/offline/offline_internal.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "host/engine/args.h"
#include "host/proc/roster.h"
#include "host/proc/tool.h"
#include "host/worker/worker.h"
#include "input/data/request_keys.h"

#define SCRIPT_BYTES 4096 /* enough for a first line */

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
	/* "#!/usr/bin/env python3": the interpreter is looked for in PATH. */
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
	err_set(e, ERR_USAGE, "backend %s needs Python, and python3 is not in PATH; --python or "
		"PROFLLM_PYTHON may name one", o->backend);
	return NULL;
}

/* ---- the command ---- */

const char *offline_argv_text(char *const *argv, const char *name, struct arena *a)
{
	struct word_list all = { .arena = a };

	for (words_add(&all, (char *)"vllm"); *argv; argv++)
		words_add(&all, *argv);
	return engine_argv_text(all.v, name, a);
}

/*
 * With a CUDA profiler, the engine's own starts and stops choose what is recorded, otherwise
 * everything is. Workers are spawned, because the profiler does not follow forked ones well.
 */
static int wrap(const struct offline_start *how, struct word_list *out, struct err *e)
{
	static const char *const always[] = { "nsys", "profile", "--trace-fork-before-exec=true",
					      "--cuda-graph-trace=node" };
	const char *profiler = offline_argv_text(how->engine_argv, "profiler-config.profiler",
						 out->arena);

	if (!tool_exists("nsys"))
		return err_set(e, ERR_USAGE, "--nsight: nsys (Nsight Systems) is not in PATH");
	for (size_t i = 0; i < sizeof(always) / sizeof(*always); i++)
		words_add(out, (char *)always[i]);
	if (profiler && strcmp(profiler, "cuda") == 0) {
		words_add(out, (char *)"--capture-range=cudaProfilerApi");
		words_add(out, (char *)"--capture-range-end=repeat");
	}
	if (how->opts->nsight.n && how->opts->nsight.v[0][0]) {
		words_add(out, (char *)"-o");
		words_add(out, (char *)how->opts->nsight.v[0]);
	}
	return 0;
}

static int find_known(const struct offline_start *how, struct word_list *out, const char **python,
		      struct err *e)
{
	char *file;
	size_t i = 0;

	while (i < sizeof(known) / sizeof(*known) && strcmp(known[i].backend, how->backend) != 0)
		i++;
	if (i == sizeof(known) / sizeof(*known))
		return err_set(e, ERR_USAGE, "--backend %s needs --worker-cmd, the program that drives "
			       "the engine", how->backend);
	if (known[i].is_python) {
		*python = find_python(how->opts, out->arena, e);
		if (!*python)
			return -1;
		words_add(out, (char *)*python);
	}
	file = find_file(known[i].file, out->arena, e);
	if (!file)
		return -1;
	words_add(out, file);
	return 0;
}

int offline_find(const struct offline_start *how, struct arena *a, struct offline_program *out,
		 struct err *e)
{
	const char *given = how->opts->worker_cmd;
	struct word_list w = { .arena = a };
	size_t count = 0;
	char **words;
	int rc = 0;

	*out = (struct offline_program){ .is_wrapped = how->opts->nsight.is_set };
	if (out->is_wrapped && wrap(how, &w, e) < 0)
		return -1;
	if (given) {
		if (words_split(str_of(given), a, &words, &count, e) < 0)
			return err_wrap(e, "--worker-cmd");
		if (!count)
			return err_set(e, ERR_USAGE, "--worker-cmd is empty");
		while (*words)
			words_add(&w, *words++);
	} else if (strcmp(how->backend, "sim") == 0) {
		words_add(&w, own_path(a));
		words_add(&w, (char *)"sim");
		words_add(&w, (char *)"--engine-worker");
	} else {
		rc = find_known(how, &w, &out->python, e);
	}
	out->argv = w.v;
	return rc;
}

#define LOADING "Loading the engine"
#define NSIGHT_GRACE_S 600 /* it writes its report when the program ends */

struct worker_state {
	struct engine_worker *worker;
	struct arena arena;
	struct offline_hooks hooks;
	const char *backend, *name;
	bool is_async, is_compiled, wants_mm_stats, is_loaded, has_lora, has_priority, has_sampling;
	struct buf args;         /* "args":[...] */
	struct buf members;      /* of the question */
	const char *progress;    /* what progress is called now; NULL: not shown */
	size_t n;                /* requests put */
};

static void on_text(void *self, const char *text)
{
	const struct worker_state *s = self;

	if (s->hooks.warn)
		s->hooks.warn(s->hooks.self, text);
}

static void on_progress(void *self, uint64_t done, uint64_t total)
{
	const struct worker_state *s = self;

	if (s->hooks.progress && s->progress)
		s->hooks.progress(s->hooks.self, s->progress, done, total);
}

static struct json_writer members(struct worker_state *s)
{
	struct json_writer w;

	buf_reset(&s->members);
	s->members.limit = WORKER_FRAME_BYTES_MAX;
	w = json_writer(&s->members);
	w.is_compact = w.is_raw_utf8 = true;
	return w;
}

/* Sends the question, whose members the caller wrote without the outer braces. */
static int call(struct worker_state *s, const char *type, struct worker_reply *r, struct err *e)
{
	struct buf inner = { 0 };

	if (s->members.is_over)
		return err_set(e, ERR_LIMIT, "a request of more than %lu bytes "
					     "(WORKER_FRAME_BYTES_MAX)",
			       (unsigned long)WORKER_FRAME_BYTES_MAX);
	if (s->members.len > 2)
		inner = (struct buf){ .data = s->members.data + 1, .len = s->members.len - 2 };
	return worker_call(s->worker, type, &inner, r, NULL, e);
}

static int call_plain(struct worker_state *s, const char *type, struct worker_reply *r,
		      struct err *e)
{
	buf_reset(&s->members);
	return call(s, type, r, e);
}

/* ---- members of answers ---- */

static int get_clock(struct worker_state *s, const struct worker_reply *r, const char *key,
		     int64_t *out, struct err *e)
{
	struct json_slice v;

	if (json_member(r->body, key, &v) && v.kind == JSON_INT && json_to_i64(v, out))
		return 0;
	return worker_distrust(s->worker, e, "%s is not an integer number of nanoseconds", key);
}

static int get_seconds(struct worker_state *s, struct json_slice from, const char *key, double *out,
		       struct err *e)
{
	struct json_slice v;

	*out = NAN;
	if (!json_member(from, key, &v) || v.kind == JSON_NULL)
		return 0;
	if (json_to_f64(v, out) && isfinite(*out) && *out >= 0)
		return 0;
	return worker_distrust(s->worker, e, "%s is not a number of seconds", key);
}

/* A string of an answer as text in the arena. */
static const char *unescaped(struct worker_state *s, struct json_slice v)
{
	struct buf text = { 0 };
	const char *out;

	json_unescape(&text, v.raw);
	out = arena_text(&s->arena, buf_str(&text));
	buf_release(&text);
	return out;
}

static int get_text(struct worker_state *s, const struct worker_reply *r, const char *key,
		    const char **out, struct err *e)
{
	struct json_slice v;

	if (!json_member(r->body, key, &v) || v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_STRING)
		return worker_distrust(s->worker, e, "%s is not text", key);
	*out = unescaped(s, v);
	return 0;
}

static int get_bool(struct worker_state *s, const struct worker_reply *r, const char *key,
		    bool *out, struct err *e)
{
	struct json_slice v;

	if (!json_member(r->body, key, &v) || v.kind == JSON_NULL)
		return 0;
	if (v.kind != JSON_TRUE && v.kind != JSON_FALSE)
		return worker_distrust(s->worker, e, "%s is neither true nor false", key);
	*out = v.kind == JSON_TRUE;
	return 0;
}

/* ---- start ---- */

static void write_args(struct worker_state *s, char *const *argv)
{
	struct json_writer w = json_writer(&s->args);

	w.is_compact = w.is_raw_utf8 = true;
	json_begin_array(&w);
	for (size_t i = 0; argv && argv[i]; i++)
		json_put_text(&w, argv[i]);
	json_end_array(&w);
}

static void about_hello(struct worker_state *s, struct offline_about *about)
{
	const struct engine_worker *w = s->worker;

	about->engine = worker_hello(w)->engine;
	about->version = worker_hello(w)->version;
	about->has_chat = worker_has(w, "chat");
	about->has_beam = worker_has(w, "beam");
	about->has_encode = worker_has(w, "encode");
	about->has_async = worker_has(w, "async");
	about->has_prequeue = worker_has(w, "prequeue");
	about->has_profile = worker_has(w, "profile");
	about->has_lora = s->has_lora = worker_has(w, "lora");
	about->has_priority = s->has_priority = worker_has(w, "priority");
	about->has_sampling = s->has_sampling = worker_has(w, "sampling");
	about->has_render = worker_has(w, "render");
	about->has_mm_stats = worker_has(w, "mm_stats");
	about->method = strcmp(s->backend, "sim") == 0 ? "simulated" : "in-process";
}

/* A folder holds one file for each kind of start. */
static const char *log_path(const struct offline_start *how, struct arena *a)
{
	const char *path = how->opts->worker_log;

	if (path && file_is_dir(path))
		return arena_printf(a, "%s/%s.log", path, how->log_name ? how->log_name : "worker");
	return path;
}

static void state_free(struct worker_state *s)
{
	buf_release(&s->args);
	buf_release(&s->members);
	arena_release(&s->arena);
	free(s);
}

/* A worker may fail because a package is missing; which program ran it decides what helps. */
static int launch(struct worker_state *s, const struct offline_start *how,
		  const struct offline_program *p, struct err *e)
{
	const struct offline_opts *o = how->opts;
	struct worker_failure why;
	struct word_list env = { .arena = &s->arena };
	double grace_s = o->server_grace;

	for (char *const *word = how->env; word && *word; word++)
		words_add(&env, *word);
	words_add(&env, (char *)"PYTHONUNBUFFERED=1"); /* so that the log is whole when it is killed */
	if (p->is_wrapped && grace_s < NSIGHT_GRACE_S)
		grace_s = NSIGHT_GRACE_S;
	if (worker_start(&(struct worker_opts){
		.name = s->name, .argv = p->argv, .env = env.v,
		.log_path = log_path(how, &s->arena), .show_fd = o->show_log ? STDERR_FILENO : -1,
		.load_s = o->load_timeout, .silence_s = o->worker_timeout, .grace_s = grace_s,
		.hooks = { s, on_text, on_text, on_progress, how->hooks.cancel } },
		&s->worker, &why, e) == 0)
		return 0;
	if (why.fault == WORKER_FAULT_PACKAGE && p->python && s->hooks.warn)
		s->hooks.warn(s->hooks.self, arena_printf(&s->arena,
			"the interpreter is %s; --python or PROFLLM_PYTHON may name another one",
			p->python));
	return -1;
}

static int worker_driver_start(const struct offline_start *how, void **state,
			       struct offline_about *about, struct err *e)
{
	struct worker_state *s = mem_alloc(sizeof(*s));
	struct offline_program program;

	s->hooks = how->hooks;
	s->backend = arena_text(&s->arena, str_of(how->backend));
	s->name = strcmp(s->backend, "worker") == 0 ? "the worker" :
		  arena_printf(&s->arena, "the %s worker", s->backend);
	s->is_async = how->is_async;
	s->is_compiled = how->is_compiled;
	s->wants_mm_stats = how->wants_mm_stats;
	s->progress = LOADING;
	write_args(s, how->engine_argv);
	roster_clean(&(struct roster_hooks){ s, on_text, how->hooks.cancel });
	if (offline_find(how, &s->arena, &program, e) < 0 || launch(s, how, &program, e) < 0) {
		state_free(s);
		return -1;
	}
	about_hello(s, about);
	*state = s;
	return 0;
}

static int worker_driver_render(void *state, struct str messages, struct str tools,
				struct buf *text, struct err *e)
{
	struct worker_state *s = state;
	struct json_writer w = members(s);
	struct worker_reply r;
	struct json_slice v;

	json_begin_object(&w);
	json_member_raw(&w, "messages", messages);
	json_member_raw(&w, "tools", tools.n ? tools : STR("null"));
	if (!s->is_loaded)
		json_member_raw(&w, "args", buf_str(&s->args));
	json_end_object(&w);
	if (call(s, "render", &r, e) < 0)
		return -1;
	if (!json_member(r.body, "text", &v) || v.kind != JSON_STRING)
		return worker_distrust(s->worker, e, "the text is not a string");
	json_unescape(text, v.raw);
	return 0;
}

/* ---- load ---- */

static int read_phases(struct worker_state *s, const struct worker_reply *r,
		       struct offline_loaded *out, struct err *e)
{
	struct json_slice list, v, name;
	struct json_iter it;
	struct str key;
	size_t n = 0;

	if (!json_member(r->body, "phases", &list) || list.kind == JSON_NULL)
		return 0;
	if (list.kind != JSON_ARRAY)
		return worker_distrust(s->worker, e, "phases is not a list");
	for (it = json_iter(list); json_each(&it, &key, &v) == 1;)
		n++;
	out->phase = arena_alloc(&s->arena, (n + 1) * sizeof(*out->phase));
	for (it = json_iter(list); json_each(&it, &key, &v) == 1;) {
		struct engine_phase *p = &out->phase[out->n_phases];

		if (!json_member(v, "name", &name) || name.kind != JSON_STRING)
			return worker_distrust(s->worker, e, "a phase has no name");
		if (get_seconds(s, v, "s", &p->s, e) < 0)
			return -1;
		p->name = unescaped(s, name);
		out->n_phases++;
	}
	return 0;
}

static int read_loaded(struct worker_state *s, const struct worker_reply *r,
		       struct offline_loaded *out, struct err *e)
{
	int64_t began_ns, ended_ns;

	if (get_clock(s, r, "began_ns", &began_ns, e) < 0 ||
	    get_clock(s, r, "ended_ns", &ended_ns, e) < 0)
		return -1;
	if (ended_ns < began_ns || began_ns < r->asked_ns || ended_ns > r->answered_ns)
		return worker_distrust(s->worker, e, "its load began at %lld and ended at %lld ns, but "
				       "it was asked at %lld and answered at %lld ns of "
				       "CLOCK_MONOTONIC", (long long)began_ns, (long long)ended_ns,
				       (long long)r->asked_ns, (long long)r->answered_ns);
	out->spawn_s = worker_hello(s->worker)->spawn_s;
	out->load_s = (double)(ended_ns - began_ns) / 1e9;
	out->ready_s = (double)(r->answered_ns - worker_hello(s->worker)->began_ns) / 1e9;
	if (get_seconds(s, r->body, "compilation_s", &out->compilation_s, e) < 0 ||
	    get_seconds(s, r->body, "encoder_compilation_s", &out->encoder_compilation_s, e) < 0)
		return -1;
	return read_phases(s, r, out, e);
}

/* Keeps the worker's description of itself without the members of the protocol. */
static struct str keep_description(struct worker_state *s, struct json_slice body)
{
	struct json_iter it = json_iter(body);
	struct buf text = { 0 };
	struct json_slice v;
	struct str key, kept;
	bool is_first = true;

	buf_add_char(&text, '{');
	while (json_each(&it, &key, &v) == 1) {
		if (str_is(key, "id") || str_is(key, "type"))
			continue;
		buf_printf(&text, "%s\"%.*s\": ", is_first ? "" : ", ", (int)key.n, key.p);
		if (v.kind == JSON_STRING)
			buf_printf(&text, "\"%.*s\"", (int)v.raw.n, v.raw.p);
		else
			buf_add_str(&text, v.raw);
		is_first = false;
	}
	buf_add_char(&text, '}');
	kept = arena_str(&s->arena, buf_str(&text));
	buf_release(&text);
	return kept;
}

static int describe(struct worker_state *s, struct offline_about *about, struct err *e)
{
	struct worker_reply r;
	struct json_slice v;

	if (call_plain(s, "describe", &r, e) < 0)
		return -1;
	if (get_text(s, &r, "engine", &about->engine, e) < 0 ||
	    get_text(s, &r, "version", &about->version, e) < 0 ||
	    get_text(s, &r, "device", &about->device, e) < 0 ||
	    get_text(s, &r, "profile_to", &about->profile_to, e) < 0 ||
	    get_text(s, &r, "profile_dir", &about->profile_dir, e) < 0 ||
	    get_bool(s, &r, "is_pooling", &about->is_pooling, e) < 0)
		return -1;
	if (json_member(r.body, "max_model_len", &v) && v.kind != JSON_NULL &&
	    !json_to_i64(v, &about->max_model_len))
		return worker_distrust(s->worker, e, "max_model_len is not an integer");
	about->json = keep_description(s, r.body);
	return 0;
}

static int worker_driver_load(void *state, struct offline_about *about,
			      struct offline_loaded *out, struct err *e)
{
	struct worker_state *s = state;
	struct json_writer w = members(s);
	struct worker_reply r;

	if (s->is_async && !about->has_async)
		return err_set(e, ERR_RUN, "%s has no asynchronous engine", s->name);
	json_begin_object(&w);
	json_member_text(&w, "backend", s->backend);
	json_member_raw(&w, "args", buf_str(&s->args));
	json_member_bool(&w, "async", s->is_async);
	json_member_bool(&w, "compile", s->is_compiled);
	json_member_bool(&w, "mm_stats", s->wants_mm_stats);
	json_end_object(&w);
	s->progress = LOADING;
	if (call(s, "load", &r, e) < 0 || read_loaded(s, &r, out, e) < 0)
		return -1;
	s->is_loaded = true;
	return describe(s, about, e);
}

/* ---- a batch ---- */

/* A prompt that is whole messages: a list of objects. */
static bool is_conversation(const struct sample *x)
{
	struct str text = str_trim(x->prompt);

	if (x->kind != PROMPT_JSON || !text.n || *text.p != '[')
		return false;
	text = str_trim((struct str){ text.p + 1, text.n - 1 });
	return text.n && *text.p == '{';
}

static void put_request(struct json_writer *w, const struct offline_batch *b, size_t i)
{
	const struct sample *x = &b->w->v[b->index ? b->index[i] : i];
	const bool is_chat = is_conversation(x);
	struct buf own = { 0 };
	char name[32];

	json_begin_object(w);
	json_key(w, "prompt");
	if (is_chat)
		json_put_text(w, "");
	else if (x->kind == PROMPT_JSON)
		json_put_raw(w, x->prompt);
	else
		json_put_str(w, x->prompt);
	if (is_chat || x->messages.n)
		json_member_raw(w, "messages", x->messages.n ? x->messages : x->prompt);
	if (x->media.n)
		json_member_raw(w, "media", x->media);
	json_member_int(w, "prompt_len", x->prompt_len);
	if (x->output_len >= 0)
		json_member_int(w, "output_len", x->output_len);
	else
		json_member_null(w, "output_len");
	if (b->lora && b->lora[i] > 0) {
		snprintf(name, sizeof(name), "lora%d", (int)b->lora[i]);
		json_member_object(w, "lora");
		json_member_text(w, "name", name);
		json_member_int(w, "id", b->lora[i]);
		json_member_text(w, "path", b->lora_path);
		json_end_object(w);
	}
	if (b->w->has_priorities && !b->is_without_priorities)
		json_member_int(w, "priority", x->priority);
	/* The request's own sampling parameters, in place of the run's. */
	request_keys_sampling(x, &own);
	if (own.len)
		json_member_raw(w, "sampling", buf_str(&own));
	buf_release(&own);
	json_end_object(w);
}

/* Writes requests from *at on until a frame is full. Returns the bytes of their texts. */
static size_t put_some(struct worker_state *s, const struct offline_batch *b, size_t *at)
{
	bool is_first = *at == 0;
	struct json_writer w = members(s);

	json_begin_object(&w);
	json_member_bool(&w, "is_first", is_first);
	json_member_array(&w, "requests");
	while (*at < b->n && s->members.len < WORKER_PUT_BYTES)
		put_request(&w, b, (*at)++);
	json_end_array(&w);
	json_end_object(&w);
	return s->members.len;
}

/* Checks that the worker can do what requests of the batch need. */
static int check_put(const struct worker_state *s, const struct offline_batch *b, struct err *e)
{
	struct buf own = { 0 };
	int rc = 0;

	if (b->w->has_priorities && !b->is_without_priorities && !s->has_priority)
		return err_set(e, ERR_RUN, "%s cannot serve requests by priority", s->name);
	for (size_t i = 0; rc == 0 && i < b->n; i++) {
		if (b->lora && b->lora[i] > 0 && !s->has_lora)
			return err_set(e, ERR_RUN, "%s cannot use LoRA adapters", s->name);
		if (s->has_sampling)
			continue;
		request_keys_sampling(&b->w->v[b->index ? b->index[i] : i], &own);
		rc = own.len ? err_set(e, ERR_RUN, "%s takes no sampling parameters of single requests, "
				       "and request %zu has %s", s->name, i, own.data) : 0;
		buf_release(&own);
	}
	return rc;
}

static int worker_driver_put(void *state, const struct offline_batch *b, struct err *e)
{
	struct worker_state *s = state;
	struct worker_reply r;
	struct json_slice v;
	size_t at = 0, read = 0;
	int64_t held;

	if (check_put(s, b, e) < 0)
		return -1;
	do {
		read += put_some(s, b, &at);
		if (call(s, "put", &r, e) < 0)
			return -1;
		if (!json_member(r.body, "n", &v) || !json_to_i64(v, &held) || held != (int64_t)at)
			return worker_distrust(s->worker, e, "it does not hold the %zu requests it was "
					       "given", at);
		if (read > WORKLOAD_FORGET_BYTES) {
			workload_forget(b->w);
			read = 0;
		}
	} while (at < b->n);
	s->n = b->n;
	return 0;
}

/* ---- running ---- */

static const char *const methods[] = {
	[OFFLINE_GENERATE] = "generate", [OFFLINE_CHAT] = "chat", [OFFLINE_BEAM] = "beam",
	[OFFLINE_ENCODE] = "encode",
};

static bool as_count(struct json_slice v, void *out)
{
	int64_t n;

	if (!json_to_i64(v, &n) || n < 0 || n > UINT32_MAX)
		return false;
	*(uint32_t *)out = (uint32_t)n;
	return true;
}

static bool as_seconds(struct json_slice v, void *out)
{
	*(double *)out = NAN;
	return v.kind == JSON_NULL ||
	       (json_to_f64(v, out) && isfinite(*(double *)out) && *(double *)out >= 0);
}

static bool as_bool(struct json_slice v, void *out)
{
	int64_t n = v.kind == JSON_TRUE;

	if (v.kind != JSON_TRUE && v.kind != JSON_FALSE && (!json_to_i64(v, &n) || n < 0 || n > 1))
		return false;
	*(bool *)out = n;
	return true;
}

/*
 * Reads an array with one entry for each request. Without such a member, or with null, *out is
 * NULL.
 */
static int get_array(struct worker_state *s, const struct worker_reply *r, const char *key,
		     size_t size, bool (*as)(struct json_slice v, void *out), struct arena *a,
		     void **out, struct err *e)
{
	struct json_slice list, v;
	struct json_iter it;
	struct str ignored;
	size_t n = 0;
	char *to;

	if (!json_member(r->body, key, &list) || list.kind == JSON_NULL)
		return 0;
	if (list.kind != JSON_ARRAY)
		return worker_distrust(s->worker, e, "%s is not a list", key);
	to = arena_alloc(a, (s->n + 1) * size);
	for (it = json_iter(list); json_each(&it, &ignored, &v) == 1; n++)
		if (n < s->n && !as(v, to + n * size))
			return worker_distrust(s->worker, e, "%s[%zu] is %.*s", key, n,
					       (int)(v.raw.n < 40 ? v.raw.n : 40), v.raw.p);
	if (n != s->n)
		return worker_distrust(s->worker, e, "%s has %zu entries for %zu requests", key, n,
				       s->n);
	*out = to;
	return 0;
}

static int read_outcome(struct worker_state *s, const struct worker_reply *r,
			struct offline_outcome *out, struct err *e)
{
	const struct {
		const char *key;
		size_t size;
		bool (*as)(struct json_slice v, void *out);
		size_t to; /* the outcome's pointer */
	} lists[] = {
		{ "prompt_tokens", sizeof(uint32_t), as_count, offsetof(struct offline_outcome, prompt) },
		{ "output_tokens", sizeof(uint32_t), as_count, offsetof(struct offline_outcome, output) },
		{ "cached_tokens", sizeof(uint32_t), as_count, offsetof(struct offline_outcome, cached) },
		{ "finished", sizeof(bool), as_bool, offsetof(struct offline_outcome, is_finished) },
		{ "e2el_s", sizeof(double), as_seconds, offsetof(struct offline_outcome, e2el_s) },
		{ "ttft_s", sizeof(double), as_seconds, offsetof(struct offline_outcome, ttft_s) },
		{ "queue_s", sizeof(double), as_seconds, offsetof(struct offline_outcome, queue_s) },
	};

	if (get_clock(s, r, "began_ns", &out->began_ns, e) < 0 ||
	    get_clock(s, r, "ended_ns", &out->ended_ns, e) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		void *list = NULL;

		if (get_array(s, r, lists[i].key, lists[i].size, lists[i].as, &out->arena, &list,
			      e) < 0)
			return -1;
		memcpy((char *)out + lists[i].to, &list, sizeof(list));
	}
	return 0;
}

static int worker_driver_run(void *state, const struct offline_run *run,
			     struct offline_outcome *out, struct err *e)
{
	struct worker_state *s = state;
	struct json_writer w = members(s);
	struct worker_reply r;

	json_begin_object(&w);
	json_member_int(&w, "n", run->n);
	json_member_f64(&w, "temperature", run->temperature);
	json_member_f64(&w, "top_p", run->top_p);
	json_member_bool(&w, "ignore_eos", run->ignore_eos);
	json_member_bool(&w, "detokenize", run->detokenize);
	json_member_bool(&w, "prequeue", run->is_prequeued);
	json_member_bool(&w, "profile", run->is_profiled);
	json_member_text(&w, "id_prefix", run->id_prefix ? run->id_prefix : "");
	json_member_int(&w, "batch_max", run->batch_max);
	json_member_bool(&w, "is_progress", run->progress != NULL);
	json_end_object(&w);
	s->progress = run->progress;
	if (call(s, methods[run->method], &r, e) < 0)
		return -1;
	return read_outcome(s, &r, out, e);
}

static int worker_driver_mm_stats(void *state, struct buf *out, struct err *e)
{
	struct worker_state *s = state;
	struct worker_reply r;
	struct json_slice v;

	if (call_plain(s, "mm_stats", &r, e) < 0)
		return -1;
	if (!json_member(r.body, "requests", &v) || v.kind != JSON_OBJECT)
		return worker_distrust(s->worker, e, "requests is not an object");
	buf_add_str(out, v.raw);
	return 0;
}

static int worker_driver_stop(void *state, struct err *e)
{
	struct worker_state *s = state;
	int rc = worker_stop(s->worker, e);

	state_free(s);
	return rc;
}

const struct offline_driver offline_worker_driver = {
	.name = "worker", .start = worker_driver_start, .render = worker_driver_render,
	.load = worker_driver_load, .put = worker_driver_put, .run = worker_driver_run,
	.mm_stats = worker_driver_mm_stats, .stop = worker_driver_stop,
};
