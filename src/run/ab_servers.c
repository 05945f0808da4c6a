/* SPDX-License-Identifier: Apache-2.0 */
/* ab_servers.c - see ab_servers.h. */
#include "run/ab_servers.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/redact.h"
#include "base/words.h"
#include "proc/last_words.h"

#define DEATH_STEP_MS 10
#define DEATH_STEPS 50 /* half a second for a process to end that has dropped its connections */

static const char *const side_names[] = { "A", "B" };

/* ---- their words ---- */

static int read_command(struct ab_servers *s, unsigned side, struct err *e)
{
	size_t n;

	if (words_split(str_of(s->opts->cmd[side]), &s->arena, &s->argv[side], &n, e) < 0)
		return -1;
	if (!n)
		return err_set(e, ERR_USAGE, "the command is empty");
	if (server_address(s->argv[side], &s->where[side], e) < 0)
		return -1;
	if (s->where[side].uds[0])
		return err_set(e, ERR_USAGE, "the server would listen on the socket file %s; bench ab "
			       "needs a port", s->where[side].uds);
	redact_learn_words(s->argv[side]);
	return 0;
}

int ab_servers_init(struct ab_servers *s, const struct ab_serve *opts,
		    const struct server_hooks *hooks, struct err *e)
{
	*s = (struct ab_servers){ .opts = opts, .hooks = hooks };
	for (unsigned side = 0; side < 2; side++)
		if (read_command(s, side, e) < 0) {
			e->code = ERR_USAGE;
			return err_wrap(e, "--serve-cmd of server %s", side_names[side]);
		}
	if (s->where[0].port == s->where[1].port)
		return err_set(e, ERR_USAGE, "--serve-cmd: both servers would listen on port %u, and both "
			       "run at once; give one of the commands another --port", s->where[0].port);
	return 0;
}

/* ---- start ---- */

static int choose_log(struct ab_servers *s, unsigned side, struct err *e)
{
	const char *in = getenv("TMPDIR");
	int fd;

	if (s->opts->log_dir) {
		s->log[side] = arena_printf(&s->arena, "%s/%s.log", s->opts->log_dir, side ? "b" : "a");
		return 0;
	}
	s->log[side] = arena_printf(&s->arena, "%s/profllm_server_XXXXXX", in && *in ? in : "/tmp");
	fd = mkstemp(s->log[side]);
	if (fd < 0)
		return err_set(e, ERR_IO, "%s: %s", s->log[side], strerror(errno));
	close(fd);
	s->is_log_ours[side] = true;
	return 0;
}

static int name_side(const struct ab_servers *s, unsigned side, struct err *e)
{
	struct buf room = { 0 };
	struct str cmd = redact(str_of(s->opts->cmd[side]), &room);

	err_wrap(e, "server %s (%.*s)", side_names[side], (int)cmd.n, cmd.p);
	buf_release(&room);
	return -1;
}

static void say(const struct ab_servers *s, void (*hook)(void *self, const char *text), char *text)
{
	if (hook)
		hook(s->hooks->self, text);
}

static int start(struct ab_servers *s, unsigned side, struct err *e)
{
	struct server_opts opts = {
		.argv = s->argv[side], .show_fd = -1,
		.ready_timeout_s = s->opts->ready_timeout_s, .grace_s = s->opts->grace_s,
	};
	struct server_failure why;

	if (choose_log(s, side, e) < 0)
		return -1;
	opts.log_path = s->log[side];
	opts.is_log_removed = s->is_log_ours[side];
	say(s, s->hooks->line, arena_printf(&s->arena, "Starting server %s.", side_names[side]));
	if (server_start(&opts, s->hooks, &s->server[side], &why, e) < 0) {
		s->server[side] = NULL;
		if (e->code == ERR_CANCELLED)
			return -1;
		if (why.fault == SERVER_FAULT_NOT_FOUND || why.fault == SERVER_FAULT_FLAG)
			e->code = ERR_USAGE;
		if (why.fault == SERVER_FAULT_MEMORY && side)
			err_add(e, "; both servers run at once, and on one GPU each needs its share, such as "
				"--gpu-memory-utilization 0.45 in both commands");
		return name_side(s, side, e);
	}
	say(s, s->hooks->line, arena_printf(&s->arena, "Server %s answers at %s after %.3g s.",
					    side_names[side], server_url(s->server[side]),
					    server_startup_s(s->server[side])));
	return 0;
}

int ab_servers_start(struct ab_servers *s, struct err *e)
{
	for (unsigned side = 0; side < 2; side++)
		if (start(s, side, e) < 0)
			return -1;
	return 0;
}

/* ---- while they run ---- */

bool ab_servers_are_alive(struct ab_servers *s)
{
	for (unsigned side = 0; side < 2; side++)
		if (s->server[side] && !server_is_alive(s->server[side]))
			return false;
	return true;
}

int ab_servers_check(struct ab_servers *s, bool is_suspect, struct err *e)
{
	struct server_failure why;
	struct err died = { 0 };

	for (int i = 0; is_suspect && i < DEATH_STEPS && ab_servers_are_alive(s); i++)
		poll(NULL, 0, DEATH_STEP_MS);
	for (unsigned side = 0; side < 2; side++) {
		if (!s->server[side] || server_check(s->server[side], &why, &died) == 0)
			continue;
		*e = died;
		last_words_show(why.tail, side ? "the log of server B" : "the log of server A",
				s->hooks->warn, s->hooks->self);
		return name_side(s, side, e);
	}
	return 0;
}

int ab_servers_stop(struct ab_servers *s, struct err *e)
{
	int rc = 0;

	for (unsigned side = 0; side < 2; side++) {
		struct err left = { 0 };

		if (server_stop(s->server[side], NULL, &left) < 0 && rc == 0) {
			*e = left;
			rc = -1;
		}
		s->server[side] = NULL;
		if (s->is_log_ours[side])
			unlink(s->log[side]);
	}
	arena_release(&s->arena);
	return rc;
}
