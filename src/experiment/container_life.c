/* SPDX-License-Identifier: Apache-2.0 */
/* container_life.c - see container.h: what is asked of docker or podman. */
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "experiment/container.h"
#include "experiment/container_parts.h"
#include "proc/child.h"
#include "proc/roster.h"
#include "proc/tool.h"

#define ASK_TIMEOUT_S 60  /* an answer of the daemon */
#define END_EXTRA_S 30    /* beyond the grace */

static void warn(const struct experiment_hooks *hooks, const char *text)
{
	if (hooks && hooks->warn)
		hooks->warn(hooks->self, text);
}

static void line(const struct experiment_hooks *hooks, const char *text)
{
	if (hooks && hooks->line)
		hooks->line(hooks->self, text);
}

/* The last line that says something. */
static struct str last_line(struct str text)
{
	struct str last = { 0 };

	while (text.n) {
		struct str one = str_trim(str_cut(&text, '\n'));

		if (one.n && !str_starts(one, STR("See '")))
			last = one;
	}
	return last;
}

/* Exit status; out: what it printed, errors likewise. -1: it could not be started or hung. */
static int ask(const char *const *argv, unsigned timeout_s, struct buf *out, struct buf *errors,
	       struct err *e)
{
	buf_reset(out);
	buf_reset(errors);
	return tool_run(argv, (struct str){ 0 }, timeout_s, out, errors, e);
}

static int refused(const char *const *argv, int rc, const struct buf *errors, struct err *e)
{
	struct str why = last_line(buf_str(errors));

	if (rc < 0)
		return -1;
	return err_set(e, ERR_RUN, "%s %s: %.*s (exit status %d)", argv[0], argv[1],
		       (int)(why.n < 600 ? why.n : 600), why.n ? why.p : "", rc);
}

/* ---- those of dead owners ---- */

/* "HOST USER PID START BOOT NAMESPACE", of which nobody lives any more. */
static bool is_owner_dead(struct str label)
{
	struct str host = str_cut(&label, ' '), user = str_cut(&label, ' ');
	struct str pid = str_cut(&label, ' '), start = str_cut(&label, ' ');
	struct str boot, space, here_space;
	struct roster here;
	uint64_t uid, number, began;
	bool is_dead = false;

	label = str_trim(label);
	space = label;
	boot = str_cut(&space, ' ');
	roster_init(&here);
	here_space = str_of(here.boot);
	if (str_is(host, here.host) && str_to_u64(user, &uid) && uid == geteuid() &&
	    str_to_u64(pid, &number) && number > 1 && number <= PROC_TREE_MAX &&
	    str_to_u64(start, &began)) {
		struct str here_boot = str_cut(&here_space, ' ');

		/* After a new start of the machine nobody lives; other numbers tell nothing. */
		if (!str_eq(boot, here_boot))
			is_dead = true;
		else if (str_eq(space, here_space))
			is_dead = !tree_is_running((pid_t)number, began);
	}
	roster_release(&here);
	return is_dead;
}

static void end_one(const char *runtime, struct str id, struct str name,
		    const struct experiment_hooks *hooks, int *ended)
{
	char one[128];
	const char *argv[] = { runtime, "rm", "-f", one, NULL };
	struct buf out = { 0 }, errors = { 0 }, text = { 0 };
	struct err e = { 0 };
	int rc;

	snprintf(one, sizeof(one), "%.*s", (int)id.n, id.p);
	rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, &e);
	if (rc == 0) {
		++*ended;
		buf_printf(&text, "ended container %.*s that an earlier run left when it was killed",
			   (int)name.n, name.p);
	} else {
		refused(argv, rc, &errors, &e);
		buf_printf(&text, "container %.*s, which an earlier run left, cannot be ended: %s",
			   (int)name.n, name.p, e.text);
	}
	warn(hooks, text.data);
	buf_release(&out);
	buf_release(&errors);
	buf_release(&text);
}

/* One container at a time: one that ends meanwhile must not hide the others. */
static void look_at(const char *runtime, struct str id, const struct experiment_hooks *hooks,
		    int *ended)
{
	char one[128];
	const char *argv[] = { runtime, "inspect", "--format",
		"{{.Name}} {{index .Config.Labels \"" CONTAINER_OWNER "\"}}", one, NULL };
	struct buf out = { 0 }, errors = { 0 };
	struct str label, name;

	snprintf(one, sizeof(one), "%.*s", (int)id.n, id.p);
	if (ask(argv, ASK_TIMEOUT_S, &out, &errors, NULL) == 0) {
		label = str_trim(buf_str(&out));
		name = str_cut(&label, ' ');
		if (name.n && *name.p == '/')
			name = (struct str){ name.p + 1, name.n - 1 };
		if (is_owner_dead(label))
			end_one(runtime, id, name, hooks, ended);
	}
	buf_release(&out);
	buf_release(&errors);
}

/* Ends this user's containers whose owner is dead; says so. How many. -1: e says why. */
static int clean(const char *runtime, const struct experiment_hooks *hooks, struct err *e)
{
	const char *argv[] = { runtime, "ps", "-aq", "--filter", "label=" CONTAINER_OWNER, NULL };
	struct buf out = { 0 }, errors = { 0 };
	int ended = 0, rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, e);
	struct str rest = buf_str(&out);

	if (rc)
		ended = refused(argv, rc, &errors, e);
	while (rc == 0 && rest.n) {
		struct str id = str_trim(str_cut(&rest, '\n'));

		if (id.n)
			look_at(runtime, id, hooks, &ended);
	}
	buf_release(&out);
	buf_release(&errors);
	return ended;
}

/* ---- begin ---- */

/* 1: filled; 0: the image is not there. */
static int digest_read(struct container *c, struct arena *a, struct err *e)
{
	const char *argv[] = { c->runtime, "image", "inspect", "--format",
		"{{if .RepoDigests}}{{index .RepoDigests 0}}{{else}}{{.Id}}{{end}}", c->image, NULL };
	struct buf out = { 0 }, errors = { 0 };
	int rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, e);
	struct str line_1 = str_trim(buf_str(&out));

	if (rc == 0 && line_1.n)
		c->digest = arena_text(a, line_1);
	buf_release(&out);
	buf_release(&errors);
	return rc < 0 ? -1 : rc == 0;
}

/* Minutes, of large images; Ctrl-C ends it. */
static int pull(const struct container *c, const struct experiment_hooks *hooks, struct err *e)
{
	const char *argv[] = { c->runtime, "pull", c->image, NULL };
	struct buf text = { 0 };
	char bytes[4096];
	int fd = file_unnamed(NULL), rc;
	ssize_t n;

	buf_printf(&text, "Pulling image %s", c->image);
	line(hooks, text.data);
	buf_reset(&text);
	rc = child_run(&(struct child_opts){ .argv = (char *const *)(uintptr_t)argv, .out_fd = fd,
					     .err_fd = fd, .grace_s = 5,
					     .cancel = hooks ? hooks->cancel : NULL }, e);
	if (rc > 0 && fd >= 0) {
		for (off_t at = 0; (n = pread(fd, bytes, sizeof(bytes), at)) > 0; at += n)
			buf_add(&text, bytes, (size_t)n);
		refused(argv, rc, &text, e);
		err_wrap(e, "server.container.image %s", c->image);
	}
	if (fd >= 0)
		close(fd);
	buf_release(&text);
	return rc == 0 ? 0 : -1;
}

int container_begin(struct container *c, struct arena *a, const struct experiment_hooks *hooks,
		    struct err *e)
{
	int rc;

	if (!tool_exists(c->runtime))
		return err_set(e, ERR_USAGE, "server.container.runtime: there is no %s in PATH",
			       c->runtime);
	if (clean(c->runtime, hooks, e) < 0)
		return -1;
	rc = digest_read(c, a, e);
	if (rc == 0)
		rc = pull(c, hooks, e) < 0 ? -1 : digest_read(c, a, e);
	return rc < 0 ? -1 : 0;
}

/* ---- end ---- */

static bool is_there(const struct container *c, struct err *e, bool *is_known)
{
	char filter[256];
	const char *argv[] = { c->runtime, "ps", "-aq", "--filter", filter, NULL };
	struct buf out = { 0 }, errors = { 0 };
	bool is;

	snprintf(filter, sizeof(filter), "name=^%s$", c->name);
	int rc = ask(argv, ASK_TIMEOUT_S, &out, &errors, e);

	if (rc)
		refused(argv, rc, &errors, e);
	*is_known = rc == 0;
	is = rc == 0 && str_trim(buf_str(&out)).n > 0;
	buf_release(&out);
	buf_release(&errors);
	return is;
}

int container_end(const struct container *c, double grace_s, struct err *e)
{
	char seconds[32];
	const char *stop[] = { c->runtime, "stop", "-t", seconds, c->name, NULL };
	const char *rm[] = { c->runtime, "rm", "-f", c->name, NULL };
	struct buf out = { 0 }, errors = { 0 };
	struct err why = { 0 };
	bool is_known, is = is_there(c, e, &is_known);
	int rc;

	if (!is_known)
		return -1;
	if (!is)
		return 0;
	snprintf(seconds, sizeof(seconds), "%.0f", grace_s);
	rc = ask(stop, (unsigned)grace_s + END_EXTRA_S, &out, &errors, &why);
	if (rc)
		refused(stop, rc, &errors, &why);
	is = is_there(c, e, &is_known);
	if (is_known && is) {
		rc = ask(rm, ASK_TIMEOUT_S, &out, &errors, &why);
		if (rc)
			refused(rm, rc, &errors, &why);
		is = is_there(c, e, &is_known);
	}
	buf_release(&out);
	buf_release(&errors);
	if (!is_known)
		return -1;
	return is ? err_set(e, ERR_RUN, "container %s cannot be ended: %s", c->name, why.text) : 0;
}
