/* SPDX-License-Identifier: Apache-2.0 */
/* queue.c - see queue.h. */
#include "experiment/queue.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"

#define MUTEX "mutex"
#define MUTEX_WAIT_NS 20000000000 /* looking at all GPUs takes a fraction of a second */
#define MUTEX_PAUSE_NS 2000000
#define NUMBER "%012llu"

int queue_init(struct queue *q, const char *folder, struct err *e)
{
	*q = (struct queue){ .folder = mem_text(folder), .tickets = file_join(folder, "queue") };
	if (lock_make_folder(q->tickets, e) < 0) {
		queue_release(q);
		return err_wrap(e, "the queue for GPUs");
	}
	return 0;
}

void queue_release(struct queue *q)
{
	lock_give(&q->ticket);
	lock_give(&q->mutex);
	free(q->folder);
	free(q->tickets);
	*q = (struct queue){ 0 };
}

int queue_enter(struct queue *q, const struct lock_holder *me, const atomic_bool *cancel,
		struct err *e)
{
	int64_t until_ns = clock_mono_ns() + MUTEX_WAIT_NS;
	struct lock_holder who = { 0 };
	struct buf text = { 0 };

	for (;;) {
		int taken = lock_take(q->folder, MUTEX, LOCK_ALONE, me, &q->mutex, &who, e);

		if (taken)
			return taken < 0 ? -1 : 0;
		if (cancel && atomic_load(cancel))
			return err_set(e, ERR_CANCELLED, "stopped while waiting for GPUs");
		if (clock_mono_ns() > until_ns)
			break;
		nanosleep(&(struct timespec){ 0, MUTEX_PAUSE_NS }, NULL);
	}
	lock_describe(&who, &text);
	err_set(e, ERR_IO, "the lock file %s/" MUTEX " is kept by %s; nobody should need it for "
		"longer than a moment", q->folder, text.data);
	buf_release(&text);
	return -1;
}

void queue_leave(struct queue *q)
{
	lock_give(&q->mutex);
}

/* The number of the file, 0: no ticket. */
static unsigned long long number_of(const char *name)
{
	uint64_t number;

	return str_to_u64(str_of(name), &number) && number < UINT64_MAX ? number : 0;
}

int queue_take_ticket(struct queue *q, const struct lock_holder *me, struct err *e)
{
	unsigned long long highest = 0;
	DIR *dir = opendir(q->tickets);
	struct dirent *entry;
	char name[32];
	int taken;

	while (dir && (entry = readdir(dir)))
		if (number_of(entry->d_name) > highest)
			highest = number_of(entry->d_name);
	if (dir)
		closedir(dir);
	q->number = highest + 1;
	snprintf(name, sizeof(name), NUMBER, q->number);
	taken = lock_take(q->tickets, name, LOCK_ALONE, me, &q->ticket, NULL, e);
	if (taken == 0)
		return err_set(e, ERR_IO, "the ticket %s/%s is held although nobody has been given "
			       "it", q->tickets, name);
	return taken < 0 ? -1 : 0;
}

unsigned queue_in_front(const struct queue *q, struct buf *wanted, struct lock_holder *first)
{
	unsigned long long lowest = q->number;
	DIR *dir = opendir(q->tickets);
	struct dirent *entry;
	unsigned n = 0;

	*first = (struct lock_holder){ 0 };
	while (dir && (entry = readdir(dir))) {
		unsigned long long number = number_of(entry->d_name);
		struct lock_holder who;

		if (number == 0 || number >= q->number ||
		    !lock_is_held(q->tickets, entry->d_name, &who))
			continue;
		n++;
		buf_add_text(wanted, who.wants);
		if (number < lowest) {
			lowest = number;
			*first = who;
		}
	}
	if (dir)
		closedir(dir);
	return n;
}

bool queue_has(const struct buf *wanted, const char *name)
{
	struct str rest = buf_str(wanted);

	while (rest.n)
		if (str_is(str_cut(&rest, ' '), name))
			return true;
	return false;
}
