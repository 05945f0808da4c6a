/* SPDX-License-Identifier: Apache-2.0 */
/* mm_processor_rows.c - the options of `bench mm-processor`; see mm_processor.h. */
#include "run/mm_processor.h"

#include <math.h>

#define REQUESTS "Requests"
#define RESULTS "Results"

static const char *const groups[] = {
	REQUESTS, OFFLINE_RANDOM, OFFLINE_HUB, RESULTS, OFFLINE_GROUP, OFFLINE_GROUP_OURS, NULL,
};
static const char *const datasets[] = { "random-mm", "hf", NULL };

#define M(member, name, ...) OPT(struct mm_processor_opts, member, name, __VA_ARGS__)
static const struct opt rows[] = {
	M(data.dataset_name, "dataset-name", .group = REQUESTS, .choices = datasets,
	  .help = "where requests come from"),
	M(data.num_prompts, "num-prompts", .arg = "N", .group = REQUESTS,
	  .help = "requests that are measured"),
	M(data.num_warmups, "num-warmups", .arg = "N", .group = REQUESTS,
	  .help = "requests before them, drawn with the next seed"),
	OFFLINE_RANDOM_ROWS(struct mm_processor_opts, data.set),
	M(data.set.path, "dataset-path", .arg = "PATH", .group = OFFLINE_HUB,
	  .help = "with --dataset-name hf: a multimodal set of the hub, such as "
		  "lmarena-ai/VisionArena-Chat"),
	M(data.set.hf_subset, "hf-subset", .arg = "NAME", .group = OFFLINE_HUB,
	  .help = "the set's subset"),
	M(data.set.hf_split, "hf-split", .arg = "NAME", .group = OFFLINE_HUB,
	  .help = "its split, such as train"),
	M(data.set.hf_name, "hf-name", .arg = "ID", .flags = OPT_OURS, .group = OFFLINE_HUB,
	  .help = "the set's name on the hub when --dataset-path is a folder"),
	M(output_len, "output-len", .arg = "TOKENS", .group = REQUESTS,
	  .help = "most tokens of an answer, in place of the dataset's; of random-mm "
		  "--random-output-len counts"),
	M(output_json, "output-json", .arg = "FILE", .group = RESULTS,
	  .help = "write the result as JSON"),
	M(metric_percentiles, "metric-percentiles", .arg = "LIST", .group = RESULTS,
	  .help = "comma list of percentiles, such as 50,90,99"),
	M(disable_tqdm, "disable-tqdm", .group = RESULTS, .help = "no progress bar"),
	OFFLINE_ROWS(offline_backends, OPT_OURS),
};

static const struct mm_processor_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.data = { .dataset_name = "random-mm", .num_prompts = 10, .num_warmups = 1,
		  .set = { OFFLINE_SET_DEFAULTS } },
	.metric_percentiles = "99",
};

const struct opt_set mm_processor_opt_set = {
	.command = "bench mm-processor",
	.summary = "Measures the stages of multimodal preprocessing inside an engine.",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench mm-processor --model MODEL --num-prompts 100\n"
		  "  profllm bench mm-processor --backend sim --model sim --random-input-len 64 \\\n"
		  "      --random-output-len 8",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb mm_processor_verb = { .name = "mm-processor" };
