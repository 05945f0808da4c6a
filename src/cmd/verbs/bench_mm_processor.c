/* SPDX-License-Identifier: Apache-2.0 */
/* bench_mm_processor.c - `profllm bench mm-processor`. */
#include "bench/offline/mm_processor.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/offline_talk.h"

static int run(struct offline_talk *t, struct mm_processor_opts *o, struct err *e)
{
	struct buf plan = { 0 };

	if (mm_processor_check(o, &t->engine, offline_note(t), e) < 0)
		return -1;
	offline_notes(t);
	if (o->disable_tqdm)
		offline_quiet(t);
	if (o->common.dry_run) {
		offline_show_plan(t);
		mm_processor_plan(o, &t->engine, &plan);
		cli_out(buf_str(&plan));
		buf_release(&plan);
		return 0;
	}
	if (o->output_json && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	return mm_processor_run(o, &t->engine, &t->hooks, e);
}

int cmd_bench_mm_processor(int argc, char **argv)
{
	struct mm_processor_opts opts;
	struct offline_talk talk;
	int status = offline_begin(&talk, &mm_processor_opt_set, &mm_processor_verb, argc, argv,
				   &opts);

	if (status != CLI_CONTINUE)
		return status;
	offline_path(&opts.output_json);
	run(&talk, &opts, &talk.cli.err);
	return offline_end(&talk);
}
