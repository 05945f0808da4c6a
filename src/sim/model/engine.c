/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - see engine.h. */
#include "sim/model/engine.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/mem.h"

static double linear_us(const struct engine_cost *c, const struct engine_load *l)
{
	double us = 0;

	if (l->decoding)
		us += c->decode_base_us + c->decode_us_per_seq * l->decoding;
	if (l->prefill_tokens)
		us += c->prefill_base_us + c->prefill_us_per_token * l->prefill_tokens;
	return us;
}

static double matrices_s(const struct roofline *r, const struct engine_load *l)
{
	double tokens = (double)l->decode_tokens + l->prefill_tokens;
	double touched = 1 - pow(1 - r->expert_share, tokens);
	double weights = r->dense_s + r->experts_s * touched;
	double arithmetic = r->token_s * tokens + r->sample_s * l->sampled;

	return fmax(weights, arithmetic) + ROOFLINE_OVERLAP * fmin(weights, arithmetic);
}

static double roofline_us(const struct roofline *r, const struct engine_load *l)
{
	double tokens = (double)l->decode_tokens + l->prefill_tokens;
	double gpu = matrices_s(r, l) + r->context_s * l->context_tokens + r->pair_s * l->pairs +
		     r->reduce_step_s + r->reduce_token_s * tokens + r->step_s;
	double cpu = r->cpu_step_s + r->cpu_seq_s * ((double)l->decoding + l->prefill_seqs);

	if (l->decoding)
		gpu += r->draft_s;
	gpu = fmax(gpu, r->launch_s);
	return 1e6 * (r->is_cpu_hidden ? fmax(gpu, cpu) : gpu + cpu);
}

double engine_cost_us(const struct engine_cost *c, const struct engine_load *l)
{
	if (l->decode_tokens == 0 && l->prefill_tokens == 0)
		return 0;
	return c->roof.dense_s > 0 ? roofline_us(&c->roof, l) : linear_us(c, l);
}

void engine_init(struct sim_engine *g, struct engine_cost cost, size_t max_num_seqs,
		 uint32_t max_num_batched_tokens)
{
	assert(max_num_seqs >= 1 && max_num_batched_tokens >= 1);
	*g = (struct sim_engine){ .cost = cost, .max_num_seqs = max_num_seqs,
			      .max_num_batched_tokens = max_num_batched_tokens,
			      .running = mem_array(max_num_seqs, sizeof(*g->running)) };
}

void engine_release(struct sim_engine *g)
{
	free(g->running);
	*g = (struct sim_engine){ 0 };
}

/* Whether a is scheduled after b when scheduling is by priority. */
static bool is_after(const struct engine_seq *a, const struct engine_seq *b)
{
	return a->priority != b->priority ? a->priority > b->priority : a->arrival > b->arrival;
}

/* Inserts after prev; NULL: at the front. */
static void waiting_link(struct sim_engine *g, struct engine_seq *s, struct engine_seq *prev)
{
	s->prev = prev;
	s->next = prev ? prev->next : g->first;
	if (s->next)
		s->next->prev = s;
	else
		g->last = s;
	if (prev)
		prev->next = s;
	else
		g->first = s;
	g->waiting_count++;
}

/* The queue's last element before s; preempted ones go first unless priorities decide. */
static struct engine_seq *waiting_before(const struct sim_engine *g, const struct engine_seq *s,
					 bool is_preempted)
{
	struct engine_seq *prev = g->last;

	if (!g->is_by_priority)
		return is_preempted ? NULL : prev;
	while (prev && is_after(prev, s))
		prev = prev->prev;
	return prev;
}

void engine_add(struct sim_engine *g, struct engine_seq *s)
{
	assert(s->prompt_left >= 1);
	s->has_token = s->is_running = false;
	s->arrival = g->arrivals++;
	waiting_link(g, s, waiting_before(g, s, false));
}

static void waiting_unlink(struct sim_engine *g, struct engine_seq *s)
{
	if (s->prev)
		s->prev->next = s->next;
	else
		g->first = s->next;
	if (s->next)
		s->next->prev = s->prev;
	else
		g->last = s->prev;
	s->prev = s->next = NULL;
	g->waiting_count--;
}

/* ---- who runs ---- */

/* The place of the sequence's adapter in the batch, or a free one; loras_max: neither. */
static uint32_t lora_place(const struct sim_engine *g, const struct engine_seq *s)
{
	uint32_t at = g->loras_max;

	for (uint32_t i = 0; i < g->loras_max; i++) {
		if (g->lora_running[i] && g->lora[i] == s->lora)
			return i;
		if (!g->lora_running[i] && at == g->loras_max)
			at = i;
	}
	return at;
}

static bool is_lora_fit(const struct sim_engine *g, const struct engine_seq *s)
{
	return !s->lora || !g->loras_max || lora_place(g, s) < g->loras_max;
}

static void running_enter(struct sim_engine *g, struct engine_seq *s)
{
	s->slot = g->running_end++;
	s->is_running = true;
	g->running[s->slot] = s;
	g->running_count++;
	if (s->lora && g->loras_max) {
		uint32_t at = lora_place(g, s);

		g->lora[at] = s->lora;
		g->lora_running[at]++;
	}
}

static void running_leave(struct sim_engine *g, struct engine_seq *s)
{
	assert(g->running[s->slot] == s);
	g->running[s->slot] = NULL;
	g->running_count--;
	if (s->lora && g->loras_max)
		g->lora_running[lora_place(g, s)]--;
	if (g->prefix && s->hold)
		prefix_unpin(g->prefix, s->hold);
	s->is_running = s->has_token = false;
}

void engine_remove(struct sim_engine *g, struct engine_seq *s)
{
	if (s->is_running) {
		running_leave(g, s);
	} else if (s->prev || s->next || g->first == s) {
		waiting_unlink(g, s);
	}
	s->has_token = false;
}

/* Closes the gaps of removed sequences, keeping the order. */
static void running_pack(struct sim_engine *g)
{
	size_t kept = 0;

	for (size_t i = 0; i < g->running_end; i++) {
		if (!g->running[i])
			continue;
		g->running[kept] = g->running[i];
		g->running[kept]->slot = kept;
		kept++;
	}
	g->running_end = kept;
	assert(kept == g->running_count);
}

struct engine_step {
	uint32_t budget;
	uint64_t held;      /* tokens of blocks that one sequence has for itself */
	bool is_short;      /* a sequence was preempted */
	struct engine_load load;
};

/* Tokens rounded up to whole KV blocks. */
static uint64_t blocks_of(const struct sim_engine *g, uint64_t tokens)
{
	uint64_t block = g->kv_block ? g->kv_block : 1;

	return (tokens + block - 1) / block * block;
}

/* Tokens of the blocks that only s uses when it has `tokens` tokens. */
static uint64_t own_blocks(const struct sim_engine *g, const struct engine_seq *s, uint64_t tokens)
{
	uint64_t shared = s->hold && s->hold->is_held ? s->hold->n * PREFIX_BLOCK_TOKENS : 0;

	return tokens > shared ? blocks_of(g, tokens) - shared : 0;
}

static uint64_t all_held(const struct sim_engine *g, const struct engine_step *p)
{
	return p->held + (g->prefix ? g->prefix->held * PREFIX_BLOCK_TOKENS : 0);
}

/* Tokens that a sequence takes from the remaining budget. */
static uint32_t step_share(const struct sim_engine *g, const struct engine_step *p,
			   const struct engine_seq *s)
{
	uint32_t n = s->prompt_left ? s->prompt_left : 1 + g->drafted;

	if (s->prompt_left && g->is_prompt_whole) /* one that never fits would wait for ever */
		return n <= p->budget || n > g->max_num_batched_tokens ? n : 0;
	if (s->prompt_left && g->chunk_max && n > g->chunk_max)
		n = g->chunk_max;
	return n < p->budget ? n : p->budget;
}

/* How much a share adds to the KV cache: of drafted tokens only the accepted ones. */
static uint32_t step_growth(const struct engine_seq *s, uint32_t share)
{
	uint32_t yield = s->yield ? s->yield : 1;

	return s->prompt_left || share < yield ? share : yield;
}

/* Gives a running sequence its share of the step. */
static void step_take(const struct sim_engine *g, struct engine_step *p, struct engine_seq *s)
{
	uint32_t n = step_share(g, p, s), grown = step_growth(s, n);

	s->has_token = false;
	s->share = n;
	s->grown = grown;
	s->is_prefill = s->prompt_left > 0;
	if (n == 0)
		return;
	p->budget -= n < p->budget ? n : p->budget;
	p->load.context_tokens += s->context;
	p->held -= own_blocks(g, s, s->context);
	if (s->prompt_left == 0) {
		p->load.decoding++;
		p->load.decode_tokens += n;
		s->has_token = true;
	} else {
		p->load.prefill_seqs++;
		p->load.prefill_tokens += n;
		p->load.pairs += n * (s->context + 0.5 * n);
		s->prompt_left -= n;
		s->has_token = s->prompt_left == 0;
	}
	p->load.sampled += s->has_token;
	s->context += grown;
	p->held += own_blocks(g, s, s->context);
}

/* Returns a sequence's share of this step, if it already has one. */
static void step_return(const struct sim_engine *g, struct engine_step *p, struct engine_seq *s)
{
	uint32_t n = s->share, used = g->max_num_batched_tokens - p->budget;

	p->held -= own_blocks(g, s, s->context);
	if (n == 0)
		return;
	s->context -= s->grown;
	p->budget += n < used ? n : used;
	p->load.context_tokens -= s->context;
	p->load.sampled -= s->has_token;
	if (s->is_prefill) {
		p->load.prefill_seqs--;
		p->load.prefill_tokens -= n;
		p->load.pairs -= n * (s->context + 0.5 * n);
		s->prompt_left += n;
	} else {
		p->load.decoding--;
		p->load.decode_tokens -= n;
	}
	s->share = s->grown = 0;
}

/* The sequence to preempt. */
static struct engine_seq *victim_choose(const struct sim_engine *g)
{
	struct engine_seq *last = NULL;

	for (size_t i = g->running_end; i--;) {
		struct engine_seq *s = g->running[i];

		if (s && !g->is_by_priority)
			return s;
		if (s && (!last || is_after(s, last)))
			last = s;
	}
	return last;
}

/* Puts a running sequence back into the queue. */
static void preempt(struct sim_engine *g, struct engine_step *p)
{
	struct engine_seq *s = victim_choose(g);

	step_return(g, p, s);
	running_leave(g, s);
	g->preempted++;
	p->is_short = true;
	s->prompt_left += s->context;
	s->context = s->brought = 0;
	waiting_link(g, s, waiting_before(g, s, true));
}

/* Whether a running sequence has room for its share. */
static bool can_grow(const struct sim_engine *g, const struct engine_step *p,
		     const struct engine_seq *s)
{
	uint32_t grown = step_growth(s, step_share(g, p, s));
	uint64_t after = own_blocks(g, s, (uint64_t)s->context + grown);

	return g->kv_tokens == 0 ||
	       all_held(g, p) - own_blocks(g, s, s->context) + after <= g->kv_tokens;
}

/* Removes the prefix that the cache has from a waiting prompt, never its last token. */
static size_t known_take(const struct sim_engine *g, struct engine_seq *s)
{
	uint32_t all = s->prompt_left + s->context, known = 0;
	bool is_named = g->prefix && s->hold;
	size_t held = 0;

	if (!is_named && !s->brought)
		return 0;
	if (is_named)
		known = prefix_match(g->prefix, s->hold, &held);
	if (s->brought > known)
		known = s->brought;
	if (known >= all)
		known = (all - 1) / PREFIX_BLOCK_TOKENS * PREFIX_BLOCK_TOKENS;
	s->context = known;
	s->prompt_left = all - known;
	return held;
}

/* Whether all of a waiting prompt fits; held_blocks of its blocks are in use by others anyway. */
static bool can_enter(const struct sim_engine *g, const struct engine_step *p,
		      const struct engine_seq *s, size_t held_blocks)
{
	uint64_t needed = blocks_of(g, (uint64_t)s->context + s->prompt_left);

	return g->kv_tokens == 0 ||
	       all_held(g, p) + needed - held_blocks * PREFIX_BLOCK_TOKENS <= g->kv_tokens;
}

static void running_take(struct sim_engine *g, struct engine_step *p)
{
	for (size_t i = 0; i < g->running_end; i++) {
		p->held += own_blocks(g, g->running[i], g->running[i]->context);
		g->running[i]->share = 0;
	}
	for (size_t i = 0; i < g->running_end; i++) {
		struct engine_seq *s = g->running[i];

		while (s && s->is_running && g->running_count > 1 && !can_grow(g, p, s))
			preempt(g, p);
		if (s && s->is_running)
			step_take(g, p, s);
	}
}

/* Who is admitted next: the first in the queue whose adapter has a place in the batch. */
static struct engine_seq *admissible(const struct sim_engine *g, const struct engine_step *p)
{
	struct engine_seq *s = g->first;
	size_t held_blocks;

	if (p->budget == 0 || p->is_short || g->running_count >= g->max_num_seqs)
		return NULL;
	while (s && !is_lora_fit(g, s))
		s = s->next;
	if (!s)
		return NULL;
	held_blocks = known_take(g, s);
	if (step_share(g, p, s) == 0)
		return NULL;
	return g->running_count == 0 || can_enter(g, p, s, held_blocks) ? s : NULL;
}

static void admit(struct sim_engine *g, struct engine_step *p, struct engine_seq *s)
{
	waiting_unlink(g, s);
	running_enter(g, s);
	s->known = s->context;
	if (g->prefix && s->hold)
		prefix_pin(g->prefix, s->hold);
	p->held += own_blocks(g, s, s->context);
	step_take(g, p, s);
}

/* Room that running sequences leave in the KV cache is used for idle known blocks. */
static void rest_keep(struct sim_engine *g)
{
	uint64_t left = g->kv_tokens > g->held ? g->kv_tokens - g->held : 0;

	if (g->prefix && g->kv_tokens)
		prefix_shrink(g->prefix, (size_t)(left / PREFIX_BLOCK_TOKENS));
}

int64_t engine_step_begin(struct sim_engine *g)
{
	struct engine_step p = { .budget = g->max_num_batched_tokens };
	struct engine_seq *next;

	assert(!g->is_in_step);
	running_pack(g);
	running_take(g, &p);
	while ((next = admissible(g, &p)))
		admit(g, &p, next);
	g->held = all_held(g, &p);
	rest_keep(g);
	g->step_tokens = g->max_num_batched_tokens - p.budget;
	if (g->step_tokens == 0)
		return -1;
	g->is_in_step = true;
	return (int64_t)llround(1000 * engine_cost_us(&g->cost, &p.load));
}

void engine_step_end(struct sim_engine *g, engine_on_token *on_token, void *ctx)
{
	assert(g->is_in_step);
	g->is_in_step = false;
	for (size_t i = 0; i < g->running_end; i++)
		if (g->running[i] && g->running[i]->has_token)
			on_token(g->running[i], ctx);
}
