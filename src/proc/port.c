/* SPDX-License-Identifier: Apache-2.0 */
/* port.c - see port.h. */
#include "proc/port.h"

#include <dirent.h>
#include <unistd.h>

#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "proc/tree.h"

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
