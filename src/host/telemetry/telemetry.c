/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry.c - see telemetry.h. */
#include "host/telemetry/telemetry.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "client/http/prometheus.h"
#include "core/base/clock.h"
#include "core/base/mem.h"
#include "core/base/str.h"

/* ---- a thread that does one thing again and again ---- */

static void set_next(struct ticker *b)
{
	int64_t now_ns = clock_mono_ns();
	int64_t late = (now_ns > b->not_before_ns ? now_ns : b->not_before_ns) - b->next_ns;
	int64_t skipped = late > 0 ? late / b->interval_ns : 0;

	b->missed += (uint64_t)skipped;
	b->next_ns += b->interval_ns * (skipped + 1);
}

static void *ticker_main(void *arg)
{
	struct ticker *b = arg;

	pthread_mutex_lock(&b->lock);
	for (;;) {
		struct timespec at = { b->next_ns / 1000000000, b->next_ns % 1000000000 };

		while (!atomic_load(&b->is_over) && clock_mono_ns() < b->next_ns)
			pthread_cond_timedwait(&b->wake, &b->lock, &at);
		if (atomic_load(&b->is_over))
			break;
		pthread_mutex_unlock(&b->lock);
		b->fn(b->self);
		set_next(b);
		pthread_mutex_lock(&b->lock);
	}
	pthread_mutex_unlock(&b->lock);
	b->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	return NULL;
}

void ticker_start(struct ticker *b, int64_t interval_ns, void (*fn)(void *self), void *self)
{
	const struct sched_param usual = { 0 };
	pthread_condattr_t clock;
	pthread_attr_t attr;

	assert(interval_ns > 0 && fn && !b->has_thread);
	b->interval_ns = interval_ns;
	b->fn = fn;
	b->self = self;
	b->next_ns = clock_mono_ns() + interval_ns;
	pthread_mutex_init(&b->lock, NULL);
	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&b->wake, &clock);
	pthread_condattr_destroy(&clock);
	pthread_attr_init(&attr);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &usual);
	b->has_thread = pthread_create(&b->thread, &attr, ticker_main, b) == 0;
	pthread_attr_destroy(&attr);
	if (b->has_thread)
		return;
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->wake);
}

static bool join(struct ticker *b)
{
	int64_t until_ns = clock_real_ns() + (int64_t)(b->patience_s * 1e9);
	struct timespec until = { until_ns / 1000000000, until_ns % 1000000000 };

	if (b->patience_s == 0)
		return pthread_join(b->thread, NULL) == 0;
	if (pthread_timedjoin_np(b->thread, NULL, &until) == 0)
		return true;
	pthread_detach(b->thread);
	return false;
}

bool ticker_stop(struct ticker *b)
{
	int64_t to_come;

	if (!b->has_thread)
		return true;
	pthread_mutex_lock(&b->lock);
	atomic_store(&b->is_over, true);
	pthread_cond_signal(&b->wake);
	pthread_mutex_unlock(&b->lock);
	if (!join(b))
		return false;
	/* Beats that would only come now were not missed. */
	to_come = (b->next_ns - clock_mono_ns()) / b->interval_ns;
	if (to_come > 0)
		b->missed -= (uint64_t)to_come;
	pthread_mutex_destroy(&b->lock);
	pthread_cond_destroy(&b->wake);
	b->has_thread = false;
	atomic_store(&b->is_over, false);
	return true;
}

/* ---- names ---- */

enum rule { SUM, MEAN };

/*
 * What each server calls it; a trailing "_total" is left out here, because exporters
 * differ in it. Of the names of one thing the first that a server has counts:
 * some versions export an old and a new name side by side.
 */
static const struct name_row {
	enum series_id metric;
	enum rule rule;
	const char *name;
} rows[] = {
	{ SERIES_RUNNING, SUM, "vllm:num_requests_running" },
	{ SERIES_RUNNING, SUM, "sglang:num_running_reqs" },
	{ SERIES_RUNNING, SUM, "tgi_batch_current_size" },
	{ SERIES_RUNNING, SUM, "llamacpp:requests_processing" },
	{ SERIES_WAITING, SUM, "vllm:num_requests_waiting" },
	{ SERIES_WAITING, SUM, "sglang:num_queue_reqs" },
	{ SERIES_WAITING, SUM, "tgi_queue_size" },
	{ SERIES_WAITING, SUM, "llamacpp:requests_deferred" },
	{ SERIES_KV_USAGE, MEAN, "vllm:kv_cache_usage_perc" },
	{ SERIES_KV_USAGE, MEAN, "vllm:gpu_cache_usage_perc" },
	{ SERIES_KV_USAGE, MEAN, "sglang:token_usage" },
	{ SERIES_KV_USAGE, MEAN, "llamacpp:kv_cache_usage_ratio" },
	{ SERIES_PROCESS_START, SUM, "process_start_time_seconds" },
	{ SERIES_PREFIX_QUERIES, SUM, "vllm:prefix_cache_queries" },
	{ SERIES_PREFIX_QUERIES, SUM, "vllm:gpu_prefix_cache_queries" },
	{ SERIES_PREFIX_QUERIES, SUM, "sglang:prompt_tokens" },
	{ SERIES_PREFIX_HITS, SUM, "vllm:prefix_cache_hits" },
	{ SERIES_PREFIX_HITS, SUM, "vllm:gpu_prefix_cache_hits" },
	{ SERIES_PREFIX_HITS, SUM, "sglang:cached_tokens" },
	{ SERIES_PREEMPTIONS, SUM, "vllm:num_preemptions" },
	{ SERIES_PREEMPTIONS, SUM, "sglang:num_retractions" },
	{ SERIES_PROMPT_TOKENS, SUM, "vllm:prompt_tokens" },
	{ SERIES_PROMPT_TOKENS, SUM, "sglang:prompt_tokens" },
	{ SERIES_PROMPT_TOKENS, SUM, "tgi_request_input_length_sum" },
	{ SERIES_PROMPT_TOKENS, SUM, "llamacpp:prompt_tokens" },
	{ SERIES_GENERATION_TOKENS, SUM, "vllm:generation_tokens" },
	{ SERIES_GENERATION_TOKENS, SUM, "sglang:generation_tokens" },
	{ SERIES_GENERATION_TOKENS, SUM, "tgi_request_generated_tokens_sum" },
	{ SERIES_GENERATION_TOKENS, SUM, "llamacpp:tokens_predicted" },
};
#define ROWS (sizeof(rows) / sizeof(*rows))

/* Counters that vLLM's client finds by a part of their name; the first part that fits. */
#define PER_POSITION SERIES_COUNT
static const struct part_row {
	const char *prefix, *part;
	enum series_id metric; /* or PER_POSITION */
} parts[] = {
	{ "vllm:spec_decode", "num_drafts", SERIES_DRAFTS },
	{ "vllm:spec_decode", "num_draft_tokens", SERIES_DRAFT_TOKENS },
	{ "vllm:spec_decode", "num_accepted_tokens_per_pos", PER_POSITION },
	{ "vllm:spec_decode", "num_accepted_tokens", SERIES_ACCEPTED_TOKENS },
	{ "vllm:diffusion", "num_denoising_steps", SERIES_DIFFUSION_STEPS },
	{ "vllm:diffusion", "num_canvas_positions", SERIES_DIFFUSION_POSITIONS },
	{ "vllm:diffusion", "num_committed_tokens", SERIES_DIFFUSION_COMMITTED },
};

/* A sum of numbers that are finite stays so. */
static double bounded(double sum)
{
	return fmax(-DBL_MAX, fmin(sum, DBL_MAX));
}

static void tell_position(struct telemetry_values *out, const struct prometheus_sample *s)
{
	struct str text;
	int64_t k;

	if (!prometheus_label(s->labels, "position", &text) || !str_to_i64(text, &k) || k < 0 ||
	    k >= SPEC_POSITIONS_MAX)
		return;
	out->n_told += !out->is_position_told[k];
	out->is_position_told[k] = true;
	out->position[k] = bounded(out->position[k] + trunc(s->value));
}

/* Whole numbers, line by line, as upstream adds them up. */
static void read_by_part(struct telemetry_values *out, const struct prometheus_sample *s,
			 struct str name)
{
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		enum series_id m = parts[i].metric;

		if (!str_starts(name, str_of(parts[i].prefix)) ||
		    !memmem(name.p, name.n, parts[i].part, strlen(parts[i].part)))
			continue;
		if (m == PER_POSITION) {
			tell_position(out, s);
			return;
		}
		out->n_told += !out->is_reported[m];
		out->is_reported[m] = true;
		out->value[m] = bounded(out->value[m] + trunc(s->value));
		return;
	}
}

static void read_by_name(double *sum, uint32_t *n, struct str name, double value)
{
	for (size_t i = 0; i < ROWS; i++) {
		if (str_is(name, rows[i].name)) {
			sum[i] = bounded(sum[i] + value);
			n[i]++;
		}
	}
}

void telemetry_read(struct str text, struct telemetry_values *out)
{
	struct prometheus_sample sample;
	double sum[ROWS] = { 0 };
	uint32_t n[ROWS] = { 0 };
	struct err ignored;
	int rc;

	*out = (struct telemetry_values){ 0 };
	while ((rc = prometheus_next(&text, &sample, &ignored)) != 0) {
		struct str name = sample.name;

		if (rc < 0 || !isfinite(sample.value))
			continue;
		if (str_ends(name, STR("_total")) && name.n > strlen("_total")) {
			name.n -= strlen("_total");
			read_by_part(out, &sample, name);
		}
		read_by_name(sum, n, name, sample.value);
	}
	for (size_t i = 0; i < ROWS; i++) {
		enum series_id m = rows[i].metric;

		if (n[i] == 0 || out->is_reported[m])
			continue;
		out->is_reported[m] = true;
		out->n_told += m != SERIES_PROCESS_START; /* any program reports that */
		out->value[m] = rows[i].rule == MEAN ? sum[i] / n[i] : sum[i];
	}
}

/* Slots of a server's series: one per id, then these, then one per draft position. */
enum { SCRAPE = SERIES_COUNT, SCRAPE_FAILED, READINGS, FIRST_POSITION };
#define SLOTS (FIRST_POSITION + SPEC_POSITIONS_MAX)

struct watched_server {
	struct telemetry_source source;
	struct record_series *series[SLOTS]; /* in t->own; NULL until there is a point */
	size_t readings;
	bool is_silent;                           /* asked once, and never again */
	_Atomic double now[SERIES_COUNT];         /* latest value; NAN: none */
};

struct telemetry {
	struct watched_server *server;
	size_t n;
	struct record own;             /* only its series, notes and arena are used */
	struct fetch_pool *pool;
	struct ticker beat;              /* stopping it ends a reading in progress */
};

/* ---- one reading ---- */

static void add_point(struct telemetry *t, struct watched_server *s, int k, int64_t at_ns,
		      double value)
{
	struct record_series **series = &s->series[k];
	const char *name = k < SERIES_COUNT ? series_name((enum series_id)k)
			   : k == SCRAPE ? SERIES_SCRAPE
			   : k == READINGS ? SERIES_READINGS : SERIES_SCRAPE_FAILED;
	const char *unit = k < SERIES_COUNT ? series_unit((enum series_id)k)
			   : k == SCRAPE ? "s" : "";

	if (!*series)
		*series = record_series_add(&t->own, name, unit, s->source.labels);
	record_series_point(*series, at_ns, value);
}

static void add_position(struct telemetry *t, struct watched_server *s, int position, int64_t at_ns,
			 double value)
{
	struct record_series **series = &s->series[FIRST_POSITION + position];

	if (!*series) {
		struct buf labels = { 0 };

		buf_printf(&labels, "%s%sposition=\"%d\"", s->source.labels,
			   *s->source.labels ? "," : "", position);
		*series = record_series_add(&t->own, SERIES_POSITION, "tokens", labels.data);
		buf_release(&labels);
	}
	record_series_point(*series, at_ns, value);
}

static void add_values(struct telemetry *t, struct watched_server *s,
		       const struct telemetry_values *v, int64_t at_ns)
{
	for (int k = 0; k < SERIES_COUNT; k++)
		if (v->is_reported[k])
			add_point(t, s, k, at_ns, v->value[k]);
	for (int k = 0; k < SPEC_POSITIONS_MAX; k++)
		if (v->is_position_told[k])
			add_position(t, s, k, at_ns, v->position[k]);
}

/* 0: values and duration; -1: none, and why. */
static int ask(struct telemetry *t, const struct watched_server *s, struct telemetry_values *out,
	       int64_t *at_ns, int64_t *took_ns, struct err *why)
{
	struct fetch_opts opts = s->source.opts;
	struct fetch_reply reply = { 0 };
	int64_t from = clock_mono_ns();
	int rc;

	opts.timeout_ms = TELEMETRY_TIMEOUT_MS;
	opts.pool = t->pool;
	opts.cancel = &t->beat.is_over;
	rc = fetch(s->source.url, NULL, &opts, &reply, why);
	*took_ns = clock_mono_ns() - from;
	*at_ns = clock_real_ns() - *took_ns / 2;
	if (rc == 0 && reply.status != 200)
		rc = err_set(why, ERR_NET, "HTTP status %ld", reply.status);
	if (rc == 0) {
		telemetry_read(buf_str(&reply.body), out);
		if (out->n_told == 0)
			rc = err_set(why, ERR_PARSE, "it has no metric that is known here");
	}
	fetch_reply_release(&reply);
	return rc;
}

static void keep_now(struct watched_server *s, const struct telemetry_values *v)
{
	for (int k = 0; k < SERIES_COUNT; k++)
		atomic_store_explicit(&s->now[k], v->is_reported[k] ? v->value[k] : NAN,
				      memory_order_relaxed);
}

static void read_server(struct telemetry *t, struct watched_server *s, struct err *why)
{
	struct telemetry_values values;
	int64_t at_ns, took_ns;

	if (ask(t, s, &values, &at_ns, &took_ns, why) == 0) {
		s->readings++;
		add_point(t, s, SCRAPE, at_ns, (double)took_ns / 1e9);
		add_values(t, s, &values, at_ns);
		keep_now(s, &values);
	} else if (!atomic_load(&t->beat.is_over)) {
		add_point(t, s, SCRAPE_FAILED, at_ns, 1);
	}
}

static void read_all(struct telemetry *t)
{
	struct err ignored;

	for (size_t i = 0; i < t->n; i++)
		if (!t->server[i].is_silent)
			read_server(t, &t->server[i], &ignored);
}

/* The reading before the load decides which servers are read again. */
static bool read_first(struct telemetry *t)
{
	bool is_any = false;

	for (size_t i = 0; i < t->n; i++) {
		struct watched_server *s = &t->server[i];
		struct err why = { 0 };
		struct buf text = { 0 };

		read_server(t, s, &why);
		s->is_silent = s->series[SCRAPE] == NULL;
		is_any |= !s->is_silent;
		if (!s->is_silent)
			continue;
		buf_printf(&text, "%s: %s", s->source.url, why.text);
		record_note_add(&t->own, clock_real_ns(), NOTE_SERVER_METRICS, text.data);
		buf_release(&text);
	}
	return is_any;
}

/* ---- the thread ---- */

/* Readings that failed are counted one by one: however many there are, they thin out nothing. */
static bool is_thinned(const struct record_series *s)
{
	return strcmp(s->name, SERIES_SCRAPE_FAILED) != 0;
}

static void thin_when_full(struct telemetry *t)
{
	bool is_full = false;

	for (size_t i = 0; i < t->own.n_series; i++)
		is_full |= t->own.series[i]->n >= TELEMETRY_POINTS_MAX &&
			   is_thinned(t->own.series[i]);
	if (!is_full)
		return;
	for (size_t i = 0; i < t->own.n_series; i++)
		if (is_thinned(t->own.series[i]))
			series_thin(t->own.series[i]);
	t->beat.interval_ns *= 2;
}

static void read_again(void *self)
{
	read_all(self);
	thin_when_full(self);
}

/* ---- begin and end ---- */

struct telemetry *telemetry_begin(const struct telemetry_source *source, size_t n,
				  int64_t interval_ns)
{
	struct telemetry *t = mem_alloc(sizeof(*t));

	assert(interval_ns >= 0 && (source || !n));
	t->server = mem_array(n, sizeof(*t->server));
	t->n = n;
	t->pool = fetch_pool_new();
	for (size_t i = 0; i < n; i++) {
		t->server[i].source = source[i];
		keep_now(&t->server[i], &(struct telemetry_values){ 0 });
	}
	if (read_first(t) && interval_ns > 0)
		ticker_start(&t->beat, interval_ns, read_again, t);
	return t;
}

static double over_servers(const struct telemetry *t, enum series_id id, bool is_mean)
{
	double sum = 0;
	size_t told = 0;

	for (size_t i = 0; i < t->n; i++) {
		double v = atomic_load_explicit(&t->server[i].now[id], memory_order_relaxed);

		if (isnan(v))
			continue;
		sum += v;
		told++;
	}
	if (told == 0)
		return NAN;
	return is_mean ? sum / (double)told : sum;
}

void telemetry_now(const struct telemetry *t, struct telemetry_now *out)
{
	out->running = over_servers(t, SERIES_RUNNING, false);
	out->waiting = over_servers(t, SERIES_WAITING, false);
	out->kv_usage = over_servers(t, SERIES_KV_USAGE, true);
}

void telemetry_end(struct telemetry *t, struct record *into)
{
	if (!t)
		return;
	ticker_stop(&t->beat);
	read_all(t);
	for (size_t i = 0; i < t->n; i++) {
		struct watched_server *s = &t->server[i];

		if (s->series[SCRAPE] && s->readings > s->series[SCRAPE]->n)
			add_point(t, s, READINGS, clock_real_ns(), (double)s->readings);
	}
	series_move(into, &t->own);
	record_release(&t->own);
	fetch_pool_free(t->pool);
	free(t->server);
	free(t);
}
