/* SPDX-License-Identifier: Apache-2.0 */
/* out/report/sketch.c - see sketch.h. */
#include "out/report/sketch.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/record/series.h"
#include "client/record/system_series.h"
#include "core/json/write.h"
#include "core/stats/sketch.h"

#define MS 1000.0

static double seconds(int64_t ns)
{
	return (double)ns / 1e9;
}

/* ---- numbers of few digits ---- */

#define DRAWN_DIGITS 4   /* of values that are only drawn */
#define LATENCY_DIGITS 5 /* of quantiles, which people quote */

static void put_short(struct json_writer *w, double v, int digits)
{
	char text[32];

	snprintf(text, sizeof(text), "%.*g", digits, v);
	json_put_f64(w, isfinite(v) ? strtod(text, NULL) : NAN);
}

static void put_drawn(struct json_writer *w, const char *key, const double *v, size_t n,
		      double unit)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++)
		put_short(w, v[i] * unit, DRAWN_DIGITS);
	json_end_array(w);
}

/* Seconds from the start, to a millisecond. */
static void put_times(struct json_writer *w, const char *key, const double *v, size_t n)
{
	json_member_array(w, key);
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, round(v[i] * 1000) / 1000);
	json_end_array(w);
}

/* ---- series ---- */

/* Nothing where nothing is known. Releases t. */
static void put_track(struct json_writer *w, const char *key, struct sketch_track *t, double unit)
{
	if (t->n) {
		json_begin_object(w);
		json_member_text(w, "key", key);
		if (t->t_s)
			put_times(w, "t_s", t->t_s, t->n);
		put_drawn(w, "y", t->y, t->n, unit);
		if (sketch_track_has_range(t)) {
			put_drawn(w, "min", t->low, t->n, unit);
			put_drawn(w, "max", t->high, t->n, unit);
		}
		json_end_object(w);
	}
	sketch_track_release(t);
}

static bool is_success(const struct report *r, uint32_t i)
{
	return r->record->row[r->metrics->row[i]].state == REQ_DONE;
}

static void put_tokens(const struct report *r, const struct sketch_grid *g, struct json_writer *w)
{
	const struct metrics *m = r->metrics;
	struct sketch_tokens tokens;
	struct sketch_track t;

	if (m->opts.is_pooling)
		return;
	sketch_tokens_init(&tokens, g);
	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->record->row[m->row[i]];
		int64_t first_ns = row->first_event_ns;

		if (is_success(r, i) && first_ns)
			sketch_tokens_add(&tokens, seconds(first_ns - r->record->start_ns),
					  m->itl + m->itl_at[i], m->itl_at[i + 1] - m->itl_at[i],
					  (double)m->output_len[i]);
	}
	sketch_tokens_end(&tokens, &t);
	put_track(w, "output_tokens_per_s", &t, 1);
}

/* When a request was sent; unsent ones wait until the end. */
static int64_t sent_or_stop(const struct report *r, const struct request_row *row)
{
	return row->sent_ns ? row->sent_ns : r->record->stop_ns;
}

static void put_requests(const struct report *r, const struct sketch_grid *g, struct json_writer *w)
{
	const struct metrics *m = r->metrics;
	const int64_t start_ns = r->record->start_ns;
	double *begin = mem_array(m->n, sizeof(*begin)), *end = mem_array(m->n, sizeof(*end));
	struct sketch_track t;
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->record->row[m->row[i]];

		if (!row->sent_ns)
			continue;
		begin[n] = seconds(row->sent_ns - start_ns);
		end[n] = row->end_ns ? seconds(row->end_ns - start_ns) : g->duration_s;
		end[n] = fmax(end[n], begin[n]);
		n++;
	}
	sketch_running(g, begin, end, n, &t);
	put_track(w, "requests_running", &t, 1);
	n = 0;
	for (uint32_t i = 0; i < m->n && m->opts.max_concurrency > 0; i++) {
		const struct request_row *row = &r->record->row[m->row[i]];

		if (!row->due_ns)
			continue;
		begin[n] = seconds(row->due_ns - start_ns);
		end[n] = fmax(seconds(sent_or_stop(r, row) - start_ns), begin[n]);
		n++;
	}
	if (n) {
		sketch_running(g, begin, end, n, &t);
		put_track(w, "requests_waiting", &t, 1);
	}
	free(begin);
	free(end);
}

/* Readings of one name between start and stop; if several hosts read the same, the first one's. */
struct read_series { struct sketch_series *v; double **room; size_t n; };

static void read_series(const struct record *r, const char *name, struct read_series *out)
{
	*out = (struct read_series){
		.v = mem_array(r->n_series, sizeof(*out->v)),
		.room = mem_array(2 * r->n_series, sizeof(*out->room)),
	};
	for (size_t i = 0; i < r->n_series; i++) {
		const struct record_series *s = r->series[i];
		double *t_s, *value;
		size_t n = 0;

		if (strcmp(s->name, name) != 0 || record_series_is_repeated(r, i))
			continue;
		t_s = out->room[2 * out->n] = mem_array(s->n, sizeof(*t_s));
		value = out->room[2 * out->n + 1] = mem_array(s->n, sizeof(*value));
		for (size_t k = 0; k < s->n; k++) {
			if (s->point[k].at_ns < r->start_ns || s->point[k].at_ns > r->stop_ns)
				continue;
			t_s[n] = seconds(s->point[k].at_ns - r->start_ns);
			value[n++] = s->point[k].value;
		}
		out->v[out->n++] = (struct sketch_series){ t_s, value, n };
	}
}

static void put_readings(const struct report *r, const struct sketch_grid *g, struct json_writer *w)
{
	const struct {
		const char *key, *name;
		bool is_sum;
		double unit;
	} from[] = {
		{ "kv_cache_percent", series_name(SERIES_KV_USAGE), false, 100 },
		{ "gpu_util_percent", system_series_name(SYSTEM_GPU_UTILIZATION), false, 1 },
		{ "gpu_power_w", system_series_name(SYSTEM_GPU_POWER), true, 1 },
		{ "server_requests_running", series_name(SERIES_RUNNING), true, 1 },
		{ "server_requests_waiting", series_name(SERIES_WAITING), true, 1 },
	};

	for (size_t i = 0; i < sizeof(from) / sizeof(*from); i++) {
		struct read_series s;
		struct sketch_track t;

		read_series(r->record, from[i].name, &s);
		sketch_combine(g, s.v, s.n, from[i].is_sum, &t);
		put_track(w, from[i].key, &t, from[i].unit);
		for (size_t k = 0; k < 2 * s.n; k++)
			free(s.room[k]);
		free(s.room);
		free(s.v);
	}
}

/* If there are many, only every second, third ... */
static void put_failed(const struct report *r, struct json_writer *w)
{
	const struct metrics *m = r->metrics;
	double at_s[SKETCH_POINTS_MAX];
	uint32_t every = m->failed / SKETCH_POINTS_MAX + 1, k = 0;
	size_t n = 0;

	for (uint32_t i = 0; i < m->n; i++) {
		const struct request_row *row = &r->record->row[m->row[i]];

		if (row->state != REQ_FAILED || k++ % every || n == SKETCH_POINTS_MAX)
			continue;
		at_s[n++] = seconds((row->end_ns ? row->end_ns : row->sent_ns ? row->sent_ns
				     : r->record->start_ns) - r->record->start_ns);
	}
	put_times(w, "failed_s", at_s, n);
}

static void put_series(const struct report *r, struct json_writer *w)
{
	struct sketch_grid g = sketch_grid(seconds(r->record->stop_ns - r->record->start_ns));

	if (!g.n)
		return;
	json_member_object(w, "series");
	json_member_f64(w, "step_s", g.step_s);
	json_member_array(w, "tracks");
	put_tokens(r, &g, w);
	put_requests(r, &g, w);
	put_readings(r, &g, w);
	json_end_array(w);
	put_failed(r, w);
	json_end_object(w);
}

/* ---- sketches ---- */

static void put_prompts(const struct report *r, struct json_writer *w)
{
	const struct metrics *m = r->metrics;
	uint32_t *done = mem_array(m->n, sizeof(*done));
	size_t n = 0;

	for (uint32_t i = 0; i < m->n && m->block[BLOCK_TTFT].sketch; i++)
		if (is_success(r, i))
			done[n++] = i;
	if (n) {
		json_member_object(w, "by_prompt");
		json_member_array(w, "prompt_tokens");
		for (size_t i = 0; i < sketch_sample_size(n); i++)
			json_put_int(w, m->input_len[done[sketch_sample(n, i)]]);
		json_end_array(w);
		json_member_array(w, "ttft_ms");
		for (size_t i = 0; i < sketch_sample_size(n); i++)
			put_short(w, m->ttft[done[sketch_sample(n, i)]] * MS, LATENCY_DIGITS);
		json_end_array(w);
		json_end_object(w);
	}
	free(done);
}

static void put_sketches(const struct report *r, struct json_writer *w)
{
	json_member_object(w, "sketches");
	json_member_array(w, "p");
	for (size_t i = 0; i < SKETCH_QUANTILES; i++)
		put_short(w, sketch_p(i), LATENCY_DIGITS);
	json_end_array(w);
	json_member_array(w, "metrics");
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++) {
		const struct metrics_summary *s = &r->metrics->block[b];

		if (!s->sketch)
			continue;
		json_begin_object(w);
		json_member_text(w, "metric", metric_block_key(b));
		json_member_int(w, "n", (int64_t)s->n);
		json_member_array(w, "value_ms");
		for (size_t i = 0; i < SKETCH_QUANTILES; i++)
			put_short(w, s->sketch[i] * MS, LATENCY_DIGITS);
		json_end_array(w);
		json_end_object(w);
	}
	json_end_array(w);
	put_prompts(r, w);
	json_end_object(w);
}

void report_sketch_members(const struct report *r, struct json_writer *w)
{
	const bool is_compact = w->is_compact;

	if (!r->metrics->n)
		return;
	w->is_compact = true;
	put_series(r, w);
	put_sketches(r, w);
	w->is_compact = is_compact;
}
