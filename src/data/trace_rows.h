/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data/trace_rows.h - which rows of a trace are sent, in which order and when. Private to data/.
 *
 * All rows are read once; 64 bytes of each stay. Steps: rows without an answer are left out,
 * times are held against those before or sorted, rows find their session, --trace-start and
 * --trace-end choose, times are rebased and divided.
 */
#pragma once
#include "data/trace_source.h"

#define TRACE_NO_PARENT UINT32_MAX

struct trace_kept {
	double at_s;          /* when it is due; NAN: no time */
	double delay_s;       /* after the end of its parent; NAN: none */
	uint64_t key, parent_key; /* as struct trace_row has them */
	int64_t turn;
	uint32_t row;         /* of the file */
	uint32_t input;
	int32_t output;       /* -1: not told */
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

/* Notes what is worth knowing. ERR_RUN with file and line; r is released by the caller. */
int trace_rows_read(struct trace_rows *r, struct trace_source *s, const struct dataset_opts *o,
		    const struct dataset_env *env, struct workload *w, struct err *e);
void trace_rows_release(struct trace_rows *r);

/*
 * Sessions of rows in the order of time: parent, session and depth are filled in, and the rows are
 * put session by session, those by their first turn. trace_sessions.c
 */
void trace_sessions_group(struct trace_rows *r, bool is_chain);
