/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - prompts of a chosen token length from consecutive vocabulary ids; datasets spec 3.1 to
 * 3.7, the same draws as upstream for the same seed.
 *
 * Not in upstream: ids in place of text (--prompt-token-ids), lengths from distributions. Lengths
 * are drawn as usual and then replaced by the latter, so that no other draws change.
 */
#include "input/sets/random.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "core/json/write.h"
#include "core/rng/rng.h"
#include "input/data/lengths.h"
#include "input/sets/multi_turn.h"
#include "input/token/tokenizer.h"

/*
 * --random-cache-hit-fraction and --random-cache-ratio: this fraction of the prompts begins with
 * common ids, over this ratio of each prompt's length; the others have nothing in common. Lengths
 * do not change. Datasets spec 11; private to data/.
 */
struct random_cache {
	bool *is_hit;      /* per request; NULL: nothing is shared */
	double ratio;
	struct buf ids;    /* the shared ids, as a JSON list is spelled inside */
	size_t *end;       /* of the first k + 1 of them, in ids */
};

/* ---- shared beginnings ---- */

/* Only whole prompts of ids can be shared exactly. ERR_RUN. */
static int random_cache_check(const struct dataset_opts *o, struct err *e)
{
	double fraction = o->random_cache_hit_fraction, ratio = o->random_cache_ratio;

	if (!(fraction > 0) && !(ratio > 0))
		return 0;
	if (!(fraction > 0) || !(ratio > 0))
		return err_set(e, ERR_USAGE, "--random-cache-hit-fraction and --random-cache-ratio "
			       "must be given together");
	if (!o->prompt_token_ids)
		return err_set(e, ERR_USAGE, "--random-cache-ratio needs --prompt-token-ids: only ids are "
			       "shared exactly");
	if (o->random_prefix_len > 0)
		return err_set(e, ERR_USAGE, "--random-cache-ratio cannot be combined with "
			       "--random-prefix-len, which all prompts share");
	return 0;
}

static size_t shared_tokens(const struct random_cache *c, size_t tokens)
{
	return (size_t)floor(c->ratio * (double)tokens);
}

static void choose_hits(struct random_cache *c, struct pcg64 *rng, double fraction, size_t n)
{
	size_t *order = mem_array(n, sizeof(*order)), hits = (size_t)round(fraction * (double)n);

	pcg64_permutation(rng, order, n);
	c->is_hit = mem_array(n, sizeof(*c->is_hit));
	for (size_t i = 0; i < hits; i++)
		c->is_hit[order[i]] = true;
	free(order);
}

/* round(fraction * n) of the n requests are hits, drawn with a separate generator. */
static void random_cache_init(struct random_cache *c, const struct random_gen *g,
			      const struct dataset_opts *o, const struct random_lengths *l)
{
	struct pcg64 rng = rng_fork(g->env->seed, "random-cache");
	int64_t longest = 0;
	size_t n;

	if (!(o->random_cache_ratio > 0))
		return;
	c->ratio = o->random_cache_ratio;
	choose_hits(c, &rng, o->random_cache_hit_fraction, l->n);
	for (size_t i = 0; i < l->n; i++)
		longest = l->input[i] > longest ? l->input[i] : longest;
	n = shared_tokens(c, (size_t)longest);
	c->end = mem_array(n, sizeof(*c->end));
	c->ids.limit = SIZE_MAX;
	for (size_t i = 0; i < n; i++) {
		size_t at = (size_t)pcg64_bounded(&rng, 0, (int64_t)g->n_allowed - 1);

		buf_printf(&c->ids, "%s%u", i ? ", " : "", g->allowed[at]);
		c->end[i] = c->ids.len;
	}
}

/* The list after its first n ids, with the closing bracket. */
static struct str behind(struct str list, size_t n)
{
	while (n-- && list.n) {
		const char *comma = memchr(list.p, ',', list.n);

		if (!comma)
			return STR("]");
		list.n -= (size_t)(comma + 1 - list.p);
		list.p = comma + 1;
	}
	return list;
}

/* The prompt, with the common beginning if it is a hit; scratch then holds it. */
static struct str random_cache_apply(const struct random_cache *c, const struct random_prompt *p,
				     struct buf *scratch)
{
	size_t n = c->is_hit && c->is_hit[p->index] ? shared_tokens(c, p->tokens) : 0;
	struct str rest;

	if (n == 0)
		return p->text;
	rest = behind(p->text, n);
	buf_reset(scratch);
	buf_add_char(scratch, '[');
	buf_add(scratch, c->ids.data, c->end[n - 1]);
	if (rest.n > 1)
		buf_add_char(scratch, ',');
	buf_add_str(scratch, rest);
	return buf_str(scratch);
}

static void random_cache_release(struct random_cache *c)
{
	free(c->is_hit);
	free(c->end);
	buf_release(&c->ids);
	*c = (struct random_cache){ 0 };
}

/* ---- random ---- */

static int random_check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
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

struct random_build {
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

static int end_batch(struct random_build *b, struct err *e)
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
	struct random_build *b = self;
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

static int random_fill(struct random_gen *g, const struct dataset_opts *o, struct workload *w,
		       struct err *e)
{
	const struct dataset_env *env = g->env;
	int64_t special = random_special(g);
	struct random_lengths lengths = { 0 };
	struct random_cache cache = { 0 };
	struct ids prefix = { 0 };
	struct random_build b = {
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

static int random_build(const struct dataset_opts *o, const struct dataset_env *env,
			struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct random_gen g;
	int rc;

	(void)rng; /* upstream's generator is private too */
	if (o->multi_turn)
		return random_check(o, env, e) < 0 ? -1 : multi_turn_random(o, env, w, e);
	if (random_check(o, env, e) < 0 || random_gen_open(&g, env, RANDOM_IDS_UNDECLARED, e) < 0)
		return -1;
	g.is_ids = o->prompt_token_ids;
	g.is_sole = true;
	rc = check_least(o, random_special(&g), e) < 0 ? -1 : random_fill(&g, o, w, e);
	random_gen_release(&g);
	return rc;
}

static const char *const random_options[] = {
	"random-input-len", "random-output-len", "random-range-ratio", "random-prefix-len",
	"random-batch-size", "prompt-token-ids", "random-input-len-dist", "random-output-len-dist",
	"random-cache-hit-fraction", "random-cache-ratio", "input-len",
	"multi-turn", "multi-turn-num-turns", "multi-turn-min-turns", "multi-turn-max-turns",
	"multi-turn-concurrency", "multi-turn-delay-ms", "multi-turn-delay-dist",
	"multi-turn-turns-dist", "multi-turn-system-len", "multi-turn-session-prefix-len",
	 "per-turn-input-len",
	"multi-turn-prefix-global-ratio", "multi-turn-prefix-conversation-ratio", NULL,
};

const struct dataset dataset_random = {
	.options = random_options,
	.name = "random", .summary = "random tokens of a chosen length",
	.forbids_path = true, .needs_tokenizer = true, .is_rewritten_by_server = true,
	.ignores_eos = true,
	.build = random_build, .check = random_check,
};

/* ---- random-rerank ---- */

/*
 * Random-rerank: one random query and random documents, in lists of a query and
 * some documents each; datasets spec 3.8.
 *
 * A list for a reranker is scored pair by pair, so its query counts once for each document,
 * with a separator; --no-reranker sends the list to an embedder, where it is one of the texts.
 */

struct rerank_build {
	const struct dataset_env *env;
	struct workload *w;
	bool is_reranker;
	size_t documents;  /* per list */
	size_t all;        /* documents in all */
	struct buf query;  /* quoted */
	size_t query_tokens;
	struct buf list;   /* the one that is being filled */
	size_t in_list, tokens;
};

static int take_query(void *self, const struct random_prompt *p, struct err *e)
{
	struct rerank_build *b = self;

	(void)e;
	json_quote(&b->query, p->text, false);
	b->query_tokens = p->tokens;
	return 0;
}

static int end_list(struct rerank_build *b, struct err *e)
{
	size_t tokens = b->tokens + (b->is_reranker ? (b->query_tokens + 1) * b->in_list :
						      b->query_tokens);
	struct sample *s;

	buf_add_char(&b->list, ']');
	if (b->list.is_over || tokens > UINT32_MAX)
		return err_set(e, ERR_USAGE, "--random-batch-size: the texts of one request have "
			       "more than %llu bytes", BUF_BYTES_MAX);
	s = workload_add(b->w);
	s->prompt = buf_str(&b->list);
	s->kind = PROMPT_JSON;
	s->prompt_len = (uint32_t)tokens;
	s->sequences = (uint32_t)(b->in_list + !b->is_reranker);
	s->request_id = dataset_request_id(b->w, b->env, b->w->n - 1);
	if (workload_keep(b->w, &s->prompt, e) < 0)
		return -1;
	buf_reset(&b->list);
	b->in_list = b->tokens = 0;
	return 0;
}

static int take_document(void *self, const struct random_prompt *p, struct err *e)
{
	struct rerank_build *b = self;

	if (b->in_list++ == 0) {
		buf_add_char(&b->list, '[');
		buf_add_str(&b->list, buf_str(&b->query));
	}
	buf_add_text(&b->list, ", ");
	json_quote(&b->list, p->text, false);
	b->tokens += p->tokens;
	return b->in_list == b->documents || p->index + 1 == b->all ? end_list(b, e) : 0;
}

static int rerank_fill(struct random_gen *g, const struct dataset_opts *o,
		       struct rerank_build *b, struct err *e)
{
	const struct ids no_prefix = { 0 };
	struct random_lengths query = { 0 }, documents = { 0 };
	int64_t length = o->random_input_len, asked = b->is_reranker ? length / 2 - 1 : length;
	int rc = -1;

	if (random_lengths_draw(g, o, asked, 0, 1, &query, e) < 0 ||
	    random_prompts(g, &no_prefix, &query, 0, take_query, b, e) < 0)
		goto done;
	if (b->is_reranker)
		length -= query.input[0] + 1;
	if (random_lengths_draw(g, o, length, 0, b->all, &documents, e) == 0)
		rc = random_prompts(g, &no_prefix, &documents, 1, take_document, b, e);
done:
	random_lengths_release(&query);
	random_lengths_release(&documents);
	return rc;
}

static int rerank_check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
{
	if (random_check_count(env, e) < 0)
		return -1;
	if (o->random_batch_size < 1)
		return err_set(e, ERR_USAGE, "--random-batch-size %" PRId64 ": at least 1 is needed",
			       o->random_batch_size);
	if (o->no_reranker && env->num_prompts < 2)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 ": with --no-reranker the query is "
			       "one of them, so at least 2 are needed", env->num_prompts);
	if (o->no_reranker && o->random_batch_size < 2)
		return err_set(e, ERR_USAGE, "--random-batch-size %" PRId64 ": with --no-reranker the "
			       "query is one of the texts of a request, so at least 2 are needed",
			       o->random_batch_size);
	return 0;
}

static int rerank_build(const struct dataset_opts *o, const struct dataset_env *env,
			struct compat_rng *rng, struct workload *w, struct err *e)
{
	size_t query_counts = o->no_reranker;
	struct rerank_build b = {
		.env = env, .w = w, .is_reranker = !o->no_reranker,
		.documents = (size_t)o->random_batch_size - query_counts,
		.all = (size_t)env->num_prompts - query_counts,
	};
	struct random_gen g;
	int rc;

	(void)rng; /* upstream's generator is private too */
	if (rerank_check(o, env, e) < 0 || random_gen_open(&g, env, RANDOM_IDS_UNDECLARED, e) < 0)
		return -1;
	g.is_sole = true;
	rc = rerank_fill(&g, o, &b, e);
	if (rc == 0)
		random_note_mismatch(g.mismatch, w);
	random_gen_release(&g);
	buf_release(&b.query);
	buf_release(&b.list);
	return rc;
}

static const char *const rerank_options[] = {
	"random-input-len", "random-range-ratio", "random-batch-size", "no-reranker", "input-len",
	NULL,
};

const struct dataset dataset_random_rerank = {
	.options = rerank_options,
	.name = "random-rerank", .summary = "a random query with random documents, for reranking",
	.forbids_path = true, .needs_tokenizer = true, .build = rerank_build, .check = rerank_check,
};

/* ---- prefix_repetition ---- */

/*
 * A few random prefixes, each followed by many random suffixes; datasets spec 3.9.
 *
 * All draws are from NumPy's generator, block after block (a prefix, or a suffix): its ids, then
 * those by which its text is too short. To fit blocks in parallel, many are drawn ahead as if none
 * were short. The first short one is finished alone, and what was drawn after it is drawn again
 * from the resulting state of the generator. Short ones are rare.
 */

#define AHEAD_MIN 4
#define AHEAD_MAX 512

struct random_block {
	bool is_prefix;
	struct fitting fit;
	enum fitting_state state;
	struct legacy after;      /* the generator's state after its ids */
	const struct ids *prefix; /* a suffix: what it follows */
	struct ids ids;           /* both, one after the other */
	struct buf text;
};

struct prefix_build {
	const struct dataset_opts *o;
	const struct dataset_env *env;
	struct legacy *rng;
	struct workload *w;
	int64_t vocab;
	int64_t next, blocks;     /* number of the next block, and of all */
	struct ids prefix;        /* the last one before the blocks below */
	int64_t mismatch;
	struct random_block block[AHEAD_MAX];
	size_t n;
};

/* A group is a prefix and its suffixes; the first prefixes have one more suffix each. */
static bool begins_group(const struct prefix_build *b, int64_t block)
{
	int64_t prefixes = b->o->prefix_repetition_num_prefixes;
	int64_t size = 1 + b->env->num_prompts / prefixes, larger = b->env->num_prompts % prefixes;

	return block < larger * (size + 1) ? block % (size + 1) == 0 :
					     (block - larger * (size + 1)) % size == 0;
}

static void draw_ids(struct prefix_build *b, struct fitting *f)
{
	while (f->ids.count < f->target)
		ids_push(&f->ids, (uint32_t)legacy_randint(b->rng, 0, b->vocab));
}

static void draw_ahead(struct prefix_build *b, size_t n)
{
	for (b->n = 0; b->n < n && b->next + (int64_t)b->n < b->blocks; b->n++) {
		struct random_block *block = &b->block[b->n];

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
	struct prefix_build *b = self;

	(void)worker;
	if (dataset_go_on(b->env, NULL) < 0)
		return false;
	b->block[i].state = fitting_run(b->env->tokenizer, &b->block[i].fit);
	return b->block[i].state != FITTING_FAILED;
}

/* Keeps the blocks up to the first short one, which is finished; -1. */
static int settle(struct prefix_build *b, struct err *e)
{
	size_t kept = 0;

	while (kept < b->n && b->block[kept].state == FITTING_DONE)
		kept++;
	if (kept < b->n) {
		struct random_block *block = &b->block[kept++];

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
	struct prefix_build *b = self;
	struct random_block *block = &b->block[i];

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

static int add_all(struct prefix_build *b, struct err *e)
{
	const struct ids *prefix = &b->prefix;

	for (size_t i = 0; i < b->n; i++) {
		struct random_block *block = &b->block[i];

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

/* How many to draw ahead: more as long as none is short, within RANDOM_LOT_TOKENS. */
static size_t ahead(size_t n, bool was_short, size_t block_tokens)
{
	size_t most = block_tokens ? RANDOM_LOT_TOKENS / block_tokens : AHEAD_MAX;

	most = most > AHEAD_MAX ? AHEAD_MAX : most;
	n = was_short ? n / 2 : n * 2;
	n = n > most ? most : n;
	return n < AHEAD_MIN ? AHEAD_MIN : n;
}

static int make_all(struct prefix_build *b, struct err *e)
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

static int prefix_check(const struct dataset_opts *o, const struct dataset_env *env, struct err *e)
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
			       "expected 0 to %u each", prefix, suffix, LENGTH_TOKENS_MAX);
	return 0;
}

static int prefix_build(const struct dataset_opts *o, const struct dataset_env *env,
			struct compat_rng *rng, struct workload *w, struct err *e)
{
	struct prefix_build *b;
	int rc;

	if (prefix_check(o, env, e) < 0)
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

static const char *const prefix_options[] = {
	"prefix-repetition-prefix-len", "prefix-repetition-suffix-len",
	"prefix-repetition-num-prefixes", "prefix-repetition-output-len", "disable-shuffle", NULL,
};

const struct dataset dataset_prefix_repetition = {
	.options = prefix_options,
	.name = "prefix_repetition", .summary = "random prompts that share a few prefixes",
	.forbids_path = true, .needs_tokenizer = true, .is_rewritten_by_server = true,
	.build = prefix_build, .check = prefix_check,
};
