/* SPDX-License-Identifier: Apache-2.0 */
/* bench_markdown.c - `profllm bench markdown`: a folder of results as tables. */
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"
#include "out/compare/markdown.h"

struct markdown_args { const char *result; };

static const struct opt rows[] = {
	OPT(struct markdown_args, result, "result", .letter = 'r', .arg = "DIR",
	    .help = "Folder of results; benchmark_results.md and .json are written into it."),
};
static const struct markdown_args defaults = { .result = "results" };

const struct opt_set cmd_bench_markdown_set = {
	.command = "bench markdown",
	.summary = "Writes the tables of a folder of results: Markdown for people, JSON to compare.",
	.epilog = "Examples:\n"
		  "  profllm bench markdown -r results\n"
		  "  profllm bench compare -f a/benchmark_results.json -f b/benchmark_results.json",
	OPT_SET_OF(rows, defaults),
};

int cmd_bench_markdown(struct cli *cli, void *values)
{
	struct markdown_args *o = values;
	struct buf lines = { 0 };

	markdown_report(o->result, &lines, &cli->err);
	if (lines.len)
		cli_out_buf(&lines);
	return 0;
}
