/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/dataset.h - one vtable and one table: a dataset is one file and one row.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

#include "data/workload.h"
#include "rng/compat.h"

struct chat_wrap;
struct tokenizer;

struct dataset_opts {
	const char *path;            /* --dataset-path; NULL: none */
	int64_t num_prompts;
	uint64_t seed;
	const struct tokenizer *tokenizer; /* NULL with --skip-tokenizer-init */
	const char *request_id_prefix;
	bool is_shuffle_disabled, is_no_oversample;
	/* What stands around the texts of sets that are templated; NULL: nothing. */
	const struct chat_wrap *chat;
	bool is_chat_backend;
	/* random */
	int64_t random_input_len, random_output_len, random_prefix_len;
	double input_range_ratio, output_range_ratio;
	/* sharegpt, custom: tokens; -1: from the recorded reply, from the row */
	int64_t sharegpt_output_len;
	int64_t custom_output_len;
	bool custom_output_len_is_set;
	unsigned threads;            /* generation; the result does not depend on it */
	/* Progress of generation; may be NULL. Called from this thread only. */
	void (*progress)(void *self, size_t done, size_t total);
	void *progress_self;
	const atomic_bool *cancel;   /* set: build ends with ERR_CANCELLED; may be NULL */
};

struct dataset {
	const char *name;            /* --dataset-name */
	const char *summary;         /* for help and errors */
	bool needs_path, forbids_path, needs_tokenizer;
	bool is_templated; /* each text is a user message put through the model's chat template */
	bool is_rewritten_by_server; /* prompts are aligned through /tokenize (serve spec 2.9) */
	/*
	 * Fills w. Advances rng exactly as upstream's loader advances Python's and
	 * NumPy's global generators. ERR_RUN or ERR_IO with file and line.
	 */
	int (*build)(const struct dataset_opts *o, struct compat_rng *rng, struct workload *w,
		     struct err *e);
};

const struct dataset *dataset_find(const char *name); /* "-" and "_" alike; NULL: unknown */
const struct dataset *const *dataset_all(size_t *n);
