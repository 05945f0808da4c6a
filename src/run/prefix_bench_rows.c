/* SPDX-License-Identifier: Apache-2.0 */
/* prefix_bench_rows.c - the options of both verbs of prefix_bench.h. */
#include <math.h>

#include "run/prefix_bench.h"
#include "run/reuse.h"

#define DATASET "Requests"
#define RUN "Run"

static const char *const groups[] = { DATASET, RUN, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL };
static const char *const backends[] = {
	"vllm", "vllm-async", "llama", "http", "sim", "worker", NULL,
};

#define P(member, name, ...) OPT(struct prefix_opts, member, name, __VA_ARGS__)
#define SHARED_ROWS                                                                        \
	P(output_json, "output-json", .arg = "FILE", .group = RUN, .flags = OPT_OURS,         \
	  .words = "json output out -o", .help = "write the result as JSON"),                \
	P(compare_caching, "compare-caching", .group = RUN, .flags = OPT_OURS,                \
	  .words = "compare",                                                                 \
	  .help = "run the same requests on an engine with a prefix cache and on one "        \
		  "without, and report the ratio of the times"),                              \
	OFFLINE_ROWS(backends, OPT_OURS)

static const struct opt caching_rows[] = {
	P(dataset_path, "dataset-path", .arg = "FILE", .group = DATASET,
	  .help = "ShareGPT conversations whose first turns are the prompts; random tokens without it"),
	P(output_len, "output-len", .arg = "TOKENS", .group = DATASET, .min = 1,
	  .max = LENGTH_TOKENS_MAX, .help = "tokens to ask for; the end of a text is honoured"),
	P(num_prompts, "num-prompts", .arg = "N", .group = DATASET, .min = 1, .max = REQUESTS_MAX,
	  .words = "requests num-requests -n", .help = "number of different prompts; must be given"),
	P(repeat_count, "repeat-count", .arg = "N", .group = DATASET, .min = 1, .max = REQUESTS_MAX,
	  .help = "how often each prompt is sent"),
	P(sort, "sort", .group = DATASET,
	  .help = "send the prompts sorted by length, instead of shuffled"),
	P(input_length_range, "input-length-range", .arg = "MIN:MAX", .group = DATASET,
	  .help = "tokens of the prompts, such as 128:256; must be given"),
	P(prefix_len, "prefix-len", .arg = "TOKENS", .group = DATASET, .max = LENGTH_TOKENS_MAX,
	  .help = "tokens that all random prompts begin with, within their length"),
	P(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "answers stay token ids: turning them into text is not in the time"),
	P(exact_tokens, "exact-tokens", .group = DATASET, .flags = OPT_OURS,
	  .help = "hand the engine token ids of random prompts; their text may have other tokens"),
	SHARED_ROWS,
};

static const struct opt document_rows[] = {
	P(document_length, "document-length", .arg = "WORDS", .group = DATASET,
	  .max = LENGTH_TOKENS_MAX,
	  .help = "words of each document; tokens with --exact-tokens"),
	P(num_documents, "num-documents", .arg = "N", .group = DATASET, .min = 1,
	  .max = REQUESTS_MAX, .help = "number of different documents"),
	P(output_len, "output-len", .arg = "TOKENS", .group = DATASET, .min = 1,
	  .max = LENGTH_TOKENS_MAX, .help = "tokens to ask for; the end of a text is honoured"),
	P(repeat_count, "repeat-count", .arg = "N", .group = DATASET, .min = 1, .max = REQUESTS_MAX,
	  .help = "how often each document is sent"),
	P(repeat_mode, "repeat-mode", .arg = "ORDER", .group = DATASET, .choices = repeat_orders,
	  .help = "order of the repeated documents: random, tile (the whole list again and again: "
		  "fewest cache hits), interleave (all copies of one in a row: most), sorted"),
	P(shuffle_seed, "shuffle-seed", .arg = "N", .group = DATASET, .min = 0, .max = UINT32_MAX,
	  .help = "seed of the random order"),
	P(exact_tokens, "exact-tokens", .group = DATASET, .flags = OPT_OURS,
	  .help = "make each document exactly --document-length tokens long"),
	SHARED_ROWS,
};

static const struct prefix_opts caching_defaults = {
	.common = { OFFLINE_DEFAULTS }, .output_len = 10, .repeat_count = 1,
};
static const struct prefix_opts document_defaults = {
	.common = { OFFLINE_DEFAULTS }, .output_len = 10, .repeat_count = 2,
	.document_length = 20000, .num_documents = 8, .repeat_mode = "random",
};

static const struct opt_set caching_set = {
	.command = "bench prefix-caching",
	.summary = "Measures how long an engine takes for prompts that share a prefix or are repeated. "
		   "Options and lines are those of vLLM's benchmark_prefix_caching.py.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench prefix-caching --model MODEL --num-prompts 100 --repeat-count 4 \\\n"
		  "      --input-length-range 512:1024 --prefix-len 256 --compare-caching\n"
		  "  profllm bench prefix-caching --base-url http://127.0.0.1:8000 --model MODEL \\\n"
		  "      --num-prompts 100 --input-length-range 512:1024\n"
		  "  profllm bench prefix-caching --backend sim --num-prompts 20 --repeat-count 2 \\\n"
		  "      --input-length-range 128:256",
	.row = caching_rows, .n = sizeof(caching_rows) / sizeof(*caching_rows),
	.defaults = &caching_defaults, .bytes = sizeof(caching_defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};
static const struct opt_set document_set = {
	.command = "bench long-document-qa",
	.summary = "Measures how long an engine takes for long documents that are asked about several "
		   "times. Options and lines are those of vLLM's benchmark_long_document_qa_throughput.py.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench long-document-qa --model MODEL --document-length 8000 \\\n"
		  "      --num-documents 16 --repeat-count 4 --repeat-mode tile --compare-caching\n"
		  "  profllm bench long-document-qa --backend sim --document-length 500",
	.row = document_rows, .n = sizeof(document_rows) / sizeof(*document_rows),
	.defaults = &document_defaults, .bytes = sizeof(document_defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct prefix_bench prefix_caching_bench = {
	.set = &caching_set, .verb = { .name = "prefix-caching" },
};
const struct prefix_bench long_document_bench = {
	.set = &document_set, .verb = { .name = "long-document-qa" }, .is_documents = true,
};
