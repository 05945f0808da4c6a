/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compat.h - what a program that runs on glibc 2.28 may not take from newer versions.
 *
 * Force-included when the portable tarball is built (portable.sh), and in no other build. The
 * mathematics has had a second symbol since 2.29 and 2.35, which differs in how errors are reported
 * and gives the same values: the older one is taken. Functions that came after 2.28 are in compat.c.
 */
#pragma once
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>

#if defined(__x86_64__)
#define OLDEST "GLIBC_2.2.5"
#elif defined(__aarch64__)
#define OLDEST "GLIBC_2.17"
#else
#error "the portable tarball is made for x86-64 and for 64-bit ARM"
#endif
__asm__(".symver exp, exp@" OLDEST);
__asm__(".symver log, log@" OLDEST);
__asm__(".symver log2, log2@" OLDEST);
__asm__(".symver pow, pow@" OLDEST);
__asm__(".symver hypot, hypot@" OLDEST);

const char *strerrordesc_np(int error);
const char *sigabbrev_np(int number);
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *files, int from);
int epoll_pwait2(int epoll, struct epoll_event *events, int max, const struct timespec *timeout,
		 const sigset_t *blocked);
int pidfd_open(pid_t pid, unsigned flags);
