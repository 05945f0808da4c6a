/* SPDX-License-Identifier: Apache-2.0 */
/* test_config_config.c - configurations: what is read, what is refused and in which words. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include "answers.h"
#include "config_golden.h"
#include "core/base/file.h"
#include "core/base/limits.h"
#include "core/base/redact.h"
#include "core/json/write.h"
#include "experiment/config/config.h"
#include "scratch.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct made {
	struct arena a;
	struct config c;
	struct experiment x;
	struct config_findings f;
	struct err e;
	int rc;
};

static void make_with(struct made *m, const char *text, const char *const *sets, size_t n_sets,
		      const struct config_know *know)
{
	*m = (struct made){ 0 };
	m->rc = config_parse(str_of(text), "exp.yaml", sets, n_sets, &m->a, &m->c, &m->e);
	if (m->rc == 0)
		m->rc = config_experiment(&m->c, m->c.tree, know, &m->a, &m->x, &m->f);
}

static void make(struct made *m, const char *text)
{
	make_with(m, text, NULL, 0, NULL);
}

static void drop(struct made *m)
{
	config_findings_release(&m->f);
	arena_release(&m->a);
}

static const char *errors(const struct made *m)
{
	return m->e.code ? m->e.text : m->f.errors.data ? m->f.errors.data : "";
}

/* All that differs is shown before a test fails. */
static int differing;

static void expect(const char *what, const char *got, const char *want)
{
	if (strcmp(got, want) == 0)
		return;
	print_error("%s:\n got  %s\n want %s\n", what, got, want);
	differing++;
}

static void none_differs(void)
{
	int n = differing;

	differing = 0;
	assert_int_equal(n, 0);
}

static char *words_of(const struct made *m)
{
	char *const *words = config_server_words(m->x.server, (struct arena *)(uintptr_t)&m->a);
	static char text[4096];
	size_t n = 0;

	text[0] = 0;
	for (size_t i = 0; words[i]; i++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "", words[i]);
	return text;
}

/* ---- the table ---- */

static const char *with_line(const struct param *p)
{
	return *p->with ? "\n  " : "";
}

static void check_refused(const char *section, const struct param *p, const char *head)
{
	char text[2048], want[2048];
	struct made m;

	if (!*p->bad)
		return;
	snprintf(text, sizeof(text), "%s\n  %s: %s%s%s\n", head, p->key, p->bad, with_line(p),
		 p->with);
	make(&m, text);
	snprintf(want, sizeof(want), "exp.yaml:%d:%zu: %s.%s: %s\n",
		 strcmp(section, "server") == 0 ? 4 : 3, strlen(p->key) + 5, section, p->key,
		 p->message);
	expect(p->key, errors(&m), want);
	drop(&m);
}

static void test_server_params(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(server_params); i++) {
		const struct param *p = &server_params[i];
		char text[2048];
		struct made m;

		snprintf(text, sizeof(text), "server:\n  command: vllm serve\n  %s: %s%s%s\n", p->key,
			 p->good, with_line(p), p->with);
		make(&m, text);
		expect(p->key, errors(&m), "");
		if (redact_is_secret(str_of(p->key))) { /* no word: all users can read those */
			expect(p->key, words_of(&m), "");
			expect(p->key, config_server_secrets(m.x.server, &m.a)[0], "HF_TOKEN=some/hf_token");
		} else {
			expect(p->key, words_of(&m), p->made);
		}
		assert_non_null(json_get(m.x.server->values, p->key));
		drop(&m);
		check_refused("server", p, "benchmark: {}\nserver:\n  command: vllm serve");
	}
	none_differs();
}

static void test_bench_params(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(bench_params); i++) {
		const struct param *p = &bench_params[i];
		struct buf json = { 0 };
		struct json_writer w = json_writer(&json);
		char text[2048];
		struct made m;

		snprintf(text, sizeof(text), "server: {}\nbenchmark:\n  %s: %s%s%s\n", p->key, p->good,
			 with_line(p), p->with);
		make(&m, text);
		expect(p->key, errors(&m), "");
		json_put_value(&w, json_get(m.x.benchmark, p->key));
		expect(p->key, json.data, p->made);
		buf_release(&json);
		drop(&m);
		check_refused("benchmark", p, "server: {}\nbenchmark:");
	}
	none_differs();
	assert_true(COUNT(server_params) + COUNT(bench_params) >= 200);
}

/* ---- what does not go together ---- */

struct finding {
	const char *text, *found; /* a part of it */
};

static const struct finding refused[] = {
	{ "benchmark: {}\n", "exp.yaml:1:1: server: missing; expected a server to start" },
	{ "server: {}\nbenchmrk: {}\n", "exp.yaml:2:1: benchmrk: unknown key; did you mean benchmark?" },
	{ "server: {}\nnum_prompts: 3\n",
	  "exp.yaml:2:1: num_prompts: unknown key; it belongs in benchmark" },
	{ "server: [1]\n", "exp.yaml:1:9: server: expected an object, got a list" },
	{ "server: vllm\n", "exp.yaml:1:9: server: expected an object, got the text 'vllm'" },
	{ "server:\n  tensor_paralel_size: 2\n", "exp.yaml:2:3: server.tensor_paralel_size: "
	  "unknown key; did you mean tensor_parallel_size?" },
	{ "server:\n  num_prompts: 2\n",
	  "exp.yaml:2:3: server.num_prompts: unknown key; it belongs in benchmark, not in server" },
	{ "server: {}\nbenchmark:\n  max_num_seqs: 2\n", "exp.yaml:3:3: benchmark.max_num_seqs: "
	  "unknown key; it belongs in server, not in benchmark" },
	{ "server:\n  max-num-seq: 2\n",
	  "exp.yaml:2:3: server.max_num_seq: unknown key; did you mean max_num_seqs?" },
	{ "server: {ports: 3}\n", "server.ports: unknown key; it belongs in resources, not in server" },
	{ "server: {command: ''}\n", "server.command: expected words or a list of them" },
	{ "server: {command: \"vllm 'serve\"}\n", "server.command: No closing quotation" },
	{ "server: {command: A=b vllm serve m}\n", "server.command: A=... before the command needs a shell" },
	{ "server: {command: vllm serve, url: 'http://x'}\n",
	  "url names a running server and command starts one" },
	{ "server: {url: x}\n", "server.url: expected http://... or https://..., got 'x'" },
	{ "server: {ready: soon}\n", "expected one of health, port, started or {log: TEXT}" },
	{ "server: {env: [A]}\n", "server.env: expected an object of NAME: VALUE, got a list" },
	{ "server: {env: {A: [1]}}\n", "server.env.A: expected a text, got a list" },
	{ "server: {role: boss}\n", "server.role: expected one of serve, prefill, decode, proxy, "
	  "cache, got 'boss'" },
	{ "server: {port: 70000}\n", "server.port: expected an integer from 0 to 65535, got '70000'" },
	{ "server: {quantization.x: 1}\n", "quantization is not a JSON value, so it has no keys" },
	{ "server: {container: {runtime: docker}}\n", "server.container" },
	{ "server: {}\nservers: []\n", "server and servers are both given; remove one of them" },
	{ "servers: []\n", "servers: expected a list of servers, got an empty one" },
	{ "servers: [3]\n", "exp.yaml:1:11: servers.0: expected an object, got 3" },
	{ "servers:\n  - {role: prefill}\n  - {role: decode}\n",
	  "exp.yaml:2:3: servers: no server would get the load; give one of them the role proxy or serve" },
	{ "servers:\n  - {role: proxy}\n  - {role: proxy}\n", "there are 2 proxies, but load "
	  "goes to one of them only" },
	{ "servers:\n  - {name: a}\n  - {name: a}\n", "exp.yaml:3:12: servers.1.name: two servers "
	  "have the name a" },
	{ "server: {name: a/b}\n", "server.name: expected up to 63 letters, digits and . _ -, got "
	  "'a/b'" },
	{ "servers:\n  - {name: a, port: 8001}\n  - {name: b, port: 8001}\n",
	  "servers.1.port: 8001 is a's already" },
	{ "servers:\n  - {name: alpha}\n  - {name: b, after: [alhpa]}\n",
	  "servers.1.after: there is no server 'alhpa'; did you mean alpha?" },
	{ "servers:\n  - {name: a, after: c}\n  - {name: b, after: a}\n  - {name: c, after: [b]}\n",
	  "these servers wait for each other, so none can start first: a after c after b after a" },
	{ "server: {max_num_batched_tokens: 2048, max_model_len: 8k, enable_chunked_prefill: false}\n",
	  "max_num_batched_tokens (2048) must be at least max_model_len (8000) where "
	  "enable_chunked_prefill is false" },
	{ "server: {max_num_batched_tokens: 64, max_num_seqs: 128}\n",
	  "server.max_num_seqs: 128 is more than max_num_batched_tokens (64)" },
	{ "server: {max_loras: 2}\n", "server.max_loras: it needs enable_lora: true" },
	{ "server: {lora_modules: [a=b]}\n", "server.lora_modules: it needs enable_lora: true" },
	{ "server: {enable_lora: true, max_loras: 4, max_cpu_loras: 2}\n",
	  "server.max_cpu_loras: 2 is less than max_loras (4)" },
	{ "server: {speculative_config: {method: ngram, num_speculative_tokens: 0}}\n",
	  "expected an integer of at least 1, got 0" },
	{ "server: {block_size: 20}\n", "server.block_size: expected 1 or a multiple of 8, got 20" },
	{ "server: {tensor_parallel_size: 4, gpus: 2}\n",
	  "server.gpus: 2, and tensor x pipeline x data parallel size is 4" },
	{ "server: {tensor_parallel_size: 2, pipeline_parallel_size: 2}\nresources: {gpus: 2}\n",
	  "exp.yaml:2:19: resources.gpus: 2 given, but the server needs 4" },
	{ "server: {tensor_parallel_size: 16}\n", "resources.gpus: 16 GPUs are needed, but only 8 "
	  "may be used here" },
	{ "server: {}\nresources: {gpus: [0, 1, 0]}\n", "resources.gpus: 0 is named twice" },
	{ "servers: [{name: a, role: prefill}, {name: b}]\nresources: {gpus: 3}\n",
	  "exp.yaml:2:19: resources.gpus: 3 given, but the 2 servers need 2 together" },
	{ "server: {extra_args: [--to, $(b.port)]}\n", "server: server server: $(b.port): this experiment "
	  "has no server b" },
	{ "server: {env: {ROCR_VISIBLE_DEVICES: 0}}\n", "exp.yaml:1:38: server.env.ROCR_VISIBLE_DEVICES: "
	  "profllm sets this variable to the GPUs that it allocates; use resources.gpus" },
	{ "server: {}\nresources: {gpus: []}\n", "resources.gpus: expected auto, none, a number of GPUs "
	  "(at most 1024) or a list of indices or UUIDs, got a list" },
	{ "server: {}\nresources: {gpus: -1}\n", "resources.gpus: expected auto, none, a number of GPUs "
	  "(at most 1024) or a list of indices or UUIDs, got -1" },
	{ "server: {}\nresources: {gpu: 2}\n", "exp.yaml:2:13: resources.gpu: unknown key; it belongs "
	  "in telemetry, not in resources; did you mean gpus?" },
	{ "server: {}\nresources: {ports: 9-3}\n", "resources.ports: expected FIRST-LAST within "
	  "1-65535, got '9-3'" },
	{ "server: {}\nresources: {wait_s: -1}\n", "resources.wait_s: expected a number of at least 0" },
	{ "server: {}\nresources: {memory_fre: 1}\n", "did you mean memory_free?" },
	{ "server: {}\nprofiling: {tool: perf}\n", "profiling.tool: expected one of torch, nsys" },
	{ "server: {}\ntelemetry: {interval_s: 0}\n", "telemetry.interval_s: expected a number from 0.01" },
	{ "server: {}\ntelemetry: {gpu: 3}\n", "telemetry.gpu: expected true or false, got 3" },
	{ "server: {}\noutput: {upload: here}\n", "output.upload: expected {url: URL, token_file: "
	  "FILE}" },
	{ "server: {}\noutput: {upload: {url: 'http://x', tokn_file: a}}\n",
	  "output.upload.tokn_file: unknown key; did you mean token_file?" },
	{ "server: {}\ntags: {a: [1]}\n", "tags.a: expected a text, got a list" },
	{ "name: [1]\nserver: {}\n", "name: expected a text, got a list" },
	{ "server: {}\nbenchmark: {mode: sweep}\n",
	  "benchmark.mode: expected one of serve, throughput, latency, startup, prioritization, "
	  "prefix-caching, long-document-qa, structured-output, multi-turn" },
	{ "server: {}\nbenchmark: {mode: multi-turn}\n", "benchmark: --input-file is missing" },
	{ "server: {model: m}\nbenchmark:\n  mode: multi-turn\n  input_file: x\n  num_clients: 3\n"
	  "  max_active_conversations: 2\n",
	  "6:29: benchmark.max_active_conversations: --max-active-conversations 2 is below "
	  "--num-clients 3" },
	{ "server: {model: m}\nbenchmark:\n  mode: multi-turn\n  input_file: x\n  num_prompts: 3\n",
	  "5:3: benchmark.num_prompts: not an option of mode multi-turn" },
	{ "server: {model: m}\nbenchmark:\n  mode: multi-turn\n  input_file: x\n  url: http://x\n",
	  "5:3: benchmark.url: cannot be set here; server.url names a running server" },
	{ "server: {model: m}\nbenchmark:\n  mode: multi-turn\n  input_file: x\n  num_client: 3\n",
	  "5:3: benchmark.num_client: unknown key" },
	{ "server: {}\nbenchmark: {mode: structured-output, structured_dataset: jason}\n",
	  "benchmark.structured_dataset: expected one of" },
	{ "server: {url: 'http://x'}\nbenchmark: {mode: prioritization}\n",
	  "server.url: mode prioritization drives an engine without a server" },
	{ "server: {}\nbenchmark: {base_url: 'http://x'}\n",
	  "benchmark.base_url: cannot be set here; server.url names a running server" },
	{ "server: {}\nbenchmark: {sweep_request_rate: '1,2'}\n", "matrix:" },
	{ "server: {}\nbenchmark: {num_runs: 3}\n", "use repeat: N to run the experiment N times" },
	{ "server: {url: 'http://x'}\nbenchmark: {mode: latency}\n",
	  "server.url: mode latency drives an engine without a server" },
	{ "servers: [{}, {name: b}]\nbenchmark: {mode: startup}\n", "mode startup has one engine" },
	{ "server: {}\nbenchmark: {mode: latency, batch_size: x}\n",
	  "benchmark.batch_size: expected an integer" },
	{ "server: {}\nbenchmark: {mode: latency, request_rate: 1}\n",
	  "benchmark.request_rate: unknown key" },
	{ "server: {model: a}\nbenchmark: {model: b}\n",
	  "benchmark.model: 'b' is not a model name of the server, which serves: \"a\"" },
	{ "server: {model: a, served_model_name: [x, y]}\nbenchmark: {model: a}\n",
	  "benchmark.model: 'a' is not a model name of the server, which serves: [\"x\", \"y\"]" },
	{ "server: {max_model_len: 2048}\nbenchmark:\n  random_input_len: 2000\n  output_len: 100\n",
	  "exp.yaml:3:21: benchmark.random_input_len: requests of up to 2100 tokens (prefix 0, "
	  "prompt 2000, answer 100, ratio 0), and server.max_model_len is 2048" },
	{ "server: {max_model_len: 2k}\nbenchmark: {input_len: 1500, random_range_ratio: 0.5}\n",
	  "requests of up to 2442 tokens" },
	{ "server: {}\nbenchmark: {ramp_up_strategy: linear}\n", "exp.yaml:2:31: "
	  "benchmark.ramp_up_strategy: " },
	{ "server: {}\nbenchmark: {burstiness: 0, request_rate: 1}\n", "benchmark" },
};

static const struct finding noted[] = {
	{ "server: {url: 'http://x', gpus: 2}\n", "server.gpus: no effect on a server that is already running" },
	{ "server: {task: generate}\n", "server.task: vLLM has it up to 0.12 only; it became runner" },
	{ "server: {log_config_file: a}\n", "deprecated; write logging_config" },
	{ "server: {model: facebook/opt-125m, enable_expert_parallel: true}\n",
	  "facebook/opt-125m does not look like a mixture-of-experts model" },
	{ "server: {kv_cache_dtype: fp8}\n", "compute capability 8.0" },
	{ "server: {block_size: 64}\n", "few attention kernels take more than 32 on CUDA" },
	{ "server: {gpu_memory_utilization: 0.95}\nresources: {memory_free: 0.5}\n",
	  "resources.memory_free accepts one with only 0.5 free" },
	{ "servers:\n  - {role: prefill}\n  - {role: proxy, command: my-proxy}\n",
	  "servers.0.kv_transfer_config: missing" },
	{ "servers:\n  - {role: prefill, kv_transfer_config: {kv_role: kv_consumer}}\n"
	  "  - {role: proxy, command: my-proxy}\n", "kv_role is kv_consumer in a server with role "
	  "prefill" },
	{ "servers: [{}, {}]\n", "load goes to serve0 only, the first of 2 servers with role serve" },
	{ "server: {speculative_config: {num_speculative_tokens: 2}}\n", "method or model is missing" },
	{ "server: {max_num_seqs: 8}\nbenchmark: {max_concurrency: 32}\n",
	  "benchmark.max_concurrency: 32 is more than the server runs at once" },
	{ "server: {}\nbenchmark: {save_result: true}\n", "no effect; the result is in the document" },
	{ "server: {enable_lora: true, lora_modules: [a=x]}\nbenchmark: {lora_modules: [a, b]}\n",
	  "benchmark.lora_modules: 'b' is not one of server.lora_modules" },
	{ "server: {chat_template: x}\nbenchmark: {mode: latency}\n", "no effect without a server" },
};

static const struct config_know eight = { .is_gpus_known = true, .n_gpus = 8,
					  .compute_capability = 80 };

static void test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(refused); i++) {
		struct made m;

		make_with(&m, refused[i].text, NULL, 0, &eight);
		if (m.rc == 0 || !strstr(errors(&m), refused[i].found))
			expect(refused[i].text, errors(&m), refused[i].found);
		drop(&m);
	}
	none_differs();
}

static void test_noted(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(noted); i++) {
		const char *notes;
		struct made m;

		make_with(&m, noted[i].text, NULL, 0, &eight);
		notes = m.f.notes.data ? m.f.notes.data : "";
		if (m.rc < 0 || !strstr(notes, noted[i].found))
			expect(noted[i].text, m.rc < 0 ? errors(&m) : notes, noted[i].found);
		drop(&m);
	}
	none_differs();
}

/* Good ones next to those that are refused. */
static void test_accepted(void **state)
{
	static const char *const texts[] = {
		"server: {max_num_batched_tokens: 2048, max_model_len: 8192}\n",
		"server: {max_num_batched_tokens: 8192, max_model_len: 8192, "
		"enable_chunked_prefill: false}\n",
		"server: {enable_lora: true, max_loras: 2, max_cpu_loras: 2}\n",
		"server: {tensor_parallel_size: 4, pipeline_parallel_size: 2}\nresources: {gpus: 8}\n",
		"server: {tensor_parallel_size: 2}\nresources: {gpus: '4,5'}\n",
		"server: {model: a, served_model_name: x}\nbenchmark: {model: x}\n",
		"server: {max_model_len: 2100}\nbenchmark: {input_len: 2000, output_len: 100}\n",
		"server: {model: Qwen/Qwen3-30B-A3B, enable_expert_parallel: true}\n",
		"server: {model: mistralai/Mixtral-8x7B-v0.1, enable_expert_parallel: true}\n",
		"server: {speculative_config.method: ngram, speculative_config: {num_speculative_tokens: 2}}\n",
		"server: {max_num_seqs: null, command: null}\nbenchmark: null\n",
		"server: {command: 'python -m sglang.launch_server', model_path: x, tp: 2}\n",
		"server: {ready: {log: up and running}, after: []}\n",
		"server: {env: {A: 1, B: null, C: x}, quantization: rtn, reasoning_parser: step3p5}\n",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct made m;

		make_with(&m, texts[i], NULL, 0, &eight);
		expect(texts[i], errors(&m), "");
		expect(texts[i], m.f.notes.data ? m.f.notes.data : "", "");
		drop(&m);
	}
	none_differs();
}

/* ---- trees ---- */

static void test_no_tree(void **state)
{
	static const struct finding rows[] = {
		{ "", "exp.yaml is empty; expected sections such as server and benchmark" },
		{ "[1]\n", "exp.yaml:1:1: expected sections such as server and benchmark, got a list" },
		{ "server:\n\tport: 1\n", "exp.yaml:2:1: a tab; YAML is indented with blanks" },
		{ "server: {a: 1\n", "exp.yaml:2:1: did not find expected ',' or '}'" },
		{ "server: {}\nname: a\nserver: {}\n",
		  "exp.yaml:3:1: the key 'server' appears twice; it is also at 1:1" },
		{ "a: 1\n---\nb: 2\n", "exp.yaml:2:1: a second document, where one is expected" },
		{ "server: !!python/object:os.system x\n", "exp.yaml:1:9: a tag that is not read here" },
		{ "server: {model: '${NO_SUCH_NAME}'}\n", "exp.yaml:1:17: server.model: the environment variable "
		  "NO_SUCH_NAME is not set; set it, or write ${NO_SUCH_NAME:-default}" },
		{ "server: {model: '${A'}\n", "server.model: ${ is not closed by }" },
		{ "server: {model: '${1A}'}\n", "server.model: expected ${NAME} or ${NAME:-default} for "
		  "an environment variable, or ${server.model} for a key; got ${1A}" },
		{ "server: {model: \"a\\0b\"}\n", "server.model: has a zero byte" },
		{ "include: 3\n", "exp.yaml:1:10: include: expected the name of a file, got 3" },
		{ "include: no/such.yaml\n", "exp.yaml:1:10: include: cannot open no/such.yaml" },
	};
	struct buf big = { 0 };
	struct made m;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		make(&m, rows[i].text);
		if (m.rc == 0 || !strstr(errors(&m), rows[i].found))
			expect(rows[i].text, errors(&m), rows[i].found);
		drop(&m);
	}
	while (big.len < 10u << 20)
		buf_add_text(&big, "# ten megabytes of nothing\n");
	make(&m, big.data);
	expect("10 MB", errors(&m), "exp.yaml: has 10485774 bytes, more than the 4194304 of "
				    "EXPERIMENT_BYTES_MAX");
	drop(&m);
	buf_release(&big);
	none_differs();
}

static char *json_of(const struct json_value *v)
{
	static char text[4096];
	struct buf json = { 0 };
	struct json_writer w = json_writer(&json);

	json_put_value(&w, v);
	snprintf(text, sizeof(text), "%s", json.data);
	buf_release(&json);
	return text;
}

static void test_sets(void **state)
{
	static const struct {
		const char *text, *set, *tree;
	} rows[] = {
		{ "a: 1\n", "b.c=2", "{\"a\": 1, \"b\": {\"c\": 2}}" },
		{ "a: 1\n", "a=[x, 2]", "{\"a\": [\"x\", 2]}" },
		{ "a: {b: 1}\n", "a.b=", "{\"a\": {\"b\": null}}" },
		{ "a: [1, {b: 2}]\n", "a.1.b=x=y", "{\"a\": [1, {\"b\": \"x=y\"}]}" },
		{ "a: [1]\n", "a.1=2", "{\"a\": [1, 2]}" },
		{ "a: {b.c: 1}\n", "a.b.c=2", "{\"a\": {\"b.c\": 2}}" },
		{ "servers: [{n: 1}, {n: 2}]\n", "server.k=v",
		  "{\"servers\": [{\"n\": 1, \"k\": \"v\"}, {\"n\": 2, \"k\": \"v\"}]}" },
		{ "servers: [{n: 1}, {n: 2}]\n", "servers.1.n=3",
		  "{\"servers\": [{\"n\": 1}, {\"n\": 3}]}" },
		{ "a: 1\n", "a.b=2", "--set a.b=2: a.b: cannot look up 'b', because its parent is not an object" },
		{ "a: [1]\n", "a.5=2", "--set a.5=2: a.5: expected a place in the list, from 0 to 1, got '5'" },
		{ "a: 1\n", "a", "--set a: expected KEY=VALUE, for example benchmark.num_prompts=100" },
		{ "a: 1\n", ".=1", "--set .=1: .: a key is empty" },
		{ "a: 1\n", "a=[", "--set a=[: line 2, column 1: expected a value" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct config c;
		struct err e = { 0 };
		int rc = config_parse(str_of(rows[i].text), "exp.yaml", &rows[i].set, 1, &a, &c, &e);

		expect(rows[i].set, rc < 0 ? e.text : json_of(c.tree), rows[i].tree);
		arena_release(&a);
	}
	none_differs();
}

static void test_set_is_named(void **state)
{
	static const char *const sets[] = { "server.port=x" };
	struct made m;

	(void)state;
	make_with(&m, "server: {command: sim}\n", sets, 1, NULL);
	expect("set", errors(&m), "--set server.port=x: server.port: expected an integer from 0 to "
				  "65535, got 'x'\n");
	drop(&m);
	none_differs();
}

static void test_environment(void **state)
{
	struct arena a = { 0 };
	struct config c;
	struct err e = { 0 };

	(void)state;
	setenv("CONFIG_TEST_PORT", "8123", 1);
	setenv("CONFIG_TEST_EMPTY", "", 1);
	setenv("CONFIG_TEST_ODD", "007", 1);
	assert_int_equal(config_parse(STR("a: ${CONFIG_TEST_PORT}\nb: x-${CONFIG_TEST_PORT}\n"
					  "c: ${CONFIG_TEST_NONE:-2.5}\nd: ${CONFIG_TEST_EMPTY:-e}\n"
					  "e: a$$b$c\nf: [\"${CONFIG_TEST_EMPTY}\"]\n"
					  "g: ${CONFIG_TEST_ODD}\nh: ${CONFIG_TEST_NONE:-true}\n"),
				      "exp.yaml", NULL, 0, &a, &c, &e), 0);
	expect("environment", json_of(c.tree), "{\"a\": 8123, \"b\": \"x-8123\", \"c\": 2.5, \"d\": "
	       "\"e\", \"e\": \"a$b$c\", \"f\": [\"\"], \"g\": \"007\", \"h\": true}");
	arena_release(&a);
	none_differs();
}

/* ---- files ---- */

static void write_file(const char *name, const char *text)
{
	char *path = file_join(dir, name);
	struct err e = { 0 };

	if (file_write_atomic(path, str_of(text), &e) < 0)
		print_error("%s\n", e.text);
	assert_int_equal(e.code, ERR_NONE);
	free(path);
}

static void read_file(struct made *m, const char *name)
{
	char *path = file_join(dir, name);

	*m = (struct made){ 0 };
	m->rc = config_read(arena_text(&m->a, str_of(path)), NULL, 0, &m->a, &m->c, &m->e);
	free(path);
}

/* The folder becomes "DIR" in what is compared. */
static void expect_below(const char *got, const char *want)
{
	struct buf out = { 0 };
	const char *at;

	while ((at = strstr(got, dir)) != NULL) {
		buf_add(&out, got, (size_t)(at - got));
		buf_add_text(&out, "DIR");
		got = at + strlen(dir);
	}
	buf_add_text(&out, got);
	expect("file", out.data, want);
	answers_release(&out);
}

static void test_include(void **state)
{
	struct json_mark mark;
	struct made m;

	(void)state;
	write_file("base.yaml", "server: {model: m, port: 1, env: {A: 1, B: 2}}\nname: base\n");
	write_file("gpu.json", "{\"server\": {\n  \"port\": 2, \"gpus\": [1]}}\n");
	write_file("exp.yaml", "include: [base.yaml, gpu.json]\nserver: {env: {B: 3}, gpus: [2]}\n");
	read_file(&m, "exp.yaml");
	expect("include", m.rc < 0 ? m.e.text : json_of(m.c.tree),
	       "{\"server\": {\"model\": \"m\", \"port\": 2, \"env\": {\"A\": 1, \"B\": 3}, \"gpus\": "
	       "[2]}, \"name\": \"base\"}");
	/* Marks survive merging. */
	mark = json_marks_get(m.c.marks, json_get(json_get(m.c.tree, "server"), "port"));
	assert_true(str_ends(str_of(mark.file), STR("/gpu.json")));
	assert_int_equal(mark.line, 2);
	assert_int_equal(mark.column, 11);
	assert_int_equal(mark.key_column, 3);
	drop(&m);
	write_file("a.yaml", "include: b.yaml\n");
	write_file("b.yaml", "x: 1\ninclude: c.yaml\n");
	write_file("c.yaml", "include: [b.yaml]\n");
	read_file(&m, "a.yaml");
	expect_below(errors(&m), "DIR/c.yaml:1:11: include: a cycle: DIR/b.yaml includes "
		     "DIR/c.yaml, which includes DIR/b.yaml again");
	drop(&m);
	write_file("s.yaml", "include: s.yaml\n");
	read_file(&m, "s.yaml");
	expect_below(errors(&m), "DIR/s.yaml:1:10: include: a cycle: DIR/s.yaml includes "
		     "DIR/s.yaml again");
	drop(&m);
	write_file("bad.json", "{\"a\": 1,\n \"b\": [1, 2,]}\n");
	read_file(&m, "bad.json");
	expect_below(errors(&m), "DIR/bad.json:2:13: expected a value, found ']}'");
	drop(&m);
	write_file("twice.json", "{\"a\": 1,\n \"b\": {\"c\": 1, \"c\": 2}}\n");
	read_file(&m, "twice.json");
	expect_below(errors(&m), "DIR/twice.json:2:16: the key 'c' appears twice; it is also at 2:8");
	drop(&m);
	read_file(&m, "none.yaml");
	expect_below(errors(&m), "--config: cannot open DIR/none.yaml: No such file or directory");
	drop(&m);
	none_differs();
}

/* ---- comfort ---- */

static void test_names(void **state)
{
	static const struct { const char *text, *set, *want; } rows[] = {
		{ "x-a: &a {num-prompts: 3}\nbenchmark: {<<: *a, request-rate: 2}\n"
		  "experiments: [{name: e-1, server: {max-num-seqs: 4, compilation-config.a-b: 1}}]\n",
		  "server.max-num-seqs=8",
		  "{\"benchmark\": {\"request_rate\": 2, \"num_prompts\": 3}, \"experiments\": "
		  "[{\"name\": \"e-1\", \"server\": {\"max_num_seqs\": 4, "
		  "\"compilation_config\": {\"a-b\": 1}}}], \"server\": {\"max_num_seqs\": 8}}" },
		/* Names of others stay as they are. */
		{ "tags: {a-b: c}\nserver: {env: {A-B: c}}\n", "tags.d-e=f",
		  "{\"tags\": {\"a-b\": \"c\", \"d-e\": \"f\"}, \"server\": {\"env\": {\"A-B\": \"c\"}}}" },
		{ "servers: [{a-b: 1}]\n", "servers.0.c-d=2",
		  "{\"servers\": [{\"a_b\": 1, \"c_d\": 2}]}" },
		{ "server: {max_num_seqs: 1, max-num-seqs: 2}\n", "name=a",
		  "exp.yaml:1:41: server.max-num-seqs: max_num_seqs is also given; remove one of the two" },
		{ "server: {tensor_parallel_size: 2}\n", "server.tp=4",
		  "{\"server\": {\"tensor_parallel_size\": 4}}" },
		{ "server: {tp: 2}\n", "server.tensor-parallel-size=4", "{\"server\": {\"tp\": 4}}" },
		{ "matrix: {server.tp: [1]}\n", "-m max_num_seqs=1,2",
		  "{\"matrix\": {\"server.tp\": [1], \"max_num_seqs\": [1, 2]}}" },
		{ "name: a\n", "-m server.compilation_config=[{mode: 1}, {mode: 3}]",
		  "{\"name\": \"a\", \"matrix\": {\"server\": {\"compilation_config\": [{\"mode\": 1}, "
		  "{\"mode\": 3}]}}}" },
		{ "name: a\n", "-m server.served_model_name=\"a,b\",c",
		  "{\"name\": \"a\", \"matrix\": {\"server\": {\"served_model_name\": [\"a,b\", \"c\"]}}}" },
		{ "name: a\n", "-m max_num_seqs=8,", "-m max_num_seqs=8,: expected KEY=V1,V2, for example "
		  "max_num_seqs=64,256" },
		{ "name: a\n", "-m max_num_seqs=", "-m max_num_seqs=: expected KEY=V1,V2, for example "
		  "max_num_seqs=64,256" },
		{ "name: a\n", "-m max_num_seqs={", "-m max_num_seqs={: line 1, column 3: expected a value" },
		{ "name: a\n", "-m seed", "-m seed: expected KEY=V1,V2, for example max_num_seqs=64,256" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct config c;
		struct err e = { 0 };
		int rc = config_parse(str_of(rows[i].text), "exp.yaml", &rows[i].set, 1, &a, &c, &e);

		expect(rows[i].text, rc < 0 ? e.text : json_of(c.tree), rows[i].want);
		arena_release(&a);
	}
	none_differs();
}

/* Short names are those of vLLM's own command line, and only its. */
static void test_short_names(void **state)
{
	struct made m;

	(void)state;
	make(&m, "server: {model: m, tp: 2, pp: 2, dp: 1, q: fp8, O: 3, gpus: 4}\nresources: {gpus: 4}\n");
	expect("errors", errors(&m), "");
	expect("words", words_of(&m), "m --quantization fp8 --pipeline-parallel-size 2 "
	       "--tensor-parallel-size 2 --data-parallel-size 1 --optimization-level 3");
	drop(&m);
	make(&m, "server: {model: m, tp: 2, tensor_parallel_size: 4}\n");
	expect("both", errors(&m), "exp.yaml:1:20: server.tp: it is the same as tensor_parallel_size, "
				   "which is also given; remove one of the two\n");
	drop(&m);
	make(&m, "server: {command: [python, serve.py], tp: 2, mem-fraction: 0.9}\n");
	expect("errors", errors(&m), "");
	expect("words", words_of(&m), "--tp 2 --mem-fraction 0.9");
	drop(&m);
	make(&m, "server: {model: m, kv_cache_memory_bytes: 4GiB, ready_timeout_s: 1h30m}\n"
		 "resources: {wait_s: 10m}\nbenchmark: {duration: 1.5min, request_rate: 1}\n"
		 "telemetry: {interval_s: 500ms}\n");
	expect("errors", errors(&m), "");
	expect("words", words_of(&m), "m --kv-cache-memory-bytes 4294967296");
	assert_true(m.x.server->ready_timeout_s == 5400 && m.x.resources.wait_s == 600);
	assert_true(m.x.serve.duration.v == 90 && m.x.telemetry.interval_s == 0.5);
	drop(&m);
	make(&m, "server: {model: m}\nresources: {wait_s: 10x}\n");
	expect("unit", errors(&m), "exp.yaml:2:21: resources.wait_s: expected a number of at least 0, in "
				   "seconds or as 10m, got '10x'\n");
	drop(&m);
	none_differs();
}

static void test_references(void **state)
{
	static const struct { const char *text, *want; } bad[] = {
		{ "tags: {a: \"${server.modle}\"}\n", "exp.yaml:1:11: tags.a: the key server.modle has "
		  "no value; set it, or write ${server.modle:-default}\n" },
		{ "tags: {a: \"x${server.env}\"}\n", "exp.yaml:1:11: tags.a: ${server.env} is an object, "
		  "which can only be a whole value\n" },
		{ "tags: {a: \"${tags.b}\", b: \"${tags.a}\"}\n", "exp.yaml:1:11: tags.a: ${tags.b} refers "
		  "back to itself, or through more than 32 references\n" },
		{ "tags: {a: \"${server.model\"}\n", "exp.yaml:1:11: tags.a: ${ is not closed by }" },
		{ "tags: {a: \"${tags.a}\"}\n", "exp.yaml:1:11: tags.a: ${tags.a} refers back to itself, or "
		  "through more than 32 references\n" },
		{ "tags: {a: \"${server.max_num_seqs}\", b: \"${server.seed}\"}\n", "exp.yaml:1:11: tags.a: "
		  "the key server.max_num_seqs has no value; set it, or write "
		  "${server.max_num_seqs:-default}\n" },
	};
	struct made m;

	(void)state;
	make(&m, "server: {model: m, env: {A: b}}\ntags: {a: \"${server.env.A}\"}\nprovenance: "
		 "\"${server.env}\"\n");
	expect("errors", errors(&m), "");
	expect("an object", json_of(m.x.provenance), "{\"A\": \"b\"}");
	drop(&m);
	setenv("CONFIG_TEST_PORT", "8123", 1);
	make(&m, "server: {model: a/b, tp: 2, max_num_seqs: 16, command: sim}\n"
		 "name: load-${server.model}\n"
		 "tags: {a: \"${server.tensor_parallel_size}/${server.none:-no}\", b: \"$${server.model}\",\n"
		 "  c: \"${tags.a}:${CONFIG_TEST_PORT}\"}\n"
		 "benchmark: {max_concurrency: \"${server.max_num_seqs}\", num_prompts: \"${server.none:-7}\"}\n");
	expect("errors", errors(&m), "");
	expect("name", m.x.name, "load-a/b");
	expect("tags", json_of(m.x.tags), "{\"a\": \"2/no\", \"b\": \"${server.model}\", \"c\": "
					  "\"2/no:8123\"}");
	assert_true(m.x.serve.max_concurrency.v == 16 && m.x.serve.num_prompts == 7);
	drop(&m);
	for (size_t i = 0; i < COUNT(bad); i++) {
		char text[256];

		snprintf(text, sizeof(text), "%sserver: {model: m, env: {A: b}}\n", bad[i].text);
		make(&m, text);
		expect(bad[i].text, errors(&m), bad[i].want);
		drop(&m);
	}
	none_differs();
}

/* References to references double a text or a tree at each step: the sum of them is bounded. */
static void test_references_grow(void **state)
{
	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct buf text = { 0 };
		struct made m;

		buf_add_text(&text, "server: {model: m}\ntags:\n  a0: a few words\n");
		for (unsigned i = 1; i <= 30; i++) {
			buf_printf(&text, "  a%u: %s${tags.a%u}%s${tags.a%u}%s\n", i, k ? "[\"" : "\"",
				   i - 1, k ? "\", \"" : "", i - 1, k ? "\"]" : "\"");
		}
		make(&m, text.data);
		assert_non_null(strstr(errors(&m), "references bring in more than the 16777216 bytes of "
					      "REFERRED_BYTES_MAX"));
		drop(&m);
		buf_release(&text);
	}
}

/* A secret that is referred to is one wherever it went. */
static void test_reference_to_secret(void **state)
{
	struct made m;
	struct buf room = { 0 };
	struct str shown;

	(void)state;
	make(&m, "server: {command: sim, model: m, api_key: topsecret123}\nname: \"n-${server.api_key}\"\n"
		 "tags: {k: \"Bearer ${server.api_key}\"}\n");
	expect("errors", errors(&m), "");
	shown = redact_data(str_of(json_of(m.x.tags)), &room);
	assert_null(memmem(shown.p, shown.n, "topsecret123", 12));
	assert_non_null(memmem(shown.p, shown.n, "***", 3));
	buf_release(&room);
	drop(&m);
	none_differs();
}

/* vLLM's own file of arguments, in a section. */
static void test_section_include(void **state)
{
	struct made m;

	(void)state;
	write_file("vllm.yaml", "model: m\ntensor-parallel-size: 1\nx-note: no key\nmax-num-seqs: 8\n"
				"compilation-config: {mode: 3}\n");
	write_file("load.yaml", "include: more.yaml\nnum-prompts: 5\n");
	write_file("more.yaml", "num_prompts: 6\nseed: 3\n");
	write_file("own.yaml", "server: {include: vllm.yaml, max_num_seqs: 4}\n"
			       "benchmark: {include: [load.yaml]}\n");
	read_file(&m, "own.yaml");
	expect("sections", m.rc < 0 ? m.e.text : json_of(m.c.tree),
	       "{\"server\": {\"model\": \"m\", \"tensor_parallel_size\": 1, \"max_num_seqs\": 4, "
	       "\"compilation_config\": {\"mode\": 3}}, \"benchmark\": {\"num_prompts\": 5, \"seed\": 3}}");
	drop(&m);
	write_file("many.yaml", "server: {command: sim, model: m}\nexperiments:\n  - name: a\n    server: "
				"{include: vllm.yaml}\n    benchmark: {include: more.yaml, seed: 4}\n");
	read_file(&m, "many.yaml");
	expect("experiments", m.rc < 0 ? m.e.text : json_of(json_get(m.c.tree, "experiments")),
	       "[{\"name\": \"a\", \"server\": {\"model\": \"m\", \"tensor_parallel_size\": 1, "
	       "\"max_num_seqs\": 8, \"compilation_config\": {\"mode\": 3}}, \"benchmark\": "
	       "{\"num_prompts\": 6, \"seed\": 4}}]");
	drop(&m);
	write_file("words.yaml", "a few words\n");
	write_file("own.yaml", "server: {include: words.yaml}\n");
	read_file(&m, "own.yaml");
	expect_below(errors(&m), "DIR/words.yaml:1:1: expected keys of the section that includes it, such as "
				 "model: NAME, got the text 'a few words'");
	drop(&m);
	write_file("self.yaml", "server: {include: self.yaml}\n");
	read_file(&m, "self.yaml");
	expect_below(errors(&m), "DIR/self.yaml:1:19: include: a cycle: DIR/self.yaml includes "
				 "DIR/self.yaml again");
	drop(&m);
	none_differs();
}

/* ---- what follows ---- */

static void test_defaults(void **state)
{
	struct made m;

	(void)state;
	make(&m, "server: {model: m, command: vllm serve, max_model_len: 4k, api_key: sesame}\n");
	expect("errors", errors(&m), "");
	expect("name", m.x.name, "exp");
	expect("mode", experiment_mode_name(m.x.mode), "serve");
	expect("length", json_of(json_get(m.x.server->values, "max_model_len")), "4000");
	expect("memory", json_of(json_get(m.x.server->values, "gpu_memory_utilization")), "0.92");
	expect("parallel", json_of(json_get(m.x.server->values, "tensor_parallel_size")), "1");
	expect("key", json_of(json_get(m.x.server->values, "api_key")), "\"***\"");
	expect("rate", json_of(json_get(m.x.benchmark, "request_rate")), "\"inf\"");
	expect("prompts", json_of(json_get(m.x.benchmark, "num_prompts")), "1000");
	expect("mode", json_of(json_get(m.x.benchmark, "mode")), "\"serve\"");
	expect("model", m.x.serve.model, "m");
	expect("key", m.x.serve.header.v[0], "Authorization=Bearer sesame");
	assert_int_equal(m.x.server->gpus, 1);
	assert_int_equal(m.x.resources.want, GPUS_AUTO);
	assert_int_equal(m.x.resources.port_first, 20000);
	assert_true(m.x.telemetry.is_enabled && !m.x.profiling.is_enabled);
	assert_true(m.x.server->values->count >= 290);
	drop(&m);
	make(&m, "server: {model: m, served_model_name: [x, y]}\nbenchmark: {served_model_name: y}\n");
	expect("name", m.x.serve.served_model_name, "y");
	drop(&m);
	/* The defaults of such servers are unknown. */
	make(&m, "server: {url: 'http://h:1', model: m, api_key: sesame}\n");
	expect("attached", json_of(m.x.server->values), "{\"api_key\": \"***\", \"model\": \"m\"}");
	drop(&m);
	make(&m, "server: {command: my-server, tp: 2}\n");
	expect("another", json_of(m.x.server->values), "{\"tp\": 2}");
	drop(&m);
	none_differs();
}

static char *offline_of(const struct made *m)
{
	static char text[2048];
	size_t n = 0;

	text[0] = 0;
	for (char *const *w = m->x.offline_argv; w && *w; w++)
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", n ? " " : "", *w);
	return text;
}

static void test_offline(void **state)
{
	static const char *const sim[] = { "server.command=sim" };
	static const char text[] =
		"server: {model: m, tensor_parallel_size: 2, enforce_eager: false, port: 80}\n"
		"benchmark: {mode: latency, batch_size: 4, profile: 'true', num_iters: 3}\n";
	struct made m;

	(void)state;
	make(&m, text);
	expect("errors", errors(&m), "");
	expect("words", offline_of(&m), "--batch-size=4 --profile --num-iters=3 --model m "
	       "--no-enforce-eager --tensor-parallel-size 2");
	assert_int_equal(m.x.mode, MODE_LATENCY);
	expect("recorded", json_of(json_get(m.x.benchmark, "batch_size")), "4");
	drop(&m);
	make_with(&m, text, sim, 1, NULL);
	expect("words", offline_of(&m), "--backend=sim --batch-size=4 --profile --num-iters=3 --model "
	       "m --no-enforce-eager --tensor-parallel-size 2");
	expect("recorded", json_of(json_get(m.x.benchmark, "backend")), "\"sim\"");
	drop(&m);
	make(&m, "server: {model: m}\nbenchmark: {mode: latency, fix: [a b, 7], nsight: r.rep, profile: false, "
	     "num_iters: null, batch_size: 4}\n");
	expect("lists", offline_of(&m), "--fix a b 7 --nsight=r.rep --batch-size=4 --model m");
	drop(&m);
	none_differs();
}

static uint64_t hash_of(const char *text)
{
	struct made m;
	uint64_t hash;

	make(&m, text);
	assert_int_equal(m.rc, 0);
	hash = m.x.hash;
	drop(&m);
	return hash;
}

static void test_hash(void **state)
{
	uint64_t hash = hash_of("server: {model: m}\nbenchmark: {num_prompts: 10}\n");

	(void)state;
	assert_true(hash == hash_of("name: other\nserver: {model: m}\nbenchmark: {num_prompts: 10}\n"));
	assert_true(hash == hash_of("benchmark: {num_prompts: 10, seed: 0}\nserver: {model: m}\n"
				    "output: {detailed: true}\ntags: {a: b}\n"));
	assert_true(hash != hash_of("server: {model: m}\nbenchmark: {num_prompts: 11}\n"));
	assert_true(hash != hash_of("server: {model: n}\nbenchmark: {num_prompts: 10}\n"));
	assert_true(hash != hash_of("server: {model: m, env: {A: b}}\nbenchmark: {num_prompts: 10}\n"));
}

/* Any experiment runs on the simulator by one --set, with or without GPUs. */
static void test_sim_by_set(void **state)
{
	static const char *const sim[] = { "server.command=sim" };
	static const char *const texts[] = {
		"server: {model: m, tensor_parallel_size: 4}\nresources: {gpus: 4}\n",
		"server: {url: 'http://h:1', model: m}\n",
		"server: {model: m, container: {image: i}}\n",
		"servers:\n  - {role: prefill, model: m, gpus: 2}\n  - {role: decode, model: m}\n"
		"  - {role: proxy, command: python proxy.py}\n",
		"server: {command: [env, A=b, vllm, serve], model: m, kv_cache_dtype: fp8}\n",
	};
	static const struct config_know none = { .is_gpus_known = true };

	(void)state;
	for (size_t i = 0; i < COUNT(texts); i++) {
		struct made m;

		make_with(&m, texts[i], sim, 1, &none);
		expect(texts[i], errors(&m), "");
		assert_int_equal(m.rc, 0);
		assert_int_equal(m.x.resources.want == GPUS_COUNT, 0);
		for (size_t k = 0; k < m.x.n_servers; k++) {
			assert_true(config_is_sim(m.x.server[k].command));
			assert_null(m.x.server[k].url);
			assert_null(m.x.server[k].container);
			assert_int_equal(m.x.server[k].gpus, 0);
		}
		expect(texts[i], m.x.serve.tokenizer, "sim");
		drop(&m);
	}
	none_differs();
}

/* A simulator of an image is one that its words name. */
static void test_sim_in_container(void **state)
{
	struct made m;

	(void)state;
	make(&m, "server: {command: [profllm, sim], model: m, container: {image: i}}\n");
	assert_int_equal(m.rc, 0);
	assert_non_null(m.x.server[0].container);
	drop(&m);
}

static void test_many_findings(void **state)
{
	struct buf text = { 0 };
	struct made m;
	size_t lines = 0;

	(void)state;
	buf_add_text(&text, "server:\n");
	for (int i = 0; i < 50; i++)
		buf_printf(&text, "  no_such_key_%d: 1\n", i);
	make(&m, text.data);
	assert_int_equal(m.f.n_errors, 50);
	for (size_t i = 0; i < m.f.errors.len; i++)
		lines += m.f.errors.data[i] == '\n';
	assert_int_equal(lines, EXPERIMENT_FINDINGS_MAX);
	drop(&m);
	buf_reset(&text);
	buf_add_text(&text, "server:\n  command: my-server\n");
	for (int i = 0; i < 100000; i++)
		buf_printf(&text, "  k%d: 1\n", i);
	make(&m, text.data);
	expect("keys", errors(&m), "exp.yaml:2:3: server: 100001 keys, more than the 4096 of "
				   "EXPERIMENT_KEYS_MAX\n");
	drop(&m);
	buf_release(&text);
	none_differs();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server_params), cmocka_unit_test(test_bench_params),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_noted),
		cmocka_unit_test(test_accepted), cmocka_unit_test(test_no_tree),
		cmocka_unit_test(test_sets), cmocka_unit_test(test_set_is_named),
		cmocka_unit_test(test_environment), cmocka_unit_test(test_include),
		cmocka_unit_test(test_names), cmocka_unit_test(test_short_names),
		cmocka_unit_test(test_references), cmocka_unit_test(test_references_grow),
		cmocka_unit_test(test_reference_to_secret), cmocka_unit_test(test_section_include),
		cmocka_unit_test(test_defaults), cmocka_unit_test(test_offline),
		cmocka_unit_test(test_hash), cmocka_unit_test(test_sim_by_set),
		cmocka_unit_test(test_sim_in_container),
		cmocka_unit_test(test_many_findings),
	};

	return cmocka_run_group_tests_name("experiment_config", tests, make_dir, remove_dir);
}
