/* SPDX-License-Identifier: Apache-2.0 */
/* mm_processor.c - see mm_processor.h. */
#include "run/mm_processor.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "json/python.h"
#include "report/mm_processor.h"
#include "report/report.h"
#include "report/verdict.h"
#include "run/offline_told.h"

/* The families that upstream knows as multimodal; sorted as it lists them. */
static const char *const hub_sets[] = {
	"lmarena-ai/VisionArena-Chat", "lmarena-ai/vision-arena-bench-v0.1",
	"lmms-lab/LLaVA-OneVision-Data",
};
#define HUB_SETS (sizeof(hub_sets) / sizeof(*hub_sets))

struct mm {
	const struct mm_processor_opts *o;
	const struct offline_engine *engine;
	const struct offline_hooks *hooks;
	struct mm_percentiles percentiles;
	struct offline *offline;
	struct offline_loaded loaded;
	struct offline_sampler sampler;
	struct offline_requests requests, warmups;
	struct offline_outcome outcome;
	struct mm_run run;
	struct mm_facts facts;
	struct buf stages;           /* as the engine told them; empty: it has none */
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

int mm_processor_check(struct mm_processor_opts *o, const struct offline_engine *engine,
		       struct buf *notes, struct err *e)
{
	const bool is_hub = strcmp(o->data.dataset_name, "hf") == 0;
	struct mm_percentiles ignored;
	struct arena a = { 0 };
	int rc;

	(void)engine;
	if (is_hub && check_hub(&o->data.set, e) < 0)
		return -1;
	rc = mm_percentiles(o->metric_percentiles, &ignored, &a, e);
	arena_release(&a);
	if (rc < 0)
		return rc;
	if (!is_hub && (o->data.set.path || o->data.set.hf_subset || o->data.set.hf_split))
		buf_add_text(notes, "--dataset-path, --hf-subset and --hf-split have no effect "
			     "without --dataset-name hf\n");
	if (!is_hub && o->output_len.is_set)
		buf_printf(notes, "--output-len has no effect on random-mm: --random-output-len %"
			   PRId64 " counts\n", o->data.set.random_output_len);
	if (is_hub)
		buf_add_text(notes, "the result's config has input_len and output_len of the random "
			     "datasets, as upstream's, though they have no effect here\n");
	if (!is_hub)
		o->data.set.path = NULL;
	o->data.set.hf_output_len = o->data.set.sharegpt_output_len = o->output_len;
	o->data.set.enable_multimodal_chat = true;
	return 0;
}

void mm_processor_plan(const struct mm_processor_opts *o, const struct offline_engine *engine,
		       struct buf *out)
{
	buf_printf(out, "Requests: %" PRId64 " of %s, seed %" PRId64 "; before them %" PRId64
		   " to warm up, seed %" PRId64 "\n", o->data.num_prompts,
		   o->data.set.path ? o->data.set.path : o->data.dataset_name, engine->seed,
		   o->data.num_warmups > 0 ? o->data.num_warmups : 0, engine->seed + 1);
}

/* ---- what is said ---- */

static void say(const struct mm *m, const char *text)
{
	if (m->hooks->line)
		m->hooks->line(m->hooks->self, text);
}

static void say_processing(const struct mm *m, size_t n, const char *what)
{
	struct buf text = { 0 };

	buf_printf(&text, "Processing %zu %srequests...", n, what);
	say(m, text.data);
	buf_release(&text);
}

/* ---- the engine ---- */

static struct offline *ask(void *self, struct err *e)
{
	struct mm *m = self;

	(void)e;
	return m->offline;
}

static int begin(struct mm *m, struct err *e)
{
	const struct offline_start how = {
		.opts = &m->o->common, .engine_argv = m->engine->argv, .env = m->engine->env,
		.backend = m->engine->worker, .is_async = m->engine->is_async, .hooks = *m->hooks,
		.log_name = "mm-processor", .wants_mm_stats = true,
	};
	const struct offline_data *d = &m->o->data;

	if (offline_start(&how, &m->offline, e) < 0 ||
	    offline_judge(&m->o->common, m->engine, offline_about(m->offline), m->hooks, e) < 0)
		return -1;
	m->sampler = (struct offline_sampler){
		.backend = "vllm-chat", .engine = m->engine, .hooks = *m->hooks, .ask = ask,
		.ask_self = m,
	};
	if (offline_sampler_init(&m->sampler, e) < 0 ||
	    offline_load(m->offline, &m->loaded, e) < 0 ||
	    offline_sample(&m->sampler, d, d->num_prompts, m->engine->seed, &m->requests, e) < 0)
		return -1;
	return offline_requests_fit(&m->requests, offline_about(m->offline)->max_model_len, e);
}

static int chat(struct mm *m, const struct offline_requests *requests, bool is_warmup,
		struct offline_outcome *out, struct err *e)
{
	const struct offline_batch batch = offline_requests_batch(requests, NULL);
	const struct offline_run run = {
		.method = OFFLINE_CHAT, .n = 1, .temperature = is_warmup ? 1 : 0, .top_p = 1,
		.detokenize = true, .id_prefix = is_warmup ? "warmup" : "test",
		.progress = m->o->disable_tqdm ? NULL : "Processed prompts",
	};

	if (offline_put(m->offline, &batch, e) < 0)
		return -1;
	return offline_run(m->offline, &run, out, e);
}

/* Reads the times of stages, which empties the engine's register. */
static int read_stages(struct mm *m, struct buf *out, struct err *e)
{
	if (offline_about(m->offline)->has_mm_stats)
		return offline_mm_stats(m->offline, out, e);
	m->why_no_stages = "the engine does not tell times of stages";
	return 0;
}

static int warm_up(struct mm *m, struct err *e)
{
	const struct offline_data *d = &m->o->data;
	struct offline_outcome out;
	struct buf ignored = { 0 };
	int rc;

	if (d->num_warmups > 0) {
		say_processing(m, (size_t)d->num_warmups, "warmup ");
		if (offline_sample(&m->sampler, d, d->num_warmups, m->engine->seed + 1, &m->warmups,
				   e) < 0 || chat(m, &m->warmups, true, &out, e) < 0)
			return -1;
		offline_outcome_release(&out);
	}
	rc = read_stages(m, &ignored, e);
	buf_release(&ignored);
	return rc;
}

/* ---- what came of it ---- */

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

static struct trust verdict(const struct mm *m)
{
	struct buf text = { 0 };
	struct trust t = { 0 };

	if (m->run.failed) {
		buf_printf(&text, "%zu of %zu requests did not finish", m->run.failed,
			   m->outcome.n);
		verdict_doubt(&t, m->run.completed ? TRUST_DEGRADED : TRUST_INVALID, "failed",
			      buf_str(&text));
	}
	if (m->facts.is_average)
		verdict_doubt(&t, TRUST_DEGRADED, "no_request_times",
			      STR("no request's own time is known: each counts as the mean of all"));
	buf_release(&text);
	return t;
}

static void put_counts(const struct mm *m, struct json_writer *w)
{
	const struct offline_outcome *out = &m->outcome;
	const double s = out->elapsed_s;

	json_member_f64(w, "elapsed_time", s);
	json_member_f64(w, "outside_clock_s", out->outside_s);
	json_member_f64(w, "requests_per_second", s > 0 ? (double)out->n / s : 0);
	if (!out->has_counts)
		return;
	json_member_int(w, "total_num_prompt_tokens", (int64_t)out->prompt_tokens);
	json_member_int(w, "total_num_output_tokens", (int64_t)out->output_tokens);
}

static void put_ours(const struct mm *m, const struct offline_told *told, struct buf *text)
{
	struct json_writer w = json_writer(text);
	const struct trust t = verdict(m);

	json_begin_object(&w);
	offline_told(&w, told);
	verdict_put(&w, &t);
	offline_told_args(&w, m->engine);
	json_member_text(&w, "dataset", m->o->data.dataset_name);
	json_member_int(&w, "seed", m->engine->seed);
	json_member_int(&w, "num_warmups", (int64_t)m->warmups.n);
	put_counts(m, &w);
	json_member_text(&w, "e2el_from", m->facts.is_average ? "average" : m->run.completed ?
			 "engine" : "nothing");
	json_member_text(&w, "stages_missing", m->why_no_stages);
	json_member_int(&w, "requests_with_stages", (int64_t)m->facts.stages.requests);
	json_end_object(&w);
}

static int save(const struct mm *m, const struct offline_told *told, struct err *e)
{
	const struct mm_processor_opts *o = m->o;
	char timestamp[REPORT_DATE_BYTES];
	struct mm_config config = {
		.model = m->engine->model, .num_prompts = o->data.num_prompts,
		.input_len = o->data.set.random_input_len,
		.output_len = o->data.set.random_output_len,
		.timestamp = report_timestamp(timestamp, clock_real_ns()),
	};
	struct buf ours = { 0 }, text = { 0 };
	int rc;

	put_ours(m, told, &ours);
	config.ours = buf_str(&ours);
	mm_json(&m->run, &m->facts, &m->percentiles, &config, &text);
	rc = report_save(o->output_json, buf_str(&text), false, e);
	buf_release(&ours);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "--output-json") : 0;
}

/* Ours, after upstream's tables. */
static void show_ours(const struct mm *m, const struct offline_told *told, struct buf *text)
{
	const struct offline_outcome *out = &m->outcome;
	const struct trust t = verdict(m);

	buf_add_char(text, '\n');
	offline_told_line(text, told);
	buf_printf(text, "\nRequests: %zu in %.3f s, %.2f requests/s", out->n, out->elapsed_s,
		   out->elapsed_s > 0 ? (double)out->n / out->elapsed_s : 0);
	if (out->has_counts)
		buf_printf(text, "; tokens: %" PRIu64 " of prompts, %" PRIu64 " of answers",
			   out->prompt_tokens, out->output_tokens);
	buf_add_char(text, '\n');
	if (m->why_no_stages)
		buf_printf(text, "Stages: not available: %s.\n", m->why_no_stages);
	else if (m->facts.stages.requests < out->n)
		buf_printf(text, "Stages: of %zu of %zu requests.\n", m->facts.stages.requests,
			   out->n);
	buf_printf(text, "Verdict: %s\n", trust_name(t.verdict));
	verdict_show(&t, text);
}

static int report(struct mm *m, struct err *e)
{
	const struct offline_told told = {
		.command = "mm-processor", .backend = m->o->common.backend,
		.about = offline_about(m->offline), .loaded = &m->loaded,
	};
	struct buf text = { 0 };
	int rc = 0;

	read_outcome(m);
	if (mm_facts(&m->run, buf_str(&m->stages), &m->percentiles, &m->facts, &m->arena, e) < 0)
		return -1;
	if (m->facts.stages.n == 0) {
		say(m, mm_no_stages);
		if (!m->why_no_stages)
			m->why_no_stages = "the engine told none";
	}
	if (m->facts.is_average)
		say(m, mm_no_e2el);
	mm_terminal(&m->facts, &m->percentiles, &text);
	offline_say(m->hooks, &text);
	if (m->o->output_json)
		rc = save(m, &told, e);
	if (rc == 0 && m->o->output_json) {
		buf_printf(&text, "\nResults saved to %s\n", m->o->output_json);
		offline_say(m->hooks, &text);
	}
	show_ours(m, &told, &text);
	offline_say(m->hooks, &text);
	buf_release(&text);
	return rc;
}

static int run_all(struct mm *m, struct err *e)
{
	if (mm_percentiles(m->o->metric_percentiles, &m->percentiles, &m->arena, e) < 0)
		return -1;
	say(m, "Starting multimodal processor benchmark...");
	if (begin(m, e) < 0 || warm_up(m, e) < 0)
		return -1;
	say_processing(m, m->requests.n, "");
	if (chat(m, &m->requests, false, &m->outcome, e) < 0 || read_stages(m, &m->stages, e) < 0)
		return -1;
	return report(m, e);
}

int mm_processor_run(const struct mm_processor_opts *o, const struct offline_engine *engine,
		     const struct offline_hooks *hooks, struct err *e)
{
	struct mm m = { .o = o, .engine = engine, .hooks = hooks };
	struct err ignored = { 0 };
	int rc = run_all(&m, e);
	int stopped = offline_stop(m.offline, rc < 0 ? &ignored : e);

	offline_requests_release(&m.requests);
	offline_requests_release(&m.warmups);
	offline_sampler_release(&m.sampler);
	offline_outcome_release(&m.outcome);
	buf_release(&m.stages);
	arena_release(&m.arena);
	return rc < 0 ? rc : stopped;
}
