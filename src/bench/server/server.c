/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - from a server's start to its end, and emptying its caches; see server.h. */
#include "bench/server/server.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "host/proc/keeper.h"
#include "host/proc/exit_reason.h"
#include "host/proc/roster.h"
#include "host/proc/tool.h"
#include "host/proc/tree.h"
#include "input/fetch/fetch.h"

struct server {
	struct server_opts opts;     /* argv and log_path are copies */
	struct server_hooks hooks;
	struct server_address where;
	struct keeper *keeper;
	int log_fd;
	int64_t log_began;           /* bytes that stood in the log before */
	double startup_s;
	struct oom_counter oom;      /* since its start */
};

/* ---- why it ended ---- */

static const char *const names[] = {
	[SERVER_FAULT_NONE] = "none",
	[SERVER_FAULT_NOT_FOUND] = "command not found",
	[SERVER_FAULT_PORT] = "port taken",
	[SERVER_FAULT_MEMORY] = "out of memory",
	[SERVER_FAULT_FLAG] = "bad flag",
	[SERVER_FAULT_MODEL] = "model not found",
	[SERVER_FAULT_DISK] = "out of disk",
	[SERVER_FAULT_KILLED] = "killed",
	[SERVER_FAULT_CRASH] = "crash",
	[SERVER_FAULT_DEADLINE] = "not ready in time",
	[SERVER_FAULT_CANCELLED] = "cancelled",
};

const char *server_fault_name(enum server_fault fault)
{
	return names[fault];
}

enum server_fault server_fault_of(struct str log, bool has_code, int code,
				  const struct oom_counter *oom, struct str *reason)
{
	static const enum server_fault faults[] = {
		[LAST_SIGN_NONE] = SERVER_FAULT_CRASH,
		[LAST_SIGN_DISK] = SERVER_FAULT_DISK,
		[LAST_SIGN_PORT] = SERVER_FAULT_PORT,
		[LAST_SIGN_MEMORY] = SERVER_FAULT_MEMORY,
		[LAST_SIGN_FLAG] = SERVER_FAULT_FLAG,
		[LAST_SIGN_MODEL] = SERVER_FAULT_MODEL,
		[LAST_SIGN_KILLED] = SERVER_FAULT_KILLED,
	};

	return faults[exit_reason_sign(log, has_code, code, oom, reason)];
}

/* Fills why from the server's log. */
static void explain(const struct server *s, const struct keeper_end *end,
		    struct server_failure *why)
{
	struct buf log = { 0 };
	struct str reason;

	*why = (struct server_failure){ .has_code = end->is_known, .code = end->code };
	exit_reason_read(s->log_fd, s->log_began, &log);
	why->fault = server_fault_of(buf_str(&log), end->is_known, end->code, &s->oom, &reason);
	if (exit_reason_is_disk_full(s->log_fd))
		why->fault = SERVER_FAULT_DISK;
	snprintf(why->reason, sizeof(why->reason), "%.*s",
		 (int)(reason.n < sizeof(why->reason) ? reason.n : sizeof(why->reason) - 1),
		 reason.n ? reason.p : "");
	exit_reason_tail(buf_str(&log), why->tail, sizeof(why->tail));
	buf_release(&log);
}

/* The log's last lines go to hooks->warn when they say something. */
static void show_tail(const struct server *s, const struct server_failure *why)
{
	struct buf whose = { 0 };

	buf_printf(&whose, "the server's log%s%s", s->opts.is_log_removed ? "" : " ",
		   s->opts.is_log_removed ? "" : s->opts.log_path);
	exit_reason_show(why->tail, whose.data, s->hooks.warn, s->hooks.self);
	buf_release(&whose);
}

#define HEALTH_TIMEOUT_MS 2000
#define POLL_MIN_MS 20
#define POLL_MAX_MS 100  /* startup_s is as exact as this */
#define PORT_WAIT_NS 5000000000 /* for a port to be free once its tree is gone */
#define PORT_PAUSE_MS 20
#define DEV_MODE "VLLM_SERVER_DEV_MODE=1"

static void server_warn(const struct server_hooks *h, const char *text)
{
	if (h->warn)
		h->warn(h->self, text);
}

/* Requests to a server on this machine bypass proxies. */
static struct fetch_opts fetch_opts_of(const struct server *s, int64_t timeout_ms)
{
	const char *host = s->where.host;
	bool is_here = s->where.uds[0] || !host[0] || strcmp(host, "localhost") == 0 ||
		       strncmp(host, "127.", 4) == 0 || strcmp(host, "0.0.0.0") == 0 ||
		       strcmp(host, "::") == 0 || strcmp(host, "::1") == 0;

	return (struct fetch_opts){
		.is_insecure = true, .timeout_ms = timeout_ms, .proxy = is_here ? "" : NULL,
		.unix_socket = s->where.uds[0] ? s->where.uds : NULL, .cancel = s->hooks.cancel,
	};
}

/* ---- what is copied ---- */

static char **copy_words(char *const *argv)
{
	size_t n = 0;
	char **copy;

	while (argv[n])
		n++;
	copy = mem_array(n + 1, sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = mem_text(argv[i]);
	return copy;
}

static void free_words(char *const *argv)
{
	for (size_t i = 0; argv && argv[i]; i++)
		free(argv[i]);
	free((void *)(uintptr_t)argv);
}

static void server_free(struct server *s)
{
	if (s->log_fd >= 0)
		close(s->log_fd);
	free_words(s->opts.argv);
	free((char *)(uintptr_t)s->opts.log_path);
	free((char *)(uintptr_t)s->opts.ready_log);
	free(s);
}

/* ---- starting ---- */

static int fail(struct server_failure *why, enum server_fault fault, int rc)
{
	why->fault = fault;
	return rc;
}

static int refuse_taken(const struct server *s, pid_t holder, struct err *e)
{
	char command[TREE_COMMAND_BYTES] = "";
	struct buf what = { 0 };

	if (s->where.uds[0])
		buf_printf(&what, "socket %s", s->where.uds);
	else
		buf_printf(&what, "port %u", s->where.port);
	if (holder) {
		tree_command(holder, command);
		err_set(e, ERR_PORT_TAKEN, "%s is already served by PID %d (%s)", what.data, (int)holder,
			command[0] ? command : "unknown");
	} else {
		err_set(e, ERR_PORT_TAKEN, "%s is already served by a process that cannot be seen", what.data);
	}
	buf_release(&what);
	return -1;
}

static int open_log(struct server *s, struct err *e)
{
	char *copy = mem_text(s->opts.log_path);
	int rc = file_mkdirs(dirname(copy), e);
	struct stat st;

	free(copy);
	if (rc < 0)
		return -1;
	s->log_fd = open(s->opts.log_path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (s->log_fd < 0 || fstat(s->log_fd, &st) < 0)
		return err_set(e, ERR_IO, "cannot write the server's log %s: %s", s->opts.log_path,
			       strerror(errno));
	s->log_began = st.st_size;
	return 0;
}

static int launch(struct server *s, struct server_failure *why, struct err *e)
{
	char *own[] = { (char[]){ DEV_MODE }, NULL }, **envp;
	pid_t holder;
	int error, rc;

	roster_clean(&(struct roster_hooks){ s->hooks.self, s->hooks.warn, s->hooks.cancel });
	if (port_look((uint16_t)s->where.port, s->where.uds, 0, &holder) != PORT_FREE)
		return fail(why, SERVER_FAULT_PORT, refuse_taken(s, holder, e));
	if (open_log(s, e) < 0)
		return fail(why, SERVER_FAULT_DISK, -1);
	envp = environment_with(own, s->opts.env);
	rc = keeper_start(&(struct keeper_opts){
		.argv = s->opts.argv, .envp = envp, .out_fd = s->log_fd, .err_fd = s->log_fd,
		.follow_fd = s->opts.show_fd, .grace_s = s->opts.grace_s,
		.when_orphaned = s->opts.when_orphaned }, &s->keeper, &error, e);
	free(envp);
	if (rc < 0)
		return fail(why, error ? SERVER_FAULT_NOT_FOUND : SERVER_FAULT_CRASH, -1);
	oom_begin(&s->oom, keeper_root(s->keeper));
	return 0;
}

/* ---- until it is ready ---- */

/* Status of the answer to a GET, or a POST of nothing; 0 with e: there was none. */
static long ask(const struct server *s, const char *path, bool is_post, int64_t timeout_ms,
		struct err *e)
{
	struct fetch_opts o = fetch_opts_of(s, timeout_ms);
	struct fetch_reply reply = { 0 };
	struct buf url = { 0 };
	long status = 0;

	buf_printf(&url, "%s%s", s->where.url, path);
	if (fetch(url.data, is_post ? &STR("") : NULL, &o, &reply, e) == 0)
		status = reply.status;
	fetch_reply_release(&reply);
	buf_release(&url);
	return status;
}

static bool is_in_log(const struct server *s)
{
	struct buf log = { 0 };
	bool is_there;

	exit_reason_read(s->log_fd, s->log_began, &log);
	is_there = log.len && memmem(log.data, log.len, s->opts.ready_log,
				     strlen(s->opts.ready_log));
	buf_release(&log);
	return is_there;
}

static bool is_listening(const struct server *s)
{
	enum port_state state = port_look((uint16_t)s->where.port, s->where.uds,
					  keeper_root(s->keeper), NULL);

	return state == PORT_IN_TREE || (s->where.is_elsewhere && state == PORT_FOREIGN);
}

static bool is_ready(const struct server *s)
{
	switch (s->opts.ready) {
	case SERVER_READY_PORT: return is_listening(s);
	case SERVER_READY_LOG: return is_in_log(s);
	case SERVER_READY_STARTED: return true;
	case SERVER_READY_HEALTH: break;
	}
	return ask(s, "/health", false, HEALTH_TIMEOUT_MS, NULL) == 200;
}

/* The socket of another machine's address cannot be seen here: then the answer is accepted. */
static bool is_answer_ours(const struct server *s, pid_t *holder)
{
	return port_look((uint16_t)s->where.port, s->where.uds, keeper_root(s->keeper), holder) !=
	       PORT_FOREIGN || s->where.is_elsewhere;
}

/* What /health said in the end, and where it was asked. */
static void add_health(const struct server *s, const char *where, struct buf *out)
{
	struct err e = { 0 };
	long status = ask(s, "/health", false, HEALTH_TIMEOUT_MS, &e);

	buf_printf(out, "/health at %s (--host, --port or --uds of the command): ",
		   where);
	if (status)
		buf_printf(out, "it answers %ld, not 200", status);
	else if (port_look((uint16_t)s->where.port, s->where.uds, 0, NULL) == PORT_FREE &&
		 !s->where.is_elsewhere)
		buf_add_text(out, "nothing listens there, so the server was still loading, or it listens "
			     "on another port");
	else
		buf_add_text(out, e.text);
}

/* With a missed deadline, show which address was asked. */
static int say_late(const struct server *s, struct err *e)
{
	const char *where = s->where.uds[0] ? s->where.uds : s->where.url;
	struct buf text = { 0 };

	if (s->opts.ready == SERVER_READY_LOG)
		buf_printf(&text, "no line of its log holds '%s'", s->opts.ready_log);
	else if (s->opts.ready == SERVER_READY_PORT)
		buf_printf(&text, "it did not listen at %s", where);
	else
		add_health(s, where, &text);
	server_warn(&s->hooks, text.data);
	buf_release(&text);
	return err_set(e, ERR_RUN, "Server failed to become ready within %g seconds.",
		       s->opts.ready_timeout_s);
}

/* "Server process crashed with return code 1 (port taken: OSError: ...)" */
static int say_crash(const struct server_failure *why, struct err *e)
{
	const char *name = server_fault_name(why->fault);
	int rc;

	if (!why->has_code)
		rc = err_set(e, ERR_RUN, "Server process was killed together with its keeper");
	else if (why->code == 0 && why->fault == SERVER_FAULT_CRASH)
		rc = err_set(e, ERR_RUN, "Server process ended with return code 0 before it was ready; the "
			     "command must not return while the server runs (docker run without -d)");
	else if (why->reason[0])
		rc = err_set(e, ERR_RUN, "Server process crashed with return code %d (%s: %s)",
			     why->code, name, why->reason);
	else
		rc = err_set(e, ERR_RUN, "Server process crashed with return code %d (%s)", why->code,
			     name);
	return rc;
}

static int await_ready(struct server *s, struct server_failure *why, struct err *e)
{
	int64_t began_ns = clock_mono_ns(), elapsed_ns = 0;
	struct keeper_end end = { 0 };
	int pause_ms = POLL_MIN_MS;
	pid_t holder;

	for (;;) {
		if (s->hooks.cancel && atomic_load(s->hooks.cancel))
			return fail(why, SERVER_FAULT_CANCELLED,
				    err_set(e, ERR_CANCELLED, "stopped before the server was ready"));
		if (is_ready(s)) {
			s->startup_s = (double)(clock_mono_ns() - began_ns) / 1e9;
			if (s->opts.ready != SERVER_READY_HEALTH || is_answer_ours(s, &holder))
				return 0;
			return fail(why, SERVER_FAULT_PORT, refuse_taken(s, holder, e));
		}
		if (keeper_has_ended(s->keeper, pause_ms, &end)) {
			explain(s, &end, why);
			show_tail(s, why);
			return say_crash(why, e);
		}
		elapsed_ns = clock_mono_ns() - began_ns;
		if (s->hooks.waiting)
			s->hooks.waiting(s->hooks.self, (double)elapsed_ns / 1e9);
		if ((double)elapsed_ns / 1e9 > s->opts.ready_timeout_s) {
			explain(s, &end, why);
			show_tail(s, why);
			return fail(why, SERVER_FAULT_DEADLINE, say_late(s, e));
		}
		if ((pause_ms = pause_ms * 3 / 2) > POLL_MAX_MS)
			pause_ms = POLL_MAX_MS;
	}
}

int server_start(const struct server_opts *o, const struct server_hooks *hooks,
		 struct server **out, struct server_failure *why, struct err *e)
{
	struct server_failure unasked = { 0 };
	struct server *s = mem_alloc(sizeof(*s));

	assert(o->argv && o->argv[0] && o->log_path);
	assert(o->ready != SERVER_READY_LOG || o->ready_log);
	why = why ? why : &unasked;
	*why = (struct server_failure){ 0 };
	s->opts = *o;
	s->opts.argv = copy_words(o->argv);
	s->opts.log_path = mem_text(o->log_path);
	s->opts.ready_log = mem_text(o->ready_log);
	s->opts.host = NULL;
	s->hooks = hooks ? *hooks : (struct server_hooks){ 0 };
	s->log_fd = -1;
	if (server_address(s->opts.argv, &s->where, e) < 0 ||
	    (o->host && server_at(&s->where, o->host, o->port, e) < 0)) {
		fail(why, SERVER_FAULT_FLAG, -1);
	} else if (launch(s, why, e) == 0) {
		s->opts.env = NULL;
		if (await_ready(s, why, e) == 0) {
			*out = s;
			return 0;
		}
		keeper_stop(s->keeper, NULL, NULL);
	}
	server_free(s);
	return -1;
}

/* ---- while it runs ---- */

const struct server_address *server_where(const struct server *s)
{
	return &s->where;
}

const char *server_url(const struct server *s)
{
	return s->where.url;
}

double server_startup_s(const struct server *s)
{
	return s->startup_s;
}

pid_t server_root(const struct server *s)
{
	return keeper_root(s->keeper);
}

bool server_is_alive(struct server *s)
{
	return !keeper_has_ended(s->keeper, 0, NULL);
}

int server_check(struct server *s, struct server_failure *why, struct err *e)
{
	struct server_failure unasked = { 0 };
	struct keeper_end end;

	why = why ? why : &unasked;
	if (!keeper_has_ended(s->keeper, 0, &end))
		return 0;
	explain(s, &end, why);
	return say_crash(why, e);
}

/* ---- stopping ---- */

int server_stop(struct server *s, const atomic_bool *hurry, struct err *e)
{
	int64_t until_ns = clock_mono_ns() + PORT_WAIT_NS;
	pid_t holder = 0;
	int rc;

	if (!s)
		return 0;
	rc = keeper_stop(s->keeper, hurry, e);
	if (rc < 0)
		err_wrap(e, "of the server %s", s->opts.argv[0]);
	/* A socket of another process is not waited for: the next start names it. */
	while (rc == 0 && clock_mono_ns() < until_ns &&
	       port_look((uint16_t)s->where.port, s->where.uds, 0, &holder) != PORT_FREE && !holder)
		poll(NULL, 0, PORT_PAUSE_MS);
	server_free(s);
	return rc;
}

/* ---- its caches ---- */

#define RESET_TIMEOUT_MS 60000
#define FLUSH_TRIES 20
#define FLUSH_PAUSE_NS 250000000

static int post(const struct server *s, const char *path, long *status, struct err *e)
{
	*status = ask(s, path, true, RESET_TIMEOUT_MS, e);
	return *status ? 0 : err_wrap(e, "cannot reset the server's caches");
}

static void say_where(const struct server *s)
{
	struct buf text = { 0 };

	buf_printf(&text, "Resetting caches at %s", s->where.url);
	if (s->hooks.line)
		s->hooks.line(s->hooks.self, text.data);
	buf_release(&text);
}

/* Older releases answer 404 to a missing endpoint; to all of them only without dev mode. */
static int reset_vllm(const struct server *s, struct err *e)
{
	static const char *const paths[] = {
		"/reset_prefix_cache", "/reset_mm_cache", "/reset_encoder_cache",
	};
	unsigned done = 0;
	long status;

	say_where(s);
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (post(s, paths[i], &status, e) < 0)
			return -1;
		if (status >= 200 && status < 300)
			done++;
		else if (status != 404 && status != 405)
			return err_set(e, ERR_RUN, "cannot reset the server's caches: POST %s%s was answered with %ld",
				       s->where.url, paths[i], status);
	}
	if (!done)
		return err_set(e, ERR_RUN, "cannot reset the server's caches: %s has none of the /reset_... "
			       "endpoints, which vLLM has only with VLLM_SERVER_DEV_MODE=1; use --after-bench-cmd",
			       s->where.url);
	return 0;
}

static int reset_sglang(const struct server *s, struct err *e)
{
	long status = 0;

	say_where(s);
	for (int i = 0; i < FLUSH_TRIES; i++) {
		if (post(s, "/flush_cache", &status, e) < 0)
			return -1;
		if (status >= 200 && status < 300)
			return 0;
		if (status != 400)
			break;
		nanosleep(&(struct timespec){ 0, FLUSH_PAUSE_NS }, NULL);
	}
	return err_set(e, ERR_RUN, "cannot reset the server's caches: POST %s/flush_cache was answered with %ld",
		       s->where.url, status);
}

static bool has_disk_cache(char *const *argv)
{
	for (size_t i = 0; argv[i]; i++)
		if (strcmp(argv[i], "--vector-disk-cache") == 0)
			return true;
	return false;
}

bool server_kind_resets(enum server_kind kind)
{
	return kind == SERVER_VLLM || kind == SERVER_SIM || kind == SERVER_SGLANG ||
	       kind == SERVER_INFINITY;
}

int server_reset_caches(struct server *s, struct err *e)
{
	switch (s->where.kind) {
	case SERVER_VLLM:
	case SERVER_SIM:
		return reset_vllm(s, e);
	case SERVER_SGLANG:
		return reset_sglang(s, e);
	case SERVER_INFINITY:
		if (!has_disk_cache(s->opts.argv))
			return 0;
		return err_set(e, ERR_RUN, "Infinity server uses caching but does not expose a method to reset "
			       "the cache");
	case SERVER_LLAMACPP:
	case SERVER_OTHER:
		break;
	}
	return err_set(e, ERR_RUN, "No implementation of `reset_caches` for `%s` server. Please specify a "
		       "custom command via `--after-bench-cmd`.", s->opts.argv[0]);
}
