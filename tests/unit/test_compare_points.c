/* SPDX-License-Identifier: Apache-2.0 */
/* Results next to each other: what is left out of "best", and which verdict a metric has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "out/compare/points.h"

static const struct json_value *record(const char *text, struct arena *a)
{
	struct json_value *v;
	struct err e;

	assert_int_equal(json_parse(a, str_of(text), &v, &e), 0);
	return v;
}

static const char *said(const struct points_table *t, struct arena *a, struct buf *out)
{
	struct points_best best = points_best(t, "request_throughput");

	buf_reset(out);
	points_say_best(t, &best, "request_throughput", "throughput", "req/s", a, out);
	return out->data ? out->data : "";
}

#define VALID_10 "{\"request_throughput\": 10, \"p99_ttft_ms\": 4}"
#define INVALID(rate) "{\"request_throughput\": " #rate ", \"profllm\": {\"verdict\": \"INVALID\", " \
	"\"verdicts\": {\"request_throughput\": \"INVALID\", \"itl\": \"VALID\"}}}"
#define FAILING(rate, failed) "{\"request_throughput\": " #rate ", \"completed\": 90, \"failed\": " #failed \
	", \"profllm\": {\"verdict\": \"DEGRADED\"}}"
#define RATE(rate) "{\"request_throughput\": " #rate "}"
#define REPEAT "Two runs of the same server can differ as much, so this order is not certain\n"
/* Only its inter-token latency is spoiled: its throughput counts. */
#define LATE_20 "{\"request_throughput\": 20, \"profllm\": {\"verdict\": \"INVALID\", " \
	"\"verdicts\": {\"itl\": \"INVALID\", \"request_throughput\": \"DEGRADED\"}}}"

static void the_best_is_no_invalid_one(void **state)
{
	static const struct { const char *record[3]; const char *says; } row[] = {
		{ { VALID_10, NULL, LATE_20 }, "Highest throughput: 20.00 req/s at c (DEGRADED)\n" },
		{ { VALID_10, INVALID(30), NULL },
		  "Highest throughput: 10.00 req/s at a\nLeft out: 1 of 2 results, in which "
		  "request_throughput is INVALID; b would have led with 30.00 req/s\n" },
		{ { VALID_10, INVALID(5), LATE_20 },
		  "Highest throughput: 20.00 req/s at c (DEGRADED)\nLeft out: 1 of 3 results, in which "
		  "request_throughput is INVALID; none of them would have led\n" },
		{ { INVALID(30), INVALID(5), NULL },
		  "No highest throughput: request_throughput is INVALID in all 2 results\n" },
		{ { NULL, NULL, NULL }, "" },
		{ { VALID_10, INVALID(10), RATE(9.71) },
		  "Highest throughput: 10.00 req/s at a\nWithin 3 % of it: c. " REPEAT
		  "Left out: 1 of 3 results, in which request_throughput is INVALID; none of them "
		  "would have led\n" },
		{ { RATE(9.69), VALID_10, RATE(1) }, "Highest throughput: 10.00 req/s at b\n" },
		{ { VALID_10, FAILING(30, 10), NULL },
		  "Highest throughput: 30.00 req/s at b (DEGRADED: 10.0 % of its requests failed)\n" },
		{ { VALID_10, FAILING(30, 0), NULL }, "Highest throughput: 30.00 req/s at b (DEGRADED)\n" },
	};
	struct arena a = { 0 };
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct points_line line[3] = { { .name = "a" }, { .name = "b" }, { .name = "c" } };
		const struct points_table table = { .line = line, .n = 3 };

		for (size_t k = 0; k < 3; k++)
			if (row[i].record[k])
				line[k].record = record(row[i].record[k], &a);
		assert_string_equal(said(&table, &a, &out), row[i].says);
	}
	buf_release(&out);
	arena_release(&a);
}

static void equals_are_named(void **state)
{
	struct arena a = { 0 };
	struct buf out = { 0 };
	struct points_line line[6];
	const struct points_table table = { .line = line, .n = 6 };

	(void)state;
	for (size_t i = 0; i < 6; i++)
		line[i] = (struct points_line){ .name = arena_printf(&a, "%zu", i),
						.record = record(VALID_10, &a) };
	assert_string_equal(said(&table, &a, &out), "Highest throughput: 10.00 req/s at 5\n"
			    "Within 3 % of it: 0, 1, 2 and 2 more. " REPEAT);
	buf_release(&out);
	arena_release(&a);
}

static void repeats_are_no_others(void **state)
{
	static const struct { const char *group[4], *says; bool has_sessions; } row[] = {
		{ { "x", "x", "y", "y" }, "Within 3 % of it: x. " REPEAT, false },
		{ { "x", "x", "y", "y" },
		  "Within 3 % of it: x. Two runs of the same server can differ as much; bench compare "
		  "judges by the repeats\n", true },
		{ { "y", "y", "y", "y" }, "", true },
		{ { "x", "z", "x", "y" }, "Within 3 % of it: x, z. " REPEAT, true },
		{ { "x", NULL, "x", "y" }, "Within 3 % of it: x, 1. " REPEAT, true },
	};
	struct arena a = { 0 };
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct points_line line[4];
		const struct points_table table = { .line = line, .n = 4,
						    .has_sessions = row[i].has_sessions };

		for (size_t k = 0; k < 4; k++)
			line[k] = (struct points_line){ .name = arena_printf(&a, "%zu", k),
				.group = row[i].group[k], .record = record(VALID_10, &a) };
		assert_string_equal(said(&table, &a, &out),
				    arena_printf(&a, "Highest throughput: 10.00 req/s at 3\n%s",
						 row[i].says));
	}
	buf_release(&out);
	arena_release(&a);
}

/* The best at the end of what was measured, where it still grows, is not the server's best. */
static void edges_are_said(void **state)
{
#define AT(load, rate) "{\"request_throughput\": " #rate ", \"max_concurrency\": " #load "}"
#define SENT(rate, got) "{\"request_throughput\": " #got ", \"request_rate\": " #rate "}"
#define RISES "The throughput still rises at the highest max_concurrency measured (+25 % from 4 to 8), " \
	"so a higher one may give more\n"
	static const struct { const char *record[4], *says; } row[] = {
		{ { AT(2, 5), AT(4, 8), AT(8, 10), NULL }, RISES },
		{ { AT(8, 10), AT(2, 5), AT(4, 7), AT(4, 8) }, RISES },
		{ { AT(4, 8), AT(8, 10), NULL, NULL }, "" },
		{ { AT(2, 5), AT(4, 8), AT(8, 10), AT(16, 9) }, "" },
		{ { AT(2, 5), AT(4, 8), AT(8, 10), AT(null, 9) }, "" },
		{ { AT(2, 5), AT(4, 8), AT(8, 10), INVALID(11) }, "" },
		{ { AT(2, 5), AT(4, 9.75), AT(8, 10), NULL }, "Within 3 % of it: 1. " REPEAT },
		{ { AT(2, 5), AT(4, 8), AT("inf", 10), NULL }, "" },
		{ { SENT(2, 2), SENT(4, 4), SENT(8, 7.3), NULL },
		  "The throughput still rises at the highest request_rate measured (+82.5 % from 4 to 8), "
		  "so a higher one may give more\n" },
		{ { SENT(2, 2), SENT(4, 4), SENT(8, 7.1), NULL }, "" },
	};
	struct arena a = { 0 };
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct points_line line[4];
		const struct points_table table = { .line = line, .n = 4 };
		const char *rest;

		for (size_t k = 0; k < 4; k++)
			line[k] = (struct points_line){ .name = arena_printf(&a, "%zu", k),
				.record = row[i].record[k] ? record(row[i].record[k], &a) : NULL };
		rest = strchr(said(&table, &a, &out), '\n') + 1;
		assert_memory_equal(rest, row[i].says, strlen(row[i].says));
		assert_int_equal(strstr(rest, "rises") != NULL, strstr(row[i].says, "rises") != NULL);
	}
	buf_release(&out);
	arena_release(&a);
#undef AT
#undef SENT
#undef RISES
}

/* A metric with an interval says itself how certain the order is. */
static void intervals_decide(void **state)
{
#define CAPACITY(rate, low, high, more) "{\"request_throughput\": " rate ", \"request_throughput_low\": " \
	low ", \"request_throughput_high\": " high more "}"
	static const struct { const char *second, *says; } row[] = {
		{ CAPACITY("8", "7", "8.5", ""), "Highest throughput: 10.00 req/s at a\nIt is 25 % more "
		  "than at b; the 95 % intervals do not overlap\n" },
		{ CAPACITY("8", "7", "9.5", ""), "Highest throughput: 10.00 req/s at a\nIt is 25 % more "
		  "than at b; the 95 % intervals overlap, so this is not certain\n" },
		{ CAPACITY("20", "19", "21", ", \"profllm\": {\"verdict\": \"INVALID\"}"),
		  "Highest throughput: 10.00 req/s at a\nLeft out: 1 of 2 results, in which "
		  "request_throughput is INVALID; b would have led with 20.00 req/s\n" },
	};
	struct arena a = { 0 };
	struct buf out = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		const struct points_line line[] = {
			{ .name = "a", .record = record(CAPACITY("10", "9", "11", ""), &a) },
			{ .name = "b", .record = record(row[i].second, &a) },
		};
		const struct points_table table = { .line = line, .n = 2 };

		assert_string_equal(said(&table, &a, &out), row[i].says);
	}
	buf_release(&out);
	arena_release(&a);
}

static void a_table_has_verdicts(void **state)
{
	static const struct points_column column[] = {
		{ "Req/s", "request_throughput" }, { "P99 TTFT", "p99_ttft_ms" }, { "None", "none" },
	};
	static const char *const param[] = { "rate" };
	static const char *const value[] = { "4" };
	struct arena a = { 0 };
	const struct points_line line[] = {
		{ .name = "a", .value = value, .record = record(VALID_10, &a) },
		{ .name = "b", .value = value, .record = record(INVALID(30), &a) },
		{ .name = "c", .value = value, .state = "failed" },
	};
	const struct points_table table = {
		.name_title = "Point", .param = param, .n_params = 1, .column = column,
		.n_columns = 3, .line = line, .n = 3,
	};
	struct buf out = { 0 };
	struct grid grid;

	(void)state;
	points_grid(&table, 2, &a, &grid);
	grid_csv(&grid, &out);
	assert_string_equal(out.data, "Point,rate,Req/s,P99 TTFT,Verdict\na,4,10.00,4.00,\n"
			    "b,4,30.00,,INVALID: request_throughput\nc,4,,,failed\n");
	buf_release(&out);
	arena_release(&a);
}

static void metrics_have_their_verdicts(void **state)
{
	struct arena a = { 0 };
	const struct json_value *late = record(LATE_20, &a), *plain = record(VALID_10, &a);

	(void)state;
	assert_int_equal(result_verdict(late, STR("p99_itl_ms")), RESULT_INVALID);
	assert_int_equal(result_verdict(late, STR("request_throughput")), RESULT_DEGRADED);
	/* Of what nothing is said the verdict of the run holds. */
	assert_int_equal(result_verdict(late, STR("median_tpot_ms")), RESULT_INVALID);
	assert_int_equal(result_verdict(plain, STR("p99_itl_ms")), RESULT_VALID);
	arena_release(&a);
}

/* A search has no verdict: how well its answer is known. */
static void searches(void **state)
{
#define SEARCH(members) "{\"capacity\": {\"precision\": 0.03, " members "}}"
	static const struct { const char *record, *says; } row[] = {
		{ SEARCH("\"half_width\": 0.02, \"safe\": 9, \"is_precise\": true"), "precise" },
		{ SEARCH("\"half_width\": 0.02, \"safe\": 9, \"is_precise\": false"), "too few levels" },
		{ SEARCH("\"half_width\": 0.42, \"safe\": 9, \"is_precise\": false, \"levels_degraded\": 1"),
		  "+-42 %, not precise, 1 level DEGRADED" },
		{ SEARCH("\"half_width\": 2.5, \"safe\": null, \"is_precise\": false, \"levels_degraded\": 3"),
		  "+-250 %, not precise, no measured load held, 3 levels DEGRADED" },
		{ SEARCH("\"half_width\": null"), "" },
	};
	struct arena a = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct points_line line = { .name = "a", .record = record(row[i].record, &a) };
		const struct points_table table = { .name_title = "x", .line = &line, .n = 1 };
		struct buf out = { 0 };
		struct grid grid;

		points_grid(&table, 2, &a, &grid);
		grid_csv(&grid, &out);
		assert_non_null(strstr(out.data, "x,Verdict\na,"));
		assert_non_null(strstr(out.data, *row[i].says ? row[i].says : "\na,\n"));
		buf_release(&out);
	}
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_best_is_no_invalid_one),
		cmocka_unit_test(equals_are_named),
		cmocka_unit_test(repeats_are_no_others),
		cmocka_unit_test(edges_are_said), cmocka_unit_test(searches),
		cmocka_unit_test(intervals_decide),
		cmocka_unit_test(a_table_has_verdicts),
		cmocka_unit_test(metrics_have_their_verdicts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
