/* SPDX-License-Identifier: Apache-2.0 */
/* startup_opts.c - the options of `bench startup`. */
#include "run/startup.h"

#define GROUP "Start-up"
#define COUNT_MAX 100000 /* days of starts */

/* The order of upstream's flags, then ours. */
static const struct opt rows[] = {
	OPT(struct startup_opts, num_iters_cold, "num-iters-cold", .group = GROUP, .arg = "N",
	    .max = COUNT_MAX, .help = "starts with empty compilation caches"),
	OPT(struct startup_opts, num_iters_warmup, "num-iters-warmup", .group = GROUP, .arg = "N",
	    .max = COUNT_MAX, .help = "starts that fill the caches and are not counted"),
	OPT(struct startup_opts, num_iters_warm, "num-iters-warm", .group = GROUP, .arg = "N",
	    .max = COUNT_MAX, .help = "starts with the caches of the one before"),
	OPT(struct startup_opts, output_json, "output-json", .group = GROUP, .arg = "FILE",
	    .help = "result file (JSON)"),
	OPT(struct startup_opts, drop_page_cache, "drop-page-cache", .group = GROUP,
	    .flags = OPT_OURS,
	    .help = "before each cold start, take the model's files out of the kernel's page cache"),
	OFFLINE_ROWS(offline_backends, OPT_OURS),
	GATE_ROW_FAIL_IF(struct startup_opts, gate, OFFLINE_GROUP_OURS, "avg_cold_startup_time>60"),
	GATE_ROWS(struct startup_opts, gate, OFFLINE_GROUP_OURS, OPT_OURS),
};

static const struct startup_opts defaults = {
	.common = { OFFLINE_DEFAULTS },
	.num_iters_cold = 3, .num_iters_warmup = 1, .num_iters_warm = 3,
};

const struct opt_set startup_opt_set = {
	.command = "bench startup",
	.summary = "Measure how long an engine takes to start, with empty caches and with full ones",
	.usage = "[options] [arguments of the engine]",
	.epilog = "Examples:\n"
		  "  profllm bench startup --model facebook/opt-125m --output-json startup.json\n"
		  "  profllm bench startup --backend sim --model sim",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
	.foreign = &offline_engine_args,
	.takes_prefixes = true,
};

const struct offline_verb startup_verb = { .name = "startup" };

void startup_defaults(struct startup_opts *o, const struct opt_result *given,
		      const struct offline_engine *engine)
{
	const struct { const char *name; int64_t *v, v011; } old[] = {
		{ "num-iters-cold", &o->num_iters_cold, 5 },
		{ "num-iters-warmup", &o->num_iters_warmup, 3 },
		{ "num-iters-warm", &o->num_iters_warm, 5 },
	};

	for (size_t i = 0; engine->is_v011 && i < sizeof(old) / sizeof(*old); i++)
		if (!opt_given(&startup_opt_set, given, old[i].name))
			*old[i].v = old[i].v011;
}
