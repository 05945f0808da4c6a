/* SPDX-License-Identifier: Apache-2.0 */
/*
 * schema.h - every field of a result, as data.
 *
 * The table is generated from schema/result.json, as is the page docs/reference/result.md. Keys are
 * paths from the top of the result: "profllm.connect_ms.p99". A key may have variable parts: <p> is
 * a percentile (99, 99.9); <metric>, <spread> and <stat> are one of the names listed under that
 * word; [] is any element of a list.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "core/base/str.h"

enum schema_better { SCHEMA_NONE, SCHEMA_HIGHER, SCHEMA_LOWER };

/* The metrics that a result judges one by one, by their keys in profllm.verdicts. X(name, key). */
#define SCHEMA_JUDGED(X)                                                                  \
	X(TTFT, "ttft") X(TPOT, "tpot") X(ITL, "itl") X(E2EL, "e2el")                     \
	X(REQUESTS, "request_throughput") X(GOODPUT, "request_goodput")                   \
	X(INPUT, "input_throughput") X(OUTPUT, "output_throughput")                       \
	X(TOTAL, "total_token_throughput")

/* No text is NULL; unit and when may be empty. */
struct schema_field {
	const char *key, *unit, *type, *group, *since;
	const char *when;       /* condition for the key to be present; empty: always present */
	const char *definition; /* one sentence, with the formula where there is one */
	enum schema_better better;
};

/* One of the names that a variable part such as <metric> can have. */
struct schema_name {
	const char *place, *name, *definition;
};

extern const struct schema_field schema_fields[]; /* in the result's order */
extern const size_t schema_field_count;
extern const struct schema_name schema_names[];
extern const size_t schema_name_count;

/*
 * The row of a key as results spell it ("p99.9_itl_ms", "profllm.reasons[2].code",
 * also "profllm.reasons[].code") or as the table does; NULL when there is none.
 */
const struct schema_field *schema_field_find(const char *key);

/*
 * Whether a number belongs to the metric that a verdict names (profllm.verdicts, trust.invalid):
 * "steady_state.p99_ttft_ms" and "p99_ttft_answer_ms" belong to "ttft", but
 * "counted_output_throughput" does not belong to "output_throughput".
 */
bool schema_is_of(struct str key, struct str metric);
