/* SPDX-License-Identifier: Apache-2.0 */
/* proc/spawn.h - how every program of ours is started: our handlers and masks are not its. */
#pragma once
#include <signal.h>
#include <spawn.h>

/* flags: POSIX_SPAWN_SETSID, POSIX_SPAWN_SETPGROUP or 0. The caller destroys how. */
static inline void spawn_attributes(posix_spawnattr_t *how, short flags)
{
	sigset_t none, all;

	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(how);
	posix_spawnattr_setsigmask(how, &none);
	posix_spawnattr_setsigdefault(how, &all);
	posix_spawnattr_setflags(how, (short)(flags | POSIX_SPAWN_SETSIGMASK |
					      POSIX_SPAWN_SETSIGDEF));
}
