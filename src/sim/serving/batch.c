/* SPDX-License-Identifier: Apache-2.0 */
/* batch.c - see batch.h. */
#include "sim/serving/batch.h"

#include <assert.h>
#include <stdlib.h>

#include "core/base/mem.h"
#include "core/rng/rng.h"

struct batch_seq {
	struct engine_seq seq;  /* first: tokens come with a pointer to it */
	struct batch_item *item;
	struct batch_lane *lane;
	struct prefix_pins hold;
	struct pcg64 rng;       /* decides which drafts are accepted */
	uint32_t done, ready;   /* tokens; denoising steps of the current canvas */
	bool is_first;          /* of its prompt */
};

struct batch_run {
	struct batch_engine *b;
	const struct batch_how *how;
	struct batch_sum *sum;
	struct batch_item *item;
	size_t n, begun, done;  /* items: all, given to the engine, finished */
	struct batch_seq *seq;  /* how->sequences for each item */
	size_t *coded;          /* sequences whose media are not encoded yet */
	size_t coded_count;
	int64_t now_ns;
};

void batch_engine_init(struct batch_engine *b, const struct sim_opts *opts)
{
	assert(opts->engines >= 1);
	*b = (struct batch_engine){ .opts = opts, .lanes = (size_t)opts->engines };
	b->lane = mem_array(b->lanes, sizeof(*b->lane));
	for (size_t i = 0; i < b->lanes; i++) {
		struct batch_lane *l = &b->lane[i];

		l->end_ns = -1;
		sim_engine_init(&l->engine, &l->prefix, opts);
	}
}

void batch_engine_release(struct batch_engine *b)
{
	for (size_t i = 0; i < b->lanes; i++) {
		engine_release(&b->lane[i].engine);
		prefix_release(&b->lane[i].prefix);
	}
	free(b->lane);
	*b = (struct batch_engine){ 0 };
}

/* Tokens of the next step: the drafts that are accepted and one more. */
static uint32_t yield_draw(const struct batch_run *t, struct batch_seq *s)
{
	const struct sim_opts *o = t->b->opts;
	uint32_t n = 1;

	for (int64_t i = 0; i < o->spec_tokens; i++, n++)
		if (pcg64_double(&s->rng) >= o->spec_acceptance)
			break;
	return n;
}

/* Tokens that come out of this step; 0: the canvas needs more of them. */
static uint32_t token_count(const struct batch_run *t, struct batch_seq *s)
{
	const struct sim_opts *o = t->b->opts;

	if (o->diffusion_block == 0)
		return s->done ? s->seq.yield : 1;
	if (++s->ready < (uint32_t)o->diffusion_steps)
		return 0;
	s->ready = 0;
	return (uint32_t)o->diffusion_block;
}

static void on_token(struct engine_seq *seq, void *ctx)
{
	struct batch_seq *s = (struct batch_seq *)seq;
	struct batch_item *item = s->item;
	struct batch_run *t = ctx;
	uint32_t left = item->output - s->done, n = token_count(t, s);

	if (n == 0)
		return;
	n = n < left ? n : left;
	if (item->got == 0)
		item->first_ns = t->now_ns;
	if (s->is_first && s->done == 0)
		item->known = seq->known;
	s->done += n;
	item->got += n;
	item->last_ns = t->now_ns;
	if (s->done < item->output) {
		seq->yield = yield_draw(t, s);
		return;
	}
	engine_remove(&s->lane->engine, seq);
	t->done += item->got == (uint64_t)item->output * t->how->sequences;
}

/* The lane with the fewest requests, where waiting ones count fourfold, as in vLLM. */
static struct batch_lane *lane_choose(struct batch_engine *b)
{
	struct batch_lane *best = b->lane;
	size_t best_load = SIZE_MAX;

	for (size_t i = 0; i < b->lanes; i++) {
		const struct sim_engine *g = &b->lane[i].engine;
		size_t load = 4 * g->waiting_count + g->running_count;

		if (load < best_load) {
			best = &b->lane[i];
			best_load = load;
		}
	}
	return best;
}

static void seq_begin(struct batch_run *t, size_t index)
{
	struct batch_seq *s = &t->seq[index];
	struct batch_item *item = &t->item[index / t->how->sequences];
	uint64_t number = t->b->drawn++, seed = t->b->opts->seed;
	uint32_t words[4] = { (uint32_t)seed, (uint32_t)(seed >> 32), (uint32_t)number,
			      (uint32_t)(number >> 32) };
	struct prefix_tail tail = { 0 };

	*s = (struct batch_seq){ .seq.prompt_left = item->prompt, .seq.priority = item->priority,
				 .seq.lora = item->lora, .item = item,
				 .is_first = index % t->how->sequences == 0 };
	s->lane = lane_choose(t->b);
	pcg64_seed_words(&s->rng, words, 4);
	if (s->lane->engine.prefix && item->id) {
		prefix_name(&s->hold, item->lora, item->id, item->prompt, &tail);
		s->seq.hold = &s->hold;
	}
	if (item->encode_ns && s->is_first)
		t->coded[t->coded_count++] = index;
	engine_add(&s->lane->engine, &s->seq);
}

/* Time of the encoder for what this lane's step has just admitted. */
static int64_t encode_ns(struct batch_run *t, const struct batch_lane *l)
{
	size_t kept = 0;
	int64_t ns = 0;

	for (size_t i = 0; i < t->coded_count; i++) {
		const struct batch_seq *s = &t->seq[t->coded[i]];

		if (s->lane == l && s->seq.is_running)
			ns += s->item->encode_ns;
		else
			t->coded[kept++] = t->coded[i];
	}
	t->coded_count = kept;
	return ns;
}

static void lane_step(struct batch_run *t, struct batch_lane *l)
{
	int64_t ns = engine_step_begin(&l->engine), coding;

	l->end_ns = -1;
	if (ns < 0)
		return;
	coding = encode_ns(t, l);
	l->end_ns = t->now_ns + ns + coding;
	t->sum->steps++;
	t->sum->steps_ns += ns + coding;
	t->sum->encode_ns += coding;
}

static void lane_end(struct batch_run *t, struct batch_lane *l)
{
	t->now_ns = l->end_ns;
	if (t->how->wait)
		t->how->wait(t->how->self, t->now_ns, t->done);
	engine_step_end(&l->engine, on_token, t);
	t->sum->end_ns = t->now_ns;
	lane_step(t, l);
}

/* Gives all items that are ready now to the engine; starts idle lanes. */
static void arrive(struct batch_run *t)
{
	t->now_ns = t->item[t->begun].ready_ns;
	for (; t->begun < t->n && t->item[t->begun].ready_ns <= t->now_ns; t->begun++)
		for (uint32_t k = 0; k < t->how->sequences; k++)
			seq_begin(t, t->begun * t->how->sequences + k);
	for (size_t i = 0; i < t->b->lanes; i++)
		if (t->b->lane[i].end_ns < 0)
			lane_step(t, &t->b->lane[i]);
}

/* Advances to the next event: the end of a step, or the next prompt. False: none is left. */
static bool advance(struct batch_run *t)
{
	struct batch_lane *next = NULL;

	for (size_t i = 0; i < t->b->lanes; i++) {
		struct batch_lane *l = &t->b->lane[i];

		if (l->end_ns >= 0 && (!next || l->end_ns < next->end_ns))
			next = l;
	}
	if (t->begun < t->n && (!next || t->item[t->begun].ready_ns <= next->end_ns))
		arrive(t);
	else if (next)
		lane_end(t, next);
	else
		return false;
	return true;
}

static void running_limit(struct batch_engine *b, int64_t most)
{
	for (size_t i = 0; i < b->lanes; i++) {
		b->lane[i].engine.max_num_seqs = (size_t)b->opts->max_num_seqs;
		if (most > 0 && most < b->opts->max_num_seqs)
			b->lane[i].engine.max_num_seqs = (size_t)most;
		b->lane[i].engine.preempted = 0;
	}
}

void batch_run(struct batch_engine *b, struct batch_item *item, size_t n,
	       const struct batch_how *how, struct batch_sum *sum)
{
	struct batch_run t = { .b = b, .how = how, .sum = sum, .item = item, .n = n };
	size_t seqs = n * how->sequences;

	assert(how->sequences >= 1);
	for (size_t i = 0; i < n; i++) {
		assert(item[i].prompt >= 1 && item[i].output >= 1);
		assert(i == 0 || item[i].ready_ns >= item[i - 1].ready_ns);
		item[i].got = 0;
		item[i].known = 0;
	}
	t.seq = mem_array(seqs, sizeof(*t.seq));
	t.coded = mem_array(n, sizeof(*t.coded));
	running_limit(b, how->running_max);
	while (advance(&t))
		continue;
	assert(t.done == n);
	for (size_t i = 0; i < b->lanes; i++)
		sum->preempted += b->lane[i].engine.preempted;
	for (size_t i = 0; i < seqs; i++)
		prefix_pins_release(&t.seq[i].hold);
	free(t.seq);
	free(t.coded);
}
