/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/custom.h - the sampler of custom, spec_bench and speed_bench: a text per row, put
 * through the chat template. Private to data/.
 */
#pragma once
#include "data/rows.h"

struct custom_sampler {
	const struct dataset_opts *o;
	const struct dataset_env *env; /* its seed is the set's */
	const char *const *columns; /* as table_opts.columns */
	bool is_known_only;         /* as rows_opts has it; then rows have keys of requests, too */
	const char *field;          /* what a row must have: "prompt" */
	const char *category;       /* only rows of this "category"; NULL: all */
	int64_t output_len;         /* -1: each row's output_tokens */
	const char *output_option;  /* the option it comes from */
	struct opt_int input_max;   /* longer prompts are left out */
	const char *input_option;   /* the option that says so */
	/* Appends the row's text; false: it has none. */
	bool (*text)(struct json_slice row, struct buf *out);
	/* A row that is only a notice is left out, with a note; NULL: there are none. */
	bool (*is_notice)(struct json_slice row);
	/* its own */
	struct rows rows;
	struct buf scratch, wrapped;
	size_t notices;
};

/* All rows of n files. */
int custom_sample(struct custom_sampler *s, const char *const *path, size_t n,
		  struct compat_rng *rng, struct workload *w, struct err *e);

/* The row's own output_tokens: a whole number of tokens. */
int custom_output_tokens(const struct rows *rows, size_t i, struct json_slice row,
			 const char *option, int64_t *out, struct err *e);

/* A path must end in .jsonl, as upstream. what: the set; holds: what its rows do. */
int custom_check_path(const char *path, const char *what, const char *holds, struct err *e);
