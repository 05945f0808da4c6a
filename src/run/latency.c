/* SPDX-License-Identifier: Apache-2.0 */
/* latency.c - see latency.h. */
#include "run/latency.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "report/latency.h"
#include "report/report.h"
#include "rng/legacy.h"
#include "run/offline_told.h"
#include "run/pytorch.h"

#define IDS_BELOW 10000 /* upstream's */

struct latency {
	const struct latency_opts *o;
	const struct offline_engine *engine;
	const struct offline_hooks *hooks;
	struct offline *offline;
	struct offline_loaded loaded;
	struct workload prompts;
	double *latency_s, *warmup_s; /* as long as their options */
	struct latency_runs runs;
	int64_t vocabulary;           /* 0: not known */
};

/* ---- before anything runs ---- */

static int at_least_one(const char *what, int64_t v, struct err *e)
{
	if (v < 1)
		return err_set(e, ERR_USAGE, "%s: expected at least 1, got %" PRId64, what, v);
	return 0;
}

/* As newer releases of vLLM are told, or older ones by their environment. */
static bool has_profiler(const struct offline_engine *engine)
{
	const char *dir = getenv("VLLM_TORCH_PROFILER_DIR"), *cuda = getenv("VLLM_TORCH_CUDA_PROFILE");
	struct arena a = { 0 };
	bool has = (dir && *dir) || (cuda && strcmp(cuda, "1") == 0) ||
		   offline_engine_text(engine, "profiler-config.profiler", &a);

	arena_release(&a);
	return has;
}

/* Only vLLM and what is modelled on it are known to refuse. */
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

int latency_check(const struct latency_opts *o, const struct offline_engine *engine,
		  struct buf *notes, struct err *e)
{
	if (at_least_one("--input-len", o->input_len, e) < 0 ||
	    at_least_one("--batch-size", o->batch_size, e) < 0 ||
	    at_least_one("--n", o->n, e) < 0 || at_least_one("--output-len", o->output_len, e) < 0)
		return -1;
	if (engine->seed < 0 || engine->seed > UINT32_MAX)
		return err_set(e, ERR_USAGE, "--seed: expected 0 to 4294967295, got %" PRId64,
			       engine->seed);
	if (o->batch_size > LATENCY_TOKENS_MAX / o->input_len)
		return err_set(e, ERR_USAGE, "--batch-size %" PRId64 " x --input-len %" PRId64
			       ": more than LATENCY_TOKENS_MAX, %d tokens", o->batch_size,
			       o->input_len, LATENCY_TOKENS_MAX);
	if (o->num_iters > LATENCY_ITERATIONS_MAX || o->num_iters_warmup > LATENCY_ITERATIONS_MAX)
		return err_set(e, ERR_USAGE, "--num-iters and --num-iters-warmup: at most "
			       "LATENCY_ITERATIONS_MAX, %d", LATENCY_ITERATIONS_MAX);
	if (o->profile && !o->common.worker_cmd && check_profiler(engine, e) < 0)
		return -1;
	if (o->profile && o->output_json)
		buf_printf(notes, "--profile runs one batch and measures nothing: %s is not written\n",
			   o->output_json);
	if (!o->profile && o->num_iters < 1)
		return err_set(e, ERR_USAGE, "--num-iters: expected at least 1, got %" PRId64,
			       o->num_iters);
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

void latency_plan(const struct latency_opts *o, const struct offline_engine *engine,
		  struct buf *out)
{
	buf_printf(out, "Batch: %" PRId64 " prompts of %" PRId64 " tokens, seed %" PRId64 "; %s%" PRId64
		   " x %" PRId64 " tokens each\n", o->batch_size, o->input_len, engine->seed,
		   o->use_beam_search ? "beams " : "answers ", o->n, o->output_len);
	if (o->profile)
		buf_printf(out, "Iterations: %" PRId64 " to warm up, then one under the profiler\n",
			   o->num_iters_warmup);
	else
		buf_printf(out, "Iterations: %" PRId64 " to warm up, %" PRId64 " that count\n",
			   o->num_iters_warmup, o->num_iters);
}

/* ---- what is said ---- */

static void say(const struct latency *l, const char *text)
{
	if (l->hooks->line)
		l->hooks->line(l->hooks->self, text);
}

static void progress(const struct latency *l, const char *what, int64_t done, int64_t total)
{
	if (l->hooks->progress && total > 0)
		l->hooks->progress(l->hooks->self, what, (uint64_t)done, (uint64_t)total);
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

static int iterate(struct latency *l, bool is_profiled, struct offline_outcome *out, struct err *e)
{
	const struct offline_run run = one(l->o, is_profiled);

	return offline_run(l->offline, &run, out, e);
}

static int warm_up(struct latency *l, struct err *e)
{
	static const char what[] = "Warmup iterations";
	struct offline_outcome out;

	say(l, "Warming up...");
	progress(l, what, 0, l->o->num_iters_warmup);
	for (int64_t i = 0; i < l->o->num_iters_warmup; i++) {
		if (iterate(l, false, &out, e) < 0)
			return -1;
		l->warmup_s[l->runs.n_warmup++] = out.elapsed_s;
		offline_outcome_release(&out);
		progress(l, what, i + 1, l->o->num_iters_warmup);
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

	progress(l, what, 0, l->o->num_iters);
	for (int64_t i = 0; i < l->o->num_iters; i++) {
		if (iterate(l, false, &out, e) < 0)
			return -1;
		l->latency_s[l->runs.n] = out.elapsed_s;
		count(&l->runs, &out);
		offline_outcome_release(&out);
		progress(l, what, i + 1, l->o->num_iters);
	}
	return 0;
}

static int profile(struct latency *l, struct err *e)
{
	const struct offline_about *about = offline_about(l->offline);
	struct offline_outcome out;
	struct buf text = { 0 };
	bool has_dir = about->profile_dir && *about->profile_dir;

	if (strcmp(about->profile_to, "torch") == 0)
		buf_printf(&text, "Profiling with torch profiler (results will be saved to %s)...\n",
			   about->profile_dir);
	else if (strcmp(about->profile_to, "cuda") == 0)
		buf_add_text(&text, "Profiling with cuda profiler ...\n");
	else if (strcmp(about->profile_to, "proton") == 0)
		buf_printf(&text, "Profiling with Proton (results will be saved under %s)...\n",
			   about->profile_dir);
	offline_say(l->hooks, &text);
	if (iterate(l, true, &out, e) < 0) {
		buf_release(&text);
		return -1;
	}
	buf_printf(&text, "Profiled one batch in %.3f s", out.elapsed_s);
	if (has_dir)
		buf_printf(&text, "; its traces are in %s", about->profile_dir);
	buf_add_char(&text, '\n');
	offline_say(l->hooks, &text);
	buf_release(&text);
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
	const struct offline_start how = {
		.opts = &l->o->common, .engine_argv = l->engine->argv, .env = l->engine->env,
		.backend = l->engine->worker, .is_async = l->engine->is_async, .hooks = *l->hooks,
		.log_name = "latency",
	};
	const struct offline_batch batch = { .w = &l->prompts, .n = (size_t)l->o->batch_size };
	const struct offline_run run = one(l->o, l->o->profile);
	const struct offline_about *about;

	if (offline_start(&how, &l->offline, e) < 0 ||
	    offline_judge(&l->o->common, l->engine, offline_about(l->offline), l->hooks, e) < 0 ||
	    offline_can(l->offline, &run, e) < 0 || offline_load(l->offline, &l->loaded, e) < 0)
		return -1;
	about = offline_about(l->offline);
	if (about->max_model_len > 0 &&
	    about->max_model_len - l->o->input_len < l->o->output_len)
		return err_set(e, ERR_RUN, "Please ensure that max_model_len is greater than the sum of "
			       "input_len and output_len. (%" PRId64 ", not %" PRId64 " + %" PRId64 ")",
			       about->max_model_len, l->o->input_len, l->o->output_len);
	l->vocabulary = told_int(about->json, "vocab_size");
	if (latency_prompts(l->o, l->engine->seed, l->vocabulary, &l->prompts, e) < 0)
		return -1;
	return offline_put(l->offline, &batch, e);
}

static int save_pytorch(const struct latency *l, const struct latency_facts *facts, struct err *e)
{
	const struct run_pytorch_verb verb = {
		.set = &latency_opt_set, .values = l->o, .engine = l->engine,
		.output_json = l->o->output_json,
	};
	struct pytorch_metric metric = { .name = "latency" };
	struct buf values = { 0 }, extra = { 0 };
	int rc;

	latency_values(&l->runs, &values);
	latency_extra(facts, &extra);
	metric.values = buf_str(&values);
	rc = run_pytorch_save_verb(&verb, NULL, &metric, 1, buf_str(&extra), e);
	buf_release(&values);
	buf_release(&extra);
	return rc;
}

static void put_result(const struct latency *l, const struct latency_facts *facts,
		       const struct offline_told *told, struct buf *text)
{
	struct buf ours = { 0 };
	struct json_writer w = json_writer(&ours);
	struct latency_config config = { .model = l->engine->model, .seed = l->engine->seed };

	json_begin_object(&w);
	offline_told(&w, told);
	if (l->vocabulary)
		json_member_int(&w, "vocabulary", l->vocabulary);
	offline_told_args(&w, l->engine);
	json_end_object(&w);
	config.ours = buf_str(&ours);
	latency_json(&l->runs, facts, &config, text);
	buf_release(&ours);
}

void latency_example(const struct latency_opts *o, struct buf *out)
{
	const double s[LATENCY_JUDGE_MIN] = { 1, 1, 1, 1, 1, 1 };
	const size_t n = o->num_iters < 1 ? 1 :
			 o->num_iters > LATENCY_JUDGE_MIN ? LATENCY_JUDGE_MIN
							  : (size_t)o->num_iters;
	struct latency_runs runs = {
		.latency_s = s, .n = n, .wanted = n, .batch_size = 1, .input_len = 1,
		.output_len = 1, .sequences = 1,
	};
	struct buf ours = { 0 };
	struct latency_config config = { .model = "" };
	struct latency_facts facts;

	offline_told_example("latency", &ours);
	config.ours = buf_str(&ours);
	latency_facts(&runs, &facts);
	latency_json(&runs, &facts, &config, out);
	buf_release(&ours);
}

static int save(const struct latency *l, const struct latency_facts *facts, struct str json,
		struct err *e)
{
	if (report_save(l->o->output_json, json, false, e) < 0)
		return err_wrap(e, "--output-json");
	return save_pytorch(l, facts, e);
}

/* Of what was measured, however the run ended. */
static int report(struct latency *l, struct err *e)
{
	const struct offline_told told = {
		.command = "latency", .backend = l->o->common.backend,
		.about = offline_about(l->offline), .loaded = &l->loaded,
	};
	struct latency_facts facts;
	struct buf text = { 0 };
	int rc;

	latency_facts(&l->runs, &facts);
	latency_terminal(&facts, &text);
	offline_told_line(&text, &told);
	buf_add_char(&text, '\n');
	latency_terminal_ours(&l->runs, &facts, &text);
	offline_say(l->hooks, &text);
	put_result(l, &facts, &told, &text);
	if (l->hooks->result)
		l->hooks->result(l->hooks->self, buf_str(&text));
	rc = l->o->output_json ? save(l, &facts, buf_str(&text), e) : 0;
	buf_release(&text);
	return rc;
}

static int run_all(struct latency *l, struct err *e)
{
	struct err late = { 0 };
	int rc = begin(l, e);

	if (rc == 0)
		rc = warm_up(l, e);
	if (rc < 0 || l->o->profile)
		return rc < 0 ? rc : profile(l, e);
	rc = measure(l, e);
	if (rc == 0)
		return report(l, e);
	/* Ctrl-C, or the engine failed: what was measured is not lost. */
	if (l->runs.n && report(l, &late) < 0)
		err_wrap(e, "%s", late.text);
	return -1;
}

int latency_run(const struct latency_opts *o, const struct offline_engine *engine,
		const struct offline_hooks *hooks, struct err *e)
{
	const size_t n = o->num_iters > 0 ? (size_t)o->num_iters : 0;
	const size_t warm = o->num_iters_warmup > 0 ? (size_t)o->num_iters_warmup : 0;
	struct latency l = { .o = o, .engine = engine, .hooks = hooks };
	struct err ignored = { 0 };
	int rc, stopped;

	l.latency_s = mem_array(n + 1, sizeof(double));
	l.warmup_s = mem_array(warm + 1, sizeof(double));
	l.runs = (struct latency_runs){
		.latency_s = l.latency_s, .warmup_s = l.warmup_s, .wanted = n,
		.batch_size = o->batch_size, .input_len = o->input_len, .output_len = o->output_len,
		.sequences = o->n, .is_beam = o->use_beam_search,
	};
	rc = run_all(&l, e);
	stopped = offline_stop(l.offline, rc < 0 ? &ignored : e);
	workload_release(&l.prompts);
	free(l.latency_s);
	free(l.warmup_s);
	return rc < 0 ? rc : stopped;
}
