/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_options_opts.c - command lines of bench serve: what each sentence of upstream
 * is said for and with which exit status, what is derived, what is warned about.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "bench/options/gpu_price.h"
#include "core/base/file.h"
#include "input/sets/datasets.h"
#include "scratch.h"
#include "serve_line.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define GOODPUT "--goodput: expected NAME:MS, a metric and its limit in milliseconds, got "
#define PERCENTILES "--metric-percentiles: expected numbers from 0 to 100 with commas between, got "
#define PATH_FORBIDDEN                                                                      \
	"--dataset-path x.json: the random dataset reads no file; --dataset-name says what the " \
	"file holds, such as sharegpt, custom or hf"
#define THRESHOLDS "--timeline-itl-thresholds: expected two numbers of milliseconds, the " \
	"smaller one first, got "
#define LINEAR "--ramp-up-strategy", "linear"
#define START "--ramp-up-start-rps"
#define END "--ramp-up-end-rps"
#define DATASETS "sharegpt, burstgpt, sonnet, random, random-mm, random-rerank, hf, custom, " \
	"custom_audio, custom_image, custom_mm, prefix_repetition, spec_bench, speed_bench, " \
	"timed_trace, trace, conversations, sessions, prioritization, mix, workload, " \
	"structured"
#define BACKENDS "vllm, openai, openai-chat, openai-responses, openai-audio, openai-embeddings, " \
	"openai-embeddings-chat, openai-embeddings-clip, openai-embeddings-vlm2vec, "          \
	"infinity-embeddings, infinity-embeddings-clip, vllm-pooling, vllm-rerank, anthropic, tgi, " \
	"llamacpp, sglang, ollama, ollama-chat"

static void test_errors(void **state)
{
	static const struct { int status; const char *text; const char *arg[ARGS_MAX]; } cases[] = {
		/* what one option cannot be, by its row */
		{ 2, "--max-concurrency: expected an integer of at least 1, got '0'",
		  { "--max-concurrency", "0" } },
		{ 2, "--max-concurrency: expected an integer of at least 1, got '-1'",
		  { "--max-concurrency", "-1" } },
		{ 2, "--seed: expected an integer from 0 to 4294967295, got '-1'", { "--seed", "-1" } },
		{ 2, "--seed: expected an integer from 0 to 4294967295, got '4294967296'",
		  { "--seed", "4294967296" } },
		{ 2, "--ramp-up-start-rps: expected an integer of at least 1, got '0'",
		  { LINEAR, START, "0", END, "4" } },
		{ 2, "--ramp-up-start-rps: expected an integer of at least 1, got '-1'",
		  { LINEAR, START, "-1", END, "5" } },
		{ 2, "--request-rate: expected a number above 0, got '0'", { "--request-rate", "0" } },
		{ 2, "--request-rate: expected a number above 0, got '-2.5'",
		  { "--request-rate=-2.5" } },
		{ 2, "--request-rate: expected a number above 0, got 'nan'",
		  { "--request-rate", "nan" } },
		{ 2, "--burstiness: expected a number above 0, got '0'", { "--burstiness", "0" } },
		{ 2, "--burstiness: expected a number above 0, got '-1'", { "--burstiness", "-1" } },
		{ 2, "--num-prompts: expected an integer of at most 268435456, got '300_000_000'",
		  { "--num-prompts", "300_000_000" } },
		/* what options cannot be together */
		{ 2, "--request-rate and --ramp-up-strategy are mutually exclusive: the ramp sets the "
		  "rate; leave out --request-rate", { LINEAR, "--request-rate", "5" } },
		{ 2, "--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps; "
		  "--ramp-up-end-rps is missing", { LINEAR, START, "1" } },
		{ 2, "--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps; "
		  "--ramp-up-start-rps is missing", { LINEAR, END, "1" } },
		{ 2, "--ramp-up-start-rps: expected at most --ramp-up-end-rps, 4, got 5",
		  { LINEAR, START, "5", END, "4" } },
		{ 2, "--header: expected KEY=VALUE, got 'x'", { "--header", "x" } },
		{ 2, "--header: expected KEY=VALUE, got 'Authorization...'",
		  { "--header", "Authorization: Bearer key" } },
		{ 2, "--header: 'a b' is not a valid header name", { "--header", "a b=1" } },
		{ 2, "--header: '' is not a valid header name", { "--header", "=1" } },
		{ 2, "--header: the value of a holds a control character",
		  { "--header", "a=1\r\nb: 2" } },
		{ 2, PATH_FORBIDDEN, { "--dataset-path", "x.json" } },
		{ 2, "--self-timed: only the datasets trace and timed_trace have arrival times, not random",
		  { "--self-timed" } },
		{ 2, "--no-self-timed: only the datasets trace and timed_trace have arrival times, not sharegpt",
		  { "--no-self-timed", "--dataset-name", "sharegpt" } },
		{ 2, "--num-prompts: expected at least 1, got 0", { "--num-prompts", "0" } },
		{ 2, GOODPUT "'ttft'", { "--goodput", "ttft" } },
		{ 2, GOODPUT "'ttft:fast'", { "--goodput", "ttft:fast" } },
		{ 2, GOODPUT "'ttft:1:2'", { "--goodput", "ttft:1:2" } },
		{ 2, GOODPUT "'ttft:nan'", { "--goodput", "ttft:nan" } },
		{ 2, "--goodput: unknown metric 'itl'; expected ttft, tpot, e2el or session_duration",
		  { "--goodput", "itl:50" } },
		{ 2, "--goodput: expected a limit of at least 0 milliseconds, got 'ttft:-1'",
		  { "--goodput", "ttft:-1" } },
		{ 2, PERCENTILES "'x'", { "--metric-percentiles", "50,x" } },
		{ 2, PERCENTILES "''", { "--metric-percentiles", "" } },
		{ 2, PERCENTILES "'100.5'", { "--metric-percentiles", "50,100.5" } },
		{ 2, PERCENTILES "'nan'", { "--metric-percentiles", "nan" } },
		{ 2, "--percentile-metrics: unknown metric 'tpott'; did you mean tpot?",
		  { "--percentile-metrics", "ttft,tpott" } },
		{ 2, "--percentile-metrics: unknown metric 'foo'; expected some of ttft, tpot, itl, e2el, "
		  "client_queue_time, e2el_including_client_queue",
		  { "--percentile-metrics", "ttft,foo" } },
		{ 2, "--metadata: expected KEY=VALUE, got 'b'", { "--metadata", "a=1", "b" } },
		{ 2, THRESHOLDS "'50,10'", { "--timeline-itl-thresholds", "50,10" } },
		{ 2, THRESHOLDS "'50'", { "--plot-timeline", "--timeline-itl-thresholds", "50" } },
		{ 2, THRESHOLDS "'5,x'", { "--plot-timeline", "--timeline-itl-thresholds", "5,x" } },
		{ 2, THRESHOLDS "'1,2,3'", { "--plot-timeline", "--timeline-itl-thresholds", "1,2,3" } },
		{ 2, "--random-range-ratio: the range ratio must be in [0, 1), got '1'",
		  { "--random-range-ratio", "1" } },
		{ 2, "--random-range-ratio: the range ratio must be in [0, 1), got '-0.1'",
		  { "--random-range-ratio=-0.1" } },
		{ 2, "--random-range-ratio: the output ratio must be in [0, 1), got "
		  "'{\"input\": 0, \"output\": 1}'",
		  { "--random-range-ratio", "{\"input\": 0, \"output\": 1}" } },
		{ 2, "--random-range-ratio: the object needs the numbers \"input\" and \"output\", "
		  "got '{\"input\": 0.5}'", { "--random-range-ratio", "{\"input\": 0.5}" } },
		{ 2, "--random-range-ratio: expected a number or JSON like {\"input\": 0.3, "
		  "\"output\": 0.5}, got '[0.1]'", { "--random-range-ratio", "[0.1]" } },
		{ 2, "--random-range-ratio: expected a number or JSON like {\"input\": 0.3, "
		  "\"output\": 0.5}, got 'half'", { "--random-range-ratio", "half" } },
		{ 2, "--dataset and --dataset-path are mutually exclusive: --dataset is the old spelling",
		  { "--dataset", "a", "--dataset-path", "b" } },
		{ 2, "--extra-body: expected a JSON object, got [1]", { "--extra-body", "[1]" } },
		{ 2, "--omit-body-keys: expected keys with commas between, got 'a,,b'",
		  { "--omit-body-keys", "a,,b" } },
		{ 2, "--omit-body-keys: requests of --backend openai-audio are forms, not JSON",
		  { "--omit-body-keys", "a", "--backend", "openai-audio" } },
		{ 2, "--backend: expected one of " BACKENDS ", got 'vllm-chat'; did you mean openai-chat?",
		  { "--backend", "vllm-chat" } },
		{ 2, "--backend: expected one of " BACKENDS ", got 'lmdeploy'; use openai, whose API its "
		  "server speaks", { "--backend", "lmdeploy" } },
		{ 2, "--backend: expected one of " BACKENDS ", got 'scalellm'; use openai, whose API its "
		  "server speaks", { "--backend", "scalellm" } },
		{ 2, "--backend: expected one of " BACKENDS ", got 'tensorrt-llm'; use openai if its server "
		  "speaks that API, else --backend-file", { "--backend", "tensorrt-llm" } },
		{ 2, "--backend: expected one of " BACKENDS ", got 'deepspeed-mii'; use openai if its server "
		  "speaks that API, else --backend-file", { "--backend", "deepspeed-mii" } },
		{ 2, "--backend: expected one of " BACKENDS ", got 'llama.cpp'; did you mean llamacpp? "
		  "(openai for its other API)", { "--backend", "llama.cpp" } },
		/* usage */
		{ 2, "--backend: expected one of " BACKENDS ", got 'mii'", { "--backend", "mii" } },
		{ 2, "--tokenizer-mode: expected one of auto, hf, mistral, deepseek_v32, slow, custom, "
		     "got 'fast'", { "--tokenizer-mode", "fast" } },
		{ 2, "--lora-assignment: expected one of random, round-robin, got 'x'",
		  { "--lora-assignment", "x" } },
		{ 2, "--ramp-up-strategy: expected one of linear, exponential, got 'x'",
		  { "--ramp-up-strategy", "x" } },
		{ 2, "--port: expected an integer from 1 to 65535, got '70000'",
		  { "--port", "70000" } },
		{ 2, "--num-prompts: expected an integer of at most 268435456, got '1k'", { "--num-prompts", "1k" } },
		{ 2, "--request-rate: expected a number above 0, got 'fast'",
		  { "--request-rate", "fast" } },
		{ 2, "--goodput: expected at least one argument", { "--goodput" } },
		{ 2, "--lora-modules: expected at least one argument", { "--lora-modules" } },
		{ 2, "--presence-penalty: expected one argument; a value that starts with a "
		  "dash is "
		  "written --presence-penalty=-0.5", { "--presence-penalty", "-0.5" } },
		{ 2, "unknown option --num-prompt-tokens", { "--num-prompt-tokens", "1" } },
		{ 2, "unknown option --sede; did you mean --seed?", { "--sede", "1" } },
		{ 2, "unexpected argument '5'", { "5" } },
		/* ours */
		{ 2, "--threads: expected an integer from 1 to 64, got '0'", { "--threads", "0" } },
		{ 2, "--timestamps: expected one of auto, kernel, tap, user, got 'gpu'",
		  { "--timestamps", "gpu" } },
		{ 2, "--warm-connections: expected auto or an integer from 0 to 1000000, "
		  "got 'many'",
		  { "--warm-connections", "many" } },
		{ 2, "--request-timeout: expected a number above 0 to 1000000000, in seconds or as "
		     "10m, got '0'",
		  { "--request-timeout", "0" } },
		{ 2, "--progress: expected one of auto, bar, lines, none, got 'off'",
		  { "--progress", "off" } },
		{ 2, "--chat-prefix: unknown escape '\\q'; expected \\n, \\r, \\t, \\\\ or \\xHH",
		  { "--chat-prefix", "\\q" } },
		{ 2, "--chat-suffix: unknown escape '\\'; expected \\n, \\r, \\t, \\\\ or "
		  "\\xHH", { "--chat-suffix", "\\" } },
		{ 2, "--chat-template-kwargs: expected a JSON object, got [1]",
		  { "--chat-template-kwargs", "[1]" } },
		{ 2, "--compat: unknown name 'v0.12'; --compat help lists the names",
		  { "--compat", "peak,v0.12" } },
		{ 2, "--fix: unknown name 'all'; --fix help lists the names",
		  { "--fix", "all" } },
		{ 2, "--trace: unknown category 'disk'; there are net, load, run, token, all",
		  { "--trace", "net,disk" } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct line l;

		run(&l, cases[i].arg);
		if (l.rc == 0)
			fail_msg("%s %s was accepted", cases[i].arg[0], cases[i].arg[1]);
		assert_string_equal(l.e.text, cases[i].text);
		assert_int_equal(err_exit_status(&l.e), cases[i].status);
		done(&l);
	}
	(void)state;
}

/* Every row says what it is for; options with the value they have anyway do no harm. */
static void test_rows(void **state)
{
	struct line l;

	RUN(&l, "--probe-request-rate", "0", "--timeline-itl-thresholds", "25,50",
	    "--random-batch-size", "1", "--sonnet-input-len", "550", "--probe-request-rate=-1");
	assert_int_equal(l.rc, 0);
	done(&l);
	for (size_t i = 0; i < serve_opt_set.n; i++) {
		const struct opt *o = &serve_opt_set.row[i];
		bool is_shown = !(o->flags & OPT_HIDDEN);

		assert_true(o->help && *o->help);
		assert_true(!is_shown || (o->group && *o->group));
		assert_true(!o->alias_of || o->flags & OPT_HIDDEN);
	}
	(void)state;
}

static void test_warnings(void **state)
{
	static const struct { const char *note; const char *arg[ARGS_MAX]; } cases[] = {
		{ "", { "--model", "m" } },
		{ "", { "--save-result", "--result-dir", "d", "--metadata", "a=b" } },
		{ "--trust-remote-code has no effect: no remote code is ever run\n",
		  { "--trust-remote-code" } },
		{ "--use-beam-search has no effect, as in vLLM\n", { "--use-beam-search" } },
		{ "--logprobs has no effect: requests of --backend openai-chat have no such field\n",
		  { "--logprobs", "2", "--backend", "openai-chat", "--endpoint", "/v1/chat/completions" } },
		{ "--host and --port have no effect with --base-url\n",
		  { "--base-url", "http://a", "--port", "1" } },
		{ "--insecure has no effect: the server's URL is not https\n", { "--insecure" } },
		{ "--cacert has no effect with --insecure\n",
		  { "--insecure", "--cacert", "x", "--base-url", "https://a" } },
		{ "--served-model-name has no effect without --model: the server is asked for its "
		  "model\n", { "--served-model-name", "x" } },
		{ "--tokenizer has no effect with --skip-tokenizer-init\n",
		  { "--tokenizer", "x", "--skip-tokenizer-init" } },
		{ "--lora-assignment has no effect without --lora-modules\n",
		  { "--lora-assignment", "random" } },
		{ "--ramp-up-start-rps and --ramp-up-end-rps have no effect without "
		  "--ramp-up-strategy\n", { "--ramp-up-start-rps", "1" } },
		{ "--burstiness has no effect without a finite --request-rate\n",
		  { "--burstiness", "2" } },
		{ "", { "--burstiness", "2", "--request-rate", "3" } },
		{ "--num-warmups is below 0 and has no effect\n", { "--num-warmups", "-1" } },
		{ "--ready-check-timeout-sec is below 0 and has no effect\n",
		  { "--ready-check-timeout-sec", "-1" } },
		{ "", { "--percentile-metrics", "ttft, tpot," } },
		{ "--endpoint is /v1/chat/completions, the path of --backend openai-chat\n",
		  { "--backend", "openai-chat" } },
		{ "--endpoint is /v1/embeddings, the path of --backend openai-embeddings\n",
		  { "--backend", "openai-embeddings" } },
		{ "", { "--backend", "anthropic" } },
		{ "--percentile-metrics: client queue times need --max-concurrency\n",
		  { "--percentile-metrics", "client_queue_time" } },
		{ "--percentile-metrics: e2el_including_client_queue needs a finite "
		  "--request-rate\n",
		  { "--percentile-metrics", "e2el_including_client_queue", "--max-concurrency",
		    "2" } },
		{ "--percentile-metrics: ttft, tpot and itl are not reported with "
		  "--skip-tokenizer-init\n", { "--percentile-metrics", "ttft",
		  "--skip-tokenizer-init" } },
		{ "--save-result has no effect with --append-result\n",
		  { "--append-result", "--save-result" } },
		{ "--save-detailed has no effect without --save-result or --append-result\n",
		  { "--save-detailed" } },
		{ "--metadata has no effect without --save-result or --append-result\n",
		  { "--metadata", "a=b" } },
		{ "--sharegpt-output-len has no effect: the dataset is random\n",
		  { "--sharegpt-output-len", "5" } },
		{ "--random-input-len has no effect: the dataset is sharegpt\n",
		  { "--random-input-len", "5", "--dataset-name", "sharegpt" } },
		{ "--disable-shuffle has no effect: the dataset is random\n",
		  { "--disable-shuffle" } },
		{ "--random-output-len is overridden by --output-len\n",
		  { "--random-output-len", "5", "--output-len", "6" } },
		{ "--dataset is an old spelling of --dataset-name sharegpt --dataset-path\n",
		  { "--dataset", "x.json" } },
		{ "--dataset is an old spelling of --dataset-name custom --dataset-path\n",
		  { "--dataset", "x.jsonl", "--dataset-name", "custom" } },
		{ "--request-rate has no effect: requests are sent at the trace's times\n",
		  { "--request-rate", "5", "--dataset-name", "timed_trace", "--dataset-path", "x" } },
		{ "--request-rate has no effect: requests are sent at the trace's times\n",
		  { "--request-rate", "5", "--dataset-name", "trace", "--dataset-path", "x", "--self-timed" } },
		{ "", { "--request-rate", "5", "--dataset-name", "timed_trace", "--dataset-path", "x",
		  "--no-self-timed" } },
		{ "--ramp-up-strategy has no effect: requests are sent at the trace's times\n",
		  { "--dataset-name", "timed_trace", "--dataset-path", "x", LINEAR, START, "1", END, "2" } },
		{ "", { "--duration", "5", "--dataset-name", "trace", "--dataset-path", "x" } },
		{ "--endpoint-type is an old spelling of --backend\n",
		  { "--endpoint-type", "vllm" } },
		{ "--custom-skip-chat-template is an old spelling of --skip-chat-template\n",
		  { "--custom-skip-chat-template", "--dataset-name", "custom" } },
		{ "--chat-prefix has no effect: the dataset is random\n",
		  { "--chat-prefix", "<u>" } },
		{ "--chat-prefix, --chat-suffix and --chat-template-kwargs have no effect with "
		  "--skip-chat-template\n", { "--chat-suffix", "", "--skip-chat-template",
		  "--dataset-name", "custom" } },
		{ "--chat-template-kwargs has no effect with --chat-prefix and --chat-suffix\n",
		  { "--chat-suffix", "", "--chat-template-kwargs.thinking", "true",
		  "--dataset-name", "custom" } },
		{ "--steady-state-threshold has no effect without --max-concurrency\n",
		  { "--steady-state-threshold", "0.9" } },
		{ "--steady-state-min-window has no effect with a finite --request-rate\n",
		  { "--steady-state-min-window", "3", "--max-concurrency", "2",
		    "--request-rate", "4" } },
		{ "--steady-state-min-window has no effect with --no-steady-state\n",
		  { "--steady-state-min-window", "3", "--max-concurrency", "2",
		    "--no-steady-state" } },
		{ "", { "--steady-state-min-window", "3", "--max-concurrency", "2" } },
		{ "--dry-run sends nothing, so no result and no record are written\n",
		  { "--dry-run", "--save-result" } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct line l;

		run(&l, cases[i].arg);
		if (l.rc < 0)
			fail_msg("%s: %s", cases[i].arg[0], l.e.text);
		assert_string_equal(l.r.notes.data ? l.r.notes.data : "", cases[i].note);
		done(&l);
	}
	(void)state;
}

static void test_defaults(void **state)
{
	struct line l;

	RUN(&l, NULL);
	assert_int_equal(l.rc, 0);
	assert_string_equal(l.d.base_url, "http://127.0.0.1:8000");
	assert_string_equal(l.d.api_url, "http://127.0.0.1:8000/v1/completions");
	assert_string_equal(l.d.label, "openai");
	assert_int_equal(l.d.n_headers + l.d.n_metadata + l.d.metrics.n_goodput, 0);
	assert_int_equal(l.d.metrics.selected, TOKEN_BLOCKS);
	assert_int_equal(l.d.metrics.n_percentiles, 1);
	assert_true(l.d.metrics.percentile[0] == 99);
	assert_null(l.d.extra_body);
	assert_true(l.d.is_temperature_unset);
	assert_false(l.d.is_chat || l.d.load.is_user_stamps);
	assert_int_equal(l.d.load.max_concurrency, 0);
	assert_int_equal(l.d.load.threads, 1);
	assert_true(l.d.warm_connections == SERVE_WARM_AUTO);
	assert_int_equal(l.d.load.net.request_timeout_ns, 21600000000000);
	assert_int_equal(l.d.progress, PROGRESS_AUTO);
	assert_int_equal(l.d.compat | l.d.fixes, 0);
	assert_true(l.o.ignore_eos);
	assert_int_equal(strlen(l.o.request_id_prefix), strlen("bench-00000000-"));
	assert_memory_equal(l.o.request_id_prefix, "bench-", 6);
	done(&l);
	(void)state;
}

static void test_urls(void **state)
{
	static const struct { const char *want; const char *arg[ARGS_MAX]; } cases[] = {
		{ "http://localhost:9/v1/completions", { "--host=localhost", "--port", "9" } },
		{ "http://[::1]:8000/v1/completions", { "--host", "::1" } },
		{ "http://[fe80::1%eth0]:8000/v1/completions", { "--host", "fe80::1%eth0" } },
		{ "http://10.0.0.1:8000/x", { "--host", "10.0.0.1", "--endpoint", "/x" } },
		{ "https://a/b//v1/completions", { "--base-url", "https://a/b/" } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct line l;

		run(&l, cases[i].arg);
		assert_int_equal(l.rc, 0);
		assert_string_equal(l.d.api_url, cases[i].want);
		done(&l);
	}
	(void)state;
}

static void test_pairs(void **state)
{
	struct line l;

	RUN(&l, "--header", " a = b=c ", "X-Y=1", "a=d", "--metadata", "v=0.3.3", "empty=",
	    "--label", "l", "--save-result");
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.d.n_headers, 2);
	assert_string_equal(l.d.header[0].key, "a");
	assert_string_equal(l.d.header[0].value, "d");
	assert_string_equal(l.d.header[1].key, "X-Y");
	assert_int_equal(l.d.n_metadata, 2);
	assert_string_equal(l.d.metadata[0].value, "0.3.3");
	assert_string_equal(l.d.metadata[1].value, "");
	assert_string_equal(l.d.label, "l");
	done(&l);
	(void)state;
}

static void test_metrics(void **state)
{
	struct line l;

	RUN(&l, "--metric-percentiles", "50, 99.9,0,100.0", "--percentile-metrics", "e2el,ttft",
	    "--goodput", "e2el:100", "ttft:5e1", "e2el:200");
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.d.metrics.selected, BLOCK_BIT(BLOCK_E2EL) | BLOCK_BIT(BLOCK_TTFT));
	assert_int_equal(l.d.metrics.n_percentiles, 4);
	assert_true(l.d.metrics.percentile[0] == 50 && l.d.metrics.percentile[1] == 99.9);
	assert_true(l.d.metrics.percentile[2] == 0 && l.d.metrics.percentile[3] == 100);
	assert_true(l.d.metrics.percentile[1] == 99.9);
	assert_int_equal(l.d.metrics.n_goodput, 2);
	assert_int_equal(l.d.metrics.goodput[0].block, BLOCK_E2EL);
	assert_true(l.d.metrics.goodput[0].limit_ms == 200);
	assert_true(l.d.metrics.goodput[1].limit_ms == 50);
	done(&l);
	RUN(&l, "--percentile-metrics", "");
	assert_int_equal(l.d.metrics.selected, TOKEN_BLOCKS);
	done(&l);
	(void)state;
}

static void test_lengths(void **state)
{
	struct line l;

	RUN(&l, "--input-len", "7", "--output-len", "9", "--random-range-ratio",
	    "{\"input\": 0.25, \"output\": 0}");
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.o.data.random_input_len, 7);
	assert_int_equal(l.o.data.random_output_len, 9);
	assert_int_equal(l.o.data.custom_output_len, 9);
	assert_true(l.o.data.sharegpt_output_len.is_set && l.o.data.sharegpt_output_len.v == 9);
	assert_int_equal(l.o.data.sonnet_output_len, 150);
	assert_true(l.o.data.input_range_ratio == 0.25);
	assert_true(l.o.data.output_range_ratio == 0);
	done(&l);
	RUN(&l, "--random-range-ratio", " 0.5", "--dataset-name", "sharegpt");
	assert_true(l.o.data.output_range_ratio == 0.5);
	assert_false(l.o.ignore_eos);
	done(&l);
	RUN(&l, "--dataset-name", "custom", "--num-prompts", "-1", "--dataset-path", "x.jsonl");
	assert_int_equal(l.rc, 0);
	done(&l);
	(void)state;
}

static void test_body(void **state)
{
	static const struct { const char *want; const char *arg[ARGS_MAX]; } cases[] = {
		{ "{\"top_p\": 0.9, \"top_k\": 5, \"temperature\": 0.0}",
		  { "--temperature", "0", "--top-k", "5", "--top-p", "0.9" } },
		{ "{\"temperature\": 1, \"x\": {\"a\": [1, 2.0]}}",
		  { "--temperature", "0", "--top-k", "5", "--extra-body",
		    "{\"temperature\":1,\"x\":{\"a\":[1,2.0]},\"top_k\":null}" } },
		{ "{\"min_p\": 0.5, \"frequency_penalty\": -0.5, \"presence_penalty\": 1.0, "
		  "\"repetition_penalty\": 1.1}",
		  { "--repetition-penalty", "1.1", "--presence-penalty", "1",
		    "--frequency-penalty=-0.5", "--min-p", ".5" } },
		{ "{\"a\": {\"b\": 3}}", { "--extra-body.a.b", "3" } },
		{ NULL, { "--extra-body", "null" } },
		{ NULL, { "--extra-body", "[]" } },
		{ NULL, { "--extra-body", "{}" } },
	};

	for (size_t i = 0; i < COUNT(cases); i++) {
		struct line l;

		run(&l, cases[i].arg);
		if (l.rc < 0)
			fail_msg("%s: %s", cases[i].arg[0], l.e.text);
		if (cases[i].want)
			assert_string_equal(l.d.extra_body, cases[i].want);
		else
			assert_null(l.d.extra_body);
		done(&l);
	}
	(void)state;
}

static void test_omitted(void **state)
{
	struct line l;

	RUN(&l, "--omit-body-keys", "ignore_eos, logprobs", "x", "--extra-body",
	    "{\"top_k\": null, \"min_p\": 0.5}");
	assert_int_equal(l.rc, 0);
	assert_string_equal(l.d.extra_body, "{\"min_p\": 0.5}");
	assert_int_equal(l.d.n_omit, 4);
	assert_string_equal(l.d.omit[0], "ignore_eos");
	assert_string_equal(l.d.omit[1], "logprobs");
	assert_string_equal(l.d.omit[2], "x");
	assert_string_equal(l.d.omit[3], "top_k");
	done(&l);
	RUN(&l, NULL);
	assert_int_equal(l.d.n_omit, 0);
	done(&l);
	RUN(&l, "--backend", "openai-audio", "--endpoint", "/v1/audio/transcriptions",
	    "--dataset-name", "custom_audio", "--dataset-path", "x.jsonl", "--extra-body",
	    "{\"prompt\": null}");
	assert_int_equal(l.rc, 0);
	assert_string_equal(l.d.extra_body, "{\"prompt\": null}");
	assert_int_equal(l.d.n_omit, 0);
	done(&l);
	(void)state;
}

static void test_ours(void **state)
{
	struct line l;

	RUN(&l, "--compat=role-chunk, detail", "--fix", "peak-tokens", "--warm-connections", "8",
	    "--disable-tqdm", "--timestamps", "user", "--max-concurrency", "64");
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.d.compat, COMPAT_ROLE_CHUNK | COMPAT_DETAIL);
	assert_int_equal(l.d.fixes, FIX_PEAK_TOKENS);
	assert_int_equal(l.d.warm_connections, 8);
	assert_int_equal(l.d.progress, PROGRESS_NONE);
	assert_int_equal(l.d.load.max_concurrency, 64);
	assert_true(l.d.load.is_user_stamps);
	done(&l);
	RUN(&l, "--ramp-up-strategy", "exponential", START, "1", END, "4", "--lora-modules", "a",
	    "b", "--lora-assignment", "round-robin", "--backend", "openai-chat");
	assert_int_equal(l.rc, 0);
	assert_int_equal(l.d.ramp_up, RAMP_EXPONENTIAL);
	assert_int_equal(l.d.lora, LORA_ROUND_ROBIN);
	assert_true(l.d.is_chat);
	done(&l);
	(void)state;
}

/* The line a real run of upstream prints for the same options, its process-wide members aside. */
static void test_namespace(void **state)
{
	static const char want[] =
		"Namespace(subparser='bench', bench_type='serve', trust_remote_code=False, seed=0, "
		"num_prompts=1000, dataset_name='random', no_stream=False, dataset_path=None, "
		"no_oversample=False, skip_chat_template=False, enable_multimodal_chat=False, "
		"disable_shuffle=False, custom_output_len=256, "
		"custom_ensure_client_side_data=False, spec_bench_output_len=256, "
		"spec_bench_category=None, sonnet_input_len=550, sonnet_output_len=150, "
		"sonnet_prefix_len=200, sharegpt_output_len=None, timed_trace_chunk_hash_size=16, "
		"timed_trace_sec_multiplier=1, timed_trace_label_timestamp='timestamp', "
		"timed_trace_label_input_length='input_length', "
		"timed_trace_label_output_length='output_length', "
		"timed_trace_label_hash_ids='hash_ids', blazedit_min_distance=0.0, "
		"blazedit_max_distance=1.0, asr_max_audio_len_sec=inf, asr_min_audio_len_sec=0.0, "
		"random_input_len=1024, random_output_len=128, random_range_ratio='0.0', "
		"random_prefix_len=0, random_batch_size=1, no_reranker=False, "
		"random_mm_base_items_per_request=1, random_mm_num_mm_items_range_ratio=0.0, "
		"random_mm_limit_mm_per_prompt={'image': 255, 'video': 1}, "
		"random_mm_bucket_config={(256, 256, 1): 0.5, (720, 1280, 1): 0.5, "
		"(720, 1280, 16): 0.0}, hf_subset=None, hf_split=None, hf_name=None, "
		"hf_output_len=None, bfcl_categories=None, prefix_repetition_prefix_len=256, "
		"prefix_repetition_suffix_len=256, prefix_repetition_num_prefixes=10, "
		"prefix_repetition_output_len=128, speed_bench_dataset_subset='qualitative', "
		"speed_bench_output_len=4096, speed_bench_category=None, label=None, "
		"backend='openai', base_url='http://127.0.0.1:30000', host='127.0.0.1', port=8000, "
		"endpoint='/v1/completions', header='***', max_concurrency=16, model='m', "
		"input_len=None, output_len=None, tokenizer='/t', tokenizer_mode='auto', "
		"use_beam_search=False, logprobs=None, request_rate=inf, burstiness=1.0, "
		"probe_request_rate=0.0, disable_tqdm=False, num_warmups=0, profile=False, "
		"save_result=False, save_detailed=False, append_result=False, metadata=None, "
		"result_dir=None, result_filename=None, ignore_eos=False, self_timed=None, "
		"percentile_metrics=None, metric_percentiles='50,95', goodput=None, "
		"request_id_prefix='bench-d757fa48-', top_p=None, top_k=None, min_p=None, "
		"temperature=None, frequency_penalty=None, presence_penalty=None, "
		"repetition_penalty=None, served_model_name=None, lora_modules=None, "
		"lora_assignment='random', ramp_up_strategy=None, ramp_up_start_rps=None, "
		"ramp_up_end_rps=None, ready_check_timeout_sec=0, chat_template_kwargs=None, "
		"extra_body=None, skip_tokenizer_init=False, insecure=False, plot_timeline=False, "
		"timeline_itl_thresholds='25,50', plot_dataset_stats=False)";
	struct buf got = { 0 };
	struct line l;

	RUN(&l, "--base-url=http://127.0.0.1:30000", "--header=a=secret", "--max-concurrency=16",
	    "--model=m", "--tokenizer=/t", "--metric-percentiles=50,95",
	    "--request-id-prefix=bench-d757fa48-", "--threads=2");
	assert_int_equal(l.rc, 0);
	/* Printed before the check upstream, so before ignore_eos is forced. */
	l.o.ignore_eos = false;
	opt_namespace(&serve_opt_set, &l.o, &got);
	assert_string_equal(got.data, want);
	buf_release(&got);
	done(&l);
	(void)state;
}

/* Abbreviations that work upstream work here, whatever rows we add. */
static void test_abbreviations(void **state)
{
	struct line l;

	RUN(&l, "--tr", "--endpoin", "/x", "--mod", "m", "--request-r", "5", "--max_c", "3",
	    "--res=d");
	assert_int_equal(l.rc, -1);
	assert_string_equal(l.e.text, "ambiguous option --res: it could be --result-dir, "
				      "--result-filename");
	done(&l);
	RUN(&l, "--tr", "--endpoin", "/x", "--mod", "m", "--request-r", "5", "--max_c", "3");
	assert_int_equal(l.rc, 0);
	assert_true(l.o.data.trust_remote_code);
	assert_string_equal(l.o.endpoint, "/x");
	assert_int_equal(l.d.load.max_concurrency, 3);
	done(&l);
	(void)state;
}

/*
 * What follows from the kind of dataset. f: reads no file. e: the end of sequence is ignored. t:
 * sent at its own times. a: --num-prompts 0 is allowed. w: all rows unless --num-prompts is given.
 */
static void test_kinds_of_datasets(void **state)
{
	static const struct { const char *name, *backend, *want; } row[] = {
		{ "sharegpt", "vllm", "a" }, { "burstgpt", "vllm", "a" },
		{ "sonnet", "vllm", "" }, { "random", "vllm", "fe" },
		{ "random-mm", "openai-chat", "fe" }, { "random-rerank", "vllm-rerank", "f" },
		{ "hf", "vllm", "a" }, { "custom", "vllm", "a" },
		{ "custom_audio", "openai-chat", "a" }, { "custom_image", "openai-chat", "a" },
		{ "custom_mm", "openai-chat", "a" }, { "prefix_repetition", "vllm", "f" },
		{ "spec_bench", "vllm", "a" }, { "speed_bench", "vllm", "a" },
		{ "timed_trace", "vllm", "eta" }, { "trace", "vllm", "eaw" },
		{ "conversations", "openai-chat", "aw" }, { "sessions", "openai-chat", "aw" },
		{ "prioritization", "vllm", "e" }, { "mix", "vllm", "f" },
		{ "workload", "vllm", "aw" }, { "structured", "vllm", "" },
	};
	struct line l;
	size_t n;

	(void)state;
	dataset_all(&n);
	assert_int_equal(n, COUNT(row));
	for (size_t i = 0; i < COUNT(row); i++) {
		bool forbids_path, ignores_eos, is_timed, is_whole;
		char got[8];

		RUN(&l, "--dataset-name", row[i].name, "--backend", row[i].backend, "--dataset-path", "x");
		forbids_path = l.rc < 0;
		done(&l);
		RUN(&l, "--dataset-name", row[i].name, "--backend", row[i].backend);
		assert_int_equal(l.rc, 0);
		ignores_eos = l.o.ignore_eos;
		is_timed = l.o.self_timed == OPT_TRI_YES;
		is_whole = l.o.num_prompts == 0;
		done(&l);
		RUN(&l, "--dataset-name", row[i].name, "--backend", row[i].backend, "--num-prompts", "0");
		snprintf(got, sizeof(got), "%s%s%s%s%s", forbids_path ? "f" : "", ignores_eos ? "e" : "",
			 is_timed ? "t" : "", l.rc == 0 ? "a" : "", is_whole ? "w" : "");
		done(&l);
		if (strcmp(got, row[i].want) != 0)
			fail_msg("%s: %s, not %s", row[i].name, got, row[i].want);
	}
}

static void test_least_lengths(void **state)
{
	static const struct { const char *dataset, *option; int least; } row[] = {
		{ "sharegpt", "--sharegpt-output-len", 0 }, { "sonnet", "--sonnet-output-len", 0 },
		{ "prefix_repetition", "--prefix-repetition-output-len", 0 }, { "hf", "--hf-output-len", 0 },
		{ "custom", "--custom-output-len", -1 }, { "spec_bench", "--spec-bench-output-len", -1 },
		{ "speed_bench", "--speed-bench-output-len", -1 },
	};
	struct line l;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++)
		for (int below = 0; below < 2; below++) {
			char text[64];

			snprintf(text, sizeof(text), "%s=%d", row[i].option, row[i].least - below);
			RUN(&l, "--dataset-name", row[i].dataset, row[i].option[2] == 'p' ?
			    "--seed" : "--dataset-path", "1", text); /* that dataset reads no file */
			if (!strstr(l.e.text, "expected 0 or more tokens") != !below)
				fail_msg("%s: '%s'", text, l.e.text);
			done(&l);
		}
}

static void test_gpu_prices(void **state)
{
	static const char table[] = "# prices\n\n  H100 = 2.5 # an hour\nH100 NVL = 3\nb200=6\n";
	static const struct {
		const char *gpus, *price;
		uint32_t count;
		double want;
		const char *what;
	} row[] = {
		{ NULL, NULL, 0, 0, NULL }, { "", "1.5", 0, 1.5, NULL }, { "4", "1.5", 4, 1.5, NULL },
		{ "4xh100", "table", 4, 2.5, NULL }, { "NVIDIA H100 NVL", "table", 1, 3, NULL },
		{ "8 X B200", "table", 1, 6, NULL }, { "8X B200", "table", 8, 6, NULL },
		{ "3090", NULL, 3090, 0, NULL }, { "4090 Ti", NULL, 1, 0, NULL },
		{ "0", NULL, 0, 0, "--gpus: expected a number from 1 to 1000000" },
		{ "1000000", NULL, 1000000, 0, NULL }, { "1000001", NULL, 0, 0, "--gpus: expected" },
		{ "A10", "table", 0, 0, "has no line for 'A10'; add one" },
		{ "4", "table", 0, 0, "needs the GPU's name" }, { "4", "0", 0, 0, "a price above 0, or a file" },
		{ "4", "inf", 0, 0, "a price above 0, or a file" },
		{ "H100", "none", 0, 0, "none" },
		{ "H100", "nameless", 0, 0, "nameless:2: expected NAME = PRICE" },
		{ "H100", "priceless", 0, 0, "priceless:1: expected NAME = PRICE with a price above 0" },
	};

	(void)state;
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(file_write_atomic("table", str_of(table), NULL), 0);
	assert_int_equal(file_write_atomic("nameless", STR("\n= 3\n"), NULL), 0);
	assert_int_equal(file_write_atomic("priceless", STR("H100\n"), NULL), 0);
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		uint32_t count;
		double price;
		struct err e = { 0 };
		int rc = gpu_price_read(row[i].gpus, row[i].price, &count, &price, &e);

		if (rc != (row[i].what ? -1 : 0) || (row[i].what && !strstr(e.text, row[i].what)) ||
		    (!rc && (count != row[i].count || fabs(price - row[i].want) > 1e-9)))
			fail_msg("%zu: %d, %u, %g, %s", i, rc, count, price, e.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors), cmocka_unit_test(test_kinds_of_datasets),
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_warnings), cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_urls), cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_metrics), cmocka_unit_test(test_lengths),
		cmocka_unit_test(test_body), cmocka_unit_test(test_omitted),
		cmocka_unit_test(test_ours),
		cmocka_unit_test(test_namespace), cmocka_unit_test(test_abbreviations),
		cmocka_unit_test(test_least_lengths), cmocka_unit_test(test_gpu_prices),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
