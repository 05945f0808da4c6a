/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/source_card.h - the `configs:` of a dataset's README.md. Private to data/source*.c.
 *
 * Between two lines of "---" on top of the file stands YAML; of it only the member `configs`
 * is read, and of YAML what people and tools write there: lists and mappings by indentation
 * or in brackets, plain and quoted texts, comments.
 */
#pragma once
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

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
