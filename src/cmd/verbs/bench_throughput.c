/* SPDX-License-Identifier: Apache-2.0 */
/* bench_throughput.c - `profllm bench throughput`. */
#include "bench/offline/throughput.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/offline_talk.h"

static int run(struct offline_talk *t, struct throughput_opts *o, struct err *e)
{
	struct throughput_plan plan;
	struct buf example = { 0 };
	int rc;

	if (throughput_check(o, &t->cli.result, &t->engine, &plan, offline_note(t), e) < 0)
		return -1;
	throughput_example(o, &example);
	rc = offline_gates(t, &o->gate, buf_str(&example), e);
	buf_release(&example);
	if (rc < 0)
		return -1;
	offline_notes(t);
	if (o->dump_workload && target_check("--dump-workload", o->dump_workload, e) < 0)
		return -1;
	if (o->common.dry_run)
		offline_show_plan(t);
	else if (o->output_json && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	return throughput_run(o, &plan, &t->engine, &t->hooks, e);
}

int cmd_bench_throughput(int argc, char **argv)
{
	struct throughput_opts opts;
	struct offline_talk talk;
	int status = offline_begin(&talk, &throughput_opt_set, &throughput_verb, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		return status;
	offline_path(&opts.output_json);
	run(&talk, &opts, &talk.cli.err);
	return offline_end(&talk);
}
