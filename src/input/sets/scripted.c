/* SPDX-License-Identifier: Apache-2.0 */
/* scripted.c - the datasets of vLLM's scripts about prefix caching; see datasets.h. */
#include "input/sets/datasets.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/json/write.h"
#include "input/data/build.h"
#include "input/encode/ids.h"
#include "input/encode/model.h"
#include "input/token/tokenizer.h"

/* ---- documents ---- */

#define CUT_REACH 8 /* tokens around the wanted number that are tried as places to cut */

static void add_words(struct buf *out, int64_t words)
{
	for (int64_t i = 0; i < words; i++)
		buf_add_text(out, i ? " hi" : "hi");
}

/*
 * Shortens a text to the wanted number of tokens, including those that the tokenizer adds. Its
 * decoded beginning may be encoded differently, so nearby places are tried too.
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

static int documents_build(const struct dataset_opts *o, const struct dataset_env *env,
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

static int documents_check(const struct dataset_opts *o, const struct dataset_env *env,
			   struct err *e)
{
	(void)env;
	if (o->document_length < 0 || o->document_length > LENGTH_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "--document-length: expected 0 to %u, got %" PRId64,
			       LENGTH_TOKENS_MAX, o->document_length);
	return 0;
}

const struct dataset dataset_documents = {
	.name = "long_document_qa", .summary = "long documents that share nothing",
	.forbids_path = true, .needs_tokenizer = true,
	.build = documents_build, .check = documents_check,
};

/* ---- length range ---- */

struct scripted_source {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct workload *w;
	uint32_t *id;     /* that may be drawn, ascending */
	size_t n;
};

static int add(const struct scripted_source *s, struct str prompt, enum prompt_kind kind,
	       size_t tokens, struct err *e)
{
	struct sample *one = workload_add(s->w);

	one->prompt = prompt;
	one->kind = kind;
	one->prompt_len = (uint32_t)tokens;
	one->output_len = s->o->custom_output_len;
	dataset_progress(s->env, s->w->n, (size_t)s->env->num_prompts);
	return workload_keep(s->w, &one->prompt, e);
}

/* ---- random ids ---- */

static int find_ids(struct scripted_source *s, struct err *e)
{
	const struct tokenizer *t = s->env->tokenizer;
	const struct model *m = tokenizer_model(t);
	size_t limit = tokenizer_id_limit(t), declared;
	const uint32_t *special = tokenizer_special_ids(t, &declared);
	bool *is_special = mem_array(limit, sizeof(*is_special));

	for (size_t i = 0; i < declared; i++)
		if (special[i] < limit)
			is_special[special[i]] = true;
	s->id = mem_array(limit, sizeof(*s->id));
	for (uint32_t id = 0; id < limit; id++)
		if (!is_special[id] && (!m || m->vocab.entry[id].is_known))
			s->id[s->n++] = id;
	free(is_special);
	return s->n ? 0 : err_set(e, ERR_RUN, "the tokenizer %s has no tokens but special ones",
				  tokenizer_name(t));
}

static void draw(const struct scripted_source *s, struct compat_rng *rng, size_t n, struct ids *out)
{
	size_t *index = mem_array(n + 1, sizeof(*index));

	pyrandom_choices(&rng->py, s->n, index, n);
	for (size_t i = 0; i < n; i++)
		ids_push(out, s->id[index[i]]);
	free(index);
}

static int add_ids(const struct scripted_source *s, const struct ids *ids, struct err *e)
{
	struct buf text = { 0 };
	int rc;

	if (s->o->exact_tokens) {
		for (size_t i = 0; i < ids->count; i++)
			buf_printf(&text, "%s%" PRIu32, i ? ", " : "[", ids->id[i]);
		buf_add_text(&text, ids->count ? "]" : "[]");
	} else if (tokenizer_decode(s->env->tokenizer, ids->id, ids->count, false, &text) < 0) {
		buf_release(&text);
		return err_set(e, ERR_LIMIT, "the text of a prompt of %zu tokens is too long",
			       ids->count);
	}
	rc = add(s, buf_str(&text), s->o->exact_tokens ? PROMPT_JSON : PROMPT_TEXT, ids->count, e);
	buf_release(&text);
	return rc;
}

static int build_random(struct scripted_source *s, struct compat_rng *rng, struct err *e)
{
	const struct dataset_opts *o = s->o;
	struct ids ids = { 0 };
	int rc = find_ids(s, e);

	if (rc == 0)
		draw(s, rng, (size_t)o->range_prefix, &ids);
	for (int64_t i = 0; i < s->env->num_prompts && rc == 0; i++) {
		ids.count = (size_t)o->range_prefix;
		draw(s, rng, (size_t)pyrandom_int(&rng->py, o->range_min - o->range_prefix,
						  o->range_max - o->range_prefix), &ids);
		rc = dataset_go_on(s->env, e) < 0 ? -1 : add_ids(s, &ids, e);
	}
	ids_release(&ids);
	free(s->id);
	return rc;
}

/* ---- ShareGPT ---- */

static int has_turns(void *self, struct json_slice entry, struct err *e)
{
	struct json_slice turns, second;

	(void)self;
	(void)e;
	return json_member(entry, "conversations", &turns) && rows_item(turns, 1, &second);
}

/* The i-th row's first text when its length is in the range. */
static int take(const struct scripted_source *s, struct dataset_rows *rows, size_t i, struct err *e)
{
	const struct tokenizer *t = s->env->tokenizer;
	struct json_slice entry, turns, first;
	struct buf text = { 0 }, prompt = { 0 };
	struct ids ids = { 0 };
	int rc = rows_get(rows, i, &entry, e);

	if (rc == 0) {
		json_member(entry, "conversations", &turns);
		if (!rows_item(turns, 0, &first) || !rows_text(first, "value", &text))
			rc = rows_refuse(rows, i, e, "the first turn of the conversation has no text "
					 "\"value\"");
	}
	if (rc == 0 && tokenizer_encode(t, buf_str(&text), true, &ids) < 0)
		rc = tokenizer_refuse(t, buf_str(&text), e);
	if (rc == 0 && ids.count >= (size_t)s->o->range_min &&
	    ids.count <= (size_t)s->o->range_max) {
		rc = tokenizer_decode(t, ids.id, ids.count, false, &prompt);
		if (rc < 0)
			rows_refuse(rows, i, e, "the text of %zu tokens is too long", ids.count);
		else
			rc = add(s, buf_str(&prompt), PROMPT_TEXT, ids.count, e);
	}
	ids_release(&ids);
	buf_release(&prompt);
	buf_release(&text);
	return rc;
}

static int build_conversations(struct scripted_source *s, struct compat_rng *rng, struct err *e)
{
	static const char *const columns[] = { "conversations", NULL };
	const struct rows_opts opts = {
		.o = s->o, .env = s->env, .seed = s->env->seed, .columns = columns,
		.keep = has_turns,
	};
	struct dataset_rows rows = { 0 };
	int rc = rows_open(&rows, &s->o->path, 1, &opts, rng, e);

	for (size_t i = 0; rc == 0 && i < rows.n && s->w->n < (size_t)s->env->num_prompts; i++)
		rc = dataset_go_on(s->env, e) < 0 ? -1 : take(s, &rows, i, e);
	if (rc == 0 && s->w->n == 0)
		rc = err_set(e, ERR_RUN, "--input-length-range %" PRId64 ":%" PRId64 ": none of the %zu "
			     "conversations in %s begins with so many tokens", s->o->range_min,
			     s->o->range_max, rows.n, s->o->path);
	rows_release(&rows);
	return rc;
}

static int range_build(const struct dataset_opts *o, const struct dataset_env *env,
		       struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct scripted_source s = { .o = o, .env = env, .w = w };

	pyrandom_seed(&rng->py, (int64_t)env->seed);
	return o->path ? build_conversations(&s, rng, e) : build_random(&s, rng, e);
}

static int range_check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	(void)env;
	if (o->range_min < 0 || o->range_max < o->range_min || o->range_max > LENGTH_TOKENS_MAX)
		return err_set(e, ERR_USAGE, "--input-length-range %" PRId64 ":%" PRId64 ": expected MIN:MAX "
			       "in tokens, 0 <= MIN <= MAX <= %u", o->range_min, o->range_max,
			       LENGTH_TOKENS_MAX);
	if (o->range_prefix < 0)
		return err_set(e, ERR_USAGE, "--prefix-len: expected 0 or more tokens, got %" PRId64,
			       o->range_prefix);
	if (o->path && o->range_prefix > 0)
		return err_set(e, ERR_USAGE, "--prefix-len: prompts of --dataset-path share no prefix; "
			       "leave one of the two out");
	if (o->range_prefix > o->range_min)
		return err_set(e, ERR_USAGE, "--prefix-len %" PRId64 " is more than the shortest prompt of "
			       "--input-length-range %" PRId64 ":%" PRId64 "; lower the one or raise the "
			       "other", o->range_prefix, o->range_min, o->range_max);
	return 0;
}

const struct dataset dataset_length_range = {
	.name = "prefix_caching", .summary = "prompts in a range of lengths that share a prefix",
	.needs_tokenizer = true, .build = range_build, .check = range_check,
};
