/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporter.h - `--dashboard URL`: a run reports to a dashboard while it is measured.
 *
 * A thread of its own sends about one sample a second; what it sends is what --live shows, taken on
 * the thread that waits for the loops. No load thread waits for it, and nothing it meets spoils the
 * run: the first failure is one warning, after which it is tried again every few seconds without a
 * further word until the run ends. A dashboard that refuses (a wrong token, a newer or older API)
 * is not asked again. A dashboard that was started again in between gets a new live run.
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

/* -1 (ERR_USAGE): the address is none or its token cannot be read. Asks no dashboard. */
int reporter_new(const struct reporter_opts *o, struct reporter **out, struct err *e);
/* Ends what is under way as one without a result. */
void reporter_free(struct reporter *r);

/* A run begins; its thread starts. */
void reporter_begin(struct reporter *r, const char *name);
/* What is under way outside the load, and how far it is; total 0: not known. */
void reporter_stage(struct reporter *r, const char *what, uint64_t done, uint64_t total);
/* The same as --live shows, a few times a second. */
void reporter_sample(struct reporter *r, const struct run_sample *now);
/*
 * The run has ended: its last sample and its result (a JSON object; empty: none) are sent, with
 * why there is none or not all of it (NULL: nothing to say). Waits for that, half a minute at most.
 */
void reporter_end(struct reporter *r, struct str result, const char *failure);
