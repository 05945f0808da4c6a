/* SPDX-License-Identifier: Apache-2.0 */
/* rules_server.c - see rules.h: arguments of one server that do not go together. */
#include <math.h>

#include "engine/args.h"
#include "experiment/rules.h"

/* ---- the scheduler ---- */

static void batch_holds_a_prompt(const struct rules *q, size_t i)
{
	double tokens = rules_number(q, i, "max_num_batched_tokens");
	double length = rules_number(q, i, "max_model_len");
	const struct json_value *chunked = json_get(q->r->x->server[i].values,
						    "enable_chunked_prefill");

	/* Unset it is on, wherever the model allows it. */
	if (tokens < length && chunked && chunked->kind == JSON_FALSE)
		rules_refuse(q, i, rules_given(q, i, "max_num_batched_tokens") ?
			     "max_num_batched_tokens" : "max_model_len",
			     "max_num_batched_tokens (%.0f) must be at least max_model_len (%.0f) where "
			     "enable_chunked_prefill is false", tokens, length);
}

static void batch_holds_its_requests(const struct rules *q, size_t i)
{
	double tokens = rules_number(q, i, "max_num_batched_tokens");
	double seqs = rules_number(q, i, "max_num_seqs");

	if (seqs > tokens && rules_given(q, i, "max_num_seqs"))
		rules_refuse(q, i, "max_num_seqs", "%.0f is more than max_num_batched_tokens (%.0f): "
			     "each running request takes a token of every step", seqs, tokens);
}

/* ---- LoRA ---- */

static void loras_are_enabled(const struct rules *q, size_t i)
{
	static const char *const keys[] = {
		"max_loras", "max_lora_rank", "max_cpu_loras", "fully_sharded_loras", "lora_dtype",
		"lora_modules", "default_mm_loras", "lora_extra_vocab_size", "enable_lora_bias",
	};

	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		if (json_get(q->r->x->server[i].args, keys[k]) &&
		    !rules_is_on(q, i, "enable_lora"))
			rules_refuse(q, i, keys[k], "it needs enable_lora: true");
}

static void loras_fit(const struct rules *q, size_t i)
{
	double cpu = rules_number(q, i, "max_cpu_loras"), gpu = rules_number(q, i, "max_loras");

	if (cpu < gpu)
		rules_refuse(q, i, "max_cpu_loras", "%.0f is less than max_loras (%.0f)", cpu, gpu);
}

/* ---- speculative decoding ---- */

static void drafts_are_told(const struct rules *q, size_t i)
{
	const struct json_value *v = json_get(q->r->x->server[i].args, "speculative_config");
	const struct json_value *n;

	if (!v || v->kind != JSON_OBJECT)
		return;
	n = config_get(v, "num_speculative_tokens");
	if (n && (n->kind != JSON_INT || n->integer < 1))
		config_complain(q->r->c, q->r->f, rules_given(q, i, "speculative_config"),
				rules_path(q, i, "speculative_config.num_speculative_tokens"),
				"expected an integer of at least 1, got %s", config_got(n, q->r->a));
	if (!n && str_is(json_text(config_get(v, "method"), STR("")), "ngram"))
		rules_refuse(q, i, "speculative_config", "method ngram needs num_speculative_tokens: "
			     "there is no draft model that says how many");
	if (!config_get(v, "method") && !config_get(v, "model"))
		rules_note(q, i, "speculative_config", "neither method nor model: nothing says who "
			   "drafts");
}

/* ---- experts ---- */

/* Parts of names of models whose layers are experts; "A3B": active parameters. */
static bool looks_like_experts(const char *model)
{
	static const char *const parts[] = {
		"moe", "mixtral", "deepseek-v2", "deepseek-v3", "deepseek-r1", "deepseek-coder-v2",
		"dbrx", "gpt-oss", "grok", "jamba", "llama-4", "kimi-k2", "glm-4.5", "glm-4.6",
		"minimax", "arctic", "hunyuan-a", "ernie-4.5", "qwen3-next", "longcat", "step3",
	};
	size_t n = strlen(model);

	for (size_t k = 0; k < sizeof(parts) / sizeof(*parts); k++)
		if (strcasestr(model, parts[k]))
			return true;
	for (size_t k = 0; k + 2 < n; k++) {
		size_t digits = strspn(model + k + 1, "0123456789.");

		if (strchr("-_", model[k ? k - 1 : 0]) && strchr("Aa", model[k]) && digits &&
		    strchr("Bb", model[k + 1 + digits]) && model[k + 1 + digits])
			return true;
	}
	return false;
}

static void experts_are_there(const struct rules *q, size_t i)
{
	const char *model = json_text(json_get(q->r->x->server[i].values, "model"),
				      (struct str){ 0 }).p;

	if (rules_is_on(q, i, "enable_expert_parallel") && model && !looks_like_experts(model))
		rules_note(q, i, "enable_expert_parallel", "%.200s does not look like a model of "
			   "experts; others are refused with it", model);
}

/* ---- the device ---- */

static void blocks_are_whole(const struct rules *q, size_t i)
{
	double block = rules_number(q, i, "block_size");

	if (rules_given(q, i, "block_size") && fmod(block, 8) != 0 && block != 1)
		rules_refuse(q, i, "block_size", "expected 1 or a multiple of 8, got %.0f", block);
}

static void cache_fits_device(const struct rules *q, size_t i)
{
	const struct config_know *know = q->r->know;
	struct str dtype = json_text(json_get(q->r->x->server[i].args, "kv_cache_dtype"), STR(""));
	double block = rules_number(q, i, "block_size");
	bool is_cuda = know->compute_capability != 0;

	if (str_starts(dtype, STR("fp8")) && is_cuda && know->compute_capability < 89)
		rules_note(q, i, "kv_cache_dtype", "%.*s on a GPU of compute capability %u.%u, which "
			   "has no such numbers; from 8.9 on they are computed with", (int)dtype.n,
			   dtype.p, know->compute_capability / 10, know->compute_capability % 10);
	if (str_starts(dtype, STR("fp8")) && know->is_gpus_known && know->n_gpus == 0)
		rules_note(q, i, "kv_cache_dtype", "%.*s needs a GPU, and none may be used here",
			   (int)dtype.n, dtype.p);
	if (rules_given(q, i, "block_size") && is_cuda && block > 32)
		rules_note(q, i, "block_size", "few attention kernels take more than 32 on CUDA, got "
			   "%.0f", block);
}

static void memory_is_free(const struct rules *q, size_t i)
{
	const struct json_value *v = config_get(config_get(q->tree, "resources"), "memory_free");
	double want = rules_number(q, i, "gpu_memory_utilization");

	if (v && rules_given(q, i, "gpu_memory_utilization") && want > json_real(v, 1))
		rules_note(q, i, "gpu_memory_utilization", "%g of a GPU, and resources.memory_free "
			   "lets one be taken of which %g are free", want, json_real(v, 1));
}

/* Its own word on GPUs against the sizes; several nodes share them out otherwise. */
static void gpus_are_enough(const struct rules *q, size_t i)
{
	const struct experiment_server *s = &q->r->x->server[i];
	double need = fmax(1, rules_number(q, i, "tensor_parallel_size")) *
		      fmax(1, rules_number(q, i, "pipeline_parallel_size"));
	double copies = rules_number(q, i, "data_parallel_size_local");
	double nodes = rules_number(q, i, "nnodes");

	if (isnan(copies))
		copies = rules_number(q, i, "data_parallel_size");
	need *= fmax(1, copies);
	if (rules_given(q, i, "gpus") && s->gpus && need > s->gpus && !(nodes > 1))
		rules_refuse(q, i, "gpus", "%u, and tensor x pipeline x data parallel size is %.0f",
			     s->gpus, need);
}

/* What a server sees is set to what was allocated. A container counts its own GPUs. */
static void gpus_are_allocated(const struct rules *q, size_t i)
{
	static const char *const names[] = {
		"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES",
	};
	const struct experiment_server *s = &q->r->x->server[i];
	const struct json_value *env = rules_given(q, i, "env"), *v;

	for (size_t k = 0; !s->url && !s->container && k < sizeof(names) / sizeof(*names); k++) {
		v = config_get(env, names[k]);
		if (v)
			config_complain(q->r->c, q->r->f, v,
					config_path(q->r, rules_path(q, i, "env"), str_of(names[k])),
					"profllm sets this variable to the GPUs that it allocates; use "
					"resources.gpus, a list such as [2, 3], to say which");
	}
}

/* ---- roles ---- */

static void knows_its_peer(const struct rules *q, size_t i)
{
	const struct experiment_server *s = &q->r->x->server[i];
	const struct json_value *kv = json_get(s->args, "kv_transfer_config");
	struct str role = json_text(json_get(kv, "kv_role"), STR(""));
	const char *wrong = s->role == ROLE_PREFILL ? "kv_consumer" : "kv_producer";

	if (s->role != ROLE_PREFILL && s->role != ROLE_DECODE)
		return;
	if (!kv)
		rules_note(q, i, "kv_transfer_config", "not given: a server of role %s cannot hand "
			   "its cache over without it", server_role_name(s->role));
	else if (str_is(role, wrong))
		rules_note(q, i, "kv_transfer_config", "kv_role is %s in a server of role %s", wrong,
			   server_role_name(s->role));
}

static void is_started_by_us(const struct rules *q, size_t i)
{
	static const char *const keys[] = { "env", "extra_args", "gpus", "ready", "after", "port",
					    "host", "grace_s", "container" };

	if (!q->r->x->server[i].url)
		return;
	for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++)
		if (rules_given(q, i, keys[k]))
			rules_note(q, i, keys[k], "no effect on a server that runs already");
}

server_rule *const rules_of_servers[] = {
	batch_holds_a_prompt, batch_holds_its_requests, blocks_are_whole, drafts_are_told,
	gpus_are_allocated,
	is_started_by_us, NULL,
};
server_rule *const rules_of_engines[] = {
	loras_are_enabled, loras_fit, experts_are_there, cache_fits_device, memory_is_free,
	gpus_are_enough, knows_its_peer, NULL,
};
