/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_fault.c - why a server ended, by what it wrote and how it ended.
 *
 * The texts are those that engines and the libraries below them print; the first line of the log
 * that holds one decides, because what follows is usually its consequence. Disks come first:
 * without room nothing else that is written can be trusted.
 */
#include "run/server_parts.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"

#define SAYS_MAX 16

static const struct sign {
	enum server_fault fault;
	const char *text[SAYS_MAX];
} signs[] = {
	{ SERVER_FAULT_DISK, { "No space left on device", "Disk quota exceeded", "File too large" } },
	{ SERVER_FAULT_PORT, { "ddress already in use", "EADDRINUSE", "couldn't bind HTTP server socket",
			       "only one usage of each socket address" } },
	{ SERVER_FAULT_MEMORY, { "CUDA out of memory", "HIP out of memory", "XPU out of memory",
				 "OutOfMemoryError", "out of memory",
				 "No available memory for the cache blocks",
				 "is less than desired GPU memory utilization",
				 "larger than the available KV cache memory",
				 "larger than the maximum number of tokens that can be stored in KV cache",
				 "Not enough memory", "Cannot allocate memory", "MemoryError",
				 "std::bad_alloc", "failed to allocate" } },
	{ SERVER_FAULT_FLAG, { "unrecognized arguments", "error: argument ", "invalid choice",
			       "the following arguments are required", "unrecognized option",
			       "unknown option", "No such option", "invalid argument:" } },
	{ SERVER_FAULT_MODEL, { "is not a local folder and is not a valid model identifier",
				"RepositoryNotFoundError", "Repository Not Found for url",
				"GatedRepoError", "Invalid repository ID or local directory",
				"does not appear to have a file named config.json",
				"failed to load model", "Cannot access gated repo" } },
};

static const char *const names[] = {
	[SERVER_FAULT_NONE] = "none",
	[SERVER_FAULT_NOT_FOUND] = "command not found",
	[SERVER_FAULT_PORT] = "port taken",
	[SERVER_FAULT_MEMORY] = "out of memory",
	[SERVER_FAULT_FLAG] = "bad flag",
	[SERVER_FAULT_MODEL] = "model not found",
	[SERVER_FAULT_DISK] = "out of disk",
	[SERVER_FAULT_CRASH] = "crash",
	[SERVER_FAULT_DEADLINE] = "not ready in time",
	[SERVER_FAULT_CANCELLED] = "cancelled",
};

const char *server_fault_name(enum server_fault fault)
{
	return names[fault];
}

/* The line of the log in which at lies. */
static struct str line_around(struct str log, const char *at)
{
	const char *begin = memrchr(log.p, '\n', (size_t)(at - log.p));
	const char *end = memchr(at, '\n', (size_t)(log.p + log.n - at));

	begin = begin ? begin + 1 : log.p;
	return str_trim((struct str){ begin, (size_t)((end ? end : log.p + log.n) - begin) });
}

/* The earliest place at which one of a category's texts stands. */
static const char *first_sign(struct str log, const struct sign *sign)
{
	const char *first = NULL;

	if (!log.n)
		return NULL;
	for (int i = 0; i < SAYS_MAX && sign->text[i]; i++) {
		const char *at = memmem(log.p, log.n, sign->text[i], strlen(sign->text[i]));

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

/* Of a crash without a text that is known: Python's last line says what was raised. */
static struct str last_line(struct str log)
{
	log = str_trim(log);
	return log.n ? line_around(log, log.p + log.n - 1) : log;
}

enum server_fault server_fault_of(struct str log, bool has_code, int code, struct str *reason)
{
	enum server_fault fault = SERVER_FAULT_CRASH;
	const char *first = NULL;

	*reason = (struct str){ 0 };
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		const char *at = first_sign(log, &signs[i]);

		if (!at || (first && at >= first))
			continue;
		first = at;
		fault = signs[i].fault;
		if (fault == SERVER_FAULT_DISK)
			break;
	}
	if (first)
		*reason = line_around(log, first);
	else
		*reason = last_line(log);
	if (fault != SERVER_FAULT_CRASH || !has_code)
		return fault;
	if (code == -SIGXFSZ)
		return SERVER_FAULT_DISK;
	/* Nobody else sends it to a server that is to run. */
	if (code == -SIGKILL)
		return SERVER_FAULT_MEMORY;
	/* What argument parsers end with. */
	return code == 2 ? SERVER_FAULT_FLAG : fault;
}

static bool is_disk_full(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && fs.f_blocks > 0 && fs.f_bavail == 0;
}

/* The end of what this start has written; cut at a line where it is long. */
static void read_log(const struct server *s, struct buf *out)
{
	struct stat st;
	int64_t from = s->log_began;
	ssize_t n;

	if (fstat(s->log_fd, &st) < 0 || buf_reserve(out, SERVER_LOG_READ_BYTES) < 0)
		return;
	if (st.st_size - from > SERVER_LOG_READ_BYTES)
		from = st.st_size - SERVER_LOG_READ_BYTES;
	do
		n = pread(s->log_fd, out->data, SERVER_LOG_READ_BYTES, from);
	while (n < 0 && errno == EINTR);
	out->len = n > 0 ? (size_t)n : 0;
	out->data[out->len] = 0;
	/* A sparse or binary part would end every text early. */
	for (size_t i = 0; i < out->len; i++)
		if (!out->data[i])
			out->data[i] = ' ';
}

/* The last whole lines that fit. */
static void copy_tail(struct str log, char *out, size_t room)
{
	size_t lines = 0;
	const char *from;

	log = str_trim(log);
	from = log.p + log.n;
	while (from > log.p && (size_t)(log.p + log.n - from) < room - 1 &&
	       lines <= SERVER_TAIL_LINES) {
		from--;
		lines += *from == '\n';
	}
	if (from > log.p || (log.n && *from == '\n')) {
		const char *newline = memchr(from, '\n', (size_t)(log.p + log.n - from));

		from = newline ? newline + 1 : from + 1;
	}
	snprintf(out, room, "%.*s", (int)(log.p + log.n - from), log.n ? from : "");
}

void server_explain(const struct server *s, const struct keeper_end *end,
		    struct server_failure *why)
{
	struct buf log = { 0 };
	struct str reason;

	*why = (struct server_failure){ .has_code = end->is_known, .code = end->code };
	read_log(s, &log);
	why->fault = server_fault_of(buf_str(&log), end->is_known, end->code, &reason);
	if (is_disk_full(s->log_fd))
		why->fault = SERVER_FAULT_DISK;
	snprintf(why->reason, sizeof(why->reason), "%.*s",
		 (int)(reason.n < sizeof(why->reason) ? reason.n : sizeof(why->reason) - 1),
		 reason.n ? reason.p : "");
	copy_tail(buf_str(&log), why->tail, sizeof(why->tail));
	buf_release(&log);
}

void server_show_tail(const struct server *s, const struct server_failure *why)
{
	struct str rest = str_of(why->tail);
	struct buf text = { 0 };

	buf_printf(&text, rest.n ? "the end of the server's log %s:" :
		   "the server wrote nothing to its log %s", s->opts.log_path);
	server_warn(&s->hooks, text.data);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		buf_reset(&text);
		buf_add_text(&text, "  ");
		buf_add_str(&text, line);
		server_warn(&s->hooks, text.data);
	}
	buf_release(&text);
}
