/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_rows.c - see sim_cli.h: the options of `profllm sim`. Those that vLLM's server has
 * keep its names; what else it takes is dealt with in sim_args.c.
 */
#include <math.h>

#include "cmd/verbs/cmd.h"
#include "cmd/verbs/sim_cli.h"
#include "sim/model/script.h"
#include "sim/serving/truth.h"

#define ROW(member, name, ...) OPT(struct sim_cli, member, name, __VA_ARGS__)
#define SERVER "Server"
#define MODEL "Model"
#define ORACLE "Oracle: exact pacing"
#define ANSWERS "What answers say"
#define ENGINE "Engine model: batching"
#define HARDWARE "Engine model: hardware"
#define ROLES "Roles and KV caches elsewhere"
#define LIFE "Starting and failing"
#define FILES "Files"
#define WORKER "Engine worker"

static const char *const dtypes[] = {
	"auto", "bfloat16", "float", "float16", "float32", "half", NULL,
};

static const char *const role_names[] = {
	"serve", "prefill", "decode", "proxy", "cache", NULL,
};

static const char *const policies[] = { "fcfs", "priority", NULL };
static const char *const constraint_forms[] = { "structured_outputs", "guided", NULL };

static const struct opt rows[] = {
	ROW(host, "host", .group = SERVER, .help = "Address to listen on."),
	ROW(port, "port", .group = SERVER, .min = 0, .max = 65535,
	    .help = "TCP port; 0 picks a free one."),
	ROW(port_file, "port-file", .group = SERVER, .arg = "FILE", .flags = OPT_OURS,
	    .help = "File to write the bound port to."),
	ROW(uds, "uds", .group = SERVER, .arg = "PATH",
	    .help = "Listen on this Unix socket instead of a TCP port."),
	ROW(cert_file, "ssl-certfile", .group = SERVER, .arg = "FILE",
	    .help = "Certificate (PEM); with --ssl-keyfile the server speaks https."),
	ROW(key_file, "ssl-keyfile", .group = SERVER, .arg = "FILE", .help = "Private key (PEM)."),
	ROW(client_ca_file, "ssl-ca-certs", .group = SERVER, .arg = "FILE",
	    .help = "Clients must show a certificate of one of these authorities (PEM)."),
	ROW(api_key, "api-key", .group = SERVER, .flags = OPT_SECRET,
	    .help = "Key that requests under /v1 must bring as a bearer token."),
	ROW(keep_alive_ms, "keep-alive-ms", .group = SERVER, .arg = "MS", .flags = OPT_OURS,
	    .min = 0, .max = 1e9,
	    .help = "Close connections that were idle this long; 0 never does."),

	ROW(model_tag, "model-tag", .group = MODEL, .flags = OPT_POSITIONAL | OPT_NO_CONFIG,
	    .arg = "MODEL", .help = "As --model, where vllm serve has it."),
	ROW(model, "model", .group = MODEL, .help = "Name of the model, the root in /v1/models."),
	ROW(served, "served-model-name", .group = MODEL, .arg = "NAME", .flags = OPT_MANY,
	    .help = "Ids the model is served under; default: its name."),
	ROW(tokenizer, "tokenizer", .group = MODEL, .arg = "PATH",
	    .help = "What tokens are counted and answers are written with: sim (built in), a "
		    "tokenizer.json, its directory, or a cached model name."),
	ROW(max_model_len, "max-model-len", .group = MODEL, .arg = "TOKENS", .min = 2, .max = 1e9,
	    .help = "Most tokens of prompt and answer together."),
	ROW(seed, "seed", .group = MODEL, .min = 0, .max = 9e15,
	    .help = "Seed of answers, distributions and faults."),

	ROW(ttft_ms, "ttft-ms", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "Time from the request's arrival to its first token: 20, uniform:10:30, "
		    "normal:20:5, exp:20 or lognormal:20:0.5 (median, sigma)."),
	ROW(itl_ms, "itl-ms", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "Time between two token events, likewise."),
	ROW(burst_ms, "burst-ms", .group = ORACLE, .arg = "MS", .flags = OPT_OURS, .min = 0,
	    .max = 1e7, .help = "All streams send together on a grid of this many milliseconds."),
	ROW(tokens_per_event, "tokens-per-event", .group = ORACLE, .arg = "K", .flags = OPT_OURS,
	    .min = 1, .max = 1024, .help = "Tokens that one event carries."),
	ROW(reasoning, "reasoning", .group = ORACLE, .arg = "N", .flags = OPT_OURS, .min = 0,
	    .max = 1e9, .help = "The first N tokens of a chat answer are reasoning."),
	ROW(spec_tokens, "spec-tokens", .group = ORACLE, .arg = "K", .min = 0,
	    .max = COUNTER_POSITIONS_MAX,
	    .help = "Speculative decoding, in the engine model, too: K tokens are drafted for "
		    "each event after the first; 0 drafts none."),
	ROW(speculative, "speculative-config", .group = ENGINE, .arg = "JSON",
	    .help = "Speculative decoding as vLLM is told: num_speculative_tokens is --spec-tokens; "
		    "method decides what proposing drafts costs (ngram, eagle, draft_model ...)."),
	ROW(spec_method, "spec-method", .group = ENGINE, .arg = "METHOD",
	    .help = "The same method by itself."),
	ROW(spec_acceptance, "spec-acceptance", .group = ORACLE, .arg = "P", .flags = OPT_OURS,
	    .min = 0, .max = 1, .help = "Probability that a drafted token is accepted, when "
					"those before it were."),
	ROW(diffusion_block, "diffusion-block", .group = ORACLE, .arg = "TOKENS",
	    .flags = OPT_OURS, .min = 0, .max = 4096,
	    .help = "A diffusion model, in the engine model, too: events are canvases of this "
		    "many tokens; 0: none."),
	ROW(diffusion_steps, "diffusion-steps", .group = ORACLE, .arg = "N", .flags = OPT_OURS,
	    .min = 1, .max = 4096, .help = "Denoising steps of each canvas."),
	ROW(output_len, "output-len", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "Answers end by themselves after that many tokens unless ignore_eos is set."),
	ROW(faults, "fault", .group = ORACLE, .arg = "SPEC", .flags = OPT_OURS | OPT_MANY,
	    .help = "What goes wrong: KIND[@TOKEN][=VALUE][:PROBABILITY or :id=PATTERN]; see the "
		    "end of this page."),

	ROW(constraint_form, "constraint-form", .group = ANSWERS, .flags = OPT_OURS,
	    .choices = constraint_forms, .help = "Members that constrain answers, besides "
		    "response_format: structured_outputs, or guided_json and its like as servers "
		    "before 0.12 had them. The others are ignored, as unknown members are."),
	ROW(is_constraint_ignored, "ignore-constraints", .group = ANSWERS, .flags = OPT_OURS,
	    .help = "Ignore all of them, as a server that does not know them."),
	ROW(constraint_errors, "constraint-errors", .group = ANSWERS, .arg = "SHARE",
	    .flags = OPT_OURS, .min = 0, .max = 1,
	    .help = "Share of constrained answers that are wrong by a little; the truth file names "
		    "them."),
	ROW(tool_call_share, "tool-call-share", .group = ANSWERS, .arg = "SHARE",
	    .flags = OPT_OURS, .min = 0, .max = 1,
	    .help = "Share of requests with tools and tool_choice auto that are answered by calls."),
	ROW(tool_calls_max, "tool-calls", .group = ANSWERS, .arg = "N", .flags = OPT_OURS, .min = 1,
	    .max = SCRIPT_CALLS_MAX, .help = "Such an answer has from 1 to N calls."),
	ROW(tool_call_errors, "tool-call-errors", .group = ANSWERS, .arg = "SHARE",
	    .flags = OPT_OURS, .min = 0, .max = 1,
	    .help = "Share of calls whose arguments are wrong by a little."),
	ROW(lora_modules, "lora-modules", .group = ANSWERS, .arg = "NAME=PATH", .flags = OPT_MANY,
	    .help = "LoRA adapters that are served as models: NAME=PATH, or a JSON object with name, "
		    "path and base_model_name."),
	ROW(lora, "enable-lora", .group = ANSWERS,
	    .help = "Requests may name adapters; --lora-modules implies it."),
	ROW(loras_max, "max-loras", .group = ANSWERS, .arg = "N", .min = 1, .max = ENGINE_LORAS_MAX,
	    .help = "Most adapters in one batch; requests with others wait."),

	ROW(scheduling, "scheduling-policy", .group = ENGINE, .choices = policies,
	    .help = "Who is served first: who came first, or the lowest priority of the requests."),
	ROW(max_num_seqs, "max-num-seqs", .group = ENGINE, .min = 1, .max = 1e6,
	    .help = "Most requests in one batch."),
	ROW(max_num_batched_tokens, "max-num-batched-tokens", .group = ENGINE, .min = 1,
	    .max = 1e9, .help = "Token budget of one scheduler step."),
	ROW(kv_cache_tokens, "kv-cache-tokens", .group = ENGINE, .flags = OPT_OURS, .min = 1,
	    .max = 1e12, .help = "Tokens the KV cache holds; running requests that need more "
				 "are preempted, the newest first."),
	ROW(prefix_caching, "enable-prefix-caching", .group = ENGINE,
	    .help = "Prefix caching: known beginnings of prompts are not computed again."),
	ROW(chunked_prefill, "enable-chunked-prefill", .group = ENGINE,
	    .help = "Long prompts are cut over several steps; without it they wait for a step "
		    "that holds them whole."),
	ROW(chunk_max, "long-prefill-token-threshold", .group = ENGINE, .arg = "TOKENS", .min = 0,
	    .max = 1e9, .help = "Most tokens of one prompt in a step; 0: as the budget allows."),
	ROW(is_cached_told, "enable-prompt-tokens-details", .group = ENGINE,
	    .help = "Usage says how many prompt tokens were cached."),
	ROW(prefill_base_us, "prefill-base-us", .group = ENGINE, .arg = "US", .flags = OPT_OURS,
	    .min = 0, .max = 1e9, .help = "Cost of a step with any prefill."),
	ROW(prefill_us_per_token, "prefill-us-per-token", .group = ENGINE, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e9, .help = "Cost of each prompt token."),
	ROW(decode_base_us, "decode-base-us", .group = ENGINE, .arg = "US", .flags = OPT_OURS,
	    .min = 0, .max = 1e9, .help = "Cost of a step with any decoding."),
	ROW(decode_us_per_seq, "decode-us-per-seq", .group = ENGINE, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e9, .help = "Cost of each decoding request."),

	ROW(gpu, "gpu", .group = HARDWARE, .flags = OPT_OURS, .choices = hardware_gpus,
	    .help = "Time and memory are those of this GPU; given by itself, of the first model "
		    "shape."),
	ROW(shape, "model-shape", .group = HARDWARE, .arg = "SHAPE", .flags = OPT_OURS,
	    .choices = hardware_shapes, .help = "And of a model of this shape. A --model whose name "
						"says so has its shape without this."),
	ROW(tp, "tensor-parallel-size", .group = HARDWARE, .arg = "N", .min = 1, .max = 64,
	    .help = "GPUs that share every layer."),
	ROW(pp, "pipeline-parallel-size", .group = HARDWARE, .arg = "N", .min = 1, .max = 64,
	    .help = "Groups of GPUs that have some of the layers each."),
	ROW(dp, "data-parallel-size", .group = HARDWARE, .arg = "N", .min = 1, .max = 64,
	    .help = "Engines; a request goes to the one with least to do."),
	ROW(dtype, "dtype", .group = HARDWARE, .choices = dtypes,
	    .help = "Numbers that weights are kept in and computed with."),
	ROW(quantization, "quantization", .group = HARDWARE, .arg = "METHOD",
	    .help = "How weights are quantized: fp8, awq, gptq, bitsandbytes, modelopt_fp4 ...; "
		    "default: what the model's name says."),
	ROW(kv_cache_dtype, "kv-cache-dtype", .group = HARDWARE,
	    .help = "Numbers of the KV cache: auto, fp8 ..."),
	ROW(utilization, "gpu-memory-utilization", .group = HARDWARE, .arg = "SHARE",
	    .flags = OPT_MIN_EXCLUSIVE, .min = 0, .max = 1,
	    .help = "Fraction of GPU memory to use."),
	ROW(kv_bytes, "kv-cache-memory-bytes", .group = HARDWARE, .arg = "BYTES", .min = 1,
	    .max = 1e15, .help = "Size of the KV cache on each GPU, whatever is left."),
	ROW(blocks, "num-gpu-blocks-override", .group = HARDWARE, .arg = "BLOCKS", .min = 1,
	    .max = 1e12, .help = "The same in blocks."),
	ROW(block_size, "block-size", .group = HARDWARE, .arg = "TOKENS", .min = 1, .max = 4096,
	    .help = "Tokens of one block of the KV cache."),
	ROW(eager, "enforce-eager", .group = HARDWARE,
	    .help = "No CUDA graphs: faster start, slower small steps."),
	ROW(async_scheduling, "async-scheduling", .group = HARDWARE,
	    .help = "Scheduling runs beside the GPU (the default)."),
	ROW(load_format, "load-format", .group = HARDWARE, .arg = "FORMAT",
	    .help = "dummy: weights are not read."),
	ROW(is_explained, "explain", .group = HARDWARE, .flags = OPT_OURS,
	    .help = "Print what the model of this hardware amounts to, and exit."),

	ROW(role, "role", .group = ROLES, .flags = OPT_OURS, .choices = role_names,
	    .help = "Role in a disaggregated deployment: prefill or decode (kv_producer or kv_consumer of "
		    "--kv-transfer-config), a proxy in front of them, or a shared cache."),
	ROW(kv_transfer, "kv-transfer-config", .group = ROLES, .arg = "JSON",
	    .help = "As vLLM is told: kv_connector, kv_role, kv_connector_extra_config."),
	ROW(kv_offloading, "kv-offloading-size", .group = ROLES, .arg = "GIB", .min = 0,
	    .max = 1e6, .help = "Host memory for blocks that leave the KV cache; finding them there "
				"costs bringing them back."),
	ROW(cpu_offload_gib, "cpu-offload-gb", .group = ROLES, .arg = "GIB", .min = 0, .max = 1e5,
	    .help = "Weights of each GPU that stay in the host's memory and are read from there in "
		    "every step."),
	ROW(kv_cache_url, "kv-cache-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS,
	    .help = "A --role cache whose blocks this server shares with others."),
	ROW(kv_transfer_us, "kv-transfer-us-per-token", .group = ROLES, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e6,
	    .help = "Bringing a token's KV cache from elsewhere; default: by the GPU's PCIe."),
	ROW(prefill_urls, "prefill-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS | OPT_MANY,
	    .help = "Proxy: URLs of the prefill servers, used in turn."),
	ROW(decode_urls, "decode-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS | OPT_MANY,
	    .help = "Proxy: URLs of the decode servers."),
	ROW(backend_urls, "backend-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS | OPT_MANY,
	    .help = "Proxy: URLs of servers that take whole requests, used in turn."),
	ROW(kv_host, "kv-host", .group = ROLES, .flags = OPT_OURS,
	    .help = "Proxy: the host that X-Request-Id names."),
	ROW(prefill_kv_port, "prefill-kv-port", .group = ROLES, .flags = OPT_OURS, .min = 1,
	    .max = 65535, .help = "Proxy: KV port of the prefill server."),
	ROW(decode_kv_port, "decode-kv-port", .group = ROLES, .flags = OPT_OURS, .min = 1,
	    .max = 65535, .help = "Proxy: KV port of the decode server."),
	ROW(proxy_timeout_s, "proxy-timeout", .group = ROLES, .arg = "SECONDS", .flags = OPT_OURS,
	    .min = 0.001, .max = 1e6, .help = "Proxy: time limit of each answer of its servers."),

	ROW(startup_scale, "startup-scale", .group = LIFE, .arg = "X", .flags = OPT_OURS, .min = 0,
	    .max = 1000, .help = "Starting takes as long as loading the model would, times X; until "
				 "then nothing listens. 0: ready at once."),
	ROW(die_after, "die-after", .group = LIFE, .arg = "WHEN", .flags = OPT_OURS,
	    .help = "Fail that long after getting ready (2s, 500ms) or at the request after so many "
		    "(20req), with exit status 1."),
	ROW(is_never_ready, "never-ready", .group = LIFE, .flags = OPT_OURS,
	    .help = "Load, and never listen."),
	ROW(fail_start, "fail-start", .group = LIFE, .arg = "HOW", .flags = OPT_OURS,
	    .help = "End while loading: oom (out of GPU memory, exit status 1), killed (by signal "
		    "9) or exit=N."),
	ROW(is_term_ignored, "ignore-term", .group = LIFE, .flags = OPT_OURS,
	    .help = "SIGTERM has no effect."),
	ROW(is_daemon_forked, "fork-daemon", .group = LIFE, .flags = OPT_OURS,
	    .help = "Leave a process in a session of its own, which stays for ten minutes."),

	ROW(truth_file, "truth", .group = FILES, .arg = "FILE", .flags = OPT_OURS,
	    .help = "JSON lines: what was sent for each request, and when."),
	ROW(requests_file, "requests", .group = FILES, .arg = "FILE", .flags = OPT_OURS,
	    .help = "JSON lines: every request as it was received."),

	ROW(profiler, "profiler-config", .group = FILES, .arg = "JSON",
	    .help = "As vLLM is told: with profiler torch, POST /start_profile and /stop_profile write "
		    "a trace of steps and requests to torch_profiler_dir; so does "
		    "VLLM_TORCH_PROFILER_DIR."),
	ROW(trace_ms, "trace-ms", .group = FILES, .arg = "MS", .flags = OPT_OURS, .min = 0, .max = 1e7,
	    .help = "Such a trace goes on growing so long after /stop_profile was answered."),

	ROW(is_worker, "engine-worker", .group = WORKER, .flags = OPT_OURS,
	    .help = "No server: the engine model behind the worker protocol (docs/guide/adapters.md), "
		    "as `bench throughput --backend sim` starts it."),
	ROW(account, "account", .group = WORKER, .arg = "FILE", .flags = OPT_OURS,
	    .help = "JSON lines, added to the file: what each load and each batch cost by the model, "
		    "and how long it took."),
	ROW(worker_fault, "worker-fault", .group = WORKER, .arg = "KIND", .flags = OPT_OURS,
	    .help = "How the worker goes wrong: hang, killed, oom, exit=N, close, garbage, not-json, "
		    "oversize, cut, wrong-id, short, clock, or an error (missing, flag, model, "
		    "memory, unsupported, other); @QUESTION behind it says when: @load, @put."),
};

static const char epilog[] =
	"--ttft-ms, --itl-ms or --burst-ms switches the oracle on; otherwise it is the engine model.\n"
	"Faults: status=503, slow-start=500ms, slow-headers=1s, slow-body=1s, stall@5=2s,\n"
	"reset@5, close@5, malformed@3, error-event@4, drop-usage, no-done, crlf, comments,\n"
	"split, coalesce=2. The token after @ counts from 1. Examples:\n"
	"  profllm sim --ttft-ms 20 --itl-ms 10 --truth truth.jsonl\n"
	"  profllm sim --itl-ms 10 --fault status=503:0.1 reset@5:0.05 'stall@3=1s:id=slow-*'\n"
	"  profllm sim --max-num-seqs 64 --decode-base-us 8000\n"
	"  profllm sim meta-llama/Llama-3.1-8B-Instruct --gpu h100-80gb -tp 2 --explain\n"
	"All of vllm serve's arguments are accepted; those without effect are named.\n";

static struct sim_cli cli_defaults(void)
{
	struct sim_opts d = sim_defaults();

	return (struct sim_cli){
		.host = d.host, .port = d.port, .model = d.model, .tokenizer = d.tokenizer,
		.max_model_len = d.max_model_len, .tokens_per_event = d.tokens_per_event,
		.max_num_seqs = d.max_num_seqs, .kv_cache_tokens = d.kv_cache_tokens,
		.max_num_batched_tokens = d.max_num_batched_tokens,
		.prefill_base_us = d.cost.prefill_base_us,
		.prefill_us_per_token = d.cost.prefill_us_per_token,
		.decode_base_us = d.cost.decode_base_us,
		.decode_us_per_seq = d.cost.decode_us_per_seq,
		.spec_acceptance = d.spec_acceptance, .diffusion_steps = d.diffusion_steps,
		.prefix_caching = d.is_prefix_cached ? OPT_TRI_YES : OPT_TRI_NO,
		.chunked_prefill = OPT_TRI_YES, .async_scheduling = OPT_TRI_YES,
		.dtype = "auto", .kv_cache_dtype = "auto", .load_format = "auto",
		.tp = 1, .pp = 1, .dp = 1, .block_size = d.block_size,
		.scheduling = "fcfs", .constraint_form = "structured_outputs",
		.tool_call_share = d.tool_call_share, .tool_calls_max = d.tool_calls_max,
		.loras_max = 1,
		.utilization = HARDWARE_UTILIZATION,
		.kv_host = "localhost", .prefill_kv_port = 14579, .decode_kv_port = 14580,
		.proxy_timeout_s = 21600,
	};
}

const struct opt_set *cmd_sim_options(void)
{
	static struct sim_cli defaults;
	static const struct opt_set set = {
		.command = "sim", .summary = "A simulated inference server that speaks vLLM's API.",
		.usage = "[MODEL] [options]", .epilog = epilog, .row = rows,
		.n = sizeof(rows) / sizeof(*rows), .defaults = &defaults,
		.bytes = sizeof(defaults),
	};

	defaults = cli_defaults();
	return &set;
}
