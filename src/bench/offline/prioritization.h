/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prioritization.h - `bench prioritization`: a set of requests of two priorities at once, and
 * how each class fares (conversations spec 5.1).
 *
 * Options, requests and the printed line are those of vLLM's script. With --baseline the same
 * requests run once more in the same order without priorities, in an engine that is
 * newly started, so that neither run finds prompts of the other in a cache.
 */
#pragma once
#include "bench/offline/offline.h"
#include "out/report/priorities.h"

struct prioritization_opts {
	struct offline_opts common;  /* first: offline.h */
	const char *dataset;         /* ShareGPT JSON; NULL: one text for all */
	struct opt_int input_len, output_len;
	int64_t n;                   /* sequences for each prompt */
	int64_t num_prompts;
	const char *output_json;     /* NULL: no file */
	bool disable_detokenize;
	bool baseline;
};
extern const struct opt_set prioritization_opt_set;
extern const struct offline_verb prioritization_verb;

/* The lengths that must be given, and those that must not. ERR_USAGE. */
int prioritization_check(const struct prioritization_opts *o, struct err *e);
/* What of the engine's arguments does not fit priorities: lines in notes. */
void prioritization_notes(const struct offline_engine *engine, struct buf *notes);
/*
 * Runs it, says it through hooks->line, and writes --output-json. With --dry-run the requests are
 * drawn and described, and nothing is started.
 */
int prioritization_run(const struct prioritization_opts *o, const struct offline_engine *engine,
		       const struct offline_hooks *hooks, struct err *e);
/* Says and writes what was measured, whoever measured it. */
int prioritization_report(const struct prioritization_facts *f, const char *output_json,
			  const struct offline_hooks *hooks, struct err *e);
