/* SPDX-License-Identifier: Apache-2.0 */
/*
 * web/launch_events.c - what a started experiment does, followed from its folder's files: the log,
 * and the lines that `profllm run --events` writes.
 */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "web/events.h"
#include "web/launch_parts.h"

#define PIECE_BYTES 32768
#define LOG_ANSWER_BYTES (1u << 20)

/* A file that grows. */
struct tail {
	char *path;
	off_t at;
	struct buf kept;     /* the beginning of a line */
};

struct run_stream {
	char id[17];
	struct tail log, events;
	char state[16];
	bool is_over;        /* what is left of the files is still to be read */
};

/* Whole lines that have come since, at most a piece; is_last: what is left is one, too. */
static void tail_read(struct tail *t, bool is_last, struct buf *out)
{
	int fd = open(t->path, O_RDONLY | O_CLOEXEC);
	char piece[PIECE_BYTES];
	ssize_t n = fd >= 0 ? pread(fd, piece, sizeof(piece), t->at) : -1;
	const char *end;
	size_t whole;

	if (fd >= 0)
		close(fd);
	if (n > 0) {
		t->at += n;
		buf_add(&t->kept, piece, (size_t)n);
	}
	if (!t->kept.len)
		return;
	end = memrchr(t->kept.data, '\n', t->kept.len);
	whole = end ? (size_t)(end - t->kept.data) + 1 : 0;
	if ((is_last && n <= 0) || (!whole && t->kept.len >= PIECE_BYTES))
		whole = t->kept.len;
	buf_add(out, t->kept.data, whole);
	buf_cut(&t->kept, whole);
}

static bool tail_log(struct run_stream *r, bool is_last, struct events *s)
{
	struct buf text = { 0 }, data = { 0 };
	struct json_writer j = json_writer(&data);
	bool has_more;

	tail_read(&r->log, is_last, &text);
	has_more = text.len > 0;
	if (has_more) {
		json_begin_object(&j);
		json_member_str(&j, "text", buf_str(&text));
		json_member_int(&j, "offset", (int64_t)r->log.at - (int64_t)r->log.kept.len);
		json_end_object(&j);
		events_put(s, "log", buf_str(&data));
	}
	buf_release(&text);
	buf_release(&data);
	return has_more;
}

/* {"event": NAME, ...} by its name; what is none is left out. */
static bool tail_events(struct run_stream *r, bool is_last, struct events *s)
{
	struct buf text = { 0 };
	bool has_more;
	struct str rest;

	tail_read(&r->events, is_last, &text);
	has_more = text.len > 0;
	rest = buf_str(&text);
	while (rest.n) {
		struct str line = str_trim(str_cut(&rest, '\n'));
		struct json_scan scan = { .text = line };
		struct json_slice object, name;

		if (json_next(&scan, &object, NULL) < 0 || object.kind != JSON_OBJECT ||
		    !json_at_end(&scan) || !json_member(object, "event", &name))
			continue;
		if (str_is(name.raw, "progress") || str_is(name.raw, "telemetry"))
			events_put(s, str_is(name.raw, "progress") ? "progress" : "telemetry", line);
	}
	buf_release(&text);
	return has_more;
}

static void put_job(struct events *s, const char *name, const struct job *job)
{
	struct buf data = { 0 };
	struct json_writer j = json_writer(&data);

	j.is_compact = true;
	json_begin_object(&j);
	job_put(&j, job);
	json_end_object(&j);
	events_put(s, name, buf_str(&data));
	buf_release(&data);
}

static bool run_more(void *self, struct events *s, struct err *e)
{
	struct run_stream *r = self;
	struct arena arena = { 0 };
	struct job job;
	bool goes_on = true;

	if (!r->is_over && !events_is_due(s)) {
		tail_log(r, false, s);
		tail_events(r, false, s);
		return true;
	}
	goes_on = store_job(events_web(s)->store, r->id, &arena, &job, e) == 0;
	if (goes_on) {
		bool is_over = r->is_over = job_is_over(&job);
		bool has_more = tail_log(r, is_over, s);

		has_more |= tail_events(r, is_over, s);
		if (!str_is(job.state, r->state)) {
			snprintf(r->state, sizeof(r->state), "%.*s", (int)job.state.n, job.state.p);
			put_job(s, "job", &job);
		}
		/* Everything that was written before the end has been read. */
		if (is_over && !has_more) {
			put_job(s, "end", &job);
			goes_on = false;
		}
	}
	arena_release(&arena);
	return goes_on;
}

static void run_drop(void *self)
{
	struct run_stream *r = self;

	free(r->log.path);
	free(r->events.path);
	buf_release(&r->log.kept);
	buf_release(&r->events.kept);
	free(r);
}

static char *path_in(const struct web *w, const struct job *job, const char *name)
{
	char *folder = launch_folder(w, job), *path = folder ? file_join(folder, name) : NULL;

	free(folder);
	return path ? path : mem_text("");
}

void launch_events(const struct web_request *r, const struct job *job, struct web_answer *a)
{
	struct run_stream *s = mem_alloc(sizeof(*s));

	snprintf(s->id, sizeof(s->id), "%.*s", (int)job->id.n, job->id.p);
	s->log.path = path_in(r->web, job, LAUNCH_LOG);
	s->events.path = path_in(r->web, job, LAUNCH_EVENTS);
	events_answer(r, a, run_more, run_drop, s);
}

int launch_log(const struct web_request *r, const struct job *job, struct web_answer *a,
	       struct err *e)
{
	struct str offset = web_param(r, "offset");
	char *path = path_in(r->web, job, LAUNCH_LOG), next[24];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int64_t at = 0;
	ssize_t n = 0;

	free(path);
	if (offset.n && (!str_to_i64(offset, &at) || at < 0)) {
		if (fd >= 0)
			close(fd);
		return err_set(e, ERR_USAGE, "offset: expected a number of bytes");
	}
	web_bytes(a, "text/plain; charset=utf-8");
	if (fd >= 0 && buf_reserve(&a->body, LOG_ANSWER_BYTES) == 0)
		n = pread(fd, a->body.data, LOG_ANSWER_BYTES, at);
	if (n > 0) {
		a->body.len = (size_t)n;
		a->body.data[n] = 0;
	}
	if (fd >= 0)
		close(fd);
	snprintf(next, sizeof(next), "%lld", (long long)(at + (n > 0 ? n : 0)));
	web_set_header(r, a, "X-Next-Offset", next);
	return 0;
}
