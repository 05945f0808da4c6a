/* SPDX-License-Identifier: Apache-2.0 */
/*
 * document_sample.h - example experiments and outcomes, one for every way a run can end.
 *
 * Their documents are kept in documents/NAME.json: compared byte for byte by the unit test,
 * validated by an independent validator in tests/web/schema.t. UPDATE_GOLDEN=1 writes them again.
 */
#pragma once
#include <math.h>

#include "experiment/config/experiment.h"

struct document_sample {
	const char *name;
	struct experiment x;
	struct experiment_server server[3];
	struct outcome o;
	struct outcome_server out[3];
	struct outcome_gpu gpu[2];
	struct outcome_trace trace[2];
};

static const char serve_result[] =
	"{\"date\": \"20261122-064132\", \"endpoint_type\": \"openai\", \"backend\": \"openai\","
	" \"label\": null, \"model_id\": \"sim\", \"tokenizer_id\": \"sim\", \"num_prompts\": 20,"
	" \"request_rate\": Infinity, \"burstiness\": 1.0, \"max_concurrency\": null,"
	" \"who\": \"me\", \"duration\": 2.5, \"completed\": 19, \"failed\": 1,"
	" \"total_input_tokens\": 400, \"total_output_tokens\": 190,"
	" \"request_throughput\": 7.6, \"request_goodput\": NaN, \"output_throughput\": 76.0,"
	" \"total_token_throughput\": 236.0, \"latencies\": [0.1, 0.2], \"queue_times\": [0, 0],"
	" \"mean_ttft_ms\": 5.5, \"median_ttft_ms\": 5.25, \"std_ttft_ms\": 0.5,"
	" \"p50_ttft_ms\": 5.25, \"p95_ttft_ms\": 6.0, \"p99.9_ttft_ms\": 6.5,"
	" \"median_tpot_ms\": 1.0, \"p95_tpot_ms\": NaN,"
	" \"profllm\": {\"schema_version\": 1, \"version\": \"0.1\", \"stamp_source\": \"kernel\","
	" \"requests_user_stamped\": 0, \"threads\": 1, \"verdict\": \"DEGRADED\","
	" \"reasons\": [{\"level\": \"DEGRADED\", \"code\": \"skew\", \"text\": \"Late.\"}],"
	" \"client_lag_ms\": {\"n\": 20, \"mean\": 2.0, \"p50\": 1.0, \"p99\": 7.0, \"max\": 7.5},"
	" \"send_lag_ms\": null, \"skew_ms\": null, \"connect_ms\": null,"
	" \"shared_read_share\": 0.04, \"not_one_token_share\": 0.0,"
	" \"usage_differs_share\": 0.0, \"retries\": 0, \"failures\": [{\"category\": \"http\","
	" \"count\": 1, \"examples\": [{\"count\": 1, \"text\": \"401 for sk-very-secret\"}],"
	" \"other_texts\": 0}], \"options\": {\"model\": \"sim\"}}}";

static const char throughput_result[] =
	"{\"model_id\": \"sim\", \"elapsed_time\": 0.1, \"num_requests\": 20,"
	" \"total_num_tokens\": 500, \"requests_per_second\": 201.5,"
	" \"tokens_per_second\": 5028.5, \"profllm\": {\"version\": \"0.1\","
	" \"finished_requests\": 20, \"output_tokens_per_second\": 1005.5,"
	" \"verdict\": \"VALID\", \"reasons\": []}}";

static const char latency_result[] =
	"{\"model_id\": \"sim\", \"avg_latency\": 1.5, \"latencies\": [1.5, 1.5],"
	" \"percentiles\": {\"50\": 1.5}, \"profllm\": {\"version\": \"0.1\","
	" \"output_throughput\": 640.0, \"total_token_throughput\": 800.0,"
	" \"verdict\": \"VALID\", \"reasons\": []}}";

static const char startup_result[] =
	"{\"avg_cold_startup_time\": 0.5, \"cold_startup_times\": [0.5],"
	" \"profllm\": {\"version\": \"0.1\", \"verdict\": \"DEGRADED\","
	" \"reasons\": [{\"level\": \"DEGRADED\", \"code\": \"few\", \"text\": \"One start.\"}]}}";

static const char hardware[] =
	"{\"gpus\": [], \"gpu_note\": null, \"cpu\": {\"model\": \"CPU\","
	" \"architecture\": \"x86_64\", \"sockets\": 1, \"cores\": 2, \"threads\": 4,"
	" \"allowed\": 4, \"quota\": null, \"governor\": null, \"clock_mhz\": 2000.0,"
	" \"clock_max_mhz\": null, \"boost\": null, \"numa_nodes\": []},"
	" \"memory\": {\"total_bytes\": 1024, \"limit_bytes\": null, \"swap_bytes\": 0,"
	" \"hugepages\": \"madvise\"}, \"os\": {\"kernel\": \"6.1\", \"name\": \"Linux\","
	" \"libc\": null}, \"network\": [{\"name\": \"eth0\", \"speed_mbit\": null,"
	" \"driver\": null, \"is_up\": true}], \"rdma\": [], \"container\": null,"
	" \"virtualization\": null}";

static const char environment[] =
	"{\"profllm\": \"0.1\", \"build\": \"gcc\", \"libraries\": {\"curl\": \"8.0\"},"
	" \"server\": {\"kind\": \"sim\", \"version\": \"0.1\"}, \"python\": null,"
	" \"cuda\": null, \"driver\": null, \"variables\": {\"HF_TOKEN\": \"hf_abcdef\"}}";

static struct json_value *tree(struct arena *a, const char *json)
{
	struct json_value *v = NULL;

	if (json_parse(a, str_of(json), &v, NULL) < 0)
		v = NULL;
	return v;
}

/* A serving experiment on one server, completed; everything that can be there is. */
static void sample_serve(struct document_sample *s, struct arena *a)
{
	static char *command[] = { "vllm", "serve", "--api-key", "sk-very-secret", NULL };
	static char *extra[] = { "--api-key=sk-very-secret", "-v", NULL };
	static char *env[] = { "HF_TOKEN=hf_abcdef", "TOKENIZERS_PARALLELISM=false", "A=1", "A=2",
			       NULL };

	s->x.name = "one";
	s->x.mode = MODE_SERVE;
	s->x.repeat = s->x.repeats = 1;
	s->x.hash = 0x123456789abcdef0;
	s->x.output.path = "out/results.json";
	s->x.output.folder = "out/results.d/one";
	s->x.server = s->server;
	s->x.n_servers = 1;
	s->x.resources.memory_free_min = 0.9;
	s->x.resources.port_first = 20000;
	s->x.resources.port_last = 29999;
	s->x.telemetry.is_enabled = s->x.telemetry.gpu = true;
	s->x.telemetry.interval_s = 1;
	s->x.tags = tree(a, "{\"team\": \"inference\"}");
	s->x.given = tree(a, "{\"server\": {\"api_key\": \"sk-very-secret\"}, \"benchmark\":"
			     " {\"header\": [\"Authorization: Bearer abc-def-ghi\", \"X-A: b\"]}}");
	s->x.benchmark = tree(a, "{\"dataset-name\": \"random\", \"num_prompts\": 20,"
				 " \"request_rate\": Infinity, \"max_concurrency\": null}");
	s->server[0] = (struct experiment_server){
		.name = "server", .command = command, .extra_args = extra, .env = env,
		.host = "127.0.0.1", .ready_timeout_s = 1800, .grace_s = 30,
		.args = tree(a, "{\"model\": \"m\", \"api_key\": \"sk-very-secret\","
				" \"gpu_memory_utilization\": 0.9, \"speculative_config\":"
				" {\"method\": \"ngram\"}, \"argument_of_tomorrow\": [1, \"two\"]}"),
	};
	snprintf(s->o.run_id, sizeof(s->o.run_id), "exp_20261122_064132_0a1b2c");
	s->o.began_real_ns = 1795329692516235395;
	s->o.duration_s = 12.5;
	s->o.server = s->out;
	s->out[0] = (struct outcome_server){
		.argv = (const char *const *)command, .url = "http://127.0.0.1:20000",
		.version = "0.11.1", .log = "out/results.d/one/server.log", .gpu = s->gpu,
		.n_gpus = 1, .startup_s = 3.5,
		.capacity = STR("{\"kv_tokens\": 4000, \"source\": \"log\"}"),
		.reported = STR("{\"max_model_len\": 4096, \"enable_prefix_caching\": true,"
				" \"quantization\": null, \"gpu_memory_utilization\": 0.9}"),
	};
	s->gpu[0] = (struct outcome_gpu){ 3, "GPU-1", "H100" };
	s->o.result = str_of(serve_result);
	s->o.system = STR("{\"peak_gpu_memory_gb\": 70.5, \"avg_gpu_utilization\": 90.5,"
			  " \"energy_j\": 100.0, \"j_per_token\": 0.5, \"tokens_per_s_per_w\": NaN}");
	s->o.hardware = str_of(hardware);
	s->o.environment = str_of(environment);
	s->o.provenance = STR("{\"engine_commit\": \"abcdef0\", \"ci\": \"github\"}");
	s->o.record_path = "out/results.d/one/record.plr";
}

static void failed(struct document_sample *s, const char *name, enum outcome_stage stage,
		 const char *category, const char *reason)
{
	s->name = name;
	s->o.status = OUTCOME_FAILED;
	s->o.stage = stage;
	s->o.category = category;
	s->o.reason = reason;
	s->o.result = s->o.system = STR("");
	s->o.record_path = NULL;
}

static void sample_offline(struct document_sample *s, enum experiment_mode mode, const char *result)
{
	s->name = experiment_mode_name(mode);
	s->x.mode = mode;
	s->o.result = str_of(result);
	s->o.system = STR("");
}

static void sample_roles(struct document_sample *s)
{
	static const char *const after[] = { "prefill", "decode", NULL };
	static const char *const warnings[] = { "Traces hold sk-very-secret.", "Two." };

	s->name = "roles";
	s->x.suite = "nightly";
	s->x.n_servers = 3;
	s->x.serving = 2;
	s->server[0].name = "prefill";
	s->server[0].role = ROLE_PREFILL;
	s->server[1] = s->server[2] = s->server[0];
	s->server[1].name = "decode";
	s->server[1].role = ROLE_DECODE;
	s->server[1].ready = SERVER_READY_PORT;
	s->server[1].ready_timeout_s = INFINITY;
	s->server[2] = (struct experiment_server){
		.name = "proxy", .role = ROLE_PROXY, .url = "http://127.0.0.1:9", .after = after,
	};
	s->out[1] = s->out[0];
	s->out[2] = (struct outcome_server){ .url = "http://127.0.0.1:9", .startup_s = NAN };
	s->x.profiling.is_enabled = true;
	s->x.profiling.tool = "torch";
	s->trace[0] = (struct outcome_trace){ "out/results.d/one/traces/a.gz", 1000 };
	s->trace[1] = (struct outcome_trace){ "/elsewhere/b.gz", 2500000 };
	s->o.trace = s->trace;
	s->o.n_traces = 2;
	s->x.resources.want = GPUS_COUNT;
	s->x.resources.count = 2;
	s->x.resources.wait_s = INFINITY;
	s->x.output.is_detailed = true;
	s->o.warning = warnings;
	s->o.n_warnings = 2;
}

#define SAMPLES 12

/* Sample i; what it refers to lives in the arena. */
static void sample_make(size_t i, struct document_sample *s, struct arena *a)
{
	*s = (struct document_sample){ .name = "completed" };
	sample_serve(s, a);
	switch (i) {
	case 1:
		s->name = "partial";
		s->o.status = OUTCOME_PARTIAL;
		s->o.stage = AT_BENCHMARK;
		s->o.reason = "1 of 20 requests failed.";
		break;
	case 2:
		failed(s, "failed-config", AT_CONFIG, NULL, "x.yaml:1:1: server.x: unknown key");
		s->x = (struct experiment){ .name = "one", .output.path = "out/results.json" };
		s->o.server = NULL;
		s->o.hardware = s->o.environment = s->o.provenance = STR("");
		break;
	case 3:
		failed(s, "failed-allocate", AT_ALLOCATE, "gpus busy", "No GPU is free.");
		s->o.server = NULL;
		break;
	case 4:
		failed(s, "failed-start", AT_START, "not found", "There is no vllm.");
		break;
	case 5:
		failed(s, "failed-ready", AT_READY, "out of memory", "It ended.");
		s->out[0].is_ended = true;
		s->out[0].startup_s = NAN;
		s->o.log_tail = STR("started with sk-very-secret\nCUDA out of memory\n");
		break;
	case 6:
		failed(s, "failed-benchmark", AT_BENCHMARK, NULL, "Interrupted.");
		s->o.is_interrupted = true;
		break;
	case 7:
		failed(s, "failed-collect", AT_COLLECT, "disk", "The record could not be written.");
		s->o.result = str_of(serve_result);
		break;
	case 8:
		sample_offline(s, MODE_THROUGHPUT, throughput_result);
		break;
	case 9:
		sample_offline(s, MODE_LATENCY, latency_result);
		break;
	case 10:
		sample_offline(s, MODE_STARTUP, startup_result);
		break;
	case 11:
		sample_roles(s);
		break;
	default:
		break;
	}
}
