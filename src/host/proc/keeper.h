/* SPDX-License-Identifier: Apache-2.0 */
/*
 * keeper.h - a program whose whole tree ends when we do, however we end.
 *
 *   we ──pipes── keeper ──► the program ──► its descendants
 *
 * Between us and every program that we keep is a small process of ours, the keeper: this executable
 * started again with a hidden word (KEEPER_WORD), which reads its orders from a nameless file. It
 * starts the program and ends it with all its descendants on request or when we are gone. Each
 * mechanism covers one way in which a process could be left over:
 *
 * a pipe from us: the keeper polls it. It closes when we end in any way, kill -9 included, and
 * keeper_stop() closes it too: one way to stop, always in use.
 *
 * PR_SET_CHILD_SUBREAPER: a daemon that forks twice and starts its own session leaves its process
 * group, session and parent. Its next parent is then the keeper and not process 1, so that it stays
 * in the tree.
 *
 * walking /proc: the tree is found by parents, not by process groups, which programs change. TERM
 * goes to the program, and to all of the tree once that has ended or a quarter of the grace has
 * passed; KILL to all after the grace, repeatedly until the keeper has no child left, so that a
 * fork in between does not escape.
 *
 * PR_SET_PDEATHSIG: when the keeper itself is killed the kernel kills the program. It only covers
 * that process: the attribute is not inherited.
 *
 * a roster file: for what is left then. It names owner, keeper and every member of the tree by
 * number and start time, and the mark that all of them have in their environment (KEEPER_MARK). If
 * we are still alive keeper_stop() uses it, else the next start (proc/roster.h).
 *
 * when_orphaned: a command for what a program has started outside its tree, such as the container
 * of `docker run`. The keeper runs it after the tree has ended, if we are gone then.
 *
 * a session of its own: Ctrl-C on the terminal reaches us and not the program, which must not end
 * before our measurements are saved.
 *
 * The keeper is executed and not only forked: a fork would keep a copy of our memory for as long as
 * a server runs, and a child forked from a process with threads may call hardly anything.
 * posix_spawn copies nothing. So main() must call keeper_main() when its first word is KEEPER_WORD;
 * tests have such a main() too.
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
	int follow_fd;         /* -1, or a file to which additions to out_fd's file are copied */
	int pass_fd;           /* 0: none; else it becomes KEEPER_PASSED_FD of the program */
	double grace_s;        /* between TERM and KILL */
	bool leaves_rest;      /* processes that the program leaves running are not ended */
	char *const *when_orphaned; /* ended by NULL; NULL: nothing is run */
	const char *program;   /* a program that calls keeper_main; NULL: program_exec's */
};

struct keeper;

/* How the program ended. */
struct keeper_end {
	bool is_known;   /* false: its keeper was killed before it could report */
	int code;        /* exit status, or minus the signal, as Python's returncode */
};

/*
 * Starts argv. -1 with e if that fails: *error is then the errno of exec (ENOENT: not found), or 0
 * if something else failed; error may be NULL.
 */
int keeper_start(const struct keeper_opts *o, struct keeper **out, int *error, struct err *e);
/* Waits at most wait_ms for the program's own end: true with *end, which may be NULL. */
bool keeper_has_ended(struct keeper *k, int wait_ms, struct keeper_end *end);
pid_t keeper_root(const struct keeper *k); /* the keeper: ancestor of the whole tree */
/*
 * Ends the tree, waits until nothing is left of it and frees k. *hurry (may be NULL) set: KILL at
 * once. 0, or -1 when something could not be ended (a process stuck in the kernel); e names it.
 */
int keeper_stop(struct keeper *k, const atomic_bool *hurry, struct err *e);

/* The keeper's main function; returns main()'s result. */
int keeper_main(void);

/*
 * Runs a command to its end, from its words and without a shell.
 *
 * For commands that may take long and start others: it runs below a keeper (proc/keeper.h), so that
 * its tree ends when it is cancelled and when we end. Processes that it leaves running when it ends
 * by itself (an --after-bench-cmd that starts a service) are not ended. Short helpers: proc/tool.h.
 */
struct child_opts {
	char *const *argv;       /* argv[0] is looked for in PATH; ended by NULL */
	char *const *envp;       /* NULL: ours */
	int out_fd, err_fd;      /* -1: /dev/null */
	double grace_s;          /* between TERM and KILL once it is cancelled */
	const atomic_bool *cancel; /* may be NULL */
};

/*
 * The exit status (128 + signal if a signal ended it), or -1 with e: it could not be started
 * (ERR_RUN), or cancel was set (ERR_CANCELLED; no process of it is left then).
 */
int child_run(const struct child_opts *o, struct err *e);
