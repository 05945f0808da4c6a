/* SPDX-License-Identifier: Apache-2.0 */
/* bench_prefix.c - `profllm bench prefix-caching` and `profllm bench long-document-qa`. */
#include "bench/offline/prefix_bench.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/offline_talk.h"

static int run(struct offline_talk *t, const struct prefix_bench *bench, struct prefix_opts *o,
	       struct err *e)
{
	struct offline_data data;
	int64_t seed;

	if (prefix_bench_check(o, bench, &t->engine, &data, &seed, e) < 0)
		return -1;
	if (o->common.dry_run)
		offline_show_plan(t);
	else if (o->output_json && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	return prefix_bench_run(o, bench, &t->engine, &t->hooks, e);
}

static int bench(const struct prefix_bench *b, int argc, char **argv)
{
	struct prefix_opts opts;
	struct offline_talk talk;
	int status = offline_begin(&talk, b->set, &b->verb, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		return status;
	offline_path(&opts.output_json);
	run(&talk, b, &opts, &talk.cli.err);
	return offline_end(&talk);
}

int cmd_bench_prefix_caching(int argc, char **argv)
{
	return bench(&prefix_caching_bench, argc, argv);
}

int cmd_bench_long_document_qa(int argc, char **argv)
{
	return bench(&long_document_bench, argc, argv);
}
