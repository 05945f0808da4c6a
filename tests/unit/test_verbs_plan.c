/* SPDX-License-Identifier: Apache-2.0 */
/* test_verbs_plan.c - what `profllm run` would do with many experiments, and what is refused. */
/* threads: yes */
#include "run_rig.h"

#define PLAN (RUN_EXACT | RUN_NO_FILES | RUN_NO_DOCUMENT)

static void plans(void **state)
{
	static const struct run_case row[] = {
		{ "plan", "suite: plan\nserver: {command: sim, model: sim, env: {A: it's}}\n"
		  "benchmark: {tokenizer: sim, random_input_len: 8, random_output_len: 2}\n"
		  "experiments:\n"
		  "- {name: plain, benchmark: {request_rate: 2, num_prompts: 120}}\n"
		  "- {name: secret, server: {command: vllm serve, model: it's, api_key: topsecret, "
		  "env: {HF_TOKEN: hf_topsecret}}}\n"
		  "- {name: there, server: {url: 'http://127.0.0.1:9', command: null, model: null, env: null}}\n"
		  "- {name: timed, benchmark: {duration: 90, max_concurrency: 4}}\n"
		  "- {name: ramp, benchmark: {num_prompts: 10, ramp_up_strategy: linear, "
		  "ramp_up_start_rps: 1, ramp_up_end_rps: 5}}\n"
		  "- {name: traced, profiling: {enabled: true, delay_s: 1, duration_s: 2}}\n",
		    .words = "--dry-run", .how = PLAN },
		{ "plan", NULL, .words = "--plan -", .how = PLAN },
		{ "modes", "suite: modes\nserver: {command: sim, model: sim, tokenizer: sim}\nexperiments:\n"
		  "- {name: latency, benchmark: {mode: latency, input_len: 8, output_len: 2, batch_size: 1}}\n"
		  "- {name: throughput, benchmark: {mode: throughput, num_prompts: 3}}\n"
		  "- {name: startup, benchmark: {mode: startup}}\n", .words = "--dry-run", .how = PLAN },
		{ "modes", NULL, .words = "--plan -", .how = PLAN },
		{ "grid", RUN_SIM RUN_LOAD "suite: grid\nrepeat: 2\nshuffle: 7\n"
		  "matrix: {server.max_num_seqs: [4, 8], benchmark.max_concurrency: [1, 2]}\n"
		  "matrix_exclude: [{server.max_num_seqs: 8, benchmark.max_concurrency: 2}]\n",
		    .words = "--dry-run", .how = PLAN },
		{ "grid", NULL, .words = "--plan -", .how = PLAN },
		{ "grid", NULL, .words = "--plan - --only *=4*-r1", .how = PLAN },
		{ "grid", NULL, .words = "--dry-run --jobs 3", .how = PLAN },
		{ "grid", NULL, .words = "--dry-run --only nothing", .status = 2, .how = PLAN },
		{ "always", RUN_SIM RUN_LOAD "restart: always\nmatrix: "
		  "{benchmark.max_concurrency: [1, 2]}\n", .words = "--dry-run", .how = PLAN },
		{ "roles", "name: roles\nservers:\n"
		  "- {name: front, role: proxy, command: sim, after: [before, behind]}\n"
		  "- {name: behind, role: decode, command: sim, after: [before]}\n"
		  "- {name: before, role: prefill, command: sim}\n" RUN_LOAD, .words = "--dry-run", .how = PLAN },
		{ "roles", NULL, .words = "--plan -", .how = PLAN },
		{ "container", "name: container\nserver: {command: vllm serve, model: m, container: "
		  "{runtime: docker, image: 'vllm/vllm-openai:latest', args: [--rm], mounts: ['/a:/b']}}\n"
		  "benchmark: {model: m, tokenizer: sim, num_prompts: 3}\n", .words = "--dry-run", .how = PLAN },
		{ "capacity", RUN_SIM RUN_LOAD "search: {find: concurrency, slo: 'mean_e2el_ms<200', level_seconds: 1, "
		  "precision: 20, budget: 60}\nmatrix: {server.max_num_seqs: [2, 8]}\n",
		    .words = "--set benchmark.max_concurrency=null --dry-run", .how = PLAN },
		{ "best", RUN_SIM RUN_LOAD "search: {best: output_throughput, first: 4, eta: 2}\nrepeat: 2\n"
		  "matrix: {server.max_num_seqs: [1, 2, 3, 4]}\n",
		    .words = "--set benchmark.num_prompts=16 --dry-run", .how = PLAN },
		{ "best", NULL, .words = "--set benchmark.num_prompts=16 --plan -", .how = PLAN },
		{ "slurm", RUN_SIM RUN_LOAD "scheduler: {type: slurm, partition: main, time_limit: 90s}\n"
		  "matrix: {server.max_num_seqs: [1, 2]}\nresources: {gpus: 2}\n", .words = "--dry-run", .how = PLAN },
		{ "printed", RUN_SIM RUN_LOAD "name: printed\n", .words = "--print-config", .how = PLAN },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

static void refused(void **state)
{
	static const char *const row[] = {
		"matrix: 3", "matrix: {server.max_num_seqs: 4}", "matrix: {server.max_num_seq: [4]}",
		"matrix: {benchmark.num_prompts: [1, x]}", "matrix: {server: [{tp: 1}, {tp: 2}]}",
		"matrix: {server.tp: [1, 2], tensor_parallel_size: [4]}",
		"matrix: {benchmark.num_prompts: [1]}\nmatrix_exclude: [{benchmark.nun: 1}]",
		"matrix: {benchmark.num_prompts: [1], benchmark.seed: [1]}\n"
		"matrix_exclude: [{benchmark.num_prompts: 1}]",
		"experiments: {}", "experiments: [{benchmark: {}}]", "experiments: [{name: a}, {name: a}]",
		"experiments: [{name: a, repeat: 2}]", "repeat: 0", "jobs: many", "shuffle: yes please",
		"jobs: 2\nprofiling: {enabled: true, dir: d}\nexperiments: [{name: a}, {name: b}]",
		"restart: sometimes", "restart: never\nmatrix: {server.max_num_seqs: [1, 2]}",
		"matrix: {max_num_seq: [8]}", "matrix: {nonsense: [8]}", "matrix: {seed: [8]}",
		"matrix_exclude: [{server.seed: 1}]", "stop_on_error: x", "search: {}",
		"search: {find: rate}", "search: {find: rate, slo: 'p99_itl_ms<3'}",
		"search: {find: rate, slo: 'p99_ttft_ms<9', eta: 2}", "search: {best: output_throughput}",
		"search: {best: output_thruput}\nmatrix: {server.max_num_seqs: [1, 2]}",
		"search: {best: total_output_tokens}\nmatrix: {server.max_num_seqs: [1, 2]}",
		"search: {best: output_throughput, first: 2000}\nmatrix: {server.max_num_seqs: [1, 2]}",
		"search: {best: output_throughput}\nmatrix: {benchmark.num_prompts: [3, 4]}",
		"scheduler: {type: ssh}", "scheduler: {type: slurm, time_limit: soon}", "scheduler: {type: pbs}",
		"require: [nonsense<3]", "require: ['mean_ttft_ms<x']",
		"restart: never\nmatrix: {server.max_num_seqs: [1, x]}", "require: [p98_ttft_ms<9]",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct buf text = { 0 };
		char name[16];

		snprintf(name, sizeof(name), "refused%zu", i);
		buf_printf(&text, RUN_SIM RUN_LOAD "%s\n", row[i]);
		run_check(&(struct run_case){ name, text.data, .status = 2,
			.how = RUN_EXACT | RUN_NO_FILES | (i ? RUN_NO_DOCUMENT : 0) });
		buf_release(&text);
	}
}

RUN_MAIN(run_setup, cmocka_unit_test(plans), cmocka_unit_test(refused))
