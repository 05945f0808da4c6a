/* SPDX-License-Identifier: Apache-2.0 */
/* server_fault.c - why a server ended, in the categories of a server (proc/last_words.h). */
#include "run/server_parts.h"

#include <stdio.h>

#include "proc/last_words.h"

static const char *const names[] = {
	[SERVER_FAULT_NONE] = "none",
	[SERVER_FAULT_NOT_FOUND] = "command not found",
	[SERVER_FAULT_PORT] = "port taken",
	[SERVER_FAULT_MEMORY] = "out of memory",
	[SERVER_FAULT_FLAG] = "bad flag",
	[SERVER_FAULT_MODEL] = "model not found",
	[SERVER_FAULT_DISK] = "out of disk",
	[SERVER_FAULT_KILLED] = "killed",
	[SERVER_FAULT_CRASH] = "crash",
	[SERVER_FAULT_DEADLINE] = "not ready in time",
	[SERVER_FAULT_CANCELLED] = "cancelled",
};

const char *server_fault_name(enum server_fault fault)
{
	return names[fault];
}

enum server_fault server_fault_of(struct str log, bool has_code, int code,
				  const struct oom_counter *oom, struct str *reason)
{
	static const enum server_fault faults[] = {
		[LAST_SIGN_NONE] = SERVER_FAULT_CRASH,
		[LAST_SIGN_DISK] = SERVER_FAULT_DISK,
		[LAST_SIGN_PORT] = SERVER_FAULT_PORT,
		[LAST_SIGN_MEMORY] = SERVER_FAULT_MEMORY,
		[LAST_SIGN_FLAG] = SERVER_FAULT_FLAG,
		[LAST_SIGN_MODEL] = SERVER_FAULT_MODEL,
		[LAST_SIGN_KILLED] = SERVER_FAULT_KILLED,
	};

	return faults[last_words_sign(log, has_code, code, oom, reason)];
}

void server_explain(const struct server *s, const struct keeper_end *end,
		    struct server_failure *why)
{
	struct buf log = { 0 };
	struct str reason;

	*why = (struct server_failure){ .has_code = end->is_known, .code = end->code };
	last_words_read(s->log_fd, s->log_began, &log);
	why->fault = server_fault_of(buf_str(&log), end->is_known, end->code, &s->oom, &reason);
	if (last_words_is_disk_full(s->log_fd))
		why->fault = SERVER_FAULT_DISK;
	snprintf(why->reason, sizeof(why->reason), "%.*s",
		 (int)(reason.n < sizeof(why->reason) ? reason.n : sizeof(why->reason) - 1),
		 reason.n ? reason.p : "");
	last_words_tail(buf_str(&log), why->tail, sizeof(why->tail));
	buf_release(&log);
}

void server_show_tail(const struct server *s, const struct server_failure *why)
{
	struct buf whose = { 0 };

	buf_printf(&whose, "the server's log%s%s", s->opts.is_log_removed ? "" : " ",
		   s->opts.is_log_removed ? "" : s->opts.log_path);
	last_words_show(why->tail, whose.data, s->hooks.warn, s->hooks.self);
	buf_release(&whose);
}
