/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyse_overview.c - what the first page concludes: the best configuration at each load,
 * what is level with it, what INVALID runs would have won, what meets a need, and what changed.
 */
#include "analyse_rig.h"

struct made {
	const char *workload, *gpu, *kind; /* kind: of the load */
	double tp, load, user, gpu_rate, ttft_ms;
	const char *invalid, *degraded;
};

static int64_t make(struct rig *r, struct made m)
{
	rig_text(r, "workload", m.workload ? m.workload : "Llama-8B");
	rig_text(r, "gpu_model", m.gpu);
	rig_number(r, "server.tensor_parallel_size", m.tp > 0 ? m.tp : 1);
	if (m.load > 0) {
		rig_number(r, "load", m.load);
		rig_text(r, "load_kind", m.kind ? m.kind : "concurrency");
	}
	rig_number(r, "timestamp", (double)(1000 + r->next));
	rig_number(r, "tokens_per_s_per_user", m.user);
	if (m.gpu_rate > 0)
		rig_number(r, "tokens_per_s_per_gpu", m.gpu_rate);
	rig_number(r, "output_throughput", m.gpu_rate > 0 ? m.gpu_rate : 1000 / m.user);
	rig_number(r, "p99_ttft_ms", m.ttft_ms > 0 ? m.ttft_ms : 100);
	rig_text(r, "status", "success");
	rig_text(r, "verdict", m.invalid ? "INVALID" : m.degraded ? "DEGRADED" : "VALID");
	if (m.degraded)
		rig_text(r, "trust.degraded", m.degraded);
	if (m.invalid)
		rig_text(r, "trust.invalid", m.invalid);
	return rig_run(r, 0);
}

static bool is_true(const struct json_value *v, const char *path)
{
	return json_bool(rig_at(v, path), false);
}

/* At low load h200 is faster, at the others b200 has more throughput; TP4 is the fast one. */
static void grid(struct rig *r)
{
	static const double load[] = { 1, 4, 8, 64 };

	for (size_t i = 0; i < 4; i++)
		for (int tp = 1; tp <= 4; tp += 3) {
			double user = (300 - 60 * (double)i) * (tp > 1 ? 1.5 : 1);
			double rate = (200 + 500 * (double)i) * (tp > 1 ? 0.5 : 1);

			make(r, (struct made){ .gpu = "b200", .tp = tp, .load = load[i],
					       .user = user, .gpu_rate = rate,
					       .ttft_ms = 100 * (double)(i + 1) });
			make(r, (struct made){ .gpu = "h200", .tp = tp, .load = load[i],
					       .user = i ? user / 2 : user * 2,
					       .gpu_rate = rate / 2, .ttft_ms = 50 });
		}
}

static void best_of_each_load(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	grid(&r);
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "runs", 16);
	rig_same(v, "rows_by", "gpu_model");
	assert_int_equal(rig_count(v, "loads"), 3);
	rig_near(v, "loads/0/value", 1);
	rig_near(v, "loads/1/value", 8); /* the nearest to the root of 1 x 64 */
	rig_near(v, "loads/2/value", 64);
	rig_same(v, "loads/2/label", "concurrency 64");
	rig_same(v, "rows/0/name", "b200");
	rig_same(v, "rows/1/name", "h200");
	rig_same(v, "rows/0/cells/0/configuration", "TP4");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_user", 450);
	assert_false(is_true(v, "rows/0/cells/0/is_best"));
	rig_near(v, "rows/1/cells/0/tokens_per_s_per_user", 900);
	assert_true(is_true(v, "rows/1/cells/0/is_best"));
	rig_same(v, "rows/0/cells/2/configuration", "TP1");
	rig_near(v, "rows/0/cells/2/tokens_per_s_per_gpu", 1700);
	assert_true(is_true(v, "rows/0/cells/1/is_best"));
	assert_true(is_true(v, "rows/0/cells/2/is_best"));
	rig_same(v, "sentence", "b200 leads at high load with 1,700 tokens/s/GPU (TP1). h200 leads at low "
		 "load with 900 tokens/s/user (TP4).");
	assert_int_equal(rig_count(v, "at_need"), 0);
	/* Another rank: the shortest TTFT. */
	v = rig_ask(&r, analyse_overview, "{\"rank\": \"ttft\"}");
	assert_true(is_true(v, "rows/1/cells/2/is_best"));
	assert_false(is_true(v, "rows/0/cells/2/is_best"));
	/* One that leads at both ends is named once. */
	v = rig_ask(&r, analyse_overview, "{\"rank\": \"gpu\"}");
	rig_same(v, "sentence", "b200 leads at high load with 1,700 tokens/s/GPU (TP1) and at low load "
		 "with 200 tokens/s/GPU (TP1).");
	rig_refused(&r, analyse_overview, "{\"rank\": \"best\"}", "/rank");
	rig_refused(&r, analyse_overview, "{\"need\": 1}", "/need");
	rig_refused(&r, analyse_overview, "{\"need\": {\"p99_ttft_ms\": -1}}", "/need/p99_ttft_ms");
	rig_end(&r);
}

/* One request per second is not one request at once, however fast it is answered. */
static void loads_of_two_kinds(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	make(&r, (struct made){ .gpu = "b200", .tp = 1, .load = 1, .kind = "request rate",
				.user = 5000, .gpu_rate = 9, .ttft_ms = 10 });
	grid(&r);
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "loads"), 3);
	rig_same(v, "loads/0/label", "concurrency 1");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_user", 450);
	assert_true(is_true(v, "rows/1/cells/0/is_best"));
	/* A need does not ask for a kind of load. */
	v = rig_ask(&r, analyse_overview, "{\"need\": {\"tokens_per_s_per_user\": 4000}}");
	rig_near(v, "at_need/0/tokens_per_s_per_gpu", 9);
	rig_end(&r);
}

static void within_a_need(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	grid(&r);
	v = rig_ask(&r, analyse_overview, "{\"need\": {\"p99_ttft_ms\": 200}}");
	assert_int_equal(rig_at(v, "rows/0/cells/2")->kind, JSON_NULL);
	assert_true(is_true(v, "rows/1/cells/2/is_best"));
	rig_same(v, "at_need/0/name", "b200"); /* at 4, where its P99 TTFT is 200 */
	rig_near(v, "at_need/0/tokens_per_s_per_gpu", 700);
	rig_near(v, "at_need/1/tokens_per_s_per_gpu", 850);
	v = rig_ask(&r, analyse_overview, "{\"need\": {\"tokens_per_s_per_user\": 5000}}");
	rig_same(v, "sentence", "No run meets the need.");
	rig_end(&r);
}

/* Repeats whose intervals overlap, and single runs within 2 %, are all the best. */
static void level(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 3; i++) {
		make(&r, (struct made){ .gpu = "a", .load = 8, .user = 9, .gpu_rate = 1000 + 100 * i });
		make(&r, (struct made){ .gpu = "b", .load = 8, .user = 9, .gpu_rate = 900 + 60 * i });
		make(&r, (struct made){ .gpu = "c", .load = 8, .user = 9, .gpu_rate = 700 + 100 * i });
	}
	make(&r, (struct made){ .gpu = "d", .load = 8, .user = 9, .gpu_rate = 1079 });
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "loads"), 1);
	rig_same(v, "rows/0/name", "a");
	rig_same(v, "rows/1/name", "d");
	assert_int_equal(rig_count(v, "rows/0/cells/0/ids"), 3);
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_gpu", 1100);
	for (size_t i = 0; i < 4; i++) {
		static const bool is_best[] = { true, true, true, false }; /* a, d, b, c */
		char path[64];

		snprintf(path, sizeof(path), "rows/%zu/cells/0/is_best", i);
		if (is_true(v, path) != is_best[i])
			fail_msg("%s", path);
	}
	rig_same(v, "sentence", "a, d and b are level with 1,100 tokens/s/GPU.");
	rig_end(&r);
}

/* Many repeats overlap at their ends whatever they are; their medians are known well. */
static void many_repeats(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 44; i++) {
		make(&r, (struct made){ .gpu = "a", .load = 8, .user = 9,
					.gpu_rate = 900 + 20 * (i % 11) });
		make(&r, (struct made){ .gpu = "b", .load = 8, .user = 9,
					.gpu_rate = 800 + 20 * (i % 11) });
	}
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_gpu", 1000);
	rig_near(v, "rows/1/cells/0/tokens_per_s_per_gpu", 900);
	assert_true(is_true(v, "rows/0/cells/0/is_best"));
	assert_false(is_true(v, "rows/1/cells/0/is_best"));
	rig_end(&r);
}

/* A number that is a median opens the run nearest to it. One row is not said to lead. */
static void one_row(void **state)
{
	static const double rate[] = { 100, 310, 300 };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 3; i++)
		make(&r, (struct made){ .gpu = "a", .load = 8, .user = 9, .gpu_rate = rate[i] });
	make(&r, (struct made){ .gpu = "a", .load = 1, .user = 40, .gpu_rate = 40 });
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "rows/0/cells/1/tokens_per_s_per_gpu", 300);
	rig_near(v, "rows/0/cells/1/id", 3);
	assert_int_equal(rig_count(v, "rows/0/cells/1/ids"), 3);
	rig_same(v, "sentence", "a reaches 300 tokens/s/GPU at high load and 40 tokens/s/user at low load.");
	v = rig_ask(&r, analyse_overview, "{\"need\": {\"tokens_per_s_per_user\": 5}}");
	rig_near(v, "at_need/0/id", 3);
	v = rig_ask(&r, analyse_overview, "{\"rank\": \"usd\"}");
	rig_same(v, "sentence", "No price of a GPU hour is set, so nothing can be ranked by cost.");
	rig_end(&r);
}

static void invalid_would_lead(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	grid(&r);
	make(&r, (struct made){ .gpu = "h200", .tp = 8, .load = 64, .user = 9, .gpu_rate = 9000,
				.invalid = "output_throughput" });
	/* Speed is INVALID, throughput is not: it counts at high load. */
	make(&r, (struct made){ .gpu = "b200", .tp = 8, .load = 64, .user = 9, .gpu_rate = 1800,
				.invalid = "tpot" });
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "rows/1/cells/2/invalid", 1);
	assert_true(is_true(v, "rows/1/cells/2/would_lead"));
	assert_false(is_true(v, "rows/1/cells/2/is_best"));
	rig_near(v, "rows/0/cells/2/invalid", 0);
	rig_near(v, "rows/0/cells/2/tokens_per_s_per_gpu", 1800);
	rig_same(v, "sentence", "b200 leads at high load with 1,800 tokens/s/GPU (TP8). h200 leads at low "
		 "load with 900 tokens/s/user (TP4). INVALID runs that would lead are left out.");
	rig_near(v, "attention/invalid", 2);
	rig_near(v, "attention/failed", 0);
	v = rig_ask(&r, analyse_overview, "{\"need\": {\"tokens_per_s_per_user\": 9}}");
	assert_true(is_true(v, "rows/1/cells/2/would_lead"));
	/* What does not meet the need would not lead. */
	v = rig_ask(&r, analyse_overview, "{\"need\": {\"tokens_per_s_per_user\": 10}}");
	assert_false(is_true(v, "rows/1/cells/2/would_lead"));
	v = rig_ask(&r, analyse_overview, "{\"include_invalid\": true}");
	rig_near(v, "rows/0/cells/2/tokens_per_s_per_gpu", 9000);
	rig_same(v, "rows/0/name", "h200");
	rig_end(&r);
}

/* The newest version that counts is shown, and the INVALID runs of a newer one are counted. */
static void newer_is_invalid(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 18; i++) {
		bool is_b = i >= 9;
		int version = i % 9 / 3;

		rig_text(&r, "environment.server.version", version == 0 ? "0.1" : version == 1 ? "0.2" : "0.3");
		make(&r, (struct made){ .gpu = is_b ? "b" : "a", .load = 8, .user = 9,
					.gpu_rate = is_b ? 10 : 100 * (version + 1),
					.invalid = is_b || version < 2 ? NULL : "output_throughput,tpot" });
	}
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_gpu", 200);
	assert_int_equal(rig_count(v, "rows/0/cells/0/ids"), 3);
	rig_near(v, "rows/0/cells/0/invalid", 3);
	assert_true(is_true(v, "rows/0/cells/0/would_lead"));
	rig_end(&r);
}

/* Only the throughput is INVALID in the newest version: a cell has the newest number there is. */
static void newer_throughput_is_invalid(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 16; i++) {
		bool is_new = i >= 8;

		rig_text(&r, "environment.server.version", is_new ? "0.2" : "0.1");
		make(&r, (struct made){ .gpu = i / 2 % 2 ? "a" : "b", .load = i % 2 ? 1 : 8,
					.user = is_new ? 90 : 100, .gpu_rate = is_new ? 300 : 200,
					.invalid = is_new ? "output_throughput" : NULL });
	}
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_user", 90);
	rig_same(v, "rows/0/cells/0/version", "0.2");
	rig_near(v, "rows/0/cells/1/tokens_per_s_per_gpu", 200);
	rig_same(v, "rows/0/cells/1/version", "0.1");
	rig_near(v, "rows/0/cells/1/invalid", 2);
	rig_near(v, "rows/0/cells/1/tokens_per_s_per_user", 100); /* of the same runs */
	rig_end(&r);
}

/* What failed runs do not know names no row, whether one value is known or several. */
static void failed_lacks_facts(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 8; i++) {
		bool has_failed = i >= 4;

		rig_text(&r, "workload", "Llama-8B");
		rig_text(&r, "status", has_failed ? "failed" : "success");
		if (!has_failed) {
			rig_text(&r, "gpu_model", "h100");
			rig_text(&r, "environment.server.kind", "vllm");
			rig_number(&r, "tokens_per_s_per_gpu", 100);
		}
		rig_number(&r, "load", 8);
		rig_text(&r, "load_kind", "concurrency");
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_at(v, "rows_by")->kind, JSON_NULL);
	assert_int_equal(rig_count(v, "rows"), 1);
	rig_same(v, "rows/0/name", "h100");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_gpu", 100);
	rig_end(&r);
}

/* A client that does not look up the machine leaves it unknown: that is not a second machine. */
static void unknown_machine(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 8; i++) {
		if (i < 4)
			rig_text(&r, "hardware.cpu.model", "EPYC");
		rig_number(&r, "server.max_num_seqs", i % 2 ? 4 : 32);
		make(&r, (struct made){ .gpu = "h100", .load = 8, .user = 9, .gpu_rate = 100 });
	}
	v = rig_ask(&r, analyse_overview, "{}");
	rig_same(v, "rows_by", "server.max_num_seqs");
	rig_end(&r);
}

/* A leader with a doubtful number says so; a row of runs that all failed is none. */
static void degraded_leads(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 2; i++) {
		make(&r, (struct made){ .gpu = "a", .load = 8, .user = 9, .gpu_rate = 100 });
		make(&r, (struct made){ .gpu = "b", .load = 8, .user = 9, .gpu_rate = 200,
					.degraded = "output_throughput" });
		rig_text(&r, "workload", "Llama-8B");
		rig_text(&r, "gpu_model", "c");
		rig_number(&r, "load", 8);
		rig_text(&r, "load_kind", "concurrency");
		rig_text(&r, "status", "failed");
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "rows"), 2);
	assert_true(is_true(v, "rows/0/cells/0/is_degraded"));
	assert_false(is_true(v, "rows/1/cells/0/is_degraded"));
	rig_same(v, "sentence", "b leads with 200 tokens/s/GPU (DEGRADED).");
	rig_end(&r);
}

/* A cell with nothing but INVALID runs names them. */
static void all_invalid(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	make(&r, (struct made){ .gpu = "a", .load = 8, .user = 9, .gpu_rate = 100 });
	make(&r, (struct made){ .gpu = "b", .load = 8, .user = 9, .gpu_rate = 200,
				.invalid = "output_throughput" });
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "rows/1/cells/0/id", 2);
	rig_near(v, "rows/1/cells/0/tokens_per_s_per_gpu", NAN);
	assert_true(is_true(v, "rows/1/cells/0/would_lead"));
	assert_true(is_true(v, "rows/0/cells/0/is_best"));
	rig_end(&r);
}

static void few_runs(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "runs", 0);
	rig_same(v, "sentence", "There are no runs.");
	assert_int_equal(rig_count(v, "rows"), 0);
	assert_int_equal(rig_count(v, "loads"), 0);
	assert_int_equal(rig_count(v, "changes"), 0);
	assert_int_equal(rig_count(v, "latest"), 0);
	/* One run, no load, no number of GPUs. */
	make(&r, (struct made){ .gpu = "b200", .user = 4 });
	v = rig_ask(&r, analyse_overview, "{}");
	rig_same(v, "sentence", "b200 reaches 250 tokens/s.");
	rig_same(v, "loads/0/label", "as measured");
	rig_same(v, "rows/0/name", "b200");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_user", 4);
	assert_int_equal(rig_count(v, "latest"), 1);
	rig_near(v, "latest/0/runs", 1);
	rig_near(v, "latest/0/time", 1001);
	/* Runs that do not say when they were measured, such as those of bench throughput. */
	rig_text(&r, "suite", "offline");
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "latest/0/time", 1001);
	rig_same(v, "latest/1/suite", "offline");
	rig_near(v, "latest/1/time", NAN);
	rig_end(&r);
}

static void default_workload(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++)
		make(&r, (struct made){ .workload = "history", .gpu = "h100", .load = 8, .user = 50,
					.gpu_rate = 700 + i });
	for (int i = 0; i < 4; i++)
		make(&r, (struct made){ .workload = "grid", .gpu = i % 2 ? "h100" : "b200",
					.tp = 1 + i / 2, .load = 8, .user = 50, .gpu_rate = 100 });
	/* Without a run that counts, a workload is not the first one. */
	for (int i = 0; i < 8; i++)
		make(&r, (struct made){ .workload = "broken", .gpu = i % 2 ? "h100" : "b200",
					.tp = 1 + i / 2, .load = 8, .user = 50, .gpu_rate = 100,
					.invalid = "output_throughput,tpot" });
	v = rig_ask(&r, analyse_overview, "{}");
	rig_same(v, "workload", "grid");
	rig_near(v, "runs", 32);
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_gpu", 100);
	v = rig_ask(&r, analyse_overview, "{\"workload\": \"history\"}");
	rig_near(v, "rows/0/cells/0/tokens_per_s_per_gpu", 709.5);
	rig_end(&r);
}

/* Two series get slower at one commit: one line. A mark takes it out. */
static void changes(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int commit = 0; commit < 24; commit++)
		for (int k = 0; k < 2; k++) {
			char name[16];

			snprintf(name, sizeof(name), "c%06d", commit);
			rig_text(&r, "provenance.engine_commit", name);
			rig_number(&r, "median_ttft_ms", 100 + rig_normal(&r));
			rig_text(&r, "suite", commit < 12 ? "old" : "new");
			make(&r, (struct made){ .gpu = "b200", .tp = 1 + k, .load = 8, .user = 50,
						.gpu_rate = (commit < 12 ? 1000 : 900 - 10 * k) +
							    rig_normal(&r) });
		}
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "changes"), 1);
	rig_same(v, "changes/0/metric", "output_throughput");
	rig_same(v, "changes/0/commit", "c000012");
	rig_same(v, "changes/0/previous", "c000011");
	rig_same(v, "changes/0/verdict", "worse");
	assert_true(fabs(rig_real(v, "changes/0/effect") + 0.11) < 0.005);
	rig_near(v, "changes/0/series", 2);
	rig_near(v, "changes/0/series_total", 2);
	assert_int_equal(rig_count(v, "changes/0/before_ids"), 12);
	assert_int_equal(rig_count(v, "changes/0/after_ids"), 12);
	rig_same(v, "latest/0/suite", "new");
	rig_near(v, "latest/0/runs", 24);
	rig_same(v, "latest/1/suite", "old");
	rig_end(&r);
}

/* Of 32 configurations each is measured with some versions, the newer by a factor faster. */
static void versioned_as(struct rig *r, const char *suite, const char *version, double factor,
			 const char *variant)
{
	for (int i = 0; i < 32; i++) {
		if (suite)
			rig_text(r, "suite", suite);
		rig_text(r, "environment.server.version", version);
		rig_text(r, "server.gpu", i % 2 ? "b200" : "h200");
		rig_number(r, "server.tensor_parallel_size", 1 << (i / 2 % 4));
		rig_number(r, "benchmark.max_concurrency", 1 << (i / 8 % 4));
		if (variant)
			rig_text(r, "tags.variant", variant);
		make(r, (struct made){ .gpu = i % 2 ? "b200" : "h200", .load = 1 << (i / 8 % 4),
				       .user = 50, .gpu_rate = (100 + 37 * i) * factor *
				       exp(0.005 * rig_normal(r)) });
	}
}

static void versioned(struct rig *r, const char *suite, const char *version, double factor)
{
	versioned_as(r, suite, version, factor, NULL);
}

/* The newest version against the one before; the older ones and other suites take no part. */
static void versions(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	versioned(&r, "grid", "0.9.2", 0.5);
	versioned(&r, "grid", "0.13.0", 1.075);
	versioned(&r, "grid", "0.12.0", 1);
	versioned(&r, "alone", "0.12.0", 7);
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "versions"), 1);
	rig_same(v, "versions/0/by", "suite");
	rig_same(v, "versions/0/name", "grid");
	rig_same(v, "versions/0/older", "0.12.0");
	rig_same(v, "versions/0/newer", "0.13.0");
	rig_same(v, "versions/0/metric", "output_throughput");
	rig_same(v, "versions/0/verdict", "better");
	rig_same(v, "versions/0/text", "32 of 32 faster");
	assert_true(fabs(rig_real(v, "versions/0/effect") - 0.075) < 0.004);
	assert_true(rig_real(v, "versions/0/interval/0") > 0.07);
	assert_true(rig_real(v, "versions/0/interval/1") < 0.08);
	assert_int_equal(rig_count(v, "versions/0/notes"), 0);
	rig_end(&r);
	/* What a repeat was changed in is said, as Compare does. */
	rig_begin(&r);
	versioned(&r, "grid", "0.12.0", 1);
	versioned_as(&r, "grid", "0.13.0", 1.1, "fp8");
	versioned_as(&r, "grid", "0.13.0", 1.1, "fp8");
	versioned_as(&r, "grid", "0.13.0", 1, "bf16");
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "versions/0/notes"), 1);
	rig_same(v, "versions/0/notes/0", "0.13.0 mixes runs of 2 values of tags.variant");
	rig_end(&r);
}

/* No difference is no change; one version says nothing; else workloads are compared. */
static void versions_alike(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	versioned(&r, NULL, "0.12.0", 1);
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "versions"), 0);
	versioned(&r, "later", "0.13.0", 1);
	v = rig_ask(&r, analyse_overview, "{}");
	assert_int_equal(rig_count(v, "versions"), 1);
	rig_same(v, "versions/0/by", "workload");
	rig_same(v, "versions/0/verdict", "no_change");
	assert_true(fabs(rig_real(v, "versions/0/effect")) < 0.005);
	/* Nothing in common: why, and the page is not lost. */
	rig_text(&r, "environment.server.version", "0.14.0");
	rig_number(&r, "benchmark.max_concurrency", 999);
	make(&r, (struct made){ .gpu = "b200", .user = 50 });
	v = rig_ask(&r, analyse_overview, "{}");
	rig_same(v, "versions/0/newer", "0.14.0");
	assert_int_equal(rig_at(v, "versions/0/verdict")->kind, JSON_NULL);
	assert_non_null(strstr(json_text(rig_at(v, "versions/0/text"), STR("")).p, "no configuration"));
	rig_end(&r);
	/* All runs of the newest version failed: nothing is equal. */
	rig_begin(&r);
	for (int i = 0; i < 2; i++) {
		rig_text(&r, "suite", "grid");
		rig_text(&r, "workload", "Llama-8B");
		rig_text(&r, "environment.server.version", i ? "0.13.0" : "0.12.0");
		rig_text(&r, "status", i ? "failed" : "success");
		if (!i)
			rig_number(&r, "output_throughput", 100);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_overview, "{}");
	rig_same(v, "versions/0/text", "no configuration has a valid result of both");
	rig_end(&r);
}

/* Too many runs for a page that must open at once: named, and not compared. */
static void versions_many(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 32; i++)
		versioned(&r, "grid", i % 2 ? "0.13.0" : "0.12.0", 1);
	v = rig_ask(&r, analyse_overview, "{}");
	rig_same(v, "versions/0/verdict", "no_change");
	for (int i = 0; i < 32; i++)
		versioned(&r, "grid", i % 2 ? "0.13.0" : "0.12.0", 1);
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "versions/0/effect", NAN);
	assert_int_equal(rig_at(v, "versions/0/verdict")->kind, JSON_NULL);
	rig_same(v, "versions/0/text", "2,048 runs: open the comparison to see the answer");
	rig_end(&r);
}

/* Of more runs than one page can look at, the newest: what was retired long ago leads nothing. */
static void newest_of_many(void **state)
{
	enum { OLD = 10, NEW = 100000 };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < OLD; i++)
		make(&r, (struct made){ .workload = "Retired-1B", .gpu = "v100", .load = i + 1,
					.user = 900 });
	for (int i = 0; i < NEW; i++)
		make(&r, (struct made){ .gpu = i % 2 ? "b200" : "h200", .load = i % 4 + 1,
					.user = i % 2 ? 200 : 100 });
	v = rig_ask(&r, analyse_overview, "{}");
	rig_near(v, "matching", OLD + NEW);
	rig_near(v, "runs", NEW);
	rig_same(v, "workload", "Llama-8B");
	assert_int_equal(rig_count(v, "workloads"), 1);
	assert_int_equal(rig_count(v, "rows"), 2);
	v = rig_ask(&r, analyse_overview, "{\"workload\": \"Retired-1B\"}");
	assert_int_equal(rig_count(v, "rows"), 0);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(best_of_each_load), cmocka_unit_test(loads_of_two_kinds),
		cmocka_unit_test(within_a_need),
		cmocka_unit_test(level), cmocka_unit_test(many_repeats),
		cmocka_unit_test(one_row),
		cmocka_unit_test(invalid_would_lead), cmocka_unit_test(newer_is_invalid),
		cmocka_unit_test(newer_throughput_is_invalid),
		cmocka_unit_test(failed_lacks_facts), cmocka_unit_test(unknown_machine),
		cmocka_unit_test(degraded_leads),
		cmocka_unit_test(all_invalid), cmocka_unit_test(few_runs),
		cmocka_unit_test(default_workload), cmocka_unit_test(changes),
		cmocka_unit_test(versions), cmocka_unit_test(versions_alike),
		cmocka_unit_test(versions_many), cmocka_unit_test(newest_of_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
