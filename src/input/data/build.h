/* SPDX-License-Identifier: Apache-2.0 */
/* build.h - functions that datasets are built with. */
#pragma once
#include "core/base/limits.h"
#include "input/data/dataset.h"
#include "input/table/table.h"

#define VALID_TOKENS_MIN 4 /* datasets spec 1.4 */

/* "<prefix><index>" in the workload's arena. */
struct str dataset_request_id(struct workload *w, const struct dataset_env *env, size_t index);

/*
 * Datasets spec 1.3: when fewer than num_prompts were accepted, copies of
 * uniformly chosen ones are appended (Python's generator, re-seeded).
 */
int dataset_oversample(struct workload *w, const struct dataset_opts *o,
		       const struct dataset_env *env, struct compat_rng *rng, struct err *e);
/* -1 with ERR_CANCELLED once the caller asked to stop; called between prompts. */
int dataset_go_on(const struct dataset_env *env, struct err *e);
void dataset_progress(const struct dataset_env *env, size_t done, size_t total);

/* Reports progress while a table is opened (struct table_opts). */
struct dataset_reading {
	const struct dataset_env *env;
	const char *path;
};
void dataset_reading_show(void *self, uint64_t done, uint64_t total);

/* Keeps a sample's own request keys (workload_keep). */
int dataset_keep_own(struct workload *w, struct sample *s, struct err *e);

/* Refuses a backend that does not send `what` ("sessions") as chat messages, where one is named. */
int dataset_check_chat(const struct dataset_env *env, const char *what, struct err *e);
/*
 * Which of `all` sessions are sent: --num-prompts of them, in order, then, unless --no-oversample
 * is given, uniformly chosen ones again. *n: how many; the caller frees them.
 */
size_t *dataset_choose(const struct dataset_opts *o, const struct dataset_env *env,
		       struct compat_rng *rng, size_t all, size_t *n);

/* Adds a line to the notes about the workload that the user sees. */
__attribute__((format(printf, 2, 3)))
void dataset_note(struct workload *w, const char *fmt, ...);
/*
 * Whether the backend sends prompts as chat messages, which may have pictures and which it
 * templates.
 */
bool dataset_sends_messages(const struct dataset_env *env);
/*
 * Whether this backend carries media: a server's API in messages or (uploads) as a file, an engine
 * next to the prompt. backends: those that do, for errors.
 */
bool dataset_carries_media(const struct dataset_env *env, const char **backends);
/* Notes which media this backend does not send, as upstream; RTFx is then without them. */
void dataset_note_media(struct workload *w, const struct dataset_env *env);
/*
 * The seed of sets that upstream always seeds with 0: 0, with a note when --seed is another, or
 * --seed with --fix dataset-seed.
 */
uint64_t dataset_fixed_seed(struct workload *w, const struct dataset_opts *o,
			    const struct dataset_env *env);
/* The divisor of arrival times: --speedup. */
double dataset_speedup(const struct dataset_opts *o);
/* Whether env has a chat template for user messages. */
bool dataset_has_chat(const struct dataset_env *env);

/* Notes how many requests --max-model-len left out; 0: nothing. */
void dataset_note_long(struct workload *w, const struct dataset_opts *o, size_t dropped);

/*
 * ---- rows that become at most one request each ----
 *
 * A set describes its rows; dataset_take does the rest: it walks them in the set's order until
 * enough are accepted, counts tokens of many rows at once on all threads, leaves out lengths that
 * are not valid, makes media in parallel, numbers the requests and oversamples.
 */
struct draft {
	struct sample sample;  /* as far as the row says; texts in the arena it was drafted with */
	struct str counted;    /* what prompt_len counts; p NULL: sample.prompt */
	struct str answer;     /* its tokens become output_len; p NULL: sample.output_len counts */
	bool is_answer_plain;  /* counted without special tokens */
	const void *media;     /* for make_media; NULL: none to make */
	bool is_media_prompt;  /* the parts that are made are the whole prompt */
	bool is_media_file;    /* what is made are no parts but sample.file */
	bool has_priority;     /* sample.priority is given */
};

struct take {
	void *self;
	size_t rows; /* SIZE_MAX: not known; draft lowers it to where they ended, and gives 0 */
	/*
	 * Makes a draft of the i-th row in the set's order. 1: done; 0: the row is left out; -1.
	 * Texts, and what make_media needs, live in a, which is emptied between lots.
	 */
	int (*draft)(void *self, size_t i, struct arena *a, struct draft *d, struct err *e);
	/*
	 * Appends d->media as a JSON list of content parts, or as the bytes of a file. Called for
	 * accepted rows only, by several threads at once. NULL: sets without.
	 */
	int (*make_media)(void *self, const struct draft *d, struct buf *parts, struct err *e);
	bool has_chat_form;      /* --enable-multimodal-chat makes each prompt one user message */
	bool takes_all;          /* num_prompts <= 0 means every row */
	bool is_row_index;       /* request ids carry the row's place, not that of the accepted */
	/* The length filter (spec 1.4); prompt_max 0: none. */
	size_t prompt_max, total_max;
	bool is_output_unchecked; /* answers of fewer than VALID_TOKENS_MIN tokens are fine */
	size_t input_max;         /* longer prompts are left out, with a note; 0: no limit */
	const char *input_option; /* that says so */
};

/*
 * Without a tokenizer every text counts as one token. Requests already in w count towards
 * num_prompts.
 */
int dataset_take(const struct take *t, const struct dataset_opts *o,
		 const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
		 struct err *e);

/*
 * The rows of data files, put into the order of Python's shuffle.
 *
 * Rows that do not count are left out before the shuffle, as upstream does. Memory: 8 bytes
 * per row and what a table takes.
 */

struct rows_opts {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	uint64_t seed;              /* of the shuffle */
	const char *const *columns; /* as table_opts.columns */
	bool is_known_only;         /* keys other than these and request_keys.h's are counted; */
	int64_t output_len;         /* and so is output_tokens, unless this is -1 */
	/*
	 * Whether a row is used: 1, 0; -1 with a sentence, which rows_open prefixes with the place.
	 */
	int (*keep)(void *self, struct json_slice row, struct err *e);
	void *self;
};

/* Zeroed is a valid empty one. */
struct dataset_rows {
	struct table **table;
	size_t *end;    /* rows of the tables up to this one */
	size_t tables;
	size_t *order;  /* rows that count, by number over all tables */
	size_t n, all;  /* that count, and in all */
	const char *const *known; /* keys that are used; NULL: not looked at */
	int64_t output_len;       /* see rows_opts */
	struct unused_key { char *name; size_t rows; } unused[UNUSED_KEYS_MAX];
	size_t n_unused, unnamed; /* named above; times that a further key was met */
};

/* The rows of n files, one after the other. r must be released also when it fails. */
int rows_open(struct dataset_rows *r, const char *const *path, size_t n,
	      const struct rows_opts *opts, struct compat_rng *rng, struct err *e);
void rows_release(struct dataset_rows *r);

/* The i-th in order; its text stays until the next call. */
int rows_get(struct dataset_rows *r, size_t i, struct json_slice *row, struct err *e);

/*
 * Reads the row's own request keys (request_keys.h) into d->sample; texts in a. Call it last: its
 * lengths take precedence. ERR_RUN with file and line.
 */
int rows_own_keys(const struct dataset_rows *r, size_t i, struct json_slice row, struct arena *a,
		  struct draft *d, struct err *e);

/* Notes keys of the rows that the set does not use. */
void rows_note_unused(const struct dataset_rows *r, const struct dataset_opts *o,
		      struct workload *w);

/* dataset_take over all of them; ERR_RUN when there are none. */
int rows_take(const struct dataset_rows *r, struct take *take, const struct rows_opts *opts,
	      struct compat_rng *rng, struct workload *w, struct err *e);

/* "train.jsonl:17: <sentence>", ERR_RUN; returns -1. */
__attribute__((format(printf, 4, 5)))
int rows_refuse(const struct dataset_rows *r, size_t i, struct err *e, const char *fmt, ...);

/* Appends a member's text; false: missing or not a text. */
bool rows_text(struct json_slice object, const char *key, struct buf *out);
/* The unescaped content of a JSON text, in the arena. */
struct str rows_string(struct json_slice v, struct arena *a);
/* An element of a list; false: not a list, or shorter. */
bool rows_item(struct json_slice list, size_t index, struct json_slice *item);
