/* SPDX-License-Identifier: Apache-2.0 */
/* web/events.c - see events.h. */
#include "web/events.h"

#include "base/clock.h"
#include "base/mem.h"
#include "web/state.h"

#define HEARTBEAT_NS 15000000000 /* so that nothing in between takes the stream for dead */
#define OTHERS_NS 2000000000     /* between two looks at jobs that nobody here has changed */

struct events {
	struct web *web;
	events_more *more;
	void (*drop)(void *self);
	void *self;
	struct buf out;
	int64_t last_ns, looked_ns;
	uint64_t changes;
	bool is_over;
};

/* The stream is asleep meanwhile: nobody pulls. */
static void look(void *self)
{
	struct events *s = self;
	struct err e = { 0 };

	if (!s->out.len && !s->is_over)
		s->is_over = !s->more(s->self, s, &e);
	if (e.code)
		log_say(s->web, NULL, "error", e.text);
	if (!s->out.len && !s->is_over && clock_mono_ns() - s->last_ns > HEARTBEAT_NS)
		buf_add_text(&s->out, ":\n\n");
}

static long pull(void *self, char *out, size_t room)
{
	struct events *s = self;

	if (!s->out.len)
		return s->is_over ? 0 : -2;
	if (room > s->out.len)
		room = s->out.len;
	memcpy(out, s->out.data, room);
	buf_cut(&s->out, room);
	s->last_ns = clock_mono_ns();
	return (long)room;
}

static void pull_end(void *self)
{
	struct events *s = self;

	s->drop(s->self);
	buf_release(&s->out);
	free(s);
}

void events_answer(const struct web_request *r, struct web_answer *a, events_more *more,
		   void (*drop)(void *self), void *self)
{
	struct events *s = mem_alloc(sizeof(*s));

	s->web = r->web;
	s->more = more;
	s->drop = drop;
	s->self = self;
	s->last_ns = clock_mono_ns();
	web_bytes(a, "text/event-stream");
	a->is_stream = true;
	a->self = s;
	a->pull = pull;
	a->pull_end = pull_end;
	a->look = look;
}

void events_put(struct events *s, const char *name, struct str data)
{
	buf_printf(&s->out, "event: %s\ndata: ", name);
	buf_add_str(&s->out, data);
	buf_add_text(&s->out, "\n\n");
}

struct web *events_web(const struct events *s)
{
	return s->web;
}

bool events_is_due(struct events *s)
{
	uint64_t changes = atomic_load(&s->web->job_changes);
	int64_t now = clock_mono_ns();

	if (s->looked_ns && changes == s->changes && now - s->looked_ns < OTHERS_NS)
		return false;
	s->changes = changes;
	s->looked_ns = now;
	return true;
}

/* ---- uploads ---- */

struct upload_stream {
	char id[17];
	bool *seen;
	size_t n_seen, n_done;
	bool has_begun;
};

static bool upload_more(void *self, struct events *s, struct err *e)
{
	struct upload_stream *u = self;
	struct arena arena = { 0 };
	struct buf data = { 0 };
	struct json_writer j = json_writer(&data);
	struct job job;
	bool goes_on;

	if (!events_is_due(s))
		return true;
	goes_on = store_job(s->web->store, u->id, &arena, &job, e) == 0;
	if (goes_on && (!u->has_begun || job.n_done != u->n_done || job_is_over(&job))) {
		if (job.n_files > u->n_seen) {
			u->seen = mem_grow(u->seen, job.n_files, sizeof(*u->seen));
			memset(u->seen + u->n_seen, 0, job.n_files - u->n_seen);
			u->n_seen = job.n_files;
		}
		u->has_begun = true;
		u->n_done = job.n_done;
		j.is_compact = true;
		json_begin_object(&j);
		job_put(&j, &job);
		job_put_files(&j, &job, u->seen);
		json_end_object(&j);
		events_put(s, "progress", buf_str(&data));
	}
	if (goes_on && job_is_over(&job)) {
		buf_reset(&data);
		buf_printf(&data, "{\"job_id\":\"%s\",\"state\":\"%.*s\"}", u->id,
			   (int)job.state.n, job.state.p);
		events_put(s, "end", buf_str(&data));
		goes_on = false;
	}
	buf_release(&data);
	arena_release(&arena);
	return goes_on;
}

static void upload_drop(void *self)
{
	struct upload_stream *u = self;

	free(u->seen);
	free(u);
}

void events_upload(const struct web_request *r, const struct job *job, struct web_answer *a)
{
	struct upload_stream *u = mem_alloc(sizeof(*u));

	snprintf(u->id, sizeof(u->id), "%.*s", (int)job->id.n, job->id.p);
	events_answer(r, a, upload_more, upload_drop, u);
}
