/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered.h - files in, standard output out, processed by several threads in order.
 *
 * Each thread reads some whole lines (or one whole file), works on them, waits for its turn and
 * writes. So memory holds only the threads' current blocks, a line that arrives on a pipe is
 * answered at once, and what precedes a bad line is written before the error is reported. Standard
 * output closed early ends the work without an error.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

struct ordered {
	const char *const *path; /* "-" is standard input */
	size_t paths;            /* 0: standard input */
	bool is_whole;           /* a file is one item; else a line is, without its end */
	size_t item_bytes_max;   /* a longer item is an error */
	const char *absent_hint; /* what follows the message about a file that is not there */
	unsigned threads;        /* at least 1 */
	/*
	 * Appends to out the output for one item. state is this thread's own: the k-th of those in
	 * states. -1: e is a sentence to which file and line are prepended.
	 */
	int (*item)(void *state, const char *name, struct str item, struct buf *out, struct err *e);
	void *states;       /* threads of them */
	size_t state_bytes;
	/* Bytes read and total (0: unknown); called by one thread at a time. May be NULL. */
	void (*progress)(void *self, uint64_t done, uint64_t total);
	void *self;
};

/* 0: all was written; -1 with e. SIGPIPE must be ignored. */
int ordered_run(const struct ordered *o, struct err *e);
