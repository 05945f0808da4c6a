/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lock.h - exclusive or shared use of things of this machine, by lock files.
 *
 * What counts is the kernel's lock of an open file (F_OFD_SETLK): it ends with the process that
 * holds it, however that ends, kill -9 included, so a lock is never stale. The file's content (who,
 * since when, what for) is for messages only. A file without a lock has no owner: it is taken over
 * by the next one, or removed by lock_clean. Programs that are started do not inherit any.
 *
 * The folder is shared by all users of the machine, else two of them would share a GPU unknowingly:
 * $PROFLLM_LOCKS when set, else /dev/shm/profllm. Every Linux with POSIX shared memory has
 * /dev/shm, writable for all, never on a network, empty after a boot; /tmp may differ per service,
 * and $XDG_RUNTIME_DIR always differs per user. The folder has mode 1777 and files 0666, so that
 * users can lock each other's files. A user who may use the machine's GPUs can also hold their
 * locks: this guards against accidents, not against attacks.
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
 *   wants TEXT                optional: what a place in a queue is for
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "host/proc/tree.h"

enum lock_kind { LOCK_ALONE, LOCK_SHARED };

/* A lock that we hold. Zeroed: none. */
struct lock {
	char *path;
	int fd;                    /* valid when path is not NULL */
	enum lock_kind kind;
};

/*
 * The holder of a lock, as described in the file; if several share it, one of the first. Zeroed:
 * unknown, or it has ended.
 */
struct lock_holder {
	pid_t pid;                 /* 0: unknown */
	uint64_t start;
	int64_t since_s;           /* Unix time; 0: unknown */
	char host[256], run[64], user[64];
	char command[TREE_COMMAND_BYTES];
	char wants[4096];
};

/* Appends the folder to out and creates it if needed. -1 with e when it cannot be used. */
int lock_folder(struct buf *out, struct err *e);
/*
 * Creates a folder for the locks of all users, mode 1777, if needed; if the name is a symbolic
 * link, its target is neither used nor changed.
 */
int lock_make_folder(const char *path, struct err *e);

/*
 * Takes the lock called name (a file name) in folder without waiting: 1 with *l; 0 when another has
 * it, described in who (may be NULL); -1 with e when the file cannot be used. me has what is
 * written into the file (run, wants); its other members are filled in here.
 */
int lock_take(const char *folder, const char *name, enum lock_kind kind,
	      const struct lock_holder *me, struct lock *l, struct lock_holder *who, struct err *e);
/* Releases it; also removes the file if we may. A zeroed one is fine. */
void lock_give(struct lock *l);

/* Whether it is held now, and by whom (who may be NULL). Never waits, takes nothing. */
bool lock_is_held(const char *folder, const char *name, struct lock_holder *who);
/*
 * Removes lock files in the folder that are not held and that we may remove; returns how many.
 * Other files stay, also empty ones.
 */
unsigned lock_clean(const char *folder);

/* Parses a lock file; -1: not of its form. Control characters become '?'. */
int lock_parse(struct str text, struct lock_holder *h);
void lock_print(const struct lock_holder *h, struct buf *out);
/* "exp_... (process 123, since 12:03:04)". */
void lock_name(const struct lock_holder *h, struct buf *out);
/* The same and ": profllm run" in one line. */
void lock_describe(const struct lock_holder *h, struct buf *out);
