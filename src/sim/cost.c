/* SPDX-License-Identifier: Apache-2.0 */
/* cost.c - see cost.h. */
#include "sim/cost.h"

#include <math.h>

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
