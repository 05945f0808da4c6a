/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_internal.h - what the drivers of an engine share, and which program drives it.
 *
 *   offline_http.c       the server: started or only asked; what it is; the command that starts it
 *   offline_http_run.c   a batch: plan, load and record, as every load of ours
 *   offline_worker.c     the program: found, started, asked
 */
#pragma once
#include "bench/offline/offline.h"
#include "bench/serve/point.h"
#include "bench/serve/remote.h"
#include "bench/server/server.h"
#include "client/load/load.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"

struct http {
	struct arena arena;
	struct offline_hooks hooks;
	const struct offline_opts *opts;
	char **argv;             /* of the server that is started; NULL: --base-url */
	char *const *env;        /* added to its environment */
	const char *log_path;
	bool is_log_ours;        /* removed at the end */
	off_t log_began;         /* what stood in it before this start */
	struct server *server;
	const char *url;
	char *model;             /* as the server calls it */
	struct remote remote;    /* for what is asked outside the measurement */
	bool is_ready, has_sleep;

	const struct workload *w; /* the batch; borrowed */
	uint32_t *index;
	size_t n;
	bool is_list_refused;    /* the server takes one prompt a request */
	bool is_without_priorities; /* those of the batch are left out of the bodies */
	bool is_text_noted;
};

/* The command and where the server will listen; ERR_USAGE. */
int http_words(struct http *h, char *const *engine_argv, struct err *e);

/*
 * POST (body NULL: an empty one). The status, or -1 when there was no answer; answer may be NULL.
 */
long http_post(struct http *h, const char *path, const struct str *body, struct buf *answer,
	       struct err *e);
/* Whether the server that we started has ended; e then says how. */
bool http_has_died(struct http *h, struct err *e);
void http_warn(const struct http *h, const char *text);

int http_put(void *state, const struct offline_batch *batch, struct err *e);
int http_run(void *state, const struct offline_run *run, struct offline_outcome *out,
	     struct err *e);

/*
 * Finds the program that drives a backend's engine. Private to run/.
 *
 * --worker-cmd is that program, if given. Otherwise it is this executable (sim), or a file that
 * comes with us, run directly (llama) or by an interpreter that has the engine's package.
 *
 * Such files are looked for in $PROFLLM_WORKERS, else in "workers" next to our executable, else in
 * "../libexec/profllm/workers" from there. Python is --python, $PROFLLM_PYTHON, that of
 * $VIRTUAL_ENV, the one that `vllm` of PATH is started with, or python3 of PATH.
 */

struct offline_program {
	char **argv;         /* ended by NULL; in the arena, with its words */
	const char *python;  /* the interpreter; NULL: none is needed */
	bool is_wrapped;     /* the command begins with Nsight Systems */
};

/* ERR_USAGE: no such program, file or interpreter; the message lists where it was looked for. */
int offline_find(const struct offline_start *how, struct arena *a, struct offline_program *out,
		 struct err *e);

/* The value in effect of an engine's argument, of its arguments alone; as engine_argv_text. */
const char *offline_argv_text(char *const *argv, const char *name, struct arena *a);

/* The interpreter that a script's first line names, if it is a Python; else "". */
struct str offline_interpreter(struct str script);
