/* SPDX-License-Identifier: Apache-2.0 */
/* throughput_rows.c - the options of `bench throughput`; see throughput.h. */
#include <math.h>

#include "run/reuse.h"
#include "run/throughput.h"

#define DATASET "Requests"
#define RUN "Run"
#define LORA "LoRA"
#define SETS "Other datasets"

static const char *const groups[] = {
	DATASET, RUN, OFFLINE_RANDOM, OFFLINE_HUB, SETS, LORA, OFFLINE_GROUP, OFFLINE_GROUP_OURS,
	NULL,
};
/* Upstream's, one of old, then ours. */
static const char *const datasets[] = {
	"sharegpt", "random", "burstgpt", "hf", "prefix_repetition", "random-mm", "random-rerank",
	"custom_audio", "sonnet", "custom", "custom_image", "spec_bench", "speed_bench",
	"timed_trace", "mix", "workload", NULL,
};
static const char *const assignments[] = { "random", "round-robin", NULL };

#define T(member, name, ...) OPT(struct throughput_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	T(data.dataset_name, "dataset-name", .arg = "NAME", .group = DATASET,
	  .flags = OPT_DASHED, .choices = datasets,
	  .help = "where the prompts come from; sonnet and what follows it are not in vLLM's command"),
	T(data.set.path, "dataset-path", .arg = "FILE", .group = DATASET,
	  .help = "the dataset's file, folder or name on the hub"),
	T(data.set.path, "dataset", .flags = OPT_HIDDEN, .alias_of = "dataset-path",
	  .note = "The '--dataset' argument will be deprecated in the next release. Please use "
		  "'--dataset-name' and '--dataset-path' instead.",
	  .help = "old spelling of --dataset-path"),
	T(data.set.no_oversample, "no-oversample", .group = DATASET,
	  .help = "run fewer requests when the dataset has fewer rows, instead of repeating some"),
	T(data.set.enable_multimodal_chat, "enable-multimodal-chat", .group = DATASET,
	  .help = "build whole chat messages with media in the dataset; always on with --backend "
		  "vllm-chat"),
	T(custom_output_len, "custom-output-len", .arg = "TOKENS", .group = DATASET,
	  .help = "tokens to ask for per request of custom sets; -1 takes each row's output_tokens; 256 "
		  "unless given, for custom_audio -1"),
	T(input_len, "input-len", .arg = "TOKENS", .group = DATASET,
	  .help = "length of each prompt of random sets and sonnet; --random-input-len takes precedence"),
	T(output_len, "output-len", .arg = "TOKENS", .group = DATASET,
	  .help = "length of each answer, in place of the dataset's; --random-output-len takes "
		  "precedence"),
	T(n, "n", .arg = "N", .group = RUN, .help = "answers to each prompt"),
	T(data.num_prompts, "num-prompts", .arg = "N", .group = DATASET, .words = "requests num-requests -n",
	  .help = "number of requests"),
	T(data.num_warmups, "num-warmups", .arg = "N", .group = RUN,
	  .words = "warmup warmups",
	  .help = "other requests run before those that are timed"),
	T(hf_max_batch_size, "hf-max-batch-size", .arg = "N", .group = RUN,
	  .help = "--backend hf: most prompts in one batch"),
	T(hf_enable_torch_compile, "hf-enable-torch-compile", .group = RUN,
	  .help = "--backend hf: compile the model"),
	T(output_json, "output-json", .arg = "FILE", .group = RUN, .words = "json output out -o",
	  .help = "write the result as JSON"),
	T(async_engine, "async-engine", .group = RUN,
	  .help = "the engine's asynchronous interface, a stream for each request"),
	T(prequeue_requests, "prequeue-requests", .group = RUN,
	  .help = "queue all requests before the scheduler may begin"),
	T(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "answers stay token ids: turning them into text is not in the time"),
	T(lora_path, "lora-path", .arg = "PATH", .group = LORA,
	  .help = "adapters: a folder, or a name on the hub"),
	T(lora_assignment, "lora-assignment", .arg = "HOW", .group = LORA, .choices = assignments,
	  .help = "how adapters are dealt out to requests"),
	T(prefix_len, "prefix-len", .arg = "TOKENS", .group = DATASET,
	  .help = "tokens that all prompts begin with; --random-prefix-len takes precedence"),
	T(data.set.hf_subset, "hf-subset", .group = OFFLINE_HUB, .arg = "NAME",
	  .help = "configuration of the hub dataset"),
	T(data.set.hf_split, "hf-split", .group = OFFLINE_HUB, .arg = "NAME",
	  .help = "split of the hub dataset"),
	T(data.set.hf_name, "hf-name", .group = OFFLINE_HUB, .arg = "ID",
	  .help = "hub name to recognise a local copy by"),
	T(profile, "profile", .group = RUN,
	  .help = "start and stop the engine's profiler inside the timed section"),
	T(repeat_prefix_len, "prefix-repetition-prefix-len", .arg = "TOKENS", .group = SETS,
	  .help = "tokens of each shared prefix; 256 unless given"),
	T(repeat_suffix_len, "prefix-repetition-suffix-len", .arg = "TOKENS", .group = SETS,
	  .help = "tokens after the prefix; 256 unless given"),
	T(repeat_num_prefixes, "prefix-repetition-num-prefixes", .arg = "N", .group = SETS,
	  .help = "number of different prefixes; 10 unless given"),
	T(repeat_output_len, "prefix-repetition-output-len", .arg = "TOKENS", .group = SETS,
	  .help = "tokens to ask for per request; 128 unless given"),
	OFFLINE_RANDOM_ROWS(struct throughput_opts, data.set),
	T(data.set.asr_min_audio_len_sec, "asr-min-audio-len-sec", .group = OFFLINE_HUB,
	  .arg = "SECONDS", .help = "keep recordings from this length on"),
	T(data.set.asr_max_audio_len_sec, "asr-max-audio-len-sec", .group = OFFLINE_HUB,
	  .arg = "SECONDS", .help = "keep recordings up to this length"),

	T(data.set.disable_shuffle, "disable-shuffle", .group = DATASET, .flags = OPT_OURS,
	  .help = "keep the order of the file"),
	T(data.set.skip_chat_template, "skip-chat-template", .group = DATASET, .flags = OPT_OURS,
	  .help = "prompts as they are, where the dataset would put them through the model's chat "
		  "template"),
	T(chat_prefix, "chat-prefix", .group = DATASET, .flags = OPT_OURS, .arg = "TEXT",
	  .help = "what the chat template puts before a user message, in place of the model's "
		  "template; \\n and \\xHH are understood"),
	T(chat_suffix, "chat-suffix", .group = DATASET, .flags = OPT_OURS, .arg = "TEXT",
	  .help = "what it puts after the message"),
	T(data.set.prompt_token_ids, "prompt-token-ids", .group = OFFLINE_RANDOM, .flags = OPT_OURS,
	  .help = "random: hand the engine token ids instead of text"),
	T(data.set.random_input_len_dist, "random-input-len-dist", .group = OFFLINE_RANDOM,
	  .flags = OPT_OURS, .arg = "DIST",
	  .help = "random: a distribution of prompt lengths, in place of the length and its range"),
	T(data.set.random_output_len_dist, "random-output-len-dist", .group = OFFLINE_RANDOM,
	  .flags = OPT_OURS, .arg = "DIST", .help = "random: likewise of the tokens to ask for"),
	T(data.set.mix, "mix", .group = SETS, .flags = OPT_OURS, .arg = "JSON",
	  .help = "mix: list of datasets with their options and weights"),
	T(data.set.hf_text_column, "hf-text-column", .group = OFFLINE_HUB, .flags = OPT_OURS,
	  .arg = "NAME", .help = "hf: the column of prompts, where its name does not tell"),
	T(data.set.hf_revision, "hf-revision", .group = OFFLINE_HUB, .flags = OPT_OURS,
	  .arg = "NAME", .help = "hf: branch, tag or commit"),
	REUSE_ROWS(struct throughput_opts, data.set, DATASET),
	T(num_runs, "num-runs", .group = RUN, .flags = OPT_OURS, .arg = "N", .min = 1, .max = 1000,
	  .words = "repeat repeats runs",
	  .help = "time the same requests so many times; the numbers are those of the first run, for "
		  "which no prompt is in a prefix cache, and the spread is reported beside them"),
	T(dump_workload, "dump-workload", .group = RUN, .flags = OPT_OURS, .arg = "FILE",
	  .help = "write the requests to a file, one JSON object a line"),
	OFFLINE_ROWS(offline_backends, 0),
	GATE_ROW_FAIL_IF(struct throughput_opts, gate, OFFLINE_GROUP_OURS, "tokens_per_second<1000"),
	GATE_ROWS(struct throughput_opts, gate, OFFLINE_GROUP_OURS, OPT_OURS),
};

static const struct throughput_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.data = { .dataset_name = "sharegpt", .num_prompts = 1000, .set = { OFFLINE_SET_DEFAULTS } },
	.n = 1, .lora_assignment = "random", .num_runs = 1,
};

const struct opt_set throughput_opt_set = {
	.command = "bench throughput",
	.summary = "Measures how many requests and tokens an engine works off in a second when it has "
		   "all of them at once.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench throughput --model MODEL --random-input-len 512 \\\n"
		  "      --random-output-len 64 --num-prompts 200 --output-json FILE\n"
		  "  profllm bench throughput --model MODEL --backend hf --hf-max-batch-size 16\n"
		  "  profllm bench throughput --backend sim --model sim --num-prompts 100",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_async_engine_args,
	.takes_prefixes = true,
};

static const struct offline_fix fixes[] = {
	{ "token-counts", THROUGHPUT_FIX_TOKENS,
	  "tokens are counted with --async-engine and --backend hf, too, over all --n answers; vLLM "
	  "takes what was asked for, one answer each" },
	{ "lengths", 0, NULL },
	{ "dataset-name", 0, NULL },
	{ NULL, 0, NULL },
};
static const struct offline_fix compats[] = {
	{ "lengths", THROUGHPUT_COMPAT_LENGTHS,
	  "--input-len, --output-len and --prefix-len have no effect on random datasets: vLLM's "
	  "defaults of --random-input-len, --random-output-len and --random-prefix-len (1024, 128, 0) "
	  "take precedence" },
	{ "dataset-name", THROUGHPUT_COMPAT_DATASET,
	  "without --dataset-path every dataset of vLLM's but prefix_repetition becomes random" },
	{ NULL, 0, NULL },
};

const struct offline_verb throughput_verb = {
	.name = "throughput", .fixes = fixes, .compats = compats,
};
