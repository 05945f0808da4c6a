/* SPDX-License-Identifier: Apache-2.0 */
/* bench_hash.c - `profllm bench hash` and `profllm bench prefix-block-hash`. */
#include <stdio.h>

#include "bench/offline/hash_bench.h"
#include "cmd/console/cli.h"
#include "cmd/verbs/cmd.h"

static void on_line(void *self, const char *text)
{
	(void)self;
	printf("%s\n", text);
	fflush(stdout);
}

static void on_warn(void *self, const char *text)
{
	(void)self;
	cli_warn(text);
}

static int bench(const struct opt_set *set,
		 int (*run)(const struct hash_opts *o, const struct offline_hooks *hooks,
			    struct err *e), int argc, char **argv)
{
	struct offline_hooks hooks = { .line = on_line, .warn = on_warn };
	struct hash_opts opts;
	struct cli cli;
	int status = cli_begin(&cli, set, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		return status;
	cli_flush_notes(&cli);
	if (opts.output_json && !*opts.output_json)
		opts.output_json = NULL;
	cli_catch_signals();
	hooks.cancel = cli_is_interrupted();
	if (!opts.output_json || target_check("--output-json", opts.output_json, &cli.err) == 0)
		run(&opts, &hooks, &cli.err);
	return cli_end(&cli);
}

int cmd_bench_hash(int argc, char **argv)
{
	return bench(&hash_opt_set, hash_run, argc, argv);
}

int cmd_bench_prefix_block_hash(int argc, char **argv)
{
	return bench(&block_hash_opt_set, block_hash_run, argc, argv);
}
