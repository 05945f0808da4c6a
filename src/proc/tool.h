/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/tool.h - another program run to its end: text in, text out.
 *
 * For helpers outside any measurement (gnuplot). Input and output are nameless
 * files and not pipes, so neither side can block the other and nothing has to be
 * drained while waiting.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"

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
