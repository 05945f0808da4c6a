/* SPDX-License-Identifier: Apache-2.0 */
/* prioritization.c - see prioritization.h. */
#include "bench/offline/prioritization.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/offline/offline.h"
#include "bench/offline/offline_data.h"
#include "bench/serve/build_workload.h"
#include "client/plan/plan.h"
#include "core/base/mem.h"
#include "out/report/report.h"

#define REQUESTS "Requests"
#define RUN "Run"

static const char *const groups[] = { REQUESTS, RUN, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL };

#define P(member, name, ...) OPT(struct prioritization_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	P(dataset, "dataset", .arg = "FILE", .group = REQUESTS, .words = "dataset-path",
	  .help = "ShareGPT conversations; otherwise every prompt is one text of --input-len"),
	P(input_len, "input-len", .arg = "TOKENS", .group = REQUESTS, .min = 2, .max = 1 << 26,
	  .help = "length of the prompt without --dataset: \"hi\", repeated one time less"),
	P(output_len, "output-len", .arg = "TOKENS", .group = REQUESTS, .min = 1, .max = 1 << 26,
	  .help = "length of each answer; with --dataset that of the recorded ones unless given"),
	P(n, "n", .arg = "N", .group = RUN, .min = 1, .max = 10000, .help = "answers to each prompt"),
	P(num_prompts, "num-prompts", .arg = "N", .group = REQUESTS, .min = 1, .max = 1 << 28,
	  .words = "requests num-requests -n", .help = "number of requests"),
	P(output_json, "output-json", .arg = "FILE", .group = RUN, .words = "json output out -o",
	  .help = "write the result as JSON"),
	P(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "leave answers as token IDs, so that converting them to text is not timed"),
	P(baseline, "baseline", .group = RUN, .flags = OPT_OURS,
	  .help = "run the same requests once more without priorities, and report what priorities cost "
		  "each class"),
	OFFLINE_ROWS(offline_backends, 0),
};

static const struct prioritization_opts defaults = {
	.common = { OFFLINE_DEFAULTS }, .n = 1, .num_prompts = 200,
};

const struct opt_set prioritization_opt_set = {
	.command = "bench prioritization",
	.summary = "Measures requests of two priorities: an engine, or with --base-url a server.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "With --base-url, options of bench serve take the place of the engine's arguments.\n"
		  "Examples:\n"
		  "  profllm bench prioritization --model MODEL --scheduling-policy priority \\\n"
		  "      --dataset FILE --num-prompts 200 --baseline\n"
		  "  profllm bench prioritization --backend sim --model sim --input-len 64 --output-len 16\n"
		  "  profllm bench prioritization --base-url http://localhost:8000 --model MODEL \\\n"
		  "      --input-len 64 --output-len 16 --baseline",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb prioritization_verb = {
	.name = "prioritization", .set = &prioritization_opt_set,
};

/* ---- before it runs ---- */

#define DATASET "prioritization"

struct prioritization {
	const struct prioritization_opts *o;
	const struct offline_engine *engine;
	const struct offline_hooks *hooks;
	struct offline_sampler sampler;
	struct offline_requests requests;
	struct prioritization_facts facts;
	struct buf ours, engine_line;
};

int prioritization_check(const struct prioritization_opts *o, struct err *e)
{
	if (o->dataset && o->input_len.is_set)
		return err_set(e, ERR_USAGE, "--input-len is for runs without --dataset, whose prompts "
			       "have lengths of their own");
	if (!o->dataset && (!o->input_len.is_set || !o->output_len.is_set))
		return err_set(e, ERR_USAGE, "without --dataset both --input-len and --output-len are "
			       "needed");
	return 0;
}

void prioritization_notes(const struct offline_engine *engine, struct buf *notes)
{
	struct arena a = { 0 };
	const char *policy = offline_engine_text(engine, "scheduling-policy", &a);

	if (!policy || strcmp(policy, "priority") != 0)
		buf_add_text(notes, "without --scheduling-policy priority an engine serves requests in the "
			     "order they come in, and vLLM refuses priorities other than 0\n");
	arena_release(&a);
}

/* ---- requests ---- */

static int draw(struct prioritization *s, struct err *e)
{
	const struct prioritization_opts *o = s->o;
	struct offline_data data = {
		.dataset_name = DATASET, .set = { OFFLINE_SET_DEFAULTS },
	};

	data.set.path = o->dataset;
	data.set.random_input_len = o->input_len.v;
	data.set.random_output_len = o->output_len.v;
	data.set.sharegpt_output_len = o->output_len;
	s->sampler = (struct offline_sampler){
		.backend = s->engine->worker, .engine = s->engine, .hooks = *s->hooks,
	};
	if (offline_sampler_init(&s->sampler, e) < 0 ||
	    offline_sample(&s->sampler, &data, o->num_prompts, s->engine->seed, &s->requests,
			   e) < 0)
		return -1;
	s->facts.n = s->requests.n;
	s->facts.asked_tokens = s->requests.output_tokens +
		(o->dataset ? s->requests.prompt_tokens : s->requests.n * (uint64_t)o->input_len.v);
	return 0;
}

static void describe(const struct prioritization *s)
{
	struct plan plan = { .entry = mem_array(s->requests.n, sizeof(*plan.entry)),
			     .n = (uint32_t)s->requests.n, .n_roots = (uint32_t)s->requests.n };
	struct buf text = { 0 };

	for (size_t i = 0; i < s->requests.n; i++)
		plan.entry[i] = (struct plan_entry){
			.sample = s->requests.index[i], .after = PLAN_NONE, .session = PLAN_NONE,
			.lora = PLAN_NO_LORA,
		};
	dump_summary(&s->requests.w, &plan, &text);
	offline_say(s->hooks, &text);
	buf_release(&text);
	free(plan.entry);
}

/* ---- running ---- */

static double told(const double *v, size_t i)
{
	return v ? v[i] : NAN;
}

/* TPOT is undefined for several answers to one prompt. */
static void keep(const struct prioritization *s, const struct offline_outcome *out,
		 struct prioritization_run *run)
{
	struct metrics_class_request *v = mem_array(out->n, sizeof(*v));

	*run = (struct prioritization_run){
		.elapsed_s = out->elapsed_s, .has_counts = out->has_counts,
		.prompt_tokens = out->prompt_tokens, .output_tokens = out->output_tokens,
	};
	for (size_t i = 0; i < out->n; i++) {
		double e2el = told(out->e2el_s, i), ttft = told(out->ttft_s, i);
		bool has_tpot = s->o->n == 1 && out->output && out->output[i] > 1;

		v[i] = (struct metrics_class_request){
			.priority = s->requests.w.v[s->requests.index[i]].priority,
			.is_completed = !out->is_finished || out->is_finished[i],
			.e2el_s = e2el, .ttft_s = ttft, .queue_s = told(out->queue_s, i),
			.tpot_s = has_tpot ? (e2el - ttft) / (double)(out->output[i] - 1) : NAN,
		};
		v[i].is_failed = !v[i].is_completed;
	}
	run->n_classes = metrics_class_split(v, out->n, run->class);
	free(v);
}

static void remember(struct prioritization *s, const struct offline *engine,
		     const struct offline_loaded *loaded)
{
	const struct offline_reported about = {
		.command = "prioritization", .backend = s->o->common.backend,
		.about = offline_about(engine), .loaded = loaded,
	};
	struct json_writer w = json_writer(&s->ours);

	json_begin_object(&w);
	offline_reported(&w, &about);
	json_member_texts(&w, "engine_args", s->engine->shown_argv);
	json_member_text(&w, "dataset", s->o->dataset);
	json_member_int(&w, "seed", s->engine->seed);
	json_member_int(&w, "n", s->o->n);
	json_end_object(&w);
	offline_reported_line(&s->engine_line, &about);
}

static int measure(struct prioritization *s, struct offline *engine, bool is_baseline,
		   struct prioritization_run *out, struct err *e)
{
	const struct offline_run run = {
		.method = OFFLINE_GENERATE, .n = s->o->n, .temperature = 1, .top_p = 1,
		.ignore_eos = true, .detokenize = !s->o->disable_detokenize, .id_prefix = "test",
		.progress = is_baseline ? "Without priorities" : "Processed prompts",
	};
	struct offline_batch batch = offline_requests_batch(&s->requests, NULL);
	struct offline_outcome outcome;
	struct offline_loaded loaded;

	batch.is_without_priorities = is_baseline;
	if (offline_judge(&s->o->common, s->engine, offline_about(engine), s->hooks, e) < 0 ||
	    offline_can(engine, &run, e) < 0 || offline_load(engine, &loaded, e) < 0 ||
	    offline_requests_fit(&s->requests, offline_about(engine)->max_model_len, e) < 0 ||
	    offline_put(engine, &batch, e) < 0 || offline_run(engine, &run, &outcome, e) < 0)
		return -1;
	keep(s, &outcome, out);
	offline_outcome_release(&outcome);
	if (!is_baseline)
		remember(s, engine, &loaded);
	return 0;
}

/* Each run has an engine of its own. */
static int run_once(struct prioritization *s, bool is_baseline, struct prioritization_run *out,
		    struct err *e)
{
	const struct offline_start how = {
		.opts = &s->o->common, .engine_argv = s->engine->argv, .env = s->engine->env,
		.backend = s->engine->worker, .is_async = s->engine->is_async,
		.log_name = "prioritization", .hooks = *s->hooks,
	};
	struct offline *engine = NULL;
	struct err ignored = { 0 };
	int rc;

	if (offline_start(&how, &engine, e) < 0)
		return -1;
	rc = measure(s, engine, is_baseline, out, e);
	if (offline_stop(engine, rc < 0 ? &ignored : e) < 0)
		rc = -1;
	return rc;
}

int prioritization_report(const struct prioritization_facts *f, const char *output_json,
			  const struct offline_hooks *hooks, struct err *e)
{
	struct buf text = { 0 };
	int rc = 0;

	prioritization_terminal(f, &text);
	offline_say(hooks, &text);
	if (output_json) {
		buf_reset(&text);
		prioritization_json(f, &text);
		rc = report_save(output_json, buf_str(&text), false, e);
	}
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "--output-json") : 0;
}

static int run_all(struct prioritization *s, struct err *e)
{
	if (draw(s, e) < 0)
		return -1;
	if (s->o->common.dry_run) {
		describe(s);
		return 0;
	}
	if (run_once(s, false, &s->facts.run, e) < 0)
		return -1;
	if (s->o->baseline && run_once(s, true, &s->facts.baseline, e) < 0)
		return -1;
	s->facts.has_baseline = s->o->baseline;
	s->facts.ours = buf_str(&s->ours);
	offline_say(s->hooks, &s->engine_line);
	return prioritization_report(&s->facts, s->o->output_json, s->hooks, e);
}

int prioritization_run(const struct prioritization_opts *o, const struct offline_engine *engine,
		       const struct offline_hooks *hooks, struct err *e)
{
	struct prioritization s = { .o = o, .engine = engine, .hooks = hooks };
	int rc = run_all(&s, e);

	offline_requests_release(&s.requests);
	offline_sampler_release(&s.sampler);
	buf_release(&s.ours);
	buf_release(&s.engine_line);
	return rc;
}
