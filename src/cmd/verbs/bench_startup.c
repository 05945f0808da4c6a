/* SPDX-License-Identifier: Apache-2.0 */
/* bench_startup.c - `profllm bench startup`. */
#include "bench/offline/offline.h"
#include "bench/offline/startup.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "cmd/verbs/offline_talk.h"

static void print_results(const struct startup_opts *o, const struct startup_result *r)
{
	const struct offline_told told = { .command = "startup", .backend = o->common.backend,
					   .about = &r->about };
	struct buf text = { 0 };

	if (!r->is_started)
		return;
	startup_terminal(&r->runs, &text);
	offline_told_line(&text, &told);
	buf_add_char(&text, '\n');
	startup_terminal_ours(&r->runs, &text);
	cli_out(buf_str(&text));
	buf_release(&text);
}

static void note_uncounted(struct offline_talk *talk, const struct startup_opts *o)
{
	const int64_t n[] = { o->num_iters_cold, o->num_iters_warm };
	const char *const name[] = { "cold", "warm" };

	for (size_t i = 0; i < 2; i++)
		if (n[i] <= 0)
			buf_printf(offline_note(talk), "--num-iters-%s %lld: %s starts are not measured, "
				   "and the result has no keys of them\n", name[i], (long long)n[i],
				   name[i]);
	if (o->num_iters_warm > 0 && o->num_iters_warmup <= 0)
		buf_printf(offline_note(talk), "--num-iters-warmup %lld: the first warm start may find "
			   "empty caches\n", (long long)o->num_iters_warmup);
}

static void show_plan(struct offline_talk *talk, const struct startup_opts *o)
{
	struct buf text = { 0 };

	offline_show_plan(talk);
	buf_printf(&text, "Starts: %lld cold, %lld for warm-up, %lld warm\n",
		   (long long)o->num_iters_cold, (long long)o->num_iters_warmup,
		   (long long)o->num_iters_warm);
	cli_out(buf_str(&text));
	buf_release(&text);
}

static int gates(struct offline_talk *talk, const struct startup_opts *o)
{
	struct buf example = { 0 };
	int rc;

	startup_example(o, &example);
	rc = offline_gates(talk, &o->gate, buf_str(&example), &talk->cli.err);
	buf_release(&example);
	return rc;
}

/* Printed, judged, and written. */
static void keep(struct offline_talk *talk, const struct startup_opts *o,
		 const struct startup_result *r)
{
	struct err unsaved = { 0 };
	struct buf json = { 0 };

	print_results(o, r);
	if (!r->is_started)
		return;
	startup_result_json(o, &talk->engine, r, &json);
	talk->hooks.result(talk, buf_str(&json));
	buf_release(&json);
	if (startup_save(o, &talk->engine, r, &unsaved) == 0)
		return;
	if (r->runs.is_interrupted)
		err_wrap(&talk->cli.err, "%s", unsaved.text);
	else
		talk->cli.err = unsaved;
}

int cmd_bench_startup(int argc, char **argv)
{
	struct startup_opts opts;
	struct startup_result result = { 0 };
	struct offline_talk talk;
	int status = offline_begin(&talk, &startup_opt_set, &startup_verb, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		return status;
	offline_path(&opts.output_json);
	startup_defaults(&opts, &talk.cli.result, &talk.engine);
	note_uncounted(&talk, &opts);
	offline_notes(&talk);
	if (gates(&talk, &opts) < 0)
		return offline_end(&talk);
	if (opts.common.dry_run) {
		show_plan(&talk, &opts);
		return offline_end(&talk);
	}
	if (opts.output_json && target_check("--output-json", opts.output_json, &talk.cli.err) < 0)
		return offline_end(&talk);
	if (startup_run(&opts, &talk.engine, &talk.hooks, &result, &talk.cli.err) == 0 ||
	    result.runs.is_interrupted)
		keep(&talk, &opts, &result);
	startup_result_release(&result);
	return offline_end(&talk);
}
