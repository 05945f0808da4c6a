/* SPDX-License-Identifier: Apache-2.0 */
/* bench_latency.c - `profllm bench latency`. */
#include "bench/offline/latency.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/offline_talk.h"

static int gates(struct offline_talk *t, const struct latency_opts *o, struct err *e)
{
	struct buf example = { 0 };
	int rc;

	if (o->profile && o->gate.fail_if.n)
		return err_set(e, ERR_USAGE, "--fail-if cannot be used with --profile, which measures "
			       "nothing; leave out one of them");
	latency_example(o, &example);
	rc = offline_gates(t, &o->gate, buf_str(&example), e);
	buf_release(&example);
	return rc;
}

static int run(struct offline_talk *t, const struct latency_opts *o, struct err *e)
{
	struct buf plan = { 0 };

	if (gates(t, o, e) < 0 || latency_check(o, &t->engine, offline_note(t), e) < 0)
		return -1;
	offline_notes(t);
	if (o->common.dry_run) {
		offline_show_plan(t);
		latency_plan(o, &t->engine, &plan);
		cli_out(buf_str(&plan));
		buf_release(&plan);
		return 0;
	}
	if (o->output_json && !o->profile && target_check("--output-json", o->output_json, e) < 0)
		return -1;
	return latency_run(o, &t->engine, &t->hooks, e);
}

int cmd_bench_latency(int argc, char **argv)
{
	struct latency_opts opts;
	struct offline_talk talk;
	int status = offline_begin(&talk, &latency_opt_set, &latency_verb, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		return status;
	offline_path(&opts.output_json);
	run(&talk, &opts, &talk.cli.err);
	return offline_end(&talk);
}
