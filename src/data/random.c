/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - prompts of a chosen token length from consecutive vocabulary ids; datasets spec
 * 3.1 to 3.7, the same draws as upstream for the same seed.
 *
 * Ours: ids in place of text (--prompt-token-ids), lengths from distributions. The latter
 * replace lengths that are drawn all the same, so that nothing else moves.
 */
#include <inttypes.h>
#include <math.h>

#include "base/limits.h"
#include "data/lengths.h"
#include "data/multi_turn.h"
#include "data/random_cache.h"
#include "data/random_gen.h"
#include "json/write.h"
#include "rng/fork.h"
#include "token/tokenizer.h"

static int check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	if (o->prompt_token_ids && env->is_chat_backend)
		return err_set(e, ERR_USAGE, "--prompt-token-ids: chat messages are text; a completions "
			       "backend (openai) takes token ids");
	if (random_cache_check(o, e) < 0 ||
	    (o->multi_turn && multi_turn_check("random", o, env, e) < 0))
		return -1;
	return random_check_count(env, e);
}

static int check_least(const struct dataset_opts *o, int64_t special, struct err *e)
{
	int64_t real = o->random_input_len > special ? o->random_input_len - special : 0;
	int64_t least = o->random_prefix_len + (int64_t)floor((double)real *
							       (1.0 - o->input_range_ratio));

	if (least >= 1 || o->random_input_len_dist)
		return 0;
	return err_set(e, ERR_USAGE, "--random-input-len %" PRId64 " is too small: with %" PRId64
		       " special tokens and a range ratio of %g a prompt could have %" PRId64
		       " tokens; at least 1 is needed", o->random_input_len, special,
		       o->input_range_ratio, least);
}

/* Input lengths count the special tokens that a server adds, as --random-input-len does. */
static int draw_from(const char *option, const char *written, const struct dataset_env *env,
		     int64_t special, int64_t least, int64_t *out, struct err *e)
{
	struct lengths dist;
	struct pcg64 rng = rng_fork(env->seed, option);

	if (!written)
		return 0;
	if (lengths_parse(option, written, &dist, e) < 0)
		return -1;
	for (int64_t i = 0; i < env->num_prompts; i++) {
		out[i] = lengths_draw(&dist, &rng) - special;
		out[i] = out[i] < least ? least : out[i];
	}
	lengths_release(&dist);
	return 0;
}

/* ---- requests ---- */

struct build {
	const struct dataset_env *env;
	const struct random_lengths *lengths;
	struct workload *w;
	size_t batch;          /* texts per request; 1: a request is one text */
	bool is_ids;
	const struct random_cache *cache;
	struct buf shared;     /* a prompt whose beginning is shared */
	struct buf texts;      /* the batch that is being filled */
	size_t in_batch, tokens;
};

static int end_batch(struct build *b, struct err *e)
{
	struct sample *s;

	if (!b->in_batch)
		return 0;
	buf_add_char(&b->texts, ']');
	if (b->texts.is_over || b->tokens > UINT32_MAX)
		return err_set(e, ERR_USAGE, "--random-batch-size %zu: the texts of one request "
			       "have more than %llu bytes", b->batch, BUF_BYTES_MAX);
	s = workload_add(b->w);
	s->prompt = buf_str(&b->texts);
	s->kind = PROMPT_JSON;
	s->prompt_len = (uint32_t)b->tokens;
	s->sequences = (uint32_t)b->in_batch;
	s->request_id = dataset_request_id(b->w, b->env, b->w->n - 1);
	if (workload_keep(b->w, &s->prompt, e) < 0)
		return -1;
	buf_reset(&b->texts);
	b->in_batch = b->tokens = 0;
	return 0;
}

static int add(void *self, const struct random_prompt *p, struct err *e)
{
	struct build *b = self;
	struct str text = random_cache_apply(b->cache, p, &b->shared);
	struct sample *s;

	if (b->batch > 1) {
		buf_add_text(&b->texts, b->in_batch++ ? ", " : "[");
		if (b->is_ids)
			buf_add_str(&b->texts, text);
		else
			json_quote(&b->texts, p->text, false);
		b->tokens += p->tokens;
		if (b->in_batch == b->batch || p->index + 1 == b->lengths->n)
			return end_batch(b, e);
		return 0;
	}
	s = workload_add(b->w);
	s->prompt = text;
	s->kind = b->is_ids ? PROMPT_JSON : PROMPT_TEXT;
	s->prompt_len = (uint32_t)p->tokens;
	s->output_len = b->lengths->output[p->index];
	s->request_id = dataset_request_id(b->w, b->env, p->index);
	return workload_keep(b->w, &s->prompt, e);
}

static int fill(struct random_gen *g, const struct dataset_opts *o, struct workload *w,
		struct err *e)
{
	const struct dataset_env *env = g->env;
	int64_t special = random_special(g);
	struct random_lengths lengths = { 0 };
	struct random_cache cache = { 0 };
	struct ids prefix = { 0 };
	struct build b = {
		.env = env, .lengths = &lengths, .w = w, .is_ids = g->is_ids, .cache = &cache,
		.batch = o->random_batch_size > 1 ? (size_t)o->random_batch_size : 1,
	};
	int rc = -1;

	if (random_lengths_draw(g, o, o->random_input_len, o->random_output_len,
				(size_t)env->num_prompts, &lengths, e) == 0 &&
	    draw_from("--random-input-len-dist", o->random_input_len_dist, env, special,
		      o->random_prefix_len < 1, lengths.input, e) == 0 &&
	    draw_from("--random-output-len-dist", o->random_output_len_dist, env, 0, 1,
		      lengths.output, e) == 0 &&
	    random_prefix_draw(g, o->random_prefix_len, &prefix, e) == 0) {
		random_cache_init(&cache, g, o, &lengths);
		rc = random_prompts(g, &prefix, &lengths, 0, add, &b, e);
	}
	if (rc == 0)
		random_note_mismatch(g->mismatch, w);
	buf_release(&b.texts);
	buf_release(&b.shared);
	random_cache_release(&cache);
	ids_release(&prefix);
	random_lengths_release(&lengths);
	return rc;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env,
		 struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct random_gen g;
	int rc;

	(void)rng; /* upstream's generator is private too */
	if (o->multi_turn)
		return check(o, env, e) < 0 ? -1 : multi_turn_random(o, env, w, e);
	if (check(o, env, e) < 0 || random_gen_open(&g, env, RANDOM_IDS_UNDECLARED, e) < 0)
		return -1;
	g.is_ids = o->prompt_token_ids;
	g.is_sole = true;
	rc = check_least(o, random_special(&g), e) < 0 ? -1 : fill(&g, o, w, e);
	random_gen_release(&g);
	return rc;
}

static const char *const options[] = {
	"random-input-len", "random-output-len", "random-range-ratio", "random-prefix-len",
	"random-batch-size", "prompt-token-ids", "random-input-len-dist", "random-output-len-dist",
	"random-cache-hit-fraction", "random-cache-ratio", "input-len",
	"multi-turn", "multi-turn-num-turns", "multi-turn-min-turns", "multi-turn-max-turns",
	"multi-turn-concurrency", "multi-turn-delay-ms", "per-turn-input-len",
	"multi-turn-prefix-global-ratio", "multi-turn-prefix-conversation-ratio", NULL,
};

const struct dataset dataset_random = {
	.options = options,
	.name = "random", .summary = "random tokens of a chosen length",
	.forbids_path = true, .needs_tokenizer = true, .is_rewritten_by_server = true,
	.ignores_eos = true,
	.build = build, .check = check,
};
