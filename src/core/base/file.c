/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - see file.h. */
#include "core/base/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

/* The descriptor that a path like /dev/fd/63 names; -1: it names a file. */
static int own_descriptor(const char *path)
{
	static const char *const folders[] = { "/dev/fd/", "/proc/self/fd/" };
	int64_t fd;

	if (strcmp(path, "/dev/stdin") == 0)
		return STDIN_FILENO;
	for (size_t i = 0; i < sizeof(folders) / sizeof(*folders); i++)
		if (str_starts(str_of(path), str_of(folders[i])) &&
		    str_to_i64(str_of(path + strlen(folders[i])), &fd) && fd >= 0 &&
		    fd <= INT32_MAX)
			return (int)fd;
	return -1;
}

static int copy_pipe(int from, int to, size_t limit, const char *path, struct err *e)
{
	char *block = mem_alloc(READ_BYTES);
	size_t total = 0;
	ssize_t n;
	int rc = 0;

	do {
		n = read(from, block, READ_BYTES);
		total += n > 0 ? (size_t)n : 0;
		if (n < 0 && errno != EINTR)
			rc = err_set(e, ERR_IO, "cannot read %s: %s", path, strerror(errno));
		else if (total > limit)
			rc = err_set(e, ERR_LIMIT, "%s has more than %zu bytes, which is the limit", path,
				     limit);
		else if (n > 0 && file_write_all(to, (struct str){ block, (size_t)n }) < 0)
			rc = err_set(e, ERR_IO, "cannot keep what comes from %s in a file of $TMPDIR: %s",
				     path, strerror(errno));
	} while (rc == 0 && n != 0);
	free(block);
	return rc;
}

/* Closes the pipe and gives a nameless file with all that came from it. */
static int take_pipe(int pipe, size_t limit, const char *path, struct err *e)
{
	int own = own_descriptor(path), fd = file_unnamed(NULL), rc = 0;

	if (fd < 0)
		rc = err_set(e, ERR_IO, "cannot make a file in $TMPDIR for what comes from %s: %s", path,
			     strerror(errno));
	if (rc == 0)
		rc = copy_pipe(pipe, fd, limit, path, e);
	close(pipe);
	if (rc == 0 && lseek(fd, 0, SEEK_SET) == 0 && own >= 0)
		dup2(fd, own);
	if (rc < 0 && fd >= 0)
		close(fd);
	return rc < 0 ? -1 : fd;
}

/* limit: of what comes from a pipe; a file is only opened. */
static int open_readable(const char *path, size_t limit, struct stat *st, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_set(e, ERR_IO, "cannot open %s: %s", path, strerror(errno));
	if (fstat(fd, st) == 0 && S_ISFIFO(st->st_mode)) {
		fd = take_pipe(fd, limit, path, e);
		if (fd < 0)
			return -1;
	}
	if (fstat(fd, st) == 0 && S_ISREG(st->st_mode))
		return fd;
	close(fd);
	return err_set(e, ERR_IO, "cannot read %s: not a regular file", path);
}

int file_read(const char *path, size_t limit, struct buf *out, struct err *e)
{
	struct stat st;
	int fd = open_readable(path, limit, &st, e), error, rc = 0;
	bool is_empty = !out->data;
	size_t start = out->len;
	ssize_t n;

	if (fd < 0)
		return -1;
	if ((size_t)st.st_size > limit) {
		close(fd);
		return err_set(e, ERR_LIMIT, "%s has %lld bytes; the limit is %zu", path,
			       (long long)st.st_size, limit);
	}
	out->limit = limit < SIZE_MAX - out->len - READ_BYTES - 1 ?
		     out->len + limit + READ_BYTES + 1 : SIZE_MAX;
	do {
		n = 0;
		if (buf_reserve(out, READ_BYTES) < 0)
			break;
		n = read(fd, out->data + out->len, out->cap - out->len - 1);
		if (n > 0)
			out->len += (size_t)n;
	} while (n > 0 || (n < 0 && errno == EINTR));
	error = errno;
	if (out->data)
		out->data[out->len] = 0;
	close(fd);
	if (n < 0)
		rc = err_set(e, ERR_IO, "cannot read %s: %s", path, strerror(error));
	/* It grew while it was read, or is one of those whose size is not known before. */
	else if (out->len - start > limit)
		rc = err_set(e, ERR_LIMIT, "%s has more than %zu bytes, the limit", path, limit);
	if (rc < 0 && is_empty)
		buf_release(out);
	else if (rc < 0)
		out->data[out->len = start] = 0;
	return rc;
}

int file_write_all(int fd, struct str bytes)
{
	assert(fd >= 0);
	while (bytes.n) {
		ssize_t n = write(fd, bytes.p, bytes.n);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		bytes.p += n;
		bytes.n -= (size_t)n;
	}
	return 0;
}

void file_sync_folder_of(const char *path)
{
	char *copy = mem_text(path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd >= 0) {
		fsync(fd);
		close(fd);
	}
	free(copy);
}

/* A unique name in the target's folder; not the target's with a suffix, which might be too long. */
static void new_temp_name(struct file_swap *s)
{
	char *copy = mem_text(s->path);
	struct buf name = { 0 };

	buf_printf(&name, "%s/.profllm-%d-%llx", dirname(copy), (int)getpid(),
		   (unsigned long long)clock_real_ns());
	free(copy);
	free(s->temp);
	s->temp = buf_take(&name);
}

/*
 * Nameless while it is written where the file system allows that, so that a killed process leaves
 * no file. The kernel applies the umask in both cases; reading the umask would change it for a
 * moment in every thread.
 */
static void open_temp(struct file_swap *s, mode_t mode)
{
	char *copy = mem_text(s->path);

	s->fd = access("/proc/self/fd", F_OK) < 0 ? -1 :
		open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
	s->is_nameless = s->fd >= 0;
	free(copy);
	new_temp_name(s);
	while (s->fd < 0) {
		s->fd = open(s->temp, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode);
		if (s->fd >= 0 || errno != EEXIST)
			break;
		new_temp_name(s);
	}
}

int file_swap_begin(struct file_swap *s, const char *path)
{
	return file_swap_begin_mode(s, path, 0);
}

int file_swap_begin_mode(struct file_swap *s, const char *path, mode_t mode)
{
	char *target = realpath(path, NULL);
	mode_t first = mode ? mode & 0600 : 0666;
	struct stat st;

	assert(!(mode & ~(mode_t)07777));
	*s = (struct file_swap){ .fd = -1, .path = target ? target : mem_text(path) };
	if (stat(s->path, &st) == 0 && !S_ISREG(st.st_mode))
		s->fd = open(s->path, O_WRONLY | O_CLOEXEC);
	else if (!target && lstat(s->path, &st) == 0 && S_ISLNK(st.st_mode))
		/* A link to a missing file: a rename would replace the link itself. */
		s->fd = open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, first);
	else
		open_temp(s, first);
	/* Narrow permissions first: the others are granted while the file is still empty. */
	if (s->fd >= 0 && mode && s->temp)
		(void)fchmod(s->fd, mode);
	if (s->fd >= 0)
		return 0;
	free(s->path);
	free(s->temp);
	*s = (struct file_swap){ .fd = -1 };
	return -1;
}

/* Only a name can be renamed over another. */
static int give_name(struct file_swap *s)
{
	char from[sizeof("/proc/self/fd/-2147483648")];

	if (!s->is_nameless)
		return 0;
	snprintf(from, sizeof(from), "/proc/self/fd/%d", s->fd);
	while (linkat(AT_FDCWD, from, AT_FDCWD, s->temp, AT_SYMLINK_FOLLOW) < 0) {
		if (errno != EEXIST)
			return -1;
		new_temp_name(s);
	}
	s->is_nameless = false;
	return 0;
}

int file_swap_end(struct file_swap *s, bool is_good)
{
	int saved = errno, rc = is_good ? 0 : -1;

	assert(s->path);
	if (s->temp && rc == 0 && (fsync(s->fd) < 0 || give_name(s) < 0 ||
				   rename(s->temp, s->path) < 0)) {
		saved = errno;
		rc = -1;
	}
	if (s->temp && rc < 0 && !s->is_nameless)
		unlink(s->temp);
	close(s->fd);
	if (s->temp && rc == 0)
		file_sync_folder_of(s->path);
	free(s->path);
	free(s->temp);
	*s = (struct file_swap){ .fd = -1 };
	errno = saved;
	return rc;
}

int file_write_atomic(const char *path, struct str bytes, struct err *e)
{
	return file_write_atomic_mode(path, bytes, 0, e);
}

int file_write_atomic_mode(const char *path, struct str bytes, mode_t mode, struct err *e)
{
	struct file_swap swap;

	if (file_swap_begin_mode(&swap, path, mode) < 0 ||
	    file_swap_end(&swap, file_write_all(swap.fd, bytes) == 0) < 0)
		return err_set(e, ERR_IO, "cannot write %s: %s", path, strerror(errno));
	return 0;
}

int file_mkdirs(const char *path, struct err *e)
{
	return file_mkdirs_mode(path, 0777, e);
}

int file_mkdirs_mode(const char *path, mode_t mode, struct err *e)
{
	char *copy = mem_text(path);
	int rc = 0;

	assert(!(mode & ~(mode_t)07777));
	for (char *p = copy; rc == 0 && *p; p++) {
		if (p == copy || *p != '/')
			continue;
		*p = 0;
		if (mkdir(copy, mode) < 0 && errno != EEXIST)
			rc = -1;
		*p = '/';
	}
	if (rc == 0 && mkdir(copy, mode) < 0 && errno != EEXIST)
		rc = -1;
	if (rc < 0)
		err_set(e, ERR_IO, "cannot create directory %s: %s", path, strerror(errno));
	else if (!file_is_dir(path))
		rc = err_set(e, ERR_IO, "cannot create directory %s: a file is in the way", path);
	free(copy);
	return rc;
}

bool file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

bool file_is_stream(const char *path)
{
	struct stat st;

	return own_descriptor(path) >= 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

int64_t file_free_bytes(const char *path)
{
	struct statvfs v;

	return statvfs(path, &v) < 0 ? -1 : (int64_t)v.f_bavail * (int64_t)v.f_frsize;
}

bool file_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

char *file_join(const char *dir, const char *name)
{
	struct buf path = { 0 };

	if (dir && *dir && *name != '/')
		buf_printf(&path, "%s%s", dir, dir[strlen(dir) - 1] == '/' ? "" : "/");
	buf_add_text(&path, name);
	return buf_take(&path);
}

char *file_beside(const char *path, const char *name)
{
	const char *slash = strrchr(path, '/');
	struct buf out = { 0 };

	buf_add(&out, path, slash ? (size_t)(slash - path) + 1 : 0);
	buf_add_text(&out, name);
	return buf_take(&out);
}

int file_map(const char *path, struct str *out, struct err *e)
{
	struct stat st;
	int fd = open_readable(path, PIPE_BYTES_MAX, &st, e);
	void *p = NULL;

	if (fd < 0)
		return -1;
	*out = (struct str){ "", 0 };
	if (st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p == MAP_FAILED)
		return err_set(e, ERR_IO, "cannot map %s: %s", path, strerror(errno));
	if (p)
		*out = (struct str){ p, (size_t)st.st_size };
	return 0;
}

int file_load_own(const char *path, struct str *out)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;
	size_t n = 0;
	char *p = MAP_FAILED;
	ssize_t got = 1;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    !(st.st_mode & (S_IWGRP | S_IWOTH)) && st.st_size > 0)
		p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (p != MAP_FAILED) {
		madvise(p, (size_t)st.st_size, MADV_HUGEPAGE);
		while (n < (size_t)st.st_size && got != 0 && (got >= 0 || errno == EINTR)) {
			got = read(fd, p + n, (size_t)st.st_size - n);
			n += got > 0 ? (size_t)got : 0;
		}
		if (n < (size_t)st.st_size) /* it became shorter */
			munmap(p, (size_t)st.st_size);
	}
	if (fd >= 0)
		close(fd);
	if (p == MAP_FAILED || n < (size_t)st.st_size)
		return -1;
	*out = (struct str){ p, n };
	return 0;
}

void file_unmap(struct str bytes)
{
	if (bytes.n)
		munmap((void *)(uintptr_t)bytes.p, bytes.n);
}

void file_forget(struct str part)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), at = (uintptr_t)part.p;
	uintptr_t begin = (at + page - 1) & ~(page - 1), end = (at + part.n) & ~(page - 1);

	if (begin < end)
		madvise((void *)begin, end - begin, MADV_DONTNEED);
}

int file_unnamed(const char **folder)
{
	const char *set = getenv("TMPDIR"), *in = set && *set ? set : "/tmp";
	int fd = open(in, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct buf name = { 0 };

	if (folder)
		*folder = in;
	/* Not every file system has such files. */
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	buf_printf(&name, "%s/profllm-XXXXXX", in);
	fd = mkostemp(name.data, O_CLOEXEC);
	if (fd >= 0)
		unlink(name.data);
	buf_release(&name);
	return fd;
}
