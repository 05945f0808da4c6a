/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_talk.h - what `bench throughput`, latency, startup and mm-processor have in common at
 * the terminal: reading the command line, notes, signals, progress, exit status.
 *
 *	struct latency_opts opts;
 *	struct offline_talk talk;
 *	int status = offline_begin(&talk, &latency_opt_set, &verb, argc, argv, &opts);
 *
 *	if (status != CLI_CONTINUE)
 *		return status;
 *	latency_run(&opts, &talk.engine, &talk.hooks, &result, &talk.cli.err) ...
 *	return offline_end(&talk);
 *
 * Lines go to stdout and warnings to stderr, around a progress bar on stderr. Bars
 * are labelled and shaped as upstream's are; off a terminal they are plain lines.
 */
#pragma once
#include "bench/offline/offline.h"
#include "cmd/console/cli.h"

struct offline_talk {
	struct cli cli;
	struct opt_set set;           /* the verb's, with the simulator's options added */
	struct opt_foreign foreign[2];
	struct arena arena;           /* of what --config became */
	const struct offline_opts *opts;
	struct offline_engine engine; /* after offline_begin */
	struct offline_hooks hooks;   /* for offline_start and the verbs' run functions */
	struct gates gates;           /* n 0: none */
	struct err ungated;           /* of judging */
	/* the bar */
	bool is_bar, is_off, is_utf8, is_drawn, is_ended;
	char what[64];
	int64_t began_ns, drawn_ns;
};

/*
 * Parses argv (--config FILE of YAML first, as vLLM does) into values, whose first member is a
 * struct offline_opts, and checks what all verbs share. CLI_CONTINUE, or the exit status when the
 * command is answered: help, --show-config, --fix help, a mistake. From then on Ctrl-C is caught.
 */
int offline_begin(struct offline_talk *t, const struct opt_set *set,
		  const struct offline_verb *verb, int argc, char **argv, void *values);
/* Prints and empties the notes: cli.result.notes, "...\n" each. */
void offline_notes(struct offline_talk *t);
/*
 * --dry-run: what would be started, on stdout: backend, engine arguments, environment; the verb
 * adds its own lines after it.
 */
void offline_show_plan(struct offline_talk *t);
/*
 * Ends a bar, prints conditions that did not pass and the error if there is one, frees, and returns
 * the exit status. That of a run that failed takes precedence over a gate's.
 */
int offline_end(struct offline_talk *t);
