/* SPDX-License-Identifier: Apache-2.0 */
/* profile.c - see profile.h. */
#include "run/profile.h"

#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"

#define LOOK_NS 5000000     /* between two looks at the counters */
#define POST_TIMEOUT_MS 300000 /* writing a trace takes a server minutes */

/* What the watcher has come to; later values imply earlier ones. */
enum watch_state { WATCH_WAITS, WATCH_STARTS, WATCH_STARTED, WATCH_STOPS, WATCH_STOPPED };

struct profile {
	struct stage *stage;
	const struct load_progress *progress;
	uint32_t threshold; /* 0: none */
	bool is_timed;      /* a window of time; otherwise, without a threshold, started at once */
	int64_t after_ns, lasting_ns; /* lasting_ns INT64_MAX: until load is over */
	bool is_started;    /* the server said 200 */
	bool is_stopped;
	_Atomic int state;
	int said;           /* of state */
	atomic_bool is_over;
	pthread_t thread;
	bool is_watching;
};

static bool is_timed(const struct serve_opts *o)
{
	return o->profile && !o->profile_batch_threshold.is_set &&
	       (o->profile_from_s > 0 || o->profile_for_s > 0);
}

static int64_t post_timeout_ms(const struct serve_opts *o)
{
	return o->profile_stop_timeout_s > 0 ? (int64_t)(o->profile_stop_timeout_s * 1e3) :
					       POST_TIMEOUT_MS;
}

/* A POST without a body to everybody who is profiled: how many answered 200. */
static unsigned post(const struct stage *s, const char *path, const atomic_bool *cancel)
{
	static const char type[] = "Content-Type: application/octet-stream"; /* as upstream's */
	const struct serve_derived *d = s->derived;
	const struct opt_list *others = &s->opts->profile_urls;
	size_t urls = others->n ? others->n : d->n_urls;
	unsigned n = 0;

	for (size_t i = 0; i < urls; i++) {
		struct remote remote = s->remote;
		struct remote_target t;
		struct fetch_reply reply = { 0 };
		struct str nothing = { "", 0 };
		struct err ignored;
		size_t k = 0;

		remote.base_url = others->n ? others->v[i] : d->base_urls[i];
		remote.proxy = !others->n && s->proxy[i] ? s->proxy[i] : "";
		remote.cancel = cancel;
		if (remote_target_init(&t, &remote, path, &ignored) == 0) {
			while (t.header[k] && strncasecmp(t.header[k], type, 13) != 0)
				k++;
			if (!t.header[k]) {
				t.header = mem_grow(t.header, k + 2, sizeof(*t.header));
				t.header[k] = mem_text(type);
				t.header[k + 1] = NULL;
				t.opts.header = t.header;
			}
			t.opts.timeout_ms = post_timeout_ms(s->opts);
			if (fetch(t.url.data, &nothing, &t.opts, &reply, &ignored) == 0)
				n += reply.status == 200;
			fetch_reply_release(&reply);
		}
		remote_target_release(&t);
	}
	return n;
}

static void pause_ns(int64_t ns)
{
	struct timespec step = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&step, NULL);
}

static uint32_t in_flight(const struct profile *p)
{
	uint32_t admitted = 0, done = 0;

	for (unsigned i = 0; i < p->stage->derived->threads; i++) {
		const struct load_lane *lane = &p->progress->lane[i];

		done += atomic_load_explicit(&lane->done, memory_order_relaxed);
		admitted += atomic_load_explicit(&lane->admitted, memory_order_relaxed);
	}
	return admitted > done ? admitted - done : 0;
}

static void *watch(void *self)
{
	struct profile *p = self;
	int64_t begin = clock_mono_ns();

	while (!atomic_load(&p->is_over) &&
	       (in_flight(p) < p->threshold || clock_mono_ns() - begin < p->after_ns))
		pause_ns(LOOK_NS);
	if (atomic_load(&p->is_over))
		return NULL;
	atomic_store(&p->state, WATCH_STARTS);
	p->is_started = post(p->stage, "/start_profile", NULL) > 0;
	begin = clock_mono_ns();
	atomic_store(&p->state, WATCH_STARTED);
	while (!atomic_load(&p->is_over) && clock_mono_ns() - begin < p->lasting_ns)
		pause_ns(LOOK_NS);
	atomic_store(&p->state, WATCH_STOPS);
	p->is_stopped = post(p->stage, "/stop_profile", NULL) > 0;
	atomic_store(&p->state, WATCH_STOPPED);
	return NULL;
}

struct profile *profile_begin(struct stage *s, const struct load_progress *progress)
{
	const struct serve_opts *o = s->opts;
	struct profile *p;

	s->point->is_profiled = false;
	if ((!o->profile && !o->profile_batch_threshold.is_set) || !stage_may_ask_server(s))
		return NULL;
	p = mem_alloc(sizeof(*p));
	p->stage = s;
	p->progress = progress;
	p->lasting_ns = (int64_t)(o->profile_duration * 1e9);
	if (o->profile_batch_threshold.is_set)
		p->threshold = o->profile_batch_threshold.v < UINT32_MAX
			       ? (uint32_t)o->profile_batch_threshold.v : UINT32_MAX;
	if (is_timed(o)) {
		p->is_timed = true;
		p->after_ns = (int64_t)(o->profile_from_s * 1e9);
		p->lasting_ns = o->profile_for_s > 0 ? (int64_t)(o->profile_for_s * 1e9)
						    : INT64_MAX;
	}
	if (p->threshold || p->is_timed)
		return p;
	stage_say(s, "Starting profiler...");
	p->is_started = post(s, "/start_profile", s->hooks->cancel) > 0;
	if (p->is_started)
		stage_say(s, "Profiler started");
	return p;
}

void profile_watch(struct profile *p)
{
	if (p && (p->threshold || p->is_timed))
		p->is_watching = pthread_create(&p->thread, NULL, watch, p) == 0;
}

void profile_tick(struct profile *p)
{
	int state;

	if (!p || !p->is_watching)
		return;
	state = atomic_load(&p->state);
	for (; p->said < state; p->said++) {
		if (p->said + 1 == WATCH_STARTS)
			stage_say(p->stage, "Starting profiler...");
		else if (p->said + 1 == WATCH_STARTED && p->is_started)
			stage_say(p->stage, "Profiler started");
		else if (p->said + 1 == WATCH_STOPS)
			stage_say(p->stage, "Stopping profiler...");
		else if (p->said + 1 == WATCH_STOPPED && p->is_stopped)
			stage_say(p->stage, "Profiler stopped");
	}
}

void profile_end(struct profile *p)
{
	struct buf text = { 0 };

	if (!p)
		return;
	atomic_store(&p->is_over, true);
	if (p->is_watching) {
		pthread_join(p->thread, NULL);
		profile_tick(p);
		if (p->said == WATCH_WAITS) {
			if (p->is_timed)
				buf_printf(&text, "the load was over before the profiler was to start, after "
					   "%g s; nothing was profiled", p->stage->opts->profile_from_s);
			else
				buf_printf(&text, "--profile-batch-threshold %u: never so many requests were "
					   "in flight; nothing was profiled", p->threshold);
			stage_warn(p->stage, text.data);
			buf_release(&text);
		}
	}
	p->stage->point->is_profiled = p->is_started;
	free(p);
}

void stage_stop_profiler(struct stage *s)
{
	const struct serve_opts *o = s->opts;

	if (!o->profile || o->profile_batch_threshold.is_set || is_timed(o) ||
	    !stage_may_ask_server(s))
		return;
	stage_say(s, "Stopping profiler...");
	/* Also after Ctrl-C: a profiler that goes on would slow down whatever comes next. */
	if (post(s, "/stop_profile", NULL) > 0)
		stage_say(s, "Profiler stopped");
}

void profile_reset_cache(struct stage *s)
{
	if (!s->opts->reset_prefix_cache || !stage_may_ask_server(s) || s->is_reset_missing)
		return;
	if (post(s, "/reset_prefix_cache", s->hooks->cancel) == s->derived->n_urls)
		return;
	s->is_reset_missing = true;
	stage_warn(s, "--reset-prefix-cache: the server did not empty its prefix cache (POST "
		   "/reset_prefix_cache)");
}
