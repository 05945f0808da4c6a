/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c - see latency.h: options, numbers, the run. */
#include "bench/offline/latency.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bench/offline/offline.h"
#include "bench/offline/pytorch.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/write.h"
#include "core/rng/rng.h"
#include "core/stats/significance.h"
#include "core/stats/stats.h"
#include "host/engine/args.h"
#include "out/report/verdict.h"

/* ---- numbers ---- */

#define TOKENS_COUNTED 0x1p53 /* a double holds each count below it */

/* A normal distribution's standard deviation divided by its median absolute deviation. */
#define MAD_SCALE 1.4826

static double median_deviation(const struct latency_runs *r, double median)
{
	double *away = mem_array(r->n, sizeof(*away)), mad;

	for (size_t i = 0; i < r->n; i++)
		away[i] = fabs(r->latency_s[i] - median);
	stats_sort(away, r->n);
	mad = stats_median(away, r->n);
	free(away);
	return mad * MAD_SCALE;
}

static bool is_outlier(double x, double median, double deviation)
{
	const double away = fabs(x - median);

	return away > LATENCY_OUTLIER_DEVIATIONS * deviation &&
	       away > LATENCY_OUTLIER_SHARE * median;
}

static bool is_apart(struct interval a, struct interval b)
{
	return a.high < b.low || b.high < a.low;
}

/* Means of the first and of the last third, and whether they differ significantly. */
static void judge_drift(const struct latency_runs *r, struct latency_facts *f)
{
	size_t n = r->n / 3;
	const double *last = r->latency_s + r->n - n;
	struct interval a, b;

	f->first_third_s = stats_mean(r->latency_s, n);
	f->last_third_s = stats_mean(last, n);
	f->drift = f->first_third_s > 0 ? f->last_third_s / f->first_third_s - 1 : 0;
	a = student_interval(r->latency_s, n, 0.95);
	b = student_interval(last, n, 0.95);
	if (fabs(f->drift) > LATENCY_DRIFT_SHARE && is_apart(a, b))
		f->doubts |= LATENCY_DRIFTS;
}

/* Tokens of an iteration: counted, else requested. */
static void count_tokens(const struct latency_runs *r, struct latency_facts *f)
{
	double wanted = (double)r->batch_size * (double)r->sequences * (double)r->output_len;
	double n = (double)r->n;

	/* Beyond any possible count: requested by mistake. */
	f->expected_tokens = wanted < TOKENS_COUNTED / n ? (uint64_t)wanted * r->n : UINT64_MAX;
	f->prompt_tokens = (double)r->batch_size * (double)r->input_len;
	f->output_tokens = wanted;
	if (r->has_counts) {
		f->prompt_tokens = (double)r->prompt_tokens / n;
		f->output_tokens = (double)r->output_tokens / n;
		if (r->output_tokens < f->expected_tokens)
			f->doubts |= LATENCY_SHORT;
	}
	if (f->mean_s > 0) {
		f->output_tokens_per_s = f->output_tokens / f->mean_s;
		f->total_tokens_per_s = (f->prompt_tokens + f->output_tokens) / f->mean_s;
	}
	if (r->output_len > 0)
		f->s_per_token = f->mean_s / (double)r->output_len;
}

void latency_facts(const struct latency_runs *r, struct latency_facts *f)
{
	double *sorted, deviation, sum;

	assert(r->n <= r->wanted);
	*f = (struct latency_facts){ .doubts = r->n < r->wanted ? LATENCY_STOPPED : 0 };
	if (r->n == 0)
		return;
	sorted = stats_sorted(r->latency_s, r->n);
	f->mean_s = stats_mean(r->latency_s, r->n);
	f->std_s = stats_std(r->latency_s, r->n);
	f->median_s = stats_median(sorted, r->n);
	f->min_s = sorted[0];
	f->max_s = sorted[r->n - 1];
	offline_percentiles(r->latency_s, r->n, f->percentile_s);
	f->mean_95 = student_interval(r->latency_s, r->n, 0.95);
	deviation = median_deviation(r, f->median_s);
	for (size_t i = 0; i < r->n; i++)
		f->outliers += is_outlier(r->latency_s[i], f->median_s, deviation);
	if (r->n < LATENCY_JUDGE_MIN) {
		f->doubts |= LATENCY_FEW;
	} else {
		judge_drift(r, f);
		if (f->mean_s > 0 && f->std_s / f->mean_s > LATENCY_SPREAD_SHARE)
			f->doubts |= LATENCY_SPREADS;
		if (r->n_warmup == 0 && r->latency_s[0] > f->median_s &&
		    is_outlier(r->latency_s[0], f->median_s, deviation))
			f->doubts |= LATENCY_FIRST_SLOW;
	}
	count_tokens(r, f);
	sum = stats_sum(r->latency_s, r->n);
	f->outside_share = sum > 0 ? r->outside_s / sum : 0;
	if (f->outside_share > LATENCY_OUTSIDE_SHARE)
		f->doubts |= LATENCY_OUTSIDE;
	free(sorted);
}

/* ---- terminal ---- */

void latency_terminal(const struct latency_facts *f, struct buf *out)
{
	char text[FMT_F64_BYTES];

	buf_printf(out, "Avg latency: %s seconds\n", fmt_f64(text, f->mean_s));
	for (int i = 0; i < OFFLINE_PERCENTILES; i++)
		buf_printf(out, "%d%% percentile latency: %s seconds\n", offline_percentages[i],
			   fmt_f64(text, f->percentile_s[i]));
}

/* None of them makes a latency unusable: all lower the verdict by one level. */
static const struct offline_doubt doubts[] = {
	{ LATENCY_STOPPED, TRUST_DEGRADED, "interrupted", NULL },
	{ LATENCY_SHORT, TRUST_DEGRADED, "short_answers", NULL },
	{ LATENCY_DRIFTS, TRUST_DEGRADED, "drift", NULL },
	{ LATENCY_SPREADS, TRUST_DEGRADED, "spread", NULL },
	{ LATENCY_FIRST_SLOW, TRUST_DEGRADED, "no_warmup", NULL },
	{ LATENCY_FEW, TRUST_DEGRADED, "few", NULL },
	{ LATENCY_OUTSIDE, TRUST_DEGRADED, "outside_the_clock", NULL },
};

struct latency_figures { const struct latency_runs *r; const struct latency_facts *f; };

/* Appends one sentence. */
static void explain(const void *self, unsigned doubt, struct buf *out)
{
	const struct latency_runs *r = ((const struct latency_figures *)self)->r;
	const struct latency_facts *f = ((const struct latency_figures *)self)->f;

	if (doubt == LATENCY_STOPPED)
		buf_printf(out, "stopped after %zu of %zu iterations", r->n, r->wanted);
	else if (doubt == LATENCY_SHORT)
		buf_printf(out, "%" PRIu64 " tokens came back where %" PRIu64 " were requested: "
			   "the latency is for less work", r->output_tokens, f->expected_tokens);
	else if (doubt == LATENCY_FEW)
		buf_printf(out, "fewer than %d iterations do not show drift or spread",
			   LATENCY_JUDGE_MIN);
	else if (doubt == LATENCY_DRIFTS)
		buf_printf(out, "the last third of the iterations took %+.1f %% of the first third's "
			   "time: more --num-iters-warmup, or a machine whose clock changes",
			   f->drift * 100);
	else if (doubt == LATENCY_SPREADS)
		buf_printf(out, "the standard deviation is %.1f %% of the mean: something else runs "
			   "here", f->std_s / f->mean_s * 100);
	else if (doubt == LATENCY_FIRST_SLOW)
		buf_printf(out, "the first iteration took %.1f times the median: it was the warm-up",
			   r->latency_s[0] / f->median_s);
	else
		buf_printf(out, "%.1f %% of the time passed between request and answer, outside "
			   "the engine's own clock", f->outside_share * 100);
}

static struct trust verdict(const struct latency_runs *r, const struct latency_facts *f)
{
	return offline_verdict(doubts, sizeof(doubts) / sizeof(*doubts), f->doubts, explain,
			       &(struct latency_figures){ r, f });
}

void latency_terminal_ours(const struct latency_runs *r, const struct latency_facts *f,
			   struct buf *out)
{
	struct trust t;

	if (r->n == 0)
		return;
	buf_add_text(out, "Median latency: ");
	offline_put_time(out, f->median_s);
	buf_add_text(out, ", standard deviation ");
	offline_put_time(out, f->std_s);
	if (r->n > 1) {
		buf_add_text(out, ", mean accurate to +/- ");
		offline_put_time(out, (f->mean_95.high - f->mean_95.low) / 2);
		buf_add_text(out, " (95 %)");
	}
	buf_printf(out, "\nBatch: %" PRId64 " x %" PRId64 " prompt tokens, %s%" PRId64 " x %" PRId64
		   " answer tokens\n", r->batch_size, r->input_len, r->is_beam ? "beams " : "",
		   r->sequences, r->output_len);
	buf_printf(out, "Output%s: %.2f tokens/s, ", r->has_counts ? "" :
		   " (asked for, not counted)", f->output_tokens_per_s);
	offline_put_time(out, f->s_per_token);
	buf_printf(out, " for each token of an answer; prompt and output: %.2f tokens/s\n",
		   f->total_tokens_per_s);
	if (f->outliers)
		buf_printf(out, "Outliers: %zu of %zu iterations\n", f->outliers, r->n);
	if (r->n > 1 && r->n < LATENCY_TAIL_MIN)
		buf_printf(out, "Note: the 99%% percentile of %zu values lies between the two "
			   "largest.\n", r->n);
	t = verdict(r, f);
	offline_show_verdict(&t, out);
}

/* ---- the result file ---- */

static void put_ours(struct json_writer *w, const struct latency_runs *r,
		     const struct latency_facts *f, const struct latency_config *config)
{
	struct trust t = verdict(r, f);

	json_member_object(w, "profllm");
	json_put_members(w, config->ours);
	json_key(w, "seed");
	if (config->seed >= 0)
		json_put_int(w, config->seed);
	else
		json_put_null(w);
	json_member_int(w, "batch_size", r->batch_size);
	json_member_int(w, "input_len", r->input_len);
	json_member_int(w, "output_len", r->output_len);
	json_member_int(w, "n", r->sequences);
	json_member_bool(w, "is_beam_search", r->is_beam);
	json_member_int(w, "iterations", (int64_t)r->n);
	json_member_int(w, "iterations_wanted", (int64_t)r->wanted);
	json_member_f64s(w, "warmup_latencies", r->warmup_s, r->n_warmup);
	json_member_f64(w, "std_latency", f->std_s);
	json_member_f64(w, "median_latency", f->median_s);
	json_member_f64(w, "min_latency", f->min_s);
	json_member_f64(w, "max_latency", f->max_s);
	if (r->n > 1)
		json_member_f64s(w, "mean_latency_interval_95",
				 (const double[]){ f->mean_95.low, f->mean_95.high }, 2);
	if (r->n >= LATENCY_JUDGE_MIN) {
		json_member_f64(w, "first_third_latency", f->first_third_s);
		json_member_f64(w, "last_third_latency", f->last_third_s);
		json_member_f64(w, "drift_share", f->drift);
	}
	json_member_int(w, "outliers", (int64_t)f->outliers);
	json_member_f64(w, "outside_clock_s", r->outside_s);
	json_member_bool(w, "are_tokens_counted", r->has_counts);
	json_member_f64(w, "prompt_tokens_per_iteration", f->prompt_tokens);
	json_member_f64(w, "output_tokens_per_iteration", f->output_tokens);
	json_member_f64(w, "output_throughput", f->output_tokens_per_s);
	json_member_f64(w, "total_token_throughput", f->total_tokens_per_s);
	json_member_f64(w, "latency_per_output_token", f->s_per_token);
	verdict_put(w, &t);
	json_end_object(w);
}

/* For the PyTorch benchmark file: the samples as a list. */
static void latency_values(const struct latency_runs *r, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_array(&w);
	for (size_t i = 0; i < r->n; i++)
		json_put_f64(&w, r->latency_s[i]);
	json_end_array(&w);
}

/* The additional members of its record: a JSON object. */
static void latency_extra(const struct latency_facts *f, struct buf *out)
{
	struct json_writer w = json_writer(out);

	json_begin_object(&w);
	json_member_f64(&w, "avg_latency", f->mean_s);
	offline_put_percentiles(&w, "percentiles", f->percentile_s);
	json_end_object(&w);
}

void latency_json(const struct latency_runs *r, const struct latency_facts *f,
		  const struct latency_config *config, struct buf *out)
{
	struct json_writer w = json_writer(out);

	w.indent = 4;
	json_begin_object(&w);
	json_member_text(&w, "model_id", config->model);
	json_member_f64(&w, "avg_latency", f->mean_s);
	json_member_f64s(&w, "latencies", r->latency_s, r->n);
	offline_put_percentiles(&w, "percentiles", f->percentile_s);
	put_ours(&w, r, f, config);
	json_end_object(&w);
}

#define IDS_BELOW 10000 /* upstream's */

struct latency {
	struct offline_job *job;
	const struct latency_opts *o;
	struct workload prompts;
	double *latency_s, *warmup_s; /* as long as their options */
	struct latency_runs runs;
	int64_t vocabulary;           /* 0: not known */
};

/* ---- before anything runs ---- */

/* Newer releases of vLLM take the profiler as an argument, older ones from their environment. */
static bool has_profiler(const struct offline_engine *engine)
{
	const char *dir = getenv("VLLM_TORCH_PROFILER_DIR"), *cuda = getenv("VLLM_TORCH_CUDA_PROFILE");
	struct arena a = { 0 };
	bool has = (dir && *dir) || (cuda && strcmp(cuda, "1") == 0) ||
		   offline_engine_text(engine, "profiler-config.profiler", &a);

	arena_release(&a);
	return has;
}

/* Only vLLM and engines modelled on it are known to refuse. */
static int check_profiler(const struct offline_engine *engine, struct err *e)
{
	static const char *const asks[] = { "vllm", "vllm-chat", "sim" };

	for (size_t i = 0; i < sizeof(asks) / sizeof(*asks); i++)
		if (strcmp(engine->worker, asks[i]) == 0 && !has_profiler(engine))
			return err_set(e, ERR_RUN, "Profiling is not enabled. Please set "
				       "--profiler-config to enable profiling. Example: "
				       "'--profiler-config.profiler=torch "
				       "--profiler-config.torch_profiler_dir="
				       "YOUR_DIR_PATH_TO_DUMP_TRACE'");
	return 0;
}

static int check(struct offline_job *job, struct err *e)
{
	const struct latency_opts *o = (const struct latency_opts *)job->opts;
	const struct { const char *option; int64_t v; } least[] = {
		{ "--input-len", o->input_len }, { "--batch-size", o->batch_size }, { "--n", o->n },
		{ "--output-len", o->output_len },
	};

	if (o->profile && job->opts->gate.fail_if.n)
		return err_set(e, ERR_USAGE, "--fail-if cannot be used with --profile, which measures "
			       "nothing; leave out one of them");
	for (size_t i = 0; i < sizeof(least) / sizeof(*least); i++)
		if (least[i].v < 1)
			return err_set(e, ERR_USAGE, "%s: expected at least 1, got %" PRId64,
				       least[i].option, least[i].v);
	if (job->engine->seed < 0 || job->engine->seed > UINT32_MAX)
		return err_set(e, ERR_USAGE, "--seed: expected 0 to 4294967295, got %" PRId64,
			       job->engine->seed);
	if (job->opts->base_url && job->engine->is_seed_given)
		buf_add_text(job->notes, "--seed has no effect with --base-url: each iteration has new "
			     "prompts\n");
	if (o->batch_size > LATENCY_TOKENS_MAX / o->input_len)
		return err_set(e, ERR_USAGE, "--batch-size %" PRId64 " x --input-len %" PRId64
			       ": more than LATENCY_TOKENS_MAX, %d tokens", o->batch_size,
			       o->input_len, LATENCY_TOKENS_MAX);
	if (o->num_iters > LATENCY_ITERATIONS_MAX || o->num_iters_warmup > LATENCY_ITERATIONS_MAX)
		return err_set(e, ERR_USAGE, "--num-iters and --num-iters-warmup: at most "
			       "LATENCY_ITERATIONS_MAX, %d", LATENCY_ITERATIONS_MAX);
	if (o->profile && !job->opts->worker_cmd && check_profiler(job->engine, e) < 0)
		return -1;
	if (!o->profile && o->num_iters < 1)
		return err_set(e, ERR_USAGE, "--num-iters: expected at least 1, got %" PRId64,
			       o->num_iters);
	if (o->profile && job->opts->output_json) {
		buf_printf(job->notes, "--profile runs one batch and measures nothing: %s is not written\n",
			   job->opts->output_json);
		job->opts->output_json = NULL;
	}
	return 0;
}

int latency_prompts(const struct latency_opts *o, int64_t seed, int64_t vocabulary,
		    struct workload *w, struct err *e)
{
	const int64_t below = vocabulary > 0 && vocabulary < IDS_BELOW ? vocabulary : IDS_BELOW;
	struct buf ids = { 0 };
	struct legacy g;
	int rc = 0;

	w->dataset = "latency";
	legacy_seed(&g, (uint32_t)seed);
	for (int64_t i = 0; i < o->batch_size && rc == 0; i++) {
		struct sample *s = workload_add(w);

		buf_reset(&ids);
		for (int64_t k = 0; k < o->input_len; k++)
			buf_printf(&ids, "%s%" PRId64, k ? ", " : "[", legacy_randint(&g, 0, below));
		buf_add_char(&ids, ']');
		s->kind = PROMPT_JSON;
		s->prompt = buf_str(&ids);
		s->prompt_len = (uint32_t)o->input_len;
		s->output_len = o->output_len;
		rc = workload_keep(w, &s->prompt, e);
	}
	buf_release(&ids);
	return rc;
}

static void plan(const struct offline_job *job, struct buf *out)
{
	const struct latency_opts *o = (const struct latency_opts *)job->opts;

	buf_printf(out, "Batch: %" PRId64 " prompts of %" PRId64 " tokens, ", o->batch_size, o->input_len);
	if (job->opts->base_url)
		buf_add_text(out, "new ones in each iteration");
	else
		buf_printf(out, "seed %" PRId64, job->engine->seed);
	buf_printf(out, "; %s%" PRId64 " x %" PRId64 " tokens each\n",
		   o->use_beam_search ? "beams " : "answers ", o->n, o->output_len);
	if (o->profile)
		buf_printf(out, "Iterations: %" PRId64 " to warm up, then one under the profiler\n",
			   o->num_iters_warmup);
	else
		buf_printf(out, "Iterations: %" PRId64 " to warm up, %" PRId64 " that count\n",
			   o->num_iters_warmup, o->num_iters);
}

/* ---- iterations ---- */

static struct offline_run one(const struct latency_opts *o, bool is_profiled)
{
	return (struct offline_run){
		.method = o->use_beam_search ? OFFLINE_BEAM : OFFLINE_GENERATE,
		.n = o->n, .temperature = 1, .top_p = 1, .ignore_eos = true,
		.detokenize = !o->disable_detokenize, .is_profiled = is_profiled,
		.id_prefix = is_profiled ? "profile" : "test", .is_one_call = true,
	};
}

/*
 * A server that runs already may have a prefix cache, which would know the prompts from the second
 * iteration on, or from an earlier run: each iteration gets prompts of its own. Engines that are
 * started for this have none.
 */
static int renew(struct latency *l, struct err *e)
{
	const struct offline_batch batch = { .w = &l->prompts, .n = (size_t)l->o->batch_size };
	int64_t now = clock_real_ns();

	if (!l->job->opts->base_url)
		return 0;
	workload_release(&l->prompts);
	l->prompts = (struct workload){ 0 };
	if (latency_prompts(l->o, (uint32_t)(now ^ now >> 32), l->vocabulary, &l->prompts, e) < 0)
		return -1;
	return offline_put(l->job->offline, &batch, e);
}

static int iterate(struct latency *l, bool is_profiled, struct offline_outcome *out, struct err *e)
{
	const struct offline_run run = one(l->o, is_profiled);

	if (renew(l, e) < 0)
		return -1;
	return offline_run(l->job->offline, &run, out, e);
}

static int warm_up(struct latency *l, struct err *e)
{
	static const char what[] = "Warmup iterations";
	struct offline_outcome out;

	offline_line(&l->job->hooks, "Warming up...");
	offline_progress(&l->job->hooks, what, 0, l->o->num_iters_warmup);
	for (int64_t i = 0; i < l->o->num_iters_warmup; i++) {
		if (iterate(l, false, &out, e) < 0)
			return -1;
		l->warmup_s[l->runs.n_warmup++] = out.elapsed_s;
		offline_outcome_release(&out);
		offline_progress(&l->job->hooks, what, i + 1, l->o->num_iters_warmup);
	}
	return 0;
}

static void count(struct latency_runs *r, const struct offline_outcome *out)
{
	r->has_counts = out->has_counts && (r->has_counts || r->n == 0);
	r->prompt_tokens += out->prompt_tokens;
	r->output_tokens += out->output_tokens;
	r->outside_s += out->outside_s;
	r->n++;
}

static int measure(struct latency *l, struct err *e)
{
	static const char what[] = "Bench iterations";
	struct offline_outcome out;

	offline_progress(&l->job->hooks, what, 0, l->o->num_iters);
	for (int64_t i = 0; i < l->o->num_iters; i++) {
		if (iterate(l, false, &out, e) < 0)
			return -1;
		l->latency_s[l->runs.n] = out.elapsed_s;
		count(&l->runs, &out);
		offline_outcome_release(&out);
		offline_progress(&l->job->hooks, what, i + 1, l->o->num_iters);
	}
	return 0;
}

static int profile(struct latency *l, struct err *e)
{
	const struct offline_about *about = offline_about(l->job->offline);
	const struct offline_hooks *hooks = &l->job->hooks;
	bool has_dir = about->profile_dir && *about->profile_dir;
	struct offline_outcome out;

	if (strcmp(about->profile_to, "torch") == 0)
		offline_line(hooks, "Profiling with torch profiler (results will be saved to %s)...",
			     about->profile_dir);
	else if (strcmp(about->profile_to, "cuda") == 0)
		offline_line(hooks, "Profiling with cuda profiler ...");
	else if (strcmp(about->profile_to, "proton") == 0)
		offline_line(hooks, "Profiling with Proton (results will be saved under %s)...",
			     about->profile_dir);
	if (iterate(l, true, &out, e) < 0)
		return -1;
	offline_line(hooks, "Profiled one batch in %.3f s%s%s", out.elapsed_s,
		     has_dir ? "; its traces are in " : "", has_dir ? about->profile_dir : "");
	offline_outcome_release(&out);
	return 0;
}

/* ---- the engine ---- */

static int64_t told_int(struct str json, const char *key)
{
	struct json_slice object, v;
	int64_t n = 0;

	if (json_next(&(struct json_scan){ json, 0 }, &object, NULL) == 0 &&
	    json_member(object, key, &v))
		json_to_i64(v, &n);
	return n;
}

static int begin(struct latency *l, struct err *e)
{
	struct offline_job *job = l->job;
	const struct offline_batch batch = { .w = &l->prompts, .n = (size_t)l->o->batch_size };
	const struct offline_run run = one(l->o, l->o->profile);
	const struct offline_about *about;

	if (offline_job_start(job, (struct offline_start){ 0 }, e) < 0 ||
	    offline_can(job->offline, &run, e) < 0 ||
	    offline_load(job->offline, &job->loaded, e) < 0)
		return -1;
	about = offline_about(job->offline);
	if (about->max_model_len > 0 &&
	    about->max_model_len - l->o->input_len < l->o->output_len)
		return err_set(e, ERR_RUN, "Please ensure that max_model_len is greater than the sum of "
			       "input_len and output_len. (%" PRId64 ", not %" PRId64 " + %" PRId64 ")",
			       about->max_model_len, l->o->input_len, l->o->output_len);
	l->vocabulary = told_int(about->json, "vocab_size");
	if (latency_prompts(l->o, job->engine->seed, l->vocabulary, &l->prompts, e) < 0)
		return -1;
	return offline_put(job->offline, &batch, e);
}

static int save(const struct latency *l, const struct latency_facts *facts,
		const struct offline_reported *reported, struct err *e)
{
	const struct offline_engine *engine = l->job->engine;
	struct latency_config config = { .model = engine->model,
					 .seed = l->job->opts->base_url ? -1 : engine->seed };
	struct pytorch_metric metric = { .name = "latency" };
	struct buf ours = { 0 }, values = { 0 }, extra = { 0 }, text = { 0 };
	struct json_writer w = json_writer(&ours);
	int rc;

	json_begin_object(&w);
	offline_reported(&w, reported);
	if (l->vocabulary)
		json_member_int(&w, "vocabulary", l->vocabulary);
	json_member_texts(&w, "engine_args", engine->shown_argv);
	json_end_object(&w);
	config.ours = buf_str(&ours);
	latency_json(&l->runs, facts, &config, &text);
	latency_values(&l->runs, &values);
	latency_extra(facts, &extra);
	metric.values = buf_str(&values);
	rc = offline_job_save(l->job, buf_str(&text), &metric, 1, buf_str(&extra), e);
	buf_release(&ours);
	buf_release(&values);
	buf_release(&extra);
	buf_release(&text);
	return rc;
}

/* Reports what was measured, however the run ended. */
static int report(struct latency *l, struct err *e)
{
	const struct offline_reported reported = offline_reported_of(l->job);
	struct latency_facts facts;
	struct buf text = { 0 };

	latency_facts(&l->runs, &facts);
	latency_terminal(&facts, &text);
	offline_reported_line(&text, &reported);
	latency_terminal_ours(&l->runs, &facts, &text);
	offline_say(&l->job->hooks, &text);
	buf_release(&text);
	return save(l, &facts, &reported, e);
}

static int run_all(struct latency *l, struct err *e)
{
	struct err late = { 0 };

	if (begin(l, e) < 0 || warm_up(l, e) < 0)
		return -1;
	if (l->o->profile)
		return profile(l, e);
	if (measure(l, e) == 0)
		return report(l, e);
	/* Ctrl-C, or the engine failed: what was measured is not lost. */
	if (l->runs.n && report(l, &late) < 0)
		err_wrap(e, "%s", late.text);
	return -1;
}

static int run(struct offline_job *job, struct err *e)
{
	const struct latency_opts *o = (const struct latency_opts *)job->opts;
	const size_t n = o->num_iters > 0 ? (size_t)o->num_iters : 0;
	const size_t warm = o->num_iters_warmup > 0 ? (size_t)o->num_iters_warmup : 0;
	struct latency l = { .job = job, .o = o };
	int rc;

	l.latency_s = mem_array(n + 1, sizeof(double));
	l.warmup_s = mem_array(warm + 1, sizeof(double));
	l.runs = (struct latency_runs){
		.latency_s = l.latency_s, .warmup_s = l.warmup_s, .wanted = n,
		.batch_size = o->batch_size, .input_len = o->input_len, .output_len = o->output_len,
		.sequences = o->n, .is_beam = o->use_beam_search,
	};
	rc = offline_job_end(job, run_all(&l, e), e);
	workload_release(&l.prompts);
	free(l.latency_s);
	free(l.warmup_s);
	return rc;
}

static void example(const void *values, struct buf *out)
{
	const double s[LATENCY_JUDGE_MIN] = { 1, 1, 1, 1, 1, 1 };
	const int64_t iters = ((const struct latency_opts *)values)->num_iters;
	const size_t n = iters < 1 ? 1 : iters > LATENCY_JUDGE_MIN ? LATENCY_JUDGE_MIN
								  : (size_t)iters;
	struct latency_runs runs = {
		.latency_s = s, .n = n, .wanted = n, .batch_size = 1, .input_len = 1,
		.output_len = 1, .sequences = 1,
	};
	struct buf ours = { 0 };
	struct latency_config config = { .model = "" };
	struct latency_facts facts;

	offline_reported_example("latency", &ours);
	config.ours = buf_str(&ours);
	latency_facts(&runs, &facts);
	latency_json(&runs, &facts, &config, out);
	buf_release(&ours);
}

/* ---- options ---- */

#define BATCH "Batch"
#define RUN "Iterations"

static const char *const groups[] = { BATCH, RUN, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL };

#define L(member, name, ...) OPT(struct latency_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	L(input_len, "input-len", .arg = "TOKENS", .group = BATCH, .help = "length of each prompt"),
	L(output_len, "output-len", .arg = "TOKENS", .group = BATCH,
	  .help = "output tokens of each answer; end-of-text tokens do not end it"),
	L(batch_size, "batch-size", .arg = "N", .group = BATCH,
	  .help = "number of prompts; split into several batches if the engine takes fewer"),
	L(n, "n", .arg = "N", .group = BATCH, .help = "answers to each prompt, or width of the beam"),
	L(use_beam_search, "use-beam-search", .group = BATCH,
	  .help = "search with beams, of width --n"),
	L(num_iters_warmup, "num-iters-warmup", .arg = "N", .group = RUN,
	  .words = "warmup",
	  .help = "iterations before those that count"),
	L(num_iters, "num-iters", .arg = "N", .group = RUN, .words = "iterations repeat",
	  .help = "iterations that count"),
	L(profile, "profile", .group = RUN,
	  .help = "after the warm-up run the batch once under the engine's profiler, and nothing else"),
	L(common.output_json, "output-json", .arg = "FILE", .group = RUN, .words = "json output out -o",
	  .help = "write the result as JSON"),
	L(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "answers stay token ids: turning them into text is not in the latency"),
	OFFLINE_ROWS(offline_backends, OPT_OURS),
	GATE_ROW_FAIL_IF(struct latency_opts, common.gate, OFFLINE_GROUP_OURS, "avg_latency>2"),
	GATE_ROWS(struct latency_opts, common.gate, OFFLINE_GROUP_OURS, OPT_OURS),
};

static const struct latency_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.input_len = 32, .output_len = 128, .batch_size = 8, .n = 1,
	.num_iters_warmup = 10, .num_iters = 30,
};

const struct opt_set latency_opt_set = {
	.command = "bench latency",
	.summary = "Measures how long an engine takes for one batch of requests.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench latency --model MODEL --input-len 512 --output-len 64 --batch-size 1\n"
		  "  profllm bench latency --backend sim --model sim --num-iters 5",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

static char no_prefix_caching[] = "--no-enable-prefix-caching";
static char *const forced[] = { no_prefix_caching, NULL };

const struct offline_verb latency_verb = {
	.name = "latency", .set = &latency_opt_set, .forced = forced, .check = check, .plan = plan,
	.example = example, .run = run,
};
