/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_modes.c - `profllm run` in every mode, and with everything that is kept. */
/* threads: yes */
#include "run_rig.h"

#define TURNS RUN_SIM "benchmark: {mode: multi-turn, " \
	"input_file: said.json, num_clients: 1, tokenizer: sim, " \
	"ready_check_timeout_sec: 0, warmup_percentages: '0%'}\n" RUN_QUIET
#define AT(path) RUN_SIM RUN_BENCH ", dataset_name: " path "}\n" RUN_QUIET

/* Conversations, and files of datasets that are not there. */
static void datasets(void **state)
{
	static const struct run_case row[] = {
		{ "talk", TURNS, .how = RUN_NO_DOCUMENT },
		{ "talk", NULL, .words = "--set benchmark.input_file=nosuch", .status = 2, .how = RUN_NO_DOCUMENT },
		{ "file", AT("sharegpt, dataset_path: nosuch.json"), .status = 2 },
	};

	(void)state;
	run_write("said.json", "[{\"id\": \"a\", \"messages\": ["
		  "{\"role\": \"user\", \"content\": \"first 1\"}, "
		  "{\"role\": \"assistant\", \"content\": \"yes\"}, "
		  "{\"role\": \"user\", \"content\": \"then\"}, "
		  "{\"role\": \"assistant\", \"content\": \"no\"}]}]");
	RUN_CHECK_ALL(row);
}

static void modes(void **state)
{
	static const struct run_case row[] = {
		{ "serve", RUN_SIM RUN_BENCH ", save_detailed: true, record: recorded, goodput: ['ttft:500'], "
		  "num_warmups: 1}\ntelemetry: {enabled: true, interval_s: 0.1}\n"
		  "tags: {team: a, ticket: 7}\nprovenance: {engine_commit: abc, pr: 5}\n", .words = NULL },
		{ "latency", "server: {command: sim, model: sim, tokenizer: sim}\nbenchmark: {mode: latency, "
		  "input_len: 16, output_len: 4, num_iters: 2, num_iters_warmup: 1, batch_size: "
		    "2}\n" RUN_QUIET, .words = NULL },
		{ "throughput", "server: {command: sim, model: sim, tokenizer: sim}\nbenchmark: "
		  "{mode: throughput, num_prompts: 3, input_len: 8, output_len: 2, dataset_name: random}\n" RUN_QUIET,
		  .words = NULL },
		{ "startup", "server: {command: sim, model: sim, tokenizer: sim, startup_scale: 0.001}\n"
		  "benchmark: {mode: startup, num_iters_cold: 1, num_iters_warm: 1, num_iters_warmup: 0}\n" RUN_QUIET,
		  .words = NULL },
		{ "turns", RUN_SIM "benchmark: {mode: multi-turn, tokenizer: sim}\n" RUN_QUIET, .status = 2 },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

RUN_MAIN(run_setup, cmocka_unit_test(modes), cmocka_unit_test(datasets))
