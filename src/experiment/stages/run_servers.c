/* SPDX-License-Identifier: Apache-2.0 */
/* run_servers.c - see run_internal.h: the servers of an experiment. */
#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/server/engine_report.h"
#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/str.h"
#include "experiment/config/config.h"
#include "experiment/stages/run.h"
#include "experiment/stages/run_internal.h"
#include "host/engine/args.h"
#include "host/proc/tool.h"
#include "input/fetch/fetch.h"

#define GUARD_NS 50000000        /* between two looks at servers and at the flag */
#define ASK_TIMEOUT_MS 5000      /* /version, /metrics of a server that is ready */
#define ATTACH_WAIT_S 10         /* for a server that others run to be there */
#define ATTACH_PAUSE_NS 200000000
#define START_LOOK_NS 10000000   /* between two looks at servers that start */
/* How long the process of a server may live on when its connections have ended: half a second. */
#define DEATH_STEP_NS 10000000
#define DEATH_STEPS 50
#define DEATH_STEPS_CONTAINER 500 /* its runtime cleans up before it ends */

/* ---- the guard ---- */

static void look(void *self)
{
	struct experiment_held *held = self;
	const atomic_bool *cancel = held->hooks->cancel;

	if (cancel && atomic_load(cancel))
		atomic_store(&held->stop, true);
	for (size_t i = 0; i < held->n; i++) {
		struct server *s = atomic_load(&held->server[i].server);
		int none = -1;

		if (s && !server_is_alive(s)) {
			atomic_compare_exchange_strong(&held->died, &none, (int)i);
			atomic_store(&held->stop, true);
		}
	}
}

void guard_begin(struct run *r)
{
	atomic_store(&r->held->stop, false);
	atomic_store(&r->held->died, -1);
	ticker_start(&r->held->guard, GUARD_NS, look, r->held);
}

void guard_end(struct run *r)
{
	ticker_stop(&r->held->guard);
}

bool servers_are_alive(const struct experiment_held *held)
{
	for (size_t i = 0; i < held->n; i++) {
		struct server *s = atomic_load(&held->server[i].server);

		if (held->server[i].argv && (!s || !server_is_alive(s)))
			return false;
	}
	return true;
}

static void keep_tail(struct run *r, const struct server_failure *why)
{
	if (why->tail[0])
		r->out->log_tail = arena_str(&r->out->arena, str_of(why->tail));
}

static int death_steps(const struct experiment_held *held)
{
	for (size_t i = 0; i < held->n; i++)
		if (held->server[i].is_container)
			return DEATH_STEPS_CONTAINER;
	return DEATH_STEPS;
}

bool servers_died(struct run *r, bool is_suspect)
{
	const struct timespec step = { .tv_nsec = DEATH_STEP_NS };
	struct experiment_held *held = r->held;
	struct server_failure why = { 0 };
	struct err e = { 0 };
	int i;

	for (int k = is_suspect ? death_steps(held) : 0; k && atomic_load(&held->died) < 0; k--)
		nanosleep(&step, NULL);
	i = atomic_load(&held->died);
	if (i < 0 || server_check(atomic_load(&held->server[i].server), &why, &e) == 0)
		return false;
	/*
	 * A cluster's scheduler stops us and our servers at once, which is not a failure of theirs.
	 */
	if (run_is_cancelled(r) && why.fault != SERVER_FAULT_KILLED)
		return false;
	held->server[i].is_ended = true;
	keep_tail(r, &why);
	run_fail(r, server_fault_name(why.fault), "%s%s %s: %s",
		 held->n > 1 ? "server " : "the server", held->n > 1 ? held->server[i].name : "",
		 why.fault == SERVER_FAULT_KILLED ? "was killed" : "ended by itself", e.text);
	return true;
}

/* ---- what a server tells about itself ---- */

static bool is_loopback(const char *url)
{
	const char *host = strstr(url, "://");

	host = host ? host + 3 : url;
	return strncmp(host, "127.", 4) == 0 || strncmp(host, "localhost", 9) == 0 ||
	       strncmp(host, "[::1]", 5) == 0;
}

/* The answer's status; 0: none came. */
static long ask(struct run *r, const char *base, const char *path, struct buf *out)
{
	const struct fetch_opts opts = {
		.timeout_ms = ASK_TIMEOUT_MS, .proxy = is_loopback(base) ? "" : NULL,
		.cancel = &r->held->stop,
	};
	struct fetch_reply reply = { 0 };
	size_t n = strlen(base);
	struct buf url = { 0 };
	long status = 0;

	buf_printf(&url, "%.*s%s", (int)(n && base[n - 1] == '/' ? n - 1 : n), base, path);
	if (fetch(url.data, NULL, &opts, &reply, NULL) == 0)
		status = reply.status;
	if (out && status == 200)
		buf_add_str(out, buf_str(&reply.body));
	fetch_reply_release(&reply);
	buf_release(&url);
	return status;
}

static void learn_version(struct run *r, size_t i)
{
	struct held_server *h = &r->held->server[i];
	struct json_value *answer = NULL;
	struct buf text = { 0 }, notes = { 0 };
	struct arena a = { 0 };
	struct str version = { 0 };

	if (ask(r, r->held->at[i].url, "/version", &text) == 200 &&
	    json_parse(&a, buf_str(&text), &answer, NULL) == 0)
		version = json_text(json_get(answer, "version"), version);
	if (version.n) {
		h->version = arena_text(&r->held->arena, version);
		if (h->argv)
			engine_argv_check_version(h->argv, engine_version(h->version), &notes);
	}
	run_notes(r, &notes);
	buf_release(&notes);
	buf_release(&text);
	arena_release(&a);
}

static void learn(struct run *r, size_t i)
{
	struct held_server *h = &r->held->server[i];
	const char *url = r->held->at[i].url;
	struct engine_report report;
	struct json_writer w;
	struct buf text = { 0 };
	struct arena a = { 0 };

	if (!role_has_engine(r->x->server[i].role))
		return;
	learn_version(r, i);
	engine_report_begin(&report, &a);
	if (h->log && file_read(h->log, SWEEP_LOG_BYTES_MAX, &text, NULL) == 0) {
		capacity_of_log(buf_str(&text), &h->capacity);
		engine_report_log(&report, buf_str(&text));
	}
	buf_reset(&text);
	if (ask(r, url, "/metrics", &text) == 200) {
		if (!h->capacity.is_known)
			capacity_of_metrics(buf_str(&text), &h->capacity);
		engine_report_metrics(&report, buf_str(&text));
	}
	buf_reset(&text);
	if (ask(r, url, "/v1/models", &text) == 200)
		engine_report_models(&report, buf_str(&text));
	buf_reset(&text);
	w = json_writer(&text);
	engine_report_write(&report, &w);
	h->reported = arena_str(&r->held->arena, buf_str(&text));
	buf_release(&text);
	arena_release(&a);
}

/* ---- its words ---- */

static int in_container(struct run *r, size_t i, const struct profiling_words *w, struct err *e)
{
	const struct allocation_server *got = &r->held->allocation.server[i];
	struct held_server *h = &r->held->server[i];
	struct arena *a = &r->held->arena;
	const char **gpu = arena_alloc(a, (got->n_gpus + 1) * sizeof(*gpu));
	struct container_how how = { .run_id = r->out->run_id, .port = got->port, .gpu = gpu,
				     .words = w->argv, .env = w->env, .folder = r->traces.dir };
	size_t n;

	for (size_t k = 0; k < got->n_gpus; k++) {
		gpu[k] = got->gpu[k].uuid;
		how.is_amd = gpu_list(r->held->gpus, &n)[got->place[k]].maker == GPU_AMD;
	}
	if (container_words(&r->x->server[i], &how, a, &h->container, e) < 0 ||
	    container_begin(&h->container, a, r->hooks, e) < 0)
		return -1;
	h->is_container = true;
	h->argv = h->container.argv;
	h->env = h->container.env;
	return 0;
}

/* Makes the words and the environment that start it. */
static int make_words(struct run *r, size_t i, struct err *e)
{
	const struct experiment_server *s = &r->x->server[i];
	struct held_server *h = &r->held->server[i];
	struct arena *a = &r->held->arena;
	struct profiling_words words;
	struct word_list env = { .arena = a };
	struct buf notes = { 0 };
	char **argv, **own;
	unsigned version = 0;
	int rc;

	if (command_words(r->x, i, r->held->at, a, &argv, e) < 0 ||
	    command_env(r->x, i, r->held->at, a, &own, e) < 0)
		return -1;
	for (char **line = own; *line; line++)
		words_add(&env, *line);
	/* A container sees only its own GPUs, counted from 0. */
	for (char *const *line = r->held->allocation.server[i].env; !s->container && *line; line++)
		words_add(&env, *line);
	if (r->x->profiling.is_enabled && !s->container && !config_is_sim(s->command))
		version = profiling_version(s->command);
	rc = profiling_words(r->x, s, r->traces.dir, version, argv,
			     env.v ? env.v : own, a, &words, &notes, e);
	run_notes(r, &notes);
	buf_release(&notes);
	if (rc < 0 || s->container)
		return rc < 0 ? -1 : in_container(r, i, &words, e);
	h->argv = words.argv;
	h->env = words.env;
	return 0;
}

static int start_failed(struct run *r, size_t i, const struct server_failure *why,
			const struct err *e)
{
	if (r->has_failed) /* another one, for which this one was given up */
		return -1;
	if (run_is_cancelled(r))
		return run_interrupted(r);
	if (servers_died(r, false))
		return -1;
	if (why->fault == SERVER_FAULT_DEADLINE)
		r->stage = AT_READY;
	keep_tail(r, why);
	r->held->server[i].is_ended = why->has_code;
	return run_fail(r, server_fault_name(why->fault), "%s%s%s",
			r->x->n_servers > 1 ? r->x->server[i].name : "",
			r->x->n_servers > 1 ? ": " : "", e->text);
}

static void say_start(struct run *r, size_t i)
{
	const struct allocation_server *got = &r->held->allocation.server[i];
	struct buf gpus = { 0 };

	for (size_t k = 0; k < got->n_gpus; k++)
		buf_printf(&gpus, "%s%d", k ? "," : got->n_gpus > 1 ? " on GPUs " : " on GPU ",
			   got->gpu[k].index);
	run_line(r, "Starting %s at %s%s, log %s", r->held->server[i].name, r->held->at[i].url,
		 gpus.len ? gpus.data : "", r->held->server[i].log);
	buf_release(&gpus);
}

/* ---- several at once: a thread waits for each until it is ready ---- */

enum start_state { START_WAITS, START_GOES_ON, START_ENDED, START_TAKEN };

struct start {
	struct experiment_held *held; /* which this is a part of: hooks outlive the start */
	struct starts *all;         /* NULL: it is over */
	pthread_t thread;
	struct server_opts opts;
	struct buf said;            /* by all->lock: lines of 'l' or 'w', a text and a NUL */
	enum start_state state;     /* by all->lock, once the thread runs */
	/* The result; written only by the thread until START_ENDED. */
	int rc;
	struct server *server;
	struct server_failure why;
	struct err e;
};

struct starts {
	struct run *r;
	struct start *one;          /* one for each server */
	size_t n;
	struct buf warned;          /* what has been said, so that nothing is said twice */
	pthread_mutex_t lock;
};

/* Keeps a line for the thread that runs the experiment, which passes it on. */
static void keep_said(struct start *s, char kind, const char *text)
{
	pthread_mutex_lock(&s->all->lock);
	buf_add_char(&s->said, kind);
	buf_add(&s->said, text, strlen(text) + 1);
	pthread_mutex_unlock(&s->all->lock);
}

static void on_line(void *self, const char *text)
{
	struct start *s = self;
	const struct experiment_hooks *hooks = s->held->hooks;

	if (s->all)
		keep_said(s, 'l', text);
	else if (hooks->line)
		hooks->line(hooks->self, text);
}

static void on_warn(void *self, const char *text)
{
	struct start *s = self;
	const struct experiment_hooks *hooks = s->held->hooks;

	if (s->all)
		keep_said(s, 'w', text);
	else if (s->held->run)
		run_warn(s->held->run, text);
	else if (hooks->warn)
		hooks->warn(hooks->self, text);
}

static void *start_main(void *self)
{
	struct start *s = self;
	const struct server_hooks hooks = { .self = s, .line = on_line, .warn = on_warn,
					    .cancel = &s->held->stop };

	s->rc = server_start(&s->opts, &hooks, &s->server, &s->why, &s->e);
	pthread_mutex_lock(&s->all->lock);
	s->state = START_ENDED;
	pthread_mutex_unlock(&s->all->lock);
	return NULL;
}

/* Two servers starting at once clean up after the same earlier run, and both report it. */
static bool is_said_already(struct starts *all, const char *text)
{
	for (size_t at = 0; at < all->warned.len; at += strlen(all->warned.data + at) + 1)
		if (strcmp(all->warned.data + at, text) == 0)
			return true;
	buf_add(&all->warned, text, strlen(text) + 1);
	return false;
}

/* Calls the hooks, on the thread that runs the experiment. */
static void pass_on(struct starts *all)
{
	for (size_t k = 0; k < all->n; k++) {
		struct buf said = { 0 };

		pthread_mutex_lock(&all->lock);
		said = all->one[k].said;
		all->one[k].said = (struct buf){ 0 };
		pthread_mutex_unlock(&all->lock);
		for (size_t at = 0; at < said.len; at += strlen(said.data + at) + 1) {
			const char *text = said.data + at + 1;

			if (said.data[at] == 'l')
				run_line(all->r, "%s", text);
			else if (!is_said_already(all, text))
				run_warn(all->r, text);
		}
		buf_release(&said);
	}
}

static enum start_state state_of(struct starts *all, size_t i)
{
	enum start_state state;

	pthread_mutex_lock(&all->lock);
	state = all->one[i].state;
	pthread_mutex_unlock(&all->lock);
	return state;
}

static int make_ready(struct run *r, size_t i)
{
	const struct experiment_server *s = &r->x->server[i];
	struct held_server *h = &r->held->server[i];
	struct err e = { 0 };

	h->grace_s = s->grace_s;
	h->log = run_path(r, arena_printf(&r->held->arena, "%s.log", s->name));
	h->started_by = arena_text(&r->held->arena, str_of(r->out->run_id));
	unlink(h->log); /* of an earlier run */
	if (make_words(r, i, &e) == 0)
		return 0;
	if (e.code == ERR_CANCELLED)
		return run_interrupted(r);
	return run_fail(r, e.code == ERR_USAGE ? "bad configuration" : "container", "%s", e.text);
}

static int start_begin(struct starts *all, size_t i)
{
	struct run *r = all->r;
	const struct experiment_server *s = &r->x->server[i];
	struct held_server *h = &r->held->server[i];
	struct start *one = &all->one[i];

	r->stage = AT_START;
	if (make_ready(r, i) < 0)
		return -1;
	one->opts = (struct server_opts){
		.argv = h->argv, .env = h->env, .log_path = h->log,
		.show_fd = r->hooks->log_fd > 0 ? r->hooks->log_fd : -1,
		.ready_timeout_s = s->ready_timeout_s, .grace_s = s->grace_s,
		.ready = s->ready, .ready_log = s->ready_log,
		.host = r->held->at[i].host, .port = r->held->at[i].port,
		.when_orphaned = h->is_container ? h->container.remove : NULL,
	};
	say_start(r, i);
	r->held->had_servers = true;
	one->state = START_GOES_ON;
	errno = pthread_create(&one->thread, NULL, start_main, one);
	if (errno) {
		one->state = START_WAITS;
		return run_fail(r, "threads", "%s cannot be waited for: no further thread: %s",
				h->name, strerror(errno));
	}
	return 0;
}

/* A start's thread has ended: the server is now held, or this is its failure. */
static int start_end(struct starts *all, size_t i)
{
	struct run *r = all->r;
	struct held_server *h = &r->held->server[i];
	struct start *one = &all->one[i];

	pthread_join(one->thread, NULL);
	one->state = START_TAKEN;
	pass_on(all);
	if (one->rc < 0) {
		if (h->is_container)
			container_end(&h->container, 0, NULL);
		return start_failed(r, i, &one->why, &one->e);
	}
	h->startup_s = server_startup_s(one->server);
	r->held->started[r->held->n_started++] = i;
	atomic_store(&h->server, one->server);
	return 0;
}

static void say_ready(struct run *r, size_t i)
{
	const struct held_server *h = &r->held->server[i];

	run_line(r, "%s is ready after %.1f s%s%s", h->name, h->startup_s,
		 h->version ? ", version " : "", h->version ? h->version : "");
}

/* Any answer will do: not every server has /health. */
static int attach(struct run *r, size_t i)
{
	const struct experiment_server *s = &r->x->server[i];
	const struct timespec pause = { .tv_nsec = ATTACH_PAUSE_NS };
	double wait_s = s->ready_timeout_s < ATTACH_WAIT_S ? s->ready_timeout_s : ATTACH_WAIT_S;
	int64_t until_ns = clock_mono_ns() + (int64_t)(wait_s * 1e9);

	r->stage = AT_READY;
	run_line(r, "Using the running server%s%s at %s", r->x->n_servers > 1 ? " " : "",
		 r->x->n_servers > 1 ? s->name : "", s->url);
	while (ask(r, s->url, "/health", NULL) == 0) {
		if (run_is_cancelled(r))
			return run_interrupted(r);
		if (clock_mono_ns() > until_ns)
			return run_fail(r, "not reachable", "%s: no answer from %s within %g s. "
					"Is it running?", s->name, s->url, wait_s);
		nanosleep(&pause, NULL);
	}
	learn(r, i);
	return 0;
}

/* ---- all of them ---- */

static bool shares_gpu(const struct allocation_server *a, const struct allocation_server *b)
{
	for (size_t i = 0; i < a->n_gpus; i++)
		for (size_t k = 0; k < b->n_gpus; k++)
			if (a->place[i] == b->place[k])
				return true;
	return false;
}

/*
 * The servers it waits for are ready, and no other one starts on one of its GPUs: engines measure
 * free memory while they start.
 */
static bool may_start(struct starts *all, size_t i)
{
	const struct experiment *x = all->r->x;
	const struct allocation_server *got = all->r->held->allocation.server;
	const char *const *after = x->server[i].after;

	for (; after && *after; after++)
		for (size_t k = 0; k < all->n; k++)
			if (strcmp(x->server[k].name, *after) == 0 &&
			    state_of(all, k) != START_TAKEN)
				return false;
	for (size_t k = 0; !x->server[i].url && k < all->n; k++)
		if (k != i && !x->server[k].url && state_of(all, k) == START_GOES_ON &&
		    shares_gpu(&got[i], &got[k]))
			return false;
	return true;
}

/* Begins all that may start; returns their number, or -1. */
static int begin_more(struct starts *all)
{
	int begun = 0;

	for (size_t i = 0; i < all->n; i++) {
		if (state_of(all, i) != START_WAITS || !may_start(all, i))
			continue;
		if (!all->r->x->server[i].url) {
			if (start_begin(all, i) < 0)
				return -1;
		} else if (attach(all->r, i) < 0) {
			return -1;
		} else {
			all->one[i].state = START_TAKEN;
		}
		begun++;
	}
	return begun;
}

/* Takes starts that have ended; returns how many are still running, or -1: one has failed. */
static int take_ended(struct starts *all)
{
	int going = 0, rc = 0;

	for (size_t i = 0; i < all->n; i++) {
		enum start_state state = state_of(all, i);

		if (state == START_GOES_ON)
			going++;
		if (state != START_ENDED)
			continue;
		if (start_end(all, i) < 0) {
			rc = -1;
		} else if (rc == 0) {
			learn(all->r, i);
			say_ready(all->r, i);
		}
	}
	return rc < 0 ? -1 : going;
}

static void show_starting(struct starts *all)
{
	struct buf what = { 0 };

	for (size_t i = 0; i < all->n; i++)
		if (state_of(all, i) == START_GOES_ON)
			buf_printf(&what, "%s%s", what.len ? ", " : "Starting ",
				   all->r->held->server[i].name);
	if (what.len && all->r->hooks->progress)
		all->r->hooks->progress(all->r->hooks->self, what.data, 0, 0);
	buf_release(&what);
}

static int start_all(struct starts *all)
{
	const struct timespec pause = { .tv_nsec = START_LOOK_NS };
	struct run *r = all->r;
	int begun, going;

	for (;;) {
		going = take_ended(all);
		begun = going < 0 ? -1 : begin_more(all);
		if (begun < 0)
			return -1;
		if (run_is_cancelled(r))
			return run_interrupted(r);
		if (servers_died(r, false))
			return -1;
		if (going + begun == 0)
			return 0;
		pass_on(all);
		show_starting(all);
		nanosleep(&pause, NULL);
	}
}

/* One has failed: the others are not waited for, and those that are ready are held. */
static void give_up(struct starts *all)
{
	atomic_store(&all->r->held->stop, true);
	for (size_t i = 0; i < all->n; i++)
		if (state_of(all, i) == START_GOES_ON || state_of(all, i) == START_ENDED)
			start_end(all, i);
}

int servers_start(struct run *r)
{
	struct starts all = { .r = r, .n = r->x->n_servers };
	int rc;

	assert(r->stage >= AT_ALLOCATE && r->held->n == all.n && r->held->n_started == 0);
	all.one = arena_alloc(&r->held->arena, (all.n + 1) * sizeof(*all.one));
	pthread_mutex_init(&all.lock, NULL);
	for (size_t i = 0; i < all.n; i++)
		all.one[i] = (struct start){ .held = r->held, .all = &all };
	rc = start_all(&all);
	if (rc < 0)
		give_up(&all);
	for (size_t i = 0; rc == 0 && i < all.n; i++)
		if (all.one[i].state == START_WAITS) {
			r->stage = AT_CONFIG;
			rc = run_fail(r, "bad configuration", "servers wait for each other (after)");
		}
	for (size_t i = 0; i < all.n; i++)
		all.one[i].all = NULL;
	pthread_mutex_destroy(&all.lock);
	buf_release(&all.warned);
	return rc;
}

int servers_reuse(struct run *r)
{
	struct err e = { 0 };

	r->stage = AT_READY;
	if (!servers_are_alive(r->held)) {
		run_warn(r, "a server of the previous experiment has ended; all servers are "
			    "restarted");
		return -1;
	}
	for (size_t i = 0; i < r->held->n; i++) {
		struct held_server *h = &r->held->server[i];
		struct server *s = atomic_load(&h->server);

		h->is_reused = s != NULL;
		if (!s || !role_has_engine(r->x->server[i].role) || server_reset_caches(s, &e) == 0)
			continue;
		if (r->needs_empty_caches)
			err_wrap(&e, "the servers are restarted for this experiment");
		run_warn(r, e.text);
		if (r->needs_empty_caches)
			return -1;
		r->has_full_caches = true;
	}
	return 0;
}

static void stop_one(struct held_server *h, const struct experiment_hooks *hooks)
{
	struct server *s = atomic_load(&h->server);
	struct err e = { 0 };
	char text[1200];

	if (!s)
		return;
	atomic_store(&h->server, NULL);
	if (h->is_container && container_end(&h->container, h->grace_s, &e) < 0 && hooks->warn)
		hooks->warn(hooks->self, e.text);
	e = (struct err){ 0 };
	if (server_stop(s, NULL, &e) < 0 && hooks->warn) {
		snprintf(text, sizeof(text), "%s could not be ended: %s", h->name, e.text);
		hooks->warn(hooks->self, text);
	}
}

void servers_stop(struct experiment_held *held, const struct experiment_hooks *hooks)
{
	/* Servers that need others were started after them. */
	while (held->n_started)
		stop_one(&held->server[held->started[--held->n_started]], hooks);
}

/* ---- what the outcome says ---- */

static const char *copy_text(struct arena *a, const char *text)
{
	return text ? arena_text(a, str_of(text)) : NULL;
}

static void tell_gpus(struct arena *a, const struct allocation_server *got,
		      struct outcome_server *out)
{
	out->n_gpus = got->n_gpus;
	out->gpu = arena_alloc(a, (got->n_gpus + 1) * sizeof(*out->gpu));
	for (size_t i = 0; i < got->n_gpus; i++) {
		out->gpu[i].index = got->gpu[i].index;
		out->gpu[i].uuid = copy_text(a, got->gpu[i].uuid);
		out->gpu[i].name = copy_text(a, got->gpu[i].name);
	}
}

static void tell_one(struct run *r, size_t i, struct outcome_server *out)
{
	const struct held_server *h = &r->held->server[i];
	struct arena *a = &r->out->arena;
	struct word_list argv = { .arena = a };
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);

	*out = (struct outcome_server){
		.startup_s = h->is_reused ? NAN : h->startup_s,
		.is_reused = h->is_reused, .is_ended = h->is_ended,
	};
	out->url = copy_text(a, r->held->at[i].url);
	out->version = copy_text(a, h->version);
	out->reported = arena_str(a, h->reported);
	out->log = copy_text(a, h->log);
	out->started_by = copy_text(a, h->started_by);
	out->image_digest = h->is_container ? copy_text(a, h->container.digest) : NULL;
	for (size_t k = 0; h->argv && h->argv[k]; k++)
		words_add(&argv, arena_text(a, str_of(h->argv[k])));
	out->argv = (const char *const *)argv.v;
	if (h->capacity.is_known) {
		capacity_write(&h->capacity, &w);
		out->capacity = run_keep(r, &json);
	}
	if (i < r->held->allocation.n_servers)
		tell_gpus(a, &r->held->allocation.server[i], out);
}

void servers_tell(struct run *r)
{
	struct outcome *o = r->out;

	o->server = arena_alloc(&o->arena, (r->x->n_servers + 1) * sizeof(*o->server));
	for (size_t i = 0; i < r->x->n_servers; i++) {
		if (i < r->held->n)
			tell_one(r, i, &o->server[i]);
		else
			o->server[i] = (struct outcome_server){ .startup_s = NAN };
	}
}
