/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exit_reason.h - why a program ended, from the end of its log and its exit status.
 *
 * The texts are those that engines and the libraries below them print. The last matching line of
 * the log decides, because a program that continues has survived what it printed before. Two
 * exceptions: a line of level INFO or WARNING, or about a retry, does not count when an exception
 * follows it, and of chained exceptions the first one decides. A full disk takes precedence,
 * because then nothing else that was written can be trusted. Without a matching line the program
 * was out of memory if the kernel counted a kill (struct oom_counter).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/str.h"

/*
 * Whether the kernel's out-of-memory killer ended a process of a cgroup.
 *
 * The kernel counts the processes it kills for lack of memory, whatever the limit that was reached:
 * oom_kill in memory.events (cgroup version 2) or memory.oom_control (version 1). Signal 9 alone
 * proves nothing: users, schedulers and other programs also send it.
 */
struct oom_counter {
	char path[512];    /* of the counter's file; "": it cannot be read here */
	uint64_t kills;    /* when it was begun */
};

/* Starts counting for the cgroup that the process is in now. */
void oom_begin(struct oom_counter *c, pid_t pid);
/* Whether it has risen since; also false when it cannot be read. */
bool oom_has_risen(const struct oom_counter *c);

/* The same for the text of a /proc/PID/cgroup, with cgroups mounted at mount. */
void oom_begin_at(struct oom_counter *c, const char *mount, struct str cgroups);

enum last_sign {
	LAST_SIGN_NONE,
	LAST_SIGN_DISK,    /* no room on a disk */
	LAST_SIGN_PORT,    /* a port that is taken */
	LAST_SIGN_MEMORY,  /* of the GPU or of the host */
	LAST_SIGN_FLAG,    /* an argument it does not take */
	LAST_SIGN_MODEL,   /* a model that is not there */
	LAST_SIGN_KILLED,  /* signal 9; nothing in the log says why */
};

/*
 * Finds the reason: the line that names it, else the last one, or empty; for a kill by the kernel,
 * our own sentence. code: exit status, or minus the signal. oom: from oom_begin when the program
 * was started; may be NULL.
 */
enum last_sign exit_reason_sign(struct str log, bool has_code, int code,
			       const struct oom_counter *oom, struct str *reason);
/* The log's last line that is not blank. */
struct str exit_reason_line(struct str log);
/* Reads the end of the file, from offset `from` at the earliest, at most SERVER_LOG_READ_BYTES. */
void exit_reason_read(int fd, int64_t from, struct buf *out);
/* The last whole lines that fit, SERVER_TAIL_LINES at most. */
void exit_reason_tail(struct str log, char *out, size_t room);
/* Whether the file's disk has no room left. */
bool exit_reason_is_disk_full(int fd);
/* Passes the tail to warn line by line; whose: "the server's log server.log". warn may be NULL. */
void exit_reason_show(const char *tail, const char *whose,
		     void (*warn)(void *self, const char *text), void *self);
