/* SPDX-License-Identifier: Apache-2.0 */
/* pressure.c - see pressure.h. */
#include "client/load/pressure.h"

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/file.h"

#define PROC_BYTES_MAX 65536
#define PATH_BYTES 512
#define TURN_NS 100000 /* the shortest that the kernel takes */

/* sched_setattr(2)'s first version, which no header of glibc 2.36 has. */
struct turns {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime_ns, deadline_ns, period_ns;
};

void pressure_wake_soon(void)
{
	struct turns t = { .size = sizeof(t) };

	if (syscall(SYS_sched_getattr, 0, &t, sizeof(t), 0) < 0 || t.policy != SCHED_OTHER)
		return;
	t.runtime_ns = TURN_NS;
	(void)syscall(SYS_sched_setattr, 0, &t, 0); /* older kernels overlook runtime_ns */
}

void pressure_run_on(unsigned cpu)
{
	cpu_set_t one;

	assert(cpu < CPU_SETSIZE);
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	(void)sched_setaffinity(0, sizeof(one), &one); /* it was allowed when the run began */
}

/* /proc/thread-self/schedstat: time on a processor, time waiting for one, turns. */
int64_t pressure_wait_ns(void)
{
	long long ran, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "re");

	if (f && fscanf(f, "%lld %lld", &ran, &waited) != 2)
		waited = 0;
	if (f)
		fclose(f);
	return waited;
}

uint64_t pressure_ports(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "re");
	unsigned low = 1, high = 0;

	if (f && fscanf(f, "%u %u", &low, &high) != 2)
		high = 0;
	if (f)
		fclose(f);
	return high >= low ? high - low + 1 : 0;
}

int64_t pressure_throttled_in(struct str rest)
{
	int64_t value;

	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		struct str key = str_cut(&line, ' ');

		if (str_is(key, "throttled_usec") && str_to_i64(str_trim(line), &value))
			return value * 1000;
		if (str_is(key, "throttled_time") && str_to_i64(str_trim(line), &value))
			return value;
	}
	return 0;
}

/* The longest of a group and those above it: /a/b, /a, /. */
static int64_t throttled_under(const char *root, struct str group)
{
	struct buf text = { 0 };
	char path[PATH_BYTES];
	struct err ignored;
	int64_t most = 0;

	for (;;) {
		int64_t one = 0;

		while (group.n && group.p[group.n - 1] == '/')
			group.n--;
		if (snprintf(path, sizeof(path), "%s%.*s/cpu.stat", root, (int)group.n, group.p) <
		    (int)sizeof(path)) {
			buf_reset(&text);
			if (file_read(path, PROC_BYTES_MAX, &text, &ignored) == 0)
				one = pressure_throttled_in(buf_str(&text));
		}
		most = one > most ? one : most;
		if (!group.n)
			break;
		while (group.n && group.p[group.n - 1] != '/')
			group.n--;
	}
	buf_release(&text);
	return most;
}

/* Whether a comma-separated list of controllers has "cpu". */
static bool has_cpu(struct str list)
{
	while (list.n)
		if (str_is(str_cut(&list, ','), "cpu"))
			return true;
	return false;
}

int64_t pressure_throttled_ns(void)
{
	struct buf text = { 0 };
	struct err ignored;
	struct str rest;
	int64_t most = 0;

	if (file_read("/proc/self/cgroup", PROC_BYTES_MAX, &text, &ignored) < 0)
		goto done;
	rest = buf_str(&text);
	while (rest.n) {
		struct str group = str_cut(&rest, '\n'); /* number:controllers:path */
		struct str number = str_cut(&group, ':');
		struct str list = str_cut(&group, ':');
		int64_t one = 0;

		if (str_is(number, "0") && !list.n)
			one = throttled_under("/sys/fs/cgroup", group);
		else if (has_cpu(list))
			one = throttled_under("/sys/fs/cgroup/cpu", group);
		most = one > most ? one : most;
	}
done:
	buf_release(&text);
	return most;
}
