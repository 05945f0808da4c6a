/* SPDX-License-Identifier: Apache-2.0 */
/* Columns by their names: group, unit, direction, label. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "results/index/names.h"

static const struct {
	const char *name, *group, *unit;
	int better;
	bool is_metric;
	const char *label;
} rows[] = {
	{ "median_ttft_ms", "metric", "ms", -1, true, "Median TTFT" },
	{ "p99.9_itl_ms", "metric", "ms", -1, true, "P99.9 ITL" },
	{ "p95_e2el_from_due_ms", "metric", "ms", -1, true, "P95 E2EL from due" },
	{ "request_throughput", "metric", "requests/s", 1, true, "Request throughput" },
	{ "output_throughput", "metric", "tokens/s", 1, true, "Output throughput" },
	{ "completed", "metric", "requests", 1, true, "Completed" },
	{ "failed", "metric", "requests", -1, true, "Failed" },
	{ "avg_latency", "metric", "s", -1, true, "Mean latency" },
	{ "p90_latency", "metric", "s", -1, true, "P90 latency" },
	{ "avg_cold_startup_time", "metric", "s", -1, true, "Mean cold startup time" },
	{ "spec_decode_acceptance_rate", "metric", "%", 1, true, "Spec decode acceptance rate" },
	{ "total_input_tokens", "metric", "tokens", 0, true, "Total input tokens" },
	{ "run_id", "run", "", 0, false, "Run ID" },
	{ "timestamp", "run", "", 0, false, "Date" },
	{ "experiment_duration_s", "run", "s", 0, false, "Experiment duration" },
	{ "server.tensor_parallel_size", "server", "", 0, false, "tensor_parallel_size" },
	{ "server.compilation_config.mode", "server", "", 0, false, "compilation_config.mode" },
	{ "prefill.max_num_seqs", "prefill", "", 0, false, "max_num_seqs" },
	{ "benchmark.request_rate", "benchmark", "requests/s", 0, false, "request_rate" },
	{ "system.energy_j", "system", "J", -1, true, "energy_j" },
	{ "system.gpu.power_w.mean", "system", "W", 0, true, "gpu.power_w.mean" },
	{ "system.host.cpus_busy.max", "system", "CPUs", 0, true, "host.cpus_busy.max" },
	{ "system.j_per_token", "system", "J/token", -1, true, "j_per_token" },
	{ "trust.client_lag_ms.p99", "trust", "ms", -1, true, "client_lag_ms.p99" },
	{ "trust.client_lag_ms.n", "trust", "", 0, false, "client_lag_ms.n" },
	{ "trust.reasons", "trust", "", 0, false, "reasons" },
	{ "steady_state.output_throughput", "steady_state", "tokens/s", 1, true,
	  "Steady state: output throughput" },
	{ "settled.ttft_ms.low", "settled", "ms", -1, true, "settled.ttft_ms.low" },
	{ "sessions.completed", "sessions", "sessions", 1, true, "completed" },
	{ "sessions.ttft_later_turns_ms.p99", "sessions", "ms", 0, true, "ttft_later_turns_ms.p99" },
	{ "correctness.constrained_correct_rate", "correctness", "%", 1, true,
	  "constrained_correct_rate" },
	{ "priority.-3.e2el_ms.p99", "priority", "ms", -1, true, "-3.e2el_ms.p99" },
	{ "priority.1.failed", "priority", "requests", -1, true, "1.failed" },
	{ "priority.", "priority", "", 0, false, "" },
	{ "caching_speedup", "metric", "", 1, true, "Caching speedup" },
	{ "hardware.memory.total_bytes", "hardware", "bytes", 0, false, "memory.total_bytes" },
	{ "hardware.gpu", "hardware", "", 0, false, "gpu" },
	{ "tags.__proto__", "tags", "", 0, false, "__proto__" },
	{ "tags.", "tags", "", 0, false, "" },
	{ "", "metric", "", 0, true, "" },
	{ "_ms", "metric", "ms", -1, true, "Ms" },
};

static void names(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct column_name c = column_name(str_of(rows[i].name));
		struct buf label = { 0 };

		print_message("# %s\n", rows[i].name);
		assert_true(str_is(c.group, rows[i].group));
		assert_string_equal(c.unit, rows[i].unit);
		assert_int_equal(c.better, rows[i].better);
		assert_int_equal(c.is_metric, rows[i].is_metric);
		assert_string_equal(column_unit(str_of(rows[i].name)), rows[i].unit);
		assert_int_equal(column_better(str_of(rows[i].name)), rows[i].better);
		column_label(str_of(rows[i].name), &label);
		assert_true(str_is(buf_str(&label), rows[i].label));
		buf_release(&label);
	}
}

/* Columns that no user set are not offered as parameters. */
static void outcomes(void **state)
{
	static const char *const outcome[] = {
		"median_ttft_ms", "trust.client_lag_ms.n", "client.new_connections", "timestamp",
		"system.server.running.n", "steady_state.requests", "experiment_duration_s",
	};
	static const char *const choice[] = {
		"server.gpu", "prefill.max_num_seqs", "benchmark.max_concurrency", "hardware.gpu",
		"environment.driver", "tags.team", "provenance.engine_commit", "suite", "mode",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(outcome) / sizeof(*outcome); i++)
		assert_true(column_name(str_of(outcome[i])).is_outcome);
	for (size_t i = 0; i < sizeof(choice) / sizeof(*choice); i++)
		assert_false(column_name(str_of(choice[i])).is_outcome);
}

/* A name is a slice: what follows it is not read. */
static void slices(void **state)
{
	const char *text = "median_ttft_msX.server";

	(void)state;
	assert_string_equal(column_unit((struct str){ text, 14 }), "ms");
	assert_true(str_is(column_name((struct str){ text, 14 }).group, "metric"));
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(names),
		cmocka_unit_test(outcomes), cmocka_unit_test(slices) };

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("index_names", tests, NULL, NULL);
}
