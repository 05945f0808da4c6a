/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c - writes a record to its file while load runs, in a separate thread.
 *
 * The thread looks at rows between the first one not yet written and a window beyond the last one
 * seen finished; a row is copied once its state says that its owner is done with it (acquire pairs
 * with record_finish). It never waits for a loop and no loop ever waits for it.
 */
#include "client/record/file_write.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/mem.h"

#define WINDOW_ROWS 65536 /* unfinished rows scanned beyond the last finished one */

struct record_stream {
	const struct record *r;
	const struct request_row *rows; /* must stay where it is */
	struct record_info info;
	char *path;
	int fd;
	int error;               /* errno of the first failed write; nothing is written after it */
	struct batch batch;
	struct buf out;
	uint8_t *is_written;
	uint32_t first;          /* every row before it is written */
	uint32_t n_written;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool is_stopping;
};

static void write_batch(struct record_stream *s)
{
	batch_flush(&s->batch, &s->out);
	if (!s->error && write_out(s->fd, &s->out) < 0)
		s->error = errno;
	buf_reset(&s->out);
}

static void add_row(struct record_stream *s, uint32_t i)
{
	s->is_written[i] = 1;
	if (s->rows[i].state == REQ_UNSENT)
		return;
	batch_add(&s->batch, s->r, i);
	s->n_written++;
	if (s->batch.n_rows >= BATCH_ROWS_MAX || batch_bytes(&s->batch) >= BATCH_BYTES_MAX)
		write_batch(s);
}

static void write_finished(struct record_stream *s)
{
	uint32_t idle = 0;

	for (uint32_t i = s->first; i < s->r->n_rows && idle < WINDOW_ROWS; i++) {
		if (s->is_written[i])
			continue;
		if (record_is_published(&s->rows[i])) {
			add_row(s, i);
			idle = 0;
		} else {
			idle++;
		}
	}
	while (s->first < s->r->n_rows && s->is_written[s->first])
		s->first++;
	write_batch(s);
}

static void *stream_main(void *arg)
{
	struct record_stream *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!s->is_stopping) {
		int64_t until = clock_mono_ns() + RECORD_STREAM_NS;
		struct timespec at = { until / 1000000000, until % 1000000000 };

		pthread_cond_timedwait(&s->wake, &s->lock, &at);
		pthread_mutex_unlock(&s->lock);
		if (!s->error)
			write_finished(s);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void stream_free(struct record_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	record_info_release(&s->info);
	batch_release(&s->batch);
	buf_release(&s->out);
	free(s->is_written);
	free(s->path);
	free(s);
}

static int start_thread(struct record_stream *s)
{
	pthread_condattr_t attr;
	int rc;

	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	rc = pthread_create(&s->thread, NULL, stream_main, s);
	if (rc) {
		pthread_mutex_destroy(&s->lock);
		pthread_cond_destroy(&s->wake);
	}
	return rc;
}

struct record_stream *record_stream_open(const struct record *r, const struct record_info *info,
					 const char *path, struct err *e)
{
	struct record_stream *s = mem_alloc(sizeof(*s));
	struct stat st;
	int rc = 0;

	s->r = r;
	s->rows = r->row;
	s->path = mem_text(path);
	s->is_written = mem_array(r->n_rows, 1);
	batch_init(&s->batch);
	if (info) {
		s->info = *info;
		s->info.host = mem_array(info->n_hosts, sizeof(*info->host));
		memcpy(s->info.host, info->host, info->n_hosts * sizeof(*info->host));
	} else {
		record_info_here(&s->info, 0, r->n_shards);
	}
	write_opening(&s->out, r, &s->info);
	s->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	if (s->fd < 0 || write_out(s->fd, &s->out) < 0)
		rc = errno;
	else
		rc = start_thread(s);
	if (rc == 0)
		return s;
	if (s->fd >= 0 && fstat(s->fd, &st) == 0 && S_ISREG(st.st_mode))
		unlink(path); /* it is empty or not a record */
	stream_free(s);
	err_set(e, ERR_IO, "cannot write the record %s: %s", path, strerror(rc));
	return NULL;
}

void record_stream_stop(struct record_stream *s)
{
	if (!s || s->is_stopping)
		return;
	pthread_mutex_lock(&s->lock);
	s->is_stopping = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->wake);
	if (s->info.n_hosts == 1)
		record_info_stop(&s->info);
}

int record_stream_close(struct record_stream *s, struct err *e)
{
	int rc = 0;

	if (!s)
		return 0;
	record_stream_stop(s);
	assert(s->rows == s->r->row);
	for (uint32_t i = s->first; i < s->r->n_rows && !s->error; i++)
		if (!s->is_written[i])
			add_row(s, i);
	write_batch(s);
	write_closing(&s->out, s->r, &s->info, s->n_written, s->batch.n_events);
	if (!s->error && write_out(s->fd, &s->out) < 0)
		s->error = errno;
	if (!s->error && fsync(s->fd) < 0 && errno != EINVAL && errno != EROFS)
		s->error = errno;
	if (s->error)
		rc = err_set(e, ERR_IO, "the record %s is incomplete: %s", s->path,
			     strerror(s->error));
	stream_free(s);
	return rc;
}
