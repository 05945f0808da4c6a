/* SPDX-License-Identifier: Apache-2.0 */
/*
 * throughput_opts.c - the rules between the options of `bench throughput`, in upstream's order, so
 * that a line with several mistakes is refused for the same one.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "run/throughput.h"

struct check {
	struct throughput_opts *o;
	const struct opt_result *given;
	const struct offline_engine *engine;
	struct throughput_plan *plan;
	struct buf *notes;
	struct err *e;
};

static bool given(const struct check *c, const char *name)
{
	return opt_given(&throughput_opt_set, c->given, name);
}

__attribute__((format(printf, 2, 3)))
static void note(const struct check *c, const char *fmt, ...)
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

static bool is_backend(const struct check *c, const char *name)
{
	return strcmp(c->plan->backend, name) == 0;
}

/* Those that upstream has; the rest are engines of ours, which take what they can. */
static bool is_ours(const struct check *c)
{
	static const char *const names[] = { "sim", "http", "worker", NULL };

	return is_one_of(c->plan->backend, names);
}

static bool is_random(const struct check *c)
{
	static const char *const names[] = { "random", "random-mm", "random-rerank", NULL };

	return is_one_of(c->o->data.dataset_name, names);
}

static bool is_set(const struct check *c, const char *name)
{
	return strcmp(c->o->data.dataset_name, name) == 0;
}

/* ---- steps ---- */

static int check_backend(const struct check *c)
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

/* One spelling of the name from here on: that of the table. */
static void name_dataset(const struct check *c)
{
	const struct dataset *d = dataset_find(c->o->data.dataset_name);

	if (d)
		c->o->data.dataset_name = d->name;
}

static void choose_dataset(const struct check *c)
{
	static const char *const own[] = { "custom", "custom_image", "spec_bench", "speed_bench",
					   "timed_trace", "mix", "workload", NULL };
	struct throughput_opts *o = c->o;

	name_dataset(c);
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

/* Upstream's, where they are true; it prints some of them on every run. */
static void warn_ignored(const struct check *c)
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
static void warn_other_sets(const struct check *c)
{
	const struct { const char *option, *set; } rows[] = {
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
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (given(c, rows[i].option) && !is_set(c, rows[i].set))
			note(c, "--%s has no effect: the dataset is %s", rows[i].option,
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
static void choose_length(const struct check *c, const char *name, bool is_asked, int64_t asked,
			  const char *what, int64_t *value)
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

static void choose_lengths(const struct check *c)
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

static int check_limits(const struct check *c)
{
	const struct dataset_opts *s = &c->o->data.set;
	const struct { const char *option; int64_t tokens; } rows[] = {
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

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		if (rows[i].tokens > LENGTH_TOKENS_MAX)
			return err_set(c->e, ERR_USAGE, "--%s: expected at most %u tokens, got %" PRId64,
				       rows[i].option, LENGTH_TOKENS_MAX, rows[i].tokens);
	if (c->o->output_len.is_set && c->o->output_len.v < 1)
		return err_set(c->e, ERR_USAGE, "--output-len: expected at least 1, got %" PRId64,
			       c->o->output_len.v);
	if (c->o->n < 1)
		return err_set(c->e, ERR_USAGE, "--n: expected at least 1, got %" PRId64, c->o->n);
	return 0;
}

static int check_lora(const struct check *c)
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

static int check_engine(const struct check *c)
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

int throughput_check(struct throughput_opts *o, const struct opt_result *result,
		     const struct offline_engine *engine, struct throughput_plan *out,
		     struct buf *notes, struct err *e)
{
	const struct check c = { o, result, engine, out, notes, e };

	*out = (struct throughput_plan){
		.backend = engine->worker, .is_async = engine->is_async || o->async_engine,
	};
	if (check_backend(&c) < 0)
		return -1;
	out->is_async &= is_backend(&c, "vllm") || is_ours(&c);
	choose_dataset(&c);
	warn_ignored(&c);
	warn_other_sets(&c);
	choose_lengths(&c);
	if (check_lora(&c) < 0 || check_engine(&c) < 0 || check_limits(&c) < 0)
		return -1;
	out->is_as_requested = (out->is_async || is_backend(&c, "hf")) &&
			       !(engine->fixes & THROUGHPUT_FIX_TOKENS);
	return 0;
}
