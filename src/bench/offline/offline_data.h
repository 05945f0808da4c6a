/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offline_data.h - the requests of an offline run: what upstream's throughput and mm-processor
 * commands draw with one function (sweep spec 3.3, steps 1 to 3).
 *
 * A run has one sampler. Its generator is seeded once, with --seed, and continues from the
 * warm-up's requests (drawn first, with seed + 1) to the measured ones, as upstream's global
 * generators do. The same seed gives upstream's prompts, byte for byte.
 *
 * Sets that use the model's chat template take it from --chat-prefix and --chat-suffix if given,
 * else from the tokenizer's files, else from the engine's program, which may have to be started for
 * it (ask). A text that needs a template is never sent without it.
 */
#pragma once
#include <math.h>

#include "bench/offline/offline.h"
#include "input/data/dataset.h"
#include "input/token/tokenizer.h"

/*
 * The requested data; a member of the verbs' options. set holds the lengths in force: rows fill it,
 * then the verb's own rules. random_range_ratio is read by offline_sample.
 */
struct offline_data {
	const char *dataset_name;
	const struct dataset *dataset; /* a set without a name; NULL: the one that dataset_name
				        * names */
	int64_t num_prompts, num_warmups;
	struct dataset_opts set;
};

/* Upstream's defaults of the sets that offline verbs have, for .data.set = { ... }. */
#define OFFLINE_SET_DEFAULTS                                                               \
	.repeat_count = 1, .warmup_pass = "none",                                             \
	.custom_output_len = 256, .spec_bench_output_len = 256,                               \
	.sonnet_input_len = 550, .sonnet_output_len = 150, .sonnet_prefix_len = 200,          \
	.timed_trace_chunk_hash_size = 16, .timed_trace_sec_multiplier = 1,                   \
	.timed_trace_label_timestamp = "timestamp",                                           \
	.timed_trace_label_input_length = "input_length",                                     \
	.timed_trace_label_output_length = "output_length",                                   \
	.timed_trace_label_hash_ids = "hash_ids",                                             \
	.blazedit_max_distance = 1, .asr_max_audio_len_sec = INFINITY,                        \
	.random_input_len = 1024, .random_output_len = 128, .random_range_ratio = "0.0",      \
	.random_batch_size = 1, .random_mm_base_items_per_request = 1,                        \
	.random_mm_limit_mm_per_prompt = { "{\"image\": 255, \"video\": 1}" },                \
	.random_mm_bucket_config =                                                            \
		"{(256, 256, 1): 0.5, (720, 1280, 1): 0.5, (720, 1280, 16): 0.0}",           \
	.prefix_repetition_prefix_len = 256, .prefix_repetition_suffix_len = 256,             \
	.prefix_repetition_num_prefixes = 10, .prefix_repetition_output_len = 128,            \
	.speed_bench_dataset_subset = "qualitative", .speed_bench_output_len = 4096

#define OFFLINE_RANDOM "Random datasets"
#define OFFLINE_HUB "Hub datasets"

/* Check of the row below: ERR_USAGE for values that cannot be read, as in upstream's parser. */
int offline_check_buckets(const struct opt *o, const void *field, struct err *e);

/* The rows of upstream's two groups for random sets. type: the verb's options; set: the member. */
#define OFFLINE_RANDOM_ROWS(type, set)                                                     \
	OPT(type, set.random_input_len, "random-input-len", .group = OFFLINE_RANDOM,          \
	    .arg = "TOKENS", .help = "prompt tokens, without the shared prefix"),             \
	OPT(type, set.random_output_len, "random-output-len", .group = OFFLINE_RANDOM,        \
	    .arg = "TOKENS", .help = "output tokens to request"),                                    \
	OPT(type, set.random_range_ratio, "random-range-ratio", .group = OFFLINE_RANDOM,      \
	    .arg = "RATIO", .help = "lengths are drawn from length*(1-r) to length*(1+r); "   \
	    "one number in [0, 1), or JSON with both: {\"input\": 0.3, \"output\": 0.5}"),    \
	OPT(type, set.random_prefix_len, "random-prefix-len", .group = OFFLINE_RANDOM,        \
	    .arg = "TOKENS", .help = "tokens that all prompts begin with, on top of the "     \
	    "input length"),                                                                 \
	OPT(type, set.random_batch_size, "random-batch-size", .group = OFFLINE_RANDOM,        \
	    .arg = "N", .help = "inputs per request for embeddings, documents for rerank"),   \
	OPT(type, set.no_reranker, "no-reranker", .group = OFFLINE_RANDOM,                    \
	    .help = "the model only embeds, so pairs are scored as embeddings"),              \
	OPT(type, set.random_mm_base_items_per_request, "random-mm-base-items-per-request",   \
	    .group = OFFLINE_RANDOM, .arg = "N",                                              \
	    .help = "images and videos per request of random-mm"),                            \
	OPT(type, set.random_mm_num_mm_items_range_ratio,                                     \
	    "random-mm-num-mm-items-range-ratio", .group = OFFLINE_RANDOM, .arg = "RATIO",    \
	    .help = "relative deviation of the number of items from the base"),             \
	OPT(type, set.random_mm_limit_mm_per_prompt, "random-mm-limit-mm-per-prompt",         \
	    .group = OFFLINE_RANDOM, .arg = "JSON",                                           \
	    .help = "maximum number of items of each kind in one request"),                 \
	OPT(type, set.random_mm_bucket_config, "random-mm-bucket-config",                     \
	    .group = OFFLINE_RANDOM, .flags = OPT_LITERAL, .arg = "DICT",                     \
	    .check = offline_check_buckets,                                                   \
	    .help = "probability of each (height, width, frames)")

struct offline_sampler {
	/* Set by the verb before offline_sampler_init; borrowed. */
	const char *backend;                  /* "vllm", "vllm-chat", "hf" ...: what carries media */
	const struct offline_engine *engine;  /* tokenizer, its mode, seed, data-parallel size */
	struct offline_hooks hooks;           /* warn, progress, cancel */
	/*
	 * Starts the engine's program, without loading it, for a template that no file has; NULL:
	 * never.
	 */
	struct offline *(*ask)(void *self, struct err *e);
	void *ask_self;
	const char *chat_prefix, *chat_suffix; /* in place of the model's; NULL: not given */
	const char *lora_path;                /* NULL: none are assigned */
	bool is_lora_random;                  /* else round-robin, from 1 to engine->max_loras */

	struct tokenizer *tokenizer;          /* after init */
	const char *chat_template;            /* after sampling: chat_source_name; NULL: no use */
	struct compat_rng rng;
	int64_t began_ns;                     /* since when progress is made; monotonic */
	bool is_shown;                        /* it takes long enough for progress */
};

/* Loads the tokenizer and seeds the generators. ERR_RUN, ERR_IO, ERR_NET. */
int offline_sampler_init(struct offline_sampler *s, struct err *e);
void offline_sampler_release(struct offline_sampler *s);

/* Requests in order, in the form that a batch (offline/offline.h) takes. */
struct offline_requests {
	struct workload w;
	uint32_t *index;       /* this rank's share of w (data parallel); n of them */
	int32_t *lora;         /* parallel to index, from 1; NULL: none */
	size_t n;
	uint64_t prompt_tokens, output_tokens; /* asked for, of this share, a sequence each */
	bool is_multimodal;
};

/*
 * Draws n requests with this seed. Errors have upstream's text where upstream has one: ERR_RUN (a
 * set that needs a path, a malformed option), ERR_IO. Warnings go to hooks.warn.
 */
int offline_sample(struct offline_sampler *s, const struct offline_data *d, int64_t n,
		   int64_t seed, struct offline_requests *out, struct err *e);
void offline_requests_release(struct offline_requests *r);
/* One batch of all requests. */
struct offline_batch offline_requests_batch(const struct offline_requests *r,
					    const char *lora_path);
/*
 * Upstream's assertion that all fit in the context; max_model_len 0 (unknown) accepts all. ERR_RUN
 * with upstream's sentence, naming the first request that does not fit.
 */
int offline_requests_fit(const struct offline_requests *r, int64_t max_model_len, struct err *e);
