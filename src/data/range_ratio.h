/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/range_ratio.h - how far lengths may be off the length asked for; datasets spec 3.1.
 */
#pragma once
#include "base/err.h"

/*
 * A number r for both, or {"input": r, "output": r}; 0 <= r < 1. option names it in errors
 * ("--random-range-ratio"). ERR_USAGE.
 */
int range_ratio_parse(const char *option, const char *text, double *input, double *output,
		      struct err *e);
