/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run/ab_servers.h - the two servers of an A/B, where commands were given in place of URLs.
 *
 * A is started first and must answer before B is started, because engines divide a GPU by what they
 * find free. Both then run until the end: while one is loaded the other is idle, but keeps its
 * memory. Each must listen on a port of its own.
 */
#pragma once
#include "base/arena.h"
#include "run/server.h"

struct ab_serve {
	const char *cmd[2];       /* both, or NULL: the servers run already */
	double ready_timeout_s, grace_s;
	const char *log_dir;      /* a.log and b.log in it; NULL: logs are not kept */
};

struct ab_servers {
	const struct ab_serve *opts;
	const struct server_hooks *hooks;
	char **argv[2];           /* in arena */
	struct server_address where[2];
	char *log[2];             /* in arena */
	bool is_log_ours[2];
	struct server *server[2]; /* NULL: not started, or not any more */
	struct arena arena;
};

/* Reads both commands and starts nothing; -1 with ERR_USAGE. opts and hooks are borrowed. */
int ab_servers_init(struct ab_servers *s, const struct ab_serve *opts,
		    const struct server_hooks *hooks, struct err *e);
/* Returns when both answer; -1: e says which one does not, ERR_CANCELLED by hooks->cancel. */
int ab_servers_start(struct ab_servers *s, struct err *e);
/* Cheap, from any thread. */
bool ab_servers_are_alive(struct ab_servers *s);
/*
 * -1 when one has ended: hooks->warn was given its log's last lines, e says how it ended. With
 * is_suspect (requests failed) it waits a moment for the end of a server that is about to.
 */
int ab_servers_check(struct ab_servers *s, bool is_suspect, struct err *e);
/* Stops what was started, in any state of s; -1: something is left. */
int ab_servers_stop(struct ab_servers *s, struct err *e);
