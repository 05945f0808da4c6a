/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server.h - a server under test that we start and stop (sweep spec 7.3).
 *
 * server_start() returns when *our* process answers /health with 200, or says why it will not: the
 * category of the failure, upstream's sentence, and the end of the log. server_stop() returns when
 * nothing of it is left. In between, server_is_alive() is cheap enough to be called often, from any
 * thread. If we are killed, its tree ends by itself (proc/keeper.h).
 *
 * The kind of server and its address are read from the words of its command, wherever they are:
 * `env X=1 vllm serve`, `python -m vllm.entrypoints.openai.api_server`, `--port=8001`, `--uds
 * PATH`. The last of several --port is used, as in servers. 0.0.0.0 is reached at 127.0.0.1.
 *
 * An answer counts only when the listening socket belongs to the server's own tree (proc/tree.h): a
 * server that was left running on the port is named instead of being measured. Commands that run
 * the server elsewhere (docker, podman, ...) are trusted when the port was free before.
 *
 * /health shows readiness, unless the options name another sign: a listening port, a line of the
 * log, the start alone. They may also name the address, for commands that do not show it.
 *
 * Its output goes to a log file. VLLM_SERVER_DEV_MODE=1 is added to its environment, without which
 * vLLM has no way to reset its caches. No globals: several may run at once.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/str.h"

enum server_kind {
	SERVER_OTHER,
	SERVER_VLLM,
	SERVER_SGLANG,
	SERVER_INFINITY,
	SERVER_LLAMACPP,
	SERVER_SIM,
};

enum server_fault {
	SERVER_FAULT_NONE,
	SERVER_FAULT_NOT_FOUND, /* there is no such command, or it cannot be executed */
	SERVER_FAULT_PORT,      /* another process listens on its port */
	SERVER_FAULT_MEMORY,    /* of the GPU or of the host */
	SERVER_FAULT_FLAG,      /* an argument it does not take */
	SERVER_FAULT_MODEL,     /* a model that is not there */
	SERVER_FAULT_DISK,      /* no room on a disk */
	SERVER_FAULT_KILLED,    /* by signal 9, of unknown origin */
	SERVER_FAULT_CRASH,     /* ended for another reason */
	SERVER_FAULT_DEADLINE,  /* did not become ready in time */
	SERVER_FAULT_CANCELLED,
};

/* The sign of readiness. */
enum server_ready {
	SERVER_READY_HEALTH, SERVER_READY_PORT, SERVER_READY_LOG, SERVER_READY_STARTED,
};

/* Whether servers of that kind can empty their caches on request. */
bool server_kind_resets(enum server_kind kind);

/* "port taken", "out of memory", ...: for messages and result files. */
const char *server_fault_name(enum server_fault fault);

/* A server's address and kind, read from its command. */
struct server_address {
	enum server_kind kind;
	bool is_elsewhere;   /* a command of containers: its sockets are not in its tree */
	unsigned port;       /* 0 with a socket file */
	char host[256];      /* as given; "localhost" by default */
	char uds[108];       /* path of a socket file, or "" */
	char url[384];       /* what requests go to, without a slash at the end */
};
/* -1 with e (ERR_USAGE) when --port is no port or --host does not fit. */
int server_address(char *const *argv, struct server_address *a, struct err *e);
/*
 * -1 with e (ERR_USAGE) when a command, of a server or a benchmark, has what only a shell does: a
 * variable before it, a pipe, a redirection. Values of variables are not in e: they may be secrets.
 */
int server_refuse_shell(char *const *argv, struct err *e);
/*
 * Replaces the address from the command; port 0: the port stays. ERR_USAGE: the name is too long.
 */
int server_at(struct server_address *a, const char *host, unsigned port, struct err *e);

/* The category of an end, by exit_reason_sign. */
struct oom_counter;
enum server_fault server_fault_of(struct str log, bool has_code, int code,
				  const struct oom_counter *oom, struct str *reason);

struct server_opts {
	char *const *argv;         /* ended by NULL */
	char *const *env;          /* "NAME=VALUE" lines added to ours, ended by NULL; may be NULL */
	const char *log_path;      /* its folder is made; an existing file is added to */
	bool is_log_removed;       /* by the caller, at the end: messages do not name it */
	int show_fd;               /* -1, or: the log is copied there as it grows (--show-stdout) */
	double ready_timeout_s;
	double grace_s;            /* between TERM and KILL */
	enum server_ready ready;   /* zero: /health answers 200 */
	const char *ready_log;     /* SERVER_READY_LOG: a line of its log that holds this */
	const char *host;          /* NULL: as its words say */
	unsigned port;             /* 0: the port in its command; otherwise the command is not
				    * read for one */
	char *const *when_orphaned; /* keeper.h: run when we are gone; ends NULL; may be NULL */
};

/* All may be NULL. */
struct server_hooks {
	void *self;
	void (*line)(void *self, const char *text); /* what upstream prints, without the newline */
	void (*warn)(void *self, const char *text); /* ours; the end of the log line by line too */
	const atomic_bool *cancel;
	void (*waiting)(void *self, double seconds); /* often, until it is ready */
};

/* Why a server is not there, or not any more. */
struct server_failure {
	enum server_fault fault;
	bool has_code;
	int code;            /* exit status, or minus the signal */
	char reason[256];    /* the line of the log that tells most; "" when none does */
	char tail[4096];     /* the log's last lines */
};

struct server;

/*
 * 0 with *out, or -1: *why (may be NULL) has the reason for programs, e has it in one sentence, and
 * hooks->warn has been given the log's last lines. Nothing of the server is left then. Before
 * starting, it ends what earlier runs left when they were killed (proc/roster.h). ERR_CANCELLED
 * when hooks->cancel was set.
 */
int server_start(const struct server_opts *o, const struct server_hooks *hooks,
		 struct server **out, struct server_failure *why, struct err *e);

const struct server_address *server_where(const struct server *s);
const char *server_url(const struct server *s);      /* "http://localhost:8000" */
double server_startup_s(const struct server *s);     /* from its start to the first good answer */
pid_t server_root(const struct server *s);           /* its whole tree descends from this process */

/* Whether its process is still running. Cheap (one poll), from any thread. */
bool server_is_alive(struct server *s);
/*
 * How it ended, once it is not alive: fills *why and e with one sentence ("Server process crashed
 * with return code -9 (out of memory: ...)") and returns -1. 0 while it is alive.
 */
int server_check(struct server *s, struct server_failure *why, struct err *e);

/*
 * Empties its caches between runs, in the way of its kind; hooks->line gets upstream's `Resetting
 * caches at URL`. -1: no known way to empty this server's caches, or it refused.
 */
int server_reset_caches(struct server *s, struct err *e);

/*
 * TERM, the grace, KILL, until nothing of its tree is left and its port is free; frees s. Accepts
 * NULL. hooks->cancel does not shorten the grace, *hurry does (may be NULL). -1: something is left.
 */
int server_stop(struct server *s, const atomic_bool *hurry, struct err *e);
