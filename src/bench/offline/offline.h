/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline.h - an inference engine without clients: batches in, times and counts out.
 *
 * The engine is reached through a driver (struct offline_driver): a worker program over a socket
 * pair (offline_worker.c: vllm, hf, llama, sim, your own), or a server that gets all requests at
 * once (offline_http.c). The verbs (throughput, latency, startup, mm-processor) use this header
 * only.
 *
 * Order: offline_start, offline_render any number of times, offline_load, then offline_put and
 * offline_run, which may be repeated on the same batch; offline_stop always.
 *
 * The engine's side takes the time around the engine's call, on CLOCK_MONOTONIC; handing over
 * prompts and reading counts are outside. We also take the time of each request and answer, and the
 * engine's times must be between them (else ERR_RUN).
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/server/engine_report.h"
#include "client/metrics/trust.h"
#include "client/plan/workload.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/opt/opt.h"
#include "out/compare/gate.h"
#include "out/report/pytorch.h"

struct offline_opts; /* below: what the verbs have in common */

/* All may be NULL. Texts without a newline. */
struct offline_hooks {
	void *self;
	void (*line)(void *self, const char *text);
	void (*warn)(void *self, const char *text);
	/* what: "Loading the engine", "Warmup iterations", ...; total 0: unknown. */
	void (*progress)(void *self, const char *what, uint64_t done, uint64_t total);
	/* JSON that --output-json would hold for what was measured; latency and throughput. */
	void (*result)(void *self, struct str json);
	const atomic_bool *cancel; /* set: calls end with ERR_CANCELLED */
};

struct offline_start {
	const struct offline_opts *opts;
	char *const *engine_argv;   /* the engine's own arguments, ended by NULL */
	char *const *env;           /* "NAME=VALUE" added to ours, ended by NULL; may be NULL */
	const char *backend;        /* as the worker protocol has it: "vllm", "vllm-chat", "hf",
				     * "sim" */
	bool is_async;              /* the engine's asynchronous interface */
	bool is_compiled;           /* --hf-enable-torch-compile */
	bool wants_mm_stats;        /* offline_mm_stats will be asked */
	const char *log_name;       /* of the engine's log file; NULL: the verb's name */
	struct offline_hooks hooks;
};

/* Describes the engine; texts live until offline_stop. */
struct offline_about {
	const char *engine, *version; /* "vllm", "0.32.0"; "" unknown */
	int64_t max_model_len;        /* 0: unknown */
	bool is_pooling;              /* a model that embeds or scores */
	bool has_chat, has_beam, has_encode, has_async, has_prequeue, has_profile, has_lora;
	bool has_render, has_mm_stats;
	bool has_priority, has_sampling; /* of each request, its own */
	const char *device;           /* "cpu", "NVIDIA H100 80GB HBM3"; "" unknown */
	const char *profile_to;       /* "torch", "cuda", "proton", "" */
	const char *profile_dir;      /* or "" */
	const char *method;           /* "in-process", "managed server", "simulated" */
	struct str json;              /* the driver's whole description, a JSON object; may be
				       * empty */
};

/* Seconds; NAN: not reported. */
struct offline_loaded {
	double spawn_s;      /* from the program's start to its first word: interpreter, imports */
	double load_s;       /* building the engine, by its own clock */
	double ready_s;      /* from the program's start until it can be asked, by ours */
	double compilation_s, encoder_compilation_s;
	struct engine_phase *phase; /* by the engine or its log */
	size_t n_phases;
};

enum offline_method { OFFLINE_GENERATE, OFFLINE_CHAT, OFFLINE_BEAM, OFFLINE_ENCODE };

struct offline_batch {
	const struct workload *w;  /* stays until the next put or the stop */
	const uint32_t *index;     /* of the samples, in order; NULL: all of w */
	size_t n;
	const int32_t *lora;       /* per entry, from 1; 0: none; NULL: none at all */
	const char *lora_path;
	bool is_without_priorities; /* those of the samples are not handed over */
};

struct offline_run {
	enum offline_method method;
	int64_t n;                 /* sequences for each prompt, or the beam's width */
	double temperature, top_p;
	bool ignore_eos, detokenize;
	bool is_prequeued, is_profiled; /* starting and stopping the profiler is inside the clock */
	const char *id_prefix;     /* "test", "warmup" */
	int64_t batch_max;         /* --hf-max-batch-size; 0: none */
	bool is_one_call;          /* one list to a server (latency), not a request a prompt */
	const char *progress;      /* what progress is called; NULL: not shown */
};

/* Result of the batch that ran. Arrays have the batch's n entries; NULL: not reported. */
struct offline_outcome {
	double elapsed_s;
	int64_t began_ns, ended_ns;  /* CLOCK_MONOTONIC */
	double outside_s;            /* between question and answer, and not elapsed_s; server: 0 */
	bool has_counts;
	uint64_t prompt_tokens, output_tokens;
	uint64_t cached_tokens;      /* of the prompts; valid when cached is reported */
	size_t n, finished;
	uint32_t *prompt, *output;   /* tokens; output over all sequences of a prompt */
	uint32_t *cached;            /* of the prompt's tokens, those that a prefix cache had */
	double *e2el_s, *ttft_s, *queue_s; /* NAN: not reported; queue: until scheduled */
	bool *is_finished;
	struct arena arena;
};
void offline_outcome_release(struct offline_outcome *o);

struct offline;

/* -1 with e: ERR_USAGE (exit 2) for what the user can correct on the command line, else ERR_RUN. */
int offline_start(const struct offline_start *how, struct offline **out, struct err *e);
/* What is known after the start, and more after the load. */
const struct offline_about *offline_about(const struct offline *o);
/* Applies the engine's chat template to messages (JSON list); tools: JSON list or empty. */
int offline_render(struct offline *o, struct str messages, struct str tools, struct buf *text,
		   struct err *e);
/*
 * Whether such runs are possible, judged by the engine's description so far; else e says why not.
 */
int offline_can(const struct offline *o, const struct offline_run *run, struct err *e);
int offline_load(struct offline *o, struct offline_loaded *out, struct err *e);
int offline_put(struct offline *o, const struct offline_batch *batch, struct err *e);
int offline_run(struct offline *o, const struct offline_run *run, struct offline_outcome *out,
		struct err *e);
/*
 * Appends to out the times of the stages of multimodal preprocessing since the previous call, which
 * the engine then forgets: a JSON object, request id -> {"get_mm_hashes_secs": s, ...}.
 */
int offline_mm_stats(struct offline *o, struct buf *out, struct err *e);
/* Ends the engine and everything it started, and frees o; accepts NULL. -1: something is left. */
int offline_stop(struct offline *o, struct err *e);

/* One for each kind of engine; a NULL member: not supported. state is the driver's own. */
struct offline_driver {
	const char *name;
	int (*start)(const struct offline_start *how, void **state, struct offline_about *about,
		     struct err *e);
	int (*render)(void *state, struct str messages, struct str tools, struct buf *text,
		      struct err *e);
	int (*load)(void *state, struct offline_about *about, struct offline_loaded *out,
		    struct err *e);
	int (*put)(void *state, const struct offline_batch *batch, struct err *e);
	int (*run)(void *state, const struct offline_run *run, struct offline_outcome *out,
		   struct err *e);
	int (*mm_stats)(void *state, struct buf *out, struct err *e);
	int (*stop)(void *state, struct err *e);
};
extern const struct offline_driver offline_worker_driver, offline_http_driver;

/*
 * Command line options that `bench throughput`, latency, startup and mm-processor share, and the
 * engine's own arguments.
 *
 * struct offline_opts is the first member of each verb's options; the verb's rows end with
 * OFFLINE_ROWS, its defaults begin with { OFFLINE_DEFAULTS }, and its set names .foreign =
 * &offline_engine_args, so that vLLM's arguments pass. Use: offline_begin (verbs/offline_talk.h,
 * which parses), offline_opts_check, then offline_start with engine.argv and engine.env, then
 * offline_judge once the engine's version is known.
 *
 * The engine's arguments are handed over as typed, except that abbreviated names are completed;
 * what the verb forces is put before them (the last one given counts). Nothing here starts
 * anything.
 */

struct offline_opts {
	const char *backend;        /* after the check: a worker's name, "http" or "worker" */
	const char *python;         /* NULL: looked for */
	const char *worker_cmd;     /* in place of the backend's own worker program; NULL: that */
	const char *server_cmd, *base_url; /* backend http; NULL: not given */
	double load_timeout, worker_timeout, server_grace; /* seconds */
	const char *worker_log;     /* NULL: an unnamed file */
	bool show_log;
	struct opt_list nsight;     /* is_set: wrap the worker; v[0]: the report's file */
	bool strict_args;
	struct opt_list fix;        /* names; see offline_opts_check */
	const char *compat;
	const char *progress;       /* "auto", "bar", "lines", "none" */
	bool dry_run;
	bool disable_frontend_multiprocessing; /* former option; no effect */
	/* of the verbs that have rows for them */
	const char *output_json;    /* NULL: no file */
	const char *dump_workload;  /* NULL: no file */
	struct gate_opts gate;
};

#define OFFLINE_DEFAULTS                                                                    \
	.backend = "vllm", .load_timeout = 1800, .worker_timeout = 1800, .server_grace = 30,  \
	.compat = "", .progress = "auto"

#define OFFLINE_GROUP "Engine's program"
#define OFFLINE_GROUP_OURS "ProfLLM"

extern const char *const offline_progress_forms[];

/*
 * backends: what --backend may be, ended by NULL (offline_backends for all); flags: OPT_OURS where
 * upstream's command has no --backend, else 0.
 */
#define OFFLINE_ROWS(backends, backend_flags)                                               \
	OPT(struct offline_opts, backend, "backend", .group = OFFLINE_GROUP, .arg = "NAME",    \
	    .flags = (backend_flags), .choices = (backends),                                   \
	    .help = "the engine: vllm, vllm-chat, vllm-async, hf (transformers), llama "       \
		    "(llama.cpp's library), http (a server, all at once), sim (no engine), "   \
		    "worker (the program --worker-cmd names)"),                               \
	OPT(struct offline_opts, python, "python", .group = OFFLINE_GROUP, .arg = "FILE",      \
	    .flags = OPT_OURS,                                                                \
	    .help = "the interpreter that has the engine's package; otherwise "               \
		    "$PROFLLM_PYTHON, that of $VIRTUAL_ENV, that of vllm in PATH, python3"),   \
	OPT(struct offline_opts, worker_cmd, "worker-cmd", .group = OFFLINE_GROUP,             \
	    .arg = "COMMAND", .flags = OPT_OURS,                                              \
	    .help = "a program that drives the engine, instead of the built-in one"),       \
	OPT(struct offline_opts, server_cmd, "server-cmd", .group = OFFLINE_GROUP,             \
	    .arg = "COMMAND", .flags = OPT_OURS,                                              \
	    .help = "--backend http: how the server is started; otherwise vllm serve"),       \
	OPT(struct offline_opts, base_url, "base-url", .group = OFFLINE_GROUP, .arg = "URL",   \
	    .flags = OPT_OURS,                                                                \
	    .help = "--backend http: URL of a running server, which is neither started nor stopped"),           \
	OPT(struct offline_opts, load_timeout, "load-timeout", .group = OFFLINE_GROUP,         \
	    .arg = "SECONDS", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE | OPT_WHOLE, .min = 0,     \
	    .max = 1e6, .help = "time limit for the engine to become ready"),        \
	OPT(struct offline_opts, worker_timeout, "worker-timeout", .group = OFFLINE_GROUP,     \
	    .arg = "SECONDS", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE | OPT_WHOLE, .min = 0,     \
	    .max = 1e6,                                                                       \
	    .help = "time limit without any sign of progress after a request"),                 \
	OPT(struct offline_opts, server_grace, "server-grace", .group = OFFLINE_GROUP,         \
	    .arg = "SECONDS", .flags = OPT_OURS | OPT_WHOLE, .min = 0, .max = 1e6,             \
	    .help = "time limit to exit when asked to, before it is killed"),           \
	OPT(struct offline_opts, worker_log, "worker-log", .group = OFFLINE_GROUP,             \
	    .arg = "FILE", .flags = OPT_OURS,                                                 \
	    .help = "append the output of the engine's program to FILE; without it, its last " \
		    "lines are shown when it fails"),                                       \
	OPT(struct offline_opts, show_log, "show-log", .group = OFFLINE_GROUP,                 \
	    .flags = OPT_OURS, .help = "copy the program's output to stderr as it arrives"), \
	OPT(struct offline_opts, nsight, "nsight", .group = OFFLINE_GROUP, .arg = "FILE",      \
	    .flags = OPT_OURS,                                                                \
	    .help = "run the engine's program under Nsight Systems; FILE is its report"),     \
	OPT(struct offline_opts, strict_args, "strict-args", .group = OFFLINE_GROUP_OURS,      \
	    .flags = OPT_OURS,                                                                \
	    .help = "refuse engine arguments that vLLM does not have, instead of passing "    \
		    "them on"),                                                               \
	OPT(struct offline_opts, fix, "fix", .group = OFFLINE_GROUP_OURS, .arg = "NAME",       \
	    .flags = OPT_OURS | OPT_MANY,                                                     \
	    .help = "corrections of vLLM's mistakes that change numbers; help lists "    \
		    "them"),                                                                  \
	OPT(struct offline_opts, compat, "compat", .group = OFFLINE_GROUP_OURS,                \
	    .arg = "LIST", .flags = OPT_OURS,                                                 \
	    .help = "comma list of behaviours of vLLM to restore: v0.11 (defaults of "    \
		    "that release), and those that --compat help lists"),                     \
	OPT(struct offline_opts, progress, "progress", .group = OFFLINE_GROUP_OURS,            \
	    .arg = "FORM", .flags = OPT_OURS, .choices = offline_progress_forms,               \
	    .help = "progress on stderr; auto is a bar on a terminal and lines elsewhere"),   \
	OPT(struct offline_opts, dry_run, "dry-run", .group = OFFLINE_GROUP_OURS,              \
	    .flags = OPT_OURS,                                                                \
	    .help = "print what would be run and start nothing"),                               \
	OPT(struct offline_opts, disable_frontend_multiprocessing,                             \
	    "disable-frontend-multiprocessing", .group = OFFLINE_GROUP,                        \
	    .flags = OPT_OURS | OPT_HIDDEN, .help = "accepted from older releases; has no effect")

/* All backends, upstream's four first. */
extern const char *const offline_backends[];
/*
 * vLLM's arguments without those of its HTTP server, for opt_set.foreign; the second with the
 * additional one of the asynchronous engine, for throughput.
 */
extern const struct opt_foreign offline_engine_args, offline_async_engine_args;

/* ---- what follows from them ---- */

/*
 * One name for --fix or --compat of a verb; rows end with a NULL name. Bit 0: accepted without
 * effect, because it has become the default.
 */
struct offline_fix { const char *name; unsigned bit; const char *help; };

struct offline_job;

/* Describes a verb. Its options begin with a struct offline_opts. */
struct offline_verb {
	const char *name;                /* "throughput" */
	const struct opt_set *set;
	const struct offline_fix *fixes, *compats; /* NULL: none */
	char *const *forced;             /* engine arguments unless given otherwise, ended by NULL;
					    NULL: none */
	/*
	 * Checks the rules between options and engine and fills in what follows from them. ERR_RUN
	 * with upstream's text where it has one. NULL: none.
	 */
	int (*check)(struct offline_job *job, struct err *e);
	/* Lines for --dry-run that describe the run; NULL: run prints them, and starts nothing. */
	void (*plan)(const struct offline_job *job, struct buf *out);
	/*
	 * An example result of these options, with made-up values, for --fail-if; NULL: there is
	 * none.
	 */
	void (*example)(const void *values, struct buf *out);
	/*
	 * Runs the verb, prints through hooks, writes its files. When cancelled, what was measured
	 * is reported before ERR_CANCELLED is returned.
	 */
	int (*run)(struct offline_job *job, struct err *e);
};

/* The engine's arguments and what follows from them. Texts live in the arena or in argv. */
struct offline_engine {
	char *const *argv;         /* forced ones, then as typed; ended by NULL */
	char *const *env;          /* "NAME=VALUE", ended by NULL */
	char *const *command;      /* for engine_argv_*: "vllm serve" and what vLLM's table knows */
	const char *shown;         /* argv as one line for people, secrets as "***" */
	const char *const *shown_argv; /* word by word, also redacted; ended by NULL: "engine_args" */
	const char *worker;        /* offline_start.backend: "vllm", "vllm-chat", "hf", "sim" ... */
	bool is_async;             /* --backend vllm-async */
	const char *model;         /* vLLM's default when not given */
	const char *tokenizer;     /* the model unless given */
	const char *tokenizer_mode, *quantization, *dtype, *executor_backend; /* NULL: none */
	int64_t seed;              /* 0 unless given */
	bool is_seed_given, is_model_given, is_tokenizer_given, has_lora, trusts_remote_code;
	int64_t max_loras;
	int64_t tensor_parallel, pipeline_parallel, data_parallel; /* at least 1 */
	unsigned fixes, compat;    /* bits of the verb's rows */
	bool is_v011;              /* --compat v0.11 */
};

/*
 * Checks the common options and the engine's arguments (result->rest), and fills *out. Changes no
 * value but backend: "vllm-async" becomes "vllm". Warnings are lines in notes. ERR_USAGE for the
 * user's mistakes; ERR_RUN with upstream's text where upstream fails (backend mii).
 */
int offline_opts_check(const struct opt_set *set, const struct opt_result *result,
		       const struct offline_verb *verb, struct offline_opts *o,
		       struct offline_engine *out, struct arena *a, struct buf *notes,
		       struct err *e);
/*
 * Checks again, after offline_start, with the version that the engine reports: an argument that
 * this version lacks is a warning, or with --strict-args an error. Only for vLLM.
 */
int offline_judge(const struct offline_opts *o, const struct offline_engine *engine,
		  const struct offline_about *about, const struct offline_hooks *hooks,
		  struct err *e);

/* The value in effect of any engine argument, as engine_argv_text; NULL: none. */
const char *offline_engine_text(const struct offline_engine *engine, const char *name,
				struct arena *a);
/* --fix help, --compat help: appends the list for stdout; false: neither was given. */
bool offline_list_names(const struct offline_opts *o, const struct offline_verb *verb,
			struct buf *out);

/*
 * --config FILE.yaml before the command line is read, as in vLLM's parser: every key of the file
 * becomes an option in front of those that were typed, so typed ones take precedence. true: the
 * name alone; false: --no-name where there is one, else nothing; a list: its elements; an object:
 * JSON.
 *
 * Unlike upstream: the file's options go in front of the verb's own; vLLM 0.32 puts them in front
 * of the verb's name and then fails.
 */

/*
 * Replaces *argc and *argv (ended by NULL, in the arena) when --config is among them; a set that
 * has its own --config is unchanged. ERR_USAGE: no file name, no .yaml or .yml, two of them; ERR_IO
 * or ERR_PARSE for the file.
 */
int offline_config(const struct opt_set *set, int *argc, char ***argv, struct arena *a,
		   struct err *e);

/* ---- a verb that is run ---- */

struct offline_job {
	const struct offline_verb *verb;
	struct offline_opts *opts;            /* the first member of the verb's options */
	const struct opt_result *given;
	const struct offline_engine *engine;
	struct offline_hooks hooks;
	struct buf *notes;                    /* of check: a line for each warning */
	/* while it runs */
	struct offline *offline;              /* NULL: nothing was started */
	struct offline_loaded loaded;
};
/* Starts the job's engine and checks its arguments; how needs only what the job does not know. */
int offline_job_start(struct offline_job *job, struct offline_start how, struct err *e);
/*
 * Passes the result to hooks.result and, if asked for, writes opts->output_json with a PyTorch file
 * of n metrics next to it; extra: a JSON object for each of them.
 */
int offline_job_save(const struct offline_job *job, struct str json,
		     const struct pytorch_metric *metric, size_t n, struct str extra,
		     struct err *e);
/* Stops the engine; rc and e are those of the run, which take precedence. */
int offline_job_end(struct offline_job *job, int rc, struct err *e);

/*
 * The members under "profllm" that describe the measured engine, the same in the result files of
 * throughput, latency, startup and mm-processor.
 *
 * version, command, backend, method, engine {name, version, device, ...}, load {spawn_s, load_s,
 * ready_s, compilation_s, encoder_compilation_s, phases}, host {...}. What the engine did not
 * report is left out.
 */

struct offline_reported {
	const char *command;                 /* "latency" */
	const char *backend;                 /* as --backend says */
	const struct offline_about *about;   /* NULL: nothing was started */
	const struct offline_loaded *loaded; /* NULL: no single load */
};

struct offline_reported offline_reported_of(const struct offline_job *job);
/* Writes the members into the object that the caller has begun. */
void offline_reported(struct json_writer *w, const struct offline_reported *t);
/* "Engine: vllm 0.32.0 on cpu, in-process, loaded in 12.3 s" and a line end. */
void offline_reported_line(struct buf *out, const struct offline_reported *t);
/* The same object for an example engine, which shows the possible keys. */
void offline_reported_example(const char *command, struct buf *out);
/* Hands text to hooks->line, line by line, and empties it. */
void offline_say(const struct offline_hooks *hooks, struct buf *text);
/* One line for hooks->line. */
__attribute__((format(printf, 2, 3)))
void offline_line(const struct offline_hooks *hooks, const char *fmt, ...);
/* hooks->progress, where there is one and a total. */
void offline_progress(const struct offline_hooks *hooks, const char *what, int64_t done,
		      int64_t total);

/* ---- figures ---- */

#define OFFLINE_PERCENTILES 6
extern const int offline_percentages[OFFLINE_PERCENTILES]; /* 10, 25, 50, 75, 90, 99 */
/* Percentiles of n values in any order. */
void offline_percentiles(const double *v, size_t n, double out[OFFLINE_PERCENTILES]);
/* The member key, an object: {"10": ..., ...}. */
void offline_put_percentiles(struct json_writer *w, const char *key,
			     const double v[OFFLINE_PERCENTILES]);
/* "1.5 s", "20 ms". */
void offline_put_time(struct buf *out, double s);

/* A possible doubt about a result: its bit, its effect on the verdict, its code. */
struct offline_doubt {
	unsigned bit;
	enum trust_verdict level;
	const char *code, *text; /* text NULL: explain writes the sentence */
};
/* The doubts that are set. */
struct trust offline_verdict(const struct offline_doubt *row, size_t n, unsigned doubts,
			     void (*explain)(const void *self, unsigned doubt, struct buf *out),
			     const void *self);
/* "Verdict: VALID" and its reasons. */
void offline_show_verdict(const struct trust *t, struct buf *out);
