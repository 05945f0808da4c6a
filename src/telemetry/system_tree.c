/* SPDX-License-Identifier: Apache-2.0 */
/* system_tree.c - see system_tree.h. */
#include "telemetry/system_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/limits.h"
#include "base/mem.h"

#define STAT_BYTES 1024

struct watched_process {
	pid_t pid;
	uint64_t start, ticks;
	int fd;           /* of its stat; it says ESRCH once the process is gone */
	bool is_seen;     /* in the picture that is looked through */
};

/* Fields behind the name, which ends with the last parenthesis. */
enum { UTIME = 11, STIME = 12, THREADS = 17, START = 19, RSS = 21, FIELDS };

bool tree_parse_usage(struct str text, struct process_usage *out)
{
	const char *end = text.n ? memrchr(text.p, ')', text.n) : NULL;
	uint64_t field[FIELDS] = { 0 };
	struct str rest;

	if (!end)
		return false;
	rest = (struct str){ end + 1, (size_t)(text.p + text.n - end - 1) };
	if (str_cut(&rest, ' ').n)
		return false;
	for (int i = 0; i < FIELDS; i++) {
		struct str word = str_trim(str_cut(&rest, ' '));

		if (i != UTIME && i != STIME && i != THREADS && i != START && i != RSS)
			continue;
		if (!str_to_u64(word, &field[i]))
			return false;
	}
	*out = (struct process_usage){ field[START], field[UTIME] + field[STIME], field[THREADS],
				       field[RSS] };
	return true;
}

static bool read_usage(const struct watched_process *p, struct process_usage *out)
{
	char text[STAT_BYTES];
	ssize_t n = pread(p->fd, text, sizeof(text), 0);

	return n > 0 && tree_parse_usage((struct str){ text, (size_t)n }, out) &&
	       out->start == p->start;
}

/* A process that ended before its file was open is left out. */
static void add_process(struct tree_watch *w, const struct tree_process *p)
{
	struct watched_process new = { .pid = p->pid, .start = p->start, .is_seen = true };
	struct process_usage usage;
	char path[64];

	if (w->n == SYSTEM_PROCESSES_MAX)
		return;
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)p->pid);
	new.fd = open(path, O_RDONLY | O_CLOEXEC);
	if (new.fd < 0)
		return;
	if (!read_usage(&new, &usage)) {
		close(new.fd);
		return;
	}
	if (w->n == w->room) {
		w->room = w->room ? w->room * 2 : 16;
		w->process = mem_grow(w->process, w->room, sizeof(*w->process));
	}
	w->process[w->n++] = new;
}

static void drop_process(struct tree_watch *w, size_t i)
{
	close(w->process[i].fd);
	w->ended_ticks += w->process[i].ticks;
	w->process[i] = w->process[--w->n];
}

static void see_process(struct tree_watch *w, const struct tree_process *p)
{
	for (size_t i = 0; i < w->n; i++) {
		if (w->process[i].pid == p->pid && w->process[i].start == p->start) {
			w->process[i].is_seen = true;
			return;
		}
	}
	add_process(w, p);
}

bool tree_watch_find(struct tree_watch *w, struct tree *t)
{
	const struct tree_process *root = tree_find(t, w->root);
	bool is_there = root && !root->is_zombie &&
			(w->root_start == 0 || w->root_start == root->start);

	if (!is_there)
		return false;
	w->root_start = root->start;
	for (size_t i = 0; i < w->n; i++)
		w->process[i].is_seen = false;
	see_process(w, root);
	tree_mark(t, w->root);
	for (size_t i = 0; i < t->n; i++)
		if (t->process[i].is_in_tree && !t->process[i].is_zombie)
			see_process(w, &t->process[i]);
	for (size_t i = w->n; i-- > 0;)
		if (!w->process[i].is_seen)
			drop_process(w, i);
	return true;
}

bool tree_watch_read(struct tree_watch *w, struct tree_values *out)
{
	double ticks_per_s = (double)sysconf(_SC_CLK_TCK), page = (double)sysconf(_SC_PAGESIZE);
	uint64_t ticks = 0, threads = 0, pages = 0;

	for (size_t i = w->n; i-- > 0;) {
		struct process_usage usage;

		if (!read_usage(&w->process[i], &usage)) {
			drop_process(w, i);
			continue;
		}
		w->process[i].ticks = usage.ticks;
		ticks += usage.ticks;
		threads += usage.threads;
		pages += usage.rss_pages;
	}
	*out = (struct tree_values){
		.cpu_s = (double)(ticks + w->ended_ticks) / ticks_per_s,
		.rss = (double)pages * page, .threads = (double)threads,
		.processes = (double)w->n,
	};
	return w->n > 0;
}

void tree_watch_release(struct tree_watch *w)
{
	for (size_t i = 0; i < w->n; i++)
		close(w->process[i].fd);
	free(w->process);
	*w = (struct tree_watch){ 0 };
}
