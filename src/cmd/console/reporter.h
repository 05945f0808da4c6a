/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporter.h - `--dashboard URL`: a run reports to a dashboard while it is measured.
 *
 * A thread of its own sends about one sample a second, with the values of --live, taken on the
 * thread that waits for the loops. No load thread waits for it, and its failures do not affect the
 * run: the first one is one warning, after which it silently retries every few seconds until the
 * run ends. A dashboard that refuses (a wrong token, a newer or older API) is not asked again. A
 * dashboard that was restarted in between gets a new live run.
 *
 * Runs report one after another. All functions but reporter_new accept NULL and do nothing then;
 * all are for one thread. Warnings and lines are given on that thread.
 */
#pragma once
#include <stdint.h>

#include "bench/serve/point.h"
#include "core/base/err.h"
#include "core/base/str.h"

struct reporter;

struct reporter_opts {
	const char *url;   /* dashboard_find_printed; borrowed for as long as the reporter lives */
	const char *kind;  /* "bench serve", "run" */
	void *self;
	void (*line)(void *self, const char *text); /* where the result is to be seen */
	void (*warn)(void *self, const char *text);
};

/* -1 (ERR_USAGE): the address is invalid or its token cannot be read. Asks no dashboard. */
int reporter_new(const struct reporter_opts *o, struct reporter **out, struct err *e);
/* Ends the current run, if any, without a result. */
void reporter_free(struct reporter *r);

/* A run begins; its thread starts. */
void reporter_begin(struct reporter *r, const char *name);
/* The current activity outside the load, and its progress; total 0: unknown. */
void reporter_stage(struct reporter *r, const char *what, uint64_t done, uint64_t total);
/* A sample as for --live, a few times a second. */
void reporter_sample(struct reporter *r, const struct run_sample *now);
/*
 * The run has ended: sends its last sample and its result (a JSON object; empty: none), and why it
 * is missing or incomplete (NULL: it is not). Waits for that, half a minute at most.
 */
void reporter_end(struct reporter *r, struct str result, const char *failure);
