/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h - a program that drives an inference engine for us, and the exchange with it.
 *
 * docs/guide/adapters.md is the protocol: frames of JSON over a socket pair whose other end is
 * descriptor 3 of the program. What it prints is only its log. It sends the first message (hello),
 * then answers one question at a time; between question and answer it may report progress, which
 * counts as a sign of life.
 *
 * The program runs below a keeper (proc/keeper.h): nothing of it outlives worker_stop() or us.
 * Every failure has a category, one sentence and the end of its log; after a fault that is not an
 * answer ("error" frames are answers) the exchange is over and only worker_stop() may be called.
 * Not thread-safe, no globals; any number at once.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "host/proc/exit_reason.h"

#define WORKER_PROTOCOL 1
#define WORKER_FD 3
#define WORKER_FD_VARIABLE "PROFLLM_WORKER_FD"

enum worker_fault {
	WORKER_FAULT_NONE,
	WORKER_FAULT_NOT_FOUND,   /* the program does not exist or cannot be executed */
	WORKER_FAULT_PACKAGE,     /* a package or library that it needs is not installed */
	WORKER_FAULT_FLAG,        /* an argument that the engine does not accept */
	WORKER_FAULT_MODEL,       /* a model that does not exist */
	WORKER_FAULT_MEMORY,      /* of the GPU or of the host */
	WORKER_FAULT_UNSUPPORTED, /* the engine cannot do what was asked */
	WORKER_FAULT_DISK,
	WORKER_FAULT_KILLED,      /* by signal 9 from an unknown sender */
	WORKER_FAULT_CRASHED,     /* ended without an answer, for another reason */
	WORKER_FAULT_HUNG,        /* gave no sign of life for too long, or did not load in time */
	WORKER_FAULT_PROTOCOL,    /* sent an invalid answer */
	WORKER_FAULT_CANCELLED,
	WORKER_FAULT_OTHER,       /* described by its own sentence */
};
/* "out of memory", "crashed", ...: for messages and result files. */
const char *worker_fault_name(enum worker_fault fault);

/* Why an engine does not answer. */
struct worker_failure {
	enum worker_fault fault;
	bool has_code;
	int code;            /* exit status, or minus the signal */
	char reason[512];    /* its sentence, or the most informative line of the log; or "" */
	char tail[4096];     /* the log's last lines */
};

/* All may be NULL. Texts without a newline. */
struct worker_hooks {
	void *self;
	void (*line)(void *self, const char *text); /* text from the worker for the user */
	void (*warn)(void *self, const char *text); /* our warnings, and the log's last lines */
	void (*progress)(void *self, uint64_t done, uint64_t total);
	const atomic_bool *cancel; /* when set, the call in progress ends with ERR_CANCELLED */
};

struct worker_opts {
	const char *name;          /* in messages: "the vllm worker" */
	char *const *argv;         /* argv[0] is looked for in PATH; ended by NULL */
	char *const *env;          /* "NAME=VALUE" lines that replace ours; NULL: none */
	const char *log_path;      /* appended to, its folder is created; NULL: a nameless file */
	int show_fd;               /* -1, or: the log is copied there as it grows */
	double load_s;             /* until hello, and until the answer to "load" */
	double silence_s;          /* between two signs of life during any other call */
	double grace_s;            /* between TERM and KILL at the end */
	struct worker_hooks hooks;
};

struct engine_worker;

/*
 * Starts it and waits for its hello. -1: *why (may be NULL) for programs, e in one sentence
 * (ERR_USAGE: no such program); hooks.warn got the end of the log, and no process is left.
 */
int worker_start(const struct worker_opts *o, struct engine_worker **out,
		 struct worker_failure *why, struct err *e);

/* The content of its hello; texts live as long as w. */
struct worker_hello {
	const char *engine, *version; /* "" if not reported */
	struct json_slice features;   /* an array of texts */
	double spawn_s;               /* from its start to its hello */
	int64_t began_ns;             /* its start, CLOCK_MONOTONIC */
};
const struct worker_hello *worker_hello(const struct engine_worker *w);
bool worker_has(const struct engine_worker *w, const char *feature);

struct worker_reply {
	struct json_slice body;       /* the whole answer; lives until the next call */
	int64_t asked_ns, answered_ns; /* CLOCK_MONOTONIC: before the first byte, after the last */
};

/*
 * Asks one question: members ("\"n\":1,\"profile\":false", without braces) are added to id and
 * type; may be NULL. -1: an "error" answer (the worker lives on) or any fault. ERR_USAGE: an
 * argument of the user's that the engine refuses.
 */
int worker_call(struct engine_worker *w, const char *type, const struct buf *members,
		struct worker_reply *out, struct worker_failure *why, struct err *e);

/*
 * For answers whose content contradicts the protocol: ends the exchange, because the worker cannot
 * be trusted. Returns -1 with e: "the vllm worker broke the protocol: ...".
 */
__attribute__((format(printf, 3, 4)))
int worker_distrust(struct engine_worker *w, struct err *e, const char *fmt, ...);

/*
 * Asks it to shut down, ends what is left of its tree and frees w; accepts NULL. After a fault or a
 * cancellation it is not asked. -1: something could not be ended.
 */
int worker_stop(struct engine_worker *w, struct err *e);
