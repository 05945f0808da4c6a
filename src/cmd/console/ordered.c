/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ordered.c - see ordered.h.
 *
 * A read lock hands out numbered blocks; blocks are written in order of their numbers. Reading
 * waits in poll() on the input and an eventfd, so that a thread waiting for input learns of another
 * thread's error.
 */
#include "cmd/console/ordered.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"

#define READ_AT_ONCE (256u << 10)

struct run {
	const struct ordered *o;
	atomic_bool is_stopped;
	int stop_fd;

	pthread_mutex_t reading;
	int fd;                /* -1: the next file is to be opened */
	size_t next_path;
	struct buf rest;       /* the beginning of a line whose end is not read yet */
	uint64_t blocks;       /* handed out */
	bool is_new_file;

	pthread_mutex_t writing;
	pthread_cond_t turn;
	uint64_t written;      /* blocks */
	uint64_t line, done, total;
	struct err err;        /* of the first block that has one */
};

struct worker {
	struct run *r;
	void *state;
	pthread_t thread;
	/* The current block. */
	struct buf in, out;
	const char *name;
	uint64_t number, lines;
	bool is_new_file;
	struct err err;      /* if set, of the line after those */
	bool is_err_of_file; /* or it names the file itself */
};

static const char *shown_name(const char *path)
{
	return strcmp(path, "-") == 0 ? "standard input" : path;
}

/* ---- reading; under the lock ---- */

static const char *path_at(const struct ordered *o, size_t i)
{
	return o->paths ? o->path[i] : "-";
}

static size_t paths_of(const struct ordered *o)
{
	return o->paths ? o->paths : 1;
}

static int fail_file(struct worker *w, const char *what)
{
	w->is_err_of_file = true;
	return err_set(&w->err, ERR_IO, "cannot %s %s: %s", what, w->name, strerror(errno));
}

static int open_next(struct run *r, struct worker *w)
{
	const char *path = path_at(r->o, r->next_path++);

	w->name = shown_name(path);
	r->is_new_file = true;
	r->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (r->fd >= 0)
		return 0;
	fail_file(w, "open");
	return errno == ENOENT && r->o->absent_hint ? err_add(&w->err, "%s", r->o->absent_hint) : -1;
}

static void close_file(struct run *r)
{
	if (r->fd != STDIN_FILENO)
		close(r->fd);
	r->fd = -1;
}

/* Bytes read (0: the end, or another thread stopped the run); -1 with w->err. */
static ssize_t read_some(struct run *r, struct worker *w)
{
	struct pollfd wait[2] = { { r->fd, POLLIN, 0 }, { r->stop_fd, POLLIN, 0 } };
	ssize_t n;

	buf_reserve(&w->in, READ_AT_ONCE);
	do {
		if (poll(wait, 2, -1) > 0 && wait[1].revents)
			return 0;
		n = read(r->fd, w->in.data + w->in.len, READ_AT_ONCE);
	} while (n < 0 && (errno == EINTR || errno == EAGAIN));
	if (n < 0)
		return fail_file(w, "read");
	w->in.len += (size_t)n;
	w->in.data[w->in.len] = 0;
	return n;
}

/* Keeps whole lines in w->in and moves what follows them to r->rest. */
static void split_rest(struct run *r, struct worker *w, const char *line_end)
{
	size_t keep = (size_t)(line_end - w->in.data) + 1;

	buf_add(&r->rest, line_end + 1, w->in.len - keep);
	w->in.len = keep;
}

static int too_long(struct worker *w)
{
	const struct ordered *o = w->r->o;

	w->is_err_of_file = o->is_whole;
	return err_set(&w->err, ERR_LIMIT, "%s is longer than the limit of %zu bytes",
		o->is_whole ? w->name : "the line", o->item_bytes_max);
}

/* The open file's next lines, or all of it. 1: there are some; 0: it is at its end; -1: w->err. */
static int fill(struct run *r, struct worker *w)
{
	const char *end = NULL;
	ssize_t n;

	buf_reset(&w->in);
	buf_add_str(&w->in, buf_str(&r->rest));
	buf_reset(&r->rest);
	while (!end) {
		size_t old = w->in.len;

		n = read_some(r, w);
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		if (!r->o->is_whole)
			end = memrchr(w->in.data + old, '\n', (size_t)n);
		if (!end && w->in.len > r->o->item_bytes_max)
			return too_long(w);
	}
	if (end) {
		split_rest(r, w, end);
		return 1;
	}
	close_file(r);
	return w->in.len > 0 || r->o->is_whole;
}

/* Fetches the next block, which may be only an error; false: there is none. */
static bool next_block(struct run *r, struct worker *w)
{
	int found = 0;

	w->err = (struct err){ 0 };
	w->is_err_of_file = false;
	buf_reset(&w->in);
	while (found == 0 && !atomic_load(&r->is_stopped)) {
		if (r->fd < 0 && r->next_path == paths_of(r->o))
			return false;
		if (r->fd < 0 && open_next(r, w) < 0)
			break;
		w->name = shown_name(path_at(r->o, r->next_path - 1));
		found = fill(r, w);
	}
	w->number = r->blocks++;
	w->is_new_file = r->is_new_file;
	r->is_new_file = false;
	return !atomic_load(&r->is_stopped);
}

/* ---- working ---- */

static int take_item(struct worker *w, struct str item)
{
	if (item.n > w->r->o->item_bytes_max)
		return too_long(w);
	if (w->r->o->item(w->state, w->name, item, &w->out, &w->err) < 0)
		return -1;
	if (w->out.is_over)
		return err_set(&w->err, ERR_LIMIT, "the converted text is longer than %zu bytes",
			w->out.limit);
	return 0;
}

static void work_on(struct worker *w)
{
	struct str rest = buf_str(&w->in);

	w->lines = 0;
	buf_reset(&w->out);
	if (w->err.code)
		return;
	if (w->r->o->is_whole) {
		w->is_err_of_file = true;
		if (take_item(w, rest) < 0)
			err_wrap(&w->err, "%s", w->name);
		return;
	}
	while (rest.n) {
		size_t done = w->out.len;

		if (take_item(w, str_cut(&rest, '\n')) < 0) {
			w->out.len = done;
			return;
		}
		w->lines++;
	}
}

/* ---- writing; in turn ---- */

static void stop(struct run *r)
{
	atomic_store(&r->is_stopped, true);
	eventfd_write(r->stop_fd, 1);
}

static void write_block(struct run *r, struct worker *w)
{
	int why = file_write_all(STDOUT_FILENO, buf_str(&w->out)) < 0 ? errno : 0;

	if (w->is_new_file)
		r->line = 0;
	r->line += w->lines;
	r->done += w->in.len;
	if (why) {
		err_set(&r->err, ERR_IO, "cannot write to standard output: %s", strerror(why));
		stop(r);
	} else if (w->err.code) {
		r->err = w->err;
		if (!w->is_err_of_file)
			err_wrap(&r->err, "%s:%llu", w->name, (unsigned long long)r->line + 1);
		stop(r);
	} else if (r->o->progress) {
		r->o->progress(r->o->self, r->done, r->total);
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct run *r = w->r;
	bool is_more;

	for (;;) {
		pthread_mutex_lock(&r->reading);
		is_more = next_block(r, w);
		pthread_mutex_unlock(&r->reading);
		if (!is_more)
			break;
		work_on(w);
		pthread_mutex_lock(&r->writing);
		while (r->written != w->number)
			pthread_cond_wait(&r->turn, &r->writing);
		if (!atomic_load(&r->is_stopped))
			write_block(r, w);
		r->written++;
		pthread_cond_broadcast(&r->turn);
		pthread_mutex_unlock(&r->writing);
	}
	buf_release(&w->in);
	buf_release(&w->out);
	return NULL;
}

/* ---- all of it ---- */

/* 0 when one of them is a pipe or cannot be examined. */
static uint64_t total_bytes(const struct ordered *o)
{
	uint64_t total = 0;

	for (size_t i = 0; i < paths_of(o); i++) {
		const char *path = path_at(o, i);
		struct stat s;

		if ((strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &s) : stat(path, &s)) < 0 ||
		    !S_ISREG(s.st_mode))
			return 0;
		total += (uint64_t)s.st_size;
	}
	return total;
}

int ordered_run(const struct ordered *o, struct err *e)
{
	struct run r = { .o = o, .fd = -1, .total = total_bytes(o),
			 .reading = PTHREAD_MUTEX_INITIALIZER, .writing = PTHREAD_MUTEX_INITIALIZER,
			 .turn = PTHREAD_COND_INITIALIZER, .stop_fd = eventfd(0, EFD_CLOEXEC) };
	struct worker *worker = mem_array(o->threads, sizeof *worker);
	unsigned started = 1;

	assert(o->threads > 0 && o->item_bytes_max + READ_AT_ONCE < BUF_BYTES_MAX);
	if (r.stop_fd < 0) {
		free(worker);
		return err_set(e, ERR_IO, "cannot open an eventfd: %s", strerror(errno));
	}
	for (unsigned i = 0; i < o->threads; i++) {
		worker[i].r = &r;
		worker[i].state = (char *)o->states + i * o->state_bytes;
		worker[i].out.limit = ORDERED_OUT_BYTES_MAX;
	}
	while (started < o->threads &&
	       pthread_create(&worker[started].thread, NULL, work, worker + started) == 0)
		started++;
	work(worker);
	while (--started)
		pthread_join(worker[started].thread, NULL);
	if (r.fd >= 0)
		close_file(&r);
	close(r.stop_fd);
	buf_release(&r.rest);
	free(worker);
	if (r.err.code && e)
		*e = r.err;
	return r.err.code ? -1 : 0;
}
