/* SPDX-License-Identifier: Apache-2.0 */
/* experiment/experiment.c - what things of an experiment are called, and giving an outcome back. */
#include "experiment/experiment.h"

const char *experiment_mode_name(enum experiment_mode mode)
{
	static const char *const name[] = {
		"serve", "throughput", "latency", "startup", "prioritization", "prefix-caching",
		"long-document-qa", "structured-output", "multi-turn",
	};

	return name[mode];
}

const char *server_role_name(enum server_role role)
{
	static const char *const name[] = { "serve", "prefill", "decode", "proxy", "cache" };

	return name[role];
}

const char *outcome_status_name(enum outcome_status status)
{
	static const char *const name[] = { "completed", "partial", "failed", "running" };

	return name[status];
}

const char *outcome_stage_name(enum outcome_stage stage)
{
	static const char *const name[] = { "config", "allocate", "start", "ready", "benchmark",
					    "collect" };

	return name[stage];
}

void outcome_release(struct outcome *o)
{
	arena_release(&o->arena);
}
