/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h - an experiment in progress: combinations in, records out (sweep spec 7.3, 7.4).
 *
 * The unit is a level: one folder below the experiment's with run=0.json ... run=N-1.json, a
 * warmup.json if asked for, and summary.json, the list of its run records. A level that has all its
 * runs is only read; missing runs are made. So an experiment that was interrupted at any moment
 * resumes from its files and ends with the same ones: a run's file appears whole or not at all, and
 * an unreadable or interrupted one is run again.
 *
 * At most one server runs at a time, for one combination of server options: it is started when the
 * first level needs a run, kept while the levels have the same combination (unless --restart says
 * otherwise), and started again if it died. servers.json in the experiment's folder lists every
 * start: command, version, capacity, seconds until ready, log, how it ended.
 *
 * Failures are recorded (run=N.failure.json, SERVE-NAME-failure.json) and counted in n_failed; the
 * experiment continues unless --stop-on-error. Terminal lines are upstream's.
 *
 * Use: sweep_begin; for each level sweep_level and sweep_add; sweep_server_end; sweep_finish;
 * sweep_release always. sweep_serve does all of that for `bench sweep serve`.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "bench/options/serve_opts.h"
#include "bench/sweep/params.h"
#include "bench/sweep/sla.h"
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/opt/opt.h"
#include "results/decide/capacity.h"

/*
 * The options of `bench sweep serve`, serve_workload, serve_sla and startup:
 * one struct, and the rows they have in common.
 *
 * Each verb's set is made of the row macros below and rows of its own; fields that a verb has no
 * row for keep their default. Order and names are upstream's (0.32.0), ours come after. Use:
 * opt_parse, sweep_opts_check.
 */

struct sweep_opts {
	const char *serve_cmd, *bench_cmd; /* required by the verbs with rows for them */
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
extern const char *const sla_searches[]; /* "capacity", then upstream's (sweep/search.h) */

/* The defaults of every verb; startup's differ in num_runs alone. */
#define SWEEP_DEFAULTS SWEEP_DEFAULTS_BUT_RUNS, .num_runs = 3
#define SWEEP_DEFAULTS_BUT_RUNS                                                             \
	.startup_cmd = "vllm bench startup", .server_ready_timeout = 300, .link_vars = "",   \
	.output_dir = "results", .restart = "never", .server_grace = 30,                     \
	.workload_var = "request_rate", .workload_iters = 10, .sla_variable = "request_rate", \
	.hover_window = 10, .sla_max_failed = SLA_MAX_FAILED_PERCENT,                        \
	.precision = FIND_PRECISION_PERCENT, .budget = CAPACITY_BUDGET_S,                    \
	.level_seconds = CAPACITY_LEVEL_S

#define SWEEP_GROUP "Sweep"
#define SWEEP_GROUP_OURS "Sweep, continued"

/* Options for the server and the client. */
#define SWEEP_ROWS_SERVE                                                                    \
	OPT(struct sweep_opts, serve_cmd, "serve-cmd", .arg = "COMMAND", .group = SWEEP_GROUP, \
	    .help = "command that starts the server (required): 'vllm serve MODEL ...'"),          \
	OPT(struct sweep_opts, bench_cmd, "bench-cmd", .arg = "COMMAND", .group = SWEEP_GROUP, \
	    .help = "command that measures it (required): 'vllm bench serve ...'; run inside " \
		    "this program where possible"),                                         \
	OPT(struct sweep_opts, after_bench_cmd, "after-bench-cmd", .arg = "COMMAND",           \
	    .group = SWEEP_GROUP, .help = "run after each benchmark instead of resetting the " \
					  "server's caches"),                                 \
	OPT(struct sweep_opts, show_stdout, "show-stdout", .group = SWEEP_GROUP,               \
	    .help = "show the output of server and benchmark"),                        \
	OPT(struct sweep_opts, server_ready_timeout, "server-ready-timeout",                   \
	    .arg = "SECONDS", .min = 1, .max = 1e6, .group = SWEEP_GROUP,                      \
	    .help = "time limit for a server to become ready"),                           \
	OPT(struct sweep_opts, serve_params, "serve-params", .arg = "FILE",                    \
	    .group = SWEEP_GROUP,                                                           \
	    .help = "combinations of server options: JSON, as a file or as text; a list of "   \
		    "objects, or an object of named ones"),                                   \
	OPT(struct sweep_opts, link_vars, "link-vars", .arg = "A=B,...", .group = SWEEP_GROUP, \
	    .help = "run only pairs in which the server's A equals the benchmark's B"),        \
	OPT(struct sweep_opts, bench_params, "bench-params", .arg = "FILE",                    \
	    .group = SWEEP_GROUP,                                                           \
	    .help = "combinations of benchmark options: JSON, as a file or as text; each is "  \
		    "run with each combination of server options")

/* Options for where results go and which are made. num_runs_help differs between verbs. */
#define SWEEP_ROWS_FOLDER                                                                   \
	OPT(struct sweep_opts, output_dir, "output-dir", .letter = 'o', .arg = "DIR",          \
	    .group = SWEEP_GROUP, .help = "folder of all experiments"),                     \
	OPT(struct sweep_opts, experiment_name, "experiment-name", .letter = 'e',              \
	    .arg = "NAME", .group = SWEEP_GROUP,                                              \
	    .help = "name of this experiment's folder in --output-dir; default: date and "  \
		    "time"),                                                                \
	OPT(struct sweep_opts, num_runs, "num-runs", .arg = "N", .group = SWEEP_GROUP,         \
	    .help = "runs of each combination")

#define SWEEP_ROWS_WARMUP                                                                   \
	OPT(struct sweep_opts, warmup_num_prompts, "warmup-num-prompts", .arg = "N",           \
	    .group = SWEEP_GROUP, .help = "requests of a run before each combination that is " \
					  "kept as warmup.json and not counted"),             \
	OPT(struct sweep_opts, continue_on_error, "continue-on-error", .group = SWEEP_GROUP,   \
	    .help = "record failures and continue, which is the default; see --stop-on-error")

#define SWEEP_ROWS_MODE                                                                     \
	OPT(struct sweep_opts, dry_run, "dry-run", .group = SWEEP_GROUP,                       \
	    .help = "print what would be run and run nothing"),                               \
	OPT(struct sweep_opts, resume, "resume", .arg = "NAME", .group = SWEEP_GROUP,          \
	    .help = "continue an experiment: keep the runs that it has and do the missing ones; NAME " \
		    "is short for --experiment-name NAME")

/* Our options for verbs that know all their combinations before they begin. */
#define SWEEP_ROWS_ORDER                                                                    \
	OPT(struct sweep_opts, shuffle, "shuffle", .flags = OPT_OURS, .group = SWEEP_GROUP_OURS, \
	    .help = "run the combinations in a random order, so that drift does not bias "  \
		    "them"),                                                                \
	OPT(struct sweep_opts, seed, "seed", .flags = OPT_OURS, .group = SWEEP_GROUP_OURS,     \
	    .arg = "N", .min = 0, .max = 4294967295.0, .help = "seed of that order")

/* Our options for verbs that drive a server. */
#define SWEEP_ROWS_OURS                                                                     \
	OPT(struct sweep_opts, restart, "restart", .flags = OPT_OURS,                          \
	    .group = SWEEP_GROUP_OURS, .choices = sweep_restarts,                             \
	    .help = "when the server is restarted, apart from changes of its own options"), \
	OPT(struct sweep_opts, stop_on_error, "stop-on-error", .flags = OPT_OURS,              \
	    .group = SWEEP_GROUP_OURS, .help = "stop at the first failure"),                   \
	OPT(struct sweep_opts, server_grace, "server-grace", .flags = OPT_OURS,                \
	    .group = SWEEP_GROUP_OURS, .arg = "SECONDS", .min = 0, .max = 1e6,                 \
	    .help = "time limit for a server to exit when asked to, before it is killed"),     \
	OPT(struct sweep_opts, exec_bench, "exec-bench", .flags = OPT_OURS,                    \
	    .group = SWEEP_GROUP_OURS, .help = "start --bench-cmd as a program even where this " \
		    "program can do the same"),                                             \
	OPT(struct sweep_opts, resume_anyway, "resume-anyway", .flags = OPT_OURS,              \
	    .group = SWEEP_GROUP_OURS, .help = "continue an experiment that began with "    \
		    "another --serve-cmd or --bench-cmd, and keep its runs"),               \
	OPT(struct sweep_opts, strict_args, "strict-args", .flags = OPT_OURS,                  \
	    .group = SWEEP_GROUP_OURS, .help = "refuse server options that vLLM does not have")

/*
 * Rules beyond a single row: required options, ranges with upstream's sentence, --resume's name
 * (moved to experiment_name), options that exclude each other.
 */
int sweep_opts_check(const struct opt_set *set, struct sweep_opts *o, struct err *e);
/* The sets of serve and startup; searches have theirs in verbs/bench_sweep.c. */
extern const struct opt_set sweep_serve_opt_set, sweep_startup_opt_set;

struct sweep_progress {
	unsigned point, points; /* from 1; points 0: not known */
	unsigned run, runs;     /* from 1; 0: the warm-up */
	double left_s;          /* until the end, from the runs so far; NAN: not known */
};

/* Callbacks of a sweep, on its thread. cancel, line and warn are required. */
struct sweep_hooks {
	void *self;
	void (*line)(void *self, const char *text); /* for stdout, without a newline at the end */
	void (*warn)(void *self, const char *text);
	void (*progress)(void *self, const struct sweep_progress *now); /* NULL: none */
	/*
	 * A benchmark inside this program: knows says whether it can run the command; bench runs it
	 * and returns its exit status (-1 with e: none). NULL: every command is started as a
	 * process.
	 */
	bool (*knows)(void *self, char *const *argv);
	int (*bench)(void *self, char *const *argv, bool is_shown, struct err *e);
	const atomic_bool *cancel;
};

/* Run records: JSON objects as in summary.json. */
struct sweep_records {
	const struct json_value **v;
	size_t n, cap;
};

struct sweep_link { const char *serve, *bench; };

struct server;
struct sweep_start; /* sweep_server.c's */
struct sweep {
	const struct sweep_opts *o;
	const struct sweep_hooks *hooks;
	struct arena arena;               /* everything below */
	char **serve_cmd, **bench_cmd, **after_cmd; /* after_cmd NULL: caches are reset */
	char **startup_cmd;               /* in place of the two; NULL: not a sweep of starts */
	struct params serve, bench;
	struct sweep_link *link;
	size_t n_links;
	char *folder;                     /* the experiment's */
	int lock;                         /* 1 + the folder's descriptor; 0: not entered */
	struct sweep_records records;     /* of all levels so far, for summary.csv */
	unsigned n_failed;                /* runs and servers */
	struct sweep_progress progress;   /* point and points are the verb's to fill */
	double run_s;                     /* seconds of all runs made so far, caches reset */
	unsigned n_runs;                  /* how many */
	unsigned runs_left;               /* still to be made; the verb's to fill */
	/* the server; sweep_server.c's */
	struct server *server;            /* NULL: none runs */
	const struct json_value *serving; /* its combination; NULL: no [BEGIN SERVER] is open */
	bool is_server_failed;            /* none could be started for what was asked last */
	struct sweep_start *first_start, *start; /* of this sitting; start: the last one */
	const struct json_value *earlier; /* what servers.json held; NULL: nothing */
};

/*
 * Reads the parameter files, splits the commands and settles the folder: it must exist with
 * --resume and must not without. Nothing is written yet. ERR_RUN with upstream's sentences.
 */
int sweep_begin(struct sweep *s, const struct sweep_opts *o, const struct sweep_hooks *hooks,
		struct err *e);
/* Whether --link-vars allow the pair. */
bool sweep_is_linked(const struct sweep *s, const struct json_value *serve,
		     const struct json_value *bench);
/*
 * The folder of a level (see params_folder; extra may be NULL), in the arena. If the experiment
 * already has it in serve_multi's spelling, that one is used.
 */
char *sweep_folder(struct sweep *s, const struct json_value *serve, const struct json_value *bench,
		   const char *const *extra);
/* How many of this level's runs are missing. */
unsigned sweep_runs_lacking(struct sweep *s, const char *folder);

/*
 * Starts a server for this combination unless it runs already; one of another combination is ended
 * first. Prints [BEGIN SERVER] and what follows. Dry-run: only prints. 0 also when it could not be
 * started: is_server_failed is set, the failure recorded. -1: the sweep must end.
 */
int sweep_server_begin(struct sweep *s, const struct json_value *serve, struct err *e);
int sweep_server_end(struct sweep *s, struct err *e); /* nothing when none was begun */

/*
 * One level: reads existing runs and makes the others with bench applied to the benchmark's
 * command. A server is begun only if a run is missing, unless the verb has begun one. out gets the
 * level's records as in summary.json: fewer than --num-runs when some failed, none in a dry run.
 * -1: the sweep must end (cancelled, --stop-on-error, no room); what was measured stays.
 */
int sweep_level(struct sweep *s, const struct json_value *serve, const struct json_value *bench,
		const char *folder, struct sweep_records *out, struct err *e);
/*
 * The same, but ends as soon as is_enough, called after each run, accepts the records so far: a
 * search may stop early. summary.json has whatever runs are there.
 */
typedef bool sweep_enough(void *self, const struct sweep_records *so_far);
int sweep_level_until(struct sweep *s, const struct json_value *serve,
		      const struct json_value *bench, const char *folder,
		      sweep_enough *is_enough, void *self, struct sweep_records *out,
		      struct err *e);
void sweep_add(struct sweep *s, const struct sweep_records *level);

/*
 * Ends the server, writes summary.csv (not in a dry run) and prints upstream's last line. rc is
 * what the levels returned: after -1 the error gets upstream's sentence about --resume. Returns the
 * exit status: 1 when something failed, -1 with e.
 */
int sweep_finish(struct sweep *s, int rc, struct err *e);
void sweep_release(struct sweep *s);

/* `bench sweep serve`, from begin to finish. The exit status, or -1 with e. */
int sweep_serve(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);
/* `bench sweep startup`: no server, a command that measures starting one (sweep spec 7.7). */
int sweep_startup(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);

/*
 * Experiments that choose levels by what was measured before: `bench sweep serve_workload` (sweep
 * spec 7.5) and `bench sweep serve_sla` (7.6).
 *
 * Both vary one option of the benchmark, request_rate or max_concurrency, for every pair of
 * combinations. A level is a folder of runs as above: existing runs are used again, and a server is
 * begun only when one is missing.
 *
 * serve_workload measures one request at a time and all at once, and evenly spaced levels between
 * these two. serve_sla looks for the largest level within the limits of each object of --sla-params
 * (sweep/search.h) and writes, in addition to upstream's files:
 *   capacity.json     one element per pair and object: the answer with its interval, each limit's
 *                     value there and at the first level that failed, levels and runs
 *   BENCH--NAME.png   latency over throughput, with script and table (sweep/gnuplot.h)
 *   hover.jsonl       with --hover: one line per window at the boundary, also on stdout
 */
int sweep_workload(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);
int sweep_sla(const struct sweep_opts *o, const struct sweep_hooks *hooks, struct err *e);
