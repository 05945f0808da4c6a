/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.c - the result file: upstream's keys in upstream's order, then ours.
 *
 * Upstream builds a dict, so a metadata key that equals another key takes part
 * in its order: an earlier key keeps its place and gets the metadata's value, a
 * later key keeps the metadata's place and overwrites its value. The list of
 * fields here behaves like that dict; arrays are written only at the end.
 */
#include "out/report/report_internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/json/write.h"
#include "out/report/report.h"

#define EXPLAINED_MARGIN 0.05 /* above 1: more reused than there was to reuse */

/* null when there was nothing to measure. */
static void put_stats(struct json_writer *w, const char *key, const struct metrics_stats *s)
{
	json_key(w, key);
	if (s->n == 0) {
		json_put_null(w);
		return;
	}
	json_begin_object(w);
	json_member_int(w, "n", (int64_t)s->n);
	json_member_f64(w, "mean", s->mean);
	json_member_f64(w, "p50", s->p50);
	json_member_f64(w, "p99", s->p99);
	json_member_f64(w, "max", s->max);
	json_end_object(w);
}

void report_put_spread(struct json_writer *w, const char *key, const struct metrics_spread *s)
{
	const struct metrics_stats in_ms = { s->n, s->mean_ms, s->p50_ms, s->p99_ms, s->max_ms };

	put_stats(w, key, &in_ms);
}

static void add_growth(const struct metrics_sessions *s, size_t last, struct buf *out)
{
	double growth = s->ttft_growth_per_turn_ms, low = INFINITY, high = 0;

	for (size_t k = 1; k < last; k++) {
		double ms = s->by_turn[k].block[BLOCK_TTFT].median_ms;

		if (!s->by_turn[k].completed)
			continue;
		low = ms < low ? ms : low;
		high = ms > high ? ms : high;
	}
	buf_printf(out, "From turn 2 to turn %zu the median TTFT ", last);
	if (s->is_growth_clear)
		buf_printf(out, "%s by %.2f ms per turn; ", growth < 0 ? "falls" : "grows",
			   fabs(growth));
	else
		buf_printf(out, "shows no trend (%.2f to %.2f ms); ", low, high);
}

/*
 * Summarises the turns in one sentence: "From turn 2 to turn 8 the median TTFT grows by 1.20 ms per
 * turn; cached tokens cover 81.4 % of the prompt." Nothing if no conversation has several turns.
 */
static void add_summary(const struct metrics_sessions *s, struct buf *out)
{
	size_t last = s->n_turns;

	while (last > 1 && !s->by_turn[last - 1].completed)
		last--;
	if (last < 2)
		return;
	if (s->knows_growth)
		add_growth(s, last, out);
	else if (!s->by_turn[0].completed)
		buf_printf(out, "The median TTFT is %.2f ms at turn %zu; ",
			   s->by_turn[last - 1].block[BLOCK_TTFT].median_ms, last);
	else
		buf_printf(out, "The median TTFT is %.2f ms at turn 1 and %.2f ms at turn %zu; ",
			   s->by_turn[0].block[BLOCK_TTFT].median_ms,
			   s->by_turn[last - 1].block[BLOCK_TTFT].median_ms, last);
	if (s->is_later_cache_known)
		buf_printf(out, "cached tokens cover %.1f %% of the prompt%s.",
			   s->later_cached_share * 100, s->knows_growth ? "" : " from turn 2 on");
	else
		buf_add_text(out, "the server does not report cached tokens.");
}

void report_sessions_json(struct json_writer *w, const struct metrics *m)
{
	const struct metrics_sessions *s = &m->sessions;
	struct buf text = { 0 };

	json_begin_object(w);
	json_member_int(w, "n", s->n);
	json_member_int(w, "completed", s->completed);
	json_member_int(w, "failed", s->failed);
	json_member_int(w, "unfinished", s->unfinished);
	json_member_int(w, "turns", s->turns);
	json_member_int(w, "turns_completed", s->turns_completed);
	json_member_int(w, "turns_failed", s->turns_failed);
	json_member_int(w, "turns_cancelled", s->turns_dropped);
	json_member_int(w, "turns_unsent", s->turns_unsent);
	json_member_int(w, "bad_tool_calls", s->bad_calls);
	json_member_f64(w, "throughput", s->throughput);
	json_member_f64(w, "goodput",
			m->opts.n_goodput || m->opts.session_limit_ms > 0 ? s->goodput : NAN);
	put_stats(w, "turns_per_session", &s->turns_per_session);
	put_stats(w, "duration_s", &s->duration);
	put_stats(w, "serving_s", &s->serving);
	put_stats(w, "gap_s", &s->gap);
	report_put_spread(w, "gap_lag_ms", &s->gap_lag);
	report_put_spread(w, "ttft_first_turn_ms", &s->first_ttft);
	report_put_spread(w, "ttft_later_turns_ms", &s->later_ttft);
	json_member_text(w, "context_source", !s->client_counted ? "usage"
		 : s->client_counted < s->turns_completed ? "mixed" : "client");
	put_stats(w, "context_growth_tokens", &s->growth);
	json_member_f64(w, "context_slope_ms", s->context_slope_ms);
	json_member_f64(w, "context_slope_error_ms", s->context_slope_error_ms);
	json_member_f64(w, "cached_share", s->is_cache_known ? s->cached_share : NAN);
	put_stats(w, "cached_share_by_session", &s->cached_by_session);
	json_member_f64(w, "reusable_share", s->reusable_share);
	json_member_f64(w, "reuse_efficiency", s->is_cache_known ? s->reuse_efficiency : NAN);
	json_member_f64(w, "ttft_growth_per_turn_ms",
			s->knows_growth ? s->ttft_growth_per_turn_ms : NAN);
	json_member_f64(w, "ttft_growth_error_per_turn_ms",
			s->knows_growth ? s->ttft_growth_error_ms : NAN);
	json_member_f64(w, "later_cached_share",
			s->is_later_cache_known ? s->later_cached_share : NAN);
	add_summary(s, &text);
	json_member_text(w, "turns_summary", text.len ? text.data : NULL);
	buf_release(&text);
	json_end_object(w);
}

/* The key of value k of a block, and the value: mean, median, deviation, then the percentiles. */
static double block_value(struct arena *a, const struct metrics_opts *o, enum metric_block b,
			  const struct metrics_summary *s, size_t k, const char **key)
{
	static const char *const kinds[] = { "mean", "median", "std" };
	const double values[] = { s->mean_ms, s->median_ms, s->std_ms };
	char p[FMT_F64_BYTES];

	if (k < 3) {
		*key = arena_printf(a, "%s_%s_ms", kinds[k], metric_block_key(b));
		return values[k];
	}
	*key = arena_printf(a, "p%s_%s_ms", metrics_percentile_name(p, o->percentile[k - 3]),
			    metric_block_key(b));
	return s->percentile_ms[k - 3];
}

static size_t n_block_values(const struct metrics_opts *o, const struct metrics_summary *s)
{
	return s->is_reported ? 3 + o->n_percentiles : 0;
}

/* Members such as "mean_ttft_ms"; none of a block that is not reported. */
static void report_block_members(struct json_writer *w, const struct metrics_opts *o,
				 enum metric_block b, const struct metrics_summary *s)
{
	struct arena a = { 0 };

	for (size_t k = 0; k < n_block_values(o, s); k++) {
		const char *key;
		double value = block_value(&a, o, b, s, k, &key);

		json_member_f64(w, key, value);
	}
	arena_release(&a);
}

static void put_turn(struct json_writer *w, const struct metrics *m, const struct metrics_turn *t)
{
	json_begin_object(w);
	json_member_int(w, "turn_index", t->turn);
	json_member_int(w, "num_samples", t->n);
	json_member_int(w, "completed", t->completed);
	json_member_int(w, "failed", t->failed);
	json_member_int(w, "total_input_tokens", t->total_input);
	json_member_int(w, "total_output_tokens", t->total_output);
	json_member_f64(w, "duration", t->duration_s);
	json_member_f64(w, "request_throughput", t->request_throughput);
	json_member_f64(w, "input_throughput", t->input_throughput);
	json_member_f64(w, "output_throughput", t->output_throughput);
	json_member_f64(w, "total_token_throughput", t->total_token_throughput);
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++)
		report_block_members(w, &m->opts, b, &t->block[b]);
	json_member_f64(w, "cached_share", t->is_cache_known ? t->cached_share : NAN);
	put_stats(w, "context_tokens", &t->context);
	put_stats(w, "cached_tokens", &t->cached);
	json_end_object(w);
}

void report_turns_json(struct json_writer *w, const struct metrics *m)
{
	json_begin_array(w);
	for (size_t i = 0; i < m->sessions.n_turns; i++)
		put_turn(w, m, &m->sessions.by_turn[i]);
	json_end_array(w);
}

/* ---- terminal ---- */

static void turn_row(const struct metrics_turn *t, struct buf *out)
{
	char turn[24], cached[32] = "-", share[16] = "-";

	if (t->turn == t->last_turn)
		snprintf(turn, sizeof(turn), "%u", t->turn + 1);
	else
		snprintf(turn, sizeof(turn), "%u-%u", t->turn + 1, t->last_turn + 1);
	if (t->is_cache_known) {
		snprintf(cached, sizeof(cached), "%.0f", t->cached.mean);
		snprintf(share, sizeof(share), "%.1f", t->cached_share * 100);
	}
	if (!t->completed) {
		buf_printf(out, "%9s %8u %9s %9s %9s %10s %9s %8s %8s\n", turn, 0u, "-", "-", "-", "-",
			   "-", "-", "-");
		return;
	}
	buf_printf(out, "%9s %8u %9.2f %9.2f %9.2f %10.2f %9.0f %8s %8s\n", turn, t->completed,
		   t->block[BLOCK_TTFT].mean_ms, t->block[BLOCK_TTFT].median_ms,
		   t->block[BLOCK_TPOT].mean_ms, t->block[BLOCK_E2EL].mean_ms, t->context.mean,
		   cached, share);
}

/* Times in milliseconds, context and cached as mean prompt tokens; many turns as ranges. */
static void turn_table(const struct metrics_sessions *s, struct buf *out)
{
	const struct metrics_turn *row = s->by_range ? s->by_range : s->by_turn;
	size_t n = s->by_range ? s->n_ranges : s->n_turns;
	struct buf text = { 0 };

	line_heading(out, '-', "By turn (ms, tokens)");
	buf_printf(out, "%9s %8s %9s %9s %9s %10s %9s %8s %8s\n", "Turn", "Requests", "Mean TTFT",
		   "Med. TTFT", "Mean TPOT", "Mean E2EL", "Context", "Cached", "Cached %");
	for (size_t i = 0; i < n; i++)
		if (row[i].n) /* the first turns are not of this run after --warmup-step */
			turn_row(&row[i], out);
	add_summary(s, &text);
	if (text.len)
		buf_printf(out, "%s\n", text.data);
	buf_release(&text);
}

static void context_row(const struct metrics_sessions *s, struct buf *out)
{
	char text[64];

	if (isnan(s->context_slope_error_ms))
		return;
	snprintf(text, sizeof(text), "%.2f ± %.2f", s->context_slope_ms, s->context_margin_ms);
	line_text(out, "TTFT per 1000 prompt tokens (ms):", text);
}

void report_session_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_sessions *s = &m->sessions;

	if (!s->n)
		return;
	line_heading(out, '-', "Conversations");
	line_int(out, "Conversations completed:", s->completed);
	line_int(out, "Conversations with a failed turn:", s->failed);
	line_int(out, "Conversations unfinished:", s->unfinished);
	line_int(out, "Turns completed:", s->turns_completed);
	if (s->turns_dropped)
		line_int(out, "Turns cancelled after a failed one:", s->turns_dropped);
	if (s->turns_unsent)
		line_int(out, "Turns unsent when the run was over:", s->turns_unsent);
	if (s->bad_calls)
		line_int(out, "Turns with malformed tool calls:", s->bad_calls);
	line_real(out, "Conversations per second:", s->throughput);
	if (m->opts.n_goodput || m->opts.session_limit_ms > 0)
		line_real(out, "Conversation goodput (1/s):", s->goodput);
	line_stats(out, "Duration p50/p99/max (s):", &s->duration);
	line_stats(out, "Of it pauses p50/p99/max (s):", &s->gap);
	context_row(s, out);
	line_spread(out, "Lag of later turns p50/p99/max (ms):", &s->gap_lag);
	if (s->is_cache_known) {
		line_real(out, "Prompt tokens cached (%):", s->cached_share * 100);
		line_real(out, "Of the reusable ones (%):", s->reuse_efficiency * 100);
		if (s->reuse_efficiency > 1 + EXPLAINED_MARGIN)
			buf_add_text(out, "More was cached than earlier turns explain: the cache had these "
					  "prompts from an earlier run.\n");
	}
	turn_table(s, out);
}

/* ---- an older release (--compat v0.11) ---- */

static const char *const generation_keys[] = {
	"failed", "latencies", "start_times", "queue_times", "rtfx", "probe_completed",
	"probe_failed", "probe_median_e2el_ms", "probe_p99_e2el_ms", "probe_max_e2el_ms",
	"spec_decode_acceptance_rate", "spec_decode_acceptance_length", "spec_decode_num_drafts",
	"spec_decode_draft_tokens", "spec_decode_accepted_tokens",
	"spec_decode_per_position_acceptance_rates", "diffusion_committed_throughput",
	"diffusion_steps_per_canvas", "diffusion_committed_per_step",
	"diffusion_committed_tokens", "diffusion_denoising_steps", "diffusion_canvas_positions",
	NULL,
};

static const char *const pooling_keys[] = {
	"total_input_sequences", "input_sequence_throughput", "latencies", "queue_times",
	"probe_completed", "probe_failed", "probe_median_e2el_ms", "probe_p99_e2el_ms",
	"probe_max_e2el_ms", NULL,
};

static const char *const *missing_keys(bool is_pooling)
{
	return is_pooling ? pooling_keys : generation_keys;
}

/* Beginnings of lines, now and in that release; NULL: it had no such line. */
static const struct { const char *now, *then; } lines[] = {
	{ "Failed requests", NULL },
	{ "Error ", NULL },
	{ "Input throughput", NULL },
	{ "RTFx", NULL },
	{ "------------------Probe Requests", NULL },
	{ "Probe requests", NULL },
	{ "Median probe", NULL },
	{ "P99 probe", NULL },
	{ "Max probe", NULL },
	{ "Total token throughput (tok/s):", "Total Token throughput (tok/s):" },
};

void report_as_v011(struct buf *out, size_t at)
{
	struct buf kept = { 0 };
	struct str rest;

	if (out->len <= at)
		return;
	rest = (struct str){ out->data + at, out->len - at };
	while (rest.n) {
		struct str line = str_cut(&rest, '\n');
		size_t i = 0, n = sizeof(lines) / sizeof(*lines);

		while (i < n && !str_starts(line, str_of(lines[i].now)))
			i++;
		if (i < n && !lines[i].then)
			continue;
		if (i < n) {
			buf_add_text(&kept, lines[i].then);
			line.p += strlen(lines[i].now);
			line.n -= strlen(lines[i].now);
		}
		buf_add_str(&kept, line);
		buf_add_char(&kept, '\n');
	}
	out->len = at;
	buf_add_str(out, buf_str(&kept));
	buf_release(&kept);
}

enum field_kind {
	FIELD_GONE, FIELD_NULL, FIELD_TEXT, FIELD_INT, FIELD_REAL,
	FIELD_INPUT_LENS, FIELD_OUTPUT_LENS, FIELD_TTFTS, FIELD_ITLS, FIELD_LATENCIES,
	FIELD_START_TIMES, FIELD_QUEUE_TIMES, FIELD_GENERATED_TEXTS, FIELD_ERRORS,
	FIELD_RAMP, FIELD_POSITIONS, FIELD_SESSIONS, FIELD_TURNS, FIELD_OURS,
};

struct result_field {
	const char *key;
	enum field_kind kind;
	union { const char *text; int64_t integer; double real; };
};

struct fields {
	struct result_field *v;
	size_t n, cap;
	struct arena arena; /* keys that are put together */
};

static void put(struct fields *f, struct result_field field)
{
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->v[i].key, field.key) == 0) {
			f->v[i] = field;
			return;
		}
	}
	f->v = mem_room(f->v, f->n, &f->cap, sizeof(*f->v));
	f->v[f->n++] = field;
}

static void put_array(struct fields *f, const char *key, enum field_kind kind)
{
	put(f, (struct result_field){ .key = key, .kind = kind });
}

static void put_text(struct fields *f, const char *key, const char *text)
{
	put(f, (struct result_field){ .key = key, .kind = text ? FIELD_TEXT : FIELD_NULL,
				      .text = text });
}

static void put_int(struct fields *f, const char *key, int64_t v)
{
	put(f, (struct result_field){ .key = key, .kind = FIELD_INT, .integer = v });
}

static void put_real(struct fields *f, const char *key, double v)
{
	put(f, (struct result_field){ .key = key, .kind = FIELD_REAL, .real = v });
}

static void put_setting(struct fields *f, const char *key, double v)
{
	if (isinf(v))
		put_text(f, key, v < 0 ? "-inf" : "inf");
	else
		put_real(f, key, v);
}

static void drop(struct fields *f, const char *key)
{
	for (size_t i = 0; i < f->n; i++)
		if (strcmp(f->v[i].key, key) == 0)
			f->v[i].kind = FIELD_GONE;
}

/* ---- what upstream has ---- */

static void put_setup(struct fields *f, const struct report_facts *r)
{
	put_text(f, "date", r->date);
	put_text(f, "endpoint_type", r->backend);
	put_text(f, "backend", r->backend);
	put_text(f, "label", r->label);
	put_text(f, "model_id", r->model_id);
	put_text(f, "tokenizer_id", r->tokenizer_id);
	put_int(f, "num_prompts", r->num_prompts);
	for (size_t i = 0; i < r->n_metadata; i++)
		put_text(f, r->metadata[i].key, r->metadata[i].value);
	put_setting(f, "request_rate", r->request_rate);
	put_setting(f, "burstiness", r->burstiness);
	if (r->max_concurrency)
		put_int(f, "max_concurrency", r->max_concurrency);
	else
		put_text(f, "max_concurrency", NULL);
	if (!r->ramp_strategy)
		return;
	put_text(f, "ramp_up_strategy", r->ramp_strategy);
	put_int(f, "ramp_up_start_rps", r->ramp_start_rps);
	put_int(f, "ramp_up_end_rps", r->ramp_end_rps);
}

/* At the position in upstream's open pull request: after the other totals. */
static void put_cached(struct fields *f, const struct metrics *m)
{
	if (m->opts.reports_cached_tokens)
		put_int(f, "total_cached_tokens", m->total_cached);
}

static void put_generation(struct fields *f, const struct metrics *m)
{
	put_real(f, "duration", m->duration_s);
	put_int(f, "completed", m->completed);
	put_int(f, "failed", m->failed);
	put_int(f, "total_input_tokens", m->total_input);
	put_int(f, "total_output_tokens", m->total_output);
	put_cached(f, m);
	put_real(f, "request_throughput", m->request_throughput);
	if (m->opts.n_goodput)
		put_real(f, "request_goodput", m->request_goodput);
	else
		put_text(f, "request_goodput", NULL);
	put_real(f, "output_throughput", m->output_throughput);
	put_real(f, "total_token_throughput", m->total_token_throughput);
	put_array(f, "input_lens", FIELD_INPUT_LENS);
	put_array(f, "output_lens", FIELD_OUTPUT_LENS);
	put_array(f, "ttfts", FIELD_TTFTS);
	put_array(f, "itls", FIELD_ITLS);
	put_array(f, "latencies", FIELD_LATENCIES);
	put_array(f, "start_times", FIELD_START_TIMES);
	put_array(f, "queue_times", FIELD_QUEUE_TIMES);
	put_array(f, "generated_texts", FIELD_GENERATED_TEXTS);
	put_array(f, "errors", FIELD_ERRORS);
	put_real(f, "max_output_tokens_per_s", m->max_output_tokens_per_s);
	put_int(f, "max_concurrent_requests", m->max_concurrent_requests);
	put_real(f, "rtfx", m->rtfx);
}

static void put_pooling(struct fields *f, const struct metrics *m)
{
	put_real(f, "duration", m->duration_s);
	put_int(f, "completed", m->completed);
	put_int(f, "total_input_tokens", m->total_input);
	put_int(f, "total_input_sequences", m->total_sequences);
	put_cached(f, m);
	put_real(f, "request_throughput", m->request_throughput);
	put_real(f, "input_sequence_throughput", m->sequence_throughput);
	put_real(f, "total_token_throughput", m->total_token_throughput);
	put_array(f, "input_lens", FIELD_INPUT_LENS);
	put_array(f, "latencies", FIELD_LATENCIES);
	put_array(f, "queue_times", FIELD_QUEUE_TIMES);
	put_array(f, "errors", FIELD_ERRORS);
}

static void put_probe(struct fields *f, const struct metrics_probe *p)
{
	if (p->completed == 0)
		return;
	put_int(f, "probe_completed", p->completed);
	put_int(f, "probe_failed", p->failed);
	put_real(f, "probe_median_e2el_ms", p->median_ms);
	put_real(f, "probe_p99_e2el_ms", p->p99_ms);
	put_real(f, "probe_max_e2el_ms", p->max_ms);
}

/* Both, whichever of them the terminal shows. */
static void put_engine(struct fields *f, const struct metrics *m)
{
	const struct metrics_spec *s = &m->spec;
	const struct metrics_diffusion *d = &m->diffusion;

	if (s->is_reported) {
		put_real(f, "spec_decode_acceptance_rate", s->acceptance_rate);
		put_real(f, "spec_decode_acceptance_length", s->acceptance_length);
		put_int(f, "spec_decode_num_drafts", s->drafts);
		put_int(f, "spec_decode_draft_tokens", s->draft_tokens);
		put_int(f, "spec_decode_accepted_tokens", s->accepted_tokens);
		put_array(f, "spec_decode_per_position_acceptance_rates", FIELD_POSITIONS);
	}
	if (!d->is_reported)
		return;
	put_real(f, "diffusion_committed_throughput", d->committed_throughput);
	put_real(f, "diffusion_steps_per_canvas", d->steps_per_canvas);
	put_real(f, "diffusion_committed_per_step", d->committed_per_step);
	put_int(f, "diffusion_committed_tokens", d->committed_tokens);
	put_int(f, "diffusion_denoising_steps", metrics_whole(d->denoising_steps));
	put_int(f, "diffusion_canvas_positions", d->canvas_positions);
}

static void put_blocks(struct fields *f, const struct metrics *m)
{
	for (enum metric_block b = 0; b < BLOCK_COUNT; b++) {
		const struct metrics_summary *s = &m->block[b];

		for (size_t k = 0; k < n_block_values(&m->opts, s); k++) {
			const char *key;
			double value = block_value(&f->arena, &m->opts, b, s, k, &key);

			put_real(f, key, value);
		}
	}
}

/* Upstream removes these at the very end; whatever has such a key goes. */
static void drop_details(struct fields *f, const struct report_facts *r)
{
	static const char *const keys[] = {
		"input_lens", "output_lens", "ttfts", "itls", "start_times", "generated_texts",
		"errors",
	};

	if (r->is_detailed)
		return;
	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		drop(f, keys[i]);
	if (r->is_detail_strict) {
		drop(f, "latencies");
		drop(f, "queue_times");
	}
}

static void drop_later(struct fields *f, const struct report *r)
{
	const char *const *key = missing_keys(r->metrics->opts.is_pooling);

	for (; r->facts->is_v011 && *key; key++)
		drop(f, *key);
}

/* ---- writing ---- */

static void write_ints(struct json_writer *w, const int64_t *v, uint32_t n)
{
	json_begin_array(w);
	for (uint32_t i = 0; i < n; i++)
		json_put_int(w, v[i]);
	json_end_array(w);
}

static void write_reals(struct json_writer *w, const double *v, size_t n)
{
	json_begin_array(w);
	for (size_t i = 0; i < n; i++)
		json_put_f64(w, v[i]);
	json_end_array(w);
}

static void write_itls(struct json_writer *w, const struct metrics *m)
{
	json_begin_array(w);
	for (uint32_t i = 0; i < m->n; i++)
		write_reals(w, m->itl + m->itl_at[i], m->itl_at[i + 1] - m->itl_at[i]);
	json_end_array(w);
}

/* A failed stream's text is not kept, as upstream. */
static void write_texts(struct json_writer *w, const struct report *r, bool is_error)
{
	struct buf raw = { 0 }, text = { 0 };

	json_begin_array(w);
	for (uint32_t i = 0; i < r->metrics->n; i++) {
		const struct request_row *row = &r->record->row[r->metrics->row[i]];

		buf_reset(&raw);
		buf_reset(&text);
		if (is_error && row->state != REQ_DONE) {
			struct str rest;

			record_error_of(r->record, row, &raw);
			rest = buf_str(&raw);
			buf_add_str(&text, str_cut(&rest, '\n')); /* as upstream: no bodies */
			if (text.len == 0)
				buf_add_text(&text, row->state == REQ_FAILED ? "failed" : "cancelled");
		} else if (!is_error && row->state == REQ_DONE) {
			record_text_of(r->record, row, &raw);
			json_unescape(&text, buf_str(&raw));
		}
		json_put_str(w, buf_str(&text));
	}
	json_end_array(w);
	buf_release(&raw);
	buf_release(&text);
}

static void write_ramp(struct json_writer *w, const struct report_facts *f)
{
	json_begin_array(w);
	for (size_t i = 0; i < f->n_ramp; i++) {
		json_begin_object(w);
		json_member_int(w, "rps", f->ramp[i].rps);
		json_member_text(w, "timestamp", f->ramp[i].timestamp);
		json_end_object(w);
	}
	json_end_array(w);
}

static void write_ours(struct json_writer *w, const struct report *r)
{
	struct buf ours = { 0 };

	report_ours_json(r, &ours);
	if (ours.is_over)
		w->out->is_over = true;
	else
		json_put_raw(w, buf_str(&ours));
	buf_release(&ours);
}

static void write_field(struct json_writer *w, const struct report *r, const struct result_field *f)
{
	const struct metrics *m = r->metrics;

	json_key(w, f->key);
	switch (f->kind) {
	case FIELD_GONE:
	case FIELD_NULL: json_put_null(w); break;
	case FIELD_TEXT: json_put_text(w, f->text); break;
	case FIELD_INT: json_put_int(w, f->integer); break;
	case FIELD_REAL: json_put_f64(w, f->real); break;
	case FIELD_INPUT_LENS: write_ints(w, m->input_len, m->n); break;
	case FIELD_OUTPUT_LENS: write_ints(w, m->output_len, m->n); break;
	case FIELD_TTFTS: write_reals(w, m->ttft, m->n); break;
	case FIELD_ITLS: write_itls(w, m); break;
	case FIELD_LATENCIES: write_reals(w, m->latency, m->n); break;
	case FIELD_START_TIMES: write_reals(w, m->start_time, m->n); break;
	case FIELD_QUEUE_TIMES: write_reals(w, m->queue_time, m->n); break;
	case FIELD_GENERATED_TEXTS: write_texts(w, r, false); break;
	case FIELD_ERRORS: write_texts(w, r, true); break;
	case FIELD_POSITIONS:
		write_reals(w, m->spec.position_rate, m->spec.n_positions);
		break;
	case FIELD_RAMP: write_ramp(w, r->facts); break;
	case FIELD_SESSIONS: report_sessions_json(w, m); break;
	case FIELD_TURNS: report_turns_json(w, m); break;
	case FIELD_OURS: write_ours(w, r); break;
	}
}

int report_result_json(const struct report *r, struct buf *out, struct err *e)
{
	struct json_writer w = json_writer(out);
	struct fields f = { 0 };

	put_setup(&f, r->facts);
	if (r->metrics->opts.is_pooling)
		put_pooling(&f, r->metrics);
	else
		put_generation(&f, r->metrics);
	put_probe(&f, &r->metrics->probe);
	if (r->facts->ramp_strategy)
		put_array(&f, "rps_change_events", FIELD_RAMP);
	put_engine(&f, r->metrics);
	put_blocks(&f, r->metrics);
	drop_details(&f, r->facts);
	drop_later(&f, r);
	if (r->metrics->sessions.n) {
		put_array(&f, "sessions", FIELD_SESSIONS);
		put_array(&f, "per_turn_metrics", FIELD_TURNS);
	}
	put_array(&f, "profllm", FIELD_OURS);
	json_begin_object(&w);
	for (size_t i = 0; i < f.n; i++)
		if (f.v[i].kind != FIELD_GONE)
			write_field(&w, r, &f.v[i]);
	json_end_object(&w);
	free(f.v);
	arena_release(&f.arena);
	if (out->is_over)
		return err_set(e, ERR_LIMIT, "the result is larger than %llu bytes; leave out "
			       "--save-detailed and use --record", BUF_BYTES_MAX);
	return 0;
}
