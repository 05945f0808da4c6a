/* SPDX-License-Identifier: Apache-2.0 */
/* exit_reason.c - see exit_reason.h. */
#include "host/proc/exit_reason.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"

/* ---- the kernel's out-of-memory killer ---- */

#define MOUNT "/sys/fs/cgroup"

static bool read_kills(const char *path, uint64_t *kills)
{
	struct buf text = { 0 };
	struct str rest;
	bool is_found = false;

	if (file_read(path, PROC_FILE_BYTES_MAX, &text, NULL) == 0) {
		rest = buf_str(&text);
		while (rest.n && !is_found) {
			struct str line = str_cut(&rest, '\n'), name = str_cut(&line, ' ');

			is_found = str_is(name, "oom_kill") && str_to_u64(line, kills);
		}
	}
	buf_release(&text);
	return is_found;
}

/* In a container the path may be the host's, and the mount is its own cgroup. */
static bool try_file(struct oom_counter *c, const char *mount, const char *hierarchy,
		     struct str path, const char *name)
{
	snprintf(c->path, sizeof(c->path), "%s%s%.*s/%s", mount, hierarchy, (int)path.n, path.p,
		 name);
	if (read_kills(c->path, &c->kills))
		return true;
	snprintf(c->path, sizeof(c->path), "%s%s/%s", mount, hierarchy, name);
	if (read_kills(c->path, &c->kills))
		return true;
	c->path[0] = 0;
	return false;
}

static bool has_memory(struct str controllers)
{
	while (controllers.n)
		if (str_is(str_cut(&controllers, ','), "memory"))
			return true;
	return false;
}

/* Lines "NUMBER:CONTROLLERS:PATH"; the one of version 2 has no controllers. */
void oom_begin_at(struct oom_counter *c, const char *mount, struct str cgroups)
{
	bool is_found = false;

	*c = (struct oom_counter){ 0 };
	while (cgroups.n && !is_found) {
		struct str path = str_cut(&cgroups, '\n'), number = str_cut(&path, ':');
		struct str controllers = str_cut(&path, ':');

		if (has_memory(controllers))
			is_found = try_file(c, mount, "/memory", path, "memory.oom_control");
		else if (str_is(number, "0") && controllers.n == 0)
			is_found = try_file(c, mount, "", path, "memory.events");
	}
}

void oom_begin(struct oom_counter *c, pid_t pid)
{
	struct buf text = { 0 };
	char path[64];

	*c = (struct oom_counter){ 0 };
	snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	if (file_read(path, PROC_FILE_BYTES_MAX, &text, NULL) == 0)
		oom_begin_at(c, MOUNT, buf_str(&text));
	buf_release(&text);
}

bool oom_has_risen(const struct oom_counter *c)
{
	uint64_t now;

	return c->path[0] && read_kills(c->path, &now) && now > c->kills;
}

#define SAYS_MAX 16
#define SHELL_SIGNAL 128 /* plus the number: a shell's exit status for a signal */
#define LEVEL_WITHIN 60  /* bytes of a line: a level may follow the name of a process and a date */
#define CHAIN_WITHIN 4   /* lines from what links two tracebacks to the second */

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

/* ---- lines ---- */

/* The line of the log that contains at. */
static struct str line_around(struct str log, const char *at)
{
	const char *begin = memrchr(log.p, '\n', (size_t)(at - log.p));
	const char *end = memchr(at, '\n', (size_t)(log.p + log.n - at));

	begin = begin ? begin + 1 : log.p;
	return (struct str){ begin, (size_t)((end ? end : log.p + log.n) - begin) };
}

/* The line before this one; false: it is the first. */
static bool go_back(struct str log, struct str *line)
{
	if (line->p <= log.p)
		return false;
	*line = line_around(log, line->p - 1);
	return true;
}

static bool has(struct str line, const char *text)
{
	return line.n && memmem(line.p, line.n, text, strlen(text)) != NULL;
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '.';
}

/* Something went wrong and the program went on: "INFO 05-05 ...", "(Core) WARNING ...". */
static bool is_mild(struct str line)
{
	static const char *const levels[] = { "DEBUG", "INFO", "WARNING", "WARN" };
	const struct str head = { line.p, line.n < LEVEL_WITHIN ? line.n : LEVEL_WITHIN };

	for (size_t i = 0; i < sizeof(levels) / sizeof(*levels); i++) {
		size_t n = strlen(levels[i]);
		const char *at = head.n ? memmem(head.p, head.n, levels[i], n) : NULL;

		if (at && (at == line.p || !is_word_char(at[-1])) &&
		    (at + n == line.p + line.n || !is_word_char(at[n])))
			return true;
	}
	return has(line, "etrying");
}

/*
 * Python's last line of a traceback, "torch.OutOfMemoryError: why", with any prefix of a logger;
 * not the code that a frame shows ("except KeyError:").
 */
static bool is_exception(struct str line)
{
	static const char *const endings[] = { "Error", "Exception", "Interrupt" };

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		struct str rest = line;
		const char *at;

		while (rest.n && (at = memmem(rest.p, rest.n, endings[i], strlen(endings[i])))) {
			const char *end = at + strlen(endings[i]), *name = at;
			bool is_whole = end == line.p + line.n || *end == ':' || *end == '\r';

			while (name > line.p && is_word_char(name[-1]))
				name--;
			if (is_whole && (name == line.p ||
					 (name - line.p >= 2 && name[-1] == ' ' &&
					  strchr(")]:|", name[-2]))))
				return true;
			rest = (struct str){ end, (size_t)(line.p + line.n - end) };
		}
	}
	return false;
}

/* ---- signs ---- */

/* The category of the first known phrase in the line. */
static enum last_sign sign_of(struct str line)
{
	enum last_sign found = LAST_SIGN_NONE;
	const char *first = NULL;

	/* Advice that vLLM prints while all is well. */
	if (!line.n || has(line, "running out of memory"))
		return found;
	for (size_t i = 0; i < sizeof(signs) / sizeof(*signs); i++)
		for (int k = 0; k < SAYS_MAX && signs[i].text[k]; k++) {
			const char *text = signs[i].text[k];
			const char *at = memmem(line.p, line.n, text, strlen(text));

			if (at && (!first || at < first)) {
				first = at;
				found = signs[i].kind;
			}
		}
	return found;
}

/* The last line with a sign that counts, of one kind if that is given. */
static enum last_sign last_sign(struct str log, enum last_sign wanted, struct str *out)
{
	struct str line = log.n ? line_around(log, log.p + log.n - 1) : log;
	bool is_raised = false; /* a line after this one is an exception */

	do {
		enum last_sign sign = sign_of(line);

		if (sign != LAST_SIGN_NONE && (wanted == LAST_SIGN_NONE || sign == wanted) &&
		    !(is_raised && is_mild(line))) {
			*out = line;
			return sign;
		}
		is_raised = is_raised || is_exception(line);
	} while (go_back(log, &line));
	return LAST_SIGN_NONE;
}

/* The beginning of the traceback that ends with this line; false: there is none. */
static bool find_traceback(struct str log, struct str line, bool is_chained, struct str *out)
{
	while (go_back(log, &line)) {
		if (has(line, "Traceback (most recent call last)")) {
			*out = line;
			return true;
		}
		if (!is_chained && is_exception(line))
			return false;
	}
	return false;
}

static bool is_chained(struct str log, struct str traceback)
{
	for (int i = 0; i < CHAIN_WITHIN && go_back(log, &traceback); i++)
		if (has(traceback, "During handling of the above exception") ||
		    has(traceback, "was the direct cause of the following exception"))
			return true;
	return false;
}

/* Of chained exceptions the first one with a sign is the cause. */
static enum last_sign first_of_chain(struct str log, enum last_sign sign, struct str *line)
{
	struct str from, earlier, one;

	if (!find_traceback(log, *line, false, &from))
		return sign;
	while (is_chained(log, from) && find_traceback(log, from, true, &earlier))
		from = earlier;
	for (one = from; one.p < line->p; one = line_around(log, one.p + one.n + 1))
		if (is_exception(one) && sign_of(one) != LAST_SIGN_NONE) {
			*line = one;
			return sign_of(one);
		}
	return sign;
}

/* For a crash without a known text: Python's last line has the exception. */
struct str exit_reason_line(struct str log)
{
	log = str_trim(log);
	return log.n ? str_trim(line_around(log, log.p + log.n - 1)) : log;
}

/* The sign in the exit status, if the log has none. */
static enum last_sign sign_of_end(int code, const struct oom_counter *oom, struct str *reason)
{
	bool is_killed = code == -SIGKILL || code == SHELL_SIGNAL + SIGKILL;

	if (code == -SIGXFSZ)
		return LAST_SIGN_DISK;
	/* The kernel may have ended another process of the group. */
	if (code != 0 && oom && oom_has_risen(oom)) {
		*reason = STR("the kernel's out-of-memory killer ended a process of its cgroup");
		return LAST_SIGN_MEMORY;
	}
	/* Below a shell or a container's daemon it was a process of another cgroup, perhaps. */
	if (code == -SIGKILL && oom && oom->path[0])
		*reason = STR("not by the kernel's out-of-memory killer, whose counter for its cgroup "
			      "has not risen");
	else if (is_killed)
		*reason = STR("the kernel's log would tell whether it was out of memory");
	if (is_killed)
		return LAST_SIGN_KILLED;
	/* The exit status of argument parsers. */
	return code == 2 ? LAST_SIGN_FLAG : LAST_SIGN_NONE;
}

enum last_sign exit_reason_sign(struct str log, bool has_code, int code,
			       const struct oom_counter *oom, struct str *reason)
{
	struct str line = exit_reason_line(log);
	enum last_sign found = last_sign(log, LAST_SIGN_DISK, &line);

	if (found == LAST_SIGN_NONE) {
		found = last_sign(log, LAST_SIGN_NONE, &line);
		if (found != LAST_SIGN_NONE)
			found = first_of_chain(log, found, &line);
	}
	*reason = str_trim(line);
	return found == LAST_SIGN_NONE && has_code ? sign_of_end(code, oom, reason) : found;
}

/* ---- files ---- */

bool exit_reason_is_disk_full(int fd)
{
	struct statvfs fs;

	return fstatvfs(fd, &fs) == 0 && fs.f_blocks > 0 && fs.f_bavail == 0;
}

void exit_reason_read(int fd, int64_t from, struct buf *out)
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

void exit_reason_tail(struct str log, char *out, size_t room)
{
	size_t lines = 0;
	const char *from;

	assert(room > 0);
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

void exit_reason_show(const char *tail, const char *whose,
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
