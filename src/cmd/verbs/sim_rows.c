/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sim_rows.c - the options of `profllm sim`. Options of vLLM's server keep their names; others that
 * it accepts are translated, or checked and dropped. Roles, and KV caches from elsewhere.
 */
#include <inttypes.h>
#include <math.h>

#include "cmd/verbs/cmd.h"
#include "cmd/verbs/sim_cli.h"
#include "core/json/read.h"
#include "host/engine/args.h"
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
	ROW(host, "host", .group = SERVER, .help = "address to listen on"),
	ROW(port, "port", .group = SERVER, .min = 0, .max = 65535,
	    .help = "TCP port; 0 picks a free one"),
	ROW(port_file, "port-file", .group = SERVER, .arg = "FILE", .flags = OPT_OURS,
	    .help = "file to write the bound port to"),
	ROW(uds, "uds", .group = SERVER, .arg = "PATH",
	    .help = "listen on this Unix socket instead of a TCP port"),
	ROW(cert_file, "ssl-certfile", .group = SERVER, .arg = "FILE",
	    .help = "certificate (PEM); with --ssl-keyfile the server speaks https"),
	ROW(key_file, "ssl-keyfile", .group = SERVER, .arg = "FILE", .help = "private key (PEM)"),
	ROW(client_ca_file, "ssl-ca-certs", .group = SERVER, .arg = "FILE",
	    .help = "clients must show a certificate of one of these authorities (PEM)"),
	ROW(api_key, "api-key", .group = SERVER, .flags = OPT_SECRET,
	    .help = "key that requests under /v1 must send as a bearer token"),
	ROW(keep_alive_ms, "keep-alive-ms", .group = SERVER, .arg = "MS", .flags = OPT_OURS,
	    .min = 0, .max = 1e9,
	    .help = "close connections after this idle time; 0 never does"),

	ROW(model_tag, "model-tag", .group = MODEL, .flags = OPT_POSITIONAL | OPT_NO_CONFIG,
	    .arg = "MODEL", .help = "name of the model, the same as --model"),
	ROW(model, "model", .group = MODEL, .help = "name of the model, the root in /v1/models"),
	ROW(served, "served-model-name", .group = MODEL, .arg = "NAME", .flags = OPT_MANY,
	    .help = "names under which the model is served; default: its name"),
	ROW(tokenizer, "tokenizer", .group = MODEL, .arg = "PATH",
	    .help = "tokenizer for counting tokens and writing answers: sim (built in), a "
		    "tokenizer.json, its directory, or a cached model name"),
	ROW(max_model_len, "max-model-len", .group = MODEL, .arg = "TOKENS", .min = 2, .max = 1e9,
	    .help = "maximum number of tokens of prompt and answer together"),
	ROW(seed, "seed", .group = MODEL, .min = 0, .max = 9e15,
	    .help = "seed of answers, distributions and faults"),

	ROW(ttft_ms, "ttft-ms", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "time from the request's arrival to its first token: 20, uniform:10:30, "
		    "normal:20:5, exp:20 or lognormal:20:0.5 (median, sigma)"),
	ROW(itl_ms, "itl-ms", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "time between two token events, in the same forms"),
	ROW(burst_ms, "burst-ms", .group = ORACLE, .arg = "MS", .flags = OPT_OURS, .min = 0,
	    .max = 1e7, .help = "all streams send together on a grid of this many milliseconds"),
	ROW(tokens_per_event, "tokens-per-event", .group = ORACLE, .arg = "K", .flags = OPT_OURS,
	    .min = 1, .max = 1024, .help = "tokens that one event carries"),
	ROW(reasoning, "reasoning", .group = ORACLE, .arg = "N", .flags = OPT_OURS, .min = 0,
	    .max = 1e9, .help = "the first N tokens of a chat answer are reasoning"),
	ROW(spec_tokens, "spec-tokens", .group = ORACLE, .arg = "K", .min = 0,
	    .max = COUNTER_POSITIONS_MAX,
	    .help = "speculative decoding, in the engine model, too: K tokens are drafted for "
		    "each event after the first; 0 drafts none"),
	ROW(speculative, "speculative-config", .group = ENGINE, .arg = "JSON",
	    .help = "speculative decoding in vLLM's form: num_speculative_tokens is --spec-tokens; "
		    "method decides what proposing drafts costs (ngram, eagle, draft_model ...)"),
	ROW(spec_method, "spec-method", .group = ENGINE, .arg = "METHOD",
	    .help = "method of --speculative-config"),
	ROW(spec_acceptance, "spec-acceptance", .group = ORACLE, .arg = "P", .flags = OPT_OURS,
	    .min = 0, .max = 1, .help = "probability that a drafted token is accepted, when "
					"those before it were"),
	ROW(diffusion_block, "diffusion-block", .group = ORACLE, .arg = "TOKENS",
	    .flags = OPT_OURS, .min = 0, .max = 4096,
	    .help = "a diffusion model, in the engine model, too: events are canvases of this "
		    "many tokens; 0: none"),
	ROW(diffusion_steps, "diffusion-steps", .group = ORACLE, .arg = "N", .flags = OPT_OURS,
	    .min = 1, .max = 4096, .help = "denoising steps of each canvas"),
	ROW(output_len, "output-len", .group = ORACLE, .arg = "DIST", .flags = OPT_OURS,
	    .help = "answers end after this many tokens unless ignore_eos is set"),
	ROW(faults, "fault", .group = ORACLE, .arg = "SPEC", .flags = OPT_OURS | OPT_MANY,
	    .help = "fault to inject: KIND[@TOKEN][=VALUE][:PROBABILITY or :id=PATTERN]; see the "
		    "end of this page"),

	ROW(constraint_form, "constraint-form", .group = ANSWERS, .flags = OPT_OURS,
	    .choices = constraint_forms, .help = "request members that constrain answers, in "
		    "addition to response_format: structured_outputs, or guided_json and similar "
		    "ones as in servers before 0.12; others are ignored"),
	ROW(is_constraint_ignored, "ignore-constraints", .group = ANSWERS, .flags = OPT_OURS,
	    .help = "ignore all constraints, like a server that does not know them"),
	ROW(constraint_errors, "constraint-errors", .group = ANSWERS, .arg = "SHARE",
	    .flags = OPT_OURS, .min = 0, .max = 1,
	    .help = "share of constrained answers that violate their constraint slightly; the "
		    "truth file names them"),
	ROW(tool_call_share, "tool-call-share", .group = ANSWERS, .arg = "SHARE",
	    .flags = OPT_OURS, .min = 0, .max = 1,
	    .help = "share of requests with tools and tool_choice auto that are answered by calls"),
	ROW(tool_calls_max, "tool-calls", .group = ANSWERS, .arg = "N", .flags = OPT_OURS, .min = 1,
	    .max = SCRIPT_CALLS_MAX, .help = "number of calls in such an answer: from 1 to N"),
	ROW(tool_call_errors, "tool-call-errors", .group = ANSWERS, .arg = "SHARE",
	    .flags = OPT_OURS, .min = 0, .max = 1,
	    .help = "share of calls whose arguments are slightly wrong"),
	ROW(lora_modules, "lora-modules", .group = ANSWERS, .arg = "NAME=PATH", .flags = OPT_MANY,
	    .help = "LoRA adapters that are served as models: NAME=PATH, or a JSON object with name, "
		    "path and base_model_name"),
	ROW(lora, "enable-lora", .group = ANSWERS,
	    .help = "requests may name adapters; --lora-modules implies it"),
	ROW(loras_max, "max-loras", .group = ANSWERS, .arg = "N", .min = 1, .max = ENGINE_LORAS_MAX,
	    .help = "maximum number of adapters in one batch; requests with others wait"),

	ROW(scheduling, "scheduling-policy", .group = ENGINE, .choices = policies,
	    .help = "which request is served first: the one that arrived first, or the one with "
	    "the lowest priority value"),
	ROW(max_num_seqs, "max-num-seqs", .group = ENGINE, .min = 1, .max = 1e6,
	    .help = "maximum number of requests in one batch"),
	ROW(max_num_batched_tokens, "max-num-batched-tokens", .group = ENGINE, .min = 1,
	    .max = 1e9, .help = "token budget of one scheduler step"),
	ROW(kv_cache_tokens, "kv-cache-tokens", .group = ENGINE, .flags = OPT_OURS, .min = 1,
	    .max = 1e12, .help = "tokens the KV cache holds; running requests that need more "
				 "are preempted, the newest first"),
	ROW(prefix_caching, "enable-prefix-caching", .group = ENGINE,
	    .help = "prefix caching: prompt prefixes that were seen before are not computed "
	    "again"),
	ROW(chunked_prefill, "enable-chunked-prefill", .group = ENGINE,
	    .help = "split long prompts over several steps; without it they wait for a step that "
		    "has room for all of the prompt"),
	ROW(chunk_max, "long-prefill-token-threshold", .group = ENGINE, .arg = "TOKENS", .min = 0,
	    .max = 1e9, .help = "maximum number of tokens of one prompt in a step; 0: as the "
	    "budget allows"),
	ROW(is_cached_told, "enable-prompt-tokens-details", .group = ENGINE,
	    .help = "report in usage how many prompt tokens were cached"),
	ROW(prefill_base_us, "prefill-base-us", .group = ENGINE, .arg = "US", .flags = OPT_OURS,
	    .min = 0, .max = 1e9, .help = "cost of a step with any prefill"),
	ROW(prefill_us_per_token, "prefill-us-per-token", .group = ENGINE, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e9, .help = "cost of each prompt token"),
	ROW(decode_base_us, "decode-base-us", .group = ENGINE, .arg = "US", .flags = OPT_OURS,
	    .min = 0, .max = 1e9, .help = "cost of a step with any decoding"),
	ROW(decode_us_per_seq, "decode-us-per-seq", .group = ENGINE, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e9, .help = "cost of each decoding request"),

	ROW(gpu, "gpu", .group = HARDWARE, .flags = OPT_OURS, .choices = hardware_gpus,
	    .help = "simulate the speed and memory of this GPU; default for --model-shape: the "
		    "first known shape"),
	ROW(shape, "model-shape", .group = HARDWARE, .arg = "SHAPE", .flags = OPT_OURS,
	    .choices = hardware_shapes, .help = "shape of the simulated model; default: the one "
						"that the name of --model implies"),
	ROW(tp, "tensor-parallel-size", .group = HARDWARE, .arg = "N", .min = 1, .max = 64,
	    .help = "number of GPUs that share every layer"),
	ROW(pp, "pipeline-parallel-size", .group = HARDWARE, .arg = "N", .min = 1, .max = 64,
	    .help = "number of groups of GPUs that hold some of the layers each"),
	ROW(dp, "data-parallel-size", .group = HARDWARE, .arg = "N", .min = 1, .max = 64,
	    .help = "number of engines; a request goes to the least busy one"),
	ROW(dtype, "dtype", .group = HARDWARE, .choices = dtypes,
	    .help = "data type of weights and computation"),
	ROW(quantization, "quantization", .group = HARDWARE, .arg = "METHOD",
	    .help = "how weights are quantized: fp8, awq, gptq, bitsandbytes, modelopt_fp4 ...; "
		    "default: what the model's name says"),
	ROW(kv_cache_dtype, "kv-cache-dtype", .group = HARDWARE,
	    .help = "data type of the KV cache: auto, fp8 ..."),
	ROW(utilization, "gpu-memory-utilization", .group = HARDWARE, .arg = "SHARE",
	    .flags = OPT_MIN_EXCLUSIVE, .min = 0, .max = 1,
	    .help = "fraction of GPU memory to use"),
	ROW(kv_bytes, "kv-cache-memory-bytes", .group = HARDWARE, .arg = "BYTES", .min = 1,
	    .max = 1e15, .help = "size of the KV cache on each GPU, regardless of free memory"),
	ROW(blocks, "num-gpu-blocks-override", .group = HARDWARE, .arg = "BLOCKS", .min = 1,
	    .max = 1e12, .help = "size of the KV cache in blocks"),
	ROW(block_size, "block-size", .group = HARDWARE, .arg = "TOKENS", .min = 1, .max = 4096,
	    .help = "tokens of one block of the KV cache"),
	ROW(eager, "enforce-eager", .group = HARDWARE,
	    .help = "use no CUDA graphs: faster start, slower small steps"),
	ROW(async_scheduling, "async-scheduling", .group = HARDWARE,
	    .help = "scheduling overlaps with the GPU's work (the default)"),
	ROW(load_format, "load-format", .group = HARDWARE, .arg = "FORMAT",
	    .help = "format of the weights; dummy: they are not read"),
	ROW(is_explained, "explain", .group = HARDWARE, .flags = OPT_OURS,
	    .help = "print the figures that this hardware model results in, and exit"),

	ROW(role, "role", .group = ROLES, .flags = OPT_OURS, .choices = role_names,
	    .help = "role in a disaggregated deployment: prefill or decode (kv_producer or kv_consumer of "
		    "--kv-transfer-config), a proxy in front of them, or a shared cache"),
	ROW(kv_transfer, "kv-transfer-config", .group = ROLES, .arg = "JSON",
	    .help = "in vLLM's form: kv_connector, kv_role, kv_connector_extra_config"),
	ROW(kv_offloading, "kv-offloading-size", .group = ROLES, .arg = "GIB", .min = 0,
	    .max = 1e6, .help = "host memory for blocks that are evicted from the KV cache; using "
				"them again costs the transfer back"),
	ROW(cpu_offload_gib, "cpu-offload-gb", .group = ROLES, .arg = "GIB", .min = 0, .max = 1e5,
	    .help = "weights of each GPU that stay in host memory and are read from there in every "
		    "step"),
	ROW(kv_cache_url, "kv-cache-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS,
	    .help = "a --role cache whose blocks this server shares with others"),
	ROW(kv_transfer_us, "kv-transfer-us-per-token", .group = ROLES, .arg = "US",
	    .flags = OPT_OURS, .min = 0, .max = 1e6,
	    .help = "time to transfer the KV cache of one token from another server or the host; "
	    "default: by the GPU's PCIe bandwidth"),
	ROW(prefill_urls, "prefill-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS | OPT_MANY,
	    .help = "proxy: URLs of the prefill servers, used in turn"),
	ROW(decode_urls, "decode-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS | OPT_MANY,
	    .help = "proxy: URLs of the decode servers"),
	ROW(backend_urls, "backend-url", .group = ROLES, .arg = "URL", .flags = OPT_OURS | OPT_MANY,
	    .help = "proxy: URLs of servers that take whole requests, used in turn"),
	ROW(kv_host, "kv-host", .group = ROLES, .flags = OPT_OURS,
	    .help = "proxy: the host that X-Request-Id names"),
	ROW(prefill_kv_port, "prefill-kv-port", .group = ROLES, .flags = OPT_OURS, .min = 1,
	    .max = 65535, .help = "proxy: KV port of the prefill server"),
	ROW(decode_kv_port, "decode-kv-port", .group = ROLES, .flags = OPT_OURS, .min = 1,
	    .max = 65535, .help = "proxy: KV port of the decode server"),
	ROW(proxy_timeout_s, "proxy-timeout", .group = ROLES, .arg = "SECONDS", .flags = OPT_OURS,
	    .min = 0.001, .max = 1e6, .help = "proxy: time limit of each answer of its servers"),

	ROW(startup_scale, "startup-scale", .group = LIFE, .arg = "X", .flags = OPT_OURS, .min = 0,
	    .max = 1000, .help = "starting takes as long as loading the model would, times X; until "
				 "then nothing listens. 0: ready at once"),
	ROW(die_after, "die-after", .group = LIFE, .arg = "WHEN", .flags = OPT_OURS,
	    .help = "fail this long after getting ready (2s, 500ms) or after this many requests "
		    "(20req), with exit status 1"),
	ROW(is_never_ready, "never-ready", .group = LIFE, .flags = OPT_OURS,
	    .help = "load the model, and never listen"),
	ROW(fail_start, "fail-start", .group = LIFE, .arg = "HOW", .flags = OPT_OURS,
	    .help = "end while loading: oom (out of GPU memory, exit status 1), killed (by signal "
		    "9) or exit=N"),
	ROW(is_term_ignored, "ignore-term", .group = LIFE, .flags = OPT_OURS,
	    .help = "SIGTERM has no effect"),
	ROW(is_daemon_forked, "fork-daemon", .group = LIFE, .flags = OPT_OURS,
	    .help = "leave a process in a separate session, which stays for ten minutes"),

	ROW(truth_file, "truth", .group = FILES, .arg = "FILE", .flags = OPT_OURS,
	    .help = "file for JSON lines: what was sent for each request, and when"),
	ROW(requests_file, "requests", .group = FILES, .arg = "FILE", .flags = OPT_OURS,
	    .help = "file for JSON lines: every request as it was received"),

	ROW(profiler, "profiler-config", .group = FILES, .arg = "JSON",
	    .help = "in vLLM's form: with profiler torch, POST /start_profile and /stop_profile write "
		    "a trace of steps and requests to torch_profiler_dir; so does "
		    "VLLM_TORCH_PROFILER_DIR"),
	ROW(trace_ms, "trace-ms", .group = FILES, .arg = "MS", .flags = OPT_OURS, .min = 0, .max = 1e7,
	    .help = "how long such a trace continues to grow after /stop_profile was answered"),

	ROW(is_worker, "engine-worker", .group = WORKER, .flags = OPT_OURS,
	    .help = "start no server: the engine model speaks the worker protocol "
		    "(docs/guide/adapters.md), as `bench throughput --backend sim` starts it"),
	ROW(account, "account", .group = WORKER, .arg = "FILE", .flags = OPT_OURS,
	    .help = "append JSON lines to the file: the modelled cost of each load and batch, and "
		    "how long it took"),
	ROW(worker_fault, "worker-fault", .group = WORKER, .arg = "KIND", .flags = OPT_OURS,
	    .help = "how the worker fails: hang, killed, oom, exit=N, close, garbage, not-json, "
		    "oversize, cut, wrong-id, short, clock, or an error (missing, flag, model, "
		    "memory, unsupported, other); append @QUESTION to say when: @load, @put"),
};

static const char epilog[] =
	"--ttft-ms, --itl-ms or --burst-ms select the oracle; otherwise the engine model is used.\n"
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

/* ---- the argument list of vLLM's server ---- */

struct fit {
	const struct opt_set *set;
	struct sim_args *out;
	struct arena *arena;
	struct err *e;
};

static bool same_name(struct str typed, const char *name)
{
	size_t i = 0;

	while (i < typed.n && name[i] && (typed.p[i] == name[i] ||
					  (typed.p[i] == '_' && name[i] == '-')))
		i++;
	return i == typed.n && !name[i];
}

static const struct opt *row_find(const struct fit *f, struct str name)
{
	for (size_t i = 0; i < f->set->n; i++) {
		const struct opt *o = &f->set->row[i];

		if (!(o->flags & OPT_POSITIONAL) && same_name(name, o->name))
			return o;
	}
	return NULL;
}

/* The name as typed, without dashes, "no-", a value and JSON keys. */
static struct str bare_name(const struct engine_token *t)
{
	struct str name = t->name;
	struct str bare;

	while (name.n && *name.p == '-') {
		name.p++;
		name.n--;
	}
	bare = str_cut(&name, '=');
	bare = str_cut(&bare, '.');
	return bare;
}

static bool is_own(const struct fit *f, const struct engine_token *t)
{
	struct str name = bare_name(t);

	return row_find(f, name) ||
	       (str_starts(name, STR("no-")) &&
		row_find(f, (struct str){ name.p + 3, name.n - 3 }));
}

static void add(struct fit *f, const char *text)
{
	f->out->argv[f->out->argc++] = (char *)(uintptr_t)text;
}

/* Expands integers with a suffix; "auto" and -1 mean what fits. */
static const char *value_text(struct fit *f, const struct engine_token *t, bool *is_dropped)
{
	const char *text = arena_text(f->arena, t->value);
	char *const argv[] = { (char *)(uintptr_t)"sim",
		arena_printf(f->arena, "--%s=%s", t->arg->name, text), NULL };
	int64_t number;

	/* Other values are left for our option to refuse. */
	if (t->arg->kind != ENGINE_HUMAN || engine_arg_check(t->arg, t->value, NULL) < 0)
		return text;
	if (strcmp(t->arg->name, "max-model-len") == 0 &&
	    (str_eq(t->value, STR("auto")) || str_eq(t->value, STR("-1")))) {
		f->out->is_len_auto = *is_dropped = true;
		return text;
	}
	number = engine_argv_int(argv, t->arg->name, INT64_MIN);
	return number == INT64_MIN ? text : arena_printf(f->arena, "%" PRId64, number);
}

/* Adds an option of vLLM that is one of ours, in our spelling. */
static void option_add(struct fit *f, const struct engine_token *t)
{
	const char *name = t->arg->name, *no = t->is_off ? "no-" : "";
	bool is_dropped = false;
	const char *value;

	if (!t->has_value) {
		add(f, arena_printf(f->arena, "--%s%s", no, name));
	} else if (t->arg->kind == ENGINE_LIST && t->values) {
		add(f, arena_printf(f->arena, "--%s", name));
		for (size_t i = 0; i + 1 < t->n; i++)
			add(f, t->values[i]);
	} else if (t->path.n) {
		add(f, arena_printf(f->arena, "--%s.%.*s=%.*s", name, (int)t->path.n, t->path.p,
				    (int)t->value.n, t->value.p));
	} else {
		value = value_text(f, t, &is_dropped);
		if (!is_dropped)
			add(f, arena_printf(f->arena, "--%s=%s", name, value));
	}
}

static int option_drop(struct fit *f, const struct engine_token *t)
{
	struct buf *notes = &f->out->notes;
	bool is_level = strcmp(t->arg->name, "optimization-level") == 0 ||
			strcmp(t->arg->name, "compilation-config") == 0;

	if (t->has_value && t->path.n == 0 && engine_arg_check(t->arg, t->value, f->e) < 0)
		return -1;
	if (is_level && f->out->is_level_eager)
		return 0;
	if (notes->len == 0)
		buf_add_text(notes, "no effect in the simulator:");
	buf_printf(notes, " --%s", t->arg->name);
	return 0;
}

/*
 * Refuses a name that neither vLLM nor we know and that resembles one of vLLM's more than ours: the
 * option parser knows only ours. Abbreviations of ours are accepted.
 */
static int unknown_check(const struct fit *f, const struct engine_token *t)
{
	const char **names = arena_alloc(f->arena, (engine_arg_count + f->set->n) * sizeof(*names));
	struct str name = bare_name(t);
	const char *near;
	size_t n = 0;

	for (size_t i = 0; i < f->set->n; i++) {
		struct str own = str_of(f->set->row[i].name);

		if (own.n > name.n && same_name(name, arena_text(f->arena,
					(struct str){ own.p, name.n })))
			return 0;
		names[n++] = own.p;
	}
	for (size_t i = 0; i < engine_arg_count; i++)
		names[n++] = engine_args[i].name;
	near = opt_nearest(name, names, n);
	if (!near || row_find(f, str_of(near)) || !engine_arg_find(str_of(near)))
		return 0;
	return err_set(f->e, ERR_USAGE, "unknown option --%.*s; did you mean --%s?",
		       (int)name.n, name.p, near);
}

int sim_args_fit(const struct opt_set *set, char **argv, struct sim_args *out, struct arena *a,
		 struct err *e)
{
	struct fit f = { .set = set, .out = out, .arena = a, .e = e };
	struct engine_optimization level;
	char *const *at = argv, *const *before = argv;
	struct engine_token t;
	size_t n = 0;

	while (argv[n])
		n++;
	*out = (struct sim_args){ .argv = arena_alloc(a, (n + 1) * sizeof(*out->argv)) };
	engine_argv_optimization(argv, 0, &level);
	out->is_level_eager = level.level == 0;
	for (; engine_argv_next(&at, &t); before = at) {
		bool is_human = t.arg && t.arg->kind == ENGINE_HUMAN && t.has_value;

		if (t.arg && (is_human || !is_own(&f, &t))) {
			if (row_find(&f, str_of(t.arg->name)))
				option_add(&f, &t);
			else if (option_drop(&f, &t) < 0)
				return -1;
			continue;
		}
		if (!t.arg && !t.is_positional && !t.is_ambiguous && !is_own(&f, &t) &&
		    str_starts(t.name, STR("--")) && unknown_check(&f, &t) < 0)
			return -1;
		for (; before < at; before++)
			add(&f, *before);
	}
	if (out->notes.len)
		buf_add_char(&out->notes, '\n');
	out->argv[out->argc] = NULL;
	return 0;
}

/* ---- roles, --kv-transfer-config and its host tiers, servers of a proxy ---- */

/* For a model without known hardware: an 8B model's, over PCIe 4. */
#define TOKEN_BYTES 131072.0
#define LINK_BYTES_PER_S 25e9

struct connector {
	struct str name;
	const struct json_value *extra;
};

static const char *const roles[] = { "kv_producer", "kv_consumer", "kv_both" };

static int connector_read(const struct sim_cli *c, struct connector *out, struct kv_opts *kv,
			  struct arena *a, struct err *e)
{
	const struct json_value *v;
	struct json_value *config;
	struct str role;
	size_t i = 0;

	if (!c->kv_transfer.text)
		return 0;
	if (json_parse(a, str_of(c->kv_transfer.text), &config, e) < 0)
		return err_wrap(e, "--kv-transfer-config");
	v = config;
	out->name = json_text(json_get(v, "kv_connector"), (struct str){ 0 });
	out->extra = json_get(v, "kv_connector_extra_config");
	role = json_text(json_get(v, "kv_role"), (struct str){ 0 });
	while (i < 3 && !str_is(role, roles[i]))
		i++;
	if (out->name.n && i == 3)
		return err_set(e, ERR_USAGE, "--kv-transfer-config: kv_connector needs kv_role, one of "
			       "kv_producer, kv_consumer, kv_both, got '%.*s'", (int)role.n,
			       role.n ? role.p : "");
	if (i < 3)
		kv->role = (enum kv_role)(i + 1);
	return 0;
}

static double real_of(const struct json_value *object, const char *key)
{
	return json_real(json_get(object, key), 0);
}

/* Bytes per token in all of the model's layers. */
static double token_bytes(const struct sim_cli *c, const struct sim_setup *s)
{
	return s->has_hardware ? s->hw.kv_token_bytes * (double)(c->tp * c->pp) : TOKEN_BYTES;
}

static double tier_tokens(const struct sim_cli *c, const struct connector *k,
			  const struct sim_setup *s)
{
	const char *lmcache = getenv("LMCACHE_MAX_LOCAL_CPU_SIZE");
	double gib = c->kv_offloading.is_set ? c->kv_offloading.v : 0;
	double bytes = gib * GIB;

	if (str_is(k->name, "OffloadingConnector") && real_of(k->extra, "num_cpu_blocks") > 0)
		return real_of(k->extra, "num_cpu_blocks") * (double)c->block_size;
	if (str_is(k->name, "OffloadingConnector") && bytes <= 0)
		bytes = real_of(k->extra, "cpu_bytes_to_use");
	if (str_starts(k->name, STR("LMCache")) && bytes <= 0) {
		gib = 5; /* LMCache's own default, GB */
		if (lmcache && str_to_f64(str_of(lmcache), &gib) && gib < 0)
			gib = 0;
		bytes = gib * 1e9;
	}
	return bytes / token_bytes(c, s);
}

/* LMCache takes its server's address from the environment. */
static const char *cache_url(const struct sim_cli *c, const struct connector *k)
{
	const char *lmcache = getenv("LMCACHE_REMOTE_URL");

	if (c->kv_cache_url || !str_starts(k->name, STR("LMCache")) || !lmcache || !*lmcache)
		return c->kv_cache_url;
	return lmcache;
}

static int role_apply(const struct sim_cli *c, struct sim_setup *out, struct err *e)
{
	struct kv_opts *kv = &out->sim.kv;
	bool has_urls = c->prefill_urls.n || c->decode_urls.n || c->backend_urls.n;

	out->sim.is_proxy = c->role && strcmp(c->role, "proxy") == 0;
	if (has_urls && !out->sim.is_proxy)
		return err_set(e, ERR_USAGE, "--%s-url needs --role proxy",
			       c->prefill_urls.n ? "prefill" : c->decode_urls.n ? "decode" : "backend");
	if (c->role && strcmp(c->role, "prefill") == 0)
		kv->role = KV_PRODUCER;
	if (c->role && strcmp(c->role, "decode") == 0)
		kv->role = KV_CONSUMER;
	kv->is_cache_server = c->role && strcmp(c->role, "cache") == 0;
	if (kv->is_cache_server)
		kv->host_tokens = c->kv_cache_tokens;
	out->sim.proxy = (struct proxy_opts){
		.prefill = c->prefill_urls.v, .prefills = c->prefill_urls.n,
		.decode = c->decode_urls.v, .decodes = c->decode_urls.n,
		.backend = c->backend_urls.v, .backends = c->backend_urls.n,
		.kv_host = c->kv_host, .prefill_kv_port = (unsigned)c->prefill_kv_port,
		.decode_kv_port = (unsigned)c->decode_kv_port, .timeout_s = c->proxy_timeout_s,
	};
	return 0;
}

int sim_kv_setup(const struct sim_cli *c, struct arena *a, struct sim_setup *out, struct err *e)
{
	struct kv_opts *kv = &out->sim.kv;
	struct connector k = { 0 };
	bool is_oracle = c->ttft_ms || c->itl_ms || c->burst_ms > 0;
	double tokens;

	if (connector_read(c, &k, kv, a, e) < 0 || role_apply(c, out, e) < 0)
		return -1;
	kv->is_decode_bench = str_is(k.name, "DecodeBenchConnector");
	tokens = tier_tokens(c, &k, out);
	if (!kv->is_cache_server && tokens >= 1)
		kv->host_tokens = tokens < 1e12 ? (int64_t)tokens : (int64_t)1e12;
	kv->cache_url = cache_url(c, &k);
	if (c->kv_transfer_us.is_set)
		kv->us_per_token = c->kv_transfer_us.v;
	else if (out->has_hardware)
		kv->us_per_token = out->hw.kv_token_bytes / out->hw.gpu->pcie * 1e6;
	else
		kv->us_per_token = TOKEN_BYTES / LINK_BYTES_PER_S * 1e6;
	if (is_oracle && (kv->role != KV_ALONE || kv->host_tokens || kv->cache_url) &&
	    !kv->is_cache_server)
		buf_add_text(&out->notes, "the oracle only follows its own timing options: KV caches from elsewhere "
					  "have no effect\n");
	return 0;
}
