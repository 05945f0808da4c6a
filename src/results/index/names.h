/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - the properties of a column by its name: group, unit, which direction is better.
 *
 * Metrics of results are looked up in schema/result.json by way of schema/; others are known from a
 * short table (names.c) and by the ending of the name ("_ms", "_gb"). Pure; a lookup costs a few
 * microseconds, so code that shows hundreds of columns keeps the answers.
 */
#pragma once
#include "core/base/str.h"

struct column_name {
	struct str group;  /* "run", "metric", or what comes before the first dot */
	const char *unit;  /* "" if there is none */
	int better;        /* 1: higher, -1: lower, 0: neither */
	bool is_metric;    /* something that was measured, whatever its group */
	bool is_outcome;   /* not chosen by a user: a metric, a count, when and how long */
};

/* group is borrowed from name or static. */
struct column_name column_name(struct str name);
const char *column_unit(struct str name);
int column_better(struct str name);

/*
 * Appends a label for people, without the unit: "Median TTFT" for median_ttft_ms; for dotted names
 * what follows the first dot, unchanged, because an engine's documentation uses that name.
 */
void column_label(struct str name, struct buf *out);

/* ---- roles ---- */

/* The purpose of a column (schema/columns.json), in the order in which columns are preferred. */
enum column_role {
	ROLE_HARDWARE, ROLE_ENGINE, ROLE_VERSION, ROLE_PRECISION, ROLE_PARALLEL,
	ROLE_ARGUMENT,   /* other arguments of the engine */
	ROLE_WORKLOAD, ROLE_LOAD,
	ROLE_PROVENANCE, /* also columns without another role */
	ROLE_HARNESS,    /* ports, paths, seeds, client internals */
	ROLE_OUTCOME,    /* status and counts of a run */
	ROLE_METRIC,
};

enum column_role column_role(struct str name);
/* A position in that order: smaller ones are preferred, also within a role. */
size_t column_rank(struct str name);
const char *column_role_name(enum column_role role); /* "hardware" */
/* The position of a role in that order. */
int column_role_order(enum column_role role);
/* A short prefix for its value, as in "TP4", "c32"; "" if there is none. */
const char *column_short(struct str name);
