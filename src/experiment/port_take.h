/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/port_take.h - a TCP port that no other run of ours will take.
 *
 * Reserved by a lock file of its own (proc/lock.h), then proved free by listening on it on every
 * address for a moment: programs that do not know our locks are seen by that. Between the proof and
 * the server's own listening such a program could still come; the default range lies below
 * the ports that the kernel gives to outgoing connections, so that none of those does.
 */
#pragma once
#include "base/err.h"
#include "proc/lock.h"

/* The default range: below the kernel's ephemeral ports. */
void port_range(unsigned *first, unsigned *last);

/*
 * A port from first to last that is free and not reserved; first == last: that very one.
 * 0 with *port and *l, which holds it; -1 with e that says who has it, or how many are taken.
 */
int port_take(const char *folder, unsigned first, unsigned last, const struct lock_holder *me,
	      unsigned *port, struct lock *l, struct err *e);
