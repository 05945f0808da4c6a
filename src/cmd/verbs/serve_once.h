/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_once.h - one run of `bench serve` from its options to its report and files.
 *
 * stdout has upstream's output, followed by ours; stderr the progress bar, warnings and errors.
 * Ctrl-C stops load; what was measured is reported and saved, and the exit status is 130.
 */
#pragma once
#include "bench/options/serve_opts.h"
#include "cmd/console/cli.h"

/* Results for other verbs. A zeroed struct is empty. */
struct point;
struct serve_outcome {
	struct buf result; /* the result as JSON, as --save-result would write it; empty: none */
	/* A run's report is printed, and the point still has its record. NULL: not wanted. */
	int (*measured)(void *self, const struct point *p, struct err *e);
	void *self;
	/* Warnings, a line each, that are not repeated and that new ones are added to; or NULL. */
	struct buf *warned;
	uint64_t requests, asked_tokens; /* of the dataset's prompts and the answers asked for */
};

/*
 * cli and opts come from cli_begin with serve_opt_set. Ends cli, whose err stays; returns the
 * exit status. out may be NULL.
 */
int serve_once(struct cli *cli, struct serve_opts *opts, struct serve_outcome *out);

