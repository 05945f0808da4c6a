/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - a file of JSON lines that never keeps the server waiting.
 *
 * Lines are added to a buffer in memory; sink_flush writes a part of it when
 * the caller has time. The first write error is kept and told at the end, so
 * that a full disk does not disturb the pacing but does not pass unseen either.
 */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* A zeroed struct is a sink without a file: flush and close do nothing. */
struct sink {
	const char *path;   /* borrowed; NULL: none */
	int fd;
	struct buf lines;
	size_t written;     /* bytes of lines already in the file */
	struct err failure; /* ERR_NONE while all is well */
};

/* Creates or empties the file. option names it in errors ("--truth"). */
int sink_open(struct sink *s, const char *option, const char *path, struct err *e);
/* Writes at most bytes_max bytes; true when more is left. */
bool sink_flush(struct sink *s, size_t bytes_max);
/* Writes the rest; -1 when anything was lost since sink_open. */
int sink_close(struct sink *s, struct err *e);
