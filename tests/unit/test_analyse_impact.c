/* SPDX-License-Identifier: Apache-2.0 */
/* test_analyse_impact.c - impact, scaling and capacity: expected numbers are worked out here. */
#include "analyse_rig.h"

static const struct json_value *named(const struct json_value *v, const char *column)
{
	const struct json_value *list = json_get(v, "parameters");

	for (size_t i = 0; i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "column"), STR("")), column))
			return &list->item[i];
	return NULL;
}

/* ---- impact ---- */

/* Every combination four times: tp doubles, the cache gives 10 %, the letter nothing. */
static void put_plan(struct rig *r)
{
	for (int tp = 1; tp <= 4; tp *= 2)
		for (int cache = 0; cache < 2; cache++)
			for (int i = 0; i < 4; i++) {
				rig_number(r, "server.tensor_parallel_size", tp);
				rig_put(r, "server.cache", (struct value){ .kind = VALUE_BOOL,
									   .is_true = cache });
				rig_text(r, "benchmark.letter", i % 2 ? "x" : "y");
				rig_text(r, "server.model", "m");
				rig_text(r, "tags.size", tp == 1 ? "S" : tp == 2 ? "M" : "L");
				rig_number(r, "server.port", 8000 + (double)r->next);
				rig_number(r, "request_throughput", 100 * tp * (cache ? 1.1 : 1));
				rig_run(r, 0);
			}
}

/* In a full plan the shares are those of sums of squares, which the test adds up itself. */
static void plan(void **state)
{
	const struct json_value *q;
	struct json_value *v;
	double between_tp, between_cache, total, within;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_plan(&r);
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	rig_near(v, "n", 24);
	/* logarithms: three sizes log 2 apart, two caches log 1.1 apart, nothing else */
	between_tp = 24 * 2 / 3.0 * log(2) * log(2);
	between_cache = 24 / 4.0 * log(1.1) * log(1.1);
	total = between_tp + between_cache;
	q = named(v, "server.tensor_parallel_size");
	within = between_cache / (24 - 3);
	rig_near(q, "share", 1 - within / (total / 23));
	rig_near(q, "levels/0/value", 1);
	rig_near(q, "levels/0/n", 8);
	rig_near(q, "levels/2/value", 4);
	rig_near(q, "levels/2/median", 420);
	rig_near(q, "effect", 3);
	assert_true(rig_real(q, "p") < 1e-12);
	assert_int_equal(rig_count(q, "confounded_with"), 1);
	rig_same(q, "confounded_with/0/column", "tags.size");
	rig_near(q, "confounded_with/0/strength", 1);
	assert_non_null(strstr(rig_at(q, "note")->text.p, "changes together"));
	q = named(v, "server.cache");
	rig_near(q, "share", fmax(0, 1 - between_tp / 22 / (total / 23)));
	assert_int_equal(rig_at(q, "levels/0/value")->kind, JSON_FALSE);
	rig_same(q, "note", "little next to what the others change; with everything else equal it matters");
	q = named(v, "benchmark.letter");
	rig_same(q, "note", "no evidence that it matters");
	rig_near(q, "share", 0);
	rig_near(q, "p", 1);
	rig_near(q, "effect", 0);
	assert_null(named(v, "server.model"));
	assert_null(named(v, "server.port"));
	/* Everything else equal: two steps of tp, one of the cache, one of the letter. */
	assert_int_equal(rig_count(v, "matched"), 4);
	rig_same(v, "matched/0/column", "server.tensor_parallel_size");
	rig_near(v, "matched/0/effect", 1);
	rig_near(v, "matched/0/pairs", 4);
	rig_same(v, "matched/1/column", "server.tensor_parallel_size");
	rig_same(v, "matched/2/column", "server.cache");
	assert_int_equal(rig_count(v, "matched/0/also"), 0); /* the model is the same everywhere */
	rig_near(v, "matched/2/effect", 0.1);
	rig_near(v, "matched/2/interval/0", 0.1);
	rig_near(v, "matched/2/pairs", 6);
	rig_same(v, "matched/3/column", "benchmark.letter");
	rig_near(v, "matched/3/effect", 0);
	/* the first has the largest share */
	rig_near(v, "parameters/0/share", rig_real(named(v, "tags.size"), "share"));
	/* Only what is asked for. */
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\", \"parameters\": "
		    "[\"server.cache\"], \"filter\": {\"column\": \"tags.size\", \"in\": [\"S\"]}}");
	assert_int_equal(rig_count(v, "parameters"), 1);
	rig_near(v, "parameters/0/share", 1);
	rig_near(v, "parameters/0/p", 0);
	rig_near(v, "parameters/0/effect", 0.1);
	assert_int_equal(rig_at(v, "parameters/0/note")->kind, JSON_NULL);
	rig_end(&r);
}

/* A number of many values is cut into ranges of equally many runs; what has none is a level. */
static void ranges(void **state)
{
	const struct json_value *q;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 80; i++) {
		rig_number(&r, "server.share", i / 100.0);
		rig_text(&r, "tags.name", arena_printf(&r.arena, "run %d", i));
		rig_number(&r, "median_ttft_ms", i < 40 ? 10 : 20);
		rig_run(&r, 0);
	}
	for (int i = 0; i < 5; i++) {
		rig_number(&r, "median_ttft_ms", 40);
		rig_run(&r, 0);
	}
	rig_number(&r, "server.share", INFINITY);
	rig_number(&r, "median_ttft_ms", 20);
	rig_run(&r, 0);
	rig_number(&r, "server.share", 0.1);
	rig_number(&r, "median_ttft_ms", INFINITY);
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"median_ttft_ms\"}");
	rig_near(v, "n", 86);
	q = named(v, "server.share");
	assert_int_equal(rig_count(q, "levels"), 9);
	assert_int_equal(rig_at(q, "levels/0/value")->kind, JSON_NULL);
	rig_near(q, "levels/0/n", 5);
	rig_near(q, "levels/0/median", 40);
	rig_near(q, "levels/1/value", 0);
	rig_near(q, "levels/1/to", 0.09);
	rig_near(q, "levels/1/n", 10);
	rig_near(q, "levels/1/median", 10);
	rig_same(q, "levels/8/to", "inf");
	assert_true(rig_real(q, "share") > 0.9);
	assert_null(named(v, "tags.name"));
	assert_true(rig_has_note(v, "1 parameter has more than"));
	assert_true(rig_has_note(v, "1 of 87 runs have no median_ttft_ms"));
	rig_end(&r);
}

/* A run of many columns: `same` that never vary, `many` that do by themselves, and the real one. */
static void put_wide(struct rig *r, int number, int same, int many)
{
	size_t n = 0;
	struct cell *cell = arena_alloc(&r->arena, (size_t)(same + many + 3) * sizeof(*cell));
	struct row row = { .id = number + 1, .cell = cell };
	struct err e = { 0 };
	int at = number;

	for (int i = 0; i < same; i++)
		cell[n++] = (struct cell){ str_of(arena_printf(&r->arena, "tags.same%04d", i)),
					   { .kind = VALUE_NUMBER, .number = 1 } };
	for (int i = 0; i < many; i++) {
		at = (at * 7 + i) % 23;
		cell[n++] = (struct cell){ str_of(arena_printf(&r->arena, "tags.p%04d", i)),
					   { .kind = VALUE_NUMBER, .number = at % 3 } };
	}
	cell[n++] = (struct cell){ STR("server.real"), { .kind = VALUE_NUMBER, .number = number % 2 } };
	cell[n++] = (struct cell){ STR("request_throughput"),
				   { .kind = VALUE_NUMBER, .number = number % 2 ? 200 : 100 } };
	row.n = n;
	if (index_add(r->index, &row, 0, &e) < 0)
		fail_msg("%s", e.text);
}

/* The parameter that explains everything comes after 700 that are the same and 420 that vary. */
static void many_columns(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 24; i++)
		put_wide(&r, i, 700, 420);
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	assert_int_equal(rig_count(v, "parameters"), 40);
	rig_same(v, "parameters/0/column", "server.real");
	rig_near(v, "parameters/0/share", 1);
	for (size_t i = 1; i < 40; i++) {
		const struct json_value *q = &json_get(v, "parameters")->item[i];

		assert_true(rig_real(q, "share") <=
			    rig_real(&json_get(v, "parameters")->item[i - 1], "share"));
		assert_true(rig_count(q, "levels") >= 2 && rig_real(q, "levels/0/median") > 0);
	}
	assert_true(rig_has_note(v, "421 parameters vary; the 40 that explain most are shown"));
	assert_false(rig_has_note(v, "not looked at"));
	rig_end(&r);
	/* Beyond the limit the note says how many were not examined. */
	rig_begin(&r);
	for (int i = 0; i < 24; i++)
		put_wide(&r, i, 700, 2100);
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	assert_true(rig_has_note(v, "2000 parameters vary"));
	assert_true(rig_has_note(v, "101 more parameters differ among these runs and were not looked at"));
	rig_end(&r);
}

/* Runs of which nothing but tags is known are one configuration. */
static void tags_alone(void **state)
{
	const struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++) {
		rig_text(&r, "tags.build", i % 2 ? "b" : "a");
		rig_number(&r, "output_throughput", (i % 2 ? 130 : 100) + i % 5);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"output_throughput\"}");
	rig_same(v, "parameters/0/column", "tags.build");
	assert_true(rig_real(v, "parameters/0/share") > 0.9);
	assert_int_equal(rig_count(v, "matched"), 0); /* one pair */
	rig_end(&r);
}

/* Batches are larger at 4 and at 8: the step to 4 changes two things and that to 8 one. */
static void changes_with(void **state)
{
	const struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int tp = 2; tp <= 8; tp *= 2)
		for (int i = 0; i < 3; i++) {
			rig_number(&r, "server.tensor_parallel_size", tp);
			rig_number(&r, "server.max_num_batched_tokens", tp > 2 ? 16384 : 8192);
			rig_number(&r, "benchmark.max_concurrency", 1 + i);
			rig_text(&r, "server.model", "m");
			rig_number(&r, "request_throughput", 100 * tp * tp + i);
			rig_run(&r, 0);
		}
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	for (size_t i = 0; i < rig_count(v, "matched"); i++) {
		const struct json_value *step = &rig_at(v, "matched")->item[i];
		bool is_tp = str_eq(rig_at(step, "column")->text, STR("server.tensor_parallel_size"));
		bool is_first = is_tp && rig_real(step, "from") == 2;

		assert_int_equal(rig_count(step, "also"), is_first);
		rig_near(step, "also_total", is_first);
		if (is_first)
			rig_same(step, "also/0", "server.max_num_batched_tokens");
	}
	assert_true(rig_count(v, "matched") >= 2);
	rig_end(&r);
}

/*
 * A name that the user gave is matched, too, where nothing that was configured splits the runs as
 * it does; a note says that the other steps join its values. The load is named, not the requests.
 */
static void names_of_users(void **state)
{
	struct json_value *v;
	struct rig r;
	size_t n;

	(void)state;
	rig_begin(&r);
	for (int load = 1; load <= 4; load++)
		for (int i = 0; i < 4; i++) {
			rig_number(&r, "benchmark.num_prompts", 10 * load);
			rig_number(&r, "benchmark.max_concurrency", load);
			rig_text(&r, "tags.load", (const char *[]){ "", "a", "b", "c", "d" }[load]);
			rig_text(&r, "tags.variant", i % 2 ? "fp8" : "bf16");
			rig_number(&r, "request_throughput", pow(10, load) * (i % 2 ? 1.3 : 1) *
				   (i > 1 ? 1.01 : 1));
			rig_run(&r, 0);
		}
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	rig_same(v, "parameters/0/column", "benchmark.max_concurrency");
	n = rig_count(v, "matched");
	assert_int_equal(n, 1);
	rig_same(v, "matched/0/column", "tags.variant");
	rig_near(v, "matched/0/effect", 0.3);
	rig_near(v, "matched/0/pairs", 4);
	rig_same(named(v, "tags.variant"), "note",
		 "little next to what the others change; with everything else equal it matters");
	assert_true(rig_has_note(v, "values are means over runs that differ in tags.variant"));
	rig_end(&r);
}

/* Failed runs and INVALID values explain nothing, and are no size's median. */
static void only_valid(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 20; i++) {
		rig_number(&r, "server.tensor_parallel_size", i % 2 + 1);
		rig_number(&r, "completed", i < 5 ? 0 : 100);
		rig_text(&r, "trust.invalid", i == 5 ? "ttft" : "");
		rig_number(&r, "median_ttft_ms", i < 5 ? 0 : i == 5 ? 1 : i % 2 ? 10 : 20);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"median_ttft_ms\"}");
	rig_near(v, "n", 14);
	rig_near(v, "parameters/0/share", 1);
	assert_true(rig_has_note(v, "5 runs failed and are left out"));
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"median_ttft_ms\", \"series\": [], "
		    "\"by\": \"server.tensor_parallel_size\"}");
	rig_near(v, "series/0/n", 14);
	rig_near(v, "series/0/points/1/low", 10);
	rig_near(v, "series/0/points/1/speedup", 2);
	rig_near(v, "trust/0/invalid", 1);
	assert_true(json_bool(rig_at(v, "trust/0/would_lead"), false));
	rig_end(&r);
}

static void impact_corners(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	assert_true(rig_has_note(v, "not enough data: 0 runs"));
	for (int i = 0; i < 8; i++) {
		rig_number(&r, "server.a", i % 2);
		rig_number(&r, "request_throughput", 5);
		rig_number(&r, "signed", i % 2 ? -1 : 1);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	rig_near(v, "parameters/0/p", NAN);
	rig_near(v, "parameters/0/share", NAN);
	rig_near(v, "parameters/0/effect", 0);
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"signed\"}");
	rig_near(v, "parameters/0/share", 1);
	rig_near(v, "parameters/0/effect", 2);
	rig_refused(&r, analyse_impact, "{}", "/metric");
	rig_refused(&r, analyse_impact, "{\"metric\": \"a\", \"parameters\": [[]]}", "/parameters/0");
	rig_end(&r);
}

/* ---- scaling ---- */

static void scaling(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 3; i++)
		for (int tp = 2; tp <= 8; tp *= 2) {
			rig_text(&r, "server.model", "m");
			rig_number(&r, "server.tensor_parallel_size", tp);
			rig_number(&r, "hardware.gpus", tp);
			rig_number(&r, "output_throughput", (tp == 2 ? 100 : tp == 4 ? 180 : 300) + i);
			rig_number(&r, "median_ttft_ms", 80.0 / tp);
			rig_run(&r, 0);
		}
	rig_text(&r, "server.model", "other");
	rig_number(&r, "server.tensor_parallel_size", 1);
	rig_number(&r, "output_throughput", 7);
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"output_throughput\", "
		    "\"by\": \"server.tensor_parallel_size\"}");
	assert_int_equal(rig_count(v, "series"), 1);
	assert_int_equal(rig_count(v, "series/0/points"), 3);
	rig_near(v, "series/0/points/0/x", 2);
	rig_near(v, "series/0/points/0/speedup", 1);
	rig_near(v, "series/0/points/0/efficiency", 1);
	rig_near(v, "series/0/points/1/n", 3);
	rig_near(v, "series/0/points/1/median", 181);
	rig_near(v, "series/0/points/1/low", 180);
	rig_near(v, "series/0/points/1/high", 182);
	rig_near(v, "series/0/points/1/speedup", 181 / 101.0);
	rig_near(v, "series/0/points/2/efficiency", 301 / 101.0 / 4);
	assert_true(rig_has_note(v, "1 series has one size of server.tensor_parallel_size only and is left out"));
	/* A size that was measured with another version would scale by that version, too. */
	for (int i = 0; i < 2; i++) {
		rig_text(&r, "server.model", "m");
		rig_number(&r, "server.tensor_parallel_size", 8);
		rig_number(&r, "hardware.gpus", 8);
		rig_number(&r, "output_throughput", 900);
		rig_text(&r, "environment.server.version", i ? "0.13" : "0.12");
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"output_throughput\", "
		    "\"by\": \"server.tensor_parallel_size\"}");
	rig_near(v, "series/0/points/2/median", 301);
	assert_int_equal(rig_at(v, "series/0/version")->kind, JSON_NULL);
	assert_true(rig_has_note(v, "series use their newest version (unknown); 2 runs of other versions "
				    "(0.12, 0.13) are left out"));
	/* of times the inverse */
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"median_ttft_ms\", \"series\": [], "
		    "\"by\": \"server.tensor_parallel_size\"}");
	rig_near(v, "series/0/points/2/speedup", 4);
	rig_near(v, "series/0/points/2/efficiency", 1);
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"nothing\", \"by\": \"server.model\"}");
	assert_int_equal(rig_count(v, "series"), 0);
	rig_refused(&r, analyse_scaling, "{\"metric\": \"output_throughput\"}", "/by");
	rig_refused(&r, analyse_scaling, "{\"by\": \"a\"}", "/metric");
	rig_end(&r);
}

/* ---- capacity ---- */

struct load { const char *gpu; double tp, offered, many, rate, wait, failed; };

static void put_load(struct rig *r, const struct load *l)
{
	rig_text(r, "hardware.gpu", l->gpu);
	rig_number(r, "server.tensor_parallel_size", l->tp);
	if (l->tp > 0)
		rig_number(r, "gpus_used", l->tp);
	rig_number(r, "benchmark.request_rate", l->offered);
	rig_number(r, "benchmark.max_concurrency", l->many);
	rig_number(r, "request_throughput", l->rate);
	rig_number(r, "p99_ttft_ms", l->wait);
	rig_number(r, "completed", 1000 - l->failed);
	rig_number(r, "failed", l->failed);
	rig_run(r, 0);
}

#define ASK "{\"rate\": 100, \"slo\": [{\"column\": \"p99_ttft_ms\", \"max\": 500}]}"

/* A grid of sizes and loads, each twice, with one version; factor: of its speed. */
static void put_version(struct rig *r, const char *version, double at_s, double factor, double most,
			double failed)
{
	for (int i = 0; i < 2; i++)
		for (double tp = 1; tp <= 4; tp *= 2)
			for (double offered = 4; offered <= most; offered *= 2) {
				rig_text(r, "environment.server.version", version);
				rig_number(r, "timestamp", at_s + i);
				put_load(r, &(struct load){ "A", tp, offered, 64, offered * factor,
					 100 * offered / tp / factor, failed });
			}
}

#define OF(VERSION) "\"filter\": {\"column\": \"environment.server.version\", \"in\": [\"" VERSION \
		    "\"]}"
#define SLO "\"slo\": [{\"column\": \"p99_ttft_ms\", \"max\": 500}]"
#define SCALE "\"metric\": \"request_throughput\", \"by\": \"server.tensor_parallel_size\""

static double carried(struct rig *r, const char *body)
{
	return rig_real(rig_ask(r, analyse_capacity, body), "configurations/0/rate_per_server/value");
}

/* The newest version is 10 % slower: the answers are those of its runs alone. */
static void newest_version(void **state)
{
	struct json_value *v;
	struct rig r;
	double rate;

	(void)state;
	rig_begin(&r);
	put_version(&r, "0.11.0", 200, 0.9, 16, 0);
	put_version(&r, "0.10.0", 100, 1, 16, 0);
	rate = carried(&r, "{\"rate\": 9, " SLO ", " OF("0.11.0") "}");
	rig_near(rig_ask(&r, analyse_capacity, "{\"rate\": 9, " SLO ", " OF("0.10.0") "}"),
		 "configurations/0/rate_per_server/value", 5);
	assert_true(rate > 4 && rate < 4.1); /* the limit is reached at 0.9 of the load and rate */
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 9, " SLO "}");
	rig_near(v, "configurations/0/rate_per_server/value", rate);
	rig_same(v, "configurations/0/version", "0.11.0");
	rig_near(v, "configurations/0/runs", 6);
	assert_true(rig_has_note(v, "configurations use their newest version (0.11.0); 18 runs of other "
				    "versions (0.10.0) are left out"));
	v = rig_ask(&r, analyse_scaling, "{" SCALE "}");
	rig_near(v, "series/0/points/0/median", 0.9 * 4);
	rig_near(v, "series/0/points/0/n", 2);
	rig_same(v, "series/0/version", "0.11.0");
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	rig_near(v, "n", 18);
	rig_near(named(v, "benchmark.request_rate"), "levels/0/median", 0.9 * 4);
	assert_null(named(v, "environment.server.version"));
	assert_true(rig_has_note(v, "18 runs of other versions"));
	/* unless the versions are the question */
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\", "
		    "\"parameters\": [\"environment.server.version\"]}");
	rig_near(v, "n", 36);
	rig_near(named(v, "environment.server.version"), "levels/0/median", 8);
	rig_near(named(v, "environment.server.version"), "levels/1/median", 0.9 * 8);
	/* One load is not enough to answer, and a version that only failed does not count. */
	put_version(&r, "0.12.0", 300, 0.5, 4, 0);
	put_version(&r, "0.13.0", 400, 0.5, 16, 500);
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 9, " SLO "}");
	rig_near(v, "configurations/0/rate_per_server/value", rate);
	rig_same(v, "configurations/0/version", "0.11.0");
	assert_true(rig_has_note(v, "3 of 3 configurations have a newer version that is not used"));
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 9, " SLO ", " OF("0.12.0") "}");
	rig_same(v, "configurations/0/version", "0.12.0");
	rig_same(v, "configurations/0/state", "one_load");
	rig_end(&r);
}

/* Two commits of one release are two versions. */
static void newest_commit(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 36; i++) {
		bool is_old = i >= 12;

		rig_text(&r, "environment.server.version", "nightly");
		rig_text(&r, "provenance.engine_commit", is_old ? "aaaaaaa" : "bbbbbbb");
		rig_number(&r, "timestamp", is_old ? 1 : 2);
		put_load(&r, &(struct load){ "A", i % 3 + 1, 4 << i % 2, 64, is_old ? 9 : 3, 100, 0 });
	}
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_same(v, "configurations/0/version", "nightly commit bbbbbbb");
	rig_near(v, "configurations/0/rate_per_server/value", 3);
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\"}");
	rig_near(v, "n", 12);
	/* a history has too few runs of its newest commit */
	v = rig_ask(&r, analyse_impact, "{\"metric\": \"request_throughput\", \"filter\": {\"column\": "
		    "\"server.tensor_parallel_size\", \"in\": [1]}}");
	rig_near(v, "n", 12);
	assert_true(rig_has_note(v, "too few to judge: the numbers are over all versions"));
	rig_end(&r);
	/* A version that only the user's --metadata says. */
	rig_begin(&r);
	for (int i = 0; i < 36; i++) {
		bool is_old = i >= 12;

		rig_text(&r, "tags.version", is_old ? "v1.2" : "v1.3");
		rig_number(&r, "timestamp", is_old ? 1 : 2);
		put_load(&r, &(struct load){ "A", i % 3 + 1, 4 << i % 2, 64, is_old ? 9 : 3, 100, 0 });
	}
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_same(v, "configurations/0/version", "v1.3");
	assert_true(rig_has_note(v, "configurations use their newest version (v1.3); 24 runs of other "
				    "versions (v1.2) are left out"));
	rig_end(&r);
}

static void capacity(void **state)
{
	/* Limits are reached half way from 8 to 12, so at 10; and a fifth from 30 to 40, at 32. */
	static const struct load one[] = {
		{ "A", 1, 4, 64, 4, 100, 0 }, { "A", 1, 8, 64, 8, 400, 0 },
		{ "A", 1, 16, 64, 12, 600, 0 }, { "A", 1, 32, 64, 12.5, 9000, 0 },
		{ "B", 4, 20, 64, 20, 100, 0 }, { "B", 4, 30, 64, 30, 300, 0 },
		{ "B", 4, 45, 64, 40, 1300, 0 },
		/* holds everywhere; nowhere; fails at its second load */
		{ "C", 8, INFINITY, 16, 50, 200, 0 }, { "C", 8, INFINITY, 32, 60, 300, 0 },
		{ "D", 1, 4, 64, 4, 700, 0 },
		{ "E", 2, 5, 64, 5, 100, 0 }, { "E", 2, 10, 64, 10, 200, 50 },
	};
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (size_t i = 0; i < sizeof(one) / sizeof(*one); i++)
		put_load(&r, &one[i]);
	/* without the metric: not looked at */
	rig_text(&r, "hardware.gpu", "A");
	rig_number(&r, "request_throughput", 99);
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_capacity, ASK);
	assert_int_equal(rig_count(v, "configurations"), 5);
	assert_false(rig_has_note(v, "environment.server.version"));
	rig_near(v, "left_out", 1);
	rig_same(v, "configurations/0/key/hardware.gpu", "A");
	rig_near(v, "configurations/0/gpus_per_server", 1);
	rig_near(v, "configurations/0/rate_per_server/value", 10);
	rig_near(v, "configurations/0/rate_per_server/low", 8);
	rig_near(v, "configurations/0/rate_per_server/high", 12);
	rig_near(v, "configurations/0/servers", 10);
	rig_near(v, "configurations/0/gpus/value", 10);
	rig_near(v, "configurations/0/gpus/low", 9);
	rig_near(v, "configurations/0/gpus/high", 13);
	rig_near(v, "configurations/0/runs", 4);
	assert_int_equal(rig_at(v, "configurations/0/reason")->kind, JSON_NULL);
	rig_same(v, "configurations/1/key/hardware.gpu", "B");
	rig_near(v, "configurations/1/rate_per_server/value", 32);
	rig_near(v, "configurations/1/servers", 4);
	rig_near(v, "configurations/1/gpus/value", 16);
	rig_same(v, "configurations/2/key/hardware.gpu", "C");
	rig_near(v, "configurations/2/rate_per_server/value", 60);
	rig_near(v, "configurations/2/rate_per_server/high", NAN);
	rig_near(v, "configurations/2/gpus/value", 16);
	rig_near(v, "configurations/2/gpus/low", NAN);
	assert_non_null(strstr(rig_at(v, "configurations/2/reason")->text.p, "may sustain more"));
	rig_same(v, "configurations/3/key/hardware.gpu", "E");
	rig_near(v, "configurations/3/rate_per_server/value", 5);
	rig_near(v, "configurations/3/gpus/value", 40);
	rig_same(v, "configurations/0/state", "found");
	rig_same(v, "configurations/2/state", "needs_higher_load");
	rig_same(v, "configurations/4/state", "never");
	rig_near(v, "configurations/0/headroom", 0);
	rig_near(v, "configurations/1/headroom", 0.28);
	rig_near(v, "configurations/0/usd_per_hour", NAN);
	rig_near(v, "slo/0/max", 500);
	rig_near(v, "binding", 0);
	assert_int_equal(rig_count(v, "configurations/0/loads"), 4);
	rig_near(v, "configurations/0/loads/2/rate", 12);
	rig_near(v, "configurations/0/loads/2/values/0/value", 600);
	assert_int_equal(rig_at(v, "configurations/0/loads/2/holds")->kind, JSON_FALSE);
	rig_same(v, "configurations/4/key/hardware.gpu", "D");
	rig_near(v, "configurations/4/rate_per_server/value", NAN);
	rig_near(v, "configurations/4/servers", NAN);
	assert_non_null(strstr(rig_at(v, "configurations/4/reason")->text.p, "lowest load"));
	/* The default: twice the lowest 100 ms, and 70 % of what carries most. */
	v = rig_ask(&r, analyse_capacity, "{\"rate\": null, \"slo\": null}");
	rig_same(v, "slo/0/column", "p99_ttft_ms");
	rig_near(v, "slo/0/max", 200);
	rig_near(v, "rate", 35); /* C carries 50 within 200 ms */
	rig_near(v, "configurations/0/gpus/value", 7); /* A: a third of the way from 4 to 8 */
	rig_same(v, "configurations/1/key/hardware.gpu", "B");
	rig_near(v, "configurations/1/rate_per_server/value", 25);
	rig_near(v, "configurations/1/gpus/value", 8);
	rig_refused(&r, analyse_capacity, "{\"rate\": null}", "/slo");
	rig_end(&r);
}

/* So do workloads that no column of the usual list distinguishes, such as conversations. */
static void other_workloads(void **state)
{
	static const char *const workload[] = { "m 32 in", "m 32 in, 3 turns" };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (size_t i = 0; i < 6; i++) {
		double rate = (double)(i % 3 + 1) * (i < 3 ? 10 : 20);

		rig_text(&r, "workload", workload[i / 3]);
		rig_number(&r, "gpus_used", 1);
		rig_number(&r, "benchmark.request_rate", rate);
		rig_number(&r, "request_throughput", rate);
		rig_number(&r, "p99_ttft_ms", 250 * (double)(i % 3 + 1));
		rig_number(&r, "completed", 10);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_capacity, ASK);
	assert_int_equal(rig_count(v, "configurations"), 2);
	rig_near(v, "configurations/0/rate_per_server/value", 40);
	rig_same(v, "configurations/1/name", "m 32 in");
	rig_near(v, "configurations/1/rate_per_server/value", 20);
	rig_end(&r);
}

/* Metadata and arguments outside the usual list tell configurations apart. */
static void other_columns(void **state)
{
	static const struct { const char *gpu, *gpus, *backend; double rate; } one[] = {
		{ "h100", "1", NULL, 10 }, { "h100", "4", NULL, 20 }, { "b200", "1", NULL, 40 },
		{ "b200", "1", "flashinfer", 80 },
	};
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (size_t i = 0; i < 4; i++)
		for (double at = 1; at <= 3; at++) {
			double gpus;

			assert_true(str_to_f64(str_of(one[i].gpus), &gpus));
			rig_text(&r, "gpu_model", one[i].gpu);
			rig_text(&r, "tags.num_gpus", one[i].gpus);
			rig_number(&r, "gpus_used", gpus);
			if (one[i].backend)
				rig_text(&r, "server.attention_backend", one[i].backend);
			rig_number(&r, "benchmark.request_rate", at * one[i].rate);
			rig_number(&r, "request_throughput", at * one[i].rate);
			rig_number(&r, "p99_ttft_ms", 250 * at);
			rig_number(&r, "completed", 10);
			rig_run(&r, 0);
		}
	v = rig_ask(&r, analyse_capacity, ASK);
	assert_int_equal(rig_count(v, "configurations"), 4);
	rig_same(v, "configurations/0/name", "flashinfer, b200, gpus_used=1");
	rig_near(v, "configurations/0/rate_per_server/value", 160);
	rig_near(v, "configurations/3/gpus_per_server", 4);
	rig_near(v, "configurations/3/rate_per_server/value", 40);
	/* A size that is a text, as in all metadata. */
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"request_throughput\", \"by\": \"tags.num_gpus\", "
		    "\"series\": [\"gpu_model\"]}");
	assert_int_equal(rig_count(v, "series"), 1);
	rig_near(v, "series/0/points/1/x", 4);
	rig_near(v, "series/0/points/1/speedup", 2);
	rig_near(v, "series/0/points/1/efficiency", 0.5);
	rig_same(v, "ideal", "proportional");
	/* Per GPU four times as many are at best as good. */
	for (int gpus = 1; gpus <= 4; gpus += 3) {
		rig_number(&r, "gpus_used", gpus);
		rig_number(&r, "tokens_per_s_per_gpu", 110 - 10 * gpus);
		rig_number(&r, "load", 8);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"tokens_per_s_per_gpu\", \"by\": \"gpus_used\", "
		    "\"series\": []}");
	rig_near(v, "series/0/points/1/efficiency", 0.7);
	rig_same(v, "ideal", "constant");
	v = rig_ask(&r, analyse_scaling, "{\"metric\": \"tokens_per_s_per_gpu\", \"by\": \"load\", "
		    "\"series\": []}");
	rig_same(v, "ideal", "proportional");
	rig_end(&r);
}

/* Repeats give the interval; two limits: the one reached first counts. */
static void repeats(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 5; i++) {
		put_load(&r, &(struct load){ "A", 2, 10, 8, 10, 300 + 10 * (i - 2), 0 });
		put_load(&r, &(struct load){ "A", 2, 20, 8, 20, 700 + 10 * (i - 2), 0 });
		put_load(&r, &(struct load){ "A", 2, 30, 8, 25, 400, 0 });
	}
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_near(v, "configurations/0/rate_per_server/value", 15);
	assert_true(rig_real(v, "configurations/0/rate_per_server/low") > 14 &&
		    rig_real(v, "configurations/0/rate_per_server/low") < 15);
	assert_true(rig_real(v, "configurations/0/rate_per_server/high") > 15 &&
		    rig_real(v, "configurations/0/rate_per_server/high") < 16);
	assert_non_null(strstr(rig_at(v, "configurations/0/reason")->text.p, "held again"));
	/* The default limit: twice the lowest median of a load, whatever one lucky run has. */
	put_load(&r, &(struct load){ "A", 2, 10, 8, 10, 5, 0 });
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 1, \"slo\": null}");
	rig_near(v, "slo/0/max", 590);
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 1, \"slo\": [{\"column\": \"p99_ttft_ms\", "
		    "\"max\": 500}, {\"column\": \"completed\", \"min\": 2000}]}");
	rig_near(v, "configurations/0/rate_per_server/low", 0);
	rig_refused(&r, analyse_capacity, "{\"slo\": []}", "/rate");
	rig_refused(&r, analyse_capacity, "{\"rate\": 0, \"slo\": []}", "/rate");
	rig_refused(&r, analyse_capacity, "{\"rate\": 1, \"slo\": []}", "/slo");
	rig_refused(&r, analyse_capacity, "{\"rate\": 1, \"slo\": [{}]}", "/slo/0/column");
	rig_refused(&r, analyse_capacity, "{\"rate\": 1, \"slo\": [{\"column\": \"a\"}]}", "/slo/0");
	rig_refused(&r, analyse_capacity, "{\"rate\": 1, \"slo\": [{\"column\": \"a\", \"max\": 1, "
		    "\"min\": 0}]}", "/slo/0");
	rig_end(&r);
}

/* A load under which requests fail does not hold, whatever it measured, or measured not at all. */
static void failing_loads(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	/* nothing completed at 40, half of it at 30: both are beyond 20, which held */
	put_load(&r, &(struct load){ "A", 1, 10, 64, 9.9, 20, 0 });
	put_load(&r, &(struct load){ "A", 1, 20, 64, 19.9, 30, 0 });
	put_load(&r, &(struct load){ "A", 1, 40, 64, 0, 0, 1000 });
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_near(v, "configurations/0/rate_per_server/value", 19.9);
	rig_near(v, "configurations/0/rate_per_server/low", 19.9);
	rig_near(v, "configurations/0/rate_per_server/high", 40);
	assert_int_equal(rig_at(v, "configurations/0/reason")->kind, JSON_NULL);
	rig_near(v, "configurations/0/runs", 3);
	rig_near(v, "left_out", 0);
	put_load(&r, &(struct load){ "A", 1, 30, 64, 15, 25, 500 });
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_near(v, "configurations/0/rate_per_server/value", 19.9);
	rig_near(v, "configurations/0/rate_per_server/high", 30);
	/* over the limit at 10, within it at 20: not "never within the limits" */
	put_load(&r, &(struct load){ "B", 1, 10, 64, 9.9, 900, 0 });
	put_load(&r, &(struct load){ "B", 1, 20, 64, 19.9, 30, 0 });
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_same(v, "configurations/1/state", "never");
	assert_non_null(strstr(rig_at(v, "configurations/1/reason")->text.p,
			       "not at a higher one: look at the runs"));
	rig_end(&r);
	/* The same by concurrency: it carries 60, and how much more nothing tells. */
	rig_begin(&r);
	put_load(&r, &(struct load){ "C", 1, INFINITY, 16, 50, 200, 0 });
	put_load(&r, &(struct load){ "C", 1, INFINITY, 32, 60, 300, 0 });
	put_load(&r, &(struct load){ "C", 1, INFINITY, 64, 40, 100, 600 });
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_near(v, "configurations/0/rate_per_server/value", 60);
	rig_near(v, "configurations/0/rate_per_server/low", 60);
	rig_near(v, "configurations/0/rate_per_server/high", NAN);
	assert_non_null(strstr(rig_at(v, "configurations/0/reason")->text.p,
			       "requests failed at the next concurrency"));
	rig_end(&r);
	/* An INVALID metric decides nothing; without it the limits held everywhere. */
	rig_begin(&r);
	put_load(&r, &(struct load){ "A", 1, 10, 64, 10, 20, 0 });
	rig_text(&r, "trust.invalid", "ttft");
	put_load(&r, &(struct load){ "A", 1, 20, 64, 20, 900, 0 });
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_near(v, "configurations/0/rate_per_server/value", 10);
	rig_near(v, "left_out", 1);
	rig_near(v, "trust/0/invalid", 1);
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 100, \"slo\": [{\"column\": \"p99_ttft_ms\", "
		    "\"max\": 500}], \"include_invalid\": true}");
	rig_near(v, "configurations/0/rate_per_server/high", 20);
	rig_end(&r);
}

/* One GPU each is supposed, and said, only where no configuration says how many it has. */
static void gpus_that_no_run_says(void **state)
{
	const struct load none = { "A", 0, 10, 0, 9.52, 20, 0 }, eight = { "B", 8, 10, 0, 10, 20, 0 };
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_load(&r, &none);
	v = rig_ask(&r, analyse_capacity, "{\"rate\": null, \"slo\": null}");
	assert_non_null(strstr(r.text.data, "\"rate\": 6.6,")); /* not 6.6000000000000005 */
	rig_near(v, "configurations/0/gpus_per_server", 1);
	assert_true(rig_has_note(v, "so one each is assumed"));
	put_load(&r, &eight);
	v = rig_ask(&r, analyse_capacity, ASK);
	rig_near(v, "configurations/0/gpus_per_server", 8);
	rig_near(v, "configurations/1/gpus_per_server", NAN);
	assert_false(rig_has_note(v, "so one each is assumed"));
	rig_end(&r);
}

/* A run of search: {find: rate}: it has the answer, and neither a load nor a latency. */
static void put_search(struct rig *r, const char *gpu, const char *limits, double rate)
{
	rig_text(r, "hardware.gpu", gpu);
	rig_number(r, "server.tensor_parallel_size", 2);
	rig_number(r, "gpus_used", 2);
	rig_text(r, "capacity_limits", limits);
	rig_number(r, "capacity_request_rate", rate);
	rig_number(r, "capacity_request_rate_low", 0.9 * rate);
	rig_number(r, "capacity_request_rate_high", 1.2 * rate);
	rig_run(r, 0);
}

static void searches(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_search(&r, "A", "p99_ttft_ms<500,p99_tpot_ms<30", 10);
	put_search(&r, "A", "p99_ttft_ms<500,p99_tpot_ms<30", 20);
	put_search(&r, "B", "p99_ttft_ms<=500,p99_tpot_ms<30", 40);
	put_search(&r, "B", "p99_ttft_ms<500,p99_tpot_ms<30", 50);
	put_search(&r, "A", "p99_ttft_ms<100", 5);
	put_search(&r, "A", "p99_ttft_ms<1", NAN);
	rig_text(&r, "hardware.gpu", "A");
	rig_number(&r, "capacity_concurrency", 64);
	rig_run(&r, 0);
	/* by itself it asks for what most searches did, and takes what they found */
	v = rig_ask(&r, analyse_capacity, "{\"rate\": null, \"slo\": null}");
	assert_int_equal(rig_count(v, "slo"), 2);
	rig_same(v, "slo/1/column", "p99_tpot_ms");
	rig_near(v, "slo/1/max", 30);
	rig_near(v, "rate", 31); /* 70 % of the 45 of B */
	assert_int_equal(rig_count(v, "configurations"), 2);
	rig_same(v, "configurations/0/key/hardware.gpu", "B");
	rig_near(v, "configurations/0/rate_per_server/value", 45);
	rig_near(v, "configurations/0/rate_per_server/low", 36);
	rig_near(v, "configurations/0/rate_per_server/high", 60);
	rig_near(v, "configurations/0/gpus/value", 2);
	rig_near(v, "configurations/0/searches", 2);
	rig_same(v, "configurations/0/state", "found");
	assert_int_equal(rig_count(v, "configurations/0/loads"), 0);
	rig_near(v, "configurations/1/rate_per_server/value", 15);
	rig_near(v, "configurations/1/gpus/value", 6);
	rig_near(v, "left_out", 0);
	assert_int_equal(rig_count(v, "searches"), 2);
	rig_near(v, "searches/0/runs", 4);
	assert_int_equal(rig_at(v, "searches/0/is_asked")->kind, JSON_TRUE);
	assert_int_equal(rig_at(v, "searches/1/is_asked")->kind, JSON_FALSE);
	rig_near(v, "searches/1/slo/0/max", 100);
	assert_int_equal(rig_count(v, "notes"), 2);
	assert_non_null(strstr(rig_at(v, "notes/0")->text.p, "1 run searched for the largest rate within "
			       "other limits"));
	assert_non_null(strstr(rig_at(v, "notes/1")->text.p, "requests at once"));
	/* limits in any order; of others the answer is another one */
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 30, \"slo\": [{\"column\": \"p99_tpot_ms\", "
		    "\"max\": 30}, {\"column\": \"p99_ttft_ms\", \"max\": 500}]}");
	assert_int_equal(rig_count(v, "configurations"), 2);
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 30, \"slo\": [{\"column\": \"p99_tpot_ms\", "
		    "\"max\": 31}, {\"column\": \"p99_ttft_ms\", \"max\": 500}]}");
	assert_int_equal(rig_count(v, "configurations"), 0);
	/* a search takes precedence over an estimate from measured loads, which are still drawn */
	put_load(&r, &(struct load){ "A", 2, 10, 64, 10, 20, 0 });
	put_load(&r, &(struct load){ "A", 2, 20, 64, 20, 900, 0 });
	v = rig_ask(&r, analyse_capacity, "{\"rate\": 30, \"slo\": [{\"column\": \"p99_ttft_ms\", "
		    "\"max\": 100}]}");
	assert_int_equal(rig_count(v, "configurations"), 1);
	rig_near(v, "configurations/0/rate_per_server/value", 5);
	assert_int_equal(rig_count(v, "configurations/0/loads"), 2);
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plan), cmocka_unit_test(ranges), cmocka_unit_test(many_columns),
		cmocka_unit_test(tags_alone),
		cmocka_unit_test(changes_with), cmocka_unit_test(names_of_users),
		cmocka_unit_test(only_valid),
		cmocka_unit_test(impact_corners),
		cmocka_unit_test(scaling), cmocka_unit_test(capacity),
		cmocka_unit_test(other_workloads), cmocka_unit_test(other_columns),
		cmocka_unit_test(newest_version), cmocka_unit_test(newest_commit),
		cmocka_unit_test(repeats),
		cmocka_unit_test(failing_loads), cmocka_unit_test(gpus_that_no_run_says),
		cmocka_unit_test(searches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
