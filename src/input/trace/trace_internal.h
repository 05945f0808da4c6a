/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_internal.h - the rows of a trace's file, from any recorder, as times, lengths and names of
 * blocks. Private to data/.
 *
 * A family of traces is a row of the table in trace_source.c; what column names alone cannot
 * describe has a function there. Nothing is rebased, sorted or left out here.
 */
#pragma once
#include "client/record/file.h"
#include "core/base/str.h"
#include "core/json/read.h"
#include "input/data/build.h"
#include "input/table/table.h"
#include "input/token/tokenizer.h"

/*
 * Token ids that prompts of traces are made of, and how ids of blocks and
 * tokens are spelled. Private to data/: timed_trace and trace.
 */

/* All tokens, added ones too, but the declared special ones, ascending. The caller frees *id. */
int trace_ids_all(const struct tokenizer *t, uint32_t **id, size_t *n, struct err *e);
/*
 * Keeps the tokens that begin a word and that are restored when their text is encoded; if they are
 * fewer than TRACE_WORDS_MIN, keeps all.
 */
#define TRACE_WORDS_MIN 256
void trace_ids_words(const struct tokenizer *t, uint32_t *id, size_t *n);
/* Appends a token id to an open JSON list. */
void trace_ids_put(struct buf *list, uint32_t id);
/* Appends the id of a block as Python's str() spells it; false: not an id. */
bool trace_ids_name(struct json_slice id, struct buf *out);

#define TRACE_NOBODY 0 /* no key: a row without session */

/* One row of the file. Slices and texts stay until the next row is read. */
struct trace_row {
	double at_s;          /* by the file's own clock; NAN: it has none */
	double delay_s;       /* after the end of the turn before; NAN: not given */
	int64_t input;        /* tokens; of a row with a text: 0 until that is counted */
	int64_t output;       /* tokens; -1: not given */
	uint64_t key, parent; /* its own, and what it follows; TRACE_NOBODY: none */
	int64_t turn;         /* its place among those of its session */
	uint32_t name;        /* of fills: rows with the same one have the same tokens */
	struct json_slice ids;      /* a list; of another kind: it has none */
	struct json_slice text;     /* of the prompt; of another kind: tokens are generated */
	struct json_slice messages; /* a list; p NULL: not given */
	struct json_slice payload;  /* the body's own keys; p NULL: not given */
	struct json_slice tools, extra; /* further keys of the body; p NULL: not given */
	struct json_slice id;       /* of its session, as in the file; p NULL: not given */
};

struct trace_source;

struct trace_format {
	const char *name;     /* --trace-format */
	const char *title;    /* for people */
	const char *keys;     /* columns it is known by, for errors */
	const char *time, *input, *output, *ids; /* columns; NULL: it has none */
	double per_s;         /* of its clock */
	unsigned block;       /* tokens per id; 0: there are no ids */
	bool is_clock;        /* times are dates with a time of day */
	bool is_time_optional, is_output_optional;
	bool is_chain;        /* rows of one key are turns of a session, in the order of the file */
	bool is_record;       /* a file of --record */
	/* Whether a file's first row is of this family; NULL: it is recognized by its bytes. */
	bool (*is_its)(struct json_slice row);
	/* Reads what columns alone do not describe; NULL: nothing. */
	int (*read)(struct trace_source *s, size_t i, struct json_slice row, struct trace_row *out,
		    struct err *e);
};

/* Zeroed is a valid empty one. */
struct trace_source {
	const struct trace_format *format;
	const char *path;
	size_t rows;
	double per_s;         /* of the clock, --trace-time-unit counted in */
	unsigned block;       /* --trace-block-size counted in */
	/* one of the two */
	struct table *table;
	struct record record;
	struct record_info info;
	struct buf text;      /* a cell */
	int64_t zero_ns;      /* of a clock: the file's first row */
	bool has_zero;
};

/* s must be released also when it fails. ERR_RUN, ERR_PARSE, ERR_IO with file and line. */
int trace_source_open(struct trace_source *s, const struct dataset_opts *o,
		      const struct dataset_env *env, struct err *e);
int trace_source_row(struct trace_source *s, size_t i, struct trace_row *out, struct err *e);
void trace_source_release(struct trace_source *s);

/* "conv.csv:17: <sentence>", ERR_RUN; returns -1. */
__attribute__((format(printf, 4, 5)))
int trace_refuse(const struct trace_source *s, size_t i, struct err *e, const char *fmt, ...);

/*
 * Which rows of a trace are sent, in which order and when.
 *
 * All rows are read once; 64 bytes of each are kept. Steps: rows without an answer are left out,
 * times are checked for order or sorted, rows are assigned to sessions, --trace-start and
 * --trace-end choose, times are rebased and divided.
 */

#define TRACE_NO_PARENT UINT32_MAX

struct trace_kept {
	double at_s;          /* when it is due; NAN: no time */
	double delay_s;       /* after the end of its parent; NAN: none */
	uint64_t key, parent_key; /* as struct trace_row has them */
	int64_t turn;
	uint32_t row;         /* of the file */
	uint32_t input;
	int32_t output;       /* -1: not given */
	uint32_t session;     /* numbered in the order of this list */
	uint32_t parent;      /* in this list, before it; or TRACE_NO_PARENT */
	uint32_t depth;       /* turns before it, on its own path */
};

/* Zeroed is a valid empty one. */
struct trace_rows {
	struct trace_kept *v; /* in order: of time, or session by session */
	size_t n, cap;
	size_t sessions;      /* 0: not grouped */
	bool has_times;       /* every row of them, or every first turn */
	uint64_t skipped, too_long; /* without an answer or prompt; beyond --max-model-len */
};

/* Adds notes for the user. ERR_RUN with file and line; the caller releases r. */
int trace_rows_read(struct trace_rows *r, struct trace_source *s, const struct dataset_opts *o,
		    const struct dataset_env *env, struct workload *w, struct err *e);
void trace_rows_release(struct trace_rows *r);
