/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree.h - the processes of this machine as a tree, read from /proc.
 *
 * A picture of one moment: by the time it is read, processes may have ended and others begun.
 * A process is named by its number and its start time together, because numbers are given
 * again. Code that ends a tree therefore looks again until nothing is left (proc/keeper.h).
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

/* Every process there is, in place of what t held. -1 with errno when /proc cannot be read. */
int tree_read(struct tree *t);
void tree_release(struct tree *t);
/* Sets is_in_tree of everything that descends from root, root left out; how many there are. */
size_t tree_mark(struct tree *t, pid_t root);
/* NULL: there is none. Borrowed until t is read again. */
const struct tree_process *tree_find(const struct tree *t, pid_t pid);

/* One process now. false: there is none (a zombie counts as one). */
bool tree_process_read(pid_t pid, struct tree_process *p);
/* Whether the process that had this number and start time is there and no zombie. */
bool tree_is_running(pid_t pid, uint64_t start);
/* What /proc/PID/stat says; false: not of its form. */
bool tree_parse_stat(struct str text, struct tree_process *p);
/* "PID START", as files of ours name a process; false: not of that form. */
bool tree_parse_process(struct str text, pid_t *pid, uint64_t *start);
/* Its command line in one line, cut to fit; its name in brackets when it has none; "" unknown. */
void tree_command(pid_t pid, char out[TREE_COMMAND_BYTES]);
/* Whether NAME=VALUE stands in the environment it was started with and we may read that. */
bool tree_has_variable(pid_t pid, const char *assignment);

/*
 * A process that gets away: the simulator leaves one on request, so that those
 * who stop servers can be tested against servers that do.
 */
/*
 * Starts a process in a session of its own, a child of nobody we know. It does nothing, keeps
 * standard streams open, has the signal handling of its maker, and ends by itself after so many
 * seconds.
 */
int stray_leave(unsigned seconds, struct err *e);

/*
 * Who listens on a port or a socket file.
 *
 * /proc/net/tcp, tcp6 and unix name the inodes of listening sockets, /proc/PID/fd says who holds
 * them. Any local address counts: a server that listens on every address, as most do, cannot
 * share the port with one that listens on a single one. What is seen are the sockets of our own
 * network namespace; a process of another user is seen to listen, but not which one it is.
 */
enum port_state {
	PORT_FREE,    /* nobody listens */
	PORT_IN_TREE, /* one that descends from the given process does */
	PORT_FOREIGN, /* only others do; holder, if it is known, is one of them */
};

/*
 * Who listens on the TCP port (0: on the socket file uds), judged by the tree below root (0: none
 * is ours). *holder, if not NULL, is a process that listens; 0: nobody, or one that cannot be seen.
 */
enum port_state port_look(uint16_t port, const char *uds, pid_t root, pid_t *holder);

/* One line of /proc/net/tcp or tcp6: its inode when it listens on port, else 0. */
uint64_t port_line_inode(struct str line, uint16_t port);
/* One line of /proc/net/unix: its inode when it listens on path, else 0. */
uint64_t port_line_unix(struct str line, const char *path);
