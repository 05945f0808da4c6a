/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_server.c - the servers of a sweep: begun, kept, ended, and listed in servers.json. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/server/capacity.h"
#include "bench/sweep/sweep_internal.h"
#include "core/base/clock.h"
#include "core/base/codec.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/redact.h"
#include "core/base/str.h"
#include "host/engine/args.h"
#include "input/fetch/fetch.h"
#include "results/read/files.h"
#include "results/read/read.h"

#define ASK_TIMEOUT_MS 5000 /* /version, /metrics of a server that is ready */

/* How long the process of a server may live on when its connections have ended: half a second. */
#define DEATH_STEP_NS 10000000
#define DEATH_STEPS 50

/* One start of a server: an element of servers.json. */
struct sweep_start {
	struct sweep_start *next;
	const struct json_value *serve;
	char **argv;
	char *log, *url, *version;  /* version NULL: not reported */
	const char *log_name;       /* below the experiment's folder */
	const char *state;          /* "running", "stopped", "died", "failed", "cancelled" */
	const char *fault;          /* NULL: none */
	char began[32];
	int64_t began_ns;
	double startup_s;
	unsigned runs;
	struct capacity capacity;
	struct server_hooks hooks;
};

/* ---- servers.json ---- */

/* Digest of all words but the first, including hidden ones. */
static void words_digest(char *const *argv, char hex[DIGEST_HEX])
{
	struct buf text = { 0 };

	for (size_t i = 1; argv[0] && argv[i]; i++)
		buf_add(&text, argv[i], strlen(argv[i]) + 1);
	digest_hex(DIGEST_SHA256, buf_str(&text), hex);
	buf_release(&text);
}

/* Whether these words are the given command, from a word on, as far as it is shown. */
static bool is_command(const struct json_value *words, char *const *given, size_t from,
		       struct arena *a)
{
	char **argv = redact_words(given, a);
	size_t n = words_count(argv);

	if (words->kind != JSON_ARRAY || words->count != n)
		return false;
	for (size_t i = from; i < n; i++)
		if (!str_is(json_text(&words->item[i], STR("")), argv[i]))
			return false;
	return true;
}

/* Arguments other than an address in which the given command differs: "a: 1 -> 2; b: ..."; or "". */
static const char *other_arguments(struct sweep *s, const struct json_value *words,
				   char *const *given)
{
	char **argv = arena_alloc(&s->arena, (words->count + 1) * sizeof(*argv));
	struct buf lines = { 0 }, text = { 0 };
	struct str rest;

	for (size_t i = 0; i < words->count; i++)
		argv[i] = arena_text(&s->arena, json_text(&words->item[i], STR("")));
	engine_argv_diff(argv, redact_words(given, &s->arena), &lines);
	for (rest = buf_str(&lines); rest.n;) {
		struct str line = str_cut(&rest, '\n'), value = line, name = str_cut(&value, ':');

		if (!str_is(name, "port") && !str_is(name, "host") && !str_is(name, "uds"))
			buf_printf(&text, "%s%.*s", text.len ? "; " : "", (int)line.n, line.p);
	}
	buf_release(&lines);
	return arena_take(&s->arena, &text).p;
}

/* The server's command: refused like the benchmark's, but its address and program may differ. */
static int check_server(struct sweep *s, const struct json_value *words, char *const *given,
			struct err *e)
{
	const char *differs = words->kind == JSON_ARRAY ? other_arguments(s, words, given) : "";

	if (*differs && !s->o->resume_anyway)
		return err_set(e, ERR_USAGE, "--serve-cmd: %s was begun with another command (%s), whose "
			       "runs would be taken for runs of this one; use another "
			       "--experiment-name, or --resume-anyway to keep them", s->folder, differs);
	sweep_warn(s, "%s was begun with another --serve-cmd; its earlier results are kept next to the "
		   "new ones", s->folder);
	return 0;
}

/*
 * Resuming with other commands would put results of two set-ups into one table. With another
 * benchmark, existing runs would be taken for its own, so that is refused unless the user wants it.
 */
static int check_change(struct sweep *s, const struct json_value *start, struct err *e)
{
	const struct json_value *server = json_get(start, "command");
	const struct json_value *bench = json_get(start, "bench_command");
	const struct json_value *overrides = json_get(start, "serve_overrides");
	char hex[DIGEST_HEX];

	if (server && overrides && overrides->kind == JSON_OBJECT &&
	    !is_command(server, params_apply(overrides, s->serve_cmd, &s->arena), 0, &s->arena) &&
	    check_server(s, server, params_apply(overrides, s->serve_cmd, &s->arena), e) < 0)
		return -1;
	/* 'vllm bench serve' and 'profllm bench serve' are the same. */
	if (!bench || !s->bench_cmd)
		return 0;
	words_digest(s->bench_cmd, hex);
	if (is_command(bench, s->bench_cmd, 1, &s->arena) &&
	    str_is(json_text(json_get(start, "bench_digest"), str_of(hex)), hex))
		return 0;
	if (!s->o->resume_anyway)
		return err_set(e, ERR_USAGE, "--bench-cmd: %s was begun with another command, "
			       "whose runs would be taken for runs of this one; use another "
			       "--experiment-name, or --resume-anyway to keep them", s->folder);
	sweep_warn(s, "%s was begun with another --bench-cmd; its earlier results are kept next to the new "
		   "ones", s->folder);
	return 0;
}

int sweep_server_remember(struct sweep *s, struct err *why)
{
	const char *path = sweep_path(s, s->folder, RESULT_SERVERS);
	const struct json_value *list = NULL;
	struct json_value *kept;
	struct err e = { 0 };

	if (s->serve_cmd && file_exists(path))
		list = result_json(path, SWEEP_PARAMS_BYTES_MAX, &s->arena, &e);
	if (e.code)
		sweep_warn(s, "%s; its entries about earlier servers are lost", e.text);
	if (!list || list->kind != JSON_ARRAY)
		return 0;
	kept = arena_alloc(&s->arena, sizeof(*kept));
	*kept = *list;
	kept->item = arena_alloc(&s->arena, (list->count + 1) * sizeof(*kept->item));
	for (size_t i = 0; i < list->count; i++) {
		const struct json_value *start = &list->item[i];
		bool is_running = start->kind == JSON_OBJECT &&
				  str_is(json_text(json_get(start, "state"), STR("")), "running");

		/* The keeper ends a server whose sweep is killed. */
		kept->item[i] = is_running ? *params_with_text(start, "state", "killed", &s->arena) :
				*start;
	}
	s->earlier = kept;
	return list->count ? check_change(s, &kept->item[list->count - 1], why) : 0;
}

static void put_start(struct json_writer *w, struct sweep *s, const struct sweep_start *x)
{
	char hex[DIGEST_HEX];

	json_begin_object(w);
	json_member_value(w, "serve_overrides", x->serve);
	json_member_texts(w, "command", (const char *const *)redact_words(x->argv, &s->arena));
	json_member_texts(w, "bench_command",
			  (const char *const *)redact_words(s->bench_cmd, &s->arena));
	words_digest(s->bench_cmd, hex);
	json_member_text(w, "bench_digest", hex);
	json_member_text(w, "started", x->began);
	json_member_int(w, "start_ns", x->began_ns);
	json_member_f64(w, "startup_s", x->url ? x->startup_s : NAN);
	json_member_text(w, "url", x->url);
	json_member_text(w, "version", x->version);
	json_key(w, "kv_capacity");
	if (x->capacity.is_known)
		capacity_write(&x->capacity, w);
	else
		json_put_null(w);
	json_member_text(w, "log", x->log_name);
	json_member_int(w, "runs", x->runs);
	json_member_text(w, "state", x->state);
	json_member_text(w, "fault", x->fault);
	json_end_object(w);
}

/* A list that cannot be written does not end the sweep. */
static void save_list(struct sweep *s)
{
	struct buf text = { 0 };
	struct json_writer w = json_writer(&text);
	struct err e = { 0 };

	w.indent = 4;
	json_begin_array(&w);
	for (size_t i = 0; s->earlier && i < s->earlier->count; i++)
		json_put_value(&w, &s->earlier->item[i]);
	for (const struct sweep_start *x = s->first_start; x; x = x->next)
		put_start(&w, s, x);
	json_end_array(&w);
	buf_add_char(&text, '\n');
	redact_tail(&text, 0, REDACT_SETTINGS);
	if (file_write_atomic(sweep_path(s, s->folder, RESULT_SERVERS), buf_str(&text), &e) < 0)
		sweep_warn(s, "%s", e.text);
	buf_release(&text);
}

/* ---- what a server tells about itself ---- */

static bool ask(struct sweep *s, const char *path, struct buf *out)
{
	const struct server_address *where = server_where(s->server);
	const struct fetch_opts opts = {
		.timeout_ms = ASK_TIMEOUT_MS, .proxy = "", .cancel = s->hooks->cancel,
		.unix_socket = *where->uds ? where->uds : NULL,
	};
	struct fetch_reply reply = { 0 };
	struct buf url = { 0 };
	struct err ignored = { 0 };
	bool is_good;

	buf_printf(&url, "%s%s", *where->uds ? "http://localhost" : server_url(s->server), path);
	is_good = fetch(url.data, NULL, &opts, &reply, &ignored) == 0 && reply.status == 200;
	if (is_good)
		buf_add_str(out, buf_str(&reply.body));
	fetch_reply_release(&reply);
	buf_release(&url);
	return is_good;
}

/* Prints each line once, whatever number of combinations has it. */
static void warn_new(struct sweep *s, struct buf *said, struct buf *notes)
{
	struct str rest = buf_str(notes);

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		if (line.n && !(said->len && memmem(said->data, said->len, line.p, line.n))) {
			sweep_warn(s, "%.*s", (int)line.n, line.p);
			buf_add_str(said, line);
			buf_add_char(said, '\n');
		}
	}
	buf_reset(notes);
}

static void learn(struct sweep *s, struct sweep_start *x)
{
	struct json_value *answer = NULL;
	struct buf text = { 0 };
	struct err ignored = { 0 };
	const struct sweep_start *first = s->first_start;
	struct buf said = { 0 }, notes = { 0 };
	struct str version;

	x->url = arena_text(&s->arena, str_of(server_url(s->server)));
	x->startup_s = server_startup_s(s->server);
	if (ask(s, "/version", &text) &&
	    json_parse(&s->arena, buf_str(&text), &answer, &ignored) == 0) {
		version = json_text(json_get(answer, "version"), STR(""));
		if (version.n)
			x->version = arena_text(&s->arena, version);
		/* Once per combination: the versions of its later servers are the same. */
		while (first && first != x && first->serve != x->serve)
			first = first->next;
		if (first == x)
			engine_argv_check_version(x->argv, engine_version(x->version), &notes);
		warn_new(s, &said, &notes);
	}
	buf_reset(&text);
	if (file_read(x->log, SWEEP_LOG_BYTES_MAX, &text, &ignored) == 0)
		capacity_of_log(buf_str(&text), &x->capacity);
	buf_reset(&text);
	if (!x->capacity.is_known && ask(s, "/metrics", &text))
		capacity_of_metrics(buf_str(&text), &x->capacity);
	buf_release(&text);
	buf_release(&said);
	buf_release(&notes);
}

/* ---- before anything is run ---- */

static int check_args(struct sweep *s, enum server_kind kind, struct err *e)
{
	struct buf said = { 0 }, notes = { 0 };
	int rc = 0;

	if (kind != SERVER_VLLM && kind != SERVER_SIM)
		return 0;
	for (size_t i = 0; rc == 0 && i < s->serve.n; i++) {
		rc = engine_argv_check(params_apply(&s->serve.item[i], s->serve_cmd, &s->arena), 0,
				       s->o->strict_args, &notes, e);
		warn_new(s, &said, &notes);
	}
	buf_release(&said);
	buf_release(&notes);
	return rc < 0 ? err_wrap(e, "--strict-args") : 0;
}

int sweep_server_check(struct sweep *s, struct err *e)
{
	bool needs_reset = !s->after_cmd && (sweep_opts_restart(s->o) != SWEEP_RESTART_RUN ||
					     s->o->warmup_num_prompts > 0);
	struct server_address where = { 0 };

	for (size_t i = 0; i < s->serve.n; i++)
		if (server_address(params_apply(&s->serve.item[i], s->serve_cmd, &s->arena),
				   &where, e) < 0)
			return err_wrap(e, "--serve-cmd");
	if (!s->o->dry_run && needs_reset &&
	    (where.kind == SERVER_OTHER || where.kind == SERVER_LLAMACPP))
		return err_set(e, ERR_RUN, "No implementation of `reset_caches` for `%s` server. "
			       "Please specify a custom command via `--after-bench-cmd`.",
			       s->serve_cmd[0]);
	return check_args(s, where.kind, e);
}

/* ---- begin ---- */

static char *failure_path(struct sweep *s, const struct json_value *serve)
{
	const char *name = arena_printf(&s->arena, "SERVE-%s", sweep_name(s, serve, "default"));

	return sweep_path(s, s->folder, params_file_name_ending(str_of(name), "-failure.json",
								&s->arena));
}

static void server_line(void *self, const char *text)
{
	sweep_line(self, "%s", text);
}

static void server_warn(void *self, const char *text)
{
	sweep_warn(self, "%s", text);
}

static struct sweep_start *new_start(struct sweep *s, const struct json_value *serve)
{
	struct sweep_start *x = arena_alloc(&s->arena, sizeof(*x));
	const char *name = arena_printf(&s->arena, "SERVE-%s", sweep_name(s, serve, "default"));
	int64_t began_ns = clock_real_ns();
	time_t now = began_ns / 1000000000;
	struct tm tm;

	x->began_ns = began_ns;
	strftime(x->began, sizeof(x->began), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
	x->log_name = sweep_path(s, "logs", params_file_name_ending(str_of(name), ".log", &s->arena));
	x->log = sweep_path(s, s->folder, x->log_name);
	x->argv = params_apply(serve, s->serve_cmd, &s->arena);
	x->serve = serve;
	x->state = "running";
	x->hooks = (struct server_hooks){ .self = s, .line = server_line, .warn = server_warn,
					  .cancel = s->hooks->cancel };
	return x;
}

static int start_failed(struct sweep *s, struct sweep_start *x, const struct server_failure *why,
			const struct err *told, struct err *e)
{
	const struct sweep_failure f = {
		.type = why->fault == SERVER_FAULT_DEADLINE ? "TimeoutError" :
			why->fault == SERVER_FAULT_NOT_FOUND ? "FileNotFoundError" : "RuntimeError",
		.text = told->text, .serve = x->serve,
		.why = *why->reason ? why->reason : NULL,
	};

	x->state = "failed";
	x->fault = server_fault_name(why->fault);
	save_list(s);
	s->serving = NULL;
	s->is_server_failed = true;
	return sweep_fail(s, failure_path(s, x->serve), &f, e);
}

static int start(struct sweep *s, struct sweep_start *x, struct err *e)
{
	const struct server_opts opts = {
		.argv = x->argv, .log_path = x->log,
		.show_fd = s->o->show_stdout ? STDOUT_FILENO : -1,
		.ready_timeout_s = (double)s->o->server_ready_timeout,
		.grace_s = s->o->server_grace,
	};
	struct sweep_start *last = s->start;
	struct server_failure why = { 0 };
	struct err told = { 0 };

	if (sweep_enter(s, e) < 0)
		return -1;
	if (last)
		last->next = x;
	else
		s->first_start = x;
	s->start = x;
	if (server_start(&opts, &x->hooks, &s->server, &why, &told) < 0) {
		s->server = NULL;
		if (told.code != ERR_CANCELLED)
			return start_failed(s, x, &why, &told, e);
		x->state = "cancelled";
		s->serving = NULL;
		*e = told;
		return -1;
	}
	unlink(failure_path(s, x->serve));
	learn(s, x);
	save_list(s);
	return 0;
}

int sweep_server_begin(struct sweep *s, const struct json_value *serve, struct err *e)
{
	struct sweep_start *x;

	s->is_server_failed = false;
	if (s->serving == serve)
		return 0;
	if (sweep_server_end(s, e) < 0)
		return -1;
	for (const struct sweep_start *past = s->first_start; past; past = past->next)
		s->is_server_failed |= past->serve == serve && strcmp(past->state, "failed") == 0;
	if (s->is_server_failed)
		return 0;
	x = new_start(s, serve);
	s->serving = serve;
	sweep_line(s, "[BEGIN SERVER]");
	sweep_line(s, "Server overrides: %s", sweep_comb_text(s, serve));
	sweep_line(s, "Server command: %s", sweep_argv_text(s, x->argv));
	return s->o->dry_run ? 0 : start(s, x, e);
}

int sweep_server_ready(struct sweep *s, const struct json_value *serve, bool is_first,
		       struct err *e)
{
	enum sweep_restart how = sweep_opts_restart(s->o);
	bool is_used = s->server && s->start->runs > 0;
	struct err died = { 0 };

	if (s->server && sweep_server_survived(s, false, &died) < 0)
		sweep_warn(s, "%s; it is started again", died.text);
	if (s->server && is_used && (how == SWEEP_RESTART_RUN ||
				     (how == SWEEP_RESTART_POINT && is_first)) &&
	    sweep_server_end(s, e) < 0)
		return -1;
	return sweep_server_begin(s, serve, e);
}

/* ---- end ---- */

static int end(struct sweep *s, const char *state, const char *fault, struct err *e)
{
	int rc = 0;

	if (!s->serving)
		return 0;
	s->serving = NULL;
	if (s->server) {
		s->start->state = state;
		s->start->fault = fault;
		rc = server_stop(s->server, NULL, e);
		s->server = NULL;
		save_list(s);
	}
	sweep_line(s, "[END SERVER]");
	return rc;
}

int sweep_server_survived(struct sweep *s, bool is_suspect, struct err *e)
{
	const struct timespec step = { .tv_nsec = DEATH_STEP_NS };
	struct server_failure why = { 0 };
	struct err ignored = { 0 };

	for (int i = 0; is_suspect && s->server && i < DEATH_STEPS; i++)
		if (server_is_alive(s->server))
			nanosleep(&step, NULL);
	if (!s->server || server_check(s->server, &why, e) == 0)
		return 0;
	end(s, "died", server_fault_name(why.fault), &ignored);
	return -1;
}

int sweep_server_end(struct sweep *s, struct err *e)
{
	struct err ignored = { 0 };

	if (s->server && sweep_server_survived(s, false, &ignored) < 0)
		return 0;
	return end(s, "stopped", NULL, e);
}

int sweep_server_after(struct sweep *s, bool is_warmup, struct err *e)
{
	bool is_last = !is_warmup && sweep_opts_restart(s->o) == SWEEP_RESTART_RUN;
	struct err ignored = { 0 };

	if (!s->server)
		return 0;
	s->start->runs += !is_warmup;
	if (s->after_cmd)
		return sweep_command(s, s->after_cmd, NULL, e) == 0 ? 0 : -1;
	if (is_last || server_reset_caches(s->server, e) == 0)
		return 0;
	end(s, "stopped", NULL, &ignored);
	return -1;
}
