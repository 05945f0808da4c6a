/* SPDX-License-Identifier: Apache-2.0 */
/*
 * conversations.c - whole conversations as sessions: each message of the user is a request, and
 * what the server has answered before it is its history.
 *
 * --num-prompts is the number of conversations: those of the file in its order, then, unless
 * --no-oversample is given, copies of uniformly chosen ones under ids of their own.
 */
#include <inttypes.h>

#include "base/limits.h"
#include "base/mem.h"
#include "data/common.h"
#include "data/conversation.h"

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)o;
	if (!env->backend || dataset_sends_messages(env))
		return 0;
	return err_set(e, ERR_USAGE, "--backend %s: conversations are sent as chat messages; use "
		       "openai-chat", env->backend);
}

/* The conversations that are sent, in order; *n of them. */
static size_t *choose(const struct dataset_opts *o, const struct dataset_env *env,
		      struct compat_rng *rng, size_t all, size_t *n)
{
	size_t *which;

	*n = env->num_prompts > 0 ? (size_t)env->num_prompts : all;
	if (*n > all && o->no_oversample)
		*n = all;
	which = mem_array(*n, sizeof(*which));
	if (*n > all)
		pyrandom_seed(&rng->py, (int64_t)env->seed);
	for (size_t i = 0; i < *n; i++)
		which[i] = i < all ? i : pyrandom_choice(&rng->py, all);
	return which;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	const struct conversations_opts reading = {
		.tokenizer = env->tokenizer, .np = &rng->np, .threads = env->threads,
		.cancel = env->cancel,
	};
	const int64_t output_len = o->conversations_output_len.is_set ?
				   o->conversations_output_len.v : 0;
	const struct conversation_turns turns = {
		.output_len = output_len, .tail_output_len = output_len,
		.tokens_max = o->max_model_len.is_set ? o->max_model_len.v : 0,
		.request_id_prefix = env->request_id_prefix,
	};
	struct conversations c = { 0 };
	size_t *which = NULL, n;
	int64_t left_out = -1;

	if (env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 " is more than the limit of %u",
			       env->num_prompts, REQUESTS_MAX);
	if (conversations_read(o->path, &reading, &c, e) == 0) {
		which = choose(o, env, rng, c.n, &n);
		left_out = conversations_to_workload(&c, which, n, &turns, w, e);
	}
	if (left_out > 0)
		dataset_note(w, "%" PRId64 " conversations were left out: their first message and its "
			     "answer have more than --max-model-len %" PRId64 " tokens", left_out,
			     o->max_model_len.v);
	free(which);
	conversations_release(&c);
	return left_out < 0 ? -1 : 0;
}

static const char *const options[] = { "conversations-output-len", "no-oversample", NULL };

const struct dataset dataset_conversations = {
	.name = "conversations", .options = options,
	.summary = "whole conversations, with the server's answers as history",
	.needs_path = true, .takes_all = true, .is_whole = true, .check = check, .build = build,
};
