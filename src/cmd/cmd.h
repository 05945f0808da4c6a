/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd/cmd.h - one function per verb; main.c holds the table.
 *
 * argv is what follows the verb's words. The return value is the exit status.
 * Nothing outside cmd/ prints, exits or installs signal handlers.
 */
#pragma once

struct command {
	const char *name;    /* its words: "sim", "bench serve" */
	const char *summary; /* one line for profllm --help */
	int (*run)(int argc, char **argv);
};

/* The rows of verbs whose set no other header names, for completion scripts. */
struct opt_set;
const struct opt_set *cmd_bench_score_options(void);
const struct opt_set *cmd_bench_compare_options(void);
const struct opt_set *cmd_bench_markdown_options(void);
const struct opt_set *cmd_bench_plot_options(void);
const struct opt_set *cmd_bench_plot_results_options(void);
const struct opt_set *cmd_bench_plot_pareto_options(void);
const struct opt_set *cmd_bench_structured_options(void);
const struct opt_set *cmd_bench_ab_options(void);
const struct opt_set *cmd_run_options(void);
const struct opt_set *cmd_dashboard_options(void);
const struct opt_set *cmd_ingest_options(void);
const struct opt_set *cmd_export_options(void);
const struct opt_set *cmd_trends_options(void);
const struct opt_set *cmd_backup_options(void);
const struct opt_set *cmd_restore_options(void);
const struct opt_set *cmd_store_check_options(void);
const struct opt_set *cmd_store_archive_options(void);
const struct opt_set *cmd_store_remove_options(void);
const struct opt_set *cmd_store_retain_options(void);
const struct opt_set *cmd_store_convert_options(void);
enum cmd_args { CMD_ARGS_LIST, CMD_ARGS_SHOW, CMD_ARGS_IMPORT };
const struct opt_set *cmd_args_options(enum cmd_args verb);
const struct opt_set *args_import_set(void);
const struct opt_set *cmd_sim_options(void);
enum cmd_tokenizer {
	CMD_TOKENIZER_ENCODE, CMD_TOKENIZER_DECODE, CMD_TOKENIZER_COUNT, CMD_TOKENIZER_COMPILE,
	CMD_TOKENIZER_SHOW,
};
const struct opt_set *cmd_tokenizer_options(enum cmd_tokenizer verb);
const struct opt_set *cmd_dataset_show_options(void);
const struct opt_set *cmd_dataset_compile_options(void);
const struct opt_set *cmd_dataset_slices_options(void);
const struct opt_set *cmd_dataset_convert_options(void);

int cmd_bench_serve(int argc, char **argv);
int cmd_bench_ab(int argc, char **argv);
int cmd_bench_score(int argc, char **argv);
int cmd_bench_compare(int argc, char **argv);
int cmd_bench_markdown(int argc, char **argv);
int cmd_bench_plot(int argc, char **argv);
int cmd_bench_plot_results(int argc, char **argv);
int cmd_bench_plot_pareto(int argc, char **argv);
int cmd_bench_startup(int argc, char **argv);
int cmd_bench_latency(int argc, char **argv);
int cmd_bench_structured_output(int argc, char **argv);
int cmd_bench_throughput(int argc, char **argv);
int cmd_bench_prioritization(int argc, char **argv);
int cmd_bench_mm_processor(int argc, char **argv);
int cmd_bench_multi_turn(int argc, char **argv);
int cmd_bench_prefix_caching(int argc, char **argv);
int cmd_bench_long_document_qa(int argc, char **argv);
int cmd_bench_hash(int argc, char **argv);
int cmd_bench_prefix_block_hash(int argc, char **argv);
int cmd_bench_sweep_serve(int argc, char **argv);
int cmd_bench_sweep_startup(int argc, char **argv);
int cmd_bench_sweep_multi(int argc, char **argv);
int cmd_bench_sweep_workload(int argc, char **argv);
int cmd_bench_sweep_sla(int argc, char **argv);
const struct opt_set *cmd_bench_sweep_workload_options(void);
const struct opt_set *cmd_bench_sweep_sla_options(void);
int cmd_dataset_show(int argc, char **argv);
int cmd_dataset_compile(int argc, char **argv);
int cmd_dataset_slices(int argc, char **argv);
int cmd_dataset_convert(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_dashboard(int argc, char **argv);
int cmd_ingest(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_trends(int argc, char **argv);
int cmd_backup(int argc, char **argv);
int cmd_restore(int argc, char **argv);
int cmd_store_check(int argc, char **argv);
int cmd_store_archive(int argc, char **argv);
int cmd_store_remove(int argc, char **argv);
int cmd_store_retain(int argc, char **argv);
int cmd_store_convert(int argc, char **argv);
int cmd_args_list(int argc, char **argv);
int cmd_args_show(int argc, char **argv);
int cmd_args_import(int argc, char **argv);
int cmd_sim(int argc, char **argv);
int cmd_tokenizer_encode(int argc, char **argv);
int cmd_tokenizer_decode(int argc, char **argv);
int cmd_tokenizer_count(int argc, char **argv);
int cmd_tokenizer_compile(int argc, char **argv);
int cmd_tokenizer_show(int argc, char **argv);
