/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/log.c - what happened, as lines of JSON: one for each request in a file, errors otherwise.
 *
 * A line has the path and not the query, no header and no body: nothing in it is a secret.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/redact.h"
#include "web/state.h"

#define PATH_BYTES_MAX 500

struct web_log {
	pthread_mutex_t lock;
	int fd;              /* of the file; -1: none */
};

static int open_file(const char *path)
{
	return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

int log_open(struct web *w, struct err *e)
{
	struct web_log *log = mem_alloc(sizeof(*log));

	pthread_mutex_init(&log->lock, NULL);
	log->fd = -1;
	w->log = log;
	if (w->o.log_path) {
		log->fd = open_file(w->o.log_path);
		if (log->fd < 0)
			return err_set(e, ERR_USAGE, "--log: cannot write %s: %s", w->o.log_path,
				       strerror(errno));
	}
	return 0;
}

void web_log_reopen(struct web *w)
{
	int fd = w->o.log_path ? open_file(w->o.log_path) : -1;
	int before;

	if (fd < 0)
		return;
	pthread_mutex_lock(&w->log->lock);
	before = w->log->fd;
	w->log->fd = fd;
	pthread_mutex_unlock(&w->log->lock);
	close(before);
}

void log_close(struct web *w)
{
	if (!w->log)
		return;
	if (w->log->fd >= 0)
		close(w->log->fd);
	pthread_mutex_destroy(&w->log->lock);
	free(w->log);
	w->log = NULL;
}

static struct json_writer begin_line(struct buf *line, const char *level, const struct exchange *x)
{
	struct json_writer j = json_writer(line);
	int64_t now = clock_real_ns();
	time_t s = (time_t)(now / 1000000000);
	char at[48], id[24];
	struct tm tm;
	size_t n;

	gmtime_r(&s, &tm);
	n = strftime(at, sizeof(at), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(at + n, sizeof(at) - n, ".%03dZ", (int)(now / 1000000 % 1000));
	json_begin_object(&j);
	json_member_str(&j, "at", str_of(at));
	json_member_str(&j, "level", str_of(level));
	if (x) {
		snprintf(id, sizeof(id), "%llu", (unsigned long long)x->number);
		json_member_str(&j, "request", str_of(id));
		json_member_str(&j, "client", str_of(x->client));
		json_member_str(&j, "method", str_of(x->method));
		json_member_str(&j, "path", x->raw_path.n > PATH_BYTES_MAX ?
		     (struct str){ x->raw_path.p, PATH_BYTES_MAX } : x->raw_path);
	}
	return j;
}

static void end_line(struct web *w, struct buf *line, struct json_writer *j, int otherwise)
{
	int fd;

	json_end_object(j);
	buf_add_char(line, '\n');
	redact_tail(line, 0, REDACT_SENTENCES);
	pthread_mutex_lock(&w->log->lock);
	fd = w->log->fd >= 0 ? w->log->fd : otherwise;
	/* Nobody can be told that telling failed. */
	if (fd >= 0)
		(void)!file_write_all(fd, buf_str(line));
	pthread_mutex_unlock(&w->log->lock);
	buf_release(line);
}

void log_exchange(struct web *w, const struct exchange *x, unsigned status)
{
	struct buf line = { 0 };
	struct json_writer j;

	if (!w->o.log_path)
		return;
	/* Too much at once is told with 503: no fault of ours. */
	j = begin_line(&line, status == 500 ? "error" : status >= 400 ? "warning" : "info", x);
	json_member_int(&j, "status", status);
	json_member_int(&j, "received_bytes", (int64_t)x->received);
	json_member_int(&j, "sent_bytes", (int64_t)x->sent);
	json_member_f64(&j, "ms", (double)((clock_mono_ns() - x->began_ns) / 1000) / 1000);
	if (x->request.who.n)
		json_member_str(&j, "who", x->request.who);
	end_line(w, &line, &j, -1);
}

void log_say(struct web *w, const struct exchange *x, const char *level, const char *said)
{
	struct buf line = { 0 };
	struct json_writer j = begin_line(&line, level, x);

	json_member_str(&j, "text", str_of(said));
	end_line(w, &line, &j, strcmp(level, "error") == 0 ? w->o.log_fd : -1);
}
