/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result.c - the result file: upstream's keys in upstream's order, then ours.
 *
 * Upstream builds a dict, so a metadata key that equals another key takes part
 * in its order: an earlier key keeps its place and gets the metadata's value, a
 * later key keeps the metadata's place and overwrites its value. The list of
 * fields here behaves like that dict; arrays are written only at the end.
 */
#include "report/report.h"

#include <math.h>

#include "base/mem.h"
#include "json/write.h"
#include "report/release.h"
#include "report/result_parts.h"

enum field_kind {
	FIELD_GONE, FIELD_NULL, FIELD_TEXT, FIELD_INT, FIELD_REAL,
	FIELD_INPUT_LENS, FIELD_OUTPUT_LENS, FIELD_TTFTS, FIELD_ITLS, FIELD_LATENCIES,
	FIELD_START_TIMES, FIELD_QUEUE_TIMES, FIELD_GENERATED_TEXTS, FIELD_ERRORS,
	FIELD_RAMP, FIELD_POSITIONS, FIELD_SESSIONS, FIELD_TURNS, FIELD_OURS,
};

struct field {
	const char *key;
	enum field_kind kind;
	union { const char *text; int64_t integer; double real; };
};

struct fields {
	struct field *v;
	size_t n, cap;
	struct arena arena; /* keys that are put together */
};

static void put(struct fields *f, struct field field)
{
	for (size_t i = 0; i < f->n; i++) {
		if (strcmp(f->v[i].key, field.key) == 0) {
			f->v[i] = field;
			return;
		}
	}
	if (f->n == f->cap) {
		f->cap = f->cap ? f->cap * 2 : 64;
		f->v = mem_grow(f->v, f->cap, sizeof(*f->v));
	}
	f->v[f->n++] = field;
}

static void put_array(struct fields *f, const char *key, enum field_kind kind)
{
	put(f, (struct field){ .key = key, .kind = kind });
}

static void put_text(struct fields *f, const char *key, const char *text)
{
	put(f, (struct field){ .key = key, .kind = text ? FIELD_TEXT : FIELD_NULL, .text = text });
}

static void put_int(struct fields *f, const char *key, int64_t v)
{
	put(f, (struct field){ .key = key, .kind = FIELD_INT, .integer = v });
}

static void put_real(struct fields *f, const char *key, double v)
{
	put(f, (struct field){ .key = key, .kind = FIELD_REAL, .real = v });
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

/* Where upstream's open pull request has it: after the other totals. */
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

	if (s->is_told) {
		put_real(f, "spec_decode_acceptance_rate", s->acceptance_rate);
		put_real(f, "spec_decode_acceptance_length", s->acceptance_length);
		put_int(f, "spec_decode_num_drafts", s->drafts);
		put_int(f, "spec_decode_draft_tokens", s->draft_tokens);
		put_int(f, "spec_decode_accepted_tokens", s->accepted_tokens);
		put_array(f, "spec_decode_per_position_acceptance_rates", FIELD_POSITIONS);
	}
	if (!d->is_told)
		return;
	put_real(f, "diffusion_committed_throughput", d->committed_throughput);
	put_real(f, "diffusion_steps_per_canvas", d->steps_per_canvas);
	put_real(f, "diffusion_committed_per_step", d->committed_per_step);
	put_int(f, "diffusion_committed_tokens", d->committed_tokens);
	put_int(f, "diffusion_denoising_steps", metrics_whole(d->denoising_steps));
	put_int(f, "diffusion_canvas_positions", d->canvas_positions);
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

void report_block_members(struct json_writer *w, const struct metrics_opts *o,
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
	const char *const *key = release_missing_keys(r->metrics->opts.is_pooling);

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

static void write_field(struct json_writer *w, const struct report *r, const struct field *f)
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
