/* SPDX-License-Identifier: Apache-2.0 */
/* Golden reports of what not every run has: probes, engine counters, servers, steady state. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <math.h>

#include "core/json/read.h"
#include "out/report/report.h"
#define ANSWER_HEAD_BYTES 12000
#include "answers.h"

#define LINE "==================================================\n"

static const double p99[] = { 99 };

struct fixture {
	struct report_facts facts;
	struct metrics m;
	struct trust t;
	struct record r;
	struct report report;
	double percentile_ms[1];
};

static void fill(struct fixture *f)
{
	*f = (struct fixture){
		.facts = { .backend = "openai", .request_rate = (double)INFINITY, .burstiness = 1,
			   .transport = "native" },
		.m = { .opts = { .percentile = p99, .n_percentiles = 1, .has_tokenizer = true },
		       .completed = 2, .duration_s = 10, .total_input = 2048, .total_output = 256,
		       .total_cached = 1024, .n_cached_known = 1 },
		.percentile_ms = { 88.125 },
	};
	f->m.steady.percentile_ttft_ms = f->percentile_ms;
	f->report = (struct report){ .facts = &f->facts, .record = &f->r, .metrics = &f->m,
				     .trust = &f->t };
}

/* The lines from the one that begins with from up to the next heading; the JSON as it was. */
static void same_block(const struct report *r, const char *from, const char *want)
{
	struct buf out = { 0 }, json = { 0 };
	char *at, *end;

	report_terminal(r, REPORT_FULL, &out);
	at = strstr(out.data, from);
	if (!at)
		fail_msg("no block %s", from);
	end = strchr(at, '\n') + 1;
	while (*end != '-' && *end != '=' && *end)
		end = strchr(end, '\n') + 1;
	*end = 0;
	assert_string_equal(at, want);
	answers_release(&out);
	report_ours_json(r, &json);
	answers_release(&json);
}

static bool has_line(const struct report *r, const char *line)
{
	struct buf out = { 0 };
	bool is_found;

	report_terminal(r, REPORT_FULL, &out);
	is_found = strstr(out.data, line) != NULL;
	answers_release(&out);
	return is_found;
}

static void test_cached(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f);
	assert_false(has_line(&f.report, "cached"));
	f.m.opts.reports_cached_tokens = true;
	assert_true(has_line(&f.report,
			     "Total input tokens:                      2048      \n"
			     "Total cached tokens:                     1024      \n"
			     "Total generated tokens:                  256       \n"));
	f.m.n_cached_known = 0;
	assert_true(has_line(&f.report, "Total cached tokens:                     not reported\n"));
}

static void test_probe(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f);
	f.m.probe = (struct metrics_probe){ .failed = 3 };
	assert_false(has_line(&f.report, "Probe Requests")); /* none succeeded: no statistics */
	assert_true(has_line(&f.report, "Probe requests failed:                   3         \n"));
	f.m.probe = (struct metrics_probe){ 7, 3, 12.345, 99.9, 100 };
	same_block(&f.report, "------------------Probe",
		   "------------------Probe Requests------------------\n"
		   "Probe requests completed:                7         \n"
		   "Probe requests failed:                   3         \n"
		   "Median probe E2EL (ms):                  12.35     \n"
		   "P99 probe E2EL (ms):                     99.90     \n"
		   "Max probe E2EL (ms):                     100.00    \n");
}

static void set_spec(struct metrics *m)
{
	m->spec = (struct metrics_spec){
		.is_reported = true, .acceptance_rate = 62.504, .acceptance_length = 2.876,
		.drafts = 1000, .draft_tokens = 3000, .accepted_tokens = 1875,
		.position_rate = { 0.9, 0.625, 0.35 }, .n_positions = 3,
	};
}

static void set_diffusion(struct metrics *m)
{
	m->diffusion = (struct metrics_diffusion){
		.is_reported = true, .committed_throughput = 3200.126, .steps_per_canvas = 7,
		.committed_per_step = 4.5714, .denoising_steps = 70.99, .committed_tokens = 320,
		.canvas_positions = 2560,
	};
}

static void test_engine(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f);
	set_spec(&f.m);
	same_block(&f.report, "---------------Speculative",
		   "---------------Speculative Decoding---------------\n"
		   "Acceptance rate (%):                     62.50     \n"
		   "Acceptance length:                       2.88      \n"
		   "Drafts:                                  1000      \n"
		   "Draft tokens:                            3000      \n"
		   "Accepted tokens:                         1875      \n"
		   "Per-position acceptance (%):\n"
		   "  Position 0:                            90.00     \n"
		   "  Position 1:                            62.50     \n"
		   "  Position 2:                            35.00     \n");
	assert_true(has_line(&f.report, "  Position 2:                            35.00     \n" LINE));
	f.m.spec.n_positions = 0;
	assert_false(has_line(&f.report, "Per-position"));
	set_diffusion(&f.m);
	same_block(&f.report, "----------------Diffusion",
		   "----------------Diffusion Decoding----------------\n"
		   "Committed throughput (tok/s):            3200.13   \n"
		   "Denoising steps per canvas:              7.00      \n"
		   "Committed per denoising step:            4.57      \n"
		   "Committed tokens:                        320       \n"
		   "Denoising steps:                         70        \n"
		   "Canvas positions evaluated:              2560      \n");
	assert_false(has_line(&f.report, "Speculative")); /* one block at most */
}

static void test_servers(void **state)
{
	struct fixture f;

	(void)state;
	fill(&f);
	assert_false(has_line(&f.report, "Server Metrics"));
	f.m.servers = (struct metrics_server){
		.scrapes = 12, .failed_scrapes = 1,
		.running = { .n = 10, .min = 1, .mean = 7.256, .max = 64, .last = 3 },
		.kv_usage = { .n = 10, .min = 0, .mean = 0.123456, .max = 0.98765, .last = 0.5 },
		.prefix_queries = { true, 2000 }, .prefix_hits = { true, 500 },
		.preemptions = { true, 4 },
	};
	same_block(&f.report, "------------------Server",
		   "------------------Server Metrics------------------\n"
		   "Running requests min/mean/max/last:      1 / 7.26 / 64 / 3\n"
		   "KV cache use min/mean/max/last (%):      0.00 / 12.35 / 98.77 / 50.00\n"
		   "Prefix cache hit rate (%):               25.00     \n"
		   "Preemptions:                             4         \n"
		   "Readings of /metrics, done/failed:       12 / 1    \n"
		   "The KV cache was too small for the requests in the batch: 4 times one was thrown out "
		   "and computed again, which is in the latencies. Usual remedies: more memory for the "
		   "cache (--gpu-memory-utilization, --tensor-parallel-size, --pipeline-parallel-size, "
		   "--kv-cache-dtype fp8) or fewer requests in it (--max-num-seqs, "
		   "--max-num-batched-tokens, --max-concurrency of the load).\n");
	f.m.servers.preemptions.value = 1;
	assert_true(has_line(&f.report, " 1 time one was "));
	f.m.servers.preemptions.value = 0;
	assert_false(has_line(&f.report, "remedies"));
	assert_true(has_line(&f.report, "Preemptions:                             0"));
	f.m.servers.preemptions = (struct metrics_growth){ 0 };
	assert_false(has_line(&f.report, "Preemptions"));
}

static void set_steady(struct metrics *m)
{
	m->opts.max_concurrency = 64;
	m->opts.steady_threshold = 0.95;
	m->steady.is_wanted = m->steady.is_reached = true;
	m->steady.first_ns = 1000000000;
	m->steady.start_ns = 3500000000;
	m->steady.end_ns = 43500000000;
	m->steady.duration_s = 40;
	m->steady.run_s = 50;
	m->steady.threshold_requests = 61;
	m->steady.observed_peak = 64;
	m->steady.started = 400;
	m->steady.completed = 380;
	m->steady.total = 500;
	m->steady.request_throughput = 9.5;
	m->steady.input_throughput = 10240;
	m->steady.output_throughput = 1280;
	m->steady.total_token_throughput = 11520;
	m->steady.mean_ttft_ms = 35.1;
	m->steady.median_ttft_ms = 31;
	m->steady.mean_tpot_ms = 7.1;
	m->steady.median_tpot_ms = 7;
	m->steady.p90_tpot_ms = 8;
	m->steady.p99_tpot_ms = 9.9;
}

static void test_steady(void **state)
{
	static const char head[] =
		"-------------------Steady State-------------------\n"
		"Steady concurrency needed/peak:          61 / 64   \n";
	static const char numbers[] =
		"Steady from/to (s after first start):    2.50 / 42.50\n"
		"Steady requests started/completed:       400 / 380 \n"
		"Steady requests (req/s):                 9.50      \n"
		"Steady input tokens (tok/s):             10240.00  \n"
		"Steady output tokens (tok/s):            1280.00   \n"
		"Steady mean TTFT (ms):                   35.10     \n"
		"Steady median TTFT (ms):                 31.00     \n"
		"Steady P99 TTFT (ms):                    88.12     \n"
		"Steady mean TPOT (ms):                   7.10      \n"
		"Steady median TPOT (ms):                 7.00      \n"
		"Steady P90 TPOT (ms):                    8.00      \n"
		"Steady P99 TPOT (ms):                    9.90      \n";
	struct fixture f;
	char want[2000];

	(void)state;
	fill(&f);
	assert_false(has_line(&f.report, "Steady"));
	set_steady(&f.m);
	snprintf(want, sizeof(want), "%s%s", head, numbers);
	same_block(&f.report, "-------------------Steady", want);
	f.m.steady.is_short = true;
	snprintf(want, sizeof(want), "%s%sThe steady state lasted 40.0 s (80.0 %% of the run), which "
		 "may be too short to represent it.\n", head, numbers);
	same_block(&f.report, "-------------------Steady", want);
	f.m.steady.is_reached = false;
	f.m.steady.observed_peak = 60;
	same_block(&f.report, "-------------------Steady",
		   "-------------------Steady State-------------------\n"
		   "Steady concurrency needed/peak:          61 / 60   \n"
		   "There was no steady state: never more than 60 requests were in flight, and it takes 61.\n");
}

/* ---- the result file ---- */

static const struct json_value *result_of(const struct report *r, struct arena *a)
{
	struct buf out = { 0 };
	struct json_value *v;
	struct err e = { 0 };

	assert_int_equal(report_result_json(r, &out, &e), 0);
	assert_int_equal(json_parse(a, buf_str(&out), &v, &e), 0);
	answers_release(&out);
	return v;
}

static void same_keys(const struct json_value *v, const char *first, const char *const *want)
{
	size_t i = 0;

	while (i < v->count && !str_is(v->key[i], first))
		i++;
	for (; *want; want++, i++) {
		if (i == v->count || !str_is(v->key[i], *want))
			fail_msg("%s does not stand where it should", *want);
	}
}

/* Both engine blocks stay in the file, in upstream's order. */
static void test_keys(void **state)
{
	static const char *const totals[] = {
		"total_input_tokens", "total_output_tokens", "total_cached_tokens",
		"request_throughput", NULL };
	static const char *const want[] = {
		"rtfx", "probe_completed", "probe_failed", "probe_median_e2el_ms",
		"probe_p99_e2el_ms", "probe_max_e2el_ms", "rps_change_events",
		"spec_decode_acceptance_rate", "spec_decode_acceptance_length",
		"spec_decode_num_drafts", "spec_decode_draft_tokens", "spec_decode_accepted_tokens",
		"spec_decode_per_position_acceptance_rates", "diffusion_committed_throughput",
		"diffusion_steps_per_canvas", "diffusion_committed_per_step",
		"diffusion_committed_tokens", "diffusion_denoising_steps",
		"diffusion_canvas_positions", "mean_e2el_ms", NULL };
	const struct json_value *v;
	struct arena a = { 0 };
	struct fixture f;

	(void)state;
	fill(&f);
	f.facts.ramp_strategy = "linear";
	f.m.opts.reports_cached_tokens = true;
	f.m.probe = (struct metrics_probe){ 7, 3, 12.345, 99.9, 100 };
	f.m.block[BLOCK_E2EL].is_reported = true;
	f.m.block[BLOCK_E2EL].percentile_ms = f.percentile_ms;
	set_spec(&f.m);
	set_diffusion(&f.m);
	v = result_of(&f.report, &a);
	same_keys(v, "total_input_tokens", totals);
	same_keys(v, "rtfx", want);
	assert_true(json_int(json_get(v, "diffusion_denoising_steps"), 0) == 70);
	assert_int_equal(json_get(v, "spec_decode_per_position_acceptance_rates")->count, 3);
	arena_release(&a);
	fill(&f);
	v = result_of(&f.report, &a);
	assert_null(json_get(v, "total_cached_tokens"));
	assert_null(json_get(v, "probe_completed"));
	assert_null(json_get(v, "spec_decode_num_drafts"));
	assert_null(json_get(v, "diffusion_committed_tokens"));
	arena_release(&a);
}

static void test_ours(void **state)
{
	static const char *const steady[] = {
		"window", "request_throughput", "input_throughput", "output_throughput",
		"total_token_throughput", "mean_ttft_ms", "median_ttft_ms", "percentiles_ttft_ms",
		"mean_tpot_ms", "median_tpot_ms", "p90_tpot_ms", "p99_tpot_ms", NULL };
	static const char *const window[] = {
		"start_s", "end_s", "duration_s", "target_concurrency", "threshold",
		"threshold_abs", "observed_peak", "requests_started_in_window",
		"requests_completed_in_window", "requests_total", "warning", NULL };
	const struct json_value *v, *s, *w, *server;
	struct metrics_server each[2] = { { .url = STR("http://a") }, { .url = STR("http://b") } };
	struct arena a = { 0 };
	struct fixture f;

	(void)state;
	fill(&f);
	set_steady(&f.m);
	f.m.input_throughput = 204.8;
	f.m.servers.prefix_queries = (struct metrics_growth){ true, 2000 };
	f.m.servers.prefix_hits = (struct metrics_growth){ true, 500 };
	f.m.server = each;
	f.m.n_servers = 2;
	f.m.server_note = STR("http://c/metrics: HTTP status 404");
	v = json_get(result_of(&f.report, &a), "profllm");
	assert_true(json_real(json_get(v, "input_throughput"), 0) == 204.8);
	assert_true(json_real(json_get(v, "cached_share"), 0) == 0.5);
	s = json_get(v, "steady_state");
	w = json_get(s, "window");
	same_keys(s, "window", steady);
	same_keys(w, "start_s", window);
	assert_true(json_real(json_get(w, "start_s"), 0) == 2.5);
	assert_int_equal(json_get(w, "warning")->kind, JSON_NULL);
	assert_true(json_real(&json_get(s, "percentiles_ttft_ms")->item[0].item[1], 0) == 88.125);
	server = json_get(v, "server");
	assert_true(json_real(json_get(server, "prefix_hit_rate"), 0) == 0.25);
	assert_int_equal(json_get(server, "running")->kind, JSON_NULL);
	assert_int_equal(json_get(server, "preemptions")->kind, JSON_NULL);
	assert_int_equal(json_get(server, "each")->count, 2);
	assert_true(str_is(json_text(json_get(server, "not_read"), STR("")),
			   "http://c/metrics: HTTP status 404"));
	arena_release(&a);
	f.m.steady.is_reached = false;
	s = json_get(json_get(result_of(&f.report, &a), "profllm"), "steady_state");
	assert_int_equal(s->count, 1);
	assert_int_equal(json_get(json_get(s, "window"), "start_s")->kind, JSON_NULL);
	assert_int_equal(json_get(json_get(s, "window"), "warning")->kind, JSON_STRING);
	arena_release(&a);
	f.m.steady.is_wanted = false;
	assert_null(json_get(json_get(result_of(&f.report, &a), "profllm"), "steady_state"));
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cached),
		cmocka_unit_test(test_probe),
		cmocka_unit_test(test_engine),
		cmocka_unit_test(test_servers),
		cmocka_unit_test(test_steady),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_ours),
	};

	return cmocka_run_group_tests_name("report_server", tests, NULL, NULL);
}
