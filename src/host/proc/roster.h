/* SPDX-License-Identifier: Apache-2.0 */
/*
 * roster.h - files that list the kept programs of this machine, so that a later start can end what
 * is left of those whose owner and keeper were both killed.
 *
 * One file per keeper, $XDG_RUNTIME_DIR/profllm/servers/MARK, else below $XDG_STATE_HOME, else
 * below ~/.local/state. Its keeper rewrites it when its tree has changed and removes it at the end.
 * Without any such folder programs are still kept, only this safety net is missing.
 *
 * Only its user may read it (0600, in folders of 0700), because it contains a command line. Wider
 * permissions from an earlier version are narrowed at the next start.
 *
 * Text, one fact per line:
 *
 *   profllm roster 1
 *   host NAME            where it is valid; files of other hosts on a shared home are ignored
 *   boot ID NAMESPACE    of this boot of the machine and this PID namespace
 *   owner PID START      the process that started the keeper
 *   keeper PID START
 *   grace SECONDS        how long the keeper waits between TERM and KILL
 *   command WORDS        for messages
 *   member PID START     each process of the tree that was seen
 *
 * Only processes whose number and start time both match, or that have MARK in their environment,
 * are ever ended. Programs that overwrite their environment to show another name (as vLLM's engine
 * does) are found by the former, daemons started after the last look by the latter.
 */
#pragma once
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/base/err.h"
#include "core/base/str.h"
#include "host/proc/tree.h"

#define ROSTER_MARK_BYTES 33 /* 32 hexadecimal digits */

struct roster_one { pid_t pid; uint64_t start; };

struct roster {
	char mark[ROSTER_MARK_BYTES];
	char host[256], boot[128];
	char command[TREE_COMMAND_BYTES];
	double grace_s;
	struct roster_one owner, keeper;
	struct roster_one *member;
	size_t n, room;
};

void roster_release(struct roster *r);
/* Sets a new mark and this machine's host and boot. */
void roster_init(struct roster *r);
/* The folder by the environment; "" if there is none. */
void roster_folder(struct buf *out);
/* Parses a file; -1: not of its form; release r in any case. */
int roster_parse(struct str text, struct roster *r);
void roster_print(const struct roster *r, struct buf *out);

/*
 * Ends with KILL what is left of r's tree: its members and all processes with its mark. Repeats
 * until none is left, for some seconds at most. Returns how many were ended; left, if not NULL,
 * receives how many could not be.
 */
unsigned roster_end(const struct roster *r, unsigned *left);

/* One sentence for the user. */
struct roster_hooks {
	void *self;
	void (*warn)(void *self, const char *text);
	const atomic_bool *cancel;
};
/*
 * Ends what dead owners have left: waits for keepers that are still ending their tree, ends the
 * trees whose keeper is also dead, removes their files, and warns about it. Never an error.
 */
void roster_clean(const struct roster_hooks *hooks);
