/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cmd.h - one function per verb; main.c holds the table.
 *
 * Most verbs are the code between cli_begin and cli_end: cli_run parses their options by their set.
 * values: the struct of the set. They return -1 with c->err, or the exit status of a verb that has
 * done its work. Those that parse by themselves get the words after the verb's name and return the
 * exit status. Nothing outside cmd/ prints, exits or installs signal handlers.
 */
#pragma once
#include "cmd/console/cli.h"
#include "experiment/suite/upload.h"
#include "host/engine/extra.h"

struct command {
	const char *name;    /* its words: "sim", "bench serve" */
	const char *summary; /* one line for profllm --help */
	const struct opt_set *set; /* its options; NULL: those of options */
	cli_work *work;
	int (*run)(int argc, char **argv); /* takes the place of work */
	const struct opt_set *(*options)(void);
};

extern const struct opt_set cmd_args_import_set, cmd_args_list_set, cmd_args_show_set,
	cmd_backup_set, cmd_bench_ab_set, cmd_bench_compare_set, cmd_bench_markdown_set,
	cmd_bench_plot_set, cmd_bench_score_set, cmd_bench_structured_output_set,
	cmd_bench_sweep_pareto_set, cmd_bench_sweep_plot_set, cmd_bench_tap_set, cmd_dashboard_set,
	cmd_dataset_convert_set, cmd_dataset_slices_set, cmd_doctor_set, cmd_export_set,
	cmd_ingest_set, cmd_init_set, cmd_restore_set, cmd_run_set, cmd_store_archive_set,
	cmd_store_check_set, cmd_store_convert_set, cmd_store_remove_set, cmd_store_retain_set,
	cmd_tokenizer_compile_set, cmd_tokenizer_count_set, cmd_tokenizer_decode_set,
	cmd_tokenizer_encode_set, cmd_tokenizer_show_set, cmd_trends_set;
const struct opt_set *cmd_bench_sweep_sla_options(void);
const struct opt_set *cmd_bench_sweep_workload_options(void);
const struct opt_set *cmd_dataset_compile_options(void);
const struct opt_set *cmd_dataset_show_options(void);
const struct opt_set *cmd_sim_options(void);

cli_work cmd_args_import, cmd_args_list, cmd_args_show, cmd_backup, cmd_bench_ab,
	cmd_bench_markdown, cmd_bench_plot, cmd_bench_score, cmd_bench_sweep_pareto,
	cmd_bench_sweep_plot, cmd_bench_tap, cmd_dashboard, cmd_dataset_compile,
	cmd_dataset_convert, cmd_dataset_show, cmd_dataset_slices, cmd_doctor, cmd_export,
	cmd_ingest, cmd_init, cmd_restore, cmd_run, cmd_store_archive, cmd_store_check,
	cmd_store_convert, cmd_store_remove, cmd_store_retain, cmd_tokenizer_compile,
	cmd_tokenizer_count, cmd_tokenizer_decode, cmd_tokenizer_encode, cmd_tokenizer_show,
	cmd_trends;

int cmd_bench_compare(int argc, char **argv);
int cmd_bench_hash(int argc, char **argv);
int cmd_bench_latency(int argc, char **argv);
int cmd_bench_long_document_qa(int argc, char **argv);
int cmd_bench_mm_processor(int argc, char **argv);
int cmd_bench_multi_turn(int argc, char **argv);
int cmd_bench_prefix_block_hash(int argc, char **argv);
int cmd_bench_prefix_caching(int argc, char **argv);
int cmd_bench_prioritization(int argc, char **argv);
int cmd_bench_serve(int argc, char **argv);
int cmd_bench_startup(int argc, char **argv);
int cmd_bench_structured_output(int argc, char **argv);
int cmd_bench_sweep_multi(int argc, char **argv);
int cmd_bench_sweep_serve(int argc, char **argv);
int cmd_bench_sweep_sla(int argc, char **argv);
int cmd_bench_sweep_startup(int argc, char **argv);
int cmd_bench_sweep_workload(int argc, char **argv);
int cmd_bench_throughput(int argc, char **argv);
int cmd_sim(int argc, char **argv);

/* ---- what verbs do for others ---- */

/*
 * The file of arguments that `args import` writes. path NULL: the user's own; if there is none,
 * *out is empty and it is not an error. ERR_USAGE: a given path cannot be read, or is not such a
 * file.
 */
int args_file_load(const char *path, struct arena *a, struct engine_extra *out, struct err *e);
/*
 * Runs of a store: what `export --format jsonl` writes. store: as --store, NULL: the default.
 * filter: JSON or NULL. Appends a line for each run.
 */
int export_jsonl(const char *store, const char *filter, struct buf *out, struct arena *a,
		 struct err *e);
/*
 * The traces that a document names (store/trace_files.h), ready to be sent: trace and n_traces of
 * *o, in the arena. note: see trace_files_find.
 */
void named_traces(struct str document, const char *place, const char *folder, struct arena *a,
		  struct upload_opts *o, struct str *note);
/*
 * `bench serve` as a step of another verb (sweeps), in this process: no start-up, and Ctrl-C
 * reaches it by the same flag. Whether argv (ended by NULL) is `vllm bench serve ...` or `profllm
 * bench serve ...`.
 */
bool bench_run_knows(char *const *argv);
/*
 * Runs it and returns its exit status (130: interrupted); e is its error. Unless is_shown, its
 * stdout is discarded.
 */
int bench_run(char *const *argv, bool is_shown, struct err *e);
