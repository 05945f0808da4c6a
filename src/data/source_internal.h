/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/source_internal.h - names of files sorted into subsets and splits; the rules stand in
 * source.h. Pure: no file is touched. Private to data/source*.c.
 */
#pragma once
#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "data/source.h"

/*
 * The `configs:` of a dataset's README.md.
 *
 * Between two lines of "---" on top of the file stands YAML; of it only the member `configs`
 * is read, and of YAML what people and tools write there: lists and mappings by indentation
 * or in brackets, plain and quoted texts, comments.
 */

struct card_split {
	const char *name;
	const char **pattern; /* paths or globs, in order */
	size_t count;
};

struct card_config {
	const char *name;
	const char *data_dir;     /* NULL: the dataset's own folder */
	bool is_default;
	struct card_split *split; /* NULL: by the names of files */
	size_t count;
};

struct card {
	struct card_config *config;
	size_t count;             /* 0: there are none */
};

/* Everything lives in the arena. ERR_PARSE with the line: malformed. */
int card_read(struct arena *a, struct str readme, struct card *out, struct err *e);

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
