/* SPDX-License-Identifier: Apache-2.0 */
/* mm_processor.c - see mm_processor.h: options, numbers, the run. */
#include "bench/offline/mm_processor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "bench/offline/offline.h"
#include "core/base/clock.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "core/json/python.h"
#include "core/json/write.h"
#include "core/opt/opt.h"
#include "core/stats/stats.h"
#include "out/report/grid.h"
#include "out/report/report.h"
#include "out/report/verdict.h"

const char mm_no_stages[] =
	"\n⚠️  Warning: No MM processor stats found in registry.\n"
	"   This may indicate that:\n"
	"   - No multimodal requests were processed\n"
	"   - Stats were already retrieved (registry is cleared after retrieval)\n";
const char mm_no_e2el[] =
	"\n⚠️  Warning: Detailed end-to-end latency metrics not available.\n"
	"   Falling back to average request latency (total_time / num_completed_requests).\n";

/* ---- numbers ---- */

static int bad_number(struct str text, struct err *e)
{
	struct buf shown = { 0 };

	json_repr_str(&shown, text);
	err_set(e, ERR_USAGE, "--metric-percentiles: could not convert string to float: %s",
		shown.data);
	buf_release(&shown);
	return -1;
}

int mm_percentiles(const char *text, struct mm_percentiles *out, struct arena *a, struct err *e)
{
	struct str rest = str_of(text);
	size_t n = 1;

	for (const char *p = text; *p; p++)
		n += *p == ',';
	*out = (struct mm_percentiles){ .v = arena_alloc(a, n * sizeof(*out->v)), .n = n };
	for (size_t i = 0; i < n; i++) {
		struct str one = str_cut(&rest, ',');

		if (!opt_python_float(one, &out->v[i]))
			return bad_number(one, e);
		if (!(out->v[i] >= 0 && out->v[i] <= 100))
			return err_set(e, ERR_USAGE, "--metric-percentiles: expected numbers from "
				       "0 to 100, got %.*s", (int)one.n, one.p);
	}
	return 0;
}

static struct mm_spread spread_of(const double *v, size_t n, const struct mm_percentiles *p,
				  struct arena *a)
{
	struct mm_spread s = { .percentile = arena_alloc(a, (p->n + 1) * sizeof(double)) };
	double *sorted = stats_sorted(v, n);

	s.mean = stats_mean(v, n);
	s.median = stats_median(sorted, n);
	s.std = stats_std(v, n);
	for (size_t i = 0; i < p->n; i++)
		s.percentile[i] = stats_percentile(sorted, n, p->v[i]);
	free(sorted);
	return s;
}

/* ---- stages ---- */

#define ENCODER_CALLS "num_encoder_calls"
#define SECONDS_MAX 1e12 /* of one stage; also calls: their sum must be an integer */

/* Every "_secs" becomes "_ms". */
static const char *shown_name(struct str key, struct arena *a)
{
	struct buf out = { 0 };
	char *name;

	while (key.n) {
		if (str_starts(key, STR("_secs"))) {
			buf_add_text(&out, "_ms");
			key = (struct str){ key.p + 5, key.n - 5 };
			continue;
		}
		buf_add_char(&out, *key.p);
		key = (struct str){ key.p + 1, key.n - 1 };
	}
	name = arena_text(a, buf_str(&out));
	buf_release(&out);
	return name;
}

/* The distinct keys of all requests, in order of appearance; MM_STAGES_MAX + 1: there are more. */
static size_t stage_keys(const struct json_value *all, struct str key[static MM_STAGES_MAX])
{
	size_t n = 0;

	for (size_t i = 0; i < all->count; i++)
		for (size_t k = 0; k < all->item[i].count; k++) {
			size_t at = 0;

			while (at < n && !str_eq(key[at], all->item[i].key[k]))
				at++;
			if (at == MM_STAGES_MAX)
				return MM_STAGES_MAX + 1;
			if (at == n)
				key[n++] = all->item[i].key[k];
		}
	return n;
}

/* Checks that a request is an object whose members are times, counts or null. */
static int check_request(struct str id, const struct json_value *one, struct err *e)
{
	if (one->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "stage times reported by the engine: '%.64s' is not "
			       "an object", id.p);
	for (size_t k = 0; k < one->count; k++) {
		const struct json_value *v = &one->item[k];
		const double x = json_real(v, v->kind == JSON_NULL ? 0 : -1);

		if (!(x >= 0 && x <= SECONDS_MAX))
			return err_set(e, ERR_PARSE, "stage times reported by the engine: '%.64s' "
				       "of '%.64s' is not a time", one->key[k].p, id.p);
	}
	return 0;
}

static void read_stage(const struct json_value *all, struct str key, struct mm_stages *out,
		       const struct mm_percentiles *p, struct arena *a)
{
	double *v = mem_array(all->count + 1, sizeof(*v)), sum;
	const bool is_count = str_is(key, ENCODER_CALLS);
	size_t n = 0;

	for (size_t i = 0; i < all->count; i++) {
		const struct json_value *one = json_get(&all->item[i], key.p);

		if (one && one->kind != JSON_NULL)
			v[n++] = json_real(one, 0) * (is_count ? 1 : 1000);
	}
	sum = stats_sum(v, n);
	if (n)
		out->v[out->n++] = (struct mm_stage){ .name = shown_name(key, a), .n = n,
						      .spread = spread_of(v, n, p, a), .sum = sum };
	if (n && is_count) {
		out->has_encoder = true;
		out->encoder_calls = (int64_t)sum;
		out->encoder_requests = n;
	}
	free(v);
}

int mm_stages_read(struct str json, const struct mm_percentiles *p, struct mm_stages *out,
		   struct arena *a, struct err *e)
{
	struct str key[MM_STAGES_MAX];
	struct json_value *all;
	size_t keys;

	*out = (struct mm_stages){ 0 };
	if (json.n == 0)
		return 0;
	if (json_parse(a, json, &all, e) < 0)
		return err_wrap(e, "stage times reported by the engine");
	if (all->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "stage times reported by the engine: expected an "
			       "object of requests");
	for (size_t i = 0; i < all->count; i++)
		if (check_request(all->key[i], &all->item[i], e) < 0)
			return -1;
	keys = stage_keys(all, key);
	if (keys > MM_STAGES_MAX)
		return err_set(e, ERR_LIMIT, "stage times reported by the engine: more than "
			       "MM_STAGES_MAX, %d stages", MM_STAGES_MAX);
	out->v = arena_alloc(a, (keys + 1) * sizeof(*out->v));
	out->requests = all->count;
	for (size_t i = 0; i < keys; i++)
		read_stage(all, key[i], out, p, a);
	return 0;
}

int mm_facts(const struct mm_run *run, struct str stages, const struct mm_percentiles *p,
	     struct mm_facts *out, struct arena *a, struct err *e)
{
	size_t n = run->n ? run->n : run->completed;
	double *ms = mem_array(n + 1, sizeof(*ms));

	*out = (struct mm_facts){ .is_average = run->n == 0 && run->completed > 0 };
	for (size_t i = 0; i < n; i++)
		ms[i] = (run->n ? run->e2el_s[i] : run->elapsed_s / (double)run->completed) * 1000;
	out->e2el_ms = spread_of(ms, n, p, a);
	free(ms);
	return mm_stages_read(stages, p, &out->stages, a, e);
}

/* ---- terminal ---- */

/* Prints a table of texts as pandas does without its index: right-aligned, one blank between. */
static void put_table(const struct grid *g, struct buf *out)
{
	size_t *width = mem_array(g->cols, sizeof(*width));

	for (size_t i = 0; i < g->n; i++) {
		size_t n = grid_width(g->cell[i]);

		if (n > width[i % g->cols])
			width[i % g->cols] = n;
	}
	for (size_t i = 0; i < g->n; i++) {
		size_t gap = width[i % g->cols] - grid_width(g->cell[i]);

		buf_printf(out, "%s%*s%s%s", i % g->cols ? " " : "", (int)gap, "", g->cell[i],
			   (i + 1) % g->cols ? "" : "\n");
	}
	free(width);
}

static bool is_repeated(const struct mm_percentiles *p, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (p->v[k] <= p->v[i] && p->v[k] >= p->v[i])
			return true;
	return false;
}

static const char *percent_name(char letter, double p, struct arena *a)
{
	char text[FMT_F64_BYTES];

	return arena_printf(a, "%c%s", letter, fmt_f64(text, p));
}

static void add_number(struct grid *g, double v)
{
	grid_add(g, arena_printf(g->a, "%.2f", v));
}

/* One column for each distinct percentile, as in a Python dict. */
static void stage_table(const struct mm_facts *f, const struct mm_percentiles *p, struct arena *a,
			struct buf *out)
{
	static const char *const head[] = { "Stage", "Mean", "Median", "Std" };
	struct grid g;

	grid_begin(&g, a);
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		grid_add(&g, head[i]);
	for (size_t k = 0; k < p->n; k++)
		if (!is_repeated(p, k))
			grid_add(&g, percent_name('P', p->v[k], a));
	grid_end_heads(&g);
	for (size_t i = 0; i < f->stages.n; i++) {
		const struct mm_stage *s = &f->stages.v[i];

		grid_add(&g, s->name);
		add_number(&g, s->spread.mean);
		add_number(&g, s->spread.median);
		add_number(&g, s->spread.std);
		for (size_t k = 0; k < p->n; k++)
			if (!is_repeated(p, k))
				add_number(&g, s->spread.percentile[k]);
	}
	put_table(&g, out);
}

static void e2el_table(const struct mm_facts *f, const struct mm_percentiles *p, struct arena *a,
		       struct buf *out)
{
	const struct mm_spread *s = &f->e2el_ms;
	struct grid g;

	grid_begin(&g, a);
	grid_add(&g, "Metric");
	grid_add(&g, "Value (ms)");
	grid_end_heads(&g);
	grid_add(&g, "Mean");
	add_number(&g, s->mean);
	grid_add(&g, "Median");
	add_number(&g, s->median);
	grid_add(&g, "Std");
	add_number(&g, s->std);
	for (size_t k = 0; k < p->n; k++) {
		grid_add(&g, percent_name('P', p->v[k], a));
		add_number(&g, s->percentile[k]);
	}
	put_table(&g, out);
}

#define RULE "================================================================================"

void mm_terminal(const struct mm_facts *f, const struct mm_percentiles *p, struct buf *out)
{
	struct arena a = { 0 };

	buf_add_text(out, "\n" RULE "\nMultimodal Processor Benchmark Results\n" RULE
		     "\n\nMM Processor Metrics:\n");
	if (f->stages.n)
		stage_table(f, p, &a, out);
	else
		buf_add_text(out, "Empty DataFrame\nColumns: []\nIndex: []\n");
	if (f->stages.has_encoder)
		buf_printf(out, "\nSummary: %" PRId64 " total encoder calls across %zu requests.\n",
			   f->stages.encoder_calls, f->stages.encoder_requests);
	buf_add_text(out, "\nEnd-to-End Latency (ms):\n");
	e2el_table(f, p, &a, out);
	arena_release(&a);
}

/* ---- the result file ---- */

static void put_stages(struct json_writer *w, const struct mm_stages *stages,
		       const struct mm_percentiles *p, struct arena *a)
{
	json_member_object(w, "mm_processor_stats");
	for (size_t i = 0; i < stages->n; i++) {
		const struct mm_spread *s = &stages->v[i].spread;

		json_member_object(w, stages->v[i].name);
		json_member_f64(w, "mean", s->mean);
		json_member_f64(w, "median", s->median);
		json_member_f64(w, "std", s->std);
		for (size_t k = 0; k < p->n; k++)
			if (!is_repeated(p, k))
				json_member_f64(w, percent_name('p', p->v[k], a), s->percentile[k]);
		json_end_object(w);
	}
	json_end_object(w);
	json_member_object(w, "encoder_summary");
	if (stages->has_encoder) {
		json_member_int(w, "total_encoder_calls", stages->encoder_calls);
		json_member_int(w, "num_requests_with_encoder_calls", (int64_t)stages->encoder_requests);
	}
	json_end_object(w);
}

static void put_e2el(struct json_writer *w, const struct mm_spread *s,
		     const struct mm_percentiles *p)
{
	json_member_f64(w, "mean_e2el_ms", s->mean);
	json_member_f64(w, "median_e2el_ms", s->median);
	json_member_f64(w, "std_e2el_ms", s->std);
	json_member_array(w, "percentiles_e2el_ms");
	for (size_t k = 0; k < p->n; k++) {
		json_begin_array(w);
		json_put_f64(w, p->v[k]);
		json_put_f64(w, s->percentile[k]);
		json_end_array(w);
	}
	json_end_array(w);
}

void mm_json(const struct mm_run *run, const struct mm_facts *f, const struct mm_percentiles *p,
	     const struct mm_config *config, struct buf *out)
{
	struct json_writer w = json_writer(out);
	struct arena a = { 0 };

	w.indent = 2;
	json_begin_object(&w);
	json_member_int(&w, "completed", (int64_t)run->completed);
	json_member_int(&w, "failed", (int64_t)run->failed);
	put_e2el(&w, &f->e2el_ms, p);
	put_stages(&w, &f->stages, p, &a);
	json_member_object(&w, "config");
	json_member_text(&w, "model", config->model);
	json_member_int(&w, "num_prompts", config->num_prompts);
	json_member_int(&w, "input_len", config->input_len);
	json_member_int(&w, "output_len", config->output_len);
	json_end_object(&w);
	json_member_text(&w, "timestamp", config->timestamp);
	json_member_object(&w, "profllm");
	json_put_members(&w, config->ours);
	json_end_object(&w);
	json_end_object(&w);
	arena_release(&a);
}

/* The families that upstream knows as multimodal; sorted as it lists them. */
static const char *const hub_sets[] = {
	"lmarena-ai/VisionArena-Chat", "lmarena-ai/vision-arena-bench-v0.1",
	"lmms-lab/LLaVA-OneVision-Data",
};
#define HUB_SETS (sizeof(hub_sets) / sizeof(*hub_sets))

struct mm {
	struct offline_job *job;
	const struct mm_processor_opts *o;
	struct mm_percentiles percentiles;
	struct offline_sampler sampler;
	struct offline_requests requests, warmups;
	struct offline_outcome outcome;
	struct mm_run run;
	struct mm_facts facts;
	struct buf stages;           /* as the engine reported them; empty: none */
	const char *why_no_stages;   /* NULL: it has */
	struct arena arena;
};

/* ---- before anything runs ---- */

static bool is_hub_set(const char *name)
{
	for (size_t i = 0; name && i < HUB_SETS; i++)
		if (strcmp(hub_sets[i], name) == 0)
			return true;
	return false;
}

static int check_hub(const struct dataset_opts *set, struct err *e)
{
	struct buf shown = { 0 };

	if (!set->path || !*set->path)
		return err_set(e, ERR_USAGE, "--dataset-name hf needs --dataset-path, such as "
			       "lmarena-ai/VisionArena-Chat");
	if (is_hub_set(set->path) || is_hub_set(set->hf_name))
		return 0;
	buf_printf(&shown, "--dataset-path %s: not a supported multimodal dataset; there are [",
		   set->path);
	for (size_t i = 0; i < HUB_SETS; i++) {
		buf_add_text(&shown, i ? ", " : "");
		json_repr_str(&shown, str_of(hub_sets[i]));
	}
	err_set(e, ERR_USAGE, "%s]", shown.data);
	buf_release(&shown);
	return -1;
}

/* ---- the engine ---- */

static int chat(struct mm *m, const struct offline_requests *requests, bool is_warmup,
		struct offline_outcome *out, struct err *e)
{
	const struct offline_batch batch = offline_requests_batch(requests, NULL);
	const struct offline_run run = {
		.method = OFFLINE_CHAT, .n = 1, .temperature = is_warmup ? 1 : 0, .top_p = 1,
		.detokenize = true, .id_prefix = is_warmup ? "warmup" : "test",
		.progress = m->o->disable_tqdm ? NULL : "Processed prompts",
	};

	if (offline_put(m->job->offline, &batch, e) < 0)
		return -1;
	return offline_run(m->job->offline, &run, out, e);
}

/* Reads the times of stages, which clears the engine's list of them. */
static int read_stages(struct mm *m, struct buf *out, struct err *e)
{
	if (offline_about(m->job->offline)->has_mm_stats)
		return offline_mm_stats(m->job->offline, out, e);
	m->why_no_stages = "the engine does not report stage times";
	return 0;
}

/* ---- results ---- */

static void read_outcome(struct mm *m)
{
	const struct offline_outcome *out = &m->outcome;
	struct mm_run *r = &m->run;

	*r = (struct mm_run){
		.completed = out->finished, .failed = out->n - out->finished,
		.elapsed_s = out->elapsed_s,
		.e2el_s = arena_alloc(&m->arena, (out->n + 1) * sizeof(*r->e2el_s)),
	};
	for (size_t i = 0; i < out->n && out->e2el_s; i++)
		if ((!out->is_finished || out->is_finished[i]) && !isnan(out->e2el_s[i]))
			r->e2el_s[r->n++] = out->e2el_s[i];
}

static void put_ours(const struct mm *m, const struct offline_reported *reported,
		     const struct trust *t, struct buf *text)
{
	const struct offline_outcome *out = &m->outcome;
	const double s = out->elapsed_s;
	struct json_writer w = json_writer(text);

	json_begin_object(&w);
	offline_reported(&w, reported);
	verdict_put(&w, t);
	json_member_texts(&w, "engine_args", m->job->engine->shown_argv);
	json_member_text(&w, "dataset", m->o->data.dataset_name);
	json_member_int(&w, "seed", m->job->engine->seed);
	json_member_int(&w, "num_warmups", (int64_t)m->warmups.n);
	json_member_f64(&w, "elapsed_time", s);
	json_member_f64(&w, "outside_clock_s", out->outside_s);
	json_member_f64(&w, "requests_per_second", s > 0 ? (double)out->n / s : 0);
	if (out->has_counts) {
		json_member_int(&w, "total_num_prompt_tokens", (int64_t)out->prompt_tokens);
		json_member_int(&w, "total_num_output_tokens", (int64_t)out->output_tokens);
	}
	json_member_text(&w, "e2el_from", m->facts.is_average ? "average" : m->run.completed ?
			 "engine" : "nothing");
	json_member_text(&w, "stages_missing", m->why_no_stages);
	json_member_int(&w, "requests_with_stages", (int64_t)m->facts.stages.requests);
	json_end_object(&w);
}

static int save(const struct mm *m, const struct offline_reported *reported, const struct trust *t,
		struct err *e)
{
	const struct offline_data *data = &m->o->data;
	char timestamp[REPORT_DATE_BYTES];
	struct mm_config config = {
		.model = m->job->engine->model, .num_prompts = data->num_prompts,
		.input_len = data->set.random_input_len, .output_len = data->set.random_output_len,
		.timestamp = report_timestamp(timestamp, clock_real_ns()),
	};
	struct buf ours = { 0 }, text = { 0 };
	int rc;

	put_ours(m, reported, t, &ours);
	config.ours = buf_str(&ours);
	mm_json(&m->run, &m->facts, &m->percentiles, &config, &text);
	rc = offline_job_save(m->job, buf_str(&text), NULL, 0, STR(""), e);
	if (rc == 0 && m->job->opts->output_json) {
		offline_line(&m->job->hooks, "%s", "");
		offline_line(&m->job->hooks, "Results saved to %s", m->job->opts->output_json);
	}
	buf_release(&ours);
	buf_release(&text);
	return rc;
}

/* Prints our lines, after upstream's tables. */
static void show_ours(const struct mm *m, const struct offline_reported *reported,
		      const struct trust *t)
{
	const struct offline_outcome *out = &m->outcome;
	struct buf text = { 0 };

	buf_add_char(&text, '\n');
	offline_reported_line(&text, reported);
	buf_printf(&text, "Requests: %zu in %.3f s, %.2f requests/s", out->n, out->elapsed_s,
		   out->elapsed_s > 0 ? (double)out->n / out->elapsed_s : 0);
	if (out->has_counts)
		buf_printf(&text, "; tokens: %" PRIu64 " of prompts, %" PRIu64 " of answers",
			   out->prompt_tokens, out->output_tokens);
	buf_add_char(&text, '\n');
	if (m->why_no_stages)
		buf_printf(&text, "Stages: not available: %s.\n", m->why_no_stages);
	else if (m->facts.stages.requests < out->n)
		buf_printf(&text, "Stages: of %zu of %zu requests.\n", m->facts.stages.requests,
			   out->n);
	offline_show_verdict(t, &text);
	offline_say(&m->job->hooks, &text);
	buf_release(&text);
}

enum { MM_FAILED = 1, MM_NO_TIMES = 2 };

static void explain(const void *self, unsigned doubt, struct buf *out)
{
	const struct mm *m = self;

	(void)doubt; /* the only one without a text of its own */
	buf_printf(out, "%zu of %zu requests did not finish", m->run.failed, m->outcome.n);
}

static int report(struct mm *m, struct err *e)
{
	const struct offline_doubt rows[] = {
		{ MM_FAILED, m->run.completed ? TRUST_DEGRADED : TRUST_INVALID, "failed", NULL },
		{ MM_NO_TIMES, TRUST_DEGRADED, "no_request_times",
		  "times of single requests are unknown: each counts as the mean of all" },
	};
	const struct offline_reported reported = offline_reported_of(m->job);
	struct buf text = { 0 };
	struct trust trust;
	int rc;

	if (mm_facts(&m->run, buf_str(&m->stages), &m->percentiles, &m->facts, &m->arena, e) < 0)
		return -1;
	if (m->facts.stages.n == 0) {
		offline_line(&m->job->hooks, "%s", mm_no_stages);
		if (!m->why_no_stages)
			m->why_no_stages = "the engine reported none";
	}
	if (m->facts.is_average)
		offline_line(&m->job->hooks, "%s", mm_no_e2el);
	mm_terminal(&m->facts, &m->percentiles, &text);
	offline_say(&m->job->hooks, &text);
	buf_release(&text);
	trust = offline_verdict(rows, sizeof(rows) / sizeof(*rows),
				(m->run.failed ? MM_FAILED : 0) |
				(m->facts.is_average ? MM_NO_TIMES : 0), explain, m);
	rc = save(m, &reported, &trust, e);
	show_ours(m, &reported, &trust);
	return rc;
}

/* ---- the verb ---- */

static int check(struct offline_job *job, struct err *e)
{
	struct mm_processor_opts *o = (struct mm_processor_opts *)job->opts;
	const bool is_hub = strcmp(o->data.dataset_name, "hf") == 0;
	struct mm_percentiles ignored;
	struct arena a = { 0 };
	int rc;

	if (is_hub && check_hub(&o->data.set, e) < 0)
		return -1;
	rc = mm_percentiles(o->metric_percentiles, &ignored, &a, e);
	arena_release(&a);
	if (rc < 0)
		return rc;
	if (!is_hub && (o->data.set.path || o->data.set.hf_subset || o->data.set.hf_split))
		buf_add_text(job->notes, "--dataset-path, --hf-subset and --hf-split have no effect "
			     "without --dataset-name hf\n");
	if (!is_hub && o->output_len.is_set)
		buf_printf(job->notes, "--output-len has no effect on random-mm: --random-output-len %"
			   PRId64 " counts\n", o->data.set.random_output_len);
	if (is_hub)
		buf_add_text(job->notes, "the result's config has input_len and output_len of the random "
			     "datasets, as in vLLM's result, though they have no effect here\n");
	else
		o->data.set.path = NULL;
	o->data.set.hf_output_len = o->data.set.sharegpt_output_len = o->output_len;
	o->data.set.enable_multimodal_chat = true;
	if (o->disable_tqdm)
		job->hooks.progress = NULL;
	return 0;
}

static void plan(const struct offline_job *job, struct buf *out)
{
	const struct offline_data *d = &((const struct mm_processor_opts *)job->opts)->data;

	buf_printf(out, "Requests: %" PRId64 " of %s, seed %" PRId64 "; before them %" PRId64
		   " to warm up, seed %" PRId64 "\n", d->num_prompts,
		   d->set.path ? d->set.path : d->dataset_name, job->engine->seed,
		   d->num_warmups > 0 ? d->num_warmups : 0, job->engine->seed + 1);
}

/* Starts the engine that can be asked for a chat template. */
static struct offline *started(void *self, struct err *e)
{
	(void)e;
	return ((struct mm *)self)->job->offline;
}

static int begin(struct mm *m, struct err *e)
{
	const struct offline_start how = { .wants_mm_stats = true };
	const struct offline_data *d = &m->o->data;
	struct offline_job *job = m->job;

	if (offline_job_start(job, how, e) < 0)
		return -1;
	m->sampler = (struct offline_sampler){
		.backend = "vllm-chat", .engine = job->engine, .hooks = job->hooks, .ask = started,
		.ask_self = m,
	};
	if (offline_sampler_init(&m->sampler, e) < 0 ||
	    offline_load(job->offline, &job->loaded, e) < 0 ||
	    offline_sample(&m->sampler, d, d->num_prompts, job->engine->seed, &m->requests, e) < 0)
		return -1;
	return offline_requests_fit(&m->requests, offline_about(job->offline)->max_model_len, e);
}

static int warm_up(struct mm *m, struct err *e)
{
	const struct offline_data *d = &m->o->data;
	struct offline_outcome out;
	struct buf ignored = { 0 };
	int rc;

	if (d->num_warmups > 0) {
		offline_line(&m->job->hooks, "Processing %zu warmup requests...", (size_t)d->num_warmups);
		if (offline_sample(&m->sampler, d, d->num_warmups, m->job->engine->seed + 1,
				   &m->warmups, e) < 0 || chat(m, &m->warmups, true, &out, e) < 0)
			return -1;
		offline_outcome_release(&out);
	}
	rc = read_stages(m, &ignored, e);
	buf_release(&ignored);
	return rc;
}

static int run_all(struct mm *m, struct err *e)
{
	if (mm_percentiles(m->o->metric_percentiles, &m->percentiles, &m->arena, e) < 0)
		return -1;
	offline_line(&m->job->hooks, "Starting multimodal processor benchmark...");
	if (begin(m, e) < 0 || warm_up(m, e) < 0)
		return -1;
	offline_line(&m->job->hooks, "Processing %zu requests...", m->requests.n);
	if (chat(m, &m->requests, false, &m->outcome, e) < 0 || read_stages(m, &m->stages, e) < 0)
		return -1;
	read_outcome(m);
	return report(m, e);
}

static int run(struct offline_job *job, struct err *e)
{
	struct mm m = { .job = job, .o = (const struct mm_processor_opts *)job->opts };
	int rc = offline_job_end(job, run_all(&m, e), e);

	offline_requests_release(&m.requests);
	offline_requests_release(&m.warmups);
	offline_sampler_release(&m.sampler);
	offline_outcome_release(&m.outcome);
	buf_release(&m.stages);
	arena_release(&m.arena);
	return rc;
}

/* ---- options ---- */

#define REQUESTS "Requests"
#define RESULTS "Results"

static const char *const groups[] = {
	REQUESTS, OFFLINE_RANDOM, OFFLINE_HUB, RESULTS, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL,
};
static const char *const datasets[] = { "random-mm", "hf", NULL };

#define M(member, name, ...) OPT(struct mm_processor_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	M(data.dataset_name, "dataset-name", .group = REQUESTS, .choices = datasets,
	  .help = "where requests come from"),
	M(data.num_prompts, "num-prompts", .arg = "N", .group = REQUESTS,
	  .help = "requests that are measured"),
	M(data.num_warmups, "num-warmups", .arg = "N", .group = REQUESTS,
	  .help = "warm-up requests before them, drawn with the next seed"),
	OFFLINE_RANDOM_ROWS(struct mm_processor_opts, data.set),
	M(data.set.path, "dataset-path", .arg = "PATH", .group = OFFLINE_HUB,
	  .help = "with --dataset-name hf: a multimodal dataset of the hub, such as "
		  "lmarena-ai/VisionArena-Chat"),
	M(data.set.hf_subset, "hf-subset", .arg = "NAME", .group = OFFLINE_HUB,
	  .help = "subset of the dataset"),
	M(data.set.hf_split, "hf-split", .arg = "NAME", .group = OFFLINE_HUB,
	  .help = "split of the dataset, such as train"),
	M(data.set.hf_name, "hf-name", .arg = "ID", .flags = OPT_OURS, .group = OFFLINE_HUB,
	  .help = "name of the dataset on the hub when --dataset-path is a folder"),
	M(output_len, "output-len", .arg = "TOKENS", .group = REQUESTS,
	  .help = "maximum output tokens, instead of the dataset's; random-mm uses "
		  "--random-output-len"),
	M(common.output_json, "output-json", .arg = "FILE", .group = RESULTS,
	  .help = "write the result as JSON"),
	M(metric_percentiles, "metric-percentiles", .arg = "LIST", .group = RESULTS,
	  .help = "comma list of percentiles, such as 50,90,99"),
	M(disable_tqdm, "disable-tqdm", .group = RESULTS, .help = "show no progress bar"),
	OFFLINE_ROWS(offline_backends, OPT_OURS),
};

static const struct mm_processor_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.data = { .dataset_name = "random-mm", .num_prompts = 10, .num_warmups = 1,
		  .set = { OFFLINE_SET_DEFAULTS } },
	.metric_percentiles = "99",
};

const struct opt_set mm_processor_opt_set = {
	.command = "bench mm-processor",
	.summary = "Measures the stages of multimodal preprocessing inside an engine.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench mm-processor --model MODEL --num-prompts 100\n"
		  "  profllm bench mm-processor --backend sim --model sim --random-input-len 64 \\\n"
		  "      --random-output-len 8",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb mm_processor_verb = {
	.name = "mm-processor", .set = &mm_processor_opt_set, .check = check, .plan = plan, .run = run,
};
