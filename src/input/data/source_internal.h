/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_internal.h - reading a set's README.md, and sorting file names into subsets and splits by
 * the rules of source.h. Pure: no file is touched.
 */
#pragma once
#include "core/base/err.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/data/source.h"

/*
 * The `configs:` of a dataset's README.md: the file begins with YAML between two lines of "---",
 * of which only this member is read.
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

struct dataset_card {
	struct card_config *config;
	size_t count;             /* 0: there are none */
};

/* Everything lives in the arena. ERR_PARSE with the line: malformed; ERR_LIMIT as yaml_parse. */
int card_read(struct arena *a, struct str readme, struct dataset_card *out, struct err *e);

struct source_names {
	const char **name; /* relative, in the order of their bytes */
	size_t count;
};

/* Fills subset, split, splits and file of out, in its arena. what: the dataset, for errors. */
int source_sort(const struct source_opts *o, const char *what, const struct source_names *names,
	const struct dataset_card *card, struct source *out, struct err *e);

/* The same for the hub's converted form: SUBSET/SPLIT/0000.parquet. */
int source_sort_converted(const struct source_opts *o, const char *what,
	const struct source_names *names, struct source *out, struct err *e);

/* Whether there is a data file that is not an archive. */
bool source_has_data(const struct source_names *names);

/* Python's glob with "**": "*", "?" and "[...]" stay within one name, "**" crosses folders. */
bool source_glob(const char *pattern, const char *name);
