/* SPDX-License-Identifier: Apache-2.0 */
/* last_words.c - see last_words.h. */
#include "proc/last_words.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/limits.h"

#define SAYS_MAX 16

static const struct sign {
	enum last_sign kind;
	const char *text[SAYS_MAX];
} signs[] = {
	{ LAST_SIGN_DISK, { "No space left on device", "Disk quota exceeded", "File too large" } },
	{ LAST_SIGN_PORT, { "ddress already in use", "EADDRINUSE", "couldn't bind HTTP server socket",
			       "only one usage of each socket address" } },
	{ LAST_SIGN_MEMORY, { "CUDA out of memory", "HIP out of memory", "XPU out of memory",
				 "OutOfMemoryError", "out of memory",
				 "No available memory for the cache blocks",
				 "is less than desired GPU memory utilization",
				 "larger than the available KV cache memory",
				 "larger than the maximum number of tokens that can be stored in KV cache",
				 "Not enough memory", "Cannot allocate memory", "MemoryError",
				 "std::bad_alloc", "failed to allocate" } },
	{ LAST_SIGN_FLAG, { "unrecognized arguments", "error: argument ", "invalid choice",
			       "the following arguments are required", "unrecognized option",
			       "unknown option", "No such option", "invalid argument:" } },
	{ LAST_SIGN_MODEL, { "is not a local folder and is not a valid model identifier",
				"RepositoryNotFoundError", "Repository Not Found for url",
				"GatedRepoError", "Invalid repository ID or local directory",
				"does not appear to have a file named config.json",
				"failed to load model", "Cannot access gated repo" } },
};

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
struct str last_words_line(struct str log)
{
	log = str_trim(log);
	return log.n ? line_around(log, log.p + log.n - 1) : log;
}

enum last_sign last_words_sign(struct str log, bool has_code, int code, struct str *reason)
{
	enum last_sign found = LAST_SIGN_NONE;
	const char *first = NULL;

	*reason = (struct str){ 0 };
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++) {
		const char *at = first_sign(log, &signs[i]);

		if (!at || (first && at >= first))
			continue;
		first = at;
		found = signs[i].kind;
		if (found == LAST_SIGN_DISK)
			break;
	}
	if (first)
		*reason = line_around(log, first);
	else
		*reason = last_words_line(log);
	if (found != LAST_SIGN_NONE || !has_code)
		return found;
	if (code == -SIGXFSZ)
		return LAST_SIGN_DISK;
	/* Nobody else sends it to a program that is to run. */
	if (code == -SIGKILL)
		return LAST_SIGN_MEMORY;
	/* What argument parsers end with. */
	return code == 2 ? LAST_SIGN_FLAG : found;
}

bool last_words_is_disk_full(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && fs.f_blocks > 0 && fs.f_bavail == 0;
}

void last_words_read(int fd, int64_t from, struct buf *out)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || buf_reserve(out, SERVER_LOG_READ_BYTES) < 0)
		return;
	if (st.st_size - from > SERVER_LOG_READ_BYTES)
		from = st.st_size - SERVER_LOG_READ_BYTES;
	do
		n = pread(fd, out->data, SERVER_LOG_READ_BYTES, from);
	while (n < 0 && errno == EINTR);
	out->len = n > 0 ? (size_t)n : 0;
	out->data[out->len] = 0;
	/* A sparse or binary part would end every text early. */
	for (size_t i = 0; i < out->len; i++)
		if (!out->data[i])
			out->data[i] = ' ';
}

void last_words_tail(struct str log, char *out, size_t room)
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

void last_words_show(const char *tail, const char *whose,
		     void (*warn)(void *self, const char *text), void *self)
{
	struct str rest = str_of(tail);
	struct buf text = { 0 };

	if (!warn)
		return;
	if (rest.n)
		buf_printf(&text, "the end of %s:", whose);
	else
		buf_printf(&text, "nothing was written to %s", whose);
	warn(self, text.data);
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');

		buf_reset(&text);
		buf_add_text(&text, "  ");
		buf_add_str(&text, line);
		warn(self, text.data);
	}
	buf_release(&text);
}
