/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - see fit.h. */
#include "experiment/fit.h"

#include <string.h>

#define BATCHED_TOKENS 8192
#define SEQS 256
#define MAX_SIZE 1e12 /* of one figure in a config.json: products of four stay finite */

/* The first of the names (NULL-ended) that is a number of sense; else otherwise. */
static int64_t number(const struct json_value *v, const char *const *name, int64_t otherwise)
{
	for (; *name; name++) {
		double n = json_real(json_get(v, *name), -1);

		if (n >= 0 && n <= MAX_SIZE)
			return (int64_t)n;
	}
	return otherwise;
}
#define NUMBER(v, otherwise, ...) number(v, (const char *const[]){ __VA_ARGS__, NULL }, otherwise)

/* Models of several parts keep the language model's sizes in an object of their own. */
static const struct json_value *language_part(const struct json_value *config)
{
	static const char *const part[] = {
		"text_config", "llm_config", "language_config", "thinker_config", "decoder",
	};

	for (size_t i = 0; i < sizeof(part) / sizeof(*part); i++) {
		const struct json_value *v = json_get(config, part[i]);

		if (v && json_get(v, "text_config"))
			v = json_get(v, "text_config");
		if (v && (json_get(v, "hidden_size") || json_get(v, "num_hidden_layers")))
			return v;
	}
	return config;
}

/* Bits of a weight by quantization_config, 0: not quantised. */
static double quantised_bits(const struct json_value *config)
{
	const struct json_value *q = json_get(config, "quantization_config");
	struct str method = json_text(json_get(q, "quant_method"), STR(""));
	const struct json_value *groups = json_get(q, "config_groups");
	double bits = json_real(json_get(q, "bits"), json_real(json_get(q, "w_bit"), 0));

	if (!q || q->kind != JSON_OBJECT)
		return 0;
	if (groups && groups->kind == JSON_OBJECT && groups->count)
		bits = json_real(json_get(json_get(&groups->item[0], "weights"), "num_bits"), bits);
	if (bits <= 0 && json_bool(json_get(q, "load_in_4bit"), false))
		bits = 4;
	if (bits <= 0)
		bits = str_is(method, "mxfp4") || str_is(method, "nvfp4") ? 4 : 8;
	/* Scales and zero points of groups of 128 or 32 values. */
	return bits < 8 ? bits + 0.25 : bits;
}

int fit_model_read(const struct json_value *config, struct fit_model *m, struct err *e)
{
	const struct json_value *v;
	double bits;

	memset(m, 0, sizeof(*m));
	if (!config || config->kind != JSON_OBJECT)
		return err_set(e, ERR_PARSE, "config.json: an object was expected");
	v = language_part(config);
	m->layers = NUMBER(v, 0, "num_hidden_layers", "n_layer", "num_layers", "n_layers");
	m->hidden = NUMBER(v, 0, "hidden_size", "n_embd", "d_model");
	m->heads = NUMBER(v, 0, "num_attention_heads", "n_head", "n_heads");
	m->vocabulary = NUMBER(v, NUMBER(config, 0, "vocab_size"), "vocab_size");
	if (!m->layers || !m->hidden || !m->heads || !m->vocabulary)
		return err_set(e, ERR_PARSE, "config.json does not say how many layers, heads and tokens "
			       "of which size the model has");
	m->intermediate = NUMBER(v, 4 * m->hidden, "intermediate_size", "n_inner", "ffn_dim");
	m->kv_heads = NUMBER(v, m->heads, "num_key_value_heads", "num_kv_heads");
	m->head_size = NUMBER(v, m->hidden / m->heads, "head_dim");
	m->experts = NUMBER(v, 0, "num_local_experts", "num_experts", "n_routed_experts");
	m->expert_intermediate = NUMBER(v, m->intermediate, "moe_intermediate_size");
	m->dense_layers = NUMBER(v, 0, "first_k_dense_replace");
	m->shared_experts = NUMBER(v, 0, "n_shared_experts");
	m->kv_lora_rank = NUMBER(v, 0, "kv_lora_rank");
	m->rope_head_size = NUMBER(v, 0, "qk_rope_head_dim");
	m->max_len = NUMBER(v, 0, "max_position_embeddings", "n_positions", "max_seq_len");
	m->is_tied = json_bool(json_get(v, "tie_word_embeddings"),
			       json_bool(json_get(config, "tie_word_embeddings"), false));
	m->other_bits = 16; /* engines run float32 checkpoints in 16 bits, too */
	bits = quantised_bits(config);
	m->weight_bits = bits > 0 ? bits : 16;
	return 0;
}

/* Parameters of all layers, and of embeddings and the output layer. */
static double layer_params(const struct fit_model *m)
{
	double h = (double)m->hidden, q = (double)(m->heads * m->head_size);
	double kv = (double)(m->kv_heads * m->head_size), attention, mlp, moe;
	double dense = m->experts ? (double)m->dense_layers : (double)m->layers;

	attention = m->kv_lora_rank ?
		h * (double)(m->kv_lora_rank + m->rope_head_size) + 2 * h * q +
			(double)m->kv_lora_rank * 2 * q : 2 * h * q + 2 * h * kv;
	mlp = 3 * h * (double)m->intermediate;
	moe = 3 * h * (double)m->expert_intermediate * (double)(m->experts + m->shared_experts) +
		h * (double)m->experts;
	return (double)m->layers * attention + dense * mlp + ((double)m->layers - dense) * moe;
}

static double or_default(int64_t given, double otherwise)
{
	return given > 0 ? (double)given : otherwise;
}

void fit_estimate(const struct fit_model *m, const struct fit_how *how, struct fit *f)
{
	double tp = or_default(how->tp, 1), pp = or_default(how->pp, 1);
	double embedding = (double)m->vocabulary * (double)m->hidden * (m->is_tied ? 1 : 2);
	double in_layers = layer_params(m), bits = how->weight_bits > 0 ? how->weight_bits :
		m->weight_bits;
	double kv_bits = how->kv_bits > 0 ? how->kv_bits : 16, free_bytes, tokens, logits;
	double heads_share = m->kv_lora_rank ? 1 : (double)m->kv_heads < tp ?
		1 / (double)(m->kv_heads ? m->kv_heads : 1) : 1 / tp;

	memset(f, 0, sizeof(*f));
	f->params = in_layers + embedding;
	f->weights_bytes = how->weight_bytes > 0 && how->weight_bits <= 0 ? how->weight_bytes :
		in_layers * bits / 8 + embedding * m->other_bits / 8;
	f->weights_bytes = f->weights_bytes / (tp * pp) - how->cpu_offload_bytes;
	if (f->weights_bytes < 0)
		f->weights_bytes = 0;
	tokens = or_default(how->batched_tokens, BATCHED_TOKENS);
	logits = or_default(how->seqs, SEQS) * (double)m->vocabulary * 4 / tp;
	f->overhead_bytes = FIT_LIBRARY_BYTES +
		tokens * (double)m->hidden * 2 * FIT_LIVE * (0.5 + 0.5 / tp) + logits;
	f->kv_token_bytes = m->kv_lora_rank ?
		(double)m->layers * (double)(m->kv_lora_rank + m->rope_head_size) * kv_bits / 8 :
		2 * (double)m->layers * (double)(m->kv_heads * m->head_size) * kv_bits / 8;
	f->kv_token_bytes *= heads_share / pp;
	free_bytes = how->memory_bytes * how->utilization - f->weights_bytes - f->overhead_bytes;
	f->kv_bytes = how->kv_bytes > 0 ? how->kv_bytes : free_bytes > 0 ? free_bytes : 0;
	f->kv_tokens = f->kv_token_bytes > 0 ? f->kv_bytes / f->kv_token_bytes : 0;
	f->max_len = how->max_len > 0 ? how->max_len : m->max_len;
	f->is_fitting = free_bytes > 0 && f->kv_bytes <= free_bytes &&
		f->kv_tokens >= (double)f->max_len;
}
