/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series.c - routes for the charts of a run's page: quantities over time, and distributions.
 *
 * A result of this program has both as "series" and "sketches" of its member "profllm"
 * (out/report/sketch.h). For any other result they are computed as far as its arrays per request
 * allow: tokens and requests over time if it has start times, distributions of latencies. A
 * sentence names each one that is unavailable.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/json/read.h"
#include "core/json/write.h"
#include "core/stats/sketch.h"
#include "core/stats/stats.h"
#include "results/read/kind.h"
#include "web/api.h"
#include "web/web_internal.h"

#define MS 1000.0
#define EPOCH_S_MIN 1e9 /* a smaller start time counts from the start of a machine */
#define TURNS_MAX 10000
#define REASON_BYTES_MAX 400 /* of a reason within a sentence */

/* ---- the run ---- */

struct drawn_run {
	const struct web_request *r;
	struct json_writer *w;
	struct run_whole run;
	const struct json_value *document, *result, *ours; /* result: of the load; ours: "profllm" */
	struct buf arrays;
	struct json_slice array;   /* of all arrays; JSON_NULL: none */
	struct buf missing;        /* a sentence a line */
};

static void run_release(struct drawn_run *d)
{
	buf_release(&d->arrays);
	buf_release(&d->missing);
}

static int run_find(struct drawn_run *d, const struct web_request *r, struct web_answer *a,
		    const char *kept, struct err *e)
{
	struct json_value *document = NULL;
	struct json_scan scan;
	int64_t id;

	*d = (struct drawn_run){ .r = r, .w = &a->json };
	if (asked_run(r, a, &id, e) < 0)
		return -1;
	if (store_run(r->store, id, r->arena, &d->run, e) < 0)
		return asked_usage(a, 404, e);
	if (json_parse(r->arena, d->run.document, &document, e) < 0)
		return err_wrap(e, "run %lld", (long long)id);
	d->document = document;
	d->result = json_get(document, "results");
	if (!d->result || d->result->kind != JSON_OBJECT)
		d->result = document;
	d->ours = json_get(d->result, "profllm");
	if (json_get(d->ours, kept) || !d->run.has_arrays)
		return 0;
	if (store_run_arrays(r->store, id, &d->arrays, e) < 0)
		return -1;
	scan = (struct json_scan){ .text = buf_str(&d->arrays) };
	return json_next(&scan, &d->array, e);
}

__attribute__((format(printf, 2, 3)))
static void miss(struct drawn_run *d, const char *fmt, ...)
{
	char text[REASON_BYTES_MAX + 200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	buf_printf(&d->missing, "%s\n", text);
}

static void put_missing(struct drawn_run *d)
{
	struct str rest = buf_str(&d->missing);

	json_member_array(d->w, "missing");
	while (rest.n)
		json_put_str(d->w, str_cut(&rest, '\n'));
	json_end_array(d->w);
}

/* ---- arrays per request ---- */

struct requests {
	size_t n;
	bool has_start, has_ttft, has_itl, has_latency, has_input;
	double *start_s, *ttft_s, *latency_s, *end_s, *input, *output;
	double *itl_s;
	size_t *itl_at;            /* n + 1 */
	bool *is_done, *is_failed;
};

static size_t size_of(struct json_slice list)
{
	struct json_iter it = json_iter(list);
	struct json_slice v;
	struct str key;
	size_t n = 0;

	if (list.kind != JSON_ARRAY)
		return 0;
	while (json_each(&it, &key, &v) > 0)
		n++;
	return n;
}

/* Up to max numbers of a list, into room; other values are NAN. */
static size_t numbers_of(struct json_slice list, double *room, size_t max)
{
	struct json_iter it = json_iter(list);
	struct json_slice v;
	struct str key;
	size_t n = 0;

	while (list.kind == JSON_ARRAY && n < max && json_each(&it, &key, &v) > 0) {
		if (!json_to_f64(v, &room[n]))
			room[n] = NAN;
		n++;
	}
	return n;
}

/* False: there is no such list with an element for each request; then all are NAN. */
static bool column(struct json_slice holder, const char *name, struct requests *q,
		   struct arena *a, double **out)
{
	struct json_slice list = { .kind = JSON_NULL };
	bool is_there = holder.kind == JSON_OBJECT && json_member(holder, name, &list) &&
			size_of(list) == q->n;

	*out = arena_alloc(a, (q->n + 1) * sizeof(**out));
	for (size_t i = 0; i < q->n; i++)
		(*out)[i] = NAN;
	return is_there && numbers_of(list, *out, q->n) == q->n;
}

static void read_gaps(struct json_slice arrays, struct requests *q, struct arena *a)
{
	struct json_slice list = { .kind = JSON_NULL }, one;
	size_t room = 0, i = 0;
	struct json_iter it;
	struct str key;

	q->itl_at = arena_alloc(a, (q->n + 1) * sizeof(*q->itl_at));
	memset(q->itl_at, 0, (q->n + 1) * sizeof(*q->itl_at));
	if (!json_member(arrays, "itls", &list) || size_of(list) != q->n)
		return;
	for (size_t k = 0; k < list.raw.n; k++)
		room += list.raw.p[k] == ',' || list.raw.p[k] == '[';
	q->itl_s = arena_alloc(a, (room + 1) * sizeof(*q->itl_s));
	for (it = json_iter(list); i < q->n && json_each(&it, &key, &one) > 0; i++) {
		size_t at = q->itl_at[i];

		q->itl_at[i + 1] = at + numbers_of(one, q->itl_s + at, room - at);
	}
	q->has_itl = q->itl_at[q->n] > 0;
}

/* A failed request has a text: the reason. */
static void read_failures(struct json_slice holder, const char *name, struct requests *q)
{
	struct json_slice list, v;
	struct json_iter it;
	struct str key;
	size_t i = 0;

	if (holder.kind != JSON_OBJECT || !json_member(holder, name, &list) ||
	    size_of(list) != q->n)
		return;
	for (it = json_iter(list); i < q->n && json_each(&it, &key, &v) > 0; i++)
		q->is_failed[i] |= v.kind == JSON_STRING && v.raw.n > 0;
}

/* From sending to the last token. */
static double latency_of(const struct requests *q, size_t i)
{
	double sum = q->ttft_s[i];

	if (q->latency_s[i] > 0)
		return q->latency_s[i];
	for (size_t k = q->itl_at[i]; k < q->itl_at[i + 1]; k++)
		sum += q->itl_s[k];
	return sum;
}

static void read_requests(const struct drawn_run *d, struct requests *q)
{
	static const char *const counted[] = { "start_times", "ttfts", "input_lens" };
	struct json_slice list, own = { .kind = JSON_NULL };
	struct arena *a = d->r->arena;
	double *end_ns;

	*q = (struct requests){ 0 };
	if (d->array.kind != JSON_OBJECT)
		return;
	for (size_t i = 0; !q->n && i < sizeof(counted) / sizeof(*counted); i++)
		if (json_member(d->array, counted[i], &list))
			q->n = size_of(list);
	json_member(d->array, "requests", &own);
	q->is_done = arena_alloc(a, q->n + 1);
	q->is_failed = arena_alloc(a, q->n + 1);
	memset(q->is_failed, 0, q->n + 1);
	q->has_start = column(d->array, "start_times", q, a, &q->start_s);
	q->has_ttft = column(d->array, "ttfts", q, a, &q->ttft_s);
	q->has_latency = column(d->array, "latencies", q, a, &q->latency_s);
	q->has_input = column(d->array, "input_lens", q, a, &q->input);
	column(d->array, "output_lens", q, a, &q->output);
	column(own, "end_ns", q, a, &end_ns);
	read_gaps(d->array, q, a);
	read_failures(d->array, "errors", q);
	read_failures(own, "failure", q);
	q->end_s = end_ns;
	for (size_t i = 0; i < q->n; i++) {
		double latency_s = latency_of(q, i);

		q->latency_s[i] = latency_s;
		q->is_done[i] = !q->is_failed[i] && latency_s > 0;
		q->end_s[i] = end_ns[i] > 0 ? end_ns[i] / 1e9 : latency_s > 0 ?
			q->start_s[i] + latency_s : q->start_s[i];
	}
	q->has_latency |= q->has_ttft && q->has_itl;
}

/* ---- series ---- */

static const struct kept_track { const char *key, *label, *unit; } track[] = {
	{ "output_tokens_per_s", "Output tokens/s", "tokens/s" },
	{ "requests_running", "Requests in flight", "requests" },
	{ "requests_waiting", "Requests waiting for a slot", "requests" },
	{ "kv_cache_percent", "KV cache used", "%" },
	{ "gpu_util_percent", "GPU utilization", "%" },
	{ "gpu_power_w", "GPU power", "W" },
	{ "server_requests_running", "Requests running in the server", "requests" },
	{ "server_requests_waiting", "Requests waiting in the server", "requests" },
};
enum { TOKENS, RUNNING, WAITING, KV, GPU_UTIL, GPU_POWER, SERVER_RUNNING, SERVER_WAITING, TRACKS };
_Static_assert(sizeof(track) / sizeof(*track) == TRACKS, "each has a name");

static void put_numbers(struct json_writer *w, const char *key, const struct json_value *list,
			size_t n)
{
	json_key(w, key);
	if (!list || list->kind != JSON_ARRAY) {
		json_put_null(w);
		return;
	}
	json_begin_array(w);
	for (size_t i = 0; i < list->count && i < n; i++)
		json_put_f64(w, json_real(&list->item[i], NAN));
	json_end_array(w);
}

static void begin_track(struct json_writer *w, size_t which)
{
	json_begin_object(w);
	json_member_text(w, "key", track[which].key);
	json_member_text(w, "label", track[which].label);
	json_member_text(w, "unit", track[which].unit);
}

/* One from the document: at the middles of the grid's bins if it has no times. */
static bool put_kept(struct json_writer *w, size_t which, const struct json_value *list,
		     struct sketch_grid g)
{
	const struct json_value *t = NULL, *y, *at;
	size_t n;

	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "key"), STR("")), track[which].key))
			t = &list->item[i];
	y = json_get(t, "y");
	at = json_get(t, "t_s");
	if (!y || y->kind != JSON_ARRAY || !y->count)
		return false;
	n = y->count < SKETCH_POINTS_MAX ? y->count : SKETCH_POINTS_MAX;
	begin_track(w, which);
	if (at && at->kind == JSON_ARRAY) {
		n = at->count < n ? at->count : n;
		put_numbers(w, "t_s", at, n);
	} else {
		g.n = n;
		json_member_array(w, "t_s");
		for (size_t i = 0; i < n; i++)
			json_put_f64(w, sketch_grid_at(&g, i));
		json_end_array(w);
	}
	put_numbers(w, "y", y, n);
	put_numbers(w, "min", json_get(t, "min"), n);
	put_numbers(w, "max", json_get(t, "max"), n);
	json_end_object(w);
	return true;
}

static void put_made(struct json_writer *w, size_t which, const struct sketch_track *t,
		     const struct sketch_grid *g)
{
	bool has_range = sketch_track_has_range(t);

	begin_track(w, which);
	json_member_array(w, "t_s");
	for (size_t i = 0; i < t->n; i++)
		json_put_f64(w, sketch_grid_at(g, i));
	json_end_array(w);
	json_member_f64s(w, "y", t->y, t->n);
	if (has_range) {
		json_member_f64s(w, "min", t->low, t->n);
		json_member_f64s(w, "max", t->high, t->n);
	} else {
		json_member_null(w, "min");
		json_member_null(w, "max");
	}
	json_end_object(w);
}

static double origin_of(const struct requests *q)
{
	double origin = INFINITY;

	for (size_t i = 0; i < q->n; i++)
		origin = q->start_s[i] > 0 ? fmin(origin, q->start_s[i]) : origin;
	return isfinite(origin) ? origin : 0;
}

/* The load over time, from arrays. Sets in `has` which tracks there are. */
static void put_load(struct drawn_run *d, const struct requests *q, double origin_s,
		     const struct sketch_grid *g, bool has[TRACKS])
{
	double *begin = mem_array(q->n, sizeof(*begin)), *end = mem_array(q->n, sizeof(*end));
	struct sketch_tokens tokens;
	struct sketch_track t;
	size_t n = 0;

	sketch_tokens_init(&tokens, g);
	for (size_t i = 0; i < q->n; i++) {
		double start_s = q->start_s[i] - origin_s;
		size_t at = q->itl_at[i];

		if (!(q->start_s[i] > 0))
			continue;
		begin[n] = start_s;
		end[n++] = fmax(q->end_s[i] - origin_s, start_s);
		if (q->has_ttft && q->is_done[i] && !(q->output[i] <= 0))
			sketch_tokens_add(&tokens, start_s + q->ttft_s[i], q->itl_s + at,
					  q->itl_at[i + 1] - at, q->output[i]);
	}
	sketch_tokens_end(&tokens, &t);
	has[TOKENS] = q->has_ttft && q->has_itl;
	if (has[TOKENS])
		put_made(d->w, TOKENS, &t, g);
	sketch_track_release(&t);
	sketch_running(g, begin, end, n, &t);
	has[RUNNING] = q->has_latency;
	if (has[RUNNING])
		put_made(d->w, RUNNING, &t, g);
	sketch_track_release(&t);
	free(begin);
	free(end);
}

static void put_failed(struct drawn_run *d, const struct requests *q, double origin_s)
{
	size_t n = 0, every;

	for (size_t i = 0; i < q->n; i++)
		n += q->is_failed[i];
	every = n / SKETCH_POINTS_MAX + 1;
	json_member_array(d->w, "failed_s");
	for (size_t i = 0, k = 0; i < q->n; i++)
		if (q->is_failed[i] && q->start_s[i] > 0 && k++ % every == 0)
			json_put_f64(d->w, q->end_s[i] - origin_s);
	json_end_array(d->w);
}

/* "REASON" as the end of a sentence. */
static void miss_why(struct drawn_run *d, const char *what, const struct json_value *why)
{
	struct str reason = json_text(why, STR(""));

	reason = str_cut(&reason, '\n');
	reason.n = reason.n < REASON_BYTES_MAX ? reason.n : REASON_BYTES_MAX;
	while (reason.n && strchr(". ", reason.p[reason.n - 1]))
		reason.n--;
	if (reason.n)
		miss(d, "%s: %.*s.", what, (int)reason.n, reason.p);
	else
		miss(d, "%s.", what);
}

static void miss_tracks(struct drawn_run *d, const bool has[TRACKS])
{
	const struct json_value *system = json_get(d->document, "system");

	if (!has[TOKENS] && !has[RUNNING]) {
		miss(d, "This result has summary figures only: neither a time series nor the times of "
		     "its requests were saved.");
		return;
	}
	if (!has[TOKENS])
		miss(d, "This run has no times of output tokens.");
	if (!has[KV] && !has[SERVER_RUNNING])
		miss_why(d, "The server's queue and KV cache were not read during this run",
			 json_get(json_get(d->ours, "server"), "not_read"));
	else if (!has[KV])
		miss(d, "The server does not report how full its KV cache is.");
	if (!has[GPU_UTIL] && !has[GPU_POWER])
		miss_why(d, "This run has no GPU telemetry",
			 json_get(system ? system : json_get(d->ours, "system"), "not_watched"));
}

static double duration_of(const struct drawn_run *d)
{
	double start_ns = json_real(json_get(d->ours, "start_ns"), NAN);
	double stop_ns = json_real(json_get(d->ours, "stop_ns"), NAN);

	if (stop_ns >= start_ns)
		return (stop_ns - start_ns) / 1e9;
	return fmax(0, json_real(json_get(d->result, "duration"), 0));
}

/* Some results say a duration that is shorter than what their requests took. */
static double span_of(const struct requests *q, double origin_s, double duration_s)
{
	for (size_t i = 0; i < q->n; i++)
		if (q->end_s[i] - origin_s > duration_s && q->start_s[i] > 0)
			duration_s = q->end_s[i] - origin_s;
	return duration_s;
}

static void put_series(struct drawn_run *d)
{
	const struct json_value *kept = json_get(d->ours, "series");
	double start_s = json_real(json_get(d->ours, "start_ns"), NAN) / 1e9, origin_s;
	double duration_s = duration_of(d);
	bool has[TRACKS] = { false };
	struct sketch_grid g;
	struct requests q;

	read_requests(d, &q);
	origin_s = start_s > 0 ? start_s : origin_of(&q);
	if (q.has_start)
		duration_s = span_of(&q, origin_s, duration_s);
	if (!(start_s > 0) && origin_s > EPOCH_S_MIN)
		start_s = origin_s;
	g = sketch_grid(duration_s);
	if (json_real(json_get(kept, "step_s"), 0) > 0)
		g.step_s = json_real(json_get(kept, "step_s"), 0);
	data_put_key_number(d->w, "start_s", start_s);
	json_member_f64(d->w, "duration_s", duration_s);
	json_member_array(d->w, "tracks");
	for (size_t i = 0; i < TRACKS; i++)
		has[i] = put_kept(d->w, i, json_get(kept, "tracks"), g);
	if (!kept && q.has_start && g.n)
		put_load(d, &q, origin_s, &g, has);
	json_end_array(d->w);
	if (kept && json_get(kept, "failed_s"))
		put_numbers(d->w, "failed_s", json_get(kept, "failed_s"), SKETCH_POINTS_MAX);
	else
		put_failed(d, &q, origin_s);
	miss_tracks(d, has);
	put_missing(d);
}

static int series(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct drawn_run d;
	int rc = run_find(&d, r, a, "series", e);

	if (rc == 0)
		put_series(&d);
	run_release(&d);
	return rc;
}

/* ---- sketches ---- */

enum latency { TTFT, TPOT, ITL, E2EL, LATENCIES };
static const struct { const char *key, *metric, *label; } latency[LATENCIES] = {
	{ "ttft_ms", "ttft", "TTFT" }, { "tpot_ms", "tpot", "TPOT" }, { "itl_ms", "itl", "ITL" },
	{ "e2el_ms", "e2el", "E2EL" },
};

/* The worst reason against a metric; NULL: none. */
static const struct json_value *spoiled_by(const struct json_value *document, const char *metric)
{
	const struct json_value *list = run_reasons(document), *worst = NULL;
	enum result_verdict worst_level = RESULT_VALID, level;

	for (size_t i = 0; list && i < list->count; i++) {
		const struct json_value *spoils = json_get(&list->item[i], "spoils");
		bool is_about = false;

		if (!result_verdict_read(json_get(&list->item[i], "level"), &level) ||
		    level <= worst_level)
			continue;
		for (size_t k = 0; spoils && spoils->kind == JSON_ARRAY && k < spoils->count; k++)
			is_about |= str_is(json_text(&spoils->item[k], STR("")), metric);
		/* Older results do not list what a reason affects: INVALID then means all. */
		if (!is_about && (spoils || level != RESULT_INVALID))
			continue;
		worst = &list->item[i];
		worst_level = level;
	}
	return worst;
}

static void begin_metric(struct drawn_run *d, enum latency which, size_t n)
{
	const struct json_value *reason = spoiled_by(d->document, latency[which].metric);

	json_begin_object(d->w);
	json_member_text(d->w, "key", latency[which].key);
	json_member_text(d->w, "label", latency[which].label);
	json_member_text(d->w, "unit", "ms");
	json_member_int(d->w, "n", (int64_t)n);
	json_member_bool(d->w, "is_spoiled", reason != NULL);
	data_put_key_or_null(d->w, "spoiled_by", json_text(json_get(reason, "text"),
			     json_text(json_get(reason, "code"), STR(""))));
}

/* values_s are sorted. */
static void put_made_metric(struct drawn_run *d, enum latency which, double *values_s, size_t n)
{
	double value[SKETCH_QUANTILES];

	if (!n)
		return;
	stats_sort(values_s, n);
	sketch_quantiles(values_s, n, value);
	begin_metric(d, which, n);
	json_member_array(d->w, "p");
	for (size_t i = 0; i < SKETCH_QUANTILES; i++)
		json_put_f64(d->w, sketch_p(i));
	json_end_array(d->w);
	json_member_array(d->w, "value");
	for (size_t i = 0; i < SKETCH_QUANTILES; i++)
		json_put_f64(d->w, value[i] * MS);
	json_end_array(d->w);
	json_end_object(d->w);
}

static void put_made_metrics(struct drawn_run *d, const struct requests *q, bool has[LATENCIES])
{
	double *v = mem_array(q->n + q->itl_at[q->n], sizeof(*v));
	size_t n = 0;

	for (size_t i = 0; i < q->n; i++)
		if (q->is_done[i] && q->has_ttft)
			v[n++] = q->ttft_s[i];
	has[TTFT] = n > 0;
	put_made_metric(d, TTFT, v, n);
	n = 0;
	for (size_t i = 0; i < q->n; i++)
		if (q->is_done[i] && q->has_ttft && q->output[i] > 1)
			v[n++] = (q->latency_s[i] - q->ttft_s[i]) / (q->output[i] - 1);
	has[TPOT] = n > 0;
	put_made_metric(d, TPOT, v, n);
	n = 0;
	for (size_t i = 0; i < q->n; i++)
		for (size_t k = q->itl_at[i]; q->is_done[i] && k < q->itl_at[i + 1]; k++)
			v[n++] = q->itl_s[k];
	has[ITL] = n > 0;
	put_made_metric(d, ITL, v, n);
	n = 0;
	for (size_t i = 0; i < q->n; i++)
		if (q->is_done[i] && q->has_latency)
			v[n++] = q->latency_s[i];
	has[E2EL] = n > 0;
	put_made_metric(d, E2EL, v, n);
	free(v);
}

static void put_kept_metrics(struct drawn_run *d, const struct json_value *kept,
			     bool has[LATENCIES])
{
	const struct json_value *p = json_get(kept, "p"), *list = json_get(kept, "metrics");

	for (size_t i = 0; list && list->kind == JSON_ARRAY && i < list->count; i++) {
		const struct json_value *m = &list->item[i], *value = json_get(m, "value_ms");
		enum latency which = 0;

		while (which < LATENCIES && !str_is(json_text(json_get(m, "metric"), STR("")),
						    latency[which].metric))
			which++;
		if (which == LATENCIES || has[which] || !p || !value ||
		    p->kind != JSON_ARRAY || value->kind != JSON_ARRAY || p->count != value->count)
			continue;
		has[which] = true;
		begin_metric(d, which, (size_t)fmax(0, json_real(json_get(m, "n"), 0)));
		put_numbers(d->w, "p", p, SKETCH_QUANTILES);
		put_numbers(d->w, "value", value, SKETCH_QUANTILES);
		json_end_object(d->w);
	}
}

static void put_made_prompts(struct drawn_run *d, const struct requests *q)
{
	size_t *done = mem_array(q->n, sizeof(*done)), n = 0;

	for (size_t i = 0; i < q->n; i++)
		if (q->is_done[i] && q->input[i] >= 0)
			done[n++] = i;
	if (!n) {
		json_member_null(d->w, "by_prompt");
		free(done);
		return;
	}
	json_member_object(d->w, "by_prompt");
	json_member_array(d->w, "prompt_tokens");
	for (size_t i = 0; i < sketch_sample_size(n); i++)
		json_put_int(d->w, (int64_t)q->input[done[sketch_sample(n, i)]]);
	json_end_array(d->w);
	json_member_array(d->w, "ttft_ms");
	for (size_t i = 0; i < sketch_sample_size(n); i++)
		json_put_f64(d->w, q->ttft_s[done[sketch_sample(n, i)]] * MS);
	json_end_array(d->w);
	json_end_object(d->w);
	free(done);
}

static void put_prompts(struct drawn_run *d, const struct json_value *kept,
			const struct requests *q)
{
	const struct json_value *by = json_get(kept, "by_prompt");
	const struct json_value *prompt = json_get(by, "prompt_tokens"), *ttft = json_get(by, "ttft_ms");

	if (!kept && q->has_ttft && q->has_input) {
		put_made_prompts(d, q);
		return;
	}
	if (!prompt || !ttft || prompt->kind != JSON_ARRAY || ttft->kind != JSON_ARRAY ||
	    prompt->count != ttft->count || !prompt->count) {
		json_member_null(d->w, "by_prompt");
		return;
	}
	json_member_object(d->w, "by_prompt");
	json_member_array(d->w, "prompt_tokens");
	for (size_t i = 0; i < prompt->count && i < SKETCH_PAIRS_MAX; i++)
		json_put_int(d->w, json_int(&prompt->item[i], 0));
	json_end_array(d->w);
	put_numbers(d->w, "ttft_ms", ttft, SKETCH_PAIRS_MAX);
	json_end_object(d->w);
}

/* Of a conversation's turns, as the result has them; the first is 1. */
static void put_turns(struct drawn_run *d)
{
	const struct json_value *list = json_get(d->result, "per_turn_metrics"), *item[3];
	static const char *const of[] = { "turn_index", "median_ttft_ms", "completed" };
	static const char *const as[] = { "turn", "ttft_ms_median", "n" };
	size_t n = list && list->kind == JSON_ARRAY ? list->count : 0;

	if (!n) {
		json_member_null(d->w, "by_turn");
		return;
	}
	json_member_object(d->w, "by_turn");
	for (size_t k = 0; k < 3; k++) {
		json_member_array(d->w, as[k]);
		for (size_t i = 0; i < n && i < TURNS_MAX; i++) {
			for (size_t m = 0; m < 3; m++)
				item[m] = json_get(&list->item[i], of[m]);
			if (!item[1] || !(json_real(item[2], 0) > 0))
				continue;
			if (k == 1)
				json_put_f64(d->w, json_real(item[k], NAN));
			else
				json_put_int(d->w, json_int(item[k], 0) + (k == 0));
		}
		json_end_array(d->w);
	}
	json_end_object(d->w);
}

static void put_sketches(struct drawn_run *d)
{
	const struct json_value *kept = json_get(d->ours, "sketches");
	bool has[LATENCIES] = { false }, has_any = false;
	struct requests q;

	read_requests(d, &q);
	json_member_array(d->w, "metrics");
	if (kept)
		put_kept_metrics(d, kept, has);
	else if (q.n)
		put_made_metrics(d, &q, has);
	json_end_array(d->w);
	put_prompts(d, kept, &q);
	put_turns(d);
	for (size_t i = 0; i < LATENCIES; i++)
		has_any |= has[i];
	if (!has_any)
		miss(d, "This result has summary figures only: no distribution of its latencies was "
		     "saved.");
	for (size_t i = 0; has_any && i < LATENCIES; i++)
		if (!has[i])
			miss(d, "This run has no %s.", latency[i].label);
	put_missing(d);
}

static int sketches(const struct web_request *r, struct web_answer *a, struct err *e)
{
	struct drawn_run d;
	int rc = run_find(&d, r, a, "sketches", e);

	if (rc == 0)
		put_sketches(&d);
	run_release(&d);
	return rc;
}

static const struct web_route routes[] = {
	{ "GET", "/api/data/experiments/{id}/series", 0, series },
	{ "GET", "/api/data/experiments/{id}/sketches", 0, sketches },
};
const struct web_routes series_routes = { routes, sizeof(routes) / sizeof(*routes) };
