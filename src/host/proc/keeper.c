/* SPDX-License-Identifier: Apache-2.0 */
/* keeper.c - see keeper.h: our side. */
#include "host/proc/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "host/proc/keeper_internal.h"
#include "host/proc/roster.h"
#include "host/proc/tool.h"

#define FD_ABOVE 16        /* copies of descriptors go where no dup2 below can hit them */
#define HURRY_LOOK_MS 50
#define GRACE_MS_MAX 3600000

struct keeper {
	pid_t root;              /* the keeper */
	int control, report;     /* ours; control is -1 once a stop was requested */
	pthread_mutex_t lock;    /* guards the members below */
	bool has_ended, is_gone, is_lost;
	int left;
	struct keeper_end end;
	char *roster_path;       /* "" for none */
	struct roster roster;    /* mark, owner and keeper; the members are only in the file */
};

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- starting ---- */

static int write_orders(const struct keeper_opts *o, const struct keeper *k, struct err *e)
{
	double grace_ms = o->grace_s * 1000;
	char *const *orphaned = o->when_orphaned;
	struct buf text = { 0 };
	size_t n_orphaned = 0;
	int fd;

	if (!(grace_ms >= 0))
		grace_ms = 0;
	while (orphaned && orphaned[n_orphaned])
		n_orphaned++;
	buf_printf(&text, "%s%c%s%c%d%c%d%c%d%c%d%c%d%c%llu%c%zu%c", k->roster.mark, 0, k->roster_path, 0,
		   (int)(grace_ms < GRACE_MS_MAX ? grace_ms : GRACE_MS_MAX), 0, o->leaves_rest, 0,
		   o->follow_fd >= 0, 0, o->pass_fd > 0, 0, (int)k->roster.owner.pid, 0,
		   (unsigned long long)k->roster.owner.start, 0, n_orphaned, 0);
	for (size_t i = 0; i < n_orphaned; i++)
		buf_add(&text, orphaned[i], strlen(orphaned[i]) + 1);
	for (size_t i = 0; o->argv[i]; i++)
		buf_add(&text, o->argv[i], strlen(o->argv[i]) + 1);
	fd = memfd_create("orders", MFD_CLOEXEC);
	if (fd < 0 || text.is_over || file_write_all(fd, buf_str(&text)) < 0 ||
	    lseek(fd, 0, SEEK_SET) < 0) {
		err_set(e, ERR_RUN, "cannot start %s: %s", o->argv[0],
			text.is_over ? "too many arguments" : strerror(errno));
		close_fd(&fd);
	}
	buf_release(&text);
	return fd;
}

/* The environment with the tree's mark in it. The caller frees the list and its last line. */
static char **marked(char *const *envp, const char *mark)
{
	struct buf line = { 0 };
	size_t n = 0, kept = 0;
	char **all;

	while (envp[n])
		n++;
	all = mem_array(n + 2, sizeof(*all));
	for (size_t i = 0; i < n; i++)
		if (strncmp(envp[i], KEEPER_MARK "=", sizeof(KEEPER_MARK)) != 0)
			all[kept++] = envp[i];
	buf_printf(&line, KEEPER_MARK "=%s", mark);
	all[kept] = buf_take(&line);
	return all;
}

static void free_marked(char **all)
{
	size_t n = 0;

	while (all[n + 1])
		n++;
	free(all[n]);
	free(all);
}

/* It has none of the caller's other descriptors. */
static int spawn(const char *program, const int fd[KEEPER_FDS], char *const *envp, pid_t *pid)
{
	char *argv[] = { (char[]){ KEEPER_NAME }, (char[]){ KEEPER_WORD }, NULL };
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	int rc;

	posix_spawn_file_actions_init(&files);
	spawn_attributes(&how, POSIX_SPAWN_SETSID);
	for (int i = 0; i < KEEPER_FDS; i++)
		posix_spawn_file_actions_adddup2(&files, fd[i], i);
	posix_spawn_file_actions_addclosefrom_np(&files, KEEPER_FDS);
	rc = posix_spawn(pid, program, &files, &how, argv, envp);
	posix_spawnattr_destroy(&how);
	posix_spawn_file_actions_destroy(&files);
	return rc;
}

/* Opens the pipes and starts the keeper with them and with the program's descriptors. */
static int start_keeper(const struct keeper_opts *o, struct keeper *k, struct err *e)
{
	int control[2] = { -1, -1 }, report[2] = { -1, -1 }, fd[KEEPER_FDS], rc = -1, empty;
	int orders = write_orders(o, k, e), given[KEEPER_FDS];
	char **envp = marked(o->envp ? o->envp : environ, k->roster.mark);
	struct buf program = { 0 };

	for (int i = 0; i < KEEPER_FDS; i++)
		fd[i] = -1;
	empty = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (orders < 0)
		goto done;
	/* A main() that does not know KEEPER_WORD would start itself again and again. */
	if (strcmp(program_invocation_name, KEEPER_NAME) == 0) {
		err_set(e, ERR_RUN, "cannot start %s: this process is a keeper", o->argv[0]);
		goto done;
	}
	if (empty < 0 || pipe2(control, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0 ||
	    fcntl(report[0], F_SETFL, O_NONBLOCK) < 0) {
		err_set(e, ERR_RUN, "cannot start %s: %s", o->argv[0], strerror(errno));
		goto done;
	}
	given[KEEPER_ORDERS] = orders;
	given[KEEPER_OUT] = o->out_fd >= 0 ? o->out_fd : empty;
	given[KEEPER_ERR] = o->err_fd >= 0 ? o->err_fd : empty;
	given[KEEPER_CONTROL] = control[0];
	given[KEEPER_REPORT] = report[1];
	given[KEEPER_FOLLOW] = o->follow_fd >= 0 ? o->follow_fd : empty;
	given[KEEPER_PASS] = o->pass_fd > 0 ? o->pass_fd : empty;
	for (int i = 0; i < KEEPER_FDS; i++) {
		fd[i] = fcntl(given[i], F_DUPFD_CLOEXEC, FD_ABOVE);
		if (fd[i] < 0) {
			err_set(e, ERR_RUN, "cannot start %s: %s", o->argv[0], strerror(errno));
			goto done;
		}
	}
	if (o->program)
		buf_add_text(&program, o->program);
	else if (program_exec(&program, e) < 0)
		goto done;
	errno = spawn(program.data, fd, envp, &k->root);
	if (errno) {
		err_set(e, ERR_RUN, "cannot start the keeper of %s: %s", o->argv[0], strerror(errno));
		goto done;
	}
	k->control = control[1];
	k->report = report[0];
	control[1] = report[0] = -1;
	rc = 0;
done:
	for (int i = 0; i < KEEPER_FDS; i++)
		close_fd(&fd[i]);
	for (int i = 0; i < 2; i++) {
		close_fd(&control[i]);
		close_fd(&report[i]);
	}
	close_fd(&orders);
	close_fd(&empty);
	free_marked(envp);
	buf_release(&program);
	return rc;
}

static void await_end_of(pid_t pid)
{
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
}

static void keeper_free(struct keeper *k)
{
	close_fd(&k->control);
	close_fd(&k->report);
	pthread_mutex_destroy(&k->lock);
	roster_release(&k->roster);
	free(k->roster_path);
	free(k);
}

/* Waits for one report. false: the keeper is gone, or nothing came in wait_ms (-1: any time). */
static bool read_report(const struct keeper *k, int wait_ms, struct keeper_report *r)
{
	struct pollfd p = { .fd = k->report, .events = POLLIN };
	ssize_t n;
	int rc;

	do
		rc = poll(&p, 1, wait_ms);
	while (rc < 0 && errno == EINTR && wait_ms < 0);
	if (rc <= 0)
		return false;
	do
		n = read(k->report, r, sizeof(*r));
	while (n < 0 && errno == EINTR);
	return n == (ssize_t)sizeof(*r);
}

static void describe(struct keeper *k)
{
	struct tree_process me = { 0 };
	struct buf folder = { 0 };

	roster_init(&k->roster);
	tree_process_read(getpid(), &me);
	k->roster.owner = (struct roster_one){ getpid(), me.start };
	roster_folder(&folder);
	if (folder.len && file_mkdirs_mode(folder.data, 0700, NULL) == 0)
		k->roster_path = file_join(folder.data, k->roster.mark);
	else
		k->roster_path = mem_text("");
	buf_release(&folder);
}

int keeper_start(const struct keeper_opts *o, struct keeper **out, int *error, struct err *e)
{
	struct keeper *k = mem_alloc(sizeof(*k));
	struct keeper_report r = { .said = SAID_GONE };
	struct tree_process root = { 0 };

	if (error)
		*error = 0;
	k->control = k->report = -1;
	pthread_mutex_init(&k->lock, NULL);
	describe(k);
	if (start_keeper(o, k, e) < 0) {
		keeper_free(k);
		return -1;
	}
	if (read_report(k, -1, &r) && r.said == SAID_STARTED) {
		tree_process_read(k->root, &root);
		k->roster.keeper = (struct roster_one){ k->root, root.start };
		*out = k;
		return 0;
	}
	close_fd(&k->control);
	await_end_of(k->root);
	keeper_free(k);
	if (r.said != SAID_FAILED)
		return err_set(e, ERR_RUN, "cannot start %s: its keeper ended at once", o->argv[0]);
	if (error)
		*error = r.value;
	return err_set(e, ERR_RUN, "cannot start %s: %s", o->argv[0], strerror(r.value));
}

/* ---- while it runs ---- */

pid_t keeper_root(const struct keeper *k)
{
	return k->root;
}

/* Takes the reports received so far. Called with the lock. */
static void take_reports(struct keeper *k)
{
	struct keeper_report r;
	ssize_t n;

	while ((n = read(k->report, &r, sizeof(r))) == (ssize_t)sizeof(r)) {
		if (r.said == SAID_ENDED) {
			k->has_ended = true;
			k->end = (struct keeper_end){ true, r.value };
		} else if (r.said == SAID_GONE) {
			k->is_gone = true;
			k->left = r.value;
		}
	}
	if (n == 0 && !k->is_gone) {
		k->is_lost = true;
		k->has_ended = true;
	}
}

bool keeper_has_ended(struct keeper *k, int wait_ms, struct keeper_end *end)
{
	struct pollfd p = { .fd = k->report, .events = POLLIN };
	bool has_ended;

	pthread_mutex_lock(&k->lock);
	take_reports(k);
	has_ended = k->has_ended;
	pthread_mutex_unlock(&k->lock);
	if (!has_ended && wait_ms > 0 && poll(&p, 1, wait_ms) > 0) {
		pthread_mutex_lock(&k->lock);
		take_reports(k);
		has_ended = k->has_ended;
		pthread_mutex_unlock(&k->lock);
	}
	if (has_ended && end)
		*end = k->end;
	return has_ended;
}

/* ---- stopping ---- */

/* The keeper was killed: end the members listed in its file, and all processes with its mark. */
static void end_without_keeper(struct keeper *k)
{
	struct roster r = { 0 };
	struct buf text = { 0 };
	unsigned left;

	if (k->roster_path[0] &&
	    file_read(k->roster_path, ROSTER_BYTES_MAX, &text, NULL) == 0 &&
	    roster_parse(buf_str(&text), &r) == 0 && strcmp(r.mark, k->roster.mark) == 0)
		roster_end(&r, &left);
	else
		roster_end(&k->roster, &left);
	k->left = (int)left;
	if (k->roster_path[0] && !left)
		unlink(k->roster_path);
	roster_release(&r);
	buf_release(&text);
}

int keeper_stop(struct keeper *k, const atomic_bool *hurry, struct err *e)
{
	struct pollfd p = { .fd = k->report, .events = POLLIN };
	bool is_hurried = false, is_over;
	int left;

	close_fd(&k->control);
	for (;;) {
		pthread_mutex_lock(&k->lock);
		take_reports(k);
		is_over = k->is_gone || k->is_lost;
		pthread_mutex_unlock(&k->lock);
		if (is_over)
			break;
		/* It has not been waited for, so the number is still its. */
		if (hurry && atomic_load(hurry) && !is_hurried) {
			kill(k->root, SIGINT);
			is_hurried = true;
		}
		poll(&p, 1, hurry ? HURRY_LOOK_MS : -1);
	}
	await_end_of(k->root);
	if (k->is_lost)
		end_without_keeper(k);
	left = k->left;
	keeper_free(k);
	if (left)
		return err_set(e, ERR_RUN, "%d processes could not be ended", left);
	return 0;
}

/* ---- child_run ---- */

#define LOOK_MS 50 /* between two looks at cancel */

int child_run(const struct child_opts *o, struct err *e)
{
	const struct keeper_opts how = {
		.argv = o->argv, .envp = o->envp, .out_fd = o->out_fd, .err_fd = o->err_fd,
		.follow_fd = -1, .grace_s = o->grace_s, .leaves_rest = true,
	};
	struct keeper_end end = { 0 };
	struct keeper *k;

	if (keeper_start(&how, &k, NULL, e) < 0)
		return -1;
	while (!keeper_has_ended(k, LOOK_MS, &end)) {
		if (!o->cancel || !atomic_load(o->cancel))
			continue;
		keeper_stop(k, NULL, NULL);
		return err_set(e, ERR_CANCELLED, "%s was stopped", o->argv[0]);
	}
	if (keeper_stop(k, NULL, e) < 0)
		return -1;
	if (!end.is_known)
		return err_set(e, ERR_RUN, "%s was killed together with its keeper", o->argv[0]);
	return end.code < 0 ? 128 - end.code : end.code;
}
