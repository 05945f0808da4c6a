/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_rows.c - one row per option of `bench serve`, and the defaults.
 *
 * The order is upstream's printing order (see serve_opts.h); the groups are ours. Rules beyond a
 * single row are in serve_opts.c. At the end: options that set others, --load-pattern NAME and
 * --compat v0.11. report/release.c leaves out what that release's report and result do not have.
 * Not taken over: its crashes, profiler calls that could not work, and pooling by name.
 */
#include "bench/options/serve_opts_internal.h"

#include <math.h>

#include "bench/options/gpu_price.h"
#include "bench/options/history.h"
#include "bench/options/salt.h"
#include "bench/options/serve_opts.h"
#include "core/base/err.h"
#include "core/base/limits.h"
#include "input/data/request_keys.h"
#include "results/decide/capacity.h"

#define DATASET "Dataset"
#define RANDOM "Random dataset"
#define FILES "File datasets"
#define SYNTHETIC "Synthetic datasets"
#define TRACES "Traces"
#define HUB "Hub datasets"
#define SERVER "Server"
#define MODEL "Model and tokenizer"
#define TRAFFIC "Traffic"
#define SAMPLING "Sampling"
#define METRICS "Metrics"
#define OUTPUT "Output"
#define PLOTS "Plots"
#define POINTS "Several runs"
#define FIND "Largest load"
#define SESSIONS "Conversations"
#define OURS "ProfLLM"

#define TURNS_MAX 32768 /* of one conversation: they are numbered in 16 bits */

#define S(heading, member, flag, ...) \
	OPT(struct serve_opts, member, flag, .group = (heading), __VA_ARGS__)
#define O(heading, member, flag, ...) S(heading, member, flag, .flags = OPT_OURS, __VA_ARGS__)

static const char *const datasets[] = {
	"sharegpt", "burstgpt", "sonnet", "random", "random-mm", "random-rerank", "hf", "custom",
	"custom_audio", "custom_image", "custom_mm", "prefix_repetition", "spec_bench",
	"speed_bench", "timed_trace", "trace", "conversations", "sessions", "prioritization", "mix", "workload",
	"structured", NULL,
};
static const char *const trace_formats[] = {
	"auto", "mooncake", "bailian", "azure", "burstgpt", "aiperf", "servegen", "record", NULL,
};
static const char *const trace_units[] = { "auto", "s", "ms", "us", "ns", NULL };
static const char *const trace_origins[] = { "first", "file", NULL };
static const char *const trace_salts[] = { "fixed", "seed", NULL };
static const char *const trace_modes[] = { "history", "delta", NULL };
static const char *const backends[] = {
	"vllm", "openai", "openai-chat", "openai-responses", "openai-audio", "openai-embeddings",
	"openai-embeddings-chat", "openai-embeddings-clip", "openai-embeddings-vlm2vec",
	"infinity-embeddings", "infinity-embeddings-clip", "vllm-pooling", "vllm-rerank",
	"anthropic", "tgi", "llamacpp", "sglang", "ollama", "ollama-chat", NULL,
};
#define SPEAKS_OPENAI "use openai, whose API its server speaks"
#define MAY_SPEAK_OPENAI "use openai if its server speaks that API, else --backend-file"
static const struct opt_meant backends_meant[] = {
	{ "vllm-chat", "did you mean openai-chat?" }, { "chat", "did you mean openai-chat?" },
	{ "completions", "did you mean openai?" },
	{ "llama.cpp", "did you mean llamacpp? (openai for its other API)" },
	{ "lmdeploy", SPEAKS_OPENAI }, { "scalellm", SPEAKS_OPENAI },
	{ "tensorrt-llm", MAY_SPEAK_OPENAI }, { "deepspeed-mii", MAY_SPEAK_OPENAI },
	{ NULL, NULL },
};
static const char *const tokenizer_modes[] = {
	"auto", "hf", "mistral", "deepseek_v32", "slow", "custom", NULL,
};
static const char *const structured_sets[] = {
	"json", "json-unique", "grammar", "regex", "choice", "xgrammar_bench", NULL,
};
static const char *const constraint_forms[] = {
	"auto", "structured_outputs", "guided", "response_format", NULL,
};
static const char *const lora_assignments[] = { "random", "round-robin", NULL };
static const char *const ramp_ups[] = { "linear", "exponential", NULL };
static const char *const speed_subsets[] = {
	"qualitative", "throughput_1k", "throughput_2k", "throughput_8k", "throughput_16k",
	"throughput_32k", NULL,
};
static const char *const balances[] = { "round-robin", "random", "least-loaded", NULL };
static const char *const turn_failures[] = { "drop", "retry", "continue", NULL };
static const char *const affinities[] = { "url", "spread", NULL };
static const char *const bad_calls[] = { "replace", "fail", NULL };
static const char *const transports[] = { "auto", "native", "curl", NULL };
static const char *const http_versions[] = { "1.1", "2", NULL };
static const char *const chart_times[] = { "auto", "always", "never", NULL };
static const char *const clocks[] = { "auto", "kernel", "tap", "user", NULL };
static const char *const report_forms[] = { "short", "full", "json", NULL };
static const char *const progress_forms[] = { "auto", "bar", "lines", "none", NULL };

static int check_salt(const struct opt *o, const void *field, struct err *e)
{
	enum salt_kind kind;
	const char *key;

	(void)o;
	return salt_parse(*(const char *const *)field, &kind, &key, e);
}

static int check_classes(const struct opt *o, const void *field, struct err *e)
{
	struct priority_classes classes;

	return priority_classes_parse(o->name, *(const char *const *)field, &classes, e);
}

static int check_trace(const struct opt *o, const void *field, struct err *e)
{
#define X(name) #name,
	static const char *const known[] = { TRACE_CATEGORIES(X) "all" };
#undef X
	struct str rest = str_of(*(const char *const *)field);

	while (rest.n) {
		struct str name = str_cut(&rest, ',');
		bool is_known = false;

		for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++)
			is_known = is_known || str_is(name, known[i]);
		if (!is_known)
			return err_set(e, ERR_USAGE, "--%s: unknown category '%.*s'; there are "
#define X(category) #category ", "
				       TRACE_CATEGORIES(X)
#undef X
				       "all", o->name, (int)name.n, name.p);
	}
	return 0;
}

static int check_warm_connections(const struct opt *o, const void *field, struct err *e)
{
	const char *text = *(const char *const *)field;
	int64_t n;

	if (strcmp(text, "auto") == 0 || (str_to_i64(str_of(text), &n) && n >= 0 && n <= 1000000))
		return 0;
	return err_set(e, ERR_USAGE, "--%s: expected auto or an integer from 0 to 1000000, "
		       "got '%.100s'", o->name, text);
}

static const char *const groups[] = {
	SERVER, MODEL, TRAFFIC, SESSIONS, POINTS, FIND, SAMPLING, DATASET, RANDOM, SYNTHETIC, FILES,
	TRACES, HUB, METRICS, OUTPUT, OURS, "General", PLOTS, NULL,
};

static const struct opt rows[] = {
	S(MODEL, data.trust_remote_code, "trust-remote-code",
	  .help = "accepted for compatibility; nothing remote is ever run"),
	S(DATASET, seed, "seed", .min = 0, .max = UINT32_MAX,
	  .words = "random-seed",
	  .help = "seed of every random draw; the same seed gives the same prompts and the same "
		  "arrivals"),
	S(DATASET, num_prompts, "num-prompts", .min = -INFINITY, .max = REQUESTS_MAX,
	  .words = "requests num-requests request-count max-requests count prompts -n",
	  .help = "number of requests; 0 or less means every row of a dataset from a file"),
	S(DATASET, dataset_name, "dataset-name", .flags = OPT_DASHED, .choices = datasets,
	  .words = "public-dataset custom-dataset-type",
	  .help = "where the prompts come from"),
	S(HUB, data.no_stream, "no-stream",
	  .help = "load a whole hub split instead of streaming it"),
	S(DATASET, data.path, "dataset-path", .arg = "FILE",
	  .words = "input-file dataset-file",
	  .help = "file, folder or hub name of the dataset; not for synthetic datasets"),
	S(DATASET, data.no_oversample, "no-oversample",
	  .help = "send fewer requests when the dataset has fewer rows, instead of repeating some"),
	S(DATASET, data.skip_chat_template, "skip-chat-template",
	  .help = "send prompts without the model's chat template, where the dataset would apply "
		  "it"),
	S(DATASET, data.enable_multimodal_chat, "enable-multimodal-chat",
	  .help = "build whole chat messages with media in the dataset"),
	S(DATASET, data.disable_shuffle, "disable-shuffle", .help = "keep the order of the file"),
	S(FILES, data.custom_output_len, "custom-output-len", .arg = "TOKENS",
	  .help = "output tokens to request per request of the custom dataset; -1 takes each row's "
		  "output_tokens"),
	S(FILES, data.custom_ensure_client_side_data, "custom-ensure-client-side-data",
	  .help = "load the images (and MMVU's videos) on the client and send them inline"),
	S(FILES, data.spec_bench_output_len, "spec-bench-output-len", .arg = "TOKENS",
	  .help = "output tokens to request per request of spec_bench"),
	S(FILES, data.spec_bench_category, "spec-bench-category", .arg = "NAME",
	  .help = "only the rows of this category"),
	S(FILES, data.sonnet_input_len, "sonnet-input-len", .arg = "TOKENS",
	  .help = "prompt tokens of sonnet, template included"),
	S(FILES, data.sonnet_output_len, "sonnet-output-len", .arg = "TOKENS",
	  .help = "output tokens to request per request of sonnet"),
	S(FILES, data.sonnet_prefix_len, "sonnet-prefix-len", .arg = "TOKENS",
	  .help = "sonnet: tokens of the lines that all prompts share"),
	S(FILES, data.sharegpt_output_len, "sharegpt-output-len", .arg = "TOKENS",
	  .help = "output tokens to request per request of sharegpt; otherwise as many as the "
		  "recorded reply has"),
	S(FILES, data.timed_trace_chunk_hash_size, "timed-trace-chunk-hash-size", .arg = "TOKENS",
	  .help = "prompt tokens of one hash_id block"),
	S(FILES, data.timed_trace_sec_multiplier, "timed-trace-sec-multiplier", .flags = OPT_WHOLE,
	  .arg = "FACTOR", .help = "what turns a timestamp of the trace into seconds"),
	S(FILES, data.timed_trace_label_timestamp, "timed-trace-label-timestamp", .arg = "KEY",
	  .help = "key of the timestamp in a trace row"),
	S(FILES, data.timed_trace_label_input_length, "timed-trace-label-input-length",
	  .arg = "KEY", .help = "key of the prompt length in a trace row"),
	S(FILES, data.timed_trace_label_output_length, "timed-trace-label-output-length",
	  .arg = "KEY", .help = "key of the answer length in a trace row"),
	S(FILES, data.timed_trace_label_hash_ids, "timed-trace-label-hash-ids", .arg = "KEY",
	  .help = "key of the hash ids in a trace row"),
	S(HUB, data.blazedit_min_distance, "blazedit-min-distance", .arg = "FRACTION",
	  .help = "keep rows whose edit distance is at least this"),
	S(HUB, data.blazedit_max_distance, "blazedit-max-distance", .arg = "FRACTION",
	  .help = "keep rows whose edit distance is at most this"),
	S(HUB, data.asr_max_audio_len_sec, "asr-max-audio-len-sec", .arg = "SECONDS",
	  .help = "keep recordings up to this length"),
	S(HUB, data.asr_min_audio_len_sec, "asr-min-audio-len-sec", .arg = "SECONDS",
	  .help = "keep recordings from this length on"),
	S(RANDOM, data.random_input_len, "random-input-len", .arg = "TOKENS",
	  .help = "prompt tokens, without the shared prefix"),
	S(RANDOM, data.random_output_len, "random-output-len", .arg = "TOKENS",
	  .help = "output tokens to request"),
	S(RANDOM, data.random_range_ratio, "random-range-ratio", .arg = "RATIO",
	  .help = "lengths are drawn from length*(1-r) to length*(1+r); one number in [0, 1), or "
		  "JSON with both: {\"input\": 0.3, \"output\": 0.5}"),
	S(RANDOM, data.random_prefix_len, "random-prefix-len", .arg = "TOKENS",
	  .help = "tokens that all prompts begin with, in addition to the input length"),
	S(SYNTHETIC, data.random_batch_size, "random-batch-size", .arg = "N",
	  .help = "inputs per request for embeddings, documents for rerank"),
	S(SYNTHETIC, data.no_reranker, "no-reranker",
	  .help = "the model only embeds, so pairs are scored as embeddings"),
	S(SYNTHETIC, data.random_mm_base_items_per_request, "random-mm-base-items-per-request",
	  .arg = "N", .help = "images and videos per request of random-mm"),
	S(SYNTHETIC, data.random_mm_num_mm_items_range_ratio, "random-mm-num-mm-items-range-ratio",
	  .arg = "RATIO", .help = "relative deviation of the number of items from the base"),
	S(SYNTHETIC, data.random_mm_limit_mm_per_prompt, "random-mm-limit-mm-per-prompt",
	  .arg = "JSON", .help = "maximum number of items of each kind in one request"),
	S(SYNTHETIC, data.random_mm_bucket_config, "random-mm-bucket-config", .flags = OPT_LITERAL,
	  .arg = "DICT", .help = "probability of each (height, width, frames)"),
	S(HUB, data.hf_subset, "hf-subset", .arg = "NAME",
	  .help = "configuration of the hub dataset"),
	S(HUB, data.hf_split, "hf-split", .arg = "NAME", .help = "split of the hub dataset"),
	S(HUB, data.hf_name, "hf-name", .arg = "ID",
	  .help = "hub name to recognise a local copy by"),
	S(HUB, data.hf_output_len, "hf-output-len", .arg = "TOKENS",
	  .help = "output tokens to request per request of a hub dataset"),
	S(HUB, data.bfcl_categories, "bfcl-categories", .arg = "NAMES",
	  .help = "comma list of function-calling categories"),
	S(SYNTHETIC, data.prefix_repetition_prefix_len, "prefix-repetition-prefix-len",
	  .arg = "TOKENS",
	  .words = "prefix-prompt-length gsp-system-prompt-len",
	  .help = "tokens of each shared prefix"),
	S(SYNTHETIC, data.prefix_repetition_suffix_len, "prefix-repetition-suffix-len",
	  .arg = "TOKENS",
	  .words = "gsp-question-len",
	  .help = "tokens after the prefix"),
	S(SYNTHETIC, data.prefix_repetition_num_prefixes, "prefix-repetition-num-prefixes",
	  .arg = "N",
	  .words = "num-prefix-prompts gsp-num-groups",
	  .help = "number of different prefixes"),
	S(SYNTHETIC, data.prefix_repetition_output_len, "prefix-repetition-output-len",
	  .arg = "TOKENS",
	  .words = "gsp-output-len",
	  .help = "output tokens to request per request"),
	S(FILES, data.speed_bench_dataset_subset, "speed-bench-dataset-subset", .arg = "NAME",
	  .choices = speed_subsets, .help = "part of SPEED-Bench"),
	S(FILES, data.speed_bench_output_len, "speed-bench-output-len", .arg = "TOKENS",
	  .help = "output tokens to request per request of speed_bench"),
	S(FILES, data.speed_bench_category, "speed-bench-category", .arg = "NAME",
	  .help = "only the rows of this category"),
	S(OUTPUT, label, "label", .arg = "TEXT",
	  .words = "tag",
	  .help = "name of the run: in the result and at the start of the file name, instead of "
		  "the backend's name"),
	S(SERVER, backend, "backend", .choices = backends, .meant = backends_meant, .arg = "NAME",
	  .words = "backend-type request-type service-kind",
	  .help = "the API to speak"),
	S(SERVER, base_url, "base-url", .arg = "URL",
	  .words = "url server server-url target api-base api-url -u",
	  .help = "URL of the server with its scheme, instead of --host and --port; --endpoint is "
		  "appended to it"),
	S(SERVER, host, "host", .help = "name or address of the server, for http"),
	S(SERVER, port, "port", .min = 1, .max = 65535, .help = "TCP port of the server"),
	S(SERVER, endpoint, "endpoint", .arg = "PATH",
	  .help = "path of the API; default: that of --backend"),
	S(SERVER, header, "header", .flags = OPT_SECRET, .arg = "KEY=VALUE",
	  .words = "api-key key token auth bearer additional-headers -H",
	  .help = "headers of every request, 'Authorization=Bearer KEY' for example; they override "
		  "the built-in ones and OPENAI_API_KEY"),
	S(TRAFFIC, max_concurrency, "max-concurrency", .arg = "N", .min = 1, .max = INFINITY,
	  .words = "concurrency connections clients num-clients users workers parallel "
		   "num-concurrent-requests -c",
	  .help = "maximum number of requests in flight; others wait in the client, first come "
		  "first served"),
	S(MODEL, model, "model", .arg = "NAME",
	  .words = "model-names -m",
	  .help = "model to request; default: the first one that the server lists"),
	S(DATASET, input_len, "input-len", .arg = "TOKENS",
	  .words = "isl input-tokens prompt-tokens prompt-len synthetic-input-tokens-mean "
		   "mean-input-tokens",
	  .help = "prompt tokens: sets --random-input-len"),
	S(DATASET, output_len, "output-len", .arg = "TOKENS",
	  .words = "osl output-tokens max-tokens output-tokens-mean mean-output-tokens",
	  .help = "output tokens to request: sets the output length of random, sharegpt, custom, "
		  "hf, spec_bench and prefix_repetition"),
	S(MODEL, tokenizer, "tokenizer", .arg = "NAME|FILE",
	  .words = "processor",
	  .help = "a tokenizer's file, a directory with one, a model's name (cache, then hub), or "
		  "sim for the built-in one; without it, the model's name"),
	S(MODEL, tokenizer_mode, "tokenizer-mode", .arg = "MODE", .choices = tokenizer_modes,
	  .help = "mistral takes tekken.json or tokenizer.model.v* where a model has them; the "
		  "others take tokenizer.json first"),
	S(SAMPLING, use_beam_search, "use-beam-search",
	  .help = "accepted for compatibility; vLLM ignores it too"),
	S(SAMPLING, logprobs, "logprobs", .arg = "N",
	  .words = "return-logprob",
	  .help = "log probabilities to request per token; completions only"),
	S(TRAFFIC, request_rate, "request-rate", .flags = OPT_MIN_EXCLUSIVE, .arg = "REQ/S",
	  .max = INFINITY, .words = "rate rps qps requests-per-second -r",
	  .help = "mean arrival rate; inf sends every request at once"),
	S(TRAFFIC, burstiness, "burstiness", .flags = OPT_MIN_EXCLUSIVE, .arg = "SHAPE",
	  .max = INFINITY,
	  .words = "request-rate-mode arrival-pattern arrival-smoothness",
	  .help = "shape of the gamma distribution of intervals: 1 is a Poisson process, less is "
		  "burstier, more is steadier, inf is even spacing"),
	S(TRAFFIC, probe_request_rate, "probe-request-rate", .arg = "REQ/S",
	  .help = "rate of small probe requests sent during the load, one at a time, outside the "
		  "cap; their latency is reported separately"),
	S(OUTPUT, disable_tqdm, "disable-tqdm", .words = "quiet silent no-progress",
	  .help = "show no progress"),
	S(TRAFFIC, num_warmups, "num-warmups", .arg = "N", .min = -INFINITY, .max = REQUESTS_MAX,
	  .words = "warmup warmups warmup-requests warmup-request-count",
	  .help = "requests sent before the measurement, which are not counted"),
	S(SERVER, profile, "profile",
	  .help = "start the server's profiler before the measurement and stop it after"),
	S(OUTPUT, save_result, "save-result", .help = "write the result as JSON"),
	S(OUTPUT, save_detailed, "save-detailed",
	  .words = "output-details",
	  .help = "include arrays with one element per request in the result"),
	S(OUTPUT, append_result, "append-result",
	  .help = "append the result to the file, one JSON object per line"),
	S(OUTPUT, metadata, "metadata", .arg = "KEY=VALUE",
	  .help = "texts to store at the top of the result"),
	S(OUTPUT, result_dir, "result-dir", .arg = "DIR",
	  .words = "output-dir output-path artifact-dir",
	  .help = "folder for results; created when missing"),
	S(OUTPUT, result_filename, "result-filename", .arg = "FILE",
	  .help = "name of the result file instead of the generated one"),
	S(SAMPLING, ignore_eos, "ignore-eos",
	  .help = "ask for answers that do not end early; always on for the random dataset"),
	S(TRAFFIC, self_timed, "self-timed",
	  .words = "fixed-schedule use-trace-timestamps",
	  .help = "take arrival times from the dataset; trace and timed_trace have them"),
	S(METRICS, percentile_metrics, "percentile-metrics", .arg = "NAMES",
	  .help = "comma list of the blocks to report: ttft, tpot, itl, e2el, client_queue_time, "
		  "e2el_including_client_queue; without it ttft,tpot,itl"),
	S(METRICS, metric_percentiles, "metric-percentiles", .arg = "LIST",
	  .words = "percentiles latency-percentiles",
	  .help = "comma list of percentiles, each from 0 to 100"),
	S(METRICS, goodput, "goodput", .flags = OPT_MANY, .arg = "NAME:MS",
	  .words = "slo sla threshold thresholds",
	  .help = "limits in milliseconds for ttft, tpot, e2el; goodput counts the requests that "
		  "keep all of them"),
	S(TRAFFIC, request_id_prefix, "request-id-prefix", .arg = "TEXT",
	  .help = "start of the x-request-id header, before the request's number; without it "
		  "bench- and eight random hex digits"),
	S(SAMPLING, top_p, "top-p", .arg = "P", .help = "body field top_p"),
	S(SAMPLING, top_k, "top-k", .arg = "K", .help = "body field top_k"),
	S(SAMPLING, min_p, "min-p", .arg = "P", .help = "body field min_p"),
	S(SAMPLING, temperature, "temperature", .arg = "T",
	  .help = "body field temperature; without it the server decides; 0 is greedy decoding"),
	S(SAMPLING, frequency_penalty, "frequency-penalty", .arg = "X",
	  .help = "body field frequency_penalty"),
	S(SAMPLING, presence_penalty, "presence-penalty", .arg = "X",
	  .help = "body field presence_penalty"),
	S(SAMPLING, repetition_penalty, "repetition-penalty", .arg = "X",
	  .help = "body field repetition_penalty"),
	S(MODEL, served_model_name, "served-model-name", .arg = "NAME",
	  .help = "name of the model in requests, if the server knows it by another name"),
	S(MODEL, lora_modules, "lora-modules", .flags = OPT_MANY, .arg = "NAME",
	  .words = "lora-name",
	  .help = "each request asks for one of these adapters instead of the model"),
	S(MODEL, lora_assignment, "lora-assignment", .arg = "HOW", .choices = lora_assignments,
	  .help = "how adapters are assigned to requests"),
	S(TRAFFIC, ramp_up_strategy, "ramp-up-strategy", .arg = "SHAPE", .choices = ramp_ups,
	  .help = "let the rate grow from the first request to the last"),
	S(TRAFFIC, ramp_up_start_rps, "ramp-up-start-rps", .arg = "REQ/S", .min = 1,
	  .max = INFINITY, .help = "rate of the first request"),
	S(TRAFFIC, ramp_up_end_rps, "ramp-up-end-rps", .arg = "REQ/S", .min = 1, .max = INFINITY,
	  .help = "rate of the last request"),
	S(SERVER, ready_check_timeout_sec, "ready-check-timeout-sec", .arg = "SECONDS",
	  .help = "wait this long for a first request to succeed; 0 skips the check"),
	S(DATASET, chat_template_kwargs, "chat-template-kwargs", .arg = "JSON",
	  .help = "JSON object with variables of the chat template, for datasets that use it; the "
		  "server then applies the template, over /tokenize"),
	S(SAMPLING, extra_body, "extra-body", .arg = "JSON",
	  .words = "stop best-of body extra-inputs extra-request-body additional-sampling-params",
	  .help = "fields added to every request body, with precedence over the sampling options; "
		  "null removes a field"),
	S(MODEL, skip_tokenizer_init, "skip-tokenizer-init",
	  .help = "use no tokenizer; lengths come from the server alone"),
	S(SERVER, insecure, "insecure", .words = "no-verify skip-verify -k",
	  .help = "do not verify the server's certificate"),
	S(PLOTS, plot_timeline, "plot-timeline",
	  .help = "draw every request over time as one self-contained page"),
	S(PLOTS, timeline_itl_thresholds, "timeline-itl-thresholds", .arg = "MS,MS",
	  .help = "two limits that color the gaps between tokens on that page; not "
		  "given: twice and four times the median ITL"),
	S(PLOTS, plot_dataset_stats, "plot-dataset-stats",
	  .help = "draw histograms of prompt and answer lengths: a page, and a PNG through "
		  "gnuplot"),

	O(OURS, chat_prefix, "chat-prefix", .arg = "TEXT",
	  .help = "text that the chat template puts before a user message, where the template is "
		  "unknown; \\n \\r \\t \\\\ and \\xHH are escapes"),
	O(OURS, chat_suffix, "chat-suffix", .arg = "TEXT",
	  .help = "text that it puts after a user message, including the beginning of the answer"),
	O(OURS, threads, "threads", .arg = "N", .min = 1, .max = THREADS_MAX,
	  .help = "event loops that send and receive"),
	O(OURS, cpus, "cpus", .arg = "LIST",
	  .help = "processors to run on, such as 2-5,8: each event loop has one of the first for itself, "
		  "everything else runs on any of them; processes of mpirun on one machine divide them"),
	O(OURS, warm_connections, "warm-connections", .arg = "N|auto",
	  .check = check_warm_connections, .help = "connections opened before the clock starts"),
	O(OURS, timestamps, "timestamps", .arg = "CLOCK", .choices = clocks,
	  .help = "kernel: when the last bytes of a read arrived at the machine; tap: when each TCP "
		  "segment did, which needs CAP_NET_RAW; auto: tap where it is allowed, else kernel; "
		  "user: when the program saw them, counted from before connecting, as vLLM does"),
	O(OURS, calibrate, "calibrate",
	  .help = "after the run, measure for a few seconds the error of the client itself at this "
		  "load, against the simulator on this machine, and report it"),
	S(OURS, calibrate_itl, "calibrate-itl", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, .arg = "MS",
	  .max = 60000,
	  .help = "time between two events of a stream to calibrate for, in place of the mean that "
		  "was measured"),
	S(OURS, request_timeout, "request-timeout", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE,
	  .arg = "SECONDS", .max = 1e9, .words = "timeout request-timeout-seconds",
	  .help = "time limit of a whole request"),
	S(OURS, connect_timeout, "connect-timeout", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE,
	  .arg = "SECONDS", .max = 1e9,
	  .help = "time limit for opening a connection, including TLS"),
	O(OURS, cacert, "cacert", .arg = "FILE",
	  .help = "PEM file of the authorities to trust instead of the system's"),
	O(OURS, record_path, "record", .arg = "FILE",
	  .help = "write every measured event to this file; bench score reads it"),
	O(OURS, dump_workload, "dump-workload", .arg = "FILE",
	  .help = "write what will be sent and when, one JSON object per line"),
	O(OURS, dry_run, "dry-run",
	  .help = "build the workload, print its statistics, send nothing"),
	O(RANDOM, data.prompt_token_ids, "prompt-token-ids",
	  .help = "send token IDs instead of text: lengths are exact, nothing is decoded"),
	O(RANDOM, data.random_input_len_dist, "random-input-len-dist", .arg = "LAW",
	  .words = "isl-stddev synthetic-input-tokens-stddev stddev-input-tokens",
	  .help = "distribution of prompt lengths: lognormal:MEAN,SIGMA, normal:MEAN,SD, "
		  "exponential:MEAN (each also with ,MIN,MAX), zipf:EXPONENT,MAX, uniform:LO,HI, "
		  "histogram:FILE"),
	O(RANDOM, data.random_output_len_dist, "random-output-len-dist", .arg = "LAW",
	  .words = "osl-stddev output-tokens-stddev stddev-output-tokens",
	  .help = "distribution of output lengths, in the same forms"),
	O(DATASET, data.max_model_len, "max-model-len", .arg = "TOKENS", .min = 1, .max = INFINITY,
	  .help = "leave out requests whose prompt and answer have more tokens"),
	O(HUB, data.hf_text_column, "hf-text-column", .arg = "NAME",
	  .help = "column of the prompts, for hub datasets that are not known by name"),
	O(HUB, data.hf_revision, "hf-revision", .arg = "REVISION",
	  .help = "branch, tag or commit of the hub dataset"),
	O(SYNTHETIC, data.structured_dataset, "structured-dataset", .choices = structured_sets,
	  .help = "structured: the constraint on answers"),
	O(SYNTHETIC, data.json_schema_path, "json-schema-path", .arg = "FILE",
	  .help = "structured: the JSON Schema of json and json-unique; default: an array of "
		  "characters of a game, as vLLM's script has it"),
	O(SYNTHETIC, data.structured_output_ratio, "structured-output-ratio", .min = 0, .max = 1,
	  .help = "structured: share of the requests that send the constraint"),
	O(SYNTHETIC, data.structured_output_len, "structured-output-len", .arg = "TOKENS", .min = 1,
	  .max = LENGTH_TOKENS_MAX, .help = "structured: longest answer"),
	O(SYNTHETIC, data.constraint_form, "constraint-form", .choices = constraint_forms,
	  .help = "structured: the request member that holds the constraint; auto: guided_* for "
		  "vLLM before 0.11, else structured_outputs"),
	O(DATASET, data.mix, "mix", .arg = "JSON",
	  .help = "parts of the mix dataset: [{\"weight\": 2, \"dataset-name\": \"random\", ...}, "
		  "...]"),
	O(DATASET, priority_classes, "priority-classes", .arg = "LIST", .check = check_classes,
	  .help = "give each request a priority at random, such as 0:0.5,1:0.5 (priority:share); "
		  "the lower, the earlier it is served; the report is split by them"),
	O(RANDOM, data.random_cache_hit_fraction, "random-cache-hit-fraction", .arg = "FRACTION",
	  .min = 0, .max = 1,
	  .help = "share of requests that begin with the tokens all of them share; with "
		  "--prompt-token-ids"),
	O(RANDOM, data.random_cache_ratio, "random-cache-ratio", .arg = "RATIO", .min = 0, .max = 1,
	  .help = "shared part of such a prompt, as a share of its length"),
	O(FILES, data.speed_bench_max_input_len, "speed-bench-max-input-len", .arg = "TOKENS",
	  .min = 1, .max = INFINITY,
	  .help = "leave rows of speed_bench out whose prompt has more tokens"),
	O(TRACES, data.trace_format, "trace-format", .arg = "FAMILY", .choices = trace_formats,
	  .help = "format of the trace; auto recognizes it by the columns of the first row and "
		  "reports it"),
	O(TRACES, data.trace_block_size, "trace-block-size", .arg = "TOKENS", .min = 1,
	  .max = LENGTH_TOKENS_MAX,
	  .help = "prompt tokens per block id; default: the value of the trace's family"),
	O(TRACES, data.trace_time_unit, "trace-time-unit", .arg = "UNIT", .choices = trace_units,
	  .help = "unit of the trace's times; auto: the unit of the trace's format"),
	O(TRACES, data.trace_output_len, "trace-output-len", .arg = "TOKENS", .min = 1,
	  .max = LENGTH_TOKENS_MAX,
	  .help = "output tokens to request for rows of the trace that do not give them"),
	O(TRACES, data.trace_origin, "trace-origin", .arg = "WHICH", .choices = trace_origins,
	  .help = "start of the run: first (the first row that is sent) or file (the zero of the "
		  "trace's clock)"),
	O(TRACES, data.trace_start, "trace-start", .arg = "SECONDS", .min = -INFINITY,
	  .max = INFINITY,
	  .help = "send the rows from this time of the trace's clock on; of a session, all turns"),
	O(TRACES, data.trace_end, "trace-end", .arg = "SECONDS", .min = -INFINITY, .max = INFINITY,
	  .help = "send the rows up to this time of the trace's clock; of a session, all turns"),
	O(TRACES, data.sort_trace, "sort-trace",
	  .help = "sort the rows by time instead of refusing unsorted ones"),
	S(TRACES, data.speedup, "speedup", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, .arg = "FACTOR",
	  .max = 1e9,
	  .help = "factor by which to replay faster than recorded, for trace, timed_trace and "
		  "workload"),
	O(TRACES, data.speedup_gaps, "speedup-gaps",
	  .help = "divide the gaps between turns of a session, too"),
	O(TRACES, data.trace_salt, "trace-salt", .arg = "WHAT", .choices = trace_salts,
	  .help = "how the text of a block is drawn from its id: fixed, the same in every run; "
		  "seed, different with each --seed, so that no cache has the blocks"),
	O(TRACES, data.sessions, "sessions",
	  .help = "the turns of a session also wait for the end of the one that they follow"),
	O(TRACES, data.trace_message_mode, "trace-message-mode", .arg = "MODE",
	  .choices = trace_modes,
	  .help = "with --sessions, what the messages of a turn are: history, the whole "
		  "conversation; delta, only what follows the server's answer to the previous "
		  "turn"),
	O(SESSIONS, data.conversations_output_len, "conversations-output-len", .arg = "TOKENS",
	  .min = 1, .max = INFINITY,
	  .help = "conversations, sessions: tokens of every answer; otherwise as many as the "
		  "recorded answer has, or the file asks for"),
	O(SESSIONS, data.multi_turn, "multi-turn",
	  .help = "random, sharegpt, hf: make conversations; --num-prompts is their number"),
	O(SESSIONS, data.multi_turn_num_turns, "multi-turn-num-turns", .arg = "N", .min = 1,
	  .max = TURNS_MAX,
	  .words = "conversation-turn-mean",
	  .help = "random: requests of each conversation"),
	O(SESSIONS, data.multi_turn_min_turns, "multi-turn-min-turns", .arg = "N", .min = 0,
	  .max = TURNS_MAX,
	  .help = "fewest requests of a conversation; 0 means --multi-turn-num-turns (sharegpt: "
		  "2)"),
	O(SESSIONS, data.multi_turn_max_turns, "multi-turn-max-turns", .arg = "N", .min = 0,
	  .max = TURNS_MAX,
	  .help = "most requests of a conversation; 0 means --multi-turn-num-turns (sharegpt: "
		  "all)"),
	O(SESSIONS, multi_turn_concurrency, "multi-turn-concurrency", .arg = "N", .min = 1,
	  .max = INFINITY,
	  .help = "maximum number of requests in flight, not counting think time; default: "
		  "--max-concurrency"),
	O(SESSIONS, data.multi_turn_delay_ms, "multi-turn-delay-ms", .arg = "MS", .min = 0,
	  .max = 1e3 * DUE_S_MAX,
	  .help = "think time between an answer and the next request of the conversation"),
	O(SESSIONS, data.per_turn_input_len, "per-turn-input-len", .arg = "TOKENS", .min = 0,
	  .max = LENGTH_TOKENS_MAX,
	  .help = "random: tokens of a user's message after the first; 0 means --random-input-len"),
	O(SESSIONS, data.multi_turn_prefix_global_ratio, "multi-turn-prefix-global-ratio",
	  .arg = "RATIO", .min = 0, .max = 1,
	  .help = "random: share of --random-input-len that all requests begin with; requests then "
		  "have no history"),
	O(SESSIONS, data.multi_turn_prefix_conversation_ratio, "multi-turn-prefix-conversation-ratio",
	  .arg = "RATIO", .min = 0, .max = 1,
	  .help = "random: share of --random-input-len that the requests of one conversation have in common"),
	O(SESSIONS, data.multi_turn_turns_dist, "multi-turn-turns-dist", .arg = "LAW",
	  .help = "random: distribution of the requests per conversation, in the forms of "
		  "--random-input-len-dist"),
	O(SESSIONS, data.multi_turn_delay_dist, "multi-turn-delay-dist", .arg = "LAW",
	  .help = "distribution of think times in milliseconds, in place of --multi-turn-delay-ms"),
	O(SESSIONS, data.multi_turn_system_len, "multi-turn-system-len", .arg = "TOKENS", .min = 0,
	  .max = LENGTH_TOKENS_MAX,
	  .help = "random: tokens of a system message that all conversations begin with"),
	O(SESSIONS, data.multi_turn_session_prefix_len, "multi-turn-session-prefix-len",
	  .arg = "TOKENS", .min = 0, .max = LENGTH_TOKENS_MAX,
	  .help = "random: tokens that the first message of each conversation begins with, others "
		  "in each"),

	S(SAMPLING, omit_body_keys, "omit-body-keys", .flags = OPT_OURS | OPT_MANY,
	  .arg = "KEY[,KEY]",
	  .help = "leave these keys out of every request body, for servers that refuse them"),
	O(SERVER, backend_file, "backend-file", .arg = "FILE",
	  .help = "a JSON file that describes the API to speak, in place of --backend"),
	S(SERVER, base_urls, "base-urls", .flags = OPT_OURS | OPT_MANY, .arg = "URL",
	  .help = "several servers that share the load, in place of --base-url"),
	S(SERVER, source_addresses, "source-addresses", .flags = OPT_OURS | OPT_MANY, .arg = "ADDRESS",
	  .help = "local addresses to connect from, in turn; each has about 28,000 ports for every "
		  "server"),
	O(SERVER, balance, "balance", .arg = "HOW", .choices = balances,
	  .help = "which of several servers gets the next request"),
	S(TRAFFIC, duration, "duration", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE, .arg = "SECONDS",
	  .max = 1e7, .words = "time seconds max-seconds benchmark-duration -d -z",
	  .help = "stop sending after this long; prompts are used again when they run out, unless "
		  "--num-prompts is given"),
	O(TRAFFIC, grace_period, "grace-period", .arg = "SECONDS", .max = 1e7,
	  .words = "benchmark-grace-period",
	  .help = "how long requests in flight may continue after --duration; default: until they "
		  "end"),
	O(TRAFFIC, max_errors, "max-errors", .arg = "N", .min = 1, .max = INFINITY, .words = "fail",
	  .help = "stop the run once this many requests have failed"),
	O(TRAFFIC, max_error_rate, "max-error-rate", .arg = "FRACTION", .min = 0, .max = 1,
	  .help = "stop the run once more than this share of at least 20 ended requests have "
		  "failed"),
	O(TRAFFIC, request_cancellation_rate, "request-cancellation-rate", .arg = "PERCENT",
	  .min = 0, .max = 100,
	  .help = "share of requests, drawn by --seed, that the client cancels on purpose"),
	O(TRAFFIC, request_cancellation_delay, "request-cancellation-delay", .arg = "SECONDS",
	  .max = 1e7, .help = "time after sending at which the client cancels them"),
	O(TRAFFIC, prompt_salt, "prompt-salt", .arg = "WHAT", .check = check_salt,
	  .help = "put a few random tokens before every prompt, new ones each time: none, run (the "
		  "same for the whole run), request (others for each), fresh (like run, and "
		  "lengths are kept; default of sweeps, --num-runs and suites); run:TEXT repeats "
		  "those of TEXT"),
	O(TRAFFIC, num_runs, "num-runs", .arg = "N", .min = 1, .max = 1000,
	  .words = "repeat repeats runs iterations num-profile-runs",
	  .help = "repeat the measurement this many times and report mean, spread and variation"),
	O(POINTS, sweep_max_concurrency, "sweep-max-concurrency", .arg = "LIST",
	  .help = "measure once for each of these values, such as 1,8,64, and print a table"),
	O(POINTS, sweep_request_rate, "sweep-request-rate", .arg = "LIST",
	  .help = "measure once for each of these rates, such as 1,10,inf, and print a table"),
	O(POINTS, sweep_num_prompts_factor, "sweep-num-prompts-factor", .arg = "K", .min = 1,
	  .max = 1e6,
	  .help = "with --sweep-max-concurrency: send K prompts per concurrent request"),
	O(POINTS, sweep_summary_percentiles, "sweep-summary-percentiles", .arg = "LIST",
	  .help = "further percentiles for the table; they are computed, too"),
	SERVE_ROWS_FIND(FIND),
	S(POINTS, compare, "compare", .flags = OPT_OURS | OPT_MANY, .arg = "FILE",
	  .help = "measure nothing: print how the second of two result files differs from the "
		  "first; bench compare does more"),
	O(SERVER, reset_prefix_cache, "reset-prefix-cache",
	  .words = "flush-cache",
	  .help = "have the server empty its prefix cache before each measurement"),
	O(METRICS, steady_state_threshold, "steady-state-threshold", .arg = "FRACTION", .min = 0,
	  .max = 1,
	  .help = "share of --max-concurrency: the steady state lasts while this many requests are "
		  "in flight"),
	O(METRICS, steady_state_min_window, "steady-state-min-window", .arg = "SECONDS", .max = 1e7,
	  .help = "shortest steady state without a warning; default: 10 s or a tenth of the run"),
	O(METRICS, no_steady_state, "no-steady-state", .help = "do not look for a steady state"),
	O(METRICS, report_cached_tokens, "report-cached-tokens",
	  .help = "report how many prompt tokens the server says it had cached"),
	O(SERVER, profile_batch_threshold, "profile-batch-threshold", .arg = "N", .min = 1,
	  .max = INFINITY,
	  .help = "start the server's profiler once this many requests are in flight"),
	S(SERVER, profile_duration, "profile-duration", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE,
	  .arg = "SECONDS", .max = 1e6, .help = "how long the profiler then runs"),
	O(OUTPUT, output_json, "output-json", .arg = "FILE",
	  .words = "json output outputs output-file out export csv profile-export-file -o",
	  .help = "write the detailed result to this file"),
	O(OUTPUT, report, "report", .arg = "FORM", .choices = report_forms,
	  .words = "summary verbose details",
	  .help = "short: summary, vLLM's report and the verdict; full: also server metrics, "
		  "intervals and the client's own lag; json: the result on stdout, all other text on "
		  "stderr"),
	S(OUTPUT, quiet, "quiet", .flags = OPT_OURS, .letter = 'q',
	  .help = "print only the summary, and the answer to --slo, of a search, sweep or --num-runs"),
	O(SERVER, client_cert, "client-cert", .arg = "FILE",
	  .help = "PEM file with the certificate to show the server"),
	O(SERVER, client_key, "client-key", .arg = "FILE",
	  .help = "PEM file with the key of that certificate; default: the certificate's file"),
	O(SERVER, transport, "transport", .arg = "NAME", .choices = transports,
	  .help = "native, or libcurl for what that cannot do (HTTP/2, SOCKS and authenticated "
		  "proxies, redirects); auto takes libcurl only for those"),
	O(SERVER, http_version, "http-version", .arg = "VERSION", .choices = http_versions,
	  .help = "HTTP/1.1, or HTTP/2 (by TLS, or at once without)"),
	S(SERVER, proxy, "proxy", .flags = OPT_OURS | OPT_SECRET, .arg = "URL",
	  .help = "http, https, socks4, socks4a, socks5 or socks5h proxy, in place of what the "
		  "environment names"),
	O(SERVER, follow_redirects, "follow-redirects", .help = "follow redirects, ten at most"),
	O(METRICS, metrics_interval, "metrics-interval", .arg = "SECONDS", .max = 3600,
	  .help = "how often the server's /metrics are read while load runs; 0: only before and "
		  "after"),
	O(METRICS, metrics_url, "metrics-url", .arg = "URL",
	  .help = "URLs of the metrics, if they are not at /metrics of the server; separated by "
		  "commas"),
	GPU_PRICE_ROWS(struct serve_opts, METRICS, OPT_OURS),
	O(METRICS, system_metrics, "system-metrics", .arg = "LIST",
	  .help = "watch the machine while load runs: off, all, or a comma list of gpu, host, "
		  "process (the server's)"),
	O(METRICS, system_interval, "system-interval", .arg = "SECONDS", .max = 3600,
	  .help = "how often the machine is sampled; 0: only before and after the load"),
	S(METRICS, system_gpus, "system-gpus", .flags = OPT_OURS | OPT_MANY, .arg = "GPU",
	  .help = "the GPUs to watch, by index or UUID, instead of all that may be used"),
	S(METRICS, system_pid, "system-pid", .flags = OPT_OURS | OPT_MANY, .arg = "[NAME=]PID",
	  .help = "processes of the server, each with its descendants, instead of those that "
		  "listen at the base URL"),
	O(PLOTS, charts, "charts", .arg = "WHEN", .choices = chart_times,
	  .help = "charts of tokens and requests per second before the report, drawn by gnuplot; "
		  "auto is on a terminal"),
	O(OUTPUT, live, "live", .words = "tui ui watch",
	  .help = "full-screen view while load runs: rates, percentiles so far, slowest requests, "
		  "errors"),
	S(OUTPUT, dashboard, "dashboard", .flags = OPT_OURS | OPT_SECRET, .arg = "URL",
	  .words = "report upload live server",
	  .help = "report progress and live curves to a dashboard while it runs, and the result at "
		  "the end; the URL as profllm dashboard prints it"),
	O(TRAFFIC, load_pattern, "load-pattern", .arg = "NAME",
	  .help = "well-known traffic options under one name; help lists them"),
	O(PLOTS, plot_load_pattern, "plot-load-pattern",
	  .help = "draw when requests are due and how long the intervals are"),
	O(PLOTS, plot_turns, "plot-turns",
	  .help = "draw TTFT, context length and cached tokens by the turn of a conversation"),
	REUSE_ROWS(struct serve_opts, data, DATASET),
	O(OURS, strict, "strict", .words = "fail-on-invalid",
	  .help = "exit with 3 unless the verdict on the measurement is VALID"),
	GATE_ROW_FAIL_IF(struct serve_opts, gate, OURS, "p99_ttft_ms>200' or 'failed>0"),
	GATE_ROWS(struct serve_opts, gate, OURS, OPT_OURS),
	O(OURS, progress, "progress", .arg = "FORM", .choices = progress_forms,
	  .help = "progress on stderr; auto is a bar on a terminal and lines elsewhere"),
	S(OURS, fix, "fix", .flags = OPT_OURS | OPT_MANY, .arg = "NAME",
	  .help = "corrections of vLLM's mistakes that change numbers; help lists them"),
	O(OURS, compat, "compat", .arg = "LIST",
	  .help = "comma list of other behaviours of vLLM's: peak, role-chunk, stream-error, "
		  "detail, stdout, timed-trace-short, v0.11; help explains them"),
	O(OURS, trace, "trace", .arg = "LIST", .check = check_trace,
	  .help = "comma list of debugging categories printed on stderr, or all"),

	O(SESSIONS, max_sessions, "max-sessions", .arg = "N", .min = 1, .max = INFINITY,
	  .words = "concurrent-sessions session-concurrency",
	  .help = "maximum number of conversations under way at once, from their first request to "
		  "the end of their last answer, including pauses; --max-concurrency counts "
		  "requests"),
	O(SESSIONS, on_turn_failure, "on-turn-failure", .arg = "WHAT", .choices = turn_failures,
	  .help = "what follows a failed turn: drop the rest of its conversation, retry it up to "
		  "three times (after 1, 2 and 4 s) and then drop, or continue with an empty "
		  "answer"),
	S(SESSIONS, user_centric_rate, "user-centric-rate", .flags = OPT_OURS | OPT_MIN_EXCLUSIVE,
	  .arg = "REQ/S", .max = 1e9,
	  .help = "requests per second of all --num-users together: each user sends its next "
		  "request N / RATE seconds after its last one, or when that has been answered"),
	O(SESSIONS, num_users, "num-users", .arg = "N", .min = 1, .max = 1e6,
	  .help = "users of --user-centric-rate; when one's conversation is over, the next one "
		  "takes its place"),
	O(SESSIONS, think_time, "think-time", .arg = "SECONDS|LAW", .check = serve_check_time,
	  .words = "turn-delay delay-between-turns",
	  .help = "pause between an answer and the next turn, in place of what the dataset has: "
		  "seconds, or a distribution from which each pause is drawn:  uniform:LO,HI, "
		  "normal:MEAN,SD[,MIN,MAX], lognormal:MEAN,SIGMA[,MIN,MAX], "
		  "exponential:MEAN[,MIN,MAX], histogram:FILE"),
	O(SESSIONS, tool_time, "tool-time", .arg = "SECONDS|LAW", .check = serve_check_time,
	  .words = "tool-latency tool-delay",
	  .help = "pause while an agent's tools run, in the forms of --think-time, which does not "
		  "change these"),
	O(SESSIONS, session_header, "session-header", .arg = "NAME",
	  .help = "header that sends the conversation's id to the server; an empty NAME sends "
		  "none"),
	O(SESSIONS, session_affinity, "session-affinity", .arg = "HOW", .choices = affinities,
	  .help = "with several servers: url keeps a conversation at the server of its first turn, "
		  "spread lets --balance choose for each turn"),
	O(SESSIONS, session_token_header, "session-token-header", .arg = "NAME",
	  .help = "header of an answer that the next requests of its conversation repeat, for "
		  "routers that return a token"),
	O(SESSIONS, bad_tool_calls, "bad-tool-calls", .arg = "WHAT", .choices = bad_calls,
	  .help = "what to do with a tool call whose arguments are not a JSON object: replace them "
		  "by {}, or fail the request"),
	O(SESSIONS, tool_result_words, "tool-result-words", .arg = "N", .min = 1, .max = 1e6,
	  .help = "length of the made-up result that answers a tool call, in words"),

	S(NULL, old_dataset, "dataset", .flags = OPT_HIDDEN | OPT_OURS | OPT_NO_CONFIG,
	  .arg = "FILE",
	  .help = "the ShareGPT file of old scripts: --dataset-name sharegpt --dataset-path FILE"),
	S(NULL, backend, "endpoint-type", .flags = OPT_HIDDEN, .alias_of = "backend",
	  .help = "old spelling of --backend"),
	S(NULL, data.skip_chat_template, "custom-skip-chat-template", .flags = OPT_HIDDEN,
	  .alias_of = "skip-chat-template", .help = "old spelling of --skip-chat-template"),
};

static const struct serve_opts defaults = {
	.num_prompts = 1000,
	.dataset_name = "random",
	.data.repeat_count = 1, .data.warmup_pass = "none",
	.data.custom_output_len = 256,
	.data.structured_dataset = "json", .data.constraint_form = "auto",
	.data.structured_output_ratio = 1, .data.structured_output_len = 128,
	.data.spec_bench_output_len = 256,
	.data.sonnet_input_len = 550, .data.sonnet_output_len = 150, .data.sonnet_prefix_len = 200,
	.data.timed_trace_chunk_hash_size = 16, .data.timed_trace_sec_multiplier = 1,
	.data.timed_trace_label_timestamp = "timestamp",
	.data.timed_trace_label_input_length = "input_length",
	.data.timed_trace_label_output_length = "output_length",
	.data.timed_trace_label_hash_ids = "hash_ids",
	.data.trace_format = "auto", .data.trace_time_unit = "auto", .data.trace_origin = "first",
	.data.trace_salt = "fixed", .data.trace_message_mode = "history",
	.data.trace_output_len = 256, .data.speedup = 1,
	.data.blazedit_max_distance = 1, .data.asr_max_audio_len_sec = INFINITY,
	.data.random_input_len = 1024, .data.random_output_len = 128, .data.random_range_ratio = "0.0",
	.data.random_batch_size = 1,
	.data.multi_turn_num_turns = 3,
	.data.random_mm_base_items_per_request = 1,
	.data.random_mm_limit_mm_per_prompt = { "{\"image\": 255, \"video\": 1}" },
	.data.random_mm_bucket_config =
		"{(256, 256, 1): 0.5, (720, 1280, 1): 0.5, (720, 1280, 16): 0.0}",
	.data.prefix_repetition_prefix_len = 256, .data.prefix_repetition_suffix_len = 256,
	.data.prefix_repetition_num_prefixes = 10, .data.prefix_repetition_output_len = 128,
	.data.speed_bench_dataset_subset = "qualitative", .data.speed_bench_output_len = 4096,
	.backend = "openai",
	.host = "127.0.0.1", .port = 8000, .endpoint = "/v1/completions",
	.tokenizer_mode = "auto",
	.request_rate = INFINITY, .burstiness = 1,
	.metric_percentiles = "99",
	.lora_assignment = "random",
	.timeline_itl_thresholds = "25,50",
	.balance = "round-robin", .prompt_salt = "none", .num_runs = 1,
	.steady_state_threshold = 0.95, .profile_duration = 5,
	.transport = "auto", .http_version = "1.1", .metrics_interval = 1, .charts = "auto",
	.system_metrics = "off", .system_interval = 1,
	.threads = 1, .warm_connections = "auto", .timestamps = "auto",
	.request_timeout = 21600, .connect_timeout = 130,
	.progress = "auto", .report = "short", .precision = FIND_PRECISION_PERCENT, .budget = CAPACITY_BUDGET_S,
	.level_seconds = CAPACITY_LEVEL_S,
	.on_turn_failure = "drop", .session_header = "X-Session-ID", .session_affinity = "url",
	.bad_tool_calls = "replace", .tool_result_words = TOOL_RESULT_WORDS,
};

static const char *const common[] = {
	"base-url", "model", "tokenizer", "backend", "dataset-name", "dataset-path",
	"random-input-len", "random-output-len", "num-prompts", "request-rate", "max-concurrency",
	"save-result", NULL,
};

const struct opt_set serve_opt_set = {
	.command = "bench serve",
	.summary = "Sends a workload to a running server and reports latency and throughput. "
		   "Options, report and result file are those of vllm bench serve.",
	.usage = "[options]",
	.epilog = "Examples:\n"
		  "  profllm bench serve --model NAME --num-prompts 200 --request-rate 10\n"
		  "  profllm bench serve --backend openai-chat --endpoint /v1/chat/completions \\\n"
		  "      --dataset-name sharegpt --dataset-path FILE --max-concurrency 64 \\\n"
		  "      --save-result\n"
		  "  profllm bench serve --tokenizer sim --dry-run\n"
		  "  mpirun -np 8 profllm bench serve --base-url http://router:8000 --request-rate 4000",
	.common = common, .row = rows, .n = sizeof(rows) / sizeof(*rows),
	.defaults = &defaults, .bytes = sizeof(defaults), .groups = groups,
	.namespace_head = "subparser='bench', bench_type='serve', ",
	.takes_prefixes = true,
};

/* ---- options that set others ---- */

const struct load_pattern load_patterns[] = {
	{ "steady", "evenly spaced requests",
	  { { "request-rate", "10" }, { "burstiness", "inf" } } },
	{ "poisson", "independent users: a Poisson process",
	  { { "request-rate", "10" }, { "burstiness", "1" } } },
	{ "bursty", "clumps of requests and pauses between them",
	  { { "request-rate", "10" }, { "burstiness", "0.25" } } },
	{ "spiky", "rare, tall clumps",
	  { { "request-rate", "10" }, { "burstiness", "0.05" } } },
	{ "ramp", "a rate that grows evenly",
	  { { "ramp-up-strategy", "linear" }, { "ramp-up-start-rps", "1" },
	    { "ramp-up-end-rps", "20" } } },
	{ "surge", "a rate that doubles again and again",
	  { { "ramp-up-strategy", "exponential" }, { "ramp-up-start-rps", "1" },
	    { "ramp-up-end-rps", "64" } } },
	{ "saturate", "as many requests in flight as a cap allows, the next when one ends",
	  { { "request-rate", "inf" }, { "max-concurrency", "64" } } },
	{ "flood", "everything at once", { { "request-rate", "inf" } } },
	{ "soak", "a light load for an hour",
	  { { "request-rate", "2" }, { "burstiness", "1" }, { "duration", "3600" } } },
	{ NULL, NULL, { { NULL, NULL } } },
};

static const struct preset compat_presets[] = {
	{ "ready-check-timeout-sec", "600" },
	{ "percentile-metrics", "ttft,tpot,itl" },
	{ "request-id-prefix", "benchmark-serving" },
	{ NULL, NULL },
};

static const struct load_pattern *pattern_of(const char *name)
{
	const struct load_pattern *p = load_patterns;

	while (p->name && strcmp(p->name, name) != 0)
		p++;
	return p->name ? p : NULL;
}

static int assign_preset(const struct preset *set, struct serve_opts *o,
			 const struct opt_result *given, struct arena *a, struct err *e)
{
	for (; set->option; set++)
		if (!opt_given(&serve_opt_set, given, set->option) &&
		    opt_assign(&serve_opt_set, o, set->option, str_of(set->value), a, e) < 0)
			return -1;
	return 0;
}

static int unknown_pattern(const char *name, struct err *e)
{
	const char *names[32], *near;
	size_t n = 0;

	while (load_patterns[n].name) {
		names[n] = load_patterns[n].name;
		n++;
	}
	near = opt_nearest(str_of(name), names, n);
	return err_set(e, ERR_USAGE, "--load-pattern: unknown name '%.100s'%s%s%s; "
		       "--load-pattern help lists the names", name, near ? "; did you mean " : "",
		       near ? near : "", near ? "?" : "");
}

int serve_presets(struct serve_opts *o, const struct opt_result *given, struct arena *a,
		  struct err *e)
{
	const struct load_pattern *pattern = o->load_pattern ? pattern_of(o->load_pattern) : NULL;

	if (o->load_pattern && !pattern)
		return unknown_pattern(o->load_pattern, e);
	if (pattern && assign_preset(pattern->set, o, given, a, e) < 0)
		return -1;
	if (!(serve_compat_bits(o->compat) & COMPAT_V011))
		return 0;
	return assign_preset(compat_presets, o, given, a, e);
}

void load_pattern_flags(const struct serve_opts *o, const struct opt_result *given, struct buf *out)
{
	const struct load_pattern *pattern = o->load_pattern ? pattern_of(o->load_pattern) : NULL;

	for (const struct preset *p = pattern ? pattern->set : NULL; p && p->option; p++)
		if (!opt_given(&serve_opt_set, given, p->option))
			buf_printf(out, "%s--%s %s", out->len ? " " : "", p->option, p->value);
}

/* ---- --compat v0.11 (serve spec section 9) ---- */

/* Options of later upstream versions. */
static const char *const newer[] = {
	"num-warmups", "extra-body", "insecure", "skip-tokenizer-init", "input-len", "output-len",
	"lora-assignment", "chat-template-kwargs", "plot-timeline", "timeline-itl-thresholds",
	"plot-dataset-stats", "probe-request-rate", "self-timed",
};

static int check_mode(const struct serve_check *c)
{
	static const char *const modes[] = { "auto", "slow", "mistral", "custom" };

	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(c->o->tokenizer_mode, modes[i]) == 0)
			return 0;
	return err_set(c->e, ERR_USAGE, "--tokenizer-mode: v0.11 has auto, slow, mistral, custom; "
		       "got '%s'", c->o->tokenizer_mode);
}

int serve_check_compat(const struct serve_check *c)
{
	struct serve_opts *o = c->o;

	if (!(c->d->compat & COMPAT_V011))
		return 0;
	if (!o->model)
		return err_set(c->e, ERR_USAGE, "the following arguments are required: --model");
	if (check_mode(c) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(newer) / sizeof(*newer); i++)
		if (serve_given(c, newer[i]))
			serve_warn(c, "--%s is newer than v0.11; it is accepted anyway", newer[i]);
	/* Greedy unless a temperature is given: sent in bodies, not shown among the options. */
	if (!c->d->is_pooling && !o->temperature.is_set)
		o->temperature = (struct opt_real){ .is_set = true, .v = 0 };
	return 0;
}
