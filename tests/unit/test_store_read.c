/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_store_read.c - files become rows: a case for each kind, the hash, and files that mean harm.
 *
 * A case is a text and some cells it must give, written as JSON: "median_ttft_ms=12.5",
 * "server.model='m'", "tags.a=absent".
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/base/mem.h"
#include "core/base/str.h"
#include "input/table/codec.h"
#include "results/read/read.h"
#include "results/store/read.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define CELLS 20

static const struct value *cell(const struct read_run *run, const char *column)
{
	const struct value *found = NULL;

	for (size_t i = 0; i < run->row.n; i++)
		if (str_is(run->row.cell[i].column, column)) {
			assert_null(found); /* each column once */
			found = &run->row.cell[i].value;
		}
	return found;
}

static void spell(const struct value *v, char out[256])
{
	char number[FMT_F64_BYTES];

	if (!v)
		snprintf(out, 256, "absent");
	else if (v->kind == VALUE_NULL)
		snprintf(out, 256, "null");
	else if (v->kind == VALUE_BOOL)
		snprintf(out, 256, "%s", v->is_true ? "true" : "false");
	else if (v->kind == VALUE_NUMBER)
		snprintf(out, 256, "%s", fmt_f64(number, v->number));
	else
		snprintf(out, 256, "'%.*s'", (int)v->text.n, v->text.p);
}

static void check(const struct read_run *run, const char *const *want)
{
	for (size_t i = 0; i < CELLS && want[i]; i++) {
		const char *eq = strrchr(want[i], '=');
		char column[160], got[256];

		snprintf(column, sizeof(column), "%.*s", (int)(eq - want[i]), want[i]);
		spell(cell(run, column), got);
		if (strcmp(got, eq + 1) != 0)
			fail_msg("%s: got %s, wanted %s", column, got, eq + 1);
	}
}

/* ---- kinds ---- */

#define DOCUMENT "{\"schema_version\": 1, \"run_id\": \"exp_1\", \"suite\": \"s\"," \
	"\"timestamp\": \"2026-01-02T03:04:05.5Z\", \"duration\": 9.5, \"config\": {\"name\": \"n\"," \
	"\"mode\": \"serve\", \"repeat\": 2, \"hash\": \"abc\", \"server\": {\"model\": \"m\", " \
	"\"tensor_parallel_size\": 2, \"enforce_eager\": null, \"hf_overrides\": {}," \
	"\"compilation_config\": {\"mode\": 3}}, \"servers\": [{\"name\": \"d\", \"role\": \"decode\"," \
	"\"started_by\": \"exp_0\", \"is_serving\": true, \"arguments\": {\"max_num_seqs\": 8}," \
	"\"gpus\": [{\"index\": 0}]," \
	"\"startup_s\": 4.5}, {\"role\": \"prefill\", \"started_by\": \"exp_0\"," \
	"\"arguments\": {\"max_num_seqs\": 4}, " \
	"\"env\": {\"A\": \"1\"}, \"gpus\": [{\"index\": 1}, {\"index\": 2}]}, {\"role\": \"system\", " \
	"\"started_by\": \"exp_1\", \"arguments\": {\"x\": 1}}]," \
	"\"benchmark\": {\"request_rate\": \"inf\", \"num_prompts\": 40}," \
	"\"tags\": {\"team\": \"blue\"}}, \"results\": {\"completed_requests\": 39, " \
	"\"failed_requests\": 1, \"median_ttft_ms\": 12.5, \"p99_itl_ms\": NaN," \
	"\"profllm\": {\"cached_share\": 0.25, \"e2el_from_due_ms\": {\"n\": 4, \"p99\": 8}}}," \
	"\"trust\": {\"verdict\": \"DEGRADED\", \"verdicts\": {\"ttft\": \"DEGRADED\", " \
	"\"itl\": \"INVALID\", \"e2el\": \"DEGRADED\"}, \"reasons\": [{\"code\": \"skew\"}, {\"code\": \"few\"}]," \
	"\"error_budget\": {\"skew_ms\": {\"p99\": 2}}}, \"system\": {\"energy_j\": 5," \
	"\"gpus\": [{\"power_w\": {\"min\": 1, \"mean\": 2, \"max\": 3}}, {\"power_w\": {\"min\": 2, " \
	"\"mean\": 4, \"max\": 9}}], \"processes\": [{\"cpu_s\": 1}, {\"cpu_s\": 2}]," \
	"\"hardware_info\": {\"gpus\": [{\"name\": \"H100\", \"memory_bytes\": 8}, {\"name\": \"H100\"}]," \
	"\"cpu\": {\"model\": \"c\"}}}, \"profiling\": {\"enabled\": true}," \
	"\"environment\": {\"profllm\": \"1\", \"python\": {\"packages\": {\"vllm\": \"0.11\"}}}," \
	"\"provenance\": {\"engine_commit\": \"c0ffee\"}, \"status\": \"partial\"," \
	"\"error\": {\"stage\": \"benchmark\", \"reason\": \"r\"}, \"warnings\": [\"w\"]}"

static const struct {
	const char *what, *name, *text, *kind;
	size_t runs;
	const char *cells[CELLS]; /* of the first run */
} kind_cases[] = {
	{ "a document", "", DOCUMENT, "profllm", 1,
	  { "run_id='exp_1'", "suite='s'", "name='n'", "timestamp=1767323045.5", "status='partial'",
	    "source='profllm'", "mode='serve'", "repeat=2.0", "config_hash='abc'", "gpus=3.0",
	    "experiment_duration_s=9.5", "error_stage='benchmark'", "error_reason='r'",
	    "warnings=1.0", "profiled=true", "verdict='DEGRADED'" } },
	{ "its parameters", "", DOCUMENT, "profllm", 1,
	  { "server.model='m'", "server.tensor_parallel_size=2.0", "server.enforce_eager=null",
	    "server.hf_overrides='{}'", "server.compilation_config.mode=3.0",
	    "server.max_num_seqs=absent", "decode.max_num_seqs=8.0", "prefill.max_num_seqs=4.0",
	    "prefill.env.A='1'", "prefill.servers=1.0", "role_system.x=1.0",
	    "benchmark.request_rate=inf", "benchmark.num_prompts=40.0", "tags.team='blue'",
	    "provenance.engine_commit='c0ffee'", "provenance.session='exp_0,exp_1'",
	    "environment.python.packages.vllm='0.11'" } },
	{ "its measurements", "", DOCUMENT, "profllm", 1,
	  { "completed=39.0", "failed=1.0", "median_ttft_ms=12.5", "p50_ttft_ms=12.5",
	    "p99_itl_ms=absent", "cached_share=0.25", "p99_e2el_from_due_ms=8.0",
	    "trust.reasons='skew,few'", "trust.degraded='ttft,e2el'", "trust.invalid='itl'",
	    "trust.skew_ms.p99=2.0", "system.energy_j=5.0",
	    "system.gpu.power_w.mean=3.0", "system.gpu.power_w.max=9.0", "system.processes.cpu_s=3.0",
	    "hardware.gpu='H100'", "hardware.gpus=2.0", "server_startup_s=4.5" } },
	{ "a suite", "", "{\"schema_version\": 1, \"suite\": \"s\", \"experiments\": [" DOCUMENT ", "
	  DOCUMENT "]}", "profllm", 2, { "run_id='exp_1'" } },
	{ "a document of an offline mode", "", "{\"schema_version\": 1, \"run_id\": \"a\", \"config\": "
	  "{\"mode\": \"throughput\"}, \"results\": {\"completed_requests\": 4, \"throughput\": "
	  "{\"requests_per_second\": 2.5, \"elapsed_time\": 4, \"profllm\": {\"verdict\": \"VALID\", "
	  "\"batch_size\": 3}}}, \"status\": \"completed\"}", "profllm", 1,
	  { "mode='throughput'", "completed=4.0", "request_throughput=2.5", "duration=4.0",
	    "benchmark.batch_size=3.0", "source='profllm'" } },
	{ "a search for the largest load, and what vLLM's performance suite left next to it", "",
	  "{\"date\": \"20260102-030405\", \"backend\": \"vllm\", \"model_id\": \"m\", \"duration\": 2, "
	  "\"completed\": 10, \"request_throughput\": 5, \"capacity\": {\"limits\": [{\"limit\": "
	  "\"p99_ttft_ms<200\"}, {\"limit\": \"p99_tpot_ms<30\"}, {\"limit\": \"at most 1 % fail\"}, {}, 7]}, "
	  "\"test_name\": \"serving_a\", \"gpu_type\": \"NVIDIA H100\", \"client_command\": \"x\", "
	  "\"server_command\": \"vllm serve m --tensor-parallel-size 2 --dtype 'half'\"}", "serve", 1,
	  { "capacity_limits='p99_ttft_ms<200,p99_tpot_ms<30'", "name='serving_a'",
	    "hardware.gpu='NVIDIA H100'", "server.tensor_parallel_size=2.0", "server.dtype='half'",
	    "benchmark.client_command=absent", "tags.client_command=absent",
	    "tags.server_command=absent", "completed=10.0" } },
	{ "a command that cannot be read, and a search without limits", "",
	  "{\"date\": \"20260102-030405\", \"backend\": \"vllm\", \"model_id\": \"m\", \"duration\": 2, "
	  "\"completed\": 10, \"request_throughput\": 5, \"capacity\": {\"limits\": 7}, \"test_name\": "
	  "\"serving_b\", \"server_command\": \"vllm serve 'm\"}", "serve", 1,
	  { "capacity_limits=absent", "name='serving_b'", "server.model='m'",
	    "server.tensor_parallel_size=absent", "tags.server_command=absent" } },
	{ "an empty command", "",
	  "{\"date\": \"20260102-030405\", \"backend\": \"vllm\", \"model_id\": \"m\", \"duration\": 2, "
	  "\"completed\": 10, \"request_throughput\": 5, \"test_name\": \"serving_c\", \"server_command\": "
	  "\" \"}", "serve", 1,
	  { "name='serving_c'", "server.model='m'", "tags.server_command=absent" } },
	{ "an offline run's machine, starts and times of requests", "",
	  "{\"elapsed_time\": 2, \"requests_per_second\": 5, \"profllm\": {\"command\": \"throughput\", "
	  "\"stop_ns\": 1500000000000000000, "
	  "\"host\": {\"cpu\": \"c\", \"cpus\": 8, \"memory_bytes\": 1024, \"kernel\": \"6.1\", "
	  "\"machine\": \"x86_64\", \"odd\": 1}, \"load\": {\"ready_s\": 3.5}, \"cold\": {\"ready_s\": "
	  "{\"mean\": 9}, \"phases\": {\"weights\": {\"mean\": 4}}}, \"request_time_percentiles\": "
	  "{\"50\": 0.5, \"99.9\": 2, \"90\": null}, \"provenance\": {\"engine_commit\": \"c0\"}, "
	  "\"derived\": {\"x\": 2}, \"runs\": {\"count\": 3}, \"told\": 1, \"min_latency\": 0.25}}",
	  "throughput", 1,
	  { "hardware.cpu.model='c'", "hardware.cpu.threads=8.0", "hardware.memory.total_bytes=1024.0",
	    "hardware.os.kernel='6.1'", "hardware.cpu.architecture='x86_64'", "server_startup_s=3.5",
	    "client.cold.ready_s=9.0", "client.cold.weights=4.0", "p50_e2el_ms=500.0",
	    "p99.9_e2el_ms=2000.0", "p90_e2el_ms=absent", "provenance.engine_commit='c0'",
	    "derived.x=2.0", "client.runs=3.0", "client.told=absent", "min_latency=0.25",
	    "timestamp=1500000000.0" } },
	{ "a document that failed", "", "{\"config\": {\"name\": \"x\"}, \"results\": null, "
	  "\"status\": \"failed\", \"trust\": null, \"system\": null, \"error\": {\"stage\": \"start\"}}",
	  "profllm", 1, { "status='failed'", "error_stage='start'", "name='x'", "verdict=absent" } },
	{ "vLLM's bench serve", "", "{\"date\": \"20260102-030405\", \"endpoint_type\": \"vllm\", "
	  "\"backend\": \"vllm\", \"label\": null, \"model_id\": \"m\", \"tokenizer_id\": \"t\", "
	  "\"num_prompts\": 10, \"tensor_parallel_size\": \"4\", \"compilation_config.mode\": \"3\", "
	  "\"note\": \"a\", \"request_rate\": \"inf\", \"burstiness\": 1.0, \"max_concurrency\": null, "
	  "\"duration\": 2.0, \"completed\": 10, \"failed\": 0, \"request_throughput\": 5.0, "
	  "\"ttfts\": [0.1, 0.2], \"median_ttft_ms\": 3.0, \"p99.9_itl_ms\": 7.0, "
	  "\"new_metric_throughput\": 8.0}", "serve", 1,
	  { "timestamp=1767323045.0", "server.model='m'", "benchmark.tokenizer='t'",
	    "benchmark.backend='vllm'", "label=null", "server.tensor_parallel_size=4.0",
	    "server.compilation_config.mode=3.0", "tags.note='a'", "benchmark.request_rate=inf",
	    "benchmark.max_concurrency=null", "completed=10.0", "p50_ttft_ms=3.0",
	    "p99.9_itl_ms=7.0", "new_metric_throughput=8.0", "status='completed'", "ttfts=absent" } },
	{ "ours", "", "{\"model_id\": \"m\", \"completed\": 3, \"failed\": 2, "
	  "\"request_throughput\": 5.0, \"percentiles_e2el_ms\": [[50.0, 1.5], [95, 2.5]], "
	  "\"profllm\": {\"start_ns\": 1500000000, \"version\": \"v\", \"verdict\": \"VALID\", "
	  "\"reasons\": [], \"options\": {\"num_prompts\": 5, \"request_id_prefix\": \"x\"}, "
	  "\"transport\": \"native\", \"tags\": [\"a\"], \"failures\": [{\"category\": \"http_500\", "
	  "\"count\": 2}], \"roles\": [{\"role\": \"prefill\", \"gpus\": 2}], \"system\": "
	  "{\"energy_j\": 1}, \"server\": {\"preemptions\": 4}, \"steady_state\": "
	  "{\"percentiles_ttft_ms\": [[90, 4.0]]}, \"requests\": {\"due_s\": [1]}}}", "serve", 1,
	  { "timestamp=1.5", "environment.profllm='v'", "verdict='VALID'", "trust.reasons=''",
	    "benchmark.num_prompts=5.0", "benchmark.request_id_prefix=absent",
	    "client.transport='native'", "tags.a=true", "failures.http_500=2.0", "prefill.gpus=2.0",
	    "system.energy_j=1.0", "system.server.preemptions=4.0", "steady_state.p90_ttft_ms=4.0",
	    "median_e2el_ms=1.5", "p95_e2el_ms=2.5", "status='partial'" } },
	{ "of many figures those that runs are compared by", "", "{\"completed\": 3, "
	  "\"request_throughput\": 1, \"profllm\": {\"settled\": {\"requests\": 3, "
	  "\"ttft_ms\": {\"mean\": 41.2, \"low\": 40.8, \"high\": null, \"n_needed\": 9}}, "
	  "\"attempted\": {\"requests\": 5, \"good_share\": 0.75}, \"error_budget\": {"
	  "\"source\": \"measured\", \"age_s\": 6, \"rounds\": 9, \"ttft\": {\"mean_ms\": 0.5, "
	  "\"p99_ms\": 2}, \"itl\": {\"low_ms\": 0.1, \"high_ms\": 0.25}}, \"slow_gaps\": {"
	  "\"slow\": 4, \"client\": {\"n\": 1, \"share\": 0.25}}}}", "serve", 1,
	  { "settled.requests=absent", "settled.ttft_ms.mean=41.2", "settled.ttft_ms.low=40.8",
	    "settled.ttft_ms.high=null", "settled.ttft_ms.n_needed=absent",
	    "attempted.requests=absent", "attempted.good_share=0.75",
	    "error_budget.source='measured'", "error_budget.age_s=6.0", "error_budget.rounds=absent",
	    "error_budget.ttft.mean_ms=0.5", "error_budget.ttft.p99_ms=absent",
	    "error_budget.itl.high_ms=0.25", "client.slow_gaps.client.share=0.25",
	    "client.slow_gaps.slow=absent" } },
	{ "pooling", "", "{\"input_sequence_throughput\": 4.5, \"completed\": 2, \"duration\": 1}",
	  "serve", 1, { "input_sequence_throughput=4.5", "completed=2.0", "status='completed'" } },
	{ "JSON lines", "", "{\"request_throughput\": 1, \"completed\": 0, \"failed\": 4}\n"
	  "{\"request_throughput\": 2}\n\n{\"avg_latency\": 3}\n", "serve", 3,
	  { "request_throughput=1.0", "status='failed'" } },
	{ "vLLM's zeros where nothing completed", "", "{\"completed\": 0, \"failed\": 100, "
	  "\"request_throughput\": 0.0, \"output_throughput\": 0.0, \"mean_ttft_ms\": 0.0, "
	  "\"median_ttft_ms\": 0.0, \"p99.9_itl_ms\": 0.0, \"percentiles_e2el_ms\": [[99, 0.0]], "
	  "\"std_tpot_ms\": 0, \"mean_client_queue_time_ms\": 1.5}", "serve", 1,
	  { "status='failed'", "request_throughput=0.0", "output_throughput=0.0", "mean_ttft_ms=null",
	    "median_ttft_ms=null", "p50_ttft_ms=null", "p99.9_itl_ms=null", "p99_e2el_ms=null",
	    "std_tpot_ms=null", "mean_client_queue_time_ms=1.5", "completed=0.0", "failed=100.0" } },
	{ "the same of before vLLM counted failures", "", "{\"completed\": 0, "
	  "\"request_throughput\": 0.0, \"p99_ttft_ms\": 0.0}", "serve", 1,
	  { "status='failed'", "p99_ttft_ms=null" } },
	{ "a latency of 0 where something completed", "", "{\"completed\": 1, \"failed\": 0, "
	  "\"request_throughput\": 1.0, \"p99_itl_ms\": 0.0}", "serve", 1,
	  { "status='completed'", "p99_itl_ms=0.0" } },
	{ "nightly zeros", "", "[{\"Test name\": \"a\", \"GPU\": \"H100\", \"# of req.\": 0, "
	  "\"Tput (req/s)\": 0, \"P99 TTFT (ms)\": 0}]", "nightly", 1,
	  { "completed=0.0", "p99_ttft_ms=null", "request_throughput=0.0" } },
	{ "a document in which nothing completed", "", "{\"config\": {\"mode\": \"serve\"}, "
	  "\"results\": {\"completed_requests\": 0, \"failed_requests\": 7, \"p99_ttft_ms\": 0}, "
	  "\"status\": \"failed\"}", "profllm", 1, { "completed=0.0", "p99_ttft_ms=null" } },
	{ "throughput", "", "{\"elapsed_time\": 2.5, \"num_requests\": 10, \"total_num_tokens\": 100, "
	  "\"requests_per_second\": 4.0, \"tokens_per_second\": 40.0, \"profllm\": {\"engine_args\": "
	  "[\"--model\", \"m\", \"--no-enable-prefix-caching\", \"--max-num-seqs=8\", "
	  "\"--enforce-eager\"], \"output_tokens_per_second\": 30.0, \"request_time_percentiles\": "
	  "{\"50\": 0.25}, \"engine\": {\"name\": \"vllm\", \"told\": {\"kv_cache_tokens\": 7}}}}",
	  "throughput", 1,
	  { "mode='throughput'", "duration=2.5", "completed=10.0", "total_tokens=100.0",
	    "request_throughput=4.0", "total_token_throughput=40.0", "output_throughput=30.0",
	    "server.model='m'", "server.enable_prefix_caching=false", "server.max_num_seqs=8.0",
	    "server.enforce_eager=true", "median_e2el_ms=250.0", "kv_cache_tokens=7.0" } },
	{ "latency", "", "{\"avg_latency\": 0.5, \"std_latency\": 0.1, \"latencies\": [0.5, 0.5], "
	  "\"percentiles\": {\"10\": 0.4, \"50\": 0.5}}", "latency", 1,
	  { "mode='latency'", "avg_latency=0.5", "std_latency=0.1", "p10_latency=0.4",
	    "median_latency=0.5", "p50_latency=0.5", "latencies=absent" } },
	{ "startup", "", "{\"avg_cold_startup_time\": 3.5, \"cold_startup_times\": [3.5], "
	  "\"cold_startup_percentiles\": {\"90\": 4.0}, \"avg_warm_startup_time\": 2}", "startup", 1,
	  { "mode='startup'", "avg_cold_startup_time=3.5", "p90_cold_startup_time=4.0",
	    "avg_warm_startup_time=2.0", "cold_startup_times=absent" } },
	{ "mm-processor", "", "{\"completed\": 2, \"mean_e2el_ms\": 5.0, \"percentiles_e2el_ms\": "
	  "[[99.0, 6.0]], \"mm_processor_stats\": {\"encoder_forward_ms\": {\"mean\": 1.5, "
	  "\"p99.0\": 2.5}}, \"encoder_summary\": {\"total_encoder_calls\": 3}, \"config\": "
	  "{\"model\": \"m\", \"num_prompts\": 2}, \"timestamp\": \"2026-01-02T03:04:05\"}",
	  "mm-processor", 1,
	  { "mode='mm-processor'", "completed=2.0", "mean_e2el_ms=5.0", "p99_e2el_ms=6.0",
	    "mean_encoder_forward_ms=1.5", "p99_encoder_forward_ms=2.5", "encoder_calls=3.0",
	    "server.model='m'", "benchmark.num_prompts=2.0", "timestamp=1767323045.0" } },
	{ "PyTorch records of serving", "",
	  "[{\"benchmark\": {\"name\": \"b\", \"extra_info\": {\"args\": {\"model\": \"m\", "
	  "\"num_prompts\": 4, \"subparser\": \"x\", \"tensor_parallel_size\": 2}, "
	  "\"compilation_config.mode\": 3}}, \"model\": {\"name\": \"m\"}, \"metric\": {\"name\": "
	  "\"median_ttft_ms\", \"benchmark_values\": [5.5], \"extra_info\": {\"completed\": 4, "
	  "\"request_throughput\": 2.5, \"input_lens\": [1]}}}, "
	  "{\"benchmark\": {\"name\": \"b\", \"extra_info\": {\"args\": {\"model\": \"m\", "
	  "\"num_prompts\": 4, \"subparser\": \"x\", \"tensor_parallel_size\": 2}, "
	  "\"compilation_config.mode\": 3}}, \"model\": {\"name\": \"m\"}, \"metric\": {\"name\": "
	  "\"mean_ttft_ms\", \"benchmark_values\": [4.5]}}]", "pytorch", 1,
	  { "mode='serve'", "server.model='m'", "benchmark.num_prompts=4.0",
	    "server.tensor_parallel_size=2.0", "server.compilation_config.mode=3.0",
	    "median_ttft_ms=5.5", "mean_ttft_ms=4.5", "completed=4.0", "request_throughput=2.5",
	    "benchmark.subparser=absent", "input_lens=absent" } },
	{ "conversations", "", "{\"request_throughput\": 2, \"sessions\": {\"completed\": 3, "
	  "\"duration_s\": {\"n\": 3, \"p99\": 1.5}, \"ttft_first_turn_ms\": {\"mean\": 20.5}, "
	  "\"ttft_later_turns_ms\": {\"mean\": 4.5}, \"cached_share\": 0.5}, "
	  "\"per_turn_metrics\": [{\"turn_index\": 0}], \"profllm\": {\"dataset\": "
	  "\"conversations\", \"options\": {\"num_clients\": 2, \"client_request_rate\": 0}}}",
	  "serve", 1,
	  { "sessions.completed=3.0", "sessions.duration_s.p99=1.5",
	    "sessions.ttft_first_turn_ms.mean=20.5", "sessions.ttft_later_turns_ms.mean=4.5",
	    "sessions.cached_share=0.5", "per_turn_metrics=absent",
	    "benchmark.dataset_name='conversations'", "benchmark.num_clients=2.0",
	    "benchmark.client_request_rate=0.0" } },
	{ "what vLLM's script for structured output writes", "", "{\"outputs\": [{\"correctness\": "
	  "true}], \"correct_rate(%)\": 75, \"request_throughput\": 2, \"ttft_description\": "
	  "{\"count\": 4}, \"mean_ttft_ms\": 3}", "serve", 1,
	  { "correctness.correct_rate_upstream=75.0", "mean_ttft_ms=3.0", "outputs=absent",
	    "tags.ttft_description.count=absent" } },
	{ "answers that were judged", "", "{\"request_throughput\": 2, \"profllm\": "
	  "{\"correctness\": {\"scored\": 8, \"correct\": 6, \"constrained_correct_rate\": 75, "
	  "\"wrong\": {\"schema\": 2}}}}", "serve", 1,
	  { "correctness.scored=8.0", "correctness.correct=6.0",
	    "correctness.constrained_correct_rate=75.0", "correctness.wrong.schema=2.0",
	    "client.correctness.scored=absent" } },
	{ "priorities and what they cost", "", "{\"elapsed_time\": 2, \"requests_per_second\": 5, "
	  "\"profllm\": {\"command\": \"prioritization\", \"prompt_tokens\": 60, \"priorities\": "
	  "[{\"priority\": -1, \"completed\": 4, \"ttft_ms\": {\"mean\": 2.5, \"p99\": 3}, "
	  "\"queue_ms\": null}, {\"priority\": 7, \"completed\": 6, \"e2el_ms\": {\"p99\": 9}}], "
	  "\"baseline\": {\"elapsed_time\": 3}, \"priority_cost\": [{\"priority\": 7, "
	  "\"ttft\": 1.5, \"queue\": null}]}}", "throughput", 1,
	  { "mode='prioritization'", "priorities=2.0", "priority.-1.completed=4.0",
	    "priority.-1.ttft_ms.mean=2.5", "priority.-1.ttft_ms.p99=3.0",
	    "priority.-1.queue_ms=null", "priority.7.completed=6.0", "priority.7.e2el_ms.p99=9.0",
	    "priority.7.ttft_cost=1.5", "priority.7.queue_cost=null", "total_input_tokens=60.0",
	    "priority.-1.priority=absent", "client.baseline.elapsed_time=absent" } },
	{ "prompts with shared prefixes, with and without a cache", "", "{\"elapsed_time\": 2, "
	  "\"requests_per_second\": 5, \"profllm\": {\"command\": \"prefix-caching\", "
	  "\"dataset\": \"prefix_caching\", \"repeat_count\": 2, \"repeat_order\": \"sorted\", "
	  "\"runs\": [{\"prefix_caching\": true, \"elapsed_time\": 2, \"prompt_tokens\": 80, "
	  "\"cached_tokens\": 20}, {\"prefix_caching\": false, \"elapsed_time\": 3, "
	  "\"prompt_tokens\": 80, \"cached_tokens\": 0}], \"caching_speedup\": 1.5}}",
	  "throughput", 1,
	  { "mode='prefix-caching'", "benchmark.dataset_name='prefix_caching'",
	    "benchmark.repeat_count=2.0", "benchmark.repeat_order='sorted'", "cached_share=0.25",
	    "prefix_cache.on.duration=2.0", "prefix_cache.off.duration=3.0",
	    "prefix_cache.on.cached_share=0.25", "prefix_cache.off.cached_share=0.0",
	    "caching_speedup=1.5" } },
	{ "documents asked about again, on one engine", "", "{\"elapsed_time\": 2, "
	  "\"requests_per_second\": 5, \"profllm\": {\"command\": \"long-document-qa\", "
	  "\"runs\": [{\"prefix_caching\": null, \"elapsed_time\": 2, \"prompt_tokens\": 80, "
	  "\"cached_tokens\": null}]}}", "throughput", 1,
	  { "mode='long-document-qa'", "cached_share=absent", "prefix_cache.off.duration=absent" } },
	{ "PyTorch records of two runs", "",
	  "[{\"benchmark\": {}, \"model\": {\"name\": \"m\"}, \"metric\": {\"name\": \"latency\", "
	  "\"benchmark_values\": [1, 3], \"extra_info\": {\"avg_latency\": 2, \"percentiles\": "
	  "{\"50\": 2}}}}, {\"benchmark\": {}, \"model\": {\"name\": \"m\"}, \"metric\": {\"name\": "
	  "\"latency\", \"benchmark_values\": [5]}}]", "pytorch", 2,
	  { "mode='latency'", "avg_latency=2.0", "median_latency=2.0", "server.model='m'" } },
	{ "vLLM's nightly tables", "", "[{\"Test name\": \"serving_a\", \"GPU\": \"2xH100\", "
	  "\"Model\": \"m\", \"TP Size\": 2, \"qps\": \"inf\", \"Tput (req/s)\": 4.5, \"Median\": 7.5, "
	  "\"P99\": 9.5, \"Mean TTFT (ms)\": 1.5}, {\"Test name\": \"latency_b\", \"GPU\": "
	  "\"A100\\nA100\", \"Mean latency (ms)\": 1500.0}]", "nightly", 2,
	  { "name='serving_a'", "hardware.gpu='H100'", "hardware.gpus=2.0", "server.model='m'",
	    "server.tensor_parallel_size=2.0", "benchmark.request_rate=inf",
	    "request_throughput=4.5", "median_tpot_ms=7.5", "p50_tpot_ms=7.5", "p99_tpot_ms=9.5",
	    "mean_ttft_ms=1.5" } },
	{ "aiperf in which a metric has another unit", "", "{\"aiperf_version\": \"1\", "
	  "\"input_config\": {\"phases\": [{\"kind\": \"warmup\", \"concurrency\": 9}, {\"kind\": "
	  "\"profiling\", \"type\": \"poisson\", \"rate\": 4, \"requests\": 7}]}, \"request_count\": "
	  "{\"unit\": \"requests\", \"avg\": 5}, \"error_request_count\": {\"unit\": \"requests\", "
	  "\"avg\": 2}, \"time_to_first_token\": {\"unit\": \"sec\", \"avg\": 1}, "
	  "\"request_latency\": {\"unit\": \"ms\", \"avg\": 3, \"p99\": 4, \"max\": 5}}",
	  "aiperf", 1,
	  { "status='partial'", "completed=5.0", "failed=2.0", "mean_ttft_ms=absent",
	    "mean_e2el_ms=3.0", "p99_e2el_ms=4.0", "benchmark.request_rate=4.0",
	    "benchmark.num_prompts=7.0", "benchmark.max_concurrency=absent",
	    "environment.aiperf='1'" } },
	{ "aiperf without a request that completed", "", "{\"aiperf_version\": \"1\", "
	  "\"input_config\": [], \"error_request_count\": {\"unit\": \"requests\", \"avg\": 3}, "
	  "\"request_throughput\": 7}", "aiperf", 1,
	  { "status='failed'", "completed=0.0", "failed=3.0", "request_throughput=absent" } },
	{ "guidellm without a version, and events of several tokens", "", "{\"benchmarks\": [{\"metrics\": "
	  "{\"requests_per_second\": {\"successful\": {\"mean\": 2}}, \"request_totals\": "
	  "{\"successful\": 3, \"errored\": 1, \"incomplete\": 2}, \"request_latency\": {\"successful\": "
	  "{\"mean\": 0.5, \"max\": 4, \"percentiles\": {\"p001\": 0.25, \"p01\": 0.5, \"p999\": 4}}}, "
	  "\"inter_token_latency_ms\": {\"successful\": {\"mean\": 7}}, \"iter_tokens_per_iteration\": "
	  "{\"successful\": {\"max\": 2}}}, \"requests\": {\"successful\": [{\"output\": \"x\"}]}}]}",
	  "guidellm", 1,
	  { "status='partial'", "request_throughput=2.0", "failed=1.0", "mean_e2el_ms=500.0",
	    "p0.1_e2el_ms=250.0", "p1_e2el_ms=500.0", "p99.9_e2el_ms=4000.0", "mean_itl_ms=absent",
	    "environment.guidellm=absent" } },
	{ "MLPerf offline, of its summary", "", "=====\nMLPerf Results Summary\n=====\nScenario : Offline\n"
	  "Mode     : PerformanceOnly\nSamples per second: 261.5\nTokens per second: 2088\n"
	  "Result is : VALID\n90.0th percentile latency (ns) : 7\n90.00 percentile latency (ns) : 3000000\n"
	  "Mean latency (ns) : 2000000\nsamples_per_query : 40\n", "mlperf-loadgen", 1,
	  { "request_throughput=261.5", "output_throughput=2088.0", "p90_e2el_ms=3.0", "mean_e2el_ms=2.0",
	    "p90_e2el_from_due_ms=absent", "benchmark.request_rate=inf", "completed=absent",
	    "tags.mlperf_result='VALID'" } },
	{ "MLCommons endpoints that was interrupted", "", "{\"n_samples_issued\": 5, \"n_samples_completed\": 4, "
	  "\"n_samples_failed\": 0, \"state\": \"interrupted\", \"ttft\": {\"avg\": 1500000, \"std_dev\": 9, "
	  "\"percentiles\": {\"99.0\": 2500000.0, \"99.9\": null}}, \"tpot\": {}, \"latency\": {}, \"qps\": null, "
	  "\"run_config\": {\"load_pattern\": {\"target_qps\": 3}}}", "mlperf-endpoints", 1,
	  { "status='partial'", "mean_ttft_ms=1.5", "p99_ttft_ms=2.5", "std_ttft_ms=absent",
	    "request_throughput=null", "benchmark.request_rate=3.0" } },
	{ "InferenceX with GPUs for prefill and for decode", "", "[{\"hw\": \"gb200\", \"conc\": 8, \"disagg\": true, "
	  "\"is_multinode\": true, \"prefill_tp\": 4, \"decode_tp\": 8, \"num_prefill_gpu\": 4, "
	  "\"num_decode_gpu\": 8, \"tput_per_gpu\": 100, \"output_tput_per_gpu\": 50, \"mean_intvty\": 9, "
	  "\"p99_ttft\": 0.25}]", "inferencex", 1,
	  { "gpus=12.0", "total_token_throughput=1200.0", "output_throughput=400.0",
	    "derived.output_throughput_per_gpu=absent", "p99_ttft_ms=250.0",
	    "prefill.tensor_parallel_size=4.0", "decode.tensor_parallel_size=8.0",
	    "mean_intvty=absent" } },
	{ "nightly latency in seconds", "", "{\"results\": [{\"Test name\": \"b\", \"GPU\": "
	  "\"A100\\nA100\", \"Mean latency (ms)\": 1500.0, \"Median latency (ms)\": 1000}]}",
	  "nightly", 1, { "avg_latency=1.5", "median_latency=1.0", "p50_latency=1.0",
	    "hardware.gpu='A100'", "hardware.gpus=2.0" } },
	{ "a sweep's summary", "out/grid/SERVE--max_x=8-BENCH--users=4/summary.json",
	  "[{\"request_throughput\": 1, \"max_x\": 8, \"users\": 4, \"run_number\": 0}, "
	  "{\"request_throughput\": 2, \"max_x\": 8, \"users\": 4, \"run_number\": 1}]", "serve", 2,
	  { "suite='grid'", "server.max_x=8.0", "benchmark.users=4.0", "repeat=0.0",
	    "tags.users=absent" } },
	{ "a sweep's named combination", "grid/summary.json", "[{\"request_throughput\": 1, "
	  "\"_benchmark_name\": \"small\", \"max_num_seqs\": 8, \"max_concurrency\": 4, "
	  "\"other\": true}]", "serve", 1,
	  { "suite='grid'", "name='small'", "server.max_num_seqs=8.0",
	    "benchmark.max_concurrency=4.0", "tags.other=true" } },
};

static void kinds(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(kind_cases); i++) {
		struct arena a = { 0 };
		struct read_file f;
		struct err e = { 0 };

		print_message("# %s\n", kind_cases[i].what);
		if (read_document(str_of(kind_cases[i].name), str_of(kind_cases[i].text), &a, &f,
				  &e))
			fail_msg("%s", e.text);
		assert_int_equal(f.n, kind_cases[i].runs);
		assert_true(str_is(f.run[0].kind, kind_cases[i].kind));
		assert_int_equal(f.run[0].row.id, 0);
		check(&f.run[0], kind_cases[i].cells);
		arena_release(&a);
	}
}

/* ---- what is kept in addition to the cells ---- */

static struct read_file read(const char *text, struct arena *a)
{
	struct read_file f;
	struct err e = { 0 };

	if (read_document(STR(""), str_of(text), a, &f, &e))
		fail_msg("%s", e.text);
	return f;
}

static void arrays(void **state)
{
	struct arena a = { 0 };
	struct read_file f = read("{\"request_throughput\": 1, \"ttfts\": [1, 2], \"x\": \"a,b\", "
				  "\"itls\": [[3]], \"profllm\": {\"requests\": {\"due_s\": [4]}, "
				  "\"verdict\": \"VALID\"}}", &a);

	(void)state;
	assert_true(str_is(f.run[0].document, "{\"request_throughput\": 1, \"x\": \"a,b\", "
			   "\"profllm\": {\"verdict\": \"VALID\"}}"));
	assert_true(str_is(f.run[0].arrays, "{\"ttfts\": [1, 2], \"itls\": [[3]], "
			   "\"requests\": {\"due_s\": [4]}}"));
	f = read("{\"request_throughput\": 1}", &a);
	assert_int_equal(f.run[0].arrays.n, 0);
	assert_true(str_is(f.run[0].document, "{\"request_throughput\": 1}"));
	assert_true(isnan(f.run[0].timestamp_s));
	arena_release(&a);
}

static void hash(void **state)
{
	static const struct { const char *a, *b; bool is_same; } pairs[] = {
		{ "{\"request_throughput\": 1, \"a\": {\"b\": 2, \"c\": [3, 4]}}",
		  " {\"a\":{\"c\":[3,\n4],\"b\":2},\"request_throughput\":1}", true },
		{ "{\"request_throughput\": 1, \"a\": \"\\u00e9\\n\"}",
		  "{\"request_throughput\": 1, \"a\": \"\xc3\xa9\\u000a\"}", true },
		{ "{\"request_throughput\": 1, \"ttfts\": [1, 2], \"itls\": [ ]}",
		  "{\"itls\":[],\"ttfts\":[1,2],\"request_throughput\":1}", true },
		{ "{\"request_throughput\": 1}", "{\"request_throughput\": 2}", false },
		{ "{\"request_throughput\": 1, \"a\": [1, 2]}",
		  "{\"request_throughput\": 1, \"a\": [2, 1]}", false },
		{ "{\"request_throughput\": 1, \"ttfts\": [1, 2]}",
		  "{\"request_throughput\": 1, \"ttfts\": [1, 3]}", false },
		{ "{\"request_throughput\": 1, \"ttfts\": [1]}", "{\"request_throughput\": 1}", false },
		{ "{\"request_throughput\": 1, \"a\": 0}", "{\"request_throughput\": 1, \"a\": null}",
		  false },
		{ "{\"request_throughput\": 1, \"a\": \"1\"}", "{\"request_throughput\": 1, \"a\": 1}",
		  false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(pairs); i++) {
		struct arena a = { 0 };
		struct read_run x = read(pairs[i].a, &a).run[0], y = read(pairs[i].b, &a).run[0];

		assert_int_equal(x.hash.n, 64);
		assert_int_equal(str_eq(x.hash, y.hash), pairs[i].is_same);
		assert_true(str_starts(x.run_id, STR("sha256:")));
		assert_int_equal(x.run_id.n, 23);
		assert_memory_equal(x.run_id.p + 7, x.hash.p, 16);
		arena_release(&a);
	}
}

/* ---- times ---- */

static void times(void **state)
{
	static const struct { const char *text; double want; } rows[] = {
		{ "2026-01-02T03:04:05Z", 1767323045 }, { "2026-01-02T03:04:05", 1767323045 },
		{ "2026-01-02 03:04:05", 1767323045 }, { "20260102-030405", 1767323045 },
		{ "2026-01-02T03:04:05.5Z", 1767323045.5 }, { "2026-01-02T03:04:05,25", 1767323045.25 },
		{ "2026-01-02T05:04:05+02:00", 1767323045 }, { "2026-01-02T05:04:05+0200", 1767323045 },
		{ "2026-01-02T05:04:05+02", 1767323045 }, { "2026-01-02T05:04:05 +02:00", 1767323045 },
		{ "2026-01-02 05:04:05 +0200", 1767323045 },
		{ "2026-01-01T21:34:05,5-0530", 1767323045.5 },
		{ "2026-01-01T21:34:05-05:30", 1767323045 }, { "2026-01-02T03:04:05 UTC", 1767323045 },
		{ "2026-01-02T03:04:05-00:00", 1767323045 },
		{ "2026-01-02T03:04:05+2", NAN }, { "2026-01-02T03:04:05+02:0", NAN },
		{ "2026-01-02T03:04:05+020", NAN }, { "2026-01-02T03:04:05+24:00", NAN },
		{ "2026-01-02T03:04:05+02:60", NAN }, { "2026-01-02T03:04:05+02:00x", NAN },
		{ "2026-01-02T03:04:05 CET", NAN }, { "2026-01-02T03:04:05 later", NAN },
		{ "2026-01-02T03:04:05.", NAN }, { "yesterday", NAN },
		{ "2026-01-02T03:04:05 on a day in January ", NAN },
		{ "2026-01-02T03:04:05 on a day in January of", NAN },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct arena a = { 0 };
		struct read_file f;
		struct err e = { 0 };
		char *result = arena_printf(&a, "{\"request_throughput\": 1, \"date\": \"%s\"}",
					    rows[i].text);
		char *document = arena_printf(&a, "{\"config\": {}, \"results\": {}, \"timestamp\": "
					      "\"%s\"}", rows[i].text);
		bool is_known = !isnan(rows[i].want);
		const char *note;
		int rc = read_document(STR(""), str_of(document), &a, &f, &e);

		if ((rc == 0) != is_known)
			fail_msg("%s is %s", rows[i].text, rc ? e.text : "taken");
		if (is_known && (f.run[0].timestamp_s > rows[i].want ||
				 f.run[0].timestamp_s < rows[i].want))
			fail_msg("%s: %.17g", rows[i].text, f.run[0].timestamp_s);
		if (!is_known && (e.code != ERR_PARSE || !strstr(e.text, rows[i].text)))
			fail_msg("%s: %s", rows[i].text, e.text);
		/* A result is taken anyway, with a note and without a time. */
		f = read(result, &a);
		if (isnan(f.run[0].timestamp_s) == is_known || f.n_notes != !is_known)
			fail_msg("%s: %.17g, %zu notes", rows[i].text, f.run[0].timestamp_s, f.n_notes);
		note = arena_printf(&a, "The run has no time, because its date is not understood: \"%.40s\"; "
				    "expected one such as 2026-01-31T12:00:00+01:00.", rows[i].text);
		if (!is_known && !str_is(f.note[0], note))
			fail_msg("%s: %.*s", rows[i].text, (int)f.note[0].n, f.note[0].p);
		assert_true((cell(&f.run[0], "timestamp") != NULL) == is_known);
		arena_release(&a);
	}
}

/* A clock that was wrong: the time stays, and is named. */
static void future(void **state)
{
	struct arena a = { 0 };
	struct read_file f = read("{\"request_throughput\": 1, \"date\": \"20990101-000000\"}", &a);

	(void)state;
	assert_int_equal(f.n_notes, 1);
	assert_true(str_starts(f.note[0], STR("The run has a time in the future")));
	assert_non_null(cell(&f.run[0], "timestamp"));
	arena_release(&a);
}

/* ---- values that cannot be ---- */

static const struct {
	const char *text, *left_out;
	const char *cells[CELLS];
} cannot_be[] = {
	{ "{\"request_throughput\": -5, \"completed\": \"many\", \"failed\": 0}",
	  "request_throughput: -5 (expected a number of at least 0); "
	  "completed: \"many\" (expected a number of at least 0)",
	  { "request_throughput=absent", "completed=absent", "failed=0.0" } },
	{ "{\"request_throughput\": 1, \"median_ttft_ms\": -0.25, \"p42_itl_ms\": -1, \"std_e2el_ms\": true}",
	  "median_ttft_ms: -0.25 (expected a number of at least 0); "
	  "p42_itl_ms: -1 (expected a number of at least 0); "
	  "std_e2el_ms: true (expected a number of at least 0)",
	  { "median_ttft_ms=absent", "p50_ttft_ms=absent", "p42_itl_ms=absent", "std_e2el_ms=absent" } },
	{ "{\"request_throughput\": 1, \"profllm\": {\"cached_share\": 1.5, \"skew_ms\": {\"p99\": -3}}}",
	  "cached_share: 1.5 (expected a number from 0 to 1)",
	  { "cached_share=absent", "trust.skew_ms.p99=-3.0" } }, /* a lag may be negative */
	{ "{\"request_throughput\": 1, \"max_concurrency\": \"a lot\", \"enforce_eager\": 3}",
	  "benchmark.max_concurrency: \"a lot\" (expected a number); "
	  "server.enforce_eager: 3 (expected true or false)",
	  { "benchmark.max_concurrency=absent", "server.enforce_eager=absent" } },
	/*
	 * A text that spells a number is a valid setting, and so is a number where a text is known.
	 */
	{ "{\"request_throughput\": 1, \"max_concurrency\": \"8\", \"revision\": 7, \"seed\": \"None\", "
	  "\"max_model_len\": \"auto\"}", NULL,
	  { "benchmark.max_concurrency=8.0", "server.revision='7'", "benchmark.seed=absent",
	    "server.seed=null", "server.max_model_len='auto'" } },
	{ "{\"request_throughput\": 1, \"note\": -5, \"my_metric_ms\": -5}", NULL,
	  { "tags.note=-5.0", "my_metric_ms=-5.0" } }, /* the range of these is unknown */
};

static void left_out(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cannot_be); i++) {
		struct arena a = { 0 };
		struct read_file f = read(cannot_be[i].text, &a);
		const struct value *told = cell(&f.run[0], "left_out");

		print_message("# %s\n", cannot_be[i].text);
		check(&f.run[0], cannot_be[i].cells);
		if (!cannot_be[i].left_out) {
			assert_null(told);
			assert_int_equal(f.n_notes, 0);
		} else {
			assert_non_null(told);
			assert_string_equal(arena_text(&a, told->text), cannot_be[i].left_out);
			assert_true(str_starts(f.note[0], STR("Not in the columns, because")));
		}
		arena_release(&a);
	}
}

static void notes(void **state)
{
	struct arena a = { 0 };
	struct read_file f = read("{\"config\": {\"tags\": {\"\": 1, \"a\\u0001b\": 2, \"ok\": 3}}, "
				  "\"results\": null}", &a);

	(void)state;
	assert_int_equal(f.n_notes, 3);
	assert_non_null(strstr(f.note[0].p, "schema_version"));
	assert_non_null(strstr(f.note[1].p, "environment"));
	assert_true(str_starts(f.note[2], STR("Values left out of the columns: 2.")));
	assert_int_equal(cell(&f.run[0], "tags.ok")->number, 3);
	f = read("{\"schema_version\": 1, \"experiments\": [{\"config\": {}, \"results\": {}}, "
		 "{\"config\": {}, \"results\": {}}]}", &a);
	assert_int_equal(f.n, 2);
	assert_non_null(strstr(f.note[0].p, "(2 runs)"));
	arena_release(&a);
}

/* ---- files that mean harm ---- */

#define RESULT "{\"request_throughput\": 1, "

static const struct {
	const char *what;
	struct str text;
	const char *error;         /* NULL: it is read */
	const char *cells[CELLS];
} hostile[] = {
	{ "nothing", STR(""), "the file is empty", { 0 } },
	{ "blanks", STR(" \n\t "), "the file is empty", { 0 } },
	{ "no JSON", STR("hello"), "line 1, column 1", { 0 } },
	{ "half of it", STR("{\"request_throughput\": 1, \"a\": [1"), "ends inside", { 0 } },
	{ "a number", STR("7"), "expected an object or a list", { 0 } },
	{ "an empty list", STR("[]"), "the list is empty", { 0 } },
	{ "a list of lists", STR("[[1]]"), "run 1: expected an object", { 0 } },
	{ "an object of nothing", STR("{}"), "no result that is known", { 0 } },
	{ "an answer of bench ab", STR("{\"command\": \"bench ab\", \"A\": \"http://a\"}"),
	  "holds no run of either. Measure each server with", { 0 } },
	{ "an answer of a search", STR("{\"command\": \"bench serve --find-max-rate\", \"capacity\": {}}"),
	  "the answer of a search, which holds no run", { 0 } },
	{ "a store", STR("SQLite format 3\0\x10"), "a store or the backup of one", { 0 } },
	{ "a line of export", STR("{\"id\": 7, \"run_id\": \"a\", \"request_throughput\": 1.5}"),
	  "columns of a run but not its document. Ingest the result files, or move", { 0 } },
	{ "another file", STR("{\"name\": \"package\", \"version\": \"1\"}"),
	  "no result that is known", { 0 } },
	{ "one run of two", STR("[{\"request_throughput\": 1}, {\"a\": 1}]"), "run 2: no result", { 0 } },
	{ "bytes behind it", STR("{\"request_throughput\": 1} x"), "line 1, column 27", { 0 } },
	{ "broken UTF-8", STR("{\"request_throughput\": 1,\n \"a\": \"\xff\"}"),
	  "line 2: byte 34 of the file is not UTF-8", { 0 } },
	{ "UTF-16", STR("\xff\xfe{\0}\0"), "not UTF-8", { 0 } },
	{ "a byte order mark", STR("\xef\xbb\xbf{\"request_throughput\": 1}"), NULL,
	  { "request_throughput=1.0" } },
	{ "a run_id that is an object", STR("{\"config\": {}, \"results\": {}, \"run_id\": {\"a\": 1}}"),
	  "run_id: expected a text, got an object", { 0 } },
	{ "results that are a list", STR("{\"schema_version\": 1, \"config\": {}, \"results\": [1]}"),
	  "results: expected an object or null, got a list", { 0 } },
	{ "a config that is a text", STR("{\"config\": \"x\", \"results\": {}}"),
	  "config: expected an object or null, got a text", { 0 } },
	{ "experiments that are an object", STR("{\"schema_version\": 1, \"experiments\": {}}"),
	  "experiments: expected a list", { 0 } },
	{ "a member of a suite that is none", STR("{\"schema_version\": 1, \"experiments\": [{\"config\": "
	  "{}, \"results\": 1}]}"), "experiment 1: results: expected", { 0 } },
	{ "no time", STR("{\"config\": {}, \"results\": {}, \"timestamp\": \"yesterday\"}"),
	  "timestamp: expected a time", { 0 } },
	{ "NaN for a time", STR("{\"config\": {}, \"results\": {}, \"timestamp\": NaN}"),
	  "timestamp: expected a time", { 0 } },
	{ "a run_id with a line's end", STR("{\"config\": {}, \"results\": {}, \"run_id\": \"a\\nb\"}"),
	  "run_id: expected a text without control", { 0 } },
	{ "NaN and infinite numbers", STR(RESULT "\"mean_ttft_ms\": NaN, \"mean_itl_ms\": Infinity, "
	  "\"mean_tpot_ms\": \"-inf\", \"mean_e2el_ms\": 1e999, \"p99_itl_ms\": -1e-999}"), NULL,
	  { "mean_ttft_ms=absent", "mean_itl_ms=inf", "mean_tpot_ms=absent", "mean_e2el_ms=inf",
	    "p99_itl_ms=0.0", "left_out='mean_ttft_ms: NaN (expected a number of at least 0); "
	    "mean_tpot_ms: -inf (expected a number of at least 0)'" } },
	{ "NaN of something unknown", STR(RESULT "\"some_word\": NaN}"), NULL,
	  { "tags.some_word=null", "left_out=absent" } },
	{ "a key twice", STR(RESULT "\"request_throughput\": 2, \"a\": 1, \"a\": 2}"), NULL,
	  { "request_throughput=2.0", "tags.a=2.0" } },
	{ "two keys for one column", STR(RESULT "\"tp\": 1, \"max-num-seqs\": 8, \"max_num_seqs\": 9}"),
	  NULL, { "server.max_num_seqs=8.0", "tags.tp=1.0" } },
	{ "names of the engine room", STR(RESULT "\"__proto__\": {\"a\": 1}, \"constructor\": 2, "
	  "\"a; DROP TABLE runs\": 3, \"a\\\"b\": 4, \"../x\": 5, \"=1+1\": 6}"), NULL,
	  { "tags.__proto__.a=1.0", "tags.constructor=2.0", "tags.a; DROP TABLE runs=3.0",
	    "tags.a\"b=4.0", "tags.../x=5.0", "tags.=1+1=6.0" } },
	{ "wrong types everywhere", STR("{\"config\": {\"name\": [], \"servers\": [1, {\"role\": 2, "
	  "\"arguments\": [], \"gpus\": 7}], \"benchmark\": [1], \"tags\": \"x\", \"server\": 5}, "
	  "\"results\": {\"profllm\": 5, \"median_ttft_ms\": {\"a\": 1}, \"throughput\": [2]}, "
	  "\"trust\": {\"reasons\": {}, \"error_budget\": []}, \"system\": {\"gpus\": {}, "
	  "\"processes\": [1, null], \"hardware_info\": []}, \"warnings\": 3, "
	  "\"environment\": 5, \"profiling\": []}"), NULL, { "gpus=0.0", "warnings=0.0" } },
	{ "wrong types in a result", STR("{\"request_throughput\": [], \"profllm\": {\"start_ns\": \"x\", "
	  "\"reasons\": 3, \"options\": [], \"failures\": {}, \"roles\": 7, \"tags\": [[1]], "
	  "\"steady_state\": [], \"engine_args\": [1, \"--\", \"--a\"], \"engine\": 2, \"cold\": 3, "
	  "\"e2el_from_due_ms\": 4, \"request_time_percentiles\": []}, \"date\": {}}"), NULL,
	  { "mode='serve'" } },
	{ "a text with a zero", STR(RESULT "\"note\": \"a\\u0000b\"}"), NULL,
	  { "tags.note='a\xef\xbf\xbd" "b'" } },
	{ "wrong PyTorch records", STR("[{\"benchmark\": 1, \"metric\": {\"name\": \"x\", "
	  "\"benchmark_values\": []}}, 5]"), "one of the records", { 0 } },
	{ "wrong PyTorch values", STR("[{\"benchmark\": {\"extra_info\": []}, \"metric\": {\"name\": "
	  "\"latency\", \"benchmark_values\": [\"a\"], \"extra_info\": [1]}}]"), NULL,
	  { "avg_latency=absent" } },
	{ "no gzip", STR("\x1f\x8b\x08 and so on"), "not GZIP", { 0 } },
	{ "no zstd", STR("\x28\xb5\x2f\xfd and so on"), "not ZSTD", { 0 } },
};

static void harm(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(hostile); i++) {
		struct arena a = { 0 };
		struct read_file f;
		struct err e = { 0 };
		int rc = read_document(STR("x"), hostile[i].text, &a, &f, &e);

		print_message("# %s: %s\n", hostile[i].what, e.text);
		assert_int_equal(rc, hostile[i].error ? -1 : 0);
		if (hostile[i].error)
			assert_non_null(strstr(e.text, hostile[i].error));
		else
			check(&f.run[0], hostile[i].cells);
		arena_release(&a);
	}
}

/* ---- files that are too much ---- */

static int read_made(struct buf *text, struct arena *a, struct read_file *f, struct err *e)
{
	int rc = read_document(STR(""), buf_str(text), a, f, e);

	buf_reset(text);
	return rc;
}

static void limits(void **state)
{
	struct arena a = { 0 };
	struct buf text = { 0 }, packed = { 0 };
	struct read_file f;
	struct err e = { 0 };

	(void)state;
	buf_add_text(&text, RESULT "\"a\": ");
	for (int i = 0; i < 100; i++)
		buf_add_char(&text, '[');
	assert_int_equal(read_made(&text, &a, &f, &e), -1);
	assert_non_null(strstr(e.text, "JSON_DEPTH_MAX"));

	buf_add_text(&text, "{\"request_throughput\": 1");
	for (int i = 0; i < 100000; i++)
		buf_printf(&text, ", \"k%d\": %d", i, i);
	buf_add_char(&text, '}');
	assert_int_equal(read_made(&text, &a, &f, &e), -1);
	assert_non_null(strstr(e.text, "INGEST_MEMBERS_MAX"));

	buf_add_text(&text, "{\"request_throughput\": 1");
	for (int i = 0; i < INGEST_CELLS_MAX; i++)
		buf_printf(&text, ", \"k%d\": %d", i, i);
	buf_add_char(&text, '}');
	assert_int_equal(read_made(&text, &a, &f, &e), -1);
	assert_non_null(strstr(e.text, "INGEST_CELLS_MAX"));

	buf_add_text(&text, RESULT "\"a\": [0");
	for (int i = 0; i < 1000001; i++)
		buf_add_text(&text, ",0");
	buf_add_text(&text, "]}");
	assert_int_equal(read_made(&text, &a, &f, &e), -1);
	assert_non_null(strstr(e.text, "INGEST_VALUES_MAX"));

	/* As many in an array per request are kept, and no cells. */
	buf_add_text(&text, RESULT "\"ttfts\": [0");
	for (int i = 0; i < 1000001; i++)
		buf_add_text(&text, ",0");
	buf_add_text(&text, "]}");
	assert_int_equal(read_document(STR(""), buf_str(&text), &a, &f, &e), 0);
	assert_true(f.run[0].arrays.n > 2000000 && f.run[0].document.n < 100);

	codec_pack(buf_str(&text), 1, &packed);
	assert_true(result_is_packed(buf_str(&packed)));
	assert_int_equal(read_made(&packed, &a, &f, &e), 0);
	assert_true(f.run[0].arrays.n > 2000000);

	buf_reset(&text);
	for (unsigned i = 0; i <= INGEST_BYTES_MAX >> 16; i++) {
		static const char blank[1 << 16];

		buf_add(&text, blank, sizeof(blank));
	}
	codec_pack(buf_str(&text), 1, &packed);
	assert_int_equal(read_made(&text, &a, &f, &e), -1);
	assert_non_null(strstr(e.text, "INGEST_BYTES_MAX"));
	assert_true(packed.len < 1 << 16);
	assert_int_equal(read_made(&packed, &a, &f, &e), -1);
	assert_non_null(strstr(e.text, "unpacks to more"));

	buf_release(&packed);
	buf_release(&text);
	arena_release(&a);
}

static void long_texts(void **state)
{
	struct arena a = { 0 };
	struct buf text = { 0 };
	struct read_file f;
	struct err e = { 0 };

	(void)state;
	buf_add_text(&text, RESULT "\"note\": \"");
	for (int i = 0; i < 5000; i++)
		buf_add_text(&text, "\xc3\xa9");
	buf_add_text(&text, "\", \"");
	for (int i = 0; i < 200; i++)
		buf_add_char(&text, 'k');
	buf_add_text(&text, "\": 1}");
	assert_int_equal(read_document(STR(""), buf_str(&text), &a, &f, &e), 0);
	assert_int_equal(cell(&f.run[0], "tags.note")->text.n, INGEST_TEXT_BYTES_MAX);
	assert_int_equal(f.n_notes, 1);
	buf_release(&text);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds), cmocka_unit_test(arrays), cmocka_unit_test(hash),
		cmocka_unit_test(times), cmocka_unit_test(future), cmocka_unit_test(left_out),
		cmocka_unit_test(notes),
		cmocka_unit_test(harm), cmocka_unit_test(limits), cmocka_unit_test(long_texts),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("store_read", tests, NULL, NULL);
}
