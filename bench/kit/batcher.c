/* SPDX-License-Identifier: Apache-2.0 */
/* batcher.c - see batcher.h. */
#include "kit/batcher.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

#define NOISE 0.02

double batcher_uniform(struct pcg64 *g, double low, double high)
{
	return low + (high - low) * pcg64_double(g);
}

double batcher_log_uniform(struct pcg64 *g, double low, double high)
{
	return exp(batcher_uniform(g, log(low), log(high)));
}

double batcher_normal(struct pcg64 *g)
{
	return sqrt(-2 * log(1 - pcg64_double(g))) * cos(2 * M_PI * pcg64_double(g));
}

/* Four uniform numbers from one word: as good as normal for the noise of a step. */
static double quick_normal(struct pcg64 *g)
{
	uint64_t w = pcg64_u64(g);
	double sum = (double)(w & 0xffff) + (double)(w >> 16 & 0xffff) +
		     (double)(w >> 32 & 0xffff) + (double)(w >> 48);

	return (sum / 65536 - 2) * 1.7320508;
}

void batcher_draw(struct pcg64 *g, struct engine *e)
{
	static const uint32_t budgets[] = { 512, 2048, 8192 };

	*e = (struct engine){ .budget = budgets[pcg64_bounded(g, 0, 2)] };
	e->max_seqs = (uint32_t)round(batcher_log_uniform(g, 8, 256));
	e->t0 = batcher_uniform(g, 0.003, 0.015);
	e->a = 1 / batcher_log_uniform(g, 10e3, 100e3);
	e->b = batcher_log_uniform(g, 1e-5, 1e-4);
	e->c = batcher_log_uniform(g, 1e-8, 1e-7);
	e->prompt = batcher_log_uniform(g, 64, 2048);
	e->prompt_sd = pcg64_bounded(g, 0, 1) ? batcher_uniform(g, 0.3, 0.8) : 0;
	e->output = batcher_log_uniform(g, 16, 256);
	e->is_output_fixed = pcg64_bounded(g, 0, 1);
}

static struct pcg64 *load_rng(struct batcher *s)
{
	return s->load ? s->load : &s->rng;
}

static double gap(struct batcher *s)
{
	return -log(1 - pcg64_double(load_rng(s))) / s->rate;
}

void batcher_begin(struct batcher *s, const struct engine *e, double rate, uint32_t slots)
{
	assert(e->max_seqs <= BATCHER_SEQS_MAX && (slots || rate > 0));
	s->e = e;
	s->now = 0;
	s->rate = rate;
	s->slots = slots;
	s->is_closed = false;
	s->n = s->head = 0;
	s->running = s->decoding = s->waiting = 0;
	s->partial = BATCHER_NONE;
	s->step = 0;
	s->cached = 0;
	memset(s->bucket, 0xff, sizeof(s->bucket));
	s->next_due = slots ? INFINITY : gap(s);
}

static void arrive(struct batcher *s, double due)
{
	const struct engine *e = s->e;
	double prompt = e->prompt, output = e->output;
	struct job *j;

	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		s->job = mem_grow(s->job, s->room, sizeof(*s->job));
	}
	if (e->prompt_sd > 0)
		prompt *= exp(e->prompt_sd * (batcher_normal(load_rng(s)) - e->prompt_sd / 2));
	if (!e->is_output_fixed)
		output *= -log(1 - pcg64_double(load_rng(s)));
	j = &s->job[s->n++];
	*j = (struct job){ .due = due, .first = INFINITY, .end = INFINITY };
	j->prompt = (uint32_t)fmax(1, fmin(BATCHER_PROMPT_MAX, round(prompt)));
	j->output = (uint32_t)fmax(2, fmin(BATCHER_OUTPUT_MAX - 1, round(output)));
	j->left = j->prompt;
	j->is_failed = e->refuse_at && s->running + s->waiting >= e->refuse_at;
	if (j->is_failed)
		j->end = due;
	else
		s->waiting++;
}

void batcher_arrivals(struct batcher *s, double until)
{
	while (!s->is_closed && s->slots && s->running + s->waiting < s->slots)
		arrive(s, s->now);
	while (!s->is_closed && s->next_due <= until) {
		arrive(s, s->next_due);
		s->next_due += gap(s);
	}
}

/* The tokens prefilled in this step; done: requests that get their first token at its end. */
static uint32_t prefill(struct batcher *s, uint32_t *done, size_t *done_n)
{
	uint32_t room = s->e->budget > s->decoding ? s->e->budget - s->decoding : 0, used = 0;

	*done_n = 0;
	while (used < room) {
		uint32_t part;

		if (s->partial == BATCHER_NONE) {
			while (s->head < s->n && s->job[s->head].is_failed)
				s->head++;
			if (s->head == s->n || s->running == s->e->max_seqs)
				break;
			s->partial = (uint32_t)s->head++;
			s->running++;
			s->waiting--;
		}
		part = s->job[s->partial].left;
		if (part > room - used)
			part = room - used;
		s->job[s->partial].left -= part;
		used += part;
		if (s->job[s->partial].left)
			break;
		done[(*done_n)++] = s->partial;
		s->partial = BATCHER_NONE;
	}
	return used;
}

static void step(struct batcher *s)
{
	const struct engine *e = s->e;
	uint32_t done[BATCHER_SEQS_MAX], i, next, prefilled, *bucket;
	size_t done_n;
	double took;

	prefilled = prefill(s, done, &done_n);
	took = e->t0 + e->a * prefilled + e->b * (s->decoding + (double)done_n) + e->c * s->cached;
	s->now += took * (1 + NOISE * quick_normal(&s->rng));
	s->cached += prefilled + s->decoding;
	bucket = &s->bucket[s->step % BATCHER_OUTPUT_MAX];
	for (i = *bucket; i != BATCHER_NONE; i = next) {
		next = s->job[i].next;
		s->job[i].end = s->now;
		s->cached -= s->job[i].prompt + s->job[i].output - 1;
		s->running--;
		s->decoding--;
	}
	*bucket = BATCHER_NONE;
	for (size_t k = 0; k < done_n; k++) {
		struct job *j = &s->job[done[k]];

		j->first = s->now;
		bucket = &s->bucket[(s->step + j->output - 1) % BATCHER_OUTPUT_MAX];
		j->next = *bucket;
		*bucket = done[k];
		s->decoding++;
	}
	s->step++;
}

/*
 * Steps that only decode, up to the next arrival or end of a request: their times add up, and one
 * draw has the noise of them all.
 */
static void glide(struct batcher *s, double until)
{
	const struct engine *e = s->e;
	double took = e->t0 + e->b * s->decoding + e->c * s->cached, more = e->c * s->decoding;
	double now = s->now, squares = 0, end = fmin(until, s->is_closed ? until : s->next_due);

	while (s->bucket[s->step % BATCHER_OUTPUT_MAX] == BATCHER_NONE && now < end) {
		now += took;
		squares += took * took;
		took += more;
		s->cached += s->decoding;
		s->step++;
	}
	if (now > s->now)
		s->now = fmax(s->now, now + NOISE * sqrt(squares) * quick_normal(&s->rng));
}

void batcher_live(struct batcher *s, double until)
{
	for (;;) {
		if (s->slots || s->next_due <= s->now)
			batcher_arrivals(s, s->now);
		if (s->now >= until)
			return;
		if (s->running + s->waiting) {
			if (!s->waiting && s->partial == BATCHER_NONE)
				glide(s, until);
			if (s->now < until && (s->is_closed || s->next_due > s->now))
				step(s);
		} else if (s->is_closed || s->next_due > until) {
			s->now = isinf(until) ? s->now : until;
			return;
		} else {
			s->now = s->next_due;
		}
	}
}

double batcher_saturation(struct batcher *s, const struct engine *e, uint32_t n)
{
	double *end = mem_array(n, sizeof(*end)), per_s;
	struct engine willing = *e;

	assert(n >= 4);
	willing.refuse_at = 0;
	batcher_begin(s, &willing, 1, n);
	batcher_arrivals(s, 0);
	s->is_closed = true;
	batcher_live(s, INFINITY);
	for (uint32_t i = 0; i < n; i++)
		end[i] = s->job[i].end;
	stats_sort(end, n);
	per_s = (double)(n / 2) / (end[n * 3 / 4] - end[n / 4]);
	free(end);
	s->e = NULL;
	return per_s;
}

double batcher_tpot(const struct job *j)
{
	return (j->end - j->first) / (j->output - 1);
}

void batcher_release(struct batcher *s)
{
	free(s->job);
	s->job = NULL;
	s->room = 0;
}
