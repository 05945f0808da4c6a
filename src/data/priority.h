/* SPDX-License-Identifier: Apache-2.0 */
/* data/priority.h - classes that requests are dealt into at random: "0:0.5,1:0.5". */
#pragma once
#include "plan/workload.h"
#include "rng/pyrandom.h"

#define PRIORITY_CLASSES_MAX 32

struct priority_classes {
	struct { int64_t priority; double share; } v[PRIORITY_CLASSES_MAX]; /* shares above 0 */
	size_t n;
};

/* Priority:share pairs with commas between; only the ratios of shares matter. ERR_USAGE. */
int priority_classes_parse(const char *option, const char *text, struct priority_classes *out,
			   struct err *e);
/*
 * Gives every request a priority, in the body too. One random() a request: below the first share
 * (of all) the first class, and so on. ERR_USAGE: requests have priorities already.
 */
int priority_deal(const char *option, const struct priority_classes *classes, struct pyrandom *g,
		  struct workload *w, struct err *e);
