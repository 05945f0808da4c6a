/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prioritization.c - the requests of vLLM's prioritization benchmark: first turns of ShareGPT
 * conversations, or without a file one text for all, each with priority 0 or 1 by one random()
 * after all other draws.
 *
 * Without a file upstream takes "hi" repeated, once less than the tokens that were asked for, for a
 * prompt of that many tokens; how many it has is counted here.
 */
#include "base/limits.h"
#include "data/common.h"
#include "data/priority.h"
#include "token/tokenizer.h"

extern const struct dataset dataset_sharegpt;

static const struct priority_classes halves = { { { 0, 0.5 }, { 1, 0.5 } }, 2 };

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	if (o->path && o->sharegpt_output_len.is_set && o->sharegpt_output_len.v < VALID_TOKENS_MIN)
		return err_set(e, ERR_USAGE, "--output-len: expected at least %d tokens with a dataset, "
			       "got %lld", VALID_TOKENS_MIN, (long long)o->sharegpt_output_len.v);
	if (o->path)
		return 0;
	if (o->random_input_len < 2 || o->random_input_len > LENGTH_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "--input-len: expected 2 to %u tokens, got %lld",
			       LENGTH_TOKENS_MAX, (long long)o->random_input_len);
	if (o->random_output_len < 1)
		return err_set(e, ERR_USAGE, "--output-len: expected at least 1 token, got %lld",
			       (long long)o->random_output_len);
	if (env->num_prompts < 1 || env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts: expected 1 to %u, got %lld", REQUESTS_MAX,
			       (long long)env->num_prompts);
	return 0;
}

static int repeat(const struct dataset_opts *o, const struct dataset_env *env, struct workload *w,
		  struct err *e)
{
	struct buf text = { 0 };
	struct str prompt;
	size_t tokens;

	for (int64_t i = 1; i < o->random_input_len; i++)
		buf_add_text(&text, "hi");
	prompt = arena_str(&w->arena, buf_str(&text));
	buf_release(&text);
	tokens = tokenizer_count(env->tokenizer, prompt, true);
	if (tokens == SIZE_MAX)
		return tokenizer_refuse(env->tokenizer, prompt, e);
	for (int64_t i = 0; i < env->num_prompts; i++) {
		struct sample *s = workload_add(w);

		s->prompt = prompt;
		s->prompt_len = (uint32_t)tokens;
		s->output_len = o->random_output_len;
		s->request_id = dataset_request_id(w, env, (size_t)i);
	}
	if ((int64_t)tokens != o->random_input_len)
		dataset_note(w, "prompts have %zu tokens, not the %lld that were asked for: vLLM's "
			     "benchmark repeats \"hi\" once less and counts that as tokens", tokens,
			     (long long)o->random_input_len);
	return 0;
}

static int converse(const struct dataset_opts *o, const struct dataset_env *env,
		    struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct dataset_opts own = *o;

	own.no_oversample = true; /* fewer rows are fewer requests */
	own.enable_multimodal_chat = false;
	if (dataset_sharegpt.build(&own, env, rng, w, e) < 0)
		return -1;
	for (size_t i = 0; i < w->n; i++)
		w->v[i].media = STR(""); /* texts alone */
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	if ((o->path ? converse(o, env, rng, w, e) : repeat(o, env, w, e)) < 0)
		return -1;
	return priority_deal("priority-classes", &halves, &rng->py, w, e);
}

static const char *const options[] = {
	"input-len", "random-input-len", "random-output-len", "sharegpt-output-len",
	"disable-shuffle", NULL,
};

const struct dataset dataset_prioritization = {
	.name = "prioritization",
	.summary = "ShareGPT conversations, or one text repeated, with priorities 0 and 1",
	.options = options, .needs_tokenizer = true, .ignores_eos = true,
	.check = check, .build = build,
};
