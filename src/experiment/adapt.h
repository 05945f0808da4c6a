/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/adapt.h - upstream's search for the largest concurrency within limits, from a list of
 * levels that were run anyway (sweep spec 8.2). Pure: whoever uses it runs what adapt_next says.
 *
 * The list gives the last level that passes and the first failure behind it; failures before any
 * pass are ignored. With both, whole numbers in between are bisected until they are neighbours. If
 * all pass, the search goes on beyond the largest, first by the list's last gap, each time by twice
 * as much, up to a maximum, and bisects after the first failure. It ends early when its probes
 * are used up or a result does not say whether it passes. When nothing passes there is no search.
 *
 * Limits are held as they are, without slack. run/search.h searches better; this one is for results
 * that are compared with upstream's.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "experiment/import.h"
#include "json/read.h"

enum adapt_verdict { ADAPT_PASS, ADAPT_FAIL, ADAPT_UNKNOWN };

struct adapt_point {
	int64_t concurrency;
	enum adapt_verdict verdict;
};

struct adapt {
	const struct import_opts *o;
	/* 0: none */
	int64_t static_last_pass, static_first_fail, last_pass, first_fail;
	int64_t largest, step, probes;
	bool is_ended;
};

/*
 * By p99 TTFT and TPOT of a result, or what else of them it has, and by its share of failed
 * requests, with the rules of run/sla.h.
 */
enum adapt_verdict adapt_judge(const struct json_value *result, const struct import_opts *o);

/* points: sorted, no level twice. */
void adapt_begin(struct adapt *a, const struct import_opts *o, const struct adapt_point *points,
		 size_t n);
/* What is to be run next; 0: the search is over. */
int64_t adapt_next(const struct adapt *a);
/* What came of it. is_new: it was run for this and used up a probe. */
void adapt_take(struct adapt *a, int64_t concurrency, enum adapt_verdict verdict, bool is_new);
