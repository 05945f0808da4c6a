/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/sweep_opts.h - the options of `bench sweep serve`, serve_workload, serve_sla and startup:
 * one struct, and the rows they have in common.
 *
 * Each verb's set is made of the row macros below and rows of its own; fields that a verb has no
 * row for keep their default. Order and names are upstream's (0.32.0), ours come after. Use:
 * opt_parse, sweep_opts_check.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "opt/opt.h"
#include "run/find_rows.h"
#include "run/sla.h"

struct sweep_opts {
	const char *serve_cmd, *bench_cmd; /* required where they have a row */
	const char *startup_cmd;
	const char *after_bench_cmd;       /* NULL: caches are reset */
	bool show_stdout;
	int64_t server_ready_timeout;      /* seconds */
	const char *serve_params, *bench_params, *startup_params; /* files; may be NULL */
	const char *link_vars;
	bool strict_params;
	const char *output_dir, *experiment_name; /* name NULL: the time of day */
	int64_t num_runs;
	int64_t warmup_num_prompts;        /* 0: no warm-up run */
	bool continue_on_error;            /* upstream's; what is done anyway */
	bool dry_run;
	struct opt_list resume;            /* is_set; with one value it is the experiment's name */
	/* ours */
	bool shuffle;
	int64_t seed;                      /* of the order */
	const char *restart;               /* "never", "point", "run" */
	bool stop_on_error;
	double server_grace;               /* seconds between TERM and KILL */
	bool exec_bench, strict_args, resume_anyway;
	/* serve_workload */
	const char *workload_var;          /* "request_rate", "max_concurrency" */
	int64_t workload_iters;
	bool workload_serial_unthrottled;
	/* serve_sla */
	const char *sla_params, *sla_variable, *sla_search; /* search NULL: ours where it can */
	int64_t sla_max;
	double sla_tolerance;
	double sla_max_failed;             /* percent of a level's requests */
	double hover, hover_window;        /* seconds; hover 0: none */
	const char *base_url;              /* a server that runs; NULL: --serve-cmd */
	double precision, budget, level_seconds; /* of --sla-search capacity: percent, seconds */
};

enum sweep_restart { SWEEP_RESTART_NEVER, SWEEP_RESTART_POINT, SWEEP_RESTART_RUN };
enum sweep_restart sweep_opts_restart(const struct sweep_opts *o);
extern const char *const sweep_restarts[];
extern const char *const sla_searches[]; /* "capacity", then upstream's (run/search.h) */

/* The defaults of every verb; startup's differ in num_runs alone. */
#define SWEEP_DEFAULTS SWEEP_DEFAULTS_BUT_RUNS, .num_runs = 3
#define SWEEP_DEFAULTS_BUT_RUNS                                                             \
	.startup_cmd = "vllm bench startup", .server_ready_timeout = 300, .link_vars = "",   \
	.output_dir = "results", .restart = "never", .server_grace = 30,                     \
	.workload_var = "request_rate", .workload_iters = 10, .sla_variable = "request_rate", \
	.hover_window = 10, .sla_max_failed = SLA_MAX_FAILED_PERCENT,                        \
	.precision = FIND_PRECISION_PERCENT, .budget = CAPACITY_BUDGET_S,                    \
	.level_seconds = CAPACITY_LEVEL_S

#define SWEEP_GROUP "sweep"
#define SWEEP_GROUP_OURS "sweep, ours"

/* What drives a server and a client. */
#define SWEEP_ROWS_SERVE                                                                    \
	OPT(struct sweep_opts, serve_cmd, "serve-cmd", .arg = "COMMAND", .group = SWEEP_GROUP, \
	    .help = "how the server is started (required): 'vllm serve MODEL ...'"),          \
	OPT(struct sweep_opts, bench_cmd, "bench-cmd", .arg = "COMMAND", .group = SWEEP_GROUP, \
	    .help = "how it is measured (required): 'vllm bench serve ...'; run inside this " \
		    "program where it can be"),                                               \
	OPT(struct sweep_opts, after_bench_cmd, "after-bench-cmd", .arg = "COMMAND",           \
	    .group = SWEEP_GROUP, .help = "run after each benchmark instead of resetting the " \
					  "server's caches"),                                 \
	OPT(struct sweep_opts, show_stdout, "show-stdout", .group = SWEEP_GROUP,               \
	    .help = "let the output of server and benchmark through"),                        \
	OPT(struct sweep_opts, server_ready_timeout, "server-ready-timeout",                   \
	    .arg = "SECONDS", .min = 1, .max = 1e6, .group = SWEEP_GROUP,                      \
	    .help = "how long a server may take until it answers"),                           \
	OPT(struct sweep_opts, serve_params, "serve-params", .arg = "FILE",                    \
	    .group = SWEEP_GROUP, .help = "JSON, a file or the text itself: combinations of "  \
					  "server options, a list of objects or an object of " \
					  "named ones"),                                      \
	OPT(struct sweep_opts, link_vars, "link-vars", .arg = "A=B,...", .group = SWEEP_GROUP, \
	    .help = "run only pairs in which the server's A equals the benchmark's B"),        \
	OPT(struct sweep_opts, bench_params, "bench-params", .arg = "FILE",                    \
	    .group = SWEEP_GROUP, .help = "JSON, a file or the text itself: combinations of "  \
					  "benchmark options; each is run with each of the "   \
					  "server's")

/* Where results go and which of them are made. num_runs_help differs between verbs. */
#define SWEEP_ROWS_FOLDER                                                                   \
	OPT(struct sweep_opts, output_dir, "output-dir", .letter = 'o', .arg = "DIR",          \
	    .group = SWEEP_GROUP, .help = "the folder of all experiments"),                   \
	OPT(struct sweep_opts, experiment_name, "experiment-name", .letter = 'e',              \
	    .arg = "NAME", .group = SWEEP_GROUP,                                              \
	    .help = "this experiment's folder in it; without: the time of day"),               \
	OPT(struct sweep_opts, num_runs, "num-runs", .arg = "N", .group = SWEEP_GROUP,         \
	    .help = "runs of each combination")

#define SWEEP_ROWS_WARMUP                                                                   \
	OPT(struct sweep_opts, warmup_num_prompts, "warmup-num-prompts", .arg = "N",           \
	    .group = SWEEP_GROUP, .help = "requests of a run before each combination that is " \
					  "kept as warmup.json and not counted"),             \
	OPT(struct sweep_opts, continue_on_error, "continue-on-error", .group = SWEEP_GROUP,   \
	    .help = "record what fails and go on, which is done anyway; see --stop-on-error")

#define SWEEP_ROWS_MODE                                                                     \
	OPT(struct sweep_opts, dry_run, "dry-run", .group = SWEEP_GROUP,                       \
	    .help = "print what would be run and run nothing"),                               \
	OPT(struct sweep_opts, resume, "resume", .arg = "NAME", .group = SWEEP_GROUP,          \
	    .help = "go on with an experiment: what it has is kept, what it lacks is run; NAME " \
		    "is short for --experiment-name NAME")

/* Ours, of verbs that know all their combinations before they begin. */
#define SWEEP_ROWS_ORDER                                                                    \
	OPT(struct sweep_opts, shuffle, "shuffle", .flags = OPT_OURS, .group = SWEEP_GROUP_OURS, \
	    .help = "run the combinations in a random order, against drift; results keep "     \
		    "their own"),                                                             \
	OPT(struct sweep_opts, seed, "seed", .flags = OPT_OURS, .group = SWEEP_GROUP_OURS,     \
	    .arg = "N", .min = 0, .max = 4294967295.0, .help = "of that order")

/* Ours, of verbs that drive a server. */
#define SWEEP_ROWS_OURS                                                                     \
	OPT(struct sweep_opts, restart, "restart", .flags = OPT_OURS,                          \
	    .group = SWEEP_GROUP_OURS, .choices = sweep_restarts,                             \
	    .help = "when the server is started anew, besides for other options of its own"), \
	OPT(struct sweep_opts, stop_on_error, "stop-on-error", .flags = OPT_OURS,              \
	    .group = SWEEP_GROUP_OURS, .help = "end at the first failure"),                   \
	OPT(struct sweep_opts, server_grace, "server-grace", .flags = OPT_OURS,                \
	    .group = SWEEP_GROUP_OURS, .arg = "SECONDS", .min = 0, .max = 1e6,                 \
	    .help = "how long a server may take to end when asked, before it is killed"),     \
	OPT(struct sweep_opts, exec_bench, "exec-bench", .flags = OPT_OURS,                    \
	    .group = SWEEP_GROUP_OURS, .help = "start the benchmark's command even where this " \
					       "program can do it itself"),                   \
	OPT(struct sweep_opts, resume_anyway, "resume-anyway", .flags = OPT_OURS,              \
	    .group = SWEEP_GROUP_OURS, .help = "go on with an experiment that was begun with " \
					       "another --bench-cmd, and keep its runs"),     \
	OPT(struct sweep_opts, strict_args, "strict-args", .flags = OPT_OURS,                  \
	    .group = SWEEP_GROUP_OURS, .help = "refuse server options that vLLM does not have")

/*
 * What no single row can tell: required options, ranges with upstream's sentence, --resume's name
 * (moved to experiment_name), options that exclude each other.
 */
int sweep_opts_check(const struct opt_set *set, struct sweep_opts *o, struct err *e);
/* The sets of serve and startup; searches have theirs in cmd/bench_search.c. */
extern const struct opt_set sweep_serve_opt_set, sweep_startup_opt_set;
