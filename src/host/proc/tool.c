/* SPDX-License-Identifier: Apache-2.0 */
/* tool.c - see tool.h. */
#include "host/proc/tool.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* ---- where the program lies ---- */

#define OWN "/proc/self/exe"
#define REPLACED " (deleted)" /* what the kernel adds to the name of a removed program */

/* The file this code was loaded from: a library. NULL: it is part of the program. */
static const char *library(void)
{
	Dl_info info;
	const char *slash;

	if (!dladdr((const void *)(uintptr_t)program_path, &info) || !info.dli_fname)
		return NULL;
	slash = strrchr(info.dli_fname, '/');
	return strstr(slash ? slash : info.dli_fname, ".so") ? info.dli_fname : NULL;
}

static bool is_program(const char *path)
{
	return !file_is_dir(path) && access(path, X_OK) == 0;
}

static bool find_near(const char *lib, struct buf *out)
{
	static const char *const folder[] = { "", "../bin/", "../../bin/" };
	const char *slash = strrchr(lib, '/');
	int n = slash ? (int)(slash - lib + 1) : 0;

	for (size_t i = 0; i < sizeof(folder) / sizeof(*folder); i++) {
		buf_reset(out);
		buf_printf(out, "%.*s%sprofllm", n, lib, folder[i]);
		if (is_program(out->data))
			return true;
	}
	return false;
}

static int find(const char *lib, struct buf *out, struct err *e)
{
	const char *given = getenv("PROFLLM_PROGRAM");
	char *path;

	if (given && *given) {
		buf_reset(out);
		buf_add_text(out, given);
		return is_program(given) ? 0 : err_set(e, ERR_USAGE,
			"PROFLLM_PROGRAM names no program: %s", given);
	}
	if (find_near(lib, out))
		return 0;
	path = tool_path("profllm");
	buf_reset(out);
	if (path)
		buf_add_text(out, path);
	free(path);
	return out->len ? 0 : err_set(e, ERR_RUN, "the program profllm is neither next to %s, nor in "
		"../bin, nor in PATH; set PROFLLM_PROGRAM to its path", lib);
}

int program_path(struct buf *out, struct err *e)
{
	const char *lib = library();
	char path[4096];
	struct str own;
	ssize_t n;

	if (lib)
		return find(lib, out, e);
	n = readlink(OWN, path, sizeof(path) - 1);
	own = n > 0 ? (struct str){ path, (size_t)n } : STR(OWN);
	/* Another one was installed in its place meanwhile: the one that has the name now. */
	if (str_ends(own, STR(REPLACED))) {
		path[own.n - strlen(REPLACED)] = 0;
		own = is_program(path) ? str_of(path) : STR(OWN);
	}
	buf_reset(out);
	buf_add_str(out, own);
	return 0;
}

int program_exec(struct buf *out, struct err *e)
{
	const char *lib = library();

	if (lib)
		return find(lib, out, e);
	buf_reset(out);
	buf_add_text(out, OWN);
	return 0;
}

/* ---- environments ---- */

static void set_variable(char **envp, size_t *n, char *line)
{
	size_t name = strcspn(line, "=") + 1, i = 0;

	while (i < *n && strncmp(envp[i], line, name) != 0)
		i++;
	envp[i] = line;
	*n += i == *n;
}

const char *environment_variable(char *const *lines, struct str name)
{
	for (; lines && *lines; lines++)
		if (str_starts(str_of(*lines), name) && (*lines)[name.n] == '=')
			return *lines + name.n + 1;
	return NULL;
}

char **environment_with(char *const *first, char *const *second)
{
	size_t n = words_count(environ);
	char **envp = mem_array(n + words_count(first) + words_count(second) + 1, sizeof(*envp));

	memcpy(envp, environ, n * sizeof(*envp));
	for (size_t i = 0; first && first[i]; i++)
		set_variable(envp, &n, first[i]);
	for (size_t i = 0; second && second[i]; i++)
		set_variable(envp, &n, second[i]);
	return envp;
}

/* ---- tools ---- */

#define CANCEL_LOOK_MS 50

enum { IN, OUT, ERRORS, STREAMS };

char *tool_path_in(const char *folders, const char *name)
{
	struct str rest = str_of(folders ? folders : "");
	struct buf path = { 0 };
	bool is_found = false;

	while (rest.n && !is_found) {
		struct str dir = str_cut(&rest, ':');

		buf_reset(&path);
		buf_add_str(&path, dir.n ? dir : str_of("."));
		buf_printf(&path, "/%s", name);
		is_found = access(path.data, X_OK) == 0 && !file_is_dir(path.data);
	}
	if (is_found)
		return buf_take(&path);
	buf_release(&path);
	return NULL;
}

char *tool_path(const char *name)
{
	return tool_path_in(getenv("PATH"), name);
}

bool tool_exists(const char *name)
{
	char *path = tool_path(name);

	free(path);
	return path != NULL;
}

static int open_streams(int fd[STREAMS], struct str input, bool has_errors, struct err *e)
{
	const char *folder = "";

	for (int i = 0; i < STREAMS; i++) {
		if (i == ERRORS && !has_errors)
			continue;
		fd[i] = file_unnamed(&folder);
		if (fd[i] < 0)
			return err_set(e, ERR_IO, "cannot make a file in %s: %s", folder, strerror(errno));
	}
	if (file_write_all(fd[IN], input) < 0 || lseek(fd[IN], 0, SEEK_SET) < 0)
		return err_set(e, ERR_IO, "cannot write a file in %s: %s", folder, strerror(errno));
	return 0;
}

static int start(const struct tool_opts *o, bool is_group, const int fd[STREAMS], pid_t *pid,
		 struct err *e)
{
	const char *const *argv = o->argv;
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	struct buf own = { 0 };
	const char *file = argv[0];
	int rc;

	if (strcmp(file, PROGRAM_WORD) == 0 && program_exec(&own, NULL) == 0)
		file = own.data;
	posix_spawn_file_actions_init(&files);
	spawn_attributes(&how, is_group ? POSIX_SPAWN_SETPGROUP : 0);
	posix_spawn_file_actions_adddup2(&files, fd[IN], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&files, fd[OUT], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&files, fd[ERRORS] < 0 ? fd[OUT] : fd[ERRORS],
					 STDERR_FILENO);
	rc = posix_spawnp(pid, file, &files, &how, (char *const *)(uintptr_t)argv,
			  o->envp ? o->envp : environ);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	buf_release(&own);
	return rc ? err_set(e, ERR_RUN, "cannot start %s: %s", argv[0], strerror(rc)) : 0;
}

static void limit(pid_t pid, int what, uint64_t most)
{
	const struct rlimit to = { most, most };

	if (most)
		prlimit(pid, (__rlimit_resource_t)what, &to, NULL);
}

/* Until it has ended, or the time is over, or the caller is: 1, 0, -1. */
static int watch(const struct tool_opts *o, int pidfd)
{
	int64_t until = clock_mono_ns() + o->timeout_s * 1000000000ll, left_ms;
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int rc;

	do {
		if (o->cancel && atomic_load(o->cancel))
			return -1;
		left_ms = (until - clock_mono_ns() + 999999) / 1000000;
		if (o->cancel && left_ms > CANCEL_LOOK_MS)
			left_ms = CANCEL_LOOK_MS;
		rc = poll(&ended, 1, left_ms > 0 ? (int)left_ms : 0);
	} while ((rc < 0 && errno == EINTR) || (rc == 0 && clock_mono_ns() < until));
	return rc != 0;
}

static int await(const struct tool_opts *o, bool is_group, pid_t pid, struct err *e)
{
	int pidfd = pidfd_open(pid, 0), status = 0, rc = 1;
	const char *name = o->argv[0];
	pid_t got;

	/* Without a process descriptor there is no time limit. */
	if (pidfd >= 0) {
		rc = watch(o, pidfd);
		close(pidfd);
	}
	/* Not waited for yet, so its number is still its group's. */
	if (rc <= 0 || (is_group && pidfd >= 0))
		kill(is_group ? -pid : pid, SIGKILL);
	do
		got = waitpid(pid, &status, 0);
	while (got < 0 && errno == EINTR);
	if (rc < 0)
		return err_set(e, ERR_CANCELLED, "%s was ended, because its caller no longer waits for it", name);
	if (rc == 0)
		return err_set(e, is_group ? ERR_LIMIT : ERR_RUN, "%s did not end within %u s", name,
			       o->timeout_s);
	if (got < 0) /* the program that uses the library ignores SIGCHLD, or waits for any child */
		return err_set(e, ERR_RUN, "%s: its exit status is lost: %s", name, strerror(errno));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int collect(const char *name, int fd, struct buf *out, struct err *e)
{
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return err_set(e, ERR_IO, "cannot read what %s wrote: %s", name, strerror(errno));
	do {
		if (buf_reserve(out, READ_BYTES) < 0)
			return err_set(e, ERR_LIMIT, "%s wrote more than a buffer can hold", name);
		n = read(fd, out->data + out->len, READ_BYTES);
		out->len += n > 0 ? (size_t)n : 0;
		out->data[out->len] = 0;
	} while (n > 0 || (n < 0 && errno == EINTR));
	return n < 0 ? err_set(e, ERR_IO, "cannot read what %s wrote: %s", name, strerror(errno)) : 0;
}

static int run(const struct tool_opts *o, bool is_group, struct buf *out, struct buf *errors,
	       struct err *e)
{
	int fd[STREAMS] = { -1, -1, -1 }, rc = -1;
	const char *name = o->argv[0];
	pid_t pid;

	if (open_streams(fd, o->input, errors != NULL, e) == 0 &&
	    start(o, is_group, fd, &pid, e) == 0) {
		limit(pid, RLIMIT_FSIZE, o->file_bytes_max);
		limit(pid, RLIMIT_DATA, o->memory_bytes_max);
		limit(pid, RLIMIT_CPU, is_group ? o->timeout_s + 1 : 0); /* should we be killed */
		rc = await(o, is_group, pid, e);
	}
	if (rc >= 0 && (collect(name, fd[OUT], out, e) < 0 ||
			(errors && collect(name, fd[ERRORS], errors, e) < 0)))
		rc = -1;
	for (int i = 0; i < STREAMS; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	return rc;
}

int tool_run(const char *const *argv, struct str input, unsigned timeout_s, struct buf *out,
	     struct buf *errors, struct err *e)
{
	const struct tool_opts o = { .argv = argv, .input = input, .timeout_s = timeout_s };

	assert(argv && argv[0]);
	return run(&o, false, out, errors, e);
}

int tool_run_within(const struct tool_opts *o, struct buf *out, struct buf *errors, struct err *e)
{
	assert(o->argv && o->argv[0]);
	return run(o, true, out, errors, e);
}
