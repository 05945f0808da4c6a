/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_import.c - `profllm run` of test files of vLLM's performance dashboard: which tests
 * become which experiments, their tables, and what is refused.
 *
 * threads: yes
 */
#include "run_rig.h"

#define HEAD "suite: perf\nserver: {command: sim, tokenizer: sim}\nbenchmark: {tokenizer: sim}\n" RUN_QUIET
#define CLIENT "\"model\": \"small\", \"backend\": \"vllm\", \"dataset_name\": \"random\", " \
	"\"random-input-len\": 16, \"random_output_len\": 4, \"num_prompts\": 2, \"ignore-eos\": \"\", " \
	"\"temperature\": \"0\""
#define SERVER "\"model\": \"small\", \"dtype\": \"bfloat16\", \"max-num-seqs\": \"64\", " \
	"\"tensor_parallel_size\": 1, \"disable_log_stats\": \"\", \"load_format\": \"dummy\""
#define SMALL(n) "\"server_parameters\": {\"model\": \"small\", \"max_num_seqs\": 3}, \"client_parameters\": {" \
	"\"model\": \"small\", \"dataset_name\": \"random\", \"random-input-len\": 16, \"random_output_len\": " n ", " \
	"\"ignore-eos\": \"\", \"temperature\": \"0\"}"
#define PLAN (RUN_EXACT | RUN_NO_FILES | RUN_NO_DOCUMENT)

static const char serving[] =
	"{\"defaults\": {\"qps_list\": [\"inf\"], \"max_concurrency_list\": [2],\n"
	"  \"server_environment_variables\": {\"VLLM_DASHBOARD\": 1},\n"
	"  \"server_parameters\": {" SERVER "},\n"
	"  \"client_parameters\": {" CLIENT "}},\n"
	" \"tests\": [{\"test_name\": \"serving_small_tp1\"},\n"
	"  {\"test_name\": \"serving_small_tp2\", \"qps_list\": [40, \"inf\"], \"max_concurrency_list\": [2, 4],\n"
	"   \"server_parameters\": {\"tensor_parallel_size\": 2}},\n"
	"  {\"test_name\": \"serving_other\", \"client_parameters\": {\"model\": \"large\"}}]}\n";
static const char latency[] =
	"[{\"test_name\": \"latency_small_tp1\", \"environment_variables\": {\"A\": \"b\"}, \"parameters\":\n"
	"  {\"model\": \"small\", \"tensor_parallel_size\": 1, \"load_format\": \"dummy\",\n"
	"   \"num_iters_warmup\": 1, \"num-iters\": 2, \"input_len\": 8, \"output_len\": 2, \"batch_size\": 2}}]\n";
static const char throughput[] =
	"[{\"test_name\": \"throughput_small_tp1\", \"parameters\": {\"model\": \"small\",\n"
	"  \"tensor_parallel_size\": 1, \"dataset_name\": \"random\", \"input_len\": 8, \"output_len\": 2,\n"
	"  \"num_prompts\": \"4\"}}]\n";

static void runs(void **state)
{
	static const struct run_case row[] = {
		{ "perf", HEAD "import: {files: [serving.json, latency.json, throughput.json]}\n",
		  .words = "--only *tp1*",
		  .files = "perf.d/upstream/serving_small_tp1_qps_inf_concurrency_2.commands "
		  "perf.d/upstream/latency_small_tp1.commands perf.d/upstream/benchmark_results.md" },
		{ "perf", NULL, .words = "--resume --only serving_small_tp1* --jobs 2", .how = RUN_SORTED },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

#define SEARCH(which, more) "suite: s\nserver: {command: sim, tokenizer: sim, decode_base_us: 40000}\n" \
	"benchmark: {tokenizer: sim, ready_check_timeout_sec: 0}\n" RUN_QUIET \
	"import: {files: search.json, select: " which ", adaptive: true, " \
	"sla_tpot_ms: 5000, prompts_per_concurrency: 1, " more "}\n"

/* Three requests run at once: from the fourth on they wait for others' ends, 0.48 s. */
static void searches(void **state)
{
	static const struct run_case row[] = {
		{ "found", SEARCH("serving_few", "sla_ttft_ms: 240, adaptive_max_probes: 4"), .how = RUN_SORTED,
		  .files = "found.d/upstream/serving_few_qps_inf_sla_summary.json "
		  "found.d/upstream/serving_few_qps_inf_concurrency_3.commands" },
		{ "found", NULL, .words = "--resume", .how = RUN_NO_FILES },
		{ "most", SEARCH("serving_one", "sla_ttft_ms: 5000, adaptive_max_concurrency: 3"), .words = "--jobs 2",
		  .how = RUN_SORTED, .files = "most.d/upstream/serving_one_qps_inf_sla_summary.json" },
		{ "never", SEARCH("serving_one", "sla_ttft_ms: 0.001"), .how = RUN_SORTED,
		  .files = "never.d/upstream/serving_one_qps_inf_sla_summary.json" },
		{ "repeated", SEARCH("serving_one", "sla_ttft_ms: 5000") "repeat: 2\n",
		  .how = RUN_SORTED | RUN_NO_DOCUMENT },
	};

	(void)state;
	run_check_all(row, 2);
	/* What was lost of a search is measured once more. */
	unlink("found.d/serving_few_qps_inf_concurrency_3.json");
	run_check(&(struct run_case){ "found", NULL, .words = "--resume --jobs 1", .how = RUN_NO_FILES |
				      RUN_NO_DOCUMENT });
	run_check_all(row + 2, 3);
}

static void plans(void **state)
{
	static const struct run_case row[] = {
		{ "all", HEAD "import: {files: [serving.json, latency.json, throughput.json]}\n",
		  .words = "--dry-run", .how = PLAN },
		{ "some", HEAD "import: {files: serving.json, select: '^serving_.*tp2', prompts_per_concurrency: 5, "
		  "min_num_prompts: 11, max_num_prompts: 12}\n", .words = "--dry-run", .how = PLAN },
		{ "dtype", HEAD "import: {files: serving.json, dtype: bfloat16, model: small}\n",
		  .words = "--dry-run", .how = PLAN },
		{ "nomodel", HEAD "import: {files: serving.json, model: none}\n", .status = 2 },
		{ "remote", "suite: r\nbenchmark: {tokenizer: sim}\nimport: {files: serving.json, select: tp2, "
		  "remote: 'http://127.0.0.1:9'}\n", .words = "--plan -", .how = PLAN },
		{ "real", "suite: r\nbenchmark: {tokenizer: sim}\nresources: {gpus: none}\n"
		  "import: serving.json\n", .words = "--plan - --only *tp1*", .how = PLAN },
		{ "search", HEAD "import: {files: serving.json, select: tp1, adaptive: true, sla_ttft_ms: 100, "
		  "adaptive_max_probes: 4}\n", .words = "--dry-run", .how = PLAN },
	};

	(void)state;
	RUN_CHECK_ALL(row);
}

static void refused(void **state)
{
#define TEST "[{\"test_name\": \"serving_x\", \"server_parameters\": {" SERVER "}, \"client_parameters\": {" CLIENT "}"
	static const struct { const char *tests, *import; } row[] = {
		{ "{", NULL }, { "3", NULL }, { "[{}]", NULL }, { "[{\"test_name\": \"x_y\"}]", NULL },
		{ "[{\"test_name\": \"serving_x\", \"qps_list\": [1]}]", NULL },
		{ TEST "}]", NULL }, { TEST ", \"qps_list\": [0]}]", NULL },
		{ TEST ", \"qps_list\": [1], \"max_concurrency_list\": [\"x\"]}]", NULL },
		{ TEST ", \"qps_list\": [1], \"max_concurrency_list\": [0]}]", NULL },
		{ "[{\"test_name\": \"serving_x\", \"qps_list\": [1], \"server_parameters\": {" SERVER "}, "
		  "\"client_parameters\": {" CLIENT ", \"num_promts\": 3}}]", NULL },
		{ "[]", "{file: x}" }, { "[]", "{files: []}" }, { "[]", "{files: none.json}" },
		{ "[]", "{files: serving.json, select: '('}" },
		{ "[]", "{files: serving.json, sla_ttft_ms: x}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct buf text = { 0 };
		char name[16];

		snprintf(name, sizeof(name), "refused%zu", i);
		run_write("bad.json", row[i].tests);
		buf_printf(&text, HEAD "import: %s\n", row[i].import ? row[i].import : "bad.json");
		run_check(&(struct run_case){ name, text.data, .status = 2, .how = PLAN });
		buf_release(&text);
	}
}

static int setup(void **state)
{
	if (run_setup(state) < 0)
		return -1;
	run_write("serving.json", serving);
	run_write("latency.json", latency);
	run_write("search.json", "[{\"test_name\": \"serving_few\", \"qps_list\": [\"inf\"], "
		  "\"max_concurrency_list\": [2], " SMALL("12") "}, {\"test_name\": \"serving_one\", "
		  "\"qps_list\": [\"inf\"], \"max_concurrency_list\": [1], " SMALL("2") "}]");
	run_write("throughput.json", throughput);
	return 0;
}

RUN_MAIN(setup, cmocka_unit_test(runs), cmocka_unit_test(searches), cmocka_unit_test(plans),
	 cmocka_unit_test(refused))
