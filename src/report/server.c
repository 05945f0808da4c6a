/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - what stands beside the load in a report: probes, engine, servers, steady state. */
#include "report/lines.h"

/* ---- upstream's blocks ---- */

void report_probe_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_probe *p = &m->probe;

	if (p->completed == 0)
		return;
	line_heading(out, '-', "Probe Requests");
	line_int(out, "Probe requests completed:", p->completed);
	line_int(out, "Probe requests failed:", p->failed);
	line_real(out, "Median probe E2EL (ms):", p->median_ms);
	line_real(out, "P99 probe E2EL (ms):", p->p99_ms);
	line_real(out, "Max probe E2EL (ms):", p->max_ms);
}

static void diffusion_rows(const struct metrics_diffusion *d, struct buf *out)
{
	line_heading(out, '-', "Diffusion Decoding");
	line_real(out, "Committed throughput (tok/s):", d->committed_throughput);
	line_real(out, "Denoising steps per canvas:", d->steps_per_canvas);
	line_real(out, "Committed per denoising step:", d->committed_per_step);
	line_int(out, "Committed tokens:", d->committed_tokens);
	line_int(out, "Denoising steps:", metrics_whole(d->denoising_steps));
	line_int(out, "Canvas positions evaluated:", d->canvas_positions);
}

static void spec_rows(const struct metrics_spec *s, struct buf *out)
{
	char label[40];

	line_heading(out, '-', "Speculative Decoding");
	line_real(out, "Acceptance rate (%):", s->acceptance_rate);
	line_real(out, "Acceptance length:", s->acceptance_length);
	line_int(out, "Drafts:", s->drafts);
	line_int(out, "Draft tokens:", s->draft_tokens);
	line_int(out, "Accepted tokens:", s->accepted_tokens);
	if (s->n_positions)
		buf_add_text(out, "Per-position acceptance (%):\n");
	for (size_t i = 0; i < s->n_positions; i++) {
		snprintf(label, sizeof(label), "  Position %zu:", i);
		line_real(out, label, s->position_rate[i] * 100);
	}
}

void report_engine_rows(const struct metrics *m, struct buf *out)
{
	if (m->diffusion.is_told)
		diffusion_rows(&m->diffusion, out);
	else if (m->spec.is_told)
		spec_rows(&m->spec, out);
}

/* ---- ours ---- */

/* Whole requests, and hundredths of a percent; a mean has two places in both. */
static void gauge_row(struct buf *out, const char *label, const struct metrics_gauge *g,
		      bool is_share)
{
	double factor = is_share ? 100 : 1;
	int places = is_share ? 2 : 0;
	char text[200];

	if (g->n == 0)
		return;
	snprintf(text, sizeof(text), "%.*f / %.2f / %.*f / %.*f", places, g->min * factor,
		 g->mean * factor, places, g->max * factor, places, g->last * factor);
	line_text(out, label, text);
}

void report_preemptions(const struct metrics *m, struct buf *out)
{
	const struct metrics_growth *p = &m->servers.preemptions;
	int64_t n = p->is_told ? metrics_whole(p->value) : 0;

	if (n <= 0)
		return;
	buf_printf(out, "The KV cache was too small for the requests in the batch: %lld time%s one was "
		   "thrown out and computed again, which is in the latencies. Usual remedies: more "
		   "memory for the cache (--gpu-memory-utilization, --tensor-parallel-size, "
		   "--pipeline-parallel-size, --kv-cache-dtype fp8) or fewer requests in it "
		   "(--max-num-seqs, --max-num-batched-tokens, --max-concurrency of the load).",
		   (long long)n, n == 1 ? "" : "s");
}

void report_server_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_server *s = &m->servers;
	char text[60];
	size_t at;

	if (s->scrapes == 0)
		return;
	line_heading(out, '-', "Server Metrics");
	gauge_row(out, "Running requests min/mean/max/last:", &s->running, false);
	gauge_row(out, "Waiting requests min/mean/max/last:", &s->waiting, false);
	gauge_row(out, "KV cache use min/mean/max/last (%):", &s->kv_usage, true);
	if (s->prefix_queries.is_told && s->prefix_hits.is_told && s->prefix_queries.value > 0)
		line_real(out, "Prefix cache hit rate (%):",
			  100 * s->prefix_hits.value / s->prefix_queries.value);
	if (s->preemptions.is_told)
		line_int(out, "Preemptions:", metrics_whole(s->preemptions.value));
	snprintf(text, sizeof(text), "%u / %u", s->scrapes, s->failed_scrapes);
	line_text(out, "Readings of /metrics, done/failed:", text);
	at = out->len;
	report_preemptions(m, out);
	if (out->len > at)
		buf_add_char(out, '\n');
}

void report_steady_warning(const struct metrics *m, struct buf *out)
{
	const struct metrics_steady *s = &m->steady;

	if (!s->is_wanted)
		return;
	if (!s->is_reached)
		buf_printf(out, "There was no steady state: never more than %lld requests were in "
			   "flight, and it takes %lld.", (long long)s->observed_peak,
			   (long long)s->threshold_requests);
	else if (s->is_short)
		buf_printf(out, "The steady state lasted %.1f s (%.1f %% of the run), which may be too "
			   "short to stand for it.", s->duration_s,
			   s->run_s > 0 ? 100 * s->duration_s / s->run_s : 0);
}

/* Labels begin with "Steady", or a search for upstream's would find them too. */
static void steady_numbers(const struct metrics *m, struct buf *out)
{
	const struct metrics_steady *s = &m->steady;
	char label[80], text[80], p[FMT_F64_BYTES];

	snprintf(text, sizeof(text), "%.2f / %.2f", (double)(s->start_ns - s->first_ns) / 1e9,
		 (double)(s->end_ns - s->first_ns) / 1e9);
	line_text(out, "Steady from/to (s after first start):", text);
	snprintf(text, sizeof(text), "%u / %u", s->started, s->completed);
	line_text(out, "Steady requests started/completed:", text);
	line_real(out, "Steady requests (req/s):", s->request_throughput);
	line_real(out, "Steady input tokens (tok/s):", s->input_throughput);
	if (m->opts.is_pooling)
		return;
	line_real(out, "Steady output tokens (tok/s):", s->output_throughput);
	line_real(out, "Steady mean TTFT (ms):", s->mean_ttft_ms);
	line_real(out, "Steady median TTFT (ms):", s->median_ttft_ms);
	for (size_t i = 0; i < m->opts.n_percentiles; i++) {
		snprintf(label, sizeof(label), "Steady P%s TTFT (ms):",
			 metrics_percentile_name(p, m->opts.percentile[i]));
		line_real(out, label, s->percentile_ttft_ms[i]);
	}
	line_real(out, "Steady mean TPOT (ms):", s->mean_tpot_ms);
	line_real(out, "Steady median TPOT (ms):", s->median_tpot_ms);
	line_real(out, "Steady P90 TPOT (ms):", s->p90_tpot_ms);
	line_real(out, "Steady P99 TPOT (ms):", s->p99_tpot_ms);
}

void report_steady_rows(const struct metrics *m, struct buf *out)
{
	const struct metrics_steady *s = &m->steady;
	char text[80];

	if (!s->is_wanted)
		return;
	line_heading(out, '-', "Steady State");
	snprintf(text, sizeof(text), "%lld / %lld", (long long)s->threshold_requests,
		 (long long)s->observed_peak);
	line_text(out, "Steady concurrency needed/peak:", text);
	if (s->is_reached)
		steady_numbers(m, out);
	report_steady_warning(m, out);
	if (!s->is_reached || s->is_short)
		buf_add_char(out, '\n');
}
