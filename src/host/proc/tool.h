/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tool.h - runs another program to its end: text in, text out.
 *
 * For helpers outside any measurement (gnuplot). Input and output are nameless files and not pipes,
 * so neither side can block the other and nothing has to be drained while waiting.
 */
#pragma once
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/base/err.h"
#include "core/base/str.h"

/* Whether PATH has an executable file of this name. */
bool tool_exists(const char *name);
/* The path of that file; NULL: none. Caller frees. */
char *tool_path(const char *name);
/* The same in folders, a list like PATH's. */
char *tool_path_in(const char *folders, const char *name);

/*
 * Runs argv (ended by NULL; argv[0] is looked for in PATH) with input as its standard input, waits
 * at most timeout_s seconds and then kills it. Appends its standard output and error to out and
 * errors; errors NULL: both to out. The exit status (128 + signal if a signal ended it), or -1 with
 * e when it could not be started, was killed, or wrote more than a buffer's limit.
 */
int tool_run(const char *const *argv, struct str input, unsigned timeout_s, struct buf *out,
	     struct buf *errors, struct err *e);

/*
 * As tool_run, on behalf of a client that may disconnect, and with limited resources: ERR_CANCELLED
 * soon after *cancel was set, ERR_LIMIT when it took longer than timeout_s; in both cases its whole
 * process group is killed. The limits are the kernel's (setrlimit); 0: none.
 */
struct tool_opts {
	const char *const *argv;
	char *const *envp;          /* NULL: ours */
	struct str input;
	unsigned timeout_s;
	const atomic_bool *cancel;  /* may be NULL */
	uint64_t file_bytes_max;    /* of each file it writes, also its output */
	uint64_t memory_bytes_max;  /* of its data */
};
int tool_run_within(const struct tool_opts *o, struct buf *out, struct buf *errors, struct err *e);

/*
 * The path of the profllm program, for code that starts it again: keepers, the simulator as a
 * server, the members of a suite that run at once.
 *
 * In the program itself it is this process's own file. In a library the process is another
 * program's: profllm is then looked for as $PROFLLM_PROGRAM, next to the library, in ../bin and
 * ../../bin from there (libraries are in lib/ or lib/TRIPLET/), and in PATH. The dynamic linker
 * says whether this code is in a library; there is no state.
 */
/*
 * As the first word of a user's command, PROGRAM_WORD means this program itself, whatever PATH has:
 * proc/keeper.h and proc/tool.h start program_exec's instead.
 */
#define PROGRAM_WORD "profllm"

/*
 * Set out to its path. -1 with one sentence: only in a library. program_exec's is for exec only,
 * and works even after the file has been replaced.
 */
int program_path(struct buf *out, struct err *e);
int program_exec(struct buf *out, struct err *e);

/* Our environment with changed lines. */
/*
 * Ours, with each "NAME=VALUE" of first and then of second (lists ended by NULL, or NULL) replacing
 * the line of that name. The caller frees the list; its lines are borrowed.
 */
char **environment_with(char *const *first, char *const *second);
/* The value of NAME in lines "NAME=VALUE", ended by NULL; NULL: none. */
const char *environment_variable(char *const *lines, struct str name);

/* Attributes for starting programs, which must not inherit our signal handlers and masks. */
/* flags: POSIX_SPAWN_SETSID, POSIX_SPAWN_SETPGROUP or 0. The caller destroys how. */
static inline void spawn_attributes(posix_spawnattr_t *how, short flags)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(how);
	posix_spawnattr_setsigmask(how, &none);
	posix_spawnattr_setsigdefault(how, &all);
	posix_spawnattr_setflags(how, (short)(flags | POSIX_SPAWN_SETSIGMASK |
					      POSIX_SPAWN_SETSIGDEF));
}
