/* SPDX-License-Identifier: Apache-2.0 */
/*
 * server_internal.h - what server.c, server_address.c and their test share.
 */
#pragma once
#include "bench/server/server.h"
#include "core/base/str.h"
#include "host/proc/keeper.h"
#include "host/proc/last_words.h"
#include "input/fetch/fetch.h"

struct server {
	struct server_opts opts;     /* argv and log_path are copies */
	struct server_hooks hooks;
	struct server_address where;
	struct keeper *keeper;
	int log_fd;
	int64_t log_began;           /* bytes that stood in the log before */
	double startup_s;
	struct oom_counter oom;      /* since its start */
};

/* Another place than its words say; port 0: the port stays. ERR_USAGE: the name is too long. */
int server_at(struct server_address *a, const char *host, unsigned port, struct err *e);
/* Requests to it go past proxies when it is on this machine. */
struct fetch_opts server_fetch_opts(const struct server *s, int64_t timeout_ms);

/* The category of an end, by last_words_sign. */
enum server_fault server_fault_of(struct str log, bool has_code, int code,
				  const struct oom_counter *oom, struct str *reason);
/*
 * Fills why from the server's log. The log's last lines go to hooks->warn when they say something.
 */
void server_explain(const struct server *s, const struct keeper_end *end,
		    struct server_failure *why);
void server_show_tail(const struct server *s, const struct server_failure *why);
