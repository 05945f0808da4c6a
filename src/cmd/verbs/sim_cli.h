/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_cli.h - the parts of `profllm sim`:
 *
 *   sim.c        the verb; options into a server and its hardware; starting
 *   sim_rows.c   the options and their defaults, vllm serve's argument list as those, roles
 *   sim_worker.c the engine as a worker (--engine-worker)
 */
#pragma once
#include "cmd/console/cli.h"
#include "sim/model/hardware.h"
#include "sim/serving/sim.h"

struct sim_cli {
	const char *host, *uds, *port_file, *cert_file, *key_file, *client_ca_file, *api_key;
	int64_t port, keep_alive_ms;
	const char *model_tag, *model, *tokenizer;
	struct opt_list served;
	int64_t max_model_len, seed;
	const char *ttft_ms, *itl_ms, *output_len;
	double burst_ms;
	int64_t tokens_per_event, reasoning, spec_tokens, diffusion_block, diffusion_steps;
	double spec_acceptance;
	struct opt_json speculative;
	const char *spec_method;
	struct opt_list faults;
	const char *constraint_form, *scheduling;
	bool is_constraint_ignored;
	double constraint_errors, tool_call_share, tool_call_errors;
	int64_t tool_calls_max, loras_max;
	enum opt_tri lora;
	struct opt_list lora_modules;
	int64_t max_num_seqs, max_num_batched_tokens, kv_cache_tokens, chunk_max;
	double prefill_base_us, prefill_us_per_token, decode_base_us, decode_us_per_seq;
	enum opt_tri prefix_caching, chunked_prefill;
	bool is_cached_told;
	const char *gpu, *shape, *dtype, *quantization, *kv_cache_dtype, *load_format;
	int64_t tp, pp, dp, block_size;
	struct opt_int kv_bytes, blocks;
	double utilization;
	enum opt_tri eager, async_scheduling;
	bool is_explained;
	double startup_scale;
	const char *die_after, *fail_start;
	bool is_never_ready, is_term_ignored, is_daemon_forked;
	const char *truth_file, *requests_file;
	struct opt_json profiler, kv_transfer;
	const char *role, *kv_cache_url, *kv_host;
	struct opt_real kv_offloading, kv_transfer_us;
	double cpu_offload_gib, proxy_timeout_s;
	struct opt_list prefill_urls, decode_urls, backend_urls;
	int64_t prefill_kv_port, decode_kv_port;
	int64_t trace_ms;
	bool is_worker;
	const char *account, *worker_fault;
};

/* ---- sim_rows.c ---- */

struct sim_args {
	int argc;
	char **argv;          /* our options only; in the arena */
	bool is_len_auto;     /* --max-model-len auto: what fits */
	bool is_level_eager;  /* -O0 and its like */
	struct buf notes;     /* what has no effect; to be released */
};

/*
 * Arguments of vLLM's server that we model become our options: -tp 2, --max-model-len 32k. Its
 * other arguments are checked, dropped and named in notes. The rest is unchanged.
 */
int sim_args_fit(const struct opt_set *set, char **argv, struct sim_args *out, struct arena *a,
		 struct err *e);

/* ---- sim.c ---- */

struct sim_setup {
	struct sim_opts sim;
	bool has_hardware;    /* hw models the engine's time and memory */
	struct sim_hardware hw; /* zeroed without, but for the times of a slow start */
	struct buf notes;     /* a line each; to be released */
};

/* Strings of cli are borrowed. */
int sim_setup(const struct sim_cli *cli, const struct cli *parsed, const struct sim_args *args,
	      struct sim_setup *out, struct err *e);
const char *sim_model(const struct sim_cli *cli); /* the positional one, or --model */

/* out's hardware is known; texts go to the arena. */
int sim_kv_setup(const struct sim_cli *cli, struct arena *a, struct sim_setup *out, struct err *e);

/* --fail-start: ends the process, or -1 with the engine's sentence. */
int sim_start_fail(const char *how, struct err *e);
__attribute__((format(printf, 1, 2)))
void sim_log(const char *format, ...); /* a line as vLLM logs it */
void sim_log_cache(const struct sim_setup *s, int64_t ranks); /* the KV cache's size */

/* ---- sim_worker.c ---- */

/* Speaks over descriptor PROFLLM_WORKER_FD; argv: all options of ours, before those of "load". */
int sim_worker(const struct sim_cli *cli, char **argv, struct err *e);
