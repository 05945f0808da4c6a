/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random.c - prompts of a chosen token length from consecutive vocabulary ids;
 * datasets spec 3.1 to 3.6, the same draws as upstream for the same seed.
 *
 * A private PCG64 generator makes, in this order: input lengths, output
 * lengths, offsets (arrays whose range is one value draw nothing), the shared
 * prefix, and the padding of prompts that re-encode too short.
 */
#include <inttypes.h>
#include <math.h>

#include "base/limits.h"
#include "base/mem.h"
#include "data/common.h"
#include "rng/pcg64.h"
#include "token/tokenizer.h"

#define FIX_ROUNDS 10

struct range { int64_t lo, hi; };

struct generator {
	const struct tokenizer *tokenizer;
	struct pcg64 rng;
	uint32_t *allowed; /* ascending ids without the special ones */
	size_t n_allowed;
	size_t vocab;
	struct ids ids;
	struct buf text;
	int64_t mismatch;  /* tokens off the target, summed over prompts */
};

static void find_allowed(struct generator *g)
{
	size_t n_special, n = 0;
	const uint32_t *special = tokenizer_special_ids(g->tokenizer, &n_special);
	char *is_special = mem_alloc(g->vocab);

	for (size_t i = 0; i < n_special; i++)
		if (special[i] < g->vocab)
			is_special[special[i]] = 1;
	g->allowed = mem_array(g->vocab, sizeof(*g->allowed));
	for (size_t i = 0; i < g->vocab; i++)
		if (!is_special[i])
			g->allowed[n++] = (uint32_t)i;
	g->n_allowed = n;
	free(is_special);
}

/*
 * Decodes and encodes until the text has target tokens. The text left behind
 * belongs to the ids before the last encode, as upstream's does.
 */
static int fix_length(struct generator *g, size_t target, struct err *e)
{
	for (int left = FIX_ROUNDS;; left--) {
		buf_reset(&g->text);
		if (tokenizer_decode(g->tokenizer, g->ids.id, g->ids.count, false, &g->text) < 0)
			return err_set(e, ERR_LIMIT, "a random prompt's text is too long");
		ids_reset(&g->ids);
		if (tokenizer_encode(g->tokenizer, buf_str(&g->text), false, &g->ids) < 0)
			return err_set(e, ERR_LIMIT, "the tokenizer cannot encode a random prompt");
		if (left <= 0 || g->ids.count == target)
			break;
		while (g->ids.count < target)
			ids_push(&g->ids, (uint32_t)pcg64_bounded(&g->rng, 0,
								 (int64_t)g->vocab - 1));
		g->ids.count = target;
	}
	g->mismatch += (int64_t)g->ids.count - (int64_t)target;
	return 0;
}

static void draw(struct pcg64 *rng, struct range range, int64_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = pcg64_bounded(rng, range.lo, range.hi);
}

static int check(const struct dataset_opts *o, int64_t real, size_t special, struct err *e)
{
	int64_t least = o->random_prefix_len + (int64_t)floor((double)real *
							       (1.0 - o->input_range_ratio));

	if (least >= 1)
		return 0;
	return err_set(e, ERR_RUN, "--random-input-len %" PRId64 " is too small: with %zu special "
		       "tokens and a range ratio of %g a prompt could have %" PRId64
		       " tokens; at least 1 is needed", o->random_input_len, special,
		       o->input_range_ratio, least);
}

/* Prefix ids, then a run of allowed ids from a random place, shifted by the request's number. */
static int make_prompt(struct generator *g, const struct ids *prefix, int64_t offset, size_t index,
		       size_t length, struct err *e)
{
	size_t start = ((size_t)offset + index) % g->n_allowed;

	ids_reset(&g->ids);
	ids_add(&g->ids, prefix->id, prefix->count);
	for (size_t j = 0; j < length; j++)
		ids_push(&g->ids, g->allowed[(start + j) % g->n_allowed]);
	return fix_length(g, prefix->count + length, e);
}

static int make_prefix(struct generator *g, int64_t length, struct ids *prefix, struct err *e)
{
	if (length <= 0)
		return 0;
	ids_reset(&g->ids);
	for (int64_t i = 0; i < length; i++)
		ids_push(&g->ids, g->allowed[pcg64_bounded(&g->rng, 0,
							   (int64_t)g->n_allowed - 1)]);
	if (fix_length(g, (size_t)length, e) < 0)
		return -1;
	ids_add(prefix, g->ids.id, g->ids.count);
	g->mismatch = 0;
	return 0;
}

static int fill(struct generator *g, const struct dataset_opts *o, const struct dataset_env *env, struct workload *w,
		struct err *e)
{
	size_t n = (size_t)env->num_prompts, special = tokenizer_special_per_sequence(g->tokenizer);
	int64_t real = o->random_input_len - (int64_t)special;
	int64_t *input = mem_array(n, sizeof(*input)), *output = mem_array(n, sizeof(*output));
	int64_t *offset = mem_array(n, sizeof(*offset));
	double ri = o->input_range_ratio, ro = o->output_range_ratio, out_len;
	struct ids prefix = { 0 };
	int rc = -1;

	real = real < 0 ? 0 : real;
	out_len = (double)o->random_output_len;
	if (check(o, real, special, e) < 0)
		goto done;
	draw(&g->rng, (struct range){ (int64_t)floor((double)real * (1 - ri)),
				      (int64_t)ceil((double)real * (1 + ri)) }, input, n);
	draw(&g->rng, (struct range){ (int64_t)fmax(1, floor(out_len * (1 - ro))),
				      (int64_t)fmax(1, ceil(out_len * (1 + ro))) }, output, n);
	draw(&g->rng, (struct range){ 0, (int64_t)g->vocab - 1 }, offset, n);
	if (make_prefix(g, o->random_prefix_len, &prefix, e) < 0)
		goto done;
	for (size_t i = 0; i < n; i++) {
		struct sample *s;

		if (dataset_go_on(env, e) < 0 ||
		    make_prompt(g, &prefix, offset[i], i, (size_t)input[i], e) < 0)
			goto done;
		s = workload_add(w);
		s->prompt = arena_str(&w->arena, buf_str(&g->text));
		s->prompt_len = (uint32_t)g->ids.count;
		s->output_len = output[i];
		s->request_id = dataset_request_id(w, env, i);
		dataset_progress(env, i + 1, n);
	}
	if (g->mismatch)
		w->notes = str_of(arena_printf(&w->arena, "random prompts hold %" PRId64
			" %s tokens than asked for, in all: their text does not re-encode to the "
			"ids it was made from", g->mismatch < 0 ? -g->mismatch : g->mismatch,
			g->mismatch < 0 ? "fewer" : "more"));
	rc = 0;
done:
	ids_release(&prefix);
	free(input);
	free(output);
	free(offset);
	return rc;
}

static int build(const struct dataset_opts *o, const struct dataset_env *env, struct compat_rng *rng, struct workload *w,
		 struct err *e)
{
	struct generator g = { .tokenizer = env->tokenizer };
	int rc;

	(void)rng; /* upstream's generator is private too */
	if (env->num_prompts <= 0)
		return err_set(e, ERR_RUN, "No requests provided.");
	if (env->num_prompts > REQUESTS_MAX)
		return err_set(e, ERR_LIMIT, "--num-prompts %" PRId64 " is more than the limit of %u",
			       env->num_prompts, REQUESTS_MAX);
	g.vocab = tokenizer_vocab_size(env->tokenizer);
	pcg64_seed(&g.rng, env->seed);
	find_allowed(&g);
	rc = fill(&g, o, env, w, e);
	ids_release(&g.ids);
	buf_release(&g.text);
	free(g.allowed);
	return rc;
}

static const char *const options[] = {
	"random-input-len", "random-output-len", "random-range-ratio", "random-prefix-len",
	"input-len", NULL,
};

const struct dataset dataset_random = {
	.options = options,
	.name = "random", .summary = "random tokens of a chosen length",
	.forbids_path = true, .needs_tokenizer = true, .is_rewritten_by_server = true, .ignores_eos = true,
	.build = build,
};
