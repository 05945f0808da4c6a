/* SPDX-License-Identifier: Apache-2.0 */
/* explain.c - see explain.h. */
#include "sim/explain.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- virtual time ---- */

/* Gaps by their length: 64 to a factor of two, from a microsecond on. */
#define GAP_BUCKETS (64 * 40)

struct virtual_seq {
	struct engine_seq seq;
	int64_t begin_ns, first_ns, last_ns;
	uint32_t done;
};

struct virtual {
	struct engine *g;
	const struct virtual_load *l;
	struct virtual_seq *seq;
	int64_t now_ns;
	size_t begun, ended;
	uint64_t gap[GAP_BUCKETS], gaps;
};

static void virtual_begin(struct virtual *v)
{
	struct virtual_seq *s = &v->seq[v->begun++];

	s->seq = (struct engine_seq){ .prompt_left = v->l->prompt, .yield = v->l->yield };
	s->begin_ns = v->now_ns;
	engine_add(v->g, &s->seq);
}

static size_t gap_bucket(int64_t ns)
{
	uint64_t v = ns < 1000 ? 1000 : (uint64_t)ns;
	unsigned power = 63 - (unsigned)__builtin_clzll(v);

	return (size_t)(power * 64 + ((v >> (power - 6)) & 63)) % GAP_BUCKETS;
}

static double gap_quantile(const struct virtual *v, double q)
{
	uint64_t below = 0;

	for (size_t i = 0; i < GAP_BUCKETS; i++) {
		below += v->gap[i];
		if (below && (double)below >= q * (double)v->gaps)
			return (double)((64 + i % 64) << (i / 64)) / 64 * 1e-9;
	}
	return 0;
}

static void virtual_token(struct engine_seq *seq, void *ctx)
{
	struct virtual *v = ctx;
	struct virtual_seq *s = (struct virtual_seq *)seq;
	uint32_t n = s->done && seq->yield ? seq->yield : 1;

	if (s->done == 0) {
		s->first_ns = v->now_ns;
	} else {
		v->gap[gap_bucket(v->now_ns - s->last_ns)]++;
		v->gaps++;
	}
	s->last_ns = v->now_ns;
	s->done += n;
	if (s->done < v->l->output)
		return;
	engine_remove(v->g, seq);
	v->ended++;
	if (v->begun < v->l->requests)
		virtual_begin(v);
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static struct virtual_result virtual_sum(const struct virtual *v)
{
	size_t n = v->l->requests;
	double *ttft = mem_array(n, sizeof(*ttft));
	struct virtual_result r = { .seconds = (double)v->now_ns * 1e-9,
				    .preempted = v->g->preempted };

	for (size_t i = 0; i < n; i++) {
		const struct virtual_seq *s = &v->seq[i];

		ttft[i] = (double)(s->first_ns - s->begin_ns) * 1e-9;
		r.ttft_mean_s += ttft[i] / (double)n;
		if (v->l->output > 1)
			r.tpot_mean_s += (double)(s->last_ns - s->first_ns) * 1e-9 /
					 (v->l->output - 1) / (double)n;
	}
	qsort(ttft, n, sizeof(*ttft), compare);
	r.ttft_p99_s = ttft[(n - 1) * 99 / 100];
	r.itl_p99_s = gap_quantile(v, 0.99);
	r.output_tps = (double)n * v->l->output / r.seconds;
	free(ttft);
	return r;
}

struct virtual_result virtual_run(struct engine *g, const struct virtual_load *l)
{
	struct virtual v = { .g = g, .l = l };
	struct virtual_result r;

	assert(l->requests > 0 && l->prompt > 0 && l->output > 0);
	v.seq = mem_array(l->requests, sizeof(*v.seq));
	while (v.begun < l->requests && (l->concurrency == 0 || v.begun < l->concurrency))
		virtual_begin(&v);
	while (v.ended < l->requests) {
		int64_t ns = engine_step_begin(g);

		assert(ns >= 0);
		v.now_ns += ns;
		engine_step_end(g, virtual_token, &v);
	}
	r = virtual_sum(&v);
	free(v.seq);
	return r;
}

void engine_of_hardware(struct engine *g, const struct hardware *hw)
{
	const struct hardware_opts *o = &hw->opts;

	engine_init(g, hw->cost, (size_t)((o->max_num_seqs + o->pp - 1) / o->pp),
		    (uint32_t)o->max_num_batched_tokens);
	g->kv_tokens = (uint64_t)hw->kv_tokens;
	g->kv_block = (uint32_t)o->block_size;
	g->drafted = (uint32_t)o->drafted;
	g->is_prompt_whole = o->is_prompt_whole;
}

/* ---- the text ---- */

static void step_line(const struct hardware *hw, uint32_t batch, uint32_t context, struct buf *out)
{
	uint32_t drafted = (uint32_t)hw->opts.drafted;
	struct engine_load l = { .decoding = batch, .decode_tokens = batch * (1 + drafted),
				 .sampled = batch, .context_tokens = (double)batch * context };
	double us = engine_cost_us(&hw->cost, &l);

	buf_printf(out, "decode step, batch %-4u %8.2f ms  %8.0f tokens/s (each %u tokens deep)\n",
		   batch, us / 1000, batch / us * 1e6, context);
}

static void prefill_line(const struct hardware *hw, uint32_t tokens, struct buf *out)
{
	struct engine_load l = { .prefill_seqs = 1, .prefill_tokens = tokens, .sampled = 1,
				 .pairs = 0.5 * tokens * tokens };
	double us = engine_cost_us(&hw->cost, &l);

	buf_printf(out, "prefill of %-5u        %8.2f ms  %8.0f tokens/s\n", tokens, us / 1000,
		   tokens / us * 1e6);
}

/* As throughput tables are measured: everything is sent at once. */
static void load_line(const struct hardware *hw, uint32_t prompt, uint32_t output, struct buf *out)
{
	struct virtual_load l = { .prompt = prompt, .output = output, .requests = 3000 };
	struct virtual_result r;
	struct engine g;

	if (prompt + output > hw->opts.max_model_len)
		return;
	engine_of_hardware(&g, hw);
	r = virtual_run(&g, &l);
	engine_release(&g);
	buf_printf(out, "full load, %4u/%-4u            %10.0f output tokens/s, TPOT %.1f ms%s\n", prompt,
		   output, r.output_tps * (double)(hw->opts.pp * hw->opts.dp), r.tpot_mean_s * 1e3,
		   r.preempted ? ", with preemption" : "");
}

void hardware_explain(const struct hardware *hw, struct buf *out)
{
	const struct hardware_opts *o = &hw->opts;
	static const uint32_t batches[] = { 1, 64, 256 };

	buf_printf(out, "gpu                   %s, %" PRId64 " of them\n", hw->gpu->name,
		   o->tp * o->pp * o->dp);
	buf_printf(out, "model                 %s, %.2f billion parameters of %.4g bits\n",
		   hw->shape->name, hw->params / 1e9, hw->weight_bits);
	buf_printf(out, "weights               %8.2f GiB of each GPU\n", hw->weights_bytes / GIB);
	if (hw->offload_bytes > 0)
		buf_printf(out, "in the host's memory  %8.2f GiB of them\n", hw->offload_bytes / GIB);
	buf_printf(out, "activations           %8.2f GiB (%" PRId64 " batched tokens, %" PRId64
		   " sequences)\n", hw->activation_bytes / GIB, o->max_num_batched_tokens,
		   o->max_num_seqs);
	buf_printf(out, "KV cache              %8.2f GiB, %.1f KiB a token\n", hw->kv_bytes / GIB,
		   hw->kv_token_bytes / 1024);
	buf_printf(out, "KV cache tokens       %8" PRId64 " in %" PRId64 " blocks of %" PRId64
		   ", %.2f requests of %" PRId64 "\n", hw->kv_tokens, hw->blocks, o->block_size,
		   (double)hw->kv_tokens / (double)o->max_model_len, o->max_model_len);
	buf_printf(out, "start                 %8.1f s to load, %.1f s to compile and capture\n",
		   hw->load_s, hw->compile_s);
	for (size_t i = 0; i < sizeof(batches) / sizeof(*batches); i++)
		step_line(hw, batches[i], 512, out);
	prefill_line(hw, 512, out);
	prefill_line(hw, 8192, out);
	load_line(hw, 128, 128, out);
	load_line(hw, 128, 2048, out);
	load_line(hw, 1000, 1000, out);
	load_line(hw, 2048, 128, out);
}
