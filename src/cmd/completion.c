/* SPDX-License-Identifier: Apache-2.0 */
/* cmd/completion.c - `profllm completion bash|zsh`: the script a shell sources. */
#include "cmd/cli.h"
#include "cmd/cmd.h"
#include "run/latency.h"
#include "run/multi_turn.h"
#include "run/throughput.h"
#include "run/mm_processor.h"
#include "run/hash_bench.h"
#include "run/prefix_bench.h"
#include "run/prioritization.h"
#include "run/serve_opts.h"
#include "run/startup.h"
#include "run/sweep.h"

struct completion_opts { const char *shell; };

static const char *const shells[] = { "bash", "zsh", NULL };
static const struct opt rows[] = {
	OPT(struct completion_opts, shell, "SHELL", .choices = shells,
	    .flags = OPT_POSITIONAL | OPT_MANY, .help = "whose script to print"),
};
static const struct completion_opts defaults;

static const struct opt_set set = {
	.command = "completion",
	.summary = "Prints the completion script of a shell.",
	.epilog = "Examples:\n"
		  "  source <(profllm completion bash)\n"
		  "  profllm completion bash >/etc/bash_completion.d/profllm",
	.row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults),
};

int cmd_completion(int argc, char **argv)
{
	const struct opt_set *const sets[] = {
		&serve_opt_set, cmd_bench_ab_options(), cmd_bench_structured_options(),
		cmd_bench_score_options(), cmd_run_options(), cmd_sim_options(),
		cmd_bench_compare_options(), cmd_bench_markdown_options(),
		&multi_turn_opt_set,
		&throughput_opt_set, &prioritization_opt_set,
		&latency_opt_set, &mm_processor_opt_set, &startup_opt_set,
		prefix_caching_bench.set, long_document_bench.set,
		&hash_opt_set, &block_hash_opt_set,
		&sweep_serve_opt_set, &sweep_startup_opt_set,
		cmd_bench_sweep_workload_options(), cmd_bench_sweep_sla_options(),
		cmd_bench_plot_options(), cmd_bench_plot_pareto_options(),
		cmd_tokenizer_options(CMD_TOKENIZER_ENCODE),
		cmd_tokenizer_options(CMD_TOKENIZER_DECODE),
		cmd_tokenizer_options(CMD_TOKENIZER_COUNT),
		cmd_tokenizer_options(CMD_TOKENIZER_SHOW),
		cmd_tokenizer_options(CMD_TOKENIZER_COMPILE),
		cmd_args_options(CMD_ARGS_LIST), cmd_args_options(CMD_ARGS_SHOW),
		cmd_args_options(CMD_ARGS_IMPORT),
		cmd_dataset_show_options(), cmd_dataset_compile_options(),
		cmd_dataset_slices_options(), cmd_dataset_convert_options(),
		cmd_dashboard_options(), cmd_ingest_options(),
		cmd_export_options(), cmd_trends_options(),
		cmd_backup_options(), cmd_restore_options(),
		cmd_store_check_options(), cmd_store_archive_options(), cmd_store_remove_options(),
		cmd_store_retain_options(), cmd_store_convert_options(), &set,
	};
	struct completion_opts opts;
	struct buf script = { 0 };
	struct cli cli;
	int status = cli_begin(&cli, &set, argc, argv, &opts);

	if (status != CLI_CONTINUE)
		return status;
	if (opt_completion(sets, sizeof(sets) / sizeof(*sets), "profllm", opts.shell, &script,
			   &cli.err) == 0)
		cli_out(buf_str(&script));
	buf_release(&script);
	return cli_end(&cli);
}
