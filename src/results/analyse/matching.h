/* SPDX-License-Identifier: Apache-2.0 */
/*
 * matching.h - the runs of groups as configurations that can be held against each other.
 * Private to analyse/.
 *
 * A configuration is everything that was configured (series.h). A column with one value in each
 * group, though not the same in all, defines the groups and is no part of it; neither is the number
 * of GPUs where parallel sizes define them, because it follows from those. What one of the load's
 * options says beside the configuration of its server is the load.
 */
#pragma once
#include "results/analyse/sides.h"
#include "results/decide/compare.h"

/* What the work of a run is read from. */
#define WORK_COLUMNS 6
extern const struct str work_columns[WORK_COLUMNS];
/* value[c] is of work_columns[c]. */
struct matched_work work_at(const struct value *const value[WORK_COLUMNS], size_t row);

struct matching {
	const struct analyse_request *r;
	const struct side *side;   /* the groups */
	size_t n_sides;
	const struct str *ignore;  /* columns that are no part of a configuration */
	size_t n_ignore;
	size_t total;              /* runs of all groups */

	/* filled by matching_find */
	struct str *key;           /* in which configurations differ, model and hardware first */
	size_t n_keys;
	struct str *apart;         /* columns that define the groups */
	size_t n_apart;
	struct value *value;       /* of run i in key k: [k * total + i]; group after group */
	struct value *release;     /* of run i: which defaults its server has */
};

int matching_find(struct matching *m, struct err *e);
/* Fills config and load of the runs, in the same order. */
void matching_name(const struct matching *m, struct matched_run *run);
/*
 * The columns of the key that have no value in common in two groups, as ": model, dtype"; NULL:
 * there is no such column.
 */
const char *matching_obstacles(const struct matching *m, size_t a, size_t b);
