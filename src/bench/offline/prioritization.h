/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prioritization.h - `bench prioritization`: a set of requests of two priorities at once, and the
 * latency of each class (conversations spec 5.1).
 *
 * Options, requests and the printed line are those of vLLM's script. With --baseline the same
 * requests run once more in the same order without priorities, in a newly started engine, so that
 * neither run finds prompts of the other in a cache.
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

/* Checks that the required lengths are given and the excluded ones are not. ERR_USAGE. */
int prioritization_check(const struct prioritization_opts *o, struct err *e);
/* Appends to notes a line for each engine argument that does not fit priorities. */
void prioritization_notes(const struct offline_engine *engine, struct buf *notes);
/*
 * Runs it, prints through hooks->line, and writes --output-json. With --dry-run the requests are
 * drawn and described, and nothing is started.
 */
int prioritization_run(const struct prioritization_opts *o, const struct offline_engine *engine,
		       const struct offline_hooks *hooks, struct err *e);
/* Prints and writes a measurement, which need not come from prioritization_run. */
int prioritization_report(const struct prioritization_facts *f, const char *output_json,
			  const struct offline_hooks *hooks, struct err *e);
