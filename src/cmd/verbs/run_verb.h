/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run_verb.h - the parts of `profllm run`:
 *
 *   run.c       options, what comes before a run, the run, exit status
 *   run_show.c  what is only shown: the plan, checks, the configuration
 *   run_gate.c  conditions of `require` at the end
 *   run_send.c  documents, and the traces they name, to a dashboard
 *   run_talk.c  what is shown while it runs
 *   run_events.c  what other programs are told while it runs
 */
#pragma once
#include "cmd/console/cli.h"
#include "cmd/console/gates.h"
#include "cmd/verbs/run_talk.h"
#include "experiment/config/config.h"
#include "experiment/suite/suite.h"
#include "host/engine/extra.h"

#define RUN_EXIT_FAILED 1
#define RUN_EXIT_INTERRUPTED 130

struct run_opts {
	const char *config, *output;
	struct opt_list set, only, include_dir, may_read, may_start;
	bool is_resumed, dry_run, check, strict, show_log, upload_spool, no_upload_traces;
	bool print_config, print_schema, print_keys, is_bounded;
	const char *plan;
	struct gate_opts gate;
	struct opt_int jobs;
	const char *upload, *token_file, *progress, *member, *args_file, *events;
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

/* ---- run_show.c: the exit status, or -1 with e ---- */

/* --dry-run, --plan. */
int run_plan(struct command_run *c, struct err *e);
/* --check: one table for each member. */
int run_check(struct command_run *c);
/* --print-config. */
void run_print_config(struct command_run *c);

/* ---- run_gate.c ---- */

/* Before anything is run: whether --junit and --summary can be written, and of what. */
int run_gate_check(struct command_run *c, struct gates *g, struct err *e);
/* Every chosen member's document by its conditions: 0, GATE_EXIT, or -1 with e. */
int run_gate(struct command_run *c, struct gates *g, struct err *e);

/* ---- run_send.c ---- */

/* Whether it is known where to and with which token, before anything is run. */
int run_upload_check(struct command_run *c, struct err *e);
/* Every document that is there, when it is asked for. */
int run_upload(struct command_run *c, struct err *e);
/* --upload-spool. */
int run_send_spool(struct command_run *c, struct err *e);
