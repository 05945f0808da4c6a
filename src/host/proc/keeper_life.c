/* SPDX-License-Identifier: Apache-2.0 */
/* keeper_life.c - see keeper.h: the keeper's side. The process has no threads and no other task. */
#include "host/proc/keeper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "host/proc/keeper_internal.h"
#include "host/proc/roster.h"
#include "host/proc/tool.h"

#define MS 1000000ll
#define KILL_WAIT_NS 20000000000 /* a process stuck in the kernel may never go */
#define LOOK_MIN_NS (20 * MS)    /* between two looks at the tree for the roster: servers start */
#define LOOK_MAX_NS (5000 * MS)  /* most of theirs early, and later nothing should disturb them */
#define OUTSIDE_S 60             /* for when_orphaned */
#define FOLLOW_NS (100 * MS)
#define FOLLOW_BYTES 4096        /* PIPE_BUF: what a writable pipe always accepts */
#define ENDING_LOOK_NS (50 * MS)
#define KILLING_LOOK_NS (10 * MS)

struct life {
	struct buf text;         /* of the orders; the rest borrows from it */
	const char *roster_path;
	char **argv, **when_orphaned; /* each ends NULL; the latter may be empty */
	int64_t grace_ns;
	bool leaves_rest, follows, passes;

	int signals;             /* signalfd */
	pid_t program;           /* 0 once it has ended */
	bool has_children, is_ending, is_spread;
	bool is_owner_there;     /* the control pipe is open */
	int64_t began_ns, kill_ns; /* when ending began; KILL from kill_ns on */
	int64_t look_ns, look_every_ns;
	int64_t followed;        /* bytes of the log that were copied */
	struct tree tree;
	struct roster roster;
};

static void say(enum keeper_said said, int value)
{
	static bool is_closed;
	struct keeper_report r = { .said = (int32_t)said, .value = value };
	ssize_t n;

	if (is_closed)
		return;
	do
		n = write(KEEPER_REPORT, &r, sizeof(r));
	while (n < 0 && errno == EINTR);
	/* The owner may be gone; if it is not, it must not wait for this report. */
	if (n != sizeof(r)) {
		close(KEEPER_REPORT);
		is_closed = true;
	}
}

/* ---- orders ---- */

static bool read_number(struct str s, int64_t *out)
{
	return str_to_i64(s, out) && *out >= 0;
}

/* At most n of them, borrowed; the list ends NULL. */
static char **take_words(struct str *rest, size_t n)
{
	char **words = mem_array((n < rest->n ? n : rest->n) + 1, sizeof(*words));

	for (size_t i = 0; i < n && rest->n; i++)
		words[i] = (char *)(uintptr_t)str_cut(rest, '\0').p;
	return words;
}

static int take_orders(struct life *l)
{
	struct str rest, text[ORDER_TEXTS];
	int64_t grace_ms, owner, start, n_orphaned;
	struct stat given;
	ssize_t n;

	/* A terminal: the user has typed the word. */
	if (fstat(KEEPER_ORDERS, &given) < 0 || !S_ISREG(given.st_mode))
		return -1;
	do {
		if (buf_reserve(&l->text, READ_BYTES) < 0)
			return -1;
		n = read(KEEPER_ORDERS, l->text.data + l->text.len, READ_BYTES);
		l->text.len += n > 0 ? (size_t)n : 0;
		l->text.data[l->text.len] = 0;
	} while (n > 0);
	rest = buf_str(&l->text);
	for (int i = 0; i < ORDER_TEXTS; i++)
		text[i] = str_cut(&rest, '\0');
	if (n < 0 || rest.n == 0 || text[ORDER_MARK].n != ROSTER_MARK_BYTES - 1 ||
	    !read_number(text[ORDER_GRACE_MS], &grace_ms) ||
	    !read_number(text[ORDER_OWNER], &owner) ||
	    !read_number(text[ORDER_OWNER_START], &start) ||
	    !read_number(text[ORDER_ORPHANED], &n_orphaned))
		return -1;
	l->when_orphaned = take_words(&rest, (size_t)n_orphaned);
	l->argv = take_words(&rest, rest.n);
	if (!l->argv[0])
		return -1;
	l->roster_path = text[ORDER_ROSTER].p;
	l->grace_ns = grace_ms * MS;
	l->leaves_rest = str_is(text[ORDER_LEAVES_REST], "1");
	l->follows = str_is(text[ORDER_FOLLOWS], "1");
	l->passes = str_is(text[ORDER_PASSES], "1");
	roster_init(&l->roster);
	memcpy(l->roster.mark, text[ORDER_MARK].p, ROSTER_MARK_BYTES - 1);
	l->roster.owner = (struct roster_one){ (pid_t)owner, (uint64_t)start };
	l->roster.grace_s = (double)l->grace_ns / 1e9;
	return 0;
}

/* Signals are read, never handled: a keeper must not end of one. */
static int prepare_life(struct life *l)
{
	struct tree_process me = { 0 };
	int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct stat log;
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	sigemptyset(&all);
	sigaddset(&all, SIGCHLD);
	sigaddset(&all, SIGTERM);
	sigaddset(&all, SIGHUP);
	sigaddset(&all, SIGINT);
	l->signals = signalfd(-1, &all, SFD_CLOEXEC | SFD_NONBLOCK);
	if (empty < 0 || dup2(empty, KEEPER_ORDERS) < 0 || l->signals < 0 ||
	    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0)
		return -1;
	close(empty);
	prctl(PR_SET_NAME, KEEPER_NAME, 0, 0, 0);
	for (int fd = KEEPER_CONTROL; fd < KEEPER_FDS; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (l->follows && fstat(KEEPER_OUT, &log) == 0)
		l->followed = log.st_size;
	tree_process_read(getpid(), &me);
	l->roster.keeper = (struct roster_one){ me.pid, me.start };
	return 0;
}

/* ---- the program ---- */

/* Our own file by its path, so that the process has its name; a replaced file has none. */
static void become_ourselves(char *const *argv)
{
	struct buf path = { 0 };

	if (program_path(&path, NULL) == 0)
		execv(path.data, argv);
	if (program_exec(&path, NULL) == 0)
		execv(path.data, argv);
}

static void become_program(const struct life *l, pid_t keeper, int failed)
{
	sigset_t none;

	sigemptyset(&none);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	/* The keeper may have been killed before that took effect. */
	if (getppid() == keeper && (!l->passes || dup2(KEEPER_PASS, KEEPER_PASSED_FD) >= 0)) {
		pthread_sigmask(SIG_SETMASK, &none, NULL);
		if (strcmp(l->argv[0], PROGRAM_WORD) == 0)
			become_ourselves(l->argv);
		execvp(l->argv[0], l->argv);
	}
	if (write(failed, &errno, sizeof(errno)) < 0)
		_exit(126);
	_exit(127);
}

/* 0, or the errno of what could not be done. */
static int start_program(struct life *l)
{
	pid_t keeper = getpid(), pid;
	int failed[2], error = 0;
	ssize_t n;

	if (pipe2(failed, O_CLOEXEC) < 0)
		return errno;
	pid = fork();
	if (pid == 0)
		become_program(l, keeper, failed[1]);
	if (pid < 0)
		error = errno;
	close(failed[1]);
	/* Closed by exec when all is well. */
	if (pid > 0) {
		do
			n = read(failed[0], &error, sizeof(error));
		while (n < 0 && errno == EINTR);
		error = n == (ssize_t)sizeof(error) ? error : 0;
	}
	close(failed[0]);
	/* Its other end is to see when the program has ended, not when we have. */
	close(KEEPER_PASS);
	if (pid > 0 && error)
		waitpid(pid, NULL, 0);
	l->program = pid;
	return error;
}

/* Everything that ended, the program among it. */
static void reap(struct life *l)
{
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != l->program)
			continue;
		l->program = 0;
		say(SAID_ENDED, WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status));
	}
	l->has_children = pid == 0;
}

/* ---- the tree ---- */

static size_t look(struct life *l)
{
	return tree_read(&l->tree) == 0 ? tree_mark(&l->tree, getpid()) : 0;
}

static void signal_tree(struct life *l, int number, pid_t but)
{
	look(l);
	for (size_t i = 0; i < l->tree.n; i++) {
		const struct tree_process *p = &l->tree.process[i];

		if (p->is_in_tree && !p->is_zombie && p->pid != but)
			kill(p->pid, number);
	}
}

/* The command as it was started, even if the program renames itself later. */
static void name_command(struct life *l)
{
	char *out = l->roster.command;
	size_t at = 0, room = sizeof(l->roster.command);
	struct arena arena = { 0 };
	char **shown = redact_words(l->argv, &arena);

	for (size_t i = 0; shown[i] && at < room - 1; i++)
		at += (size_t)snprintf(out + at, room - at, "%s%s", i ? " " : "", shown[i]);
	arena_release(&arena);
	for (; *out; out++)
		if ((unsigned char)*out < ' ')
			*out = ' ';
}

static void write_roster(const struct life *l)
{
	struct buf text = { 0 };

	roster_print(&l->roster, &text);
	if (text.len <= ROSTER_BYTES_MAX)
		file_write_atomic_mode(l->roster_path, buf_str(&text), 0600, NULL);
	buf_release(&text);
}

/* Writes the roster again if the tree has changed. */
static void look_for_roster(struct life *l)
{
	struct roster *r = &l->roster;
	size_t members = look(l), n = 0;
	bool is_same = members == r->n;

	r->member = mem_grow(r->member, members + 1, sizeof(*r->member));
	for (size_t i = 0; i < l->tree.n; i++) {
		const struct tree_process *p = &l->tree.process[i];
		struct roster_one one = { p->pid, p->start };

		if (!p->is_in_tree)
			continue;
		is_same = is_same && r->member[n].pid == one.pid && r->member[n].start == one.start;
		r->member[n++] = one;
	}
	r->n = n;
	if (!is_same)
		write_roster(l);
}

static void begin_ending(struct life *l, int64_t grace_ns)
{
	int64_t now_ns = clock_mono_ns();

	if (!l->is_ending) {
		l->is_ending = true;
		l->began_ns = now_ns;
		l->kill_ns = now_ns + grace_ns;
		if (l->program)
			kill(l->program, SIGTERM);
	}
	if (now_ns + grace_ns < l->kill_ns)
		l->kill_ns = now_ns + grace_ns;
}

/* One step of ending; false: given up, something stays. */
static bool end_more(struct life *l)
{
	int64_t now_ns = clock_mono_ns();

	if (now_ns >= l->kill_ns) {
		signal_tree(l, SIGKILL, 0);
		return now_ns < l->kill_ns + KILL_WAIT_NS;
	}
	/* The rest of the tree gets TERM later; the program is not sent it twice. */
	if (!l->is_spread && (!l->program || now_ns >= l->began_ns + l->grace_ns / 4)) {
		l->is_spread = true;
		signal_tree(l, SIGTERM, l->program);
	}
	return true;
}

/* ---- its life ---- */

/* Length up to the last line end: half a secret is not recognised. n if no more will come. */
static size_t whole_lines(const struct life *l, const char *bytes, size_t n)
{
	size_t whole = n;

	while (whole && bytes[whole - 1] != '\n' && bytes[whole - 1] != '\r')
		whole--;
	return whole || (l->program && n < FOLLOW_BYTES) ? whole : n;
}

/* Copies bytes with their secrets hidden. Returns how many were taken; 0: none now. */
static size_t copy(struct life *l, const char *bytes, size_t n)
{
	struct buf room = { 0 };
	struct str shown = redact((struct str){ bytes, n }, &room);
	ssize_t written = 0;

	if (shown.p == bytes)
		written = write(KEEPER_FOLLOW, bytes, n);
	else if (file_write_all(KEEPER_FOLLOW, shown) == 0)
		written = (ssize_t)n;
	else
		written = -1;
	if (written < 0)
		l->follows = errno == EINTR || errno == EAGAIN;
	buf_release(&room);
	return written > 0 ? (size_t)written : 0;
}

/* Copies what was added to the log; never waits for a slow reader. */
static void follow(struct life *l)
{
	struct pollfd p = { .fd = KEEPER_FOLLOW, .events = POLLOUT };
	char bytes[FOLLOW_BYTES];
	size_t taken;
	ssize_t n;

	while (l->follows && poll(&p, 1, 0) > 0 && (p.revents & POLLOUT)) {
		n = pread(KEEPER_OUT, bytes, sizeof(bytes), l->followed);
		taken = n > 0 ? whole_lines(l, bytes, (size_t)n) : 0;
		taken = taken ? copy(l, bytes, taken) : 0;
		if (!taken)
			break;
		l->followed += (int64_t)taken;
	}
}

static void take_signals(struct life *l)
{
	struct signalfd_siginfo s;

	while (read(l->signals, &s, sizeof(s)) == (ssize_t)sizeof(s)) {
		if (s.ssi_signo == SIGINT)
			begin_ending(l, 0);
		else if (s.ssi_signo != SIGCHLD)
			begin_ending(l, l->grace_ns);
	}
}

static int wait_ms(const struct life *l)
{
	int64_t now_ns = clock_mono_ns(), until_ns = INT64_MAX;

	if (l->is_ending)
		until_ns = now_ns + (now_ns >= l->kill_ns ? KILLING_LOOK_NS : ENDING_LOOK_NS);
	else if (l->roster_path[0])
		until_ns = l->look_ns;
	if (l->follows && until_ns > now_ns + FOLLOW_NS)
		until_ns = now_ns + FOLLOW_NS;
	if (l->is_ending && now_ns < l->kill_ns && until_ns > l->kill_ns)
		until_ns = l->kill_ns;
	if (until_ns == INT64_MAX)
		return -1;
	return until_ns > now_ns ? (int)((until_ns - now_ns) / MS) + 1 : 0;
}

/* Returns how many processes are left. */
static int live(struct life *l)
{
	l->is_owner_there = true;
	l->look_ns = clock_mono_ns();
	l->look_every_ns = LOOK_MIN_NS;
	for (;;) {
		struct pollfd p[] = {
			{ .fd = l->signals, .events = POLLIN },
			{ .fd = l->is_owner_there ? KEEPER_CONTROL : -1, .events = POLLIN },
		};

		if (!l->is_ending && l->roster_path[0] && clock_mono_ns() >= l->look_ns) {
			look_for_roster(l);
			l->look_ns = clock_mono_ns() + l->look_every_ns;
			if ((l->look_every_ns *= 2) > LOOK_MAX_NS)
				l->look_every_ns = LOOK_MAX_NS;
		}
		poll(p, 2, wait_ms(l));
		take_signals(l);
		reap(l);
		follow(l);
		if (!l->program && l->leaves_rest && !l->is_ending)
			return 0;
		if (l->is_owner_there && p[1].revents) {
			l->is_owner_there = false;
			begin_ending(l, l->grace_ns);
		}
		if (!l->is_ending)
			continue;
		if (!l->has_children)
			return 0;
		if (!end_more(l))
			return (int)look(l);
	}
}

/* Cleans up outside the tree. The owner is gone, so the result is not reported. */
static void clean_outside(const struct life *l)
{
	const struct roster_one *owner = &l->roster.owner;
	struct buf out = { 0 };

	if (!l->when_orphaned[0] || tree_is_running(owner->pid, owner->start))
		return;
	tool_run((const char *const *)(uintptr_t)l->when_orphaned, (struct str){ 0 }, OUTSIDE_S,
		 &out, NULL, NULL);
	buf_release(&out);
}

int keeper_main(void)
{
	struct life l = { 0 };
	int error = EINVAL, left = 0;

	if (take_orders(&l) == 0)
		error = prepare_life(&l) < 0 ? errno : 0;
	if (!error) {
		/* First of all, so that no secret is ever shown unredacted. */
		redact_learn_words(l.argv);
		name_command(&l);
		if (l.roster_path[0])
			write_roster(&l);
		error = start_program(&l);
	}
	if (error) {
		if (l.roster_path && l.roster_path[0])
			unlink(l.roster_path);
		say(SAID_FAILED, error);
	} else {
		say(SAID_STARTED, l.program);
		left = live(&l);
		follow(&l);
		clean_outside(&l);
		if (l.roster_path[0] && !left)
			unlink(l.roster_path);
		say(SAID_GONE, left);
	}
	tree_release(&l.tree);
	roster_release(&l.roster);
	buf_release(&l.text);
	free(l.argv);
	free(l.when_orphaned);
	return error || left;
}
