/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - see tree.h. */
#include "host/proc/tree.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/redact.h"
#include "core/base/str.h"

enum { STAT_STATE = 0, STAT_PARENT = 1, STAT_START = 19 }; /* fields after the name */

/* false: gone, or not ours to read. */
static bool read_proc(pid_t pid, const char *name, struct buf *out)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return file_read(path, PROC_FILE_BYTES_MAX, out, NULL) == 0;
}

bool tree_parse_stat(struct str text, struct tree_process *p)
{
	struct str rest = text, word, number = str_cut(&rest, ' ');
	const char *close_paren;
	int64_t pid, parent = 0;
	uint64_t start = 0;
	char state = 0;

	/* The name may hold anything, blanks and parentheses included: the last one ends it. */
	close_paren = text.n ? memrchr(text.p, ')', text.n) : NULL;
	if (!close_paren || !str_to_i64(number, &pid) || pid <= 0 || pid > PROC_TREE_MAX)
		return false;
	rest.p = close_paren + 1;
	rest.n = (size_t)(text.p + text.n - rest.p);
	if (str_cut(&rest, ' ').n)
		return false;
	for (int i = 0; i <= STAT_START; i++) {
		word = str_cut(&rest, ' ');
		if (word.n == 0)
			return false;
		if (i == STAT_STATE)
			state = word.p[0];
		if (i == STAT_PARENT && (!str_to_i64(word, &parent) || parent < 0 ||
					 parent > PROC_TREE_MAX))
			return false;
		if (i == STAT_START && !str_to_u64(str_trim(word), &start))
			return false;
	}
	*p = (struct tree_process){ .pid = (pid_t)pid, .parent = (pid_t)parent, .start = start,
				    .is_zombie = state == 'Z' || state == 'X' };
	return true;
}

bool tree_process_read(pid_t pid, struct tree_process *p)
{
	struct buf text = { 0 };
	bool is_there = pid > 0 && read_proc(pid, "stat", &text) &&
			tree_parse_stat(buf_str(&text), p);

	buf_release(&text);
	return is_there;
}

bool tree_is_running(pid_t pid, uint64_t start)
{
	struct tree_process p;

	return tree_process_read(pid, &p) && p.start == start && !p.is_zombie;
}

static int by_number(const void *a, const void *b)
{
	const struct tree_process *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

int tree_read(struct tree *t)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;

	t->n = 0;
	if (!dir)
		return -1;
	while ((entry = readdir(dir)) && t->n < PROC_TREE_MAX) {
		uint64_t pid;

		if (!str_to_u64(str_of(entry->d_name), &pid) || pid > PROC_TREE_MAX)
			continue;
		if (t->n == t->room) {
			t->room = t->room ? t->room * 2 : 256;
			t->process = mem_grow(t->process, t->room, sizeof(*t->process));
		}
		if (tree_process_read((pid_t)pid, &t->process[t->n]))
			t->n++;
	}
	closedir(dir);
	if (t->n)
		qsort(t->process, t->n, sizeof(*t->process), by_number);
	return 0;
}

void tree_release(struct tree *t)
{
	free(t->process);
	*t = (struct tree){ 0 };
}

static struct tree_process *find(const struct tree *t, pid_t pid)
{
	const struct tree_process key = { .pid = pid };

	return t->n ? bsearch(&key, t->process, t->n, sizeof(key), by_number) : NULL;
}

const struct tree_process *tree_find(const struct tree *t, pid_t pid)
{
	return find(t, pid);
}

/*
 * Numbers wrap around, so a child may have a smaller one than its parent: passes over all until
 * one finds nothing new. Trees are shallow.
 */
size_t tree_mark(struct tree *t, pid_t root)
{
	size_t n = 0, before;

	assert(root > 0);
	for (size_t i = 0; i < t->n; i++)
		t->process[i].is_in_tree = false;
	do {
		before = n;
		for (size_t i = 0; i < t->n; i++) {
			struct tree_process *p = &t->process[i], *parent;

			if (p->is_in_tree || p->pid == root)
				continue;
			parent = find(t, p->parent);
			if (p->parent == root || (parent && parent->is_in_tree)) {
				p->is_in_tree = true;
				n++;
			}
		}
	} while (n > before);
	return n;
}

/* Redacts words that each end with a zero byte. */
static void hide_secrets(struct buf *text)
{
	struct arena arena = { 0 };
	struct word_list words = { .arena = &arena };
	struct str rest = buf_str(text);
	char **shown;

	while (rest.n)
		words_add(&words, arena_text(&arena, str_cut(&rest, '\0')));
	shown = redact_words(words.v, &arena);
	buf_reset(text);
	for (size_t i = 0; shown[i]; i++)
		buf_printf(text, "%s ", shown[i]);
	arena_release(&arena);
}

void tree_command(pid_t pid, char out[TREE_COMMAND_BYTES])
{
	struct buf text = { 0 };
	size_t n;

	out[0] = 0;
	if (read_proc(pid, "cmdline", &text) && text.len) {
		hide_secrets(&text);
		for (size_t i = 0; i < text.len; i++)
			if ((unsigned char)text.data[i] < ' ')
				text.data[i] = ' ';
		n = str_trim(buf_str(&text)).n;
		snprintf(out, TREE_COMMAND_BYTES, "%.*s", (int)(n < 1024 ? n : 1024), text.data);
	} else if (read_proc(pid, "comm", &text) && text.len) {
		snprintf(out, TREE_COMMAND_BYTES, "[%.*s]", (int)str_trim(buf_str(&text)).n,
			 text.data);
	}
	buf_release(&text);
}

bool tree_has_variable(pid_t pid, const char *assignment)
{
	struct buf text = { 0 };
	bool is_found = false;

	if (read_proc(pid, "environ", &text)) {
		struct str rest = buf_str(&text);

		while (rest.n && !is_found)
			is_found = str_is(str_cut(&rest, '\0'), assignment);
	}
	buf_release(&text);
	return is_found;
}

bool tree_parse_process(struct str text, pid_t *pid, uint64_t *start)
{
	struct str number = str_cut(&text, ' ');
	int64_t n;

	if (!str_to_i64(number, &n) || n <= 0 || n > PROC_TREE_MAX || !str_to_u64(text, start))
		return false;
	*pid = (pid_t)n;
	return true;
}

int stray_leave(unsigned seconds, struct err *e)
{
	pid_t child = fork();

	if (child < 0)
		return err_set(e, ERR_IO, "cannot start a process: %s", strerror(errno));
	if (child == 0) {
		if (setsid() < 0 || fork() != 0)
			_exit(0);
		alarm(seconds);
		for (;;)
			pause();
	}
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

/* ---- who listens ---- */

#define TCP_LISTEN "0A"                /* include/net/tcp_states.h, as the file spells it */
#define UNIX_ACCEPTS "00010000"        /* __SO_ACCEPTCON: it listens */

/* Sockets that listen where we look; a handful (SO_REUSEPORT). */
struct inodes {
	uint64_t *inode;
	size_t n;
};

static struct str next_word(struct str *rest)
{
	while (rest->n && rest->p[0] == ' ') {
		rest->p++;
		rest->n--;
	}
	return str_cut(rest, ' ');
}

static bool hex_to_u64(struct str s, uint64_t *out)
{
	uint64_t v = 0;

	if (s.n == 0 || s.n > 16)
		return false;
	for (size_t i = 0; i < s.n; i++) {
		int digit = str_hex(s.p[i]);

		if (digit < 0)
			return false;
		v = v << 4 | (unsigned)digit;
	}
	*out = v;
	return true;
}

/* sl  local_address rem_address  st tx:rx tr:when retrnsmt  uid  timeout inode ... */
uint64_t port_line_inode(struct str line, uint16_t port)
{
	struct str rest = line, local, state, word = { 0 };
	uint64_t number, inode;

	next_word(&rest);
	local = next_word(&rest);
	next_word(&rest);
	state = next_word(&rest);
	for (int i = 0; i < 6; i++)
		word = next_word(&rest);
	str_cut(&local, ':');
	if (!str_is(state, TCP_LISTEN) || !hex_to_u64(local, &number) || number != port ||
	    !str_to_u64(word, &inode))
		return 0;
	return inode;
}

/* Num RefCount Protocol Flags Type St Inode Path */
uint64_t port_line_unix(struct str line, const char *path)
{
	struct str rest = line, flags, word = { 0 };
	uint64_t inode;

	for (int i = 0; i < 3; i++)
		next_word(&rest);
	flags = next_word(&rest);
	for (int i = 0; i < 3; i++)
		word = next_word(&rest);
	if (!str_is(flags, UNIX_ACCEPTS) || !str_is(rest, path) || !str_to_u64(word, &inode))
		return 0;
	return inode;
}

static void add_inodes(const char *file, uint16_t port, const char *uds, struct inodes *all)
{
	struct buf text = { 0 };
	struct str rest;

	/* A kernel without IPv6 has no such file. */
	if (file_read(file, PROC_SOCKETS_BYTES_MAX, &text, NULL) < 0) {
		buf_release(&text);
		return;
	}
	rest = buf_str(&text);
	str_cut(&rest, '\n');
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		uint64_t inode = port ? port_line_inode(line, port) : port_line_unix(line, uds);

		if (inode == 0)
			continue;
		all->inode = mem_grow(all->inode, all->n + 1, sizeof(*all->inode));
		all->inode[all->n++] = inode;
	}
	buf_release(&text);
}

/* Whether one of the process's descriptors is one of the sockets. */
static bool holds(pid_t pid, const struct inodes *all)
{
	char path[320], link[64];
	struct dirent *entry;
	bool is_found = false;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && !is_found && (entry = readdir(dir))) {
		struct str rest;
		uint64_t inode;
		ssize_t n;

		snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, entry->d_name);
		n = readlink(path, link, sizeof(link));
		rest = (struct str){ link, n > 0 ? (size_t)n : 0 };
		if (!str_starts(rest, STR("socket:[")) || !str_ends(rest, STR("]")) ||
		    !str_to_u64((struct str){ link + 8, rest.n - 9 }, &inode))
			continue;
		for (size_t i = 0; i < all->n; i++)
			is_found |= all->inode[i] == inode;
	}
	if (dir)
		closedir(dir);
	return is_found;
}

enum port_state port_look(uint16_t port, const char *uds, pid_t root, pid_t *holder)
{
	struct inodes all = { 0 };
	struct tree tree = { 0 };
	enum port_state state = PORT_FOREIGN;
	pid_t found = 0;

	if (port) {
		add_inodes("/proc/net/tcp", port, NULL, &all);
		add_inodes("/proc/net/tcp6", port, NULL, &all);
	} else {
		add_inodes("/proc/net/unix", 0, uds, &all);
	}
	if (all.n && tree_read(&tree) == 0 && root)
		tree_mark(&tree, root);
	/* Ours first: they are few, and looking through everybody's descriptors is slow. */
	for (size_t i = 0; root && i < tree.n && !found; i++)
		if (tree.process[i].is_in_tree && holds(tree.process[i].pid, &all))
			found = tree.process[i].pid;
	if (found)
		state = PORT_IN_TREE;
	for (size_t i = 0; i < tree.n && !found; i++)
		if (!tree.process[i].is_in_tree && holds(tree.process[i].pid, &all))
			found = tree.process[i].pid;
	if (all.n == 0)
		state = PORT_FREE;
	if (holder)
		*holder = found;
	tree_release(&tree);
	free(all.inode);
	return state;
}
