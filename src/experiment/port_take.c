/* SPDX-License-Identifier: Apache-2.0 */
/* port_take.c - see port_take.h. */
#include "experiment/port_take.h"

#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/limits.h"
#include "net/sock.h"
#include "proc/port.h"

#define RANGE_FIRST 20000u
#define RANGE_LAST 29999u
#define PORT_MAX 65535u
#define PORT_UNPRIVILEGED 1024u

void port_range(unsigned *first, unsigned *last)
{
	struct buf text = { 0 };
	uint64_t low = 0;

	*first = RANGE_FIRST;
	*last = RANGE_LAST;
	if (file_read("/proc/sys/net/ipv4/ip_local_port_range", PROC_FILE_BYTES_MAX, &text,
		      NULL) == 0) {
		struct str rest = buf_str(&text);

		/* A kernel that gives them from 20000 on or lower leaves us what is below. */
		if (str_to_u64(str_cut(&rest, '\t'), &low) && low <= RANGE_LAST &&
		    low > PORT_UNPRIVILEGED) {
			*last = (unsigned)low - 1;
			if (*last < RANGE_FIRST)
				*first = PORT_UNPRIVILEGED;
		}
	}
	buf_release(&text);
}

/* Why the one port that was asked for is not to be had. */
static int refuse(unsigned port, int error, const struct lock_holder *who, struct err *e)
{
	char command[TREE_COMMAND_BYTES] = "";
	struct buf text = { 0 };
	pid_t pid = 0;

	if (who) {
		lock_describe(who, &text);
		err_set(e, ERR_NET, "port %u is reserved by %s", port, text.data);
		buf_release(&text);
		return -1;
	}
	if (error == EADDRINUSE)
		port_look((uint16_t)port, NULL, 0, &pid);
	if (pid)
		tree_command(pid, command);
	if (pid)
		return err_set(e, ERR_NET, "port %u is taken by process %d: %s", port, (int)pid,
			       command);
	return err_set(e, ERR_NET, "port %u cannot be listened on: %s", port, strerror(error));
}

/*
 * Where to begin to look: not all at the same place, so that those who go by other folders of locks
 * (another container on this network, a test) hardly ever prove the same port at the same time.
 */
static unsigned somewhere(unsigned n)
{
	uint64_t mixed = (uint64_t)clock_mono_ns() ^ (uint64_t)getpid() << 20;

	mixed *= 0x9e3779b97f4a7c15;
	return (unsigned)((mixed >> 32) % n);
}

int port_take(const char *folder, unsigned first, unsigned last, const struct lock_holder *me,
	      unsigned *port, struct lock *l, struct err *e)
{
	unsigned start;

	if (first == 0 || last > PORT_MAX || first > last)
		return err_set(e, ERR_USAGE, "ports %u-%u: expected two ports from 1 to %u, the "
			       "lower one first", first, last, PORT_MAX);
	start = somewhere(last - first + 1);
	for (unsigned i = 0; i <= last - first; i++) {
		unsigned p = first + (start + i) % (last - first + 1);
		struct lock_holder who = { 0 };
		char name[32];
		int error, taken;

		snprintf(name, sizeof(name), "port-%u", p);
		taken = lock_take(folder, name, LOCK_ALONE, me, l, &who, e);
		if (taken < 0)
			return -1;
		if (taken == 0 && first == last)
			return refuse(p, 0, &who, e);
		if (taken == 0)
			continue;
		error = sock_try_port((uint16_t)p);
		if (error == 0) {
			*port = p;
			return 0;
		}
		lock_give(l);
		if (first == last)
			return refuse(p, error, NULL, e);
	}
	return err_set(e, ERR_NET, "no port from %u to %u is free: all %u are reserved or taken",
		       first, last, last - first + 1);
}
