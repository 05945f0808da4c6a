/* SPDX-License-Identifier: Apache-2.0 */
/* test_compare_gate.c - conditions: how they are read, judged, worded and written for CI. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "out/compare/gate.h"

#define ROWS(table) (sizeof(table) / sizeof(*(table)))

/* ---- reading ---- */

static void texts(void **state)
{
	static const struct {
		const char *text, *key;
		enum gate_op op;
		bool is_relative;
		double limit;
	} rows[] = {
		{ "p99_ttft_ms>200", "p99_ttft_ms", GATE_ABOVE, false, 200 },
		{ "p99_ttft_ms>+5%", "p99_ttft_ms", GATE_ABOVE, true, 0.05 },
		{ " request_throughput <= -2.5 %", "request_throughput", GATE_AT_MOST, true, -0.025 },
		{ "x<500", "x", GATE_BELOW, false, 500 },
		{ "output_throughput<1000 tok/s", "output_throughput", GATE_BELOW, false, 1000 },
		{ "output_throughput<1000 tokens/s", "output_throughput", GATE_BELOW, false, 1000 },
		{ "p99_e2el_ms>=2s", "p99_e2el_ms", GATE_AT_LEAST, false, 2000 },
		{ "avg_latency>1500 ms", "avg_latency", GATE_ABOVE, false, 1.5 },
		{ "percentiles.99<2 s", "percentiles.99", GATE_BELOW, false, 2 },
		{ "tokens_per_second<9 tok/s", "tokens_per_second", GATE_BELOW, false, 9 },
		{ "p99_e2el_ms>=2000ms", "p99_e2el_ms", GATE_AT_LEAST, false, 2000 },
	};
	static const struct { const char *text, *want; } bad[] = {
		{ "p99_ttft_ms", "'p99_ttft_ms' is not a metric, one of" },
		{ ">5", "is not a metric" },
		{ "", "is not a metric" },
		{ "x=5", "is not a metric" },
		{ "x>", "'x>' has no number after >; expected one such as 200, or +5%" },
		{ "x>=five", "has no number after >=;" },
		{ "x><5", "has no number after >" },
		{ "x>inf", "has no number" },
		{ "x>5%%", "'%%' after the number is not the unit of x; write the number alone" },
		{ "p99_ttft_ms>5 tok/s", "'tok/s' after the number is not the unit of p99_ttft_ms, "
					 "which is ms" },
	};
	struct arena a = { 0 };
	struct gate g;

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = { 0 };

		assert_int_equal(gate_parse(&g, str_of(rows[i].text), &a, &e), 0);
		assert_string_equal(g.key, rows[i].key);
		assert_int_equal(g.op, rows[i].op);
		assert_int_equal(g.is_relative, rows[i].is_relative);
		assert_true(fabs(g.limit - rows[i].limit) < 1e-12);
	}
	for (size_t i = 0; i < ROWS(bad); i++) {
		struct err e = { 0 };

		assert_int_equal(gate_parse(&g, str_of(bad[i].text), &a, &e), -1);
		assert_int_equal(e.code, ERR_USAGE);
		if (!strstr(e.text, bad[i].want))
			fail_msg("%s: %s", bad[i].text, e.text);
	}
	arena_release(&a);
}

static void keys(void **state)
{
	static const char *const good[] = { "p99_ttft_ms", "p99.9_itl_ms", "output_throughput", "failed",
					    "profllm.steady_state.output_throughput" };
	struct err e = { 0 };

	(void)state;
	for (size_t i = 0; i < ROWS(good); i++)
		assert_int_equal(gate_check_key(good[i], &e), 0);
	assert_int_equal(gate_check_key("output_troughput", &e), -1);
	assert_string_equal(e.text, "a result has no key 'output_troughput'; did you mean "
				    "'output_throughput'?");
	assert_int_equal(gate_check_key("backend", &e), -1);
	assert_non_null(strstr(e.text, "'backend' is not a number in a result but text"));
}

static void like(void **state)
{
	static const struct { const char *condition, *want; } rows[] = {
		{ "avg_latency>1", NULL },
		{ "percentiles.99>1", NULL },
		{ "percentiles.95>1", "'percentiles.95>1': a result of bench x has no number "
				      "'percentiles.95'; did you mean 'percentiles.99'?" },
		{ "p99_ttft_ms>1", "'p99_ttft_ms>1': a result of bench x has no number 'p99_ttft_ms'; "
				   "expected one such as avg_latency" },
		{ "percentiles>1", "has no number 'percentiles'" },
		{ "model>1", "has no number 'model'" },
		{ "avg_latency>5%", "a change needs a baseline" },
	};
	struct arena a = { 0 };
	struct json_value *example;

	(void)state;
	assert_int_equal(json_parse(&a, STR("{\"model\": \"m\", \"avg_latency\": 1.5, \"latencies\": [1], "
					    "\"percentiles\": {\"99\": 2}}"), &example, NULL), 0);
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = { 0 };
		struct gate g;

		assert_int_equal(gate_parse(&g, str_of(rows[i].condition), &a, &e), 0);
		assert_int_equal(gate_check_like(&g, example, "bench x", &e), rows[i].want ? -1 : 0);
		if (rows[i].want && !strstr(e.text, rows[i].want))
			fail_msg("%s: %s", rows[i].condition, e.text);
	}
	arena_release(&a);
}

/* ---- judging ---- */

#define REASON(level, spoils) "\"profllm\": {\"verdict\": \"" level "\", \"reasons\": [{\"level\": \"" \
	level "\", \"code\": \"x\", \"spoils\": [" spoils "], \"text\": \"Late reads.\"}]}"
#define ALL "\"ttft\",\"tpot\",\"itl\",\"e2el\",\"request_throughput\",\"request_goodput\"," \
	"\"input_throughput\",\"output_throughput\",\"total_token_throughput\""

static void judged(void **state)
{
	static const struct {
		const char *record, *condition;
		enum gate_outcome want;
		const char *text;
	} rows[] = {
		{ "{\"p99_ttft_ms\": 312}", "p99_ttft_ms>200", GATE_FAILED,
		  "p99_ttft_ms is 312 ms (limit 200 ms)" },
		{ "{\"p99_ttft_ms\": 150.04999}", "p99_ttft_ms>200", GATE_PASSED,
		  "p99_ttft_ms is 150 ms (limit 200 ms)" },
		{ "{\"p99_ttft_ms\": 200.0042}", "p99_ttft_ms>200", GATE_FAILED,
		  "p99_ttft_ms is 200.004 ms (limit 200 ms)" },
		{ "{\"p99_ttft_ms\": 200}", "p99_ttft_ms>200", GATE_PASSED, NULL },
		{ "{\"p99_ttft_ms\": 200}", "p99_ttft_ms>=200", GATE_FAILED, NULL },
		{ "{\"output_throughput\": 123456.7}", "output_throughput<2e5", GATE_FAILED,
		  "output_throughput is 123457 tokens/s (limit 200000 tokens/s)" },
		{ "{\"a\": {\"b\": 1}}", "a.b<2", GATE_FAILED, "a.b is 1 (limit 2)" },
		/* What is not there. */
		{ "{}", "p99_ttft_ms>200", GATE_UNJUDGED, "the result has no value of p99_ttft_ms" },
		{ "{\"p99_ttft_ms\": null}", "p99_ttft_ms>200", GATE_UNJUDGED, NULL },
		{ "{\"p99_ttft_ms\": \"nan\"}", "p99_ttft_ms>200", GATE_UNJUDGED, NULL },
		{ "{\"p99_ttft_ms\": 150}", "p99_ttft_ms>+5%", GATE_UNJUDGED, NULL },
		/* Answers of one token have no TPOT; 0 is said of them. A gap may be 0. */
		{ "{\"mean_tpot_ms\": 0, \"p99_tpot_ms\": 0}", "p99_tpot_ms>50", GATE_UNJUDGED,
		  "no request of this run has a value of p99_tpot_ms" },
		{ "{\"mean_tpot_ms\": 0, \"p99_ttft_ms\": 2}", "p99_ttft_ms>50", GATE_PASSED, NULL },
		{ "{\"mean_itl_ms\": 3, \"median_itl_ms\": 0}", "median_itl_ms>50", GATE_PASSED, NULL },
		/* What is INVALID, on either side of its limit. */
		{ "{\"p99_itl_ms\": 1, " REASON("INVALID", "\"itl\"") "}", "p99_itl_ms>2", GATE_UNJUDGED,
		  "p99_itl_ms is INVALID in this run: Late reads." },
		{ "{\"p99_itl_ms\": 3, " REASON("INVALID", "\"itl\"") "}", "p99_itl_ms>2", GATE_UNJUDGED,
		  NULL },
		{ "{\"p99_ttft_ms\": 3, " REASON("INVALID", "\"itl\"") "}", "p99_ttft_ms>2", GATE_FAILED,
		  NULL },
		{ "{\"p99_itl_ms\": 3, " REASON("DEGRADED", "\"itl\"") "}", "p99_itl_ms>2", GATE_FAILED,
		  NULL },
		{ "{\"duration\": 3, " REASON("INVALID", "\"itl\"") "}", "duration>2", GATE_FAILED, NULL },
		{ "{\"duration\": 3, " REASON("INVALID", ALL) "}", "duration>2", GATE_UNJUDGED, NULL },
		{ "{\"failed\": 3, " REASON("INVALID", ALL) "}", "failed>2", GATE_FAILED, NULL },
		{ "{\"duration\": 1, \"profllm\": {\"verdict\": \"INVALID\"}}", "duration>2",
		  GATE_UNJUDGED, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct arena a = { 0 };
		struct gate_log log = { .a = &a };
		struct json_value *v;
		struct err e = { 0 };
		struct gate g;

		assert_int_equal(json_parse(&a, str_of(rows[i].record), &v, &e), 0);
		assert_int_equal(gate_parse(&g, str_of(rows[i].condition), &a, &e), 0);
		gate_judge(&g, 1, v, "", &log);
		assert_int_equal(log.n, 1);
		if (log.item[0].outcome != rows[i].want ||
		    (rows[i].text && strcmp(log.item[0].text, rows[i].text) != 0))
			fail_msg("%s of %s: %s: %s", rows[i].condition, rows[i].record,
				 gate_outcome_name(log.item[0].outcome), log.item[0].text);
		assert_int_equal(gate_is_failed(&log), rows[i].want != GATE_PASSED);
		log.is_unjudged_allowed = true;
		assert_int_equal(gate_is_failed(&log), rows[i].want == GATE_FAILED);
		arena_release(&a);
	}
}

/* A server that drops requests is fast with the rest. */
static void failures(void **state)
{
	static const struct { const char *record, *condition; bool is_failed; } rows[] = {
		{ "{\"p99_ttft_ms\": 1, \"completed\": 990, \"failed\": 10}", "p99_ttft_ms>2", false },
		{ "{\"p99_ttft_ms\": 1, \"completed\": 980, \"failed\": 20}", "p99_ttft_ms>2", true },
		{ "{\"p99_ttft_ms\": 1, \"completed\": 980, \"failed\": 20}", "failed>50", false },
	};

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct arena a = { 0 };
		struct gate_log log = { .a = &a };
		struct buf lines = { 0 };
		struct json_value *v;
		struct err e = { 0 };
		struct gate g;

		assert_int_equal(json_parse(&a, str_of(rows[i].record), &v, &e), 0);
		assert_int_equal(gate_parse(&g, str_of(rows[i].condition), &a, &e), 0);
		gate_judge(&g, 1, v, "", &log);
		assert_int_equal(gate_is_failed(&log), rows[i].is_failed);
		gate_lines(&log, &lines);
		assert_string_equal(lines.data, rows[i].is_failed ?
			"FAILED: 2 % of the requests failed (limit 1 %, or a condition on failed)\n"
			"failed: 1 of 2 conditions\n" : "passed: 1 condition\n");
		buf_release(&lines);
		arena_release(&a);
	}
}

static void changes(void **state)
{
	static const struct { const char *condition; double delta; const char *want; } rows[] = {
		{ "output_throughput<-5%", -0.724, "output_throughput fell by 72.4 % (limit 5 %)" },
		{ "p99_ttft_ms>+5%", 0.0500004, "p99_ttft_ms rose by 5.00004 % (limit 5 %)" },
		{ "p99_ttft_ms>+5%", 0, "p99_ttft_ms changed by 0 % (limit 5 %)" },
		{ "p99_ttft_ms>+5%", -0.1, "p99_ttft_ms changed by -10.0 % (limit +5 %)" },
		{ "output_throughput<+5%", 0.02, "output_throughput changed by +2.0 % (limit +5 %)" },
		{ "failed>+5%", INFINITY, "failed rose from 0 (limit +5 %)" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < ROWS(rows); i++) {
		struct err e = { 0 };
		struct gate g;

		assert_int_equal(gate_parse(&g, str_of(rows[i].condition), &a, &e), 0);
		assert_string_equal(gate_change(&g, rows[i].delta, &a), rows[i].want);
	}
	arena_release(&a);
}

/* ---- for CI ---- */

static void written(void **state)
{
	struct arena a = { 0 };
	struct gate_log log = { .a = &a };
	struct buf out = { 0 };

	(void)state;
	gate_log_add(&log, "x>1", "a & b", GATE_PASSED, "x is 1 (limit 1)");
	gate_log_add(&log, "y<\"2\"", "a & b", GATE_FAILED, "y is 1 (limit 2)");
	gate_log_add(&log, "x>1", "c|d", GATE_PASSED, "x is 0 (limit 1)");
	gate_log_add(&log, "y<\"2\"", "c|d", GATE_UNJUDGED, "the result has no value of y\033");
	gate_lines(&log, &out);
	assert_string_equal(out.data,
			    "FAILED: y is 1 (limit 2) in a & b\n"
			    "NOT JUDGED: y<\"2\" in c|d: the result has no value of y\033\n"
			    "failed: 1 of 4 checks of 2 conditions, 1 could not be judged "
			    "(--allow-unjudged accepts that)\n");
	buf_reset(&out);
	gate_junit(&log, "bench serve", &out);
	assert_string_equal(out.data,
			    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
			    "<testsuite name=\"bench serve\" tests=\"4\" failures=\"1\" errors=\"1\" "
			    "skipped=\"0\">\n"
			    "  <testcase classname=\"bench serve\" name=\"x&gt;1 in a &amp; b\">\n"
			    "    <system-out>x is 1 (limit 1)</system-out>\n  </testcase>\n"
			    "  <testcase classname=\"bench serve\" name=\"y&lt;&quot;2&quot; in a &amp; b\">\n"
			    "    <failure message=\"y is 1 (limit 2)\"/>\n  </testcase>\n"
			    "  <testcase classname=\"bench serve\" name=\"x&gt;1 in c|d\">\n"
			    "    <system-out>x is 0 (limit 1)</system-out>\n  </testcase>\n"
			    "  <testcase classname=\"bench serve\" name=\"y&lt;&quot;2&quot; in c|d\">\n"
			    "    <error message=\"the result has no value of y \"/>\n  </testcase>\n"
			    "</testsuite>\n");
	buf_reset(&out);
	log.is_unjudged_allowed = true;
	log.item[1].outcome = GATE_PASSED;
	gate_junit(&log, "t", &out);
	assert_non_null(strstr(out.data, "failures=\"0\" errors=\"0\" skipped=\"1\""));
	assert_non_null(strstr(out.data, "<skipped message"));
	buf_reset(&out);
	gate_markdown(&log, "bench serve", &out);
	assert_non_null(strstr(out.data, "bench serve\n\npassed: 3 checks of 2 conditions, 1 could not be "
					 "judged\n\n| Condition"));
	assert_non_null(strstr(out.data, "| c\\|d "));
	buf_reset(&out);
	log.n = 1;
	gate_lines(&log, &out);
	assert_string_equal(out.data, "passed: 1 condition\n");
	log.n = 0;
	buf_reset(&out);
	gate_judge_none(&(struct gate){ .text = "x>1" }, 1, "the server did not start", "", &log);
	log.is_unjudged_allowed = false;
	gate_lines(&log, &out);
	assert_string_equal(out.data, "NOT JUDGED: x>1: there is no result: the server did not start\n"
				      "failed: 1 condition could not be judged (--allow-unjudged accepts "
				      "that)\n");
	buf_release(&out);
	arena_release(&a);
}

/* A value that is DEGRADED counts, and its reason is named. */
static void degraded(void **state)
{
	static const char *const record = "{\"p99_itl_ms\": 3, \"p99_ttft_ms\": 3, "
		REASON("DEGRADED", "\"itl\"") "}";
	struct arena a = { 0 };
	struct gate_log log = { .a = &a };
	struct gate g[2];
	struct json_value *v;
	struct buf out = { 0 };
	struct err e;

	(void)state;
	assert_int_equal(json_parse(&a, str_of(record), &v, &e), 0);
	assert_int_equal(gate_parse(&g[0], STR("p99_ttft_ms>4"), &a, &e), 0);
	assert_int_equal(gate_parse(&g[1], STR("p99_itl_ms>2"), &a, &e), 0);
	gate_judge(g, 2, v, "x", &log);
	gate_lines(&log, &out);
	assert_string_equal(out.data, "FAILED: p99_itl_ms is 3 ms (limit 2 ms) in x\n"
			    "failed: 1 of 2 conditions\n"
			    "note: 1 of these values is DEGRADED; p99_itl_ms>2 in x: Late reads.\n");
	buf_reset(&out);
	gate_markdown(&log, "t", &out);
	assert_non_null(strstr(out.data, "(limit 2 ms); the value is DEGRADED: Late reads."));
	assert_null(strstr(out.data, "(limit 4 ms); the value"));
	buf_release(&out);
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts), cmocka_unit_test(keys), cmocka_unit_test(like),
		cmocka_unit_test(judged), cmocka_unit_test(degraded),
		cmocka_unit_test(failures), cmocka_unit_test(changes), cmocka_unit_test(written),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
