/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/reuse.h - prompts that a prefix cache knows: the options of all datasets that repeat requests
 * and warm the cache up (data/repeat.h, --warmup-pass), online and offline.
 *
 * A warm-up pass sends each sample once, in the dataset's order, before anything is measured: the
 * same prompt ("same", so that every measured prompt is known), or one that begins with words
 * or ids of its own ("other", so that the engine is warm and its prefix cache is of no use).
 */
#pragma once
#include "base/limits.h"
#include "data/repeat.h"
#include "report/report.h"
#include "token/tokenizer.h"

extern const char *const reuse_passes[]; /* "none", "same", "other", NULL */

/* type: the verb's options; set: its struct dataset_opts; heading: the rows' group. */
#define REUSE_ROWS(type, set, heading)                                                     \
	OPT(type, set.repeat_count, "repeat-count", .group = (heading), .flags = OPT_OURS,    \
	    .arg = "N", .min = 1, .max = REQUESTS_MAX,                                        \
	    .help = "send each request of the dataset N times, unchanged"),                   \
	OPT(type, set.repeat_order, "repeat-order", .group = (heading), .flags = OPT_OURS,    \
	    .arg = "ORDER", .choices = repeat_orders,                                         \
	    .help = "order of repeated requests: random (unless given), tile (the whole "     \
		    "list again and again), interleave (all copies of one request in a "      \
		    "row), sorted (by prompt length)"),                                       \
	OPT(type, set.warmup_pass, "warmup-pass", .group = (heading), .flags = OPT_OURS,      \
	    .arg = "WHICH", .choices = reuse_passes,                                          \
	    .help = "send each request once before the measurement: same (the same prompts, " \
		    "which a prefix cache then has) or other (prompts that share nothing "    \
		    "with the measured ones)")

bool reuse_has_pass(const struct dataset_opts *o);
/* The requests of the warm-up pass; 0 without one. */
size_t reuse_pass_count(const struct workload *w, const struct dataset_opts *o);
/*
 * Those requests, into an empty workload whose samples share w's texts and must go before w.
 * The same seed gives the same ones. ERR_RUN: a prompt that nothing can be put before.
 */
int reuse_pass(const struct workload *w, const struct dataset_opts *o, uint64_t seed,
	       const struct tokenizer *t, struct workload *out, struct err *e);
/* What the report says of all this; texts are borrowed from o and w. */
void reuse_told(const struct workload *w, const struct dataset_opts *o, struct report_reuse *out);
