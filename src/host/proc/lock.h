/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - things of this machine that one run at a time may have, by lock files.
 *
 * What counts is the kernel's lock of an open file (F_OFD_SETLK): it ends with the process that
 * holds it, however that ends, kill -9 included, so a lock is never stale. What the file says (who,
 * since when, what for) is for messages only. A file without a lock has no owner: it is taken over
 * by the next one, or removed by lock_clean. Programs that are started do not inherit any.
 *
 * The folder is one for all users of the machine, else two of them would share a GPU unknowingly:
 * $PROFLLM_LOCKS when set, else /dev/shm/profllm. Every Linux with POSIX shared memory has
 * /dev/shm, writable for all, never on a network, empty after a start of the machine; /tmp may be
 * another one for each service, $XDG_RUNTIME_DIR always is for each user. The folder is made with
 * mode 1777 and files with 0666, so that each may lock what the other made. A user who may use the
 * machine's GPUs can also hold their locks: this guards against accidents, not against people.
 *
 * A lock file:
 *
 *   profllm lock 1
 *   host NAME                 the name of the machine or container
 *   process PID START         start time in clock ticks since the machine started (proc/tree.h)
 *   since UNIX_SECONDS
 *   run ID
 *   user NAME
 *   command WORDS             our program and its verb; never arguments, which all could read here
 *   wants TEXT                what a place in a queue is for; not always there
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "host/proc/tree.h"

enum lock_kind { LOCK_ALONE, LOCK_SHARED };

/* One that is held. Zeroed: none. */
struct lock {
	char *path;
	int fd;                    /* when path is not NULL */
	enum lock_kind kind;
};

/*
 * Who holds one, as far as the file tells; of several that share it, one that came early.
 * Zeroed: not known, or it has ended.
 */
struct lock_holder {
	pid_t pid;                 /* 0: not told */
	uint64_t start;
	int64_t since_s;           /* Unix time; 0: not told */
	char host[256], run[64], user[64];
	char command[TREE_COMMAND_BYTES];
	char wants[4096];
};

/* The folder, made when it is not there. -1 with e when it cannot be used. Appends to out. */
int lock_folder(struct buf *out, struct err *e);
/*
 * A folder for the locks of all users, mode 1777, made when it is not there; what a link of that
 * name leads to is neither used nor changed.
 */
int lock_make_folder(const char *path, struct err *e);

/*
 * Takes the lock called name (a file name) in folder without waiting: 1 with *l; 0 when another has
 * it, who, if not NULL, is told; -1 with e when the file cannot be used. me says what stands in it
 * (run, wants); the rest of it is filled in here.
 */
int lock_take(const char *folder, const char *name, enum lock_kind kind,
	      const struct lock_holder *me, struct lock *l, struct lock_holder *who, struct err *e);
/* Gives it back; the file goes too, when it is ours to remove. A zeroed one is fine. */
void lock_give(struct lock *l);

/* Whether somebody holds it now, who is told when not NULL. Never waits, takes nothing. */
bool lock_is_held(const char *folder, const char *name, struct lock_holder *who);
/*
 * Removes lock files in the folder that nobody holds and that we may remove; how many. Files that
 * do not begin like one stay, empty ones too.
 */
unsigned lock_clean(const char *folder);

/* What such a file says; -1: not of its form. Bytes that a terminal might obey become '?'. */
int lock_parse(struct str text, struct lock_holder *h);
void lock_print(const struct lock_holder *h, struct buf *out);
/* "exp_... (process 123, since 12:03:04)". */
void lock_name(const struct lock_holder *h, struct buf *out);
/* The same and ": profllm run" in one line. */
void lock_describe(const struct lock_holder *h, struct buf *out);
