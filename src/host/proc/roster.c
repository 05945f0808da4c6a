/* SPDX-License-Identifier: Apache-2.0 */
/* roster.c - see roster.h. */
#include "host/proc/roster.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "host/proc/keeper.h"

#define FIRST_LINE "profllm roster 1"
#define END_WAIT_NS 5000000000    /* for processes to go after KILL */
#define KEEPER_WAIT_NS 10000000000 /* time that a keeper may need beyond its grace */
#define PAUSE_NS 10000000

static void pause_a_moment(void)
{
	nanosleep(&(struct timespec){ 0, PAUSE_NS }, NULL);
}

void roster_release(struct roster *r)
{
	free(r->member);
	*r = (struct roster){ 0 };
}

void roster_init(struct roster *r)
{
	struct utsname name;
	struct buf boot = { 0 };
	unsigned char random[(ROSTER_MARK_BYTES - 1) / 2] = { 0 };
	char space[64];
	ssize_t n;

	*r = (struct roster){ 0 };
	/* A short answer cannot be: up to 256 bytes come whole. */
	if (getrandom(random, sizeof(random), 0) < 0)
		memcpy(random, &(int64_t){ clock_real_ns() }, sizeof(int64_t));
	for (size_t i = 0; i < sizeof(random); i++)
		snprintf(r->mark + 2 * i, 3, "%02x", random[i]);
	snprintf(r->host, sizeof(r->host), "%s", uname(&name) == 0 ? name.nodename : "unknown");
	n = readlink("/proc/self/ns/pid", space, sizeof(space) - 1);
	space[n > 0 ? n : 0] = 0;
	if (file_read("/proc/sys/kernel/random/boot_id", PROC_FILE_BYTES_MAX, &boot, NULL) == 0)
		snprintf(r->boot, sizeof(r->boot), "%.*s %s",
			 (int)str_trim(buf_str(&boot)).n, boot.data, space);
	buf_release(&boot);
}

void roster_folder(struct buf *out)
{
	static const struct { const char *variable, *below; } places[] = {
		{ "XDG_RUNTIME_DIR", "" }, { "XDG_STATE_HOME", "" }, { "HOME", "/.local/state" },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const char *base = getenv(places[i].variable);

		/* The specification has relative paths ignored. */
		if (!base || base[0] != '/')
			continue;
		buf_printf(out, "%s%s/profllm/servers", base, places[i].below);
		return;
	}
}

static bool parse_line(struct str line, struct roster *r)
{
	struct str word = str_cut(&line, ' ');
	struct roster_one one;

	if (str_is(word, "host"))
		return snprintf(r->host, sizeof(r->host), "%.*s", (int)line.n, line.p) >= 0;
	if (str_is(word, "boot"))
		return snprintf(r->boot, sizeof(r->boot), "%.*s", (int)line.n, line.p) >= 0;
	if (str_is(word, "command"))
		return snprintf(r->command, sizeof(r->command), "%.*s", (int)line.n, line.p) >= 0;
	if (str_is(word, "mark") && line.n == ROSTER_MARK_BYTES - 1) {
		for (size_t i = 0; i < line.n; i++)
			if (str_hex(line.p[i]) < 0)
				return false;
		memcpy(r->mark, line.p, line.n);
		return true;
	}
	if (str_is(word, "grace"))
		return str_to_f64(line, &r->grace_s) && r->grace_s >= 0 && r->grace_s < 1e6;
	if (str_is(word, "owner"))
		return tree_parse_process(line, &r->owner.pid, &r->owner.start);
	if (str_is(word, "keeper"))
		return tree_parse_process(line, &r->keeper.pid, &r->keeper.start);
	if (!str_is(word, "member") || !tree_parse_process(line, &one.pid, &one.start) ||
	    one.pid == 1) /* never to be ended */
		return false;
	if (r->n == r->room) {
		r->room = r->room ? r->room * 2 : 16;
		r->member = mem_grow(r->member, r->room, sizeof(*r->member));
	}
	r->member[r->n++] = one;
	return true;
}

int roster_parse(struct str text, struct roster *r)
{
	*r = (struct roster){ 0 };
	if (memchr(text.p ? text.p : "", 0, text.n) || !str_ends(text, STR("\n")) ||
	    !str_is(str_cut(&text, '\n'), FIRST_LINE))
		return -1;
	while (text.n)
		if (!parse_line(str_cut(&text, '\n'), r))
			return -1;
	return r->mark[0] && r->boot[0] && r->owner.pid && r->keeper.pid ? 0 : -1;
}

void roster_print(const struct roster *r, struct buf *out)
{
	assert(r->mark[0]);
	buf_printf(out, FIRST_LINE "\nmark %s\nhost %s\nboot %s\nowner %d %llu\nkeeper %d %llu\n"
		   "grace %.3f\ncommand %s\n", r->mark, r->host, r->boot, (int)r->owner.pid,
		   (unsigned long long)r->owner.start, (int)r->keeper.pid,
		   (unsigned long long)r->keeper.start, r->grace_s, r->command);
	for (size_t i = 0; i < r->n; i++)
		buf_printf(out, "member %d %llu\n", (int)r->member[i].pid,
			   (unsigned long long)r->member[i].start);
}

/* Processes that started before the keeper cannot be the tree's. */
static bool belongs(const struct roster *r, const char *mark, const struct tree_process *p)
{
	if (p->is_zombie || p->start < r->keeper.start)
		return false;
	for (size_t i = 0; i < r->n; i++)
		if (r->member[i].pid == p->pid && r->member[i].start == p->start)
			return true;
	return tree_has_variable(p->pid, mark);
}

unsigned roster_end(const struct roster *r, unsigned *left)
{
	char mark[sizeof(KEEPER_MARK) + ROSTER_MARK_BYTES];
	int64_t until_ns = clock_mono_ns() + END_WAIT_NS;
	struct roster ended = { 0 };
	struct tree tree = { 0 };
	unsigned still;

	assert(r->mark[0]);
	snprintf(mark, sizeof(mark), KEEPER_MARK "=%s", r->mark);
	for (;;) {
		still = 0;
		if (tree_read(&tree) < 0)
			break;
		for (size_t i = 0; i < tree.n; i++) {
			const struct tree_process *p = &tree.process[i];

			if (p->pid == getpid() || !belongs(r, mark, p))
				continue;
			still++;
			if (kill(p->pid, SIGKILL) < 0)
				continue;
			/* Counted once, however often it is checked until it is gone. */
			size_t k = 0;

			while (k < ended.n && (ended.member[k].pid != p->pid ||
					       ended.member[k].start != p->start))
				k++;
			if (k < ended.n)
				continue;
			ended.member = mem_grow(ended.member, ended.n + 1, sizeof(*ended.member));
			ended.member[ended.n++] = (struct roster_one){ p->pid, p->start };
		}
		if (still == 0 || clock_mono_ns() > until_ns)
			break;
		pause_a_moment();
	}
	if (left)
		*left = still;
	still = (unsigned)ended.n;
	roster_release(&ended);
	tree_release(&tree);
	return still;
}

static bool is_cancelled(const struct roster_hooks *hooks)
{
	return hooks->cancel && atomic_load(hooks->cancel);
}

static void warn(const struct roster_hooks *hooks, const struct buf *text)
{
	if (hooks->warn)
		hooks->warn(hooks->self, text->data);
}

/* Its owner is gone, so its keeper is ending the tree, whose port the new start may need. */
static void await_keeper(const struct roster *r, const struct roster_hooks *hooks)
{
	int64_t until_ns = clock_mono_ns() + (int64_t)(r->grace_s * 1e9) + KEEPER_WAIT_NS;
	struct buf text = { 0 };

	buf_printf(&text, "waiting for what an earlier run that was killed has left to end: %s "
		   "(process %d)", r->command, r->n ? (int)r->member[0].pid : (int)r->keeper.pid);
	warn(hooks, &text);
	buf_release(&text);
	while (tree_is_running(r->keeper.pid, r->keeper.start) && clock_mono_ns() < until_ns &&
	       !is_cancelled(hooks))
		pause_a_moment();
}

/* Takes from others what an earlier version gave them. */
static void narrow(const char *path, mode_t mode)
{
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0 && st.st_uid == geteuid() && st.st_mode & 0077)
		(void)fchmod(fd, st.st_mode & mode);
	if (fd >= 0)
		close(fd);
}

static void clean_one(const char *path, const struct roster *here, const struct roster_hooks *hooks)
{
	struct buf text = { 0 };
	struct roster r = { 0 };
	struct stat st;
	unsigned ended, left;

	if (lstat(path, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		goto done;
	narrow(path, 0600);
	if (file_read(path, ROSTER_BYTES_MAX, &text, NULL) < 0 ||
	    roster_parse(buf_str(&text), &r) < 0 || strcmp(r.host, here->host) != 0)
		goto done;
	if (strcmp(r.boot, here->boot) != 0) {
		/* An earlier boot's are gone; another container's are not ours to judge. */
		size_t id = strcspn(r.boot, " ");

		if (id != strcspn(here->boot, " ") || strncmp(r.boot, here->boot, id) != 0)
			unlink(path);
		goto done;
	}
	if (tree_is_running(r.keeper.pid, r.keeper.start)) {
		if (tree_is_running(r.owner.pid, r.owner.start))
			goto done;
		await_keeper(&r, hooks);
		if (is_cancelled(hooks) || tree_is_running(r.keeper.pid, r.keeper.start))
			goto done;
	}
	ended = roster_end(&r, &left);
	buf_reset(&text);
	if (left)
		buf_printf(&text, "%u processes that an earlier run left cannot be ended: %s",
			   left, r.command);
	else if (ended)
		buf_printf(&text, "ended %u process%s that an earlier run left when it was killed: %s",
			   ended, ended == 1 ? "" : "es", r.command);
	if (text.len)
		warn(hooks, &text);
	if (!left)
		unlink(path);
done:
	roster_release(&r);
	buf_release(&text);
}

void roster_clean(const struct roster_hooks *hooks)
{
	struct roster here;
	struct buf folder = { 0 };
	struct dirent *entry;
	DIR *dir = NULL;

	roster_init(&here);
	roster_folder(&folder);
	if (folder.len) {
		narrow(folder.data, 0700);
		dir = opendir(folder.data);
	}
	while (dir && !is_cancelled(hooks) && (entry = readdir(dir))) {
		char *path;

		if (entry->d_name[0] == '.')
			continue;
		path = file_join(folder.data, entry->d_name);
		clean_one(path, &here, hooks);
		free(path);
	}
	if (dir)
		closedir(dir);
	buf_release(&folder);
	roster_release(&here);
}
