/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_analyse_compare.c - groups of runs against a baseline: what is concluded of runs whose
 * difference is known, and what is refused.
 */
#include "analyse_rig.h"

struct run { const char *side, *session, *verdict; double rate, wait, tp, load, failed, tokens; };

static int64_t put(struct rig *r, const struct run *run, unsigned flags)
{
	rig_text(r, "run_id", arena_printf(&r->arena, "r%d", (int)r->next));
	rig_text(r, "source", "profllm");
	rig_text(r, "tags.side", run->side);
	rig_text(r, "server.model", "m");
	rig_number(r, "server.tensor_parallel_size", run->tp);
	rig_number(r, "benchmark.request_rate", run->load);
	if (run->session)
		rig_text(r, "provenance.session", run->session);
	if (run->verdict)
		rig_text(r, "verdict", run->verdict);
	rig_number(r, "request_throughput", run->rate);
	rig_number(r, "median_ttft_ms", run->wait);
	rig_number(r, "rtfx", 0);
	rig_number(r, "completed", 100 - run->failed);
	rig_number(r, "failed", run->failed);
	rig_number(r, "total_output_tokens", (100 - run->failed) * (run->tokens > 0 ? run->tokens : 128));
	rig_number(r, "timestamp", 1e9 + (double)r->next);
	return rig_run(r, flags);
}

#define SIDE(x) "{\"filter\": {\"column\": \"tags.side\", \"in\": [\"" x "\"]}}"
#define AB "\"groups\": [" SIDE("a") ", " SIDE("b") "]"

static const struct json_value *metric(const struct json_value *v, const char *name)
{
	const struct json_value *list = rig_at(v, "comparisons/0/metrics");

	for (size_t i = 0; list && i < list->count; i++)
		if (str_is(json_text(json_get(&list->item[i], "metric"), STR("")), name))
			return &list->item[i];
	fail_msg("there is no metric %s", name);
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

/*
 * A grid of servers and loads on both sides: configurations differ by 80 %, sessions by session,
 * runs by 1 %. Without a session every run counts as one.
 */
struct grid { size_t servers, loads, repeats; double change, session; bool is_known; };

static void put_grid(struct rig *r, const struct grid *g)
{
	for (int side = 0; side < 2; side++)
		for (size_t s = 0; s < g->servers; s++)
			for (size_t k = 0; k < g->repeats; k++) {
				double own = g->session * rig_normal(r) +
					     (side ? log1p(g->change) : 0);
				const char *id = arena_printf(&r->arena, "%d-%zu-%zu", side, s, k);

				for (size_t l = 0; l < g->loads; l++) {
					double ln = 0.8 * sin(7.0 * (double)(s + 5 * l)) + own +
						    0.01 * rig_normal(r);

					put(r, &(struct run){ side ? "b" : "a", g->is_known ? id : NULL,
						NULL, 100 * exp(ln), 50 / exp(ln), (double)s + 1,
						(double)(l + 1), 0, 0 }, 0);
				}
			}
}

/* 96 of 96 matched configurations are 7.5 % faster: an unpaired test sees nothing of it. */
static void faster(void **state)
{
	const struct json_value *m;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_grid(&r, &(struct grid){ .servers = 24, .loads = 4, .repeats = 1, .change = 0.075 });
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "groups/1/n", 96);
	rig_near(v, "comparisons/0/group", 1);
	rig_near(v, "comparisons/0/matched", 96);
	rig_same(v, "matched_by/0", "server.tensor_parallel_size");
	rig_same(v, "matched_by/1", "benchmark.request_rate");
	assert_int_equal(rig_count(v, "matched_by"), 2);
	assert_int_equal(rig_count(v, "groups_by"), 0); /* a tag is nothing that is configured */
	/* What each configuration is, and its runs on both sides. */
	assert_int_equal(rig_count(v, "configurations"), 96);
	rig_same(v, "configurations/5/configuration", "tensor_parallel_size=2, request_rate=2");
	rig_near(v, "configurations/5/values/0", 2);
	rig_near(v, "configurations/5/values/1", 2);
	rig_near(v, "configurations/5/ids/0/0", 6);
	rig_near(v, "configurations/5/ids/1/0", 96 + 6);
	assert_int_equal(rig_count(v, "configurations/5/ids/1"), 1);
	/* rtfx is 0 everywhere and no part of it */
	assert_int_equal(rig_count(v, "comparisons/0/metrics"), 2);
	m = metric(v, "request_throughput");
	rig_same(m, "verdict", "better");
	rig_near(m, "higher", 96);
	rig_near(m, "lower", 0);
	assert_true(fabs(rig_real(m, "effect") - 0.075) < 0.005);
	assert_true(rig_real(m, "interval/0") > 0.07 && rig_real(m, "interval/1") < 0.08);
	assert_int_equal(rig_count(m, "configurations"), 96);
	rig_same(metric(v, "median_ttft_ms"), "verdict", "better");
	/* The other one as the baseline. */
	v = rig_ask(&r, analyse_compare, "{" AB ", \"baseline\": 1, \"metrics\": "
		    "[\"request_throughput\", \"nowhere\"], \"primary\": \"request_throughput\"}");
	rig_near(v, "comparisons/0/group", 0);
	rig_same(v, "comparisons/0/metrics/0/verdict", "worse");
	assert_true(json_bool(rig_at(v, "comparisons/0/metrics/0/is_primary"), false));
	rig_same(v, "comparisons/0/metrics/1/verdict", "not_enough_data");
	rig_end(&r);
}

/* Whether any difference was seen. */
static bool is_seen(const struct json_value *v)
{
	struct str verdict = json_text(rig_at(v, "comparisons/0/metrics/0/verdict"), STR(""));

	return str_starts(verdict, STR("better")) || str_starts(verdict, STR("worse"));
}

/* How many of 60 stores without any change seem to have one; 9 and more: 0.3 % of the time. */
static void same(void **state)
{
	static const struct grid grids[] = {
		{ .servers = 24, .loads = 1, .repeats = 1 },
		{ .servers = 8, .loads = 4, .repeats = 1, .session = 0.015, .is_known = true },
		{ .servers = 3, .loads = 1, .repeats = 3, .session = 0.015, .is_known = true },
	};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		size_t seen = 0;

		for (uint64_t seed = 1; seed <= 60; seed++) {
			struct rig r;

			rig_begin(&r);
			r.seed = seed * 77 + i;
			put_grid(&r, &grids[i]);
			seen += is_seen(rig_ask(&r, analyse_compare, "{" AB ", \"metrics\": "
						"[\"request_throughput\"]}"));
			rig_end(&r);
		}
		if (seen > 8)
			fail_msg("grid %zu: %zu of 60", i, seen);
	}
}

/* Loads of one server are one sample, and so are repeats within one session. */
static void sessions(void **state)
{
	const struct json_value *m;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_grid(&r, &(struct grid){ .servers = 12, .loads = 8, .repeats = 1, .change = 0.075,
				     .session = 0.015, .is_known = true });
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	m = metric(v, "request_throughput");
	rig_near(m, "n_configurations", 96);
	rig_near(m, "n_clusters", 12);
	rig_same(m, "verdict", "better");
	assert_int_equal(rig_count(m, "loads"), 8);
	rig_same(m, "loads/0/load", "request_rate=1");
	rig_near(v, "comparisons/0/sessions_unknown/0", 0);
	rig_end(&r);
	rig_begin(&r);
	for (int i = 0; i < 5; i++) {
		put(&r, &(struct run){ "a", "s1", NULL, 100 + i, 50, 1, 1, 0, 0 }, 0);
		put(&r, &(struct run){ "b", "s2", NULL, 150 + i, 50, 1, 1, 0, 0 }, 0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	m = metric(v, "request_throughput");
	rig_same(m, "verdict", "not_enough_data");
	assert_int_equal(rig_at(m, "interval")->kind, JSON_NULL);
	rig_near(m, "runs/0", 5);
	rig_near(m, "sessions/0", 1);
	rig_same(v, "groups_by/0", "(none)");
	rig_end(&r);
}

static void parameters(void **state)
{
	const struct json_value *q;
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 5; i++) {
		put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, INFINITY, 0, 0 }, 0);
		put(&r, &(struct run){ "b", NULL, NULL, 150, 50, 2, INFINITY, 0, 0 }, 0);
	}
	put(&r, &(struct run){ "b", NULL, NULL, 150, 50, 2, 8, 0, 0 }, 0);
	v = rig_ask(&r, analyse_compare, "{" AB ", \"metrics\": []}");
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
	/* The same by numbers, where an excluded run counts too. */
	put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 4, INFINITY, 0, 0 }, INDEX_EXCLUDED);
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"name\": \"old\", \"ids\": [1, 3, \"r5\", 3, "
		    "12]}, {\"ids\": [2, 4]}], \"metrics\": []}");
	rig_same(v, "groups/0/name", "old");
	rig_near(v, "groups/0/n", 4);
	q = parameter(v, "server.tensor_parallel_size");
	rig_near(q, "values/0/0/value", 1);
	rig_near(q, "values/0/0/count", 3);
	rig_near(q, "values/0/1/value", 4);
	/* Within: both sides have both values. */
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"ids\": [1, 2]}, {\"ids\": [3, 4]}], "
		    "\"metrics\": []}");
	rig_same(parameter(v, "server.tensor_parallel_size"), "differs", "within");
	/* A value that one side lacks. */
	rig_text(&r, "tags.side", "a");
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"ids\": [1]}, {\"ids\": [13]}], "
		    "\"metrics\": []}");
	q = parameter(v, "server.model");
	assert_int_equal(rig_at(q, "values/1/0/value")->kind, JSON_NULL);
	rig_near(q, "values/1/0/count", 1);
	rig_end(&r);
}

/* Counts of a filter's group and of the same runs by number are the same. */
static void both_ways(void **state)
{
	struct buf ids = { 0 }, text[2] = { { 0 }, { 0 } };
	struct json_value *x, *y;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 300; i++) {
		double v = floor(rig_uniform(&r) * 6);

		put(&r, &(struct run){ rig_uniform(&r) < 0.5 ? "a" : "b", NULL, NULL, 100, 50, v + 1,
				       v > 2 ? v : INFINITY, 0, 0 }, 0);
	}
	for (int64_t i = 1; i <= 300; i++)
		buf_printf(&ids, "%s%d", i > 1 ? "," : "", (int)i);
	x = rig_ask(&r, analyse_compare, "{\"groups\": [{\"filter\": {\"and\": []}}]}");
	y = rig_ask(&r, analyse_compare, arena_printf(&r.arena, "{\"groups\": [{\"ids\": [%s]}]}",
						      ids.data));
	rig_near(x, "groups/0/n", 300);
	assert_int_equal(rig_count(x, "groups/0/ids"), 200);
	assert_true(rig_count(x, "parameters") >= 3);
	for (int k = 0; k < 2; k++) {
		struct json_writer w = json_writer(&text[k]);

		json_put_value(&w, json_get(k ? y : x, "parameters"));
	}
	assert_string_equal(text[0].data, text[1].data);
	buf_release(&text[0]);
	buf_release(&text[1]);
	buf_release(&ids);
	rig_end(&r);
}

/* What only A or only B has is listed separately; the groups' own columns are not configuration. */
static void matching(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int load = 1; load <= 4; load++) {
		put(&r, &(struct run){ "a", NULL, NULL, 100 * load, 50, 1, load, 0, 0 }, 0);
		put(&r, &(struct run){ "b", NULL, NULL, 190 * load, 50, 2, load + 1, 0, 0 }, 0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_same(v, "groups_by/0", "server.tensor_parallel_size");
	rig_near(v, "comparisons/0/matched", 3);
	rig_near(v, "comparisons/0/alone/0", 1);
	rig_same(v, "comparisons/0/only_baseline/0/configuration", "request_rate=1");
	rig_same(v, "comparisons/0/only_side/0/configuration", "request_rate=5");
	/* Without the load all runs are repeats of one configuration. */
	v = rig_ask(&r, analyse_compare, "{" AB ", \"ignore\": [\"benchmark.request_rate\"]}");
	rig_near(v, "comparisons/0/matched", 1);
	assert_int_equal(rig_count(v, "matched_by"), 0);
	/* Single runs: their loads differ, which is said. */
	v = rig_ask(&r, analyse_compare, "{\"groups\": [{\"ids\": [1]}, {\"ids\": [4]}]}");
	assert_true(rig_has_note(v, "different loads (benchmark.request_rate)"));
	rig_same(metric(v, "request_throughput"), "verdict", "not_enough_data");
	rig_end(&r);
	/* The number of GPUs follows from the sizes. */
	rig_begin(&r);
	for (int tp = 1; tp <= 2; tp++)
		for (int pp = 1; pp <= 2; pp++) {
			rig_number(&r, "server.pipeline_parallel_size", pp);
			rig_number(&r, "gpus", tp * pp);
			put(&r, &(struct run){ tp == 1 ? "a" : "b", NULL, NULL, 100, 50, tp, 1, 0, 0 },
			    0);
		}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "comparisons/0/matched", 2);
	rig_end(&r);
	/* What names a default is what leaves it out. */
	rig_begin(&r);
	put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, 1, 0, 0 }, 0);
	rig_number(&r, "benchmark.burstiness", 1);
	put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, 1, 0, 0 }, 0);
	put(&r, &(struct run){ "b", NULL, NULL, 100, 50, 1, 1, 0, 0 }, 0);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	assert_int_equal(rig_count(v, "matched_by"), 0);
	rig_near(v, "comparisons/0/runs/0", 2);
	rig_end(&r);
}

/*
 * Runs that have no counterpart take no part, so no warning is about them; and a group is made by
 * the value it is asked for, also where a release is known whose default that is.
 */
static void no_part(void **state)
{
	static const struct { const char *side, *version; double load; } runs[] = {
		{ "a", "0.12", 1 }, { "a", "0.12", 2 }, { "a", "0.11", 9 }, { "b", "0.12", 1 },
		{ "b", "0.12", 2 }, { "b", "0.13", 2 },
	};
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (size_t i = 0; i < sizeof(runs) / sizeof(*runs); i++) {
		rig_text(&r, "environment.server.version", runs[i].version);
		put(&r, &(struct run){ runs[i].side, NULL, NULL, 100, 50, 1, runs[i].load, 0, 0 },
		    0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "comparisons/0/matched", 2);
	assert_false(rig_has_note(v, "A mixes runs"));
	assert_true(rig_has_note(v, "B mixes runs of 2 values of environment.server.version"));
	rig_end(&r);
	/* Repeats that differ in a name of the user; one for each repeat is a number of repeats. */
	rig_begin(&r);
	for (int i = 0; i < 6; i++) {
		rig_text(&r, "tags.variant", i < 3 || i == 5 ? "base" : "new");
		rig_text(&r, "tags.run", (const char *[]){ "1", "2", "3" }[i % 3]);
		put(&r, &(struct run){ i < 3 ? "a" : "b", NULL, NULL, 100, 50, 1, 1, 0, 0 }, 0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	assert_true(rig_has_note(v, "B mixes runs of 2 values of tags.variant"));
	assert_false(rig_has_note(v, "A mixes runs"));
	assert_false(rig_has_note(v, "tags.run"));
	rig_end(&r);
	/* A third group that nothing is compared with had another load. */
	rig_begin(&r);
	for (int load = 1; load <= 2; load++)
		for (int tp = 1; tp <= 2; tp++) {
			rig_text(&r, "benchmark.backend", "vllm");
			put(&r, &(struct run){ tp == 1 ? "a" : "b", NULL, NULL, 100, 50, tp, load, 0, 0 },
			    0);
		}
	rig_text(&r, "benchmark.backend", "openai");
	put(&r, &(struct run){ "c", NULL, NULL, 100, 50, 4, 7, 0, 0 }, 0);
	v = rig_ask(&r, analyse_compare, "{\"groups\": [" SIDE("a") ", " SIDE("b") ", " SIDE("c") "]}");
	rig_near(v, "comparisons/0/matched", 2);
	assert_false(rig_has_note(v, "different loads"));
	v = rig_ask(&r, analyse_compare, "{\"groups\": [" SIDE("a") ", " SIDE("c") "], "
		    "\"ignore\": [\"benchmark.request_rate\"]}");
	assert_true(rig_has_note(v, "different loads (benchmark.backend)"));
	rig_end(&r);
	/* TP 1 is the default of a release; that run is in the group of TP 1 like all others. */
	rig_begin(&r);
	for (int load = 1; load <= 3; load++)
		for (int tp = 1; tp <= 2; tp++)
			put(&r, &(struct run){ tp == 1 ? "a" : "b", NULL, NULL, 100, 50, tp, load, 0, 0 },
			    0);
	rig_text(&r, "environment.server.version", "0.12.0");
	put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, 1, 0, 0 }, 0);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_same(v, "groups_by/0", "server.tensor_parallel_size");
	rig_near(v, "comparisons/0/matched", 3);
	rig_end(&r);
}

/* Other work is no gain and no loss. */
static void not_comparable(void **state)
{
	const struct json_value *m;
	struct json_value *v;
	struct rig r;

	(void)state;
	for (int back = 0; back < 2; back++) {
		rig_begin(&r);
		for (int load = 1; load <= 6; load++) {
			put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, load, 0, 12 }, 0);
			put(&r, &(struct run){ "b", NULL, NULL, 300, 20, 1, load, 0, 18.2 }, 0);
		}
		v = rig_ask(&r, analyse_compare, arena_printf(&r.arena, "{" AB ", \"baseline\": %d}",
							      back));
		m = metric(v, "request_throughput");
		rig_same(m, "verdict", "not_comparable");
		assert_non_null(strstr(rig_at(m, "sentence")->text.p, "output tokens per request"));
		rig_end(&r);
	}
}

/* One run of b failed, one has an INVALID rate that would lead; the rest is a little slower. */
static void only_valid(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	put_grid(&r, &(struct grid){ .servers = 6, .loads = 1, .repeats = 1, .change = -0.1 });
	rig_text(&r, "trust.invalid", "request_throughput");
	put(&r, &(struct run){ "b", NULL, "INVALID", 9000, 55, 1, 1, 0, 0 }, 0);
	rig_text(&r, "status", "failed");
	put(&r, &(struct run){ "b", NULL, NULL, 0, 0, 2, 1, 0, 0 }, 0);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "groups/1/n", 8);
	rig_same(metric(v, "request_throughput"), "verdict", "worse");
	rig_near(metric(v, "request_throughput"), "invalid/1", 1);
	assert_true(rig_has_note(v, "1 run failed and is left out"));
	assert_true(rig_has_note(v, "request_throughput is INVALID in 1 run, left out here; that run "
				    "would have led"));
	v = rig_ask(&r, analyse_compare, "{" AB ", \"include_invalid\": true}");
	rig_near(metric(v, "request_throughput"), "invalid/1", 0);
	rig_end(&r);
}

/*
 * A default that follows from what the groups differ in is no part of a configuration, also where a
 * run that failed early does not say which it had.
 */
static void failed_early(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 6; i++) {
		struct run run = { .side = i < 3 ? "a" : "b", .rate = 100 + i, .wait = 50, .tp = 1,
				   .load = 1 + i % 3 };

		rig_number(&r, "server.max_num_batched_tokens", i < 3 ? 8192 : 16384);
		put(&r, &run, 0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "comparisons/0/matched", 3);
	rig_text(&r, "status", "failed");
	rig_text(&r, "tags.side", "a");
	rig_text(&r, "server.model", "m");
	rig_run(&r, 0);
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	rig_near(v, "groups/0/n", 4);
	rig_near(v, "comparisons/0/matched", 3);
	rig_same(v, "groups_by/0", "server.max_num_batched_tokens");
	rig_end(&r);
}

/* Nothing but failed runs: no comparison, and why. Repeats of a configuration are known as such. */
static void only_failed(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int i = 0; i < 3; i++) {
		rig_text(&r, "status", "failed");
		rig_text(&r, "tags.side", i < 2 ? "a" : "b");
		if (i < 2)
			rig_number(&r, "configuration", 17);
		rig_run(&r, 0);
	}
	v = rig_ask(&r, analyse_compare, "{" AB "}");
	assert_int_equal(rig_count(v, "comparisons"), 0);
	assert_true(rig_has_note(v, "all 2 runs of A failed and have no results"));
	assert_true(rig_has_note(v, "B failed and has no results"));
	rig_near(v, "groups/0/configurations/0", 17);
	assert_int_equal(rig_at(v, "groups/1/configurations/0")->kind, JSON_NULL);
	rig_end(&r);
}

/* A question without an answer: one sentence. */
static void no_answer(struct rig *r, const char *body, const char *words)
{
	struct json_value *out;
	struct err e = { 0 };

	if (rig_call(r, analyse_compare, body, &out, &e) == 0)
		fail_msg("%s is answered", body);
	assert_int_equal(e.code, ERR_USAGE);
	if (!strstr(e.text, words))
		fail_msg("%s: '%s', expected '%s'", body, e.text, words);
}

static void unanswerable(void **state)
{
	struct json_value *v;
	struct rig r;

	(void)state;
	rig_begin(&r);
	for (int load = 1; load <= 3; load++) {
		put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, load, 0, 0 }, 0);
		put(&r, &(struct run){ "b", NULL, NULL, 100, 50, 1, load + 10, 0, 0 }, 0);
		put(&r, &(struct run){ "c", NULL, "INVALID", 100, 50, 1, load, 0, 0 }, 0);
	}
	no_answer(&r, "{\"groups\": [" SIDE("a") ", " SIDE("a") "]}", "A and B are the same runs");
	no_answer(&r, "{" AB "}", "no configuration in common (3 against 3); no value is on both sides "
		  "of benchmark.request_rate");
	no_answer(&r, "{\"groups\": [" SIDE("a") ", " SIDE("c") "]}", "is INVALID");
	no_answer(&r, "{\"groups\": [" SIDE("a") ", " SIDE("z") "]}", "B has no run");
	/* One of several: the others are answered. */
	v = rig_ask(&r, analyse_compare, "{\"groups\": [" SIDE("a") ", " SIDE("b") ", " SIDE("c")
		    "], \"include_invalid\": true}");
	rig_same(v, "comparisons/0/refused", "unmatched");
	rig_same(v, "comparisons/0/reason", "A and B have no configuration in common (3 against 3); "
		 "no value is on both sides of benchmark.request_rate");
	rig_end(&r);
}

static void refusals(void **state)
{
	struct rig r;

	(void)state;
	rig_begin(&r);
	put(&r, &(struct run){ "a", NULL, NULL, 100, 50, 1, 1, 0, 0 }, 0);
	put(&r, &(struct run){ "b", NULL, NULL, 100, 50, 1, 1, 0, 0 }, 0);
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
	rig_refused(&r, analyse_compare, "{" AB ", \"comparable_only\": 1}", "/comparable_only");
	rig_refused(&r, analyse_compare, "{" AB ", \"include_invalid\": 1}", "/include_invalid");
	rig_refused(&r, analyse_compare, "{" AB ", \"ignore\": [1]}", "/ignore/0");
	rig_refused(&r, analyse_compare, "{" AB ", \"primary\": 1}", "/primary");
	rig_refused(&r, analyse_compare, "{" AB ", \"metrics\": [\"rtfx\"], \"primary\": "
		    "\"request_throughput\"}", "/primary");
	rig_refused(&r, analyse_compare, "{" AB ", \"metrics\": [1]}", "/metrics/0");
	rig_end(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(faster), cmocka_unit_test(same), cmocka_unit_test(sessions),
		cmocka_unit_test(parameters), cmocka_unit_test(both_ways),
		cmocka_unit_test(matching), cmocka_unit_test(no_part),
		cmocka_unit_test(not_comparable), cmocka_unit_test(only_valid),
		cmocka_unit_test(failed_early), cmocka_unit_test(only_failed),
		cmocka_unit_test(unanswerable),
		cmocka_unit_test(refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
