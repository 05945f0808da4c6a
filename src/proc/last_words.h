/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/last_words.h - why a program ended, by the end of its log and by its exit status.
 *
 * The texts are those that engines and the libraries below them print; the last line of the log
 * that holds one decides, because a program that goes on has survived what it printed before. Two
 * exceptions: a line of level INFO or WARNING, or about a retry, does not count when an exception
 * follows it, and of exceptions that were raised one while another was handled the first decides.
 * Disks come first: without room nothing else that is written can be trusted. A program that says
 * nothing was out of memory when the kernel counted that it killed for it (proc/oom.h).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "proc/oom.h"

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
 * reason: the line that says so, else the last one, or empty; of what the kernel did, a sentence of
 * ours. code: exit status, or minus the signal. oom: begun when the program was started; NULL: not
 * known.
 */
enum last_sign last_words_sign(struct str log, bool has_code, int code,
			       const struct oom_counter *oom, struct str *reason);
/* The log's last line that is not blank. */
struct str last_words_line(struct str log);
/* The end of what stands in the file behind from, cut to SERVER_LOG_READ_BYTES. */
void last_words_read(int fd, int64_t from, struct buf *out);
/* The last whole lines that fit, SERVER_TAIL_LINES at most. */
void last_words_tail(struct str log, char *out, size_t room);
/* Whether the file's disk has no room left. */
bool last_words_is_disk_full(int fd);
/* The tail line by line; whose: "the server's log server.log". warn may be NULL. */
void last_words_show(const char *tail, const char *whose,
		     void (*warn)(void *self, const char *text), void *self);
