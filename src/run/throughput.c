/* SPDX-License-Identifier: Apache-2.0 */
/* throughput.c - see throughput.h. */
#include "run/throughput.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "plan/plan.h"
#include "report/report.h"
#include "report/throughput.h"
#include "run/dump.h"
#include "run/offline_told.h"
#include "run/pytorch.h"
#include "run/reuse.h"

struct job {
	const struct throughput_opts *o;
	const struct throughput_plan *plan;
	const struct offline_engine *engine;
	const struct offline_hooks *hooks;
	struct offline *offline;       /* NULL: not started */
	struct offline_loaded loaded;
	struct offline_sampler sampler;
	struct offline_requests warmup, requests;
	struct workload pass;          /* of --warmup-pass */
	double *elapsed_s;
	double *e2el_s;                /* of the first run; NULL: not told */
	struct throughput_runs runs;
	struct report_reuse reuse;
};

/* ---- what is said ---- */

static void say(const struct job *s, const char *text)
{
	if (s->hooks->line)
		s->hooks->line(s->hooks->self, text);
}

/* ---- the engine ---- */

/* For templates that no file tells, too: hence not before it is needed. */
static struct offline *start(void *self, struct err *e)
{
	struct job *s = self;
	const struct throughput_opts *o = s->o;
	const struct offline_start how = {
		.opts = &o->common, .engine_argv = s->engine->argv, .env = s->engine->env,
		.backend = s->engine->worker, .is_async = s->plan->is_async,
		.is_compiled = o->hf_enable_torch_compile, .log_name = "throughput",
		.hooks = *s->hooks,
	};

	if (s->offline)
		return s->offline;
	if (offline_start(&how, &s->offline, e) < 0 ||
	    offline_judge(&o->common, s->engine, offline_about(s->offline), s->hooks, e) < 0)
		return NULL;
	return s->offline;
}

static bool is_chat(const struct job *s)
{
	return strcmp(s->plan->backend, "vllm-chat") == 0;
}

/* What this engine cannot take, before it is loaded. */
static int check_requests(const struct job *s, const struct offline_requests *r, struct err *e)
{
	const char *backend = s->plan->backend;

	for (size_t i = 0; i < r->n; i++) {
		const struct sample *x = &r->w.v[r->index[i]];

		if (x->kind == PROMPT_TEXT)
			continue;
		if (strcmp(backend, "hf") == 0)
			return err_set(e, ERR_RUN, "Prompt must be a string for HF backend");
		if (str_starts(x->prompt, STR("[{")) && !is_chat(s))
			return err_set(e, ERR_RUN, "--dataset-name %s gives chat messages, which "
				       "--backend vllm-chat takes and %s does not", r->w.dataset, backend);
		if (str_starts(x->prompt, STR("[\"")))
			return err_set(e, ERR_RUN, "--dataset-name %s gives lists of texts in one "
				       "request, which an engine does not take for generation",
				       r->w.dataset);
	}
	return 0;
}

/* ---- requests ---- */

static int draw(struct job *s, struct err *e)
{
	const struct throughput_opts *o = s->o;
	const int64_t seed = s->engine->seed;

	s->sampler = (struct offline_sampler){
		.backend = s->plan->backend, .engine = s->engine, .hooks = *s->hooks,
		.ask = o->common.dry_run ? NULL : start, .ask_self = s,
		.lora_path = o->lora_path,
		.chat_prefix = o->chat_prefix, .chat_suffix = o->chat_suffix,
		.is_lora_random = strcmp(o->lora_assignment, "random") == 0,
	};
	if (offline_sampler_init(&s->sampler, e) < 0)
		return -1;
	if (o->data.num_warmups > 0 &&
	    offline_sample(&s->sampler, &o->data, o->data.num_warmups, seed + 1, &s->warmup, e) < 0)
		return -1;
	if (offline_sample(&s->sampler, &o->data, o->data.num_prompts, seed, &s->requests, e) < 0)
		return -1;
	return reuse_pass(&s->requests.w, &o->data.set, (uint64_t)seed, s->sampler.tokenizer,
			  &s->pass, e);
}

/* The requests as a plan that sends all at once, for those who show plans. */
static struct plan all_at_once(const struct offline_requests *r)
{
	struct plan p = { .entry = mem_array(r->n, sizeof(*p.entry)), .n = (uint32_t)r->n,
			  .n_roots = (uint32_t)r->n };

	for (size_t i = 0; i < r->n; i++)
		p.entry[i] = (struct plan_entry){
			.sample = r->index[i], .after = PLAN_NONE, .history = PLAN_NONE,
			.session = PLAN_NONE,
			.lora = r->lora ? (uint16_t)r->lora[i] : PLAN_NO_LORA,
		};
	return p;
}

static int show_requests(struct job *s, struct err *e)
{
	struct plan plan = all_at_once(&s->requests);
	struct buf text = { 0 };
	int rc = 0;

	if (s->o->dump_workload) {
		dump_workload(&s->requests.w, &plan, "", &text);
		rc = file_write_atomic(s->o->dump_workload, buf_str(&text), e);
		buf_reset(&text);
	}
	if (rc == 0 && s->o->common.dry_run) {
		buf_printf(&text, "Requests: dataset %s, seed %" PRId64 "\n", s->requests.w.dataset,
			   s->engine->seed);
		dump_summary(&s->requests.w, &plan, &text);
		offline_say(s->hooks, &text);
	}
	free(plan.entry);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "--dump-workload") : 0;
}

/* ---- running ---- */

static struct offline_run one(const struct job *s, bool is_warmup)
{
	const struct throughput_opts *o = s->o;

	return (struct offline_run){
		.method = offline_about(s->offline)->is_pooling ? OFFLINE_ENCODE :
			  is_chat(s) ? OFFLINE_CHAT : OFFLINE_GENERATE,
		.n = o->n, .temperature = 1, .top_p = 1,
		.ignore_eos = strcmp(s->plan->backend, "hf") != 0, /* as upstream has it */
		.detokenize = !o->disable_detokenize, .is_prequeued = o->prequeue_requests,
		.is_profiled = o->profile && !is_warmup,
		.id_prefix = is_warmup ? "warmup" : "test",
		.batch_max = o->hf_max_batch_size.is_set ? o->hf_max_batch_size.v : 0,
		.progress = is_warmup ? "Warmup prompts" : "Processed prompts",
	};
}

static int run_batch(struct job *s, bool is_warmup, struct offline_outcome *out, struct err *e)
{
	const struct offline_run run = one(s, is_warmup);

	return offline_run(s->offline, &run, out, e);
}

static int put(struct job *s, const struct offline_requests *r, struct err *e)
{
	/* Without --enable-lora the engine would refuse them; upstream hands none over then. */
	const struct offline_batch batch =
		offline_requests_batch(r, s->engine->has_lora ? s->o->lora_path : NULL);

	return offline_put(s->offline, &batch, e);
}

static int warm_up(struct job *s, struct err *e)
{
	struct offline_outcome out;
	struct buf text = { 0 };

	if (!s->warmup.n)
		return 0;
	buf_printf(&text, "Warming up with %zu requests...\n", s->warmup.n);
	offline_say(s->hooks, &text);
	buf_release(&text);
	if (put(s, &s->warmup, e) < 0 || run_batch(s, true, &out, e) < 0)
		return -1;
	offline_outcome_release(&out);
	return 0;
}

/* --warmup-pass: run like the measured requests, but never profiled. */
static int pass_over(struct job *s, struct err *e)
{
	const struct offline_batch batch = { .w = &s->pass, .n = s->pass.n };
	struct offline_outcome out;
	struct buf text = { 0 };

	if (!s->pass.n)
		return 0;
	buf_printf(&text, "Warm-up pass: %zu requests with %s prompts...\n", s->pass.n,
		   strcmp(s->o->data.set.warmup_pass, "same") == 0 ? "the measured" : "other");
	offline_say(s->hooks, &text);
	buf_release(&text);
	if (offline_put(s->offline, &batch, e) < 0 || run_batch(s, true, &out, e) < 0)
		return -1;
	offline_outcome_release(&out);
	return 0;
}

/* All that upstream reports is of the first run. */
static void keep_first(struct job *s, const struct offline_outcome *out)
{
	struct throughput_runs *r = &s->runs;

	r->outside_s = out->outside_s;
	r->finished = out->is_finished ? out->finished : SIZE_MAX;
	r->has_counts = out->has_counts;
	r->prompt_tokens = out->prompt_tokens;
	r->output_tokens = out->output_tokens;
	if (!out->e2el_s)
		return;
	s->e2el_s = mem_array(out->n, sizeof(double));
	for (size_t i = 0; i < out->n; i++)
		if (!isnan(out->e2el_s[i]))
			s->e2el_s[r->n_e2el++] = out->e2el_s[i];
	r->e2el_s = s->e2el_s;
}

static int measure(struct job *s, struct err *e)
{
	struct offline_outcome out;

	if (put(s, &s->requests, e) < 0)
		return -1;
	for (int64_t i = 0; i < s->o->num_runs; i++) {
		if (run_batch(s, false, &out, e) < 0)
			return -1;
		if (i == 0)
			keep_first(s, &out);
		s->elapsed_s[s->runs.n_runs++] = out.elapsed_s;
		offline_outcome_release(&out);
		if (!(s->elapsed_s[i] > 0))
			return err_set(e, ERR_RUN, "the timed section took no time at all");
	}
	return 0;
}

/* ---- results ---- */

static int save_pytorch(const struct job *s, const struct throughput_facts *f, struct err *e)
{
	const struct run_pytorch_verb verb = {
		.set = &throughput_opt_set, .values = s->o, .engine = s->engine,
		.output_json = s->o->output_json,
	};
	struct buf text[2] = { { 0 } }, extra = { 0 };
	struct pytorch_metric metric[2] = { { .name = "requests_per_second" },
					    { .name = "tokens_per_second" } };
	const double value[2] = { f->requests_per_s, f->total_tokens_per_s };
	int rc;

	for (size_t i = 0; i < 2; i++) {
		struct json_writer w = json_writer(&text[i]);

		json_begin_array(&w);
		json_put_f64(&w, value[i]);
		json_end_array(&w);
		metric[i].values = buf_str(&text[i]);
	}
	throughput_extra(&s->runs, f, &extra);
	rc = run_pytorch_save_verb(&verb, NULL, metric, 2, buf_str(&extra), e);
	buf_release(&text[0]);
	buf_release(&text[1]);
	buf_release(&extra);
	return rc;
}

static void put_requests(struct json_writer *w, const struct job *s)
{
	const struct dataset_opts *set = &s->o->data.set;

	json_member_text(w, "dataset", s->requests.w.dataset);
	if (strncmp(s->o->data.dataset_name, "random", 6) == 0) {
		json_member_int(w, "random_input_len", set->random_input_len);
		json_member_int(w, "random_output_len", set->random_output_len);
		json_member_int(w, "random_prefix_len", set->random_prefix_len);
	}
	json_member_bool(w, "async_engine", s->plan->is_async);
	json_member_bool(w, "prequeue_requests", s->o->prequeue_requests);
	json_member_bool(w, "disable_detokenize", s->o->disable_detokenize);
	report_reuse_json(&s->reuse, w);
	if (s->sampler.chat_template)
		json_member_text(w, "chat_template", s->sampler.chat_template);
	json_member_int(w, "seed", s->engine->seed);
	json_member_array(w, "fixes");
	for (const struct offline_fix *fix = throughput_verb.fixes; fix->name; fix++)
		if (s->engine->fixes & fix->bit)
			json_put_text(w, fix->name);
	json_end_array(w);
	json_member_array(w, "compat");
	for (const struct offline_fix *odd = throughput_verb.compats; odd->name; odd++)
		if (s->engine->compat & odd->bit)
			json_put_text(w, odd->name);
	json_end_array(w);
}

static void put_result(const struct job *s, const struct throughput_facts *facts,
		       const struct offline_told *told, struct buf *text)
{
	struct buf ours = { 0 };
	struct json_writer w = json_writer(&ours);
	struct throughput_config config = { .model = s->engine->model };

	json_begin_object(&w);
	offline_told(&w, told);
	offline_told_args(&w, s->engine);
	put_requests(&w, s);
	json_end_object(&w);
	config.ours = buf_str(&ours);
	throughput_json(&s->runs, facts, &config, text);
	buf_release(&ours);
}

void throughput_example(const struct throughput_opts *o, struct buf *out)
{
	const double s[] = { 1, 1 };
	struct throughput_runs runs = {
		.elapsed_s = s, .n_runs = o->num_runs > 1 ? 2 : 1, .n = 1, .finished = 1,
		.sequences = 1, .has_counts = true, .prompt_tokens = 1, .output_tokens = 1,
		.requested_prompt_tokens = 1, .requested_output_tokens = 1, .e2el_s = s,
		.n_e2el = 1, .backend = "",
	};
	struct buf ours = { 0 };
	struct throughput_config config = { .model = "" };
	struct throughput_facts facts;

	offline_told_example("throughput", &ours);
	config.ours = buf_str(&ours);
	throughput_facts(&runs, &facts);
	throughput_json(&runs, &facts, &config, out);
	buf_release(&ours);
}

static int save(const struct job *s, const struct throughput_facts *facts, struct str json,
		struct err *e)
{
	if (report_save(s->o->output_json, json, false, e) < 0)
		return err_wrap(e, "--output-json");
	return save_pytorch(s, facts, e);
}

static int report(struct job *s, struct err *e)
{
	const struct offline_told told = {
		.command = "throughput", .backend = s->o->common.backend,
		.about = offline_about(s->offline), .loaded = &s->loaded,
	};
	struct throughput_facts facts;
	struct buf text = { 0 };
	int rc;

	reuse_told(&s->requests.w, &s->o->data.set, &s->reuse);
	throughput_facts(&s->runs, &facts);
	throughput_terminal(&s->runs, &facts, &text);
	offline_told_line(&text, &told);
	buf_add_char(&text, '\n');
	throughput_terminal_ours(&s->runs, &facts, &text);
	report_reuse_rows(&s->reuse, &text);
	offline_say(s->hooks, &text);
	put_result(s, &facts, &told, &text);
	if (s->hooks->result)
		s->hooks->result(s->hooks->self, buf_str(&text));
	rc = s->o->output_json ? save(s, &facts, buf_str(&text), e) : 0;
	buf_release(&text);
	return rc;
}

static int run_all(struct job *s, struct err *e)
{
	struct err late = { 0 };
	struct offline_run run;
	int64_t longest;

	if (s->plan->is_random_by_default)
		say(s, "When dataset path is not set, it will default to random dataset");
	if (draw(s, e) < 0 || show_requests(s, e) < 0)
		return -1;
	if (s->o->common.dry_run)
		return 0;
	if (check_requests(s, &s->warmup, e) < 0 || check_requests(s, &s->requests, e) < 0 ||
	    !start(s, e))
		return -1;
	run = one(s, false);
	if (offline_can(s->offline, &run, e) < 0 || offline_load(s->offline, &s->loaded, e) < 0)
		return -1;
	longest = offline_about(s->offline)->max_model_len;
	s->runs.n = s->requests.n;
	s->runs.n_warmup = s->warmup.n;
	s->runs.requested_prompt_tokens = s->requests.prompt_tokens;
	s->runs.requested_output_tokens = s->requests.output_tokens;
	s->runs.is_multimodal = s->requests.is_multimodal;
	s->runs.is_pooling = offline_about(s->offline)->is_pooling;
	if (offline_requests_fit(&s->warmup, longest, e) < 0 ||
	    offline_requests_fit(&s->requests, longest, e) < 0 || warm_up(s, e) < 0 ||
	    pass_over(s, e) < 0)
		return -1;
	if (measure(s, e) == 0)
		return report(s, e);
	/* Ctrl-C, or the engine failed: what was measured is not lost. */
	if (s->runs.n_runs && report(s, &late) < 0)
		err_wrap(e, "%s", late.text);
	return -1;
}

int throughput_run(const struct throughput_opts *o, const struct throughput_plan *plan,
		   const struct offline_engine *engine, const struct offline_hooks *hooks,
		   struct err *e)
{
	struct job s = { .o = o, .plan = plan, .engine = engine, .hooks = hooks };
	struct err ignored = { 0 };
	int rc, stopped;

	s.elapsed_s = mem_array((size_t)o->num_runs, sizeof(double));
	s.runs = (struct throughput_runs){
		.elapsed_s = s.elapsed_s, .wanted = (size_t)o->num_runs, .sequences = o->n,
		.backend = plan->backend,
		.is_as_requested = plan->is_as_requested, .is_profiled = o->profile,
	};
	rc = run_all(&s, e);
	stopped = offline_stop(s.offline, rc < 0 ? &ignored : e);
	workload_release(&s.pass); /* it shares texts with the requests */
	offline_requests_release(&s.warmup);
	offline_requests_release(&s.requests);
	offline_sampler_release(&s.sampler);
	free(s.elapsed_s);
	free(s.e2el_s);
	return rc < 0 ? rc : stopped;
}
