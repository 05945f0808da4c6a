/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - the processes of this machine as a tree, read from /proc.
 *
 * A snapshot: by the time it is read, processes may have ended and others begun. A process is
 * identified by its number and its start time together, because numbers are reused. Code that ends
 * a tree therefore repeats until nothing is left (proc/keeper.h).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/str.h"

#define TREE_COMMAND_BYTES 256 /* of a command shown in a message */

struct tree_process {
	pid_t pid, parent;
	uint64_t start;   /* clock ticks since the machine started (proc(5), field 22) */
	bool is_zombie;   /* ended and not waited for */
	bool is_in_tree;  /* set by tree_mark */
};

/* Zeroed: empty. */
struct tree {
	struct tree_process *process; /* by number, ascending */
	size_t n, room;
};

/* Replaces t by all current processes. -1 with errno when /proc cannot be read. */
int tree_read(struct tree *t);
void tree_release(struct tree *t);
/* Sets is_in_tree for all descendants of root, without root; returns how many there are. */
size_t tree_mark(struct tree *t, pid_t root);
/* NULL: there is none. Borrowed until t is read again. */
const struct tree_process *tree_find(const struct tree *t, pid_t pid);

/* Reads one process now. false: it does not exist (a zombie counts as existing). */
bool tree_process_read(pid_t pid, struct tree_process *p);
/* Whether the process with this number and start time exists and is not a zombie. */
bool tree_is_running(pid_t pid, uint64_t start);
/* Parses /proc/PID/stat; false: not of its form. */
bool tree_parse_stat(struct str text, struct tree_process *p);
/* Parses "PID START", as our files identify a process; false: not of that form. */
bool tree_parse_process(struct str text, pid_t *pid, uint64_t *start);
/* Its command line in one line, cut to fit; its name in brackets when it has none; "" unknown. */
void tree_command(pid_t pid, char out[TREE_COMMAND_BYTES]);
/* Whether a process was started with NAME=VALUE in its environment, if we may read that. */
bool tree_has_variable(pid_t pid, const char *assignment);

/* A process that escapes: the simulator leaves one on request, to test code that stops servers. */
/*
 * Starts a process in its own session, whose parent is process 1 or a subreaper. It only sleeps,
 * keeps standard streams open, inherits signal handling, and ends by itself after `seconds`.
 */
int stray_leave(unsigned seconds, struct err *e);

/*
 * Which process listens on a port or a socket file.
 *
 * /proc/net/tcp, tcp6 and unix name the inodes of listening sockets, /proc/PID/fd their owners. Any
 * local address counts: a server that listens on every address, as most do, cannot share the port
 * with one that listens on a single one. Only sockets of our own network namespace are seen; a
 * process of another user is seen to listen, but not identified.
 */
enum port_state {
	PORT_FREE,    /* no process listens */
	PORT_IN_TREE, /* a descendant of the given process does */
	PORT_FOREIGN, /* only others do; holder, if known, is one of them */
};

/*
 * Which process listens on the TCP port (0: on the socket file uds), relative to the tree below
 * root (0: none). *holder, if not NULL, is a process that listens; 0: none, or not identifiable.
 */
enum port_state port_look(uint16_t port, const char *uds, pid_t root, pid_t *holder);

/* One line of /proc/net/tcp or tcp6: its inode when it listens on port, else 0. */
uint64_t port_line_inode(struct str line, uint16_t port);
/* One line of /proc/net/unix: its inode when it listens on path, else 0. */
uint64_t port_line_unix(struct str line, const char *path);
