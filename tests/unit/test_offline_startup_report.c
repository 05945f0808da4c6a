/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts of an engine: upstream's lines and keys to the last digit, a side without iterations,
 * phases that not every start has. Expected figures are those of upstream 0.32.0 for the same
 * times.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/offline/startup.h"
#include "core/json/read.h"
#include "answers.h"

#define ENGINE(total, compiling, encoder)                                              \
	{ .startup_s = total, .compilation_s = compiling, .encoder_compilation_s = encoder,  \
	  .spawn_s = NAN, .ready_s = NAN, .dropped_bytes = -1, .left_bytes = -1 }

static struct startup_iteration cold[] = {
	ENGINE(12.5, 3.25, 0.0), ENGINE(11.125, 3.0, 0.5), ENGINE(13.1, 2.9, NAN),
};
static struct startup_iteration warm[] = { ENGINE(4.2, 0.1, 0.0), ENGINE(4.05, 0.2, 0.0) };

static struct startup_runs both_sides(void)
{
	return (struct startup_runs){ .side = {
		[STARTUP_COLD] = { cold, 3, 3 }, [STARTUP_WARMUP] = { NULL, 0, 0 },
		[STARTUP_WARM] = { warm, 2, 2 } } };
}

static char *terminal(const struct startup_runs *r)
{
	struct buf out = { 0 };

	startup_terminal(r, &out);
	return buf_take(&out);
}

static void the_lines_are_upstreams(void **state)
{
	static const char expected[] =
		"\n============================================================\n"
		"STARTUP TIME BENCHMARK RESULTS\n"
		"============================================================\n\nCOLD STARTUP:\n"
		"Avg startup time: 12.24 seconds\nAvg compilation time: 3.05 seconds\n"
		"Avg encoder compilation time: 0.17 seconds\nStartup time percentiles:\n"
		"  10%: 11.40 seconds\n  25%: 11.81 seconds\n  50%: 12.50 seconds\n"
		"  75%: 12.80 seconds\n  90%: 12.98 seconds\n  99%: 13.09 seconds\n"
		"Compilation time percentiles:\n  10%: 2.92 seconds\n  25%: 2.95 seconds\n"
		"  50%: 3.00 seconds\n  75%: 3.12 seconds\n  90%: 3.20 seconds\n  99%: 3.25 seconds\n"
		"Encoder compilation time percentiles:\n  10%: 0.00 seconds\n  25%: 0.00 seconds\n"
		"  50%: 0.00 seconds\n  75%: 0.25 seconds\n  90%: 0.40 seconds\n  99%: 0.49 seconds\n"
		"\nWARM STARTUP:\nAvg startup time: 4.12 seconds\nAvg compilation time: 0.15 seconds\n"
		"Avg encoder compilation time: 0.00 seconds\nStartup time percentiles:\n"
		"  10%: 4.06 seconds\n  25%: 4.09 seconds\n  50%: 4.12 seconds\n  75%: 4.16 seconds\n"
		"  90%: 4.19 seconds\n  99%: 4.20 seconds\nCompilation time percentiles:\n"
		"  10%: 0.11 seconds\n  25%: 0.12 seconds\n  50%: 0.15 seconds\n  75%: 0.18 seconds\n"
		"  90%: 0.19 seconds\n  99%: 0.20 seconds\nEncoder compilation time percentiles:\n"
		"  10%: 0.00 seconds\n  25%: 0.00 seconds\n  50%: 0.00 seconds\n  75%: 0.00 seconds\n"
		"  90%: 0.00 seconds\n  99%: 0.00 seconds\n"
		"============================================================\n";
	struct startup_runs r = both_sides();
	char *text = terminal(&r);

	(void)state;
	assert_string_equal(text, expected);
	free(text);
}

static void the_keys_are_upstreams_and_ours_follow(void **state)
{
	static const char expected[] =
		"{\n    \"avg_cold_startup_time\": 12.241666666666667,\n"
		"    \"cold_startup_times\": [\n        12.5,\n        11.125,\n        13.1\n    ],\n"
		"    \"cold_startup_percentiles\": {\n        \"10\": 11.4,\n"
		"        \"25\": 11.8125,\n        \"50\": 12.5,\n        \"75\": 12.8,\n"
		"        \"90\": 12.98,\n        \"99\": 13.088\n    },\n"
		"    \"avg_cold_compilation_time\": 3.0500000000000003,\n"
		"    \"cold_compilation_times\": [\n        3.25,\n        3.0,\n        2.9\n    ],\n"
		"    \"cold_compilation_percentiles\": {\n        \"10\": 2.92,\n"
		"        \"25\": 2.95,\n        \"50\": 3.0,\n        \"75\": 3.125,\n"
		"        \"90\": 3.2,\n        \"99\": 3.245\n    },\n"
		"    \"avg_cold_encoder_compilation_time\": 0.16666666666666666,\n"
		"    \"cold_encoder_compilation_times\": [\n        0.0,\n        0.5,\n        0.0\n"
		"    ],\n    \"cold_encoder_compilation_percentiles\": {\n        \"10\": 0.0,\n"
		"        \"25\": 0.0,\n        \"50\": 0.0,\n        \"75\": 0.25,\n"
		"        \"90\": 0.4,\n        \"99\": 0.49\n    },\n"
		"    \"avg_warm_startup_time\": 4.125,\n    \"warm_startup_times\": [\n        4.2,\n"
		"        4.05\n    ],\n    \"warm_startup_percentiles\": {\n"
		"        \"10\": 4.0649999999999995,\n        \"25\": 4.0875,\n"
		"        \"50\": 4.125,\n        \"75\": 4.1625,\n"
		"        \"90\": 4.1850000000000005,\n        \"99\": 4.1985\n    },\n"
		"    \"avg_warm_compilation_time\": 0.15000000000000002,\n"
		"    \"warm_compilation_times\": [\n        0.1,\n        0.2\n    ],\n"
		"    \"warm_compilation_percentiles\": {\n        \"10\": 0.11000000000000001,\n"
		"        \"25\": 0.125,\n        \"50\": 0.15000000000000002,\n"
		"        \"75\": 0.17500000000000002,\n        \"90\": 0.19,\n        \"99\": 0.199\n"
		"    },\n    \"avg_warm_encoder_compilation_time\": 0.0,\n"
		"    \"warm_encoder_compilation_times\": [\n        0.0,\n        0.0\n    ],\n"
		"    \"warm_encoder_compilation_percentiles\": {\n        \"10\": 0.0,\n"
		"        \"25\": 0.0,\n        \"50\": 0.0,\n        \"75\": 0.0,\n"
		"        \"90\": 0.0,\n        \"99\": 0.0\n    }"
		",\n    \"profllm\": {\n        \"backend\": \"sim\",\n";
	struct startup_runs r = both_sides();
	struct buf out = { 0 };

	(void)state;
	startup_json(&r, STR("{\"backend\": \"sim\"}"), &out);
	assert_true(out.len > sizeof(expected));
	out.data[sizeof(expected) - 1] = 0;
	assert_string_equal(out.data, expected);
	answers_release(&out);
}

static void without_an_encoder_there_are_no_keys_of_it(void **state)
{
	struct startup_runs r = both_sides();
	struct startup_metric m[STARTUP_METRICS_MAX];
	struct arena a = { 0 };

	(void)state;
	r.side[STARTUP_COLD].n = 1; /* the start that compiled one is out */
	assert_int_equal(startup_metrics(&r, m, &a), 4);
	assert_string_equal(m[0].key, "cold_startup");
	assert_string_equal(m[3].key, "warm_compilation");
	arena_release(&a);
}

static void a_side_without_iterations_has_no_metrics(void **state)
{
	struct startup_runs r = both_sides();
	struct json_value *doc;
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };
	char *text;

	(void)state;
	r.side[STARTUP_COLD].n = 0;
	startup_json(&r, STR("{}"), &out);
	assert_int_equal(json_parse(&a, buf_str(&out), &doc, &e), 0);
	assert_null(json_get(doc, "avg_cold_startup_time"));
	assert_non_null(json_get(doc, "avg_warm_startup_time"));
	text = terminal(&r);
	assert_non_null(strstr(text, "\nCOLD STARTUP:\n\nWARM STARTUP:\n"));
	free(text);
	arena_release(&a);
	answers_release(&out);
}

static void warm_up_is_shown_but_not_counted(void **state)
{
	struct startup_iteration first[] = { ENGINE(99.0, 9.0, 9.0) };
	struct startup_runs r = both_sides();
	struct startup_metric m[STARTUP_METRICS_MAX];
	struct json_value *doc, *own;
	struct buf out = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	r.side[STARTUP_WARMUP].v = first;
	r.side[STARTUP_WARMUP].n = 1;
	r.side[STARTUP_COLD].n = 1;
	assert_int_equal(startup_metrics(&r, m, &a), 4); /* its encoder counts for nothing */
	startup_json(&r, STR("{}"), &out);
	assert_int_equal(json_parse(&a, buf_str(&out), &doc, &e), 0);
	own = json_get(json_get(json_get(doc, "profllm"), "warmup"), "iterations");
	assert_int_equal(own->count, 1);
	assert_true(json_get(&own->item[0], "startup_s")->real > 98);
	arena_release(&a);
	answers_release(&out);
}

static double mean_of(const struct json_value *side, const char *phase)
{
	const struct json_value *v = json_get(json_get(side, "phases"), phase);

	return v ? json_get(v, "mean")->real : NAN;
}

static void phases_are_added_up_and_averaged_over_those_that_have_them(void **state)
{
	const struct engine_phase one[] = { { "weights", 1.0 }, { "capture", 0.5 },
					     { "weights", 2.0 } };
	const struct engine_phase two[] = { { "weights", 5.0 } };
	struct startup_iteration it[] = { ENGINE(9, 0, 0), ENGINE(9, 0, 0), ENGINE(9, 0, 0) };
	struct startup_runs r = { .side = { [STARTUP_COLD] = { it, 3, 3 } } };
	struct json_value *doc;
	const struct json_value *side;
	struct buf out = { 0 }, text = { 0 };
	struct arena a = { 0 };
	struct err e = { 0 };

	(void)state;
	it[0].phase = one;
	it[0].n_phases = 3;
	it[1].phase = two;
	it[1].n_phases = 1;
	it[1].spawn_s = 0.25;
	startup_json(&r, STR("{}"), &out);
	assert_int_equal(json_parse(&a, buf_str(&out), &doc, &e), 0);
	side = json_get(json_get(doc, "profllm"), "cold");
	assert_float_equal(mean_of(side, "weights"), 4.0, 1e-12);
	assert_float_equal(mean_of(side, "capture"), 0.5, 1e-12);
	assert_float_equal(json_get(json_get(side, "spawn_s"), "mean")->real, 0.25, 1e-12);
	assert_null(json_get(side, "ready_s"));
	startup_terminal_ours(&r, &text);
	assert_non_null(strstr(text.data, "weights                                      4.00"));
	assert_non_null(strstr(text.data, "page cache"));
	arena_release(&a);
	answers_release(&out);
	buf_release(&text);
}

static void doubts_have_their_thresholds(void **state)
{
	static const struct {
		double cold[4], warm[4]; /* up to a 0 */
		size_t n_warmup;
		bool is_server, is_dropped, is_stopped;
		unsigned expected;
	} row[] = {
		{ { 10, 10, 10 }, { 5, 5, 5 }, 1, false, false, false, 0 },
		{ { 10, 10, 10 }, { 5, 5 }, 1, false, false, false, STARTUP_FEW },
		{ { 10, 10, 10 }, { 0 }, 0, false, false, false, 0 },
		{ { 10, 10, 10 }, { 5, 5, 5 }, 0, false, false, false, STARTUP_NO_WARMUP },
		{ { 10, 10, 10 }, { 5, 5, 7 }, 1, false, false, false, STARTUP_SPREADS },
		{ { 10, 10, 11.9 }, { 5, 5, 5 }, 1, false, false, false, 0 },
		{ { 12.1, 10, 10, 10 }, { 5, 5, 5 }, 1, false, false, false, STARTUP_FIRST_SLOW },
		{ { 11.9, 10, 10, 10 }, { 5, 5, 5 }, 1, false, false, false, 0 },
		{ { 12.1, 10, 10, 10 }, { 5, 5, 5 }, 1, false, true, false, 0 },
		{ { 10, 10, 10 }, { 1.9, 1.9, 1.9 }, 1, true, false, false, STARTUP_COARSE },
		{ { 10, 10, 10 }, { 1.9, 1.9, 1.9 }, 1, false, false, false, 0 },
		{ { 10, 10, 10 }, { 5, 5, 5 }, 1, false, false, true, STARTUP_STOPPED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(*row); i++) {
		struct startup_iteration it[2][4] = { 0 };
		struct startup_runs r = {
			.is_server = row[i].is_server, .is_interrupted = row[i].is_stopped,
			.is_page_cache_dropped = row[i].is_dropped,
			.side = { [STARTUP_COLD] = { it[0], 0, 4 },
				  [STARTUP_WARM] = { it[1], 0, 4 },
				  [STARTUP_WARMUP] = { NULL, row[i].n_warmup, 1 } },
		};

		for (size_t k = 0; k < 4 && row[i].cold[k] > 0; k++)
			it[0][r.side[STARTUP_COLD].n++].startup_s = row[i].cold[k];
		for (size_t k = 0; k < 4 && row[i].warm[k] > 0; k++)
			it[1][r.side[STARTUP_WARM].n++].startup_s = row[i].warm[k];
		assert_int_equal(startup_doubts(&r), row[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_lines_are_upstreams),
		cmocka_unit_test(the_keys_are_upstreams_and_ours_follow),
		cmocka_unit_test(without_an_encoder_there_are_no_keys_of_it),
		cmocka_unit_test(a_side_without_iterations_has_no_metrics),
		cmocka_unit_test(warm_up_is_shown_but_not_counted),
		cmocka_unit_test(doubts_have_their_thresholds),
		cmocka_unit_test(phases_are_added_up_and_averaged_over_those_that_have_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
