/* SPDX-License-Identifier: Apache-2.0 */
/* ours.c - the object under the result's key "profllm"; schema/result.json describes its fields. */
#include "out/report/report_internal.h"

#include <math.h>
#include <stdio.h>

#include "core/json/write.h"
#include "out/report/derived.h"
#include "out/report/priorities.h"
#include "out/report/sketch.h"
#include "out/report/system.h"
#include "out/report/verdict.h"

/* ---- profllm.server ---- */

static void put_str(struct json_writer *w, const char *key, struct str text)
{
	json_key(w, key);
	if (text.n)
		json_put_str(w, text);
	else
		json_put_null(w);
}

/* ---- server ---- */

static void put_gauge(struct json_writer *w, const char *key, const struct metrics_gauge *g)
{
	json_key(w, key);
	if (g->n == 0) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_int(w, "n", (int64_t)g->n);
	json_member_f64(w, "min", g->min);
	json_member_f64(w, "mean", g->mean);
	json_member_f64(w, "max", g->max);
	json_member_f64(w, "last", g->last);
	json_end_object(w);
}

static void put_growth(struct json_writer *w, const char *key, const struct metrics_growth *g)
{
	json_key(w, key);
	if (g->is_reported)
		json_put_int(w, metrics_whole(g->value));
	else
		json_put_null(w);
}

static void put_server(struct json_writer *w, const struct metrics_server *s)
{
	json_member_int(w, "scrapes", s->scrapes);
	json_member_int(w, "failed_scrapes", s->failed_scrapes);
	put_gauge(w, "running", &s->running);
	put_gauge(w, "waiting", &s->waiting);
	put_gauge(w, "kv_usage", &s->kv_usage);
	put_growth(w, "prefix_queries", &s->prefix_queries);
	put_growth(w, "prefix_hits", &s->prefix_hits);
	json_member_f64(w, "prefix_hit_rate", s->prefix_queries.is_reported && s->prefix_hits.is_reported ?
			s->prefix_hits.value / s->prefix_queries.value : NAN);
	put_growth(w, "preemptions", &s->preemptions);
	put_growth(w, "prompt_tokens", &s->prompt_tokens);
	put_growth(w, "generation_tokens", &s->generation_tokens);
}

static void ours_server(struct json_writer *w, const struct metrics *m)
{
	json_member_object(w, "server");
	put_str(w, "not_read", m->server_note);
	put_server(w, &m->servers);
	if (m->n_servers > 1) {
		json_member_array(w, "each");
		for (size_t i = 0; i < m->n_servers; i++) {
			json_begin_object(w);
			put_str(w, "url", m->server[i].url);
			put_server(w, &m->server[i]);
			json_end_object(w);
		}
		json_end_array(w);
	}
	json_end_object(w);
}

/* ---- steady state, with the names of upstream's Rust client ---- */

static double since_first(const struct metrics_steady *s, int64_t ns)
{
	return (double)(ns - s->first_ns) / 1e9;
}

static void put_window(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_steady *s = &m->steady;
	struct buf warning = { 0 };

	json_member_object(w, "window");
	json_member_f64(w, "start_s", s->is_reached ? since_first(s, s->start_ns) : NAN);
	json_member_f64(w, "end_s", s->is_reached ? since_first(s, s->end_ns) : NAN);
	json_member_f64(w, "duration_s", s->is_reached ? s->duration_s : NAN);
	json_member_int(w, "target_concurrency", m->opts.max_concurrency);
	json_member_f64(w, "threshold", m->opts.steady_threshold);
	json_member_int(w, "threshold_abs", s->threshold_requests);
	json_member_int(w, "observed_peak", s->observed_peak);
	json_member_int(w, "requests_started_in_window", s->started);
	json_member_int(w, "requests_completed_in_window", s->completed);
	json_member_int(w, "requests_total", s->total);
	report_steady_warning(m, &warning);
	put_str(w, "warning", buf_str(&warning));
	buf_release(&warning);
	json_end_object(w);
}

static void put_steady_numbers(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_steady *s = &m->steady;

	json_member_f64(w, "request_throughput", s->request_throughput);
	json_member_f64(w, "input_throughput", s->input_throughput);
	json_member_f64(w, "output_throughput", s->output_throughput);
	json_member_f64(w, "total_token_throughput", s->total_token_throughput);
	json_member_f64(w, "mean_ttft_ms", s->mean_ttft_ms);
	json_member_f64(w, "median_ttft_ms", s->median_ttft_ms);
	json_member_array(w, "percentiles_ttft_ms");
	for (size_t k = 0; k < m->opts.n_percentiles; k++) {
		json_begin_array(w);
		json_put_f64(w, m->opts.percentile[k]);
		json_put_f64(w, s->percentile_ttft_ms[k]);
		json_end_array(w);
	}
	json_end_array(w);
	json_member_f64(w, "mean_tpot_ms", s->mean_tpot_ms);
	json_member_f64(w, "median_tpot_ms", s->median_tpot_ms);
	json_member_f64(w, "p90_tpot_ms", s->p90_tpot_ms);
	json_member_f64(w, "p99_tpot_ms", s->p99_tpot_ms);
}

static void ours_steady(struct json_writer *w, const struct metrics *m)
{
	if (!m->steady.is_wanted)
		return;
	json_member_object(w, "steady_state");
	put_window(w, m);
	if (m->steady.is_reached)
		put_steady_numbers(w, m);
	json_end_object(w);
}

/* ---- the rest ---- */

#define SCHEMA_VERSION 1

static void put_share(struct json_writer *w, const char *key, uint64_t part, uint64_t whole)
{
	json_member_f64(w, key, whole ? (double)part / (double)whole : 0);
}

/* Facts about the answers that upstream's keys do not report. */
static void put_answers(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_client *c = &m->client;

	json_member_int(w, "requests_usage_ignored", c->n_usage_ignored);
	json_member_int(w, "requests_usage_refused", c->n_usage_refused);
	json_member_int(w, "requests_count_short", c->n_count_short);
	json_member_int(w, "requests_longer_than_asked", c->n_longer_than_asked);
	json_member_int(w, "requests_shorter_than_asked", c->n_shorter_than_asked);
	json_member_int(w, "requests_role_first", c->n_role_first);
	json_member_int(w, "best_output_tokens", c->best_output);
	json_member_int(w, "best_input_tokens", c->best_input);
	json_member_f64(w, "best_output_throughput",
		 m->duration_s > 0 ? (double)c->best_output / m->duration_s : 0);
	report_put_spread(w, "best_tpot_ms", &c->best_tpot);
	json_member_object(w, "finish_reasons");
	for (enum finish_reason k = 0; k < FINISH_COUNT; k++)
		json_member_int(w, finish_name(k), c->finishes[k]);
	json_end_object(w);
}

static void put_gaps(struct json_writer *w, const struct metrics_gaps *g)
{
	report_put_spread(w, "itl_event_ms", &g->event);
	report_put_spread(w, "itl_token_ms", &g->token);
	report_put_spread(w, "itl_segment_ms", &g->segment);
	if (!g->n) {
		json_member_null(w, "slow_gaps");
		return;
	}
	json_member_object(w, "slow_gaps");
	json_member_int(w, "arrivals", (int64_t)g->n);
	json_member_int(w, "slow", (int64_t)g->n_slow);
	json_member_f64(w, "typical_ms", g->typical_ms);
	json_member_f64(w, "limit_ms", g->limit_ms);
	for (enum gap_cause c = 0; c < GAP_CAUSES; c++) {
		json_member_object(w, gap_cause_name(c));
		json_member_int(w, "n", (int64_t)g->cause[c].n);
		put_share(w, "share", g->cause[c].n, g->n_slow);
		json_member_f64(w, "p99_itl_without_ms", g->cause[c].p99_without_ms);
		json_end_object(w);
	}
	json_end_object(w);
}

static void put_client(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_client *c = &m->client;

	report_put_spread(w, "client_lag_ms", &c->lag);
	report_put_spread(w, "send_lag_ms", &c->send_lag);
	report_put_spread(w, "skew_ms", &c->skew);
	report_put_spread(w, "connect_ms", &c->connect);
	report_put_spread(w, "e2el_from_due_ms", &c->from_due);
	report_put_spread(w, "ttft_answer_ms", &c->ttft_answer);
	report_put_spread(w, "ttft_content_ms", &c->ttft_content);
	report_put_spread(w, "ttft_with_connect_ms", &c->ttft_connect);
	json_member_int(w, "new_connections", c->n_new_connections);
	json_member_int(w, "retries", (int64_t)c->retries);
	json_member_int(w, "token_events", (int64_t)c->n_events);
	put_share(w, "shared_read_share", c->n_shared, c->n_events_with_text);
	put_share(w, "late_shared_read_share", c->n_shared_late, c->n_events_with_text);
	put_share(w, "not_one_token_share", c->n_not_one_token, c->n_events);
	put_share(w, "tokens_per_event", c->n_tokens_with_usage, c->n_events_with_usage);
	put_share(w, "usage_differs_share", c->n_count_unlike_usage, c->n_usage);
	put_gaps(w, &m->gaps);
	json_member_int(w, "requests_with_usage", c->n_usage);
	json_member_int(w, "requests_counted", c->n_counted);
	json_member_int(w, "requests_count_unknown", c->n_count_unknown);
	put_answers(w, m);
}

static void put_cached(struct json_writer *w, const struct metrics *m)
{
	json_member_int(w, "cached_tokens", m->total_cached);
	put_share(w, "cached_share", (uint64_t)m->total_cached, (uint64_t)m->total_input);
}

/* Null without any that was scored. */
static double percent(uint32_t part, uint32_t whole)
{
	return whole ? 100.0 * part / whole : NAN;
}

static void put_correctness(struct json_writer *w, const struct metrics_correctness *c)
{
	json_key(w, "correctness");
	if (!c->n) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_int(w, "requests", c->n);
	json_member_int(w, "constrained", c->constrained);
	json_member_int(w, "scored", c->constrained_scored);
	json_member_int(w, "correct", c->constrained_correct);
	json_member_f64(w, "constrained_correct_rate", percent(c->constrained_correct, c->constrained_scored));
	json_member_f64(w, "unconstrained_correct_rate", percent(c->free_correct, c->free_scored));
	json_member_f64(w, "correct_rate_upstream", percent(c->upstream_correct, c->upstream_scored));
	json_member_object(w, "wrong");
	for (enum row_wrong k = WRONG_NONE + 1; k < WRONG_COUNT; k++)
		json_member_int(w, wrong_name(k), c->wrong[k]);
	json_end_object(w);
	json_end_object(w);
}

static void put_failures(struct json_writer *w, const struct metrics *m)
{
	json_member_array(w, "failures");
	for (int k = 0; k < FAIL_COUNT; k++) {
		const struct metrics_failures *f = &m->failures[k];

		if (f->count == 0)
			continue;
		json_begin_object(w);
		json_member_text(w, "category", fail_name((enum fail_category)k));
		json_member_int(w, "count", f->count);
		json_member_array(w, "examples");
		for (uint32_t i = 0; i < f->n_examples; i++) {
			json_begin_object(w);
			json_member_int(w, "count", f->example[i].count);
			json_member_str(w, "text", f->example[i].text);
			json_end_object(w);
		}
		json_end_array(w);
		json_member_int(w, "other_texts", f->n_others);
		json_end_object(w);
	}
	json_end_array(w);
}

/* One array per column, in row order, as upstream's detailed arrays. */
#define DETAIL_NS(X)                                                                      \
	X(due_ns) X(connect_ns) X(connected_ns) X(sent_ns) X(first_byte_ns)               \
	X(first_event_ns) X(first_reasoning_ns) X(first_answer_ns) X(last_event_ns) X(end_ns)
#define DETAIL_INT(X) X(endpoint) X(attempts) X(status) X(n_events) X(n_reasoning)        \
	X(cached_tokens) X(reasoning_tokens) X(answer_bytes) X(correctness) \
	X(priority)

/* Requests of conversations, whose ids the dataset has made, are named by conversation and turn. */
static void put_turns(struct json_writer *w, const struct report *r)
{
	const struct metrics *m = r->metrics;

	json_member_array(w, "session");
	for (uint32_t i = 0; i < m->n; i++)
		json_put_int(w, r->record->row[m->row[i]].session);
	json_end_array(w);
	json_member_array(w, "turn");
	for (uint32_t i = 0; i < m->n; i++)
		json_put_int(w, r->record->row[m->row[i]].turn);
	json_end_array(w);
}

static void put_requests(struct json_writer *w, const struct report *r)
{
	const struct metrics *m = r->metrics;
	const struct request_row *rows = r->record->row;
	char id[512];

	json_member_object(w, "requests");
	if (m->sessions.n) {
		put_turns(w, r);
	} else if (r->facts->request_id_prefix) {
		json_member_array(w, "request_id");
		for (uint32_t i = 0; i < m->n; i++) {
			/* The entry's number, also of one that repeats a sample. */
			snprintf(id, sizeof(id), "%s%u", r->facts->request_id_prefix,
				 m->opts.n_hosts > 1 ? rows[m->row[i]].sample : m->row[i]);
			json_put_text(w, id);
		}
		json_end_array(w);
	}
#define X(name)                                                                           \
	json_key(w, #name);                                                               \
	json_begin_array(w);                                                              \
	for (uint32_t i = 0; i < m->n; i++)                                               \
		json_put_int(w, rows[m->row[i]].name);                                    \
	json_end_array(w);
	DETAIL_NS(X)
	DETAIL_INT(X)
#undef X
	json_member_array(w, "due_s");
	for (uint32_t i = 0; i < m->n; i++)
		json_put_f64(w, rows[m->row[i]].due_s);
	json_end_array(w);
	json_member_array(w, "failure");
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &rows[m->row[i]];

		json_put_text(w, row->state == REQ_DONE || row->fail >= FAIL_COUNT ? NULL
			      : fail_name((enum fail_category)row->fail));
	}
	json_end_array(w);
	json_end_object(w);
}

static void put_segments(struct json_writer *w, const struct report *r)
{
	const struct report_segments *s = &r->facts->segments;
	uint64_t joined = r->metrics->client.n_joined;

	json_member_object(w, "segment_stamps");
	json_member_int(w, "events", (int64_t)s->events);
	json_member_int(w, "dropped", (int64_t)s->dropped);
	put_share(w, "events_per_segment", s->events, s->events > joined ? s->events - joined : 0);
	json_member_text(w, "unused", s->unused);
	json_end_object(w);
}

/* Traffic of another client. */
static void put_capture(struct json_writer *w, const struct report_capture *c)
{
	if (!c->source)
		return;
	json_member_object(w, "capture");
	json_member_text(w, "source", c->source);
#define X(name) json_member_int(w, #name, (int64_t)c->name);
	X(packets) X(dropped) X(holes) X(cut_packets) X(connections) X(joined) X(tls) X(http2)
	X(lost) X(cut) X(abandoned) X(other) X(beyond) X(unread) X(whole)
	X(without_usage) X(counted)
#undef X
	json_end_object(w);
}

static void put_run(struct json_writer *w, const struct report *r)
{
	const struct report_facts *f = r->facts;
	const struct metrics *m = r->metrics;

	json_member_int(w, "schema_version", SCHEMA_VERSION);
	json_member_text(w, "version", f->version);
	json_member_text(w, "build", f->build);
	json_member_text(w, "transport", f->transport);
	json_member_text(w, "http_version", f->http_version);
	json_member_text(w, "dataset", f->dataset);
	json_member_text(w, "chat_template", f->chat_template);
	json_member_text(w, "workload_hash", f->workload_hash);
	json_member_text(w, "stamp_source", m->opts.is_user_stamps ? "user" : "kernel");
	json_member_int(w, "requests_user_stamped", m->client.n_user_stamped);
	put_segments(w, r);
	if (f->round_trip_ms > 0)
		json_member_f64(w, "round_trip_ms", f->round_trip_ms);
	else
		json_member_null(w, "round_trip_ms");
	put_capture(w, &f->capture);
	json_member_int(w, "threads", f->threads);
	json_member_int(w, "processes", f->processes ? f->processes : 1);
	if (f->processes)
		json_member_f64(w, "clock_error_ms", f->clock_error_ms);
	else
		json_member_null(w, "clock_error_ms");
	json_member_int(w, "warm_connections", f->warm_connections);
	json_member_int(w, "hosts", m->opts.n_hosts ? m->opts.n_hosts : 1);
	json_member_int(w, "start_ns", r->record->start_ns);
	json_member_int(w, "stop_ns", r->record->stop_ns);
	json_member_bool(w, "interrupted", r->record->is_interrupted);
	json_member_int(w, "cancelled", m->cancelled);
	report_load_json(r, w);
	if (m->opts.is_pooling)
		json_member_int(w, "failed", m->failed); /* upstream's pooling block has no such key */
}

void report_ours_json(const struct report *r, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	put_run(&w, r);
	verdict_put(&w, r->trust);
	verdict_put_metrics(&w, r->trust);
	report_put_budget(&w, r);
	put_client(&w, r->metrics);
	put_correctness(&w, &r->metrics->correctness);
	put_failures(&w, r->metrics);
	json_member_f64(&w, "input_throughput", r->metrics->input_throughput);
	put_cached(&w, r->metrics);
	report_bounds_json(r->metrics, &w);
	report_settled_json(r->metrics, &w);
	report_attempted_json(r->metrics, &w);
	ours_server(&w, r->metrics);
	if (r->metrics->system.is_reported) {
		json_key(&w, "system");
		report_system_json(&r->metrics->system, &w);
	}
	derived_put(r, &w);
	ours_steady(&w, r->metrics);
	if (r->metrics->class) {
		json_key(&w, "priorities");
		report_classes_json(r->metrics->class, r->metrics->n_priorities, &w);
	}
	report_sketch_members(r, &w);
	json_key(&w, "options");
	if (r->facts->options.n)
		json_put_raw(&w, r->facts->options);
	else
		json_put_null(&w);
	if (r->facts->is_detailed)
		put_requests(&w, r);
	json_end_object(&w);
}
