/* SPDX-License-Identifier: Apache-2.0 */
/* beside.c - while load runs: probes, the profiler, the servers' /metrics, the machine. */
#include "bench/serve/point_internal.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "client/http/prometheus.h"
#include "client/http/url.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "host/proc/tree.h"

/* ---- probes: a chain, each is due some time after the one before ---- */

#define PROBE_SECONDS 21600.0 /* probes are planned for the longest a request may take */

struct probe {
	struct stage *stage;
	struct load_opts opts;
	struct workload workload;
	struct sample sample;
	struct plan plan;
	struct prepared prepared;
	struct load_progress progress;
	struct load_stats stats;
	struct err err;
	uint32_t first_row;
	atomic_bool close, cancel, is_over;
	pthread_t thread;
	bool is_running;
};

uint32_t probe_shards(const struct serve_opts *o)
{
	return o->probe_request_rate > 0 ? 1 : 0;
}

static uint32_t count_probes(const struct serve_opts *o)
{
	double seconds = o->duration.is_set ? o->duration.v + 1 : PROBE_SECONDS;
	double n = ceil(o->probe_request_rate * seconds);

	return n < PROBES_MAX ? (uint32_t)n + 1 : PROBES_MAX;
}

/* A prompt of one token; all else in the bodies is the first request's. */
static void make_sample(struct probe *p)
{
	const struct workload *w = &p->stage->point->workload;

	p->sample = (struct sample){
		.prompt = STR("Hi"), .kind = PROMPT_TEXT, .prompt_len = 1, .output_len = 1,
		.timestamp_s = NAN, .overrides = w->v[0].overrides,
		.headers = w->v[0].headers,
	};
	if (strcmp(p->stage->point->endpoint->name, "vllm-rerank") == 0) {
		p->sample.prompt = STR("[\"Hi\", \"Hi\"]"); /* a query and one document */
		p->sample.kind = PROMPT_JSON;
	}
	p->workload = (struct workload){
		.v = &p->sample, .n = 1, .is_eos_ignored = w->is_eos_ignored,
	};
}

/* Every request is the same; its bytes are made once. */
static int make_requests(struct probe *p, struct err *e)
{
	struct prepare_opts how = stage_prepare_opts(p->stage, true);
	struct plan one;
	struct str bytes;
	int rc;

	plan_same(&one, 1, 0);
	rc = prepare(&how, &one, &p->workload, &p->prepared, e);
	plan_release(&one);
	if (rc < 0)
		return err_wrap(e, "--probe-request-rate");
	bytes = p->prepared.request[0];
	p->prepared.n = p->plan.n;
	p->prepared.request = mem_grow(p->prepared.request, p->plan.n, sizeof(bytes));
	for (uint32_t i = 1; i < p->plan.n; i++)
		p->prepared.request[i] = bytes;
	return 0;
}

static void probe_free(struct probe *p)
{
	prepared_release(&p->prepared);
	plan_release(&p->plan);
	free(p);
}

/* The load looks at one flag, ours: probes must also end when the load is interrupted. */
static void look_for_cancel(void *self)
{
	struct probe *p = self;

	if (stage_is_cancelled(p->stage))
		atomic_store(&p->cancel, true);
}

int probe_new(struct stage *s, struct probe **out, struct err *e)
{
	struct probe *p;

	*out = NULL;
	if (!probe_shards(s->opts))
		return 0;
	p = mem_alloc(sizeof(*p));
	p->stage = s;
	make_sample(p);
	plan_chain(&p->plan, count_probes(s->opts), 1.0 / s->opts->probe_request_rate);
	if (make_requests(p, e) < 0) {
		probe_free(p);
		return -1;
	}
	p->first_row = record_add_rows(&s->point->record, p->plan.n);
	p->opts = stage_load_opts(s, PHASE_PROBE);
	p->opts.workload = &p->workload;
	p->opts.first_shard = s->derived->load.threads;
	p->opts.max_concurrency = 0;
	p->opts.close = &p->close;
	p->opts.tick = look_for_cancel;
	p->opts.tick_self = p;
	*out = p;
	return 0;
}

void probe_say(const struct probe *p)
{
	char number[FMT_F64_BYTES];

	stage_say(p->stage, "Probe request rate: %s req/s",
		  fmt_f64(number, p->stage->opts->probe_request_rate));
}

static void *run(void *self)
{
	struct probe *p = self;

	if (load_run(&p->opts, &p->plan, &p->prepared, &p->stage->point->record, p->first_row,
		     &p->progress, &p->stats, &p->cancel, &p->err) == 0)
		p->err.code = ERR_NONE;
	atomic_store(&p->is_over, true);
	return NULL;
}

void probe_start(struct probe *p)
{
	p->is_running = pthread_create(&p->thread, NULL, run, p) == 0;
	if (!p->is_running)
		err_set(&p->err, ERR_LIMIT, "cannot start their thread");
}

/* When upstream's loop would have ended: the last probe's end and the pause after it. */
static int64_t tail_ns(const struct probe *p)
{
	const struct request_row *row = &p->stage->point->record.row[p->first_row];
	int64_t last = 0;

	for (uint32_t i = 0; i < p->plan.n; i++)
		if (row[i].end_ns > last && row[i].state != REQ_CANCELLED)
			last = row[i].end_ns;
	return last ? last + (int64_t)(1e9 / p->stage->opts->probe_request_rate) : 0;
}

/* Rows of a run that never began would look unfinished. */
static void forget_rows(struct probe *p)
{
	for (uint32_t i = 0; i < p->plan.n; i++) {
		struct request_row *row = &p->stage->point->record.row[p->first_row + i];

		row->phase = PHASE_PROBE;
		record_finish(row, REQ_UNSENT);
	}
}

void probe_end(struct probe *p)
{
	struct record *record;
	int64_t tail;

	if (!p)
		return;
	record = &p->stage->point->record;
	/* As in upstream, every load has at least one probe. */
	while (p->is_running && !atomic_load(&p->is_over) &&
	       load_progress_total(&p->progress).admitted == 0)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	atomic_store(&p->close, true);
	if (p->stage->point->load.end != LOAD_WHOLE)
		atomic_store(&p->cancel, true);
	if (p->is_running)
		pthread_join(p->thread, NULL);
	if (p->err.code)
		stage_warn(p->stage, "no probes were sent: %s", p->err.text);
	if (!p->is_running || p->err.code) {
		forget_rows(p);
	} else if (!(p->stage->derived->fixes & FIX_PROBE_TAIL) && !record->is_interrupted) {
		tail = tail_ns(p);
		if (tail > record->stop_ns)
			record->stop_ns = tail;
	}
	probe_free(p);
}

/* ---- the profiler ---- */

#define LOOK_NS 5000000     /* between two looks at the counters */
#define POST_TIMEOUT_MS 300000 /* writing a trace takes a server minutes */

/* The watcher's progress; later values imply earlier ones. */
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

/* Sends a POST without a body to every profiled server; returns how many answered 200. */
static unsigned post(const struct stage *s, const char *path, const atomic_bool *cancel)
{
	static const char type[] = "Content-Type: application/octet-stream"; /* as upstream's */
	const struct serve_derived *d = s->derived;
	const struct opt_list *others = &s->opts->profile_urls;
	const double stop_s = s->opts->profile_stop_timeout_s;
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
		remote.fetch.proxy = !others->n && s->proxy[i] ? s->proxy[i] : "";
		remote.fetch.cancel = cancel;
		if (remote_target_init(&t, &remote, path, &ignored) == 0) {
			while (t.header[k] && strncasecmp(t.header[k], type, 13) != 0)
				k++;
			if (!t.header[k]) {
				t.header = mem_grow(t.header, k + 2, sizeof(*t.header));
				t.header[k] = mem_text(type);
				t.header[k + 1] = NULL;
				t.opts.header = t.header;
			}
			t.opts.timeout_ms = stop_s > 0 ? (int64_t)(stop_s * 1e3) : POST_TIMEOUT_MS;
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

	for (unsigned i = 0; i < p->stage->derived->load.threads; i++) {
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
	if (!p)
		return;
	atomic_store(&p->is_over, true);
	if (p->is_watching) {
		pthread_join(p->thread, NULL);
		profile_tick(p);
	}
	if (p->is_watching && p->said == WATCH_WAITS && p->is_timed)
		stage_warn(p->stage, "the load ended before the profiler was due to start, after "
			   "%g s, so nothing was profiled", p->stage->opts->profile_from_s);
	else if (p->is_watching && p->said == WATCH_WAITS)
		stage_warn(p->stage, "--profile-batch-threshold %u: there were never this many "
			   "requests in flight, so nothing was profiled", p->threshold);
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
	/* Also after Ctrl-C: a profiler that keeps running would slow down whatever comes next. */
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

/* ---- the servers' /metrics ---- */

struct watch_servers {
	struct remote_target *target;
	struct telemetry_source *source;
	size_t n;
	struct arena arena;
	struct telemetry *telemetry;
};

/* proxy: as requests to that server go; NULL: none. */
static void add_server(struct watch_servers *w, const struct stage *s, const char *base_url,
		       const char *path, const char *proxy)
{
	struct remote remote = s->remote;
	struct remote_target *t = &w->target[w->n];
	struct buf labels = { 0 };
	struct err ignored;

	remote.base_url = base_url;
	remote.fetch.proxy = proxy ? proxy : "";
	if (remote_target_init(t, &remote, path, &ignored) < 0) {
		remote_target_release(t);
		return;
	}
	prometheus_add_label(&labels, "url", str_of(base_url));
	w->source[w->n++] = (struct telemetry_source){
		.url = t->url.data, .labels = arena_text(&w->arena, buf_str(&labels)),
		.opts = t->opts,
	};
	buf_release(&labels);
}

struct watch_servers *watch_begin(struct stage *s)
{
	const struct serve_derived *d = s->derived;
	struct str urls = str_of(s->opts->metrics_url); /* one, or several with commas between */
	size_t room = d->n_urls + 1;
	struct watch_servers *w;

	if (!stage_may_ask_server(s) || d->compat & COMPAT_V011 ||
	    (s->hooks->ranks && s->hooks->ranks->rank)) /* rank 0 watches */
		return NULL;
	for (size_t i = 0; i < urls.n; i++)
		room += urls.p[i] == ',';
	w = mem_alloc(sizeof(*w));
	w->target = mem_array(room, sizeof(*w->target));
	w->source = mem_array(room, sizeof(*w->source));
	for (unsigned i = 0; i < d->n_urls && !urls.p; i++)
		add_server(w, s, d->base_urls[i], "/metrics", s->proxy[i]);
	while (urls.n) {
		struct str url = str_trim(str_cut(&urls, ','));

		if (url.n)
			add_server(w, s, arena_text(&w->arena, url), "", s->proxy[0]);
	}
	w->telemetry = telemetry_begin(w->source, w->n, (int64_t)(s->opts->metrics_interval * 1e9));
	return w;
}

void watch_now(const struct watch_servers *w, struct telemetry_now *out)
{
	*out = (struct telemetry_now){ NAN, NAN, NAN };
	if (w)
		telemetry_now(w->telemetry, out);
}

void watch_end(struct watch_servers *w, struct record *into)
{
	if (!w)
		return;
	telemetry_end(w->telemetry, into);
	for (size_t i = 0; i < w->n; i++)
		remote_target_release(&w->target[i]);
	free(w->target);
	free(w->source);
	arena_release(&w->arena);
	free(w);
}

/* ---- the machine ---- */

static bool is_here(const struct url *u)
{
	return u->is_unix || strcmp(u->host, "localhost") == 0 || strcmp(u->host, "::1") == 0 ||
	       strncmp(u->host, "127.", 4) == 0;
}

static size_t find_servers(const struct stage *s, struct system_process *out)
{
	size_t n = 0;

	for (unsigned i = 0; i < s->derived->n_urls; i++) {
		const struct url *url = &s->derived->url[i];
		pid_t pid = 0; /* that listens there; 0: not on this machine, or not seen */
		bool is_known;

		if (is_here(url))
			port_look(url->port, url->is_unix ? url->socket : NULL, 0, &pid);
		is_known = pid == 0;
		for (size_t k = 0; k < n; k++)
			is_known |= out[k].pid == pid;
		if (!is_known)
			out[n++] = (struct system_process){ pid, "server" };
	}
	return n;
}

struct system_watch *watch_system(const struct stage *s)
{
	struct system_opts opts = s->derived->system;
	struct system_process *found;
	struct system_watch *watch;

	if (!opts.gpu && !opts.host && !opts.process)
		return NULL;
	found = mem_array(s->derived->n_urls, sizeof(*found));
	if (opts.process && opts.n_processes == 0) {
		opts.processes = found;
		opts.n_processes = find_servers(s, found);
	}
	watch = system_begin(&opts);
	free(found);
	return watch;
}
