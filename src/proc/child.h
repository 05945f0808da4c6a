/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/child.h - a command run to its end, by its words and never by a shell.
 *
 * For commands that may take long and start others: it runs below a keeper (proc/keeper.h), so
 * that its tree ends when it is cancelled and when we end. What it leaves running when it ends by
 * itself (an --after-bench-cmd that starts a service) is let be. Short helpers: proc/tool.h.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>

#include "base/err.h"

struct child_opts {
	char *const *argv;       /* argv[0] is looked for in PATH; ended by NULL */
	char *const *envp;       /* NULL: ours */
	int out_fd, err_fd;      /* -1: /dev/null */
	double grace_s;          /* between TERM and KILL once it is cancelled */
	const atomic_bool *cancel; /* may be NULL */
};

/*
 * The exit status (128 + signal when one ended it), or -1 with e: it could not be started
 * (ERR_RUN), or cancel was set (ERR_CANCELLED; nothing of it is left then).
 */
int child_run(const struct child_opts *o, struct err *e);
