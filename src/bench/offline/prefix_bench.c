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

#define DATASET "Requests"
#define RUN "Run"

static const char *const groups[] = { DATASET, RUN, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL };
static const char *const backends[] = {
	"vllm", "vllm-async", "llama", "http", "sim", "worker", NULL,
};

#define P(member, name, ...) OPT(struct prefix_opts, member, name, __VA_ARGS__)
#define SHARED_ROWS                                                                        \
	P(output_json, "output-json", .arg = "FILE", .group = RUN, .flags = OPT_OURS,         \
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
	  .max = LENGTH_TOKENS_MAX, .help = "tokens to ask for; the end of a text is honoured"),
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
	  .help = "answers stay token ids: turning them into text is not in the time"),
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
	  .max = LENGTH_TOKENS_MAX, .help = "tokens to ask for; the end of a text is honoured"),
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

static const struct opt_set caching_set = {
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
static const struct opt_set document_set = {
	.command = "bench long-document-qa",
	.summary = "Measures how long an engine takes for long documents that are asked about several "
		   "times. Options and lines are those of vLLM's benchmark_long_document_qa_throughput.py.",
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

const struct prefix_bench prefix_caching_bench = {
	.set = &caching_set, .verb = { .name = "prefix-caching" },
};
const struct prefix_bench long_document_bench = {
	.set = &document_set, .verb = { .name = "long-document-qa" }, .is_documents = true,
};

#define LEGS_MAX 2
#define WARMUP_HEAD "This is warm up request "

/* One engine, from its start to its end. */
struct leg {
	const char *flag;             /* what the engine is told of its cache; NULL: nothing */
	const char *name;             /* "on", "off"; NULL: as the engine's arguments say */
	double elapsed_s, warmup_s;   /* warmup_s 0: no warm-up */
	struct offline_outcome out;
};

struct bench {
	const struct prefix_opts *o;
	const struct prefix_bench *bench;
	const struct offline_engine *engine;
	const struct offline_hooks *hooks;
	struct offline_sampler sampler;
	struct offline_requests warmup, requests;
	struct offline_data data;
	struct report_reuse reuse;
	struct leg leg[LEGS_MAX];
	size_t legs, done;
	struct buf ours;              /* members of the result: an object that is still open */
	struct json_writer w;
	struct arena arena;
};

static void say(const struct bench *s, const char *text)
{
	if (s->hooks->line)
		s->hooks->line(s->hooks->self, text);
}

__attribute__((format(printf, 2, 3)))
static void sayf(const struct bench *s, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	fmt_vtext(line, sizeof(line), fmt, ap);
	va_end(ap);
	say(s, line);
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

static int check_compare(const struct prefix_opts *o, struct err *e)
{
	if (!o->compare_caching)
		return 0;
	if (o->common.base_url)
		return err_set(e, ERR_USAGE, "--compare-caching starts an engine twice, and the server at "
			       "--base-url runs already; run the command against a server with "
			       "--enable-prefix-caching and against one with --no-enable-prefix-caching");
	if (strcmp(o->common.backend, "llama") == 0)
		return err_set(e, ERR_USAGE, "--compare-caching: --backend llama has no prefix cache");
	return 0;
}

int prefix_bench_check(const struct prefix_opts *o, const struct prefix_bench *bench,
		       const struct offline_engine *engine, struct offline_data *out,
		       int64_t *seed, struct err *e)
{
	struct dataset_opts *set = &out->set;

	*out = (struct offline_data){ .dataset = bench->is_documents ? &dataset_documents :
				      &dataset_length_range, .set = { OFFLINE_SET_DEFAULTS } };
	set->custom_output_len = o->output_len;
	set->exact_tokens = o->exact_tokens;
	set->repeat_count = o->repeat_count;
	if (check_compare(o, e) < 0)
		return -1;
	if (bench->is_documents) {
		out->num_prompts = o->num_documents;
		set->document_length = o->document_length;
		set->repeat_order = o->repeat_mode;
		*seed = o->shuffle_seed;
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
	*seed = engine->seed;
	return read_range(o->input_length_range, &set->range_min, &set->range_max, e);
}

/* ---- what is said of the prompts ---- */

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Of the different prompts, as upstream: before they are repeated. */
static void say_lengths(const struct bench *s)
{
	const struct workload *w = &s->requests.w;
	const struct repeats *r = w->repeats;
	uint32_t *length = mem_array(r->n, sizeof(*length));
	char average[FMT_F64_BYTES];
	uint64_t sum = 0;

	for (size_t i = 0; i < r->n; i++)
		sum += length[i] = w->v[r->first[i]].prompt_len;
	qsort(length, r->n, sizeof(*length), by_number);
	sayf(s, "Sampled %zu requests.", r->n);
	sayf(s, "Average input length: %s", fmt_f64(average, (double)sum / (double)r->n));
	sayf(s, "P50 input length: %u", length[r->n / 2]);
	sayf(s, "Min Prompt Length: %u", length[0]);
	sayf(s, "Max Prompt Length: %u", length[r->n - 1]);
	free(length);
}

static int draw(struct bench *s, int64_t seed, struct err *e)
{
	struct offline_data warmup = s->data;

	s->sampler = (struct offline_sampler){
		.backend = s->engine->worker, .engine = s->engine, .hooks = *s->hooks,
	};
	if (offline_sampler_init(&s->sampler, e) < 0)
		return -1;
	if (!s->bench->is_documents)
		sayf(s, "Start to sample %" PRId64 " prompts from %s", s->data.num_prompts,
		     s->data.set.path ? s->data.set.path : "random");
	if (offline_sample(&s->sampler, &s->data, s->data.num_prompts, seed, &s->requests, e) < 0)
		return -1;
	reuse_told(&s->requests.w, &s->data.set, &s->reuse);
	if (!s->bench->is_documents) {
		say_lengths(s);
		return 0;
	}
	sayf(s, "Repeat mode:  %s", s->data.set.repeat_order);
	warmup.set.document_head = WARMUP_HEAD;
	warmup.set.repeat_count = 1;
	warmup.set.repeat_order = NULL;
	return offline_sample(&s->sampler, &warmup, warmup.num_prompts, seed, &s->warmup, e);
}

static void show_plan(struct bench *s)
{
	struct plan plan;
	struct buf text = { 0 };

	plan_same(&plan, (uint32_t)s->requests.n, 0);
	for (uint32_t i = 0; i < plan.n; i++)
		plan.entry[i].sample = s->requests.index[i];
	dump_summary(&s->requests.w, &plan, &text);
	offline_say(s->hooks, &text);
	plan_release(&plan);
	buf_release(&text);
}

/* ---- one engine ---- */

static int run_batch(const struct bench *s, struct offline *offline,
		     const struct offline_requests *r, struct offline_outcome *out, struct err *e)
{
	const struct offline_batch batch = offline_requests_batch(r, NULL);
	const struct offline_run run = {
		.method = OFFLINE_GENERATE, .n = 1, .temperature = 0, .top_p = 1,
		.detokenize = !s->o->disable_detokenize,
		.id_prefix = r == &s->warmup ? "warmup" : "test", .progress = "Processed prompts",
	};

	return offline_put(offline, &batch, e) < 0 ? -1 : offline_run(offline, &run, out, e);
}

static int measure(const struct bench *s, struct offline *offline, struct leg *leg, struct err *e)
{
	struct offline_outcome warmup;
	char took[FMT_F64_BYTES];

	if (s->warmup.n) {
		say(s, "------warm up------");
		if (run_batch(s, offline, &s->warmup, &warmup, e) < 0)
			return -1;
		leg->warmup_s = warmup.elapsed_s;
		offline_outcome_release(&warmup);
		sayf(s, "Time to execute all requests: %.4f secs", leg->warmup_s);
	} else {
		say(s, "Testing filtered requests");
	}
	say(s, "------start generating------");
	if (run_batch(s, offline, &s->requests, &leg->out, e) < 0)
		return -1;
	leg->elapsed_s = leg->out.elapsed_s;
	if (s->bench->is_documents)
		sayf(s, "Time to execute all requests: %.4f secs", leg->elapsed_s);
	else
		sayf(s, "cost time %s", fmt_f64(took, leg->elapsed_s));
	if (!(leg->elapsed_s > 0))
		return err_set(e, ERR_RUN, "the timed section took no time at all");
	return 0;
}

/* The engine's arguments with the leg's own behind them: the last one given counts. */
static char *const *arguments(struct bench *s, const struct leg *leg)
{
	const size_t n = words_count(s->engine->argv);
	char **argv;

	if (!leg->flag)
		return s->engine->argv;
	argv = arena_alloc(&s->arena, (n + 2) * sizeof(*argv));
	memcpy(argv, s->engine->argv, n * sizeof(*argv));
	argv[n] = arena_text(&s->arena, str_of(leg->flag));
	argv[n + 1] = NULL;
	return argv;
}

static void tell(struct bench *s, struct leg *leg, struct offline *offline,
		 const struct offline_loaded *loaded)
{
	const struct offline_told told = {
		.command = s->bench->verb.name, .backend = s->o->common.backend,
		.about = offline_about(offline), .loaded = loaded,
	};
	struct buf text = { 0 };

	if (!s->ours.len) { /* the second engine is the same */
		s->w = json_writer(&s->ours);
		json_begin_object(&s->w);
		offline_told(&s->w, &told);
	}
	offline_told_line(&text, &told);
	buf_add_char(&text, '\n');
	if (leg->out.cached)
		buf_printf(&text, "Prompt tokens: %" PRIu64 ", of them %" PRIu64 " (%.2f %%) from the "
			   "prefix cache\n", leg->out.prompt_tokens, leg->out.cached_tokens,
			   leg->out.prompt_tokens ? 100 * (double)leg->out.cached_tokens /
			   (double)leg->out.prompt_tokens : 0);
	offline_say(s->hooks, &text);
	buf_release(&text);
}

static int run_engine(struct bench *s, struct leg *leg, struct offline **offline, struct err *e)
{
	const struct offline_start how = {
		.opts = &s->o->common, .engine_argv = arguments(s, leg), .env = s->engine->env,
		.backend = s->engine->worker, .is_async = s->engine->is_async,
		.log_name = s->bench->verb.name, .hooks = *s->hooks,
	};
	struct offline_loaded loaded;
	int64_t longest;

	if (leg->name)
		sayf(s, "Prefix caching: %s", leg->name);
	if (offline_start(&how, offline, e) < 0 ||
	    offline_judge(&s->o->common, s->engine, offline_about(*offline), s->hooks, e) < 0 ||
	    offline_load(*offline, &loaded, e) < 0)
		return -1;
	longest = offline_about(*offline)->max_model_len;
	if (offline_requests_fit(&s->warmup, longest, e) < 0 ||
	    offline_requests_fit(&s->requests, longest, e) < 0 || measure(s, *offline, leg, e) < 0)
		return -1;
	tell(s, leg, *offline, &loaded);
	return 0;
}

static int run_leg(struct bench *s, struct leg *leg, struct err *e)
{
	struct offline *offline = NULL;
	struct err ignored = { 0 };
	int rc = run_engine(s, leg, &offline, e);
	int stopped = offline_stop(offline, rc < 0 ? &ignored : e);

	s->done += rc == 0;
	return rc < 0 ? rc : stopped;
}

/* ---- results ---- */

static void put_legs(struct json_writer *w, const struct bench *s)
{
	json_member_array(w, "runs");
	for (size_t i = 0; i < s->done; i++) {
		const struct leg *leg = &s->leg[i];

		json_begin_object(w);
		json_key(w, "prefix_caching");
		if (leg->name)
			json_put_bool(w, strcmp(leg->name, "on") == 0);
		else
			json_put_null(w);
		json_member_f64(w, "elapsed_time", leg->elapsed_s);
		if (s->warmup.n)
			json_member_f64(w, "warmup_time", leg->warmup_s);
		json_member_int(w, "prompt_tokens", (int64_t)leg->out.prompt_tokens);
		json_member_int(w, "output_tokens", (int64_t)leg->out.output_tokens);
		json_key(w, "cached_tokens");
		if (leg->out.cached)
			json_put_int(w, (int64_t)leg->out.cached_tokens);
		else
			json_put_null(w);
		json_end_object(w);
	}
	json_end_array(w);
	if (s->done == LEGS_MAX)
		json_member_f64(w, "caching_speedup", s->leg[1].elapsed_s / s->leg[0].elapsed_s);
}

static void put_ours(struct bench *s, int64_t seed)
{
	struct json_writer *w = &s->w;

	offline_told_args(w, s->engine);
	json_member_text(w, "dataset", s->requests.w.dataset);
	json_member_int(w, "seed", seed);
	report_reuse_json(&s->reuse, w);
	put_legs(w, s);
	json_end_object(w);
}

/* The first engine's numbers as bench throughput has them; both engines' among ours. */
static int save(struct bench *s, const struct throughput_runs *runs,
		const struct throughput_facts *facts, int64_t seed, struct err *e)
{
	struct throughput_config config = { .model = s->engine->model };
	struct buf text = { 0 };
	int rc;

	put_ours(s, seed);
	config.ours = buf_str(&s->ours);
	throughput_json(runs, facts, &config, &text);
	rc = report_save(s->o->output_json, buf_str(&text), false, e);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "--output-json") : 0;
}

static int report(struct bench *s, int64_t seed, struct err *e)
{
	const struct leg *leg = &s->leg[0];
	const struct throughput_runs runs = {
		.elapsed_s = &leg->elapsed_s, .n_runs = 1, .wanted = 1,
		.outside_s = leg->out.outside_s,
		.n = s->requests.n, .sequences = 1, .backend = s->engine->worker,
		.finished = leg->out.is_finished ? leg->out.finished : SIZE_MAX,
		.has_counts = leg->out.has_counts, .prompt_tokens = leg->out.prompt_tokens,
		.output_tokens = leg->out.output_tokens, .n_warmup = s->warmup.n,
		.requested_prompt_tokens = s->requests.prompt_tokens,
		/* The end of a text is honoured, so an answer may be as short as it likes. */
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
	offline_say(s->hooks, &text);
	buf_release(&text);
	return s->o->output_json ? save(s, &runs, &facts, seed, e) : 0;
}

static int run_all(struct bench *s, int64_t seed, struct err *e)
{
	struct err late = { 0 };
	int rc = draw(s, seed, e);

	if (rc == 0 && s->o->common.dry_run) {
		show_plan(s);
		return 0;
	}
	for (size_t i = 0; i < s->legs && rc == 0; i++)
		rc = run_leg(s, &s->leg[i], e);
	if (rc == 0)
		return report(s, seed, e);
	/* The engine without a cache failed: what the other one took is not lost. */
	if (s->done && report(s, seed, &late) < 0)
		err_wrap(e, "%s", late.text);
	return -1;
}

int prefix_bench_run(const struct prefix_opts *o, const struct prefix_bench *bench,
		     const struct offline_engine *engine, const struct offline_hooks *hooks,
		     struct err *e)
{
	struct bench s = { .o = o, .bench = bench, .engine = engine, .hooks = hooks, .legs = 1 };
	int64_t seed;
	int rc = prefix_bench_check(o, bench, engine, &s.data, &seed, e);

	if (o->compare_caching) {
		s.leg[0] = (struct leg){ .flag = "--enable-prefix-caching", .name = "on" };
		s.leg[1] = (struct leg){ .flag = "--no-enable-prefix-caching", .name = "off" };
		s.legs = LEGS_MAX;
	}
	if (rc == 0)
		rc = run_all(&s, seed, e);
	for (size_t i = 0; i < s.legs; i++)
		offline_outcome_release(&s.leg[i].out);
	offline_requests_release(&s.warmup);
	offline_requests_release(&s.requests);
	offline_sampler_release(&s.sampler);
	buf_release(&s.ours);
	arena_release(&s.arena);
	return rc;
}
