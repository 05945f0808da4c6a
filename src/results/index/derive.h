/* SPDX-License-Identifier: Apache-2.0 */
/*
 * derive.h - columns computed from a run's others when it is added to the index: GPUs that served,
 * tokens per second of each GPU and of each user, power, load, workload.
 *
 * schema/columns.json lists them ("derived") with their labels, units and formulas. A formula that
 * gives no finite number above 0 gives no cell; the next rule, if any, is tried. Pure. No store
 * keeps these columns, so a changed formula only needs a new SNAPSHOT_FORM.
 */
#pragma once
#include "core/base/mem.h"
#include "results/index/row.h"

/* Texts of gpus_from, in the order in which the rules are tried. */
#define GPUS_FROM_GIVEN "given to the servers"
#define GPUS_FROM_SERVERS "servers x parallel sizes"
#define GPUS_FROM_METADATA "metadata"
#define GPUS_FROM_PARALLEL "parallel sizes"
#define GPUS_FROM_MACHINE "whole machine (assumed)"
/* Of speed_from. */
#define SPEED_FROM_TPOT "median TPOT"
#define SPEED_FROM_E2EL "median E2EL and TTFT"
#define SPEED_FROM_THROUGHPUT "throughput / concurrency"
/* Of load_kind. */
#define LOAD_CONCURRENCY "concurrency"
#define LOAD_RATE "request rate"
#define LOAD_BATCH "batch size"

struct derived_column {
	const char *name;
	enum value_kind kind; /* VALUE_NUMBER or VALUE_TEXT */
	const char *label, *unit;
	int better;           /* as in column_name */
};
extern const struct derived_column derived_columns[];
extern const size_t derived_column_count;
/* NULL: not a derived column. */
const struct derived_column *derived_column(struct str name);

/* The row with its derived cells appended; they live in a. */
struct row derive(const struct row *r, struct arena *a);
