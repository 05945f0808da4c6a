/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_gen.c - see random.h.
 *
 * Requests are made lot by lot: all threads fit the texts of a lot, then one goes through them in
 * order, finishes those that were short and hands each out.
 *
 * If nothing else draws in between, the short ones are finished in parallel, too: draws for the
 * next few are made as if each were then done. The first that is short again undoes the draws after
 * it; the more guesses fail, the fewer are made at once.
 */
#include "input/sets/random.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/base/limits.h"
#include "core/base/mem.h"
#include "core/base/parallel.h"
#include "input/token/tokenizer.h"

#define FIT_ROUNDS 10
#define LOT_ITEMS 1024

/* ---- one text ---- */

void fitting_begin(struct fitting *f, size_t target)
{
	f->target = target;
	f->left = FIT_ROUNDS;
}

enum fitting_state fitting_run(const struct tokenizer *t, struct fitting *f)
{
	for (;; f->left--) {
		buf_reset(&f->text);
		if (tokenizer_decode(t, f->ids.id, f->ids.count, false, &f->text) < 0)
			return FITTING_FAILED;
		ids_reset(&f->ids);
		if (tokenizer_encode(t, buf_str(&f->text), false, &f->ids) < 0)
			return FITTING_FAILED;
		if (f->left <= 0 || f->ids.count == f->target)
			return FITTING_DONE;
		if (f->ids.count < f->target) {
			f->left--;
			return FITTING_SHORT;
		}
		f->ids.count = f->target;
	}
}

int fitting_refuse(const struct tokenizer *t, const struct fitting *f, struct err *e)
{
	if (f->text.is_over)
		return err_set(e, ERR_LIMIT, "the text of a random prompt of %zu tokens is too long",
			       f->target);
	tokenizer_refuse(t, buf_str(&f->text), e);
	return err_wrap(e, "a random prompt of %zu tokens", f->target);
}

void fitting_release(struct fitting *f)
{
	ids_release(&f->ids);
	buf_release(&f->text);
}

static void draw_missing(struct random_gen *g, struct fitting *f)
{
	while (f->ids.count < f->target)
		ids_push(&f->ids, (uint32_t)pcg64_bounded(&g->rng, 0, (int64_t)g->vocab - 1));
}

/* Draws what is missing until the text is done. */
static int finish(struct random_gen *g, struct fitting *f, enum fitting_state state, struct err *e)
{
	for (; state == FITTING_SHORT; state = fitting_run(g->env->tokenizer, f))
		draw_missing(g, f);
	return state == FITTING_FAILED ? fitting_refuse(g->env->tokenizer, f, e) : 0;
}

/* ---- the generator ---- */

static void find_allowed(struct random_gen *g, enum random_ids ids)
{
	const struct tokenizer *t = g->env->tokenizer;
	char *is_special = mem_alloc(g->vocab);
	const uint32_t *declared;
	size_t n;

	declared = tokenizer_special_ids(t, &n);
	for (size_t i = 0; i < n && ids == RANDOM_IDS_UNDECLARED; i++)
		if (declared[i] < g->vocab)
			is_special[declared[i]] = 1;
	for (size_t i = 0; i < g->vocab && ids == RANDOM_IDS_PLAIN; i++)
		is_special[i] = tokenizer_is_special(t, (uint32_t)i);
	g->allowed = mem_array(g->vocab, sizeof(*g->allowed));
	for (size_t i = 0; i < g->vocab; i++)
		if (!is_special[i])
			g->allowed[g->n_allowed++] = (uint32_t)i;
	free(is_special);
}

int random_check_count(const struct dataset_env *env, struct err *e)
{
	if (env->num_prompts <= 0)
		return err_set(e, ERR_RUN, "No requests provided.");
	if (env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_USAGE, "--num-prompts %" PRId64 " is more than the limit of %u",
			       env->num_prompts, REQUESTS_MAX);
	return 0;
}

int random_gen_open(struct random_gen *g, const struct dataset_env *env, enum random_ids ids,
		    struct err *e)
{
	assert(env->tokenizer);
	*g = (struct random_gen){ .env = env };
	g->vocab = tokenizer_vocab_size(env->tokenizer);
	pcg64_seed(&g->rng, env->seed);
	find_allowed(g, ids);
	if (g->n_allowed)
		return 0;
	random_gen_release(g);
	return err_set(e, ERR_RUN, "the tokenizer %s has no tokens to make random prompts of",
		       tokenizer_name(env->tokenizer));
}

void random_gen_release(struct random_gen *g)
{
	free(g->allowed);
	*g = (struct random_gen){ 0 };
}

void random_note_mismatch(int64_t mismatch, struct workload *w)
{
	if (mismatch)
		dataset_note(w, "random prompts hold %" PRId64 " %s tokens than requested in "
			     "total: their text does not re-encode to the ids it was made from",
			     mismatch < 0 ? -mismatch : mismatch, mismatch < 0 ? "fewer" : "more");
}

/* ---- lengths ---- */

int64_t random_special(const struct random_gen *g)
{
	return g->is_ids ? 0 : (int64_t)tokenizer_special_per_sequence(g->env->tokenizer);
}

static void draw(struct pcg64 *rng, double lo, double hi, int64_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = pcg64_bounded(rng, (int64_t)lo, (int64_t)hi);
}

static int check_length(const char *what, double tokens, struct err *e)
{
	if (tokens <= LENGTH_TOKENS_MAX)
		return 0;
	return err_set(e, ERR_LIMIT, "%s of up to %.0f tokens is above the limit of %u", what,
		       tokens, LENGTH_TOKENS_MAX);
}

int random_lengths_draw(struct random_gen *g, const struct dataset_opts *o, int64_t input_len,
			int64_t output_len, size_t n, struct random_lengths *out, struct err *e)
{
	int64_t special = random_special(g);
	double in = (double)(input_len > special ? input_len - special : 0);
	double answer = (double)output_len;
	double ri = o->input_range_ratio, ro = o->output_range_ratio;

	assert(ri >= 0 && ri < 1 && ro >= 0 && ro < 1);
	*out = (struct random_lengths){ .n = n };
	if (check_length("an input length", in * (1 + ri), e) < 0 ||
	    check_length("an output length", answer * (1 + ro), e) < 0)
		return -1;
	out->input = mem_array(n, sizeof(*out->input));
	out->output = mem_array(n, sizeof(*out->output));
	out->offset = mem_array(n, sizeof(*out->offset));
	draw(&g->rng, floor(in * (1 - ri)), ceil(in * (1 + ri)), out->input, n);
	draw(&g->rng, fmax(1, floor(answer * (1 - ro))), fmax(1, ceil(answer * (1 + ro))),
	     out->output, n);
	draw(&g->rng, 0, (double)g->vocab - 1, out->offset, n);
	return 0;
}

void random_lengths_release(struct random_lengths *l)
{
	free(l->input);
	free(l->output);
	free(l->offset);
	*l = (struct random_lengths){ 0 };
}

int random_prefix_draw(struct random_gen *g, int64_t length, struct ids *prefix, struct err *e)
{
	struct fitting f = { 0 };
	int rc = 0;

	assert(g->n_allowed > 0);
	if (check_length("a prefix", (double)length, e) < 0)
		return -1;
	for (int64_t i = 0; i < length; i++)
		ids_push(&f.ids, g->allowed[pcg64_bounded(&g->rng, 0, (int64_t)g->n_allowed - 1)]);
	if (length > 0 && !g->is_ids) {
		fitting_begin(&f, (size_t)length);
		rc = finish(g, &f, fitting_run(g->env->tokenizer, &f), e);
	}
	if (rc == 0)
		ids_add(prefix, f.ids.id, f.ids.count);
	fitting_release(&f);
	return rc;
}

/* ---- prompts ---- */

struct random_lot {
	struct random_gen *g;
	const struct ids *prefix;
	const struct random_lengths *lengths;
	size_t first, begin, n; /* lengths begin to begin + n - 1 */
	struct fitting fit[LOT_ITEMS];
	enum fitting_state state[LOT_ITEMS];
	/* The short ones: their indices, and their state before the extra draws. */
	size_t pending[LOT_ITEMS];
	struct ids saved[LOT_ITEMS];
	int saved_left[LOT_ITEMS];
	struct pcg64 before[LOT_ITEMS + 1];
	size_t at, ahead; /* those at work: pending[at] and the next ones; how many at once */
	/* With g->is_ids: every allowed id and ", " in a row, and where each begins. */
	struct buf spelled, spelled_prefix;
	uint32_t *begins; /* [n_allowed + 1] */
};

static void spell(struct random_lot *lot)
{
	const struct random_gen *g = lot->g;

	lot->begins = mem_array(g->n_allowed + 1, sizeof(*lot->begins));
	for (size_t i = 0; i < g->n_allowed; i++) {
		lot->begins[i] = (uint32_t)lot->spelled.len;
		buf_printf(&lot->spelled, "%" PRIu32 ", ", g->allowed[i]);
	}
	lot->begins[g->n_allowed] = (uint32_t)lot->spelled.len;
	for (size_t i = 0; i < lot->prefix->count; i++)
		buf_printf(&lot->spelled_prefix, "%" PRIu32 ", ", lot->prefix->id[i]);
}

/*
 * The length of the next piece of a run of n allowed ids from start on, which continues at the
 * beginning after the end.
 */
static size_t run_piece(const struct random_gen *g, size_t start, size_t n)
{
	return n < g->n_allowed - start ? n : g->n_allowed - start;
}

static bool make_ids(struct random_lot *lot, struct fitting *f, size_t start, size_t n)
{
	const struct random_gen *g = lot->g;

	buf_reset(&f->text);
	buf_add_char(&f->text, '[');
	buf_add_str(&f->text, buf_str(&lot->spelled_prefix));
	for (size_t k; n && (k = run_piece(g, start, n)) > 0; n -= k, start = 0)
		buf_add(&f->text, lot->spelled.data + lot->begins[start],
			lot->begins[start + k] - lot->begins[start]);
	if (f->text.len > 1)
		f->text.len -= 2; /* the last ", " */
	buf_add_char(&f->text, ']');
	f->ids.count = f->target;
	return !f->text.is_over;
}

static bool make_one(void *self, size_t item, unsigned worker)
{
	struct random_lot *lot = self;
	const struct random_gen *g = lot->g;
	const struct random_lengths *l = lot->lengths;
	struct fitting *f = &lot->fit[item];
	size_t i = lot->begin + item, n = (size_t)l->input[i];
	size_t start = ((size_t)l->offset[i] + lot->first + i) % g->n_allowed;

	(void)worker;
	if (dataset_go_on(g->env, NULL) < 0)
		return false;
	fitting_begin(f, lot->prefix->count + n);
	if (g->is_ids) {
		lot->state[item] = make_ids(lot, f, start, n) ? FITTING_DONE : FITTING_FAILED;
		return lot->state[item] == FITTING_DONE;
	}
	ids_reset(&f->ids);
	ids_add(&f->ids, lot->prefix->id, lot->prefix->count);
	for (size_t k; n && (k = run_piece(g, start, n)) > 0; n -= k, start = 0)
		ids_add(&f->ids, g->allowed + start, k);
	lot->state[item] = fitting_run(g->env->tokenizer, f);
	return lot->state[item] != FITTING_FAILED;
}

/* As many requests as have RANDOM_LOT_TOKENS tokens, at least one. */
static size_t lot_size(const struct random_lot *lot)
{
	const struct random_lengths *l = lot->lengths;
	size_t n = 0, tokens = 0;

	while (n < LOT_ITEMS && lot->begin + n < l->n && (n == 0 || tokens < RANDOM_LOT_TOKENS))
		tokens += lot->prefix->count + (size_t)l->input[lot->begin + n++];
	return n;
}

/* ---- short ones, several at once ---- */

static void draw_ahead(struct random_lot *lot, size_t k)
{
	struct fitting *f = &lot->fit[lot->pending[k]];

	lot->before[k] = lot->g->rng;
	lot->saved_left[k] = f->left;
	ids_reset(&lot->saved[k]);
	ids_add(&lot->saved[k], f->ids.id, f->ids.count);
	draw_missing(lot->g, f);
}

static void take_back(struct random_lot *lot, size_t k)
{
	struct fitting *f = &lot->fit[lot->pending[k]];

	f->left = lot->saved_left[k];
	ids_reset(&f->ids);
	ids_add(&f->ids, lot->saved[k].id, lot->saved[k].count);
	lot->state[lot->pending[k]] = FITTING_SHORT;
}

static bool run_ahead(void *self, size_t k, unsigned worker)
{
	struct random_lot *lot = self;
	size_t item = lot->pending[lot->at + k];

	(void)worker;
	if (dataset_go_on(lot->g->env, NULL) < 0)
		return false;
	lot->state[item] = fitting_run(lot->g->env->tokenizer, &lot->fit[item]);
	return true;
}

static int finish_all(struct random_lot *lot, struct err *e)
{
	struct random_gen *g = lot->g;
	size_t all = 0;

	for (size_t item = 0; item < lot->n; item++)
		if (lot->state[item] == FITTING_SHORT)
			lot->pending[all++] = item;
	for (lot->at = 0; lot->at < all;) {
		size_t n = all - lot->at < lot->ahead ? all - lot->at : lot->ahead, good = 0;

		for (size_t k = 0; k < n; k++)
			draw_ahead(lot, lot->at + k);
		lot->before[lot->at + n] = g->rng;
		parallel_for(g->env->threads, n, run_ahead, lot);
		if (dataset_go_on(g->env, e) < 0)
			return -1;
		while (good < n && lot->state[lot->pending[lot->at + good]] == FITTING_DONE)
			good++;
		lot->at += good;
		if (good == n) {
			lot->ahead = lot->ahead < LOT_ITEMS ? 2 * lot->ahead : LOT_ITEMS;
			continue;
		}
		lot->ahead = (lot->ahead + 1) / 2;
		if (lot->state[lot->pending[lot->at]] == FITTING_FAILED)
			return fitting_refuse(g->env->tokenizer, &lot->fit[lot->pending[lot->at]],
					      e);
		g->rng = lot->before[lot->at + 1];
		for (size_t k = 1; k < n - good; k++)
			take_back(lot, lot->at + k);
	}
	return 0;
}

static int hand_out(struct random_lot *lot, random_each_fn *each, void *self, struct err *e)
{
	struct random_gen *g = lot->g;

	for (size_t item = 0; item < lot->n; item++) {
		struct fitting *f = &lot->fit[item];
		struct random_prompt p = { .index = lot->begin + item };

		if (dataset_go_on(g->env, e) < 0 || finish(g, f, lot->state[item], e) < 0)
			return -1;
		p.text = buf_str(&f->text);
		p.tokens = f->ids.count;
		g->mismatch += (int64_t)f->ids.count - (int64_t)f->target;
		if (each(self, &p, e) < 0)
			return -1;
		if (lot->lengths->n > 1)
			dataset_progress(g->env, p.index + 1, lot->lengths->n);
	}
	return 0;
}

int random_prompts(struct random_gen *g, const struct ids *prefix, const struct random_lengths *l,
		   size_t first, random_each_fn *each, void *self, struct err *e)
{
	struct random_lot *lot = mem_alloc(sizeof(*lot));
	int rc = 0;

	assert(g->n_allowed > 0);
	lot->g = g;
	lot->prefix = prefix;
	lot->lengths = l;
	lot->first = first;
	lot->ahead = 1;
	if (g->is_ids)
		spell(lot);
	for (; rc == 0 && lot->begin < l->n; lot->begin += lot->n) {
		size_t failed;

		lot->n = lot_size(lot);
		failed = parallel_for(g->env->threads, lot->n, make_one, lot);
		rc = dataset_go_on(g->env, e);
		if (rc == 0 && failed < lot->n)
			rc = fitting_refuse(g->env->tokenizer, &lot->fit[failed], e);
		if (rc == 0 && g->is_sole)
			rc = finish_all(lot, e);
		if (rc == 0)
			rc = hand_out(lot, each, self, e);
	}
	for (size_t i = 0; i < LOT_ITEMS; i++) {
		fitting_release(&lot->fit[i]);
		ids_release(&lot->saved[i]);
	}
	buf_release(&lot->spelled);
	buf_release(&lot->spelled_prefix);
	free(lot->begins);
	free(lot);
	return rc;
}
