/* SPDX-License-Identifier: Apache-2.0 */
/* lengths.h - the three histograms of the dataset plot. Private to out/. */
#pragma once
#include <stdint.h>

#include "out/report/report.h"

#define LENGTHS_BINS 30

enum lengths_panel { LENGTHS_PROMPT, LENGTHS_OUTPUT, LENGTHS_TOTAL, LENGTHS_PANELS };

/* NumPy's histogram of whole numbers: equal bins from minimum to maximum. */
struct lengths_hist {
	double edge[LENGTHS_BINS + 1];
	uint32_t count[LENGTHS_BINS];
	double mean;
	int64_t min, max;
};

struct lengths_words { const char *title, *label, *colour; };
extern const struct lengths_words lengths_words[LENGTHS_PANELS];

/* Of every request in the metrics' arrays; m->n is at least 1. */
void lengths_count(const struct metrics *m, enum lengths_panel panel, struct lengths_hist *out);
