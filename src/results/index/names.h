/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names.h - what a column is, by its name alone: group, unit, which way is better.
 *
 * Metrics of results are looked up in schema/result.json by way of schema/; what that page does
 * not name is known from a short table (names.c) and by how the name ends ("_ms", "_gb"). Pure; a
 * lookup costs a few microseconds, so code that shows hundreds of columns keeps the answers.
 */
#pragma once
#include "core/base/str.h"

struct column_name {
	struct str group;  /* "run", "metric", or what comes before the first dot */
	const char *unit;  /* "" when there is none */
	int better;        /* 1: higher, -1: lower, 0: neither */
	bool is_metric;    /* something that was measured, whatever its group */
	bool is_outcome;   /* not chosen by a user: a metric, a count, when and how long */
};

/* group is borrowed from name or static. */
struct column_name column_name(struct str name);
const char *column_unit(struct str name);
int column_better(struct str name);

/*
 * For people, without the unit: "Median TTFT" of median_ttft_ms; of dotted names what stands behind
 * the first dot, as it is, because that is how an engine's documentation calls it.
 */
void column_label(struct str name, struct buf *out);

/* ---- roles ---- */

/* What a column is for (schema/columns.json), in the order in which columns are preferred. */
enum column_role {
	ROLE_HARDWARE, ROLE_ENGINE, ROLE_VERSION, ROLE_PRECISION, ROLE_PARALLEL,
	ROLE_ARGUMENT,   /* other arguments of the engine */
	ROLE_WORKLOAD, ROLE_LOAD,
	ROLE_PROVENANCE, /* and whatever is of no other role */
	ROLE_HARNESS,    /* ports, paths, seeds, how the client works */
	ROLE_OUTCOME,    /* how a run went, and what was counted */
	ROLE_METRIC,
};

enum column_role column_role(struct str name);
/* A place in that order: smaller ones are preferred, within a role too. */
size_t column_rank(struct str name);
const char *column_role_name(enum column_role role); /* "hardware" */
/* Its place among the roles in that order. */
int column_role_order(enum column_role role);
/* What engineers write in front of its value, as in "TP4", "c32"; "" where there is no such word. */
const char *column_short(struct str name);
