/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefix_bench.h - `bench prefix-caching` and `bench long-document-qa`: prompts that are sent
 * several times, and how long an engine takes for all of them at once (sweep spec 9, conversations
 * spec 5.2 and 5.3).
 *
 * Options, draws, order and printed lines are those of vLLM's scripts of that name; the engine is
 * bench throughput's (offline/offline.h). --compare-caching runs the same requests on an engine
 * with a prefix cache and then on one without, each newly started.
 */
#pragma once
#include "bench/offline/offline.h"
#include "bench/offline/offline_data.h"

struct prefix_opts {
	struct offline_opts common;      /* first: offline.h */
	int64_t output_len, repeat_count;
	bool disable_detokenize;
	bool compare_caching, exact_tokens;
	/* prefix-caching */
	const char *dataset_path;        /* ShareGPT; NULL: random ids */
	struct opt_int num_prompts;
	const char *input_length_range;  /* "MIN:MAX" tokens; NULL: not given */
	int64_t prefix_len;
	bool sort;
	/* long-document-qa */
	int64_t document_length, num_documents, shuffle_seed;
	const char *repeat_mode;         /* of repeat_orders */
	/* after the check: what is drawn */
	struct offline_data data;
	int64_t seed;
};
extern const struct opt_set prefix_caching_opt_set, long_document_opt_set;
extern const struct offline_verb prefix_caching_verb, long_document_verb;
