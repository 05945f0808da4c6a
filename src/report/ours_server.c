/* SPDX-License-Identifier: Apache-2.0 */
/* ours_server.c - profllm.server and profllm.steady_state of a result. */
#include "report/ours.h"

#include "json/write.h"

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
	if (g->is_told)
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
	json_key(w, "prefix_hit_rate");
	if (s->prefix_queries.is_told && s->prefix_hits.is_told && s->prefix_queries.value > 0)
		json_put_f64(w, s->prefix_hits.value / s->prefix_queries.value);
	else
		json_put_null(w);
	put_growth(w, "preemptions", &s->preemptions);
	put_growth(w, "prompt_tokens", &s->prompt_tokens);
	put_growth(w, "generation_tokens", &s->generation_tokens);
}

void ours_server(struct json_writer *w, const struct metrics *m)
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

static void put_bound(struct json_writer *w, const char *key, bool is_known, double v)
{
	json_key(w, key);
	if (is_known)
		json_put_f64(w, v);
	else
		json_put_null(w);
}

static void put_window(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_steady *s = &m->steady;
	struct buf warning = { 0 };

	json_member_object(w, "window");
	put_bound(w, "start_s", s->is_reached, since_first(s, s->start_ns));
	put_bound(w, "end_s", s->is_reached, since_first(s, s->end_ns));
	put_bound(w, "duration_s", s->is_reached, s->duration_s);
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

void ours_steady(struct json_writer *w, const struct metrics *m)
{
	if (!m->steady.is_wanted)
		return;
	json_member_object(w, "steady_state");
	put_window(w, m);
	if (m->steady.is_reached)
		put_steady_numbers(w, m);
	json_end_object(w);
}
