/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment.h - one experiment: the configuration and the result.
 *
 *   file ─► config ─► suite ─► struct experiment ─► experiment_run ─► struct outcome ─► document
 *           config.h  suite.h                                                         document.h
 *
 * Each arrow is one struct. A configuration is read and checked as a whole before anything is
 * started: struct experiment is const from then on. experiment_run never fails: whatever
 * happens is an outcome, and every outcome becomes a document.
 *
 * Texts live in the arena the experiment was made in; outcomes have one of their own.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/options/serve_opts.h"
#include "bench/serve/multi_turn.h"
#include "bench/server/server.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "out/compare/gate.h"

enum experiment_mode {
	MODE_SERVE, MODE_THROUGHPUT, MODE_LATENCY, MODE_STARTUP, MODE_PRIORITIZATION,
	MODE_PREFIX_CACHING, MODE_LONG_DOCUMENT, MODE_STRUCTURED, MODE_MULTI_TURN, MODE_COUNT
};
/* True for load on a server; the other modes drive an engine. */
static inline bool mode_is_served(enum experiment_mode mode)
{
	return mode == MODE_SERVE || mode == MODE_STRUCTURED || mode == MODE_MULTI_TURN;
}
/* A server's role. The load goes to the proxy if there is one, else to the serve one. */
enum server_role { ROLE_SERVE, ROLE_PREFILL, ROLE_DECODE, ROLE_PROXY, ROLE_CACHE };

/* One process, or container, of an experiment. */
struct experiment_server {
	const char *name;              /* unique in the experiment; "server" when there is one */
	enum server_role role;
	const char *url;               /* attach: the server runs already, not started by us;
				        * else NULL */
	char *const *command;          /* words before the arguments: "vllm serve", "sim"; ends NULL */
	bool is_vllm;                  /* started by us, so that defaults of vLLM's release hold */
	bool is_sim;
	const struct json_value *args; /* engine arguments given: name -> value, as written */
	const struct json_value *own;  /* what the simulator uses where nothing is given; or NULL */
	/* Values known before the start: defaults are those of the newest release. */
	const struct json_value *values;
	char *const *extra_args;       /* as they are, after args; ends NULL */
	char *const *env;              /* "NAME=VALUE"; ends NULL */
	const char *host;              /* "127.0.0.1" unless given */
	unsigned port;                 /* 0: one is reserved */
	unsigned gpus;                 /* how many it takes: by its sizes, or as written */
	double ready_timeout_s, grace_s;
	enum server_ready ready;
	const char *ready_log;         /* SERVER_READY_LOG: a line that contains this */
	const char *const *after;      /* names of servers that must be ready before; ends NULL */
	const struct json_value *container; /* NULL: a process (container.h) */
};

enum gpu_want { GPUS_AUTO, GPUS_NONE, GPUS_COUNT, GPUS_LIST };
struct experiment_resources {
	enum gpu_want want;            /* AUTO: as many as the servers need, when there are any */
	unsigned count;                /* GPUS_COUNT */
	const char *const *list;       /* GPUS_LIST: indices or UUIDs, MIG UUIDs too; ends NULL */
	bool is_shared;                /* with others that share them too: partial GPUs */
	double memory_free_min;        /* share of a GPU's memory that must be free: 0.9 */
	double wait_s;                 /* for busy GPUs and named ports; 0: no wait; INFINITY */
	unsigned port_first, port_last;
};

struct experiment_profiling {
	bool is_enabled;
	const char *tool;              /* "torch", "nsys" */
	const char *dir;               /* for traces; NULL: a folder next to the result */
	double delay_s, duration_s;    /* of the window; 0 0: the whole main run */
	double stop_timeout_s;         /* until traces have stopped growing */
};

struct experiment_telemetry {
	bool is_enabled;
	double interval_s;             /* 1 */
	bool gpu, host, process, server;
};

struct experiment_output {
	const char *path;              /* the document */
	const char *folder;            /* for logs, record, traces; next to the result,
				        * "results.d/NAME" */
	bool keeps_record, is_detailed;
	struct opt_json upload;        /* unused: `profllm run` reads it from the configuration */
	const char *dashboard;         /* where the run reports; NULL: nowhere */
	const char *compare_with;      /* unused: `profllm run` reads it; NULL: nothing */
};

/*
 * The target of a search: the largest load of this experiment, or (only in a suite, not in its
 * members) the experiment with the best value of a metric. find and best NULL: nothing.
 */
struct experiment_search {
	const char *find, *slo;        /* "rate", "concurrency"; limits (bench/sweep/slo.h) */
	double precision;              /* per cent */
	double level_s;
	const char *best;              /* "output_throughput", "p99_ttft_ms lowest" */
	struct opt_real first;         /* prompts, or seconds where benchmark.duration is given */
	double eta, share;             /* share: per cent */
	struct opt_real budget_s;
};

/*
 * How the experiments of a suite are started. Part of the suite, not of its members, like
 * experiment_search.best, so that the same experiment has the same hash wherever it runs.
 */
struct experiment_scheduler {
	const char *kind;              /* "local", "slurm", "ssh" */
	const char *hosts;             /* ssh: the file; NULL: none */
	const char *program;           /* NULL: at the path that it has here */
	const char *partition, *account, *qos; /* slurm; NULL: the site's */
	double time_limit_s;           /* slurm; 0: the partition's */
	struct opt_list args;          /* for sbatch, or for ssh */
	double poll_s;
};

struct experiment {
	const char *name, *suite;      /* suite NULL: none */
	unsigned repeat, repeats;      /* from 1 */
	bool is_one_of_many;           /* others of its suite may have used the same server */
	enum experiment_mode mode;
	struct experiment_server *server;
	size_t n_servers, serving;     /* index of the one that load goes to */
	struct serve_opts serve;       /* served modes: ready but for the address, not checked */
	struct opt_result serve_given; /* which of them were given */
	struct multi_turn_opts turns;  /* MODE_MULTI_TURN: the verb's additional options */
	struct opt_result turns_given;
	char *const *offline_argv;     /* the other modes: words that follow the verb; ends with
				        * NULL */
	struct experiment_resources resources;
	struct experiment_profiling profiling;
	struct experiment_telemetry telemetry;
	struct experiment_output output;
	struct experiment_search search;     /* find alone */
	const struct json_value *benchmark;  /* every option of the mode, defaults included */
	const struct json_value *provenance; /* object or NULL: engine_commit, ... */
	const struct json_value *tags;       /* object or NULL */
	const struct gate *require;          /* the opposites of what must hold */
	size_t n_require;
	const struct json_value *given;      /* the configuration as written, all merged */
	uint64_t hash;                 /* of all that is configured: --resume keeps equal ones */
};

/* ---- results ---- */

/* RUNNING occurs only in files: the document of a killed run stays that way. */
enum outcome_status { OUTCOME_COMPLETED, OUTCOME_PARTIAL, OUTCOME_FAILED, OUTCOME_RUNNING };
enum outcome_stage { AT_CONFIG, AT_ALLOCATE, AT_START, AT_READY, AT_BENCHMARK, AT_COLLECT };

struct outcome_gpu { int index; const char *uuid, *name; };

struct outcome_server {
	const char *const *argv;       /* what was started; ends NULL; NULL: attached */
	const char *url, *version, *log;
	struct outcome_gpu *gpu;
	size_t n_gpus;
	double startup_s;              /* NAN: not started by us, or not for this experiment */
	bool is_reused;                /* the experiment before has started it */
	const char *started_by;        /* run_id of the one that did; NULL: not started by us */
	struct str capacity;           /* JSON of server/capacity.h; empty: not reported */
	struct str reported;           /* JSON of server/engine_report.h; empty: not asked */
	const char *image_digest;      /* of its container: "NAME@sha256:..."; NULL: none, not known */
	bool is_ended;                 /* by itself, before it was stopped */
};

struct outcome_trace { const char *path; uint64_t bytes; };

struct outcome {
	char run_id[40];               /* exp_YYYYMMDD_HHMMSS_<6 hex> */
	enum outcome_status status;
	enum outcome_stage stage;      /* of the failure */
	const char *category;          /* of the failure: server_fault_name, "gpus busy", ...; or NULL */
	const char *reason;            /* one sentence; NULL: completed */
	struct str log_tail;           /* of the server that failed */
	bool is_interrupted;
	int64_t began_real_ns;         /* CLOCK_REALTIME */
	double duration_s;
	struct outcome_server *server; /* as many as the experiment has */
	struct str result;             /* JSON of the mode's result file; empty: none */
	struct str system;             /* JSON of report_system_json; empty: none */
	struct str hardware;           /* JSON of hardware_json; empty: not looked at */
	struct str environment;        /* JSON of environment_json; empty: not looked at */
	struct str provenance;         /* JSON of provenance_json; empty: not looked at */
	struct outcome_trace *trace;
	size_t n_traces;
	const char *record_path;       /* NULL: none */
	const char *const *warning;    /* said while it ran */
	size_t n_warnings;
	struct arena arena;
};
void outcome_release(struct outcome *o);

const char *experiment_mode_name(enum experiment_mode mode);   /* "serve", ... */
const char *server_role_name(enum server_role role);
const char *outcome_status_name(enum outcome_status status);   /* "completed", ... */
const char *outcome_stage_name(enum outcome_stage stage);      /* "config", ... */

struct run_sample;
struct point_early;

/* Callbacks of a run, on its thread; all may be NULL. Texts without a newline. */
struct experiment_hooks {
	void *self;
	void (*line)(void *self, const char *text);  /* progress of stages, upstream's lines */
	void (*text)(void *self, struct str report); /* the terminal report of a benchmark */
	void (*warn)(void *self, const char *text);
	/* what: "Loading tokenizer", "Benchmark", ...; total 0: not known. */
	void (*progress)(void *self, const char *what, uint64_t done, uint64_t total);
	/* A few times a second while load goes to a server: counters, machine (serve/point.h). */
	void (*sample)(void *self, const struct run_sample *now);
	const atomic_bool *cancel;
	int log_fd;                    /* above 0: what servers print is copied there as it comes */
	struct point_early *early;     /* of experiment_prepare for the same experiment, or NULL */
	bool is_brief;                 /* text gets the summary of a report alone */
};

/* Sets run_id and start time, if needed before experiment_run_at, which otherwise does it. */
void outcome_begin(struct outcome *o);
/*
 * Loads what a benchmark of a server needs and no server gives: endpoint, tokenizer, requests,
 * record (serve/point.h). Nothing is locked, started or written. -1 with e: ERR_NET is a failure of
 * the network or server, ERR_CANCELLED the caller's cancel, all else a mistake, about out->part.
 * point_early_release in either case. In modes without a server nothing is checked.
 */
int experiment_prepare(const struct experiment *x, const struct experiment_hooks *hooks,
		       struct point_early *out, struct err *e);

/*
 * Runs the experiment from allocation to collection. Always fills out, which is zeroed or begun;
 * afterwards nothing is running and no lock is held, in any case. The caller writes the document.
 */
void experiment_run(const struct experiment *x, const struct experiment_hooks *hooks,
		    struct outcome *out);

/*
 * Servers kept between members of a suite, with their GPUs and ports; zeroed: none.
 *
 * experiment_run_at is experiment_run, but when held is set it starts no server and uses those,
 * after emptying their caches (server.h; hooks->line says so, hooks->warn when it fails); the
 * caller has checked that they are the same. It keeps its servers in held when all of them still
 * answer at the end and it was not interrupted, else it stops them. site NULL: experiment_run.
 * experiment_leave stops what is held and releases GPUs and ports.
 */
struct experiment_held;
struct experiment_site {
	struct experiment_held *held;
	bool needs_empty_caches;       /* servers whose caches stay full are started again */
};
void experiment_run_at(const struct experiment *x, struct experiment_site *site,
		       const struct experiment_hooks *hooks, struct outcome *out);
void experiment_leave(struct experiment_site *site, const struct experiment_hooks *hooks);
