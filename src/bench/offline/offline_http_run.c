/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_http_run.c - a batch against a server: a plan in which everything is due at once, sent by
 * the normal load driver into a record. The measured time is from the first byte sent to the last
 * byte of the last answer; connections are opened before.
 *
 * A call with one list (latency) is one request that holds all prompts. Its usage has only sums,
 * which are spread evenly over its prompts.
 */
#include "bench/offline/offline_internal.h"

#include <math.h>
#include <pthread.h>
#include <time.h>

#include "bench/serve/prepare.h"
#include "client/endpoint/endpoint.h"
#include "client/net/sock.h"
#include "client/plan/plan.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "version.h"

#define CONNECT_TIMEOUT_NS 60000000000
#define REQUEST_TIMEOUT_NS 21600000000000 /* six hours, as upstream's clients wait */
#define THREAD_REQUESTS 2048              /* for each loop, and no more than THREADS */
#define THREADS 4
#define FILES_SPARE 64                    /* descriptors besides connections */
#define WAKE_LOOK_NS 200000
#define DEATH_LOOK_NS 20000000
#define DEATH_LOOKS 50                    /* a second */
#define CLOCK_LOOKS 5
#define CLOCK_STEP_NS 1000000             /* a step of the wall clock that is said */

/* ---- a batch ---- */

int http_put(void *state, const struct offline_batch *b, struct err *e)
{
	struct http *h = state;

	if (b->n > UINT32_MAX)
		return err_set(e, ERR_LIMIT, "%zu requests are more than a plan holds", b->n);
	for (size_t i = 0; b->lora && i < b->n; i++)
		if (b->lora[i] > 0)
			return err_set(e, ERR_RUN, "--backend http does not load adapters; start the server "
				       "with --lora-modules and use bench serve");
	free(h->index);
	h->index = mem_array(b->n + 1, sizeof(*h->index));
	for (size_t i = 0; i < b->n; i++)
		h->index[i] = b->index ? b->index[i] : (uint32_t)i;
	h->w = b->w;
	h->n = b->n;
	h->is_without_priorities = b->is_without_priorities;
	return 0;
}

static const struct sample *sample_of(const struct http *h, size_t i)
{
	return &h->w->v[h->index[i]];
}

/* Whether one list can hold the prompts: all must ask for the same. */
static bool is_joinable(const struct http *h, const struct endpoint *ep)
{
	const struct sample *first = h->n ? sample_of(h, 0) : NULL;

	if (!first || ep != &endpoint_whole_completions || h->is_list_refused)
		return false;
	for (size_t i = 0; i < h->n; i++) {
		const struct sample *s = sample_of(h, i);

		if (s->kind != first->kind || s->output_len != first->output_len ||
		    s->overrides.n || s->media.n)
			return false;
	}
	return true;
}

/* One sample that holds them all. */
static void join(const struct http *h, struct workload *out)
{
	struct sample *s = workload_add(out);
	struct buf list = { 0 };

	buf_add_char(&list, '[');
	for (size_t i = 0; i < h->n; i++) {
		const struct sample *one = sample_of(h, i);

		if (i)
			buf_add_text(&list, ", ");
		if (one->kind == PROMPT_JSON)
			buf_add_str(&list, one->prompt);
		else
			json_quote(&list, one->prompt, false);
		s->prompt_len += one->prompt_len;
	}
	buf_add_char(&list, ']');
	s->kind = PROMPT_JSON;
	s->prompt = arena_str(&out->arena, buf_str(&list));
	s->output_len = sample_of(h, 0)->output_len;
	buf_release(&list);
}

/* ---- one run ---- */

struct offline_call {
	struct http *h;
	const struct offline_run *run;
	const struct endpoint *endpoint;
	struct buf extra;
	struct workload joined;
	const struct workload *w;
	struct plan plan;
	struct prepared prepared;
	struct record record;
	struct load_stats stats;
	struct load_progress *progress;
	atomic_bool stop;         /* for the load: cancelled, silent, or the server is gone */
	bool is_joined, is_silent;
	uint32_t done;            /* when last looked at */
	int64_t moved_ns;
	int64_t offset_ns;        /* of the wall clock to the monotonic one */
	int64_t profile_began_ns, profile_ended_ns;
	/* Resumes a paused server once it has all requests. */
	pthread_t waker;
	bool is_waking, is_paused;
	atomic_bool is_over;
	long woken;               /* the answer's status */
};

static const struct endpoint *choose_endpoint(const struct http *h, const struct offline_run *run)
{
	bool has_media = false;

	for (size_t i = 0; i < h->n; i++)
		has_media |= sample_of(h, i)->media.n > 0;
	if (run->method == OFFLINE_ENCODE)
		return endpoint_find("vllm-pooling");
	return run->method == OFFLINE_CHAT || has_media ? &endpoint_whole_chat :
							  &endpoint_whole_completions;
}

static void put_sampling(struct offline_call *c)
{
	const struct offline_run *r = c->run;
	char temperature[FMT_F64_BYTES], top_p[FMT_F64_BYTES];

	if (r->method == OFFLINE_ENCODE)
		return;
	buf_printf(&c->extra, "{\"n\": %lld, \"temperature\": %s, \"top_p\": %s%s}",
		   (long long)r->n, fmt_f64(temperature, r->temperature), fmt_f64(top_p, r->top_p),
		   r->method == OFFLINE_BEAM ? ", \"use_beam_search\": true" : "");
	if (!r->detokenize && !c->h->is_text_noted) {
		http_warn(c->h, "--disable-detokenize has no effect: a server always answers with text");
		c->h->is_text_noted = true;
	}
}

static void make_plan(struct offline_call *c)
{
	struct http *h = c->h;

	c->is_joined = c->run->is_one_call && is_joinable(h, c->endpoint);
	if (c->is_joined) {
		join(h, &c->joined);
		c->w = &c->joined;
		plan_same(&c->plan, 1, 0);
		return;
	}
	c->w = h->w;
	plan_same(&c->plan, (uint32_t)h->n, 0);
	for (size_t i = 0; i < h->n; i++)
		c->plan.entry[i].sample = h->index[i];
}

static int check_files(const struct offline_call *c, struct err *e)
{
	size_t limit = sock_raise_nofile();

	if (c->plan.n + FILES_SPARE <= limit)
		return 0;
	return err_set(e, ERR_RUN, "%u connections are open at once, but this process may open only "
		       "%zu files (ulimit -n)", c->plan.n, limit);
}

static int make_ready(struct offline_call *c, struct err *e)
{
	static const char *const without[] = { "priority" };
	struct http *h = c->h;
	const char *url = h->url, *proxy = *h->remote.fetch.proxy ? h->remote.fetch.proxy : NULL;
	const struct prepare_opts how = {
		.endpoint = c->endpoint,
		.encode = { .model = str_of(h->model), .is_ignore_eos = c->run->ignore_eos &&
			    c->run->method != OFFLINE_ENCODE, .extra_body = buf_str(&c->extra) },
		.base_url = &url, .path = c->endpoint->default_path, .proxy = &proxy, .n_urls = 1,
		.api_key = h->remote.api_key, .key_header = h->remote.key_header,
		.is_without_ids = true, .version = PROFLLM_VERSION,
		.bytes_max = SIZE_MAX,
		.omit = without, .n_omit = h->is_without_priorities ? 1 : 0,
	};
	unsigned threads = 1 + c->plan.n / THREAD_REQUESTS;

	if (threads > THREADS)
		threads = THREADS;
	if (check_files(c, e) < 0 || prepare(&how, &c->plan, c->w, &c->prepared, e) < 0 ||
	    record_init(&c->record, c->plan.n, threads, c->plan.n, false, false, e) < 0)
		return -1;
	record_add_rows(&c->record, c->plan.n);
	for (uint32_t i = 0; i < c->plan.n; i++) {
		const struct sample *s = &c->w->v[c->plan.entry[i].sample];
		struct request_row *row = &c->record.row[i];

		row->prompt_tokens = row->sample_prompt_tokens = s->prompt_len;
		row->asked_tokens = s->output_len < 0 ? 0 : (uint32_t)s->output_len;
		row->sequences = 1;
	}
	return 0;
}

/* ---- while it runs ---- */

static bool is_cancelled(const struct http *h)
{
	return h->hooks.cancel && atomic_load(h->hooks.cancel);
}

/* Called a few times a second. Answers that end are the server's signs of life. */
static void tick(void *self)
{
	struct offline_call *c = self;
	struct load_totals t = load_progress_total(c->progress);
	int64_t now = clock_mono_ns();

	if (t.done != c->done) {
		c->done = t.done;
		c->moved_ns = now;
	}
	c->is_silent = (double)(now - c->moved_ns) / 1e9 > c->h->opts->worker_timeout;
	if (is_cancelled(c->h) || c->is_silent ||
	    (c->h->server && !server_is_alive(c->h->server)))
		atomic_store(&c->stop, true);
	if (c->h->hooks.progress && c->run->progress)
		c->h->hooks.progress(c->h->hooks.self, c->run->progress, t.done, c->plan.n);
}

static void *wake(void *self)
{
	struct offline_call *c = self;
	struct err ignored;

	while (!atomic_load(&c->is_over) &&
	       load_progress_total(c->progress).admitted < c->plan.n) {
		struct timespec step = { 0, WAKE_LOOK_NS };

		nanosleep(&step, NULL);
	}
	c->woken = http_post(c->h, "/wake_up?tags=scheduling", NULL, NULL, &ignored);
	return NULL;
}

static void started(void *self)
{
	struct offline_call *c = self;

	if (c->is_paused)
		c->is_waking = pthread_create(&c->waker, NULL, wake, c) == 0;
}

/* Before the clock starts: the server schedules its queue only once all of it is there. */
static int pause_server(struct offline_call *c, struct err *e)
{
	long status;

	if (!c->run->is_prequeued)
		return 0;
	status = http_post(c->h, "/sleep?level=0&mode=abort", NULL, NULL, e);
	if (status < 0)
		return -1;
	if (status != 200)
		return err_set(e, ERR_RUN, "the server does not pause its scheduler (POST /sleep: HTTP "
			       "status %ld)", status);
	c->is_paused = true;
	return 0;
}

static int wake_server(struct offline_call *c, struct err *e)
{
	struct err ignored;

	if (!c->is_paused)
		return 0;
	atomic_store(&c->is_over, true);
	if (c->is_waking)
		pthread_join(c->waker, NULL);
	else
		c->woken = http_post(c->h, "/wake_up?tags=scheduling", NULL, NULL, &ignored);
	return c->woken == 200 ? 0 : err_set(e, ERR_RUN, "the server does not go on after its pause "
					     "(POST /wake_up: HTTP status %ld)", c->woken);
}

static int profile(struct offline_call *c, const char *path, int64_t *at_ns, bool is_begin,
		   struct err *e)
{
	long status;

	if (!c->run->is_profiled)
		return 0;
	if (is_begin)
		*at_ns = clock_mono_ns();
	status = http_post(c->h, path, NULL, NULL, e);
	if (!is_begin)
		*at_ns = clock_mono_ns();
	if (status < 0)
		return err_wrap(e, "POST %s", path);
	return status == 200 ? 0 : err_set(e, ERR_RUN, "POST %s: HTTP status %ld; a server profiles "
					   "when it is started with --profiler-config", path, status);
}

/* The wall clock minus the monotonic one, from the closest of several readings of both. */
static int64_t clock_offset_ns(void)
{
	int64_t offset = 0, closest = INT64_MAX;

	for (int i = 0; i < CLOCK_LOOKS; i++) {
		int64_t before = clock_mono_ns(), real = clock_real_ns();
		int64_t took = clock_mono_ns() - before;

		if (took < closest) {
			closest = took;
			offset = real - before - took / 2;
		}
	}
	return offset;
}

static int send_all(struct offline_call *c, struct err *e)
{
	struct http *h = c->h;
	const char *url = h->url, *proxy = *h->remote.fetch.proxy ? h->remote.fetch.proxy : NULL;
	const struct load_opts opts = {
		.transport = &transport_native,
		.net = { .base_url = &url, .n_endpoints = 1, .proxy = &proxy, .is_stamped = true,
			 .warm_connections = c->plan.n, .connect_timeout_ns = CONNECT_TIMEOUT_NS,
			 .request_timeout_ns = REQUEST_TIMEOUT_NS },
		.endpoint = c->endpoint, .workload = c->w, .extra_body = buf_str(&c->extra),
		.threads = c->record.n_shards, .phase = PHASE_MAIN,
		.started = started, .started_self = c, .tick = tick, .tick_self = c,
	};
	struct err unwoken = { 0 };
	int rc;

	c->moved_ns = clock_mono_ns();
	c->offset_ns = clock_offset_ns();
	if (pause_server(c, e) < 0)
		return -1;
	rc = profile(c, "/start_profile", &c->profile_began_ns, true, e);
	if (rc == 0)
		rc = load_run(&opts, &c->plan, &c->prepared, &c->record, 0, c->progress, &c->stats,
			      &c->stop, e);
	if (wake_server(c, &unwoken) < 0 && rc == 0) {
		*e = unwoken;
		rc = -1;
	}
	if (rc == 0)
		rc = profile(c, "/stop_profile", &c->profile_ended_ns, false, e);
	return rc;
}

/* ---- results ---- */

/* The first request that failed; NULL: none. */
static const struct request_row *first_failed(const struct offline_call *c, uint32_t *n)
{
	const struct request_row *first = NULL;

	*n = 0;
	for (uint32_t i = 0; i < c->plan.n; i++)
		if (c->record.row[i].state != REQ_DONE && (*n)++ == 0)
			first = &c->record.row[i];
	return first;
}

/* Connections break before the process has ended, so a server of ours gets a moment to end. */
static bool has_died(struct offline_call *c, struct err *e)
{
	const struct timespec step = { 0, DEATH_LOOK_NS };
	uint32_t n;
	const struct request_row *row = first_failed(c, &n);
	bool is_broken = c->h->server && row && row->status == 0 && !c->is_silent;

	for (int i = 0; !http_has_died(c->h, e); i++) {
		if (!is_broken || i == DEATH_LOOKS)
			return false;
		nanosleep(&step, NULL);
	}
	return true;
}

static int explain(struct offline_call *c, struct err *e)
{
	struct buf why = { 0 };
	const struct request_row *row;
	uint32_t n;

	if (is_cancelled(c->h))
		return err_set(e, ERR_CANCELLED, "stopped");
	if (has_died(c, e))
		return -1;
	if (c->is_silent)
		return err_set(e, ERR_RUN, "the server has answered nothing for %g seconds "
			       "(--worker-timeout)", c->h->opts->worker_timeout);
	row = first_failed(c, &n);
	if (!row)
		return 0;
	record_error_of(&c->record, row, &why);
	for (size_t i = 0; i < why.len; i++)
		if (why.data[i] == '\n')
			why.data[i] = ' ';
	err_set(e, ERR_RUN, "%u of %u requests failed; the first: %s", n, c->plan.n,
		why.len ? why.data : fail_name((enum fail_category)row->fail));
	buf_release(&why);
	return -1;
}

/* True if a request with a list of prompts got status 400 or an unreadable answer. */
static bool is_refusal_of_list(const struct offline_call *c)
{
	const struct request_row *row = &c->record.row[0];

	return c->is_joined && c->h->n > 1 && (row->status == 400 || row->status == 422);
}

/* Share i of a sum spread evenly; the first ones get the remainder. */
static uint32_t share(uint64_t sum, size_t n, size_t i)
{
	return (uint32_t)(sum / n + (i < sum % n));
}

/* Whether the server reports cached tokens: without any it may have none, or not report them. */
static bool is_cache_told(const struct offline_call *c)
{
	for (uint32_t i = 0; i < c->plan.n; i++)
		if (c->record.row[i].cached_tokens)
			return true;
	return false;
}

static void fill(const struct offline_call *c, struct offline_outcome *out)
{
	int64_t first = INT64_MAX, last = 0;
	size_t n = c->h->n;

	out->prompt = arena_alloc(&out->arena, n * sizeof(*out->prompt));
	out->output = arena_alloc(&out->arena, n * sizeof(*out->output));
	out->e2el_s = arena_alloc(&out->arena, n * sizeof(*out->e2el_s));
	for (uint32_t i = 0; i < c->plan.n; i++) {
		const struct request_row *row = &c->record.row[i];

		first = row->sent_ns < first ? row->sent_ns : first;
		last = row->last_event_ns > last ? row->last_event_ns : last;
	}
	if (is_cache_told(c))
		out->cached = arena_alloc(&out->arena, n * sizeof(*out->cached));
	for (size_t i = 0; i < n; i++) {
		const struct request_row *row = &c->record.row[c->is_joined ? 0 : i];
		size_t among = c->is_joined ? n : 1;

		out->prompt[i] = share(row->prompt_tokens, among, i % among);
		out->output[i] = share(row->output_tokens, among, i % among);
		if (out->cached)
			out->cached[i] = share(row->cached_tokens, among, i % among);
		out->e2el_s[i] = (double)(row->last_event_ns - row->sent_ns) / 1e9;
	}
	out->began_ns = c->run->is_profiled ? c->profile_began_ns : first - c->offset_ns;
	out->ended_ns = c->run->is_profiled ? c->profile_ended_ns : last - c->offset_ns;
}

static void note_clock(const struct offline_call *c)
{
	int64_t step = clock_offset_ns() - c->offset_ns;
	struct buf text = { 0 };

	if (step < CLOCK_STEP_NS && step > -CLOCK_STEP_NS)
		return;
	buf_printf(&text, "the wall clock was changed by %.3f ms during the run; its length is as "
		   "uncertain", (double)step / 1e6);
	http_warn(c->h, text.data);
	buf_release(&text);
}

static void release(struct offline_call *c)
{
	prepared_release(&c->prepared);
	plan_release(&c->plan);
	record_release(&c->record);
	workload_release(&c->joined);
	buf_release(&c->extra);
	free(c->progress);
}

/* 1: the server takes no lists; nothing was measured. */
static int attempt(struct http *h, const struct offline_run *run, struct offline_outcome *out,
		   struct err *e)
{
	struct offline_call c = { .h = h, .run = run, .endpoint = choose_endpoint(h, run),
			  .progress = mem_alloc(sizeof(*c.progress)) };
	int rc;

	put_sampling(&c);
	make_plan(&c);
	rc = make_ready(&c, e) < 0 || send_all(&c, e) < 0 ? -1 : 0;
	if (rc == 0 && is_refusal_of_list(&c)) {
		rc = 1;
	} else if (rc == 0 && (rc = explain(&c, e)) == 0) {
		note_clock(&c);
		fill(&c, out);
	}
	release(&c);
	return rc;
}

int http_run(void *state, const struct offline_run *run, struct offline_outcome *out,
	     struct err *e)
{
	struct http *h = state;
	int rc = attempt(h, run, out, e);

	if (rc <= 0)
		return rc;
	h->is_list_refused = true;
	http_warn(h, "the server takes one prompt in a request: a batch is sent as requests that go out "
		  "together");
	return attempt(h, run, out, e);
}
