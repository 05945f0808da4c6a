/* SPDX-License-Identifier: Apache-2.0 */
/*
 * no_threads.c - ends a unit test that starts a thread, itself or in a child (LD_PRELOAD). It is
 * loaded into those that do not say `threads: yes`, which ThreadSanitizer therefore leaves out.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*start)(void *), void *arg)
{
	(void)thread, (void)attr, (void)start, (void)arg;
	fputs("this unit test starts a thread: add the comment `threads: yes` to its source\n", stderr);
	abort();
}
