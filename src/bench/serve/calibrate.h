/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibrate.h - measures the error of the client itself: --calibrate, and stored budgets.
 *
 * The program starts its own simulator as a server that records what it does, on a loopback
 * address, and drives it as the measured run drove its server (client/metrics/budget.h). This comes
 * after the run because only then streams and event rate are known, and nothing is running that it
 * could disturb. Its failure never ends a run: the result then has no budget.
 *
 * Stored budgets are files in $PROFLLM_CACHE_DIR/budgets, else $XDG_CACHE_HOME/profllm/budgets,
 * else ~/.cache/profllm/budgets: one for each level. Runs without --calibrate use one that fits.
 */
#pragma once
#include <stdatomic.h>

#include "client/load/load.h"
#include "client/metrics/budget.h"
#include "core/base/err.h"

struct calibration {
	struct budget_level level;   /* to calibrate for */
	/* The relevant options: transport, threads, stamps, warm connections. */
	const struct load_opts *load;
	const char *program;         /* profllm; NULL: this one */
	const atomic_bool *cancel;   /* may be NULL */
};

/*
 * Takes about budget_shape().seconds. ERR_CANCELLED: *cancel was set; ERR_RUN: it cannot be done
 * here, in one sentence that says why.
 */
int calibrate(const struct calibration *c, struct budget *out, struct err *e);

struct stage;

/* Sets point->budget of a measured run: calibrated with --calibrate, else a stored one. */
void stage_budget(struct stage *s);
