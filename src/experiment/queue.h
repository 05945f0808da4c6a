/* SPDX-License-Identifier: Apache-2.0 */
/*
 * experiment/queue.h - who came first, among the experiments of this machine that want GPUs.
 *
 * A ticket is a lock file (proc/lock.h) in the folder "queue" below that of the locks, named by
 * a number that is one more than the highest there. It says which GPUs would do for its owner.
 * Whoever comes later leaves those alone while the earlier one waits, so that one that wants many
 * is not passed by many that want one. A dead owner's ticket is held by nobody and does not count.
 *
 * One at a time looks and takes: between queue_enter and queue_leave nobody else does.
 */
#pragma once
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/str.h"
#include "proc/lock.h"

struct queue {
	char *folder;              /* of locks */
	char *tickets;             /* of tickets, below it */
	struct lock mutex, ticket;
	unsigned long long number; /* of the ticket */
};

/* folder is that of lock_folder. -1 with e when its queue cannot be made. */
int queue_init(struct queue *q, const char *folder, struct err *e);
void queue_release(struct queue *q); /* gives ticket and mutex back; a zeroed one is fine */

/* Alone from here on. -1: cancelled (ERR_CANCELLED), or somebody keeps it for too long. */
int queue_enter(struct queue *q, const struct lock_holder *me, const atomic_bool *cancel,
		struct err *e);
void queue_leave(struct queue *q);

/* Between those two. me->wants: the names of all locks that would do, with a blank after each. */
int queue_take_ticket(struct queue *q, const struct lock_holder *me, struct err *e);
/*
 * What those in front want is added to wanted, likewise with blanks; first (zeroed: nobody) is the
 * one that came first. How many there are.
 */
unsigned queue_in_front(const struct queue *q, struct buf *wanted, struct lock_holder *first);
/* Whether the name is one of the names in such a text. */
bool queue_has(const struct buf *wanted, const char *name);
