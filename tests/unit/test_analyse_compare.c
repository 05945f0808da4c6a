/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyse_compare.c - groups against a baseline: expected numbers are worked out here. */
#include "analyse_rig.h"
#include "stats/compare.h"
#include "stats/judge.h"

static const double noise[] = { 0.99, 1, 1.01, 0.995, 1.005, 1.002 };

struct run { const char *side, *suite, *verdict; double rate, wait, tp, load, failed; };

static int64_t put(struct rig *r, const struct run *run, unsigned flags)
{
	rig_text(r, "run_id", arena_printf(&r->arena, "r%d", (int)r->next));
	rig_text(r, "source", "profllm");
	rig_text(r, "tags.side", run->side);
	rig_text(r, "server.model", "m");
	rig_number(r, "server.tensor_parallel_size", run->tp);
	rig_number(r, "benchmark.request_rate", run->load);
	if (run->suite)
		rig_text(r, "suite", run->suite);
	if (run->verdict)
		rig_text(r, "verdict", run->verdict);
	rig_number(r, "request_throughput", run->rate);
	rig_number(r, "median_ttft_ms", run->wait);
	rig_number(r, "rtfx", 0);
	rig_number(r, "completed", 100 - run->failed);
	rig_number(r, "failed", run->failed);
	rig_number(r, "timestamp", 1e9 + (double)r->next);
	return rig_run(r, flags);
}

static void fill(struct rig *r, int n)
{
	for (int i = 0; i < n; i++) {
		put(r, &(struct run){ "a", NULL, NULL, 100 * noise[i], 50 * noise[i], 1, INFINITY, 0 },
		    0);
		put(r, &(struct run){ "b", NULL, NULL, 150 * noise[i], 50.1 * noise[i], 2, INFINITY,
				      0 }, 0);
	}
}

#define SIDE(x) "{\"filter\": {\"column\": \"tags.side\", \"in\": [\"" x "\"]}}"
#define AB "\"groups\": [" SIDE("a") ", " SIDE("b") "]"

static const struct json_value *metric(const struct json_value *v, const char *column)
{
	const struct json_value *list = json_get(v, "metrics");

	for (size_t i = 0; i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "column"), STR("")), column))
			return &list->item[i];
	return NULL;
}

static const struct json_value *parameter(const struct json_value *v, const char *column)
{
	const struct json_value *list = json_get(v, "parameters");

	for (size_t i = 0; i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "column"), STR("")), column))
			return &list->item[i];
	return NULL;
}

static void sides(void **state)
{
	double a[6], b[6], wait[2][6], p[2];
	const struct json_value *m;
	struct json_value *v;
	struct ratio t;
	struct rig r;

	(void)state;
	rig_begin(&r);
	fill(&r, 6);
	for (int i = 0; i < 6; i++) {
		a[i] = 100 * noise[i];
		b[i] = 150 * noise[i];
		wait[0][i] = 50 * noise[i];
		wait[1][i] = 50.1 * noise[i];
	}
	t = ratio_test(a, 6, b, 6, 0.95);
	p[0] = t.p;
	p[1] = ratio_test(wait[0], 6, wait[1], 6, 0.95).p;
	compare_adjust(p, 2);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_same(v, "groups/0/name", "A");
	rig_near(v, "groups/1/n", 6);
	rig_near(v, "groups/1/ids/0", 2);
	/* rtfx is 0 everywhere and no part of it */
	assert_int_equal(rig_count(v, "metrics"), 2);
	m = metric(v, "request_throughput");
	rig_near(m, "groups/0/median", 100.1);
	rig_near(m, "groups/0/min", 99);
	rig_near(m, "groups/1/max", 151.5);
	assert_int_equal(rig_count(m, "deltas"), 1);
	rig_near(m, "deltas/0/group", 1);
	rig_near(m, "deltas/0/effect", 0.5);
	rig_near(m, "deltas/0/interval/0", t.interval.low - 1);
	rig_near(m, "deltas/0/interval/1", t.interval.high - 1);
	rig_near(m, "deltas/0/p", t.p);
	rig_near(m, "deltas/0/p_adjusted", p[0]);
	rig_near(m, "deltas/0/needed", NAN);
	rig_same(m, "deltas/0/verdict", "better");
	m = metric(v, "median_ttft_ms");
	rig_same(m, "better", "lower");
	rig_near(m, "deltas/0/p_adjusted", p[1]);
	rig_same(m, "deltas/0/verdict", "no evidence");
	/* The other one as the baseline. */
	v = rig_ask(&r, analyse_compare, "{" AB ", \"baseline\": 1, "
		    "\"metrics\": [\"request_throughput\", \"nowhere\"]}");
	assert_int_equal(rig_count(v, "metrics"), 2);
	rig_near(v, "metrics/0/deltas/0/group", 0);
	rig_near(v, "metrics/0/deltas/0/effect", -1 / 3.0);
	rig_same(v, "metrics/0/deltas/0/verdict", "worse");
	rig_same(v, "metrics/1/deltas/0/verdict", "missing");
	rig_end(&r);
}

static void parameters(void **state)
{
	const struct json_value *q;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	fill(&r, 5);
	put(&r, &(struct run){ "b", NULL, NULL, 150, 50, 2, 8, 0 }, 0);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	assert_null(parameter(v, "server.model"));
	assert_null(parameter(v, "run_id"));
	assert_null(parameter(v, "timestamp"));
	assert_null(parameter(v, "request_throughput"));
	q = parameter(v, "server.tensor_parallel_size");
	rig_same(q, "differs", "between");
	rig_same(q, "group", "server");
	rig_near(q, "values/0/0/value", 1);
	rig_near(q, "values/0/0/count", 5);
	rig_near(q, "values/1/0/value", 2);
	rig_near(q, "values/1/0/count", 6);
	q = parameter(v, "benchmark.request_rate");
	rig_same(q, "differs", "between");
	rig_same(q, "values/1/0/value", "inf");
	rig_near(q, "values/1/1/count", 1);
	assert_true(rig_has_note(v, "B mixes runs of 2 values of benchmark.request_rate"));
	/* The same by numbers, where an excluded run counts too. */
	put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 4, INFINITY, 0 }, INDEX_EXCLUDED);
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"name\": \"old\", \"ids\": [1, 3, \"r5\", 3, "
		    "12]}, {\"ids\": [2, 4]}]}");
	rig_same(v, "groups/0/name", "old");
	rig_near(v, "groups/0/n", 4);
	q = parameter(v, "server.tensor_parallel_size");
	rig_near(q, "values/0/0/value", 1);
	rig_near(q, "values/0/0/count", 3);
	rig_near(q, "values/0/1/value", 4);
	/* Within: both sides have both values. */
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"ids\": [1, 2]}, {\"ids\": [3, 4]}]}");
	rig_same(parameter(v, "server.tensor_parallel_size"), "differs", "within");
	/* A value that one side lacks. */
	rig_text(&r, "tags.side", "a");
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"ids\": [1]}, {\"ids\": [13]}]}");
	q = parameter(v, "server.model");
	assert_int_equal(rig_at(q, "values/1/0/value")->kind, JSON_NULL);
	rig_near(q, "values/1/0/count", 1);
	rig_end(&r);
}

/* Counts of a filter's group and of the same runs by number are the same. */
static void both_ways(void **state)
{
	struct buf ids = { 0 };
	struct json_value *x, *y;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 300; i++) {
		double v = floor(rig_uniform(&r) * 6);

		put(&r, &(struct run){ rig_uniform(&r) < 0.5 ? "a" : "b", NULL, NULL, 100, 50, v + 1,
				       v > 2 ? v : INFINITY, 0 }, 0);
	}
	for (int64_t i = 1; i <= 300; i++)
		buf_printf(&ids, "%s%d", i > 1 ? "," : "", (int)i);
	x = rig_ask(&r, analyse_compare, "{\"groups\": [{\"filter\": {\"and\": []}}]}");
	y = rig_ask(&r, analyse_compare, arena_printf(&r.arena, "{\"groups\": [{\"ids\": [%s]}]}",
						      ids.data));
	rig_near(x, "groups/0/n", 300);
	assert_int_equal(rig_count(x, "groups/0/ids"), 200);
	assert_true(rig_count(x, "parameters") >= 3);
	for (size_t i = 0; i < 2; i++) {
		struct buf text[2] = { { 0 }, { 0 } };
		struct json_value *both[] = { x, y };

		for (int k = 0; k < 2; k++) {
			struct json_writer w = json_writer(&text[k]);

			json_put_value(&w, json_get(both[k], i ? "parameters" : "metrics"));
		}
		assert_string_equal(text[0].data, text[1].data);
		buf_release(&text[0]);
		buf_release(&text[1]);
	}
	buf_release(&ids);
	rig_end(&r);
}

static void few(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "groups/0/n", 0);
	fill(&r, 1);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_same(v, "metrics/0/deltas/0/verdict", "not enough data");
	rig_near(v, "metrics/0/deltas/0/effect", 0.5);
	rig_near(v, "metrics/0/deltas/0/p", NAN);
	rig_near(v, "metrics/0/deltas/0/interval", NAN);
	rig_end(&r);
	rig_begin(&r);
	fill(&r, 3);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_same(v, "metrics/0/deltas/0/verdict", "not enough data");
	rig_near(v, "metrics/0/deltas/0/p", NAN);
	rig_near(v, "metrics/0/deltas/0/p_adjusted", NAN);
	assert_true(rig_real(v, "metrics/0/deltas/0/needed") >= COMPARE_REPEATS_MIN);
	rig_end(&r);
	/* all equal */
	rig_begin(&r);
	for (int i = 0; i < 4; i++) {
		put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, 1, 0 }, 0);
		put(&r, &(struct run){ "b", NULL, NULL, 100, 60, 1, 1, 0 }, 0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_same(metric(v, "request_throughput"), "deltas/0/verdict", "no evidence");
	rig_same(metric(v, "median_ttft_ms"), "deltas/0/verdict", "worse");
	rig_end(&r);
}

static void notes(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 6; i++) {
		put(&r, &(struct run){ "a", "s1", i ? NULL : "INVALID", 100 * noise[i], 50, 1, 1, 0 },
		    0);
		put(&r, &(struct run){ "b", i < 3 ? "s2" : "s3", NULL, 150 * noise[i], 50, 1, 1, 5 },
		    0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	assert_true(rig_has_note(v, "A: 1 of 6 runs judged themselves INVALID"));
	assert_true(rig_has_note(v, "B: failed requests rose from 0.0 % to 5.0 %"));
	rig_same(metric(v, "request_throughput"), "deltas/0/verdict", "no evidence");
	assert_non_null(strstr(rig_at(metric(v, "request_throughput"), "deltas/0/guard")->text.p,
			       "failed requests"));
	/* A suite's mean is one value: one against two. */
	v = rig_ask(&r, analyse_compare, "{" AB ", \"by\": \"suite\"}");
	rig_near(metric(v, "request_throughput"), "groups/0/n", 5);
	rig_near(v, "trust/0/invalid", 1);
	v = rig_ask(&r, analyse_compare, "{" AB ", \"by\": \"suite\", \"include_invalid\": true}");
	rig_near(metric(v, "request_throughput"), "groups/0/n", 6);
	rig_same(metric(v, "request_throughput"), "deltas/0/verdict", "not enough data");
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"name\": \"x\", \"ids\": [1, 2]}, "
		    "{\"name\": \"y\", \"ids\": [2, 3]}]}");
	assert_true(rig_has_note(v, "1 of the runs are in x and in y"));
	/* Of loose files nobody knows which shared a server. */
	for (int i = 0; i < 3; i++) {
		rig_text(&r, "source", "serve");
		rig_number(&r, "request_throughput", 100);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"filter\": {\"column\": \"source\", "
		    "\"in\": [\"serve\"]}}]}");
	assert_true(rig_has_note(v, "A: nothing tells which of 3 runs shared a server's life"));
	rig_end(&r);
}

/* One run of b failed, one has an INVALID rate that would lead; the rest is a little slower. */
static void only_valid(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 6; i++) {
		put(&r, &(struct run){ "a", NULL, NULL, 100 * noise[i], 50 * noise[i], 1, 1, 0 }, 0);
		put(&r, &(struct run){ "b", NULL, NULL, 90 * noise[i], 55 * noise[i], 1, 1, 0 }, 0);
	}
	rig_text(&r, "trust.invalid", "request_throughput");
	put(&r, &(struct run){ "b", NULL, "INVALID", 900, 55, 1, 1, 0 }, 0);
	put(&r, &(struct run){ "b", NULL, NULL, 0, 0, 1, 1, 100 }, 0);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "groups/1/n", 8);
	rig_near(metric(v, "request_throughput"), "groups/1/n", 6);
	rig_near(metric(v, "request_throughput"), "groups/1/max", 90 * 1.01);
	rig_near(metric(v, "median_ttft_ms"), "groups/1/n", 7);
	rig_near(metric(v, "median_ttft_ms"), "groups/1/min", 55 * 0.99);
	rig_same(metric(v, "request_throughput"), "deltas/0/verdict", "worse");
	rig_same(metric(v, "median_ttft_ms"), "deltas/0/verdict", "worse");
	assert_true(rig_has_note(v, "1 run failed and is left out"));
	assert_true(rig_has_note(v, "request_throughput is INVALID in 1 run and left out there; that run "
				    "would have led"));
	v = rig_ask(&r, analyse_compare, "{" AB ", \"include_invalid\": true}");
	rig_near(metric(v, "median_ttft_ms"), "groups/1/min", 0);
	rig_end(&r);
}

static void refusals(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	fill(&r, 1);
	rig_refused(&r, analyse_compare, "{}", "/groups");
	rig_refused(&r, analyse_compare, "{\"groups\": []}", "/groups");
	rig_refused(&r, analyse_compare, "{\"groups\": {\"ids\": []}}", "/groups");
	rig_refused(&r, analyse_compare, "{\"groups\": [{}]}", "/groups/0");
	rig_refused(&r, analyse_compare, "{\"groups\": [7]}", "/groups/0");
	rig_refused(&r, analyse_compare, "{\"groups\": [{\"ids\": [], \"filter\": null}]}",
		    "/groups/0");
	rig_refused(&r, analyse_compare, "{\"groups\": [{\"ids\": 1}]}", "/groups/0/ids");
	rig_refused(&r, analyse_compare, "{\"groups\": [{\"ids\": [1, 77]}]}", "/groups/0/ids/1");
	rig_refused(&r, analyse_compare, "{\"groups\": [{\"ids\": [1, \"r77\"]}]}", "/groups/0/ids/1");
	rig_refused(&r, analyse_compare, "{\"groups\": [{\"ids\": [1.5]}]}", "/groups/0/ids/0");
	rig_refused(&r, analyse_compare, "{" AB ", \"baseline\": 2}", "/baseline");
	rig_refused(&r, analyse_compare, "{" AB ", \"baseline\": 0.5}", "/baseline");
	rig_refused(&r, analyse_compare, "{" AB ", \"level\": 1}", "/level");
	rig_refused(&r, analyse_compare, "{" AB ", \"by\": \"week\"}", "/by");
	rig_refused(&r, analyse_compare, "{" AB ", \"metrics\": [1]}", "/metrics/0");
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sides), cmocka_unit_test(parameters), cmocka_unit_test(both_ways),
		cmocka_unit_test(few), cmocka_unit_test(notes), cmocka_unit_test(only_valid),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
