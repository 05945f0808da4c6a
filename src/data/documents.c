/* SPDX-License-Identifier: Apache-2.0 */
/* documents.c - see scripted.h. */
#include <inttypes.h>

#include "base/limits.h"
#include "base/mem.h"
#include "data/common.h"
#include "data/scripted.h"
#include "token/tokenizer.h"

#define CUT_REACH 8 /* tokens around the wanted number that are tried as places to cut */

static void add_words(struct buf *out, int64_t words)
{
	for (int64_t i = 0; i < words; i++)
		buf_add_text(out, i ? " hi" : "hi");
}

/*
 * Shortens a text to the wanted number of tokens, those that the tokenizer adds included. Its
 * beginning, decoded, may be encoded in another way, so places nearby are tried too.
 */
static int cut(const struct tokenizer *t, int64_t wanted, struct buf *text, struct err *e)
{
	const int64_t own = wanted - (int64_t)tokenizer_special_per_sequence(t);
	struct ids ids = { 0 };
	struct buf part = { 0 };
	bool is_found = false;

	if (tokenizer_encode(t, buf_str(text), false, &ids) < 0) {
		ids_release(&ids);
		return tokenizer_refuse(t, buf_str(text), e);
	}
	for (int64_t k = 0; k <= 2 * CUT_REACH && !is_found; k++) {
		int64_t n = own + (k % 2 ? k / 2 + 1 : -k / 2);

		buf_reset(&part);
		if (n < 1 || n > (int64_t)ids.count ||
		    tokenizer_decode(t, ids.id, (size_t)n, false, &part) < 0)
			continue;
		is_found = tokenizer_count(t, buf_str(&part), true) == (size_t)wanted;
	}
	ids_release(&ids);
	if (is_found) {
		buf_reset(text);
		buf_add_str(text, buf_str(&part));
	}
	buf_release(&part);
	return is_found ? 0 : err_set(e, ERR_RUN, "--exact-tokens: the tokenizer %s makes no document of "
				      "exactly %" PRId64 " tokens; try another --document-length",
				      tokenizer_name(t), wanted);
}

static int add_document(size_t i, const struct dataset_opts *o, const struct dataset_env *env,
			struct workload *w, struct err *e)
{
	struct buf text = { 0 };
	struct sample *s;
	size_t tokens;
	int rc = 0;

	buf_printf(&text, "%s%zu", o->document_head ? o->document_head : "", i);
	add_words(&text, o->document_length);
	if (o->exact_tokens)
		rc = cut(env->tokenizer, o->document_length, &text, e);
	tokens = rc == 0 ? tokenizer_count(env->tokenizer, buf_str(&text), true) : 0;
	if (tokens == SIZE_MAX)
		rc = tokenizer_refuse(env->tokenizer, buf_str(&text), e);
	if (rc == 0) {
		s = workload_add(w);
		s->prompt = buf_str(&text);
		s->prompt_len = (uint32_t)tokens;
		s->output_len = o->custom_output_len;
		rc = workload_keep(w, &s->prompt, e);
	}
	buf_release(&text);
	return rc;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	pyrandom_seed(&rng->py, (int64_t)env->seed);
	for (size_t i = 0; i < (size_t)env->num_prompts; i++) {
		if (dataset_go_on(env, e) < 0 || add_document(i, o, env, w, e) < 0)
			return -1;
		dataset_progress(env, w->n, (size_t)env->num_prompts);
	}
	return 0;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)env;
	if (o->document_length < 0 || o->document_length > LENGTH_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "--document-length: expected 0 to %u, got %" PRId64,
			       LENGTH_TOKENS_MAX, o->document_length);
	return 0;
}

const struct dataset dataset_documents = {
	.name = "long_document_qa", .summary = "long documents that share nothing",
	.forbids_path = true, .needs_tokenizer = true, .build = build, .check = check,
};
