/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyse_charts.c - points for drawing, against brute force; and every analysis over more
 * runs than are shown.
 */
#include "analyse_rig.h"
#include "core/stats/stats.h"

#define MANY 7001

static void put(struct rig *r, const char *group, double x, double y)
{
	rig_text(r, "hardware.gpu", group);
	rig_number(r, "output_throughput", x);
	rig_number(r, "median_ttft_ms", y);
	rig_run(r, 0);
}

static void resources(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put(&r, "A", 1, 2);
	put(&r, "B", 3, 4);
	put(&r, "B", 3, INFINITY);
	rig_number(&r, "output_throughput", 5);
	rig_number(&r, "median_ttft_ms", 6);
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_resources, "{\"x\": \"output_throughput\", \"y\": \"median_ttft_ms\", "
		    "\"color\": \"hardware.gpu\"}");
	assert_int_equal(rig_count(v, "points"), 3);
	rig_near(v, "points/1/id", 2);
	rig_near(v, "points/1/x", 3);
	rig_near(v, "points/1/y", 4);
	rig_same(v, "points/1/values/hardware.gpu", "B");
	assert_int_equal(rig_count(v, "points/2/values"), 0);
	rig_near(v, "total", 3);
	rig_near(v, "shown", 3);
	rig_near(v, "left_out", 1);
	rig_same(v, "x/unit", "tokens/s");
	rig_same(v, "y/better", "lower");
	rig_refused(&r, analyse_resources, "{\"x\": \"a\"}", "/y");
	rig_refused(&r, analyse_resources, "{\"y\": \"a\"}", "/x");
	rig_refused(&r, analyse_resources, "{\"x\": \"a\", \"y\": \"b\", \"color\": 1}", "/color");
	rig_refused(&r, analyse_resources, "{\"x\": \"a\", \"y\": \"b\", \"filter\": {\"or\": 1}}",
		    "/filter/or");
	rig_end(&r);
}

/* Thinned, but each frontier whole: by brute force. */
static void one(struct rig *r, const char *gpu, const char *dtype)
{
	if (gpu)
		rig_text(r, "hardware.gpu", gpu);
	if (dtype)
		rig_text(r, "server.dtype", dtype);
	rig_number(r, "output_throughput", 1);
	rig_number(r, "median_ttft_ms", 1);
	rig_number(r, "benchmark.max_concurrency", 1);
	rig_run(r, 0);
}

/* Names are as short as tells groups apart; that one has no value is said only where it must. */
static void names(void **state)
{
	static const char body[] = "{\"x\": \"output_throughput\", \"y\": \"median_ttft_ms\", "
				   "\"group\": [\"hardware.gpu\", \"server.dtype\"]}";
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	one(&r, "A", "half");
	one(&r, "A", "half");
	one(&r, "B", NULL);
	v = rig_ask(&r, analyse_pareto, body);
	rig_same(v, "groups/0/name", "A");
	rig_same(v, "groups/1/name", "B");
	one(&r, "B", "half");
	one(&r, "B", "half");
	one(&r, "B", "half");
	v = rig_ask(&r, analyse_pareto, body);
	rig_same(v, "groups/0/name", "B, half");
	rig_same(v, "groups/1/name", "A, half");
	/* Of a column that is neither, more is better. */
	v = rig_ask(&r, analyse_pareto, "{\"x\": \"benchmark.max_concurrency\", \"y\": \"median_ttft_ms\"}");
	rig_same(v, "better/x", "higher");
	rig_same(v, "better/y", "lower");
	rig_end(&r);
}

static void pareto(void **state)
{
	static double x[MANY], y[MANY];
	const struct json_value *points;
	size_t frontier = 0, on = 0;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (size_t i = 0; i < MANY; i++) {
		x[i] = floor(rig_uniform(&r) * 200);
		y[i] = floor(rig_uniform(&r) * 200);
		put(&r, i % 3 ? "A" : "B", x[i], y[i]);
	}
	v = rig_ask(&r, analyse_pareto, "{\"x\": \"output_throughput\", \"y\": \"median_ttft_ms\", "
		    "\"group\": [\"hardware.gpu\"]}");
	rig_same(v, "better/x", "higher");
	rig_same(v, "better/y", "lower");
	assert_int_equal(rig_count(v, "groups"), 2);
	rig_same(v, "groups/0/name", "A");
	rig_near(v, "total", MANY);
	assert_true(rig_real(v, "shown") < 5000);
	for (size_t i = 0; i < MANY; i++) {
		bool is_beaten = i % 3 == 0;

		for (size_t k = 0; k < MANY && !is_beaten; k++)
			is_beaten = k % 3 && x[k] >= x[i] && y[k] <= y[i] &&
				    (x[k] > x[i] || y[k] < y[i]);
		frontier += !is_beaten;
	}
	points = rig_at(v, "groups/0/points");
	for (size_t i = 0; i < points->count; i++) {
		const struct json_value *p = &points->item[i];
		size_t at = (size_t)rig_real(p, "id") - 1;

		assert_true(at % 3 && rig_real(p, "x") == x[at] && rig_real(p, "y") == y[at]);
		if (!json_bool(json_get(p, "is_frontier"), false))
			continue;
		on++;
		for (size_t k = 0; k < MANY; k++)
			assert_false(k % 3 && x[k] >= x[at] && y[k] <= y[at] &&
				     (x[k] > x[at] || y[k] < y[at]));
	}
	assert_int_equal(on, frontier);
	/* The other way round. */
	v = rig_ask(&r, analyse_pareto, "{\"x\": \"output_throughput\", \"y\": \"median_ttft_ms\", "
		    "\"better\": {\"x\": \"lower\", \"y\": \"higher\"}}");
	rig_same(v, "groups/0/name", "all runs");
	rig_same(v, "better/x", "lower");
	rig_refused(&r, analyse_pareto, "{\"x\": \"a\", \"y\": \"b\", \"better\": {\"y\": \"up\"}}",
		    "/better/y");
	rig_end(&r);
}

static void distribution(void **state)
{
	struct json_value *v;
	double x[50], sum = 0;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 50; i++) {
		x[i] = exp(rig_normal(&r));
		put(&r, "A", 1, x[i]);
	}
	put(&r, "B", 1, 100);
	put(&r, "B", 1, 100);
	v = rig_ask(&r, analyse_distribution, "{\"metric\": \"median_ttft_ms\", "
		    "\"group\": \"hardware.gpu\"}");
	stats_sort(x, 50);
	rig_near(v, "groups/0/n", 50);
	rig_near(v, "groups/0/quantiles/0", x[0]);
	rig_near(v, "groups/0/quantiles/1", stats_percentile(x, 50, 5));
	rig_near(v, "groups/0/quantiles/3", stats_median(x, 50));
	rig_near(v, "groups/0/quantiles/6", x[49]);
	assert_int_equal(rig_count(v, "groups/0/histogram/edges"), 25);
	rig_near(v, "groups/0/histogram/edges/0", x[0]);
	rig_near(v, "groups/0/histogram/edges/24", 100);
	for (int i = 0; i < 24; i++) {
		double from = x[0] + (100 - x[0]) / 24 * i, to = x[0] + (100 - x[0]) / 24 * (i + 1);
		double count = 0;

		for (int k = 0; k < 50; k++)
			count += x[k] >= from && x[k] < to;
		rig_near(v, arena_printf(&r.arena, "groups/0/histogram/counts/%d", i), count);
		sum += count;
	}
	rig_near(v, "groups/0/n", sum);
	rig_near(v, "groups/1/histogram/counts/23", 2);
	/* one value only */
	v = rig_ask(&r, analyse_distribution, "{\"metric\": \"output_throughput\"}");
	rig_near(v, "groups/0/histogram/counts/0", 52);
	v = rig_ask(&r, analyse_distribution, "{\"metric\": \"none\"}");
	assert_int_equal(rig_count(v, "groups"), 0);
	rig_near(v, "left_out", 52);
	rig_refused(&r, analyse_distribution, "{\"group\": []}", "/metric");
	rig_end(&r);
}

static void parallel(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 10; i++)
		put(&r, i % 2 ? "A" : "B", i, i == 3 ? (double)INFINITY : i);
	v = rig_ask(&r, analyse_parallel, "{\"columns\": [\"hardware.gpu\", \"output_throughput\", "
		    "\"median_ttft_ms\", \"none\"], \"limit\": 5}");
	rig_same(v, "axes/0/kind", "text");
	assert_int_equal(rig_count(v, "axes/0/values"), 2);
	rig_same(v, "axes/0/values/0", "A");
	rig_same(v, "axes/1/kind", "number");
	rig_near(v, "axes/1/max", 9);
	assert_int_equal(rig_count(v, "axes/1/values"), 0);
	rig_same(v, "axes/2/kind", "text");
	rig_same(v, "axes/2/values/9", "inf");
	assert_int_equal(rig_count(v, "axes/3/values"), 0);
	rig_near(v, "total", 10);
	assert_int_equal(rig_count(v, "lines"), 5);
	rig_near(v, "lines/4/id", 9);
	rig_same(v, "lines/4/values/0", "B");
	rig_near(v, "lines/4/values/1", 8);
	assert_int_equal(rig_at(v, "lines/4/values/3")->kind, JSON_NULL);
	rig_refused(&r, analyse_parallel, "{}", "/columns");
	rig_refused(&r, analyse_parallel, "{\"columns\": [\"a\"], \"limit\": 0}", "/limit");
	rig_refused(&r, analyse_parallel, "{\"columns\": [\"a\"], \"limit\": 2.5}", "/limit");
	rig_end(&r);
}

/* ---- runs that do not count ---- */

/* Both columns, and what the run says of itself. */
static void put_judged(struct rig *r, double x, double y, double completed, const char *invalid)
{
	rig_number(r, "completed", completed);
	rig_text(r, "trust.invalid", invalid);
	put(r, "A", x, y);
}

/* Metrics that are INVALID in as many runs share a note. */
static void notes_share(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_judged(&r, 10, 10, 100, "");
	put_judged(&r, 20, 20, 100, "");
	put_judged(&r, 5, 100, 100, "output_throughput,ttft");
	put_judged(&r, 6, 90, 100, "output_throughput,ttft");
	v = rig_ask(&r, analyse_pareto, "{\"x\": \"output_throughput\", \"y\": \"median_ttft_ms\"}");
	assert_true(rig_has_note(v, "output_throughput and median_ttft_ms are INVALID in 2 runs, left out"));
	put_judged(&r, 7, 80, 100, "ttft");
	v = rig_ask(&r, analyse_pareto, "{\"x\": \"output_throughput\", \"y\": \"median_ttft_ms\"}");
	assert_true(rig_has_note(v, "output_throughput is INVALID in 2 runs, left out here"));
	assert_true(rig_has_note(v, "median_ttft_ms is INVALID in 3 runs, left out here"));
	rig_end(&r);
}

static void only_valid(void **state)
{
	static const char xy[] = "\"x\": \"output_throughput\", \"y\": \"median_ttft_ms\"";
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_judged(&r, 10, 10, 100, "");
	rig_text(&r, "trust.degraded", "itl,ttft");
	put_judged(&r, 20, 20, 100, "");
	put_judged(&r, 15, 30, 100, "");                  /* beaten by the second */
	put_judged(&r, 0, 0, 0, "");                      /* nothing completed */
	put_judged(&r, 30, 15, 100, "output_throughput"); /* would beat the second */
	put_judged(&r, 5, 25, 100, "ttft");               /* beaten anyway */
	v = rig_ask(&r, analyse_pareto, arena_printf(&r.arena, "{%s}", xy));
	rig_near(v, "total", 3);
	rig_near(v, "left_out", 3);
	assert_true(json_bool(rig_at(v, "groups/0/points/0/is_frontier"), false));
	assert_true(json_bool(rig_at(v, "groups/0/points/1/is_frontier"), false));
	assert_false(json_bool(rig_at(v, "groups/0/points/2/is_frontier"), true));
	assert_false(json_bool(rig_at(v, "groups/0/points/0/is_degraded"), true));
	assert_true(json_bool(rig_at(v, "groups/0/points/1/is_degraded"), false));
	rig_near(v, "trust/1/degraded", 1);
	assert_true(rig_has_note(v, "1 run failed and is left out"));
	assert_true(rig_has_note(v, "1 of the runs left out would be on the frontier"));
	rig_near(v, "trust/0/invalid", 1);
	assert_true(json_bool(rig_at(v, "trust/0/would_lead"), false));
	assert_false(json_bool(rig_at(v, "trust/1/would_lead"), true));
	v = rig_ask(&r, analyse_pareto, arena_printf(&r.arena, "{%s, \"include_invalid\": true}", xy));
	rig_near(v, "total", 6);
	assert_false(json_bool(rig_at(v, "groups/0/points/1/is_frontier"), true));
	v = rig_ask(&r, analyse_resources, arena_printf(&r.arena, "{%s}", xy));
	rig_near(v, "total", 3);
	assert_true(rig_has_note(v, "output_throughput is INVALID in 1 run"));
	v = rig_ask(&r, analyse_distribution, "{\"metric\": \"median_ttft_ms\"}");
	rig_near(v, "groups/0/n", 4);
	rig_near(v, "groups/0/quantiles/0", 10);
	rig_near(v, "trust/0/failed", 1);
	/* Lines: the failed run is none, and an INVALID value is missing. */
	v = rig_ask(&r, analyse_parallel, "{\"columns\": [\"hardware.gpu\", \"output_throughput\", "
		    "\"median_ttft_ms\"]}");
	rig_near(v, "total", 5);
	rig_near(v, "left_out", 1);
	rig_near(v, "axes/1/max", 20);
	rig_near(v, "axes/2/min", 10);
	rig_near(v, "lines/3/id", 5);
	assert_int_equal(rig_at(v, "lines/3/values/1")->kind, JSON_NULL);
	rig_near(v, "lines/3/values/2", 15);
	rig_near(v, "lines/4/values/1", 5);
	assert_int_equal(rig_at(v, "lines/4/values/2")->kind, JSON_NULL);
	/* parameters alone are true of every run */
	v = rig_ask(&r, analyse_parallel, "{\"columns\": [\"hardware.gpu\"]}");
	rig_near(v, "total", 6);
	rig_end(&r);
}

/* More series than are shown: the largest, and nothing lost from the counts. */
static void many_series(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 150; i++)
		for (int k = 0; k <= i % 3; k++) {
			rig_number(&r, "timestamp", 1e9 + k);
			put(&r, arena_printf(&r.arena, "gpu %d", i), i, k);
		}
	v = rig_ask(&r, analyse_trends, "{\"metric\": \"output_throughput\"}");
	assert_int_equal(rig_count(v, "series"), 100);
	rig_same(v, "series/0/name", "gpu 2");
	assert_int_equal(rig_count(v, "series/49/points"), 3);
	assert_int_equal(rig_count(v, "series/50/points"), 2);
	rig_near(v, "left_out", 300 - 50 * 5);
	assert_true(rig_has_note(v, "150 series; only the 100 with the most runs were looked at"));
	v = rig_ask(&r, analyse_distribution, "{\"metric\": \"output_throughput\", "
		    "\"group\": [\"hardware.gpu\"]}");
	rig_near(v, "groups_left_out", 50);
	rig_end(&r);
}

/* More runs than can be looked at with so many columns are refused, and fewer columns are not. */
static void too_many(void **state)
{
	enum { RUNS = 400000, COLUMNS = 32 };
	struct cell cell = { STR("output_throughput"), { .kind = VALUE_NUMBER, .number = 1 } };
	struct row *row = calloc(RUNS, sizeof(*row));
	struct buf body = { 0 };
	struct err e = { 0 };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < RUNS; i++)
		row[i] = (struct row){ i + 1, &cell, 1 };
	assert_int_equal(index_add_all(r.index, row, RUNS, &e), 0);
	free(row);
	for (int i = 0; i < COLUMNS; i++)
		buf_printf(&body, "%s\"c%d\"", i ? ", " : "", i);
	rig_refused(&r, analyse_parallel, arena_printf(&r.arena, "{\"columns\": [%s]}", body.data),
		    "/filter");
	rig_refused(&r, analyse_parallel, arena_printf(&r.arena, "{\"columns\": [%s, \"d\"]}",
						       body.data), "/columns");
	v = rig_ask(&r, analyse_parallel, "{\"columns\": [\"output_throughput\"]}");
	rig_near(v, "total", RUNS);
	assert_int_equal(rig_count(v, "lines"), 2000);
	buf_release(&body);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(resources), cmocka_unit_test(pareto), cmocka_unit_test(names),
		cmocka_unit_test(distribution), cmocka_unit_test(parallel),
		cmocka_unit_test(notes_share), cmocka_unit_test(only_valid),
		cmocka_unit_test(many_series),
		cmocka_unit_test(too_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
