/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/tool.h - another program run to its end: text in, text out.
 *
 * For helpers outside any measurement (gnuplot). Input and output are nameless
 * files and not pipes, so neither side can block the other and nothing has to be
 * drained while waiting.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* Whether PATH has an executable file of this name. */
bool tool_exists(const char *name);
/* That file; NULL: there is none. Caller frees. */
char *tool_path(const char *name);
/* Likewise in folders, a value that PATH could have. */
char *tool_path_in(const char *folders, const char *name);

/*
 * Runs argv (ended by NULL; argv[0] is looked for in PATH) with input as its standard
 * input, waits at most timeout_s seconds and then kills it. Appends what it wrote to
 * standard output and error to out and errors; errors NULL: both to out. The exit status
 * (128 + signal when one ended it), or -1 with e when it could not be started, was
 * killed, or wrote more than a buffer's limit.
 */
int tool_run(const char *const *argv, struct str input, unsigned timeout_s, struct buf *out,
	     struct buf *errors, struct err *e);

/*
 * Likewise, for somebody who may go away and must not cost much: ERR_CANCELLED soon after *cancel
 * was set, ERR_LIMIT when it was killed for taking longer than timeout_s; in both cases with all
 * of its process group. The limits are the kernel's (setrlimit); 0: none.
 */
struct tool_opts {
	const char *const *argv;
	char *const *envp;          /* NULL: ours */
	struct str input;
	unsigned timeout_s;
	const atomic_bool *cancel;  /* NULL: nobody goes away */
	uint64_t file_bytes_max;    /* of what it writes, also to its output */
	uint64_t memory_bytes_max;  /* of its data */
};
int tool_run_within(const struct tool_opts *o, struct buf *out, struct buf *errors, struct err *e);
