/* SPDX-License-Identifier: Apache-2.0 */
/* hardware.c - see hardware.h: the known GPUs and models, planning, --explain. */
#include "sim/model/hardware.h"

#include <assert.h>
#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/mem.h"
#include "core/stats/stats.h"

#define HOPPER .flops = 989.4e12, .flops8 = 1978.9e12, .weights_share = 0.92, .kv_share = 0.90, \
	.flops_share = 0.62, .flops8_share = 0.53, .link = 450e9, .link_s = 8e-6, \
	.step_s = 0.25e-3, .launch_layer_s = 0.26e-3, .pcie = 55e9

static const struct gpu_model gpus[] = {
	{ .name = "h100-80gb", .memory_gib = 79.1, .bandwidth = 3.35e12, HOPPER },
	{ .name = "h200-141gb", .memory_gib = 139.8, .bandwidth = 4.8e12, HOPPER },
	{ .name = "a100-80gb", .memory_gib = 79.2, .bandwidth = 2.039e12, .flops = 312e12,
	  .weights_share = 0.77, .kv_share = 0.75, .flops_share = 0.60, .link = 300e9,
	  .link_s = 10e-6, .step_s = 0.4e-3, .launch_layer_s = 0.3e-3, .pcie = 25e9,
	  .is_small_default = true },
	{ .name = "l4-24gb", .memory_gib = 22.0, .bandwidth = 0.3e12, .flops = 121e12,
	  .flops8 = 242.5e12, .weights_share = 0.85, .kv_share = 0.75, .flops_share = 0.5,
	  .flops8_share = 0.45, .link = 20e9, .link_s = 30e-6, .step_s = 0.4e-3,
	  .launch_layer_s = 0.3e-3, .pcie = 25e9 },
	{ .name = "mi300x-192gb", .memory_gib = 192.0, .bandwidth = 5.3e12, .flops = 1307.4e12,
	  .flops8 = 2614.9e12, .weights_share = 0.75, .kv_share = 0.65, .flops_share = 0.45,
	  .flops8_share = 0.4, .link = 448e9, .link_s = 12e-6, .step_s = 0.4e-3,
	  .launch_layer_s = 0.3e-3, .pcie = 55e9 },
	{ .name = "b200-192gb", .memory_gib = 178.4, .bandwidth = 8e12, .flops = 2250e12,
	  .flops8 = 4500e12, .flops4 = 9000e12, .weights_share = 0.85, .kv_share = 0.8,
	  .flops_share = 0.6, .flops8_share = 0.45, .link = 900e9, .link_s = 7e-6,
	  .step_s = 0.25e-3, .launch_layer_s = 0.25e-3, .pcie = 55e9 },
};

static const struct model_shape shapes[] = {
	{ "llama-3.1-8b", "llama-3.1-8b", 32, 4096, 14336, 32, 8, 128, 128256, 1, 1, 131072 },
	{ "llama-3.1-70b", "llama-3.1-70b", 80, 8192, 28672, 64, 8, 128, 128256, 1, 1, 131072 },
	{ "llama-3.1-70b", "llama-3.3-70b", 80, 8192, 28672, 64, 8, 128, 128256, 1, 1, 131072 },
	{ "qwen3-8b", "qwen3-8b", 36, 4096, 12288, 32, 8, 128, 151936, 1, 1, 40960 },
	{ "qwen2.5-7b", "qwen2.5-7b", 28, 3584, 18944, 28, 4, 128, 152064, 1, 1, 32768 },
	{ "qwen3-30b-a3b", "qwen3-30b-a3b", 48, 2048, 768, 32, 4, 128, 151936, 128, 8, 40960 },
	{ "mixtral-8x7b", "mixtral-8x7b", 32, 4096, 14336, 32, 8, 128, 32000, 8, 2, 32768 },
};

/* vLLM's names; scales of groups are part of the bits. */
static const struct quantization quantizations[] = {
	{ "fp8", 8, 8 }, { "fbgemm_fp8", 8, 8 }, { "ptpc_fp8", 8, 8 }, { "modelopt", 8, 8 },
	{ "experts_int8", 8, 16 }, { "awq", 4.25, 16 }, { "awq_marlin", 4.25, 16 },
	{ "gptq", 4.25, 16 }, { "gptq_marlin", 4.25, 16 }, { "bitsandbytes", 4.5, 16 },
	{ "mxfp4", 4.25, 16 }, { "modelopt_fp4", 4.5, 4 },
};

/* Meanings of parts of models' names. */
static const struct { const char *part, *name; } named[] = {
	{ "nvfp4", "modelopt_fp4" }, { "fp8", "fp8" }, { "awq", "awq" }, { "gptq", "gptq" },
	{ "-fp4", "modelopt_fp4" }, { "w4a16", "gptq" }, { "int4", "gptq" },
};

const char *const hardware_gpus[] = {
	"h100-80gb", "h200-141gb", "a100-80gb", "l4-24gb", "mi300x-192gb", "b200-192gb", NULL,
};

const char *const hardware_shapes[] = {
	"llama-3.1-8b", "llama-3.1-70b", "qwen3-8b", "qwen2.5-7b", "qwen3-30b-a3b", "mixtral-8x7b",
	NULL,
};

#define COUNT(a) (sizeof(a) / sizeof(*(a)))

const struct gpu_model *hardware_gpu(const char *name)
{
	for (size_t i = 0; i < COUNT(gpus); i++)
		if (strcmp(gpus[i].name, name) == 0)
			return &gpus[i];
	return NULL;
}

const struct model_shape *hardware_shape(const char *name)
{
	for (size_t i = 0; i < COUNT(shapes); i++)
		if (strcmp(shapes[i].name, name) == 0)
			return &shapes[i];
	return NULL;
}

/* Whether text contains part, ignoring case; part is in lower case. */
static bool has_part(const char *text, const char *part)
{
	size_t n = strlen(part);

	for (; *text; text++) {
		size_t i = 0;

		while (i < n && tolower((unsigned char)text[i]) == part[i])
			i++;
		if (i == n)
			return true;
	}
	return false;
}

const struct model_shape *hardware_shape_of(const char *model)
{
	for (size_t i = 0; i < COUNT(shapes); i++)
		if (has_part(model, shapes[i].like))
			return &shapes[i];
	return NULL;
}

static const struct quantization *hardware_quantization(const char *name)
{
	for (size_t i = 0; i < COUNT(quantizations); i++)
		if (strcmp(quantizations[i].name, name) == 0)
			return &quantizations[i];
	return NULL;
}

const struct quantization *hardware_quantization_of(const char *model)
{
	for (size_t i = 0; i < COUNT(named); i++)
		if (has_part(model, named[i].part))
			return hardware_quantization(named[i].name);
	return NULL;
}

/* Experts are many small matrices: their arithmetic against that of large ones, and routing. */
#define EXPERTS_SHARE 0.25
#define EXPERTS_LAYER_S 60e-6
/* Attention over prompts against the matrices of the same GPU. */
#define ATTENTION_SHARE 0.75
/* The CPU's part of a step; in vLLM scheduling, inputs and outputs. */
#define CPU_STEP_S 0.5e-3
#define CPU_SEQ_S 6e-6
#define PIPELINE_HOP_S 50e-6
/* Starting. */
#define DISK_BYTES_PER_S 2.5e9
#define DUMMY_LOAD_S 0.5
#define PROFILE_S 2.0
#define COMPILE_LAYER_S 0.5
#define CAPTURE_S 6.0
/* Drafts: looking them up; launching one layer for each; a model for each, against its target. */
#define DRAFT_LOOKUP_S 0.1e-3
#define DRAFT_LAUNCH_S 60e-6
#define DRAFT_MODEL_SHARE 0.1

/* ---- parameters ---- */

static double attention_params(const struct model_shape *s)
{
	return 2.0 * s->hidden * s->head_size * (s->heads + s->kv_heads);
}

static double expert_params(const struct model_shape *s)
{
	return 3.0 * s->hidden * s->intermediate;
}

static double output_params(const struct model_shape *s)
{
	return (double)s->vocabulary * s->hidden;
}

static double layers_params(const struct model_shape *s)
{
	return s->layers * (attention_params(s) + s->experts * expert_params(s));
}

/* ---- what is asked for ---- */

static int64_t or_default(int64_t given, int64_t other)
{
	return given ? given : other;
}

/* As vLLM 0.32.0's server chooses by the GPU. */
static void defaults_fill(struct sim_hardware *hw)
{
	struct hardware_opts *o = &hw->opts;
	bool is_huge = hw->gpu->memory_gib >= 160;
	bool is_large = hw->gpu->memory_gib >= 70 && !hw->gpu->is_small_default;
	bool is_seqs_given = o->max_num_seqs > 0;

	o->max_model_len = or_default(o->max_model_len, hw->shape->max_model_len);
	o->max_num_batched_tokens = or_default(o->max_num_batched_tokens, is_huge ? 16384 :
					       is_large ? 8192 : 2048);
	o->max_num_seqs = or_default(o->max_num_seqs, is_huge || is_large ? 1024 : 256);
	if (!is_seqs_given && o->max_num_seqs > o->max_num_batched_tokens)
		o->max_num_seqs = o->max_num_batched_tokens;
}

static int names_find(struct sim_hardware *hw, struct err *e)
{
	const struct hardware_opts *o = &hw->opts;

	hw->gpu = hardware_gpu(o->gpu ? o->gpu : hardware_gpus[0]);
	if (!hw->gpu)
		return err_set(e, ERR_USAGE, "--gpu: there is no preset '%s'", o->gpu);
	if (o->shape)
		hw->shape = hardware_shape(o->shape);
	else
		hw->shape = o->model ? hardware_shape_of(o->model) : NULL;
	if (o->shape && !hw->shape)
		return err_set(e, ERR_USAGE, "--model-shape: there is no preset '%s'", o->shape);
	if (!hw->shape)
		hw->shape = hardware_shape(hardware_shapes[0]);
	return 0;
}

static int sizes_check(const struct sim_hardware *hw, struct err *e)
{
	const struct hardware_opts *o = &hw->opts;

	if (hw->shape->heads % o->tp)
		return err_set(e, ERR_RUN, "Total number of attention heads (%d) must be divisible "
			       "by tensor parallel size (%" PRId64 ").", hw->shape->heads, o->tp);
	if (hw->shape->layers < o->pp)
		return err_set(e, ERR_RUN, "--pipeline-parallel-size %" PRId64 ": the model has %d "
			       "layers", o->pp, hw->shape->layers);
	if (o->is_prompt_whole && o->max_num_batched_tokens < o->max_model_len)
		return err_set(e, ERR_RUN, "max_num_batched_tokens (%" PRId64 ") is smaller than "
			       "max_model_len (%" PRId64 "): without chunked prefill every prompt "
			       "must fit one step", o->max_num_batched_tokens, o->max_model_len);
	if (o->max_num_batched_tokens < o->max_num_seqs)
		return err_set(e, ERR_RUN, "max_num_batched_tokens (%" PRId64 ") must be greater than "
			       "or equal to max_num_seqs (%" PRId64 ").", o->max_num_batched_tokens,
			       o->max_num_seqs);
	return 0;
}

/* ---- formats ---- */

struct formats {
	double weight_bits, base_bytes, kv_bytes; /* of a parameter, activation, cached entry */
	double layer_flops, base_flops;           /* achieved, a second */
};

static double base_bytes_of(const char *dtype)
{
	return dtype && (strcmp(dtype, "float32") == 0 || strcmp(dtype, "float") == 0) ? 4 : 2;
}

/* 0: no such format. */
static double kv_bytes_of(const char *dtype, double base_bytes)
{
	if (!dtype || strcmp(dtype, "auto") == 0)
		return base_bytes;
	if (strcmp(dtype, "bfloat16") == 0 || strcmp(dtype, "float16") == 0)
		return 2;
	if (strncmp(dtype, "fp8", 3) == 0 || strncmp(dtype, "int8", 4) == 0)
		return 1;
	if (strncmp(dtype, "nvfp4", 5) == 0)
		return 0.5625; /* with a scale for every 16 values */
	return 0;
}

/* Arithmetic with that many bits, if the GPU has it; otherwise weights are widened first. */
static double flops_of(const struct gpu_model *g, int bits)
{
	if (bits == 4 && g->flops4 > 0)
		return g->flops4 * g->flops8_share;
	if (bits <= 8 && g->flops8 > 0)
		return g->flops8 * g->flops8_share;
	return g->flops * g->flops_share;
}

static int formats_find(const struct sim_hardware *hw, struct formats *f, struct err *e)
{
	const struct hardware_opts *o = &hw->opts;
	const struct quantization *q = NULL;

	f->base_bytes = base_bytes_of(o->dtype);
	f->kv_bytes = kv_bytes_of(o->kv_cache_dtype, f->base_bytes);
	if (f->kv_bytes <= 0)
		return err_set(e, ERR_USAGE, "--kv-cache-dtype %s: not one of the formats that are "
			       "modelled: auto, bfloat16, float16, fp8..., int8..., nvfp4...",
			       o->kv_cache_dtype);
	if (o->quantization)
		q = hardware_quantization(o->quantization);
	else if (o->model)
		q = hardware_quantization_of(o->model);
	if (o->quantization && !q)
		return err_set(e, ERR_USAGE, "--quantization %s: not one of those that are modelled: "
			       "fp8, modelopt, awq, gptq, bitsandbytes, mxfp4, modelopt_fp4 ...",
			       o->quantization);
	f->weight_bits = q ? q->bits : 8 * f->base_bytes;
	f->base_flops = flops_of(hw->gpu, 16) * 2 / f->base_bytes;
	f->layer_flops = q && q->compute < 16 ? flops_of(hw->gpu, q->compute) : f->base_flops;
	return 0;
}

/* ---- memory ---- */

static double per_gpu(const struct hardware_opts *o)
{
	return (double)o->tp * (double)o->pp;
}

static double weights_bytes(const struct sim_hardware *hw, const struct formats *f)
{
	const struct hardware_opts *o = &hw->opts;
	/* The embedding is on the first stage, the output layer on the last. */
	double ends = output_params(hw->shape) * f->base_bytes * (o->pp > 1 ? 1 : 2);

	return layers_params(hw->shape) * f->weight_bits / 8 / per_gpu(o) + ends / (double)o->tp;
}

static double activation_bytes(const struct sim_hardware *hw, const struct formats *f)
{
	const struct hardware_opts *o = &hw->opts;
	const struct model_shape *s = hw->shape;
	/* Gate, up and their product. */
	double wide = 3.0 * s->intermediate * s->experts_used / (double)o->tp;
	double token = (wide + 6.0 * s->hidden) * f->base_bytes;
	double logits = 2.0 * 4 * s->vocabulary * (double)o->max_num_seqs; /* with probabilities */

	return token * (double)o->max_num_batched_tokens + logits +
	       HARDWARE_LIBRARY_BYTES * (o->tp > 1 ? 2 : 1);
}

static double kv_token_bytes(const struct sim_hardware *hw, const struct formats *f)
{
	const struct hardware_opts *o = &hw->opts;
	const struct model_shape *s = hw->shape;
	double heads = fmax(1, (double)s->kv_heads / (double)o->tp);
	double layers = ceil((double)s->layers / (double)o->pp);

	return 2 * layers * heads * s->head_size * f->kv_bytes;
}

/* There must be room for the longest request. */
static int kv_check(struct sim_hardware *hw, struct err *e)
{
	struct hardware_opts *o = &hw->opts;
	double needed = (double)o->max_model_len * hw->kv_token_bytes;
	int64_t fits = (int64_t)(hw->kv_bytes / hw->kv_token_bytes) / o->block_size * o->block_size;

	if (hw->kv_bytes <= 0)
		return err_set(e, ERR_RUN, "ValueError: No available memory for the cache blocks. "
			       "%.2f GiB of weights and %.2f GiB of activations leave nothing of "
			       "%.2f x %.2f GiB; try increasing `gpu_memory_utilization`",
			       hw->weights_bytes / GIB, hw->activation_bytes / GIB, o->utilization,
			       hw->gpu->memory_gib);
	if (o->is_len_auto && fits > 0 && fits < o->max_model_len)
		o->max_model_len = fits;
	if (needed <= hw->kv_bytes || o->is_len_auto)
		return 0;
	return err_set(e, ERR_RUN, "ValueError: To serve at least one request with the model's max "
		       "seq len (%" PRId64 "), (%.2f GiB KV cache is needed, which is larger than "
		       "the available KV cache memory (%.2f GiB). Based on the available memory, the "
		       "estimated maximum model length is %" PRId64 ".", o->max_model_len,
		       needed / GIB, hw->kv_bytes / GIB, fits);
}

static int memory_plan(struct sim_hardware *hw, const struct formats *f, struct err *e)
{
	const struct hardware_opts *o = &hw->opts;
	double memory = hw->gpu->memory_gib * GIB;

	hw->weights_bytes = weights_bytes(hw, f);
	hw->activation_bytes = activation_bytes(hw, f);
	hw->kv_token_bytes = kv_token_bytes(hw, f);
	hw->offload_bytes = fmin(o->offload_gib * GIB,
				 layers_params(hw->shape) * f->weight_bits / 8 / per_gpu(o));
	if (hw->weights_bytes - hw->offload_bytes > memory)
		return err_set(e, ERR_RUN, "torch.OutOfMemoryError: CUDA out of memory. Tried to "
			       "allocate %.2f MiB. GPU 0 has a total capacity of %.2f GiB; the "
			       "model's weights need %.2f GiB of each GPU", layers_params(hw->shape) *
			       f->weight_bits / 8 / per_gpu(o) / hw->shape->layers / (1 << 20),
			       hw->gpu->memory_gib, hw->weights_bytes / GIB);
	hw->kv_bytes = o->kv_bytes > 0 ? o->kv_bytes :
		       memory * o->utilization - (hw->weights_bytes - hw->offload_bytes) -
		       hw->activation_bytes;
	if (o->blocks)
		hw->kv_bytes = (double)(o->blocks * o->block_size) * hw->kv_token_bytes;
	if (kv_check(hw, e) < 0)
		return -1;
	hw->blocks = (int64_t)(hw->kv_bytes / hw->kv_token_bytes) / o->block_size / o->pp;
	hw->kv_tokens = hw->blocks * o->block_size;
	return 0;
}

/* ---- time ---- */

static double draft_s(const struct sim_hardware *hw, const struct roofline *r)
{
	const struct hardware_opts *o = &hw->opts;
	const char *method = o->draft_method ? o->draft_method : "ngram";
	double layer_s = r->dense_s / hw->shape->layers + DRAFT_LAUNCH_S;

	if (o->drafted == 0)
		return 0;
	if (strncmp(method, "ngram", 5) == 0 || strcmp(method, "suffix") == 0)
		return DRAFT_LOOKUP_S;
	if (strcmp(method, "draft_model") == 0)
		return (double)o->drafted * (DRAFT_MODEL_SHARE * r->dense_s + DRAFT_LAUNCH_S);
	return (double)o->drafted * layer_s; /* eagle, mtp, medusa: a layer of its own */
}

static void roofline_fill(struct sim_hardware *hw, const struct formats *f)
{
	const struct hardware_opts *o = &hw->opts;
	const struct model_shape *s = hw->shape;
	const struct gpu_model *g = hw->gpu;
	struct roofline *r = &hw->cost.roof;
	double tp = (double)o->tp, read = g->bandwidth * g->weights_share * tp;
	double bytes = f->weight_bits / 8, reduces = o->tp > 1 ? 2.0 * s->layers : 0;
	bool is_mixed = s->experts > 1;
	double expert = s->layers * expert_params(s), rest = s->layers * attention_params(s);
	double active = rest + s->experts_used * expert / (is_mixed ? EXPERTS_SHARE : 1);

	r->dense_s = ((rest + (is_mixed ? 0 : expert)) * bytes +
		      output_params(s) * f->base_bytes) / read;
	r->experts_s = is_mixed ? s->experts * expert * bytes / read : 0;
	r->expert_share = (double)s->experts_used / s->experts;
	r->token_s = 2 * active / (f->layer_flops * tp);
	r->sample_s = 2 * output_params(s) / (f->base_flops * tp);
	r->context_s = hw->kv_token_bytes * (double)o->pp / (g->bandwidth * g->kv_share);
	r->pair_s = 4.0 * s->layers * s->heads * s->head_size /
		    (f->base_flops * ATTENTION_SHARE * tp);
	r->reduce_step_s = reduces * g->link_s;
	r->reduce_token_s = reduces * s->hidden * f->base_bytes * 2 * (tp - 1) / tp / g->link;
	r->step_s = g->step_s + (double)(o->pp - 1) * PIPELINE_HOP_S +
		    (is_mixed ? s->layers * EXPERTS_LAYER_S : 0);
	r->launch_s = o->is_eager ? s->layers * g->launch_layer_s : 0;
	r->cpu_step_s = CPU_STEP_S;
	r->cpu_seq_s = CPU_SEQ_S;
	r->is_cpu_hidden = !o->is_sync;
	r->draft_s = draft_s(hw, r);
	/* Offloaded weights are read over the bus in every step, in addition to the others. */
	r->dense_s += hw->offload_bytes / g->pcie;
}

int hardware_plan(const struct hardware_opts *opts, struct sim_hardware *hw, struct err *e)
{
	struct formats f = { 0 };

	*hw = (struct sim_hardware){ .opts = *opts };
	if (names_find(hw, e) < 0 || formats_find(hw, &f, e) < 0)
		return -1;
	defaults_fill(hw);
	if (sizes_check(hw, e) < 0 || memory_plan(hw, &f, e) < 0)
		return -1;
	hw->params = layers_params(hw->shape) + 2 * output_params(hw->shape);
	hw->weight_bits = f.weight_bits;
	roofline_fill(hw, &f);
	hw->load_s = opts->is_dummy ? DUMMY_LOAD_S :
		     hw->weights_bytes * per_gpu(opts) / DISK_BYTES_PER_S;
	hw->compile_s = opts->is_eager ? PROFILE_S :
			PROFILE_S + COMPILE_LAYER_S * hw->shape->layers + CAPTURE_S;
	hw->profile_s = PROFILE_S;
	hw->capture_s = opts->is_eager ? 0 : CAPTURE_S;
	return 0;
}

/* ---- virtual time ---- */

/* Gaps by their length: 64 to a factor of two, from a microsecond on. */

struct virtual_seq {
	struct engine_seq seq;
	int64_t begin_ns, first_ns, last_ns;
	uint32_t done;
};

struct virtual {
	struct sim_engine *g;
	const struct virtual_load *l;
	struct virtual_seq *seq;
	int64_t now_ns;
	size_t begun, ended;
	struct hist gap;
};

static void virtual_begin(struct virtual *v)
{
	struct virtual_seq *s = &v->seq[v->begun++];

	s->seq = (struct engine_seq){ .prompt_left = v->l->prompt, .yield = v->l->yield };
	s->begin_ns = v->now_ns;
	engine_add(v->g, &s->seq);
}

static void virtual_token(struct engine_seq *seq, void *ctx)
{
	struct virtual *v = ctx;
	struct virtual_seq *s = (struct virtual_seq *)seq;
	uint32_t n = s->done && seq->yield ? seq->yield : 1;

	if (s->done == 0) {
		s->first_ns = v->now_ns;
	} else {
		hist_add(&v->gap, v->now_ns - s->last_ns);
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
	r.itl_p99_s = (double)hist_percentile(&v->gap, 99) * 1e-9;
	r.output_tps = (double)n * v->l->output / r.seconds;
	free(ttft);
	return r;
}

struct virtual_result virtual_run(struct sim_engine *g, const struct virtual_load *l)
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

void engine_of_hardware(struct sim_engine *g, const struct sim_hardware *hw)
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

static void step_line(const struct sim_hardware *hw, uint32_t batch, uint32_t context,
		      struct buf *out)
{
	uint32_t drafted = (uint32_t)hw->opts.drafted;
	struct engine_load l = { .decoding = batch, .decode_tokens = batch * (1 + drafted),
				 .sampled = batch, .context_tokens = (double)batch * context };
	double us = engine_cost_us(&hw->cost, &l);

	buf_printf(out, "decode step, batch %-4u %8.2f ms  %8.0f tokens/s (each %u tokens deep)\n",
		   batch, us / 1000, batch / us * 1e6, context);
}

static void prefill_line(const struct sim_hardware *hw, uint32_t tokens, struct buf *out)
{
	struct engine_load l = { .prefill_seqs = 1, .prefill_tokens = tokens, .sampled = 1,
				 .pairs = 0.5 * tokens * tokens };
	double us = engine_cost_us(&hw->cost, &l);

	buf_printf(out, "prefill of %-5u        %8.2f ms  %8.0f tokens/s\n", tokens, us / 1000,
		   tokens / us * 1e6);
}

/* As throughput tables are measured: everything is sent at once. */
static void load_line(const struct sim_hardware *hw, uint32_t prompt, uint32_t output,
		      struct buf *out)
{
	struct virtual_load l = { .prompt = prompt, .output = output, .requests = 3000 };
	struct virtual_result r;
	struct sim_engine g;

	if (prompt + output > hw->opts.max_model_len)
		return;
	engine_of_hardware(&g, hw);
	r = virtual_run(&g, &l);
	engine_release(&g);
	buf_printf(out, "full load, %4u/%-4u            %10.0f output tokens/s, TPOT %.1f ms%s\n", prompt,
		   output, r.output_tps * (double)(hw->opts.pp * hw->opts.dp), r.tpot_mean_s * 1e3,
		   r.preempted ? ", with preemption" : "");
}

void hardware_explain(const struct sim_hardware *hw, struct buf *out)
{
	const struct hardware_opts *o = &hw->opts;
	static const uint32_t batches[] = { 1, 64, 256 };

	assert(hw->gpu && hw->shape);
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
