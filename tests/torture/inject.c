/* SPDX-License-Identifier: Apache-2.0 */
/*
 * inject.c - makes one call of the program to the system fail, to see what the program does then.
 *
 * The program is linked with `--wrap` for every function below (mk/torture.mk), so a call from its
 * own sources comes here first, and calls inside libraries do not; SQLite's system calls are
 * replaced when it is loaded. Standard output is a stream whose bytes are written here.
 *
 * An injection point is a kind of call together with the four innermost return addresses. What
 * is counted is in the file named by INJECT, which all processes of a run map (struct shared), so
 * that a killed process loses nothing:
 *
 *   INJECT=FILE           without anything else: count only
 *   INJECT_POINT=HEX      what fails: this point; or INJECT_KIND=NAME, any call of that kind
 *   INJECT_NTH=N          the N-th of those calls, from 1, over all processes
 *   INJECT_HOW=N          with the N-th of the kind's errors, modulo their number
 *   INJECT_SHORT=SEED     every read and write is cut to a random length, or interrupted
 *   INJECT_LIST=1         prints the names of the kinds and how many errors each has
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum kind { ALLOC, OPEN, READ, WRITE, SYNC, NAME, MAP, STAT, CLOSE, NET, RECEIVE, SEND, WAIT,
	    CLOCK, PROCESS, LOAD, KINDS };

#define SHORT 0 /* in place of an errno: one byte is read or written */
#define ERRORS_MAX 4

static const struct {
	const char *name;
	int n, error[ERRORS_MAX];
} kinds[KINDS] = {
	[ALLOC] = { "alloc", 1, { ENOMEM } },
	[OPEN] = { "open", 3, { EMFILE, EACCES, EIO } },
	[READ] = { "read", 3, { EIO, SHORT, EINTR } },
	[WRITE] = { "write", 4, { ENOSPC, SHORT, EIO, EINTR } },
	[SYNC] = { "sync", 2, { EIO, ENOSPC } },
	[NAME] = { "name", 3, { EIO, ENOSPC, EACCES } },
	[MAP] = { "map", 1, { ENOMEM } },
	[STAT] = { "stat", 3, { EACCES, EIO, ENOMEM } },
	[CLOSE] = { "close", 1, { EIO } },
	[NET] = { "net", 3, { ENOBUFS, EACCES, ETIMEDOUT } },
	[RECEIVE] = { "receive", 4, { ECONNRESET, SHORT, EAGAIN, EINTR } },
	[SEND] = { "send", 4, { ECONNRESET, SHORT, EAGAIN, EINTR } },
	[WAIT] = { "wait", 1, { EINTR } },
	[CLOCK] = { "clock", 1, { EINVAL } },
	[PROCESS] = { "process", 2, { EAGAIN, ENOMEM } },
	[LOAD] = { "load", 1, { ENOENT } },
};

#define POINTS_MAX 8192
#define FRAMES 4
#define IN_LIBRARY (1ull << 63) /* of an address: from that library's first byte */

/* tests/torture/torture.pl reads this by its layout. */
struct point {
	uint64_t key; /* 0: free */
	uint64_t kind, count;
	uint64_t address[FRAMES]; /* from the program's first byte; the innermost first */
};

struct shared {
	uint64_t count[KINDS];
	uint64_t full;  /* calls that found no place for their point */
	uint64_t fired; /* 1: the call has failed */
	uint64_t fired_kind, fired_error, fired_key;
	uint64_t cut; /* calls that INJECT_SHORT changed */
	struct point point[POINTS_MAX];
};

static struct shared *shared;
static uint64_t wanted_key, wanted_nth, wanted_how, seed;
static int wanted_kind = -1;

extern char __executable_start, etext;

/* ---- What is called in place of what is wrapped ---- */

#define REAL(f) __typeof__(f) __real_##f
REAL(calloc); REAL(reallocarray); REAL(vasprintf); REAL(scandir); REAL(opendir); REAL(mkostemp);
REAL(mkstemp); REAL(memfd_create); REAL(eventfd); REAL(signalfd); REAL(fopen);
REAL(inotify_init1); REAL(pipe2); REAL(socketpair); REAL(read); REAL(pread); REAL(write);
REAL(pwrite); REAL(sendfile); REAL(fsync); REAL(rename); REAL(link); REAL(linkat);
REAL(symlink); REAL(mkdir); REAL(mkdtemp); REAL(ftruncate); REAL(fallocate); REAL(fchmod);
REAL(chmod); REAL(flock); REAL(mmap); REAL(stat); REAL(fstat); REAL(lstat); REAL(access);
REAL(realpath); REAL(readlink); REAL(close); REAL(socket); REAL(connect); REAL(bind);
REAL(listen); REAL(accept4); REAL(setsockopt); REAL(getsockopt); REAL(getsockname);
REAL(epoll_ctl); REAL(epoll_create1); REAL(getaddrinfo); REAL(recv); REAL(recvmsg); REAL(send);
REAL(poll); REAL(epoll_wait); REAL(epoll_pwait2); REAL(nanosleep); REAL(clock_nanosleep);
REAL(waitpid); REAL(clock_gettime); REAL(pthread_create); REAL(fork); REAL(posix_spawn);
REAL(posix_spawnp); REAL(dlopen); REAL(dlsym); REAL(lseek); REAL(dup2); REAL(readdir);
int __real_open(const char *path, int flags, ...);
int __real_fcntl(int fd, int what, ...);
ssize_t __real___getdelim(char **line, size_t *n, int end, FILE *f);

/* ---- Deciding ---- */

static bool in_program(uint64_t at)
{
	return at >= (uintptr_t)&__executable_start && at < (uintptr_t)&etext;
}

/* Frames are followed while they are the program's own, all of which keep a frame pointer. */
static uint64_t read_frames(const uintptr_t *frame, uint64_t *address)
{
	uint64_t key = 0xcbf29ce484222325u;
	size_t n = 0;

	frame = (const uintptr_t *)frame[0]; /* that of the wrapper, whose caller made the call */
	while (n < FRAMES) {
		uintptr_t next = frame[0], at = frame[1];
		bool is_own = in_program(at);
		Dl_info where = { 0 };

		if (!is_own)
			dladdr((void *)at, &where);
		address[n] = is_own ? at - (uintptr_t)&__executable_start :
			(at - (uintptr_t)where.dli_fbase) | IN_LIBRARY;
		key = (key ^ address[n++]) * 0x100000001b3u;
		if (!is_own || next <= (uintptr_t)frame ||
		    next - (uintptr_t)frame > 65536 || next & 7)
			break;
		frame = (const uintptr_t *)next;
	}
	return key;
}

static struct point *point_of(enum kind kind, const uintptr_t *frame)
{
	uint64_t address[FRAMES] = { 0 };
	uint64_t key = (read_frames(frame, address) ^ (kind + 1)) * 0x9e3779b97f4a7c15u | 1;

	for (size_t i = 0; i < POINTS_MAX; i++) {
		struct point *p = &shared->point[((key >> 32) + i) % POINTS_MAX];
		uint64_t old = 0;

		if (__atomic_load_n(&p->key, __ATOMIC_ACQUIRE) == key)
			return p;
		if (!__atomic_compare_exchange_n(&p->key, &old, key, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
			if (old == key)
				return p;
			continue;
		}
		p->kind = kind;
		memcpy(p->address, address, sizeof(address));
		return p;
	}
	__atomic_add_fetch(&shared->full, 1, __ATOMIC_RELAXED);
	return NULL;
}

/* -1: the call is made. Else what it fails with: an errno, or SHORT. */
static __attribute__((noinline)) int verdict(enum kind kind)
{
	struct point *p;
	uint64_t of_kind, of_point = 0;
	int error;

	if (!shared)
		return -1;
	p = point_of(kind, __builtin_frame_address(0));
	of_kind = __atomic_add_fetch(&shared->count[kind], 1, __ATOMIC_RELAXED);
	if (p)
		of_point = __atomic_add_fetch(&p->count, 1, __ATOMIC_RELAXED);
	if (wanted_key ? !p || p->key != wanted_key || of_point != wanted_nth :
	    wanted_kind != (int)kind || of_kind != wanted_nth)
		return -1;
	error = kinds[kind].error[wanted_how % (uint64_t)kinds[kind].n];
	shared->fired_kind = kind;
	shared->fired_error = (uint64_t)error;
	shared->fired_key = p ? p->key : 0;
	__atomic_store_n(&shared->fired, 1, __ATOMIC_RELEASE);
	return error;
}

/* Whether the call fails, with its errno; only for kinds that are never short. */
static inline __attribute__((always_inline)) bool fails(enum kind kind)
{
	int error = verdict(kind);

	if (error < 0)
		return false;
	errno = error;
	return true;
}

/* How many of n bytes the call may take: 0: none, it fails. */
static inline __attribute__((always_inline)) size_t allowed(enum kind kind, size_t n)
{
	int error = verdict(kind);

	if (error > 0) {
		errno = error;
		return 0;
	}
	if (error == SHORT)
		return n ? 1 : 0;
	if (seed && n > 1) {
		uint64_t x = __atomic_add_fetch(&seed, 0x9e3779b97f4a7c15u, __ATOMIC_RELAXED);

		x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
		x ^= x >> 29;
		if (x % 16 < 8) {
			__atomic_add_fetch(&shared->cut, 1, __ATOMIC_RELAXED);
			errno = EINTR;
			return x % 16 == 0 ? 0 : 1 + (size_t)(x >> 8) % n;
		}
	}
	return n;
}

/* ---- Memory ---- */

void *__wrap_calloc(size_t n, size_t size)
{
	return fails(ALLOC) ? NULL : __real_calloc(n, size);
}

void *__wrap_reallocarray(void *p, size_t n, size_t size)
{
	return fails(ALLOC) ? NULL : __real_reallocarray(p, n, size);
}

int __wrap_vasprintf(char **text, const char *fmt, va_list ap)
{
	return fails(ALLOC) ? -1 : __real_vasprintf(text, fmt, ap);
}

void *__wrap_mmap(void *at, size_t n, int protection, int flags, int fd, off_t offset)
{
	return fails(MAP) ? MAP_FAILED : __real_mmap(at, n, protection, flags, fd, offset);
}

/* ---- Descriptors ---- */

int __wrap_open(const char *path, int flags, ...)
{
	mode_t mode = 0;
	va_list ap;

	va_start(ap, flags);
	if (flags & (O_CREAT | O_TMPFILE))
		mode = va_arg(ap, mode_t);
	va_end(ap);
	return fails(OPEN) ? -1 : __real_open(path, flags, mode);
}

int __wrap_fcntl(int fd, int what, ...)
{
	va_list ap;
	void *value;

	va_start(ap, what);
	value = va_arg(ap, void *);
	va_end(ap);
	if ((what == F_DUPFD || what == F_DUPFD_CLOEXEC) && fails(OPEN))
		return -1;
	return __real_fcntl(fd, what, value);
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
	return fails(OPEN) ? NULL : __real_fopen(path, mode);
}

DIR *__wrap_opendir(const char *path)
{
	return fails(OPEN) ? NULL : __real_opendir(path);
}

int __wrap_scandir(const char *path, struct dirent ***names, int (*filter)(const struct dirent *),
		   int (*compare)(const struct dirent **, const struct dirent **))
{
	return fails(OPEN) ? -1 : __real_scandir(path, names, filter, compare);
}

struct dirent *__wrap_readdir(DIR *folder)
{
	int error = verdict(READ);

	if (error != EIO)
		return __real_readdir(folder);
	errno = EIO;
	return NULL;
}

int __wrap_mkostemp(char *path, int flags)
{
	return fails(OPEN) ? -1 : __real_mkostemp(path, flags);
}

int __wrap_mkstemp(char *path)
{
	return fails(OPEN) ? -1 : __real_mkstemp(path);
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	return fails(OPEN) ? -1 : __real_memfd_create(name, flags);
}

int __wrap_eventfd(unsigned value, int flags)
{
	return fails(OPEN) ? -1 : __real_eventfd(value, flags);
}

int __wrap_signalfd(int fd, const sigset_t *set, int flags)
{
	return fails(OPEN) ? -1 : __real_signalfd(fd, set, flags);
}

int __wrap_inotify_init1(int flags)
{
	return fails(OPEN) ? -1 : __real_inotify_init1(flags);
}

int __wrap_pipe2(int fd[2], int flags)
{
	return fails(OPEN) ? -1 : __real_pipe2(fd, flags);
}

int __wrap_socketpair(int domain, int type, int protocol, int fd[2])
{
	return fails(OPEN) ? -1 : __real_socketpair(domain, type, protocol, fd);
}

int __wrap_dup2(int from, int to)
{
	return fails(OPEN) ? -1 : __real_dup2(from, to);
}

/* Linux closes the descriptor whatever it returns. */
int __wrap_close(int fd)
{
	bool is_failing = fails(CLOSE);
	int rc = __real_close(fd);

	if (!is_failing)
		return rc;
	errno = EIO;
	return -1;
}

/* ---- Bytes of files and pipes ---- */

/* Linux never cuts a message that was written at once: events, and reports through a pipe. */
#define MESSAGE_BYTES_MAX 512

static bool is_message(int fd, size_t n)
{
	struct stat st;

	return n <= MESSAGE_BYTES_MAX && __real_fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) &&
	       !S_ISSOCK(st.st_mode);
}

ssize_t __wrap_read(int fd, void *p, size_t n)
{
	size_t some = n ? allowed(READ, n) : 0;

	if (n && !some)
		return -1;
	return __real_read(fd, p, is_message(fd, n) ? n : some);
}

ssize_t __wrap_pread(int fd, void *p, size_t n, off_t at)
{
	size_t some = n ? allowed(READ, n) : 0;

	return n && !some ? -1 : __real_pread(fd, p, some, at);
}

/* What is written to standard error is not touched: it is what we look at. */
ssize_t __wrap_write(int fd, const void *p, size_t n)
{
	size_t some = n && fd != STDERR_FILENO ? allowed(WRITE, n) : n;

	if (n && !some)
		return -1;
	return __real_write(fd, p, is_message(fd, n) ? n : some);
}

ssize_t __wrap_pwrite(int fd, const void *p, size_t n, off_t at)
{
	size_t some = n ? allowed(WRITE, n) : 0;

	return n && !some ? -1 : __real_pwrite(fd, p, some, at);
}

ssize_t __wrap_sendfile(int to, int from, off_t *at, size_t n)
{
	size_t some = n ? allowed(WRITE, n) : 0;

	return n && !some ? -1 : __real_sendfile(to, from, at, some);
}

ssize_t __wrap___getdelim(char **line, size_t *n, int end, FILE *f)
{
	return fails(ALLOC) ? -1 : __real___getdelim(line, n, end, f);
}

off_t __wrap_lseek(int fd, off_t at, int whence)
{
	return fails(STAT) ? -1 : __real_lseek(fd, at, whence);
}

int __wrap_fsync(int fd)
{
	return fails(SYNC) ? -1 : __real_fsync(fd);
}

int __wrap_ftruncate(int fd, off_t n)
{
	return fails(NAME) ? -1 : __real_ftruncate(fd, n);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t n)
{
	return fails(NAME) ? -1 : __real_fallocate(fd, mode, at, n);
}

/* ---- Names ---- */

int __wrap_rename(const char *from, const char *to)
{
	return fails(NAME) ? -1 : __real_rename(from, to);
}

int __wrap_link(const char *from, const char *to)
{
	return fails(NAME) ? -1 : __real_link(from, to);
}

int __wrap_linkat(int from_fd, const char *from, int to_fd, const char *to, int flags)
{
	return fails(NAME) ? -1 : __real_linkat(from_fd, from, to_fd, to, flags);
}

int __wrap_symlink(const char *from, const char *to)
{
	return fails(NAME) ? -1 : __real_symlink(from, to);
}

int __wrap_mkdir(const char *path, mode_t mode)
{
	return fails(NAME) ? -1 : __real_mkdir(path, mode);
}

char *__wrap_mkdtemp(char *path)
{
	return fails(NAME) ? NULL : __real_mkdtemp(path);
}

int __wrap_fchmod(int fd, mode_t mode)
{
	return fails(NAME) ? -1 : __real_fchmod(fd, mode);
}

int __wrap_chmod(const char *path, mode_t mode)
{
	return fails(NAME) ? -1 : __real_chmod(path, mode);
}

int __wrap_flock(int fd, int what)
{
	return fails(NAME) ? -1 : __real_flock(fd, what);
}

int __wrap_stat(const char *path, struct stat *st)
{
	return fails(STAT) ? -1 : __real_stat(path, st);
}

int __wrap_fstat(int fd, struct stat *st)
{
	return fails(STAT) ? -1 : __real_fstat(fd, st);
}

int __wrap_lstat(const char *path, struct stat *st)
{
	return fails(STAT) ? -1 : __real_lstat(path, st);
}

int __wrap_access(const char *path, int mode)
{
	return fails(STAT) ? -1 : __real_access(path, mode);
}

char *__wrap_realpath(const char *path, char *out)
{
	return fails(STAT) ? NULL : __real_realpath(path, out);
}

ssize_t __wrap_readlink(const char *path, char *out, size_t n)
{
	return fails(STAT) ? -1 : __real_readlink(path, out, n);
}

/* ---- The network ---- */

int __wrap_socket(int domain, int type, int protocol)
{
	return fails(NET) ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t n)
{
	return fails(NET) ? -1 : __real_connect(fd, to, n);
}

int __wrap_bind(int fd, const struct sockaddr *to, socklen_t n)
{
	return fails(NET) ? -1 : __real_bind(fd, to, n);
}

int __wrap_listen(int fd, int n)
{
	return fails(NET) ? -1 : __real_listen(fd, n);
}

int __wrap_accept4(int fd, struct sockaddr *from, socklen_t *n, int flags)
{
	return fails(NET) ? -1 : __real_accept4(fd, from, n, flags);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t n)
{
	return fails(NET) ? -1 : __real_setsockopt(fd, level, name, value, n);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *n)
{
	return fails(NET) ? -1 : __real_getsockopt(fd, level, name, value, n);
}

int __wrap_getsockname(int fd, struct sockaddr *to, socklen_t *n)
{
	return fails(NET) ? -1 : __real_getsockname(fd, to, n);
}

int __wrap_epoll_create1(int flags)
{
	return fails(NET) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int fd, int what, int of, struct epoll_event *event)
{
	/* Only a new descriptor needs memory. */
	return what == EPOLL_CTL_ADD && fails(NET) ? -1 : __real_epoll_ctl(fd, what, of, event);
}

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
		       struct addrinfo **out)
{
	return fails(NET) ? EAI_AGAIN : __real_getaddrinfo(host, port, hints, out);
}

/* A connection that was reset stays so. */
static ssize_t no_bytes(int fd)
{
	int error = errno;

	if (error == ECONNRESET)
		shutdown(fd, SHUT_RDWR);
	errno = error;
	return -1;
}

ssize_t __wrap_recv(int fd, void *p, size_t n, int flags)
{
	size_t some = n ? allowed(RECEIVE, n) : 0;

	return n && !some ? no_bytes(fd) : __real_recv(fd, p, some, flags);
}

/* Only messages in one piece are cut. */
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
	struct iovec part = m->msg_iovlen == 1 ? m->msg_iov[0] : (struct iovec){ 0 };
	size_t some = allowed(RECEIVE, part.iov_len ? part.iov_len : 1);
	ssize_t n;

	if (!some)
		return no_bytes(fd);
	if (part.iov_len)
		m->msg_iov[0].iov_len = some;
	n = __real_recvmsg(fd, m, flags);
	if (part.iov_len)
		m->msg_iov[0] = part;
	return n;
}

ssize_t __wrap_send(int fd, const void *p, size_t n, int flags)
{
	size_t some = n ? allowed(SEND, n) : 0;

	return n && !some ? no_bytes(fd) : __real_send(fd, p, some, flags);
}

/* ---- Waiting, time, processes ---- */

int __wrap_poll(struct pollfd *fd, nfds_t n, int timeout)
{
	return fails(WAIT) ? -1 : __real_poll(fd, n, timeout);
}

int __wrap_epoll_wait(int fd, struct epoll_event *event, int n, int timeout)
{
	return fails(WAIT) ? -1 : __real_epoll_wait(fd, event, n, timeout);
}

int __wrap_epoll_pwait2(int fd, struct epoll_event *event, int n, const struct timespec *timeout,
			const sigset_t *mask)
{
	return fails(WAIT) ? -1 : __real_epoll_pwait2(fd, event, n, timeout, mask);
}

int __wrap_nanosleep(const struct timespec *t, struct timespec *rest)
{
	if (!fails(WAIT))
		return __real_nanosleep(t, rest);
	if (rest)
		*rest = *t;
	return -1;
}

int __wrap_clock_nanosleep(clockid_t id, int flags, const struct timespec *t,
			   struct timespec *rest)
{
	if (!fails(WAIT))
		return __real_clock_nanosleep(id, flags, t, rest);
	if (rest)
		*rest = *t;
	return EINTR;
}

pid_t __wrap_waitpid(pid_t pid, int *status, int flags)
{
	return fails(WAIT) ? -1 : __real_waitpid(pid, status, flags);
}

int __wrap_clock_gettime(clockid_t id, struct timespec *t)
{
	return fails(CLOCK) ? -1 : __real_clock_gettime(id, t);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*work)(void *),
			  void *arg)
{
	return fails(PROCESS) ? EAGAIN : __real_pthread_create(thread, attr, work, arg);
}

pid_t __wrap_fork(void)
{
	return fails(PROCESS) ? -1 : __real_fork();
}

int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
		       const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return fails(PROCESS) ? errno : __real_posix_spawn(pid, path, actions, attr, argv, envp);
}

int __wrap_posix_spawnp(pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,
			const posix_spawnattr_t *attr, char *const argv[], char *const envp[])
{
	return fails(PROCESS) ? errno : __real_posix_spawnp(pid, path, actions, attr, argv, envp);
}

/* ---- Libraries ---- */

/* A library that is not there, so that dlerror() says so. */
void *__wrap_dlopen(const char *file, int flags)
{
	return __real_dlopen(fails(LOAD) ? "libinjected-failure.so" : file, flags);
}

static int failing_unlink(const char *path)
{
	return fails(NAME) ? -1 : unlink(path);
}

/* SQLite calls the system by way of a table that can be changed. */
static void enter_sqlite(void *library)
{
	static const struct {
		const char *name;
		sqlite3_syscall_ptr call;
	} table[] = {
		{ "open", (sqlite3_syscall_ptr)__wrap_open },
		{ "access", (sqlite3_syscall_ptr)__wrap_access },
		{ "fstat", (sqlite3_syscall_ptr)__wrap_fstat },
		{ "ftruncate", (sqlite3_syscall_ptr)__wrap_ftruncate },
		{ "read", (sqlite3_syscall_ptr)__wrap_read },
		{ "pread", (sqlite3_syscall_ptr)__wrap_pread },
		{ "pread64", (sqlite3_syscall_ptr)__wrap_pread },
		{ "write", (sqlite3_syscall_ptr)__wrap_write },
		{ "pwrite", (sqlite3_syscall_ptr)__wrap_pwrite },
		{ "pwrite64", (sqlite3_syscall_ptr)__wrap_pwrite },
		{ "unlink", (sqlite3_syscall_ptr)failing_unlink },
		{ "mmap", (sqlite3_syscall_ptr)__wrap_mmap },
	};
	__typeof__(&sqlite3_vfs_find) find = __real_dlsym(library, "sqlite3_vfs_find");
	sqlite3_vfs *vfs = find ? find(NULL) : NULL;

	for (size_t i = 0; vfs && vfs->iVersion >= 3 && i < sizeof(table) / sizeof(*table); i++)
		vfs->xSetSystemCall(vfs, table[i].name, table[i].call);
}

void *__wrap_dlsym(void *library, const char *name)
{
	if (shared && strcmp(name, "sqlite3_open_v2") == 0)
		enter_sqlite(library);
	return __real_dlsym(library, name);
}

/* ---- Beginning ---- */

/* As the C library writes: what is left of a short write follows. */
static ssize_t write_out(void *cookie, const char *p, size_t n)
{
	size_t done = 0;

	(void)cookie;
	while (done < n) {
		ssize_t some = __wrap_write(STDOUT_FILENO, p + done, n - done);

		if (some < 0 && (errno != EINTR || !seed))
			return 0;
		done += some > 0 ? (size_t)some : 0;
	}
	return (ssize_t)n;
}

static uint64_t number(const char *name, int base)
{
	const char *text = getenv(name);

	return text ? strtoull(text, NULL, base) : 0;
}

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("INJECT"), *kind = getenv("INJECT_KIND");
	int fd = path ? __real_open(path, O_RDWR | O_CLOEXEC) : -1;
	void *p;

	if (getenv("INJECT_LIST")) {
		for (int i = 0; i < KINDS; i++)
			printf("%s %d\n", kinds[i].name, kinds[i].n);
		exit(0);
	}
	if (fd < 0)
		return;
	p = __real_mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	__real_close(fd);
	if (p == MAP_FAILED)
		return;
	wanted_key = number("INJECT_POINT", 16);
	wanted_nth = number("INJECT_NTH", 10);
	wanted_how = number("INJECT_HOW", 10);
	seed = number("INJECT_SHORT", 10);
	for (int i = 0; kind && i < KINDS; i++)
		if (strcmp(kinds[i].name, kind) == 0)
			wanted_kind = i;
	stdout = fopencookie(NULL, "w", (cookie_io_functions_t){ .write = write_out });
	shared = p;
}
