/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_verbs_store.c - the commands of the results store: results of many kinds that come in, what
 * is exported of them, archived, removed, copied, checked.
 *
 * threads: yes
 */
#include "run_rig.h"

#define S " --store sqlite:s.db"
#define RUN(day, rate, more) \
	"{\"date\": \"202601" day "-000000\", \"backend\": \"vllm\", \"model_id\": \"m\", \"num_prompts\": 6, " \
	"\"request_rate\": " rate ", \"duration\": 2.5, \"completed\": 5, \"failed\": 1, " \
	"\"total_input_tokens\": 60, \"total_output_tokens\": 20, \"request_throughput\": " rate ", " \
	"\"output_throughput\": 8, \"mean_ttft_ms\": 100, \"median_ttft_ms\": 91" more "}"

#define TRACES ", \"profiling\": {\"traces\": [{\"path\": \"t.json\"}, {\"path\": \"gone.json\"}]}"

/* The answers have the exit status. */
static void check(const char *const *row, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char *filled = verb_filled(row[i]);
		struct buf got = { 0 };
		int status = verb_end(run_begin(filled, NULL));

		buf_printf(&got, "status %d\n", status);
		run_add_text(&got, "stdout", ".out", RUN_EXACT);
		run_add_text(&got, "stderr", ".err", RUN_EXACT);
		run_mask(&got, "(/[a-zA-Z0-9_.]+)+/foreign", "FOREIGN");
		run_mask(&got, "of [0-9]+ columns", "of N columns");
		run_mask(&got, "\"hash\": ?\"[0-9a-f]+\"", "\"hash\": HASH");
		verb_answer(row[i], &got);
		free(filled);
	}
}
#define FIRST "sha256:71053122e094508a" /* of a.json */
#define CHECK(row) check(row, sizeof(row) / sizeof(*(row)))

static void foreign(void **state)
{
#define F "ingest --store sqlite:f.db $FOREIGN/"
	static const char *const row[] = {
		F "aiperf.json", F "genai_perf.json", F "guidellm.json",
		F "inferencex.json", F "mlperf_endpoints.json", F "mlperf_log_detail.txt",
		F "mlperf_log_summary.txt", F "mlperf_single_stream.txt",
		F "vllm_latency.json", F "vllm_nightly.json", F "vllm_serve.json",
		F "vllm_throughput.json",
		"export --store sqlite:f.db --format jsonl",
		"store check --store sqlite:f.db",
	};

	(void)state;
	CHECK(row);
}

static void life(void **state)
{
	static const char *const row[] = {
		"ingest a.json b.jsonl c.json" S " --json", "ingest a.json" S, "ingest none" S,
		"ingest folder" S, "ingest c.json" S,
		"export" S " --columns run_id,request_throughput,tags.note --sort=-request_throughput",
		"export" S " --format jsonl --limit 1 --sort timestamp --columns server.model,failed",
		"export" S " --filter '{\"column\": \"request_throughput\", \"range\": {\"min\": 3}}' "
		  "--columns timestamp,request_throughput",
		"export" S " --columns zzzz", "export" S " --filter '{'",
		"export --store sqlite:absent.db", "export" S " --format jsonl --output out.jsonl",
		"ingest a.json" S " --trace t.json", "ingest --trace t.json --run nobody" S,
		"store check" S,
		"ingest p.json" S " --no-traces", "ingest p.json" S, "ingest q.json" S, "ingest p.json" S " ",
		"store archive" S " --filter '{\"column\": \"request_throughput\", \"in\": [2]}'",
		"export" S " --columns timestamp --shown excluded",
		"export" S " --columns timestamp,request_throughput",
		"store archive" S " --undo --filter '{\"column\": \"request_throughput\", \"in\": [2]}'",
		"store archive" S " " FIRST, "store archive" S " " FIRST " ", "store archive" S,
		"store remove" S " " FIRST, "store remove" S " " FIRST " --yes", "store remove" S " 77 --yes",
		"store remove" S " '' --yes", "store archive" S " 77 78",
		"store retain" S, "store retain" S " --archive-days 0.5",
		"store retain" S " --trace-days 1 --trace-gb 1",
		"backup s.backup" S, "backup s.backup" S " ", "backup s.backup --force" S,
		"backup absent/s.backup" S, "restore s.backup --store sqlite:absent/r.db",
		"restore s.backup --store sqlite:r.db", "restore s.backup --store sqlite:r.db ",
		"restore a.json --store sqlite:q.db",
		"export --store sqlite:r.db --columns timestamp,request_throughput --shown all",
		"store convert" S " --to sqlite:t.db", "store convert" S " --to sqlite:t.db ",
		"store convert" S " --to sqlite:t.db --force",
		"export --store sqlite:t.db --columns timestamp,request_throughput --shown all",
		"store check --store sqlite:t.db --repair",
		"trends --store sqlite:trend.db --metric request_throughput",
		"ingest trend.jsonl --store sqlite:trend.db",
		"trends --store sqlite:trend.db --metric request_throughput ",
		"trends --store sqlite:trend.db --metric request_throughput --worse --last 3",
		"trends --store sqlite:trend.db",
	};
	struct buf trend = { 0 };

	(void)state;
	run_write("a.json", RUN("01", "1", ", \"note\": \"cold\"") "\n");
	run_write("b.jsonl", RUN("02", "2", "") "\n" RUN("03", "3", "") "\n");
	run_write("c.json", "{\"no\": \"run\"}\n");
	run_write("t.json", "{\"traceEvents\": []}\n");
	run_write("p.json", RUN("05", "5", ", \"run_id\": \"r-5\"" TRACES) "\n");
	run_write("q.json", RUN("05", "6", ", \"run_id\": \"r-5\"" TRACES) "\n");
	mkdir("folder", 0700);
	run_write("folder/d.json", RUN("04", "4", "") "\n");
	run_write("folder/notes.txt", "nothing\n");
	for (int i = 0; i < 16; i++) {
		char day[16], rate[32];

		snprintf(day, sizeof(day), "%02d", i + 1);
		snprintf(rate, sizeof(rate), "%d.%d", i < 11 ? 10 : 20, i % 3);
		buf_printf(&trend, "{\"date\": \"202601%s-000000\", \"backend\": \"vllm\", \"model_id\": \"m\", "
			   "\"num_prompts\": 6, \"duration\": 2.5, \"completed\": 6, \"failed\": 0, "
			   "\"request_throughput\": %s, \"output_throughput\": 8}\n", day, rate);
	}
	run_write("trend.jsonl", trend.data);
	buf_release(&trend);
	CHECK(row);
}

static int setup(void **state)
{
	char path[500];

	if (run_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%.400s/tests/cli/foreign", verb_root);
	verb_let("FOREIGN", path);
	return 0;
}

RUN_MAIN(setup, cmocka_unit_test(foreign), cmocka_unit_test(life))
