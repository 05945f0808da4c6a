/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_bench.c - see prefix_bench.h. */
#include "bench/offline/prefix_bench.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/offline/offline.h"
#include "bench/offline/throughput.h"
#include "bench/options/salt.h"
#include "bench/serve/build_workload.h"
#include "client/plan/plan.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/sets/datasets.h"
#include "out/report/report.h"

#define LEGS_MAX 2
#define WARMUP_HEAD "This is warm up request "

/* One engine, from start to end. */
struct prefix_leg {
	const char *flag;             /* the engine's option for its cache; NULL: none */
	const char *name;             /* "on", "off"; NULL: as the engine's arguments say */
	double elapsed_s, warmup_s;   /* warmup_s 0: no warm-up */
	struct offline_outcome out;
};

struct prefix_bench {
	struct offline_job *job;
	const struct prefix_opts *o;
	struct offline_sampler sampler;
	struct offline_requests warmup, requests;
	struct report_reuse reuse;
	struct prefix_leg leg[LEGS_MAX];
	size_t legs, done;
	struct buf ours;              /* members of the result: an object that is still open */
	struct json_writer w;
	struct arena arena;
};

static bool is_documents(const struct offline_job *job)
{
	return job->verb == &long_document_verb;
}

/* ---- what is drawn ---- */

static int read_range(const char *text, int64_t *min, int64_t *max, struct err *e)
{
	struct str rest = str_of(text ? text : ""), first;

	if (!text)
		return err_set(e, ERR_USAGE, "--input-length-range MIN:MAX is required: how many tokens the "
			       "prompts have, such as 128:256");
	first = str_cut(&rest, ':');
	if (str_to_i64(first, min) && str_to_i64(rest, max))
		return 0;
	return err_set(e, ERR_USAGE, "--input-length-range: expected MIN:MAX in tokens, such as 128:256, "
		       "got '%.100s'", text);
}

/* ---- what is said of the prompts ---- */

static int check(struct offline_job *job, struct err *e)
{
	struct prefix_opts *o = (struct prefix_opts *)job->opts;
	struct offline_data *out = &o->data;
	struct dataset_opts *set = &out->set;

	*out = (struct offline_data){ .dataset = is_documents(job) ? &dataset_documents :
				      &dataset_length_range, .set = { OFFLINE_SET_DEFAULTS } };
	set->custom_output_len = o->output_len;
	set->exact_tokens = o->exact_tokens;
	set->repeat_count = o->repeat_count;
	if (o->compare_caching && o->common.base_url)
		return err_set(e, ERR_USAGE, "--compare-caching starts an engine twice, and the server at "
			       "--base-url runs already; run the command against a server with "
			       "--enable-prefix-caching and against one with --no-enable-prefix-caching");
	if (o->compare_caching && strcmp(o->common.backend, "llama") == 0)
		return err_set(e, ERR_USAGE, "--compare-caching: --backend llama has no prefix cache");
	if (is_documents(job)) {
		out->num_prompts = o->num_documents;
		set->document_length = o->document_length;
		set->repeat_order = o->repeat_mode;
		o->seed = o->shuffle_seed;
		return 0;
	}
	if (!o->num_prompts.is_set)
		return err_set(e, ERR_USAGE, "--num-prompts N is required: how many different prompts there "
			       "are");
	if (o->dataset_path && o->exact_tokens)
		return err_set(e, ERR_USAGE, "--exact-tokens: prompts of --dataset-path have the tokens that "
			       "their texts have; leave one of the two out");
	out->num_prompts = o->num_prompts.v;
	set->path = o->dataset_path;
	set->range_prefix = o->prefix_len;
	set->repeat_order = o->sort ? "sorted" : "random";
	o->seed = job->engine->seed;
	return read_range(o->input_length_range, &set->range_min, &set->range_max, e);
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Prints the lengths of the different prompts, before they are repeated, as upstream does. */
static void say_lengths(const struct prefix_bench *s)
{
	const struct workload *w = &s->requests.w;
	const struct repeats *r = w->repeats;
	uint32_t *length = mem_array(r->n, sizeof(*length));
	char average[FMT_F64_BYTES];
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n; i++)
		sum += length[i] = w->v[r->first[i]].prompt_len;
	qsort(length, r->n, sizeof(*length), by_number);
	offline_line(&s->job->hooks, "Sampled %zu requests.", r->n);
	offline_line(&s->job->hooks, "Average input length: %s", fmt_f64(average, (double)sum / (double)r->n));
	offline_line(&s->job->hooks, "P50 input length: %u", length[r->n / 2]);
	offline_line(&s->job->hooks, "Min Prompt Length: %u", length[0]);
	offline_line(&s->job->hooks, "Max Prompt Length: %u", length[r->n - 1]);
	free(length);
}

static int draw(struct prefix_bench *s, struct err *e)
{
	struct offline_data warmup = s->o->data;
	const int64_t seed = s->o->seed;

	s->sampler = (struct offline_sampler){
		.backend = s->job->engine->worker, .engine = s->job->engine, .hooks = s->job->hooks,
	};
	if (offline_sampler_init(&s->sampler, e) < 0)
		return -1;
	if (!is_documents(s->job))
		offline_line(&s->job->hooks, "Start to sample %" PRId64 " prompts from %s", s->o->data.num_prompts,
		     s->o->data.set.path ? s->o->data.set.path : "random");
	if (offline_sample(&s->sampler, &s->o->data, s->o->data.num_prompts, seed, &s->requests,
			   e) < 0)
		return -1;
	reuse_facts(&s->requests.w, &s->o->data.set, &s->reuse);
	if (!is_documents(s->job)) {
		say_lengths(s);
		return 0;
	}
	offline_line(&s->job->hooks, "Repeat mode:  %s", s->o->data.set.repeat_order);
	warmup.set.document_head = WARMUP_HEAD;
	warmup.set.repeat_count = 1;
	warmup.set.repeat_order = NULL;
	return offline_sample(&s->sampler, &warmup, warmup.num_prompts, seed, &s->warmup, e);
}

static void show_plan(struct prefix_bench *s)
{
	struct plan plan;
	struct buf text = { 0 };

	plan_same(&plan, (uint32_t)s->requests.n, 0);
	for (uint32_t i = 0; i < plan.n; i++)
		plan.entry[i].sample = s->requests.index[i];
	dump_summary(&s->requests.w, &plan, &text);
	offline_say(&s->job->hooks, &text);
	plan_release(&plan);
	buf_release(&text);
}

/* ---- one engine ---- */

static int run_batch(const struct prefix_bench *s, const struct offline_requests *r,
		     struct offline_outcome *out, struct err *e)
{
	const struct offline_batch batch = offline_requests_batch(r, NULL);
	const struct offline_run run = {
		.method = OFFLINE_GENERATE, .n = 1, .temperature = 0, .top_p = 1,
		.detokenize = !s->o->disable_detokenize,
		.id_prefix = r == &s->warmup ? "warmup" : "test", .progress = "Processed prompts",
	};

	return offline_put(s->job->offline, &batch, e) < 0 ? -1 :
	       offline_run(s->job->offline, &run, out, e);
}

static int measure(const struct prefix_bench *s, struct prefix_leg *leg, struct err *e)
{
	struct offline_outcome warmup;
	char took[FMT_F64_BYTES];

	if (s->warmup.n) {
		offline_line(&s->job->hooks, "------warm up------");
		if (run_batch(s, &s->warmup, &warmup, e) < 0)
			return -1;
		leg->warmup_s = warmup.elapsed_s;
		offline_outcome_release(&warmup);
		offline_line(&s->job->hooks, "Time to execute all requests: %.4f secs", leg->warmup_s);
	} else {
		offline_line(&s->job->hooks, "Testing filtered requests");
	}
	offline_line(&s->job->hooks, "------start generating------");
	if (run_batch(s, &s->requests, &leg->out, e) < 0)
		return -1;
	leg->elapsed_s = leg->out.elapsed_s;
	if (is_documents(s->job))
		offline_line(&s->job->hooks, "Time to execute all requests: %.4f secs", leg->elapsed_s);
	else
		offline_line(&s->job->hooks, "cost time %s", fmt_f64(took, leg->elapsed_s));
	if (!(leg->elapsed_s > 0))
		return err_set(e, ERR_RUN, "the timed section took no time at all");
	return 0;
}

/* The engine's arguments followed by the leg's own: the last one given counts. */
static char *const *arguments(struct prefix_bench *s, const struct prefix_leg *leg)
{
	const size_t n = words_count(s->job->engine->argv);
	char **argv;

	if (!leg->flag)
		return s->job->engine->argv;
	argv = arena_alloc(&s->arena, (n + 2) * sizeof(*argv));
	memcpy(argv, s->job->engine->argv, n * sizeof(*argv));
	argv[n] = arena_text(&s->arena, str_of(leg->flag));
	argv[n + 1] = NULL;
	return argv;
}

static void tell(struct prefix_bench *s, const struct prefix_leg *leg)
{
	const struct offline_reported reported = offline_reported_of(s->job);
	struct buf text = { 0 };

	if (!s->ours.len) { /* the second engine is the same */
		s->w = json_writer(&s->ours);
		json_begin_object(&s->w);
		offline_reported(&s->w, &reported);
	}
	offline_reported_line(&text, &reported);
	if (leg->out.cached)
		buf_printf(&text, "Prompt tokens: %" PRIu64 ", of them %" PRIu64 " (%.2f %%) from the "
			   "prefix cache\n", leg->out.prompt_tokens, leg->out.cached_tokens,
			   leg->out.prompt_tokens ? 100 * (double)leg->out.cached_tokens /
			   (double)leg->out.prompt_tokens : 0);
	offline_say(&s->job->hooks, &text);
	buf_release(&text);
}

static int run_engine(struct prefix_bench *s, struct prefix_leg *leg, struct err *e)
{
	const struct offline_start how = { .engine_argv = arguments(s, leg) };
	struct offline_job *job = s->job;
	int64_t longest;

	if (leg->name)
		offline_line(&job->hooks, "Prefix caching: %s", leg->name);
	if (offline_job_start(job, how, e) < 0 || offline_load(job->offline, &job->loaded, e) < 0)
		return -1;
	longest = offline_about(job->offline)->max_model_len;
	if (offline_requests_fit(&s->warmup, longest, e) < 0 ||
	    offline_requests_fit(&s->requests, longest, e) < 0 || measure(s, leg, e) < 0)
		return -1;
	tell(s, leg);
	return 0;
}

static int run_leg(struct prefix_bench *s, struct prefix_leg *leg, struct err *e)
{
	int rc = run_engine(s, leg, e);

	s->done += rc == 0;
	return offline_job_end(s->job, rc, e);
}

/* ---- results ---- */

static void put_legs(struct json_writer *w, const struct prefix_bench *s)
{
	json_member_array(w, "runs");
	for (size_t i = 0; i < s->done; i++) {
		const struct prefix_leg *leg = &s->leg[i];

		json_begin_object(w);
		if (leg->name)
			json_member_bool(w, "prefix_caching", strcmp(leg->name, "on") == 0);
		else
			json_member_null(w, "prefix_caching");
		json_member_f64(w, "elapsed_time", leg->elapsed_s);
		if (s->warmup.n)
			json_member_f64(w, "warmup_time", leg->warmup_s);
		json_member_int(w, "prompt_tokens", (int64_t)leg->out.prompt_tokens);
		json_member_int(w, "output_tokens", (int64_t)leg->out.output_tokens);
		if (leg->out.cached)
			json_member_int(w, "cached_tokens", (int64_t)leg->out.cached_tokens);
		else
			json_member_null(w, "cached_tokens");
		json_end_object(w);
	}
	json_end_array(w);
	if (s->done == LEGS_MAX)
		json_member_f64(w, "caching_speedup", s->leg[1].elapsed_s / s->leg[0].elapsed_s);
}

/* Saves the first engine's numbers like bench throughput, and both engines' among ours. */
static int save(struct prefix_bench *s, const struct throughput_runs *runs,
		const struct throughput_facts *facts, struct err *e)
{
	struct throughput_config config = { .model = s->job->engine->model };
	struct json_writer *w = &s->w;
	struct buf text = { 0 };
	int rc;

	json_member_texts(w, "engine_args", s->job->engine->shown_argv);
	json_member_text(w, "dataset", s->requests.w.dataset);
	json_member_int(w, "seed", s->o->seed);
	report_reuse_json(&s->reuse, w);
	put_legs(w, s);
	json_end_object(w);
	config.ours = buf_str(&s->ours);
	throughput_json(runs, facts, &config, &text);
	rc = offline_job_save(s->job, buf_str(&text), NULL, 0, STR(""), e);
	buf_release(&text);
	return rc;
}

static int report(struct prefix_bench *s, struct err *e)
{
	const struct prefix_leg *leg = &s->leg[0];
	const struct throughput_runs runs = {
		.elapsed_s = &leg->elapsed_s, .n_runs = 1, .wanted = 1,
		.outside_s = leg->out.outside_s,
		.n = s->requests.n, .sequences = 1, .backend = s->job->engine->worker,
		.finished = leg->out.is_finished ? leg->out.finished : SIZE_MAX,
		.has_counts = leg->out.has_counts, .prompt_tokens = leg->out.prompt_tokens,
		.output_tokens = leg->out.output_tokens, .n_warmup = s->warmup.n,
		.requested_prompt_tokens = s->requests.prompt_tokens,
		/* Answers end at the end-of-text token, so they may be of any length. */
		.requested_output_tokens = leg->out.has_counts ? leg->out.output_tokens :
					   s->requests.output_tokens,
	};
	struct throughput_facts facts;
	struct buf text = { 0 };

	throughput_facts(&runs, &facts);
	throughput_terminal_ours(&runs, &facts, &text);
	report_reuse_rows(&s->reuse, &text);
	if (s->done == LEGS_MAX)
		buf_printf(&text, "With prefix caching %.4f s, without %.4f s: %.2f times as fast\n",
			   s->leg[0].elapsed_s, s->leg[1].elapsed_s,
			   s->leg[1].elapsed_s / s->leg[0].elapsed_s);
	offline_say(&s->job->hooks, &text);
	buf_release(&text);
	return save(s, &runs, &facts, e);
}

static int run_all(struct prefix_bench *s, struct err *e)
{
	struct err late = { 0 };
	int rc = draw(s, e);

	if (rc == 0 && s->job->opts->dry_run) {
		show_plan(s);
		return 0;
	}
	for (size_t i = 0; i < s->legs && rc == 0; i++)
		rc = run_leg(s, &s->leg[i], e);
	if (rc == 0)
		return report(s, e);
	/* The engine without a cache failed, but the other one's results are kept. */
	if (s->done && report(s, &late) < 0)
		err_wrap(e, "%s", late.text);
	return -1;
}

static int run(struct offline_job *job, struct err *e)
{
	struct prefix_bench s = {
		.job = job, .o = (const struct prefix_opts *)job->opts, .legs = 1,
	};
	int rc;

	if (s.o->compare_caching) {
		s.leg[0] = (struct prefix_leg){ .flag = "--enable-prefix-caching", .name = "on" };
		s.leg[1] = (struct prefix_leg){ .flag = "--no-enable-prefix-caching", .name = "off" };
		s.legs = LEGS_MAX;
	}
	rc = run_all(&s, e);
	for (size_t i = 0; i < s.legs; i++)
		offline_outcome_release(&s.leg[i].out);
	offline_requests_release(&s.warmup);
	offline_requests_release(&s.requests);
	offline_sampler_release(&s.sampler);
	buf_release(&s.ours);
	arena_release(&s.arena);
	return rc;
}

/* ---- options ---- */

#define DATASET "Requests"
#define RUN "Run"

static const char *const groups[] = { DATASET, RUN, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL };
static const char *const backends[] = {
	"vllm", "vllm-async", "llama", "http", "sim", "worker", NULL,
};

#define P(member, name, ...) OPT(struct prefix_opts, member, name, __VA_ARGS__)
#define SHARED_ROWS                                                                        \
	P(common.output_json, "output-json", .arg = "FILE", .group = RUN, .flags = OPT_OURS,         \
	  .words = "json output out -o", .help = "write the result as JSON"),                \
	P(compare_caching, "compare-caching", .group = RUN, .flags = OPT_OURS,                \
	  .words = "compare",                                                                 \
	  .help = "run the same requests on an engine with a prefix cache and on one "        \
		  "without, and report the ratio of the times"),                              \
	OFFLINE_ROWS(backends, OPT_OURS)

static const struct opt caching_rows[] = {
	P(dataset_path, "dataset-path", .arg = "FILE", .group = DATASET,
	  .help = "ShareGPT conversations whose first turns are the prompts; random tokens without it"),
	P(output_len, "output-len", .arg = "TOKENS", .group = DATASET, .min = 1,
	  .max = LENGTH_TOKENS_MAX, .help = "output tokens to request; an end-of-text token ends "
					    "an answer earlier"),
	P(num_prompts, "num-prompts", .arg = "N", .group = DATASET, .min = 1, .max = REQUESTS_MAX,
	  .words = "requests num-requests -n", .help = "number of different prompts; must be given"),
	P(repeat_count, "repeat-count", .arg = "N", .group = DATASET, .min = 1, .max = REQUESTS_MAX,
	  .help = "how often each prompt is sent"),
	P(sort, "sort", .group = DATASET,
	  .help = "send the prompts sorted by length, instead of shuffled"),
	P(input_length_range, "input-length-range", .arg = "MIN:MAX", .group = DATASET,
	  .help = "tokens of the prompts, such as 128:256; must be given"),
	P(prefix_len, "prefix-len", .arg = "TOKENS", .group = DATASET, .max = LENGTH_TOKENS_MAX,
	  .help = "tokens that all random prompts begin with, within their length"),
	P(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "leave answers as token IDs, so that converting them to text is not timed"),
	P(exact_tokens, "exact-tokens", .group = DATASET, .flags = OPT_OURS,
	  .help = "hand the engine token ids of random prompts; their text may have other tokens"),
	SHARED_ROWS,
};

static const struct opt document_rows[] = {
	P(document_length, "document-length", .arg = "WORDS", .group = DATASET,
	  .max = LENGTH_TOKENS_MAX,
	  .help = "words of each document; tokens with --exact-tokens"),
	P(num_documents, "num-documents", .arg = "N", .group = DATASET, .min = 1,
	  .max = REQUESTS_MAX, .help = "number of different documents"),
	P(output_len, "output-len", .arg = "TOKENS", .group = DATASET, .min = 1,
	  .max = LENGTH_TOKENS_MAX, .help = "output tokens to request; an end-of-text token ends "
					    "an answer earlier"),
	P(repeat_count, "repeat-count", .arg = "N", .group = DATASET, .min = 1, .max = REQUESTS_MAX,
	  .help = "how often each document is sent"),
	P(repeat_mode, "repeat-mode", .arg = "ORDER", .group = DATASET, .choices = repeat_orders,
	  .help = "order of the repeated documents: random, tile (the whole list again and again: "
		  "fewest cache hits), interleave (all copies of one in a row: most), sorted"),
	P(shuffle_seed, "shuffle-seed", .arg = "N", .group = DATASET, .min = 0, .max = UINT32_MAX,
	  .help = "seed of the random order"),
	P(exact_tokens, "exact-tokens", .group = DATASET, .flags = OPT_OURS,
	  .help = "make each document exactly --document-length tokens long"),
	SHARED_ROWS,
};

static const struct prefix_opts caching_defaults = {
	.common = { OFFLINE_DEFAULTS }, .output_len = 10, .repeat_count = 1,
};
static const struct prefix_opts document_defaults = {
	.common = { OFFLINE_DEFAULTS }, .output_len = 10, .repeat_count = 2,
	.document_length = 20000, .num_documents = 8, .repeat_mode = "random",
};

const struct opt_set prefix_caching_opt_set = {
	.command = "bench prefix-caching",
	.summary = "Measures how long an engine takes for prompts that share a prefix or are repeated. "
		   "Options and lines are those of vLLM's benchmark_prefix_caching.py.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench prefix-caching --model MODEL --num-prompts 100 --repeat-count 4 \\\n"
		  "      --input-length-range 512:1024 --prefix-len 256 --compare-caching\n"
		  "  profllm bench prefix-caching --base-url http://127.0.0.1:8000 --model MODEL \\\n"
		  "      --num-prompts 100 --input-length-range 512:1024\n"
		  "  profllm bench prefix-caching --backend sim --num-prompts 20 --repeat-count 2 \\\n"
		  "      --input-length-range 128:256",
	.row = caching_rows, .n = sizeof(caching_rows) / sizeof(*caching_rows),
	.defaults = &caching_defaults, .bytes = sizeof(caching_defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};
const struct opt_set long_document_opt_set = {
	.command = "bench long-document-qa",
	.summary = "Measures how long an engine takes for repeated questions about long documents. "
		   "Options and lines are those of vLLM's "
		   "benchmark_long_document_qa_throughput.py.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench long-document-qa --model MODEL --document-length 8000 \\\n"
		  "      --num-documents 16 --repeat-count 4 --repeat-mode tile --compare-caching\n"
		  "  profllm bench long-document-qa --backend sim --document-length 500",
	.row = document_rows, .n = sizeof(document_rows) / sizeof(*document_rows),
	.defaults = &document_defaults, .bytes = sizeof(document_defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb prefix_caching_verb = {
	.name = "prefix-caching", .set = &prefix_caching_opt_set, .check = check, .run = run,
};
const struct offline_verb long_document_verb = {
	.name = "long-document-qa", .set = &long_document_opt_set, .check = check, .run = run,
};
