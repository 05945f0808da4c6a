/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - a program whose whole tree ends when we do, however we end.
 *
 *   we ──pipes── keeper ──► the program ──► whatever it starts
 *
 * Between us and every program that we keep is a small process of ours, the keeper: this
 * executable started again with a hidden word (KEEPER_WORD), which reads what to do from a nameless
 * file. It starts the program and ends it with everything below it on request or
 * when we are gone. Each mechanism is there for one way in which something could be left over:
 *
 * a pipe from us: the keeper polls it. It closes when we end in any way, kill -9 included, and
 * keeper_stop() closes it too: one way to stop, always in use.
 *
 * PR_SET_CHILD_SUBREAPER: a daemon that forks twice and starts a session of its own leaves its
 * process group, session and parent. Its next parent is then the keeper and not process 1, so
 * that it stays in the tree.
 *
 * walking /proc: the tree is found by parents, not by process groups, which programs change.
 * TERM goes to the program, and to all of the tree once that has ended or a quarter of the grace
 * has passed; KILL to all after the grace, again and again until the keeper has no child left,
 * so that a fork in between is no way out.
 *
 * PR_SET_PDEATHSIG: when the keeper itself is killed the kernel kills the program. It covers that
 * one process: the attribute is not inherited.
 *
 * a roster file: for what is left then. It names owner, keeper and every member of the tree by
 * number and start time, and the mark that all of them carry in their environment
 * (KEEPER_MARK). When we still live, keeper_stop() uses it, else the next start (proc/roster.h).
 *
 * when_orphaned: a command for what a program has started outside of its tree, such as the
 * container of `docker run`. The keeper runs it after the tree has ended, if we are gone then.
 *
 * a session of its own: Ctrl-C on the terminal reaches us and not the program, which must not end
 * before what we measured is saved.
 *
 * The keeper is executed and not only forked: we have threads and much memory, of which a fork
 * would keep a copy for as long as a server runs, and in a child forked from threads hardly
 * anything may be called. posix_spawn copies nothing. Hence main() must call keeper_main() when
 * its first word is KEEPER_WORD; tests have such a main() too.
 *
 * There are no globals; any number of programs is kept at once. One struct keeper may be used by
 * several threads, but not stopped twice.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"

#define KEEPER_WORD "__keeper"
#define KEEPER_MARK "PROFLLM_KEPT" /* variable in the environment of the whole tree */
#define KEEPER_PASSED_FD 3

struct keeper_opts {
	char *const *argv;     /* argv[0] is looked for in PATH; ended by NULL */
	char *const *envp;     /* NULL: ours */
	int out_fd, err_fd;    /* its output and errors; -1: /dev/null. Its input is /dev/null */
	int follow_fd;         /* -1, or: what is added to the file out_fd is copied there */
	int pass_fd;           /* 0: none; else it becomes KEEPER_PASSED_FD of the program */
	double grace_s;        /* between TERM and KILL */
	bool leaves_rest;      /* once the program has ended, what it left running is let be */
	char *const *when_orphaned; /* ended by NULL; NULL: nothing is run */
	const char *program;   /* one that calls keeper_main; NULL: program_exec's */
};

struct keeper;

/* How the program ended. */
struct keeper_end {
	bool is_known;   /* false: its keeper was killed, nobody saw how it ended */
	int code;        /* exit status, or minus the signal, as Python's returncode */
};

/*
 * Starts argv. -1 with e when it cannot be: *error is then the errno of exec (ENOENT: not found),
 * or 0 when something else failed; error may be NULL.
 */
int keeper_start(const struct keeper_opts *o, struct keeper **out, int *error, struct err *e);
/* Waits at most wait_ms for the program's own end: true with *end, which may be NULL. */
bool keeper_has_ended(struct keeper *k, int wait_ms, struct keeper_end *end);
pid_t keeper_root(const struct keeper *k); /* the keeper: everything descends from it */
/*
 * Ends the tree, waits until nothing of it is left and frees k. *hurry (may be NULL) set: KILL at
 * once. 0, or -1 when something could not be ended (a process stuck in the kernel); e says what.
 */
int keeper_stop(struct keeper *k, const atomic_bool *hurry, struct err *e);

/* The keeper's own life; what main() returns. */
int keeper_main(void);

/*
 * A command run to its end, by its words and never by a shell.
 *
 * For commands that may take long and start others: it runs below a keeper (proc/keeper.h), so
 * that its tree ends when it is cancelled and when we end. What it leaves running when it ends by
 * itself (an --after-bench-cmd that starts a service) is let be. Short helpers: proc/tool.h.
 */
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
