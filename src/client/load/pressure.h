/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pressure.h - time that the machine withheld from the client while it measured: waiting for a
 * processor, and being stopped by the control group's CPU quota.
 *
 * Read before the clock starts and after it has stopped, never in between. A value is 0 where the
 * kernel does not report it.
 *
 * Not here: what the client used itself (load.h), what that means (metrics/trust.h).
 */
#pragma once
#include <stdint.h>

#include "core/base/str.h"

/*
 * The calling thread asks for short turns on its processor. From Linux 6.12 on, one that wakes up
 * then interrupts a thread with longer turns at once, where it would wait for up to 3 ms. Needs no
 * privilege and gives the thread no larger share; a real-time policy stays as it is.
 */
void pressure_wake_soon(void);
/* Pins the calling thread to this processor, if that is permitted. */
void pressure_run_on(unsigned cpu);
/* Nanoseconds that the calling thread has waited for a processor since it began. */
int64_t pressure_wait_ns(void);
/*
 * Nanoseconds for which a CPU quota (cgroup v2 cpu.max, v1 cpu.cfs_quota_us) has stopped this
 * process: the largest value of its group and the groups above it.
 */
int64_t pressure_throttled_ns(void);
/* How many local ports a connection may get (net.ipv4.ip_local_port_range). */
uint64_t pressure_ports(void);
/*
 * The same as pressure_throttled_ns from the text of a cpu.stat: throttled_usec (v2) or
 * throttled_time (v1, nanoseconds); 0 without either.
 */
int64_t pressure_throttled_in(struct str cpu_stat);
