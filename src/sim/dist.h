/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist.h - non-negative amounts written as a number or a distribution.
 *
 *   20                 always 20
 *   uniform:10:30      evenly between 10 and 30
 *   normal:20:5        mean 20, standard deviation 5; draws below 0 become 0
 *   exp:20             exponential with mean 20
 *   lognormal:20:0.5   median 20, sigma 0.5 of the logarithm
 *
 * The unit is the caller's. Equal generator states give equal draws; a constant
 * draws nothing.
 */
#pragma once
#include <stdbool.h>

#include "base/err.h"
#include "base/str.h"
#include "rng/pcg64.h"

enum dist_kind { DIST_CONSTANT, DIST_UNIFORM, DIST_NORMAL, DIST_EXP, DIST_LOGNORMAL };

struct dist {
	enum dist_kind kind;
	double a, b;
};

/* option names the culprit in the error ("--ttft-ms"). ERR_USAGE. */
int dist_parse(struct dist *d, const char *option, const char *text, struct err *e);
double dist_draw(const struct dist *d, struct pcg64 *g);
