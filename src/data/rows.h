/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/rows.h - the rows of data files, put into the order of Python's shuffle. Private to
 * data/.
 *
 * Rows that do not count are left out before the shuffle, as upstream does. Memory: 8 bytes
 * per row and what a table takes.
 */
#pragma once
#include "base/limits.h"
#include "data/common.h"
#include "table/table.h"

struct rows_opts {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	uint64_t seed;              /* of the shuffle */
	const char *const *columns; /* as table_opts.columns */
	bool is_known_only;         /* keys beside these and request_keys.h's are counted; */
	int64_t output_len;         /* and so is output_tokens, unless this is -1 */
	/* Whether a row counts: 1, 0; -1 with a sentence that rows_open says the place of. */
	int (*keep)(void *self, struct json_slice row, struct err *e);
	void *self;
};

/* Zeroed is a valid empty one. */
struct rows {
	struct table **table;
	size_t *end;    /* rows of the tables up to this one */
	size_t tables;
	size_t *order;  /* rows that count, by number over all tables */
	size_t n, all;  /* that count, and in all */
	const char *const *known; /* keys that are used; NULL: not looked at */
	int64_t output_len;       /* as rows_opts has it */
	struct unused_key { char *name; size_t rows; } unused[UNUSED_KEYS_MAX];
	size_t n_unused, unnamed; /* named above; times that a further key was met */
};

/* The rows of n files, one after the other. r must be released also when it fails. */
int rows_open(struct rows *r, const char *const *path, size_t n, const struct rows_opts *opts,
	      struct compat_rng *rng, struct err *e);
void rows_release(struct rows *r);

/* The i-th in order; its text stays until the next call. */
int rows_get(struct rows *r, size_t i, struct json_slice *row, struct err *e);

/*
 * What the row says of its own request (request_keys.h), into d->sample; texts in a. To be called
 * last: what it says of lengths takes precedence. ERR_RUN with file and line.
 */
int rows_own_keys(const struct rows *r, size_t i, struct json_slice row, struct arena *a,
		  struct draft *d, struct err *e);

/* Notes the keys that the rows that were read have and the set does not use. */
void rows_note_unused(const struct rows *r, const struct dataset_opts *o, struct workload *w);

/* dataset_take over all of them; ERR_RUN when there are none. */
int rows_take(const struct rows *r, struct take *take, const struct rows_opts *opts,
	      struct compat_rng *rng, struct workload *w, struct err *e);

/* "train.jsonl:17: <sentence>", ERR_RUN; returns -1. */
__attribute__((format(printf, 4, 5)))
int rows_refuse(const struct rows *r, size_t i, struct err *e, const char *fmt, ...);

/* Appends a member's text; false: there is none, or it is no text. */
bool rows_text(struct json_slice object, const char *key, struct buf *out);
/* An element of a list; false: it is no list or shorter. */
bool rows_item(struct json_slice list, size_t index, struct json_slice *item);
