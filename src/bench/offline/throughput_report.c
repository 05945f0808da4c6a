/* SPDX-License-Identifier: Apache-2.0 */
/* throughput_report.c - see throughput.h: numbers, doubts, terminal and JSON. */
#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/offline/throughput.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"
#include "out/report/verdict.h"

/* ---- numbers ---- */

/*
 * Upstream warns whenever media went to a backend other than vllm-chat. Engines of ours whose
 * counts exceed the texts' have counted the media.
 */
static bool is_media_uncounted(const struct throughput_runs *r, const struct throughput_facts *f)
{
	const bool is_upstreams = strcmp(r->backend, "vllm") == 0 || strcmp(r->backend, "hf") == 0;

	return r->is_multimodal && strcmp(r->backend, "vllm-chat") != 0 &&
	       (is_upstreams || f->prompt_tokens <= r->requested_prompt_tokens);
}

static void judge(const struct throughput_runs *r, struct throughput_facts *f)
{
	const uint64_t wanted = r->requested_output_tokens * (uint64_t)r->sequences;
	const bool is_same = f->prompt_tokens == r->prompt_tokens &&
			     f->output_tokens == r->output_tokens;

	if (r->n_runs < r->wanted)
		f->doubts |= THROUGHPUT_STOPPED;
	if (r->finished < r->n)
		f->doubts |= THROUGHPUT_UNFINISHED;
	if (r->has_counts && !r->is_pooling && r->output_tokens < wanted)
		f->doubts |= THROUGHPUT_FEWER;
	if (r->is_as_requested && r->has_counts && !is_same)
		f->doubts |= THROUGHPUT_REQUESTED;
	if ((double)r->cached_tokens - r->explained_tokens >
	    TRUST_CACHED_SHARE * (double)r->prompt_tokens)
		f->doubts |= THROUGHPUT_CACHED;
	if (r->is_profiled)
		f->doubts |= THROUGHPUT_PROFILED;
	if (is_media_uncounted(r, f))
		f->doubts |= THROUGHPUT_MEDIA;
	if (f->elapsed_s < THROUGHPUT_SHORT_S)
		f->doubts |= THROUGHPUT_BRIEF;
	if (f->outside_share > THROUGHPUT_OUTSIDE_SHARE)
		f->doubts |= THROUGHPUT_OUTSIDE;
	if (r->n_runs > 1 && fabs(f->median_s / f->elapsed_s - 1) > THROUGHPUT_APART_SHARE)
		f->doubts |= THROUGHPUT_APART;
}

static void count(const struct throughput_runs *r, struct throughput_facts *f)
{
	bool is_counted = r->has_counts && !r->is_as_requested;

	f->prompt_tokens = is_counted ? r->prompt_tokens : r->requested_prompt_tokens;
	f->output_tokens = is_counted ? r->output_tokens : r->requested_output_tokens;
	f->total_tokens = f->prompt_tokens + f->output_tokens;
	f->requests_per_s = (double)r->n / f->elapsed_s;
	f->total_tokens_per_s = (double)f->total_tokens / f->elapsed_s;
	f->output_tokens_per_s = (double)f->output_tokens / f->elapsed_s;
	f->prompt_tokens_per_s = (double)f->prompt_tokens / f->elapsed_s;
	f->counted_output_per_s = f->counted_total_per_s = NAN;
	if (!r->has_counts)
		return;
	f->counted_output_per_s = (double)r->output_tokens / f->elapsed_s;
	f->counted_total_per_s = (double)(r->prompt_tokens + r->output_tokens) / f->elapsed_s;
}

void throughput_facts(const struct throughput_runs *r, struct throughput_facts *f)
{
	double *sorted = stats_sorted(r->elapsed_s, r->n_runs);

	assert(r->n_runs > 0);
	*f = (struct throughput_facts){ .elapsed_s = r->elapsed_s[0] };
	count(r, f);
	f->median_s = stats_median(sorted, r->n_runs);
	if (r->n_runs > 1)
		f->mean_95 = student_interval(r->elapsed_s, r->n_runs, 0.95);
	f->outside_share = f->elapsed_s > 0 ? r->outside_s / f->elapsed_s : 0;
	free(sorted);
	judge(r, f);
}

/* ---- terminal ---- */

void throughput_terminal(const struct throughput_runs *r, const struct throughput_facts *f,
			 struct buf *out)
{
	if (f->doubts & THROUGHPUT_MEDIA)
		buf_printf(out, "\033[91mWARNING\033[0m: Multi-modal request with %s backend detected. "
			   "The following metrics are not accurate because image tokens are not "
			   "counted. See vllm-project/vllm/issues/9778 for details.\n", r->backend);
	buf_printf(out, "Throughput: %.2f requests/s, %.2f total tokens/s, %.2f output tokens/s\n",
		   f->requests_per_s, f->total_tokens_per_s, f->output_tokens_per_s);
	buf_printf(out, "Total num prompt tokens:  %" PRIu64 "\nTotal num output tokens:  %" PRIu64
		   "\n", f->prompt_tokens, f->output_tokens);
}

static const struct offline_doubt doubts[] = {
	{ THROUGHPUT_STOPPED, TRUST_DEGRADED, "interrupted", NULL },
	{ THROUGHPUT_UNFINISHED, TRUST_INVALID, "unfinished", NULL },
	{ THROUGHPUT_FEWER, TRUST_DEGRADED, "short_answers", NULL },
	{ THROUGHPUT_REQUESTED, TRUST_DEGRADED, "requested_tokens", NULL },
	{ THROUGHPUT_CACHED, TRUST_DEGRADED, "prefix_cache", NULL },
	{ THROUGHPUT_PROFILED, TRUST_INVALID, "profiled",
	  "the profiler was started, ran and was stopped inside the clock" },
	{ THROUGHPUT_MEDIA, TRUST_DEGRADED, "media_tokens",
	  "tokens of images, videos and sound are not in these numbers" },
	{ THROUGHPUT_BRIEF, TRUST_DEGRADED, "brief", NULL },
	{ THROUGHPUT_OUTSIDE, TRUST_DEGRADED, "outside_the_clock", NULL },
	{ THROUGHPUT_APART, TRUST_DEGRADED, "runs_apart", NULL },
};

struct throughput_figures { const struct throughput_runs *r; const struct throughput_facts *f; };

static void explain_tokens(const struct throughput_runs *r, const struct throughput_facts *f,
			   unsigned doubt, struct buf *out)
{
	if (doubt == THROUGHPUT_FEWER)
		buf_printf(out, "%" PRIu64 " tokens came back where %" PRIu64 " were asked for",
			   r->output_tokens, r->requested_output_tokens * (uint64_t)r->sequences);
	else
		buf_printf(out, "the tokens above are those asked for, one answer a prompt, as vLLM has "
			   "it; counted: %" PRIu64 " and %" PRIu64 ", %.2f total tokens/s, %.2f output "
			   "tokens/s (--fix token-counts)", r->prompt_tokens, r->output_tokens,
			   f->counted_total_per_s, f->counted_output_per_s);
}

/* One sentence. */
static void explain(const void *self, unsigned doubt, struct buf *out)
{
	const struct throughput_runs *r = ((const struct throughput_figures *)self)->r;
	const struct throughput_facts *f = ((const struct throughput_figures *)self)->f;

	switch ((enum throughput_doubt)doubt) {
	case THROUGHPUT_STOPPED:
		buf_printf(out, "stopped after %zu of %zu runs", r->n_runs, r->wanted);
		break;
	case THROUGHPUT_UNFINISHED:
		buf_printf(out, "%zu of %zu requests have no answer", r->n - r->finished, r->n);
		break;
	case THROUGHPUT_FEWER:
	case THROUGHPUT_REQUESTED:
		explain_tokens(r, f, doubt, out);
		break;
	case THROUGHPUT_CACHED:
		buf_printf(out, "%.1f %% of the prompt tokens were in the prefix cache; this run's "
			   "own prompts explain %.1f %% (limit: %.0f %% more). Use another --seed, "
			   "or empty the server's cache, before each run",
			   100 * (double)r->cached_tokens / (double)r->prompt_tokens,
			   100 * r->explained_tokens / (double)r->prompt_tokens,
			   100 * TRUST_CACHED_SHARE);
		break;
	case THROUGHPUT_BRIEF:
		buf_printf(out, "the timed section took %.3f s, which is mostly the beginning and the "
			   "end of a batch; give it more requests", f->elapsed_s);
		break;
	case THROUGHPUT_OUTSIDE:
		buf_printf(out, "in addition, %.1f %% of the timed section passed between request "
			   "and answer, outside the engine's own clock", f->outside_share * 100);
		break;
	case THROUGHPUT_APART:
		buf_printf(out, "the median time of %zu runs differs from the first one by %+.1f "
			   "%%: prompts in a prefix cache, or no warm-up "
			   "(--num-warmups)", r->n_runs,
			   (f->median_s / f->elapsed_s - 1) * 100);
		break;
	case THROUGHPUT_PROFILED:
	case THROUGHPUT_MEDIA:
		break;
	}
}

static struct trust verdict(const struct throughput_runs *r, const struct throughput_facts *f)
{
	return offline_verdict(doubts, sizeof(doubts) / sizeof(*doubts), f->doubts, explain,
			       &(struct throughput_figures){ r, f });
}

static void show_latencies(const struct throughput_runs *r, struct buf *out)
{
	double *sorted;

	if (!r->e2el_s || !r->n_e2el)
		return;
	sorted = stats_sorted(r->e2el_s, r->n_e2el);
	buf_add_text(out, "A request's time: median ");
	offline_put_time(out, stats_median(sorted, r->n_e2el));
	buf_add_text(out, ", 99 % within ");
	offline_put_time(out, stats_percentile(sorted, r->n_e2el, 99));
	buf_add_char(out, '\n');
	free(sorted);
}

static void show_runs(const struct throughput_runs *r, const struct throughput_facts *f,
		      struct buf *out)
{
	if (r->n_runs < 2)
		return;
	buf_printf(out, "Runs: %zu, median %.2f requests/s; 95 %% interval of the mean time ",
		   r->n_runs, (double)r->n / f->median_s);
	offline_put_time(out, fmax(0, f->mean_95.low));
	buf_add_text(out, " to ");
	offline_put_time(out, f->mean_95.high);
	buf_add_text(out, "; the numbers above are of the first\n");
}

void throughput_terminal_ours(const struct throughput_runs *r, const struct throughput_facts *f,
			      struct buf *out)
{
	const double n = (double)r->n;
	struct trust t = verdict(r, f);

	buf_printf(out, "Requests: %zu of %.1f prompt tokens and %" PRId64 " x %.1f answer tokens on "
		   "average, after %zu to warm up\n", r->n, (double)r->requested_prompt_tokens / n,
		   r->sequences, (double)r->requested_output_tokens / n, r->n_warmup);
	buf_add_text(out, "Timed: ");
	offline_put_time(out, f->elapsed_s);
	buf_printf(out, "; prompt tokens: %.2f tokens/s", f->prompt_tokens_per_s);
	if (r->outside_s > 0) {
		buf_add_text(out, "; outside the engine's clock: ");
		offline_put_time(out, r->outside_s);
	}
	buf_add_char(out, '\n');
	if (r->cached_tokens)
		buf_printf(out, "Prompt tokens from the prefix cache: %" PRIu64 " (%.2f %%)\n",
			   r->cached_tokens, r->prompt_tokens ? 100 * (double)r->cached_tokens /
			   (double)r->prompt_tokens : 0);
	show_latencies(r, out);
	show_runs(r, f, out);
	offline_show_verdict(&t, out);
}

/* ---- the result file ---- */

static void put_tokens(struct json_writer *w, const struct throughput_runs *r,
		       const struct throughput_facts *f)
{
	json_member_text(w, "token_counts", r->has_counts && !r->is_as_requested ? "counted" : "requested");
	json_member_int(w, "total_prompt_tokens", (int64_t)f->prompt_tokens);
	json_member_int(w, "total_output_tokens", (int64_t)f->output_tokens);
	json_member_f64(w, "output_tokens_per_second", f->output_tokens_per_s);
	json_member_f64(w, "prompt_tokens_per_second", f->prompt_tokens_per_s);
	json_member_int(w, "requested_prompt_tokens", (int64_t)r->requested_prompt_tokens);
	json_member_int(w, "requested_output_tokens", (int64_t)r->requested_output_tokens);
	if (!r->has_counts)
		return;
	json_member_int(w, "counted_prompt_tokens", (int64_t)r->prompt_tokens);
	json_member_int(w, "counted_output_tokens", (int64_t)r->output_tokens);
	json_member_f64(w, "counted_tokens_per_second", f->counted_total_per_s);
	json_member_f64(w, "counted_output_tokens_per_second", f->counted_output_per_s);
}

static void put_runs(struct json_writer *w, const struct throughput_runs *r,
		     const struct throughput_facts *f)
{
	json_member_f64s(w, "elapsed_times", r->elapsed_s, r->n_runs);
	json_member_f64(w, "outside_clock_s", r->outside_s);
	if (r->n_runs > 1) {
		const double ends[] = { f->mean_95.low, f->mean_95.high };

		json_member_f64(w, "median_elapsed_time", f->median_s);
		json_member_f64(w, "median_requests_per_second", (double)r->n / f->median_s);
		json_member_f64s(w, "mean_elapsed_time_interval_95", ends, 2);
	}
	if (r->e2el_s && r->n_e2el) {
		static const int percentages[] = { 50, 90, 99 };
		double *sorted = stats_sorted(r->e2el_s, r->n_e2el);
		char key[8];

		json_member_object(w, "request_time_percentiles");
		for (size_t i = 0; i < sizeof(percentages) / sizeof(*percentages); i++) {
			snprintf(key, sizeof(key), "%d", percentages[i]);
			json_member_f64(w, key,
					stats_percentile(sorted, r->n_e2el, percentages[i]));
		}
		json_end_object(w);
		free(sorted);
	}
}

void throughput_json(const struct throughput_runs *r, const struct throughput_facts *f,
		     const struct throughput_config *config, struct buf *out)
{
	struct trust t = verdict(r, f);
	struct json_writer w = json_writer(out);

	w.indent = 4;
	json_begin_object(&w);
	json_member_text(&w, "model_id", config->model);
	json_member_f64(&w, "elapsed_time", f->elapsed_s);
	json_member_int(&w, "num_requests", (int64_t)r->n);
	json_member_int(&w, "total_num_tokens", (int64_t)f->total_tokens);
	json_member_f64(&w, "requests_per_second", f->requests_per_s);
	json_member_f64(&w, "tokens_per_second", f->total_tokens_per_s);
	json_member_object(&w, "profllm");
	json_put_members(&w, config->ours);
	json_member_int(&w, "n", r->sequences);
	json_member_int(&w, "warmup_requests", (int64_t)r->n_warmup);
	if (r->finished != SIZE_MAX)
		json_member_int(&w, "finished_requests", (int64_t)r->finished);
	put_tokens(&w, r, f);
	put_runs(&w, r, f);
	verdict_put(&w, &t);
	json_end_object(&w);
	json_end_object(&w);
}

void throughput_extra(const struct throughput_runs *r, const struct throughput_facts *f,
		      struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_f64(&w, "elapsed_time", f->elapsed_s);
	json_member_int(&w, "num_requests", (int64_t)r->n);
	json_member_int(&w, "total_num_tokens", (int64_t)f->total_tokens);
	json_end_object(&w);
}
