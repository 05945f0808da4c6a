/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reporter.c - see reporter.h.
 *
 * The caller's thread puts samples into a ring; the reporter's thread takes them from there and
 * sends them without the lock. When the dashboard does not answer for long, the oldest samples are
 * dropped.
 */
#include "cmd/console/reporter.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "cmd/console/live.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "input/fetch/dashboard.h"

#define SAMPLES_MAX 120           /* that wait to be sent; the dashboard takes as many at once */
#define SAMPLE_NS 1000000000ll    /* between two samples */
#define RATE_NS 500000000ll       /* a shorter time gives no rate */
#define ALIVE_NS 10000000000ll    /* longest time without a message */
#define RETRY_NS 5000000000ll     /* after a failure */
#define SEND_MS 5000
#define END_MS 30000              /* the result may be long */
#define LAST_MS 3000              /* the last samples */
#define ANSWER_BYTES_MAX (1u << 20)
#define EVENTS_MAX 100000         /* token events read for one sample */
#define NAME_BYTES_MAX 190        /* of a run, a stage; the dashboard takes a few more */
#define WHY_BYTES_MAX 400

struct live_sample {
	double t_s, tokens_per_s, ttft_ms, itl_ms, running, waiting, kv_percent, gpu_percent, gpu_w;
	uint64_t done, failed, total; /* total 0: not known */
	char stage[NAME_BYTES_MAX + 1];
};

enum reply { REPLY_TAKEN, REPLY_LATER, REPLY_UNKNOWN, REPLY_REFUSED };

struct reporter {
	struct reporter_opts o;
	struct dashboard to;
	char address[WHY_BYTES_MAX];  /* for messages: without a token */
	bool has_warned;              /* in this run */

	/* Used by the caller's thread only. */
	bool is_on;                   /* a run is in progress, with its thread */
	pthread_t thread;
	char name[NAME_BYTES_MAX + 1], run_id[17];
	int64_t began_ns, sampled_ns;
	struct live_data data;
	const struct record *record;  /* what data was begun with */
	uint64_t tokens, ttft_n, itl_n; /* when the last sample was made */
	double ttft_sum_ms, itl_sum_ms;
	struct live_sample last;           /* the one that is being made */

	pthread_mutex_t lock;         /* of all below */
	pthread_cond_t changed;
	struct live_sample ring[SAMPLES_MAX];
	size_t first, n;
	bool is_ending;
	struct str result;            /* borrowed from reporter_end, which waits */
	const char *failure;
	char why[WHY_BYTES_MAX];      /* the first failure, until it is said; "": none */
	int64_t run;                  /* the dashboard's number of the result; 0: none */
	bool is_delivered;

	/* Used by the reporter's thread only. */
	struct fetch_pool *pool;
	char id[64];                  /* that the dashboard gave; "": not begun */
	bool is_refused, has_failed;
};

/* ---- requests; the reporter's thread ---- */

static void note_failure(struct reporter *r, const char *why)
{
	pthread_mutex_lock(&r->lock);
	if (!*r->why)
		snprintf(r->why, sizeof(r->why), "%.*s", WHY_BYTES_MAX - 1, why);
	pthread_mutex_unlock(&r->lock);
}

static enum reply judge(long status)
{
	if (status >= 200 && status < 300)
		return REPLY_TAKEN;
	if (status == 404)
		return REPLY_UNKNOWN;
	return status == 408 || status == 429 || status >= 500 ? REPLY_LATER : REPLY_REFUSED;
}

/* The answer's JSON is in a; NULL: it is not JSON. */
static enum reply post(struct reporter *r, const char *path, struct str body, int64_t timeout_ms,
		       struct arena *a, struct json_value **out)
{
	struct fetch_opts how = dashboard_opts(&r->to);
	struct fetch_reply reply = { 0 };
	enum reply what = REPLY_LATER;
	struct buf url = { 0 }, why = { 0 };
	struct err e = { 0 };

	*out = NULL;
	how.timeout_ms = timeout_ms;
	how.body_bytes_max = ANSWER_BYTES_MAX;
	how.pool = r->pool;
	buf_printf(&url, "%s%s", r->to.base.data, path);
	if (fetch(url.data, &body, &how, &reply, &e) == 0) {
		what = judge(reply.status);
		if (json_parse(a, arena_str(a, buf_str(&reply.body)), out, NULL) < 0)
			*out = NULL;
	}
	if (what != REPLY_TAKEN && !e.code) {
		buf_add_text(&why, "it ");
		dashboard_add_answer(&reply, &why);
	}
	r->has_failed = what != REPLY_TAKEN;
	r->is_refused |= what == REPLY_REFUSED;
	if (what == REPLY_LATER || what == REPLY_REFUSED)
		note_failure(r, e.code ? e.text : why.data);
	fetch_reply_release(&reply);
	buf_release(&url);
	buf_release(&why);
	return what;
}

static enum reply send_begin(struct reporter *r, int64_t timeout_ms)
{
	struct json_value *answer;
	struct arena a = { 0 };
	struct buf body = { 0 };
	struct json_writer w = json_writer(&body);
	enum reply what;
	struct str id;

	json_begin_object(&w);
	json_member_text(&w, "run_id", r->run_id);
	json_member_text(&w, "name", r->name);
	json_member_text(&w, "kind", r->o.kind);
	json_end_object(&w);
	what = post(r, "/api/live", buf_str(&body), timeout_ms, &a, &answer);
	id = json_text(json_get(answer, "id"), STR(""));
	if (what == REPLY_UNKNOWN || (what == REPLY_TAKEN && (!id.n || id.n >= sizeof(r->id)))) {
		note_failure(r, "it is not a dashboard, or its version does not accept live "
			"reports");
		r->is_refused = true;
		what = REPLY_REFUSED;
	}
	if (what == REPLY_TAKEN)
		snprintf(r->id, sizeof(r->id), "%.*s", (int)id.n, id.p);
	buf_release(&body);
	arena_release(&a);
	return what;
}

static void put_number(struct json_writer *w, const char *key, double v)
{
	if (isfinite(v) && v >= 0)
		json_member_f64(w, key, v);
}

static void put_sample(struct json_writer *w, const struct live_sample *s)
{
	json_begin_object(w);
	json_member_f64(w, "t_s", s->t_s);
	json_member_int(w, "done", (int64_t)s->done);
	json_member_int(w, "failed", (int64_t)s->failed);
	if (s->total)
		json_member_int(w, "total", (int64_t)s->total);
	json_member_text(w, "stage", s->stage);
	put_number(w, "tokens_per_s", s->tokens_per_s);
	put_number(w, "running", s->running);
	put_number(w, "waiting", s->waiting);
	put_number(w, "kv_cache_percent", s->kv_percent);
	put_number(w, "gpu_util_percent", s->gpu_percent);
	put_number(w, "gpu_power_w", s->gpu_w);
	put_number(w, "ttft_ms", s->ttft_ms);
	put_number(w, "itl_ms", s->itl_ms);
	json_end_object(w);
}

/* If the dashboard does not know the run (it was restarted), the run is begun again, once. */
static enum reply send_samples(struct reporter *r, const struct live_sample *s, size_t n,
			       int64_t timeout_ms)
{
	enum reply what = REPLY_UNKNOWN;
	struct json_value *answer;
	struct arena a = { 0 };
	struct buf body = { 0 };
	struct json_writer w = json_writer(&body);

	json_begin_object(&w);
	json_member_array(&w, "samples");
	for (size_t i = 0; i < n; i++)
		put_sample(&w, &s[i]);
	json_end_array(&w);
	json_end_object(&w);
	for (int tries = 0; tries < 2 && what == REPLY_UNKNOWN; tries++) {
		if (!*r->id && send_begin(r, timeout_ms) != REPLY_TAKEN) {
			what = REPLY_LATER;
			break;
		}
		what = post(r, arena_printf(&a, "/api/live/%s/samples", r->id), buf_str(&body),
			    timeout_ms, &a, &answer);
		if (what == REPLY_UNKNOWN)
			*r->id = 0;
	}
	buf_release(&body);
	arena_release(&a);
	return what;
}

static void send_end(struct reporter *r, struct str result, const char *failure,
		     int64_t timeout_ms)
{
	struct json_value *answer;
	struct arena a = { 0 };
	struct buf body = { 0 };
	struct json_writer w = json_writer(&body);

	json_begin_object(&w);
	if (result.n)
		json_member_raw(&w, "result", result);
	if (failure)
		json_member_text(&w, "failure", failure);
	json_end_object(&w);
	if (*r->id && post(r, arena_printf(&a, "/api/live/%s/end", r->id), buf_str(&body),
			   timeout_ms, &a, &answer) == REPLY_TAKEN) {
		pthread_mutex_lock(&r->lock);
		r->is_delivered = true;
		r->run = json_int(json_get(answer, "run"), 0);
		pthread_mutex_unlock(&r->lock);
	}
	buf_release(&body);
	arena_release(&a);
}

/* ---- the reporter's thread ---- */

/* Waits until there is something to send; called with the lock held. */
static void wait_for_work(struct reporter *r, int64_t from_ns, int64_t until_ns)
{
	while (!r->is_ending) {
		int64_t now = clock_mono_ns(), next = r->n ? from_ns : until_ns;
		struct timespec at;

		if (now >= next)
			return;
		at = (struct timespec){ .tv_sec = next / 1000000000, .tv_nsec = next % 1000000000 };
		pthread_cond_timedwait(&r->changed, &r->lock, &at);
	}
}

/* Copies the first n of the ring; newer samples may already have replaced some of them. */
static size_t copy_samples(const struct reporter *r, struct live_sample out[static SAMPLES_MAX])
{
	for (size_t i = 0; i < r->n; i++)
		out[i] = r->ring[(r->first + i) % SAMPLES_MAX];
	return r->n;
}

static void forget_samples(struct reporter *r, double until_s)
{
	while (r->n && r->ring[r->first].t_s <= until_s) {
		r->first = (r->first + 1) % SAMPLES_MAX;
		r->n--;
	}
}

static void *report(void *self)
{
	struct reporter *r = self;
	struct live_sample *out = mem_array(SAMPLES_MAX, sizeof(*out));
	int64_t from_ns = 0, until_ns = 0; /* at once: the run is to be seen */
	bool is_ending = false;

	while (!is_ending) {
		struct str result;
		const char *failure;
		size_t n;

		pthread_mutex_lock(&r->lock);
		wait_for_work(r, from_ns, until_ns);
		is_ending = r->is_ending;
		result = r->result;
		failure = r->failure;
		n = copy_samples(r, out);
		pthread_mutex_unlock(&r->lock);
		/* At the end, do not wait long for a dashboard that did not answer before. */
		if (!r->is_refused &&
		    send_samples(r, out, n, is_ending ? LAST_MS : SEND_MS) == REPLY_TAKEN) {
			if (is_ending)
				send_end(r, result, failure, END_MS);
			pthread_mutex_lock(&r->lock);
			if (n)
				forget_samples(r, out[n - 1].t_s);
			pthread_mutex_unlock(&r->lock);
		}
		from_ns = clock_mono_ns() + (r->has_failed ? RETRY_NS : 0);
		until_ns = clock_mono_ns() + (r->has_failed ? RETRY_NS : ALIVE_NS);
	}
	free(out);
	return NULL;
}

/* ---- the caller's thread ---- */

int reporter_new(const struct reporter_opts *o, struct reporter **out, struct err *e)
{
	struct reporter *r = mem_alloc(sizeof(*r));
	pthread_condattr_t monotonic;
	const char *query = strchr(o->url, '?');

	r->o = *o;
	if (dashboard_find_printed(o->url, &r->to, e) < 0) {
		dashboard_release(&r->to);
		free(r);
		*out = NULL;
		return err_wrap(e, "--dashboard");
	}
	snprintf(r->address, sizeof(r->address), "%.*s",
		 (int)(query ? query - o->url : (long)strlen(o->url)), o->url);
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&r->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	r->pool = fetch_pool_new();
	*out = r;
	return 0;
}

void reporter_free(struct reporter *r)
{
	if (!r)
		return;
	reporter_end(r, (struct str){ 0 }, "it ended before it was measured");
	live_data_release(&r->data);
	fetch_pool_free(r->pool);
	pthread_cond_destroy(&r->changed);
	pthread_mutex_destroy(&r->lock);
	dashboard_release(&r->to);
	free(r);
}

/* Warns once for each run, as soon as there is a failure. */
static void say_failure(struct reporter *r)
{
	char why[WHY_BYTES_MAX];
	struct buf text = { 0 };

	pthread_mutex_lock(&r->lock);
	memcpy(why, r->why, sizeof(why));
	pthread_mutex_unlock(&r->lock);
	if (!*why || r->has_warned)
		return;
	r->has_warned = true;
	if (!r->is_on && *r->id && !r->is_delivered)
		buf_printf(&text, "--dashboard: %s did not take the result of this run (%s), so it is not "
			   "stored there", r->address, why);
	else
		buf_printf(&text, "--dashboard: %s does not show this run (%s); the run goes on without it",
			   r->address, why);
	r->o.warn(r->o.self, text.data);
	buf_release(&text);
}

void reporter_begin(struct reporter *r, const char *name)
{
	uint64_t random = 0;
	int rc;

	if (!r)
		return;
	assert(!r->is_on);
	if (getrandom(&random, sizeof(random), 0) != sizeof(random))
		random = (uint64_t)clock_real_ns();
	snprintf(r->run_id, sizeof(r->run_id), "%016llx", (unsigned long long)random);
	snprintf(r->name, sizeof(r->name), "%s", *name ? name : r->o.kind);
	live_data_release(&r->data);
	r->record = NULL;
	r->began_ns = r->sampled_ns = clock_mono_ns();
	r->last = (struct live_sample){ .t_s = 0 };
	r->first = r->n = 0;
	r->is_ending = r->has_warned = r->is_refused = r->has_failed = r->is_delivered = false;
	*r->why = *r->id = 0;
	r->run = 0;
	rc = pthread_create(&r->thread, NULL, report, r);
	r->is_on = rc == 0;
	if (rc) {
		snprintf(r->why, sizeof(r->why), "cannot start a thread: %s", strerror(rc));
		say_failure(r);
	}
}

static void push_sample(struct reporter *r)
{
	pthread_mutex_lock(&r->lock);
	if (r->n == SAMPLES_MAX) {
		r->first = (r->first + 1) % SAMPLES_MAX;
		r->n--;
	}
	r->ring[(r->first + r->n++) % SAMPLES_MAX] = r->last;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
}

static double seconds(const struct reporter *r)
{
	return (double)(clock_mono_ns() - r->began_ns) / 1e9;
}

void reporter_stage(struct reporter *r, const char *what, uint64_t done, uint64_t total)
{
	int64_t now = clock_mono_ns();
	struct live_sample *s;

	if (!r || !r->is_on)
		return;
	say_failure(r);
	s = &r->last;
	if (strncmp(s->stage, what, sizeof(s->stage) - 1) == 0 && now - r->sampled_ns < SAMPLE_NS)
		return;
	*s = (struct live_sample){ .t_s = seconds(r), .done = done, .total = total,
				   .tokens_per_s = NAN, .ttft_ms = NAN, .itl_ms = NAN,
				   .running = NAN, .waiting = NAN, .kv_percent = NAN,
				   .gpu_percent = NAN, .gpu_w = NAN };
	snprintf(s->stage, sizeof(s->stage), "%s", what);
	r->sampled_ns = now;
	push_sample(r);
}

/* The mean since the last sample; NAN: nothing came. */
static double mean_since(double sum, uint64_t n, double *sum_before, uint64_t *n_before)
{
	double mean = n > *n_before ? (sum - *sum_before) / (double)(n - *n_before) : NAN;

	*sum_before = sum;
	*n_before = n;
	return mean;
}

void reporter_sample(struct reporter *r, const struct run_sample *now)
{
	const struct load_totals *load = &now->load;
	bool is_last = load->done >= now->n_rows;
	int64_t now_ns = clock_mono_ns(), span_ns;
	struct live_sample *s;

	if (!r || !r->is_on)
		return;
	say_failure(r);
	if (r->record != now->record || load->tokens < r->tokens) { /* the next of several runs */
		live_data_begin(&r->data, now->n_rows);
		r->record = now->record;
		r->last.done = 0; /* of another stage: the last sample is sent if it has more */
		r->tokens = r->ttft_n = r->itl_n = 0;
		r->ttft_sum_ms = r->itl_sum_ms = 0;
		r->sampled_ns = now_ns;
	}
	live_data_take(&r->data, now->record, now->n_begun, EVENTS_MAX);
	span_ns = now_ns - r->sampled_ns;
	s = &r->last;
	if (span_ns < SAMPLE_NS && (!is_last || s->done == load->done))
		return;
	snprintf(s->stage, sizeof(s->stage), "Benchmark");
	s->t_s = seconds(r);
	s->done = load->done;
	s->failed = load->failed;
	s->total = now->n_rows;
	s->tokens_per_s = span_ns >= RATE_NS ? (double)(load->tokens - r->tokens) * 1e9 /
					       (double)span_ns : NAN;
	s->ttft_ms = mean_since(r->data.ttft_sum_ms, r->data.ttft.count, &r->ttft_sum_ms,
				&r->ttft_n);
	s->itl_ms = mean_since(r->data.itl_sum_ms, r->data.itl.count, &r->itl_sum_ms, &r->itl_n);
	s->running = isnan(now->server.running) ? (double)load->admitted - load->done :
						  now->server.running;
	s->waiting = now->server.waiting;
	s->kv_percent = 100 * now->server.kv_usage;
	s->gpu_percent = now->system.gpu_utilization;
	s->gpu_w = now->system.gpu_power;
	r->tokens = load->tokens;
	r->sampled_ns = now_ns;
	push_sample(r);
}

void reporter_end(struct reporter *r, struct str result, const char *failure)
{
	struct buf text = { 0 };

	if (!r || !r->is_on)
		return;
	pthread_mutex_lock(&r->lock);
	r->is_ending = true;
	r->result = result;
	r->failure = failure;
	pthread_cond_signal(&r->changed);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	r->is_on = false;
	r->result = (struct str){ 0 };
	r->failure = NULL;
	say_failure(r);
	if (r->run)
		buf_printf(&text, "Dashboard: %s%sruns/%lld", r->address,
			   r->address[strlen(r->address) - 1] == '/' ? "" : "/", (long long)r->run);
	if (r->run && strncmp(r->address, "unix:", 5) != 0 && r->o.line)
		r->o.line(r->o.self, text.data);
	buf_release(&text);
}
