/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/offline_opts.h - what `bench throughput`, latency, startup and mm-processor have in common on
 * their command lines: options of ours, and the engine's own arguments beside any option.
 *
 * struct offline_opts is the first member of each verb's options; the verb's rows end with
 * OFFLINE_ROWS, its defaults begin with { OFFLINE_DEFAULTS }, and its set names
 * .foreign = &offline_engine_args, so that vLLM's arguments pass. Use: offline_begin
 * (cmd/offline_talk.h, which parses), offline_opts_check, then offline_start with
 * engine.argv and engine.env, then offline_judge once the engine's version is known.
 *
 * The engine's arguments are handed over as they were typed, but for beginnings of names, which
 * become whole; what the verb forces is put before them (the last one given counts). Nothing here
 * starts anything.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "opt/opt.h"

struct offline_about; /* run/offline.h */
struct offline_hooks;

struct offline_opts {
	const char *backend;        /* after the check: a worker's name, "http" or "worker" */
	const char *python;         /* NULL: looked for */
	const char *worker_cmd;     /* in place of the backend's own worker program; NULL: that */
	const char *server_cmd, *base_url; /* backend http; NULL: not given */
	double load_timeout, worker_timeout, server_grace; /* seconds */
	const char *worker_log;     /* NULL: a nameless file */
	bool show_log;
	struct opt_list nsight;     /* is_set: wrap the worker; v[0]: the report's file */
	bool strict_args;
	struct opt_list fix;        /* names; see offline_opts_check */
	const char *compat;
	const char *progress;       /* "auto", "bar", "lines", "none" */
	bool dry_run;
	bool disable_frontend_multiprocessing; /* of old; no effect */
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
	    .help = "a program that drives the engine, in place of the backend's own"),       \
	OPT(struct offline_opts, server_cmd, "server-cmd", .group = OFFLINE_GROUP,             \
	    .arg = "COMMAND", .flags = OPT_OURS,                                              \
	    .help = "--backend http: how the server is started; otherwise vllm serve"),       \
	OPT(struct offline_opts, base_url, "base-url", .group = OFFLINE_GROUP, .arg = "URL",   \
	    .flags = OPT_OURS,                                                                \
	    .help = "--backend http: a server that runs already; it is not ended"),           \
	OPT(struct offline_opts, load_timeout, "load-timeout", .group = OFFLINE_GROUP,         \
	    .arg = "SECONDS", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE | OPT_WHOLE, .min = 0,     \
	    .max = 1e6, .help = "how long the engine may take until it can be asked"),        \
	OPT(struct offline_opts, worker_timeout, "worker-timeout", .group = OFFLINE_GROUP,     \
	    .arg = "SECONDS", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE | OPT_WHOLE, .min = 0,     \
	    .max = 1e6,                                                                       \
	    .help = "how long it may show no sign of life once it is asked"),                 \
	OPT(struct offline_opts, server_grace, "server-grace", .group = OFFLINE_GROUP,         \
	    .arg = "SECONDS", .flags = OPT_OURS | OPT_WHOLE, .min = 0, .max = 1e6,             \
	    .help = "how long it may take to end when asked, before it is killed"),           \
	OPT(struct offline_opts, worker_log, "worker-log", .group = OFFLINE_GROUP,             \
	    .arg = "FILE", .flags = OPT_OURS,                                                 \
	    .help = "what the engine's program prints is added to it; otherwise its end is "  \
		    "shown when it fails"),                                                   \
	OPT(struct offline_opts, show_log, "show-log", .group = OFFLINE_GROUP,                 \
	    .flags = OPT_OURS, .help = "show what it prints on stderr as it comes"),          \
	OPT(struct offline_opts, nsight, "nsight", .group = OFFLINE_GROUP, .arg = "FILE",      \
	    .flags = OPT_OURS,                                                                \
	    .help = "run the engine's program under Nsight Systems; FILE is its report"),     \
	OPT(struct offline_opts, strict_args, "strict-args", .group = OFFLINE_GROUP_OURS,      \
	    .flags = OPT_OURS,                                                                \
	    .help = "refuse engine arguments that vLLM does not have, instead of passing "    \
		    "them on"),                                                               \
	OPT(struct offline_opts, fix, "fix", .group = OFFLINE_GROUP_OURS, .arg = "NAME",       \
	    .flags = OPT_OURS | OPT_MANY,                                                     \
	    .help = "mended forms of upstream's mistakes that change numbers; help lists "    \
		    "them"),                                                                  \
	OPT(struct offline_opts, compat, "compat", .group = OFFLINE_GROUP_OURS,                \
	    .arg = "LIST", .flags = OPT_OURS,                                                 \
	    .help = "comma list of behaviours of upstream to restore: v0.11 (defaults of "    \
		    "that release), and those that --compat help lists"),                     \
	OPT(struct offline_opts, progress, "progress", .group = OFFLINE_GROUP_OURS,            \
	    .arg = "FORM", .flags = OPT_OURS, .choices = offline_progress_forms,               \
	    .help = "progress on stderr; auto is a bar on a terminal and lines elsewhere"),   \
	OPT(struct offline_opts, dry_run, "dry-run", .group = OFFLINE_GROUP_OURS,              \
	    .flags = OPT_OURS,                                                                \
	    .help = "say what would be run and start nothing"),                               \
	OPT(struct offline_opts, disable_frontend_multiprocessing,                             \
	    "disable-frontend-multiprocessing", .group = OFFLINE_GROUP,                        \
	    .flags = OPT_OURS | OPT_HIDDEN, .help = "of old releases; has no effect")

/* All there are; upstream's four first. */
extern const char *const offline_backends[];
/*
 * vLLM's arguments without those of its HTTP server, for opt_set.foreign; throughput's, with the
 * one more that the asynchronous interface has.
 */
extern const struct opt_foreign offline_engine_args, offline_async_engine_args;

/* ---- what follows from them ---- */

/*
 * One name for --fix or --compat of a verb; rows end with a NULL name. Bit 0: accepted, since what
 * it asks for has become the default.
 */
struct offline_fix { const char *name; unsigned bit; const char *help; };

/* What a verb says of itself. */
struct offline_verb {
	const char *name;                /* "throughput" */
	const struct offline_fix *fixes, *compats; /* NULL: none */
	char *const *forced;             /* engine arguments unless given otherwise, ended by NULL;
					    NULL: none */
};

/* The engine's arguments and what they come to. Texts live in the arena or in argv. */
struct offline_engine {
	char *const *argv;         /* forced ones, then as typed; ended by NULL */
	char *const *env;          /* "NAME=VALUE", ended by NULL */
	char *const *command;      /* for engine_argv_*: "vllm serve" and what vLLM's table knows */
	const char *shown;         /* argv as one line for people, secrets as "***" */
	char *const *shown_argv;   /* word by word, likewise; ended by NULL */
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
 * Judges the common options and the engine's arguments (result->rest), and fills *out. Values stay
 * as they are, but for backend: "vllm-async" becomes "vllm". Warnings are lines in notes. ERR_USAGE
 * for the user's mistakes; ERR_RUN with upstream's text where upstream fails (backend mii).
 */
int offline_opts_check(const struct opt_set *set, const struct opt_result *result,
		       const struct offline_verb *verb, struct offline_opts *o,
		       struct offline_engine *out, struct arena *a, struct buf *notes,
		       struct err *e);
/*
 * Once more, after offline_start, with the version that the engine tells of itself: what it does
 * not have is a warning, or with --strict-args an error. Nothing for engines other than vLLM.
 */
int offline_judge(const struct offline_opts *o, const struct offline_engine *engine,
		  const struct offline_about *about, const struct offline_hooks *hooks,
		  struct err *e);

/* The value in effect of any engine argument, as engine_argv_text; NULL: none. */
const char *offline_engine_text(const struct offline_engine *engine, const char *name,
				struct arena *a);
/* --fix help, --compat help: the list, for stdout; false: none was asked for. */
bool offline_list_names(const struct offline_opts *o, const struct offline_verb *verb,
			struct buf *out);
