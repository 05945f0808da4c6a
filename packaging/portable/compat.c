/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat.c - functions that glibc has had since 2.32 to 2.36, for the portable tarball.
 *
 * Each does what the newer C library's does. System calls that the kernel does not have fail with
 * ENOSYS, as they do there, and the program has another way then.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Kernels number these alike on every processor. */
#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif
#define SIGNAL_SET_BYTES 8 /* the kernel's set of signals, not the C library's */

/* strerror() gives the same texts while the program has not chosen a language, which it never does. */
const char *strerrordesc_np(int error)
{
	return strerror(error);
}

const char *sigabbrev_np(int number)
{
	static const char *const name[] = {
		[SIGHUP] = "HUP", [SIGINT] = "INT", [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
		[SIGTRAP] = "TRAP", [SIGABRT] = "ABRT", [SIGBUS] = "BUS", [SIGFPE] = "FPE",
		[SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
		[SIGCHLD] = "CHLD", [SIGCONT] = "CONT", [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
		[SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU", [SIGURG] = "URG", [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF",
		[SIGWINCH] = "WINCH", [SIGPOLL] = "POLL", [SIGPWR] = "PWR", [SIGSYS] = "SYS",
	};

	return number > 0 && (size_t)number < sizeof(name) / sizeof(*name) ? name[number] : NULL;
}

int epoll_pwait2(int epoll, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *blocked)
{
	return (int)syscall(SYS_epoll_pwait2, epoll, events, max, timeout, blocked,
			    blocked ? SIGNAL_SET_BYTES : 0);
}

int pidfd_open(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, pid, flags);
}

/*
 * The descriptors that are open now and would reach the new program are named one by one. Closing
 * one that has been closed in the meantime is no error for posix_spawn. What another thread opens
 * between this call and posix_spawn is opened with O_CLOEXEC everywhere in this program.
 */
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *files, int from)
{
	DIR *open_ones = opendir("/proc/self/fd");
	struct dirent *d;
	int rc = open_ones ? 0 : errno;

	while (open_ones && !rc && (d = readdir(open_ones))) {
		long fd = strtol(d->d_name, NULL, 10);
		int flags = fd >= from ? fcntl((int)fd, F_GETFD) : -1;

		if (flags >= 0 && !(flags & FD_CLOEXEC))
			rc = posix_spawn_file_actions_addclose(files, (int)fd);
	}
	if (open_ones)
		closedir(open_ones);
	return rc;
}
