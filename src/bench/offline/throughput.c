/* SPDX-License-Identifier: Apache-2.0 */
/*
 * throughput.c - see throughput.h: the options, the rules between them in upstream's order (of
 * several mistakes the same one is reported), and the run.
 */
#include "bench/offline/throughput.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/offline/offline.h"
#include "bench/offline/pytorch.h"
#include "bench/options/salt.h"
#include "bench/serve/build_workload.h"
#include "client/plan/plan.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/sets/datasets.h"
#include "out/report/report.h"

#define DATASET "Requests"
#define RUN "Run"
#define LORA "LoRA"
#define SETS "Other datasets"

static const char *const groups[] = {
	DATASET, RUN, OFFLINE_RANDOM, OFFLINE_HUB, SETS, LORA, OFFLINE_GROUP, OFFLINE_GROUP_OURS,
	NULL,
};
/* Upstream's datasets, one of an old version, then ours. */
static const char *const datasets[] = {
	"sharegpt", "random", "burstgpt", "hf", "prefix_repetition", "random-mm", "random-rerank",
	"custom_audio", "sonnet", "custom", "custom_image", "spec_bench", "speed_bench",
	"timed_trace", "mix", "workload", NULL,
};
static const char *const assignments[] = { "random", "round-robin", NULL };

#define T(member, name, ...) OPT(struct throughput_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	T(data.dataset_name, "dataset-name", .arg = "NAME", .group = DATASET,
	  .flags = OPT_DASHED, .choices = datasets,
	  .help = "where the prompts come from; sonnet and what follows it are not in vLLM's command"),
	T(data.set.path, "dataset-path", .arg = "FILE", .group = DATASET,
	  .help = "the dataset's file, folder or name on the hub"),
	T(data.set.path, "dataset", .flags = OPT_HIDDEN, .alias_of = "dataset-path",
	  .note = "The '--dataset' argument will be deprecated in the next release. Please use "
		  "'--dataset-name' and '--dataset-path' instead.",
	  .help = "old spelling of --dataset-path"),
	T(data.set.no_oversample, "no-oversample", .group = DATASET,
	  .help = "run fewer requests when the dataset has fewer rows, instead of repeating some"),
	T(data.set.enable_multimodal_chat, "enable-multimodal-chat", .group = DATASET,
	  .help = "build whole chat messages with media in the dataset; always on with --backend "
		  "vllm-chat"),
	T(custom_output_len, "custom-output-len", .arg = "TOKENS", .group = DATASET,
	  .help = "output tokens to request per request of custom sets; -1 takes each row's "
		  "output_tokens; 256 unless given, for custom_audio -1"),
	T(input_len, "input-len", .arg = "TOKENS", .group = DATASET,
	  .help = "length of each prompt of random sets and sonnet; --random-input-len takes precedence"),
	T(output_len, "output-len", .arg = "TOKENS", .group = DATASET,
	  .help = "length of each answer, in place of the dataset's; --random-output-len takes "
		  "precedence"),
	T(n, "n", .arg = "N", .group = RUN, .help = "answers to each prompt"),
	T(data.num_prompts, "num-prompts", .arg = "N", .group = DATASET, .words = "requests num-requests -n",
	  .help = "number of requests"),
	T(data.num_warmups, "num-warmups", .arg = "N", .group = RUN,
	  .words = "warmup warmups",
	  .help = "other requests run before those that are timed"),
	T(hf_max_batch_size, "hf-max-batch-size", .arg = "N", .group = RUN,
	  .help = "--backend hf: most prompts in one batch"),
	T(hf_enable_torch_compile, "hf-enable-torch-compile", .group = RUN,
	  .help = "--backend hf: compile the model"),
	T(common.output_json, "output-json", .arg = "FILE", .group = RUN, .words = "json output out -o",
	  .help = "write the result as JSON"),
	T(async_engine, "async-engine", .group = RUN,
	  .help = "the engine's asynchronous interface, a stream for each request"),
	T(prequeue_requests, "prequeue-requests", .group = RUN,
	  .help = "queue all requests before the scheduler may begin"),
	T(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "leave answers as token IDs, so that converting them to text is not timed"),
	T(lora_path, "lora-path", .arg = "PATH", .group = LORA,
	  .help = "adapters: a folder, or a name on the hub"),
	T(lora_assignment, "lora-assignment", .arg = "HOW", .group = LORA, .choices = assignments,
	  .help = "how adapters are assigned to requests"),
	T(prefix_len, "prefix-len", .arg = "TOKENS", .group = DATASET,
	  .help = "tokens that all prompts begin with; --random-prefix-len takes precedence"),
	T(data.set.hf_subset, "hf-subset", .group = OFFLINE_HUB, .arg = "NAME",
	  .help = "configuration of the hub dataset"),
	T(data.set.hf_split, "hf-split", .group = OFFLINE_HUB, .arg = "NAME",
	  .help = "split of the hub dataset"),
	T(data.set.hf_name, "hf-name", .group = OFFLINE_HUB, .arg = "ID",
	  .help = "hub name to recognise a local copy by"),
	T(profile, "profile", .group = RUN,
	  .help = "start and stop the engine's profiler inside the timed section"),
	T(repeat_prefix_len, "prefix-repetition-prefix-len", .arg = "TOKENS", .group = SETS,
	  .help = "tokens of each shared prefix; 256 unless given"),
	T(repeat_suffix_len, "prefix-repetition-suffix-len", .arg = "TOKENS", .group = SETS,
	  .help = "tokens after the prefix; 256 unless given"),
	T(repeat_num_prefixes, "prefix-repetition-num-prefixes", .arg = "N", .group = SETS,
	  .help = "number of different prefixes; 10 unless given"),
	T(repeat_output_len, "prefix-repetition-output-len", .arg = "TOKENS", .group = SETS,
	  .help = "output tokens to request per request; 128 unless given"),
	OFFLINE_RANDOM_ROWS(struct throughput_opts, data.set),
	T(data.set.asr_min_audio_len_sec, "asr-min-audio-len-sec", .group = OFFLINE_HUB,
	  .arg = "SECONDS", .help = "keep recordings from this length on"),
	T(data.set.asr_max_audio_len_sec, "asr-max-audio-len-sec", .group = OFFLINE_HUB,
	  .arg = "SECONDS", .help = "keep recordings up to this length"),

	T(data.set.disable_shuffle, "disable-shuffle", .group = DATASET, .flags = OPT_OURS,
	  .help = "keep the order of the file"),
	T(data.set.skip_chat_template, "skip-chat-template", .group = DATASET, .flags = OPT_OURS,
	  .help = "prompts as they are, where the dataset would put them through the model's chat "
		  "template"),
	T(chat_prefix, "chat-prefix", .group = DATASET, .flags = OPT_OURS, .arg = "TEXT",
	  .help = "text before each user message, instead of the model's chat template; \\n and "
		  "\\xHH are escapes"),
	T(chat_suffix, "chat-suffix", .group = DATASET, .flags = OPT_OURS, .arg = "TEXT",
	  .help = "text after each user message"),
	T(data.set.prompt_token_ids, "prompt-token-ids", .group = OFFLINE_RANDOM, .flags = OPT_OURS,
	  .help = "random: hand the engine token ids instead of text"),
	T(data.set.random_input_len_dist, "random-input-len-dist", .group = OFFLINE_RANDOM,
	  .flags = OPT_OURS, .arg = "DIST",
	  .help = "random: a distribution of prompt lengths, in place of the length and its range"),
	T(data.set.random_output_len_dist, "random-output-len-dist", .group = OFFLINE_RANDOM,
	  .flags = OPT_OURS, .arg = "DIST",
	  .help = "random: a distribution of output lengths, in place of the length and its range"),
	T(data.set.mix, "mix", .group = SETS, .flags = OPT_OURS, .arg = "JSON",
	  .help = "mix: list of datasets with their options and weights"),
	T(data.set.hf_text_column, "hf-text-column", .group = OFFLINE_HUB, .flags = OPT_OURS,
	  .arg = "NAME", .help = "hf: the column that holds the prompts, if its name is not recognized"),
	T(data.set.hf_revision, "hf-revision", .group = OFFLINE_HUB, .flags = OPT_OURS,
	  .arg = "NAME", .help = "hf: branch, tag or commit"),
	REUSE_ROWS(struct throughput_opts, data.set, DATASET),
	T(num_runs, "num-runs", .group = RUN, .flags = OPT_OURS, .arg = "N", .min = 1, .max = 1000,
	  .words = "repeat repeats runs",
	  .help = "repeat the same requests this many times; the numbers are those of the first "
		  "run, for which no prompt is in a prefix cache, and the spread is reported as "
		  "well"),
	T(common.dump_workload, "dump-workload", .group = RUN, .flags = OPT_OURS, .arg = "FILE",
	  .help = "write the requests to a file, one JSON object a line"),
	OFFLINE_ROWS(offline_backends, 0),
	GATE_ROW_FAIL_IF(struct throughput_opts, common.gate, OFFLINE_GROUP_OURS, "tokens_per_second<1000"),
	GATE_ROWS(struct throughput_opts, common.gate, OFFLINE_GROUP_OURS, OPT_OURS),
};

static const struct throughput_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.data = { .dataset_name = "sharegpt", .num_prompts = 1000, .set = { OFFLINE_SET_DEFAULTS } },
	.n = 1, .lora_assignment = "random", .num_runs = 1,
};

const struct opt_set throughput_opt_set = {
	.command = "bench throughput",
	.summary = "Measures how many requests and tokens an engine processes in a second when it has "
		   "all of them at once.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench throughput --model MODEL --random-input-len 512 \\\n"
		  "      --random-output-len 64 --num-prompts 200 --output-json FILE\n"
		  "  profllm bench throughput --model MODEL --backend hf --hf-max-batch-size 16\n"
		  "  profllm bench throughput --backend sim --model sim --num-prompts 100",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_async_engine_args,
	.takes_prefixes = true,
};

struct throughput_check {
	struct throughput_opts *o;
	const struct opt_result *given;
	const struct offline_engine *engine;
	struct throughput_plan *plan;
	struct buf *notes;
	struct err *e;
};

static bool given(const struct throughput_check *c, const char *name)
{
	return opt_given(&throughput_opt_set, c->given, name);
}

__attribute__((format(printf, 2, 3)))
static void note(const struct throughput_check *c, const char *fmt, ...)
{
	char line[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	buf_printf(c->notes, "%s\n", line);
}

static bool is_one_of(const char *text, const char *const *list)
{
	for (; *list; list++)
		if (strcmp(text, *list) == 0)
			return true;
	return false;
}

static bool is_backend(const struct throughput_check *c, const char *name)
{
	return strcmp(c->plan->backend, name) == 0;
}

/* Backends of ours, not upstream's. */
static bool is_ours(const struct throughput_check *c)
{
	static const char *const names[] = { "sim", "http", "worker", NULL };

	return is_one_of(c->plan->backend, names);
}

static bool is_random(const struct throughput_check *c)
{
	static const char *const names[] = { "random", "random-mm", "random-rerank", NULL };

	return is_one_of(c->o->data.dataset_name, names);
}

static bool is_set(const struct throughput_check *c, const char *name)
{
	return strcmp(c->o->data.dataset_name, name) == 0;
}

/* ---- steps ---- */

static int check_backend(const struct throughput_check *c)
{
	const struct throughput_opts *o = c->o;

	if (o->prequeue_requests && !is_backend(c, "vllm") && !is_backend(c, "vllm-chat") &&
	    !is_ours(c))
		return err_set(c->e, ERR_USAGE, "--prequeue-requests needs --backend vllm or "
			       "vllm-chat");
	if (o->prequeue_requests && c->plan->is_async)
		return err_set(c->e, ERR_USAGE, "--prequeue-requests is not supported with "
			       "--async-engine");
	if (c->plan->is_async && !is_backend(c, "vllm") && !is_ours(c))
		note(c, "--async-engine has no effect with --backend %s, as in vLLM", c->plan->backend);
	return 0;
}

static void choose_dataset(const struct throughput_check *c)
{
	static const char *const own[] = { "custom", "custom_image", "spec_bench", "speed_bench",
					   "timed_trace", "mix", "workload", NULL };
	struct throughput_opts *o = c->o;
	const struct dataset *d = dataset_find(o->data.dataset_name);

	if (d) /* one spelling of the name from here on: that of the table */
		o->data.dataset_name = d->name;
	c->plan->is_own_dataset = is_one_of(o->data.dataset_name, own);
	if (o->data.set.path || is_set(c, "prefix_repetition") || c->plan->is_own_dataset)
		return;
	if (given(c, "dataset-name") && !is_set(c, "random")) {
		if (!(c->engine->compat & THROUGHPUT_COMPAT_DATASET))
			return;
		note(c, "--dataset-name %s without --dataset-path is random, as in vLLM "
		     "(--compat dataset-name)", o->data.dataset_name);
	}
	c->plan->is_random_by_default = true;
	o->data.dataset_name = "random";
}

/* Upstream's warnings, only where they are true; it prints some of them on every run. */
static void warn_ignored(const struct throughput_check *c)
{
	const char *const name = c->o->data.dataset_name;

	if (!is_set(c, "hf") && (given(c, "hf-subset") || given(c, "hf-split")))
		note(c, "--hf-subset and --hf-split will be ignored since --dataset-name is not 'hf'.");
	if (!is_random(c) && given(c, "random-range-ratio"))
		note(c, "--random-range-ratio will be ignored since --dataset-name is not 'random', "
		     "'random-mm', or 'random-rerank'.");
	if (!is_set(c, "random-rerank") && given(c, "random-batch-size") &&
	    c->o->data.set.random_batch_size != 1 && !is_set(c, "random"))
		note(c, "--random-batch-size will be ignored since --dataset-name is not "
		     "'random-rerank'.");
	if (!is_set(c, "random-rerank") && c->o->data.set.no_reranker)
		note(c, "--no-reranker will be ignored since --dataset-name is not 'random-rerank'.");
	if (!is_random(c) && !is_set(c, "sonnet") && given(c, "prefix-len"))
		note(c, "--prefix-len will be ignored since --dataset-name is not 'random', "
		     "'random-mm', or not set.");
	if (strcmp(name, "custom_audio") == 0 && given(c, "output-len"))
		note(c, "--output-len has no effect: the dataset is custom_audio; "
		     "--custom-output-len has");
}

/* Other options that only some datasets read. */
static void warn_other_sets(const struct throughput_check *c)
{
	const struct { const char *option, *set; } idle[] = {
		{ "prefix-repetition-prefix-len", "prefix_repetition" },
		{ "prefix-repetition-suffix-len", "prefix_repetition" },
		{ "prefix-repetition-num-prefixes", "prefix_repetition" },
		{ "prefix-repetition-output-len", "prefix_repetition" },
		{ "asr-min-audio-len-sec", "hf" }, { "asr-max-audio-len-sec", "hf" },
		{ "hf-name", "hf" }, { "hf-text-column", "hf" }, { "hf-revision", "hf" },
		{ "random-mm-base-items-per-request", "random-mm" },
		{ "random-mm-num-mm-items-range-ratio", "random-mm" },
		{ "random-mm-limit-mm-per-prompt", "random-mm" },
		{ "random-mm-bucket-config", "random-mm" },
		{ "mix", "mix" }, { "prompt-token-ids", "random" },
		{ "random-input-len-dist", "random" }, { "random-output-len-dist", "random" },
	};
	static const char *const lengths[] = { "random-input-len", "random-output-len",
					       "random-prefix-len" };
	static const char *const chat[] = { "chat-prefix", "chat-suffix" };
	const struct dataset *d = dataset_find(c->o->data.dataset_name);
	bool is_templated = is_set(c, "mix") || (d && d->is_templated);

	for (size_t i = 0; i < sizeof(chat) / sizeof(*chat); i++) {
		if (!given(c, chat[i]))
			continue;
		if (!is_templated)
			note(c, "--%s has no effect: the dataset is %s", chat[i],
			     c->o->data.dataset_name);
		else if (c->o->data.set.skip_chat_template && !(d && d->is_always_templated))
			note(c, "--%s has no effect with --skip-chat-template", chat[i]);
	}
	for (size_t i = 0; i < sizeof(idle) / sizeof(*idle); i++)
		if (given(c, idle[i].option) && !is_set(c, idle[i].set))
			note(c, "--%s has no effect: the dataset is %s", idle[i].option,
			     c->o->data.dataset_name);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths) && !is_random(c); i++)
		if (given(c, lengths[i]))
			note(c, "--%s has no effect: the dataset is %s", lengths[i],
			     c->o->data.dataset_name);
	if (given(c, "custom-output-len") && strncmp(c->o->data.dataset_name, "custom", 6) != 0)
		note(c, "--custom-output-len has no effect: the dataset is %s",
		     c->o->data.dataset_name);
	if (given(c, "input-len") && !is_random(c) && !is_set(c, "sonnet"))
		note(c, "--input-len has no effect: the dataset is %s", c->o->data.dataset_name);
}

/*
 * One of --input-len, --output-len, --prefix-len against --random-...: the latter takes
 * precedence, in upstream with its default as well. value: what is in force; asked: what the
 * former says.
 */
static void choose_length(const struct throughput_check *c, const char *name, bool is_asked,
			  int64_t asked, const char *what, int64_t *value)
{
	char random[32];

	if (!is_asked)
		return;
	snprintf(random, sizeof(random), "random-%s", name);
	if (given(c, random)) {
		note(c, "Both --%s and --%s are specified. The random version (--%s) will be preferred "
		     "in this run.", name, random, random);
	} else if (!(c->engine->compat & THROUGHPUT_COMPAT_LENGTHS)) {
		*value = asked;
	} else if (*value != asked) {
		note(c, "--%s %" PRId64 " has no effect, as in vLLM (--compat lengths): the default of "
		     "--%s takes precedence, so %s %" PRId64 " tokens", name, asked, random, what,
		     *value);
	}
}

static void choose_lengths(const struct throughput_check *c)
{
	struct throughput_opts *o = c->o;
	struct dataset_opts *s = &o->data.set;

	if (is_random(c)) {
		choose_length(c, "input-len", o->input_len.is_set, o->input_len.v,
			      "prompts have", &s->random_input_len);
		choose_length(c, "output-len", o->output_len.is_set, o->output_len.v,
			      "answers have", &s->random_output_len);
		choose_length(c, "prefix-len", given(c, "prefix-len"), o->prefix_len,
			      "all prompts share", &s->random_prefix_len);
	}
	s->hf_output_len = s->sharegpt_output_len = o->output_len;
	/* Each row's own, as upstream, for the one set of these that upstream has. */
	if (o->custom_output_len.is_set)
		s->custom_output_len = o->custom_output_len.v;
	else if (is_set(c, "custom_audio"))
		s->custom_output_len = -1;
	else if (o->output_len.is_set)
		s->custom_output_len = o->output_len.v;
	if (o->output_len.is_set)
		s->sonnet_output_len = s->spec_bench_output_len = s->speed_bench_output_len =
			o->output_len.v;
	if (o->input_len.is_set)
		s->sonnet_input_len = o->input_len.v;
	if (given(c, "prefix-len"))
		s->sonnet_prefix_len = o->prefix_len;
	if (o->repeat_prefix_len.is_set)
		s->prefix_repetition_prefix_len = o->repeat_prefix_len.v;
	if (o->repeat_suffix_len.is_set)
		s->prefix_repetition_suffix_len = o->repeat_suffix_len.v;
	if (o->repeat_num_prefixes.is_set)
		s->prefix_repetition_num_prefixes = o->repeat_num_prefixes.v;
	if (o->repeat_output_len.is_set)
		s->prefix_repetition_output_len = o->repeat_output_len.v;
	if (is_backend(c, "vllm-chat"))
		s->enable_multimodal_chat = true;
}

static int check_limits(const struct throughput_check *c)
{
	const struct dataset_opts *s = &c->o->data.set;
	const struct { const char *option; int64_t tokens; } lengths[] = {
		{ "random-input-len", s->random_input_len },
		{ "random-output-len", s->random_output_len },
		{ "random-prefix-len", s->random_prefix_len },
		{ "custom-output-len", s->custom_output_len },
		{ "input-len", c->o->input_len.v }, { "output-len", c->o->output_len.v },
		{ "prefix-len", c->o->prefix_len },
		{ "prefix-repetition-prefix-len", s->prefix_repetition_prefix_len },
		{ "prefix-repetition-suffix-len", s->prefix_repetition_suffix_len },
		{ "prefix-repetition-output-len", s->prefix_repetition_output_len },
	};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++)
		if (lengths[i].tokens > LENGTH_TOKENS_MAX)
			return err_set(c->e, ERR_USAGE, "--%s: expected at most %u tokens, got %" PRId64,
				       lengths[i].option, LENGTH_TOKENS_MAX, lengths[i].tokens);
	if (c->o->output_len.is_set && c->o->output_len.v < 1)
		return err_set(c->e, ERR_USAGE, "--output-len: expected at least 1, got %" PRId64,
			       c->o->output_len.v);
	if (c->o->n < 1)
		return err_set(c->e, ERR_USAGE, "--n: expected at least 1, got %" PRId64, c->o->n);
	return 0;
}

static int check_lora(const struct throughput_check *c)
{
	const struct throughput_opts *o = c->o;

	if (c->engine->has_lora && !is_backend(c, "vllm") && !is_ours(c))
		return err_set(c->e, ERR_USAGE, "--enable-lora: only --backend vllm takes adapters");
	if (c->engine->has_lora && !o->lora_path)
		return err_set(c->e, ERR_USAGE, "--enable-lora needs --lora-path");
	if (!c->engine->has_lora && o->lora_path)
		note(c, "--lora-path has no effect on the engine without --enable-lora");
	if (!o->lora_path && given(c, "lora-assignment"))
		note(c, "--lora-assignment has no effect without --lora-path");
	return 0;
}

static int check_engine(const struct throughput_check *c)
{
	const struct throughput_opts *o = c->o;
	const struct offline_engine *engine = c->engine;
	bool is_hf = is_backend(c, "hf");

	if (is_hf && !o->hf_max_batch_size.is_set)
		return err_set(c->e, ERR_USAGE, "--backend hf needs --hf-max-batch-size");
	if (!is_hf && o->hf_max_batch_size.is_set)
		return err_set(c->e, ERR_USAGE, "--hf-max-batch-size is for --backend hf only");
	if (is_hf && engine->quantization)
		return err_set(c->e, ERR_USAGE, "--quantization is for --backend vllm only, not hf");
	if (engine->data_parallel > 1 &&
	    (!engine->executor_backend ||
	     strcmp(engine->executor_backend, "external_launcher") != 0 || c->plan->is_async))
		return err_set(c->e, ERR_USAGE, "--data-parallel-size above 1 needs "
			       "--distributed-executor-backend external_launcher and no "
			       "--async-engine; bench serve measures a server of several");
	/* From here on what upstream meets later. */
	if (is_hf && engine->tensor_parallel != 1)
		return err_set(c->e, ERR_USAGE, "--tensor-parallel-size: expected 1 with --backend hf, got %"
			       PRId64, engine->tensor_parallel);
	if (is_hf && o->profile)
		return err_set(c->e, ERR_USAGE, "--profile: --backend hf has no profiler");
	if (is_hf && o->hf_max_batch_size.v < 1)
		return err_set(c->e, ERR_USAGE, "--hf-max-batch-size: expected at least 1, got %" PRId64,
			       o->hf_max_batch_size.v);
	if (!is_hf && o->hf_enable_torch_compile)
		note(c, "--hf-enable-torch-compile has no effect with --backend %s", c->plan->backend);
	return 0;
}

static int check(struct offline_job *job, struct err *e)
{
	struct throughput_opts *o = (struct throughput_opts *)job->opts;
	struct throughput_plan *plan = &o->plan;
	const struct throughput_check c = { o, job->given, job->engine, plan, job->notes, e };

	*plan = (struct throughput_plan){
		.backend = job->engine->worker,
		.is_async = job->engine->is_async || o->async_engine,
	};
	if (check_backend(&c) < 0)
		return -1;
	plan->is_async &= is_backend(&c, "vllm") || is_ours(&c);
	choose_dataset(&c);
	warn_ignored(&c);
	warn_other_sets(&c);
	if (job->opts->base_url)
		buf_add_text(c.notes, "the server need not compute prompts that its prefix cache has from an "
			     "earlier run: restart it, or empty its cache, before each run\n");
	choose_lengths(&c);
	if (check_lora(&c) < 0 || check_engine(&c) < 0 || check_limits(&c) < 0)
		return -1;
	plan->is_as_requested = (plan->is_async || is_backend(&c, "hf")) &&
				!(job->engine->fixes & THROUGHPUT_FIX_TOKENS);
	return 0;
}

struct throughput {
	struct offline_job *job;
	const struct throughput_opts *o;
	const struct throughput_plan *plan;
	struct offline_sampler sampler;
	struct offline_requests warmup, requests;
	struct workload pass;          /* of --warmup-pass */
	double *elapsed_s;
	double *e2el_s;                /* of the first run; NULL: not reported */
	struct throughput_runs runs;
	struct report_reuse reuse;
};

/* ---- the engine ---- */

/* Also started for chat templates that no file has, so not before it is needed. */
static struct offline *start(void *self, struct err *e)
{
	struct throughput *s = self;
	const struct offline_start how = {
		.is_async = s->plan->is_async, .is_compiled = s->o->hf_enable_torch_compile,
	};

	if (!s->job->offline && offline_job_start(s->job, how, e) < 0)
		return NULL;
	return s->job->offline;
}

static bool is_chat(const struct throughput *s)
{
	return strcmp(s->plan->backend, "vllm-chat") == 0;
}

/* Checks, before the engine is loaded, that it can take the requests. */
static int check_requests(const struct throughput *s, const struct offline_requests *r,
			  struct err *e)
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

static int draw(struct throughput *s, struct err *e)
{
	const struct throughput_opts *o = s->o;
	const int64_t seed = s->job->engine->seed;

	s->sampler = (struct offline_sampler){
		.backend = s->plan->backend, .engine = s->job->engine, .hooks = s->job->hooks,
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

/* The requests as a plan that sends all at once, for --dry-run and --dump-workload. */
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

static int show_requests(struct throughput *s, struct err *e)
{
	struct plan plan = all_at_once(&s->requests);
	struct buf text = { 0 };
	int rc = 0;

	if (s->o->common.dump_workload) {
		dump_workload(&s->requests.w, &plan, "", &text);
		rc = file_write_atomic(s->o->common.dump_workload, buf_str(&text), e);
		buf_reset(&text);
	}
	if (rc == 0 && s->o->common.dry_run) {
		buf_printf(&text, "Requests: dataset %s, seed %" PRId64 "\n", s->requests.w.dataset,
			   s->job->engine->seed);
		dump_summary(&s->requests.w, &plan, &text);
		offline_say(&s->job->hooks, &text);
	}
	free(plan.entry);
	buf_release(&text);
	return rc < 0 ? err_wrap(e, "--dump-workload") : 0;
}

/* ---- running ---- */

static struct offline_run one(const struct throughput *s, bool is_warmup)
{
	const struct throughput_opts *o = s->o;

	return (struct offline_run){
		.method = offline_about(s->job->offline)->is_pooling ? OFFLINE_ENCODE :
			  is_chat(s) ? OFFLINE_CHAT : OFFLINE_GENERATE,
		.n = o->n, .temperature = 1, .top_p = 1,
		.ignore_eos = strcmp(s->plan->backend, "hf") != 0, /* as in upstream */
		.detokenize = !o->disable_detokenize, .is_prequeued = o->prequeue_requests,
		.is_profiled = o->profile && !is_warmup,
		.id_prefix = is_warmup ? "warmup" : "test",
		.batch_max = o->hf_max_batch_size.is_set ? o->hf_max_batch_size.v : 0,
		.progress = is_warmup ? "Warmup prompts" : "Processed prompts",
	};
}

static int run_batch(struct throughput *s, bool is_warmup, struct offline_outcome *out,
		     struct err *e)
{
	const struct offline_run run = one(s, is_warmup);

	return offline_run(s->job->offline, &run, out, e);
}

static int put(struct throughput *s, const struct offline_requests *r, struct err *e)
{
	/* Without --enable-lora the engine would refuse them; upstream drops them in that case. */
	const struct offline_batch batch =
		offline_requests_batch(r, s->job->engine->has_lora ? s->o->lora_path : NULL);

	return offline_put(s->job->offline, &batch, e);
}

/* Runs requests before the timed ones. */
static int run_untimed(struct throughput *s, struct err *e)
{
	const struct offline_batch pass = { .w = &s->pass, .n = s->pass.n };
	struct offline_outcome out;

	if (s->warmup.n) {
		offline_line(&s->job->hooks, "Warming up with %zu requests...", s->warmup.n);
		if (put(s, &s->warmup, e) < 0 || run_batch(s, true, &out, e) < 0)
			return -1;
		offline_outcome_release(&out);
	}
	if (!s->pass.n)
		return 0;
	/* --warmup-pass: run like the measured requests, but never profiled. */
	offline_line(&s->job->hooks, "Warm-up pass: %zu requests with %s prompts...", s->pass.n,
		     strcmp(s->o->data.set.warmup_pass, "same") == 0 ? "the measured" : "other");
	if (offline_put(s->job->offline, &pass, e) < 0 || run_batch(s, true, &out, e) < 0)
		return -1;
	offline_outcome_release(&out);
	return 0;
}

/* Prompt tokens that an initially empty prefix cache may have had. */
static double explained_tokens(const struct throughput *s, const struct offline_outcome *out)
{
	const struct workload *before[] = { &s->warmup.w, &s->pass };
	size_t n = 0, all = (size_t)s->warmup.w.n + s->pass.n + out->n;
	struct str *text = mem_array(all, sizeof(*text));
	double *share = mem_array(all, sizeof(*share)), explained = 0;

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < before[k]->n; i++)
			text[n++] = prefix_text(&before[k]->v[i]);
	for (size_t i = 0; i < out->n; i++)
		text[n + i] = prefix_text(&s->requests.w.v[s->requests.index[i]]);
	prefix_shared(text, all, share);
	for (size_t i = 0; i < out->n; i++)
		explained += fmin(out->prompt[i], share[n + i] * out->prompt[i] +
				  (is_chat(s) ? PREFIX_TEMPLATE_TOKENS : PREFIX_BLOCK_TOKENS));
	free(share);
	free(text);
	return explained;
}

/* Everything that upstream reports is about the first run. */
static void keep_first(struct throughput *s, const struct offline_outcome *out)
{
	struct throughput_runs *r = &s->runs;

	r->outside_s = out->outside_s;
	r->cached_tokens = out->cached ? out->cached_tokens : 0;
	if (r->cached_tokens && out->prompt)
		r->explained_tokens = explained_tokens(s, out);
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

static int measure(struct throughput *s, struct err *e)
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

static void put_names(struct json_writer *w, const char *key, const struct offline_fix *row,
		      unsigned bits)
{
	json_member_array(w, key);
	for (; row->name; row++)
		if (bits & row->bit)
			json_put_text(w, row->name);
	json_end_array(w);
}

static void put_requests(struct json_writer *w, const struct throughput *s)
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
	json_member_int(w, "seed", s->job->engine->seed);
	put_names(w, "fixes", s->job->verb->fixes, s->job->engine->fixes);
	put_names(w, "compat", s->job->verb->compats, s->job->engine->compat);
}

static int save(const struct throughput *s, const struct throughput_facts *f,
		const struct offline_reported *reported, struct err *e)
{
	struct throughput_config config = { .model = s->job->engine->model };
	struct pytorch_metric metric[2] = { { .name = "requests_per_second" },
					    { .name = "tokens_per_second" } };
	const double value[2] = { f->requests_per_s, f->total_tokens_per_s };
	struct buf ours = { 0 }, values[2] = { { 0 } }, extra = { 0 }, text = { 0 };
	struct json_writer w = json_writer(&ours);
	char number[FMT_F64_BYTES];
	int rc;

	json_begin_object(&w);
	offline_reported(&w, reported);
	json_member_texts(&w, "engine_args", s->job->engine->shown_argv);
	put_requests(&w, s);
	json_end_object(&w);
	config.ours = buf_str(&ours);
	throughput_json(&s->runs, f, &config, &text);
	for (size_t i = 0; i < 2; i++) {
		buf_printf(&values[i], "[%s]", fmt_f64(number, value[i]));
		metric[i].values = buf_str(&values[i]);
	}
	throughput_extra(&s->runs, f, &extra);
	rc = offline_job_save(s->job, buf_str(&text), metric, 2, buf_str(&extra), e);
	buf_release(&ours);
	buf_release(&values[0]);
	buf_release(&values[1]);
	buf_release(&extra);
	buf_release(&text);
	return rc;
}

static int report(struct throughput *s, struct err *e)
{
	const struct offline_reported reported = offline_reported_of(s->job);
	struct throughput_facts facts;
	struct buf text = { 0 };

	reuse_facts(&s->requests.w, &s->o->data.set, &s->reuse);
	throughput_facts(&s->runs, &facts);
	throughput_terminal(&s->runs, &facts, &text);
	offline_reported_line(&text, &reported);
	throughput_terminal_ours(&s->runs, &facts, &text);
	report_reuse_rows(&s->reuse, &text);
	offline_say(&s->job->hooks, &text);
	buf_release(&text);
	return save(s, &facts, &reported, e);
}

static int run_all(struct throughput *s, struct err *e)
{
	struct err late = { 0 };
	struct offline_run run;
	int64_t longest;

	if (s->plan->is_random_by_default)
		offline_line(&s->job->hooks,
			     "When dataset path is not set, it will default to random dataset");
	if (draw(s, e) < 0 || show_requests(s, e) < 0)
		return -1;
	if (s->o->common.dry_run)
		return 0;
	if (check_requests(s, &s->warmup, e) < 0 || check_requests(s, &s->requests, e) < 0 ||
	    !start(s, e))
		return -1;
	run = one(s, false);
	if (offline_can(s->job->offline, &run, e) < 0 ||
	    offline_load(s->job->offline, &s->job->loaded, e) < 0)
		return -1;
	longest = offline_about(s->job->offline)->max_model_len;
	s->runs.n = s->requests.n;
	s->runs.n_warmup = s->warmup.n;
	s->runs.requested_prompt_tokens = s->requests.prompt_tokens;
	s->runs.requested_output_tokens = s->requests.output_tokens;
	s->runs.is_multimodal = s->requests.is_multimodal;
	s->runs.is_pooling = offline_about(s->job->offline)->is_pooling;
	if (offline_requests_fit(&s->warmup, longest, e) < 0 ||
	    offline_requests_fit(&s->requests, longest, e) < 0 || run_untimed(s, e) < 0)
		return -1;
	if (measure(s, e) == 0)
		return report(s, e);
	/* Ctrl-C, or the engine failed: what was measured is not lost. */
	if (s->runs.n_runs && report(s, &late) < 0)
		err_wrap(e, "%s", late.text);
	return -1;
}

static int run(struct offline_job *job, struct err *e)
{
	const struct throughput_opts *o = (const struct throughput_opts *)job->opts;
	struct throughput s = { .job = job, .o = o, .plan = &o->plan };
	int rc;

	s.elapsed_s = mem_array((size_t)o->num_runs, sizeof(double));
	s.runs = (struct throughput_runs){
		.elapsed_s = s.elapsed_s, .wanted = (size_t)o->num_runs, .sequences = o->n,
		.backend = o->plan.backend,
		.is_as_requested = o->plan.is_as_requested, .is_profiled = o->profile,
	};
	rc = offline_job_end(job, run_all(&s, e), e);
	workload_release(&s.pass); /* it shares texts with the requests */
	offline_requests_release(&s.warmup);
	offline_requests_release(&s.requests);
	offline_sampler_release(&s.sampler);
	free(s.elapsed_s);
	free(s.e2el_s);
	return rc;
}

static void example(const void *values, struct buf *out)
{
	const struct throughput_opts *o = values;
	const double s[] = { 1, 1 };
	struct throughput_runs runs = {
		.elapsed_s = s, .n_runs = o->num_runs > 1 ? 2 : 1,
		.n = 1, .finished = 1,
		.sequences = 1, .has_counts = true, .prompt_tokens = 1, .output_tokens = 1,
		.requested_prompt_tokens = 1, .requested_output_tokens = 1, .e2el_s = s,
		.n_e2el = 1, .backend = "",
	};
	struct buf ours = { 0 };
	struct throughput_config config = { .model = "" };
	struct throughput_facts facts;

	offline_reported_example("throughput", &ours);
	config.ours = buf_str(&ours);
	throughput_facts(&runs, &facts);
	throughput_json(&runs, &facts, &config, out);
	buf_release(&ours);
}

static const struct offline_fix fixes[] = {
	{ "token-counts", THROUGHPUT_FIX_TOKENS,
	  "tokens are counted with --async-engine and --backend hf, too, over all --n answers; vLLM "
	  "takes what was asked for, one answer each" },
	{ "lengths", 0, NULL },
	{ "dataset-name", 0, NULL },
	{ NULL, 0, NULL },
};
static const struct offline_fix compats[] = {
	{ "lengths", THROUGHPUT_COMPAT_LENGTHS,
	  "--input-len, --output-len and --prefix-len have no effect on random datasets: vLLM's "
	  "defaults of --random-input-len, --random-output-len and --random-prefix-len (1024, 128, 0) "
	  "take precedence" },
	{ "dataset-name", THROUGHPUT_COMPAT_DATASET,
	  "without --dataset-path every dataset of vLLM's but prefix_repetition becomes random" },
	{ NULL, 0, NULL },
};

const struct offline_verb throughput_verb = {
	.name = "throughput", .set = &throughput_opt_set, .fixes = fixes, .compats = compats,
	.check = check, .example = example, .run = run,
};
