/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/source_sort.h - names of files sorted into subsets and splits; the rules stand in
 * source.h. Pure: no file is touched. Private to data/source*.c.
 */
#pragma once
#include "data/source.h"
#include "data/source_card.h"

struct source_names {
	const char **name; /* relative, in the order of their bytes */
	size_t count;
};

/* Fills subset, split, splits and file of out, in its arena. what: the dataset, for errors. */
int source_sort(const struct source_opts *o, const char *what, const struct source_names *names,
	const struct card *card, struct source *out, struct err *e);

/* Likewise for the hub's converted form: SUBSET/SPLIT/0000.parquet. */
int source_sort_converted(const struct source_opts *o, const char *what,
	const struct source_names *names, struct source *out, struct err *e);

/* Whether there is a data file that is no archive. */
bool source_has_data(const struct source_names *names);

/* Python's glob with "**": "*", "?" and "[...]" stay within one name, "**" crosses folders. */
bool source_glob(const char *pattern, const char *name);
