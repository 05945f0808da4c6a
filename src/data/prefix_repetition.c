/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix_repetition.c - a few random prefixes, each followed by many random suffixes; datasets
 * spec 3.9.
 *
 * All draws are from NumPy's generator, block after block (a prefix, or a suffix): its ids,
 * then those its text is short of. So that blocks can be fitted in parallel, many of them are
 * drawn ahead as if none were short. The first one that is short is done alone, and what was
 * drawn behind it is drawn again from where it leaves the generator. Short ones are rare.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "data/random_gen.h"
#include "token/tokenizer.h"

#define AHEAD_MIN 4
#define AHEAD_MAX 512

struct block {
	bool is_prefix;
	struct fitting fit;
	enum fitting_state state;
	struct legacy after;      /* the generator behind its ids */
	const struct ids *prefix; /* a suffix: what it follows */
	struct ids ids;           /* both, one after the other */
	struct buf text;
};

struct build {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct legacy *rng;
	struct workload *w;
	int64_t vocab;
	int64_t next, blocks;     /* number of the next block, and of all */
	struct ids prefix;        /* the last one before the blocks below */
	int64_t mismatch;
	struct block block[AHEAD_MAX];
	size_t n;
};

/* Blocks of one prefix are it and its suffixes; the first prefixes have one more each. */
static bool begins_group(const struct build *b, int64_t block)
{
	int64_t prefixes = b->o->prefix_repetition_num_prefixes;
	int64_t size = 1 + b->env->num_prompts / prefixes, larger = b->env->num_prompts % prefixes;

	return block < larger * (size + 1) ? block % (size + 1) == 0 :
					     (block - larger * (size + 1)) % size == 0;
}

static void draw_ids(struct build *b, struct fitting *f)
{
	while (f->ids.count < f->target)
		ids_push(&f->ids, (uint32_t)legacy_randint(b->rng, 0, b->vocab));
}

static void draw_ahead(struct build *b, size_t n)
{
	for (b->n = 0; b->n < n && b->next + (int64_t)b->n < b->blocks; b->n++) {
		struct block *block = &b->block[b->n];

		block->is_prefix = begins_group(b, b->next + (int64_t)b->n);
		fitting_begin(&block->fit, (size_t)(block->is_prefix ?
						    b->o->prefix_repetition_prefix_len :
						    b->o->prefix_repetition_suffix_len));
		ids_reset(&block->fit.ids);
		draw_ids(b, &block->fit);
		block->after = *b->rng;
	}
}

static bool fit_one(void *self, size_t i, unsigned worker)
{
	struct build *b = self;

	(void)worker;
	if (dataset_go_on(b->env, NULL) < 0)
		return false;
	b->block[i].state = fitting_run(b->env->tokenizer, &b->block[i].fit);
	return b->block[i].state != FITTING_FAILED;
}

/* Keeps the blocks up to the first short one, which is finished; -1. */
static int settle(struct build *b, struct err *e)
{
	size_t kept = 0;

	while (kept < b->n && b->block[kept].state == FITTING_DONE)
		kept++;
	if (kept < b->n) {
		struct block *block = &b->block[kept++];

		*b->rng = block->after;
		while (block->state == FITTING_SHORT) {
			draw_ids(b, &block->fit);
			block->state = fitting_run(b->env->tokenizer, &block->fit);
		}
		if (block->state == FITTING_FAILED)
			return fitting_refuse(b->env->tokenizer, &block->fit, e);
	}
	b->n = kept;
	return 0;
}

static bool decode_one(void *self, size_t i, unsigned worker)
{
	struct build *b = self;
	struct block *block = &b->block[i];

	(void)worker;
	if (block->is_prefix)
		return true;
	ids_reset(&block->ids);
	ids_add(&block->ids, block->prefix->id, block->prefix->count);
	ids_add(&block->ids, block->fit.ids.id, block->fit.ids.count);
	buf_reset(&block->text);
	return tokenizer_decode(b->env->tokenizer, block->ids.id, block->ids.count, false,
				&block->text) == 0;
}

static int add_all(struct build *b, struct err *e)
{
	const struct ids *prefix = &b->prefix;

	for (size_t i = 0; i < b->n; i++) {
		struct block *block = &b->block[i];

		b->mismatch += (int64_t)block->fit.ids.count - (int64_t)block->fit.target;
		if (block->is_prefix)
			prefix = &block->fit.ids;
		block->prefix = prefix;
	}
	if (parallel_for(b->env->threads, b->n, decode_one, b) < b->n)
		return err_set(e, ERR_LIMIT, "the text of a prefix with its suffix is too long");
	for (size_t i = 0; i < b->n; i++) {
		struct sample *s;

		if (b->block[i].is_prefix)
			continue;
		s = workload_add(b->w);
		s->prompt = buf_str(&b->block[i].text);
		s->prompt_len = (uint32_t)b->block[i].ids.count;
		s->output_len = b->o->prefix_repetition_output_len;
		if (workload_keep(b->w, &s->prompt, e) < 0)
			return -1;
		dataset_progress(b->env, b->w->n, (size_t)b->env->num_prompts);
	}
	if (prefix != &b->prefix) {
		ids_reset(&b->prefix);
		ids_add(&b->prefix, prefix->id, prefix->count);
	}
	return 0;
}

/* More at once as long as none is short; no more than RANDOM_LOT_TOKENS. */
static size_t ahead(size_t n, bool was_short, size_t block_tokens)
{
	size_t most = block_tokens ? RANDOM_LOT_TOKENS / block_tokens : AHEAD_MAX;

	most = most > AHEAD_MAX ? AHEAD_MAX : most;
	n = was_short ? n / 2 : n * 2;
	n = n > most ? most : n;
	return n < AHEAD_MIN ? AHEAD_MIN : n;
}

static int make_all(struct build *b, struct err *e)
{
	int64_t prefix_len = b->o->prefix_repetition_prefix_len;
	int64_t suffix_len = b->o->prefix_repetition_suffix_len;
	size_t tokens = (size_t)(prefix_len > suffix_len ? prefix_len : suffix_len), n = AHEAD_MIN;

	while (b->next < b->blocks) {
		size_t failed, drawn;

		draw_ahead(b, n);
		drawn = b->n;
		failed = parallel_for(b->env->threads, drawn, fit_one, b);
		if (dataset_go_on(b->env, e) < 0)
			return -1;
		if (failed < drawn)
			return fitting_refuse(b->env->tokenizer, &b->block[failed].fit, e);
		if (settle(b, e) < 0 || add_all(b, e) < 0)
			return -1;
		b->next += (int64_t)b->n;
		n = ahead(n, b->n < drawn, tokens);
	}
	return 0;
}

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	int64_t prefixes = o->prefix_repetition_num_prefixes;
	int64_t prefix = o->prefix_repetition_prefix_len, suffix = o->prefix_repetition_suffix_len;

	if (random_check_count(env, e) < 0)
		return -1;
	if (prefixes < 1)
		return err_set(e, ERR_USAGE, "--prefix-repetition-num-prefixes %" PRId64 ": at least 1 is "
			       "needed", prefixes);
	if (env->num_prompts < prefixes)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 " must be at least "
			       "--prefix-repetition-num-prefixes %" PRId64 ": each prefix needs a prompt",
			       env->num_prompts, prefixes);
	if (prefix < 0 || suffix < 0 || prefix > LENGTH_TOKENS_MAX || suffix > LENGTH_TOKENS_MAX)
		return err_set(e, ERR_LIMIT, "a prefix of %" PRId64 " and a suffix of %" PRId64 " tokens: "
			       "0 to %u each were expected", prefix, suffix, LENGTH_TOKENS_MAX);
	return 0;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct build *b;
	int rc;

	if (check(o, env, e) < 0)
		return -1;
	b = mem_alloc(sizeof(*b));
	b->o = o;
	b->env = env;
	b->rng = &rng->np;
	b->w = w;
	b->vocab = (int64_t)tokenizer_vocab_size(env->tokenizer);
	b->blocks = env->num_prompts + o->prefix_repetition_num_prefixes;
	compat_rng_seed(rng, (uint32_t)env->seed);
	rc = b->vocab > 0 ? make_all(b, e) :
	     err_set(e, ERR_RUN, "the tokenizer %s has no tokens to make random prompts of",
		     tokenizer_name(env->tokenizer));
	if (rc == 0 && !o->disable_shuffle)
		pyrandom_shuffle(&rng->py, w->v, w->n, sizeof(*w->v));
	if (rc == 0)
		random_note_mismatch(b->mismatch, w);
	for (size_t i = 0; i < AHEAD_MAX; i++) {
		fitting_release(&b->block[i].fit);
		ids_release(&b->block[i].ids);
		buf_release(&b->block[i].text);
	}
	ids_release(&b->prefix);
	free(b);
	return rc;
}

static const char *const options[] = {
	"prefix-repetition-prefix-len", "prefix-repetition-suffix-len",
	"prefix-repetition-num-prefixes", "prefix-repetition-output-len", "disable-shuffle", NULL,
};

const struct dataset dataset_prefix_repetition = {
	.options = options,
	.name = "prefix_repetition", .summary = "random prompts that share a few prefixes",
	.forbids_path = true, .needs_tokenizer = true, .is_rewritten_by_server = true,
	.build = build, .check = check,
};
