/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/oom.h - whether the kernel's out-of-memory killer ended a process of a cgroup.
 *
 * The kernel counts what it kills for want of memory, whatever the limit that was reached: oom_kill
 * in memory.events (cgroup version 2) or memory.oom_control (version 1). Signal 9 alone says
 * nothing: users, schedulers and other programs send it, too.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/str.h"

struct oom_counter {
	char path[512];    /* of the file that has it; "": it cannot be read here */
	uint64_t kills;    /* when it was begun */
};

/* The counter of the cgroup that the process is in now. */
void oom_begin(struct oom_counter *c, pid_t pid);
/* Whether it has risen since; false also when it cannot be read. */
bool oom_has_risen(const struct oom_counter *c);

/* The same for the text of a /proc/PID/cgroup, with cgroups mounted at mount. */
void oom_begin_at(struct oom_counter *c, const char *mount, struct str cgroups);
