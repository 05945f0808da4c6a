/* SPDX-License-Identifier: Apache-2.0 */
/* run_verb.h - the two files of `profllm run`: run.c runs, run_show.c prints. */
#pragma once
#include "cmd/console/cli.h"
#include "cmd/console/live.h"
#include "experiment/config/config.h"
#include "experiment/suite/suite.h"
#include "experiment/suite/upload.h"
#include "host/engine/extra.h"

#define RUN_TALK_WARNED 64 /* different warnings that -q shows once each; later ones every time */

/*
 * Output of `profllm run` while it runs: lines of stages and reports on stdout, warnings and one
 * bar on stderr, the members of a suite as they begin and end. With a live view lines wait while
 * load runs, and appear in order after it.
 */
struct run_talk {
	bool is_bar, is_off;      /* progress as a bar; no progress at all */
	bool is_quiet;            /* no progress, no reports: a summary, a suite's table */
	bool is_drawn;            /* a bar is on the current line */
	char what[48];            /* the current stage */
	int64_t began_ns, drawn_ns;
	bool is_single;           /* not a suite: members are not named */
	struct live *live;        /* --live on a terminal; else NULL */
	char head[200];           /* of the live view: which run it is */
	uint64_t warned[RUN_TALK_WARNED]; /* with is_quiet: hashes of warnings that were shown */
	size_t n_warned;
};

/* progress: "auto", "bar", "lines", "none". */
void run_talk_init(struct run_talk *t, const char *progress, bool is_quiet);
/* t must not move. log_fd: experiment_hooks. */
struct suite_hooks run_talk_hooks(struct run_talk *t, int log_fd);
void run_talk_clear(struct run_talk *t);

/*
 * `profllm run --events FILE`: progress as lines of JSON for other programs.
 *
 *   {"event": "progress", "at": S, "what": "Benchmark", "done": 12, "total": 100}
 *   {"event": "progress", "at": S, "line": "..."}                 a message of a stage
 *   {"event": "progress", "at": S, "member": "...", "number": 2, "of": 5, "status": null}
 *   {"event": "telemetry", "at": S, "done": 12, ...}              once a second while load runs
 *
 * at: seconds since 1970. Unknown values are null. Lines are appended, each at once; a full disk
 * ends the lines, not the run.
 */

struct run_events;

/*
 * Changes hooks so that they write to the file and then call the previous hooks. path NULL: *out is
 * NULL and nothing is changed. ERR_USAGE: the file cannot be written.
 */
int run_events_begin(const char *path, struct suite_hooks *hooks, struct run_events **out,
		     struct err *e);
void run_events_end(struct run_events *r); /* accepts NULL */

/*
 * `profllm run --dashboard URL`: each member reports as a run of its own (console/reporter.h), and
 * ends with its document. Members that run as child processes report by themselves.
 */

struct run_report;

/*
 * Changes hooks as run_events_begin does, unless neither url nor a member's output.dashboard names
 * an address. Without is_itself the addresses are only checked: children report. ERR_USAGE: one is
 * not an address.
 */
int run_report_begin(const char *url, bool is_itself, const struct suite *suite,
		     struct suite_hooks *hooks, struct run_report **out, struct err *e);
void run_report_end(struct run_report *r); /* accepts NULL */

#define RUN_EXIT_FAILED 1
#define RUN_EXIT_INTERRUPTED 130

struct run_opts {
	const char *config, *output;
	struct opt_list set, matrix, only, include_dir, may_read, may_start;
	bool is_resumed, dry_run, check, strict, show_log, live, upload_spool, no_upload_traces;
	bool print_config, print_config_schema, print_schema, print_keys, is_bounded;
	bool is_detached, ends_with_stdin, is_quiet;
	const char *scheduler, *hosts;
	struct opt_list scheduler_args;
	const char *plan;
	struct gate_opts gate;
	struct opt_int jobs;
	const char *upload, *compare_with, *token_file, *progress, *member, *args_file, *events;
	const char *dashboard;
};

struct command_run {
	struct cli *cli;
	struct run_opts o;
	struct config_bounds bounds;
	struct config config;
	struct config_know know;
	struct engine_extra extra;
	struct config_findings findings;
	struct suite_opts asked;
	struct suite suite;
	bool has_suite;
	struct suite_checked checked;
	struct run_talk talk;
	struct arena arena;
};

/* Where the document of m (NULL: of any) is sent, and with which token; url NULL: nowhere. */
struct upload_opts run_upload_opts(struct command_run *c, const struct suite_member *m);

/*
 * --compare-with, output.compare_with: compares the newest earlier runs of the same configurations
 * with this run's. out is empty when not asked for, or nothing was measured; what cannot be looked
 * up is a warning. In c's arena.
 */
void run_earlier(struct command_run *c, struct suite_against *out);

/* ---- what is only shown: the exit status, or -1 with e ---- */

/* --dry-run, --plan. */
int run_plan(struct command_run *c, struct err *e);
/* --check: one table for each member. */
int run_check(struct command_run *c);
/* --print-config. */
void run_print_config(struct command_run *c);

