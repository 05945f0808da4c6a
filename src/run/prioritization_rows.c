/* SPDX-License-Identifier: Apache-2.0 */
/* prioritization_rows.c - the options of `bench prioritization`; see prioritization.h. */
#include "run/prioritization.h"

#define REQUESTS "Requests"
#define RUN "Run"

static const char *const groups[] = { REQUESTS, RUN, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL };

#define P(member, name, ...) OPT(struct prioritization_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	P(dataset, "dataset", .arg = "FILE", .group = REQUESTS, .words = "dataset-path",
	  .help = "ShareGPT conversations; otherwise every prompt is one text of --input-len"),
	P(input_len, "input-len", .arg = "TOKENS", .group = REQUESTS, .min = 2, .max = 1 << 26,
	  .help = "length of the prompt without --dataset: \"hi\" repeated, once less than that"),
	P(output_len, "output-len", .arg = "TOKENS", .group = REQUESTS, .min = 1, .max = 1 << 26,
	  .help = "length of each answer; with --dataset that of the recorded ones unless given"),
	P(n, "n", .arg = "N", .group = RUN, .min = 1, .max = 10000, .help = "answers to each prompt"),
	P(num_prompts, "num-prompts", .arg = "N", .group = REQUESTS, .min = 1, .max = 1 << 28,
	  .words = "requests num-requests -n", .help = "number of requests"),
	P(output_json, "output-json", .arg = "FILE", .group = RUN, .words = "json output out -o",
	  .help = "write the result as JSON"),
	P(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "answers stay token ids: turning them into text is not in the time"),
	P(baseline, "baseline", .group = RUN, .flags = OPT_OURS,
	  .help = "run the same requests once more without priorities, and report what priorities cost "
		  "each class"),
	OFFLINE_ROWS(offline_backends, 0),
};

static const struct prioritization_opts defaults = {
	.common = { OFFLINE_DEFAULTS }, .n = 1, .num_prompts = 200,
};

const struct opt_set prioritization_opt_set = {
	.command = "bench prioritization",
	.summary = "Measures requests of two priorities: an engine, or with --base-url a server.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "With --base-url, options of bench serve take the place of the engine's arguments.\n"
		  "Examples:\n"
		  "  profllm bench prioritization --model MODEL --scheduling-policy priority \\\n"
		  "      --dataset FILE --num-prompts 200 --baseline\n"
		  "  profllm bench prioritization --backend sim --model sim --input-len 64 --output-len 16\n"
		  "  profllm bench prioritization --base-url http://localhost:8000 --model MODEL \\\n"
		  "      --input-len 64 --output-len 16 --baseline",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb prioritization_verb = { .name = "prioritization" };
