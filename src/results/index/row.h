/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.h - one run as cells: what every document becomes, and what is filtered.
 *
 * A column is a dotted name. Plain names are the run's own (run_id, suite, name, timestamp, status,
 * mode, source, verdict ...) and its metrics by their result names (request_throughput,
 * median_ttft_ms ...); server.NAME are engine arguments, ROLE.NAME those of servers with another
 * role (prefill.tensor_parallel_size), benchmark.NAME the load's options; system.NAME,
 * hardware.NAME, environment.NAME, provenance.NAME and tags.NAME the rest. store/kinds.h lists
 * where each kind of file gives which.
 *
 * Absent, null, false and 0 are four things. An infinite number stands for "inf" in JSON; NaN does
 * not occur. timestamp is a number, seconds since 1970 in UTC.
 *
 * Everything is borrowed: a row's texts live as long as what made them.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/str.h"

enum value_kind { VALUE_ABSENT, VALUE_NULL, VALUE_BOOL, VALUE_NUMBER, VALUE_TEXT };

struct value {
	enum value_kind kind;
	union {
		bool is_true;
		double number;
		struct str text; /* valid UTF-8 */
	};
};

struct cell {
	struct str column;
	struct value value; /* never absent */
};

/* Columns occur once each, in any order. */
struct row {
	int64_t id; /* the store's number of the run, above 0; never used again */
	struct cell *cell;
	size_t n;
};

/* An order over all values: absent, null, false, true, numbers, texts by bytes. */
int value_compare(struct value a, struct value b);
bool value_same(struct value a, struct value b);
