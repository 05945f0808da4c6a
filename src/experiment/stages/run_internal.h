/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_internal.h - what the files that run an experiment share. Private to them.
 *
 *   run.c            the order of the stages, and the end of an outcome: traces, the machine,
 *                    the environment
 *   run_servers.c    servers started, watched, queried, kept or stopped
 *   run_bench.c      load on the serving server; engines without a server of ours
 *   run_capacity.c   the search for the largest load
 *   profiling.c      the profiler and its traces; the machine while an offline engine runs
 *
 * A stage returns 0, or -1 after run_fail(): the first failure is the outcome's.
 *
 * While servers are started and load runs, a guard (a thread, telemetry/telemetry.h) watches for
 * cancellation and for servers that end by themselves; both set held.stop, which is the cancel flag
 * of everything that is waited for.
 */
#pragma once
#include "bench/server/capacity.h"
#include "experiment/config/container.h"
#include "experiment/stages/allocate.h"
#include "experiment/stages/run.h"
#include "host/telemetry/system.h"
#include "host/telemetry/telemetry.h"

#define RUN_WARNINGS_MAX 200 /* kept in the document; all of them are said */

/* One server that we started, or that is attached. */
struct held_server {
	_Atomic(struct server *) server; /* NULL: attached, or not (any more) there */
	struct container container;
	bool is_container;
	double grace_s;
	const char *name, *log;     /* log NULL: attached */
	const char *started_by;     /* run_id of the experiment that did; NULL: attached */
	char *const *argv, *const *env; /* of the command; argv NULL: attached */
	const char *version;        /* NULL: not reported */
	struct capacity capacity;
	struct str reported;        /* JSON of server/engine_report.h; empty: not asked */
	double startup_s;
	bool is_ended;              /* by itself */
	bool is_reused;             /* another experiment has started it */
};

/* What may be kept beyond one experiment. Texts are in arena. */
struct experiment_held {
	struct gpu_set *gpus;
	struct allocation allocation;
	struct role_at *at;
	struct held_server *server;
	size_t n;
	size_t *started, n_started; /* in which order */
	bool had_servers;           /* one was started: GPU memory may come back late */
	const char *trace_dir;      /* the folder given to the servers; NULL: not profiled */
	bool is_trace_dir_own;      /* used only by the experiment that started them */
	/* Receivers of the servers' hooks: change from member to member. */
	const struct experiment_hooks *hooks;
	struct run *run;            /* NULL: warnings are not collected */
	atomic_bool stop;
	atomic_int died;            /* which server ended by itself; -1: none */
	struct ticker guard;
	struct arena arena;
};

struct run {
	const struct experiment *x;
	const struct experiment_hooks *hooks;
	struct outcome *out;
	struct experiment_held *held;
	enum outcome_stage stage;
	bool has_failed;
	int64_t began_mono_ns;
	struct trace_place traces;
	bool is_profiled;           /* the profiler was started, as far as it is known */
	bool needs_empty_caches;    /* of servers that are reused */
	bool has_full_caches;       /* a server that is reused did not empty its own */
};

void run_line(const struct run *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void run_warn(struct run *r, const char *text);
void run_keep_warning(struct run *r, const char *text); /* for the document, said elsewhere */
/* Passes the lines of notes on as warnings and empties it. */
void run_notes(struct run *r, struct buf *notes);
bool run_is_cancelled(const struct run *r); /* cancelled by the caller */
/* Returns -1. Only the first failure counts. category is a literal or in the outcome's arena. */
int run_fail(struct run *r, const char *category, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Stopped by request. */
int run_interrupted(struct run *r);
struct str run_keep(struct run *r, struct buf *text); /* moves it to the outcome */
/* A file in the experiment's folder; in the held arena. */
char *run_path(const struct run *r, const char *name);

/* ---- run_servers.c ---- */

/*
 * Starts all that are not attached: at once unless one waits for another (`after`) or for a GPU on
 * which another one starts.
 */
int servers_start(struct run *r);
/*
 * Reuses running servers after emptying their caches. -1 without a failure: they must be started
 * again, because one of them is gone or keeps its caches.
 */
int servers_reuse(struct run *r);
/* Fills in the outcome's servers, whatever happened to them. */
void servers_tell(struct run *r);
void guard_begin(struct run *r);
void guard_end(struct run *r);
/*
 * Whether a server has ended by itself; then the outcome says which and why. is_suspect: its
 * connections have ended, so its process gets half a second to follow.
 */
bool servers_died(struct run *r, bool is_suspect);
/* Ends them in reverse order; failures are warnings. */
void servers_stop(struct experiment_held *held, const struct experiment_hooks *hooks);
bool servers_are_alive(const struct experiment_held *held);

/* ---- benchmarks ---- */

/* Checks that its options fit together, before anything is started; nothing is kept. */
int bench_serve_check(struct run *r);
int bench_serve(struct run *r);
/* The largest load within limits, where search.find asks for it (bench/sweep/find.h). */
int bench_capacity(struct run *r);
int bench_offline(struct run *r);

/* ---- the machine while an engine without a server runs ---- */

struct run_watch {
	struct system_watch *system; /* NULL: nothing is watched */
	int64_t began_ns;
	int64_t from_ns, to_ns;      /* what is measured; 0: all of it */
};
void watch_begin_offline(struct run *r, struct run_watch *w);
/* Sets what is in progress. */
void watch_progress(struct run_watch *w, const char *what);
/* Called once the outcome has its result. */
void watch_end_offline(struct run *r, struct run_watch *w);

/* ---- collect.c ---- */

