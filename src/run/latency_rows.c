/* SPDX-License-Identifier: Apache-2.0 */
/* latency_rows.c - the options of `bench latency`; see latency.h. */
#include "run/latency.h"

#include <math.h>

#include "engine/args.h"

#define BATCH "Batch"
#define RUN "Iterations"

static const char *const groups[] = { BATCH, RUN, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL };

#define L(member, name, ...) OPT(struct latency_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	L(input_len, "input-len", .arg = "TOKENS", .group = BATCH, .help = "length of each prompt"),
	L(output_len, "output-len", .arg = "TOKENS", .group = BATCH,
	  .help = "length of each answer; the end of a text is ignored"),
	L(batch_size, "batch-size", .arg = "N", .group = BATCH,
	  .help = "number of prompts; split into several batches if the engine takes fewer"),
	L(n, "n", .arg = "N", .group = BATCH, .help = "answers to each prompt, or width of the beam"),
	L(use_beam_search, "use-beam-search", .group = BATCH,
	  .help = "search with beams, of width --n"),
	L(num_iters_warmup, "num-iters-warmup", .arg = "N", .group = RUN,
	  .words = "warmup",
	  .help = "iterations before those that count"),
	L(num_iters, "num-iters", .arg = "N", .group = RUN, .words = "iterations repeat",
	  .help = "iterations that count"),
	L(profile, "profile", .group = RUN,
	  .help = "after the warm-up run the batch once under the engine's profiler, and nothing else"),
	L(output_json, "output-json", .arg = "FILE", .group = RUN, .words = "json output out -o",
	  .help = "write the result as JSON"),
	L(disable_detokenize, "disable-detokenize", .group = RUN,
	  .help = "answers stay token ids: turning them into text is not in the latency"),
	OFFLINE_ROWS(offline_backends, OPT_OURS),
	GATE_ROW_FAIL_IF(struct latency_opts, gate, OFFLINE_GROUP_OURS, "avg_latency>2"),
	GATE_ROWS(struct latency_opts, gate, OFFLINE_GROUP_OURS, OPT_OURS),
};

static const struct latency_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.input_len = 32, .output_len = 128, .batch_size = 8, .n = 1,
	.num_iters_warmup = 10, .num_iters = 30,
};

const struct opt_set latency_opt_set = {
	.command = "bench latency",
	.summary = "Measures how long an engine takes for one batch of requests.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench latency --model MODEL --input-len 512 --output-len 64 --batch-size 1\n"
		  "  profllm bench latency --backend sim --model sim --num-iters 5",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

static char no_prefix_caching[] = "--no-enable-prefix-caching";
static char *const forced[] = { no_prefix_caching, NULL };

const struct offline_verb latency_verb = { .name = "latency", .forced = forced };
