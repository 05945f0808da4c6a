/* SPDX-License-Identifier: Apache-2.0 */
/*
 * telemetry/names.h - what is kept of a server's /metrics, and under which name.
 *
 * Servers call the same things by different names; each thing has one short name
 * here, and a list of the names it goes by elsewhere (names.c). Samples of one thing
 * that differ by label (several engines, several models) become one value: their
 * sum, or their mean where a sum means nothing (the used share of a cache).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/limits.h"
#include "base/str.h"
#include "record/series.h"

struct telemetry_values {
	double value[SERIES_COUNT];
	bool is_told[SERIES_COUNT];
	double position[SPEC_POSITIONS_MAX];
	bool is_position_told[SPEC_POSITIONS_MAX];
	size_t n_told; /* values and positions */
};

/* What the text of one /metrics says. Lines that are malformed are read over. */
void telemetry_read(struct str text, struct telemetry_values *out);
