/* SPDX-License-Identifier: Apache-2.0 */
/* engine.c - see engine.h. */
#include "sim/engine.h"

#include <assert.h>
#include <math.h>

#include "base/mem.h"

void engine_init(struct engine *g, struct engine_cost cost, size_t max_num_seqs,
		 uint32_t max_num_batched_tokens)
{
	assert(max_num_seqs >= 1 && max_num_batched_tokens >= 1);
	*g = (struct engine){ .cost = cost, .max_num_seqs = max_num_seqs,
			      .max_num_batched_tokens = max_num_batched_tokens,
			      .running = mem_array(max_num_seqs, sizeof(*g->running)) };
}

void engine_release(struct engine *g)
{
	free(g->running);
	*g = (struct engine){ 0 };
}

void engine_add(struct engine *g, struct engine_seq *s)
{
	assert(s->prompt_left >= 1);
	s->has_token = s->is_running = false;
	s->prev = g->last;
	s->next = NULL;
	if (g->last)
		g->last->next = s;
	else
		g->first = s;
	g->last = s;
	g->waiting_count++;
}

static void waiting_unlink(struct engine *g, struct engine_seq *s)
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

void engine_remove(struct engine *g, struct engine_seq *s)
{
	if (s->is_running) {
		assert(g->running[s->slot] == s);
		g->running[s->slot] = NULL;
		g->running_count--;
		s->is_running = false;
	} else if (s->prev || s->next || g->first == s) {
		waiting_unlink(g, s);
	}
	s->has_token = false;
}

/* Closes the gaps left by those that went, keeping the order. */
static void running_pack(struct engine *g)
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

struct step {
	uint32_t budget, prefill_tokens, decoding;
};

/* Gives a running sequence its share of the step. */
static void step_take(struct step *p, struct engine_seq *s)
{
	uint32_t n = s->prompt_left < p->budget ? s->prompt_left : p->budget;

	s->has_token = false;
	if (p->budget == 0)
		return;
	if (s->prompt_left == 0) {
		p->budget--;
		p->decoding++;
		s->has_token = true;
		return;
	}
	p->budget -= n;
	p->prefill_tokens += n;
	s->prompt_left -= n;
	s->has_token = s->prompt_left == 0;
}

int64_t engine_step_begin(struct engine *g)
{
	struct step p = { .budget = g->max_num_batched_tokens };
	double us = 0;

	assert(!g->is_in_step);
	running_pack(g);
	for (size_t i = 0; i < g->running_end; i++)
		step_take(&p, g->running[i]);
	while (g->first && p.budget > 0 && g->running_count < g->max_num_seqs) {
		struct engine_seq *s = g->first;

		waiting_unlink(g, s);
		s->slot = g->running_end++;
		s->is_running = true;
		g->running[s->slot] = s;
		g->running_count++;
		step_take(&p, s);
	}
	g->step_tokens = g->max_num_batched_tokens - p.budget;
	if (g->step_tokens == 0)
		return -1;
	g->is_in_step = true;
	if (p.decoding)
		us += g->cost.decode_base_us + g->cost.decode_us_per_seq * p.decoding;
	if (p.prefill_tokens)
		us += g->cost.prefill_base_us + g->cost.prefill_us_per_token * p.prefill_tokens;
	return (int64_t)llround(us * 1000);
}

void engine_step_end(struct engine *g, engine_on_token *on_token, void *ctx)
{
	assert(g->is_in_step);
	g->is_in_step = false;
	for (size_t i = 0; i < g->running_end; i++)
		if (g->running[i] && g->running[i]->has_token)
			on_token(g->running[i], ctx);
}
